/* tests/cuda_emu/product.h: arithmetic of the emulated cuBLAS and cuDNN: numbers of 16 bits, TF32, and one
 * product of matrices in f32 whose order of summation can be chosen, because two algorithms of a GPU never
 * add in the same order. */
#ifndef EMU_PRODUCT_H
#define EMU_PRODUCT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum emu_type { EMU_F32, EMU_BF16, EMU_F16 };
enum emu_rounding { EMU_EXACT, EMU_TO_TF32, EMU_TO_F16 }; /* of the factors, before they are multiplied */

static inline size_t emu_type_bytes(enum emu_type t) { return t == EMU_F32 ? 4 : 2; }

static inline uint32_t emu_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static inline float emu_float(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

/* Drop the low `bits` of the mantissa, to nearest, ties to even; infinities and NaNs do not change. */
static inline float emu_drop_bits(float f, unsigned bits)
{
    uint32_t u = emu_bits(f);
    if ((u & 0x7F800000u) == 0x7F800000u) return f;
    u += (1u << (bits - 1)) - 1 + (u >> bits & 1);
    return emu_float(u & ~((1u << bits) - 1));
}

static inline uint16_t emu_to_bf16(float f)
{
    if (f != f) return (uint16_t)(emu_bits(f) >> 16 | 0x40);
    return (uint16_t)(emu_bits(emu_drop_bits(f, 16)) >> 16);
}

static inline uint16_t emu_to_f16(float f)
{
    uint32_t u = emu_bits(f);
    const uint16_t sign = (uint16_t)(u >> 16 & 0x8000u);
    u &= 0x7FFFFFFFu;
    if (u > 0x7F800000u) return sign | 0x7E00u;
    if (u >= 0x477FF000u) return sign | 0x7C00u; /* 65520 and more round to infinity */
    if (u < 0x38800000u) /* below 2^-14: adding 1/2 leaves multiples of 2^-24, rounded, in the low bits */
        return (uint16_t)(sign | (emu_bits(emu_float(u) + 0.5f) - 0x3F000000u));
    u += 0xFFFu + (u >> 13 & 1);
    return (uint16_t)(sign | (u - 0x38000000u) >> 13);
}

static inline float emu_from_f16(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16, exponent = h >> 10 & 31, mantissa = h & 0x3FFu;
    if (exponent == 31) return emu_float(sign | 0x7F800000u | mantissa << 13);
    if (exponent == 0) return emu_float(sign | emu_bits((float)mantissa * 0x1p-24f));
    return emu_float(sign | (exponent + 112) << 23 | mantissa << 13);
}

static inline float emu_load(enum emu_type t, const void *base, int64_t at)
{
    if (t == EMU_F32) return ((const float *)base)[at];
    const uint16_t h = ((const uint16_t *)base)[at];
    return t == EMU_BF16 ? emu_float((uint32_t)h << 16) : emu_from_f16(h);
}

static inline void emu_store(enum emu_type t, void *base, int64_t at, float value)
{
    if (t == EMU_F32) ((float *)base)[at] = value;
    else ((uint16_t *)base)[at] = t == EMU_BF16 ? emu_to_bf16(value) : emu_to_f16(value);
}

static inline float emu_round(enum emu_rounding r, float f)
{
    return r == EMU_EXACT ? f : r == EMU_TO_TF32 ? emu_drop_bits(f, 13) : emu_from_f16(emu_to_f16(f));
}

/* How the terms of a sum are added: from `start` up, then from 0 to it. split: the two parts on their own,
 * and then together. */
struct emu_sum_order {
    size_t start;
    bool split;
};

/* Floats of the right factor b (k x n) in panels of 8 columns, and the packing: b[p][j] is at b + p * step +
 * j * column. */
size_t emu_panels_floats(size_t k, size_t n);
void emu_panels(float *panels, const float *b, size_t step, size_t column, size_t k, size_t n);
/* c[i][j] = (add ? c[i][j] : 0) + sum of a[i][p] b[p][j]; a[i][p] is at a + i * row + p * step, c[i][j] at c
 * + i * ldc + j. */
void emu_multiply(float *c, size_t ldc, const float *a, size_t row, size_t step, const float *panels,
                  size_t m, size_t n, size_t k, struct emu_sum_order order, bool add);

/* Memory for a computation; ends the program if the allocation fails. */
float *emu_floats(size_t count);
/* Fill what an algorithm may write of its workspace (the ends of it) with noise: nobody may rely on what was
 * there. */
void emu_scribble(void *workspace, size_t bytes);

#endif
