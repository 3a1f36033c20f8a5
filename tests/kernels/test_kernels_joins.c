/* kernels: operations that join two inputs: sums, concatenations, factors of channels. */
#include "tests/kernels/op_check.h"

static void additions_are_right(void **state)
{
    (void)state;
    static const uint32_t channels[MR_ACT_COUNT] = {1, 3, 17, 16, 5, 19, 33};
    for (int k = MR_ACT_NONE; k < (int)MR_ACT_COUNT && !mr_activation_needs_x((mr_activation)k); k++)
        check_everywhere((mr_op_desc){.kind = MR_OP_ADD,
                                      .in = {4, 3, channels[k], MR_TENSOR_F32, 0, 0},
                                      .need_dx = true,
                                      .activation = (mr_activation)k});
}

/* Both, one, or the other end with a block of channels; one of them is smaller than a block. */
static void concatenations_are_right(void **state)
{
    (void)state;
    static const uint32_t channels[][2] = {{1, 1}, {3, 17}, {16, 16}, {32, 5}, {5, 32}, {12, 28}, {8, 24}};
    for (size_t k = 0; k < 2 * MRI_ARRAY_COUNT(channels); k++)
        check_everywhere((mr_op_desc){.kind = MR_OP_CONCAT,
                                      .in = {4, 3, channels[k / 2][0], MR_TENSOR_F32, 0, 0},
                                      .in2 = {.c = channels[k / 2][1]},
                                      .need_dx = k % 2});
}

/* The factors in a layout of their own; more pixels than are added up at a time, and pieces of wide rows. */
static void factors_are_right(void **state)
{
    (void)state;
    static const uint32_t shapes[][3] = {{1, 1, 1},  {1, 1, 19}, {2, 3, 8},  {3, 5, 13},
                                         {9, 11, 3}, {4, 3, 70}, {13, 7, 16}};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(shapes); k++)
        check_everywhere((mr_op_desc){.kind = MR_OP_SCALE,
                                      .in = {shapes[k][0], shapes[k][1], shapes[k][2], MR_TENSOR_F32, 0, 0},
                                      .need_dx = k % 3 != 1});
}

/* A sample's factors get the same bits in any batch and with any number of threads. */
static void factor_gradients_know_no_batch(void **state)
{
    (void)state;
    enum { N = 5, H = 23, W = 29, C = 72 };
    for (size_t l = 0; l < MRI_ARRAY_COUNT(all_layouts); l++) {
        struct rig r;
        mr_error err = MR_ERROR_INIT;
        mr_op *op;
        rig_open(&r, "cpu", false);
        const mr_op_desc d = {.kind = MR_OP_SCALE,
                              .in = rig_tensor(H, W, C, all_layouts[l]),
                              .in2 = rig_tensor(1, 1, C, all_layouts[l]),
                              .max_batch = N,
                              .training = true,
                              .need_dx = true};
        const size_t floats = mri_tensor_floats(&d.in), factors = mri_tensor_floats(&d.in2);
        MRT_OK(mr_op_create(&op, r.dev, &d, &err), &err);
        float *x = rig_memory(&r, d.in.sample_bytes * N), *dy = rig_memory(&r, d.in.sample_bytes * N),
              *dx = rig_memory(&r, d.in.sample_bytes * N), *x2 = rig_memory(&r, d.in2.sample_bytes * N),
              *dx2[2] = {rig_memory(&r, d.in2.sample_bytes * N), rig_memory(&r, d.in2.sample_bytes * N)};
        rig_noise(x, floats * N, 1), rig_noise(dy, floats * N, 2), rig_noise(x2, factors * N, 3);
        mr_op_args a = {.n = N, .x = x, .x2 = x2, .dy = dy, .dx = dx, .dx2 = dx2[0], .training = true};
        MRT_OK(mr_op_backward_async(op, r.s, &a), NULL);
        for (uint32_t i = 0; i < N; i++) {
            a = (mr_op_args){.n = 1,
                             .x = x + i * floats,
                             .x2 = x2 + i * factors,
                             .dy = dy + i * floats,
                             .dx = dx + i * floats,
                             .dx2 = dx2[1] + i * factors,
                             .training = true};
            MRT_OK(mr_op_backward_async(op, r.s, &a), NULL);
        }
        MRT_OK(mr_stream_sync(r.s, &err), &err);
        assert_memory_equal(dx2[0], dx2[1], factors * N * sizeof(float));
        a.x2 = NULL;
        MRT_EQ(mr_op_backward_async(op, r.s, &a), MR_EINVAL);
        mr_op_destroy(op);
        rig_close(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(additions_are_right),
        cmocka_unit_test(concatenations_are_right),
        cmocka_unit_test(factors_are_right),
        cmocka_unit_test(factor_gradients_know_no_batch),
    };
    return mrt_run(tests);
}
