/* tests/pipeline/decode/odd_heif.c: HEICs and AVIFs whose boxes are written out here, around two coded
 * pictures that the library opens libheif for: AV1, 37 x 21 pixels of four colours, and HEVC, 64 x 64 pixels
 * of one. Both are coded without loss in YCbCr, and these colours come back exactly. */
#include "base/util.h"
#include "mrt.h"
#include "tests/pipeline/decode/odd.h"

enum { W = 37, H = 21, SIDE = 64 };

static const uint8_t av1[] = {
    0x12, 0x00, 0x0a, 0x09, 0x38, 0x15, 0x24, 0xa3, 0x08, 0x10, 0x10, 0x34, 0x80, 0x32, 0x2a,
    0x44, 0x00, 0x00, 0xf0, 0x66, 0x5a, 0xa3, 0x75, 0x78, 0xab, 0xc9, 0x82, 0x8a, 0xeb, 0x30,
    0xd9, 0x20, 0x4d, 0x5f, 0xc3, 0xa7, 0xe2, 0x3d, 0xf8, 0x0e, 0x95, 0x31, 0x79, 0x81, 0x61,
    0xca, 0x26, 0x3d, 0x56, 0x43, 0x37, 0xb8, 0xb5, 0x96, 0x1c, 0x70, 0xcc,
};
static const uint8_t av1_head[] = {0x81, 0x20, 0x02, 0x00};
static const uint8_t hevc[] = {
    0x00, 0x00, 0x00, 0x69, 0x28, 0x01, 0xaf, 0x05, 0xb2, 0x1e, 0x50, 0x70, 0xd0, 0x2f, 0x05, 0xc2,
    0xb4, 0x01, 0xff, 0x27, 0xfe, 0x4b, 0xf8, 0xef, 0xc3, 0x7a, 0xde, 0xb7, 0xad, 0xeb, 0x7a, 0xfe,
    0xbf, 0xaf, 0xeb, 0xfa, 0xfe, 0xbf, 0xaf, 0xeb, 0x95, 0x0f, 0xff, 0xf9, 0x13, 0xb5, 0xff, 0xff,
    0x4d, 0xc8, 0xf5, 0xb4, 0xd3, 0x4d, 0x34, 0xdf, 0x5d, 0x75, 0xd7, 0x5d, 0x73, 0xec, 0xff, 0xf6,
    0x3d, 0xd0, 0x03, 0x5b, 0x6d, 0xb7, 0x33, 0x33, 0x33, 0x32, 0xf0, 0x26, 0x62, 0xb6, 0x25, 0x88,
    0x59, 0x2e, 0x35, 0xc0, 0x64, 0x9b, 0xb3, 0xa0, 0x5f, 0xe0, 0x61, 0xa2, 0xd8, 0x5a, 0x63, 0x40,
    0x62, 0xbf, 0x05, 0xff, 0x20, 0x0b, 0x60, 0x4f, 0xe0, 0xeb, 0xf2, 0x27, 0x0c,
};
static const uint8_t hevc_head[] = {
    0x01, 0x04, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xff, 0xf0, 0x00, 0xfc,
    0xff, 0xf8, 0xf8, 0x00, 0x00, 0x0f, 0x03, 0x20, 0x00, 0x01, 0x00, 0x17, 0x40, 0x01, 0x0c, 0x01,
    0xff, 0xff, 0x04, 0x08, 0x00, 0x00, 0x03, 0x00, 0x9e, 0x38, 0x00, 0x00, 0x03, 0x00, 0x00, 0xff,
    0xba, 0x02, 0x40, 0x21, 0x00, 0x01, 0x00, 0x2a, 0x42, 0x01, 0x01, 0x04, 0x08, 0x00, 0x00, 0x03,
    0x00, 0x9e, 0x38, 0x00, 0x00, 0x03, 0x00, 0x00, 0xff, 0x90, 0x04, 0x10, 0x20, 0xb2, 0xdd, 0x55,
    0xd3, 0x5c, 0xdc, 0x08, 0x08, 0x18, 0x10, 0x00, 0x00, 0x03, 0x00, 0x10, 0x00, 0x00, 0x03, 0x00,
    0x10, 0x80, 0x22, 0x00, 0x01, 0x00, 0x08, 0x44, 0x01, 0xc1, 0x70, 0x30, 0x60, 0xb1, 0x20,
};

static const uint8_t colours[4][3] = {{66, 63, 20}, {40, 40, 40}, {37, 40, 83}, {223, 220, 177}};

/* The colour of a pixel of the AV1 picture. */
static const uint8_t *colour_at(uint32_t x, uint32_t y)
{
    const unsigned k = (x > 20) + 2u * (y >= 13);
    return colours[x < 6 && y < 4 ? 3 - k : k];
}

/* ---- coded sizes ---- */

typedef struct bits {
    uint8_t p[128];
    unsigned count;
} bits;

static void put(bits *b, uint32_t v, unsigned count)
{
    for (; count > 0; count--, b->count++)
        if (v >> (count - 1) & 1) b->p[b->count / 8] |= (uint8_t)(0x80 >> b->count % 8);
}

static void put_zeros(bits *b, unsigned count) { b->count += count; }

static void put_ue(bits *b, uint32_t v)
{
    unsigned zeros = 0;
    while ((v + 1) >> (zeros + 1)) zeros++;
    put_zeros(b, zeros), put(b, v + 1, zeros + 1);
}

/* A sequence parameter set of HEVC with its unit's head, escaped; returns its bytes. */
static size_t make_sps(uint8_t *out, uint32_t w, uint32_t h, unsigned layers)
{
    bits b = {{0}, 0};
    size_t n = 2, zeros = 0;
    put(&b, 0, 4), put(&b, layers, 3), put(&b, 1, 1);
    put_zeros(&b, 88), put(&b, 0x99, 8);
    for (unsigned k = 0; layers && k < 8; k++) put(&b, k < layers ? 3 - k % 3 : 0, 2);
    for (unsigned k = 0; k < layers; k++)
        put_zeros(&b, (3 - k % 3) >> 1 ? 88 : 0), put_zeros(&b, (3 - k % 3) & 1 ? 8 : 0);
    put_ue(&b, 0), put_ue(&b, 3), put(&b, 0, 1);
    put_ue(&b, w), put_ue(&b, h), put(&b, 1, 1);
    out[0] = 0x42, out[1] = 0x01;
    for (unsigned k = 0; k < (b.count + 7) / 8 + 1; k++) {
        if (zeros >= 2 && b.p[k] <= 3) out[n++] = 3, zeros = 0;
        out[n++] = b.p[k];
        zeros = b.p[k] ? 0 : zeros + 1;
    }
    return n;
}

/* A sequence header of AV1 in its unit; returns its bytes. */
static size_t make_sequence(uint8_t *out, uint32_t w, uint32_t h, bool reduced)
{
    bits b = {{0}, 0};
    put(&b, 1, 3), put(&b, reduced, 1), put(&b, reduced, 1);
    if (reduced) {
        put(&b, 8, 5);
    } else {
        put(&b, 1, 1), put(&b, 7, 32), put(&b, 7, 32), put(&b, 1, 1), put_ue(&b, 5); /* timing */
        put(&b, 1, 1), put(&b, 9, 5), put(&b, 7, 32), put(&b, 4, 5), put(&b, 4, 5);  /* decoder's model */
        put(&b, 1, 1), put(&b, 1, 5); /* display's delay; two operating points */
        put(&b, 0x101, 12), put(&b, 8, 5), put(&b, 1, 1), put(&b, 1, 1), put(&b, 1, 21), put(&b, 1, 1),
            put(&b, 3, 4);
        put(&b, 0x101, 12), put(&b, 7, 5), put(&b, 0, 1), put(&b, 0, 1);
    }
    put(&b, 14, 4), put(&b, 15, 4), put(&b, w - 1, 15), put(&b, h - 1, 16), put(&b, 1, 1);
    const size_t bytes = (b.count + 7) / 8 + 1;
    out[0] = 0x0e, out[1] = 0, out[2] = (uint8_t)bytes; /* with extension and size */
    memcpy(out + 3, b.p, bytes);
    return bytes + 3;
}

/* ---- boxes ---- */

static void put_be(mrt_odd *o, uint64_t v, unsigned bytes)
{
    uint8_t p[8];
    for (unsigned k = 0; k < bytes; k++) p[k] = (uint8_t)(v >> 8 * (bytes - 1 - k));
    mrt_odd_put(o, p, bytes);
}

static size_t begin(mrt_odd *o, const char *type)
{
    const size_t at = o->bytes;
    put_be(o, 0, 4);
    mrt_odd_put(o, type, 4);
    return at;
}

/* A box with version and flags. */
static size_t begin_full(mrt_odd *o, const char *type, unsigned version)
{
    const size_t at = begin(o, type);
    put_be(o, (uint64_t)version << 24, 4);
    return at;
}

static void end(mrt_odd *o, size_t at)
{
    const uint32_t bytes = (uint32_t)(o->bytes - at);
    const uint8_t p[4] = {(uint8_t)(bytes >> 24), (uint8_t)(bytes >> 16), (uint8_t)(bytes >> 8),
                          (uint8_t)bytes};
    memcpy(o->data + at, p, sizeof p);
}

/* A picture that is larger than the size that the file shows: where it is coded. */
enum { NOWHERE, IN_HEAD, IN_DATA, CANVAS, PIECES };

typedef struct heif {
    bool avif;
    int larger;                /* one of these */
    uint32_t coded_w, coded_h; /* its size */
    const char *brand;         /* of the file; NULL: the kind's */
    uint32_t width, height;    /* ispe of the coded picture */
    int turn;                  /* irot; -1: none */
    uint32_t cut_w, cut_h;     /* clap, in the middle; 0: none */
    uint32_t tiles;            /* beside each other, of one coded picture; 0: no grid */
    uint32_t all_w, all_h;     /* of the grid */
    bool no_item, no_size, film;
} heif;

static void put_size(mrt_odd *o, uint32_t w, uint32_t h)
{
    const size_t at = begin_full(o, "ispe", 0);
    put_be(o, w, 4), put_be(o, h, 4);
    end(o, at);
}

/* After the configuration in the box that begins at `head`. */
static void put_larger_head(mrt_odd *o, const heif *f, size_t head)
{
    uint8_t unit[256];
    const size_t bytes = f->avif ? make_sequence(unit, f->coded_w, f->coded_h, false)
                                 : make_sps(unit, f->coded_w, f->coded_h, 0);
    if (!f->avif) {
        o->data[head + 8 + 22]++; /* arrays: one of one parameter set */
        put_be(o, 0x21, 1), put_be(o, 1, 2), put_be(o, bytes, 2);
    }
    mrt_odd_put(o, unit, bytes);
}

/* Before the coded picture. */
static size_t put_larger_data(mrt_odd *o, const heif *f)
{
    uint8_t unit[256];
    const size_t before = o->bytes, bytes = f->avif ? make_sequence(unit, f->coded_w, f->coded_h, true)
                                                    : make_sps(unit, f->coded_w, f->coded_h, 3);
    if (f->larger != IN_DATA) return 0;
    if (!f->avif) put_be(o, bytes, 4);
    mrt_odd_put(o, unit, bytes);
    return o->bytes - before;
}

/* Returns how many properties the shown item has beside its size: they have the numbers 3 and on, of 4 with a
 * grid. */
static unsigned put_properties(mrt_odd *o, const heif *f)
{
    const size_t ipco = begin(o, "ipco"), head = begin(o, f->avif ? "av1C" : "hvcC");
    unsigned count = 0;
    mrt_odd_put(o, f->avif ? av1_head : hevc_head, f->avif ? sizeof av1_head : sizeof hevc_head);
    if (f->larger == IN_HEAD) put_larger_head(o, f, head);
    end(o, head);
    if (f->no_size) end(o, begin(o, "free"));
    else put_size(o, f->width, f->height);
    if (f->tiles) put_size(o, f->all_w, f->all_h);
    if (f->cut_w) {
        const size_t clap = begin(o, "clap");
        const uint32_t v[8] = {f->cut_w, 1, f->cut_h, 1, 0, 1, 0, 1};
        for (unsigned k = 0; k < 8; k++) put_be(o, v[k], 4);
        end(o, clap);
        count++;
    }
    if (f->turn >= 0) {
        const size_t irot = begin(o, "irot");
        put_be(o, (unsigned)f->turn, 1);
        end(o, irot);
        count++;
    }
    end(o, ipco);
    return count;
}

/* Items 1 to tiles are coded pictures, of the same bytes; the last is the grid. */
static void put_list(mrt_odd *o, const heif *f, unsigned more)
{
    const size_t ipma = begin_full(o, "ipma", 0);
    const unsigned coded = f->tiles ? f->tiles : 1;
    put_be(o, coded + (f->tiles ? 1 : 0), 4);
    for (unsigned k = 1; k <= coded; k++) {
        const bool shown = !f->tiles;
        put_be(o, k, 2), put_be(o, 2 + (shown ? more : 0), 1);
        put_be(o, 0x81, 1), put_be(o, 0x02, 1);
        for (unsigned p = 0; shown && p < more; p++) put_be(o, 0x83 + p, 1);
    }
    if (f->tiles) {
        put_be(o, coded + 1, 2), put_be(o, 1 + more, 1), put_be(o, 0x03, 1);
        for (unsigned p = 0; p < more; p++) put_be(o, 0x84 + p, 1);
    }
    end(o, ipma);
}

static void put_item(mrt_odd *o, unsigned item, const char *type)
{
    const size_t infe = begin_full(o, "infe", 2);
    put_be(o, item, 2), put_be(o, 0, 2);
    mrt_odd_put(o, type, 4);
    put_be(o, 0, 1);
    end(o, infe);
}

static void put_items(mrt_odd *o, const heif *f)
{
    const unsigned coded = f->tiles ? f->tiles : 1, all = coded + (f->tiles ? 1 : 0);
    const size_t iinf = begin_full(o, "iinf", 0);
    put_be(o, all, 2);
    for (unsigned k = 1; k <= coded; k++) put_item(o, k, f->avif ? "av01" : "hvc1");
    if (f->tiles) put_item(o, all, "grid");
    end(o, iinf);
    if (!f->tiles) return;
    const size_t iref = begin_full(o, "iref", 0), dimg = begin(o, "dimg");
    put_be(o, all, 2), put_be(o, coded, 2);
    for (unsigned k = 1; k <= coded; k++) put_be(o, k, 2);
    end(o, dimg), end(o, iref);
    const size_t idat = begin(o, "idat");
    put_be(o, 0, 3), put_be(o, coded - 1, 1); /* version, flags, rows - 1, columns - 1 */
    put_be(o, f->larger == CANVAS ? f->coded_w : f->all_w, 2);
    put_be(o, f->larger == CANVAS ? f->coded_h : f->all_h, 2);
    end(o, idat);
}

/* Where items lie: coded ones in the file from `at`, which is written later, the grid in idat. Returns the
 * place of the first `at`. */
static size_t put_places(mrt_odd *o, const heif *f, size_t bytes)
{
    const unsigned coded = f->tiles ? f->tiles : 1, all = coded + (f->tiles ? 1 : 0);
    const size_t iloc = begin_full(o, "iloc", 1);
    size_t first = 0;
    put_be(o, 0x4400, 2), put_be(o, all, 2);
    for (unsigned k = 1; k <= all; k++) {
        const bool grid = k > coded;
        const unsigned pieces = f->larger == PIECES ? 65 : 1;
        put_be(o, k, 2), put_be(o, grid, 2), put_be(o, 0, 2), put_be(o, pieces, 2);
        if (k == 1) first = o->bytes;
        for (unsigned n = 0; n < pieces; n++) put_be(o, 0, 4), put_be(o, grid ? 8 : bytes, 4);
    }
    end(o, iloc);
    return first;
}

static void write_heif(mrt_odd *o, const heif *f)
{
    const uint8_t *data = f->avif ? av1 : hevc;
    const size_t bytes = f->avif ? sizeof av1 : sizeof hevc, ftyp = begin(o, "ftyp");
    const unsigned coded = f->tiles ? f->tiles : 1;
    mrt_odd_put(o, f->brand ? f->brand : f->avif ? "avif" : "heic", 4);
    put_be(o, 0, 4);
    mrt_odd_put(o, f->avif ? "avifmif1" : "mif1heic", 8);
    end(o, ftyp);
    if (f->film) {
        end(o, begin(o, "moov"));
        return;
    }
    const size_t meta = begin_full(o, "meta", 0), hdlr = begin_full(o, "hdlr", 0);
    put_be(o, 0, 4);
    mrt_odd_put(o, "pict", 4);
    put_be(o, 0, 8), put_be(o, 0, 5);
    end(o, hdlr);
    if (!f->no_item) {
        const size_t pitm = begin_full(o, "pitm", 0);
        put_be(o, f->tiles ? coded + 1 : 1, 2);
        end(o, pitm);
    }
    put_items(o, f);
    mrt_odd larger = {0};
    const size_t more = put_larger_data(&larger, f), place = put_places(o, f, bytes + more),
                 iprp = begin(o, "iprp");
    put_list(o, f, put_properties(o, f));
    end(o, iprp), end(o, meta);
    const size_t mdat = begin(o, "mdat"), at = o->bytes;
    mrt_odd_put(o, larger.data, more);
    mrt_odd_put(o, data, bytes);
    mrt_odd_free(&larger);
    end(o, mdat);
    for (unsigned k = 0; k < coded; k++) /* an item's entry has 16 bytes */
        for (unsigned b = 0; b < 4; b++) o->data[place + 16 * k + b] = (uint8_t)(at >> 8 * (3 - b));
}

/* ---- cases ---- */

static uint8_t *new_pixels(mrt_odd *o, uint32_t w, uint32_t h)
{
    o->pixels = (mr_image){w, h, 3, calloc((size_t)w * h, 3)};
    if (!o->pixels.pixels) abort();
    return o->pixels.pixels;
}

static const heif good[] = {
    {.avif = true, .width = W, .height = H, .turn = -1},
    {.avif = true, .width = W, .height = H, .turn = 1},
    {.avif = true, .width = W, .height = H, .turn = 2},
    {.avif = true, .width = W, .height = H, .turn = 3},
    {.avif = true, .width = W, .height = H, .turn = -1, .cut_w = 21, .cut_h = 11},
    {.avif = true, .width = W, .height = H, .turn = 1, .cut_w = 21, .cut_h = 11, .brand = "mif1"},
    {.width = SIDE, .height = SIDE, .turn = -1},
    {.width = SIDE, .height = SIDE, .turn = 1, .tiles = 2, .all_w = 100, .all_h = 50},
};

static void good_heif(mrt_odd *o, int variant)
{
    const heif *f = &good[variant];
    const uint32_t w = f->cut_w   ? f->cut_w
                       : f->tiles ? f->all_w
                                  : f->width,
                   h = f->cut_h   ? f->cut_h
                       : f->tiles ? f->all_h
                                  : f->height,
                   left = f->cut_w ? (W - w) / 2 : 0, top = f->cut_h ? (H - h) / 2 : 0;
    const bool swap = f->turn >= 0 && f->turn & 1;
    uint8_t *p = new_pixels(o, swap ? h : w, swap ? w : h);
    write_heif(o, f);
    for (uint32_t y = 0; y < h; y++)
        for (uint32_t x = 0; x < w; x++) { /* turns are against the clock */
            const uint32_t to_x = f->turn == 1   ? y
                                  : f->turn == 2 ? w - 1 - x
                                  : f->turn == 3 ? h - 1 - y
                                                 : x,
                           to_y = f->turn == 1   ? w - 1 - x
                                  : f->turn == 2 ? h - 1 - y
                                  : f->turn == 3 ? x
                                                 : y;
            memcpy(p + 3 * ((size_t)to_y * o->pixels.width + to_x),
                   f->avif ? colour_at(left + x, top + y) : colours[3], 3);
        }
}

static const heif bad[] = {
    {.avif = true, .width = W, .height = H, .turn = -1, .no_item = true},
    {.avif = true, .width = W, .height = H, .turn = -1, .no_size = true},
    {.avif = true, .width = W + 1, .height = H, .turn = -1},
    {.avif = true, .width = 60000, .height = 60000, .turn = -1},
    {.avif = true, .width = W, .height = H, .turn = -1, .cut_w = 400, .cut_h = 11},
    {.avif = true, .film = true},
    {.width = SIDE, .height = SIDE, .turn = -1, .larger = IN_HEAD, .coded_w = 16384, .coded_h = 16001},
    {.width = SIDE, .height = SIDE, .turn = -1, .larger = IN_DATA, .coded_w = 16384, .coded_h = 16002},
    {.avif = true,
     .width = W,
     .height = H,
     .turn = -1,
     .larger = IN_HEAD,
     .coded_w = 30001,
     .coded_h = 60001},
    {.avif = true,
     .width = W,
     .height = H,
     .turn = -1,
     .larger = IN_DATA,
     .coded_w = 30001,
     .coded_h = 60002},
    {.width = SIDE,
     .height = SIDE,
     .turn = -1,
     .tiles = 2,
     .all_w = 100,
     .all_h = 50,
     .larger = CANVAS,
     .coded_w = 65535,
     .coded_h = 65535},
    {.width = SIDE, .height = SIDE, .turn = -1, .larger = PIECES},
};

static void bad_heif(mrt_odd *o, int variant) { write_heif(o, &bad[variant]); }

static void cut_heif(mrt_odd *o, int bytes)
{
    write_heif(o, &good[0]);
    const size_t left = bytes > 0 ? (size_t)bytes : o->bytes - (size_t)-bytes;
    mrt_odd_splice(o, left, o->bytes - left, NULL, 0);
}

const mrt_odd_case mrt_odd_avif[] = {
    {"plain.avif", good_heif, 0, MR_OK, NULL, NULL, 0},
    {"turned-left.avif", good_heif, 1, MR_OK, NULL, NULL, 0},
    {"upside-down.avif", good_heif, 2, MR_OK, NULL, NULL, 0},
    {"turned-right.avif", good_heif, 3, MR_OK, NULL, NULL, 0},
    {"cut.avif", good_heif, 4, MR_OK, NULL, NULL, 0},
    {"cut-turned.heif", good_heif, 5, MR_OK, NULL, NULL, 0},
    {"no-item.avif", bad_heif, 0, MR_EFORMAT, "AVIF: it does not say which picture is shown (pitm)", NULL, 0},
    {"no-size.avif", bad_heif, 1, MR_EFORMAT, "AVIF: a picture of 0 x 0 pixels: damaged", NULL, 0},
    {"other-size.avif", bad_heif, 2, MR_EFORMAT, "AVIF: ", NULL, 0},
    {"large.avif", bad_heif, 3, MR_ELIMIT, "60000 x 60000", NULL, 0},
    {"cut-more.avif", bad_heif, 4, MR_EFORMAT,
     "AVIF: it is cut (clap) to less than nothing, or more than all", NULL, 0},
    {"film.avif", bad_heif, 5, MR_EUNSUPPORTED, "AVIF: a film without a still picture (no box meta)", NULL,
     0},
    {"cut-head.avif", cut_heif, 100, MR_EFORMAT, "AVIF: ends at byte 100 within a box: truncated", NULL, 0},
    {"larger-head.avif", bad_heif, 8, MR_ELIMIT, "contains a picture of 1800090001 pixels", NULL, 0},
    {"larger-data.avif", bad_heif, 9, MR_ELIMIT, "contains a picture of 1800120002 pixels", NULL, 0},
    {"cut-data.avif", cut_heif, -20, MR_EFORMAT, "AVIF: libheif cannot decode the data: ", NULL, 0},
    {0},
};

const mrt_odd_case mrt_odd_heic[] = {
    {"plain.heic", good_heif, 6, MR_OK, NULL, NULL, 0},
    {"tiles.heic", good_heif, 7, MR_OK, NULL, NULL, 0},
    {"larger-head.heic", bad_heif, 6, MR_ELIMIT,
     "HEIC: it shows 64 x 64 pixels and contains a picture of 262160384 pixels", NULL, 0},
    {"larger-data.heic", bad_heif, 7, MR_ELIMIT, "contains a picture of 262176768 pixels", NULL, 0},
    {"larger-canvas.heic", bad_heif, 10, MR_ELIMIT, "contains a picture of 4294836225 pixels", NULL, 0},
    {"pieces.heic", bad_heif, 11, MR_EFORMAT, "HEIC: its items (iloc) have too many pieces", NULL, 0},
    {0},
};
