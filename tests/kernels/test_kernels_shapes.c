/* kernels: operations that give a sample another shape: reshapes, channels of zeros, larger pictures. */
#include "tests/kernels/op_check.h"

static void reshapes_are_right(void **state)
{
    (void)state;
    static const uint32_t shapes[][2][3] = {
        {{1, 1, 24}, {2, 3, 4}}, {{3, 5, 4}, {1, 1, 60}}, {{2, 3, 4}, {3, 4, 2}}};
    for (size_t i = 0; i < 2 * MRI_ARRAY_COUNT(shapes); i++) {
        const uint32_t *from = shapes[i / 2][0], *to = shapes[i / 2][1];
        check_everywhere((mr_op_desc){.kind = MR_OP_RESHAPE,
                                      .in = {from[0], from[1], from[2], MR_TENSOR_F32, 0, 0},
                                      .need_dx = i % 2 == 0,
                                      .reshape = {to[0], to[1], to[2]}});
    }
}

static void channels_of_zeros_are_right(void **state)
{
    (void)state;
    static const uint32_t channels[][3] = {{1, 0, 0},    {16, 8, 8}, {3, 2, 0},
                                           {32, 16, 16}, {17, 0, 5}, {8, 24, 0}};
    for (size_t k = 0; k < 2 * MRI_ARRAY_COUNT(channels); k++)
        check_everywhere((mr_op_desc){.kind = MR_OP_PAD,
                                      .in = {3, 5, channels[k / 2][0], MR_TENSOR_F32, 0, 0},
                                      .need_dx = k % 2,
                                      .pad = {.before = channels[k / 2][1], .behind = channels[k / 2][2]}});
}

static void larger_pictures_are_right(void **state)
{
    (void)state;
    static const uint32_t shapes[][3] = {{1, 1, 3}, {2, 3, 8}, {3, 2, 17}};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(shapes); k++)
        for (uint32_t factor = 1; factor <= 4; factor++)
            for (int bilinear = 0; bilinear < 2; bilinear++)
                check_everywhere(
                    (mr_op_desc){.kind = MR_OP_UPSAMPLE,
                                 .in = {shapes[k][0], shapes[k][1], shapes[k][2], MR_TENSOR_F32, 0, 0},
                                 .need_dx = true,
                                 .upsample = {.factor = factor, .bilinear = bilinear}});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reshapes_are_right),
        cmocka_unit_test(channels_of_zeros_are_right),
        cmocka_unit_test(larger_pictures_are_right),
    };
    return mrt_run(tests);
}
