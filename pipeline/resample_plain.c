/* pipeline/resample_plain.c: both passes in plain C: the specification of every other variant. */
#include "pipeline/resample_kernels.h"

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

static void across(const mri_across *a, const int16_t *const row[MRI_RESAMPLE_ROWS], uint8_t *const dst[MRI_RESAMPLE_ROWS])
{
    for (int r = 0; r < MRI_RESAMPLE_ROWS; r++) {
        uint8_t *to = dst[r];
        for (uint32_t k = 0; k < a->taps.count; k++) {
            const int16_t *weight = a->taps.weight + (size_t)k * a->taps.stride;
            for (uint32_t c = 0; c < a->channels; c++) {
                const int16_t *sample = row[r] + (size_t)a->taps.start[k] * a->channels + c;
                int32_t sum = 1 << (a->shift - 1);
                for (uint32_t t = 0; t < a->taps.taps; t++) sum += sample[t * a->channels] * weight[t];
                sum >>= a->shift;
                *to++ = (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
            }
        }
    }
}

const mri_resample_variant mri_resample_plain = {prepare, make_table, down, across};
