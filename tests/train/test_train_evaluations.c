/* Evaluation inside epochs: when it is due, that it changes no bit of training, that an interrupted one is
 * done first when the run resumes, and its effects: the best checkpoint, patience, stopping at an
 * accuracy. */
#include <math.h>

#include "tests/train/fit_rig.h"

static const run_options few = {
    .rig = {.devices = "cpu:2", .update = MR_UPDATE_ADAM, .seed = 2}, .epochs = 3, .prefetch = 2};

typedef struct how {
    uint64_t eval_steps, checkpoint_steps, stop_at_step, max_steps;
    const double *at;
    uint32_t at_count, patience;
    double accuracy;
    bool no_val;
} how;

/* One call, from the newest checkpoint of the folder (may be NULL) where there is one. *val: an evaluation at
 * its end, by mr_evaluate(). */
static int train(const char *folder, const run_options *o, const how *h, seen *s, mrt_hash *hash, double *val,
                 mr_error *err)
{
    run r;
    run_options from = *o;
    mr_checkpoint_info info;
    char path[1024];
    const bool resumed =
        folder && mr_checkpoint_find(folder, path, sizeof path, &info, NULL, 0, NULL) == MR_OK;
    if (resumed) from.start_epoch = info.epoch, from.start_step = info.step;
    if (resumed && from.epochs <= info.epoch) from.epochs = info.epoch + 1;
    run_open(&r, &from);
    if (resumed) MRT_OK(mr_trainer_load(r.rig.t, path, NULL, err), err);
    mr_fit_config cfg = fit_config(&r, s, folder);
    cfg.epochs = o->epochs;
    cfg.eval_steps = h->eval_steps;
    cfg.eval_at = h->at;
    cfg.eval_at_count = h->at_count;
    cfg.checkpoint_steps = h->checkpoint_steps;
    cfg.patience = h->patience;
    cfg.max_steps = h->max_steps;
    cfg.stop_at_accuracy = h->accuracy;
    if (h->no_val) cfg.val = NULL;
    s->stop_at_step = h->stop_at_step;
    const int rc = mr_fit(r.rig.t, r.train, &cfg, NULL, err);
    if (hash) *hash = mrt_hash_of(&r.rig, 0);
    if (val) MRT_OK(mr_evaluate(r.rig.t, r.val, val, NULL, NULL, err), err);
    run_close(&r);
    return rc;
}

static void check_eval(const mr_eval_report *e, uint64_t epoch, uint64_t step)
{
    MRT_TRUE(e->epoch == epoch && e->step == step && e->steps_per_epoch == STEPS &&
             e->updates == epoch * STEPS + step && e->samples == VAL);
    MRT_TRUE(e->loss > 0 && e->accuracy >= 0 && e->accuracy <= 1 && e->seconds > 0 && !e->diverged &&
             !e->simulated);
}

static void test_training_does_not_notice(void **state)
{
    (void)state;
    static const char *const devices[] = {"cpu", "cpu:3"};
    mr_error err = MR_ERROR_INIT;
    for (size_t i = 0; i < 2; i++)
        for (int norm = 0; norm < 2; norm++) {
            seen without, with;
            mrt_hash expected, hash;
            run_options o = few;
            o.rig.devices = devices[i];
            o.rig.net = norm ? mrt_net_norm : NULL;
            o.rig.average = norm ? 0.9f : 0;
            MRT_OK(train(NULL, &o, &(how){0}, &without, &expected, NULL, &err), &err);
            MRT_OK(train(NULL, &o, &(how){.eval_steps = 1}, &with, &hash, NULL, &err), &err);
            MRT_TRUE(mrt_same(expected, hash));
            MRT_TRUE(without.evals == 0 && with.evals == 3 * (STEPS - 1) && with.epochs == 3);
            for (uint64_t k = 0; k < with.evals; k++)
                check_eval(&with.eval[k], k / (STEPS - 1), k % (STEPS - 1) + 1);
            for (uint64_t e = 0; e < 3; e++) {
                const mr_report *a = &without.report[e], *b = &with.report[e];
                MRT_TRUE(a->loss == b->loss && a->accuracy == b->accuracy && a->val_loss == b->val_loss &&
                         a->val_accuracy == b->val_accuracy && a->steps == b->steps &&
                         a->samples == b->samples);
                MRT_TRUE(b->stall_fraction >= 0 && b->stall_fraction <= 1 && b->samples_per_s > 0);
            }
        }
}

/* It reports the result of any other evaluation at that step: of the average, where the rule keeps one. */
static void test_it_is_an_evaluation_like_every_other(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    for (int averaged = 0; averaged < 2; averaged++) {
        seen s, part;
        double loss;
        run_options o = few;
        o.rig.average = averaged ? 0.8f : 0;
        MRT_OK(train(NULL, &o, &(how){.eval_steps = 7}, &s, NULL, NULL, &err), &err);
        MRT_EQ(s.evals, 2);
        check_eval(&s.eval[0], 1, 2);
        check_eval(&s.eval[1], 2, 4);
        for (int k = 0; k < 2; k++) {
            MRT_OK(train(NULL, &o, &(how){.max_steps = 7 * (uint64_t)(k + 1)}, &part, NULL, &loss, &err),
                   &err);
            MRT_TRUE(loss == s.eval[k].loss);
        }
    }
}

static void test_points(void **state)
{
    (void)state;
    /* in steps: 3 (2.5), 6, 15 and 5 (ends of epochs), 1, 7, 75 (never) */
    static const double at[] = {0.5, 1.2, 3, 1, 0.2, 1.4, 15};
    static const uint64_t expected[] = {1, 3, 6, 7};
    mr_error err = MR_ERROR_INIT;
    seen s;
    how h = {.at = at, .at_count = 7};
    for (int both = 0; both < 2; both++) { /* twice at 6 is once */
        h.eval_steps = both ? 6 : 0;
        MRT_OK(train(NULL, &few, &h, &s, NULL, NULL, &err), &err);
        MRT_EQ(s.evals, both ? 5 : 4);
        for (int k = 0; k < 4; k++) check_eval(&s.eval[k], expected[k] / STEPS, expected[k] % STEPS);
        if (both) check_eval(&s.eval[4], 2, 2);
        MRT_EQ(s.epochs, 3);
    }
}

/* Two checkpoints, but for the name of the run and the checksum that it is part of. */
static void check_same_state(const char *a, const char *b)
{
    size_t bytes[2];
    uint8_t *p = mrt_read_file(a, &bytes[0]), *q = mrt_read_file(b, &bytes[1]);
    MRT_EQ(bytes[0], bytes[1]);
    memset(p + 744, 0, 16), memset(q + 744, 0, 16);
    memset(p + 1020, 0, 4), memset(q + 1020, 0, 4);
    assert_memory_equal(p, q, bytes[0]);
    free(p);
    free(q);
}

static void check_same_end(const char *a, const char *b, const char *name)
{
    char left[1024], right[1024];
    snprintf(left, sizeof left, "%s/%s", a, name);
    snprintf(right, sizeof right, "%s/%s", b, name);
    check_same_state(left, right);
}

/* Stopped at every step, in an evaluation or not: both calls together make the evaluations of one run. */
static void test_stopped_anywhere_it_goes_on(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_checkpoint_info info;
    seen whole, s;
    mrt_hash expected, hash;
    how h = {.eval_steps = 2, .checkpoint_steps = 3};
    MRT_OK(train(mrt_path("whole"), &few, &h, &whole, &expected, NULL, &err), &err);
    MRT_EQ(whole.evals, 6); /* 2, 4, 6, 8, 12, 14 */
    for (uint64_t stop = 1; stop < 3 * STEPS; stop++) {
        const char *folder = mrt_path("stopped-%d", (int)stop);
        h.stop_at_step = stop;
        MRT_EQ(train(folder, &few, &h, &s, NULL, NULL, &err), MR_ECANCELED);
        const uint64_t first = s.evals;
        const bool pending = stop % 2 == 0 && stop % STEPS != 0;
        MRT_OK(mr_checkpoint_find(folder, NULL, 0, &info, NULL, 0, &err), &err);
        MRT_TRUE(info.updates == stop && info.evaluation_pending == pending);
        h.stop_at_step = 0;
        MRT_OK(train(folder, &few, &h, &s, &hash, NULL, &err), &err);
        MRT_TRUE(mrt_same(expected, hash));
        MRT_EQ(first + s.evals, whole.evals);
        for (uint64_t k = 0; k < s.evals; k++) {
            const mr_eval_report *a = &whole.eval[first + k], *b = &s.eval[k];
            MRT_TRUE(a->updates == b->updates && a->loss == b->loss && a->accuracy == b->accuracy &&
                     a->best == b->best);
        }
        check_same_end(mrt_path("whole"), folder, "step-000000000015.mrck");
        check_same_end(mrt_path("whole"), folder, "best.mrck");
    }
}

/* The lowest loss of all of them, ends of epochs or not, is the best checkpoint. */
static void test_the_best_may_lie_inside_an_epoch(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_checkpoint_info info;
    seen s;
    double least = INFINITY;
    uint64_t at = 0;
    const char *folder = mrt_path("best");
    MRT_OK(train(folder, &few, &(how){.eval_steps = 1}, &s, NULL, NULL, &err), &err);
    for (uint64_t updates = 1; updates <= 3 * STEPS; updates++) {
        const uint64_t epoch = (updates - 1) / STEPS;
        const bool inside = updates % STEPS != 0;
        const mr_eval_report *e = inside ? &s.eval[updates - 1 - epoch] : NULL;
        const double loss = e ? e->loss : s.report[epoch].val_loss;
        if (e) MRT_TRUE(e->updates == updates && e->best == (loss < least));
        if (loss < least) least = loss, at = updates;
    }
    MRT_OK(mr_checkpoint_find(mrt_path("best/best.mrck"), NULL, 0, &info, NULL, 0, &err), &err);
    MRT_TRUE(info.updates == at && info.best_val_loss == least && info.best_updates == at);
}

static void test_patience_counts_ends_of_epochs(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    seen s;
    run_options still = few;
    still.epochs = 20;
    still.rig.update = MR_UPDATE_SGD, still.rig.lr = 1e-30f; /* nothing moves: the first one is the best */
    MRT_OK(train(NULL, &still, &(how){.eval_steps = 2, .patience = 2}, &s, NULL, NULL, &err), &err);
    MRT_TRUE(s.epochs == 2 && s.eval[0].best && !s.eval[1].best);
    MRT_HAS(s.messages, "stopped early");
}

/* Good enough in the middle: the run ends there, and has a checkpoint of it. */
static void test_an_accuracy_may_be_reached_inside_an_epoch(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_checkpoint_info info;
    seen whole, s;
    uint64_t at = 0;
    const char *folder = mrt_path("reached"), *cut = mrt_path("reached-cut");
    MRT_OK(train(NULL, &few, &(how){.eval_steps = 1}, &whole, NULL, NULL, &err), &err);
    double most = whole.eval[0].accuracy;
    for (uint64_t k = 1; k < whole.evals && !at; k++) { /* the first that is better than all before */
        const uint64_t epoch = k / (STEPS - 1);
        if (k % (STEPS - 1) == 0) most = fmax(most, whole.report[epoch - 1].val_accuracy);
        if (whole.eval[k].accuracy > most) at = k;
        most = fmax(most, whole.eval[k].accuracy);
    }
    MRT_TRUE(at > 0);
    const uint64_t updates = whole.eval[at].updates, epochs = whole.eval[at].epoch;
    how h = {.eval_steps = 1, .accuracy = whole.eval[at].accuracy};
    MRT_OK(train(folder, &few, &h, &s, NULL, NULL, &err), &err);
    MRT_TRUE(s.steps == updates && s.evals == at + 1 && s.epochs == epochs);
    MRT_HAS(s.messages, "stopped: accuracy");
    MRT_OK(mr_checkpoint_find(folder, NULL, 0, &info, NULL, 0, &err), &err);
    MRT_TRUE(info.updates == updates && info.reached_updates == updates &&
             info.reached_accuracy == h.accuracy);
    MRT_OK(train(folder, &few, &h, &s, NULL, NULL, &err), &err);
    MRT_TRUE(s.steps == 0 && s.evals == 0);

    h.stop_at_step = updates; /* in the evaluation that would have ended it */
    MRT_EQ(train(cut, &few, &h, &s, NULL, NULL, &err), MR_ECANCELED);
    h.stop_at_step = 0;
    MRT_OK(train(cut, &few, &h, &s, NULL, NULL, &err), &err);
    MRT_TRUE(s.steps == 0 && s.evals == 1);
    MRT_OK(mr_checkpoint_find(cut, NULL, 0, &info, NULL, 0, &err), &err);
    MRT_TRUE(info.reached_updates == updates && !info.evaluation_pending);
}

static void test_what_makes_no_sense_is_refused(void **state)
{
    (void)state;
    static const double wrong[] = {0, -1, NAN, INFINITY};
    mr_error err = MR_ERROR_INIT;
    seen s;
    for (size_t i = 0; i < 4; i++) {
        const double at[] = {0.5, wrong[i]};
        MRT_EQ(train(NULL, &few, &(how){.at = at, .at_count = 2}, &s, NULL, NULL, &err), MR_EINVAL);
        MRT_HAS(err.text, "expected a number above 0");
    }
    MRT_EQ(train(NULL, &few, &(how){.at_count = 1}, &s, NULL, NULL, &err), MR_EINVAL);
    MRT_EQ(train(NULL, &few, &(how){.eval_steps = 1, .no_val = true}, &s, NULL, NULL, &err), MR_EINVAL);
    MRT_HAS(err.text, "expected validation data");
    MRT_EQ(s.steps, 0);
}

/* ---- state before a call ---- */

static void take(const run *r, mr_loader *l, uint32_t batches)
{
    mr_error err = MR_ERROR_INIT;
    mr_batch b;
    for (uint32_t i = 0; i < batches; i++) {
        MRT_OK(mr_loader_next(l, &b, MR_FOREVER, &err), &err);
        MRT_EQ(mr_loader_release(l, &b, mr_trainer_streams(r->rig.t)), MR_OK);
    }
}

/* A new run begins with the first batch of a loader, and an old one goes on where it is. */
static void test_no_run_begins_behind_the_batches_of_another(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    run r;
    seen s;
    mr_trainer *second;
    run_open(&r, &usual);
    mr_fit_config cfg = fit_config(&r, &s, NULL);
    mr_trainer_config same = r.rig.t->cfg;
    MRT_OK(mr_trainer_open(&second, &same, &err), &err);
    for (uint32_t parts = 0; parts < 2; parts++) { /* up to the middle of an epoch, to the end of one */
        cfg.max_steps = parts ? 2 : STEPS - 2;
        MRT_OK(mr_fit(r.rig.t, r.train, &cfg, NULL, &err), &err);
        s.steps = 0;
        MRT_EQ(mr_fit(second, r.train, &cfg, NULL, &err), MR_EINVAL);
        MRT_HAS(err.text,
                parts ? "delivered 5 batches and is at epoch 1, step 0; the trainer is at epoch 0, step 0"
                      : "delivered 3 batches and is at epoch 0, step 3; the trainer is at epoch 0, step 0");
        MRT_EQ(s.steps, 0);
    }
    cfg.max_steps = 0;
    MRT_OK(mr_fit(r.rig.t, r.train, &cfg, NULL, &err), &err); /* the refused calls took no batch */
    MRT_EQ(s.steps, 3 * STEPS);
    mr_trainer_close(second);
    run_close(&r);
}

static void test_batches_that_nobody_trained_on_are_missed(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    run r;
    seen s;
    run_open(&r, &usual);
    mr_fit_config cfg = fit_config(&r, &s, NULL);
    cfg.max_steps = 2;
    MRT_OK(mr_fit(r.rig.t, r.train, &cfg, NULL, &err), &err);
    take(&r, r.train, 1);
    MRT_EQ(mr_fit(r.rig.t, r.train, &cfg, NULL, &err), MR_EINVAL);
    MRT_HAS(err.text, "is at epoch 0, step 3; the trainer is at epoch 0, step 2");
    run_close(&r);
    mr_batch b; /* with steps of the program's own the run goes on */
    run_open(&r, &usual);
    cfg = fit_config(&r, &s, NULL);
    MRT_OK(mr_loader_next(r.train, &b, MR_FOREVER, &err), &err);
    MRT_OK(mr_trainer_step(r.rig.t, &b, &err), &err);
    MRT_EQ(mr_loader_release(r.train, &b, mr_trainer_streams(r.rig.t)), MR_OK);
    MRT_OK(mr_fit(r.rig.t, r.train, &cfg, NULL, &err), &err);
    MRT_EQ(s.steps, 4 * STEPS - 1);
    MRT_EQ(s.report[0].samples, TRAIN - BATCH); /* without the step before the call */
    run_close(&r);
}

static void test_an_evaluation_is_whole_wherever_the_loader_is(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    run_options o = usual;
    double loss, whole;
    uint64_t count;
    run r;
    o.val_batch = 10, o.rig.inference = true;
    run_open(&r, &o);
    MRT_OK(mr_evaluate(r.rig.t, r.val, &whole, NULL, NULL, &err), &err);
    for (uint32_t batches = 0; batches <= 4; batches++) { /* of four */
        take(&r, r.val, batches);
        MRT_OK(mr_evaluate(r.rig.t, r.val, &loss, NULL, &count, &err), &err);
        MRT_TRUE(count == VAL && loss == whole);
    }
    mr_loader *once;
    mr_loader_config cfg;
    mr_loader_defaults(&cfg);
    cfg.batch = 10, cfg.epochs = 2, cfg.start_epoch = 1, cfg.devices = r.rig.devices,
    cfg.device_count = r.rig.count;
    MRT_OK(mr_loader_open(&once, r.val_set, &cfg, &err), &err);
    take(&r, once, 1);
    MRT_EQ(mr_evaluate(r.rig.t, once, &loss, NULL, &count, &err), MR_EINVAL);
    MRT_HAS(err.text, "the loader was at step 1 of its last epoch, 1");
    mr_loader_close(once);
    run_close(&r);
}

static mr_net *fewer_classes(void)
{
    mr_net *net;
    MRT_EQ(mr_net_create(&net, "few", MRT_SIDE, MRT_SIDE, 1), MR_OK);
    mr_net_dense(net, MRT_CLASSES - 1, MR_ACT_NONE);
    return net;
}

/* Labels that are no classes are an error of the evaluation that met them, and of no later one. */
static void test_a_trainer_survives_bad_labels(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    const int stop = 1;
    double loss, whole;
    uint64_t count;
    mrt_batch bad;
    run r;
    run_options o = usual;
    run_open(&r, &o);
    MRT_OK(mr_evaluate(r.rig.t, r.val, &whole, NULL, NULL, &err), &err);
    mrt_batch_make(&bad, &r.rig, 0, 0, BATCH, NULL, 0);
    *(int32_t *)(uintptr_t)bad.parts[0].labels = MRT_CLASSES;
    for (int stopped = 0; stopped < 2; stopped++) {
        MRT_OK(mr_trainer_forward(r.rig.t, &bad.b, &err), &err);
        if (stopped)
            MRT_EQ(mr_evaluate_until(r.rig.t, r.val, &stop, &loss, NULL, &count, &err), MR_ECANCELED);
        MRT_OK(mr_evaluate(r.rig.t, r.val, &loss, NULL, &count, &err), &err);
        MRT_TRUE(count == VAL && loss == whole);
    }
    mrt_batch_free(&bad, &r.rig);
    run_close(&r);
    o.rig.net = fewer_classes;
    run_open(&r, &o);
    for (int again = 0; again < 2; again++) {
        MRT_EQ(mr_evaluate(r.rig.t, r.val, &loss, NULL, &count, &err), MR_EINVAL);
        MRT_HAS(err.text, "labels of the evaluation data are not below 3");
    }
    mrt_train(&r.rig, 0, 0, 1); /* its label is a class */
    run_close(&r);
}

/* A stop and bad labels of the steps before a call. */
static void test_a_run_after_a_stopped_one(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    const int stop = 1;
    run r;
    seen s;
    run_open(&r, &usual);
    mr_fit_config cfg = fit_config(&r, &s, NULL);
    r.rig.t->team.replicas[0].memory.sums[MRI_SUMS_TRAINING]->bad = 2; /* as on a GPU */
    cfg.stop = &stop;
    MRT_EQ(mr_fit(r.rig.t, r.train, &cfg, NULL, &err), MR_ECANCELED);
    cfg.stop = NULL;
    MRT_OK(mr_fit(r.rig.t, r.train, &cfg, NULL, &err), &err);
    MRT_TRUE(s.steps == 4 * STEPS && s.report[0].samples == TRAIN);
    run_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_training_does_not_notice),
        cmocka_unit_test(test_it_is_an_evaluation_like_every_other),
        cmocka_unit_test(test_points),
        cmocka_unit_test(test_stopped_anywhere_it_goes_on),
        cmocka_unit_test(test_the_best_may_lie_inside_an_epoch),
        cmocka_unit_test(test_patience_counts_ends_of_epochs),
        cmocka_unit_test(test_an_accuracy_may_be_reached_inside_an_epoch),
        cmocka_unit_test(test_what_makes_no_sense_is_refused),
        cmocka_unit_test(test_no_run_begins_behind_the_batches_of_another),
        cmocka_unit_test(test_batches_that_nobody_trained_on_are_missed),
        cmocka_unit_test(test_an_evaluation_is_whole_wherever_the_loader_is),
        cmocka_unit_test(test_a_trainer_survives_bad_labels),
        cmocka_unit_test(test_a_run_after_a_stopped_one),
    };
    return mrt_run(tests);
}
