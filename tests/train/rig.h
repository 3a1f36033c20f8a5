/* tests/train/rig.h: trainers on devices and batches made by hand, no loader needed. */
#ifndef MRT_RIG_H
#define MRT_RIG_H

#include "mrt.h"
#include "train/trainer.h"

enum { MRT_SIDE = 8, MRT_CLASSES = 4, MRT_PIXELS = MRT_SIDE * MRT_SIDE, MRT_KINDS = 5, MRT_SOFT = 6 };

/* Fields of batches made by hand, besides pictures: "floats", the picture as the input operation gives it;
 * "kind", i64, from -1 (padding) to MRT_KINDS, which is invalid as well; "soft", MRT_SOFT numbers of type
 * f64. */
enum { MRT_FLOATS, MRT_KIND, MRT_SOFTS, MRT_FIELDS };
extern const mr_loader_field_info mrt_fields[MRT_FIELDS];

/* A trainer with everything it stands on. */
typedef struct mrt_rig {
    mr_device **devices;
    uint32_t count;
    mr_device *first[MR_LOADER_MAX_PARTS]; /* of each replica */
    mr_net *net;
    mr_trainer *t;
    mr_parts parts;
    mr_world *world; /* the caller's */
    bool mixes;      /* batches made by hand say that samples are mixed */
} mrt_rig;

typedef struct mrt_rig_options {
    const char *devices; /* default "cpu" */
    bool reference, inference;
    uint32_t batch; /* default 32 */
    uint64_t seed;
    mr_update_kind update;
    float lr;             /* default 0.01 */
    mr_net *(*net)(void); /* default mrt_net_conv */
    uint64_t memory_bytes;
    mr_trace *trace;
    uint64_t bucket_bytes; /* default: all at once */
    bool tune_buckets;
    double watchdog_s;
    uint32_t dtype;
    bool no_graph, deterministic;
    uint32_t parts; /* default: one a device */
    mr_world *world;
    mr_convolution convolution;
    float clip_value, clip_norm, weight_decay, label_smoothing;
    mr_decay_on decay_on;
    float average;
    uint32_t lookahead;
    const char *place;  /* as mr_net_place() takes it; devices of a replica lie side by side */
    const char *freeze; /* as mr_net_choose() takes it */
    bool mixes;
    const float *class_weights; /* MRT_CLASSES of them, or NULL */
    uint32_t sync;
    float outer_lr, outer_momentum; /* outer_lr 0: the default */
    bool outer_heavy_ball;
    mr_exchange exchange;
    mr_crew *crew;
} mrt_rig_options;

mr_net *mrt_net_conv(void); /* convolutions, pooling, dropout, dense: all that is exact over replicas */
mr_net *mrt_net_norm(void); /* with batch normalisation and a separate activation */
mr_net *mrt_net_dense(void);
mr_net *mrt_net_branch(void);   /* additions of every kind, a short cut with a convolution; no batch
                                   normalisation */
mr_net *mrt_net_coder(void);    /* a variational autoencoder and a classifier of its draws: every kind of
                                 * loss */
mr_net *mrt_net_fields(void);   /* two inputs, three outputs: the picture and a field in, the label and two
                                   fields out */
mr_net *mrt_net_residual(void); /* blocks as in residual networks, both versions, with batch normalisation */
mr_net *mrt_net_mobile(void);   /* groups, depthwise, squeeze and excitation, stochastic depth, silu, gelu */

int mrt_rig_try(mrt_rig *rig, const mrt_rig_options *o, mr_error *err); /* on failure nothing is left */
void mrt_rig_open(mrt_rig *rig, const mrt_rig_options *o);
void mrt_rig_close(mrt_rig *rig);

/* count pictures from number first of an endless toy set: a bright quarter says the class, noise the rest. */
void mrt_toy(uint32_t first, uint32_t count, uint8_t *pixels, int32_t *labels);
/* The same as a pair of IDX files, written when they are not there; the path of the pictures. */
const char *mrt_toy_set(const char *name, uint32_t first, uint32_t count);

typedef struct mrt_batch {
    mr_batch b;
    mr_part parts[MR_LOADER_MAX_PARTS];
    void *memory[MR_LOADER_MAX_PARTS];
} mrt_batch;

/* Toy samples first.. in the rig's device memory, cut as the loader cuts; counts (one per part) cuts
 * otherwise, where the rig has all of them. Of a batch in several processes this one's parts. The last
 * `ignored` samples get label -1. */
void mrt_batch_make(mrt_batch *out, const mrt_rig *rig, uint64_t step, uint32_t first, uint32_t count,
                    const uint32_t *counts, uint32_t ignored);
void mrt_batch_free(mrt_batch *b, const mrt_rig *rig); /* waits for the trainer first */
void mrt_batch_drop(mrt_batch *b, const mrt_rig *rig); /* the same of a trainer that has failed */

/* One step on toy samples first..first + count. */
void mrt_train(mrt_rig *rig, uint64_t step, uint32_t first, uint32_t count);

typedef struct mrt_hash {
    uint64_t lo, hi;
} mrt_hash;
mrt_hash mrt_hash_of(const mrt_rig *rig, uint32_t replica);
bool mrt_same(mrt_hash a, mrt_hash b);

#endif
