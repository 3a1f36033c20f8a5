/* train/run/flight.c: steps that are queued and not over: the host runs at most MRI_RUN_AHEAD ahead of the
 * devices, and here it waits for them, reads their time stamps, keeps the first error, and notices a device
 * that does not answer.
 *
 * The watchdog: a step that is not over in time ends the run. Whose fault it is the events tell: a replica
 * whose own part is over waits for the others. What the replicas exchange is given up then, so that those
 * that only wait end; a device that hangs for good cannot be freed of what it uses, and the trainer is left
 * behind (mr_trainer_close). */
#include <stdio.h>

#include "train/trainer.h"

#define GRACE_NS 1000000000u /* for what was given up to come back */

int mri_flights_open(mr_trainer *t, mr_error *err)
{
    int rc = MR_OK;
    for (uint32_t f = 0; f < MRI_RUN_AHEAD; f++)
        for (uint32_t r = 0; rc == MR_OK && r < t->count; r++) {
            rc = mr_event_create(&t->flights[f].start[r], t->devices[r], err);
            if (rc == MR_OK) rc = mr_event_create(&t->flights[f].computed[r], t->devices[r], err);
            if (rc == MR_OK) rc = mr_event_create(&t->flights[f].end[r], t->devices[r], err);
        }
    return rc;
}

void mri_flights_close(mr_trainer *t)
{
    for (uint32_t f = 0; f < MRI_RUN_AHEAD; f++)
        for (uint32_t r = 0; r < t->count; r++) {
            mr_event_destroy(t->flights[f].start[r]);
            mr_event_destroy(t->flights[f].computed[r]);
            mr_event_destroy(t->flights[f].end[r]);
        }
}

/* ------------------------------------------------------------------------------ errors */

/* Nobody shall wait for a replica that will not come: what they exchange is given up with the first error. */
static int keep_error(mr_trainer *t, const mr_error *why, mr_error *err)
{
    if (t->failed == MR_OK) {
        t->failed = why->code;
        t->error = *why;
        mr_group_abort(t->group);
    }
    if (err) *err = t->error;
    return t->failed;
}

int mri_trainer_queue_failed(mr_trainer *t, uint32_t replica, int rc, const char *what, mr_error *err)
{
    mr_error why = MR_ERROR_INIT;
    if (mr_stream_sync(t->streams[replica], &why) == MR_OK) /* else the stream knows better */
        mr_error_set(&why, rc, "%s: cannot queue %s: %s", mr_device_info_of(t->devices[replica])->name, what,
                     mr_status_text(rc));
    return keep_error(t, &why, err);
}

/* ------------------------------------------------------------------------------ the watchdog */

/* "replica 1 (cuda:1), replica 3 (cuda:3)": those whose own part of f is not over; how many. */
static uint32_t name_missing(const mr_trainer *t, const mri_flight *f, char *out, size_t out_bytes)
{
    const bool exchanges = f->training && t->count > 1;
    uint32_t missing = 0;
    size_t used = 0;
    out[0] = '\0';
    for (uint32_t r = 0; r < t->count; r++) {
        if (mr_event_query(exchanges ? f->computed[r] : f->end[r]) != MR_EAGAIN) continue;
        missing++;
        if (used < out_bytes)
            used += (size_t)snprintf(out + used, out_bytes - used, "%sreplica %u (%s)", used ? ", " : "", r,
                                     mr_device_info_of(t->devices[r])->name);
    }
    return missing;
}

static int bark(mr_trainer *t, const mri_flight *f, mr_error *err)
{
    mr_error why = MR_ERROR_INIT;
    char names[384];
    const uint32_t missing = name_missing(t, f, names, sizeof names);
    mr_error_set(
        &why, MR_EDEVICE,
        "%s %llu is not over after %g s: %s%s; a device hangs, or steps take longer than the watchdog waits: "
        "give it more time, or 0 for ever",
        f->training ? "step" : "evaluation batch", (unsigned long long)f->batch, t->cfg.watchdog_s,
        missing ? "still at work: " : "every replica did its part, what they exchange does not end", names);
    t->hangs = true;
    return keep_error(t, &why, err);
}

static int wait_end(mr_trainer *t, const mri_flight *f, uint32_t r, mr_error *err)
{
    mr_error why = MR_ERROR_INIT;
    const double ns = t->cfg.watchdog_s * 1e9;
    const int rc = mr_event_wait(f->end[r], ns > 0 && ns < 1e18 ? (uint64_t)ns : MR_FOREVER, &why);
    if (rc == MR_EAGAIN) return bark(t, f, err);
    return rc ? keep_error(t, &why, err) : MR_OK;
}

bool mri_trainer_came_back(mr_trainer *t)
{
    const uint64_t until = mri_now_ns() + GRACE_NS;
    bool back = true;
    for (uint64_t i = t->harvested; i < t->queued; i++)
        for (uint32_t r = 0; back && r < t->count; r++) {
            const uint64_t now = mri_now_ns();
            back = mr_event_wait(t->flights[i % MRI_RUN_AHEAD].end[r], until > now ? until - now : 0, NULL) !=
                   MR_EAGAIN;
        }
    return back;
}

bool mr_trainer_hangs(const mr_trainer *t) { return t->hangs; }

/* ------------------------------------------------------------------------------ flights */

static void trace_flight(const mr_trainer *t, const mri_flight *f, const uint64_t *start, const uint64_t *end)
{
    if (!t->cfg.trace) return;
    for (uint32_t r = 0; r < t->count; r++) {
        char track[64];
        snprintf(track, sizeof track, "compute %s", mr_device_info_of(t->devices[r])->name);
        mr_trace_span(t->cfg.trace, track, f->training ? "compute" : "evaluate", start[r], end[r], f->batch);
    }
}

/* Wait for the oldest step in flight and take its figures. */
static int harvest(mr_trainer *t, mr_error *err)
{
    const mri_flight *f = &t->flights[t->harvested % MRI_RUN_AHEAD];
    uint64_t start[MR_LOADER_MAX_PARTS], end[MR_LOADER_MAX_PARTS];
    for (uint32_t r = 0; r < t->count; r++) {
        int rc = wait_end(t, f, r, err);
        if (rc) return rc;
        rc = mr_event_time_ns(f->start[r], &start[r]);
        if (rc == MR_OK) rc = mr_event_time_ns(f->end[r], &end[r]);
        if (rc) return mri_trainer_queue_failed(t, r, rc, "a time stamp", err);
    }
    t->harvested++;
    trace_flight(t, f, start, end);
    if (f->training) mri_step_log_add(&t->log, start, end, f->samples);
    return MR_OK;
}

int mri_trainer_drain(mr_trainer *t, mr_error *err)
{
    int rc = t->failed ? keep_error(t, &t->error, err) : MR_OK;
    while (rc == MR_OK && t->harvested < t->queued) rc = harvest(t, err);
    for (uint32_t r = 0; rc == MR_OK && r < t->count; r++) {
        mr_error why = MR_ERROR_INIT;
        rc = mr_stream_sync(t->streams[r], &why);
        if (rc) return keep_error(t, &why, err);
    }
    return rc;
}

int mri_flight_begin(mr_trainer *t, const mr_batch *b, bool training, mri_flight **out, mr_error *err)
{
    if (t->queued - t->harvested == MRI_RUN_AHEAD) {
        const int rc = harvest(t, err);
        if (rc) return rc;
    }
    mri_flight *f = &t->flights[t->queued % MRI_RUN_AHEAD];
    f->training = training;
    f->batch = b->global_step;
    f->samples = b->counted;
    *out = f;
    return MR_OK;
}

int mri_flight_end(mr_trainer *t, const mri_flight *f, mr_error *err)
{
    for (uint32_t r = 0; r < t->count; r++) {
        const int rc = mr_event_record(f->end[r], t->streams[r]);
        if (rc) return mri_trainer_queue_failed(t, r, rc, "an event", err);
    }
    t->queued++;
    return MR_OK;
}
