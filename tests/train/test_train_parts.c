/* With a batch in a fixed number of shares, weights are the same bits on any number of devices (I15): also
 * sums of losses, statistics, evaluation and the state that a checkpoint resumes from. */
#include "tests/train/rig.h"

enum { STEPS = 4, BATCH = 24 };

typedef struct outcome {
    mrt_hash weights;
    mr_metrics training, evaluation;
} outcome;

typedef struct run {
    const char *what;
    mr_net *(*net)(void);
    mr_update_kind update;
    uint32_t parts;
    uint64_t bucket_bytes;
    bool mixes;
} run;

/* Full batches, one that has fewer samples than parts, one in which the last do not count. */
static outcome train(const run *r, uint32_t devices)
{
    static const uint32_t counts[STEPS] = {BATCH, 23, 3, BATCH};
    mr_error err = MR_ERROR_INIT;
    mrt_rig rig;
    mrt_batch b;
    outcome out;
    char spec[16];
    snprintf(spec, sizeof spec, "cpu:%u", devices);
    mrt_rig_open(&rig, &(mrt_rig_options){.devices = spec,
                                          .batch = BATCH,
                                          .seed = 3,
                                          .lr = 0.05f,
                                          .net = r->net,
                                          .update = r->update,
                                          .parts = r->parts,
                                          .bucket_bytes = r->bucket_bytes,
                                          .mixes = r->mixes});
    for (uint32_t s = 0, first = 0; s < STEPS; first += counts[s++]) {
        mrt_batch_make(&b, &rig, s, first, counts[s], NULL, s == 3 ? 5 : 0);
        MRT_OK(mr_trainer_step(rig.t, &b.b, &err), &err);
        mrt_batch_free(&b, &rig);
    }
    mrt_batch_make(&b, &rig, 0, 1000, 17, NULL, 0);
    MRT_OK(mr_trainer_forward(rig.t, &b.b, &err), &err);
    mrt_batch_free(&b, &rig);
    MRT_OK(mr_trainer_metrics(rig.t, &out.training, &out.evaluation, &err), &err);
    out.weights = mrt_hash_of(&rig, 0);
    for (uint32_t d = 1; d < devices; d++) MRT_TRUE(mrt_same(out.weights, mrt_hash_of(&rig, d)));
    mrt_rig_close(&rig);
    return out;
}

static bool same_metrics(const mr_metrics *a, const mr_metrics *b)
{
    return memcmp(&a->loss_sum, &b->loss_sum, sizeof a->loss_sum) == 0 && a->count == b->count &&
           a->correct == b->correct;
}

static const run runs[] = {
    {"convolutions, 8 parts", NULL, MR_UPDATE_SGD, 8, 0, false},
    {"convolutions, 8 parts in buckets", NULL, MR_UPDATE_ADAM, 8, 1024, false},
    {"normalisation, 5 parts", mrt_net_norm, MR_UPDATE_MOMENTUM, 5, 0, false},
    {"normalisation, 8 parts in buckets", mrt_net_norm, MR_UPDATE_SGD, 8, 512, false},
    {"branches, 7 parts", mrt_net_branch, MR_UPDATE_SGD, 7, 2048, false},
    {"residual, 3 parts", mrt_net_residual, MR_UPDATE_RMSPROP, 3, 0, false},
    {"factors and dropped samples, 4 parts", mrt_net_mobile, MR_UPDATE_MOMENTUM, 4, 1024, false},
    {"dense, 12 parts", mrt_net_dense, MR_UPDATE_SGD, 12, 0, false},
    {"mixed samples, 5 parts", NULL, MR_UPDATE_ADAM, 5, 1024, true},
};

static void test_weights_do_not_depend_on_devices(void **state)
{
    (void)state;
    static const uint32_t counts[] = {2, 3, 4, 5, 7, 8, 12};
    for (size_t k = 0; k < sizeof runs / sizeof *runs; k++) {
        const run *r = &runs[k];
        const outcome one = train(r, 1);
        MRT_TRUE(one.training.count == BATCH + 23 + 3 + BATCH - 5 && one.evaluation.count == 17);
        for (size_t i = 0; i < sizeof counts / sizeof *counts && counts[i] <= r->parts; i++) {
            const outcome other = train(r, counts[i]);
            if (!mrt_same(one.weights, other.weights))
                fail_msg("%s: other weights on %u devices", r->what, counts[i]);
            if (!same_metrics(&one.training, &other.training) ||
                !same_metrics(&one.evaluation, &other.evaluation))
                fail_msg("%s: another loss on %u devices", r->what, counts[i]);
        }
    }
}

/* Recorded segments and buckets change no bit of parts that share a device. */
static void test_buckets_change_no_bit(void **state)
{
    (void)state;
    run r = runs[0];
    const outcome whole = train(&r, 3);
    for (r.bucket_bytes = 256; r.bucket_bytes < 100000; r.bucket_bytes *= 8) {
        const outcome cut = train(&r, 3);
        MRT_TRUE(mrt_same(whole.weights, cut.weights));
    }
}

static void test_a_checkpoint_goes_on_elsewhere(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mrt_hash expected = {0, 0};
    const char *path = mrt_path("parts.mrck");
    for (uint32_t k = 0; k < 3; k++) {
        static const char *const specs[] = {"cpu:1", "cpu:4", "cpu:3"};
        const mrt_rig_options o = {
            .batch = BATCH, .seed = 3, .net = mrt_net_norm, .parts = 6, .update = MR_UPDATE_ADAM};
        mr_checkpoint_info info = {.struct_size = sizeof info};
        mrt_rig rig;
        mrt_rig_options first = o, second = o;
        first.devices = specs[k];
        second.devices = specs[(k + 1) % 3];
        mrt_rig_open(&rig, &first);
        mrt_train(&rig, 0, 0, BATCH);
        MRT_OK(mr_trainer_save(rig.t, path, &info, &err), &err);
        mrt_rig_close(&rig);
        mrt_rig_open(&rig, &second);
        MRT_OK(mr_trainer_load(rig.t, path, &info, &err), &err);
        MRT_EQ(info.parts, 6);
        MRT_EQ(info.part_threads, 1);
        mrt_train(&rig, 1, BATCH, BATCH);
        const mrt_hash hash = mrt_hash_of(&rig, 0);
        if (k == 0) expected = hash;
        MRT_TRUE(mrt_same(expected, hash));
        mrt_rig_close(&rig);
    }
}

static void test_parts_are_dealt_evenly(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_parts p;
    for (uint32_t devices = 1; devices <= 20; devices++)
        for (uint32_t parts = devices; parts <= 64; parts++) {
            uint32_t sum = 0;
            MRT_OK(mr_parts_deal(&p, NULL, devices, parts, &err), &err);
            for (uint32_t d = 0; d < devices; d++) {
                MRT_TRUE(p.of_device[d] == parts / devices || p.of_device[d] == parts / devices + 1);
                sum += p.of_device[d];
            }
            MRT_TRUE(sum == parts && p.all == parts && p.count == parts && p.first == 0);
        }
    MRT_OK(mr_parts_deal(&p, NULL, 3, 0, &err), &err);
    MRT_TRUE(p.all == 3 && p.of_device[2] == 1);
    MRT_EQ(mr_parts_deal(&p, NULL, 3, 2, &err), MR_EINVAL);
    MRT_HAS(err.text, "3 devices for the 2 parts");
    MRT_EQ(mr_parts_deal(&p, NULL, 0, 2, &err), MR_EINVAL);
    MRT_EQ(mr_parts_deal(&p, NULL, 1, 65, &err), MR_ELIMIT);
    MRT_EQ(mr_parts_deal(&p, NULL, 1, 70000, &err), MR_EINVAL);
}

/* Whatever a device holds of whatever number of parts, it needs few arrays for what waits, and leaves the
 * nodes that the group expects. */
static void test_folds_leave_the_nodes_of_the_cover(void **state)
{
    (void)state;
    for (uint32_t all = 1; all <= 300; all += all < 70 ? 1 : 13)
        for (uint32_t first = 0; first < all; first++)
            for (uint32_t count = 1; count <= all - first && count <= MR_LOADER_MAX_PARTS; count++) {
                mri_folds f;
                mri_folds_init(&f, all, first, count);
                MRT_TRUE(f.terms <= MRI_TERMS_MOST);
                MRT_EQ(f.left + 1, mr_sum_cover(all, first, count, NULL));
            }
}

static void test_what_does_not_fit_is_refused(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mrt_rig rig, other;
    mrt_batch b;
    mrt_rig_open(&rig, &(mrt_rig_options){.parts = 4});
    mrt_rig_open(&other, &(mrt_rig_options){.parts = 3});
    mrt_batch_make(&b, &other, 0, 0, 12, NULL, 0);
    MRT_EQ(mr_trainer_step(rig.t, &b.b, &err), MR_EINVAL);
    MRT_HAS(err.text, "the batch has 3 parts, the trainer 4");
    b.b.all_count = 20;
    MRT_EQ(mr_trainer_step(other.t, &b.b, &err), MR_EINVAL);
    MRT_HAS(err.text, "12 samples of 20");
    mrt_batch_free(&b, &other);
    mrt_rig_close(&other);
    mr_trainer_config cfg;
    mr_parts wrong = rig.parts;
    mr_trainer *t;
    mr_trainer_defaults(&cfg);
    cfg.net = rig.net;
    cfg.devices = rig.devices;
    cfg.device_count = 1;
    cfg.parts = &wrong;
    wrong.of_device[0] = 3;
    MRT_EQ(mr_trainer_open(&t, &cfg, &err), MR_EINVAL);
    MRT_HAS(err.text, "as mr_parts_deal() gives them");
    wrong = rig.parts;
    wrong.first = 1;
    MRT_EQ(mr_trainer_open(&t, &cfg, &err), MR_EINVAL);
    mrt_rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts_are_dealt_evenly),
        cmocka_unit_test(test_folds_leave_the_nodes_of_the_cover),
        cmocka_unit_test(test_weights_do_not_depend_on_devices),
        cmocka_unit_test(test_buckets_change_no_bit),
        cmocka_unit_test(test_a_checkpoint_goes_on_elsewhere),
        cmocka_unit_test(test_what_does_not_fit_is_refused),
    };
    return mrt_run(tests);
}
