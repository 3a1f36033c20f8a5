/* kernels: dropout and its draws: the same ones for any layout and split of the batch, of elements and of
 * whole samples; no dropout in evaluation. */
#include "kernels/ops/draws.h"
#include "tests/kernels/rig.h"

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

/* One draw a sample: the same ones for any split and layout; about the requested number. */
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

/* The vector code draws the same as the plain code, also at the edges of every counter. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dropout_repeats),
        cmocka_unit_test(samples_are_dropped_as_a_whole),
        cmocka_unit_test(draws_are_philox),
        cmocka_unit_test(dropout_rests_in_evaluation),
    };
    return mrt_run(tests);
}
