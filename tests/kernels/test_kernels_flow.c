/* kernels: input, dropout, loss, updates, groups and the simulated step. */
#include <semaphore.h>

#include "kernels/ops/draws.h"
#include "tests/kernels/rig.h"

static void input_is_right(void **state)
{
    (void)state;
    for (int reference = 0; reference < 2; reference++)
        for (uint32_t c = 1; c <= 4; c++) {
            struct rig r;
            mr_error err = MR_ERROR_INIT;
            mr_op *op;
            rig_open(&r, "cpu", reference);
            const uint32_t h = 7, w = 5, n = 3, count = n * h * w * c;
            mr_op_desc d = {.kind = MR_OP_INPUT,
                            .in = {h, w, c, MR_TENSOR_U8, 0, (size_t)h * w * c},
                            .max_batch = n,
                            .input.mean = {10, 20, 30, 40},
                            .input.std = {1, 2, 3, 4}};
            MRT_OK(mr_op_create(&op, r.dev, &d, &err), &err);
            const mr_tensor *out = &mr_op_info_of(op)->out;
            uint8_t *x = rig_memory(&r, count);
            float *affine = rig_memory(&r, n * 2 * sizeof(float)), *y = rig_memory(&r, out->sample_bytes * n),
                  plain[512];
            mrt_noise(x, count, c);
            for (uint32_t i = 0; i < 2 * n; i++) affine[i] = 0.5f + (float)i;
            for (int with = 0; with < 2; with++) {
                const mr_op_args a = {.n = n, .x = x, .y = y, .affine = with ? affine : NULL};
                MRT_OK(mr_op_forward_async(op, r.s, &a), NULL);
                MRT_OK(mr_stream_sync(r.s, &err), &err);
                rig_load(out, n, y, plain);
                for (uint32_t k = 0; k < count; k++) {
                    const uint32_t i = k / (h * w * c), ch = k % c;
                    const double m = with ? (double)affine[2 * i] : 1,
                                 b = with ? (double)affine[2 * i + 1] : 0;
                    const double expected =
                        (x[k] * m + b - (double)d.input.mean[ch]) / (double)d.input.std[ch];
                    MRT_TRUE(fabs((double)plain[k] - expected) < 1e-3 * (1 + fabs(expected)));
                }
            }
            mr_op_destroy(op);
            rig_close(&r);
        }
}

/* Every wanted layout, rows turned where flip says so: the same values at the places their layout gives
 * them. */
static void input_mirrors_and_obeys(void **state)
{
    (void)state;
    enum { H = 3, W = 37, N = 3 }; /* wide enough for every vector length and a rest */
    for (int at = 0; at < 2 * 3 * 4; at++) {
        const bool reference = at % 2;
        const mr_wanted_layout want = (mr_wanted_layout)(at / 2 % 3);
        const uint32_t c = (uint32_t)(at / 6) + 1, sample = H * W * c;
        struct rig r;
        mr_error err = MR_ERROR_INIT;
        mr_op *op;
        rig_open(&r, "cpu", reference);
        const mr_op_desc d = {.kind = MR_OP_INPUT,
                              .in = {H, W, c, MR_TENSOR_U8, 0, sample},
                              .max_batch = N,
                              .input.mean = {10, 20, 30, 40},
                              .input.std = {1, 2, 3, 4},
                              .want = want};
        MRT_OK(mr_op_create(&op, r.dev, &d, &err), &err);
        const mr_tensor *out = &mr_op_info_of(op)->out;
        if (want != MR_WANT_ANY) MRT_EQ(out->layout, want == MR_WANT_NCHW ? MR_LAYOUT_NCHW : MR_LAYOUT_NHWC);
        uint8_t *x = rig_memory(&r, N * sample), *flip = rig_memory(&r, N);
        float *y = rig_memory(&r, out->sample_bytes * N), straight[H * W * 4 * N], turned[H * W * 4 * N];
        mrt_noise(x, N * sample, c);
        flip[0] = 1, flip[2] = 255;
        mr_op_args a = {.n = N, .x = x, .y = y};
        MRT_OK(mr_op_forward_async(op, r.s, &a), NULL);
        MRT_OK(mr_stream_sync(r.s, &err), &err);
        rig_load(out, N, y, straight);
        a.flip = flip;
        MRT_OK(mr_op_forward_async(op, r.s, &a), NULL);
        MRT_OK(mr_stream_sync(r.s, &err), &err);
        rig_load(out, N, y, turned);
        for (uint32_t k = 0; k < N * sample; k++) {
            const uint32_t i = k / sample, px = k / c % W, from = flip[i] ? k - px * c + (W - 1 - px) * c : k;
            MRT_TRUE(turned[k] == straight[from]);
            MRT_TRUE(straight[k] ==
                     (float)x[k] * (1 / d.input.std[k % c]) + (0 - d.input.mean[k % c]) / d.input.std[k % c]);
        }
        mr_op_destroy(op);
        rig_close(&r);
    }
}

/* ---- dropout ---- */

/* Dropped pattern of a batch in canonical order, made in two parts of k and n - k samples (k = 0: at
 * once). */
enum { DROP_H = 5, DROP_W = 7, DROP_N = 5, DROP_MOST = DROP_H * DROP_W * 160 * DROP_N };

static void drop(uint32_t channels, uint32_t layout, mr_op_args extra, uint32_t k, float *pattern, float rate)
{
    static float ones[DROP_MOST];
    const int count = (int)(DROP_H * DROP_W * channels * DROP_N);
    struct rig r;
    mr_error err = MR_ERROR_INIT;
    mr_op *op;
    rig_open(&r, "cpu", false);
    mr_op_desc d = {.kind = MR_OP_DROPOUT,
                    .in = rig_tensor(DROP_H, DROP_W, channels, layout),
                    .max_batch = DROP_N,
                    .training = true,
                    .need_dx = true,
                    .dropout.rate = rate,
                    .dropout.op_id = 3};
    MRT_OK(mr_op_create(&op, r.dev, &d, &err), &err);
    const mr_op_info *info = mr_op_info_of(op);
    MRT_TRUE(info->inplace);
    const size_t floats = mri_tensor_floats(&d.in);
    float *x = rig_memory(&r, floats * 4 * DROP_N), *y = rig_memory(&r, floats * 4 * DROP_N),
          *dx = rig_memory(&r, floats * 4 * DROP_N);
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
    const int count = (int)(DROP_H * DROP_W * channels * DROP_N);
    const size_t bytes = (size_t)count * sizeof(float);
    static const mr_step_values steps[] = {{.step = 9}, {.step = 10}, {.step = 9 + (1ull << 32)}};
    const mr_op_args base = {.seed = 5, .values = &steps[0]};
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
    const mr_op_args others[] = {
        {.seed = 6, .values = &steps[0]}, {.seed = 5, .values = &steps[1]}, {.seed = 5, .values = &steps[2]}};
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

/* One draw a sample: the same ones for any split and layout; about as many as asked for. */
static void samples_are_dropped_as_a_whole(void **state)
{
    (void)state;
    enum { N = 64, SIDE = 3, STEPS = 40 };
    uint32_t kept = 0, changed = 0;
    uint8_t before[N] = {0};
    for (uint32_t step = 0; step < STEPS; step++) {
        struct rig r;
        mr_error err = MR_ERROR_INIT;
        mr_op *op;
        const uint32_t layout = step % 4, cut = step * 7 % N, c = 5 + step;
        rig_open(&r, "cpu", step % 3 == 0);
        const mr_op_desc d = {.kind = MR_OP_DROPOUT,
                              .in = rig_tensor(SIDE, SIDE, c, layout),
                              .max_batch = N,
                              .training = true,
                              .need_dx = true,
                              .dropout = {.rate = 0.25f, .op_id = 3, .whole_samples = true}};
        MRT_OK(mr_op_create(&op, r.dev, &d, &err), &err);
        MRT_TRUE(mr_op_info_of(op)->inplace && mr_op_info_of(op)->saved_bytes == N);
        const size_t floats = mri_tensor_floats(&d.in);
        float *x = rig_memory(&r, floats * 4 * N), *dy = rig_memory(&r, floats * 4 * N);
        uint8_t *saved = rig_memory(&r, N);
        float canonical[SIDE * SIDE * 64];
        for (size_t i = 0; i < SIDE * SIDE * c; i++) canonical[i] = 3;
        for (uint32_t i = 0; i < N; i++) {
            rig_store(&d.in, 1, x + i * floats, canonical);
            rig_store(&d.in, 1, dy + i * floats, canonical);
        }
        const mr_step_values values = {.step = step / 2};
        for (uint32_t from = 0; from < N; from = from < cut ? cut : N) { /* in place */
            const mr_op_args a = {.n = from < cut ? cut : N - from,
                                  .x = x + from * floats,
                                  .y = x + from * floats,
                                  .dy = dy + from * floats,
                                  .dx = dy + from * floats,
                                  .saved = saved + from,
                                  .seed = 11,
                                  .first = from,
                                  .values = &values,
                                  .training = true};
            MRT_OK(mr_op_forward_async(op, r.s, &a), NULL);
            MRT_OK(mr_op_backward_async(op, r.s, &a), NULL);
        }
        MRT_OK(mr_stream_sync(r.s, &err), &err);
        rig_padding_is_zero(&d.in, N, x);
        for (uint32_t i = 0; i < N; i++) {
            const float expected = saved[i] ? 4 : 0;
            rig_load(&d.in, 1, x + i * floats, canonical);
            for (size_t k = 0; k < SIDE * SIDE * c; k++) MRT_TRUE(fabsf(canonical[k] - expected) < 1e-6f);
            rig_load(&d.in, 1, dy + i * floats, canonical);
            for (size_t k = 0; k < SIDE * SIDE * c; k++) MRT_TRUE(fabsf(canonical[k] - expected) < 1e-6f);
            if (step % 2) MRT_EQ(saved[i], before[i]); /* of the same step */
            else changed += saved[i] != before[i];
            kept += saved[i];
        }
        memcpy(before, saved, N);
        mr_op_destroy(op);
        rig_close(&r);
    }
    MRT_TRUE(abs((int)kept - N * STEPS * 3 / 4) < N * STEPS / 20);
    MRT_TRUE(changed > N * STEPS / 2 / 4);
}

/* The vector code draws what the plain code draws, at the edges of every counter too. */
static void draws_are_philox(void **state)
{
    (void)state;
    static uint16_t a[5 * MRI_DRAW_GROUP], b[5 * MRI_DRAW_GROUP];
    for (uint64_t i = 0; i < 20; i++) {
        const struct mri_draw_key key = {mri_mix64(i), i % 3 ? mri_mix64(i + 100) : UINT64_MAX,
                                         i % 2 ? UINT32_MAX : (uint32_t)i};
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
    mr_error err = MR_ERROR_INIT;
    mr_op *op;
    rig_open(&r, "cpu", false);
    mr_op_desc d = {.kind = MR_OP_DROPOUT,
                    .in = rig_tensor(2, 2, 5, 0),
                    .max_batch = 2,
                    .training = true,
                    .dropout.rate = 0.5f};
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

static void check_loss(mr_loss_desc settings, bool training, bool mixes)
{
    enum { N = 6, C = 7 };
    const double factor = settings.factor > 0 ? (double)settings.factor : 1,
                 smoothing = training ? (double)settings.smoothing : 0;
    struct rig r;
    mr_error err = MR_ERROR_INIT;
    mr_op *op;
    rig_open(&r, "cpu", false);
    mr_op_desc d = {.kind = MR_OP_LOSS,
                    .in = rig_tensor(1, 1, C, 0),
                    .max_batch = N,
                    .training = true,
                    .need_dx = true,
                    .loss = settings};
    MRT_OK(mr_op_create(&op, r.dev, &d, &err), &err);
    float *x = rig_memory(&r, N * C * 4), *dx = rig_memory(&r, N * C * 4), *y = rig_memory(&r, N * C * 4);
    int32_t *labels = rig_memory(&r, N * 4);
    mr_metrics *metrics = rig_memory(&r, sizeof *metrics);
    rig_noise(x, N * C, 1);
    for (int i = 0; i < C; i++) x[C + i] = 3; /* sample 1: all equal, the first wins */
    x[2 * C] = 1e30f, x[3 * C + 2] = -1e30f;  /* samples 2, 3: out of exp's range */
    const int32_t given[N] = {4, 2, 0, 1, -1, 6};
    memcpy(labels, given, sizeof given);
    static const int32_t second[N] = {1, 0, -7, 1, 2, 3};
    static const float share[N] = {0.25f, 0.75f, 0, 0.5f, 0.5f, 1};
    int32_t *labels2 = rig_memory(&r, sizeof second);
    float *share2 = rig_memory(&r, sizeof share);
    memcpy(labels2, second, sizeof second);
    memcpy(share2, share, sizeof share);
    static const float given_weights[C] = {0.5f, 2, 0, 1, 3, 0.25f, 1.5f};
    float *weights = rig_memory(&r, sizeof given_weights);
    memcpy(weights, given_weights, sizeof given_weights);
    const bool weighs = settings.class_weights && training;
    const mr_step_values values = {.scale = 0.2f};
    const mr_op_args a = {.n = N,
                          .class_weights = settings.class_weights ? weights : NULL,
                          .labels2 = mixes ? labels2 : NULL,
                          .share2 = mixes ? share2 : NULL,
                          .x = x,
                          .y = y,
                          .dx = dx,
                          .labels = labels,
                          .values = &values,
                          .metrics = metrics,
                          .training = training,
                          .scratch = rig_memory(&r, mr_op_info_of(op)->scratch_bytes)};
    MRT_OK(mr_op_forward_async(op, r.s, &a), NULL);
    MRT_OK(mr_op_forward_async(op, r.s, &a), NULL); /* adds to the metrics */
    MRT_OK(mr_op_backward_async(op, r.s, &a), NULL);
    MRT_OK(mr_stream_sync(r.s, &err), &err);
    double loss = 0;
    uint64_t correct = 0;
    for (int i = 0; i < N; i++) {
        double top = (double)x[i * C], sum = 0;
        int best = 0;
        for (int c = 1; c < C; c++)
            if ((double)x[i * C + c] > top) top = (double)x[i * C + c], best = c;
        for (int c = 0; c < C; c++) sum += exp(factor * ((double)x[i * C + c] - top));
        double ends = 0, all = 0; /* all: of what is wanted of the classes, as they weigh */
        const double part = mixes ? (double)share[i] : 0;
        for (int c = 0; c < C; c++)
            all += (weighs ? (double)weights[c] : 1) *
                   ((1 - smoothing) * ((c == given[i] ? 1 - part : 0) + (c == second[i] ? part : 0)) +
                    smoothing / C);
        for (int c = 0; c < C; c++) {
            const double z = factor * ((double)x[i * C + c] - top), p = exp(z) / sum,
                         both = (c == given[i] ? 1 - part : 0) + (c == second[i] ? part : 0),
                         wanted =
                             (weighs ? (double)weights[c] : 1) * ((1 - smoothing) * both + smoothing / C),
                         g = given[i] < 0 ? 0 : 0.2 * factor * (all * p - wanted);
            MRT_TRUE(fabs((double)dx[i * C + c] - g) < 1e-6);
            MRT_TRUE(fabs((double)y[i * C + c] - p) < 1e-6);
            if (wanted > 0) ends -= wanted * (z - log(sum));
        }
        if (given[i] < 0) continue;
        loss += ends;
        correct += best == (part > 0.5 ? second[i] : given[i]);
    }
    MRT_EQ(metrics->count, 2 * (N - 1));
    MRT_EQ(metrics->correct, 2 * correct);
    MRT_TRUE(fabs(metrics->loss_sum - 2 * loss) < 1e-5 + 1e-7 * loss);

    float plain[N * C]; /* a scaled loss: its gradient, to the bit */
    memcpy(plain, dx, sizeof plain);
    const mr_loss_scale scale = {.scale = 4096};
    mr_op_args scaled = a;
    scaled.loss_scale = &scale;
    MRT_OK(mr_op_backward_async(op, r.s, &scaled), NULL);
    MRT_OK(mr_stream_sync(r.s, &err), &err);
    for (int i = 0; i < N * C; i++) MRT_TRUE(dx[i] == 4096 * plain[i]);

    labels[5] = C; /* out of range */
    MRT_OK(mr_op_forward_async(op, r.s, &a), NULL);
    MRT_EQ(mr_stream_sync(r.s, &err), MR_EINVAL);
    MRT_HAS(err.text, "sample 5 of the batch has label 7, the network has 7 classes");
    MRT_EQ(metrics->bad, 0); /* the error says it */
    mr_op_destroy(op);
    rig_close(&r);
}

static void loss_is_right(void **state)
{
    (void)state;
    static const mr_loss_desc settings[] = {{0},
                                            {.factor = 0.125f},
                                            {.smoothing = 0.2f},
                                            {.factor = 2.5f, .smoothing = 0.3f},
                                            {.class_weights = true},
                                            {.factor = 0.5f, .smoothing = 0.3f, .class_weights = true}};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(settings); k++)
        for (int form = 0; form < 4; form++) check_loss(settings[k], form % 2, form / 2);
}

enum { LOGITS = 8 }; /* samples of the next test */

struct told {
    float y[LOGITS], dx[LOGITS]; /* of class 1 */
    mr_metrics metrics;
};

/* With `logits` logits, 1 or 2, the last of which is that of class 1 and the other 0. */
static struct told told_by(uint32_t logits, mr_loss_desc settings, bool reference, bool mixes)
{
    static const int32_t second[LOGITS] = {0, 1, 1, -3, 1, 0, 0, 1};
    static const float share[LOGITS] = {0.25f, 0.5f, 0.75f, 0, 0.5f, 0.5f, 0, 0.5f};
    static const float x[LOGITS] = {0.3f, -2, 0, 0, 90, -90, 1e30f, 5};
    static const int32_t given[LOGITS] = {1, 0, 0, 1, 0, 0, 1, -1};
    struct told out;
    struct rig r;
    mr_error err = MR_ERROR_INIT;
    mr_op *op;
    rig_open(&r, "cpu", reference);
    const mr_op_desc d = {.kind = MR_OP_LOSS,
                          .in = rig_tensor(1, 1, logits, 0),
                          .max_batch = LOGITS,
                          .training = true,
                          .need_dx = true,
                          .loss = settings};
    MRT_OK(mr_op_create(&op, r.dev, &d, &err), &err);
    const size_t bytes = d.in.sample_bytes * LOGITS;
    float *in = rig_memory(&r, bytes), *dx = rig_memory(&r, bytes), *y = rig_memory(&r, bytes);
    int32_t *labels = rig_memory(&r, sizeof given);
    int32_t *labels2 = rig_memory(&r, sizeof second);
    float *share2 = rig_memory(&r, sizeof share);
    memcpy(labels2, second, sizeof second);
    memcpy(share2, share, sizeof share);
    mr_metrics *metrics = rig_memory(&r, sizeof *metrics);
    memcpy(labels, given, sizeof given);
    for (uint32_t i = 0; i < LOGITS; i++) in[i * logits + logits - 1] = x[i];
    float *weights = rig_memory(&r, 2 * sizeof *weights);
    weights[0] = 0.5f, weights[1] = 2;
    const mr_step_values values = {.scale = 0.2f};
    const mr_op_args a = {.n = LOGITS,
                          .labels2 = mixes ? labels2 : NULL,
                          .share2 = mixes ? share2 : NULL,
                          .class_weights = weights,
                          .x = in,
                          .y = y,
                          .dx = dx,
                          .labels = labels,
                          .values = &values,
                          .metrics = metrics,
                          .training = true,
                          .scratch = rig_memory(&r, mr_op_info_of(op)->scratch_bytes)};
    MRT_OK(mr_op_forward_async(op, r.s, &a), NULL);
    MRT_OK(mr_op_backward_async(op, r.s, &a), NULL);
    MRT_OK(mr_stream_sync(r.s, &err), &err);
    for (uint32_t i = 0; i < LOGITS; i++)
        out.y[i] = y[i * logits + logits - 1], out.dx[i] = dx[i * logits + logits - 1];
    out.metrics = *metrics;
    labels[2] = 2;
    MRT_OK(mr_op_forward_async(op, r.s, &a), NULL);
    MRT_EQ(mr_stream_sync(r.s, &err), MR_EINVAL);
    MRT_HAS(err.text, "label 2, the network has 2 classes");
    mr_op_destroy(op);
    rig_close(&r);
    return out;
}

/* One logit x gives what the two logits 0 and x give, and its gradient is that of the second. */
static void one_logit_tells_two_classes(void **state)
{
    (void)state;
    static const mr_loss_desc settings[] = {{0},
                                            {.factor = 0.5f, .weight = 3},
                                            {.smoothing = 0.2f},
                                            {.silent = true},
                                            {.factor = 0.5f, .smoothing = 0.2f, .class_weights = true}};
    for (size_t k = 0; k < 4 * MRI_ARRAY_COUNT(settings); k++) {
        const mr_loss_desc how = settings[k / 4];
        const bool mixes = k / 2 % 2;
        const struct told one = told_by(1, how, k % 2, mixes), two = told_by(2, how, k % 2, mixes);
        const mr_metrics *a = &one.metrics, *b = &two.metrics;
        MRT_EQ(a->count, how.silent ? 0 : LOGITS - 1);
        MRT_TRUE(a->count == b->count && a->correct == b->correct);
        MRT_EQ(a->correct, how.silent ? 0 : mixes ? 4 : 5);
        MRT_TRUE(b->loss_sum > (mixes ? 40 : 90) && fabs(a->loss_sum - b->loss_sum) <= 1e-6 * b->loss_sum);
        for (int i = 0; i < LOGITS; i++)
            MRT_TRUE(fabsf(one.y[i] - two.y[i]) <= 1e-7f && fabsf(one.dx[i] - two.dx[i]) <= 1e-7f);
    }
}

/* Labels and weights that are none; of samples that do not count nobody asks. */
static void wrong_second_labels_are_refused(void **state)
{
    (void)state;
    static const struct {
        int32_t label;
        float share;
        const char *what;
    } wrong[] = {{3, 0.5f, "has label 3, the network has 3 classes"},
                 {-1, 0.5f, "has label -1, the network has 3 classes"},
                 {1, 1.5f, "1.5 of a second label, expected 0 to 1"},
                 {1, -0.5f, "-0.5 of a second label"},
                 {1, NAN, "nan of a second label"}};
    const mr_op_desc d = {.kind = MR_OP_LOSS, .in = rig_tensor(1, 1, 3, 0), .max_batch = 2, .training = true};
    for (size_t k = 0; k < 2 * MRI_ARRAY_COUNT(wrong); k++) {
        struct rig r;
        mr_error err = MR_ERROR_INIT;
        mr_op *op;
        rig_open(&r, "cpu", false);
        MRT_OK(mr_op_create(&op, r.dev, &d, &err), &err);
        int32_t *labels = rig_memory(&r, 2 * sizeof *labels);
        int32_t *labels2 = rig_memory(&r, 2 * sizeof *labels2);
        float *share2 = rig_memory(&r, 2 * sizeof *share2);
        labels[1] = k % 2 ? -1 : 2;
        labels2[1] = wrong[k / 2].label;
        share2[1] = wrong[k / 2].share;
        const mr_op_args a = {.n = 2,
                              .x = rig_memory(&r, 2 * d.in.sample_bytes),
                              .labels = labels,
                              .labels2 = labels2,
                              .share2 = share2,
                              .training = true,
                              .metrics = rig_memory(&r, sizeof(mr_metrics)),
                              .scratch = rig_memory(&r, mr_op_info_of(op)->scratch_bytes)};
        MRT_OK(mr_op_forward_async(op, r.s, &a), NULL);
        MRT_EQ(mr_stream_sync(r.s, &err), k % 2 ? MR_OK : MR_EINVAL);
        if (k % 2 == 0) MRT_HAS(err.text, wrong[k / 2].what);
        mr_op_destroy(op);
        rig_close(&r);
    }
}

/* Evaluation asks for no weights, and counts all classes alike; training without them is refused. */
static void classes_weigh_in_training_alone(void **state)
{
    (void)state;
    static const float logits[] = {1, 2, 0};
    struct rig r;
    mr_error err = MR_ERROR_INIT;
    mr_op *op;
    rig_open(&r, "cpu", false);
    const mr_op_desc d = {.kind = MR_OP_LOSS,
                          .in = rig_tensor(1, 1, 3, 0),
                          .max_batch = 1,
                          .training = true,
                          .loss.class_weights = true};
    MRT_OK(mr_op_create(&op, r.dev, &d, &err), &err);
    float *x = rig_memory(&r, sizeof logits), *weights = rig_memory(&r, 3 * sizeof *weights);
    int32_t *labels = rig_memory(&r, sizeof *labels);
    memcpy(x, logits, sizeof logits);
    weights[0] = 4;
    mr_op_args a = {.n = 1, .x = x, .labels = labels};
    a.metrics = rig_memory(&r, sizeof *a.metrics);
    a.scratch = rig_memory(&r, mr_op_info_of(op)->scratch_bytes);
    MRT_OK(mr_op_forward_async(op, r.s, &a), NULL);
    MRT_OK(mr_stream_sync(r.s, &err), &err);
    const double alike = a.metrics->loss_sum;
    a.training = true;
    MRT_EQ(mr_op_forward_async(op, r.s, &a), MR_EINVAL);
    a.class_weights = weights;
    MRT_OK(mr_op_forward_async(op, r.s, &a), NULL);
    MRT_OK(mr_stream_sync(r.s, &err), &err);
    MRT_TRUE(alike > 1.4 && fabs(a.metrics->loss_sum - 5 * alike) < 1e-12);
    mr_op_destroy(op);
    rig_close(&r);
}

static void wrong_losses_are_refused(void **state)
{
    (void)state;
    static const mr_loss_desc wrong[] = {{.factor = -1},   {.factor = NAN},      {.factor = INFINITY},
                                         {.smoothing = 1}, {.smoothing = -0.1f}, {.smoothing = NAN}};
    struct rig r;
    mr_error err = MR_ERROR_INIT;
    mr_op *op;
    rig_open(&r, "cpu", false);
    for (size_t k = 0; k < MRI_ARRAY_COUNT(wrong); k++) {
        const mr_op_desc d = {
            .kind = MR_OP_LOSS, .in = rig_tensor(1, 1, 3, 0), .max_batch = 2, .loss = wrong[k]};
        MRT_EQ(mr_op_create(&op, r.dev, &d, &err), MR_EINVAL);
        MRT_HAS(err.text, k < 3 ? "loss: factor" : "loss: smoothing");
    }
    rig_close(&r);
}

/* ---- updates ---- */

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

/* A table for cfg->args.count weights: tensors of 1, 2, 3, ... stretches (each: of one), and what is beside
 * it. */
static void set_tensors(struct rig *r, mr_update_config *cfg, uint64_t count, bool each)
{
    const uint64_t stretches = (count + MR_UPDATE_STRETCH - 1) / MR_UPDATE_STRETCH;
    uint32_t *tensors = rig_memory(r, (size_t)stretches * sizeof *tensors), tensor = 0;
    for (uint64_t s = 0, left = 1; s < stretches; s++, left--) {
        if (left == 0) left = each ? 1 : ++tensor + 1;
        tensors[s] = each ? (uint32_t)s : tensor;
    }
    cfg->tensors = tensors;
    cfg->tensor_count = tensors[stretches - 1] + 1;
    cfg->trust = rig_memory(r, (size_t)mr_update_trust_count(count, cfg->tensor_count) * sizeof *cfg->trust);
}

struct limits {
    float value, norm;
};

/* What is left of the gradients in double; the square of the norm of what the limit of each element left. */
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
        cfg.clip_value = 1; /* first each, then the norm of what is left */
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

/* What a step's factors come to far out, and that they depend on its number alone. */
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

/* Every kind has a name, the name finds it, and the names are none twice. */
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

/* One update with every gradient g[i] but one, which is `odd`. */
static void scaled_update(struct rig *r, mr_update_desc d, uint64_t count, float *const a[4],
                          mr_loss_scale *scale, uint64_t at, float odd, bool clips)
{
    mr_error err = MR_ERROR_INIT;
    mr_step_values v = {0};
    MRT_OK(mr_update_values(&d, &v), NULL);
    const float before = a[1][at];
    if (odd != 0) a[1][at] = odd;
    mr_update_config cfg;
    mr_update_defaults(&cfg);
    cfg.rule = d;
    cfg.args = (mr_update_args){.count = count,
                                .weights = a[0],
                                .grads = a[1],
                                .state = {a[2], a[3]},
                                .values = &v,
                                .loss_scale = scale};
    cfg.norm = malloc((size_t)mr_update_norm_count(count) * sizeof(double));
    set_tensors(r, &cfg, count, false);
    if (clips) cfg.clip_value = 0.75f, cfg.clip_norm = 0.5f;
    MRT_OK(mr_update_run_async(r->s, &cfg), NULL);
    MRT_OK(mr_stream_sync(r->s, &err), &err);
    free(cfg.norm);
    a[1][at] = before;
}

/* Scaled gradients update as unscaled ones, to the bit; an overflow anywhere leaves everything alone and
 * halves the scale; after enough good updates in a row it doubles. */
static void check_loss_scale(mr_update_desc d, uint64_t count, bool clips)
{
    static const float odd[] = {INFINITY, -INFINITY, NAN};
    struct rig r;
    rig_open(&r, "cpu", false);
    float *a[4], *b[4], *kept = calloc(count, 4);
    for (int k = 0; k < 4; k++) a[k] = rig_memory(&r, count * 4), b[k] = rig_memory(&r, count * 4);
    mr_loss_scale *scale = rig_memory(&r, sizeof *scale);
    *scale = (mr_loss_scale){.scale = 1024, .growth_steps = 3};
    rig_noise(a[0], count, 1);
    memcpy(b[0], a[0], count * 4);
    uint64_t skipped = 0;
    uint32_t good = 0;
    float expected = 1024;
    for (int step = 0; step < 14; step++) {
        rig_noise(b[1], count, (uint64_t)step + 2);
        for (uint64_t i = 0; i < count; i++) a[1][i] = b[1][i] * expected;
        const bool bad = step == 1 || step == 5 || step == 6 || step == 13;
        d.step = (uint64_t)step + 1;
        memcpy(kept, a[0], count * 4);
        scaled_update(&r, d, count, a, scale, bad ? (uint64_t)step * 7919 % count : 0,
                      bad ? odd[step % 3] : 0, clips);
        if (bad) {
            MRT_TRUE(memcmp(kept, a[0], count * 4) == 0);
            expected /= 2, good = 0, skipped++;
        } else {
            scaled_update(&r, d, count, b, NULL, 0, 0, clips);
            if (++good == 3) expected *= 2, good = 0;
        }
        MRT_TRUE(scale->scale == expected);
        MRT_EQ(scale->good, good);
        MRT_EQ(scale->skipped, skipped);
        MRT_EQ(scale->overflow, 0);
        MRT_TRUE(memcmp(a[0], b[0], count * 4) == 0 && memcmp(a[2], b[2], count * 4) == 0 &&
                 memcmp(a[3], b[3], count * 4) == 0);
    }
    free(kept);
    rig_close(&r);
}

static void loss_scales_live(void **state)
{
    (void)state;
    static const uint64_t counts[] = {1, 19, 70001};
    for (int k = 0; k < 3; k++)
        for (int kind = 0; kind < MR_UPDATE_KIND_COUNT; kind++)
            check_loss_scale((mr_update_desc){.kind = (mr_update_kind)kind,
                                              .lr = 0.01f,
                                              .momentum = 0.9f,
                                              .rho = 0.9f,
                                              .beta1 = 0.9f,
                                              .beta2 = 0.999f,
                                              .epsilon = 1e-3f,
                                              .weight_decay = 0.1f},
                             counts[k], kind % 2);
}

/* 1 and 2^24 are the ends; with growth_steps 0 the scale stays, and updates are skipped all the same. */
static void loss_scales_have_ends(void **state)
{
    (void)state;
    static const struct {
        float from;
        uint32_t growth;
        bool bad;
        float to;
    } cases[] = {
        {1, 1, true, 1},
        {2, 1, true, 1},
        {16777216, 1, false, 16777216},
        {8388608, 1, false, 16777216},
        {64, 0, true, 64},
        {64, 0, false, 64},
        {64, 2, false, 64},
    };
    for (size_t i = 0; i < MRI_ARRAY_COUNT(cases); i++) {
        struct rig r;
        rig_open(&r, "cpu", false);
        float *const a[4] = {rig_memory(&r, 4), rig_memory(&r, 4), NULL, NULL};
        mr_loss_scale *scale = rig_memory(&r, sizeof *scale);
        *scale = (mr_loss_scale){.scale = cases[i].from, .growth_steps = cases[i].growth};
        a[1][0] = cases[i].from;
        scaled_update(&r, (mr_update_desc){.kind = MR_UPDATE_SGD, .lr = 0.5f}, 1, a, scale, 0,
                      cases[i].bad ? NAN : 0, false);
        MRT_TRUE(scale->scale == cases[i].to);
        MRT_EQ(scale->skipped, cases[i].bad);
        MRT_TRUE(a[0][0] == (cases[i].bad ? 0 : -0.5f));
        rig_close(&r);
    }
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

/* ---- groups ---- */

enum { MOST = 7 };

struct crowd {
    mr_device **devices;
    uint32_t count;
    mr_stream *streams[MOST];
    mr_group *group;
};

static void crowd_open(struct crowd *c, const char *kind, uint32_t count)
{
    mr_error err = MR_ERROR_INIT;
    mr_devices_config cfg;
    char spec[32];
    mr_devices_defaults(&cfg);
    cfg.compute_threads = 1;
    snprintf(spec, sizeof spec, "%s:%u", kind, count);
    MRT_OK(mr_devices_open(&c->devices, &c->count, spec, &cfg, &err), &err);
    for (uint32_t i = 0; i < count; i++)
        MRT_OK(mr_stream_create(&c->streams[i], c->devices[i], MR_STREAM_COMPUTE, &err), &err);
    MRT_OK(mr_group_create(&c->group, c->streams, count, &err), &err);
}

static void crowd_close(struct crowd *c)
{
    for (uint32_t i = 0; i < c->count; i++) mr_stream_destroy(c->streams[i]);
    mr_group_destroy(c->group);
    mr_devices_close(c->devices, c->count);
}

/* The sum of v[first] ... v[first + n - 1] at one place: the first 2^k of them, and the rest. */
static float tree_sum(float *const *v, uint32_t first, uint32_t n, uint64_t at)
{
    uint32_t half = 1;
    if (n == 1) return v[first][at];
    while (2 * half < n) half *= 2;
    return tree_sum(v, first, half, at) + tree_sum(v, first + half, n - half, at);
}

static void groups_add_in_the_order_of_the_tree(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {1, 2, 3, 5, 7};
    static const uint64_t counts[] = {1, 6, 300007};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(sizes); k++)
        for (size_t q = 0; q < MRI_ARRAY_COUNT(counts); q++) {
            struct crowd c;
            mr_error err = MR_ERROR_INIT;
            const uint64_t count = counts[q];
            float *values[MOST], *copies[MOST], *expected = calloc(count, 4);
            crowd_open(&c, "cpu", sizes[k]);
            for (uint32_t d = 0; d < c.count; d++) {
                values[d] = calloc(count, 4);
                copies[d] = calloc(count, 4);
                rig_noise(values[d], count, d + 1);
            }
            for (uint64_t i = 0; i < count; i++) expected[i] = tree_sum(values, 0, c.count, i);
            MRT_OK(mr_group_sum_async(c.group, values, count), NULL);
            for (uint32_t d = 0; d < c.count; d++) /* what follows on a stream sees the whole sum, the others'
                                                      slices too */
                MRT_OK(mr_copy_d2d_async(c.streams[d], copies[d], values[d], count * 4), NULL);
            for (uint32_t d = 0; d < c.count; d++) MRT_OK(mr_stream_sync(c.streams[d], &err), &err);
            for (uint32_t d = 0; d < c.count; d++) {
                MRT_TRUE(memcmp(values[d], expected, count * 4) == 0);
                MRT_TRUE(memcmp(copies[d], expected, count * 4) == 0);
                free(copies[d]);
            }
            rig_noise(values[c.count - 1], count, 77);
            for (int i = 0; i < 50; i++)
                MRT_OK(mr_group_broadcast_async(c.group, values, count, c.count - 1), NULL);
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
        mr_error err = MR_ERROR_INIT;
        float buffers[3][4] = {{0}}, *values[3] = {buffers[0], buffers[1], buffers[2]};
        crowd_open(&c, "cpu", 3);
        MRT_OK(mr_group_sum_async(c.group, values, 4), NULL);
        MRT_OK(mri_host_push((mri_host_stream *)c.streams[victim], run_fail, "", 1, 0, NULL), NULL);
        for (int i = 0; i < 20; i++) mr_group_sum_async(c.group, values, 4);
        for (uint32_t d = 0; d < 3; d++) MRT_EQ(mr_stream_sync(c.streams[d], &err), MR_EIO);
        crowd_close(&c);
    }
}

static int run_until_posted(mri_host_stream *s, const void *args, mr_error *err)
{
    (void)s, (void)err;
    sem_t *go;
    memcpy(&go, args, sizeof go);
    while (sem_wait(go) != 0) {
    }
    return MR_OK;
}

/* One stream never comes: the others wait until the group is given up; then everything ends with an error,
 * the late one too. */
static void groups_can_be_given_up(void **state)
{
    (void)state;
    for (uint32_t victim = 0; victim < 3; victim++) {
        struct crowd c;
        mr_error err = MR_ERROR_INIT;
        mr_event *end[3];
        sem_t go, *address = &go;
        float buffers[3][4] = {{1}, {2}, {3}}, *values[3] = {buffers[0], buffers[1], buffers[2]};
        sem_init(&go, 0, 0);
        crowd_open(&c, "cpu", 3);
        MRT_OK(mr_group_sum_async(c.group, values, 4), NULL); /* one that works */
        for (uint32_t d = 0; d < 3; d++) MRT_OK(mr_stream_sync(c.streams[d], &err), &err);
        MRT_TRUE(values[0][0] == 6 && values[2][0] == 6);
        MRT_OK(mri_host_push((mri_host_stream *)c.streams[victim], run_until_posted, &address, sizeof address,
                             0, NULL),
               NULL);
        for (int i = 0; i < 3; i++) MRT_OK(mr_group_sum_async(c.group, values, 4), NULL);
        for (uint32_t d = 0; d < 3; d++) {
            MRT_OK(mr_event_create(&end[d], c.devices[d], &err), &err);
            MRT_OK(mr_event_record(end[d], c.streams[d]), NULL);
            MRT_EQ(mr_event_wait(end[d], d == victim ? 0 : 3000000, &err), MR_EAGAIN);
        }
        mr_group_abort(c.group);
        mr_group_abort(c.group);
        for (uint32_t d = 0; d < 3; d++)
            if (d != victim) MRT_EQ(mr_event_sync(end[d], &err), MR_EDEVICE);
        MRT_EQ(mr_event_query(end[victim]), MR_EAGAIN);
        sem_post(&go);
        for (uint32_t d = 0; d < 3; d++) {
            MRT_EQ(mr_stream_sync(c.streams[d], &err), MR_EDEVICE);
            MRT_HAS(err.text, "group of 3");
            MRT_EQ(mr_fill_async(c.streams[d], values[d], 0, 4), MR_EDEVICE); /* later work ends too */
            mr_event_destroy(end[d]);
        }
        crowd_close(&c);
        sem_destroy(&go);
    }
}

/* Given up with nothing queued: later work says so. */
static void idle_groups_can_be_given_up(void **state)
{
    (void)state;
    struct crowd c;
    mr_error err = MR_ERROR_INIT;
    float buffers[2][2] = {{0}}, *values[2] = {buffers[0], buffers[1]};
    crowd_open(&c, "cpu", 2);
    mr_group_abort(c.group);
    mr_group_abort(NULL);
    mr_group_sum_async(c.group, values, 2);
    for (uint32_t d = 0; d < 2; d++) {
        MRT_EQ(mr_stream_sync(c.streams[d], &err), MR_EDEVICE);
        MRT_HAS(err.text, "group of 2");
    }
    crowd_close(&c);
}

static void groups_are_checked(void **state)
{
    (void)state;
    struct crowd c;
    mr_error err = MR_ERROR_INIT;
    mr_group *g = (mr_group *)&err;
    crowd_open(&c, "cpu", 2);
    mr_stream *twice[2] = {c.streams[0], c.streams[0]};
    MRT_EQ(mr_group_create(&g, twice, 2, &err), MR_EINVAL);
    MRT_TRUE(g == NULL);
    MRT_EQ(mr_group_create(&g, twice, 0, &err), MR_EINVAL);
    float v = 0, *values[2] = {&v, NULL};
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
    mr_error err = MR_ERROR_INIT;
    mr_op *op, *dense;
    const mr_step_values values = {.scale = 0.5f};
    rig_open(&r, "sim,step=6ms", false);
    mr_op_desc d = {.kind = MR_OP_LOSS, .in = rig_tensor(1, 1, 3, 0), .max_batch = 2, .training = true};
    MRT_OK(mr_op_create(&op, r.dev, &d, &err), &err);
    float *x = rig_memory(&r, 24);
    int32_t *labels = rig_memory(&r, 8);
    mr_metrics *metrics = rig_memory(&r, sizeof *metrics);
    labels[1] = -1;
    mr_op_args a = {.n = 2,
                    .x = x,
                    .y = x,
                    .dx = x,
                    .labels = labels,
                    .values = &values,
                    .metrics = metrics,
                    .training = true};
    uint64_t start = mri_now_ns();
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
    mr_op_desc dd = {.kind = MR_OP_DENSE,
                     .in = rig_tensor(1, 1, 3, 0),
                     .max_batch = 2,
                     .training = true,
                     .dense.units = 2};
    MRT_OK(mr_op_create(&dense, r.dev, &dd, &err), &err);
    float *w = rig_memory(&r, mr_op_info_of(dense)->param[0].storage_count * 4), in[6] = {1, 2, 3, 4, 5, 6},
          out[6];
    MRT_OK(mr_op_param_import(dense, false, 0, w, in, &err), &err);
    MRT_OK(mr_op_param_export(dense, false, 0, w, out, &err), &err);
    MRT_TRUE(memcmp(in, out, sizeof in) == 0);
    const mr_update_desc u = {.kind = MR_UPDATE_SGD, .lr = 1};
    const mr_step_values v = {.lr = 1};
    const mr_update_args args = {.count = 6, .weights = w, .grads = w, .values = &v};
    MRT_OK(mr_update_async(r.s, &u, &args), NULL);
    MRT_OK(mr_stream_sync(r.s, &err), &err);
    mr_op_destroy(dense);
    mr_op_destroy(op);
    rig_close(&r);
}

static void sim_groups_meet(void **state)
{
    (void)state;
    struct crowd c;
    mr_error err = MR_ERROR_INIT;
    float buffers[3][2] = {{1, 2}, {3, 4}, {5, 6}}, *values[3] = {buffers[0], buffers[1], buffers[2]};
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
        cmocka_unit_test(input_is_right),
        cmocka_unit_test(dropout_repeats),
        cmocka_unit_test(samples_are_dropped_as_a_whole),
        cmocka_unit_test(input_mirrors_and_obeys),
        cmocka_unit_test(loss_scales_live),
        cmocka_unit_test(loss_scales_have_ends),
        cmocka_unit_test(groups_can_be_given_up),
        cmocka_unit_test(idle_groups_can_be_given_up),
        cmocka_unit_test(dropout_rests_in_evaluation),
        cmocka_unit_test(draws_are_philox),
        cmocka_unit_test(loss_is_right),
        cmocka_unit_test(one_logit_tells_two_classes),
        cmocka_unit_test(classes_weigh_in_training_alone),
        cmocka_unit_test(wrong_losses_are_refused),
        cmocka_unit_test(wrong_second_labels_are_refused),
        cmocka_unit_test(updates_follow_their_rules),
        cmocka_unit_test(gradients_are_clipped),
        cmocka_unit_test(norms_have_one_order),
        cmocka_unit_test(decay_is_left_out),
        cmocka_unit_test(averages_are_taken),
        cmocka_unit_test(factors_of_late_steps),
        cmocka_unit_test(rules_have_names),
        cmocka_unit_test(updates_are_checked),
        cmocka_unit_test(groups_add_in_the_order_of_the_tree),
        cmocka_unit_test(groups_survive_a_failed_stream),
        cmocka_unit_test(groups_are_checked),
        cmocka_unit_test(sim_spends_the_step_in_the_loss),
        cmocka_unit_test(sim_groups_meet),
    };
    return mrt_run(tests);
}
