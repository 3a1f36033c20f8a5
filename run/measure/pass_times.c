/* run/measure/pass_times.c: mr_measure_passes(). The time of the gradient to the input is backward's time
 * with it minus backward's time without, each on an operation of its own, in turns. */
#include "base/abi.h"
#include "run/measure/measure_settings.h"

enum { X, Y, DY, DX, SCRATCH, PARAM, DPARAM = PARAM + MR_OP_MAX_PARAMS, BUFFERS = DPARAM + MR_OP_MAX_PARAMS };

typedef struct layer {
    mr_device *dev;
    mr_op *op;
    mr_op_args args;
    void *buffer[BUFFERS];
} layer;

/* Ones: no product of them is a denormal number, which would take longer. */
static int fill(layer *l, mr_stream *s, int which, size_t bytes, mr_error *err)
{
    const float one = 1;
    float *host = NULL;
    int rc = mr_device_alloc(l->dev, bytes ? bytes : 1, &l->buffer[which], err);
    if (rc == MR_OK) rc = mr_host_alloc(l->dev, bytes ? bytes : 1, (void **)&host, err);
    for (size_t i = 0; rc == MR_OK && i < bytes / sizeof one; i++) host[i] = one;
    if (rc == MR_OK) rc = mr_copy_h2d_async(s, l->buffer[which], host, bytes);
    if (rc == MR_OK) rc = mr_stream_sync(s, err);
    mr_host_free(l->dev, host);
    return rc;
}

static int open_layer(layer *l, mr_device *dev, mr_stream *s, const mr_op_desc *desc, bool need_dx,
                      uint32_t n, mr_error *err)
{
    mr_op_desc d = *desc;
    d.need_dx = need_dx;
    *l = (layer){.dev = dev};
    int rc = mr_op_create(&l->op, dev, &d, err);
    if (rc) return rc;
    const mr_op_info *info = mr_op_info_of(l->op);
    const size_t x = d.in.sample_bytes * n, y = info->out.sample_bytes * n;
    const size_t bytes[] = {
        [X] = x, [Y] = y, [DY] = y, [DX] = need_dx ? x : 0, [SCRATCH] = info->scratch_bytes};
    for (int i = X; rc == MR_OK && i <= SCRATCH; i++) rc = fill(l, s, i, bytes[i], err);
    l->args = (mr_op_args){.n = n, .training = true};
    for (uint32_t p = 0; rc == MR_OK && p < info->param_count; p++) {
        const size_t size = (size_t)info->param[p].storage_count * sizeof(float);
        rc = fill(l, s, PARAM + (int)p, size, err);
        if (rc == MR_OK) rc = fill(l, s, DPARAM + (int)p, size, err);
        l->args.param[p] = l->buffer[PARAM + p];
        l->args.dparam[p] = l->buffer[DPARAM + p];
    }
    l->args.x = l->buffer[X], l->args.y = l->buffer[Y], l->args.dy = l->buffer[DY];
    l->args.dx = l->buffer[DX], l->args.scratch = l->buffer[SCRATCH];
    return rc;
}

static void close_layer(layer *l)
{
    for (int i = 0; i < BUFFERS; i++) mr_device_free(l->dev, l->buffer[i]);
    mr_op_destroy(l->op);
}

/* Milliseconds of one call. */
static int run(layer *l, mr_stream *s, bool backward, double *ms, mr_error *err)
{
    const uint64_t start = mri_now_ns();
    int rc = backward ? mr_op_backward_async(l->op, s, &l->args) : mr_op_forward_async(l->op, s, &l->args);
    if (rc == MR_OK) rc = mr_stream_sync(s, err);
    else mr_error_set(err, rc, "%s", mr_status_text(rc));
    *ms = (double)(mri_now_ns() - start) * 1e-6;
    return rc;
}

enum { ROUNDS = 64 };

typedef struct times {
    double ms[3][ROUNDS];
    uint32_t rounds;
} times;

/* At least 3 rounds behind one that warms up. */
static int time_layer(const mr_trainer_op *op, layer *with, layer *without, mr_stream *s, double seconds,
                      times *t, mr_error *err)
{
    const uint64_t start = mri_now_ns();
    int rc = MR_OK;
    t->rounds = 0;
    for (uint32_t i = 0; rc == MR_OK && i <= ROUNDS && (i < 4 || mri_measure_since(start) < seconds); i++) {
        const uint32_t at = i ? i - 1 : 0;
        double both = 0, weights = 0;
        rc = run(without, s, false, &t->ms[MR_PASS_FORWARD][at], err);
        if (rc == MR_OK && op->desc->training) rc = run(without, s, true, &weights, err);
        if (rc == MR_OK && op->desc->need_dx) rc = run(with, s, true, &both, err);
        t->ms[MR_PASS_WEIGHTS][at] = weights;
        t->ms[MR_PASS_DATA][at] = both - weights;
        t->rounds = i ? i : 1;
    }
    return rc;
}

typedef struct measuring {
    mr_device *dev;
    mr_stream *stream;
    uint32_t samples;
    double seconds; /* for one convolution */
    mr_pass_taken *take;
    void *context;
} measuring;

static void tell(const measuring *m, const mr_trainer_op *op, uint32_t number, times *t)
{
    for (int pass = 0; pass <= MR_PASS_WEIGHTS; pass++) {
        if (!op->info->algorithm[pass]) continue;
        mr_pass_time p = {.struct_size = sizeof p,
                          .op = op,
                          .number = number,
                          .samples = m->samples,
                          .pass = (mr_op_pass)pass,
                          .rounds = t->rounds};
        p.ms = mr_measure_median(t->ms[pass], t->rounds, &p.ms_mad);
        p.gflop_per_s = p.ms > 0 ? op->info->flops_per_sample * m->samples / p.ms * 1e-6 : 0;
        m->take(m->context, &p);
    }
}

static int measure_one(const measuring *m, const mr_trainer_op *op, uint32_t number, mr_error *err)
{
    layer with = {.dev = m->dev}, without = {.dev = m->dev};
    times t;
    int rc = open_layer(&without, m->dev, m->stream, op->desc, false, m->samples, err);
    if (rc == MR_OK && op->desc->need_dx)
        rc = open_layer(&with, m->dev, m->stream, op->desc, true, m->samples, err);
    if (rc == MR_OK) rc = time_layer(op, &with, &without, m->stream, m->seconds, &t, err);
    if (rc == MR_OK) tell(m, op, number, &t);
    close_layer(&with);
    close_layer(&without);
    return rc;
}

static bool is_convolution(const mr_trainer_op *op)
{
    return op->desc->kind == MR_OP_CONV2D && op->info->algorithm[MR_PASS_FORWARD];
}

int mr_measure_passes(const mr_trainer *t, mr_device *device, uint32_t samples, const mr_measure_config *cfg,
                      mr_pass_taken *take, void *context, mr_error *err)
{
    mr_trainer_op op;
    mr_measure_config mine;
    uint32_t count = 0, number = 0;
    MRI_GIVEN(err, t);
    MRI_GIVEN(err, device);
    MRI_GIVEN(err, take);
    int rc = mri_measure_settings(&mine, cfg, err);
    if (rc) return rc;
    if (samples < 1 || samples > INT32_MAX)
        return mr_error_set(err, MR_EINVAL, "samples is %u: expected 1 to %d", samples, INT32_MAX);
    measuring m = {.dev = device, .samples = samples, .take = take, .context = context};
    rc = mr_stream_create(&m.stream, m.dev, MR_STREAM_COMPUTE, err);
    for (uint32_t at = 0; rc == MR_OK && mr_trainer_op_at(t, at, &op); at++) count += is_convolution(&op);
    m.seconds = mine.seconds / (count ? count : 1);
    for (uint32_t at = 0; rc == MR_OK && number < count && !mri_is_stopped(mine.stop); at++)
        if (mr_trainer_op_at(t, at, &op) && is_convolution(&op)) rc = measure_one(&m, &op, ++number, err);
    mr_stream_destroy(m.stream);
    return rc == MR_OK && number < count ? mri_measure_stopped(err) : rc;
}
