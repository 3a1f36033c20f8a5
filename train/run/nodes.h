/* train/run/nodes.h: the ops of a network on one device. Private to train/run/ and tests. */
#ifndef MRI_NODES_H
#define MRI_NODES_H

#include "settings/setting.h"
#include "train/net/net.h"
#include "train/run/fold.h"

#define MRI_NONE UINT32_MAX

/* Where a further input of a network is in a part of a batch. */
typedef struct mri_field_place {
    uint32_t at;    /* among the part's fields */
    uint32_t dtype; /* MR_TENSOR_... */
    bool varies;    /* rows have the width of their batch */
} mri_field_place;

/* What comes in through a port. */
typedef struct mri_port_in {
    mr_tensor tensor;
    bool gradient; /* one is wanted back */
} mri_port_in;

typedef struct mri_data_in {
    mri_field_place fields[MR_LOADER_MAX_FIELDS]; /* of the network's further inputs */
    const mri_port_in *ports;                     /* of the network's ports in, its first layers */
    bool split; /* forward is queued by itself: its inputs come from other devices and its outputs go to them
                 */
} mri_data_in;

typedef struct mri_kept { /* points whose values stay */
    const mr_point *at;
    uint32_t count;
} mri_kept;

typedef struct mri_touched { /* which parameters an update changes, and which decay */
    const bool *frozen;      /* by a layer's number in the whole network: they stay; NULL: none do */
    mr_decay_on decay_on;
    uint32_t head; /* the last layer with weights, by its number in the whole network: none of MUON's matrices
                    */
} mri_touched;

typedef struct mri_labels { /* how losses against labels count them in training */
    float smoothing;
    const float *class_weights; /* NULL: all alike; so in inference */
    uint32_t class_weight_count;
} mri_labels;

/* How parts train together: with weights of their own, and how those are averaged (worker.h), or delayed. */
typedef struct mri_local {
    bool on;
    bool apart;      /* they are never averaged; the first part of all is the common one */
    bool heavy_ball; /* else Nesterov */
    float lr, momentum;
    uint32_t all_parts; /* of all replicas and processes */
    bool delayed;       /* one set of weights; updates take the gradients of the batch before
                           (mri_memory.late) */
} mri_local;

/* Pixels become (pixel - mean) / std, by channel. */
typedef struct mri_affine {
    bool used;
    float mean[4], std[4];
} mri_affine;

/* From gradients to weights: settings with rows are members without further code, except texts, which are the
 * caller's. `touched` and `local` of mri_replica_config are derived from some of them. */
typedef struct mri_optimizer {
    mr_update_desc update;
#define MRI_SETTING(member, kind, ...) MRI_TYPE_##kind member;
#define MRI_KEPT_TEXT(member, kind, ...)
#include "settings/updates.rows"
    uint32_t slot_count; /* arrays of optimizer state; with lookahead the last one has the weights it goes
                            back to */
} mri_optimizer;

/* What all replicas of a trainer have in common, but for the last two. */
typedef struct mri_replica_config {
    const mr_net *net;
    uint32_t max_batch;    /* samples of one part */
    uint32_t global_batch; /* for messages */
    uint64_t seed;
    bool inference;
    uint32_t dtype; /* of activations */
    mri_affine affine;
    mri_optimizer optimizer;
    mri_labels labels;
    mri_touched touched;
    uint64_t bucket_bytes; /* 0: one bucket */
    uint64_t memory_bytes; /* 0: no limit */
    bool together;         /* gradients are nobody else's: the update follows backward at once */
    bool records;          /* record steps where the device can */
    mri_folds folds;       /* the parts of this replica */
    mri_data_in in;        /* its inputs other than pictures */
    mri_kept kept;
    mri_local local;
    bool clears_gaps; /* sums leave other values than zero between the gradients of two parameters */
    bool owns_stats;  /* the first of them is the first of all: its running statistics are the network's */
} mri_replica_config;

/* An op and its place in the network. plan.c writes the places in memory: `span` has numbers of spans of an
 * mri_plan; MRI_NONE: not in memory. nodes.c writes the rest. */
typedef struct mri_node {
    mr_op *op;
    const mr_op_info *info;
    mr_op_desc desc; /* as it was made */
    mr_op_kind kind;
    mr_activation activation;
    uint32_t layer;         /* in the network; MRI_NONE for the input and the loss */
    uint32_t in, in2;       /* nodes whose outputs it takes */
    uint32_t field;         /* of a node that takes data: which of a part's fields; MRI_NONE: its pictures */
    uint32_t consumers;     /* of its output */
    bool fork;              /* hands its input on, for more takers than two */
    mri_port port;          /* IN: y is written by others; OUT: the gradient to y is */
    bool inplace;           /* output in the input's place, and gradients too */
    bool backward;          /* takes part in the backward pass */
    bool frozen;            /* its parameters stay, and so do its statistics, with which it computes */
    bool need_dx, need_dx2; /* a gradient to in, to in2, is needed */
    struct {
        uint32_t y, saved, scratch[2] /* forward, backward */, dy, dy2, dx, dx2;
    } span;
    uint64_t param_at[MR_OP_MAX_PARAMS], state_at[MR_OP_MAX_PARAMS]; /* floats into weights and stats */
} mri_node;

typedef struct mri_nodes {
    mri_node *node;
    uint32_t count;
    uint32_t *made_by; /* by point: the node that makes it, or a fork of it; MRI_NONE: data as they are */
} mri_nodes;

/* On failure mri_nodes_fini() is still to be called. */
int mri_nodes_init(mri_nodes *nodes, mr_device *dev, const mri_replica_config *cfg, mr_error *err);
void mri_nodes_fini(mri_nodes *nodes); /* accepts a zeroed one */
/* The node that a layer became; NULL: it is part of another one's. */
const mri_node *mri_nodes_of_layer(const mri_nodes *nodes, uint32_t layer);

#endif
