/* pipeline/augment/op_policy.c: operations that draw their actions from a list: randaugment (Cubuk et al.
 * 2019), trivial (Müller and Hutter 2021). The lists and the strengths of their actions are torchvision's. */
#include <math.h>

#include "pipeline/augment/frame.h"
#include "pipeline/augment/spec.h"
#include "pipeline/augment/turn.h"
#include "pipeline/pixels/colour.h"
#include "pipeline/pixels/smooth.h"
#include "pipeline/pixels/tone.h"

enum { STRONGEST = 30, MOST_DEEDS = 16 }; /* 31 levels */

struct policy {
    uint32_t count, level;
    mri_look look;
};

typedef enum deed {
    IDENTITY,
    SHEAR_X,
    SHEAR_Y,
    MOVE_X,
    MOVE_Y,
    ROTATE,
    BRIGHTNESS,
    COLOUR,
    CONTRAST,
    SHARPNESS,
    POSTERIZE,
    SOLARIZE,
    AUTOCONTRAST,
    EQUALIZE,
    DEED_COUNT
} deed;

/* At the strongest level. */
struct strength {
    double shear;     /* a tangent */
    double move_part; /* of the side */
    double move_pixels;
    double degrees;
    double factor; /* 1 - it, or 1 + it */
    uint32_t bits; /* that go */
};

static const struct strength of_randaugment = {0.3, 150.0 / 331, 0, 30, 0.9, 4},
                             of_trivial = {0.99, 0, 32, 135, 0.99, 6};

/* ---- arguments ---- */

static int read_look(mri_spec *s, struct policy *p)
{
    bool found;
    const int rc = mri_spec_look(s, &p->look, &found);
    return found ? rc : mri_spec_fail(s, s->at, "expected filter=bilinear|nearest or fill=mean|0..255");
}

static int read_randaugment(mri_spec *s)
{
    struct policy *p = MRI_OP_ARGS(struct policy, &s->op);
    int rc = mri_spec_whole(s, 1, MOST_DEEDS, &p->count);
    if (rc) return rc;
    if (!mri_spec_take(s, ',')) return mri_spec_fail(s, s->at, "expected %s", s->usage);
    rc = mri_spec_whole(s, 0, STRONGEST, &p->level);
    while (rc == MR_OK && mri_spec_take(s, ',')) rc = read_look(s, p);
    if (rc) return rc;
    s->op.turns = p->count;
    mri_spec_put(s, "%u,%u", p->count, p->level);
    mri_spec_put_look(s, p->look);
    return MR_OK;
}

static int read_trivial(mri_spec *s)
{
    struct policy *p = MRI_OP_ARGS(struct policy, &s->op);
    int rc = MR_OK;
    do rc = read_look(s, p);
    while (rc == MR_OK && mri_spec_take(s, ','));
    if (rc) return rc;
    mri_spec_put(s, "filter=%s", p->look.nearest ? "nearest" : "bilinear");
    mri_spec_put_look(s, (mri_look){.fill = p->look.fill});
    return MR_OK;
}

/* ---- deeds ---- */

/* How far a deed goes: `strong` at the strongest level. */
static double at_level(double strong, uint32_t level) { return strong * level / STRONGEST; }

/* Whole pixels, cut off. */
static double move_of(const struct strength *most, uint32_t side, uint32_t level)
{
    return floor(at_level(most->move_part * side + most->move_pixels, level));
}

static int turn(mri_frame *f, uint8_t *pixels, const struct policy *p, const struct strength *most, deed what,
                uint32_t level, double sign)
{
    mri_turn by = {.scale = 1, .corner = what == SHEAR_X || what == SHEAR_Y};
    if (what == SHEAR_X) by.shear_x = sign * at_level(most->shear, level);
    if (what == SHEAR_Y) by.shear_y = sign * at_level(most->shear, level);
    if (what == MOVE_X) by.move_x = sign * move_of(most, f->full_w, level);
    if (what == MOVE_Y) by.move_y = sign * move_of(most, f->full_h, level);
    if (what == ROTATE) by.degrees = -sign * at_level(most->degrees, level); /* counterclockwise */
    const mri_warp w = mri_warp_of(&by, f->full_w, f->full_h);
    return mri_frame_warp(f, pixels, &w, p->look);
}

static int scale(mri_frame *f, uint8_t *pixels, const struct strength *most, deed what, uint32_t level,
                 double sign)
{
    const size_t count = (size_t)f->full_w * f->full_h;
    const uint32_t channels = f->v.channels;
    const int32_t factor = (int32_t)floor((1 + sign * at_level(most->factor, level)) * MRI_FACTOR_ONE + 0.5);
    uint8_t *copy = NULL;
    if (what == BRIGHTNESS) mri_scale(pixels, count * channels, factor);
    if (what == COLOUR) mri_saturation(pixels, count, channels, factor);
    if (what == CONTRAST) mri_contrast(pixels, count, channels, factor);
    if (what != SHARPNESS) return MR_OK;
    const int rc = mri_frame_spare(f, &copy);
    if (rc == MR_OK) mri_sharpen(pixels, f->full_w, f->full_h, channels, factor, copy);
    return rc;
}

static int do_deed(mri_frame *f, uint8_t *pixels, const struct policy *p, const struct strength *most,
                   deed what, uint32_t level, bool negative)
{
    const size_t count = (size_t)f->full_w * f->full_h, bytes = count * f->v.channels;
    const double sign = negative ? -1 : 1;
    switch (what) {
    case SHEAR_X:
    case SHEAR_Y:
    case MOVE_X:
    case MOVE_Y:
    case ROTATE: return turn(f, pixels, p, most, what, level, sign);
    case BRIGHTNESS:
    case COLOUR:
    case CONTRAST:
    case SHARPNESS: return scale(f, pixels, most, what, level, sign);
    case POSTERIZE:
        mri_posterize(pixels, bytes, 8 - (most->bits * level + STRONGEST / 2) / STRONGEST);
        return MR_OK;
    case SOLARIZE: /* from 255 down to 0, in halves rounded up */
        mri_solarize(pixels, bytes, 255 - 255 * level / STRONGEST);
        return MR_OK;
    case AUTOCONTRAST: mri_autocontrast(pixels, count, f->v.channels); return MR_OK;
    case EQUALIZE: mri_equalize(pixels, count, f->v.channels); return MR_OK;
    case IDENTITY:
    case DEED_COUNT: break;
    }
    return MR_OK;
}

static int touch_randaugment(mri_frame *f, const mri_op *op, uint8_t *pixels)
{
    const struct policy *p = MRI_OP_ARGS(struct policy, op);
    int rc = MR_OK;
    for (uint32_t k = 0; rc == MR_OK && k < p->count; k++) {
        const mri_philox d = mri_draw(f->key, op->index, k);
        rc = do_deed(f, pixels, p, &of_randaugment, (deed)mri_below(d.v[0], DEED_COUNT), p->level,
                     d.v[1] >> 31);
    }
    return rc;
}

static int touch_trivial(mri_frame *f, const mri_op *op, uint8_t *pixels)
{
    const mri_philox d = mri_draw(f->key, op->index, 0);
    return do_deed(f, pixels, MRI_OP_ARGS(struct policy, op), &of_trivial,
                   (deed)mri_below(d.v[0], DEED_COUNT), mri_below(d.v[2], STRONGEST + 1), d.v[1] >> 31);
}

const mri_op_type mri_ops_policy[] = {
    {.name = "randaugment",
     .usage = "randaugment(N,M[,filter=bilinear|nearest][,fill=mean|0..255])",
     .help = "N times (up to 16) one of 14 changes at level M of 0 to 30: identity,\n"
             "shear, move and turn either way, brightness, colour, contrast,\n"
             "sharpness up or down, posterize, solarize, autocontrast, equalize;\n"
             "filter and fill as for rotate",
     .read = read_randaugment,
     .touch = touch_randaugment},
    {.name = "trivial",
     .usage = "trivial or trivial([filter=bilinear|nearest][,fill=mean|0..255])",
     .help = "one of the changes of randaugment, in a wider range, at a level that\n"
             "is drawn (TrivialAugmentWide)",
     .read = read_trivial,
     .bare = true,
     .touch = touch_trivial,
     .turns = 1},
    {0},
};
