/* pipeline/decode/other/bmp.c: a BMP to pixels.
 *
 * Masked samples become 8 bits: fewer are spread over 0 to 255 and rounded down, of more the high 8 count.
 * Runs that leave their row end with it. What RLE skips has colour 0; RLE that ends before the last pixel is
 * damage. */
#include "pipeline/decode/other/other.h"

typedef struct work {
    const mri_bmp_layout *bmp;
    const uint8_t *data;
    size_t bytes;
    const mri_other_out *out;
} work;

/* Row of the picture, counted from above, of the row-th in the file. */
static uint32_t upright(const mri_bmp_layout *b, uint32_t row)
{
    return b->top_down ? row : b->height - 1 - row;
}

static int no_colour(const mri_bmp_layout *b, uint32_t index, mr_error *err)
{
    return mr_error_set(err, MR_EFORMAT,
                        "BMP: a pixel has colour %u of its palette, which has only %u: damaged", index,
                        b->colour_count);
}

static void put_index(const work *w, uint8_t *to, uint32_t index)
{
    const uint8_t *c = w->bmp->colours + (size_t)index * w->bmp->colour_bytes;
    mri_other_put(to, w->out->channels, c[2], c[1], c[0]);
}

/* ---- plain rows ---- */

/* count pixels of a row from x on, each an index. */
static int put_indices(const work *w, const uint8_t *row, uint32_t x, uint32_t count, uint8_t *to,
                       mr_error *err)
{
    const uint32_t bits = w->bmp->bits, mask = (1u << bits) - 1;
    for (uint32_t k = 0; k < count; k++, x++, to += w->out->channels) {
        const size_t bit = (size_t)x * bits;
        const uint32_t index = row[bit / 8] >> (8 - bits - bit % 8) & mask;
        if (index >= w->bmp->colour_count) return no_colour(w->bmp, index, err);
        put_index(w, to, index);
    }
    return MR_OK;
}

/* A run of bits, and the factor that makes them 8 bits. */
typedef struct sample {
    unsigned shift, most;
} sample;

static sample sample_of(uint32_t mask)
{
    sample s = {(unsigned)__builtin_ctz(mask), 0};
    const unsigned count = (unsigned)__builtin_popcount(mask);
    if (count > 8) s.shift += count - 8;
    s.most = count > 8 ? 255 : (1u << count) - 1;
    return s;
}

static uint8_t sample_at(sample s, uint32_t pixel)
{
    const unsigned v = pixel >> s.shift & s.most;
    return (uint8_t)(s.most == 255 ? v : v * 255 / s.most);
}

static void put_masked(const work *w, const uint8_t *p, uint32_t count, uint8_t *to)
{
    const uint32_t *mask = w->bmp->mask, step = w->bmp->bits / 8;
    const sample r = sample_of(mask[0]), g = sample_of(mask[1]), b = sample_of(mask[2]);
    for (uint32_t k = 0; k < count; k++, p += step, to += w->out->channels) {
        const uint32_t pixel = step == 2 ? mri_le16(p) : mri_le32(p);
        mri_other_put(to, w->out->channels, sample_at(r, pixel), sample_at(g, pixel), sample_at(b, pixel));
    }
}

static int put_row(const work *w, const uint8_t *row, uint8_t *to, mr_error *err)
{
    const mri_rect part = w->out->part;
    const uint32_t bits = w->bmp->bits;
    if (bits <= 8) return put_indices(w, row, part.x, part.width, to, err);
    const uint8_t *p = row + (size_t)part.x * (bits / 8);
    if (bits != 24) {
        put_masked(w, p, part.width, to);
        return MR_OK;
    }
    for (uint32_t k = 0; k < part.width; k++, p += 3, to += w->out->channels)
        mri_other_put(to, w->out->channels, p[2], p[1], p[0]);
    return MR_OK;
}

static int decode_rows(const work *w, mr_error *err)
{
    const mri_bmp_layout *b = w->bmp;
    const mri_rect part = w->out->part;
    const uint64_t last = ((uint64_t)b->width * b->bits + 7) / 8,
                   need = mri_plus(mri_times(b->row_bytes, b->height - 1), last); /* some leave out the last
                                                                                    filling */
    if (w->bytes < b->data || w->bytes - b->data < need)
        return mr_error_set(err, MR_EFORMAT,
                            "BMP: %zu bytes; expected %llu for %u x %u pixels of %u bits: truncated",
                            w->bytes, (unsigned long long)(b->data + need), b->width, b->height, b->bits);
    for (uint32_t y = 0; y < part.height; y++) {
        const uint32_t row = upright(b, part.y + y); /* the two orders are each other's mirror */
        const int rc =
            put_row(w, w->data + b->data + (size_t)row * b->row_bytes, mri_other_at(w->out, 0, y), err);
        if (rc) return rc;
    }
    return MR_OK;
}

/* ---- runs ---- */

typedef struct pen {
    uint32_t x, row; /* row: in the order of the file */
    size_t at;       /* of the next byte */
} pen;

static void paint(const work *w, const pen *p, uint32_t x, uint32_t index)
{
    const mri_rect part = w->out->part;
    const uint32_t y = upright(w->bmp, p->row);
    if (x < part.x || x - part.x >= part.width || y < part.y || y - part.y >= part.height) return;
    put_index(w, mri_other_at(w->out, x - part.x, y - part.y), index);
}

static int run_ends(const work *w, const pen *p, mr_error *err)
{
    return mr_error_set(err, MR_EFORMAT, "BMP: runs end at byte %zu with row %u of %u: truncated or damaged",
                        p->at, p->row, w->bmp->height);
}

/* count pixels from the run's indices: one byte for all of them, or packed; all of them must have a colour.
 */
static int draw(const work *w, pen *p, const uint8_t *indices, bool packed, uint32_t count, mr_error *err)
{
    const mri_bmp_layout *b = w->bmp;
    const uint32_t n = (uint32_t)mri_min_u64(count, b->width - p->x);
    for (uint32_t k = 0; k < n; k++) {
        const uint8_t byte = indices[!packed ? 0 : b->coding == MRI_BMP_RLE8 ? k : k / 2];
        const uint32_t index = b->coding == MRI_BMP_RLE8 ? byte : k % 2 ? byte & 15 : byte >> 4;
        if (index >= b->colour_count) return no_colour(b, index, err);
        paint(w, p, p->x + k, index);
    }
    p->x += n;
    return MR_OK;
}

/* A step: right and down in the file's order. */
static int skip(const work *w, pen *p, mr_error *err)
{
    if (w->bytes - p->at < 2) return run_ends(w, p, err);
    const uint64_t x = (uint64_t)p->x + w->data[p->at], row = (uint64_t)p->row + w->data[p->at + 1];
    if (x > w->bmp->width || row >= w->bmp->height)
        return mr_error_set(err, MR_EFORMAT, "BMP: the step at byte %zu leaves the picture: damaged", p->at);
    p->x = (uint32_t)x;
    p->row = (uint32_t)row;
    p->at += 2;
    return MR_OK;
}

static int draw_packed(const work *w, pen *p, uint32_t count, mr_error *err)
{
    const size_t stored = w->bmp->coding == MRI_BMP_RLE8 ? count : (count + 1) / 2;
    if (w->bytes - p->at < stored) return run_ends(w, p, err);
    const int rc = draw(w, p, w->data + p->at, true, count, err);
    p->at += stored + (stored & 1); /* filled up to an even number */
    return rc;
}

static bool is_full(const work *w, const pen *p)
{
    return p->row >= w->bmp->height || (p->row == w->bmp->height - 1 && p->x == w->bmp->width);
}

static int decode_runs(const work *w, mr_error *err)
{
    const mri_bmp_layout *b = w->bmp;
    pen p = {.at = b->data};
    for (uint32_t y = 0; y < w->out->part.height; y++)
        for (uint32_t x = 0; x < w->out->part.width; x++) put_index(w, mri_other_at(w->out, x, y), 0);
    while (!is_full(w, &p)) {
        if (p.at > w->bytes || w->bytes - p.at < 2) return run_ends(w, &p, err);
        const uint8_t count = w->data[p.at], what = w->data[p.at + 1];
        int rc = MR_OK;
        p.at += 2;
        if (count) rc = draw(w, &p, w->data + p.at - 1, false, count, err);
        else if (what == 0) p.x = 0, p.row++;
        else if (what == 1) return run_ends(w, &p, err);
        else if (what == 2) rc = skip(w, &p, err);
        else rc = draw_packed(w, &p, what, err);
        if (rc) return rc;
    }
    return MR_OK;
}

int mri_bmp_decode(const mri_bmp_layout *bmp, const uint8_t *data, size_t bytes, const mri_other_out *out,
                   mr_error *err)
{
    const work w = {bmp, data, bytes, out};
    const mri_rect part = out->part;
    if (part.x >= bmp->width || part.width > bmp->width - part.x || part.y >= bmp->height ||
        part.height > bmp->height - part.y)
        return mr_error_set(err, MR_EFORMAT, "BMP: size changes within the file");
    return bmp->coding == MRI_BMP_PLAIN ? decode_rows(&w, err) : decode_runs(&w, err);
}
