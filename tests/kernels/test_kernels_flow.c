/* kernels: input, dropout, loss, updates, groups and the simulated step. */
#include "kernels/ops/draws.h"
#include "rig.h"

static void input_is_right(void **state)
{
    (void)state;
    for (int reference = 0; reference < 2; reference++)
        for (uint32_t c = 1; c <= 4; c++) {
            struct rig r;
            mr_error   err = MR_ERROR_INIT;
            mr_op     *op;
            rig_open(&r, "cpu", reference);
            const uint32_t h = 7, w = 5, n = 3, count = n * h * w * c;
            mr_op_desc d = {.kind = MR_OP_INPUT, .in = {h, w, c, MR_TENSOR_U8, 0, (size_t)h * w * c}, .max_batch = n,
                            .mean = {10, 20, 30, 40}, .std = {1, 2, 3, 4}};
            MRT_OK(mr_op_create(&op, r.dev, &d, &err), &err);
            const mr_tensor *out = &mr_op_info_of(op)->out;
            uint8_t *x = rig_memory(&r, count);
            float   *affine = rig_memory(&r, n * 2 * sizeof(float)), *y = rig_memory(&r, out->sample_bytes * n), plain[512];
            mrt_noise(x, count, c);
            for (uint32_t i = 0; i < 2 * n; i++) affine[i] = 0.5f + (float)i;
            for (int with = 0; with < 2; with++) {
                const mr_op_args a = {.n = n, .x = x, .y = y, .affine = with ? affine : NULL};
                MRT_OK(mr_op_forward_async(op, r.s, &a), NULL);
                MRT_OK(mr_stream_sync(r.s, &err), &err);
                rig_load(out, n, y, plain);
                for (uint32_t k = 0; k < count; k++) {
                    const uint32_t i = k / (h * w * c), ch = k % c;
                    const double   m = with ? (double)affine[2 * i] : 1, b = with ? (double)affine[2 * i + 1] : 0;
                    const double   expected = (x[k] * m + b - (double)d.mean[ch]) / (double)d.std[ch];
                    MRT_TRUE(fabs((double)plain[k] - expected) < 1e-3 * (1 + fabs(expected)));
                }
            }
            mr_op_destroy(op);
            rig_close(&r);
        }
}

/* ---- dropout ---- */

/* Dropped pattern of a batch in canonical order, made in two parts of k and n - k samples (k = 0: at once). */
enum { DROP_H = 5, DROP_W = 7, DROP_N = 5, DROP_MOST = DROP_H * DROP_W * 160 * DROP_N };

static void drop(uint32_t channels, uint32_t layout, mr_op_args extra, uint32_t k, float *pattern, float rate)
{
    static float ones[DROP_MOST];
    const int    count = (int)(DROP_H * DROP_W * channels * DROP_N);
    struct rig r;
    mr_error   err = MR_ERROR_INIT;
    mr_op     *op;
    rig_open(&r, "cpu", false);
    mr_op_desc d = {.kind = MR_OP_DROPOUT, .in = rig_tensor(DROP_H, DROP_W, channels, layout), .max_batch = DROP_N, .training = true, .need_dx = true,
                    .rate = rate, .op_id = 3};
    MRT_OK(mr_op_create(&op, r.dev, &d, &err), &err);
    const mr_op_info *info = mr_op_info_of(op);
    MRT_TRUE(info->inplace);
    const size_t floats = mri_tensor_floats(&d.in);
    float *x = rig_memory(&r, floats * 4 * DROP_N), *y = rig_memory(&r, floats * 4 * DROP_N), *dx = rig_memory(&r, floats * 4 * DROP_N);
    uint8_t *saved = rig_memory(&r, info->saved_bytes);
    for (int i = 0; i < count; i++) ones[i] = 1;
    rig_store(&d.in, DROP_N, x, ones);
    for (uint32_t from = 0; from < DROP_N; from = from < k ? k : DROP_N) {
        mr_op_args a = extra;
        a.training = true;
        a.n = from < k ? k : DROP_N - from;
        a.first = from;
        a.x = x + from * floats;
        a.y = y + from * floats;
        a.saved = saved;
        MRT_OK(mr_op_forward_async(op, r.s, &a), NULL);
        a.dy = a.y; /* backward of the pattern by the pattern: 1 / (1 - rate)^2 where kept */
        a.dx = dx + from * floats;
        MRT_OK(mr_op_backward_async(op, r.s, &a), NULL);
        MRT_OK(mr_stream_sync(r.s, &err), &err);
        if (k == 0) break;
    }
    rig_padding_is_zero(&d.in, DROP_N, y);
    rig_padding_is_zero(&d.in, DROP_N, dx);
    rig_load(&d.in, DROP_N, y, pattern);
    rig_load(&d.in, DROP_N, dx, ones);
    for (int i = 0; i < count; i++) MRT_TRUE(fabsf(ones[i] - pattern[i] * pattern[i]) < 1e-5f);
    mr_op_destroy(op);
    rig_close(&r);
}

static void check_dropout(uint32_t channels)
{
    static float a[DROP_MOST], b[DROP_MOST];
    const int        count = (int)(DROP_H * DROP_W * channels * DROP_N);
    const size_t     bytes = (size_t)count * sizeof(float);
    const mr_op_args base = {.seed = 5, .step = 9};
    drop(channels, MR_LAYOUT_NHWC, base, 0, a, 0.25f);
    int dropped = 0;
    for (int i = 0; i < count; i++) {
        MRT_TRUE(a[i] == 0 || fabsf(a[i] - 4.0f / 3) < 1e-6f);
        dropped += a[i] == 0;
    }
    MRT_TRUE(abs(dropped - count / 4) < count / 50);
    for (uint32_t layout = 0; layout <= MRI_LAYOUT_C16; layout++)
        for (uint32_t k = 0; k < 4; k++) { /* any split, any layout: the same */
            drop(channels, layout, base, k, b, 0.25f);
            MRT_TRUE(memcmp(a, b, bytes) == 0);
        }
    const mr_op_args others[] = {{.seed = 6, .step = 9}, {.seed = 5, .step = 10}, {.seed = 5, .step = 9 + (1ull << 32)}};
    for (int i = 0; i < 3; i++) {
        drop(channels, MR_LAYOUT_NHWC, others[i], 0, b, 0.25f);
        int same = 0;
        for (int k = 0; k < count; k++) same += (a[k] == 0) == (b[k] == 0);
        MRT_TRUE(abs(same - count * 10 / 16) < count / 40); /* as two independent coins would */
    }
    drop(channels, MR_LAYOUT_NHWC, base, 0, b, 0);
    for (int i = 0; i < count; i++) MRT_TRUE(b[i] == 1);
}

static void dropout_repeats(void **state)
{
    (void)state;
    check_dropout(37);
    check_dropout(160); /* whole blocks; a sample needs more than one round of draws */
}

/* The vector code draws what the plain code draws, at the edges of every counter too. */
static void draws_are_philox(void **state)
{
    (void)state;
    static uint16_t a[5 * MRI_DRAW_GROUP], b[5 * MRI_DRAW_GROUP];
    for (uint64_t i = 0; i < 20; i++) {
        const struct mri_draw_key key = {mri_mix64(i), i % 3 ? mri_mix64(i + 100) : UINT64_MAX, i % 2 ? UINT32_MAX : (uint32_t)i};
        const uint32_t first = i % 4 ? (uint32_t)i * 1000u : (1u << 28) - 5; /* the last counters there are */
        memset(a, 0, sizeof a);
        mri_draws(a, key, first, 5);
        mri_draws_plain(b, key, first, 5);
        MRT_TRUE(memcmp(a, b, sizeof a) == 0);
    }
    const mri_philox r = mri_philox4x32(mri_mix64(19), (5u * 16 + 3) | 7ull << 32, 9);
    mri_draws(a, (struct mri_draw_key){mri_mix64(19), 9, 7}, 5, 1);
    MRT_EQ(a[3], r.v[0] & 0xFFFF);
    MRT_EQ(a[7 * 16 + 3], r.v[3] >> 16);
}

/* Evaluation leaves everything as it is, in place or not. */
static void dropout_rests_in_evaluation(void **state)
{
    (void)state;
    struct rig r;
    mr_error   err = MR_ERROR_INIT;
    mr_op     *op;
    rig_open(&r, "cpu", false);
    mr_op_desc d = {.kind = MR_OP_DROPOUT, .in = rig_tensor(2, 2, 5, 0), .max_batch = 2, .training = true, .rate = 0.5f};
    MRT_OK(mr_op_create(&op, r.dev, &d, &err), &err);
    float *x = rig_memory(&r, 160), *y = rig_memory(&r, 160);
    rig_noise(x, 40, 1);
    mr_op_args a = {.n = 2, .x = x, .y = y};
    MRT_OK(mr_op_forward_async(op, r.s, &a), NULL);
    a.y = x;
    MRT_OK(mr_op_forward_async(op, r.s, &a), NULL);
    MRT_OK(mr_stream_sync(r.s, &err), &err);
    MRT_TRUE(memcmp(x, y, 160) == 0);
    mr_op_destroy(op);
    rig_close(&r);
}

/* ---- loss ---- */

static void loss_is_right(void **state)
{
    (void)state;
    enum { N = 6, C = 7 };
    struct rig r;
    mr_error   err = MR_ERROR_INIT;
    mr_op     *op;
    rig_open(&r, "cpu", false);
    mr_op_desc d = {.kind = MR_OP_LOSS, .in = rig_tensor(1, 1, C, 0), .max_batch = N, .training = true, .need_dx = true};
    MRT_OK(mr_op_create(&op, r.dev, &d, &err), &err);
    float      *x = rig_memory(&r, N * C * 4), *dx = rig_memory(&r, N * C * 4), *y = rig_memory(&r, N * C * 4);
    int32_t    *labels = rig_memory(&r, N * 4);
    mr_metrics *metrics = rig_memory(&r, sizeof *metrics);
    rig_noise(x, N * C, 1);
    for (int i = 0; i < C; i++) x[C + i] = 3;       /* sample 1: all equal, the first wins */
    x[2 * C] = 1e30f, x[3 * C + 2] = -1e30f;        /* samples 2, 3: out of exp's range */
    const int32_t given[N] = {4, 2, 0, 1, -1, 6};
    memcpy(labels, given, sizeof given);
    const mr_op_args a = {.n = N, .x = x, .y = y, .dx = dx, .labels = labels, .scale = 0.2f, .metrics = metrics, .training = true,
                          .scratch = rig_memory(&r, mr_op_info_of(op)->scratch_bytes)};
    MRT_OK(mr_op_forward_async(op, r.s, &a), NULL);
    MRT_OK(mr_op_forward_async(op, r.s, &a), NULL); /* adds to the metrics */
    MRT_OK(mr_op_backward_async(op, r.s, &a), NULL);
    MRT_OK(mr_stream_sync(r.s, &err), &err);
    double   loss = 0;
    uint64_t correct = 0;
    for (int i = 0; i < N; i++) {
        double top = (double)x[i * C], sum = 0;
        int    best = 0;
        for (int c = 1; c < C; c++)
            if ((double)x[i * C + c] > top) top = (double)x[i * C + c], best = c;
        for (int c = 0; c < C; c++) sum += exp((double)x[i * C + c] - top);
        for (int c = 0; c < C; c++) {
            const double p = exp((double)x[i * C + c] - top) / sum;
            const double g = given[i] < 0 ? 0 : 0.2 * (p - (c == given[i]));
            MRT_TRUE(fabs((double)dx[i * C + c] - g) < 1e-6);
            MRT_TRUE(fabs((double)y[i * C + c] - p) < 1e-6);
        }
        if (given[i] < 0) continue;
        loss += top + log(sum) - (double)x[i * C + given[i]];
        correct += best == given[i];
    }
    MRT_EQ(metrics->count, 2 * (N - 1));
    MRT_EQ(metrics->correct, 2 * correct);
    MRT_TRUE(fabs(metrics->loss_sum - 2 * loss) < 1e-5);

    labels[5] = C; /* out of range */
    MRT_OK(mr_op_forward_async(op, r.s, &a), NULL);
    MRT_EQ(mr_stream_sync(r.s, &err), MR_EINVAL);
    MRT_HAS(err.text, "sample 5 of the batch has label 7, the network has 7 classes");
    mr_op_destroy(op);
    rig_close(&r);
}

/* ---- updates ---- */

static void expected_update(const mr_update_desc *d, double *w, double g, double *s0, double *s1)
{
    const double lr = (double)d->lr, rho = (double)d->rho, eps = (double)d->epsilon, m = (double)d->momentum;
    const double b1 = (double)d->beta1, b2 = (double)d->beta2, t = (double)d->step;
    g += (double)d->weight_decay * *w;
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
    }
}

static void check_update(mr_update_desc d, uint64_t count)
{
    struct rig r;
    mr_error   err = MR_ERROR_INIT;
    rig_open(&r, "cpu", false);
    float *a[4];
    double *e[3];
    for (int k = 0; k < 4; k++) a[k] = rig_memory(&r, count * 4);
    for (int k = 0; k < 3; k++) e[k] = calloc(count, sizeof(double));
    rig_noise(a[0], count, 1);
    for (uint64_t i = 0; i < count; i++) e[0][i] = (double)a[0][i];
    for (d.step = 1; d.step <= 7; d.step++) {
        rig_noise(a[1], count, d.step + 1);
        MRT_OK(mr_update_async(r.s, &d, count, a[0], a[1], a[2], a[3]), NULL);
        MRT_OK(mr_stream_sync(r.s, &err), &err);
        for (uint64_t i = 0; i < count; i++) expected_update(&d, &e[0][i], (double)a[1][i], &e[1][i], &e[2][i]);
    }
    for (uint64_t i = 0; i < count; i++) MRT_TRUE(fabs((double)a[0][i] - e[0][i]) < 2e-6 + 1e-5 * fabs(e[0][i]));
    for (int k = 0; k < 3; k++) free(e[k]);
    rig_close(&r);
}

static void updates_follow_their_rules(void **state)
{
    (void)state;
    static const uint64_t counts[] = {1, 17, 50001};
    for (int k = 0; k < 3; k++)
        for (int decay = 0; decay < 2; decay++)
            for (int kind = MR_UPDATE_SGD; kind <= MR_UPDATE_ADADELTA; kind++) {
                mr_update_desc d = {.kind = (mr_update_kind)kind, .lr = 0.01f, .momentum = 0.9f, .rho = 0.9f, .beta1 = 0.9f,
                                    .beta2 = 0.999f, .epsilon = 1e-3f, .weight_decay = decay ? 0.1f : 0};
                check_update(d, counts[k]);
                d.nesterov = true;
                if (kind == MR_UPDATE_MOMENTUM) check_update(d, counts[k]);
            }
    MRT_EQ(mr_update_state_count(MR_UPDATE_SGD), 0);
    MRT_EQ(mr_update_state_count(MR_UPDATE_RMSPROP), 1);
    MRT_EQ(mr_update_state_count(MR_UPDATE_ADAM), 2);
}

static void updates_are_checked(void **state)
{
    (void)state;
    struct rig r;
    float      w = 0;
    rig_open(&r, "cpu", false);
    mr_update_desc d = {.kind = MR_UPDATE_ADAM};
    MRT_EQ(mr_update_async(r.s, &d, 1, &w, &w, &w, &w), MR_EINVAL); /* step 0 */
    d.step = 1;
    MRT_EQ(mr_update_async(r.s, &d, 1, &w, &w, &w, NULL), MR_EINVAL);
    d.kind = (mr_update_kind)9;
    MRT_EQ(mr_update_async(r.s, &d, 1, &w, &w, &w, &w), MR_EINVAL);
    rig_close(&r);
}

/* ---- groups ---- */

enum { MOST = 7 };

struct crowd {
    mr_device **devices;
    uint32_t    count;
    mr_stream  *streams[MOST];
    mr_group   *group;
};

static void crowd_open(struct crowd *c, const char *kind, uint32_t count)
{
    mr_error          err = MR_ERROR_INIT;
    mr_devices_config cfg;
    char              spec[32];
    mr_devices_defaults(&cfg);
    cfg.compute_threads = 1;
    snprintf(spec, sizeof spec, "%s:%u", kind, count);
    MRT_OK(mr_devices_open(&c->devices, &c->count, spec, &cfg, &err), &err);
    for (uint32_t i = 0; i < count; i++) MRT_OK(mr_stream_create(&c->streams[i], c->devices[i], MR_STREAM_COMPUTE, &err), &err);
    MRT_OK(mr_group_create(&c->group, c->streams, count, &err), &err);
}

static void crowd_close(struct crowd *c)
{
    for (uint32_t i = 0; i < c->count; i++) mr_stream_destroy(c->streams[i]);
    mr_group_destroy(c->group);
    mr_devices_close(c->devices, c->count);
}

static void groups_add_in_device_order(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {1, 2, 3, 5, 7};
    static const uint64_t counts[] = {1, 6, 300007};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(sizes); k++)
        for (size_t q = 0; q < MRI_ARRAY_COUNT(counts); q++) {
            struct crowd   c;
            mr_error       err = MR_ERROR_INIT;
            const uint64_t count = counts[q];
            float         *values[MOST], *copies[MOST], *expected = calloc(count, 4);
            crowd_open(&c, "cpu", sizes[k]);
            for (uint32_t d = 0; d < c.count; d++) {
                values[d] = calloc(count, 4);
                copies[d] = calloc(count, 4);
                rig_noise(values[d], count, d + 1);
                for (uint64_t i = 0; i < count; i++) expected[i] = d ? expected[i] + values[d][i] : values[d][i];
            }
            MRT_OK(mr_group_sum_async(c.group, values, count), NULL);
            for (uint32_t d = 0; d < c.count; d++) /* what follows on a stream sees the whole sum, the others' slices too */
                MRT_OK(mr_copy_d2d_async(c.streams[d], copies[d], values[d], count * 4), NULL);
            for (uint32_t d = 0; d < c.count; d++) MRT_OK(mr_stream_sync(c.streams[d], &err), &err);
            for (uint32_t d = 0; d < c.count; d++) {
                MRT_TRUE(memcmp(values[d], expected, count * 4) == 0);
                MRT_TRUE(memcmp(copies[d], expected, count * 4) == 0);
                free(copies[d]);
            }
            rig_noise(values[c.count - 1], count, 77);
            for (int i = 0; i < 50; i++) MRT_OK(mr_group_broadcast_async(c.group, values, count, c.count - 1), NULL);
            for (uint32_t d = 0; d < c.count; d++) MRT_OK(mr_stream_sync(c.streams[d], &err), &err);
            for (uint32_t d = 0; d < c.count; d++) {
                MRT_TRUE(memcmp(values[d], values[c.count - 1], count * 4) == 0);
                if (d + 1 < c.count) free(values[d]);
            }
            free(values[c.count - 1]);
            free(expected);
            crowd_close(&c);
        }
}

static int run_fail(mri_host_stream *s, const void *args, mr_error *err)
{
    (void)s, (void)args;
    return mr_error_set(err, MR_EIO, "this task fails");
}

/* One stream has failed: nobody hangs, everybody is told. */
static void groups_survive_a_failed_stream(void **state)
{
    (void)state;
    for (uint32_t victim = 0; victim < 3; victim++) {
        struct crowd c;
        mr_error     err = MR_ERROR_INIT;
        float        buffers[3][4] = {{0}}, *values[3] = {buffers[0], buffers[1], buffers[2]};
        crowd_open(&c, "cpu", 3);
        MRT_OK(mr_group_sum_async(c.group, values, 4), NULL);
        MRT_OK(mri_host_push((mri_host_stream *)c.streams[victim], run_fail, "", 1, 0, NULL), NULL);
        for (int i = 0; i < 20; i++) mr_group_sum_async(c.group, values, 4);
        for (uint32_t d = 0; d < 3; d++) MRT_EQ(mr_stream_sync(c.streams[d], &err), MR_EIO);
        crowd_close(&c);
    }
}

static void groups_are_checked(void **state)
{
    (void)state;
    struct crowd c;
    mr_error     err = MR_ERROR_INIT;
    mr_group    *g = (mr_group *)&err;
    crowd_open(&c, "cpu", 2);
    mr_stream *twice[2] = {c.streams[0], c.streams[0]};
    MRT_EQ(mr_group_create(&g, twice, 2, &err), MR_EINVAL);
    MRT_TRUE(g == NULL);
    MRT_EQ(mr_group_create(&g, twice, 0, &err), MR_EINVAL);
    float  v = 0, *values[2] = {&v, NULL};
    MRT_EQ(mr_group_sum_async(c.group, values, 1), MR_EINVAL);
    values[1] = &v;
    MRT_EQ(mr_group_broadcast_async(c.group, values, 1, 2), MR_EINVAL);
    mr_group_destroy(NULL);
    crowd_close(&c);
}

/* ---- sim ---- */

static void sim_spends_the_step_in_the_loss(void **state)
{
    (void)state;
    struct rig r;
    mr_error   err = MR_ERROR_INIT;
    mr_op     *op, *dense;
    rig_open(&r, "sim,step=6ms", false);
    mr_op_desc d = {.kind = MR_OP_LOSS, .in = rig_tensor(1, 1, 3, 0), .max_batch = 2, .training = true};
    MRT_OK(mr_op_create(&op, r.dev, &d, &err), &err);
    float      *x = rig_memory(&r, 24);
    int32_t    *labels = rig_memory(&r, 8);
    mr_metrics *metrics = rig_memory(&r, sizeof *metrics);
    labels[1] = -1;
    mr_op_args a = {.n = 2, .x = x, .y = x, .dx = x, .labels = labels, .metrics = metrics, .training = true};
    uint64_t   start = mri_now_ns();
    for (int i = 0; i < 3; i++) MRT_OK(mr_op_forward_async(op, r.s, &a), NULL);
    MRT_OK(mr_op_backward_async(op, r.s, &a), NULL);
    MRT_OK(mr_stream_sync(r.s, &err), &err);
    MRT_TRUE(mri_now_ns() - start >= 18000000u);
    MRT_EQ(metrics->count, 3);
    a.training = false;
    start = mri_now_ns();
    MRT_OK(mr_op_forward_async(op, r.s, &a), NULL);
    MRT_OK(mr_stream_sync(r.s, &err), &err);
    MRT_TRUE(mri_now_ns() - start >= 2000000u);

    /* parameters come and go as on a real device */
    mr_op_desc dd = {.kind = MR_OP_DENSE, .in = rig_tensor(1, 1, 3, 0), .max_batch = 2, .training = true, .filters = 2};
    MRT_OK(mr_op_create(&dense, r.dev, &dd, &err), &err);
    float *w = rig_memory(&r, mr_op_info_of(dense)->param[0].storage_count * 4), in[6] = {1, 2, 3, 4, 5, 6}, out[6];
    MRT_OK(mr_op_param_import(dense, false, 0, w, in, &err), &err);
    MRT_OK(mr_op_param_export(dense, false, 0, w, out, &err), &err);
    MRT_TRUE(memcmp(in, out, sizeof in) == 0);
    const mr_update_desc u = {.kind = MR_UPDATE_SGD, .lr = 1};
    MRT_OK(mr_update_async(r.s, &u, 6, w, w, NULL, NULL), NULL);
    MRT_OK(mr_stream_sync(r.s, &err), &err);
    mr_op_destroy(dense);
    mr_op_destroy(op);
    rig_close(&r);
}

static void sim_groups_meet(void **state)
{
    (void)state;
    struct crowd c;
    mr_error     err = MR_ERROR_INIT;
    float        buffers[3][2] = {{1, 2}, {3, 4}, {5, 6}}, *values[3] = {buffers[0], buffers[1], buffers[2]};
    crowd_open(&c, "sim", 3);
    MRT_OK(mr_group_sum_async(c.group, values, 2), NULL);
    MRT_OK(mr_group_broadcast_async(c.group, values, 2, 1), NULL);
    for (uint32_t d = 0; d < 3; d++) MRT_OK(mr_stream_sync(c.streams[d], &err), &err);
    for (uint32_t d = 0; d < 3; d++) MRT_TRUE(values[d][0] == 3 && values[d][1] == 4);
    crowd_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(input_is_right),             cmocka_unit_test(dropout_repeats),
        cmocka_unit_test(dropout_rests_in_evaluation), cmocka_unit_test(draws_are_philox), cmocka_unit_test(loss_is_right),
        cmocka_unit_test(updates_follow_their_rules), cmocka_unit_test(updates_are_checked),
        cmocka_unit_test(groups_add_in_device_order), cmocka_unit_test(groups_survive_a_failed_stream),
        cmocka_unit_test(groups_are_checked),         cmocka_unit_test(sim_spends_the_step_in_the_loss),
        cmocka_unit_test(sim_groups_meet),
    };
    return mrt_run(tests);
}
