/* tools/trial/storage.c: see storage.h. The loader's rate alone says how many accelerators to begin with;
 * runs with that number of devices, and with more or fewer, then find the largest number that is fed. */
#include "tools/trial/storage.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tools/cli/clock.h"
#include "tools/cli/exit.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/output.h"
#include "tools/trial/measure.h"
#include "tools/trial/timed_step.h"

enum { STEPS_LEAST = 4, AHEAD = 2, RUNS_MOST = 12, NO_ROOM = -1 };

/* docs/storage-benchmark.md says where these stand. */
static const storage_unit units[] = {
    {"resnet50", "a100", 400, 0.435, 0.90, "rrc224"},
    {"resnet50", "h100", 400, 0.224, 0.90, "rrc224"},
    {"retinanet", "b200", 24, 0.04755, 0.85, "resize(800x800)"},
    {"retinanet", "mi355", 32, 0.0634, 0.85, "resize(800x800)"},
};

const storage_unit *storage_unit_at(uint32_t at)
{
    return at < sizeof units / sizeof units[0] ? &units[at] : NULL;
}

const storage_unit *storage_unit_find(const char *workload, const char *accelerator)
{
    for (uint32_t i = 0; storage_unit_at(i); i++)
        if (strcmp(units[i].accelerator, accelerator) == 0 &&
            (!workload || strcmp(units[i].workload, workload) == 0))
            return &units[i];
    return NULL;
}

/* ---- opening accelerators ---- */

static int open_devices(tool_session *s, uint32_t accelerators, double step_s)
{
    char text[64];
    snprintf(text, sizeof text, "sim:%" PRIu32 ",step=%.0fns", accelerators, 1e9 * step_s);
    const device_args d = {.devices = text};
    return session_open_devices(s, &d);
}

static void close_run(tool_session *s)
{
    mr_source *src = s->src; /* stays open from run to run */
    s->src = NULL;
    session_close(s);
    s->src = src;
}

/* NO_ROOM, without a message: the batches of that number need more memory than is available. */
static int open_run(tool_session *s, const storage_unit *u, uint32_t accelerators)
{
    mr_error err = MR_ERROR_INIT;
    int status = open_devices(s, accelerators, u->step_s);
    if (status) return status;
    s->loader_cfg.batch = u->batch * accelerators;
    s->loader_cfg.devices = s->devices;
    s->loader_cfg.device_count = s->device_count;
    const int rc = mr_loader_open(&s->loader, s->src, &s->loader_cfg, &err);
    if (accelerators > 1 && (rc == MR_ELIMIT || rc == MR_ENOMEM)) return NO_ROOM;
    if (rc) return setting_status(rc, &err);
    const mr_loader_info *l = mr_loader_info_of(s->loader);
    const double need = (double)l->device_bytes * accelerators + (double)l->memory_bytes;
    const double room = (double)mr_pages_memory_available();
    return accelerators > 1 && room > 0 && need > 0.9 * room ? NO_ROOM : EXIT_DONE;
}

static int open_steps(tool_session *s)
{
    const model_args none = {.lr = NAN, .momentum = NAN, .weight_decay = NAN};
    s->model = &timed_step_model;
    int status = session_fill_rule(s, &none, false);
    if (status == EXIT_DONE) status = timed_step_net(s);
    return status ? status : session_open_trainer(s, 1, false);
}

/* ---- steps ---- */

typedef struct run_clock {
    mr_event *events[AHEAD + 1];
    uint64_t queued, ended, warmup, first_ns, last_ns; /* ends of the last step to warm up, and of the last */
    double cpu, storage;
    uint64_t bytes;
} run_clock;

static void start_counting(const tool_session *s, run_clock *c, uint64_t end_ns)
{
    mr_loader_stats stats;
    mr_loader_stats_read(s->loader, &stats);
    c->first_ns = end_ns;
    c->bytes = stats.bytes_read;
    c->storage = mr_pages_storage_bytes();
    c->cpu = cpu_seconds();
}

static int queue_step(tool_session *s, run_clock *c, mr_error *err)
{
    mr_batch b;
    mr_stream *const *streams = mr_trainer_streams(s->trainer);
    int rc = mr_loader_next(s->loader, &b, MR_FOREVER, err);
    if (rc != MR_OK) return rc;
    rc = mr_trainer_step(s->trainer, &b, err);
    if (rc == MR_OK) rc = mr_event_record(c->events[c->queued % (AHEAD + 1)], streams[0]);
    c->queued++;
    mr_loader_release(s->loader, &b, streams);
    return rc;
}

static int end_step(const tool_session *s, run_clock *c, mr_error *err)
{
    mr_event *oldest = c->events[c->ended % (AHEAD + 1)];
    int rc = mr_event_sync(oldest, err);
    if (rc == MR_OK) rc = mr_event_time_ns(oldest, &c->last_ns);
    if (rc == MR_OK && ++c->ended == c->warmup) start_counting(s, c, c->last_ns);
    return rc;
}

static bool is_long_enough(const run_clock *c, double seconds)
{
    return c->ended >= c->warmup + STEPS_LEAST && (double)(c->last_ns - c->first_ns) * 1e-9 >= seconds;
}

static int run_steps(tool_session *s, run_clock *c, double seconds, mr_error *err)
{
    int rc = MR_OK;
    while (rc == MR_OK && !interrupt_flag && !is_long_enough(c, seconds)) {
        rc = queue_step(s, c, err);
        if (rc == MR_OK && c->queued - c->ended > AHEAD) rc = end_step(s, c, err);
    }
    return rc;
}

static void count(const tool_session *s, const storage_unit *u, const run_clock *c, storage_point *p)
{
    mr_loader_stats stats;
    mr_loader_stats_read(s->loader, &stats);
    const double storage = mr_pages_storage_bytes();
    p->warmup_steps = c->warmup;
    p->steps = c->ended - c->warmup;
    p->seconds = (double)(c->last_ns - c->first_ns) * 1e-9;
    p->busy = (double)p->steps * u->step_s / p->seconds;
    p->samples_per_s = (double)p->steps * s->loader_cfg.batch / p->seconds;
    p->read_bytes_per_s = (double)(stats.bytes_read - c->bytes) / p->seconds;
    p->storage_bytes_per_s = storage >= 0 && c->storage >= 0 ? (storage - c->storage) / p->seconds : NAN;
    p->cores = (cpu_seconds() - c->cpu) / p->seconds;
}

static int time_steps(tool_session *s, const storage_unit *u, double seconds, storage_point *p)
{
    mr_error err = MR_ERROR_INIT;
    mr_metrics training, evaluation;
    /* Nothing is ready when the first step is queued, so batches that were made before the clock ran are no
     * help; memory of every slot is touched in these. */
    run_clock c = {.warmup = mr_loader_info_of(s->loader)->prefetch + 2};
    int rc = MR_OK;
    for (int i = 0; rc == MR_OK && i <= AHEAD; i++) rc = mr_event_create(&c.events[i], s->devices[0], &err);
    if (rc == MR_OK) rc = run_steps(s, &c, seconds, &err);
    if (rc == MR_OK && !interrupt_flag) count(s, u, &c, p);
    if (rc == MR_OK)
        rc = mr_trainer_metrics(s->trainer, &training, &evaluation, &err); /* waits for the rest */
    for (int i = 0; i <= AHEAD; i++) mr_event_destroy(c.events[i]);
    if (rc == MR_OK && interrupt_flag) return EXIT_SIGNAL + interrupt_flag;
    return exit_status(rc, &err);
}

/* ---- cold ---- */

static uint64_t samples_read(void *loader)
{
    mr_loader_stats stats;
    mr_loader_stats_read(loader, &stats);
    return stats.read.items;
}

static int begin_cold(const tool_session *s, const storage_result *r, mr_page_dropper **out)
{
    mr_error err = MR_ERROR_INIT;
    *out = NULL;
    if (!r->method) return EXIT_DONE;
    int rc = mr_pages_drop(s->src, &interrupt_flag, &err);
    if (rc == MR_OK && !s->loader_cfg.direct)
        rc = mr_page_dropper_start(out, s->src, samples_read, s->loader, &err);
    return exit_status(rc, &err);
}

/* ---- one run, and the loader alone ---- */

static int run_with(tool_session *s, const storage_unit *u, uint32_t accelerators, double seconds,
                    const storage_result *r, storage_point *p)
{
    mr_page_dropper *dropper = NULL;
    *p = (storage_point){.accelerators = accelerators};
    int status = open_run(s, u, accelerators);
    if (status == EXIT_DONE) status = open_steps(s);
    if (status == EXIT_DONE) status = begin_cold(s, r, &dropper);
    if (status == EXIT_DONE) status = time_steps(s, u, seconds, p);
    mr_page_dropper_stop(dropper);
    close_run(s);
    return status;
}

static void describe(const tool_session *s, storage_result *r)
{
    const mr_loader_info *l = mr_loader_info_of(s->loader);
    r->workers = l->workers;
    r->prefetch = l->prefetch;
    snprintf(r->io, sizeof r->io, "%s", l->io);
    snprintf(r->augment, sizeof r->augment, "%s", l->augment);
}

/* Batches of one accelerator, copied to it and not computed on. */
static int measure_rate(tool_session *s, const storage_unit *u, double seconds, storage_result *r)
{
    mr_rate m;
    mr_page_dropper *dropper = NULL;
    int status = open_run(s, u, 1);
    if (status == EXIT_DONE) status = begin_cold(s, r, &dropper);
    if (status == EXIT_DONE) status = measure_loader(s, seconds, 3, &m);
    mr_page_dropper_stop(dropper);
    if (status == EXIT_DONE) {
        describe(s, r);
        r->samples_per_s = m.samples_per_s;
        r->by_rate = m.samples_per_s * u->step_s / (u->batch * u->busy);
    }
    close_run(s);
    return status;
}

/* ---- the search ---- */

/* fed < the number sought <= too_many - 1; 0 and MOST + 1 at first. */
typedef struct search {
    uint32_t fed, too_many;
} search;

static uint32_t next_number(const search *f, const storage_unit *u, const storage_point *last)
{
    const double fits = last->accelerators * last->busy / u->busy; /* the number that this rate would feed */
    uint32_t next = fits < 1 ? 1 : fits > MR_LOADER_MAX_PARTS ? MR_LOADER_MAX_PARTS : (uint32_t)fits;
    if (next <= f->fed) next = f->fed + 1;
    return next >= f->too_many ? f->too_many - 1 : next;
}

static int find(tool_session *s, const storage_unit *u, double seconds, storage_result *r)
{
    search f = {.fed = 0, .too_many = MR_LOADER_MAX_PARTS + 1};
    storage_point p = {.accelerators = 1, .busy = r->by_rate * u->busy};
    r->end = STORAGE_MOST;
    for (int runs = 0; f.fed + 1 < f.too_many && runs < RUNS_MOST; runs++) {
        const int status = run_with(s, u, next_number(&f, u, &p), seconds, r, &p);
        if (status == NO_ROOM) {
            f.too_many = p.accelerators;
            r->end = STORAGE_MEMORY;
            p.accelerators = (f.fed + f.too_many) / 2; /* nothing was learned of the rate: try the middle */
            p.busy = u->busy;
            continue;
        }
        if (status) return status;
        if (p.busy >= u->busy) {
            f.fed = p.accelerators;
            r->fed = p;
        } else {
            f.too_many = p.accelerators;
            r->end = STORAGE_RATE;
            r->more = p;
        }
    }
    return EXIT_DONE;
}

int storage_measure(tool_session *s, const storage_unit *u, bool cold, double seconds, storage_result *out)
{
    mr_error err = MR_ERROR_INIT;
    *out = (storage_result){0};
    if (cold) {
        s->loader_cfg.direct = s->loader_cfg.direct || mr_pages_direct_ok(s->src);
        out->method = s->loader_cfg.direct ? "O_DIRECT" : "DONTNEED";
    } else {
        const int rc = mr_pages_fill(s->src, &interrupt_flag, &err);
        if (rc != MR_OK) return exit_status(rc, &err);
    }
    int status = measure_rate(s, u, seconds / 2, out);
    if (status == EXIT_DONE) status = find(s, u, seconds, out);
    return status;
}
