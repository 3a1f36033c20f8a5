/* kernels: activations: all against the slow pass; where those with bends bend; the digits of the smooth
 * ones. */
#include "tests/kernels/op_check.h"

static void activations_are_right(void **state)
{
    (void)state;
    for (int k = MR_ACT_NONE; k < (int)MR_ACT_COUNT; k++)
        check_everywhere((mr_op_desc){.kind = MR_OP_ACTIVATION,
                                      .in = {7, 5, 3, MR_TENSOR_F32, 0, 0},
                                      .need_dx = true,
                                      .activation = (mr_activation)k});
}

/* As many elements as vectors have, and some more, on both sides of every bend. */
static void bends_are_where_they_should_be(void **state)
{
    (void)state;
    static const mr_activation bent[] = {MR_ACT_RELU, MR_ACT_LEAKY_RELU, MR_ACT_RELU6};
    static const float x[] = {-20, -6, -1e-3f, -0.0f, 0, 1e-3f, 5.5f, 6, 6.5f, 1e6f};
    enum { COUNT = 37 };
    for (int k = 0; k < 2 * (int)MRI_ARRAY_COUNT(bent); k++) {
        struct rig r;
        mr_error err = MR_ERROR_INIT;
        mr_op *op;
        const mr_activation kind = bent[k / 2];
        rig_open(&r, "cpu", k % 2);
        const mr_op_desc d = {.kind = MR_OP_ACTIVATION,
                              .in = rig_tensor(1, 1, COUNT, 0),
                              .max_batch = 1,
                              .training = true,
                              .need_dx = true,
                              .activation = kind};
        MRT_OK(mr_op_create(&op, r.dev, &d, &err), &err);
        float *in = rig_memory(&r, COUNT * 4), *y = rig_memory(&r, COUNT * 4),
              *dy = rig_memory(&r, COUNT * 4), *dx = rig_memory(&r, COUNT * 4);
        for (int i = 0; i < COUNT; i++) in[i] = x[i % (int)MRI_ARRAY_COUNT(x)], dy[i] = (float)(i + 1);
        const mr_op_args a = {.n = 1, .x = in, .y = y, .dy = dy, .dx = dx, .training = true};
        MRT_OK(mr_op_forward_async(op, r.s, &a), NULL);
        MRT_OK(mr_op_backward_async(op, r.s, &a), NULL);
        MRT_OK(mr_stream_sync(r.s, &err), &err);
        for (int i = 0; i < COUNT; i++) {
            const float below = kind == MR_ACT_LEAKY_RELU ? 0.1f : 0;
            const bool above = kind == MR_ACT_RELU6 && in[i] >= 6;
            MRT_TRUE(y[i] == (above ? 6 : in[i] > 0 ? in[i] : below * in[i]));
            MRT_TRUE(dx[i] == (above ? 0 : in[i] > 0 ? 1 : below) * (float)(i + 1));
        }
        mr_op_destroy(op);
        rig_close(&r);
    }
}

/* From far below to far above: within some units in the last place of the value, and of 1 for the slope.
 * Activations with a square in an exponent lose more the farther out. */
static void smooth_ones_keep_their_digits(void **state)
{
    (void)state;
    enum { COUNT = 4001 };
    for (int k = 0; k < 4; k++) {
        struct rig r;
        mr_error err = MR_ERROR_INIT;
        mr_op *op;
        const bool silu = k / 2 == 0;
        rig_open(&r, "cpu", k % 2);
        const mr_op_desc d = {.kind = MR_OP_ACTIVATION,
                              .in = rig_tensor(1, 1, COUNT, 0),
                              .max_batch = 1,
                              .training = true,
                              .need_dx = true,
                              .activation = silu ? MR_ACT_SILU : MR_ACT_GELU};
        MRT_OK(mr_op_create(&op, r.dev, &d, &err), &err);
        MRT_TRUE(!mr_op_info_of(op)->inplace);
        float *in = rig_memory(&r, COUNT * 4), *y = rig_memory(&r, COUNT * 4),
              *dy = rig_memory(&r, COUNT * 4), *dx = rig_memory(&r, COUNT * 4);
        for (int i = 0; i < COUNT; i++) in[i] = (float)(i - COUNT / 2) / 20, dy[i] = 1;
        in[0] = -1e30f, in[COUNT - 1] = 1e30f;
        mr_op_args a = {.n = 1, .x = in, .y = y, .dy = dy, .dx = dx, .training = true};
        MRT_OK(mr_op_forward_async(op, r.s, &a), NULL);
        MRT_OK(mr_op_backward_async(op, r.s, &a), NULL);
        MRT_OK(mr_stream_sync(r.s, &err), &err);
        for (int i = 0; i < COUNT; i++) {
            const double x = (double)in[i], s = silu ? 1 / (1 + exp(-x)) : erfc(-x / sqrt(2)) / 2,
                         slope = s + (x < -1e3 || x > 1e3 ? 0
                                      : silu              ? x * s * (1 - s)
                                                          : x * exp(-x * x / 2) / sqrt(2 * M_PI));
            const double off = fabs((double)y[i] - x * s), off_slope = fabs((double)dx[i] - slope);
            const double units = silu ? 2e-6 : 1e-6 * (2 + x * x);
            if (!(off <= units * fabs(x * s) + 1e-34 && off_slope <= 2e-6))
                fail_msg("%s at %g: %g, slope %g; expected %g, %g", silu ? "silu" : "gelu", x, (double)y[i],
                         (double)dx[i], x * s, slope);
        }
        a.x = NULL;
        MRT_EQ(mr_op_backward_async(op, r.s, &a), MR_EINVAL);
        mr_op_destroy(op);
        rig_close(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(activations_are_right),
        cmocka_unit_test(bends_are_where_they_should_be),
        cmocka_unit_test(smooth_ones_keep_their_digits),
    };
    return mrt_run(tests);
}
