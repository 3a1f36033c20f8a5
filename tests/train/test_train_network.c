/* The limit reported by a run of several processes: their network, one of them, or the devices. Devices are
 * simulated, so the time of a step does not depend on this machine; sends are slow where a test
 * requests it. */
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

#include "tests/ranks/worlds.h"
#include "tests/train/fit_rig.h"

enum { DATA_LEAST = 64 }; /* bytes of a message; heartbeats are shorter */

typedef struct job {
    const char *devices[2];
    uint32_t send_ms; /* so long takes each send of data */
    uint64_t steps;
    bool traced;
    uint64_t bucket_bytes;
} job;

static uint32_t send_ms;

ssize_t __real_sendmsg(int fd, const struct msghdr *m, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags)
{
    size_t bytes = 0;
    for (size_t i = 0; i < m->msg_iovlen; i++) bytes += m->msg_iov[i].iov_len;
    if (bytes >= DATA_LEAST && send_ms) nanosleep(&(struct timespec){0, (long)send_ms * 1000000}, NULL);
    return __real_sendmsg(fd, m, flags);
}

static mr_loader *loader_of(const mrt_rig *rig, const mr_source *src, mr_error *err)
{
    mr_loader_config cfg;
    mr_loader *l = NULL;
    mr_loader_defaults(&cfg);
    cfg.batch = BATCH;
    cfg.order = MR_ORDER_SEQUENTIAL;
    cfg.epochs = 1;
    cfg.workers = 1;
    cfg.prefetch = 2;
    cfg.devices = rig->devices;
    cfg.device_count = 1;
    cfg.all_parts = rig->parts.all;
    cfg.first_part = rig->parts.first;
    return mr_loader_open(&l, src, &cfg, err) == MR_OK ? l : NULL;
}

/* Spans of the exchange follow each other; how many sums there are, and whether some wait for rank 1 took
 * longer than any jitter. */
static void read_trace(const mr_trace *trace, char *out, size_t out_bytes)
{
    mr_trace_entry *e = NULL;
    size_t count = 0, sums = 0, exchanges = 0;
    uint64_t end_ns = 0, longest_ns = 0;
    bool in_order = true;
    if (mr_trace_entries(trace, &e, &count)) return;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(e[i].track, "exchange") != 0) continue;
        in_order = in_order && e[i].start_ns >= end_ns && e[i].end_ns >= e[i].start_ns;
        end_ns = e[i].end_ns;
        sums += strcmp(e[i].name, "sum") == 0;
        exchanges += strcmp(e[i].name, "exchange") == 0;
        if (strcmp(e[i].name, "wait for rank 1") == 0 && e[i].end_ns - e[i].start_ns > longest_ns)
            longest_ns = e[i].end_ns - e[i].start_ns;
    }
    snprintf(out, out_bytes, "; trace: %zu sums, %s, %s, waited %s", sums,
             exchanges >= 2 * sums ? "twice as many exchanges" : "exchanges are missing",
             in_order ? "in order" : "out of order", longest_ns > 50000000 ? "long" : "shortly");
    free(e);
}

static int fit(const job *j, mr_world *world, uint32_t rank, mr_report *report, char *spans, size_t room,
               mr_error *err)
{
    mr_trace *trace = NULL;
    spans[0] = '\0';
    if (j->traced && mr_trace_create(&trace, 4096)) return MR_ENOMEM;

    mrt_rig rig;
    mr_source *src;
    mr_fit_config cfg;
    int rc = mrt_rig_try(&rig,
                         &(mrt_rig_options){.devices = j->devices[rank],
                                            .batch = BATCH,
                                            .bucket_bytes = j->bucket_bytes,
                                            .trace = trace,
                                            .parts = world ? mr_world_size(world) : 1,
                                            .world = world},
                         err);
    if (rc) return rc;
    rc = mr_source_open(&src, mrt_toy_set("train", 0, TRAIN), NULL, err);
    mr_loader *l = rc ? NULL : loader_of(&rig, src, err);
    mr_fit_defaults(&cfg);
    cfg.max_steps = j->steps;
    cfg.warmup_steps = 1;
    report->struct_size = sizeof *report;
    rc = l ? mr_fit(rig.t, l, &cfg, report, err) : err->code;
    mr_loader_close(l);
    if (src) mr_source_close(src);
    mrt_rig_close(&rig);
    if (trace) read_trace(trace, spans, room);
    mr_trace_destroy(trace);
    return rc;
}

/* The text that a rank leaves: the verdict, then numbers. */
static void live(mrt_worlds *w, uint32_t slot, uint32_t rank, uint32_t size, const void *what)
{
    const job *j = what;
    mr_error err = MR_ERROR_INIT;
    mr_report r = {0};
    mrt_rank *me = &w->ranks[slot];
    mr_world *world = mrt_open(w, slot, rank, size, 10);
    if (!world) return;
    send_ms = j->send_ms;
    char spans[256];
    const int rc = fit(j, world, rank, &r, spans, sizeof spans, &err);
    if (rc) mrt_keep(me, rc, &err);
    else
        snprintf(me->text, sizeof me->text, "%s; rank %u is late, %s, %d%s", r.verdict, r.late_rank,
                 r.stall_fraction < 0.5 ? "busy" : "idle",
                 r.network_ms > 0 && r.network_ms <= r.exposed_ms && r.late_ms <= r.network_ms, spans);
    mr_world_close(world);
}

static void run_both(const job *j, char said[2][1024])
{
    mrt_toy_set("train", 0, TRAIN);
    mrt_worlds *w = mrt_worlds_new();
    mrt_start_all(w, 2, live, j);
    mrt_wait_all(w, 2);
    for (uint32_t r = 0; r < 2; r++) {
        mrt_ended_well(w, r);
        if (w->ranks[r].rc) fail_msg("rank %u: %s", r, w->ranks[r].text);
        snprintf(said[r], sizeof w->ranks[r].text, "%s", w->ranks[r].text);
    }
    mrt_worlds_free(w);
}

static void slow_wire_is_named(void **state)
{
    (void)state;
    char said[2][1024];
    /* far longer than a rank waits for a processor on a busy machine: that would be a late rank */
    run_both(&(job){.devices = {"sim:1,step=1ms", "sim:1,step=1ms"}, .send_ms = 200, .steps = 4}, said);
    for (uint32_t r = 0; r < 2; r++) {
        MRT_HAS(said[r], "network-bound: the step waited");
        MRT_HAS(said[r], ", 1");
    }
}

static void late_rank_is_named(void **state)
{
    (void)state;
    char said[2][1024];
    run_both(&(job){.devices = {"sim:1,step=1ms", "sim:1,step=300ms"}, .steps = 5}, said);
    MRT_HAS(said[0], "late rank: the step waited");
    MRT_HAS(said[0], "for rank 1 (");
    MRT_HAS(said[0], "computes 30");
    MRT_HAS(said[0], "rank 1 is late, idle, 1");
    MRT_TRUE(!strstr(said[1], "for rank 0")); /* busy cores may delay the sums, but nobody it waits for */
}

static void each_bucket_is_in_the_trace(void **state)
{
    (void)state;
    char said[2][1024];
    run_both(&(job){.devices = {"sim:1,step=1ms", "sim:1,step=300ms"}, .steps = 4, .traced = true}, said);
    MRT_HAS(said[0], "trace: 4 sums, twice as many exchanges, in order, waited long");
    run_both(
        &(job){
            .devices = {"sim:1,step=1ms", "sim:1,step=1ms"}, .steps = 4, .traced = true, .bucket_bytes = 1},
        said);
    for (uint32_t r = 0; r < 2; r++) {
        MRT_HAS(said[r], "twice as many exchanges, in order");
        MRT_TRUE(!strstr(said[r], "trace: 4 sums") && strstr(said[r], "trace: "));
    }
}

/* However busy the cores are that pass the gradients on. */
static void fast_wire_costs_little(void **state)
{
    (void)state;
    char said[2][1024];
    run_both(&(job){.devices = {"sim:1,step=900ms", "sim:1,step=900ms"}, .steps = 3}, said);
    for (uint32_t r = 0; r < 2; r++) MRT_HAS(said[r], "busy, ");
}

static void one_process_has_no_network(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_report r = {0};
    const job j = {.devices = {"sim:1,step=1ms"}, .steps = 5, .traced = true};
    char spans[256];
    MRT_OK(fit(&j, NULL, 0, &r, spans, sizeof spans, &err), &err);
    MRT_TRUE(r.network_ms == 0 && r.late_ms == 0);
    MRT_HAS(spans, "trace: 0 sums");
    MRT_TRUE(!strstr(r.verdict, "network") && !strstr(r.verdict, "rank"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slow_wire_is_named),          cmocka_unit_test(late_rank_is_named),
        cmocka_unit_test(each_bucket_is_in_the_trace), cmocka_unit_test(fast_wire_costs_little),
        cmocka_unit_test(one_process_has_no_network),
    };
    setenv("MRT_WIRE", "tcp", 1); /* whose sends are slow here */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
