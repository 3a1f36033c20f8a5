/* kernels: every update rule against its definition in double, with limits of gradients, decay of some of the
 * weights, late steps; running averages; names; refused settings. */
#include "tests/kernels/update_tensors.h"

/* Nadam's, by Dozat's report. */
static double momentum_at(double beta1, double t) { return beta1 * (1 - 0.5 * pow(0.96, t / 250)); }

static void expected_update(const mr_update_desc *d, double *w, double g, double *s0, double *s1)
{
    const double lr = (double)d->lr, rho = (double)d->rho, eps = (double)d->epsilon, m = (double)d->momentum;
    const double b1 = (double)d->beta1, b2 = (double)d->beta2, t = (double)d->step;
    if (d->kind != MR_UPDATE_ADAMW && d->kind != MR_UPDATE_MUON) g += (double)d->weight_decay * *w;
    switch (d->kind) {
    case MR_UPDATE_SGD: *w -= lr * g; break;
    case MR_UPDATE_MOMENTUM:
        *s0 = m * *s0 - lr * g;
        *w += d->nesterov ? m * *s0 - lr * g : *s0;
        break;
    case MR_UPDATE_RMSPROP:
        *s0 = rho * *s0 + (1 - rho) * g * g;
        *w -= lr * g / (sqrt(*s0) + eps);
        break;
    case MR_UPDATE_RMSPROP_MOMENTUM:
        if (d->step == 1) *s0 = 1;
        *s0 = rho * *s0 + (1 - rho) * g * g;
        *s1 = m * *s1 + lr * g / sqrt(*s0 + eps);
        *w -= *s1;
        break;
    case MR_UPDATE_ADAM:
        *s0 = b1 * *s0 + (1 - b1) * g;
        *s1 = b2 * *s1 + (1 - b2) * g * g;
        *w -= lr * (*s0 / (1 - pow(b1, t))) / (sqrt(*s1 / (1 - pow(b2, t))) + eps);
        break;
    case MR_UPDATE_ADADELTA: {
        *s0 = rho * *s0 + (1 - rho) * g * g;
        const double step = g * sqrt(*s1 + eps) / sqrt(*s0 + eps);
        *s1 = rho * *s1 + (1 - rho) * step * step;
        *w -= lr * step;
        break;
    }
    case MR_UPDATE_ADAGRAD:
        *s0 += g * g;
        *w -= lr * g / (sqrt(*s0) + eps);
        break;
    case MR_UPDATE_ADAMAX:
        *s0 = b1 * *s0 + (1 - b1) * g;
        *s1 = fmax(b2 * *s1, fabs(g));
        *w -= lr / (1 - pow(b1, t)) * *s0 / (*s1 + eps);
        break;
    case MR_UPDATE_NADAM: {
        double product = 1;
        for (int i = 1; i <= (int)d->step; i++) product *= momentum_at(b1, i);
        const double now = momentum_at(b1, t), next = momentum_at(b1, t + 1);
        *s0 = b1 * *s0 + (1 - b1) * g;
        *s1 = b2 * *s1 + (1 - b2) * g * g;
        const double ahead = next * *s0 / (1 - product * next) + (1 - now) * g / (1 - product);
        *w -= lr * ahead / (sqrt(*s1 / (1 - pow(b2, t))) + eps);
        break;
    }
    case MR_UPDATE_LAMB: break; /* expected_lamb() */
    case MR_UPDATE_MUON:        /* no matrices: test_kernels_muon.c has some */
    case MR_UPDATE_ADAMW: {
        const double before = *w;
        *s0 = b1 * *s0 + (1 - b1) * g;
        *s1 = b2 * *s1 + (1 - b2) * g * g;
        *w -= lr * (*s0 / (1 - pow(b1, t))) / (sqrt(*s1 / (1 - pow(b2, t))) + eps);
        *w -= lr * (double)d->weight_decay * before;
        break;
    }
    }
}

/* Of all weights; tensors by stretch. */
static void expected_lamb(const mr_update_desc *d, const uint32_t *tensors, uint64_t count, double *w,
                          const double *g, double *m, double *v)
{
    const double b1 = (double)d->beta1, b2 = (double)d->beta2, t = (double)d->step;
    double *x = calloc(count, sizeof *x);
    for (uint64_t i = 0; i < count; i++) {
        m[i] = b1 * m[i] + (1 - b1) * g[i];
        v[i] = b2 * v[i] + (1 - b2) * g[i] * g[i];
        x[i] = m[i] / (1 - pow(b1, t)) / (sqrt(v[i] / (1 - pow(b2, t))) + (double)d->epsilon);
        x[i] += (double)d->weight_decay * w[i];
    }
    for (uint64_t from = 0, to; from < count; from = to) {
        double of_w = 0, of_x = 0;
        for (to = from; to < count && tensors[to / MR_UPDATE_STRETCH] == tensors[from / MR_UPDATE_STRETCH];
             to++)
            of_w += w[to] * w[to], of_x += x[to] * x[to];
        const double trust = of_w > 0 && of_x > 0 ? sqrt(of_w) / sqrt(of_x) : 1;
        for (uint64_t i = from; i < to; i++) w[i] -= (double)d->lr * trust * x[i];
    }
    free(x);
}

struct limits {
    float value, norm;
};

/* The clipped gradients in double; returns the square of their norm after the limit of each element. */
static double expected_clip(const struct limits *l, const float *g, uint64_t count, double *out)
{
    double square = 0;
    for (uint64_t i = 0; i < count; i++) {
        const double v = (double)g[i], most = (double)l->value;
        out[i] = most > 0 && fabs(v) > most ? copysign(most, v) : v;
        square += out[i] * out[i];
    }
    const double norm = sqrt(square), most = (double)l->norm;
    for (uint64_t i = 0; most > 0 && norm > most && i < count; i++) out[i] *= most / norm;
    return square;
}

static void check_update(mr_update_desc d, struct limits l, uint64_t count)
{
    struct rig r;
    mr_error err = MR_ERROR_INIT;
    rig_open(&r, "cpu", false);
    float *a[4];
    double *e[4];
    for (int k = 0; k < 4; k++) a[k] = rig_memory(&r, count * 4);
    for (int k = 0; k < 4; k++) e[k] = calloc(count, sizeof(double));
    mr_update_config cfg;
    mr_update_defaults(&cfg);
    cfg.clip_value = l.value;
    cfg.clip_norm = l.norm;
    cfg.norm = l.norm > 0 ? rig_memory(&r, (size_t)mr_update_norm_count(count) * sizeof(double)) : NULL;
    rig_noise(a[0], count, 1);
    if (count > 64) memset(a[0] + 64, 0, 4 * (size_t)mri_min_u64(64, count - 64)); /* a new bias */
    set_tensors(&r, &cfg, count, false);
    for (uint64_t i = 0; i < count; i++) e[0][i] = (double)a[0][i];
    for (d.step = 1; d.step <= 7; d.step++) {
        rig_noise(a[1], count, d.step + 1);
        mr_step_values v = {0};
        MRT_OK(mr_update_values(&d, &v), NULL);
        cfg.rule = d;
        cfg.args = (mr_update_args){
            .count = count, .weights = a[0], .grads = a[1], .state = {a[2], a[3]}, .values = &v};
        if (l.value == 0 && l.norm == 0 && d.kind != MR_UPDATE_LAMB)
            MRT_OK(mr_update_async(r.s, &d, &cfg.args), NULL);
        else MRT_OK(mr_update_run_async(r.s, &cfg), NULL);
        MRT_OK(mr_stream_sync(r.s, &err), &err);
        const double square = expected_clip(&l, a[1], count, e[3]);
        if (cfg.norm) MRT_TRUE(fabs(cfg.norm[0] - square) <= 1e-9 * square);
        if (d.kind == MR_UPDATE_LAMB) expected_lamb(&d, cfg.tensors, count, e[0], e[3], e[1], e[2]);
        for (uint64_t i = 0; i < count; i++) expected_update(&d, &e[0][i], e[3][i], &e[1][i], &e[2][i]);
    }
    for (uint64_t i = 0; i < count; i++)
        MRT_TRUE(fabs((double)a[0][i] - e[0][i]) < 2e-6 + 1e-5 * fabs(e[0][i]));
    for (int k = 0; k < 4; k++) free(e[k]);
    rig_close(&r);
}

static void updates_follow_their_rules(void **state)
{
    (void)state;
    static const uint64_t counts[] = {1, 17, 50001};
    for (int k = 0; k < 3; k++)
        for (int decay = 0; decay < 2; decay++)
            for (int kind = 0; kind < MR_UPDATE_KIND_COUNT; kind++) {
                mr_update_desc d = {.kind = (mr_update_kind)kind,
                                    .lr = 0.01f,
                                    .momentum = 0.9f,
                                    .rho = 0.9f,
                                    .beta1 = 0.9f,
                                    .beta2 = 0.999f,
                                    .epsilon = 1e-3f,
                                    .weight_decay = decay ? 0.1f : 0};
                check_update(d, (struct limits){0}, counts[k]);
                d.nesterov = true;
                if (kind == MR_UPDATE_MOMENTUM) check_update(d, (struct limits){0}, counts[k]);
            }
    MRT_EQ(mr_update_state_count(MR_UPDATE_SGD), 0);
    MRT_EQ(mr_update_state_count(MR_UPDATE_RMSPROP), 1);
    MRT_EQ(mr_update_state_count(MR_UPDATE_RMSPROP_MOMENTUM), 2);
    MRT_EQ(mr_update_state_count(MR_UPDATE_ADAM), 2);
    MRT_EQ(mr_update_state_count(MR_UPDATE_ADAGRAD), 1);
    MRT_EQ(mr_update_state_count((mr_update_kind)MR_UPDATE_KIND_COUNT), 0);
}

static void gradients_are_clipped(void **state)
{
    (void)state;
    static const uint64_t counts[] = {1, 17, 16384, 50001};
    static const struct limits limits[] = {{0.3f, 0}, {0, 0.25f}, {0, 1e6f}, {0.5f, 2}};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(counts); k++)
        for (size_t l = 0; l < MRI_ARRAY_COUNT(limits); l++)
            for (uint32_t rule = 0; mr_update_rule_at(rule); rule++) {
                mr_update_desc d = mr_update_rule_at(rule)->desc;
                d.lr = 0.01f;
                d.epsilon = 1e-3f;
                d.weight_decay = rule % 2 ? 0.1f : 0;
                check_update(d, limits[l], counts[k]);
            }
}

/* At the limit nothing changes, above it the norm is the limit; the sum is the same bits for any number of
 * threads. */
static void norms_have_one_order(void **state)
{
    (void)state;
    enum { COUNT = 300001 };
    double first[2] = {0};
    const uint32_t most = rig_threads() > 1 ? 7 : 1;
    for (uint32_t threads = 1; threads <= most; threads += 3) {
        mr_devices_config devices;
        mr_device **dev;
        uint32_t n;
        mr_error err = MR_ERROR_INIT;
        mr_stream *s;
        mr_devices_defaults(&devices);
        devices.compute_threads = threads;
        MRT_OK(mr_devices_open(&dev, &n, "cpu", &devices, &err), &err);
        MRT_OK(mr_stream_create(&s, dev[0], MR_STREAM_COMPUTE, &err), &err);
        float *w = calloc(COUNT, 4), *g = calloc(COUNT, 4);
        double *norm = calloc((size_t)mr_update_norm_count(COUNT), sizeof *norm);
        const mr_step_values v = {.lr = 1};
        rig_noise(g, COUNT, 5);
        mr_update_config cfg;
        mr_update_defaults(&cfg);
        cfg.args = (mr_update_args){.count = COUNT, .weights = w, .grads = g, .values = &v};
        cfg.norm = norm;
        cfg.clip_norm = 3;
        MRT_OK(mr_update_run_async(s, &cfg), NULL);
        MRT_OK(mr_stream_sync(s, &err), &err);
        if (threads == 1) memcpy(first, norm, sizeof first);
        MRT_TRUE(memcmp(first, norm, sizeof first) == 0);
        MRT_TRUE(norm[1] < 1 && fabs(norm[1] * sqrt(norm[0]) - 3) < 1e-12);
        double moved = 0;
        for (int i = 0; i < COUNT; i++) moved += (double)w[i] * (double)w[i];
        MRT_TRUE(fabs(sqrt(moved) - 3) < 1e-5);

        memset(w, 0, COUNT * sizeof *w); /* 3, 4, 0, ...: a norm of 5 is not above 5 */
        memset(g, 0, COUNT * sizeof *g);
        g[7] = 3, g[COUNT - 1] = -4;
        cfg.clip_norm = 5;
        MRT_OK(mr_update_run_async(s, &cfg), NULL);
        MRT_OK(mr_stream_sync(s, &err), &err);
        MRT_TRUE(norm[0] == 25 && norm[1] == 1 && w[7] == -3 && w[COUNT - 1] == 4);
        cfg.clip_norm = 2.5f;
        memset(w, 0, COUNT * sizeof *w);
        MRT_OK(mr_update_run_async(s, &cfg), NULL);
        MRT_OK(mr_stream_sync(s, &err), &err);
        MRT_TRUE(norm[1] == 0.5 && w[7] == -1.5f && w[COUNT - 1] == 2);
        cfg.clip_value = 1; /* first each element, then the norm of the clipped gradient */
        cfg.clip_norm = 0.5f;
        memset(w, 0, COUNT * sizeof *w);
        MRT_OK(mr_update_run_async(s, &cfg), NULL);
        MRT_OK(mr_stream_sync(s, &err), &err);
        MRT_TRUE(norm[0] == 2 && w[7] == -w[COUNT - 1] && fabsf(w[7] + 0.5f * sqrtf(0.5f)) < 1e-7f);
        mr_stream_destroy(s);
        mr_devices_close(dev, n);
        free(w);
        free(g);
        free(norm);
    }
}

/* Where decay does not apply the update is that of one without, to the bit; elsewhere that of one with. */
static void decay_is_left_out(void **state)
{
    (void)state;
    static const uint64_t counts[] = {1, 64, 65, 40000};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(counts); k++)
        for (uint32_t rule = 0; mr_update_rule_at(rule); rule++) {
            const uint64_t count = counts[k], stretches = (count + MR_UPDATE_STRETCH - 1) / MR_UPDATE_STRETCH;
            struct rig r;
            mr_error err = MR_ERROR_INIT;
            rig_open(&r, "cpu", false);
            float *a[3][4];
            uint8_t *decays = rig_memory(&r, (size_t)stretches);
            for (uint64_t i = 0; i < stretches; i++) decays[i] = i % 7 > 2 ? (uint8_t)(i % 7) : 0;
            mr_update_config cfg;
            mr_update_defaults(&cfg);
            set_tensors(&r, &cfg, count, true); /* LAMB: what decays moves nothing else */
            for (int way = 0; way < 3; way++) { /* some, all, none of them decay */
                for (int m = 0; m < 4; m++) a[way][m] = rig_memory(&r, count * 4);
                rig_noise(a[way][0], count, 1);
                for (uint64_t step = 1; step <= 3; step++) {
                    mr_step_values v = {0};
                    rig_noise(a[way][1], count, step + 1);
                    cfg.rule = mr_update_rule_at(rule)->desc;
                    cfg.rule.lr = 0.1f;
                    cfg.rule.weight_decay = way == 2 ? 0 : 0.3f;
                    cfg.rule.step = step;
                    cfg.decays = way == 0 ? decays : NULL;
                    MRT_OK(mr_update_values(&cfg.rule, &v), NULL);
                    cfg.args = (mr_update_args){.count = count,
                                                .weights = a[way][0],
                                                .grads = a[way][1],
                                                .state = {a[way][2], a[way][3]},
                                                .values = &v};
                    MRT_OK(mr_update_run_async(r.s, &cfg), NULL);
                    MRT_OK(mr_stream_sync(r.s, &err), &err);
                }
            }
            bool differ = false;
            for (uint64_t i = 0; i < count; i++) {
                const int like = decays[i / MR_UPDATE_STRETCH] ? 1 : 2;
                for (int m = 0; m < 4; m++) MRT_TRUE(a[0][m][i] == a[like][m][i]);
                differ = differ || a[1][0][i] != a[2][0][i];
            }
            MRT_TRUE(differ || count == 1); /* LAMB: one weight alone goes as far either way */
            rig_close(&r);
        }
}

static void averages_are_taken(void **state)
{
    (void)state;
    static const uint64_t counts[] = {1, 19, 70001};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(counts); k++) {
        const uint64_t count = counts[k];
        struct rig r;
        mr_error err = MR_ERROR_INIT;
        rig_open(&r, "cpu", false);
        float *average = rig_memory(&r, count * 4), *from = rig_memory(&r, count * 4);
        double *expected = calloc(count, sizeof *expected);
        for (uint64_t step = 0; step < 5; step++) {
            const float decay = step ? 0.9f : 0; /* 0: it becomes what there is */
            rig_noise(from, count, step + 1);
            MRT_OK(mr_average_async(r.s, average, from, count, decay), NULL);
            MRT_OK(mr_stream_sync(r.s, &err), &err);
            for (uint64_t i = 0; i < count; i++) {
                expected[i] = (double)decay * expected[i] + (1 - (double)decay) * (double)from[i];
                MRT_TRUE(fabs((double)average[i] - expected[i]) < 1e-6);
                MRT_TRUE(step > 0 || average[i] == from[i]);
            }
        }
        MRT_EQ(mr_average_async(r.s, average, from, count, 1), MR_EINVAL);
        MRT_EQ(mr_average_async(r.s, average, from, count, NAN), MR_EINVAL);
        MRT_EQ(mr_average_async(r.s, NULL, from, count, 0.5f), MR_EINVAL);
        MRT_EQ(mr_average_async(r.s, NULL, NULL, 0, 0.5f), MR_OK);
        free(expected);
        rig_close(&r);
    }
}

/* Values of a step's factors far out, and that they depend on its number alone. */
static void factors_of_late_steps(void **state)
{
    (void)state;
    static const uint64_t steps[] = {1, 2, 250, 399, 400, 401, 1000, 100000};
    mr_update_desc d = mr_update_rule_find("nadam")->desc;
    d.lr = 0.5f;
    for (size_t k = 0; k < MRI_ARRAY_COUNT(steps); k++) {
        const double b1 = (double)d.beta1, t = (double)steps[k];
        double product = 1;
        for (uint64_t i = 1; i <= steps[k]; i++) product *= momentum_at(b1, (double)i);
        mr_step_values v = {0};
        d.step = steps[k];
        MRT_OK(mr_update_values(&d, &v), NULL);
        const double g = 0.5 * (1 - momentum_at(b1, t)) / (1 - product),
                     m = 0.5 * momentum_at(b1, t + 1) / (1 - product * momentum_at(b1, t + 1));
        MRT_TRUE(fabs((double)v.lr - g) < 1e-6 * g);
        MRT_TRUE(fabs((double)v.adam_rate - m) < 1e-6 * m);
    }
    for (uint32_t i = 0; mr_update_rule_at(i); i++) {
        mr_update_desc late = mr_update_rule_at(i)->desc;
        mr_step_values v = {0};
        late.lr = 0.25f;
        late.step = 1000000;
        MRT_OK(mr_update_values(&late, &v), NULL);
        MRT_TRUE(isfinite(v.lr) && isfinite(v.adam_rate) && isfinite(v.adam_root));
    }
}

/* Every kind has a name, the name finds it, and no name occurs twice. */
static void rules_have_names(void **state)
{
    (void)state;
    bool seen[MR_UPDATE_KIND_COUNT] = {false};
    uint32_t count = 0;
    for (const mr_update_rule *r; (r = mr_update_rule_at(count)) != NULL; count++) {
        MRT_TRUE((unsigned)r->desc.kind < MR_UPDATE_KIND_COUNT);
        seen[r->desc.kind] = true;
        MRT_TRUE(mr_update_rule_find(r->name) == r);
        MRT_STR(mr_update_name(&r->desc), r->name);
        MRT_TRUE(r->desc.lr == 0 && r->desc.step == 0);
    }
    for (int kind = 0; kind < MR_UPDATE_KIND_COUNT; kind++) MRT_TRUE(seen[kind]);
    MRT_EQ(count, MR_UPDATE_KIND_COUNT + 1); /* nesterov is a kind's second name */
    MRT_TRUE(mr_update_rule_find("sdg") == NULL && mr_update_rule_find("") == NULL);
    MRT_HAS(mr_update_name(&(mr_update_desc){.kind = (mr_update_kind)MR_UPDATE_KIND_COUNT}), "unknown");
}

static void updates_are_checked(void **state)
{
    (void)state;
    struct rig r;
    float w = 0;
    rig_open(&r, "cpu", false);
    mr_update_desc d = {.kind = MR_UPDATE_ADAM};
    mr_step_values v = {0};
    mr_update_args a = {.count = 1, .weights = &w, .grads = &w, .state = {&w, NULL}, .values = &v};
    MRT_EQ(mr_update_values(&d, &v), MR_EINVAL); /* step 0 */
    MRT_EQ(mr_update_values(&(mr_update_desc){.kind = MR_UPDATE_RMSPROP_MOMENTUM}, &v), MR_EINVAL);
    MRT_EQ(mr_update_async(r.s, &d, &a), MR_EINVAL); /* no second state */
    a.state[1] = &w;
    a.values = NULL;
    MRT_EQ(mr_update_async(r.s, &d, &a), MR_EINVAL);
    a.values = &v;
    d.kind = (mr_update_kind)MR_UPDATE_KIND_COUNT;
    MRT_EQ(mr_update_async(r.s, &d, &a), MR_EINVAL);
    static const struct limits wrong[] = {{-1, 0}, {NAN, 0}, {INFINITY, 0}, {0, -1}, {0, NAN}, {0, 1}};
    mr_update_config cfg;
    mr_update_defaults(&cfg);
    cfg.args = a;
    for (size_t k = 0; k < MRI_ARRAY_COUNT(wrong); k++) { /* the last lacks memory for the norm */
        cfg.clip_value = wrong[k].value;
        cfg.clip_norm = wrong[k].norm;
        MRT_EQ(mr_update_run_async(r.s, &cfg), MR_EINVAL);
    }
    cfg.clip_norm = 0;
    cfg.struct_size = 0;
    MRT_EQ(mr_update_run_async(r.s, &cfg), MR_EINVAL);
    MRT_EQ(mr_update_run_async(r.s, NULL), MR_EINVAL);
    d = mr_update_rule_find("lamb")->desc; /* without a table of tensors */
    a.state[1] = &w;
    MRT_EQ(mr_update_async(r.s, &d, &a), MR_EINVAL);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(updates_follow_their_rules), cmocka_unit_test(gradients_are_clipped),
        cmocka_unit_test(norms_have_one_order),       cmocka_unit_test(decay_is_left_out),
        cmocka_unit_test(averages_are_taken),         cmocka_unit_test(factors_of_late_steps),
        cmocka_unit_test(rules_have_names),           cmocka_unit_test(updates_are_checked),
    };
    return mrt_run(tests);
}
