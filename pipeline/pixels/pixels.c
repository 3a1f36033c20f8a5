/* pipeline/pixels/pixels.c: copying pixels about: windows with padding and mirroring, plane interleaving,
 * orientation, channels.
 *
 * Small pictures come in millions, so the inner loops move a pixel of three bytes as one load and one store
 * of four: the fourth byte belongs to the next pixel, which is written afterwards. The last pixel of a row
 * goes byte by byte, and so nothing outside a row is ever touched. */
#include "pipeline/pixels/pixels.h"

int mri_buffer_need(mri_buffer *b, size_t bytes)
{
    if (bytes <= b->bytes) return MR_OK;
    mri_buffer_free(b);
    b->data = mri_alloc_aligned(MRI_CACHE_LINE, bytes);
    if (!b->data) return MR_ENOMEM;
    b->bytes = bytes;
    return MR_OK;
}

void mri_buffer_free(mri_buffer *b)
{
    free(b->data);
    *b = (mri_buffer){0};
}

bool mri_picture_bytes(uint64_t width, uint64_t height, uint32_t channels, size_t *out)
{
    size_t pixels;
    return mri_mul_size(width, height, &pixels) && mri_mul_size(pixels, channels, out);
}

int mri_check_pixels(uint64_t width, uint64_t height, uint64_t max_pixels, mr_error *err)
{
    if (width <= max_pixels / height) return MR_OK;
    return mr_error_set(
        err, MR_ELIMIT, "picture of %llu x %llu pixels is over the limit of %llu pixels (--max-pixels)",
        (unsigned long long)width, (unsigned long long)height, (unsigned long long)max_pixels);
}

mri_view mri_view_part(const mri_view *v, mri_rect r)
{
    mri_view part = *v;
    part.pixels += r.y * v->stride + (size_t)r.x * (v->plane_bytes ? 1 : v->channels);
    part.width = r.width;
    part.height = r.height;
    return part;
}

/* ---- rows: count pixels, packed and interleaved at dst ---- */

/* Pixels src[count - 1], ..., src[0]. */
static void row_mirrored3(uint8_t *restrict dst, const uint8_t *restrict src, size_t count)
{
    memcpy(dst, src + 3 * (count - 1), 3); /* a load of four would pass the row's end */
    for (size_t k = 1; k + 1 < count; k++) memcpy(dst + 3 * k, src + 3 * (count - 1 - k), 4);
    memcpy(dst + 3 * (count - 1), src, 3);
}

static inline uint32_t planes_pixel(const uint8_t *src, size_t plane, size_t at)
{
    return (uint32_t)src[at] | (uint32_t)src[plane + at] << 8 | (uint32_t)src[2 * plane + at] << 16;
}

static void row_from_planes3(uint8_t *restrict dst, const uint8_t *restrict src, size_t plane, size_t count,
                             bool back)
{
    for (size_t k = 0; k + 1 < count; k++) {
        const uint32_t pixel = planes_pixel(src, plane, back ? count - 1 - k : k);
        memcpy(dst + 3 * k, &pixel, 4);
    }
    const uint32_t last = planes_pixel(src, plane, back ? 0 : count - 1);
    memcpy(dst + 3 * (count - 1), &last, 3);
}

static void row_copy(const mri_view *v, const uint8_t *src, size_t count, bool flip, uint8_t *dst)
{
    if (count == 0) return;
    if (v->channels == 3 && v->plane_bytes) {
        row_from_planes3(dst, src, v->plane_bytes, count, flip);
    } else if (!flip) {
        memcpy(dst, src, count * v->channels);
    } else if (v->channels == 3) {
        row_mirrored3(dst, src, count);
    } else {
        for (size_t k = 0; k < count; k++) dst[k] = src[count - 1 - k];
    }
}

/* One pixel count times. */
static void row_repeat(const mri_view *v, const uint8_t *src, size_t count, uint8_t *dst)
{
    for (size_t k = 0; k < count; k++)
        for (uint32_t c = 0; c < v->channels; c++)
            dst[k * v->channels + c] = v->plane_bytes ? src[c * v->plane_bytes] : src[c];
}

/* How a window's row of width pixels from x splits into left of the picture, inside, right of it. */
struct span {
    size_t before, inside, after, from; /* from: the first picture column inside */
};

static struct span span_of(int64_t x, size_t width, size_t picture)
{
    const int64_t end = x + (int64_t)width, side = (int64_t)picture;
    const int64_t first = x < 0 ? 0 : x > side ? side : x, last = end < 0 ? 0 : end > side ? side : end;
    struct span s = {.inside = (size_t)(last - first), .from = (size_t)first};
    s.before = x >= 0 ? 0 : end < 0 ? width : (size_t)-x;
    s.after = width - s.before - s.inside;
    return s;
}

uint32_t mri_reflected(int64_t at, uint32_t side)
{
    const int64_t period = 2 * ((int64_t)side - 1);
    if (period == 0) return 0;
    at %= period;
    if (at < 0) at += period;
    return (uint32_t)(at < side ? at : period - at);
}

/* Columns x, x + 1, ... of a row, in this order or from the last one on, where the row goes on as its mirror
 * images. */
static void row_reflect(const mri_view *v, const uint8_t *row, int64_t x, size_t count, bool flip,
                        uint8_t *dst)
{
    const size_t step = v->plane_bytes ? 1 : v->channels;
    for (size_t k = 0; k < count; k++, dst += v->channels)
        row_repeat(v, row + mri_reflected(x + (int64_t)(flip ? count - 1 - k : k), v->width) * step, 1, dst);
}

/* `count` columns from x, all of them left of the row, or right of it. */
static void row_fill(const mri_view *v, const uint8_t *row, int64_t x, size_t count, mri_outside outside,
                     bool flip, uint8_t *dst)
{
    const size_t last = (v->width - 1) * (v->plane_bytes ? 1 : (size_t)v->channels);
    if (count == 0) return;
    if (outside == MRI_OUTSIDE_EDGE) row_repeat(v, x < 0 ? row : row + last, count, dst);
    else if (outside == MRI_OUTSIDE_MIRROR) row_reflect(v, row, x, count, flip, dst);
    else memset(dst, 0, count * v->channels);
}

void mri_copy_window(const mri_view *v, int64_t x, int64_t y, uint32_t width, uint32_t height,
                     mri_outside outside, bool flip, uint8_t *dst)
{
    const struct span s = span_of(x, width, v->width);
    const size_t step = v->plane_bytes ? 1 : v->channels, row_bytes = (size_t)width * v->channels;
    if (!v->plane_bytes && !flip && s.inside == width && row_bytes == v->stride && y >= 0 &&
        y + height <= (int64_t)v->height && x == 0) { /* whole rows: one copy */
        memcpy(dst, v->pixels + (size_t)y * v->stride, row_bytes * height);
        return;
    }
    for (uint32_t row = 0; row < height; row++, dst += row_bytes) {
        int64_t from = y + row;
        if (from < 0 || from >= (int64_t)v->height) {
            if (outside == MRI_OUTSIDE_ZERO) {
                memset(dst, 0, row_bytes);
                continue;
            }
            from = outside == MRI_OUTSIDE_MIRROR ? (int64_t)mri_reflected(from, v->height)
                   : from < 0                    ? 0
                                                 : (int64_t)v->height - 1;
        }
        const uint8_t *src = v->pixels + (size_t)from * v->stride;
        const int64_t behind = x + (int64_t)(s.before + s.inside);
        uint8_t *left = dst + (flip ? (s.after + s.inside) * v->channels : 0),
                *inside = dst + (flip ? s.after : s.before) * v->channels,
                *right = dst + (flip ? 0 : (s.before + s.inside) * v->channels);
        row_fill(v, src, x, s.before, outside, flip, left);
        row_copy(v, src + s.from * step, s.inside, flip, inside);
        row_fill(v, src, behind, s.after, outside, flip, right);
    }
}

static void mirror_row(uint8_t *row, uint32_t width, uint32_t channels)
{
    uint8_t *end = row + (size_t)(width - 1) * channels;
    for (; row < end; row += channels, end -= channels)
        for (uint32_t c = 0; c < channels; c++) {
            const uint8_t kept = row[c];
            row[c] = end[c];
            end[c] = kept;
        }
}

void mri_mirror(uint8_t *pixels, uint32_t width, uint32_t height, uint32_t channels)
{
    for (uint32_t y = 0; y < height; y++) mirror_row(pixels + (size_t)y * width * channels, width, channels);
}

/* ---- orientation ---- */

static const mri_orientation turns[9] = {{0, 0, 0}, {0, 0, 0}, {0, 1, 0}, {0, 1, 1}, {0, 0, 1},
                                         {1, 0, 0}, {1, 0, 1}, {1, 1, 1}, {1, 1, 0}};

mri_orientation mri_orientation_of(uint32_t orientation) { return turns[orientation <= 8 ? orientation : 0]; }

uint32_t mri_orient_flipped(uint32_t orientation)
{
    mri_orientation t = mri_orientation_of(orientation);
    if (t.swap) t.mirror_y = !t.mirror_y; /* the upright x runs along the stored y */
    else t.mirror_x = !t.mirror_x;
    uint32_t k = 1;
    while (turns[k].swap != t.swap || turns[k].mirror_x != t.mirror_x || turns[k].mirror_y != t.mirror_y) k++;
    return k;
}

mri_rect mri_orient_rect(mri_rect upright, uint32_t orientation, uint32_t width, uint32_t height)
{
    const mri_orientation t = mri_orientation_of(orientation);
    mri_rect r = upright;
    if (t.swap) r = (mri_rect){upright.y, upright.x, upright.height, upright.width};
    if (t.mirror_x) r.x = width - r.x - r.width;
    if (t.mirror_y) r.y = height - r.y - r.height;
    return r;
}

void mri_orient(const mri_view *stored, uint32_t orientation, uint8_t *dst)
{
    const mri_orientation t = mri_orientation_of(orientation);
    const uint32_t width = t.swap ? stored->height : stored->width,
                   height = t.swap ? stored->width : stored->height;
    const uint32_t channels = stored->channels;
    for (uint32_t y = 0; y < height; y++) {
        for (uint32_t x = 0; x < width; x++) {
            const uint32_t a = t.swap ? y : x, b = t.swap ? x : y;
            const size_t sx = t.mirror_x ? stored->width - 1 - a : a,
                         sy = t.mirror_y ? stored->height - 1 - b : b;
            const uint8_t *pixel = stored->pixels + sy * stored->stride + sx * channels;
            for (uint32_t c = 0; c < channels; c++) *dst++ = pixel[c];
        }
    }
}

/* ---- channels ---- */

void mri_convert_channels(const mri_view *v, uint32_t channels, uint8_t *dst)
{
    const size_t step = v->plane_bytes ? 1 : v->channels, plane = v->plane_bytes ? v->plane_bytes : 1;
    const bool gray = v->channels <= 2;
    for (uint32_t y = 0; y < v->height; y++) {
        const uint8_t *p = v->pixels + y * v->stride;
        for (uint32_t x = 0; x < v->width; x++, p += step, dst += channels) {
            const uint8_t r = p[0], g = gray ? r : p[plane], b = gray ? r : p[2 * plane];
            if (channels == 1) {
                dst[0] = gray ? r : mri_gray(r, g, b);
            } else {
                dst[0] = r;
                dst[1] = g;
                dst[2] = b;
            }
        }
    }
}
