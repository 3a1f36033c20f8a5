/* pipeline/pixels/warp.c: see warp.h. Places are whole numbers of 1/2^32, added up exactly, so no pixel
 * depends on where a row began. */
#include "pipeline/pixels/warp.h"

struct source {
    const uint8_t *pixels, *fill;
    uint32_t width, height, channels;
    size_t stride;
};

static const uint8_t *pixel_at(const struct source *s, int64_t x, int64_t y)
{
    const bool inside = x >= 0 && y >= 0 && x < s->width && y < s->height;
    return inside ? s->pixels + (size_t)y * s->stride + (size_t)x * s->channels : s->fill;
}

static void nearest_row(const struct source *s, const mri_warp *w, int64_t x, int64_t y, uint8_t *dst)
{
    for (uint32_t i = 0; i < s->width; i++, x += w->xx, y += w->yx, dst += s->channels) {
        const uint8_t *from = pixel_at(s, x >> 32, y >> 32);
        for (uint32_t c = 0; c < s->channels; c++) dst[c] = from[c];
    }
}

/* Of four pixels by how far (10 bits) the place lies from the first one. */
static void mix(const uint8_t *a, const uint8_t *b, const uint8_t *c, const uint8_t *d, int32_t fx,
                int32_t fy, uint32_t channels, uint8_t *dst)
{
    for (uint32_t k = 0; k < channels; k++) {
        const int32_t top = a[k] * 1024 + (b[k] - a[k]) * fx, bottom = c[k] * 1024 + (d[k] - c[k]) * fx;
        dst[k] = (uint8_t)((top * 1024 + (bottom - top) * fy + (1 << 19)) >> 20);
    }
}

static int32_t fraction(int64_t at) { return (int32_t)(at >> 22) & 1023; }

/* Somewhere: some of the four may lie outside. */
static void mix_at(const struct source *s, int64_t x, int64_t y, uint8_t *dst)
{
    const int64_t left = x >> 32, top = y >> 32;
    mix(pixel_at(s, left, top), pixel_at(s, left + 1, top), pixel_at(s, left, top + 1),
        pixel_at(s, left + 1, top + 1), fraction(x), fraction(y), s->channels, dst);
}

/* The results of first <= i < *end for which low <= at + i * step < high, made fewer: from *first to *end. */
static void narrow(int64_t at, int64_t step, int64_t low, int64_t high, int64_t *first, int64_t *end)
{
    while (*first < *end && (at + *first * step < low || at + *first * step >= high)) ++*first;
    while (*first < *end && (at + (*end - 1) * step < low || at + (*end - 1) * step >= high)) --*end;
}

/* As mix_at(), from i to end, where all four lie inside. */
static void bilinear_inside(const struct source *s, const mri_warp *w, int64_t x, int64_t y, int64_t i,
                            int64_t end, uint8_t *dst)
{
    const size_t n = s->channels;
    for (x += i * w->xx, y += i * w->yx; i < end; i++, x += w->xx, y += w->yx) {
        const uint8_t *p = s->pixels + (size_t)(y >> 32) * s->stride + (size_t)(x >> 32) * n;
        if (n == 3) /* a constant for the compiler */
            mix(p, p + 3, p + s->stride, p + s->stride + 3, fraction(x), fraction(y), 3, dst + 3 * i);
        else mix(p, p + 1, p + s->stride, p + s->stride + 1, fraction(x), fraction(y), 1, dst + i);
    }
}

static void bilinear_row(const struct source *s, const mri_warp *w, int64_t x, int64_t y, uint8_t *dst)
{
    const int64_t half = (int64_t)1 << 31; /* pixels are at their centres */
    int64_t first = 0, end = s->width;
    x -= half;
    y -= half;
    narrow(x, w->xx, 0, ((int64_t)s->width - 1) << 32, &first, &end);
    narrow(y, w->yx, 0, ((int64_t)s->height - 1) << 32, &first, &end);
    for (int64_t i = 0; i < first; i++)
        mix_at(s, x + i * w->xx, y + i * w->yx, dst + (size_t)i * s->channels);
    bilinear_inside(s, w, x, y, first, end, dst);
    for (int64_t i = end; i < s->width; i++)
        mix_at(s, x + i * w->xx, y + i * w->yx, dst + (size_t)i * s->channels);
}

void mri_warp_picture(const uint8_t *src, uint32_t width, uint32_t height, uint32_t channels,
                      const mri_warp *w, bool nearest, const uint8_t fill[4], uint8_t *dst)
{
    const struct source s = {src, fill, width, height, channels, (size_t)width * channels};
    for (uint32_t j = 0; j < height; j++, dst += s.stride) {
        const int64_t x = w->xy * j + w->x0, y = w->yy * j + w->y0;
        if (nearest) nearest_row(&s, w, x, y, dst);
        else bilinear_row(&s, w, x, y, dst);
    }
}
