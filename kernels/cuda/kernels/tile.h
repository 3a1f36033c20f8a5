/* kernels/cuda/kernels/tile.h: how a block walks rows of channels (struct mrk_tile), and how its threads add
 * up their partial results.
 *
 *                 width packs of channels
 *               ┌─────────────────────────┐
 *     height    │ t0   t1   t2   ...      │    thread (x, y) keeps its channels and goes down the rows in
 *     rows      │ t32  t33  ...           │    steps of all blocks together, so that memory passes in order
 *               └─────────────────────────┘    and blocks along x share it evenly
 *
 * Sums go from threads to a block by halves, then over blocks in a second, small kernel: the same order in
 * every run. */
#ifndef MRK_TILE_H
#define MRK_TILE_H

#include "kernels/cuda/kernels/values.h"

struct mrk_walk {
    uint32_t x, y, width, height;
    uint32_t channel; /* first of this thread */
    bool active;
    uint64_t row, step;
};

template <int N> MRK_INLINE mrk_walk mrk_walk_of(const mrk_tile &t)
{
    mrk_walk w;
    w.width = t.width;
    w.height = MRK_THREADS / t.width;
    w.y = threadIdx.x / t.width;
    w.x = threadIdx.x - w.y * t.width;
    w.channel = (blockIdx.y * t.width + w.x) * N;
    w.active = w.y < w.height && w.channel < t.channels;
    w.row = (uint64_t)blockIdx.x * w.height + w.y;
    w.step = (uint64_t)gridDim.x * w.height;
    return w;
}

/* Rows that block `part` of `parts` along x walks. */
MRK_INLINE uint64_t mrk_rows_of(const mrk_tile &t, uint32_t parts, uint32_t part)
{
    const uint64_t height = MRK_THREADS / t.width, turn = height * parts, turns = t.rows / turn;
    const uint64_t rest = t.rows - turns * turn, before = part * height;
    return turns * height + (rest <= before ? 0 : rest - before < height ? rest - before : height);
}

#define MRK_FOLD_FLOATS(m) ((m) * (MRK_THREADS / 2))

/* Combine v over the threads of equal x: the threads with y = 0 get the result. All threads of the block
 * call. fold(mine, other) changes mine; share: MRK_FOLD_FLOATS(M) floats. */
template <int M, class Fold>
MRK_INLINE void mrk_fold(float (&v)[M], float *share, const mrk_walk &w, Fold fold)
{
    uint32_t half = 1;
    while (half < w.height) half *= 2;
    for (half /= 2; half > 0; half /= 2) {
        __syncthreads();
        if (w.y >= half && w.y < 2 * half && w.y < w.height) { /* at most half of all rows, so at most half of
                                                                  all threads */
            const uint32_t at = (w.y - half) * w.width + w.x;
            MRK_UNROLL for (int m = 0; m < M; m++) share[m * (MRK_THREADS / 2) + at] = v[m];
        }
        __syncthreads();
        if (w.y < half && w.y + half < w.height) {
            float other[M];
            MRK_UNROLL for (int m = 0; m < M; m++) other[m] =
                share[m * (MRK_THREADS / 2) + w.y * w.width + w.x];
            fold(v, other);
        }
    }
}

struct mrk_fold_add {
    template <int M>
    __device__ __forceinline__ void operator()(float (&mine)[M], const float (&other)[M]) const
    {
        MRK_UNROLL for (int m = 0; m < M; m++) mine[m] += other[m];
    }
};

/* ---- the second kernel: MRK_FINISH_CHANNELS channels a block, MRK_FINISH_LANES threads each over the parts
 * ---- */

#define MRK_FINISH_CHANNELS 8u
#define MRK_FINISH_LANES    (MRK_THREADS / MRK_FINISH_CHANNELS)

/* Sum of v over the threads of one channel, for all of them; share: MRK_THREADS doubles. All threads of the
 * block call. */
MRK_INLINE double mrk_finish_sum(double v, double *share)
{
    __syncthreads();
    share[threadIdx.x] = v;
    for (uint32_t half = MRK_THREADS / 2; half >= MRK_FINISH_CHANNELS; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) share[threadIdx.x] += share[threadIdx.x + half];
    }
    __syncthreads();
    return share[threadIdx.x % MRK_FINISH_CHANNELS];
}

#endif
