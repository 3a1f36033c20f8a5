/* train/run/flight.c: steps that are queued and not over: the host runs at most MRI_RUN_AHEAD ahead of the
 * devices, and here it waits for them, reads their time stamps, keeps the first error, and notices a device
 * that does not answer.
 *
 * The watchdog: a step that is not over in time ends the run. The events show whose fault it is: a replica
 * whose own part is over waits for the others. The exchange of the replicas is given up, so that replicas
 * that only wait end; a device that hangs for good keeps its memory and threads, and the trainer is left
 * behind (mr_trainer_close). */
#include <stdio.h>

#include "base/ranges.h"
#include "train/run/flight.h"

#define LOOK_NS  1000000u    /* the scheduler is asked at most this often about work that was over at once */
#define GRACE_NS 1000000000u /* for calls that were given up to return */
#define MARK_NS  20000u      /* idle stretches of devices that are not over at once: a profiler sees them */

int mri_flights_init(mri_flights *f, mri_team *team, double watchdog_s, mr_trace *trace, mr_error *err)
{
    int rc = MR_OK;
    f->team = f->measured = team;
    f->watchdog_s = watchdog_s;
    f->trace = trace;
    for (uint32_t i = 0; i < MRI_RUN_AHEAD; i++)
        for (uint32_t r = 0; rc == MR_OK && r < team->count; r++) {
            rc = mr_event_create(&f->flight[i].start[r], team->devices[r], err);
            if (rc == MR_OK) rc = mr_event_create(&f->flight[i].computed[r], team->devices[r], err);
            if (rc == MR_OK && team->ranks.size > 1)
                rc = mr_event_create(&f->flight[i].summed[r], team->devices[r], err);
            if (rc == MR_OK) rc = mr_event_create(&f->flight[i].end[r], team->devices[r], err);
        }
    return rc;
}

void mri_flights_fini(mri_flights *f)
{
    for (uint32_t i = 0; f->team && i < MRI_RUN_AHEAD; i++)
        for (uint32_t r = 0; r < f->team->count; r++) {
            mr_event_destroy(f->flight[i].start[r]);
            mr_event_destroy(f->flight[i].computed[r]);
            mr_event_destroy(f->flight[i].summed[r]);
            mr_event_destroy(f->flight[i].end[r]);
        }
}

/* ------------------------------------------------------------------------------ the watchdog */

/* "replica 1 (cuda:1), replica 3 (cuda:3)": those whose own part of it is not over; how many. */
static uint32_t name_missing(const mri_flights *f, const mri_flight *one, char *out, size_t out_bytes)
{
    const bool exchanges = one->training && f->team->group;
    uint32_t missing = 0;
    size_t used = 0;
    out[0] = '\0';
    for (uint32_t r = 0; r < f->team->count; r++) {
        if (mr_event_query(exchanges ? one->computed[r] : one->end[r]) != MR_EAGAIN) continue;
        missing++;
        if (used < out_bytes)
            used += (size_t)snprintf(out + used, out_bytes - used, "%sreplica %u (%s)", used ? ", " : "", r,
                                     mr_device_info_of(f->team->devices[r])->name);
    }
    return missing;
}

static int bark(mri_flights *f, const mri_flight *one, mr_error *err)
{
    mr_error why = MR_ERROR_INIT;
    char names[384];
    const uint32_t missing = name_missing(f, one, names, sizeof names);
    mr_error_set(
        &why, MR_EDEVICE,
        "%s %llu is not over after %g s: %s%s; a device hangs, or steps take longer than the watchdog waits: "
        "give it more time, or 0 for ever",
        one->training ? "step" : "evaluation batch", (unsigned long long)one->batch, f->watchdog_s,
        missing ? "still at work: " : "every replica did its part, their exchange does not end", names);
    f->hangs = true;
    return mri_team_fail(f->team, &why, err);
}

static int wait_end(mri_flights *f, const mri_flight *one, uint32_t r, mr_error *err)
{
    mr_error why = MR_ERROR_INIT;
    const double ns = f->watchdog_s * 1e9;
    const int rc = mr_event_wait(one->end[r], ns > 0 && ns < 1e18 ? (uint64_t)ns : MR_FOREVER, &why);
    if (rc == MR_EAGAIN) return bark(f, one, err);
    return rc ? mri_team_fail(f->team, &why, err) : MR_OK;
}

bool mri_flights_have_drained(const mri_flights *f)
{
    const uint64_t until = mri_now_ns() + GRACE_NS;
    bool back = true;
    for (uint64_t i = f->harvested; i < f->queued; i++)
        for (uint32_t r = 0; back && r < f->team->count; r++) {
            const uint64_t now = mri_now_ns();
            back = mr_event_wait(f->flight[i % MRI_RUN_AHEAD].end[r], until > now ? until - now : 0, NULL) !=
                   MR_EAGAIN;
        }
    return back;
}

/* ------------------------------------------------------------------------------ flights */

static void trace_flight(const mri_flights *f, const mri_flight *one, const uint64_t *start,
                         const uint64_t *end)
{
    if (!f->trace) return;
    for (uint32_t r = 0; r < f->team->count; r++) {
        char track[64];
        snprintf(track, sizeof track, "compute %s", mr_device_info_of(f->team->devices[r])->name);
        mr_trace_span(f->trace, track, one->training ? "compute" : "evaluate", start[r], end[r],
                      one->training ? one->batch : MR_NOWHERE);
    }
}

/* The sums of a replica's parts as they were behind this step. */
static mr_metrics *peeks_of(const mri_flights *f, const mri_flight *one, uint32_t r)
{
    return f->measured->replicas[r].memory.host_peeks +
           mri_flight_number(f, one) * f->team->parts.of_device[r];
}

static int take_peek(mri_flights *f, const mri_flight *one, const uint64_t *end, mr_error *err)
{
    mri_peek *peek = &f->peek[f->peeks % MRI_RUN_AHEAD];
    const mri_team *team = f->team;
    mr_metrics parts[MR_LOADER_MAX_PARTS];
    *peek = (mri_peek){.steps = f->steps, .samples = f->samples, .network_ns = f->network_ns};
    for (uint32_t r = 0, at = 0; r < team->count; at += team->parts.of_device[r++]) {
        memcpy(parts + at, peeks_of(f, one, r), team->parts.of_device[r] * sizeof *parts);
        peek->end_ns = mri_max_u64(peek->end_ns, end[r]);
    }
    f->asked.from_ns = mri_now_ns();
    const int rc = mri_ranks_sum(&team->ranks, parts, team->parts.count, &peek->sums, err);
    f->asked.to_ns = mri_now_ns();
    f->peeks += rc == MR_OK;
    return rc;
}

void mri_flights_watch(mri_flights *f, const mr_loader *loader)
{
    if (f->loader) mri_cpu_time_close(&f->cpu);
    f->loader = loader;
    if (!loader) return;
    mri_cpu_time_open(&f->cpu);
    f->looked_ns = mri_now_ns();
}

/* Of what devices waited for the host, so much is the cores' doing: it was late because it was not run, or
 * because a thread was not that had to tell it. */
static uint64_t host_delayed(mri_flights *f, const mri_flight *one, const mr_causes *causes)
{
    const uint64_t now = mri_now_ns();
    uint64_t ran, delayed;
    if (now - f->looked_ns < LOOK_NS && causes->ns[MR_CAUSE_HOST] < MARK_NS) return 0;
    mri_cpu_time_look(&f->cpu, now - f->looked_ns, &ran, &delayed);
    f->looked_ns = now;
    return mri_min_u64(causes->ns[MR_CAUSE_HOST], mri_max_u64(delayed, one->late_ns) * f->team->count);
}

/* An idle stretch of a device, and the loader's cause of it. */
typedef struct idle {
    uint64_t from_ns;
    mr_causes causes;
    uint64_t network_ns; /* in addition: the host waited for other processes */
} idle;

/* The batch was there, but the host waited until other processes were as far. */
static void charge_network(const mri_flight *one, uint64_t until_ns, idle *out)
{
    uint64_t ns = 0;
    for (int k = 0; k < MRI_ASKED; k++) {
        const uint64_t from = mri_max_u64(one->asked[k].from_ns, out->from_ns),
                       to = mri_min_u64(one->asked[k].to_ns, until_ns);
        ns += to > from ? to - from : 0;
    }
    mr_causes *c = &out->causes;
    out->network_ns = mri_min_u64(ns, c->ns[MR_CAUSE_HOST]);
    c->ns[MR_CAUSE_HOST] -= out->network_ns;
    c->total_ns -= out->network_ns;
}

static void charge_idle(const mri_flights *f, const mri_flight *one, uint32_t r, uint64_t until_ns, idle *out)
{
    mr_causes *c = &out->causes;
    out->from_ns = f->log.steps ? f->log.ended_ns[r] : until_ns;
    *c = (mr_causes){.total_ns = 0};
    out->network_ns = 0;
    if (until_ns <= out->from_ns) return;
    if (f->loader)
        mr_loader_charge(f->loader, one->batch, mri_team_first_part(f->team, r), out->from_ns, until_ns, c);
    else c->ns[MR_CAUSE_UNKNOWN] = c->total_ns = until_ns - out->from_ns;
    if (f->team->ranks.size > 1) charge_network(one, until_ns, out);
}

_Static_assert(MRI_RANGE_COUNT - (int)MRI_RANGE_STALLS == (int)MR_CAUSE_NETWORK + 1, "a mark for each cause");

static void trace_stall(const mri_flights *f, const mri_flight *one, uint32_t r, mr_cause cause,
                        uint64_t from_ns, uint64_t until_ns)
{
    char track[32];
    if (until_ns - from_ns >= MARK_NS)
        mri_range_mark((enum mri_range)((int)MRI_RANGE_STALLS + (int)cause), one->batch);
    if (!f->trace) return;
    snprintf(track, sizeof track, "stall %u", r);
    mr_trace_span(f->trace, track, mr_cause_name(cause), from_ns, until_ns, one->batch);
}

/* In the trace an idle stretch bears the name of its heaviest cause. */
static void trace_idle(const mri_flights *f, const mri_flight *one, uint32_t r, uint64_t until_ns,
                       const idle *i)
{
    int most = 0;
    for (int k = 1; k < MR_CAUSES; k++)
        if (i->causes.ns[k] > i->causes.ns[most]) most = k;
    if (i->network_ns > i->causes.ns[most]) most = MR_CAUSE_NETWORK;
    if (i->causes.total_ns + i->network_ns) trace_stall(f, one, r, (mr_cause)most, i->from_ns, until_ns);
}

static void add_causes(mr_causes *sum, const mr_causes *one)
{
    for (int k = 0; k < MR_CAUSES; k++) sum->ns[k] += one->ns[k];
    sum->total_ns += one->total_ns;
}

/* While the loader looks for its settings, steps are as long as those let them be. */
static void tell_tuner(const mri_flights *f, const uint64_t *start, const uint64_t *end)
{
    mr_tuning loader = {.done = true};
    uint64_t begun = 0, over = 0;
    if (!f->buckets || f->buckets->done) return;
    if (f->loader) mr_loader_tuning(f->loader, &loader);
    for (uint32_t r = 0; r < f->team->count; r++) {
        begun = mri_max_u64(begun, start[r]);
        over = mri_max_u64(over, end[r]);
    }
    if (loader.done && over > begun) mri_bucket_tuner_step(f->buckets, over - begun);
}

/* A record has the times of parts: each has the times of the replica that computed it. */
static void record_step(const mri_flights *f, const mri_flight *one, const uint64_t *start,
                        const uint64_t *end, const idle *of)
{
    uint64_t begun[MR_LOADER_MAX_PARTS], over[MR_LOADER_MAX_PARTS];
    mr_causes causes = {0};
    if (!f->loader) return;
    for (uint32_t r = 0, p = 0; r < f->team->count; r++)
        for (uint32_t k = 0; k < f->team->parts.of_device[r]; k++, p++) {
            begun[p] = start[r];
            over[p] = end[r];
            add_causes(&causes, &of[r].causes);
        }
    mr_loader_record_step(f->loader, one->batch, one->own_samples, begun, over, &causes);
}

/* The results of the events of a step. */
typedef struct step_times {
    uint64_t start[MR_LOADER_MAX_PARTS], computed[MR_LOADER_MAX_PARTS], end[MR_LOADER_MAX_PARTS];
    uint64_t waited[MR_LOADER_MAX_PARTS]; /* behind `computed` of all replicas, for other processes */
    uint64_t all_computed;
} step_times;

/* Part of the host's delay is the delay of a core. */
static void charge_cores(mri_flights *f, const mri_flight *one, mr_causes *sum, idle *of)
{
    const uint64_t host = sum->ns[MR_CAUSE_HOST], cores = f->loader ? host_delayed(f, one, sum) : 0;
    sum->ns[MR_CAUSE_HOST] -= cores;
    sum->ns[MR_CAUSE_CORES] += cores;
    for (uint32_t r = 0; r < f->team->count; r++) {
        uint64_t *ns = of[r].causes.ns;
        const uint64_t mine = host ? (uint64_t)((double)ns[MR_CAUSE_HOST] * (double)cores / (double)host) : 0;
        ns[MR_CAUSE_HOST] -= mine;
        ns[MR_CAUSE_CORES] += mine;
    }
}

/* Where a device was idle before this step, the loader names the cause. */
static void add_step(mri_flights *f, const mri_flight *one, const step_times *t)
{
    mr_causes causes = {0};
    idle of[MR_LOADER_MAX_PARTS];
    uint64_t before = 0, inside = 0;
    const uint32_t replicas = f->team->count;
    const bool others = f->team->ranks.size > 1;
    for (uint32_t r = 0; r < replicas; r++) {
        charge_idle(f, one, r, t->start[r], &of[r]);
        add_causes(&causes, &of[r].causes);
        before += of[r].network_ns;
        inside += t->waited[r];
    }
    charge_cores(f, one, &causes, of);
    for (uint32_t r = 0; r < replicas; r++) {
        trace_idle(f, one, r, t->start[r], &of[r]);
        if (t->waited[r])
            trace_stall(f, one, r, MR_CAUSE_NETWORK, t->all_computed, t->all_computed + t->waited[r]);
    }
    f->idle_ns += causes.total_ns / replicas;
    f->network_ns += (before + inside) / replicas;
    record_step(f, one, t->start, t->end, of);
    mri_step_log_add(&f->log, t->start, t->computed, t->end, one->samples, &causes,
                     others ? &(mri_step_network){before, t->waited} : NULL);
    tell_tuner(f, t->start, t->end);
}

static int read_events(const mri_flights *f, const mri_flight *one, uint32_t r, step_times *t)
{
    int rc = mr_event_time_ns(one->start[r], &t->start[r]);
    if (rc == MR_OK) rc = mr_event_time_ns(one->end[r], &t->end[r]);
    t->computed[r] = t->end[r];
    t->waited[r] = 0;
    if (rc || !one->training || !f->team->group) return rc;
    rc = mr_event_time_ns(one->computed[r], &t->computed[r]);
    return rc || f->team->ranks.size == 1 ? rc : mr_event_time_ns(one->summed[r], &t->waited[r]);
}

/* Until all replicas of this process have computed, they wait for each other. */
static void subtract_own_part(const mri_flights *f, step_times *t)
{
    t->all_computed = 0;
    for (uint32_t r = 0; r < f->team->count; r++)
        t->all_computed = mri_max_u64(t->all_computed, t->computed[r]);
    for (uint32_t r = 0; r < f->team->count; r++)
        t->waited[r] = t->waited[r] > t->all_computed ? t->waited[r] - t->all_computed : 0;
}

/* Wait for the oldest step in flight and take its figures. */
static int harvest(mri_flights *f, mr_error *err)
{
    const mri_flight *one = &f->flight[f->harvested % MRI_RUN_AHEAD];
    step_times t;
    uint64_t longest = 0, over = 0;
    const uint64_t begun = mri_now_ns();
    for (uint32_t r = 0; r < f->team->count; r++) {
        int rc = wait_end(f, one, r, err);
        if (rc) return rc;
        rc = read_events(f, one, r, &t);
        if (rc) return mri_team_queue_failed(f->team, r, rc, "a time stamp", err);
        longest = mri_max_u64(longest, t.computed[r] - t.start[r]);
        over = mri_max_u64(over, t.end[r]);
    }
    subtract_own_part(f, &t);
    f->harvested++;
    f->late_ns += mri_seen_late_ns(over, begun, mri_now_ns());
    f->compute_ns += one->training ? longest : 0;
    f->steps += one->training;
    f->samples += one->training ? one->samples : 0;
    trace_flight(f, one, t.start, t.end);
    if (f->spans) mri_sum_spans_write(f->spans);
    if (one->training) add_step(f, one, &t);
    mr_error why = MR_ERROR_INIT;
    if (one->peeks && take_peek(f, one, t.end, &why)) return mri_team_fail(f->team, &why, err);
    return MR_OK;
}

static int sync_team(const mri_flights *f, const mri_team *team, mr_error *err)
{
    for (uint32_t r = 0; r < team->count; r++) {
        mr_error why = MR_ERROR_INIT;
        if (mr_stream_sync(team->streams[r], &why)) return mri_team_fail(f->team, &why, err);
    }
    return MR_OK;
}

int mri_flights_drain(mri_flights *f, mr_error *err)
{
    int rc = mri_team_error(f->team, err);
    while (rc == MR_OK && f->harvested < f->queued) rc = harvest(f, err);
    if (rc == MR_OK) rc = sync_team(f, f->team, err);
    return rc == MR_OK && f->measured != f->team ? sync_team(f, f->measured, err) : rc;
}

int mri_flight_begin(mri_flights *f, const mr_batch *b, uint32_t counted, mri_interval beat, bool training,
                     mri_flight **out, mr_error *err)
{
    f->asked = (mri_interval){0, 0};
    if (f->queued - f->harvested == MRI_RUN_AHEAD) {
        const int rc = harvest(f, err);
        if (rc) return rc;
    }
    mri_flight *one = &f->flight[f->queued % MRI_RUN_AHEAD];
    one->training = training;
    one->peeks = false;
    one->batch = b->global_step;
    one->samples = counted;
    one->own_samples = b->counted;
    one->asked[0] = beat;
    one->asked[1] = f->asked;
    one->late_ns = f->late_ns;
    f->late_ns = 0;
    *out = one;
    return MR_OK;
}

uint32_t mri_flight_number(const mri_flights *f, const mri_flight *one)
{
    return (uint32_t)(one - f->flight);
}

int mri_flight_peek(mri_flights *f, mri_flight *one, mr_error *err)
{
    one->peeks = true;
    for (uint32_t r = 0; r < f->team->count; r++) {
        const mri_memory *m = &f->measured->replicas[r].memory;
        const int rc =
            mr_copy_d2h_async(f->measured->streams[r], peeks_of(f, one, r), m->sums[MRI_SUMS_TRAINING],
                              f->team->parts.of_device[r] * sizeof(mr_metrics));
        if (rc) return mri_team_queue_failed(f->team, r, rc, "a copy of the sums", err);
    }
    return MR_OK;
}

int mri_flight_summed(const mri_flights *f, const mri_flight *one, mr_error *err)
{
    for (uint32_t r = 0; f->team->ranks.size > 1 && r < f->team->count; r++) {
        const int rc = mr_event_record(one->summed[r], f->team->streams[r]);
        if (rc) return mri_team_queue_failed(f->team, r, rc, "an event", err);
    }
    return MR_OK;
}

int mri_flight_end(mri_flights *f, const mri_flight *one, mr_error *err)
{
    for (uint32_t r = 0; r < f->team->count; r++) {
        const int rc = mr_event_record(one->end[r], f->team->streams[r]);
        if (rc) return mri_team_queue_failed(f->team, r, rc, "an event", err);
    }
    f->queued++;
    return MR_OK;
}
