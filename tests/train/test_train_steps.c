/* Figures while an epoch goes on: whose steps they are of, that they add up to the epoch's, and that nobody
 * who asks for them changes the run. */
#include <math.h>

#include "tests/train/fit_rig.h"

enum { MOST = 64 };

typedef struct watched {
    seen seen; /* first: the context of all callbacks */
    mr_step_report step[MOST];
    uint64_t count, epochs_before[MOST]; /* on_epoch() calls that came before it */
} watched;

static void on_step_report(void *context, const mr_step_report *report)
{
    watched *w = context;
    MRT_TRUE(w->count < MOST);
    MRT_EQ(report->struct_size, sizeof *report);
    w->epochs_before[w->count] = w->seen.epochs;
    w->step[w->count++] = *report;
}

static mrt_hash watch(const run_options *o, watched *w, uint64_t report_steps, uint64_t max_steps)
{
    mr_error err = MR_ERROR_INIT;
    run r;
    run_open(&r, o);
    *w = (watched){0};
    mr_fit_config cfg = fit_config(&r, &w->seen, NULL);
    cfg.on_step = on_step_report;
    cfg.report_steps = report_steps;
    cfg.max_steps = max_steps;
    cfg.epochs = o->epochs;
    MRT_OK(mr_fit(r.rig.t, r.train, &cfg, NULL, &err), &err);
    const mrt_hash h = mrt_hash_of(&r.rig, 0);
    run_close(&r);
    return h;
}

static void test_every_step_adds_up_to_the_epoch(void **state)
{
    (void)state;
    watched w;
    watch(&usual, &w, 1, 0);
    MRT_EQ(w.count, 4 * STEPS);
    for (uint64_t e = 0; e < 4; e++) {
        double loss = 0, correct = 0;
        uint64_t samples = 0;
        for (uint64_t i = 0; i < STEPS; i++) {
            const mr_step_report *r = &w.step[e * STEPS + i];
            MRT_TRUE(r->due && !r->simulated);
            MRT_EQ(r->epoch, e);
            MRT_EQ(w.epochs_before[e * STEPS + i], e);
            MRT_EQ(r->step, i + 1);
            MRT_EQ(r->steps_per_epoch, STEPS);
            MRT_EQ(r->updates, e * STEPS + i + 1);
            MRT_EQ(r->steps, 1);
            MRT_EQ(r->samples, i + 1 < STEPS ? BATCH : TRAIN % BATCH);
            MRT_TRUE(r->lr == 0.01f && r->samples_per_s > 0);
            MRT_TRUE(r->updates == 4 * STEPS ? r->seconds_left == 0 : r->seconds_left > 0);
            loss += r->loss * (double)r->samples;
            correct += r->accuracy * (double)r->samples;
            samples += r->samples;
        }
        MRT_EQ(samples, TRAIN);
        MRT_TRUE(fabs(loss / TRAIN - w.seen.report[e].loss) < 1e-9);
        MRT_TRUE(fabs(correct / TRAIN - w.seen.report[e].accuracy) < 1e-9);
    }
}

static void test_stretches_end_with_the_epoch(void **state)
{
    (void)state;
    watched w;
    uint64_t due = 0;
    watch(&usual, &w, 2, 0);
    for (uint64_t i = 0; i < w.count; i++) {
        const mr_step_report *r = &w.step[i];
        MRT_EQ(r->due, r->updates % 2 == 0);
        if (!r->due) continue;
        MRT_EQ(r->updates, 2 * ++due);
        MRT_EQ(r->steps, r->step == 1 ? 1 : 2); /* never the steps of the epoch before */
    }
    MRT_EQ(due, 10);
}

static void test_seldom_when_none_is_due(void **state)
{
    (void)state;
    watched w;
    static const uint64_t updates[] = {1, 2, 4, 8, 16}, steps[] = {1, 1, 2, 3, 1};
    watch(&usual, &w, 0, 0);
    MRT_EQ(w.count, 5);
    for (uint64_t i = 0; i < 5; i++) {
        MRT_TRUE(!w.step[i].due);
        MRT_EQ(w.step[i].updates, updates[i]);
        MRT_EQ(w.step[i].steps, steps[i]);
    }
}

static void test_watching_changes_nothing(void **state)
{
    (void)state;
    watched w;
    const mrt_hash expected = undisturbed(&usual, NULL);
    MRT_TRUE(mrt_same(expected, watch(&usual, &w, 1, 0)));
    MRT_TRUE(mrt_same(expected, watch(&usual, &w, 3, 0)));
}

static void test_time_left_knows_where_the_run_ends(void **state)
{
    (void)state;
    watched w;
    watch(&usual, &w, 1, 7);
    MRT_EQ(w.count, 7);
    MRT_TRUE(w.step[0].seconds_left > 0 && w.step[6].seconds_left == 0);
    mr_error err = MR_ERROR_INIT;
    run r;
    run_open(&r, &usual);
    w = (watched){0};
    mr_fit_config cfg = fit_config(&r, &w.seen, NULL); /* epochs 0: until the loader ends */
    cfg.on_step = on_step_report;
    MRT_OK(mr_fit(r.rig.t, r.train, &cfg, NULL, &err), &err);
    MRT_TRUE(w.count > 0 && w.step[0].seconds_left < 0);
    run_close(&r);
}

static void test_simulated_devices(void **state)
{
    (void)state;
    run_options o = usual;
    watched w;
    o.rig.devices = "sim:2,step=1ms,h2d=1GB/s";
    watch(&o, &w, 5, 0);
    uint64_t due = 0;
    for (uint64_t i = 0; i < w.count; i++) {
        MRT_TRUE(w.step[i].simulated && w.step[i].samples_per_s > 0);
        if (w.step[i].due) MRT_EQ(w.step[i].samples, TRAIN);
        due += w.step[i].due;
    }
    MRT_EQ(due, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_step_adds_up_to_the_epoch),
        cmocka_unit_test(test_stretches_end_with_the_epoch),
        cmocka_unit_test(test_seldom_when_none_is_due),
        cmocka_unit_test(test_watching_changes_nothing),
        cmocka_unit_test(test_time_left_knows_where_the_run_ends),
        cmocka_unit_test(test_simulated_devices),
    };
    return mrt_run(tests);
}
