/* The life of one operation: parameters in and out, forward, backward, and for batch norms evaluation; each
 * result against the slow pass. Numeric gradients are taken at some elements only: each costs two slow
 * passes. */
#include "tests/kernels/op_check.h"

#include "tests/kernels/slow_pass.h"

const uint32_t all_layouts[4] = {MR_LAYOUT_NHWC, MRI_LAYOUT_NCHW, MRI_LAYOUT_C8, MRI_LAYOUT_C16};

void close_to(const char *what, const mr_op_desc *d, size_t at, double found, double expected)
{
    if (fabs(found - expected) <= 3e-4 * (1 + fabs(expected))) return;
    fail_msg("%s of kind %d, input %ux%ux%u, element %zu: found %g, expected %g", what, (int)d->kind, d->in.h,
             d->in.w, d->in.c, at, found, expected);
}

/* Numeric gradients of one batch size, in the order in which they are checked. A layout changes none of them:
 * the first check computes them, the checks of other layouts read them. */
struct gradients {
    double value[96];
    size_t known, at;
};

static double numeric_gradient(struct gradients *g, const struct model *m, double *value, const float *dy,
                               double *y)
{
    if (g->at == g->known) {
        MRT_TRUE(g->known < MRI_ARRAY_COUNT(g->value));
        const double before = *value, eps = 1e-5;
        *value = before + eps;
        const double up = score(m, dy, y);
        *value = before - eps;
        const double down = score(m, dy, y);
        *value = before;
        g->value[g->known++] = (up - down) / (2 * eps);
    }
    return g->value[g->at++];
}

/* Numeric gradients at up to 12 elements of values against found. */
static void check_gradient(const char *what, struct gradients *g, const struct model *m, double *values,
                           size_t count, const float *found, const float *dy, double *y)
{
    const size_t stride = count / 12 + 1;
    for (size_t k = 0; k < count; k += stride)
        close_to(what, &m->d, k, (double)found[k], numeric_gradient(g, m, &values[k], dy, y));
}

static double *doubles(const float *f, size_t count)
{
    double *d = malloc((count + 1) * sizeof *d);
    MRT_TRUE(d != NULL);
    for (size_t i = 0; i < count; i++) d[i] = (double)f[i];
    return d;
}

float *floats(size_t count, uint64_t seed)
{
    float *f = malloc((count + 1) * sizeof *f);
    MRT_TRUE(f != NULL);
    rig_noise(f, count, seed);
    return f;
}

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

void import_params(struct rig *r, mr_op *op, mr_op_args *a, struct host_copy *h)
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
static void check_case(struct rig *r, mr_op_desc d, uint32_t n, struct gradients *g)
{
    mr_error err = MR_ERROR_INIT;
    mr_op *op;
    d.training = true;
    g->at = 0;
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
        check_gradient("dx", g, &m, m.x, x_count, h.dx, h.dy, y);
    }
    if (a.x2) { /* if x2's gradient has no memory of its own, it is in dy */
        const float *const dx2 = info->writes_dx2 ? a.dx2 : a.dy;
        rig_padding_is_zero(second, n, dx2);
        rig_load(second, n, dx2, h.y);
        check_gradient("dx2", g, &m, m.x2, x2_count, h.y, h.dy, y);
    }
    double *const params[2] = {m.p0, m.p1};
    for (uint32_t i = 0; i < info->param_count; i++) {
        MRT_OK(mr_op_param_export(op, false, i, a.dparam[i], h.dparam[i], &err), &err);
        check_gradient("dparam", g, &m, params[i], info->param[i].count, h.dparam[i], h.dy, y);
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

void check_everywhere(mr_op_desc d)
{
    const uint32_t h = d.in.h, w = d.in.w, c = d.in.c, c2 = d.in2.c ? d.in2.c : c;
    struct gradients g[3] = {0};
    d.max_batch = 5;
    for (int reference = 0; reference < 2; reference++) {
        struct rig r;
        rig_open(&r, "cpu", reference);
        const bool one = reference || d.kind == MR_OP_RESHAPE;
        for (size_t l = 0; l < (one ? 1 : MRI_ARRAY_COUNT(all_layouts)); l++) {
            d.in = rig_tensor(h, w, c, all_layouts[l]);
            d.in2 = rig_tensor(h, w, c2, all_layouts[l]);
            if (d.kind == MR_OP_SCALE) d.in2 = rig_tensor(1, 1, c2, all_layouts[(l + d.in.h) % 4]);
            for (uint32_t k = 0; k < 3; k++) check_case(&r, d, 2 * k + 1, &g[k]);
        }
        rig_close(&r);
    }
}
