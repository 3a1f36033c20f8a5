/* pipeline/observe/counter.h: the room that observes a run: the counters of every stage, and traces (trace.c,
 * public). Private.
 *
 * Takes counts and times from any thread; gives them as figures and as a trace file. Callers: every stage,
 * and reports. It knows neither the stages nor the loader, and nothing in a run depends on it. */
#ifndef MRI_COUNTER_H
#define MRI_COUNTER_H

#include "base/util.h"
#include "millrace/pipeline.h"

/* Why a stage waits. A wait that a stop ends counts for what it waited for. */
typedef enum mri_wait_reason {
    MRI_WAIT_INPUT,  /* nothing to work on */
    MRI_WAIT_ROOM,   /* no slot behind it is free */
    MRI_WAIT_BUFFER, /* no read buffer is free */
    MRI_WAIT_REASONS
} mri_wait_reason;

typedef struct mri_stage_counter { /* atomics, relaxed: sums of all threads of a stage */
    uint64_t busy_ns, items;
    uint64_t wait_ns[MRI_WAIT_REASONS];
    uint64_t fill_sum, fill_samples; /* queue fill in 1/65536, to average */
} mri_stage_counter;

static inline void mri_count(uint64_t *counter, uint64_t by)
{
    __atomic_fetch_add(counter, by, __ATOMIC_RELAXED);
}
static inline uint64_t mri_counted(const uint64_t *counter)
{
    return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

/* The queue in front holds `filled` of `room`. */
static inline void mri_count_fill(mri_stage_counter *c, uint64_t filled, uint64_t room)
{
    mri_count(&c->fill_sum, filled * 65536 / room);
    mri_count(&c->fill_samples, 1);
}

/* A stage's counts so far, of so many threads. Any thread, at any time. */
mr_stage_stats mri_stage_stats(const mri_stage_counter *c, uint32_t threads);

#endif
