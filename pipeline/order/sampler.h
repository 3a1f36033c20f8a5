/* pipeline/order/sampler.h: which sample stands at which position of an epoch (I1), in O(1) memory.
 * Private. */
#ifndef MRI_SAMPLER_H
#define MRI_SAMPLER_H

#include "millrace/pipeline.h"

/* A keyed permutation of [0, count): a balanced Feistel network over the smallest even number of bits that
 * holds count, walked until it lands below count (Black & Rogaway, "Ciphers with arbitrary finite domains",
 * CT-RSA 2002). The domain is at most four times count, so the walk takes four rounds on average at worst. */
#define MRI_FEISTEL_ROUNDS 6

typedef struct mri_permutation {
    uint64_t count, round_key[MRI_FEISTEL_ROUNDS];
    uint32_t half_bits;
} mri_permutation;

mri_permutation mri_permutation_make(uint64_t count, uint64_t key);
uint64_t mri_permute(const mri_permutation *p, uint64_t i);   /* i < count */
uint64_t mri_unpermute(const mri_permutation *p, uint64_t i); /* its inverse */

/* All that decides the order of one epoch. Cheap to make, immutable. */
typedef struct mri_epoch_order {
    mr_order order;
    uint64_t count, key;
    mri_permutation whole; /* SHUFFLE: of samples; BLOCK: of blocks */
    uint64_t block;        /* samples per block */
    uint64_t short_at;     /* BLOCK: where the short last block comes in block order */
    uint64_t short_by;     /* and how many samples it lacks */
} mri_epoch_order;

mri_epoch_order mri_epoch_order_make(mr_order order, uint32_t block, uint64_t seed, uint64_t epoch,
                                     uint64_t count);
uint64_t mri_epoch_order_sample(const mri_epoch_order *o, uint64_t position); /* position < count */

/* The sample that stands in for a damaged one: attempt 0, 1, ... of this position. */
uint64_t mri_substitute(const mri_epoch_order *o, uint64_t position, uint32_t attempt);

#endif
