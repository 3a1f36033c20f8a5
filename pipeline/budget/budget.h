/* pipeline/budget/budget.h: one budget of memory, and who may take how much of it. Private.
 *
 *   total = reserved                       slots, buffers, and what every worker may always take
 *         + lent                           to seats: for a picture that needs more than a worker always has
 *         + the free rest
 *
 * A seat belongs to one thread that decodes. It asks for all that a picture needs before it takes any of it.
 * If the free rest is too small, it gives back its loan and waits in line. No seat waits while it holds a
 * loan, and a seat with a loan never waits, so the first in line finally gets all memory. A seat keeps its
 * loan from sample to sample; it gives it back between two samples when another seat waits, and a waiting
 * seat takes loans from resting seats. So results depend on no budget: a picture waits, or it can never fit,
 * and then the run ends (MR_ELIMIT).
 *
 * Callers: the loader reserves; workers of loaders and conversions, and checkers, have seats. */
#ifndef MRI_BUDGET_H
#define MRI_BUDGET_H

#include "base/util.h"
#include "millrace/pipeline.h"

typedef struct mri_seat {
    mr_budget *budget;           /* NULL: nothing is bounded here. Fixed, like the three below */
    void (*drop)(void *context); /* frees memory beyond its own share; any thread, while the seat rests */
    void *context;
    const bool *over; /* atomic: a wait ends when it is true; or NULL */
    bool grown, kept; /* for the owner: it may have borrowed; its loan is still there */
    bool busy; /* budget lock, like the rest: its buffers are in use. Only the owner of a busy seat writes */
    uint64_t lent;
    struct mri_seat *next, *behind; /* of all seats; in line */
} mri_seat;

/* ---- the owner of a seat ---- */
/* over NULL: waits only for other pictures. */
void mri_seat_add(mri_seat *s, mr_budget *b, void (*drop)(void *context), void *context, const bool *over);
void mri_seat_remove(mri_seat *s); /* its memory is gone; accepts a zeroed one */
/* Bytes beyond the share that is reserved for it: `together` with all that it has borrowed before, or
 * `alone`, after that was dropped (kept says which). MR_OK; MR_ELIMIT: more than there can ever be for one;
 * MR_ECANCELED: over. */
int mri_seat_need(mri_seat *s, uint64_t together, uint64_t alone);
void mri_seat_work(mri_seat *s);  /* its buffers are in use from now on */
void mri_seat_yield(mri_seat *s); /* between two samples: gives way to who waits */
void mri_seat_rest(mri_seat *s);  /* its buffers are not in use */

/* For mri_seat_need() that returned rc, for a picture of w x h: MR_ELIMIT names the budget, the `bytes` that
 * the picture needs, and the `own` bytes that the seat's own share covers; sys_errno is ENOMEM, because the
 * picture is not at fault. advice: what to lower. Returns rc. */
int mri_seat_error(const mri_seat *s, int rc, uint32_t w, uint32_t h, uint64_t bytes, uint64_t own,
                   const char *advice, mr_error *err);

/* ---- the others ---- */
/* MR_ELIMIT when that is not left. Waits for pictures that are being decoded. */
int mri_budget_reserve(mr_budget *b, uint64_t bytes);
void mri_budget_return(mr_budget *b, uint64_t bytes);
bool mri_budget_is_own(const mr_budget *b); /* this process has made it (base/handle.h) */
uint64_t mri_budget_left(mr_budget *b);     /* not reserved */
/* Who waits looks at `over` again. */
void mri_budget_wake(void *budget);

#endif
