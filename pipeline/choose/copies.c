/* pipeline/choose/copies.c: samples with the same contents, found by their hashes and then compared. See
 * millrace/choose.h. */
#include <stdlib.h>
#include <string.h>

#include "base/abi.h"
#include "base/floats.h"
#include "base/handle.h"
#include "formats/source/source.h"
#include "pipeline/choose/choosing.h"
#include "pipeline/decode/decoders.h"

static int by_hash(const void *a, const void *b)
{
    const mr_copy_mark *x = a, *y = b;
    if (x->hash != y->hash) return x->hash < y->hash ? -1 : 1;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1;
    return x->sample < y->sample ? -1 : x->sample > y->sample;
}

static int same_pixels(const mr_choice_config *cfg, const mr_value *a, const mr_value *b, bool *same,
                       mr_error *err)
{
    mr_image i = {0}, j = {0};
    int rc = mr_image_decode(a, &cfg->decode, &i, err);
    if (!rc) rc = mr_image_decode(b, &cfg->decode, &j, err);
    *same = !rc && i.width == j.width && i.height == j.height && i.channels == j.channels &&
            memcmp(i.pixels, j.pixels, (size_t)i.width * i.height * i.channels) == 0;
    mr_image_free(&i);
    mr_image_free(&j);
    return rc;
}

/* A hash only finds candidates: the pictures themselves decide. */
static int same_samples(const mr_source *src, const mr_choice_config *cfg, uint64_t a, uint64_t b, bool *same,
                        mr_error *err)
{
    const int f = mr_source_info_of(src)->image_field;
    void *x = NULL, *y = NULL;
    size_t x_bytes = 0, y_bytes = 0;
    mr_sample p, q;
    *same = false;
    int rc = mr_source_read(src, a, &x, &x_bytes, &p, err);
    if (!rc) rc = mr_source_read(src, b, &y, &y_bytes, &q, err);
    if (!rc && f < 0) { /* all that a sample is */
        mr_extent s = {0}, t = {0};
        rc = mr_source_extent(src, a, &s, err);
        if (!rc) rc = mr_source_extent(src, b, &t, err);
        *same = !rc && s.bytes == t.bytes && memcmp(x, y, (size_t)s.bytes) == 0;
    } else if (!rc && cfg->dedup == MR_COPIES_PIXELS)
        rc = same_pixels(cfg, &p.value[f], &q.value[f], same, err);
    else if (!rc)
        *same = p.value[f].type == q.value[f].type && p.value[f].bytes == q.value[f].bytes &&
                memcmp(p.value[f].data, q.value[f].data, p.value[f].bytes) == 0;
    free(x);
    free(y);
    return rc;
}

int mri_find_copies(const mr_source *src, const mr_choice_config *cfg, mr_copy_mark *marks, uint64_t count,
                    mr_on_copy *on_copy, void *context, mr_error *err)
{
    int rc = MR_OK;
    if (count) qsort(marks, count, sizeof *marks, by_hash);
    for (uint64_t k = 1, first = 0; k < count && !rc && !mri_stop_asked(); k++) {
        if (marks[k].hash != marks[first].hash || marks[k].bytes != marks[first].bytes) {
            first = k;
            continue;
        }
        bool same;
        rc = same_samples(src, cfg, marks[first].sample, marks[k].sample, &same, err);
        if (!rc && same) on_copy(context, marks[k].sample, marks[first].sample);
    }
    return rc;
}

int mr_choose_copies(const mr_source *src, const mr_choice_config *cfg, mr_copy_mark *marks, uint64_t count,
                     mr_on_copy *on_copy, void *context, mr_error *err)
{
    MRI_DEFAULT_FLOATS;
    mr_choice_config mine;
    MRI_OWN(err, src);
    MRI_GIVEN(err, marks);
    MRI_GIVEN(err, on_copy);
    mr_choice_defaults(&mine);
    int rc = mri_settings_take(&mine, sizeof mine, cfg, "choice", err);
    if (!rc && mine.dedup > MR_COPIES_PIXELS)
        rc = mr_error_set(err, MR_EINVAL, "mr_choice_config.dedup: expected 0 to 2, found %u",
                          (unsigned)mine.dedup);
    if (!rc) rc = mri_decode_check(&mine.decode, "mr_choice_config.decode", err);
    for (uint64_t k = 0; !rc && k < count; k++)
        if (marks[k].sample >= mr_source_info_of(src)->count)
            rc = mr_error_set(err, MR_EINVAL, "mr_copy_mark.sample: expected less than %llu, found %llu",
                              (unsigned long long)mr_source_info_of(src)->count,
                              (unsigned long long)marks[k].sample);
    if (rc) return rc;
    const volatile int *before = mri_stop_at(mine.stop);
    rc = mri_find_copies(src, &mine, marks, count, on_copy, context, err);
    if (!rc && mri_stop_asked()) rc = mri_stopped(err);
    mri_stop_at(before);
    return rc;
}
