/* pipeline/decode/jpeg/scan/scan.h: the inner parts of the entropy decoder: bytes without stuffing, and runs
 * of MCUs. Private.
 *
 *   file bytes --unstuff--> feed (a few KiB, stays in the first cache) --run--> coefficients
 *
 * A run decodes whole MCUs and checks only its position once per MCU: the feed always holds more than the
 * longest MCU after that position, or bytes that belong to no picture, so nothing is read or written outside
 * however bad the bits are. */
#ifndef MRI_SCAN_H
#define MRI_SCAN_H

#include "formats/image/jpeg_frame.h"
#include "pipeline/decode/jpeg/scan/huffman.h"

#define MRI_MCU_BLOCKS 10
/* No MCU is longer: per block 64 symbols of 16 + 15 bits; and the 8 bytes a reader looks ahead. */
#define MRI_MCU_BYTES     (MRI_MCU_BLOCKS * 64 * 31 / 8 + 8)
#define MRI_FEED_BYTES    (8192 + MRI_MCU_BYTES)
#define MRI_UNSTUFF_SLACK 64 /* bytes that mri_unstuff() may write after the returned length */

/* ---- stuffing ---- */

/* Copy entropy-coded bytes to dst, FF 00 as FF, until at least want bytes are there or a marker (FF and no
 * 00) or the end stands next. *used: bytes taken from src. Returns bytes written, below want +
 * MRI_UNSTUFF_SLACK only; as many more may be overwritten. */
size_t mri_unstuff(const uint8_t *src, size_t bytes, uint8_t *dst, size_t want, size_t *used);
size_t mri_unstuff_plain(const uint8_t *src, size_t bytes, uint8_t *dst, size_t want, size_t *used);
size_t mri_unstuff_avx512(const uint8_t *src, size_t bytes, uint8_t *dst, size_t want, size_t *used);

/* How many of these bytes are FF: what stuffing adds to them in the file. */
size_t mri_count_ff(const uint8_t *p, size_t bytes);
size_t mri_count_ff_avx512(const uint8_t *p, size_t bytes);

/* ---- runs ---- */

typedef struct mri_bits {
    uint64_t window;     /* next bits from the top; bits below the counted ones are loaded again */
    int count;           /* 0 to 63 */
    const uint8_t *from; /* next byte to load: the place is 8 * from - count */
} mri_bits;

typedef struct mri_run_block {
    const mri_huff_dc *dc;
    const mri_huff_ac *ac;
    int32_t *prediction;
    int16_t (*coef)[MRI_JPEG_BLOCK];
    uint8_t *last;
    uint32_t x, step; /* from the first wanted column; modulo 2^32 */
    uint32_t wide;    /* wanted columns; 0: none of this row */
} mri_run_block;

typedef struct mri_run {
    mri_bits bits;
    const uint8_t *limit; /* no MCU begins when bits.from is beyond */
    mri_run_block block[MRI_MCU_BLOCKS];
    uint32_t block_count;
    bool bad; /* a code that is in no table */
} mri_run;

/* Decode up to count MCUs; returns how many: fewer at the limit, or when bad. Every variant gives the
 * same. */
uint32_t mri_run_mcus(mri_run *r, uint32_t count);
uint32_t mri_run_mcus_avx2(mri_run *r, uint32_t count);
uint32_t mri_run_mcus_avx512(mri_run *r, uint32_t count);
/* The same for MCUs none of whose blocks is wanted, with tables whose skim[] is made. */
uint32_t mri_skim_mcus(mri_run *r, uint32_t count);
uint32_t mri_skim_mcus_avx2(mri_run *r, uint32_t count);
/* mri_run_mcus() that stores the DC coefficient of a wanted block and leaves the others as they are, with
 * tables whose skim[] is made. */
uint32_t mri_only_dc_mcus(mri_run *r, uint32_t count);
uint32_t mri_only_dc_mcus_avx2(mri_run *r, uint32_t count);

static inline __attribute__((always_inline)) void mri_bits_load(mri_bits *in)
{
    in->window |= __builtin_bswap64(mri_le64(in->from)) >> in->count;
    in->from += (63 - in->count) >> 3;
    in->count |= 56;
}

static inline __attribute__((always_inline)) void mri_bits_drop(mri_bits *in, unsigned count)
{
    in->window <<= count & 63;
    in->count -= (int)count;
}

#endif
