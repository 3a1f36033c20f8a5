/* pipeline/observe/counter.h: the room that observes a run: the counters of every stage, and traces (trace.c,
 * public). Private.
 *
 * Takes counts and times from any thread; gives them as figures and as a trace file. Callers: every stage,
 * and reports. It knows neither the stages nor the loader, and nothing in a run depends on it. */
#ifndef MRI_COUNTER_H
#define MRI_COUNTER_H

#include "base/util.h"
#include "millrace/pipeline.h"

/* The activity of a stage's thread. A wait that a stop ends counts as that kind of wait. */
typedef enum mri_activity {
    MRI_WAIT_INPUT,  /* nothing to work on */
    MRI_WAIT_ROOM,   /* no slot after it is free */
    MRI_WAIT_BUFFER, /* no read buffer is free, or no memory for a large picture */
    MRI_BUSY,
    MRI_ACTIVITIES
} mri_activity;

/* Of all threads of a stage. Zeroed it is ready. */
typedef struct mri_stage_counter {
    uint64_t items;                  /* atomics, relaxed */
    uint64_t fill_sum, fill_samples; /* queue fill in 1/65536, to average */
    pthread_mutex_t lock;            /* all below */
    uint64_t ns[MRI_ACTIVITIES];     /* of finished activities */
    struct {
        uint64_t threads, since_ns; /* since_ns: sum of their beginnings */
    } now[MRI_ACTIVITIES];          /* what goes on, so that a figure can be cut at any moment */
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

/* A thread begins something; gives the time. Whoever begins also ends, and does one thing at a time. */
uint64_t mri_activity_begin(mri_stage_counter *c, mri_activity what);
/* Gives the time. */
uint64_t mri_activity_end(mri_stage_counter *c, mri_activity what, uint64_t since_ns);
/* Move ns of finished time to another activity. */
void mri_activity_move(mri_stage_counter *c, mri_activity from, mri_activity to, uint64_t ns);
/* Add time of an activity without a recorded begin. */
void mri_activity_add(mri_stage_counter *c, mri_activity what, uint64_t ns);
/* So far, what goes on included. */
uint64_t mri_activity_ns(mri_stage_counter *c, mri_activity what);

/* A stage's counts so far, of `threads` threads. Any thread, at any time. */
mr_stage_stats mri_stage_stats(mri_stage_counter *c, uint32_t threads);

#endif
