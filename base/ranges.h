/* base/ranges.h: marks a thread's activity for an attached profiler (NVTX: Nsight Systems, Nsight Compute).
 *
 *   reader    read, room                    stager    host, stage ─ copy
 *   worker    decode ─ parse, augment,      trainer   wait, evaluate, checkpoint, marks "stall ...",
 *             memory                                  host ─ step ─ forward, backward, update, exchange
 *
 * Activities and waits have the name of the cause to which a device's wait for them is charged
 * (mr_cause_name()): read, decode, memory, room, copy, host. The others, large, cores, quota, blocked and
 * network, are known only afterwards: a thread that is not run cannot say so. They appear in the marks, which
 * the trainer sets when a step's events are in: "stall read", ... for each idle stretch of a device, by its
 * heaviest cause.
 *
 * A range is open on its thread from mri_range_begin() to the mri_range_end() that closes it; ranges nest,
 * and every exit of a function closes the function's ranges. Names are few and fixed: they are registered
 * with the tool once, and a range carries a number (the batch, the sample) in addition to its name. Without a
 * tool, or in a build without the NVTX headers, a call is one test of a variable. Only ranges.c depends on
 * these headers: all other objects are equal in both builds, so a compiler cache can share them.
 *
 * This is for people who look at a profile. The program's own reports come from mr_trace and the stage
 * counters, which need no tool. */
#ifndef MRI_RANGES_H
#define MRI_RANGES_H

#include <stdatomic.h>
#include <stdint.h>

/* X(constant, name) */
#define MRI_RANGES(X)                                                                                        \
    X(READ, "read") /* reader: queueing a chunk's reads (number: its batch), or blocked on reads (number: in \
                       flight) */                                                                            \
    X(ROOM, "room") /* reader: blocked until a batch slot or a read buffer is free; no number */             \
    X(DECODE, "decode")     /* worker: one chunk of samples; number: its batch */                            \
    X(MEMORY, "memory")     /* in it: blocked until there is memory for a large picture; its pixels */       \
    X(PARSE, "parse")       /* one sample's bytes taken apart; number: the sample */                         \
    X(AUGMENT, "augment")   /* one picture decoded, cropped, resampled into its place; number: the sample */ \
    X(STAGE, "stage")       /* stager: a batch's way to the devices; number: the batch */                    \
    X(COPY, "copy")         /* in it: waiting until the copies are over and the host slot is free */         \
    X(WAIT, "wait")         /* trainer: blocked on the loader; no number */                                  \
    X(HOST, "host")         /* trainer: the batch is here, until its step is queued; stager: blocked until   \
                               device memory is given back; number: the batch */                             \
    X(STEP, "step")         /* trainer: queueing one training step, its parts within; number: the step */    \
    X(FORWARD, "forward")   /* number: samples of this replica's part */                                     \
    X(BACKWARD, "backward") /* likewise */                                                                   \
    X(UPDATE, "update")     /* number: weights */                                                            \
    X(REPLAY, "replay") /* instead of these three: a recorded piece of a step launched; number: which piece  \
                         */                                                                                  \
    X(EXCHANGE, "exchange") /* trainer: queueing one bucket of gradients; exchange thread: its bytes to and  \
                               from other processes, twice; number: the bucket */                            \
    X(SUM, "sum")           /* exchange thread: between the two, adding up; number: the bucket */            \
    X(WAIT_FOR_RANK, "wait for rank") /* a mark: a process came last to an exchange; number: its rank */     \
    X(EVALUATE, "evaluate")           /* number: updates so far, as below */                                 \
    X(CHECKPOINT, "checkpoint")

/* Marks: in the order of mr_cause, which this room does not know; the trainer asserts that they are as many.
 */
#define MRI_STALLS(X)                                                                                        \
    X(STALL_READ, "stall read")                                                                              \
    X(STALL_DECODE, "stall decode")                                                                          \
    X(STALL_LARGE, "stall large")                                                                            \
    X(STALL_MEMORY, "stall memory")                                                                          \
    X(STALL_CORES, "stall cores")                                                                            \
    X(STALL_QUOTA, "stall quota")                                                                            \
    X(STALL_LOCK, "stall lock")                                                                              \
    X(STALL_ROOM, "stall room")                                                                              \
    X(STALL_COPY, "stall copy")                                                                              \
    X(STALL_HOST, "stall host")                                                                              \
    X(STALL_UNKNOWN, "stall unknown")                                                                        \
    X(STALL_NETWORK, "stall network")

enum mri_range {
#define MRI_RANGE_CONSTANT(constant, name) MRI_RANGE_##constant,
    MRI_RANGES(MRI_RANGE_CONSTANT) MRI_STALLS(MRI_RANGE_CONSTANT)
#undef MRI_RANGE_CONSTANT
        MRI_RANGE_COUNT,
    MRI_RANGE_STALLS = MRI_RANGE_STALL_READ
};

/* 0: nobody has asked yet; 1: a tool listens; -1: none does */
extern atomic_int mri_ranges_listener;
void mri_range_begin_traced(enum mri_range range, uint64_t number);
void mri_range_end_traced(void);
void mri_range_mark_traced(enum mri_range range, uint64_t number);
void mri_range_name_thread(const char *name); /* the calling thread's, as the tool shows it */

static inline void mri_range_begin(enum mri_range range, uint64_t number)
{
    if (atomic_load_explicit(&mri_ranges_listener, memory_order_relaxed) >= 0)
        mri_range_begin_traced(range, number);
}
/* Closes the range that this thread opened last. */
static inline void mri_range_end(void)
{
    if (atomic_load_explicit(&mri_ranges_listener, memory_order_relaxed) >= 0) mri_range_end_traced();
}
/* A moment. */
static inline void mri_range_mark(enum mri_range range, uint64_t number)
{
    if (atomic_load_explicit(&mri_ranges_listener, memory_order_relaxed) >= 0)
        mri_range_mark_traced(range, number);
}
#endif
