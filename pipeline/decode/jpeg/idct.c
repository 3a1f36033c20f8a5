/* pipeline/decode/jpeg/idct.c: the inverse cosine transform of 8 x 8 blocks, in integers: its specification
 * and the choice of a variant.
 *
 *   coefficient * quantiser, low 16 bits                                        int16
 *     --- rows: 8 inputs x weights * 2^14.5, rounded to 4.5 bits, saturated --> int16
 *     --- columns: the same weights, rounded to 0 bits, + 128, saturated -----> uint8
 *
 * Weights are rounded to integers, everything after that is exact, so every order of adding gives the same
 * bits. No sum leaves int32, whatever the 16-bit inputs: the weights of one sample sum to 61212; times 32768,
 * plus the rounding terms, is below 2^31. 4.5 bits after the point (a factor of 16 sqrt(2)) leave +-1448
 * between the passes: a row of 8-bit samples needs +-363, the rest is for quantisers that overshoot.
 *
 * A result is less than 0.6 from the real number (0.5 would be rounding alone), mean 0.0002 more than
 * rounding alone, and another integer than the nearest in 1 of 100 samples; within the limits of IEEE 1180:
 * tests/pipeline/decode/test_idct.c. A block of DC alone is rounded correctly.
 *
 * A row of blocks is first sorted by how much there is in each: DC only, only the 4 x 4 lowest frequencies,
 * more. In photographs these follow each other at random, and a branch guessed wrongly costs as much as a
 * block. */
#include "pipeline/decode/jpeg/idct_variants.h"

struct variant {
    mri_idct_sort *sort;
    mri_idct_blocks *full, *low;
};

/* ---- the specification ---- */

/* Eight inputs to eight sums, scaled by 2^14.5. */
static void pass(const int16_t x[8], int32_t out[8])
{
    const int32_t outer04 = MRI_IDCT_C4 * (x[0] + x[4]), outer26 = MRI_IDCT_C2 * x[2] + MRI_IDCT_C6 * x[6];
    const int32_t inner04 = MRI_IDCT_C4 * (x[0] - x[4]), inner26 = MRI_IDCT_C6 * x[2] - MRI_IDCT_C2 * x[6];
    const int32_t even[4] = {outer04 + outer26, inner04 + inner26, inner04 - inner26, outer04 - outer26};
    const int32_t odd[4] = {MRI_IDCT_C1 * x[1] + MRI_IDCT_C3 * x[3] + MRI_IDCT_C5 * x[5] + MRI_IDCT_C7 * x[7],
                            MRI_IDCT_C3 * x[1] - MRI_IDCT_C7 * x[3] - MRI_IDCT_C1 * x[5] - MRI_IDCT_C5 * x[7],
                            MRI_IDCT_C5 * x[1] - MRI_IDCT_C1 * x[3] + MRI_IDCT_C7 * x[5] + MRI_IDCT_C3 * x[7],
                            MRI_IDCT_C7 * x[1] - MRI_IDCT_C5 * x[3] + MRI_IDCT_C3 * x[5] -
                                MRI_IDCT_C1 * x[7]};
    for (int i = 0; i < 4; i++) {
        out[i] = even[i] + odd[i];
        out[7 - i] = even[i] - odd[i];
    }
}

static int16_t dequantised(int16_t coef, uint16_t quant)
{
    return (int16_t)(uint16_t)((uint32_t)(uint16_t)coef * quant);
}

static void block_plain(const int16_t coef[MRI_JPEG_BLOCK], const uint16_t quant[MRI_JPEG_BLOCK],
                        uint8_t *dst, size_t stride)
{
    int16_t columns[8][8]; /* [x][v] */
    int32_t sums[8];
    for (int v = 0; v < 8; v++) {
        int16_t row[8];
        for (int u = 0; u < 8; u++) row[u] = dequantised(coef[8 * v + u], quant[8 * v + u]);
        pass(row, sums);
        for (int x = 0; x < 8; x++) {
            const int32_t r = (sums[x] + MRI_IDCT_ROUND_1) >> MRI_IDCT_SHIFT_1;
            columns[x][v] = (int16_t)(r < INT16_MIN ? INT16_MIN : r > INT16_MAX ? INT16_MAX : r);
        }
    }
    for (int x = 0; x < 8; x++) {
        pass(columns[x], sums);
        for (int y = 0; y < 8; y++)
            dst[(size_t)y * stride + (size_t)x] =
                mri_clamp_u8((sums[y] + MRI_IDCT_ROUND_2) >> MRI_IDCT_SHIFT_2);
    }
}

static void blocks_plain(const int16_t (*coef)[MRI_JPEG_BLOCK], const uint16_t quant[MRI_JPEG_BLOCK],
                         uint64_t which, uint8_t *dst, size_t stride)
{
    while (which) {
        const uint32_t i = mri_idct_next(&which);
        block_plain(coef[i], quant, dst + 8 * (size_t)i, stride);
    }
}

/* A block of DC alone is flat, and both passes are exact but for the last rounding: this is what they
 * give. */
static uint8_t mean(int16_t coef, uint16_t quant)
{
    return mri_clamp_u8(((dequantised(coef, quant) + 4) >> 3) + 128);
}

static void fill(int16_t coef, uint16_t quant, uint8_t *dst, size_t stride)
{
    const uint64_t row = UINT64_C(0x0101010101010101) * mean(coef, quant);
    for (int y = 0; y < 8; y++) memcpy(dst + (size_t)y * stride, &row, 8);
}

void mri_idct_means(const int16_t (*coef)[MRI_JPEG_BLOCK], const uint16_t quant[MRI_JPEG_BLOCK],
                    uint32_t count, uint8_t *dst)
{
    for (uint32_t i = 0; i < count; i++) dst[i] = mean(coef[i][0], quant[0]);
}

/* ---- a row of blocks ---- */

mri_idct_sorts mri_idct_plain_sort(const uint8_t *last, uint32_t count)
{
    mri_idct_sorts by = {0, 0, 0};
    for (uint32_t i = 0; i < count; i++) {
        by.flat |= (uint64_t)(last[i] == 0) << i;
        by.full |= (uint64_t)(last[i] >= MRI_IDCT_LOW_COUNT) << i;
        by.low |= UINT64_C(1) << i;
    }
    by.low &= ~(by.flat | by.full);
    return by;
}

static const struct variant *variant(void)
{
    static const struct variant plain = {mri_idct_plain_sort, blocks_plain, blocks_plain};
#if defined(__x86_64__)
    static const struct variant avx2 = {mri_idct_avx2_sort, mri_idct_avx2, mri_idct_avx2_low};
    static const struct variant avx512 = {mri_idct_avx512_sort, mri_idct_avx512, mri_idct_avx512_low};
    const mri_simd_level level = mri_simd();
    return level == MRI_SIMD_AVX512 ? &avx512 : level == MRI_SIMD_AVX2 ? &avx2 : &plain;
#elif defined(__aarch64__)
    static const struct variant neon = {mri_idct_plain_sort, mri_idct_neon, mri_idct_neon_low};
    return mri_simd() == MRI_SIMD_NEON ? &neon : &plain;
#else
    return &plain;
#endif
}

static void chunk(const struct variant *use, const int16_t (*coef)[MRI_JPEG_BLOCK], const uint8_t *last,
                  const uint16_t quant[MRI_JPEG_BLOCK], uint32_t count, uint8_t *dst, size_t stride)
{
    mri_idct_sorts by = use->sort(last, count);
    while (by.flat) {
        const uint32_t i = mri_idct_next(&by.flat);
        fill(coef[i][0], quant[0], dst + 8 * (size_t)i, stride);
    }
    if (by.low) use->low(coef, quant, by.low, dst, stride);
    if (by.full) use->full(coef, quant, by.full, dst, stride);
}

void mri_idct_row(const int16_t (*coef)[MRI_JPEG_BLOCK], const uint8_t *last,
                  const uint16_t quant[MRI_JPEG_BLOCK], uint32_t count, uint8_t *dst, size_t stride)
{
    const struct variant *use = variant();
    for (uint32_t at = 0; at < count; at += MRI_IDCT_CHUNK) {
        const uint32_t n = count - at < MRI_IDCT_CHUNK ? count - at : MRI_IDCT_CHUNK;
        chunk(use, coef + at, last + at, quant, n, dst + 8 * (size_t)at, stride);
    }
}
