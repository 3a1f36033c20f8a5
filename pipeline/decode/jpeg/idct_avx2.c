/* pipeline/decode/jpeg/idct_avx2.c: two blocks at a time, one in each 128-bit lane. See idct.c for what is
 * computed.
 *
 *   load      row v of block A and of block B
 *   rows      inside its lane, each pair of inputs is spread and multiplied by the weights of samples 0..3:
 *             no transposition
 *   between   rows v and v + 4 word by word (unpack): samples 0..3, the left half, and 7..4, the right half
 *   columns   pairs of rows times the weights of one sample, each half by itself
 *   store     a byte shuffle puts the samples in order
 *
 * One block in two lanes took a fifth more time: its halves have to cross lanes twice. */
#include "pipeline/decode/jpeg/idct_variants.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define INLINE                                                                                               \
    __attribute__((always_inline)) static inline /* so that weights stay in registers from block to block */

/* Two words of each lane next to each other, four times. */
#define SPREAD(a, b) _mm256_set1_epi32((2 * (a)) | (2 * (a) + 1) << 8 | (2 * (b)) << 16 | (2 * (b) + 1) << 24)

struct sums {
    __m256i y[8];
};

MRI_TARGET_AVX2 static inline __m256i lanes_of(const int16_t words[8])
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)words));
}

/* The weights of sample i. */
MRI_TARGET_AVX2 static inline __m256i pair_of(const int16_t words[8], int i)
{
    int32_t pair;
    memcpy(&pair, words + 2 * i, sizeof pair);
    return _mm256_set1_epi32(pair);
}

MRI_TARGET_AVX2 static inline __m256i row_of(const int16_t *a, const int16_t *b, int v, const uint16_t *quant)
{
    const __m256i row =
        _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const void *)(a + 8 * v))),
                                _mm_loadu_si128((const void *)(b + 8 * v)), 1);
    return _mm256_mullo_epi16(row,
                              _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)(quant + 8 * v))));
}

/* Words 0..3 of a lane: samples 0..3; words 4..7: samples 7..4. */
MRI_TARGET_AVX2 static inline __m256i row_samples(__m256i even, __m256i odd)
{
    even = _mm256_add_epi32(even, _mm256_set1_epi32(MRI_IDCT_ROUND_1));
    return _mm256_packs_epi32(_mm256_srai_epi32(_mm256_add_epi32(even, odd), MRI_IDCT_SHIFT_1),
                              _mm256_srai_epi32(_mm256_sub_epi32(even, odd), MRI_IDCT_SHIFT_1));
}

MRI_TARGET_AVX2 static inline __m256i row_pass(__m256i x)
{
    static const int16_t k04[8] = MRI_IDCT_EVEN_04, k26[8] = MRI_IDCT_EVEN_26, k15[8] = MRI_IDCT_ODD_15,
                         k37[8] = MRI_IDCT_ODD_37;
    return row_samples(
        _mm256_add_epi32(_mm256_madd_epi16(_mm256_shuffle_epi8(x, SPREAD(0, 4)), lanes_of(k04)),
                         _mm256_madd_epi16(_mm256_shuffle_epi8(x, SPREAD(2, 6)), lanes_of(k26))),
        _mm256_add_epi32(_mm256_madd_epi16(_mm256_shuffle_epi8(x, SPREAD(1, 5)), lanes_of(k15)),
                         _mm256_madd_epi16(_mm256_shuffle_epi8(x, SPREAD(3, 7)), lanes_of(k37))));
}

MRI_TARGET_AVX2 static inline __m256i row_pass_low(__m256i x)
{
    static const int16_t k02[8] = MRI_IDCT_EVEN_02, k13[8] = MRI_IDCT_ODD_13;
    return row_samples(_mm256_madd_epi16(_mm256_shuffle_epi8(x, SPREAD(0, 2)), lanes_of(k02)),
                       _mm256_madd_epi16(_mm256_shuffle_epi8(x, SPREAD(1, 3)), lanes_of(k13)));
}

MRI_TARGET_AVX2 static inline struct sums sums_of(const __m256i even[4], const __m256i odd[4])
{
    struct sums s;
    for (int i = 0; i < 4; i++) {
        s.y[i] = _mm256_add_epi32(even[i], odd[i]);
        s.y[7 - i] = _mm256_sub_epi32(even[i], odd[i]);
    }
    return s;
}

MRI_TARGET_AVX2 static inline struct sums column_pass(__m256i p04, __m256i p15, __m256i p26, __m256i p37)
{
    static const int16_t k04[8] = MRI_IDCT_EVEN_04, k26[8] = MRI_IDCT_EVEN_26, k15[8] = MRI_IDCT_ODD_15,
                         k37[8] = MRI_IDCT_ODD_37;
    const __m256i round = _mm256_set1_epi32(MRI_IDCT_ROUND_2);
    const __m256i outer = _mm256_add_epi32(_mm256_madd_epi16(p04, pair_of(k04, 0)), round);
    const __m256i inner = _mm256_add_epi32(_mm256_madd_epi16(p04, pair_of(k04, 1)), round);
    const __m256i outer26 = _mm256_madd_epi16(p26, pair_of(k26, 0)),
                  inner26 = _mm256_madd_epi16(p26, pair_of(k26, 1));
    const __m256i even[4] = {_mm256_add_epi32(outer, outer26), _mm256_add_epi32(inner, inner26),
                             _mm256_sub_epi32(inner, inner26), _mm256_sub_epi32(outer, outer26)};
    __m256i odd[4];
    for (int i = 0; i < 4; i++)
        odd[i] = _mm256_add_epi32(_mm256_madd_epi16(p15, pair_of(k15, i)),
                                  _mm256_madd_epi16(p37, pair_of(k37, i)));
    return sums_of(even, odd);
}

MRI_TARGET_AVX2 static inline struct sums column_pass_low(__m256i p02, __m256i p13)
{
    static const int16_t k02[8] = MRI_IDCT_EVEN_02, k13[8] = MRI_IDCT_ODD_13;
    __m256i even[4], odd[4];
    for (int i = 0; i < 4; i++) {
        even[i] =
            _mm256_add_epi32(_mm256_madd_epi16(p02, pair_of(k02, i)), _mm256_set1_epi32(MRI_IDCT_ROUND_2));
        odd[i] = _mm256_madd_epi16(p13, pair_of(k13, i));
    }
    return sums_of(even, odd);
}

/* The upper halves of the sums, a shift by 16, left and right in turn: samples 0 7 1 6 2 5 3 4. Cheaper than
 * packing. */
MRI_TARGET_AVX2 static inline __m256i narrowed(__m256i left, __m256i right)
{
    return _mm256_srai_epi16(_mm256_blend_epi16(_mm256_srli_epi32(left, 16), right, 0xaa),
                             MRI_IDCT_SHIFT_2 - 16);
}

/* Rows y and y + 1 of both blocks. */
MRI_TARGET_AVX2 static inline void store_rows(__m256i upper, __m256i lower, uint8_t *a, uint8_t *b,
                                              size_t stride)
{
    const __m128i order = _mm_setr_epi8(0, 2, 4, 6, 7, 5, 3, 1, 8, 10, 12, 14, 15, 13, 11, 9);
    const __m256i rows =
        _mm256_shuffle_epi8(_mm256_packus_epi16(upper, lower), _mm256_broadcastsi128_si256(order));
    if (b == a + 8) {
        const __m256i joined = _mm256_permute4x64_epi64(rows, 0xd8);
        _mm_storeu_si128((void *)a, _mm256_castsi256_si128(joined));
        _mm_storeu_si128((void *)(a + stride), _mm256_extracti128_si256(joined, 1));
    } else {
        const __m128i to_a = _mm256_castsi256_si128(rows), to_b = _mm256_extracti128_si256(rows, 1);
        _mm_storel_epi64((void *)a, to_a);
        _mm_storel_epi64((void *)(a + stride), _mm_unpackhi_epi64(to_a, to_a));
        _mm_storel_epi64((void *)b, to_b);
        _mm_storel_epi64((void *)(b + stride), _mm_unpackhi_epi64(to_b, to_b));
    }
}

MRI_TARGET_AVX2 static inline void columns_out(const struct sums *left, const struct sums *right, uint8_t *a,
                                               uint8_t *b, size_t stride)
{
    for (int i = 0; i < 8; i += 2)
        store_rows(narrowed(left->y[i], right->y[i]), narrowed(left->y[i + 1], right->y[i + 1]),
                   a + (size_t)i * stride, b + (size_t)i * stride, stride);
}

/* Rows v and v + 4 of both blocks, done and side by side: for samples 0..3, and for 7..4. */
struct halves {
    __m256i left, right;
};

MRI_TARGET_AVX2 static inline struct halves row_pair(const int16_t *a, const int16_t *b, int v,
                                                     const uint16_t *quant)
{
    const __m256i upper = row_pass(row_of(a, b, v, quant)), lower = row_pass(row_of(a, b, v + 4, quant));
    return (struct halves){_mm256_unpacklo_epi16(upper, lower), _mm256_unpackhi_epi16(upper, lower)};
}

MRI_TARGET_AVX2 INLINE void two_blocks(const int16_t *a, const int16_t *b, const uint16_t *quant,
                                       uint8_t *to_a, uint8_t *to_b, size_t stride)
{
    const struct halves h04 = row_pair(a, b, 0, quant), h15 = row_pair(a, b, 1, quant);
    const struct halves h26 = row_pair(a, b, 2, quant), h37 = row_pair(a, b, 3, quant);
    const struct sums l = column_pass(h04.left, h15.left, h26.left, h37.left);
    const struct sums r = column_pass(h04.right, h15.right, h26.right, h37.right);
    columns_out(&l, &r, to_a, to_b, stride);
}

MRI_TARGET_AVX2 INLINE void two_blocks_low(const int16_t *a, const int16_t *b, const uint16_t *quant,
                                           uint8_t *to_a, uint8_t *to_b, size_t stride)
{
    const __m256i row0 = row_pass_low(row_of(a, b, 0, quant)), row1 = row_pass_low(row_of(a, b, 1, quant));
    const __m256i row2 = row_pass_low(row_of(a, b, 2, quant)), row3 = row_pass_low(row_of(a, b, 3, quant));
    const struct sums l =
        column_pass_low(_mm256_unpacklo_epi16(row0, row2), _mm256_unpacklo_epi16(row1, row3));
    const struct sums r =
        column_pass_low(_mm256_unpackhi_epi16(row0, row2), _mm256_unpackhi_epi16(row1, row3));
    columns_out(&l, &r, to_a, to_b, stride);
}

MRI_TARGET_AVX2 mri_idct_sorts mri_idct_avx2_sort(const uint8_t *last, uint32_t count)
{
    mri_idct_sorts by = {0, 0, 0};
    uint32_t at = 0;
    for (; at + 32 <= count; at += 32) {
        const __m256i ends = _mm256_loadu_si256((const void *)(last + at)),
                      least = _mm256_set1_epi8(MRI_IDCT_LOW_COUNT);
        const uint32_t flat = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(ends, _mm256_setzero_si256()));
        const uint32_t full =
            (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_max_epu8(ends, least), ends));
        by.flat |= (uint64_t)flat << at;
        by.low |= (uint64_t) ~(flat | full) << at;
        by.full |= (uint64_t)full << at;
    }
    if (at == MRI_IDCT_CHUNK) return by;
    const mri_idct_sorts rest = mri_idct_plain_sort(last + at, count - at);
    return (mri_idct_sorts){by.flat | rest.flat << at, by.low | rest.low << at, by.full | rest.full << at};
}

struct two {
    uint32_t a, b;
};

/* The last of an odd number of blocks is done twice: the same bytes to the same place. */
MRI_TARGET_AVX2 static inline struct two next_two(uint64_t *which)
{
    const uint32_t a = mri_idct_next(which);
    return (struct two){a, *which ? mri_idct_next(which) : a};
}

MRI_TARGET_AVX2 void mri_idct_avx2(const int16_t (*coef)[MRI_JPEG_BLOCK],
                                   const uint16_t quant[MRI_JPEG_BLOCK], uint64_t which, uint8_t *dst,
                                   size_t stride)
{
    while (which) {
        const struct two two = next_two(&which);
        two_blocks(coef[two.a], coef[two.b], quant, dst + 8 * (size_t)two.a, dst + 8 * (size_t)two.b, stride);
    }
}

MRI_TARGET_AVX2 void mri_idct_avx2_low(const int16_t (*coef)[MRI_JPEG_BLOCK],
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
