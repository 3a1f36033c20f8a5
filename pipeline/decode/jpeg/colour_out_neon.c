/* pipeline/decode/jpeg/colour_out_neon.c: 16 pixels at a time; the rest in plain C. See colour_out.c for what
 * is computed. */
#include "pipeline/decode/jpeg/colour_out.h"

#if defined(__aarch64__)
#include <arm_neon.h>

#define STEP 16

static inline int16x8_t luma_of(uint8x8_t y)
{
    return vaddq_s16(vreinterpretq_s16_u16(vshll_n_u8(y, MRI_YCC_BITS)), vdupq_n_s16(MRI_YCC_ROUND));
}

/* (x - 128) * 2^8 */
static inline int16x8_t chroma_of(uint8x8_t x)
{
    return vreinterpretq_s16_u16(vshlq_n_u16(vmovl_u8(veor_u8(x, vdup_n_u8(0x80))), 8));
}

/* The instruction doubles and rounds at 2^16, which is rounding at 2^15. */
static inline int16x8_t part(int16x8_t x, int16_t weight) { return vqrdmulhq_n_s16(x, weight); }

static inline uint8x16_t rounded(int16x8_t lower, int16x8_t upper)
{
    return vcombine_u8(vqshrun_n_s16(lower, MRI_YCC_BITS), vqshrun_n_s16(upper, MRI_YCC_BITS));
}

static inline void converted(uint8x8_t y, uint8x8_t cb, uint8x8_t cr, int16x8_t out[3])
{
    const int16x8_t luma = luma_of(y), blue = chroma_of(cb), red = chroma_of(cr);
    out[0] = vaddq_s16(luma, part(red, MRI_YCC_R_CR));
    out[1] = vsubq_s16(luma, vaddq_s16(part(blue, MRI_YCC_G_CB), part(red, MRI_YCC_G_CR)));
    out[2] = vaddq_s16(luma, part(blue, MRI_YCC_B_CB));
}

static void ycc(const uint8_t *y, const uint8_t *cb, const uint8_t *cr, size_t count, uint8_t *rgb)
{
    size_t i = 0;
    for (; i + STEP <= count; i += STEP) {
        const uint8x16_t luma = vld1q_u8(y + i), blue = vld1q_u8(cb + i), red = vld1q_u8(cr + i);
        int16x8_t lower[3], upper[3];
        converted(vget_low_u8(luma), vget_low_u8(blue), vget_low_u8(red), lower);
        converted(vget_high_u8(luma), vget_high_u8(blue), vget_high_u8(red), upper);
        const uint8x16x3_t out = {
            {rounded(lower[0], upper[0]), rounded(lower[1], upper[1]), rounded(lower[2], upper[2])}};
        vst3q_u8(rgb + 3 * i, out);
    }
    mri_colour_plain.ycc(y + i, cb + i, cr + i, count - i, rgb + 3 * i);
}

static void planes(const uint8_t *r, const uint8_t *g, const uint8_t *b, size_t count, uint8_t *rgb)
{
    size_t i = 0;
    for (; i + STEP <= count; i += STEP) {
        const uint8x16x3_t out = {{vld1q_u8(r + i), vld1q_u8(g + i), vld1q_u8(b + i)}};
        vst3q_u8(rgb + 3 * i, out);
    }
    mri_colour_plain.planes(r + i, g + i, b + i, count - i, rgb + 3 * i);
}

static void gray(const uint8_t *level, size_t count, uint8_t *rgb)
{
    planes(level, level, level, count, rgb);
}

const mri_colour_variant mri_colour_neon = {ycc, planes, gray};

#endif
