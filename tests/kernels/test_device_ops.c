/* kernels: every operation of the device that MRT_DEVICES names (default: cpu, the fast code) against the
 * plain C reference, on odd sizes, in every type the device has and in the layouts it makes; then updates,
 * copies and groups (device_flow.c).
 *
 *   MRT_DEVICES=cuda:0  MRT_TF32=1  MRT_DETERMINISTIC=1 (every case twice, to the bit)  MRT_SEED=N
 *                       MRT_QUICK=1  MRT_OPS=NAME,... (these of the names it prints, alone; flow: updates,
 *                       copies, groups)  MRT_TYPES=f16,... (these types alone)
 *
 * One line for each operation and type, with the worst error; a table of failures at the end; exit status 1
 * when there are any.
 *
 * Errors are ||a - b|| / ||b|| against the reference in f32, which is given the same inputs, rounded to the
 * type under test, and for backward the output that the device itself made; where a few sums may happen to
 * cancel, / the size such sums usually have. Allowed: f32 1e-5 (1e-3 for products with TF32), bf16 1e-2, f16
 * 2e-3; recurrent layers, whose roundings go through all steps, three times as much in half precision.
 * Dropout's pattern, INPUT in f32 and the counts of LOSS are equal. */
#include "tests/kernels/device_case.h"
#include "tests/kernels/device_flow.h"

static const uint32_t types[] = {MR_TENSOR_F32, MR_TENSOR_BF16, MR_TENSOR_F16};
static const uint32_t channels[] = {1, 3, 4, 5, 8, 16, 17, 64, 65};
static const uint32_t batches[] = {5, 1, 4};
enum { MAX_BATCH = 5 };

static double tolerance_of(uint32_t dtype, bool product)
{
    if (dtype == MR_TENSOR_BF16) return 1e-2;
    if (dtype == MR_TENSOR_F16) return 2e-3;
    return product && lab_settings()->tf32 ? 1e-3 : 1e-5;
}

static uint64_t next_seed(void)
{
    static uint64_t seed;
    return ++seed;
}

/* A description whose input is h x w x c; in its own layout too, where the device has one; whole batches, one
 * sample, most of one. */
static void check(mr_op_desc d, uint32_t h, uint32_t w, uint32_t c, uint32_t dtype)
{
    const bool quick = lab_settings()->quick;
    d.max_batch = MAX_BATCH;
    d.in = lab_nhwc(h, w, c, dtype);
    const bool product =
        d.kind == MR_OP_CONV2D || d.kind == MR_OP_CONV2D_TRANSPOSED || d.kind == MR_OP_DENSE; /* a sum of
                                                            terms of this size, rounded one by one */
    struct op_case one = {.d = d,
                          .tolerance = tolerance_of(dtype, product),
                          .y_floor = product ? 0.5 : 0,
                          .dx_floor = d.kind == MR_OP_UPSAMPLE ? d.upsample.factor : 0}; /* a sum, too */
    const mr_tensor layouts[2] = {d.in, lab_own_layout(&mrt_device, &d.in)};
    const bool plain = d.kind == MR_OP_LOSS || d.kind == MR_OP_RESHAPE || d.kind == MR_OP_SAMPLE;
    const bool own = !plain && layouts[1].layout != layouts[0].layout &&
                     (!d.in2.c || lab_like(&mrt_device, &layouts[1], d.in2.c).layout == layouts[1].layout);
    const int layout_count = own ? 2 : 1;
    for (int l = 0; l < layout_count; l++)
        for (size_t b = 0; b < (quick ? 1 : MRI_ARRAY_COUNT(batches)); b++) {
            one.in = layouts[l];
            one.n = batches[(b + c) % MRI_ARRAY_COUNT(batches)];
            const struct op_io io = op_inputs(&one, next_seed());
            op_compare(&one, &io);
        }
}

/* ---- products ---- */

static mr_op_desc conv2d(uint32_t k, uint32_t stride, uint32_t pad)
{
    return (mr_op_desc){.kind = MR_OP_CONV2D,
                        .training = true,
                        .need_dx = true,
                        .conv2d.window = {k, k, stride, stride, pad, pad, pad, pad}};
}

static mr_op_desc pool2d(uint32_t k, uint32_t stride, uint32_t pad)
{
    return (mr_op_desc){.kind = MR_OP_POOL2D,
                        .training = true,
                        .need_dx = true,
                        .pool2d.window = {k, k, stride, stride, pad, pad, pad, pad}};
}

static void check_conv2d(uint32_t dtype)
{
    static const struct {
        uint32_t h, w, c, f, k, stride, pad;
        mr_activation act;
        bool no_bias, no_dx;
        uint32_t groups;
    } cases[] = {
        {1, 1, 1, 1, 1, 1, 0, MR_ACT_NONE, false, false, 0},
        {7, 5, 3, 4, 3, 1, 1, MR_ACT_RELU, false, true, 0},
        {13, 11, 3, 16, 7, 2, 3, MR_ACT_NONE, true, true, 0},
        {7, 7, 16, 17, 3, 2, 1, MR_ACT_RELU, false, false, 0},
        {8, 8, 64, 65, 1, 1, 0, MR_ACT_NONE, true, false, 0},
        {6, 6, 8, 64, 3, 1, 1, MR_ACT_RELU, true, false, 0},
        {9, 9, 5, 5, 5, 2, 2, MR_ACT_SELU, false, false, 0},
        {8, 8, 64, 16, 1, 2, 0, MR_ACT_NONE, true, false, 0},
        {4, 4, 65, 3, 1, 1, 0, MR_ACT_TANH, false, false, 0},
        {13, 13, 17, 8, 3, 1, 0, MR_ACT_SIGMOID, false, false, 0},
        {13, 13, 64, 64, 3, 1, 1, MR_ACT_NONE, true, false, 0},
        {11, 3, 4, 16, 3, 1, 1, MR_ACT_RELU, false, false, 0},
        {7, 5, 12, 8, 3, 1, 1, MR_ACT_RELU, true, false, 4},
        {5, 6, 48, 16, 1, 2, 0, MR_ACT_NONE, false, true, 2},
        {1, 1, 17, 17, 3, 1, 1, MR_ACT_NONE, true, false, 17},
        {9, 7, 24, 24, 3, 1, 1, MR_ACT_NONE, true, false, 24},
        {8, 8, 33, 33, 5, 2, 2, MR_ACT_RELU6, false, false, 33},
        {6, 5, 5, 15, 3, 1, 1, MR_ACT_NONE, false, false, 5},
    };
    for (size_t i = 0; i < MRI_ARRAY_COUNT(cases); i++) {
        mr_op_desc d = conv2d(cases[i].k, cases[i].stride, cases[i].pad);
        d.conv2d.filters = cases[i].f;
        d.activation = cases[i].act;
        d.conv2d.no_bias = cases[i].no_bias;
        d.conv2d.groups = cases[i].groups;
        d.need_dx = !cases[i].no_dx;
        check(d, cases[i].h, cases[i].w, cases[i].c, dtype);
    }
    mr_op_desc d = conv2d(3, 2, 0); /* padding that differs from side to side, a window that is
                                                     not square */
    d.conv2d.window.kernel_w = 2;
    d.conv2d.filters = 6;
    d.conv2d.window.pad_bottom = d.conv2d.window.pad_left = 1;
    check(d, 6, 7, 3, dtype);
}

static void check_dense(uint32_t dtype)
{
    static const struct {
        uint32_t h, w, c, units;
        mr_activation act;
        bool no_bias, no_dx;
    } cases[] = {
        {1, 1, 1, 1, MR_ACT_NONE, false, false},      {7, 5, 3, 10, MR_ACT_RELU, false, false},
        {1, 1, 100, 10, MR_ACT_NONE, false, false},   {3, 3, 17, 33, MR_ACT_TANH, true, false},
        {1, 1, 64, 65, MR_ACT_SIGMOID, false, false}, {2, 3, 16, 128, MR_ACT_RELU, false, true},
        {1, 1, 513, 1000, MR_ACT_NONE, true, false},
    };
    for (size_t i = 0; i < MRI_ARRAY_COUNT(cases); i++)
        check((mr_op_desc){.kind = MR_OP_DENSE,
                           .training = true,
                           .need_dx = !cases[i].no_dx,
                           .dense.units = cases[i].units,
                           .activation = cases[i].act,
                           .dense.no_bias = cases[i].no_bias},
              cases[i].h, cases[i].w, cases[i].c, dtype);
}

/* ---- windows and elements ---- */

static void check_pool2d(uint32_t dtype)
{
    static const struct {
        uint32_t h, w, k, stride, pad;
    } cases[] = {
        {1, 1, 1, 1, 0},   {7, 5, 2, 2, 0}, {7, 7, 3, 2, 1},
        {13, 11, 3, 2, 0}, {6, 4, 3, 1, 1}, {7, 7, 7, 7, 0},
    };
    for (size_t i = 0; i < 2 * MRI_ARRAY_COUNT(cases); i++)
        for (size_t k = i % 2; k < MRI_ARRAY_COUNT(channels); k += 2) {
            mr_op_desc d = pool2d(cases[i / 2].k, cases[i / 2].stride, cases[i / 2].pad);
            d.pool2d.average = i % 2;
            check(d, cases[i / 2].h, cases[i / 2].w, channels[k], dtype);
        }
    mr_op_desc d = pool2d(3, 2, 0);
    d.pool2d.window.kernel_w = 2;
    d.pool2d.window.pad_bottom = d.pool2d.window.pad_left = 1;
    check(d, 6, 7, 5, dtype);
    d.pool2d.average = true;
    check(d, 6, 7, 5, dtype);
}

static void check_activation(uint32_t dtype)
{
    for (int act = MR_ACT_NONE; act < (int)MR_ACT_COUNT; act++)
        for (size_t k = 0; k < MRI_ARRAY_COUNT(channels); k++)
            check((mr_op_desc){.kind = MR_OP_ACTIVATION,
                               .training = true,
                               .need_dx = true,
                               .activation = (mr_activation)act},
                  7, 5, channels[k], dtype);
}

static void check_add(uint32_t dtype)
{
    for (int act = MR_ACT_NONE; act < (int)MR_ACT_COUNT && !mr_activation_needs_x((mr_activation)act); act++)
        for (size_t k = (size_t)act % 2; k < MRI_ARRAY_COUNT(channels); k += 2)
            check((mr_op_desc){.kind = MR_OP_ADD,
                               .training = true,
                               .need_dx = k % 4 < 2,
                               .activation = (mr_activation)act},
                  5, 7, channels[k], dtype);
}

static void check_transposed(uint32_t dtype)
{
    static const uint32_t forms[][4] = {{1, 1, 0, 5}, {3, 1, 1, 16}, {3, 2, 0, 8}, {2, 2, 0, 17}}; /* kernel,
                                                                                                      stride,
                                                                                                      pad,
                                                                                                      filters
                                                                                                    */
    for (size_t k = 0; k < MRI_ARRAY_COUNT(channels); k++) {
        const uint32_t *f = forms[k % MRI_ARRAY_COUNT(forms)];
        mr_op_desc d = conv2d(f[0], f[1], f[2]);
        d.kind = MR_OP_CONV2D_TRANSPOSED;
        d.conv2d.filters = f[3];
        d.activation = k % 3 == 1 ? MR_ACT_RELU : MR_ACT_NONE;
        d.training = true, d.need_dx = k % 4 != 3;
        check(d, 4, 5, channels[k], dtype);
    }
}

static void check_reshape(uint32_t dtype)
{
    for (size_t k = 0; k < MRI_ARRAY_COUNT(channels); k++)
        check(
            (mr_op_desc){
                .kind = MR_OP_RESHAPE, .training = true, .need_dx = true, .reshape = {2, channels[k], 6}},
            4, 3, channels[k], dtype);
}

/* The values multiplied with the draws are rounded to the type; a draw differs by some bits from the GPU's
 * own functions. */
static void check_sample(uint32_t dtype)
{
    for (size_t k = 0; k < MRI_ARRAY_COUNT(channels); k++)
        check((mr_op_desc){.kind = MR_OP_SAMPLE,
                           .training = true,
                           .need_dx = k % 2 == 0,
                           .sample = {.factor = k % 3 ? 1 : 0, .op_id = (uint32_t)k}},
              1 + (uint32_t)k % 2, 1, channels[k], dtype);
}

static void check_concat(uint32_t dtype)
{
    static const uint32_t pairs[][2] = {{1, 1}, {3, 5}, {16, 64}, {64, 17}, {8, 16}, {65, 8}};
    for (size_t k = 0; k < 2 * MRI_ARRAY_COUNT(pairs); k++)
        check(
            (mr_op_desc){
                .kind = MR_OP_CONCAT, .in2.c = pairs[k / 2][1], .training = true, .need_dx = k % 2 == 0},
            5, 7, pairs[k / 2][0], dtype);
}

static void check_scale(uint32_t dtype)
{
    static const uint32_t sides[][2] = {{1, 1}, {7, 5}, {13, 11}};
    for (size_t s = 0; s < MRI_ARRAY_COUNT(sides); s++)
        for (size_t k = s % 2; k < MRI_ARRAY_COUNT(channels); k += 2)
            check((mr_op_desc){.kind = MR_OP_SCALE, .training = true, .need_dx = k % 4 < 2}, sides[s][0],
                  sides[s][1], channels[k], dtype);
}

/* A few channels, more than a block has threads, and a window wider than the channels. */
static void check_lrn(uint32_t dtype)
{
    static const uint32_t wide[] = {1, 5, 16, 65, 300};
    static const mr_lrn_desc forms[] = {{4, 1, 0.3f, 0.75f}, {2, 2, 1, 0.5f}, {64, 1, 0.05f, 1.1f}};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(wide); k++)
        for (size_t f = 0; f < MRI_ARRAY_COUNT(forms); f++)
            check((mr_op_desc){.kind = MR_OP_LRN, .training = true, .need_dx = true, .lrn = forms[f]}, 3, 5,
                  wide[k], dtype);
}

/* One channel, a few, more than a block has threads, and rows that its threads go along many times. */
static void check_softmax(uint32_t dtype)
{
    static const uint32_t wide[] = {1, 5, 65, 300, 2500};
    for (size_t k = 0; k < 2 * MRI_ARRAY_COUNT(wide); k++)
        check(
            (mr_op_desc){.kind = MR_OP_SOFTMAX, .training = true, .need_dx = true, .softmax = {.log = k % 2}},
            3, 5, wide[k / 2], dtype);
}

static void check_pad(uint32_t dtype)
{
    static const uint32_t sides[][2] = {{0, 0}, {3, 0}, {8, 16}, {0, 5}};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(channels); k++)
        for (size_t s = 0; s < MRI_ARRAY_COUNT(sides); s++)
            check(
                (mr_op_desc){
                    .kind = MR_OP_PAD, .training = true, .need_dx = true, .pad = {sides[s][0], sides[s][1]}},
                5, 7, channels[k], dtype);
}

/* In place, and with another step, seed and first sample each time. */
static void check_dropout(uint32_t dtype)
{
    static const float rates[] = {0.25f, 0.5f, 0, 0.4f};
    for (size_t r = 0; r < MRI_ARRAY_COUNT(rates); r++)
        for (size_t k = 0; k < MRI_ARRAY_COUNT(channels); k++) {
            const mr_op_desc d = {.kind = MR_OP_DROPOUT,
                                  .training = true,
                                  .need_dx = true,
                                  .dropout.rate = rates[r],
                                  .dropout.op_id = (uint32_t)k,
                                  .dropout.whole_samples = r == 3};
            check(d, 5, 7, channels[k], dtype);
            struct op_case one = {
                .d = d, .n = 3, .tolerance = tolerance_of(dtype, false), .note = " in place"};
            one.d.max_batch = MAX_BATCH;
            one.d.in = one.in = lab_nhwc(3, 3, channels[k], dtype);
            struct op_io io = op_inputs(&one, next_seed());
            io.values.step += 1ull << 33;
            io.inplace = true;
            op_compare(&one, &io);
            io = op_inputs(&one, next_seed());
            one.note = " evaluation";
            one.d.training = io.training = false;
            io.dy = io.dy2 = NULL;
            op_compare(&one, &io);
        }
}

/* The norm that dx of a batch norm is compared with: its largest part before the means are taken out. With
 * few values a channel little of it remains, and the remainder is all rounding. */
static double norm_floor(const struct op_case *c, const struct op_io *io)
{
    const mr_tensor *t = &c->d.in;
    const size_t m = (size_t)c->n * t->h * t->w;
    double sum = 0;
    for (uint32_t ch = 0; ch < t->c; ch++) {
        double mean = 0, variance = 0;
        for (size_t i = 0; i < m; i++) mean += (double)io->x[i * t->c + ch] / (double)m;
        for (size_t i = 0; i < m; i++) variance += pow((double)io->x[i * t->c + ch] - mean, 2) / (double)m;
        sum += pow(c->d.batchnorm.no_scale ? 1 : (double)io->param[0][ch], 2) /
               (variance + (double)c->d.batchnorm.epsilon);
    }
    return 0.5 * sqrt(sum / t->c);
}

static void check_batchnorm(uint32_t dtype)
{
    static const uint32_t sides[][2] = {{1, 1}, {7, 5}, {13, 11}, {1, 7}};
    static const mr_activation acts[] = {MR_ACT_NONE, MR_ACT_RELU, MR_ACT_RELU, MR_ACT_SIGMOID};
    for (size_t s = 0; s < MRI_ARRAY_COUNT(sides); s++)
        for (size_t k = 0; k < 2 * MRI_ARRAY_COUNT(channels); k++) {
            struct op_case one = {.d = {.kind = MR_OP_BATCHNORM,
                                        .max_batch = MAX_BATCH,
                                        .training = true,
                                        .need_dx = k % 5 != 4,
                                        .batchnorm.momentum = 0.9f,
                                        .batchnorm.epsilon = 1e-3f,
                                        .activation = acts[(s + k) % 4],
                                        .batchnorm.residual = k % 2 == 1,
                                        .batchnorm.no_scale = k % 7 == 3},
                                  .n = batches[k % 3],
                                  .tolerance = tolerance_of(dtype, false)};
            one.d.in = one.in = lab_nhwc(sides[s][0], sides[s][1], channels[k / 2], dtype);
            for (int l = 0; l < 2; l++) {
                struct op_io io = op_inputs(&one, next_seed());
                one.dx_floor = norm_floor(&one, &io);
                one.note = "";
                op_compare(&one, &io);
                io = op_inputs(&one, next_seed());
                struct op_case still = one;
                still.d.training = io.training = false;
                still.note = " evaluation";
                io.dy = io.dy2 = NULL;
                op_compare(&still, &io);
                one.in = lab_own_layout(&mrt_device, &one.d.in);
                if (one.in.layout == one.d.in.layout || lab_settings()->quick) break;
            }
        }
}

/* ---- ends ---- */

static void check_loss(uint32_t dtype)
{
    static const uint32_t classes[] = {2, 3, 10, 64, 65, 1000};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(classes); k++)
        for (int form = 0; form < 8; form++)
            check((mr_op_desc){.kind = MR_OP_LOSS,
                               .training = true,
                               .need_dx = true,
                               .loss = {.factor = form % 2 ? 2.5f : 0,
                                        .smoothing = form / 2 % 2 ? 0.3f : 0,
                                        .class_weights = form / 4}},
                  1, 1, classes[k], dtype);
}

/* One logit of two classes. */
static void check_binary_loss(uint32_t dtype)
{
    for (int form = 0; form < 4; form++)
        check((mr_op_desc){.kind = MR_OP_LOSS,
                           .training = true,
                           .need_dx = true,
                           .loss = {.smoothing = form % 2 ? 0.3f : 0, .class_weights = form / 2}},
              1, 1, 1, dtype);
}

static void check_pair_loss(uint32_t dtype)
{
    static const uint32_t sides[][3] = {{1, 1, 1}, {1, 1, 300}, {7, 5, 3}, {4, 3, 17}};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(sides); k++)
        for (int kind = 0; kind < (int)MR_PAIR_COUNT; kind++)
            check(
                (mr_op_desc){
                    .kind = MR_OP_PAIR_LOSS,
                    .training = true,
                    .need_dx = true,
                    .pair_loss = {.kind = (mr_pair_loss)kind, .weight = k % 2 ? 0.5f : 0, .silent = k == 3}},
                sides[k][0], sides[k][1], sides[k][2], dtype);
}

/* Target numbers: hits are checked, and counted. */
static void check_targets(uint32_t dtype)
{
    static const mr_pair_loss kinds[] = {MR_PAIR_CROSS_ENTROPY, MR_PAIR_SQUARES, MR_PAIR_ABSOLUTE,
                                         MR_PAIR_HUBER};
    static const uint32_t sides[][3] = {{1, 1, 1}, {1, 1, 40}, {1, 1, 300}, {3, 2, 5}};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(sides); k++)
        for (size_t i = 0; i < MRI_ARRAY_COUNT(kinds); i++)
            check((mr_op_desc){.kind = MR_OP_PAIR_LOSS,
                               .training = true,
                               .need_dx = true,
                               .pair_loss = {.kind = kinds[i], .targets = true}},
                  sides[k][0], sides[k][1], sides[k][2], dtype);
}

static void check_input(uint32_t dtype)
{
    static const uint32_t sides[][2] = {{1, 1}, {7, 5}, {13, 64}, {3, 65}};
    for (size_t s = 0; s < MRI_ARRAY_COUNT(sides); s++)
        for (uint32_t c = 1; c <= 4; c++)
            for (int want = MR_WANT_ANY; want <= MR_WANT_NCHW; want++)
                for (int with = 0; with < 2; with++) {
                    struct op_case one = {.d = {.kind = MR_OP_INPUT,
                                                .max_batch = MAX_BATCH,
                                                .input.mean = {125.3f, 123, 113.9f, 99},
                                                .input.std = {63, 62.1f, 66.7f, 255},
                                                .input.out_dtype = dtype,
                                                .want = (mr_wanted_layout)want},
                                          .n = batches[(s + c) % 3],
                                          .tolerance = tolerance_of(dtype, false),
                                          .exact = dtype == MR_TENSOR_F32,
                                          .note = want == MR_WANT_NCHW   ? " as planes"
                                                  : want == MR_WANT_NHWC ? " as pixels"
                                                                         : ""};
                    one.d.in = one.in = lab_nhwc(sides[s][0], sides[s][1], c, MR_TENSOR_U8);
                    struct op_io io = op_inputs(&one, next_seed());
                    if (!with) io.affine = NULL, io.flip = NULL;
                    op_compare(&one, &io);
                }
}

static mr_tensor data_tensor(uint32_t h, uint32_t w, uint32_t c, uint32_t dtype)
{
    return (mr_tensor){h, w, c, dtype, MR_LAYOUT_NHWC, mr_tensor_element_bytes(dtype) * h * w * c};
}

static const uint32_t data_types[] = {MR_TENSOR_U8,   MR_TENSOR_I8,  MR_TENSOR_I16,
                                      MR_TENSOR_I32,  MR_TENSOR_I64, MR_TENSOR_F16,
                                      MR_TENSOR_BF16, MR_TENSOR_F32, MR_TENSOR_F64};
enum { WHOLE_TYPES = 5 };

static void check_field(uint32_t dtype)
{
    static const uint32_t sides[][3] = {{1, 1, 1}, {1, 1, 8000}, {7, 5, 3}, {4, 4, 16}};
    for (size_t t = 0; t < MRI_ARRAY_COUNT(data_types); t++)
        for (size_t s = 0; s < MRI_ARRAY_COUNT(sides); s++) {
            const bool wide = data_types[t] == MR_TENSOR_I64; /* into the range of a half */
            struct op_case one = {.d = {.kind = MR_OP_FIELD,
                                        .max_batch = MAX_BATCH,
                                        .field.mean = s % 2 ? 0.3f : 0,
                                        .field.std = wide    ? 1e15f
                                                     : s % 2 ? 0.7f
                                                             : 0,
                                        .field.out_dtype = dtype},
                                  .n = batches[(t + s) % 3],
                                  .tolerance = tolerance_of(dtype, false),
                                  .exact = dtype == MR_TENSOR_F32};
            one.d.in = one.in = data_tensor(sides[s][0], sides[s][1], sides[s][2], data_types[t]);
            if (data_types[t] == MR_TENSOR_I32) one.d.field.std = 1e6f;
            if (data_types[t] == MR_TENSOR_F16) one.d.field.std = 2; /* none beyond the largest half */
            const struct op_io io = op_inputs(&one, next_seed());
            op_compare(&one, &io);
        }
}

static void check_one_hot(uint32_t dtype)
{
    static const uint32_t lengths[] = {1, 7, 49}, classes[] = {1, 2, 8, 65, 128};
    for (size_t l = 0; l < MRI_ARRAY_COUNT(lengths); l++)
        for (size_t k = 0; k < MRI_ARRAY_COUNT(classes); k++) {
            struct op_case one = {.d = {.kind = MR_OP_ONE_HOT,
                                        .max_batch = MAX_BATCH,
                                        .one_hot.classes = classes[k],
                                        .one_hot.out_dtype = dtype},
                                  .n = batches[(l + k) % 3],
                                  .exact = true};
            one.d.in = one.in =
                data_tensor(1 + (uint32_t)k % 3, lengths[l], 1, data_types[(l + k) % WHOLE_TYPES]);
            const struct op_io io = op_inputs(&one, next_seed());
            op_compare(&one, &io);
        }
}

static void check_groupnorm(uint32_t dtype)
{
    static const struct {
        uint32_t h, w, c, groups;
        bool each_pixel;
    } cases[] = {{7, 5, 64, 8, false}, {3, 3, 6, 3, false}, {1, 1, 33, 1, false}, {5, 5, 16, 16, false},
                 {1, 7, 33, 1, true},  {4, 3, 24, 4, true}, {2, 2, 600, 1, true}, {13, 11, 4, 1, false}};
    for (size_t i = 0; i < MRI_ARRAY_COUNT(cases); i++)
        check((mr_op_desc){.kind = MR_OP_GROUPNORM,
                           .training = true,
                           .need_dx = i != 3,
                           .groupnorm = {.groups = cases[i].groups,
                                         .each_pixel = cases[i].each_pixel,
                                         .epsilon = 1e-3f}},
              cases[i].h, cases[i].w, cases[i].c, dtype);
}

static void check_upsample(uint32_t dtype)
{
    static const uint32_t sides[][3] = {{1, 1, 1}, {3, 5, 16}, {7, 4, 3}, {2, 2, 17}};
    for (size_t s = 0; s < MRI_ARRAY_COUNT(sides); s++)
        for (uint32_t factor = 1; factor <= 4; factor++)
            for (int bilinear = 0; bilinear < 2; bilinear++)
                check((mr_op_desc){.kind = MR_OP_UPSAMPLE,
                                   .training = true,
                                   .need_dx = true,
                                   .upsample = {.factor = factor, .bilinear = bilinear}},
                      sides[s][0], sides[s][1], sides[s][2], dtype);
}

static void check_embedding(uint32_t dtype)
{
    static const uint32_t cases[][3] = {{1, 1, 1}, {7, 5, 33}, {49, 128, 16}, {13, 3, 8}}; /* length, classes,
                                                                                              units */
    for (size_t i = 0; i < MRI_ARRAY_COUNT(cases); i++)
        for (int evaluation = 0; evaluation < 2; evaluation++) {
            struct op_case one = {.d = {.kind = MR_OP_EMBEDDING,
                                        .max_batch = MAX_BATCH,
                                        .training = !evaluation,
                                        .embedding = {cases[i][1], cases[i][2], dtype}},
                                  .n = batches[i % 3],
                                  .tolerance = tolerance_of(dtype, true),
                                  .note = evaluation ? " evaluation" : ""};
            one.d.in = one.in = data_tensor(1 + (uint32_t)i % 2, cases[i][0], 1, data_types[i % WHOLE_TYPES]);
            struct op_io io = op_inputs(&one, next_seed());
            if (evaluation) io.dy = io.dy2 = NULL;
            op_compare(&one, &io);
        }
}

static void check_recurrent(mr_op_kind kind, uint32_t dtype)
{
    static const struct {
        uint32_t steps, inputs, units;
        bool sequences, numbers;
    } cases[] = {{1, 1, 1, true, false},   {7, 5, 33, true, false}, {7, 33, 8, false, false},
                 {3, 64, 65, true, false}, {1, 3, 16, false, true}, {7, 65, 33, true, true},
                 {5, 128, 7, false, true}};
    for (size_t i = 0; i < MRI_ARRAY_COUNT(cases); i++)
        for (int evaluation = 0; evaluation < 2; evaluation++) {
            struct op_case one = {.d = {.kind = kind,
                                        .max_batch = MAX_BATCH,
                                        .training = !evaluation,
                                        .need_dx = !evaluation && !cases[i].numbers,
                                        .recurrent.units = cases[i].units,
                                        .recurrent.sequences = cases[i].sequences},
                                  .n = batches[i % 3],
                                  .tolerance = tolerance_of(dtype, true) * (dtype == MR_TENSOR_F32 ? 1 : 3),
                                  .y_floor = 0.1,
                                  .dx_floor = 0.1,
                                  .note = evaluation ? " evaluation" : ""};
            one.d.in = lab_nhwc(1, cases[i].steps, cases[i].inputs, dtype);
            if (cases[i].numbers) {
                one.d.in = (mr_tensor){
                    1, cases[i].steps, 1, MR_TENSOR_I32, MR_LAYOUT_NHWC, cases[i].steps * sizeof(int32_t)};
                one.d.recurrent.classes = cases[i].inputs;
                one.d.recurrent.out_dtype = dtype;
            }
            one.in = one.d.in;
            struct op_io io = op_inputs(&one, next_seed());
            if (evaluation) io.dy = io.dy2 = NULL;
            op_compare(&one, &io);
        }
}

static void check_gru(uint32_t dtype) { check_recurrent(MR_OP_GRU, dtype); }
static void check_lstm(uint32_t dtype) { check_recurrent(MR_OP_LSTM, dtype); }

/* Is it among the names of MRT_OPS, or MRT_TYPES? Without those all are. */
static bool wanted(const char *setting, const char *name)
{
    const char *list = getenv(setting);
    const size_t length = strlen(name);
    if (!list) return true;
    for (const char *at = list; (at = strstr(at, name)) != NULL; at += length)
        if ((at == list || at[-1] == ',') && (at[length] == ',' || !at[length])) return true;
    return false;
}

int main(void)
{
    static const struct {
        const char *name;
        void (*check)(uint32_t dtype);
    } groups[] = {
        {"input", check_input},
        {"one_hot", check_one_hot},
        {"field", check_field},
        {"dense", check_dense},
        {"pool2d", check_pool2d},
        {"add", check_add},
        {"batchnorm", check_batchnorm},
        {"activation", check_activation},
        {"dropout", check_dropout},
        {"loss", check_loss},
        {"loss of one logit", check_binary_loss},
        {"gru", check_gru},
        {"lstm", check_lstm},
        {"concat", check_concat},
        {"group norm", check_groupnorm},
        {"upsample", check_upsample},
        {"embedding", check_embedding},
        {"pad", check_pad},
        {"reshape", check_reshape},
        {"sample", check_sample},
        {"pair loss", check_pair_loss},
        {"targets", check_targets},
        {"scale", check_scale},
        {"lrn", check_lrn},
        {"softmax", check_softmax},
        {"conv2d", check_conv2d}, /* last: a GPU's library may compile a kernel for each */
        {"transposed convolution", check_transposed},
    };
    lab_open(&mrt_reference, "cpu", true);
    lab_open(&mrt_device, lab_settings()->devices, false);
    const mr_device_info *info = mr_device_info_of(mrt_device.dev);
    printf("%s (%s), %u device%s, seed %llu%s%s%s\n", info->name, info->hardware, mrt_device.count,
           mrt_device.count == 1 ? "" : "s", (unsigned long long)lab_settings()->seed,
           lab_settings()->tf32 ? ", TF32" : "", lab_settings()->deterministic ? ", deterministic" : "",
           lab_settings()->quick ? ", quick" : "");
    for (size_t g = 0; g < MRI_ARRAY_COUNT(groups); g++)
        for (size_t t = 0; t < MRI_ARRAY_COUNT(types) && wanted("MRT_OPS", groups[g].name); t++) {
            if (!wanted("MRT_TYPES", lab_type_name(types[t]))) continue;
            lab_group_begin(groups[g].name, types[t]);
            groups[g].check(types[t]);
            lab_group_end();
        }
    if (wanted("MRT_OPS", "flow")) flow_check_all();
    lab_close(&mrt_device);
    lab_close(&mrt_reference);
    return lab_report();
}
