/* Training on emulated GPUs: one, two and seven of them do what cpu devices do, whatever the settings, and in
 * whatever order the work runs that streams and events still allow. The emulation stops a process in which an
 * access is not ordered.
 *
 * MRT_SEEDS: how many schedules to try with each number of GPUs (default 10). */
#include <math.h>

#include "tests/train/whole_run.h"

static const struct machine {
    const char *cuda, *cpu;
} machines[] = {{"cuda:0", "cpu"}, {"cuda:0,1", "cpu:2"}, {"cuda:0,1,2,3,4,5,6", "cpu:7"}};
enum { MACHINES = sizeof machines / sizeof *machines, MOST_RUNS = 3 * 1000 };

static mrt_run runs[MOST_RUNS];
static mrt_outcome outcomes[MOST_RUNS];

static void expect_done(size_t i)
{
    if (outcomes[i].status == 0) return;
    fail_msg("%s, seed %llu, prefetch %u, graph %s, buckets of %llu bytes: status %d: %s", runs[i].devices,
             (unsigned long long)runs[i].seed, runs[i].prefetch, runs[i].no_graph ? "off" : "on",
             (unsigned long long)runs[i].bucket_bytes, outcomes[i].status, outcomes[i].text);
}

static void expect_close(double a, double b, double tolerance)
{
    if (fabs(a - b) > tolerance * fabs(b)) fail_msg("expected %.9g, found %.9g", b, a);
}

/* Whole numbers are the same, losses to rounding. */
static void expect_same_training(size_t i, size_t reference, double tolerance)
{
    const mrt_outcome *a = &outcomes[i], *b = &outcomes[reference];
    expect_done(i);
    expect_done(reference);
    MRT_TRUE(b->steps > 0 && b->correct > 0 && b->loss > 0);
    MRT_EQ(a->steps, b->steps);
    MRT_EQ(a->samples, b->samples);
    MRT_EQ(a->correct, b->correct);
    MRT_EQ(a->val_correct, b->val_correct);
    expect_close(a->loss, b->loss, tolerance);
    expect_close(a->val_loss, b->val_loss, tolerance);
}

/* Batches that divide by nothing, short ends kept, dropped and padded, fewer samples than devices; every kind
 * of layer. */
static const mrt_run trainings[] = {
    {.net = mrt_net_conv, .samples = 45, .batch = 20, .update = MR_UPDATE_ADAM, .lr = 0.01f},
    {.net = mrt_net_dense,
     .samples = 33,
     .batch = 16,
     .tail = MR_TAIL_PAD,
     .update = MR_UPDATE_RMSPROP,
     .lr = 0.001f},
    {.net = mrt_net_branch,
     .samples = 30,
     .batch = 9,
     .tail = MR_TAIL_DROP,
     .update = MR_UPDATE_MOMENTUM,
     .lr = 0.05f},
    {.net = mrt_net_norm, .samples = 40, .batch = 18, .update = MR_UPDATE_MOMENTUM, .lr = 0.02f},
    {.net = mrt_net_residual, .samples = 28, .batch = 14, .update = MR_UPDATE_SGD, .lr = 0.02f},
    {.net = mrt_net_mobile, .samples = 14, .batch = 8, .update = MR_UPDATE_SGD, .lr = 0.02f},
    {.net = mrt_net_conv, .samples = 14, .batch = 5, .update = MR_UPDATE_ADADELTA, .lr = 0.5f},
    {.net = mrt_net_norm,
     .samples = 26,
     .batch = 12,
     .update = MR_UPDATE_MOMENTUM, /* Adam would make much of the noise in biases before a normalisation */
     .lr = 0.01f,
     .clip_value = 0.1f,
     .clip_norm = 0.05f,
     .weight_decay = 0.1f,
     .decay_on = MR_DECAY_ON_WEIGHTS,
     .average = 0.8f,
     .lookahead = 2}};
enum { TRAININGS = sizeof trainings / sizeof *trainings };

static void gpus_train_as_cpus_do(void **state)
{
    (void)state;
    size_t count = 0;
    for (size_t k = 0; k < TRAININGS; k++) {
        for (size_t m = 0; m < MACHINES; m++) {
            mrt_run run = trainings[k];
            run.epochs = 2;
            run.prefetch = 3;
            run.bucket_bytes = 25u << 20;
            run.seed = count;
            run.devices = machines[m].cpu;
            runs[count++] = run;
            run.devices = machines[m].cuda;
            runs[count++] = run;
        }
    }
    mrt_run_all(runs, outcomes, count);
    for (size_t i = 0; i < count; i += 2) expect_same_training(i + 1, i, 1e-5);
}

/* The loader's settings, recording and buckets change no bit. Two GPUs run all eight ways (but under a
 * sanitizer), one and seven the half in which any two settings still meet in all four ways. */
static void settings_change_nothing(void **state)
{
    (void)state;
    enum { WAYS = 8 };
    static const bool in_half[WAYS] = {[0] = true, [3] = true, [5] = true, [6] = true};
    for (size_t k = 0; k < TRAININGS; k += 2) { /* convolutions, branches and residual blocks are in there */
        size_t count = 0, first[MACHINES + 1] = {0};
        for (size_t m = 0; m < MACHINES; m++) {
            for (size_t way = 0; way < WAYS; way++) {
                if (!in_half[way] && (m != 1 || MRT_SANITIZED)) continue;
                mrt_run *run = &runs[count++];
                *run = trainings[k == 2 ? 4 : k];
                run->devices = machines[m].cuda;
                run->epochs = 2;
                run->prefetch = way & 1 ? 0 : 4;
                run->no_graph = way & 2;
                run->bucket_bytes = way & 4 ? 0 : 700;
                run->seed = 100 + 10 * k + way;
            }
            first[m + 1] = count;
        }
        mrt_run_all(runs, outcomes, count);
        for (size_t m = 0; m < MACHINES; m++) {
            for (size_t i = first[m]; i < first[m + 1]; i++) {
                expect_same_training(i, first[m], 0);
                MRT_TRUE(mrt_same(outcomes[i].weights, outcomes[first[m]].weights));
            }
        }
    }
}

static uint64_t seeds(void)
{
    const char *text = getenv("MRT_SEEDS");
    return text ? mri_min_u64(strtoull(text, NULL, 10), MOST_RUNS / MACHINES) : 10;
}

/* Prefetch, recording, bucket size and seed all differ; the weights are the same to the bit. */
static void every_schedule_gives_the_same_weights(const mrt_run *training)
{
    const uint64_t n = seeds();
    for (uint64_t i = 0; i < n * MACHINES; i++) {
        const uint64_t seed = i % n + 1;
        runs[i] = *training;
        runs[i].devices = machines[i / n].cuda;
        runs[i].seed = seed;
        runs[i].prefetch = seed % 5; /* the seed itself chooses among four kinds of order */
        runs[i].no_graph = seed % 3 == 0;
        runs[i].bucket_bytes = seed % 7 ? 600 : 0;
    }
    mrt_run_all(runs, outcomes, n * MACHINES);
    for (uint64_t i = 0; i < n * MACHINES; i++) {
        const uint64_t first = i / n * n;
        expect_done(i);
        if (!mrt_same(outcomes[i].weights, outcomes[first].weights))
            fail_msg("%s: other weights with seed %llu than with seed 1", runs[i].devices,
                     (unsigned long long)runs[i].seed);
    }
    print_message("%llu schedules with each of 1, 2 and 7 GPUs\n", (unsigned long long)n);
}

static void schedules_change_nothing(void **state)
{
    (void)state;
    every_schedule_gives_the_same_weights(&(mrt_run){
        .net = mrt_net_conv, .samples = 25, .batch = 9, .epochs = 2, .update = MR_UPDATE_ADAM, .lr = 0.01f});
}

static void schedules_change_nothing_in_residual_networks(void **state)
{
    (void)state;
    every_schedule_gives_the_same_weights(&(mrt_run){.net = mrt_net_residual,
                                                     .samples = 20,
                                                     .batch = 15,
                                                     .epochs = 1,
                                                     .update = MR_UPDATE_MOMENTUM,
                                                     .lr = 0.01f,
                                                     .dtype = MR_TENSOR_F16});
}

int main(void)
{
    mrt_emulated_or_skip();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpus_train_as_cpus_do),
        cmocka_unit_test(settings_change_nothing),
        cmocka_unit_test(schedules_change_nothing),
        cmocka_unit_test(schedules_change_nothing_in_residual_networks),
    };
    return mrt_run(tests);
}
