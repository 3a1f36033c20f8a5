/* kernels/ops/draws.c: see draws.h. The fast variants keep each 32-bit word in a 64-bit lane: the widening
 * multiply reads only its lower half, so what xor leaves in the upper half never matters, and a round is two
 * multiplies, two shifts and four xors. Written with intrinsics because compilers turn the plain loop into
 * 64-bit multiplies (five times slower, bench_step). */
#include "kernels/ops/draws.h"

#include "base/util.h"
#include "kernels/host/simd_loop.h"

#define LANES      16u
#define MULTIPLY_0 0xD2511F53u
#define MULTIPLY_1 0xCD9E8D57u
#define ADD_0      0x9E3779B9u
#define ADD_1      0xBB67AE85u

void mri_draws_plain(uint16_t *out, struct mri_draw_key key, uint32_t first_group, uint32_t groups)
{
    for (uint32_t g = 0; g < groups; g++, out += MRI_DRAW_GROUP)
        for (uint32_t j = 0; j < LANES; j++) {
            const uint64_t block = (uint32_t)((first_group + g) * LANES + j);
            const mri_philox r = mri_philox4x32(key.key, block | (uint64_t)key.place << 32, key.step);
            for (uint32_t k = 0; k < 8; k++) out[k * LANES + j] = (uint16_t)(r.v[k / 2] >> (k % 2 * 16));
        }
}

#if defined(__x86_64__)
#include <immintrin.h>

/* words: the four output words of each lane, in the lower halves. */
MRI_INLINE void pack(uint16_t *out, const uint64_t words[4][LANES])
{
    for (uint32_t w = 0; w < 4; w++)
        for (uint32_t j = 0; j < LANES; j++) {
            out[2 * w * LANES + j] = (uint16_t)words[w][j];
            out[(2 * w + 1) * LANES + j] = (uint16_t)(words[w][j] >> 16);
        }
}

MRI_TARGET_AVX512 static void draws_avx512(uint16_t *out, struct mri_draw_key key, uint32_t first_group,
                                           uint32_t groups)
{
    const __m512i m0 = _mm512_set1_epi64(MULTIPLY_0), m1 = _mm512_set1_epi64(MULTIPLY_1);
    const __m512i lane = _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0);
    for (uint32_t g = 0; g < groups; g++, out += MRI_DRAW_GROUP) {
        __m512i c0[2], c1[2], c2[2], c3[2];
        for (int h = 0; h < 2; h++) {
            c0[h] = _mm512_add_epi64(
                lane, _mm512_set1_epi64((long long)((first_group + g) * LANES + 8u * (uint32_t)h)));
            c1[h] = _mm512_set1_epi64(key.place);
            c2[h] = _mm512_set1_epi64((long long)(uint32_t)key.step);
            c3[h] = _mm512_set1_epi64((long long)(key.step >> 32));
        }
        uint32_t k0 = (uint32_t)key.key, k1 = (uint32_t)(key.key >> 32);
        for (int round = 0; round < 10; round++, k0 += ADD_0, k1 += ADD_1) {
            const __m512i key0 = _mm512_set1_epi64(k0), key1 = _mm512_set1_epi64(k1);
            for (int h = 0; h < 2; h++) {
                const __m512i p0 = _mm512_mul_epu32(c0[h], m0), p1 = _mm512_mul_epu32(c2[h], m1);
                c0[h] = _mm512_xor_si512(_mm512_xor_si512(_mm512_srli_epi64(p1, 32), c1[h]), key0);
                c1[h] = p1;
                c2[h] = _mm512_xor_si512(_mm512_xor_si512(_mm512_srli_epi64(p0, 32), c3[h]), key1);
                c3[h] = p0;
            }
        }
        for (int h = 0; h < 2; h++) {
            const __m512i words[4] = {c0[h], c1[h], c2[h], c3[h]};
            for (int w = 0; w < 4; w++) {
                _mm_storeu_si128((__m128i *)(void *)(out + 2 * w * 16 + h * 8),
                                 _mm512_cvtepi64_epi16(words[w]));
                _mm_storeu_si128((__m128i *)(void *)(out + (2 * w + 1) * 16 + h * 8),
                                 _mm512_cvtepi64_epi16(_mm512_srli_epi64(words[w], 16)));
            }
        }
    }
}

MRI_TARGET_AVX2 static void draws_avx2(uint16_t *out, struct mri_draw_key key, uint32_t first_group,
                                       uint32_t groups)
{
    const __m256i m0 = _mm256_set1_epi64x(MULTIPLY_0), m1 = _mm256_set1_epi64x(MULTIPLY_1);
    for (uint32_t g = 0; g < groups; g++, out += MRI_DRAW_GROUP) {
        uint64_t words[4][LANES];
        for (uint32_t first = 0; first < LANES; first += 4) {
            const long long block = (long long)((first_group + g) * LANES + first);
            __m256i c0 = _mm256_set_epi64x(block + 3, block + 2, block + 1, block),
                    c1 = _mm256_set1_epi64x(key.place);
            __m256i c2 = _mm256_set1_epi64x((long long)(uint32_t)key.step),
                    c3 = _mm256_set1_epi64x((long long)(key.step >> 32));
            uint32_t k0 = (uint32_t)key.key, k1 = (uint32_t)(key.key >> 32);
            for (int round = 0; round < 10; round++, k0 += ADD_0, k1 += ADD_1) {
                const __m256i p0 = _mm256_mul_epu32(c0, m0), p1 = _mm256_mul_epu32(c2, m1);
                c0 =
                    _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p1, 32), c1), _mm256_set1_epi64x(k0));
                c1 = p1;
                c2 =
                    _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p0, 32), c3), _mm256_set1_epi64x(k1));
                c3 = p0;
            }
            const __m256i all[4] = {c0, c1, c2, c3};
            for (int w = 0; w < 4; w++) _mm256_storeu_si256((__m256i *)(void *)&words[w][first], all[w]);
        }
        pack(out, words);
    }
}

void mri_draws(uint16_t *out, struct mri_draw_key key, uint32_t first_group, uint32_t groups)
{
    switch (mri_simd()) {
    case MRI_SIMD_AVX512: draws_avx512(out, key, first_group, groups); break;
    case MRI_SIMD_AVX2: draws_avx2(out, key, first_group, groups); break;
    default: mri_draws_plain(out, key, first_group, groups); break;
    }
}

#else

void mri_draws(uint16_t *out, struct mri_draw_key key, uint32_t first_group, uint32_t groups)
{
    mri_draws_plain(out, key, first_group, groups);
}

#endif
