/* train/figures.h: an epoch's figures of time: steps, stages, and the limiting one. Private to train/.
 */
#ifndef MRI_FIGURES_H
#define MRI_FIGURES_H

#include "train/trainer.h"

/* An epoch, or what one call ran of it. */
typedef struct mri_epoch {
    uint64_t steps, samples, warmup; /* warmup: its first steps are left out of rates */
    uint64_t begun_ns, wait_ns;      /* wait_ns: the trainer was blocked on the loader, after warm-up */
    mr_loader_stats before;          /* when it began */
} mri_epoch;

/* Fills *r except for loss, accuracy and figures that follow from them. All steps must be over, and in the
 * trainer's log. All processes call it. */
int mri_figures_report(const mri_epoch *e, mr_trainer *t, const mr_loader *loader, mr_report *r,
                       mr_error *err);

#endif
