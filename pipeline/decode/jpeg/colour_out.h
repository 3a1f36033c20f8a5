/* pipeline/decode/jpeg/colour_out.h: code shared by the variants of the last step, planes to interleaved
 * pixels. Private to colour_out*.c; others use idct.h. */
#ifndef MRI_COLOUR_OUT_H
#define MRI_COLOUR_OUT_H

#include "base/simd.h"
#include "pipeline/decode/jpeg/idct.h"

/* T.871: R = Y + 1.402 (Cr - 128), G = Y - 0.344136 (Cb - 128) - 0.714136 (Cr - 128), B = Y + 1.772 (Cb -
 * 128); times 2^13. (x - 128) * 2^8 times these, rounded at 2^15, is the product with 6 bits after the point;
 * nothing leaves int16. */
#define MRI_YCC_R_CR  11485
#define MRI_YCC_G_CB  2819
#define MRI_YCC_G_CR  5850
#define MRI_YCC_B_CB  14516
#define MRI_YCC_BITS  6
#define MRI_YCC_ROUND (1 << (MRI_YCC_BITS - 1))

typedef void mri_colour_planes(const uint8_t *a, const uint8_t *b, const uint8_t *c, size_t count,
                               uint8_t *rgb);

typedef struct mri_colour_variant {
    mri_colour_planes *ycc, *planes;
    void (*gray)(const uint8_t *gray, size_t count, uint8_t *rgb);
} mri_colour_variant;

extern const mri_colour_variant mri_colour_plain;
#if defined(__x86_64__)
extern const mri_colour_variant mri_colour_avx2, mri_colour_avx512;
#elif defined(__aarch64__)
extern const mri_colour_variant mri_colour_neon;
#endif

#endif
