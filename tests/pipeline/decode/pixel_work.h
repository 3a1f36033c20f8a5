/* tests/pipeline/decode/pixel_work.h: blocks of coefficients of every kind, and one number for all that
 * pipeline/decode/jpeg/idct.h computes. Without cmocka: variants_pixels.c uses it too, which runs where
 * cmocka is not. */
#ifndef MRT_PIXEL_WORK_H
#define MRT_PIXEL_WORK_H

#include "pipeline/decode/jpeg/idct.h"

#define MRT_BLOCKS 300u

/* 64-byte aligned as idct.h asks. */
typedef struct mrt_blocks {
    _Alignas(64) int16_t coef[MRT_BLOCKS][MRI_JPEG_BLOCK];
    _Alignas(64) uint16_t quant[MRI_JPEG_BLOCK];
    uint8_t last[MRT_BLOCKS];
} mrt_blocks;

/* Zigzag position -> place, from its definition. */
void mrt_zigzag(uint8_t place[MRI_JPEG_BLOCK]);

/* Kinds in turn: DC only, low frequencies, as in pictures, any 16 bits, extremes; quantisers of pictures, 1,
 * any 16 bits. */
void mrt_blocks_fill(mrt_blocks *b, uint64_t seed);

/* Over a fixed workload, with the variant in use. */
uint64_t mrt_pixel_hash(void);
#define MRT_PIXEL_HASH UINT64_C(0xb899815813618e45)

#endif
