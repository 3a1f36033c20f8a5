/* A trainer: learns, saves and loads bit for bit, refuses mismatches, reports its actions with their
 * times. */
#include <math.h>

#include "tests/train/rig.h"

static void test_learns_a_toy_problem(void **state)
{
    (void)state;
    static const struct {
        mr_net *(*net)(void);
        const char *devices;
        mr_update_kind update;
        float lr;
    } cases[] = {
        {mrt_net_dense, "cpu", MR_UPDATE_SGD, 0.1f},
        {mrt_net_conv, "cpu:2", MR_UPDATE_ADAM, 0.01f},
        {mrt_net_norm, "cpu:3", MR_UPDATE_MOMENTUM, 0.02f},
        {mrt_net_dense, "cpu", MR_UPDATE_RMSPROP, 0.003f},
    };
    for (size_t i = 0; i < 4; i++) {
        mr_error err = MR_ERROR_INIT;
        mr_metrics early, late, val;
        mrt_rig rig;
        mrt_batch b;
        mrt_rig_open(&rig, &(mrt_rig_options){.devices = cases[i].devices,
                                              .net = cases[i].net,
                                              .update = cases[i].update,
                                              .lr = cases[i].lr,
                                              .seed = 1});
        for (uint32_t s = 0; s < 5; s++) mrt_train(&rig, s, s * 32, 32);
        MRT_OK(mr_trainer_metrics(rig.t, &early, NULL, &err), &err);
        for (uint32_t s = 5; s < 115; s++) mrt_train(&rig, s, s * 32, 32);
        MRT_OK(mr_trainer_metrics(rig.t, NULL, NULL, &err), &err);
        for (uint32_t s = 115; s < 120; s++) mrt_train(&rig, s, s * 32, 32);
        mrt_batch_make(&b, &rig, 0, 1000000, 32, NULL, 0);
        MRT_OK(mr_trainer_forward(rig.t, &b.b, &err), &err);
        MRT_OK(mr_trainer_metrics(rig.t, &late, &val, &err), &err);
        mrt_batch_free(&b, &rig);
        MRT_EQ(late.count, 160);
        if (!(late.loss_sum < 0.5 * early.loss_sum))
            fail_msg("case %zu: loss %g, then %g", i, early.loss_sum, late.loss_sum);
        if (val.correct < 30) fail_msg("case %zu: %d of 32 right", i, (int)val.correct);
        mrt_rig_close(&rig);
    }
}

static void save(const mrt_rig *rig, const char *path)
{
    mr_error err = MR_ERROR_INIT;
    const mr_checkpoint_info info = {.seed = 3,
                                     .epoch = 1,
                                     .step = 2,
                                     .batch = 32,
                                     .best_val_loss = 0.5,
                                     .epochs_without_better = 4,
                                     .augment = "none"};
    MRT_OK(mr_trainer_save(rig->t, path, &info, &err), &err);
}

static void expect_same_files(const char *a, const char *b)
{
    size_t a_bytes, b_bytes;
    void *a_data = mrt_read_file(a, &a_bytes), *b_data = mrt_read_file(b, &b_bytes);
    MRT_EQ(a_bytes, b_bytes);
    assert_memory_equal(a_data, b_data, a_bytes);
    free(a_data);
    free(b_data);
}

static void test_saved_by_three_loaded_by_one_and_back(void **state)
{
    (void)state;
    for (int kind = 0; kind < MR_UPDATE_KIND_COUNT; kind++) {
        mr_error err = MR_ERROR_INIT;
        mr_checkpoint_info info;
        mrt_rig three, one, again;
        mrt_rig_options o = {
            .devices = "cpu:3", .net = mrt_net_norm, .update = (mr_update_kind)kind, .parts = 3};
        mrt_rig_open(&three, &o);
        for (uint32_t s = 0; s < 4; s++) mrt_train(&three, s, s * 31, 31);
        save(&three, mrt_path("three.mrck"));
        o.devices = "cpu";
        o.seed = 77; /* other initial weights: all must come from the file */
        mrt_rig_open(&one, &o);
        MRT_OK(mr_trainer_load(one.t, mrt_path("three.mrck"), &info, &err), &err);
        MRT_TRUE(info.epoch == 1 && info.step == 2 && info.updates == 4 && info.best_val_loss == 0.5);
        MRT_STR(info.model, "toy-norm");
        MRT_EQ(info.param_count, mr_net_param_count(one.net));
        MRT_TRUE(mrt_same(mrt_hash_of(&three, 2), mrt_hash_of(&one, 0)));
        save(&one, mrt_path("one.mrck"));
        expect_same_files(mrt_path("three.mrck"), mrt_path("one.mrck"));
        o.devices = "cpu:3";
        mrt_rig_open(&again, &o);
        MRT_OK(mr_trainer_load(again.t, mrt_path("one.mrck"), NULL, &err), &err);
        for (uint32_t s = 4; s < 7; s++) { /* optimizer state and update count came along */
            mrt_train(&three, s, s * 31, 31);
            mrt_train(&again, s, s * 31, 31);
        }
        for (uint32_t r = 0; r < 3; r++) MRT_TRUE(mrt_same(mrt_hash_of(&three, r), mrt_hash_of(&again, r)));
        mrt_rig_close(&three);
        mrt_rig_close(&one);
        mrt_rig_close(&again);
    }
}

static void test_resume_is_bit_exact(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mrt_rig whole, resumed;
    const mrt_rig_options o = {.devices = "cpu:2", .update = MR_UPDATE_ADAM, .seed = 4};
    mrt_rig_open(&whole, &o);
    for (uint32_t s = 0; s < 3; s++) mrt_train(&whole, s, s * 32, 32);
    save(&whole, mrt_path("middle.mrck"));
    for (uint32_t s = 3; s < 6; s++) mrt_train(&whole, s, s * 32, 32);
    mrt_rig_open(&resumed, &o);
    MRT_OK(mr_trainer_load(resumed.t, mrt_path("middle.mrck"), NULL, &err), &err);
    for (uint32_t s = 3; s < 6; s++) mrt_train(&resumed, s, s * 32, 32);
    MRT_TRUE(mrt_same(mrt_hash_of(&whole, 0), mrt_hash_of(&resumed, 0)));
    mrt_rig_close(&whole);
    mrt_rig_close(&resumed);
}

static void test_inference_only(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_metrics a, b;
    mrt_rig full, bare;
    mrt_batch batch;
    static mr_net *(*const nets[])(void) = {mrt_net_conv, mrt_net_norm, mrt_net_dense};
    for (size_t i = 0; i < 3; i++) {
        mrt_rig_open(&full, &(mrt_rig_options){.update = MR_UPDATE_ADAM, .net = nets[i]});
        for (uint32_t s = 0; s < 3; s++) mrt_train(&full, s, s * 32, 32);
        save(&full, mrt_path("inference.mrck"));
        mrt_rig_open(&bare, &(mrt_rig_options){.inference = true, .net = nets[i], .seed = 5});
        MRT_OK(mr_trainer_load(bare.t, mrt_path("inference.mrck"), NULL, &err), &err);
        MRT_TRUE(bare.t->team.replicas[0].plan.memory_bytes < full.t->team.replicas[0].plan.memory_bytes);
        MRT_TRUE(!bare.t->team.replicas[0].memory.grads && !bare.t->team.replicas[0].memory.slot[0]);
        mrt_rig *rigs[] = {&full, &bare};
        mr_metrics *sums[] = {&a, &b};
        for (int k = 0; k < 2; k++) {
            mrt_batch_make(&batch, rigs[k], 0, 500, 32, NULL, 0);
            MRT_OK(mr_trainer_forward(rigs[k]->t, &batch.b, &err), &err);
            MRT_OK(mr_trainer_metrics(rigs[k]->t, NULL, sums[k], &err), &err);
            if (k == 1) MRT_EQ(mr_trainer_step(rigs[k]->t, &batch.b, &err), MR_EINVAL);
            mrt_batch_free(&batch, rigs[k]);
        }
        MRT_TRUE(a.count == 32 && b.count == 32 && a.correct == b.correct &&
                 fabs(a.loss_sum - b.loss_sum) < 1e-5 * a.loss_sum);
        const mr_checkpoint_info info = {0};
        MRT_EQ(mr_trainer_save(bare.t, mrt_path("no.mrck"), &info, &err), MR_EINVAL);
        mrt_rig_close(&full);
        mrt_rig_close(&bare);
    }
}

static void test_nothing_counted_changes_nothing(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_metrics m;
    mrt_rig rig;
    mrt_batch b;
    mrt_rig_open(&rig, &(mrt_rig_options){.devices = "cpu:2"});
    const mrt_hash before = mrt_hash_of(&rig, 0);
    mrt_batch_make(&b, &rig, 0, 0, 4, NULL, 4);
    MRT_OK(mr_trainer_step(rig.t, &b.b, &err), &err);
    MRT_OK(mr_trainer_metrics(rig.t, &m, NULL, &err), &err);
    MRT_TRUE(m.count == 0 && m.loss_sum == 0 && mrt_same(before, mrt_hash_of(&rig, 1)));
    MRT_EQ(rig.t->updates, 1);
    mrt_batch_free(&b, &rig);
    mrt_rig_close(&rig);
}

static void test_what_does_not_fit_is_refused(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mrt_rig rig, other;
    mrt_batch b;
    mrt_rig_open(&rig, &(mrt_rig_options){.devices = "cpu:2", .batch = 9});
    const mrt_hash before = mrt_hash_of(&rig, 0);
    mrt_batch_make(&b, &rig, 0, 0, 9, (const uint32_t[]){6, 3}, 0);
    MRT_EQ(mr_trainer_step(rig.t, &b.b, &err), MR_EINVAL);
    MRT_HAS(err.text, "at most 5");
    b.b.part_count = 1;
    MRT_EQ(mr_trainer_forward(rig.t, &b.b, &err), MR_EINVAL);
    MRT_HAS(err.text, "1 parts, the trainer 2");
    b.b.part_count = 2, b.parts[0].count = 5;
    MRT_EQ(mr_trainer_step(rig.t, &b.b, &err), MR_EINVAL);
    MRT_HAS(err.text, "parts have 8 samples, the batch has 9");
    b.parts[1].count = 4, b.parts[1].form = (mr_part_form)1; /* one that a later loader may bring */
    MRT_EQ(mr_trainer_step(rig.t, &b.b, &err), MR_EUNSUPPORTED);
    MRT_HAS(err.text, "part 1 of the batch comes in form 1");
    mrt_batch_free(&b, &rig);

    mrt_rig_open(&other, &(mrt_rig_options){.net = mrt_net_dense});
    save(&other, mrt_path("other.mrck"));
    MRT_EQ(mr_trainer_load(rig.t, mrt_path("other.mrck"), NULL, &err), MR_EINVAL);
    MRT_HAS(err.text, "832"); /* parameters of the one ... */
    char own[32];
    snprintf(own, sizeof own, "with %llu", (unsigned long long)mr_net_param_count(rig.net));
    MRT_HAS(err.text, own); /* ... and of the other */
    mrt_rig_close(&other);
    mrt_rig_open(&other, &(mrt_rig_options){.update = MR_UPDATE_ADAM});
    save(&other, mrt_path("adam.mrck"));
    MRT_EQ(mr_trainer_load(rig.t, mrt_path("adam.mrck"), NULL, &err), MR_EINVAL);
    MRT_HAS(err.text, "optimizer");
    mrt_rig_close(&other);

    size_t bytes;
    save(&rig, mrt_path("hurt.mrck"));
    uint8_t *data = mrt_read_file(mrt_path("hurt.mrck"), &bytes);
    data[bytes - 100] ^= 1;
    mrt_write_file(mrt_path("hurt.mrck"), data, bytes);
    free(data);
    MRT_EQ(mr_trainer_load(rig.t, mrt_path("hurt.mrck"), NULL, &err), MR_ECHECKSUM);
    MRT_TRUE(mrt_same(before, mrt_hash_of(&rig, 0))); /* no refused file touched a weight */
    mrt_rig_close(&rig);
}

static void test_memory_limit(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mrt_rig rig;
    mrt_rig_options o = {.devices = "cpu:2", .batch = 4000, .memory_bytes = 2 << 20};
    MRT_EQ(mrt_rig_try(&rig, &o, &err), MR_ELIMIT);
    const char *fits = strstr(err.text, "a global batch of about ");
    assert_non_null(fits);
    o.batch = (uint32_t)atoi(fits + strlen("a global batch of about "));
    MRT_TRUE(o.batch > 100 && o.batch < 4000);
    MRT_OK(mrt_rig_try(&rig, &o, &err), &err); /* the batch it reported to fit does fit */
    MRT_TRUE(rig.t->team.replicas[0].plan.memory_bytes <= o.memory_bytes);
    mrt_rig_close(&rig);
    o.memory_bytes = 1000;
    MRT_EQ(mrt_rig_try(&rig, &o, &err), MR_ELIMIT);
    MRT_HAS(err.text, "not even a batch of one");
}

static int open_with(mr_trainer_config *cfg, mr_error *err)
{
    mr_trainer *t = (mr_trainer *)cfg; /* poison */
    const int rc = mr_trainer_open(&t, cfg, err);
    MRT_TRUE(rc == MR_OK || t == NULL);
    mr_trainer_close(t);
    return rc;
}

static void test_settings_are_checked(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mrt_rig rig;
    mrt_rig_open(&rig, &(mrt_rig_options){0});
    mr_trainer_config good, cfg;
    mr_trainer_defaults(&good);
    good.net = rig.net, good.devices = rig.devices, good.device_count = 1;
    MRT_OK(open_with(&good, &err), &err);
#define REFUSED(change) (cfg = good, change, MRT_EQ(open_with(&cfg, &err), MR_EINVAL))
    REFUSED(cfg.struct_size = 8);
    REFUSED(cfg.net = NULL);
    REFUSED(cfg.device_count = 0);
    REFUSED(cfg.device_count = 65);
    REFUSED(cfg.batch = 0);
    REFUSED(cfg.schedule.lr = 0);
    REFUSED(cfg.schedule.lr = NAN);
    REFUSED(cfg.std[0] = 0);
    REFUSED(cfg.mean[0] = INFINITY);
    cfg = good;
    cfg.schedule.kind = MR_LR_COSINE; /* counts epochs, and nobody said how long one is */
    mr_trainer *t;
    mrt_batch b;
    MRT_OK(mr_trainer_open(&t, &cfg, &err), &err);
    mrt_batch_make(&b, &rig, 0, 0, 4, NULL, 0);
    MRT_EQ(mr_trainer_step(t, &b.b, &err), MR_EINVAL);
    MRT_HAS(err.text, "steps_per_epoch");
    mr_trainer_close(t);
    mrt_batch_free(&b, &rig);
    mrt_rig_close(&rig);
    mr_trainer_close(NULL);
}

static void test_events_tell_what_ran_when(void **state)
{
    (void)state;
    enum { STEPS = 9, WARMUP = 2 };
    mr_error err = MR_ERROR_INIT;
    mr_trace *trace;
    mrt_rig rig;
    MRT_EQ(mr_trace_create(&trace, 1000), MR_OK);
    mrt_rig_open(&rig, &(mrt_rig_options){.devices = "cpu:2", .trace = trace});
    mri_step_log_start(&rig.t->flights.log, 2, WARMUP);
    mrt_batch b;
    mrt_batch_make(&b, &rig, 0, 0, 32, NULL, 0);
    for (uint32_t s = 0; s < STEPS; s++) {
        b.b.global_step = s;
        MRT_OK(mr_trainer_step(rig.t, &b.b, &err), &err);
        MRT_TRUE(rig.t->flights.queued - rig.t->flights.harvested <= MRI_RUN_AHEAD);
    }
    MRT_OK(mri_flights_drain(&rig.t->flights, &err), &err);
    const mri_step_log *log = &rig.t->flights.log;
    MRT_EQ(log->steps, STEPS);
    MRT_EQ(log->samples, 32 * (STEPS - WARMUP));
    MRT_EQ(log->step_ms.count, STEPS - WARMUP);
    mr_trace_entry *spans;
    size_t count, computed = 0;
    uint64_t begun[2] = {0}, ended[2] = {0}, before[2] = {0}, next[2] = {0}, warm[2] = {0}, idle_ns = 0;
    MRT_EQ(mr_trace_entries(trace, &spans, &count), MR_OK);
    for (size_t i = 0; i < count; i++) {
        const mr_trace_entry *e = &spans[i];
        const int r = strcmp(e->track, "compute cpu:1") == 0 || strcmp(e->track, "stall 1") == 0;
        if (strncmp(e->track, "stall", 5) == 0) { /* between the step before and this one, which is there
                                                     already */
            MRT_STR(e->name, "unknown");          /* nobody knows a loader */
            MRT_EQ(e->batch, next[r] - 1);
            MRT_TRUE(e->start_ns == before[r] && e->end_ns == begun[r]);
            if (e->batch >= WARMUP) idle_ns += e->end_ns - e->start_ns;
            continue;
        }
        computed++;
        if (!r) MRT_STR(e->track, "compute cpu:0");
        MRT_STR(e->name, "compute");
        MRT_EQ(e->batch, next[r]++);
        MRT_TRUE(e->start_ns >= ended[r] && e->end_ns > e->start_ns);
        before[r] = ended[r];
        begun[r] = e->start_ns;
        ended[r] = e->end_ns;
        if (e->batch == WARMUP - 1) warm[r] = ended[r];
    }
    MRT_EQ(computed, 2 * STEPS);
    MRT_TRUE(fabs(log->exposed_ns - 0.5 * (double)idle_ns) < 10);
    /* every nanosecond of the measured window is either computing or exposed */
    const double whole = 0.5 * (double)(ended[0] - warm[0] + ended[1] - warm[1]);
    MRT_TRUE(log->compute_ns > 0 && fabs(log->compute_ns + log->exposed_ns - whole) < 10);
    free(spans);
    mrt_batch_free(&b, &rig);
    mrt_rig_close(&rig);
    mr_trace_destroy(trace);
}

static void test_allocation_failures(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_devices_config devices;
    mr_device **devs;
    uint32_t count;
    mr_net *net = mrt_net_norm();
    mr_devices_defaults(&devices);
    devices.compute_threads = 1;
    devices.reference = true; /* oneDNN's own allocations are not ours to fail */
    MRT_OK(mr_devices_open(&devs, &count, "cpu:2", &devices, &err), &err);
    mr_trainer_config cfg;
    mr_trainer_defaults(&cfg);
    cfg.net = net, cfg.devices = devs, cfg.device_count = count, cfg.batch = 8,
    cfg.update.kind = MR_UPDATE_ADAM;
    for (int n = 0;; n += MRT_TURN) {
        mr_trainer *t = (mr_trainer *)&cfg;
        mrt_fail_alloc_at(n);
        const int rc = mr_trainer_open(&t, &cfg, &err);
        mrt_fail_alloc_at(-1);
        if (rc == MR_OK) {
            mr_trainer_close(t);
            MRT_TRUE(n > 20);
            break;
        }
        MRT_EQ(rc, MR_ENOMEM);
        MRT_TRUE(t == NULL);
    }
    mr_trainer *t;
    uint64_t lo, hi;
    MRT_OK(mr_trainer_open(&t, &cfg, &err), &err);
    const mr_checkpoint_info info = {0};
    for (int n = 0, done = 0; !done; n += MRT_TURN) {
        mrt_fail_alloc_at(n);
        int rc = mr_trainer_weights_hash(t, 0, &lo, &hi, &err);
        if (rc == MR_OK) rc = mr_trainer_save(t, mrt_path("alloc.mrck"), &info, &err);
        if (rc == MR_OK) rc = mr_trainer_load(t, mrt_path("alloc.mrck"), NULL, &err);
        mrt_fail_alloc_at(-1);
        done = rc == MR_OK;
        if (!done) MRT_EQ(rc, MR_ENOMEM);
        MRT_TRUE(n < 1000);
    }
    mr_trainer_close(t);
    mr_devices_close(devs, count);
    mr_net_destroy(net);
}

/* Ops prepare themselves on their stream at the first batch of a size: memory refused there is an error of
 * the device. */
static void test_a_failed_step_ends_the_trainer(void **state)
{
    (void)state;
    uint32_t failures = 0;
    for (int n = 0, done = 0; !done; n += MRT_TURN) {
        mr_error err = MR_ERROR_INIT, again = MR_ERROR_INIT;
        mrt_rig rig;
        mrt_batch b;
        uint64_t lo, hi;
        mrt_rig_open(&rig, &(mrt_rig_options){.net = mrt_net_dense});
        mrt_batch_make(&b, &rig, 0, 0, 17, NULL, 0);
        mrt_fail_alloc_at(n);
        int rc = mr_trainer_step(rig.t, &b.b, &err);
        if (rc == MR_OK) rc = mri_flights_drain(&rig.t->flights, &err);
        done = !mrt_alloc_failed();
        mrt_fail_alloc_at(-1);
        if (done) MRT_OK(rc, &err);
        if (rc) {
            const mr_checkpoint_info info = {0};
            failures++;
            MRT_TRUE(err.text[0]);
            MRT_EQ(mr_trainer_step(rig.t, &b.b, &again), rc);
            MRT_STR(again.text, err.text);
            MRT_EQ(mr_trainer_forward(rig.t, &b.b, &again), rc);
            MRT_EQ(mr_trainer_metrics(rig.t, NULL, NULL, &again), rc);
            MRT_EQ(mr_trainer_weights_hash(rig.t, 0, &lo, &hi, &again), rc);
            MRT_EQ(mr_trainer_save(rig.t, mrt_path("failed.mrck"), &info, &again), rc);
            MRT_STR(again.text, err.text);
            for (uint32_t r = 0; r < rig.count; r++) mr_stream_sync(rig.t->team.streams[r], NULL);
            mr_device_free(rig.devices[0], b.memory[0]);
        } else {
            mrt_batch_free(&b, &rig);
        }
        mrt_rig_close(&rig);
    }
    MRT_TRUE(failures > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_learns_a_toy_problem),
        cmocka_unit_test(test_saved_by_three_loaded_by_one_and_back),
        cmocka_unit_test(test_resume_is_bit_exact),
        cmocka_unit_test(test_inference_only),
        cmocka_unit_test(test_nothing_counted_changes_nothing),
        cmocka_unit_test(test_what_does_not_fit_is_refused),
        cmocka_unit_test(test_memory_limit),
        cmocka_unit_test(test_settings_are_checked),
        cmocka_unit_test(test_events_tell_what_ran_when),
        cmocka_unit_test(test_a_failed_step_ends_the_trainer),
        cmocka_unit_test(test_allocation_failures),
    };
    return mrt_run(tests);
}
