/* pipeline/stream/order_stage.h: the thread that asks a caller's own order (mr_sampler) for the samples of
 * batches to come. Private.
 *
 *   ring: a slot is free ──► ask the caller's function ──► slot->ids ──► ring: the batch may be claimed
 *
 * The function may wait for as long as it likes, also for a batch that the loader has yet to deliver: no
 * other stage calls it, and no lock is held meanwhile. Batches listed before are read, decoded and delivered.
 * An error of the function ends the run. There is such a stage only where the order is a function and the
 * loader has threads: else whoever locates samples finds them itself (locate.h). */
#ifndef MRI_ORDER_STAGE_H
#define MRI_ORDER_STAGE_H

#include "pipeline/stream/ring.h"

typedef struct mri_order_stage mri_order_stage;

typedef struct mri_order_config {
    const mr_loader_config *set; /* the loader's settings */
    mri_ring *ring;              /* with `lists` */
    mri_halt *halt;
    const mri_batches *batches;
} mri_order_config;

int mri_order_stage_create(mri_order_stage **out, const mri_order_config *cfg, mr_error *err);
int mri_order_stage_start(mri_order_stage *s, mr_error *err);
void mri_order_stage_join(mri_order_stage *s);    /* waits for the caller's function. Accepts NULL */
void mri_order_stage_destroy(mri_order_stage *s); /* accepts NULL */

#endif
