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
static void mix(const uint8_t *a, const uint8_t *b, const uint8_t *c, const uint8_t *d, uint32_t fx,
                uint32_t fy, uint32_t channels, uint8_t *dst)
{
    for (uint32_t k = 0; k < channels; k++) {
        const uint32_t top = a[k] * (1024 - fx) + b[k] * fx, bottom = c[k] * (1024 - fx) + d[k] * fx;
        dst[k] = (uint8_t)((top * (1024 - fy) + bottom * fy + (1u << 19)) >> 20);
    }
}

static void bilinear_row(const struct source *s, const mri_warp *w, int64_t x, int64_t y, uint8_t *dst)
{
    const int64_t half = (int64_t)1 << 31; /* pixels are at their centres */
    const size_t next = s->channels;
    x -= half;
    y -= half;
    for (uint32_t i = 0; i < s->width; i++, x += w->xx, y += w->yx, dst += next) {
        const int64_t left = x >> 32, top = y >> 32;
        const uint32_t fx = (uint32_t)(x >> 22) & 1023, fy = (uint32_t)(y >> 22) & 1023;
        if (left >= 0 && top >= 0 && left + 1 < s->width && top + 1 < s->height) {
            const uint8_t *p = s->pixels + (size_t)top * s->stride + (size_t)left * next;
            mix(p, p + next, p + s->stride, p + s->stride + next, fx, fy, s->channels, dst);
        } else {
            mix(pixel_at(s, left, top), pixel_at(s, left + 1, top), pixel_at(s, left, top + 1),
                pixel_at(s, left + 1, top + 1), fx, fy, s->channels, dst);
        }
    }
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
