/* pipeline/stream/shelf.h: batches that their consumer keeps: slots that lie outside of the ring, and may
 * outlive it. Private.
 *
 * Takes a number of spare slots. Gives one of them for each slot that is kept, so that the ring continues
 * with the same number, and takes kept ones back in any order. Callers: the loader; mr_kept_drop() from any
 * thread. */
#ifndef MRI_SHELF_H
#define MRI_SHELF_H

#include "pipeline/stream/slot.h"

typedef struct mri_shelf mri_shelf;

/* spare[count] are free. MR_OK or MR_ENOMEM. */
int mri_shelf_create(mri_shelf **out, mri_slot *spare, uint32_t count);
/* Nobody exchanges any more. The memory of slots is the shelf's from here on: given back now, or when the
 * last kept slot comes. NULL: only the memory is given back. */
void mri_shelf_close(mri_shelf *s, mri_slots *slots);

/* A free slot for one that is kept from now on; NULL: all are kept. One thread. */
mri_slot *mri_shelf_take(mri_shelf *s);
/* A kept one is free again. Any thread. */
void mri_shelf_return(mri_shelf *s, mri_slot *slot);
/* Slots that are kept. Any thread. */
uint32_t mri_shelf_kept(mri_shelf *s);

#endif
