/* Networks with Winograd convolutions: one step on R replicas is one step on one; gradients against direct
 * convolutions and plain C; stopped and resumed bit for bit; memory planned; checkpoints store the
 * algorithm. */
#include <math.h>
#include <string.h>

#include "tests/train/rig.h"

/* 8 x 8 pictures: the middle two convolutions are in the table. */
static mr_net *net_wide(void)
{
    mr_net *net;
    MRT_EQ(mr_net_create(&net, "toy-wide", MRT_SIDE, MRT_SIDE, 1), MR_OK);
    mr_net_conv2d(net, 64, 3, 1, MR_PAD_SAME, MR_ACT_RELU);
    mr_net_conv2d(net, 64, 3, 1, MR_PAD_SAME, MR_ACT_RELU);
    mr_net_conv2d(net, 80, 3, 1, MR_PAD_SAME, MR_ACT_RELU);
    mr_net_max_pool(net, 2, 2);
    mr_net_dropout(net, 0.25f);
    mr_net_dense(net, MRT_CLASSES, MR_ACT_NONE);
    return net;
}

static mrt_rig_options wide(const char *devices, mr_convolution convolution)
{
    return (mrt_rig_options){.devices = devices,
                             .batch = 70,
                             .seed = 5,
                             .lr = 1e-30f,
                             .net = net_wide,
                             .convolution = convolution};
}

static uint32_t passes(const mrt_rig *rig)
{
    uint32_t count = 0;
    mr_trainer_op op;
    for (uint32_t at = 0; mr_trainer_op_at(rig->t, at, &op); at++)
        for (int p = 0; p < 3; p++)
            count += op.info->algorithm[p] && strcmp(op.info->algorithm[p], "winograd") == 0;
    return count;
}

static bool has_winograd(void)
{
    mrt_rig rig;
    const mrt_rig_options o = wide("cpu", MR_CONVOLUTION_AUTO);
    mrt_rig_open(&rig, &o);
    const uint32_t count = passes(&rig);
    MRT_EQ(mr_trainer_convolution(rig.t), count ? MR_WINOGRAD_TABLE : 1);
    mrt_rig_close(&rig);
    MRT_TRUE(count == 0 || count == 6);
    return count > 0;
}

typedef struct gradients {
    float *v;
    size_t count;
    double loss;
} gradients;

static gradients gradients_of(const mrt_rig_options *o, uint32_t n)
{
    mr_error err = MR_ERROR_INIT;
    mrt_rig rig;
    mrt_batch b;
    mr_metrics sums;
    mrt_rig_open(&rig, o);
    mrt_batch_make(&b, &rig, 3, 100, n, NULL, 0);
    MRT_OK(mr_trainer_step(rig.t, &b.b, &err), &err);
    MRT_OK(mr_trainer_metrics(rig.t, &sums, NULL, &err), &err);
    gradients g = {.v = malloc(mr_net_param_count(rig.net) * sizeof(float)), .loss = sums.loss_sum};
    MRT_TRUE(g.v != NULL);
    for (uint32_t i = 0; i < rig.t->tensors.count; i++) {
        if (rig.t->tensors.desc[i].role != MRI_ROLE_WEIGHTS) continue;
        MRT_OK(mri_tensor_export(&rig.t->tensors, &rig.t->team.replicas[rig.count - 1], i, true,
                                 g.v + g.count, &err),
               &err);
        g.count += rig.t->tensors.desc[i].count;
    }
    for (uint32_t r = 1; r < rig.count; r++) MRT_TRUE(mrt_same(mrt_hash_of(&rig, 0), mrt_hash_of(&rig, r)));
    mrt_batch_free(&b, &rig);
    mrt_rig_close(&rig);
    return g;
}

/* The largest difference, as a part of the largest gradient. */
static double apart(const gradients *a, const gradients *b)
{
    double most = 0, off = 0;
    MRT_EQ(a->count, b->count);
    for (size_t i = 0; i < a->count; i++) {
        const double size = fabs((double)a->v[i]), d = fabs((double)a->v[i] - (double)b->v[i]);
        if (size > most) most = size;
        if (!(d <= off)) off = d;
    }
    MRT_TRUE(most > 0);
    return off / most;
}

/* Replicas 1 to 7, batches that do not divide, parts without a sample. Tolerance as for direct convolutions:
 * 2e-5 of the largest gradient, 1e-5 of the loss. */
static void test_gradients_do_not_depend_on_replicas(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {3, 67, 1, 20};
    enum { SIZES = MRT_SANITIZED ? 2 : 4, APART = MRT_SANITIZED ? 5 : 1 };
    for (size_t s = 0; s < SIZES; s++) {
        const mrt_rig_options one = wide("cpu", MR_CONVOLUTION_AUTO);
        gradients expected = gradients_of(&one, sizes[s]);
        for (uint32_t replicas = 2; replicas <= 7; replicas += APART) {
            char devices[16];
            snprintf(devices, sizeof devices, "cpu:%u", replicas);
            const mrt_rig_options many = wide(devices, MR_CONVOLUTION_AUTO);
            gradients g = gradients_of(&many, sizes[s]);
            if (!(apart(&expected, &g) <= 2e-5))
                fail_msg("%s, batch of %u: %g", devices, sizes[s], apart(&expected, &g));
            MRT_TRUE(fabs(g.loss - expected.loss) <= 1e-5 * expected.loss);
            free(g.v);
        }
        free(expected.v);
    }
}

/* A whole step's gradients against plain C. A relu whose input is next to zero may fall on its other side, so
 * the bound is no tighter than for other orders of sums: Winograd's within 1e-4 of the largest gradient,
 * direct's within 2e-5. */
static void test_a_step_beside_direct_and_plain_c(void **state)
{
    (void)state;
    const uint32_t n = MRT_SANITIZED ? 17 : 67; /* plain C is slow there */
    mrt_rig_options o = wide("cpu", MR_CONVOLUTION_AUTO);
    gradients fast = gradients_of(&o, n);
    o.convolution = MR_CONVOLUTION_DIRECT;
    gradients direct = gradients_of(&o, n);
    o.reference = true;
    gradients plain = gradients_of(&o, n);
    print_message("off by %.1e of the largest gradient with Winograd, %.1e without\n", apart(&plain, &fast),
                  apart(&plain, &direct));
    MRT_TRUE(apart(&plain, &fast) <= 1e-4);
    MRT_TRUE(apart(&plain, &direct) <= 2e-5);
    MRT_TRUE(fabs(fast.loss - plain.loss) <= 1e-5 * plain.loss);
    free(fast.v), free(direct.v), free(plain.v);
}

static void test_a_resumed_run_has_the_same_bits(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mrt_rig whole, first, second;
    mrt_rig_options o = wide("cpu:2", MR_CONVOLUTION_AUTO);
    o.lr = 0.01f;
    mrt_rig_open(&whole, &o);
    mrt_rig_open(&first, &o);
    mrt_rig_open(&second, &o);
    for (uint32_t i = 0; i < 6; i++) {
        const uint32_t n = i % 2 ? 70 : 37;
        mrt_train(&whole, i, 70 * i, n);
        if (i < 3) mrt_train(&first, i, 70 * i, n);
        if (i == 3) {
            mr_checkpoint_info info = {.batch = 70};
            MRT_OK(mr_trainer_save(first.t, mrt_path("wide.mrck"), &info, &err), &err);
            MRT_OK(mr_trainer_load(second.t, mrt_path("wide.mrck"), &info, &err), &err);
            MRT_EQ(info.convolution, mr_trainer_convolution(first.t));
        }
        if (i >= 3) mrt_train(&second, i, 70 * i, n);
    }
    MRT_TRUE(mrt_same(mrt_hash_of(&whole, 0), mrt_hash_of(&second, 0)));
    MRT_TRUE(!mrt_same(mrt_hash_of(&whole, 0), mrt_hash_of(&first, 0)));
    mrt_rig_close(&whole);
    mrt_rig_close(&first);
    mrt_rig_close(&second);
}

static void test_checkpoints_keep_what_it_was(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mrt_rig rig;
    mr_checkpoint_info info = {.batch = 70};
    const mrt_rig_options o = wide("cpu", MR_CONVOLUTION_DIRECT);
    mrt_rig_open(&rig, &o);
    MRT_EQ(passes(&rig), 0);
    MRT_OK(mr_trainer_save(rig.t, mrt_path("direct.mrck"), &info, &err), &err);
    info.convolution = 9; /* the trainer knows better */
    MRT_OK(mr_checkpoint_find(mrt_path("direct.mrck"), NULL, 0, &info, NULL, 0, &err), &err);
    MRT_EQ(info.convolution, 1);
    mrt_rig_close(&rig);
}

/* An operation's scratch memory is part of the plan, and compared with the limit. */
static void test_scratch_is_planned(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mrt_rig rig;
    mr_trainer_op op;
    size_t scratch = 0;
    mrt_rig_options o = wide("cpu", MR_CONVOLUTION_AUTO);
    mrt_rig_open(&rig, &o);
    for (uint32_t at = 0; mr_trainer_op_at(rig.t, at, &op); at++)
        if (op.info->scratch_bytes > scratch) scratch = op.info->scratch_bytes;
    const mri_plan *plan = &rig.t->team.replicas[0].plan;
    MRT_TRUE(plan->arena_bytes >= scratch);
    o.memory_bytes = plan->memory_bytes - 1;
    mrt_rig_close(&rig);
    MRT_EQ(mrt_rig_try(&rig, &o, &err), MR_ELIMIT);
    o.memory_bytes++;
    mrt_rig_open(&rig, &o);
    mrt_rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients_do_not_depend_on_replicas),
        cmocka_unit_test(test_a_step_beside_direct_and_plain_c),
        cmocka_unit_test(test_a_resumed_run_has_the_same_bits),
        cmocka_unit_test(test_checkpoints_keep_what_it_was),
        cmocka_unit_test(test_scratch_is_planned),
    };
    if (!has_winograd()) {
        print_message("SKIP: no Winograd for this processor\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
