/* tests/cli/watch/watch_judge.c: what figures of a program come to: who its workers are, and the verdict. */
#include <string.h>

#include "mrt.h"
#include "tools/commands/watch_report.h"

static tree_process processes[8];
static foreign_figures figures;
static watch_result result;

/* Ten seconds on two cores, nothing used. */
static int begin(void **state)
{
    (void)state;
    memset(&figures, 0, sizeof figures);
    figures.seconds = 10;
    figures.cores = 2;
    figures.tree.process = processes;
    figures.tree.looks = 40;
    result = (watch_result){.f = &figures};
    return 0;
}

static void put_process(int32_t pid, int32_t parent, double cpu_s)
{
    processes[figures.tree.count++] = (tree_process){.pid = pid, .parent = parent, .cpu_s = cpu_s};
    figures.user_s += cpu_s;
}

static void put_gpu(bool used, double busy)
{
    figures.gpu.gpu[figures.gpu.count++] = (gpu_figure){.used = used, .busy = busy, .looks = 40};
}

static void too_short(void **state)
{
    (void)state;
    figures.tree.looks = 3;
    watch_judge(&result);
    MRT_HAS(result.verdict, "too short a time");
}

static void nothing_wrong(void **state)
{
    (void)state;
    put_process(11, 10, 3);
    watch_judge(&result);
    MRT_TRUE(!result.input_bound && !result.crowded);
    MRT_HAS(result.verdict, "no sign of an input limit");
}

static void disk(void **state)
{
    (void)state;
    put_process(11, 10, 1);
    figures.tree.any_waiting = 0.41;
    watch_judge(&result);
    MRT_TRUE(result.input_bound);
    MRT_HAS(result.verdict, "threads waited for the disk 41 % of the time");
}

/* A shell, in it a script, in it two workers. */
static void workers(void **state)
{
    (void)state;
    put_process(11, 10, 0.01);
    put_process(12, 11, 2);
    put_process(13, 12, 8);
    put_process(14, 12, 9);
    watch_judge(&result);
    MRT_EQ(result.main_pid, 12);
    MRT_EQ(result.workers, 2);
    MRT_TRUE(result.input_bound && !result.crowded);
    MRT_HAS(result.verdict, "worker processes used 1.70 cores, the main one 0.20");
}

/* What full cores do is not known when one process uses them. */
static void full_cores(void **state)
{
    (void)state;
    put_process(11, 10, 19);
    watch_judge(&result);
    MRT_TRUE(!result.input_bound && !result.crowded);
    MRT_HAS(result.verdict, "cannot be seen from outside");
}

static void others_had_the_cores(void **state)
{
    (void)state;
    put_process(11, 10, 6);
    figures.tree.core_wait_s = 14;
    watch_judge(&result);
    MRT_TRUE(result.crowded);
}

/* One thread cannot fill two cores: it waited for one, and other programs ran. */
static void one_thread_had_no_core(void **state)
{
    (void)state;
    put_process(11, 10, 0.4);
    figures.tree.core_wait_s = 9;
    watch_judge(&result);
    MRT_TRUE(result.crowded && !result.input_bound);
    MRT_HAS(result.verdict,
            "short of cores: its threads ran 4 % of the time and waited for a core 90 % of it");
    put_gpu(true, 0.2);
    watch_judge(&result);
    MRT_TRUE(result.crowded);
    MRT_HAS(result.verdict, "short of cores");
    figures.tree.core_wait_s = 0.3; /* shorter than it ran */
    watch_judge(&result);
    MRT_TRUE(!result.crowded);
    MRT_HAS(result.verdict, "GPU idle 80 %");
}

static void gpus(void **state)
{
    (void)state;
    put_process(11, 10, 3);
    put_gpu(false, 0); /* of somebody else */
    put_gpu(true, 0.9);
    watch_judge(&result);
    MRT_TRUE(!result.input_bound);
    MRT_HAS(result.verdict, "the GPU was busy 90 %");
    figures.gpu.gpu[1].busy = 0.37;
    figures.tree.any_waiting = 0.5;
    watch_judge(&result);
    MRT_TRUE(result.input_bound);
    MRT_HAS(result.verdict, "by storage: GPU idle 63 %");
    figures.tree.any_waiting = 0;
    watch_judge(&result);
    MRT_TRUE(!result.input_bound);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(too_short, begin),
        cmocka_unit_test_setup(nothing_wrong, begin),
        cmocka_unit_test_setup(disk, begin),
        cmocka_unit_test_setup(workers, begin),
        cmocka_unit_test_setup(full_cores, begin),
        cmocka_unit_test_setup(others_had_the_cores, begin),
        cmocka_unit_test_setup(one_thread_had_no_core, begin),
        cmocka_unit_test_setup(gpus, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
