/* The watchdog: a replica that does not answer is named, the run ends, and closing does not wait for it.
 * Leaves a sleeping thread behind on purpose: the last test of its program, whose end ends the thread. */
#include <unistd.h>

#include "tests/gate.h"
#include "tests/train/rig.h"

static void test_a_step_in_time_is_nothing_to_tell(void **state)
{
    (void)state;
    mrt_rig rig;
    mrt_rig_open(&rig,
                 &(mrt_rig_options){.devices = "sim:2,step=1ms", .net = mrt_net_residual, .watchdog_s = 60});
    for (uint32_t s = 0; s < 4; s++) mrt_train(&rig, s, s * 32, 32);
    MRT_TRUE(!mr_trainer_hangs(rig.t));
    mrt_rig_close(&rig);
}

/* A step too long but not endless: closing waits the moment it takes, and leaves nothing behind. */
static void test_what_comes_back_is_closed(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mrt_rig rig;
    mrt_batch b;
    static mrt_gate gate;
    mrt_rig_open(
        &rig, &(mrt_rig_options){.devices = "sim:2,step=1ms", .net = mrt_net_residual, .watchdog_s = 0.05});
    mrt_batch_make(&b, &rig, 7, 0, 32, NULL, 0);
    mrt_gate_push(&gate, rig.t->team.streams[1]);
    MRT_OK(mr_trainer_step(rig.t, &b.b, &err), &err);
    MRT_EQ(mr_trainer_metrics(rig.t, NULL, NULL, &err), MR_EDEVICE);
    MRT_HAS(err.text, "step 7 is not over after 0.05 s");
    mrt_gate_open(&gate);
    for (uint32_t r = 0; r < 2; r++) mr_stream_sync(rig.t->team.streams[r], NULL);
    for (uint32_t r = 0; r < 2; r++) mr_device_free(rig.devices[r], b.memory[r]);
    mrt_rig_close(&rig);
}

/* On the processor as on any device. */
static void test_the_processor_is_watched_too(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mrt_rig rig;
    mrt_batch b;
    static mrt_gate gate;
    mrt_rig_open(&rig, &(mrt_rig_options){.devices = "cpu", .watchdog_s = 0.05});
    mrt_batch_make(&b, &rig, 7, 0, 32, NULL, 0);
    mrt_gate_push(&gate, rig.t->team.streams[0]);
    MRT_OK(mr_trainer_step(rig.t, &b.b, &err), &err);
    MRT_EQ(mr_trainer_metrics(rig.t, NULL, NULL, &err), MR_EDEVICE);
    MRT_HAS(err.text, "step 7 is not over after 0.05 s: still at work: replica 0 (cpu:0)");
    mrt_gate_open(&gate);
    mr_stream_sync(rig.t->team.streams[0], NULL);
    mr_device_free(rig.devices[0], b.memory[0]);
    mrt_rig_close(&rig);
}

/* Nobody watches a call that cannot be queued: it must not wait for what hangs before it. */
static void test_a_call_that_is_refused_does_not_wait_for_a_hanging_stream(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mrt_rig rig;
    static mrt_gate gate;
    mrt_rig_open(&rig,
                 &(mrt_rig_options){.devices = "sim:2,step=1ms", .net = mrt_net_residual, .watchdog_s = 60});
    mrt_gate_push(&gate, rig.t->team.streams[1]);
    MRT_EQ(mri_team_queue_failed(&rig.t->team, 1, MR_ENOMEM, "an event", &err), MR_ENOMEM);
    MRT_HAS(err.text, "cannot queue an event: out of memory");
    mrt_gate_open(&gate);
    mrt_rig_close(&rig);
}

static void test_a_replica_that_hangs_is_named(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT, again = MR_ERROR_INIT;
    mrt_rig rig;
    mrt_batch b;
    mrt_rig_open(
        &rig, &(mrt_rig_options){.devices = "sim:3,step=3600s", .net = mrt_net_residual, .watchdog_s = 0.2});
    mrt_batch_make(&b, &rig, 12, 0, 2, (const uint32_t[]){1, 0, 1}, 0); /* replica 1 has nothing to do */
    MRT_OK(mr_trainer_step(rig.t, &b.b, &err), &err);
    MRT_OK(mr_event_sync(rig.t->flights.flight[0].computed[1], &err), &err);
    MRT_EQ(mr_trainer_metrics(rig.t, NULL, NULL, &err), MR_EDEVICE);
    MRT_HAS(err.text, "step 12 is not over after 0.2 s: still at work: replica 0 (sim:0");
    MRT_HAS(err.text, "replica 2 (sim:2");
    MRT_TRUE(!strstr(err.text, "replica 1 (sim:1"));
    MRT_TRUE(mr_trainer_hangs(rig.t));
    MRT_EQ(mr_trainer_step(rig.t, &b.b, &again), MR_EDEVICE);
    MRT_STR(again.text, err.text);
    mr_trainer_close(rig.t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_step_in_time_is_nothing_to_tell),
        cmocka_unit_test(test_what_comes_back_is_closed),
        cmocka_unit_test(test_the_processor_is_watched_too),
        cmocka_unit_test(test_a_call_that_is_refused_does_not_wait_for_a_hanging_stream),
        cmocka_unit_test(test_a_replica_that_hangs_is_named),
    };
    const int rc = mrt_run(tests);
    fflush(NULL);
    _exit(rc); /* devices, network and batch are still in use */
}
