/* train/run/memory.h: the device memory of a replica, and the host memory its copies go through. Private to
 * train/run/ and tests. */
#ifndef MRI_MEMORY_H
#define MRI_MEMORY_H

#include "train/run/plan.h"

#define MRI_RUN_AHEAD                                                                                        \
    2u /* steps queued and not over: enough to hide the host, few enough to bound every queue */

#define MRI_SLOTS_MOST 3u /* arrays as large as the weights that a rule keeps, and Lookahead's */

/* The arrays that a part trains by itself (worker.h). */
typedef struct mri_worker {
    float *weights, *stats, *slot[MRI_SLOTS_MOST];
} mri_worker;

typedef struct mri_workers {
    mri_worker *part; /* of each part; the first one's arrays are weights, stats and slot; in host memory */
    uint32_t count;
    float *common, *common_stats; /* weights and statistics of the newest average, which all replicas have */
    float *outer;                 /* its momentum */
    mr_step_values *outer_values; /* by MRI_OUTER_...: rates of the calls that average (worker.c) */
} mri_workers;

typedef struct mri_memory { /* device memory where nothing else is said; NULL where the plan needs none */
    float *weights, *grads, *slot[MRI_SLOTS_MOST], *stats;
    float *other_stats;           /* statistics of parts that nobody reads, where stats are read */
    float *terms[MRI_TERMS_MOST]; /* as many gradients as wait (fold.h) */
    float *late, *late_terms[MRI_TERMS_MOST]; /* the same of the batch before, where updates take its sum */
    char *arena;                              /* by the plan's spans */
    mr_metrics *sums[2];                      /* by mri_sums; one for each part */
    mr_metrics *host_sums;                    /* the same, pinned */
    mr_metrics *host_peeks;         /* after them, again for each step that may be queued (MRI_RUN_AHEAD) */
    mr_step_values *values;         /* the values that the current step reads */
    mr_step_values *host_values;    /* pinned, one for each step that may be queued (MRI_RUN_AHEAD) */
    mr_loss_scale *loss_scale;      /* f16 only, else NULL */
    mr_loss_scale *host_loss_scale; /* one, pinned */
    float *average, *average_stats; /* where averages are kept, else NULL */
    double *norm;                   /* with a limit for it, else NULL */
    uint8_t *decays;                /* the plan's, or NULL */
    uint32_t *tensors;              /* the plan's, or NULL */
    double *trust;                  /* with tensors */
    void *room;                     /* of the plan's matrices, or NULL */
    float *class_weights;           /* the settings', or NULL */
    mri_workers own;                /* where parts train by themselves */
} mri_memory;

/* All of it, zeros where it is read before it is written; the stream is idle on return. On failure
 * mri_memory_fini() is still to be called. */
int mri_memory_init(mri_memory *m, mr_device *dev, mr_stream *stream, const mri_plan *plan,
                    const mri_replica_config *cfg, mr_error *err);
void mri_memory_fini(mri_memory *m, mr_device *dev); /* accepts a zeroed one */

#endif
