/* pipeline/augment/op_resize.c: operations that resample: rrc, a random crop brought to a size, and resize.
 *
 * Crops that cover a box, rrc(..,covers=F): one of the sample's boxes that have an area in the current
 * picture is drawn. Crops are then drawn as without boxes, up to 100 times instead of 10, and the first that
 * fits and holds at least the part F of that box's area is taken; if none does, rrc's fallback crop. A sample
 * without such a box is cropped as without covers, to the bit. The ImageNet pipelines of
 * TensorFlow did this with tf.image.sample_distorted_bounding_box, the origin of the condition and of the 100
 * tries. It differs in these points: it accepts a crop that covers any box of the sample (here it must cover
 * the drawn box, so that each of several has its turn and not the largest most of them); it draws the ratio
 * uniformly, and the height between the limits of the areas; it cuts boxes to whole pixels and ignores boxes
 * below one pixel; it takes the whole picture when all tries fail; and with use_image_if_no_bounding_boxes a
 * picture without boxes is one box, which refuses crops of less than F of it. */
#include <math.h>

#include "pipeline/augment/exponent.h"
#include "pipeline/augment/frame.h"
#include "pipeline/augment/spec.h"

struct resize {
    mri_filter filter;
};

struct rrc {
    double area_lo, area_hi;
    double ratio_lo, ratio_hi, log_ratio_lo, log_ratio_hi;
    double covers; /* the least part of a box's area that a crop covers; 0: crops do not ask for boxes */
    mri_filter filter;
};

/* ---- arguments ---- */

/* Behind "filter=". The default is not written down. */
static int read_filter(mri_spec *s, mri_filter *out)
{
    if (mri_spec_word(s, "bilinear")) *out = MRI_FILTER_BILINEAR;
    else if (mri_spec_word(s, "bicubic")) *out = MRI_FILTER_BICUBIC;
    else return mri_spec_fail(s, s->at, "expected filter=bilinear or filter=bicubic");
    return MR_OK;
}

static void put_filter(mri_spec *s, mri_filter filter)
{
    if (filter == MRI_FILTER_BICUBIC) mri_spec_put(s, ",filter=bicubic");
}

/* Behind "covers=". */
static int read_covers(mri_spec *s, mri_number *n)
{
    const char *start = s->at;
    const int rc = mri_spec_number(s, n);
    if (rc) return rc;
    const double covers = mri_number_value(*n);
    if (covers > 0 && covers <= 1) return MR_OK;
    return mri_spec_fail(s, start,
                         "expected the part of a box's area that a crop covers at least: above 0, at most 1");
}

static void put_rrc(mri_spec *s, const mri_number scale[2], const mri_number ratio[2], mri_filter filter,
                    const mri_number *covers)
{
    mri_spec_put(s, "%u,scale=", s->op.height);
    mri_spec_put_range(s, scale);
    mri_spec_put(s, ",ratio=");
    mri_spec_put_range(s, ratio);
    put_filter(s, filter);
    if (!s->op.takes_boxes) return;
    mri_spec_put(s, ",covers=");
    mri_spec_put_number(s, *covers);
}

static int read_rrc(mri_spec *s)
{
    mri_number covers = {.digits_below = 1};
    mri_number scale[2] = {{8, 1, 2, 0, false}, {1, 1, 0, 0, false}},
               ratio[2] = {{3, 4, 0, 0, true}, {4, 3, 0, 0, true}};
    struct rrc *c = MRI_OP_ARGS(struct rrc, &s->op);
    int rc = mri_spec_whole(s, 1, MRI_AUGMENT_MAX_SIDE, &s->op.height);
    s->op.width = s->op.height;
    while (rc == MR_OK && mri_spec_take(s, ',')) {
        if (mri_spec_word(s, "scale=")) rc = mri_spec_range(s, 0.0001, 1, scale);
        else if (mri_spec_word(s, "ratio=")) rc = mri_spec_range(s, 0.01, 100, ratio);
        else if (mri_spec_word(s, "filter=")) rc = read_filter(s, &c->filter);
        else if (mri_spec_word(s, "covers=")) rc = read_covers(s, &covers);
        else
            rc = mri_spec_fail(s, s->at,
                               "expected scale=LO:HI, ratio=LO:HI, filter=bilinear|bicubic or covers=F");
    }
    if (rc) return rc;
    c->area_lo = mri_number_value(scale[0]);
    c->area_hi = mri_number_value(scale[1]);
    c->ratio_lo = mri_number_value(ratio[0]);
    c->ratio_hi = mri_number_value(ratio[1]);
    c->log_ratio_lo = mri_log(c->ratio_lo);
    c->log_ratio_hi = mri_log(c->ratio_hi);
    c->covers = mri_number_value(covers);
    s->op.takes_boxes = c->covers > 0;
    put_rrc(s, scale, ratio, c->filter, &covers);
    return MR_OK;
}

static int read_resize(mri_spec *s)
{
    struct resize *c = MRI_OP_ARGS(struct resize, &s->op);
    int rc = mri_spec_size(s, &s->op.shorter);
    if (rc) return rc;
    mri_spec_put_size(s, s->op.shorter);
    if (mri_spec_take(s, ','))
        rc = mri_spec_word(s, "filter=")
                 ? read_filter(s, &c->filter)
                 : mri_spec_fail(s, s->at, "expected filter=bilinear or filter=bicubic");
    put_filter(s, c->filter);
    return rc;
}

enum { RRC, RESIZE }; /* rows of the table below */

/* The middle of the picture, cut as ImageNet's evaluation does: 224 of 256. */
static void evaluate_rrc(mr_augment *a, const mri_op *op)
{
    const uint32_t side = (uint32_t)((uint64_t)op->height * 8 / 7);
    mri_op resize = {
        .type = &mri_ops_resize[RESIZE], .index = op->index, .height = side, .width = side, .shorter = true};
    MRI_OP_ARGS(struct resize, &resize)->filter = MRI_OP_ARGS(struct rrc, op)->filter;
    mri_augment_add(a, &resize);
    mri_augment_add_center(a, op);
}

/* ---- random crops ---- */

enum { RRC_TRIES = 10, RRC_COVER_TRIES = 100, RRC_BOX_BLOCK = 2 * MRI_DRAW_BLOCKS - 1 };

static uint32_t rounded(double v) { return v >= 4e9 ? UINT32_MAX : (uint32_t)floor(v + 0.5); }

/* One try: an area and an aspect ratio (uniform in its logarithm) at a random place. false: it does not
 * fit. */
static bool rrc_try(const mri_op *op, mri_sample_key key, uint32_t try, uint32_t width, uint32_t height,
                    mri_rect *out)
{
    const struct rrc *c = MRI_OP_ARGS(struct rrc, op);
    const mri_philox r = mri_draw(key, op->index, try);
    const double part = (double)width * height * mri_between(c->area_lo, c->area_hi, r.v[0]);
    const double ratio = mri_exp(mri_between(c->log_ratio_lo, c->log_ratio_hi, r.v[1]));
    const uint32_t w = rounded(sqrt(part * ratio)), h = rounded(sqrt(part / ratio));
    if (w == 0 || h == 0 || w > width || h > height) return false;
    *out = (mri_rect){mri_below(r.v[2], width - w + 1), mri_below(r.v[3], height - h + 1), w, h};
    return true;
}

/* The largest centred box whose ratio is allowed. */
static mri_rect rrc_largest(const struct rrc *c, uint32_t width, uint32_t height)
{
    uint32_t w = width, h = height;
    const double ratio = (double)width / height;
    if (ratio < c->ratio_lo) h = rounded(width / c->ratio_lo);
    else if (ratio > c->ratio_hi) w = rounded(height * c->ratio_hi);
    w = w < 1 ? 1 : w > width ? width : w;
    h = h < 1 ? 1 : h > height ? height : h;
    return (mri_rect){(width - w) / 2, (height - h) / 2, w, h};
}

/* How much of from..to lies in the size pixels at `at`. */
static double overlap(double from, double to, uint32_t at, uint32_t size)
{
    const double lo = from > at ? from : at, end = (double)at + size, hi = to < end ? to : end;
    return hi > lo ? hi - lo : 0;
}

static bool covers(const struct rrc *c, mri_rect crop, const mri_box *box)
{
    const double held =
        overlap(box->x0, box->x1, crop.x, crop.width) * overlap(box->y0, box->y1, crop.y, crop.height);
    return held >= c->covers * ((box->x1 - box->x0) * (box->y1 - box->y0));
}

/* The first try that fits and covers the box (NULL: none is asked for); else the largest. */
static mri_rect rrc_box(const mri_op *op, mri_sample_key key, uint32_t width, uint32_t height,
                        const mri_box *box)
{
    const struct rrc *c = MRI_OP_ARGS(struct rrc, op);
    mri_rect crop;
    for (uint32_t try = 0; try < (box ? RRC_COVER_TRIES : RRC_TRIES); try++)
        if (rrc_try(op, key, try, width, height, &crop) && (!box || covers(c, crop, box))) return crop;
    return rrc_largest(c, width, height);
}

static mri_rect draw_crop(const mri_frame *f, const mri_op *op)
{
    mri_box box;
    const bool asks =
        op->takes_boxes && f->boxes &&
        mri_boxes_pick(f->geometry, f->boxes, mri_draw(f->key, op->index, RRC_BOX_BLOCK).v[0], &box);
    if (asks && f->mirrored) box = (mri_box){f->full_w - box.x1, box.y0, f->full_w - box.x0, box.y1};
    return rrc_box(op, f->key, f->full_w, f->full_h, asks ? &box : NULL);
}

/* ---- resampling ---- */

struct plan {
    mri_axis x, y; /* of the picture as it stands */
    mri_filter filter;
    uint32_t op_count; /* operations it stands for */
};

/* This box of the picture becomes width x height pixels. */
static int plan_box(const mri_frame *f, mri_rect box, uint64_t width, uint64_t height, mri_filter filter,
                    struct plan *p)
{
    const uint32_t in_w = f->full_w, in_h = f->full_h;
    if (width > MRI_RESAMPLE_MAX_SIDE || height > MRI_RESAMPLE_MAX_SIDE || in_w > MRI_RESAMPLE_MAX_SIDE ||
        in_h > MRI_RESAMPLE_MAX_SIDE)
        return mr_error_set(f->err, MR_ELIMIT, "resize of %u x %u pixels to %llu x %llu: sides go up to %u",
                            in_w, in_h, (unsigned long long)width, (unsigned long long)height,
                            MRI_RESAMPLE_MAX_SIDE);
    *p = (struct plan){.x = mri_axis_of(in_w, box.x, box.width, (uint32_t)width),
                       .y = mri_axis_of(in_h, box.y, box.height, (uint32_t)height),
                       .filter = filter,
                       .op_count = 1};
    return MR_OK;
}

/* A crop that follows, whose place is known and inside the result, is all that is made of it. */
static void take_crop_along(const mri_frame *f, struct plan *p)
{
    const mri_op *crop = f->at + 1 < f->a->op_count ? &f->a->op[f->at + 1] : NULL;
    int64_t x, y;
    if (!crop || !crop->type->place || crop->width > p->x.out || crop->height > p->y.out) return;
    crop->type->place(crop, f->key, p->x.out, p->y.out, &x, &y);
    p->x.first = (uint32_t)x;
    p->x.count = crop->width;
    p->y.first = (uint32_t)y;
    p->y.count = crop->height;
    p->op_count = 2;
}

static int run_plan(mri_frame *f, struct plan p)
{
    uint8_t *to;
    bool mirror;
    int rc = mri_frame_target(f, f->at + p.op_count, p.x.count, p.y.count, &mirror, &to);
    if (rc) return rc;
    if (f->mirrored) { /* the same box of the picture itself, its result the other way round */
        p.x.start = f->full_w - p.x.start - p.x.size;
        p.x.first = p.x.out - p.x.first - p.x.count;
        mirror = !mirror;
    }
    if (f->geometry) mri_geometry_resample(f->geometry, &p.x, &p.y, mirror);
    if (f->picture)
        rc = mri_picture_resample(&f->s->decoder, f->picture, f->decode, f->v.channels, &p.x, &p.y, p.filter,
                                  mirror, to, f->err);
    else
        rc = mri_view_resample(&f->s->decoder, &f->v, f->part_x, f->part_y, &p.x, &p.y, p.filter, mirror, to,
                               f->err);
    if (rc) return rc;
    mri_frame_replace(f, to, p.x.count, p.y.count);
    f->at += p.op_count - 1;
    return MR_OK;
}

/* The filter takes interleaved pixels. */
static int interleave(mri_frame *f) { return f->v.plane_bytes ? mri_frame_whole(f, f->at) : MR_OK; }

static int run_rrc(mri_frame *f, const mri_op *op)
{
    struct plan p;
    int rc = interleave(f);
    if (rc == MR_OK)
        rc = plan_box(f, draw_crop(f, op), op->width, op->height, MRI_OP_ARGS(struct rrc, op)->filter, &p);
    return rc ? rc : run_plan(f, p);
}

/* The crop that follows takes a piece of it only: then a picture thinner than that, 9000 x 1, is stretched
 * less and not refused. */
static uint64_t side_for_crop(const mri_frame *f, uint64_t side)
{
    const mri_op *crop = f->at + 1 < f->a->op_count ? &f->a->op[f->at + 1] : NULL;
    return crop && crop->type->place ? mri_min_u64(side, MRI_RESAMPLE_MAX_SIDE) : side;
}

static int run_resize(mri_frame *f, const mri_op *op)
{
    struct plan p;
    uint64_t w = op->width, h = op->height;
    int rc = interleave(f);
    if (op->shorter) {
        mri_shorter_side(op->width, f->full_h, f->full_w, &h, &w);
        w = side_for_crop(f, w);
        h = side_for_crop(f, h);
    }
    if (rc == MR_OK)
        rc = plan_box(f, (mri_rect){0, 0, f->full_w, f->full_h}, w, h, MRI_OP_ARGS(struct resize, op)->filter,
                      &p);
    if (rc) return rc;
    take_crop_along(f, &p);
    return run_plan(f, p);
}

const mri_op_type mri_ops_resize[] = {
    [RRC] = {.name = "rrc",
             .usage = "rrc(SIZE[,scale=LO:HI][,ratio=LO:HI][,filter=bilinear|bicubic][,covers=F])",
             .help = "random resized crop (default scale 0.08:1, ratio 3/4:4/3). With\n"
                     "covers, above 0 and at most 1 (0.1 is usual), one of the sample's\n"
                     "boxes is drawn, and crops until one holds at least that part of its\n"
                     "area, 100 tries at most; a sample without boxes is cropped as without\n"
                     "covers. In evaluation: resize(SIZE * 8/7),center(SIZE)",
             .read = read_rrc,
             .evaluate = evaluate_rrc,
             .run = run_rrc,
             .resamples = true},
    [RESIZE] = {.name = "resize",
                .usage = "resize(SIZE[,filter=bilinear|bicubic]) or resize(HxW[,filter=...])",
                .help = "the shorter side to SIZE, or exactly H x W; bilinear (default) and\n"
                        "bicubic are both antialiased",
                .read = read_resize,
                .evaluate = mri_augment_add,
                .run = run_resize,
                .resamples = true},
    {0},
};
