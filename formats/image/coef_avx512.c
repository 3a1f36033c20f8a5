/* formats/image/coef_avx512.c: coef_rows.c with AVX-512: the nonzero map is the mask of an expanding move.
 * See coef_layout.h. */
#include "formats/image/coef_layout.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "base/simd.h"

/* For each place in natural order the zigzag position it comes from. */
static const uint8_t zigzag_of[MRI_JPEG_BLOCK] __attribute__((aligned(64))) = {
    0,  1,  5,  6,  14, 15, 27, 28, 2,  4,  7,  13, 16, 26, 29, 42, 3,  8,  12, 17, 25, 30,
    41, 43, 9,  11, 18, 24, 31, 40, 44, 53, 10, 19, 23, 32, 39, 45, 52, 54, 20, 22, 33, 38,
    46, 51, 55, 60, 21, 34, 37, 47, 50, 56, 59, 61, 35, 36, 48, 49, 57, 58, 62, 63};

MRI_TARGET_AVX512 uint64_t mri_coef_run_avx512(const mri_coef_run *run)
{
    const __m512i natural = _mm512_load_si512(zigzag_of), low = _mm512_set1_epi16(0x0f0f);
    const __m512i sign =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1));
    const uint8_t *p = run->data;
    uint64_t wrong = 0;
    for (uint32_t i = 0; i < run->count; i++) {
        int16_t *coef = run->coef[i];
        const uint32_t length = run->lengths[i];
        if (length == 0) {
            _mm512_store_si512(coef,
                               _mm512_zextsi128_si512(_mm_cvtsi32_si128(mri_le16(run->dc + 2 * (size_t)i))));
            _mm512_store_si512(coef + 32, _mm512_setzero_si512());
            run->last[i] = 0;
            continue;
        }
        const unsigned mode = p[0], map_bytes = (mode & MRI_COEF_MAP_BYTES) + 1,
                       tier = mode >> MRI_COEF_TIER_SHIFT & MRI_COEF_TIER;
        const uint64_t map = _bzhi_u64(mri_le64(p + 1), 8 * map_bytes), wide = map & mri_coef_tier[tier],
                       narrow = map ^ wide;
        const uint8_t *at = p + 1 + map_bytes;
        const __m512i bytes = _mm512_loadu_si512(at);
        at += _mm_popcnt_u64(wide);
        const __m512i pairs = _mm512_cvtepu8_epi16(_mm256_loadu_si256((const void *)at));
        const __m512i nibbles = _mm512_shuffle_epi8(
            sign, _mm512_and_si512(_mm512_or_si512(pairs, _mm512_slli_epi16(pairs, 4)), low));
        const __m512i zigzag =
            _mm512_mask_expand_epi8(_mm512_maskz_expand_epi8(wide, bytes), narrow, nibbles);
        const __m512i block = _mm512_permutexvar_epi8(natural, zigzag);
        _mm512_store_si512(coef, _mm512_cvtepi8_epi16(_mm512_castsi512_si256(block)));
        _mm512_store_si512(coef + 32, _mm512_cvtepi8_epi16(_mm512_extracti64x4_epi64(block, 1)));
        run->last[i] = (uint8_t)(63 - _lzcnt_u64(map | 1));
        at += (_mm_popcnt_u64(narrow) + 1) / 2;
        size_t taken = (size_t)(at - p), more = 0;
        if (__builtin_expect(mode & MRI_COEF_ESCAPE, 0))
            wrong |= mri_coef_escapes(at, length > taken ? length - taken : 0, map, tier, coef, &more);
        wrong |= (map & 1) | ((taken + more) ^ length);
        coef[0] = (int16_t)mri_le16(run->dc + 2 * (size_t)i);
        p += length;
    }
    return wrong;
}

#endif
