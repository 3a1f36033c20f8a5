/* bench/bench_step.c: whole training steps of three small networks on one cpu device, operations chained
 * directly: samples per second, and where a step's time goes. One JSON line per result.
 *
 *   bench_step [N1|N3|N9] [batch] [seconds] [threads] [device text]
 *
 * Not measured: reading, decoding, host-to-device copies, the trainer around the operations. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "millrace/kernels.h"

#define MAX_OPS 24

struct node {
    mr_op *op;
    mr_op_desc desc;
    mr_op_args args;
};

struct net {
    mr_device **devices;
    uint32_t count, batch, op_count, update_at;
    mr_stream *s;
    struct node node[MAX_OPS];
    uint64_t param_floats;
    float *weights, *grads, *state;
    mr_update_desc update;
    mr_step_values values; /* the device reads the host's memory: cpu only */
    mr_event *marks[2 * MAX_OPS + 4];
    uint32_t mark_count;
    bool marking;
};

static void ok(int rc, const mr_error *err)
{
    char text[1024];
    if (rc == MR_OK) return;
    fprintf(stderr, "bench_step: %s\n", err ? mr_error_format(err, text, sizeof text) : mr_status_text(rc));
    exit(1);
}

static void *memory(struct net *n, size_t bytes)
{
    mr_error err = MR_ERROR_INIT;
    void *p;
    ok(mr_device_alloc(n->devices[0], bytes, &p, &err), &err);
    ok(mr_fill_async(n->s, p, 0, bytes), NULL);
    return p;
}

/* ---- building ---- */

static const mr_op_info *add(struct net *n, mr_op_desc d)
{
    mr_error err = MR_ERROR_INIT;
    struct node *node = &n->node[n->op_count];
    d.max_batch = n->batch;
    d.training = true;
    if (d.kind == MR_OP_DROPOUT) d.dropout.op_id = n->op_count;
    if (n->op_count > 0) d.in = mr_op_info_of(n->node[n->op_count - 1].op)->out;
    d.need_dx = n->op_count > 1;
    node->desc = d;
    ok(mr_op_create(&node->op, n->devices[0], &d, &err), &err);
    n->op_count++;
    return mr_op_info_of(node->op);
}

static void input(struct net *n, uint32_t h, uint32_t w, uint32_t c)
{
    add(n, (mr_op_desc){.kind = MR_OP_INPUT,
                        .in = {h, w, c, MR_TENSOR_U8, 0, (size_t)h * w * c},
                        .input.std = {255, 255, 255, 255}});
}

static void conv(struct net *n, uint32_t filters, uint32_t pad)
{
    add(n, (mr_op_desc){.kind = MR_OP_CONV2D,
                        .activation = MR_ACT_RELU,
                        .conv2d.filters = filters,
                        .conv2d.window = {3, 3, 1, 1, pad, pad, pad, pad}});
}

static void pool(struct net *n)
{
    add(n, (mr_op_desc){.kind = MR_OP_POOL2D, .pool2d.window = {2, 2, 2, 2, 0, 0, 0, 0}});
}

static void dropout(struct net *n, float rate)
{
    add(n, (mr_op_desc){.kind = MR_OP_DROPOUT, .dropout.rate = rate});
}

static void dense(struct net *n, uint32_t units, mr_activation act)
{
    add(n, (mr_op_desc){.kind = MR_OP_DENSE, .dense.units = units, .activation = act});
}

static void build(struct net *n, const char *name)
{
    n->update =
        (mr_update_desc){.kind = MR_UPDATE_RMSPROP, .lr = 1e-4f, .rho = 0.9f, .epsilon = 1e-7f, .step = 1};
    n->values.scale = 1.0f / (float)n->batch;
    ok(mr_update_values(&n->update, &n->values), NULL);
    if (strcmp(name, "N1") == 0) {
        input(n, 32, 32, 3);
        conv(n, 32, 1), conv(n, 32, 0), pool(n), dropout(n, 0.25f);
        conv(n, 64, 1), conv(n, 64, 0), pool(n), dropout(n, 0.25f);
        dense(n, 512, MR_ACT_RELU), dropout(n, 0.5f);
    } else if (strcmp(name, "N3") == 0) {
        input(n, 28, 28, 1);
        conv(n, 32, 0), conv(n, 64, 0), pool(n), dropout(n, 0.25f);
        dense(n, 128, MR_ACT_RELU), dropout(n, 0.5f);
    } else {
        input(n, 28, 28, 1);
        dense(n, 512, MR_ACT_RELU);
        n->update = (mr_update_desc){.kind = MR_UPDATE_SGD, .lr = 0.1f};
    }
    dense(n, 10, MR_ACT_NONE);
    add(n, (mr_op_desc){.kind = MR_OP_LOSS});
}

static void place_params(struct net *n)
{
    mr_error err = MR_ERROR_INIT;
    for (uint32_t i = 0; i < n->op_count; i++)
        for (uint32_t k = 0; k < mr_op_info_of(n->node[i].op)->param_count; k++)
            n->param_floats += mri_align_up(mr_op_info_of(n->node[i].op)->param[k].storage_count, 64);
    n->weights = memory(n, n->param_floats * 4);
    n->grads = memory(n, n->param_floats * 4);
    n->state = memory(n, n->param_floats * 4);
    ok(mr_stream_sync(n->s, &err), &err);
    uint64_t at = 0;
    for (uint32_t i = 0; i < n->op_count; i++)
        for (uint32_t k = 0; k < mr_op_info_of(n->node[i].op)->param_count; k++) {
            const mr_param_info *p = &mr_op_info_of(n->node[i].op)->param[k];
            float *host = calloc(p->count, 4);
            if (!host) ok(MR_ENOMEM, NULL);
            for (uint64_t j = 0; p->ndim > 1 && j < p->count; j++)
                host[j] = ((float)(mri_mix64(j + i) >> 40) / 8388608.0f - 1) * 2.4f /
                          (float)(p->fan_in > 36 ? 24 : 6);
            ok(mr_op_param_import(n->node[i].op, false, k, n->weights + at, host, &err), &err);
            free(host);
            n->node[i].args.param[k] = n->weights + at;
            n->node[i].args.dparam[k] = n->grads + at;
            at += mri_align_up(p->storage_count, 64);
        }
}

static void place_data(struct net *n)
{
    size_t scratch_bytes = 0, widest = 0;
    for (uint32_t i = 0; i < n->op_count; i++) {
        const mr_op_info *info = mr_op_info_of(n->node[i].op);
        if (info->scratch_bytes > scratch_bytes) scratch_bytes = info->scratch_bytes;
        if (info->out.sample_bytes * n->batch > widest) widest = info->out.sample_bytes * n->batch;
    }
    void *scratch = memory(n, scratch_bytes), *d[2] = {memory(n, widest), memory(n, widest)};
    const mr_tensor *in = &n->node[0].desc.in;
    uint8_t *x = memory(n, in->sample_bytes * n->batch), *host = malloc(in->sample_bytes * n->batch);
    int32_t *labels = memory(n, n->batch * 4), *host_labels = calloc(n->batch, 4);
    if (!host || !host_labels) ok(MR_ENOMEM, NULL);
    for (size_t i = 0; i < in->sample_bytes * n->batch; i++) host[i] = (uint8_t)mri_mix64(i);
    for (uint32_t i = 0; i < n->batch; i++) host_labels[i] = (int32_t)(i % 10);
    mr_error err = MR_ERROR_INIT;
    ok(mr_copy_h2d_async(n->s, x, host, in->sample_bytes * n->batch), NULL);
    ok(mr_copy_h2d_async(n->s, labels, host_labels, n->batch * 4), NULL);
    ok(mr_stream_sync(n->s, &err), &err);
    free(host);
    free(host_labels);
    void *at = x;
    for (uint32_t i = 0; i < n->op_count; i++) {
        const mr_op_info *info = mr_op_info_of(n->node[i].op);
        mr_op_args *a = &n->node[i].args;
        const bool loss = n->node[i].desc.kind == MR_OP_LOSS;
        a->n = n->batch;
        a->training = true;
        a->x = at;
        a->y = loss ? NULL : info->inplace ? at : memory(n, info->out.sample_bytes * n->batch);
        a->saved = memory(n, info->saved_bytes + 1);
        a->scratch = scratch;
        a->labels = labels;
        a->values = &n->values;
        a->metrics = loss ? memory(n, sizeof(mr_metrics)) : NULL;
        at = a->y;
    }
    void *grad = d[0], *other = d[1]; /* gradients go down through two buffers */
    for (uint32_t i = n->op_count; i-- > 1;) {
        mr_op_args *a = &n->node[i].args;
        a->dy = grad;
        a->dx = mr_op_info_of(n->node[i].op)->inplace ? grad : other;
        if (a->dx == other) {
            other = grad;
            grad = a->dx;
        }
    }
}

/* ---- running ---- */

static void mark(struct net *n)
{
    if (n->marking) ok(mr_event_record(n->marks[n->mark_count++], n->s), NULL);
}

static void step(struct net *n)
{
    n->mark_count = 0;
    n->values.step++;
    mark(n);
    for (uint32_t i = 0; i < n->op_count; i++) {
        ok(mr_op_forward_async(n->node[i].op, n->s, &n->node[i].args), NULL);
        mark(n);
    }
    for (uint32_t i = n->op_count; i-- > 1;) {
        ok(mr_op_backward_async(n->node[i].op, n->s, &n->node[i].args), NULL);
        mark(n);
    }
    const mr_update_args update = {.count = n->param_floats,
                                   .weights = n->weights,
                                   .grads = n->grads,
                                   .state = {n->state},
                                   .values = &n->values};
    ok(mr_update_async(n->s, &n->update, &update), NULL);
    mark(n);
}

static const char *kind_name(const struct net *n, uint32_t i)
{
    static const char *const names[] = {"input",   "conv2d",    "pool2d", "dense", "activation",
                                        "dropout", "batchnorm", "loss",   "add"};
    return names[n->node[i].desc.kind];
}

static double median(double *v, size_t count)
{
    for (size_t i = 1; i < count; i++)
        for (size_t k = i; k > 0 && v[k] < v[k - 1]; k--) {
            const double t = v[k];
            v[k] = v[k - 1];
            v[k - 1] = t;
        }
    return v[count / 2];
}

static void profile(struct net *n)
{
    enum { ROUNDS = 15 };
    static double ms[2 * MAX_OPS + 4][ROUNDS];
    mr_error err = MR_ERROR_INIT;
    n->marking = true;
    for (size_t i = 0; i < MRI_ARRAY_COUNT(n->marks); i++)
        ok(mr_event_create(&n->marks[i], n->devices[0], &err), &err);
    for (int round = 0; round < ROUNDS; round++) {
        step(n);
        ok(mr_stream_sync(n->s, &err), &err);
        uint64_t before, after;
        for (uint32_t i = 0; i + 1 < n->mark_count; i++) {
            ok(mr_event_time_ns(n->marks[i], &before), NULL);
            ok(mr_event_time_ns(n->marks[i + 1], &after), NULL);
            ms[i][round] = (double)(after - before) / 1e6;
        }
    }
    for (uint32_t i = 0; i + 1 < n->mark_count; i++) {
        const bool forward = i < n->op_count, last = i + 2 == n->mark_count;
        const uint32_t op = forward ? i : 2 * n->op_count - 1 - i;
        const double t = median(ms[i], ROUNDS);
        const double work = last ? 0
                                 : mr_op_info_of(n->node[op].op)->flops_per_sample * n->batch *
                                       (forward  ? 1
                                        : op > 1 ? 2
                                                 : 1);
        printf("{\"event\":\"bench\",\"part\":\"%s\",\"op\":%u,\"pass\":\"%s\",\"ms\":%.3f,\"gflop_per_s\":%."
               "0f}\n",
               last ? "update" : kind_name(n, op), last ? 0 : op,
               last      ? "update"
               : forward ? "forward"
                         : "backward",
               t, work / t / 1e6);
    }
    for (size_t i = 0; i < MRI_ARRAY_COUNT(n->marks); i++) mr_event_destroy(n->marks[i]);
    n->marking = false;
}

int main(int argc, char **argv)
{
    static struct net n;
    mr_error err = MR_ERROR_INIT;
    mr_devices_config cfg;
    const char *name = argc > 1 ? argv[1] : "N1";
    n.batch = argc > 2 ? (uint32_t)atoi(argv[2]) : 128;
    const double seconds = argc > 3 ? atof(argv[3]) : 5;
    mr_devices_defaults(&cfg);
    cfg.compute_threads = argc > 4 ? (uint32_t)atoi(argv[4]) : 0;
    ok(mr_devices_open(&n.devices, &n.count, argc > 5 ? argv[5] : "cpu", &cfg, &err), &err);
    ok(mr_stream_create(&n.s, n.devices[0], MR_STREAM_COMPUTE, &err), &err);
    build(&n, name);
    place_params(&n);
    place_data(&n);

    for (int i = 0; i < 10; i++) step(&n);
    ok(mr_stream_sync(n.s, &err), &err);
    uint64_t steps = 0, best_ns = UINT64_MAX;
    const uint64_t start = mri_now_ns();
    while ((double)(mri_now_ns() - start) < seconds * 1e9) { /* rounds of some steps, so that the queue never
                                                                runs dry */
        const uint64_t round = mri_now_ns();
        const uint32_t steps_a_round = 20;
        for (uint32_t i = 0; i < steps_a_round; i++) step(&n);
        ok(mr_stream_sync(n.s, &err), &err);
        best_ns = mri_min_u64(best_ns, (mri_now_ns() - round) / steps_a_round);
        steps += steps_a_round;
    }
    const double took = (double)(mri_now_ns() - start) / 1e9;
    profile(&n);
    printf("{\"event\":\"bench\",\"part\":\"step\",\"model\":\"%s\",\"batch\":%u,\"threads\":%u,\"steps\":%"
           "llu,\"samples_per_s\":%.0f,"
           "\"best_samples_per_s\":%.0f,\"step_ms\":%.3f}\n",
           name, n.batch, mr_device_info_of(n.devices[0])->threads, (unsigned long long)steps,
           (double)steps * n.batch / took, (double)n.batch / (double)best_ns * 1e9,
           took * 1e3 / (double)steps);
    for (uint32_t i = 0; i < n.op_count; i++) mr_op_destroy(n.node[i].op);
    mr_stream_destroy(n.s);
    mr_devices_close(n.devices, n.count); /* memory goes with the process */
    return 0;
}
