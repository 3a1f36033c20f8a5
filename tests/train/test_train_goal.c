/* Stopping at an accuracy: where the run ends, the cost it reports, and the checkpoint's record of it. The
 * accuracies are taken from a run that is not stopped. */
#include <math.h>

#include "tests/train/fit_rig.h"

static const run_options eight = {
    .rig = {.devices = "cpu:2", .update = MR_UPDATE_ADAM, .seed = 2}, .epochs = 8, .prefetch = 2};

typedef struct how {
    double accuracy;
    uint64_t stop_at_step, max_steps;
    bool no_val;
} how;

/* One call, from the newest checkpoint of the folder (may be NULL) where there is one. */
static int train(const char *folder, const run_options *o, const how *h, seen *s, mr_goal *goal,
                 mr_goal *loaded, mr_error *err)
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
    if (loaded) mr_trainer_goal(r.rig.t, loaded);
    mr_fit_config cfg = fit_config(&r, s, folder);
    cfg.epochs = o->epochs;
    cfg.stop_at_accuracy = h->accuracy;
    cfg.max_steps = h->max_steps;
    if (h->no_val) cfg.val = NULL;
    s->stop_at_step = h->stop_at_step;
    const int rc = mr_fit(r.rig.t, r.train, &cfg, NULL, err);
    if (goal) mr_trainer_goal(r.rig.t, goal);
    run_close(&r);
    return rc;
}

static double accuracy_of(const mr_report *r, bool val) { return val ? r->val_accuracy : r->accuracy; }

/* The first epoch after the first one that is better than all before: an accuracy that is reached there. */
static uint64_t first_record(const seen *s, bool val)
{
    double most = accuracy_of(&s->report[0], val);
    for (uint64_t e = 1; e < s->epochs; e++)
        if (accuracy_of(&s->report[e], val) > most) return e;
    fail_msg("no epoch is better than the first");
    return 0;
}

static void check_untouched(const mr_goal *g)
{
    MRT_TRUE(g->accuracy == 0 && g->seconds == 0 && g->eval_seconds == 0 && g->timed_from == 0 &&
             g->updates == 0 && g->found == 0);
}

static void test_the_first_epoch_that_is_good_enough_is_the_last(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    seen whole, s;
    mr_goal g;
    for (int val = 0; val < 2; val++) {
        how h = {.no_val = !val};
        MRT_OK(train(NULL, &eight, &h, &whole, &g, NULL, &err), &err);
        check_untouched(&g);
        const uint64_t at = first_record(&whole, val);
        const double found = accuracy_of(&whole.report[at], val);
        h.accuracy = found; /* "at least" */
        MRT_OK(train(NULL, &eight, &h, &s, &g, NULL, &err), &err);
        MRT_EQ(s.epochs, at + 1);
        MRT_TRUE(g.accuracy == found && g.found == found && g.updates == (at + 1) * STEPS &&
                 g.epochs == (double)(at + 1));
        MRT_TRUE(g.reached_seconds > 0 && g.seconds >= g.reached_seconds && g.timed_from == 0);
        MRT_TRUE(val ? g.reached_eval_seconds > 0 : g.reached_eval_seconds == 0);
        MRT_TRUE(g.eval_seconds == g.reached_eval_seconds);
        MRT_HAS(s.messages, "stopped: accuracy");
        h.accuracy = 1; /* the toys are noisy: never in eight epochs */
        MRT_OK(train(NULL, &eight, &h, &s, &g, NULL, &err), &err);
        MRT_TRUE(s.epochs == 8 && g.accuracy == 1 && g.updates == 0 && g.found == 0 && g.epochs == 0 &&
                 g.reached_seconds == 0 && g.seconds > 0);
    }
}

static void test_it_does_not_depend_on_devices(void **state)
{
    (void)state;
    static const char *const devices[] = {"cpu", "cpu:3"};
    mr_error err = MR_ERROR_INIT;
    for (size_t i = 0; i < 2; i++) {
        seen whole, s;
        mr_goal g;
        run_options o = eight;
        o.rig.devices = devices[i];
        MRT_OK(train(NULL, &o, &(how){0}, &whole, NULL, NULL, &err), &err);
        const uint64_t at = first_record(&whole, true);
        MRT_OK(train(NULL, &o, &(how){.accuracy = whole.report[at].val_accuracy}, &s, &g, NULL, &err), &err);
        MRT_TRUE(s.epochs == at + 1 && g.updates == (at + 1) * STEPS);
    }
}

static void test_a_run_that_got_there_stays_there(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    seen whole, s;
    mr_goal g, loaded;
    mr_checkpoint_info info;
    const char *folder = mrt_path("reached");
    MRT_OK(train(NULL, &eight, &(how){0}, &whole, NULL, NULL, &err), &err);
    const uint64_t at = first_record(&whole, true);
    const double found = whole.report[at].val_accuracy;
    how h = {.accuracy = found - 1e-9};
    MRT_OK(train(folder, &eight, &h, &s, &g, NULL, &err), &err);
    MRT_EQ(s.epochs, at + 1);
    MRT_OK(mr_checkpoint_find(folder, NULL, 0, &info, NULL, 0, &err), &err);
    MRT_TRUE(info.stop_at_accuracy == h.accuracy && info.reached_updates == info.updates &&
             info.updates == (at + 1) * STEPS && info.reached_accuracy == found);
    MRT_TRUE(info.reached_seconds == g.reached_seconds && info.train_seconds >= info.reached_seconds &&
             info.reached_eval_seconds == g.reached_eval_seconds);
    const double asked[] = {h.accuracy, found, found / 2}; /* each is at most the accuracy found */
    for (size_t i = 0; i < 3; i++) {
        h.accuracy = asked[i];
        MRT_OK(train(folder, &eight, &h, &s, &g, &loaded, &err), &err);
        MRT_TRUE(s.steps == 0 && s.epochs == 0);
        MRT_HAS(s.messages, "has ended before");
        MRT_TRUE(loaded.updates == info.updates && g.updates == info.updates && g.found == found &&
                 g.reached_seconds == info.reached_seconds && g.accuracy == asked[i]);
    }
    h.accuracy = 1;
    MRT_OK(train(folder, &eight, &h, &s, &g, NULL, &err), &err);
    MRT_EQ(s.epochs, 8 - (at + 1));
    MRT_TRUE(g.updates == 0 && g.seconds > info.train_seconds && g.eval_seconds > info.eval_seconds);
    MRT_OK(mr_checkpoint_find(folder, NULL, 0, &info, NULL, 0, &err), &err);
    MRT_TRUE(info.stop_at_accuracy == 1 && info.reached_updates == 0 && info.reached_accuracy == 0 &&
             info.reached_seconds == 0);
}

static void test_time_is_of_all_parts(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    seen s;
    mr_goal first, loaded, g;
    mr_checkpoint_info info;
    const char *folder = mrt_path("parts");
    how h = {.accuracy = 1, .stop_at_step = STEPS + 2};
    MRT_EQ(train(folder, &eight, &h, &s, &first, NULL, &err), MR_ECANCELED);
    MRT_TRUE(first.seconds > 0 && first.eval_seconds > 0);
    h = (how){.accuracy = 1, .max_steps = 1};
    MRT_OK(train(folder, &eight, &h, &s, &g, &loaded, &err), &err);
    MRT_TRUE(loaded.seconds > 0 && loaded.seconds <= first.seconds &&
             loaded.eval_seconds == first.eval_seconds);
    MRT_TRUE(g.seconds > loaded.seconds && g.eval_seconds == first.eval_seconds && g.timed_from == 0);
    h = (how){.max_steps = 1}; /* nobody asks: nobody counts, and checkpoints tell no time */
    MRT_OK(train(folder, &eight, &h, &s, &g, NULL, &err), &err);
    check_untouched(&g);
    MRT_OK(mr_checkpoint_find(folder, NULL, 0, &info, NULL, 0, &err), &err);
    MRT_TRUE(info.stop_at_accuracy == 0 && info.train_seconds == 0 && info.eval_seconds == 0 &&
             info.timed_from == 0);
    h = (how){.accuracy = 0.999, .max_steps = 1}; /* from here on */
    MRT_OK(train(folder, &eight, &h, &s, &g, NULL, &err), &err);
    MRT_TRUE(g.timed_from == STEPS + 4 && g.seconds > 0);
    MRT_OK(mr_checkpoint_find(folder, NULL, 0, &info, NULL, 0, &err), &err);
    MRT_EQ(info.timed_from, STEPS + 4);
}

/* Half of the samples say less than all of them: the epoch does not count, the next one does. */
static void test_part_of_an_epoch_does_not_count(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    seen s;
    mr_goal g;
    const char *folder = mrt_path("half");
    how h = {.no_val = true, .max_steps = STEPS - 1};
    MRT_OK(train(folder, &eight, &h, &s, NULL, NULL, &err), &err);
    h = (how){.accuracy = 1e-9, .no_val = true};
    MRT_OK(train(folder, &eight, &h, &s, &g, NULL, &err), &err);
    MRT_TRUE(s.epochs == 2 && s.report[0].steps == 1 && s.report[0].accuracy > 0 && g.updates == 2 * STEPS);
}

/* Stopped in the validation that is good enough: it is done again, and ends the run. */
static void test_pending_validation_counts(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    seen s;
    mr_goal g;
    const char *folder = mrt_path("pending");
    how h = {.accuracy = 1e-9, .stop_at_step = STEPS};
    MRT_EQ(train(folder, &eight, &h, &s, &g, NULL, &err), MR_ECANCELED);
    MRT_EQ(g.updates, 0);
    h.stop_at_step = 0;
    MRT_OK(train(folder, &eight, &h, &s, &g, NULL, &err), &err);
    MRT_TRUE(s.steps == 0 && s.epochs == 1 && g.updates == STEPS && g.found == s.report[0].val_accuracy);
}

static mr_net *net_without_classes(void)
{
    mr_net *net;
    MRT_EQ(mr_net_create(&net, "coder", MRT_SIDE, MRT_SIDE, 1), MR_OK);
    mr_net_dense(net, MRT_PIXELS, MR_ACT_NONE);
    mr_net_reshape(net, MRT_SIDE, MRT_SIDE, 1);
    mr_net_loss_pair(net, MR_PAIR_SQUARES, 0, 1);
    return net;
}

static void test_what_makes_no_sense_is_refused(void **state)
{
    (void)state;
    static const struct {
        double accuracy;
        const char *expected;
    } no_accuracies[] = {{-0.1, "mr_fit_config.stop_at_accuracy is -0.1: expected 0 to 1"},
                         {1.5, "mr_fit_config.stop_at_accuracy is 1.5: expected 0 to 1"},
                         {92, "mr_fit_config.stop_at_accuracy is 92: expected 0 to 1"},
                         {NAN, "mr_fit_config.stop_at_accuracy is nan: expected a finite number, 0 to 1"}};
    mr_error err = MR_ERROR_INIT;
    seen s;
    for (size_t i = 0; i < 4; i++) {
        MRT_EQ(train(NULL, &eight, &(how){.accuracy = no_accuracies[i].accuracy}, &s, NULL, NULL, &err),
               MR_EINVAL);
        assert_string_equal(err.text, no_accuracies[i].expected);
    }
    run_options o = eight;
    o.rig.net = net_without_classes;
    MRT_EQ(train(NULL, &o, &(how){.accuracy = 0.5}, &s, NULL, NULL, &err), MR_EINVAL);
    MRT_HAS(err.text, "coder has no classes");
    MRT_EQ(s.steps, 0);
    o = eight;
    o.rig.devices = "sim:2,step=1ms"; /* counts nothing: no accuracy of its is one */
    o.epochs = 2;
    MRT_OK(train(NULL, &o, &(how){.accuracy = 1e-9}, &s, NULL, NULL, &err), &err);
    MRT_EQ(s.epochs, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_first_epoch_that_is_good_enough_is_the_last),
        cmocka_unit_test(test_it_does_not_depend_on_devices),
        cmocka_unit_test(test_a_run_that_got_there_stays_there),
        cmocka_unit_test(test_time_is_of_all_parts),
        cmocka_unit_test(test_part_of_an_epoch_does_not_count),
        cmocka_unit_test(test_pending_validation_counts),
        cmocka_unit_test(test_what_makes_no_sense_is_refused),
    };
    return mrt_run(tests);
}
