/* tests/pipeline/decode/test_idct.c: coefficients to samples: the variants against each other, against the
 * real transform, at the edges of memory. Colours: test_colour_out.c. */
#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/simd.h"
#include "mrt.h"
#include "tests/pipeline/decode/pixel_work.h"

#define GUARD 0xa5
#define EDGE  96 /* guard bytes before and after */

static mrt_blocks blocks;

typedef struct rows {
    uint8_t bytes[EDGE + 8 * (8 * MRT_BLOCKS + 40) + EDGE];
} rows;

static void transform(rows *out, const mrt_blocks *b, uint32_t first, uint32_t count, size_t stride)
{
    memset(out->bytes, GUARD, sizeof out->bytes);
    mri_idct_row((const int16_t(*)[MRI_JPEG_BLOCK])b->coef + first, b->last + first, b->quant, count,
                 out->bytes + EDGE, stride);
}

/* Every byte outside the blocks is as it was. */
static void untouched(const rows *out, uint32_t count, size_t stride)
{
    for (size_t i = 0; i < sizeof out->bytes; i++) {
        const size_t at = i - EDGE;
        if (i < EDGE || at >= 8 * stride || at % stride >= 8 * (size_t)count) MRT_EQ(out->bytes[i], GUARD);
    }
}

static void variants_give_the_same_bits(void **state)
{
    static rows want, got;
    (void)state;
    for (uint64_t seed = 0; seed < 90; seed++) {
        mrt_blocks_fill(&blocks, seed);
        const uint32_t count = seed < 60 ? (uint32_t)seed % 21 : 110 + 6 * ((uint32_t)seed - 60),
                       first = (uint32_t)(seed * 7 % 16);
        const size_t stride = 8 * (size_t)count + seed % 37;
        MRT_TRUE(mri_simd_use(MRI_SIMD_PLAIN));
        transform(&want, &blocks, first, count, stride);
        if (stride > 0) untouched(&want, count, stride);
        for (int level = 1; level <= MRI_SIMD_NEON; level++) {
            if (!mri_simd_use((mri_simd_level)level)) continue;
            transform(&got, &blocks, first, count, stride);
            assert_memory_equal(want.bytes, got.bytes, sizeof want.bytes);
        }
    }
}

/* last may only shorten the work: 63, or anything not below the truth, gives the same. */
static void last_changes_nothing(void **state)
{
    static rows want, got;
    (void)state;
    for (int level = 0; level <= MRI_SIMD_NEON; level++) {
        if (!mri_simd_use((mri_simd_level)level)) continue;
        for (uint64_t seed = 0; seed < 30; seed++) {
            mrt_blocks_fill(&blocks, seed);
            transform(&want, &blocks, 0, MRT_BLOCKS, 8 * MRT_BLOCKS);
            for (uint32_t i = 0; i < MRT_BLOCKS; i++)
                if (blocks.last[i] < 9) blocks.last[i] = 9; /* still the short way, for those with DC only */
            transform(&got, &blocks, 0, MRT_BLOCKS, 8 * MRT_BLOCKS);
            assert_memory_equal(want.bytes, got.bytes, sizeof want.bytes);
            memset(blocks.last, 63, sizeof blocks.last);
            transform(&got, &blocks, 0, MRT_BLOCKS, 8 * MRT_BLOCKS);
            assert_memory_equal(want.bytes, got.bytes, sizeof want.bytes);
        }
    }
}

static void dc_alone_is_exact(void **state)
{
    static rows got;
    (void)state;
    memset(&blocks, 0, sizeof blocks);
    for (int k = 0; k < MRI_JPEG_BLOCK; k++) blocks.quant[k] = 1;
    for (int level = 0; level <= MRI_SIMD_NEON; level++) {
        if (!mri_simd_use((mri_simd_level)level)) continue;
        for (int32_t from = INT16_MIN; from <= INT16_MAX; from += 256) {
            for (int way = 0; way < 3; way++) {
                memset(blocks.last, way == 0 ? 0 : way == 1 ? 9 : 63, sizeof blocks.last);
                for (int i = 0; i < 256; i++) blocks.coef[i][0] = (int16_t)(from + i);
                transform(&got, &blocks, 0, 256, 8 * 256);
                for (int i = 0; i < 256; i++) {
                    const double exact = floor((from + i) / 8.0 + 0.5) + 128;
                    const uint8_t want = (uint8_t)(exact < 0 ? 0 : exact > 255 ? 255 : exact);
                    for (int y = 0; y < 8; y++)
                        for (int x = 0; x < 8; x++)
                            if (got.bytes[EDGE + (size_t)y * 2048 + (size_t)(8 * i + x)] != want)
                                fail_msg("%s: DC %d, way %d: %d, not %d",
                                         mri_simd_name((mri_simd_level)level), from + i, way,
                                         got.bytes[EDGE + (size_t)y * 2048 + (size_t)(8 * i + x)], want);
                }
            }
        }
    }
}

/* The result is the low 16 bits of the product, transformed: the same as a coefficient that is that
 * already. */
static void products_wrap(void **state)
{
    static mrt_blocks wrapped;
    static rows want, got;
    (void)state;
    for (uint64_t seed = 2; seed < 32; seed += 3) { /* quantisers of any 16 bits */
        mrt_blocks_fill(&blocks, seed);
        memset(blocks.last, 63, sizeof blocks.last);
        wrapped = blocks;
        for (uint32_t i = 0; i < MRT_BLOCKS; i++)
            for (int k = 0; k < MRI_JPEG_BLOCK; k++)
                wrapped.coef[i][k] = (int16_t)(uint16_t)((int64_t)blocks.coef[i][k] * blocks.quant[k]);
        for (int k = 0; k < MRI_JPEG_BLOCK; k++) wrapped.quant[k] = 1;
        for (int level = 0; level <= MRI_SIMD_NEON; level++) {
            if (!mri_simd_use((mri_simd_level)level)) continue;
            transform(&got, &blocks, 0, MRT_BLOCKS, 8 * MRT_BLOCKS);
            transform(&want, &wrapped, 0, MRT_BLOCKS, 8 * MRT_BLOCKS);
            assert_memory_equal(want.bytes, got.bytes, sizeof want.bytes);
        }
    }
}

/* ---- against the real transform ---- */

static double basis[8][8]; /* [frequency][sample] */

static void make_basis(void)
{
    for (int k = 0; k < 8; k++)
        for (int i = 0; i < 8; i++)
            basis[k][i] = (k ? 0.5 : sqrt(0.125)) * cos((2 * i + 1) * k * acos(-1) / 16);
}

static void real_transform(const double in[64], double out[64], bool inverse)
{
    double half[64];
    for (int v = 0; v < 8; v++)
        for (int x = 0; x < 8; x++) {
            half[8 * v + x] = 0;
            for (int u = 0; u < 8; u++)
                half[8 * v + x] += in[8 * v + u] * (inverse ? basis[u][x] : basis[x][u]);
        }
    for (int y = 0; y < 8; y++)
        for (int x = 0; x < 8; x++) {
            out[8 * y + x] = 0;
            for (int v = 0; v < 8; v++)
                out[8 * y + x] += half[8 * v + x] * (inverse ? basis[v][y] : basis[y][v]);
        }
}

struct error {
    /* of the difference to the correctly rounded, as IEEE 1180 has it */
    double place_square[64], place_sum[64];
    double most;                           /* |result - real number| */
    double sum, abs_sum, rounding_abs_sum; /* of result - real number; of |nearest integer - real number| */
    uint64_t place_count[64], count;
};

static void compare(struct error *e, const rows *got, const mrt_blocks *b)
{
    for (uint32_t i = 0; i < MRT_BLOCKS; i++) {
        double in[64], real[64];
        for (int k = 0; k < 64; k++) in[k] = (double)b->coef[i][k] * b->quant[k];
        real_transform(in, real, true);
        for (int p = 0; p < 64; p++) {
            const double want = real[p] + 128,
                         is = got->bytes[EDGE + (size_t)(p / 8) * 8 * MRT_BLOCKS + 8 * i + (size_t)(p % 8)];
            if (want < 0 || want > 255) { /* clipping hides the rest */
                MRT_TRUE(fabs(is - (want < 0 ? 0 : 255)) <= 0);
                continue;
            }
            const double d = is - want, off = is - floor(want + 0.5);
            e->most = fmax(e->most, fabs(d));
            e->sum += d;
            e->abs_sum += fabs(d);
            e->rounding_abs_sum += fabs(floor(want + 0.5) - want);
            e->count++;
            e->place_square[p] += off * off;
            e->place_sum[p] += off;
            e->place_count[p]++;
        }
    }
}

static void report(const char *what, const struct error *e, double most)
{
    double square = 0, sum = 0;
    for (int p = 0; p < 64; p++) {
        square += e->place_square[p];
        sum += e->place_sum[p];
        MRT_TRUE(e->place_square[p] / (double)e->place_count[p] <= 0.06);
        MRT_TRUE(fabs(e->place_sum[p]) / (double)e->place_count[p] <= 0.015);
    }
    const double n = (double)e->count;
    printf("%s: |result - real| at most %.4f, mean %.5f (of rounding alone %.5f), bias %.6f; "
           "not the nearest in %.3f %%\n",
           what, e->most, e->abs_sum / n, e->rounding_abs_sum / n, e->sum / n, 100 * square / n);
    MRT_TRUE(e->most <= most);
    MRT_TRUE(square / n <= 0.02);
    MRT_TRUE(fabs(sum) / n <= 0.0015);
    MRT_TRUE(e->abs_sum / n - e->rounding_abs_sum / n < 0.001);
}

/* Samples low..high, transformed, rounded to integers: what IEEE 1180 asks of a decoder. */
static void noise_blocks(mrt_blocks *b, int low, int high, uint64_t seed)
{
    static uint32_t noise[MRT_BLOCKS][64];
    mrt_noise(noise, sizeof noise, seed);
    for (uint32_t i = 0; i < MRT_BLOCKS; i++) {
        double in[64], out[64];
        for (int p = 0; p < 64; p++) in[p] = low + (int)(noise[i][p] % (uint32_t)(high - low + 1));
        real_transform(in, out, false);
        for (int k = 0; k < 64; k++) b->coef[i][k] = (int16_t)fmin(2047, fmax(-2048, floor(out[k] + 0.5)));
    }
    for (int k = 0; k < 64; k++) b->quant[k] = 1;
    memset(b->last, 63, sizeof b->last);
}

static void near_the_real_transform(void **state)
{
    static const int ranges[4][2] = {{-5, 5}, {-128, 127}, {-256, 255}, {-300, 300}};
    static rows got;
    (void)state;
    for (int r = 0; r < 4; r++) {
        struct error e = {0};
        char what[64];
        for (uint64_t seed = 0; seed < 34; seed++) { /* 10200 blocks */
            noise_blocks(&blocks, ranges[r][0], ranges[r][1], 100 * (uint64_t)r + seed);
            transform(&got, &blocks, 0, MRT_BLOCKS, 8 * MRT_BLOCKS);
            compare(&e, &got, &blocks);
        }
        snprintf(what, sizeof what, "noise %d..%d", ranges[r][0], ranges[r][1]);
        report(what, &e, 0.6);
    }
}

/* Few and coarse coefficients, as after quantisation. */
static void near_the_real_transform_quantised(void **state)
{
    static rows got;
    struct error e = {0};
    (void)state;
    for (uint64_t seed = 0; seed < 34; seed++) {
        noise_blocks(&blocks, -128, 127, 1000 + seed);
        for (int k = 0; k < 64; k++) blocks.quant[k] = (uint16_t)(3 + 2 * (k / 8 + k % 8) + seed % 5);
        for (uint32_t i = 0; i < MRT_BLOCKS; i++)
            for (int k = 0; k < 64; k++) {
                const int spread = 1 + (k / 8) * (k / 8) + (k % 8) * (k % 8);
                blocks.coef[i][k] = (int16_t)(blocks.coef[i][k] * 8 / spread / blocks.quant[k]);
            }
        transform(&got, &blocks, 0, MRT_BLOCKS, 8 * MRT_BLOCKS);
        compare(&e, &got, &blocks);
    }
    report("quantised", &e, 0.6);
}

/* The largest sums there are, of both signs: still the right end of the range at that sample, in every
 * variant. */
static void no_sum_overflows(void **state)
{
    static rows got;
    (void)state;
    memset(&blocks, 0, sizeof blocks);
    memset(blocks.last, 63, sizeof blocks.last);
    for (int k = 0; k < 64; k++) blocks.quant[k] = 1;
    for (int i = 0; i < 128; i++)
        for (int k = 0; k < 64; k++) {
            const double weight = basis[k / 8][i % 64 / 8] * basis[k % 8][i % 8] * (i < 64 ? 1 : -1);
            blocks.coef[i][k] = weight < 0 ? INT16_MIN : INT16_MAX;
        }
    for (int level = 0; level <= MRI_SIMD_NEON; level++) {
        if (!mri_simd_use((mri_simd_level)level)) continue;
        transform(&got, &blocks, 0, 128, 8 * 128);
        for (size_t i = 0; i < 128; i++)
            MRT_EQ(got.bytes[EDGE + i % 64 / 8 * 8 * 128 + 8 * i + i % 8], i < 64 ? 255 : 0);
    }
}

/* ---- edges of memory ---- */

/* bytes that end where reading or writing on is a fault. */
static uint8_t *at_the_edge(size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (bytes + page - 1) / page;
    uint8_t *p = mmap(NULL, (pages + 1) * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MRT_TRUE(p != MAP_FAILED);
    MRT_EQ(mprotect(p + pages * page, page, PROT_NONE), 0);
    return p + pages * page - bytes;
}

static void nothing_outside_is_touched(void **state)
{
    const uint32_t most = 9;
    int16_t(*coef)[MRI_JPEG_BLOCK] = (void *)at_the_edge(most * sizeof *coef);
    uint8_t *last = at_the_edge(most), *dst = at_the_edge(8 * 8 * (size_t)most);
    uint16_t *quant = (void *)at_the_edge(sizeof *quant * MRI_JPEG_BLOCK);
    (void)state;
    for (int level = 0; level <= MRI_SIMD_NEON; level++) {
        if (!mri_simd_use((mri_simd_level)level)) continue;
        for (uint64_t seed = 0; seed < 12; seed++)
            for (uint32_t count = 1; count <= most; count++) {
                mrt_blocks_fill(&blocks, seed);
                const uint32_t skip = most - count;
                memcpy(coef + skip, blocks.coef, count * sizeof *coef);
                memcpy(last + skip, blocks.last, count);
                memcpy(quant, blocks.quant, sizeof blocks.quant);
                mri_idct_row((const int16_t(*)[MRI_JPEG_BLOCK])coef + skip, last + skip, quant, count,
                             dst + 64 * (size_t)skip, 8 * (size_t)count);
            }
    }
}

static void bits_are_as_recorded(void **state)
{
    (void)state;
    for (int level = 0; level <= MRI_SIMD_NEON; level++) {
        if (!mri_simd_use((mri_simd_level)level)) continue;
        const uint64_t hash = mrt_pixel_hash();
        if (hash != MRT_PIXEL_HASH)
            fail_msg("%s: %016llx", mri_simd_name((mri_simd_level)level), (unsigned long long)hash);
    }
}

static void zigzag_is_right(void **state)
{
    static const uint8_t begin[15] = {0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4};
    uint8_t place[MRI_JPEG_BLOCK];
    (void)state;
    mrt_zigzag(place);
    assert_memory_equal(place, begin, sizeof begin);
    MRT_EQ(place[63], 63);
}

int main(void)
{
    make_basis();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zigzag_is_right),
        cmocka_unit_test(near_the_real_transform), /* first: the variant chosen by itself */
        cmocka_unit_test(near_the_real_transform_quantised),
        cmocka_unit_test(variants_give_the_same_bits),
        cmocka_unit_test(last_changes_nothing),
        cmocka_unit_test(dc_alone_is_exact),
        cmocka_unit_test(products_wrap),
        cmocka_unit_test(no_sum_overflows),
        cmocka_unit_test(nothing_outside_is_touched),
        cmocka_unit_test(bits_are_as_recorded),
    };
    return mrt_run(tests);
}
