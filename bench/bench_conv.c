/* bench/bench_conv.c: each pass of 3 x 3 convolutions of stride 1 on a cpu device, direct and by Winograd, in
 * turns: the measurements for the table of kernels/ops/dnnl/winograd.c. One JSON line per shape and pass.
 *
 *   bench_conv [rounds [threads [channels filters size pad batch]]]      without a shape: the table's shapes
 *
 * Times are medians over the rounds; a round runs every pass of both devices once. With one thread a time is
 * processor time, which busy neighbours disturb little: the table is made this way. With more it is wall
 * time. The time of the gradient to the input is backward's time with it less backward's time without it.
 * gflop_per_s counts the direct algorithm's operations. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/util.h"
#include "millrace/kernels.h"

#define MAX_ROUNDS 64
enum { DIRECT, WINOGRAD, KINDS };

struct shape {
    uint32_t c, f, size, pad, batch;
};

/* A convolution with all it needs, with or without the gradient to its input. */
struct layer {
    mr_op *op;
    mr_op_args args;
};

struct bench {
    mr_device **devices[KINDS];
    mr_stream *stream[KINDS];
    uint32_t rounds, threads;
};

static double now_ms(uint32_t threads)
{
    struct timespec t;
    if (threads != 1) return (double)mri_now_ns() / 1e6;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void ok(int rc, const mr_error *err)
{
    char text[1024];
    if (rc == MR_OK) return;
    fprintf(stderr, "bench_conv: %s\n", err ? mr_error_format(err, text, sizeof text) : mr_status_text(rc));
    exit(1);
}

/* Numbers in (-1, 1); a cpu device's memory is the host's. */
static void *noise(mr_device *dev, size_t bytes)
{
    mr_error err = MR_ERROR_INIT;
    void *p;
    ok(mr_device_alloc(dev, bytes + 4, &p, &err), &err);
    for (size_t i = 0; i < bytes / 4; i++)
        ((float *)p)[i] = (float)((double)(mri_mix64(i) >> 40) / 8388608.0 - 1.0);
    return p;
}

static mr_op_desc describe(const struct shape *s, const mr_tensor *in, bool need_dx)
{
    return (mr_op_desc){.kind = MR_OP_CONV2D,
                        .in = *in,
                        .max_batch = s->batch,
                        .training = true,
                        .need_dx = need_dx,
                        .conv2d = {.filters = s->f, .window = {3, 3, 1, 1, s->pad, s->pad, s->pad, s->pad}}};
}

/* The layout that a convolution gives: the one that the next takes. */
static mr_tensor input_of(mr_device *dev, const struct shape *s)
{
    mr_error err = MR_ERROR_INIT;
    const size_t bytes = (size_t)s->size * s->size * 64 * sizeof(float);
    mr_op_desc d = {.kind = MR_OP_CONV2D,
                    .in = {s->size, s->size, 64, MR_TENSOR_F32, MR_LAYOUT_NHWC, bytes},
                    .max_batch = s->batch,
                    .conv2d = {.filters = s->c, .window = {3, 3, 1, 1, 1, 1, 1, 1}}};
    mr_op *op;
    ok(mr_op_create(&op, dev, &d, &err), &err);
    const mr_tensor out = mr_op_info_of(op)->out;
    mr_op_destroy(op);
    return out;
}

static void open_layer(struct layer *l, mr_device *dev, const struct shape *s, bool need_dx)
{
    mr_error err = MR_ERROR_INIT;
    const mr_tensor in = input_of(dev, s);
    const mr_op_desc d = describe(s, &in, need_dx);
    ok(mr_op_create(&l->op, dev, &d, &err), &err);
    const mr_op_info *info = mr_op_info_of(l->op);
    l->args = (mr_op_args){.n = s->batch, .training = true};
    l->args.x = noise(dev, in.sample_bytes * s->batch);
    l->args.y = noise(dev, info->out.sample_bytes * s->batch);
    l->args.dy = noise(dev, info->out.sample_bytes * s->batch);
    l->args.dx = noise(dev, in.sample_bytes * s->batch);
    for (uint32_t i = 0; i < info->param_count; i++) {
        l->args.param[i] = noise(dev, info->param[i].storage_count * sizeof(float));
        l->args.dparam[i] = noise(dev, info->param[i].storage_count * sizeof(float));
    }
    l->args.scratch = noise(dev, info->scratch_bytes);
}

static void close_layer(struct layer *l, mr_device *dev)
{
    const uint32_t count = mr_op_info_of(l->op)->param_count;
    void *p;
    memcpy(&p, &l->args.x, sizeof p);
    mr_device_free(dev, p);
    for (uint32_t i = 0; i < count; i++) {
        memcpy(&p, &l->args.param[i], sizeof p);
        mr_device_free(dev, p);
        mr_device_free(dev, l->args.dparam[i]);
    }
    mr_device_free(dev, l->args.y);
    mr_device_free(dev, l->args.dy);
    mr_device_free(dev, l->args.dx);
    mr_device_free(dev, l->args.scratch);
    mr_op_destroy(l->op);
}

static double run(const struct bench *b, int k, struct layer *l, bool backward)
{
    mr_error err = MR_ERROR_INIT;
    mr_stream *s = b->stream[k];
    const double start = now_ms(b->threads);
    ok(backward ? mr_op_backward_async(l->op, s, &l->args) : mr_op_forward_async(l->op, s, &l->args), NULL);
    ok(mr_stream_sync(s, &err), &err);
    return now_ms(b->threads) - start;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v, uint32_t count)
{
    qsort(v, count, sizeof *v, by_size);
    return v[count / 2];
}

static void report(const struct bench *b, const struct shape *s, const struct layer *layers[KINDS], int pass,
                   const double *ms)
{
    static const char *const names[] = {"forward", "data", "weights"};
    const double flops = mr_op_info_of(layers[DIRECT]->op)->flops_per_sample * s->batch;
    printf(
        "{\"event\":\"bench\",\"part\":\"conv\",\"channels\":%u,\"filters\":%u,\"size\":%u,\"pad\":%u,"
        "\"batch\":%u,"
        "\"threads\":%u,\"pass\":\"%s\",\"direct_ms\":%.3f,\"winograd_ms\":%.3f,\"direct_gflop_per_s\":%.0f,"
        "\"winograd_gflop_per_s\":%.0f,\"ratio\":%.2f,\"scratch_mib\":%.1f}\n",
        s->c, s->f, s->size, s->pad, s->batch, b->threads, names[pass], ms[DIRECT], ms[WINOGRAD],
        flops / ms[DIRECT] / 1e6, flops / ms[WINOGRAD] / 1e6, ms[DIRECT] / ms[WINOGRAD],
        (double)mr_op_info_of(layers[WINOGRAD]->op)->scratch_bytes / 1048576);
    fflush(stdout);
}

static void measure(const struct bench *b, const struct shape *s)
{
    static double ms[3][KINDS][MAX_ROUNDS];
    struct layer with[KINDS], without[KINDS];
    for (int k = 0; k < KINDS; k++) {
        open_layer(&with[k], b->devices[k][0], s, true);
        open_layer(&without[k], b->devices[k][0], s, false);
    }
    for (uint32_t round = 0; round <= b->rounds; round++) {
        const uint32_t at = round ? round - 1 : 0; /* the first is run again */
        for (int k = 0; k < KINDS; k++) ms[0][k][at] = run(b, k, &with[k], false);
        for (int k = 0; k < KINDS; k++) ms[2][k][at] = run(b, k, &without[k], true);
        for (int k = 0; k < KINDS; k++) ms[1][k][at] = run(b, k, &with[k], true) - ms[2][k][at];
    }
    const struct layer *layers[KINDS] = {&with[DIRECT], &with[WINOGRAD]};
    for (int pass = 0; pass < 3; pass++) {
        const double middle[KINDS] = {median(ms[pass][DIRECT], b->rounds),
                                      median(ms[pass][WINOGRAD], b->rounds)};
        report(b, s, layers, pass, middle);
    }
    for (int k = 0; k < KINDS; k++) {
        close_layer(&with[k], b->devices[k][0]);
        close_layer(&without[k], b->devices[k][0]);
    }
}

/* A batch as trainings have it: a power of two, smaller for larger pictures. */
static uint32_t batch_for(const struct shape *s)
{
    const double one = 18.0 * s->c * s->f * s->size * s->size;
    uint32_t n = 128;
    while (n > (s->size < 28 ? 32u : 8u) && one * n > 2.5e9) n /= 2;
    return n;
}

static void measure_all(const struct bench *b)
{
    static const uint32_t channels[][2] = {{16, 16},   {16, 32},   {32, 16},   {32, 32},  {32, 64},
                                           {64, 32},   {64, 64},   {64, 128},  {128, 64}, {128, 128},
                                           {128, 256}, {256, 256}, {256, 512}, {512, 512}};
    static const uint32_t sizes[] = {4, 7, 8, 12, 14, 16, 28, 32, 56, 112};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(channels); k++)
        for (size_t i = 0; i < MRI_ARRAY_COUNT(sizes); i++) {
            struct shape s = {channels[k][0], channels[k][1], sizes[i], 1, 0};
            if (s.size > 56 && s.c * s.f > 128 * 128) continue;
            s.batch = batch_for(&s);
            measure(b, &s);
        }
}

int main(int argc, char **argv)
{
    static const mr_convolution how[KINDS] = {MR_CONVOLUTION_DIRECT, MR_CONVOLUTION_WINOGRAD};
    struct bench b = {.rounds = argc > 1 ? (uint32_t)atoi(argv[1]) : 5};
    if (b.rounds < 1 || b.rounds > MAX_ROUNDS || (argc > 3 && argc != 8)) {
        fprintf(stderr, "bench_conv [ROUNDS 1..%d [THREADS [CHANNELS FILTERS SIZE PAD BATCH]]]\n",
                MAX_ROUNDS);
        return 2;
    }
    mr_error err = MR_ERROR_INIT;
    for (int k = 0; k < KINDS; k++) {
        uint32_t count;
        mr_devices_config cfg;
        mr_devices_defaults(&cfg);
        cfg.compute_threads = argc > 2 ? (uint32_t)atoi(argv[2]) : 0;
        cfg.convolution = how[k];
        ok(mr_devices_open(&b.devices[k], &count, "cpu", &cfg, &err), &err);
        ok(mr_stream_create(&b.stream[k], b.devices[k][0], MR_STREAM_COMPUTE, &err), &err);
    }
    b.threads = mr_device_info_of(b.devices[DIRECT][0])->threads;
    if (argc == 8) {
        const struct shape s = {(uint32_t)atoi(argv[3]), (uint32_t)atoi(argv[4]), (uint32_t)atoi(argv[5]),
                                (uint32_t)atoi(argv[6]), (uint32_t)atoi(argv[7])};
        measure(&b, &s);
    } else {
        measure_all(&b);
    }
    for (int k = 0; k < KINDS; k++) {
        mr_stream_destroy(b.stream[k]);
        mr_devices_close(b.devices[k], 1);
    }
    return 0;
}
