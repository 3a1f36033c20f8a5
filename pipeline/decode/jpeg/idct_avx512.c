/* pipeline/decode/jpeg/idct_avx512.c: two blocks at a time. idct.c defines the computation.
 *
 *   load      rows 2j, 2j + 1 of block A and of block B: one 128-bit lane each
 *   rows      inside its lane, each pair of inputs is spread and multiplied by the weights of samples 0..3:
 *             no transposition
 *   between   rows v and v + 4 word by word (unpack), then lanes: samples 0..3 and 7..4 of A and B
 *   columns   pairs of rows times the weights of one sample
 *   store     a byte permutation puts the samples in order */
#include "pipeline/decode/jpeg/idct_variants.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define INLINE                                                                                               \
    __attribute__((always_inline)) static inline /* so that weights stay in registers from block to block */

#define LANES_02 0x88 /* of both operands of a lane shuffle */
#define LANES_13 0xdd

/* Two neighbouring words of each lane, four times. */
#define SPREAD(a, b) _mm512_set1_epi32((2 * (a)) | (2 * (a) + 1) << 8 | (2 * (b)) << 16 | (2 * (b) + 1) << 24)

MRI_TARGET_AVX512 static inline __m512i lanes_of(const int16_t words[8])
{
    return _mm512_broadcast_i32x4(_mm_loadu_si128((const void *)words));
}

/* The weights of sample i. */
MRI_TARGET_AVX512 static inline __m512i pair_of(const int16_t words[8], int i)
{
    int32_t pair;
    memcpy(&pair, words + 2 * i, sizeof pair);
    return _mm512_set1_epi32(pair);
}

MRI_TARGET_AVX512 static inline __m512i two_rows(const int16_t *a, const int16_t *b, int j,
                                                 const uint16_t *quant)
{
    const __m512i rows =
        _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_loadu_si256((const void *)(a + 16 * j))),
                           _mm256_loadu_si256((const void *)(b + 16 * j)), 1);
    return _mm512_mullo_epi16(rows,
                              _mm512_broadcast_i64x4(_mm256_loadu_si256((const void *)(quant + 16 * j))));
}

/* Words 0..3 of a lane: samples 0..3; words 4..7: samples 7..4. */
MRI_TARGET_AVX512 static inline __m512i row_samples(__m512i even, __m512i odd)
{
    return _mm512_packs_epi32(_mm512_srai_epi32(_mm512_add_epi32(even, odd), MRI_IDCT_SHIFT_1),
                              _mm512_srai_epi32(_mm512_sub_epi32(even, odd), MRI_IDCT_SHIFT_1));
}

MRI_TARGET_AVX512 static inline __m512i row_pass(__m512i x)
{
    static const int16_t k04[8] = MRI_IDCT_EVEN_04, k26[8] = MRI_IDCT_EVEN_26, k15[8] = MRI_IDCT_ODD_15,
                         k37[8] = MRI_IDCT_ODD_37;
    __m512i even = _mm512_dpwssd_epi32(_mm512_set1_epi32(MRI_IDCT_ROUND_1),
                                       _mm512_shuffle_epi8(x, SPREAD(0, 4)), lanes_of(k04));
    even = _mm512_dpwssd_epi32(even, _mm512_shuffle_epi8(x, SPREAD(2, 6)), lanes_of(k26));
    __m512i odd = _mm512_madd_epi16(_mm512_shuffle_epi8(x, SPREAD(1, 5)), lanes_of(k15));
    odd = _mm512_dpwssd_epi32(odd, _mm512_shuffle_epi8(x, SPREAD(3, 7)), lanes_of(k37));
    return row_samples(even, odd);
}

MRI_TARGET_AVX512 static inline __m512i row_pass_low(__m512i x)
{
    static const int16_t k02[8] = MRI_IDCT_EVEN_02, k13[8] = MRI_IDCT_ODD_13;
    return row_samples(_mm512_dpwssd_epi32(_mm512_set1_epi32(MRI_IDCT_ROUND_1),
                                           _mm512_shuffle_epi8(x, SPREAD(0, 2)), lanes_of(k02)),
                       _mm512_madd_epi16(_mm512_shuffle_epi8(x, SPREAD(1, 3)), lanes_of(k13)));
}

/* The upper halves of a's and b's sums, four and four in each lane: a shift by 16. */
MRI_TARGET_AVX512 static inline __m512i upper(__m512i a, __m512i b)
{
    static const _Alignas(64)
        uint16_t odd_words[32] = {1,  3,  5,  7,  33, 35, 37, 39, 9,  11, 13, 15, 41, 43, 45, 47,
                                  17, 19, 21, 23, 49, 51, 53, 55, 25, 27, 29, 31, 57, 59, 61, 63};
    return _mm512_srai_epi16(_mm512_permutex2var_epi16(a, _mm512_load_si512(odd_words), b),
                             MRI_IDCT_SHIFT_2 - 16);
}

/* Four rows of both blocks, from lanes of four rows of four samples: A 0..3, B 0..3, A 7..4, B 7..4. */
MRI_TARGET_AVX512 static inline void store_rows(__m512i packed, uint8_t *a, uint8_t *b, size_t stride)
{
    static const _Alignas(64) uint8_t apart[64] = {
        0,  1,  2,  3,  35, 34, 33, 32, 4,  5,  6,  7,  39, 38, 37, 36, 8,  9,  10, 11, 43, 42,
        41, 40, 12, 13, 14, 15, 47, 46, 45, 44, 16, 17, 18, 19, 51, 50, 49, 48, 20, 21, 22, 23,
        55, 54, 53, 52, 24, 25, 26, 27, 59, 58, 57, 56, 28, 29, 30, 31, 63, 62, 61, 60};
    const __m512i rows = _mm512_permutexvar_epi8(_mm512_load_si512(apart), packed);
    const __m128i lane[4] = {_mm512_castsi512_si128(rows), _mm512_extracti32x4_epi32(rows, 1),
                             _mm512_extracti32x4_epi32(rows, 2), _mm512_extracti32x4_epi32(rows, 3)};
    for (int i = 0; i < 4; i++) {
        uint8_t *to = (i < 2 ? a : b) + (size_t)(2 * (i & 1)) * stride;
        _mm_storel_epi64((void *)to, lane[i]);
        _mm_storel_epi64((void *)(to + stride), _mm_unpackhi_epi64(lane[i], lane[i]));
    }
}

/* The same where B is A's right neighbour: half the stores, which are what blocks of few coefficients wait
 * for. */
MRI_TARGET_AVX512 static inline void store_joined(__m512i packed, uint8_t *to, size_t stride)
{
    static const _Alignas(64) uint8_t joined[64] = {
        0,  1,  2,  3,  35, 34, 33, 32, 16, 17, 18, 19, 51, 50, 49, 48, 4,  5,  6,  7,  39, 38,
        37, 36, 20, 21, 22, 23, 55, 54, 53, 52, 8,  9,  10, 11, 43, 42, 41, 40, 24, 25, 26, 27,
        59, 58, 57, 56, 12, 13, 14, 15, 47, 46, 45, 44, 28, 29, 30, 31, 63, 62, 61, 60};
    const __m512i rows = _mm512_permutexvar_epi8(_mm512_load_si512(joined), packed);
    _mm_storeu_si128((void *)to, _mm512_castsi512_si128(rows));
    _mm_storeu_si128((void *)(to + stride), _mm512_extracti32x4_epi32(rows, 1));
    _mm_storeu_si128((void *)(to + 2 * stride), _mm512_extracti32x4_epi32(rows, 2));
    _mm_storeu_si128((void *)(to + 3 * stride), _mm512_extracti32x4_epi32(rows, 3));
}

MRI_TARGET_AVX512 static inline void columns_out(const __m512i even[4], const __m512i odd[4], uint8_t *a,
                                                 uint8_t *b, size_t stride)
{
    __m512i y[8];
    for (int i = 0; i < 4; i++) {
        y[i] = _mm512_add_epi32(even[i], odd[i]);
        y[7 - i] = _mm512_sub_epi32(even[i], odd[i]);
    }
    const __m512i y0123 = _mm512_packus_epi16(upper(y[0], y[1]), upper(y[2], y[3]));
    const __m512i y4567 = _mm512_packus_epi16(upper(y[4], y[5]), upper(y[6], y[7]));
    if (b == a + 8) {
        store_joined(y0123, a, stride);
        store_joined(y4567, a + 4 * stride, stride);
    } else {
        store_rows(y0123, a, b, stride);
        store_rows(y4567, a + 4 * stride, b + 4 * stride, stride);
    }
}

MRI_TARGET_AVX512 INLINE void two_blocks(const int16_t *a, const int16_t *b, const uint16_t *quant,
                                         uint8_t *to_a, uint8_t *to_b, size_t stride)
{
    static const int16_t k04[8] = MRI_IDCT_EVEN_04, k26[8] = MRI_IDCT_EVEN_26, k15[8] = MRI_IDCT_ODD_15,
                         k37[8] = MRI_IDCT_ODD_37;
    __m512i row[4];
    for (int j = 0; j < 4; j++) row[j] = row_pass(two_rows(a, b, j, quant));
    const __m512i left0145 = _mm512_unpacklo_epi16(row[0], row[2]),
                  right0145 = _mm512_unpackhi_epi16(row[0], row[2]);
    const __m512i left2367 = _mm512_unpacklo_epi16(row[1], row[3]),
                  right2367 = _mm512_unpackhi_epi16(row[1], row[3]);
    const __m512i p04 = _mm512_shuffle_i64x2(left0145, right0145, LANES_02),
                  p15 = _mm512_shuffle_i64x2(left0145, right0145, LANES_13);
    const __m512i p26 = _mm512_shuffle_i64x2(left2367, right2367, LANES_02),
                  p37 = _mm512_shuffle_i64x2(left2367, right2367, LANES_13);

    const __m512i round = _mm512_set1_epi32(MRI_IDCT_ROUND_2);
    const __m512i outer = _mm512_dpwssd_epi32(round, p04, pair_of(k04, 0)),
                  inner = _mm512_dpwssd_epi32(round, p04, pair_of(k04, 1));
    __m512i even[4], odd[4];
    for (int i = 0; i < 4; i++) {
        even[i] = _mm512_dpwssd_epi32(i == 0 || i == 3 ? outer : inner, p26, pair_of(k26, i));
        odd[i] = _mm512_dpwssd_epi32(_mm512_madd_epi16(p15, pair_of(k15, i)), p37, pair_of(k37, i));
    }
    columns_out(even, odd, to_a, to_b, stride);
}

MRI_TARGET_AVX512 INLINE void two_blocks_low(const int16_t *a, const int16_t *b, const uint16_t *quant,
                                             uint8_t *to_a, uint8_t *to_b, size_t stride)
{
    static const int16_t k02[8] = MRI_IDCT_EVEN_02, k13[8] = MRI_IDCT_ODD_13;
    const __m512i row01 = row_pass_low(two_rows(a, b, 0, quant)),
                  row23 = row_pass_low(two_rows(a, b, 1, quant));
    const __m512i left = _mm512_unpacklo_epi16(row01, row23), right = _mm512_unpackhi_epi16(row01, row23);
    const __m512i p02 = _mm512_shuffle_i64x2(left, right, LANES_02),
                  p13 = _mm512_shuffle_i64x2(left, right, LANES_13);
    __m512i even[4], odd[4];
    for (int i = 0; i < 4; i++) {
        even[i] = _mm512_dpwssd_epi32(_mm512_set1_epi32(MRI_IDCT_ROUND_2), p02, pair_of(k02, i));
        odd[i] = _mm512_madd_epi16(p13, pair_of(k13, i));
    }
    columns_out(even, odd, to_a, to_b, stride);
}

/* Pairs of neighbours with at least one in `which`. */
static inline uint64_t pairs(uint64_t which)
{
    const uint64_t first = (which | which >> 1) & UINT64_C(0x5555555555555555);
    return first | first << 1;
}

/* Of two neighbours both are done as the one with more coefficients: the same samples, and rows that are
 * stored together. Single blocks between others would often be mispredicted. */
MRI_TARGET_AVX512 mri_idct_sorts mri_idct_avx512_sort(const uint8_t *last, uint32_t count)
{
    const __mmask64 here = _bzhi_u64(UINT64_MAX, count);
    const __m512i ends = _mm512_maskz_loadu_epi8(here, last);
    const uint64_t more = pairs(_mm512_test_epi8_mask(ends, ends)) & here,
                   full = pairs(_mm512_cmpge_epu8_mask(ends, _mm512_set1_epi8(MRI_IDCT_LOW_COUNT))) & here;
    return (mri_idct_sorts){here & ~more, more & ~full, full};
}

struct two {
    uint32_t a, b;
};

/* The last of an odd number of blocks is done twice: the same bytes to the same place. */
MRI_TARGET_AVX512 static inline struct two next_two(uint64_t *which)
{
    const uint32_t a = mri_idct_next(which);
    return (struct two){a, *which ? mri_idct_next(which) : a};
}

MRI_TARGET_AVX512 void mri_idct_avx512(const int16_t (*coef)[MRI_JPEG_BLOCK],
                                       const uint16_t quant[MRI_JPEG_BLOCK], uint64_t which, uint8_t *dst,
                                       size_t stride)
{
    while (which) {
        const struct two two = next_two(&which);
        two_blocks(coef[two.a], coef[two.b], quant, dst + 8 * (size_t)two.a, dst + 8 * (size_t)two.b, stride);
    }
}

MRI_TARGET_AVX512 void mri_idct_avx512_low(const int16_t (*coef)[MRI_JPEG_BLOCK],
                                           const uint16_t quant[MRI_JPEG_BLOCK], uint64_t which, uint8_t *dst,
                                           size_t stride)
{
    while (which) {
        const struct two two = next_two(&which);
        two_blocks_low(coef[two.a], coef[two.b], quant, dst + 8 * (size_t)two.a, dst + 8 * (size_t)two.b,
                       stride);
    }
}

#endif
