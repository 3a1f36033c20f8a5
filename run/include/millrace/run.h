/* millrace/run.h: resume, evaluate or predict from a run's checkpoint.
 *
 * A checkpoint stores the settings of its run. These functions copy them into configurations. Call them in
 * this order, each before its open function:
 *
 *   mr_checkpoint_source()   mr_source_open()
 *   mr_checkpoint_devices()  mr_devices_open()
 *   mr_checkpoint_loader()   mr_loader_open(), once cfg.devices are set
 *   mr_checkpoint_trainer()  mr_trainer_open(), once cfg.devices are set; then mr_trainer_load()
 *
 * Close in the reverse order, the checkpoint last. One thread at a time.
 *
 * This header includes logger.h (the figures of a training as CSV, for TensorBoard and for Prometheus),
 * measure.h (the rates of a loader and of a trainer), forms.h (the cost of other forms of storage), outputs.h
 * (classes, a confusion matrix, means over views), report.h (pages of runs, data sets and networks) and
 * sweep.h (trainings with every combination of some options). */
#ifndef MILLRACE_RUN_H
#define MILLRACE_RUN_H

#include "millrace/forms.h"
#include "millrace/logger.h"
#include "millrace/measure.h"
#include "millrace/outputs.h"
#include "millrace/report.h"
#include "millrace/sweep.h"
#include "millrace/train.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mr_checkpoint mr_checkpoint;

/* Purpose of opening a checkpoint. */
typedef enum mr_use {
    MR_USE_TRAIN = 0, /* resume: the same samples in the same order and the same updates, from the point where
                         the run stopped */
    MR_USE_EVALUATE, /* augmentation without random operations, each sample once and in the order of the data,
                        labels numbered as in training, a trainer without optimizer */
    MR_USE_PREDICT,  /* as MR_USE_EVALUATE for data that need no labels; the trainer keeps the point for
                        mr_evaluate_outputs(), and the host copy of batches stays readable */
} mr_use;
enum { MR_USE_COUNT = MR_USE_PREDICT + 1 };

/* Open a checkpoint: path is a file, or a folder, which stands for its newest complete checkpoint. Reads
 * settings, names and weights of classes, and the network.
 *
 * mr_fit() writes these files to its folder:
 *   step-UPDATES.mrck  the state after this number of updates (twelve digits, such as step-000000000390.mrck)
 *   best.mrck          the checkpoint with the lowest validation loss; missing before the first validation.
 *                      mr_checkpoint_open() of DIR/best.mrck opens it
 *   run.lock           the process that writes to the folder, and the run that the folder belongs to
 *
 * MR_ENOENT                 path has no checkpoint
 * MR_EFORMAT, MR_ECHECKSUM  the checkpoint is damaged
 * MR_EUNSUPPORTED           its network is unknown (mr_checkpoint_net()) */
MR_STABLE int mr_checkpoint_open(mr_checkpoint **out, const char *path, mr_use use, mr_error *err);
/* Close the checkpoint after everything opened with its settings: it owns the network, texts and fields in
 * them. Accepts NULL. */
MR_STABLE void mr_checkpoint_close(mr_checkpoint *c);
/* Info and path of the checkpoint, owned by it. NULL for NULL. */
MR_API const mr_checkpoint_info *mr_checkpoint_info_of(const mr_checkpoint *c);
MR_API const char *mr_checkpoint_path(const mr_checkpoint *c);
/* Return why an older checkpoint of the folder was opened: the newest is damaged or belongs to another run.
 * NULL: the newest was opened. Owned by c. */
MR_API const char *mr_checkpoint_note(const mr_checkpoint *c);
/* Set the numbering of labels and classes. For data with splits the caller sets cfg->split as usual. */
MR_STABLE int mr_checkpoint_source(const mr_checkpoint *c, mr_source_config *cfg, mr_error *err);
/* Set the run's algorithm of convolutions. */
MR_STABLE int mr_checkpoint_devices(const mr_checkpoint *c, mr_devices_config *cfg, mr_error *err);
/* Set batch, augment, channels, decode, training, the network's fields; with MR_USE_TRAIN also seed, order,
 * epochs and position. Members with the value of mr_loader_defaults() get the run's values. Other members are
 * unchanged; with MR_USE_TRAIN they are MR_EINVAL if they differ from the run's values. To change augment or
 * decode from here on, set them after this call. epochs may be larger or smaller than the run's. With the
 * checkpoint of a complete run mr_loader_open() then returns MR_EEND; with UINT64_MAX the loader opens after
 * the last epoch, too (mr_fit()).
 *
 * MR_EINVAL  the data are not the run's data (MR_USE_TRAIN), or lack an input of the network */
MR_STABLE int mr_checkpoint_loader(mr_checkpoint *c, const mr_source *src, mr_loader_config *cfg,
                                   mr_error *err);
/* Replace network, batch, seed, mean and deviation, fields, update, schedule, all settings that change a
 * gradient before the update, weights of classes, and inference with the run's values; epochs with the
 * loader's. A run with shares (mr_checkpoint_info.parts) also needs mr_parts_deal(). */
MR_STABLE int mr_checkpoint_trainer(mr_checkpoint *c, const mr_loader *loader, mr_trainer_config *cfg,
                                    mr_error *err);

#ifdef __cplusplus
}
#endif
#endif
