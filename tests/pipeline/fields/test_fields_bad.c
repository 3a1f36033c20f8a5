/* Fields that cannot be delivered: damaged values, settings that are refused, memory that is not there. */
#include "base/util.h"
#include "tests/pipeline/fields/field_sets.h"
#include "tests/pipeline/sets.h"

enum { N = MRT_FIELD_SAMPLES, W = MRT_FIELD_WIDE, H = MRT_FIELD_HIGH };

/* ---- damaged values ---- */

static const struct {
    mrt_twist t;
    const char *reported, *field;
} bads[] = {
    {MRT_LONG_LIST, "field tokens: expected at most 10 elements, found 40", "tokens:most=40"},
    {MRT_MANY_BOXES, "expected at most 1 boxes, found 2", "boxes:most=2"},
    {MRT_NAN_BOX, "field boxes: ", ""},
    {MRT_FEW_VALUES, "field box_labels: expected 1 values of i64, one for each box; found 0", ""},
    {MRT_SMALL_MASK, "field mask: expected a mask of 12 x 10 pixels, as its picture is stored; found 12 x 9",
     ""},
    {MRT_JPEG_MASK, "field mask: expected a mask as PNG, found a JPEG", ""},
    {MRT_COLOUR_MASK,
     "field mask: PNG: expected one number of at most 8 bits for each pixel, gray or of a "
     "palette; found true colour",
     ""},
    {MRT_FLAT_LIST, "field tokens: expected a list, of one dimension", ""},
};

typedef struct reported {
    uint32_t count;
    uint64_t sample;
    char text[800], file[512];
} reported;

static void on_bad(void *context, const mr_error *what, uint64_t substitute)
{
    reported *t = context;
    (void)substitute;
    t->count++;
    t->sample = what->sample;
    snprintf(t->text, sizeof t->text, "%s", what->text);
    snprintf(t->file, sizeof t->file, "%s", what->file);
}

static void damaged_rows_stop_or_are_replaced_or_skipped(void **state)
{
    (void)state;
    for (size_t k = 0; k < MRI_ARRAY_COUNT(bads); k++) {
        mr_source *src = mrt_field_set("bad", bads[k].t);
        mr_loader_field fields[4];
        memcpy(fields, mrt_followers, sizeof fields);
        if (bads[k].t == MRT_MANY_BOXES) fields[0].most = 1;
        mr_error err = MR_ERROR_INIT;
        mr_loader_config cfg = mrt_field_settings(fields, 4);
        reported t = {0};
        mr_loader *l;
        mr_batch b;
        int rc;
        if (bads[k].t == MRT_MANY_BOXES) cfg.max_bad = N; /* others have more than one, too */
        cfg.on_bad = on_bad;
        cfg.bad_context = &t;
        cfg.order = MR_ORDER_SEQUENTIAL;
        cfg.epochs = 1;
        const uint64_t expected = bads[k].t == MRT_MANY_BOXES ? 2 : MRT_TWISTED;
        MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
        while ((rc = mr_loader_next(l, &b, MR_FOREVER, &err)) == MR_OK)
            MRT_OK(mr_loader_release(l, &b, NULL), NULL);
        MRT_EQ(rc, MR_EBADSAMPLE);
        MRT_HAS(err.text, bads[k].reported);
        MRT_HAS(err.text, bads[k].field);
        MRT_HAS(err.file, "bad.mrec");
        mr_loader_close(l);

        for (int skip = 0; skip < 2; skip++) {
            memset(&t, 0, sizeof t);
            cfg.bad = skip ? MR_BAD_SKIP : MR_BAD_REPLACE;
            MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
            for (uint64_t at = 0; (rc = mr_loader_next(l, &b, MR_FOREVER, &err)) == MR_OK; at += b.count) {
                for (uint32_t i = 0; i < b.count; i++) {
                    if (b.ids[i] != MR_NOWHERE) {
                        mrt_check_boxes(&b, i, &b.field[0], &b.field[1]);
                        mrt_check_mask(&b, i, &b.field[2], 255);
                        mrt_check_tokens(&b, i, b.ids[i], &b.field[3], 9);
                        continue;
                    }
                    MRT_TRUE(skip && (bads[k].t == MRT_MANY_BOXES || at + i == expected));
                    MRT_TRUE(b.labels[i] == -1 && b.field[0].length[i] == 0 && b.field[1].length[i] == 0 &&
                             b.field[3].length[i] == 0);
                    for (uint32_t m = 0; m < H * W; m++)
                        MRT_EQ(((const uint8_t *)b.field[2].data)[(size_t)i * H * W + m], 255);
                    for (uint32_t m = 0; m < b.field[3].width; m++)
                        MRT_EQ(((const int32_t *)b.field[3].data)[i * b.field[3].width + m], 9);
                }
                MRT_OK(mr_loader_release(l, &b, NULL), NULL);
            }
            MRT_EQ(rc, MR_EEND);
            MRT_TRUE(t.count >= 1);
            if (bads[k].t != MRT_MANY_BOXES) {
                MRT_EQ(t.count, 1);
                MRT_EQ(t.sample, MRT_TWISTED);
                MRT_HAS(t.text, bads[k].reported);
                MRT_HAS(t.file, "bad.mrec");
            }
            mr_loader_close(l);
        }
        mr_source_close(src);
    }
}

/* The sample inspected before the run may be damaged, too: another sample then gives the columns of boxes. */
static void a_damaged_first_sample_tells_no_columns(void **state)
{
    (void)state;
    mr_source *src = mrt_field_set("first", MRT_FINE);
    mr_extent e;
    mr_error err = MR_ERROR_INIT;
    size_t bytes;
    MRT_OK(mr_source_extent(src, 0, &e, &err), &err);
    mr_source_close(src);
    uint8_t *file = mrt_read_file(mrt_path("first.mrec"), &bytes);
    file[e.offset + e.bytes / 2] ^= 1;
    mrt_write_file(mrt_path("first.mrec"), file, bytes);
    free(file);
    src = mrt_source(mrt_path("first.mrec"));
    mr_loader_config cfg = mrt_field_settings(mrt_followers, 4);
    mr_loader *l;
    MRT_EQ(mr_loader_open(&l, src, &cfg, &err), MR_ECHECKSUM);
    MRT_EQ(err.sample, 0);
    cfg.bad = MR_BAD_SKIP;
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    MRT_EQ(mr_loader_info_of(l)->field[0].dim[0], 5);
    mr_loader_close(l);
    mr_source_close(src);
}

/* ---- settings ---- */

static void settings_that_cannot_be_are_refused(void **state)
{
    (void)state;
    mr_source *src = mrt_field_set("settings", MRT_FINE);
    mrt_refused_field(src, (mr_loader_field){.name = "nothing"}, MR_EINVAL,
                      "there is no field 'nothing' in the data; there are: image, label, boxes, box_labels");
    mrt_refused_field(src, (mr_loader_field){.name = NULL}, MR_EINVAL, "there are: image");
    mrt_refused_field(src, (mr_loader_field){.name = "image"}, MR_EINVAL,
                      "field image as plain: expected int, float, text, bytes or tensor, found pixels");
    mrt_refused_field(
        src, (mr_loader_field){.name = "tokens", .role = MR_ROLE_BOXES}, MR_EINVAL,
        "field tokens as boxes: expected a tensor of n x 4 or more f32 or f64, found tensor of i32");
    mrt_refused_field(src, (mr_loader_field){.name = "grid", .role = MR_ROLE_MASK}, MR_EINVAL,
                      "found tensor of i16[2][3]");
    mrt_refused_field(src, (mr_loader_field){.name = "box_labels", .role = MR_ROLE_BOX_VALUES}, MR_EINVAL,
                      "name the boxes that they belong to before it");
    mrt_refused_field(src, (mr_loader_field){.name = "tokens", .role = (mr_role)9}, MR_EINVAL, "role 9");
    mrt_refused_field(src, (mr_loader_field){.name = "tokens", .in_pixels = true}, MR_EINVAL,
                      "only boxes can be given in pixels");
    mrt_refused_field(src, (mr_loader_field){.name = "tokens", .pad = 0.5}, MR_EINVAL,
                      "padding with 0.5 is not possible, its elements are i32");
    mrt_refused_field(src, (mr_loader_field){.name = "tokens", .pad = 2147483648.0}, MR_EINVAL, "padding");
    mrt_refused_field(src, (mr_loader_field){.name = "mask", .role = MR_ROLE_MASK, .pad = 256}, MR_EINVAL,
                      "padding with 256");
    mrt_refused_field(src, (mr_loader_field){.name = "mask", .role = MR_ROLE_MASK, .pad = -1}, MR_EINVAL,
                      "padding with -1");
    mrt_refused_field(src, (mr_loader_field){.name = "tokens", .most = UINT32_MAX}, MR_ELIMIT,
                      "lower its most");
    mrt_refused_field(src, (mr_loader_field){.name = "tokens", .most = INT32_MAX}, MR_ELIMIT,
                      "of them fields");

    mr_loader_config cfg = mrt_field_settings(mrt_followers, 4);
    cfg.cache = MR_CACHE_MEMORY;
    cfg.cache_bytes = 1 << 20;
    mrt_refused(src, &cfg, MR_EINVAL, "leave out --cache or --fields");
    cfg = mrt_field_settings(mrt_followers, 5);
    mrt_refused(src, &cfg, MR_EINVAL, "5 fields: expected at most 4");
    cfg = mrt_field_settings(mrt_followers, 4);
    cfg.width_multiple = 0;
    mrt_refused(src, &cfg, MR_EINVAL, "mr_loader_config.width_multiple is 0: expected 1 to 1048576");
    mr_source_close(src);
}

/* ---- memory ---- */

static void every_failed_allocation_is_reported(void **state)
{
    (void)state;
    mr_source *src = mrt_field_set("alloc", MRT_FINE);
    mr_loader_config cfg = mrt_field_settings(mrt_followers, 4);
    mr_error err;
    long failed = 0;
    cfg.prefetch = 0;
    cfg.epochs = 1;
    for (long n = 0;; n++) {
        mr_loader *l = (mr_loader *)&cfg;
        mr_batch b;
        err = (mr_error)MR_ERROR_INIT;
        mrt_fail_alloc_at(n);
        int rc = mr_loader_open(&l, src, &cfg, &err);
        const bool opened = rc == MR_OK;
        while (rc == MR_OK && (rc = mr_loader_next(l, &b, MR_FOREVER, &err)) == MR_OK)
            mr_loader_release(l, &b, NULL);
        const int hit = mrt_alloc_failed();
        mrt_fail_alloc_at(-1);
        if (opened) mr_loader_close(l);
        else MRT_TRUE(l == NULL);
        if (!hit) break;
        if (rc == MR_EEND) continue; /* io_uring's, which gives way to pread */
        failed++;
        MRT_EQ(rc, MR_ENOMEM);
    }
    MRT_TRUE(failed > 10);
    mr_source_close(src);
}

static void the_budget_counts_rows(void **state)
{
    (void)state;
    mr_loader_field f = {.name = "tokens", .most = 1000};
    mr_source *src = mrt_field_set("budget", MRT_FINE);
    mr_loader_config cfg = mrt_field_settings(&f, 1);
    mr_error err = MR_ERROR_INIT;
    mr_loader *l;
    uint64_t bytes[2];
    cfg.resident_bytes = 0; /* would give way, as defaults would */
    cfg.prefetch = 3, cfg.workers = 2, cfg.depth = 16;
    for (int k = 0; k < 2; k++) {
        MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
        bytes[k] = mr_loader_info_of(l)->memory_bytes;
        mr_loader_close(l);
        f.most = 11000;
    }
    MRT_TRUE(bytes[1] - bytes[0] >= 4u * cfg.batch * 9900 * 4); /* four slots, each rounded to where devices
                                                                   like memory to begin */
    cfg.memory_bytes = bytes[1] - 1000;
    mrt_refused(src, &cfg, MR_ELIMIT, "of them fields");
    mr_source_close(src);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damaged_rows_stop_or_are_replaced_or_skipped),
        cmocka_unit_test(a_damaged_first_sample_tells_no_columns),
        cmocka_unit_test(settings_that_cannot_be_are_refused),
        cmocka_unit_test(every_failed_allocation_is_reported),
        cmocka_unit_test(the_budget_counts_rows),
    };
    return mrt_run(tests);
}
