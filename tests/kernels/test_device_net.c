/* kernels: three training steps of a small network with a branch, on any device (MRT_DEVICES) against the
 * plain C reference:
 *
 *   input ─ conv+relu ─ bn+relu ─┬─ conv, no bias ─ bn + x2 + relu ─ pool ─ dense ─ loss
 *                                └───────────────────────┘                         update of all parameters
 *
 * Where the device records, the second and third step run from a recording of a whole step, and once more
 * without: both must give the same, to the bit where only deterministic algorithms are allowed. Environment
 * as test_device_ops.c. */
#include "tests/kernels/device_lab.h"

enum { INPUT, CONV_A, NORM_A, CONV_B, NORM_B, POOL, DENSE, LOSS, OPS };
enum { BATCH = 6, H = 11, W = 9, C = 3, CLASSES = 7, STEPS = 3, MOST_FLOATS = 8192 };

struct net {
    struct lab *l;
    mr_op *op[OPS];
    mr_op_args args[OPS];
    uint8_t *pixels;
    mr_step_values *values;
    mr_metrics *metrics;
    mr_loss_scale *scale;
    float *weights, *grads, *state;
    uint64_t floats;
};

struct outcome {
    double loss[STEPS];
    uint64_t correct[STEPS], count[STEPS];
    float before[MOST_FLOATS], after[MOST_FLOATS]; /* parameters and statistics, canonical */
    size_t numbers;
    bool recorded;
};

static const mr_update_desc update = {
    .kind = MR_UPDATE_MOMENTUM, .lr = 0.05f, .momentum = 0.9f, .weight_decay = 1e-3f, .step = 1};

/* MR_EUNSUPPORTED: the device has not this type. */
static int make_ops(struct net *n, uint32_t dtype)
{
    const mr_op_desc conv = {
        .kind = MR_OP_CONV2D, .conv2d.filters = 16, .conv2d.window = {3, 3, 1, 1, 1, 1, 1, 1}};
    const mr_op_desc norm = {.kind = MR_OP_BATCHNORM,
                             .batchnorm.momentum = 0.9f,
                             .batchnorm.epsilon = 1e-3f,
                             .activation = MR_ACT_RELU};
    mr_op_desc d[OPS] = {
        [INPUT] = {.kind = MR_OP_INPUT,
                   .in = lab_nhwc(H, W, C, MR_TENSOR_U8),
                   .input.out_dtype = dtype,
                   .input.mean = {120, 120, 120},
                   .input.std = {60, 60, 60}},
        [CONV_A] = conv,
        [NORM_A] = norm,
        [CONV_B] = conv,
        [NORM_B] = norm,
        [POOL] = {.kind = MR_OP_POOL2D, .pool2d.window = {H, W, 1, 1, 0, 0, 0, 0}, .pool2d.average = true},
        [DENSE] = {.kind = MR_OP_DENSE, .dense.units = CLASSES},
        [LOSS] = {.kind = MR_OP_LOSS},
    };
    d[CONV_A].activation = MR_ACT_RELU;
    d[CONV_B].conv2d.no_bias = true;
    d[NORM_B].batchnorm.residual = true;
    for (int i = 0; i < OPS; i++) {
        if (i > 0) d[i].in = mr_op_info_of(n->op[i - 1])->out;
        if (i == NORM_B) d[i].in2 = mr_op_info_of(n->op[NORM_A])->out;
        d[i].max_batch = BATCH;
        d[i].training = i > 0;
        d[i].need_dx = i > CONV_A;
        const int rc = mr_op_create(&n->op[i], n->l->dev, &d[i], &n->l->err);
        if (rc == MR_EUNSUPPORTED) return rc;
        lab_note(n->l, rc);
        if (rc) return rc;
    }
    return MR_OK;
}

static void place_params(struct net *n)
{
    for (int i = 0; i < OPS; i++)
        for (uint32_t k = 0; k < mr_op_info_of(n->op[i])->param_count; k++)
            n->floats += mri_align_up(mr_op_info_of(n->op[i])->param[k].storage_count, 64);
    n->weights = lab_zeros(n->l, n->floats * 4);
    n->grads = lab_zeros(n->l, n->floats * 4); /* what lies between the parameters is updated too */
    n->state = lab_zeros(n->l, n->floats * 4);
    lab_sync(n->l);
    uint64_t at = 0;
    for (int i = 0; i < OPS; i++) {
        const mr_op_info *info = mr_op_info_of(n->op[i]);
        for (uint32_t k = 0; k < info->param_count; k++) {
            const mr_param_info *p = &info->param[k];
            float *host = lab_noise(p->count, (uint64_t)i * 10 + k, MR_TENSOR_F32);
            for (uint64_t j = 0; j < p->count; j++)
                host[j] = p->ndim > 1                  ? host[j] * 2 / sqrtf((float)p->fan_in)
                          : i == NORM_A || i == NORM_B ? 1 - (float)k
                                                       : 0;
            if (!n->l->rc)
                lab_note(n->l, mr_op_param_import(n->op[i], false, k, n->weights + at, host, &n->l->err));
            n->args[i].param[k] = n->weights + at;
            n->args[i].dparam[k] = n->grads + at;
            at += mri_align_up(p->storage_count, 64);
        }
        for (uint32_t k = 0; k < info->state_count; k++) {
            n->args[i].state[k] = lab_zeros(n->l, info->state[k].storage_count * 4);
        }
    }
    lab_sync(n->l);
}

static void place_data(struct net *n, float loss_scale)
{
    size_t scratch_bytes = 0;
    int32_t *labels = lab_host(BATCH * sizeof *labels);
    void *dy[OPS];
    for (int i = 0; i < BATCH; i++) labels[i] = i == 4 ? -1 : i % CLASSES;
    for (int i = 0; i < OPS; i++) {
        const mr_op_info *info = mr_op_info_of(n->op[i]);
        if (info->scratch_bytes > scratch_bytes) scratch_bytes = info->scratch_bytes;
        dy[i] = lab_memory(n->l, info->out.sample_bytes * BATCH);
        n->args[i].y = lab_memory(n->l, info->out.sample_bytes * BATCH);
        n->args[i].saved = info->saved_bytes ? lab_memory(n->l, info->saved_bytes) : NULL;
    }
    const mr_loss_scale scale = {.scale = loss_scale, .growth_steps = 1000};
    void *scratch = lab_memory(n->l, scratch_bytes),
         *device_labels = lab_copy_of(n->l, labels, BATCH * sizeof *labels);
    n->pixels = lab_memory(n->l, BATCH * H * W * C);
    n->values = lab_memory(n->l, sizeof *n->values);
    n->metrics = lab_zeros(n->l, sizeof *n->metrics);
    n->scale = lab_copy_of(n->l, &scale, sizeof scale);
    for (int i = 0; i < OPS; i++) {
        mr_op_args *a = &n->args[i];
        a->n = BATCH;
        a->training = true;
        a->x = i ? n->args[i - 1].y : n->pixels;
        a->scratch = scratch;
        a->values = n->values;
        a->dy = i < LOSS ? dy[i] : NULL;
        a->dx = i > CONV_A ? dy[i - 1] : NULL;
    }
    n->args[NORM_B].x2 = n->args[NORM_A].y;
    n->args[NORM_A].dy2 = dy[NORM_B]; /* the gradient to x2, when the branch's own backward is over */
    n->args[LOSS].labels = device_labels;
    n->args[LOSS].metrics = n->metrics;
    n->args[LOSS].loss_scale = n->scale;
}

static void queue_step(struct net *n)
{
    struct lab *l = n->l;
    for (int i = 0; i < OPS && !l->rc; i++) lab_note(l, mr_op_forward_async(n->op[i], l->s, &n->args[i]));
    for (int i = LOSS; i > INPUT && !l->rc; i--)
        lab_note(l, mr_op_backward_async(n->op[i], l->s, &n->args[i]));
    const mr_update_args args = {.count = n->floats,
                                 .weights = n->weights,
                                 .grads = n->grads,
                                 .state = {n->state},
                                 .values = n->values,
                                 .loss_scale = n->scale};
    if (!l->rc) lab_note(l, mr_update_async(l->s, &update, &args));
}

/* Parameters and running statistics in canonical order. */
static size_t collect(struct net *n, float *out)
{
    size_t at = 0;
    for (int i = 0; i < OPS; i++) {
        const mr_op_info *info = mr_op_info_of(n->op[i]);
        for (uint32_t k = 0; k < info->param_count; k++, at += info->param[k - 1].count)
            if (!n->l->rc)
                lab_note(n->l,
                         mr_op_param_export(n->op[i], false, k, n->args[i].param[k], out + at, &n->l->err));
        for (uint32_t k = 0; k < info->state_count; k++, at += info->state[k - 1].count)
            if (!n->l->rc)
                lab_note(n->l,
                         mr_op_param_export(n->op[i], true, k, n->args[i].state[k], out + at, &n->l->err));
    }
    if (at > MOST_FLOATS) abort();
    return at;
}

static void run_steps(struct net *n, bool record, struct outcome *o)
{
    struct lab *l = n->l;
    mr_graph *graph = NULL;
    o->numbers = collect(n, o->before);
    for (int step = 0; step < STEPS && !l->rc; step++) {
        uint8_t *pixels = lab_host(BATCH * H * W * C);
        mr_step_values v = {.step = (uint64_t)step, .scale = 1.0f / (BATCH - 1)};
        mr_metrics m = {0};
        lab_note(l, mr_update_values(&update, &v));
        for (int i = 0; i < BATCH * H * W * C; i++)
            pixels[i] = (uint8_t)(mri_mix64(lab_settings()->seed + (uint64_t)(step * 100000 + i)) >> 9);
        lab_put(l, n->pixels, pixels, BATCH * H * W * C);
        lab_put(l, n->values, &v, sizeof v);
        lab_put(l, n->metrics, &m, sizeof m);
        /* the first step made the objects that are made once */
        if (step == 1 && record && mr_graph_begin(l->s) == MR_OK) {
            queue_step(n);
            lab_note(l, mr_graph_end(l->s, &graph, &l->err));
        }
        if (graph) lab_note(l, mr_graph_launch_async(graph, l->s));
        else queue_step(n);
        lab_get(l, &m, n->metrics, sizeof m);
        o->loss[step] = m.loss_sum;
        o->correct[step] = m.correct;
        o->count[step] = m.count;
    }
    o->recorded = graph != NULL;
    collect(n, o->after);
    mr_graph_destroy(graph);
}

/* MR_EUNSUPPORTED, or the lab's result. */
static int run_net(struct lab *l, uint32_t dtype, bool record, struct outcome *o)
{
    struct net n = {.l = l};
    int rc = make_ops(&n, dtype);
    if (!rc) {
        place_params(&n);
        place_data(&n, dtype == MR_TENSOR_F16 ? 1024 : 1);
        run_steps(&n, record, o);
        rc = l->rc;
    }
    const char *broken = lab_release(l);
    if (broken) lab_fail("net", "guards", broken);
    for (int i = 0; i < OPS; i++) mr_op_destroy(n.op[i]);
    lab_host_reset();
    return rc;
}

/* Relative difference between the changes that the steps made. */
static double change_error(const struct outcome *a, const struct outcome *b)
{
    static float x[MOST_FLOATS], y[MOST_FLOATS];
    for (size_t i = 0; i < b->numbers; i++) {
        x[i] = a->after[i] - a->before[i];
        y[i] = b->after[i] - b->before[i];
    }
    return lab_error(x, y, b->numbers, 1e-6);
}

static void compare(const char *name, const struct outcome *a, const struct outcome *b, double loss_tolerance,
                    double change_tolerance)
{
    for (int step = 0; step < STEPS; step++) {
        lab_check(name, "loss", fabs(a->loss[step] - b->loss[step]) / b->loss[step], loss_tolerance);
        if (a->count[step] != b->count[step]) lab_fail(name, "count", "another number of samples");
    }
    lab_check(name, "change", change_error(a, b), change_tolerance);
    lab_case_done();
}

int main(void)
{
    /* the errors of a type, over three steps; the change of a parameter is small compared with the rounding
     * of a half's gradients */
    static const struct {
        uint32_t dtype;
        double loss, change;
    } types[] = {
        {MR_TENSOR_F32, 1e-5, 1e-3},
        {MR_TENSOR_BF16, 3e-2, 1e-1},
        {MR_TENSOR_F16, 4e-3, 2e-2},
    };
    static struct outcome expected, found, again;
    struct lab reference, device;
    lab_open(&reference, "cpu", true);
    lab_open(&device, lab_settings()->devices, false);
    const double loosened = lab_settings()->tf32 ? 100 : 1;
    if (run_net(&reference, MR_TENSOR_F32, false, &expected))
        lab_fail("net", "reference", reference.err.text);
    for (size_t t = 0; t < MRI_ARRAY_COUNT(types); t++) {
        lab_group_begin("net", types[t].dtype);
        const double widen = types[t].dtype == MR_TENSOR_F32 ? loosened : 1;
        const int rc = run_net(&device, types[t].dtype, true, &found);
        if (rc == MR_EUNSUPPORTED) {
            lab_group_skip(device.err.text);
        } else if (rc || run_net(&device, types[t].dtype, false, &again)) {
            lab_fail("three steps", "error", device.err.text);
            lab_reopen(&device);
        } else {
            compare(found.recorded ? "recorded steps" : "queued steps", &found, &expected,
                    types[t].loss * widen, types[t].change * widen);
            /* measuring may choose an algorithm that adds in another order each time; deterministic ones do
             * not */
            const bool same = lab_settings()->deterministic;
            if (found.recorded)
                compare("recorded against queued", &found, &again, same ? 0 : types[t].loss * widen,
                        same ? 0 : types[t].change * widen);
        }
        lab_group_end();
    }
    lab_close(&device);
    lab_close(&reference);
    return lab_report();
}
