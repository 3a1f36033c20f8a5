/* kernels/cuda/kernels/values.h: values of a tensor in registers. Whatever the type in memory, arithmetic is
 * in float; memory is touched in packs of 16 bytes, or one value at a time:
 *
 *     mrk_raw<T, N>   N values as they are stored (N = 1, or all of a pack): for loads and stores
 *     float[N]        the same values to compute with
 *
 * Loads are issued first and opened later, so that several are under way at once. Stores round to nearest
 * even; a NaN stays a NaN. The emulation converts by plain arithmetic on the bits. */
#ifndef MRK_VALUES_H
#define MRK_VALUES_H

#include "kernels/cuda/kernels/port.h"

struct mrk_bf16 {
    uint16_t bits;
};
struct mrk_f16 {
    uint16_t bits;
};

#ifdef MRK_EMULATED

MRK_INLINE uint32_t mrk_bf16_of(float v)
{
    const uint32_t bits = mrk_bits(v);
    if (v != v) return bits >> 16 | 0x40;
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
}

MRK_INLINE uint32_t mrk_f16_of(float v)
{
    const uint32_t bits = mrk_bits(v), sign = bits >> 16 & 0x8000, size = bits & 0x7FFFFFFF;
    if (size > 0x7F800000) return sign | 0x7E00;
    if (size >= 0x477FF000) return sign | 0x7C00; /* 65520 and above */
    if (size < 0x38800000)                        /* below 2^-14: steps of 2^-24 */
        return sign | (uint32_t)lrintf(mrk_of_bits(size) * 16777216.0f);
    return sign | ((size - 0x38000000 + 0xFFF + (size >> 13 & 1)) >> 13);
}

MRK_INLINE float mrk_of_f16(uint32_t h)
{
    const uint32_t sign = (h & 0x8000) << 16, exponent = h >> 10 & 31, fraction = h & 0x3FF;
    if (exponent == 31) return mrk_of_bits(sign | 0x7F800000 | fraction << 13);
    if (exponent == 0) return mrk_of_bits(sign | mrk_bits((float)fraction / 16777216.0f));
    return mrk_of_bits(sign | ((exponent + 112) << 23 | fraction << 13));
}

MRK_INLINE uint32_t mrk_bf16_pair(float low, float high)
{
    return mrk_bf16_of(low) | mrk_bf16_of(high) << 16;
}
MRK_INLINE uint32_t mrk_f16_pair(float low, float high) { return mrk_f16_of(low) | mrk_f16_of(high) << 16; }

#else

MRK_INLINE uint32_t mrk_bf16_of(float v) { return __bfloat16_as_ushort(__float2bfloat16_rn(v)); }
MRK_INLINE uint32_t mrk_f16_of(float v) { return __half_as_ushort(__float2half_rn(v)); }
MRK_INLINE float mrk_of_f16(uint32_t h) { return __half2float(__ushort_as_half((unsigned short)h)); }
MRK_INLINE uint32_t mrk_bf16_pair(float low, float high)
{
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    return (uint32_t)__bfloat16_as_ushort(pair.x) | (uint32_t)__bfloat16_as_ushort(pair.y) << 16;
}
MRK_INLINE uint32_t mrk_f16_pair(float low, float high)
{
    const __half2 pair = __floats2half2_rn(low, high);
    return (uint32_t)__half_as_ushort(__low2half(pair)) | (uint32_t)__half_as_ushort(__high2half(pair)) << 16;
}

#endif

/* One value. */
MRK_INLINE float mrk_float(float v) { return v; }
MRK_INLINE float mrk_float(mrk_bf16 v) { return mrk_of_bits((uint32_t)v.bits << 16); }
MRK_INLINE float mrk_float(mrk_f16 v) { return mrk_of_f16(v.bits); }
MRK_INLINE void mrk_round(float v, float *out) { *out = v; }
MRK_INLINE void mrk_round(float v, mrk_bf16 *out) { out->bits = (uint16_t)mrk_bf16_of(v); }
MRK_INLINE void mrk_round(float v, mrk_f16 *out) { out->bits = (uint16_t)mrk_f16_of(v); }

/* v as T would keep it. */
template <class T> MRK_INLINE float mrk_kept(float v)
{
    T out;
    mrk_round(v, &out);
    return mrk_float(out);
}

/* ---- packs ---- */

struct MRK_ALIGNED(16) mrk_quad {
    uint32_t w[4];
};
struct MRK_ALIGNED(8) mrk_twin {
    uint32_t w[2];
};

template <class T, int N> struct mrk_raw { /* a whole pack */
    mrk_quad q;
};
template <class T> struct mrk_raw<T, 1> {
    T one;
};
template <> struct mrk_raw<float, 8> { /* beside 8 values of another type */
    mrk_quad q, q2;
};

template <class T> struct mrk_lanes;
template <> struct mrk_lanes<float> {
    enum { pack = 4 };
};
template <> struct mrk_lanes<mrk_bf16> {
    enum { pack = 8 };
};
template <> struct mrk_lanes<mrk_f16> {
    enum { pack = 8 };
};

template <class T, int N> struct mrk_form { /* of N values in memory */
    static __device__ __forceinline__ mrk_raw<T, N> load(const T *p)
    {
        mrk_raw<T, N> r;
        r.q = *(const mrk_quad *)(const void *)p;
        return r;
    }
    static __device__ __forceinline__ void store(T *p, mrk_raw<T, N> r) { *(mrk_quad *)(void *)p = r.q; }
};
template <class T> struct mrk_form<T, 1> {
    static __device__ __forceinline__ mrk_raw<T, 1> load(const T *p)
    {
        mrk_raw<T, 1> r;
        r.one = *p;
        return r;
    }
    static __device__ __forceinline__ void store(T *p, mrk_raw<T, 1> r) { *p = r.one; }
};
template <> struct mrk_form<float, 8> {
    static __device__ __forceinline__ mrk_raw<float, 8> load(const float *p)
    {
        mrk_raw<float, 8> r;
        r.q = *(const mrk_quad *)(const void *)p;
        r.q2 = *(const mrk_quad *)(const void *)(p + 4);
        return r;
    }
    static __device__ __forceinline__ void store(float *p, mrk_raw<float, 8> r)
    {
        *(mrk_quad *)(void *)p = r.q;
        *(mrk_quad *)(void *)(p + 4) = r.q2;
    }
};

/* N values from element `at` of a tensor. */
template <class T, int N> MRK_INLINE mrk_raw<T, N> mrk_load(const void *tensor, uint64_t at)
{
    return mrk_form<T, N>::load((const T *)tensor + at);
}
template <class T, int N> MRK_INLINE void mrk_store_raw(void *tensor, uint64_t at, mrk_raw<T, N> r)
{
    mrk_form<T, N>::store((T *)tensor + at, r);
}

/* Conversion from and to the stored type. */
template <class T> MRK_INLINE void mrk_open(const mrk_raw<T, 1> &r, float (&v)[1])
{
    v[0] = mrk_float(r.one);
}
MRK_INLINE void mrk_open(const mrk_raw<float, 4> &r, float (&v)[4])
{
    MRK_UNROLL for (int i = 0; i < 4; i++) v[i] = mrk_of_bits(r.q.w[i]);
}
MRK_INLINE void mrk_open(const mrk_raw<float, 8> &r, float (&v)[8])
{
    MRK_UNROLL for (int i = 0; i < 4; i++) v[i] = mrk_of_bits(r.q.w[i]), v[i + 4] = mrk_of_bits(r.q2.w[i]);
}
MRK_INLINE void mrk_open(const mrk_raw<mrk_bf16, 8> &r, float (&v)[8])
{
    MRK_UNROLL for (int i = 0; i < 4; i++) v[2 * i] = mrk_of_bits(r.q.w[i] << 16),
                                                 v[2 * i + 1] = mrk_of_bits(r.q.w[i] & 0xFFFF0000u);
}
MRK_INLINE void mrk_open(const mrk_raw<mrk_f16, 8> &r, float (&v)[8])
{
    MRK_UNROLL for (int i = 0; i < 4; i++) v[2 * i] = mrk_of_f16(r.q.w[i] & 0xFFFFu),
                                                 v[2 * i + 1] = mrk_of_f16(r.q.w[i] >> 16);
}

template <class T> MRK_INLINE void mrk_close(mrk_raw<T, 1> &r, const float (&v)[1])
{
    mrk_round(v[0], &r.one);
}
MRK_INLINE void mrk_close(mrk_raw<float, 4> &r, const float (&v)[4])
{
    MRK_UNROLL for (int i = 0; i < 4; i++) r.q.w[i] = mrk_bits(v[i]);
}
MRK_INLINE void mrk_close(mrk_raw<float, 8> &r, const float (&v)[8])
{
    MRK_UNROLL for (int i = 0; i < 4; i++) r.q.w[i] = mrk_bits(v[i]), r.q2.w[i] = mrk_bits(v[i + 4]);
}
MRK_INLINE void mrk_close(mrk_raw<mrk_bf16, 8> &r, const float (&v)[8])
{
    MRK_UNROLL for (int i = 0; i < 4; i++) r.q.w[i] = mrk_bf16_pair(v[2 * i], v[2 * i + 1]);
}
MRK_INLINE void mrk_close(mrk_raw<mrk_f16, 8> &r, const float (&v)[8])
{
    MRK_UNROLL for (int i = 0; i < 4; i++) r.q.w[i] = mrk_f16_pair(v[2 * i], v[2 * i + 1]);
}

template <class T, int N> MRK_INLINE void mrk_read(const void *tensor, uint64_t at, float (&v)[N])
{
    mrk_open(mrk_load<T, N>(tensor, at), v);
}
template <class T, int N> MRK_INLINE void mrk_write(void *tensor, uint64_t at, const float (&v)[N])
{
    mrk_raw<T, N> r;
    mrk_close(r, v);
    mrk_store_raw<T, N>(tensor, at, r);
}

/* Call body<T, N>(...) for the type and width that the kernel was asked for. */
#define MRK_DISPATCH(dtype, vectors, body, ...)                                                              \
    do {                                                                                                     \
        if ((dtype) == MR_TENSOR_BF16) {                                                                     \
            if (vectors) body<mrk_bf16, 8>(__VA_ARGS__);                                                     \
            else body<mrk_bf16, 1>(__VA_ARGS__);                                                             \
        } else if ((dtype) == MR_TENSOR_F16) {                                                               \
            if (vectors) body<mrk_f16, 8>(__VA_ARGS__);                                                      \
            else body<mrk_f16, 1>(__VA_ARGS__);                                                              \
        } else {                                                                                             \
            if (vectors) body<float, 4>(__VA_ARGS__);                                                        \
            else body<float, 1>(__VA_ARGS__);                                                                \
        }                                                                                                    \
    } while (0)

#endif
