/* kernels: recurrent layers, plain C and fast, against a slow forward pass in double and its numeric
 * gradients, on odd shapes; a sample's result is the same to the bit in any batch and on any threads;
 * products of matrices and the functions of gates, for every instruction set of this machine. */
#include <omp.h>

#include "base/simd.h"
#include "kernels/ops/gate_functions.h"
#include "kernels/ops/matrix/product.h"
#include "tests/kernels/rig.h"

enum { MOST_UNITS = 64, GATES = 4, MAX_BATCH = 5 };

/* ---- the slow forward pass ---- */

struct model {
    mr_op_desc d;
    uint32_t n, steps, inputs, units, gates;
    bool lstm;
    double *x, *param[4]; /* x: rows, of numbers too */
};

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

/* Gate g of unit u: what x and what h adds. */
static void sums(const struct model *m, uint32_t g, uint32_t u, const double *x, const double *h, double *in,
                 double *own)
{
    const size_t row = (size_t)g * m->units + u;
    *in = m->param[2][row];
    *own = m->lstm ? 0 : m->param[3][row];
    for (uint32_t k = 0; k < m->inputs; k++) *in += m->param[0][row * m->inputs + k] * x[k];
    for (uint32_t k = 0; k < m->units; k++) *own += m->param[1][row * m->units + k] * h[k];
}

static void step_of(const struct model *m, const double *x, double *h, double *c)
{
    double next[MOST_UNITS], in, own;
    for (uint32_t u = 0; u < m->units; u++) {
        double v[GATES] = {0};
        for (uint32_t g = 0; g < m->gates; g++) {
            sums(m, g, u, x, h, &in, &own);
            const bool reset = !m->lstm && g == 2;
            v[g] = g == 2 ? tanh(in + (reset ? v[0] : 1) * own) : sigmoid(in + own);
        }
        if (m->lstm) {
            c[u] = v[1] * c[u] + v[0] * v[2];
            next[u] = v[3] * tanh(c[u]);
        } else {
            next[u] = (1 - v[1]) * v[2] + v[1] * h[u];
        }
    }
    memcpy(h, next, m->units * sizeof *h);
}

static void run_model(const struct model *m, double *y)
{
    for (uint32_t i = 0; i < m->n; i++) {
        double h[MOST_UNITS] = {0}, c[MOST_UNITS] = {0};
        for (uint32_t t = 0; t < m->steps; t++) {
            step_of(m, m->x + ((size_t)i * m->steps + t) * m->inputs, h, c);
            if (!m->d.recurrent.sequences && t + 1 < m->steps) continue;
            memcpy(y, h, m->units * sizeof *y);
            y += m->units;
        }
    }
}

static size_t outputs(const struct model *m)
{
    return (size_t)m->n * (m->d.recurrent.sequences ? m->steps : 1) * m->units;
}

static double score(const struct model *m, const float *dy, double *y)
{
    double sum = 0;
    run_model(m, y);
    for (size_t k = 0; k < outputs(m); k++) sum += y[k] * (double)dy[k];
    return sum;
}

/* ---- one case ---- */

static void close_to(const char *what, const struct model *m, size_t at, double found, double expected)
{
    if (fabs(found - expected) <= 3e-5 * (1 + fabs(expected))) return;
    fail_msg("%s of %s, %u steps of %u, %u units, batch %u, element %zu: found %g, expected %g", what,
             m->lstm ? "lstm" : "gru", m->steps, m->inputs, m->units, m->n, at, found, expected);
}

static void check_gradient(const char *what, const struct model *m, double *values, size_t count,
                           const float *found, const float *dy, double *y)
{
    for (size_t k = 0; k < count; k += count / 14 + 1) {
        const double before = values[k], eps = 1e-5;
        values[k] = before + eps;
        const double up = score(m, dy, y);
        values[k] = before - eps;
        const double down = score(m, dy, y);
        values[k] = before;
        close_to(what, m, k, (double)found[k], (up - down) / (2 * eps));
    }
}

struct shape {
    uint32_t steps, inputs, units;
    bool numbers, sequences;
};

static mr_op_desc describe(const struct shape *s, bool lstm)
{
    mr_op_desc d = {.kind = lstm ? MR_OP_LSTM : MR_OP_GRU,
                    .in = rig_tensor(1, s->steps, s->inputs, 0),
                    .max_batch = MAX_BATCH,
                    .training = true,
                    .need_dx = !s->numbers,
                    .recurrent = {.units = s->units, .sequences = s->sequences}};
    if (s->numbers) {
        d.in = (mr_tensor){1, s->steps, 1, MR_TENSOR_I32, MR_LAYOUT_NHWC, s->steps * sizeof(int32_t)};
        d.recurrent.classes = s->inputs;
    }
    return d;
}

static int32_t number_of(size_t at, uint32_t classes) /* some of them none of the classes */
{
    return (int32_t)(mri_mix64(at + 17) % (classes + 2)) - 1;
}

static double *zeros(size_t count)
{
    double *d = calloc(count + 1, sizeof *d);
    MRT_TRUE(d != NULL);
    return d;
}

/* x of the case in the rig's memory, and as rows of the model. */
static const void *place_x(struct rig *r, const struct shape *s, uint32_t n, double *rows)
{
    const size_t count = (size_t)n * s->steps;
    if (s->numbers) {
        int32_t *x = rig_memory(r, count * sizeof *x);
        for (size_t k = 0; k < count; k++) {
            x[k] = number_of(k, s->inputs);
            if (x[k] >= 0 && (uint32_t)x[k] < s->inputs) rows[k * s->inputs + (size_t)x[k]] = 1;
        }
        return x;
    }
    float *x = rig_memory(r, count * s->inputs * sizeof *x);
    rig_noise(x, count * s->inputs, 3);
    for (size_t k = 0; k < count * s->inputs; k++) rows[k] = (double)x[k];
    return x;
}

static void place_params(struct rig *r, mr_op *op, struct model *m, mr_op_args *a)
{
    const mr_op_info *info = mr_op_info_of(op);
    mr_error err = MR_ERROR_INIT;
    MRT_EQ(info->param_count, m->lstm ? 3 : 4);
    for (uint32_t p = 0; p < info->param_count; p++) {
        const uint64_t count = info->param[p].count;
        float *w = rig_memory(r, count * sizeof *w), *host = malloc(count * sizeof *host);
        MRT_TRUE(host != NULL);
        rig_noise(host, count, 10 + p);
        MRT_EQ(info->param[p].storage_count, count);
        MRT_OK(mr_op_param_import(op, false, p, w, host, &err), &err);
        m->param[p] = zeros(count);
        for (uint64_t k = 0; k < count; k++) m->param[p][k] = (double)host[k];
        a->param[p] = w;
        a->dparam[p] = rig_memory(r, count * sizeof(float));
        memset(a->dparam[p], 0x7F, count * sizeof(float)); /* written, not added to */
        free(host);
    }
}

static void forward(struct rig *r, mr_op *op, const mr_op_args *a)
{
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mr_op_forward_async(op, r->s, a), NULL);
    MRT_OK(mr_stream_sync(r->s, &err), &err);
}

/* Without saving anything, as evaluation does: the same bits. */
static void check_evaluation(struct rig *r, mr_op *op, const mr_op_args *given, size_t y_count)
{
    mr_op_args a = *given;
    a.training = false;
    a.saved = NULL;
    a.y = rig_memory(r, y_count * sizeof(float));
    forward(r, op, &a);
    MRT_TRUE(memcmp(a.y, given->y, y_count * sizeof(float)) == 0);
}

static void check_case(struct rig *r, const struct shape *s, bool lstm, uint32_t n)
{
    mr_error err = MR_ERROR_INIT;
    mr_op *op;
    struct model m = {.d = describe(s, lstm),
                      .n = n,
                      .steps = s->steps,
                      .inputs = s->inputs,
                      .units = s->units,
                      .gates = lstm ? 4 : 3,
                      .lstm = lstm,
                      .x = zeros((size_t)n * s->steps * s->inputs)};
    const size_t y_count = outputs(&m), x_count = (size_t)n * s->steps * s->inputs;
    MRT_OK(mr_op_create(&op, r->dev, &m.d, &err), &err);
    const mr_op_info *info = mr_op_info_of(op);
    MRT_EQ(info->out.h, 1);
    MRT_EQ(info->out.w, s->sequences ? s->steps : 1);
    MRT_EQ(info->out.c, s->units);
    mr_op_args a = {.n = n,
                    .training = true,
                    .x = place_x(r, s, n, m.x),
                    .y = rig_memory(r, y_count * sizeof(float)),
                    .dy = rig_memory(r, y_count * sizeof(float)),
                    .dx = s->numbers ? NULL : rig_memory(r, x_count * sizeof(float)),
                    .saved = rig_memory(r, info->saved_bytes),
                    .scratch = rig_memory(r, info->scratch_bytes)};
    memset(a.saved, 0x7F, info->saved_bytes);
    memset(a.scratch, 0x7F, info->scratch_bytes);
    float *dy = malloc((y_count + 1) * sizeof *dy);
    double *y = zeros(y_count);
    MRT_TRUE(dy != NULL);
    rig_noise(dy, y_count, 5);
    memcpy(a.dy, dy, y_count * sizeof *dy);
    place_params(r, op, &m, &a);
    forward(r, op, &a);
    run_model(&m, y);
    for (size_t k = 0; k < y_count; k++) close_to("output", &m, k, (double)((float *)a.y)[k], y[k]);
    check_evaluation(r, op, &a, y_count);
    memset(a.scratch, 0x7F, info->scratch_bytes);
    MRT_OK(mr_op_backward_async(op, r->s, &a), NULL);
    MRT_OK(mr_stream_sync(r->s, &err), &err);
    if (a.dx) check_gradient("dx", &m, m.x, x_count, a.dx, dy, y);
    for (uint32_t p = 0; p < info->param_count; p++)
        check_gradient(info->param[p].name, &m, m.param[p], info->param[p].count, a.dparam[p], dy, y);
    for (int p = 0; p < 4; p++) free(m.param[p]);
    free(m.x), free(y), free(dy);
    mr_op_destroy(op);
    rig_release(r);
}

static const struct shape shapes[] = {
    {1, 1, 1, false, true},   {7, 5, 33, false, true},  {7, 33, 5, false, false},
    {1, 3, 17, false, false}, {5, 48, 49, false, true}, {3, 25, 24, false, true},
    {1, 1, 1, true, false},   {7, 6, 33, true, true},   {4, 128, 7, true, false},
};

static void layers_are_right(void **state)
{
    (void)state;
    for (int reference = 0; reference < 2; reference++) {
        struct rig r;
        rig_open(&r, "cpu", reference);
        for (size_t i = 0; i < 2 * MRI_ARRAY_COUNT(shapes); i++)
            for (uint32_t n = 1; n <= MAX_BATCH; n += 2) check_case(&r, &shapes[i / 2], i % 2, n);
        rig_close(&r);
    }
}

/* The same with every instruction set. */
static void layers_are_right_on_any_processor(void **state)
{
    (void)state;
    const mri_simd_level before = mri_simd();
    for (int level = MRI_SIMD_PLAIN; level <= MRI_SIMD_NEON; level++) {
        if (!mri_simd_use((mri_simd_level)level)) continue;
        struct rig r;
        rig_open(&r, "cpu", false);
        for (size_t i = 0; i < 2 * MRI_ARRAY_COUNT(shapes); i++) check_case(&r, &shapes[i / 2], i % 2, 3);
        rig_close(&r);
    }
    MRT_TRUE(mri_simd_use(before));
}

/* ---- bits ---- */

enum { STEPS = 6, INPUTS = 11, UNITS = 33 };

struct outcome {
    float y[MAX_BATCH * STEPS * UNITS], dx[MAX_BATCH * STEPS * INPUTS];
    float dparam[4][GATES * UNITS * UNITS];
};

/* Samples [first, first + n) of one and the same batch, on `devices` replicas of two threads: on the first.
 */
static void run_some(bool lstm, const char *devices, uint32_t first, uint32_t n, struct outcome *out)
{
    struct rig r;
    mr_error err = MR_ERROR_INIT;
    mr_op *op;
    static float x[MAX_BATCH * STEPS * INPUTS], dy[MAX_BATCH * STEPS * UNITS];
    const struct shape s = {STEPS, INPUTS, UNITS, false, true};
    const mr_op_desc d = describe(&s, lstm);
    rig_noise(x, sizeof x / sizeof *x, 31);
    rig_noise(dy, sizeof dy / sizeof *dy, 32);
    rig_open(&r, devices, false);
    MRT_OK(mr_op_create(&op, r.dev, &d, &err), &err);
    const mr_op_info *info = mr_op_info_of(op);
    float *my_x = rig_memory(&r, sizeof x), *my_dy = rig_memory(&r, sizeof dy);
    memcpy(my_x, x + first * STEPS * INPUTS, n * STEPS * INPUTS * sizeof *x);
    memcpy(my_dy, dy + first * STEPS * UNITS, n * STEPS * UNITS * sizeof *dy);
    mr_op_args a = {.n = n,
                    .training = true,
                    .x = my_x,
                    .y = out->y,
                    .dy = my_dy,
                    .dx = out->dx,
                    .saved = rig_memory(&r, info->saved_bytes),
                    .scratch = rig_memory(&r, info->scratch_bytes)};
    struct model m = {.lstm = lstm};
    place_params(&r, op, &m, &a);
    forward(&r, op, &a);
    MRT_OK(mr_op_backward_async(op, r.s, &a), NULL);
    MRT_OK(mr_stream_sync(r.s, &err), &err);
    for (uint32_t p = 0; p < info->param_count; p++) {
        memcpy(out->dparam[p], a.dparam[p], info->param[p].count * sizeof(float));
        free(m.param[p]);
    }
    mr_op_destroy(op);
    rig_close(&r);
}

static void a_sample_gets_the_same_in_any_batch(void **state)
{
    (void)state;
    static struct outcome whole, part;
    for (int lstm = 0; lstm < 2; lstm++) {
        run_some(lstm, "cpu", 0, MAX_BATCH, &whole);
        for (uint32_t first = 0; first < MAX_BATCH; first++)
            for (uint32_t n = 1; n <= MAX_BATCH - first; n++) {
                run_some(lstm, "cpu", first, n, &part);
                MRT_TRUE(memcmp(part.y, whole.y + first * STEPS * UNITS, n * STEPS * UNITS * sizeof(float)) ==
                         0);
                MRT_TRUE(memcmp(part.dx, whole.dx + first * STEPS * INPUTS,
                                n * STEPS * INPUTS * sizeof(float)) == 0);
            }
    }
}

static void bits_do_not_depend_on_threads(void **state)
{
    (void)state;
    static struct outcome one, two;
    for (int lstm = 0; lstm < 2; lstm++) {
        memset(&one, 0, sizeof one);
        memset(&two, 0, sizeof two);
        run_some(lstm, "cpu", 0, MAX_BATCH, &one);
        run_some(lstm, "cpu:2", 0, MAX_BATCH, &two); /* half the threads each */
        MRT_TRUE(memcmp(&one, &two, sizeof one) == 0);
    }
}

/* ---- products ---- */

/* a lies in rows or in columns, and so does b. */
static void check_product(size_t m, size_t n, size_t k, bool turn_a, bool turn_b, uint32_t threads)
{
    float *a = mri_alloc_aligned(MRI_CACHE_LINE, m * k * sizeof *a),
          *b = mri_alloc_aligned(MRI_CACHE_LINE, n * k * sizeof *b), *c = calloc(m * n, sizeof *c),
          *packed = mri_alloc_aligned(MRI_CACHE_LINE, mri_product_packed_floats(k, n) * sizeof *packed),
          *work = mri_alloc_aligned(MRI_CACHE_LINE, mri_product_scratch_floats(m, k, threads) * sizeof *work),
          *plain = calloc(m * n, sizeof *plain);
    MRT_TRUE(a && b && c && packed && work && plain);
    rig_noise(a, m * k, 1);
    rig_noise(b, n * k, 2);
    const struct mri_matrix ma = {a, turn_a ? 1 : k, turn_a ? m : 1},
                            mb = {b, turn_b ? 1 : n, turn_b ? k : 1};
    mri_product_pack(packed, &mb, k, n);
    mri_product_run(m, n, k, &ma, packed, c, n, work);
    mri_product_plain(m, n, k, &ma, &mb, plain, n);
    for (size_t i = 0; i < m; i += m / 7 + 1)
        for (size_t j = 0; j < n; j++) {
            double sum = 0;
            for (size_t l = 0; l < k; l++)
                sum += (double)a[i * ma.row + l * ma.column] * (double)b[l * mb.row + j * mb.column];
            if (fabs((double)c[i * n + j] - sum) > 2e-5 * sqrt((double)k) ||
                fabs((double)plain[i * n + j] - sum) > 2e-5 * sqrt((double)k))
                fail_msg("%zu x %zu x %zu: %zu, %zu is %g, plain %g, expected %g", m, n, k, i, j,
                         (double)c[i * n + j], (double)plain[i * n + j], sum);
        }
    free(a), free(b), free(c), free(packed), free(work), free(plain);
}

static void products_are_right(void **state)
{
    (void)state;
    static const size_t sizes[][3] = {{1, 1, 1},    {4, 24, 256}, {5, 25, 257},   {64, 96, 512},
                                      {63, 101, 7}, {8, 48, 128}, {1100, 49, 33}, {1025, 23, 530}};
    const mri_simd_level before = mri_simd();
    const uint32_t threads = rig_threads();
    const int opened = omp_get_max_threads();
    omp_set_num_threads((int)threads);
    for (int level = MRI_SIMD_PLAIN; level <= MRI_SIMD_NEON; level++) {
        if (!mri_simd_use((mri_simd_level)level)) continue;
        for (size_t i = 0; i < 4 * MRI_ARRAY_COUNT(sizes); i++)
            check_product(sizes[i / 4][0], sizes[i / 4][1], sizes[i / 4][2], i % 2, i / 2 % 2, threads);
    }
    omp_set_num_threads(opened);
    MRT_TRUE(mri_simd_use(before));
}

/* ---- functions ---- */

/* Units in the last place of a value, but at least the smallest normal number's. */
static double ulps(float found, double expected)
{
    return fabs((double)found - expected) / (fmax(fabs(expected), 1.2e-38) * 1.2e-7);
}

static void functions_are_right(void **state)
{
    (void)state;
    double worst[2] = {0};
    for (int k = -90000; k <= 90000; k++) {
        const float x = (float)k * (k % 3 ? 1e-3f : 1e-5f);
        worst[0] = fmax(worst[0], x > -87 ? ulps(mri_gate_sigmoid(x), sigmoid((double)x)) : 0);
        worst[1] = fmax(worst[1], ulps(mri_gate_tanh(x), tanh((double)x)));
    }
    print_message("sigmoid within %.1f, tanh within %.1f units in the last place\n", worst[0], worst[1]);
    MRT_TRUE(worst[0] <= 3 && worst[1] <= 3);
    MRT_TRUE(mri_gate_tanh(0) == 0 && mri_gate_sigmoid(0) == 0.5f);
    MRT_TRUE(mri_gate_tanh(INFINITY) == 1 && mri_gate_tanh(-INFINITY) == -1);
    MRT_TRUE(mri_gate_sigmoid(INFINITY) == 1 && mri_gate_sigmoid(-INFINITY) < 1e-37f);
    MRT_TRUE(isnan(mri_gate_tanh(NAN)) && isnan(mri_gate_sigmoid(NAN)));
}

/* ---- mistakes ---- */

static void refuse(mr_op_desc d, const char *part)
{
    struct rig r;
    mr_error err = MR_ERROR_INIT;
    mr_op *op = (mr_op *)&err;
    rig_open(&r, "cpu", false);
    MRT_EQ(mr_op_create(&op, r.dev, &d, &err), MR_EINVAL);
    MRT_TRUE(op == NULL);
    MRT_HAS(err.text, part);
    rig_close(&r);
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    const struct shape s = {3, 4, 5, false, true}, numbers = {3, 4, 5, true, true};
    for (int lstm = 0; lstm < 2; lstm++) {
        mr_op_desc d = describe(&s, lstm);
        d.recurrent.units = 0;
        refuse(d, "units must be");
        d = describe(&s, lstm);
        d.in = rig_tensor(2, 3, 4, 0);
        refuse(d, "a sequence is 1 x steps x values");
        d = describe(&s, lstm);
        d.recurrent.classes = 4;
        refuse(d, "classes are of int32 numbers");
        d = describe(&s, lstm);
        d.in = rig_tensor(1, 3, 4, MRI_LAYOUT_C8);
        refuse(d, "NHWC only");
        d = describe(&s, lstm);
        d.in = rig_tensor(1, 1, 1 << 20, 0), d.recurrent.units = 1 << 20;
        refuse(d, "weights are too large");
        d = describe(&numbers, lstm);
        d.recurrent.classes = 0;
        refuse(d, "need the count of classes");
        d = describe(&numbers, lstm);
        d.need_dx = true;
        refuse(d, "no gradient to data");
        d = describe(&numbers, lstm);
        d.in.c = 2;
        refuse(d, "without padding");
        d = describe(&numbers, lstm);
        d.recurrent.out_dtype = MR_TENSOR_U8;
        refuse(d, "out_dtype");
    }
}

static void failed_allocations_are_reported(void **state)
{
    (void)state;
    const struct shape s = {3, 4, 5, false, true};
    for (int lstm = 0; lstm < 2; lstm++)
        for (int n = 0;; n++) {
            struct rig r;
            mr_error err = MR_ERROR_INIT;
            mr_op *op = (mr_op *)&err;
            const mr_op_desc d = describe(&s, lstm);
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
        cmocka_unit_test(layers_are_right),
        cmocka_unit_test(layers_are_right_on_any_processor),
        cmocka_unit_test(a_sample_gets_the_same_in_any_batch),
        cmocka_unit_test(bits_do_not_depend_on_threads),
        cmocka_unit_test(products_are_right),
        cmocka_unit_test(functions_are_right),
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(failed_allocations_are_reported),
    };
    return mrt_run(tests);
}
