/* pipeline/decode/jpeg/scan/huffman.h: Huffman tables made fast: map a window of the next bits to all symbols
 * in it. Private.
 *
 * An AC entry holds the first symbol of the window with its value, and the second one as well when both fit,
 * so that the chain look up - shift - look up, which is what entropy decoding waits for, is walked 11 times
 * instead of 18 for an average block of photographs (ImageNet). A DC entry holds the lengths only; the
 * difference is extracted from the bits outside of the chain. */
#ifndef MRI_HUFFMAN_H
#define MRI_HUFFMAN_H

#include "base/util.h"

#define MRI_AC_BITS                                                                                          \
    12 /* 16 KiB a table; 11 and 13 take 4 and 6 % longer over photographs: more look-ups, more cache misses \
        */
#define MRI_DC_BITS           9              /* all usual codes */
#define MRI_HUFF_WINDOW(bits) (1u << (bits)) /* entries */

/* AC entry, in 32 bits, so that two tables share the first cache with the decoded data. From bit
 *   0  6 bits: bits of all its symbols, as a shift wants them
 *   6  7 bits: how far all go: run + 1 each, ZRL 16; MRI_AC_END more when the last is an end of block
 *  13  5 bits: how far the first goes; 31 when it has no value at all
 *  18  8 bits, signed: value of the first      26  6 bits, signed: value of the last
 * A symbol alone has a last one of value 0 in the same place: store the last before the first.
 * When the first symbol's code fits in the window but its value does not fit in there or in the entry, "how
 * far all go" is MRI_AC_ODD, bits count code and value, and the size of the value is in the place of the
 * first value. When not even the code does: bits 0, value 0. */
#define MRI_AC_END 64
#define MRI_AC_ODD 127

static inline unsigned mri_ac_bits(uint32_t e) { return e & 63; }
static inline unsigned mri_ac_all(uint32_t e) { return e >> 6 & 127; }
static inline unsigned mri_ac_first(uint32_t e) { return e >> 13 & 31; }
static inline int mri_ac_first_value(uint32_t e) { return (int8_t)(e >> 18); }
static inline int mri_ac_last_value(uint32_t e) { return (int32_t)e >> 26; }

/* DC entry, from bit 0: bits of code and value; 8: of the code; 16: of the value. 0: the code does not
 * fit. */

/* Skimming entry, in 16 bits: all symbols whose codes lie in the window; the bits of the last value need not.
 *   0  5 bits: bits of all symbols, at most MRI_SKIM_BITS
 *   8  8 bits: how far all go, at most 62, and MRI_SKIM_END more when the last is an end of block
 * Added to the position k of the last coefficient (0 to 62) this gives: below 63, the block goes on; 63 or
 * without MRI_SKIM_ODD, the block is over; with it, read one symbol with mri_huff_search(). */
#define MRI_SKIM_BITS 25 /* bits that a load leaves at least after a DC symbol */
#define MRI_SKIM_END  129
#define MRI_SKIM_ODD  64

#define MRI_HUFF_MAX_SYMBOLS 256
#define MRI_HUFF_SPEC        (16 + MRI_HUFF_MAX_SYMBOLS)

typedef struct mri_huff_codes {
    uint32_t past[17];           /* codes of l bits, moved to the top of 16, are below past[l] */
    int32_t offset[17];          /* code of l bits + offset[l]: place of its symbol */
    uint8_t spec[MRI_HUFF_SPEC]; /* 16 counts, symbols: the specification of the table */
    uint32_t spec_bytes;         /* 0: of nothing yet */
} mri_huff_codes;

typedef struct mri_huff_ac {
    _Alignas(64) uint32_t window[MRI_HUFF_WINDOW(MRI_AC_BITS)]; /* valid when stores */
    _Alignas(64) uint16_t skim[MRI_HUFF_WINDOW(MRI_AC_BITS)];   /* valid when skims */
    mri_huff_codes codes;
    bool stores, skims;
} mri_huff_ac;

typedef struct mri_huff_dc {
    _Alignas(64) uint32_t window[MRI_HUFF_WINDOW(MRI_DC_BITS)];
    mri_huff_codes codes;
} mri_huff_dc;

/* The codes alone. False: no prefix code; c is then empty. */
bool mri_huff_codes_build(mri_huff_codes *c, const uint8_t *spec);
/* spec: 16 counts and their symbols, at most 256. False: no prefix code, or (DC) a difference of over 15
 * bits; t is then empty. An AC table has its codes alone. */
bool mri_huff_ac_build(mri_huff_ac *t, const uint8_t *spec);
bool mri_huff_dc_build(mri_huff_dc *t, const uint8_t *spec);
/* Make window[] or skim[] of an AC table that was built; nothing when it is there. */
void mri_huff_windows_build(mri_huff_ac *t);
void mri_huff_skim_build(mri_huff_ac *t);
/* Skimming entries of windows of `bits` bits, at most MRI_AC_BITS. */
void mri_huff_skim_windows(const mri_huff_codes *c, unsigned bits, uint16_t *out);
/* Made of this very spec? */
bool mri_huff_is(const mri_huff_codes *c, const uint8_t *spec);

/* bits: the next 16 at the top of 64. Length of the code there in the low 8 bits, its symbol above; 0 for an
 * invalid code. */
uint32_t mri_huff_search(const mri_huff_codes *c, uint64_t bits);

#endif
