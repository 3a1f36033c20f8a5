/* kernels/cuda/kernels/softmax.cu: softmax over the channels of each pixel and its logarithm (ops/softmax.c
 * has the formulas). A block takes a pixel at a time. Exponentials in float, sums in double, by halves: the
 * same bits in every run, and for a pixel in every batch. Threads of a block: a power of two. */
#include "kernels/cuda/kernels/softmax.h"

template <class T> MRK_INLINE void softmax_rows(const mrk_softmax_args &a, softmax_share *share)
{
    for (uint64_t row = blockIdx.x; row < a.rows; row += gridDim.x) {
        const T *x = (const T *)a.x + row * a.channels;
        T *y = (T *)a.y + row * a.channels;
        const softmax s = softmax_of(x, a.channels, 1, share);
        const float log_sum = (float)log(s.sum), part = (float)(1 / s.sum);
        for (uint32_t c = threadIdx.x; c < a.channels; c += blockDim.x) {
            const float v = mrk_float(x[c]) - s.top;
            mrk_round(a.log ? v - log_sum : expf(v) * part, y + c);
        }
    }
}

/* x, y [rows][channels]; y may not be x. Any grid. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS) mrk_softmax(const struct mrk_softmax_args a)
{
    __shared__ softmax_share share;
    if (a.dtype == MR_TENSOR_BF16) softmax_rows<mrk_bf16>(a, &share);
    else if (a.dtype == MR_TENSOR_F16) softmax_rows<mrk_f16>(a, &share);
    else softmax_rows<float>(a, &share);
}

template <class T>
MRK_INLINE void softmax_rows_backward(const mrk_softmax_backward_args &a, softmax_share *share)
{
    for (uint64_t row = blockIdx.x; row < a.rows; row += gridDim.x) {
        const T *x = (const T *)a.x + row * a.channels, *dy = (const T *)a.dy + row * a.channels;
        T *dx = (T *)a.dx + row * a.channels;
        const softmax s = softmax_of(x, a.channels, 1, share);
        const float part = (float)(1 / s.sum);
        double sum = 0;
        for (uint32_t c = threadIdx.x; c < a.channels; c += blockDim.x) {
            const double g = (double)mrk_float(dy[c]);
            sum += a.log ? g : g * (double)(expf(mrk_float(x[c]) - s.top) * part);
        }
        const float through = (float)joined(sum, share->sums, join_sum());
        for (uint32_t c = threadIdx.x; c < a.channels; c += blockDim.x) {
            const float p = expf(mrk_float(x[c]) - s.top) * part, g = mrk_float(dy[c]);
            mrk_round(a.log ? g - p * through : p * (g - through), dx + c);
        }
    }
}

/* dy, x, dx [rows][channels]; dx may be neither. Any grid. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS)
    mrk_softmax_backward(const struct mrk_softmax_backward_args a)
{
    __shared__ softmax_share share;
    if (a.dtype == MR_TENSOR_BF16) softmax_rows_backward<mrk_bf16>(a, &share);
    else if (a.dtype == MR_TENSOR_F16) softmax_rows_backward<mrk_f16>(a, &share);
    else softmax_rows_backward<float>(a, &share);
}
