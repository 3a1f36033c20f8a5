/* kernels/ops/groupnorm.c: normalisation of each sample by itself, in any layout: over the pixels and
 * channels of a group (Wu & He 2018), or over the channels of a group at each pixel (layer normalisation, Ba
 * et al. 2016, of the steps of a sequence). A set is the values that are normalised together.
 *
 *   y = scale (x - mean) r + shift, r = 1 / sqrt(variance + epsilon), variance biased
 *   dx = r (g - mean of g - (x - mean) r * mean of g (x - mean) r), g = scale dy
 *
 * saved: mean and r of each set. scratch: double sums[n][2][c] of the gradients of scale and shift. Sums are
 * double, in the order of pixels and channels, and of samples, so no bit depends on threads. */
#include <math.h>

#include "kernels/backend/op_class.h"
#include "kernels/host/simd_loop.h"
#include "kernels/ops/rows.h"

enum { PIECE = 512 };

static uint32_t groups_of(const mr_op_desc *d) { return d->groupnorm.groups ? d->groupnorm.groups : 1; }

static size_t sets_of(const mr_op_desc *d)
{
    return groups_of(d) * (d->groupnorm.each_pixel ? (size_t)d->in.h * d->in.w : 1);
}

static int describe(const mr_op_desc *d, mr_op_info *info, mr_error *err)
{
    const mr_groupnorm_desc *n = &d->groupnorm;
    if (!(n->epsilon > 0) || !isfinite(n->epsilon))
        return mr_error_set(err, MR_EINVAL, "groupnorm: epsilon must be above 0");
    if (d->in.c % groups_of(d) != 0)
        return mr_error_set(err, MR_EINVAL, "groupnorm: %u groups of %u channels: expected a divisor",
                            n->groups, d->in.c);
    info->param_count = 2;
    info->param[0] = mri_op_vector("scale", d->in.c);
    info->param[1] = mri_op_vector("shift", d->in.c);
    info->flops_per_sample = 8.0 * d->in.h * d->in.w * d->in.c;
    return MR_OK;
}

static int prepare(mri_host_op *op, mr_error *err)
{
    (void)err;
    const mr_op_desc *d = &op->base.desc;
    op->base.info.saved_bytes = 2 * sizeof(float) * sets_of(d) * d->max_batch;
    op->base.info.scratch_bytes = 2 * sizeof(double) * d->in.c * d->max_batch;
    return MR_OK;
}

/* A set: pixels [pixel, pixel + pixels) and channels [first, first + channels) of a sample. */
struct set {
    size_t pixel, pixels;
    uint32_t first, channels;
};

static struct set set_at(const mr_op_desc *d, size_t at)
{
    const uint32_t groups = groups_of(d), channels = d->in.c / groups, group = (uint32_t)(at % groups);
    const size_t all = (size_t)d->in.h * d->in.w;
    if (d->groupnorm.each_pixel) return (struct set){at / groups, 1, group * channels, channels};
    return (struct set){0, all, group * channels, channels};
}

/* Run through a set: `row` gets up to PIECE channels of a pixel at a time, from channel c on. */
#define EACH_PIECE(s, p, c, count)                                                                           \
    for (size_t p = (s)->pixel; p < (s)->pixel + (s)->pixels; p++)                                           \
        for (uint32_t c = (s)->first, count;                                                                 \
             c < (s)->first + (s)->channels &&                                                               \
             (count = (s)->first + (s)->channels - c < PIECE ? (s)->first + (s)->channels - c : PIECE) > 0;  \
             c += count)

static void moments_of(const mr_op_desc *d, const struct set *s, const float *x, float *mean, float *r)
{
    float row[PIECE];
    const double all = (double)s->pixels * s->channels;
    double sum = 0, squares = 0;
    EACH_PIECE(s, p, c, count)
    {
        mri_take_row(&d->in, x, p, c, count, row);
        for (uint32_t i = 0; i < count; i++) sum += (double)row[i];
    }
    const double m = sum / all;
    EACH_PIECE(s, p, c, count)
    {
        mri_take_row(&d->in, x, p, c, count, row);
        for (uint32_t i = 0; i < count; i++) squares += ((double)row[i] - m) * ((double)row[i] - m);
    }
    *mean = (float)m;
    *r = (float)(1 / sqrt(squares / all + (double)d->groupnorm.epsilon));
}

static void forward_sample(const mr_op_desc *d, const mr_op_args *a, const float *x, float *y, float *saved)
{
    float row[PIECE], mean, r;
    for (size_t at = 0; at < sets_of(d); at++) {
        const struct set s = set_at(d, at);
        moments_of(d, &s, x, &mean, &r);
        if (saved) saved[2 * at] = mean, saved[2 * at + 1] = r;
        EACH_PIECE(&s, p, c, count)
        {
            mri_take_row(&d->in, x, p, c, count, row);
            for (uint32_t i = 0; i < count; i++)
                row[i] = (row[i] - mean) * r * a->param[0][c + i] + a->param[1][c + i];
            mri_put_row(&d->in, y, p, c, count, row);
        }
    }
}

static int forward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    (void)err;
    const mr_op_desc *d = &op->base.desc;
    const size_t floats = mri_tensor_floats(&d->in), saved = 2 * sets_of(d);
#pragma omp parallel for schedule(static) if (floats * a->n > MRI_PARALLEL_ELEMENTS / 4)
    for (uint32_t i = 0; i < a->n; i++)
        forward_sample(d, a, (const float *)a->x + i * floats, (float *)a->y + i * floats,
                       a->saved ? (float *)a->saved + i * saved : NULL);
    mri_tensor_zero_padding(&op->base.info.out, a->n, a->y);
    return MR_OK;
}

/* Sums for scale and shift; and, where dx is not NULL, dx. */
static void backward_sample(const mr_op_desc *d, const mr_op_args *a, size_t at_float, const float *saved,
                            double *dscale, double *dshift)
{
    const float *x = (const float *)a->x + at_float, *dy = (const float *)a->dy + at_float;
    float *dx = d->need_dx ? (float *)a->dx + at_float : NULL, u[PIECE], g[PIECE];
    for (size_t at = 0; at < sets_of(d); at++) {
        const struct set s = set_at(d, at);
        const float mean = saved[2 * at], r = saved[2 * at + 1];
        const double all = (double)s.pixels * s.channels;
        double sum = 0, product = 0;
        EACH_PIECE(&s, p, c, count)
        {
            mri_take_row(&d->in, x, p, c, count, u);
            mri_take_row(&d->in, dy, p, c, count, g);
            for (uint32_t i = 0; i < count; i++) {
                const double hat = (double)((u[i] - mean) * r), scaled = (double)(g[i] * a->param[0][c + i]);
                dshift[c + i] += (double)g[i];
                dscale[c + i] += (double)g[i] * hat;
                sum += scaled;
                product += scaled * hat;
            }
        }
        const float m1 = (float)(sum / all), m2 = (float)(product / all);
        if (!dx) continue;
        EACH_PIECE(&s, p, c, count)
        {
            mri_take_row(&d->in, x, p, c, count, u);
            mri_take_row(&d->in, dy, p, c, count, g);
            for (uint32_t i = 0; i < count; i++)
                u[i] = r * (g[i] * a->param[0][c + i] - m1 - (u[i] - mean) * r * m2);
            mri_put_row(&d->in, dx, p, c, count, u);
        }
    }
}

static int backward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    (void)err;
    const mr_op_desc *d = &op->base.desc;
    const size_t floats = mri_tensor_floats(&d->in), saved = 2 * sets_of(d), c = d->in.c;
    double *sums = a->scratch;
    memset(sums, 0, 2 * c * a->n * sizeof *sums);
#pragma omp parallel for schedule(static) if (floats * a->n > MRI_PARALLEL_ELEMENTS / 4)
    for (uint32_t i = 0; i < a->n; i++)
        backward_sample(d, a, i * floats, (const float *)a->saved + i * saved, sums + 2 * c * i,
                        sums + 2 * c * i + c);
    for (size_t k = 0; k < c; k++) {
        double dscale = 0, dshift = 0;
        for (uint32_t i = 0; i < a->n; i++) {
            dscale += sums[2 * c * i + k];
            dshift += sums[2 * c * i + c + k];
        }
        a->dparam[0][k] = (float)dscale;
        a->dparam[1][k] = (float)dshift;
    }
    if (d->need_dx) mri_tensor_zero_padding(&d->in, a->n, a->dx);
    return MR_OK;
}

static bool lacks(const mr_op *op, const mr_op_args *a, bool backward)
{
    return mri_op_lacks(op, a, backward) || (backward && !a->x);
}

static const struct mri_op_code reference = {.prepare = prepare, .forward = forward, .backward = backward};
const struct mri_op_class mri_groupnorm_class = {
    .name = "groupnorm", .keeps_layout = true, .describe = describe, .lacks = lacks, .reference = &reference};
