/* kernels/cuda/kernels/elements.cu: operations that take every element by itself, and those over rows of
 * channels with a bias.
 *
 * All pass memory once and do little with it: a thread takes a pack of 16 bytes, or a single value where the
 * addresses or the function (functions.h) ask for it. Sums are float within a block and double over blocks,
 * in an order fixed by the grid. */
#include "kernels/cuda/kernels/functions.h"
#include "kernels/cuda/kernels/tile.h"

/* Run body(at) for packs of N, then tail(at) for the remaining values. */
template <int N, class Body, class Tail> MRK_INLINE void each(uint64_t count, Body body, Tail tail)
{
    const uint64_t packs = count / N;
    for (uint64_t i = mrk_thread(); i < packs; i += mrk_threads()) body(i * N);
    if (N == 1) return;
    const uint64_t at = packs * N + mrk_thread();
    if (at < count) tail(at); /* fewer than N, and a block has more threads */
}

/* ---- cast ---- */

template <class To, class From, int N> struct cast_step {
    const mrk_cast_args &a;
    __device__ __forceinline__ void operator()(uint64_t at) const
    {
        float v[N];
        mrk_read<From, N>(a.src, at, v);
        mrk_write<To, N>(a.dst, at, v);
    }
};

template <class To, class From> MRK_INLINE void cast_values(const mrk_cast_args &a)
{
    if (a.vectors) each<8>(a.count, cast_step<To, From, 8>{a}, cast_step<To, From, 1>{a});
    else each<1>(a.count, cast_step<To, From, 1>{a}, cast_step<To, From, 1>{a});
}

/* dst[i] = src[i] in another type, rounded to nearest even; flat arrays that do not overlap. Any grid. Same
 * bits in every run. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS) mrk_cast(const struct mrk_cast_args a)
{
    if (a.from == MR_TENSOR_F32) {
        if (a.to == MR_TENSOR_BF16) cast_values<mrk_bf16, float>(a);
        else cast_values<mrk_f16, float>(a);
    } else if (a.from == MR_TENSOR_BF16) {
        if (a.to == MR_TENSOR_F32) cast_values<float, mrk_bf16>(a);
        else cast_values<mrk_f16, mrk_bf16>(a);
    } else {
        if (a.to == MR_TENSOR_F32) cast_values<float, mrk_f16>(a);
        else cast_values<mrk_bf16, mrk_f16>(a);
    }
}

/* ---- accumulate ---- */

template <class T, int N> struct accumulate_step {
    const mrk_accumulate_args &a;
    __device__ __forceinline__ void operator()(uint64_t at) const
    {
        const mrk_raw<T, N> mine = mrk_load<T, N>(a.a, at), other = mrk_load<T, N>(a.b, at);
        float v[N], u[N];
        mrk_open(mine, v);
        mrk_open(other, u);
        MRK_UNROLL for (int i = 0; i < N; i++) v[i] += u[i];
        mrk_write<T, N>(a.a, at, v);
    }
};

template <class T, int N> MRK_INLINE void accumulate(const mrk_accumulate_args &a)
{
    each<N>(a.count, accumulate_step<T, N>{a}, accumulate_step<T, 1>{a});
}

/* a[i] += b[i], flat arrays of one type; b may not overlap a. Added in float, rounded once. Any grid. Same
 * bits in every run. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS) mrk_accumulate(const struct mrk_accumulate_args a)
{
    MRK_DISPATCH(a.dtype, a.vectors, accumulate, a);
}

/* ---- activation, sum of two ---- */

template <class T, int N, int A>
struct activate_step { /* A: the caller's pack, which determines the available activations */
    const mrk_activate_args &a;
    __device__ __forceinline__ void operator()(uint64_t at) const
    {
        const mrk_raw<T, N> x = mrk_load<T, N>(a.x, at), x2 = a.x2 ? mrk_load<T, N>(a.x2, at) : x;
        float v[N], u[N];
        mrk_open(x, v);
        mrk_open(x2, u);
        MRK_UNROLL for (int i = 0; i < N; i++) v[i] =
            mrk_activated<A>(a.activation, a.x2 ? v[i] + u[i] : v[i]);
        mrk_write<T, N>(a.y, at, v);
    }
};

template <class T, int N> MRK_INLINE void activate(const mrk_activate_args &a)
{
    each<N>(a.count, activate_step<T, N, N>{a}, activate_step<T, 1, N>{a});
}

/* y = act(x + x2), x2 or nothing; flat arrays of one type and layout. y may be x or x2, element for element.
 * In float, rounded once. Any grid. Same bits in every run. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS) mrk_activate(const struct mrk_activate_args a)
{
    MRK_DISPATCH(a.dtype, a.vectors, activate, a);
}

template <class T, int N, int A> struct activate_backward_step {
    const mrk_activate_backward_args &a;
    __device__ __forceinline__ void operator()(uint64_t at) const
    {
        const bool sloped = a.activation != MR_ACT_NONE;
        const mrk_raw<T, N> dy = mrk_load<T, N>(a.dy, at), dy2 = a.dy2 ? mrk_load<T, N>(a.dy2, at) : dy;
        const mrk_raw<T, N> y = sloped ? mrk_load<T, N>(a.y, at) : dy;
        float g[N], u[N], v[N];
        mrk_open(dy, g);
        mrk_open(dy2, u);
        mrk_open(y, v);
        MRK_UNROLL for (int i = 0; i < N; i++) g[i] =
            mrk_sloped<A>(a.activation, v[i], a.dy2 ? g[i] + u[i] : g[i]);
        if (a.out) mrk_write<T, N>(a.out, at, g);
        if (a.out2) mrk_write<T, N>(a.out2, at, g);
    }
};

template <class T, int N> MRK_INLINE void activate_backward(const mrk_activate_backward_args &a)
{
    each<N>(a.count, activate_backward_step<T, N, N>{a}, activate_backward_step<T, 1, N>{a});
}

/* out = out2 = (dy + dy2) * act'(y); flat arrays of one type and layout, outputs may be dy. In float, rounded
 * once. Any grid. Same bits in every run. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS, 5)
    mrk_activate_backward(const struct mrk_activate_backward_args a)
{
    MRK_DISPATCH(a.dtype, a.vectors, activate_backward, a);
}

/* ---- SiLU, GELU ---- */

template <class T, int N> struct smooth_step {
    const mrk_smooth_args &a;
    __device__ __forceinline__ void operator()(uint64_t at) const
    {
        float v[N];
        mrk_read<T, N>(a.x, at, v);
        MRK_UNROLL for (int i = 0; i < N; i++) v[i] = mrk_smooth_value(a.activation, v[i]);
        mrk_write<T, N>(a.y, at, v);
    }
};

template <class T, int N> MRK_INLINE void smooth(const mrk_smooth_args &a)
{
    each<N>(a.count, smooth_step<T, N>{a}, smooth_step<T, 1>{a});
}

/* y = act(x); flat arrays of one type. In float, rounded once. Any grid. Same bits in every run. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS) mrk_smooth(const struct mrk_smooth_args a)
{
    MRK_DISPATCH(a.dtype, a.vectors, smooth, a);
}

template <class T, int N> struct smooth_backward_step {
    const mrk_smooth_backward_args &a;
    __device__ __forceinline__ void operator()(uint64_t at) const
    {
        const mrk_raw<T, N> dy = mrk_load<T, N>(a.dy, at), dy2 = a.dy2 ? mrk_load<T, N>(a.dy2, at) : dy,
                            x = mrk_load<T, N>(a.x, at);
        float g[N], u[N], v[N];
        mrk_open(dy, g);
        mrk_open(dy2, u);
        mrk_open(x, v);
        MRK_UNROLL for (int i = 0; i < N; i++) g[i] =
            (a.dy2 ? g[i] + u[i] : g[i]) * mrk_smooth_slope(a.activation, v[i]);
        mrk_write<T, N>(a.dx, at, g);
    }
};

template <class T, int N> MRK_INLINE void smooth_backward(const mrk_smooth_backward_args &a)
{
    each<N>(a.count, smooth_backward_step<T, N>{a}, smooth_backward_step<T, 1>{a});
}

/* dx = (dy + dy2) * act'(x); flat arrays of one type, dx may be dy. In float, rounded once. Any grid. Same
 * bits in every run. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS)
    mrk_smooth_backward(const struct mrk_smooth_backward_args a)
{
    MRK_DISPATCH(a.dtype, a.vectors, smooth_backward, a);
}

/* ---- bias ---- */

template <class T, int N> MRK_INLINE void bias_activate(const mrk_bias_activate_args &a)
{
    const mrk_walk w = mrk_walk_of<N>(a.tile);
    if (!w.active) return;
    float bias[N];
    MRK_UNROLL for (int i = 0; i < N; i++) bias[i] = a.bias ? a.bias[w.channel + i] : 0;
    for (uint64_t r = w.row; r < a.tile.rows; r += 2 * w.step) {
        const bool two = r + w.step < a.tile.rows;
        const uint64_t at0 = r * a.tile.channels + w.channel,
                       at1 = (two ? r + w.step : r) * a.tile.channels + w.channel;
        const mrk_raw<T, N> y0 = mrk_load<T, N>(a.y, at0), y1 = mrk_load<T, N>(a.y, at1);
        float v[N], u[N];
        mrk_open(y0, v);
        mrk_open(y1, u);
        MRK_UNROLL for (int i = 0; i < N; i++)
        {
            v[i] = mrk_activated<N>(a.activation, v[i] + bias[i]);
            u[i] = mrk_activated<N>(a.activation, u[i] + bias[i]);
        }
        mrk_write<T, N>(a.y, at0, v);
        if (two) mrk_write<T, N>(a.y, at1, u);
    }
}

/* y = act(y + bias) in place, y [rows][channels], bias [channels] in float. Grid: tile.h. Same bits in every
 * run. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS)
    mrk_bias_activate(const struct mrk_bias_activate_args a)
{
    MRK_DISPATCH(a.tile.dtype, a.tile.vectors, bias_activate, a);
}

template <class T, int N> MRK_INLINE void bias_backward(const mrk_bias_backward_args &a, float *share)
{
    enum { ROWS = 4 }; /* loads under way */
    const mrk_walk w = mrk_walk_of<N>(a.tile);
    const bool sloped = a.activation != MR_ACT_NONE;
    float sum[N];
    MRK_UNROLL for (int i = 0; i < N; i++) sum[i] = 0;
    for (uint64_t r = w.row; w.active && r < a.tile.rows; r += ROWS * w.step) {
        mrk_raw<T, N> dy[ROWS], y[ROWS];
        MRK_UNROLL for (int k = 0; k < ROWS; k++)
        {
            const uint64_t row = r + k * w.step,
                           at = (row < a.tile.rows ? row : r) * a.tile.channels + w.channel;
            dy[k] = mrk_load<T, N>(a.dy, at);
            y[k] = sloped ? mrk_load<T, N>(a.y, at) : dy[k];
        }
        MRK_UNROLL for (int k = 0; k < ROWS; k++)
        {
            const uint64_t row = r + k * w.step;
            if (row >= a.tile.rows) break;
            float g[N], v[N];
            mrk_open(dy[k], g);
            mrk_open(y[k], v);
            MRK_UNROLL for (int i = 0; i < N; i++)
            {
                g[i] = mrk_sloped<N>(a.activation, v[i], g[i]);
                sum[i] += g[i];
            }
            if (sloped) mrk_write<T, N>(a.dy, row * a.tile.channels + w.channel, g);
        }
    }
    if (!a.partial) return;
    mrk_fold(sum, share, w, mrk_fold_add());
    if (!w.active || w.y > 0) return;
    MRK_UNROLL for (int i = 0; i < N; i++) a.partial[(uint64_t)blockIdx.x * a.tile.channels + w.channel + i] =
        sum[i];
}

/* dy *= act'(y) in place and, when wanted, its sums over the rows of each block, in float; y, dy
 * [rows][channels]. Grid: tile.h. Same bits in every run on one grid. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS)
    mrk_bias_backward(const struct mrk_bias_backward_args a)
{
    __shared__ float share[MRK_FOLD_FLOATS(8)];
    MRK_DISPATCH(a.tile.dtype, a.tile.vectors, bias_backward, a, share);
}

/* dbias[c] = sum over the parts, in double, in a fixed order. Grid: MRK_FINISH_CHANNELS channels a block. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS) mrk_bias_finish(const struct mrk_bias_finish_args a)
{
    __shared__ double share[MRK_THREADS];
    const uint32_t c = blockIdx.x * MRK_FINISH_CHANNELS + threadIdx.x % MRK_FINISH_CHANNELS,
                   lane = threadIdx.x / MRK_FINISH_CHANNELS;
    double sum = 0;
    for (uint32_t p = lane; c < a.channels && p < a.parts; p += MRK_FINISH_LANES)
        sum += (double)a.partial[(uint64_t)p * a.channels + c];
    sum = mrk_finish_sum(sum, share);
    if (c < a.channels && lane == 0) a.dbias[c] = (float)sum;
}
