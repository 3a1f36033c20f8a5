/* train/run/flight.h: steps that are queued and not finished. Private to train/ and its tests. */
#ifndef MRI_FLIGHT_H
#define MRI_FLIGHT_H

#include "base/cpu_time.h"
#include "train/run/bucket_tuner.h"
#include "train/run/step_log.h"
#include "train/run/tap.h"
#include "train/run/team.h"

/* A stretch of time. */
typedef struct mri_interval {
    uint64_t from_ns, to_ns;
} mri_interval;

enum { MRI_ASKED = 2 }; /* for their beats, for their sums */

/* One queued step or evaluation batch, until its events are read. */
typedef struct mri_flight {
    bool training, peeks;          /* peeks: mri_flight_peek() */
    uint64_t batch;                /* global step */
    uint32_t samples, own_samples; /* of all processes; of this one */
    uint64_t late_ns; /* so late the host saw that a step before was over, for which it waited to queue this
                       */
    mr_event *start[MR_LOADER_MAX_PARTS];    /* inputs are there, the step before is over */
    mr_event *computed[MR_LOADER_MAX_PARTS]; /* backward is over; what follows depends on other replicas */
    mr_event *summed[MR_LOADER_MAX_PARTS];   /* with other processes: their gradients are in the sums */
    mr_event *end[MR_LOADER_MAX_PARTS];
    mri_interval asked[MRI_ASKED]; /* the host waited for other processes before it queued this */
} mri_flight;

/* The figures of training when a step that was peeked at is over. */
typedef struct mri_peek {
    mr_metrics sums;         /* as mri_sums_take() would have given them */
    uint64_t steps, samples; /* of training that are over, this step included */
    uint64_t end_ns;         /* when the last replica was done with it */
    uint64_t network_ns;     /* as in mri_flights, this step included */
} mri_peek;

typedef struct mri_flights {
    mri_team *team;
    mri_team *measured; /* whose replicas compute the losses: team, or the team of the last stage (split.h) */
    double watchdog_s;
    mr_trace *trace; /* or NULL */
    mri_flight flight[MRI_RUN_AHEAD];
    uint64_t queued, harvested;
    bool hangs;                   /* some device never answered */
    mri_peek peek[MRI_RUN_AHEAD]; /* number k (from 0) at k % MRI_RUN_AHEAD */
    uint64_t peeks;               /* the number so far */
    uint64_t steps, samples;      /* of training that are over */
    uint64_t compute_ns; /* how long replicas were at work for their own parts in them, the slowest each */
    uint64_t idle_ns;    /* how long replicas waited for data, on average */
    uint64_t network_ns; /* how long they waited for other processes and their gradients, on average */
    mri_interval asked;  /* the newest sums of other processes */
    mri_step_log log;    /* of training steps that are over */
    mri_bucket_tuner *buckets; /* receives the time of training steps; NULL: none */
    mri_sum_spans *spans;      /* written when a step is over; NULL: none */
    const mr_loader *loader;   /* that knows the causes of waits for a batch; NULL: none */
    mri_cpu_time cpu;          /* of the thread that queues steps; fd -1: it does not look */
    uint64_t looked_ns;        /* when it did */
    uint64_t late_ns;          /* of the waits since a step was queued: flight.late_ns of the next */
} mri_flights;

/* On failure mri_flights_fini() is still to be called. */
int mri_flights_init(mri_flights *f, mri_team *team, double watchdog_s, mr_trace *trace, mr_error *err);
void mri_flights_fini(mri_flights *f); /* before the team's; accepts a zeroed one */

/* From now on causes are charged, by this thread. loader NULL: no longer. */
void mri_flights_watch(mri_flights *f, const mr_loader *loader);

/* A flight to record this batch's events in, waiting for the oldest when all are taken. counted: samples of
 * the batch that count, of all processes; beat: when the host waited for these to come to this batch. */
int mri_flight_begin(mri_flights *f, const mr_batch *b, uint32_t counted, mri_interval beat, bool training,
                     mri_flight **out, mr_error *err);
/* Which it is, below MRI_RUN_AHEAD. */
uint32_t mri_flight_number(const mri_flights *f, const mri_flight *flight);
/* Copy the sums of training as they are after the queued work; f->peek[] has them when the step is over. */
int mri_flight_peek(mri_flights *f, mri_flight *flight, mr_error *err);
/* Record that the last bucket of gradients is summed, with other processes. The caller has queued the wait
 * for it on the replicas' streams. */
int mri_flight_summed(const mri_flights *f, const mri_flight *flight, mr_error *err);
int mri_flight_end(mri_flights *f, const mri_flight *flight, mr_error *err);

/* Wait for everything queued; figures of finished steps go to the log and the trace. */
int mri_flights_drain(mri_flights *f, mr_error *err);
/* After the watchdog: wait a moment for abandoned work to finish; true when it did. */
bool mri_flights_have_drained(const mri_flights *f);

#endif
