/* kernels: operations that cannot be made and calls that cannot be run: each is refused, and says why;
 * allocations that fail are reported. */
#include "tests/kernels/op_check.h"

static void refuse(mr_op_desc d, int code, const char *part)
{
    struct rig r;
    mr_error err = MR_ERROR_INIT;
    mr_op *op = (mr_op *)&err;
    rig_open(&r, "cpu", false);
    if (d.max_batch == 0) d.max_batch = 1;
    if (d.in.sample_bytes == 0)
        d.in.sample_bytes = (size_t)d.in.h * d.in.w * d.in.c * (d.in.dtype == MR_TENSOR_U8 ? 1 : 4);
    MRT_EQ(mr_op_create(&op, r.dev, &d, &err), code);
    MRT_TRUE(op == NULL);
    MRT_HAS(err.text, part);
    rig_close(&r);
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    const mr_tensor f = {4, 4, 3, MR_TENSOR_F32, 0, 0}, u8 = {4, 4, 3, MR_TENSOR_U8, 0, 0};
    refuse(conv2d(4, 4, 3, 5, 5, 1, 0, 1), MR_EINVAL, "does not fit");
    refuse(conv2d(4, 4, 3, 3, 3, 1, 3, 1), MR_EINVAL, "padding must be smaller");
    refuse(conv2d(4, 4, 3, 3, 3, 0, 0, 1), MR_EINVAL, "stride");
    refuse(conv2d(4, 4, 3, 3, 3, 1, 0, 0), MR_EINVAL, "filters");
    refuse(conv2d(4, 4, 1 << 20, 3, 3, 1, 0, 1 << 20), MR_EINVAL, "too large");
    mr_op_desc turned = conv2d(1, 1, 3, 3, 3, 1, 2, 1); /* its whole output is padding */
    turned.kind = MR_OP_CONV2D_TRANSPOSED;
    refuse(turned, MR_EINVAL, "makes no output");
    turned.conv2d.window.pad_top = 3;
    refuse(turned, MR_EINVAL, "padding must be smaller");
    turned = conv2d(4, 4, 3, 3, 3, 1, 0, 0);
    turned.kind = MR_OP_CONV2D_TRANSPOSED;
    refuse(turned, MR_EINVAL, "filters");
    turned.conv2d.filters = 3, turned.conv2d.groups = 3;
    refuse(turned, MR_EINVAL, "no groups");
    refuse((mr_op_desc){.kind = MR_OP_RESHAPE, .in = f, .reshape = {4, 4, 4}}, MR_EINVAL,
           "other than the 48");
    refuse((mr_op_desc){.kind = MR_OP_RESHAPE, .in = f, .reshape = {0, 4, 4}}, MR_EINVAL, "rows");
    refuse((mr_op_desc){.kind = MR_OP_SAMPLE, .in = f, .in2 = u8}, MR_EINVAL, "must be equal");
    refuse((mr_op_desc){.kind = MR_OP_SAMPLE, .in = f, .in2 = f, .sample.factor = -1}, MR_EINVAL, "factor");
    refuse((mr_op_desc){.kind = MR_OP_PAIR_LOSS, .in = f, .in2 = u8}, MR_EINVAL, "must be equal");
    refuse((mr_op_desc){.kind = MR_OP_GROUPNORM, .in = f, .groupnorm = {.groups = 1}}, MR_EINVAL,
           "epsilon must be above 0");
    refuse((mr_op_desc){.kind = MR_OP_GROUPNORM, .in = f, .groupnorm = {.groups = 7, .epsilon = 1}},
           MR_EINVAL, "expected a divisor");
    refuse((mr_op_desc){.kind = MR_OP_UPSAMPLE, .in = f}, MR_EINVAL, "factor 0");
    refuse((mr_op_desc){.kind = MR_OP_EMBEDDING, .in = f, .embedding = {2, 2, 0}}, MR_EINVAL,
           "whole numbers");
    refuse((mr_op_desc){.kind = MR_OP_PAIR_LOSS, .in = f, .in2 = f, .pair_loss.weight = NAN}, MR_EINVAL,
           "weight");
    refuse(
        (mr_op_desc){
            .kind = MR_OP_PAIR_LOSS, .in = f, .in2 = f, .pair_loss.kind = (mr_pair_loss)MR_PAIR_COUNT},
        MR_EINVAL, "unknown loss");
    refuse((mr_op_desc){.kind = MR_OP_LOSS, .in = {1, 1, 3, MR_TENSOR_F32, 0, 0}, .loss.weight = INFINITY},
           MR_EINVAL, "weight");
    mr_op_desc grouped = conv2d(4, 4, 6, 3, 3, 1, 0, 4);
    grouped.conv2d.groups = 4;
    refuse(grouped, MR_EINVAL, "4 groups must divide the 6 channels and the 4 filters");
    grouped.conv2d.groups = 3;
    refuse(grouped, MR_EINVAL, "3 groups must divide the 6 channels and the 4 filters");
    refuse((mr_op_desc){.kind = (mr_op_kind)42, .in = f}, MR_EINVAL, "unknown operation");
    refuse((mr_op_desc){.kind = MR_OP_DENSE, .in = u8, .dense.units = 1}, MR_EINVAL, "f32");
    refuse((mr_op_desc){.kind = MR_OP_DENSE, .in = f}, MR_EINVAL, "units");
    refuse((mr_op_desc){.kind = MR_OP_DENSE, .in = {0, 4, 3, MR_TENSOR_F32, 0, 0}, .dense.units = 1},
           MR_EINVAL, "every side");
    refuse((mr_op_desc){.kind = MR_OP_DENSE, .in = {4, 4, 3, MR_TENSOR_F32, 9, 0}, .dense.units = 1},
           MR_EINVAL, "layout 9");
    refuse((mr_op_desc){.kind = MR_OP_DENSE, .in = {4, 4, 3, MR_TENSOR_F32, 0, 7}, .dense.units = 1},
           MR_EINVAL, "7 bytes");
    refuse((mr_op_desc){.kind = MR_OP_DENSE, .in = f, .dense.units = 1, .max_batch = UINT32_MAX}, MR_EINVAL,
           "max_batch");
    refuse((mr_op_desc){.kind = MR_OP_DROPOUT, .in = f, .dropout.rate = 1}, MR_EINVAL, "rate");
    refuse((mr_op_desc){.kind = MR_OP_DROPOUT, .in = f, .dropout.rate = NAN}, MR_EINVAL, "rate");
    refuse((mr_op_desc){.kind = MR_OP_ACTIVATION, .in = f, .activation = (mr_activation)MR_ACT_COUNT},
           MR_EINVAL, "activation");
    static const mr_op_kind fusing[] = {MR_OP_CONV2D, MR_OP_DENSE, MR_OP_BATCHNORM, MR_OP_ADD};
    for (size_t i = 0; i < 2 * MRI_ARRAY_COUNT(fusing); i++)
        refuse(
            (mr_op_desc){
                .kind = fusing[i / 2], .in = f, .in2 = f, .activation = i % 2 ? MR_ACT_SILU : MR_ACT_GELU},
            MR_EUNSUPPORTED, "put an activation after it");
    refuse((mr_op_desc){.kind = MR_OP_BATCHNORM, .in = f}, MR_EINVAL, "epsilon");
    refuse((mr_op_desc){.kind = MR_OP_BATCHNORM, .in = f, .batchnorm.epsilon = 1, .batchnorm.momentum = 2},
           MR_EINVAL, "momentum");
    refuse((mr_op_desc){.kind = MR_OP_LRN, .in = f, .lrn = {65, 1, 1, 1}}, MR_EINVAL, "radius 65");
    refuse((mr_op_desc){.kind = MR_OP_LRN, .in = f, .lrn = {2, 0, 1, 1}}, MR_EINVAL, "bias above 0");
    refuse((mr_op_desc){.kind = MR_OP_LRN, .in = f, .lrn = {2, 1, -1, 1}}, MR_EINVAL, "alpha -1");
    refuse((mr_op_desc){.kind = MR_OP_LRN, .in = f, .lrn = {2, 1, 1, INFINITY}}, MR_EINVAL, "beta inf");
    refuse((mr_op_desc){.kind = MR_OP_LOSS, .in = f}, MR_EINVAL, "vector");
    refuse((mr_op_desc){.kind = MR_OP_INPUT, .in = f}, MR_EINVAL, "uint8");
    refuse((mr_op_desc){.kind = MR_OP_INPUT, .in = u8}, MR_EINVAL, "std");
    refuse((mr_op_desc){.kind = MR_OP_INPUT, .in = {4, 4, 5, MR_TENSOR_U8, 0, 0}}, MR_EINVAL, "4 channels");
    refuse(pool2d(1000, 1000, 1, 300, 1, 0), MR_EUNSUPPORTED, "65536");
    const mr_op_desc pixels = {
        .kind = MR_OP_INPUT, .in = {4, 4, 3, MR_TENSOR_U8, 0, 48}, .input.std = {1, 1, 1}};
    mr_op_desc d = pixels;
    d.input.out_dtype = MR_TENSOR_U8;
    refuse(d, MR_EINVAL, "out_dtype");
    d = pixels, d.want = (mr_wanted_layout)7;
    refuse(d, MR_EINVAL, "wanted layout");
}

static void half_precision_is_refused(void **state)
{
    (void)state;
    for (uint32_t dtype = MR_TENSOR_BF16; dtype <= MR_TENSOR_F16; dtype++) {
        const mr_tensor t = {4, 4, 3, dtype, 0, 96};
        refuse((mr_op_desc){.kind = MR_OP_DENSE, .in = t, .dense.units = 1}, MR_EUNSUPPORTED,
               "bf16 and f16 are offered on cuda devices");
        refuse((mr_op_desc){.kind = MR_OP_ADD, .in = t, .in2 = t}, MR_EUNSUPPORTED, "cpu:0 computes in f32");
        refuse((mr_op_desc){.kind = MR_OP_INPUT,
                            .in = {4, 4, 3, MR_TENSOR_U8, 0, 48},
                            .input.std = {1, 1, 1},
                            .input.out_dtype = dtype},
               MR_EUNSUPPORTED, "cuda devices");
    }
    MRT_EQ(mr_tensor_element_bytes(MR_TENSOR_U8), 1);
    MRT_EQ(mr_tensor_element_bytes(MR_TENSOR_BF16), 2);
    MRT_EQ(mr_tensor_element_bytes(MR_TENSOR_F16), 2);
    MRT_EQ(mr_tensor_element_bytes(MR_TENSOR_F32), 4);
    MRT_EQ(mr_tensor_element_bytes(0), 0);
}

/* Every field of the second input counts. */
static void second_inputs_must_fit(void **state)
{
    (void)state;
    const mr_tensor t = rig_tensor(4, 3, 8, 0);
    for (int i = 0; i < 7; i++) {
        mr_op_desc d = {.kind = i % 2 ? MR_OP_ADD : MR_OP_BATCHNORM,
                        .in = t,
                        .in2 = t,
                        .batchnorm = {.residual = true, .epsilon = 1}};
        uint32_t *const fields[] = {&d.in2.h, &d.in2.w, &d.in2.c, &d.in2.dtype, &d.in2.layout};
        if (i < 5) ++*fields[i];
        else if (i == 5) d.in2.sample_bytes += 4;
        else d.in2 = (mr_tensor){0};
        refuse(d, MR_EINVAL, "they must be equal");
    }
}

/* Of a concatenation all but the channels. */
static void concatenations_must_fit(void **state)
{
    (void)state;
    const mr_tensor t = rig_tensor(4, 3, 8, 0);
    for (int i = 0; i < 4; i++) {
        mr_op_desc d = {.kind = MR_OP_CONCAT, .in = t, .in2 = t};
        uint32_t *const fields[] = {&d.in2.h, &d.in2.w, &d.in2.dtype, &d.in2.layout};
        ++*fields[i];
        refuse(d, MR_EINVAL, "pixels, type and layout of the first");
    }
    mr_op_desc d = {.kind = MR_OP_CONCAT, .in = t, .in2 = t};
    d.in2.c = 0;
    refuse(d, MR_EINVAL, "channels of the second input");
    d.in2 = t, d.in2.sample_bytes += 4;
    refuse(d, MR_EINVAL, "not one this device makes");
    refuse((mr_op_desc){.kind = MR_OP_PAD, .in = t, .pad = {1u << 30, 0}}, MR_EINVAL, "on either side");
}

static void factors_must_fit(void **state)
{
    (void)state;
    const mr_tensor t = rig_tensor(4, 3, 8, 0), factors = rig_tensor(1, 1, 8, 0);
    for (int i = 0; i < 4; i++) {
        mr_op_desc d = {.kind = MR_OP_SCALE, .in = t, .in2 = factors};
        uint32_t *const fields[] = {&d.in2.h, &d.in2.w, &d.in2.c, &d.in2.dtype};
        ++*fields[i];
        refuse(d, MR_EINVAL, "must be 1 x 1 x 8");
    }
    mr_op_desc d = {.kind = MR_OP_SCALE, .in = t, .in2 = factors};
    d.in2.sample_bytes += 4;
    refuse(d, MR_EINVAL, "not one this device makes");
}

static void calls_are_checked(void **state)
{
    (void)state;
    struct rig r;
    mr_error err = MR_ERROR_INIT;
    mr_op *op;
    float w[4] = {0};
    rig_open(&r, "cpu", false);
    mr_op_desc d = {
        .kind = MR_OP_DENSE, .in = {1, 1, 2, MR_TENSOR_F32, 0, 8}, .max_batch = 2, .dense.units = 2};
    MRT_OK(mr_op_create(&op, r.dev, &d, &err), &err);
    mr_op_args a = {.n = 3, .x = w, .y = w, .param = {w, w}};
    MRT_EQ(mr_op_forward_async(op, r.s, &a), MR_EINVAL); /* more than max_batch */
    a.n = 1;
    a.param[1] = NULL;
    MRT_EQ(mr_op_forward_async(op, r.s, &a), MR_EINVAL);
    a.param[1] = w;
    MRT_EQ(mr_op_backward_async(op, r.s, &a), MR_EINVAL); /* not created for training */
    MRT_EQ(mr_op_param_import(op, false, 2, w, w, &err), MR_EINVAL);
    MRT_EQ(mr_op_param_import(op, true, 0, w, w, &err), MR_EINVAL);
    mr_op_destroy(op);
    mr_op_destroy(NULL);

    d = (mr_op_desc){.kind = MR_OP_ADD,
                     .in = {1, 1, 2, MR_TENSOR_F32, 0, 8},
                     .in2 = {1, 1, 2, MR_TENSOR_F32, 0, 8},
                     .max_batch = 1,
                     .training = true,
                     .need_dx = true};
    MRT_OK(mr_op_create(&op, r.dev, &d, &err), &err);
    a = (mr_op_args){.n = 1, .x = w, .y = w + 2};
    MRT_EQ(mr_op_forward_async(op, r.s, &a), MR_EINVAL); /* no second input */
    a.x2 = w;
    MRT_OK(mr_op_forward_async(op, r.s, &a), NULL);
    MRT_EQ(mr_op_backward_async(op, r.s, &a), MR_EINVAL); /* no gradient */
    a.dy = w;                                             /* dx may be missing: dy is the gradient to both */
    MRT_OK(mr_op_backward_async(op, r.s, &a), NULL);
    MRT_OK(mr_stream_sync(r.s, &err), &err);
    mr_op_destroy(op);
    rig_close(&r);
}

/* Of any kind except data operations. */
static mr_op_desc smallest(mr_op_kind kind)
{
    const bool conv = kind == MR_OP_CONV2D || kind == MR_OP_CONV2D_TRANSPOSED;
    mr_op_desc d = conv ? conv2d(1, 1, 8, 1, 1, 1, 0, 4) : pool2d(1, 1, 8, 1, 1, 0);
    if (kind == MR_OP_DENSE) d.dense = (mr_dense_desc){.units = 4};
    if (kind == MR_OP_DROPOUT) d.dropout = (mr_dropout_desc){.rate = 0.5f};
    if (kind == MR_OP_BATCHNORM) d.batchnorm = (mr_batchnorm_desc){.epsilon = 1};
    if (kind == MR_OP_RESHAPE) d.reshape = (mr_reshape_desc){2, 2, 2};
    if (kind == MR_OP_SAMPLE) d.sample = (mr_sample_desc){0};
    if (kind == MR_OP_PAIR_LOSS) d.pair_loss = (mr_pair_loss_desc){0};
    if (kind == MR_OP_LOSS) d.loss = (mr_loss_desc){0};
    if (kind == MR_OP_GROUPNORM) d.groupnorm = (mr_groupnorm_desc){.epsilon = 1};
    if (kind == MR_OP_UPSAMPLE) d.upsample = (mr_upsample_desc){.factor = 2};
    if (kind == MR_OP_SOFTMAX) d.softmax = (mr_softmax_desc){.log = true};
    if (kind == MR_OP_LRN) d.lrn = (mr_lrn_desc){2, 1, 1, 0.75f};
    if (kind == MR_OP_GRU || kind == MR_OP_LSTM) d.recurrent = (mr_recurrent_desc){.units = 2};
    d.kind = kind;
    d.in.sample_bytes = 32;
    d.in2 = d.in; /* 1 x 1 x 8: factors, too */
    d.max_batch = 2;
    d.training = true;
    return d;
}

static void failed_allocations_are_reported(void **state)
{
    (void)state;
    for (int kind = MR_OP_CONV2D; kind < MR_OP_KIND_COUNT; kind++)
        for (int n = 0; kind != MR_OP_ONE_HOT && kind != MR_OP_FIELD && kind != MR_OP_EMBEDDING; n++) {
            struct rig r;
            mr_error err = MR_ERROR_INIT;
            mr_op *op = (mr_op *)&err;
            mr_op_desc d = smallest((mr_op_kind)kind);
            rig_open(&r, "cpu", false);
            mrt_fail_alloc_at(n);
            const int rc = mr_op_create(&op, r.dev, &d, &err);
            mrt_fail_alloc_at(-1);
            mr_op_destroy(rc ? NULL : op);
            rig_close(&r);
            if (rc == MR_OK) break;
            MRT_EQ(rc, MR_ENOMEM);
            MRT_TRUE(op == NULL);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(half_precision_is_refused),
        cmocka_unit_test(second_inputs_must_fit),
        cmocka_unit_test(concatenations_must_fit),
        cmocka_unit_test(factors_must_fit),
        cmocka_unit_test(calls_are_checked),
        cmocka_unit_test(failed_allocations_are_reported),
    };
    return mrt_run(tests);
}
