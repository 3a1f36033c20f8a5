/* tests/pipeline/decode/odd_large.c: JPEGs that are large enough for lanes
 * (pipeline/decode/jpeg/scan/lanes.h), which read a crop ahead without entry points: sampling factors, other
 * processes, one column, and each of them cut off or damaged above, in and below the crops. */
#include "base/util.h"
#include "mrt.h"
#include "tests/pipeline/decode/odd.h"

enum { WIDE = 300, HIGH = 220, FRAME = 0xc0, SCAN = 0xda };

enum { S420, S411, S440, S410, S444, GRAY, RESTARTS, ARITHMETIC, PROGRESSIVE, CMYK };
static const mrt_jpeg_kind kinds[] = {
    [S420] = {.h = 2, .v = 2},
    [S411] = {.h = 4, .v = 1},
    [S440] = {.h = 1, .v = 2},
    [S410] = {.h = 4, .v = 2},
    [S444] = {.h = 1, .v = 1},
    [GRAY] = {.components = 1},
    [RESTARTS] = {.h = 2, .v = 2, .restart_rows = 2},
    [ARITHMETIC] = {.h = 2, .v = 2, .arithmetic = true},
    [PROGRESSIVE] = {.h = 2, .v = 2, .progressive = true},
    [CMYK] = {.components = 4, .adobe = true},
};

static void sound(mrt_odd *o, int kind) { o->data = mrt_jpeg(&kinds[kind], WIDE, HIGH, 3, &o->bytes); }

/* variant: its height, and one column; below 0: its width, and one row. */
static void thin(mrt_odd *o, int variant)
{
    const uint32_t wide = variant < 0 ? (uint32_t)-variant : 1, high = variant < 0 ? 1 : (uint32_t)variant;
    o->data = mrt_jpeg(&kinds[S444], wide, high, 3, &o->bytes);
}

static size_t scan_begin(const mrt_odd *o)
{
    const size_t at = mrt_odd_segment(o, SCAN, 0);
    return at + mrt_odd_segment_bytes(o, at);
}

/* The place after `sixteenths` of the entropy-coded bytes, not inside a stuffed byte or a marker. */
static size_t inside(const mrt_odd *o, int sixteenths)
{
    const size_t begin = scan_begin(o);
    size_t at = begin + (o->bytes - 2 - begin) * (size_t)sixteenths / 16;
    while (o->data[at - 1] == 0xff || o->data[at] == 0xff) at++;
    return at;
}

/* variant / 20: the kind; variant % 20: sixteenths that are left. An end marker follows. */
static void cut(mrt_odd *o, int variant)
{
    sound(o, variant / 20);
    const size_t at = inside(o, variant % 20);
    mrt_odd_splice(o, at, o->bytes - 2 - at, NULL, 0);
}

static void cut_open(mrt_odd *o, int variant)
{
    cut(o, variant);
    mrt_odd_splice(o, o->bytes - 2, 2, NULL, 0);
}

/* Ones, which are no code, in place of 8 bytes. */
static void noise(mrt_odd *o, int variant)
{
    static const uint8_t ones[] = {0xff, 0, 0xff, 0, 0xff, 0, 0xff, 0, 0xff, 0, 0xff, 0, 0xff, 0, 0xff, 0};
    sound(o, variant / 20);
    mrt_odd_splice(o, inside(o, variant % 20), 8, ones, sizeof ones);
}

static void lines_missing(mrt_odd *o, int kind)
{
    sound(o, kind);
    o->data[mrt_odd_segment(o, FRAME, 0) + 6] += 16;
}

/* A restart marker in a picture without restarts, or a wrong marker. */
static void stray_restart(mrt_odd *o, int kind)
{
    sound(o, kind);
    size_t at = inside(o, 8);
    if (kind == RESTARTS) {
        while (o->data[at] != 0xff || o->data[at + 1] < 0xd0 || o->data[at + 1] > 0xd7) at++;
        o->data[at + 1] ^= 4;
    } else {
        mrt_odd_splice(o, at, 0, "\xff\xd3", 2);
    }
}

#define OVER                 "runs over the end of its entropy-coded data"
#define BITS                 "has bits that are no Huffman code"
#define EARLY                "premature end of data segment"
#define CORRUPT              "Corrupt JPEG data" /* its fast loop passes over a code that is in no table */
#define AT(kind, sixteenths) (20 * (kind) + (sixteenths))

const mrt_odd_case mrt_odd_large[] = {
    {"large-420.jpg", sound, S420, MR_OK, NULL, NULL, 0},
    {"large-411.jpg", sound, S411, MR_OK, NULL, NULL, MRT_ODD_ROUGH},
    {"large-440.jpg", sound, S440, MR_OK, NULL, NULL, 0},
    {"large-410.jpg", sound, S410, MR_OK, NULL, NULL, MRT_ODD_ROUGH},
    {"large-444.jpg", sound, S444, MR_OK, NULL, NULL, 0},
    {"large-gray.jpg", sound, GRAY, MR_OK, NULL, NULL, 0},
    {"large-restarts.jpg", sound, RESTARTS, MR_OK, NULL, NULL, 0},
    {"large-arithmetic.jpg", sound, ARITHMETIC, MR_OK, NULL, NULL, 0},
    {"large-progressive.jpg", sound, PROGRESSIVE, MR_OK, NULL, NULL, 0},
    {"1x20000.jpg", thin, 20000, MR_OK, NULL, NULL, 0},
    {"20000x1.jpg", thin, -20000, MR_OK, NULL, NULL, 0},
    {"large-cut-1.jpg", cut, AT(S420, 1), MR_EFORMAT, OVER, EARLY, MRT_ODD_BELOW},
    {"large-cut-8.jpg", cut, AT(S420, 8), MR_EFORMAT, OVER, EARLY, MRT_ODD_BELOW},
    {"large-cut-15.jpg", cut, AT(S420, 15), MR_EFORMAT, OVER, EARLY, MRT_ODD_BELOW},
    {"large-cut-8-open.jpg", cut_open, AT(S420, 8), MR_EFORMAT, "no end marker (EOI)", NULL, 0},
    {"large-cut-411.jpg", cut, AT(S411, 8), MR_EFORMAT, OVER, EARLY, MRT_ODD_BELOW},
    {"large-cut-440.jpg", cut, AT(S440, 8), MR_EFORMAT, OVER, EARLY, MRT_ODD_BELOW},
    {"large-cut-410.jpg", cut, AT(S410, 12), MR_EFORMAT, OVER, EARLY, MRT_ODD_BELOW},
    {"large-cut-gray.jpg", cut, AT(GRAY, 8), MR_EFORMAT, OVER, EARLY, MRT_ODD_BELOW},
    {"large-cut-restarts.jpg", cut, AT(RESTARTS, 8), MR_EFORMAT, OVER, EARLY, MRT_ODD_BELOW},
    {"large-cut-cmyk.jpg", cut, AT(CMYK, 8), MR_EFORMAT, OVER, EARLY, MRT_ODD_BELOW},
    {"large-noise-1.jpg", noise, AT(S420, 1), MR_EFORMAT, BITS, CORRUPT, MRT_ODD_BELOW},
    {"large-noise-8.jpg", noise, AT(S420, 8), MR_EFORMAT, BITS, CORRUPT, MRT_ODD_BELOW},
    {"large-noise-15.jpg", noise, AT(S420, 15), MR_EFORMAT, BITS, CORRUPT, MRT_ODD_BELOW},
    {"large-noise-411.jpg", noise, AT(S411, 6), MR_EFORMAT, BITS, CORRUPT, MRT_ODD_BELOW},
    {"large-noise-440.jpg", noise, AT(S440, 6), MR_EFORMAT, BITS, CORRUPT, MRT_ODD_BELOW},
    {"large-noise-gray.jpg", noise, AT(GRAY, 6), MR_EFORMAT, BITS, CORRUPT, MRT_ODD_BELOW},
    {"large-lines-missing.jpg", lines_missing, S420, MR_EFORMAT, OVER, EARLY, MRT_ODD_BELOW},
    {"large-stray-restart.jpg", stray_restart, S420, MR_EFORMAT, OVER, EARLY, MRT_ODD_BELOW},
    {"large-restart-order.jpg", stray_restart, RESTARTS, MR_EFORMAT, "expected restart marker",
     "found marker 0xd", MRT_ODD_BELOW},
    {0},
};
