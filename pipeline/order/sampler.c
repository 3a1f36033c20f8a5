/* pipeline/order/sampler.c: the order of samples. A pure function of (seed, epoch, order, count, position):
 * no state, no array of indices, so resume is O(1) and any thread may ask for any position.
 *
 * Block order, for media that hate seeks: blocks of `block` neighbouring samples are permuted, then the
 * samples inside each window of WINDOW_BLOCKS blocks are permuted, so that reads stay near each other while
 * samples mix.
 *
 *   blocks:     0 1 2 3 4 5 6(short)      permuted:   4 6 0 | 2 5 1 | 3        (window of 3 for the picture)
 *   positions:  samples of {4,6,0} in any order, then of {2,5,1}, then of {3}. */
#include "pipeline/order/sampler.h"

#include "base/util.h"

#define WINDOW_BLOCKS 16

mri_permutation mri_permutation_make(uint64_t count, uint64_t key)
{
    uint32_t bits = 0;
    while (bits < 64 && (count - 1) >> bits) bits++;
    const uint32_t half = (bits + 1) / 2;
    mri_permutation p = {.count = count, .half_bits = half > 0 ? half : 1};
    for (uint32_t r = 0; r < MRI_FEISTEL_ROUNDS; r++) p.round_key[r] = mri_mix64(key + r);
    return p;
}

static uint64_t round_bits(const mri_permutation *p, uint32_t round, uint64_t half)
{
    return mri_mix64(half ^ p->round_key[round]) & ((UINT64_C(1) << p->half_bits) - 1);
}

static uint64_t feistel(const mri_permutation *p, uint64_t x)
{
    uint64_t left = x >> p->half_bits, right = x & ((UINT64_C(1) << p->half_bits) - 1);
    for (uint32_t r = 0; r < MRI_FEISTEL_ROUNDS; r++) {
        const uint64_t next = left ^ round_bits(p, r, right);
        left = right;
        right = next;
    }
    return left << p->half_bits | right;
}

static uint64_t feistel_back(const mri_permutation *p, uint64_t x)
{
    uint64_t left = x >> p->half_bits, right = x & ((UINT64_C(1) << p->half_bits) - 1);
    for (uint32_t r = MRI_FEISTEL_ROUNDS; r-- > 0;) {
        const uint64_t before = right ^ round_bits(p, r, left);
        right = left;
        left = before;
    }
    return left << p->half_bits | right;
}

uint64_t mri_permute(const mri_permutation *p, uint64_t i)
{
    do i = feistel(p, i);
    while (i >= p->count);
    return i;
}

uint64_t mri_unpermute(const mri_permutation *p, uint64_t i)
{
    do i = feistel_back(p, i);
    while (i >= p->count);
    return i;
}

mri_epoch_order mri_epoch_order_make(mr_order order, uint32_t block, uint64_t seed, uint64_t epoch,
                                     uint64_t count)
{
    mri_epoch_order o = {
        .order = order, .count = count, .key = mri_mix64(mri_mix64(seed) ^ mri_mix64(~epoch))};
    if (count == 0) return o;
    if (order == MR_ORDER_SHUFFLE) {
        o.whole = mri_permutation_make(count, o.key);
    } else if (order == MR_ORDER_BLOCK) {
        o.block = block > 0 ? block : 1;
        const uint64_t blocks = (count - 1) / o.block + 1;
        o.whole = mri_permutation_make(blocks, o.key);
        o.short_by = blocks * o.block - count;
        o.short_at = mri_unpermute(&o.whole, blocks - 1);
    }
    return o;
}

/* Samples that come before window w in block order. */
static uint64_t window_start(const mri_epoch_order *o, uint64_t w)
{
    const uint64_t block = mri_min_u64(w * WINDOW_BLOCKS, o->whole.count);
    return block * o->block - (o->short_at < block ? o->short_by : 0);
}

static uint64_t block_order_sample(const mri_epoch_order *o, uint64_t position)
{
    uint64_t w = position / (WINDOW_BLOCKS * o->block);
    while (position >= window_start(o, w + 1)) w++; /* at most once: the short block lies before */
    const uint64_t start = window_start(o, w), size = window_start(o, w + 1) - start;
    const mri_permutation inside = mri_permutation_make(size, mri_mix64(o->key ^ (w + 1)));
    uint64_t at = mri_permute(&inside, position - start);

    const uint64_t first_block = w * WINDOW_BLOCKS;
    if (o->short_at >= first_block) { /* a short block in this window pushes what follows it to the front */
        const uint64_t short_end = (o->short_at - first_block + 1) * o->block - o->short_by;
        if (at >= short_end) at += o->short_by;
    }
    return mri_permute(&o->whole, first_block + at / o->block) * o->block + at % o->block;
}

uint64_t mri_epoch_order_sample(const mri_epoch_order *o, uint64_t position)
{
    switch (o->order) {
    case MR_ORDER_SHUFFLE: return mri_permute(&o->whole, position);
    case MR_ORDER_BLOCK: return block_order_sample(o, position);
    case MR_ORDER_SEQUENTIAL: break;
    case MR_ORDER_BALANCED: break; /* balance.h knows, which has the classes */
    }
    return position;
}

uint64_t mri_substitute(const mri_epoch_order *o, uint64_t position, uint32_t attempt)
{
    const mri_philox draw = mri_philox4x32(o->key, position, attempt);
    const uint64_t word = (uint64_t)draw.v[1] << 32 | draw.v[0];
    return (uint64_t)(((unsigned __int128)word * o->count) >> 64);
}

uint64_t mr_order_sample(mr_order order, uint32_t block, uint64_t seed, uint64_t epoch, uint64_t count,
                         uint64_t position)
{
    if (position >= count || order == MR_ORDER_BALANCED) return MR_NOWHERE;
    const mri_epoch_order o = mri_epoch_order_make(order, block, seed, epoch, count);
    return mri_epoch_order_sample(&o, position);
}
