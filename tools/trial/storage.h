/* tools/trial/storage.h: how many accelerators of a given appetite the loader feeds, with pictures decoded.
 *
 * An accelerator takes a batch, computes for a given time, and takes the next. It is fed while it computes
 * for a given part of the time, which is what MLPerf Storage calls accelerator utilisation: the time of all
 * its steps' computing over the time the run took, what comes before the end of the first steps left out.
 * Here the accelerators are devices of the kind sim, N of them as replicas of one run. */
#ifndef TRIAL_STORAGE_H
#define TRIAL_STORAGE_H

#include "tools/session/session.h"

/* What an accelerator eats. */
typedef struct storage_unit {
    const char *workload, *accelerator;
    uint32_t batch;      /* samples that one accelerator takes in a step */
    double step_s, busy; /* computing of a step; the part of the time it must be at */
    const char *augment; /* ours: the definitions say nothing of decoding */
} storage_unit;

/* The published ones; NULL after the last. */
const storage_unit *storage_unit_at(uint32_t at);
/* workload NULL: the accelerator's first. NULL: not found. */
const storage_unit *storage_unit_find(const char *workload, const char *accelerator);

/* N accelerators at work. */
typedef struct storage_point {
    uint32_t accelerators;
    uint64_t steps, warmup_steps;
    double busy; /* 0..1: utilisation */
    double seconds, samples_per_s, read_bytes_per_s;
    double storage_bytes_per_s; /* that the kernel brought from storage; NAN: not known */
    double cores;
} storage_point;

typedef enum storage_end {
    STORAGE_RATE,   /* one more is not fed */
    STORAGE_MEMORY, /* no memory for the batches of one more */
    STORAGE_MOST    /* a loader feeds no more devices */
} storage_end;

typedef struct storage_result {
    const char *method;            /* cold: "O_DIRECT" or "DONTNEED"; else NULL */
    double samples_per_s, by_rate; /* the loader's alone; the accelerators that it would feed */
    storage_point fed, more; /* of N, none where accelerators is 0; of N + 1, none where `end` is not RATE */
    storage_end end;
    uint32_t workers, prefetch;
    char io[16], augment[256];
} storage_result;

/* s->src and s->loader_cfg are set but for devices and batch; nothing else is open, and nothing is
 * afterwards. seconds: of each run. 0 or an exit status. */
int storage_measure(tool_session *s, const storage_unit *u, bool cold, double seconds, storage_result *out);

#endif
