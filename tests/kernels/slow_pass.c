/* See slow_pass.h: a function for each kind, of one place of the output, and value_at() that knows them all.
 */
#include "tests/kernels/slow_pass.h"

static double act(mr_activation kind, double x)
{
    switch (kind) {
    case MR_ACT_NONE: return x;
    case MR_ACT_RELU: return x > 0 ? x : 0;
    case MR_ACT_TANH: return tanh(x);
    case MR_ACT_SIGMOID: return 1 / (1 + exp(-x));
    case MR_ACT_SELU: return 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * expm1(x));
    case MR_ACT_LEAKY_RELU: return x > 0 ? x : 0.1 * x;
    case MR_ACT_RELU6: return fmin(fmax(x, 0), 6);
    case MR_ACT_SILU: return x / (1 + exp(-x));
    case MR_ACT_GELU: return x * (1 + erf(x / sqrt(2))) / 2;
    }
    return 0;
}

static double pixel(const struct model *m, uint32_t i, int64_t y, int64_t x, uint32_t c, bool *inside)
{
    const mr_tensor *t = &m->d.in;
    *inside = y >= 0 && x >= 0 && y < t->h && x < t->w;
    return *inside ? m->x[(((size_t)i * t->h + (size_t)y) * t->w + (size_t)x) * t->c + c] : 0;
}

static double conv_at(const struct model *m, uint32_t i, uint32_t oy, uint32_t ox, uint32_t f)
{
    const mr_op_desc *d = &m->d;
    const mr_op_window *w = &d->conv2d.window;
    const uint32_t groups = d->conv2d.groups ? d->conv2d.groups : 1, seen = d->in.c / groups,
                   first = f * groups / d->conv2d.filters * seen;
    double sum = m->p1 ? m->p1[f] : 0;
    bool inside;
    for (uint32_t ky = 0; ky < w->kernel_h; ky++)
        for (uint32_t kx = 0; kx < w->kernel_w; kx++)
            for (uint32_t c = 0; c < seen; c++)
                sum += pixel(m, i, (int64_t)oy * w->stride_h + ky - w->pad_top,
                             (int64_t)ox * w->stride_w + kx - w->pad_left, first + c, &inside) *
                       m->p0[((f * w->kernel_h + ky) * w->kernel_w + kx) * seen + c];
    return act(d->activation, sum);
}

/* Pixels of the input whose window covers this place of the output. */
static double turned_conv_at(const struct model *m, uint32_t i, uint32_t oy, uint32_t ox, uint32_t f)
{
    const mr_op_desc *d = &m->d;
    const mr_op_window *w = &d->conv2d.window;
    double sum = m->p1 ? m->p1[f] : 0;
    for (uint32_t iy = 0; iy < d->in.h; iy++)
        for (uint32_t ix = 0; ix < d->in.w; ix++) {
            const int64_t ky = (int64_t)oy + w->pad_top - (int64_t)iy * w->stride_h,
                          kx = (int64_t)ox + w->pad_left - (int64_t)ix * w->stride_w;
            bool inside;
            if (ky < 0 || kx < 0 || ky >= w->kernel_h || kx >= w->kernel_w) continue;
            for (uint32_t c = 0; c < d->in.c; c++)
                sum += pixel(m, i, iy, ix, c, &inside) *
                       m->p0[((c * w->kernel_h + (size_t)ky) * w->kernel_w + (size_t)kx) * d->conv2d.filters +
                             f];
        }
    return act(d->activation, sum);
}

static double pool_at(const struct model *m, uint32_t i, uint32_t oy, uint32_t ox, uint32_t c)
{
    const mr_op_window *w = &m->d.pool2d.window;
    double best = -INFINITY, sum = 0;
    int places = 0;
    for (uint32_t ky = 0; ky < w->kernel_h; ky++)
        for (uint32_t kx = 0; kx < w->kernel_w; kx++) {
            bool inside;
            const double v = pixel(m, i, (int64_t)oy * w->stride_h + ky - w->pad_top,
                                   (int64_t)ox * w->stride_w + kx - w->pad_left, c, &inside);
            if (!inside) continue;
            best = v > best ? v : best;
            sum += v;
            places++;
        }
    return m->d.pool2d.average ? sum / places : best;
}

static double dense_at(const struct model *m, uint32_t i, uint32_t u)
{
    const size_t inputs = (size_t)pixels_of(&m->d.in) * m->d.in.c;
    double sum = m->p1 ? m->p1[u] : 0;
    for (size_t k = 0; k < inputs; k++) sum += m->x[i * inputs + k] * m->p0[u * inputs + k];
    return act(m->d.activation, sum);
}

static double norm_at(const struct model *m, uint32_t i, uint32_t p, uint32_t c)
{
    const mr_tensor *t = &m->d.in;
    const size_t at = ((size_t)i * pixels_of(t) + p) * t->c + c;
    const double x = m->x[at];
    double mean = m->mean[c], variance = m->variance[c];
    if (m->training) {
        const double count = (double)m->n * pixels_of(t);
        mean = variance = 0;
        for (size_t k = 0; k < (size_t)m->n * pixels_of(t); k++) mean += m->x[k * t->c + c] / count;
        for (size_t k = 0; k < (size_t)m->n * pixels_of(t); k++)
            variance += (m->x[k * t->c + c] - mean) * (m->x[k * t->c + c] - mean) / count;
    }
    const bool plain = m->d.batchnorm.no_scale;
    const double scale = plain ? 1 : m->p0[c], shift = plain ? m->p0[c] : m->p1[c];
    return act(m->d.activation, scale * (x - mean) / sqrt(variance + (double)m->d.batchnorm.epsilon) + shift +
                                    (m->x2 ? m->x2[at] : 0));
}

static double element_at(const struct model *m, size_t at)
{
    return act(m->d.activation, m->x[at] + (m->x2 ? m->x2[at] : 0));
}

static double concat_at(const struct model *m, size_t pixel_at, uint32_t c)
{
    const uint32_t first = m->d.in.c;
    return c < first ? m->x[pixel_at * first + c] : m->x2[pixel_at * m->d.in2.c + c - first];
}

static double scale_at(const struct model *m, uint32_t i, size_t at, uint32_t c)
{
    return m->x[at] * m->x2[i * m->d.in.c + c];
}

static double lrn_at(const struct model *m, size_t pixel_at, uint32_t c)
{
    const mr_lrn_desc *l = &m->d.lrn;
    const double *x = m->x + pixel_at * m->d.in.c;
    double sum = 0;
    for (uint32_t k = 0; k < m->d.in.c; k++)
        if (k + l->radius >= c && k <= c + l->radius) sum += x[k] * x[k];
    return x[c] * pow((double)l->bias + (double)l->alpha * sum, -(double)l->beta);
}

static double softmax_at(const struct model *m, size_t pixel_at, uint32_t c)
{
    const double *x = m->x + pixel_at * m->d.in.c;
    double top = x[0], sum = 0;
    for (uint32_t k = 0; k < m->d.in.c; k++) top = fmax(top, x[k]);
    for (uint32_t k = 0; k < m->d.in.c; k++) sum += exp(x[k] - top);
    return m->d.softmax.log ? x[c] - top - log(sum) : exp(x[c] - top) / sum;
}

static double pad_at(const struct model *m, size_t pixel_at, uint32_t c)
{
    const uint32_t before = m->d.pad.before, own = m->d.in.c;
    return c >= before && c - before < own ? m->x[pixel_at * own + c - before] : 0;
}

static double groupnorm_at(const struct model *m, uint32_t i, size_t pixel, uint32_t c)
{
    const mr_groupnorm_desc *g = &m->d.groupnorm;
    const uint32_t all = m->d.in.c, channels = all / (g->groups ? g->groups : 1),
                   first = c / channels * channels;
    const size_t pixels = pixels_of(&m->d.in), from = g->each_pixel ? pixel : 0,
                 to = g->each_pixel ? pixel + 1 : pixels;
    const double *x = m->x + i * pixels * all, count = (double)(to - from) * channels;
    double mean = 0, variance = 0;
    for (size_t p = from; p < to; p++)
        for (uint32_t k = first; k < first + channels; k++) mean += x[p * all + k] / count;
    for (size_t p = from; p < to; p++)
        for (uint32_t k = first; k < first + channels; k++)
            variance += (x[p * all + k] - mean) * (x[p * all + k] - mean) / count;
    return m->p0[c] * (x[pixel * all + c] - mean) / sqrt(variance + (double)g->epsilon) + m->p1[c];
}

static double clamped(double at, uint32_t count) { return fmin(fmax(at, 0), (double)count - 1); }

/* At the centre of a pixel of the output. */
static double upsample_at(const struct model *m, uint32_t i, uint32_t oy, uint32_t ox, uint32_t c)
{
    const mr_tensor *t = &m->d.in;
    const double f = m->d.upsample.factor, y = clamped((oy + 0.5) / f - 0.5, t->h),
                 x = clamped((ox + 0.5) / f - 0.5, t->w);
    const double *sample = m->x + (size_t)i * pixels_of(t) * t->c;
    if (!m->d.upsample.bilinear)
        return sample[((size_t)(oy / m->d.upsample.factor) * t->w + ox / m->d.upsample.factor) * t->c + c];
    double sum = 0;
    for (uint32_t v = 0; v < t->h; v++)
        for (uint32_t u = 0; u < t->w; u++)
            sum += fmax(0, 1 - fabs(y - v)) * fmax(0, 1 - fabs(x - u)) *
                   sample[((size_t)v * t->w + u) * t->c + c];
    return sum;
}

static double value_at(const struct model *m, uint32_t i, uint32_t oy, uint32_t ox, uint32_t c)
{
    switch (m->d.kind) {
    case MR_OP_CONV2D: return conv_at(m, i, oy, ox, c);
    case MR_OP_CONV2D_TRANSPOSED: return turned_conv_at(m, i, oy, ox, c);
    case MR_OP_POOL2D: return pool_at(m, i, oy, ox, c);
    case MR_OP_DENSE: return dense_at(m, i, c);
    case MR_OP_BATCHNORM: return norm_at(m, i, oy * m->d.in.w + ox, c);
    case MR_OP_CONCAT: return concat_at(m, ((size_t)i * m->out.h + oy) * m->out.w + ox, c);
    case MR_OP_PAD: return pad_at(m, ((size_t)i * m->out.h + oy) * m->out.w + ox, c);
    case MR_OP_LRN: return lrn_at(m, ((size_t)i * m->out.h + oy) * m->out.w + ox, c);
    case MR_OP_SOFTMAX: return softmax_at(m, ((size_t)i * m->out.h + oy) * m->out.w + ox, c);
    case MR_OP_SCALE: return scale_at(m, i, (((size_t)i * m->out.h + oy) * m->out.w + ox) * m->out.c + c, c);
    case MR_OP_GROUPNORM: return groupnorm_at(m, i, (size_t)oy * m->out.w + ox, c);
    case MR_OP_UPSAMPLE: return upsample_at(m, i, oy, ox, c);
    case MR_OP_RESHAPE:
    case MR_OP_ADD:
    case MR_OP_ACTIVATION: return element_at(m, (((size_t)i * m->out.h + oy) * m->out.w + ox) * m->out.c + c);
    default: return 0;
    }
}

void run_model(const struct model *m, double *y)
{
    for (uint32_t i = 0; i < m->n; i++)
        for (uint32_t oy = 0; oy < m->out.h; oy++)
            for (uint32_t ox = 0; ox < m->out.w; ox++)
                for (uint32_t c = 0; c < m->out.c; c++) *y++ = value_at(m, i, oy, ox, c);
}

double score(const struct model *m, const float *dy, double *y)
{
    const size_t count = (size_t)m->n * pixels_of(&m->out) * m->out.c;
    double sum = 0;
    run_model(m, y);
    for (size_t k = 0; k < count; k++) sum += y[k] * (double)dy[k];
    return sum;
}
