/* formats/image/coef_avx2.c: coef_rows.c with AVX2. See coef_layout.h.
 *
 * There is no expanding move, so a table says for each byte of the map how eight neighbouring values spread,
 * and where each eight begin is a running sum of bit counts, made in one multiplication:
 *
 *   bytes, nibbles -> values, one byte each -> 8 x (8 values, table of the map's byte) -> zigzag order ->
 *   natural order
 *
 * Two passes over a few blocks at a time: the second reads values where the first wrote them with other
 * boundaries, and loads that straddle stores still on their way would wait for them. */
#include "formats/image/coef_layout.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "base/simd.h"

enum {
    AT_ONCE = 8,
    VALUES = 64 + 64
}; /* 64 bytes are copied, then 64 nibbles follow the last of them that counts */

/* spread[m][j]: which of eight values goes to place j under map m; 0x80: none. */
#define N(m, j)  ((m) >> (j)&1)
#define C2(m, j) (N(m, j) + N(m, (j) + 1))
#define RANK(m, j)                                                                                           \
    ((j) == 0   ? 0                                                                                          \
     : (j) == 1 ? N(m, 0)                                                                                    \
     : (j) == 2 ? C2(m, 0)                                                                                   \
     : (j) == 3 ? C2(m, 0) + N(m, 2)                                                                         \
     : (j) == 4 ? C2(m, 0) + C2(m, 2)                                                                        \
     : (j) == 5 ? C2(m, 0) + C2(m, 2) + N(m, 4)                                                              \
     : (j) == 6 ? C2(m, 0) + C2(m, 2) + C2(m, 4)                                                             \
                : C2(m, 0) + C2(m, 2) + C2(m, 4) + N(m, 6))
#define PLACE(m, j) (N(m, j) ? RANK(m, j) : 0x80)
#define ROW(m)                                                                                               \
    {                                                                                                        \
        PLACE(m, 0), PLACE(m, 1), PLACE(m, 2), PLACE(m, 3), PLACE(m, 4), PLACE(m, 5), PLACE(m, 6),           \
            PLACE(m, 7)                                                                                      \
    }
#define ROWS4(m)  ROW(m), ROW((m) + 1), ROW((m) + 2), ROW((m) + 3)
#define ROWS16(m) ROWS4(m), ROWS4((m) + 4), ROWS4((m) + 8), ROWS4((m) + 12)
#define ROWS64(m) ROWS16(m), ROWS16((m) + 16), ROWS16((m) + 32), ROWS16((m) + 48)
static const uint8_t spread[256][8]
    __attribute__((aligned(64))) = {ROWS64(0), ROWS64(64), ROWS64(128), ROWS64(192)};

/* to_natural[half][s][j]: which byte of the zigzag order's 16 bytes s goes to place 32 half + j; 0x80: one of
 * another s. */
#define FROM(z, s)           ((z) / 16 == (s) ? (z) % 16 : 0x80)
#define FROM4(a, b, c, d, s) FROM(a, s), FROM(b, s), FROM(c, s), FROM(d, s)
#define UPPER(s)                                                                                             \
    {                                                                                                        \
        FROM4(0, 1, 5, 6, s), FROM4(14, 15, 27, 28, s), FROM4(2, 4, 7, 13, s), FROM4(16, 26, 29, 42, s),     \
            FROM4(3, 8, 12, 17, s), FROM4(25, 30, 41, 43, s), FROM4(9, 11, 18, 24, s),                       \
            FROM4(31, 40, 44, 53, s)                                                                         \
    }
#define LOWER(s)                                                                                             \
    {                                                                                                        \
        FROM4(10, 19, 23, 32, s), FROM4(39, 45, 52, 54, s), FROM4(20, 22, 33, 38, s),                        \
            FROM4(46, 51, 55, 60, s), FROM4(21, 34, 37, 47, s), FROM4(50, 56, 59, 61, s),                    \
            FROM4(35, 36, 48, 49, s), FROM4(57, 58, 62, 63, s)                                               \
    }
static const uint8_t to_natural[2][4][32] __attribute__((aligned(64))) = {
    {UPPER(0), UPPER(1), UPPER(2), UPPER(3)}, {LOWER(0), LOWER(1), LOWER(2), LOWER(3)}};

typedef struct values {
    uint64_t map;
    uint8_t at[VALUES];
} values;

/* 32 nibbles at p to 32 signed bytes. */
MRI_TARGET_AVX2 static inline __m256i nibbles32(const uint8_t *p)
{
    const __m256i sign = _mm256_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3,
                                          4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1);
    const __m256i pairs = _mm256_cvtepu8_epi16(_mm_loadu_si128((const void *)p));
    return _mm256_shuffle_epi8(
        sign, _mm256_and_si256(_mm256_or_si256(pairs, _mm256_slli_epi16(pairs, 4)), _mm256_set1_epi8(15)));
}

/* Values and map of the block at p; returns the bytes it takes, escapes not counted. */
MRI_TARGET_AVX2 static inline size_t collect(const uint8_t *p, values *v)
{
    const unsigned mode = p[0], map_bytes = (mode & MRI_COEF_MAP_BYTES) + 1,
                   tier = mode >> MRI_COEF_TIER_SHIFT & MRI_COEF_TIER;
    const uint64_t map = _bzhi_u64(mri_le64(p + 1), 8 * map_bytes), wide = map & mri_coef_tier[tier];
    const uint8_t *at = p + 1 + map_bytes;
    const size_t bytes = (size_t)_mm_popcnt_u64(wide), nibbles = (size_t)_mm_popcnt_u64(map ^ wide);
    v->map = map;
    _mm256_storeu_si256((void *)v->at, _mm256_loadu_si256((const void *)at));
    _mm256_storeu_si256((void *)(v->at + 32), _mm256_loadu_si256((const void *)(at + 32)));
    at += bytes;
    _mm256_storeu_si256((void *)(v->at + bytes), nibbles32(at));
    _mm256_storeu_si256((void *)(v->at + bytes + 32), nibbles32(at + 16));
    return 1 + map_bytes + bytes + (nibbles + 1) / 2;
}

/* Zigzag positions 16 s .. 16 s + 15. */
MRI_TARGET_AVX2 static inline __m128i sixteen(const values *v, uint64_t before, int s)
{
    const unsigned m0 = v->map >> 16 * s & 255, m1 = v->map >> (16 * s + 8) & 255;
    const size_t a0 = before >> 16 * s & 255, a1 = before >> (16 * s + 8) & 255;
    const __m128i lo = _mm_shuffle_epi8(_mm_loadl_epi64((const void *)(v->at + a0)),
                                        _mm_loadl_epi64((const void *)spread[m0]));
    const __m128i hi = _mm_shuffle_epi8(_mm_loadl_epi64((const void *)(v->at + a1)),
                                        _mm_loadl_epi64((const void *)spread[m1]));
    return _mm_unpacklo_epi64(lo, hi);
}

MRI_TARGET_AVX2 static inline __m256i place(__m128i zigzag, const uint8_t from[32])
{
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(zigzag), _mm256_load_si256((const void *)from));
}

MRI_TARGET_AVX2 static inline void store32(int16_t *to, __m256i bytes)
{
    _mm256_store_si256((void *)to, _mm256_cvtepi8_epi16(_mm256_castsi256_si128(bytes)));
    _mm256_store_si256((void *)(to + 16), _mm256_cvtepi8_epi16(_mm256_extracti128_si256(bytes, 1)));
}

MRI_TARGET_AVX2 static inline void expand(const values *v, int16_t *coef)
{
    uint64_t counts = v->map - (v->map >> 1 & 0x5555555555555555u); /* set bits of each byte of the map */
    counts = (counts & 0x3333333333333333u) + (counts >> 2 & 0x3333333333333333u);
    counts = (counts + (counts >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    const uint64_t before = counts * 0x0101010101010101u - counts; /* of the bytes below it, at most 56 */
    __m128i zigzag = sixteen(v, before, 0);
    __m256i upper = place(zigzag, to_natural[0][0]), lower = place(zigzag, to_natural[1][0]);
    if (v->map >> 16) {
        for (int s = 1; s < 4; s++) {
            zigzag = sixteen(v, before, s);
            upper = _mm256_or_si256(upper, place(zigzag, to_natural[0][s]));
            lower = _mm256_or_si256(lower, place(zigzag, to_natural[1][s]));
        }
    }
    store32(coef, upper);
    store32(coef + 32, lower);
}

/* One block after its expansion: the coefficients that did not fit into nibbles. */
static inline uint64_t escapes(const uint8_t *p, size_t length, size_t *taken, uint64_t map, int16_t *coef)
{
    size_t more;
    const unsigned tier = p[0] >> MRI_COEF_TIER_SHIFT & MRI_COEF_TIER;
    const uint64_t wrong =
        mri_coef_escapes(p + *taken, length > *taken ? length - *taken : 0, map, tier, coef, &more);
    *taken += more;
    return wrong;
}

MRI_TARGET_AVX2 uint64_t mri_coef_run_avx2(const mri_coef_run *run)
{
    values v[AT_ONCE];
    size_t taken[AT_ONCE];
    const uint8_t *p = run->data;
    uint64_t wrong = 0;
    for (uint32_t from = 0; from < run->count; from += AT_ONCE) {
        const uint32_t count = run->count - from < AT_ONCE ? run->count - from : AT_ONCE;
        const uint8_t *const lengths = run->lengths + from, *q = p;
        for (uint32_t i = 0; i < count; q += lengths[i++]) {
            v[i].map = 0;
            if (lengths[i]) taken[i] = collect(q, &v[i]);
        }
        for (uint32_t i = 0; i < count; p += lengths[i++]) {
            int16_t *coef = run->coef[from + i];
            run->last[from + i] = (uint8_t)(63 - _lzcnt_u64(v[i].map | 1));
            if (lengths[i] == 0) {
                for (int k = 0; k < 4; k++)
                    _mm256_store_si256((void *)(coef + 16 * k), _mm256_setzero_si256());
            } else {
                expand(&v[i], coef);
                if (__builtin_expect(p[0] & MRI_COEF_ESCAPE, 0))
                    wrong |= escapes(p, lengths[i], &taken[i], v[i].map, coef);
                wrong |= (v[i].map & 1) | (taken[i] ^ lengths[i]);
            }
            coef[0] = (int16_t)mri_le16(run->dc + 2 * (size_t)(from + i));
        }
    }
    return wrong;
}

#endif
