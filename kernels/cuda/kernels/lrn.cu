/* kernels/cuda/kernels/lrn.cu: local response normalisation across channels (ops/lrn.c has the formulas). A
 * block copies the squares of its channels, and of their neighbours in the window, to shared memory; sums are
 * taken from there, in float and in the order of channels. */
#include "kernels/cuda/kernels/values.h"

MRK_INLINE float power_of(float s, float beta)
{
    if (beta == 0.75f) {
        const float root = sqrtf(s);
        return 1 / (root * sqrtf(root));
    }
    return beta == 0.5f ? 1 / sqrtf(s) : powf(s, -beta);
}

MRK_INLINE float sum_of(const float *q, uint32_t window)
{
    float sum = q[0];
    for (uint32_t k = 1; k < window; k++) sum += q[k];
    return sum;
}

/* One value of the rows, 0 outside of them. */
template <class T>
MRK_INLINE float value_of(const mrk_response &p, const void *tensor, uint64_t row, int64_t channel)
{
    if (row >= p.rows || channel < 0 || channel >= p.channels) return 0;
    return mrk_float(((const T *)tensor)[row * p.channels + (uint64_t)channel]);
}

template <class T> MRK_INLINE void lrn(const mrk_lrn_args &a, float *squares)
{
    const mrk_response &p = a.of;
    const uint32_t pitch = p.width + 2 * p.radius, y = threadIdx.x / p.width, x = threadIdx.x - y * p.width;
    const int64_t first = (int64_t)blockIdx.y * p.width;
    for (uint64_t top = (uint64_t)blockIdx.x * p.height; top < p.rows;
         top += (uint64_t)gridDim.x * p.height) {
        for (uint32_t i = threadIdx.x; i < p.height * pitch; i += blockDim.x) {
            const uint32_t r = i / pitch;
            const float v = value_of<T>(p, a.x, top + r, first - p.radius + (i - r * pitch));
            squares[i] = v * v;
        }
        __syncthreads();
        if (y < p.height && top + y < p.rows && first + x < p.channels) {
            const float s = p.bias + p.alpha * sum_of(squares + y * pitch + x, 2 * p.radius + 1);
            mrk_round(value_of<T>(p, a.x, top + y, first + x) * power_of(s, p.beta),
                      (T *)a.y + (top + y) * p.channels + (uint64_t)first + x);
        }
        __syncthreads();
    }
}

/* x, y [rows][channels]; y may not be x. Any grid along x. Same bits in every run. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS) mrk_lrn(const struct mrk_lrn_args a)
{
    __shared__ float squares[MRK_LRN_ROOM];
    if (a.of.dtype == MR_TENSOR_BF16) lrn<mrk_bf16>(a, squares);
    else if (a.of.dtype == MR_TENSOR_F16) lrn<mrk_f16>(a, squares);
    else lrn<float>(a, squares);
}

/* shares: dy x / s^(beta + 1) of the channels and those within the radius. */
template <class T> MRK_INLINE void lrn_backward(const mrk_lrn_backward_args &a, float *squares, float *shares)
{
    const mrk_response &p = a.of;
    const uint32_t window = 2 * p.radius + 1, pitch = p.width + 4 * p.radius, inner = p.width + 2 * p.radius,
                   y = threadIdx.x / p.width, x = threadIdx.x - y * p.width;
    const int64_t first = (int64_t)blockIdx.y * p.width;
    for (uint64_t top = (uint64_t)blockIdx.x * p.height; top < p.rows;
         top += (uint64_t)gridDim.x * p.height) {
        for (uint32_t i = threadIdx.x; i < p.height * pitch; i += blockDim.x) {
            const uint32_t r = i / pitch;
            const float v = value_of<T>(p, a.x, top + r, first - 2 * (int64_t)p.radius + (i - r * pitch));
            squares[i] = v * v;
        }
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < p.height * inner; i += blockDim.x) {
            const uint32_t r = i / inner, k = i - r * inner;
            const int64_t channel = first - p.radius + k;
            const float s = p.bias + p.alpha * sum_of(squares + r * pitch + k, window);
            shares[i] = value_of<T>(p, a.dy, top + r, channel) * value_of<T>(p, a.x, top + r, channel) *
                        (power_of(s, p.beta) / s);
        }
        __syncthreads();
        if (y < p.height && top + y < p.rows && first + x < p.channels) {
            const float s = p.bias + p.alpha * sum_of(squares + y * pitch + x + p.radius, window);
            const float through = sum_of(shares + y * inner + x, window);
            mrk_round(value_of<T>(p, a.dy, top + y, first + x) * power_of(s, p.beta) -
                          2 * p.alpha * p.beta * value_of<T>(p, a.x, top + y, first + x) * through,
                      (T *)a.dx + (top + y) * p.channels + (uint64_t)first + x);
        }
        __syncthreads();
    }
}

/* dy, x, dx [rows][channels]; dx may be neither. Any grid along x. Same bits in every run. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS)
    mrk_lrn_backward(const struct mrk_lrn_backward_args a)
{
    __shared__ float squares[MRK_LRN_ROOM], shares[MRK_LRN_ROOM];
    if (a.of.dtype == MR_TENSOR_BF16) lrn_backward<mrk_bf16>(a, squares, shares);
    else if (a.of.dtype == MR_TENSOR_F16) lrn_backward<mrk_f16>(a, squares, shares);
    else lrn_backward<float>(a, squares, shares);
}
