/* tests/pipeline/decode/odd_png.c: PNGs written out here, chunk by chunk: every depth, palette, interlacing
 * and filter, and every way to be damaged. What their pixels are is computed from the samples that went
 * in. */
#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>

#include "base/util.h"
#include "mrt.h"
#include "tests/pipeline/decode/odd.h"

enum { W = 19, H = 13 }; /* seven passes of interlacing, none of them empty */

static void put32(uint8_t *p, uint32_t v)
{
    for (int k = 0; k < 4; k++) p[k] = (uint8_t)(v >> (24 - 8 * k));
}

static void chunk(mrt_odd *o, const char *type, const void *body, size_t bytes)
{
    uint8_t head[8], tail[4];
    put32(head, (uint32_t)bytes);
    memcpy(head + 4, type, 4);
    const size_t at = o->bytes + 4;
    mrt_odd_put(o, head, 8);
    mrt_odd_put(o, body, bytes);
    put32(tail, crc32_gzip_refl(0, o->data + at, 4 + bytes));
    mrt_odd_put(o, tail, 4);
}

static void begin(mrt_odd *o, uint32_t w, uint32_t h, int depth, int colour, int interlace)
{
    uint8_t head[13] = {0};
    put32(head, w);
    put32(head + 4, h);
    head[8] = (uint8_t)depth;
    head[9] = (uint8_t)colour;
    head[12] = (uint8_t)interlace;
    mrt_odd_put(o, "\x89PNG\r\n\x1a\n", 8);
    chunk(o, "IHDR", head, sizeof head);
}

/* malloc'd */
static uint8_t *packed(const void *data, size_t bytes, size_t *out_bytes)
{
    const size_t room = bytes / 2 + bytes + 4096;
    uint8_t *out = malloc(room);
    struct isal_zstream s;
    isal_deflate_stateless_init(&s);
    s.gzip_flag = IGZIP_ZLIB;
    s.flush = NO_FLUSH;
    s.end_of_stream = 1;
    s.next_in = (uint8_t *)(uintptr_t)data;
    s.avail_in = (uint32_t)bytes;
    s.next_out = out;
    s.avail_out = (uint32_t)room;
    if (isal_deflate_stateless(&s) != COMP_OK) abort();
    *out_bytes = s.total_out;
    return out;
}

static void image_data(mrt_odd *o, const char *type, const void *rows, size_t bytes, size_t in_front)
{
    size_t n;
    uint8_t *z = packed(rows, bytes, &n), *body = calloc(1, n + in_front);
    memcpy(body + in_front, z, n);
    if (in_front) body[3] = 2; /* of fdAT: its number */
    chunk(o, type, body, n + in_front);
    free(body);
    free(z);
}

/* ---- samples ---- */

static const int channels_of[7] = {1, 0, 3, 1, 2, 0, 4};

static unsigned sample(uint32_t x, uint32_t y, int c, int depth)
{
    const unsigned v = x * 2953 + y * 7919 + (unsigned)c * 21341 + (x * y) * 97;
    return v & ((1u << depth) - 1);
}

static void entry(unsigned index, uint8_t rgb[3])
{
    rgb[0] = (uint8_t)(index * 11);
    rgb[1] = (uint8_t)(250 - index * 3);
    rgb[2] = (uint8_t)(index * 5 + 1);
}

static int paeth(int a, int b, int c)
{
    const int p = a + b - c, pa = abs(p - a), pb = abs(p - b), pc = abs(p - c);
    return pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
}

/* One pass: every dx-th pixel of every dy-th row; each row with the next filter. Returns where it ends. */
static uint8_t *pass(uint8_t *out, uint32_t w, uint32_t h, int depth, int colour, const uint8_t place[4])
{
    const int count = channels_of[colour];
    const size_t step = (size_t)(count * depth + 7) / 8;
    uint8_t row[512] = {0}, above[512] = {0};
    int filter = 0;
    for (uint32_t y = place[1]; y < h; y += place[3]) {
        size_t bit = 0;
        if (place[0] >= w) break;
        memset(row, 0, sizeof row);
        for (uint32_t x = place[0]; x < w; x += place[2])
            for (int c = 0; c < count; c++, bit += (size_t)depth) {
                const unsigned v = sample(x, y, c, depth);
                if (depth == 16) row[bit / 8] = (uint8_t)(v >> 8);
                if (depth == 16) row[bit / 8 + 1] = (uint8_t)v;
                else row[bit / 8] |= (uint8_t)(v << (8 - depth - (int)(bit % 8)));
            }
        const size_t bytes = (bit + 7) / 8;
        *out++ = (uint8_t)filter;
        for (size_t k = 0; k < bytes; k++) {
            const int left = k >= step ? row[k - step] : 0, up = above[k],
                      corner = k >= step ? above[k - step] : 0;
            const int guess[5] = {0, left, up, (left + up) / 2, paeth(left, up, corner)};
            *out++ = (uint8_t)(row[k] - guess[filter]);
        }
        memcpy(above, row, sizeof above);
        filter = (filter + 1) % 5;
    }
    return out;
}

static size_t rows_of(uint8_t *out, uint32_t w, uint32_t h, int depth, int colour, int interlace)
{
    static const uint8_t whole[4] = {0, 0, 1, 1},
                         seven[7][4] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                        {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};
    uint8_t *end = out;
    if (!interlace) end = pass(end, w, h, depth, colour, whole);
    for (int k = 0; interlace && k < 7; k++) end = pass(end, w, h, depth, colour, seven[k]);
    return (size_t)(end - out);
}

/* What comes of the samples: high bytes, gray spread over 0..255, the palette's colours, no alpha. */
static void expect(mrt_odd *o, int depth, int colour)
{
    const uint32_t channels = colour == 0 || colour == 4 ? 1 : 3;
    o->pixels = (mr_image){W, H, channels, malloc((size_t)W * H * channels)};
    uint8_t *p = o->pixels.pixels;
    for (uint32_t y = 0; y < H; y++)
        for (uint32_t x = 0; x < W; x++, p += channels)
            for (uint32_t c = 0; c < channels; c++) {
                const unsigned v = sample(x, y, (int)c, depth);
                uint8_t rgb[3];
                entry(sample(x, y, 0, depth), rgb);
                if (colour == 3) p[c] = rgb[c];
                else p[c] = (uint8_t)(depth == 16 ? v >> 8 : v * 255 / ((1u << depth) - 1));
            }
}

static void palette(mrt_odd *o, unsigned entries)
{
    uint8_t body[768];
    for (unsigned k = 0; k < entries; k++) entry(k, body + 3 * k);
    chunk(o, "PLTE", body, 3 * (size_t)entries);
}

/* A palette is as long as the depth allows; transparency is of its first two entries, or of one colour. */
static void plain(mrt_odd *o, int depth, int colour, int interlace, bool transparent)
{
    uint8_t rows[4096];
    begin(o, W, H, depth, colour, interlace);
    if (colour == 3) palette(o, 1u << depth);
    if (transparent) chunk(o, "tRNS", "\0\7\0\7\0\7", colour == 3 ? 2 : 2 * (size_t)channels_of[colour]);
    image_data(o, "IDAT", rows, rows_of(rows, W, H, depth, colour, interlace), 0);
    chunk(o, "IEND", NULL, 0);
    expect(o, depth, colour);
}

/* variant: depth, colour type, interlaced, with tRNS: DDCIT. */
static void kind(mrt_odd *o, int variant)
{
    plain(o, variant / 1000, variant / 100 % 10, variant / 10 % 10, variant % 10);
}

/* ---- chunks ---- */

static size_t find(const mrt_odd *o, const char *type)
{
    for (size_t at = 8; at + 12 <= o->bytes; at += 12 + (size_t)mri_be32(o->data + at))
        if (memcmp(o->data + at + 4, type, 4) == 0) return at;
    abort();
}

static void bad_sum(mrt_odd *o, int variant)
{
    static const char *const types[] = {"IHDR", "PLTE", "IDAT", "tEXt", "IEND", "gAMA"};
    const size_t at = 33;
    plain(o, 8, 3, 0, false);
    mrt_odd ancillary = {0};
    chunk(&ancillary, variant == 5 ? "gAMA" : "tEXt", "\0\0\xb1\x8f", 4);
    mrt_odd_splice(o, at, 0, ancillary.data, ancillary.bytes);
    mrt_odd_free(&ancillary);
    const size_t here = find(o, types[variant]);
    o->data[here + 8 + mri_be32(o->data + here)] ^= 1;
}

static void length_of(mrt_odd *o, int variant)
{
    static const uint32_t lengths[] = {0x80000000u, 0xffffffffu, 0x7fffffffu, 100000};
    plain(o, 8, 2, 0, false);
    put32(o->data + find(o, "IDAT"), lengths[variant]);
}

static void sides(mrt_odd *o, int variant)
{
    static const uint32_t side[][2] = {
        {0, 5}, {5, 0}, {0x7fffffff, 1}, {0x7fffffff, 0x7fffffff}, {0x80000000u, 1}, {30000, 30000}};
    uint8_t row[64] = {0};
    begin(o, side[variant][0], side[variant][1], 8, 2, 0);
    image_data(o, "IDAT", row, sizeof row, 0);
    chunk(o, "IEND", NULL, 0);
}

static void header(mrt_odd *o, int variant) /* depth, colour type, interlace */
{
    uint8_t row[64] = {0};
    begin(o, 4, 4, variant / 100, variant / 10 % 10, variant % 10);
    image_data(o, "IDAT", row, sizeof row, 0);
    chunk(o, "IEND", NULL, 0);
}

static void unknown(mrt_odd *o, int critical)
{
    plain(o, 8, 2, 0, false);
    mrt_odd more = {0};
    uint8_t noise[300];
    mrt_noise(noise, sizeof noise, 4);
    chunk(&more, critical ? "MiLL" : "miLl", noise, sizeof noise);
    mrt_odd_splice(o, 33, 0, more.data, more.bytes);
    mrt_odd_free(&more);
}

/* EXIF, before the image data or after them, whole or not: variant 10 * place + damage. */
static void exif(mrt_odd *o, int variant)
{
    static const uint8_t part[] = "MM\0*\0\0\0\x08\0\1\1\x12\0\3\0\0\0\1\0\6\0\0\0\0\0";
    mrt_odd more = {0};
    plain(o, 8, 2, 0, false);
    chunk(&more, "eXIf", part, variant % 10 == 0 ? 26 : variant % 10 == 1 ? 15 : 0);
    if (variant % 10 == 2) chunk(&more, "eXIf", part, 26);
    mrt_odd_splice(o, variant / 10 ? find(o, "IEND") : 33, 0, more.data, more.bytes);
    mrt_odd_free(&more);
    if (variant % 10) return;
    uint8_t *upright = malloc(W * H * 3); /* 6: the stored left side is up */
    for (uint32_t y = 0; y < W; y++)
        for (uint32_t x = 0; x < H; x++)
            memcpy(upright + 3 * (y * H + x), o->pixels.pixels + 3 * ((H - 1 - x) * W + y), 3);
    free(o->pixels.pixels);
    o->pixels = (mr_image){H, W, 3, upright};
}

static void of_apple(mrt_odd *o, int variant)
{
    (void)variant;
    plain(o, 8, 6, 0, false);
    mrt_odd more = {0};
    chunk(&more, "CgBI", "\x50\0\x20\2", 4);
    mrt_odd_splice(o, 8, 0, more.data, more.bytes);
    mrt_odd_free(&more);
}

/* ---- image data ---- */

/* A million pixels of each kilobyte: fewer than the header says, or far more: they are nobody's. */
static void bomb(mrt_odd *o, int side)
{
    const size_t bytes = 30 << 20;
    uint8_t *zeros = calloc(1, bytes);
    begin(o, (uint32_t)side, (uint32_t)side, 8, 0, 0);
    image_data(o, "IDAT", zeros, bytes, 0);
    chunk(o, "IEND", NULL, 0);
    free(zeros);
    if (side < 1000)
        o->pixels = (mr_image){(uint32_t)side, (uint32_t)side, 1, calloc((size_t)side, (size_t)side)};
}

static void rows_missing(mrt_odd *o, int more)
{
    uint8_t rows[4096] = {0};
    const size_t all = rows_of(rows, W, H, 8, 2, 0);
    begin(o, W, H, 8, 2, 0);
    image_data(o, "IDAT", rows, all + (size_t)more, 0);
    chunk(o, "IEND", NULL, 0);
    if (more >= 0) expect(o, 8, 2);
}

static void bad_filter(mrt_odd *o, int filter)
{
    uint8_t rows[4096] = {0};
    const size_t all = rows_of(rows, W, H, 8, 0, 0);
    rows[5 * (W + 1)] = (uint8_t)filter;
    begin(o, W, H, 8, 0, 0);
    image_data(o, "IDAT", rows, all, 0);
    chunk(o, "IEND", NULL, 0);
}

/* The chunk's checksum is right, its contents are not. */
static void bad_stream(mrt_odd *o, int variant)
{
    uint8_t rows[4096];
    size_t n;
    const size_t all = rows_of(rows, W, H, 8, 2, 0);
    uint8_t *z = packed(rows, all, &n);
    if (variant == 0) z[0] = 0x79;   /* no method of zlib */
    if (variant == 1) z[1] |= 0x20;  /* a dictionary nobody has */
    if (variant == 2) z[n - 1] ^= 1; /* its sum */
    if (variant == 3) z[n / 2] ^= 0xff;
    if (variant == 4) n -= 4; /* no sum */
    if (variant == 5) n /= 2;
    begin(o, W, H, 8, 2, 0);
    chunk(o, "IDAT", z, variant == 6 ? 0 : n);
    chunk(o, "IEND", NULL, 0);
    free(z);
    if (variant == 4) expect(o, 8, 2);
}

/* One byte a chunk, with empty ones between. */
static void many_chunks(mrt_odd *o, int variant)
{
    uint8_t rows[4096];
    size_t n;
    const size_t all = rows_of(rows, W, H, 8, 2, 0);
    uint8_t *z = packed(rows, all, &n);
    begin(o, W, H, 8, 2, 0);
    for (size_t k = 0; k < n; k++) {
        chunk(o, "IDAT", z + k, 1);
        if (k % 50 == 3) chunk(o, variant ? "tEXt" : "IDAT", "a\0b", variant ? 3 : 0);
    }
    chunk(o, "IEND", NULL, 0);
    expect(o, 8, 2);
    free(z);
}

/* An animation: its first picture is the one of the file. */
static void animated(mrt_odd *o, int variant)
{
    uint8_t rows[4096], control[26] = {0};
    put32(control + 4, W);
    put32(control + 8, H);
    begin(o, W, H, 8, 2, 0);
    chunk(o, "acTL", "\0\0\0\2\0\0\0\0", 8);
    if (variant == 0) chunk(o, "fcTL", control, sizeof control);
    image_data(o, "IDAT", rows, rows_of(rows, W, H, 8, 2, 0), 0);
    for (int k = 0; k < 2; k++) {
        control[3] = (uint8_t)(2 * k + 1);
        chunk(o, "fcTL", control, sizeof control);
        memset(rows, k, sizeof rows);
        image_data(o, "fdAT", rows, (W * 3 + 1) * H, 4);
    }
    chunk(o, "IEND", NULL, 0);
    expect(o, 8, 2);
}

/* ---- palettes ---- */

static void bad_palette(mrt_odd *o, int variant)
{
    uint8_t rows[4096];
    begin(o, W, H, 4, 3, 0);
    if (variant == 1) chunk(o, "PLTE", "\1\2\3\4", 4);
    if (variant == 2) chunk(o, "PLTE", NULL, 0);
    if (variant == 3) palette(o, 5); /* pixels go up to 15 */
    if (variant == 4) palette(o, 17);
    if (variant == 5) palette(o, 16);
    if (variant == 5) palette(o, 16);
    image_data(o, "IDAT", rows, rows_of(rows, W, H, 4, 3, 0), 0);
    if (variant == 6) palette(o, 16);
    chunk(o, "IEND", NULL, 0);
}

/* ---- the end ---- */

static void ending(mrt_odd *o, int variant)
{
    plain(o, 8, 2, 0, false);
    uint8_t noise[1000];
    mrt_noise(noise, sizeof noise, 4);
    const size_t end = find(o, "IEND"), data = find(o, "IDAT");
    if (variant == 0) mrt_odd_splice(o, end, 12, NULL, 0);
    if (variant == 1) mrt_odd_put(o, noise, sizeof noise);
    if (variant == 2) mrt_odd_splice(o, data + 8 + 20, o->bytes - data - 28, NULL, 0);
    if (variant == 3) mrt_odd_splice(o, 20, o->bytes - 20, NULL, 0);
    if (variant == 4) mrt_odd_splice(o, data, end - data, NULL, 0);
}

static void long_text(mrt_odd *o, int megabytes)
{
    const size_t bytes = (size_t)megabytes << 20;
    uint8_t *text = malloc(bytes);
    plain(o, 8, 2, 0, false);
    memset(text, 'x', bytes);
    memcpy(text, "Comment", 8);
    mrt_odd more = {0};
    chunk(&more, "tEXt", text, bytes);
    mrt_odd_splice(o, 33, 0, more.data, more.bytes);
    mrt_odd_free(&more);
    free(text);
}

/* A profile or comment that unpacks to 100 MB. */
static void packed_text(mrt_odd *o, int variant)
{
    const size_t bytes = 100 << 20;
    uint8_t *zeros = calloc(1, bytes);
    size_t n;
    uint8_t *z = packed(zeros, bytes, &n), *body = malloc(n + 8);
    memcpy(body, "name\0\0", 6);
    memcpy(body + 6, z, n);
    plain(o, 8, 2, 0, false);
    mrt_odd more = {0};
    chunk(&more, variant ? "iCCP" : "zTXt", body, n + 6);
    mrt_odd_splice(o, 33, 0, more.data, more.bytes);
    mrt_odd_free(&more);
    free(body);
    free(z);
    free(zeros);
}

const mrt_odd_case mrt_odd_png[] = {
    {"gray-1.png", kind, 1000, MR_OK, NULL, NULL, 0},
    {"gray-2.png", kind, 2000, MR_OK, NULL, NULL, 0},
    {"gray-4.png", kind, 4000, MR_OK, NULL, NULL, 0},
    {"gray-8.png", kind, 8000, MR_OK, NULL, NULL, 0},
    {"gray-16.png", kind, 16000, MR_OK, NULL, NULL, 0},
    {"rgb-8.png", kind, 8200, MR_OK, NULL, NULL, 0},
    {"rgb-16.png", kind, 16200, MR_OK, NULL, NULL, 0},
    {"gray-alpha-8.png", kind, 8400, MR_OK, NULL, NULL, 0},
    {"gray-alpha-16.png", kind, 16400, MR_OK, NULL, NULL, 0},
    {"rgba-8.png", kind, 8600, MR_OK, NULL, NULL, 0},
    {"rgba-16.png", kind, 16600, MR_OK, NULL, NULL, 0},
    {"palette-1.png", kind, 1300, MR_OK, NULL, NULL, 0},
    {"palette-2-trns.png", kind, 2301, MR_OK, NULL, NULL, 0},
    {"palette-4-trns.png", kind, 4301, MR_OK, NULL, NULL, 0},
    {"palette-8-trns.png", kind, 8301, MR_OK, NULL, NULL, 0},
    {"gray-1-trns.png", kind, 1001, MR_OK, NULL, NULL, 0},
    {"gray-8-trns.png", kind, 8001, MR_OK, NULL, NULL, 0},
    {"gray-16-trns.png", kind, 16001, MR_OK, NULL, NULL, 0},
    {"rgb-16-trns.png", kind, 16201, MR_OK, NULL, NULL, 0},
    {"adam7-gray-1.png", kind, 1010, MR_OK, NULL, NULL, 0},
    {"adam7-gray-2.png", kind, 2010, MR_OK, NULL, NULL, 0},
    {"adam7-gray-4.png", kind, 4010, MR_OK, NULL, NULL, 0},
    {"adam7-gray-8.png", kind, 8010, MR_OK, NULL, NULL, 0},
    {"adam7-gray-16.png", kind, 16010, MR_OK, NULL, NULL, 0},
    {"adam7-rgb-8.png", kind, 8210, MR_OK, NULL, NULL, 0},
    {"adam7-rgb-16.png", kind, 16210, MR_OK, NULL, NULL, 0},
    {"adam7-palette-1.png", kind, 1310, MR_OK, NULL, NULL, 0},
    {"adam7-palette-4.png", kind, 4311, MR_OK, NULL, NULL, 0},
    {"adam7-palette-8.png", kind, 8311, MR_OK, NULL, NULL, 0},
    {"adam7-rgba-16.png", kind, 16610, MR_OK, NULL, NULL, 0},
    {"bad-crc-ihdr.png", bad_sum, 0, MR_EFORMAT, "PNG: IHDR states CRC", NULL, 0},
    {"bad-crc-plte.png", bad_sum, 1, MR_EFORMAT, "PNG: chunk PLTE at byte ", NULL, 0},
    {"bad-crc-idat.png", bad_sum, 2, MR_EFORMAT, "PNG: chunk IDAT at byte ", NULL, 0},
    {"bad-crc-text.png", bad_sum, 3, MR_EFORMAT, "PNG: chunk tEXt at byte ", NULL, 0},
    {"bad-crc-iend.png", bad_sum, 4, MR_EFORMAT, "PNG: chunk IEND at byte ", NULL, 0},
    {"bad-crc-gama.png", bad_sum, 5, MR_EFORMAT, "PNG: chunk gAMA at byte ", NULL, 0},
    {"length-2-31.png", length_of, 0, MR_EFORMAT, "PNG: chunk IDAT at byte 33 has 2147483648 bytes; expected",
     NULL, 0},
    {"length-2-32.png", length_of, 1, MR_EFORMAT, "PNG: chunk IDAT at byte 33 has 4294967295 bytes; expected",
     NULL, 0},
    {"length-max.png", length_of, 2, MR_EFORMAT, "PNG: chunk IDAT at byte 33 has 2147483647 bytes", NULL, 0},
    {"length-past-end.png", length_of, 3, MR_EFORMAT, "PNG: chunk IDAT at byte 33 has 100000 bytes", NULL, 0},
    {"no-width.png", sides, 0, MR_EFORMAT, "PNG: size 0 x 5; expected 1 to 2147483647 each", NULL, 0},
    {"no-height.png", sides, 1, MR_EFORMAT, "PNG: size 5 x 0; expected 1 to 2147483647 each", NULL, 0},
    {"widest.png", sides, 2, MR_ELIMIT, "2147483647 x 1", NULL, 0},
    {"largest.png", sides, 3, MR_ELIMIT, "2147483647 x 2147483647", NULL, 0},
    {"too-wide.png", sides, 4, MR_EFORMAT, "PNG: size 2147483648 x 1; expected 1 to 2147483647 each", NULL,
     0},
    {"large.png", sides, 5, MR_ELIMIT, "30000 x 30000", NULL, 0},
    {"depth-3.png", header, 300, MR_EFORMAT, "3 bits per sample do not go with colour type 0", NULL, 0},
    {"depth-4-rgb.png", header, 420, MR_EFORMAT, "4 bits per sample do not go with colour type 2", NULL, 0},
    {"colour-5.png", header, 850, MR_EFORMAT, "colour type 5", NULL, 0},
    {"interlace-2.png", header, 802, MR_EFORMAT, "interlace 2", NULL, 0},
    {"unknown-critical.png", unknown, 1, MR_EUNSUPPORTED,
     "PNG: chunk MiLL at byte 33 must be understood to show the picture, and is not known here", NULL, 0},
    {"unknown-ancillary.png", unknown, 0, MR_OK, NULL, NULL, 0},
    {"bomb.png", bomb, 30000, MR_ELIMIT, "30000 x 30000", NULL, 0},
    {"bomb-inside.png", bomb, 16, MR_OK, NULL, NULL, 0},
    {"row-missing.png", rows_missing, -1 - 3 * W, MR_EFORMAT, "PNG: decoding the image data (IDAT): ", NULL,
     MRT_ODD_BELOW},
    {"byte-missing.png", rows_missing, -1, MR_EFORMAT, "PNG: decoding the image data (IDAT): ", NULL,
     MRT_ODD_BELOW},
    {"byte-more.png", rows_missing, 1, MR_OK, NULL, NULL, 0},
    {"filter-5.png", bad_filter, 5, MR_EFORMAT, "invalid scanline filter", NULL, MRT_ODD_BELOW},
    {"filter-255.png", bad_filter, 255, MR_EFORMAT, "invalid scanline filter", NULL, MRT_ODD_BELOW},
    {"zlib-method.png", bad_stream, 0, MR_EFORMAT, "PNG: decoding the image data (IDAT): ", NULL, 0},
    {"zlib-dictionary.png", bad_stream, 1, MR_EFORMAT, "PNG: decoding the image data (IDAT): ", NULL, 0},
    {"zlib-sum.png", bad_stream, 2, MR_EFORMAT, "decoding the image data (IDAT): ", NULL, MRT_ODD_BELOW},
    {"zlib-damage.png", bad_stream, 3, MR_EFORMAT, "PNG: decoding the image data (IDAT): ", NULL,
     MRT_ODD_BELOW},
    {"zlib-no-sum.png", bad_stream, 4, MR_OK, NULL, NULL, 0},
    {"zlib-cut.png", bad_stream, 5, MR_EFORMAT, "PNG: decoding the image data (IDAT): ", NULL, 0},
    {"idat-empty.png", bad_stream, 6, MR_EFORMAT, "decoding the image data (IDAT): ", NULL, 0},
    {"byte-a-chunk.png", many_chunks, 0, MR_OK, NULL, NULL, 0},
    {"idat-apart.png", many_chunks, 1, MR_EFORMAT, "expected all image data together", NULL, 0},
    {"animated.png", animated, 0, MR_OK, NULL, NULL, 0},
    {"animated-behind.png", animated, 1, MR_OK, NULL, NULL, 0},
    {"no-palette.png", bad_palette, 0, MR_EFORMAT,
     "chunk IDAT at byte 33; expected a palette (PLTE) before the image data", NULL, 0},
    {"palette-of-4-bytes.png", bad_palette, 1, MR_EFORMAT,
     "palette at byte 33 of 4 bytes; expected 3 for each of 1 to 16 colours", NULL, 0},
    {"palette-empty.png", bad_palette, 2, MR_EFORMAT, "palette at byte 33 of 0 bytes", NULL, 0},
    {"palette-short.png", bad_palette, 3, MR_EFORMAT, "of its palette, which has only 5: damaged", NULL, 0},
    {"palette-long.png", bad_palette, 4, MR_EFORMAT, "palette at byte 33 of 51 bytes", NULL, 0},
    {"palette-twice.png", bad_palette, 5, MR_EFORMAT, "expected one palette", NULL, 0},
    {"palette-late.png", bad_palette, 6, MR_EFORMAT,
     "chunk IDAT at byte 33; expected a palette (PLTE) before the image data", NULL, 0},
    {"no-end.png", ending, 0, MR_EFORMAT, "before its last chunk (IEND): truncated", NULL, 0},
    {"noise-behind.png", ending, 1, MR_OK, NULL, NULL, 0},
    {"cut-data.png", ending, 2, MR_EFORMAT, "PNG: chunk IDAT at byte 33 has", NULL, 0},
    {"cut-header.png", ending, 3, MR_EFORMAT, "PNG: ends at byte 20 inside its header", NULL, 0},
    {"no-data.png", ending, 4, MR_EFORMAT, "expected image data (IDAT) before it", NULL, 0},
    {"exif-6.png", exif, 0, MR_OK, NULL, NULL, 0},
    {"exif-6-behind.png", exif, 10, MR_OK, NULL, NULL, 0},
    {"exif-cut.png", exif, 1, MR_OK, NULL, NULL, 0},
    {"exif-empty-first.png", exif, 2, MR_OK, NULL, NULL, 0},
    {"apple.png", of_apple, 0, MR_EUNSUPPORTED, "in the form of Apple's devices (chunk CgBI)", NULL, 0},
    {"text-1m.png", long_text, 1, MR_OK, NULL, NULL, 0},
    {"text-10m.png", long_text, 10, MR_OK, NULL, NULL, 0},
    {"text-40m.png", long_text, 40, MR_OK, NULL, NULL, 0},
    {"text-bomb.png", packed_text, 0, MR_OK, NULL, NULL, 0},
    {"profile-bomb.png", packed_text, 1, MR_OK, NULL, NULL, 0},
    {0},
};
