/* Networks that name their losses: a variational autoencoder with a classifier (mrt_net_coder) is one network
 * on any number of replicas, resumes from where it was saved, draws the same in every evaluation, and
 * learns. */
#include <math.h>

#include "tests/train/rig.h"

typedef struct outcome {
    mr_metrics sums;
    float *grads; /* as they lie */
    uint64_t count;
} outcome;

static outcome one_step(const char *devices, uint32_t n, uint32_t ignored)
{
    mr_error err = MR_ERROR_INIT;
    mrt_rig rig;
    mrt_batch b;
    outcome out;
    mrt_rig_open(&rig, &(mrt_rig_options){
                           .net = mrt_net_coder, .devices = devices, .batch = 64, .seed = 5, .lr = 1e-30f});
    mrt_train(&rig, 2, 0, 21); /* so that no replica begins with gradients of zero */
    MRT_OK(mr_trainer_metrics(rig.t, NULL, NULL, &err), &err);
    mrt_batch_make(&b, &rig, 3, 100, n, NULL, ignored);
    MRT_OK(mr_trainer_step(rig.t, &b.b, &err), &err);
    MRT_OK(mr_trainer_metrics(rig.t, &out.sums, NULL, &err), &err);
    const mri_replica *r = &rig.t->team.replicas[rig.count - 1];
    out.count = r->plan.weight_floats;
    out.grads = malloc(out.count * sizeof *out.grads);
    memcpy(out.grads, r->memory.grads, out.count * sizeof *out.grads); /* the processor's memory is its own */
    mrt_batch_free(&b, &rig);
    mrt_rig_close(&rig);
    return out;
}

/* Tolerance: 2e-5 of the largest gradient, 1e-5 of the loss. Sums are taken in another order. */
static void test_replicas_are_one(void **state)
{
    (void)state;
    static const char *const devices[] = {"cpu:2", "cpu:3", "cpu:7"};
    static const uint32_t sizes[][2] = {{1, 0}, {6, 0}, {20, 0}, {20, 5}};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        outcome one = one_step("cpu", sizes[s][0], sizes[s][1]);
        MRT_EQ(one.sums.count, sizes[s][0] - sizes[s][1]);
        for (size_t d = 0; d < sizeof devices / sizeof devices[0]; d++) {
            outcome many = one_step(devices[d], sizes[s][0], sizes[s][1]);
            double most = 0, off = 0;
            MRT_EQ(one.count, many.count);
            for (uint64_t i = 0; i < one.count; i++) {
                const double size = fabs((double)one.grads[i]),
                             apart = fabs((double)one.grads[i] - (double)many.grads[i]);
                if (size > most) most = size;
                if (apart > off) off = apart;
            }
            if (!(most > 0 && off <= 2e-5 * most))
                fail_msg("%s, batch of %u: gradients differ by %g of %g", devices[d], sizes[s][0], off, most);
            if (!(fabs(one.sums.loss_sum - many.sums.loss_sum) <= 1e-5 * one.sums.loss_sum))
                fail_msg("%s: loss %.9g is not %.9g", devices[d], many.sums.loss_sum, one.sums.loss_sum);
            MRT_TRUE(one.sums.count == many.sums.count && one.sums.correct == many.sums.correct);
            free(many.grads);
        }
        free(one.grads);
    }
}

static void test_a_pause_changes_no_bit(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mrt_rig whole, again;
    const mr_checkpoint_info info = {.best_val_loss = 1, .augment = "none"};
    mrt_rig_options o = {.net = mrt_net_coder, .devices = "cpu:3", .update = MR_UPDATE_ADAM, .seed = 4};
    mrt_rig_open(&whole, &o);

    mrt_rig_open(&again, &o);
    for (uint32_t s = 0; s < 2; s++) mrt_train(&whole, s, s * 32, 32);
    MRT_OK(mr_trainer_save(whole.t, mrt_path("coder.mrck"), &info, &err), &err);
    MRT_OK(mr_trainer_load(again.t, mrt_path("coder.mrck"), NULL, &err), &err);
    for (uint32_t s = 2; s < 4; s++) {
        mrt_train(&whole, s, s * 32, 32);
        mrt_train(&again, s, s * 32, 32);
    }
    for (uint32_t r = 0; r < 3; r++) MRT_TRUE(mrt_same(mrt_hash_of(&whole, r), mrt_hash_of(&again, r)));
    mrt_rig_close(&whole);
    mrt_rig_close(&again);
}

static mr_metrics evaluated(mrt_rig *rig, uint64_t global_step)
{
    mr_error err = MR_ERROR_INIT;
    mr_metrics sums;
    mrt_batch b;
    mrt_batch_make(&b, rig, global_step, 40, 24, NULL, 0);
    b.b.step = 1; /* of its epoch */
    MRT_OK(mr_trainer_forward(rig->t, &b.b, &err), &err);
    MRT_OK(mr_trainer_metrics(rig->t, NULL, &sums, &err), &err);
    mrt_batch_free(&b, rig);
    return sums;
}

static void test_evaluations_draw_the_same(void **state)
{
    (void)state;
    mrt_rig one, two;
    mrt_rig_open(&one, &(mrt_rig_options){.net = mrt_net_coder, .inference = true});
    mrt_rig_open(&two, &(mrt_rig_options){.net = mrt_net_coder, .devices = "cpu:2"});
    const mr_metrics first = evaluated(&one, 1), second = evaluated(&one, 201), third = evaluated(&two, 7);
    MRT_TRUE(first.count == 24 && first.loss_sum == second.loss_sum && first.correct == second.correct);
    MRT_TRUE(third.count == 24 && fabs(third.loss_sum / first.loss_sum - 1) < 1e-6);
    mrt_rig_close(&one);
    mrt_rig_close(&two);
}

static void test_learns_both_at_once(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_metrics early, late;
    mrt_rig rig;
    mrt_rig_open(
        &rig,
        &(mrt_rig_options){
            .net = mrt_net_coder, .devices = "cpu:2", .update = MR_UPDATE_ADAM, .lr = 0.01f, .seed = 3});
    for (uint32_t s = 0; s < 4; s++) mrt_train(&rig, s, s * 32, 32);
    MRT_OK(mr_trainer_metrics(rig.t, &early, NULL, &err), &err);
    for (uint32_t s = 4; s < 120; s++) mrt_train(&rig, s, s * 32, 32);
    MRT_OK(mr_trainer_metrics(rig.t, NULL, NULL, &err), &err);
    for (uint32_t s = 120; s < 124; s++) mrt_train(&rig, s, s * 32, 32);
    MRT_OK(mr_trainer_metrics(rig.t, &late, NULL, &err), &err);
    MRT_TRUE(early.count == 128 && late.count == 128);
    if (!(late.loss_sum < 0.9 * early.loss_sum) || !(late.correct > 100))
        fail_msg("loss %g, then %g; %u right, then %u of 128", early.loss_sum, late.loss_sum,
                 (unsigned)early.correct, (unsigned)late.correct);
    mrt_rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replicas_are_one),
        cmocka_unit_test(test_a_pause_changes_no_bit),
        cmocka_unit_test(test_evaluations_draw_the_same),
        cmocka_unit_test(test_learns_both_at_once),
    };
    return mrt_run(tests);
}
