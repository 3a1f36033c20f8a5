/* kernels/cuda/kernels/norm.cu: a sample normalised by itself, over groups of channels (ops/groupnorm.c), a
 * block a set. Sums are double, by halves: the same bits in every run, and for a sample in every batch. */
#include "kernels/cuda/kernels/join.h"
#include "kernels/cuda/kernels/values.h"

struct set_walk {
    uint64_t start;         /* of its first value */
    uint64_t values;        /* in it */
    uint32_t width, stride; /* channels of the set, of a pixel */
    uint32_t first;         /* channel */
};

MRK_INLINE set_walk set_of(const mrk_sets &s, uint64_t number)
{
    const uint64_t sets = s.each_pixel ? s.pixels * s.groups : s.groups, sample = number / sets,
                   at = number - sample * sets;
    set_walk w;
    w.width = s.channels / s.groups;
    w.stride = s.channels;
    w.first = (uint32_t)(at % s.groups) * w.width;
    w.values = (s.each_pixel ? 1 : s.pixels) * w.width;
    w.start = sample * s.pixels * s.channels + (s.each_pixel ? at / s.groups * s.channels : 0) + w.first;
    return w;
}

/* Where value e of a set lies. */
MRK_INLINE uint64_t place_in(const set_walk &w, uint64_t e)
{
    return w.start + e / w.width * w.stride + e % w.width;
}

template <class T> MRK_INLINE void groupnorm(const mrk_groupnorm_args &a, double *share)
{
    const set_walk w = set_of(a.sets, blockIdx.x);
    const T *x = (const T *)a.x;
    double sum = 0, squares = 0;
    for (uint64_t e = threadIdx.x; e < w.values; e += blockDim.x) sum += (double)mrk_float(x[place_in(w, e)]);
    const double m = joined(sum, share, join_sum()) / (double)w.values;
    for (uint64_t e = threadIdx.x; e < w.values; e += blockDim.x) {
        const double d = (double)mrk_float(x[place_in(w, e)]) - m;
        squares += d * d;
    }
    squares = joined(squares, share, join_sum());
    const float mean = (float)m, r = (float)(1 / sqrt(squares / (double)w.values + (double)a.epsilon));
    if (a.saved && threadIdx.x == 0) {
        a.saved[2 * (uint64_t)blockIdx.x] = mean;
        a.saved[2 * (uint64_t)blockIdx.x + 1] = r;
    }
    for (uint64_t e = threadIdx.x; e < w.values; e += blockDim.x) {
        const uint64_t at = place_in(w, e);
        const uint32_t c = w.first + (uint32_t)(e % w.width);
        mrk_round((mrk_float(x[at]) - mean) * r * a.scale[c] + a.shift[c], (T *)a.y + at);
    }
}

/* y and, where there is room, mean and 1 / deviation of each set. Grid: a block a set. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS) mrk_groupnorm(const struct mrk_groupnorm_args a)
{
    __shared__ double share[MRK_THREADS];
    if (a.sets.dtype == MR_TENSOR_BF16) groupnorm<mrk_bf16>(a, share);
    else if (a.sets.dtype == MR_TENSOR_F16) groupnorm<mrk_f16>(a, share);
    else groupnorm<float>(a, share);
}

template <class T> MRK_INLINE void groupnorm_backward(const mrk_groupnorm_backward_args &a, double *share)
{
    const set_walk w = set_of(a.sets, blockIdx.x);
    const T *x = (const T *)a.x, *dy = (const T *)a.dy;
    const float mean = a.saved[2 * (uint64_t)blockIdx.x], r = a.saved[2 * (uint64_t)blockIdx.x + 1];
    double sum = 0, product = 0;
    for (uint64_t e = threadIdx.x; e < w.values; e += blockDim.x) {
        const uint64_t at = place_in(w, e);
        const float g = mrk_float(dy[at]) * a.scale[w.first + (uint32_t)(e % w.width)];
        sum += (double)g;
        product += (double)g * (double)((mrk_float(x[at]) - mean) * r);
    }
    const float m1 = (float)(joined(sum, share, join_sum()) / (double)w.values),
                m2 = (float)(joined(product, share, join_sum()) / (double)w.values);
    for (uint64_t e = threadIdx.x; e < w.values; e += blockDim.x) {
        const uint64_t at = place_in(w, e);
        const float g = mrk_float(dy[at]) * a.scale[w.first + (uint32_t)(e % w.width)];
        mrk_round(r * (g - m1 - (mrk_float(x[at]) - mean) * r * m2), (T *)a.dx + at);
    }
}

/* dx; it must not be one of the other arrays. Grid: a block a set. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS)
    mrk_groupnorm_backward(const struct mrk_groupnorm_backward_args a)
{
    __shared__ double share[MRK_THREADS];
    if (a.sets.dtype == MR_TENSOR_BF16) groupnorm_backward<mrk_bf16>(a, share);
    else if (a.sets.dtype == MR_TENSOR_F16) groupnorm_backward<mrk_f16>(a, share);
    else groupnorm_backward<float>(a, share);
}

template <class T> MRK_INLINE void groupnorm_params(const mrk_groupnorm_params_args &a, double *share)
{
    const mrk_sets &s = a.sets;
    const uint32_t c = blockIdx.x, group = c / (s.channels / s.groups);
    double dscale = 0, dshift = 0;
    for (uint64_t row = threadIdx.x; row < s.n * s.pixels; row += blockDim.x) {
        const uint64_t at = row * s.channels + c,
                       set = (s.each_pixel ? row : row / s.pixels) * s.groups + group;
        const float dy = mrk_float(((const T *)a.dy)[at]);
        dshift += (double)dy;
        dscale += (double)dy *
                  (double)((mrk_float(((const T *)a.x)[at]) - a.saved[2 * set]) * a.saved[2 * set + 1]);
    }
    dscale = joined(dscale, share, join_sum());
    dshift = joined(dshift, share, join_sum());
    if (threadIdx.x > 0) return;
    a.dscale[c] = (float)dscale;
    a.dshift[c] = (float)dshift;
}

/* Gradients of scale and shift. Grid: a block a channel. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS)
    mrk_groupnorm_params(const struct mrk_groupnorm_params_args a)
{
    __shared__ double share[MRK_THREADS];
    if (a.sets.dtype == MR_TENSOR_BF16) groupnorm_params<mrk_bf16>(a, share);
    else if (a.sets.dtype == MR_TENSOR_F16) groupnorm_params<mrk_f16>(a, share);
    else groupnorm_params<float>(a, share);
}
