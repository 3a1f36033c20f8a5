/* kernels/cuda/kernels/places.cu: operations that put values elsewhere: pictures enlarged (ops/upsample.c),
 * rows of a table looked up (ops/data/embedding.c). A thread a value; what several values go to is added up
 * by its own thread, in their order, so the bits are the same in every run. */
#include "kernels/cuda/kernels/number.h"

/* ---- enlarging ---- */

struct blend {
    uint32_t low, high;
    float share; /* of high */
};

/* As ops/upsample.c has it. */
MRK_INLINE blend blend_of(uint32_t factor, bool bilinear, uint32_t o, uint32_t count)
{
    const uint32_t at = o / factor, twice = 2 * (o % factor) + 1;
    blend b = {at, at, 0};
    if (!bilinear) return b;
    if (twice < factor) {
        if (at == 0) return b;
        b.low = at - 1;
        b.share = (float)(twice + factor) / (float)(2 * factor);
    } else if (at + 1 < count) {
        b.high = at + 1;
        b.share = (float)(twice - factor) / (float)(2 * factor);
    }
    return b;
}

template <class T> MRK_INLINE void upsample(const mrk_upsample_args &a)
{
    const uint32_t height = a.h * a.factor, width = a.w * a.factor;
    const uint64_t sample_from = (uint64_t)a.h * a.w * a.c, sample_to = (uint64_t)height * width * a.c;
    for (uint64_t i = mrk_thread(); i < a.n * sample_to; i += mrk_threads()) {
        const uint64_t sample = i / sample_to, in = i - sample * sample_to;
        const uint32_t c = (uint32_t)(in % a.c), column = (uint32_t)(in / a.c % width),
                       row = (uint32_t)(in / a.c / width);
        const blend v = blend_of(a.factor, a.bilinear, row, a.h),
                    h = blend_of(a.factor, a.bilinear, column, a.w);
        const T *x = (const T *)a.x + sample * sample_from + c;
        float sum = 0;
        if (!a.bilinear) {
            sum = mrk_float(x[((uint64_t)v.low * a.w + h.low) * a.c]);
        } else {
            for (int k = 0; k < 4; k++) {
                const uint32_t y = k / 2 ? v.high : v.low, at = k % 2 ? h.high : h.low;
                const float weight = (k / 2 ? v.share : 1 - v.share) * (k % 2 ? h.share : 1 - h.share);
                sum = mrk_add(sum, mrk_multiply(weight, mrk_float(x[((uint64_t)y * a.w + at) * a.c])));
            }
        }
        mrk_round(sum, (T *)a.y + i);
    }
}

/* x [n][h][w][c], y [n][h factor][w factor][c]. Any grid. f32 has the bits of ops/upsample.c. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS) mrk_upsample(const struct mrk_upsample_args a)
{
    if (a.dtype == MR_TENSOR_BF16) upsample<mrk_bf16>(a);
    else if (a.dtype == MR_TENSOR_F16) upsample<mrk_f16>(a);
    else upsample<float>(a);
}

MRK_INLINE float share_of(const blend &b, uint32_t in)
{
    return (b.low == in ? 1 - b.share : 0) + (b.high == in ? b.share : 0);
}

template <class T> MRK_INLINE void upsample_backward(const mrk_upsample_backward_args &a)
{
    const uint32_t f = a.factor, height = a.h * f, width = a.w * f, reach = a.bilinear ? f : 0;
    const uint64_t sample_to = (uint64_t)a.h * a.w * a.c, sample_from = (uint64_t)height * width * a.c;
    for (uint64_t i = mrk_thread(); i < a.n * sample_to; i += mrk_threads()) {
        const uint64_t sample = i / sample_to, in = i - sample * sample_to;
        const uint32_t c = (uint32_t)(in % a.c), x = (uint32_t)(in / a.c % a.w),
                       y = (uint32_t)(in / a.c / a.w);
        const T *dy = (const T *)a.dy + sample * sample_from + c;
        float sum = 0;
        for (uint32_t row = y * f > reach ? y * f - reach : 0; row < (y + 1) * f + reach && row < height;
             row++)
            for (uint32_t at = x * f > reach ? x * f - reach : 0; at < (x + 1) * f + reach && at < width;
                 at++) {
                const float weight = share_of(blend_of(f, a.bilinear, row, a.h), y) *
                                     share_of(blend_of(f, a.bilinear, at, a.w), x);
                if (weight == 0) continue;
                sum = mrk_add(sum, mrk_multiply(weight, mrk_float(dy[((uint64_t)row * width + at) * a.c])));
            }
        mrk_round(sum, (T *)a.dx + i);
    }
}

/* dx [n][h][w][c] from dy [n][h factor][w factor][c]. Any grid. f32 has the bits of ops/upsample.c. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS)
    mrk_upsample_backward(const struct mrk_upsample_backward_args a)
{
    if (a.dtype == MR_TENSOR_BF16) upsample_backward<mrk_bf16>(a);
    else if (a.dtype == MR_TENSOR_F16) upsample_backward<mrk_f16>(a);
    else upsample_backward<float>(a);
}

/* ---- tables ---- */

template <class T> MRK_INLINE void embedding(const mrk_embedding_args &a)
{
    for (uint64_t i = mrk_thread(); i < a.places * a.units; i += mrk_threads()) {
        const uint64_t place = i / a.units;
        const int64_t number = mrk_whole_number(a.x, a.from, place);
        const bool known = number >= 0 && number < (int64_t)a.classes;
        mrk_round(known ? a.table[(uint64_t)number * a.units + (i - place * a.units)] : 0, (T *)a.y + i);
    }
}

/* Any grid. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS) mrk_embedding(const struct mrk_embedding_args a)
{
    if (a.dtype == MR_TENSOR_BF16) embedding<mrk_bf16>(a);
    else if (a.dtype == MR_TENSOR_F16) embedding<mrk_f16>(a);
    else embedding<float>(a);
}

/* A thread has one value of the table, and goes through all places. */
template <class T> MRK_INLINE void embedding_backward(const mrk_embedding_backward_args &a)
{
    for (uint64_t i = mrk_thread(); i < (uint64_t)a.classes * a.units; i += mrk_threads()) {
        const int64_t mine = (int64_t)(i / a.units);
        const uint64_t unit = i % a.units;
        float sum = 0;
        for (uint64_t p = 0; p < a.places; p++)
            if (mrk_whole_number(a.x, a.from, p) == mine)
                sum += mrk_float(((const T *)a.dy)[p * a.units + unit]);
        a.dtable[i] = sum;
    }
}

/* Sums in the order of places. Any grid. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS)
    mrk_embedding_backward(const struct mrk_embedding_backward_args a)
{
    if (a.dtype == MR_TENSOR_BF16) embedding_backward<mrk_bf16>(a);
    else if (a.dtype == MR_TENSOR_F16) embedding_backward<mrk_f16>(a);
    else embedding_backward<float>(a);
}
