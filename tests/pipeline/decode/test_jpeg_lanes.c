/* tests/pipeline/decode/test_jpeg_lanes.c: with and without entry points, every instruction set gives the
 * same coefficients and, of damaged data, the same verdict in the same words, whether lanes decode or not. */
#include "base/simd.h"
#include "formats/image/jpeg_entry.h"
#include "mrt.h"
#include "pipeline/decode/jpeg/entropy.h"
#include "tests/pipeline/decode/coefs.h"

static const mri_simd_level levels[] = {MRI_SIMD_PLAIN, MRI_SIMD_AVX2, MRI_SIMD_AVX512, MRI_SIMD_NEON};

/* What one level made of a picture. */
typedef struct outcome {
    int rc;
    mr_error err;
    size_t blocks;
    int16_t (*block)[MRI_JPEG_BLOCK];
    uint8_t *last;
} outcome;

static mri_entropy *entropy;

static void outcome_free(outcome *o)
{
    free(o->block);
    free(o->last);
}

static uint32_t draw(uint64_t *seed, uint32_t below)
{
    *seed = mri_mix64(*seed);
    return mri_below((uint32_t)*seed, below);
}

static int decode_rows(const mri_jpeg_frame *f, const mri_block_window *w, outcome *o)
{
    size_t base[4], at = 0;
    for (uint32_t k = 0; k < f->component_count; k++) {
        base[k] = at;
        at += (size_t)(w[k].x1 - w[k].x0) * (w[k].y1 - w[k].y0);
    }
    o->blocks = at;
    o->block = mri_alloc_aligned(64, (at + 1) * sizeof o->block[0]);
    o->last = calloc(at + 1, 1);
    memset(o->block, 0x5a, (at + 1) * sizeof o->block[0]);
    for (uint32_t row = 0; row < f->mcus_high; row++) {
        mri_block_rows out[4];
        bool wanted = false;
        for (uint32_t k = 0; k < f->component_count; k++) {
            const uint32_t v = f->component[k].v, first = row * v > w[k].y0 ? row * v : w[k].y0;
            const bool here = w[k].x0 < w[k].x1 && first < w[k].y1 && row * v + v > w[k].y0;
            const size_t to = base[k] + (here ? (size_t)(first - w[k].y0) * (w[k].x1 - w[k].x0) : 0);
            wanted |= here;
            out[k] = (mri_block_rows){o->block + to, o->last + to, w[k].x1 - w[k].x0};
        }
        const int rc = wanted ? mri_entropy_rows(entropy, row, out, &o->err) : MR_OK;
        if (rc) return rc;
    }
    return mri_entropy_end(entropy, &o->err);
}

static bool only_dc; /* for decode() */

/* window NULL: all. */
static outcome decode(const uint8_t *data, size_t bytes, const void *entries, size_t entries_bytes,
                      const mri_block_window *window)
{
    outcome o = {.err = MR_ERROR_INIT};
    const mri_jpeg_frame *f;
    mri_block_window all[4] = {{0}};
    o.rc = mri_entropy_open(entropy, data, bytes, entries, entries_bytes, &f, &o.err);
    if (o.rc) return o;
    for (uint32_t k = 0; k < f->component_count; k++)
        all[k] = (mri_block_window){0, f->component[k].blocks_wide, 0, f->component[k].blocks_high};
    MRT_OK(mri_entropy_window(entropy, window ? window : all, &o.err), &o.err);
    if (only_dc) mri_entropy_only_dc(entropy);
    o.rc = decode_rows(f, window ? window : all, &o);
    return o;
}

/* Same verdict, words and coefficients; "last" is a promise that may be kept in two ways. */
static void check_same(const outcome *a, const outcome *b)
{
    MRT_EQ(a->rc, b->rc);
    if (a->rc) {
        const char *near = strstr(a->err.text, "near byte"); /* the position depends on the bytes loaded
                                                              * ahead */
        if (near) assert_memory_equal(a->err.text, b->err.text, (size_t)(near - a->err.text));
        else assert_string_equal(a->err.text, b->err.text);
        return;
    }
    MRT_EQ(a->blocks, b->blocks);
    MRT_TRUE(memcmp(a->block, b->block, a->blocks * sizeof a->block[0]) == 0);
    for (size_t k = 0; k < b->blocks; k++)
        for (int z = b->last[k] + 1; z < MRI_JPEG_BLOCK; z++) MRT_EQ(b->block[k][mri_jpeg_natural[z]], 0);
}

/* DC alone, by the level in use: verdict, words and DC of the other outcome. */
static void check_dc(const uint8_t *data, size_t bytes, const void *entries, size_t entries_bytes,
                     const mri_block_window *window, const outcome *expected)
{
    only_dc = true;
    outcome o = decode(data, bytes, entries, entries_bytes, window);
    only_dc = false;
    for (size_t k = 0; o.rc == MR_OK && k < o.blocks; k++) { /* the values that must be unchanged */
        o.last[k] = 63;
        memcpy(o.block[k] + 1, expected->block[k] + 1, sizeof o.block[k] - sizeof o.block[k][0]);
    }
    check_same(expected, &o);
    outcome_free(&o);
}

/* The picture with every level. Returns the status. */
static int check_levels(const uint8_t *data, size_t bytes, const void *entries, size_t entries_bytes,
                        const mri_block_window *window)
{
    const mri_simd_level before = mri_simd();
    mri_simd_use(MRI_SIMD_PLAIN);
    outcome plain = decode(data, bytes, entries, entries_bytes, window);
    if (window) check_dc(data, bytes, entries, entries_bytes, window, &plain);
    for (size_t k = 1; k < MRI_ARRAY_COUNT(levels); k++) {
        if (!mri_simd_use(levels[k])) continue;
        outcome other = decode(data, bytes, entries, entries_bytes, window);
        check_same(&plain, &other);
        outcome_free(&other);
        if (window) check_dc(data, bytes, entries, entries_bytes, window, &plain);
    }
    mri_simd_use(before);
    outcome_free(&plain);
    return plain.rc;
}

static void draw_window(const mri_jpeg_frame *f, uint64_t *seed, mri_block_window *w)
{
    for (uint32_t k = 0; k < f->component_count; k++) {
        const mri_jpeg_component *c = &f->component[k];
        w[k].x0 = draw(seed, c->blocks_wide);
        w[k].x1 = w[k].x0 + 1 + draw(seed, c->blocks_wide - w[k].x0);
        w[k].y0 = draw(seed, c->blocks_high);
        w[k].y1 = w[k].y0 + 1 + draw(seed, c->blocks_high - w[k].y0);
        if (draw(seed, 9) == 0) w[k].x1 = w[k].x0;
    }
}

/* ---- shapes ---- */

#define SHAPE(c, x, y, ...)                                                                                  \
    {                                                                                                        \
        .components = c, .width = x, .height = y, __VA_ARGS__                                                \
    }
#define SAMPLED(x, y) .h = {x, 1, 1}, .v = {y, 1, 1}

/* Sizes as photographs have them, all odd ways to end; sparse, dense, full blocks; short and long codes. */
static const mrt_coefs_kind shapes[] = {
    SHAPE(3, 500, 375, .density = 6, .range = 20),
    SHAPE(3, 333, 251, .density = 12, .range = 60, .optimize = true),
    SHAPE(3, 500, 333, SAMPLED(2, 2), .density = 8, .range = 40),
    SHAPE(3, 501, 377, SAMPLED(2, 2), .density = 3, .range = 9, .optimize = true),
    SHAPE(3, 481, 319, SAMPLED(2, 1), .density = 20, .range = 200, .optimize = true),
    SHAPE(3, 300, 400, SAMPLED(1, 2), .density = 30, .range = 1023),
    SHAPE(3, 640, 161, SAMPLED(4, 1), .density = 5, .range = 5),
    SHAPE(3, 900, 90, SAMPLED(4, 2), .density = 5, .range = 5),
    SHAPE(1, 497, 373, .density = 10, .range = 80, .optimize = true),
    SHAPE(1, 1030, 200, .density = 63, .range = 1023),
    SHAPE(1, 1030, 200, .density = 64, .range = 1),
    SHAPE(1, 2000, 100, .density = 0, .range = 2, .optimize = true),
    SHAPE(3, 400, 300, SAMPLED(2, 2), .density = 8, .range = 30, .restart = 25),
    SHAPE(3, 400, 300, .density = 8, .range = 30, .restart = 7),
    SHAPE(3, 70, 60, .density = 8, .range = 30),
    SHAPE(3, 2600, 120, .density = 2, .range = 9),
};

static const uint32_t gaps[] = {16, 1, 5, 64, 255};

/* Entry points made with every level: the same bytes, or the same verdict. */
static void check_entries(const uint8_t *data, size_t bytes, uint32_t gap)
{
    const mri_simd_level before = mri_simd();
    void *plain = NULL;
    size_t plain_bytes = 0;
    mri_simd_use(MRI_SIMD_PLAIN);
    const int rc = mri_jpeg_entries_build_gap(entropy, data, bytes, gap, &plain, &plain_bytes, NULL);
    for (size_t k = 1; k < MRI_ARRAY_COUNT(levels); k++) {
        void *other = NULL;
        size_t other_bytes = 0;
        if (!mri_simd_use(levels[k])) continue;
        MRT_EQ(mri_jpeg_entries_build_gap(entropy, data, bytes, gap, &other, &other_bytes, NULL), rc);
        MRT_EQ(other_bytes, plain_bytes);
        if (rc == MR_OK) assert_memory_equal(other, plain, plain_bytes);
        free(other);
    }
    mri_simd_use(before);
    free(plain);
}

/* Entry points noted by crops, with every level: equal to the whole picture's, or its verdict. */
static void check_noted(const uint8_t *data, size_t bytes, const mri_block_window *window)
{
    const mri_simd_level before = mri_simd();
    void *expected = NULL;
    size_t expected_bytes = 0;
    mri_simd_use(MRI_SIMD_PLAIN);
    const int whole = mri_jpeg_entries_build(entropy, data, bytes, &expected, &expected_bytes, NULL);
    for (size_t k = 0; k < MRI_ARRAY_COUNT(levels); k++) {
        outcome o = {.err = MR_ERROR_INIT};
        const mri_jpeg_frame *f;
        void *noted = NULL;
        size_t noted_bytes = 0;
        if (!mri_simd_use(levels[k])) continue;
        if (mri_entropy_open(entropy, data, bytes, NULL, 0, &f, &o.err) == MR_OK &&
            mri_entropy_note(entropy)) {
            MRT_OK(mri_entropy_window(entropy, window, &o.err), &o.err);
            o.rc = decode_rows(f, window, &o);
            if (o.rc == MR_OK) o.rc = mri_entropy_noted(entropy, &noted, &noted_bytes, &o.err);
            MRT_EQ(o.rc, whole);
            MRT_EQ(noted_bytes, expected_bytes);
            if (whole == MR_OK) assert_memory_equal(noted, expected, expected_bytes);
        }
        outcome_free(&o);
        free(noted);
    }
    mri_simd_use(before);
    free(expected);
}

static void test_same_coefficients(void **state)
{
    (void)state;
    uint64_t seed = 1;
    for (size_t n = 0; n < MRI_ARRAY_COUNT(shapes); n++) {
        size_t bytes;
        uint8_t *data = mrt_coefs_write(&shapes[n], n + 1, &bytes);
        for (size_t g = 0; g < MRI_ARRAY_COUNT(gaps); g++) {
            mr_error err = MR_ERROR_INIT;
            mri_jpeg_layout layout;
            mri_block_window w[4] = {{0}};
            void *entries;
            size_t entries_bytes;
            MRT_OK(mri_jpeg_entries_build_gap(entropy, data, bytes, gaps[g], &entries, &entries_bytes, &err),
                   &err);
            MRT_OK(mri_jpeg_layout_parse(&layout, data, bytes, &err), &err);
            check_entries(data, bytes, gaps[g]);
            MRT_OK(check_levels(data, bytes, entries, entries_bytes, NULL), &err);
            for (int turn = 0; turn < (g ? 2 : 8); turn++) {
                draw_window(&layout.frame, &seed, w);
                MRT_OK(check_levels(data, bytes, entries, entries_bytes, w), &err);
                MRT_OK(check_levels(data, bytes, NULL, 0, w), &err);
                if (g == 0) check_noted(data, bytes, w);
            }
            free(entries);
        }
        free(data);
    }
}

/* More MCUs of a few bits than lanes have records for: they stop anywhere, also between two MCUs. */
static void test_flat(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        const mrt_coefs_kind flat = SHAPE(1, 2000, 1096, .density = 0, .range = (int)seed, .optimize = true);
        const mri_block_window some = {100, 110, 60, 136};
        size_t bytes;
        uint8_t *data = mrt_coefs_write(&flat, seed, &bytes);
        check_entries(data, bytes, 16);
        MRT_EQ(check_levels(data, bytes, NULL, 0, &some), MR_OK);
        MRT_EQ(check_levels(data, bytes, NULL, 0, NULL), MR_OK);
        free(data);
    }
}

/* Lanes are where they should be: all rows of a photograph, none of one with restart markers or few segments.
 */
static void test_lanes_decode(void **state)
{
    (void)state;
    const mri_simd_level before = mri_simd();
    if (!mri_simd_use(MRI_SIMD_AVX512)) {
        print_message("no AVX-512 here: left out\n");
        skip();
    }
    static const struct {
        size_t shape;
        uint32_t rows, rows_ahead; /* with entry points, and without */
    } rows[] = {{0, 47, 46}, {2, 21, 20}, {8, 47, 46}, {12, 0, 0}, {14, 0, 0}};
    for (size_t n = 0; n < MRI_ARRAY_COUNT(rows); n++) {
        mr_error err = MR_ERROR_INIT;
        size_t bytes, entries_bytes;
        void *entries;
        uint8_t *data = mrt_coefs_write(&shapes[rows[n].shape], 1, &bytes);
        MRT_OK(mri_jpeg_entries_build(entropy, data, bytes, &entries, &entries_bytes, &err), &err);
        for (int turn = 0; turn < 4; turn++) {
            const bool ahead = turn & 1;
            only_dc = turn & 2;
            const uint64_t was = mri_entropy_lane_rows(entropy);
            outcome o = decode(data, bytes, ahead ? NULL : entries, entries_bytes, NULL);
            MRT_OK(o.rc, &o.err);
            MRT_EQ(mri_entropy_lane_rows(entropy) - was, ahead ? rows[n].rows_ahead : rows[n].rows);
            outcome_free(&o);
        }
        only_dc = false;
        free(entries);
        free(data);
    }
    mri_simd_use(before);
}

/* ---- damage ---- */

/* Bits of the picture behind its tables flipped, bytes cut out of it, entry points made before that. */
static void test_damaged_picture(void **state)
{
    (void)state;
    enum { APART = MRT_SANITIZED ? 3 : 1 };
    uint64_t seed = 5;
    uint32_t good = 0, refused = 0;
    for (size_t n = 0; n < MRI_ARRAY_COUNT(shapes); n++) {
        mr_error err = MR_ERROR_INIT;
        mri_jpeg_layout layout;
        size_t bytes, entries_bytes;
        void *entries;
        uint8_t *data = mrt_coefs_write(&shapes[n], n + 1, &bytes), *bad = malloc(bytes);
        MRT_OK(mri_jpeg_entries_build(entropy, data, bytes, &entries, &entries_bytes, &err), &err);
        MRT_OK(mri_jpeg_layout_parse(&layout, data, bytes, &err), &err);
        const uint32_t begin = (uint32_t)layout.scan[0].begin, scan = (uint32_t)bytes - begin;
        for (int turn = 0; turn < 40; turn += APART) {
            mri_block_window w[4] = {{0}};
            memcpy(bad, data, bytes);
            for (uint32_t flips = 1 + draw(&seed, 3); flips > 0; flips--)
                bad[begin + draw(&seed, scan)] ^= (uint8_t)(1u << draw(&seed, 8));
            if (turn % 8 == 7) { /* the end comes early; zeros, or ones, up to the length that was */
                const size_t cut = begin + draw(&seed, scan - 2);
                memset(bad + cut, turn & 8 ? 0xff : 0, bytes - 2 - cut);
            }
            draw_window(&layout.frame, &seed, w);
            const int rc = check_levels(bad, bytes, entries, entries_bytes, turn & 1 ? w : NULL);
            check_levels(bad, bytes, NULL, 0, turn & 1 ? w : NULL);
            check_entries(bad, bytes, gaps[turn % 3]);
            if (turn % 4 == 1) check_noted(bad, bytes, w);
            good += rc == MR_OK;
            refused += rc != MR_OK;
        }
        free(bad);
        free(entries);
        free(data);
    }
    MRT_TRUE(good > 20 / APART && refused > 200 / APART);
}

static void test_damaged_entries(void **state)
{
    (void)state;
    uint64_t seed = 9;
    uint32_t refused = 0;
    for (size_t n = 0; n < MRI_ARRAY_COUNT(shapes); n++) {
        mr_error err = MR_ERROR_INIT;
        mri_jpeg_layout layout;
        size_t bytes, entries_bytes;
        uint8_t *entries;
        void *made;
        uint8_t *data = mrt_coefs_write(&shapes[n], n + 1, &bytes);
        MRT_OK(mri_jpeg_entries_build_gap(entropy, data, bytes, gaps[n % 3], &made, &entries_bytes, &err),
               &err);
        MRT_OK(mri_jpeg_layout_parse(&layout, data, bytes, &err), &err);
        entries = made;
        for (int turn = 0; turn < 30; turn++) {
            mri_block_window w[4] = {{0}};
            const size_t at = draw(&seed, turn % 5 ? (uint32_t)entries_bytes : 20), bit = draw(&seed, 8);
            entries[at] ^= (uint8_t)(1u << bit);
            draw_window(&layout.frame, &seed, w);
            refused += check_levels(data, bytes, entries, entries_bytes, turn & 1 ? w : NULL) != MR_OK;
            entries[at] ^= (uint8_t)(1u << bit);
        }
        free(made);
        free(data);
    }
    MRT_TRUE(refused > 200);
}

/* Pictures large enough for the skimming tables. Making entry points skims all of a picture: its verdict is
 * that of storing all of it. */
static const mrt_coefs_kind skimmed_kinds[] = {
    {.components = 3, .width = 200, .height = 160, .h = {2, 1, 1}, .v = {2, 1, 1}, .density = 9, .range = 60},
    {.components = 3, .width = 130, .height = 100, .density = 30, .range = 1023, .optimize = true},
    {.components = 1, .width = 260, .height = 180, .density = 62, .range = 3, .restart = 40},
};

static void check_skimmed(uint64_t seed)
{
    for (size_t n = 0; n < MRI_ARRAY_COUNT(skimmed_kinds); n++) {
        size_t bytes;
        uint8_t *data = mrt_coefs_write(&skimmed_kinds[n], seed, &bytes);
        for (int turn = 0; turn < 150; turn++) {
            mr_error err = MR_ERROR_INIT;
            const size_t at = draw(&seed, (uint32_t)bytes), bit = draw(&seed, 8);
            const size_t cut = draw(&seed, 4) ? bytes : draw(&seed, (uint32_t)bytes);
            void *entries = NULL;
            size_t entries_bytes;
            data[at] ^= (uint8_t)(1u << bit);
            outcome o = decode(data, cut, NULL, 0, NULL);
            const int stored = o.rc;
            outcome_free(&o);
            const int skimmed = mri_jpeg_entries_build(entropy, data, cut, &entries, &entries_bytes, &err);
            if (skimmed != stored)
                fail_msg("bit %zu of byte %zu: stored %d, skimmed %d", bit, at, stored, skimmed);
            free(entries);
            data[at] ^= (uint8_t)(1u << bit);
        }
        free(data);
    }
}

static void test_skimmed(void **state)
{
    (void)state;
    const mri_simd_level before = mri_simd();
    for (uint64_t k = 0; k < MRI_ARRAY_COUNT(levels); k++)
        if (mri_simd_use(levels[k])) check_skimmed(k + 1);
    mri_simd_use(before);
}

/* Tables of random codes, with symbols that run over the end of their block and long codes. */
static void test_wild_tables(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 30; seed++) {
        mr_error err = MR_ERROR_INIT;
        size_t bytes, entries_bytes;
        void *entries;
        uint8_t *data = mrt_coefs_wild(150 + (uint32_t)(seed * 37 % 300), 150 + (uint32_t)(seed * 11 % 60), 0,
                                       seed, &bytes);
        const int rc = mri_jpeg_entries_build_gap(entropy, data, bytes, 4, &entries, &entries_bytes, &err);
        if (rc == MR_OK) {
            MRT_OK(check_levels(data, bytes, entries, entries_bytes, NULL), &err);
            MRT_OK(check_levels(data, bytes, NULL, 0, NULL), &err);
            free(entries);
        } else {
            MRT_EQ(rc, MR_EUNSUPPORTED);
        }
        free(data);
    }
}

static int open_decoder(void **state)
{
    (void)state;
    mri_simd_use(MRI_SIMD_AVX512); /* has lanes where the processor does, whatever MILLRACE_SIMD says */
    return mri_entropy_create(&entropy);
}

static int close_decoder(void **state)
{
    (void)state;
    mri_entropy_destroy(entropy);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_coefficients),
        cmocka_unit_test(test_lanes_decode),
        cmocka_unit_test(test_damaged_picture),
        cmocka_unit_test(test_damaged_entries),
        cmocka_unit_test(test_skimmed),
        cmocka_unit_test(test_wild_tables),
        cmocka_unit_test(test_flat),
    };
    return cmocka_run_group_tests(tests, open_decoder, close_decoder);
}
