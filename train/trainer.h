/* train/trainer.h: what a trainer is inside. Private to train/ and its tests. */
#ifndef MRI_TRAINER_H
#define MRI_TRAINER_H

#include "train/checkpoint.h"
#include "train/replica.h"
#include "train/stats.h"

#define MRI_RUN_AHEAD 2u /* steps queued and not over: enough to hide the host, few enough to bound every queue */

/* One queued step or evaluation batch, until its events are read. */
typedef struct mri_flight {
    bool      training;
    uint64_t  batch;   /* global step */
    uint32_t  samples;
    mr_event *start[MR_LOADER_MAX_PARTS]; /* inputs are there, the step before is over */
    mr_event *end[MR_LOADER_MAX_PARTS];
} mri_flight;

/* Which parameter of which op a tensor of the checkpoint is. */
typedef struct mri_tensor_place {
    uint32_t node, which;
    bool     state;
    uint64_t at; /* floats into its array */
} mri_tensor_place;

struct mr_trainer {
    mr_trainer_config cfg; /* devices: own copy */
    mr_device  **devices;
    uint32_t     count;    /* replicas */
    mri_replica *replicas;
    mr_stream  **streams;
    mr_group    *group;
    float      **grads, **stats; /* of every replica, as the group wants them */

    mri_tensor_desc  *tensors;
    mri_tensor_place *places;
    uint32_t          tensor_count;
    uint64_t          tensor_floats; /* of the largest */

    uint64_t   updates;      /* done, or queued */
    bool       stats_differ; /* running statistics moved since replica 0's were last given to all */
    int        failed;       /* a queued step went wrong: weights can no longer be trusted; error tells how */
    mr_error   error;

    mri_flight flights[MRI_RUN_AHEAD];
    uint64_t   queued, harvested;
    mri_step_log log;

    double   best_val_loss; /* carried by checkpoints for mr_fit() */
    uint32_t epochs_without_better;
};

/* Wait for everything queued; figures of finished steps go to the log and the trace. */
int mri_trainer_drain(mr_trainer *t, mr_error *err);
float mri_trainer_lr(const mr_trainer *t, uint64_t update);
/* Give every replica the running statistics of replica 0 (queued). */
int mri_trainer_share_stats(mr_trainer *t, mr_error *err);
/* Wait for everything queued; the sums over all replicas of one kind since they were last taken. */
int mri_trainer_take_sums(mr_trainer *t, mri_sums which, mr_metrics *out, mr_error *err);
/* Tell and keep the error of a call that only queues. */
int mri_trainer_queue_failed(mr_trainer *t, uint32_t replica, int rc, const char *what, mr_error *err);

/* state.c: the list of tensors a trainer consists of, and one of them in canonical order. */
int mri_trainer_list_tensors(mr_trainer *t, mr_error *err);
int mri_trainer_export(mr_trainer *t, uint32_t replica, uint32_t tensor, bool gradient, float *out, mr_error *err);

#endif
