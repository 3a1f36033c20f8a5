/* train/run/replica.h: a network on one device: its ops, its memory, and the queueing of forward, backward
 * and update.
 *
 *   nodes.c    layers become ops: what rides along in another op, what works in place
 *   plan.c     who needs what until when, and so where everything lies
 *   replica.c  opening: memory, checked against the limit before any is taken; initial weights
 *   passes.c   queueing, or replaying what was recorded
 *
 * All parameters lie in ONE array, so do gradients, each optimizer state and the running statistics: an
 * update, a sum over replicas or a broadcast is one call over the whole or a stretch of it. Each parameter
 * starts at a multiple of MRI_PARAM_ALIGN floats; the gaps are zero and stay zero. */
#ifndef MRI_REPLICA_H
#define MRI_REPLICA_H

#include "train/net/net.h"
#include "train/run/spans.h"

#define MRI_PARAM_ALIGN 64u
#define MRI_RUN_AHEAD                                                                                        \
    2u /* steps queued and not over: enough to hide the host, few enough to bound every queue */
#define MRI_NONE UINT32_MAX

/* A stretch of the gradients that is complete once backward has passed a node. */
typedef struct mri_bucket {
    uint32_t node;
    uint64_t at, count; /* floats */
} mri_bucket;

/* What all replicas of a trainer have in common. */
typedef struct mri_replica_plan {
    const mr_net *net;
    uint32_t max_batch;    /* samples of one replica */
    uint32_t global_batch; /* for messages */
    uint64_t seed;
    bool inference, uses_affine;
    uint32_t dtype; /* of activations */
    float mean[4], std[4];
    mr_update_desc update;
    uint32_t slot_count;   /* arrays of optimizer state */
    uint64_t bucket_bytes; /* 0: one bucket */
    uint64_t memory_bytes; /* 0: no limit */
    bool together;         /* gradients are nobody else's: the update follows backward at once */
    bool records;          /* record steps where the device can */
} mri_replica_plan;

/* An op and its place in the network. The ..._span are places in replica.spans; MRI_NONE: it has none. */
typedef struct mri_node {
    mr_op *op;
    const mr_op_info *info;
    mr_op_kind kind;
    mr_activation activation;
    uint32_t layer;         /* in the network; MRI_NONE for the input and the loss */
    uint32_t in, in2;       /* nodes whose outputs it takes */
    uint32_t takers;        /* of its output */
    bool inplace;           /* output in the input's place, and gradients too */
    bool backward;          /* takes part in the backward pass */
    bool need_dx, need_dx2; /* a gradient to in, to in2, is wanted */
    uint32_t y_span, saved_span, scratch_span[2] /* forward, backward */, dy_span, dy2_span, dx_span;
    uint64_t param_at[MR_OP_MAX_PARAMS], state_at[MR_OP_MAX_PARAMS]; /* floats into weights and stats */
} mri_node;

typedef enum mri_sums { MRI_SUMS_TRAINING = 0, MRI_SUMS_EVALUATION = 1 } mri_sums;

/* A step on one device slot, its segments as they were recorded. */
#define MRI_RECORDINGS                                                                                       \
    8u /* the loader has two slots a device; training and evaluation come from different loaders */
typedef struct mri_recording {
    mr_part part;       /* addresses, first and count it was recorded with */
    bool training, ran; /* ran: once without recording, as the first run prepares things */
    mr_graph **graphs;  /* segment_count */
} mri_recording;

typedef struct mri_replica {
    mr_device *dev;
    mr_stream *stream; /* all compute */
    mri_replica_plan plan;
    mri_node *nodes;
    uint32_t node_count;
    mri_span *spans;
    uint32_t span_count;
    uint64_t weight_floats, stat_floats;
    float *weights, *grads, *slot[2], *stats; /* device memory; NULL where the plan needs none */
    char *arena; /* activations, their gradients, saved state, scratch: by the spans */
    size_t arena_bytes;
    mr_metrics *sums[2];            /* device memory, by mri_sums */
    mr_metrics *host_sums;          /* one, pinned */
    mr_step_values *values;         /* device memory: what the step under way reads */
    mr_step_values *host_values;    /* pinned, one for each step that may be queued (MRI_RUN_AHEAD) */
    mr_loss_scale *loss_scale;      /* device memory; f16 only, else NULL */
    mr_loss_scale *host_loss_scale; /* one, pinned */
    uint64_t memory_bytes;          /* device memory it takes */
    mri_bucket *buckets;            /* from the end of the gradients to their beginning */
    uint32_t bucket_count;
    mri_recording recordings[MRI_RECORDINGS];
    uint32_t recording_count, replayed; /* replayed: segments launched as recorded */
    bool records;
    mr_error record_error; /* why it records no more, where that is worth telling */
} mri_replica;

/* Ops and memory (its sum checked against the limit before any is taken). Weights are zero. On failure
 * nothing is left. */
int mri_replica_open(mri_replica *r, mr_device *dev, const mri_replica_plan *plan, mr_error *err);
/* Nothing queued may be unfinished. */
void mri_replica_close(mri_replica *r);
/* Initial weights and statistics, by the plan's seed; finished when it returns. */
int mri_replica_init_weights(mri_replica *r, mr_error *err);

/* nodes.c and plan.c, for replica.c and tests. */
int mri_replica_build_nodes(mri_replica *r, mr_error *err);
/* Spans of activations and gradients for `batch` samples (at most the plan's), placed; *arena_bytes in
 * all. */
int mri_replica_place_spans(mri_replica *r, uint32_t batch, size_t *arena_bytes);
int mri_replica_fill_buckets(mri_replica *r, mr_error *err);

/* Queue the values of a step; slot (below MRI_RUN_AHEAD) is the host's copy, free again when the step is
 * over. */
int mri_replica_values(mri_replica *r, uint32_t slot, const mr_step_values *values);

/* A training step is cut in segments, so that gradients can be summed in between: segment k < bucket_count
 * ends where bucket k is complete (the first begins with forward); the update follows as a segment of its
 * own, or at the end of the last one when the plan says together. An evaluation is one segment. whole: a full
 * batch, worth recording. */
uint32_t mri_replica_segments(const mri_replica *r, bool training);
int mri_replica_run(mri_replica *r, const mr_part *part, bool training, bool whole, uint32_t segment);

/* Initial values of a parameter of a layer, in canonical order: "weights" as init says, one for "scale" and
 * "variance", zero for the rest. Depends on (init, seed, layer, place in the parameter) only. */
void mri_init_param(const mr_param_info *param, mr_init init, uint32_t layer, uint64_t seed, float *out);

#endif
