/* train/replica.h: a network on one device: its ops, its memory, and the queueing of forward and backward.
 *
 * All parameters lie in ONE array, so do gradients, each optimizer state and the running statistics: an update, a sum over
 * replicas or a broadcast is one call over the whole. Each parameter starts at a multiple of MRI_PARAM_ALIGN floats; the
 * gaps are zero and stay zero. */
#ifndef MRI_REPLICA_H
#define MRI_REPLICA_H

#include "train/net.h"

#define MRI_PARAM_ALIGN 64u

/* What all replicas of a trainer have in common. */
typedef struct mri_replica_plan {
    const mr_net *net;
    uint32_t max_batch;    /* samples of one replica */
    uint32_t global_batch; /* for messages */
    uint64_t seed;
    bool     inference, uses_affine;
    float    mean[4], std[4];
    uint32_t slot_count;   /* arrays of optimizer state */
    uint64_t memory_bytes; /* 0: no limit */
} mri_replica_plan;

typedef struct mri_node {
    mr_op            *op;
    const mr_op_info *info;
    uint32_t          layer;     /* in the network; UINT32_MAX for the input and the loss */
    bool              inplace;   /* output in the input's place, and gradients too */
    bool              backward;  /* takes part in the backward pass */
    bool              need_dx;
    size_t            y_at, saved_at; /* in the arena */
    uint64_t          param_at[MR_OP_MAX_PARAMS], state_at[MR_OP_MAX_PARAMS]; /* floats into weights and stats */
} mri_node;

typedef enum mri_sums { MRI_SUMS_TRAINING = 0, MRI_SUMS_EVALUATION = 1 } mri_sums;

typedef struct mri_replica {
    mr_device *dev;
    mr_stream *stream; /* all compute */
    mri_replica_plan plan;
    mri_node  *nodes;
    uint32_t   node_count;
    uint64_t   weight_floats, stat_floats;
    float     *weights, *grads, *slot[2], *stats; /* device memory; NULL where the plan needs none */
    char      *arena;    /* activations, saved state, two gradient buffers, scratch */
    size_t     arena_bytes, gradient_at[2], scratch_at;
    mr_metrics *sums[2]; /* device memory, by mri_sums */
    mr_metrics *host_sums; /* one, pinned */
    uint64_t   memory_bytes; /* device memory it takes */
} mri_replica;

/* Ops, memory (its sum checked against the limit before any is taken) and initial weights. On failure nothing is left. */
int  mri_replica_open(mri_replica *r, mr_device *dev, const mri_replica_plan *plan, mr_error *err);
void mri_replica_close(mri_replica *r);

/* Queue the pass of one part (count > 0). scale: 1 / samples counted in the global batch; step: tells dropout apart. */
int mri_replica_forward(mri_replica *r, const mr_part *part, bool training, float scale, uint64_t step);
int mri_replica_backward(mri_replica *r, const mr_part *part, float scale, uint64_t step);

/* Initial values of a parameter of a layer, in canonical order: Glorot uniform for "weights", one for "scale" and
 * "variance", zero for the rest. Depends on (seed, layer, place in the parameter) only. */
void mri_init_param(const mr_param_info *param, uint32_t layer, uint64_t seed, float *out);

#endif
