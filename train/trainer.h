/* train/trainer.h: what a trainer is inside. Private to train/ and its tests.
 *
 *   trainer.c   opening, a step, sums          flight.c   what is queued and not over: waiting, errors, the
 *               watchdog
 *   exchange.c  between replicas               state.c    tensors by name: saving, loading, hashing */
#ifndef MRI_TRAINER_H
#define MRI_TRAINER_H

#include "train/run/replica.h"
#include "train/state/checkpoint.h"
#include "train/stats.h"

/* One queued step or evaluation batch, until its events are read. */
typedef struct mri_flight {
    bool training;
    uint64_t batch; /* global step */
    uint32_t samples;
    mr_event *start[MR_LOADER_MAX_PARTS];    /* inputs are there, the step before is over */
    mr_event *computed[MR_LOADER_MAX_PARTS]; /* backward is over; what follows depends on other replicas */
    mr_event *end[MR_LOADER_MAX_PARTS];
} mri_flight;

/* Which parameter of which op a tensor of the checkpoint is. */
typedef struct mri_tensor_place {
    uint32_t node, which;
    bool state;
    uint64_t at; /* floats into its array */
} mri_tensor_place;

/* How a replica is tied to the others. */
typedef struct mri_tie {
    mr_stream *stream;
    mr_event *ready, *done; /* compute has something for the exchange; the exchange for compute */
} mri_tie;

struct mr_trainer {
    mr_trainer_config cfg; /* devices: own copy */
    mr_device **devices;
    uint32_t count; /* replicas */
    mri_replica *replicas;
    mr_stream **streams;
    mr_group *group; /* NULL for one replica */
    mri_tie *ties;
    mr_stream **ties_streams;
    float **arrays; /* one of every replica, as the group wants them */

    mri_tensor_desc *tensors;
    mri_tensor_place *places;
    uint32_t tensor_count;
    uint64_t tensor_floats; /* of the largest */

    uint64_t updates;  /* done, or queued */
    bool stats_differ; /* running statistics moved since replica 0's were last given to all */
    int failed;        /* a queued step went wrong: weights can no longer be trusted; error tells how */
    bool hangs;        /* and some device never answered */
    mr_error error;
    mr_loss_scale scale; /* f16: as last read from replica 0 */
    char note[1024];     /* something to tell, once; empty: nothing */

    mri_flight flights[MRI_RUN_AHEAD];
    uint64_t queued, harvested;
    mri_step_log log;

    double best_val_loss; /* carried by checkpoints for mr_fit() */
    uint32_t epochs_without_better;
    mr_trainer *abandoned; /* list of those that could not be closed */
};

/* ---- flight.c ---- */

int mri_flights_open(mr_trainer *t, mr_error *err);
void mri_flights_close(mr_trainer *t);
/* A flight to record this batch's events in, waiting for the oldest when all are taken. */
int mri_flight_begin(mr_trainer *t, const mr_batch *b, bool training, mri_flight **out, mr_error *err);
int mri_flight_end(mr_trainer *t, const mri_flight *f, mr_error *err);
/* Wait for everything queued; figures of finished steps go to the log and the trace. */
int mri_trainer_drain(mr_trainer *t, mr_error *err);
/* Tell and keep the error of a call that only queues. */
int mri_trainer_queue_failed(mr_trainer *t, uint32_t replica, int rc, const char *what, mr_error *err);
/* After the watchdog: wait a moment for what was given up to come back; true when it did. */
bool mri_trainer_came_back(mr_trainer *t);

/* ---- exchange.c ---- */

int mri_exchange_open(mr_trainer *t, mr_error *err);
void mri_exchange_close(mr_trainer *t);
/* Sum a bucket of gradients over the replicas, behind what is queued; after the last one the compute streams
 * wait (queued). */
int mri_exchange_bucket(mr_trainer *t, uint32_t bucket, mr_error *err);
/* Give every replica the running statistics of replica 0 (queued). */
int mri_trainer_share_stats(mr_trainer *t, mr_error *err);
/* Give every replica everything of replica 0 and see that it arrived. */
int mri_trainer_share_all(mr_trainer *t, mr_error *err);
/* MR_EDEVICE: a replica's weights are not replica 0's. */
int mri_trainer_compare(mr_trainer *t, mr_error *err);

/* ---- trainer.c ---- */

float mri_trainer_lr(const mr_trainer *t, uint64_t update);
/* Wait for everything queued; the sums over all replicas of one kind since they were last taken. Also reads
 * the loss scale. */
int mri_trainer_take_sums(mr_trainer *t, mri_sums which, mr_metrics *out, mr_error *err);
/* f16: set the loss scale of every replica, read that of replica 0 to t->scale; nothing otherwise. Both
 * wait. */
int mri_trainer_set_scale(mr_trainer *t, const mr_loss_scale *scale, mr_error *err);
int mri_trainer_read_scale(mr_trainer *t, mr_error *err);

/* state.c: the list of tensors a trainer consists of, and one of them in canonical order. */
int mri_trainer_list_tensors(mr_trainer *t, mr_error *err);
int mri_trainer_export(mr_trainer *t, uint32_t replica, uint32_t tensor, bool gradient, float *out,
                       mr_error *err);

#endif
