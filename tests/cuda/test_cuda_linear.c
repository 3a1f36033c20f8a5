/* cuda: convolutions and dense layers on a GPU, emulated or real, against the plain C reference of the
 * processor.
 *
 * Values are small multiples of 1/2, so products and sums are exact in f32 and, kept below 64, in bf16 and
 * f16 too, in any order: on the emulation most results must be equal to the last bit. What may differ, and by
 * how much, is said at tolerance_of(). With arguments the program is a child of itself: "step" makes one
 * layer, runs it and ends with 0 (right), 1 (one clear error) or dies. */
#include <math.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/util.h"
#include "kernels/cuda/plan/plan.h"
#include "tests/cuda/rig.h"

extern char **environ;
static bool emulated; /* and not a real GPU */

/* ---- numbers of half precision ---- */

static float from_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, 4);
    return f;
}
static uint32_t to_bits(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, 4);
    return bits;
}

/* Only for numbers the type holds exactly, which is all that goes in. */
static uint16_t encode(uint32_t dtype, float f)
{
    const uint32_t b = to_bits(f);
    if (dtype == MR_TENSOR_BF16) return (uint16_t)(b >> 16);
    return f == 0 ? 0 : (uint16_t)((b >> 16 & 0x8000) | ((b >> 23 & 0xff) - 112) << 10 | (b >> 13 & 0x3ff));
}

static float decode(uint32_t dtype, uint16_t v)
{
    if (dtype == MR_TENSOR_BF16) return from_bits((uint32_t)v << 16);
    const uint32_t exponent = v >> 10 & 31, fraction = v & 0x3ff;
    const float size =
        exponent == 0 ? ldexpf((float)fraction, -24) : from_bits((exponent + 112) << 23 | fraction << 13);
    return v & 0x8000 ? -size : size;
}

/* ---- one side: a device with a stream and memory ---- */

struct side {
    mr_device **devices;
    uint32_t count;
    mr_device *dev;
    mr_stream *stream;
};

static int side_open(struct side *s, const char *spec, bool tf32, bool deterministic, mr_error *err)
{
    mr_devices_config cfg;
    mr_devices_defaults(&cfg);
    cfg.reference = true;
    cfg.tf32 = tf32;
    cfg.deterministic = deterministic;
    cfg.compute_threads = 1;
    *s = (struct side){0};
    int rc = mr_devices_open(&s->devices, &s->count, spec, &cfg, err);
    if (rc) return rc;
    s->dev = s->devices[0];
    rc = mr_stream_create(&s->stream, s->dev, MR_STREAM_COMPUTE, err);
    if (rc) mr_devices_close(s->devices, s->count);
    return rc;
}

static void side_close(struct side *s)
{
    mr_stream_destroy(s->stream);
    mr_devices_close(s->devices, s->count);
}

/* Nothing queued any more, so that memory may go. A stream that cannot be waited for any more ends by being
 * destroyed. */
static void side_settle(struct side *s)
{
    if (!s->stream || mr_stream_sync(s->stream, NULL) == MR_OK) return;
    mr_stream_destroy(s->stream);
    s->stream = NULL;
}

static struct side gpu(bool tf32, bool deterministic)
{
    struct side s;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(side_open(&s, "cuda:0", tf32, deterministic, &err), &err);
    return s;
}

/* Device memory that knows its size; bytes may be 0. */
struct memory {
    void *at;
    size_t bytes;
};

static int move(struct side *s, bool up, const struct memory *m, void *host, size_t bytes, mr_error *err)
{
    void *pinned;
    if (bytes == 0) return MR_OK;
    int rc = mr_host_alloc(s->dev, bytes, &pinned, err);
    if (rc) return rc;
    if (up) memcpy(pinned, host, bytes);
    rc = up ? mr_copy_h2d_async(s->stream, m->at, pinned, bytes)
            : mr_copy_d2h_async(s->stream, pinned, m->at, bytes);
    const int waited = mr_stream_sync(s->stream, err);
    if (rc || waited) side_settle(s);
    if (!rc) rc = waited;
    if (!rc && !up) memcpy(host, pinned, bytes);
    mr_host_free(s->dev, pinned);
    return rc;
}

/* count floats as dtype. */
static int put(struct side *s, const struct memory *m, uint32_t dtype, const float *values, size_t count,
               mr_error *err)
{
    if (dtype == MR_TENSOR_F32) return move(s, true, m, (void *)values, count * 4, err);
    uint16_t *half = malloc(count * 2 + 1);
    for (size_t i = 0; i < count; i++) half[i] = encode(dtype, values[i]);
    const int rc = move(s, true, m, half, count * 2, err);
    free(half);
    return rc;
}

static int get(struct side *s, const struct memory *m, uint32_t dtype, float *values, size_t count,
               mr_error *err)
{
    if (dtype == MR_TENSOR_F32) return move(s, false, m, values, count * 4, err);
    uint16_t *half = malloc(count * 2 + 1);
    const int rc = move(s, false, m, half, count * 2, err);
    if (!rc)
        for (size_t i = 0; i < count; i++) values[i] = decode(dtype, half[i]);
    free(half);
    return rc;
}

/* ---- one layer on one side ---- */

struct layer {
    struct side *side;
    mr_op *op;
    const mr_op_info *info;
    struct memory x, y, dy, dx, w, b, dw, db, saved, scratch;
};

static struct memory *const *memories(struct layer *l)
{
    static struct memory *all[10];
    struct memory *const now[10] = {&l->x, &l->y,  &l->dy, &l->dx,    &l->w,
                                    &l->b, &l->dw, &l->db, &l->saved, &l->scratch};
    memcpy(all, now, sizeof all);
    return all;
}

static void layer_close(struct layer *l)
{
    side_settle(l->side);
    for (int i = 0; i < 10; i++) mr_device_free(l->side->dev, memories(l)[i]->at);
    mr_op_destroy(l->op);
}

static int layer_open(struct layer *l, struct side *s, const mr_op_desc *d, mr_error *err)
{
    *l = (struct layer){.side = s};
    int rc = mr_op_create(&l->op, s->dev, d, err);
    if (rc) return rc;
    l->info = mr_op_info_of(l->op);
    l->x.bytes = l->dx.bytes = d->in.sample_bytes * d->max_batch;
    l->y.bytes = l->dy.bytes = l->info->out.sample_bytes * d->max_batch;
    l->w.bytes = l->dw.bytes = l->info->param[0].storage_count * 4;
    l->b.bytes = l->db.bytes = l->info->param_count > 1 ? l->info->param[1].storage_count * 4 : 0;
    l->saved.bytes = l->info->saved_bytes;
    l->scratch.bytes = l->info->scratch_bytes;
    for (int i = 0; i < 10 && !rc; i++) {
        struct memory *m = memories(l)[i];
        if (m->bytes > 0) rc = mr_device_alloc(s->dev, m->bytes, &m->at, err);
    }
    if (rc) layer_close(l);
    return rc;
}

static mr_op_args layer_args(const struct layer *l, uint32_t n)
{
    return (mr_op_args){.n = n,
                        .x = l->x.at,
                        .y = l->y.at,
                        .dy = l->dy.at,
                        .dx = l->dx.at,
                        .param = {l->w.at, l->b.at},
                        .dparam = {l->dw.at, l->db.at},
                        .saved = l->saved.at,
                        .scratch = l->scratch.at,
                        .training = true};
}

/* ---- values ---- */

struct values {
    size_t x_count, y_count, w_count, b_count; /* of max_batch samples */
    float *x, *dy, *w, *b, *y, *dx, *dw, *db;
};

/* Multiples of 1/2 from -most/2 to most/2, more than half of them 0, so that sums stay small. */
static void draw(float *out, size_t count, uint64_t seed, uint32_t most)
{
    for (size_t i = 0; i < count; i++) {
        const uint32_t r = mri_philox4x32(seed, i, 0).v[0];
        out[i] = r & 1 ? 0 : 0.5f * ((float)(r >> 8) / 16777216.0f * (float)(2 * most + 1) - (float)most);
        out[i] = 0.5f * roundf(2 * out[i]);
    }
}

static struct values values_make(const mr_op_desc *d, const mr_op_info *info)
{
    struct values v = {.x_count = (size_t)d->in.h * d->in.w * d->in.c * d->max_batch,
                       .y_count = (size_t)info->out.h * info->out.w * info->out.c * d->max_batch,
                       .w_count = info->param[0].count,
                       .b_count = info->param_count > 1 ? info->param[1].count : 0};
    float **const all[8] = {&v.x, &v.dy, &v.w, &v.b, &v.y, &v.dx, &v.dw, &v.db};
    const size_t counts[8] = {v.x_count, v.y_count, v.w_count, v.b_count,
                              v.y_count, v.x_count, v.w_count, v.b_count};
    for (int i = 0; i < 8; i++) *all[i] = calloc(counts[i] + 1, sizeof(float));
    draw(v.x, v.x_count, 1, 2);
    draw(v.dy, v.y_count, 2, 2);
    draw(v.w, v.w_count, 3, 2);
    draw(v.b, v.b_count, 4, 2);
    return v;
}

static void values_free(struct values *v)
{
    float *const all[8] = {v->x, v->dy, v->w, v->b, v->y, v->dx, v->dw, v->db};
    for (int i = 0; i < 8; i++) free(all[i]);
}

static int upload(const struct layer *l, const mr_op_desc *d, const struct values *v, mr_error *err)
{
    int rc = mr_fill_async(l->side->stream, l->y.at, 0x3c, l->y.bytes);
    if (!rc) rc = mr_fill_async(l->side->stream, l->dx.at, 0x3c, l->dx.bytes);
    if (!rc) rc = put(l->side, &l->x, d->in.dtype, v->x, v->x_count, err);
    if (!rc) rc = put(l->side, &l->dy, d->in.dtype, v->dy, v->y_count, err);
    if (!rc) rc = put(l->side, &l->w, MR_TENSOR_F32, v->w, v->w_count, err);
    if (!rc) rc = put(l->side, &l->b, MR_TENSOR_F32, v->b, v->b_count, err);
    return rc;
}

static int download(const struct layer *l, const mr_op_desc *d, struct values *v, mr_error *err)
{
    int rc = get(l->side, &l->y, d->in.dtype, v->y, v->y_count, err);
    if (!rc && d->need_dx) rc = get(l->side, &l->dx, d->in.dtype, v->dx, v->x_count, err);
    if (!rc && d->training) rc = get(l->side, &l->dw, MR_TENSOR_F32, v->dw, v->w_count, err);
    if (!rc && d->training) rc = get(l->side, &l->db, MR_TENSOR_F32, v->db, v->b_count, err);
    return rc;
}

static int run(const struct layer *l, const mr_op_desc *d, uint32_t n, mr_error *err)
{
    const mr_op_args args = layer_args(l, n);
    int rc = mr_op_forward_async(l->op, l->side->stream, &args);
    if (!rc && d->training) rc = mr_op_backward_async(l->op, l->side->stream, &args);
    const int waited = mr_stream_sync(l->side->stream, err);
    if (rc && !waited) mr_error_set(err, rc, "refused without a word");
    return rc ? rc : waited;
}

/* ---- comparing ---- */

static char case_name[96];
static int differing; /* results that were not as expected: all are printed before the test fails */

static void compare(const char *what, const float *found, const float *expected, size_t count,
                    float tolerance)
{
    size_t wrong = 0, worst = 0;
    for (size_t i = 0; i < count; i++) {
        if (fabsf(found[i] - expected[i]) <= tolerance * (1 + fabsf(expected[i]))) continue;
        if (!wrong++ || !(fabsf(found[i] - expected[i]) <= fabsf(found[worst] - expected[worst]))) worst = i;
    }
    if (!wrong) return;
    differing++;
    print_error("%s: %zu of %zu %s differ, most of all [%zu]: found %g, expected %g within %g\n", case_name,
                wrong, count, what, worst, (double)found[worst], (double)expected[worst], (double)tolerance);
}

static void none_differed(void)
{
    const int count = differing;
    differing = 0;
    MRT_EQ(count, 0);
}

/* Memory after the samples of the batch has its fill bytes. */
static void untouched(const char *what, const float *found, size_t from, size_t count, uint32_t dtype)
{
    const float filled = dtype == MR_TENSOR_F32 ? from_bits(0x3c3c3c3c) : decode(dtype, 0x3c3c);
    for (size_t i = from; i < count; i++)
        if (found[i] != filled) fail_msg("%s: %s[%zu] was written after the batch", case_name, what, i);
}

static mr_tensor tensor_as(mr_tensor t, uint32_t dtype)
{
    t.dtype = dtype;
    t.layout = MR_LAYOUT_NHWC;
    t.sample_bytes = (size_t)t.h * t.w * t.c * mr_tensor_element_bytes(dtype);
    return t;
}

/* Tolerances: sums are exact, but for algorithms of a real GPU that transform their inputs (Winograd, FFT).
 * Activations other than ReLU are computed in float by both (a few units in the last place) and rounded to
 * the type. Weight gradients of convolutions went through the tensors' type. */
static float tolerance_of(const mr_op_desc *d, uint32_t dtype, bool weights)
{
    const float unit = dtype == MR_TENSOR_BF16 ? 1.0f / 128 : dtype == MR_TENSOR_F16 ? 1.0f / 1024 : 4e-6f;
    const bool exact = d->activation == MR_ACT_NONE || d->activation == MR_ACT_RELU;
    if (exact && emulated && !(weights && dtype != MR_TENSOR_F32)) return 0;
    if (!emulated && dtype == MR_TENSOR_F32) return 1e-4f;
    return exact ? unit : 4 * unit * (weights ? (float)d->max_batch : 1);
}

/* The layer on both sides with the batches of sizes[], every result compared. */
static void check_layer(const char *name, mr_op_desc d, uint32_t dtype, struct side *cuda,
                        const uint32_t *sizes, int size_count)
{
    struct side cpu;
    struct layer there, here;
    mr_error err = MR_ERROR_INIT;
    snprintf(case_name, sizeof case_name, "%s, %s", name,
             dtype == MR_TENSOR_F32    ? "f32"
             : dtype == MR_TENSOR_BF16 ? "bf16"
                                       : "f16");
    MRT_OK(side_open(&cpu, "cpu", false, false, &err), &err);
    d.in = tensor_as(d.in, MR_TENSOR_F32);
    MRT_OK(layer_open(&here, &cpu, &d, &err), &err);
    mr_op_desc half = d;
    half.in = tensor_as(d.in, dtype);
    MRT_OK(layer_open(&there, cuda, &half, &err), &err);
    MRT_EQ(there.info->out.dtype, dtype);
    struct values expected = values_make(&d, here.info), found = values_make(&half, there.info);
    for (int i = 0; i < size_count; i++) {
        const uint32_t n = sizes[i];
        const size_t xs = expected.x_count / d.max_batch * n, ys = expected.y_count / d.max_batch * n;
        MRT_OK(upload(&here, &d, &expected, &err), &err);
        MRT_OK(run(&here, &d, n, &err), &err);
        MRT_OK(download(&here, &d, &expected, &err), &err);
        MRT_OK(upload(&there, &half, &found, &err), &err);
        MRT_OK(run(&there, &half, n, &err), &err);
        MRT_OK(download(&there, &half, &found, &err), &err);
        compare("y", found.y, expected.y, ys, tolerance_of(&d, dtype, false));
        untouched("y", found.y, ys, found.y_count, dtype);
        if (!d.training) continue;
        compare("dw", found.dw, expected.dw, found.w_count, tolerance_of(&d, dtype, true));
        compare("db", found.db, expected.db, found.b_count, tolerance_of(&d, dtype, true));
        if (!d.need_dx) continue;
        compare("dx", found.dx, expected.dx, xs, tolerance_of(&d, dtype, false));
        untouched("dx", found.dx, xs, found.x_count, dtype);
    }
    values_free(&expected);
    values_free(&found);
    layer_close(&here);
    layer_close(&there);
    side_close(&cpu);
}

/* ---- shapes ---- */

#define WINDOW(...)                                                                                          \
    {                                                                                                        \
        __VA_ARGS__                                                                                          \
    }
#define GROUPS(G, H, W, C, F, KH, KW, S, T, L, B, R)                                                         \
    {                                                                                                        \
        .kind = MR_OP_CONV2D, .in = {.h = H, .w = W, .c = C}, .max_batch = 3, .training = true,              \
        .need_dx = true, .conv2d.filters = F, .conv2d.window = WINDOW(KH, KW, S, S, T, L, B, R),             \
        .conv2d.groups = G                                                                                   \
    }
#define CONV(...) GROUPS(0, __VA_ARGS__)
#define DENSE(H, W, C, U)                                                                                    \
    {                                                                                                        \
        .kind = MR_OP_DENSE, .in = {.h = H, .w = W, .c = C}, .max_batch = 5, .training = true,               \
        .need_dx = true, .dense.units = U                                                                    \
    }

static const struct {
    const char *name;
    mr_op_desc d;
} shapes[] = {
    {"1x1", CONV(5, 3, 8, 4, 1, 1, 1, 0, 0, 0, 0)},
    {"1x1 stride 2", CONV(6, 6, 4, 8, 1, 1, 2, 0, 0, 0, 0)},
    {"3x3 same", CONV(7, 5, 3, 6, 3, 3, 1, 1, 1, 1, 1)},
    {"3x3 valid", CONV(6, 7, 1, 5, 3, 3, 1, 0, 0, 0, 0)},
    {"3x3 stride 2 on even sides, the odd row behind", CONV(8, 6, 2, 4, 3, 3, 2, 0, 0, 1, 1)},
    {"3x3 stride 2 on even sides, padding 1", CONV(8, 8, 4, 4, 3, 3, 2, 1, 1, 1, 1)},
    {"5x5 same", CONV(6, 9, 2, 3, 5, 5, 1, 2, 2, 2, 2)},
    {"5x3, uneven in both", CONV(7, 8, 2, 3, 5, 3, 2, 1, 0, 2, 1)},
    {"7x7 stride 2 padding 3", CONV(12, 11, 3, 4, 7, 7, 2, 3, 3, 3, 3)},
    {"a window as large as its input", CONV(4, 4, 3, 10, 4, 4, 1, 0, 0, 0, 0)},
    {"dense, a vector", DENSE(1, 1, 17, 10)},
    {"dense, a picture", DENSE(3, 4, 2, 7)},
    {"dense, one unit", DENSE(2, 1, 3, 1)},
    {"3x3 in 2 groups", GROUPS(2, 6, 5, 6, 4, 3, 3, 1, 1, 1, 1, 1)},
    {"1x1 in 3 groups", GROUPS(3, 4, 5, 6, 9, 1, 1, 1, 0, 0, 0, 0)},
    {"3x3 depthwise stride 2", GROUPS(9, 7, 6, 9, 9, 3, 3, 2, 1, 1, 1, 1)},
    {"5x3 depthwise, two filters a channel", GROUPS(4, 6, 6, 4, 8, 5, 3, 1, 2, 1, 2, 0)},
};

static const uint32_t types[] = {MR_TENSOR_F32, MR_TENSOR_BF16, MR_TENSOR_F16};

static void every_shape(bool tf32, bool deterministic)
{
    struct side cuda = gpu(tf32, deterministic);
    for (size_t i = 0; i < MRI_ARRAY_COUNT(shapes); i++)
        for (size_t t = 0; t < MRI_ARRAY_COUNT(types); t++) {
            const uint32_t most = shapes[i].d.max_batch, sizes[] = {most, 1, most - 1, most};
            check_layer(shapes[i].name, shapes[i].d, types[t], &cuda, sizes, 4);
        }
    none_differed();
    side_close(&cuda);
}

static void test_shapes_measured(void **state)
{
    (void)state;
    every_shape(false, false);
}
static void test_shapes_deterministic(void **state)
{
    (void)state;
    every_shape(false, true);
}
static void test_shapes_tf32(void **state) /* the values have few enough bits to be exact in TF32 */
{
    (void)state;
    every_shape(true, false);
}

static void test_forms(void **state) /* with and without bias, activation, gradient to the input, training */
{
    (void)state;
    struct side cuda = gpu(false, true);
    const uint32_t sizes[] = {3, 2};
    for (int at = 0; at < 2; at++)
        for (int form = 0; form < 16; form++)
            for (size_t t = 0; t < MRI_ARRAY_COUNT(types); t++) {
                mr_op_desc d = shapes[at ? 11 : 2].d;
                d.max_batch = 3;
                if (at) d.dense.no_bias = form & 1;
                else d.conv2d.no_bias = form & 1;
                d.activation = form & 2 ? MR_ACT_RELU : MR_ACT_NONE;
                d.training = form & 4;
                d.need_dx = d.training && form & 8;
                check_layer("forms", d, types[t], &cuda, sizes, 2);
            }
    for (int act = MR_ACT_TANH; act < (int)MR_ACT_COUNT && !mr_activation_needs_x((mr_activation)act); act++)
        for (size_t t = 0; t < MRI_ARRAY_COUNT(types); t++) {
            mr_op_desc d = shapes[act % 2 ? 11 : 2].d;
            d.max_batch = 3;
            d.activation = (mr_activation)act;
            check_layer("activations", d, types[t], &cuda, sizes, 2);
        }
    none_differed();
    side_close(&cuda);
}

/* f32 stays f32: values that TF32 would round, with sums that are exact in f32. Without measuring, so that
 * the first algorithm of the list, which on the emulation rounds, is taken where it is not refused. */
static void test_strict_f32(void **state)
{
    (void)state;
    struct side cuda = gpu(false, true);
    for (int at = 0; at < 2; at++) {
        mr_op_desc d = shapes[at ? 11 : 2].d;
        struct layer l;
        mr_error err = MR_ERROR_INIT;
        d.in = tensor_as(d.in, MR_TENSOR_F32);
        MRT_OK(layer_open(&l, &cuda, &d, &err), &err);
        struct values v = values_make(&d, l.info);
        for (size_t i = 0; i < v.x_count; i++) v.x[i] = 1 + 1.0f / 4096;
        for (size_t i = 0; i < v.w_count; i++) v.w[i] = 1;
        for (size_t i = 0; i < v.b_count; i++) v.b[i] = 0;
        MRT_OK(upload(&l, &d, &v, &err), &err);
        MRT_OK(run(&l, &d, d.max_batch, &err), &err);
        MRT_OK(download(&l, &d, &v, &err), &err);
        /* the middle of the picture sees a whole window */
        const float taps = at ? 24 : 27, y = v.y[at ? 0 : ((size_t)l.info->out.w * 3 + 2) * l.info->out.c];
        assert_true(fabsf(y - taps * (1 + 1.0f / 4096)) < taps / 4096 / 4); /* TF32 would lose the 1/4096 */
        values_free(&v);
        layer_close(&l);
    }
    side_close(&cuda);
}

/* ---- choosing ---- */

static struct mri_cuda_api *table(void) { return (struct mri_cuda_api *)mri_cuda_api(); }

static int measurements;
static __typeof__(&cuEventElapsedTime) real_elapsed;

static CUresult counting_elapsed(float *ms, CUevent from, CUevent to)
{
    measurements++;
    return real_elapsed(ms, from, to);
}

static int measured_by(struct side *s, const mr_op_desc *d)
{
    struct layer l;
    mr_error err = MR_ERROR_INIT;
    real_elapsed = table()->cuEventElapsedTime;
    table()->cuEventElapsedTime = counting_elapsed;
    measurements = 0;
    const int rc = layer_open(&l, s, d, &err);
    table()->cuEventElapsedTime = real_elapsed;
    MRT_OK(rc, &err);
    layer_close(&l);
    return measurements;
}

static void test_measured_once(void **state)
{
    (void)state;
    struct side cuda = gpu(false, false), strict = gpu(false, true);
    mr_op_desc d = CONV(9, 9, 5, 3, 3, 3, 1, 1, 1, 1, 1); /* a shape no other test has */
    d.in = tensor_as(d.in, MR_TENSOR_F32);
    MRT_EQ(measured_by(&strict, &d), 0);
    MRT_TRUE(measured_by(&cuda, &d) > 0);
    MRT_EQ(measured_by(&cuda, &d), 0);
    side_close(&cuda);
    cuda = gpu(false, false); /* another handle */
    MRT_EQ(measured_by(&cuda, &d), 0);
    d.max_batch = 2;
    MRT_TRUE(measured_by(&cuda, &d) > 0);
    side_close(&cuda);
    side_close(&strict);
}

static __typeof__(&cudnnBackendSetAttribute) real_set;
static int fallbacks;

static cudnnStatus_t listening_set(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                                   cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
    if (name == CUDNN_ATTR_ENGINEHEUR_MODE)
        fallbacks += *(const cudnnBackendHeurMode_t *)values == CUDNN_HEUR_MODE_FALLBACK;
    return real_set(d, name, type, count, values);
}

static int fallbacks_of(bool tf32, bool deterministic)
{
    struct side s = gpu(tf32, deterministic);
    struct layer l;
    mr_error err = MR_ERROR_INIT;
    mr_op_desc d = CONV(8, 9, 5, 3, 3, 3, 1, 1, 1, 1, 1); /* a shape no other test has */
    d.in = tensor_as(d.in, MR_TENSOR_F32);
    real_set = table()->cudnnBackendSetAttribute;
    table()->cudnnBackendSetAttribute = listening_set;
    fallbacks = 0;
    const int rc = layer_open(&l, &s, &d, &err);
    table()->cudnnBackendSetAttribute = real_set;
    MRT_OK(rc, &err);
    layer_close(&l);
    side_close(&s);
    return fallbacks;
}

static void test_few_algorithms(void **state) /* exact algorithms are few: the fallback list is
                                                 measured with them */
{
    (void)state;
    if (!emulated) skip(); /* another library offers others */
    MRT_EQ(fallbacks_of(false, false), 3);
    MRT_EQ(fallbacks_of(true, false), 0);
    MRT_EQ(fallbacks_of(false, true), 0);
}

static struct mri_cuda_conv some_conv(enum mri_cuda_pass pass)
{
    return (struct mri_cuda_conv){.pass = pass,
                                  .n = 2,
                                  .h = 6,
                                  .w = 6,
                                  .c = 4,
                                  .filters = 4,
                                  .groups = 1,
                                  .kernel_h = 3,
                                  .kernel_w = 3,
                                  .stride_h = 1,
                                  .stride_w = 1,
                                  .out_h = 4,
                                  .out_w = 4,
                                  .dtype = MR_TENSOR_F32,
                                  .deterministic = 1};
}

static void test_plan_refused(void **state) /* a convolution whose output does not follow from its input */
{
    (void)state;
    struct side cuda = gpu(false, true);
    mri_cuda_device *dev = mri_cuda_device_of(cuda.dev);
    mri_cuda_plan *p;
    mr_error err = MR_ERROR_INIT;
    struct mri_cuda_conv conv = some_conv(MRI_CUDA_FORWARD);
    conv.out_h = 5;
    MRT_OK(mri_cuda_planner_ref(dev, &err), &err);
    MRT_TRUE(mri_cuda_plan_create(&p, dev, &conv, 1 << 20, false, &err) < 0);
    MRT_TRUE(p == NULL);
    MRT_TRUE(err.text[0]);
    conv.out_h = 4;
    MRT_OK(mri_cuda_plan_create(&p, dev, &conv, 64 << 20, false, &err), &err);
    mri_cuda_plan_destroy(p);
    mri_cuda_planner_unref(dev);
    side_close(&cuda);
}

static __typeof__(&cudnnBackendGetAttribute) real_get;

/* Every plan asks for a terabyte. */
static cudnnStatus_t greedy_get(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                                cudnnBackendAttributeType_t type, int64_t room, int64_t *count, void *out)
{
    const cudnnStatus_t status = real_get(d, name, type, room, count, out);
    if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) *(int64_t *)out = (int64_t)1 << 40;
    return status;
}

static void test_workspace_limit(void **state)
{
    (void)state;
    struct side cuda = gpu(false, false);
    mr_op_desc d = CONV(9, 7, 5, 3, 3, 3, 1, 1, 1, 1, 1);
    mr_op *op;
    mr_error err = MR_ERROR_INIT;
    d.in = tensor_as(d.in, MR_TENSOR_F32);
    real_get = table()->cudnnBackendGetAttribute;
    table()->cudnnBackendGetAttribute = greedy_get;
    const int rc = mr_op_create(&op, cuda.dev, &d, &err);
    table()->cudnnBackendGetAttribute = real_get;
    MRT_EQ(rc, MR_EUNSUPPORTED);
    MRT_HAS(err.text, "forward pass of 3 x 9 x 7 x 5 f32, 3 filters of 3 x 3");
    MRT_HAS(err.text, "bytes of workspace");
    side_close(&cuda);
}

static void test_misaligned(void **state)
{
    (void)state;
    struct side cuda = gpu(false, true);
    struct layer l;
    mr_error err = MR_ERROR_INIT;
    mr_op_desc d = shapes[2].d;
    d.in = tensor_as(d.in, MR_TENSOR_F32);
    MRT_OK(layer_open(&l, &cuda, &d, &err), &err);
    mr_op_args args = layer_args(&l, 1);
    args.x = (const char *)args.x + 4;
    MRT_EQ(mr_op_forward_async(l.op, cuda.stream, &args), MR_EINVAL);
    MRT_TRUE(mr_stream_sync(cuda.stream, &err) < 0);
    MRT_HAS(err.text, "multiples of 16 bytes");
    layer_close(&l);
    side_close(&cuda);
}

/* ---- recording ---- */

static void test_recorded(void **state)
{
    (void)state;
    struct side cuda = gpu(false, true);
    for (int at = 0; at < 2; at++) {
        struct layer l;
        mr_error err = MR_ERROR_INIT;
        mr_graph *graph;
        mr_op_desc d = shapes[at ? 11 : 2].d;
        d.in = tensor_as(d.in, MR_TENSOR_BF16);
        MRT_OK(layer_open(&l, &cuda, &d, &err), &err);
        struct values queued = values_make(&d, l.info), recorded = values_make(&d, l.info);
        MRT_OK(upload(&l, &d, &queued, &err), &err);
        MRT_OK(run(&l, &d, d.max_batch, &err), &err);
        MRT_OK(download(&l, &d, &queued, &err), &err);
        const mr_op_args args = layer_args(&l, d.max_batch);
        MRT_EQ(mr_graph_begin(cuda.stream), MR_OK);
        MRT_EQ(mr_op_forward_async(l.op, cuda.stream, &args), MR_OK);
        MRT_EQ(mr_op_backward_async(l.op, cuda.stream, &args), MR_OK);
        MRT_OK(mr_graph_end(cuda.stream, &graph, &err), &err);
        for (int twice = 0; twice < 2; twice++) {
            MRT_OK(upload(&l, &d, &recorded, &err), &err);
            MRT_EQ(mr_graph_launch_async(graph, cuda.stream), MR_OK);
            MRT_OK(download(&l, &d, &recorded, &err), &err);
            snprintf(case_name, sizeof case_name, "recorded, %s", at ? "dense" : "convolution");
            compare("y", recorded.y, queued.y, queued.y_count, 0);
            compare("dx", recorded.dx, queued.dx, queued.x_count, 0);
            compare("dw", recorded.dw, queued.dw, queued.w_count, 0);
            compare("db", recorded.db, queued.db, queued.b_count, 0);
        }
        none_differed();
        mr_stream_sync(cuda.stream, NULL);
        mr_graph_destroy(graph);
        values_free(&queued);
        values_free(&recorded);
        layer_close(&l);
    }
    side_close(&cuda);
}

static void test_new_batch_while_recording(void **state)
{
    (void)state;
    struct side cuda = gpu(false, true);
    struct layer l;
    mr_error err = MR_ERROR_INIT;
    mr_graph *graph = NULL;
    mr_op_desc d = shapes[2].d;
    d.in = tensor_as(d.in, MR_TENSOR_F32);
    MRT_OK(layer_open(&l, &cuda, &d, &err), &err);
    const mr_op_args args = layer_args(&l, 2);
    MRT_EQ(mr_graph_begin(cuda.stream), MR_OK);
    MRT_EQ(mr_op_forward_async(l.op, cuda.stream, &args), MR_EUNSUPPORTED);
    MRT_TRUE(mr_graph_end(cuda.stream, &graph, &err) < 0);
    MRT_HAS(err.text, "a batch of 2 samples comes for the first time");
    mr_graph_destroy(graph);
    MRT_EQ(mr_op_forward_async(l.op, cuda.stream, &args), MR_OK); /* and once it ran, it can be recorded */
    MRT_OK(mr_stream_sync(cuda.stream, &err), &err);
    MRT_EQ(mr_graph_begin(cuda.stream), MR_OK);
    MRT_EQ(mr_op_forward_async(l.op, cuda.stream, &args), MR_OK);
    MRT_OK(mr_graph_end(cuda.stream, &graph, &err), &err);
    mr_graph_destroy(graph);
    layer_close(&l);
    side_close(&cuda);
}

/* ---- trouble ---- */

static void test_out_of_memory_of_the_host(void **state)
{
    (void)state;
    struct side cuda = gpu(false, false);
    for (int at = 0; at < 2; at++) {
        mr_op_desc d = CONV(5, 7, 3, 2, 3, 3, 1, 1, 1, 1, 1);
        if (at) d = shapes[11].d;
        d.in = tensor_as(d.in, MR_TENSOR_BF16);
        for (long n = 0;; n++) {
            mr_op *op;
            mr_error err = MR_ERROR_INIT;
            mrt_fail_alloc_at(n);
            const int rc = mr_op_create(&op, cuda.dev, &d, &err);
            mrt_fail_alloc_at(-1);
            if (rc) {
                MRT_EQ(rc, MR_ENOMEM);
                MRT_TRUE(op == NULL);
                continue;
            }
            const bool through = !mrt_alloc_failed(); /* a choice that could not be kept is no failure */
            mr_op_destroy(op);
            if (through) break;
        }
    }
    side_close(&cuda);
}

/* The child: 0 right, 1 one error that says what happened, 2 anything else. */
static int step(const char *kind, const char *deterministic)
{
    struct side cuda;
    struct layer l;
    mr_error err = MR_ERROR_INIT;
    mr_op_desc d = shapes[strcmp(kind, "dense") == 0 ? 11 : 2].d;
    d.in = tensor_as(d.in, MR_TENSOR_BF16);
    int rc = side_open(&cuda, "cuda:0", false, deterministic[0] == 'd', &err);
    if (!rc) {
        rc = layer_open(&l, &cuda, &d, &err);
        if (!rc) {
            struct values v = values_make(&d, l.info);
            rc = upload(&l, &d, &v, &err);
            if (!rc) rc = run(&l, &d, d.max_batch, &err);
            if (!rc) rc = run(&l, &d, 1, &err);
            if (!rc) rc = download(&l, &d, &v, &err);
            if (rc && err.code == MR_OK && cuda.stream)
                mr_stream_sync(cuda.stream, &err); /* of a call that only queued */
            values_free(&v);
            layer_close(&l);
        }
        side_close(&cuda);
    }
    return rc == MR_OK ? 0 : err.text[0] && err.code == rc ? 1 : 2;
}

/* The child's exit status under a setting of the emulation. Spawned: to copy this process costs a sanitizer
 * more than the child's work. */
static int child(const char *kind, const char *deterministic, const char *setting, const char *value)
{
    char *const argv[] = {(char *)"test_cuda_linear", (char *)"step", (char *)(uintptr_t)kind,
                          (char *)(uintptr_t)deterministic, NULL};
    const char *before = getenv(setting);
    char *kept = before ? strdup(before) : NULL;
    pid_t pid;
    int status = 0;
    setenv(setting, value, 1);
    const int rc = posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ);
    if (kept) setenv(setting, kept, 1);
    else unsetenv(setting);
    free(kept);
    MRT_TRUE(rc == 0 && waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static long lines_of(const char *path)
{
    size_t bytes;
    char *text = mrt_read_file(path, &bytes);
    long lines = 0;
    for (size_t i = 0; i < bytes; i++) lines += text[i] == '\n';
    free(text);
    return lines;
}

static long seed(void)
{
    const char *text = getenv("MILLRACE_EMU_SEED");
    return text ? atol(text) * 7 : 0;
}

static void fail_every_call(const char *kind, const char *deterministic)
{
    if (!emulated) skip(); /* a real library fails when it likes */
    const char *log = mrt_path("%s.%s.log", kind, deterministic);
    MRT_EQ(child(kind, deterministic, "MILLRACE_EMU_LOG", log), 0);
    const long calls = lines_of(log), stride = calls / 60 + 1; /* a share of them, each seed another */
    long failed = 0;
    for (long call = 1 + seed() % stride; call <= calls; call += stride) {
        char number[32];
        snprintf(number, sizeof number, "%ld", call);
        const int status = child(kind, deterministic, "MILLRACE_EMU_FAIL_AT", number);
        if (status > 1)
            fail_msg("%s %s: call %ld of %ld failed and the child ended with %d", kind, deterministic, call,
                     calls, status);
        failed += status == 1;
    }
    MRT_TRUE(failed > 10);
}

static void test_failing_calls_conv(void **state)
{
    (void)state;
    fail_every_call("conv", "measured");
    fail_every_call("conv", "deterministic");
}
static void test_failing_calls_dense(void **state)
{
    (void)state;
    fail_every_call("dense", "deterministic");
}

static void test_small_memory(void **state) /* from too little for the layer to too little for measuring it */
{
    (void)state;
    int done = 0, failed = 0;
    if (!emulated) skip();
    for (uint64_t kib = 16; kib <= 256 << 10; kib *= 4) {
        char bytes[32];
        snprintf(bytes, sizeof bytes, "%llu", (unsigned long long)(kib << 10));
        const int status = child("conv", "measured", "MILLRACE_EMU_MEMORY", bytes);
        MRT_TRUE(status <= 1);
        done += status == 0;
        failed += status == 1;
    }
    MRT_TRUE(done > 0 && failed > 0);
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "step") == 0) return step(argv[2], argv[3]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes_measured),
        cmocka_unit_test(test_shapes_deterministic),
        cmocka_unit_test(test_shapes_tf32),
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_strict_f32),
        cmocka_unit_test(test_measured_once),
        cmocka_unit_test(test_few_algorithms),
        cmocka_unit_test(test_plan_refused),
        cmocka_unit_test(test_workspace_limit),
        cmocka_unit_test(test_misaligned),
        cmocka_unit_test(test_recorded),
        cmocka_unit_test(test_new_batch_while_recording),
        cmocka_unit_test(test_out_of_memory_of_the_host),
        cmocka_unit_test(test_failing_calls_conv),
        cmocka_unit_test(test_failing_calls_dense),
        cmocka_unit_test(test_small_memory),
    };
    cuda_or_skip();
    struct side s = gpu(false, false);
    emulated = strstr(mr_device_info_of(s.dev)->hardware, "emulated") != NULL;
    side_close(&s);
    return mrt_run(tests);
}
