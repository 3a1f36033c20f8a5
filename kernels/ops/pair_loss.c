/* kernels/ops/pair_loss.c: losses of two tensors of one shape, element by element: cross-entropy of logits
 * against probabilities, squares of differences and their kin, the divergence of normal distributions from
 * the standard one; and pixel by pixel the cross-entropy of a softmax. Elements in float, their sums in
 * double, one order a sample. Layouts may differ: elements are met in canonical order. */
#include <math.h>

#include "kernels/backend/op_class.h"
#include "kernels/host/simd_loop.h"
#include "kernels/ops/host_op.h"

static int describe(const mr_op_desc *d, mr_op_info *info, mr_error *err)
{
    const mr_tensor *a = &d->in, *b = &d->in2;
    info->writes_dx2 = true;
    info->flops_per_sample = 4.0 * a->h * a->w * a->c;
    if ((unsigned)d->pair_loss.kind >= MR_PAIR_COUNT)
        return mr_error_set(err, MR_EINVAL, "pair_loss: unknown loss %d", (int)d->pair_loss.kind);
    if (!(d->pair_loss.weight >= 0) || isinf(d->pair_loss.weight))
        return mr_error_set(err, MR_EINVAL, "pair_loss: weight %g: expected a finite number above 0",
                            (double)d->pair_loss.weight);
    if (a->h != b->h || a->w != b->w || a->c != b->c || a->dtype != b->dtype)
        return mr_error_set(
            err, MR_EINVAL,
            "pair_loss: the second input is %u x %u x %u of type %u, the first %u x %u x %u of "
            "type %u; they must be equal",
            b->h, b->w, b->c, b->dtype, a->h, a->w, a->c, a->dtype);
    return MR_OK;
}

static bool takes_two(const mr_op_desc *d)
{
    (void)d;
    return true;
}

static bool lacks(const mr_op *op, const mr_op_args *a, bool backward)
{
    if (!a->x || !a->x2) return true;
    return backward ? !a->values || (op->desc.need_dx && !a->dx) : !a->metrics;
}

static int prepare(mri_host_op *op, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    if (!mri_tensor_valid(&d->in2))
        return mr_error_set(
            err, MR_EINVAL,
            "pair_loss: the second input's layout %u with %zu bytes a sample is not one this device makes",
            d->in2.layout, d->in2.sample_bytes);
    op->base.info.scratch_bytes = (size_t)d->max_batch * sizeof(double); /* the loss of each sample */
    return MR_OK;
}

static double weight_of(const mri_host_op *op)
{
    const float weight = op->base.desc.pair_loss.weight;
    return weight > 0 ? (double)weight : 1;
}

static bool counts(const mr_op_args *a, uint32_t i) { return !a->labels || a->labels[i] >= 0; }

/* The first invalid target of a sample; NULL: all are valid. */
static const float *bad_target(const mri_host_op *op, const mr_op_args *a, uint32_t i)
{
    const mr_op_desc *d = &op->base.desc;
    const float *x2 = (const float *)a->x2 + i * mri_tensor_floats(&d->in2);
    const bool shares = d->pair_loss.kind == MR_PAIR_CROSS_ENTROPY;
    for (size_t p = 0; d->pair_loss.targets && counts(a, i) && p < (size_t)d->in.h * d->in.w; p++)
        for (uint32_t c = 0; c < d->in.c; c++) {
            const float *v = x2 + mri_tensor_index(&d->in2, p, c);
            if (shares ? !(*v >= 0 && *v <= 1) : !isfinite(*v)) return v;
        }
    return NULL;
}

/* In training a bad sample is an error of the stream, else only counted. */
static int check_targets(const mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    for (uint32_t i = 0; i < a->n; i++) {
        const float *v = bad_target(op, a, i);
        if (v)
            return mr_error_set(err, MR_EINVAL,
                                "loss: sample %u of the batch has a target of %g: expected %s", i, (double)*v,
                                op->base.desc.pair_loss.kind == MR_PAIR_CROSS_ENTROPY
                                    ? "0 to 1, as of labels that are there or not"
                                    : "finite numbers");
    }
    return MR_OK;
}

/* Neither exponential overflows. */
static float value(mr_pair_loss kind, float x, float x2)
{
    const float off = fabsf(x - x2);
    switch (kind) {
    case MR_PAIR_CROSS_ENTROPY: return (x > 0 ? x : 0) - x * x2 + log1pf(expf(-fabsf(x)));
    case MR_PAIR_SQUARES: return (x - x2) * (x - x2);
    case MR_PAIR_DIVERGENCE: return -0.5f * (1 + x2 - x * x - expf(x2));
    case MR_PAIR_ABSOLUTE: return off;
    case MR_PAIR_HUBER: return off < 1 ? 0.5f * off * off : off - 0.5f;
    case MR_PAIR_CLASSES: break; /* not by itself */
    }
    return 0;
}

static float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

/* v brought into [-1, 1], with its sign as far as that goes. */
static float limited(float v) { return v > 1 ? 1 : v < -1 ? -1 : v; }

static float slope(mr_pair_loss kind, float x, float x2)
{
    switch (kind) {
    case MR_PAIR_CROSS_ENTROPY: return sigmoid(x) - x2;
    case MR_PAIR_SQUARES: return 2 * (x - x2);
    case MR_PAIR_DIVERGENCE: return x;
    case MR_PAIR_ABSOLUTE: return (float)((x > x2) - (x < x2));
    case MR_PAIR_HUBER: return limited(x - x2);
    case MR_PAIR_CLASSES: break;
    }
    return 0;
}

static float slope2(mr_pair_loss kind, float x, float x2)
{
    switch (kind) {
    case MR_PAIR_CROSS_ENTROPY: return -x;
    case MR_PAIR_SQUARES: return -2 * (x - x2);
    case MR_PAIR_DIVERGENCE: return 0.5f * (expf(x2) - 1);
    case MR_PAIR_ABSOLUTE:
    case MR_PAIR_HUBER: return -slope(kind, x, x2);
    case MR_PAIR_CLASSES: break;
    }
    return 0;
}

/* ---- the classes of a pixel ---- */

typedef struct softmax {
    float top, log_sum; /* ln softmax(x)_c = x_c - top - log_sum */
    float wanted;       /* sum of x2 */
} softmax;

static softmax softmax_of(const mr_op_desc *d, const float *x, const float *x2, size_t pixel)
{
    softmax s = {.top = x[mri_tensor_index(&d->in, pixel, 0)]};
    double sum = 0, wanted = 0;
    for (uint32_t c = 1; c < d->in.c; c++) s.top = fmaxf(s.top, x[mri_tensor_index(&d->in, pixel, c)]);
    for (uint32_t c = 0; c < d->in.c; c++) {
        sum += (double)expf(x[mri_tensor_index(&d->in, pixel, c)] - s.top);
        wanted += (double)x2[mri_tensor_index(&d->in2, pixel, c)];
    }
    s.log_sum = (float)log(sum);
    s.wanted = (float)wanted;
    return s;
}

static double loss_of_pixel(const mr_op_desc *d, const float *x, const float *x2, size_t pixel)
{
    const softmax s = softmax_of(d, x, x2, pixel);
    double loss = 0;
    for (uint32_t c = 0; c < d->in.c; c++)
        loss += (double)(x2[mri_tensor_index(&d->in2, pixel, c)] *
                         (s.top + s.log_sum - x[mri_tensor_index(&d->in, pixel, c)]));
    return loss;
}

static void gradient_of_pixel(const mr_op_desc *d, const float *x, const float *x2, size_t pixel, float scale,
                              float *dx, float *dx2)
{
    const softmax s = softmax_of(d, x, x2, pixel);
    for (uint32_t c = 0; c < d->in.c; c++) {
        const size_t k = mri_tensor_index(&d->in, pixel, c), k2 = mri_tensor_index(&d->in2, pixel, c);
        const float log_p = x[k] - s.top - s.log_sum, v = x2[k2];
        if (dx) dx[k] = scale * (s.wanted * expf(log_p) - v);
        if (dx2) dx2[k2] = scale * -log_p;
    }
}

/* ---- samples ---- */

/* Correctly predicted elements, for losses that define this. */
static uint64_t right_of_sample(const mri_host_op *op, const mr_op_args *a, uint32_t i)
{
    const mr_op_desc *d = &op->base.desc;
    const float *x = (const float *)a->x + i * mri_tensor_floats(&d->in),
                *x2 = (const float *)a->x2 + i * mri_tensor_floats(&d->in2);
    const bool labels = d->pair_loss.targets && d->pair_loss.kind == MR_PAIR_CROSS_ENTROPY;
    uint64_t right = 0;
    for (size_t p = 0; labels && p < (size_t)d->in.h * d->in.w; p++)
        for (uint32_t c = 0; c < d->in.c; c++)
            right += (x[mri_tensor_index(&d->in, p, c)] > 0) == (x2[mri_tensor_index(&d->in2, p, c)] > 0.5f);
    return right;
}

static double loss_of_sample(const mri_host_op *op, const mr_op_args *a, uint32_t i)
{
    const mr_op_desc *d = &op->base.desc;
    const float *x = (const float *)a->x + i * mri_tensor_floats(&d->in),
                *x2 = (const float *)a->x2 + i * mri_tensor_floats(&d->in2);
    const size_t pixels = (size_t)d->in.h * d->in.w;
    double sum = 0;
    if (d->pair_loss.kind == MR_PAIR_CLASSES)
        for (size_t p = 0; p < pixels; p++) sum += loss_of_pixel(d, x, x2, p);
    else
        for (size_t p = 0; p < pixels; p++)
            for (uint32_t c = 0; c < d->in.c; c++)
                sum += (double)value(d->pair_loss.kind, x[mri_tensor_index(&d->in, p, c)],
                                     x2[mri_tensor_index(&d->in2, p, c)]);
    return weight_of(op) * sum;
}

static int forward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    const int rc = a->training ? check_targets(op, a, err) : MR_OK;
    if (rc) return rc;
    double *losses = a->scratch;
#pragma omp parallel for schedule(static) if (mri_tensor_floats(&op->base.desc.in) * a->n >                  \
                                              MRI_PARALLEL_ELEMENTS / 8)
    for (uint32_t i = 0; i < a->n; i++) losses[i] = counts(a, i) ? loss_of_sample(op, a, i) : 0;
    for (uint32_t i = 0; i < a->n; i++) {
        const bool bad = bad_target(op, a, i) != NULL;
        a->metrics->bad += bad;
        if (bad) continue;
        a->metrics->loss_sum += losses[i];
        if (op->base.desc.pair_loss.silent || !counts(a, i)) continue;
        a->metrics->correct += right_of_sample(op, a, i);
        a->metrics->count++;
    }
    return MR_OK;
}

/* Writes where the gradient is wanted; samples that do not count get zeros. */
static void gradient_of_sample(const mri_host_op *op, const mr_op_args *a, uint32_t i, float scale)
{
    const mr_op_desc *d = &op->base.desc;
    const size_t floats = mri_tensor_floats(&d->in), floats2 = mri_tensor_floats(&d->in2),
                 pixels = (size_t)d->in.h * d->in.w;
    const float *x = (const float *)a->x + i * floats, *x2 = (const float *)a->x2 + i * floats2;
    float *dx = d->need_dx ? (float *)a->dx + i * floats : NULL,
          *dx2 = a->dx2 ? (float *)a->dx2 + i * floats2 : NULL;
    const bool counted = counts(a, i) && scale != 0 && !bad_target(op, a, i);
    const bool by_pixel = d->pair_loss.kind == MR_PAIR_CLASSES;
    for (size_t p = 0; counted && by_pixel && p < pixels; p++) gradient_of_pixel(d, x, x2, p, scale, dx, dx2);
    for (size_t p = 0; !(counted && by_pixel) && p < pixels; p++)
        for (uint32_t c = 0; c < d->in.c; c++) {
            const size_t k = mri_tensor_index(&d->in, p, c), k2 = mri_tensor_index(&d->in2, p, c);
            const float u = x[k], v = x2[k2];
            if (dx) dx[k] = counted ? scale * slope(d->pair_loss.kind, u, v) : 0;
            if (dx2) dx2[k2] = counted ? scale * slope2(d->pair_loss.kind, u, v) : 0;
        }
}

static int backward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    (void)err;
    const mr_op_desc *d = &op->base.desc;
    const float scale = (float)(weight_of(op) * (double)a->values->scale *
                                (a->loss_scale ? (double)a->loss_scale->scale : 1));
#pragma omp parallel for schedule(static) if (mri_tensor_floats(&d->in) * a->n > MRI_PARALLEL_ELEMENTS / 8)
    for (uint32_t i = 0; i < a->n; i++) gradient_of_sample(op, a, i, scale);
    if (d->need_dx) mri_tensor_zero_padding(&d->in, a->n, a->dx);
    if (a->dx2) mri_tensor_zero_padding(&d->in2, a->n, a->dx2);
    return MR_OK;
}

/* There is no dy, so no second one. */
static const struct mri_op_code reference = {
    .prepare = prepare, .forward = forward, .backward = backward, .adds_dy2 = true};
const struct mri_op_class mri_pair_loss_class = {.name = "pair_loss",
                                                 .describe = describe,
                                                 .takes_two = takes_two,
                                                 .lacks = lacks,
                                                 .reference = &reference};
