/* kernels/cuda/kernels/scale.cu: a factor for each sample and channel (squeeze and excitation), rows of
 * channels as tile.h walks them, but within one sample. The gradient to a factor is a sum over the sample's
 * pixels, by one block: float in a thread, then by halves; it depends on the sample's size alone. */
#include "kernels/cuda/kernels/tile.h"

template <class T, int N> MRK_INLINE void scale(const mrk_scale_args &a)
{
    const mrk_walk w = mrk_walk_of<N>(a.tile);
    const uint32_t sample = blockIdx.x / a.parts, part = blockIdx.x - sample * a.parts;
    if (!w.active || sample >= a.n) return;
    const uint64_t start = (uint64_t)sample * a.tile.rows * a.tile.channels + w.channel,
                   step = (uint64_t)a.parts * w.height;
    float factor[N];
    mrk_read<T, N>(a.factor, (uint64_t)sample * a.tile.channels + w.channel, factor);
    for (uint64_t p = (uint64_t)part * w.height + w.y; p < a.tile.rows; p += 2 * step) {
        const bool two = p + step < a.tile.rows;
        const uint64_t at0 = start + p * a.tile.channels,
                       at1 = start + (two ? p + step : p) * a.tile.channels;
        const mrk_raw<T, N> x0 = mrk_load<T, N>(a.x, at0), x1 = mrk_load<T, N>(a.x, at1);
        float v[N], u[N];
        mrk_open(x0, v);
        mrk_open(x1, u);
        MRK_UNROLL for (int i = 0; i < N; i++) v[i] *= factor[i], u[i] *= factor[i];
        mrk_write<T, N>(a.y, at0, v);
        if (two) mrk_write<T, N>(a.y, at1, u);
    }
}

/* Grid: n * parts along x, tile.h's along y. Same bits in every run. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS) mrk_scale(const struct mrk_scale_args a)
{
    MRK_DISPATCH(a.tile.dtype, a.tile.vectors, scale, a);
}

template <class T, int N> MRK_INLINE void scale_backward(const mrk_scale_backward_args &a, float *share)
{
    const mrk_walk w = mrk_walk_of<N>(a.tile);
    const uint32_t sample = blockIdx.x;
    const uint64_t start = (uint64_t)sample * a.tile.rows * a.tile.channels + w.channel,
                   factor_at = (uint64_t)sample * a.tile.channels + w.channel;
    float factor[N], sum[N];
    MRK_UNROLL for (int i = 0; i < N; i++) sum[i] = factor[i] = 0;
    if (w.active) mrk_read<T, N>(a.factor, factor_at, factor);
    for (uint64_t p = w.y; w.active && p < a.tile.rows; p += 2 * w.height) {
        const bool two = p + w.height < a.tile.rows;
        const uint64_t at0 = start + p * a.tile.channels,
                       at1 = start + (two ? p + w.height : p) * a.tile.channels;
        const mrk_raw<T, N> dy0 = mrk_load<T, N>(a.dy, at0), dy1 = mrk_load<T, N>(a.dy, at1),
                            x0 = mrk_load<T, N>(a.x, at0), x1 = mrk_load<T, N>(a.x, at1);
        float g0[N], g1[N], v0[N], v1[N];
        mrk_open(dy0, g0);
        mrk_open(dy1, g1);
        mrk_open(x0, v0);
        mrk_open(x1, v1);
        MRK_UNROLL for (int i = 0; i < N; i++)
        {
            sum[i] += g0[i] * v0[i];
            if (two) sum[i] += g1[i] * v1[i];
            g0[i] *= factor[i];
            g1[i] *= factor[i];
        }
        if (!a.dx) continue;
        mrk_write<T, N>(a.dx, at0, g0);
        if (two) mrk_write<T, N>(a.dx, at1, g1);
    }
    if (!a.dfactor) return;
    mrk_fold(sum, share, w, mrk_fold_add());
    if (w.active && w.y == 0) mrk_write<T, N>(a.dfactor, factor_at, sum);
}

/* Grid: n along x, tile.h's along y. Same bits in every run, and for a sample in every batch. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS)
    mrk_scale_backward(const struct mrk_scale_backward_args a)
{
    __shared__ float share[MRK_FOLD_FLOATS(8)];
    MRK_DISPATCH(a.tile.dtype, a.tile.vectors, scale_backward, a, share);
}
