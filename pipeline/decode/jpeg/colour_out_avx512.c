/* pipeline/decode/jpeg/colour_out_avx512.c: 64 pixels at a time; the rest under masks. colour_out.c defines
 * the computation.
 *
 * Interleaving: byte i of channel c goes to place (3 i + c) mod 64 of one of the three results: one byte
 * permutation per channel, the same for all three results, which then each take every third byte of each. */
#include "pipeline/decode/jpeg/colour_out.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define STEP     64
#define PLACES_0 0x9249249249249249u /* places 0, 3, 6, ... */
#define PLACES_1 0x2492492492492492u
#define PLACES_2 0x4924924924924924u

struct pixels {
    __m512i r, g, b;
};

/* The first n bits, n <= 64. */
MRI_TARGET_AVX512 static inline __mmask64 first(size_t n) { return _bzhi_u64(UINT64_MAX, (uint32_t)n); }

/* Which of count bytes fall into the 64 from at on. */
MRI_TARGET_AVX512 static inline __mmask64 part_of(size_t count, size_t at)
{
    return first(count <= at ? 0 : count - at < STEP ? count - at : STEP);
}

MRI_TARGET_AVX512 static inline __m512i pick(__m512i first0, __m512i second1, __m512i third2)
{
    return _mm512_mask_mov_epi8(_mm512_mask_mov_epi8(first0, PLACES_1, second1), PLACES_2, third2);
}

MRI_TARGET_AVX512 static inline void store_pixels(struct pixels p, size_t count, uint8_t *rgb)
{
    /* 43 * 3 = 1 mod 64: place j takes byte 43 (j - c); the permutation looks at the lowest 6 bits only */
    static const _Alignas(64) uint8_t byte_at[64] = {
        0,  43, 22, 1,  44, 23, 2,  45, 24, 3,  46, 25, 4,  47, 26, 5,  48, 27, 6,  49, 28, 7,
        50, 29, 8,  51, 30, 9,  52, 31, 10, 53, 32, 11, 54, 33, 12, 55, 34, 13, 56, 35, 14, 57,
        36, 15, 58, 37, 16, 59, 38, 17, 60, 39, 18, 61, 40, 19, 62, 41, 20, 63, 42, 21};
    const __m512i at = _mm512_load_si512(byte_at);
    const __m512i r = _mm512_permutexvar_epi8(at, p.r);
    const __m512i g = _mm512_permutexvar_epi8(_mm512_sub_epi8(at, _mm512_set1_epi8(43)), p.g);
    const __m512i b = _mm512_permutexvar_epi8(_mm512_sub_epi8(at, _mm512_set1_epi8(86)), p.b);
    const __m512i out[3] = {pick(r, g, b), pick(g, b, r), pick(b, r, g)};
    for (size_t k = 0; k < 3; k++) {
        if (count == STEP) _mm512_storeu_si512(rgb + STEP * k, out[k]);
        else _mm512_mask_storeu_epi8(rgb + STEP * k, part_of(3 * count, STEP * k), out[k]);
    }
}

MRI_TARGET_AVX512 static inline __m512i rounded(__m512i lower, __m512i upper)
{
    return _mm512_packus_epi16(_mm512_srai_epi16(lower, MRI_YCC_BITS),
                               _mm512_srai_epi16(upper, MRI_YCC_BITS));
}

/* y, cb, cr: as words, * 2^8; cb and cr less 128. */
MRI_TARGET_AVX512 static inline struct pixels converted(__m512i y, __m512i cb, __m512i cr)
{
    const __m512i luma =
        _mm512_add_epi16(_mm512_srli_epi16(y, 8 - MRI_YCC_BITS), _mm512_set1_epi16(MRI_YCC_ROUND));
    const __m512i green = _mm512_add_epi16(_mm512_mulhrs_epi16(cb, _mm512_set1_epi16(MRI_YCC_G_CB)),
                                           _mm512_mulhrs_epi16(cr, _mm512_set1_epi16(MRI_YCC_G_CR)));
    return (struct pixels){_mm512_add_epi16(luma, _mm512_mulhrs_epi16(cr, _mm512_set1_epi16(MRI_YCC_R_CR))),
                           _mm512_sub_epi16(luma, green),
                           _mm512_add_epi16(luma, _mm512_mulhrs_epi16(cb, _mm512_set1_epi16(MRI_YCC_B_CB)))};
}

MRI_TARGET_AVX512 static inline void ycc_step(const uint8_t *y, const uint8_t *cb, const uint8_t *cr,
                                              size_t count, uint8_t *rgb)
{
    const __mmask64 m = first(count);
    const __m512i zero = _mm512_setzero_si512(), half = _mm512_set1_epi8((char)0x80);
    const __m512i luma = _mm512_maskz_loadu_epi8(m, y);
    const __m512i blue = _mm512_xor_si512(_mm512_maskz_loadu_epi8(m, cb), half);
    const __m512i red = _mm512_xor_si512(_mm512_maskz_loadu_epi8(m, cr), half);
    const struct pixels lower = converted(_mm512_unpacklo_epi8(zero, luma), _mm512_unpacklo_epi8(zero, blue),
                                          _mm512_unpacklo_epi8(zero, red));
    const struct pixels upper = converted(_mm512_unpackhi_epi8(zero, luma), _mm512_unpackhi_epi8(zero, blue),
                                          _mm512_unpackhi_epi8(zero, red));
    store_pixels(
        (struct pixels){rounded(lower.r, upper.r), rounded(lower.g, upper.g), rounded(lower.b, upper.b)},
        count, rgb);
}

MRI_TARGET_AVX512 static void ycc(const uint8_t *y, const uint8_t *cb, const uint8_t *cr, size_t count,
                                  uint8_t *rgb)
{
    size_t i = 0;
    for (; i + STEP <= count; i += STEP) ycc_step(y + i, cb + i, cr + i, STEP, rgb + 3 * i);
    if (i < count) ycc_step(y + i, cb + i, cr + i, count - i, rgb + 3 * i);
}

MRI_TARGET_AVX512 static inline void planes_step(const uint8_t *r, const uint8_t *g, const uint8_t *b,
                                                 size_t count, uint8_t *rgb)
{
    const __mmask64 m = first(count);
    store_pixels((struct pixels){_mm512_maskz_loadu_epi8(m, r), _mm512_maskz_loadu_epi8(m, g),
                                 _mm512_maskz_loadu_epi8(m, b)},
                 count, rgb);
}

MRI_TARGET_AVX512 static void planes(const uint8_t *r, const uint8_t *g, const uint8_t *b, size_t count,
                                     uint8_t *rgb)
{
    size_t i = 0;
    for (; i + STEP <= count; i += STEP) planes_step(r + i, g + i, b + i, STEP, rgb + 3 * i);
    if (i < count) planes_step(r + i, g + i, b + i, count - i, rgb + 3 * i);
}

MRI_TARGET_AVX512 static void gray(const uint8_t *level, size_t count, uint8_t *rgb)
{
    planes(level, level, level, count, rgb);
}

const mri_colour_variant mri_colour_avx512 = {ycc, planes, gray};

#endif
