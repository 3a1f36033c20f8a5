/* formats/image/coef_pack_avx2.c: blocks of coef_pack.c with AVX2, the same bytes. See coef_layout.h.
 *
 *   coefficients -> bytes, natural order -> zigzag order -> maps, and the values other than 0, four places at
 *   a time by a table -> bytes and nibbles
 *
 * Two passes over a few blocks at a time: the second pass loads whole vectors, which the first stores in
 * pieces. A block with an escape is packed without vectors. */
#include "formats/image/coef_layout.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "base/simd.h"

#define INLINE MRI_TARGET_AVX2 static inline __attribute__((always_inline))

enum { AT_ONCE = 8 };

/* Which of four bytes are set in a map, in order; 0x80: none. */
static const uint8_t chosen[16][4] = {
    {0x80, 0x80, 0x80, 0x80}, {0, 0x80, 0x80, 0x80}, {1, 0x80, 0x80, 0x80}, {0, 1, 0x80, 0x80},
    {2, 0x80, 0x80, 0x80},    {0, 2, 0x80, 0x80},    {1, 2, 0x80, 0x80},    {0, 1, 2, 0x80},
    {3, 0x80, 0x80, 0x80},    {0, 3, 0x80, 0x80},    {1, 3, 0x80, 0x80},    {0, 1, 3, 0x80},
    {2, 3, 0x80, 0x80},       {0, 2, 3, 0x80},       {1, 2, 3, 0x80},       {0, 1, 2, 3}};

/* to_zigzag[half][s][j]: which of the natural order's 16 bytes s goes to zigzag position 32 half + j; 0x80:
 * one of another s. */
#define FROM(n, s)           ((n) / 16 == (s) ? (n) % 16 : 0x80)
#define FROM4(a, b, c, d, s) FROM(a, s), FROM(b, s), FROM(c, s), FROM(d, s)
#define FIRST(s)                                                                                             \
    {                                                                                                        \
        FROM4(0, 1, 8, 16, s), FROM4(9, 2, 3, 10, s), FROM4(17, 24, 32, 25, s), FROM4(18, 11, 4, 5, s),      \
            FROM4(12, 19, 26, 33, s), FROM4(40, 48, 41, 34, s), FROM4(27, 20, 13, 6, s),                     \
            FROM4(7, 14, 21, 28, s)                                                                          \
    }
#define SECOND(s)                                                                                            \
    {                                                                                                        \
        FROM4(35, 42, 49, 56, s), FROM4(57, 50, 43, 36, s), FROM4(29, 22, 15, 23, s),                        \
            FROM4(30, 37, 44, 51, s), FROM4(58, 59, 52, 45, s), FROM4(38, 31, 39, 46, s),                    \
            FROM4(53, 60, 61, 54, s), FROM4(47, 55, 62, 63, s)                                               \
    }
static const uint8_t to_zigzag[2][4][32] __attribute__((aligned(64))) = {
    {FIRST(0), FIRST(1), FIRST(2), FIRST(3)}, {SECOND(0), SECOND(1), SECOND(2), SECOND(3)}};

/* A block between the passes. */
typedef struct gathered {
    uint64_t map, large; /* other than 0; outside -8..7 */
    bool huge;           /* some are outside -128..127 */
    uint8_t value[MRI_JPEG_BLOCK + 32 + 4];
} gathered;

INLINE __m256i outside(__m256i words, int least, int most)
{
    return _mm256_or_si256(_mm256_cmpgt_epi16(words, _mm256_set1_epi16((short)most)),
                           _mm256_cmpgt_epi16(_mm256_set1_epi16((short)least), words));
}

INLINE __m256i load16(const int16_t *coef) { return _mm256_loadu_si256((const void *)coef); }

/* 32 bytes of the zigzag order, from 64 of the natural one. */
INLINE __m256i in_zigzag(const __m256i source[4], int half)
{
    __m256i all = _mm256_setzero_si256();
    for (int s = 0; s < 4; s++)
        all = _mm256_or_si256(
            all, _mm256_shuffle_epi8(source[s], _mm256_load_si256((const void *)to_zigzag[half][s])));
    return all;
}

INLINE uint64_t bits_of(__m256i first, __m256i second)
{
    return (uint64_t)(uint32_t)_mm256_movemask_epi8(second) << 32 | (uint32_t)_mm256_movemask_epi8(first);
}

INLINE void gather(const int16_t *coef, gathered *g)
{
    const __m256i no_dc = _mm256_blend_epi16(_mm256_setzero_si256(), load16(coef), 0xfe);
    const __m256i w[4] = {_mm256_blend_epi32(no_dc, load16(coef), 0xf0), load16(coef + 16), load16(coef + 32),
                          load16(coef + 48)};
    const __m256i beyond =
        _mm256_or_si256(_mm256_or_si256(outside(w[0], -128, 127), outside(w[1], -128, 127)),
                        _mm256_or_si256(outside(w[2], -128, 127), outside(w[3], -128, 127)));
    g->huge = !_mm256_testz_si256(beyond, beyond);
    const __m256i upper = _mm256_permute4x64_epi64(_mm256_packs_epi16(w[0], w[1]), 0xd8),
                  lower = _mm256_permute4x64_epi64(_mm256_packs_epi16(w[2], w[3]), 0xd8);
    const __m256i source[4] = {_mm256_permute4x64_epi64(upper, 0x44), _mm256_permute4x64_epi64(upper, 0xee),
                               _mm256_permute4x64_epi64(lower, 0x44), _mm256_permute4x64_epi64(lower, 0xee)};
    const __m256i z[2] = {in_zigzag(source, 0), in_zigzag(source, 1)}, zero = _mm256_setzero_si256(),
                  seven = _mm256_set1_epi8(7), less = _mm256_set1_epi8(-8);
    _Alignas(32) uint8_t all[MRI_JPEG_BLOCK];
    for (int h = 0; h < 2; h++) _mm256_store_si256((void *)(all + 32 * h), z[h]);
    g->map = ~bits_of(_mm256_cmpeq_epi8(z[0], zero), _mm256_cmpeq_epi8(z[1], zero));
    g->large = bits_of(_mm256_or_si256(_mm256_cmpgt_epi8(z[0], seven), _mm256_cmpgt_epi8(less, z[0])),
                       _mm256_or_si256(_mm256_cmpgt_epi8(z[1], seven), _mm256_cmpgt_epi8(less, z[1])));
    uint8_t *to = g->value;
    uint64_t left = g->map; /* to the end: where it ends would often be mispredicted */
    for (const uint8_t *from = all; from < all + MRI_JPEG_BLOCK; left >>= 4, from += 4) {
        const int four = _mm_cvtsi128_si32(_mm_shuffle_epi8(
            _mm_cvtsi32_si128((int)mri_le32(from)), _mm_cvtsi32_si128((int)mri_le32(chosen[left & 15]))));
        memcpy(to, &four, sizeof four);
        to += _mm_popcnt_u64(left & 15);
    }
    memset(to, 0, 4); /* a last half byte that is not used */
}

INLINE unsigned tier_for(unsigned end)
{
    const __m128i ends = _mm_loadu_si128((const void *)mri_coef_tier_end);
    return (unsigned)_mm_popcnt_u32(
        (unsigned)_mm_movemask_epi8(_mm_cmpgt_epi8(_mm_set1_epi8((char)end), ends)));
}

/* The low halves of 32 bytes, two in one. */
INLINE __m128i nibbles_of(const uint8_t *value)
{
    const __m256i low = _mm256_and_si256(_mm256_loadu_si256((const void *)value), _mm256_set1_epi8(15)),
                  pairs = _mm256_maddubs_epi16(low, _mm256_set1_epi16(0x1001));
    return _mm256_castsi256_si128(_mm256_permute4x64_epi64(_mm256_packus_epi16(pairs, pairs), 0x08));
}

/* As mri_coef_block_put(); up to MRI_COEF_PUT_SLACK bytes may be overwritten. */
INLINE size_t put(const gathered *g, uint8_t *to)
{
    if (g->map == 0) return 0;
    const unsigned map_bytes = (unsigned)(63 - _lzcnt_u64(g->map)) / 8 + 1,
                   tier = tier_for((unsigned)(64 - _lzcnt_u64(g->large | 1)));
    const size_t bytes = (size_t)_mm_popcnt_u64(g->map & mri_coef_tier[tier]),
                 nibbles = (size_t)_mm_popcnt_u64(g->map) - bytes;
    uint8_t *at = to + 1 + map_bytes;
    to[0] = (uint8_t)((map_bytes - 1) | tier << MRI_COEF_TIER_SHIFT);
    memcpy(to + 1, &g->map, sizeof g->map);
    memcpy(at, g->value, MRI_JPEG_BLOCK);
    at += bytes;
    _mm_storeu_si128((void *)at, nibbles_of(g->value + bytes));
    if (nibbles > 32) _mm_storeu_si128((void *)(at + 16), nibbles_of(g->value + bytes + 32));
    return (size_t)(at - to) + (nibbles + 1) / 2;
}

MRI_TARGET_AVX2 size_t mri_coef_blocks_put_avx2(const int16_t (*row)[MRI_JPEG_BLOCK], uint32_t blocks,
                                                uint8_t *lengths, uint8_t *dc, uint8_t *to, bool *beyond)
{
    gathered g[AT_ONCE] = {{0}};
    uint8_t *at = to;
    for (uint32_t x = 0; x < blocks; x += AT_ONCE) {
        const uint32_t count = blocks - x < AT_ONCE ? blocks - x : AT_ONCE;
        for (uint32_t k = 0; k < count; k++) gather(row[x + k], &g[k]);
        for (uint32_t k = 0; k < count; k++) {
            const size_t length = g[k].huge ? mri_coef_block_put(row[x + k], at) : put(&g[k], at);
            if (g[k].huge) *beyond |= mri_coef_is_beyond(row[x + k]);
            lengths[x + k] = (uint8_t)length;
            mri_put_le16(dc + 2 * (size_t)(x + k), (uint16_t)row[x + k][0]);
            at += length;
        }
    }
    return (size_t)(at - to);
}

#endif
