/* One step on R replicas is one step on one replica: loss, every gradient, dropout, evaluation, weights (I5,
 * I6); and the oneDNN ops train as the plain C ones do. */
#include <math.h>

#include "tests/train/rig.h"

static const uint32_t replica_counts[] = {1, 2, 3, 5, 7};

typedef struct outcome {
    mr_metrics sums;
    float *grads; /* all tensors of weights, canonical */
    size_t count;
} outcome;

static void take_gradients(const mrt_rig *rig, uint32_t replica, outcome *out)
{
    mr_error err = MR_ERROR_INIT;
    const mr_trainer *t = rig->t;
    out->grads = malloc(mr_net_param_count(rig->net) * sizeof(float));
    out->count = 0;
    for (uint32_t i = 0; i < t->tensors.count; i++) {
        if (t->tensors.desc[i].role != MRI_ROLE_WEIGHTS) continue;
        MRT_OK(mri_tensor_export(&rig->t->tensors, &rig->t->team.replicas[replica], i, true,
                                 out->grads + out->count, &err),
               &err);
        out->count += t->tensors.desc[i].count;
    }
    MRT_EQ(out->count, mr_net_param_count(rig->net));
}

/* Gradients of a step, behind another one on a full batch so that no replica starts with gradients of
 * zero. */
static outcome one_step(const char *devices, bool reference, uint32_t n, const uint32_t *counts,
                        uint32_t ignored)
{
    mr_error err = MR_ERROR_INIT;
    mrt_rig rig;
    mrt_batch b;
    outcome out = {0};
    mrt_rig_open(&rig, &(mrt_rig_options){
                           .devices = devices, .reference = reference, .batch = 64, .seed = 5, .lr = 1e-30f});
    mrt_train(&rig, 2, 0, 21);
    MRT_OK(mr_trainer_metrics(rig.t, NULL, NULL, &err), &err);
    mrt_batch_make(&b, &rig, 3, 100, n, counts, ignored);
    MRT_OK(mr_trainer_step(rig.t, &b.b, &err), &err);
    MRT_OK(mr_trainer_metrics(rig.t, &out.sums, NULL, &err), &err);
    take_gradients(&rig, rig.count - 1, &out);
    for (uint32_t r = 1; r < rig.count; r++) MRT_TRUE(mrt_same(mrt_hash_of(&rig, 0), mrt_hash_of(&rig, r)));
    mrt_batch_free(&b, &rig);
    mrt_rig_close(&rig);
    return out;
}

/* Tolerance: 2e-5 of the largest gradient, 1e-5 of the loss. Sums are taken in another order, so the last
 * bits differ. */
static void compare(const outcome *a, const outcome *b, const char *what, uint32_t n)
{
    double most = 0, off = 0;
    for (size_t i = 0; i < a->count; i++) {
        const double size = fabs((double)a->grads[i]),
                     apart = fabs((double)a->grads[i] - (double)b->grads[i]);
        if (size > most) most = size; /* not fmax(): gcc 12 for aarch64 does not survive it here */
        if (apart > off) off = apart;
    }
    if (!(off <= 2e-5 * most)) fail_msg("%s, batch of %u: gradients differ by %g of %g", what, n, off, most);
    if (!(fabs(a->sums.loss_sum - b->sums.loss_sum) <= 1e-5 * a->sums.loss_sum))
        fail_msg("%s, batch of %u: loss %.9g is not %.9g", what, n, b->sums.loss_sum, a->sums.loss_sum);
    MRT_EQ(a->sums.count, b->sums.count);
    MRT_EQ(a->sums.correct, b->sums.correct);
    MRT_TRUE(most > 0);
}

static void test_gradients_do_not_depend_on_replicas(void **state)
{
    (void)state;
    for (size_t k = 1; k < sizeof replica_counts / sizeof replica_counts[0]; k++) {
        const uint32_t R = replica_counts[k], sizes[] = {1, 2, R - 1, R, 2 * R + 1, 20};
        char devices[16];
        snprintf(devices, sizeof devices, "cpu:%u", R);
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            outcome one = one_step("cpu", false, sizes[s], NULL, 0),
                    many = one_step(devices, false, sizes[s], NULL, 0);
            MRT_EQ(one.sums.count, sizes[s]);
            compare(&one, &many, devices, sizes[s]);
            free(one.grads);
            free(many.grads);
        }
    }
}

static void test_uneven_slices_and_padding_are_weighted_exactly(void **state)
{
    (void)state;
    static const uint32_t counts[][3] = {{1, 9, 3}, {0, 0, 13}, {13, 0, 0}, {2, 1, 10}};
    outcome one = one_step("cpu", false, 13, NULL, 4);
    MRT_EQ(one.sums.count, 9);
    for (size_t i = 0; i < 4; i++) {
        outcome many = one_step("cpu:3", false, 13, counts[i], 4);
        compare(&one, &many, "uneven", 13);
        free(many.grads);
    }
    free(one.grads);
}

/* Samples without a label weigh nothing: a padded batch is the batch without its padding. */
static void test_padding_is_not_there(void **state)
{
    (void)state;
    outcome without = one_step("cpu", false, 9, NULL, 0), with = one_step("cpu", false, 13, NULL, 4);
    compare(&without, &with, "padding", 13);
    free(with.grads);
    free(without.grads);
}

static void test_reference_and_onednn_agree(void **state)
{
    (void)state;
    outcome fast = one_step("cpu:2", false, 20, NULL, 1), plain = one_step("cpu:2", true, 20, NULL, 1);
    compare(&plain, &fast, "oneDNN", 20);
    free(fast.grads);
    free(plain.grads);
}

/* Mean loss of one training step with tensor's element moved by delta; weights stay as they were (the rate is
 * next to zero). */
static double loss_with(mrt_rig *rig, const mrt_batch *b, uint32_t tensor, size_t element, float delta)
{
    mr_error err = MR_ERROR_INIT;
    mr_metrics sums;
    const mri_replica *rep = &rig->t->team.replicas[0];
    const mri_tensor_place *p = &rig->t->tensors.place[tensor];
    float *host = malloc(rig->t->tensors.most_floats * sizeof *host);
    MRT_OK(mri_tensor_export(&rig->t->tensors, &rig->t->team.replicas[0], tensor, false, host, &err), &err);
    const float kept = host[element];
    host[element] += delta;
    MRT_OK(mr_op_param_import(rep->nodes.node[p->node].op, false, p->which, rep->memory.weights + p->at, host,
                              &err),
           &err);
    MRT_OK(mr_trainer_step(rig->t, &b->b, &err), &err);
    MRT_OK(mr_trainer_metrics(rig->t, &sums, NULL, &err), &err);
    host[element] = kept;
    MRT_OK(mr_op_param_import(rep->nodes.node[p->node].op, false, p->which, rep->memory.weights + p->at, host,
                              &err),
           &err);
    free(host);
    return sums.loss_sum / (double)sums.count;
}

static size_t largest(const float *values, size_t count)
{
    size_t at = 0;
    for (size_t i = 1; i < count; i++)
        if (fabsf(values[i]) > fabsf(values[at])) at = i;
    return at;
}

/* The steepest element of every tensor against a central difference: what lies where in memory, what works in
 * place and where backward ends would all show here. Tolerance 3 %: the network has kinks. */
static void test_gradients_are_slopes_of_the_loss(void **state)
{
    (void)state;
    static mr_net *(*const nets[])(void) = {mrt_net_conv,   mrt_net_norm,     mrt_net_dense,
                                            mrt_net_branch, mrt_net_residual, mrt_net_mobile};
    for (size_t k = 0; k < 5; k++) {
        mr_error err = MR_ERROR_INIT;
        mrt_rig rig;
        mrt_batch b;
        mrt_rig_open(&rig, &(mrt_rig_options){.net = nets[k], .seed = 8, .lr = 1e-30f});
        mrt_batch_make(&b, &rig, 6, 40, 32, NULL, 0);
        float *grads = malloc(rig.t->tensors.most_floats * sizeof *grads);
        for (uint32_t i = 0; i < rig.t->tensors.count; i++) {
            const float d = 1e-3f;
            if (rig.t->tensors.desc[i].role != MRI_ROLE_WEIGHTS) continue;
            loss_with(&rig, &b, i, 0, 0);
            MRT_OK(mri_tensor_export(&rig.t->tensors, &rig.t->team.replicas[0], i, true, grads, &err), &err);
            const size_t at = largest(grads, rig.t->tensors.desc[i].count);
            const double slope =
                (loss_with(&rig, &b, i, at, d) - loss_with(&rig, &b, i, at, -d)) / (2.0 * (double)d);
            const double g = (double)grads[at];
            if (!(fabs(slope - g) <= 0.03 * fabs(g) + 2e-4))
                fail_msg("%s %s: gradient %g, slope %g", rig.net->name, rig.t->tensors.desc[i].name, g,
                         slope);
        }
        free(grads);
        mrt_batch_free(&b, &rig);
        mrt_rig_close(&rig);
    }
}

static mr_metrics evaluate_toy(uint32_t batch, const char *devices)
{
    mr_error err = MR_ERROR_INIT;
    mrt_rig rig;
    mr_metrics training, sums;
    mrt_rig_open(&rig, &(mrt_rig_options){.devices = devices, .batch = 64, .seed = 5});
    for (uint32_t at = 0; at < 100; at += batch) {
        mrt_batch b;
        mrt_batch_make(&b, &rig, at / batch, at, at + batch < 100 ? batch : 100 - at, NULL, 0);
        MRT_OK(mr_trainer_forward(rig.t, &b.b, &err), &err);
        mrt_batch_free(&b, &rig);
    }
    MRT_OK(mr_trainer_metrics(rig.t, &training, &sums, &err), &err);
    MRT_TRUE(training.count == 0 && training.loss_sum == 0);
    MRT_OK(mr_trainer_metrics(rig.t, NULL, &training, &err), &err);
    MRT_EQ(training.count, 0); /* starts again at zero */
    mrt_rig_close(&rig);
    return sums;
}

static void test_evaluation_is_exact_for_any_split(void **state)
{
    (void)state;
    const mr_metrics whole = evaluate_toy(50, "cpu");
    static const struct {
        uint32_t batch;
        const char *devices;
    } splits[] = {{7, "cpu"}, {64, "cpu:3"}, {9, "cpu:5"}, {1, "cpu:2"}};
    MRT_EQ(whole.count, 100);
    for (size_t i = 0; i < 4; i++) {
        const mr_metrics m = evaluate_toy(splits[i].batch, splits[i].devices);
        MRT_EQ(m.count, whole.count);
        MRT_EQ(m.correct, whole.correct);
        MRT_TRUE(fabs(m.loss_sum - whole.loss_sum) < 1e-6 * whole.loss_sum);
    }
}

static void test_initial_weights_do_not_depend_on_devices(void **state)
{
    (void)state;
    mrt_hash first = {0};
    static const char *const devices[] = {"cpu", "cpu:3", "cpu"};
    for (int i = 0; i < 3; i++) {
        mrt_rig rig;
        mrt_rig_open(&rig, &(mrt_rig_options){.devices = devices[i], .seed = 9, .reference = i == 2});
        for (uint32_t r = 0; r < rig.count; r++) {
            const mrt_hash h = mrt_hash_of(&rig, r);
            if (i == 0) first = h;
            else MRT_TRUE(mrt_same(h, first));
        }
        mrt_rig_close(&rig);
    }
    mrt_rig other;
    mrt_rig_open(&other, &(mrt_rig_options){.seed = 10});
    MRT_TRUE(!mrt_same(mrt_hash_of(&other, 0), first));
    mrt_rig_close(&other);
}

static mrt_hash hash_after(uint64_t seed, const char *devices)
{
    mrt_rig rig;
    mrt_rig_open(&rig, &(mrt_rig_options){.devices = devices, .seed = seed, .update = MR_UPDATE_ADAM});
    for (uint32_t s = 0; s < 5; s++) mrt_train(&rig, s, s * 32, 32);
    const mrt_hash h = mrt_hash_of(&rig, rig.count - 1);
    MRT_TRUE(mrt_same(h, mrt_hash_of(&rig, 0)));
    mrt_rig_close(&rig);
    return h;
}

static void test_a_seed_repeats_bit_for_bit(void **state)
{
    (void)state;
    MRT_TRUE(mrt_same(hash_after(1, "cpu"), hash_after(1, "cpu")));
    MRT_TRUE(mrt_same(hash_after(1, "cpu:3"), hash_after(1, "cpu:3")));
    MRT_TRUE(!mrt_same(hash_after(1, "cpu"), hash_after(2, "cpu")));
}

static void test_running_statistics_are_shared(void **state)
{
    (void)state;
    mrt_rig rig;
    mrt_rig_open(&rig, &(mrt_rig_options){.devices = "cpu:3", .net = mrt_net_norm});
    const mrt_hash fresh = mrt_hash_of(&rig, 0);
    for (uint32_t s = 0; s < 3; s++) {
        mrt_train(&rig, s, s * 30, 30);
        for (uint32_t r = 1; r < 3; r++) MRT_TRUE(mrt_same(mrt_hash_of(&rig, 0), mrt_hash_of(&rig, r)));
    }
    MRT_TRUE(!mrt_same(fresh, mrt_hash_of(&rig, 0)));
    mrt_rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients_do_not_depend_on_replicas),
        cmocka_unit_test(test_uneven_slices_and_padding_are_weighted_exactly),
        cmocka_unit_test(test_padding_is_not_there),
        cmocka_unit_test(test_reference_and_onednn_agree),
        cmocka_unit_test(test_gradients_are_slopes_of_the_loss),
        cmocka_unit_test(test_evaluation_is_exact_for_any_split),
        cmocka_unit_test(test_initial_weights_do_not_depend_on_devices),
        cmocka_unit_test(test_a_seed_repeats_bit_for_bit),
        cmocka_unit_test(test_running_statistics_are_shared),
    };
    return mrt_run(tests);
}
