/* tests/pipeline/cache/test_points.c: entry points kept in memory: the same batches to the bit, for any
 * memory size; only for several epochs of JPEGs without stored entry points; never for bytes that have
 * changed since. */
#include "pipeline/cache/points.h"

#include "base/util.h"
#include "pipeline/loader_private.h"
#include "tests/pipeline/sets.h"

#define COUNT 24
#define SIDE  190 /* large enough that they are noted */

static mr_loader_config settings(uint64_t entry_bytes)
{
    mr_loader_config cfg;
    mr_loader_defaults(&cfg);
    cfg.batch = 8;
    cfg.seed = 3;
    cfg.epochs = 4;
    cfg.workers = 2;
    cfg.training = true;
    cfg.augment = "rrc(32),flip";
    cfg.resident_bytes = 0;
    cfg.entry_bytes = entry_bytes;
    return cfg;
}

static mr_source *photos(const char *name)
{
    return mrt_source(mrt_folder_set(name, 2, COUNT / 2, SIDE, true));
}

/* Digest and figures of a run. */
static mr_digest run(const mr_source *src, const mr_loader_config *cfg, mri_points_counts *s,
                     uint64_t *memory)
{
    mr_error err = MR_ERROR_INIT;
    mr_loader *l;
    mr_digester *d;
    uint64_t batches, samples;
    MRT_OK(mr_loader_open(&l, src, cfg, &err), &err);
    MRT_EQ(mr_digester_create(&d), MR_OK);
    MRT_OK(mr_digester_run(d, l, NULL, UINT64_MAX, &batches, &samples, &err), &err);
    const mr_digest result = mr_digester_result(d);
    mr_digester_destroy(d);
    *s = l->kept.points ? mri_points_counts_of(l->kept.points) : (mri_points_counts){0};
    *memory = mr_loader_info_of(l)->memory_bytes;
    mr_loader_close(l);
    return result;
}

static void batches_are_the_same(void **state)
{
    (void)state;
    mr_source *src = photos("same");
    mri_points_counts s;
    uint64_t memory, more;
    mr_loader_config cfg = settings(0);
    const mr_digest expected = run(src, &cfg, &s, &memory);
    MRT_EQ(s.pictures, 0);
    for (uint32_t k = 0; k < 8; k++) {
        cfg = settings(UINT64_C(1) << 30);
        cfg.prefetch = k % 2 ? 4 : 0;
        cfg.workers = 1 + k / 2;
        MRT_TRUE(mrt_same_batches(expected, run(src, &cfg, &s, &more)));
        MRT_EQ(s.pictures, COUNT);
        MRT_TRUE(s.bytes > COUNT * 20);
    }
    cfg = settings(UINT64_C(1) << 30);
    run(src, &cfg, &s, &more);
    MRT_TRUE(more > memory);
    mr_source_close(src);
}

/* Crops of pictures that are large enough for lanes to read ahead leave the same points. */
static void crops_read_ahead_leave_points(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_folder_set("ahead", 1, 8, 500, true));
    mri_points_counts s;
    uint64_t memory;
    mr_loader_config cfg = settings(0);
    const mr_digest expected = run(src, &cfg, &s, &memory);
    cfg = settings(UINT64_C(1) << 30);
    MRT_TRUE(mrt_same_batches(expected, run(src, &cfg, &s, &memory)));
    MRT_EQ(s.pictures, 8);
    mr_source_close(src);
}

static void a_part_is_kept_where_all_have_no_room(void **state)
{
    (void)state;
    mr_source *src = photos("part");
    mri_points_counts s;
    uint64_t memory;
    mr_loader_config cfg = settings(0);
    const mr_digest expected = run(src, &cfg, &s, &memory);
    for (uint64_t bytes = 1; bytes < 3000; bytes = bytes * 3 + 100) {
        cfg = settings(bytes);
        MRT_TRUE(mrt_same_batches(expected, run(src, &cfg, &s, &memory)));
        MRT_TRUE(s.pictures < COUNT && s.bytes <= bytes);
        if (bytes > 1200) MRT_TRUE(s.pictures > 0);
    }
    mr_source_close(src);
}

static void nothing_is_kept_without_use(void **state)
{
    (void)state;
    mr_source *src = photos("use");
    mr_error err = MR_ERROR_INIT;
    mri_points_counts s;
    uint64_t memory;
    mr_loader_config cfg = settings(UINT64_C(1) << 30);
    cfg.epochs = 1;
    run(src, &cfg, &s, &memory);
    MRT_EQ(s.pictures, 0);
    cfg = settings(UINT64_C(1) << 30); /* the last epoch of a resumed run */
    cfg.start_epoch = cfg.epochs - 1;
    run(src, &cfg, &s, &memory);
    MRT_EQ(s.pictures, 0);
    cfg = settings(UINT64_C(1) << 30);
    cfg.decode.pixels = MR_PIXELS_LIBJPEG;
    run(src, &cfg, &s, &memory);
    MRT_EQ(s.pictures, 0);
    mr_convert_config convert;
    mr_convert_defaults(&convert);
    convert.force = true;
    MRT_OK(mr_convert(src, mrt_path("use.mrec"), &convert, NULL, &err), &err);
    mr_source_close(src);
    src = mrt_source(mrt_path("use.mrec"));
    cfg = settings(UINT64_C(1) << 30); /* records have theirs */
    run(src, &cfg, &s, &memory);
    MRT_EQ(s.pictures, 0);
    mr_source_close(src);
}

static void other_bytes_have_none(void **state)
{
    (void)state;
    uint8_t jpeg[100] = {1, 2, 3}, entries[30] = {7};
    mr_value value = {.type = MR_TYPE_JPEG, .data = jpeg, .bytes = sizeof jpeg};
    mr_error err = MR_ERROR_INIT;
    mri_points *p;
    MRT_OK(mri_points_create(&p, 4, 1 << 16, &err), &err);
    MRT_TRUE(!mri_points_find(p, 2, &value));
    mri_points_keep(p, 2, &value, entries, sizeof entries);
    for (size_t k = 0; k < 8 * sizeof jpeg; k++) {
        jpeg[k / 8] ^= (uint8_t)(1u << k % 8);
        MRT_TRUE(!mri_points_find(p, 2, &value));
        jpeg[k / 8] ^= (uint8_t)(1u << k % 8);
    }
    MRT_TRUE(!value.entries);
    MRT_TRUE(!mri_points_find(p, 1, &value) && !mri_points_find(p, 4, &value));
    MRT_TRUE(mri_points_find(p, 2, &value));
    MRT_EQ(value.entries_bytes, sizeof entries);
    MRT_TRUE(memcmp(value.entries, entries, sizeof entries) == 0);
    mri_points_keep(p, 4, &value, entries, sizeof entries); /* no sample of the set */
    MRT_EQ(mri_points_counts_of(p).pictures, 1);
    mri_points_destroy(p);
    mri_points_destroy(NULL);
}

/* Another picture of the same size in bytes: a comment fills it up. */
static uint8_t *another(const mr_source *other, size_t bytes)
{
    uint8_t *made = NULL;
    for (uint64_t k = 0; k < COUNT && !made; k++) {
        char path[4096];
        size_t has;
        uint8_t *jpeg = mrt_read_file(mr_source_sample_path(other, k, path, sizeof path), &has);
        if (has + 4 <= bytes && bytes - has < 60000) {
            const size_t fill = bytes - has;
            made = calloc(1, bytes);
            memcpy(made, jpeg, 2);
            memcpy(made + 2, (uint8_t[4]){0xff, 0xfe, (uint8_t)((fill - 2) >> 8), (uint8_t)(fill - 2)}, 4);
            memcpy(made + 2 + fill, jpeg + 2, has - 2);
        }
        free(jpeg);
    }
    assert_non_null(made);
    return made;
}

/* A file that another one replaces between two epochs is decoded from its new contents. */
static void a_replaced_file_is_decoded_anew(void **state)
{
    (void)state;
    mr_source *src = photos("replaced"),
              *other = mrt_source(mrt_folder_set("other", 2, COUNT / 2, SIDE - 20, true));
    char path[4096];
    size_t bytes;
    uint8_t *first = mrt_read_file(mr_source_sample_path(src, 3, path, sizeof path), &bytes);
    uint8_t *second = another(other, bytes);
    mr_error err = MR_ERROR_INIT;
    mr_digest digest[3];
    for (int k = 0; k < 3; k++) { /* without; with; never replaced */
        mr_loader_config cfg = settings(k == 1 ? UINT64_C(1) << 30 : 0);
        mr_loader *l;
        mr_digester *d;
        uint64_t batches, samples;
        cfg.prefetch = 0; /* nothing is read ahead of the change */
        MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
        MRT_EQ(mr_digester_create(&d), MR_OK);
        MRT_OK(mr_digester_run(d, l, NULL, COUNT / 8, &batches, &samples, &err), &err);
        if (k < 2) mrt_write_file(path, second, bytes);
        MRT_OK(mr_digester_run(d, l, NULL, UINT64_MAX, &batches, &samples, &err), &err);
        mrt_write_file(path, first, bytes);
        digest[k] = mr_digester_result(d);
        mr_digester_destroy(d);
        mr_loader_close(l);
    }
    MRT_TRUE(mrt_same_batches(digest[0], digest[1]));
    MRT_TRUE(!mrt_same_batches(digest[0], digest[2]));
    free(first);
    free(second);
    mr_source_close(src);
    mr_source_close(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_are_the_same),
        cmocka_unit_test(crops_read_ahead_leave_points),
        cmocka_unit_test(a_part_is_kept_where_all_have_no_room),
        cmocka_unit_test(nothing_is_kept_without_use),
        cmocka_unit_test(other_bytes_have_none),
        cmocka_unit_test(a_replaced_file_is_decoded_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
