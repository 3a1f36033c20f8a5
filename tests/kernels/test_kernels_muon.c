/* kernels: MUON against the definition in doubles: matrices of many shapes brought near to orthogonal ones;
 * updates of matrices among other parameters, clipped, scaled, with decay of some; matrices that an operation
 * stores its own way; refused settings. */
#include "kernels/ops/matrix/orthogonal.h"
#include "tests/kernels/rig.h"

/* ---- the definition ---- */

static void expected_product(const double *a, const double *b, double *c, size_t m, size_t n, size_t k,
                             bool b_turned)
{
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++) {
            double sum = 0;
            for (size_t l = 0; l < k; l++) sum += a[i * k + l] * (b_turned ? b[j * k + l] : b[l * n + j]);
            c[i * n + j] = sum;
        }
}

/* X of the wider form; PyTorch's _zeropower_via_newtonschulz() in doubles. */
static void expected_wide(double *x, size_t r, size_t c, double epsilon)
{
    double norm = 0, *gram = malloc(r * r * sizeof *gram), *square = malloc(r * r * sizeof *square),
           *next = malloc(r * c * sizeof *next);
    for (size_t i = 0; i < r * c; i++) norm += x[i] * x[i];
    norm = fmax(sqrt(norm), epsilon);
    for (size_t i = 0; i < r * c; i++) x[i] /= norm;
    for (int step = 0; step < 5; step++) {
        expected_product(x, x, gram, r, r, c, true);
        expected_product(gram, gram, square, r, r, r, false);
        for (size_t i = 0; i < r * r; i++) gram[i] = -4.775 * gram[i] + 2.0315 * square[i];
        expected_product(gram, x, next, r, c, r, false);
        for (size_t i = 0; i < r * c; i++) x[i] = 3.4445 * x[i] + next[i];
    }
    free(gram);
    free(square);
    free(next);
}

static void expected_orthogonal(double *x, size_t r, size_t c, double epsilon)
{
    if (r <= c) {
        expected_wide(x, r, c, epsilon);
        return;
    }
    double *turned = malloc(r * c * sizeof *turned);
    for (size_t i = 0; i < r; i++)
        for (size_t j = 0; j < c; j++) turned[j * r + i] = x[i * c + j];
    expected_wide(turned, c, r, epsilon);
    for (size_t i = 0; i < r; i++)
        for (size_t j = 0; j < c; j++) x[i * c + j] = turned[j * r + i];
    free(turned);
}

static void near(const float *found, const double *expected, size_t count, double tolerance, const char *what)
{
    for (size_t i = 0; i < count; i++)
        if (!(fabs((double)found[i] - expected[i]) <= tolerance))
            fail_msg("%s: value %zu of %zu is %g, expected %g within %g", what, i, count, (double)found[i],
                     expected[i], tolerance);
}

static void matrices_become_orthogonal(void **state)
{
    (void)state;
    static const uint32_t shapes[][2] = {{1, 1},   {1, 40},   {40, 1},   {3, 5},    {5, 3},
                                         {64, 64}, {17, 130}, {130, 17}, {200, 33}, {96, 257}};
    for (size_t s = 0; s < MRI_ARRAY_COUNT(shapes); s++) {
        const size_t r = shapes[s][0], c = shapes[s][1], n = r * c, small = r < c ? r : c;
        struct rig rig;
        rig_open(&rig, "cpu", false);
        float *x = rig_memory(&rig, n * sizeof *x),
              *room = rig_memory(&rig, mri_orthogonal_floats(r, c, rig.dev->info.threads) * sizeof *room);
        double *expected = malloc(n * sizeof *expected);
        rig_noise(x, n, s + 3);
        for (size_t i = 0; i < n; i++) expected[i] = (double)x[i];
        mri_orthogonalise(x, r, c, 1e-7f, room);
        expected_orthogonal(expected, r, c, 1e-7);
        near(x, expected, n, 2e-4, "orthogonal");
        double trace = 0; /* of X X^t: the sum of the squared singular values, 0.7 to 1.2 each */
        for (size_t i = 0; i < n; i++) trace += (double)x[i] * (double)x[i];
        MRT_TRUE(trace > 0.4 * (double)small && trace < 1.5 * (double)small);
        memset(x, 0, n * sizeof *x);
        mri_orthogonalise(x, r, c, 1e-7f, room);
        for (size_t i = 0; i < n; i++) MRT_TRUE(x[i] == 0);
        free(expected);
        rig_close(&rig);
    }
}

/* ---- updates ---- */

enum { MATRICES = 3, COUNT = 6000 };
static const struct {
    uint64_t at, rows, columns;
} places[MATRICES] = {{128, 20, 31}, {768, 9, 300}, {3520, 40, 12}}; /* the rest are vectors */

static int matrix_at(uint64_t i)
{
    for (int k = 0; k < MATRICES; k++)
        if (i >= places[k].at && i < places[k].at + places[k].rows * places[k].columns) return k;
    return -1;
}

/* The unused rest of a matrix's last stretch. */
static bool is_nobodys(uint64_t i)
{
    for (int k = 0; k < MATRICES; k++) {
        const uint64_t end = places[k].at + places[k].rows * places[k].columns;
        if (i >= end && i < mri_align_up(end, MR_UPDATE_STRETCH)) return true;
    }
    return false;
}

static bool decays(uint64_t i) { return i / MR_UPDATE_STRETCH % 3 != 1; }

static void expected_step(const mr_update_desc *d, double *w, const double *g, double *s0, double *s1)
{
    const double lr = (double)d->lr, b1 = (double)d->beta1, b2 = (double)d->beta2, t = (double)d->step,
                 m = (double)d->momentum;
    double step[COUNT];
    for (uint64_t i = 0; i < COUNT; i++) {
        step[i] = 0;
        if (is_nobodys(i)) continue;
        if (matrix_at(i) >= 0) {
            s0[i] = m * s0[i] + (1 - m) * g[i];
            step[i] = d->nesterov ? m * s0[i] + (1 - m) * g[i] : s0[i];
        } else {
            s0[i] = b1 * s0[i] + (1 - b1) * g[i];
            s1[i] = b2 * s1[i] + (1 - b2) * g[i] * g[i];
            step[i] = s0[i] / (1 - pow(b1, t)) / (sqrt(s1[i] / (1 - pow(b2, t))) + (double)d->epsilon);
        }
    }
    for (int k = 0; k < MATRICES; k++)
        expected_orthogonal(step + places[k].at, places[k].rows, places[k].columns, (double)d->epsilon);
    for (uint64_t i = 0; i < COUNT; i++) {
        const int k = matrix_at(i);
        const double scale = k < 0 ? 1 : 0.2 * sqrt((double)mri_max_u64(places[k].rows, places[k].columns));
        if (!is_nobodys(i)) w[i] -= lr * ((decays(i) ? (double)d->weight_decay * w[i] : 0) + scale * step[i]);
    }
}

static void follow(bool nesterov, float clip_norm, float first_scale, bool wide)
{
    struct rig r;
    mr_error err = MR_ERROR_INIT;
    rig_open(&r, "cpu", false);
    mr_update_matrix matrices[MATRICES];
    float *a[4];
    double *e[4];
    for (int k = 0; k < 4; k++)
        a[k] = rig_memory(&r, COUNT * sizeof(float)), e[k] = calloc(COUNT, sizeof(double));
    for (int k = 0; k < MATRICES; k++)
        matrices[k] =
            (mr_update_matrix){.at = places[k].at, .rows = places[k].rows, .columns = places[k].columns};
    mr_update_desc d = mr_update_rule_find("muon")->desc;
    d.lr = 0.02f, d.nesterov = nesterov, d.epsilon = 1e-6f;
    mr_update_config cfg;
    mr_update_defaults(&cfg);
    cfg.matrices = matrices;
    cfg.matrix_count = MATRICES;
    cfg.room = rig_memory(&r, mr_update_room_bytes(r.dev, matrices, MATRICES));
    cfg.clip_norm = clip_norm;
    cfg.norm = rig_memory(&r, mr_update_norm_count(COUNT) * sizeof(double));
    uint8_t *some = rig_memory(&r, COUNT / MR_UPDATE_STRETCH + 1);
    for (uint64_t i = 0; i < COUNT; i += MR_UPDATE_STRETCH) some[i / MR_UPDATE_STRETCH] = decays(i);
    cfg.decays = some;
    mr_loss_scale scale = {.scale = first_scale};
    rig_noise(a[0], COUNT, 5);
    for (uint64_t i = 0; i < COUNT; i++) e[0][i] = (double)a[0][i];
    for (d.step = 1; d.step <= 4; d.step++) {
        const bool bad = first_scale > 0 && d.step == 3;
        rig_noise(a[1], COUNT, 10 + d.step);
        if (wide) /* a matrix that learns nothing */
            memset(a[1] + places[1].at, 0, places[1].rows * places[1].columns * sizeof(float));
        mr_step_values v = {0};
        MRT_OK(mr_update_values(&d, &v), NULL);
        double square = 0;
        for (uint64_t i = 0; i < COUNT; i++) e[1][i] = (double)a[1][i], square += e[1][i] * e[1][i];
        const double norm = sqrt(square), most = (double)clip_norm;
        for (uint64_t i = 0; most > 0 && norm > most && i < COUNT; i++) e[1][i] *= most / norm;
        for (uint64_t i = 0; first_scale > 0 && i < COUNT; i++) a[1][i] *= scale.scale;
        if (bad) a[1][900] = INFINITY;
        cfg.rule = d;
        cfg.args = (mr_update_args){.count = COUNT,
                                    .weights = a[0],
                                    .grads = a[1],
                                    .state = {a[2], a[3]},
                                    .values = &v,
                                    .loss_scale = first_scale > 0 ? &scale : NULL};
        MRT_OK(mr_update_run_async(r.s, &cfg), NULL);
        MRT_OK(mr_stream_sync(r.s, &err), &err);
        if (!bad) expected_step(&d, e[0], e[1], e[2], e[3]);
    }
    MRT_EQ(scale.skipped, first_scale > 0 ? 1 : 0);
    near(a[0], e[0], COUNT, 2e-5, "weights");
    near(a[2], e[2], COUNT, 1e-6, "state 0");
    near(a[3], e[3], COUNT, 1e-6, "state 1");
    for (int k = 0; k < 4; k++) free(e[k]);
    rig_close(&r);
}

static void updates_follow_the_rule(void **state)
{
    (void)state;
    follow(true, 0, 0, false);
    follow(false, 0, 0, true);
    follow(true, 0.7f, 0, false);
    follow(true, 0.7f, 512, false);
}

/* ---- matrices of operations ---- */

/* An operation's weights, in canonical order, after two updates by the same gradients. */
static void moved(const mr_op_desc *d, bool reference, float **out, uint64_t *count)
{
    struct rig r;
    mr_error err = MR_ERROR_INIT;
    mr_op *op;
    rig_open(&r, "cpu", reference);
    MRT_OK(mr_op_create(&op, r.dev, d, &err), &err);
    const mr_param_info *info = &mr_op_info_of(op)->param[0];
    const uint64_t stored = info->storage_count;
    float *host = malloc(info->count * sizeof *host), *w = rig_memory(&r, stored * sizeof *w),
          *g = rig_memory(&r, stored * sizeof *g), *s0 = rig_memory(&r, stored * sizeof *s0),
          *s1 = rig_memory(&r, stored * sizeof *s1);
    const mr_update_matrix matrix = {.rows = info->dim[0], .columns = info->count / info->dim[0], .op = op};
    mr_update_desc rule = mr_update_rule_find("muon")->desc;
    mr_update_config cfg;
    mr_update_defaults(&cfg);
    cfg.matrices = &matrix;
    cfg.matrix_count = 1;
    cfg.room = rig_memory(&r, mr_update_room_bytes(r.dev, &matrix, 1));
    rig_noise(host, info->count, 1);
    MRT_OK(mr_op_param_import(op, false, 0, w, host, &err), &err);
    rule.lr = 0.05f;
    for (rule.step = 1; rule.step <= 2; rule.step++) {
        mr_step_values v = {0};
        MRT_OK(mr_update_values(&rule, &v), NULL);
        rig_noise(host, info->count, 1 + rule.step);
        MRT_OK(mr_op_param_import(op, false, 0, g, host, &err), &err);
        cfg.rule = rule;
        cfg.args =
            (mr_update_args){.count = stored, .weights = w, .grads = g, .state = {s0, s1}, .values = &v};
        MRT_OK(mr_update_run_async(r.s, &cfg), NULL);
        MRT_OK(mr_stream_sync(r.s, &err), &err);
    }
    MRT_OK(mr_op_param_export(op, false, 0, w, host, &err), &err);
    *out = host;
    *count = info->count;
    mr_op_destroy(op);
    rig_close(&r);
}

static void an_operation_knows_its_layout(void **state)
{
    (void)state;
    mr_op_desc ops[3] = {
        {.kind = MR_OP_CONV2D, .conv2d = {.filters = 48, .window = {3, 3, 1, 1, 1, 1, 1, 1}}},
        {.kind = MR_OP_CONV2D, .conv2d = {.filters = 10, .window = {5, 3, 2, 2, 0, 0, 0, 0}}},
        {.kind = MR_OP_DENSE, .dense.units = 50}};
    for (int k = 0; k < 3; k++) {
        float *fast, *plain;
        uint64_t count;
        ops[k].in = rig_tensor(8, 7, k == 1 ? 3 : 24, 0);
        ops[k].max_batch = 8, ops[k].training = true, ops[k].need_dx = true;
        moved(&ops[k], false, &fast, &count);
        moved(&ops[k], true, &plain, &count);
        for (uint64_t i = 0; i < count; i++)
            if (!(fabsf(fast[i] - plain[i]) <= 2e-5f))
                fail_msg("operation %d: weight %llu is %g, by plain C %g", k, (unsigned long long)i,
                         (double)fast[i], (double)plain[i]);
        free(fast);
        free(plain);
    }
}

/* ---- what makes no sense ---- */

static void wrong_matrices_are_refused(void **state)
{
    (void)state;
    struct rig r;
    rig_open(&r, "cpu", false);
    float *a[4];
    for (int k = 0; k < 4; k++) a[k] = rig_memory(&r, 256 * sizeof(float));
    const mr_update_matrix good[2] = {{.rows = 4, .columns = 8}, {.at = 64, .rows = 10, .columns = 10}};
    const struct {
        mr_update_matrix first, second;
    } wrong[] = {{{.at = 3, .rows = 4, .columns = 8}, good[1]},
                 {{.rows = 0, .columns = 8}, good[1]},
                 {good[0], {.at = 64, .rows = 14, .columns = 14}},
                 {good[1], good[0]},
                 {{.rows = 10, .columns = 10}, good[1]}};
    mr_step_values v = {.lr = 1};
    mr_update_config cfg;
    mr_update_defaults(&cfg);
    cfg.rule = mr_update_rule_find("muon")->desc;
    cfg.args =
        (mr_update_args){.count = 256, .weights = a[0], .grads = a[1], .state = {a[2], a[3]}, .values = &v};
    cfg.matrices = good;
    cfg.matrix_count = 2;
    MRT_EQ(mr_update_run_async(r.s, &cfg), MR_EINVAL); /* no room */
    cfg.room = rig_memory(&r, mr_update_room_bytes(r.dev, good, 2));
    MRT_OK(mr_update_run_async(r.s, &cfg), NULL);
    for (size_t k = 0; k < MRI_ARRAY_COUNT(wrong); k++) {
        const mr_update_matrix two[2] = {wrong[k].first, wrong[k].second};
        cfg.matrices = two;
        MRT_EQ(mr_update_run_async(r.s, &cfg), MR_EINVAL);
    }
    cfg.matrices = NULL;
    MRT_EQ(mr_update_run_async(r.s, &cfg), MR_EINVAL);
    MRT_OK(mr_stream_sync(r.s, NULL), NULL);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matrices_become_orthogonal),
        cmocka_unit_test(updates_follow_the_rule),
        cmocka_unit_test(an_operation_knows_its_layout),
        cmocka_unit_test(wrong_matrices_are_refused),
    };
    return mrt_run(tests);
}
