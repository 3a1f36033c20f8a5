/* kernels/cuda/kernels/loss.cu: losses, a block a sample. Softmax and cross-entropy first. Exponentials in
 * float, their sums and the metrics in double, as ops/loss.c has them; backward takes 1 from the label's
 * probability in double too, because near the end of training the difference is all there is. Threads of a
 * block: a power of two. */
#include "kernels/cuda/kernels/softmax.h"

/* Shared memory of a block, for one use after another. */
union loss_share {
    softmax_share softmax;
    double sums[MRK_THREADS];
    uint32_t marks[MRK_THREADS];
};

/* Of all logits without the largest. */
template <class T> MRK_INLINE double mean_below(const T *x, uint32_t classes, float top, loss_share *share)
{
    double sum = 0;
    for (uint32_t c = threadIdx.x; c < classes; c += blockDim.x) sum += (double)mrk_float(x[c]) - (double)top;
    return joined(sum, share->sums, join_sum()) / classes;
}

/* Is there a class before the label as large, or any larger? */
template <class T> MRK_INLINE bool beaten(const T *x, uint32_t classes, uint32_t label, loss_share *share)
{
    const float mine = mrk_float(x[label]);
    uint32_t lost = 0;
    for (uint32_t c = threadIdx.x; c < classes; c += blockDim.x) {
        const float v = mrk_float(x[c]);
        lost |= v > mine || (c < label && v == mine);
    }
    return joined(lost, share->marks, join_either()) != 0;
}

/* One logit for two classes: one thread computes, in double. */
MRK_INLINE double sigmoid_of(double u)
{
    const double e = exp(-fabs(u));
    return u >= 0 ? 1 / (1 + e) : e / (1 + e);
}

/* The target of a sample: its label, and a second label with a share of the weight. */
struct wanted_labels {
    int32_t label, second; /* of one that is not mixed 0 */
    double share;
    bool counts, good; /* good: both are classes */
    int32_t as;        /* the one it counts as */
};

template <class Args> MRK_INLINE wanted_labels wanted_of(const Args &a, uint32_t classes)
{
    const uint32_t i = blockIdx.x;
    wanted_labels w = {a.labels[i], 0, 0, a.labels[i] >= 0, true, a.labels[i]};
    bool good = w.label < (int32_t)classes;
    if (a.labels2 && a.share2[i] != 0) {
        w.second = a.labels2[i];
        w.share = (double)a.share2[i];
        good = good && w.second >= 0 && w.second < (int32_t)classes && w.share > 0 && w.share <= 1;
        if (w.share > 0.5) w.as = w.second;
    }
    w.good = w.counts && good;
    return w;
}

/* The same of class 1, of two classes. */
MRK_INLINE double wanted_one(const wanted_labels &w, float smoothing)
{
    const double one = w.share > 0 ? w.label + w.share * (w.second - w.label) : w.label;
    return one * (1 - (double)smoothing) + (double)smoothing / 2;
}

MRK_INLINE uint32_t mark_of(const wanted_labels &w, uint32_t silent, bool correct)
{
    if (!w.good) return w.counts ? MRK_MARK_BAD : MRK_MARK_SKIPPED;
    if (silent) return MRK_MARK_SKIPPED;
    return MRK_MARK_COUNTS + (correct ? MRK_MARK_RIGHT : 0);
}

/* With class weights: the target of class c, times its weight. */
MRK_INLINE double weighted(const wanted_labels &w, const float *weights, uint32_t c, uint32_t classes,
                           float smoothing)
{
    const double kept = 1 - (double)smoothing;
    double share = (double)smoothing / classes;
    if (c == (uint32_t)w.label) share += kept * (1 - w.share);
    if (c == (uint32_t)w.second) share += kept * w.share;
    return (double)weights[c] * share;
}

/* Of all classes. */
template <class Args> MRK_INLINE double weighted_sum(const wanted_labels &w, const Args &a, loss_share *share)
{
    double sum = 0;
    for (uint32_t c = threadIdx.x; c < a.classes; c += blockDim.x)
        sum += weighted(w, a.class_weights, c, a.classes, a.smoothing);
    return joined(sum, share->sums, join_sum());
}

/* Of all classes, times their logits without the largest. */
template <class T>
MRK_INLINE double weighted_logits(const wanted_labels &w, const mrk_loss_args &a, const T *x, float top,
                                  loss_share *share)
{
    double sum = 0;
    for (uint32_t c = threadIdx.x; c < a.classes; c += blockDim.x)
        sum +=
            weighted(w, a.class_weights, c, a.classes, a.smoothing) * ((double)mrk_float(x[c]) - (double)top);
    return joined(sum, share->sums, join_sum());
}

/* ln(1 + e^u) */
MRK_INLINE double softplus_of(double u) { return (u > 0 ? u : 0) + log1p(exp(-fabs(u))); }

template <class T> MRK_INLINE void binary_loss(const mrk_loss_args &a)
{
    const uint32_t i = blockIdx.x;
    const wanted_labels wanted = wanted_of(a, 2);
    const float x = mrk_float(((const T *)a.x)[i]);
    const double u = (double)a.factor * (double)x;
    if (threadIdx.x > 0) return;
    if (a.y) mrk_round((float)sigmoid_of(u), (T *)a.y + i);
    const double one = wanted_one(wanted, a.smoothing);
    double loss = softplus_of(u) - one * u;
    if (a.class_weights)
        loss = (double)a.class_weights[0] * (1 - one) * softplus_of(u) +
               (double)a.class_weights[1] * one * softplus_of(-u);
    a.losses[i] = wanted.good ? (double)a.weight * loss : 0;
    a.marks[i] = mark_of(wanted, a.silent, (x > 0) == (wanted.as == 1));
}

template <class T> MRK_INLINE void loss(const mrk_loss_args &a, loss_share *share)
{
    if (a.classes == 1) {
        binary_loss<T>(a);
        return;
    }
    const uint32_t i = blockIdx.x;
    const wanted_labels wanted = wanted_of(a, a.classes);
    const T *x = (const T *)a.x + (uint64_t)i * a.classes;
    const softmax s = softmax_of(x, a.classes, a.factor, &share->softmax);
    const double mean = a.smoothing > 0 ? mean_below(x, a.classes, s.top, share) : 0;
    const bool lost = beaten(x, a.classes, wanted.good ? (uint32_t)wanted.as : 0, share);
    const bool weighs = a.class_weights && wanted.good; /* the same for the whole block */
    const double all = weighs ? weighted_sum(wanted, a, share) : 0,
                 logits = weighs ? weighted_logits(wanted, a, x, s.top, share) : 0;
    if (a.y)
        for (uint32_t c = threadIdx.x; c < a.classes; c += blockDim.x)
            mrk_round((float)((double)expf(a.factor * (mrk_float(x[c]) - s.top)) / s.sum),
                      (T *)a.y + (uint64_t)i * a.classes + c);
    if (threadIdx.x > 0) return;
    double logit = wanted.good ? (double)mrk_float(x[wanted.label]) - (double)s.top : 0;
    if (wanted.good && wanted.share > 0)
        logit += wanted.share * ((double)mrk_float(x[wanted.second]) - (double)s.top - logit);
    if (a.smoothing > 0) logit += (double)a.smoothing * (mean - logit);
    double loss = log(s.sum) - (double)a.factor * logit;
    if (weighs) loss = all * log(s.sum) - (double)a.factor * logits;
    a.losses[i] = wanted.good ? (double)a.weight * loss : 0;
    a.marks[i] = mark_of(wanted, a.silent, !lost);
}

/* Loss and mark of each sample of x [n][classes], and y = softmax(x), y not x. Grid: n blocks. Same bits in
 * every run. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS, 4) mrk_loss(const struct mrk_loss_args a)
{
    __shared__ loss_share share;
    if (a.dtype == MR_TENSOR_BF16) loss<mrk_bf16>(a, &share);
    else if (a.dtype == MR_TENSOR_F16) loss<mrk_f16>(a, &share);
    else loss<float>(a, &share);
}

/* metrics += the samples'. One block, in a fixed order. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS) mrk_loss_sum(const struct mrk_loss_sum_args a)
{
    __shared__ double sums[MRK_THREADS];
    __shared__ uint32_t marks[MRK_THREADS];
    double sum = 0, correct = 0; /* correct: whole, and exact */
    uint32_t count = 0, bad = 0;
    for (uint32_t i = threadIdx.x; i < a.n; i += blockDim.x) {
        const uint32_t mark = a.marks[i];
        sum += a.losses[i];
        correct += mark / MRK_MARK_RIGHT;
        count += mark % MRK_MARK_RIGHT == MRK_MARK_COUNTS;
        bad += mark == MRK_MARK_BAD;
    }
    sum = joined(sum, sums, join_sum());
    correct = joined(correct, sums, join_sum());
    count = (uint32_t)joined(count, marks, join_sum());
    bad = (uint32_t)joined(bad, marks, join_sum());
    if (threadIdx.x > 0) return;
    a.metrics->loss_sum += sum;
    a.metrics->correct += (uint64_t)correct;
    a.metrics->count += count;
    a.metrics->bad += bad;
}

template <class T> MRK_INLINE void binary_loss_backward(const mrk_loss_backward_args &a)
{
    const uint32_t i = blockIdx.x;
    const wanted_labels wanted = wanted_of(a, 2);
    const double scale = (double)a.values->scale * (a.loss_scale ? (double)a.loss_scale->scale : 1) *
                         (double)a.factor * (double)a.weight;
    const double u = (double)a.factor * (double)mrk_float(((const T *)a.x)[i]),
                 one = wanted_one(wanted, a.smoothing);
    double off = sigmoid_of(u) - one;
    if (a.class_weights)
        off = (double)a.class_weights[0] * (1 - one) * sigmoid_of(u) -
              (double)a.class_weights[1] * one * sigmoid_of(-u);
    if (threadIdx.x == 0) mrk_round(wanted.good ? (float)(scale * off) : 0, (T *)a.dx + i);
}

template <class T> MRK_INLINE void loss_backward(const mrk_loss_backward_args &a, loss_share *share)
{
    if (a.classes == 1) {
        binary_loss_backward<T>(a);
        return;
    }
    const uint32_t i = blockIdx.x;
    const wanted_labels wanted = wanted_of(a, a.classes); /* the same for the whole block */
    const T *x = (const T *)a.x + (uint64_t)i * a.classes;
    T *dx = (T *)a.dx + (uint64_t)i * a.classes;
    if (!wanted.good) {
        for (uint32_t c = threadIdx.x; c < a.classes; c += blockDim.x) mrk_round(0, dx + c);
        return;
    }
    const softmax s = softmax_of(x, a.classes, a.factor, &share->softmax);
    const double everywhere = (double)a.smoothing / a.classes,
                 other = wanted.share * (1 - (double)a.smoothing),
                 at_label = 1 - (double)a.smoothing + everywhere - other;
    const double scale = (double)a.values->scale * (a.loss_scale ? (double)a.loss_scale->scale : 1) *
                         (double)a.factor * (double)a.weight;
    const double all = a.class_weights ? weighted_sum(wanted, a, share) : 1;
    for (uint32_t c = threadIdx.x; c < a.classes; c += blockDim.x) {
        double share = c == (uint32_t)wanted.label ? at_label : everywhere;
        if (c == (uint32_t)wanted.second) share += other;
        if (a.class_weights) share = weighted(wanted, a.class_weights, c, a.classes, a.smoothing);
        const double p = all * ((double)expf(a.factor * (mrk_float(x[c]) - s.top)) / s.sum) - share;
        mrk_round((float)(scale * p), dx + c);
    }
}

/* dx = scale * loss scale * factor * (softmax(factor x) - wanted), both times weights of classes, zero for
 * labels that do not count; dx not x. Grid: n blocks. Same bits in every run. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS)
    mrk_loss_backward(const struct mrk_loss_backward_args a)
{
    __shared__ loss_share share;
    if (a.dtype == MR_TENSOR_BF16) loss_backward<mrk_bf16>(a, &share);
    else if (a.dtype == MR_TENSOR_F16) loss_backward<mrk_f16>(a, &share);
    else loss_backward<float>(a, &share);
}

/* ---- two tensors, element by element (ops/pair_loss.c) ---- */

MRK_INLINE float pair_value(uint32_t kind, float x, float x2)
{
    if (kind == MR_PAIR_CROSS_ENTROPY) return (x > 0 ? x : 0) - x * x2 + log1pf(expf(-fabsf(x)));
    const float off = fabsf(x - x2);
    if (kind == MR_PAIR_SQUARES) return (x - x2) * (x - x2);
    if (kind == MR_PAIR_ABSOLUTE) return off;
    if (kind == MR_PAIR_HUBER) return off < 1 ? 0.5f * off * off : off - 0.5f;
    return -0.5f * (1 + x2 - x * x - expf(x2));
}

MRK_INLINE float pair_slope(uint32_t kind, float x, float x2)
{
    if (kind == MR_PAIR_CROSS_ENTROPY) return 1.0f / (1.0f + expf(-x)) - x2;
    if (kind == MR_PAIR_SQUARES) return 2 * (x - x2);
    if (kind == MR_PAIR_ABSOLUTE) return (float)((x > x2) - (x < x2));
    if (kind == MR_PAIR_HUBER) return x - x2 > 1 ? 1 : x - x2 < -1 ? -1 : x - x2;
    return x;
}

MRK_INLINE float pair_slope2(uint32_t kind, float x, float x2)
{
    if (kind == MR_PAIR_CROSS_ENTROPY) return -x;
    if (kind == MR_PAIR_SQUARES) return -2 * (x - x2);
    if (kind == MR_PAIR_ABSOLUTE || kind == MR_PAIR_HUBER) return -pair_slope(kind, x, x2);
    return 0.5f * (expf(x2) - 1);
}

/* What threads of a block share, one use after another. */
union pair_share {
    double sums[MRK_THREADS];
    uint32_t marks[MRK_THREADS];
};

/* Is a target of the sample invalid? A value that is not finite minus itself is not 0. */
template <class T, class Args> MRK_INLINE bool has_bad_target(const Args &a, const T *x2, pair_share *share)
{
    uint32_t bad = 0;
    if (!a.targets) return false;
    for (uint64_t e = threadIdx.x; e < a.elements; e += blockDim.x) {
        const float v = mrk_float(x2[e]);
        bad |= a.kind == MR_PAIR_CROSS_ENTROPY ? !(v >= 0 && v <= 1) : !(v - v == 0);
    }
    return joined(bad, share->marks, join_either()) != 0;
}

/* Correctly predicted elements, for losses that define this. */
template <class T>
MRK_INLINE uint32_t right_of(const mrk_pair_loss_args &a, const T *x, const T *x2, pair_share *share)
{
    uint32_t right = 0;
    if (!a.targets || a.kind != MR_PAIR_CROSS_ENTROPY) return 0;
    for (uint64_t e = threadIdx.x; e < a.elements; e += blockDim.x)
        right += (mrk_float(x[e]) > 0) == (mrk_float(x2[e]) > 0.5f);
    return (uint32_t)joined(right, share->marks, join_sum());
}

/* The classes of a pixel: ln softmax(x)_c = x_c - top - log_sum. */
struct pixel_softmax {
    float top, log_sum, wanted;
};

template <class T> MRK_INLINE pixel_softmax pixel_of(const T *x, const T *x2, uint32_t classes)
{
    pixel_softmax s = {mrk_float(x[0]), 0, 0};
    double sum = 0, wanted = 0;
    for (uint32_t c = 1; c < classes; c++) s.top = fmaxf(s.top, mrk_float(x[c]));
    for (uint32_t c = 0; c < classes; c++) {
        sum += (double)expf(mrk_float(x[c]) - s.top);
        wanted += (double)mrk_float(x2[c]);
    }
    s.log_sum = (float)log(sum);
    s.wanted = (float)wanted;
    return s;
}

template <class T> MRK_INLINE double pixel_loss(const T *x, const T *x2, uint32_t classes)
{
    const pixel_softmax s = pixel_of(x, x2, classes);
    double loss = 0;
    for (uint32_t c = 0; c < classes; c++)
        loss += (double)(mrk_float(x2[c]) * (s.top + s.log_sum - mrk_float(x[c])));
    return loss;
}

template <class T> MRK_INLINE void pair_loss(const mrk_pair_loss_args &a, pair_share *share)
{
    const uint32_t i = blockIdx.x;
    const T *x = (const T *)a.x + i * a.elements, *x2 = (const T *)a.x2 + i * a.elements;
    /* the same for the whole block */
    const bool asked = !a.labels || a.labels[i] >= 0, bad = asked && has_bad_target(a, x2, share),
               counts = asked && !bad;
    const bool pixels = a.kind == MR_PAIR_CLASSES;
    double sum = 0;
    for (uint64_t e = threadIdx.x; counts && pixels && e < a.elements / a.classes; e += blockDim.x)
        sum += pixel_loss(x + e * a.classes, x2 + e * a.classes, a.classes);
    for (uint64_t e = threadIdx.x; counts && !pixels && e < a.elements; e += blockDim.x)
        sum += (double)pair_value(a.kind, mrk_float(x[e]), mrk_float(x2[e]));
    sum = joined(sum, share->sums, join_sum());
    const uint32_t right = counts && !a.silent ? right_of(a, x, x2, share) : 0;
    if (threadIdx.x > 0) return;
    a.losses[i] = counts ? (double)a.weight * sum : 0;
    uint32_t mark = bad ? MRK_MARK_BAD : MRK_MARK_SKIPPED;
    if (counts && !a.silent) mark = MRK_MARK_COUNTS + MRK_MARK_RIGHT * right;
    a.marks[i] = mark;
}

/* Loss and mark of each sample. Grid: n blocks of a power of two of threads. Same bits in every run. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS) mrk_pair_loss(const struct mrk_pair_loss_args a)
{
    __shared__ pair_share share;
    if (a.dtype == MR_TENSOR_BF16) pair_loss<mrk_bf16>(a, &share);
    else if (a.dtype == MR_TENSOR_F16) pair_loss<mrk_f16>(a, &share);
    else pair_loss<float>(a, &share);
}

template <class T> MRK_INLINE void pair_loss_backward(const mrk_pair_loss_backward_args &a, pair_share *share)
{
    const uint32_t i = blockIdx.x;
    const uint64_t start = i * a.elements;
    const bool counts = (!a.labels || a.labels[i] >= 0) && !has_bad_target(a, (const T *)a.x2 + start, share);
    const float scale = (float)((double)a.weight * (double)a.values->scale *
                                (a.loss_scale ? (double)a.loss_scale->scale : 1));
    const bool pixels = counts && a.kind == MR_PAIR_CLASSES;
    for (uint64_t p = threadIdx.x; pixels && p < a.elements / a.classes; p += blockDim.x) {
        const uint64_t at = start + p * a.classes;
        const T *x = (const T *)a.x + at, *x2 = (const T *)a.x2 + at;
        const pixel_softmax s = pixel_of(x, x2, a.classes);
        for (uint32_t c = 0; c < a.classes; c++) {
            const float log_p = mrk_float(x[c]) - s.top - s.log_sum;
            if (a.dx) mrk_round(scale * (s.wanted * expf(log_p) - mrk_float(x2[c])), (T *)a.dx + at + c);
            if (a.dx2) mrk_round(scale * -log_p, (T *)a.dx2 + at + c);
        }
    }
    for (uint64_t e = pixels ? start + a.elements : start + threadIdx.x; e < start + a.elements;
         e += blockDim.x) {
        const float x = mrk_float(((const T *)a.x)[e]), x2 = mrk_float(((const T *)a.x2)[e]);
        if (a.dx) mrk_round(counts ? scale * pair_slope(a.kind, x, x2) : 0, (T *)a.dx + e);
        if (a.dx2) mrk_round(counts ? scale * pair_slope2(a.kind, x, x2) : 0, (T *)a.dx2 + e);
    }
}

/* dx and dx2, zero for samples that do not count; neither is x or x2. Grid: n blocks. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS)
    mrk_pair_loss_backward(const struct mrk_pair_loss_backward_args a)
{
    __shared__ pair_share share;
    if (a.dtype == MR_TENSOR_BF16) pair_loss_backward<mrk_bf16>(a, &share);
    else if (a.dtype == MR_TENSOR_F16) pair_loss_backward<mrk_f16>(a, &share);
    else pair_loss_backward<float>(a, &share);
}
