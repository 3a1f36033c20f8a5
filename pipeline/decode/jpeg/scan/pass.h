/* pipeline/decode/jpeg/scan/pass.h: blocks of one AC scan of a progressive picture. Private.
 *
 * A block has a mask of its coefficients other than 0, bit k for zigzag position k, in every block of the
 * picture; the coefficients themselves exist for the wanted blocks alone. A refinement scan needs the mask:
 * its bits follow the zeros and the coefficients other than 0 that a run passes (T.81, G.1.2.3).
 *
 * As in scan.h the feed holds more than the longest block after the position, or bytes that belong to no
 * picture, so that the loops check their position once per block. */
#ifndef MRI_PASS_H
#define MRI_PASS_H

#include "pipeline/decode/jpeg/scan/scan.h"

#define MRI_PASS_BITS 10 /* of a window; longer codes are rare and are searched */
/* No block is longer: 63 symbols of 16 + 15 bits, or as many of 17 bits and a correction bit; the same of 10
 * DC symbols; and the 8 bytes that a load reads ahead. */
#define MRI_PASS_BLOCK_BYTES (64 * 31 / 8 + 16)

/* Entry of a symbol, from bit
 *   0  5 bits: of code and value
 *   5  4 bits: run of zeros; of an end of blocks: the size of its count
 *   9  4 bits: size of the value
 *  13  2 bits: kind */
typedef enum mri_pass_kind {
    MRI_PASS_VALUE = 0,
    MRI_PASS_ZEROS = 1, /* 16 zeros */
    MRI_PASS_END = 2,   /* of this block, and of as many more as the count says */
    MRI_PASS_ODD = 3    /* the code is longer than the window, in no table, or stands for too large a value */
} mri_pass_kind;

static inline unsigned mri_pass_bits(uint32_t e) { return e & 31; }
static inline unsigned mri_pass_run_of(uint32_t e) { return e >> 5 & 15; }
static inline unsigned mri_pass_size(uint32_t e) { return e >> 9 & 15; }
static inline unsigned mri_pass_kind_of(uint32_t e) { return e >> 13; }

typedef struct mri_pass_table {
    _Alignas(64) uint16_t window[1 << MRI_PASS_BITS];
    mri_huff_codes codes;
    unsigned most; /* size of a value */
} mri_pass_table;

/* spec as for mri_huff_ac_build(); symbols with values of more than `most` bits become odd. False: no prefix
 * code. */
bool mri_pass_table_build(mri_pass_table *t, const uint8_t *spec, unsigned most);
/* The entry of a code that the windows do not have. bits: the next 16 at the top. MRI_PASS_ODD << 13: invalid
 * code. */
uint32_t mri_pass_search(const mri_pass_table *t, uint64_t bits);

typedef struct mri_pass_run {
    mri_bits bits;
    const uint8_t *limit; /* no block begins when bits.from is beyond */
    const mri_pass_table *table;
    unsigned first, last, low; /* as in the scan */
    bool refine;
    uint32_t ends;                   /* blocks from here on that have no further symbols */
    uint64_t *mask;                  /* of the next block */
    int16_t (*coef)[MRI_JPEG_BLOCK]; /* of the first wanted column */
    uint32_t x, wide;                /* next block, counted from the first wanted column, modulo 2^32; wanted
                                        columns */
    bool bad;                        /* something that an encoder does not write */
} mri_pass_run;

/* Decode up to count blocks of a row; returns how many: fewer at the limit, or when bad. Every variant gives
 * the same. */
uint32_t mri_pass_blocks(mri_pass_run *r, uint32_t count);
uint32_t mri_pass_blocks_avx2(mri_pass_run *r, uint32_t count);

#endif
