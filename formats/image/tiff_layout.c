/* formats/image/tiff_layout.c: see tiff_layout.h. Numbers as in TIFF 6.0 and its supplements. */
#include "formats/image/tiff_layout.h"

enum {
    SUBFILE = 254,
    WIDTH = 256,
    HEIGHT = 257,
    BITS = 258,
    COMPRESSION = 259,
    KIND = 262,
    ORIENTATION = 274,
    SAMPLES = 277,
    STRIP_ROWS = 278,
    PLANAR = 284,
    TILE_W = 322,
    TILE_H = 323,
    INKS = 332,
    FORMAT = 339,
    DNG = 50706,
};
enum { SAMPLES_MOST = 8, TILE_MOST = 8 << 20 };

typedef struct reader {
    const uint8_t *p;
    size_t bytes;
    bool big_endian, big;
} reader;

bool mri_tiff_is(const uint8_t *p, size_t bytes)
{
    if (bytes < 8) return false;
    return memcmp(p, "II*\0", 4) == 0 || memcmp(p, "MM\0*", 4) == 0 || memcmp(p, "II+\0\x08\0\0\0", 8) == 0 ||
           memcmp(p, "MM\0+\0\x08\0\0", 8) == 0;
}

static uint64_t number(const reader *r, size_t at, unsigned bytes)
{
    uint64_t v = 0;
    for (unsigned k = 0; k < bytes; k++)
        v |= (uint64_t)r->p[at + k] << 8 * (r->big_endian ? bytes - 1 - k : k);
    return v;
}

/* First number of the entry at `at`, and how many it has; false: not numbers, or out of the file. */
static bool value_of(const reader *r, size_t at, uint64_t *out, uint64_t *count)
{
    static const uint8_t sizes[17] = {[1] = 1, [3] = 2, [4] = 4, [13] = 4, [16] = 8};
    const unsigned type = (unsigned)number(r, at + 2, 2), word = r->big ? 8 : 4;
    const unsigned size = type < sizeof sizes ? sizes[type] : 0;
    size_t place = at + 4 + word;
    *count = number(r, at + 4, word);
    if (!size || *count == 0) return false;
    if (*count > word / size) {
        const uint64_t offset = number(r, place, word);
        if (offset > r->bytes || r->bytes - offset < size) return false;
        place = (size_t)offset;
    }
    *out = number(r, place, size);
    return true;
}

typedef struct facts {
    uint64_t width, height, bits, samples, compression, kind, planar, orientation, tile_w, tile_h, strip_rows,
        format, inks, subfile;
    bool has_kind, has_tiles, dng;
} facts;

static void take_entry(const reader *r, size_t at, facts *f)
{
    uint64_t v, count;
    const unsigned tag = (unsigned)number(r, at, 2);
    if (tag == DNG) f->dng = true;
    if (!value_of(r, at, &v, &count)) return;
    switch (tag) {
    case SUBFILE: f->subfile = v; break;
    case WIDTH: f->width = v; break;
    case HEIGHT: f->height = v; break;
    case BITS: f->bits = v; break;
    case COMPRESSION: f->compression = v; break;
    case KIND: f->kind = v, f->has_kind = true; break;
    case ORIENTATION: f->orientation = v; break;
    case SAMPLES: f->samples = v; break;
    case STRIP_ROWS: f->strip_rows = v; break;
    case PLANAR: f->planar = v; break;
    case TILE_W: f->tile_w = v, f->has_tiles = true; break;
    case TILE_H: f->tile_h = v, f->has_tiles = true; break;
    case INKS: f->inks = v; break;
    case FORMAT: f->format = v; break;
    default: break;
    }
}

static int truncated(const reader *r, mr_error *err)
{
    return mr_error_set(err, MR_EFORMAT,
                        "TIFF: its directory lies past its end at byte %zu: truncated or damaged", r->bytes);
}

static int read_directory(reader *r, facts *f, mr_error *err)
{
    const unsigned word = r->big ? 8 : 4, entry = r->big ? 20 : 12, head = r->big ? 8 : 2;
    if (r->bytes < 2 * word) return truncated(r, err);
    const uint64_t directory = number(r, r->big ? 8 : 4, word);
    if (directory > r->bytes || r->bytes - directory < head) return truncated(r, err);
    const uint64_t count = number(r, (size_t)directory, head);
    size_t at = (size_t)directory + head;
    for (uint64_t k = 0; k < count; k++, at += entry) {
        if (r->bytes - at < entry) return truncated(r, err);
        take_entry(r, at, f);
    }
    return MR_OK;
}

static int no(mr_error *err, const char *what)
{
    return mr_error_set(err, MR_EUNSUPPORTED, "TIFF: %s: convert it to PNG", what);
}

static bool is_compression(uint64_t c)
{
    static const uint16_t known[] = {1, 2,     3,    4, 5, MRI_TIFF_JPEG,
                                     8, 32773, 32946}; /* none, CCITT, LZW, JPEG,
                                                          Deflate, PackBits */
    for (size_t k = 0; k < MRI_ARRAY_COUNT(known); k++)
        if (c == known[k]) return true;
    return false;
}

/* The kinds of pixels that are decoded. */
static int check_kind(const facts *f, mr_error *err)
{
    const uint64_t kind = f->kind, bits = f->bits;
    const bool index =
        kind == MRI_TIFF_WHITE_IS_ZERO || kind == MRI_TIFF_BLACK_IS_ZERO || kind == MRI_TIFF_PALETTE;
    const bool jpeg = f->compression == MRI_TIFF_JPEG;
    if (f->dng || f->subfile & 1)
        return no(err, "its first picture is a small copy of another, as in a camera's raw photograph");
    if (!is_compression(f->compression))
        return mr_error_set(
            err, MR_EUNSUPPORTED,
            "TIFF: compression %llu; expected none, CCITT, LZW, JPEG, Deflate or PackBits: convert it to PNG",
            (unsigned long long)f->compression);
    if (f->format != 1 && f->format != 4) return no(err, "samples that are not whole numbers from 0 on");
    if (!(bits == 8 || bits == 16 || (index && (bits == 1 || bits == 2 || bits == 4))) || (jpeg && bits != 8))
        return mr_error_set(
            err, MR_EUNSUPPORTED,
            "TIFF: %llu bits per sample; expected 8 or 16, of gray and palettes also 1, 2 or 4",
            (unsigned long long)bits);
    const uint64_t least = kind == MRI_TIFF_CMYK ? 4 : index ? 1 : 3;
    if (!(index || kind == MRI_TIFF_RGB || kind == MRI_TIFF_CMYK || (kind == MRI_TIFF_YCBCR && jpeg)))
        return mr_error_set(err, MR_EUNSUPPORTED,
                            "TIFF: pixels of kind %llu; expected gray, palette, RGB, CMYK, or YCbCr as JPEG",
                            (unsigned long long)kind);
    if (kind == MRI_TIFF_CMYK && f->inks != 1) return no(err, "inks that are not CMYK");
    if (kind == MRI_TIFF_PALETTE && bits == 16) return no(err, "a palette of 16 bits");
    if (f->samples < least || f->samples > SAMPLES_MOST || (bits < 8 && f->samples != 1))
        return mr_error_set(err, MR_EUNSUPPORTED,
                            "TIFF: %llu samples per pixel; expected %llu to %d, of less than 8 bits 1",
                            (unsigned long long)f->samples, (unsigned long long)least, SAMPLES_MOST);
    if (f->planar == 2 && f->samples > 1 && (kind == MRI_TIFF_CMYK || jpeg))
        return no(err, "CMYK or JPEG with each sample in a plane of its own");
    return MR_OK;
}

static int check_sizes(const facts *f, mr_error *err)
{
    if (f->width == 0 || f->height == 0 || f->width > INT32_MAX || f->height > INT32_MAX)
        return mr_error_set(err, MR_EFORMAT, "TIFF: a picture of %llu x %llu pixels: damaged",
                            (unsigned long long)f->width, (unsigned long long)f->height);
    if (!f->has_kind)
        return mr_error_set(err, MR_EFORMAT, "TIFF: the kind of its pixels (tag 262) is missing");
    if (f->has_tiles && (f->tile_w == 0 || f->tile_h == 0 || f->tile_w > 1 << 20 || f->tile_h > 1 << 20))
        return mr_error_set(err, MR_EFORMAT, "TIFF: tiles of %llu x %llu pixels: damaged",
                            (unsigned long long)f->tile_w, (unsigned long long)f->tile_h);
    return MR_OK;
}

uint64_t mri_tiff_row_bytes(const mri_tiff_layout *t)
{
    return ((uint64_t)t->width * t->bits * (t->planes ? 1 : t->samples) + 7) / 8;
}

uint64_t mri_tiff_tile_bytes(const mri_tiff_layout *t)
{
    return ((uint64_t)t->tile_w * t->bits * (t->planes ? 1 : t->samples) + 7) / 8 * t->tile_h;
}

int mri_tiff_layout_parse(mri_tiff_layout *t, const uint8_t *p, size_t bytes, mr_error *err)
{
    reader r = {p, bytes, bytes > 0 && p[0] == 'M', false};
    facts f = {
        .bits = 1, .samples = 1, .compression = 1, .planar = 1, .orientation = 1, .format = 1, .inks = 1};
    *t = (mri_tiff_layout){0};
    if (!mri_tiff_is(p, bytes)) return truncated(&r, err);
    r.big = number(&r, 2, 2) == 43;
    int rc = read_directory(&r, &f, err);
    if (rc == MR_OK) rc = check_sizes(&f, err);
    if (rc == MR_OK) rc = check_kind(&f, err);
    if (rc) return rc;
    *t = (mri_tiff_layout){.width = (uint32_t)f.width,
                           .height = (uint32_t)f.height,
                           .bits = (uint32_t)f.bits,
                           .samples = (uint32_t)f.samples,
                           .kind = (uint32_t)f.kind,
                           .compression = (uint32_t)f.compression,
                           .planes = f.planar == 2 && f.samples > 1,
                           .orientation =
                               f.orientation >= 1 && f.orientation <= 8 ? (uint32_t)f.orientation : 1,
                           .tile_w = f.has_tiles ? (uint32_t)f.tile_w : 0,
                           .tile_h = f.has_tiles ? (uint32_t)f.tile_h : 0};
    t->colours = t->kind == MRI_TIFF_CMYK ? 4 : t->kind == MRI_TIFF_RGB || t->kind == MRI_TIFF_YCBCR ? 3 : 1;
    t->strip_rows = f.strip_rows == 0 || f.strip_rows > f.height ? t->height : (uint32_t)f.strip_rows;
    if (t->tile_w && mri_tiff_tile_bytes(t) > TILE_MOST)
        return mr_error_set(err, MR_EUNSUPPORTED,
                            "TIFF: tiles of %u x %u pixels; expected at most 8 MiB each: write it anew",
                            t->tile_w, t->tile_h);
    return MR_OK;
}
