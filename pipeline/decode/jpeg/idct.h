/* pipeline/decode/jpeg/idct.h: coefficients to samples, samples to colours: the arithmetic of the pixel path.
 * Private.
 *
 * Integers throughout: the plain C variant is the specification and every other one gives its bits. Distance
 * to the real transform is stated in idct.c and tested. */
#ifndef MRI_IDCT_H
#define MRI_IDCT_H

#include "formats/image/jpeg_frame.h"

/* Dequantise and transform count neighbouring blocks of one row: block i to the 8 x 8 samples at dst + 8 i,
 * rows stride bytes apart; nothing outside those count * 64 bytes is written. coef, quant: natural order,
 * 64-byte aligned. last[i] as in mri_block_rows: it may shorten the work, never change the result. A
 * dequantised coefficient is the low 16 bits of the product. */
void mri_idct_row(const int16_t (*coef)[MRI_JPEG_BLOCK], const uint8_t *last,
                  const uint16_t quant[MRI_JPEG_BLOCK], uint32_t count, uint8_t *dst, size_t stride);

/* The mean of each block: the sample that mri_idct_row() gives to all of a block of DC alone. */
void mri_idct_means(const int16_t (*coef)[MRI_JPEG_BLOCK], const uint16_t quant[MRI_JPEG_BLOCK],
                    uint32_t count, uint8_t *dst);

/* count pixels, planes to interleaved RGB: full-range BT.601 (JFIF, T.871). rgb may not overlap the
 * planes. */
void mri_ycc_to_rgb(const uint8_t *y, const uint8_t *cb, const uint8_t *cr, size_t count, uint8_t *rgb);
void mri_planes_to_rgb(const uint8_t *r, const uint8_t *g, const uint8_t *b, size_t count, uint8_t *rgb);
void mri_gray_to_rgb(const uint8_t *gray, size_t count, uint8_t *rgb);

/* v or the nearest of 0 and 255. Without a branch: on noise one would be guessed wrongly half the time. */
static inline uint8_t mri_clamp_u8(int32_t v)
{
    v &= ~(v >> 31);
    return (uint8_t)(v | (255 - v) >> 31);
}

#endif
