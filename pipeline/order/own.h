/* pipeline/order/own.h: an order of the caller's own (mr_loader_config.sampler). Private.
 *
 * Takes an array of sample numbers that is lent, or a function that is asked; gives the samples at positions
 * of an epoch, each of them checked: nothing behind this room meets a number that the source does not have.
 * Keeps nothing. Callers: batches.h. */
#ifndef MRI_OWN_H
#define MRI_OWN_H

#include "millrace/pipeline.h"

typedef struct mri_own_order {
    uint64_t count;         /* positions in an epoch; 0: there is no order of one's own */
    uint64_t in_set;        /* samples of the source */
    const uint64_t *sample; /* count of them, lent; or NULL: */
    mr_sampler *ask;
    void *context;
} mri_own_order;

/* MR_EINVAL: contradictory or missing settings; or a number of the array that the source does not have. With
 * count 0 and nothing else set: MR_OK, and out->count is 0. */
int mri_own_order_make(mri_own_order *out, const mr_loader_config *cfg, uint64_t in_set, mr_error *err);

/* Samples at positions [position, position + count) of an epoch; after its last one it begins again
 * (padding). MR_EINVAL: the source does not have a number; other errors are the function's. Any thread; waits
 * if the function does. */
int mri_own_order_list(const mri_own_order *o, uint64_t epoch, uint64_t position, uint32_t count,
                       uint64_t *out, mr_error *err);

#endif
