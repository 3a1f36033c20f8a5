/* train/run/flight.h: steps that are queued and not finished. Private to train/ and its tests. */
#ifndef MRI_FLIGHT_H
#define MRI_FLIGHT_H

#include "train/run/step_log.h"
#include "train/run/team.h"

/* One queued step or evaluation batch, until its events are read. */
typedef struct mri_flight {
    bool training;
    uint64_t batch; /* global step */
    uint32_t samples;
    mr_event *start[MR_LOADER_MAX_PARTS];    /* inputs are there, the step before is over */
    mr_event *computed[MR_LOADER_MAX_PARTS]; /* backward is over; what follows depends on other replicas */
    mr_event *end[MR_LOADER_MAX_PARTS];
} mri_flight;

typedef struct mri_flights {
    mri_team *team;
    double watchdog_s;
    mr_trace *trace; /* or NULL */
    mri_flight flight[MRI_RUN_AHEAD];
    uint64_t queued, harvested;
    bool hangs;       /* some device never answered */
    mri_step_log log; /* of training steps that are over */
} mri_flights;

/* On failure mri_flights_fini() is still to be called. */
int mri_flights_init(mri_flights *f, mri_team *team, double watchdog_s, mr_trace *trace, mr_error *err);
void mri_flights_fini(mri_flights *f); /* before the team's; accepts a zeroed one */

/* A flight to record this batch's events in, waiting for the oldest when all are taken. */
int mri_flight_begin(mri_flights *f, const mr_batch *b, bool training, mri_flight **out, mr_error *err);
/* Which it is, below MRI_RUN_AHEAD. */
uint32_t mri_flight_number(const mri_flights *f, const mri_flight *flight);
int mri_flight_end(mri_flights *f, const mri_flight *flight, mr_error *err);

/* Wait for everything queued; figures of finished steps go to the log and the trace. */
int mri_flights_drain(mri_flights *f, mr_error *err);
/* After the watchdog: wait a moment for abandoned work to finish; true when it did. */
bool mri_flights_have_drained(const mri_flights *f);

#endif
