/* train/run/step_log.h: times of steps, in bounded memory however many there are. It knows no device and no
 * clock, only their figures. Private to train/ and its tests. */
#ifndef MRI_STEP_LOG_H
#define MRI_STEP_LOG_H

#include "base/util.h"
#include "millrace/train.h"

/* Up to MRI_SERIES_CAP values of an endless series, evenly spaced: when full, every second one is dropped and
 * from then on only every second newcomer is kept. Memory stays bounded for an epoch of any length. */
#define MRI_SERIES_CAP 8192u
typedef struct mri_series {
    double value[MRI_SERIES_CAP];
    uint32_t count;
    uint64_t seen, stride; /* stride 0 before the first */
} mri_series;
void mri_series_clear(mri_series *s);
void mri_series_add(mri_series *s, double value);

/* One stretch of steps as the devices' events tell it: times of CLOCK_MONOTONIC. The first `warmup` steps are
 * counted and otherwise left out; the measured window opens where the last of them ends. */
typedef struct mri_step_log {
    uint32_t replicas;
    uint64_t warmup, steps; /* steps: the warm-up ones included */
    uint64_t samples;       /* of the measured steps */
    uint64_t window_start_ns, last_end_ns;
    double compute_ns;                  /* sum over measured steps, mean over replicas */
    double own_ns[MR_LOADER_MAX_PARTS]; /* of that, per replica, until its own part was done */
    double exposed_ns; /* idle between the end of one step and the start of the next, and waiting for other
                          processes in a step; as above */
    double network_ns; /* of that, waiting for other processes */
    mr_causes causes;  /* of the rest of it, sum over replicas */
    uint64_t ended_ns[MR_LOADER_MAX_PARTS]; /* the step before, per replica */
    mri_series step_ms;                     /* end to end, so waiting is in it */
} mri_step_log;

/* How long replicas waited for other processes. */
typedef struct mri_step_network {
    uint64_t before_ns;        /* before the step, sum over replicas */
    const uint64_t *inside_ns; /* in it, by replica */
} mri_step_network;

void mri_step_log_start(mri_step_log *log, uint32_t replicas, uint64_t warmup);
/* Of the next step, for each replica, when it began, when its own part was done (NULL: then when it ended),
 * and when it ended; causes: what else than the network the replicas were idle for before it, added up, or
 * NULL; network: NULL without other processes. */
void mri_step_log_add(mri_step_log *log, const uint64_t *start_ns, const uint64_t *own_ns,
                      const uint64_t *end_ns, uint32_t samples, const mr_causes *causes,
                      const mri_step_network *network);
/* Between the newest step and the next one so much time was spent on something else, and is nobody's. */
void mri_step_log_skip(mri_step_log *log, uint64_t ns);

#endif
