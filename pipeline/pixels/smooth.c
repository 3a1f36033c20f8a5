/* pipeline/pixels/smooth.c: see smooth.h.
 *
 *   copy ──rows up and down──► a strip of one row, 1/128 ──its neighbours left and right──► the picture
 *
 * Sums are of whole numbers; loops run over the bytes of a row, one weight after the other. */
#include "pipeline/pixels/smooth.h"

#include "base/simd_loop.h"
#include "pipeline/pixels/pixels.h"

/* ---- sharpening ---- */

MRI_INLINE uint8_t clip(int32_t v) { return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v); }

/* `count` bytes with their neighbours in the rows above and below; c: bytes from pixel to pixel. */
MRI_INLINE void sharpen_row_body(const uint8_t *above, const uint8_t *row, const uint8_t *below, size_t count,
                                 size_t c, int32_t factor, uint8_t *out)
{
    const int32_t rest = 65536 - factor;
    for (size_t k = 0; k < count; k++) {
        const size_t l = k + c, r = l + c; /* in the middle, to the right */
        const uint32_t sum = (uint32_t)above[k] + above[l] + above[r] + row[k] + 5u * row[l] + row[r] +
                             below[k] + below[l] + below[r];
        const int32_t smooth = (int32_t)((sum + 6) / 13);
        out[k] = clip((row[l] * factor + smooth * rest + 32768) >> 16);
    }
}

MRI_SIMD_LOOP(sharpen_row,
              (const uint8_t *above, const uint8_t *row, const uint8_t *below, size_t count, size_t c,
               int32_t factor, uint8_t *out),
              (above, row, below, count, c, factor, out))

void mri_sharpen(uint8_t *p, uint32_t width, uint32_t height, uint32_t channels, int32_t factor,
                 uint8_t *copy)
{
    const size_t stride = (size_t)width * channels;
    if (width < 3 || height < 3) return;
    memcpy(copy, p, stride * height);
    for (size_t y = 1; y + 1 < height; y++) {
        const uint8_t *row = copy + y * stride;
        sharpen_row(row - stride, row, row + stride, stride - 2 * (size_t)channels, channels, factor,
                    p + y * stride + channels);
    }
}

/* ---- blurring ---- */

enum { STRIP = 256, STRIP_BYTES = 3 * (STRIP + 2 * MRI_BLUR_RADIUS_MAX) };

/* One weight of two rows, or of two places of a row. */
MRI_INLINE void add_bytes_body(const uint8_t *a, const uint8_t *b, size_t count, uint16_t weight,
                               uint32_t *sum)
{
    for (size_t k = 0; k < count; k++) sum[k] += (uint32_t)weight * (uint16_t)(a[k] + b[k]);
}
MRI_SIMD_LOOP(add_bytes, (const uint8_t *a, const uint8_t *b, size_t count, uint16_t weight, uint32_t *sum),
              (a, b, count, weight, sum))

MRI_INLINE void add_words_body(const uint16_t *a, const uint16_t *b, size_t count, uint16_t weight,
                               uint32_t *sum)
{
    for (size_t k = 0; k < count; k++) sum[k] += (uint32_t)weight * (uint16_t)(a[k] + b[k]);
}
MRI_SIMD_LOOP(add_words, (const uint16_t *a, const uint16_t *b, size_t count, uint16_t weight, uint32_t *sum),
              (a, b, count, weight, sum))

/* Columns of `count` bytes from `offset` of each row, around row y: 1/128 of a step. */
static void blur_columns(const uint8_t *picture, size_t stride, uint32_t height, uint32_t y, size_t offset,
                         size_t count, const mri_blur_weights *w, uint16_t *out)
{
    uint32_t sum[STRIP_BYTES];
    const uint8_t *row = picture + y * stride + offset;
    for (size_t k = 0; k < count; k++) sum[k] = w->weight[0] * row[k] + 256;
    for (uint32_t d = 1; d <= w->radius; d++)
        add_bytes(picture + mri_reflected((int64_t)y - d, height) * stride + offset,
                  picture + mri_reflected((int64_t)y + d, height) * stride + offset, count,
                  (uint16_t)w->weight[d], sum);
    for (size_t k = 0; k < count; k++) out[k] = (uint16_t)(sum[k] >> 9);
}

/* `count` bytes whose own values begin at `from`, their neighbours c bytes apart on both sides. */
static void blur_row(const uint16_t *from, size_t count, size_t c, const mri_blur_weights *w, uint8_t *out)
{
    uint32_t sum[3 * STRIP];
    for (size_t k = 0; k < count; k++) sum[k] = w->weight[0] * from[k] + (1u << 22);
    for (uint32_t d = 1; d <= w->radius; d++)
        add_words(from - d * c, from + d * c, count, (uint16_t)w->weight[d], sum);
    for (size_t k = 0; k < count; k++) out[k] = (uint8_t)(sum[k] >> 23);
}

/* Columns x to end of row y. */
static void blur_strip(const uint8_t *picture, uint32_t width, uint32_t height, size_t c, uint32_t y,
                       uint32_t x, uint32_t end, const mri_blur_weights *w, uint8_t *out)
{
    uint16_t strip[STRIP_BYTES], *zero = strip + w->radius * c; /* zero: where column x lies */
    const uint32_t first = x < w->radius ? 0 : x - w->radius,
                   last = width - end < w->radius ? width : end + w->radius;
    uint16_t *at_first = zero - (x - first) * c;
    blur_columns(picture, width * c, height, y, first * c, (last - first) * c, w, at_first);
    for (int64_t k = (int64_t)x - w->radius; k < first; k++)
        memcpy(zero + (k - x) * (int64_t)c, at_first + (mri_reflected(k, width) - first) * c,
               c * sizeof *strip);
    for (int64_t k = last; k < (int64_t)end + w->radius; k++)
        memcpy(zero + (k - x) * (int64_t)c, at_first + (mri_reflected(k, width) - first) * c,
               c * sizeof *strip);
    blur_row(zero, (end - x) * c, c, w, out);
}

void mri_blur(uint8_t *p, uint32_t width, uint32_t height, uint32_t channels, const mri_blur_weights *w,
              uint8_t *copy)
{
    const size_t stride = (size_t)width * channels;
    if (w->radius == 0) return;
    memcpy(copy, p, stride * height);
    for (uint32_t y = 0; y < height; y++)
        for (uint32_t x = 0; x < width; x += STRIP) {
            const uint32_t end = width - x < STRIP ? width : x + STRIP;
            blur_strip(copy, width, height, channels, y, x, end, w, p + y * stride + (size_t)x * channels);
        }
}
