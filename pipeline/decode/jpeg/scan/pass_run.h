/* pipeline/decode/jpeg/scan/pass_run.h: the loops of pass.h, as functions to be inlined in one file for each
 * instruction set. Private.
 *
 * Before it is included: PASS_TARGET, attributes of the functions; PASS_SELECT(set, n), the place of the n-th
 * bit of a set, from 0 on, or 64. */
#ifndef MRI_PASS_RUN_H
#define MRI_PASS_RUN_H

#include "pipeline/decode/jpeg/scan/pass.h"

#define PASS_INLINE static inline __attribute__((always_inline)) PASS_TARGET
#define RARELY(x)   __builtin_expect(!!(x), 0)

PASS_INLINE uint32_t next_entry(mri_bits *in, const mri_pass_table *t)
{
    mri_bits_load(in);
    const uint32_t e = t->window[in->window >> (64 - MRI_PASS_BITS)];
    return RARELY(mri_pass_kind_of(e) == MRI_PASS_ODD) ? mri_pass_search(t, in->window) : e;
}

/* Blocks without further symbols, this one included. */
PASS_INLINE uint32_t count_ends(mri_bits *in, uint32_t e)
{
    const unsigned size = mri_pass_run_of(e);
    const uint64_t top = in->window << (mri_pass_bits(e) - size);
    mri_bits_drop(in, mri_pass_bits(e));
    return (1u << size) + (uint32_t)(top >> 1 >> (63 - size));
}

/* The value of size 1 to 15 after the code (T.81, F.2.2.1). */
PASS_INLINE int value_behind(const mri_bits *in, uint32_t e)
{
    const unsigned size = mri_pass_size(e);
    const uint64_t top = in->window << (mri_pass_bits(e) - size);
    const int bits = (int)(top >> (64 - size)), below = (int)(top >> 63) - 1;
    return bits + (below & (1 - (1 << size)));
}

/* ---- first scans ---- */

PASS_INLINE bool first_block(mri_pass_run *r, mri_bits *in, uint64_t *mask, int16_t *out)
{
    const unsigned last = r->last, low = r->low;
    uint64_t found = 0;
    for (unsigned k = r->first; k <= last; k++) {
        const uint32_t e = next_entry(in, r->table);
        if (RARELY(mri_pass_kind_of(e) != MRI_PASS_VALUE)) {
            if (mri_pass_kind_of(e) == MRI_PASS_END) {
                r->ends = count_ends(in, e) - 1;
                break;
            }
            mri_bits_drop(in, mri_pass_bits(e));
            k += 15;
            if (mri_pass_kind_of(e) == MRI_PASS_ODD || k >= last) return false;
            continue;
        }
        k += mri_pass_run_of(e);
        if (RARELY(k > last)) return false;
        if (out) out[mri_jpeg_natural[k]] = (int16_t)(value_behind(in, e) * (1 << low));
        found |= (uint64_t)1 << k;
        mri_bits_drop(in, mri_pass_bits(e));
    }
    *mask |= found;
    return true;
}

/* ---- refinement scans ---- */

/* The next count bits, at most 32, correct the same number of coefficients: the lowest bits of set, which are
 * then cleared. */
PASS_INLINE void correct_some(mri_bits *in, uint64_t *set, unsigned count, int one, int16_t *out)
{
    uint64_t top = in->window;
    mri_bits_drop(in, count);
    if (!out) return;
    for (; count > 0; count--, top <<= 1, *set &= *set - 1) {
        int16_t *c = out + mri_jpeg_natural[__builtin_ctzll(*set)];
        const int sign = *c >> 15;
        *c = (int16_t)(*c + (((one ^ sign) - sign) & -(int)(top >> 63)));
    }
}

/* count: bits of set. */
PASS_INLINE void correct(mri_bits *in, uint64_t set, unsigned count, int one, int16_t *out)
{
    mri_bits_load(in);
    if (RARELY(count > 32)) {
        correct_some(in, &set, 32, one, out);
        mri_bits_load(in);
        count -= 32;
    }
    correct_some(in, &set, count, one, out);
}

PASS_INLINE bool refine_block(mri_pass_run *r, mri_bits *in, uint64_t *mask, int16_t *out)
{
    const uint64_t range = (UINT64_MAX << r->first) & (UINT64_MAX >> (63 - r->last)), before = *mask & range;
    const int one = 1 << r->low;
    uint64_t zeros = ~*mask & range, found = 0, ahead = range;
    unsigned k = r->first;
    if (r->ends == 0)
        for (;;) {
            const uint32_t e = next_entry(in, r->table);
            const unsigned run = mri_pass_run_of(e), kind = mri_pass_kind_of(e);
            if (kind == MRI_PASS_END) {
                r->ends = count_ends(in, e);
                break;
            }
            const unsigned at = (unsigned)PASS_SELECT(zeros, run);
            if (RARELY(at > 63 || kind == MRI_PASS_ODD)) return false;
            const uint64_t next = UINT64_MAX << at << 1;
            const unsigned passed = at - k - run;
            if (kind == MRI_PASS_VALUE) {
                if (out)
                    out[mri_jpeg_natural[at]] =
                        (int16_t)((int)(in->window << (mri_pass_bits(e) - 1) >> 63) * 2 * one - one);
                found |= (uint64_t)1 << at;
            }
            mri_bits_drop(in, mri_pass_bits(e));
            if (passed) correct(in, before & ahead & ~next, passed, one, out);
            zeros &= next;
            ahead = next;
            k = at + 1;
            if (k > r->last) {
                *mask |= found;
                return true;
            }
        }
    r->ends--;
    const uint64_t rest = before & ahead;
    if (rest) correct(in, rest, (unsigned)__builtin_popcountll(rest), one, out);
    *mask |= found;
    return true;
}

/* ---- rows ---- */

PASS_INLINE bool pass_block(mri_pass_run *r, mri_bits *in, uint64_t *mask, int16_t *out, const bool refine)
{
    return refine ? refine_block(r, in, mask, out) : first_block(r, in, mask, out);
}

PASS_INLINE uint32_t pass_blocks(mri_pass_run *run, uint32_t count, const bool refine)
{
    mri_pass_run r = *run; /* stores of coefficients do not change it */
    mri_bits in = r.bits;
    uint32_t done = 0;
    while (done < count && in.from <= r.limit) {
        if (!refine && r.ends) {
            const uint32_t over = r.ends < count - done ? r.ends : count - done;
            r.ends -= over;
            done += over;
            continue;
        }
        const uint32_t x = r.x + done;
        const bool good = x < r.wide ? pass_block(&r, &in, r.mask + done, r.coef[x], refine)
                                     : pass_block(&r, &in, r.mask + done, NULL, refine);
        if (RARELY(!good)) {
            run->bad = true;
            break;
        }
        done++;
    }
    run->bits = in;
    run->ends = r.ends;
    run->x += done;
    run->mask += done;
    return done;
}

#endif
