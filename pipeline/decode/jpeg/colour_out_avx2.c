/* pipeline/decode/jpeg/colour_out_avx2.c: 32 pixels at a time; the rest in plain C. See colour_out.c for what
 * is computed.
 *
 * Interleaving: byte i of channel c of a lane goes to place (3 i + c) mod 16: one shuffle per channel, then
 * every third byte of each, then the lanes in order. */
#include "pipeline/decode/jpeg/colour_out.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define STEP 32

struct pixels {
    __m256i r, g, b;
};

/* Places 0, 3, 6, ... of each lane from the first, 1, 4, ... from the second, 2, 5, ... from the third. */
MRI_TARGET_AVX2 static inline __m256i pick(__m256i a, __m256i b, __m256i c)
{
    const __m128i places_1 = _mm_setr_epi8(0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0);
    const __m128i places_2 = _mm_setr_epi8(0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0);
    const __m256i ab = _mm256_blendv_epi8(a, b, _mm256_broadcastsi128_si256(places_1));
    return _mm256_blendv_epi8(ab, c, _mm256_broadcastsi128_si256(places_2));
}

MRI_TARGET_AVX2 static inline void store_pixels(struct pixels p, uint8_t *rgb)
{
    /* 11 * 3 = 1 mod 16: place j takes byte 11 (j - c) */
    static const _Alignas(16)
        uint8_t byte_at[3][16] = {{0, 11, 6, 1, 12, 7, 2, 13, 8, 3, 14, 9, 4, 15, 10, 5},
                                  {5, 0, 11, 6, 1, 12, 7, 2, 13, 8, 3, 14, 9, 4, 15, 10},
                                  {10, 5, 0, 11, 6, 1, 12, 7, 2, 13, 8, 3, 14, 9, 4, 15}};
    const __m256i r =
        _mm256_shuffle_epi8(p.r, _mm256_broadcastsi128_si256(_mm_load_si128((const void *)byte_at[0])));
    const __m256i g =
        _mm256_shuffle_epi8(p.g, _mm256_broadcastsi128_si256(_mm_load_si128((const void *)byte_at[1])));
    const __m256i b =
        _mm256_shuffle_epi8(p.b, _mm256_broadcastsi128_si256(_mm_load_si128((const void *)byte_at[2])));
    const __m256i x = pick(r, g, b), y = pick(g, b, r), z = pick(b, r, g); /* 48 bytes of the lower lanes, 48
                                                                              of the upper */
    _mm256_storeu_si256((void *)rgb, _mm256_permute2x128_si256(x, y, 0x20));
    _mm256_storeu_si256((void *)(rgb + 32), _mm256_blend_epi32(z, x, 0xf0));
    _mm256_storeu_si256((void *)(rgb + 64), _mm256_permute2x128_si256(y, z, 0x31));
}

MRI_TARGET_AVX2 static inline __m256i rounded(__m256i lower, __m256i upper)
{
    return _mm256_packus_epi16(_mm256_srai_epi16(lower, MRI_YCC_BITS),
                               _mm256_srai_epi16(upper, MRI_YCC_BITS));
}

/* y, cb, cr: as words, * 2^8; cb and cr less 128. */
MRI_TARGET_AVX2 static inline struct pixels converted(__m256i y, __m256i cb, __m256i cr)
{
    const __m256i luma =
        _mm256_add_epi16(_mm256_srli_epi16(y, 8 - MRI_YCC_BITS), _mm256_set1_epi16(MRI_YCC_ROUND));
    const __m256i green = _mm256_add_epi16(_mm256_mulhrs_epi16(cb, _mm256_set1_epi16(MRI_YCC_G_CB)),
                                           _mm256_mulhrs_epi16(cr, _mm256_set1_epi16(MRI_YCC_G_CR)));
    return (struct pixels){_mm256_add_epi16(luma, _mm256_mulhrs_epi16(cr, _mm256_set1_epi16(MRI_YCC_R_CR))),
                           _mm256_sub_epi16(luma, green),
                           _mm256_add_epi16(luma, _mm256_mulhrs_epi16(cb, _mm256_set1_epi16(MRI_YCC_B_CB)))};
}

MRI_TARGET_AVX2 static inline __m256i load(const uint8_t *p) { return _mm256_loadu_si256((const void *)p); }

MRI_TARGET_AVX2 static inline void ycc_step(const uint8_t *y, const uint8_t *cb, const uint8_t *cr,
                                            uint8_t *rgb)
{
    const __m256i zero = _mm256_setzero_si256(), half = _mm256_set1_epi8((char)0x80);
    const __m256i luma = load(y), blue = _mm256_xor_si256(load(cb), half),
                  red = _mm256_xor_si256(load(cr), half);
    const struct pixels lower = converted(_mm256_unpacklo_epi8(zero, luma), _mm256_unpacklo_epi8(zero, blue),
                                          _mm256_unpacklo_epi8(zero, red));
    const struct pixels upper = converted(_mm256_unpackhi_epi8(zero, luma), _mm256_unpackhi_epi8(zero, blue),
                                          _mm256_unpackhi_epi8(zero, red));
    store_pixels(
        (struct pixels){rounded(lower.r, upper.r), rounded(lower.g, upper.g), rounded(lower.b, upper.b)},
        rgb);
}

MRI_TARGET_AVX2 static void ycc(const uint8_t *y, const uint8_t *cb, const uint8_t *cr, size_t count,
                                uint8_t *rgb)
{
    size_t i = 0;
    for (; i + STEP <= count; i += STEP) ycc_step(y + i, cb + i, cr + i, rgb + 3 * i);
    mri_colour_plain.ycc(y + i, cb + i, cr + i, count - i, rgb + 3 * i);
}

MRI_TARGET_AVX2 static void planes(const uint8_t *r, const uint8_t *g, const uint8_t *b, size_t count,
                                   uint8_t *rgb)
{
    size_t i = 0;
    for (; i + STEP <= count; i += STEP)
        store_pixels((struct pixels){load(r + i), load(g + i), load(b + i)}, rgb + 3 * i);
    mri_colour_plain.planes(r + i, g + i, b + i, count - i, rgb + 3 * i);
}

MRI_TARGET_AVX2 static void gray(const uint8_t *level, size_t count, uint8_t *rgb)
{
    planes(level, level, level, count, rgb);
}

const mri_colour_variant mri_colour_avx2 = {ycc, planes, gray};

#endif
