/* pipeline/pixels/resample_avx2.c: both passes with AVX2: pairs of 16-bit values multiplied and added at once
 * (vpmaddwd).
 *
 * Vertical: bytes of two rows are interleaved, widened, multiplied by a pair of weights; 32 columns a turn.
 *
 * Horizontal, three channels: a 128-bit half holds a result pixel of a row (three sums and one that is
 * dropped), a vector two rows. Eight values from the place of sample t on are samples t and t + 1; one fixed
 * shuffle pairs their channels.
 *
 * Horizontal, one channel: a half holds four results. Two ways, by scale:
 *   NEAR    all four find samples t and t + 1 among the eight values from the first one's sample t on: one
 *           shuffle, which is the same for every t
 *   APART   otherwise: eight neighbouring samples of one result a turn, the four sums of each added up at the
 *           end */
#include "pipeline/pixels/resample_kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define LANES        4
#define WEIGH_TARGET MRI_TARGET_AVX2
#include "pipeline/pixels/resample_weigh.h"

#define ALWAYS_INLINE MRI_TARGET_AVX2 static inline __attribute__((always_inline))
#define HALF          4 /* results in a 128-bit half, one channel */
#define GROUP         8 /* and in a vector */

enum { NEAR, APART, PIXELS };

static inline uint32_t min_u32(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* ---- tables ---- */

/* NEAR: of a group: two offsets (one for each half; 32 bytes with what follows unused), a shuffle,
 * weights[pairs]. APART: of a group: for each of 4 results of a half, for each turn: weights of the result of
 * the lower half, of the upper half. */
static uint32_t pairs_of(const mri_taps *t) { return (t->taps + 1) / 2; }
static uint32_t turns_of(const mri_taps *t) { return t->stride / MRI_TAPS_STEP; }

static size_t group_bytes(const mri_across *a)
{
    return a->layout == NEAR ? 64 + 32 * (size_t)pairs_of(&a->taps) : 32 * HALF * (size_t)turns_of(&a->taps);
}

/* Results past the last are the last again. */
static inline uint32_t result_at(const mri_taps *t, uint32_t k) { return min_u32(k, t->count - 1); }

/* Starts rise from result to result, or fall, in a mirror. */
static uint32_t first_start(const mri_taps *t, uint32_t k)
{
    return min_u32(t->start[result_at(t, k)], t->start[result_at(t, k + HALF - 1)]);
}

static bool is_near(const mri_taps *t)
{
    for (uint32_t k = 0; k < t->count; k += HALF) {
        const uint32_t a = t->start[k], b = t->start[result_at(t, k + HALF - 1)];
        if ((a < b ? b - a : a - b) + 2 > 8) return false;
    }
    return true;
}

static size_t prepare(mri_across *a)
{
    a->layout = a->channels == 3 ? PIXELS : is_near(&a->taps) ? NEAR : APART;
    if (a->layout == PIXELS) return 0;
    return group_bytes(a) * ((a->taps.count + GROUP - 1) / GROUP);
}

static void make_near(const mri_taps *t, uint32_t k, uint8_t *to)
{
    uint32_t first[2];
    for (uint32_t h = 0; h < 2; h++) first[h] = first_start(t, k + h * HALF);
    memcpy(to, first, sizeof first);
    for (uint32_t l = 0; l < GROUP; l++) {
        const uint32_t at = result_at(t, k + l), offset = 2 * (t->start[at] - first[l / HALF]);
        const uint32_t bytes = offset * 0x01010101u + 0x03020100u;
        memcpy(to + 32 + 4 * l, &bytes, 4);
        const int16_t *weight = t->weight + (size_t)at * t->stride;
        for (uint32_t p = 0; p < pairs_of(t); p++) memcpy(to + 64 + 32 * p + 4 * l, weight + 2 * p, 4);
    }
}

static void make_apart(const mri_taps *t, uint32_t k, uint8_t *to)
{
    for (uint32_t l = 0; l < HALF; l++)
        for (uint32_t turn = 0; turn < turns_of(t); turn++)
            for (uint32_t h = 0; h < 2; h++, to += 16) {
                const size_t at = result_at(t, k + h * HALF + l);
                memcpy(to, t->weight + at * t->stride + turn * MRI_TAPS_STEP, 16);
            }
}

static void make_table(const mri_across *a)
{
    uint8_t *to = a->table;
    for (uint32_t k = 0; k < a->taps.count; k += GROUP, to += group_bytes(a)) {
        if (a->layout == NEAR) make_near(&a->taps, k, to);
        else make_apart(&a->taps, k, to);
    }
}

/* ---- vertical ---- */

#define COLUMNS 32

struct sums {
    __m256i s0, s1, s2, s3; /* columns 0-3, 4-7, 8-11, 12-15 of every 16 */
};

ALWAYS_INLINE void add_pair(struct sums *s, __m256i a, __m256i b, const int16_t *weight)
{
    const __m256i zero = _mm256_setzero_si256(), lo = _mm256_unpacklo_epi8(a, b),
                  hi = _mm256_unpackhi_epi8(a, b);
    int32_t pair;
    memcpy(&pair, weight, sizeof pair);
    const __m256i w = _mm256_set1_epi32(pair);
    s->s0 = _mm256_add_epi32(s->s0, _mm256_madd_epi16(_mm256_unpacklo_epi8(lo, zero), w));
    s->s1 = _mm256_add_epi32(s->s1, _mm256_madd_epi16(_mm256_unpackhi_epi8(lo, zero), w));
    s->s2 = _mm256_add_epi32(s->s2, _mm256_madd_epi16(_mm256_unpacklo_epi8(hi, zero), w));
    s->s3 = _mm256_add_epi32(s->s3, _mm256_madd_epi16(_mm256_unpackhi_epi8(hi, zero), w));
}

/* 32 columns. */
ALWAYS_INLINE void down_block(const mri_down *d, uint32_t taps, size_t k, int16_t *row)
{
    const uint8_t *src = d->src + k;
    const __m256i half = _mm256_set1_epi32(1 << (d->shift - 1));
    const __m128i shift = _mm_cvtsi32_si128(d->shift);
    struct sums s = {half, half, half, half};
    uint32_t t = 0;
    for (; t + 2 <= taps; t += 2, src += 2 * d->stride)
        add_pair(&s, _mm256_loadu_si256((const void *)src),
                 _mm256_loadu_si256((const void *)(src + d->stride)), d->weight + t);
    if (t < taps) add_pair(&s, _mm256_loadu_si256((const void *)src), _mm256_setzero_si256(), d->weight + t);
    const __m256i first = _mm256_packs_epi32(_mm256_sra_epi32(s.s0, shift), _mm256_sra_epi32(s.s1, shift));
    const __m256i second = _mm256_packs_epi32(_mm256_sra_epi32(s.s2, shift), _mm256_sra_epi32(s.s3, shift));
    _mm256_storeu_si256((void *)(row + k), _mm256_permute2x128_si256(first, second, 0x20));
    _mm256_storeu_si256((void *)(row + k + 16), _mm256_permute2x128_si256(first, second, 0x31));
}

ALWAYS_INLINE void down_all(const mri_down *d, uint32_t taps, int16_t *row)
{
    for (size_t k = 0; k + COLUMNS <= d->count; k += COLUMNS) down_block(d, taps, k, row);
    if (d->count % COLUMNS)
        down_block(d, taps, d->count - COLUMNS, row); /* some columns again: nothing is read past the row */
}

/* The usual numbers of taps are loops without a counter. */
MRI_TARGET_AVX2 static void down(const mri_down *job, int16_t *row)
{
    const mri_down d = *job; /* see mri_rows */
    if (d.count < COLUMNS) mri_resample_plain.down(job, row);
    else if (d.taps == 2) down_all(&d, 2, row);
    else if (d.taps == 4) down_all(&d, 4, row);
    else down_all(&d, d.taps, row);
}

/* ---- horizontal ---- */

ALWAYS_INLINE __m256i load_halves(const void *lower, const void *upper)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(lower)), _mm_loadu_si128(upper), 1);
}

/* Four rows of eight sums each: clipped bytes, in each half the four of row 0, row 1, 2, 3. */
ALWAYS_INLINE __m256i to_bytes(const __m256i sum[MRI_RESAMPLE_ROWS], __m128i shift)
{
    const __m256i a = _mm256_packs_epi32(_mm256_sra_epi32(sum[0], shift), _mm256_sra_epi32(sum[1], shift));
    const __m256i b = _mm256_packs_epi32(_mm256_sra_epi32(sum[2], shift), _mm256_sra_epi32(sum[3], shift));
    return _mm256_packus_epi16(a, b);
}

/* count of eight results of each row. */
ALWAYS_INLINE void store_group(__m256i bytes, uint8_t *const dst[MRI_RESAMPLE_ROWS], uint32_t k,
                               uint32_t count)
{
    const __m256i rows = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    uint8_t to[32];
    if (count >= GROUP) {
        const __m128i lo = _mm256_castsi256_si128(rows), hi = _mm256_extracti128_si256(rows, 1);
        const int64_t row[MRI_RESAMPLE_ROWS] = {_mm_cvtsi128_si64(lo), _mm_extract_epi64(lo, 1),
                                                _mm_cvtsi128_si64(hi), _mm_extract_epi64(hi, 1)};
        for (int r = 0; r < MRI_RESAMPLE_ROWS; r++) memcpy(dst[r] + k, &row[r], sizeof row[r]);
        return;
    }
    _mm256_storeu_si256((void *)to, rows);
    for (uint32_t r = 0; r < MRI_RESAMPLE_ROWS; r++) memcpy(dst[r] + k, to + GROUP * r, count);
}

ALWAYS_INLINE void across_near(const mri_across *a, const mri_rows *io, uint32_t pairs)
{
    const __m128i shift = _mm_cvtsi32_si128(a->shift);
    const uint8_t *table = a->table;
    for (uint32_t k = 0; k < a->taps.count; k += GROUP, table += 64 + 32 * (size_t)pairs) {
        uint32_t first[2];
        memcpy(first, table, sizeof first);
        const __m256i order = _mm256_load_si256((const void *)(table + 32));
        __m256i sum[MRI_RESAMPLE_ROWS];
        for (int r = 0; r < MRI_RESAMPLE_ROWS; r++) sum[r] = _mm256_set1_epi32(1 << (a->shift - 1));
        for (uint32_t p = 0; p < pairs; p++) {
            const __m256i w = _mm256_load_si256((const void *)(table + 64 + 32 * p));
            for (int r = 0; r < MRI_RESAMPLE_ROWS; r++) {
                const int16_t *at = io->row[r] + 2 * p;
                const __m256i x = _mm256_shuffle_epi8(load_halves(at + first[0], at + first[1]), order);
                sum[r] = _mm256_add_epi32(sum[r], _mm256_madd_epi16(x, w));
            }
        }
        store_group(to_bytes(sum, shift), io->dst, k, a->taps.count - k);
    }
}

/* Of one row: results i (lower half) and j, four sums each that are still to be added up. */
ALWAYS_INLINE __m256i sums_apart(const int16_t *i, const int16_t *j, const uint8_t *table, uint32_t turns)
{
    __m256i sum = _mm256_setzero_si256();
    for (uint32_t t = 0; t < turns; t++) {
        const __m256i x = load_halves(i + MRI_TAPS_STEP * t, j + MRI_TAPS_STEP * t);
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(x, _mm256_load_si256((const void *)(table + 32 * t))));
    }
    return sum;
}

/* The eight sums of one row. */
ALWAYS_INLINE __m256i group_apart(const int16_t *row, const uint32_t *start, const uint8_t *table,
                                  uint32_t turns)
{
    const __m256i a = sums_apart(row + start[0], row + start[4], table, turns);
    const __m256i b = sums_apart(row + start[1], row + start[5], table + 32 * turns, turns);
    const __m256i c = sums_apart(row + start[2], row + start[6], table + 64 * turns, turns);
    const __m256i d = sums_apart(row + start[3], row + start[7], table + 96 * turns, turns);
    return _mm256_hadd_epi32(_mm256_hadd_epi32(a, b), _mm256_hadd_epi32(c, d));
}

ALWAYS_INLINE void across_apart(const mri_across *a, const mri_rows *io, uint32_t turns)
{
    const __m128i shift = _mm_cvtsi32_si128(a->shift);
    const __m256i half = _mm256_set1_epi32(1 << (a->shift - 1));
    const uint8_t *table = a->table;
    for (uint32_t k = 0; k < a->taps.count; k += GROUP, table += 32 * HALF * (size_t)turns) {
        uint32_t start[GROUP];
        __m256i sum[MRI_RESAMPLE_ROWS];
        for (uint32_t l = 0; l < GROUP; l++) start[l] = a->taps.start[result_at(&a->taps, k + l)];
        for (int r = 0; r < MRI_RESAMPLE_ROWS; r++)
            sum[r] = _mm256_add_epi32(half, group_apart(io->row[r], start, table, turns));
        store_group(to_bytes(sum, shift), io->dst, k, a->taps.count - k);
    }
}

/* The sums of result pixel k: rows 0 and 1 in the halves of sum[0], 2 and 3 in the halves of sum[1]. */
ALWAYS_INLINE void pixel(const mri_across *a, const int16_t *const row[MRI_RESAMPLE_ROWS], uint32_t taps,
                         uint32_t k, __m256i sum[2])
{
    const __m256i order =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11, 0, 1, 6, 7));
    const int16_t *weight = a->taps.weight + (size_t)k * a->taps.stride;
    size_t at = 3 * (size_t)a->taps.start[k];
    sum[0] = sum[1] = _mm256_set1_epi32(1 << (a->shift - 1));
    for (uint32_t t = 0; t < taps; t += 2, at += 6) {
        int32_t pair;
        memcpy(&pair, weight + t, sizeof pair);
        for (int h = 0; h < 2; h++) {
            const __m256i x = _mm256_shuffle_epi8(load_halves(row[2 * h] + at, row[2 * h + 1] + at), order);
            sum[h] = _mm256_add_epi32(sum[h], _mm256_madd_epi16(x, _mm256_set1_epi32(pair)));
        }
    }
}

/* The same with up to four taps: one load has them all, two samples in each half, whose sums meet at the end.
 * That halves the loads, which limit the general code. */
ALWAYS_INLINE void pixel_of_four(const mri_across *a, const int16_t *const row[MRI_RESAMPLE_ROWS], uint32_t k,
                                 __m256i sum[2])
{
    const __m256i order = _mm256_setr_epi8(4, 5, 10, 11, 6, 7, 12, 13, 8, 9, 14, 15, -1, -1, -1, -1, /* values
                                                                                                        -2 to
                                                                                                        5 */
                                           0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11, -1, -1, -1, -1); /* values 6
                                                                                                     to 13 */
    const __m128i four = _mm_loadl_epi64((const void *)(a->taps.weight + (size_t)k * a->taps.stride));
    const __m256i w =
        _mm256_permutevar8x32_epi32(_mm256_castsi128_si256(four), _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1));
    const size_t at = 3 * (size_t)a->taps.start[k];
    for (int h = 0; h < 2; h++) {
        __m256i part[2];
        for (int r = 0; r < 2; r++) {
            const __m256i x = _mm256_loadu_si256((const void *)(row[2 * h + r] + at - 2));
            part[r] = _mm256_madd_epi16(_mm256_shuffle_epi8(x, order), w);
        }
        /* row 0's lower half, row 1's upper */
        const __m256i outer = _mm256_blend_epi32(part[0], part[1], 0xf0);
        const __m256i inner = _mm256_permute2x128_si256(part[0], part[1], 0x21);
        sum[h] = _mm256_add_epi32(_mm256_add_epi32(outer, inner), _mm256_set1_epi32(1 << (a->shift - 1)));
    }
}

/* Twelve bytes and four that follow; of the row `left` bytes are still to come. */
ALWAYS_INLINE void store_pixels(__m128i packed, uint8_t *dst, size_t left)
{
    uint8_t to[16];
    if (left >= sizeof to) {
        _mm_storeu_si128((void *)dst, packed); /* the last four are written again by the next turn */
        return;
    }
    _mm_storeu_si128((void *)to, packed);
    memcpy(dst, to, left < 12 ? left : 12);
}

ALWAYS_INLINE void across_pixels(const mri_across *a, const mri_rows *io, uint32_t taps)
{
    const __m256i rgb =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1));
    const __m128i shift = _mm_cvtsi32_si128(a->shift);
    for (uint32_t k = 0; k < a->taps.count; k += HALF) {
        __m256i sum[HALF][2];
        for (uint32_t n = 0; n < HALF; n++) {
            const uint32_t result = result_at(&a->taps, k + n);
            if (taps == 4) pixel_of_four(a, io->row, result, sum[n]);
            else pixel(a, io->row, taps, result, sum[n]);
        }
        const size_t at = 3 * (size_t)k, left = 3 * ((size_t)a->taps.count - k);
        for (int h = 0; h < 2; h++) {
            const __m256i lo =
                _mm256_packs_epi32(_mm256_sra_epi32(sum[0][h], shift), _mm256_sra_epi32(sum[1][h], shift));
            const __m256i hi =
                _mm256_packs_epi32(_mm256_sra_epi32(sum[2][h], shift), _mm256_sra_epi32(sum[3][h], shift));
            const __m256i packed = _mm256_shuffle_epi8(_mm256_packus_epi16(lo, hi), rgb);
            store_pixels(_mm256_castsi256_si128(packed), io->dst[2 * h] + at, left);
            store_pixels(_mm256_extracti128_si256(packed, 1), io->dst[2 * h + 1] + at, left);
        }
    }
}

/* The usual numbers of taps are loops without a counter. */
MRI_TARGET_AVX2 static void across(const mri_across *plan, const mri_rows *rows)
{
    const mri_across a = *plan; /* see mri_rows */
    const mri_rows io = *rows;
    const uint32_t pairs = pairs_of(&a.taps), turns = turns_of(&a.taps);
    if (a.layout == NEAR && pairs == 1) across_near(&a, &io, 1);
    else if (a.layout == NEAR && pairs == 2) across_near(&a, &io, 2);
    else if (a.layout == NEAR) across_near(&a, &io, pairs);
    else if (a.layout == APART && turns == 1) across_apart(&a, &io, 1);
    else if (a.layout == APART) across_apart(&a, &io, turns);
    else if (pairs == 1) across_pixels(&a, &io, 2);
    else if (pairs == 2) across_pixels(&a, &io, 4);
    else across_pixels(&a, &io, 2 * pairs);
}

const mri_resample_variant mri_resample_avx2 = {weigh, prepare, make_table, down, across};
#endif
