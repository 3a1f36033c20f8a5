/* formats/tfrecord/tfrecord_values.c: the meaning of the features of one record: a number, a picture, a mask,
 * boxes. */
#include <inttypes.h>
#include <stdio.h>

#include "base/util.h"
#include "formats/image/image.h"
#include "formats/tfrecord/tfrecord_facts.h"

static int expected_kind(const mri_feature *f, const char *name, const char *expected, mr_error *err)
{
    if (f->kind == MRI_FEATURE_NONE)
        return mr_error_set(err, MR_EFORMAT, "no feature \"%s\" in this record", name);
    return mr_error_set(err, MR_EFORMAT, "feature \"%s\": expected %s, found %s", name, expected,
                        mri_feature_kind_text(f->kind));
}

static int expected_one(const char *name, const char *what, size_t count, mr_error *err)
{
    return mr_error_set(err, MR_EFORMAT, "feature \"%s\": expected one %s, found a list of %zu", name, what,
                        count);
}

int mri_tf_one_int(const mri_feature *f, const char *name, int64_t *out, mr_error *err)
{
    size_t count;
    if (f->kind == MRI_FEATURE_BYTES)
        return mr_error_set(
            err, MR_EFORMAT,
            "feature \"%s\": expected a whole number (Int64List), found %s: name a feature with numbers, "
            "such as image/class/label (--label-key NAME)",
            name, mri_feature_kind_text(f->kind));
    if (f->kind != MRI_FEATURE_INTS) return expected_kind(f, name, "a whole number (Int64List)", err);
    const int rc = mri_feature_ints(f, out, 1, &count, err);
    return rc || count == 1 ? rc : expected_one(name, "number", count, err);
}

int mri_tf_one_bytes(const mri_feature *f, const char *name, mri_span *out, mr_error *err)
{
    size_t count;
    if (f->kind != MRI_FEATURE_BYTES) return expected_kind(f, name, "bytes (BytesList)", err);
    const int rc = mri_feature_bytes(f, out, 1, &count, err);
    return rc || count == 1 ? rc : expected_one(name, "value", count, err);
}

/* ---- pictures ---- */
static bool dimension(const mri_feature *f, uint64_t *out)
{
    int64_t v;
    if (f->kind != MRI_FEATURE_INTS || mri_tf_one_int(f, "", &v, NULL) != MR_OK || v <= 0 || v > UINT32_MAX)
        return false;
    *out = (uint64_t)v;
    return true;
}

static int no_pixels(const char *name, mri_span bytes, mr_error *err)
{
    char kind[MRI_PICTURE_KIND_BYTES];
    return mr_error_set(
        err, MR_EFORMAT,
        "feature \"%s\": %zu bytes that are no picture that is decoded (%s), and no height and width beside "
        "them to take them for pixels",
        name, bytes.bytes, mri_picture_kind(bytes.data, bytes.bytes, kind));
}

/* Pixels can begin like a picture file, and a small file can have the size of its pixels: if
 * both hold, a whole header decides. */
static bool has_header(mri_span bytes)
{
    mr_image_header header;
    return mr_image_header_parse(bytes.data, bytes.bytes, &header, NULL) == MR_OK;
}

int mri_tf_picture(const mri_feature f[MRI_TF_FEATURES], const char *const key[MRI_TF_FEATURES],
                   mr_value *out, mr_error *err)
{
    mri_span bytes;
    const int rc = mri_tf_one_bytes(&f[MRI_TF_IMAGE], key[MRI_TF_IMAGE], &bytes, err);
    if (rc) return rc;
    *out = (mr_value){.data = bytes.data, .bytes = bytes.bytes};
    uint64_t h, w, c = 0, area = 0, all = 0;
    const bool sized = dimension(&f[MRI_TF_HEIGHT], &h) && dimension(&f[MRI_TF_WIDTH], &w) &&
                       !__builtin_mul_overflow(h, w, &area);
    const bool stated = sized && dimension(&f[MRI_TF_CHANNELS], &c);
    const int type = mr_image_sniff(bytes.data, bytes.bytes);
    char kind[MRI_PICTURE_KIND_BYTES];
    const bool exact = stated && !__builtin_mul_overflow(area, c, &all) && all == bytes.bytes;
    if (type && (!exact || has_header(bytes))) {
        out->type = (mr_type)type;
        return MR_OK;
    }
    if (!sized || bytes.bytes == 0) return no_pixels(key[MRI_TF_IMAGE], bytes, err);
    if (!stated) c = bytes.bytes % area == 0 ? bytes.bytes / area : 0;
    if (c < 1 || c > 4 || (stated && !exact)) {
        return mr_error_set(err, MR_EFORMAT,
                            "feature \"%s\": expected a picture file, or the pixels of %" PRIu64 " x %" PRIu64
                            ", 1 to 4 bytes each, found %zu bytes (%s)",
                            key[MRI_TF_IMAGE], h, w, bytes.bytes,
                            mri_picture_kind(bytes.data, bytes.bytes, kind));
    }
    out->type = MR_TYPE_PIXELS;
    out->planes = MR_HWC;
    out->ndim = 3;
    out->dim[0] = h;
    out->dim[1] = w;
    out->dim[2] = c;
    return MR_OK;
}

int mri_tf_mask(const mri_feature *f, const char *name, mr_value *out, mr_error *err)
{
    mri_span bytes = {0};
    *out = (mr_value){.type = MR_TYPE_PNG};
    if (f->kind == MRI_FEATURE_NONE) return MR_OK;
    const int rc = mri_tf_one_bytes(f, name, &bytes, err);
    if (rc) return rc;
    if (bytes.bytes && mr_image_sniff(bytes.data, bytes.bytes) != MR_TYPE_PNG)
        return mr_error_set(err, MR_EFORMAT, "feature \"%s\": expected a mask as PNG, found %zu other bytes",
                            name, bytes.bytes);
    out->data = bytes.data;
    out->bytes = bytes.bytes;
    return MR_OK;
}

/* ---- boxes ---- */
int mri_tf_box_count(const mri_feature f[MRI_TF_FEATURES], const char *const key[MRI_TF_FEATURES],
                     size_t *out, mr_error *err)
{
    size_t first = 0;
    for (int k = MRI_TF_XMIN; k <= MRI_TF_BOX_LABEL; k++) {
        const bool label = k == MRI_TF_BOX_LABEL;
        const mri_feature_kind kind = label ? MRI_FEATURE_INTS : MRI_FEATURE_FLOATS;
        size_t count;
        if (!key[k]) continue;
        if (f[k].kind != MRI_FEATURE_NONE && f[k].kind != kind)
            return expected_kind(&f[k], key[k], mri_feature_kind_text(kind), err);
        const int rc = label ? mri_feature_ints(&f[k], NULL, 0, &count, err)
                             : mri_feature_floats(&f[k], NULL, 0, &count, err);
        if (rc) return rc;
        if (k == MRI_TF_XMIN) first = count;
        if (count != first)
            return mr_error_set(err, MR_EFORMAT, "boxes: %zu of \"%s\", but %zu of \"%s\"", first,
                                key[MRI_TF_XMIN], count, key[k]);
    }
    if (first > MRI_TF_MAX_BOXES)
        return mr_error_set(err, MR_ELIMIT, "boxes: %zu in one record, at most %d are taken", first,
                            MRI_TF_MAX_BOXES);
    *out = first;
    return MR_OK;
}

/* ---- for messages ---- */
void mri_tf_list_keys(const void *example, size_t bytes, char *out, size_t out_bytes)
{
    static const char *const kinds[] = {"empty", "bytes", "floats", "whole numbers"};
    mri_example_walk w;
    mri_feature f;
    size_t at = 0;
    out[0] = '\0';
    mri_example_begin(&w, example, bytes);
    while (mri_example_next(&w, &f, NULL) == MR_OK) {
        char key[64], shown[128];
        snprintf(key, sizeof key, "%.*s", (int)(f.key.bytes < 63 ? f.key.bytes : 63),
                 (const char *)f.key.data);
        mr_text_shown(key, shown, sizeof shown);
        if (at + strlen(shown) + 24 > out_bytes) {
            snprintf(out + at, out_bytes - at, ", ...");
            return;
        }
        at += (size_t)snprintf(out + at, out_bytes - at, "%s%s (%s)", at ? ", " : "", shown, kinds[f.kind]);
    }
}
