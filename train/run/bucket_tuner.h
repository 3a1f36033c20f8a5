/* train/run/bucket_tuner.h: looks for the size of gradient buckets with which a step is over soonest, while
 * training goes on. Private to train/ and its tests.
 *
 *   steps:  size 0  size 1  size 2   size 2  size 1  size 0   size 0 …     a turn each; every second round
 *           └ round 0 ───────────┘   └ round 1 ───────────┘                backwards
 *
 * A machine's speed moves, so sizes are compared inside a round only: another size is taken when it was
 * faster than the one it began with in nearly all rounds, and some per cent in all together. The sum of
 * gradients does not depend on it.
 *
 * Knows no trainer: its input is the time of steps, its output the size to use. One thread. */
#ifndef MRI_BUCKET_TUNER_H
#define MRI_BUCKET_TUNER_H

#include <stdbool.h>
#include <stdint.h>

enum { MRI_BUCKET_SIZES = 5, MRI_BUCKET_TURN = 8, MRI_BUCKET_ROUNDS = 5 };

typedef struct mri_bucket_tuner {
    uint64_t bytes[MRI_BUCKET_SIZES]; /* [0]: the one that it began with */
    uint32_t sizes;
    uint32_t round, turn; /* of the round */
    uint32_t best;        /* once it is done */
    uint32_t seen;        /* steps of the turn */
    bool changes;         /* another size is to be used; steps until then are of the old one */
    bool done;
    uint64_t spent_ns;
    uint64_t turn_ns[MRI_BUCKET_TURN];
    double median_ns[MRI_BUCKET_ROUNDS][MRI_BUCKET_SIZES];
    double gain; /* how many times as fast as the first one */
} mri_bucket_tuner;

/* bytes: `count` sizes, the first one in use; 1: it is done. */
void mri_bucket_tuner_begin(mri_bucket_tuner *t, const uint64_t *bytes, uint32_t count);
/* A step took so long, from its beginning on the last replica to its end on the last one. */
void mri_bucket_tuner_step(mri_bucket_tuner *t, uint64_t ns);
/* The size to use from now on, as a place in bytes[]. */
uint32_t mri_bucket_tuner_place(const mri_bucket_tuner *t);
/* The size itself, which is in use from now on: nothing changes any more. */
uint64_t mri_bucket_tuner_take(mri_bucket_tuner *t);

#endif
