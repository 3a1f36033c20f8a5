/* kernels: the simulated device: the loss takes the time of a step, parameters come and go, groups meet. */
#include "tests/kernels/crowd.h"

static void sim_spends_the_step_in_the_loss(void **state)
{
    (void)state;
    struct rig r;
    mr_error err = MR_ERROR_INIT;
    mr_op *op, *dense;
    const mr_step_values values = {.scale = 0.5f};
    rig_open(&r, "sim,step=6ms", false);
    mr_op_desc d = {.kind = MR_OP_LOSS, .in = rig_tensor(1, 1, 3, 0), .max_batch = 2, .training = true};
    MRT_OK(mr_op_create(&op, r.dev, &d, &err), &err);
    float *x = rig_memory(&r, 24);
    int32_t *labels = rig_memory(&r, 8);
    mr_metrics *metrics = rig_memory(&r, sizeof *metrics);
    labels[1] = -1;
    mr_op_args a = {.n = 2,
                    .x = x,
                    .y = x,
                    .dx = x,
                    .labels = labels,
                    .values = &values,
                    .metrics = metrics,
                    .training = true};
    uint64_t start = mri_now_ns();
    for (int i = 0; i < 3; i++) MRT_OK(mr_op_forward_async(op, r.s, &a), NULL);
    MRT_OK(mr_op_backward_async(op, r.s, &a), NULL);
    MRT_OK(mr_stream_sync(r.s, &err), &err);
    MRT_TRUE(mri_now_ns() - start >= 18000000u);
    MRT_EQ(metrics->count, 3);
    a.training = false;
    start = mri_now_ns();
    MRT_OK(mr_op_forward_async(op, r.s, &a), NULL);
    MRT_OK(mr_stream_sync(r.s, &err), &err);
    MRT_TRUE(mri_now_ns() - start >= 2000000u);

    /* parameters come and go as on a real device */
    mr_op_desc dd = {.kind = MR_OP_DENSE,
                     .in = rig_tensor(1, 1, 3, 0),
                     .max_batch = 2,
                     .training = true,
                     .dense.units = 2};
    MRT_OK(mr_op_create(&dense, r.dev, &dd, &err), &err);
    float *w = rig_memory(&r, mr_op_info_of(dense)->param[0].storage_count * 4), in[6] = {1, 2, 3, 4, 5, 6},
          out[6];
    MRT_OK(mr_op_param_import(dense, false, 0, w, in, &err), &err);
    MRT_OK(mr_op_param_export(dense, false, 0, w, out, &err), &err);
    MRT_TRUE(memcmp(in, out, sizeof in) == 0);
    const mr_update_desc u = {.kind = MR_UPDATE_SGD, .lr = 1};
    const mr_step_values v = {.lr = 1};
    const mr_update_args args = {.count = 6, .weights = w, .grads = w, .values = &v};
    MRT_OK(mr_update_async(r.s, &u, &args), NULL);
    MRT_OK(mr_stream_sync(r.s, &err), &err);
    mr_op_destroy(dense);
    mr_op_destroy(op);
    rig_close(&r);
}

static void sim_groups_meet(void **state)
{
    (void)state;
    struct crowd c;
    mr_error err = MR_ERROR_INIT;
    float buffers[3][2] = {{1, 2}, {3, 4}, {5, 6}}, *values[3] = {buffers[0], buffers[1], buffers[2]};
    crowd_open(&c, "sim", 3);
    MRT_OK(mr_group_sum_async(c.group, values, 2), NULL);
    MRT_OK(mr_group_broadcast_async(c.group, values, 2, 1), NULL);
    for (uint32_t d = 0; d < 3; d++) MRT_OK(mr_stream_sync(c.streams[d], &err), &err);
    for (uint32_t d = 0; d < 3; d++) MRT_TRUE(values[d][0] == 3 && values[d][1] == 4);
    crowd_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sim_spends_the_step_in_the_loss),
        cmocka_unit_test(sim_groups_meet),
    };
    return mrt_run(tests);
}
