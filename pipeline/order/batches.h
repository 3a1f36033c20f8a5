/* pipeline/order/batches.h: which samples are in each batch of a run (I1). Private.
 *
 * Takes settings of the order and the number of samples; with a length window also a source, which is asked
 * for lengths. Gives the samples of any batch and the number of batches, by numbers alone. Callers: the
 * stages and the loader, which asks windows.h for the memory of a length window; this file keeps only
 * numbers.
 *
 * Batches are numbered without gaps over all epochs: batch = epoch * steps_per_epoch + step. All of it is a
 * pure function of the fields below, which are fixed after mri_batches_plan(). Any thread. */
#ifndef MRI_BATCHES_H
#define MRI_BATCHES_H

#include "pipeline/order/balance.h"
#include "pipeline/order/mixture.h"
#include "pipeline/order/own.h"
#include "pipeline/order/windows.h"

typedef struct mri_batches {
    mr_order order;
    uint32_t block, batch; /* samples in a block; in a global batch */
    uint64_t seed;
    mr_tail tail;
    uint32_t parts;                         /* that a global batch is cut into */
    uint32_t own_first, own_parts;          /* shares delivered here: [own_first, own_first + own_parts) */
    uint64_t sample_count, steps_per_epoch; /* positions of an epoch; batches of it */
    uint64_t first_batch, end_batch;        /* what this run delivers */
    mri_windows *windows;                   /* NULL: batches are cut from the order as it is; else owned */
    mri_balance *balance;                   /* order BALANCED, else NULL; owned */
    mri_mixture *mixture;                   /* order SHUFFLE of a mix, else NULL; owned */
    mri_own_order own;                      /* in place of all of these; count 0: none */
    uint32_t repeats;                       /* of each sample in a batch, 1 at least; above: none of these */
} mri_batches;

typedef struct mri_batches_config {
    mr_order order;
    uint32_t block, batch, parts, own_first, own_parts; /* own_parts 0: all */
    uint64_t seed;
    mr_tail tail;
    uint64_t sample_count, epochs, start_epoch, start_step;
    mri_own_order own; /* count 0: no own order; else an epoch has `count` positions, not sample_count */
    uint32_t repeats;  /* 0 is 1 */
} mri_batches_config;

/* MR_EINVAL: nothing would be delivered. */
int mri_batches_plan(mri_batches *b, const mri_batches_config *cfg, mr_error *err);
/* Samples of one length into one batch (windows.h). */
int mri_batches_add_windows(mri_batches *b, const mr_source *source, uint32_t window, mr_error *err);
/* What orders that deal samples need to know: BALANCED (balance.h), SHUFFLE of a mix (mixture.h). Nothing for
 * others. */
int mri_batches_add_dealer(mri_batches *b, const mr_source *source, mr_error *err);
void mri_batches_fini(mri_batches *b);

/* Samples of an epoch that are delivered; that are left out; that are repeated to fill the last batch. */
uint64_t mri_batches_dropped(const mri_batches *b);
uint64_t mri_batches_padded(const mri_batches *b);

void mri_batches_place(const mri_batches *b, uint64_t batch, uint64_t *epoch, uint64_t *step);
uint32_t mri_batches_count(const mri_batches *b, uint64_t batch); /* samples in it */

/* The r-th of the shares delivered here. */
void mri_batches_own_part(const mri_batches *b, uint64_t batch, uint32_t r, uint32_t *first,
                          uint32_t *number);
/* Places of a batch that are delivered here: [first, first + number); number may be 0. And the most there can
 * be. */
void mri_batches_own(const mri_batches *b, uint64_t batch, uint32_t *first, uint32_t *number);
uint32_t mri_batches_own_most(const mri_batches *b);

/* Samples at places [first, first + count) of a batch. Fails only where windows and orders of one's own do.
 */
int mri_batches_samples(const mri_batches *b, uint64_t batch, uint32_t first, uint32_t count, uint64_t *out,
                        mr_error *err);
/* Distinguishes the occurrences of the sample at this place, for its draws: the epoch; with repeats, a number
 * for each occurrence in an epoch; in an order that repeats samples within an epoch, the position over all
 * epochs. */
uint64_t mri_batches_turn(const mri_batches *b, uint64_t batch, uint32_t place);
/* Is this place past the last sample of its epoch (padding)? */
static inline bool mri_batches_is_padding(const mri_batches *b, uint64_t step, uint32_t place)
{
    return step * b->batch + place >= b->sample_count;
}
/* The sample that stands in for a damaged one at this place: attempt 0, 1, ... It follows from the place,
 * whatever order brought the damaged sample there; in the caller's own order it is one of the epoch's
 * samples, and asking for it may fail. */
int mri_batches_substitute(const mri_batches *b, uint64_t batch, uint32_t place, uint32_t attempt,
                           uint64_t *out, mr_error *err);

#endif
