/* kernels/ops/softmax.c: softmax over the channels of each pixel, or its logarithm, in any layout:
 *
 *     p_c = exp(x_c - max) / sum over j of exp(x_j - max)       y_c = p_c, or (x_c - max) - ln(sum)
 *     dx_c = p_c (dy_c - sum of p_j dy_j), or dy_c - p_c * sum of dy_j
 *
 * Exponentials in float, their sums in double and in the order of channels, within a pixel: a sample's result
 * depends on neither threads nor batch. Backward works the sums out again from x: that passes less memory
 * than keeping p, and the logarithm has no p to keep. */
#include <math.h>

#include "kernels/backend/op_class.h"
#include "kernels/host/simd_loop.h"
#include "kernels/ops/rows.h"

enum { PIECE = 512 };

static int describe(const mr_op_desc *d, mr_op_info *info, mr_error *err)
{
    (void)err;
    info->flops_per_sample = 5.0 * d->in.h * d->in.w * d->in.c;
    return MR_OK;
}

/* Backward reads x. */
static bool lacks(const mr_op *op, const mr_op_args *a, bool backward)
{
    return mri_op_lacks(op, a, backward) || (backward && op->desc.need_dx && !a->x);
}

/* A pixel's channels, a piece at a time. */
typedef struct walk {
    const mr_tensor *t;
    size_t pixel;
    uint32_t from, count;
} walk;

static walk first_piece(const mr_tensor *t, size_t pixel)
{
    return (walk){t, pixel, 0, t->c < PIECE ? t->c : PIECE};
}

static bool there_is(const walk *w) { return w->from < w->t->c; }

static void next_piece(walk *w)
{
    w->from += w->count;
    w->count = w->t->c - w->from < PIECE ? w->t->c - w->from : PIECE;
}

static void take(const walk *w, const float *sample, float *row)
{
    mri_take_row(w->t, sample, w->pixel, w->from, w->count, row);
}

typedef struct exponents {
    float top;  /* the largest x */
    double sum; /* of exp(x - top) */
} exponents;

static exponents exponents_of(const mr_tensor *t, const float *x, size_t pixel)
{
    float row[PIECE];
    exponents e = {.top = -INFINITY};
    for (walk w = first_piece(t, pixel); there_is(&w); next_piece(&w)) {
        take(&w, x, row);
        for (uint32_t i = 0; i < w.count; i++) e.top = row[i] > e.top ? row[i] : e.top;
    }
    for (walk w = first_piece(t, pixel); there_is(&w); next_piece(&w)) {
        take(&w, x, row);
        for (uint32_t i = 0; i < w.count; i++) e.sum += (double)expf(row[i] - e.top);
    }
    return e;
}

static void forward_pixel(const mr_op_desc *d, const float *x, float *y, size_t pixel)
{
    const exponents e = exponents_of(&d->in, x, pixel);
    const float log_sum = (float)log(e.sum), share = (float)(1 / e.sum);
    float row[PIECE];
    for (walk w = first_piece(&d->in, pixel); there_is(&w); next_piece(&w)) {
        take(&w, x, row);
        for (uint32_t i = 0; i < w.count; i++)
            row[i] = d->softmax.log ? row[i] - e.top - log_sum : expf(row[i] - e.top) * share;
        mri_put_row(&d->in, y, pixel, w.from, w.count, row);
    }
}

static void backward_pixel(const mr_op_desc *d, const float *x, const float *dy, float *dx, size_t pixel)
{
    const exponents e = exponents_of(&d->in, x, pixel);
    const float share = (float)(1 / e.sum);
    float row[PIECE], gradient[PIECE];
    double sum = 0;
    for (walk w = first_piece(&d->in, pixel); there_is(&w); next_piece(&w)) {
        take(&w, dy, gradient);
        if (!d->softmax.log) take(&w, x, row);
        for (uint32_t i = 0; i < w.count; i++)
            sum += d->softmax.log ? (double)gradient[i]
                                  : (double)gradient[i] * (double)(expf(row[i] - e.top) * share);
    }
    const float through = (float)sum;
    for (walk w = first_piece(&d->in, pixel); there_is(&w); next_piece(&w)) {
        take(&w, dy, gradient);
        take(&w, x, row);
        for (uint32_t i = 0; i < w.count; i++) {
            const float p = expf(row[i] - e.top) * share;
            row[i] = d->softmax.log ? gradient[i] - p * through : p * (gradient[i] - through);
        }
        mri_put_row(&d->in, dx, pixel, w.from, w.count, row);
    }
}

static int forward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    (void)err;
    const mr_op_desc *d = &op->base.desc;
    const size_t floats = mri_tensor_floats(&d->in), pixels = (size_t)d->in.h * d->in.w, all = pixels * a->n;
#pragma omp parallel for schedule(static) if (floats * a->n > MRI_PARALLEL_ELEMENTS / 4)
    for (size_t k = 0; k < all; k++)
        forward_pixel(d, (const float *)a->x + k / pixels * floats, (float *)a->y + k / pixels * floats,
                      k % pixels);
    mri_tensor_zero_padding(&d->in, a->n, a->y);
    return MR_OK;
}

static int backward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    (void)err;
    const mr_op_desc *d = &op->base.desc;
    const size_t floats = mri_tensor_floats(&d->in), pixels = (size_t)d->in.h * d->in.w, all = pixels * a->n;
    if (!d->need_dx) return MR_OK;
#pragma omp parallel for schedule(static) if (floats * a->n > MRI_PARALLEL_ELEMENTS / 4)
    for (size_t k = 0; k < all; k++)
        backward_pixel(d, (const float *)a->x + k / pixels * floats,
                       (const float *)a->dy + k / pixels * floats, (float *)a->dx + k / pixels * floats,
                       k % pixels);
    mri_tensor_zero_padding(&d->in, a->n, a->dx);
    return MR_OK;
}

static const struct mri_op_code reference = {.forward = forward, .backward = backward};
const struct mri_op_class mri_softmax_class = {
    .name = "softmax", .keeps_layout = true, .describe = describe, .lacks = lacks, .reference = &reference};
