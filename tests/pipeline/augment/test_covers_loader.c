/* Loaders with rrc(..,covers=F): the source of the boxes, that no setting changes a crop, the errors, and the
 * effect of a bad box. */
#include <math.h>

#include "base/util.h"
#include "tests/pipeline/pictures.h"
#include "tests/pipeline/sets.h"

enum { N = 40, NAN_AT = 13 };

static const mr_field schema[] = {{.name = "image", .type = MR_TYPE_PNG},
                                  {.name = "label", .type = MR_TYPE_INT},
                                  {.name = "boxes", .type = MR_TYPE_TENSOR, .dtype = MR_F32},
                                  {.name = "exact", .type = MR_TYPE_TENSOR, .dtype = MR_F64}};
enum { IMAGE, LABEL, BOXES, EXACT, FIELDS };

/* Pictures of 64 x 64 with 0 to 3 boxes in eighths; sample i has i % 4. */
static mr_source *make_set(const char *name, uint32_t fields, bool with_nan)
{
    mr_writer *w = mrt_writer(name, schema, fields, 3);
    mr_error err = MR_ERROR_INIT;
    for (uint64_t i = 0; i < N; i++) {
        float parts[12];
        double exact[12];
        void *png;
        size_t bytes;
        uint8_t *pixels = mrt_picture(64, 64, 3, i);
        const mr_image image = {64, 64, 3, pixels};
        MRT_OK(mr_image_encode_png(&image, &png, &bytes, &err), &err);
        for (uint32_t k = 0; k < 3; k++) {
            const uint32_t x = (uint32_t)(i * 5 + k * 3) % 7, y = (uint32_t)(i * 3 + k) % 7,
                           b[4] = {x, y, x + 1, y + 1};
            for (int c = 0; c < 4; c++)
                parts[4 * k + (uint32_t)c] = (float)b[c] / 8, exact[4 * k + (uint32_t)c] = b[c] * 8;
        }
        if (with_nan && i == NAN_AT) parts[0] = NAN;
        const uint64_t n = i % 4;
        const mr_value values[FIELDS] = {[IMAGE] = {.type = MR_TYPE_PNG, .data = png, .bytes = bytes},
                                         [LABEL] = {.type = MR_TYPE_INT, .i = (int64_t)(i % 3)},
                                         [BOXES] = {.type = MR_TYPE_TENSOR,
                                                    .dtype = MR_F32,
                                                    .ndim = 2,
                                                    .dim = {n, 4},
                                                    .data = parts,
                                                    .bytes = (size_t)n * 16},
                                         [EXACT] = {.type = MR_TYPE_TENSOR,
                                                    .dtype = MR_F64,
                                                    .ndim = 2,
                                                    .dim = {n, 4},
                                                    .data = exact,
                                                    .bytes = (size_t)n * 32}};
        MRT_OK(mr_writer_append(w, i, values, &err), &err);
        free(png);
        free(pixels);
    }
    return mrt_written(w, name);
}

static mr_loader_config settings(const mr_loader_field *fields, uint32_t count)
{
    return mrt_training(7, 3, "rrc(24,scale=0.08:0.4,covers=0.7),flip", fields, count);
}

static mr_digest resumed(const mr_source *src, mr_loader_config cfg)
{
    mr_error err = MR_ERROR_INIT;
    mr_digester *d;
    uint64_t batches, samples;
    MRT_EQ(mr_digester_create(&d), MR_OK);
    for (int half = 0; half < 2; half++) {
        mr_loader *l;
        cfg.start_epoch = half;
        cfg.start_step = half ? 2 : 0;
        cfg.prefetch = half ? 0 : 3;
        MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
        MRT_OK(mr_digester_run(d, l, NULL, half ? UINT64_MAX : 8, &batches, &samples, &err), &err);
        mr_loader_close(l);
    }
    const mr_digest result = mr_digester_result(d);
    mr_digester_destroy(d);
    return result;
}

static void settings_change_no_crop(void **state)
{
    (void)state;
    mr_source *src = make_set("plain", FIELDS, false);
    mr_loader_config cfg = settings(NULL, 0);
    const mr_digest expected = mrt_digest(src, &cfg, NULL, NULL);
    static const struct {
        uint32_t workers, prefetch, parts;
        uint64_t resident;
        mr_io io;
    } ways[] = {{1, 4, 1, 1 << 20, MR_IO_AUTO},
                {5, 2, 1, 0, MR_IO_AUTO},
                {1, 0, 1, 0, MR_IO_PREAD},
                {3, 4, 3, 1 << 20, MR_IO_PREAD}};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(ways); k++) {
        cfg.workers = ways[k].workers;
        cfg.prefetch = ways[k].prefetch;
        cfg.parts = ways[k].parts;
        cfg.resident_bytes = ways[k].resident;
        cfg.io = ways[k].io;
        MRT_TRUE(mrt_same_batches(mrt_digest(src, &cfg, NULL, NULL), expected));
    }
    MRT_TRUE(mrt_same_batches(resumed(src, settings(NULL, 0)), expected));
    cfg = settings(NULL, 0);
    cfg.augment = "rrc(24,scale=0.08:0.4),flip";
    MRT_TRUE(!mrt_same_batches(mrt_digest(src, &cfg, NULL, NULL), expected));
    mr_source_close(src);
}

/* Samples without boxes are as they would be without covers, the others not; and the rule says where.
 * Delivered or not, in parts or in pixels. */
static void boxes_come_from_the_field(void **state)
{
    (void)state;
    static const mr_loader_field sets[][2] = {{{.name = "boxes", .role = MR_ROLE_BOXES}},
                                              {{.name = "exact", .role = MR_ROLE_BOXES, .in_pixels = true}},
                                              {{.name = "label"}, {.name = "boxes", .role = MR_ROLE_BOXES}}};
    static const uint32_t counts[] = {1, 1, 2};
    mr_source *src = make_set("fields", FIELDS, false);
    for (int k = -1; k < 3; k++) {
        mr_loader_config with = settings(k < 0 ? NULL : sets[k], k < 0 ? 0 : counts[k]),
                         without = settings(NULL, 0), plain = settings(NULL, 0);
        mr_error err = MR_ERROR_INIT;
        mr_loader *l[3];
        mr_batch b[3];
        uint32_t changed = 0, kept = 0;
        without.augment = "rrc(24,scale=0.08:0.4),flip";
        MRT_OK(mr_loader_open(&l[0], src, &with, &err), &err);
        MRT_OK(mr_loader_open(&l[1], src, &without, &err), &err);
        MRT_OK(mr_loader_open(&l[2], src, &plain, &err), &err);
        MRT_STR(mr_loader_info_of(l[0])->augment, "rrc(24,scale=0.08:0.4,ratio=3/4:4/3,covers=0.7),flip");
        while (mr_loader_next(l[0], &b[0], MR_FOREVER, &err) == MR_OK) {
            MRT_OK(mr_loader_next(l[1], &b[1], MR_FOREVER, &err), &err);
            MRT_OK(mr_loader_next(l[2], &b[2], MR_FOREVER, &err), &err);
            const size_t each = (size_t)24 * 24 * 3;
            MRT_TRUE(memcmp(b[0].pixels, b[2].pixels, b[0].count * each) == 0);
            for (uint32_t i = 0; i < b[0].count; i++) {
                const bool same = memcmp(b[0].pixels + i * each, b[1].pixels + i * each, each) == 0;
                if (b[0].ids[i] % 4 == 0) MRT_TRUE(same);
                else changed += !same, kept += same;
            }
            for (int n = 0; n < 3; n++) mr_loader_release(l[n], &b[n], NULL);
        }
        MRT_TRUE(changed > kept && kept > 0); /* boxes of an eighth, crops of up to two fifths */
        for (int n = 0; n < 3; n++) mr_loader_close(l[n]);
    }
    mr_source_close(src);
}

static void a_tfrecord_gives_the_same_crops(void **state)
{
    (void)state;
    mr_source *src = make_set("leaving", BOXES + 1, false);
    mr_error err = MR_ERROR_INIT;
    mr_convert_config cfg;
    mr_convert_result result;
    mr_convert_defaults(&cfg);
    cfg.to = MR_TO_TFRECORD;
    cfg.force = true;
    MRT_OK(mr_convert(src, mrt_path("set.tfrecord"), &cfg, &result, &err), &err);
    mr_source *records = mrt_source(mrt_path("set.tfrecord"));
    const mr_loader_config loader = settings(NULL, 0);
    MRT_TRUE(
        mrt_same_batches(mrt_digest(src, &loader, NULL, NULL), mrt_digest(records, &loader, NULL, NULL)));
    mr_source_close(records);
    mr_source_close(src);
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    mr_source *src = make_set("refused", FIELDS, false), *bare = make_set("bare", BOXES, false);
    mr_loader_config cfg = settings(NULL, 0);
    mrt_refused(bare, &cfg, MR_EINVAL, "augment covers= needs boxes: no field of ");
    mrt_refused(bare, &cfg, MR_EINVAL, "there are: image, label");
    const mr_loader_field label = {.name = "label"};
    cfg = settings(&label, 1);
    mrt_refused(bare, &cfg, MR_EINVAL, "none is called boxes");
    cfg = settings(NULL, 0);
    cfg.cache = MR_CACHE_MEMORY;
    cfg.cache_bytes = 1 << 20;
    mrt_refused(src, &cfg, MR_EINVAL, "leave out --cache, or covers= in the augmentation");

    cfg.training = false; /* where nothing is drawn nobody asks for boxes */
    const mr_digest expected = mrt_digest(src, &cfg, NULL, NULL);
    cfg.cache = MR_CACHE_OFF;
    MRT_TRUE(mrt_same_batches(mrt_digest(bare, &cfg, NULL, NULL), expected));
    cfg.augment = "rrc(24,scale=0.08:0.4),flip";
    MRT_TRUE(mrt_same_batches(mrt_digest(bare, &cfg, NULL, NULL), expected));
    mr_source_close(src);
    mr_source_close(bare);
}

typedef struct reported {
    uint32_t count;
    mr_error what;
} reported;

static void tell(void *context, const mr_error *what, uint64_t substitute)
{
    reported *t = context;
    (void)substitute;
    t->count++;
    t->what = *what;
}

static void bad_boxes_make_bad_samples(void **state)
{
    (void)state;
    static const mr_loader_field delivered = {.name = "boxes", .role = MR_ROLE_BOXES};
    mr_source *src = make_set("nan", FIELDS, true);
    for (uint32_t fields = 0; fields < 2; fields++) {
        mr_loader_config cfg = settings(&delivered, fields);
        mr_error err = MR_ERROR_INIT;
        mr_loader *l;
        mr_batch b;
        reported t = {0};
        int rc;
        uint64_t blanks = 0;
        cfg.on_bad = tell;
        cfg.bad_context = &t;
        MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
        while ((rc = mr_loader_next(l, &b, MR_FOREVER, &err)) == MR_OK) mr_loader_release(l, &b, NULL);
        MRT_EQ(rc, MR_EBADSAMPLE);
        MRT_EQ(err.sample, NAN_AT);
        MRT_HAS(err.text, "field boxes: box 0 is x0 nan");
        mr_loader_close(l);

        t.count = 0;
        cfg.bad = MR_BAD_SKIP;
        MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
        while ((rc = mr_loader_next(l, &b, MR_FOREVER, &err)) == MR_OK) {
            for (uint32_t i = 0; i < b.count; i++) blanks += b.ids[i] == MR_NOWHERE;
            mr_loader_release(l, &b, NULL);
        }
        MRT_EQ(rc, MR_EEND);
        MRT_EQ(blanks, 3);
        MRT_EQ(t.count, 1);
        mr_loader_close(l);
        if (fields) continue;
        cfg.augment = "rrc(24),flip"; /* nobody looks at them */
        cfg.bad = MR_BAD_STOP;
        mrt_digest(src, &cfg, NULL, NULL);
    }
    mr_source_close(src);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_change_no_crop),         cmocka_unit_test(boxes_come_from_the_field),
        cmocka_unit_test(a_tfrecord_gives_the_same_crops), cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(bad_boxes_make_bad_samples),
    };
    return mrt_run(tests);
}
