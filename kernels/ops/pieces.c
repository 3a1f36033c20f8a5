/* kernels/ops/pieces.c: element-wise functions that several operations end with. Every derivative is computed
 * from the output, so only y is kept; SiLU and GELU, which end no operation, need x. */
#include <math.h>

#include "kernels/ops/gate_functions.h"
#include "kernels/ops/pieces.h"

/* Klambauer et al., "Self-Normalizing Neural Networks", 2017 */
#define SELU_SCALE 1.0507009873554805f
#define SELU_ALPHA 1.6732632423543772f

#define LEAKY_SLOPE 0.1f

MRI_INLINE void relu_body(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) y[i] = x[i] > 0 ? x[i] : 0;
}
MRI_SIMD_LOOP(relu, (float *y, const float *x, size_t n), (y, x, n))

MRI_INLINE void relu_backward_body(float *dx, const float *dy, const float *y, size_t n)
{
    for (size_t i = 0; i < n; i++) dx[i] = y[i] > 0 ? dy[i] : 0;
}
MRI_SIMD_LOOP(relu_backward, (float *dx, const float *dy, const float *y, size_t n), (dx, dy, y, n))

/* One body for each function whose cost is hidden by memory traffic. */
MRI_INLINE void leaky_relu_body(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) y[i] = x[i] > 0 ? x[i] : LEAKY_SLOPE * x[i];
}
MRI_SIMD_LOOP(leaky_relu, (float *y, const float *x, size_t n), (y, x, n))

MRI_INLINE void leaky_relu_backward_body(float *dx, const float *dy, const float *y, size_t n)
{
    for (size_t i = 0; i < n; i++) dx[i] = y[i] > 0 ? dy[i] : LEAKY_SLOPE * dy[i];
}
MRI_SIMD_LOOP(leaky_relu_backward, (float *dx, const float *dy, const float *y, size_t n), (dx, dy, y, n))

MRI_INLINE void relu6_body(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) y[i] = x[i] > 0 ? (x[i] < 6 ? x[i] : 6) : 0;
}
MRI_SIMD_LOOP(relu6, (float *y, const float *x, size_t n), (y, x, n))

MRI_INLINE void relu6_backward_body(float *dx, const float *dy, const float *y, size_t n)
{
    for (size_t i = 0; i < n; i++) dx[i] = y[i] > 0 && y[i] < 6 ? dy[i] : 0;
}
MRI_SIMD_LOOP(relu6_backward, (float *dx, const float *dy, const float *y, size_t n), (dx, dy, y, n))

/* Far below zero the function is zero to the last bit, which is more than exp can say there. */
MRI_INLINE float sigmoid_of(float x) { return x < -87.0f ? 0 : mri_gate_sigmoid(x); }

MRI_INLINE void silu_body(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) y[i] = x[i] * sigmoid_of(x[i]);
}
MRI_SIMD_LOOP(silu, (float *y, const float *x, size_t n), (y, x, n))

MRI_INLINE void silu_backward_body(float *dx, const float *dy, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const float s = sigmoid_of(x[i]);
        dx[i] = dy[i] * (s + x[i] * (s * (1 - s)));
    }
}
MRI_SIMD_LOOP(silu_backward, (float *dx, const float *dy, const float *x, size_t n), (dx, dy, x, n))

/* erfc keeps its digits where 1 + erf cancels to 0. */
static float normal_below(float x) { return 0.5f * erfcf(-0.70710678118654752f * x); }
static float normal_at(float x) { return 0.39894228040143268f * expf(-0.5f * x * x); }

static float one(mr_activation kind, float x)
{
    switch (kind) {
    case MR_ACT_NONE: return x;
    case MR_ACT_RELU: return x > 0 ? x : 0;
    case MR_ACT_TANH: return tanhf(x);
    case MR_ACT_SIGMOID: return 1.0f / (1.0f + expf(-x));
    case MR_ACT_SELU: return SELU_SCALE * (x > 0 ? x : SELU_ALPHA * expm1f(x));
    case MR_ACT_LEAKY_RELU: return x > 0 ? x : LEAKY_SLOPE * x;
    case MR_ACT_RELU6: return x > 0 ? (x < 6 ? x : 6) : 0;
    case MR_ACT_SILU: return x * sigmoid_of(x);
    case MR_ACT_GELU: return x * normal_below(x);
    }
    return x;
}

/* y: x where mr_activation_needs_x(). */
static float slope(mr_activation kind, float y)
{
    switch (kind) {
    case MR_ACT_NONE: return 1;
    case MR_ACT_RELU: return y > 0 ? 1.0f : 0.0f;
    case MR_ACT_TANH: return 1 - y * y;
    case MR_ACT_SIGMOID: return y * (1 - y);
    case MR_ACT_SELU: return y > 0 ? SELU_SCALE : y + SELU_SCALE * SELU_ALPHA;
    case MR_ACT_LEAKY_RELU: return y > 0 ? 1 : LEAKY_SLOPE;
    case MR_ACT_RELU6: return y > 0 && y < 6 ? 1 : 0;
    case MR_ACT_SILU: return sigmoid_of(y) + y * (sigmoid_of(y) * (1 - sigmoid_of(y)));
    case MR_ACT_GELU: return normal_below(y) + y * normal_at(y);
    }
    return 1;
}

static void forward_block(mr_activation kind, float *y, const float *x, size_t n)
{
    if (kind == MR_ACT_RELU) relu(y, x, n);
    else if (kind == MR_ACT_LEAKY_RELU) leaky_relu(y, x, n);
    else if (kind == MR_ACT_RELU6) relu6(y, x, n);
    else if (kind == MR_ACT_SILU) silu(y, x, n);
    else
        for (size_t i = 0; i < n; i++) y[i] = one(kind, x[i]);
}

static void backward_block(mr_activation kind, float *dx, const float *dy, const float *y, size_t n)
{
    if (kind == MR_ACT_RELU) relu_backward(dx, dy, y, n);
    else if (kind == MR_ACT_LEAKY_RELU) leaky_relu_backward(dx, dy, y, n);
    else if (kind == MR_ACT_RELU6) relu6_backward(dx, dy, y, n);
    else if (kind == MR_ACT_SILU) silu_backward(dx, dy, y, n);
    else
        for (size_t i = 0; i < n; i++) dx[i] = dy[i] * slope(kind, y[i]);
}

MRI_INLINE void accumulate_body(float *restrict dy, const float *restrict dy2, size_t n)
{
    for (size_t i = 0; i < n; i++) dy[i] += dy2[i];
}
MRI_SIMD_LOOP(accumulate, (float *restrict dy, const float *restrict dy2, size_t n), (dy, dy2, n))

#define BLOCK 8192u /* elements one thread takes at a time */

void mri_activate_into(mr_activation kind, float *y, const float *x, size_t count)
{
    if (kind == MR_ACT_NONE && y == x) return;
#pragma omp parallel for schedule(static) if (count > MRI_PARALLEL_ELEMENTS)
    for (size_t at = 0; at < count; at += BLOCK)
        forward_block(kind, y + at, x + at, count - at < BLOCK ? count - at : BLOCK);
}

void mri_activate_backward_into(mr_activation kind, float *dx, const float *dy, const float *y, size_t count)
{
    if (kind == MR_ACT_NONE && dx == dy) return;
#pragma omp parallel for schedule(static) if (count > MRI_PARALLEL_ELEMENTS)
    for (size_t at = 0; at < count; at += BLOCK)
        backward_block(kind, dx + at, dy + at, y + at, count - at < BLOCK ? count - at : BLOCK);
}

void mri_activate(mr_activation kind, float *values, size_t count)
{
    if (kind != MR_ACT_NONE) mri_activate_into(kind, values, values, count);
}

void mri_activate_backward(mr_activation kind, const float *y, float *dy, size_t count)
{
    if (kind != MR_ACT_NONE) mri_activate_backward_into(kind, dy, dy, y, count);
}

void mri_activate_piece(mr_activation kind, float *values, size_t count)
{
    if (kind != MR_ACT_NONE) forward_block(kind, values, values, count);
}

void mri_activate_backward_piece(mr_activation kind, const float *y, float *dy, size_t count)
{
    if (kind != MR_ACT_NONE) backward_block(kind, dy, dy, y, count);
}

void mri_accumulate_piece(float *dy, const float *dy2, size_t count) { accumulate(dy, dy2, count); }

void mri_accumulate(float *dy, const float *dy2, size_t count)
{
#pragma omp parallel for schedule(static) if (count > MRI_PARALLEL_ELEMENTS)
    for (size_t at = 0; at < count; at += BLOCK)
        accumulate(dy + at, dy2 + at, count - at < BLOCK ? count - at : BLOCK);
}
