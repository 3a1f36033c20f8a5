/* pipeline/augment/op_window.c: operations that move pixels as they are: center, padcrop, shift, flip. */
#include <math.h>

#include "pipeline/augment/frame.h"
#include "pipeline/augment/spec.h"

struct center {
    bool corners; /* each view another corner */
};

struct padcrop {
    uint32_t pad;
    bool mirror; /* the border shows mirror images */
};

struct shift {
    double x, y; /* the most, as parts of the side */
};

/* ---- arguments ---- */

static int read_center(mri_spec *s)
{
    bool single;
    const int rc = mri_spec_size(s, &single);
    if (rc == MR_OK) mri_spec_put_size(s, single);
    return rc;
}

static int read_padcrop(mri_spec *s)
{
    struct padcrop *p = MRI_OP_ARGS(struct padcrop, &s->op);
    bool single, sized = false;
    int rc = mri_spec_whole(s, 0, MRI_AUGMENT_MAX_SIDE, &p->pad);
    if (rc) return rc;
    mri_spec_put(s, "%u", p->pad);
    while (rc == MR_OK && !p->mirror && mri_spec_take(s, ',')) {
        if (mri_spec_word(s, "border=mirror")) {
            p->mirror = true;
        } else if (sized) {
            rc = mri_spec_fail(s, s->at, "expected border=mirror: %s", s->usage);
        } else {
            rc = mri_spec_size(s, &single);
            if (rc) return rc;
            mri_spec_put(s, ",");
            mri_spec_put_size(s, single);
            sized = true;
        }
    }
    if (rc == MR_OK && p->mirror) mri_spec_put(s, ",border=mirror");
    return rc;
}

enum { CENTER, PADCROP, SHIFT, FLIP }; /* rows of the table below */

void mri_augment_add_center(mr_augment *a, const mri_op *op)
{
    const mri_op center = {
        .type = &mri_ops_window[CENTER], .index = op->index, .height = op->height, .width = op->width};
    mri_augment_add(a, &center);
}

static void evaluate_padcrop(mr_augment *a, const mri_op *op)
{
    if (op->height) mri_augment_add_center(a, op);
}

static int read_shift(mri_spec *s)
{
    mri_number by[2];
    for (int k = 0; k < 2; k++) {
        const char *start = s->at;
        const int rc = mri_spec_number(s, &by[k]);
        if (rc) return rc;
        if (mri_number_value(by[k]) > 1)
            return mri_spec_fail(s, start, "expected a fraction of the side, 0 to 1");
        if (k == 0 && !mri_spec_take(s, ',')) {
            by[1] = by[0];
            break;
        }
    }
    *MRI_OP_ARGS(struct shift, &s->op) = (struct shift){mri_number_value(by[0]), mri_number_value(by[1])};
    mri_spec_put_number(s, by[0]);
    mri_spec_put(s, ",");
    mri_spec_put_number(s, by[1]);
    return MR_OK;
}

/* ---- the picture ---- */

void mri_augment_take_corners(mri_op *center) { MRI_OP_ARGS(struct center, center)->corners = true; }

/* Where the part begins: the middle, or an end of the side; of a side that is shorter always the middle. */
static int64_t at_end(uint64_t side, uint32_t part, bool middle, bool far)
{
    if (middle || side <= part) return mri_centred(side, part);
    return far ? (int64_t)(side - part) : 0;
}

static void place_center(const mri_op *op, mri_sample_key key, uint64_t full_w, uint64_t full_h, int64_t *x,
                         int64_t *y)
{
    const uint32_t corner = MRI_OP_ARGS(struct center, op)->corners ? (uint32_t)(key.epoch % 5) : 0;
    *x = at_end(full_w, op->width, corner == 0, corner % 2 == 0);
    *y = at_end(full_h, op->height, corner == 0, corner > 2);
}

static int run_center(mri_frame *f, const mri_op *op)
{
    int64_t x, y;
    place_center(op, f->key, f->full_w, f->full_h, &x, &y);
    return mri_frame_window(f, f->at + 1, x, y, op->width, op->height, MRI_OUTSIDE_ZERO);
}

static int run_padcrop(mri_frame *f, const mri_op *op)
{
    const struct padcrop *p = MRI_OP_ARGS(struct padcrop, op);
    const uint32_t pad = p->pad;
    const mri_philox d = mri_draw(f->key, op->index, 0);
    const uint32_t w = op->width ? op->width : f->full_w, h = op->height ? op->height : f->full_h;
    const uint64_t padded_w = (uint64_t)f->full_w + 2 * pad, padded_h = (uint64_t)f->full_h + 2 * pad;
    const int64_t x =
        padded_w >= w ? mri_below(d.v[0], (uint32_t)(padded_w - w) + 1) : mri_centred(padded_w, w);
    const int64_t y =
        padded_h >= h ? mri_below(d.v[1], (uint32_t)(padded_h - h) + 1) : mri_centred(padded_h, h);
    return mri_frame_window(f, f->at + 1, x - pad, y - pad, w, h,
                            p->mirror ? MRI_OUTSIDE_MIRROR : MRI_OUTSIDE_ZERO);
}

static int run_shift(mri_frame *f, const mri_op *op)
{
    const struct shift *by = MRI_OP_ARGS(struct shift, op);
    const mri_philox d = mri_draw(f->key, op->index, 0);
    const uint32_t most_x = (uint32_t)floor(by->x * f->full_w), most_y = (uint32_t)floor(by->y * f->full_h);
    const int64_t x = (int64_t)mri_below(d.v[0], 2 * most_x + 1) - most_x,
                  y = (int64_t)mri_below(d.v[1], 2 * most_y + 1) - most_y;
    return mri_frame_window(f, f->at + 1, x, y, f->full_w, f->full_h, MRI_OUTSIDE_EDGE);
}

static bool mirrors(const mri_frame *f, const mri_op *op)
{
    return mri_draw(f->key, op->index, 0).v[0] >> 31;
}

const mri_op_type mri_ops_window[] = {
    [CENTER] = {.name = "center",
                .usage = "center(SIZE) or center(HxW)",
                .help = "centre crop; zeros around a picture that is smaller",
                .read = read_center,
                .evaluate = mri_augment_add,
                .run = run_center,
                .place = place_center},
    [PADCROP] = {.name = "padcrop",
                 .usage = "padcrop(PAD[,SIZE][,border=mirror])",
                 .help = "zero padding on every side, or with border=mirror the picture's mirror\n"
                         "image, then a random crop of the original size (or SIZE, or HxW). In\n"
                         "evaluation: the centre crop of a given SIZE",
                 .read = read_padcrop,
                 .evaluate = evaluate_padcrop,
                 .run = run_padcrop},
    [SHIFT] = {.name = "shift",
               .usage = "shift(FX[,FY])",
               .help = "move by up to a fraction of width and height, edges repeated",
               .read = read_shift,
               .run = run_shift},
    [FLIP] = {.name = "flip", .usage = "flip", .help = "left-right with probability 1/2", .mirrors = mirrors},
    {0},
};
