/* pipeline/augment/geometry.c: where the picture in a batch lies in the stored one, and boxes and masks taken
 * there.
 *
 *   stored ──EXIF──► upright ──window, resample, window, ...──► result    a picture: operations move pixels
 *                    upright ◄────── scale * i + offset ─────── result    a mask: each result pixel looks up
 *                                                                         one stored pixel
 *                    upright ──────── cut, inverse ───────────► result    a box: two corners
 *
 * Most operations keep x and y apart, so a side is a scale, an offset and three intervals (augment.h). Which
 * pixels show anything is kept in whole pixels, and is exact; the rest are doubles, added, multiplied and
 * divided in one order only.
 *
 * A turn mixes x and y. The sides of before it are put aside and new ones begin, of the turn's result; boxes
 * and masks then go through one after the other. A box becomes a polygon there. */
#include "pipeline/augment/geometry.h"

#include <math.h>

/* ---- following a picture ---- */

static mri_geometry_side side_of(uint32_t pixels)
{
    return (mri_geometry_side){.scale = 1, .first = 0.5, .last = pixels - 0.5, .to = pixels, .end = pixels};
}

void mri_geometry_start(mri_geometry *g, uint32_t stored_w, uint32_t stored_h, uint32_t orientation)
{
    const bool swap = mri_orient_swaps(orientation);
    g->stored_w = stored_w;
    g->stored_h = stored_h;
    g->orientation = orientation;
    g->out_w = swap ? stored_h : stored_w;
    g->out_h = swap ? stored_w : stored_h;
    g->turns = 0;
    g->x = side_of(g->out_w);
    g->y = side_of(g->out_h);
}

static double place(const mri_geometry_side *s, double at) { return s->scale * at + s->offset; }

/* The interval becomes its part between two points given in any order. */
static void narrow(double *lo, double *hi, double a, double b)
{
    const double least = a < b ? a : b, most = a < b ? b : a;
    if (*lo < least) *lo = least;
    if (*hi > most) *hi = most;
}

/* The result, `pixels` long now, is all there is from here on. */
static void finish(mri_geometry_side *s, int64_t begin, int64_t end, uint32_t pixels, bool flip)
{
    narrow(&s->from, &s->to, place(s, 0), place(s, pixels));
    begin = begin < 0 ? 0 : begin;
    end = end > pixels ? pixels : end;
    if (begin >= end) begin = end = 0;
    s->begin = (uint32_t)(flip ? pixels - end : begin);
    s->end = (uint32_t)(flip ? pixels - begin : end);
    if (!flip) return;
    s->offset = place(s, pixels);
    s->scale = -s->scale;
}

static void window_side(mri_geometry_side *s, uint32_t side, int64_t at, uint32_t pixels, mri_outside outside,
                        bool flip)
{
    int64_t begin = s->begin, end = s->end;
    if (outside == MRI_OUTSIDE_EDGE) {
        const bool at_first = begin == 0 && end > 0, at_last = end == side && begin < end;
        narrow(&s->first, &s->last, place(s, 0.5), place(s, side - 0.5));
        if (at_first && at < 0) begin = at; /* the repeated edge shows the outermost pixel */
        if (at_last && at + pixels > end) end = at + pixels;
    }
    s->offset = place(s, (double)at);
    finish(s, begin - at, end - at, pixels, flip);
}

void mri_geometry_window(mri_geometry *g, int64_t x, int64_t y, uint32_t width, uint32_t height,
                         mri_outside outside, bool flip)
{
    window_side(&g->x, g->out_w, x, width, outside, flip);
    window_side(&g->y, g->out_h, y, height, outside, false);
    g->out_w = width;
    g->out_h = height;
}

/* The first result pixel whose centre lies at or after `edge` of the resampled range. */
static int64_t first_behind(const mri_axis *a, int64_t edge)
{
    /* sides: below 2^21 */
    const int64_t up = 2 * (int64_t)a->out * (edge - a->start) - a->size, down = 2 * (int64_t)a->size;
    return up / down + (up > 0 && up % down != 0) - a->first;
}

static void resample_side(mri_geometry_side *s, const mri_axis *a, bool flip)
{
    const double step = (double)a->size / a->out;
    const int64_t begin = first_behind(a, s->begin), end = first_behind(a, s->end);
    s->offset = place(s, a->start + a->first * step);
    s->scale *= step;
    finish(s, begin, end, a->count, flip);
}

void mri_geometry_resample(mri_geometry *g, const mri_axis *x, const mri_axis *y, bool flip)
{
    resample_side(&g->x, x, flip);
    resample_side(&g->y, y, false);
    g->out_w = x->count;
    g->out_h = y->count;
}

void mri_geometry_warp(mri_geometry *g, const mri_warp *w)
{
    const double unit = 1.0 / 4294967296.0; /* exact: no place has more than 53 bits */
    g->turn[g->turns++] = (mri_geometry_turn){.x = g->x,
                                              .y = g->y,
                                              .w = g->out_w,
                                              .h = g->out_h,
                                              .xx = (double)w->xx * unit,
                                              .xy = (double)w->xy * unit,
                                              .x0 = (double)w->x0 * unit,
                                              .yx = (double)w->yx * unit,
                                              .yy = (double)w->yy * unit,
                                              .y0 = (double)w->y0 * unit};
    g->x = side_of(g->out_w);
    g->y = side_of(g->out_h);
}

/* ---- boxes ---- */

static double within(double v, double lo, double hi) { return v < lo ? lo : v > hi ? hi : v; }

/* Where a place of an upright side lies in the result, in pixels; a position outside of the visible range
 * counts as its end. */
static double result_of(const mri_geometry_side *s, double at)
{
    return (within(at, s->from, s->to) - s->offset) / s->scale;
}

/* A span of an upright side in the result, 0 to 1; false: nothing of it is to be seen. */
static bool place_span(const mri_geometry_side *s, uint32_t pixels, double lo, double hi, float out[2])
{
    const float p = (float)within(result_of(s, lo) / pixels, 0, 1),
                q = (float)within(result_of(s, hi) / pixels, 0, 1);
    out[0] = p < q ? p : q;
    out[1] = p < q ? q : p;
    return s->from < s->to && out[0] < out[1];
}

/* ---- boxes that are turned ---- */

/* Convex. Four corners, and each cut adds one at most: four cuts for the sides of each picture that is
 * turned, and of the last result. */
enum { POLYGON_CORNERS = 4 + 4 * (MRI_GEOMETRY_TURNS + 1) };

struct point {
    double at[2]; /* x, y */
};

struct polygon {
    uint32_t count;
    struct point corner[POLYGON_CORNERS];
};

/* What lies beyond a line across one axis goes (Sutherland and Hodgman 1974). keep: 1, what lies above the
 * limit stays; -1, below. */
static void cut(struct polygon *p, int axis, double limit, double keep)
{
    const struct polygon old = *p;
    p->count = 0;
    for (uint32_t k = 0; k < old.count; k++) {
        const struct point *a = &old.corner[k], *b = &old.corner[(k + 1) % old.count];
        const double from = keep * (a->at[axis] - limit), to = keep * (b->at[axis] - limit);
        if (from >= 0) p->corner[p->count++] = *a;
        if ((from > 0 && to < 0) || (from < 0 && to > 0)) {
            const double part = from / (from - to);
            struct point *edge = &p->corner[p->count++];
            edge->at[axis] = limit;
            edge->at[1 - axis] = a->at[1 - axis] + part * (b->at[1 - axis] - a->at[1 - axis]);
        }
    }
}

static void cut_to(struct polygon *p, double x0, double y0, double x1, double y1)
{
    cut(p, 0, x0, 1);
    cut(p, 0, x1, -1);
    cut(p, 1, y0, 1);
    cut(p, 1, y1, -1);
}

/* The visible part of the picture that t turns, in its result. */
static void turn_polygon(const mri_geometry_turn *t, struct polygon *p)
{
    const double area = t->xx * t->yy - t->xy * t->yx;
    for (uint32_t k = 0; k < p->count; k++) {
        double *at = p->corner[k].at;
        const double x = result_of(&t->x, at[0]) - t->x0, y = result_of(&t->y, at[1]) - t->y0;
        at[0] = (t->yy * x - t->xy * y) / area + 0.5;
        at[1] = (t->xx * y - t->yx * x) / area + 0.5;
    }
}

/* An upright box in the result of the last turn, as far as the picture in the batch can show it. false:
 * nothing of it. */
static bool turn_box(const mri_geometry *g, mri_box *b)
{
    if (g->turns == 0) return true;
    if (b->x0 >= b->x1 || b->y0 >= b->y1) return false;
    struct polygon p = {4, {{{b->x0, b->y0}}, {{b->x1, b->y0}}, {{b->x1, b->y1}}, {{b->x0, b->y1}}}};
    for (uint32_t k = 0; k < g->turns; k++) {
        const mri_geometry_turn *t = &g->turn[k];
        cut_to(&p, t->x.from, t->y.from, t->x.to, t->y.to);
        turn_polygon(t, &p);
    }
    cut_to(&p, g->x.from, g->y.from, g->x.to, g->y.to);
    if (p.count == 0) return false;
    *b = (mri_box){INFINITY, INFINITY, -INFINITY, -INFINITY};
    for (uint32_t k = 0; k < p.count; k++) {
        const double x = p.corner[k].at[0], y = p.corner[k].at[1];
        *b = (mri_box){x < b->x0 ? x : b->x0, y < b->y0 ? y : b->y0, x > b->x1 ? x : b->x1,
                       y > b->y1 ? y : b->y1};
    }
    return b->x0 < b->x1 && b->y0 < b->y1;
}

/* Corners in pixels of the stored picture, cut to it, turned upright. */
static mri_box turn_upright(const mri_geometry *g, mri_box b)
{
    const mri_orientation t = mri_orientation_of(g->orientation);
    const double w = g->stored_w, h = g->stored_h;
    mri_box k = {within(b.x0, 0, w), within(b.y0, 0, h), within(b.x1, 0, w), within(b.y1, 0, h)};
    if (t.mirror_x) k = (mri_box){w - k.x1, k.y0, w - k.x0, k.y1};
    if (t.mirror_y) k = (mri_box){k.x0, h - k.y1, k.x1, h - k.y0};
    return t.swap ? (mri_box){k.y0, k.x0, k.y1, k.x1} : k;
}

static double element(const mr_value *v, uint64_t at)
{
    if (v->dtype == MR_F32) {
        float f;
        memcpy(&f, (const uint8_t *)v->data + at * sizeof f, sizeof f);
        return f;
    }
    double d;
    memcpy(&d, (const uint8_t *)v->data + at * sizeof d, sizeof d);
    return d;
}

static mri_box corners(const mr_value *v, uint64_t row)
{
    const uint64_t at = row * v->dim[1];
    return (mri_box){element(v, at), element(v, at + 1), element(v, at + 2), element(v, at + 3)};
}

static mri_box upright_box(const mri_geometry *g, mri_box b, bool in_pixels)
{
    const double w = in_pixels ? 1 : g->stored_w, h = in_pixels ? 1 : g->stored_h;
    return turn_upright(g, (mri_box){b.x0 * w, b.y0 * h, b.x1 * w, b.y1 * h});
}

static int check_value(const mr_value *v, uint32_t columns, uint32_t most, mr_error *err)
{
    size_t count = 0;
    if (v->type != MR_TYPE_TENSOR || (v->dtype != MR_F32 && v->dtype != MR_F64))
        return mr_error_set(err, MR_EFORMAT, "boxes: expected a tensor of f32 or f64, found %s of %s",
                            mr_type_name(v->type), mr_dtype_name(v->dtype));
    if (v->ndim != 2 || columns < 4 || v->dim[1] != columns)
        return mr_error_set(
            err, MR_EFORMAT,
            "boxes: expected rows of %u numbers (at least 4), found %u dimensions, rows of %llu", columns,
            v->ndim, (unsigned long long)(v->ndim == 2 ? v->dim[1] : 0));
    if (v->dim[0] > most)
        return mr_error_set(err, MR_ELIMIT, "%llu boxes: there is room for %u in a sample; configure more",
                            (unsigned long long)v->dim[0], most);
    if (!mri_mul_size((size_t)v->dim[0] * columns, mr_dtype_bytes(v->dtype), &count) || count != v->bytes)
        return mr_error_set(err, MR_EFORMAT, "boxes: %zu bytes do not make %llu rows of %u %s", v->bytes,
                            (unsigned long long)v->dim[0], columns, mr_dtype_name(v->dtype));
    return MR_OK;
}

/* Corners of pixels taken for parts of 1 would all be cut away, and nobody would see why: parts that far
 * outside are refused. */
static int check_box(const mri_box *b, bool in_pixels, uint64_t row, mr_error *err)
{
    const char *wrong = NULL;
    if (!isfinite(b->x0) || !isfinite(b->y0) || !isfinite(b->x1) || !isfinite(b->y1))
        wrong = "expected numbers";
    else if (b->x1 < b->x0 || b->y1 < b->y0)
        wrong = "expected x0 <= x1 and y0 <= y1; is the order another one, or are these width and height?";
    else if (!in_pixels && (b->x0 < -1 || b->y0 < -1 || b->x1 > 2 || b->y1 > 2))
        wrong = "expected parts of the picture, 0 to 1; are these pixels (in_pixels; --fields NAME:pixels)?";
    if (!wrong) return MR_OK;
    return mr_error_set(err, MR_EFORMAT, "box %llu is x0 %g, y0 %g, x1 %g, y1 %g: %s",
                        (unsigned long long)row, b->x0, b->y0, b->x1, b->y1, wrong);
}

int mri_boxes_place(const mri_geometry *g, const mr_value *boxes, bool in_pixels, uint32_t columns,
                    uint32_t most, float *out, uint32_t *which, uint32_t *kept, mr_error *err)
{
    *kept = 0;
    int rc = check_value(boxes, columns, most, err);
    uint32_t count = 0;
    for (uint64_t row = 0; rc == MR_OK && row < boxes->dim[0]; row++) {
        const uint64_t at = row * columns;
        const mri_box b = corners(boxes, row);
        rc = check_box(&b, in_pixels, row, err);
        if (rc) return rc;
        mri_box upright = upright_box(g, b, in_pixels);
        if (!turn_box(g, &upright)) continue;
        float x[2], y[2], *to = out + (size_t)count * columns;
        if (!place_span(&g->x, g->out_w, upright.x0, upright.x1, x) ||
            !place_span(&g->y, g->out_h, upright.y0, upright.y1, y))
            continue;
        to[0] = x[0];
        to[1] = y[0];
        to[2] = x[1];
        to[3] = y[1];
        for (uint32_t k = 4; k < columns; k++) to[k] = (float)element(boxes, at + k);
        which[count++] = (uint32_t)row;
    }
    if (rc == MR_OK) *kept = count;
    return rc;
}

int mri_boxes_check(const mri_boxes *b, mr_error *err)
{
    const mr_value *v = b->value;
    const uint64_t columns = v->ndim == 2 && v->dim[1] <= UINT32_MAX ? v->dim[1] : 4;
    int rc = check_value(v, (uint32_t)columns, UINT32_MAX, err);
    for (uint64_t row = 0; rc == MR_OK && row < v->dim[0]; row++) {
        const mri_box box = corners(v, row);
        rc = check_box(&box, b->in_pixels, row, err);
    }
    return rc;
}

static bool seen_span(const mri_geometry_side *s, uint32_t pixels, double *lo, double *hi)
{
    const double p = within(result_of(s, *lo), 0, pixels), q = within(result_of(s, *hi), 0, pixels);
    *lo = p < q ? p : q;
    *hi = p < q ? q : p;
    return s->from < s->to && *lo < *hi;
}

/* Box `row` as it is seen. */
static bool seen_box(const mri_geometry *g, const mri_boxes *b, uint64_t row, mri_box *out)
{
    *out = upright_box(g, corners(b->value, row), b->in_pixels);
    return turn_box(g, out) && seen_span(&g->x, g->out_w, &out->x0, &out->x1) &&
           seen_span(&g->y, g->out_h, &out->y0, &out->y1);
}

bool mri_boxes_pick(const mri_geometry *g, const mri_boxes *b, uint32_t word, mri_box *out)
{
    uint32_t seen = 0; /* the check let pass no more */
    for (uint64_t row = 0; row < b->value->dim[0]; row++) seen += seen_box(g, b, row, out);
    if (seen == 0) return false;
    uint32_t left = mri_below(word, seen) + 1;
    for (uint64_t row = 0; left > 0; row++) left -= seen_box(g, b, row, out);
    return true;
}

/* ---- masks ---- */

/* The upright pixel that is seen in result pixel i. Centres are half a pixel inside, so this is one of its
 * pixels. */
static uint32_t pixel_of(const mri_geometry_side *s, uint32_t i)
{
    return (uint32_t)within(place(s, i + 0.5), s->first, s->last);
}

/* How far upright pixel p of a side lies into the stored mask, which has `pixels` of them that way, each
 * `step` bytes on. */
static size_t bytes_into(uint32_t p, bool mirror, uint32_t pixels, size_t step)
{
    return (mirror ? pixels - 1 - p : p) * step;
}

/* Pixel (i, j) of a picture becomes the pixel that shows the same in the one its sides are of. false: it
 * shows nothing. */
static bool step_back(const mri_geometry_side *x, const mri_geometry_side *y, uint32_t *i, uint32_t *j)
{
    if (*i < x->begin || *i >= x->end || *j < y->begin || *j >= y->end) return false;
    *i = pixel_of(x, *i);
    *j = pixel_of(y, *j);
    return true;
}

/* Result pixel (i, j) becomes the one of the turned picture on which its centre falls. */
static bool turn_back(const mri_geometry_turn *t, uint32_t *i, uint32_t *j)
{
    const double x = t->xx * *i + t->xy * *j + t->x0, y = t->yx * *i + t->yy * *j + t->y0;
    if (!(x >= 0 && y >= 0 && x < t->w && y < t->h)) return false;
    *i = (uint32_t)x;
    *j = (uint32_t)y;
    return true;
}

/* Pixel by pixel, turn by turn. */
static void place_turned(const mri_geometry *g, const uint8_t *mask, size_t stride, uint8_t *dst)
{
    const mri_orientation o = mri_orientation_of(g->orientation);
    for (uint32_t y = 0; y < g->out_h; y++)
        for (uint32_t x = 0; x < g->out_w; x++) {
            uint32_t i = x, j = y, k = g->turns;
            bool seen = step_back(&g->x, &g->y, &i, &j);
            while (seen && k-- > 0)
                seen = turn_back(&g->turn[k], &i, &j) && step_back(&g->turn[k].x, &g->turn[k].y, &i, &j);
            if (!seen) continue;
            const uint32_t sx = o.swap ? j : i, sy = o.swap ? i : j;
            dst[(size_t)y * g->out_w + x] = mask[bytes_into(sy, o.mirror_y, g->stored_h, stride) +
                                                 bytes_into(sx, o.mirror_x, g->stored_w, 1)];
        }
}

void mri_mask_place(const mri_geometry *g, const uint8_t *mask, size_t stride, uint8_t outside, uint8_t *dst)
{
    enum { STRIP = 512 }; /* columns whose places are looked up once for all rows */
    const mri_orientation t = mri_orientation_of(g->orientation);
    size_t into[STRIP];
    memset(dst, outside, (size_t)g->out_w * g->out_h);
    if (g->turns > 0) {
        place_turned(g, mask, stride, dst);
        return;
    }
    for (uint32_t at = g->x.begin; at < g->x.end; at += STRIP) {
        const uint32_t count = g->x.end - at < STRIP ? g->x.end - at : STRIP;
        for (uint32_t k = 0; k < count; k++) {
            const uint32_t p = pixel_of(&g->x, at + k);
            into[k] = t.swap ? bytes_into(p, t.mirror_y, g->stored_h, stride)
                             : bytes_into(p, t.mirror_x, g->stored_w, 1);
        }
        for (uint32_t j = g->y.begin; j < g->y.end; j++) {
            const uint32_t p = pixel_of(&g->y, j);
            const uint8_t *from = mask + (t.swap ? bytes_into(p, t.mirror_x, g->stored_w, 1)
                                                 : bytes_into(p, t.mirror_y, g->stored_h, stride));
            uint8_t *to = dst + (size_t)j * g->out_w + at;
            for (uint32_t k = 0; k < count; k++) to[k] = from[into[k]];
        }
    }
}
