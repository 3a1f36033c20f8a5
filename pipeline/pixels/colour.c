/* pipeline/pixels/colour.c: see colour.h. Sums are exact integers, so the order of adding does not matter to
 * any bit. */
#include "pipeline/pixels/colour.h"

#include <math.h>

#include "base/simd_loop.h"
#include "pipeline/pixels/pixels.h"

MRI_INLINE uint8_t clip(int32_t v) { return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v); }

MRI_INLINE void brighten_body(uint8_t *p, size_t bytes, int32_t delta)
{
    for (size_t k = 0; k < bytes; k++) p[k] = clip(p[k] + delta);
}
MRI_SIMD_LOOP(brighten, (uint8_t * p, size_t bytes, int32_t delta), (p, bytes, delta))

void mri_brightness(uint8_t *p, size_t bytes, int32_t delta) { brighten(p, bytes, delta); }

MRI_INLINE void line_body(uint8_t *p, size_t bytes, int32_t factor, int32_t offset)
{
    for (size_t k = 0; k < bytes; k++) p[k] = clip((p[k] * factor + offset) >> 16);
}
MRI_SIMD_LOOP(line, (uint8_t * p, size_t bytes, int32_t factor, int32_t offset), (p, bytes, factor, offset))

void mri_scale(uint8_t *p, size_t bytes, int32_t factor) { line(p, bytes, factor, MRI_FACTOR_ONE / 2); }

/* ---- the mean gray ---- */

enum { SUM_RUN = 48, SUM_RUNS = 1 << 16 }; /* bytes summed up side by side; such runs, within 32 bits */

/* sum[k] is that of bytes k, k + 48, ...: 48 is a multiple of 3 and of vectors. */
MRI_INLINE void sum_runs_body(const uint8_t *p, size_t runs, uint32_t sum[SUM_RUN])
{
    uint32_t own[SUM_RUN] = {0};
    for (size_t n = 0; n < runs; n++, p += SUM_RUN)
        for (int k = 0; k < SUM_RUN; k++) own[k] += p[k];
    memcpy(sum, own, sizeof own);
}
MRI_SIMD_LOOP(sum_runs, (const uint8_t *p, size_t runs, uint32_t sum[SUM_RUN]), (p, runs, sum))

/* Sums of the channels; of one channel, three sums over its values in turn. */
static void sum_up(const uint8_t *p, size_t bytes, uint64_t sum[3])
{
    uint32_t part[SUM_RUN];
    sum[0] = sum[1] = sum[2] = 0;
    while (bytes >= SUM_RUN) {
        const size_t runs = mri_min_u64(bytes / SUM_RUN, SUM_RUNS);
        sum_runs(p, runs, part);
        for (int k = 0; k < SUM_RUN; k++) sum[k % 3] += part[k];
        p += runs * SUM_RUN;
        bytes -= runs * SUM_RUN;
    }
    for (size_t k = 0; k < bytes; k++) sum[k % 3] += p[k];
}

/* Sixteen bits of fraction of the picture's mean gray: weights of mri_gray() over exact channel sums. */
static uint64_t mean_gray(const uint8_t *p, size_t pixels, uint32_t channels)
{
    uint64_t sum[3];
    sum_up(p, pixels * channels, sum);
    if (channels == 1) return (((sum[0] + sum[1] + sum[2]) << 16) + pixels / 2) / pixels;
    return (19595 * sum[0] + 38470 * sum[1] + 7471 * sum[2] + pixels / 2) / pixels;
}

void mri_contrast(uint8_t *p, size_t pixels, uint32_t channels, int32_t factor)
{
    const int64_t mean = (int64_t)mean_gray(p, pixels, channels);
    const int32_t offset =
        (int32_t)((mean * (MRI_FACTOR_ONE - factor) + MRI_FACTOR_ONE / 2) >> 16) + MRI_FACTOR_ONE / 2;
    line(p, pixels * channels, factor, offset);
}

/* ---- channels apart ----
 * What mixes a pixel's channels works on planes of some pixels, which vectors take whole. */

enum { BLOCK = 64 };

struct block {
    uint8_t r[BLOCK], g[BLOCK], b[BLOCK];
};

/* Planes of n pixels; the rest of the block is 0. */
MRI_INLINE void split(const uint8_t *p, size_t n, struct block *out)
{
    if (n < BLOCK) memset(out, 0, sizeof *out);
    for (size_t k = 0; k < n; k++) {
        out->r[k] = p[3 * k];
        out->g[k] = p[3 * k + 1];
        out->b[k] = p[3 * k + 2];
    }
}

MRI_INLINE void join(const struct block *in, size_t n, uint8_t *p)
{
    for (size_t k = 0; k < n; k++) {
        p[3 * k] = in->r[k];
        p[3 * k + 1] = in->g[k];
        p[3 * k + 2] = in->b[k];
    }
}

MRI_INLINE void saturate_body(uint8_t *p, size_t pixels, int32_t factor)
{
    struct block in, out;
    for (size_t n; pixels > 0; pixels -= n, p += 3 * n) {
        n = pixels < BLOCK ? pixels : BLOCK;
        split(p, n, &in);
        for (int k = 0; k < BLOCK; k++) {
            const int32_t r = in.r[k], g = in.g[k], b = in.b[k];
            const int32_t gray = (19595 * r + 38470 * g + 7471 * b + 32768) >> 16; /* mri_gray() */
            const int32_t offset = gray * (MRI_FACTOR_ONE - factor) + MRI_FACTOR_ONE / 2;
            out.r[k] = clip((r * factor + offset) >> 16);
            out.g[k] = clip((g * factor + offset) >> 16);
            out.b[k] = clip((b * factor + offset) >> 16);
        }
        join(&out, n, p);
    }
}
MRI_SIMD_LOOP(saturate, (uint8_t * p, size_t pixels, int32_t factor), (p, pixels, factor))

void mri_saturation(uint8_t *p, size_t pixels, uint32_t channels, int32_t factor)
{
    if (channels == 3) saturate(p, pixels, factor);
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
MRI_INLINE int32_t channel_at(int32_t at, int32_t d)
{
    const int32_t past = at < 3 * d ? at : 6 * d - at; /* the curve is symmetric: 0 to 3 d */
    return past <= d ? d : past >= 2 * d ? 0 : 2 * d - past;
}

MRI_INLINE int32_t wrapped(int32_t at, int32_t around) { return at >= around ? at - around : at; }

MRI_INLINE uint8_t risen(int32_t least, int32_t by)
{
    return (uint8_t)(least + ((by + MRI_FACTOR_ONE / 2) >> 16));
}

MRI_INLINE void turn_body(uint8_t *p, size_t pixels, int32_t turn)
{
    struct block in, out;
    for (size_t n; pixels > 0; pixels -= n, p += 3 * n) {
        n = pixels < BLOCK ? pixels : BLOCK;
        split(p, n, &in);
        for (int k = 0; k < BLOCK; k++) {
            const int32_t r = in.r[k], g = in.g[k], b = in.b[k];
            const int32_t more = g > b ? g : b, less = g < b ? g : b;
            const int32_t most = r > more ? r : more, least = r < less ? r : less, span = most - least;
            const int32_t along = most == r ? g - b : most == g ? 2 * span + b - r : 4 * span + r - g;
            const int32_t d = span * MRI_FACTOR_ONE, around = 6 * d;
            /* at most 7 * 255 * 65536: within 32 bits */
            const int32_t moved = along * MRI_FACTOR_ONE + 6 * span * turn;
            const int32_t at = moved < 0 ? moved + around : wrapped(moved, around);
            out.r[k] = risen(least, channel_at(at, d));
            out.g[k] = risen(least, channel_at(wrapped(at + 4 * d, around), d));
            out.b[k] = risen(least, channel_at(wrapped(at + 2 * d, around), d));
        }
        join(&out, n, p);
    }
}
MRI_SIMD_LOOP(turn, (uint8_t * p, size_t pixels, int32_t by), (p, pixels, by))

void mri_hue(uint8_t *p, size_t pixels, uint32_t channels, int32_t by)
{
    if (channels == 3) turn(p, pixels, by);
}

void mri_to_gray(uint8_t *p, size_t pixels, uint32_t channels)
{
    if (channels != 3) return;
    for (size_t k = 0; k < pixels; k++, p += 3) p[0] = p[1] = p[2] = mri_gray(p[0], p[1], p[2]);
}

/* Sums stay below 2^16: sixteen bits are enough. */
MRI_INLINE void blend_body(uint8_t *restrict a, uint8_t *restrict b, size_t bytes, uint16_t other)
{
    const uint16_t own = (uint16_t)(256 - other);
    for (size_t k = 0; k < bytes; k++) {
        const uint16_t x = a[k], y = b[k];
        a[k] = (uint8_t)((uint16_t)(own * x + other * y + 128) >> 8);
        b[k] = (uint8_t)((uint16_t)(own * y + other * x + 128) >> 8);
    }
}
MRI_SIMD_LOOP(blend, (uint8_t *restrict a, uint8_t *restrict b, size_t bytes, uint16_t other),
              (a, b, bytes, other))

void mri_blend(uint8_t *a, uint8_t *b, size_t bytes, uint32_t share) { blend(a, b, bytes, (uint16_t)share); }

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
