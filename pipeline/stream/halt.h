/* pipeline/stream/halt.h: one way to stop all stages: the first error, the stop flag, and whom to wake.
 * Private.
 *
 *   a stage fails ─┐
 *   a caller stops ┴─► the flag is set once ──► wake() of every waiter: it takes its own lock, and broadcasts
 *
 * Whoever waits tests mri_halt_is_over() under the lock that its wake() takes, so no wake-up is lost. No
 * lock of a waiter may be held when stop or fail is called. */
#ifndef MRI_HALT_H
#define MRI_HALT_H

#include "base/util.h"

enum { MRI_HALT_WAITERS = 4 };

typedef struct mri_halt {
    bool over;            /* atomic; set under the lock, never cleared */
    pthread_mutex_t lock; /* the two below */
    int failure;          /* MR_OK: nobody failed before the stop */
    mr_error error;
    uint32_t waiter_count; /* fixed once threads run, like the array */
    struct {
        void (*wake)(void *context);
        void *context;
    } waiter[MRI_HALT_WAITERS];
} mri_halt;

void mri_halt_init(mri_halt *h);
void mri_halt_fini(mri_halt *h);
/* wake is called by every stop, from any thread. Before any thread runs; at most MRI_HALT_WAITERS. */
void mri_halt_add(mri_halt *h, void (*wake)(void *context), void *context);

static inline bool mri_halt_is_over(const mri_halt *h) { return __atomic_load_n(&h->over, __ATOMIC_ACQUIRE); }

/* From any thread; again is harmless. fail keeps the error if it is the first, and nobody stopped before. */
void mri_halt_stop(mri_halt *h);
void mri_halt_fail(mri_halt *h, int code, const mr_error *error);
/* The thread that calls it works for this loader until it ends. */
void mri_halt_serve(const mri_halt *h);
bool mri_halt_is_served(const mri_halt *h); /* by the thread that asks */
/* It is over: the first error, or MR_ECANCELED. */
int mri_halt_reason(mri_halt *h, mr_error *err);

#endif
