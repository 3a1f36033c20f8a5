/* pipeline/pixels/resample_avx512.c: both passes with AVX-512: pairs of 16-bit values multiplied and
 * accumulated at once (vpdpwssd).
 *
 * Vertical: bytes of two rows are interleaved, widened, multiplied by a pair of weights; 64 columns a turn,
 * the last ones masked.
 *
 * Horizontal: sixteen results a turn, of one channel or three alike. For every pair of taps one shuffle
 * brings the two samples of all sixteen together, from 32 values or from 64 by scale; it is the same for
 * every pair, only the place where the values are loaded moves on. Reductions too coarse for that go the way
 * of AVX2. */
#include "pipeline/pixels/resample_kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define LANES        8
#define WEIGH_TARGET MRI_TARGET_AVX512
#include "pipeline/pixels/resample_weigh.h"

#define ALWAYS_INLINE MRI_TARGET_AVX512 static inline __attribute__((always_inline))
#define GROUP         16

enum { ONE_VECTOR = 100, TWO_VECTORS }; /* beside AVX2's own */

/* A group's table: the offset of its first value (64 bytes with what follows unused), a shuffle,
 * weights[pairs]. */
static uint32_t pairs_of(const mri_taps *t) { return (t->taps + 1) / 2; }
static size_t group_bytes(const mri_taps *t) { return 64 * (2 + (size_t)pairs_of(t)); }

static inline bool by_avx2(const mri_across *a) { return a->layout < ONE_VECTOR; }

/* First values of the results of a group of one channel or three; results are monotone in their place, up or
 * down. */
static inline uint32_t first_value(const mri_across *a, size_t k, size_t end)
{
    const uint32_t first = a->taps.start[k / a->channels], last = a->taps.start[(end - 1) / a->channels];
    return a->channels * (first < last ? first : last);
}

static inline uint32_t last_value(const mri_across *a, size_t k, size_t end)
{
    const uint32_t first = a->taps.start[k / a->channels], last = a->taps.start[(end - 1) / a->channels];
    return a->channels * (first < last ? last : first);
}

static inline size_t group_end(const mri_across *a, size_t k)
{
    const size_t end = (size_t)a->taps.count * a->channels;
    return k + GROUP < end ? k + GROUP : end;
}

static size_t prepare(mri_across *a)
{
    const size_t results = (size_t)a->taps.count * a->channels;
    uint32_t span = 0; /* values from the first one's first sample to the last one's second, at most */
    for (size_t k = 0; k < results; k += GROUP) {
        const size_t end = group_end(a, k);
        const uint32_t s = last_value(a, k, end) - first_value(a, k, end) + 2 * a->channels;
        if (s > span) span = s;
    }
    if (span > 64) return mri_resample_avx2.prepare(a);
    a->layout = span > 32 ? TWO_VECTORS : ONE_VECTOR;
    return group_bytes(&a->taps) * ((results + GROUP - 1) / GROUP);
}

static void make_table(const mri_across *a)
{
    if (by_avx2(a)) {
        mri_resample_avx2.make_table(a);
        return;
    }
    const mri_taps *t = &a->taps;
    const uint32_t pairs = pairs_of(t), second = a->channels << 16;
    const size_t results = (size_t)t->count * a->channels;
    uint8_t *to = a->table;
    for (size_t k = 0; k < results; k += GROUP, to += group_bytes(t)) {
        const size_t end = group_end(a, k);
        const uint32_t first = first_value(a, k, end);
        memcpy(to, &first, sizeof first);
        uint32_t result = (uint32_t)(k / a->channels), channel = (uint32_t)(k % a->channels);
        memset(to + 64, 0, group_bytes(t) - 64);
        for (size_t l = 0; l < end - k; l++) {
            const uint32_t value = a->channels * t->start[result] + channel - first;
            const uint32_t both = value * 0x10001u + second;
            memcpy(to + 64 + 4 * l, &both, 4);
            const int16_t *weight = t->weight + (size_t)result * t->stride;
            for (uint32_t p = 0; p < pairs; p++) memcpy(to + 128 + 64 * p + 4 * l, weight + 2 * p, 4);
            if (++channel == a->channels) channel = 0, result++;
        }
    }
}

/* ---- vertical ---- */

#define COLUMNS 64

struct sums {
    __m512i s0, s1, s2, s3; /* columns 0-3, 4-7, 8-11, 12-15 of every 16 */
};

ALWAYS_INLINE void add_pair(struct sums *s, __m512i a, __m512i b, const int16_t *weight)
{
    const __m512i zero = _mm512_setzero_si512(), lo = _mm512_unpacklo_epi8(a, b),
                  hi = _mm512_unpackhi_epi8(a, b);
    int32_t pair;
    memcpy(&pair, weight, sizeof pair);
    const __m512i w = _mm512_set1_epi32(pair);
    s->s0 = _mm512_dpwssd_epi32(s->s0, _mm512_unpacklo_epi8(lo, zero), w);
    s->s1 = _mm512_dpwssd_epi32(s->s1, _mm512_unpackhi_epi8(lo, zero), w);
    s->s2 = _mm512_dpwssd_epi32(s->s2, _mm512_unpacklo_epi8(hi, zero), w);
    s->s3 = _mm512_dpwssd_epi32(s->s3, _mm512_unpackhi_epi8(hi, zero), w);
}

/* 64 columns; the ones in mask exist. */
ALWAYS_INLINE void down_block(const mri_down *d, uint32_t taps, size_t k, __mmask64 mask, int16_t *row)
{
    const uint8_t *src = d->src + k;
    const __m512i half = _mm512_set1_epi32(1 << (d->shift - 1));
    const __m128i shift = _mm_cvtsi32_si128(d->shift);
    struct sums s = {half, half, half, half};
    uint32_t t = 0;
    for (; t + 2 <= taps; t += 2, src += 2 * d->stride)
        add_pair(&s, _mm512_maskz_loadu_epi8(mask, src), _mm512_maskz_loadu_epi8(mask, src + d->stride),
                 d->weight + t);
    if (t < taps) add_pair(&s, _mm512_maskz_loadu_epi8(mask, src), _mm512_setzero_si512(), d->weight + t);
    /* first: columns 0-7 of every 16, second: 8-15 */
    const __m512i first = _mm512_packs_epi32(_mm512_sra_epi32(s.s0, shift), _mm512_sra_epi32(s.s1, shift));
    const __m512i second = _mm512_packs_epi32(_mm512_sra_epi32(s.s2, shift), _mm512_sra_epi32(s.s3, shift));
    const __m512i lower = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11),
                  upper = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
    _mm512_storeu_si512(row + k, _mm512_permutex2var_epi64(first, lower, second));
    _mm512_storeu_si512(row + k + 32, _mm512_permutex2var_epi64(first, upper, second));
}

ALWAYS_INLINE void down_all(const mri_down *d, uint32_t taps, int16_t *row)
{
    size_t k = 0;
    for (; k + COLUMNS <= d->count; k += COLUMNS) down_block(d, taps, k, ~(__mmask64)0, row);
    if (k < d->count) down_block(d, taps, k, _bzhi_u64(~0ull, (uint32_t)(d->count - k)), row);
}

/* The usual numbers of taps are loops without a counter. */
MRI_TARGET_AVX512 static void down(const mri_down *job, int16_t *row)
{
    const mri_down d = *job; /* see mri_rows */
    switch (d.taps) {
    case 2: down_all(&d, 2, row); break;
    case 4: down_all(&d, 4, row); break;
    default: down_all(&d, d.taps, row);
    }
}

/* ---- horizontal ---- */

/* The sixteen sums of four rows to bytes, clipped, and of each row those in mask to their places. */
MRI_TARGET_AVX512 static inline void store_group(const __m512i sum[MRI_RESAMPLE_ROWS], __m128i shift,
                                                 uint8_t *const dst[MRI_RESAMPLE_ROWS], size_t k,
                                                 size_t count)
{
    const __m512i a = _mm512_packs_epi32(_mm512_sra_epi32(sum[0], shift), _mm512_sra_epi32(sum[1], shift));
    const __m512i b = _mm512_packs_epi32(_mm512_sra_epi32(sum[2], shift), _mm512_sra_epi32(sum[3], shift));
    const __m512i by_row = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i rows = _mm512_permutexvar_epi32(by_row, _mm512_packus_epi16(a, b));
    const __m128i r[MRI_RESAMPLE_ROWS] = {_mm512_castsi512_si128(rows), _mm512_extracti32x4_epi32(rows, 1),
                                          _mm512_extracti32x4_epi32(rows, 2),
                                          _mm512_extracti32x4_epi32(rows, 3)};
    if (count >= GROUP) {
        for (int n = 0; n < MRI_RESAMPLE_ROWS; n++) _mm_storeu_si128((void *)(dst[n] + k), r[n]);
        return;
    }
    const __mmask16 mask = (__mmask16)_bzhi_u32(~0u, (uint32_t)count);
    for (int n = 0; n < MRI_RESAMPLE_ROWS; n++) _mm_mask_storeu_epi8(dst[n] + k, mask, r[n]);
}

ALWAYS_INLINE void across_windows(const mri_across *a, const mri_rows *io, bool two, uint32_t pairs)
{
    const __m128i shift = _mm_cvtsi32_si128(a->shift);
    const __m512i half = _mm512_set1_epi32(1 << (a->shift - 1));
    const size_t results = (size_t)a->taps.count * a->channels, pair_values = 2 * (size_t)a->channels;
    const uint8_t *table = a->table;
    for (size_t k = 0; k < results; k += GROUP, table += 64 * (2 + (size_t)pairs)) {
        uint32_t first;
        memcpy(&first, table, sizeof first);
        const __m512i order = _mm512_load_si512(table + 64);
        __m512i sum[MRI_RESAMPLE_ROWS] = {half, half, half, half};
        size_t at = first;
        for (uint32_t p = 0; p < pairs; p++, at += pair_values) {
            const __m512i w = _mm512_load_si512(table + 128 + 64 * p);
            for (int r = 0; r < MRI_RESAMPLE_ROWS; r++) {
                const __m512i x = _mm512_loadu_si512(io->row[r] + at);
                const __m512i both =
                    two ? _mm512_permutex2var_epi16(x, order, _mm512_loadu_si512(io->row[r] + at + 32))
                        : _mm512_permutexvar_epi16(order, x);
                sum[r] = _mm512_dpwssd_epi32(sum[r], both, w);
            }
        }
        store_group(sum, shift, io->dst, k, results - k);
    }
}

MRI_TARGET_AVX512 static void across(const mri_across *plan, const mri_rows *rows)
{
    const mri_across a = *plan; /* see mri_rows: their addresses go no further than inlining */
    const mri_rows io = *rows;
    const uint32_t pairs = pairs_of(&a.taps);
    if (by_avx2(&a)) mri_resample_avx2.across(plan, rows);
    else if (a.layout == ONE_VECTOR && pairs == 1) across_windows(&a, &io, false, 1);
    else if (a.layout == ONE_VECTOR && pairs == 2) across_windows(&a, &io, false, 2);
    else if (a.layout == ONE_VECTOR) across_windows(&a, &io, false, pairs);
    else if (pairs == 2) across_windows(&a, &io, true, 2);
    else if (pairs == 3) across_windows(&a, &io, true, 3);
    else across_windows(&a, &io, true, pairs);
}

const mri_resample_variant mri_resample_avx512 = {weigh, prepare, make_table, down, across};
#endif
