/* pipeline/pixels/colour.c: see colour.h. Sums are exact integers, so the order of adding does not matter to
 * any bit. */
#include "pipeline/pixels/colour.h"

#include <math.h>

#include "pipeline/pixels/pixels.h"

static uint8_t clip(int32_t v) { return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v); }

void mri_brightness(uint8_t *p, size_t bytes, int32_t delta)
{
    for (size_t k = 0; k < bytes; k++) p[k] = clip(p[k] + delta);
}

/* Sixteen bits of fraction of the picture's mean gray: weights of mri_gray() over exact channel sums. */
static uint64_t mean_gray(const uint8_t *p, size_t pixels, uint32_t channels)
{
    uint64_t sum[3] = {0};
    if (channels == 1) {
        for (size_t k = 0; k < pixels; k++) sum[0] += p[k];
        return ((sum[0] << 16) + pixels / 2) / pixels;
    }
    for (size_t k = 0; k < pixels; k++)
        for (int c = 0; c < 3; c++) sum[c] += p[3 * k + c];
    return (19595 * sum[0] + 38470 * sum[1] + 7471 * sum[2] + pixels / 2) / pixels;
}

void mri_contrast(uint8_t *p, size_t pixels, uint32_t channels, int32_t factor)
{
    const int64_t mean = (int64_t)mean_gray(p, pixels, channels);
    const int32_t offset =
        (int32_t)((mean * (MRI_FACTOR_ONE - factor) + MRI_FACTOR_ONE / 2) >> 16) + MRI_FACTOR_ONE / 2;
    for (size_t k = 0; k < pixels * channels; k++) p[k] = clip((p[k] * factor + offset) >> 16);
}

void mri_saturation(uint8_t *p, size_t pixels, uint32_t channels, int32_t factor)
{
    if (channels != 3) return;
    for (size_t k = 0; k < pixels; k++, p += 3) {
        const int32_t offset = mri_gray(p[0], p[1], p[2]) * (MRI_FACTOR_ONE - factor) + MRI_FACTOR_ONE / 2;
        for (int c = 0; c < 3; c++) p[c] = clip((p[c] * factor + offset) >> 16);
    }
}

void mri_blend(uint8_t *restrict a, uint8_t *restrict b, size_t bytes, uint32_t share)
{
    const uint16_t other = (uint16_t)share, own = (uint16_t)(256 - share);
    for (size_t k = 0; k < bytes; k++) { /* sums stay below 2^16: sixteen bits are enough */
        const uint16_t x = a[k], y = b[k];
        a[k] = (uint8_t)((uint16_t)(own * x + other * y + 128) >> 8);
        b[k] = (uint8_t)((uint16_t)(own * y + other * x + 128) >> 8);
    }
}

void mri_standardise(const uint8_t *p, size_t bytes, float affine[2])
{
    uint64_t sum = 0, squares = 0;
    for (size_t at = 0; at < bytes;) { /* in runs whose sums fit 32 bits */
        const size_t end = bytes - at > 65536 ? at + 65536 : bytes;
        uint32_t s = 0, q = 0;
        for (; at < end; at++) {
            s += p[at];
            q += (uint32_t)p[at] * p[at];
        }
        sum += s;
        squares += q;
    }
    /* n^2 times the variance: exact, at most 2^16 n^2 */
    const unsigned __int128 spread = (unsigned __int128)squares * bytes - (unsigned __int128)sum * sum;
    const double n = (double)bytes, deviation = sqrt((double)spread) / n, least = 1.0 / sqrt(n);
    const double scale = 1.0 / (deviation > least ? deviation : least);
    affine[0] = (float)scale;
    affine[1] = (float)(-((double)sum / n) * scale);
}
