/* pipeline/order/mixture.c: see mixture.h. */
#include "pipeline/order/mixture.h"

#include <math.h>

#include "base/util.h"
#include "pipeline/order/sampler.h"

typedef struct set {
    uint64_t first, count; /* its samples */
    uint64_t in_round;     /* positions of a round that are its own */
} set;

struct mri_mixture {               /* fixed after create */
    uint64_t samples, seed, round; /* round: positions of one */
    uint32_t sets;
    set set[];
};

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

int mri_mixture_create(mri_mixture **out, const mr_source_info *info, uint64_t seed, mr_error *err)
{
    *out = NULL;
    mri_mixture *m = calloc(1, sizeof *m + info->mix_count * sizeof *m->set);
    if (!m) return mr_error_set(err, MR_ENOMEM, "no memory for the shares of %u data sets", info->mix_count);
    *m = (mri_mixture){.samples = info->count, .seed = mri_mix64(seed), .sets = info->mix_count};
    uint64_t divisor = 0;
    for (uint32_t k = 0; k < m->sets; k++) {
        const double parts = floor(info->mix[k].share * MRI_MIXTURE_PARTS + 0.5);
        m->set[k] = (set){info->mix[k].first, info->mix[k].count, parts < 1 ? 1 : (uint64_t)parts};
        divisor = common_divisor(m->set[k].in_round, divisor);
    }
    for (uint32_t k = 0; k < m->sets; k++) m->round += m->set[k].in_round /= divisor;
    *out = m;
    return MR_OK;
}

void mri_mixture_destroy(mri_mixture *m) { free(m); }

uint64_t mri_mixture_sample(const mri_mixture *m, uint64_t epoch, uint64_t position)
{
    const uint64_t at = epoch * m->samples + position, round = at / m->round;
    const mri_permutation turns = mri_permutation_make(m->round, mri_mix64(m->seed ^ ~round));
    uint64_t turn = mri_permute(&turns, at % m->round), k = 0;
    while (turn >= m->set[k].in_round) turn -= m->set[k++].in_round;
    const set *s = &m->set[k];
    const uint64_t nth = round * s->in_round + turn,
                   pass = mri_mix64(mri_mix64(m->seed + k) ^ nth / s->count);
    const mri_permutation order = mri_permutation_make(s->count, pass);
    return s->first + mri_permute(&order, nth % s->count);
}
