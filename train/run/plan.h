/* train/run/plan.h: the layout of a replica's device memory, its size, and when each part of the gradients is
 * complete. Private to train/run/ and tests.
 *
 * All parameters lie in ONE array, so do gradients, each optimizer state and the running statistics: an
 * update, a sum over replicas or a broadcast is one call over the whole or a stretch of it. Each parameter
 * starts at a multiple of MRI_PARAM_ALIGN floats; the gaps are zero and stay zero. */
#ifndef MRI_PLAN_H
#define MRI_PLAN_H

#include "train/run/nodes.h"
#include "train/run/spans.h"

#define MRI_PARAM_ALIGN 64u

/* Rates in mri_memory.outer_values: 1; 1 / parts of all; the outer rate / parts of all. */
enum { MRI_OUTER_WHOLE, MRI_OUTER_SHARE, MRI_OUTER_STEP, MRI_OUTER_VALUES };

/* A stretch of the gradients that is complete once backward has passed a node. */
typedef struct mri_bucket {
    uint32_t node;
    uint64_t at, count; /* floats */
} mri_bucket;

typedef struct mri_plan {
    mri_span *spans; /* of the arena: activations, their gradients, saved state, scratch */
    uint32_t span_count;
    size_t arena_bytes;
    uint64_t weight_floats, stat_floats;
    uint64_t memory_bytes; /* device memory in all */
    bool other_stats;      /* parts that are not the first of all keep their running statistics elsewhere */
    bool averages;         /* of weights and statistics are kept */
    uint8_t *decays;       /* as mr_update_config has them; NULL: all do */
    uint32_t *tensors;     /* LAMB: as mr_update_config has them, else NULL */
    uint32_t tensor_count;
    mr_update_matrix *matrices; /* MUON: as mr_update_config has them */
    uint32_t matrix_count;
    uint64_t room_bytes; /* for them */
    mri_bucket *buckets; /* from the end of the gradients to their beginning */
    uint32_t bucket_count;
} mri_plan;

/* Places for all that the nodes need (written to the nodes, too), compared with the limit of the settings and
 * of the device. On failure mri_plan_fini() is still to be called. */
int mri_plan_init(mri_plan *plan, mri_nodes *nodes, mr_device *dev, const mri_replica_config *cfg,
                  mr_error *err);
void mri_plan_fini(mri_plan *plan); /* accepts a zeroed one */

/* Bytes of plan->decays. */
static inline uint64_t mri_plan_decay_bytes(const mri_plan *plan)
{
    return plan->decays ? mri_align_up(plan->weight_floats, MR_UPDATE_STRETCH) / MR_UPDATE_STRETCH : 0;
}
/* Bytes of plan->tensors, and of what LAMB sums for them. */
static inline uint64_t mri_plan_tensor_bytes(const mri_plan *plan)
{
    return plan->tensors ? plan->weight_floats / MR_UPDATE_STRETCH * sizeof *plan->tensors : 0;
}
static inline uint64_t mri_plan_trust_bytes(const mri_plan *plan)
{
    return plan->tensors ? mr_update_trust_count(plan->weight_floats, plan->tensor_count) * sizeof(double)
                         : 0;
}
/* Of a replica's sums for the norm of the gradients; 0: it has no limit. */
uint64_t mri_plan_norm_bytes(const mri_plan *plan, const mri_replica_config *cfg);

/* The number of buckets of at least this many bytes (0: one) for the gradients. And: cut them so. */
uint32_t mri_plan_count_buckets(const mri_plan *plan, const mri_nodes *nodes, uint64_t bytes);
void mri_plan_cut_buckets(mri_plan *plan, const mri_nodes *nodes, uint64_t bytes);

#endif
