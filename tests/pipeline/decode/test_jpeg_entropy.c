/* tests/pipeline/decode/test_jpeg_entropy.c: our entropy decoder against libjpeg's, on every layout, window
 * and kind of damage. */
#include "base/simd.h"
#include "formats/image/jpeg_entry.h"
#include "mrt.h"
#include "pipeline/decode/jpeg/entropy.h"
#include "pipeline/decode/jpeg/scan/scan.h"
#include "tests/pipeline/decode/coefs.h"

#define MANY (1u << 22)

static mri_entropy *entropy;

/* ---- decoding into guarded memory ---- */

typedef struct picture {
    uint32_t count;
    mri_block_window window[4];
    int16_t (*block[4])[MRI_JPEG_BLOCK];
    uint8_t *last[4];
} picture;

static void picture_free(picture *p)
{
    for (uint32_t k = 0; k < p->count; k++) {
        free(p->block[k]);
        free(p->last[k]);
    }
    p->count = 0;
}

static void picture_take(picture *p, const mri_jpeg_frame *f, const mri_block_window *w)
{
    p->count = f->component_count;
    for (uint32_t k = 0; k < p->count; k++) {
        p->window[k] = w[k];
        const size_t blocks = (size_t)(w[k].x1 - w[k].x0) * (w[k].y1 - w[k].y0);
        p->block[k] = mri_alloc_aligned(64, blocks * 128 + 64);
        p->last[k] = malloc(blocks + 1);
        memset(p->block[k], 0x5a, blocks * 128 + 64);
        memset(p->last[k], 0x5a, blocks + 1);
    }
}

static bool guarded(const picture *p)
{
    for (uint32_t k = 0; k < p->count; k++) {
        const mri_block_window *w = &p->window[k];
        const size_t blocks = (size_t)(w->x1 - w->x0) * (w->y1 - w->y0);
        if (p->last[k][blocks] != 0x5a) return false;
        for (int at = 0; at < 32; at++)
            if (p->block[k][blocks][at] != 0x5a5a) return false;
    }
    return true;
}

static void whole_window(const mri_jpeg_frame *f, mri_block_window *w)
{
    for (uint32_t k = 0; k < f->component_count; k++)
        w[k] = (mri_block_window){0, f->component[k].blocks_wide, 0, f->component[k].blocks_high};
}

static int decode_rows(const mri_jpeg_frame *f, const picture *p, mr_error *err)
{
    for (uint32_t row = 0; row < f->mcus_high; row++) {
        mri_block_rows out[4];
        bool wanted = false;
        for (uint32_t k = 0; k < f->component_count; k++) {
            const mri_block_window *w = &p->window[k];
            const uint32_t top = row * f->component[k].v, first = top > w->y0 ? top : w->y0;
            wanted |= w->x0 < w->x1 && first < w->y1 && top + f->component[k].v > w->y0;
            const size_t at = first < w->y1 ? (size_t)(first - w->y0) * (w->x1 - w->x0) : 0;
            out[k] = (mri_block_rows){p->block[k] + at, p->last[k] + at, w->x1 - w->x0};
        }
        const int rc = wanted ? mri_entropy_rows(entropy, row, out, err) : MR_OK;
        if (rc) return rc;
    }
    return mri_entropy_end(entropy, err);
}

/* window NULL: all. p is to be freed when MR_OK. */
static int decode(const void *data, size_t bytes, const void *entries, size_t entries_bytes,
                  const mri_block_window *window, picture *p, mr_error *err)
{
    const mri_jpeg_frame *f;
    mri_block_window all[4];
    p->count = 0;
    int rc = mri_entropy_open(entropy, data, bytes, entries, entries_bytes, &f, err);
    if (rc) return rc;
    if (!window) {
        whole_window(f, all);
        window = all;
    }
    MRT_OK(mri_entropy_window(entropy, window, err), err);
    picture_take(p, f, window);
    rc = decode_rows(f, p, err);
    MRT_TRUE(guarded(p));
    if (rc) picture_free(p);
    return rc;
}

/* The window of what libjpeg has; last is no promise broken. */
static bool same(const picture *p, const mrt_coefs *theirs)
{
    for (uint32_t k = 0; k < p->count; k++) {
        const mri_block_window *w = &p->window[k];
        size_t at = 0;
        for (uint32_t y = w->y0; y < w->y1; y++)
            for (uint32_t x = w->x0; x < w->x1; x++, at++) {
                if (memcmp(p->block[k][at], theirs->block[k][(size_t)y * theirs->wide[k] + x], 128) != 0)
                    return false;
                for (int z = p->last[k][at] + 1; z < 64; z++)
                    if (p->block[k][at][mri_jpeg_natural[z]]) return false;
                if (p->last[k][at] > 63) return false;
            }
    }
    return true;
}

static uint32_t draw(uint64_t *seed, uint32_t below)
{
    *seed = mri_mix64(*seed);
    return mri_below((uint32_t)*seed, below);
}

static void random_window(const mri_jpeg_frame *f, uint64_t *seed, mri_block_window *w)
{
    for (uint32_t k = 0; k < f->component_count; k++) {
        const mri_jpeg_component *c = &f->component[k];
        w[k].x0 = draw(seed, c->blocks_wide);
        w[k].x1 = w[k].x0 + 1 + draw(seed, c->blocks_wide - w[k].x0);
        w[k].y0 = draw(seed, c->blocks_high);
        w[k].y1 = w[k].y0 + 1 + draw(seed, c->blocks_high - w[k].y0);
        if (draw(seed, 6) == 0) w[k].x1 = w[k].x0;
    }
}

/* Everything a good file must give: all of it, windows, both again with entry points of any gap. */
static void check_good(const uint8_t *data, size_t bytes, uint64_t seed)
{
    mr_error err = MR_ERROR_INIT;
    mrt_coefs theirs;
    picture p;
    mrt_coefs_read(&theirs, data, bytes, MANY);
    if (!theirs.clean) fail_msg("libjpeg: %s", theirs.text);
    MRT_OK(decode(data, bytes, NULL, 0, NULL, &p, &err), &err);
    MRT_TRUE(same(&p, &theirs));
    picture_free(&p);
    for (int turn = 0; turn < 6; turn++) {
        static const uint32_t gaps[] = {0, 16, 1, 2, 7, 255};
        void *entries = NULL;
        size_t entries_bytes = 0;
        if (gaps[turn]) {
            const int rc =
                mri_jpeg_entries_build_gap(entropy, data, bytes, gaps[turn], &entries, &entries_bytes, &err);
            if (rc == MR_EUNSUPPORTED) break;
            MRT_OK(rc, &err);
        }
        mri_jpeg_layout layout;
        mri_block_window w[4];
        MRT_OK(mri_jpeg_layout_parse(&layout, data, bytes, &err), &err);
        whole_window(&layout.frame, w);
        for (int k = 0; k < 4; k++) {
            MRT_OK(decode(data, bytes, entries, entries_bytes, w, &p, &err), &err);
            MRT_TRUE(same(&p, &theirs));
            picture_free(&p);
            random_window(&layout.frame, &seed, w);
        }
        free(entries);
    }
    mrt_coefs_free(&theirs);
}

/* ---- good files ---- */

static const uint32_t sizes[][2] = {{1, 1}, {7, 9}, {65, 33}, {8, 8}, {200, 40}, {17, 130}};

static void check_kind(mrt_coefs_kind kind, uint64_t seed)
{
    size_t bytes;
    uint8_t *data = mrt_coefs_write(&kind, seed, &bytes);
    check_good(data, bytes, seed);
    free(data);
}

static void test_gray(void **state)
{
    (void)state;
    for (uint64_t k = 0; k < 48; k++)
        check_kind((mrt_coefs_kind){.components = 1,
                                    .width = sizes[k % 6][0],
                                    .height = sizes[k % 6][1],
                                    .restart = k / 6 % 2 ? (int)(1 + k % 5) : 0,
                                    .optimize = k / 12 % 2,
                                    .density = (int)(1 + k * 7 % 64),
                                    .range = k % 3 ? 8 : 1023},
                   k + 1);
}

static void test_samplings(void **state)
{
    (void)state;
    uint64_t n = 0;
    for (int h = 1; h <= 4; h++)
        for (int v = 1; v <= 4; v++)
            for (int other = 0; other < 4; other++, n++) {
                mrt_coefs_kind kind = {.components = 3,
                                       .width = sizes[n % 6][0],
                                       .height = sizes[n % 6][1],
                                       .h = {h, 1 + other % 2, 1},
                                       .v = {v, 1 + other / 2, 1},
                                       .density = (int)(n % 20),
                                       .range = 60,
                                       .optimize = n % 2,
                                       .restart = n % 3 == 0 ? (int)(n % 7) : 0};
                if (h * v + kind.h[1] * kind.v[1] + 1 > 10) kind.script = 1;
                check_kind(kind, n + 1);
            }
}

static void test_chroma_larger(void **state)
{
    (void)state;
    check_kind((mrt_coefs_kind){.components = 3,
                                .width = 100,
                                .height = 77,
                                .h = {1, 2, 4},
                                .v = {2, 1, 1},
                                .density = 9,
                                .range = 99},
               3);
    check_kind((mrt_coefs_kind){.components = 3,
                                .width = 101,
                                .height = 35,
                                .h = {2, 3, 1},
                                .v = {1, 1, 3},
                                .density = 9,
                                .range = 99,
                                .script = 2},
               4);
}

static void test_several_scans(void **state)
{
    (void)state;
    for (uint64_t k = 0; k < 24; k++)
        check_kind((mrt_coefs_kind){.components = 3,
                                    .width = sizes[k % 6][0],
                                    .height = sizes[k % 6][1],
                                    .h = {2, 1, 1},
                                    .v = {(int)(1 + k % 2), 1, 1},
                                    .script = (int)(1 + k / 6 % 2),
                                    .restart = k % 3 ? 0 : 3,
                                    .optimize = k % 2,
                                    .density = 12,
                                    .range = 200},
                   k + 9);
}

static void test_large(void **state)
{
    (void)state; /* several feeds, full blocks */
    check_kind((mrt_coefs_kind){.components = 3,
                                .width = 900,
                                .height = 300,
                                .h = {2, 1, 1},
                                .v = {2, 1, 1},
                                .density = 60,
                                .range = 1023},
               5);
    check_kind(
        (mrt_coefs_kind){
            .components = 1, .width = 2000, .height = 200, .density = 2, .range = 3, .optimize = true},
        6);
    check_kind(
        (mrt_coefs_kind){
            .components = 3, .width = 800, .height = 300, .density = 20, .range = 30, .restart = 100},
        7);
}

static void test_wild(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        size_t bytes;
        uint8_t *data = mrt_coefs_wild(1 + (uint32_t)(seed * 37 % 300), 1 + (uint32_t)(seed * 11 % 60),
                                       seed % 3 ? 0 : (int)(seed % 11), seed, &bytes);
        check_good(data, bytes, seed);
        free(data);
    }
}

static void test_levels(void **state)
{
    (void)state;
    const mri_simd_level before = mri_simd();
    static const mri_simd_level levels[] = {MRI_SIMD_PLAIN, MRI_SIMD_AVX2, MRI_SIMD_AVX512, MRI_SIMD_NEON};
    for (int k = 0; k < 4; k++) {
        if (!mri_simd_use(levels[k])) continue;
        test_wild(NULL);
        test_large(NULL);
    }
    mri_simd_use(before);
}

/* ---- parts ---- */

static void test_unstuff(void **state)
{
    (void)state;
    uint8_t src[700], plain[700 + 2 * MRI_UNSTUFF_SLACK], fast[700 + 2 * MRI_UNSTUFF_SLACK];
    uint64_t seed = 1;
    for (int turn = 0; turn < 20000; turn++) {
        const size_t bytes = draw(&seed, sizeof src + 1), want = 1 + draw(&seed, 700);
        const uint32_t rate = 1 + draw(&seed, 100), markers = draw(&seed, 2);
        for (size_t k = 0; k < bytes; k++) {
            src[k] = (uint8_t)draw(&seed, 255);
            if (draw(&seed, rate)) continue;
            src[k] = 0xff;
            if (k + 1 < bytes && (!markers || draw(&seed, 20))) src[++k] = 0;
        }
        size_t used, used_fast;
        memset(fast, 1, sizeof fast);
        const size_t out = mri_unstuff_plain(src, bytes, plain, want, &used),
                     out_fast = mri_unstuff(src, bytes, fast, want, &used_fast);
        const size_t common = out < out_fast ? out : out_fast;
        MRT_TRUE(memcmp(plain, fast, common) == 0);
        MRT_TRUE(out < want + MRI_UNSTUFF_SLACK && out_fast < want + MRI_UNSTUFF_SLACK);
        if (out < want || out_fast < want) MRT_TRUE(out == out_fast && used == used_fast);
        MRT_EQ(used_fast, out_fast + mri_count_ff(fast, out_fast));
        MRT_TRUE(used_fast <= bytes);
    }
}

/* ---- damage ---- */

/* What libjpeg thinks of it decides: clean, then the same coefficients; else refused. */
static int check_any(const uint8_t *data, size_t bytes)
{
    mr_error err = MR_ERROR_INIT;
    mrt_coefs theirs;
    picture p;
    mrt_coefs_read(&theirs, data, bytes, MANY);
    const int rc = decode(data, bytes, NULL, 0, NULL, &p, &err);
    if (rc == MR_OK && !theirs.clean) fail_msg("libjpeg says: %s; we decode", theirs.text);
    if (rc == MR_EFORMAT && theirs.clean) fail_msg("libjpeg decodes; we say: %s", err.text);
    if (rc == MR_OK) MRT_TRUE(same(&p, &theirs));
    else MRT_TRUE(rc == MR_EFORMAT || rc == MR_EUNSUPPORTED);
    picture_free(&p);
    mrt_coefs_free(&theirs);
    return rc;
}

static const mrt_coefs_kind small_kinds[] = {
    {.components = 3, .width = 40, .height = 24, .h = {2, 1, 1}, .v = {2, 1, 1}, .density = 8, .range = 40},
    {.components = 3,
     .width = 40,
     .height = 24,
     .h = {2, 1, 1},
     .v = {1, 1, 1},
     .density = 3,
     .range = 9,
     .restart = 2},
    {.components = 3, .width = 30, .height = 20, .density = 8, .range = 40, .script = 2, .optimize = true},
    {.components = 1, .width = 60, .height = 40, .density = 20, .range = 400, .optimize = true},
};

static void test_truncated(void **state)
{
    (void)state;
    for (size_t n = 0; n < MRI_ARRAY_COUNT(small_kinds); n++) {
        size_t bytes;
        uint8_t *data = mrt_coefs_write(&small_kinds[n], n + 1, &bytes);
        for (size_t cut = 0; cut < bytes; cut++) {
            uint8_t *part = malloc(cut + 1);
            memcpy(part, data, cut);
            MRT_TRUE(check_any(part, cut) != MR_OK);
            free(part);
        }
        free(data);
    }
}

static void test_flipped_bits(void **state)
{
    (void)state;
    uint64_t seed = 77;
    uint32_t good = 0, left = 0, turns = 0;
    for (size_t n = 0; n < MRI_ARRAY_COUNT(small_kinds); n++) {
        size_t bytes;
        uint8_t *data = mrt_coefs_write(&small_kinds[n], n + 1, &bytes);
        for (int turn = 0; turn < 2500; turn++, turns++) {
            const size_t at = draw(&seed, (uint32_t)bytes), bit = draw(&seed, 8);
            data[at] ^= (uint8_t)(1u << bit);
            const int rc = check_any(data, bytes);
            good += rc == MR_OK;
            left += rc == MR_EUNSUPPORTED;
            data[at] ^= (uint8_t)(1u << bit);
        }
        free(data);
    }
    MRT_TRUE(good > turns / 20); /* the two sides of the test both occur */
    MRT_TRUE(left < turns / 4);  /* and little is left to libjpeg */
}

static void test_left_to_libjpeg(void **state)
{
    (void)state;
    static const mrt_coefs_kind progressive = {
        .components = 3, .width = 30, .height = 30, .density = 5, .range = 9, .progressive = true};
    mr_error err = MR_ERROR_INIT;
    size_t bytes;
    picture p;
    uint8_t *data = mrt_coefs_write(&progressive, 1, &bytes);
    MRT_EQ(decode(data, bytes, NULL, 0, NULL, &p, &err), MR_EUNSUPPORTED);
    free(data);
    data = mrt_coefs_write(&small_kinds[0], 1, &bytes);
    uint8_t *more = malloc(bytes + 10);
    for (size_t stray = 0; stray <= 10; stray++) { /* bytes too many before the end */
        memcpy(more, data, bytes - 2);
        memset(more + bytes - 2, 0x11, stray);
        memcpy(more + bytes - 2 + stray, "\xff\xd9", 2);
        MRT_EQ(check_any(more, bytes + stray), stray == 0 ? MR_OK : stray < 8 ? MR_EUNSUPPORTED : MR_EFORMAT);
    }
    free(more);
    free(data);
}

/* A picture of one MCU and then as much as there are buffers, and far more. */
static void test_left_over_by_far(void **state)
{
    (void)state;
    static const mrt_coefs_kind one = {.components = 1, .width = 8, .height = 8, .density = 0, .range = 1};
    static const mri_simd_level levels[] = {MRI_SIMD_PLAIN, MRI_SIMD_AVX2, MRI_SIMD_AVX512, MRI_SIMD_NEON};
    const mri_simd_level before = mri_simd();
    size_t bytes;
    picture p;
    uint8_t *data = mrt_coefs_write(&one, 1, &bytes);
    for (size_t stray = 4000; stray < (size_t)1 << 22; stray += stray / 7) {
        uint8_t *more = malloc(bytes + stray);
        memcpy(more, data, bytes - 2);
        memset(more + bytes - 2, 0x11, stray);
        memcpy(more + bytes - 2 + stray, "\xff\xd9", 2);
        for (size_t k = 0; k < MRI_ARRAY_COUNT(levels); k++) {
            mr_error err = MR_ERROR_INIT;
            if (!mri_simd_use(levels[k])) continue;
            MRT_EQ(decode(more, bytes + stray, NULL, 0, NULL, &p, &err), MR_EFORMAT);
            MRT_HAS(err.text, "found more data");
            MRT_OK(decode(data, bytes, NULL, 0, NULL, &p, &err), &err); /* nothing of it is left behind */
            picture_free(&p);
        }
        free(more);
    }
    mri_simd_use(before);
    free(data);
}

/* ---- entry points ---- */

static void test_damaged_entries(void **state)
{
    (void)state;
    static const mrt_coefs_kind kinds[] = {
        {.components = 3,
         .width = 150,
         .height = 60,
         .h = {2, 1, 1},
         .v = {2, 1, 1},
         .density = 8,
         .range = 40},
        {.components = 1, .width = 200, .height = 40, .density = 4, .range = 10, .restart = 9},
    };
    for (size_t n = 0; n < 2; n++) {
        mr_error err = MR_ERROR_INIT;
        size_t bytes, entries_bytes;
        void *entries;
        uint8_t *data = mrt_coefs_write(&kinds[n], 3, &bytes);
        MRT_OK(mri_jpeg_entries_build_gap(entropy, data, bytes, 4, &entries, &entries_bytes, &err), &err);
        mrt_coefs theirs;
        mrt_coefs_read(&theirs, data, bytes, MANY);
        uint32_t refused = 0;
        for (size_t bit = 0; bit < 8 * entries_bytes; bit++) {
            uint8_t *bad = malloc(entries_bytes);
            memcpy(bad, entries, entries_bytes);
            bad[bit / 8] ^= (uint8_t)(1u << bit % 8);
            picture p;
            const int rc = decode(data, bytes, bad, entries_bytes, NULL, &p, &err); /* passes them all, so
                                                                                       finds them all */
            MRT_TRUE(rc == MR_OK || rc == MR_EFORMAT);
            if (rc == MR_OK) MRT_TRUE(same(&p, &theirs));
            refused += rc != MR_OK;
            picture_free(&p);
            const mri_jpeg_frame *f;
            if (mri_entropy_open(entropy, data, bytes, bad, entries_bytes, &f, &err) == MR_OK) {
                mri_block_window w[4];
                uint64_t seed = bit;
                random_window(f, &seed, w);
                if (decode(data, bytes, bad, entries_bytes, w, &p, &err) == MR_OK)
                    picture_free(&p); /* no crash */
            }
            free(bad);
        }
        MRT_TRUE(refused >= 8 * entries_bytes - 16); /* all but the zero bits after the last row and the first
                                                      * row's own */
        for (size_t cut = 0; cut < entries_bytes; cut++) {
            uint8_t *part = malloc(cut + 1);
            memcpy(part, entries, cut);
            picture p;
            MRT_EQ(decode(data, bytes, part, cut, NULL, &p, &err), MR_EFORMAT);
            free(part);
        }
        mrt_coefs_free(&theirs);
        free(entries);
        free(data);
    }
}

static void test_entries_of_another(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    size_t bytes, entries_bytes;
    void *entries;
    picture p;
    uint8_t *data = mrt_coefs_write(&small_kinds[0], 3, &bytes);
    MRT_OK(mri_jpeg_entries_build(entropy, data, bytes, &entries, &entries_bytes, &err), &err);
    data[200] ^= 1; /* a table */
    MRT_EQ(decode(data, bytes, entries, entries_bytes, NULL, &p, &err), MR_EFORMAT);
    MRT_HAS(err.text, "entry points");
    free(entries);
    free(data);
}

/* ---- memory ---- */

static void test_no_allocation(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    for (size_t n = 0; n < MRI_ARRAY_COUNT(small_kinds); n++) {
        size_t bytes;
        uint8_t *data = mrt_coefs_write(&small_kinds[n], 1, &bytes);
        const mri_jpeg_frame *f;
        mri_block_window w[4];
        picture p;
        MRT_OK(mri_entropy_open(entropy, data, bytes, NULL, 0, &f, &err), &err);
        whole_window(f, w);
        picture_take(&p, f, w);
        mrt_fail_alloc_at(0);
        MRT_OK(mri_entropy_open(entropy, data, bytes, NULL, 0, &f, &err), &err);
        MRT_OK(mri_entropy_window(entropy, w, &err), &err);
        MRT_OK(decode_rows(f, &p, &err), &err);
        MRT_TRUE(!mrt_alloc_failed());
        mrt_fail_alloc_at(-1);
        picture_free(&p);
        free(data);
    }
    mri_entropy *none = entropy;
    mrt_fail_alloc_at(0);
    MRT_EQ(mri_entropy_create(&none), MR_ENOMEM);
    mrt_fail_alloc_at(-1);
    MRT_TRUE(none == NULL);
    size_t bytes, out_bytes;
    void *out;
    uint8_t *data = mrt_coefs_write(&small_kinds[0], 1, &bytes);
    for (int n = 0; n < 2; n++) {
        mrt_fail_alloc_at(n);
        MRT_EQ(mri_jpeg_entries_build(entropy, data, bytes, &out, &out_bytes, &err), MR_ENOMEM);
        mrt_fail_alloc_at(-1);
    }
    free(data);
}

static void test_wrong_use(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    const mri_jpeg_frame *f;
    size_t bytes;
    uint8_t *data = mrt_coefs_write(&small_kinds[0], 1, &bytes);
    MRT_OK(mri_entropy_open(entropy, data, bytes, NULL, 0, &f, &err), &err);
    mri_block_window w[4];
    whole_window(f, w);
    w[1].x1++;
    MRT_EQ(mri_entropy_window(entropy, w, &err), MR_EINVAL);
    whole_window(f, w);
    MRT_OK(mri_entropy_window(entropy, w, &err), &err);
    picture p;
    picture_take(&p, f, w);
    mri_block_rows out[4];
    for (int k = 0; k < 3; k++) out[k] = (mri_block_rows){p.block[k], p.last[k], w[k].x1};
    MRT_OK(mri_entropy_rows(entropy, 0, out, &err), &err);
    MRT_EQ(mri_entropy_rows(entropy, 0, out, &err), MR_EINVAL);
    MRT_EQ(mri_entropy_end(entropy, &err), MR_EINVAL);
    picture_free(&p);
    free(data);
}

/* ---- real pictures ---- */

/* Every step-th JPEG in a tar file: 512-byte headers with the size in octal at 124, contents up to the next
 * 512. */
static void test_real(void **state)
{
    (void)state;
    const char *path = mrt_data("imagenet-sample/imagenet-sample.tar");
    FILE *tar = path ? fopen(path, "rb") : NULL;
    if (!tar) {
        print_message("imagenet-sample.tar is not below MILLRACE_DATA: left out\n");
        return;
    }
    char header[513] = "";
    int pictures = 0;
    for (long at = 0; fseek(tar, at, SEEK_SET) == 0 && fread(header, 512, 1, tar) == 1 && header[0];) {
        const size_t bytes = strtoul(header + 124, NULL, 8);
        if (header[156] == '0' && pictures++ % 40 == 0) {
            uint8_t *data = malloc(bytes);
            MRT_EQ(fread(data, 1, bytes, tar), bytes);
            check_good(data, bytes, (uint64_t)pictures);
            free(data);
        }
        at += 512 + (long)((bytes + 511) / 512 * 512);
    }
    MRT_TRUE(pictures > 40);
    fclose(tar);
}

static int open_decoder(void **state)
{
    (void)state;
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
        cmocka_unit_test(test_unstuff),
        cmocka_unit_test(test_gray),
        cmocka_unit_test(test_samplings),
        cmocka_unit_test(test_chroma_larger),
        cmocka_unit_test(test_several_scans),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_wild),
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_flipped_bits),
        cmocka_unit_test(test_left_to_libjpeg),
        cmocka_unit_test(test_damaged_entries),
        cmocka_unit_test(test_left_over_by_far),
        cmocka_unit_test(test_entries_of_another),
        cmocka_unit_test(test_no_allocation),
        cmocka_unit_test(test_wrong_use),
        cmocka_unit_test(test_real),
    };
    return cmocka_run_group_tests(tests, open_decoder, close_decoder);
}
