/* train/trainer.h: a trainer's state. Private to train/ and its tests.
 *
 *   fit.c                 the training loop
 *   evaluate.c            batches as the loop takes them; a pass of evaluation
 *   goal.c                an accuracy at which a run ends, and the cost of reaching it
 *   figures.c             an epoch's figures of time
 *   trainer_open.c        opening and closing
 *   trainer_settings.c    settings that have rows (settings/updates.rows)
 *   trainer.c             a step, sums
 *   trainer_state.c       between a trainer and a checkpoint: saving, loading, hashing
 *   trainer_workers.c     shares that train weights of their own
 *   trainer_init.c        the weights that a run begins with, from a file
 *   trainer_points.c      the values of a network's points, computing from one of them on
 *   stretch.c             figures of steps while their epoch goes on
 *   stats.c, schedule.c   figures of a run; the learning rate
 *   run/                  the replicas and their common work
 *   state/                checkpoints: bytes and folders
 *   net/                  networks
 *
 * Calls go from fit to the trainer, from there to run/ and state/, and from all to net/. */
#ifndef MRI_TRAINER_H
#define MRI_TRAINER_H

#include <stdatomic.h>

#include "train/goal.h"
#include "train/run/run.h"
#include "train/served/served.h"
#include "train/state/run_folder.h"

/* The first batch that was not trained on. */
typedef struct mri_position {
    uint64_t epoch, step;
} mri_position;

/* The state of a run besides weights: written by mr_fit() and by loading. */
typedef struct mri_run_state {
    uint8_t id[MRI_RUN_BYTES];
    bool resumed; /* read from a checkpoint, after this number of updates: */
    uint64_t from;
    bool nameless_too; /* that did not tell its run */
    mri_position at;
    uint64_t epochs; /* it is to have; 0: not known */
    uint32_t patience;
    double best_val_loss; /* infinity: none yet */
    uint64_t best_updates;
    uint32_t epochs_without_better;
    double first_loss; /* 0: not known */
    bool validation_pending, stopped_early;
    bool evaluation_pending;           /* inside the epoch that runs */
    double epoch_loss, epoch_accuracy; /* while its validation is pending */
    uint64_t val_fingerprint;
    mri_goal goal;
} mri_run_state;

/* Layers that are not trained. */
typedef struct mri_frozen {
    char *text;   /* cfg's, or NULL */
    bool *layers; /* by layer; NULL: none is */
} mri_frozen;

struct mr_trainer {
    uint32_t process;      /* that opened it (base/handle.h) */
    mr_trainer_config cfg; /* devices: the team's copy */
    mri_team team;
    mri_exchange exchange;
    mri_served served; /* with cfg.crew */
    mri_split split;   /* with cfg.place: stages; team and exchange are the first one's */
    mri_flights flights;
    mri_tensors tensors;
    mri_bucket_tuner buckets; /* with cfg.tune_buckets and in the first process, else done */
    uint64_t bucket_bytes;    /* in use */
    mri_link_speed link;      /* between the processes, of training */
    mr_stream **streams;      /* of the team, one for each part */

    uint64_t updates;    /* done, or queued */
    uint32_t counted;    /* samples of the newest training batch that count, of all processes */
    uint64_t peek_steps; /* the sums are also read at this interval of updates; 0: seldom (trainer.c) */
    bool shares_differ;  /* shares have trained weights of their own since the newest average */
    mr_loss_scale scale; /* f16: as last read from replica 0 */
    mri_frozen frozen;
    float *class_weights; /* cfg's, or NULL */
    char note[1024];      /* something to tell, once; empty: nothing */

    mri_run_state run;          /* carried by checkpoints for mr_fit() */
    mr_checkpoint_info loaded;  /* while run.resumed: the checkpoint; texts of it are not kept */
    mr_trainer *abandoned;      /* list of trainers that could not be closed */
    _Atomic bool close_refused; /* closed by a function that it has called: the call returns that as its error
                                 */
    _Atomic uintptr_t inside;   /* the thread that is in mr_fit() or an evaluation; none: 0 */
};

/* ---- trainer_settings.c ---- */
void mri_trainer_fill(mr_trainer_config *cfg); /* defaults of settings that have rows */
/* MR_EINVAL: a setting is out of its range; err names it. */
int mri_trainer_check(const mr_trainer_config *cfg, mr_error *err);
/* Lines with the settings that all processes must have alike; returns their length. */
size_t mri_trainer_tell(const mr_trainer_config *cfg, char *out, size_t out_bytes);
/* What checkpoints keep of them. */
void mri_trainer_keep(const mr_trainer_config *cfg, mr_checkpoint_info *out);

/* ---- trainer_open.c ---- */

/* Check that the loader delivers the network's fields at the configured positions and in the configured
 * form. */
int mri_trainer_check_fields(const mr_trainer *t, const mr_loader_info *info, mr_error *err);

/* ---- trainer.c ---- */

/* A call that asks functions of the program, which must not make another such call, begins and ends.
 * MR_EINVAL: one of them does. MR_EBUSY: another thread is in one. */
int mri_trainer_enter(mr_trainer *t, const char *call, mr_error *err);
/* rc, or MR_EINVAL: a function of the program tried to close the trainer. */
int mri_trainer_leave(mr_trainer *t, const char *call, int rc, mr_error *err);

float mri_trainer_lr(const mr_trainer *t, uint64_t update);
bool mri_trainer_simulates(const mr_trainer *t); /* loss and accuracy mean nothing */
/* Wait for everything queued; the sums over all replicas of one kind since they were last taken. */
int mri_trainer_take_sums(mr_trainer *t, mri_sums which, mr_metrics *out, mr_error *err);

/* ---- trainer_workers.c ---- */

/* Do shares train weights of their own? */
bool mri_trainer_is_local(const mr_trainer *t);
/* Are they averaged after the update on this batch, which is the newest? */
bool mri_trainer_averages_now(const mr_trainer *t, const mr_batch *b);
/* Shares whose state differs from the common one: all, or none. */
uint32_t mri_trainer_own_shares(const mr_trainer *t);
/* The state of all shares, mri_worker_state_floats() each, to out in every process. Nothing queued may be
 * unfinished; the same goes for what follows. */
int mri_trainer_gather_shares(mr_trainer *t, float *out, mr_error *err);
/* Each share continues from the state in the first process's source. */
typedef int mri_share_source(void *context, uint32_t share, float *out, mr_error *err);
int mri_trainer_spread_shares(mr_trainer *t, mri_share_source *source, void *context, mr_error *err);
/* The tensors of a checkpoint: the trainer's, then the state of shares; to be freed. */
int mri_trainer_list_shares(const mr_trainer *t, mri_tensor_desc **out, uint32_t *count, mr_error *err);

/* ---- trainer_points.c ---- */

/* The values of a kept point for all samples of the newest batch that this process computed, in the order of
 * the batch. MR_EUNSUPPORTED: a device has several parts. */
int mri_trainer_batch_values(mr_trainer *t, const mr_batch *b, mr_point point, float *out, mr_error *err);

/* ---- trainer_state.c ---- */

/* A checkpoint's facts about a run, without the ones that mr_trainer_save() adds. data may be NULL. The texts
 * of info are copies, the names of classes are data's. */
void mri_trainer_describe(const mr_trainer *t, const mr_loader_info *loader, const mr_source_info *data,
                          mr_checkpoint_info *out);

/* The names of the targets, which are src's. */
void mri_trainer_describe_targets(const mr_trainer *t, const mr_source *src, mr_checkpoint_info *out);

/* Give every replica, of all processes, everything of the first one and see that it arrived. */
int mri_trainer_share_all(mr_trainer *t, mr_error *err);
/* MR_EDEVICE: a replica's weights, in any process, differ from the first one's. */
int mri_trainer_compare(mr_trainer *t, mr_error *err);

#endif
