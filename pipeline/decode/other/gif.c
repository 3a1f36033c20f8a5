/* pipeline/decode/other/gif.c: the first frame of a GIF to pixels.
 *
 *   blocks of codes ──► codes ──► strings of indices ──► a row ──► its pixels in the part
 *
 * A code stands for the string of an earlier code and one index more (LZW as in the GIF89a specification):
 * the table has for each code the earlier one, the last index, and the length. Strings are written from their
 * end. When the table is full it stays as it is until the file clears it. Pixels that the frame leaves free
 * have the transparent colour, else colour 0. Data after the last wanted row are not read. */
#include "pipeline/decode/other/other.h"

enum { CODES = 4096, CODE_BITS = 12, ROW_MOST = 65535, NO_CODE = CODES };

struct mri_gif_work {
    uint16_t before[CODES], length[CODES];
    uint8_t last[CODES];
    uint8_t text[CODES + 1];
    uint8_t row[ROW_MOST];
};

void mri_gif_work_destroy(mri_gif_work *w) { free(w); }

/* ---- codes ---- */

typedef struct code_reader {
    const uint8_t *p;
    size_t bytes, at, block; /* block: bytes of this block that are left */
    uint32_t bits;           /* bit_count of them, the first lowest */
    unsigned bit_count;
} code_reader;

/* False: there are no more. */
static bool next_byte(code_reader *r)
{
    if (r->block == 0) {
        if (r->at == r->bytes || r->p[r->at] == 0) return false;
        r->block = r->p[r->at++];
    }
    if (r->at == r->bytes) return false;
    r->bits |= (uint32_t)r->p[r->at++] << r->bit_count;
    r->bit_count += 8;
    r->block--;
    return true;
}

static bool next_code(code_reader *r, unsigned width, unsigned *out)
{
    while (r->bit_count < width)
        if (!next_byte(r)) return false;
    *out = r->bits & ((1u << width) - 1);
    r->bits >>= width;
    r->bit_count -= width;
    return true;
}

/* ---- rows ---- */

/* Rows of an interlaced frame come in four passes. */
static const uint8_t pass_start[4] = {0, 4, 2, 1}, pass_step[4] = {8, 8, 4, 2};

typedef struct frame {
    const mri_gif_layout *gif;
    const mri_other_out *out;
    uint8_t *row;
    uint32_t x;    /* of the next index in its row */
    uint32_t y;    /* of the row in the frame */
    uint32_t done; /* rows */
    int pass;
    uint32_t wanted; /* rows, in the order of the file, up to the last that the part needs */
} frame;

static void colour_of(const mri_gif_layout *g, uint32_t index, uint8_t rgb[3])
{
    if (index < g->colour_count) memcpy(rgb, g->colours + 3 * (size_t)index, 3);
    else memset(rgb, g->colour_count ? 0 : (int)index, 3);
}

static void fill_background(const mri_gif_layout *g, const mri_other_out *out)
{
    uint8_t rgb[3];
    colour_of(g, (uint32_t)g->background, rgb);
    const size_t count = (size_t)out->part.width * out->part.height;
    for (size_t k = 0; k < count; k++)
        mri_other_put(out->pixels + k * out->channels, out->channels, rgb[0], rgb[1], rgb[2]);
}

/* The frame's row y is whole: its part into the picture. */
static int put_row(const frame *f, mr_error *err)
{
    const mri_gif_layout *g = f->gif;
    const mri_rect part = f->out->part;
    uint8_t most = 0;
    for (uint32_t k = 0; k < g->frame_w; k++) most = f->row[k] > most ? f->row[k] : most;
    if (g->colour_count && most >= g->colour_count)
        return mr_error_set(err, MR_EFORMAT,
                            "GIF: row %u has colour %u of its palette, which has only %u: damaged", f->y,
                            most, g->colour_count);
    const uint32_t y = g->y + f->y;
    if (y < part.y || y - part.y >= part.height) return MR_OK;
    const uint32_t from = part.x > g->x ? part.x : g->x,
                   end = (uint32_t)mri_min_u64(part.x + (uint64_t)part.width, g->x + (uint64_t)g->frame_w);
    for (uint32_t x = from; x < end; x++) {
        uint8_t rgb[3];
        colour_of(g, f->row[x - g->x], rgb);
        mri_other_put(mri_other_at(f->out, x - part.x, y - part.y), f->out->channels, rgb[0], rgb[1], rgb[2]);
    }
    return MR_OK;
}

static void next_row(frame *f)
{
    f->done++;
    f->x = 0;
    if (!f->gif->interlaced) {
        f->y++;
        return;
    }
    f->y += pass_step[f->pass];
    while (f->y >= f->gif->frame_h && f->pass < 3) f->y = pass_start[++f->pass];
}

/* Indices that a code stands for; indices after the last wanted row are dropped. */
static int put_text(frame *f, const uint8_t *text, size_t count, mr_error *err)
{
    while (count > 0 && f->done < f->wanted) {
        const size_t n = mri_min_u64(count, f->gif->frame_w - f->x);
        memcpy(f->row + f->x, text, n);
        f->x += (uint32_t)n;
        text += n;
        count -= n;
        if (f->x < f->gif->frame_w) break;
        const int rc = put_row(f, err);
        if (rc) return rc;
        next_row(f);
    }
    return MR_OK;
}

static uint32_t rows_wanted(const mri_gif_layout *g, mri_rect part)
{
    const uint64_t end = part.y + (uint64_t)part.height;
    if (end <= g->y) return 0;
    if (g->interlaced || end - g->y >= g->frame_h) return g->frame_h;
    return (uint32_t)(end - g->y);
}

/* ---- strings ---- */

typedef struct table {
    unsigned clear, next, width, earlier; /* next: code that gets a string now; earlier: NO_CODE after a
                                             clear */
} table;

static void restart(table *t, unsigned code_bits)
{
    t->clear = 1u << code_bits;
    t->next = t->clear + 2;
    t->width = code_bits + 1;
    t->earlier = NO_CODE;
}

/* The string of a code at the end of text; where it begins. */
static const uint8_t *text_of(mri_gif_work *w, unsigned code)
{
    uint8_t *to = w->text + CODES;
    for (unsigned k = w->length[code]; k > 0; k--, code = w->before[code]) *--to = w->last[code];
    return to;
}

/* A code's string, and the string that the table gets with it. */
static int take_code(mri_gif_work *w, table *t, unsigned code, frame *f, mr_error *err)
{
    const bool known = code < t->next;
    if (code > t->next || (!known && (t->earlier == NO_CODE || t->next == CODES)) ||
        (t->earlier == NO_CODE && code > t->clear))
        return mr_error_set(err, MR_EFORMAT, "GIF: code %u in row %u; expected one below %u: damaged", code,
                            f->y, t->earlier == NO_CODE ? t->clear : t->next + 1);
    if (t->earlier != NO_CODE && t->next < CODES) {
        w->before[t->next] = (uint16_t)t->earlier;
        w->length[t->next] = (uint16_t)(w->length[t->earlier] + 1);
        w->last[t->next] = *text_of(w, known ? code : t->earlier);
        t->next++;
        if (t->next == 1u << t->width && t->width < CODE_BITS) t->width++;
    }
    t->earlier = code;
    return put_text(f, text_of(w, code), w->length[code], err);
}

static int decode_frame(mri_gif_work *w, frame *f, code_reader *r, mr_error *err)
{
    const mri_gif_layout *g = f->gif;
    table t;
    restart(&t, g->code_bits);
    for (unsigned k = 0; k < t.clear; k++) {
        w->length[k] = 1;
        w->last[k] = (uint8_t)k;
    }
    while (f->done < f->wanted) {
        unsigned code;
        if (!next_code(r, t.width, &code) || code == t.clear + 1)
            return mr_error_set(err, MR_EFORMAT,
                                "GIF: the data end at byte %zu with row %u of %u: truncated or damaged",
                                r->at, f->done, g->frame_h);
        if (code == t.clear) {
            restart(&t, g->code_bits);
            continue;
        }
        const int rc = take_code(w, &t, code, f, err);
        if (rc) return rc;
    }
    return MR_OK;
}

int mri_gif_decode(mri_gif_work **work, const mri_gif_layout *gif, const uint8_t *data, size_t bytes,
                   const mri_other_out *out, mr_error *err)
{
    const mri_rect part = out->part;
    if (!*work) *work = malloc(sizeof **work);
    if (!*work) return mr_error_set(err, MR_ENOMEM, "GIF: no memory for a decoder");
    if (gif->frame_w > ROW_MOST || part.width > gif->width || part.height > gif->height)
        return mr_error_set(err, MR_EFORMAT, "GIF: size changes within the file");
    if (gif->frame_w < gif->width || gif->frame_h < gif->height) fill_background(gif, out);
    frame f = {.gif = gif, .out = out, .row = (*work)->row, .wanted = rows_wanted(gif, part)};
    code_reader r = {.p = data, .bytes = bytes, .at = gif->data};
    return decode_frame(*work, &f, &r, err);
}
