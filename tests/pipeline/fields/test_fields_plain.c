/* Fields of sources without pictures, and what their rows are padded with. */
#include <math.h>

#include "base/util.h"
#include "tests/pipeline/fields/field_sets.h"
#include "tests/pipeline/sets.h"

enum { N = MRT_FIELD_SAMPLES };

static mr_source *make_plain_set(const char *name)
{
    static const mr_field plain[] = {{.name = "values", .type = MR_TYPE_TENSOR, .dtype = MR_F16},
                                     {.name = "label", .type = MR_TYPE_INT}};
    mr_writer *w = mrt_writer(name, plain, 2, 0);
    mr_error err = MR_ERROR_INIT;
    for (uint64_t i = 0; i < N; i++) {
        uint16_t numbers[8];
        for (uint32_t k = 0; k < mrt_token_count(i); k++) numbers[k] = (uint16_t)(i * 16 + k);
        const mr_value values[2] = {mrt_tensor(MR_F16, numbers, 1, mrt_token_count(i), 0),
                                    {.type = MR_TYPE_INT, .i = (int64_t)i}};
        MRT_OK(mr_writer_append(w, i, values, &err), &err);
    }
    return mrt_written(w, name);
}

static void a_source_needs_no_pictures(void **state)
{
    (void)state;
    static const mr_loader_field fields[] = {{.name = "values", .pad = -1.5}, {.name = "label"}};
    mr_source *src = make_plain_set("plain");
    mr_error err = MR_ERROR_INIT;
    mr_loader_config cfg = mrt_field_settings(fields, 2);
    mr_loader *l;
    mr_batch b;
    mrt_refused(src, &cfg, MR_EINVAL, "has no pictures to augment");
    cfg.augment = "none";
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    const mr_loader_info *info = mr_loader_info_of(l);
    MRT_TRUE(info->height == 0 && info->width == 0 && info->channels == 0);
    while (mr_loader_next(l, &b, MR_FOREVER, &err) == MR_OK) {
        MRT_TRUE(b.pixels == NULL && b.parts[0].pixels == NULL && b.affine == NULL);
        for (uint32_t i = 0; i < b.count; i++) {
            const uint16_t *row = (const uint16_t *)b.field[0].data + (size_t)i * b.field[0].width;
            MRT_EQ(b.field[0].length[i], mrt_token_count(b.ids[i]));
            for (uint32_t k = 0; k < b.field[0].width; k++)
                MRT_EQ(row[k], k < mrt_token_count(b.ids[i]) ? b.ids[i] * 16 + k : 0xbe00);
            MRT_EQ(b.labels[i], b.ids[i]);
        }
        MRT_OK(mr_loader_release(l, &b, NULL), NULL);
    }
    mr_loader_close(l);
    const mr_digest expected = mrt_digest(src, &cfg, NULL, NULL);
    MRT_OK(mr_devices_open((mr_device ***)(void *)&cfg.devices, &cfg.device_count, "cpu:2", NULL, &err),
           &err);
    cfg.keep_host = true;
    MRT_TRUE(mrt_same_batches(mrt_digest(src, &cfg, NULL, NULL), expected));
    mr_devices_close((mr_device **)(uintptr_t)cfg.devices, cfg.device_count);
    cfg.devices = NULL;

    cfg.field_count = 0;
    mrt_refused(src, &cfg, MR_EUNSUPPORTED,
                "has no picture field; say which fields to deliver: --fields values");
    const mr_loader_field follower = {.name = "values", .role = MR_ROLE_BOXES},
                          mask = {.name = "values", .role = MR_ROLE_MASK};
    mrt_refused_field(src, follower, MR_EINVAL, "augment");
    cfg = mrt_field_settings(&follower, 1);
    cfg.augment = "none";
    mrt_refused(src, &cfg, MR_EINVAL, "field values as boxes: ");
    cfg.fields = &mask;
    mrt_refused(src, &cfg, MR_EINVAL, "no pictures that it could follow");
    mr_source_close(src);
}

/* Each row has the bytes of its text, and zeros up to the longest one. */
static void texts_are_rows_of_bytes(void **state)
{
    (void)state;
    static const mr_field schema[] = {{.name = "caption", .type = MR_TYPE_TEXT},
                                      {.name = "blob", .type = MR_TYPE_BYTES}};
    mr_writer *w = mrt_writer("texts", schema, 2, 0);
    mr_error err = MR_ERROR_INIT;
    for (uint64_t i = 0; i < N; i++) {
        const mr_value values[2] = {{.type = MR_TYPE_TEXT, .data = "a caption", .bytes = i % 9},
                                    {.type = MR_TYPE_BYTES, .data = "\0\377\0", .bytes = i % 4}};
        MRT_OK(mr_writer_append(w, i, values, &err), &err);
    }
    mr_source *src = mrt_written(w, "texts");
    mr_loader_field fields[] = {{.name = "caption"}, {.name = "blob", .most = 3}};
    mr_loader_config cfg = mrt_field_settings(fields, 2);
    mr_loader *l;
    mr_batch b;
    cfg.augment = "none";
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    const mr_loader_field_info *info = mr_loader_info_of(l)->field;
    MRT_TRUE(info[0].varies && info[0].ndim == 0 && info[0].dtype == MR_U8 && info[0].most == 4096);
    while (mr_loader_next(l, &b, MR_FOREVER, &err) == MR_OK) {
        for (uint32_t i = 0; i < b.count; i++)
            for (uint32_t k = 0; k < 2; k++) {
                const uint8_t *row = (const uint8_t *)b.field[k].data + (size_t)i * b.field[k].width;
                const uint32_t length = (uint32_t)(b.ids[i] % (k ? 4 : 9));
                MRT_EQ(b.field[k].length[i], length);
                MRT_TRUE(b.field[k].width >= length &&
                         memcmp(row, k ? "\0\377\0" : "a caption", length) == 0);
                for (uint32_t j = length; j < b.field[k].width; j++) MRT_EQ(row[j], 0);
            }
        MRT_OK(mr_loader_release(l, &b, NULL), NULL);
    }
    mr_loader_close(l);
    fields[0].most = 7;
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    int rc;
    while ((rc = mr_loader_next(l, &b, MR_FOREVER, &err)) == MR_OK)
        MRT_OK(mr_loader_release(l, &b, NULL), NULL);
    MRT_EQ(rc, MR_EBADSAMPLE);
    MRT_HAS(err.text, "field caption: expected at most 7 bytes, found 8: raise the field's most");
    mr_loader_close(l);
    mr_source_close(src);
}

static void padding_numbers_are_exact(void **state)
{
    (void)state;
    static const struct {
        double pad;
        int bits;
    } halves[] = {{0, 0},
                  {-0.0, 0x8000},
                  {1, 0x3c00},
                  {-1.5, 0xbe00},
                  {65504, 0x7bff},
                  {5.9604644775390625e-8, 1},
                  {6.103515625e-05, 0x0400},
                  {6.097555160522461e-05, 0x03ff},
                  {(double)INFINITY, 0x7c00},
                  {65536, -1},
                  {0.1, -1},
                  {2.98e-8, -1},
                  {2049, -1}};
    mr_source *src = make_plain_set("pads");
    for (size_t k = 0; k < MRI_ARRAY_COUNT(halves); k++) {
        const mr_loader_field f = {.name = "values", .pad = halves[k].pad};
        mr_error err = MR_ERROR_INIT;
        mr_loader_config cfg = mrt_field_settings(&f, 1);
        mr_loader *l;
        mr_batch b;
        cfg.augment = "none";
        cfg.order = MR_ORDER_SEQUENTIAL;
        if (halves[k].bits < 0) {
            mrt_refused(src, &cfg, MR_EINVAL, "padding");
            continue;
        }
        MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
        MRT_OK(mr_loader_next(l, &b, MR_FOREVER, &err), &err); /* its first row is empty */
        MRT_TRUE(b.field[0].width > 0);
        MRT_EQ(((const uint16_t *)b.field[0].data)[0], halves[k].bits);
        MRT_OK(mr_loader_release(l, &b, NULL), NULL);
        mr_loader_close(l);
    }
    mr_source_close(src);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_source_needs_no_pictures),
        cmocka_unit_test(texts_are_rows_of_bytes),
        cmocka_unit_test(padding_numbers_are_exact),
    };
    return mrt_run(tests);
}
