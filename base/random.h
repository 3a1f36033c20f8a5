/* base/random.h: random bits that depend on nothing but key and counter. Private. */
#ifndef MRI_RANDOM_H
#define MRI_RANDOM_H

#include <stdint.h>

/* Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): four words that
 * depend on nothing but key and counter, so any draw can be repeated by any thread at any time. */
typedef struct mri_philox {
    uint32_t v[4];
} mri_philox;

static inline mri_philox mri_philox4x32(uint64_t key, uint64_t ctr_lo, uint64_t ctr_hi)
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    uint32_t c0 = (uint32_t)ctr_lo, c1 = (uint32_t)(ctr_lo >> 32), c2 = (uint32_t)ctr_hi,
             c3 = (uint32_t)(ctr_hi >> 32);
    for (int round = 0; round < 10; round++) {
        const uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return (mri_philox){{c0, c1, c2, c3}};
}

/* [0, 1) with 24 bits, exact in float. */
static inline float mri_unit_float(uint32_t word) { return (float)(word >> 8) * (1.0f / 16777216.0f); }
/* [0, n), n > 0, by multiplication (bias below 2^-32 n). */
static inline uint32_t mri_below(uint32_t word, uint32_t n) { return (uint32_t)(((uint64_t)word * n) >> 32); }
/* A good 64-bit mix (SplitMix64 finaliser, Steele et al. 2014), for deriving keys. */
static inline uint64_t mri_mix64(uint64_t x)
{
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

#endif
