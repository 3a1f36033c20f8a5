/* formats/image/coef_pack_avx512.c: blocks of coef_pack.c with AVX-512, the same bytes: comparisons of all 64
 * coefficients give the maps, and compressing moves gather the values. See coef_layout.h. */
#include "formats/image/coef_layout.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "base/simd.h"

#define INLINE MRI_TARGET_AVX512 static inline __attribute__((always_inline))

/* A block's coefficients in zigzag order. */
typedef struct zigzag {
    __m512i low, high;
} zigzag;

INLINE zigzag in_order(const int16_t *coef)
{
    static const _Alignas(64) uint16_t natural[MRI_JPEG_BLOCK] = {
        0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
        41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
        30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};
    const __m512i a = _mm512_loadu_si512(coef), b = _mm512_loadu_si512(coef + 32);
    return (zigzag){_mm512_permutex2var_epi16(a, _mm512_load_si512(natural), b),
                    _mm512_permutex2var_epi16(a, _mm512_load_si512(natural + 32), b)};
}

/* Bits of the coefficients outside -half .. half - 1, without the DC. */
INLINE uint64_t outside(zigzag z, int half)
{
    const __m512i by = _mm512_set1_epi16((short)half), most = _mm512_set1_epi16((short)(2 * half - 1));
    const uint64_t high = _mm512_cmpgt_epu16_mask(_mm512_add_epi16(z.high, by), most),
                   low = _mm512_cmpgt_epu16_mask(_mm512_add_epi16(z.low, by), most);
    return (high << 32 | low) & ~UINT64_C(1);
}

/* The same for -1023 .. 1023. */
INLINE uint64_t outside_ac(zigzag z)
{
    const __m512i most = _mm512_set1_epi16(1023);
    return ((uint64_t)_mm512_cmpgt_epu16_mask(_mm512_abs_epi16(z.high), most) << 32 |
            _mm512_cmpgt_epu16_mask(_mm512_abs_epi16(z.low), most)) &
           ~UINT64_C(1);
}

INLINE unsigned tier_for(unsigned end)
{
    const __m128i ends = _mm_loadu_si128((const void *)mri_coef_tier_end);
    return (unsigned)_mm_popcnt_u32(_mm_cmplt_epu8_mask(ends, _mm_set1_epi8((char)end)));
}

INLINE __m512i bytes_of(__m512i low, __m512i high)
{
    return _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtepi16_epi8(low)), _mm512_cvtepi16_epi8(high),
                              1);
}

/* As mri_coef_block_put(); up to MRI_COEF_PUT_SLACK bytes from `to` on may be overwritten. No branch for a
 * block without other coefficients than its DC: it would often be mispredicted. */
INLINE size_t block_put(zigzag z, uint8_t *to, bool *beyond)
{
    const __m512i values = bytes_of(z.low, z.high);
    const uint64_t map =
        ((uint64_t)_mm512_test_epi16_mask(z.high, z.high) << 32 | _mm512_test_epi16_mask(z.low, z.low)) &
        ~UINT64_C(1);
    const uint64_t large = outside(z, 8), huge = outside(z, 128);
    const unsigned map_bytes = (unsigned)(63 - _lzcnt_u64(map | 1)) / 8 + 1,
                   tier = tier_for((unsigned)(64 - _lzcnt_u64(large | 1)));
    const uint64_t wide = map & mri_coef_tier[tier], narrow = map ^ wide;
    uint8_t *at = to + 1 + map_bytes;
    memcpy(to + 1, &map, sizeof map);
    to[0] = (uint8_t)((map_bytes - 1) | tier << MRI_COEF_TIER_SHIFT | (huge ? MRI_COEF_ESCAPE : 0));
    _mm512_storeu_si512(at, _mm512_maskz_compress_epi8(wide, values));
    at += _mm_popcnt_u64(wide);
    const __m512i nibbles =
        _mm512_and_si512(_mm512_maskz_compress_epi8(narrow, values), _mm512_set1_epi8(15));
    const __m512i joined = _mm512_maddubs_epi16(nibbles, _mm512_set1_epi16(0x1001));
    _mm256_storeu_si256((void *)at, _mm512_cvtepi16_epi8(joined));
    at += (_mm_popcnt_u64(narrow) + 1) / 2;
    if (__builtin_expect(huge != 0, 0)) {
        *beyond |= outside_ac(z) != 0;
        const unsigned escape = tier_for((unsigned)(64 - _lzcnt_u64(huge)));
        const uint64_t which = map & mri_coef_tier[escape];
        *at++ = (uint8_t)escape;
        _mm512_storeu_si512(at, _mm512_maskz_compress_epi8(which, bytes_of(_mm512_srli_epi16(z.low, 8),
                                                                           _mm512_srli_epi16(z.high, 8))));
        at += _mm_popcnt_u64(which);
    }
    return (size_t)(at - to) & (0 - (size_t)(map != 0));
}

MRI_TARGET_AVX512 size_t mri_coef_blocks_put_avx512(const int16_t (*row)[MRI_JPEG_BLOCK], uint32_t blocks,
                                                    uint8_t *lengths, uint8_t *dc, uint8_t *to, bool *beyond)
{
    uint8_t *at = to;
    for (uint32_t x = 0; x < blocks; x++) {
        const size_t length = block_put(in_order(row[x]), at, beyond);
        lengths[x] = (uint8_t)length;
        mri_put_le16(dc + 2 * (size_t)x, (uint16_t)row[x][0]);
        at += length;
    }
    return (size_t)(at - to);
}

#endif
