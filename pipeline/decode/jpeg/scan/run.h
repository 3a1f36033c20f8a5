/* pipeline/decode/jpeg/scan/run.h: the loop the entropy decoder lives in, as functions to be inlined in one
 * file for each instruction set. Private.
 *
 * A load leaves at least 56 bits, enough for four AC windows, or for one symbol of any length (31 bits).
 *
 * In a block the place k of the last coefficient moves on without a test for every kind of symbol: values are
 * stored at place[k + far], where anything beyond 63 falls on 63, and only values of 0 ever do before the
 * block is over. One test, "is k past 62", catches the rest: the end of the block, a full block, a value too
 * long for the window. As in libjpeg, a run that leads over the end stores its value at 63. */
#ifndef MRI_RUN_H
#define MRI_RUN_H

#include "pipeline/decode/jpeg/scan/scan.h"

#define INLINE      static inline __attribute__((always_inline))
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

#define EIGHT(x) x, x, x, x, x, x, x, x
static const uint8_t place[64 + 128] = {
    0,         1,         8,         16,        9,         2,         3,         10,        17,
    24,        32,        25,        18,        11,        4,         5,         12,        19,
    26,        33,        40,        48,        41,        34,        27,        20,        13,
    6,         7,         14,        21,        28,        35,        42,        49,        56,
    57,        50,        43,        36,        29,        22,        15,        23,        30,
    37,        44,        51,        58,        59,        52,        45,        38,        31,
    39,        46,        53,        60,        61,        54,        47,        55,        62,
    63,        EIGHT(63), EIGHT(63), EIGHT(63), EIGHT(63), EIGHT(63), EIGHT(63), EIGHT(63), EIGHT(63),
    EIGHT(63), EIGHT(63), EIGHT(63), EIGHT(63), EIGHT(63), EIGHT(63), EIGHT(63), EIGHT(63),
};
#undef EIGHT

/* The value in the top size bits (0 to 15): values that begin with 0 are negative (T.81, F.2.2.1). */
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

#define BLOCK_BAD 255 /* place of the last coefficient of a block with a bad code */

/* One AC symbol of any kind, the slow way; bits are loaded. The last one's place, stored; more than 62, and
 * the block is over: by its end, END_OF_BLOCK more than the last; or BLOCK_BAD. */
#define END_OF_BLOCK 128
INLINE unsigned one_symbol(mri_bits *in, const mri_huff_ac *t, unsigned k, int16_t *out, bool store)
{
    const uint32_t found = mri_huff_search(&t->codes, in->window), bits = found & 0xff, run = found >> 12,
                   size = found >> 8 & 15;
    if (found == 0) return BLOCK_BAD;
    if (size == 0 && run != 15) {
        mri_bits_drop(in, bits);
        return END_OF_BLOCK + k;
    }
    k += run + 1;
    if (store) out[place[k]] = (int16_t)value_of(in->window << bits, size);
    mri_bits_drop(in, bits + size);
    return k;
}

/* One window of AC symbols; false when more than moving on is to be done, and then nothing is dropped. */
INLINE bool ac_step(mri_bits *in, const mri_huff_ac *t, int16_t *out, bool store, unsigned *k, uint32_t *e,
                    unsigned *all)
{
    *e = t->window[in->window >> (64 - MRI_AC_BITS)];
    *all = *k + mri_ac_all(*e);
    if (store) {
        out[place[*all]] = (int16_t)mri_ac_last_value(*e);
        out[place[*k + mri_ac_first(*e)]] = (int16_t)mri_ac_first_value(*e);
    }
    if (UNLIKELY(*all > 62)) return false;
    mri_bits_drop(in, mri_ac_bits(*e));
    *k = *all;
    return true;
}

/* The rest of a block, its AC coefficients, behind dc_step(), which leaves bits for two windows. Place of the
 * last one, or BLOCK_BAD. store: out is zero. */
INLINE unsigned ac_block(mri_bits *in, const mri_huff_ac *t, int16_t *out, bool store)
{
    unsigned k = 0, all;
    uint32_t e;
    bool on = ac_step(in, t, out, store, &k, &e, &all) && ac_step(in, t, out, store, &k, &e, &all);
    for (;;) {
        while (on) {
            mri_bits_load(in);
            on = ac_step(in, t, out, store, &k, &e, &all) && ac_step(in, t, out, store, &k, &e, &all) &&
                 ac_step(in, t, out, store, &k, &e, &all) && ac_step(in, t, out, store, &k, &e, &all);
        }
        if (mri_ac_all(e) - MRI_AC_END <= 32 && all - MRI_AC_END < 63) { /* the end of this block, not of the
                                                                            next one after a full block */
            mri_bits_drop(in, mri_ac_bits(e));
            return all - MRI_AC_END;
        }
        mri_bits_load(in);
        if (mri_ac_all(e) == MRI_AC_ODD && mri_ac_bits(e)) {
            const unsigned size = (unsigned)mri_ac_first_value(e);
            k += mri_ac_first(e);
            if (store) out[place[k]] = (int16_t)value_of(in->window << (mri_ac_bits(e) - size), size);
            mri_bits_drop(in, mri_ac_bits(e));
        } else { /* a code too long; or a block that fills up, perhaps with the first symbol alone: what was
                    stored is stored again */
            k = one_symbol(in, t, k, out, store);
            if (k >= END_OF_BLOCK) return k == BLOCK_BAD ? k : k - END_OF_BLOCK;
        }
        if (k > 62) return 63;
        on = true;
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
            if (UNLIKELY(last == BLOCK_BAD)) goto bad;
        }
    r->bits = in;
    return done;
bad:
    r->bits = in;
    r->bad = true;
    return done;
}

/* One window of a skimming table; false, and nothing dropped, when the block does not simply go on. */
INLINE bool skim_step(mri_bits *in, const uint16_t *t, unsigned *k, unsigned *e, unsigned *all)
{
    *e = t[in->window >> (64 - MRI_AC_BITS)];
    *all = *k + (*e >> 8);
    if (*all > 62) return false;
    mri_bits_drop(in, *e & 31);
    *k = *all;
    return true;
}

/* ac_block() of a block that nobody wants: false for a bad code. */
INLINE bool skim_block(mri_bits *in, const mri_huff_ac *t)
{
    unsigned k = 0, e, all;
    bool on = skim_step(in, t->skim, &k, &e, &all);
    for (;;) {
        while (on) {
            mri_bits_load(in);
            on = skim_step(in, t->skim, &k, &e, &all) && skim_step(in, t->skim, &k, &e, &all);
        }
        if (!(all & MRI_SKIM_ODD)) {
            mri_bits_drop(in, e & 31);
            return true;
        }
        mri_bits_load(in);
        k = one_symbol(in, t, k, NULL, false);
        if (k > 62) return k != BLOCK_BAD;
        on = true;
    }
}

/* run_mcus() that stores no AC coefficients. */
INLINE uint32_t only_dc_mcus(mri_run *r, uint32_t count)
{
    mri_bits in = r->bits;
    const uint8_t *const limit = r->limit;
    mri_run_block *const end = r->block + r->block_count;
    uint32_t done = 0;
    for (; done < count && in.from <= limit; done++)
        for (mri_run_block *b = r->block; b < end; b++) {
            const uint32_t x = b->x;
            b->x = x + b->step;
            if (UNLIKELY(!dc_step(&in, b->dc, b->prediction) || !skim_block(&in, b->ac))) {
                r->bits = in;
                r->bad = true;
                return done;
            }
            if (x >= b->wide) continue;
            b->coef[x][0] = (int16_t)*b->prediction;
            b->last[x] = 0;
        }
    r->bits = in;
    return done;
}

INLINE uint32_t skim_mcus(mri_run *r, uint32_t count)
{
    mri_bits in = r->bits;
    const uint8_t *const limit = r->limit;
    mri_run_block *const end = r->block + r->block_count;
    uint32_t done = 0;
    for (; done < count && in.from <= limit; done++)
        for (mri_run_block *b = r->block; b < end; b++)
            if (UNLIKELY(!dc_step(&in, b->dc, b->prediction) || !skim_block(&in, b->ac))) {
                r->bits = in;
                r->bad = true;
                return done;
            }
    r->bits = in;
    return done;
}

#endif
