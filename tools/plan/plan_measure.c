/* tools/plan/plan_measure.c: the run that `millrace plan` records: steps of the network, or, on simulated
 * devices, steps of nothing but their time. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/clock.h"
#include "tools/cli/exit.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/output.h"
#include "tools/plan/plan.h"
#include "tools/trial/measure.h"
#include "tools/trial/timed_step.h"

enum { CHUNKS_KEPT = 65536 };
#define SOME_IDLE 0.05 /* of the cores' time: whoever wanted to run did */

/* ---- opening ---- */

static int open_run(const plan_args *a, tool_session *s, mr_record *record)
{
    run_args run;
    int status = timed_step_or_model(s, &a->shared, &run);
    if (status == EXIT_DONE) status = session_set_loader(s, &a->shared, &run, true, 0);
    if (status) return status;
    s->loader_cfg.epochs = UINT64_MAX;
    s->loader_cfg.record = record;
    status = session_open_loader(s);
    if (status == EXIT_DONE) status = timed_step_net(s);
    return status ? status : session_open_network(s, 1, false);
}

/* ---- running ---- */

enum { STEPS_KEPT = 1024 }; /* the newest */

/* Time that devices waited for other processes, and the number of steps in which they did. */
typedef struct network_wait {
    double ms, late_ms; /* late_ms: of that, for a late one */
    uint64_t steps;
    const mr_trainer *trainer;
    uint32_t rank;
    mr_rank_times before;    /* of the steps up to the newest one that was looked at */
    double each[STEPS_KEPT]; /* of single steps, in ms */
    uint64_t count;          /* that were kept */
} network_wait;

/* What this process has reported before its newest step. */
static void look_at_step(void *context, uint64_t epoch, uint64_t step, uint64_t steps_per_epoch, double rate)
{
    network_wait *wait = context;
    mr_rank_times now;
    (void)epoch, (void)step, (void)steps_per_epoch, (void)rate;
    if (mr_trainer_rank_times(wait->trainer, wait->rank, &now, NULL)) return;
    if (now.steps == wait->before.steps + 1)
        wait->each[wait->count++ % STEPS_KEPT] =
            now.network_ms * (double)now.steps - wait->before.network_ms * (double)wait->before.steps;
    wait->before = now;
}

static int run_steps(tool_session *s, uint64_t steps, network_wait *wait)
{
    mr_error err = MR_ERROR_INIT;
    mr_fit_config cfg;
    mr_report last = {.steps = 0};
    mr_fit_defaults(&cfg);
    cfg.max_steps = steps;
    cfg.stop = &interrupt_flag;
    if (wait->trainer) cfg.callbacks.context = wait, cfg.callbacks.on_step = look_at_step;
    const int rc = mr_fit(s->trainer, s->loader, &cfg, &last, &err);
    if (last.steps > last.warmup_steps) {
        wait->ms += last.network_ms;
        wait->late_ms += last.late_ms;
        wait->steps += last.steps - last.warmup_steps;
    }
    return exit_status(rc, &err);
}

/* The first process decides how many steps come next. */
static int agree(const tool_session *s, uint64_t *steps)
{
    mr_error err = MR_ERROR_INIT;
    if (!s->world) return EXIT_DONE;
    return exit_status(mr_world_broadcast(s->world, WORLD_HOST_CALLS, steps, sizeof *steps, 0, &err), &err);
}

/* Use up batches prepared before the clock ran, then run steps for about `seconds`. */
static int run_for(tool_session *s, double seconds, mr_record *record, plan_result *p)
{
    const uint64_t warmup = 2 * (uint64_t)(mr_loader_info_of(s->loader)->prefetch + 3);
    network_wait wait = {.trainer = s->world ? s->trainer : NULL}, ignored = {0};
    if (s->world) wait.rank = mr_world_rank(s->world);
    uint64_t start = clock_ns();
    int status = run_steps(s, warmup, &ignored);
    double rate = (double)warmup / (seconds_since(start) + 1e-9), passed = 0, used = cpu_seconds();
    const double stored = mr_pages_storage_bytes();
    core_ticks before, after;
    core_ticks_read(&before);
    mr_record_clear(record);
    start = clock_ns();
    for (uint64_t done = 0; status == EXIT_DONE;) {
        const double left = rate * (seconds - passed);
        uint64_t steps = passed >= seconds ? 0 : left < 8 ? 8 : left > 1e6 ? 1000000 : (uint64_t)left;
        status = agree(s, &steps);
        if (status || steps == 0) break;
        status = run_steps(s, steps, &wait);
        done += steps;
        passed = seconds_since(start);
        rate = (double)done / passed;
    }
    p->ranks.exposed_ms = wait.steps ? wait.ms / (double)wait.steps : 0;
    p->ranks.late_ms = wait.steps ? wait.late_ms / (double)wait.steps : 0;
    wait.count = wait.count < STEPS_KEPT ? wait.count : STEPS_KEPT;
    p->ranks.usual_ms = wait.count ? mr_measure_median(wait.each, (uint32_t)wait.count, NULL) : 0;
    p->cores = passed > 0 ? (cpu_seconds() - used) / passed : 0;
    core_ticks_read(&after);
    core_use_between(&before, &after, p->cores, &p->use);
    mr_record_totals_read(record, &p->measured);
    const double bytes = p->measured.bytes_per_sample * p->measured.samples_per_s * passed;
    p->from_storage = bytes > 0 ? fmin(1, (mr_pages_storage_bytes() - stored) / bytes) : 0;
    return status;
}

/* ---- further inputs of the pipeline's model ---- */

enum { COPY_BYTES = 16 << 20 };

/* Bytes a second that one core copies. */
static double copy_rate(void)
{
    uint8_t *from = malloc(COPY_BYTES), *to = malloc(COPY_BYTES);
    double best = 0;
    for (int i = 0; from && to && i < 4; i++) {
        memset(from, i, COPY_BYTES);
        const uint64_t start = clock_ns();
        memcpy(to, from, COPY_BYTES);
        const double rate = COPY_BYTES / (seconds_since(start) + 1e-9);
        if (rate > best && to[i] == i) best = rate;
    }
    free(from);
    free(to);
    return best;
}

/* The step as it is when nobody else wants the cores. */
static int measure_step(tool_session *s, double seconds, plan_result *p)
{
    mr_rate alone;
    const mr_loader_info *l = mr_loader_info_of(s->loader);
    synthetic_batch in = {.batch = measure_own_batch(s, l->batch),
                          .h = l->height,
                          .w = s->model->numbers ? l->field[0].most : l->width,
                          .c = l->channels,
                          .classes = mr_net_class_count(s->net),
                          .uses_affine = l->uses_affine,
                          .seed = s->loader_cfg.seed};
    memcpy(in.mean, l->mean, sizeof in.mean);
    memcpy(in.std, l->std, sizeof in.std);
    session_close_trainer(s);
    session_close_loader(s); /* its threads would share the cores */
    int status = measure_trainer(s, &in, seconds, &alone, NULL, NULL);
    if (status == EXIT_DONE) status = measure_slowest(s, &alone);
    if (status == EXIT_DONE) p->ranks.alone_ms = alone.step_ms;
    return status;
}

static int describe_devices(const plan_args *a, tool_session *s, plan_result *p)
{
    const mr_device_info *d = mr_device_info_of(s->devices[0]);
    const double rate = strcmp(d->kind, "cuda") == 0 ? 0 : copy_rate();
    if (rate > 0) p->base.copy_core_ms = 1e3 * p->copied_bytes / rate;
    if (strcmp(d->kind, "cpu") == 0) p->base.step_cores = d->threads;
    p->ranks.alone_ms = p->measured.step_ms;
    return p->base.step_cores || s->world ? measure_step(s, a->seconds / 5, p) : EXIT_DONE;
}

static void describe(const tool_session *s, plan_result *p)
{
    const mr_loader_info *l = mr_loader_info_of(s->loader);
    const mr_device_info *d = mr_device_info_of(s->devices[0]);
    p->data = mr_source_info_of(s->src)->path;
    p->model = s->model->name;
    p->device = d->name;
    p->simulated = d->simulated;
    p->devices = s->device_count;
    p->batch = l->batch;
    p->workers = l->workers;
    p->prefetch = l->prefetch;
    p->readers = l->readers;
    p->depth = s->loader_cfg.depth;
    p->resident = l->resident_bytes > 0;
    p->copied_bytes = (double)l->device_bytes / (l->prefetch ? 2 : 1); /* of two device slots */
    p->ranks.now.ranks = s->world ? mr_world_size(s->world) : 1;
    mr_trainer_link link;
    mr_trainer_link_read(s->trainer, &link);
    p->ranks.wires = s->world ? link.wire : NULL;
    p->ranks.now.link = (plan_link){1e-3 * link.latency_ms, link.bytes_per_s};
}

/* Steps that a stall of the network has delayed (lost packets) count for the present processes. Others meet
 * other stalls: their prediction is of the usual step. */
static int predict_ranks(const plan_link *link, const tool_session *s, plan_result *p)
{
    plan_ranks *r = &p->ranks;
    const double exposed_ms = r->exposed_ms - r->late_ms;
    int status = plan_exchange_predict(s, r->alone_ms, &r->now);
    plan_exchange usual = r->now;
    if (status == EXIT_DONE) status = plan_exchange_fit(s, r->alone_ms, exposed_ms, &r->now);
    if (status == EXIT_DONE)
        status = plan_exchange_fit(s, r->alone_ms, fmin(exposed_ms, r->usual_ms), &usual);
    return status ? status : plan_exchange_others(s, r->alone_ms, &usual, link, r->then);
}

/* Of this process, when its trainer and loader are closed. */
static int measure_machine(const plan_args *a, const tool_session *s, const mr_record *record, plan_result *p)
{
    mr_error err = MR_ERROR_INIT;
    if (p->base.cores > 1)
        p->base.crowd_part = fmin(1, fmax(0, (p->cores + p->use.others_ran - 1) / (p->base.cores - 1)));
    int status = plan_measure_crowd(s, fmin(2, fmax(0.3, a->seconds / 5)), p);
    if (status == EXIT_DONE) status = exit_status(mr_replay_find_others(record, &p->base, &err), &err);
    /* of many cores any number may have been busy when workers were hardly delayed */
    if (p->use.known && p->use.idle > SOME_IDLE) p->base.others = fmin(p->base.others, p->use.others_ran);
    return status;
}

int plan_measure(const plan_args *a, const plan_link *link, tool_session *s, mr_record **record,
                 plan_result *p)
{
    mr_error err = MR_ERROR_INIT;
    if (mr_record_create(record, CHUNKS_KEPT) != MR_OK) return exit_no_memory("a record of the run");
    int status = open_run(a, s, *record);
    if (status) return status;
    describe(s, p);
    status = run_for(s, a->seconds, *record, p);
    if (status == EXIT_DONE) status = exit_status(mr_replay_defaults(*record, &p->base, &err), &err);
    if (status == EXIT_DONE) status = describe_devices(a, s, p);
    if (status == EXIT_DONE) status = predict_ranks(link, s, p);
    p->base.step_times = plan_step_times(p, &p->ranks.now);
    session_close_trainer(s);
    session_close_loader(s);
    s->loader_cfg.record = NULL;
    if (s->world && mr_world_rank(s->world) > 0) return status;
    if (status == EXIT_DONE) status = measure_machine(a, s, *record, p);
    p->measured.samples_per_s *= p->ranks.now.ranks;
    return status;
}
