/* pipeline/pixels/resample_neon.c: both passes with NEON: 16-bit values multiplied and accumulated to 32 bits
 * (smlal).
 *
 * Vertical: 16 columns a turn.
 *
 * Horizontal, three channels: a vector holds a result pixel (three sums and one that is dropped); sample t is
 * four values from its place on.
 *
 * Horizontal, one channel: a vector holds four results. Two ways, by scale:
 *   NEAR    all four find sample t among the eight values from the first one's sample t on: one table
 *           look-up, which is the same for every t
 *   APART   otherwise: eight neighbouring samples of one result a turn */
#include "pipeline/pixels/resample_kernels.h"

#if defined(__aarch64__)
#include <arm_neon.h>

#define LANES 2
#define WEIGH_TARGET
#include "pipeline/pixels/resample_weigh.h"

#define GROUP 4

enum { NEAR, APART, PIXELS };

static inline uint32_t min_u32(uint32_t a, uint32_t b) { return a < b ? a : b; }
/* Results past the last are the last again. */
static inline uint32_t result_at(const mri_taps *t, uint32_t k) { return min_u32(k, t->count - 1); }

/* NEAR, a group: the offset of its first value (8 bytes with what follows unused), a look-up of 8 bytes,
 * weights[taps][4]. */
static size_t group_bytes(const mri_taps *t) { return 16 + 8 * (size_t)t->taps; }

static bool is_near(const mri_taps *t)
{
    for (uint32_t k = 0; k < t->count; k += GROUP) {
        const uint32_t a = t->start[k], b = t->start[result_at(t, k + GROUP - 1)];
        if ((a < b ? b - a : a - b) + 1 > 8) return false;
    }
    return true;
}

static size_t prepare(mri_across *a)
{
    a->layout = a->channels == 3 ? PIXELS : is_near(&a->taps) ? NEAR : APART;
    return a->layout == NEAR ? group_bytes(&a->taps) * ((a->taps.count + GROUP - 1) / GROUP) : 0;
}

static void make_table(const mri_across *a)
{
    const mri_taps *t = &a->taps;
    uint8_t *to = a->table;
    for (uint32_t k = 0; k < t->count; k += GROUP, to += group_bytes(t)) {
        const uint32_t first = min_u32(t->start[k], t->start[result_at(t, k + GROUP - 1)]);
        memcpy(to, &first, sizeof first);
        for (uint32_t l = 0; l < GROUP; l++) {
            const uint32_t at = result_at(t, k + l), value = t->start[at] - first;
            to[8 + 2 * l] = (uint8_t)(2 * value);
            to[9 + 2 * l] = (uint8_t)(2 * value + 1);
            for (uint32_t n = 0; n < t->taps; n++)
                memcpy(to + 16 + 8 * n + 2 * l, t->weight + (size_t)at * t->stride + n, 2);
        }
    }
}

/* ---- vertical ---- */

#define COLUMNS 16

static inline void down_block(const mri_down *d, const uint8_t *src, int16_t *row)
{
    const int32x4_t half = vdupq_n_s32(1 << (d->shift - 1)), shift = vdupq_n_s32(-d->shift);
    int32x4_t s0 = half, s1 = half, s2 = half, s3 = half;
    for (uint32_t t = 0; t < d->taps; t++, src += d->stride) {
        const uint8x16_t x = vld1q_u8(src);
        const int16x8_t lo = vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(x))),
                        hi = vreinterpretq_s16_u16(vmovl_high_u8(x));
        const int16_t w = d->weight[t];
        s0 = vmlal_n_s16(s0, vget_low_s16(lo), w);
        s1 = vmlal_high_n_s16(s1, lo, w);
        s2 = vmlal_n_s16(s2, vget_low_s16(hi), w);
        s3 = vmlal_high_n_s16(s3, hi, w);
    }
    vst1q_s16(row, vcombine_s16(vqmovn_s32(vshlq_s32(s0, shift)), vqmovn_s32(vshlq_s32(s1, shift))));
    vst1q_s16(row + 8, vcombine_s16(vqmovn_s32(vshlq_s32(s2, shift)), vqmovn_s32(vshlq_s32(s3, shift))));
}

static void down(const mri_down *d, int16_t *row)
{
    if (d->count < COLUMNS) {
        mri_resample_plain.down(d, row);
        return;
    }
    for (size_t k = 0; k + COLUMNS <= d->count; k += COLUMNS) down_block(d, d->src + k, row + k);
    const size_t last = d->count - COLUMNS; /* some columns again: nothing is read past the row */
    if (d->count % COLUMNS) down_block(d, d->src + last, row + last);
}

/* ---- horizontal ---- */

/* Four sums to clipped bytes, in the lower half. */
static inline uint32_t to_bytes(int32x4_t sum, int32x4_t shift)
{
    const int16x4_t words = vqmovn_s32(vshlq_s32(sum, shift));
    return vget_lane_u32(vreinterpret_u32_u8(vqmovun_s16(vcombine_s16(words, words))), 0);
}

static inline void store_bytes(uint8_t *dst, uint32_t four, uint32_t count)
{
    memcpy(dst, &four, count < 4 ? count : 4);
}

static inline __attribute__((always_inline)) void across_near(const mri_across *a, const mri_rows *io)
{
    const int32x4_t shift = vdupq_n_s32(-a->shift);
    const uint8_t *table = a->table;
    for (uint32_t k = 0; k < a->taps.count; k += GROUP, table += group_bytes(&a->taps)) {
        uint32_t first;
        memcpy(&first, table, sizeof first);
        const uint8x8_t order = vld1_u8(table + 8);
        int32x4_t sum[MRI_RESAMPLE_ROWS];
        for (int r = 0; r < MRI_RESAMPLE_ROWS; r++) sum[r] = vdupq_n_s32(1 << (a->shift - 1));
        for (uint32_t t = 0; t < a->taps.taps; t++) {
            const int16x4_t w = vreinterpret_s16_u8(vld1_u8(table + 16 + 8 * t));
            for (int r = 0; r < MRI_RESAMPLE_ROWS; r++) {
                const uint8x16_t x = vreinterpretq_u8_s16(vld1q_s16(io->row[r] + first + t));
                sum[r] = vmlal_s16(sum[r], vreinterpret_s16_u8(vqtbl1_u8(x, order)), w);
            }
        }
        for (int r = 0; r < MRI_RESAMPLE_ROWS; r++)
            store_bytes(io->dst[r] + k, to_bytes(sum[r], shift), a->taps.count - k);
    }
}

static inline int32x4_t sums_apart(const int16_t *x, const int16_t *w, uint32_t stride)
{
    int32x4_t sum = vdupq_n_s32(0);
    for (uint32_t t = 0; t < stride; t += MRI_TAPS_STEP) {
        const int16x8_t a = vld1q_s16(x + t), b = vld1q_s16(w + t);
        sum = vmlal_high_s16(vmlal_s16(sum, vget_low_s16(a), vget_low_s16(b)), a, b);
    }
    return sum;
}

static inline __attribute__((always_inline)) void across_apart(const mri_across *a, const mri_rows *io)
{
    const mri_taps *t = &a->taps;
    const int32x4_t shift = vdupq_n_s32(-a->shift), half = vdupq_n_s32(1 << (a->shift - 1));
    for (int r = 0; r < MRI_RESAMPLE_ROWS; r++)
        for (uint32_t k = 0; k < t->count; k += GROUP) {
            int32x4_t sum[GROUP];
            for (uint32_t l = 0; l < GROUP; l++) {
                const uint32_t at = result_at(t, k + l);
                sum[l] = sums_apart(io->row[r] + t->start[at], t->weight + (size_t)at * t->stride, t->stride);
            }
            const int32x4_t all = vpaddq_s32(vpaddq_s32(sum[0], sum[1]), vpaddq_s32(sum[2], sum[3]));
            store_bytes(io->dst[r] + k, to_bytes(vaddq_s32(all, half), shift), t->count - k);
        }
}

static inline __attribute__((always_inline)) void across_pixels(const mri_across *a, const mri_rows *io)
{
    const int32x4_t shift = vdupq_n_s32(-a->shift);
    for (uint32_t k = 0; k < a->taps.count; k++) {
        const int16_t *weight = a->taps.weight + (size_t)k * a->taps.stride;
        const size_t at = 3 * (size_t)a->taps.start[k];
        int32x4_t sum[MRI_RESAMPLE_ROWS];
        for (int r = 0; r < MRI_RESAMPLE_ROWS; r++) sum[r] = vdupq_n_s32(1 << (a->shift - 1));
        for (uint32_t t = 0; t < a->taps.taps; t++)
            for (int r = 0; r < MRI_RESAMPLE_ROWS; r++)
                sum[r] = vmlal_n_s16(sum[r], vld1_s16(io->row[r] + at + 3 * t), weight[t]);
        /* the fourth byte belongs to the next pixel, which is written afterwards */
        const uint32_t bytes = k + 1 < a->taps.count ? 4 : 3;
        for (int r = 0; r < MRI_RESAMPLE_ROWS; r++)
            store_bytes(io->dst[r] + 3 * (size_t)k, to_bytes(sum[r], shift), bytes);
    }
}

static void across(const mri_across *plan, const mri_rows *rows)
{
    const mri_across a = *plan; /* see mri_rows */
    const mri_rows io = *rows;
    switch (a.layout) {
    case NEAR: across_near(&a, &io); break;
    case APART: across_apart(&a, &io); break;
    default: across_pixels(&a, &io);
    }
}

const mri_resample_variant mri_resample_neon = {weigh, prepare, make_table, down, across};
#endif
