/* kernels/cuda/kernels/pool.cu: windows over NHWC. A block takes a row of outputs (of inputs in backward) at
 * a time, its threads the packs of channels in it, so that neighbours in memory are neighbours in a warp.
 *
 * Backward gathers: an input looks at the windows that cover it, in row order, instead of windows adding to
 * inputs; so nothing is added by two threads, nothing must be cleared first, and sums have the order of
 * ops/pool2d.c. */
#include "kernels/cuda/kernels/values.h"

/* Places [from, to) of a window that starts at `first` (below 0 in the padding) and that lie inside 0 ..
 * side. */
struct range {
    uint32_t from, to;
};

MRK_INLINE range clip(int64_t first, uint32_t kernel, uint32_t side)
{
    range r;
    r.from = first < 0 ? (uint32_t)-first : 0;
    r.to = first + kernel > side ? (uint32_t)(side - first) : kernel;
    return r;
}

MRK_INLINE int64_t start_of(uint32_t out, uint32_t stride, uint32_t pad)
{
    return (int64_t)out * stride - pad;
}

/* Windows [from, to) that cover input `at`. */
MRK_INLINE range covering(uint32_t at, uint32_t kernel, uint32_t stride, uint32_t pad, uint32_t windows)
{
    const uint32_t padded = at + pad;
    range r;
    r.from = padded < kernel ? 0 : (padded - kernel) / stride + 1;
    r.to = padded / stride + 1 < windows ? padded / stride + 1 : windows;
    return r;
}

/* Places as they are saved: N of 1 or 2 bytes. */
template <int N>
MRK_INLINE void write_places(void *places, uint64_t at, uint32_t bytes, const uint32_t (&p)[N])
{
    if (N == 8 && bytes == 1) {
        mrk_twin t;
        MRK_UNROLL for (int i = 0; i < 2; i++) t.w[i] =
            p[(4 * i) % N] | p[(4 * i + 1) % N] << 8 | p[(4 * i + 2) % N] << 16 | p[(4 * i + 3) % N] << 24;
        *(mrk_twin *)(void *)((uint8_t *)places + at) = t;
        return;
    }
    MRK_UNROLL for (int i = 0; i < N; i++)
    {
        if (bytes == 1) ((uint8_t *)places)[at + i] = (uint8_t)p[i];
        else ((uint16_t *)places)[at + i] = (uint16_t)p[i];
    }
}

template <int N>
MRK_INLINE void read_places(const void *places, uint64_t at, uint32_t bytes, uint32_t (&p)[N])
{
    if (N == 8 && bytes == 1) {
        const mrk_twin t = *(const mrk_twin *)(const void *)((const uint8_t *)places + at);
        MRK_UNROLL for (int i = 0; i < N; i++) p[i] = t.w[i / 4 % 2] >> i % 4 * 8 & 255;
        return;
    }
    MRK_UNROLL for (int i = 0; i < N; i++) p[i] =
        bytes == 1 ? ((const uint8_t *)places)[at + i] : ((const uint16_t *)places)[at + i];
}

/* Calls body(sample, row, column, channel) for every pack of `rows` rows of `columns` columns in every
 * sample. */
template <int N, class Body>
MRK_INLINE void each_place(const mrk_window &win, uint32_t rows, uint32_t columns, Body body)
{
    const uint32_t packs = win.c / N;
    const uint64_t items = (uint64_t)columns * packs;
    for (uint64_t b = blockIdx.x; b < (uint64_t)win.n * rows; b += gridDim.x) {
        const uint32_t sample = (uint32_t)(b / rows), row = (uint32_t)(b - (uint64_t)sample * rows);
        for (uint64_t i = threadIdx.x; i < items; i += blockDim.x) {
            const uint32_t column = items >> 32 ? (uint32_t)(i / packs) : (uint32_t)i / packs;
            body(sample, row, column, (uint32_t)(i - (uint64_t)column * packs) * N);
        }
    }
}

MRK_INLINE uint64_t place_of(const mrk_window &win, uint32_t sample, uint32_t height, uint32_t width,
                             int64_t row, int64_t column, uint32_t channel)
{
    return (((uint64_t)sample * height + (uint64_t)row) * width + (uint64_t)column) * win.c + channel;
}

/* ---- maximum ---- */

template <class T, int N> struct max_step {
    const mrk_max_pool_args &a;
    __device__ __forceinline__ void operator()(uint32_t sample, uint32_t oy, uint32_t ox, uint32_t c) const
    {
        const mrk_window &win = a.win;
        const int64_t y0 = start_of(oy, win.stride_h, win.pad_top),
                      x0 = start_of(ox, win.stride_w, win.pad_left);
        const range ky = clip(y0, win.kernel_h, win.h), kx = clip(x0, win.kernel_w, win.w);
        float best[N];
        uint32_t place[N];
        mrk_read<T, N>(a.x, place_of(win, sample, win.h, win.w, y0 + ky.from, x0 + kx.from, c), best);
        MRK_UNROLL for (int i = 0; i < N; i++) place[i] = ky.from * win.kernel_w + kx.from;
        for (uint32_t y = ky.from; y < ky.to; y++) {
            MRK_UNROLL_SOME for (uint32_t x = kx.from; x < kx.to; x++)
            {
                float v[N];
                mrk_read<T, N>(a.x, place_of(win, sample, win.h, win.w, y0 + y, x0 + x, c), v);
                MRK_UNROLL for (int i = 0; i < N; i++)
                {
                    if (!(v[i] > best[i]))
                        continue; /* the first of equal values wins; a NaN stays if it came first */
                    best[i] = v[i];
                    place[i] = y * win.kernel_w + x;
                }
            }
        }
        const uint64_t at = place_of(win, sample, win.out_h, win.out_w, oy, ox, c);
        mrk_write<T, N>(a.y, at, best);
        if (a.places) write_places<N>(a.places, at, win.place_bytes, place);
    }
};

template <class T, int N> MRK_INLINE void max_pool(const mrk_max_pool_args &a)
{
    each_place<N>(a.win, a.win.out_h, a.win.out_w, max_step<T, N>{a});
}

/* y = largest of each window, places (for backward) = which place of it, kernel_w * ky + kx, the first of
 * equals. x [n][h][w][c], y and places [n][out_h][out_w][c]; nothing overlaps. Any grid. Exact. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS, 3) mrk_max_pool(const struct mrk_max_pool_args a)
{
    MRK_DISPATCH(a.win.dtype, a.win.vectors, max_pool, a);
}

template <class T, int N> struct max_backward_step {
    const mrk_max_pool_backward_args &a;
    __device__ __forceinline__ void operator()(uint32_t sample, uint32_t y, uint32_t x, uint32_t c) const
    {
        const mrk_window &win = a.win;
        const range rows = covering(y, win.kernel_h, win.stride_h, win.pad_top, win.out_h);
        const range columns = covering(x, win.kernel_w, win.stride_w, win.pad_left, win.out_w);
        float sum[N];
        MRK_UNROLL for (int i = 0; i < N; i++) sum[i] = 0;
        for (uint32_t oy = rows.from; oy < rows.to; oy++)
            for (uint32_t ox = columns.from; ox < columns.to; ox++) {
                const uint64_t at = place_of(win, sample, win.out_h, win.out_w, oy, ox, c);
                const uint32_t mine = (y + win.pad_top - oy * win.stride_h) * win.kernel_w + x +
                                      win.pad_left - ox * win.stride_w;
                float dy[N];
                uint32_t place[N];
                read_places<N>(a.places, at, win.place_bytes, place);
                mrk_read<T, N>(a.dy, at, dy);
                MRK_UNROLL for (int i = 0; i < N; i++) if (place[i] == mine) sum[i] += dy[i];
            }
        mrk_write<T, N>(a.dx, place_of(win, sample, win.h, win.w, y, x, c), sum);
    }
};

template <class T, int N> MRK_INLINE void max_pool_backward(const mrk_max_pool_backward_args &a)
{
    each_place<N>(a.win, a.win.h, a.win.w, max_backward_step<T, N>{a});
}

/* dx = dy of those windows whose largest value this was, in float. Shapes as in mrk_max_pool. Any grid. Same
 * bits in every run. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS, 3)
    mrk_max_pool_backward(const struct mrk_max_pool_backward_args a)
{
    MRK_DISPATCH(a.win.dtype, a.win.vectors, max_pool_backward, a);
}

/* ---- average ---- */

template <class T, int N> struct average_step {
    const mrk_average_pool_args &a;
    __device__ __forceinline__ void operator()(uint32_t sample, uint32_t oy, uint32_t ox, uint32_t c) const
    {
        const mrk_window &win = a.win;
        const int64_t y0 = start_of(oy, win.stride_h, win.pad_top),
                      x0 = start_of(ox, win.stride_w, win.pad_left);
        const range ky = clip(y0, win.kernel_h, win.h), kx = clip(x0, win.kernel_w, win.w);
        const float count = (float)((ky.to - ky.from) * (kx.to - kx.from));
        float sum[N];
        MRK_UNROLL for (int i = 0; i < N; i++) sum[i] = 0;
        for (uint32_t y = ky.from; y < ky.to; y++) {
            MRK_UNROLL_SOME for (uint32_t x = kx.from; x < kx.to; x++)
            {
                float v[N];
                mrk_read<T, N>(a.x, place_of(win, sample, win.h, win.w, y0 + y, x0 + x, c), v);
                MRK_UNROLL for (int i = 0; i < N; i++) sum[i] += v[i];
            }
        }
        MRK_UNROLL for (int i = 0; i < N; i++) sum[i] /= count;
        mrk_write<T, N>(a.y, place_of(win, sample, win.out_h, win.out_w, oy, ox, c), sum);
    }
};

template <class T, int N> MRK_INLINE void average_pool(const mrk_average_pool_args &a)
{
    each_place<N>(a.win, a.win.out_h, a.win.out_w, average_step<T, N>{a});
}

/* y = mean of each window, padding not counted; a window over the whole input is the global average. Summed
 * in float in row order, rounded once. x [n][h][w][c], y [n][out_h][out_w][c]. Any grid. Same bits in every
 * run. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS, 3)
    mrk_average_pool(const struct mrk_average_pool_args a)
{
    MRK_DISPATCH(a.win.dtype, a.win.vectors, average_pool, a);
}

template <class T, int N> struct average_backward_step {
    const mrk_average_pool_backward_args &a;
    __device__ __forceinline__ void operator()(uint32_t sample, uint32_t y, uint32_t x, uint32_t c) const
    {
        const mrk_window &win = a.win;
        const range rows = covering(y, win.kernel_h, win.stride_h, win.pad_top, win.out_h);
        const range columns = covering(x, win.kernel_w, win.stride_w, win.pad_left, win.out_w);
        float sum[N];
        MRK_UNROLL for (int i = 0; i < N; i++) sum[i] = 0;
        for (uint32_t oy = rows.from; oy < rows.to; oy++)
            for (uint32_t ox = columns.from; ox < columns.to; ox++) {
                const range ky = clip(start_of(oy, win.stride_h, win.pad_top), win.kernel_h, win.h);
                const range kx = clip(start_of(ox, win.stride_w, win.pad_left), win.kernel_w, win.w);
                const float count = (float)((ky.to - ky.from) * (kx.to - kx.from));
                float dy[N];
                mrk_read<T, N>(a.dy, place_of(win, sample, win.out_h, win.out_w, oy, ox, c), dy);
                MRK_UNROLL for (int i = 0; i < N; i++) sum[i] += dy[i] / count;
            }
        mrk_write<T, N>(a.dx, place_of(win, sample, win.h, win.w, y, x, c), sum);
    }
};

template <class T, int N> MRK_INLINE void average_pool_backward(const mrk_average_pool_backward_args &a)
{
    each_place<N>(a.win, a.win.h, a.win.w, average_backward_step<T, N>{a});
}

/* dx = sum of dy / count over the windows that cover it, in float. Shapes as in mrk_average_pool. Any grid.
 * Same bits in every run. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS, 3)
    mrk_average_pool_backward(const struct mrk_average_pool_backward_args a)
{
    MRK_DISPATCH(a.win.dtype, a.win.vectors, average_pool_backward, a);
}
