/* train/packed/pack.c: see pack.h.
 *
 *   BF16, F16   each float rounded to the nearest; F16: at most 65504
 *   INT8        blocks: exponent e (1 byte), then a whole number from -127 to 127 for each float, times 2^e
 *   BIT         blocks: mean of the floats above 0, mean of the others, then a bit for each float: which
 *
 * Scales of INT8 are powers of two so that the value read is exactly a float. */
#include "train/packed/pack.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/util.h"

enum { NOT_A_NUMBER = -128, LEAST_EXPONENT = -126, MOST_STEPS = 127 };

#define F16_MOST 65504.0f

size_t mri_pack_bytes(mr_exchange how, uint64_t count)
{
    const uint64_t blocks = (count + MRI_PACK_BLOCK - 1) / MRI_PACK_BLOCK;
    switch (how) {
    case MR_EXCHANGE_BF16:
    case MR_EXCHANGE_F16: return (size_t)(2 * count);
    case MR_EXCHANGE_INT8: return (size_t)(count + blocks);
    case MR_EXCHANGE_1BIT: return (size_t)(blocks * 2 * sizeof(float) + (count + 7) / 8);
    case MR_EXCHANGE_F32: break;
    }
    return (size_t)(count * sizeof(float));
}

static uint32_t bits_of(float v)
{
    uint32_t u;
    memcpy(&u, &v, sizeof u);
    return u;
}

static float float_of(uint32_t u)
{
    float v;
    memcpy(&v, &u, sizeof v);
    return v;
}

/* To the nearest whole number, ties to even: adding a number whose last bit is 1 rounds. */
static double whole(double v) { return v + 0x1.8p52 - 0x1.8p52; }

/* ---- 16 bits ---- */

static uint16_t to_bf16(float v)
{
    const uint32_t u = bits_of(v);
    if (isnan(v)) return (uint16_t)(u >> 16 | 0x40);
    const uint32_t rounded = u + 0x7fff + (u >> 16 & 1);
    const bool overflows = isfinite(v) && (rounded >> 23 & 0xff) == 0xff;
    return (uint16_t)((overflows ? u : rounded) >> 16);
}

static float from_bf16(uint16_t h) { return float_of((uint32_t)h << 16); }

static uint16_t to_f16(float v)
{
    const uint16_t sign = (uint16_t)(bits_of(v) >> 16 & 0x8000);
    const float size = fabsf(v);
    if (isnan(v)) return sign | 0x7e00;
    if (isinf(v)) return sign | 0x7c00;
    if (size >= F16_MOST) return sign | 0x7bff;
    if (size < 0x1p-14f)
        return (uint16_t)(sign | (uint16_t)whole((double)size * 0x1p24)); /* without an exponent */
    const uint32_t u = bits_of(size) - (112u << 23);
    return (uint16_t)(sign | (u + 0xfff + (u >> 13 & 1)) >> 13);
}

static float from_f16(uint16_t h)
{
    const uint32_t exponent = h >> 10 & 31, fraction = h & 0x3ff;
    float size;
    if (exponent == 31) size = fraction ? NAN : INFINITY;
    else if (exponent == 0) size = (float)fraction * 0x1p-24f;
    else size = float_of((exponent + 112) << 23 | fraction << 13);
    return h & 0x8000 ? -size : size;
}

static void pack_halves(bool bf16, const float *from, double *residual, uint64_t count, uint8_t *to)
{
    for (uint64_t i = 0; i < count; i++) {
        const double v = (double)from[i] + residual[i];
        const uint16_t h = bf16 ? to_bf16((float)v) : to_f16((float)v);
        const double left = v - (double)(bf16 ? from_bf16(h) : from_f16(h));
        residual[i] = isfinite(left) ? left : 0;
        memcpy(to + 2 * i, &h, sizeof h);
    }
}

static void unpack_halves(bool bf16, const uint8_t *from, uint64_t count, float *to)
{
    for (uint64_t i = 0; i < count; i++) {
        uint16_t h;
        memcpy(&h, from + 2 * i, sizeof h);
        to[i] = bf16 ? from_bf16(h) : from_f16(h);
    }
}

/* ---- blocks ---- */

/* Given and residual to v; false: one is not finite, and the residuals are zero. */
static bool add_block(const float *from, double *residual, uint32_t count, double *v, double *most,
                      double *sum)
{
    *most = *sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        v[i] = (double)from[i] + residual[i];
        *sum += fabs(v[i]);
        *most = fmax(*most, fabs(v[i]));
    }
    if (isfinite(*sum) && *most <= (double)FLT_MAX / 2) return true;
    memset(residual, 0, count * sizeof *residual);
    return false;
}

/* The least e with most <= 127 * 2^e. */
static int exponent_for(double most)
{
    int e = 0;
    frexp(most / MOST_STEPS, &e);
    if (most <= ldexp(MOST_STEPS, e - 1)) e--;
    return e < LEAST_EXPONENT ? LEAST_EXPONENT : e;
}

static void pack_bytes(const float *from, double *residual, uint32_t count, uint8_t *to)
{
    double v[MRI_PACK_BLOCK], most, sum;
    const bool finite = add_block(from, residual, count, v, &most, &sum);
    const int e = finite ? exponent_for(most) : NOT_A_NUMBER;
    const double unit = finite ? ldexp(1, e) : 1;
    *to++ = (uint8_t)(int8_t)e;
    for (uint32_t i = 0; i < count; i++) {
        const double steps = finite ? whole(v[i] / unit) : 0;
        to[i] = (uint8_t)(int8_t)steps;
        if (finite) residual[i] = v[i] - steps * unit;
    }
}

static void unpack_bytes(const uint8_t *from, uint32_t count, float *to)
{
    const int e = (int8_t)*from++;
    const float unit = e == NOT_A_NUMBER ? NAN : ldexpf(1, e);
    for (uint32_t i = 0; i < count; i++) to[i] = (float)(int8_t)from[i] * unit;
}

/* One mean for both signs would send zeros, many in gradients, as large as the others: the rest that is
 * left out then grows with each step. */
static void pack_bits(const float *from, double *residual, uint32_t count, uint8_t *to)
{
    double v[MRI_PACK_BLOCK], most, sum, above = 0, below = 0;
    uint32_t positive = 0;
    const bool finite = add_block(from, residual, count, v, &most, &sum);
    for (uint32_t i = 0; finite && i < count; i++) {
        positive += v[i] > 0;
        *(v[i] > 0 ? &above : &below) += v[i];
    }
    const float means[2] = {finite ? (float)(below / fmax(1, count - positive)) : NAN,
                            finite ? (float)(above / fmax(1, positive)) : NAN};
    memcpy(to, means, sizeof means);
    to += sizeof means;
    memset(to, 0, (count + 7) / 8);
    for (uint32_t i = 0; finite && i < count; i++) {
        to[i / 8] |= (uint8_t)((v[i] > 0) << i % 8);
        residual[i] = v[i] - (double)means[v[i] > 0];
    }
}

static void unpack_bits(const uint8_t *from, uint32_t count, float *to)
{
    float means[2];
    memcpy(means, from, sizeof means);
    from += sizeof means;
    for (uint32_t i = 0; i < count; i++) to[i] = means[from[i / 8] >> i % 8 & 1];
}

void mri_pack_floats(mr_exchange how, const float *from, double *residual, uint64_t count, uint8_t *to)
{
    if (how == MR_EXCHANGE_F32) memcpy(to, from, (size_t)count * sizeof *from);
    if (how == MR_EXCHANGE_BF16 || how == MR_EXCHANGE_F16)
        pack_halves(how == MR_EXCHANGE_BF16, from, residual, count, to);
    if (how != MR_EXCHANGE_INT8 && how != MR_EXCHANGE_1BIT) return;
    for (uint64_t at = 0; at < count; at += MRI_PACK_BLOCK) {
        const uint32_t n = (uint32_t)mri_min_u64(MRI_PACK_BLOCK, count - at);
        if (how == MR_EXCHANGE_INT8) pack_bytes(from + at, residual + at, n, to);
        else pack_bits(from + at, residual + at, n, to);
        to += mri_pack_bytes(how, n);
    }
}

void mri_unpack_floats(mr_exchange how, const uint8_t *from, uint64_t count, float *to)
{
    if (how == MR_EXCHANGE_F32) memcpy(to, from, (size_t)count * sizeof *to);
    if (how == MR_EXCHANGE_BF16 || how == MR_EXCHANGE_F16)
        unpack_halves(how == MR_EXCHANGE_BF16, from, count, to);
    if (how != MR_EXCHANGE_INT8 && how != MR_EXCHANGE_1BIT) return;
    for (uint64_t at = 0; at < count; at += MRI_PACK_BLOCK) {
        const uint32_t n = (uint32_t)mri_min_u64(MRI_PACK_BLOCK, count - at);
        if (how == MR_EXCHANGE_INT8) unpack_bytes(from, n, to + at);
        else unpack_bits(from, n, to + at);
        from += mri_pack_bytes(how, n);
    }
}
