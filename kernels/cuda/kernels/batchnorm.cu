/* kernels/cuda/kernels/batchnorm.cu: batch normalisation over rows of channels (rows = n * h * w), in few
 * passes over memory:
 *
 *   forward    statistics (reads x) ──► finish ──► apply (reads x, x2; writes y)
 *   backward   sums (reads dy, dy2, x, perhaps y; may write dy) ──► gradients ──► dx (reads dy, x; writes dx)
 *
 * Variances come from distances to a value that the thread met first, and are put together by the formula for
 * joining two sets (Chan, Golub & LeVeque 1979): nothing cancels, however far the mean is from zero. Float in
 * a block, double over blocks; the order is fixed by the grid, so every run on one GPU gives the same bits.
 *
 * Backward evaluates a ReLU without a second input from x: x * k + d as forward computed it, rounded as
 * forward stored it. That saves reading y twice. A pass that reads memory the previous pass touched walks it
 * in reverse: data still in the cache is read first. */
#include "kernels/cuda/kernels/functions.h"
#include "kernels/cuda/kernels/tile.h"

/* v[0..N) means, v[N..2N) sums of squared distances to them, v[2N] how many. */
template <int N> struct join_sets {
    template <int M>
    __device__ __forceinline__ void operator()(float (&mine)[M], const float (&other)[M]) const
    {
        const float n = mine[2 * N] + other[2 * N], part = n > 0 ? other[2 * N] / n : 0;
        MRK_UNROLL for (int i = 0; i < N; i++)
        {
            const float apart = other[i] - mine[i];
            mine[i] += apart * part;
            mine[N + i] += other[N + i] + apart * apart * part * mine[2 * N];
        }
        mine[2 * N] = n;
    }
};

template <class T, int N> MRK_INLINE void statistics(const mrk_batchnorm_statistics_args &a, float *share)
{
    enum { ROWS = 4 };
    const mrk_walk w = mrk_walk_of<N>(a.tile);
    const uint64_t rows = a.tile.rows, c = a.tile.channels;
    float set[2 * N + 1], shift[N], s1[N], s2[N], count = 0;
    MRK_UNROLL for (int i = 0; i < N; i++) shift[i] = s1[i] = s2[i] = 0;
    if (w.active && w.row < rows) mrk_read<T, N>(a.x, (rows - 1 - w.row) * c + w.channel, shift);
    for (uint64_t r = w.row; w.active && r < rows; r += ROWS * w.step) {
        mrk_raw<T, N> x[ROWS];
        MRK_UNROLL for (int k = 0; k < ROWS; k++)
        {
            const uint64_t row = r + k * w.step;
            x[k] = mrk_load<T, N>(a.x, (rows - 1 - (row < rows ? row : r)) * c + w.channel);
        }
        MRK_UNROLL for (int k = 0; k < ROWS; k++)
        {
            if (r + k * w.step >= rows) break;
            float v[N];
            mrk_open(x[k], v);
            MRK_UNROLL for (int i = 0; i < N; i++)
            {
                const float apart = v[i] - shift[i];
                s1[i] += apart;
                s2[i] = fmaf(apart, apart, s2[i]);
            }
            count += 1;
        }
    }
    set[2 * N] = count;
    MRK_UNROLL for (int i = 0; i < N; i++)
    {
        const float mean = count > 0 ? s1[i] / count : 0, rest = fmaf(-mean, s1[i], s2[i]);
        set[i] = shift[i] + mean;
        set[N + i] = rest > 0 ? rest : 0;
    }
    mrk_fold(set, share, w, join_sets<N>());
    if (!w.active || w.y > 0) return;
    MRK_UNROLL for (int i = 0; i < N; i++)
    {
        a.partial[(uint64_t)blockIdx.x * 2 * c + w.channel + i] = set[i];
        a.partial[((uint64_t)blockIdx.x * 2 + 1) * c + w.channel + i] = set[N + i];
    }
}

/* Mean and sum of squared distances to it, of each block's rows and each channel of x [rows][channels]. Grid:
 * tile.h. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS, 4)
    mrk_batchnorm_statistics(const struct mrk_batchnorm_statistics_args a)
{
    __shared__ float share[MRK_FOLD_FLOATS(17)];
    MRK_DISPATCH(a.tile.dtype, a.tile.vectors, statistics, a, share);
}

/* The blocks' sets joined, in double; saved [4][channels] and the running statistics from that. A channel of
 * no spread beyond rounding is as in ops/batchnorm.c: epsilon alone keeps its inverse finite. Grid:
 * MRK_FINISH_CHANNELS channels a block. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS)
    mrk_batchnorm_finish(const struct mrk_batchnorm_finish_args a)
{
    __shared__ double share[MRK_THREADS];
    const uint32_t channels = a.tile.channels,
                   c = blockIdx.x * MRK_FINISH_CHANNELS + threadIdx.x % MRK_FINISH_CHANNELS;
    const uint32_t lane = threadIdx.x / MRK_FINISH_CHANNELS;
    double sum = 0, square = 0;
    for (uint32_t p = lane; c < channels && p < a.parts; p += MRK_FINISH_LANES)
        sum += (double)mrk_rows_of(a.tile, a.parts, p) * (double)a.partial[(uint64_t)p * 2 * channels + c];
    const double mean = mrk_finish_sum(sum, share) / (double)a.tile.rows;
    for (uint32_t p = lane; c < channels && p < a.parts; p += MRK_FINISH_LANES) {
        const double apart = (double)a.partial[(uint64_t)p * 2 * channels + c] - mean;
        square += (double)a.partial[((uint64_t)p * 2 + 1) * channels + c] +
                  (double)mrk_rows_of(a.tile, a.parts, p) * apart * apart;
    }
    const double variance = mrk_finish_sum(square, share) / (double)a.tile.rows;
    if (c >= channels || lane > 0) return;
    const float inverse = (float)(1 / sqrt(variance + (double)a.epsilon)),
                k = (a.scale ? a.scale[c] : 1) * inverse;
    a.mean[c] = a.momentum * a.mean[c] + (1 - a.momentum) * (float)mean;
    a.variance[c] = a.momentum * a.variance[c] + (1 - a.momentum) * (float)variance;
    a.saved[c] = (float)mean;
    a.saved[channels + c] = inverse;
    a.saved[2 * channels + c] = k;
    a.saved[3 * channels + c] = a.shift[c] - (float)mean * k;
}

/* k and d of y = x * k + d from the running statistics, a thread a channel. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS)
    mrk_batchnorm_running(const struct mrk_batchnorm_running_args a)
{
    const uint64_t c = mrk_thread();
    if (c >= a.channels) return;
    const float k = (a.scale ? a.scale[c] : 1) * (1 / sqrtf(a.variance[c] + a.epsilon));
    a.coefficients[c] = k;
    a.coefficients[a.channels + c] = a.shift[c] - a.mean[c] * k;
}

template <class T, int N> MRK_INLINE void apply(const mrk_batchnorm_apply_args &a)
{
    enum { ROWS = 2 };
    const mrk_walk w = mrk_walk_of<N>(a.tile);
    const uint64_t rows = a.tile.rows, c = a.tile.channels;
    if (!w.active) return;
    float scale[N], shift[N];
    MRK_UNROLL for (int i = 0; i < N; i++)
    {
        scale[i] = a.coefficients[w.channel + i];
        shift[i] = a.coefficients[c + w.channel + i];
    }
    for (uint64_t r = w.row; r < rows; r += ROWS * w.step) {
        mrk_raw<T, N> x[ROWS], x2[ROWS];
        MRK_UNROLL for (int k = 0; k < ROWS; k++)
        {
            const uint64_t row = r + k * w.step, at = (row < rows ? row : r) * c + w.channel;
            x[k] = mrk_load<T, N>(a.x, at);
            x2[k] = a.x2 ? mrk_load<T, N>(a.x2, at) : x[k];
        }
        MRK_UNROLL for (int k = 0; k < ROWS; k++)
        {
            const uint64_t row = r + k * w.step;
            if (row >= rows) break;
            float v[N], u[N];
            mrk_open(x[k], v);
            mrk_open(x2[k], u);
            MRK_UNROLL for (int i = 0; i < N; i++)
            {
                v[i] = fmaf(v[i], scale[i], shift[i]);
                v[i] = mrk_activated<N>(a.activation, a.x2 ? v[i] + u[i] : v[i]);
            }
            mrk_write<T, N>(a.y, row * c + w.channel, v);
        }
    }
}

/* y = act(x * k + d + x2), x2 or nothing; [rows][channels], y apart from both. In float, rounded once. Grid:
 * tile.h. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS, 3)
    mrk_batchnorm_apply(const struct mrk_batchnorm_apply_args a)
{
    MRK_DISPATCH(a.tile.dtype, a.tile.vectors, apply, a);
}

/* ---- backward ---- */

/* relu'(x * k + d), as forward saw it */
template <class T> MRK_INLINE bool passes(float x, float k, float d)
{
    return mrk_kept<T>(fmaf(x, k, d)) > 0;
}

template <class T, int N> MRK_INLINE void sums(const mrk_batchnorm_sums_args &a, float *share)
{
    enum { ROWS = 3 }; /* the most that fit into the registers of two blocks */
    const mrk_walk w = mrk_walk_of<N>(a.tile);
    const uint64_t rows = a.tile.rows, c = a.tile.channels;
    const bool of_x = a.mask == MRK_MASK_OF_X, of_y = a.mask == MRK_MASK_OF_Y;
    float mean[N], scale[N], shift[N], sum[2 * N];
    MRK_UNROLL for (int i = 0; i < N; i++)
    {
        sum[i] = sum[N + i] = 0;
        mean[i] = w.active ? a.saved[w.channel + i] : 0;
        scale[i] = w.active && of_x ? a.saved[2 * c + w.channel + i] : 0;
        shift[i] = w.active && of_x ? a.saved[3 * c + w.channel + i] : 0;
    }
    for (uint64_t r = w.row; w.active && r < rows; r += ROWS * w.step) {
        mrk_raw<T, N> dy[ROWS], dy2[ROWS], x[ROWS], y[ROWS];
        MRK_UNROLL for (int k = 0; k < ROWS; k++)
        {
            const uint64_t row = r + k * w.step, at = (rows - 1 - (row < rows ? row : r)) * c + w.channel;
            x[k] = mrk_load<T, N>(a.x, at);
            dy[k] = mrk_load<T, N>(a.dy, at);
            dy2[k] = a.dy2 ? mrk_load<T, N>(a.dy2, at) : dy[k];
            y[k] = of_y ? mrk_load<T, N>(a.y, at) : x[k];
        }
        MRK_UNROLL for (int k = 0; k < ROWS; k++)
        {
            if (r + k * w.step >= rows) break;
            float g[N], u[N], v[N];
            mrk_open(dy[k], g);
            mrk_open(dy2[k], u);
            mrk_open(y[k], v);
            MRK_UNROLL for (int i = 0; i < N; i++)
            {
                if (a.dy2) g[i] += u[i];
                if (of_y) g[i] = mrk_sloped<N>(a.activation, v[i], g[i]);
                else if (of_x) g[i] = passes<T>(v[i], scale[i], shift[i]) ? g[i] : 0;
            }
            if (a.write) mrk_write<T, N>(a.dy, (rows - 1 - (r + k * w.step)) * c + w.channel, g);
            mrk_open(x[k], v);
            MRK_UNROLL for (int i = 0; i < N; i++)
            {
                sum[i] += g[i];
                sum[N + i] = fmaf(g[i], v[i] - mean[i], sum[N + i]);
            }
        }
    }
    mrk_fold(sum, share, w, mrk_fold_add());
    if (!w.active || w.y > 0) return;
    MRK_UNROLL for (int i = 0; i < N; i++)
    {
        a.partial[(uint64_t)blockIdx.x * 2 * c + w.channel + i] = sum[i];
        a.partial[((uint64_t)blockIdx.x * 2 + 1) * c + w.channel + i] = sum[N + i];
    }
}

/* g = (dy + dy2) * act', written back to dy when asked; sums of g and of g * (x - mean) over each block's
 * rows, in float. All [rows][channels]. Grid: tile.h. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS, 2)
    mrk_batchnorm_sums(const struct mrk_batchnorm_sums_args a)
{
    __shared__ float share[MRK_FOLD_FLOATS(16)];
    MRK_DISPATCH(a.tile.dtype, a.tile.vectors, sums, a, share);
}

/* d shift = sum g, d scale = sum g * z with z = (x - mean) * inverse, and the coefficients of
 *     dx = scale * inverse * (g - d shift / M - z * d scale / M)
 * in double. Grid: MRK_FINISH_CHANNELS channels a block. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS)
    mrk_batchnorm_gradients(const struct mrk_batchnorm_gradients_args a)
{
    __shared__ double share[MRK_THREADS];
    const uint32_t c = blockIdx.x * MRK_FINISH_CHANNELS + threadIdx.x % MRK_FINISH_CHANNELS,
                   lane = threadIdx.x / MRK_FINISH_CHANNELS;
    double g = 0, gx = 0;
    for (uint32_t p = lane; c < a.channels && p < a.parts; p += MRK_FINISH_LANES) {
        g += (double)a.partial[(uint64_t)p * 2 * a.channels + c];
        gx += (double)a.partial[((uint64_t)p * 2 + 1) * a.channels + c];
    }
    g = mrk_finish_sum(g, share);
    gx = mrk_finish_sum(gx, share);
    if (c >= a.channels || lane > 0) return;
    const double inverse = (double)a.saved[a.channels + c], dscale = gx * inverse,
                 gain = (a.scale ? (double)a.scale[c] : 1) * inverse;
    const float m = (float)(-gain * inverse * dscale / (double)a.rows);
    if (a.dscale) a.dscale[c] = (float)dscale;
    a.dshift[c] = (float)g;
    a.coefficients[c] = (float)gain;
    a.coefficients[a.channels + c] = m;
    a.coefficients[2 * a.channels + c] = (float)(-gain * g / (double)a.rows) - a.saved[c] * m;
}

template <class T, int N> MRK_INLINE void dx(const mrk_batchnorm_dx_args &a)
{
    enum { ROWS = 2 };
    const mrk_walk w = mrk_walk_of<N>(a.tile);
    const uint64_t rows = a.tile.rows, c = a.tile.channels;
    const bool of_x = a.mask == MRK_MASK_OF_X;
    if (!w.active) return;
    float of_g[N], of_v[N], rest[N], scale[N], shift[N];
    MRK_UNROLL for (int i = 0; i < N; i++)
    {
        of_g[i] = a.coefficients[w.channel + i];
        of_v[i] = a.coefficients[c + w.channel + i];
        rest[i] = a.coefficients[2 * c + w.channel + i];
        scale[i] = of_x ? a.saved[2 * c + w.channel + i] : 0;
        shift[i] = of_x ? a.saved[3 * c + w.channel + i] : 0;
    }
    for (uint64_t r = w.row; r < rows; r += ROWS * w.step) {
        mrk_raw<T, N> dy[ROWS], x[ROWS];
        MRK_UNROLL for (int k = 0; k < ROWS; k++)
        {
            const uint64_t row = r + k * w.step, at = (row < rows ? row : r) * c + w.channel;
            dy[k] = mrk_load<T, N>(a.dy, at);
            x[k] = mrk_load<T, N>(a.x, at);
        }
        MRK_UNROLL for (int k = 0; k < ROWS; k++)
        {
            const uint64_t row = r + k * w.step;
            if (row >= rows) break;
            float g[N], v[N];
            mrk_open(dy[k], g);
            mrk_open(x[k], v);
            MRK_UNROLL for (int i = 0; i < N; i++)
            {
                if (of_x && !passes<T>(v[i], scale[i], shift[i])) g[i] = 0;
                g[i] = fmaf(g[i], of_g[i], fmaf(v[i], of_v[i], rest[i]));
            }
            mrk_write<T, N>(a.dx, row * c + w.channel, g);
        }
    }
}

/* dx = g * coefficients[0] + x * coefficients[1] + coefficients[2], g = dy or dy where the ReLU passed;
 * [rows][channels], dx apart from both. Grid: tile.h. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS, 3)
    mrk_batchnorm_dx(const struct mrk_batchnorm_dx_args a)
{
    MRK_DISPATCH(a.tile.dtype, a.tile.vectors, dx, a);
}
