/* formats/image/coef.c: look at a coefficient payload and take rows of blocks from it. The layout is in
 * coef_layout.h, the loops over blocks in coef_rows.c and its variants; coef_pack.c writes.
 *
 * Opening checks the head and that every row lies where the index says, long enough for its blocks' lengths
 * and DCs and with the slack after the last row. A row checks once that its lengths add up to it. After that
 * the loops need no further checks: a block read wrongly stays inside data, and its length shows the error at
 * its end. */
#include "formats/image/coef.h"

#include "base/simd.h"
#include "formats/image/coef_layout.h"

static const uint8_t signature[4] = {'M', 'R', 'C', 'F'};

static int wrong(mr_error *err, const char *what, unsigned long long expected, unsigned long long found)
{
    return mr_error_set(err, MR_EFORMAT, "coefficients: %s: expected %llu, found %llu", what, expected,
                        found);
}

/* ---- head ---- */

static int head_check(const uint8_t *p, size_t bytes, mr_error *err)
{
    if (bytes < MRI_COEF_HEAD || memcmp(p, signature, sizeof signature) != 0)
        return mr_error_set(
            err, MR_EFORMAT,
            "expected a coefficient payload (%d bytes, MRCF first), found %zu bytes of something else",
            MRI_COEF_HEAD, bytes);
    if (p[4] != 1)
        return mr_error_set(
            err, MR_EUNSUPPORTED,
            "coefficients: layout %u; this version reads layout 1: convert again or use a newer one", p[4]);
    const bool gray = p[5] == 1;
    if (!gray && p[5] != 3)
        return mr_error_set(err, MR_EFORMAT, "coefficients: %u components; expected 1 or 3", p[5]);
    if (gray ? p[6] != MRI_JPEG_GRAY : p[6] != MRI_JPEG_YCC && p[6] != MRI_JPEG_RGB)
        return mr_error_set(err, MR_EFORMAT, "coefficients: colour kind %u does not go with %u components",
                            p[6], p[5]);
    if (p[7] < 1 || p[7] > 8)
        return mr_error_set(err, MR_EFORMAT, "coefficients: orientation %u; expected 1 to 8", p[7]);
    if (mri_le16(p + 8) == 0 || mri_le16(p + 10) == 0)
        return mr_error_set(err, MR_EFORMAT, "coefficients: size %u x %u; expected 1 to 65535 each",
                            mri_le16(p + 8), mri_le16(p + 10));
    return MR_OK;
}

int mri_coef_header(const void *data, size_t bytes, mr_image_header *out, mr_error *err)
{
    const uint8_t *p = data;
    const int rc = head_check(p, bytes, err);
    if (rc) return rc;
    *out = (mr_image_header){.type = MR_TYPE_COEF,
                             .width = mri_le16(p + 8),
                             .height = mri_le16(p + 10),
                             .channels = p[5],
                             .bit_depth = 8,
                             .orientation = p[7]};
    for (uint32_t k = 0; k < p[5]; k++)
        memcpy(out->sampling[k], p + MRI_COEF_COMPONENT_AT + 4 * (size_t)k + 1, 2);
    return MR_OK;
}

/* ---- what follows from the head ---- */

static uint32_t ceil_div(uint32_t a, uint32_t b) { return a / b + (a % b != 0); }

static int component_read(mri_coef *c, uint32_t k, const uint8_t *p, uint32_t tables, mr_error *err)
{
    mri_jpeg_component *m = &c->frame.component[k];
    m->id = p[0];
    m->h = p[1];
    m->v = p[2];
    m->quant_table = p[3];
    const uint8_t most = c->frame.component_count == 1 ? 1 : MRI_JPEG_MAX_SAMPLING;
    if (m->h < 1 || m->h > most || m->v < 1 || m->v > most)
        return mr_error_set(err, MR_EFORMAT,
                            "coefficients: component %u is sampled %u x %u; expected 1 to %u", k, m->h, m->v,
                            most);
    if (m->quant_table >= tables) return wrong(err, "quantisation table below", tables, m->quant_table);
    const uint8_t *table = c->data + MRI_COEF_HEAD + (size_t)MRI_COEF_TABLE_BYTES * m->quant_table;
    memcpy(m->quant, table, sizeof m->quant);
    if (m->quant[0] == 0)
        return mr_error_set(err, MR_EFORMAT, "coefficients: quantisation table %u begins with 0",
                            m->quant_table);
    c->frame.h_max = c->frame.h_max < m->h ? m->h : c->frame.h_max;
    c->frame.v_max = c->frame.v_max < m->v ? m->v : c->frame.v_max;
    return MR_OK;
}

static void sizes_fill(mri_jpeg_frame *f)
{
    f->mcus_wide = ceil_div(f->width, 8 * f->h_max);
    f->mcus_high = ceil_div(f->height, 8 * f->v_max);
    for (uint32_t k = 0; k < f->component_count; k++) {
        mri_jpeg_component *m = &f->component[k];
        m->width = ceil_div(f->width * m->h, f->h_max);
        m->height = ceil_div(f->height * m->v, f->v_max);
        m->blocks_wide = ceil_div(m->width, 8);
        m->blocks_high = ceil_div(m->height, 8);
    }
}

/* Bytes [from, to) are zero. */
static bool zeros(const uint8_t *p, size_t from, size_t to)
{
    uint8_t any = 0;
    for (size_t k = from; k < to; k++) any |= p[k];
    return any == 0;
}

static int frame_read(mri_coef *c, mr_error *err)
{
    const uint8_t *p = c->data;
    if (!zeros(p, 13, 16) || !zeros(p, MRI_COEF_COMPONENT_AT + 4 * (size_t)p[5], MRI_COEF_HEAD))
        return mr_error_set(err, MR_EFORMAT, "coefficients: reserved bytes of the head are not zero");
    c->frame = (mri_jpeg_frame){.width = mri_le16(p + 8),
                                .height = mri_le16(p + 10),
                                .component_count = p[5],
                                .colour = (mri_jpeg_colour)p[6],
                                .orientation = p[7]};
    const uint32_t tables = p[12];
    if (tables < 1 || tables > c->frame.component_count)
        return mr_error_set(err, MR_EFORMAT, "coefficients: %u quantisation tables; expected 1 to %u", tables,
                            c->frame.component_count);
    if (c->bytes < MRI_COEF_HEAD + (size_t)MRI_COEF_TABLE_BYTES * tables)
        return wrong(err, "bytes, at least", MRI_COEF_HEAD + MRI_COEF_TABLE_BYTES * tables, c->bytes);
    for (uint32_t k = 0; k < c->frame.component_count; k++) {
        const int rc = component_read(c, k, p + MRI_COEF_COMPONENT_AT + 4 * (size_t)k, tables, err);
        if (rc) return rc;
    }
    sizes_fill(&c->frame);
    return MR_OK;
}

/* ---- row index: where each row begins, and at last where the last one ends ---- */

static uint32_t row_at(const mri_coef *c, uint32_t component, uint32_t row)
{
    return mri_le32(c->data + c->rows_at[component] + 4 * (size_t)row);
}

static int index_check(mri_coef *c, mr_error *err)
{
    size_t at = MRI_COEF_HEAD + (size_t)MRI_COEF_TABLE_BYTES * c->data[12];
    for (uint32_t k = 0; k < c->frame.component_count; k++) {
        c->rows_at[k] = at;
        at += 4 * (size_t)c->frame.component[k].blocks_high;
    }
    if (c->bytes < at + 4) return wrong(err, "bytes up to the end of the row index", at + 4, c->bytes);
    uint64_t next = at + 4;
    for (uint32_t k = 0; k < c->frame.component_count; k++) {
        const mri_jpeg_component *m = &c->frame.component[k];
        for (uint32_t y = 0; y < m->blocks_high; y++) {
            const uint32_t from = row_at(c, k, y), to = row_at(c, k, y + 1); /* one after the other over all
                                                                                components */
            if (y + k == 0 && from != next) return wrong(err, "first row at", next, from);
            if (to < from || to - from < MRI_COEF_BLOCK_FIXED * m->blocks_wide)
                return mr_error_set(
                    err, MR_EFORMAT,
                    "coefficients: row %u of component %u goes from %u to %u; expected %u bytes or "
                    "more for %u blocks",
                    y, k, from, to, MRI_COEF_BLOCK_FIXED * m->blocks_wide, m->blocks_wide);
            next = to;
        }
    }
    if (c->bytes != next + MRI_COEF_SLACK) return wrong(err, "bytes", next + MRI_COEF_SLACK, c->bytes);
    if (!zeros(c->data, (size_t)next, c->bytes))
        return mr_error_set(err, MR_EFORMAT, "coefficients: bytes after the last row are not zero");
    return MR_OK;
}

int mri_coef_open(mri_coef *c, const void *data, size_t bytes, mr_error *err)
{
    *c = (mri_coef){.data = data, .bytes = bytes};
    int rc = head_check(data, bytes, err);
    if (rc == MR_OK) rc = frame_read(c, err);
    if (rc == MR_OK) rc = index_check(c, err);
    return rc;
}

/* ---- rows ---- */

static uint64_t run_expand(const mri_coef_run *run)
{
#if defined(__x86_64__)
    const mri_simd_level level = mri_simd();
    if (level == MRI_SIMD_AVX512) return mri_coef_run_avx512(run);
    if (level == MRI_SIMD_AVX2) return mri_coef_run_avx2(run);
#endif
    return mri_coef_run_plain(run);
}

static size_t sum(const uint8_t *lengths, uint32_t count)
{
    size_t s = 0;
    for (uint32_t i = 0; i < count; i++) s += lengths[i];
    return s;
}

static int row_expand(const mri_coef *c, uint32_t component, uint32_t row, uint32_t x0, uint32_t x1,
                      int16_t (*coef)[MRI_JPEG_BLOCK], uint8_t *last, mr_error *err)
{
    const uint32_t from = row_at(c, component, row), to = row_at(c, component, row + 1);
    const uint32_t blocks = c->frame.component[component].blocks_wide;
    const uint8_t *lengths = c->data + from, *dc = lengths + blocks, *data = dc + 2 * (size_t)blocks;
    const size_t before = sum(lengths, x0), all = before + sum(lengths + x0, blocks - x0);
    bool damaged = all != to - from - MRI_COEF_BLOCK_FIXED * (size_t)blocks;
    if (!damaged) {
        const mri_coef_run run = {lengths + x0, dc + 2 * (size_t)x0, data + before, x1 - x0, coef, last};
        damaged = run_expand(&run) != 0;
    }
    if (!damaged) return MR_OK;
    return mr_error_set(
        err, MR_EFORMAT,
        "coefficients: row %u of component %u, at byte %u, is damaged: its blocks are not as long as it says",
        row, component, from);
}

int mri_coef_rows(const mri_coef *c, uint32_t mcu_row, const mri_block_window *window,
                  const mri_block_rows *out, mr_error *err)
{
    for (uint32_t k = 0; k < c->frame.component_count; k++) {
        const mri_block_window *w = &window[k];
        const uint32_t v = c->frame.component[k].v;
        if (w->x0 == w->x1) continue;
        const uint32_t first = w->y0 > mcu_row * v ? w->y0 : mcu_row * v,
                       end = w->y1 < (mcu_row + 1) * v ? w->y1 : (mcu_row + 1) * v;
        for (uint32_t y = first; y < end; y++) {
            const size_t at = (size_t)(y - first) * out[k].pitch;
            const int rc = row_expand(c, k, y, w->x0, w->x1, out[k].coef + at, out[k].last + at, err);
            if (rc) return rc;
        }
    }
    return MR_OK;
}
