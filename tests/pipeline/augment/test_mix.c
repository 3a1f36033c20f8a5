/* mixup and cutmix: how much is drawn, what becomes of two pictures, which samples of a batch are pairs, and
 * that nothing but data, seed and epoch decides any of it. */
#include <math.h>

#include "base/util.h"
#include "mrt.h"
#include "pipeline/augment/op.h"
#include "pipeline/pixels/colour.h"
#include "tests/pipeline/sets.h"

static mr_augment *augment_of(const char *spec)
{
    mr_augment *a;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mr_augment_create(&a, spec, true, &err), &err);
    MRT_TRUE(mri_augment_mixes(a));
    return a;
}

/* ---- two pictures ---- */

static uint8_t blended(uint8_t own, uint8_t other, uint32_t share)
{
    return (uint8_t)floor(((256.0 - share) * own + (double)share * other) / 256 + 0.5);
}

static void blends_are_right(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 7, 16, 33, 64, 257};
    uint8_t a[257], b[257], a_was[257], b_was[257];
    for (uint32_t share = 0; share <= 256; share++)
        for (size_t s = 0; s < MRI_ARRAY_COUNT(sizes); s++) {
            for (size_t k = 0; k < 257; k++) {
                a[k] = a_was[k] = (uint8_t)(k % 3 ? mri_mix64(k + share) : 255);
                b[k] = b_was[k] = (uint8_t)(k % 3 == 1 ? 255 : mri_mix64(k * 7 + share));
            }
            mri_blend(a, b, sizes[s], share);
            for (size_t k = 0; k < 257; k++) {
                const uint32_t of = k < sizes[s] ? share : 0;
                MRT_EQ(a[k], blended(a_was[k], b_was[k], of));
                MRT_EQ(b[k], blended(b_was[k], a_was[k], of));
            }
        }
}

/* ---- how much ---- */

static double arcsine(double t) { return 2 / acos(-1.0) * asin(sqrt(t)); }
static double uniform(double t) { return t; }
static double two(double t) { return t * t * (3 - 2 * t); }
static double three(double t) { return t * t * t * (10 - 15 * t + 6 * t * t); }

static const struct {
    const char *spec;
    double alpha, (*below)(double); /* distributions with a formula */
} known[] = {
    {"mixup(0.5)", 0.5, arcsine}, {"mixup(1)", 1, uniform}, {"cutmix(2)", 2, two}, {"mixup(3)", 3, three}};

static void tables_are_right(void **state)
{
    (void)state;
    for (size_t i = 0; i < MRI_ARRAY_COUNT(known); i++) {
        mr_augment *a = augment_of(known[i].spec);
        for (int k = 0; k < 256; k++)
            MRT_TRUE(fabs((double)a->mix[0].words[k] / 4294967296.0 - known[i].below((k + 0.5) / 256)) <
                     1e-9);
        mr_augment_destroy(a);
    }
    static const char *const ends[] = {"mixup(0.01)", "mixup(10)", "mixup(0.3),cutmix(7.5)"};
    for (size_t i = 0; i < MRI_ARRAY_COUNT(ends); i++) {
        mr_augment *a = augment_of(ends[i]);
        for (uint32_t m = 0; m < a->mix_count; m++)
            for (int k = 0; k < 256; k++) {
                const uint64_t *words = a->mix[m].words;
                MRT_TRUE(words[k] <= (uint64_t)1 << 32 && (k == 0 || words[k] >= words[k - 1]));
                MRT_EQ(words[k] + words[255 - k], (uint64_t)1 << 32);
            }
        mr_augment_destroy(a);
    }
}

/* The largest distance of the drawn distribution from the one it is drawn from (Kolmogorov, Smirnov); beyond
 * 1.95 / sqrt(draws) it would be one in a thousand. */
static void draws_follow_the_distribution(void **state)
{
    (void)state;
    enum { DRAWS = 20000 };
    for (size_t i = 0; i < MRI_ARRAY_COUNT(known); i++) {
        mr_augment *a = augment_of(known[i].spec);
        if (strncmp(known[i].spec, "mixup", 5) == 0) {
            uint32_t seen[257] = {0}, sum = 0;
            for (uint64_t k = 0; k < DRAWS; k++) {
                uint8_t x = 0, y = 255;
                const mri_mixed m = {&x, &y, 1, 1, 1};
                const float share = mri_augment_mix(a, (mri_sample_key){k % 5, k % 7, k}, &m);
                MRT_TRUE(share * 256 == floorf(share * 256) && share >= 0 && share <= 1);
                seen[(uint32_t)(share * 256)]++;
                MRT_EQ(x, blended(0, 255, (uint32_t)(share * 256)));
            }
            for (int k = 0; k < 256; k++) {
                sum += seen[k];
                MRT_TRUE(fabs((double)sum / DRAWS - known[i].below((k + 0.5) / 256)) < 1.95 / sqrt(DRAWS));
            }
        }
        mr_augment_destroy(a);
    }
}

/* ---- boxes ---- */

/* Two pictures of one colour each exchange one box, whose area is the share. */
static double check_box(const mr_augment *a, uint64_t sample, uint32_t h, uint32_t w, uint32_t channels)
{
    uint8_t x[64 * 64 * 3], y[64 * 64 * 3];
    const size_t bytes = (size_t)h * w * channels;
    memset(x, 10, sizeof x);
    memset(y, 200, sizeof y);
    const mri_mixed m = {x, y, h, w, channels};
    const float share = mri_augment_mix(a, (mri_sample_key){3, 1, sample}, &m);
    uint32_t top = h, left = w, bottom = 0, right = 0, area = 0;
    for (uint32_t r = 0; r < h; r++)
        for (uint32_t c = 0; c < w; c++) {
            const uint8_t *p = x + ((size_t)r * w + c) * channels, *q = y + ((size_t)r * w + c) * channels;
            for (uint32_t k = 0; k < channels; k++) MRT_TRUE(p[k] == p[0] && p[k] + q[k] == 210);
            if (p[0] == 10) continue;
            area++;
            top = r < top ? r : top, bottom = r + 1;
            left = c < left ? c : left, right = c + 1 > right ? c + 1 : right;
        }
    if (area) MRT_EQ(area, (bottom - top) * (right - left));
    MRT_TRUE(fabs((double)share - (double)area / ((double)h * w)) < 1e-7);
    for (size_t k = bytes; k < sizeof x; k++) MRT_TRUE(x[k] == 10 && y[k] == 200);
    return (double)share;
}

static void boxes_are_exchanged(void **state)
{
    (void)state;
    static const uint32_t sides[][3] = {{1, 1, 3}, {1, 7, 1}, {33, 17, 3}, {64, 64, 3}};
    enum { DRAWS = 2000 };
    for (size_t i = 0; i < MRI_ARRAY_COUNT(sides); i++) {
        mr_augment *a = augment_of("cutmix(1)");
        double sum = 0;
        for (uint64_t k = 0; k < DRAWS; k++) sum += check_box(a, k, sides[i][0], sides[i][1], sides[i][2]);
        /* a box of share s has a mean area of less: some of it lies outside of the picture */
        if (i == 3) MRT_TRUE(sum / DRAWS > 0.3 && sum / DRAWS < 0.4);
        if (i == 0) MRT_TRUE(sum == 0); /* half of one pixel rounds to 0 */
        mr_augment_destroy(a);
    }
}

static void of_two_a_pair_draws_one(void **state)
{
    (void)state;
    enum { DRAWS = 4000 };
    mr_augment *a = augment_of("mixup(1,p=0.5),cutmix(1,p=1/4)");
    uint32_t blends = 0, boxes = 0;
    for (uint64_t k = 0; k < DRAWS; k++) {
        uint8_t x[256], y[256];
        memset(x, 0, sizeof x);
        memset(y, 255, sizeof y);
        const mri_mixed m = {x, y, 16, 16, 1};
        mri_augment_mix(a, (mri_sample_key){9, 0, k}, &m);
        bool blend = false, box = false;
        for (int i = 0; i < 256; i++) {
            blend |= x[i] > 0 && x[i] < 255;
            box |= x[i] == 255;
        }
        blends += blend;
        boxes += !blend && box;
    }
    /* a quarter of all, an eighth; less the few that came to nothing, and three standard deviations */
    MRT_TRUE(blends > 0.225 * DRAWS && blends < 0.275 * DRAWS);
    MRT_TRUE(boxes > 0.100 * DRAWS && boxes < 0.145 * DRAWS);
    mr_augment_destroy(a);
}

/* ---- the language ---- */

static void text_is(const char *spec, const char *expected)
{
    for (int training = 0; training < 2; training++) {
        mr_augment *a;
        mr_error err = MR_ERROR_INIT;
        MRT_OK(mr_augment_create(&a, spec, training, &err), &err);
        MRT_STR(mr_augment_text(a), expected);
        MRT_EQ(mri_augment_mixes(a), training);
        mr_augment_destroy(a);
    }
}

static void is_refused(const char *spec, const char *what)
{
    for (int training = 0; training < 2; training++) {
        mr_augment *a;
        mr_error err = MR_ERROR_INIT;
        MRT_EQ(mr_augment_create(&a, spec, training, &err), MR_EINVAL);
        MRT_HAS(err.text, what);
    }
}

static void specifications(void **state)
{
    (void)state;
    text_is("flip,mixup(.20)", "flip,mixup(0.2)");
    text_is("mixup(0.2),cutmix( 1 , p=1/2 ),normalise(none)", "mixup(0.2),cutmix(1,p=1/2),normalise(none)");
    text_is("normalise(imagenet),cutmix(10)", "normalise(imagenet),cutmix(10)");
    is_refused("mixup", "expected mixup(ALPHA[,p=P])");
    is_refused("mixup(0)", "expected 0.01 to 10");
    is_refused("cutmix(10.5)", "expected 0.01 to 10");
    is_refused("mixup(1,p=1.5)", "expected a probability, 0 to 1");
    is_refused("mixup(1,q=1)", "expected p=: mixup(ALPHA[,p=P])");
    is_refused("mixup(1),flip", "character 10, \"flip\": mixup and cutmix come after everything");
    is_refused("cutmix(1),brightness(3)", "come after everything that is done to one picture");
    is_refused("mixup(1),resize(3x3)", "come after everything that is done to one picture");
    is_refused("mixup(1),cutmix(1),mixup(2)", "it is there already");
    is_refused("mixup(1),standardise", "use normalise");
    is_refused("standardise,cutmix(1)", "use normalise");
}

/* ---- batches ---- */

static mr_loader_config mixing(uint32_t batch, const char *augment)
{
    mr_loader_config cfg = mrt_training(batch, 2, augment, NULL, 0);
    cfg.tail = MR_TAIL_KEEP;
    return cfg;
}

typedef struct batches {
    uint32_t mixed, alone; /* samples */
} batches;

/* Every pair of a batch against the pictures that a loader gives which does not mix. */
static void check_pairs(const mr_batch *b, const mr_batch *plain, size_t bytes, batches *seen)
{
    MRT_TRUE(b->count == plain->count && b->counted == plain->counted && !plain->labels2 && !plain->share2);
    MRT_EQ(memcmp(b->labels, plain->labels, b->count * sizeof *b->labels), 0);
    MRT_EQ(memcmp(b->ids, plain->ids, b->count * sizeof *b->ids), 0);
    for (uint32_t i = 0; i < b->count; i++) {
        const uint32_t other = i ^ 1;
        const uint32_t share = (uint32_t)(b->share2[i] * 256);
        if (other >= b->count || b->labels[i] < 0 || b->labels[other] < 0) {
            MRT_TRUE(b->labels2[i] == -1 && b->share2[i] == 0);
            MRT_EQ(memcmp(b->pixels + i * bytes, plain->pixels + i * bytes, bytes), 0);
            seen->alone++;
            continue;
        }
        MRT_EQ(b->labels2[i], share ? b->labels[other] : -1);
        MRT_TRUE(b->share2[i] == b->share2[other]);
        for (size_t k = 0; k < bytes; k++)
            MRT_EQ(b->pixels[i * bytes + k],
                   blended(plain->pixels[i * bytes + k], plain->pixels[other * bytes + k], share));
        seen->mixed++;
    }
}

static batches compare(const mr_source *src, mr_loader_config cfg, const char *without)
{
    mr_error err = MR_ERROR_INIT;
    mr_loader *l, *plain;
    mr_batch a, b;
    batches seen = {0, 0};
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    cfg.augment = without;
    MRT_OK(mr_loader_open(&plain, src, &cfg, &err), &err);
    const mr_loader_info *info = mr_loader_info_of(l);
    MRT_TRUE(info->mixes && !mr_loader_info_of(plain)->mixes);
    int rc;
    while ((rc = mr_loader_next(l, &a, MR_FOREVER, &err)) == MR_OK) {
        MRT_OK(mr_loader_next(plain, &b, MR_FOREVER, &err), &err);
        check_pairs(&a, &b, (size_t)info->height * info->width * info->channels, &seen);
        for (uint32_t p = 0; p < a.part_count; p++)
            MRT_TRUE(a.parts[p].labels2 == (const void *)(a.labels2 + a.parts[p].first) &&
                     a.parts[p].share2 == (const void *)(a.share2 + a.parts[p].first));
        MRT_OK(mr_loader_release(l, &a, NULL), NULL);
        MRT_OK(mr_loader_release(plain, &b, NULL), NULL);
    }
    MRT_EQ(rc, MR_EEND);
    mr_loader_close(l);
    mr_loader_close(plain);
    return seen;
}

static void neighbours_are_pairs(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_idx_set("pairs", 33, 5, 3));
    static const uint32_t sizes[] = {1, 2, 7, 10, 33, 50};
    for (size_t i = 0; i < MRI_ARRAY_COUNT(sizes); i++)
        for (int tail = MR_TAIL_KEEP; tail <= MR_TAIL_PAD; tail++)
            for (uint32_t parts = 1; parts <= 3; parts += 2) {
                if (tail == MR_TAIL_DROP && sizes[i] > 33) continue;
                mr_loader_config cfg = mixing(sizes[i], "mixup(1)");
                cfg.tail = (mr_tail)tail;
                cfg.parts = parts;
                const batches seen = compare(src, cfg, "none");
                MRT_TRUE(sizes[i] == 1 ? seen.mixed == 0 : seen.mixed > 0);
                if (sizes[i] == 7 && tail == MR_TAIL_DROP) MRT_EQ(seen.alone, 2 * (33 / 7));
            }
    mr_source_close(src);
}

/* A skipped sample is not mixed, and neither is its partner. */
static void skipped_samples_are_not_mixed(void **state)
{
    (void)state;
    mrt_folder_set("skipped", 2, 9, 16, false);
    mrt_write_file(mrt_path("skipped/class01/0003.jpg"), "\xFF\xD8\xFF", 3);
    mr_source *src = mrt_source(mrt_path("skipped"));
    mr_loader_config cfg = mixing(6, "flip,mixup(0.8)");
    cfg.bad = MR_BAD_SKIP;
    const batches seen = compare(src, cfg, "flip");
    MRT_EQ(seen.alone, 2 * 2); /* two epochs */
    MRT_EQ(seen.mixed, 2 * 16);
    cfg.bad = MR_BAD_REPLACE;
    MRT_EQ(compare(src, cfg, "flip").alone, 0);
    mr_source_close(src);
}

static void settings_change_nothing(void **state)
{
    (void)state;
    mr_source *sets[] = {mrt_source(mrt_folder_set("same", 3, 15, 24, true)),
                         mrt_source(mrt_idx_set("same", 333, 8, 8))};
    mr_device **devices;
    uint32_t count;
    mr_devices_config device_cfg;
    mr_error err = MR_ERROR_INIT;
    mr_devices_defaults(&device_cfg);
    MRT_OK(mr_devices_open(&devices, &count, "cpu:3", &device_cfg, &err), &err);
    for (int s = 0; s < 2; s++) {
        const mr_loader_config usual = mixing(14, "rrc(16),flip,mixup(0.4),cutmix(1)");
        const mr_digest expected = mrt_digest(sets[s], &usual, NULL, NULL);
        for (int k = 0; k < 8; k++) {
            mr_loader_config cfg = usual;
            if (k == 0) cfg.workers = 1;
            if (k == 1) cfg.workers = 5;
            if (k == 2) cfg.prefetch = 0;
            if (k == 3) cfg.io = MR_IO_PREAD, cfg.readers = 3;
            if (k == 4) cfg.resident_bytes = 0;
            if (k == 5) cfg.cache = MR_CACHE_MEMORY, cfg.cache_bytes = 1 << 20;
            if (k == 6) cfg.parts = 4;
            if (k == 7) cfg.devices = devices, cfg.device_count = count, cfg.keep_host = true;
            if (!mrt_same_batches(expected, mrt_digest(sets[s], &cfg, NULL, NULL)))
                fail_msg("set %d: other batches with setting %d", s, k);
        }
        mr_loader_config other = usual;
        other.seed++;
        MRT_TRUE(!mrt_same_batches(expected, mrt_digest(sets[s], &other, NULL, NULL)));
        other = usual, other.training = false; /* nothing is mixed in evaluation */
        mr_loader_config plain = other;
        plain.augment = "rrc(16),flip";
        MRT_TRUE(mrt_same_batches(mrt_digest(sets[s], &plain, NULL, NULL),
                                  mrt_digest(sets[s], &other, NULL, NULL)));
        mr_source_close(sets[s]);
    }
    mr_devices_close(devices, count);
}

/* Loaders that have a share of each batch give what one gives that has all, where shares are whole pairs. */
static void shares_are_whole_pairs(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_idx_set("shares", 32, 4, 4));
    mr_error err = MR_ERROR_INIT;
    mr_loader *whole, *half[2];
    mr_batch b, h;
    mr_loader_config cfg = mixing(12, "mixup(1)"); /* 12, 12, 8: halves of 6, 6, 4 */
    MRT_OK(mr_loader_open(&whole, src, &cfg, &err), &err);
    cfg.all_parts = 2;
    for (uint32_t r = 0; r < 2; r++) {
        cfg.first_part = r;
        MRT_OK(mr_loader_open(&half[r], src, &cfg, &err), &err);
    }
    int rc;
    while ((rc = mr_loader_next(whole, &b, MR_FOREVER, &err)) == MR_OK) {
        for (uint32_t r = 0; r < 2; r++) {
            MRT_OK(mr_loader_next(half[r], &h, MR_FOREVER, &err), &err);
            MRT_EQ(h.first, r * b.count / 2);
            MRT_EQ(memcmp(h.pixels, b.pixels + (size_t)h.first * 16, (size_t)h.count * 16), 0);
            MRT_EQ(memcmp(h.labels2, b.labels2 + h.first, h.count * sizeof *h.labels2), 0);
            MRT_EQ(memcmp(h.share2, b.share2 + h.first, h.count * sizeof *h.share2), 0);
            MRT_OK(mr_loader_release(half[r], &h, NULL), NULL);
        }
        MRT_OK(mr_loader_release(whole, &b, NULL), NULL);
    }
    MRT_EQ(rc, MR_EEND);
    mr_loader_close(whole);
    mr_loader_close(half[0]);
    mr_loader_close(half[1]);
    cfg.batch = 10; /* fives */
    mrt_refused(src, &cfg, MR_EINVAL, "cut pairs that are to be mixed; take a batch that is a multiple of 4");
    cfg.batch = 20; /* 20, 12: tens, sixes */
    cfg.first_part = 0;
    MRT_OK(mr_loader_open(&whole, src, &cfg, &err), &err);
    mr_loader_close(whole);
    cfg.batch = 28; /* 28, 4: fourteens, twos */
    cfg.all_parts = 3;
    mrt_refused(src, &cfg, MR_EINVAL, "the 3 parts of a batch cut pairs");
    mr_source_close(src);
}

static void what_has_no_labels_is_refused(void **state)
{
    (void)state;
    static const mr_field fields[] = {
        {.name = "image", .type = MR_TYPE_PIXELS, .ndim = 3, .dim = {2, 2, 1}},
        {.name = "vector", .type = MR_TYPE_TENSOR, .dtype = MR_F32, .ndim = 1, .dim = {2}},
        {.name = "label", .type = MR_TYPE_INT}};
    static const uint8_t pixels[4];
    static const float vector[2];
    for (uint32_t count = 2; count <= 3; count++) {
        mr_writer *w = mrt_writer("unlabelled", fields, count, 0);
        mr_error err = MR_ERROR_INIT;
        const mr_value v[] = {
            {.type = MR_TYPE_PIXELS, .data = pixels, .bytes = 4, .ndim = 3, .dim = {2, 2, 1}},
            {.type = MR_TYPE_TENSOR, .dtype = MR_F32, .data = vector, .bytes = 8, .ndim = 1, .dim = {2}},
            {.type = MR_TYPE_INT, .i = 0}};
        for (int i = 0; i < 4; i++) MRT_OK(mr_writer_append(w, (uint64_t)i, v, &err), &err);
        mr_source *src = mrt_written(w, "unlabelled");
        mr_loader_config cfg = mixing(2, "mixup(1)");
        const mr_loader_field asked = {.name = "vector"};
        if (count == 2) mrt_refused(src, &cfg, MR_EINVAL, "no labels to mix");
        cfg.fields = &asked;
        cfg.field_count = 1;
        if (count == 3) mrt_refused(src, &cfg, MR_EINVAL, "leave out the fields");
        mr_source_close(src);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blends_are_right),
        cmocka_unit_test(tables_are_right),
        cmocka_unit_test(draws_follow_the_distribution),
        cmocka_unit_test(boxes_are_exchanged),
        cmocka_unit_test(of_two_a_pair_draws_one),
        cmocka_unit_test(specifications),
        cmocka_unit_test(neighbours_are_pairs),
        cmocka_unit_test(skipped_samples_are_not_mixed),
        cmocka_unit_test(settings_change_nothing),
        cmocka_unit_test(shares_are_whole_pairs),
        cmocka_unit_test(what_has_no_labels_is_refused),
    };
    return mrt_run(tests);
}
