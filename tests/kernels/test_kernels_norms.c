/* kernels: operations that divide a value by a statistic of its neighbours: batch norms, group norms,
 * responses of neighbouring channels, softmaxes. */
#include "tests/kernels/op_check.h"
#include "tests/kernels/slow_pass.h"

static void batchnorm_is_right(void **state)
{
    (void)state;
    static const uint32_t channels[] = {1, 3, 17, 32};
    static const mr_activation acts[] = {MR_ACT_NONE, MR_ACT_RELU, MR_ACT_SIGMOID, MR_ACT_RELU};
    for (int k = 0; k < 8; k++)
        check_everywhere((mr_op_desc){.kind = MR_OP_BATCHNORM,
                                      .in = {5, 3, channels[k % 4], MR_TENSOR_F32, 0, 0},
                                      .need_dx = k % 4 != 1,
                                      .activation = acts[k % 4],
                                      .batchnorm.momentum = 0.9f,
                                      .batchnorm.epsilon = 1e-3f,
                                      .batchnorm.residual = k >= 4,
                                      .batchnorm.no_scale = k % 3 == 2});
}

/* Sums and values of a batch norm with residual and relu against a direct computation; dx by its formula. */
static void check_large_batchnorm(mr_tensor t, uint32_t layout)
{
    enum { N = 2 };
    struct rig r;
    mr_error err = MR_ERROR_INIT;
    mr_op *op;
    rig_open(&r, "cpu", false);
    mr_op_desc d = {.kind = MR_OP_BATCHNORM,
                    .max_batch = N,
                    .training = true,
                    .need_dx = true,
                    .activation = MR_ACT_RELU,
                    .batchnorm.residual = true,
                    .batchnorm.momentum = 0.9f,
                    .batchnorm.epsilon = 1e-3f};
    d.in = d.in2 = rig_tensor(t.h, t.w, t.c, layout);
    MRT_OK(mr_op_create(&op, r.dev, &d, &err), &err);
    const mr_op_info *info = mr_op_info_of(op);
    const size_t count = (size_t)N * pixels_of(&t) * t.c, m = (size_t)N * pixels_of(&t),
                 bytes = d.in.sample_bytes * N;
    struct host_copy h = {.x = floats(count, 3),
                          .x2 = floats(count, 7),
                          .dy = floats(count, 5),
                          .dy2 = floats(count, 8),
                          .y = floats(count, 1),
                          .dx = floats(count, 1)};
    float *stored[7];
    for (int i = 0; i < 7; i++) stored[i] = rig_memory(&r, bytes);
    const float *const given[4] = {h.x, h.x2, h.dy, h.dy2};
    for (int i = 0; i < 4; i++) rig_store(&d.in, N, stored[i], given[i]);
    mr_op_args a = {.n = N,
                    .training = true,
                    .x = stored[0],
                    .x2 = stored[1],
                    .dy = stored[2],
                    .dy2 = stored[3],
                    .y = stored[4],
                    .dx = stored[5],
                    .saved = rig_memory(&r, info->saved_bytes),
                    .scratch = rig_memory(&r, info->scratch_bytes)};
    import_params(&r, op, &a, &h);
    MRT_OK(mr_op_forward_async(op, r.s, &a), NULL);
    MRT_OK(mr_op_backward_async(op, r.s, &a), NULL);
    MRT_OK(mr_stream_sync(r.s, &err), &err);
    rig_load(&d.in, N, a.y, h.y);
    rig_load(&d.in, N, a.dx, h.dx);
    for (uint32_t c = 0; c < t.c; c++) {
        double mean = 0, variance = 0, s0 = 0, s1 = 0;
        for (size_t k = c; k < count; k += t.c) mean += (double)h.x[k] / (double)m;
        for (size_t k = c; k < count; k += t.c) variance += pow((double)h.x[k] - mean, 2) / (double)m;
        const double inverse = 1 / sqrt(variance + 1e-3), gain = (double)h.param[0][c] * inverse;
        for (size_t k = c; k < count; k += t.c) {
            const double z = ((double)h.x[k] - mean) * inverse,
                         y = z * (double)h.param[0][c] + (double)h.param[1][c] + (double)h.x2[k];
            close_to("output", &d, k, (double)h.y[k], y > 0 ? y : 0);
            h.dy[k] = h.y[k] > 0 ? h.dy[k] + h.dy2[k] : 0;
            s0 += (double)h.dy[k];
            s1 += (double)h.dy[k] * z;
        }
        close_to("dshift", &d, c, (double)a.dparam[1][c], s0);
        close_to("dscale", &d, c, (double)a.dparam[0][c], s1);
        for (size_t k = c; k < count; k += t.c) {
            const double z = ((double)h.x[k] - mean) * inverse;
            close_to("dx", &d, k, (double)h.dx[k],
                     gain * ((double)h.dy[k] - s0 / (double)m - z * s1 / (double)m));
        }
    }
    free(h.x), free(h.x2), free(h.dy), free(h.dy2), free(h.y), free(h.dx);
    for (int i = 0; i < 2; i++) free(h.param[i]), free(h.dparam[i]);
    mr_op_destroy(op);
    rig_close(&r);
}

/* Many pixels a channel: pieces of every size, and a residual wider than one piece. */
static void large_batchnorm_is_right(void **state)
{
    (void)state;
    static const mr_tensor shapes[] = {{31, 37, 3, MR_TENSOR_F32, 0, 0},
                                       {3, 2, 2100, MR_TENSOR_F32, 0, 0},
                                       {19, 17, 16, MR_TENSOR_F32, 0, 0}};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(shapes); k++)
        for (size_t l = 0; l < MRI_ARRAY_COUNT(all_layouts); l++)
            check_large_batchnorm(shapes[k], all_layouts[l]);
}

static void group_norms_are_right(void **state)
{
    (void)state;
    static const struct {
        uint32_t h, w, c, groups;
        bool each_pixel;
    } cases[] = {{3, 2, 6, 3, false}, {1, 1, 9, 1, false}, {4, 3, 16, 2, false}, {1, 5, 17, 1, true},
                 {2, 2, 12, 3, true}, {3, 3, 5, 5, false}, {1, 2, 520, 1, true}};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(cases); k++)
        check_everywhere((mr_op_desc){
            .kind = MR_OP_GROUPNORM,
            .in = {cases[k].h, cases[k].w, cases[k].c, MR_TENSOR_F32, 0, 0},
            .need_dx = k != 2,
            .groupnorm = {.groups = cases[k].groups, .each_pixel = cases[k].each_pixel, .epsilon = 0.1f}});
}

/* Windows that reach beyond both ends, rows of several pieces, and powers that roots give or do not. */
static void responses_are_right(void **state)
{
    (void)state;
    static const struct {
        uint32_t h, w, c, radius;
        float bias, alpha, beta;
    } cases[] = {
        {1, 1, 1, 4, 1, 0.5f, 0.75f},    {3, 2, 5, 9, 2, 0.3f, 0.75f},   {4, 3, 17, 2, 1, 1, 0.5f},
        {2, 3, 24, 4, 0.5f, 2, 0.75f},   {1, 2, 300, 4, 1, 0.7f, 0.75f}, {2, 1, 260, 64, 1, 0.01f, 0.75f},
        {3, 3, 16, 0, 1.5f, 0.4f, 0.9f}, {1, 5, 70, 3, 1, 0.2f, 1},      {2, 2, 8, 1, 3, 0, 0},
    };
    for (size_t i = 0; i < MRI_ARRAY_COUNT(cases); i++)
        check_everywhere(
            (mr_op_desc){.kind = MR_OP_LRN,
                         .in = {cases[i].h, cases[i].w, cases[i].c, MR_TENSOR_F32, 0, 0},
                         .need_dx = true,
                         .lrn = {cases[i].radius, cases[i].bias, cases[i].alpha, cases[i].beta}});
}

/* One channel, a few, and two or three pieces: differences of every value cost the square of their number. */
static void softmaxes_are_right(void **state)
{
    (void)state;
    static const uint32_t shapes[][3] = {{1, 1, 1},  {3, 2, 5},    {1, 4, 17},
                                         {2, 3, 24}, {1, 1, 1030}, {1, 2, 520}};
    for (size_t k = 0; k < 2 * MRI_ARRAY_COUNT(shapes); k++) {
        const uint32_t *s = shapes[k / 2];
        if (MRT_SANITIZED && (k == 9 || k == 10)) continue; /* of the large ones one kind each */
        check_everywhere((mr_op_desc){.kind = MR_OP_SOFTMAX,
                                      .in = {s[0], s[1], s[2], MR_TENSOR_F32, 0, 0},
                                      .need_dx = true,
                                      .softmax = {.log = k % 2}});
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batchnorm_is_right),    cmocka_unit_test(large_batchnorm_is_right),
        cmocka_unit_test(group_norms_are_right), cmocka_unit_test(responses_are_right),
        cmocka_unit_test(softmaxes_are_right),
    };
    return mrt_run(tests);
}
