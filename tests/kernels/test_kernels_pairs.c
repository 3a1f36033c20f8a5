/* kernels: operations on two tensors of one shape: draws from normal distributions, and losses. */
#include "tests/kernels/rig.h"

/* ---- draws ---- */

enum { ELEMENTS = 50000 };

/* One forward pass of n samples of `elements`, into y. */
static void draw(struct rig *r, uint32_t n, uint32_t elements, uint32_t first, uint64_t step, uint32_t op_id,
                 bool training, float mean, float log_variance, float *y)
{
    mr_error err = MR_ERROR_INIT;
    mr_op *op;
    const mr_op_desc d = {.kind = MR_OP_SAMPLE,
                          .in = rig_tensor(1, 1, elements, 0),
                          .in2 = rig_tensor(1, 1, elements, 0),
                          .max_batch = n,
                          .sample.op_id = op_id};
    MRT_OK(mr_op_create(&op, r->dev, &d, &err), &err);
    const size_t bytes = (size_t)n * elements * sizeof(float);
    float *x = rig_memory(r, bytes), *x2 = rig_memory(r, bytes), *out = rig_memory(r, bytes);
    mr_step_values *values = rig_memory(r, sizeof *values);
    values->step = step;
    for (size_t i = 0; i < (size_t)n * elements; i++) x[i] = mean, x2[i] = log_variance;
    const mr_op_args a = {.n = n,
                          .first = first,
                          .seed = 7,
                          .x = x,
                          .x2 = x2,
                          .y = out,
                          .values = values,
                          .training = training};
    MRT_OK(mr_op_forward_async(op, r->s, &a), NULL);
    MRT_OK(mr_stream_sync(r->s, &err), &err);
    memcpy(y, out, bytes);
    mr_op_destroy(op);
    rig_release(r);
}

/* Moments of 50,000 draws: within five standard deviations of their expectations. */
static void draws_are_normal(void **state)
{
    (void)state;
    struct rig r;
    float *y = malloc(ELEMENTS * sizeof *y);
    double m[5] = {0};
    rig_open(&r, "cpu", false);
    draw(&r, 1, ELEMENTS, 3, 11, 0, true, 2, 2 * logf(3), y);
    for (int i = 0; i < ELEMENTS; i++) {
        const double z = ((double)y[i] - 2) / 3;
        for (int k = 1; k < 5; k++) m[k] += pow(z, k) / ELEMENTS;
        MRT_TRUE(fabs(z) < 6);
    }
    const double root = sqrt(1.0 / ELEMENTS);
    MRT_TRUE(fabs(m[1]) < 5 * root && fabs(m[2] - 1) < 5 * sqrt(2) * root);
    MRT_TRUE(fabs(m[3]) < 5 * sqrt(15) * root && fabs(m[4] - 3) < 5 * sqrt(96) * root);
    double together = 0; /* of neighbours, which come from one pair of words */
    for (int i = 0; i + 1 < ELEMENTS; i++)
        together += ((double)y[i] - 2) * ((double)y[i + 1] - 2) / 9 / ELEMENTS;
    MRT_TRUE(fabs(together) < 5 * root);
    free(y);
    rig_close(&r);
}

static void draws_depend_on_nothing_else(void **state)
{
    (void)state;
    struct rig r;
    enum { N = 5, C = 7 };
    float whole[N * C], part[N * C], other[N * C];
    rig_open(&r, "cpu", false);
    draw(&r, N, C, 10, 3, 2, true, 1, 0.5f, whole);
    draw(&r, 2, C, 13, 3, 2, true, 1, 0.5f, part);
    MRT_TRUE(memcmp(whole + 3 * C, part, 2 * C * sizeof(float)) == 0);
    draw(&r, N, C, 10, 3, 2, false, 1, 0.5f, other); /* evaluation draws, too */
    MRT_TRUE(memcmp(whole, other, sizeof whole) == 0);
    draw(&r, N, C, 10, 4, 2, true, 1, 0.5f, other);
    for (int i = 0; i < N * C; i++) MRT_TRUE(whole[i] != other[i]);
    draw(&r, N, C, 10, 3, 3, true, 1, 0.5f, other);
    for (int i = 0; i < N * C; i++) MRT_TRUE(whole[i] != other[i]);
    rig_close(&r);
}

/* ---- against numeric gradients in double ---- */

static double pair_value(mr_pair_loss kind, double x, double x2)
{
    const double s = 1 / (1 + exp(-x));
    if (kind == MR_PAIR_CROSS_ENTROPY) return -(x2 * log(s) + (1 - x2) * log(1 - s));
    if (kind == MR_PAIR_SQUARES) return (x - x2) * (x - x2);
    if (kind == MR_PAIR_ABSOLUTE) return fabs(x - x2);
    if (kind == MR_PAIR_HUBER) return fabs(x - x2) < 1 ? (x - x2) * (x - x2) / 2 : fabs(x - x2) - 0.5;
    return -0.5 * (1 + x2 - x * x - exp(x2));
}

/* The loss of a pixel's c values, with value number `at` off by du and dv. */
static double pixel_value(mr_pair_loss kind, const float *x, const float *x2, uint32_t c, size_t at,
                          double du, double dv)
{
    double loss = 0, sum = 0;
    for (uint32_t k = 0; k < c; k++) sum += exp((double)x[k] + (k == at ? du : 0));
    for (uint32_t k = 0; k < c; k++) {
        const double u = (double)x[k] + (k == at ? du : 0), v = (double)x2[k] + (k == at ? dv : 0);
        loss += kind == MR_PAIR_CLASSES ? v * (log(sum) - u) : pair_value(kind, u, v);
    }
    return loss;
}

static void close_to(const char *what, int kind, size_t at, double found, double expected)
{
    if (fabs(found - expected) <= 1e-5 * (1 + fabs(expected))) return;
    fail_msg("%s of loss %d, element %zu: found %g, expected %g", what, kind, at, found, expected);
}

/* Samples 1 and 4 do not count, where labels say so. */
static void check_pair(mr_tensor shape, uint32_t layout, uint32_t layout2, mr_pair_loss kind, float weight,
                       bool silent, bool labelled)
{
    enum { N = 5 };
    struct rig r;
    mr_error err = MR_ERROR_INIT;
    mr_op *op;
    rig_open(&r, "cpu", false);
    const mr_op_desc d = {.kind = MR_OP_PAIR_LOSS,
                          .in = rig_tensor(shape.h, shape.w, shape.c, layout),
                          .in2 = rig_tensor(shape.h, shape.w, shape.c, layout2),
                          .max_batch = N,
                          .training = true,
                          .need_dx = true,
                          .pair_loss = {.kind = kind, .weight = weight, .silent = silent}};
    MRT_OK(mr_op_create(&op, r.dev, &d, &err), &err);
    const size_t each = (size_t)shape.h * shape.w * shape.c, count = N * each;
    float *x = calloc(count, sizeof *x), *x2 = calloc(count, sizeof *x2),
          *found = calloc(count, sizeof *found);
    rig_noise(x, count, 1);
    rig_noise(x2, count, 2);
    for (size_t i = 0; i < count; i++) {
        x[i] *= 5;
        if (kind == MR_PAIR_CROSS_ENTROPY) x2[i] = i % 7 ? 0.5f + x2[i] / 2 : (float)(i % 2);
    }
    static const int32_t labels[N] = {0, -1, 3, 1 << 30, -5}; /* no class is asked for */
    mr_op_args a = {.n = N, .training = true};
    float *sx = rig_memory(&r, d.in.sample_bytes * N), *sx2 = rig_memory(&r, d.in2.sample_bytes * N);
    rig_store(&d.in, N, sx, x);
    rig_store(&d.in2, N, sx2, x2);
    mr_step_values *values = rig_memory(&r, sizeof *values);
    values->scale = 0.25f;
    a.x = sx, a.x2 = sx2, a.values = values;
    a.dx = rig_memory(&r, d.in.sample_bytes * N), a.dx2 = rig_memory(&r, d.in2.sample_bytes * N);
    memset(a.dx, 0x7F, d.in.sample_bytes * N), memset(a.dx2, 0x7F, d.in2.sample_bytes * N);
    a.metrics = rig_memory(&r, sizeof *a.metrics);
    a.metrics->loss_sum = 3, a.metrics->count = 1; /* added to */
    a.scratch = rig_memory(&r, mr_op_info_of(op)->scratch_bytes);
    if (labelled) a.labels = labels;
    MRT_OK(mr_op_forward_async(op, r.s, &a), NULL);
    MRT_OK(mr_op_backward_async(op, r.s, &a), NULL);
    MRT_OK(mr_stream_sync(r.s, &err), &err);

    const double w = weight > 0 ? (double)weight : 1, eps = 1e-4;
    double sum = 0;
    const uint32_t c = shape.c;
    for (size_t i = 0; i < count; i += c)
        if (!labelled || labels[i / each] >= 0) sum += w * pixel_value(kind, x + i, x2 + i, c, 0, 0, 0);
    close_to("sum", kind, 0, a.metrics->loss_sum, 3 + sum);
    MRT_EQ(a.metrics->count, 1 + (silent ? 0 : labelled ? 3 : N));
    MRT_TRUE(a.metrics->correct == 0 && a.metrics->bad == 0);
    rig_padding_is_zero(&d.in, N, a.dx);
    rig_load(&d.in, N, a.dx, found);
    for (size_t i = 0; i < count; i++) {
        const float *u = x + i / c * c, *v = x2 + i / c * c;
        const bool counts = !labelled || labels[i / each] >= 0;
        const double up = pixel_value(kind, u, v, c, i % c, eps, 0),
                     slope = (up - pixel_value(kind, u, v, c, i % c, -eps, 0)) / (2 * eps);
        close_to("dx", kind, i, (double)found[i], counts ? 0.25 * w * slope : 0);
    }
    rig_padding_is_zero(&d.in2, N, a.dx2);
    rig_load(&d.in2, N, a.dx2, found);
    for (size_t i = 0; i < count; i++) {
        const float *u = x + i / c * c, *v = x2 + i / c * c;
        const bool counts = !labelled || labels[i / each] >= 0;
        const double up = pixel_value(kind, u, v, c, i % c, 0, eps),
                     slope = (up - pixel_value(kind, u, v, c, i % c, 0, -eps)) / (2 * eps);
        close_to("dx2", kind, i, (double)found[i], counts ? 0.25 * w * slope : 0);
    }
    free(x), free(x2), free(found);
    mr_op_destroy(op);
    rig_close(&r);
}

static void pair_losses_are_right(void **state)
{
    (void)state;
    static const mr_tensor shapes[] = {{1, 1, 2, 0, 0, 0}, {4, 3, 1, 0, 0, 0}, {3, 5, 17, 0, 0, 0}};
    static const uint32_t layouts[][2] = {
        {MR_LAYOUT_NHWC, MR_LAYOUT_NHWC}, {MRI_LAYOUT_C8, MR_LAYOUT_NHWC}, {MRI_LAYOUT_NCHW, MRI_LAYOUT_C16}};
    int turn = 0;
    for (int kind = 0; kind < (int)MR_PAIR_COUNT; kind++)
        for (size_t s = 0; s < MRI_ARRAY_COUNT(shapes); s++)
            for (size_t l = 0; l < MRI_ARRAY_COUNT(layouts); l++, turn++)
                check_pair(shapes[s], layouts[l][0], layouts[l][1], (mr_pair_loss)kind, turn % 2 ? 0.75f : 0,
                           turn % 3 == 1, turn % 4 < 3);
}

/* Logits so large that the sigmoid is 0 or 1 in float. */
static void far_logits_stay_finite(void **state)
{
    (void)state;
    struct rig r;
    mr_error err = MR_ERROR_INIT;
    mr_op *op;
    rig_open(&r, "cpu", false);
    const mr_op_desc d = {.kind = MR_OP_PAIR_LOSS,
                          .in = rig_tensor(1, 1, 4, 0),
                          .in2 = rig_tensor(1, 1, 4, 0),
                          .max_batch = 1,
                          .training = true,
                          .need_dx = true};
    MRT_OK(mr_op_create(&op, r.dev, &d, &err), &err);
    float *x = rig_memory(&r, 16), *x2 = rig_memory(&r, 16), *dx = rig_memory(&r, 16);
    mr_step_values *values = rig_memory(&r, sizeof *values);
    mr_metrics *m = rig_memory(&r, sizeof *m);
    static const float logits[] = {200, -200, 200, -200}, wanted[] = {1, 0, 0, 1};
    memcpy(x, logits, 16), memcpy(x2, wanted, 16);
    values->scale = 1;
    const mr_op_args a = {.n = 1,
                          .training = true,
                          .x = x,
                          .x2 = x2,
                          .dx = dx,
                          .values = values,
                          .metrics = m,
                          .scratch = rig_memory(&r, mr_op_info_of(op)->scratch_bytes)};
    MRT_OK(mr_op_forward_async(op, r.s, &a), NULL);
    MRT_OK(mr_op_backward_async(op, r.s, &a), NULL);
    MRT_OK(mr_stream_sync(r.s, &err), &err);
    MRT_TRUE(m->loss_sum == 400);
    MRT_TRUE(dx[0] == 0 && dx[1] == 0 && dx[2] == 1 && dx[3] == -1);
    mr_op_destroy(op);
    rig_close(&r);
}

/* Correctly predicted elements of the targets are counted; a sample with an invalid one is an error in
 * training if it counts, else a bad sample. */
static void targets_are_checked_and_counted(void **state)
{
    (void)state;
    enum { N = 3, C = 4 };
    static const float logits[N * C] = {1, -1, 0, 3, 9, 9, 9, 9, -2, -2, 0.1f, 0};
    static const float wanted[N * C] = {1, 0, 0, 0.4f, -7, NAN, 2, 1, 1, 0, 0.6f, 0.5f};
    static const int32_t labels[N] = {0, -1, 5};
    static const struct {
        mr_pair_loss kind;
        float value; /* in place of a target */
        const char *what;
    } cases[] = {{MR_PAIR_CROSS_ENTROPY, 0.25f, NULL},
                 {MR_PAIR_CROSS_ENTROPY, 1.5f, "sample 2 of the batch has a target of 1.5: expected 0 to 1"},
                 {MR_PAIR_CROSS_ENTROPY, NAN, "a target of nan: expected 0 to 1"},
                 {MR_PAIR_SQUARES, -1e10f, NULL},
                 {MR_PAIR_SQUARES, NAN, "sample 2 of the batch has a target of nan: expected finite numbers"},
                 {MR_PAIR_HUBER, -INFINITY, "a target of -inf: expected finite"}};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(cases); k++) {
        struct rig r;
        mr_error err = MR_ERROR_INIT;
        mr_op *op;
        rig_open(&r, "cpu", false);
        const mr_op_desc d = {.kind = MR_OP_PAIR_LOSS,
                              .in = rig_tensor(1, 1, C, 0),
                              .in2 = rig_tensor(1, 1, C, 0),
                              .max_batch = N,
                              .training = true,
                              .need_dx = true,
                              .pair_loss = {.kind = cases[k].kind, .targets = true}};
        MRT_OK(mr_op_create(&op, r.dev, &d, &err), &err);
        float *x = rig_memory(&r, sizeof logits), *x2 = rig_memory(&r, sizeof wanted);
        memcpy(x, logits, sizeof logits), memcpy(x2, wanted, sizeof wanted);
        x2[2 * C + 2] = cases[k].value;
        mr_op_args a = {.n = N, .x = x, .x2 = x2, .labels = labels};
        a.metrics = rig_memory(&r, sizeof *a.metrics);
        a.scratch = rig_memory(&r, mr_op_info_of(op)->scratch_bytes);
        MRT_OK(mr_op_forward_async(op, r.s, &a), NULL);
        MRT_OK(mr_stream_sync(r.s, &err), &err);
        const uint64_t bad = cases[k].what ? 1 : 0;
        MRT_TRUE(a.metrics->bad == bad && a.metrics->count == 2 - bad && isfinite(a.metrics->loss_sum));
        *a.metrics = (mr_metrics){0};
        a.training = true;
        MRT_OK(mr_op_forward_async(op, r.s, &a), NULL);
        MRT_EQ(mr_stream_sync(r.s, &err), cases[k].what ? MR_EINVAL : MR_OK);
        if (cases[k].what) MRT_HAS(err.text, cases[k].what);
        else MRT_TRUE(a.metrics->count == 2 && a.metrics->bad == 0 && isfinite(a.metrics->loss_sum));
        /* right: 1, 0, 0 of the first; 0, 0.5 of the last, for which 0.25 wants no */
        if (!cases[k].what) MRT_EQ(a.metrics->correct, cases[k].kind == MR_PAIR_CROSS_ENTROPY ? 5 : 0);
        mr_op_destroy(op);
        rig_close(&r);
    }
}

/* A loss against labels with a weight, and one that is not the first of its network. */
static void losses_have_weights(void **state)
{
    (void)state;
    static const float logits[] = {1, 2, 0, 0.5f, -1, 3};
    static const int32_t labels[] = {1, 0};
    struct rig r;
    mr_error err = MR_ERROR_INIT;
    double sums[2];
    float dx[2][6];
    for (int k = 0; k < 2; k++) {
        mr_op *op;
        rig_open(&r, "cpu", false);
        const mr_op_desc d = {.kind = MR_OP_LOSS,
                              .in = rig_tensor(1, 1, 3, 0),
                              .max_batch = 2,
                              .training = true,
                              .need_dx = true,
                              .loss = {.weight = k ? 4 : 0, .silent = k}};
        MRT_OK(mr_op_create(&op, r.dev, &d, &err), &err);
        float *x = rig_memory(&r, sizeof logits);
        memcpy(x, logits, sizeof logits);
        mr_step_values *values = rig_memory(&r, sizeof *values);
        values->scale = 0.5f;
        mr_op_args a = {.n = 2, .training = true, .x = x, .labels = labels, .values = values};
        a.dx = rig_memory(&r, sizeof logits), a.metrics = rig_memory(&r, sizeof *a.metrics);
        a.scratch = rig_memory(&r, mr_op_info_of(op)->scratch_bytes);
        MRT_OK(mr_op_forward_async(op, r.s, &a), NULL);
        MRT_OK(mr_op_backward_async(op, r.s, &a), NULL);
        MRT_OK(mr_stream_sync(r.s, &err), &err);
        sums[k] = a.metrics->loss_sum;
        MRT_TRUE(a.metrics->count == (k ? 0 : 2) && a.metrics->correct == (k ? 0 : 1));
        memcpy(dx[k], a.dx, sizeof dx[k]);
        mr_op_destroy(op);
        rig_close(&r);
    }
    MRT_TRUE(sums[0] > 0 && fabs(sums[1] - 4 * sums[0]) < 1e-12);
    for (int i = 0; i < 6; i++) MRT_TRUE(fabsf(dx[1][i] - 4 * dx[0][i]) < 1e-6f && dx[0][i] != 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draws_are_normal),
        cmocka_unit_test(draws_depend_on_nothing_else),
        cmocka_unit_test(pair_losses_are_right),
        cmocka_unit_test(far_logits_stay_finite),
        cmocka_unit_test(targets_are_checked_and_counted),
        cmocka_unit_test(losses_have_weights),
    };
    return mrt_run(tests);
}
