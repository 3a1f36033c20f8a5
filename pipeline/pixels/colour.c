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

void mri_scale(uint8_t *p, size_t bytes, int32_t factor)
{
    for (size_t k = 0; k < bytes; k++) p[k] = clip((p[k] * factor + MRI_FACTOR_ONE / 2) >> 16);
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

/* ---- hue ----
 * A colour on the hexagon: with m the smallest channel and d the span up to the largest, hue runs through six
 * edges of length d. Along each, one channel is m + d, one is m, and the third goes up or down between them:
 *
 *   edge     0          1          2          3          4          5
 *   red      m + d      falls      m          m          rises      m + d
 *   green    rises      m + d      m + d      falls      m          m
 *   blue     m          m          rises      m + d      m + d      falls
 *
 * So green is red's curve four edges on, and blue two. Lengths along the edges are in 1/65536 of a step. */

/* The channel that is the largest at `at` = 0, at a length in [0, 6 d). */
static int32_t channel_at(int32_t at, int32_t d)
{
    const int32_t past = at < 3 * d ? at : 6 * d - at; /* the curve is symmetric: 0 to 3 d */
    return past <= d ? d : past >= 2 * d ? 0 : 2 * d - past;
}

static int32_t wrapped(int32_t at, int32_t around) { return at >= around ? at - around : at; }

static void turn_pixel(uint8_t *p, int32_t turn)
{
    const int32_t r = p[0], g = p[1], b = p[2];
    const int32_t most = r > g ? (r > b ? r : b) : (g > b ? g : b),
                  least = r < g ? (r < b ? r : b) : (g < b ? g : b), span = most - least;
    const int32_t along = most == r ? g - b : most == g ? 2 * span + b - r : 4 * span + r - g;
    const int32_t d = span * MRI_FACTOR_ONE, around = 6 * d;
    /* at most 7 * 255 * 65536: within 32 bits */
    int32_t at = along * MRI_FACTOR_ONE + 6 * span * turn;
    at = at < 0 ? at + around : wrapped(at, around);
    p[0] = (uint8_t)(least + ((channel_at(at, d) + MRI_FACTOR_ONE / 2) >> 16));
    p[1] = (uint8_t)(least + ((channel_at(wrapped(at + 4 * d, around), d) + MRI_FACTOR_ONE / 2) >> 16));
    p[2] = (uint8_t)(least + ((channel_at(wrapped(at + 2 * d, around), d) + MRI_FACTOR_ONE / 2) >> 16));
}

void mri_hue(uint8_t *p, size_t pixels, uint32_t channels, int32_t turn)
{
    if (channels != 3) return;
    for (size_t k = 0; k < pixels; k++) turn_pixel(p + 3 * k, turn);
}

void mri_to_gray(uint8_t *p, size_t pixels, uint32_t channels)
{
    if (channels != 3) return;
    for (size_t k = 0; k < pixels; k++, p += 3) p[0] = p[1] = p[2] = mri_gray(p[0], p[1], p[2]);
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
