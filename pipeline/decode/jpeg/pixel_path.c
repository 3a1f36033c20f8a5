/* pipeline/decode/jpeg/pixel_path.c: see pixel_path.h.
 *
 * A component is wanted when its samples matter to the result: of YCbCr only Y when gray is asked for. For
 * each wanted one the axes are brought to its own grid, their support gives the needed blocks, and these
 * blocks become a plane that begins on a block border. Rows of the result are made while the picture is
 * decoded, in bands, and a plane has only the rows that further ones need:
 *
 *   coefficients of a row of MCUs --> rows of each plane --resample--> rows of a band --colour--> the result
 *
 * Planes of three grids (no file that is known has any) are made whole first.
 *
 * Where the picture is reduced to an eighth or less, and this is asked for, a plane has one sample for each
 * block, its mean (the DC coefficient), and the filter does the rest. A chroma plane of half size then has
 * one sample for up to 16 pixels, which are at most two pixels of the result. */
#include "pipeline/decode/jpeg/pixel_path.h"

#include "pipeline/decode/jpeg/idct.h"

#define BAND_PIXELS 65536u /* a result of 224 x 224 is one band */
#define BAND_ROWS   4u     /* of a band at least: they share their weights */
#define SPARE_MCUS  4      /* rows of MCUs for which a plane has room, besides the rows that are kept */

struct plane {
    mri_block_window window;
    mri_axis x, y;
    uint32_t side;                  /* of a block: 8, or 1 for its mean */
    mri_buffer samples, coef, last; /* samples: side x side for each block */
    size_t stride;
    uint32_t top, rows; /* of blocks, in samples: the first one; how many there is room for */
};

struct mri_pixel_path {
    struct plane plane[3];
    mri_resample_plan *chroma; /* of planes with another grid than the first plane */
    mri_buffer band;           /* resampled planes of one band */
};

int mri_pixel_path_create(mri_pixel_path **out)
{
    *out = calloc(1, sizeof **out);
    return *out ? MR_OK : MR_ENOMEM;
}

void mri_pixel_path_destroy(mri_pixel_path *r)
{
    if (!r) return;
    for (int c = 0; c < 3; c++) {
        mri_buffer_free(&r->plane[c].samples);
        mri_buffer_free(&r->plane[c].coef);
        mri_buffer_free(&r->plane[c].last);
    }
    mri_buffer_free(&r->band);
    mri_resample_plan_destroy(r->chroma);
    free(r);
}

uint64_t mri_pixel_path_bound_bytes(uint64_t pixels, uint64_t width, uint64_t out)
{
    /* planes: whole blocks, so up to 7 more on each side, and 31 more rows and columns where an MCU is 4 x 4
     * blocks; coefficients: 4 rows of blocks of each component */
    const uint64_t columns = width + 32,
                   samples = pixels + 32 * columns + 32 * (pixels / (width ? width : 1) + 32);
    const uint64_t coefficients = 4 * (columns / 8 + 1) * (2 * MRI_JPEG_BLOCK + 1);
    return sizeof(mri_pixel_path) + 3 * (samples + coefficients + mri_max_u64(BAND_PIXELS, BAND_ROWS * out));
}

bool mri_pixel_path_supports(const mri_jpeg_frame *f)
{
    if (f->component_count == 1) return true;
    return f->component_count == 3 && (f->colour == MRI_JPEG_YCC || f->colour == MRI_JPEG_RGB);
}

/* ---- geometry ---- */

static mri_axis component_axis(const mri_axis *a, uint32_t most, uint32_t factor, uint32_t samples)
{
    mri_axis c = *a;
    c.unit_num = most;
    c.unit_den = factor;
    c.samples = samples;
    return c;
}

static int plan_plane(struct plane *p, const mri_jpeg_frame *f, uint32_t c, const mri_axis *x,
                      const mri_axis *y, mri_filter filter)
{
    const mri_jpeg_component *k = &f->component[c];
    const uint32_t side = p->side, pixels = 8 / side; /* of a sample, in each direction */
    p->x = component_axis(x, f->h_max * pixels, k->h, side == 8 ? k->width : k->blocks_wide);
    p->y = component_axis(y, f->v_max * pixels, k->v, side == 8 ? k->height : k->blocks_high);
    uint32_t lo, hi;
    mri_axis_support(&p->x, filter, &lo, &hi);
    p->window.x0 = lo / side;
    p->window.x1 = (hi + side - 1) / side;
    mri_axis_support(&p->y, filter, &lo, &hi);
    p->window.y0 = lo / side;
    p->window.y1 = (hi + side - 1) / side;
    const size_t wide = p->window.x1 - p->window.x0; /* below 2^13 */
    p->stride = side * wide;
    const bool ok = mri_buffer_need(&p->coef, k->v * wide * MRI_JPEG_BLOCK * sizeof(int16_t)) == MR_OK &&
                    mri_buffer_need(&p->last, k->v * wide) == MR_OK;
    return ok ? MR_OK : MR_ENOMEM;
}

/* Room for this number of rows of blocks, or for all. */
static int need_samples(struct plane *p, uint64_t rows)
{
    p->top = p->window.y0;
    p->rows = (uint32_t)mri_min_u64(rows, p->window.y1 - p->window.y0);
    return mri_buffer_need(&p->samples, (size_t)p->rows * p->side * p->stride);
}

/* ---- coefficients to planes ---- */

static void transform(struct plane *p, const mri_jpeg_component *k, uint32_t mcu_row)
{
    const uint32_t side = p->side;
    const uint32_t pitch = p->window.x1 - p->window.x0;
    const uint32_t from = mcu_row * k->v > p->window.y0 ? mcu_row * k->v : p->window.y0;
    const uint32_t to = (mcu_row + 1) * k->v < p->window.y1 ? (mcu_row + 1) * k->v : p->window.y1;
    const int16_t(*coef)[MRI_JPEG_BLOCK] = (const int16_t(*)[MRI_JPEG_BLOCK])(const void *)p->coef.data;
    for (uint32_t y = from; y < to; y++) {
        const size_t first = (size_t)(y - from) * pitch;
        uint8_t *const dst = p->samples.data + (size_t)(y - p->top) * side * p->stride;
        if (side == 1) mri_idct_means(coef + first, k->quant, pitch, dst);
        else mri_idct_row(coef + first, p->last.data + first, k->quant, pitch, dst, p->stride);
    }
}

/* Some rows of the result. */
struct band {
    uint32_t first, rows, width, channels, wanted;
    mri_filter filter;
    bool flip;
};

/* A result whose rows are made while the planes go by, so that these are still in the second cache. */
struct rising {
    mri_resample_plan *plan[3];
    uint8_t *to[3]; /* the band's planes, rows first .. first + room - 1 of the result */
    uint32_t count, first, room, done[3]; /* rows; done: made of each plane, of all rows */
    struct band band;
    uint8_t *dst;
    size_t dst_stride;
};

static mri_view view_of(const struct plane *p)
{
    return (mri_view){.pixels = p->samples.data,
                      .width = (uint32_t)p->stride,
                      .height = p->side * p->rows,
                      .channels = 1,
                      .stride = p->stride};
}

/* Room for rows of blocks [from, to) after the rows that the result still needs. */
static int slide(struct plane *p, uint32_t from, uint32_t to, uint32_t needed)
{
    if (to - p->top <= p->rows) return MR_OK;
    const uint32_t keep = needed < from ? needed : from;
    const size_t row = p->side * p->stride, moved = (from - keep) * row;
    uint8_t *const first = p->samples.data + (keep - p->top) * row;
    if (to - keep > p->rows) {
        const struct mri_buffer old = p->samples;
        p->rows = (uint32_t)mri_min_u64((uint64_t)(to - keep) + SPARE_MCUS, p->window.y1 - keep);
        p->samples = (mri_buffer){0};
        const int rc = mri_buffer_need(&p->samples, p->rows * row);
        if (rc == MR_OK) memcpy(p->samples.data, first, moved);
        free(old.data);
        if (rc) return rc;
    } else {
        memmove(p->samples.data, first, moved);
    }
    p->top = keep;
    return MR_OK;
}

/* Rows of plane c that need nothing below MCU row m and fit into the band; four at a time share their
 * weights. */
static int rise(struct rising *to, const struct plane *p, uint32_t c, uint32_t rows_of_mcu, uint32_t m)
{
    const uint32_t end = p->side * rows_of_mcu * (m + 1), from = to->done[c], full = to->first + to->room;
    const bool all = end >= p->side * p->window.y1;
    const uint32_t ready = all ? to->count : mri_resample_ready(to->plan[c], from, end);
    uint32_t past = all ? ready : from + (ready - from) / BAND_ROWS * BAND_ROWS;
    if (past > full) past = full;
    if (past == from) return MR_OK;
    const mri_view view = view_of(p);
    const size_t stride = to->band.width;
    to->done[c] = past;
    return mri_resample_rows(to->plan[c], &view, p->side * p->window.x0, p->side * p->top, from, past,
                             to->to[c] + (from - to->first) * stride, stride);
}

static void finish(const mri_jpeg_frame *f, const struct band *b, const uint8_t *plane[3], uint8_t *dst,
                   size_t dst_stride);

/* Rows of the band that all planes have, to the result. Returns their number. */
static uint32_t pour(struct rising *to, const mri_jpeg_frame *f)
{
    struct band b = to->band;
    const uint8_t *plane[3] = {to->to[0], to->to[1], to->to[2]};
    uint32_t done = to->done[0];
    for (uint32_t c = 1; c < b.wanted; c++) done = to->done[c] < done ? to->done[c] : done;
    b.rows = done - to->first;
    if (b.rows == 0) return 0;
    finish(f, &b, plane, to->dst + to->first * to->dst_stride, to->dst_stride);
    for (uint32_t c = 0; c < b.wanted; c++)
        memmove(to->to[c], to->to[c] + (size_t)b.rows * b.width, (size_t)(to->done[c] - done) * b.width);
    to->first = done;
    return b.rows;
}

/* All rows of the result that are possible with the planes up to MCU row m. */
static int rise_all(struct rising *to, const struct plane *plane, const mri_jpeg_frame *f, uint32_t m)
{
    for (bool full = true; full;) {
        full = false;
        for (uint32_t c = 0; c < to->band.wanted; c++) {
            if (rise(to, &plane[c], c, f->component[c].v, m)) return MR_ENOMEM;
            full |= to->done[c] == to->first + to->room;
        }
        full = full && pour(to, f) > 0 && to->first < to->count;
    }
    return MR_OK;
}

/* A row of MCUs into the planes. */
static int grow_planes(mri_pixel_path *r, const mri_jpeg_frame *f, uint32_t wanted, uint32_t m,
                       struct rising *to)
{
    for (uint32_t c = 0; c < wanted; c++) {
        struct plane *p = &r->plane[c];
        const uint32_t v = f->component[c].v, from = m * v > p->window.y0 ? m * v : p->window.y0,
                       end = (m + 1) * v < p->window.y1 ? (m + 1) * v : p->window.y1;
        if (from >= end) continue;
        if (to && slide(p, from, end, mri_resample_needs(to->plan[c], to->done[c]) / p->side))
            return MR_ENOMEM;
        transform(p, &f->component[c], m);
    }
    return to ? rise_all(to, r->plane, f, m) : MR_OK;
}

static int make_planes(mri_pixel_path *r, const mri_coefficients *from, uint32_t wanted, struct rising *to,
                       mr_error *err)
{
    const mri_jpeg_frame *f = from->frame;
    mri_block_window window[MRI_JPEG_MAX_COMPONENTS] = {{0}};
    mri_block_rows rows[MRI_JPEG_MAX_COMPONENTS] = {{0}};
    uint32_t first = UINT32_MAX, end = 0;
    for (uint32_t c = 0; c < wanted; c++) {
        const struct plane *p = &r->plane[c];
        const uint32_t v = f->component[c].v, last_row = (p->window.y1 + v - 1) / v;
        window[c] = p->window;
        rows[c] = (mri_block_rows){(int16_t(*)[MRI_JPEG_BLOCK])(void *)p->coef.data, p->last.data,
                                   p->window.x1 - p->window.x0};
        if (p->window.y0 / v < first) first = p->window.y0 / v;
        if (last_row > end) end = last_row;
    }
    int rc = from->window(from->self, window, err);
    if (rc == MR_OK && r->plane[0].side == 1 && from->only_dc) from->only_dc(from->self);
    for (uint32_t m = first; rc == MR_OK && m < end; m++) {
        rc = from->rows(from->self, m, rows, err);
        if (rc == MR_OK && grow_planes(r, f, wanted, m, to))
            rc = mr_error_set(err, MR_ENOMEM, "JPEG: no memory for rows of the result");
    }
    if (rc == MR_OK && to) pour(to, f);
    return rc == MR_OK ? from->end(from->self, err) : rc;
}

/* ---- planes to the result ---- */

static bool same_grid(const mri_jpeg_component *a, const mri_jpeg_component *b)
{
    return a->h == b->h && a->v == b->v; /* and with that the same size */
}

/* Rows [first, first + count) of the wanted ones of plane c. The plan is left as it is when plane c - 1 had
 * the same grid. */
static int resample_plane(mri_pixel_path *r, mri_resample_plan *plan, const mri_jpeg_frame *f, uint32_t c,
                          const struct band *b, uint8_t *dst, size_t dst_stride)
{
    const struct plane *p = &r->plane[c];
    if (c == 0 || !same_grid(&f->component[c - 1], &f->component[c])) {
        mri_axis y = p->y;
        y.first += b->first;
        y.count = b->rows;
        if (mri_resample_plan_set(plan, &p->x, &y, b->filter, b->flip, 1)) return MR_ENOMEM;
    }
    const mri_view view = view_of(p);
    return mri_resample_run(plan, &view, p->side * p->window.x0, p->side * p->top, dst, dst_stride);
}

static void finish_row(const mri_jpeg_frame *f, uint32_t channels, const uint8_t *const plane[3],
                       size_t count, uint8_t *dst)
{
    if (f->component_count == 1) mri_gray_to_rgb(plane[0], count, dst);
    else if (f->colour == MRI_JPEG_YCC) mri_ycc_to_rgb(plane[0], plane[1], plane[2], count, dst);
    else if (channels == 3) mri_planes_to_rgb(plane[0], plane[1], plane[2], count, dst);
    else
        for (size_t k = 0; k < count; k++) dst[k] = mri_gray(plane[0][k], plane[1][k], plane[2][k]);
}

/* Planes of the result's width to the result. */
static void finish(const mri_jpeg_frame *f, const struct band *b, const uint8_t *plane[3], uint8_t *dst,
                   size_t dst_stride)
{
    if (b->wanted == 1 && b->channels == 1) {
        for (uint32_t row = 0; row < b->rows; row++)
            memcpy(dst + row * dst_stride, plane[0] + (size_t)row * b->width, b->width);
        return;
    }
    const bool packed = dst_stride == (size_t)b->width * b->channels;
    for (uint32_t row = 0; row < (packed ? 1 : b->rows); row++) {
        finish_row(f, b->channels, plane, (size_t)b->width * (packed ? b->rows : 1), dst + row * dst_stride);
        for (uint32_t c = 0; c < b->wanted; c++) plane[c] += b->width;
    }
}

static int make_band(mri_pixel_path *r, mri_resample_plan *plan, const mri_jpeg_frame *f,
                     const struct band *b, uint8_t *dst, size_t dst_stride)
{
    if (b->wanted == 1 && b->channels == 1) return resample_plane(r, plan, f, 0, b, dst, dst_stride);
    const size_t plane_bytes = (size_t)b->width * b->rows;
    const uint8_t *plane[3] = {0};
    if (mri_buffer_need(&r->band, b->wanted * plane_bytes)) return MR_ENOMEM;
    for (uint32_t c = 0; c < b->wanted; c++) {
        uint8_t *to = r->band.data + c * plane_bytes;
        plane[c] = to;
        if (resample_plane(r, plan, f, c, b, to, b->width)) return MR_ENOMEM;
    }
    finish(f, b, plane, dst, dst_stride);
    return MR_OK;
}

/* Rows of blocks that a plane has room for: for the rows of a few rows of the result, and some rows of MCUs.
 */
static uint64_t rows_kept(const mri_resample_plan *plan, uint32_t count, uint32_t side, uint32_t v)
{
    uint32_t most = 0;
    for (uint32_t k = 0; k < count; k += BAND_ROWS) {
        const uint32_t end = mri_resample_needs(plan, k + 2 * BAND_ROWS),
                       rows = end - mri_resample_needs(plan, k);
        if (rows > most) most = rows;
    }
    return (uint64_t)most / side + 1 + (uint64_t)SPARE_MCUS * v;
}

/* Plans, planes and places for a result; MR_EUNSUPPORTED: planes of three grids. */
static int prepare_rising(mri_pixel_path *r, mri_resample_plan *plan, const mri_jpeg_frame *f,
                          const struct band *b, uint32_t count, struct rising *to)
{
    const uint64_t rows = BAND_PIXELS / b->width / BAND_ROWS * BAND_ROWS;
    *to = (struct rising){.count = count, .band = *b};
    to->room = (uint32_t)mri_min_u64(count, mri_max_u64(rows, BAND_ROWS));
    const size_t plane_bytes = (size_t)b->width * to->room;
    if (!r->chroma && mri_resample_plan_create(&r->chroma)) return MR_ENOMEM;
    if (mri_buffer_need(&r->band, b->wanted * plane_bytes)) return MR_ENOMEM;
    for (uint32_t c = 0; c < b->wanted; c++) {
        const bool first = c > 0 && same_grid(&f->component[0], &f->component[c]);
        to->to[c] = r->band.data + c * plane_bytes;
        to->plan[c] = c == 0 || first ? plan : r->chroma;
        if (c == 2 && !first && !same_grid(&f->component[1], &f->component[2])) return MR_EUNSUPPORTED;
        if (!first && c < 2 &&
            mri_resample_plan_set(to->plan[c], &r->plane[c].x, &r->plane[c].y, b->filter, b->flip, 1))
            return MR_ENOMEM;
        if (need_samples(&r->plane[c], rows_kept(to->plan[c], count, r->plane[c].side, f->component[c].v)))
            return MR_ENOMEM;
    }
    return MR_OK;
}

/* All bands, from planes that are there. */
static int make_bands(mri_pixel_path *r, mri_resample_plan *plan, const mri_jpeg_frame *f, struct band b,
                      uint32_t count, uint8_t *dst, size_t dst_stride)
{
    const uint32_t most_rows = b.width < BAND_PIXELS ? BAND_PIXELS / b.width : 1;
    int rc = MR_OK;
    for (; b.first < count && rc == MR_OK; b.first += b.rows) {
        b.rows = count - b.first < most_rows ? count - b.first : most_rows;
        rc = make_band(r, plan, f, &b, dst + b.first * dst_stride, dst_stride);
    }
    return rc;
}

static bool eighth(const mri_axis *a) { return a->size / 8 >= a->out; }

int mri_pixel_path_run(mri_pixel_path *r, mri_resample_plan *plan, const mri_coefficients *from,
                       const mri_axis *x, const mri_axis *y, mri_filter filter, bool flip, bool reduce,
                       uint32_t channels, uint8_t *dst, size_t dst_stride, mr_error *err)
{
    const mri_jpeg_frame *f = from->frame;
    const uint32_t wanted = f->component_count == 1 || (channels == 1 && f->colour == MRI_JPEG_YCC) ? 1 : 3;
    struct band b = {.rows = y->count,
                     .width = x->count,
                     .channels = channels,
                     .wanted = wanted,
                     .filter = filter,
                     .flip = flip};
    struct rising to;
    int rc = MR_OK;
    const uint32_t side = reduce && eighth(x) && eighth(y) ? 1 : 8;
    for (uint32_t c = 0; c < wanted && rc == MR_OK; c++) {
        r->plane[c].side = side;
        rc = plan_plane(&r->plane[c], f, c, x, y, filter);
    }
    if (rc == MR_OK) rc = prepare_rising(r, plan, f, &b, y->count, &to);
    const bool rises = rc == MR_OK;
    if (rc == MR_EUNSUPPORTED) {
        rc = MR_OK;
        for (uint32_t c = 0; c < wanted && rc == MR_OK; c++) rc = need_samples(&r->plane[c], UINT32_MAX);
    }
    if (rc)
        return mr_error_set(err, rc, "JPEG: no memory for the planes of %u x %u pixels", x->size, y->size);
    to.dst = dst;
    to.dst_stride = dst_stride;
    rc = make_planes(r, from, wanted, rises ? &to : NULL, err);
    if (rc || rises) return rc;
    rc = make_bands(r, plan, f, b, y->count, dst, dst_stride);
    return rc == MR_OK
               ? MR_OK
               : mr_error_set(err, rc, "JPEG: no memory for a result of %u x %u pixels", x->count, y->count);
}
