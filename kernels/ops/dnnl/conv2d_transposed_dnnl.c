/* kernels/ops/dnnl/conv2d_transposed_dnnl.c: transposed convolution by oneDNN, channels in blocks where it is
 * fastest so, or NHWC. Same meaning as conv2d_transposed.c; sums run in another order. One primitive a pass
 * for the whole batch; bias and activation in passes of our own, as oneDNN adds the bias of such a primitive
 * one value at a time (v2.6 took five times as long with it as without). */
#include "kernels/host/simd_loop.h"
#include "kernels/ops/dnnl/linear_dnnl.h"

#define BLOCK_MOST 16u /* channels of a block, where there are several */

/* One block of channels of a sample, or all of them: pixels rows of `width` floats. */
MRI_INLINE void add_rows_body(float *y, const float *bias, size_t pixels, uint32_t width)
{
    for (size_t p = 0; p < pixels; p++)
        for (uint32_t k = 0; k < width; k++) y[p * width + k] += bias[k];
}
MRI_SIMD_LOOP(add_rows, (float *y, const float *bias, size_t pixels, uint32_t width),
              (y, bias, pixels, width))

MRI_INLINE void sum_rows_body(float *sum, const float *dy, size_t pixels, uint32_t width)
{
    for (size_t p = 0; p < pixels; p++)
        for (uint32_t k = 0; k < width; k++) sum[k] += dy[p * width + k];
}
MRI_SIMD_LOOP(sum_rows, (float *sum, const float *dy, size_t pixels, uint32_t width),
              (sum, dy, pixels, width))

static uint32_t blocks_of(const mr_tensor *t)
{
    const uint32_t width = mri_layout_block(t);
    return (t->c + width - 1) / width;
}

static void add_bias(const mr_tensor *out, uint32_t n, float *y, const float *bias)
{
    const uint32_t width = mri_layout_block(out), blocks = blocks_of(out);
    const size_t pixels = (size_t)out->h * out->w;
#pragma omp parallel for schedule(static)
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t b = 0; b < blocks; b++) {
            float padded[BLOCK_MOST] = {0}, *to = y + i * mri_tensor_floats(out) + b * pixels * width;
            const uint32_t real = out->c - b * width < width ? out->c - b * width : width;
            if (real < width) memcpy(padded, bias + (size_t)b * width, real * sizeof *bias);
            add_rows(to, real < width ? padded : bias + (size_t)b * width, pixels, width);
        }
}

/* A sum runs over samples, then pixels. */
static void sum_bias(const mr_tensor *out, uint32_t n, const float *dy, float *dbias)
{
    const uint32_t width = mri_layout_block(out), blocks = blocks_of(out);
    const size_t pixels = (size_t)out->h * out->w;
    memset(dbias, 0, out->c * sizeof *dbias);
#pragma omp parallel for schedule(static)
    for (uint32_t b = 0; b < blocks; b++) {
        float padded[BLOCK_MOST] = {0};
        const uint32_t real = out->c - b * width < width ? out->c - b * width : width;
        float *sum = real < width ? padded : dbias + (size_t)b * width;
        for (uint32_t i = 0; i < n; i++)
            sum_rows(sum, dy + i * mri_tensor_floats(out) + b * pixels * width, pixels, width);
        if (real < width) memcpy(dbias + (size_t)b * width, padded, real * sizeof *dbias);
    }
}

static int prepare(mri_host_op *op, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    const mr_op_window *w = &d->conv2d.window;
    const dnnl_dims_t weights = {d->conv2d.filters, d->in.c, w->kernel_h, w->kernel_w};
    struct mri_linear *l;
    int rc = mri_linear_create(&l, op, MRI_DNNL_DECONVOLUTION, 4, weights, dnnl_ihwo, err);
    if (!rc) {
        l->bare = true, l->has_bias = false;
        rc = mri_linear_choose_layouts(l, err);
    }
    if (!rc) rc = mri_linear_prepare(l, err);
    if (rc) mri_linear_release(op);
    return rc;
}

static int forward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    const mr_tensor *out = &op->base.info.out;
    const int rc = mri_linear_forward(op, a, err);
    if (rc) return rc;
    if (!d->conv2d.no_bias) add_bias(out, a->n, a->y, a->param[1]);
    mri_activate(d->activation, a->y, mri_tensor_floats(out) * a->n);
    if (d->activation == MR_ACT_SIGMOID) mri_tensor_zero_padding(out, a->n, a->y);
    return MR_OK;
}

static int backward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    const mr_tensor *out = &op->base.info.out;
    mri_activate_backward(d->activation, a->y, a->dy, mri_tensor_floats(out) * a->n);
    if (!d->conv2d.no_bias) sum_bias(out, a->n, a->dy, a->dparam[1]);
    return mri_linear_backward(op, a, err);
}

const struct mri_op_code mri_conv2d_transposed_dnnl = {.prepare = prepare,
                                                       .release = mri_linear_release,
                                                       .forward = forward,
                                                       .backward = backward,
                                                       .param_import = mri_linear_import,
                                                       .param_export = mri_linear_export};
