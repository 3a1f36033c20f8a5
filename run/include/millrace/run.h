/* millrace/run.h: a run of training out of its checkpoint: to go on with it, to evaluate, to predict.
 *
 * A checkpoint knows the settings of its run. These functions put them into the settings of what is opened,
 * in this order, each before the function that opens it:
 *
 *   mr_checkpoint_source()   mr_source_open()
 *   mr_checkpoint_devices()  mr_devices_open()
 *   mr_checkpoint_loader()   mr_loader_open(), once cfg.devices are set
 *   mr_checkpoint_trainer()  mr_trainer_open(), once cfg.devices are set; then mr_trainer_load()
 *
 * (examples/resume.c, evaluate.c, predict.c). One thread at a time. */
#ifndef MILLRACE_RUN_H
#define MILLRACE_RUN_H

#include "millrace/train.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mr_checkpoint mr_checkpoint;

/* What the checkpoint is opened for. */
typedef enum mr_use {
    MR_USE_TRAIN = 0, /* go on: the same samples in the same order, from where the run stopped, the same
                         updates */
    MR_USE_EVALUATE,  /* the augmentation without what is random, samples once and in the order of the data,
                         labels  numbered as in training, the trainer without optimizer */
    MR_USE_PREDICT,   /* the same for data that need no labels; the trainer keeps the point for
                         mr_evaluate_outputs(), and batches stay in the host's memory, too */
} mr_use;
enum { MR_USE_COUNT = MR_USE_PREDICT + 1 };

/* path is a file, or a folder: its newest whole checkpoint. Reads settings, names and weights of classes, and
 * the network.
 *
 * MR_ENOENT                 there is none
 * MR_EFORMAT, MR_ECHECKSUM  it is damaged
 * MR_EUNSUPPORTED           its network is not known here (mr_checkpoint_net()) */
MR_API int mr_checkpoint_open(mr_checkpoint **out, const char *path, mr_use use, mr_error *err);
/* After all that was opened with its settings: network, texts and fields in them are the checkpoint's.
 * Accepts NULL. */
MR_API void mr_checkpoint_close(mr_checkpoint *c);
/* On loan, like the path of the file. NULL of NULL. */
MR_API const mr_checkpoint_info *mr_checkpoint_info_of(const mr_checkpoint *c);
MR_API const char *mr_checkpoint_path(const mr_checkpoint *c);
/* Why the newest checkpoint of the folder was passed over for an older one: it is damaged, or of another run.
 * NULL: it was not. On loan. */
MR_API const char *mr_checkpoint_note(const mr_checkpoint *c);
/* How labels and classes are numbered. Of data with two parts cfg->split says which, as always. */
MR_API int mr_checkpoint_source(const mr_checkpoint *c, mr_source_config *cfg, mr_error *err);
/* How convolutions were computed. */
MR_API int mr_checkpoint_devices(const mr_checkpoint *c, mr_devices_config *cfg, mr_error *err);
/* batch, augment, channels, decode, training, the network's fields; with MR_USE_TRAIN also seed, order,
 * epochs and position. Members that stand as mr_loader_defaults() has them get the run's values. Others stay,
 * and are refused (MR_EINVAL) with MR_USE_TRAIN where the run has another value: what is to change from here
 * on (augment, decode) the program sets afterwards. epochs may be more, or less, than the run was to have.
 *
 * MR_EINVAL  the data are not those of the run (MR_USE_TRAIN), or lack what the network takes */
MR_API int mr_checkpoint_loader(mr_checkpoint *c, const mr_source *src, mr_loader_config *cfg, mr_error *err);
/* Network, batch, seed, mean and deviation, fields, update, schedule and all that a gradient passes on its
 * way to the weights, weights of classes, inference. They are replaced whatever they were. A run in parts
 * (mr_checkpoint_info.parts) also needs mr_parts_deal(). */
MR_API int mr_checkpoint_trainer(mr_checkpoint *c, const mr_loader *loader, mr_trainer_config *cfg,
                                 mr_error *err);

#ifdef __cplusplus
}
#endif
#endif
