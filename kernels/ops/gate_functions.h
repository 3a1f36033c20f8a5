/* kernels/ops/gate_functions.h: the sigmoid and tanh of gates, in plain C without branches, so that loops
 * over them become vectors; exp as in Cephes. Within 3 units in the last place of the true values, and the
 * same bits in every variant of a loop (simd_loop.h). A NaN stays a NaN. */
#ifndef MRI_GATE_FUNCTIONS_H
#define MRI_GATE_FUNCTIONS_H

#include "kernels/host/simd_loop.h"

#include <string.h>

/* e^x for x in -87 .. 88; beyond that as at the ends. */
MRI_INLINE float mri_gate_exp(float x)
{
    const float round = 12582912.0f; /* 1.5 * 2^23: adding it leaves a whole number in the low bits */
    x = x < -87.0f ? -87.0f : x;
    x = x > 88.0f ? 88.0f : x;
    const float t = x * 1.44269504088896341f + round, k = t - round;
    const float r = (x - k * 0.693359375f) + k * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = (p * (r * r) + r) + 1.0f;
    uint32_t bits;
    memcpy(&bits, &t, sizeof bits);
    bits = (bits + 127u) << 23; /* the exponent of 2^k */
    float power;
    memcpy(&power, &bits, sizeof power);
    return p * power;
}

MRI_INLINE float mri_gate_sigmoid(float x) { return 1.0f / (1.0f + mri_gate_exp(-x)); }

/* Near zero a polynomial, where 1 - 2 / (e^2x + 1) would cancel. */
MRI_INLINE float mri_gate_tanh(float x)
{
    const float size = x < 0 ? -x : x, z = x * x;
    const float large = 1.0f - 2.0f / (mri_gate_exp(2.0f * size) + 1.0f);
    float p = -5.70498872745e-3f;
    p = p * z + 2.06390887954e-2f;
    p = p * z - 5.37397155531e-2f;
    p = p * z + 1.33314422036e-1f;
    p = p * z - 3.33332819422e-1f;
    p = p * z * x + x;
    const float far = x < 0 ? -large : large;
    return size < 0.625f ? p : far;
}

#endif
