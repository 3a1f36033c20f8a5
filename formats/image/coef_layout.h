/* formats/image/coef_layout.h: the layout of a coefficient payload, and the loops that expand its blocks.
 * Private to coef*.c; every number here is specified in FORMAT.md, section 4.
 *
 *   | head 32 | quantisation tables | row index | row | row | ... | slack |
 *   a row:    | a length per block | a DC per block | the blocks' other coefficients, one after the other |
 *   a block:  | mode | nonzero map, cut behind its last byte in use | bytes | nibbles | escapes |
 *
 * Lengths and DC are stored apart from the rest, so that the position of a block is a sum of lengths: the
 * loops need not decode one block to find the next. */
#ifndef MRI_COEF_LAYOUT_H
#define MRI_COEF_LAYOUT_H

#include "formats/image/coef.h"

enum {
    MRI_COEF_HEAD = 32,
    MRI_COEF_COMPONENT_AT = 16, /* 4 bytes each: id, h, v, table */
    MRI_COEF_TABLE_BYTES = 2 * MRI_JPEG_BLOCK,
    MRI_COEF_BLOCK_FIXED = 3, /* bytes of a block in front of its row: length, DC */
    MRI_COEF_SLACK = 128, /* the most a loop reads past a block's first byte without looking at its length */
    MRI_COEF_MAP_BYTES = 7,  /* mode: bytes of the map, less one */
    MRI_COEF_TIER_SHIFT = 3, /* mode: how far the bytes go, an index into mri_coef_tier */
    MRI_COEF_TIER = 15,
    MRI_COEF_ESCAPE = 128, /* mode: some bytes have a high byte too */
};
#define MRI_COEF_MAX_BYTES ((uint64_t)1 << 30)

/* Zigzag positions below mri_coef_tier_end[t], as bits. */
extern const uint8_t mri_coef_tier_end[MRI_COEF_TIER + 1];
extern const uint64_t mri_coef_tier[MRI_COEF_TIER + 1];

/* The loops' view of one run of blocks. data is readable for MRI_COEF_SLACK bytes after the last block. */
typedef struct mri_coef_run {
    const uint8_t *lengths, *dc, *data; /* of the first block */
    uint32_t count;
    int16_t (*coef)[MRI_JPEG_BLOCK];
    uint8_t *last;
} mri_coef_run;

/* Expand the blocks. Returns 0, or another value when a block does not match its length. For any bytes only
 * the requested blocks are written, and nothing past the slack is read. */
uint64_t mri_coef_run_plain(const mri_coef_run *run);
#if defined(__x86_64__)
uint64_t mri_coef_run_avx2(const mri_coef_run *run);
uint64_t mri_coef_run_avx512(const mri_coef_run *run);
#endif

/* Has a block an AC coefficient of more than 10 bits? */
static inline bool mri_coef_is_beyond(const int16_t *coef)
{
    unsigned beyond = 0;
    for (int j = 1; j < MRI_JPEG_BLOCK; j++) beyond |= (uint16_t)(coef[j] + 1023) > 2046;
    return beyond;
}

/* Write one block in plain C; returns its bytes, 0 for a block with nothing but its DC. */
size_t mri_coef_block_put(const int16_t *coef, uint8_t *to);
/* Write a row's blocks to `to`, as coef_pack.c does, their lengths and DCs; returns the bytes of the blocks.
 * *beyond: set to true for an AC coefficient that a baseline JPEG cannot have. MRI_COEF_PUT_SLACK bytes from
 * the beginning of the last block on may be overwritten. */
enum { MRI_COEF_PUT_SLACK = 1 + 8 + 63 + 1 + 64 };
#if defined(__x86_64__)
size_t mri_coef_blocks_put_avx2(const int16_t (*row)[MRI_JPEG_BLOCK], uint32_t blocks, uint8_t *lengths,
                                uint8_t *dc, uint8_t *to, bool *beyond);
size_t mri_coef_blocks_put_avx512(const int16_t (*row)[MRI_JPEG_BLOCK], uint32_t blocks, uint8_t *lengths,
                                  uint8_t *dc, uint8_t *to, bool *beyond);
#endif

/* The high bytes of a block whose mode has MRI_COEF_ESCAPE, over its low ones in coef; *bytes is what they
 * take. */
uint64_t mri_coef_escapes(const uint8_t *at, size_t room, uint64_t map, unsigned tier, int16_t *coef,
                          size_t *bytes);

#endif
