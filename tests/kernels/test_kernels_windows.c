/* kernels: operations that look through a window: convolutions, turned and in groups, and pools; and dense
 * layers, whose window is the whole sample. */
#include "tests/kernels/op_check.h"

static void conv2d_is_right(void **state)
{
    (void)state;
    static const struct {
        uint32_t h, w, c, f, kh, kw, stride, pad;
        mr_activation act;
        bool dx;
    } cases[] = {
        {1, 1, 1, 1, 1, 1, 1, 0, MR_ACT_NONE, true},      {7, 5, 3, 4, 3, 3, 1, 1, MR_ACT_RELU, false},
        {7, 5, 3, 17, 3, 2, 2, 1, MR_ACT_TANH, true},     {6, 6, 16, 16, 3, 3, 1, 0, MR_ACT_RELU, true},
        {5, 4, 20, 24, 3, 3, 1, 1, MR_ACT_SIGMOID, true}, {9, 9, 32, 16, 5, 5, 2, 2, MR_ACT_SELU, true},
        {4, 4, 33, 5, 1, 1, 1, 0, MR_ACT_RELU, true},     {8, 8, 1, 32, 3, 3, 1, 0, MR_ACT_RELU, false},
        {13, 12, 3, 16, 7, 7, 2, 3, MR_ACT_NONE, true},   {7, 7, 16, 32, 1, 1, 2, 0, MR_ACT_NONE, true},
    };
    for (size_t i = 0; i < MRI_ARRAY_COUNT(cases); i++) {
        mr_op_desc d = conv2d(cases[i].h, cases[i].w, cases[i].c, cases[i].kh, cases[i].kw, cases[i].stride,
                              cases[i].pad, cases[i].f);
        d.activation = cases[i].act;
        d.need_dx = cases[i].dx;
        check_everywhere(d);
        d.conv2d.no_bias = true;
        if (i != 6 && !(MRT_SANITIZED && i % 2))
            check_everywhere(d); /* without bias one value stands too near to relu's corner for numeric
                                    gradients */
    }
}

static void transposed_conv2d_is_right(void **state)
{
    (void)state;
    static const struct {
        uint32_t h, w, c, f, kh, kw, stride, pad;
        mr_activation act;
        bool dx;
    } cases[] = {
        {1, 1, 1, 1, 1, 1, 1, 0, MR_ACT_NONE, true},      {1, 1, 5, 3, 3, 2, 2, 0, MR_ACT_NONE, true},
        {5, 4, 3, 17, 3, 2, 2, 1, MR_ACT_TANH, true},     {4, 4, 16, 16, 3, 3, 1, 1, MR_ACT_RELU, true},
        {3, 4, 20, 24, 3, 3, 2, 1, MR_ACT_SIGMOID, true}, {3, 2, 33, 5, 2, 2, 3, 0, MR_ACT_NONE, true},
        {4, 4, 32, 16, 5, 5, 2, 2, MR_ACT_SELU, false},
    };
    for (size_t i = 0; i < MRI_ARRAY_COUNT(cases); i++) {
        mr_op_desc d = conv2d(cases[i].h, cases[i].w, cases[i].c, cases[i].kh, cases[i].kw, cases[i].stride,
                              cases[i].pad, cases[i].f);
        d.kind = MR_OP_CONV2D_TRANSPOSED;
        d.activation = cases[i].act;
        d.need_dx = cases[i].dx;
        d.conv2d.no_bias = i % 2;
        check_everywhere(d);
    }
    mr_op_desc d = conv2d(4, 5, 3, 4, 3, 2, 0, 6);
    d.kind = MR_OP_CONV2D_TRANSPOSED;
    d.conv2d.window.pad_bottom = 1, d.conv2d.window.pad_left = 1;
    check_everywhere(d);
}

/* Two and three groups, and one for each channel, with one filter a channel and with several. */
static void groups_are_right(void **state)
{
    (void)state;
    static const struct {
        uint32_t h, w, c, f, groups, k, stride, pad;
        mr_activation act;
        bool dx;
    } cases[] = {
        {1, 1, 2, 2, 2, 1, 1, 0, MR_ACT_NONE, true},    {5, 4, 12, 18, 3, 3, 1, 1, MR_ACT_TANH, true},
        {6, 5, 32, 16, 2, 3, 2, 1, MR_ACT_NONE, true},  {4, 4, 48, 48, 3, 1, 1, 0, MR_ACT_NONE, false},
        {1, 1, 16, 16, 16, 3, 1, 1, MR_ACT_NONE, true}, {7, 5, 8, 8, 8, 3, 2, 1, MR_ACT_SELU, true},
        {6, 7, 13, 13, 13, 3, 1, 1, MR_ACT_NONE, true}, {7, 7, 24, 24, 24, 5, 2, 2, MR_ACT_RELU, false},
        {5, 6, 6, 18, 6, 3, 1, 1, MR_ACT_NONE, true},   {4, 3, 16, 32, 16, 3, 1, 1, MR_ACT_SIGMOID, true},
    };
    for (size_t i = 0; i < MRI_ARRAY_COUNT(cases); i++) {
        mr_op_desc d = conv2d(cases[i].h, cases[i].w, cases[i].c, cases[i].k, cases[i].k, cases[i].stride,
                              cases[i].pad, cases[i].f);
        d.conv2d.groups = cases[i].groups;
        d.conv2d.no_bias = i % 3 == 1;
        d.activation = cases[i].act;
        d.need_dx = cases[i].dx;
        check_everywhere(d);
    }
    mr_op_desc d = conv2d(6, 7, 11, 4, 3, 2, 0, 11);
    d.conv2d.groups = 11;
    d.conv2d.window.pad_bottom = 1, d.conv2d.window.pad_left = 2;
    check_everywhere(d);
}

static void uneven_padding_is_right(void **state)
{
    (void)state;
    mr_op_desc d = conv2d(6, 7, 3, 4, 3, 2, 0, 6);
    d.conv2d.window.pad_bottom = 1, d.conv2d.window.pad_left = 2;
    check_everywhere(d);
    d = pool2d(6, 7, 5, 3, 2, 0);
    d.pool2d.window.pad_bottom = 1, d.pool2d.window.pad_left = 2;
    check_everywhere(d);
    d.pool2d.average = true;
    check_everywhere(d);
}

static void pool2d_is_right(void **state)
{
    (void)state;
    static const struct {
        uint32_t h, w, c, k, stride, pad;
    } cases[] = {
        {1, 1, 1, 1, 1, 0}, {7, 5, 3, 2, 2, 0},  {8, 8, 32, 2, 2, 0},  {7, 7, 17, 3, 2, 1},
        {6, 4, 8, 3, 1, 1}, {7, 7, 16, 7, 7, 0}, {12, 9, 16, 3, 2, 1},
    };
    for (size_t i = 0; i < MRI_ARRAY_COUNT(cases); i++) {
        mr_op_desc d = pool2d(cases[i].h, cases[i].w, cases[i].c, cases[i].k, cases[i].stride, cases[i].pad);
        check_everywhere(d);
        d.pool2d.average = true;
        check_everywhere(d);
    }
}

/* Of equal values the first in row order takes the whole gradient. */
static void pool_ties_go_to_the_first(void **state)
{
    (void)state;
    for (int reference = 0; reference < 2; reference++)
        for (size_t l = 0; l < (reference ? 1 : MRI_ARRAY_COUNT(all_layouts)); l++) {
            struct rig r;
            mr_error err = MR_ERROR_INIT;
            mr_op *op;
            rig_open(&r, "cpu", reference);
            mr_op_desc d = pool2d(4, 4, 16, 2, 2, 0);
            d.in = rig_tensor(4, 4, 16, all_layouts[l]);
            d.training = true;
            d.max_batch = 1;
            MRT_OK(mr_op_create(&op, r.dev, &d, &err), &err);
            const mr_op_info *info = mr_op_info_of(op);
            mr_op_args a = {.n = 1,
                            .training = true,
                            .x = rig_memory(&r, d.in.sample_bytes),
                            .y = rig_memory(&r, info->out.sample_bytes),
                            .dy = rig_memory(&r, info->out.sample_bytes),
                            .dx = rig_memory(&r, d.in.sample_bytes),
                            .saved = rig_memory(&r, info->saved_bytes),
                            .scratch = rig_memory(&r, info->scratch_bytes)};
            for (int i = 0; i < 64; i++) ((float *)a.dy)[i] = 1;
            MRT_OK(mr_op_forward_async(op, r.s, &a), NULL);
            MRT_OK(mr_op_backward_async(op, r.s, &a), NULL);
            MRT_OK(mr_stream_sync(r.s, &err), &err);
            for (uint32_t y = 0; y < 4; y++)
                for (uint32_t x = 0; x < 4; x++)
                    MRT_EQ(((float *)a.dx)[mri_tensor_index(&d.in, y * 4 + x, 3)], y % 2 == 0 && x % 2 == 0);
            mr_op_destroy(op);
            rig_close(&r);
        }
}

static void dense_is_right(void **state)
{
    (void)state;
    static const struct {
        uint32_t h, w, c, units;
        mr_activation act;
        bool dx;
    } cases[] = {
        {1, 1, 1, 1, MR_ACT_NONE, true},    {7, 5, 3, 4, MR_ACT_RELU, true},
        {1, 1, 100, 10, MR_ACT_NONE, true}, {3, 3, 20, 33, MR_ACT_TANH, true},
        {2, 3, 16, 64, MR_ACT_RELU, false}, {1, 1, 37, 130, MR_ACT_SIGMOID, true},
    };
    for (size_t i = 0; i < 2 * MRI_ARRAY_COUNT(cases); i++) {
        const size_t k = i / 2;
        check_everywhere((mr_op_desc){.kind = MR_OP_DENSE,
                                      .in = {cases[k].h, cases[k].w, cases[k].c, MR_TENSOR_F32, 0, 0},
                                      .need_dx = cases[k].dx,
                                      .activation = cases[k].act,
                                      .dense.units = cases[k].units,
                                      .dense.no_bias = i % 2 == 1});
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conv2d_is_right),  cmocka_unit_test(transposed_conv2d_is_right),
        cmocka_unit_test(groups_are_right), cmocka_unit_test(uneven_padding_is_right),
        cmocka_unit_test(pool2d_is_right),  cmocka_unit_test(pool_ties_go_to_the_first),
        cmocka_unit_test(dense_is_right),
    };
    return mrt_run(tests);
}
