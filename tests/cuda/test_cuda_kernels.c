/* cuda: our own kernels where test_device_ops does not go: tensors of many blocks, channel counts between
 * packs, addresses that are not aligned, every value of the half types, statistics far from zero, ties,
 * windows of many places, scaled updates. Runs on the device that MRT_DEVICES names, emulated or not, between
 * guard bytes (device_lab.h). */
#include "kernels/cuda/ops/cuda_op.h"
#include "mrt.h"
#include "tests/cuda/rig.h"
#include "tests/kernels/device_case.h"

static struct lab *const l = &mrt_device;
static const uint32_t types[] = {MR_TENSOR_F32, MR_TENSOR_BF16, MR_TENSOR_F16};

static mri_cuda_stream *stream(void) { return (mri_cuda_stream *)l->s; }

static void clean_up(void)
{
    MRT_OK(l->rc, &l->err);
    const char *guard = lab_release(l);
    if (guard) fail_msg("%s", guard);
    lab_host_reset();
}

/* A flat tensor on the device, `shift` elements after an aligned address. */
static void *put(uint32_t dtype, const float *v, size_t count, size_t shift)
{
    const size_t bytes = mr_tensor_element_bytes(dtype);
    uint8_t *at = (uint8_t *)lab_memory(l, (count + shift) * bytes) + shift * bytes;
    const mr_tensor t = lab_nhwc(1, 1, (uint32_t)count, dtype);
    if (v) lab_store(l, &t, 1, at, v);
    return at;
}

static float *get(uint32_t dtype, const void *address, size_t count)
{
    bool clean;
    float *v = lab_floats(count);
    const mr_tensor t = lab_nhwc(1, 1, (uint32_t)count, dtype);
    lab_load(l, &t, 1, address, v, &clean);
    MRT_OK(l->rc, &l->err);
    return v;
}

static void expect_close(const float *found, const float *expected, size_t count, double tolerance,
                         const char *what)
{
    for (size_t i = 0; i < count; i++) {
        const double apart = fabs((double)found[i] - (double)expected[i]);
        if (isnan(expected[i])
                ? !isnan(found[i])
                : found[i] != expected[i] && !(apart <= tolerance * (fabs((double)expected[i]) + 1e-3)))
            fail_msg("%s: value %zu of %zu is %.9g, expected %.9g", what, i, count, (double)found[i],
                     (double)expected[i]);
    }
}

static double step_of(uint32_t dtype)
{
    return dtype == MR_TENSOR_BF16 ? 1.0 / 256 : dtype == MR_TENSOR_F16 ? 1.0 / 2048 : 1e-6;
}

/* ---- values ---- */

/* All 65536 patterns of a half type reach f32 and come back as they were; NaN stays NaN. */
static void halves_survive(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    uint16_t *all = lab_host(65536 * 2), *back = lab_host(65536 * 2);
    for (uint32_t i = 0; i < 65536; i++) all[i] = (uint16_t)i;
    for (size_t t = 1; t < 3; t++)
        for (size_t shift = 0; shift < 2; shift++) {
            uint8_t *half = lab_memory(l, 65537 * 2), *again = lab_memory(l, 65536 * 2),
                    *full = lab_memory(l, 65537 * 4);
            lab_put(l, half + 2 * shift, all, 65536 * 2);
            MRT_OK(mri_cuda_cast(stream(), 65536, MR_TENSOR_F32, full + 4 * shift, types[t], half + 2 * shift,
                                 &err),
                   &err);
            MRT_OK(mri_cuda_cast(stream(), 65536, types[t], again, MR_TENSOR_F32, full + 4 * shift, &err),
                   &err);
            const float *values = get(MR_TENSOR_F32, full + 4 * shift, 65536);
            const float *expected = get(types[t], half + 2 * shift, 65536);
            lab_get(l, back, again, 65536 * 2);
            for (uint32_t i = 0; i < 65536; i++) {
                if (isnan(expected[i])) MRT_TRUE(isnan(values[i]));
                else if (values[i] != expected[i] || back[i] != all[i])
                    fail_msg("type %u: %04x became %g and %04x", types[t], i, (double)values[i], back[i]);
            }
            clean_up();
            all = lab_host(65536 * 2), back = lab_host(65536 * 2);
            for (uint32_t i = 0; i < 65536; i++) all[i] = (uint16_t)i;
        }
    clean_up();
}

/* Half way between neighbours, just next to it, too large, too small, not finite. */
static void casts_round_to_even(void **state)
{
    (void)state;
    static const float odd[] = {
        0.0f,          -0.0f,    1.0f + 1.0f / 256, 1.0f + 3.0f / 256, 1.0f + 1.0f / 2048, 1.0f + 3.0f / 2048,
        65519.0f,      65520.0f, -65536.0f,         3.4e38f,           5.9604645e-8f,      2.9802322e-8f,
        2.9802326e-8f, 1e-40f,   -1e-45f,           INFINITY,          -INFINITY,          NAN,
        6.1035156e-5f, 6.1e-5f};
    enum { COUNT = 4099 };
    float *v = lab_noise(COUNT, 5, MR_TENSOR_F32), *expected = lab_floats(COUNT);
    for (size_t i = 0; i < COUNT; i++)
        v[i] = i < MRI_ARRAY_COUNT(odd) ? odd[i] : ldexpf(v[i], (int)(i % 48) - 30);
    for (size_t from = 0; from < 3; from++)
        for (size_t to = 0; to < 3; to++)
            for (size_t shift = 0; shift < 2; shift++) {
                mr_error err = MR_ERROR_INIT;
                void *a = put(types[from], v, COUNT, 0), *b = put(types[to], NULL, COUNT, shift);
                MRT_OK(mri_cuda_cast(stream(), COUNT, types[to], b, types[from], a, &err), &err);
                for (size_t i = 0; i < COUNT; i++)
                    expected[i] = lab_round(lab_round(v[i], types[from]), types[to]);
                expect_close(get(types[to], b, COUNT), expected, COUNT, 0, "cast");
            }
    clean_up();
}

static void accumulates(void **state)
{
    (void)state;
    for (size_t t = 0; t < 3; t++)
        for (size_t i = 0; i < 6; i++) {
            static const size_t counts[] = {1, 7, 8, 2047, 2048, 70001};
            mr_error err = MR_ERROR_INIT;
            const size_t n = counts[i], shift = i % 2;
            float *a = lab_noise(n, 2 * i, types[t]), *b = lab_noise(n, 2 * i + 1, types[t]),
                  *expected = lab_floats(n);
            for (size_t k = 0; k < n; k++) expected[k] = lab_round(a[k] + b[k], types[t]);
            void *da = put(types[t], a, n, shift);
            MRT_OK(mri_cuda_accumulate(stream(), n, types[t], da, put(types[t], b, n, 0), &err), &err);
            expect_close(get(types[t], da, n), expected, n, 0, "sum");
            clean_up();
        }
}

/* ---- rows of channels ---- */

static const struct {
    uint32_t rows, channels, shift;
} shapes[] = {
    {1, 1, 0},    {3, 8, 0},     {1000, 8, 0},  {777, 24, 0}, {300, 13, 0}, {129, 256, 0},
    {70, 264, 0}, {45, 2056, 0}, {2500, 16, 1}, {601, 40, 1}, {5000, 3, 0},
};

static bool emulated(void) { return getenv("MILLRACE_EMU_DEVICES") != NULL; }

static float slope_of(mr_activation act, float y)
{
    if (act == MR_ACT_TANH)
        return emulated() ? 1 - y * y : fmaf(-y, y, 1); /* a GPU does not round the product */
    return act == MR_ACT_RELU ? (y > 0 ? 1.0f : 0.0f) : 1.0f;
}

static void bias_forward(uint32_t dtype, mr_activation act, uint32_t rows, uint32_t c, uint32_t shift)
{
    mr_error err = MR_ERROR_INIT;
    const size_t n = (size_t)rows * c;
    float *y = lab_noise(n, 1, dtype), *bias = lab_noise(c, 2, MR_TENSOR_F32), *expected = lab_floats(n);
    for (size_t i = 0; i < n; i++) {
        const float v = y[i] + bias[i % c];
        expected[i] = lab_round(act == MR_ACT_RELU   ? (v > 0 ? v : 0)
                                : act == MR_ACT_TANH ? tanhf(v)
                                                     : v,
                                dtype);
    }
    void *d = put(dtype, y, n, shift);
    MRT_OK(mri_cuda_bias_activate(stream(), rows, c, dtype, d, put(MR_TENSOR_F32, bias, c, 0), act, &err),
           &err);
    /* two tanh that lie on either side of a number that is to be rounded are a whole step apart */
    const double tolerance = step_of(dtype) * (act == MR_ACT_TANH && dtype != MR_TENSOR_F32 ? 2 : 1);
    expect_close(get(dtype, d, n), expected, n, tolerance, "y with bias");
    clean_up();
}

static void bias_back(uint32_t dtype, mr_activation act, uint32_t rows, uint32_t c, uint32_t shift)
{
    mr_error err = MR_ERROR_INIT;
    const size_t n = (size_t)rows * c;
    float *y = lab_noise(n, 3, dtype), *dy = lab_noise(n, 4, dtype), *expected = lab_floats(n),
          *sums = lab_floats(c);
    for (uint32_t k = 0; k < c; k++) {
        double sum = 0;
        for (uint32_t r = 0; r < rows; r++) {
            const float g = dy[(size_t)r * c + k] * slope_of(act, y[(size_t)r * c + k]);
            expected[(size_t)r * c + k] = lab_round(g, dtype);
            sum += (double)g;
        }
        sums[k] = (float)sum;
    }
    const size_t bytes = mri_cuda_bias_scratch(mri_cuda_of_stream(stream()), rows, c);
    void *d = put(dtype, dy, n, shift), *dbias = put(MR_TENSOR_F32, NULL, c, 0),
         *again = put(MR_TENSOR_F32, NULL, c, 0);
    void *scratch = lab_memory(l, bytes), *dy_y = put(dtype, y, n, 0);
    MRT_OK(mri_cuda_bias_backward(stream(), rows, c, dtype, dy_y, d, dbias, scratch, act, &err), &err);
    expect_close(get(dtype, d, n), expected, n, step_of(dtype), "dy");
    expect_close(get(MR_TENSOR_F32, dbias, c), sums, c, 1e-4, "dbias");
    void *d2 = put(dtype, dy, n, shift);
    MRT_OK(mri_cuda_bias_backward(stream(), rows, c, dtype, dy_y, d2, again, scratch, act, &err), &err);
    expect_close(get(MR_TENSOR_F32, again, c), get(MR_TENSOR_F32, dbias, c), c, 0, "dbias once more");
    clean_up();
}

static void bias(void **state)
{
    (void)state;
    static const mr_activation acts[] = {MR_ACT_NONE, MR_ACT_RELU, MR_ACT_TANH};
    for (size_t i = 0; i < MRI_ARRAY_COUNT(shapes); i++)
        for (size_t t = 0; t < 3; t++) {
            const mr_activation act = acts[(i + t) % 3];
            bias_forward(types[t], act, shapes[i].rows, shapes[i].channels, shapes[i].shift);
            bias_back(types[t], act, shapes[i].rows, shapes[i].channels, shapes[i].shift);
        }
}

/* ---- whole operations on sizes of many blocks ---- */

static void compare(mr_op_desc d, uint32_t n, uint32_t h, uint32_t w, uint32_t c, uint32_t dtype,
                    bool training, const char *note)
{
    d.max_batch = n + 1;
    d.training = training;
    d.need_dx = training && d.kind != MR_OP_INPUT;
    d.in = lab_nhwc(h, w, c, dtype);
    d.in2 = d.in;
    struct op_case one = {.d = d,
                          .in = d.in,
                          .n = n,
                          .tolerance = dtype == MR_TENSOR_F32    ? 1e-4
                                       : dtype == MR_TENSOR_BF16 ? 1e-2
                                                                 : 2e-3,
                          .note = note};
    struct op_io io = op_inputs(&one, n * 1000 + c);
    if (!training) {
        io.training = false;
        io.dy = io.dy2 = NULL;
    }
    op_compare(&one, &io);
}

static mr_op_desc pool(uint32_t k, uint32_t stride, uint32_t pad, bool average)
{
    return (mr_op_desc){.kind = MR_OP_POOL2D,
                        .pool2d.average = average,
                        .pool2d.window = {k, k, stride, stride, pad, pad, pad, pad}};
}

static void large_sizes(void **state)
{
    (void)state;
    static const struct {
        uint32_t n, h, w, c;
    } sizes[] = {
        {9, 13, 11, 8}, {6, 9, 9, 24},  {4, 5, 6, 264}, {2, 3, 3, 2056},
        {5, 9, 7, 13},  {33, 4, 4, 40}, {3, 7, 7, 64},
    };
    for (size_t t = 0; t < 3; t++) {
        lab_group_begin("large sizes", types[t]);
        for (size_t i = 0; i < MRI_ARRAY_COUNT(sizes); i++) {
            const uint32_t n = sizes[i].n, h = sizes[i].h, w = sizes[i].w, c = sizes[i].c;
            mr_op_desc norm = {.kind = MR_OP_BATCHNORM,
                               .batchnorm.momentum = 0.9f,
                               .batchnorm.epsilon = 1e-3f,
                               .activation = (mr_activation)(i % 3),
                               .batchnorm.residual = i % 2 == 1};
            compare(norm, n, h, w, c, types[t], true, " norm");
            norm.activation = MR_ACT_RELU;
            norm.batchnorm.residual = !norm.batchnorm.residual;
            compare(norm, n, h, w, c, types[t], true, " norm");
            compare(norm, n, h, w, c, types[t], false, " norm, running");
            compare((mr_op_desc){.kind = MR_OP_ADD, .activation = MR_ACT_RELU}, n, h, w, c, types[t], true,
                    " add");
            compare((mr_op_desc){.kind = MR_OP_DROPOUT, .dropout.rate = 0.3f, .dropout.op_id = 7}, n, h, w, c,
                    types[t], true, " drop");
            compare((mr_op_desc){.kind = MR_OP_DROPOUT,
                                 .dropout = {.rate = 0.3f, .op_id = 7, .whole_samples = true}},
                    n, h, w, c, types[t], true, " drop samples");
            compare((mr_op_desc){.kind = MR_OP_ACTIVATION, .activation = i % 2 ? MR_ACT_SILU : MR_ACT_GELU},
                    n, h, w, c, types[t], true, " smooth");
            compare((mr_op_desc){.kind = MR_OP_LRN, .lrn = {4, 1, 0.1f, 0.75f}}, n, h, w, c, types[t], true,
                    " lrn");
            compare((mr_op_desc){.kind = MR_OP_SOFTMAX, .softmax.log = i % 2}, n, h, w, c, types[t], true,
                    " softmax");
            compare((mr_op_desc){.kind = MR_OP_SCALE}, n, h, w, c, types[t], true, " scale");
            compare(pool(3, 2, 1, false), n, h, w, c, types[t], true, " max");
            compare(pool(2, 1, 1, true), n, h, w, c, types[t], true, " mean");
        }
        compare(pool(17, 3, 8, false), 2, 19, 18, 8, types[t], true, " places of 16 bits");
        compare(pool(16, 5, 8, false), 2, 19, 18, 16, types[t], true, " places of 8 bits, to the last");
        compare(pool(7, 7, 0, true), 3, 7, 7, 512, types[t], true, " global");
        for (uint32_t classes = 1; classes < 5000; classes = classes * 4 + 3)
            compare((mr_op_desc){.kind = MR_OP_LOSS}, 9, 1, 1, classes, types[t], true, " loss");
        for (uint32_t k = 0; k < 4; k++)
            compare((mr_op_desc){.kind = k % 2 ? MR_OP_LSTM : MR_OP_GRU,
                                 .recurrent.units = 300,
                                 .recurrent.sequences = k < 2},
                    9, 1, 3, 40, types[t], true, k % 2 ? " lstm" : " gru");
        lab_group_end();
    }
    lab_group_begin("pixels", MR_TENSOR_U8);
    for (size_t t = 0; t < 3; t++)
        for (uint32_t c = 1; c <= 4; c++)
            for (int planar = 0; planar < 2; planar++) {
                mr_op_desc d = {.kind = MR_OP_INPUT,
                                .input.out_dtype = types[t],
                                .want = planar ? MR_WANT_NCHW : MR_WANT_NHWC,
                                .input.mean = {125, 122, 114, 3},
                                .input.std = {63, -62, 66.5f, 255}};
                compare(d, 5, 28, 24, c, MR_TENSOR_U8, true, " pixels");
                compare(d, 3, 9, 5, c, MR_TENSOR_U8, true, " pixels");
            }
    lab_group_end();
    MRT_EQ(lab_report(), 0);
}

/* ---- batch norm ---- */

struct norm {
    mr_op *op;
    mr_op_args a;
    float *mean, *variance; /* host, after forward with momentum 0 */
};

static struct norm norm_of(uint32_t dtype, uint32_t n, uint32_t h, uint32_t w, uint32_t c, const float *x)
{
    struct norm b;
    mr_error err = MR_ERROR_INIT;
    const size_t count = (size_t)n * h * w * c;
    const mr_op_desc d = {.kind = MR_OP_BATCHNORM,
                          .in = lab_nhwc(h, w, c, dtype),
                          .max_batch = n,
                          .training = true,
                          .need_dx = true,
                          .batchnorm.epsilon = 1e-5f};
    float *ones = lab_floats(c);
    for (uint32_t i = 0; i < c; i++) ones[i] = 1;
    MRT_OK(mr_op_create(&b.op, l->dev, &d, &err), &err);
    const mr_op_info *info = mr_op_info_of(b.op);
    b.a = (mr_op_args){.n = n,
                       .training = true,
                       .x = put(dtype, x, count, 0),
                       .y = put(dtype, NULL, count, 0),
                       .param = {put(MR_TENSOR_F32, ones, c, 0), lab_zeros(l, c * 4)},
                       .state = {lab_zeros(l, c * 4), lab_zeros(l, c * 4)},
                       .saved = lab_memory(l, info->saved_bytes),
                       .scratch = lab_memory(l, info->scratch_bytes)};
    MRT_EQ(mr_op_forward_async(b.op, l->s, &b.a), MR_OK);
    b.mean = get(MR_TENSOR_F32, b.a.state[0], c);
    b.variance = get(MR_TENSOR_F32, b.a.state[1], c);
    return b;
}

/* Values far from zero, with little spread, with one that lies far out: mean and variance keep their
 * digits. */
static void statistics_far_from_zero(void **state)
{
    (void)state;
    enum { N = 4, H = 25, W = 31, C = 24, ROWS = N * H * W };
    for (int kind = 0; kind < 4; kind++) {
        float *x = lab_noise((size_t)ROWS * C, 77, MR_TENSOR_F32), *mean = lab_floats(C),
              *variance = lab_floats(C);
        for (size_t i = 0; i < (size_t)ROWS * C; i++) {
            if (kind == 1) x[i] = 1000 + x[i];
            if (kind == 2) x[i] = -30000 + 100 * x[i];
            if (kind == 3 && (i / C == 0 || i / C == ROWS - 1)) x[i] = 5000; /* where a block starts */
        }
        for (uint32_t c = 0; c < C; c++) {
            double m = 0, v = 0;
            for (size_t r = 0; r < ROWS; r++) m += (double)x[r * C + c] / ROWS;
            for (size_t r = 0; r < ROWS; r++)
                v += ((double)x[r * C + c] - m) * ((double)x[r * C + c] - m) / ROWS;
            mean[c] = (float)m;
            variance[c] = (float)v;
        }
        struct norm b = norm_of(MR_TENSOR_F32, N, H, W, C, x);
        expect_close(b.mean, mean, C, kind == 0 ? 1e-4 : 1e-6, "mean");
        expect_close(b.variance, variance, C, 1e-5, "variance");
        struct norm again = norm_of(MR_TENSOR_F32, N, H, W, C, x);
        expect_close(again.variance, b.variance, C, 0, "variance once more");
        expect_close(get(MR_TENSOR_F32, again.a.y, (size_t)ROWS * C),
                     get(MR_TENSOR_F32, b.a.y, (size_t)ROWS * C), (size_t)ROWS * C, 0, "y once more");
        mr_op_destroy(b.op);
        mr_op_destroy(again.op);
        clean_up();
    }
}

/* ---- pooling ---- */

/* Equal values give the gradient to the first; NaN stays where it came first, as in the
 * reference. */
static void maximum_takes_the_first(void **state)
{
    (void)state;
    enum { H = 6, W = 6, C = 8, OUT = 3 };
    for (size_t t = 0; t < 3; t++) {
        mr_error err = MR_ERROR_INIT;
        mr_op *op;
        mr_op_desc d = pool(2, 2, 0, false);
        d.in = lab_nhwc(H, W, C, types[t]);
        d.max_batch = 1;
        d.training = d.need_dx = true;
        float *x = lab_floats(H * W * C), *dy = lab_floats(OUT * OUT * C), *expected = lab_floats(H * W * C);
        for (int i = 0; i < OUT * OUT * C; i++) dy[i] = 1;
        for (int i = 0; i < H * W * C; i++) {
            const int y = i / C / W, xx = i / C % W;
            x[i] = y / 2 == 0 ? -INFINITY : 2; /* the first row of windows: nothing larger than anything */
            expected[i] = y % 2 == 0 && xx % 2 == 0 ? 1 : 0;
        }
        MRT_OK(mr_op_create(&op, l->dev, &d, &err), &err);
        mr_op_args a = {.n = 1,
                        .training = true,
                        .x = put(types[t], x, H * W * C, 0),
                        .y = put(types[t], NULL, OUT * OUT * C, 0),
                        .dy = put(types[t], dy, OUT * OUT * C, 0),
                        .dx = put(types[t], NULL, H * W * C, 0),
                        .saved = lab_memory(l, mr_op_info_of(op)->saved_bytes)};
        MRT_EQ(mr_op_forward_async(op, l->s, &a), MR_OK);
        MRT_EQ(mr_op_backward_async(op, l->s, &a), MR_OK);
        MRT_TRUE(get(types[t], a.y, OUT * OUT * C)[0] == -INFINITY);
        expect_close(get(types[t], a.dx, H * W * C), expected, H * W * C, 0, "dx");
        mr_op_destroy(op);
        clean_up();
    }
}

/* ---- loss ---- */

/* A label beyond the classes is counted apart, gets no gradient, and leaves the others' alone; so does one
 * below zero. mixes: the same ones are sound, and mixed with such a label. */
static void check_bad_labels(bool mixes)
{
    enum { N = 6, C = 5 };
    static const int32_t labels[N] = {0, 5, -1, 4, INT32_MAX, INT32_MIN}, sound[N] = {0, 1, -1, 4, 0, -2};
    static const int32_t second[N] = {-9, 5, 0, 4, 0, 0};
    static const float share[N] = {0, 0.5f, 0.5f, 1, -0.25f, 0.5f};
    mr_error err = MR_ERROR_INIT;
    mr_op *op;
    const mr_op_desc d = {.kind = MR_OP_LOSS,
                          .in = lab_nhwc(1, 1, C, MR_TENSOR_F32),
                          .max_batch = N,
                          .training = true,
                          .need_dx = true};
    const mr_step_values values = {.scale = 0.5f};
    const mr_loss_scale scale = {.scale = 8};
    float *x = lab_floats(N * C);
    for (int i = 0; i < N; i++) x[i * C + 4] = x[i * C + 2] = 1; /* class 2 comes first of the largest */
    MRT_OK(mr_op_create(&op, l->dev, &d, &err), &err);
    mr_op_args a = {.n = N,
                    .x = put(MR_TENSOR_F32, x, N * C, 0),
                    .dx = put(MR_TENSOR_F32, NULL, N * C, 0),
                    .labels = lab_copy_of(l, mixes ? sound : labels, sizeof labels),
                    .labels2 = mixes ? lab_copy_of(l, second, sizeof second) : NULL,
                    .share2 = mixes ? lab_copy_of(l, share, sizeof share) : NULL,
                    .metrics = lab_zeros(l, sizeof(mr_metrics)),
                    .scratch = lab_memory(l, mr_op_info_of(op)->scratch_bytes),
                    .values = lab_copy_of(l, &values, sizeof values),
                    .loss_scale = lab_copy_of(l, &scale, sizeof scale)};
    MRT_EQ(mr_op_forward_async(op, l->s, &a), MR_OK);
    MRT_EQ(mr_op_forward_async(op, l->s, &a), MR_OK);
    MRT_EQ(mr_op_backward_async(op, l->s, &a), MR_OK);
    mr_metrics m;
    lab_get(l, &m, a.metrics, sizeof m);
    const double sum = 2 * M_E + 3;
    MRT_EQ(m.count, 4); /* two a run */
    MRT_EQ(m.bad, 4);
    MRT_EQ(m.correct, 0);
    MRT_TRUE(fabs(m.loss_sum - 2 * (log(sum) + log(sum) - 1)) < 1e-6);
    const float *dx = get(MR_TENSOR_F32, a.dx, N * C);
    for (int i = 0; i < N; i++)
        for (int c = 0; c < C; c++) {
            const double p = (c == 2 || c == 4 ? M_E : 1) / sum - (c == labels[i]);
            const double expected = i == 0 || i == 3 ? 4 * p : 0;
            MRT_TRUE(fabs((double)dx[i * C + c] - expected) < 1e-6);
        }
    mr_op_destroy(op);
    clean_up();
}

static void bad_labels(void **state)
{
    (void)state;
    check_bad_labels(false);
    check_bad_labels(true);
}

/* ---- updates ---- */

static void one_update(size_t count, size_t shift, size_t bad, mr_loss_scale *scale, float *w)
{
    const mr_update_desc d = {.kind = MR_UPDATE_MOMENTUM, .lr = 0.5f, .momentum = 0.25f};
    mr_step_values values = {0};
    MRT_EQ(mr_update_values(&d, &values), MR_OK);
    float *g = lab_floats(count);
    for (size_t i = 0; i < count; i++) g[i] = scale->scale * (float)(i % 7);
    if (bad < count) g[bad] = bad % 2 ? NAN : -INFINITY;
    const mr_update_args a = {.count = count,
                              .weights = put(MR_TENSOR_F32, w, count, shift),
                              .grads = put(MR_TENSOR_F32, g, count, shift),
                              .state = {(float *)lab_zeros(l, (count + shift) * 4) + shift},
                              .values = lab_copy_of(l, &values, sizeof values),
                              .loss_scale = lab_copy_of(l, scale, sizeof *scale)};
    MRT_EQ(mr_update_async(l->s, &d, &a), MR_OK);
    lab_get(l, scale, a.loss_scale, sizeof *scale);
    memcpy(w, get(MR_TENSOR_F32, a.weights, count), count * sizeof *w);
}

static void updates_of_scaled_gradients(void **state)
{
    (void)state;
    static const size_t counts[] = {1, 4, 1023, 40007};
    for (size_t i = 0; i < MRI_ARRAY_COUNT(counts); i++)
        for (size_t shift = 0; shift < 2; shift++) {
            const size_t n = counts[i];
            float *w = lab_floats(n);
            mr_loss_scale scale = {.scale = 1024, .growth_steps = 2, .overflow = 1}; /* the device's own:
                                                                                        whatever it holds */
            one_update(n, shift, n, &scale, w);
            for (size_t k = 0; k < n; k++) MRT_TRUE(w[k] == -0.5f * (float)(k % 7));
            MRT_TRUE(scale.good == 1 && scale.scale == 1024 && scale.skipped == 0);
            one_update(n, shift, n, &scale, w);
            MRT_TRUE(scale.good == 0 && scale.scale == 2048);
            const float last = w[n - 1];
            one_update(n, shift, n - 1, &scale, w);
            MRT_TRUE(scale.scale == 1024 && scale.skipped == 1 && scale.good == 0 && scale.overflow == 0 &&
                     w[n - 1] == last);
            one_update(n, shift, 0, &scale, w);
            MRT_TRUE(scale.scale == 512 && scale.skipped == 2 && w[0] == 0);
            scale = (mr_loss_scale){.scale = 1, .growth_steps = 1};
            one_update(n, shift, n / 2, &scale, w);
            MRT_TRUE(scale.scale == 1 && scale.skipped == 1);
            scale = (mr_loss_scale){.scale = 16777216.0f, .growth_steps = 1};
            one_update(n, shift, n, &scale, w);
            MRT_TRUE(scale.scale == 16777216.0f);
            scale = (mr_loss_scale){.scale = 8, .growth_steps = 0};
            one_update(n, shift, n / 2, &scale, w);
            one_update(n, shift, n, &scale, w);
            MRT_TRUE(scale.scale == 8 && scale.skipped == 1);
            clean_up();
        }
}

/* Skips where there is no GPU. */
static void need_device(const char *spec)
{
    mr_error err = MR_ERROR_INIT;
    mr_devices_config cfg;
    mr_device **devices;
    uint32_t count;
    mr_devices_defaults(&cfg);
    const int rc = mr_devices_open(&devices, &count, spec, &cfg, &err);
    if (rc == MR_EUNSUPPORTED || rc == MR_ENOENT) {
        printf("skipped: %s\n", err.text);
        exit(77);
    }
    if (!rc) mr_devices_close(devices, count);
}

int main(void)
{
    cuda_or_skip();
    setenv("MRT_DEVICES", "cuda:0", 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(halves_survive),
        cmocka_unit_test(casts_round_to_even),
        cmocka_unit_test(accumulates),
        cmocka_unit_test(bias),
        cmocka_unit_test(large_sizes),
        cmocka_unit_test(statistics_far_from_zero),
        cmocka_unit_test(maximum_takes_the_first),
        cmocka_unit_test(bad_labels),
        cmocka_unit_test(updates_of_scaled_gradients),
    };
    need_device(lab_settings()->devices);
    lab_open(&mrt_device, lab_settings()->devices, false);
    lab_open(&mrt_reference, "cpu", true);
    const int failed = mrt_run(tests);
    lab_close(&mrt_device);
    lab_close(&mrt_reference);
    return failed;
}
