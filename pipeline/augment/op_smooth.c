/* pipeline/augment/op_smooth.c: operations that mix pixels with their neighbours: sharpness, blur. */
#include "pipeline/pixels/smooth.h"

#include <math.h>

#include "pipeline/augment/exponent.h"
#include "pipeline/augment/frame.h"
#include "pipeline/augment/spec.h"
#include "pipeline/pixels/colour.h"

struct smooth {
    double lo, hi, probability;
    uint32_t kernel;
};

/* ---- arguments ---- */

static int read_span(mri_spec *s, double low, double high)
{
    struct smooth *m = MRI_OP_ARGS(struct smooth, &s->op);
    mri_number r[2];
    const int rc = mri_spec_range(s, low, high, r);
    if (rc) return rc;
    m->lo = mri_number_value(r[0]);
    m->hi = mri_number_value(r[1]);
    mri_spec_put_range(s, r);
    return mri_spec_last_probability(s, &m->probability);
}

static int read_sharpness(mri_spec *s) { return read_span(s, 0, MRI_FACTOR_MAX); }

static int read_blur(mri_spec *s)
{
    const char *start = s->at;
    uint32_t *kernel = &MRI_OP_ARGS(struct smooth, &s->op)->kernel;
    const int rc = mri_spec_whole(s, 1, 2 * MRI_BLUR_RADIUS_MAX + 1, kernel);
    if (rc) return rc;
    if (*kernel % 2 == 0)
        return mri_spec_fail(s, start, "expected an odd number: pixels on both sides of one");
    if (!mri_spec_take(s, ',')) return mri_spec_fail(s, s->at, "expected %s", s->usage);
    mri_spec_put(s, "%u,", *kernel);
    return read_span(s, 0.01, 100);
}

/* ---- the picture ---- */

static int touch_sharpness(mri_frame *f, const mri_op *op, uint8_t *pixels)
{
    const struct smooth *m = MRI_OP_ARGS(struct smooth, op);
    const mri_philox d = mri_draw(f->key, op->index, 0);
    uint8_t *copy = NULL;
    if (!mri_happens(m->probability, d.v[1])) return MR_OK;
    const int rc = mri_frame_spare(f, &copy);
    if (rc) return rc;
    const int32_t factor = (int32_t)floor(mri_between(m->lo, m->hi, d.v[0]) * MRI_FACTOR_ONE + 0.5);
    mri_sharpen(pixels, f->full_w, f->full_h, f->v.channels, factor, copy);
    return MR_OK;
}

/* A normal distribution at whole pixels, in 1/65536; what rounding leaves over goes to the middle. Weights
 * that round to 0 are left out. */
static mri_blur_weights weights_of(uint32_t kernel, double sigma)
{
    double part[MRI_BLUR_RADIUS_MAX + 1], sum = 1;
    mri_blur_weights w = {.radius = kernel / 2, .weight = {65536}};
    for (uint32_t k = 1; k <= w.radius; k++) {
        const double x = k / sigma, exponent = x * x / 2;
        part[k] = exponent > 16 ? 0 : mri_exp(-exponent);
        sum += 2 * part[k];
    }
    for (uint32_t k = 1; k <= w.radius; k++) {
        w.weight[k] = (uint32_t)floor(part[k] / sum * 65536 + 0.5);
        w.weight[0] -= 2 * w.weight[k];
    }
    while (w.radius > 0 && w.weight[w.radius] == 0) w.radius--;
    return w;
}

static int touch_blur(mri_frame *f, const mri_op *op, uint8_t *pixels)
{
    const struct smooth *m = MRI_OP_ARGS(struct smooth, op);
    const mri_philox d = mri_draw(f->key, op->index, 0);
    uint8_t *copy = NULL;
    if (!mri_happens(m->probability, d.v[1])) return MR_OK;
    const int rc = mri_frame_spare(f, &copy);
    if (rc) return rc;
    const mri_blur_weights w = weights_of(m->kernel, mri_between(m->lo, m->hi, d.v[0]));
    mri_blur(pixels, f->full_w, f->full_h, f->v.channels, &w, copy);
    return MR_OK;
}

const mri_op_type mri_ops_smooth[] = {
    {.name = "sharpness",
     .usage = "sharpness(LO:HI[,P])",
     .help = "with probability P (default 1) scale around the picture smoothed over\n"
             "3 x 3 pixels by a draw: 0 smooths, 1 changes nothing, 2 sharpens",
     .read = read_sharpness,
     .touch = touch_sharpness},
    {.name = "blur",
     .usage = "blur(KERNEL,LO:HI[,P])",
     .help = "with probability P (default 1) blur by a normal distribution over\n"
             "KERNEL x KERNEL pixels, odd and up to 63, whose standard deviation is\n"
             "a draw from LO:HI pixels",
     .read = read_blur,
     .touch = touch_blur},
    {0},
};
