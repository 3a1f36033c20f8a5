/* A resumed run equals the undisturbed run: its validations, its best checkpoint, its early stop, and its own
 * folder. A run that diverges is reported, and never the best. */
#include <math.h>
#include <unistd.h>

#include "tests/train/fit_rig.h"

static const run_options few = {
    .rig = {.devices = "cpu", .update = MR_UPDATE_ADAM, .seed = 2}, .epochs = 4, .prefetch = 2};

/* Further settings of a test. */
typedef struct how {
    uint32_t patience;
    uint64_t stop_at_step, epochs;
    bool no_val, replace, half_a_pass; /* half_a_pass: of the validation was taken before */
    uint32_t keep;
} how;

/* One call, from the newest checkpoint of the folder where there is one. */
static int train_into(const char *folder, const run_options *o, const how *h, seen *s, mrt_hash *hash,
                      mr_error *err)
{
    run r;
    run_options from = *o;
    mr_checkpoint_info info;
    char path[1024];
    const bool resumed = mr_checkpoint_find(folder, path, sizeof path, &info, NULL, 0, NULL) == MR_OK;
    if (resumed) from.start_epoch = info.epoch, from.start_step = info.step;
    if (resumed && from.epochs <= info.epoch) from.epochs = info.epoch + 1;
    run_open(&r, &from);
    if (resumed) MRT_OK(mr_trainer_load(r.rig.t, path, NULL, err), err);
    mr_fit_config cfg = fit_config(&r, s, folder);
    cfg.epochs = h->epochs ? h->epochs : o->epochs;
    cfg.patience = h->patience;
    cfg.replace = h->replace;
    if (h->keep) cfg.keep = h->keep;
    if (h->no_val) cfg.val = NULL;
    if (h->half_a_pass) {
        mr_batch b;
        MRT_OK(mr_loader_next(r.val, &b, MR_FOREVER, err), err);
        MRT_EQ(mr_loader_release(r.val, &b, mr_trainer_streams(r.rig.t)), MR_OK);
    }
    s->stop_at_step = h->stop_at_step;
    const int rc = mr_fit(r.rig.t, r.train, &cfg, NULL, err);
    if (hash) *hash = mrt_hash_of(&r.rig, 0);
    run_close(&r);
    return rc;
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

static const mr_report *of_epoch(const seen *s, uint64_t epoch)
{
    for (uint64_t i = 0; i < s->epochs && i < 16; i++)
        if (s->report[i].epoch == epoch) return &s->report[i];
    fail_msg("no report of epoch %llu", (unsigned long long)epoch);
    return NULL;
}

static void test_stopped_anywhere_ends_with_the_same_files(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    seen whole, s;
    mrt_hash expected, hash;
    const how undisturbed = {.patience = 3};
    MRT_OK(train_into(mrt_path("whole"), &few, &undisturbed, &whole, &expected, &err), &err);
    MRT_EQ(whole.epochs, 4);
    for (uint64_t stop = 1; stop <= 4 * STEPS; stop += stop % STEPS == 4 ? 1 : 2) { /* 5, 10, 15, 20: in
                                                                                       validation */
        const char *folder = mrt_path("stopped-%d", (int)stop);
        how h = undisturbed;
        h.stop_at_step = stop;
        MRT_EQ(train_into(folder, &few, &h, &s, NULL, &err), MR_ECANCELED);
        h.stop_at_step = 0;
        MRT_OK(train_into(folder, &few, &h, &s, &hash, &err), &err);
        MRT_TRUE(mrt_same(hash, expected));
        const uint64_t first = (stop - 1) / STEPS; /* the epoch in which, or behind which, it was stopped */
        MRT_EQ(s.epochs, 4 - first);
        for (uint64_t e = first; e < 4; e++) {
            const mr_report *a = of_epoch(&whole, e), *b = of_epoch(&s, e);
            MRT_TRUE(b->has_val && a->val_loss == b->val_loss && a->val_accuracy == b->val_accuracy);
            if (e > first || stop % STEPS == 0) MRT_TRUE(a->loss == b->loss && a->accuracy == b->accuracy);
            MRT_EQ(b->steps, e > first ? STEPS : STEPS * (first + 1) - stop);
        }
        check_same_end(mrt_path("whole"), folder, "step-000000000020.mrck");
        check_same_end(mrt_path("whole"), folder, "best.mrck");
    }
}

/* Stopped in validation again and again: it is done once, whole, and first. */
static void test_pending_validation(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    seen whole, s;
    mr_checkpoint_info info;
    const char *folder = mrt_path("pending");
    const run_options one = {.rig = few.rig, .epochs = 1, .prefetch = 2};
    MRT_OK(train_into(mrt_path("pending-whole"), &one, &(how){0}, &whole, NULL, &err), &err);
    MRT_EQ(train_into(folder, &one, &(how){.stop_at_step = STEPS}, &s, NULL, &err), MR_ECANCELED);
    MRT_OK(mr_checkpoint_find(folder, NULL, 0, &info, NULL, 0, &err), &err);
    MRT_TRUE(info.validation_pending && info.epoch == 1 && info.step == 0 && info.best_updates == 0);
    MRT_TRUE(info.epoch_loss == of_epoch(&whole, 0)->loss);
    MRT_OK(train_into(folder, &one, &(how){.half_a_pass = true}, &s, NULL, &err), &err);
    MRT_TRUE(s.steps == 0 && s.epochs == 1 && s.report[0].val_loss == whole.report[0].val_loss);
    MRT_TRUE(s.report[0].steps == 0 && s.report[0].loss == whole.report[0].loss &&
             s.report[0].lr == whole.report[0].lr);
    check_same_end(mrt_path("pending-whole"), folder, "best.mrck");
    MRT_OK(train_into(folder, &one, &(how){0}, &s, NULL, &err), &err); /* nothing is left */
    MRT_TRUE(s.steps == 0 && s.epochs == 0);
}

static void test_early_stop_is_remembered(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    seen s;
    run_options still = few;
    still.epochs = 20;
    still.rig.update = MR_UPDATE_SGD, still.rig.lr = 1e-30f; /* nothing moves: the first epoch is the best */
    const char *folder = mrt_path("early");
    how h = {.patience = 2};
    MRT_OK(train_into(folder, &still, &h, &s, NULL, &err), &err);
    MRT_EQ(s.epochs, 3);
    for (int again = 0; again < 2; again++) {
        MRT_OK(train_into(folder, &still, &h, &s, NULL, &err), &err);
        MRT_TRUE(s.steps == 0 && s.epochs == 0);
        MRT_HAS(s.messages, "was stopped early");
    }
    h.patience = 3; /* one more */
    MRT_OK(train_into(folder, &still, &h, &s, NULL, &err), &err);
    MRT_EQ(s.epochs, 1);
    still.epochs = 30; /* more than were asked for: one more, which brings nothing */
    MRT_OK(train_into(folder, &still, &h, &s, NULL, &err), &err);
    MRT_EQ(s.epochs, 1);
    h.patience = 0; /* never */
    h.epochs = 7;
    MRT_OK(train_into(folder, &still, &h, &s, NULL, &err), &err);
    MRT_EQ(s.epochs, 2);

    /* stopped in the validation that would have ended it */
    h = (how){.patience = 2, .stop_at_step = 3 * STEPS};
    MRT_EQ(train_into(mrt_path("early-cut"), &still, &h, &s, NULL, &err), MR_ECANCELED);
    h.stop_at_step = 0;
    MRT_OK(train_into(mrt_path("early-cut"), &still, &h, &s, NULL, &err), &err);
    MRT_TRUE(s.steps == 0 && s.epochs == 1);
    MRT_HAS(s.messages, "stopped early");
}

static void test_another_run_in_the_folder(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    seen s;
    run r, second;
    const char *folder = mrt_path("shared");
    run_options two = few;
    two.epochs = 2;
    MRT_OK(train_into(folder, &two, &(how){0}, &s, NULL, &err), &err);
    run_open(&r, &two); /* not loaded: a run of its own */
    mr_fit_config cfg = fit_config(&r, &s, folder);
    MRT_EQ(mr_fit(r.rig.t, r.train, &cfg, NULL, &err), MR_EEXIST);
    MRT_HAS(err.text, "another run");
    MRT_EQ(s.steps, 0);
    cfg.replace = true;
    MRT_OK(mr_fit(r.rig.t, r.train, &cfg, NULL, &err), &err);
    MRT_HAS(s.messages, "shared/old-1");
    MRT_TRUE(access(mrt_path("shared/old-1/best.mrck"), F_OK) == 0);

    /* while it is open elsewhere */
    mr_run_folder *open;
    MRT_OK(mr_run_folder_open(&open, folder, &err), &err);
    run_open(&second, &two);
    mr_fit_config other = fit_config(&second, &s, folder);
    MRT_EQ(mr_fit(second.rig.t, second.train, &other, NULL, &err), MR_EEXIST);
    MRT_HAS(err.text, "process ");
    other.folder = open; /* the caller's */
    other.checkpoint_dir = mrt_path("elsewhere");
    MRT_EQ(mr_fit(second.rig.t, second.train, &other, NULL, &err), MR_EINVAL);
    other.checkpoint_dir = folder;
    other.replace = true;
    MRT_OK(mr_fit(second.rig.t, second.train, &other, NULL, &err), &err);
    mr_run_folder_close(open);
    run_close(&second);
    run_close(&r);
}

/* As a program wrote it that knew of no runs. */
static void make_older(const char *path)
{
    size_t bytes;
    uint8_t *all = mrt_read_file(path, &bytes);
    bytes -= mri_le32(all + 1000); /* nor of networks in files */
    mri_put_le64(all + 16, bytes);
    memset(all + 744, 0, 1020 - 744);
    mri_put_le32(all + 1020, mr_crc32c(0, all, 1020));
    mrt_write_file(path, all, bytes);
    free(all);
}

static void test_older_checkpoints(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    seen s;
    run r;
    mrt_hash expected, hash;
    run_options two = few, three = few;
    two.epochs = 2, three.epochs = 3;
    const char *folder = mrt_path("older");
    MRT_OK(train_into(mrt_path("older-whole"), &three, &(how){0}, &s, &expected, &err), &err);
    MRT_OK(train_into(folder, &two, &(how){0}, &s, NULL, &err), &err);
    make_older(mrt_path("older/step-000000000005.mrck"));
    make_older(mrt_path("older/step-000000000010.mrck")); /* best is another name of it */
    make_older(mrt_path("older/best.mrck"));
    unlink(mrt_path("older/run.lock"));
    run_open(&r, &two);
    mr_fit_config cfg = fit_config(&r, &s, folder);
    MRT_EQ(mr_fit(r.rig.t, r.train, &cfg, NULL, &err), MR_EEXIST);
    run_close(&r);
    MRT_OK(train_into(folder, &three, &(how){0}, &s, &hash, &err), &err);
    MRT_TRUE(s.epochs == 1 && mrt_same(hash, expected));
    MRT_OK(train_into(folder, &few, &(how){0}, &s, &hash, &err), &err); /* with old and new ones in it */
    MRT_EQ(s.epochs, 1);
}

static void test_other_validation_data(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    seen s;
    run_options two = few;
    two.epochs = 2;
    const char *folder = mrt_path("other-val");
    MRT_OK(train_into(folder, &two, &(how){0}, &s, NULL, &err), &err);
    MRT_OK(train_into(folder, &few, &(how){.no_val = true, .epochs = 3}, &s, NULL, &err), &err);
    MRT_HAS(s.messages, "is not from here on");
    MRT_TRUE(!s.report[0].has_val);
}

/* Steps so long that the loss leaves all bounds, or is a number no more. */
static void test_divergence_is_told_and_never_the_best(void **state)
{
    (void)state;
    static const struct {
        float lr;
        mr_net *(*net)(void);
    } cases[] = {{1e6f, mrt_net_dense}, {1e30f, mrt_net_dense}};
    for (size_t i = 0; i < 2; i++) {
        mr_error err = MR_ERROR_INIT;
        seen s;
        mr_checkpoint_info info;
        run_options wild = few;
        wild.rig.update = MR_UPDATE_SGD, wild.rig.lr = cases[i].lr, wild.rig.net = cases[i].net;
        wild.epochs = 2;
        const char *folder = mrt_path("wild-%zu", i);
        MRT_OK(train_into(folder, &wild, &(how){0}, &s, NULL, &err), &err);
        MRT_TRUE(strstr(s.messages, "diverge") &&
                 strstr(s.messages, "diverge") < strstr(s.messages, "checkpoint"));
        MRT_TRUE(s.report[0].diverged && s.report[1].diverged);
        MRT_TRUE(!strstr(s.messages, "the best so far"));
        MRT_OK(mr_checkpoint_find(folder, NULL, 0, &info, NULL, 0, &err), &err);
        MRT_TRUE(info.best_updates == 0 && isinf(info.best_val_loss) && info.epochs_without_better == 2);
        MRT_TRUE(info.first_loss > 0.1 && info.first_loss < 100);
    }
}

/* Killed after the last checkpoint, before removing the ones it replaces: only that removal is left to do. */
static void test_a_run_that_is_done_removes_what_is_too_much(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    seen s;
    char path[1024];
    const char *folder = mrt_path("done");
    MRT_OK(train_into(folder, &few, &(how){.keep = 3}, &s, NULL, &err), &err);
    mri_checkpoint_step_path(folder, 3 * STEPS, path, sizeof path);
    MRT_EQ(access(path, F_OK), 0);
    MRT_OK(train_into(folder, &few, &(how){.keep = 1}, &s, NULL, &err), &err);
    MRT_EQ(s.steps, 0);
    MRT_TRUE(access(path, F_OK) != 0);
    mri_checkpoint_step_path(folder, 4 * STEPS, path, sizeof path);
    MRT_EQ(access(path, F_OK), 0);
}

static double most_rate;
static void on_rate(void *context, uint64_t epoch, uint64_t step, uint64_t steps_per_epoch, double rate)
{
    (void)context, (void)epoch, (void)step, (void)steps_per_epoch;
    if (rate > most_rate) most_rate = rate;
}

/* Queued steps are not done: of a device that takes 5 ms for a batch no rate is above what that makes. */
static void test_rates_are_of_what_is_done(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    seen s;
    run r;
    run_options o = few;
    o.rig.devices = "sim,step=5ms";
    run_open(&r, &o);
    mr_fit_config cfg = fit_config(&r, &s, NULL);
    cfg.callbacks.on_step = on_rate;
    MRT_OK(mr_fit(r.rig.t, r.train, &cfg, NULL, &err), &err);
    run_close(&r);
    MRT_TRUE(most_rate > 0 && most_rate <= BATCH / 0.005);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stopped_anywhere_ends_with_the_same_files),
        cmocka_unit_test(test_pending_validation),
        cmocka_unit_test(test_early_stop_is_remembered),
        cmocka_unit_test(test_another_run_in_the_folder),
        cmocka_unit_test(test_older_checkpoints),
        cmocka_unit_test(test_other_validation_data),
        cmocka_unit_test(test_divergence_is_told_and_never_the_best),
        cmocka_unit_test(test_a_run_that_is_done_removes_what_is_too_much),
        cmocka_unit_test(test_rates_are_of_what_is_done),
    };
    return mrt_run(tests);
}
