/* pipeline/decode/jpeg/idct_neon.c: one block at a time, eight rows or columns side by side. idct.c defines
 * the computation.
 *
 * Rows: the block is transposed, so that register u holds frequency u of all eight rows; columns: transposed
 * back. */
#include "pipeline/decode/jpeg/idct_variants.h"

#if defined(__aarch64__)
#include <arm_neon.h>

struct sums {
    int32x4_t even[4], odd[4];
};

static inline void transpose(int16x8_t r[8])
{
    int16x8_t a[8];
    int32x4_t b[8];
    for (int i = 0; i < 8; i += 2) {
        a[i] = vtrn1q_s16(r[i], r[i + 1]);
        a[i + 1] = vtrn2q_s16(r[i], r[i + 1]);
    }
    for (int i = 0; i < 8; i += 4)
        for (int j = i; j < i + 2; j++) {
            b[j] = vtrn1q_s32(vreinterpretq_s32_s16(a[j]), vreinterpretq_s32_s16(a[j + 2]));
            b[j + 2] = vtrn2q_s32(vreinterpretq_s32_s16(a[j]), vreinterpretq_s32_s16(a[j + 2]));
        }
    for (int i = 0; i < 4; i++) {
        r[i] =
            vreinterpretq_s16_s64(vtrn1q_s64(vreinterpretq_s64_s32(b[i]), vreinterpretq_s64_s32(b[i + 4])));
        r[i + 4] =
            vreinterpretq_s16_s64(vtrn2q_s64(vreinterpretq_s64_s32(b[i]), vreinterpretq_s64_s32(b[i + 4])));
    }
}

/* in[k]: input k of four transforms. low: inputs 4..7 are zero. */
static inline __attribute__((always_inline)) struct sums pass(const int16x4_t in[8], int32_t round, bool low)
{
    static const int16_t even[4][2] = {{MRI_IDCT_C2, MRI_IDCT_C6},
                                       {MRI_IDCT_C6, -MRI_IDCT_C2},
                                       {-MRI_IDCT_C6, MRI_IDCT_C2},
                                       {-MRI_IDCT_C2, -MRI_IDCT_C6}};
    static const int16_t odd[4][4] = {{MRI_IDCT_C1, MRI_IDCT_C3, MRI_IDCT_C5, MRI_IDCT_C7},
                                      {MRI_IDCT_C3, -MRI_IDCT_C7, -MRI_IDCT_C1, -MRI_IDCT_C5},
                                      {MRI_IDCT_C5, -MRI_IDCT_C1, MRI_IDCT_C7, MRI_IDCT_C3},
                                      {MRI_IDCT_C7, -MRI_IDCT_C5, MRI_IDCT_C3, -MRI_IDCT_C1}};
    const int32x4_t dc = vmlal_n_s16(vdupq_n_s32(round), in[0], MRI_IDCT_C4);
    const int32x4_t outer = low ? dc : vmlal_n_s16(dc, in[4], MRI_IDCT_C4);
    const int32x4_t inner = low ? dc : vmlsl_n_s16(dc, in[4], MRI_IDCT_C4);
    struct sums s;
    for (int i = 0; i < 4; i++) {
        s.even[i] = vmlal_n_s16(i == 0 || i == 3 ? outer : inner, in[2], even[i][0]);
        s.odd[i] = vmlal_n_s16(vmull_n_s16(in[1], odd[i][0]), in[3], odd[i][1]);
        if (low) continue;
        s.even[i] = vmlal_n_s16(s.even[i], in[6], even[i][1]);
        s.odd[i] = vmlal_n_s16(vmlal_n_s16(s.odd[i], in[5], odd[i][2]), in[7], odd[i][3]);
    }
    return s;
}

static inline __attribute__((always_inline)) struct sums half_pass(const int16x8_t in[8], bool upper,
                                                                   int32_t round, bool low)
{
    int16x4_t half[8];
    for (int k = 0; k < 8; k++) half[k] = upper ? vget_high_s16(in[k]) : vget_low_s16(in[k]);
    return pass(half, round, low);
}

/* The rows' sums to their samples between the passes; r[x] holds sample x of all rows. */
static inline __attribute__((always_inline)) void row_pass(int16x8_t r[8], bool low)
{
    const struct sums a = half_pass(r, false, 0, low);
    /* Rows 4..7 of a low block are zero, and so are their samples. */
    struct sums b = {0};
    if (!low) b = half_pass(r, true, 0, false);
    for (int i = 0; i < 4; i++) { /* the narrowing shift rounds and saturates */
        r[i] = vcombine_s16(vqrshrn_n_s32(vaddq_s32(a.even[i], a.odd[i]), MRI_IDCT_SHIFT_1),
                            vqrshrn_n_s32(vaddq_s32(b.even[i], b.odd[i]), MRI_IDCT_SHIFT_1));
        r[7 - i] = vcombine_s16(vqrshrn_n_s32(vsubq_s32(a.even[i], a.odd[i]), MRI_IDCT_SHIFT_1),
                                vqrshrn_n_s32(vsubq_s32(b.even[i], b.odd[i]), MRI_IDCT_SHIFT_1));
    }
}

static inline __attribute__((always_inline)) void column_pass(const int16x8_t r[8], uint8_t *to,
                                                              size_t stride, bool low)
{
    const struct sums a = half_pass(r, false, MRI_IDCT_ROUND_2, low),
                      b = half_pass(r, true, MRI_IDCT_ROUND_2, low);
    for (int i = 0; i < 4; i++) { /* the upper 16 bits, then the rest of the shift */
        const int16x8_t sum = vcombine_s16(vaddhn_s32(a.even[i], a.odd[i]), vaddhn_s32(b.even[i], b.odd[i]));
        const int16x8_t difference =
            vcombine_s16(vsubhn_s32(a.even[i], a.odd[i]), vsubhn_s32(b.even[i], b.odd[i]));
        vst1_u8(to + (size_t)i * stride, vqshrun_n_s16(sum, MRI_IDCT_SHIFT_2 - 16));
        vst1_u8(to + (size_t)(7 - i) * stride, vqshrun_n_s16(difference, MRI_IDCT_SHIFT_2 - 16));
    }
}

static inline __attribute__((always_inline)) void block(const int16_t *coef, const uint16_t *quant,
                                                        uint8_t *to, size_t stride, bool low)
{
    int16x8_t r[8];
    for (int v = 0; v < 8; v++)
        r[v] = low && v > 3
                   ? vdupq_n_s16(0)
                   : vmulq_s16(vld1q_s16(coef + 8 * v), vreinterpretq_s16_u16(vld1q_u16(quant + 8 * v)));
    transpose(r);
    row_pass(r, low);
    transpose(r);
    column_pass(r, to, stride, low);
}

void mri_idct_neon(const int16_t (*coef)[MRI_JPEG_BLOCK], const uint16_t quant[MRI_JPEG_BLOCK],
                   uint64_t which, uint8_t *dst, size_t stride)
{
    while (which) {
        const uint32_t i = mri_idct_next(&which);
        block(coef[i], quant, dst + 8 * (size_t)i, stride, false);
    }
}

void mri_idct_neon_low(const int16_t (*coef)[MRI_JPEG_BLOCK], const uint16_t quant[MRI_JPEG_BLOCK],
                       uint64_t which, uint8_t *dst, size_t stride)
{
    while (which) {
        const uint32_t i = mri_idct_next(&which);
        block(coef[i], quant, dst + 8 * (size_t)i, stride, true);
    }
}

#endif
