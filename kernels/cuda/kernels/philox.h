/* kernels/cuda/kernels/philox.h: random words that depend on nothing but key and counter, as base/random.h
 * has them. */
#ifndef MRK_PHILOX_H
#define MRK_PHILOX_H

#include "kernels/cuda/kernels/port.h"

struct mrk_words {
    uint32_t v[4];
};

/* Philox4x32-10 (Salmon et al. 2011) with counter (block, place; step). */
MRK_INLINE mrk_words mrk_philox(uint64_t key, uint32_t block, uint32_t place, uint64_t step)
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    uint32_t c0 = block, c1 = place, c2 = (uint32_t)step, c3 = (uint32_t)(step >> 32);
    MRK_UNROLL for (int round = 0; round < 10; round++)
    {
        const uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    mrk_words d;
    d.v[0] = c0, d.v[1] = c1, d.v[2] = c2, d.v[3] = c3;
    return d;
}

#endif
