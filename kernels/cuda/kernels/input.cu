/* kernels/cuda/kernels/input.cu: conversion of data to network input: uint8 pixels normalised, mirrored, in
 * the required type and layout, in one pass; whole numbers as rows with a single 1; numbers of any type. */
#include "kernels/cuda/kernels/number.h"

struct channel_map {
    float k[4], d[4];
};

/* Of one sample, as ops/data/input.c works it out. */
MRK_INLINE channel_map map_of(const mrk_input_args &a, uint32_t sample)
{
    channel_map m;
    const float gain = a.affine ? a.affine[2 * (uint64_t)sample] : 1,
                offset = a.affine ? a.affine[2 * (uint64_t)sample + 1] : 0;
    MRK_UNROLL for (int c = 0; c < 4; c++)
    {
        m.k[c] = a.affine && c < (int)a.c ? gain / a.std[c] : a.k[c];
        m.d[c] = a.affine && c < (int)a.c ? (offset - a.mean[c]) / a.std[c] : a.d[c];
    }
    return m;
}

MRK_INLINE float pick(const float (&v)[4], uint32_t c)
{
    return c == 0 ? v[0] : c == 1 ? v[1] : c == 2 ? v[2] : v[3];
}

template <class T, int N> MRK_INLINE void input_packs(const mrk_input_args &a)
{
    const uint32_t pixels = a.h * a.w; /* with c <= 4 a sample stays below 2^32 (grid.h) */
    const uint64_t packs = (uint64_t)pixels * a.c / N * a.n;
    for (uint64_t i = mrk_thread(); i < packs; i += mrk_threads()) {
        const uint32_t sample = (uint32_t)(i / (pixels * a.c / N)),
                       first = (uint32_t)(i - (uint64_t)sample * (pixels * a.c / N)) * N;
        const channel_map m = map_of(a, sample);
        const bool flip = a.flip && a.flip[sample];
        const uint8_t *x = a.x + (uint64_t)sample * pixels * a.c;
        uint32_t pixel = a.planar ? first % pixels : first / a.c, c = a.planar ? first / pixels : first % a.c;
        uint32_t row = pixel / a.w, column = pixel - row * a.w;
        float v[N];
        MRK_UNROLL for (int k = 0; k < N; k++)
        {
            const uint32_t from = row * a.w + (flip ? a.w - 1 - column : column);
            v[k] = mrk_add(mrk_multiply((float)x[(uint64_t)from * a.c + c], pick(m.k, c)), pick(m.d, c));
            if (!a.planar && ++c < a.c) continue;
            if (!a.planar) c = 0;
            if (++column == a.w) column = 0, row++;
        }
        mrk_write<T, N>(a.y, (uint64_t)sample * pixels * a.c + first, v);
    }
}

/* y = x * k + d per sample and channel, a thread a pack of y. x [n][h][w][c] bytes, y [n][h][w][c] or
 * [n][c][h][w]. Float, product and sum rounded apart, so that f32 gives the bits of ops/data/input.c. Any
 * grid. Same bits in every run. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS) mrk_input(const struct mrk_input_args a)
{
    MRK_DISPATCH(a.dtype, a.vectors, input_packs, a);
}

template <class T, int N> MRK_INLINE void one_hot_packs(const mrk_one_hot_args &a)
{
    const uint64_t packs = a.count / N;
    for (uint64_t i = mrk_thread(); i < packs; i += mrk_threads()) {
        const uint64_t row = i * N / a.classes;
        const int64_t one = mrk_whole_number(a.x, a.from, row) - (int64_t)(i * N - row * a.classes);
        float v[N];
        MRK_UNROLL for (int k = 0; k < N; k++) v[k] = one == k ? 1.0f : 0.0f;
        mrk_write<T, N>(a.y, i * N, v);
    }
}

/* y[row][c] = 1 where x[row] is c, else 0; a thread a pack of y. Any grid. Same bits in every run. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS) mrk_one_hot(const struct mrk_one_hot_args a)
{
    MRK_DISPATCH(a.dtype, a.vectors, one_hot_packs, a);
}

template <class T, int N> MRK_INLINE void field_packs(const mrk_field_args &a)
{
    const uint64_t packs = a.count / N;
    for (uint64_t i = mrk_thread(); i < packs; i += mrk_threads()) {
        float v[N];
        MRK_UNROLL for (int k = 0; k < N; k++) v[k] =
            (float)((mrk_real_number(a.x, a.from, i * N + k) - (double)a.mean) / (double)a.std);
        mrk_write<T, N>(a.y, i * N, v);
    }
}

/* y = (x - mean) / std in double, a thread a pack of y; f32 has the bits of ops/data/field.c. Any grid. Same
 * bits in every run. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS) mrk_field(const struct mrk_field_args a)
{
    MRK_DISPATCH(a.dtype, a.vectors, field_packs, a);
}
