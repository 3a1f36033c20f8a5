/* kernels/ops/dense.c: defines a fully connected layer: y = f(W x + b), inputs in h, w, c order, sums in
 * input order. */
#include "kernels/backend/op_class.h"
#include "kernels/ops/host_op.h"

static int describe(const mr_op_desc *d, mr_op_info *info, mr_error *err)
{
    const uint32_t units = d->dense.units;
    const int rc = mri_op_check_count(units, "units", "dense", err);
    if (rc) return rc;
    const uint64_t inputs = (uint64_t)d->in.h * d->in.w * d->in.c; /* below 2^60 */
    if (inputs > ((uint64_t)1 << 40) / units)
        return mr_error_set(err, MR_EINVAL, "dense: the weights are too large");
    const mr_param_info weights = {.name = "weights",
                                   .ndim = 2,
                                   .dim = {units, inputs},
                                   .count = inputs * units,
                                   .storage_count = inputs * units,
                                   .fan_in = inputs,
                                   .fan_out = units};
    mri_op_set_weights(info, &weights, units, d->dense.no_bias);
    info->flops_per_sample = 2.0 * (double)weights.count;
    return mri_op_set_output(d, info, 1, 1, units, d->in.dtype, "dense", err);
}

static int forward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    (void)err;
    const mr_op_desc *d = &op->base.desc;
    const size_t inputs = mri_tensor_floats(&d->in);
#pragma omp parallel for schedule(static)
    for (uint32_t i = 0; i < a->n; i++) {
        const float *x = (const float *)a->x + i * inputs;
        float *y = (float *)a->y + (size_t)i * d->dense.units;
        for (uint32_t u = 0; u < d->dense.units; u++) {
            const float *w = a->param[0] + u * inputs;
            float sum = 0;
            for (size_t k = 0; k < inputs; k++) sum += w[k] * x[k];
            y[u] = sum + (d->dense.no_bias ? 0 : a->param[1][u]);
        }
    }
    mri_activate(d->activation, a->y, (size_t)d->dense.units * a->n);
    return MR_OK;
}

static void gradient_of_unit(const mr_op_desc *d, const mr_op_args *a, uint32_t u)
{
    const size_t inputs = mri_tensor_floats(&d->in);
    float *dw = a->dparam[0] + u * inputs, db = 0;
    memset(dw, 0, inputs * sizeof *dw);
    for (uint32_t i = 0; i < a->n; i++) {
        const float *x = (const float *)a->x + i * inputs,
                    dy = ((const float *)a->dy)[(size_t)i * d->dense.units + u];
        for (size_t k = 0; k < inputs; k++) dw[k] += dy * x[k];
        db += dy;
    }
    if (!d->dense.no_bias) a->dparam[1][u] = db;
}

static void gradient_of_sample(const mr_op_desc *d, const mr_op_args *a, uint32_t i)
{
    const size_t inputs = mri_tensor_floats(&d->in);
    float *dx = (float *)a->dx + i * inputs;
    memset(dx, 0, inputs * sizeof *dx);
    for (uint32_t u = 0; u < d->dense.units; u++) {
        const float *w = a->param[0] + u * inputs,
                    dy = ((const float *)a->dy)[(size_t)i * d->dense.units + u];
        for (size_t k = 0; k < inputs; k++) dx[k] += dy * w[k];
    }
}

static int backward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    (void)err;
    const mr_op_desc *d = &op->base.desc;
    mri_activate_backward(d->activation, a->y, a->dy, (size_t)d->dense.units * a->n);
#pragma omp parallel for schedule(static)
    for (uint32_t u = 0; u < d->dense.units; u++) gradient_of_unit(d, a, u);
    if (!d->need_dx) return MR_OK;
#pragma omp parallel for schedule(static)
    for (uint32_t i = 0; i < a->n; i++) gradient_of_sample(d, a, i);
    return MR_OK;
}

static const struct mri_op_code reference = {
    .prepare = mri_require_nhwc, .forward = forward, .backward = backward};
const struct mri_op_class mri_dense_class = {
    .name = "dense", .fuses = true, .describe = describe, .reference = &reference};
