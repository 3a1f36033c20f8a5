/* Medians, bounded series, and the verdict over a table of synthetic runs. */
#include <math.h>

#include "mrt.h"
#include "train/run/lateness.h"
#include "train/run/step_log.h"
#include "train/stats.h"

static void test_median_and_mad(void **state)
{
    (void)state;
    double odd[] = {5, 1, 9}, even[] = {4, 1, 3, 2}, outlier[] = {10, 10, 11, 9, 1000};
    MRT_TRUE(mri_median(odd, 3) == 5);
    MRT_TRUE(mri_median(even, 4) == 2.5);
    MRT_TRUE(mri_median(NULL, 0) == 0);
    MRT_TRUE(mri_mad(NULL, 0, 0) == 0);
    double hundred[100];
    for (int i = 0; i < 100; i++) hundred[i] = 100 - i;
    MRT_TRUE(mri_quantile(hundred, 100, 0.95) == 95 && mri_quantile(hundred, 100, 0.99) == 99);
    MRT_TRUE(mri_quantile(hundred, 1, 0.99) == 1 && mri_quantile(NULL, 0, 0.5) == 0);
    MRT_TRUE(mri_quantile(hundred, 100, 0) == 1 && mri_quantile(hundred, 100, 1) == 100);
    const double median = mri_median(outlier, 5);
    MRT_TRUE(median == 10);
    MRT_TRUE(fabs(mri_mad(outlier, 5, median) - 1.4826) < 1e-12);
}

static void test_series_stays_bounded_and_even(void **state)
{
    (void)state;
    mri_series *s = malloc(sizeof *s);
    mri_series_clear(s);
    for (uint64_t i = 0; i < 100; i++) mri_series_add(s, (double)i);
    MRT_EQ(s->count, 100);
    for (uint64_t i = 100; i < 1000000; i++) mri_series_add(s, (double)i);
    MRT_TRUE(s->count > MRI_SERIES_CAP / 2 && s->count <= MRI_SERIES_CAP);
    for (uint32_t i = 0; i < s->count; i++) MRT_EQ(s->value[i], i * s->stride);
    MRT_TRUE((s->count - 1) * s->stride + s->stride >= 1000000);
    const double median = mri_median(s->value, s->count);
    MRT_TRUE(fabs(median - 500000) < 200);
    mri_series_clear(s);
    mri_series_add(s, 3);
    MRT_TRUE(s->count == 1 && s->value[0] == 3);
    free(s);
}

static void test_step_log(void **state)
{
    (void)state;
    mri_step_log *log = malloc(sizeof *log);
    static const uint64_t start[4][2] = {{100, 110}, {210, 200}, {350, 330}, {430, 430}};
    static const uint64_t end[4][2] = {{200, 190}, {300, 310}, {400, 420}, {500, 520}};
    mri_step_log_start(log, 2, 1);
    for (int i = 0; i < 4; i++)
        mri_step_log_add(log, start[i], NULL, end[i], 10,
                         &(mr_causes){.ns[MR_CAUSE_READ] = 1 << i, .total_ns = 1 << i}, NULL);
    MRT_EQ(log->steps, 4);
    MRT_EQ(log->samples, 30);
    MRT_EQ(log->window_start_ns, 200);
    MRT_EQ(log->last_end_ns, 520);
    MRT_TRUE(log->compute_ns == ((90 + 50 + 70) + (110 + 90 + 90)) / 2.0);
    MRT_TRUE(log->exposed_ns == ((10 + 50 + 30) + (10 + 20 + 10)) / 2.0);
    MRT_EQ(log->causes.ns[MR_CAUSE_READ], 2 + 4 + 8); /* not of the warm-up */
    MRT_EQ(log->causes.total_ns, 14);
    MRT_EQ(log->step_ms.count, 3);
    MRT_TRUE(fabs(log->step_ms.value[0] - 110e-6) < 1e-12 && fabs(log->step_ms.value[2] - 100e-6) < 1e-12);
    mri_step_log_start(log, 1, 0); /* without a warm-up the first step's own start opens the window */
    mri_step_log_add(log, start[0], NULL, end[0], 7, NULL, NULL);
    MRT_TRUE(log->window_start_ns == 100 && log->samples == 7 && log->exposed_ns == 0 &&
             log->compute_ns == 100);
    free(log);
}

static void test_verdict(void **state)
{
    (void)state;
    static const struct {
        const char *expected, *more;
        mri_verdict_input in;
    } cases[] = {
        {"compute-bound",
         "busy 98.0 %",
         {.compute_ns = 980,
          .exposed_ns = 20,
          .prefetch = 4,
          .workers = 2,
          .causes = {{[MR_CAUSE_READ] = 20}, 20}}},
        {"compute-bound",
         "busy 98.0 %",
         {.compute_ns = 980,
          .exposed_ns = 20,
          .prefetch = 0,
          .workers = 2,
          .causes = {{[MR_CAUSE_READ] = 20}, 20}}},
        {"input-bound",
         "idled 70.0 % of the time: 68.0 decoding; more workers",
         {.compute_ns = 300,
          .exposed_ns = 700,
          .prefetch = 4,
          .workers = 2,
          .causes = {{[MR_CAUSE_DECODE] = 680, [MR_CAUSE_READ] = 20}, 700}}},
        {"input-bound",
         "35.0 decoding of single slow samples, 30.0 decoding, 5.0 cores taken by other threads",
         {.compute_ns = 300,
          .exposed_ns = 700,
          .prefetch = 4,
          .workers = 2,
          .causes = {{[MR_CAUSE_DECODE] = 300, [MR_CAUSE_LARGE] = 350, [MR_CAUSE_CORES] = 50}, 700}}},
        {"copy-bound",
         "70.0 copies",
         {.compute_ns = 300,
          .exposed_ns = 700,
          .prefetch = 4,
          .workers = 2,
          .causes = {{[MR_CAUSE_COPY] = 700}, 700}}},
        {"storage-bound",
         "60.0 reading, 10.0 decoding",
         {.compute_ns = 300,
          .exposed_ns = 700,
          .prefetch = 4,
          .workers = 2,
          .causes = {{[MR_CAUSE_READ] = 600, [MR_CAUSE_DECODE] = 100}, 700}}},
        {"short of cores",
         "40.0 cores",
         {.compute_ns = 300,
          .exposed_ns = 700,
          .prefetch = 4,
          .workers = 2,
          .causes = {{[MR_CAUSE_CORES] = 400, [MR_CAUSE_DECODE] = 300}, 700}}},
        {"uneven",
         "--prefetch",
         {.compute_ns = 900,
          .exposed_ns = 100,
          .prefetch = 4,
          .workers = 2,
          .causes = {{[MR_CAUSE_ROOM] = 90, [MR_CAUSE_DECODE] = 10}, 100}}},
        {"serial",
         "turn prefetch on",
         {.compute_ns = 300,
          .exposed_ns = 700,
          .prefetch = 0,
          .workers = 1,
          .causes = {{[MR_CAUSE_DECODE] = 700}, 700}}},
        {"host-bound",
         "larger batch",
         {.compute_ns = 300,
          .exposed_ns = 700,
          .prefetch = 4,
          .workers = 2,
          .causes = {{[MR_CAUSE_HOST] = 700}, 700}}},
        {"no verdict",
         "too few",
         {.compute_ns = 0, .exposed_ns = 0, .prefetch = 4, .workers = 2, .causes = {{0}, 0}}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[256];
        mri_verdict(&cases[i].in, text, sizeof text);
        MRT_HAS(text, cases[i].expected);
        MRT_HAS(text, cases[i].more);
        MRT_TRUE(strlen(text) < sizeof text - 1); /* not cut */
        char small[8];
        mri_verdict(&cases[i].in, small, sizeof small);
        MRT_EQ(strlen(small), 7);
    }
}

/* Records of runs with one fault each (bench/faults_named.py): per mille of the device's time. */
static void test_verdict_on_recorded_faults(void **state)
{
    (void)state;
    static const struct {
        const char *fault, *verdict, *reported;
        const char *slow_device;
        uint64_t ns[MR_CAUSES];
    } runs[] = {
        {"none", "compute-bound", "busy 100.0 %", NULL, {0}},
        {"slow worker", "short of cores", "62.0 cores", NULL, {[MR_CAUSE_CORES] = 620, [MR_CAUSE_READ] = 9}},
        {"slow shard",
         "storage-bound",
         "78.3 reading",
         NULL,
         {[MR_CAUSE_READ] = 783, [MR_CAUSE_CORES] = 24, [MR_CAUSE_BLOCKED] = 19}},
        {"lock held",
         "disturbed",
         "25.5 locks",
         NULL,
         {[MR_CAUSE_BLOCKED] = 255, [MR_CAUSE_DECODE] = 100, [MR_CAUSE_CORES] = 67}},
        {"noisy neighbour",
         "short of cores",
         "54.0 cores",
         NULL,
         {[MR_CAUSE_CORES] = 540, [MR_CAUSE_DECODE] = 92, [MR_CAUSE_BLOCKED] = 34}},
        {"cpu quota",
         "short of cores",
         "38.6 the control group's CPU quota",
         NULL,
         {[MR_CAUSE_QUOTA] = 386, [MR_CAUSE_DECODE] = 237, [MR_CAUSE_HOST] = 58}},
        {"throttled device",
         "storage-bound",
         "44.4 reading",
         NULL,
         {[MR_CAUSE_READ] = 444, [MR_CAUSE_HOST] = 126, [MR_CAUSE_CORES] = 9}},
        {"progressive",
         "input-bound",
         "6.0 decoding",
         NULL,
         {[MR_CAUSE_DECODE] = 60, [MR_CAUSE_COPY] = 16, [MR_CAUSE_CORES] = 9}},
        {"uneven sizes, beside other programs",
         "short of cores",
         "3.7 decoding of single slow samples",
         NULL,
         {[MR_CAUSE_CORES] = 401, [MR_CAUSE_DECODE] = 61, [MR_CAUSE_LARGE] = 37}},
        {"first epoch",
         "storage-bound",
         "27.1 reading",
         NULL,
         {[MR_CAUSE_READ] = 271, [MR_CAUSE_HOST] = 76, [MR_CAUSE_CORES] = 40}},
        {"the epoch after it", "compute-bound", "busy 100.0 %", NULL, {0}},
        {"prefetch 1, beside other programs",
         "short of cores",
         "21.1 cores",
         NULL,
         {[MR_CAUSE_CORES] = 211, [MR_CAUSE_READ] = 28}},
        {"slow device", "compute-bound", "sim:3 step=120ms takes", "sim:3 step=120ms", {[MR_CAUSE_HOST] = 6}},
        {"remote, beside other programs",
         "short of cores",
         "20.8 reading",
         NULL,
         {[MR_CAUSE_CORES] = 255, [MR_CAUSE_READ] = 208}},
    };
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        char text[256];
        mri_verdict_input in = {.prefetch = 4, .workers = 2, .slow_device = runs[i].slow_device};
        for (int k = 0; k < MR_CAUSES; k++) in.causes.ns[k] = runs[i].ns[k], in.exposed_ns += runs[i].ns[k];
        in.compute_ns = 1000 - in.exposed_ns;
        in.causes.total_ns = in.exposed_ns;
        in.slow_ms = 120, in.others_ms = 60;
        mri_verdict(&in, text, sizeof text);
        if (strncmp(text, runs[i].verdict, strlen(runs[i].verdict)) != 0)
            print_message("%s: %s\n", runs[i].fault, text);
        MRT_HAS(text, runs[i].verdict);
        MRT_HAS(text, runs[i].reported);
    }
}

/* Several busy devices, and one delays the others: the verdict names it, and not the loader. */
static void network_is_weighed_against_other_causes(void **state)
{
    (void)state;
    char text[256];
    mri_verdict_input in = {.compute_ns = 300,
                            .exposed_ns = 700,
                            .network_ns = 600,
                            .link_ns = UINT64_MAX,
                            .prefetch = 4,
                            .smaller_buckets = true,
                            .causes = {{[MR_CAUSE_DECODE] = 100}, 100}};
    mri_verdict(&in, text, sizeof text);
    MRT_STR(text,
            "network-bound: the step waited 60.0 % of the time for gradients of other ranks; smaller buckets "
            "(--bucket), a larger --batch or a faster network would help");
    in.smaller_buckets = false;
    mri_verdict(&in, text, sizeof text);
    MRT_STR(
        text,
        "network-bound: the step waited 60.0 % of the time for gradients of other ranks; a larger --batch "
        "or a faster network would help");
    in.causes = (mr_causes){{[MR_CAUSE_DECODE] = 400}, 400};
    in.network_ns = 300;
    mri_verdict(&in, text, sizeof text);
    MRT_STR(text, "input-bound: the device idled 70.0 % of the time: 40.0 decoding, 30.0 gradients of other "
                  "ranks; more workers or cores, or records that need less decoding (convert), would help");
    in = (mri_verdict_input){.compute_ns = 980, .exposed_ns = 20, .network_ns = 20};
    mri_verdict(&in, text, sizeof text);
    MRT_STR(text, "compute-bound: the device was busy 98.0 % of the time; a faster loader would not help");
}

static void late_rank_is_told_with_its_cause(void **state)
{
    (void)state;
    char text[256];
    mri_verdict_input in = {.compute_ns = 400,
                            .exposed_ns = 600,
                            .network_ns = 600,
                            .prefetch = 4,
                            .link_ns = 300,
                            .late = {500, 30, 3, "node3", 40, 1, 10, 0}};
    mri_verdict(&in, text, sizeof text);
    MRT_STR(text,
            "late rank: the step waited 60.0 % of the time for other ranks, 50.0 for rank 3 (node3), which "
            "computes 40.0 ms a step, this rank 10.0; a faster device there would help");
    in.late = (mri_verdict_late){500, 30, 3, "node3", 11, 30, 10, 0.5};
    mri_verdict(&in, text, sizeof text);
    MRT_STR(text,
            "late rank: the step waited 60.0 % of the time for other ranks, 50.0 for rank 3 (node3), which "
            "waits for data 30.0 ms a step, this rank 0.5; a faster loader there would help");
    in.late.ms = 90; /* on average nothing explains it */
    mri_verdict(&in, text, sizeof text);
    MRT_STR(
        text,
        "late rank: the step waited 60.0 % of the time for other ranks, 50.0 for rank 3 (node3), whose steps "
        "take uneven times; fewer other programs on its host may help");
    in.late.ns = 200;
    mri_verdict(&in, text, sizeof text);
    MRT_HAS(text, "network-bound: ");
}

/* Sums of a fast network take 0.7 % of the time, and processes of a busy machine wait 9 % for each other. */
static void network_does_not_take_longer_than_it_needs(void **state)
{
    (void)state;
    char text[256];
    mri_verdict_input in = {.compute_ns = 910,
                            .exposed_ns = 90,
                            .network_ns = 90,
                            .link_ns = 7,
                            .prefetch = 4,
                            .late = {40, 1, 1, "n1", 5, 0, 5, 0}};
    mri_verdict(&in, text, sizeof text);
    MRT_STR(
        text,
        "late ranks: the step waited 9.0 % of the time for other ranks, and the network needs 0.7 at most; "
        "each is late in turn: fewer other programs on their hosts, or fewer ranks than cores, would help");
    in.link_ns = 44;
    mri_verdict(&in, text, sizeof text);
    MRT_HAS(text, "late ranks: ");
    in.link_ns = 45; /* half of it */
    mri_verdict(&in, text, sizeof text);
    MRT_HAS(text, "network-bound: the step waited 9.0 %");
    in.late.ns = 46;
    mri_verdict(&in, text, sizeof text);
    MRT_HAS(text, "late rank: ");
    in.late.ns = 0, in.link_ns = 400; /* hidden behind computing */
    mri_verdict(&in, text, sizeof text);
    MRT_HAS(text, "network-bound: ");
}

static void who_waits_least_is_late(void **state)
{
    (void)state;
    mri_lateness l;
    double part;
    MRT_EQ(mri_lateness_init(&l, 0, 3), MR_OK);
    mri_lateness_worst(&l, &part);
    MRT_TRUE(part == 0);
    mri_lateness_compare(&l, (const uint64_t[]){1, 1, 1}, (const uint64_t[]){100, 20, 90});
    mri_lateness_compare(&l, (const uint64_t[]){2, 1, 2}, (const uint64_t[]){900, 20, 90}); /* not yet */
    mri_lateness_compare(&l, (const uint64_t[]){2, 2, 2}, (const uint64_t[]){150, 80, 100});
    MRT_EQ(l.waited_ns, 150);
    MRT_EQ(mri_lateness_worst(&l, &part), 1);
    MRT_TRUE(part == 80.0 / 150);
    MRT_EQ(l.late_ns[2], 40);
    mri_lateness_begin(&l);
    mri_lateness_compare(&l, (const uint64_t[]){3, 3, 3}, (const uint64_t[]){160, 180, 200}); /* it is itself
                                                                                               */
    mri_lateness_worst(&l, &part);
    MRT_TRUE(part == 0 && l.waited_ns == 10);
    mri_lateness_fini(&l);
}

static void network_of_a_step_is_no_computing(void **state)
{
    (void)state;
    mri_step_log *log = malloc(sizeof *log);
    static const uint64_t start[2][2] = {{100, 100}, {250, 260}}, end[2][2] = {{200, 210}, {400, 410}};
    static const uint64_t inside[2][2] = {{30, 40}, {90, 80}};
    mri_step_log_start(log, 2, 0);
    mri_step_log_add(log, start[0], NULL, end[0], 1, NULL, &(mri_step_network){0, inside[0]});
    mri_step_log_add(log, start[1], NULL, end[1], 1, NULL, &(mri_step_network){60, inside[1]});
    MRT_TRUE(log->network_ns == (30 + 40 + 90 + 80 + 60) / 2.0);
    MRT_TRUE(log->exposed_ns == (30 + 40 + 90 + 80 + 50 + 50) / 2.0);
    MRT_TRUE(log->compute_ns == (70 + 70 + 60 + 70) / 2.0);
    free(log);
}

static void test_verdict_on_a_slow_device(void **state)
{
    (void)state;
    char text[256];
    mri_verdict_input in = {.compute_ns = 980,
                            .exposed_ns = 20,
                            .prefetch = 4,
                            .workers = 2,
                            .causes = {{[MR_CAUSE_READ] = 20}, 20},
                            .slow_device = "sim:3 step=20ms",
                            .slow_ms = 20,
                            .others_ms = 10};
    mri_verdict(&in, text, sizeof text);
    MRT_HAS(text,
            "compute-bound: sim:3 step=20ms takes 20.00 ms for its part of a step, 2.0 times the others' "
            "10.00, and they wait for it; a faster loader would not help");
    in.slow_ms = 12;
    mri_verdict(&in, text, sizeof text);
    MRT_HAS(text, "busy 98.0 %");
    in.slow_ms = 20;
    in.exposed_ns = 980; /* they wait for data first */
    in.causes = (mr_causes){{[MR_CAUSE_READ] = 980}, 980};
    mri_verdict(&in, text, sizeof text);
    MRT_HAS(text, "storage-bound");
}

static void test_the_slowest_replica(void **state)
{
    (void)state;
    mri_step_log *log = malloc(sizeof *log);
    static const uint64_t start[4] = {0, 0, 0, 0}, own[4] = {1000000, 3000000, 1200000, 900000},
                          end[4] = {3100000, 3100000, 3100000, 3100000},
                          late[4] = {3000000, 1000000, 1000000, 1000000};
    uint32_t who = 9;
    double ms = 0, others = 0;
    mri_step_log_start(log, 4, 1);
    mri_step_log_add(log, start, late, end, 1, NULL, NULL); /* of the warm-up: not counted */
    MRT_TRUE(!mri_slowest_replica(log->own_ns, log->replicas, log->steps - log->warmup, &who, &ms, &others));
    for (int i = 0; i < 3; i++) mri_step_log_add(log, start, own, end, 1, NULL, NULL);
    MRT_TRUE(mri_slowest_replica(log->own_ns, log->replicas, log->steps - log->warmup, &who, &ms, &others));
    MRT_EQ(who, 1);
    MRT_TRUE(fabs(ms - 3) < 1e-9 && fabs(others - 1) < 1e-9);
    mri_step_log_start(log, 1, 0);
    mri_step_log_add(log, start, NULL, end, 1, NULL, NULL);
    MRT_TRUE(!mri_slowest_replica(log->own_ns, log->replicas, log->steps, &who, &ms, &others)); /* there are
                                                                                                   no others
                                                                                                 */
    free(log);
}

static void test_loader_stats_since(void **state)
{
    (void)state;
    mr_loader_stats a = {0}, b = {0}, d;
    a.read.busy_ns = 10, b.read.busy_ns = 25;
    a.decode.items = 3, b.decode.items = 10;
    b.copy.threads = 2, b.copy.occupancy = 0.5;
    a.bytes_copied[63] = 5, b.bytes_copied[63] = 6;
    a.wait_ns = 1, b.wait_ns = 9;
    a.bad_samples = 1, b.bad_samples = 4;
    mri_loader_stats_since(&b, &a, &d);
    MRT_EQ(d.read.busy_ns, 15);
    MRT_EQ(d.decode.items, 7);
    MRT_EQ(d.copy.threads, 2);
    MRT_TRUE(d.copy.occupancy == 0.5);
    MRT_EQ(d.bytes_copied[63], 1);
    MRT_EQ(d.wait_ns, 8);
    MRT_EQ(d.bad_samples, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_median_and_mad),
        cmocka_unit_test(test_series_stays_bounded_and_even),
        cmocka_unit_test(test_step_log),
        cmocka_unit_test(test_verdict),
        cmocka_unit_test(test_verdict_on_recorded_faults),
        cmocka_unit_test(test_verdict_on_a_slow_device),
        cmocka_unit_test(network_is_weighed_against_other_causes),
        cmocka_unit_test(late_rank_is_told_with_its_cause),
        cmocka_unit_test(network_does_not_take_longer_than_it_needs),
        cmocka_unit_test(who_waits_least_is_late),
        cmocka_unit_test(network_of_a_step_is_no_computing),
        cmocka_unit_test(test_the_slowest_replica),
        cmocka_unit_test(test_loader_stats_since),
    };
    return mrt_run(tests);
}
