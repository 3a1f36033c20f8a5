/* millrace/run.h: whole runs: train, resume, evaluate, predict.
 *
 * mr_run_open() opens data, devices, loader, network and trainer, in this order and with settings that fit
 * each other: mr_run_fit(), mr_run_evaluate() and mr_run_predict() then do the work. A program that opens
 * them itself resumes, evaluates or predicts with the settings of a checkpoint, which these functions copy
 * into configurations. Call them in this order, each before its open function:
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
 * (classes, a confusion matrix, means over views), report.h (pages of runs, data sets and networks), sweep.h
 * (trainings with every combination of some options) and synth.h (a small data set). */
#ifndef MILLRACE_RUN_H
#define MILLRACE_RUN_H

#include "millrace/forms.h"
#include "millrace/logger.h"
#include "millrace/measure.h"
#include "millrace/outputs.h"
#include "millrace/report.h"
#include "millrace/sweep.h"
#include "millrace/synth.h"
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

/* ---- whole runs ---- */

/* A line for the user, valid during the call. */
typedef void mr_run_note(void *context, const char *text);

/* Settings of mr_run_open(). mr_run_defaults() sets 0, false and NULL everywhere. Everything they point to
 * is read during mr_run_open() only, but net, trainer's world, and objects and contexts of calls that loader
 * and source name (trace, record, budget, sampler, on_bad, stop): these must outlive the run. A member of
 * loader or trainer that has the value of its defaults gets the run's: of the checkpoint, else of the model.
 */
typedef struct mr_run_config {
    size_t struct_size;
    mr_use use;       /* MR_USE_TRAIN (default): a new run, or with `resume` one that continues */
    const char *data; /* the data set; needed */
    const char *val;  /* MR_USE_TRAIN: data to validate with; NULL: the part to test with that data has, if it
                         has  one; "none": no validation */
    const char *model; /* a new run: a named network (mr_model_find()); NULL: net */
    const mr_net *net; /* a new run: the program's own network, for the size and classes of the data; must
                          outlive the run. NULL: model */
    const char *checkpoint; /* MR_USE_TRAIN: the folder for checkpoints, or NULL: none. Else needed: a
                               checkpoint, or a folder (mr_checkpoint_open()) */
    bool resume; /* continue the run in that folder; if it has no checkpoint yet, begin a new run. Without it
                    a folder with checkpoints is MR_EEXIST in mr_run_fit() */
    const char *devices;             /* as for mr_devices_open(); NULL: "cpu" */
    const mr_source_config *source;  /* of data, and of val but for the part and the classes; NULL: defaults.
                                        label_offset MR_LABEL_AUTO: a new run numbers classes by
                                        mr_first_class() */
    const mr_devices_config *device; /* NULL: defaults */
    const mr_loader_config *loader; /* NULL: defaults. devices, parts, fields of the network, start and budget
                                       are set by the run. epochs: of the whole run */
    const mr_trainer_config *trainer; /* NULL: defaults. Only its optimizer, schedule, settings of updates and
                                         computing, seed excluded (the loader's), and world are used */
    /* Called when the library decides for the program, such as a validation part that is used; or NULL. The
     * calling thread calls it; no lock is held */
    mr_run_note *on_note;
    void *context; /* passed to it */
} mr_run_config;

static inline void mr_run_defaults(mr_run_config *cfg);

typedef struct mr_run mr_run;

/* Handles of an open run, owned by it. */
typedef struct mr_run_info {
    size_t struct_size;
    const mr_source *data, *val; /* val NULL: no validation */
    mr_loader *loader, *val_loader;
    const mr_net *net;
    mr_trainer *trainer;
    mr_device *const *devices;
    uint32_t device_count;
    uint64_t epochs;   /* of the whole run; 0: evaluation or prediction */
    const char *from;  /* the checkpoint; NULL: a new run */
    const char *model; /* name of the network */
    char augment[512]; /* of training, in full */
} mr_run_info;

/* Open a run. Blocks: reads indexes, and the checkpoint. One thread at a time uses a run. *out is NULL unless
 * the result is MR_OK. Several processes: trainer->world, as for mr_trainer_open(); all call the functions of
 * a run in the same order, and each needs the folder of checkpoints.
 *
 * MR_EINVAL  data, or model and net, or checkpoint are missing; there is no such model; the data are not of
 * the checkpoint's run, or lack classes or an input of the network; a setting differs from the run's
 * MR_EFORMAT, MR_ECHECKSUM  the checkpoint is damaged; with `resume`: no checkpoint of the folder is whole
 * MR_EUNSUPPORTED           a network of numbers needs a checkpoint, or handles that the program opens
 * other < 0  from the open functions */
MR_API int mr_run_open(mr_run **out, const mr_run_config *cfg, mr_error *err);
/* Accepts NULL. */
MR_API void mr_run_close(mr_run *r);
/* NULL for NULL. */
MR_API const mr_run_info *mr_run_info_of(const mr_run *r);

/* Train to the end of the run: mr_fit() with the run's loader, validation, checkpoints and epochs. cfg NULL:
 * the defaults; of its members val, checkpoint_dir and data are the run's, and epochs if it is 0; a run that
 * continues keeps its patience and stop_at_accuracy where these are 0. Errors and `last` as for mr_fit().
 * MR_EINVAL: the run was opened for another use. */
static inline int mr_run_fit(mr_run *r, const mr_fit_config *cfg, mr_report *last, mr_error *err);
/* Evaluate: the data of MR_USE_EVALUATE, or the validation data of training. Soon after *stop becomes nonzero
 * (stop may be NULL): MR_ECANCELED. MR_EINVAL: there are no such data. The results may be NULL. */
MR_API int mr_run_evaluate(mr_run *r, const volatile int *stop, double *loss, double *accuracy,
                           uint64_t *count, mr_error *err);
/* Predict: mr_evaluate_outputs() without sums. MR_EINVAL: the run was opened for another use. */
MR_API int mr_run_predict(mr_run *r, const mr_outputs_config *cfg, mr_error *err);

/* Return in *out the number of the first class of data to train on, and of other (NULL: none) that is used
 * with them: the one that a set declares; 1 if that is the smallest number of all; else 0; 0 for classes with
 * names. Both are open with label_offset MR_LABEL_AUTO; open them again with the result. on_note (or NULL) is
 * called for a set whose numbers are in doubt: a record file of an earlier version.
 *
 * MR_EINVAL  the sets declare different numbers, or the numbers of one are in doubt and differ from the
 * other's */
MR_API int mr_first_class(const mr_source *trained, const mr_source *other, int64_t *out,
                          mr_run_note *on_note, void *context, mr_error *err);

/* ------------------------------------------------------------------------------ struct sizes
 *
 * Nothing to read here for a program in C or C++. The library exports the functions below in place of the
 * inline ones above: each inline function passes the size of its struct in the caller's header (base.h). A
 * program in another language sets struct_size and calls ..._sized. */

MR_API void mr_run_defaults_sized(mr_run_config *cfg, size_t struct_size);
static inline void mr_run_defaults(mr_run_config *cfg) { mr_run_defaults_sized(cfg, sizeof *cfg); }

MR_API int mr_run_fit_sized(mr_run *r, const mr_fit_config *cfg, mr_report *last, mr_error *err);
static inline int mr_run_fit(mr_run *r, const mr_fit_config *cfg, mr_report *last, mr_error *err)
{
    if (last) last->struct_size = sizeof *last;
    return mr_run_fit_sized(r, cfg, last, err);
}

#ifdef __cplusplus
}
#endif
#endif
