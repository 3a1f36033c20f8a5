/* Settings of a host in its process: limits of OpenMP, rounding, denormals, small stacks, descriptors,
 * refused system calls, timers. The result has the same bits, or there is a clear error. "limited" as the
 * first argument: OpenMP gives one thread. */
#include <errno.h>
#include <fenv.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "tests/train/rig.h"

static mrt_hash train_with(uint32_t threads)
{
    mr_devices_config devices;
    mr_trainer_config cfg;
    mr_error err = MR_ERROR_INIT;
    mrt_rig rig = {.net = mrt_net_conv()};
    mr_devices_defaults(&devices);
    devices.compute_threads = threads;
    MRT_OK(mr_devices_open(&rig.devices, &rig.count, "cpu", &devices, &err), &err);
    rig.first[0] = rig.devices[0];
    MRT_OK(mr_parts_deal(&rig.parts, NULL, 1, 0, &err), &err);
    mr_trainer_defaults(&cfg);
    cfg.net = rig.net;
    cfg.devices = rig.devices;
    cfg.device_count = 1;
    cfg.batch = 32;
    cfg.update = mr_update_rule_find("adam")->desc;
    cfg.schedule.lr = 0.01f;
    cfg.fields = mrt_fields;
    cfg.field_count = MRT_FIELDS;
    cfg.watchdog_s = mrt_seconds(60);
    MRT_OK(mr_trainer_open(&rig.t, &cfg, &err), &err);
    for (uint32_t s = 0; s < 4; s++) mrt_train(&rig, s, s * 32, 32);
    const mrt_hash hash = mrt_hash_of(&rig, 0);
    mrt_rig_close(&rig);
    return hash;
}

/* More threads were asked for than OpenMP gives: the device says how many it has, and a step ends. */
static void threads_are_those_that_openmp_gives(void **state)
{
    (void)state;
    mr_device **devices;
    uint32_t count;
    mr_error err = MR_ERROR_INIT;
    mr_devices_config cfg;
    mr_devices_defaults(&cfg);
    cfg.compute_threads = 4;
    MRT_OK(mr_devices_open(&devices, &count, "cpu:2", &cfg, &err), &err);
    for (uint32_t i = 0; i < count; i++) MRT_EQ(mr_device_info_of(devices[i])->threads, 1);
    mr_devices_close(devices, count);
    MRT_TRUE(mrt_same(train_with(4), train_with(1)));
}

static void rounding_of_the_host_changes_no_weight(void **state)
{
    (void)state;
    const mrt_hash as_ever = train_with(2);
    static const int modes[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        MRT_EQ(fesetround(modes[i]), 0);
        const mrt_hash here = train_with(2);
        MRT_EQ(fegetround(), modes[i]); /* the host's own stays */
        fesetround(FE_TONEAREST);
        MRT_TRUE(mrt_same(here, as_ever));
    }
#if defined(__x86_64__)
    const unsigned before = _mm_getcsr();
    _mm_setcsr(before | 0x8040); /* flush to zero, denormals are zero */
    const mrt_hash here = train_with(2);
    MRT_EQ(_mm_getcsr() & 0x8040, 0x8040);
    _mm_setcsr(before);
    MRT_TRUE(mrt_same(here, as_ever));
#endif
}

static volatile sig_atomic_t rang;
static void on_alarm(int number) { rang += number > 0; }

/* A host with a timer of 1 kHz whose handler lets system calls be interrupted. */
static void timers_of_the_host_change_no_weight(void **state)
{
    (void)state;
    const mrt_hash as_ever = train_with(2);
    const struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
    const struct sigaction handler = {.sa_handler = on_alarm};
    struct sigaction before;
    MRT_EQ(sigaction(SIGALRM, &handler, &before), 0);
    MRT_EQ(setitimer(ITIMER_REAL, &often, NULL), 0);
    for (uint32_t i = 0; i < 3 || !rang; i++) MRT_TRUE(mrt_same(train_with(2), as_ever));
    MRT_EQ(setitimer(ITIMER_REAL, &never, NULL), 0);
    MRT_EQ(sigaction(SIGALRM, &before, NULL), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest limited[] = {cmocka_unit_test(threads_are_those_that_openmp_gives)};
    const struct CMUnitTest tests[] = {cmocka_unit_test(rounding_of_the_host_changes_no_weight),
                                       cmocka_unit_test(timers_of_the_host_change_no_weight)};
    if (argc > 1 && strcmp(argv[1], "limited") == 0) return mrt_run(limited);
    return mrt_run(tests);
}
