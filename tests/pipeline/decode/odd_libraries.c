/* tests/pipeline/decode/odd_libraries.c: WebPs and TIFFs written out here, byte by byte, for which the
 * library opens libwebp and libtiff. A WebP is lossless with one code of one bit: each pixel is one of two
 * greens. A TIFF is not packed; libtiff packs nothing here, as it is not linked. */
#include "base/util.h"
#include "mrt.h"
#include "tests/pipeline/decode/odd.h"

enum { W = 37, H = 21 };

static void put(mrt_odd *o, uint64_t v, unsigned bytes, bool big)
{
    uint8_t p[8];
    for (unsigned k = 0; k < bytes; k++) p[k] = (uint8_t)(v >> 8 * (big ? bytes - 1 - k : k));
    mrt_odd_put(o, p, bytes);
}

static uint8_t *new_pixels(mrt_odd *o, uint32_t w, uint32_t h, uint32_t channels)
{
    o->pixels = (mr_image){w, h, channels, calloc((size_t)w * h, channels)};
    if (!o->pixels.pixels) abort();
    return o->pixels.pixels;
}

static void drop_pixels(mrt_odd *o)
{
    free(o->pixels.pixels);
    o->pixels = (mr_image){0};
}

/* ---- WebP ---- */

typedef struct bits {
    uint8_t bytes[1024];
    size_t count;
} bits;

static void put_bits(bits *b, uint32_t v, unsigned count)
{
    for (unsigned k = 0; k < count; k++, b->count++)
        if (v >> k & 1) b->bytes[b->count / 8] |= (uint8_t)(1u << b->count % 8);
}

/* A prefix code of one or two symbols of eight bits. */
static void put_code(bits *b, unsigned count, unsigned first, unsigned second)
{
    put_bits(b, 1, 1);
    put_bits(b, count - 1, 1);
    put_bits(b, 1, 1);
    put_bits(b, first, 8);
    if (count == 2) put_bits(b, second, 8);
}

enum { RED = 17, GREEN = 40, OTHER_GREEN = 200, BLUE = 99 };

static bool is_other(uint32_t x, uint32_t y) { return (x * 5 + y * 3 + x * y) % 7 < 3; }

static void put_chunk(mrt_odd *o, const char *type, const void *body, size_t bytes)
{
    mrt_odd_put(o, type, 4);
    put(o, bytes, 4, false);
    mrt_odd_put(o, body, bytes);
    if (bytes & 1) put(o, 0, 1, false);
}

static void put_lossless(mrt_odd *o, uint32_t w, uint32_t h, bool alpha)
{
    bits b = {.count = 0};
    put_bits(&b, 0x2f, 8);
    put_bits(&b, w - 1, 14), put_bits(&b, h - 1, 14);
    put_bits(&b, alpha, 1), put_bits(&b, 0, 3);
    put_bits(&b, 0, 3); /* no transforms, no cache of colours, one group of codes */
    put_code(&b, 2, GREEN, OTHER_GREEN);
    put_code(&b, 1, RED, 0), put_code(&b, 1, BLUE, 0), put_code(&b, 1, alpha ? 7 : 255, 0);
    put_bits(&b, 1, 1), put_bits(&b, 0, 3); /* distances: one symbol, 0 */
    for (uint32_t y = 0; y < h; y++)
        for (uint32_t x = 0; x < w; x++) put_bits(&b, is_other(x, y), 1);
    put_chunk(o, "VP8L", b.bytes, (b.count + 7) / 8);
}

static void end_riff(mrt_odd *o)
{
    const uint32_t bytes = (uint32_t)o->bytes - 8;
    memcpy(o->data + 4, &(uint8_t[4]){(uint8_t)bytes, (uint8_t)(bytes >> 8), (uint8_t)(bytes >> 16), 0}, 4);
}

static void expect_webp(mrt_odd *o, uint32_t w, uint32_t h, uint32_t left, uint32_t top)
{
    uint8_t *p = new_pixels(o, w, h, 3);
    for (uint32_t y = 0; y < H; y++)
        for (uint32_t x = 0; x < W; x++) {
            uint8_t *to = p + 3 * ((size_t)(y + top) * w + x + left);
            to[0] = RED, to[1] = is_other(x, y) ? OTHER_GREEN : GREEN, to[2] = BLUE;
        }
}

static void put_extended(mrt_odd *o, unsigned flags, uint32_t w, uint32_t h)
{
    mrt_odd_put(o, "VP8X\x0a\0\0\0", 8);
    put(o, flags, 4, false), put(o, w - 1, 3, false), put(o, h - 1, 3, false);
}

enum { PLAIN, WITH_ALPHA, EXTENDED, FILM };

static void good_webp(mrt_odd *o, int variant)
{
    mrt_odd_put(o, "RIFF\0\0\0\0WEBP", 12);
    if (variant == EXTENDED) put_extended(o, 0x10, W, H);
    if (variant == FILM) {
        put_extended(o, 0x02, W + 10, H + 6);
        put_chunk(o, "ANIM", "\xff\xff\xff\xff\0\0", 6);
        mrt_odd frame = {0};
        put(&frame, 2, 3, false), put(&frame, 1, 3, false), put(&frame, W - 1, 3, false);
        put(&frame, H - 1, 3, false), put(&frame, 100, 3, false), put(&frame, 0, 1, false);
        put_lossless(&frame, W, H, false);
        put_chunk(o, "ANMF", frame.data, frame.bytes);
        put_chunk(o, "ANMF", "nothing of use, and cut", 23);
        mrt_odd_free(&frame);
        end_riff(o);
        expect_webp(o, W + 10, H + 6, 4, 2);
        return;
    }
    put_lossless(o, W, H, variant == WITH_ALPHA || variant == EXTENDED);
    end_riff(o);
    expect_webp(o, W, H, 0, 0);
}

/* Its EXIF follows the picture. */
static void turned_webp(mrt_odd *o, int orientation)
{
    static const uint8_t exif[] = {'E',  'x', 'i', 'f', 0, 0, 'I', 'I', '*', 0, 8, 0, 0, 0, 1, 0,
                                   0x12, 1,   3,   0,   1, 0, 0,   0,   0,   0, 0, 0, 0, 0, 0, 0};
    uint8_t body[sizeof exif];
    memcpy(body, exif, sizeof exif);
    body[24] = (uint8_t)orientation;
    mrt_odd_put(o, "RIFF\0\0\0\0WEBP", 12);
    put_extended(o, 0x08, W, H);
    put_lossless(o, W, H, false);
    put_chunk(o, "EXIF", body, sizeof body);
    end_riff(o);
    expect_webp(o, W, H, 0, 0);
    uint8_t *stored = o->pixels.pixels, *upright = new_pixels(o, H, W, 3);
    for (uint32_t y = 0; y < W; y++) /* 6: the stored left is the top */
        for (uint32_t x = 0; x < H; x++)
            memcpy(upright + 3 * ((size_t)y * H + x), stored + 3 * ((size_t)(H - 1 - x) * W + y), 3);
    free(stored);
}

enum { CUT_HEAD, CUT_DATA, BAD_SIGN, OTHER_SIZE, FRAME_OUT, LARGE, NO_FRAME, LOSSY_BROKEN };

static void bad_webp(mrt_odd *o, int variant)
{
    good_webp(o, variant == OTHER_SIZE || variant == NO_FRAME ? EXTENDED
                 : variant == FRAME_OUT                       ? FILM
                                                              : PLAIN);
    drop_pixels(o);
    if (variant == CUT_HEAD) mrt_odd_splice(o, 22, o->bytes - 22, NULL, 0);
    if (variant == CUT_DATA) mrt_odd_splice(o, 45, o->bytes - 45, NULL, 0);
    if (variant == BAD_SIGN) o->data[20] = 0x2e;
    if (variant == OTHER_SIZE) o->data[24]++;
    if (variant == FRAME_OUT) o->data[12 + 18 + 14 + 8] = 200; /* half of x */
    if (variant == LARGE) memset(o->data + 21, 0xff, 4);
    if (variant == NO_FRAME) mrt_odd_splice(o, 30, o->bytes - 30, NULL, 0);
    if (variant == LOSSY_BROKEN) {
        mrt_odd_splice(o, 12, o->bytes - 12,
                       "VP8 \x10\0\0\0\x10\2\0\x9d\x01\x2a\x25\0\x15\0\xff\xff\xff\xff\xff\xff", 24);
    }
}

/* ---- TIFF ---- */

typedef struct tiff {
    unsigned bits, samples, kind;
    bool big_endian, big, planes;
    uint32_t tile, strip_rows; /* tile 0: strips of strip_rows */
    unsigned orientation;
} tiff;

static const tiff tiffs[] = {
    {8, 3, 2, false, false, false, 0, H, 1},  {8, 3, 2, true, false, false, 0, 4, 1},
    {8, 4, 2, false, false, false, 0, 5, 1},  {16, 3, 2, false, false, false, 0, 6, 1},
    {16, 3, 2, true, true, false, 0, 6, 1},   {8, 1, 1, false, false, false, 0, 7, 1},
    {8, 1, 0, false, true, false, 0, 7, 1},   {16, 1, 1, true, false, false, 0, 7, 1},
    {1, 1, 1, false, false, false, 0, 7, 1},  {1, 1, 0, false, false, false, 0, H, 1},
    {2, 1, 1, false, false, false, 0, H, 1},  {4, 1, 0, false, false, false, 0, H, 1},
    {8, 2, 1, false, false, false, 0, H, 1},  {8, 1, 3, false, false, false, 0, 8, 1},
    {4, 1, 3, true, false, false, 0, 8, 1},   {8, 4, 5, false, false, false, 0, 8, 1},
    {16, 4, 5, true, false, false, 0, 8, 1},  {8, 3, 2, false, false, true, 0, 8, 1},
    {16, 4, 2, true, false, true, 0, H, 1},   {8, 3, 2, false, false, false, 16, 0, 1},
    {8, 1, 1, true, false, false, 16, 0, 1},  {16, 3, 2, false, true, true, 16, 0, 1},
    {1, 1, 1, false, false, false, 16, 0, 1}, {8, 3, 2, false, false, false, 16, 0, 6},
    {8, 3, 2, false, false, false, 0, 4, 3},
};

static unsigned sample(uint32_t x, uint32_t y, unsigned s, unsigned depth)
{
    return (x * 2953 + y * 7919 + s * 21341 + x * y * 97) & ((1u << depth) - 1);
}

static unsigned colour(unsigned index, unsigned c) { return (index * 5003 + c * 20011 + 300) & 0xffff; }

/* Samples of a rectangle, which may go past the picture, each row filled up to a byte. */
static void put_rows(mrt_odd *o, const tiff *t, uint32_t x0, uint32_t y0, uint32_t w, uint32_t h, int plane)
{
    const unsigned each = plane >= 0 ? 1 : t->samples;
    for (uint32_t y = y0; y < y0 + h; y++) {
        uint8_t row[W * 8 + 512] = {0};
        size_t bit = 0;
        for (uint32_t x = x0; x < x0 + w; x++)
            for (unsigned s = 0; s < each; s++, bit += t->bits) {
                const unsigned v = sample(x, y, plane >= 0 ? (unsigned)plane : s, t->bits);
                if (t->bits == 16) {
                    row[bit / 8] = (uint8_t)(t->big_endian ? v >> 8 : v);
                    row[bit / 8 + 1] = (uint8_t)(t->big_endian ? v : v >> 8);
                } else {
                    row[bit / 8] |= (uint8_t)(v << (8 - t->bits - bit % 8));
                }
            }
        mrt_odd_put(o, row, (bit + 7) / 8);
    }
}

typedef struct pieces {
    uint64_t at[64], bytes[64];
    unsigned count;
} pieces;

static void put_piece(mrt_odd *o, pieces *p, const tiff *t, uint32_t x, uint32_t y, uint32_t w, uint32_t h,
                      int plane)
{
    p->at[p->count] = o->bytes;
    put_rows(o, t, x, y, w, h, plane);
    p->bytes[p->count] = o->bytes - p->at[p->count];
    p->count++;
}

static void put_data(mrt_odd *o, pieces *p, const tiff *t)
{
    for (int plane = t->planes ? 0 : -1; plane < (t->planes ? (int)t->samples : 0); plane++) {
        const uint32_t step_y = t->tile ? t->tile : t->strip_rows, step_x = t->tile ? t->tile : W;
        for (uint32_t y = 0; y < H; y += step_y)
            for (uint32_t x = 0; x < W; x += step_x)
                put_piece(o, p, t, x, y, step_x, t->tile || y + step_y <= H ? step_y : H - y, plane);
    }
}

typedef struct directory {
    struct {
        unsigned tag, type;
        uint64_t count, value; /* the numbers one above the other where they fit, else where they lie */
    } entry[20];
    unsigned count;
} directory;

enum { SHORT = 3, LONG = 4 };
static unsigned size_of(unsigned type) { return type == SHORT ? 2 : 4; }

/* Its numbers, which are written now where they do not fit into the entry. */
static void add(mrt_odd *o, directory *d, const tiff *t, unsigned tag, unsigned type, uint64_t count,
                const uint64_t *v)
{
    const unsigned size = size_of(type);
    uint64_t value = 0;
    if (count * size > (t->big ? 8u : 4u)) {
        if (o->bytes & 1) put(o, 0, 1, false);
        value = o->bytes;
        for (uint64_t k = 0; k < count; k++) put(o, v[k], size, t->big_endian);
    } else {
        for (uint64_t k = 0; k < count; k++) value |= v[k] << 8 * size * k;
    }
    d->entry[d->count].tag = tag, d->entry[d->count].type = type;
    d->entry[d->count].count = count, d->entry[d->count++].value = value;
}

static void add_one(mrt_odd *o, directory *d, const tiff *t, unsigned tag, unsigned type, uint64_t v)
{
    add(o, d, t, tag, type, 1, &v);
}

static void put_directory(mrt_odd *o, const directory *d, const tiff *t)
{
    const unsigned word = t->big ? 8 : 4;
    put(o, d->count, t->big ? 8 : 2, t->big_endian);
    for (unsigned e = 0; e < d->count; e++) {
        const unsigned size = size_of(d->entry[e].type);
        const uint64_t count = d->entry[e].count;
        put(o, d->entry[e].tag, 2, t->big_endian), put(o, d->entry[e].type, 2, t->big_endian);
        put(o, count, word, t->big_endian);
        if (count * size > word) put(o, d->entry[e].value, word, t->big_endian);
        for (unsigned k = 0; count * size <= word && k < word / size; k++)
            put(o, d->entry[e].value >> 8 * size * k, size, t->big_endian);
    }
    put(o, 0, word, t->big_endian);
}

static void write_tiff(mrt_odd *o, const tiff *t)
{
    pieces p = {.count = 0};
    directory d = {.count = 0};
    uint64_t colours[3 * 256], depths[8];
    const unsigned all = t->kind == 3 ? 3u << t->bits : 0, word = t->big ? 8 : 4;
    for (unsigned k = 0; k < 8; k++) depths[k] = t->bits;
    for (unsigned k = 0; k < all; k++) colours[k] = colour(k % (all / 3), k / (all / 3));
    mrt_odd_put(o, t->big_endian ? "MM" : "II", 2);
    put(o, t->big ? 43 : 42, 2, t->big_endian);
    if (t->big) put(o, 8, 2, t->big_endian), put(o, 0, 2, t->big_endian);
    const size_t first = o->bytes;
    put(o, 0, word, t->big_endian);
    put_data(o, &p, t);
    add_one(o, &d, t, 256, LONG, W), add_one(o, &d, t, 257, LONG, H);
    add(o, &d, t, 258, SHORT, t->samples, depths);
    add_one(o, &d, t, 259, SHORT, 1), add_one(o, &d, t, 262, SHORT, t->kind);
    if (!t->tile) add(o, &d, t, 273, LONG, p.count, p.at);
    add_one(o, &d, t, 274, SHORT, t->orientation), add_one(o, &d, t, 277, SHORT, t->samples);
    if (!t->tile) add_one(o, &d, t, 278, LONG, t->strip_rows), add(o, &d, t, 279, LONG, p.count, p.bytes);
    add_one(o, &d, t, 284, SHORT, t->planes ? 2 : 1);
    if (all) add(o, &d, t, 320, SHORT, all, colours);
    if (t->tile) {
        add_one(o, &d, t, 322, LONG, t->tile), add_one(o, &d, t, 323, LONG, t->tile);
        add(o, &d, t, 324, LONG, p.count, p.at), add(o, &d, t, 325, LONG, p.count, p.bytes);
    }
    if (t->samples > (t->kind == 5 ? 4u : t->kind == 2 ? 3u : 1u)) add_one(o, &d, t, 338, SHORT, 2);
    add_one(o, &d, t, 65000, SHORT, 1); /* nobody's */
    if (o->bytes & 1) put(o, 0, 1, false);
    mrt_odd head = {0};
    put(&head, o->bytes, word, t->big_endian);
    memcpy(o->data + first, head.data, head.bytes);
    mrt_odd_free(&head);
    put_directory(o, &d, t);
}

static void pixel_of(const tiff *t, uint32_t x, uint32_t y, uint8_t *to)
{
    unsigned v[4];
    const unsigned most = t->bits < 8 ? (1u << t->bits) - 1 : 255;
    for (unsigned s = 0; s < 4; s++) v[s] = sample(x, y, s, t->bits) >> (t->bits == 16 ? 8 : 0);
    for (unsigned c = 0; c < 3; c++)
        to[c] = (uint8_t)(t->kind == 3   ? colour(v[0], c) >> 8
                          : t->kind == 2 ? v[c]
                          : t->kind == 5 ? ((255 - v[c]) * (255 - v[3]) + 127) / 255
                          : t->kind == 1 ? v[0] * 255 / most
                                         : 255 - v[0] * 255 / most);
}

static void good_tiff(mrt_odd *o, int variant)
{
    const tiff *t = &tiffs[variant];
    const bool gray = t->kind <= 1, swap = t->orientation > 4;
    const uint32_t w = swap ? H : W, h = swap ? W : H, channels = gray ? 1 : 3;
    write_tiff(o, t);
    uint8_t *p = new_pixels(o, w, h, channels), rgb[3];
    for (uint32_t y = 0; y < H; y++)
        for (uint32_t x = 0; x < W; x++) { /* 3: turned by half; 6: the stored left is the top */
            const uint32_t to_x = t->orientation == 6   ? H - 1 - y
                                  : t->orientation == 3 ? W - 1 - x
                                                        : x,
                           to_y = t->orientation == 6   ? x
                                  : t->orientation == 3 ? H - 1 - y
                                                        : y;
            pixel_of(t, x, y, rgb);
            memcpy(p + channels * ((size_t)to_y * w + to_x), rgb, channels);
        }
}

/* Where the entry of a tag is in a classic file. */
static size_t find_entry(const mrt_odd *o, const tiff *t, unsigned tag)
{
    size_t at = t->big_endian ? mri_be32(o->data + 4) : mri_le32(o->data + 4);
    for (at += 2; at + 12 <= o->bytes; at += 12)
        if ((t->big_endian ? mri_be16(o->data + at) : mri_le16(o->data + at)) == tag) return at;
    abort();
}

/* variant: which tag, and what its value becomes. */
static const struct {
    unsigned tag, value;
    int of;
} changes[] = {
    {256, 0, 0},      {257, 30000 << 1, 0}, {258, 32, 5}, {259, 50000, 0},    {262, 8, 0},   {277, 200, 5},
    {273, 100000, 0}, {278, 0, 0},          {322, 0, 19}, {322, 1 << 19, 19}, {65000, 0, 0},
};

static void bad_tiff(mrt_odd *o, int variant)
{
    const tiff *t = &tiffs[changes[variant].of];
    write_tiff(o, t);
    const size_t at = find_entry(o, t, changes[variant].tag);
    const bool narrow = mri_le16(o->data + at + 2) == 3;
    const unsigned v = changes[variant].value;
    if (changes[variant].tag == 65000) mri_put_le16(o->data + at, 50706); /* a camera's raw photograph */
    else if (narrow) mri_put_le16(o->data + at + 8, (uint16_t)v);
    else mri_put_le32(o->data + at + 8, v);
    if (changes[variant].tag == 257) mri_put_le32(o->data + find_entry(o, t, 256) + 8, 60000);
}

static void cut_tiff(mrt_odd *o, int bytes)
{
    write_tiff(o, &tiffs[0]);
    mrt_odd_splice(o, (size_t)bytes, o->bytes - (size_t)bytes, NULL, 0);
}

const mrt_odd_case mrt_odd_webp[] = {
    {"plain.webp", good_webp, PLAIN, MR_OK, NULL, NULL, 0},
    {"alpha.webp", good_webp, WITH_ALPHA, MR_OK, NULL, NULL, 0},
    {"extended.webp", good_webp, EXTENDED, MR_OK, NULL, NULL, 0},
    {"film.webp", good_webp, FILM, MR_OK, NULL, NULL, 0},
    {"turned.webp", turned_webp, 6, MR_OK, NULL, NULL, 0},
    {"cut-head.webp", bad_webp, CUT_HEAD, MR_EFORMAT, "WebP: ends at byte 22 before its first picture", NULL,
     0},
    {"cut-data.webp", bad_webp, CUT_DATA, MR_EFORMAT, "WebP: the data end before the last row: truncated",
     NULL, MRT_ODD_BELOW},
    {"bad-sign.webp", bad_webp, BAD_SIGN, MR_EFORMAT, "WebP: the frame does not begin as one of VP8L", NULL,
     0},
    {"other-size.webp", bad_webp, OTHER_SIZE, MR_EFORMAT,
     "WebP: a frame of 37 x 21 pixels at 0, 0 in a picture of 38 x 21", NULL, 0},
    {"frame-out.webp", bad_webp, FRAME_OUT, MR_EFORMAT,
     "WebP: a frame of 37 x 21 pixels at 400, 2 in a picture of 47 x 27", NULL, 0},
    {"large.webp", bad_webp, LARGE, MR_ELIMIT, "16384 x 16384", NULL, 0},
    {"no-frame.webp", bad_webp, NO_FRAME, MR_EFORMAT, "WebP: ends at byte 30 before its first picture", NULL,
     0},
    {"lossy-broken.webp", bad_webp, LOSSY_BROKEN, MR_EFORMAT, "WebP: ", NULL, 0},
    {0},
};

const mrt_odd_case mrt_odd_tiff[] = {
    {"rgb.tif", good_tiff, 0, MR_OK, NULL, NULL, 0},
    {"rgb-big-endian.tif", good_tiff, 1, MR_OK, NULL, NULL, 0},
    {"rgba.tif", good_tiff, 2, MR_OK, NULL, NULL, 0},
    {"rgb-16.tif", good_tiff, 3, MR_OK, NULL, NULL, 0},
    {"rgb-16-big.tiff", good_tiff, 4, MR_OK, NULL, NULL, 0},
    {"gray.tif", good_tiff, 5, MR_OK, NULL, NULL, 0},
    {"gray-white-0.tif", good_tiff, 6, MR_OK, NULL, NULL, 0},
    {"gray-16.tif", good_tiff, 7, MR_OK, NULL, NULL, 0},
    {"gray-1.tif", good_tiff, 8, MR_OK, NULL, NULL, 0},
    {"gray-1-white-0.tif", good_tiff, 9, MR_OK, NULL, NULL, 0},
    {"gray-2.tif", good_tiff, 10, MR_OK, NULL, NULL, 0},
    {"gray-4-white-0.tif", good_tiff, 11, MR_OK, NULL, NULL, 0},
    {"gray-alpha.tif", good_tiff, 12, MR_OK, NULL, NULL, 0},
    {"palette.tif", good_tiff, 13, MR_OK, NULL, NULL, 0},
    {"palette-4.tif", good_tiff, 14, MR_OK, NULL, NULL, 0},
    {"cmyk.tif", good_tiff, 15, MR_OK, NULL, NULL, 0},
    {"cmyk-16.tif", good_tiff, 16, MR_OK, NULL, NULL, 0},
    {"planes.tif", good_tiff, 17, MR_OK, NULL, NULL, 0},
    {"planes-rgba-16.tif", good_tiff, 18, MR_OK, NULL, NULL, 0},
    {"tiles.tif", good_tiff, 19, MR_OK, NULL, NULL, 0},
    {"tiles-gray.tif", good_tiff, 20, MR_OK, NULL, NULL, 0},
    {"tiles-planes-16.tif", good_tiff, 21, MR_OK, NULL, NULL, 0},
    {"tiles-gray-1.tif", good_tiff, 22, MR_OK, NULL, NULL, 0},
    {"tiles-turned.tif", good_tiff, 23, MR_OK, NULL, NULL, 0},
    {"half-turned.tif", good_tiff, 24, MR_OK, NULL, NULL, 0},
    {"no-width.tif", bad_tiff, 0, MR_EFORMAT, "TIFF: a picture of 0 x 21 pixels: damaged", NULL, 0},
    {"large.tif", bad_tiff, 1, MR_ELIMIT, "60000 x 60000", NULL, 0},
    {"bits-32.tif", bad_tiff, 2, MR_EUNSUPPORTED, "TIFF: 32 bits per sample; expected 8 or 16", NULL, 0},
    {"zstd.tif", bad_tiff, 3, MR_EUNSUPPORTED, "TIFF: compression 50000; expected none, CCITT", NULL, 0},
    {"lab.tif", bad_tiff, 4, MR_EUNSUPPORTED, "TIFF: pixels of kind 8; expected gray, palette, RGB", NULL, 0},
    {"samples-200.tif", bad_tiff, 5, MR_EUNSUPPORTED, "TIFF: 200 samples per pixel; expected 1 to 8", NULL,
     0},
    {"strip-past-end.tif", bad_tiff, 6, MR_EFORMAT, "TIFF: libtiff cannot decode a row: ", NULL, 0},
    {"strip-no-rows.tif", bad_tiff, 7, MR_EFORMAT, "TIFF: libtiff ", NULL, 0},
    {"no-tile.tif", bad_tiff, 8, MR_EFORMAT, "TIFF: tiles of 0 x 16 pixels: damaged", NULL, 0},
    {"wide-tile.tif", bad_tiff, 9, MR_EUNSUPPORTED,
     "TIFF: tiles of 524288 x 16 pixels; expected at most 8 MiB", NULL, 0},
    {"raw-photograph.tif", bad_tiff, 10, MR_EUNSUPPORTED,
     "TIFF: its first picture is a small copy of another", NULL, 0},
    {"cut-head.tif", cut_tiff, 9, MR_EFORMAT, "TIFF: its directory lies past its end at byte 9", NULL, 0},
    {"cut-data.tif", cut_tiff, 900, MR_EFORMAT, "TIFF: its directory lies past its end at byte 900", NULL, 0},
    {0},
};
