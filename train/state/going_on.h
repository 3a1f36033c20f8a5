/* train/state/going_on.h: the settings that a resumed run must share with its first part. */
#ifndef MRI_TRAIN_GOING_ON_H
#define MRI_TRAIN_GOING_ON_H

#include "millrace/checkpoint.h"

/* The seed of the run's loader. */
static inline uint64_t mri_order_seed(const mr_checkpoint_info *i)
{
    return i->own_order_seed ? i->order_seed : i->seed;
}

/* MR_EINVAL, and err names the setting, where the loader, which `now` describes, delivers other batches than
 * the checkpoint's run had, or begins at another position. */
int mri_going_on_check(const mr_checkpoint_info *then, const mr_checkpoint_info *now,
                       const mr_loader_info *loader, mr_error *err);

#endif
