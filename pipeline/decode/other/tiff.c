/* pipeline/decode/other/tiff.c: the first picture of a TIFF to pixels, with libtiff.
 *
 *   the file in memory ──► libtiff: rows of strips, or tiles, of the part ──► samples ──► RGB
 *
 * libtiff finds and unpacks the data; this file interprets them: samples of 16 bits keep their high
 * byte, of less than 8 they are spread over 0 to 255, CMYK is multiplied out. libtiff's functions that make
 * RGBA are not used: they multiply colours with alpha, and take four bytes a pixel of the whole picture. What
 * libtiff allocates is bounded before the file is opened, and its messages come here, not to standard error.
 */
#include <stdio.h>

#include "pipeline/decode/other/libraries.h"
#include "pipeline/decode/other/other.h"

enum {
    TAG_WIDTH = 256,
    TAG_HEIGHT = 257,
    TAG_BITS = 258,
    TAG_COMPRESSION = 259,
    TAG_KIND = 262,
    TAG_SAMPLES = 277,
    TAG_PLANAR = 284,
    TAG_COLOURS = 320,
    TAG_JPEG_COLOURS = 65538
};
enum { SEPARATE = 2, JPEG_AS_RGB = 1, LIBRARY_BYTES = 4 << 20 };

typedef struct work {
    const mri_tiff_layout *t;
    const mri_tiff_calls *calls;
    struct tiff *tiff;
    const uint8_t *data;
    uint64_t bytes, at;
    bool decoding, damaged;
    char text[256]; /* what libtiff says first */
    const uint16_t *colours[3];
    mri_rect part;
    uint8_t *pixels;
} work;

/* ---- the file ---- */

static ssize_t read_file(void *self, void *to, ssize_t bytes)
{
    work *w = self;
    const uint64_t left = w->at < w->bytes ? w->bytes - w->at : 0,
                   n = bytes > 0 ? mri_min_u64((uint64_t)bytes, left) : 0;
    if (n) memcpy(to, w->data + w->at, n);
    w->at += n;
    return (ssize_t)n;
}

static ssize_t write_file(void *self, void *from, ssize_t bytes)
{
    (void)self, (void)from, (void)bytes;
    return -1;
}

static uint64_t seek_file(void *self, uint64_t offset, int whence)
{
    work *w = self;
    w->at = whence == SEEK_SET ? offset : whence == SEEK_CUR ? w->at + offset : w->bytes + offset;
    return w->at;
}

static int close_file(void *self)
{
    (void)self;
    return 0;
}

static uint64_t size_of_file(void *self) { return ((work *)self)->bytes; }

/* libtiff only reads a mapped file. */
static int map_file(void *self, void **base, uint64_t *bytes)
{
    work *w = self;
    *base = (void *)(uintptr_t)w->data;
    *bytes = w->bytes;
    return 1;
}

static void unmap_file(void *self, void *base, uint64_t bytes) { (void)self, (void)base, (void)bytes; }

/* ---- messages ---- */

static void keep_text(work *w, const char *module, const char *format, va_list list)
{
    if (w->text[0]) return;
    const int n = snprintf(w->text, sizeof w->text, "%.40s: ", module ? module : "libtiff");
    vsnprintf(w->text + n, sizeof w->text - (size_t)n, format, list);
    for (char *c = w->text; *c; c++)
        if ((unsigned char)*c < ' ' || (unsigned char)*c > '~') *c = '?';
}

static int on_error(struct tiff *tiff, void *user, const char *module, const char *format, va_list list)
{
    work *w = user;
    (void)tiff;
    keep_text(w, module, format, list);
    if (w->decoding) w->damaged = true;
    return 1;
}

/* Fax codes and JPEG only warn of damage, and continue with invented pixels. */
static int on_warning(struct tiff *tiff, void *user, const char *module, const char *format, va_list list)
{
    work *w = user;
    (void)tiff;
    if (!w->decoding || !module || (strncmp(module, "Fax", 3) != 0 && strcmp(module, "JPEGLib") != 0))
        return 1;
    keep_text(w, module, format, list);
    w->damaged = true;
    return 1;
}

static int failed(const work *w, const char *what, mr_error *err)
{
    return mr_error_set(err, MR_EFORMAT, "TIFF: %s%s%s: damaged", what, w->text[0] ? ": " : "", w->text);
}

/* ---- samples to pixels ---- */

static unsigned sample_at(const uint8_t *row, size_t k, unsigned bits)
{
    uint16_t wide;
    if (bits == 8) return row[k];
    if (bits == 16) {
        memcpy(&wide, row + 2 * k, sizeof wide); /* libtiff gives them in the machine's order */
        return wide >> 8;
    }
    return row[k * bits / 8] >> (8 - bits - k * bits % 8) & ((1u << bits) - 1);
}

static void put_indices(const work *w, const uint8_t *row, size_t x, uint32_t count, uint8_t *to)
{
    const size_t step = w->t->planes ? 1 : w->t->samples;
    for (uint32_t k = 0; k < count; k++, to += 3) {
        const unsigned v = sample_at(row, (x + k) * step, w->t->bits);
        for (int c = 0; c < 3; c++) to[c] = (uint8_t)(w->colours[c][v] >> 8);
    }
}

static void put_gray(const mri_tiff_layout *t, const uint8_t *row, size_t x, uint32_t count, uint8_t *to)
{
    const unsigned most = t->bits >= 8 ? 255 : (1u << t->bits) - 1,
                   turn = t->kind == MRI_TIFF_WHITE_IS_ZERO ? 255 : 0;
    const size_t step = t->planes ? 1 : t->samples;
    for (uint32_t k = 0; k < count; k++, to += 3)
        to[0] = to[1] = to[2] = (uint8_t)(sample_at(row, (x + k) * step, t->bits) * 255 / most ^ turn);
}

static void put_cmyk(const mri_tiff_layout *t, const uint8_t *row, size_t x, uint32_t count, uint8_t *to)
{
    for (uint32_t k = 0; k < count; k++, to += 3) {
        const size_t at = (x + k) * t->samples;
        const unsigned white = 255 - sample_at(row, at + 3, t->bits);
        for (unsigned c = 0; c < 3; c++)
            to[c] = (uint8_t)(((255 - sample_at(row, at + c, t->bits)) * white + 127) / 255);
    }
}

static void put_rgb(const mri_tiff_layout *t, const uint8_t *row, size_t x, uint32_t count, uint8_t *to)
{
    if (t->bits == 8 && t->samples == 3) {
        memcpy(to, row + 3 * x, 3 * (size_t)count);
        return;
    }
    const uint8_t *p = row + x * t->samples * (t->bits / 8);
    const size_t step = t->samples * (t->bits / 8);
    if (t->bits == 8)
        for (uint32_t k = 0; k < count; k++, to += 3, p += step) memcpy(to, p, 3);
    else
        for (uint32_t k = 0; k < count; k++, to += 3)
            for (unsigned c = 0; c < 3; c++) to[c] = (uint8_t)sample_at(row, (x + k) * t->samples + c, 16);
}

/* Samples x to x + count of a row become pixels at `to`. plane: of separate ones, else 0. */
static void put_samples(const work *w, const uint8_t *row, size_t x, uint32_t count, unsigned plane,
                        uint8_t *to)
{
    const mri_tiff_layout *t = w->t;
    if (t->kind == MRI_TIFF_PALETTE) put_indices(w, row, x, count, to);
    else if (t->colours == 1) put_gray(t, row, x, count, to);
    else if (t->colours == 4) put_cmyk(t, row, x, count, to);
    else if (!t->planes) put_rgb(t, row, x, count, to);
    else
        for (uint32_t k = 0; k < count; k++)
            to[3 * (size_t)k + plane] = (uint8_t)sample_at(row, x + k, t->bits);
}

/* ---- strips and tiles ---- */

static unsigned planes_of(const mri_tiff_layout *t) { return t->planes ? t->colours : 1; }

static int read_strips(work *w, uint8_t *row, mr_error *err)
{
    const mri_rect part = w->part;
    const uint32_t first = part.y / w->t->strip_rows * w->t->strip_rows; /* a strip is read from its first row
                                                                          */
    for (unsigned plane = 0; plane < planes_of(w->t); plane++)
        for (uint32_t y = first; y < part.y + part.height; y++) {
            if (w->calls->TIFFReadScanline(w->tiff, row, y, (uint16_t)plane) < 0 || w->damaged)
                return failed(w, "libtiff cannot decode a row", err);
            if (y >= part.y)
                put_samples(w, row, part.x, part.width, plane,
                            w->pixels + 3 * (size_t)(y - part.y) * part.width);
        }
    return MR_OK;
}

static void put_tile(const work *w, const uint8_t *tile, uint32_t left, uint32_t top, unsigned plane)
{
    const mri_tiff_layout *t = w->t;
    const mri_rect part = w->part;
    const size_t row_bytes = (size_t)(mri_tiff_tile_bytes(t) / t->tile_h);
    const uint32_t x = left > part.x ? left : part.x, y = top > part.y ? top : part.y,
                   end_x = (uint32_t)mri_min_u64((uint64_t)left + t->tile_w, (uint64_t)part.x + part.width),
                   end_y = (uint32_t)mri_min_u64((uint64_t)top + t->tile_h, (uint64_t)part.y + part.height);
    for (uint32_t at = y; at < end_y; at++)
        put_samples(w, tile + (at - top) * row_bytes, x - left, end_x - x, plane,
                    w->pixels + 3 * ((size_t)(at - part.y) * part.width + (x - part.x)));
}

static int read_tiles(work *w, uint8_t *tile, mr_error *err)
{
    const mri_tiff_layout *t = w->t;
    const mri_rect part = w->part;
    for (unsigned plane = 0; plane < planes_of(t); plane++)
        for (uint64_t y = part.y / t->tile_h * t->tile_h; y < (uint64_t)part.y + part.height; y += t->tile_h)
            for (uint64_t x = part.x / t->tile_w * t->tile_w; x < (uint64_t)part.x + part.width;
                 x += t->tile_w) {
                if (w->calls->TIFFReadTile(w->tiff, tile, (uint32_t)x, (uint32_t)y, 0, (uint16_t)plane) < 0 ||
                    w->damaged)
                    return failed(w, "libtiff cannot decode a tile", err);
                put_tile(w, tile, (uint32_t)x, (uint32_t)y, plane);
            }
    return MR_OK;
}

/* ---- opening ---- */

/* libtiff sees the picture that the header says: else its rows would have another size than was checked. */
static bool is_same(const work *w)
{
    const mri_tiff_layout *t = w->t;
    uint32_t width = 0, height = 0;
    uint16_t bits = 0, samples = 0, compression = 0, kind = 0, planar = 0;
    const mri_tiff_calls *c = w->calls;
    c->TIFFGetFieldDefaulted(w->tiff, TAG_WIDTH, &width);
    c->TIFFGetFieldDefaulted(w->tiff, TAG_HEIGHT, &height);
    c->TIFFGetFieldDefaulted(w->tiff, TAG_BITS, &bits);
    c->TIFFGetFieldDefaulted(w->tiff, TAG_SAMPLES, &samples);
    c->TIFFGetFieldDefaulted(w->tiff, TAG_COMPRESSION, &compression);
    c->TIFFGetFieldDefaulted(w->tiff, TAG_KIND, &kind);
    c->TIFFGetFieldDefaulted(w->tiff, TAG_PLANAR, &planar);
    return width == t->width && height == t->height && bits == t->bits && samples == t->samples &&
           compression == t->compression && kind == t->kind &&
           (planar == SEPARATE && samples > 1) == t->planes && !c->TIFFIsTiled(w->tiff) == !t->tile_w;
}

/* Bytes of a row or tile, as libtiff and the header say; 0: they differ. */
static size_t room_of(const work *w)
{
    const mri_tiff_layout *t = w->t;
    const uint64_t own = t->tile_w ? mri_tiff_tile_bytes(t) : mri_tiff_row_bytes(t);
    const ssize_t theirs = t->tile_w ? w->calls->TIFFTileSize(w->tiff) : w->calls->TIFFScanlineSize(w->tiff);
    return theirs > 0 && (uint64_t)theirs == own ? (size_t)own : 0;
}

static int decode(work *w, mri_buffer *room, mr_error *err)
{
    const mri_tiff_layout *t = w->t;
    if (!is_same(w)) return failed(w, "libtiff sees another picture than the header says", err);
    if (t->compression == MRI_TIFF_JPEG && t->kind == MRI_TIFF_YCBCR)
        w->calls->TIFFSetField(w->tiff, TAG_JPEG_COLOURS, JPEG_AS_RGB);
    if (t->kind == MRI_TIFF_PALETTE && !w->calls->TIFFGetFieldDefaulted(w->tiff, TAG_COLOURS, &w->colours[0],
                                                                        &w->colours[1], &w->colours[2]))
        return failed(w, "a palette picture without colours", err);
    const size_t bytes = room_of(w);
    if (!bytes) return failed(w, "libtiff sees rows of another size than the header says", err);
    if (mri_buffer_need(room, bytes)) return mr_error_set(err, MR_ENOMEM, "TIFF: no memory for a row");
    w->decoding = true;
    w->text[0] = '\0';
    return t->tile_w ? read_tiles(w, room->data, err) : read_strips(w, room->data, err);
}

uint64_t mri_tiff_library_bytes(const mri_tiff_layout *t)
{
    return t->tile_w ? 2 * mri_tiff_tile_bytes(t) : mri_times(32, mri_tiff_row_bytes(t));
}

int mri_tiff_decode(const mri_tiff_layout *t, const uint8_t *data, size_t bytes, mri_rect part,
                    mri_buffer *room, uint8_t *pixels, mr_error *err)
{
    work w = {
        .t = t, .calls = mri_tiff_need(err), .data = data, .bytes = bytes, .part = part, .pixels = pixels};
    if (!w.calls) return MR_EUNSUPPORTED;
    struct TIFFOpenOptions *options = w.calls->TIFFOpenOptionsAlloc();
    if (!options) return mr_error_set(err, MR_ENOMEM, "TIFF: no memory for a decoder");
    const uint64_t most =
        mri_min_u64(mri_plus(mri_tiff_library_bytes(t), LIBRARY_BYTES + (uint64_t)bytes), INT64_MAX);
    w.calls->TIFFOpenOptionsSetMaxSingleMemAlloc(options, (ssize_t)most);
    w.calls->TIFFOpenOptionsSetErrorHandlerExtR(options, on_error, &w);
    w.calls->TIFFOpenOptionsSetWarningHandlerExtR(options, on_warning, &w);
    w.tiff = w.calls->TIFFClientOpenExt("picture", "r", &w, read_file, write_file, seek_file, close_file,
                                        size_of_file, map_file, unmap_file, options);
    w.calls->TIFFOpenOptionsFree(options);
    if (!w.tiff) return failed(&w, "libtiff cannot open it", err);
    const int rc = decode(&w, room, err);
    w.calls->TIFFClose(w.tiff);
    return rc;
}
