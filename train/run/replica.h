/* train/run/replica.h: a network on one device: its ops, its memory, and the queueing of forward, backward
 * and update. Private to train/ and its tests.
 *
 *   nodes.c    layers become ops: what rides along in another op, what works in place
 *   plan.c     who needs what until when, and so where everything lies; checked against the limit before any
 *              memory is taken
 *   memory.c   takes it
 *   passes.c   queueing, or replaying recordings
 *   replica.c  opens all of them; initial weights */
#ifndef MRI_REPLICA_H
#define MRI_REPLICA_H

#include "train/run/memory.h"

/* A step on one device slot, its segments as they were recorded. */
#define MRI_RECORDINGS                                                                                       \
    32u /* the loader has two slots a part; training and evaluation come from two loaders */
typedef struct mri_recording {
    mr_part part;       /* addresses, first and count it was recorded with */
    bool training, ran; /* ran: once without recording, as the first run prepares things */
    mr_graph **graphs;  /* segment_count */
} mri_recording;

typedef struct mri_passes { /* passes.c */
    mri_recording recordings[MRI_RECORDINGS];
    uint32_t recording_count, replayed; /* replayed: segments launched as recorded */
    bool records;
    mr_error why_not; /* why it records no more, where that is worth telling */
} mri_passes;

typedef struct mri_replica {
    mr_device *dev;
    struct mri_replica *next; /* the rest of the network, on another device (split.h); NULL: this is all */
    mr_stream *stream;        /* all compute */
    mri_replica_config cfg;
    mri_nodes nodes;
    mri_plan plan;
    mri_memory memory;
    mri_passes passes;
    uint32_t last_count; /* samples of the newest part with any */
} mri_replica;

/* Ops and memory (its sum checked against the limit before any is taken). Weights are zero. On failure
 * nothing is left. */
int mri_replica_open(mri_replica *r, mr_device *dev, const mri_replica_config *cfg, mr_error *err);
/* Nothing queued may be unfinished. */
void mri_replica_close(mri_replica *r);
/* Initial weights and statistics, by the seed of the settings; finished when it returns. */
int mri_replica_init_weights(mri_replica *r, mr_error *err);
/* Other buckets from the next step on. Nothing queued may be unfinished. */
void mri_replica_set_bucket(mri_replica *r, uint64_t bytes);

/* Weights and running statistics that are evaluated and saved. */
static inline float *mri_replica_weights(const mri_replica *r)
{
    return r->memory.own.common ? r->memory.own.common : r->memory.weights;
}
static inline float *mri_replica_stats(const mri_replica *r)
{
    return r->memory.own.common_stats ? r->memory.own.common_stats : r->memory.stats;
}

/* ---- passes.c ---- */

/* Queue the work after this number of updates of the run: Lookahead, averages. Is not recorded. */
int mri_replica_behind_update(const mri_replica *r, uint64_t updates);
/* Queue their beginning with the weights that are there. */
int mri_replica_begin_averages(const mri_replica *r);

typedef enum mri_sums { MRI_SUMS_TRAINING = 0, MRI_SUMS_EVALUATION = 1 } mri_sums;

void mri_passes_init(mri_passes *p, const mri_replica_config *cfg);
void mri_passes_fini(mri_replica *r); /* the recordings; accepts a zeroed one */

/* Queue the values of a step; slot (below MRI_RUN_AHEAD) is the host's copy, free again when the step is
 * over. */
int mri_replica_values(mri_replica *r, uint32_t slot, const mr_step_values *values);

/* A training step is cut in segments, so that gradients can be summed in between: segment k < bucket_count
 * ends where bucket k is complete (the first begins with forward); the update follows as a segment of its
 * own, or at the end of the last one when the settings say together. An evaluation is one segment. number: of
 * the part among the replica's; whole: a full batch, worth recording. */
int mri_replica_run(mri_replica *r, uint32_t number, const mr_part *part, bool training, bool whole,
                    uint32_t segment);
/* Of a split one: queue forward. */
int mri_replica_forward(mri_replica *r, uint32_t number, const mr_part *part, bool training);
/* The address of a node's span. */
void *mri_replica_place(const mri_replica *r, uint32_t span);
/* Queue forward, without losses, of the nodes that are wanted, one entry each. */
int mri_replica_forward_some(const mri_replica *r, const mr_part *part, const bool *wanted);
/* Queue what fold.h says for floats [at, at + count) of the gradients, behind backward of a part. */
int mri_replica_fold(const mri_replica *r, uint32_t number, uint64_t at, uint64_t count);

/* Queue a copy of the nodes that folds have left in gradients and terms to late and late_terms. */
int mri_replica_keep_late(const mri_replica *r);

/* Once: why steps are recorded no more. False: they are, or it is nothing to tell. */
bool mri_replica_take_recording_error(mri_replica *r, mr_error *out);

#endif
