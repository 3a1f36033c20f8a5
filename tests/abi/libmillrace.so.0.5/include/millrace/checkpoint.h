/* millrace/checkpoint.h: the state of a run in files and in memory, and weights alone. A checkpoint holds one
 * set of weights and knows nothing of replicas. */
#ifndef MILLRACE_CHECKPOINT_H
#define MILLRACE_CHECKPOINT_H

#include "millrace/trainer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a checkpoint knows besides arrays. */
typedef struct mr_checkpoint_info {
    size_t struct_size;
    char model[64];
    uint32_t h, w, c, classes;
    uint64_t param_count;
    uint64_t seed, epoch, step; /* the first batch NOT yet trained on */
    uint64_t updates;           /* optimizer steps done */
    uint32_t batch;
    uint64_t fingerprint; /* of the data set */
    mr_update_desc update;
    mr_schedule schedule;
    char augment[256];
    double best_val_loss;
    uint32_t epochs_without_better;
    mr_order order; /* of the loader, like block and tail: what else the order of samples depends on */
    uint32_t block;
    mr_tail tail;
    mr_pixels pixels;               /* whose, of JPEGs */
    float loss_scale;               /* f16: as it stood; else 0 */
    uint32_t loss_scale_good;       /* updates since it changed */
    uint64_t updates_skipped;       /* for an overflow, so far */
    char format[32];                /* mr_source_info.format of the data set; empty: not known */
    int64_t label_offset;           /* subtracted from its labels */
    const char *const *class_names; /* as many as classes, for writing; reading leaves NULL:
                                       mr_checkpoint_class_names() */
    uint32_t length_window;         /* of the loader, like order and block */
    /* Of the run; zeros in the checkpoints of programs before 0.5, which did not know them. */
    uint8_t run[16];         /* drawn when it began: which checkpoints of a folder are its own */
    uint64_t epochs;         /* it was to have; 0: not known */
    uint32_t patience;       /* of mr_fit_config */
    bool validation_pending; /* the epoch before `epoch` was trained on, its validation is still to come */
    bool stopped_early;      /* for want of a better validation loss */
    bool ignore_exif;        /* of the loader, like pixels */
    uint64_t best_updates;   /* updates of the checkpoint with best_val_loss; 0: there is none */
    double first_loss;       /* of its first batch; 0: not known */
    double epoch_loss, epoch_accuracy; /* where validation_pending: of the epoch that was trained on */
    uint64_t val_fingerprint;          /* of the data it is validated on; 0: none, or not known */
    uint32_t parts;                    /* a batch was cut into (mr_parts.all); 0: not known */
    uint32_t part_threads; /* of a processor device that computed a part; 0: another kind of device, or not
                              known */
    /* 0: not known (an older file, a GPU); 1: every convolution was direct; else some passes were Winograd's,
     * as the table of shapes of this number (MR_WINOGRAD_TABLE) says. With another a run goes on with other
     * bits. Written by the trainer. */
    uint32_t convolution;
    float clip_value, clip_norm; /* of mr_trainer_config, like what follows */
    mr_decay_on decay_on;
    float average; /* 0: the checkpoint has none */
    uint32_t lookahead;
    float label_smoothing;
    /* Of mr_fit_config and mr_goal; zeros where there is no accuracy to stop at. */
    double stop_at_accuracy;
    double train_seconds, eval_seconds;
    uint64_t timed_from;
    uint64_t reached_updates; /* 0: not reached */
    double reached_accuracy, reached_seconds, reached_eval_seconds;
    bool evaluation_pending; /* inside the epoch, behind its last step, a validation is still to come */
    char freeze[64];         /* of mr_trainer_config; empty: none */
    /* Of the network: with targets (mr_net_targets()) `classes` is how many numbers they are. Written by the
     * trainer, like what follows. */
    mr_target_loss target_loss;
    char targets[64];            /* the field; empty: none */
    const float *class_weights;  /* of mr_trainer_config, for writing; reading leaves NULL:
                                    mr_checkpoint_class_weights() */
    uint32_t class_weight_count; /* 0: none */
    uint32_t repeats;            /* of the loader, like order and block; 0: 1 */
    uint32_t net_bytes;          /* of its network in the file, for reading; 0: its name says it */
    bool own_order_seed;         /* the loader's seed is order_seed, not seed, which is the trainer's */
    uint64_t order_seed;         /* else 0 */
} mr_checkpoint_info;

/* Read and check a checkpoint's header; path is a file, or a folder: its newest whole checkpoint (resolved
 * name to found, may be NULL). A damaged newest one is passed over for the one before it, and so is one of
 * another run than the folder belongs to; err (if set) of that is told in note. */
MR_API int mr_checkpoint_find_sized(const char *path, char *found, size_t found_bytes,
                                    mr_checkpoint_info *out, char *note, size_t note_bytes, mr_error *err);
static inline int mr_checkpoint_find(const char *path, char *found, size_t found_bytes,
                                     mr_checkpoint_info *out, char *note, size_t note_bytes, mr_error *err)
{
    if (out) out->struct_size = sizeof *out;
    return mr_checkpoint_find_sized(path, found, found_bytes, out, note, note_bytes, err);
}
/* The names of the classes it tells apart, for mr_source_config.class_names: one block, to be freed by the
 * caller; NULL, and *count 0, when the data set had none. path is a file. */
MR_API int mr_checkpoint_class_names(const char *path, const char ***names, uint32_t *count, mr_error *err);
/* The weights of its classes, to be freed by the caller; NULL, and *count 0, where it has none. path is a
 * file. */
MR_API int mr_checkpoint_class_weights(const char *path, float **weights, uint32_t *count, mr_error *err);
/* The network of a checkpoint, to be destroyed by the caller: of one of mr_model_at() what mr_model_build()
 * makes, of any other what the program that wrote it has built, which is in the file. Where it was trained on
 * targets (mr_checkpoint_info.target_loss) mr_net_targets() is still to be called, with their field, or for
 * outputs alone without. path is a file.
 *
 * MR_EUNSUPPORTED  it is neither: of a version before 0.5, or a network with layers behind its targets
 * MR_EFORMAT, MR_ECHECKSUM  the file is damaged */
MR_API int mr_checkpoint_net(const char *path, mr_net **out, mr_error *err);
/* ---- weights alone ---- */

/* What tensors are called in a file of weights. */
typedef enum mr_weight_names {
    MR_NAMES_OWN = 0, /* LAYER/KIND/PARAMETER as in a checkpoint, layers as mr_net_layer() counts them;
                         filters as rows x columns x channels, dense layers out x in, behind a picture in the
                         order h, w, c */
    /* torchvision's, for resnet18, 34 and 50, vgg16 and 19, mobilenet-v2, efficientnet-b0: filters as
     * channels x rows x columns, dense layers behind a picture in the order c, h, w. load_state_dict() takes
     * them as they are (num_batches_tracked, which it makes itself, is left out) */
    MR_NAMES_TORCHVISION = 1,
} mr_weight_names;

typedef struct mr_weights_config {
    size_t struct_size;
    uint32_t names;  /* mr_weight_names; default own */
    bool no_average; /* of a checkpoint with an average: the weights that training goes on with. Default
                        false: the average, which is what evaluation takes */
    bool force;      /* a file at path may be replaced; default false */
} mr_weights_config;
MR_API void mr_weights_defaults_sized(mr_weights_config *cfg, size_t struct_size);
static inline void mr_weights_defaults(mr_weights_config *cfg)
{
    mr_weights_defaults_sized(cfg, sizeof *cfg);
}

typedef struct mr_weights_report {
    size_t struct_size;
    uint32_t tensors; /* weights and running statistics */
    uint64_t numbers, bytes;
    bool average; /* it is the average that was written */
} mr_weights_report;

/* Weights and running statistics of a checkpoint, a file, as float32 into a file of safetensors or a NumPy
 * archive, by the end of its name (.safetensors, .npz). The same checkpoint gives the same bytes. Written
 * aside, synced, renamed; waits for the disk. cfg and out may be NULL.
 *
 * MR_EINVAL        another ending
 * MR_EEXIST        there is a file, and cfg->force is false
 * MR_EUNSUPPORTED  torchvision has no such network, or not for pictures of this size */
MR_API int mr_weights_export_sized(const char *checkpoint, const char *path, const mr_weights_config *cfg,
                                   mr_weights_report *out, mr_error *err);
static inline int mr_weights_export(const char *checkpoint, const char *path, const mr_weights_config *cfg,
                                    mr_weights_report *out, mr_error *err)
{
    if (out) out->struct_size = sizeof *out;
    return mr_weights_export_sized(checkpoint, path, cfg, out, err);
}

typedef struct mr_take_config {
    size_t struct_size;
    const char *path; /* a file of safetensors or a NumPy archive, as mr_weights_export() and others write
                         them, or the checkpoint of a run of the same model, or a folder of them */
    const char *skip; /* layers that begin as they do, as mr_net_choose() takes them; NULL: none */
    bool no_average;  /* of a checkpoint with an average: its weights instead; default false */
    /* What is not taken, and what the file has that is not used: some lines, in the first process, from the
     * calling thread; may be NULL */
    void (*on_note)(void *context, const char *text);
    void *context;
} mr_take_config;
MR_API void mr_take_defaults_sized(mr_take_config *cfg, size_t struct_size);
static inline void mr_take_defaults(mr_take_config *cfg) { mr_take_defaults_sized(cfg, sizeof *cfg); }

typedef struct mr_take_report {
    size_t struct_size;
    uint32_t names;               /* mr_weight_names, told apart by which of them the file has more of */
    uint32_t taken, left, unused; /* tensors of the network that were taken and that were not; of the file
                                     that were not used */
    bool average;                 /* of the checkpoint */
} mr_take_report;

/* Weights and running statistics into a trainer that has done no update yet, in place of the initial ones:
 * all that the network has must be there, each in its shape, but for the layers of cfg->skip, and for the
 * last layer with weights when the file has it for another number of classes. Averages and Lookahead begin
 * with them. In several processes all call it, and the first one reads. Weights stay as they were when it
 * fails.
 *
 * MR_EINVAL       a tensor is missing or of another shape, or names are neither ours nor torchvision's
 * MR_EUNSUPPORTED a tensor of another type than f16, bf16, f32, f64
 * MR_EFORMAT, MR_ECHECKSUM  the file is damaged, or has a number that is not finite */
MR_API int mr_trainer_take_sized(mr_trainer *t, const mr_take_config *cfg, mr_take_report *out,
                                 mr_error *err);
static inline int mr_trainer_take(mr_trainer *t, const mr_take_config *cfg, mr_take_report *out,
                                  mr_error *err)
{
    if (out) out->struct_size = sizeof *out;
    return mr_trainer_take_sized(t, cfg, out, err);
}

/* Aside, synced, renamed. */
MR_API int mr_trainer_save_sized(mr_trainer *t, const char *path, const mr_checkpoint_info *info,
                                 mr_error *err);
static inline int mr_trainer_save(mr_trainer *t, const char *path, const mr_checkpoint_info *info,
                                  mr_error *err)
{
    mr_checkpoint_info sized;
    if (!info) return mr_trainer_save_sized(t, path, NULL, err);
    sized = *info;
    sized.struct_size = sizeof sized;
    return mr_trainer_save_sized(t, path, &sized, err);
}
/* ---- in memory ----
 *
 * A snapshot is a checkpoint in the memory of this process. It outlives the trainer: when a rank is lost, the
 * others still have the state from which all go on (mr_muster). One thread at a time. */
MR_API int mr_snapshot_create(mr_snapshot **out); /* MR_ENOMEM */
MR_API void mr_snapshot_destroy(mr_snapshot *s);  /* NULL is harmless */
/* False, and *out as it was: it holds nothing yet. class_names is NULL; class_weights are the snapshot's own,
 * until the next one is taken. */
MR_API bool mr_snapshot_info_sized(const mr_snapshot *s, mr_checkpoint_info *out);
static inline bool mr_snapshot_info(const mr_snapshot *s, mr_checkpoint_info *out)
{
    if (out) out->struct_size = sizeof *out;
    return mr_snapshot_info_sized(s, out);
}
/* As saving: all processes call it after the same step, and each has all of it. On failure s holds what it
 * held. info->struct_size is set. */
MR_API int mr_trainer_snapshot(mr_trainer *t, mr_snapshot *s, const mr_checkpoint_info *info, mr_error *err);
/* As loading: what rank 0's s holds goes to all; of the others s is not read and may be NULL. MR_EINVAL: it
 * holds nothing, or the state of another network. */
MR_API int mr_trainer_restore(mr_trainer *t, const mr_snapshot *s, mr_error *err);

/* Weights, running statistics and, unless the trainer is for inference, optimizer state; bit for bit. A
 * trainer for inference takes the average of weights and statistics where the checkpoint has one. One that
 * trains and keeps an average goes on with the checkpoint's, or begins it with the checkpoint's weights. */
MR_API int mr_trainer_load_sized(mr_trainer *t, const char *path, mr_checkpoint_info *out, mr_error *err);
static inline int mr_trainer_load(mr_trainer *t, const char *path, mr_checkpoint_info *out, mr_error *err)
{
    if (out) out->struct_size = sizeof *out;
    return mr_trainer_load_sized(t, path, out, err);
}

/* ---- folders ---- */

/* A folder of checkpoints belongs to one run, and one process at a time writes there.
 *
 * Makes the folder where it is missing and takes it for this process, until it is closed or the process ends,
 * however it does. A program that looks in it for the checkpoint to go on from takes it first and gives it to
 * mr_fit(), which otherwise takes it itself. MR_EEXIST: another process, which err names, has it. */
MR_API int mr_run_folder_open(mr_run_folder **out, const char *path, mr_error *err);
MR_API void mr_run_folder_close(mr_run_folder *folder); /* accepts NULL */
/* Something to tell the user, or NULL: the file system offers no locks. */
MR_API const char *mr_run_folder_note(const mr_run_folder *folder);
/* The name of a checkpoint, whole or not, that is in it; MR_ENOENT: there is none. */
MR_API int mr_run_folder_find_any(const mr_run_folder *folder, char *name, size_t name_bytes, mr_error *err);

/* As open, for a process that holds a snapshot of the folder's run and knows that the process that has the
 * folder is lost to the run. That one may only be stopped: it has lost the folder, and mr_fit() ends there
 * with MR_EPEER when it is to write a checkpoint. */
MR_API int mr_run_folder_take_over(mr_run_folder **out, const char *path, const mr_snapshot *of_run,
                                   mr_error *err);
/* Has another process taken it over? */
MR_API bool mr_run_folder_was_lost(const mr_run_folder *folder);

#ifdef __cplusplus
}
#endif
#endif
