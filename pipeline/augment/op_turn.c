/* pipeline/augment/op_turn.c: operations that take a picture through a map in its size: rotate, affine. */
#include <math.h>

#include "pipeline/augment/frame.h"
#include "pipeline/augment/spec.h"
#include "pipeline/augment/turn.h"

struct turning {
    double degrees;        /* the most, to either side */
    double move_x, move_y; /* the most, as parts of the sides */
    double scale_lo, scale_hi;
    double shear_x, shear_y; /* the most, in degrees */
    mri_look look;
};

enum { SHEAR_MOST = 80 };

/* ---- arguments ---- */

static int read_degrees(mri_spec *s, double most, mri_number *n)
{
    const char *start = s->at;
    const int rc = mri_spec_number(s, n);
    if (rc == MR_OK && mri_number_value(*n) > most)
        return mri_spec_fail(s, start, "expected 0 to %g degrees", most);
    return rc;
}

static int read_rotate(mri_spec *s)
{
    struct turning *t = MRI_OP_ARGS(struct turning, &s->op);
    mri_number degrees;
    int rc = read_degrees(s, 180, &degrees);
    while (rc == MR_OK && mri_spec_take(s, ',')) {
        bool found;
        rc = mri_spec_look(s, &t->look, &found);
        if (!found) rc = mri_spec_fail(s, s->at, "expected filter=bilinear|nearest or fill=mean|0..255");
    }
    if (rc) return rc;
    t->degrees = mri_number_value(degrees);
    t->scale_lo = t->scale_hi = 1;
    mri_spec_put_number(s, degrees);
    mri_spec_put_look(s, t->look);
    return MR_OK;
}

/* One number, or two with a colon between them, none above `most`; `alone`: the second one where there is
 * none. */
static int read_pair(mri_spec *s, double most, const char *unit, const mri_number *alone, mri_number out[2])
{
    const char *start = s->at;
    int rc = mri_spec_number(s, &out[0]);
    if (rc) return rc;
    out[1] = alone ? *alone : out[0];
    if (*s->at == ':') {
        s->at++;
        rc = mri_spec_number(s, &out[1]);
        if (rc) return rc;
    }
    if (mri_number_value(out[0]) > most || mri_number_value(out[1]) > most)
        return mri_spec_fail(s, start, "expected one number or two, as X:Y, of 0 to %g: %s", most, unit);
    return MR_OK;
}

/* Unless it changes nothing. */
static void put_pair(mri_spec *s, const char *name, const mri_number v[2], double neutral)
{
    if (mri_number_value(v[0]) == neutral && mri_number_value(v[1]) == neutral) return;
    mri_spec_put(s, ",%s=", name);
    mri_spec_put_range(s, v);
}

static int read_affine(mri_spec *s)
{
    static const mri_number zero = {.digits_below = 1};
    struct turning *t = MRI_OP_ARGS(struct turning, &s->op);
    mri_number degrees, move[2] = {zero, zero}, scale[2], shear[2] = {zero, zero};
    scale[0] = scale[1] = (mri_number){.digits = 1, .digits_below = 1};
    int rc = read_degrees(s, 180, &degrees);
    while (rc == MR_OK && mri_spec_take(s, ',')) {
        bool found;
        rc = mri_spec_look(s, &t->look, &found);
        if (found) continue;
        if (mri_spec_word(s, "translate=")) rc = read_pair(s, 1, "parts of the sides", NULL, move);
        else if (mri_spec_word(s, "scale=")) rc = mri_spec_range(s, 0.1, 10, scale);
        else if (mri_spec_word(s, "shear=")) rc = read_pair(s, SHEAR_MOST, "degrees", &zero, shear);
        else
            rc = mri_spec_fail(s, s->at,
                               "expected translate=X[:Y], scale=LO:HI, shear=X[:Y], filter=bilinear|nearest "
                               "or fill=mean|0..255");
    }
    if (rc) return rc;
    t->degrees = mri_number_value(degrees);
    t->move_x = mri_number_value(move[0]);
    t->move_y = mri_number_value(move[1]);
    t->scale_lo = mri_number_value(scale[0]);
    t->scale_hi = mri_number_value(scale[1]);
    t->shear_x = mri_number_value(shear[0]);
    t->shear_y = mri_number_value(shear[1]);
    mri_spec_put_number(s, degrees);
    put_pair(s, "translate", move, 0);
    put_pair(s, "scale", scale, 1);
    put_pair(s, "shear", shear, 0);
    mri_spec_put_look(s, t->look);
    return MR_OK;
}

/* ---- the picture ---- */

static double tangent(double degrees)
{
    double sine, cosine;
    mri_sine_cosine(degrees, &sine, &cosine);
    return sine / cosine;
}

/* A draw from -most to most. */
static double around(double most, uint32_t word) { return mri_between(-most, most, word); }

/* A way of up to `part` of a side, in whole pixels. */
static double move_of(double part, uint32_t side, uint32_t word)
{
    return floor(around(part * side, word) + 0.5);
}

static int touch_turn(mri_frame *f, const mri_op *op, uint8_t *pixels)
{
    const struct turning *t = MRI_OP_ARGS(struct turning, op);
    const mri_philox d = mri_draw(f->key, op->index, 0), e = mri_draw(f->key, op->index, 1);
    const mri_turn by = {.degrees = around(t->degrees, d.v[0]),
                         .move_x = move_of(t->move_x, f->full_w, d.v[1]),
                         .move_y = move_of(t->move_y, f->full_h, d.v[2]),
                         .scale = mri_between(t->scale_lo, t->scale_hi, d.v[3]),
                         .shear_x = tangent(around(t->shear_x, e.v[0])),
                         .shear_y = tangent(around(t->shear_y, e.v[1]))};
    const mri_warp w = mri_warp_of(&by, f->full_w, f->full_h);
    return mri_frame_warp(f, pixels, &w, t->look);
}

const mri_op_type mri_ops_turn[] = {
    {.name = "rotate",
     .usage = "rotate(DEG[,filter=bilinear|nearest][,fill=mean|0..255])",
     .help = "turn around the middle by a draw from [-DEG, DEG] degrees, in the\n"
             "picture's size; fill (default 0): what comes in from outside, mean as\n"
             "for erase. Boxes and masks that are delivered turn, too",
     .read = read_rotate,
     .touch = touch_turn,
     .turns = 1},
    {.name = "affine",
     .usage = "affine(DEG[,translate=X[:Y]][,scale=LO:HI][,shear=X[:Y]][,filter=F][,fill=V])",
     .help = "shear by draws from [-X, X] and [-Y, Y] degrees along the sides (Y: 0),\n"
             "turn as rotate does, scale by a draw from LO:HI, all around the middle,\n"
             "and move by up to the parts X and Y (as X) of the sides, whole pixels",
     .read = read_affine,
     .touch = touch_turn,
     .turns = 1},
    {0},
};
