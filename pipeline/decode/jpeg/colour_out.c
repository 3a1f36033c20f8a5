/* pipeline/decode/jpeg/colour_out.c: planes to interleaved RGB: the specification and the choice of a
 * variant.
 *
 * A result is less than 0.52 from the real number, so it is the nearest integer but where that is nearly a
 * tie: 0.4 % of all. Every triple is tried in tests/pipeline/decode/test_colour_out.c. Cb = Cr = 128 gives R
 * = G = B = Y. */
#include "pipeline/decode/jpeg/colour_out.h"

/* weight / 2^13 * (x - 128), rounded to MRI_YCC_BITS after the point. */
static int32_t part(uint8_t x, int32_t weight)
{
    return (((int32_t)x - 128) * 256 * weight + (1 << 14)) >> 15;
}

static void ycc_plain(const uint8_t *y, const uint8_t *cb, const uint8_t *cr, size_t count, uint8_t *rgb)
{
    for (size_t i = 0; i < count; i++) {
        const int32_t luma = y[i] * (1 << MRI_YCC_BITS) + MRI_YCC_ROUND;
        rgb[3 * i] = mri_clamp_u8((luma + part(cr[i], MRI_YCC_R_CR)) >> MRI_YCC_BITS);
        rgb[3 * i + 1] =
            mri_clamp_u8((luma - part(cb[i], MRI_YCC_G_CB) - part(cr[i], MRI_YCC_G_CR)) >> MRI_YCC_BITS);
        rgb[3 * i + 2] = mri_clamp_u8((luma + part(cb[i], MRI_YCC_B_CB)) >> MRI_YCC_BITS);
    }
}

static void planes_plain(const uint8_t *r, const uint8_t *g, const uint8_t *b, size_t count, uint8_t *rgb)
{
    for (size_t i = 0; i < count; i++) {
        rgb[3 * i] = r[i];
        rgb[3 * i + 1] = g[i];
        rgb[3 * i + 2] = b[i];
    }
}

static void gray_plain(const uint8_t *gray, size_t count, uint8_t *rgb)
{
    planes_plain(gray, gray, gray, count, rgb);
}

const mri_colour_variant mri_colour_plain = {ycc_plain, planes_plain, gray_plain};

static const mri_colour_variant *variant(void)
{
    switch (mri_simd()) {
#if defined(__x86_64__)
    case MRI_SIMD_AVX512: return &mri_colour_avx512;
    case MRI_SIMD_AVX2: return &mri_colour_avx2;
#elif defined(__aarch64__)
    case MRI_SIMD_NEON: return &mri_colour_neon;
#endif
    default: return &mri_colour_plain;
    }
}

void mri_ycc_to_rgb(const uint8_t *y, const uint8_t *cb, const uint8_t *cr, size_t count, uint8_t *rgb)
{
    variant()->ycc(y, cb, cr, count, rgb);
}

void mri_planes_to_rgb(const uint8_t *r, const uint8_t *g, const uint8_t *b, size_t count, uint8_t *rgb)
{
    variant()->planes(r, g, b, count, rgb);
}

void mri_gray_to_rgb(const uint8_t *gray, size_t count, uint8_t *rgb) { variant()->gray(gray, count, rgb); }
