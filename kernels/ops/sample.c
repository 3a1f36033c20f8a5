/* kernels/ops/sample.c: draws from normal distributions whose means and log variances are given, so that
 * gradients pass through the draw (Kingma & Welling 2014, "Auto-encoding variational Bayes"). NHWC.
 *
 * Draw k of a sample comes from Philox block k / 4 with counter (block, place; step): words 2 j and 2 j + 1
 * make draws 2 j and 2 j + 1 of the block. Nothing else goes in, so any split of a batch draws the same.
 * Nothing is kept for backward, which draws again: these tensors are small. */
#include <math.h>

#include "base/random.h"
#include "kernels/backend/op_class.h"
#include "kernels/host/simd_loop.h"
#include "kernels/ops/host_op.h"

#define TWO_PI 6.283185307f

static int describe(const mr_op_desc *d, mr_op_info *info, mr_error *err)
{
    info->writes_dx2 = true;
    info->flops_per_sample = 2.0 * d->in.h * d->in.w * d->in.c;
    if (!(d->sample.factor >= 0) || isinf(d->sample.factor))
        return mr_error_set(err, MR_EINVAL, "sample: factor %g: expected a finite number above 0",
                            (double)d->sample.factor);
    return mri_op_check_second(d, "sample", err);
}

static bool takes_two(const mr_op_desc *d)
{
    (void)d;
    return true;
}

static bool lacks(const mr_op *op, const mr_op_args *a, bool backward)
{
    return mri_op_lacks(op, a, backward) || !a->values || (backward && a->dx2 && !a->x2);
}

/* Four draws (Box & Muller 1958). u is in (0, 1], so the logarithm is finite. */
static void normal_draws(float out[4], mri_philox words)
{
    for (int j = 0; j < 2; j++) {
        const float u = 1 - mri_unit_float(words.v[2 * j]),
                    turn = TWO_PI * mri_unit_float(words.v[2 * j + 1]);
        const float radius = sqrtf(-2 * logf(u));
        out[2 * j] = radius * cosf(turn);
        out[2 * j + 1] = radius * sinf(turn);
    }
}

struct each {
    uint64_t key, step;
    uint32_t place;
    float factor;
};

static struct each each_of(const mri_host_op *op, const mr_op_args *a, uint32_t i)
{
    const mr_sample_desc *s = &op->base.desc.sample;
    return (struct each){mri_mix64(mri_mix64(a->seed) + s->op_id), a->values->step, a->first + i,
                         s->factor > 0 ? s->factor : 0.5f};
}

static void draw_block(const struct each *e, size_t block, float out[4])
{
    normal_draws(out, mri_philox4x32(e->key, (uint64_t)e->place << 32 | (uint32_t)block, e->step));
}

static int forward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    (void)err;
    const size_t floats = mri_tensor_floats(&op->base.desc.in);
#pragma omp parallel for schedule(static) if (floats * a->n > MRI_PARALLEL_ELEMENTS / 16)
    for (uint32_t i = 0; i < a->n; i++) {
        const struct each e = each_of(op, a, i);
        const float *x = (const float *)a->x + i * floats, *x2 = (const float *)a->x2 + i * floats;
        float *y = (float *)a->y + i * floats, draws[4];
        for (size_t k = 0; k < floats; k++) {
            if (k % 4 == 0) draw_block(&e, k / 4, draws);
            y[k] = x[k] + expf(e.factor * x2[k]) * draws[k % 4];
        }
    }
    return MR_OK;
}

static int backward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    (void)err;
    const mr_op_desc *d = &op->base.desc;
    const size_t floats = mri_tensor_floats(&d->in);
    if (d->need_dx && a->dx != a->dy) memcpy(a->dx, a->dy, floats * a->n * sizeof(float));
    if (!a->dx2) return MR_OK;
#pragma omp parallel for schedule(static) if (floats * a->n > MRI_PARALLEL_ELEMENTS / 16)
    for (uint32_t i = 0; i < a->n; i++) {
        const struct each e = each_of(op, a, i);
        const float *dy = (const float *)a->dy + i * floats, *x2 = (const float *)a->x2 + i * floats;
        float *dx2 = (float *)a->dx2 + i * floats, draws[4];
        for (size_t k = 0; k < floats; k++) {
            if (k % 4 == 0) draw_block(&e, k / 4, draws);
            dx2[k] = dy[k] * draws[k % 4] * e.factor * expf(e.factor * x2[k]);
        }
    }
    return MR_OK;
}

static const struct mri_op_code reference = {
    .prepare = mri_require_nhwc, .forward = forward, .backward = backward};
const struct mri_op_class mri_sample_class = {
    .name = "sample", .describe = describe, .takes_two = takes_two, .lacks = lacks, .reference = &reference};
