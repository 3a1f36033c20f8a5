/* tests/pipeline/decode/odd_jpeg_damage.c: JPEGs with something missing, doubled, out of order, or cut. */
#include "base/util.h"
#include "mrt.h"
#include "tests/pipeline/decode/odd.h"

enum { FRAME = 0xc0, SCAN = 0xda, FACTORS = 11 };

static void without(mrt_odd *o, int marker)
{
    mrt_odd_base(o);
    for (size_t at = 2; at + 4 < o->bytes;)
        if (o->data[at + 1] == marker) mrt_odd_splice(o, at, mrt_odd_segment_bytes(o, at), NULL, 0);
        else if (o->data[at + 1] == SCAN) break;
        else at += mrt_odd_segment_bytes(o, at);
}

/* The scan with all that belongs to it. */
static void no_scan(mrt_odd *o, int variant)
{
    (void)variant;
    mrt_odd_base(o);
    const size_t at = mrt_odd_segment(o, SCAN, 0);
    mrt_odd_splice(o, at, o->bytes - 2 - at, NULL, 0);
}

static void two_frames(mrt_odd *o, int variant)
{
    mrt_odd_base(o);
    const size_t at = mrt_odd_segment(o, FRAME, 0), bytes = mrt_odd_segment_bytes(o, at);
    uint8_t again[64];
    memcpy(again, o->data + at, bytes);
    if (variant) again[6] = 8;
    mrt_odd_splice(o, at + bytes, 0, again, bytes);
}

static void no_end(mrt_odd *o, int variant)
{
    (void)variant;
    mrt_odd_base(o);
    mrt_odd_splice(o, o->bytes - 2, 2, NULL, 0);
}

/* Where the n-th restart marker is. */
static size_t restart(const mrt_odd *o, int n)
{
    for (size_t at = mrt_odd_segment(o, SCAN, 0); at + 1 < o->bytes; at++)
        if (o->data[at] == 0xff && o->data[at + 1] >= 0xd0 && o->data[at + 1] <= 0xd7 && n-- == 0) return at;
    abort();
}

static void restarts(mrt_odd *o, int variant)
{
    mrt_odd_base(o);
    const size_t at = restart(o, 0);
    if (variant == 0) mrt_odd_splice(o, at, 2, NULL, 0);
    else if (variant == 1) o->data[at + 1] = 0xd5;
    else if (variant == 2) mrt_odd_splice(o, at, 0, "\xff\xd0", 2);
    else mrt_odd_splice(o, at - 9, 0, "\xff\xd0", 2);
}

static void lengths(mrt_odd *o, int variant)
{
    mrt_odd_base(o);
    if (variant >= 0) { /* of the first table, or of a segment that nobody reads */
        if (variant > 9) mrt_odd_splice(o, 20, 0, "\xff\xe5\0\0", 4);
        o->data[22] = 0;
        o->data[23] = (uint8_t)(variant % 10);
    } else {
        o->data[22] = o->data[23] = 0xff;
    }
}

static void sampling(mrt_odd *o, int variant)
{
    mrt_odd_base(o);
    o->data[mrt_odd_segment(o, FRAME, 0) + FACTORS] = (uint8_t)variant;
}

static void component_count(mrt_odd *o, int count)
{
    uint8_t frame[64] = {0xff,         FRAME,         0, (uint8_t)(8 + 3 * count), 8, 0, MRT_ODD_HIGH, 0,
                         MRT_ODD_WIDE, (uint8_t)count};
    mrt_odd_base(o);
    for (int k = 0; k < count; k++)
        memcpy(frame + 10 + 3 * k, (const uint8_t[]){(uint8_t)(k + 1), 0x11, 0}, 3);
    const size_t at = mrt_odd_segment(o, FRAME, 0);
    mrt_odd_splice(o, at, mrt_odd_segment_bytes(o, at), frame, 10 + 3 * (size_t)count);
}

static void table_of(mrt_odd *o, int variant)
{
    mrt_odd_base(o);
    const size_t at = mrt_odd_segment(o, variant < 2 ? 0xdb : 0xc4, 0);
    if (variant == 0) memset(o->data + at + 5, 0, 64);
    else if (variant == 1) o->data[at + 4] = 7; /* there are four */
    else memset(o->data + at + 5, 0xff, 16);    /* 4,080 codes */
}

static void scan_of(mrt_odd *o, int variant)
{
    mrt_odd_base(o);
    const size_t at = mrt_odd_segment(o, SCAN, 0);
    if (variant == 0) o->data[at + 5] = 77;   /* a component that is not there */
    if (variant == 1) o->data[at + 6] = 0x33; /* tables that are not there */
    if (variant == 2) o->data[at + 4] = 9;    /* components */
}

/* Nothing but ones, which is no code: near the top, or in the last row of blocks. */
static void noise_inside(mrt_odd *o, int low)
{
    mrt_odd_base(o);
    const size_t from = low ? restart(o, 1) + 2 : mrt_odd_segment(o, SCAN, 0) + 20;
    for (size_t k = 0; k < 8; k++) memcpy(o->data + from + 4 + 2 * k, "\xff", 2);
}

static void lines_missing(mrt_odd *o, int variant) /* the header promises more than there is */
{
    mrt_odd_base(o);
    o->data[mrt_odd_segment(o, FRAME, 0) + 6] = (uint8_t)variant;
}

/* variant / 10: how many of 64 pieces of the file are kept; variant % 10: whether an end marker follows. */
static void cut(mrt_odd *o, int variant)
{
    mrt_odd_base(o);
    const size_t keep = o->bytes * (size_t)(variant / 10) / 64;
    mrt_odd_splice(o, keep, o->bytes - keep, NULL, 0);
    if (variant % 10) mrt_odd_put(o, "\xff\xd9", 2);
}

static void first_bytes(mrt_odd *o, int count) { mrt_odd_put(o, "\xff\xd8\xff\xe0", (size_t)count); }

#define NO_END "no end marker (EOI)"
const mrt_odd_case mrt_odd_jpeg_damage[] = {
    {"nothing.jpg", first_bytes, 0, MR_EFORMAT, "found no bytes at all", NULL, 0},
    {"one-byte.jpg", first_bytes, 1, MR_EFORMAT, "found bytes ff", NULL, 0},
    {"soi.jpg", first_bytes, 2, MR_EFORMAT, "a JPEG that ends at byte 2", NULL, 0},
    {"soi-and-more.jpg", first_bytes, 4, MR_EFORMAT,
     "JPEG: ends at byte 4 before its frame header (SOF): truncated", NULL, 0},
    {"no-tables.jpg", without, 0xdb, MR_EFORMAT, "quantisation table 0 is missing or zero", NULL, 0},
    {"no-frame.jpg", without, FRAME, MR_EFORMAT, "before any frame header (SOF)", NULL, 0},
    {"no-scan.jpg", no_scan, 0, MR_EFORMAT, "without scans for all components", "missing SOS marker", 0},
    {"two-frames.jpg", two_frames, 0, MR_EFORMAT, "a second frame header (SOF)", "two SOF markers", 0},
    {"two-sizes.jpg", two_frames, 1, MR_EFORMAT, "a second frame header (SOF)", "two SOF markers", 0},
    {"no-end.jpg", no_end, 0, MR_EFORMAT, NO_END, NULL, 0},
    {"restart-missing.jpg", restarts, 0, MR_EFORMAT, "expected a marker behind MCU 3 of 9",
     "396 extraneous bytes before marker 0xd1", MRT_ODD_BELOW},
    {"restart-order.jpg", restarts, 1, MR_EFORMAT, "expected restart marker 0 behind MCU 3, at byte 1021",
     "found marker 0xd5 instead of RST0", MRT_ODD_BELOW},
    {"restart-twice.jpg", restarts, 2, MR_EFORMAT, "MCU 3 of 9 runs over the end of its entropy-coded data",
     "premature end of data segment", MRT_ODD_BELOW},
    {"restart-early.jpg", restarts, 3, MR_EFORMAT, "MCU 2 of 9 runs over the end of its entropy-coded data",
     "premature end of data segment", MRT_ODD_BELOW},
    {"length-0.jpg", lengths, 0, MR_EFORMAT, "length 0", NULL, 0},
    {"length-1.jpg", lengths, 1, MR_EFORMAT, "length 1", NULL, 0},
    {"length-0-app.jpg", lengths, 10, MR_EFORMAT, "length 0", NULL, 0},
    {"length-past-end.jpg", lengths, -1, MR_EFORMAT,
     "JPEG: ends at byte 1606 before its frame header (SOF): truncated", NULL, 0},
    {"factor-0.jpg", sampling, 0x02, MR_EFORMAT, "sampling factors 0 x 2; expected 1 to 4",
     "Bogus sampling factors", 0},
    {"factor-5.jpg", sampling, 0x51, MR_EFORMAT, "sampling factors 5 x 1; expected 1 to 4",
     "Bogus sampling factors", 0},
    {"mcu-too-large.jpg", sampling, 0x44, MR_EFORMAT, "blocks in an MCU",
     "Sampling factors too large for interleaved scan", 0},
    {"no-components.jpg", component_count, 0, MR_EUNSUPPORTED,
     "JPEG: 0 components; expected 1 (gray), 3 (colour) or 4 (CMYK)", NULL, 0},
    {"2-components.jpg", component_count, 2, MR_EUNSUPPORTED,
     "JPEG: 2 components; expected 1 (gray), 3 (colour) or 4 (CMYK)", NULL, 0},
    {"5-components.jpg", component_count, 5, MR_EUNSUPPORTED,
     "JPEG: 5 components; expected 1 (gray), 3 (colour) or 4 (CMYK)", NULL, 0},
    {"table-of-zeros.jpg", table_of, 0, MR_EFORMAT, "quantisation table 0 is missing or zero", NULL, 0},
    {"table-7.jpg", table_of, 1, MR_EFORMAT, "the DQT segment that ends at byte 89 does not add up",
     "Bogus DQT index 7", 0},
    {"codes-4080.jpg", table_of, 2, MR_EFORMAT, "the DHT segment that ends at byte 210 does not add up",
     "Bogus Huffman table definition", 0},
    {"scan-of-nobody.jpg", scan_of, 0, MR_EFORMAT, "Invalid component ID 77 in SOS", NULL, 0},
    {"scan-without-tables.jpg", scan_of, 1, MR_EFORMAT, "Huffman table 0x03 was not defined",
     "bad Huffman code", 0},
    {"scan-of-9.jpg", scan_of, 2, MR_EFORMAT, "the SOS segment that ends at byte 629 does not add up",
     "Bogus marker length", 0},
    {"noise-above.jpg", noise_inside, 0, MR_EFORMAT, "MCU 0 of 9 has bits that are no Huffman code",
     "bad Huffman code", MRT_ODD_BELOW},
    {"noise-below.jpg", noise_inside, 1, MR_EFORMAT, "MCU 6 of 9 has bits that are no Huffman code",
     "bad Huffman code", MRT_ODD_BELOW},
    {"lines-missing.jpg", lines_missing, 200, MR_EFORMAT, "expected restart marker 2 behind MCU 9",
     "found marker 0xd9 instead of RST2", MRT_ODD_BELOW},
    {"cut-01.jpg", cut, 10, MR_EFORMAT, "truncated", NULL, 0},
    {"cut-08.jpg", cut, 80, MR_EFORMAT, "truncated", NULL, 0},
    {"cut-20.jpg", cut, 200, MR_EFORMAT, "truncated", NULL, 0},
    {"cut-32.jpg", cut, 320, MR_EFORMAT, NO_END, NULL, 0},
    {"cut-48.jpg", cut, 480, MR_EFORMAT, NO_END, NULL, 0},
    {"cut-63.jpg", cut, 630, MR_EFORMAT, NO_END, NULL, 0},
    {"cut-32-ended.jpg", cut, 321, MR_EFORMAT, "MCU 1 of 9 runs over the end of its entropy-coded data",
     "premature end of data segment", MRT_ODD_BELOW},
    {"cut-63-ended.jpg", cut, 631, MR_EFORMAT, "MCU 8 of 9 runs over the end of its entropy-coded data",
     "premature end of data segment", MRT_ODD_BELOW},
    {0},
};
