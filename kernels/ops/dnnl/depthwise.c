/* kernels/ops/dnnl/depthwise.c: see depthwise.h.
 *
 * Channels are taken as they lie beside each other, a block or a piece of a row of NHWC at a time: the
 * vector.
 *
 *   dw[ky][kx][vector] = sum over samples, and in a sample over oy and ox, of
 *                        dy[oy][ox][vector] * x[oy * stride + ky - top][ox * stride + kx - left][vector] */
#include "kernels/ops/dnnl/depthwise.h"

#include "kernels/backend/op_class.h"
#include "kernels/host/simd_loop.h"

#define WIDE 16u /* most channels of a vector */

/* What one place of the window sees in one sample: rows of pixels, in steps of floats. */
struct seen {
    size_t rows, columns;
    size_t y_row, y_step, x_row, x_step;
};

/* sum += dy * x. Two sums side by side, so that an addition need not wait for the one before. */
MRI_INLINE void rows_body(float *restrict sum, const float *dy, const float *x, const struct seen *s,
                          uint32_t width)
{
    float even[WIDE] = {0}, odd[WIDE] = {0};
    for (size_t r = 0; r < s->rows; r++) {
        const float *py = dy + r * s->y_row, *px = x + r * s->x_row;
        for (size_t i = 0; i + 2 <= s->columns; i += 2, py += 2 * s->y_step, px += 2 * s->x_step)
#pragma omp simd
            for (uint32_t k = 0; k < width; k++) {
                even[k] += py[k] * px[k];
                odd[k] += py[s->y_step + k] * px[s->x_step + k];
            }
        if (s->columns % 2)
#pragma omp simd
            for (uint32_t k = 0; k < width; k++) even[k] += py[k] * px[k];
    }
#pragma omp simd
    for (uint32_t k = 0; k < width; k++) sum[k] += even[k] + odd[k];
}

MRI_INLINE void add_rows_body(float *restrict sum, const float *dy, const float *x, const struct seen *s,
                              uint32_t width)
{
    if (width == 8) rows_body(sum, dy, x, s, 8);
    else if (width == WIDE) rows_body(sum, dy, x, s, WIDE);
    else rows_body(sum, dy, x, s, width);
}
MRI_SIMD_LOOP(add_rows,
              (float *restrict sum, const float *dy, const float *x, const struct seen *s, uint32_t width),
              (sum, dy, x, s, width))

bool mri_depthwise_fits(const struct mri_linear *l)
{
    const mr_op_desc *d = &l->op->base.desc;
    const uint32_t layout = l->op->base.info.out.layout;
    return mri_op_groups(d) > 1 && d->conv2d.groups == d->in.c && d->conv2d.filters == d->in.c &&
           layout == l->src_layout && layout != MRI_LAYOUT_NCHW;
}

/* Along one axis: the outputs whose input is inside at place k of the window, [*from, *to). */
static void outputs_of(uint32_t in, uint32_t out, uint32_t stride, uint32_t before, uint32_t k,
                       uint32_t *from, uint32_t *to)
{
    const int64_t first = (int64_t)before - k, last = (int64_t)in - 1 + before - k;
    *from = first > 0 ? (uint32_t)((first - 1) / stride + 1) : 0;
    *to = last < 0 ? 0 : (uint32_t)mri_min_u64((uint64_t)last / stride + 1, out);
}

/* Channels [first, first + width) of a sample: where they begin, and how far apart pixels are, in floats. */
struct vector {
    uint32_t first, width;
    size_t x_at, y_at, step;
};

/* One place of the window, over all samples. */
static void sum_tap(const mri_host_op *op, uint32_t n, const float *x, const float *dy,
                    const struct vector *v, uint32_t ky, uint32_t kx, float *sum)
{
    const mr_op_window *w = &op->base.desc.conv2d.window;
    const mr_tensor *in = &op->base.desc.in, *out = &op->base.info.out;
    mr_tensor taken = *in; /* in the layout that the pass takes, which is the output's */
    mri_tensor_set_layout(&taken, out->layout);
    uint32_t top, bottom, left, right;
    outputs_of(in->h, out->h, w->stride_h, w->pad_top, ky, &top, &bottom);
    outputs_of(in->w, out->w, w->stride_w, w->pad_left, kx, &left, &right);
    if (top >= bottom || left >= right) return;
    const struct seen s = {.rows = bottom - top,
                           .columns = right - left,
                           .y_row = out->w * v->step,
                           .y_step = v->step,
                           .x_row = (size_t)w->stride_h * in->w * v->step,
                           .x_step = w->stride_w * v->step};
    const size_t y_from = ((size_t)top * out->w + left) * v->step,
                 x_from = (((size_t)top * w->stride_h + ky - w->pad_top) * in->w +
                           (size_t)left * w->stride_w + kx - w->pad_left) *
                          v->step;
    for (uint32_t i = 0; i < n; i++)
        add_rows(sum, dy + i * mri_tensor_floats(out) + v->y_at + y_from,
                 x + i * mri_tensor_floats(&taken) + v->x_at + x_from, &s, v->width);
}

static void sum_bias(const mri_host_op *op, uint32_t n, const float *dy, const struct vector *v, float *bias)
{
    const mr_tensor *out = &op->base.info.out;
    const size_t pixels = (size_t)out->h * out->w;
    double sums[WIDE] = {0};
    for (uint32_t i = 0; i < n; i++)
        for (size_t p = 0; p < pixels; p++)
            for (uint32_t k = 0; k < v->width; k++)
                sums[k] += (double)dy[i * mri_tensor_floats(out) + v->y_at + p * v->step + k];
    for (uint32_t k = 0; k < v->width; k++) bias[v->first + k] = (float)sums[k];
}

static void sum_weights(const struct mri_linear *l, enum mri_linear_pass pass, uint32_t n, float *src,
                        float *weights, float *dst, float *bias, void *scratch)
{
    (void)pass, (void)scratch;
    const mri_host_op *op = l->op;
    const mr_op_window *w = &op->base.desc.conv2d.window;
    const mr_tensor *out = &op->base.info.out;
    mr_tensor taken = op->base.desc.in;
    mri_tensor_set_layout(&taken, out->layout);
    const bool rows = out->layout == MR_LAYOUT_NHWC;
    const uint32_t width = rows ? WIDE : mri_layout_block(out), vectors = (out->c - 1) / width + 1;
#pragma omp parallel for schedule(static)
    for (uint32_t at = 0; at < vectors; at++) {
        const uint32_t first = at * width, left = out->c - first;
        const struct vector v = {.first = first,
                                 .width = left < width ? left : width,
                                 .x_at = mri_tensor_index(&taken, 0, first),
                                 .y_at = mri_tensor_index(out, 0, first),
                                 .step = rows ? out->c : width};
        for (uint32_t ky = 0; ky < w->kernel_h; ky++)
            for (uint32_t kx = 0; kx < w->kernel_w; kx++) {
                float sum[WIDE] = {0};
                sum_tap(op, n, src, dst, &v, ky, kx, sum);
                for (uint32_t k = 0; k < v.width; k++)
                    weights[((size_t)(first + k) * w->kernel_h + ky) * w->kernel_w + kx] = sum[k];
            }
        if (bias) sum_bias(op, n, dst, &v, bias);
    }
}

void mri_depthwise_take(struct mri_linear *l)
{
    l->own[MRI_LINEAR_BACKWARD_WEIGHTS] =
        (struct mri_linear_own){.run = sum_weights, .weights = l->canonical};
}
