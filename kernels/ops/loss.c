/* kernels/ops/loss.c: softmax and cross-entropy against a label; subtracting the largest logit first avoids
 * overflow. Exponentials in float, sums and metrics in double. Samples with a label below 0 count nothing and
 * get no gradient.
 *
 * With class weights the target of a class is multiplied by its weight; the loss then loops over every class,
 * while without weights the label's class is enough.
 *
 * One logit equals two logits with the first one 0: a sigmoid, computed in double. */
#include <math.h>

#include "kernels/backend/op_class.h"
#include "kernels/host/simd_loop.h"
#include "kernels/ops/host_op.h"

static int describe(const mr_op_desc *d, mr_op_info *info, mr_error *err)
{
    (void)info;
    if (d->in.h != 1 || d->in.w != 1)
        return mr_error_set(err, MR_EINVAL, "loss: logits must be a vector (1 x 1 x classes)");
    if (!(d->loss.factor >= 0) || isinf(d->loss.factor))
        return mr_error_set(err, MR_EINVAL, "loss: factor %g: expected a finite number above 0",
                            (double)d->loss.factor);
    if (!(d->loss.smoothing >= 0 && d->loss.smoothing < 1))
        return mr_error_set(err, MR_EINVAL, "loss: smoothing %g: expected 0 to below 1",
                            (double)d->loss.smoothing);
    if (!(d->loss.weight >= 0) || isinf(d->loss.weight))
        return mr_error_set(err, MR_EINVAL, "loss: weight %g: expected a finite number above 0",
                            (double)d->loss.weight);
    return MR_OK;
}

static uint32_t classes_of(const mri_host_op *op) { return op->base.desc.in.c > 1 ? op->base.desc.in.c : 2; }

static float factor_of(const mri_host_op *op)
{
    const float factor = op->base.desc.loss.factor;
    return factor > 0 ? factor : 1;
}

static double weight_of(const mri_host_op *op)
{
    const float weight = op->base.desc.loss.weight;
    return weight > 0 ? (double)weight : 1;
}

static double smoothing_of(const mri_host_op *op, const mr_op_args *a)
{
    return a->training ? (double)op->base.desc.loss.smoothing : 0;
}

/* NULL: all count alike. */
static const float *class_weights_of(const mri_host_op *op, const mr_op_args *a)
{
    return op->base.desc.loss.class_weights && a->training ? a->class_weights : NULL;
}

static bool lacks(const mr_op *op, const mr_op_args *a, bool backward)
{
    if (op->desc.loss.class_weights && a->training && !a->class_weights) return true;
    return !a->labels || (backward ? !a->x || !a->dx || !a->values : !a->metrics);
}

static int prepare(mri_host_op *op, mr_error *err)
{
    if (op->base.desc.in.layout != MR_LAYOUT_NHWC)
        return mr_error_set(err, MR_EINVAL, "loss: logits must be a plain vector, found layout %u",
                            op->base.desc.in.layout);
    /* the loss of each sample */
    op->base.info.scratch_bytes = (size_t)op->base.desc.max_batch * sizeof(double);
    return MR_OK;
}

/* exp(factor (x - max)) into p (may be NULL); returns their sum. */
static double exponentials(float *p, const float *x, uint32_t classes, float factor, float *max)
{
    float top = x[0];
    for (uint32_t c = 1; c < classes; c++) top = x[c] > top ? x[c] : top;
    double sum = 0;
    for (uint32_t c = 0; c < classes; c++) {
        const float e = expf(factor * (x[c] - top));
        if (p) p[c] = e;
        sum += (double)e;
    }
    *max = top;
    return sum;
}

/* The second label of a sample and its share; of one that is not mixed both 0. */
typedef struct second {
    int32_t label;
    float share;
} second;

static second second_of(const mr_op_args *a, uint32_t i)
{
    const second none = {0, 0};
    return a->labels2 && a->share2[i] != 0 ? (second){a->labels2[i], a->share2[i]} : none;
}

static bool is_label(int32_t label, uint32_t classes) { return label >= 0 && (uint32_t)label < classes; }

/* A label of a sample that counts is not a class, or a share is invalid. */
static bool is_bad(const mr_op_args *a, uint32_t i, uint32_t classes)
{
    const second s = second_of(a, i);
    return a->labels[i] >= 0 &&
           !(is_label(a->labels[i], classes) && is_label(s.label, classes) && s.share >= 0 && s.share <= 1);
}

static bool counts(const mr_op_args *a, uint32_t i, uint32_t classes)
{
    return a->labels[i] >= 0 && !is_bad(a, i, classes);
}

/* In training a bad sample is an error of the stream, else only counted. */
static int check_labels(const mr_op_args *a, uint32_t classes, mr_error *err)
{
    for (uint32_t i = 0; i < a->n; i++) {
        const second s = second_of(a, i);
        if (!is_bad(a, i, classes)) continue;
        if (is_label(a->labels[i], classes) && is_label(s.label, classes))
            return mr_error_set(err, MR_EINVAL,
                                "loss: sample %u of the batch has %g of a second label, expected 0 to 1", i,
                                (double)s.share);
        return mr_error_set(err, MR_EINVAL,
                            "loss: sample %u of the batch has label %d, the network has %u classes", i,
                            (int)(is_label(a->labels[i], classes) ? s.label : a->labels[i]), classes);
    }
    return MR_OK;
}

/* The one that it counts as. */
static int32_t counts_as(const mr_op_args *a, uint32_t i)
{
    const second s = second_of(a, i);
    return s.share > 0.5f ? s.label : a->labels[i];
}

static bool first_of_largest(const float *x, uint32_t classes, uint32_t label)
{
    for (uint32_t c = 0; c < classes; c++)
        if (x[c] > x[label] || (c < label && x[c] == x[label])) return false;
    return true;
}

/* What smoothing takes from the wanted logit: it against the mean of all, both without the largest. */
static double smoothed(const float *x, uint32_t classes, double wanted, float max, double smoothing)
{
    double sum = 0;
    for (uint32_t c = 0; c < classes; c++) sum += (double)x[c] - (double)max;
    return wanted + smoothing * (sum / classes - wanted);
}

/* The target of every class, times its weight. */
typedef struct wants {
    const float *weights;
    int32_t label, label2;
    double at_label, at_second, everywhere;
} wants;

static wants wanted_of_sample(const mri_host_op *op, const mr_op_args *a, uint32_t i)
{
    const second s = second_of(a, i);
    const double smoothing = smoothing_of(op, a), share = (double)s.share;
    return (wants){class_weights_of(op, a),
                   a->labels[i],
                   s.label,
                   (1 - smoothing) * (1 - share),
                   (1 - smoothing) * share,
                   smoothing / classes_of(op)};
}

static double weighted(const wants *w, uint32_t c)
{
    double share = w->everywhere;
    if ((int32_t)c == w->label) share += w->at_label;
    if ((int32_t)c == w->label2) share += w->at_second;
    return (double)w->weights[c] * share;
}

static double weighted_sum(const wants *w, uint32_t classes)
{
    double sum = 0;
    for (uint32_t c = 0; c < classes; c++) sum += weighted(w, c);
    return sum;
}

/* sum: of the exponentials of all logits without the largest. */
static double weighted_loss(const mri_host_op *op, const mr_op_args *a, uint32_t i, double sum, float max)
{
    const wants w = wanted_of_sample(op, a, i);
    const uint32_t classes = classes_of(op);
    const float *x = (const float *)a->x + (size_t)i * classes;
    double logits = 0;
    for (uint32_t c = 0; c < classes; c++) logits += weighted(&w, c) * ((double)x[c] - (double)max);
    return weighted_sum(&w, classes) * log(sum) - (double)factor_of(op) * logits;
}

/* Of class 1; u: factor times its logit. */
static double sigmoid(double u)
{
    const double e = exp(-fabs(u));
    return u >= 0 ? 1 / (1 + e) : e / (1 + e);
}

/* ln(1 + e^u) */
static double softplus(double u) { return (u > 0 ? u : 0) + log1p(exp(-fabs(u))); }

/* The target of class 1. */
static double wanted_of(const mr_op_args *a, uint32_t i, double smoothing)
{
    const second s = second_of(a, i);
    const double one = s.share > 0 ? a->labels[i] + (double)s.share * (s.label - a->labels[i]) : a->labels[i];
    return one * (1 - smoothing) + smoothing / 2;
}

static double binary_loss(const mri_host_op *op, const mr_op_args *a, uint32_t i, double u)
{
    const float *weights = class_weights_of(op, a);
    const double one = wanted_of(a, i, smoothing_of(op, a));
    if (!weights) return softplus(u) - one * u;
    return (double)weights[0] * (1 - one) * softplus(u) + (double)weights[1] * one * softplus(-u);
}

static double binary_slope(const mri_host_op *op, const mr_op_args *a, uint32_t i, double u)
{
    const float *weights = class_weights_of(op, a);
    const double one = wanted_of(a, i, smoothing_of(op, a));
    if (!weights) return sigmoid(u) - one;
    return (double)weights[0] * (1 - one) * sigmoid(u) - (double)weights[1] * one * sigmoid(-u);
}

static int forward_binary(const mri_host_op *op, const mr_op_args *a)
{
    const double factor = (double)factor_of(op);
    const float *x = a->x;
    mr_metrics *m = a->metrics;
    for (uint32_t i = 0; i < a->n; i++) {
        const double u = factor * (double)x[i];
        if (a->y) ((float *)a->y)[i] = (float)sigmoid(u);
        if (!counts(a, i, 2)) continue;
        m->loss_sum += weight_of(op) * binary_loss(op, a, i, u);
        if (op->base.desc.loss.silent) continue;
        m->correct += (x[i] > 0) == (counts_as(a, i) == 1);
        m->count++;
    }
    return MR_OK;
}

static int backward_binary(const mri_host_op *op, const mr_op_args *a, double scale)
{
    const double factor = (double)factor_of(op);
    const float *x = a->x;
    float *dx = a->dx;
    for (uint32_t i = 0; i < a->n; i++)
        dx[i] = a->labels[i] < 0 ? 0 : (float)(scale * binary_slope(op, a, i, factor * (double)x[i]));
    return MR_OK;
}

static int forward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    const uint32_t classes = classes_of(op);
    const int rc = a->training ? check_labels(a, classes, err) : MR_OK;
    if (rc) return rc;
    for (uint32_t i = 0; i < a->n; i++) a->metrics->bad += is_bad(a, i, classes);
    if (op->base.desc.in.c == 1) return forward_binary(op, a);
    const float factor = factor_of(op);
    const double smoothing = smoothing_of(op, a);
    double *losses = a->scratch;
#pragma omp parallel for schedule(static) if ((size_t)a->n * classes > MRI_PARALLEL_ELEMENTS / 4)
    for (uint32_t i = 0; i < a->n; i++) {
        const float *x = (const float *)a->x + (size_t)i * classes;
        float *p = a->y ? (float *)a->y + (size_t)i * classes : NULL, max;
        const double sum = exponentials(p, x, classes, factor, &max);
        for (uint32_t c = 0; p && c < classes; c++) p[c] = (float)((double)p[c] / sum);
        losses[i] = 0;
        if (!counts(a, i, classes)) continue;
        if (class_weights_of(op, a)) {
            losses[i] = weight_of(op) * weighted_loss(op, a, i, sum, max);
            continue;
        }
        double wanted = (double)x[a->labels[i]] - (double)max;
        const second s = second_of(a, i);
        if (s.share > 0) wanted += (double)s.share * ((double)x[s.label] - (double)max - wanted);
        if (smoothing > 0) wanted = smoothed(x, classes, wanted, max, smoothing);
        losses[i] = weight_of(op) * (log(sum) - (double)factor * wanted);
    }
    mr_metrics *m = a->metrics;
    for (uint32_t i = 0; i < a->n; i++) {
        if (!counts(a, i, classes)) continue;
        m->loss_sum += losses[i];
        if (op->base.desc.loss.silent) continue;
        m->correct +=
            first_of_largest((const float *)a->x + (size_t)i * classes, classes, (uint32_t)counts_as(a, i));
        m->count++;
    }
    return MR_OK;
}

/* dx holds the exponentials, whose sum is given. */
static void weighted_gradient(const mri_host_op *op, const mr_op_args *a, uint32_t i, double sum,
                              double scale, float *dx)
{
    const wants w = wanted_of_sample(op, a, i);
    const uint32_t classes = classes_of(op);
    const double all = weighted_sum(&w, classes);
    for (uint32_t c = 0; c < classes; c++)
        dx[c] = (float)(scale * (all * ((double)dx[c] / sum) - weighted(&w, c)));
}

static int backward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    const uint32_t classes = classes_of(op);
    const int rc = check_labels(a, classes, err);
    if (rc) return rc;
    const float factor = factor_of(op);
    const double smoothing = smoothing_of(op, a), everywhere = smoothing / classes,
                 at_label = 1 - smoothing + everywhere;
    const double scale = (double)a->values->scale * (a->loss_scale ? (double)a->loss_scale->scale : 1) *
                         (double)factor * weight_of(op);
    if (op->base.desc.in.c == 1) return backward_binary(op, a, scale);
#pragma omp parallel for schedule(static) if ((size_t)a->n * classes > MRI_PARALLEL_ELEMENTS / 4)
    for (uint32_t i = 0; i < a->n; i++) {
        float *dx = (float *)a->dx + (size_t)i * classes, max;
        if (a->labels[i] < 0) {
            memset(dx, 0, classes * sizeof *dx);
            continue;
        }
        const double sum = exponentials(dx, (const float *)a->x + (size_t)i * classes, classes, factor, &max);
        if (class_weights_of(op, a)) {
            weighted_gradient(op, a, i, sum, scale, dx);
            continue;
        }
        const second s = second_of(a, i);
        const double other = (double)s.share * (1 - smoothing);
        for (uint32_t c = 0; c < classes; c++) {
            double wanted = (int32_t)c == a->labels[i] ? at_label - other : everywhere;
            if ((int32_t)c == s.label) wanted += other;
            dx[c] = (float)(scale * ((double)dx[c] / sum - wanted));
        }
    }
    return MR_OK;
}

/* There is no dy, so no second one. */
static const struct mri_op_code reference = {
    .prepare = prepare, .forward = forward, .backward = backward, .adds_dy2 = true};
const struct mri_op_class mri_loss_class = {
    .name = "loss", .describe = describe, .lacks = lacks, .reference = &reference};
