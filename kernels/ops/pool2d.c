/* kernels/ops/pool2d.c: what pooling is. The maximum's place in its window (row by row; the first of
 * equals) is kept for backward; an average divides by the places inside the input. NHWC. */
#include "kernels/backend/op_class.h"
#include "kernels/ops/host_op.h"
#include "kernels/ops/window.h"

static int describe(const mr_op_desc *d, mr_op_info *info, mr_error *err)
{
    const mr_op_window *w = &d->pool2d.window;
    uint32_t oh, ow;
    const int rc = mri_op_window_output(&d->in, w, &oh, &ow, "pool2d", err);
    if (rc) return rc;
    if ((uint64_t)w->kernel_h * w->kernel_w > 65536)
        return mr_error_set(err, MR_EUNSUPPORTED, "pool2d: a window of %u x %u has more than 65536 places",
                            w->kernel_h, w->kernel_w);
    info->flops_per_sample = (double)w->kernel_h * w->kernel_w * oh * ow * d->in.c;
    return mri_op_set_output(d, info, oh, ow, d->in.c, d->in.dtype, "pool2d", err);
}

static int prepare(mri_host_op *op, mr_error *err)
{
    const mr_tensor *out = &op->base.info.out;
    if (!op->base.desc.pool2d.average && op->base.desc.training)
        op->base.info.saved_bytes =
            (size_t)out->h * out->w * out->c * op->base.desc.max_batch * sizeof(uint16_t);
    return mri_require_nhwc(op, err);
}

static float maximum(const mr_op_desc *d, const struct mri_window *win, const float *x, uint16_t *place)
{
    float best = 0;
    bool any = false;
    for (uint32_t ky = win->ky0; ky < win->ky1; ky++)
        for (uint32_t kx = win->kx0; kx < win->kx1; kx++) {
            const float v = x[mri_window_pixel(&d->in, win, ky, kx) * d->in.c];
            if (any && !(v > best)) continue;
            best = v;
            *place = (uint16_t)(ky * d->pool2d.window.kernel_w + kx);
            any = true;
        }
    return best;
}

static uint32_t places(const struct mri_window *win) { return (win->ky1 - win->ky0) * (win->kx1 - win->kx0); }

static float average(const mr_op_desc *d, const struct mri_window *win, const float *x)
{
    float sum = 0;
    for (uint32_t ky = win->ky0; ky < win->ky1; ky++)
        for (uint32_t kx = win->kx0; kx < win->kx1; kx++)
            sum += x[mri_window_pixel(&d->in, win, ky, kx) * d->in.c];
    const uint32_t n = places(win);
    return n ? sum / (float)n : 0;
}

static int forward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    (void)err;
    const mr_op_desc *d = &op->base.desc;
    const mr_tensor *out = &op->base.info.out;
#pragma omp parallel for schedule(static)
    for (uint32_t i = 0; i < a->n; i++) {
        const float *x = (const float *)a->x + i * mri_tensor_floats(&d->in);
        size_t at = i * mri_tensor_floats(out);
        for (uint32_t oy = 0; oy < out->h; oy++)
            for (uint32_t ox = 0; ox < out->w; ox++) {
                const struct mri_window win = mri_window_at(&d->pool2d.window, &d->in, oy, ox);
                for (uint32_t c = 0; c < out->c; c++, at++) {
                    uint16_t place = 0;
                    ((float *)a->y)[at] =
                        d->pool2d.average ? average(d, &win, x + c) : maximum(d, &win, x + c, &place);
                    if (a->saved && !d->pool2d.average) ((uint16_t *)a->saved)[at] = place;
                }
            }
    }
    return MR_OK;
}

static void spread(const mr_op_desc *d, const struct mri_window *win, float *dx, float dy)
{
    for (uint32_t ky = win->ky0; ky < win->ky1; ky++)
        for (uint32_t kx = win->kx0; kx < win->kx1; kx++)
            dx[mri_window_pixel(&d->in, win, ky, kx) * d->in.c] += dy / (float)places(win);
}

static int backward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    (void)err;
    const mr_op_desc *d = &op->base.desc;
    const mr_tensor *out = &op->base.info.out;
    if (!d->need_dx) return MR_OK;
#pragma omp parallel for schedule(static)
    for (uint32_t i = 0; i < a->n; i++) {
        float *dx = (float *)a->dx + i * mri_tensor_floats(&d->in);
        size_t at = i * mri_tensor_floats(out);
        memset(dx, 0, d->in.sample_bytes);
        for (uint32_t oy = 0; oy < out->h; oy++)
            for (uint32_t ox = 0; ox < out->w; ox++) {
                const struct mri_window win = mri_window_at(&d->pool2d.window, &d->in, oy, ox);
                for (uint32_t c = 0; c < out->c; c++, at++) {
                    const float dy = ((const float *)a->dy)[at];
                    if (d->pool2d.average) {
                        spread(d, &win, dx + c, dy);
                    } else if (places(&win)) {
                        const uint32_t place = ((const uint16_t *)a->saved)[at];
                        dx[mri_window_pixel(&d->in, &win, place / d->pool2d.window.kernel_w,
                                            place % d->pool2d.window.kernel_w) *
                               d->in.c +
                           c] += dy;
                    }
                }
            }
    }
    return MR_OK;
}

static const struct mri_op_code reference = {.prepare = prepare, .forward = forward, .backward = backward};
const struct mri_op_class mri_pool2d_class = {
    .name = "pool2d", .describe = describe, .reference = &reference};
