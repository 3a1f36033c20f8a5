/* kernels/cuda/kernels/sample.cu: draws from normal distributions, in the order of ops/sample.c: Philox block
 * k of a sample, with counter (k, place; step), makes its draws 4 k to 4 k + 3. A thread a block of four. */
#include "kernels/cuda/kernels/philox.h"
#include "kernels/cuda/kernels/values.h"

#define TWO_PI 6.283185307f

/* [0, 1) with 24 bits. */
MRK_INLINE float unit(uint32_t word) { return (float)(word >> 8) * (1.0f / 16777216.0f); }

/* Box & Muller 1958. */
MRK_INLINE void normal_draws(float out[4], const mrk_words &words)
{
    MRK_UNROLL for (int j = 0; j < 2; j++)
    {
        const float radius = sqrtf(-2 * logf(1 - unit(words.v[2 * j]))),
                    turn = TWO_PI * unit(words.v[2 * j + 1]);
        out[2 * j] = radius * cosf(turn);
        out[2 * j + 1] = radius * sinf(turn);
    }
}

/* Calls body(element of the batch, draw). */
template <class Args, class Body> MRK_INLINE void each_draw(const Args &a, Body body)
{
    const uint64_t blocks = (a.elements + 3) / 4;
    for (uint64_t b = mrk_thread(); b < a.n * blocks; b += mrk_threads()) {
        const uint32_t sample = (uint32_t)(b / blocks);
        const uint64_t block = b - sample * blocks;
        float draws[4];
        normal_draws(draws, mrk_philox(a.key, (uint32_t)block, a.first + sample, a.values->step));
        MRK_UNROLL for (int k = 0; k < 4; k++) if (block * 4 + k < a.elements)
            body(sample * a.elements + block * 4 + k, draws[k]);
    }
}

template <class T> struct sample_step {
    const mrk_sample_args &a;
    __device__ __forceinline__ void operator()(uint64_t e, float draw) const
    {
        const float spread = expf(a.factor * mrk_float(((const T *)a.x2)[e]));
        mrk_round(mrk_float(((const T *)a.x)[e]) + spread * draw, (T *)a.y + e);
    }
};

/* y = x + exp(factor x2) draw; [n][elements]. Any grid. Same bits in every run. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS) mrk_sample(const struct mrk_sample_args a)
{
    if (a.dtype == MR_TENSOR_BF16) each_draw(a, sample_step<mrk_bf16>{a});
    else if (a.dtype == MR_TENSOR_F16) each_draw(a, sample_step<mrk_f16>{a});
    else each_draw(a, sample_step<float>{a});
}

template <class T> struct sample_backward_step {
    const mrk_sample_backward_args &a;
    __device__ __forceinline__ void operator()(uint64_t e, float draw) const
    {
        const float spread = expf(a.factor * mrk_float(((const T *)a.x2)[e]));
        mrk_round(mrk_float(((const T *)a.dy)[e]) * draw * a.factor * spread, (T *)a.dx2 + e);
    }
};

/* dx2 = dy draw factor exp(factor x2). Any grid. Same bits in every run. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS)
    mrk_sample_backward(const struct mrk_sample_backward_args a)
{
    if (a.dtype == MR_TENSOR_BF16) each_draw(a, sample_backward_step<mrk_bf16>{a});
    else if (a.dtype == MR_TENSOR_F16) each_draw(a, sample_backward_step<mrk_f16>{a});
    else each_draw(a, sample_backward_step<float>{a});
}
