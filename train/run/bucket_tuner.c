/* train/run/bucket_tuner.c: see bucket_tuner.h. */
#include "train/run/bucket_tuner.h"

#include <stdlib.h>
#include <string.h>

#define WARM_UP      2u           /* steps of a turn that do not count */
#define ALL_NS       20000000000u /* of steps, after which no new round is begun */
#define GAIN_LEAST   1.02         /* faster by this: taken */
#define ROUNDS_LEAST 3u           /* that decide when time is over */

void mri_bucket_tuner_begin(mri_bucket_tuner *t, const uint64_t *bytes, uint32_t count)
{
    *t = (mri_bucket_tuner){.sizes = count, .done = count < 2, .gain = 1};
    memcpy(t->bytes, bytes, count * sizeof *bytes);
}

static int by_length(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static double median_of_turn(mri_bucket_tuner *t)
{
    qsort(t->turn_ns, MRI_BUCKET_TURN, sizeof *t->turn_ns, by_length);
    return 0.5 * (double)(t->turn_ns[MRI_BUCKET_TURN / 2 - 1] + t->turn_ns[MRI_BUCKET_TURN / 2]);
}

/* How many times as fast as the first size it was in `rounds`; 0: not in nearly all of them. */
static double gain_of(const mri_bucket_tuner *t, uint32_t size, uint32_t rounds)
{
    double first = 0, mine = 0;
    uint32_t won = 0;
    for (uint32_t r = 0; r < rounds; r++) {
        first += t->median_ns[r][0];
        mine += t->median_ns[r][size];
        won += t->median_ns[r][size] < t->median_ns[r][0];
    }
    return won + 1 >= rounds && won > 0 && mine > 0 ? first / mine : 0;
}

static void decide(mri_bucket_tuner *t, uint32_t rounds)
{
    t->done = true;
    for (uint32_t k = 1; k < t->sizes && rounds >= ROUNDS_LEAST; k++) {
        const double gain = gain_of(t, k, rounds);
        if (gain < GAIN_LEAST || gain <= t->gain) continue;
        t->gain = gain;
        t->best = k;
    }
}

uint32_t mri_bucket_tuner_place(const mri_bucket_tuner *t)
{
    if (t->done) return t->best;
    return t->round % 2 ? t->sizes - 1 - t->turn : t->turn;
}

static void end_turn(mri_bucket_tuner *t)
{
    const uint32_t size = mri_bucket_tuner_place(t);
    t->median_ns[t->round][size] = median_of_turn(t);
    t->seen = 0;
    if (++t->turn == t->sizes) {
        t->turn = 0;
        t->round++;
        if (t->round == MRI_BUCKET_ROUNDS || t->spent_ns > ALL_NS) decide(t, t->round);
    }
    t->changes = t->done || mri_bucket_tuner_place(t) != size;
}

void mri_bucket_tuner_step(mri_bucket_tuner *t, uint64_t ns)
{
    if (t->done || t->changes) return;
    t->spent_ns += ns;
    if (t->seen++ < WARM_UP) return;
    t->turn_ns[t->seen - WARM_UP - 1] = ns;
    if (t->seen == WARM_UP + MRI_BUCKET_TURN) end_turn(t);
}

uint64_t mri_bucket_tuner_take(mri_bucket_tuner *t)
{
    t->changes = false;
    return t->bytes[mri_bucket_tuner_place(t)];
}
