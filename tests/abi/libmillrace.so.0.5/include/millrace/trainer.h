/* millrace/trainer.h: training and evaluating a network on any number of devices (replicas), which always
 * hold the same weights: one step on R replicas is one step on one replica with the same global batch. */
#ifndef MILLRACE_TRAINER_H
#define MILLRACE_TRAINER_H

#include "millrace/loader.h"
#include "millrace/net.h"
#include "millrace/observe.h"
#include "millrace/ranks.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mr_run_folder mr_run_folder; /* checkpoint.h */
typedef struct mr_snapshot mr_snapshot;     /* checkpoint.h */

/* What a run tells while it goes: every figure of one epoch (or of one evaluation). */
#define MR_STEP_BINS 96

typedef struct mr_report {
    size_t struct_size;
    uint64_t epoch; /* from 0 */
    uint64_t steps, warmup_steps, samples;
    double seconds;
    double samples_per_s;        /* steps after the warm-up ones */
    double step_ms, step_ms_mad; /* median; 1.4826 * median absolute deviation */
    double wait_ms;              /* trainer blocked on the loader, sum after warm-up */
    double exposed_ms; /* device idle between steps by its events, sum after warm-up, mean over replicas */
    double stall_fraction; /* exposed / (exposed + computing) */
    double loss, accuracy; /* exact sums over the epoch's training steps; accuracy, here and below: of
                              classes, or of labels (MR_TARGET_LABELS); not a number where the network tells
                              neither */
    bool has_val;
    double val_loss, val_accuracy;
    float lr;               /* at the end of the epoch */
    float loss_scale;       /* f16: at the end of the epoch; else 0 */
    uint64_t skipped;       /* f16: updates left out because a gradient overflowed */
    mr_loader_stats stages; /* of this epoch */
    uint64_t peak_rss_bytes;
    bool simulated;
    char verdict[256]; /* which stage limits, and what would help */
    bool diverged; /* a loss is not finite, or a thousand times the run's first and has not come down again */
    mr_causes causes;                /* of exposed_ms: what the devices were idle for, mean over replicas */
    double step_ms_p95, step_ms_p99; /* of steps end to end: 95 and 99 of 100 took no longer */
    /* how many took how long: bin k from 0.01 ms * 2^(k/4) on to the next one; those beyond are in the last
     */
    uint32_t step_bin[MR_STEP_BINS];
} mr_report;

/* Figures of a stretch of steps, while their epoch goes on. A stretch begins with the epoch, with the call,
 * or behind the stretch before. */
typedef struct mr_step_report {
    size_t struct_size;
    bool due;       /* after every report_steps updates: of all steps since the one before; false: in
                       between, of the steps since anything was reported */
    uint64_t epoch; /* from 0 */
    uint64_t step;  /* so many of the epoch's are over */
    uint64_t steps_per_epoch;
    uint64_t updates;        /* so many of the run's are over */
    uint64_t steps, samples; /* of the stretch */
    double loss, accuracy;   /* exact sums over the stretch */
    float lr;                /* of its last step */
    double samples_per_s;    /* from the end of the stretch before to the end of this one */
    double seconds_left; /* to the last epoch's end at the pace of this call, validation included; negative:
                            nobody knows where it ends */
    bool simulated;      /* loss and accuracy mean nothing */
} mr_step_report;

/* A validation inside an epoch (mr_fit_config.eval_steps, eval_at). */
typedef struct mr_eval_report {
    size_t struct_size;
    uint64_t epoch; /* from 0 */
    uint64_t step;  /* so many of the epoch's are done */
    uint64_t steps_per_epoch;
    uint64_t updates;      /* so many of the run's are done */
    uint64_t samples;      /* of the validation */
    double loss, accuracy; /* exact means; accuracy: not a number where the network tells no classes apart */
    double seconds;
    bool best;      /* no validation of the run had a lower loss */
    bool diverged;  /* as in mr_report */
    bool simulated; /* loss and accuracy mean nothing */
} mr_eval_report;

/* Called by the thread in mr_fit(), without a lock. They may take long: the loader prepares batches and the
 * devices compute what is queued meanwhile, and other processes of the run wait. They must not wait for the
 * loader or the trainer; mr_loader_stop() is allowed. mr_fit(), evaluations and mr_trainer_close() of the
 * same trainer are refused there: MR_EINVAL; a close is what the call under way returns as its error. */
typedef struct mr_callbacks {
    void *context;
    void (*on_step)(void *context, uint64_t epoch, uint64_t step, uint64_t steps_per_epoch,
                    double samples_per_s);
    void (*on_epoch)(void *context, const mr_report *report);
    void (*on_message)(void *context, const char *text); /* one line: checkpoint written, early stop, ... */
} mr_callbacks;

/* Which parts of a batch are computed where. A batch is cut into `all` parts, and each is forward, backward
 * and batch statistics of its own: what its numbers are depends on its samples and on how many threads a
 * processor device has, not on who computes it. Gradients are added in one order (mr_group_sum_async()). So
 * with `all` fixed, weights are the same bits for any devices of one kind, and any number of processes from 1
 * to `all`. */
typedef struct mr_parts {
    size_t struct_size;
    uint32_t all, first, count;              /* parts in all; of this process: [first, first + count) */
    uint32_t of_device[MR_LOADER_MAX_PARTS]; /* of each of its devices, consecutive, in their order */
} mr_parts;

/* For mr_group_config: sums over the processes of a world, on its channel 0. world NULL: there is one. It
 * outlives the group. */
MR_API mr_wire mr_wire_of(mr_world *world);

/* Deal `parts` (0: one a device) to the devices of all processes, as evenly as it goes. world NULL: one
 * process; else all of them call it, each with its own device_count. A loader for them is opened with
 * all_parts = all, first_part = first and, for each of its parts, the device that computes it. */
MR_API int mr_parts_deal_sized(mr_parts *out, mr_world *world, uint32_t device_count, uint32_t parts,
                               mr_error *err);
static inline int mr_parts_deal(mr_parts *out, mr_world *world, uint32_t device_count, uint32_t parts,
                                mr_error *err)
{
    if (out) out->struct_size = sizeof *out;
    return mr_parts_deal_sized(out, world, device_count, parts, err);
}

/* Which parameters weight decay is for. */
typedef enum mr_decay_on {
    MR_DECAY_ON_ALL = 0,
    MR_DECAY_ON_WEIGHTS, /* of convolutions and dense layers: no bias, no scale or shift of a normalisation */
} mr_decay_on;           /* layers may say otherwise: mr_net_decay() */

typedef struct mr_trainer_config {
    size_t struct_size;
    const mr_net *net;         /* must outlive the trainer */
    mr_device *const *devices; /* one per replica */
    uint32_t device_count;
    uint32_t batch; /* GLOBAL, the most a step will bring */
    uint64_t seed;  /* initial weights, dropout */
    mr_update_desc update;
    mr_schedule schedule;
    uint64_t epochs;       /* for schedules that end */
    float mean[4], std[4]; /* of the input op: mr_loader_info's */
    bool uses_affine;
    bool inference;           /* evaluation only: no gradients, no optimizer state */
    uint64_t memory_bytes;    /* device memory per replica; 0: no limit stated */
    mr_trace *trace;          /* or NULL */
    uint64_t steps_per_epoch; /* for schedules that count epochs; 0: mr_fit() takes its loader's */
    uint32_t dtype;   /* of activations: MR_TENSOR_F32 (default), _BF16, _F16 where the devices can. Weights,
                         their   gradients and the optimizer are f32 always */
    float loss_scale; /* f16: 0 (default) begins at 2^16 and adapts; above: this, fixed */
    bool no_graph;    /* queue every step anew where devices could record it (mr_graph) */
    uint64_t bucket_bytes; /* gradients summed over replicas in pieces of about this size while backward still
                              runs; default 25 MB; 0: all at once, behind backward */
    double watchdog_s; /* a step that is not over after so long ends the run, naming the replica that hangs;
                          default 300; 0: wait for ever */
    bool tune_buckets; /* with more than one replica: other sizes of buckets take turns with bucket_bytes in
                          the first steps (after a loader that tunes is done), and the one with the shortest
                          steps stays. Changes no bit of a weight. Without effect with other processes.
                          Default false */
    const mr_parts *parts; /* of mr_parts_deal() for these devices; copied. NULL: one a device, of this
                              process alone */
    mr_world *world; /* the other processes, which make the same calls of the trainer in the same order; must
                        outlive it. It is used on both channels while such a call is under way and while steps
                        are queued. NULL: there are none */
    /* Limits of the gradient of the whole batch, when it is summed over all parts (mr_update_config); 0
     * (default): none. */
    float clip_value, clip_norm;
    mr_decay_on decay_on; /* update.weight_decay; default all */
    /* Above 0, and below 1: beside the weights and running statistics an exponential moving average of them
     * is kept, of this decay (mr_average_async() after every update, one that was skipped for an overflow
     * included; it begins with the initial ones). Evaluation, and so what is the best of a run, is of the
     * average; training goes on with the weights themselves, which is what hashes are of. 0 (default): none.
     */
    float average;
    /* Lookahead (Zhang et al. 2019): after every so many updates the weights go back half the way to where
     * they were after the last such update, and averages are taken behind that; 0 (default): they do not. */
    uint32_t lookahead;
    /* Label smoothing, [0, 1): the loss of training wants 1 - label_smoothing + label_smoothing / classes of
     * the label and label_smoothing / classes of every other class (mr_loss_desc). Evaluation's is without.
     * 0 (default): none. */
    float label_smoothing;
    /* With inference: points whose values mr_trainer_values() may ask for (the list must outlive the
     * trainer). It takes more memory, and where a point has several pixels of several channels convolutions
     * may be slower, as all operations get one layout. */
    const mr_point *kept;
    uint32_t kept_count;
    /* What the batches have beside pictures: mr_loader_info's, for a network that takes fields
     * (mr_net_field()). Read while the trainer opens. */
    const mr_loader_field_info *fields;
    uint32_t field_count;
    /* A network on several devices, for what does not fit one (model parallelism): of each layer the number
     * of its device among those of a replica, from 0; mr_net_place() makes it from a text. NULL: all on one.
     * Every replica then has as many consecutive devices, and device_count is a multiple of that. What a
     * layer takes comes from its own device or an earlier one; data and fields are taken on the first, where
     * the loader puts them, and losses computed on the last. Weights are the same bits as on one device;
     * in bf16 what crosses is rounded once more. Not with other processes (world), f16, clip_norm, kept. */
    const uint32_t *place;
    /* Layers whose parameters stay as they are, as mr_net_choose() takes them; copied; at most 63 bytes,
     * which checkpoints keep. NULL or "" (default): none. They get no update and no weight decay, and no
     * gradient is computed for what comes before the first trained one. Batch normalisations among them
     * compute with their running statistics in training, too, which stay; through one of these no gradient is
     * led, so nothing before it may be trained. MR_EINVAL: something is, or nothing at all would be trained.
     * Without effect with inference. */
    const char *freeze;
    /* Weights of classes in the losses of training against labels, one for each class of the network, finite
     * and not below 0; copied, and kept in checkpoints. The loss of a sample is multiplied with the weight of
     * its class (mr_loss_desc has label smoothing and mixed pictures), and the loss of a batch is the mean
     * over its samples: so parts, replicas and processes add up to the same as one. PyTorch's 'mean' divides
     * by the sum of the weights, which comes to the same where the weights of the samples are 1 on average.
     * Evaluation's loss is without. NULL and 0 (default): none. Without effect with inference. */
    const float *class_weights;
    uint32_t class_weight_count;
} mr_trainer_config;

MR_API void mr_trainer_defaults_sized(mr_trainer_config *cfg, size_t struct_size);
static inline void mr_trainer_defaults(mr_trainer_config *cfg)
{
    mr_trainer_defaults_sized(cfg, sizeof *cfg);
}

typedef struct mr_trainer mr_trainer;

/* Ops and memory on every device; initial weights (mr_init), zero biases, the same bits for any device count:
 * they are made for replica 0, sent to the others and compared. MR_EDEVICE names a replica that does not hold
 * them.
 *
 * Batch normalisation is the one exception to "R replicas are one": each part is normalised by its own
 * statistics. The running statistics of replica 0 are the network's: every replica gets them before an
 * evaluation, a checkpoint or a hash.
 *
 * MR_ELIMIT: over memory_bytes or the device's memory; err names need, limit and the batch that would fit. */
MR_API int mr_trainer_open(mr_trainer **out, const mr_trainer_config *cfg, mr_error *err);
/* Waits for what is queued. Accepts NULL; in a child of fork() it does nothing. After the watchdog ended a
 * run it waits a moment only: when a device still does not answer, its streams and memory are left to the end
 * of the process, because nobody can know when it will be done with them. */
MR_API void mr_trainer_close(mr_trainer *t);
/* The watchdog ended this run: closing the loader and the devices may wait as long as the device hangs. A
 * program that has told the error does best to end at once, with _exit(). */
MR_API bool mr_trainer_hangs(const mr_trainer *t);

/* One operation of replica 0, at from 0 in the order of a forward pass; false past the end. On loan until the
 * trainer is closed. */
typedef struct mr_trainer_op {
    size_t struct_size;
    const mr_op_desc *desc; /* as it was made: another one like it computes the same */
    const mr_op_info *info;
} mr_trainer_op;
MR_API bool mr_trainer_op_sized(const mr_trainer *t, uint32_t at, mr_trainer_op *out);
static inline bool mr_trainer_op_at(const mr_trainer *t, uint32_t at, mr_trainer_op *out)
{
    if (out) out->struct_size = sizeof *out;
    return mr_trainer_op_sized(t, at, out);
}
/* What mr_checkpoint_info.convolution of this trainer's checkpoints will be. */
MR_API uint32_t mr_trainer_convolution(const mr_trainer *t);

/* Queue one training step on a batch whose parts are in device memory, as mr_trainer_config.parts says;
 * returns before it is done, at most two steps ahead of the devices. No part may exceed batch / parts,
 * rounded up. A batch in which nothing counts is a step with zero gradients. After an error of a device the
 * trainer is of no more use: every call returns that error. The caller then gives the batch back with
 * mr_loader_release(loader, batch, mr_trainer_streams(t)).
 *
 * A batch may be made by hand (docs/library.md, examples/own_data.c), all else in it zero: count, counted (of
 * them with a label of 0 or more), global_step, which dropout draws by, part_count and parts, as many as the
 * trainer computes; of each part first, count, pixels (uint8, count x h x w x c; of a network of numbers
 * field[0] instead), labels (int32), field[] in the order of mr_trainer_config.fields, and ready, which the
 * step waits for, or NULL. It is read before this returns; the memory of its parts is in use until an event
 * that is recorded on mr_trainer_streams() afterwards is over.
 *
 * MR_EINVAL: the parts are not the trainer's, or lack what the network takes; nothing was queued */
MR_API int mr_trainer_step(mr_trainer *t, const mr_batch *batch, mr_error *err);
MR_API mr_stream *const *mr_trainer_streams(const mr_trainer *t); /* one for each part of this process */
/* Forward only, metrics added to the evaluation sums. */
MR_API int mr_trainer_forward(mr_trainer *t, const mr_batch *batch, mr_error *err);
/* What a point of the network (one of mr_trainer_config.kept) holds on the first device of this process, of
 * the newest part of a batch that it computed or of mr_trainer_compute_from(): samples x h x w x c floats to
 * out, of which there is room for `most` samples; how many there are to *samples. Waits for what is queued.
 * MR_EINVAL: not one of those, or it is inside an operation; MR_EUNSUPPORTED: a simulated device. */
MR_API int mr_trainer_values(mr_trainer *t, mr_point point, uint32_t most, float *out, uint32_t *samples,
                             mr_error *err);
/* Compute, on the first device, all that follows from these values of a point (one of kept, samples x h x w x
 * c) and from no other point that does not: the decoder of an autoencoder, by itself. No more samples than a
 * part of a batch. */
MR_API int mr_trainer_compute_from(mr_trainer *t, mr_point point, const float *values, uint32_t samples,
                                   mr_error *err);
/* Wait for everything queued; the exact sums since the last call; then start again at zero. MR_EINVAL: labels
 * that the network has no class for. */
MR_API int mr_trainer_metrics(mr_trainer *t, mr_metrics *training, mr_metrics *evaluation, mr_error *err);

/* Of a process of the run: how long a step took it, on average over the steps that it had finished when the
 * newest batch was begun. What a step takes beyond that is spent waiting for the others, and in the exchange.
 */
typedef struct mr_rank_times {
    size_t struct_size;
    uint64_t steps;
    double compute_ms; /* for its own parts, its slowest device */
    double idle_ms;    /* its devices waited for data before it */
} mr_rank_times;
/* MR_EINVAL: there is no such rank. */
MR_API int mr_trainer_rank_times_sized(const mr_trainer *t, uint32_t rank, mr_rank_times *out, mr_error *err);
static inline int mr_trainer_rank_times(const mr_trainer *t, uint32_t rank, mr_rank_times *out, mr_error *err)
{
    if (out) out->struct_size = sizeof *out;
    return mr_trainer_rank_times_sized(t, rank, out, err);
}

/* What mr_trainer_config.tune_buckets has led to so far. */
typedef struct mr_bucket_tuning {
    size_t struct_size;
    bool done;      /* nothing more is tried; also where nothing is, or was, to be tried */
    uint32_t sizes; /* that were, or are, compared; 0 or 1: there is only one way to cut */
    uint64_t bytes; /* in use */
    double gain;    /* rate of steps over that of the size that it began with, from turns side by side */
} mr_bucket_tuning;
MR_API void mr_trainer_bucket_tuning_sized(const mr_trainer *t, mr_bucket_tuning *out);
static inline void mr_trainer_bucket_tuning(const mr_trainer *t, mr_bucket_tuning *out)
{
    if (out) out->struct_size = sizeof *out;
    mr_trainer_bucket_tuning_sized(t, out);
}

/* How long it took to an accuracy (mr_fit_config.stop_at_accuracy). Seconds are of the clock on the wall,
 * summed over the calls of mr_fit() and the parts of a run that was resumed: training, with waiting for data
 * and writing checkpoints, and evaluation, apart. What a run did after the checkpoint it goes on with is not
 * in them. Of several processes each has its own; checkpoints keep the first one's. */
typedef struct mr_goal {
    size_t struct_size;
    double accuracy;              /* to be reached, 0 to 1; 0: none */
    double seconds, eval_seconds; /* so far: at the end of mr_fit(), or in the checkpoint that was loaded */
    uint64_t timed_from; /* updates done before anybody counted seconds; 0: they are of the whole run */
    uint64_t updates;    /* done when it was reached; 0: it was not, and what follows is 0 */
    double epochs;       /* the same in epochs, once it is known how many steps they have */
    double found;        /* the accuracy then */
    double reached_seconds, reached_eval_seconds; /* until then */
} mr_goal;
MR_API void mr_trainer_goal_sized(const mr_trainer *t, mr_goal *out);
static inline void mr_trainer_goal(const mr_trainer *t, mr_goal *out)
{
    if (out) out->struct_size = sizeof *out;
    mr_trainer_goal_sized(t, out);
}

typedef struct mr_fit_config {
    size_t struct_size;
    uint64_t epochs;            /* stop after so many epochs, counted from epoch 0; 0: when the loader ends */
    mr_loader *val;             /* or NULL; an endless sequential loader on the same devices */
    const char *checkpoint_dir; /* or NULL. With one, a loader's augmentation may have 255 characters, spelled
                                   out (mr_loader_info.augment); a longer one is MR_EINVAL */
    uint64_t checkpoint_steps;  /* also every so many steps; 0: at the end of each epoch only */
    uint32_t keep;              /* newest checkpoints kept, the best besides; default 3 */
    uint32_t patience;          /* early stop after so many epochs without a better val_loss; 0: never */
    uint64_t max_steps;         /* stop after so many steps in this call, checkpoint written; 0: none */
    uint32_t warmup_steps;      /* left out of the rates; default 3, fewer when the epoch is short */
    const volatile int *stop;   /* non-zero: stop cleanly after the step, checkpoint written */
    mr_callbacks callbacks;
    const mr_source_info *data; /* what is trained on: how its classes are named and numbered goes into the
                                   checkpoints; NULL: nothing does */
    mr_run_folder *folder;      /* checkpoint_dir, taken by mr_run_folder_open(); NULL: taken here */
    bool replace; /* checkpoints of other runs in checkpoint_dir are moved to a folder in it, old-1, old-2,
                     ...; default false: they are MR_EEXIST */
    /* With callbacks.context, when the trainer has learned the sums behind a step: after updates 1, 2, 4,
     * ..., after every 64th, and after every report_steps-th (`due`). Nobody waits for them: a report comes
     * when its step is over, up to two steps late, and the last ones of an epoch before its on_epoch. NULL:
     * not. */
    void (*on_step)(void *context, const mr_step_report *report); /* thread: as mr_callbacks */
    uint64_t report_steps;                                        /* 0 (default): none is due */
    /* NULL, or where the state is kept as training goes on: before the first step, before every checkpoint,
     * after every epoch, and in between in pauses that double until keeping costs a hundredth of the time.
     * All processes have one, or none. */
    mr_snapshot *snapshot;
    /* Stop when an accuracy is at least this, above 0 to 1: that of a validation, or without val that of an
     * epoch's training steps (of a whole epoch that this call has run: part of one says less). What it took
     * tells mr_trainer_goal(). 0 (default): never */
    double stop_at_accuracy;
    /* Validate inside epochs, too: behind every so many updates of the run (0, the default: not), and where
     * so many epochs are done, parts included (0.5, 1.25, ...; the first step that makes so many; numbers
     * above 0 in any order, to outlive the call; default none). An epoch's end has its own validation, and
     * one is enough. Such a validation is reported to on_eval (may be NULL) with callbacks.context. It counts
     * for the best checkpoint, which is written then, and for stop_at_accuracy; patience counts the ends of
     * epochs since the lowest loss, wherever that was found. Bits of training do not depend on it. MR_EINVAL
     * without val. */
    uint64_t eval_steps;
    const double *eval_at;
    uint32_t eval_at_count;
    void (*on_eval)(void *context, const mr_eval_report *report); /* thread: as mr_callbacks */
    /* Steps of max_steps that were done before this call, by a call for the same run that lost a process;
     * default 0. */
    uint64_t steps_before;
} mr_fit_config;

MR_API void mr_fit_defaults_sized(mr_fit_config *cfg, size_t struct_size);
static inline void mr_fit_defaults(mr_fit_config *cfg) { mr_fit_defaults_sized(cfg, sizeof *cfg); }

/* Train until loader ends: epochs, evaluation, reports, checkpoints. MR_ECANCELED when stop was set.
 * MR_EBUSY: another thread trains or evaluates with this trainer.
 *
 * checkpoint_dir belongs to one run: the trainer's, which began with mr_trainer_open() or goes on with what
 * mr_trainer_load() read. MR_EEXIST, before the first step: it holds checkpoints of another run, or of this
 * one from later than where the trainer stands, or another process trains into it. Older ones of this run are
 * removed (`keep`), and nothing else ever is.
 *
 * A network with a loss against labels needs loaders of labelled data (MR_EINVAL); one without takes others,
 * too, from loaders opened with count_unlabelled.
 *
 * A loss that is not finite, or a thousand times the run's first (or that of guessing, if that is more), is
 * told within 64 steps and is never the best. It sets `diverged` of its epoch's report, unless it has come
 * down again by the end of the epoch.
 *
 * To resume, open loader and trainer with the settings of the checkpoint (run.h),
 * mr_trainer_load() it, and call this: the run goes on bit for bit on the same number of devices (cuda:
 * opened deterministic). MR_EINVAL where the loader or the trainer has another batch, seed, order or position
 * than the checkpoint's run. Figures of an epoch that is resumed, or ended early, are of the steps that ran
 * in this call. A validation that was still to come is done first; its report has steps 0, loss and accuracy
 * as they were. A run that was stopped early stays so, unless patience or epochs are more than they were; one
 * that has reached stop_at_accuracy, unless that is above the accuracy it had then. Whatever ends the run
 * (the last epoch, early stopping, stop_at_accuracy, max_steps, stop, an error of the loader), what was
 * trained is saved first when there is a checkpoint_dir; only an error of the trainer itself leaves the last
 * one standing. last (may be NULL) gets
 * the report of the last epoch, or part of one, that ran. */
MR_API int mr_fit_sized(mr_trainer *t, mr_loader *loader, const mr_fit_config *cfg, mr_report *last,
                        mr_error *err);
static inline int mr_fit(mr_trainer *t, mr_loader *loader, const mr_fit_config *cfg, mr_report *last,
                         mr_error *err)
{
    if (last) last->struct_size = sizeof *last;
    return mr_fit_sized(t, loader, cfg, last, err);
}
/* One pass of the loader's epoch, to the batch marked last; exact loss and accuracy. Training sums are left
 * alone. */
MR_API int mr_evaluate(mr_trainer *t, mr_loader *loader, double *loss, double *accuracy, uint64_t *count,
                       mr_error *err);
/* The same; MR_ECANCELED soon after *stop is no longer 0. stop may be written by a signal handler. */
MR_API int mr_evaluate_until(mr_trainer *t, mr_loader *loader, const volatile int *stop, double *loss,
                             double *accuracy, uint64_t *count, mr_error *err);

/* What came out of one batch, in its order; valid during the call. */
typedef struct mr_outputs {
    size_t struct_size;
    const uint64_t *ids;   /* sample numbers; MR_NOWHERE for padding and for samples that were skipped */
    const int32_t *labels; /* -1: padding, a sample that was skipped, or one without a label */
    uint32_t count, classes;
    const float *logits; /* count x classes, with the network's logit factor; of one logit a 0 and it. Of a
                            network with targets what it gives, count x as many numbers: logits of
                            MR_TARGET_LABELS, of others the values themselves */
} mr_outputs;

typedef struct mr_outputs_config {
    size_t struct_size;
    /* After each batch, from the calling thread; an error ends the pass and is its result */
    int (*on_outputs)(void *context, const mr_outputs *outputs, mr_error *err);
    void *context;
    const volatile int *stop; /* as of mr_evaluate_until(); may be NULL */
} mr_outputs_config;
MR_API void mr_outputs_defaults_sized(mr_outputs_config *cfg, size_t struct_size);
static inline void mr_outputs_defaults(mr_outputs_config *cfg)
{
    mr_outputs_defaults_sized(cfg, sizeof *cfg);
}

/* mr_evaluate_until(), which tells the logits of every sample of this process besides. The trainer is for
 * inference and keeps the point of mr_net_outputs() (mr_trainer_config.kept); the loader has keep_host.
 * Logits are the bits that evaluation computes. loss, accuracy and count all NULL: nothing is summed, and
 * samples need no labels.
 *
 * MR_EINVAL        no on_outputs, a loader without keep_host, a network without classes or without that point
 * MR_EUNSUPPORTED  a device computes several parts of a batch, or computes nothing (simulated) */
MR_API int mr_evaluate_outputs(mr_trainer *t, mr_loader *loader, const mr_outputs_config *cfg, double *loss,
                               double *accuracy, uint64_t *count, mr_error *err);

/* Hash of all weights on replica r, in canonical order (I6: the same on all). */
MR_API int mr_trainer_weights_hash(mr_trainer *t, uint32_t replica, uint64_t *lo, uint64_t *hi,
                                   mr_error *err);

#ifdef __cplusplus
}
#endif
#endif
