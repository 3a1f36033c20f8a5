/* kernels: every operation with parameters or windows, plain C and fast, against a slow forward pass in double and numeric
 * gradients of that pass, on odd shapes and in every layout; guard bytes behind each buffer. */
#include "rig.h"

static uint32_t pixels_of(const mr_tensor *t) { return t->h * t->w; }

static double act(mr_activation kind, double x)
{
    switch (kind) {
    case MR_ACT_NONE: return x;
    case MR_ACT_RELU: return x > 0 ? x : 0;
    case MR_ACT_TANH: return tanh(x);
    case MR_ACT_SIGMOID: return 1 / (1 + exp(-x));
    case MR_ACT_SELU: return 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * expm1(x));
    }
    return 0;
}

/* ---- the slow forward pass ---- */

struct model {
    mr_op_desc d;
    mr_tensor  out; /* canonical */
    uint32_t   n;
    bool       training;
    double    *x, *p0, *p1; /* canonical */
    double     mean[64], variance[64];
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
    double sum = m->p1[f];
    bool   inside;
    for (uint32_t ky = 0; ky < d->kernel_h; ky++)
        for (uint32_t kx = 0; kx < d->kernel_w; kx++)
            for (uint32_t c = 0; c < d->in.c; c++)
                sum += pixel(m, i, (int64_t)oy * d->stride_h + ky - d->pad_top, (int64_t)ox * d->stride_w + kx - d->pad_left, c, &inside) *
                       m->p0[((f * d->kernel_h + ky) * d->kernel_w + kx) * d->in.c + c];
    return act(d->activation, sum);
}

static double pool_at(const struct model *m, uint32_t i, uint32_t oy, uint32_t ox, uint32_t c)
{
    const mr_op_desc *d = &m->d;
    double best = -INFINITY, sum = 0;
    int    places = 0;
    for (uint32_t ky = 0; ky < d->kernel_h; ky++)
        for (uint32_t kx = 0; kx < d->kernel_w; kx++) {
            bool inside;
            const double v = pixel(m, i, (int64_t)oy * d->stride_h + ky - d->pad_top, (int64_t)ox * d->stride_w + kx - d->pad_left, c, &inside);
            if (!inside) continue;
            best = v > best ? v : best;
            sum += v;
            places++;
        }
    return d->average ? sum / places : best;
}

static double dense_at(const struct model *m, uint32_t i, uint32_t u)
{
    const size_t inputs = (size_t)pixels_of(&m->d.in) * m->d.in.c;
    double sum = m->p1[u];
    for (size_t k = 0; k < inputs; k++) sum += m->x[i * inputs + k] * m->p0[u * inputs + k];
    return act(m->d.activation, sum);
}

static double norm_at(const struct model *m, uint32_t i, uint32_t p, uint32_t c)
{
    const mr_tensor *t = &m->d.in;
    const double     x = m->x[((size_t)i * pixels_of(t) + p) * t->c + c];
    double mean = m->mean[c], variance = m->variance[c];
    if (m->training) {
        const double count = (double)m->n * pixels_of(t);
        mean = variance = 0;
        for (size_t k = 0; k < (size_t)m->n * pixels_of(t); k++) mean += m->x[k * t->c + c] / count;
        for (size_t k = 0; k < (size_t)m->n * pixels_of(t); k++) variance += (m->x[k * t->c + c] - mean) * (m->x[k * t->c + c] - mean) / count;
    }
    return act(m->d.activation, m->p0[c] * (x - mean) / sqrt(variance + (double)m->d.epsilon) + m->p1[c]);
}

static double value_at(const struct model *m, uint32_t i, uint32_t oy, uint32_t ox, uint32_t c)
{
    switch (m->d.kind) {
    case MR_OP_CONV2D: return conv_at(m, i, oy, ox, c);
    case MR_OP_POOL2D: return pool_at(m, i, oy, ox, c);
    case MR_OP_DENSE: return dense_at(m, i, c);
    case MR_OP_BATCHNORM: return norm_at(m, i, oy * m->d.in.w + ox, c);
    case MR_OP_ACTIVATION: return act(m->d.activation, m->x[(((size_t)i * m->out.h + oy) * m->out.w + ox) * m->out.c + c]);
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
    fail_msg("%s of kind %d, input %ux%ux%u, kernel %ux%u, element %zu: found %g, expected %g", what, (int)d->kind, d->in.h, d->in.w,
             d->in.c, d->kernel_h, d->kernel_w, at, found, expected);
}

/* Numeric gradients at up to 12 elements of values against found. */
static void check_gradient(const char *what, const struct model *m, double *values, size_t count, const float *found, const float *dy,
                           double *y)
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
    float *x, *y, *dy, *dx, *param[2], *dparam[2];
};

static void import_params(struct rig *r, mr_op *op, mr_op_args *a, struct host_copy *h)
{
    const mr_op_info *info = mr_op_info_of(op);
    mr_error err = MR_ERROR_INIT;
    for (uint32_t i = 0; i < info->param_count; i++) {
        float *w = rig_memory(r, info->param[i].storage_count * sizeof(float)), *back = floats(info->param[i].count, 1);
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
        for (size_t k = 0; k < count; k++) variance += pow(plain.x[k * m->d.in.c + c] - mean, 2) / (double)count;
        close_to("running mean", &m->d, c, (double)a->state[0][c], 0.9 * 0.5 + 0.1 * mean);
        close_to("running variance", &m->d, c, (double)a->state[1][c], 0.9 * 1.5 + 0.1 * variance);
    }
}

/* The whole life of one operation on n samples. */
static void check_case(struct rig *r, mr_op_desc d, uint32_t n)
{
    mr_error err = MR_ERROR_INIT;
    mr_op   *op;
    d.training = true;
    MRT_OK(mr_op_create(&op, r->dev, &d, &err), &err);
    const mr_op_info *info = mr_op_info_of(op);
    const mr_tensor  *in = &d.in, *out = &info->out;
    const size_t x_count = (size_t)n * pixels_of(in) * in->c, y_count = (size_t)n * pixels_of(out) * out->c;

    struct host_copy h = {.x = floats(x_count, 3), .y = floats(y_count, 4), .dy = floats(y_count, 5), .dx = floats(x_count, 6)};
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

    struct model m = {.d = d, .out = {out->h, out->w, out->c, 0, 0, 0}, .n = n, .training = true, .x = doubles(h.x, x_count)};
    if (info->param_count) {
        m.p0 = doubles(h.param[0], info->param[0].count);
        m.p1 = doubles(h.param[1], info->param[1].count);
    }
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
    free(h.x), free(h.y), free(h.dy), free(h.dx);
    free(m.x), free(m.p0), free(m.p1), free(y);
    mr_op_destroy(op);
    rig_release(r);
}

/* ---- shapes ---- */

static const uint32_t all_layouts[] = {MR_LAYOUT_NHWC, MRI_LAYOUT_NCHW, MRI_LAYOUT_C8, MRI_LAYOUT_C16};

/* Plain C takes NHWC; the fast operations take every layout. Batches: one, a few, the most. */
static void check_everywhere(mr_op_desc d)
{
    const uint32_t h = d.in.h, w = d.in.w, c = d.in.c;
    d.max_batch = 5;
    for (int reference = 0; reference < 2; reference++) {
        struct rig r;
        rig_open(&r, "cpu", reference);
        for (size_t l = 0; l < (reference ? 1 : MRI_ARRAY_COUNT(all_layouts)); l++) {
            d.in = rig_tensor(h, w, c, all_layouts[l]);
            check_case(&r, d, 1);
            check_case(&r, d, 3);
            check_case(&r, d, 5);
        }
        rig_close(&r);
    }
}

static mr_op_desc window(mr_op_kind kind, uint32_t h, uint32_t w, uint32_t c, uint32_t kernel_h, uint32_t kernel_w, uint32_t stride,
                         uint32_t pad)
{
    return (mr_op_desc){.kind = kind, .in = {h, w, c, MR_TENSOR_F32, 0, 0}, .need_dx = true, .kernel_h = kernel_h,
                        .kernel_w = kernel_w, .stride_h = stride, .stride_w = stride, .pad_top = pad, .pad_left = pad,
                        .pad_bottom = pad, .pad_right = pad};
}

static void conv2d_is_right(void **state)
{
    (void)state;
    static const struct { uint32_t h, w, c, f, kh, kw, stride, pad; mr_activation act; bool dx; } cases[] = {
        {1, 1, 1, 1, 1, 1, 1, 0, MR_ACT_NONE, true},     {7, 5, 3, 4, 3, 3, 1, 1, MR_ACT_RELU, false},
        {7, 5, 3, 17, 3, 2, 2, 1, MR_ACT_TANH, true},    {6, 6, 16, 16, 3, 3, 1, 0, MR_ACT_RELU, true},
        {5, 4, 20, 24, 3, 3, 1, 1, MR_ACT_SIGMOID, true}, {9, 9, 32, 16, 5, 5, 2, 2, MR_ACT_SELU, true},
        {4, 4, 33, 5, 1, 1, 1, 0, MR_ACT_RELU, true},    {8, 8, 1, 32, 3, 3, 1, 0, MR_ACT_RELU, false},
    };
    for (size_t i = 0; i < MRI_ARRAY_COUNT(cases); i++) {
        mr_op_desc d = window(MR_OP_CONV2D, cases[i].h, cases[i].w, cases[i].c, cases[i].kh, cases[i].kw, cases[i].stride, cases[i].pad);
        d.filters = cases[i].f;
        d.activation = cases[i].act;
        d.need_dx = cases[i].dx;
        check_everywhere(d);
    }
}

static void uneven_padding_is_right(void **state)
{
    (void)state;
    mr_op_desc d = window(MR_OP_CONV2D, 6, 7, 3, 4, 3, 2, 0);
    d.filters = 6;
    d.pad_bottom = 1, d.pad_left = 2;
    check_everywhere(d);
    d = window(MR_OP_POOL2D, 6, 7, 5, 3, 3, 2, 0);
    d.pad_bottom = 1, d.pad_left = 2;
    check_everywhere(d);
    d.average = true;
    check_everywhere(d);
}

static void pool2d_is_right(void **state)
{
    (void)state;
    static const struct { uint32_t h, w, c, k, stride, pad; } cases[] = {
        {1, 1, 1, 1, 1, 0}, {7, 5, 3, 2, 2, 0}, {8, 8, 32, 2, 2, 0}, {7, 7, 17, 3, 2, 1}, {6, 4, 8, 3, 1, 1}, {7, 7, 16, 7, 7, 0},
    };
    for (size_t i = 0; i < MRI_ARRAY_COUNT(cases); i++) {
        mr_op_desc d = window(MR_OP_POOL2D, cases[i].h, cases[i].w, cases[i].c, cases[i].k, cases[i].k, cases[i].stride, cases[i].pad);
        check_everywhere(d);
        d.average = true;
        check_everywhere(d);
    }
}

static void dense_is_right(void **state)
{
    (void)state;
    static const struct { uint32_t h, w, c, units; mr_activation act; bool dx; } cases[] = {
        {1, 1, 1, 1, MR_ACT_NONE, true},  {7, 5, 3, 4, MR_ACT_RELU, true},    {1, 1, 100, 10, MR_ACT_NONE, true},
        {3, 3, 20, 33, MR_ACT_TANH, true}, {2, 3, 16, 64, MR_ACT_RELU, false}, {1, 1, 37, 130, MR_ACT_SIGMOID, true},
    };
    for (size_t i = 0; i < MRI_ARRAY_COUNT(cases); i++)
        check_everywhere((mr_op_desc){.kind = MR_OP_DENSE, .in = {cases[i].h, cases[i].w, cases[i].c, MR_TENSOR_F32, 0, 0},
                                      .need_dx = cases[i].dx, .activation = cases[i].act, .filters = cases[i].units});
}

static void activations_are_right(void **state)
{
    (void)state;
    for (int k = MR_ACT_NONE; k <= MR_ACT_SELU; k++)
        check_everywhere((mr_op_desc){.kind = MR_OP_ACTIVATION, .in = {7, 5, 3, MR_TENSOR_F32, 0, 0}, .need_dx = true,
                                      .activation = (mr_activation)k});
}

static void batchnorm_is_right(void **state)
{
    (void)state;
    static const uint32_t channels[] = {1, 3, 17, 32};
    static const mr_activation acts[] = {MR_ACT_NONE, MR_ACT_RELU, MR_ACT_SIGMOID, MR_ACT_RELU};
    for (int k = 0; k < 4; k++)
        check_everywhere((mr_op_desc){.kind = MR_OP_BATCHNORM, .in = {5, 3, channels[k], MR_TENSOR_F32, 0, 0}, .need_dx = k != 1,
                                      .activation = acts[k], .momentum = 0.9f, .epsilon = 1e-3f});
}

/* Of equal values the first in row order takes the whole gradient. */
static void pool_ties_go_to_the_first(void **state)
{
    (void)state;
    for (int reference = 0; reference < 2; reference++)
        for (size_t l = 0; l < (reference ? 1 : MRI_ARRAY_COUNT(all_layouts)); l++) {
            struct rig r;
            mr_error   err = MR_ERROR_INIT;
            mr_op     *op;
            rig_open(&r, "cpu", reference);
            mr_op_desc d = window(MR_OP_POOL2D, 4, 4, 16, 2, 2, 2, 0);
            d.in = rig_tensor(4, 4, 16, all_layouts[l]);
            d.training = true;
            d.max_batch = 1;
            MRT_OK(mr_op_create(&op, r.dev, &d, &err), &err);
            const mr_op_info *info = mr_op_info_of(op);
            mr_op_args a = {.n = 1, .training = true, .x = rig_memory(&r, d.in.sample_bytes), .y = rig_memory(&r, info->out.sample_bytes),
                            .dy = rig_memory(&r, info->out.sample_bytes), .dx = rig_memory(&r, d.in.sample_bytes),
                            .saved = rig_memory(&r, info->saved_bytes), .scratch = rig_memory(&r, info->scratch_bytes)};
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
    mr_error   err = MR_ERROR_INIT;
    mr_op     *op = (mr_op *)&err;
    rig_open(&r, "cpu", false);
    if (d.max_batch == 0) d.max_batch = 1;
    if (d.in.sample_bytes == 0) d.in.sample_bytes = (size_t)d.in.h * d.in.w * d.in.c * (d.in.dtype == MR_TENSOR_U8 ? 1 : 4);
    MRT_EQ(mr_op_create(&op, r.dev, &d, &err), code);
    MRT_TRUE(op == NULL);
    MRT_HAS(err.text, part);
    rig_close(&r);
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    const mr_tensor f = {4, 4, 3, MR_TENSOR_F32, 0, 0}, u8 = {4, 4, 3, MR_TENSOR_U8, 0, 0};
    mr_op_desc d = window(MR_OP_CONV2D, 4, 4, 3, 5, 5, 1, 0);
    d.filters = 1;
    refuse(d, MR_EINVAL, "does not fit");
    d = window(MR_OP_CONV2D, 4, 4, 3, 3, 3, 1, 3);
    d.filters = 1;
    refuse(d, MR_EINVAL, "padding must be smaller");
    d = window(MR_OP_CONV2D, 4, 4, 3, 3, 3, 0, 0);
    d.filters = 1;
    refuse(d, MR_EINVAL, "stride");
    refuse(window(MR_OP_CONV2D, 4, 4, 3, 3, 3, 1, 0), MR_EINVAL, "filters");
    d = window(MR_OP_CONV2D, 4, 4, 1 << 20, 3, 3, 1, 0);
    d.filters = 1 << 20;
    refuse(d, MR_EINVAL, "too large");
    refuse((mr_op_desc){.kind = (mr_op_kind)42, .in = f}, MR_EINVAL, "unknown operation");
    refuse((mr_op_desc){.kind = MR_OP_DENSE, .in = u8, .filters = 1}, MR_EINVAL, "f32");
    refuse((mr_op_desc){.kind = MR_OP_DENSE, .in = f}, MR_EINVAL, "units");
    refuse((mr_op_desc){.kind = MR_OP_DENSE, .in = {0, 4, 3, MR_TENSOR_F32, 0, 0}, .filters = 1}, MR_EINVAL, "every side");
    refuse((mr_op_desc){.kind = MR_OP_DENSE, .in = {4, 4, 3, MR_TENSOR_F32, 9, 0}, .filters = 1}, MR_EINVAL, "layout 9");
    refuse((mr_op_desc){.kind = MR_OP_DENSE, .in = {4, 4, 3, MR_TENSOR_F32, 0, 7}, .filters = 1}, MR_EINVAL, "7 bytes");
    refuse((mr_op_desc){.kind = MR_OP_DENSE, .in = f, .filters = 1, .max_batch = UINT32_MAX}, MR_EINVAL, "max_batch");
    refuse((mr_op_desc){.kind = MR_OP_DROPOUT, .in = f, .rate = 1}, MR_EINVAL, "rate");
    refuse((mr_op_desc){.kind = MR_OP_DROPOUT, .in = f, .rate = NAN}, MR_EINVAL, "rate");
    refuse((mr_op_desc){.kind = MR_OP_ACTIVATION, .in = f, .activation = (mr_activation)9}, MR_EINVAL, "activation");
    refuse((mr_op_desc){.kind = MR_OP_BATCHNORM, .in = f}, MR_EINVAL, "epsilon");
    refuse((mr_op_desc){.kind = MR_OP_BATCHNORM, .in = f, .epsilon = 1, .momentum = 2}, MR_EINVAL, "momentum");
    refuse((mr_op_desc){.kind = MR_OP_LOSS, .in = f}, MR_EINVAL, "vector");
    refuse((mr_op_desc){.kind = MR_OP_INPUT, .in = f}, MR_EINVAL, "uint8");
    refuse((mr_op_desc){.kind = MR_OP_INPUT, .in = u8}, MR_EINVAL, "std");
    refuse((mr_op_desc){.kind = MR_OP_INPUT, .in = {4, 4, 5, MR_TENSOR_U8, 0, 0}}, MR_EINVAL, "4 channels");
    refuse(window(MR_OP_POOL2D, 1000, 1000, 1, 300, 300, 1, 0), MR_EUNSUPPORTED, "65536");
}

static void calls_are_checked(void **state)
{
    (void)state;
    struct rig r;
    mr_error   err = MR_ERROR_INIT;
    mr_op     *op;
    float      w[4] = {0};
    rig_open(&r, "cpu", false);
    mr_op_desc d = {.kind = MR_OP_DENSE, .in = {1, 1, 2, MR_TENSOR_F32, 0, 8}, .max_batch = 2, .filters = 2};
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
    rig_close(&r);
}

static void failed_allocations_are_told(void **state)
{
    (void)state;
    for (int kind = MR_OP_CONV2D; kind <= MR_OP_LOSS; kind++)
        for (int n = 0;; n++) {
            struct rig r;
            mr_error   err = MR_ERROR_INIT;
            mr_op     *op = (mr_op *)&err;
            mr_op_desc d = window((mr_op_kind)kind, 1, 1, 8, 1, 1, 1, 0);
            d.in.sample_bytes = 32;
            d.filters = 4;
            d.max_batch = 2;
            d.epsilon = 1;
            d.training = true;
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
        cmocka_unit_test(conv2d_is_right),           cmocka_unit_test(uneven_padding_is_right),
        cmocka_unit_test(pool2d_is_right),           cmocka_unit_test(pool_ties_go_to_the_first),
        cmocka_unit_test(dense_is_right),            cmocka_unit_test(activations_are_right),
        cmocka_unit_test(batchnorm_is_right),        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(calls_are_checked),         cmocka_unit_test(failed_allocations_are_told),
    };
    return mrt_run(tests);
}
