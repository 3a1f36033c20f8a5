/* millrace/checkpoint.h: the state of a run in files and in memory, and weights alone. A checkpoint holds one
 * set of weights, independent of the number of replicas.
 *
 * mr_fit() writes checkpoints by itself, and run.h resumes from them: most programs need nothing from here.
 * A program with a loop of its own saves and loads with mr_trainer_save() and mr_trainer_load(). */
#ifndef MILLRACE_CHECKPOINT_H
#define MILLRACE_CHECKPOINT_H

#include "millrace/trainer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Contents of a checkpoint besides arrays. mr_trainer_save() sets the members that the trainer knows: members
 * of network, optimizer, schedule, loss scale and mr_trainer_config, and updates, run, parts, part_threads
 * and convolution. The program sets the others, such as seed, its data and its position; zeros are "not
 * known" unless a comment says otherwise. Texts end with a zero byte. */
typedef struct mr_checkpoint_info {
    size_t struct_size;
    char model[64];            /* name of the network (mr_net_name()) */
    uint32_t h, w, c, classes; /* of the network's input, in pixels and channels; its number of classes */
    uint64_t param_count;      /* trained parameters (mr_net_param_count()) */
    uint64_t seed;             /* of the trainer, and of the loader unless own_order_seed */
    uint64_t epoch, step;      /* the first batch NOT yet trained on: epoch from 0, step within the epoch */
    uint64_t updates;          /* optimizer steps done */
    uint32_t batch;            /* samples in a global batch */
    uint64_t fingerprint;      /* of the data set (mr_source_info) */
    mr_update_desc update;     /* the optimizer and its constants */
    mr_schedule schedule;      /* of the learning rate */
    char augment[256];         /* mr_loader_info.augment: presets expanded */
    double best_val_loss;      /* lowest validation loss so far; INFINITY: no validation yet */
    uint32_t epochs_without_better; /* epochs since the lowest validation loss */
    mr_order order;                 /* of the loader, like block and tail: these fix the order of samples */
    uint32_t block;
    mr_tail tail;
    mr_pixels pixels;               /* arithmetic of JPEG pixels */
    float loss_scale;               /* f16: current scale; else 0 */
    uint32_t loss_scale_good;       /* updates since the scale changed */
    uint64_t updates_skipped;       /* number of updates skipped for an overflow */
    char format[32];                /* mr_source_info.format of the data set; "": not known */
    int64_t label_offset;           /* subtracted from the labels of the data */
    const char *const *class_names; /* `classes` names (with targets: of their columns), for writing; NULL
                                       after reading: mr_checkpoint_class_names() */
    uint32_t length_window;         /* of the loader, like order and block */
    /* Of the run; zeros in checkpoints of versions before 0.5. */
    uint8_t run[16];         /* random number of the run: identifies its checkpoints in a folder */
    uint64_t epochs;         /* planned number of epochs; 0: not known */
    uint32_t patience;       /* of mr_fit_config */
    bool validation_pending; /* training of the epoch before `epoch` is done, its validation is not */
    bool stopped_early;      /* stopped because the validation loss did not improve */
    bool ignore_exif;        /* of the loader, like pixels */
    uint64_t best_updates;   /* updates of the checkpoint with best_val_loss; 0: no such checkpoint */
    double first_loss;       /* loss of the first batch; 0: not known */
    double epoch_loss, epoch_accuracy; /* with validation_pending: loss and accuracy of the trained epoch */
    uint64_t val_fingerprint; /* fingerprint of the validation data; 0: no validation, or not known */
    uint32_t parts;           /* shares of a batch (mr_parts.all); 0: not known */
    uint32_t part_threads; /* threads of a cpu device that computed a share; 0: another kind of device, or not
                              known */
    /* 0: not known (an older file, a GPU); 1: every convolution was direct; else some passes were Winograd's,
     * by the table of shapes with this version (MR_WINOGRAD_TABLE). A resumed run with another value has
     * other bits. Written by the trainer. */
    uint32_t convolution;
    float clip_value, clip_norm; /* of mr_trainer_config, like the members up to label_smoothing */
    mr_decay_on decay_on;
    float average;         /* 0: the checkpoint has no average */
    uint32_t lookahead;    /* 0: off */
    float label_smoothing; /* 0 to below 1 */
    /* Of mr_fit_config and mr_goal; zeros without an accuracy to stop at. */
    double stop_at_accuracy;            /* the goal, above 0, at most 1 */
    double train_seconds, eval_seconds; /* of training and of evaluation so far */
    uint64_t timed_from;                /* updates done before these seconds were measured */
    uint64_t reached_updates;           /* updates done when the goal was reached; 0: not reached */
    /* The accuracy at that time, and the seconds of training and of evaluation until then */
    double reached_accuracy, reached_seconds, reached_eval_seconds;
    bool evaluation_pending; /* inside the epoch: the validation after the last step is still to be done */
    char freeze[64];         /* of mr_trainer_config; "": no frozen layers */
    /* Of the network: with targets (mr_net_targets()) `classes` is their number per sample. Written by the
     * trainer, like targets. */
    mr_target_loss target_loss;
    char targets[64];            /* name of the field; "": no targets */
    const float *class_weights;  /* of mr_trainer_config, for writing; NULL after reading:
                                    mr_checkpoint_class_weights() */
    uint32_t class_weight_count; /* 0: none */
    uint32_t repeats;            /* of the loader, like order and block; 0: 1 */
    uint32_t net_bytes;          /* bytes of the network stored in the file, for reading; 0: `model` names the
                                    network */
    bool own_order_seed;         /* the loader's seed is order_seed; `seed` is the trainer's only */
    uint64_t order_seed;         /* else 0 */
    uint32_t sync;               /* of mr_trainer_config, like all below: mr_sync, or mr_sync_average() */
    float outer_lr, outer_momentum; /* with averages; else 0 */
    bool outer_heavy_ball;          /* with averages: heavy ball; false: Nesterov momentum */
    mr_exchange exchange;           /* floats on the network */
} mr_checkpoint_info;

/* Read and check a checkpoint's header. path is a file, or a folder, which stands for its newest complete
 * checkpoint; the name of the file is written to found (may be NULL). A damaged checkpoint, or one of another
 * run than the folder's, is skipped for the next older one, and note (may be NULL) gets the reason.
 * Any thread.
 *
 * MR_EINVAL                 found has no room for the name
 * MR_ENOENT                 path does not exist, or no checkpoint of the folder's run is whole; err
 *                           has the number of damaged ones
 * MR_EFORMAT, MR_ECHECKSUM  path is a file, and it is damaged; err names field and offset */
static inline int mr_checkpoint_find(const char *path, char *found, size_t found_bytes,
                                     mr_checkpoint_info *out, char *note, size_t note_bytes, mr_error *err);
/* Read the names of the classes, for mr_source_config.class_names: one block, which the caller frees; NULL,
 * and *count 0, when the data set had no names. Of a network with targets: the names of their columns, for
 * mr_source_columns_check(). path is a file. */
MR_API int mr_checkpoint_class_names(const char *path, const char ***names, uint32_t *count, mr_error *err);
/* Read the weights of the classes, which the caller frees; NULL, and *count 0, without weights. path is a
 * file. */
MR_API int mr_checkpoint_class_weights(const char *path, float **weights, uint32_t *count, mr_error *err);
/* Make the network of a checkpoint, which the caller destroys: a model of mr_model_at() by mr_model_build(),
 * any other network from its description in the file. For a network trained on targets
 * (mr_checkpoint_info.target_loss) call mr_net_targets() afterwards, with their field, or with NULL for
 * outputs alone. path is a file.
 *
 * MR_EUNSUPPORTED  the file has no description: written before 0.5, or a network with layers after its
 *                  targets
 * MR_EFORMAT, MR_ECHECKSUM  the file is damaged */
MR_API int mr_checkpoint_net(const char *path, mr_net **out, mr_error *err);
/* ---- weights alone ---- */

/* Names of tensors in a file of weights. */
typedef enum mr_weight_names {
    MR_NAMES_OWN = 0, /* LAYER/KIND/PARAMETER as in a checkpoint, layers numbered as by mr_net_layer();
                         filters as rows x columns x channels, dense layers out x in, inputs from a picture in
                         the order h, w, c */
    /* torchvision's names, for resnet18, 34 and 50, vgg16 and 19, mobilenet-v2, efficientnet-b0: filters as
     * channels x rows x columns, inputs of dense layers from a picture in the order c, h, w.
     * load_state_dict() accepts them unchanged (num_batches_tracked, which it creates itself, is omitted) */
    MR_NAMES_TORCHVISION = 1,
} mr_weight_names;

/* Settings of mr_weights_export(). */
typedef struct mr_weights_config {
    size_t struct_size;
    uint32_t names;  /* mr_weight_names; default own */
    bool no_average; /* for a checkpoint with an average: write the weights that training continues with.
                        Default false: write the average, which evaluation uses */
    bool force;      /* replace an existing file; default false */
} mr_weights_config;
static inline void mr_weights_defaults(mr_weights_config *cfg);

/* The written file. */
typedef struct mr_weights_report {
    size_t struct_size;
    uint32_t tensors; /* weights and running statistics */
    uint64_t numbers; /* floats in these tensors */
    uint64_t bytes;   /* size of the file */
    bool average;     /* the average was written */
} mr_weights_report;

/* Write weights and running statistics of a checkpoint file as float32 to a safetensors file or a NumPy
 * archive; the extension of path (.safetensors, .npz) selects the format. The same checkpoint gives the same
 * bytes. Written to a temporary file, synced, renamed; waits for the disk. cfg and out may be NULL.
 *
 * MR_EINVAL        path has another extension
 * MR_EEXIST        path exists, and cfg->force is false
 * MR_EUNSUPPORTED  torchvision lacks the network, or the network for pictures of this size */
static inline int mr_weights_export(const char *checkpoint, const char *path, const mr_weights_config *cfg,
                                    mr_weights_report *out, mr_error *err);

/* Settings of mr_trainer_take(). mr_take_defaults() sets NULL and false; path is required. */
typedef struct mr_take_config {
    size_t struct_size;
    const char *path; /* a safetensors file or NumPy archive, from mr_weights_export() or another program; or
                         a checkpoint, or folder of checkpoints, of a run of the same model */
    const char *skip; /* layers that keep their initial weights, in the syntax of mr_net_choose(); NULL:
                         none */
    bool no_average;  /* for a checkpoint with an average: read its weights instead; default false */
    /* Called with some lines that list tensors not read and unused tensors of the file, in the first process,
     * from the calling thread; may be NULL */
    void (*on_note)(void *context, const char *text);
    void *context;
} mr_take_config;
static inline void mr_take_defaults(mr_take_config *cfg);

/* The tensors that were read. */
typedef struct mr_take_report {
    size_t struct_size;
    uint32_t names;               /* mr_weight_names: the convention with more matches in the file */
    uint32_t taken, left, unused; /* tensors of the network that were read, and not read; unused tensors of
                                     the file */
    bool average;                 /* the average of a checkpoint was read, not its weights */
} mr_take_report;

/* Load weights and running statistics into a trainer that has done no update, in place of the initial values.
 * The file must have every tensor of the network, with its shape, except tensors of the layers in cfg->skip,
 * and of the last layer with weights when the file has it for another number of classes. Averages and
 * Lookahead start from the loaded values. In several processes all call it, and the first one reads. Weights
 * are unchanged on failure.
 *
 * MR_EINVAL                 a tensor is missing or has another shape, or names follow neither convention
 * MR_EUNSUPPORTED           a tensor has another type than f16, bf16, f32, f64
 * MR_EFORMAT, MR_ECHECKSUM  the file is damaged, or has a number that is not finite */
static inline int mr_trainer_take(mr_trainer *t, const mr_take_config *cfg, mr_take_report *out,
                                  mr_error *err);

/* Write a checkpoint to a temporary file, sync and rename it: path has the old file or the new one, never a
 * part. Waits for queued steps and for the disk. In several processes all call it after the same step, and
 * rank 0 writes.
 *
 * info       the members that the trainer does not know (above); struct_size is set here
 *
 * MR_EINVAL  the trainer is for inference, or a member of info is out of range, which err names
 * MR_EIO, MR_ENOENT  the file cannot be written; path is unchanged */
MR_STABLE_INLINE int mr_trainer_save(mr_trainer *t, const char *path, const mr_checkpoint_info *info,
                                     mr_error *err);
/* ---- in memory ----
 *
 * A snapshot is a checkpoint in the memory of this process. It outlives the trainer: when a rank is lost, the
 * others still have the state from which all continue (mr_muster). One thread at a time. */
MR_API int mr_snapshot_create(mr_snapshot **out); /* MR_ENOMEM */
MR_API void mr_snapshot_destroy(mr_snapshot *s);  /* NULL is harmless */
/* Return the info of a snapshot. False, with *out unchanged: the snapshot is empty. class_names is NULL;
 * class_weights belong to the snapshot and are valid until the next snapshot is taken. */
static inline bool mr_snapshot_info(const mr_snapshot *s, mr_checkpoint_info *out);
/* Save to a snapshot: all processes call it after the same step, and each gets the full state. On failure s
 * is unchanged. The caller sets info->struct_size. */
MR_API int mr_trainer_snapshot(mr_trainer *t, mr_snapshot *s, const mr_checkpoint_info *info, mr_error *err);
/* Load from a snapshot: rank 0's s goes to all processes; the others' s is not read and may be NULL.
 * MR_EINVAL: the snapshot is empty, or holds the state of another network. */
MR_API int mr_trainer_restore(mr_trainer *t, const mr_snapshot *s, mr_error *err);

/* Load weights, running statistics and, unless the trainer is for inference, optimizer state, bit for bit. A
 * trainer for inference loads the average of weights and statistics if the checkpoint has one. A training
 * trainer with an average continues the checkpoint's average, or starts it from the checkpoint's weights.
 *
 * path       a file; mr_checkpoint_find() returns the newest one of a folder
 * out        NULL, or receives the info on MR_OK: a loop of the program's own continues at out->epoch and
 *            out->step, by mr_loader_config.start_epoch and start_step
 *
 * MR_EINVAL  the checkpoint is of another network or, unless the trainer is for inference, differs in
 *            optimizer, sync, use of Lookahead, or number of shares with state of their own; err names both
 *            values
 * MR_EFORMAT, MR_ECHECKSUM  the file is damaged */
MR_STABLE_INLINE int mr_trainer_load(mr_trainer *t, const char *path, mr_checkpoint_info *out, mr_error *err);

/* ---- folders ---- */

/* A folder of checkpoints belongs to one run, and one process at a time writes there.
 *
 * mr_run_folder_open() creates a missing folder and locks it for this process, until it is closed or the
 * process ends in any way. A program that looks for a checkpoint to resume locks the folder first and passes
 * it to mr_fit(); without that mr_fit() locks it. MR_EEXIST: another process, which err names, has locked
 * it. */
MR_API int mr_run_folder_open(mr_run_folder **out, const char *path, mr_error *err);
/* Close a folder and release its lock. Accepts NULL. */
MR_API void mr_run_folder_close(mr_run_folder *folder);
/* A note for the user if the file system has no locks; NULL: it has them. */
MR_API const char *mr_run_folder_note(const mr_run_folder *folder);
/* Return the name of any checkpoint in the folder, complete or not. MR_ENOENT: the folder has no
 * checkpoint. */
MR_API int mr_run_folder_find_any(const mr_run_folder *folder, char *name, size_t name_bytes, mr_error *err);

/* Take over a locked folder, for a process that holds a snapshot of the folder's run and knows that the run
 * has lost the process with the lock. If that process is only suspended, it has lost the folder, and its
 * mr_fit() ends with MR_EPEER before it writes the next checkpoint. */
MR_API int mr_run_folder_take_over(mr_run_folder **out, const char *path, const mr_snapshot *of_run,
                                   mr_error *err);
/* Return true when another process has taken over the folder. */
MR_API bool mr_run_folder_was_lost(const mr_run_folder *folder);

/* ------------------------------------------------------------------------------ struct sizes
 *
 * Nothing to read here for a program in C or C++. The library exports the functions below in place of the
 * inline ones above: each inline function passes the size of its struct in the caller's header (base.h). A
 * program in another language sets struct_size and calls ..._sized. */

MR_API int mr_checkpoint_find_sized(const char *path, char *found, size_t found_bytes,
                                    mr_checkpoint_info *out, char *note, size_t note_bytes, mr_error *err);
static inline int mr_checkpoint_find(const char *path, char *found, size_t found_bytes,
                                     mr_checkpoint_info *out, char *note, size_t note_bytes, mr_error *err)
{
    if (out) out->struct_size = sizeof *out;
    return mr_checkpoint_find_sized(path, found, found_bytes, out, note, note_bytes, err);
}

MR_API void mr_weights_defaults_sized(mr_weights_config *cfg, size_t struct_size);
static inline void mr_weights_defaults(mr_weights_config *cfg)
{
    mr_weights_defaults_sized(cfg, sizeof *cfg);
}

MR_API int mr_weights_export_sized(const char *checkpoint, const char *path, const mr_weights_config *cfg,
                                   mr_weights_report *out, mr_error *err);
static inline int mr_weights_export(const char *checkpoint, const char *path, const mr_weights_config *cfg,
                                    mr_weights_report *out, mr_error *err)
{
    if (out) out->struct_size = sizeof *out;
    return mr_weights_export_sized(checkpoint, path, cfg, out, err);
}

MR_API void mr_take_defaults_sized(mr_take_config *cfg, size_t struct_size);
static inline void mr_take_defaults(mr_take_config *cfg) { mr_take_defaults_sized(cfg, sizeof *cfg); }

MR_API int mr_trainer_take_sized(mr_trainer *t, const mr_take_config *cfg, mr_take_report *out,
                                 mr_error *err);
static inline int mr_trainer_take(mr_trainer *t, const mr_take_config *cfg, mr_take_report *out,
                                  mr_error *err)
{
    if (out) out->struct_size = sizeof *out;
    return mr_trainer_take_sized(t, cfg, out, err);
}

MR_STABLE int mr_trainer_save_sized(mr_trainer *t, const char *path, const mr_checkpoint_info *info,
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

MR_API bool mr_snapshot_info_sized(const mr_snapshot *s, mr_checkpoint_info *out);
static inline bool mr_snapshot_info(const mr_snapshot *s, mr_checkpoint_info *out)
{
    if (out) out->struct_size = sizeof *out;
    return mr_snapshot_info_sized(s, out);
}

MR_STABLE int mr_trainer_load_sized(mr_trainer *t, const char *path, mr_checkpoint_info *out, mr_error *err);
static inline int mr_trainer_load(mr_trainer *t, const char *path, mr_checkpoint_info *out, mr_error *err)
{
    if (out) out->struct_size = sizeof *out;
    return mr_trainer_load_sized(t, path, out, err);
}

#ifdef __cplusplus
}
#endif
#endif
