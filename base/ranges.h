/* base/ranges.h: what a thread is doing, for a profiler that listens (NVTX: Nsight Systems, Nsight Compute).
 *
 *   reader    read                          stager    stage ─ copy
 *   worker    decode ─ parse, augment       trainer   wait, evaluate, checkpoint,
 *                                                     step ─ forward, backward, update, exchange
 *
 * A range is open on its thread from mri_range_begin() to the mri_range_end() that closes it; ranges nest,
 * and every way out of a function closes what the function opened. Names are few and fixed: they are
 * registered with the tool once, and a range carries a number (the batch, the sample) in addition to its
 * name. Without a tool a call is one test of a variable; a build without the NVTX headers has no calls at
 * all.
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
    X(DECODE, "decode")     /* worker: one chunk of samples; number: its batch */                            \
    X(PARSE, "parse")       /* one sample's bytes taken apart; number: the sample */                         \
    X(AUGMENT, "augment")   /* one picture decoded, cropped, resampled into its place; number: the sample */ \
    X(STAGE, "stage")       /* stager: a batch's way to the devices; number: the batch */                    \
    X(COPY, "copy")         /* in it: waiting until the copies are over and the host slot is free */         \
    X(WAIT, "wait")         /* trainer: blocked on the loader; no number */                                  \
    X(STEP, "step")         /* trainer: queueing one training step, its parts within; number: the step */    \
    X(FORWARD, "forward")   /* number: samples of this replica's part */                                     \
    X(BACKWARD, "backward") /* likewise */                                                                   \
    X(UPDATE, "update")     /* number: weights */                                                            \
    X(REPLAY, "replay") /* instead of these three: a recorded piece of a step launched; number: which piece  \
                         */                                                                                  \
    X(EXCHANGE, "exchange") /* one bucket of gradients; number: the bucket */                                \
    X(EVALUATE, "evaluate") /* number: updates so far, as below */                                           \
    X(CHECKPOINT, "checkpoint")

enum mri_range {
#define MRI_RANGE_CONSTANT(constant, name) MRI_RANGE_##constant,
    MRI_RANGES(MRI_RANGE_CONSTANT)
#undef MRI_RANGE_CONSTANT
        MRI_RANGE_COUNT
};

#ifdef MILLRACE_NVTX

/* 0: nobody has asked yet; 1: a tool listens; -1: none does */
extern atomic_int mri_ranges_listener;
void mri_range_begin_traced(enum mri_range range, uint64_t number);
void mri_range_end_traced(void);
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

#else

static inline void mri_range_begin(enum mri_range range, uint64_t number) { (void)range, (void)number; }
static inline void mri_range_end(void) {}
static inline void mri_range_name_thread(const char *name) { (void)name; }

#endif
#endif
