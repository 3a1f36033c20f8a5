/* pipeline/jpeg/huffman.h: Huffman tables made fast: a window of the next bits to everything they say. Private.
 *
 * An AC entry holds the first symbol of the window with its value, and the second one as well when both fit (56 % of the symbols
 * of photographs come in such pairs), so that the chain look up - shift - look up, which is what entropy decoding waits for, is
 * walked once for two. A DC entry holds the lengths only; the difference is cut out of the bits beside the chain. */
#ifndef MRI_HUFFMAN_H
#define MRI_HUFFMAN_H

#include "base/util.h"

#define MRI_AC_BITS 12 /* window: 32 KiB a table; 11 and 13 measured slower on photographs */
#define MRI_DC_BITS 9
#define MRI_HUFF_WINDOW(bits) (1u << (bits)) /* entries */

/* AC entry, from bit
 *   0  bits of all its symbols          8  how far the first goes: run + 1, ZRL 16
 *  16  how far all go                  24  bits of the first symbol; MRI_AC_ODD: size of its value
 *  32  value of the first, 16 bits     48  value of the last, 16 bits
 * Alone: last = first. An end of block counts as one that goes MRI_AC_END with value 0. When the value of the first does not
 * fit in the window, "how far all go" is MRI_AC_ODD, and bits those of code and value; they are 0 when not even the code does. */
#define MRI_AC_END 128
#define MRI_AC_ODD 255

/* DC entry, from bit 0: bits of code and value; 8: of the code; 16: of the value. 0: the code does not fit. */

#define MRI_HUFF_MAX_SYMBOLS 256
#define MRI_HUFF_SPEC (16 + MRI_HUFF_MAX_SYMBOLS)

typedef struct mri_huff_codes {
    uint32_t past[17];   /* codes of l bits, moved to the top of 16, are below past[l] */
    int32_t  offset[17]; /* code of l bits + offset[l]: place of its symbol */
    uint8_t  spec[MRI_HUFF_SPEC]; /* 16 counts, symbols: what the table was made of */
    uint32_t spec_bytes; /* 0: of nothing yet */
} mri_huff_codes;

typedef struct mri_huff_ac {
    _Alignas(64) uint64_t window[MRI_HUFF_WINDOW(MRI_AC_BITS)];
    mri_huff_codes codes;
} mri_huff_ac;

typedef struct mri_huff_dc {
    _Alignas(64) uint32_t window[MRI_HUFF_WINDOW(MRI_DC_BITS)];
    mri_huff_codes codes;
} mri_huff_dc;

/* spec: 16 counts and their symbols, at most 256. False: no prefix code, or (DC) a difference of over 15 bits; t is then empty. */
bool mri_huff_ac_build(mri_huff_ac *t, const uint8_t *spec);
bool mri_huff_dc_build(mri_huff_dc *t, const uint8_t *spec);
/* Made of this very spec? */
bool mri_huff_is(const mri_huff_codes *c, const uint8_t *spec);

/* bits: the next 16 at the top of 64. Length of the code there in the low 8 bits, its symbol above; 0 when there is none. */
uint32_t mri_huff_search(const mri_huff_codes *c, uint64_t bits);

#endif
