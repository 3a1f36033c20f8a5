/* kernels/cuda/kernels/functions.h: activations in registers, as ops/activation.c defines them: every slope
 * is computed from the output. Packs support NONE, RELU, LEAKY_RELU and RELU6, whose cost is hidden by memory
 * traffic; the others spend their time in exponentials and take one value at a time, so only the one-value
 * versions of a kernel hold their code. */
#ifndef MRK_FUNCTIONS_H
#define MRK_FUNCTIONS_H

#include "kernels/cuda/kernels/port.h"

/* Klambauer et al., "Self-Normalizing Neural Networks", 2017 */
#define MRK_SELU_SCALE 1.0507009873554805f
#define MRK_SELU_ALPHA 1.6732632423543772f

#define MRK_LEAKY_SLOPE 0.1f

template <int N> MRK_INLINE float mrk_activated(uint32_t kind, float x)
{
    if (kind == MR_ACT_RELU) return x > 0 ? x : 0;
    if (kind == MR_ACT_LEAKY_RELU) return x > 0 ? x : MRK_LEAKY_SLOPE * x;
    if (kind == MR_ACT_RELU6) return x > 0 ? (x < 6 ? x : 6) : 0;
    if (N > 1) return x;
    if (kind == MR_ACT_TANH) return tanhf(x);
    if (kind == MR_ACT_SIGMOID) return 1.0f / (1.0f + expf(-x));
    if (kind == MR_ACT_SELU) return MRK_SELU_SCALE * (x > 0 ? x : MRK_SELU_ALPHA * expm1f(x));
    return x;
}

/* dy * act'(.), y = act(.) */
template <int N> MRK_INLINE float mrk_sloped(uint32_t kind, float y, float dy)
{
    if (kind == MR_ACT_RELU) return y > 0 ? dy : 0;
    if (kind == MR_ACT_LEAKY_RELU) return y > 0 ? dy : MRK_LEAKY_SLOPE * dy;
    if (kind == MR_ACT_RELU6) return y > 0 && y < 6 ? dy : 0;
    if (N > 1) return dy;
    if (kind == MR_ACT_TANH) return dy * (1 - y * y);
    if (kind == MR_ACT_SIGMOID) return dy * (y * (1 - y));
    if (kind == MR_ACT_SELU) return dy * (y > 0 ? MRK_SELU_SCALE : y + MRK_SELU_SCALE * MRK_SELU_ALPHA);
    return dy;
}

/* Activations whose slope needs x; mrk_activated() does not handle them. */
MRK_INLINE float mrk_smooth_value(uint32_t kind, float x)
{
    if (kind == MR_ACT_SILU) return x / (1.0f + expf(-x));
    return x * (0.5f * erfcf(-0.70710678118654752f * x));
}

MRK_INLINE float mrk_smooth_slope(uint32_t kind, float x)
{
    if (kind == MR_ACT_SILU) {
        const float s = 1.0f / (1.0f + expf(-x));
        return s + x * (s * (1 - s));
    }
    return 0.5f * erfcf(-0.70710678118654752f * x) + x * (0.39894228040143268f * expf(-0.5f * x * x));
}

#endif
