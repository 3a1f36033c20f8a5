/* Fields in batches: their contents, and that no setting changes them. */
#include "base/util.h"
#include "tests/pipeline/fields/field_sets.h"
#include "tests/pipeline/sets.h"

enum { N = MRT_FIELD_SAMPLES, W = MRT_FIELD_WIDE, H = MRT_FIELD_HIGH };

static uint32_t round_up(uint32_t v, uint32_t m) { return (v + m - 1) / m * m; }

static void check_width(const mr_batch *b, const mr_batch_field *f, uint32_t multiple)
{
    uint32_t longest = 0;
    for (uint32_t i = 0; i < b->count; i++)
        longest = (uint32_t)f->length[i] > longest ? (uint32_t)f->length[i] : longest;
    MRT_EQ(f->width, round_up(longest, multiple));
}

/* ---- contents of batches ---- */

static void rows_are_those_of_the_samples(void **state)
{
    (void)state;
    mr_source *src = mrt_field_set("rows", MRT_FINE);
    static const uint32_t multiples[] = {1, 4};
    for (size_t m = 0; m < 2; m++) {
        mr_error err = MR_ERROR_INIT;
        mr_loader_config cfg = mrt_field_settings(mrt_followers, 4);
        mr_loader *l;
        mr_batch b;
        cfg.width_multiple = multiples[m];
        MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
        uint32_t moved = 0, batches = 0;
        for (; mr_loader_next(l, &b, MR_FOREVER, &err) == MR_OK; batches++) {
            for (int k = 0; k < 4; k++)
                if (k != 2) check_width(&b, &b.field[k], multiples[m]);
            MRT_EQ(b.field[2].width, 1);
            MRT_TRUE(b.field[2].length == NULL);
            for (uint32_t i = 0; i < b.count; i++) {
                mrt_check_boxes(&b, i, &b.field[0], &b.field[1]);
                mrt_check_mask(&b, i, &b.field[2], 255);
                mrt_check_tokens(&b, i, b.ids[i], &b.field[3], 9);
                moved += b.pixels[(size_t)i * H * W * 3] != 1;
            }
            MRT_OK(mr_loader_release(l, &b, NULL), NULL);
        }
        MRT_EQ(batches, 10);
        MRT_TRUE(moved > 20);
        mr_loader_close(l);
    }
    mr_source_close(src);
}

/* The pixels that show box k lie in its row, which is not much larger. slack: after a second turn a pixel
 * shows what lies up to half a pixel aside. */
static void box_is_around(const uint8_t *pixels, uint64_t id, uint32_t k, const float row[4], double slack)
{
    uint32_t box[4], seen[4] = {W, H, 0, 0};
    mrt_box_of(id, k, box);
    for (uint32_t y = 0; y < H; y++)
        for (uint32_t x = 0; x < W; x++) {
            const uint8_t *p = pixels + (y * W + x) * 3;
            if (!p[2] || p[0] - 1u < box[0] || p[0] - 1u >= box[2] || p[1] - 1u < box[1] ||
                p[1] - 1u >= box[3])
                continue;
            MRT_TRUE(x + 0.5 > row[0] * W - slack && x + 0.5 < row[2] * W + slack);
            MRT_TRUE(y + 0.5 > row[1] * H - slack && y + 0.5 < row[3] * H + slack);
            seen[0] = x < seen[0] ? x : seen[0], seen[1] = y < seen[1] ? y : seen[1];
            seen[2] = x + 1 > seen[2] ? x + 1 : seen[2], seen[3] = y + 1;
        }
    if (seen[2] == 0) { /* a tip, in which no pixel has its centre */
        MRT_TRUE((row[2] - row[0]) * W < 2 || (row[3] - row[1]) * H < 2);
        return;
    }
    MRT_TRUE(seen[0] - row[0] * W < 2 && seen[1] - row[1] * H < 2);
    MRT_TRUE(row[2] * W - seen[2] < 2 && row[3] * H - seen[3] < 2);
}

/* Boxes and masks go where a turned picture does. */
static void rows_follow_turns(void **state)
{
    (void)state;
    static const char *const texts[] = {"rotate(180,filter=nearest),flip",
                                        "padcrop(2),affine(30,translate=0.1,scale=0.8:1.5,shear=20:10,"
                                        "filter=nearest),flip,rotate(20,filter=nearest)"};
    mr_source *src = mrt_field_set("turned", MRT_FINE);
    for (size_t n = 0; n < MRI_ARRAY_COUNT(texts); n++) {
        mr_error err = MR_ERROR_INIT;
        mr_loader_config cfg = mrt_field_settings(mrt_followers, 4);
        mr_loader *l;
        mr_batch b;
        uint32_t boxes = 0;
        cfg.augment = texts[n];
        MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
        while (mr_loader_next(l, &b, MR_FOREVER, &err) == MR_OK) {
            for (uint32_t i = 0; i < b.count; i++) {
                const float *row = (const float *)b.field[0].data + (size_t)i * b.field[0].width * 5;
                mrt_check_mask(&b, i, &b.field[2], 255);
                MRT_EQ(b.field[0].length[i], b.field[1].length[i]);
                for (int32_t k = 0; k < b.field[0].length[i]; k++, row += 5, boxes++)
                    box_is_around(b.pixels + (size_t)i * H * W * 3, b.ids[i], (uint32_t)(row[4] - 0.5f), row,
                                  n == 0 ? 1e-4 : 0.75);
            }
            MRT_OK(mr_loader_release(l, &b, NULL), NULL);
        }
        MRT_TRUE(boxes > 20);
        mr_loader_close(l);
    }
    mr_source_close(src);
}

static void numbers_and_fixed_shapes_have_no_lengths(void **state)
{
    (void)state;
    static const mr_loader_field fields[] = {
        {.name = "number"}, {.name = "score"}, {.name = "grid"}, {.name = "label"}};
    mr_source *src = mrt_field_set("fixed", MRT_FINE);
    mr_error err = MR_ERROR_INIT;
    mr_loader_config cfg = mrt_field_settings(fields, 4);
    mr_loader *l;
    mr_batch b;
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    const mr_loader_info *info = mr_loader_info_of(l);
    MRT_EQ(info->field_count, 4);
    MRT_EQ(info->field[0].dtype, MR_I64);
    MRT_EQ(info->field[1].dtype, MR_F64);
    MRT_EQ(info->field[2].dtype, MR_I16);
    MRT_EQ(info->field[2].ndim, 2);
    MRT_EQ(info->field[2].dim[1], 3);
    MRT_EQ(info->field[2].element_bytes, 12);
    MRT_STR(info->field[2].name, "grid");
    for (int k = 0; k < 4; k++) MRT_TRUE(!info->field[k].varies && info->field[k].most == 1);
    while (mr_loader_next(l, &b, MR_FOREVER, &err) == MR_OK) {
        for (uint32_t i = 0; i < b.count; i++) {
            MRT_EQ(((const int64_t *)b.field[0].data)[i], -5 + (int64_t)b.ids[i]);
            MRT_TRUE(((const double *)b.field[1].data)[i] == (double)b.ids[i] / 8);
            for (uint32_t k = 0; k < 6; k++)
                MRT_EQ(((const int16_t *)b.field[2].data)[6 * i + k], b.ids[i] * 6 + k);
            MRT_EQ(((const int64_t *)b.field[3].data)[i], b.labels[i]);
        }
        for (int k = 0; k < 4; k++) MRT_TRUE(b.field[k].width == 1 && !b.field[k].length);
        MRT_OK(mr_loader_release(l, &b, NULL), NULL);
    }
    mr_loader_close(l);
    mr_source_close(src);
}

static void parts_are_pieces_of_the_batch(void **state)
{
    (void)state;
    mr_source *src = mrt_field_set("parts", MRT_FINE);
    mr_error err = MR_ERROR_INIT;
    mr_loader_config cfg = mrt_field_settings(mrt_followers, 4);
    mr_loader *l;
    mr_batch b;
    cfg.parts = 3;
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    const mr_loader_info *info = mr_loader_info_of(l);
    while (mr_loader_next(l, &b, MR_FOREVER, &err) == MR_OK) {
        for (uint32_t r = 0; r < 3; r++)
            for (uint32_t k = 0; k < 4; k++) {
                const mr_part *p = &b.parts[r];
                const mr_batch_field *f = &p->field[k];
                MRT_EQ(f->width, b.field[k].width);
                MRT_TRUE(f->data == (const uint8_t *)b.field[k].data +
                                        p->first * f->width * info->field[k].element_bytes);
                MRT_TRUE(f->length == (info->field[k].varies ? b.field[k].length + p->first : NULL));
            }
        MRT_OK(mr_loader_release(l, &b, NULL), NULL);
    }
    mr_loader_close(l);
    mr_source_close(src);
}

static void padding_repeats_rows_and_empty_ones_are_padding(void **state)
{
    (void)state;
    static const mr_loader_field fields[] = {{.name = "tokens", .most = 8, .pad = 1}};
    mr_source *src = mrt_field_set("tail", MRT_FINE);
    mr_error err = MR_ERROR_INIT;
    mr_loader_config cfg = mrt_field_settings(fields, 1);
    mr_loader *l;
    mr_batch b;
    cfg.order = MR_ORDER_SEQUENTIAL;
    cfg.tail = MR_TAIL_PAD;
    cfg.epochs = 1;
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    while (mr_loader_next(l, &b, MR_FOREVER, &err) == MR_OK) {
        for (uint32_t i = 0; i < b.count; i++) mrt_check_tokens(&b, i, (b.step * 5 + i) % N, &b.field[0], 1);
        if (b.last) MRT_EQ(b.ids[4], MR_NOWHERE);
        MRT_OK(mr_loader_release(l, &b, NULL), NULL);
    }
    mr_loader_close(l);
    cfg.batch = 1; /* sample 0 has no tokens */
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    MRT_OK(mr_loader_next(l, &b, MR_FOREVER, &err), &err);
    MRT_EQ(b.field[0].width, 1);
    MRT_EQ(b.field[0].length[0], 0);
    MRT_EQ(((const int32_t *)b.field[0].data)[0], 1);
    MRT_OK(mr_loader_release(l, &b, NULL), NULL);
    mr_loader_close(l);
    cfg.width_multiple = 8; /* one width for all batches stays one */
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    for (int k = 0; k < 2; k++) {
        MRT_OK(mr_loader_next(l, &b, MR_FOREVER, &err), &err);
        MRT_EQ(b.field[0].width, 8);
        MRT_OK(mr_loader_release(l, &b, NULL), NULL);
    }
    mr_loader_close(l);
    mr_source_close(src);
}

/* width_multiple may not push a row past its room, nor let a sample past its most */
static void most_is_a_limit_of_samples_not_of_widths(void **state)
{
    (void)state;
    mr_loader_field f = {.name = "tokens", .most = 8, .pad = 3};
    mr_source *src = mrt_field_set("most", MRT_FINE);
    mr_error err = MR_ERROR_INIT;
    mr_loader_config cfg = mrt_field_settings(&f, 1);
    mr_loader *l;
    mr_batch b;
    int rc;
    cfg.width_multiple = 16;
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    MRT_EQ(mr_loader_info_of(l)->field[0].most, 16);
    f.most = 1; /* the loader has a copy */
    while ((rc = mr_loader_next(l, &b, MR_FOREVER, &err)) == MR_OK) {
        MRT_EQ(b.field[0].width, 16);
        for (uint32_t i = 0; i < b.count; i++) mrt_check_tokens(&b, i, b.ids[i], &b.field[0], 3);
        MRT_OK(mr_loader_release(l, &b, NULL), NULL);
    }
    MRT_EQ(rc, MR_EEND);
    mr_loader_close(l);
    f.most = 7;
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    while ((rc = mr_loader_next(l, &b, MR_FOREVER, &err)) == MR_OK)
        MRT_OK(mr_loader_release(l, &b, NULL), NULL);
    MRT_EQ(rc, MR_EBADSAMPLE);
    mr_loader_close(l);
    mr_source_close(src);
}

/* ---- one result, however it is made ---- */

static void digests_do_not_depend_on_how_batches_are_made(void **state)
{
    (void)state;
    mr_source *src = mrt_field_set("same", MRT_FINE);
    mr_loader_config cfg = mrt_field_settings(mrt_followers, 4);
    cfg.augment = "rrc(8),flip";
    cfg.width_multiple = 3;
    const mr_digest expected = mrt_digest(src, &cfg, NULL, NULL);
    static const struct {
        uint32_t workers, prefetch, parts;
        uint64_t resident;
        mr_io io;
    } ways[] = {
        {1, 4, 1, 0, MR_IO_AUTO},       {4, 4, 1, 1 << 20, MR_IO_AUTO}, {4, 4, 3, 0, MR_IO_PREAD},
        {1, 0, 1, 1 << 20, MR_IO_AUTO}, {1, 0, 3, 0, MR_IO_AUTO},       {4, 9, 1, 0, MR_IO_AUTO},
    };
    for (size_t k = 0; k < MRI_ARRAY_COUNT(ways); k++) {
        mr_loader_config c = cfg;
        c.workers = ways[k].workers, c.prefetch = ways[k].prefetch, c.parts = ways[k].parts;
        c.resident_bytes = ways[k].resident, c.io = ways[k].io;
        MRT_TRUE(mrt_same_batches(mrt_digest(src, &c, NULL, NULL), expected));
    }
    mr_loader_config other = cfg;
    other.width_multiple = 4;
    const mr_digest wider = mrt_digest(src, &other, NULL, NULL);
    MRT_TRUE(wider.lo != expected.lo);
    mr_source_close(src);
}

/* Rows that differ in nothing but where they end. */
static void lengths_enter_the_digest(void **state)
{
    (void)state;
    mr_source *src = mrt_field_set("ends", MRT_FINE), *longer = mrt_field_set("longer", MRT_PAD_AT_END);
    mr_loader_config cfg = mrt_field_settings(&mrt_followers[3], 1);
    cfg.order = MR_ORDER_SEQUENTIAL;
    const mr_digest a = mrt_digest(src, &cfg, NULL, NULL), b = mrt_digest(longer, &cfg, NULL, NULL);
    MRT_TRUE(a.lo != b.lo);
    cfg.field_count = 0;
    MRT_TRUE(mrt_same_batches(mrt_digest(src, &cfg, NULL, NULL), mrt_digest(longer, &cfg, NULL, NULL)));
    mr_source_close(src);
    mr_source_close(longer);
}

/* Batches in whatever order they come: each has the rows that it has in order. */
static void a_free_order_brings_the_same_rows(void **state)
{
    (void)state;
    enum { STEPS = 2 * ((N + 4) / 5) };
    mr_source *src = mrt_field_set("free", MRT_FINE);
    mr_loader_config cfg = mrt_field_settings(mrt_followers, 4);
    uint64_t hash[2][STEPS] = {{0}};
    cfg.augment = "rrc(8),flip";
    cfg.workers = 4;
    for (int free_order = 0; free_order < 2; free_order++) {
        mr_error err = MR_ERROR_INIT;
        mr_loader *l;
        mr_batch b;
        cfg.free_order = free_order;
        MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
        const mr_loader_info *info = mr_loader_info_of(l);
        while (mr_loader_next(l, &b, MR_FOREVER, &err) == MR_OK) {
            uint64_t *h = &hash[free_order][b.epoch * (STEPS / 2) + b.step];
            MRT_EQ(*h, 0);
            *h = mri_mix64(b.count);
            for (uint32_t k = 0; k < info->field_count; k++) {
                const uint8_t *data = b.field[k].data;
                for (size_t at = 0; at < (size_t)b.count * b.field[k].width * info->field[k].element_bytes;
                     at++)
                    *h = mri_mix64(*h ^ data[at]);
                for (uint32_t i = 0; b.field[k].length && i < b.count; i++)
                    *h = mri_mix64(*h ^ (uint32_t)b.field[k].length[i]);
            }
            MRT_OK(mr_loader_release(l, &b, NULL), NULL);
        }
        mr_loader_close(l);
    }
    for (size_t k = 0; k < STEPS; k++) MRT_TRUE(hash[0][k] && hash[0][k] == hash[1][k]);
    mr_source_close(src);
}

static void resuming_goes_on_with_the_same_rows(void **state)
{
    (void)state;
    mr_source *src = mrt_field_set("resume", MRT_FINE);
    mr_error err = MR_ERROR_INIT;
    mr_loader_config cfg = mrt_field_settings(mrt_followers, 4);
    mr_loader *l;
    mr_digester *d;
    uint64_t batches, samples;
    const mr_digest expected = mrt_digest(src, &cfg, NULL, NULL);
    MRT_EQ(mr_digester_create(&d), MR_OK);
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    MRT_OK(mr_digester_run(d, l, NULL, 3, &batches, &samples, &err), &err);
    mr_loader_close(l);
    cfg.start_step = 3;
    cfg.workers = 4;
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    MRT_OK(mr_digester_run(d, l, NULL, UINT64_MAX, &batches, &samples, &err), &err);
    mr_loader_close(l);
    MRT_TRUE(mrt_same_batches(mr_digester_result(d), expected));
    mr_digester_destroy(d);
    mr_source_close(src);
}

static void devices_hold_what_the_host_holds(void **state)
{
    (void)state;
    mr_source *src = mrt_field_set("devices", MRT_FINE);
    mr_error err = MR_ERROR_INIT;
    mr_loader_config cfg = mrt_field_settings(mrt_followers, 4);
    const mr_digest expected = mrt_digest(src, &cfg, NULL, NULL);
    MRT_OK(mr_devices_open((mr_device ***)(void *)&cfg.devices, &cfg.device_count, "cpu:3", NULL, &err),
           &err);
    cfg.keep_host = true;
    MRT_TRUE(mrt_same_batches(mrt_digest(src, &cfg, NULL, NULL), expected)); /* compares every part with the
                                                                                host's */
    cfg.prefetch = 0;
    MRT_TRUE(mrt_same_batches(mrt_digest(src, &cfg, NULL, NULL), expected));

    mr_loader *l;
    mr_batch b;
    mr_loader_stats stats;
    uint64_t bytes[3] = {0};
    mr_stream *streams[3];
    cfg.keep_host = false;
    cfg.prefetch = 2;
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    for (uint32_t r = 0; r < 3; r++)
        MRT_OK(mr_stream_create(&streams[r], cfg.devices[r], MR_STREAM_COMPUTE, &err), &err);
    while (mr_loader_next(l, &b, MR_FOREVER, &err) == MR_OK) {
        for (uint32_t k = 0; k < 4; k++)
            MRT_TRUE(!b.field[k].data && b.field[k].width == b.parts[2].field[k].width);
        for (uint32_t r = 0; r < 3; r++) /* only rows of this width cross: pixels and label; 5 floats, a
                                            label; a mask; tokens; lengths */
            bytes[r] += b.parts[r].count * (H * W * 3 + 4 + b.field[0].width * 20 + 4 + b.field[1].width * 8 +
                                            4 + H * W + b.field[3].width * 4 + 4);
        MRT_OK(mr_loader_release(l, &b, streams), NULL);
    }
    mr_loader_stats_read(l, &stats);
    for (uint32_t r = 0; r < 3; r++) MRT_EQ(stats.bytes_copied[r], bytes[r]);
    for (uint32_t r = 0; r < 3; r++) mr_stream_destroy(streams[r]);
    mr_loader_close(l);
    mr_devices_close((mr_device **)(uintptr_t)cfg.devices, cfg.device_count);
    mr_source_close(src);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_those_of_the_samples),
        cmocka_unit_test(rows_follow_turns),
        cmocka_unit_test(numbers_and_fixed_shapes_have_no_lengths),
        cmocka_unit_test(parts_are_pieces_of_the_batch),
        cmocka_unit_test(padding_repeats_rows_and_empty_ones_are_padding),
        cmocka_unit_test(most_is_a_limit_of_samples_not_of_widths),
        cmocka_unit_test(digests_do_not_depend_on_how_batches_are_made),
        cmocka_unit_test(lengths_enter_the_digest),
        cmocka_unit_test(a_free_order_brings_the_same_rows),
        cmocka_unit_test(resuming_goes_on_with_the_same_rows),
        cmocka_unit_test(devices_hold_what_the_host_holds),
    };
    return mrt_run(tests);
}
