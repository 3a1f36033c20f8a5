/* kernels/ops/conv2d.c: defines convolution. NHWC, weights [filters][kh][kw][c / groups]; sums run over kh,
 * kw, c in this order in float, c over the channels of the filter's group. Threads share samples (forward,
 * dx) or filters (gradients of parameters), so every sum has one order. */
#include "kernels/backend/op_class.h"
#include "kernels/ops/host_op.h"
#include "kernels/ops/window.h"

static int describe(const mr_op_desc *d, mr_op_info *info, mr_error *err)
{
    const mr_conv2d_desc *conv = &d->conv2d;
    const mr_op_window *w = &conv->window;
    uint32_t oh, ow;
    int rc = mri_op_window_output(&d->in, w, &oh, &ow, "conv2d", err);
    if (!rc) rc = mri_op_check_count(conv->filters, "filters", "conv2d", err);
    if (rc) return rc;
    if ((unsigned)d->want > MR_WANT_NHWC)
        return mr_error_set(err, MR_EINVAL, "conv2d: the output is NHWC or the device's choice");
    const uint32_t groups = mri_op_groups(d), seen = d->in.c / groups;
    if (d->in.c % groups != 0 || conv->filters % groups != 0)
        return mr_error_set(err, MR_EINVAL,
                            "conv2d: %u groups must divide the %u channels and the %u filters", groups,
                            d->in.c, conv->filters);
    const uint64_t places = (uint64_t)w->kernel_h * w->kernel_w;
    if (places > (uint64_t)1 << 32 || places * seen > ((uint64_t)1 << 40) / conv->filters)
        return mr_error_set(err, MR_EINVAL, "conv2d: the weights are too large");
    const uint64_t count = places * seen * conv->filters;
    const mr_param_info weights = {.name = "weights",
                                   .ndim = 4,
                                   .dim = {conv->filters, w->kernel_h, w->kernel_w, seen},
                                   .count = count,
                                   .storage_count = count,
                                   .fan_in = places * seen,
                                   .fan_out = places * (conv->filters / groups)};
    mri_op_set_weights(info, &weights, conv->filters, conv->no_bias);
    info->flops_per_sample = 2.0 * (double)count * oh * ow;
    return mri_op_set_output(d, info, oh, ow, conv->filters, d->in.dtype, "conv2d", err);
}

/* Channels that a filter sees, and the first of them. */
static uint32_t seen_by_filter(const mr_op_desc *d) { return d->in.c / mri_op_groups(d); }
static uint32_t first_seen(const mr_op_desc *d, uint32_t filter)
{
    return filter / (d->conv2d.filters / mri_op_groups(d)) * seen_by_filter(d);
}

static size_t taps_of(const mr_op_desc *d)
{
    return (size_t)d->conv2d.window.kernel_h * d->conv2d.window.kernel_w * seen_by_filter(d);
}

/* x: from the first channel that the filter with weights w sees on. */
static float dot_window(const mr_op_desc *d, const float *x, const float *w, uint32_t oy, uint32_t ox)
{
    const struct mri_window win = mri_window_at(&d->conv2d.window, &d->in, oy, ox);
    const uint32_t seen = seen_by_filter(d);
    float sum = 0;
    for (uint32_t ky = win.ky0; ky < win.ky1; ky++)
        for (uint32_t kx = win.kx0; kx < win.kx1; kx++) {
            const float *px = x + mri_window_pixel(&d->in, &win, ky, kx) * d->in.c;
            const float *pw = w + ((size_t)ky * d->conv2d.window.kernel_w + kx) * seen;
            for (uint32_t c = 0; c < seen; c++) sum += px[c] * pw[c];
        }
    return sum;
}

static int forward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    (void)err;
    const mr_op_desc *d = &op->base.desc;
    const mr_tensor *out = &op->base.info.out;
    const size_t taps = taps_of(d);
#pragma omp parallel for schedule(static)
    for (uint32_t i = 0; i < a->n; i++) {
        const float *x = (const float *)a->x + i * mri_tensor_floats(&d->in);
        float *y = (float *)a->y + i * mri_tensor_floats(out);
        for (uint32_t oy = 0; oy < out->h; oy++)
            for (uint32_t ox = 0; ox < out->w; ox++)
                for (uint32_t f = 0; f < d->conv2d.filters; f++)
                    *y++ = dot_window(d, x + first_seen(d, f), a->param[0] + f * taps, oy, ox) +
                           (d->conv2d.no_bias ? 0 : a->param[1][f]);
    }
    mri_activate(d->activation, a->y, mri_tensor_floats(out) * a->n);
    return MR_OK;
}

/* Every output element's dy times the pixels under its window, for filter f. */
static void gradient_of_filter(const mri_host_op *op, const mr_op_args *a, uint32_t f)
{
    const mr_op_desc *d = &op->base.desc;
    const mr_tensor *out = &op->base.info.out;
    const size_t taps = taps_of(d);
    const uint32_t seen = seen_by_filter(d);
    float *dw = a->dparam[0] + f * taps, db = 0;
    memset(dw, 0, taps * sizeof *dw);
    for (uint32_t i = 0; i < a->n; i++) {
        const float *x = (const float *)a->x + i * mri_tensor_floats(&d->in) + first_seen(d, f);
        const float *dy = (const float *)a->dy + i * mri_tensor_floats(out) + f;
        for (uint32_t oy = 0; oy < out->h; oy++)
            for (uint32_t ox = 0; ox < out->w; ox++, dy += d->conv2d.filters) {
                const struct mri_window win = mri_window_at(&d->conv2d.window, &d->in, oy, ox);
                db += *dy;
                for (uint32_t ky = win.ky0; ky < win.ky1; ky++)
                    for (uint32_t kx = win.kx0; kx < win.kx1; kx++) {
                        const float *px = x + mri_window_pixel(&d->in, &win, ky, kx) * d->in.c;
                        float *pw = dw + ((size_t)ky * d->conv2d.window.kernel_w + kx) * seen;
                        for (uint32_t c = 0; c < seen; c++) pw[c] += *dy * px[c];
                    }
            }
    }
    if (!d->conv2d.no_bias) a->dparam[1][f] = db;
}

/* The weights of every window that covered a pixel, times that window's dy, for sample i. */
static void gradient_of_sample(const mri_host_op *op, const mr_op_args *a, uint32_t i)
{
    const mr_op_desc *d = &op->base.desc;
    const mr_tensor *out = &op->base.info.out;
    const size_t taps = taps_of(d);
    const uint32_t seen = seen_by_filter(d);
    const float *dy = (const float *)a->dy + i * mri_tensor_floats(out);
    float *dx = (float *)a->dx + i * mri_tensor_floats(&d->in);
    memset(dx, 0, d->in.sample_bytes);
    for (uint32_t oy = 0; oy < out->h; oy++)
        for (uint32_t ox = 0; ox < out->w; ox++) {
            const struct mri_window win = mri_window_at(&d->conv2d.window, &d->in, oy, ox);
            for (uint32_t f = 0; f < d->conv2d.filters; f++, dy++)
                for (uint32_t ky = win.ky0; ky < win.ky1; ky++)
                    for (uint32_t kx = win.kx0; kx < win.kx1; kx++) {
                        const float *pw =
                            a->param[0] + f * taps + ((size_t)ky * d->conv2d.window.kernel_w + kx) * seen;
                        float *px = dx + mri_window_pixel(&d->in, &win, ky, kx) * d->in.c + first_seen(d, f);
                        for (uint32_t c = 0; c < seen; c++) px[c] += *dy * pw[c];
                    }
        }
}

static int backward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    (void)err;
    const mr_op_desc *d = &op->base.desc;
    mri_activate_backward(d->activation, a->y, a->dy, mri_tensor_floats(&op->base.info.out) * a->n);
#pragma omp parallel for schedule(static)
    for (uint32_t f = 0; f < d->conv2d.filters; f++) gradient_of_filter(op, a, f);
    if (!d->need_dx) return MR_OK;
#pragma omp parallel for schedule(static)
    for (uint32_t i = 0; i < a->n; i++) gradient_of_sample(op, a, i);
    return MR_OK;
}

static const struct mri_op_code reference = {
    .prepare = mri_require_nhwc, .forward = forward, .backward = backward};
const struct mri_op_class mri_conv2d_class = {
    .name = "conv2d", .fuses = true, .describe = describe, .reference = &reference};
