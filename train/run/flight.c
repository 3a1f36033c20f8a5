/* train/run/flight.c: steps that are queued and not over: the host runs at most MRI_RUN_AHEAD ahead of the
 * devices, and here it waits for them, reads their time stamps, keeps the first error, and notices a device
 * that does not answer.
 *
 * The watchdog: a step that is not over in time ends the run. Whose fault it is the events tell: a replica
 * whose own part is over waits for the others. What the replicas exchange is given up then, so that those
 * that only wait end; a device that hangs for good cannot be freed of what it uses, and the trainer is left
 * behind (mr_trainer_close). */
#include <stdio.h>

#include "train/run/flight.h"

#define GRACE_NS 1000000000u /* for what was given up to come back */

int mri_flights_init(mri_flights *f, mri_team *team, double watchdog_s, mr_trace *trace, mr_error *err)
{
    int rc = MR_OK;
    f->team = team;
    f->watchdog_s = watchdog_s;
    f->trace = trace;
    for (uint32_t i = 0; i < MRI_RUN_AHEAD; i++)
        for (uint32_t r = 0; rc == MR_OK && r < team->count; r++) {
            rc = mr_event_create(&f->flight[i].start[r], team->devices[r], err);
            if (rc == MR_OK) rc = mr_event_create(&f->flight[i].computed[r], team->devices[r], err);
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
            mr_event_destroy(f->flight[i].end[r]);
        }
}

/* ------------------------------------------------------------------------------ the watchdog */

/* "replica 1 (cuda:1), replica 3 (cuda:3)": those whose own part of it is not over; how many. */
static uint32_t name_missing(const mri_flights *f, const mri_flight *one, char *out, size_t out_bytes)
{
    const bool exchanges = one->training && f->team->count > 1;
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
        missing ? "still at work: " : "every replica did its part, what they exchange does not end", names);
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
        mr_trace_span(f->trace, track, one->training ? "compute" : "evaluate", start[r], end[r], one->batch);
    }
}

/* Wait for the oldest step in flight and take its figures. */
static int harvest(mri_flights *f, mr_error *err)
{
    const mri_flight *one = &f->flight[f->harvested % MRI_RUN_AHEAD];
    uint64_t start[MR_LOADER_MAX_PARTS], end[MR_LOADER_MAX_PARTS];
    for (uint32_t r = 0; r < f->team->count; r++) {
        int rc = wait_end(f, one, r, err);
        if (rc) return rc;
        rc = mr_event_time_ns(one->start[r], &start[r]);
        if (rc == MR_OK) rc = mr_event_time_ns(one->end[r], &end[r]);
        if (rc) return mri_team_queue_failed(f->team, r, rc, "a time stamp", err);
    }
    f->harvested++;
    trace_flight(f, one, start, end);
    if (one->training) mri_step_log_add(&f->log, start, end, one->samples);
    return MR_OK;
}

int mri_flights_drain(mri_flights *f, mr_error *err)
{
    int rc = mri_team_error(f->team, err);
    while (rc == MR_OK && f->harvested < f->queued) rc = harvest(f, err);
    for (uint32_t r = 0; rc == MR_OK && r < f->team->count; r++) {
        mr_error why = MR_ERROR_INIT;
        rc = mr_stream_sync(f->team->streams[r], &why);
        if (rc) return mri_team_fail(f->team, &why, err);
    }
    return rc;
}

int mri_flight_begin(mri_flights *f, const mr_batch *b, bool training, mri_flight **out, mr_error *err)
{
    if (f->queued - f->harvested == MRI_RUN_AHEAD) {
        const int rc = harvest(f, err);
        if (rc) return rc;
    }
    mri_flight *one = &f->flight[f->queued % MRI_RUN_AHEAD];
    one->training = training;
    one->batch = b->global_step;
    one->samples = b->counted;
    *out = one;
    return MR_OK;
}

uint32_t mri_flight_number(const mri_flights *f, const mri_flight *one)
{
    return (uint32_t)(one - f->flight);
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
