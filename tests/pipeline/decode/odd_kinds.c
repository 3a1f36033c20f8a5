/* tests/pipeline/decode/odd_kinds.c: GIFs and BMPs written out here, byte by byte: every kind of frame, depth
 * and run, and every way to be damaged. What their pixels are is computed from the indices that went in. */
#include "base/util.h"
#include "mrt.h"
#include "tests/pipeline/decode/odd.h"

enum { W = 23, H = 19 };

static void entry(unsigned index, uint8_t rgb[3])
{
    rgb[0] = (uint8_t)(index * 11 + 3);
    rgb[1] = (uint8_t)(250 - index * 3);
    rgb[2] = (uint8_t)(index * 5 + 1);
}

static unsigned index_at(uint32_t x, uint32_t y, unsigned count) { return (x * 7 + y * 13 + x * y) % count; }

static void put16(mrt_odd *o, unsigned v)
{
    const uint8_t p[2] = {(uint8_t)v, (uint8_t)(v >> 8)};
    mrt_odd_put(o, p, 2);
}

static void put32(mrt_odd *o, uint32_t v)
{
    put16(o, v & 0xffff);
    put16(o, v >> 16);
}

static void put8(mrt_odd *o, unsigned v) { mrt_odd_put(o, &(uint8_t){(uint8_t)v}, 1); }

static void palette(mrt_odd *o, unsigned count)
{
    for (unsigned k = 0; k < count; k++) {
        uint8_t rgb[3];
        entry(k, rgb);
        mrt_odd_put(o, rgb, 3);
    }
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

/* ---- GIF: codes ---- */

typedef struct codes {
    uint8_t bytes[4096];
    size_t count;
    uint32_t bits;
    unsigned held;
} codes;

static void put_code(codes *c, unsigned code, unsigned width)
{
    c->bits |= code << c->held;
    for (c->held += width; c->held >= 8; c->held -= 8, c->bits >>= 8) c->bytes[c->count++] = (uint8_t)c->bits;
}

enum { USUAL, NO_END, OFTEN_CLEARED, NO_FIRST_CLEAR, BAD_CODE, EARLY_END };

/* Strings as a table would find them: of each pair of codes one new string. */
static void encode(codes *c, const uint8_t *index, size_t count, unsigned bits, int how)
{
    static struct {
        uint16_t before;
        uint8_t last;
    } table[4096];
    const unsigned clear = 1u << bits;
    unsigned next = clear + 2, width = bits + 1, now = index[0], since = 0;
    if (how != NO_FIRST_CLEAR) put_code(c, clear, width);
    for (size_t k = 1; k < count; k++) {
        unsigned found = clear + 2;
        while (found < next && (table[found].before != now || table[found].last != index[k])) found++;
        if (found < next) {
            now = found;
            continue;
        }
        put_code(c, how == BAD_CODE && k > count / 2 ? (1u << width) - 1 : now, width);
        if (how == EARLY_END && k > count / 2) break;
        if (next < 4096) {
            table[next].before = (uint16_t)now;
            table[next].last = index[k];
            if (next == 1u << width && width < 12) width++;
            next++;
        }
        now = index[k];
        if (how == OFTEN_CLEARED && ++since == 9) {
            put_code(c, now, width), put_code(c, clear, width);
            next = clear + 2, width = bits + 1, since = 0;
            now = index[++k < count ? k : count - 1];
            if (k >= count) break;
        }
    }
    if (how != EARLY_END) put_code(c, now, width);
    if (next == 1u << width && width < 12) width++;
    if (how != NO_END) put_code(c, clear + 1, width);
    if (c->held) put_code(c, 0, 8 - c->held);
}

static void put_blocks(mrt_odd *o, const codes *c)
{
    for (size_t at = 0; at < c->count;) {
        const size_t n = mri_min_u64(c->count - at, 200);
        put8(o, (unsigned)n);
        mrt_odd_put(o, c->bytes + at, n);
        at += n;
    }
    put8(o, 0);
}

/* ---- GIF: files ---- */

typedef struct gif {
    uint32_t screen_w, screen_h, x, y, w, h;
    unsigned colours; /* 0: no table */
    int transparent;  /* index, or -1 */
    bool local, interlaced, old;
    int how;
} gif;

static unsigned size_bits(unsigned count)
{
    unsigned bits = 1;
    while (1u << bits < count) bits++;
    return bits;
}

static void write_frame(mrt_odd *o, const gif *g)
{
    static const uint32_t start[4] = {0, 4, 2, 1}, step[4] = {8, 8, 4, 2};
    const unsigned colours = g->colours ? g->colours : 256, bits = size_bits(colours);
    static uint8_t index[4096];
    codes c = {.count = 0};
    size_t n = 0;
    for (int pass = 0; pass < (g->interlaced ? 4 : 1); pass++)
        for (uint32_t y = g->interlaced ? start[pass] : 0; y < g->h; y += g->interlaced ? step[pass] : 1)
            for (uint32_t x = 0; x < g->w; x++) index[n++] = (uint8_t)index_at(x, y, colours);
    put8(o, ',');
    put16(o, g->x), put16(o, g->y), put16(o, g->w), put16(o, g->h);
    put8(o, (g->local ? 0x80 | (bits - 1) : 0) | (g->interlaced ? 0x40 : 0));
    if (g->local) palette(o, 1u << bits);
    put8(o, bits < 2 ? 2 : bits);
    encode(&c, index, n, bits < 2 ? 2 : bits, g->how);
    put_blocks(o, &c);
}

static void write_gif(mrt_odd *o, const gif *g)
{
    const unsigned bits = g->colours ? size_bits(g->colours) : 1;
    mrt_odd_put(o, g->old ? "GIF87a" : "GIF89a", 6);
    put16(o, g->screen_w), put16(o, g->screen_h);
    put8(o, g->colours && !g->local ? 0x80 | (bits - 1) : 0);
    put8(o, 0), put8(o, 0);
    if (g->colours && !g->local) palette(o, 1u << bits);
    if (!g->old) mrt_odd_put(o, "!\xfe\5hello\0", 9); /* a comment */
    if (g->transparent >= 0) {
        mrt_odd_put(o, "!\xf9\4\1\0\0", 6);
        put8(o, (unsigned)g->transparent), put8(o, 0);
    }
    write_frame(o, g);
    put8(o, ';');
}

static void expect_gif(mrt_odd *o, const gif *g)
{
    const uint32_t w = (uint32_t)mri_max_u64(g->screen_w, g->x + g->w),
                   h = (uint32_t)mri_max_u64(g->screen_h, g->y + g->h);
    uint8_t *p = new_pixels(o, w, h, g->colours ? 3 : 1);
    for (uint32_t y = 0; y < h; y++)
        for (uint32_t x = 0; x < w; x++) {
            const bool inside = x >= g->x && x - g->x < g->w && y >= g->y && y - g->y < g->h;
            const unsigned index = inside ? index_at(x - g->x, y - g->y, g->colours ? g->colours : 256)
                                          : (unsigned)(g->transparent > 0 ? g->transparent : 0);
            if (g->colours) entry(index, p + 3 * ((size_t)y * w + x));
            else p[(size_t)y * w + x] = (uint8_t)index;
        }
}

static const gif gifs[] = {
    {W, H, 0, 0, W, H, 16, -1, false, false, false, USUAL},
    {W, H, 0, 0, W, H, 16, -1, true, false, false, USUAL},
    {W, H, 0, 0, W, H, 256, -1, false, true, false, USUAL},
    {W, H, 0, 0, W, H, 2, -1, false, false, true, USUAL},
    {W, H, 0, 0, W, H, 0, -1, false, false, false, USUAL},
    {40, 30, 9, 5, W, H, 8, 6, false, false, false, USUAL},
    {40, 30, 9, 5, W, H, 8, -1, false, true, false, USUAL},
    {10, 10, 3, 4, W, H, 8, 2, false, false, false, USUAL},
    {0, 0, 0, 0, W, H, 8, -1, false, false, false, USUAL},
    {W, H, 0, 0, W, H, 128, -1, false, false, false, NO_END},
    {W, H, 0, 0, W, H, 128, -1, false, false, false, OFTEN_CLEARED},
    {W, H, 0, 0, W, H, 128, -1, false, false, false, NO_FIRST_CLEAR},
    {W, 3, 0, 0, W, 3, 4, -1, false, true, false, USUAL},
};

static void good_gif(mrt_odd *o, int variant)
{
    write_gif(o, &gifs[variant]);
    expect_gif(o, &gifs[variant]);
}

/* A second frame that is damaged: nobody looks. */
static void film(mrt_odd *o, int variant)
{
    good_gif(o, variant);
    mrt_odd_splice(o, o->bytes - 1, 1, "!\xf9\4\1\0\0\0\0,nothing of use", 24);
}

/* The table is full, and stays so to the end. */
static void full_table(mrt_odd *o, int variant)
{
    (void)variant;
    const uint32_t w = 120, h = 60;
    gif g = {w, h, 0, 0, w, h, 256, -1, false, false, false, USUAL};
    static uint8_t index[120 * 60];
    static codes c;
    uint8_t *p = new_pixels(o, w, h, 3);
    uint32_t seed = 1;
    for (size_t k = 0; k < sizeof index; k++) {
        seed = seed * 1664525 + 1013904223;
        index[k] = (uint8_t)(seed >> 30 | (k % 64 == 0 ? 128 : 0));
        entry(index[k], p + 3 * k);
    }
    c = (codes){.count = 0};
    encode(&c, index, sizeof index, 2 + 6, USUAL);
    mrt_odd_put(o, "GIF89a", 6);
    put16(o, w), put16(o, h), put8(o, 0xf7), put8(o, 0), put8(o, 0);
    palette(o, 256);
    put8(o, ','), put16(o, g.x), put16(o, g.y), put16(o, w), put16(o, h), put8(o, 0), put8(o, 8);
    put_blocks(o, &c);
    put8(o, ';');
}

static void cut_gif(mrt_odd *o, int at)
{
    write_gif(o, &gifs[0]);
    mrt_odd_splice(o, (size_t)at, o->bytes - (size_t)at, NULL, 0);
}

static void cut_data(mrt_odd *o, int back)
{
    write_gif(o, &gifs[2]); /* interlaced: every crop needs rows of the last pass */
    mrt_odd_splice(o, o->bytes - (size_t)back, (size_t)back, NULL, 0);
}

static void coded(mrt_odd *o, int how)
{
    gif g = gifs[2];
    g.how = how;
    write_gif(o, &g);
}

enum { BEYOND, NO_PIXELS, NO_PICTURE, CODE_12, CODE_0, STRANGE, SCREEN_LARGE, FRAME_LARGE, BYTES_IN_FRONT };

static void bad_gif(mrt_odd *o, int variant)
{
    gif g = gifs[2];
    write_gif(o, &g);
    const size_t frame = 13 + 768 + 9;
    if (o->data[frame] != ',') abort();
    if (variant == BEYOND) { /* an index of eight bits, and sixteen colours */
        o->data[10] = 0x83;
        mrt_odd_splice(o, 13 + 48, 768 - 48, NULL, 0);
    }
    if (variant == NO_PIXELS) memset(o->data + frame + 5, 0, 2);
    if (variant == NO_PICTURE) o->data[frame] = ';';
    if (variant == CODE_12) o->data[frame + 10] = 12;
    if (variant == CODE_0) o->data[frame + 10] = 0;
    if (variant == STRANGE) o->data[frame] = '?';
    if (variant == SCREEN_LARGE) memset(o->data + 6, 0xff, 4);
    if (variant == FRAME_LARGE) memset(o->data + frame + 1, 0xff, 8);
    if (variant == BYTES_IN_FRONT) mrt_odd_splice(o, 0, 0, "\n", 1);
}

/* ---- BMP ---- */

typedef struct bmp {
    unsigned bits, header, coding; /* as the file has them */
    bool top_down;
    uint32_t mask[3];
} bmp;

static const bmp bmps[] = {
    {1, 40, 0, false, {0}},
    {4, 40, 0, false, {0}},
    {8, 40, 0, false, {0}},
    {24, 40, 0, false, {0}},
    {24, 124, 0, true, {0}},
    {32, 40, 0, false, {0}},
    {16, 40, 0, false, {0}},
    {16, 40, 3, true, {0xf800, 0x7e0, 0x1f}},
    {32, 108, 3, false, {0xff, 0xff00, 0xff0000}},
    {32, 40, 3, false, {0x3ff00000, 0xffc00, 0x3ff}},
    {8, 12, 0, false, {0}},
    {24, 12, 0, false, {0}},
    {8, 40, 1, false, {0}},
    {4, 40, 2, false, {0}},
    {32, 56, 6, false, {0xff000000, 0xff0000, 0xff00}},
};

static void begin_bmp(mrt_odd *o, const bmp *b, uint32_t w, uint32_t h)
{
    const unsigned colours = b->bits <= 8 ? 1u << b->bits : 0, each = b->header == 12 ? 3 : 4,
                   masks = (b->coding == 3 || b->coding == 6) && b->header == 40 ? 12 : 0;
    mrt_odd_put(o, "BM", 2);
    put32(o, 0), put32(o, 0), put32(o, 14 + b->header + masks + colours * each);
    put32(o, b->header);
    if (b->header == 12) {
        put16(o, w), put16(o, h), put16(o, 1), put16(o, b->bits);
    } else {
        put32(o, w), put32(o, b->top_down ? 0 - h : h), put16(o, 1), put16(o, b->bits), put32(o, b->coding);
        for (int k = 0; k < 5; k++) put32(o, 0);
        for (unsigned k = 40; k < b->header + masks; k += 4) put32(o, k < 52 ? b->mask[(k - 40) / 4] : 0);
    }
    for (unsigned k = 0; k < colours; k++) {
        uint8_t rgb[3];
        entry(k, rgb);
        put8(o, rgb[2]), put8(o, rgb[1]), put8(o, rgb[0]);
        if (each == 4) put8(o, 0);
    }
}

static unsigned spread(uint32_t pixel, uint32_t mask)
{
    const unsigned low = (unsigned)__builtin_ctz(mask), most = mask >> low, v = (pixel & mask) >> low;
    return most > 255 ? v >> (__builtin_popcount(mask) - 8) : v * 255 / most;
}

/* The pixel as it is stored and as it comes out. */
static uint32_t pixel_at(const bmp *b, uint32_t x, uint32_t y, uint8_t rgb[3])
{
    static const uint32_t usual[2][3] = {{0x7c00, 0x3e0, 0x1f}, {0xff0000, 0xff00, 0xff}};
    if (b->bits <= 8) {
        const unsigned index = index_at(x, y, 1u << b->bits);
        entry(index, rgb);
        return index;
    }
    const uint32_t v = x * 2654435761u + y * 40503u * 977u + x * y,
                   *mask = b->mask[0] ? b->mask : usual[b->bits != 16];
    for (int k = 0; k < 3; k++) rgb[k] = (uint8_t)spread(v, mask[k]);
    return v;
}

static void put_row(mrt_odd *o, const bmp *b, uint32_t y, uint8_t *pixels)
{
    uint8_t row[4 * W + 4] = {0};
    for (uint32_t x = 0; x < W; x++) {
        const uint32_t v = pixel_at(b, x, y, pixels + 3 * ((size_t)y * W + x));
        const size_t bit = (size_t)x * b->bits;
        if (b->bits < 8) row[bit / 8] |= (uint8_t)(v << (8 - b->bits - bit % 8));
        else
            for (unsigned k = 0; k < b->bits / 8; k++) row[bit / 8 + k] = (uint8_t)(v >> 8 * k);
    }
    mrt_odd_put(o, row, (W * b->bits + 31) / 32 * 4);
}

/* One run of each kind by turns. */
static void put_runs(mrt_odd *o, const bmp *b, uint32_t y, uint8_t *pixels)
{
    for (uint32_t x = 0; x < W;) {
        const uint32_t left = W - x, n = y % 2 && left >= 5 ? 5 : 1;
        uint8_t rgb[3];
        if (n == 1) {
            const unsigned v = pixel_at(b, x, y, rgb);
            put8(o, 1), put8(o, b->bits == 8 ? v : v << 4);
        } else {
            put8(o, 0), put8(o, n);
            for (uint32_t k = 0; b->bits == 8 && k < n; k++) put8(o, pixel_at(b, x + k, y, rgb));
            for (uint32_t k = 0; b->bits == 4 && k < n; k += 2)
                put8(o, pixel_at(b, x + k, y, rgb) << 4 | (k + 1 < n ? pixel_at(b, x + k + 1, y, rgb) : 0));
            put8(o, 0); /* 5 and 3 bytes are odd */
        }
        for (uint32_t k = 0; k < n; k++) pixel_at(b, x + k, y, pixels + 3 * ((size_t)y * W + x + k));
        x += n;
    }
    put8(o, 0), put8(o, 0);
}

static void good_bmp(mrt_odd *o, int variant)
{
    const bmp *b = &bmps[variant];
    uint8_t *pixels = new_pixels(o, W, H, 3);
    begin_bmp(o, b, W, H);
    for (uint32_t k = 0; k < H; k++) {
        const uint32_t y = b->top_down ? k : H - 1 - k;
        if (b->coding == 1 || b->coding == 2) put_runs(o, b, y, pixels);
        else put_row(o, b, y, pixels);
    }
    if (b->coding == 1 || b->coding == 2) put8(o, 0), put8(o, 1);
}

/* Steps leave pixels out: they have colour 0. A row is empty, and a run ends with its row. */
static void steps(mrt_odd *o, int variant)
{
    const bmp *b = &bmps[12];
    (void)variant;
    uint8_t *p = new_pixels(o, 8, 4, 3);
    begin_bmp(o, b, 8, 4);
    for (size_t k = 0; k < 8 * 4; k++) entry(0, p + 3 * k);
    mrt_odd_put(o, "\2\7\0\2\3\1\1\x09\0\0\0\0\x0a\5\0\1", 16);
    entry(7, p + 3 * (8 * 3 + 0)), entry(7, p + 3 * (8 * 3 + 1)); /* the lowest row comes first */
    entry(9, p + 3 * (8 * 2 + 5));
    for (size_t k = 0; k < 8; k++) entry(5, p + 3 * k);
}

static void cut_bmp(mrt_odd *o, int variant)
{
    good_bmp(o, variant / 1000);
    drop_pixels(o);
    const size_t to = (size_t)(variant % 1000);
    mrt_odd_splice(o, o->bytes - to, to, NULL, 0);
}

/* The last row's filling is missing, as some programs write it. */
static void no_filling(mrt_odd *o, int variant)
{
    good_bmp(o, variant);
    mrt_odd_splice(o, o->bytes - 3, 3, NULL, 0);
}

enum {
    BITS_2,
    CODING_4,
    MASKS_MIXED,
    MASK_NONE,
    NO_WIDTH,
    NO_HEIGHT,
    WIDEST,
    LARGE,
    FEW,
    RUNS_SHORT,
    STEP_OUT,
    TALLEST
};

static void bad_bmp(mrt_odd *o, int variant)
{
    const int of = variant == MASKS_MIXED || variant == MASK_NONE ? 7
                   : variant == RUNS_SHORT || variant == STEP_OUT ? 12
                   : variant == FEW                               ? 2
                                                                  : 3;
    good_bmp(o, of);
    drop_pixels(o);
    if (variant == BITS_2) o->data[28] = 2;
    if (variant == CODING_4) o->data[30] = 4;
    if (variant == MASKS_MIXED) o->data[14 + 40] = 0xff;
    if (variant == MASK_NONE) memset(o->data + 14 + 40, 0, 4);
    if (variant == NO_WIDTH) memset(o->data + 18, 0, 4);
    if (variant == NO_HEIGHT) memset(o->data + 22, 0, 4);
    if (variant == WIDEST) memcpy(o->data + 18, "\xff\xff\xff\x7f", 4);
    if (variant == LARGE) memcpy(o->data + 18, "\x30\x75\0\0\x30\x75\0\0", 8);
    if (variant == TALLEST) memcpy(o->data + 22, "\0\0\0\x80", 4);
    if (variant == FEW) o->data[46] = 9; /* colours in use */
    const size_t pixels = 14 + 40 + 1024;
    if (variant == RUNS_SHORT) mrt_odd_splice(o, pixels, 0, "\0\1", 2);
    if (variant == STEP_OUT) mrt_odd_splice(o, pixels, 0, "\0\2\xff\0", 4);
}

const mrt_odd_case mrt_odd_kinds[] = {
    {"gif-16.gif", good_gif, 0, MR_OK, NULL, NULL, 0},
    {"gif-local.gif", good_gif, 1, MR_OK, NULL, NULL, 0},
    {"gif-interlaced.gif", good_gif, 2, MR_OK, NULL, NULL, 0},
    {"gif-87a.gif", good_gif, 3, MR_OK, NULL, NULL, 0},
    {"gif-gray.gif", good_gif, 4, MR_OK, NULL, NULL, 0},
    {"gif-inside.gif", good_gif, 5, MR_OK, NULL, NULL, 0},
    {"gif-inside-interlaced.gif", good_gif, 6, MR_OK, NULL, NULL, 0},
    {"gif-past-screen.gif", good_gif, 7, MR_OK, NULL, NULL, 0},
    {"gif-no-screen.gif", good_gif, 8, MR_OK, NULL, NULL, 0},
    {"gif-no-end.gif", good_gif, 9, MR_OK, NULL, NULL, 0},
    {"gif-cleared.gif", good_gif, 10, MR_OK, NULL, NULL, 0},
    {"gif-no-clear.gif", good_gif, 11, MR_OK, NULL, NULL, 0},
    {"gif-low.gif", good_gif, 12, MR_OK, NULL, NULL, 0},
    {"gif-film.gif", film, 0, MR_OK, NULL, NULL, 0},
    {"gif-full-table.gif", full_table, 0, MR_OK, NULL, NULL, 0},
    {"gif-named.jpg", good_gif, 0, MR_OK, NULL, NULL, 0},
    {"gif-cut-head.gif", cut_gif, 9, MR_EFORMAT, "GIF: ends at byte 9 before its first picture", NULL, 0},
    {"gif-cut-colours.gif", cut_gif, 40, MR_EFORMAT, "GIF: ends at byte 40 before its first picture", NULL,
     0},
    {"gif-cut-comment.gif", cut_gif, 65, MR_EFORMAT, "GIF: ends at byte 65 before its first picture", NULL,
     0},
    {"gif-cut-frame.gif", cut_gif, 75, MR_EFORMAT, "GIF: ends at byte 75 before its first picture", NULL, 0},
    {"gif-cut-data.gif", cut_data, 40, MR_EFORMAT, "GIF: the data end at byte ", NULL, 0},
    {"gif-bad-code.gif", coded, BAD_CODE, MR_EFORMAT, "GIF: code ", NULL, 0},
    {"gif-early-end.gif", coded, EARLY_END, MR_EFORMAT, "GIF: the data end at byte ", NULL, 0},
    {"gif-beyond.gif", bad_gif, BEYOND, MR_EFORMAT, "of its palette, which has only 16: damaged", NULL, 0},
    {"gif-no-pixels.gif", bad_gif, NO_PIXELS, MR_EFORMAT, "GIF: the first frame has 0 x 19 pixels", NULL, 0},
    {"gif-no-picture.gif", bad_gif, NO_PICTURE, MR_EFORMAT, "GIF: its end at byte 790", NULL, 0},
    {"gif-code-12.gif", bad_gif, CODE_12, MR_EFORMAT, "GIF: codes of 12 bits at byte 800", NULL, 0},
    {"gif-code-0.gif", bad_gif, CODE_0, MR_EFORMAT, "GIF: codes of 0 bits at byte 800", NULL, 0},
    {"gif-strange.gif", bad_gif, STRANGE, MR_EFORMAT, "GIF: byte 790 is 3f", NULL, 0},
    {"gif-large.gif", bad_gif, SCREEN_LARGE, MR_ELIMIT, "65535 x 65535", NULL, 0},
    {"gif-large-frame.gif", bad_gif, FRAME_LARGE, MR_ELIMIT, "131070 x 131070", NULL, 0},
    {"gif-in-front.gif", bad_gif, BYTES_IN_FRONT, MR_EFORMAT, "found bytes 0a 47 49 46 38 39 61", NULL, 0},
    {"bmp-1.bmp", good_bmp, 0, MR_OK, NULL, NULL, 0},
    {"bmp-4.bmp", good_bmp, 1, MR_OK, NULL, NULL, 0},
    {"bmp-8.bmp", good_bmp, 2, MR_OK, NULL, NULL, 0},
    {"bmp-24.bmp", good_bmp, 3, MR_OK, NULL, NULL, 0},
    {"bmp-24-top-down.bmp", good_bmp, 4, MR_OK, NULL, NULL, 0},
    {"bmp-32.bmp", good_bmp, 5, MR_OK, NULL, NULL, 0},
    {"bmp-16.bmp", good_bmp, 6, MR_OK, NULL, NULL, 0},
    {"bmp-565.dib", good_bmp, 7, MR_OK, NULL, NULL, 0},
    {"bmp-masks-v4.bmp", good_bmp, 8, MR_OK, NULL, NULL, 0},
    {"bmp-10-bits.bmp", good_bmp, 9, MR_OK, NULL, NULL, 0},
    {"bmp-os2-8.bmp", good_bmp, 10, MR_OK, NULL, NULL, 0},
    {"bmp-os2-24.bmp", good_bmp, 11, MR_OK, NULL, NULL, 0},
    {"bmp-rle8.bmp", good_bmp, 12, MR_OK, NULL, NULL, 0},
    {"bmp-rle4.bmp", good_bmp, 13, MR_OK, NULL, NULL, 0},
    {"bmp-alpha-masks.bmp", good_bmp, 14, MR_OK, NULL, NULL, 0},
    {"bmp-steps.bmp", steps, 0, MR_OK, NULL, NULL, 0},
    {"bmp-no-filling.bmp", no_filling, 3, MR_OK, NULL, NULL, 0},
    {"bmp-cut.bmp", cut_bmp, 3010, MR_EFORMAT,
     "BMP: 1412 bytes; expected 1419 for 23 x 19 pixels of 24 bits: truncated", NULL, 0},
    {"bmp-cut-runs.bmp", cut_bmp, 12030, MR_EFORMAT, "BMP: runs end at byte ", NULL, 0},
    {"bmp-bits-2.bmp", bad_bmp, BITS_2, MR_EUNSUPPORTED, "BMP: 2 bits per pixel", NULL, 0},
    {"bmp-jpeg-inside.bmp", bad_bmp, CODING_4, MR_EUNSUPPORTED, "BMP: compression 4 of 24 bits per pixel",
     NULL, 0},
    {"bmp-masks-mixed.bmp", bad_bmp, MASKS_MIXED, MR_EUNSUPPORTED, "BMP: masks 0000f8ff, 000007e0, 0000001f",
     NULL, 0},
    {"bmp-mask-none.bmp", bad_bmp, MASK_NONE, MR_EUNSUPPORTED, "BMP: masks 00000000", NULL, 0},
    {"bmp-no-width.bmp", bad_bmp, NO_WIDTH, MR_EFORMAT, "BMP: a picture of 0 x 19 pixels", NULL, 0},
    {"bmp-no-height.bmp", bad_bmp, NO_HEIGHT, MR_EFORMAT, "BMP: a picture of 23 x 0 pixels", NULL, 0},
    {"bmp-widest.bmp", bad_bmp, WIDEST, MR_ELIMIT, "2147483647 x 19", NULL, 0},
    {"bmp-tallest.bmp", bad_bmp, TALLEST, MR_EFORMAT, "BMP: a picture of 23 x 2147483648 pixels", NULL, 0},
    {"bmp-large.bmp", bad_bmp, LARGE, MR_ELIMIT, "30000 x 30000", NULL, 0},
    {"bmp-few-colours.bmp", bad_bmp, FEW, MR_EFORMAT, "of its palette, which has only 9: damaged", NULL,
     MRT_ODD_BELOW},
    {"bmp-runs-short.bmp", bad_bmp, RUNS_SHORT, MR_EFORMAT, "BMP: runs end at byte 1080 with row 0 of 19",
     NULL, 0},
    {"bmp-step-out.bmp", bad_bmp, STEP_OUT, MR_EFORMAT, "BMP: the step at byte 1080 leaves the picture", NULL,
     0},
    {0},
};
