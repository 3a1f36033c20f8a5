/* train/run/sums.h: the counts of the replicas, and the loss scale they have in common. All of it waits for
 * everything queued. Private to train/ and its tests. */
#ifndef MRI_SUMS_H
#define MRI_SUMS_H

#include "train/run/flight.h"

/* f16: set the loss scale of every replica; nothing on the devices otherwise. *kept becomes it, too. */
int mri_scale_set(mri_flights *f, const mr_loss_scale *scale, mr_loss_scale *kept, mr_error *err);
/* f16: *kept becomes that of replica 0. */
int mri_scale_read(mri_flights *f, mr_loss_scale *kept, mr_error *err);
/* Forget the sums of one kind, bad labels among them: they belong to nobody who asks from here on. Waits for
 * everything queued; no process depends on another. */
int mri_sums_discard(mri_flights *f, mri_sums which, mr_error *err);
/* The sums over all replicas of one kind since they were last taken or discarded. Also reads the loss scale.
 */
int mri_sums_take(mri_flights *f, mri_sums which, mr_metrics *out, mr_loss_scale *kept, mr_error *err);

#endif
