/* pipeline/decode/png_rows.c: see png_rows.h.
 *
 *   rows   | row before | filter, row | filter, row | filter, some of a row |        |
 *            undone       inflated: undone one by one                          room
 *
 * Inflating stops after the last wanted row. When the buffer is full, the last whole row and the available
 * bytes of the next one move to the front. */
#include "pipeline/decode/png_rows.h"

#include <isa-l/igzip_lib.h>

enum {
    INPUT = 64 << 10,    /* IDAT bodies of 8 KiB, as many programs write them, come as one */
    ROOM = 128 << 10,    /* each call of inflate copies 32 KiB of history */
    ROW_MOST = 64 << 10, /* bytes of a row; rare beyond */
};

struct mri_png_rows {
    struct inflate_state inflate;
    uint8_t input[INPUT];
    uint8_t rows[ROOM + 2 * ROW_MOST + 64];
    size_t filled, used; /* of rows: bytes there; up to which filters are undone */
    bool failed;         /* inflate found something wrong */
};

/* Samples of a picture as it is stored. */
typedef struct layout {
    unsigned pixel, step; /* bytes of a pixel, of a sample */
    unsigned green, blue; /* place in the pixel of the second and third colour; 0: gray, or an index */
    const uint8_t *palette;
    uint32_t palette_count;
    size_t row; /* bytes of a row, its filter apart */
} layout;

int mri_png_rows_create(mri_png_rows **out)
{
    *out = malloc(sizeof **out);
    if (!*out) return MR_ENOMEM;
    isal_inflate_init(&(*out)->inflate);
    return MR_OK;
}

void mri_png_rows_destroy(mri_png_rows *r) { free(r); }

/* ---- the kind of picture ---- */

static bool find_layout(layout *l, const mri_png_chunks *c, const mr_image_header *h)
{
    static const uint8_t samples_of[7] = {1, 0, 3, 1, 2, 0, 4};
    const uint8_t depth = c->data[24], colour = c->data[25];
    const unsigned samples = colour < 7 ? samples_of[colour] : 0;
    const bool plain = c->data[26] == 0 && c->data[27] == 0 && c->data[28] == 0; /* methods; no interlacing */
    if (!plain || samples == 0 || (depth != 8 && depth != 16) || (colour == 3 && (depth != 8 || !c->palette)))
        return false;
    *l = (layout){.step = depth / 8, .palette = c->palette, .palette_count = c->palette_count};
    l->pixel = samples * l->step;
    if (samples >= 3) {
        l->green = l->step;
        l->blue = 2 * l->step;
    }
    l->row = (size_t)h->width * l->pixel;
    return l->row <= ROW_MOST;
}

/* ---- rows ---- */

static void gather(mri_png_rows *r, mri_png_chunks *c)
{
    r->inflate.next_in = r->input;
    r->inflate.avail_in = (uint32_t)mri_png_take_data(c, r->input, INPUT);
}

/* Up to more bytes; how many there were: fewer at the end of the compressed data, or when they are odd. */
static size_t inflate(mri_png_rows *r, mri_png_chunks *c, uint8_t *to, size_t more)
{
    struct inflate_state *s = &r->inflate;
    s->next_out = to;
    s->avail_out = (uint32_t)more;
    while (s->avail_out > 0 && !r->failed && s->block_state != ISAL_BLOCK_FINISH) {
        if (s->avail_in == 0) gather(r, c);
        const uint32_t in = s->avail_in, out = s->avail_out;
        r->failed = isal_inflate(s) < 0; /* the checksum, too, with which the last block is over */
        if (r->failed) break;
        if (s->avail_in == in && s->avail_out == out) break;
    }
    return more - s->avail_out;
}

/* The compressed data end here, and their checksum is right. */
static bool ends(mri_png_rows *r, mri_png_chunks *c)
{
    uint8_t beyond;
    return inflate(r, c, &beyond, 1) == 0 && !r->failed && r->inflate.block_state == ISAL_BLOCK_FINISH;
}

static bool begin(mri_png_rows *r, mri_png_chunks *c, const layout *l, uint32_t height)
{
    isal_inflate_reset(&r->inflate);
    r->failed = false;
    r->inflate.crc_flag = ISAL_ZLIB;
    r->inflate.avail_out = 0;
    mri_png_rewind_data(c);
    gather(r, c);
    const unsigned window_bits = 8 + (r->input[0] >> 4);
    const uint64_t all = (uint64_t)(l->row + 1) * height;
    if (r->inflate.avail_in < 2 || window_bits > 15) return false;
    if (window_bits < 15 && all > (uint64_t)1 << window_bits)
        return false; /* distances would have to be
                         checked */
    memset(r->rows, 0, l->row);
    r->filled = r->used = l->row; /* the row above the first one */
    return true;
}

/* Another row, its filter undone; NULL: something is odd. rest: bytes from this row on to the last wanted
 * one's end. */
static uint8_t *next_row(mri_png_rows *r, mri_png_chunks *c, const layout *l, uint64_t rest)
{
    const size_t need = l->row + 1;
    if (r->filled - r->used < need) {
        memmove(r->rows, r->rows + r->used - l->row, r->filled - r->used + l->row);
        r->filled -= r->used - l->row;
        r->used = l->row;
        const size_t have = r->filled - r->used,
                     more = (size_t)mri_min_u64(rest - have, ROOM + 2 * ROW_MOST - r->filled);
        r->filled += inflate(r, c, r->rows + r->filled, more);
        if (r->filled - r->used < need) return NULL;
    }
    uint8_t *row = r->rows + r->used + 1;
    const uint8_t *before = r->rows + r->used - l->row;
    r->used += need;
    return mri_png_unfilter(row, before, l->row, l->pixel, row[-1]) ? row : NULL;
}

/* ---- pixels ---- */

static bool indices_are_good(const layout *l, const uint8_t *row)
{
    uint8_t most = 0;
    if (!l->palette || l->palette_count == 256) return true;
    for (size_t k = 0; k < l->row; k++) most = row[k] > most ? row[k] : most;
    return most < l->palette_count;
}

static void put_gray(const layout *l, const uint8_t *p, uint32_t count, uint8_t *dst)
{
    if (l->palette)
        for (uint32_t k = 0; k < count; k++) {
            const uint8_t *q = l->palette + 3 * (size_t)p[k];
            dst[k] = mri_gray(q[0], q[1], q[2]);
        }
    else if (l->pixel == 1) memcpy(dst, p, count);
    else
        for (uint32_t k = 0; k < count; k++, p += l->pixel) dst[k] = mri_gray(p[0], p[l->green], p[l->blue]);
}

static void put_colour(const layout *l, const uint8_t *p, uint32_t count, uint8_t *dst)
{
    if (l->palette)
        for (uint32_t k = 0; k < count; k++) memcpy(dst + 3 * (size_t)k, l->palette + 3 * (size_t)p[k], 3);
    else if (l->pixel == 3) memcpy(dst, p, 3 * (size_t)count);
    else
        for (uint32_t k = 0; k < count; k++, p += l->pixel, dst += 3) {
            dst[0] = p[0];
            dst[1] = p[l->green];
            dst[2] = p[l->blue];
        }
}

int mri_png_rows_decode(mri_png_rows *r, mri_png_chunks *c, const mr_image_header *h, uint32_t channels,
                        mri_rect part, uint8_t *dst)
{
    layout l;
    const uint32_t end = part.y + part.height;
    if (!find_layout(&l, c, h) || !begin(r, c, &l, h->height)) return MR_EUNSUPPORTED;
    for (uint32_t y = 0; y < end; y++) {
        const uint8_t *row = next_row(r, c, &l, (uint64_t)(l.row + 1) * (end - y));
        if (!row || !indices_are_good(&l, row)) return MR_EUNSUPPORTED;
        if (y < part.y) continue;
        uint8_t *to = dst + (size_t)(y - part.y) * part.width * channels;
        if (channels == 1) put_gray(&l, row + (size_t)part.x * l.pixel, part.width, to);
        else put_colour(&l, row + (size_t)part.x * l.pixel, part.width, to);
    }
    return end < h->height || ends(r, c) ? MR_OK : MR_EUNSUPPORTED;
}
