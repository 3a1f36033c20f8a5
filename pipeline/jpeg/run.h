/* pipeline/jpeg/run.h: the loop the entropy decoder lives in, as functions to be inlined in one file for each instruction set. Private.
 *
 * A load leaves at least 56 bits, enough for four AC windows, or for one symbol of any length (31 bits).
 *
 * In a block the place k of the last coefficient moves on without a test for every kind of symbol: values are stored at
 * place[k + far], where anything beyond 63 falls on 63, and only values of 0 ever do before the block is over. One test,
 * "is k past 62", catches the rest: the end of the block, a full block, a value too long for the window. As in libjpeg, a run
 * that leads over the end stores its value at 63. */
#ifndef MRI_RUN_H
#define MRI_RUN_H

#include "pipeline/jpeg/scan.h"

#define INLINE static inline __attribute__((always_inline))
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

#define EIGHT(x) x, x, x, x, x, x, x, x
static const uint8_t place[64 + 256] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28,
    35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
    EIGHT(63), EIGHT(63), EIGHT(63), EIGHT(63), EIGHT(63), EIGHT(63), EIGHT(63), EIGHT(63), EIGHT(63), EIGHT(63), EIGHT(63),
    EIGHT(63), EIGHT(63), EIGHT(63), EIGHT(63), EIGHT(63), EIGHT(63), EIGHT(63), EIGHT(63), EIGHT(63), EIGHT(63), EIGHT(63),
    EIGHT(63), EIGHT(63), EIGHT(63), EIGHT(63), EIGHT(63), EIGHT(63), EIGHT(63), EIGHT(63), EIGHT(63), EIGHT(63),
};
#undef EIGHT

/* The value in the top size bits (0 to 15): those that begin with 0 are negative (T.81, F.2.2.1). */
INLINE int value_of(uint64_t top, unsigned size)
{
    const int bits = (int)(top >> 1 >> (63 - size)), below = (int)(top >> 63) - 1;
    return bits + (below & (1 - (1 << size)));
}

/* Returns false for a bad code. */
INLINE bool dc_step(mri_bits *in, const mri_huff_dc *t, int32_t *prediction)
{
    mri_bits_load(in);
    uint32_t e = t->window[in->window >> (64 - MRI_DC_BITS)];
    if (UNLIKELY(e == 0)) {
        const uint32_t found = mri_huff_search(&t->codes, in->window), bits = found & 0xff, size = found >> 8;
        if (found == 0) return false;
        e = (bits + size) | bits << 8 | size << 16;
    }
    *prediction += value_of(in->window << (e >> 8 & 63), e >> 16);
    mri_bits_drop(in, e & 0xff);
    return true;
}

/* One AC symbol of any kind: bits are loaded. The new k, MRI_AC_END + k at the end of the block; MRI_AC_ODD: bad code. */
INLINE unsigned one_symbol(mri_bits *in, const mri_huff_ac *t, unsigned k, int *value)
{
    const uint32_t found = mri_huff_search(&t->codes, in->window), bits = found & 0xff, run = found >> 12, size = found >> 8 & 15;
    if (found == 0) return MRI_AC_ODD;
    *value = value_of(in->window << bits, size);
    mri_bits_drop(in, bits + size);
    if (size == 0 && run != 15) return MRI_AC_END + k;
    return k + run + 1;
}

/* The rest of a block, its AC coefficients. Place of the last one, or MRI_AC_ODD for a bad code. store: out is zero. */
INLINE unsigned ac_block(mri_bits *in, const mri_huff_ac *t, int16_t *out, bool store)
{
    unsigned k = 0;
    for (;;) {
        uint64_t e;
        unsigned first, all;
        mri_bits_load(in);
#pragma GCC unroll 4
        for (int turn = 0; turn < 4; turn++) {
            e = t->window[in->window >> (64 - MRI_AC_BITS)];
            all = k + (uint8_t)(e >> 16);
            if (store) {
                first = k + (uint8_t)(e >> 8);
                out[place[first]] = (int16_t)(e >> 32);
                out[place[all]] = (int16_t)(e >> 48);
            }
            if (UNLIKELY(all > 62)) goto special;
            mri_bits_drop(in, (uint8_t)e);
            k = all;
        }
        continue;
special:
        if (all - MRI_AC_END < 63) { /* the end, and not that of the next block behind a full one */
            mri_bits_drop(in, (uint8_t)e);
            return all - MRI_AC_END;
        }
        first = k + (uint8_t)(e >> 8);
        int value;
        if ((uint8_t)(e >> 16) != MRI_AC_ODD) { /* the block fills up: with the first symbol, or with both */
            if (first > 62) {
                if (store) out[63] = (int16_t)(e >> 32);
                mri_bits_drop(in, (uint8_t)(e >> 24));
            } else {
                mri_bits_drop(in, (uint8_t)e);
            }
            return 63;
        }
        mri_bits_load(in);
        if ((uint8_t)e) {
            const unsigned size = (uint8_t)(e >> 24);
            value = value_of(in->window << ((uint8_t)e - size), size);
            mri_bits_drop(in, (uint8_t)e);
            k = first;
        } else {
            k = one_symbol(in, t, k, &value);
            if (k >= MRI_AC_END) return k == MRI_AC_ODD ? k : k - MRI_AC_END;
        }
        if (store) out[place[k]] = (int16_t)value;
        if (k > 62) return 63;
    }
}

INLINE uint32_t run_mcus(mri_run *r, uint32_t count)
{
    mri_bits in = r->bits;
    const uint8_t *const limit = r->limit;
    mri_run_block *const end = r->block + r->block_count;
    uint32_t done = 0;
    for (; done < count && in.from <= limit; done++)
        for (mri_run_block *b = r->block; b < end; b++) {
            const uint32_t x = b->x;
            unsigned last;
            b->x = x + b->step;
            if (UNLIKELY(!dc_step(&in, b->dc, b->prediction))) goto bad;
            if (x < b->wide) {
                int16_t *out = b->coef[x];
                memset(out, 0, sizeof b->coef[0]);
                last = ac_block(&in, b->ac, out, true);
                out[0] = (int16_t)*b->prediction;
                b->last[x] = (uint8_t)last;
            } else {
                last = ac_block(&in, b->ac, NULL, false);
            }
            if (UNLIKELY(last == MRI_AC_ODD)) goto bad;
        }
    r->bits = in;
    return done;
bad:
    r->bits = in;
    r->bad = true;
    return done;
}

#endif
