/* train/run/worker.h: parts of a batch that train weights of their own between averages. Private to
 * train/run/ and tests.
 *
 *   common x ──┬─► part 0: N updates ─► w0 ┐
 *              ├─► part 1: N updates ─► w1 ┼─► sum of (x - w) in the order of the tree ─► new x, to all parts
 *              └─► part 2: N updates ─► w2 ┘
 *
 * Local SGD; with momentum of x DiLoCo (Douillard et al. 2023), with the heavy ball SlowMo (Wang et al. 2019)
 * and block momentum (Chen and Huo 2016). Everything here is queued on the replica's stream and nothing
 * waits. */
#ifndef MRI_WORKER_H
#define MRI_WORKER_H

#include "train/run/replica.h"

/* The averaged arrays of mri_worker. */
typedef enum mri_averaged { MRI_AVERAGED_WEIGHTS, MRI_AVERAGED_STATS, MRI_AVERAGED_SLOTS } mri_averaged;

/* How many arrays there are: MRI_AVERAGED_SLOTS, and after it the other slots. And the floats of one of them.
 */
uint32_t mri_worker_arrays(const mri_replica *r);
uint64_t mri_worker_floats(const mri_replica *r, uint32_t array);

/* Queue, for floats [from, from + count) of an array, at most the number of weights: the sums over this
 * replica's parts of (common - own), or of -own for slots, in its gradients and terms as mri_replica_fold()
 * leaves them. */
int mri_worker_differences(const mri_replica *r, uint32_t array, uint64_t from, uint64_t count);
/* Queue the update of these floats by the sum over all parts, which is in the gradients now: of the common
 * array. */
int mri_worker_take_sum(const mri_replica *r, uint32_t array, uint64_t from, uint64_t count);
/* Queue: the common weights and statistics become the first part's. */
int mri_worker_take_first(const mri_replica *r);
/* Queue: every part goes on from the common weights and statistics, and from the first part's slots. */
int mri_worker_spread(const mri_replica *r);

#endif
