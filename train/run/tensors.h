/* train/run/tensors.h: the tensors that a trained network consists of, by the names a checkpoint has for
 * them. Private to train/ and its tests.
 *
 * Tensors are named LAYER/KIND/PARAMETER by place in the network, so the list is the same on every device and
 * for every number of replicas. */
#ifndef MRI_TENSORS_H
#define MRI_TENSORS_H

#include "train/run/replica.h"
#include "train/state/checkpoint.h"

/* The parameter of an op that a tensor of the checkpoint stores. */
typedef struct mri_tensor_place {
    uint32_t stage; /* number of steps along mri_replica.next */
    uint32_t node, which;
    bool state;
    uint64_t at; /* floats into its array */
} mri_tensor_place;

typedef struct mri_tensors {
    /* weights and statistics layer by layer, then the optimizer's arrays, then averages of the first, in the
     * same order, where they are kept */
    mri_tensor_desc *desc;
    mri_tensor_place *place;
    uint32_t count, own;  /* own: weights and statistics */
    uint64_t most_floats; /* of the largest */
} mri_tensors;

/* Of a replica and the replicas after it. On failure mri_tensors_fini() is still to be called. */
int mri_tensors_init(mri_tensors *t, const mri_replica *rep, mr_error *err);
void mri_tensors_fini(mri_tensors *t); /* accepts a zeroed one */

/* Is it a weight that Lookahead goes back to? */
bool mri_tensors_is_lookahead(const mri_tensors *t, const mri_replica *rep, uint32_t tensor);

/* One of them (or its gradient) in canonical order, from and to a replica. Both wait. */
int mri_tensor_export(const mri_tensors *t, const mri_replica *rep, uint32_t tensor, bool gradient,
                      float *out, mr_error *err);
int mri_tensor_import(const mri_tensors *t, const mri_replica *rep, uint32_t tensor, const float *from,
                      mr_error *err);

/* Everything that a part trains by itself, as one array: its weights, statistics and slots in the order of
 * the list. Its floats, and one of a replica's parts in canonical order, from and to the device. Both wait.
 */
uint64_t mri_worker_state_floats(const mri_tensors *t);
int mri_worker_export(const mri_tensors *t, const mri_replica *rep, uint32_t worker, float *out,
                      mr_error *err);
int mri_worker_import(const mri_tensors *t, const mri_replica *rep, uint32_t worker, const float *from,
                      mr_error *err);

#endif
