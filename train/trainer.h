/* train/trainer.h: what a trainer is inside. Private to train/ and its tests.
 *
 *   fit.c                 the training loop
 *   trainer.c             opening, a step, sums
 *   trainer_state.c       between a trainer and a checkpoint: saving, loading, hashing
 *   stats.c, schedule.c   figures of a run; the learning rate
 *   run/                  the replicas and what they do together
 *   state/                checkpoints: bytes and folders
 *   net/                  what a network is
 *
 * Calls go from fit to the trainer, from there to run/ and state/, and from all to net/. */
#ifndef MRI_TRAINER_H
#define MRI_TRAINER_H

#include "train/run/run.h"

struct mr_trainer {
    mr_trainer_config cfg; /* devices: the team's copy */
    mri_team team;
    mri_exchange exchange;
    mri_flights flights;
    mri_tensors tensors;

    uint64_t updates;    /* done, or queued */
    mr_loss_scale scale; /* f16: as last read from replica 0 */
    char note[1024];     /* something to tell, once; empty: nothing */

    double best_val_loss; /* carried by checkpoints for mr_fit() */
    uint32_t epochs_without_better;
    mr_trainer *abandoned; /* list of those that could not be closed */
};

/* ---- trainer.c ---- */

float mri_trainer_lr(const mr_trainer *t, uint64_t update);
/* Wait for everything queued; the sums over all replicas of one kind since they were last taken. */
int mri_trainer_take_sums(mr_trainer *t, mri_sums which, mr_metrics *out, mr_error *err);

/* ---- trainer_state.c ---- */

/* The first batch that was not trained on. */
typedef struct mri_position {
    uint64_t epoch, step;
} mri_position;

/* What a checkpoint says of a run besides what mr_trainer_save() adds. data may be NULL. The texts of info
 * are copies, the names of classes are data's. */
void mri_trainer_describe(const mr_trainer *t, const mr_loader_info *loader, const mr_source_info *data,
                          mri_position at, mr_checkpoint_info *out);

/* Give every replica everything of replica 0 and see that it arrived. */
int mri_trainer_share_all(mr_trainer *t, mr_error *err);
/* MR_EDEVICE: a replica's weights are not replica 0's. */
int mri_trainer_compare(mr_trainer *t, mr_error *err);

#endif
