/* pipeline/pixels/resample_plain.c: both passes in plain C: the specification of every other variant. */
#include "pipeline/pixels/resample_kernels.h"

#define LANES 2
#define WEIGH_TARGET
#include "pipeline/pixels/resample_weigh.h"

static size_t prepare(mri_across *a)
{
    a->layout = 0;
    return 0;
}

static void make_table(const mri_across *a) { (void)a; }

#define BLOCK 128 /* columns whose sums stay in the first-level cache, or in registers */

static void down(const mri_down *d, int16_t *row)
{
    for (size_t from = 0; from < d->count; from += BLOCK) {
        const size_t count = d->count - from < BLOCK ? d->count - from : BLOCK;
        int32_t sum[BLOCK];
        for (size_t k = 0; k < count; k++) sum[k] = 1 << (d->shift - 1);
        for (uint32_t t = 0; t < d->taps; t++) {
            const uint8_t *src = d->src + t * d->stride + from;
            for (size_t k = 0; k < count; k++) sum[k] += src[k] * d->weight[t];
        }
        for (size_t k = 0; k < count; k++) row[from + k] = (int16_t)(sum[k] >> d->shift);
    }
}

static inline uint8_t clipped(int32_t v) { return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v); }

static void across(const mri_across *a, const mri_rows *io)
{
    size_t n = 0;
    for (uint32_t k = 0; k < a->taps.count; k++) {
        const int16_t *weight = a->taps.weight + (size_t)k * a->taps.stride;
        for (uint32_t c = 0; c < a->channels; c++, n++) {
            size_t at = (size_t)a->taps.start[k] * a->channels + c;
            int32_t sum[MRI_RESAMPLE_ROWS];
            for (int r = 0; r < MRI_RESAMPLE_ROWS; r++) sum[r] = 1 << (a->shift - 1);
            for (uint32_t t = 0; t < a->taps.taps; t++, at += a->channels)
                for (int r = 0; r < MRI_RESAMPLE_ROWS; r++) sum[r] += io->row[r][at] * weight[t];
            for (int r = 0; r < MRI_RESAMPLE_ROWS; r++) io->dst[r][n] = clipped(sum[r] >> a->shift);
        }
    }
}

const mri_resample_variant mri_resample_plain = {weigh, prepare, make_table, down, across};
