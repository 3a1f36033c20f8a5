/* kernels: a whole small network, step after step. The fast operations in whatever layouts they choose
 * against the plain C ones; twice the same is the same to the bit; a batch in two parts gives the gradients
 * of the whole. */
#include "tests/kernels/rig.h"

enum { OPS = 11, BATCH = 6, H = 13, W = 11, C = 3, CLASSES = 7, MOST_PARAMS = 400000 };

struct chain {
    struct rig r;
    mr_op *op[OPS];
    mr_op_args args[OPS];
    uint8_t *x;
    int32_t *labels;
    mr_metrics *metrics;
    void *grad[2];
};

static void describe(mr_op_desc *d)
{
    const mr_op_desc conv = {
        .kind = MR_OP_CONV2D, .conv2d.window = {3, 3, 1, 1, 1, 1, 1, 1}, .activation = MR_ACT_RELU};
    int i = 0;
    d[i++] = (mr_op_desc){
        .kind = MR_OP_INPUT, .in = {H, W, C, MR_TENSOR_U8, 0, H * W * C}, .input.std = {255, 255, 255}};
    d[i] = conv, d[i++].conv2d.filters = 20;
    d[i++] = (mr_op_desc){.kind = MR_OP_POOL2D, .pool2d.window = {2, 2, 2, 2, 0, 0, 0, 0}};
    d[i++] = (mr_op_desc){.kind = MR_OP_DROPOUT, .dropout.rate = 0.25f};
    d[i] = conv, d[i++].conv2d.filters = 32;
    d[i++] = (mr_op_desc){.kind = MR_OP_BATCHNORM,
                          .batchnorm.momentum = 0.9f,
                          .batchnorm.epsilon = 1e-3f,
                          .activation = MR_ACT_RELU};
    d[i++] =
        (mr_op_desc){.kind = MR_OP_POOL2D, .pool2d.window = {3, 3, 2, 2, 0, 0, 0, 0}, .pool2d.average = true};
    d[i++] = (mr_op_desc){.kind = MR_OP_DENSE, .dense.units = 33, .activation = MR_ACT_RELU};
    d[i++] = (mr_op_desc){.kind = MR_OP_DROPOUT, .dropout.rate = 0.5f};
    d[i++] = (mr_op_desc){.kind = MR_OP_DENSE, .dense.units = CLASSES};
    d[i++] = (mr_op_desc){.kind = MR_OP_LOSS};
    MRT_EQ(i, OPS);
}

static void chain_open(struct chain *c, bool reference)
{
    mr_error err = MR_ERROR_INIT;
    mr_op_desc d[OPS];
    size_t scratch_bytes = 0, widest = 0;
    rig_open(&c->r, "cpu", reference);
    describe(d);
    for (int i = 0; i < OPS; i++) {
        d[i].max_batch = BATCH;
        d[i].training = true;
        if (d[i].kind == MR_OP_DROPOUT) d[i].dropout.op_id = (uint32_t)i;
        d[i].need_dx = i > 1;
        if (i > 0) d[i].in = mr_op_info_of(c->op[i - 1])->out;
        MRT_OK(mr_op_create(&c->op[i], c->r.dev, &d[i], &err), &err);
        const mr_op_info *info = mr_op_info_of(c->op[i]);
        scratch_bytes = mri_max_u64(scratch_bytes, info->scratch_bytes);
        widest = mri_max_u64(widest, info->out.sample_bytes * BATCH);
    }
    void *scratch = rig_memory(&c->r, scratch_bytes);
    c->x = rig_memory(&c->r, BATCH * H * W * C);
    c->labels = rig_memory(&c->r, BATCH * 4);
    c->metrics = rig_memory(&c->r, sizeof *c->metrics);
    c->grad[0] = rig_memory(&c->r, widest);
    c->grad[1] = rig_memory(&c->r, widest);
    for (int i = 0; i < OPS; i++) {
        const mr_op_info *info = mr_op_info_of(c->op[i]);
        mr_op_args *a = &c->args[i];
        *a = (mr_op_args){.training = true,
                          .seed = 11,
                          .scratch = scratch,
                          .labels = c->labels,
                          .metrics = c->metrics,
                          .saved = rig_memory(&c->r, info->saved_bytes)};
        a->x = i ? c->args[i - 1].y : c->x;
        a->y = rig_memory(&c->r, info->out.sample_bytes * BATCH);
        for (uint32_t k = 0; k < info->param_count; k++) {
            float *host = malloc(info->param[k].count * 4),
                  *w = rig_memory(&c->r, info->param[k].storage_count * 4);
            rig_noise(host, info->param[k].count, (uint64_t)i * 10 + k);
            for (uint64_t j = 0; info->param[k].ndim > 1 && j < info->param[k].count; j++)
                host[j] /= sqrtf((float)info->param[k].fan_in);
            MRT_OK(mr_op_param_import(c->op[i], false, k, w, host, &err), &err);
            free(host);
            a->param[k] = w;
            a->dparam[k] = rig_memory(&c->r, info->param[k].storage_count * 4);
        }
        for (uint32_t k = 0; k < info->state_count; k++)
            a->state[k] = rig_memory(&c->r, info->state[k].storage_count * 4);
    }
    mrt_noise(c->x, BATCH * H * W * C, 5);
    for (int i = 0; i < BATCH; i++) c->labels[i] = i % CLASSES;
}

static void chain_close(struct chain *c)
{
    for (int i = 0; i < OPS; i++) mr_op_destroy(c->op[i]);
    rig_close(&c->r);
}

/* Samples [first, first + n) of the batch, forward and backward. */
static void chain_run(struct chain *c, uint32_t first, uint32_t n, uint64_t step)
{
    mr_error err = MR_ERROR_INIT;
    const mr_step_values values = {.step = step, .scale = 1.0f / BATCH};
    for (int i = 0; i < OPS; i++) {
        mr_op_args *a = &c->args[i];
        a->n = n;
        a->first = first;
        a->values = &values;
        if (i == 0) a->x = c->x + first * H * W * C;
        a->labels = c->labels + first;
        MRT_OK(mr_op_forward_async(c->op[i], c->r.s, a), NULL);
    }
    int at = 0;
    for (int i = OPS - 1; i > 0; i--, at = !at) {
        c->args[i].dy = c->grad[at];
        c->args[i].dx = c->grad[!at];
        MRT_OK(mr_op_backward_async(c->op[i], c->r.s, &c->args[i]), NULL);
    }
    MRT_OK(mr_stream_sync(c->r.s, &err), &err);
}

/* Every gradient and running statistic in canonical order; returns how many numbers. */
static size_t collect(struct chain *c, float *out)
{
    mr_error err = MR_ERROR_INIT;
    size_t count = 0;
    for (int i = 0; i < OPS; i++) {
        const mr_op_info *info = mr_op_info_of(c->op[i]);
        for (uint32_t k = 0; k < info->param_count; k++, count += info->param[k - 1].count)
            MRT_OK(mr_op_param_export(c->op[i], false, k, c->args[i].dparam[k], out + count, &err), &err);
        for (uint32_t k = 0; k < info->state_count; k++, count += info->state[k - 1].count)
            MRT_OK(mr_op_param_export(c->op[i], true, k, c->args[i].state[k], out + count, &err), &err);
    }
    MRT_TRUE(count < MOST_PARAMS);
    return count;
}

static float a[MOST_PARAMS], b[MOST_PARAMS];

static void fast_equals_plain(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {BATCH, 1, 4,     5,
                                     2,     3, BATCH, 4}; /* more than the fast path keeps primitives for */
    struct chain fast, plain;
    chain_open(&fast, false);
    chain_open(&plain, true);
    for (uint64_t step = 0; step < MRI_ARRAY_COUNT(sizes); step++) {
        chain_run(&fast, 0, sizes[step], step);
        chain_run(&plain, 0, sizes[step], step);
        const size_t count = collect(&fast, a);
        MRT_EQ(collect(&plain, b), count);
        double worst = 0, size = 0;
        for (size_t i = 0; i < count; i++) {
            const double apart = fabs((double)a[i] - (double)b[i]), own = fabs((double)b[i]);
            if (apart > worst) worst = apart; /* not fmax(): gcc 12 for aarch64 does not survive it here */
            if (own > size) size = own;
        }
        if (!(worst <= 2e-5 * (1 + size)))
            fail_msg("step %d: gradients differ by %g of %g", (int)step, worst, size);
    }
    MRT_EQ(fast.metrics->count, plain.metrics->count);
    MRT_EQ(fast.metrics->correct, plain.metrics->correct);
    MRT_TRUE(fabs(fast.metrics->loss_sum - plain.metrics->loss_sum) < 1e-4);
    MRT_TRUE(mr_op_info_of(fast.op[1])->flops_per_sample == mr_op_info_of(plain.op[1])->flops_per_sample);
    chain_close(&fast);
    chain_close(&plain);
}

static void twice_is_the_same(void **state)
{
    (void)state;
    for (int reference = 0; reference < 2; reference++) {
        struct chain one, two;
        chain_open(&one, reference);
        chain_open(&two, reference);
        for (uint64_t step = 0; step < 3; step++) {
            chain_run(&one, 0, BATCH, step);
            chain_run(&two, 0, BATCH, step);
            const size_t count = collect(&one, a);
            collect(&two, b);
            MRT_TRUE(memcmp(a, b, count * sizeof *a) == 0);
        }
        chain_close(&one);
        chain_close(&two);
    }
}

/* Without batch statistics in the way: the logits' gradient of the samples of a part does not depend on the
 * part. */
static void parts_see_their_own_samples(void **state)
{
    (void)state;
    struct chain c;
    chain_open(&c, false);
    chain_run(&c, 0, BATCH, 3);
    const float *drop = c.args[3].y;
    const size_t floats = mri_tensor_floats(&mr_op_info_of(c.op[3])->out);
    memcpy(a, drop, floats * BATCH * sizeof *a);
    chain_run(&c, 4, 2, 3);
    for (size_t i = 0; i < 2 * floats; i++)
        MRT_TRUE(fabsf(drop[i] - a[4 * floats + i]) < 1e-5f); /* same draws, same pictures */
    int dropped = 0;
    for (size_t i = 0; i < 2 * floats; i++) dropped += drop[i] == 0;
    MRT_TRUE(dropped > 0);
    chain_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fast_equals_plain),
        cmocka_unit_test(twice_is_the_same),
        cmocka_unit_test(parts_see_their_own_samples),
    };
    return mrt_run(tests);
}
