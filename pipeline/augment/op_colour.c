/* pipeline/augment/op_colour.c: operations that change pixels where they are: brightness, contrast,
 * saturation. */
#include <math.h>

#include "pipeline/augment/frame.h"
#include "pipeline/augment/spec.h"
#include "pipeline/pixels/colour.h"

struct brightness {
    double most;
};

struct factor {
    double lo, hi;
};

static int read_brightness(mri_spec *s)
{
    mri_number d;
    const char *start = s->at;
    const int rc = mri_spec_number(s, &d);
    if (rc) return rc;
    const double most = mri_number_value(d);
    if (most > 255) return mri_spec_fail(s, start, "expected 0 to 255, in units of pixels from 0 to 255");
    MRI_OP_ARGS(struct brightness, &s->op)->most = most;
    mri_spec_put_number(s, d);
    return MR_OK;
}

static int read_factor(mri_spec *s)
{
    mri_number r[2];
    const int rc = mri_spec_range(s, 0, 16, r);
    if (rc) return rc;
    *MRI_OP_ARGS(struct factor, &s->op) = (struct factor){mri_number_value(r[0]), mri_number_value(r[1])};
    mri_spec_put_range(s, r);
    return MR_OK;
}

static void paint_brightness(const mri_op *op, mri_philox draw, uint8_t *pixels, size_t count,
                             uint32_t channels)
{
    const double most = MRI_OP_ARGS(struct brightness, op)->most;
    mri_brightness(pixels, count * channels, (int32_t)floor(mri_between(-most, most, draw.v[0]) + 0.5));
}

static int32_t factor_of(const mri_op *op, mri_philox draw)
{
    const struct factor *f = MRI_OP_ARGS(struct factor, op);
    return (int32_t)floor(mri_between(f->lo, f->hi, draw.v[0]) * MRI_FACTOR_ONE + 0.5);
}

static void paint_contrast(const mri_op *op, mri_philox draw, uint8_t *pixels, size_t count,
                           uint32_t channels)
{
    mri_contrast(pixels, count, channels, factor_of(op, draw));
}

static void paint_saturation(const mri_op *op, mri_philox draw, uint8_t *pixels, size_t count,
                             uint32_t channels)
{
    mri_saturation(pixels, count, channels, factor_of(op, draw));
}

const mri_op_type mri_ops_colour[] = {
    {.name = "brightness",
     .usage = "brightness(D)",
     .help = "add a draw from [-D, D], in units of 0..255, clipped",
     .read = read_brightness,
     .paint = paint_brightness},
    {.name = "contrast",
     .usage = "contrast(LO:HI)",
     .help = "scale around the mean of the picture's gray by a draw, clipped",
     .read = read_factor,
     .paint = paint_contrast},
    {.name = "saturation",
     .usage = "saturation(LO:HI)",
     .help = "scale around each pixel's gray by a draw, clipped",
     .read = read_factor,
     .paint = paint_saturation},
    {0},
};
