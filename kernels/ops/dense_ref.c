/* kernels/ops/dense_ref.c: what a fully connected layer is: y = f(W x + b), inputs in h, w, c order, sums in
 * input order. */
#include "kernels/host/host_op.h"
#include "kernels/ops/window.h"

static int prepare(mri_host_op *op, mr_error *err) { return mri_require_nhwc(op, err); }

static int forward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    (void)err;
    const mr_op_desc *d = &op->base.desc;
    const size_t inputs = mri_tensor_floats(&d->in);
#pragma omp parallel for schedule(static)
    for (uint32_t i = 0; i < a->n; i++) {
        const float *x = (const float *)a->x + i * inputs;
        float *y = (float *)a->y + (size_t)i * d->filters;
        for (uint32_t u = 0; u < d->filters; u++) {
            const float *w = a->param[0] + u * inputs;
            float sum = 0;
            for (size_t k = 0; k < inputs; k++) sum += w[k] * x[k];
            y[u] = sum + (d->no_bias ? 0 : a->param[1][u]);
        }
    }
    mri_activate(d->activation, a->y, (size_t)d->filters * a->n);
    return MR_OK;
}

static void gradient_of_unit(const mr_op_desc *d, const mr_op_args *a, uint32_t u)
{
    const size_t inputs = mri_tensor_floats(&d->in);
    float *dw = a->dparam[0] + u * inputs, db = 0;
    memset(dw, 0, inputs * sizeof *dw);
    for (uint32_t i = 0; i < a->n; i++) {
        const float *x = (const float *)a->x + i * inputs,
                    dy = ((const float *)a->dy)[(size_t)i * d->filters + u];
        for (size_t k = 0; k < inputs; k++) dw[k] += dy * x[k];
        db += dy;
    }
    if (!d->no_bias) a->dparam[1][u] = db;
}

static void gradient_of_sample(const mr_op_desc *d, const mr_op_args *a, uint32_t i)
{
    const size_t inputs = mri_tensor_floats(&d->in);
    float *dx = (float *)a->dx + i * inputs;
    memset(dx, 0, inputs * sizeof *dx);
    for (uint32_t u = 0; u < d->filters; u++) {
        const float *w = a->param[0] + u * inputs, dy = ((const float *)a->dy)[(size_t)i * d->filters + u];
        for (size_t k = 0; k < inputs; k++) dx[k] += dy * w[k];
    }
}

static int backward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    (void)err;
    const mr_op_desc *d = &op->base.desc;
    mri_activate_backward(d->activation, a->y, a->dy, (size_t)d->filters * a->n);
#pragma omp parallel for schedule(static)
    for (uint32_t u = 0; u < d->filters; u++) gradient_of_unit(d, a, u);
    if (!d->need_dx) return MR_OK;
#pragma omp parallel for schedule(static)
    for (uint32_t i = 0; i < a->n; i++) gradient_of_sample(d, a, i);
    return MR_OK;
}

const struct mri_op_code mri_dense_ref = {.prepare = prepare, .forward = forward, .backward = backward};
