/* kernels: every operation with parameters or windows, plain C and fast, against a slow forward pass in
 * double and numeric gradients of that pass, on odd shapes and in every layout; guard bytes behind each
 * buffer. */
#include "tests/kernels/rig.h"

static uint32_t pixels_of(const mr_tensor *t) { return t->h * t->w; }

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

/* ---- the slow forward pass ---- */

struct model {
    mr_op_desc d;
    mr_tensor out; /* canonical */
    uint32_t n;
    bool training;
    double *x, *x2, *p0, *p1; /* canonical; NULL: not there */
    double mean[64], variance[64];
};

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

static void run_model(const struct model *m, double *y)
{
    for (uint32_t i = 0; i < m->n; i++)
        for (uint32_t oy = 0; oy < m->out.h; oy++)
            for (uint32_t ox = 0; ox < m->out.w; ox++)
                for (uint32_t c = 0; c < m->out.c; c++) *y++ = value_at(m, i, oy, ox, c);
}

/* sum of dy * y */
static double score(const struct model *m, const float *dy, double *y)
{
    const size_t count = (size_t)m->n * pixels_of(&m->out) * m->out.c;
    double sum = 0;
    run_model(m, y);
    for (size_t k = 0; k < count; k++) sum += y[k] * (double)dy[k];
    return sum;
}

/* ---- one case ---- */

static void close_to(const char *what, const mr_op_desc *d, size_t at, double found, double expected)
{
    if (fabs(found - expected) <= 3e-4 * (1 + fabs(expected))) return;
    fail_msg("%s of kind %d, input %ux%ux%u, element %zu: found %g, expected %g", what, (int)d->kind, d->in.h,
             d->in.w, d->in.c, at, found, expected);
}

/* Numeric gradients at up to 12 elements of values against found. */
static void check_gradient(const char *what, const struct model *m, double *values, size_t count,
                           const float *found, const float *dy, double *y)
{
    const size_t stride = count / 12 + 1;
    for (size_t k = 0; k < count; k += stride) {
        const double before = values[k], eps = 1e-5;
        values[k] = before + eps;
        const double up = score(m, dy, y);
        values[k] = before - eps;
        const double down = score(m, dy, y);
        values[k] = before;
        close_to(what, &m->d, k, (double)found[k], (up - down) / (2 * eps));
    }
}

static double *doubles(const float *f, size_t count)
{
    double *d = malloc((count + 1) * sizeof *d);
    MRT_TRUE(d != NULL);
    for (size_t i = 0; i < count; i++) d[i] = (double)f[i];
    return d;
}

static float *floats(size_t count, uint64_t seed)
{
    float *f = malloc((count + 1) * sizeof *f);
    MRT_TRUE(f != NULL);
    rig_noise(f, count, seed);
    return f;
}

struct host_copy {
    float *x, *x2, *y, *dy, *dy2, *dx, *param[2], *dparam[2];
};

/* The second input, of this shape, and a second gradient on batches of 3: then h->dy becomes the sum of
 * both. */
static void add_second(struct rig *r, const mr_op *op, const mr_tensor *second, struct host_copy *h,
                       mr_op_args *a, size_t y_count)
{
    const mr_tensor *out = &mr_op_info_of(op)->out;
    float *dy2 = rig_memory(r, out->sample_bytes * a->n), *x2 = rig_memory(r, second->sample_bytes * a->n);
    rig_store(second, a->n, x2, h->x2);
    if (mri_op_takes_two(op)) a->x2 = x2;
    if (mr_op_info_of(op)->writes_dx2) {
        a->dx2 = rig_memory(r, second->sample_bytes * a->n);
        memset(a->dx2, 0x7F, second->sample_bytes * a->n);
    }
    if (a->n != 3) return;
    rig_store(out, a->n, dy2, h->dy2);
    a->dy2 = dy2;
    for (size_t k = 0; k < y_count; k++) h->dy[k] += h->dy2[k];
}

static void import_params(struct rig *r, mr_op *op, mr_op_args *a, struct host_copy *h)
{
    const mr_op_info *info = mr_op_info_of(op);
    mr_error err = MR_ERROR_INIT;
    for (uint32_t i = 0; i < info->param_count; i++) {
        float *w = rig_memory(r, info->param[i].storage_count * sizeof(float)),
              *back = floats(info->param[i].count, 1);
        h->param[i] = floats(info->param[i].count, 10 + i);
        h->dparam[i] = floats(info->param[i].count, 20);
        MRT_OK(mr_op_param_import(op, false, i, w, h->param[i], &err), &err);
        MRT_OK(mr_op_param_export(op, false, i, w, back, &err), &err);
        MRT_TRUE(memcmp(back, h->param[i], info->param[i].count * sizeof(float)) == 0);
        free(back);
        a->param[i] = w;
        a->dparam[i] = rig_memory(r, info->param[i].storage_count * sizeof(float));
        memset(a->dparam[i], 0x7F, info->param[i].storage_count * sizeof(float)); /* written, not added to */
    }
    for (uint32_t i = 0; i < info->state_count; i++) {
        a->state[i] = rig_memory(r, info->state[i].storage_count * sizeof(float));
        for (uint64_t c = 0; c < info->state[i].count; c++) a->state[i][c] = 0.5f + (float)i;
    }
}

static void check_states(const struct model *m, const mr_op_args *a)
{
    struct model plain = *m;
    const size_t count = (size_t)m->n * pixels_of(&m->d.in);
    for (uint32_t c = 0; c < m->d.in.c; c++) {
        double mean = 0, variance = 0;
        for (size_t k = 0; k < count; k++) mean += plain.x[k * m->d.in.c + c] / (double)count;
        for (size_t k = 0; k < count; k++)
            variance += pow(plain.x[k * m->d.in.c + c] - mean, 2) / (double)count;
        close_to("running mean", &m->d, c, (double)a->state[0][c], 0.9 * 0.5 + 0.1 * mean);
        close_to("running variance", &m->d, c, (double)a->state[1][c], 0.9 * 1.5 + 0.1 * variance);
    }
}

/* The whole life of one operation on n samples. */
static void check_case(struct rig *r, mr_op_desc d, uint32_t n)
{
    mr_error err = MR_ERROR_INIT;
    mr_op *op;
    d.training = true;
    MRT_OK(mr_op_create(&op, r->dev, &d, &err), &err);
    const mr_op_info *info = mr_op_info_of(op);
    const mr_tensor *in = &d.in, *out = &info->out, *second = info->writes_dx2 ? &d.in2 : out;
    const size_t x_count = (size_t)n * pixels_of(in) * in->c, y_count = (size_t)n * pixels_of(out) * out->c,
                 x2_count = (size_t)n * pixels_of(second) * second->c;

    struct host_copy h = {.x = floats(x_count, 3),
                          .y = floats(y_count, 4),
                          .dy = floats(y_count, 5),
                          .dx = floats(x_count, 6),
                          .x2 = floats(x2_count, 7),
                          .dy2 = floats(y_count, 8)};
    mr_op_args a = {.n = n, .training = true};
    float *x = rig_memory(r, in->sample_bytes * n), *dy = rig_memory(r, out->sample_bytes * n);
    rig_store(in, n, x, h.x);
    rig_store(out, n, dy, h.dy);
    a.x = x;
    a.dy = dy;
    a.y = rig_memory(r, out->sample_bytes * n);
    a.dx = d.need_dx ? rig_memory(r, in->sample_bytes * n) : NULL;
    memset(a.y, 0x7F, out->sample_bytes * n);
    if (a.dx) memset(a.dx, 0x7F, in->sample_bytes * n);
    a.saved = rig_memory(r, info->saved_bytes);
    a.scratch = rig_memory(r, info->scratch_bytes);
    import_params(r, op, &a, &h);
    add_second(r, op, second, &h, &a, y_count);

    struct model m = {.d = d,
                      .out = {out->h, out->w, out->c, 0, 0, 0},
                      .n = n,
                      .training = true,
                      .x = doubles(h.x, x_count)};
    if (a.x2) m.x2 = doubles(h.x2, x2_count);
    if (info->param_count > 0) m.p0 = doubles(h.param[0], info->param[0].count);
    if (info->param_count > 1) m.p1 = doubles(h.param[1], info->param[1].count);
    double *y = malloc((y_count + 1) * sizeof *y);

    MRT_OK(mr_op_forward_async(op, r->s, &a), NULL);
    MRT_OK(mr_stream_sync(r->s, &err), &err);
    run_model(&m, y);
    rig_load(out, n, a.y, h.y);
    rig_padding_is_zero(out, n, a.y);
    for (size_t k = 0; k < y_count; k++) close_to("output", &d, k, (double)h.y[k], y[k]);
    if (d.kind == MR_OP_BATCHNORM) check_states(&m, &a);

    MRT_OK(mr_op_backward_async(op, r->s, &a), NULL);
    MRT_OK(mr_stream_sync(r->s, &err), &err);
    if (d.need_dx) {
        rig_padding_is_zero(in, n, a.dx);
        rig_load(in, n, a.dx, h.dx);
        check_gradient("dx", &m, m.x, x_count, h.dx, h.dy, y);
    }
    if (a.x2) { /* what is left in dy is the gradient to x2, where that is not written apart */
        const float *const dx2 = info->writes_dx2 ? a.dx2 : a.dy;
        rig_padding_is_zero(second, n, dx2);
        rig_load(second, n, dx2, h.y);
        check_gradient("dx2", &m, m.x2, x2_count, h.y, h.dy, y);
    }
    double *const params[2] = {m.p0, m.p1};
    for (uint32_t i = 0; i < info->param_count; i++) {
        MRT_OK(mr_op_param_export(op, false, i, a.dparam[i], h.dparam[i], &err), &err);
        check_gradient("dparam", &m, params[i], info->param[i].count, h.dparam[i], h.dy, y);
        double all = 0, real = 0; /* padding of gradients is zero */
        for (uint64_t k = 0; k < info->param[i].storage_count; k++) all += fabs((double)a.dparam[i][k]);
        for (uint64_t k = 0; k < info->param[i].count; k++) real += fabs((double)h.dparam[i][k]);
        MRT_TRUE(fabs(all - real) <= 1e-9 * (1 + all));
        free(h.param[i]);
        free(h.dparam[i]);
    }
    if (d.kind == MR_OP_BATCHNORM) { /* with running statistics */
        m.training = a.training = false;
        for (uint32_t c = 0; c < in->c; c++) {
            m.mean[c] = (double)a.state[0][c];
            m.variance[c] = (double)a.state[1][c];
        }
        MRT_OK(mr_op_forward_async(op, r->s, &a), NULL);
        MRT_OK(mr_stream_sync(r->s, &err), &err);
        run_model(&m, y);
        rig_load(out, n, a.y, h.y);
        for (size_t k = 0; k < y_count; k++) close_to("output in evaluation", &d, k, (double)h.y[k], y[k]);
    }
    free(h.x), free(h.y), free(h.dy), free(h.dx), free(h.x2), free(h.dy2);
    free(m.x), free(m.x2), free(m.p0), free(m.p1), free(y);
    mr_op_destroy(op);
    rig_release(r);
}

/* ---- shapes ---- */

static const uint32_t all_layouts[] = {MR_LAYOUT_NHWC, MRI_LAYOUT_NCHW, MRI_LAYOUT_C8, MRI_LAYOUT_C16};

/* Plain C takes NHWC; the fast operations take every layout. Batches: one, a few, the most. */
static void check_everywhere(mr_op_desc d)
{
    const uint32_t h = d.in.h, w = d.in.w, c = d.in.c, c2 = d.in2.c ? d.in2.c : c;
    d.max_batch = 5;
    for (int reference = 0; reference < 2; reference++) {
        struct rig r;
        rig_open(&r, "cpu", reference);
        const bool one = reference || d.kind == MR_OP_RESHAPE;
        for (size_t l = 0; l < (one ? 1 : MRI_ARRAY_COUNT(all_layouts)); l++) {
            d.in = rig_tensor(h, w, c, all_layouts[l]);
            d.in2 = rig_tensor(h, w, c2, all_layouts[l]);
            if (d.kind == MR_OP_SCALE) d.in2 = rig_tensor(1, 1, c2, all_layouts[(l + d.in.h) % 4]);
            check_case(&r, d, 1);
            check_case(&r, d, 3);
            check_case(&r, d, 5);
        }
        rig_close(&r);
    }
}

static mr_op_desc conv2d(uint32_t h, uint32_t w, uint32_t c, uint32_t kernel_h, uint32_t kernel_w,
                         uint32_t stride, uint32_t pad, uint32_t filters)
{
    return (mr_op_desc){
        .kind = MR_OP_CONV2D,
        .in = {h, w, c, MR_TENSOR_F32, 0, 0},
        .need_dx = true,
        .conv2d = {.filters = filters, .window = {kernel_h, kernel_w, stride, stride, pad, pad, pad, pad}}};
}

static mr_op_desc pool2d(uint32_t h, uint32_t w, uint32_t c, uint32_t kernel, uint32_t stride, uint32_t pad)
{
    return (mr_op_desc){.kind = MR_OP_POOL2D,
                        .in = {h, w, c, MR_TENSOR_F32, 0, 0},
                        .need_dx = true,
                        .pool2d.window = {kernel, kernel, stride, stride, pad, pad, pad, pad}};
}

static void conv2d_is_right(void **state)
{
    (void)state;
    static const struct {
        uint32_t h, w, c, f, kh, kw, stride, pad;
        mr_activation act;
        bool dx;
    } cases[] = {
        {1, 1, 1, 1, 1, 1, 1, 0, MR_ACT_NONE, true},      {7, 5, 3, 4, 3, 3, 1, 1, MR_ACT_RELU, false},
        {7, 5, 3, 17, 3, 2, 2, 1, MR_ACT_TANH, true},     {6, 6, 16, 16, 3, 3, 1, 0, MR_ACT_RELU, true},
        {5, 4, 20, 24, 3, 3, 1, 1, MR_ACT_SIGMOID, true}, {9, 9, 32, 16, 5, 5, 2, 2, MR_ACT_SELU, true},
        {4, 4, 33, 5, 1, 1, 1, 0, MR_ACT_RELU, true},     {8, 8, 1, 32, 3, 3, 1, 0, MR_ACT_RELU, false},
        {13, 12, 3, 16, 7, 7, 2, 3, MR_ACT_NONE, true},   {7, 7, 16, 32, 1, 1, 2, 0, MR_ACT_NONE, true},
    };
    for (size_t i = 0; i < MRI_ARRAY_COUNT(cases); i++) {
        mr_op_desc d = conv2d(cases[i].h, cases[i].w, cases[i].c, cases[i].kh, cases[i].kw, cases[i].stride,
                              cases[i].pad, cases[i].f);
        d.activation = cases[i].act;
        d.need_dx = cases[i].dx;
        check_everywhere(d);
        d.conv2d.no_bias = true;
        if (i != 6)
            check_everywhere(d); /* without bias one value stands too near to relu's corner for numeric
                                    gradients */
    }
}

static void transposed_conv2d_is_right(void **state)
{
    (void)state;
    static const struct {
        uint32_t h, w, c, f, kh, kw, stride, pad;
        mr_activation act;
        bool dx;
    } cases[] = {
        {1, 1, 1, 1, 1, 1, 1, 0, MR_ACT_NONE, true},      {1, 1, 5, 3, 3, 2, 2, 0, MR_ACT_NONE, true},
        {5, 4, 3, 17, 3, 2, 2, 1, MR_ACT_TANH, true},     {4, 4, 16, 16, 3, 3, 1, 1, MR_ACT_RELU, true},
        {3, 4, 20, 24, 3, 3, 2, 1, MR_ACT_SIGMOID, true}, {3, 2, 33, 5, 2, 2, 3, 0, MR_ACT_NONE, true},
        {4, 4, 32, 16, 5, 5, 2, 2, MR_ACT_SELU, false},
    };
    for (size_t i = 0; i < MRI_ARRAY_COUNT(cases); i++) {
        mr_op_desc d = conv2d(cases[i].h, cases[i].w, cases[i].c, cases[i].kh, cases[i].kw, cases[i].stride,
                              cases[i].pad, cases[i].f);
        d.kind = MR_OP_CONV2D_TRANSPOSED;
        d.activation = cases[i].act;
        d.need_dx = cases[i].dx;
        d.conv2d.no_bias = i % 2;
        check_everywhere(d);
    }
    mr_op_desc d = conv2d(4, 5, 3, 4, 3, 2, 0, 6);
    d.kind = MR_OP_CONV2D_TRANSPOSED;
    d.conv2d.window.pad_bottom = 1, d.conv2d.window.pad_left = 1;
    check_everywhere(d);
}

static void reshapes_are_right(void **state)
{
    (void)state;
    static const uint32_t shapes[][2][3] = {
        {{1, 1, 24}, {2, 3, 4}}, {{3, 5, 4}, {1, 1, 60}}, {{2, 3, 4}, {3, 4, 2}}};
    for (size_t i = 0; i < 2 * MRI_ARRAY_COUNT(shapes); i++) {
        const uint32_t *from = shapes[i / 2][0], *to = shapes[i / 2][1];
        check_everywhere((mr_op_desc){.kind = MR_OP_RESHAPE,
                                      .in = {from[0], from[1], from[2], MR_TENSOR_F32, 0, 0},
                                      .need_dx = i % 2 == 0,
                                      .reshape = {to[0], to[1], to[2]}});
    }
}

/* Two and three groups, and as many as channels, with one filter a channel and with several. */
static void groups_are_right(void **state)
{
    (void)state;
    static const struct {
        uint32_t h, w, c, f, groups, k, stride, pad;
        mr_activation act;
        bool dx;
    } cases[] = {
        {1, 1, 2, 2, 2, 1, 1, 0, MR_ACT_NONE, true},    {5, 4, 12, 18, 3, 3, 1, 1, MR_ACT_TANH, true},
        {6, 5, 32, 16, 2, 3, 2, 1, MR_ACT_NONE, true},  {4, 4, 48, 48, 3, 1, 1, 0, MR_ACT_NONE, false},
        {1, 1, 16, 16, 16, 3, 1, 1, MR_ACT_NONE, true}, {7, 5, 8, 8, 8, 3, 2, 1, MR_ACT_SELU, true},
        {6, 7, 13, 13, 13, 3, 1, 1, MR_ACT_NONE, true}, {7, 7, 24, 24, 24, 5, 2, 2, MR_ACT_RELU, false},
        {5, 6, 6, 18, 6, 3, 1, 1, MR_ACT_NONE, true},   {4, 3, 16, 32, 16, 3, 1, 1, MR_ACT_SIGMOID, true},
    };
    for (size_t i = 0; i < MRI_ARRAY_COUNT(cases); i++) {
        mr_op_desc d = conv2d(cases[i].h, cases[i].w, cases[i].c, cases[i].k, cases[i].k, cases[i].stride,
                              cases[i].pad, cases[i].f);
        d.conv2d.groups = cases[i].groups;
        d.conv2d.no_bias = i % 3 == 1;
        d.activation = cases[i].act;
        d.need_dx = cases[i].dx;
        check_everywhere(d);
    }
    mr_op_desc d = conv2d(6, 7, 11, 4, 3, 2, 0, 11);
    d.conv2d.groups = 11;
    d.conv2d.window.pad_bottom = 1, d.conv2d.window.pad_left = 2;
    check_everywhere(d);
}

static void uneven_padding_is_right(void **state)
{
    (void)state;
    mr_op_desc d = conv2d(6, 7, 3, 4, 3, 2, 0, 6);
    d.conv2d.window.pad_bottom = 1, d.conv2d.window.pad_left = 2;
    check_everywhere(d);
    d = pool2d(6, 7, 5, 3, 2, 0);
    d.pool2d.window.pad_bottom = 1, d.pool2d.window.pad_left = 2;
    check_everywhere(d);
    d.pool2d.average = true;
    check_everywhere(d);
}

static void pool2d_is_right(void **state)
{
    (void)state;
    static const struct {
        uint32_t h, w, c, k, stride, pad;
    } cases[] = {
        {1, 1, 1, 1, 1, 0}, {7, 5, 3, 2, 2, 0},  {8, 8, 32, 2, 2, 0},  {7, 7, 17, 3, 2, 1},
        {6, 4, 8, 3, 1, 1}, {7, 7, 16, 7, 7, 0}, {12, 9, 16, 3, 2, 1},
    };
    for (size_t i = 0; i < MRI_ARRAY_COUNT(cases); i++) {
        mr_op_desc d = pool2d(cases[i].h, cases[i].w, cases[i].c, cases[i].k, cases[i].stride, cases[i].pad);
        check_everywhere(d);
        d.pool2d.average = true;
        check_everywhere(d);
    }
}

static void dense_is_right(void **state)
{
    (void)state;
    static const struct {
        uint32_t h, w, c, units;
        mr_activation act;
        bool dx;
    } cases[] = {
        {1, 1, 1, 1, MR_ACT_NONE, true},    {7, 5, 3, 4, MR_ACT_RELU, true},
        {1, 1, 100, 10, MR_ACT_NONE, true}, {3, 3, 20, 33, MR_ACT_TANH, true},
        {2, 3, 16, 64, MR_ACT_RELU, false}, {1, 1, 37, 130, MR_ACT_SIGMOID, true},
    };
    for (size_t i = 0; i < 2 * MRI_ARRAY_COUNT(cases); i++) {
        const size_t k = i / 2;
        check_everywhere((mr_op_desc){.kind = MR_OP_DENSE,
                                      .in = {cases[k].h, cases[k].w, cases[k].c, MR_TENSOR_F32, 0, 0},
                                      .need_dx = cases[k].dx,
                                      .activation = cases[k].act,
                                      .dense.units = cases[k].units,
                                      .dense.no_bias = i % 2 == 1});
    }
}

/* Sums and values of a batch norm with residual and relu against a direct computation; dx by its formula. */
static void check_large_batchnorm(mr_tensor t, uint32_t layout)
{
    enum { N = 2 };
    struct rig r;
    mr_error err = MR_ERROR_INIT;
    mr_op *op;
    rig_open(&r, "cpu", false);
    mr_op_desc d = {.kind = MR_OP_BATCHNORM,
                    .max_batch = N,
                    .training = true,
                    .need_dx = true,
                    .activation = MR_ACT_RELU,
                    .batchnorm.residual = true,
                    .batchnorm.momentum = 0.9f,
                    .batchnorm.epsilon = 1e-3f};
    d.in = d.in2 = rig_tensor(t.h, t.w, t.c, layout);
    MRT_OK(mr_op_create(&op, r.dev, &d, &err), &err);
    const mr_op_info *info = mr_op_info_of(op);
    const size_t count = (size_t)N * pixels_of(&t) * t.c, m = (size_t)N * pixels_of(&t),
                 bytes = d.in.sample_bytes * N;
    struct host_copy h = {.x = floats(count, 3),
                          .x2 = floats(count, 7),
                          .dy = floats(count, 5),
                          .dy2 = floats(count, 8),
                          .y = floats(count, 1),
                          .dx = floats(count, 1)};
    float *stored[7];
    for (int i = 0; i < 7; i++) stored[i] = rig_memory(&r, bytes);
    const float *const given[4] = {h.x, h.x2, h.dy, h.dy2};
    for (int i = 0; i < 4; i++) rig_store(&d.in, N, stored[i], given[i]);
    mr_op_args a = {.n = N,
                    .training = true,
                    .x = stored[0],
                    .x2 = stored[1],
                    .dy = stored[2],
                    .dy2 = stored[3],
                    .y = stored[4],
                    .dx = stored[5],
                    .saved = rig_memory(&r, info->saved_bytes),
                    .scratch = rig_memory(&r, info->scratch_bytes)};
    import_params(&r, op, &a, &h);
    MRT_OK(mr_op_forward_async(op, r.s, &a), NULL);
    MRT_OK(mr_op_backward_async(op, r.s, &a), NULL);
    MRT_OK(mr_stream_sync(r.s, &err), &err);
    rig_load(&d.in, N, a.y, h.y);
    rig_load(&d.in, N, a.dx, h.dx);
    for (uint32_t c = 0; c < t.c; c++) {
        double mean = 0, variance = 0, s0 = 0, s1 = 0;
        for (size_t k = c; k < count; k += t.c) mean += (double)h.x[k] / (double)m;
        for (size_t k = c; k < count; k += t.c) variance += pow((double)h.x[k] - mean, 2) / (double)m;
        const double inverse = 1 / sqrt(variance + 1e-3), gain = (double)h.param[0][c] * inverse;
        for (size_t k = c; k < count; k += t.c) {
            const double z = ((double)h.x[k] - mean) * inverse,
                         y = z * (double)h.param[0][c] + (double)h.param[1][c] + (double)h.x2[k];
            close_to("output", &d, k, (double)h.y[k], y > 0 ? y : 0);
            h.dy[k] = h.y[k] > 0 ? h.dy[k] + h.dy2[k] : 0;
            s0 += (double)h.dy[k];
            s1 += (double)h.dy[k] * z;
        }
        close_to("dshift", &d, c, (double)a.dparam[1][c], s0);
        close_to("dscale", &d, c, (double)a.dparam[0][c], s1);
        for (size_t k = c; k < count; k += t.c) {
            const double z = ((double)h.x[k] - mean) * inverse;
            close_to("dx", &d, k, (double)h.dx[k],
                     gain * ((double)h.dy[k] - s0 / (double)m - z * s1 / (double)m));
        }
    }
    free(h.x), free(h.x2), free(h.dy), free(h.dy2), free(h.y), free(h.dx);
    for (int i = 0; i < 2; i++) free(h.param[i]), free(h.dparam[i]);
    mr_op_destroy(op);
    rig_close(&r);
}

static void activations_are_right(void **state)
{
    (void)state;
    for (int k = MR_ACT_NONE; k < (int)MR_ACT_COUNT; k++)
        check_everywhere((mr_op_desc){.kind = MR_OP_ACTIVATION,
                                      .in = {7, 5, 3, MR_TENSOR_F32, 0, 0},
                                      .need_dx = true,
                                      .activation = (mr_activation)k});
}

/* As many elements as vectors have, and some more, on both sides of every bend. */
static void bends_are_where_they_should_be(void **state)
{
    (void)state;
    static const mr_activation bent[] = {MR_ACT_RELU, MR_ACT_LEAKY_RELU, MR_ACT_RELU6};
    static const float x[] = {-20, -6, -1e-3f, -0.0f, 0, 1e-3f, 5.5f, 6, 6.5f, 1e6f};
    enum { COUNT = 37 };
    for (int k = 0; k < 2 * (int)MRI_ARRAY_COUNT(bent); k++) {
        struct rig r;
        mr_error err = MR_ERROR_INIT;
        mr_op *op;
        const mr_activation kind = bent[k / 2];
        rig_open(&r, "cpu", k % 2);
        const mr_op_desc d = {.kind = MR_OP_ACTIVATION,
                              .in = rig_tensor(1, 1, COUNT, 0),
                              .max_batch = 1,
                              .training = true,
                              .need_dx = true,
                              .activation = kind};
        MRT_OK(mr_op_create(&op, r.dev, &d, &err), &err);
        float *in = rig_memory(&r, COUNT * 4), *y = rig_memory(&r, COUNT * 4),
              *dy = rig_memory(&r, COUNT * 4), *dx = rig_memory(&r, COUNT * 4);
        for (int i = 0; i < COUNT; i++) in[i] = x[i % (int)MRI_ARRAY_COUNT(x)], dy[i] = (float)(i + 1);
        const mr_op_args a = {.n = 1, .x = in, .y = y, .dy = dy, .dx = dx, .training = true};
        MRT_OK(mr_op_forward_async(op, r.s, &a), NULL);
        MRT_OK(mr_op_backward_async(op, r.s, &a), NULL);
        MRT_OK(mr_stream_sync(r.s, &err), &err);
        for (int i = 0; i < COUNT; i++) {
            const float below = kind == MR_ACT_LEAKY_RELU ? 0.1f : 0;
            const bool above = kind == MR_ACT_RELU6 && in[i] >= 6;
            MRT_TRUE(y[i] == (above ? 6 : in[i] > 0 ? in[i] : below * in[i]));
            MRT_TRUE(dx[i] == (above ? 0 : in[i] > 0 ? 1 : below) * (float)(i + 1));
        }
        mr_op_destroy(op);
        rig_close(&r);
    }
}

/* From far below to far above: within some units in the last place of the value, and of 1 for the slope.
 * Those of a square, which stands in an exponent, are more the farther out. */
static void smooth_ones_keep_their_digits(void **state)
{
    (void)state;
    enum { COUNT = 4001 };
    for (int k = 0; k < 4; k++) {
        struct rig r;
        mr_error err = MR_ERROR_INIT;
        mr_op *op;
        const bool silu = k / 2 == 0;
        rig_open(&r, "cpu", k % 2);
        const mr_op_desc d = {.kind = MR_OP_ACTIVATION,
                              .in = rig_tensor(1, 1, COUNT, 0),
                              .max_batch = 1,
                              .training = true,
                              .need_dx = true,
                              .activation = silu ? MR_ACT_SILU : MR_ACT_GELU};
        MRT_OK(mr_op_create(&op, r.dev, &d, &err), &err);
        MRT_TRUE(!mr_op_info_of(op)->inplace);
        float *in = rig_memory(&r, COUNT * 4), *y = rig_memory(&r, COUNT * 4),
              *dy = rig_memory(&r, COUNT * 4), *dx = rig_memory(&r, COUNT * 4);
        for (int i = 0; i < COUNT; i++) in[i] = (float)(i - COUNT / 2) / 20, dy[i] = 1;
        in[0] = -1e30f, in[COUNT - 1] = 1e30f;
        mr_op_args a = {.n = 1, .x = in, .y = y, .dy = dy, .dx = dx, .training = true};
        MRT_OK(mr_op_forward_async(op, r.s, &a), NULL);
        MRT_OK(mr_op_backward_async(op, r.s, &a), NULL);
        MRT_OK(mr_stream_sync(r.s, &err), &err);
        for (int i = 0; i < COUNT; i++) {
            const double x = (double)in[i], s = silu ? 1 / (1 + exp(-x)) : erfc(-x / sqrt(2)) / 2,
                         slope = s + (x < -1e3 || x > 1e3 ? 0
                                      : silu              ? x * s * (1 - s)
                                                          : x * exp(-x * x / 2) / sqrt(2 * M_PI));
            const double off = fabs((double)y[i] - x * s), off_slope = fabs((double)dx[i] - slope);
            const double units = silu ? 2e-6 : 1e-6 * (2 + x * x);
            if (!(off <= units * fabs(x * s) + 1e-34 && off_slope <= 2e-6))
                fail_msg("%s at %g: %g, slope %g; expected %g, %g", silu ? "silu" : "gelu", x, (double)y[i],
                         (double)dx[i], x * s, slope);
        }
        a.x = NULL;
        MRT_EQ(mr_op_backward_async(op, r.s, &a), MR_EINVAL);
        mr_op_destroy(op);
        rig_close(&r);
    }
}

static void batchnorm_is_right(void **state)
{
    (void)state;
    static const uint32_t channels[] = {1, 3, 17, 32};
    static const mr_activation acts[] = {MR_ACT_NONE, MR_ACT_RELU, MR_ACT_SIGMOID, MR_ACT_RELU};
    for (int k = 0; k < 8; k++)
        check_everywhere((mr_op_desc){.kind = MR_OP_BATCHNORM,
                                      .in = {5, 3, channels[k % 4], MR_TENSOR_F32, 0, 0},
                                      .need_dx = k % 4 != 1,
                                      .activation = acts[k % 4],
                                      .batchnorm.momentum = 0.9f,
                                      .batchnorm.epsilon = 1e-3f,
                                      .batchnorm.residual = k >= 4,
                                      .batchnorm.no_scale = k % 3 == 2});
}

/* Both, one, or the other end with a block of channels; one of them is smaller than a block. */
static void concatenations_are_right(void **state)
{
    (void)state;
    static const uint32_t channels[][2] = {{1, 1}, {3, 17}, {16, 16}, {32, 5}, {5, 32}, {12, 28}, {8, 24}};
    for (size_t k = 0; k < 2 * MRI_ARRAY_COUNT(channels); k++)
        check_everywhere((mr_op_desc){.kind = MR_OP_CONCAT,
                                      .in = {4, 3, channels[k / 2][0], MR_TENSOR_F32, 0, 0},
                                      .in2 = {.c = channels[k / 2][1]},
                                      .need_dx = k % 2});
}

/* The factors in a layout of their own; more pixels than are added up at a time, and pieces of wide rows. */
static void factors_are_right(void **state)
{
    (void)state;
    static const uint32_t shapes[][3] = {{1, 1, 1},  {1, 1, 19}, {2, 3, 8},  {3, 5, 13},
                                         {9, 11, 3}, {4, 3, 70}, {13, 7, 16}};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(shapes); k++)
        check_everywhere((mr_op_desc){.kind = MR_OP_SCALE,
                                      .in = {shapes[k][0], shapes[k][1], shapes[k][2], MR_TENSOR_F32, 0, 0},
                                      .need_dx = k % 3 != 1});
}

static void group_norms_are_right(void **state)
{
    (void)state;
    static const struct {
        uint32_t h, w, c, groups;
        bool each_pixel;
    } cases[] = {{3, 2, 6, 3, false}, {1, 1, 9, 1, false}, {4, 3, 16, 2, false}, {1, 5, 17, 1, true},
                 {2, 2, 12, 3, true}, {3, 3, 5, 5, false}, {1, 2, 520, 1, true}};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(cases); k++)
        check_everywhere((mr_op_desc){
            .kind = MR_OP_GROUPNORM,
            .in = {cases[k].h, cases[k].w, cases[k].c, MR_TENSOR_F32, 0, 0},
            .need_dx = k != 2,
            .groupnorm = {.groups = cases[k].groups, .each_pixel = cases[k].each_pixel, .epsilon = 0.1f}});
}

static void larger_pictures_are_right(void **state)
{
    (void)state;
    static const uint32_t shapes[][3] = {{1, 1, 3}, {2, 3, 8}, {3, 2, 17}};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(shapes); k++)
        for (uint32_t factor = 1; factor <= 4; factor++)
            for (int bilinear = 0; bilinear < 2; bilinear++)
                check_everywhere(
                    (mr_op_desc){.kind = MR_OP_UPSAMPLE,
                                 .in = {shapes[k][0], shapes[k][1], shapes[k][2], MR_TENSOR_F32, 0, 0},
                                 .need_dx = true,
                                 .upsample = {.factor = factor, .bilinear = bilinear}});
}

/* A sample's factors get the same bits in any batch and with any number of threads. */
static void factor_gradients_know_no_batch(void **state)
{
    (void)state;
    enum { N = 5, H = 23, W = 29, C = 72 };
    for (size_t l = 0; l < MRI_ARRAY_COUNT(all_layouts); l++) {
        struct rig r;
        mr_error err = MR_ERROR_INIT;
        mr_op *op;
        rig_open(&r, "cpu", false);
        const mr_op_desc d = {.kind = MR_OP_SCALE,
                              .in = rig_tensor(H, W, C, all_layouts[l]),
                              .in2 = rig_tensor(1, 1, C, all_layouts[l]),
                              .max_batch = N,
                              .training = true,
                              .need_dx = true};
        const size_t floats = mri_tensor_floats(&d.in), factors = mri_tensor_floats(&d.in2);
        MRT_OK(mr_op_create(&op, r.dev, &d, &err), &err);
        float *x = rig_memory(&r, d.in.sample_bytes * N), *dy = rig_memory(&r, d.in.sample_bytes * N),
              *dx = rig_memory(&r, d.in.sample_bytes * N), *x2 = rig_memory(&r, d.in2.sample_bytes * N),
              *dx2[2] = {rig_memory(&r, d.in2.sample_bytes * N), rig_memory(&r, d.in2.sample_bytes * N)};
        rig_noise(x, floats * N, 1), rig_noise(dy, floats * N, 2), rig_noise(x2, factors * N, 3);
        mr_op_args a = {.n = N, .x = x, .x2 = x2, .dy = dy, .dx = dx, .dx2 = dx2[0], .training = true};
        MRT_OK(mr_op_backward_async(op, r.s, &a), NULL);
        for (uint32_t i = 0; i < N; i++) {
            a = (mr_op_args){.n = 1,
                             .x = x + i * floats,
                             .x2 = x2 + i * factors,
                             .dy = dy + i * floats,
                             .dx = dx + i * floats,
                             .dx2 = dx2[1] + i * factors,
                             .training = true};
            MRT_OK(mr_op_backward_async(op, r.s, &a), NULL);
        }
        MRT_OK(mr_stream_sync(r.s, &err), &err);
        assert_memory_equal(dx2[0], dx2[1], factors * N * sizeof(float));
        a.x2 = NULL;
        MRT_EQ(mr_op_backward_async(op, r.s, &a), MR_EINVAL);
        mr_op_destroy(op);
        rig_close(&r);
    }
}

/* Windows that reach beyond both ends, rows of several pieces, and powers that roots give or do not. */
static void responses_are_right(void **state)
{
    (void)state;
    static const struct {
        uint32_t h, w, c, radius;
        float bias, alpha, beta;
    } cases[] = {
        {1, 1, 1, 4, 1, 0.5f, 0.75f},    {3, 2, 5, 9, 2, 0.3f, 0.75f},   {4, 3, 17, 2, 1, 1, 0.5f},
        {2, 3, 24, 4, 0.5f, 2, 0.75f},   {1, 2, 300, 4, 1, 0.7f, 0.75f}, {2, 1, 260, 64, 1, 0.01f, 0.75f},
        {3, 3, 16, 0, 1.5f, 0.4f, 0.9f}, {1, 5, 70, 3, 1, 0.2f, 1},      {2, 2, 8, 1, 3, 0, 0},
    };
    for (size_t i = 0; i < MRI_ARRAY_COUNT(cases); i++)
        check_everywhere(
            (mr_op_desc){.kind = MR_OP_LRN,
                         .in = {cases[i].h, cases[i].w, cases[i].c, MR_TENSOR_F32, 0, 0},
                         .need_dx = true,
                         .lrn = {cases[i].radius, cases[i].bias, cases[i].alpha, cases[i].beta}});
}

/* One channel, a few, and more than a piece. */
static void softmaxes_are_right(void **state)
{
    (void)state;
    static const uint32_t shapes[][3] = {{1, 1, 1}, {3, 2, 5}, {1, 4, 17}, {2, 3, 24}, {1, 2, 1100}};
    for (size_t k = 0; k < 2 * MRI_ARRAY_COUNT(shapes); k++) {
        const uint32_t *s = shapes[k / 2];
        check_everywhere((mr_op_desc){.kind = MR_OP_SOFTMAX,
                                      .in = {s[0], s[1], s[2], MR_TENSOR_F32, 0, 0},
                                      .need_dx = true,
                                      .softmax = {.log = k % 2}});
    }
}

static void channels_of_zeros_are_right(void **state)
{
    (void)state;
    static const uint32_t channels[][3] = {{1, 0, 0},    {16, 8, 8}, {3, 2, 0},
                                           {32, 16, 16}, {17, 0, 5}, {8, 24, 0}};
    for (size_t k = 0; k < 2 * MRI_ARRAY_COUNT(channels); k++)
        check_everywhere((mr_op_desc){.kind = MR_OP_PAD,
                                      .in = {3, 5, channels[k / 2][0], MR_TENSOR_F32, 0, 0},
                                      .need_dx = k % 2,
                                      .pad = {.before = channels[k / 2][1], .behind = channels[k / 2][2]}});
}

static void additions_are_right(void **state)
{
    (void)state;
    static const uint32_t channels[MR_ACT_COUNT] = {1, 3, 17, 16, 5, 19, 33};
    for (int k = MR_ACT_NONE; k < (int)MR_ACT_COUNT && !mr_activation_needs_x((mr_activation)k); k++)
        check_everywhere((mr_op_desc){.kind = MR_OP_ADD,
                                      .in = {4, 3, channels[k], MR_TENSOR_F32, 0, 0},
                                      .need_dx = true,
                                      .activation = (mr_activation)k});
}

/* Many pixels a channel: pieces of every size, and a residual wider than one piece. */
static void large_batchnorm_is_right(void **state)
{
    (void)state;
    static const mr_tensor shapes[] = {{31, 37, 3, MR_TENSOR_F32, 0, 0},
                                       {3, 2, 2100, MR_TENSOR_F32, 0, 0},
                                       {19, 17, 16, MR_TENSOR_F32, 0, 0}};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(shapes); k++)
        for (size_t l = 0; l < MRI_ARRAY_COUNT(all_layouts); l++)
            check_large_batchnorm(shapes[k], all_layouts[l]);
}

/* Of equal values the first in row order takes the whole gradient. */
static void pool_ties_go_to_the_first(void **state)
{
    (void)state;
    for (int reference = 0; reference < 2; reference++)
        for (size_t l = 0; l < (reference ? 1 : MRI_ARRAY_COUNT(all_layouts)); l++) {
            struct rig r;
            mr_error err = MR_ERROR_INIT;
            mr_op *op;
            rig_open(&r, "cpu", reference);
            mr_op_desc d = pool2d(4, 4, 16, 2, 2, 0);
            d.in = rig_tensor(4, 4, 16, all_layouts[l]);
            d.training = true;
            d.max_batch = 1;
            MRT_OK(mr_op_create(&op, r.dev, &d, &err), &err);
            const mr_op_info *info = mr_op_info_of(op);
            mr_op_args a = {.n = 1,
                            .training = true,
                            .x = rig_memory(&r, d.in.sample_bytes),
                            .y = rig_memory(&r, info->out.sample_bytes),
                            .dy = rig_memory(&r, info->out.sample_bytes),
                            .dx = rig_memory(&r, d.in.sample_bytes),
                            .saved = rig_memory(&r, info->saved_bytes),
                            .scratch = rig_memory(&r, info->scratch_bytes)};
            for (int i = 0; i < 64; i++) ((float *)a.dy)[i] = 1;
            MRT_OK(mr_op_forward_async(op, r.s, &a), NULL);
            MRT_OK(mr_op_backward_async(op, r.s, &a), NULL);
            MRT_OK(mr_stream_sync(r.s, &err), &err);
            for (uint32_t y = 0; y < 4; y++)
                for (uint32_t x = 0; x < 4; x++)
                    MRT_EQ(((float *)a.dx)[mri_tensor_index(&d.in, y * 4 + x, 3)], y % 2 == 0 && x % 2 == 0);
            mr_op_destroy(op);
            rig_close(&r);
        }
}

static void refuse(mr_op_desc d, int code, const char *part)
{
    struct rig r;
    mr_error err = MR_ERROR_INIT;
    mr_op *op = (mr_op *)&err;
    rig_open(&r, "cpu", false);
    if (d.max_batch == 0) d.max_batch = 1;
    if (d.in.sample_bytes == 0)
        d.in.sample_bytes = (size_t)d.in.h * d.in.w * d.in.c * (d.in.dtype == MR_TENSOR_U8 ? 1 : 4);
    MRT_EQ(mr_op_create(&op, r.dev, &d, &err), code);
    MRT_TRUE(op == NULL);
    MRT_HAS(err.text, part);
    rig_close(&r);
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    const mr_tensor f = {4, 4, 3, MR_TENSOR_F32, 0, 0}, u8 = {4, 4, 3, MR_TENSOR_U8, 0, 0};
    refuse(conv2d(4, 4, 3, 5, 5, 1, 0, 1), MR_EINVAL, "does not fit");
    refuse(conv2d(4, 4, 3, 3, 3, 1, 3, 1), MR_EINVAL, "padding must be smaller");
    refuse(conv2d(4, 4, 3, 3, 3, 0, 0, 1), MR_EINVAL, "stride");
    refuse(conv2d(4, 4, 3, 3, 3, 1, 0, 0), MR_EINVAL, "filters");
    refuse(conv2d(4, 4, 1 << 20, 3, 3, 1, 0, 1 << 20), MR_EINVAL, "too large");
    mr_op_desc turned = conv2d(1, 1, 3, 3, 3, 1, 2, 1); /* all of what it makes is padding */
    turned.kind = MR_OP_CONV2D_TRANSPOSED;
    refuse(turned, MR_EINVAL, "makes no output");
    turned.conv2d.window.pad_top = 3;
    refuse(turned, MR_EINVAL, "padding must be smaller");
    turned = conv2d(4, 4, 3, 3, 3, 1, 0, 0);
    turned.kind = MR_OP_CONV2D_TRANSPOSED;
    refuse(turned, MR_EINVAL, "filters");
    turned.conv2d.filters = 3, turned.conv2d.groups = 3;
    refuse(turned, MR_EINVAL, "no groups");
    refuse((mr_op_desc){.kind = MR_OP_RESHAPE, .in = f, .reshape = {4, 4, 4}}, MR_EINVAL,
           "other than the 48");
    refuse((mr_op_desc){.kind = MR_OP_RESHAPE, .in = f, .reshape = {0, 4, 4}}, MR_EINVAL, "rows");
    refuse((mr_op_desc){.kind = MR_OP_SAMPLE, .in = f, .in2 = u8}, MR_EINVAL, "must be equal");
    refuse((mr_op_desc){.kind = MR_OP_SAMPLE, .in = f, .in2 = f, .sample.factor = -1}, MR_EINVAL, "factor");
    refuse((mr_op_desc){.kind = MR_OP_PAIR_LOSS, .in = f, .in2 = u8}, MR_EINVAL, "must be equal");
    refuse((mr_op_desc){.kind = MR_OP_GROUPNORM, .in = f, .groupnorm = {.groups = 1}}, MR_EINVAL,
           "epsilon must be above 0");
    refuse((mr_op_desc){.kind = MR_OP_GROUPNORM, .in = f, .groupnorm = {.groups = 7, .epsilon = 1}},
           MR_EINVAL, "expected a divisor");
    refuse((mr_op_desc){.kind = MR_OP_UPSAMPLE, .in = f}, MR_EINVAL, "factor 0");
    refuse((mr_op_desc){.kind = MR_OP_EMBEDDING, .in = f, .embedding = {2, 2, 0}}, MR_EINVAL,
           "whole numbers");
    refuse((mr_op_desc){.kind = MR_OP_PAIR_LOSS, .in = f, .in2 = f, .pair_loss.weight = NAN}, MR_EINVAL,
           "weight");
    refuse(
        (mr_op_desc){
            .kind = MR_OP_PAIR_LOSS, .in = f, .in2 = f, .pair_loss.kind = (mr_pair_loss)MR_PAIR_COUNT},
        MR_EINVAL, "unknown loss");
    refuse((mr_op_desc){.kind = MR_OP_LOSS, .in = {1, 1, 3, MR_TENSOR_F32, 0, 0}, .loss.weight = INFINITY},
           MR_EINVAL, "weight");
    mr_op_desc grouped = conv2d(4, 4, 6, 3, 3, 1, 0, 4);
    grouped.conv2d.groups = 4;
    refuse(grouped, MR_EINVAL, "4 groups must divide the 6 channels and the 4 filters");
    grouped.conv2d.groups = 3;
    refuse(grouped, MR_EINVAL, "3 groups must divide the 6 channels and the 4 filters");
    refuse((mr_op_desc){.kind = (mr_op_kind)42, .in = f}, MR_EINVAL, "unknown operation");
    refuse((mr_op_desc){.kind = MR_OP_DENSE, .in = u8, .dense.units = 1}, MR_EINVAL, "f32");
    refuse((mr_op_desc){.kind = MR_OP_DENSE, .in = f}, MR_EINVAL, "units");
    refuse((mr_op_desc){.kind = MR_OP_DENSE, .in = {0, 4, 3, MR_TENSOR_F32, 0, 0}, .dense.units = 1},
           MR_EINVAL, "every side");
    refuse((mr_op_desc){.kind = MR_OP_DENSE, .in = {4, 4, 3, MR_TENSOR_F32, 9, 0}, .dense.units = 1},
           MR_EINVAL, "layout 9");
    refuse((mr_op_desc){.kind = MR_OP_DENSE, .in = {4, 4, 3, MR_TENSOR_F32, 0, 7}, .dense.units = 1},
           MR_EINVAL, "7 bytes");
    refuse((mr_op_desc){.kind = MR_OP_DENSE, .in = f, .dense.units = 1, .max_batch = UINT32_MAX}, MR_EINVAL,
           "max_batch");
    refuse((mr_op_desc){.kind = MR_OP_DROPOUT, .in = f, .dropout.rate = 1}, MR_EINVAL, "rate");
    refuse((mr_op_desc){.kind = MR_OP_DROPOUT, .in = f, .dropout.rate = NAN}, MR_EINVAL, "rate");
    refuse((mr_op_desc){.kind = MR_OP_ACTIVATION, .in = f, .activation = (mr_activation)MR_ACT_COUNT},
           MR_EINVAL, "activation");
    static const mr_op_kind fusing[] = {MR_OP_CONV2D, MR_OP_DENSE, MR_OP_BATCHNORM, MR_OP_ADD};
    for (size_t i = 0; i < 2 * MRI_ARRAY_COUNT(fusing); i++)
        refuse(
            (mr_op_desc){
                .kind = fusing[i / 2], .in = f, .in2 = f, .activation = i % 2 ? MR_ACT_SILU : MR_ACT_GELU},
            MR_EUNSUPPORTED, "put an activation behind it");
    refuse((mr_op_desc){.kind = MR_OP_BATCHNORM, .in = f}, MR_EINVAL, "epsilon");
    refuse((mr_op_desc){.kind = MR_OP_BATCHNORM, .in = f, .batchnorm.epsilon = 1, .batchnorm.momentum = 2},
           MR_EINVAL, "momentum");
    refuse((mr_op_desc){.kind = MR_OP_LRN, .in = f, .lrn = {65, 1, 1, 1}}, MR_EINVAL, "radius 65");
    refuse((mr_op_desc){.kind = MR_OP_LRN, .in = f, .lrn = {2, 0, 1, 1}}, MR_EINVAL, "bias above 0");
    refuse((mr_op_desc){.kind = MR_OP_LRN, .in = f, .lrn = {2, 1, -1, 1}}, MR_EINVAL, "alpha -1");
    refuse((mr_op_desc){.kind = MR_OP_LRN, .in = f, .lrn = {2, 1, 1, INFINITY}}, MR_EINVAL, "beta inf");
    refuse((mr_op_desc){.kind = MR_OP_LOSS, .in = f}, MR_EINVAL, "vector");
    refuse((mr_op_desc){.kind = MR_OP_INPUT, .in = f}, MR_EINVAL, "uint8");
    refuse((mr_op_desc){.kind = MR_OP_INPUT, .in = u8}, MR_EINVAL, "std");
    refuse((mr_op_desc){.kind = MR_OP_INPUT, .in = {4, 4, 5, MR_TENSOR_U8, 0, 0}}, MR_EINVAL, "4 channels");
    refuse(pool2d(1000, 1000, 1, 300, 1, 0), MR_EUNSUPPORTED, "65536");
    const mr_op_desc pixels = {
        .kind = MR_OP_INPUT, .in = {4, 4, 3, MR_TENSOR_U8, 0, 48}, .input.std = {1, 1, 1}};
    mr_op_desc d = pixels;
    d.input.out_dtype = MR_TENSOR_U8;
    refuse(d, MR_EINVAL, "out_dtype");
    d = pixels, d.want = (mr_wanted_layout)7;
    refuse(d, MR_EINVAL, "wanted layout");
}

static void half_precision_is_refused(void **state)
{
    (void)state;
    for (uint32_t dtype = MR_TENSOR_BF16; dtype <= MR_TENSOR_F16; dtype++) {
        const mr_tensor t = {4, 4, 3, dtype, 0, 96};
        refuse((mr_op_desc){.kind = MR_OP_DENSE, .in = t, .dense.units = 1}, MR_EUNSUPPORTED,
               "bf16 and f16 are offered on cuda devices");
        refuse((mr_op_desc){.kind = MR_OP_ADD, .in = t, .in2 = t}, MR_EUNSUPPORTED, "cpu:0 computes in f32");
        refuse((mr_op_desc){.kind = MR_OP_INPUT,
                            .in = {4, 4, 3, MR_TENSOR_U8, 0, 48},
                            .input.std = {1, 1, 1},
                            .input.out_dtype = dtype},
               MR_EUNSUPPORTED, "cuda devices");
    }
    MRT_EQ(mr_tensor_element_bytes(MR_TENSOR_U8), 1);
    MRT_EQ(mr_tensor_element_bytes(MR_TENSOR_BF16), 2);
    MRT_EQ(mr_tensor_element_bytes(MR_TENSOR_F16), 2);
    MRT_EQ(mr_tensor_element_bytes(MR_TENSOR_F32), 4);
    MRT_EQ(mr_tensor_element_bytes(0), 0);
}

/* Every field of the second input counts. */
static void second_inputs_must_fit(void **state)
{
    (void)state;
    const mr_tensor t = rig_tensor(4, 3, 8, 0);
    for (int i = 0; i < 7; i++) {
        mr_op_desc d = {.kind = i % 2 ? MR_OP_ADD : MR_OP_BATCHNORM,
                        .in = t,
                        .in2 = t,
                        .batchnorm = {.residual = true, .epsilon = 1}};
        uint32_t *const fields[] = {&d.in2.h, &d.in2.w, &d.in2.c, &d.in2.dtype, &d.in2.layout};
        if (i < 5) ++*fields[i];
        else if (i == 5) d.in2.sample_bytes += 4;
        else d.in2 = (mr_tensor){0};
        refuse(d, MR_EINVAL, "they must be equal");
    }
}

/* Of a concatenation all but the channels. */
static void concatenations_must_fit(void **state)
{
    (void)state;
    const mr_tensor t = rig_tensor(4, 3, 8, 0);
    for (int i = 0; i < 4; i++) {
        mr_op_desc d = {.kind = MR_OP_CONCAT, .in = t, .in2 = t};
        uint32_t *const fields[] = {&d.in2.h, &d.in2.w, &d.in2.dtype, &d.in2.layout};
        ++*fields[i];
        refuse(d, MR_EINVAL, "pixels, type and layout of the first");
    }
    mr_op_desc d = {.kind = MR_OP_CONCAT, .in = t, .in2 = t};
    d.in2.c = 0;
    refuse(d, MR_EINVAL, "channels of the second input");
    d.in2 = t, d.in2.sample_bytes += 4;
    refuse(d, MR_EINVAL, "not one this device makes");
    refuse((mr_op_desc){.kind = MR_OP_PAD, .in = t, .pad = {1u << 30, 0}}, MR_EINVAL, "on either side");
}

static void factors_must_fit(void **state)
{
    (void)state;
    const mr_tensor t = rig_tensor(4, 3, 8, 0), factors = rig_tensor(1, 1, 8, 0);
    for (int i = 0; i < 4; i++) {
        mr_op_desc d = {.kind = MR_OP_SCALE, .in = t, .in2 = factors};
        uint32_t *const fields[] = {&d.in2.h, &d.in2.w, &d.in2.c, &d.in2.dtype};
        ++*fields[i];
        refuse(d, MR_EINVAL, "must be 1 x 1 x 8");
    }
    mr_op_desc d = {.kind = MR_OP_SCALE, .in = t, .in2 = factors};
    d.in2.sample_bytes += 4;
    refuse(d, MR_EINVAL, "not one this device makes");
}

static void calls_are_checked(void **state)
{
    (void)state;
    struct rig r;
    mr_error err = MR_ERROR_INIT;
    mr_op *op;
    float w[4] = {0};
    rig_open(&r, "cpu", false);
    mr_op_desc d = {
        .kind = MR_OP_DENSE, .in = {1, 1, 2, MR_TENSOR_F32, 0, 8}, .max_batch = 2, .dense.units = 2};
    MRT_OK(mr_op_create(&op, r.dev, &d, &err), &err);
    mr_op_args a = {.n = 3, .x = w, .y = w, .param = {w, w}};
    MRT_EQ(mr_op_forward_async(op, r.s, &a), MR_EINVAL); /* more than max_batch */
    a.n = 1;
    a.param[1] = NULL;
    MRT_EQ(mr_op_forward_async(op, r.s, &a), MR_EINVAL);
    a.param[1] = w;
    MRT_EQ(mr_op_backward_async(op, r.s, &a), MR_EINVAL); /* not created for training */
    MRT_EQ(mr_op_param_import(op, false, 2, w, w, &err), MR_EINVAL);
    MRT_EQ(mr_op_param_import(op, true, 0, w, w, &err), MR_EINVAL);
    mr_op_destroy(op);
    mr_op_destroy(NULL);

    d = (mr_op_desc){.kind = MR_OP_ADD,
                     .in = {1, 1, 2, MR_TENSOR_F32, 0, 8},
                     .in2 = {1, 1, 2, MR_TENSOR_F32, 0, 8},
                     .max_batch = 1,
                     .training = true,
                     .need_dx = true};
    MRT_OK(mr_op_create(&op, r.dev, &d, &err), &err);
    a = (mr_op_args){.n = 1, .x = w, .y = w + 2};
    MRT_EQ(mr_op_forward_async(op, r.s, &a), MR_EINVAL); /* no second input */
    a.x2 = w;
    MRT_OK(mr_op_forward_async(op, r.s, &a), NULL);
    MRT_EQ(mr_op_backward_async(op, r.s, &a), MR_EINVAL); /* no gradient */
    a.dy = w;                                             /* dx may be missing: dy is the gradient to both */
    MRT_OK(mr_op_backward_async(op, r.s, &a), NULL);
    MRT_OK(mr_stream_sync(r.s, &err), &err);
    mr_op_destroy(op);
    rig_close(&r);
}

/* Of any kind but those of data. */
static mr_op_desc smallest(mr_op_kind kind)
{
    const bool conv = kind == MR_OP_CONV2D || kind == MR_OP_CONV2D_TRANSPOSED;
    mr_op_desc d = conv ? conv2d(1, 1, 8, 1, 1, 1, 0, 4) : pool2d(1, 1, 8, 1, 1, 0);
    if (kind == MR_OP_DENSE) d.dense = (mr_dense_desc){.units = 4};
    if (kind == MR_OP_DROPOUT) d.dropout = (mr_dropout_desc){.rate = 0.5f};
    if (kind == MR_OP_BATCHNORM) d.batchnorm = (mr_batchnorm_desc){.epsilon = 1};
    if (kind == MR_OP_RESHAPE) d.reshape = (mr_reshape_desc){2, 2, 2};
    if (kind == MR_OP_SAMPLE) d.sample = (mr_sample_desc){0};
    if (kind == MR_OP_PAIR_LOSS) d.pair_loss = (mr_pair_loss_desc){0};
    if (kind == MR_OP_LOSS) d.loss = (mr_loss_desc){0};
    if (kind == MR_OP_GROUPNORM) d.groupnorm = (mr_groupnorm_desc){.epsilon = 1};
    if (kind == MR_OP_UPSAMPLE) d.upsample = (mr_upsample_desc){.factor = 2};
    if (kind == MR_OP_SOFTMAX) d.softmax = (mr_softmax_desc){.log = true};
    if (kind == MR_OP_LRN) d.lrn = (mr_lrn_desc){2, 1, 1, 0.75f};
    if (kind == MR_OP_GRU || kind == MR_OP_LSTM) d.recurrent = (mr_recurrent_desc){.units = 2};
    d.kind = kind;
    d.in.sample_bytes = 32;
    d.in2 = d.in; /* 1 x 1 x 8: factors, too */
    d.max_batch = 2;
    d.training = true;
    return d;
}

static void failed_allocations_are_reported(void **state)
{
    (void)state;
    for (int kind = MR_OP_CONV2D; kind < MR_OP_KIND_COUNT; kind++)
        for (int n = 0; kind != MR_OP_ONE_HOT && kind != MR_OP_FIELD && kind != MR_OP_EMBEDDING; n++) {
            struct rig r;
            mr_error err = MR_ERROR_INIT;
            mr_op *op = (mr_op *)&err;
            mr_op_desc d = smallest((mr_op_kind)kind);
            rig_open(&r, "cpu", false);
            mrt_fail_alloc_at(n);
            const int rc = mr_op_create(&op, r.dev, &d, &err);
            mrt_fail_alloc_at(-1);
            mr_op_destroy(rc ? NULL : op);
            rig_close(&r);
            if (rc == MR_OK) break;
            MRT_EQ(rc, MR_ENOMEM);
            MRT_TRUE(op == NULL);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conv2d_is_right),
        cmocka_unit_test(transposed_conv2d_is_right),
        cmocka_unit_test(reshapes_are_right),
        cmocka_unit_test(groups_are_right),
        cmocka_unit_test(uneven_padding_is_right),
        cmocka_unit_test(pool2d_is_right),
        cmocka_unit_test(pool_ties_go_to_the_first),
        cmocka_unit_test(dense_is_right),
        cmocka_unit_test(activations_are_right),
        cmocka_unit_test(bends_are_where_they_should_be),
        cmocka_unit_test(smooth_ones_keep_their_digits),
        cmocka_unit_test(batchnorm_is_right),
        cmocka_unit_test(concatenations_are_right),
        cmocka_unit_test(channels_of_zeros_are_right),
        cmocka_unit_test(responses_are_right),
        cmocka_unit_test(softmaxes_are_right),
        cmocka_unit_test(factors_are_right),
        cmocka_unit_test(group_norms_are_right),
        cmocka_unit_test(larger_pictures_are_right),
        cmocka_unit_test(factor_gradients_know_no_batch),
        cmocka_unit_test(large_batchnorm_is_right),
        cmocka_unit_test(additions_are_right),
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(half_precision_is_refused),
        cmocka_unit_test(second_inputs_must_fit),
        cmocka_unit_test(concatenations_must_fit),
        cmocka_unit_test(factors_must_fit),
        cmocka_unit_test(calls_are_checked),
        cmocka_unit_test(failed_allocations_are_reported),
    };
    return mrt_run(tests);
}
