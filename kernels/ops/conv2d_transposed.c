/* kernels/ops/conv2d_transposed.c: defines transposed convolution (Zeiler et al. 2010, "Deconvolutional
 * networks"): the gradient to the input of a convolution, as an operation of its own. NHWC, weights
 * [c][kh][kw][filters]. An output element is a sum over the input's pixels in row order, then their channels,
 * in float. Threads share samples (forward, dx) or input channels (gradients of weights), so every sum has
 * one order. */
#include "kernels/backend/op_class.h"
#include "kernels/ops/host_op.h"
#include "kernels/ops/window.h"

/* Pixels of the output along one axis; false where the output would be empty. */
static bool side(uint32_t in, uint32_t kernel, uint32_t stride, uint32_t before, uint32_t after,
                 uint32_t *out)
{
    if (kernel < 1 || stride < 1 || kernel > MRI_OP_MAX_SIDE || stride > MRI_OP_MAX_SIDE ||
        before >= kernel || after >= kernel)
        return false;
    const uint64_t reach = (uint64_t)(in - 1) * stride + kernel, cut = (uint64_t)before + after;
    if (reach <= cut || reach - cut > MRI_OP_MAX_SIDE) return false;
    *out = (uint32_t)(reach - cut);
    return true;
}

static int describe(const mr_op_desc *d, mr_op_info *info, mr_error *err)
{
    const mr_conv2d_desc *conv = &d->conv2d;
    const mr_op_window *w = &conv->window;
    uint32_t oh, ow;
    if (!side(d->in.h, w->kernel_h, w->stride_h, w->pad_top, w->pad_bottom, &oh) ||
        !side(d->in.w, w->kernel_w, w->stride_w, w->pad_left, w->pad_right, &ow))
        return mr_error_set(err, MR_EINVAL,
                            "conv2d_transposed: a %u x %u window with stride %u x %u and padding %u %u %u %u "
                            "makes no output of an input of %u x %u; padding must be smaller than the window",
                            w->kernel_h, w->kernel_w, w->stride_h, w->stride_w, w->pad_top, w->pad_left,
                            w->pad_bottom, w->pad_right, d->in.h, d->in.w);
    const int rc = mri_op_check_count(conv->filters, "filters", "conv2d_transposed", err);
    if (rc) return rc;
    if ((unsigned)d->want > MR_WANT_NHWC)
        return mr_error_set(err, MR_EINVAL, "conv2d_transposed: the output is NHWC or the device's choice");
    if (mri_op_groups(d) != 1)
        return mr_error_set(err, MR_EINVAL, "conv2d_transposed: there are no groups, found %u", conv->groups);
    const uint64_t places = (uint64_t)w->kernel_h * w->kernel_w;
    if (places > (uint64_t)1 << 32 || places * d->in.c > ((uint64_t)1 << 40) / conv->filters)
        return mr_error_set(err, MR_EINVAL, "conv2d_transposed: the weights are too large");
    const uint64_t count = places * d->in.c * conv->filters;
    const mr_param_info weights = {.name = "weights",
                                   .ndim = 4,
                                   .dim = {d->in.c, w->kernel_h, w->kernel_w, conv->filters},
                                   .count = count,
                                   .storage_count = count,
                                   .fan_in = places * d->in.c,
                                   .fan_out = places * conv->filters};
    mri_op_set_weights(info, &weights, conv->filters, conv->no_bias);
    info->flops_per_sample = 2.0 * (double)count * d->in.h * d->in.w;
    return mri_op_set_output(d, info, oh, ow, conv->filters, d->in.dtype, "conv2d_transposed", err);
}

static size_t taps_of(const mr_op_desc *d) /* of one channel of the input */
{
    return (size_t)d->conv2d.window.kernel_h * d->conv2d.window.kernel_w * d->conv2d.filters;
}

static void fill_bias(const mri_host_op *op, const mr_op_args *a, float *y)
{
    const mr_op_desc *d = &op->base.desc;
    const uint32_t filters = d->conv2d.filters;
    const size_t pixels = (size_t)op->base.info.out.h * op->base.info.out.w;
    for (size_t p = 0; p < pixels; p++)
        for (uint32_t f = 0; f < filters; f++) y[p * filters + f] = d->conv2d.no_bias ? 0 : a->param[1][f];
}

static void spread_sample(const mri_host_op *op, const mr_op_args *a, uint32_t i)
{
    const mr_op_desc *d = &op->base.desc;
    const mr_tensor *out = &op->base.info.out;
    const uint32_t filters = d->conv2d.filters;
    const size_t taps = taps_of(d);
    const float *x = (const float *)a->x + i * mri_tensor_floats(&d->in);
    float *y = (float *)a->y + i * mri_tensor_floats(out);
    fill_bias(op, a, y);
    for (uint32_t iy = 0; iy < d->in.h; iy++)
        for (uint32_t ix = 0; ix < d->in.w; ix++, x += d->in.c) {
            const struct mri_window win = mri_window_at(&d->conv2d.window, out, iy, ix);
            for (uint32_t ky = win.ky0; ky < win.ky1; ky++)
                for (uint32_t kx = win.kx0; kx < win.kx1; kx++) {
                    const float *pw = a->param[0] + ((size_t)ky * d->conv2d.window.kernel_w + kx) * filters;
                    float *py = y + mri_window_pixel(out, &win, ky, kx) * filters;
                    for (uint32_t c = 0; c < d->in.c; c++, pw += taps)
                        for (uint32_t f = 0; f < filters; f++) py[f] += x[c] * pw[f];
                }
        }
}

static int forward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    (void)err;
#pragma omp parallel for schedule(static)
    for (uint32_t i = 0; i < a->n; i++) spread_sample(op, a, i);
    mri_activate(op->base.desc.activation, a->y, mri_tensor_floats(&op->base.info.out) * a->n);
    return MR_OK;
}

/* Every pixel of channel c times the dy under its window. */
static void gradient_of_channel(const mri_host_op *op, const mr_op_args *a, uint32_t c)
{
    const mr_op_desc *d = &op->base.desc;
    const mr_tensor *out = &op->base.info.out;
    const uint32_t filters = d->conv2d.filters;
    const size_t taps = taps_of(d);
    float *dw = a->dparam[0] + c * taps;
    memset(dw, 0, taps * sizeof *dw);
    for (uint32_t i = 0; i < a->n; i++) {
        const float *x = (const float *)a->x + i * mri_tensor_floats(&d->in) + c;
        const float *dy = (const float *)a->dy + i * mri_tensor_floats(out);
        for (uint32_t iy = 0; iy < d->in.h; iy++)
            for (uint32_t ix = 0; ix < d->in.w; ix++, x += d->in.c) {
                const struct mri_window win = mri_window_at(&d->conv2d.window, out, iy, ix);
                for (uint32_t ky = win.ky0; ky < win.ky1; ky++)
                    for (uint32_t kx = win.kx0; kx < win.kx1; kx++) {
                        const float *from = dy + mri_window_pixel(out, &win, ky, kx) * filters;
                        float *to = dw + ((size_t)ky * d->conv2d.window.kernel_w + kx) * filters;
                        for (uint32_t f = 0; f < filters; f++) to[f] += *x * from[f];
                    }
            }
    }
}

static void gradient_of_bias(const mri_host_op *op, const mr_op_args *a)
{
    const uint32_t filters = op->base.desc.conv2d.filters;
    const size_t pixels = (size_t)op->base.info.out.h * op->base.info.out.w * a->n;
    const float *dy = a->dy;
    memset(a->dparam[1], 0, filters * sizeof(float));
    for (size_t p = 0; p < pixels; p++, dy += filters)
        for (uint32_t f = 0; f < filters; f++) a->dparam[1][f] += dy[f];
}

/* The dy under every pixel's window, times the weights, for sample i. */
static void gradient_of_sample(const mri_host_op *op, const mr_op_args *a, uint32_t i)
{
    const mr_op_desc *d = &op->base.desc;
    const mr_tensor *out = &op->base.info.out;
    const uint32_t filters = d->conv2d.filters;
    const size_t taps = taps_of(d);
    const float *dy = (const float *)a->dy + i * mri_tensor_floats(out);
    float *dx = (float *)a->dx + i * mri_tensor_floats(&d->in);
    for (uint32_t iy = 0; iy < d->in.h; iy++)
        for (uint32_t ix = 0; ix < d->in.w; ix++) {
            const struct mri_window win = mri_window_at(&d->conv2d.window, out, iy, ix);
            for (uint32_t c = 0; c < d->in.c; c++) {
                float sum = 0;
                for (uint32_t ky = win.ky0; ky < win.ky1; ky++)
                    for (uint32_t kx = win.kx0; kx < win.kx1; kx++) {
                        const float *from = dy + mri_window_pixel(out, &win, ky, kx) * filters;
                        const float *pw =
                            a->param[0] + c * taps + ((size_t)ky * d->conv2d.window.kernel_w + kx) * filters;
                        for (uint32_t f = 0; f < filters; f++) sum += from[f] * pw[f];
                    }
                *dx++ = sum;
            }
        }
}

static int backward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    (void)err;
    const mr_op_desc *d = &op->base.desc;
    mri_activate_backward(d->activation, a->y, a->dy, mri_tensor_floats(&op->base.info.out) * a->n);
#pragma omp parallel for schedule(static)
    for (uint32_t c = 0; c < d->in.c; c++) gradient_of_channel(op, a, c);
    if (!d->conv2d.no_bias) gradient_of_bias(op, a);
    if (!d->need_dx) return MR_OK;
#pragma omp parallel for schedule(static)
    for (uint32_t i = 0; i < a->n; i++) gradient_of_sample(op, a, i);
    return MR_OK;
}

static const struct mri_op_code reference = {
    .prepare = mri_require_nhwc, .forward = forward, .backward = backward};
const struct mri_op_class mri_conv2d_transposed_class = {
    .name = "conv2d_transposed", .describe = describe, .reference = &reference};
