/* tests/fuzz/sets/fuzz_example.c: hostile bytes as a tf.train.Example: walked, picked from, its lists read,
 * its picture and boxes taken.
 *
 * Input: the message. The source around it is fuzz_tfrecord's; without it this is many times as fast. */
#include <stdlib.h>
#include <string.h>

#include "formats/tfrecord/example.h"
#include "formats/tfrecord/tfrecord_facts.h"
#include "tests/fuzz/fuzz.h"

enum { MOST = 16 };

static const char *const keys[MRI_TF_FEATURES] = {
    "image", "label", "text", "height", "width", "channels", "xmin", "ymin", "xmax", "ymax", "box",
};

static void inside(mri_span s, const uint8_t *data, size_t bytes)
{
    if (s.bytes == 0) return;
    if (s.data < data || s.bytes > bytes || (size_t)(s.data - data) > bytes - s.bytes) abort();
}

/* A short array receives the first of the counted values. */
static void read_list(const mri_feature *f, const uint8_t *data, size_t bytes)
{
    int64_t ints[MOST];
    float floats[MOST];
    mri_span spans[MOST];
    size_t count = 0, again = 0;
    mr_error err = MR_ERROR_INIT;
    int rc = MR_OK, rc_again = MR_OK;
    if (f->kind == MRI_FEATURE_INTS) {
        rc = mri_feature_ints(f, ints, MOST, &count, &err);
        rc_again = mri_feature_ints(f, NULL, 0, &again, NULL);
    } else if (f->kind == MRI_FEATURE_FLOATS) {
        rc = mri_feature_floats(f, floats, MOST, &count, &err);
        rc_again = mri_feature_floats(f, NULL, 0, &again, NULL);
    } else if (f->kind == MRI_FEATURE_BYTES) {
        rc = mri_feature_bytes(f, spans, MOST, &count, &err);
        rc_again = mri_feature_bytes(f, NULL, 0, &again, NULL);
        for (size_t k = 0; rc == MR_OK && k < count && k < MOST; k++) inside(spans[k], data, bytes);
    }
    if (rc != rc_again || (rc == MR_OK && (count != again || count > bytes)) || (rc && !err.text[0])) abort();
}

/* The last entry with this key. */
static bool last_of(const uint8_t *data, size_t bytes, const char *key, mri_feature *out)
{
    mri_example_walk w;
    mri_feature f;
    int rc;
    mri_example_begin(&w, data, bytes);
    *out = (mri_feature){.kind = MRI_FEATURE_NONE};
    while ((rc = mri_example_next(&w, &f, NULL)) == MR_OK)
        if (f.key.bytes == strlen(key) && memcmp(f.key.data, key, f.key.bytes) == 0) *out = f;
    return rc == MR_EEND;
}

static void values(const mri_feature *f)
{
    mr_error err = MR_ERROR_INIT;
    mr_value v;
    size_t boxes;
    int64_t label;
    if (mri_tf_picture(f, keys, &v, &err) == MR_OK && (v.bytes == 0 || !v.data)) abort();
    if (mri_tf_box_count(f, keys, &boxes, &err) == MR_OK && boxes > MRI_TF_MAX_BOXES) abort();
    mri_tf_one_int(&f[MRI_TF_LABEL], keys[MRI_TF_LABEL], &label, &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    mri_feature f, picked[MRI_TF_FEATURES];
    mri_example_walk w;
    mr_error err = MR_ERROR_INIT;
    char text[64];
    int rc;
    mrt_fuzz_begin(0, 1); /* it allocates nothing */
    mri_example_begin(&w, data, bytes);
    while ((rc = mri_example_next(&w, &f, &err)) == MR_OK) {
        inside(f.key, data, bytes);
        inside(f.lists, data, bytes);
        read_list(&f, data, bytes);
    }
    const int pick = mri_example_pick(data, bytes, keys, MRI_TF_FEATURES, picked, &err);
    if (pick == MR_OK && rc != MR_EEND) abort();
    if (pick != MR_OK && !err.text[0]) abort();
    if (pick == MR_OK) {
        for (int k = 0; k < MRI_TF_FEATURES; k += 4) {
            if (!last_of(data, bytes, keys[k], &f) || f.kind != picked[k].kind ||
                f.lists.bytes != picked[k].lists.bytes)
                abort();
        }
        values(picked);
    }
    mri_tf_list_keys(data, bytes, text, sizeof text);
    mrt_fuzz_end();
    return 0;
}
