/* python/native/pixels_avx2.c: pixels.c's forms by eight values at a time, with the same bits: one
 * subtraction and one division, or one product and one sum, each rounded. The rest at the end is
 * pixels.c's. */
#include "python/native/batch.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

#define AVX2   __attribute__((target("avx2,f16c")))
#define INLINE __attribute__((target("avx2,f16c"), always_inline)) static inline

enum { PERIOD = 24 /* values: whole pixels of 1 to 4 channels, whole vectors */ };

/* The numbers of eight values one after the other. */
typedef struct numbers {
    __m256 first, second; /* mean and std, or affine's factor and summand */
} numbers;

INLINE __m256 value_of(__m128i bytes, const numbers *n, int affine)
{
    const __m256 x = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));
    if (affine) return _mm256_add_ps(_mm256_mul_ps(x, n->first), n->second);
    return _mm256_div_ps(_mm256_sub_ps(x, n->first), n->second);
}

INLINE __m128i to_bfloat16(__m256 x)
{
    const __m256i bits = _mm256_castps_si256(x);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i up = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
    const __m256i high = _mm256_srli_epi32(up, 16);
    return _mm_packus_epi32(_mm256_castsi256_si128(high), _mm256_extracti128_si256(high, 1));
}

/* Eight values to element `at` of out. */
INLINE void put(int dtype, void *out, size_t at, __m128i bytes, const numbers *n, int affine)
{
    const __m256 x = value_of(bytes, n, affine);
    if (dtype == MR_F32) _mm256_storeu_ps((float *)out + at, x);
    else
        _mm_storeu_si128((__m128i *)(void *)((uint16_t *)out + at),
                         dtype == MR_BF16
                             ? to_bfloat16(x)
                             : _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

INLINE numbers numbers_of(const mrp_finish *how, const float *affine, uint32_t channel, uint32_t step)
{
    float first[8], second[8];
    for (uint32_t i = 0; i < 8; i++) {
        const uint32_t c = (channel + i * step) % how->channels;
        first[i] = affine ? affine[0] : how->mean[c];
        second[i] = affine ? affine[1] : how->std[c];
    }
    return (numbers){_mm256_loadu_ps(first), _mm256_loadu_ps(second)};
}

INLINE size_t interleaved(int dtype, const mrp_finish *how, const uint8_t *in, size_t values,
                          const float *affine, void *out)
{
    numbers n[3];
    for (uint32_t k = 0; k < 3; k++) n[k] = numbers_of(how, affine, 8 * k, 1);
    size_t at = 0;
    for (; at + PERIOD <= values; at += PERIOD)
        for (uint32_t k = 0; k < 3; k++)
            put(dtype, out, at + 8 * k, _mm_loadl_epi64((const __m128i *)(const void *)(in + at + 8 * k)),
                &n[k], affine != NULL);
    return at;
}

INLINE __m128i gather(const __m128i part[3], const int8_t which[3][16])
{
    __m128i all = _mm_setzero_si128();
    for (int k = 0; k < 3; k++)
        all = _mm_or_si128(
            all, _mm_shuffle_epi8(part[k], _mm_loadu_si128((const __m128i *)(const void *)which[k])));
    return all;
}

/* Of channel c of 16 pixels of three: where in each of three loads its bytes are, -1: in another one. */
#define N -1
static const int8_t places[3][3][16] = {{{0, 3, 6, 9, 12, 15, N, N, N, N, N, N, N, N, N, N},
                                         {N, N, N, N, N, N, 2, 5, 8, 11, 14, N, N, N, N, N},
                                         {N, N, N, N, N, N, N, N, N, N, N, 1, 4, 7, 10, 13}},
                                        {{1, 4, 7, 10, 13, N, N, N, N, N, N, N, N, N, N, N},
                                         {N, N, N, N, N, 0, 3, 6, 9, 12, 15, N, N, N, N, N},
                                         {N, N, N, N, N, N, N, N, N, N, N, 2, 5, 8, 11, 14}},
                                        {{2, 5, 8, 11, 14, N, N, N, N, N, N, N, N, N, N, N},
                                         {N, N, N, N, N, 1, 4, 7, 10, 13, N, N, N, N, N, N},
                                         {N, N, N, N, N, N, N, N, N, N, 0, 3, 6, 9, 12, 15}}};
#undef N

INLINE size_t planar(int dtype, const mrp_finish *how, const uint8_t *in, size_t pixels, const float *affine,
                     void *out)
{
    numbers n[3];
    for (uint32_t c = 0; c < 3; c++) n[c] = numbers_of(how, affine, c, 0);
    size_t at = 0;
    for (; at + 16 <= pixels; at += 16) {
        __m128i part[3];
        for (int k = 0; k < 3; k++)
            part[k] = _mm_loadu_si128((const __m128i *)(const void *)(in + 3 * at + 16 * (size_t)k));
        for (size_t c = 0; c < 3; c++) {
            const __m128i bytes = gather(part, places[c]);
            if (dtype == MR_U8) {
                _mm_storeu_si128((__m128i *)(void *)((uint8_t *)out + c * pixels + at), bytes);
                continue;
            }
            put(dtype, out, c * pixels + at, bytes, &n[c], affine != NULL);
            put(dtype, out, c * pixels + at + 8, _mm_srli_si128(bytes, 8), &n[c], affine != NULL);
        }
    }
    return at;
}

/* One function for each type and layout, so that neither is asked for inside. */
#define EACH(NAME, WHAT)                                                                                     \
    AVX2 static size_t NAME(const mrp_finish *how, const uint8_t *in, size_t count, const float *affine,     \
                            void *out)                                                                       \
    {                                                                                                        \
        return affine ? WHAT(how, in, count, affine, out) : WHAT(how, in, count, NULL, out);                 \
    }
#define PLANAR_F32(...)  planar(MR_F32, __VA_ARGS__)
#define PLANAR_F16(...)  planar(MR_F16, __VA_ARGS__)
#define PLANAR_BF16(...) planar(MR_BF16, __VA_ARGS__)
#define PLANAR_U8(...)   planar(MR_U8, __VA_ARGS__)
#define ROWS_F32(...)    interleaved(MR_F32, __VA_ARGS__)
#define ROWS_F16(...)    interleaved(MR_F16, __VA_ARGS__)
#define ROWS_BF16(...)   interleaved(MR_BF16, __VA_ARGS__)
EACH(planar_f32, PLANAR_F32)
EACH(planar_f16, PLANAR_F16)
EACH(planar_bf16, PLANAR_BF16)
EACH(planar_u8, PLANAR_U8)
EACH(rows_f32, ROWS_F32)
EACH(rows_f16, ROWS_F16)
EACH(rows_bf16, ROWS_BF16)

size_t mrp_form_avx2(const mrp_finish *how, const uint8_t *in, size_t pixels, const float *affine, void *out)
{
    const char *simd = mr_simd_in_use();
    if (strcmp(simd, "avx2") != 0 && strcmp(simd, "avx512") != 0) return 0;
    if (how->planar && how->channels == 3)
        return (how->dtype == MR_F32    ? planar_f32
                : how->dtype == MR_F16  ? planar_f16
                : how->dtype == MR_BF16 ? planar_bf16
                                        : planar_u8)(how, in, pixels, affine, out);
    if (how->dtype == MR_U8 || (how->planar && how->channels != 1)) return 0;
    return (how->dtype == MR_F32   ? rows_f32
            : how->dtype == MR_F16 ? rows_f16
                                   : rows_bf16)(how, in, pixels * how->channels, affine, out) /
           how->channels;
}

#else

size_t mrp_form_avx2(const mrp_finish *how, const uint8_t *in, size_t pixels, const float *affine, void *out)
{
    (void)how, (void)in, (void)pixels, (void)affine, (void)out;
    return 0;
}

#endif
