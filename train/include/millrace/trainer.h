/* millrace/trainer.h: train and evaluate a network on any number of devices (replicas). All replicas always
 * have the same weights: one step on R replicas equals one step on one replica with the same global batch. */
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

/* Report of a run: all figures of one epoch, or of one evaluation. */
#define MR_STEP_BINS 96

typedef struct mr_report {
    size_t struct_size;
    uint64_t epoch; /* from 0 */
    uint64_t steps, warmup_steps, samples;
    double seconds;
    double samples_per_s;        /* rate of the steps after warm-up */
    double step_ms, step_ms_mad; /* median step time; 1.4826 * median absolute deviation */
    double wait_ms;              /* time in which the trainer waited for the loader, sum after warm-up */
    double exposed_ms;     /* idle time of devices by their events, sum after warm-up, mean over replicas:
                              between steps, and in steps while they wait for other processes */
    double stall_fraction; /* exposed / (exposed + computing) */
    double loss, accuracy; /* exact means over the epoch's training steps. Every accuracy is of classes, or of
                              labels (MR_TARGET_LABELS), and NaN for a network with neither */
    bool has_val;
    double val_loss, val_accuracy;
    float lr;               /* at the end of the epoch */
    float loss_scale;       /* f16: at the end of the epoch; else 0 */
    uint64_t skipped;       /* f16: updates skipped because a gradient overflowed */
    mr_loader_stats stages; /* of this epoch */
    uint64_t peak_rss_bytes;
    bool simulated;
    char verdict[256]; /* the limiting stage, and a remedy */
    bool diverged; /* a loss is not finite, or has risen to a thousand times the run's first loss and stayed
                      high */
    mr_causes causes;                /* causes of exposed_ms - network_ms, mean over replicas */
    double step_ms_p95, step_ms_p99; /* 95th and 99th percentile of the time from the end of a step to the end
                                        of the next */
    /* histogram of step times: bin k begins at 0.01 ms * 2^(k/4); the last bin also counts longer steps */
    uint32_t step_bin[MR_STEP_BINS];
    double network_ms; /* of exposed_ms: waiting for other processes and their gradients. 0 with one process
                        */
    double late_ms;    /* share of network_ms that was spent waiting for late_rank, the late process for which
                          this one waited longest */
    uint32_t late_rank;
} mr_report;

/* Report of an interval of steps during their epoch. An interval begins with the epoch, with the call of
 * mr_fit(), or after the interval before. */
typedef struct mr_step_report {
    size_t struct_size;
    bool due; /* true: report after every report_steps updates, over all steps since the last such report;
                 false: an intermediate report, over the steps since any report */
    uint64_t epoch; /* from 0 */
    uint64_t step;  /* finished steps of the epoch */
    uint64_t steps_per_epoch;
    uint64_t updates;        /* finished updates of the run */
    uint64_t steps, samples; /* of the interval */
    double loss, accuracy;   /* exact means over the interval */
    float lr;                /* learning rate of the last step */
    double samples_per_s;    /* rate from the end of the interval before to the end of this one */
    double seconds_left; /* estimated time to the end of the last epoch at the pace of this call, including
                            validation; negative: the end is not known */
    bool simulated;      /* loss and accuracy mean nothing */
    double network_fraction; /* part of the interval's time in which devices waited for other processes and
                                their gradients, mean over replicas */
} mr_step_report;

/* A validation inside an epoch (mr_fit_config.eval_steps, eval_at). */
typedef struct mr_eval_report {
    size_t struct_size;
    uint64_t epoch; /* from 0 */
    uint64_t step;  /* finished steps of the epoch */
    uint64_t steps_per_epoch;
    uint64_t updates;      /* finished updates of the run */
    uint64_t samples;      /* of the validation */
    double loss, accuracy; /* exact means; accuracy as in mr_report */
    double seconds;
    bool best;      /* no earlier validation of the run had a lower loss */
    bool diverged;  /* as in mr_report */
    bool simulated; /* loss and accuracy mean nothing */
} mr_eval_report;

/* Callbacks of mr_fit(). The thread in mr_fit() calls them; no lock is held. They may take long: the loader
 * continues to prepare batches, the devices compute their queued work, and other processes of the run wait.
 * They must not wait for the loader or the trainer; they may call mr_loader_stop(). mr_fit(), evaluations and
 * mr_trainer_close() of the same trainer fail in a callback with MR_EINVAL; after such a close mr_fit()
 * itself returns this error. */
typedef struct mr_callbacks {
    void *context;
    /* Called after each step is queued, which is up to two steps before it is done. epoch and step count from
     * 0, step within the epoch. samples_per_s: samples of finished steps per second since mr_fit() was
     * called, without the time of validations. For loss and accuracy use mr_fit_config.on_step */
    void (*on_step)(void *context, uint64_t epoch, uint64_t step, uint64_t steps_per_epoch,
                    double samples_per_s);
    /* Called at the end of each epoch, after its validation and before its checkpoint. Not called for an
     * epoch that ends early (stop, max_steps, stop_at_accuracy inside the epoch, an error): mr_fit() returns
     * its report in `last`. A pending validation (see mr_fit()) calls it, too */
    void (*on_epoch)(void *context, const mr_report *report);
    void (*on_message)(void *context, const char *text); /* one line: checkpoint written, early stop, ... */
} mr_callbacks;

/* The shares of a batch and the devices that compute them. A batch is cut into `all` shares, each with its
 * own forward and backward pass and batch statistics. The numbers of a share depend on its samples and on the
 * thread count of a cpu device, not on the device that computes it. Gradients are added in one order
 * (mr_group_sum_async()). For a fixed `all`, weights have the same bits on any number of devices of one kind
 * and of processes from 1 to `all`. */
typedef struct mr_parts {
    size_t struct_size;
    uint32_t all, first, count;              /* number of shares; this process has [first, first + count) */
    uint32_t of_device[MR_LOADER_MAX_PARTS]; /* number of shares per device of this process; consecutive, in
                                                the order of devices */
} mr_parts;

/* Return a wire for mr_group_config that sums over the processes of a world, on its channel 0. world must
 * outlive the group; NULL: one process. */
MR_API mr_wire mr_wire_of(mr_world *world);

/* Distribute `parts` shares (0: one per device) over the devices of all processes, as evenly as possible.
 * world NULL: one process; else all processes call it, each with its own device_count. Open the loader with
 * all_parts = all, first_part = first and, for each share of this process, the device that computes it. */
static inline int mr_parts_deal(mr_parts *out, mr_world *world, uint32_t device_count, uint32_t parts,
                                mr_error *err);

/* Parameters with weight decay. */
typedef enum mr_decay_on {
    MR_DECAY_ON_ALL = 0,
    MR_DECAY_ON_WEIGHTS, /* weights of convolutions and dense layers, without biases and without scales and
                            shifts of normalisations */
} mr_decay_on;           /* mr_net_decay() overrides it for layers */

#define MR_BUCKET_AUTO UINT64_MAX

/* How the shares of a batch train together. */
typedef enum mr_sync {
    MR_SYNC_EACH = 0, /* one set of weights: each update uses the sum of the gradients of all shares */
    MR_SYNC_AVERAGE,  /* see mr_sync_average() */
    /* Every share trains weights, running statistics and optimizer arrays of its own, as with averages, and
     * they are never averaged. Evaluation, mr_trainer_weights_hash() and the weights in checkpoints are share
     * 0's, which rank 0 trains; checkpoints have every share's state, too. Excludes exchange. */
    MR_SYNC_INDEPENDENT,
    /* One set of weights; each update uses the sum of the gradients of the batch before, which travels while
     * this batch is computed: the gradients belong to weights one update old. The first update changes
     * nothing. The gradients of the newest batch are pending until the next update; checkpoints contain them.
     * Weights have the same bits for every distribution of the shares. */
    MR_SYNC_DELAYED,
    /* Servers (mr_trainer_config.crew) hold weights and optimizer arrays, add the gradients of all workers in
     * the order of the tree, and update. With workers and servers on processors the weights equal the weights
     * of MR_SYNC_EACH, bit for bit. */
    MR_SYNC_SERVERS,
    MR_SYNC_SERVERS_ASYNC, /* see mr_sync_servers_async() */
} mr_sync;

/* Return mr_trainer_config.sync for servers that update when the gradient of a worker arrives, with this
 * gradient alone. The staleness of a gradient is the number of updates since its worker read the weights. A
 * worker that is `bound` steps ahead of the slowest waits (stale synchronous parallel, Ho et al. 2013). bound
 * is 1 to 1000000. Workers meet at evaluations, checkpoints and ends of epochs. The weights differ from run
 * to run, unless there is one worker. */
static inline uint32_t mr_sync_servers_async(uint32_t bound)
{
    return (uint32_t)MR_SYNC_SERVERS_ASYNC | bound << 8;
}

/* Return mr_trainer_config.sync for averages: every share trains weights, running statistics and optimizer
 * arrays of its own.
 * After each update whose number is a multiple of `updates`, and after each epoch, the common weights x
 * become
 *
 *     d = outer_lr * mean of (x - w) over the shares' weights w;   v = outer_momentum * v - d
 *     x = x + v (heavy ball), or x = x + outer_momentum * v - d (Nesterov)
 *
 * and every share continues from x and from the means of the statistics and optimizer arrays. Local SGD with
 * outer_lr 1 and no momentum; DiLoCo (Douillard et al. 2023) with Nesterov momentum; SlowMo (Wang et al.
 * 2019) and block momentum (Chen and Huo 2016) with the heavy ball. A share's gradient is its part of the
 * gradient of the global batch times the number of shares. Differences are added in the order of the tree
 * (mr_group), so the weights have the same bits for every distribution of the shares. Evaluation,
 * mr_trainer_weights_hash() and the weights in checkpoints are x of the newest average; a checkpoint between
 * two averages also has every share's state. updates is 1 to 1000000. */
static inline uint32_t mr_sync_average(uint32_t updates) { return (uint32_t)MR_SYNC_AVERAGE | updates << 8; }

/* Floats on the network. All but MR_EXCHANGE_F32 leave out a part of each value, and add it to the value that
 * is sent there next (error feedback, Seide et al. 2014): received values and residuals add up to the given
 * values, exactly. The weights then depend on the distribution of the shares over processes, not on the wire,
 * and are the same in all processes. Residuals take 8 bytes per value sent; they are zero at the start, after
 * loading and after restoring: no checkpoint has them. */
typedef enum mr_exchange {
    MR_EXCHANGE_F32 = 0,
    MR_EXCHANGE_BF16, /* 2 bytes */
    MR_EXCHANGE_F16,  /* 2 bytes, at most 65504 */
    MR_EXCHANGE_INT8, /* whole numbers to 127 times a power of two for each 256 values: 1.004 bytes */
    MR_EXCHANGE_1BIT, /* signs and one size for each 256 values: 0.14 bytes */
} mr_exchange;

/* Settings. Set net, devices, device_count, and mean, std and uses_affine of the training loader; the other
 * members have defaults. */
typedef struct mr_trainer_config {
    size_t struct_size;
    const mr_net *net; /* must outlive the trainer */
    /* One per replica (with `place` several). They must stay open until trainer and loaders are closed. Close
     * in this order: trainer, loaders, network, devices, source */
    mr_device *const *devices;
    uint32_t device_count;
    /* Largest global batch of a step; default 128. mr_fit() returns MR_EINVAL for a loader with larger
     * batches */
    uint32_t batch;
    uint64_t seed; /* initial weights, dropout; default 0 */
    /* The optimizer; default MR_UPDATE_SGD (momentum 0.9, rho 0.9, beta1 0.9, beta2 0.999, epsilon 1e-7 for
     * the kinds that use them, weight_decay 0). Each is from 0 to 1, epsilon 0 or more. The rate comes from
     * `schedule`: update.lr is 0 (default) or schedule.lr, else MR_EINVAL */
    mr_update_desc update;
    /* The learning rate of each update; default MR_LR_CONSTANT with lr 0.01. mr_schedule_parse() makes it
     * from a text */
    mr_schedule schedule;
    uint64_t epochs; /* planned epochs, for schedules that depend on them; default 1 */
    /* The network's input is (x * a + b - mean[c]) / std[c], x from 0 to 255 and a, b as in mr_batch.affine
     * (1 and 0 without). Copy mean, std and uses_affine from mr_loader_info of the training loader:
     * mr_fit() and evaluations return MR_EINVAL for a loader with others, unless the network takes no
     * pictures. Default mean 0 and std 255 */
    float mean[4], std[4];
    bool uses_affine;
    bool inference;           /* evaluation only: no gradients, no optimizer state */
    uint64_t memory_bytes;    /* limit of device memory per replica; 0: no limit */
    mr_trace *trace;          /* or NULL */
    uint64_t steps_per_epoch; /* for schedules that count epochs; 0: mr_fit() uses its loader's */
    uint32_t dtype; /* type of activations: MR_TENSOR_F32 (default), _BF16 or _F16 if the devices support it.
                       Weights, their gradients and the optimizer are always f32 */
    float loss_scale;      /* f16: 0 (default): starts at 2^16 and adapts; above 0: this fixed scale */
    bool no_graph;         /* queue every step anew even if the devices can record it (mr_graph) */
    uint64_t bucket_bytes; /* size of the pieces in which gradients are summed over replicas while backward
                              runs; 0: all at once, after backward. MR_BUCKET_AUTO (default): 25 MB; with
                              other processes from the size of the gradients and the measured network */
    double watchdog_s; /* time limit of a step, after which the run ends with an error that names the hanging
                          replica, up to 1,000,000; default 300; 0: no limit */
    bool tune_buckets; /* with several replicas: the first steps (after the loader's tuning, if any) alternate
                          between bucket_bytes and other sizes, and the size with the shortest steps is kept.
                          Changes no bit of a weight. With other processes the first process decides.
                          Default false */
    const mr_parts *parts; /* from mr_parts_deal() for these devices; copied. NULL: one share per device, one
                              process */
    mr_world *world; /* the other processes, which must call the trainer's functions in the same order; must
                        outlive the trainer. The trainer uses both channels during such a call and while steps
                        are queued. NULL: one process */
    /* Clipping of the gradient of the whole batch, after the sum over all shares (mr_update_config); 0
     * (default): none. */
    float clip_value, clip_norm;
    mr_decay_on decay_on; /* parameters with update.weight_decay; default all */
    /* Decay of an exponential moving average, above 0 and below 1. The average of weights and running
     * statistics starts from the initial values, is updated after each update, including skipped ones
     * (mr_average_async()), and is stored next to the weights. Evaluation, and therefore the choice of the
     * best checkpoint, uses the average; training and mr_trainer_weights_hash() use the weights. 0 (default):
     * no average. */
    float average;
    /* Lookahead (Zhang et al. 2019): after every `lookahead` updates the weights move halfway back to their
     * value at the previous such update, and averages are taken afterwards; 0 (default): off. */
    uint32_t lookahead;
    /* Label smoothing, [0, 1): the target of the training loss is 1 - label_smoothing + label_smoothing /
     * classes for the label's class and label_smoothing / classes for every other class (mr_loss_desc). The
     * evaluation loss has no smoothing. 0 (default): none. */
    float label_smoothing;
    /* With inference: points that mr_trainer_values() may read; the list must outlive the trainer. Needs more
     * memory. If a point has several pixels and several channels, convolutions may be slower, because all
     * operations then use one layout. */
    const mr_point *kept;
    uint32_t kept_count;
    /* Fields of the batches, from mr_loader_info, for a network with fields (mr_net_field()). Read only
     * during mr_trainer_open(). */
    const mr_loader_field_info *fields;
    uint32_t field_count;
    /* Model parallelism, for a network that does not fit on one device: the device of each layer among the
     * devices of its replica, from 0; mr_net_place() makes the list from a text. NULL: one device per
     * replica. A replica has consecutive devices, and device_count is a multiple of their number. A layer's
     * inputs must be on its own device or an earlier one; the first device takes data and fields, where the
     * loader puts them, and the last computes the losses. Weights have the same bits as on one device; in
     * bf16 values that cross devices are rounded once more. Excludes world, f16, clip_norm and kept. */
    const uint32_t *place;
    /* Frozen layers, in the syntax of mr_net_choose(); copied; at most 63 bytes; stored in checkpoints. NULL
     * or "" (default): none. Frozen layers get no update and no weight decay, and no gradient is computed for
     * layers before the first trained layer. Frozen batch normalisations use their running statistics in
     * training, too, and do not change them; they pass no gradient on, so no layer before them may be
     * trained. MR_EINVAL: such a layer would be trained, or no layer would be trained. No effect with
     * inference. */
    const char *freeze;
    /* Weights of classes in training losses against labels, one per class of the network, finite, 0 or more;
     * copied; stored in checkpoints. The loss of a sample is multiplied by the weight of its class (for label
     * smoothing and mixed pictures see mr_loss_desc), and the loss of a batch is the mean over its samples:
     * it does not depend on the number of shares, replicas and processes. PyTorch's 'mean' divides by the sum
     * of the weights, with the same result if the samples' weights average 1. The evaluation loss is not
     * weighted. NULL and 0 (default): no weights. No effect with inference. */
    const float *class_weights;
    uint32_t class_weight_count;
    /* How shares train together: MR_SYNC_EACH (default), or another value of mr_sync. All but MR_SYNC_EACH
     * and MR_SYNC_SERVERS are other algorithms: the same samples give other weights. All but MR_SYNC_EACH
     * exclude place, f16, lookahead and average, and ignore tune_buckets. No effect with inference. */
    uint32_t sync;
    /* With mr_sync_average(): factor of the mean change (default 1) and momentum (default 0, below 1), with
     * Nesterov's rule or, with outer_heavy_ball, the heavy ball. */
    float outer_lr, outer_momentum;
    bool outer_heavy_ball;
    /* How the gradients of a step (with averages: the changes of the weights) travel between processes;
     * default MR_EXCHANGE_F32. No effect in one process. Excludes f16. */
    mr_exchange exchange;
    /* With MR_SYNC_SERVERS and mr_sync_servers_async(): the crew, in which this process is a worker. It must
     * outlive the trainer, and world is mr_crew_take_together(). One device per process; the shares of a
     * process must form one node of the tree. Excludes clip_norm, freeze, decay_on other than all, rules that
     * scale tensors (LAMB) or need matrices (MUON), and exchange. The servers call mr_serve(), which returns
     * when every worker has closed its trainer. Default NULL. */
    mr_crew *crew;
} mr_trainer_config;

MR_STABLE_INLINE void mr_trainer_defaults(mr_trainer_config *cfg);

typedef struct mr_trainer mr_trainer;

/* Serve parameters to the workers of a crew until each has closed its trainer, with a thread per worker.
 *
 * stop  NULL, or as in mr_fit_config: when *stop is not 0, the workers stop, all after the same step
 *
 * MR_ECANCELED: *stop was set; MR_EINVAL: this process is a worker; MR_EPEER: a worker was lost; MR_ENOMEM,
 * MR_EIO. An error ends the worlds of all workers. */
MR_API int mr_serve(mr_crew *crew, const volatile int *stop, mr_error *err);
/* Return the number of gradients that the servers had received when their weights were last read (evaluation,
 * checkpoint, hash); *mean and *most get the mean and the largest staleness of these gradients. 0 without
 * servers. mean and most may be NULL. */
MR_API uint64_t mr_trainer_staleness(const mr_trainer *t, double *mean, uint64_t *most);

/* Create ops, memory and initial weights (mr_init) and biases on every device. Initial weights have the same
 * bits for any device count: they are made for replica 0, copied to the others and compared. MR_EDEVICE: a
 * replica, which err names, has other weights.
 *
 * Batch normalisation is the only exception to "R replicas equal one": each share is normalised with its own
 * statistics. The running statistics of replica 0 are the network's: every replica receives them before an
 * evaluation, a checkpoint or a hash.
 *
 * MR_ELIMIT: the trainer needs more than memory_bytes or the device's memory; err names need, limit and the
 * batch that would fit. */
MR_STABLE int mr_trainer_open(mr_trainer **out, const mr_trainer_config *cfg, mr_error *err);
/* Close a trainer after its queued work is done. Accepts NULL; in a child of fork() it does nothing. After
 * the watchdog has ended a run it waits only a moment: if a device still does not answer, its streams and
 * memory are not freed, because the device may still use them. */
MR_STABLE void mr_trainer_close(mr_trainer *t);
/* Return true when the watchdog has ended this run: closing the loader and the devices may then wait as long
 * as the device hangs. The program should report the error and end at once with _exit(). */
MR_API bool mr_trainer_hangs(const mr_trainer *t);

/* One operation of replica 0: mr_trainer_op_at() returns operation `at`, counted from 0 in the order of a
 * forward pass; false past the end. Valid until the trainer is closed. */
typedef struct mr_trainer_op {
    size_t struct_size;
    const mr_op_desc *desc; /* description from which the op was created */
    const mr_op_info *info;
} mr_trainer_op;
static inline bool mr_trainer_op_at(const mr_trainer *t, uint32_t at, mr_trainer_op *out);
/* Return mr_checkpoint_info.convolution of this trainer's checkpoints. */
MR_API uint32_t mr_trainer_convolution(const mr_trainer *t);

/* Queue one training step on a batch whose shares are in device memory, distributed as in
 * mr_trainer_config.parts. It returns before the step is done, at most two steps ahead of the devices. No
 * share may exceed batch / parts, rounded up. A batch without counted samples is a step with zero gradients.
 * After an error of a device every call of this trainer returns that error. Afterwards the caller releases
 * the batch at once with mr_loader_release(loader, batch, mr_trainer_streams(t)).
 *
 * A program may build a batch itself. It sets count, counted (samples with a label of 0 or more), global_step
 * (dropout's draws depend on it), part_count and parts, all shares of this process; in each share first,
 * count, pixels (uint8, count x h x w x c; for a network of numbers field[0] instead), labels (int32),
 * field[] in the order of mr_trainer_config.fields, and ready, an event that the step waits for, or NULL. All
 * other members are zero. The batch is read before this returns; the memory of its shares is in use until an
 * event recorded on mr_trainer_streams() afterwards is over.
 *
 * MR_EINVAL: the shares do not match the trainer, or lack an input of the network; nothing was queued */
MR_STABLE int mr_trainer_step(mr_trainer *t, const mr_batch *batch, mr_error *err);
/* The trainer's streams, one per share of this process, for mr_event_record() and mr_loader_release(). Owned
 * by the trainer. */
MR_STABLE mr_stream *const *mr_trainer_streams(const mr_trainer *t);
/* Queue a forward pass that adds to the evaluation metrics. */
MR_API int mr_trainer_forward(mr_trainer *t, const mr_batch *batch, mr_error *err);
/* Read the values of a point (one of mr_trainer_config.kept) from the first device of this process, as left
 * by its newest share or by mr_trainer_compute_from(): *samples x h x w x c floats to out, which has room for
 * `most` samples. Waits for queued work. MR_EINVAL: the point is not in kept, or lies inside an operation;
 * MR_EUNSUPPORTED: a simulated device. */
MR_API int mr_trainer_values(mr_trainer *t, mr_point point, uint32_t most, float *out, uint32_t *samples,
                             mr_error *err);
/* Compute, on the first device, every point that depends only on these values of a point (one of kept,
 * samples x h x w x c): for example the decoder of an autoencoder alone. samples is at most the size of a
 * share of a batch. */
MR_API int mr_trainer_compute_from(mr_trainer *t, mr_point point, const float *values, uint32_t samples,
                                   mr_error *err);
/* Wait for all queued work, read the exact sums since the last call and reset them to zero. MR_EINVAL: a
 * label was not below the number of classes. */
MR_STABLE int mr_trainer_metrics(mr_trainer *t, mr_metrics *training, mr_metrics *evaluation, mr_error *err);

/* Step times of a process, averaged over the steps that it had finished when the newest batch was begun. */
typedef struct mr_rank_times {
    size_t struct_size;
    uint64_t steps;
    double compute_ms; /* computing its shares on its slowest device */
    double idle_ms;    /* idle time of its devices before a step, waiting for data */
    double network_ms; /* idle time of its devices, waiting for other processes and their gradients */
} mr_rank_times;
/* MR_EINVAL: rank does not exist. */
static inline int mr_trainer_rank_times(const mr_trainer *t, uint32_t rank, mr_rank_times *out,
                                        mr_error *err);

/* The network between the processes of a run, as measured when the trainer was opened, and the buckets of
 * gradients. */
typedef struct mr_trainer_link {
    size_t struct_size;
    double latency_ms;     /* of an exchange of few bytes; 0: one process, or inference */
    double bytes_per_s;    /* rate in each direction, while a process sends and receives */
    uint64_t bytes;        /* gradients of a step */
    uint64_t bucket_bytes; /* in use; 0: all at once */
    uint32_t buckets;      /* number */
    double sum_ms;         /* estimated time of the sums of a step, without overlap */
    const char *wire;      /* of the gradients: "nccl", or as mr_world_wires(); valid as long as the world */
    const char *no_nccl;   /* with GPUs and MR_WIRE_AUTO why it is not NCCL, else ""; valid as long as the
                              trainer */
} mr_trainer_link;
static inline void mr_trainer_link_read(const mr_trainer *t, mr_trainer_link *out);

/* Processes that would train a network together, and the network between them, for mr_exchange_predict(). */
typedef struct mr_exchange_config {
    size_t struct_size;
    uint32_t ranks;        /* number of processes, one share of a batch each; default 2 */
    double latency_s;      /* of an exchange of few bytes (mr_trainer_link.latency_ms); default 0 */
    double bytes_per_s;    /* rate in each direction (mr_trainer_link.bytes_per_s); 0 (default): no limit */
    double step_s;         /* duration of a step of one process without exchange; default 0 */
    uint64_t bucket_bytes; /* as in mr_trainer_config; MR_BUCKET_AUTO (default): the choice of a trainer with
                              several processes */
    bool no_overlap;       /* default false; true: all gradients are complete at the end of backward only, as
                              with simulated devices */
} mr_exchange_config;
static inline void mr_exchange_defaults(mr_exchange_config *cfg);

typedef struct mr_exchange_forecast {
    size_t struct_size;
    uint64_t bytes;        /* gradients of a step */
    uint64_t bucket_bytes; /* 0: all at once */
    uint32_t buckets;      /* number */
    double sum_s;          /* of all sums of a step */
    double exposed_s;      /* of that, after the end of backward: the step is longer by this time */
} mr_exchange_forecast;
/* Predict the time that the exchange of gradients adds to a step. A bucket is summed when backward has
 * completed it and the bucket before is summed; a sum takes two latencies, and the time for 2 (ranks - 1) /
 * ranks of its bytes. Backward is divided over the layers by their operations (mr_layer_row.flops). Late
 * processes, and processor time that the exchange takes from computing, are not included. Pure; any thread.
 * MR_EINVAL: a setting is out of range. */
static inline int mr_exchange_predict(const mr_net *net, const mr_exchange_config *cfg,
                                      mr_exchange_forecast *out, mr_error *err);

/* Results of mr_trainer_config.tune_buckets so far. */
typedef struct mr_bucket_tuning {
    size_t struct_size;
    bool done;      /* tuning has ended, or there is nothing to tune */
    uint32_t sizes; /* number of compared sizes; 0 or 1: only one size is possible */
    uint64_t bytes; /* in use */
    double gain;    /* step rate with this size divided by the rate with the initial size, both measured in
                       alternation */
} mr_bucket_tuning;
static inline void mr_trainer_bucket_tuning(const mr_trainer *t, mr_bucket_tuning *out);

/* Time to an accuracy (mr_fit_config.stop_at_accuracy). Seconds are wall-clock time, summed over all calls of
 * mr_fit() of the run, also before a resume: `seconds` for training, including waits for data and
 * checkpoints, eval_seconds for evaluation. Work after the checkpoint from which a run resumes is not
 * included. Each process measures its own time; checkpoints store the first process's. */
typedef struct mr_goal {
    size_t struct_size;
    double accuracy;              /* the goal, 0 to 1; 0: no goal */
    double seconds, eval_seconds; /* so far: at the end of mr_fit(), or in the loaded checkpoint */
    uint64_t timed_from; /* updates done before time was measured; 0: the times cover the whole run */
    uint64_t updates;    /* updates until the goal was reached; 0: not reached, and the members below are 0 */
    double epochs;       /* `updates` in epochs, when the steps per epoch are known */
    double found;        /* accuracy reached */
    double reached_seconds, reached_eval_seconds; /* until then */
} mr_goal;
static inline void mr_trainer_goal(const mr_trainer *t, mr_goal *out);

typedef struct mr_fit_config {
    size_t struct_size;
    uint64_t epochs; /* stop after this number of epochs, counted from epoch 0; 0: when the loader ends */
    /* Validation data, or NULL (default). The caller opens this loader with epochs UINT64_MAX, order
     * MR_ORDER_SEQUENTIAL or a sampler, training false, repeats at most 1, tail KEEP or PAD (DROP if it drops
     * nothing), the devices of the trainer and a batch of at most mr_trainer_config.batch. Its augment
     * normalises like the training loader's. Its data number their classes like the training data: open their
     * source with mr_source_config.class_names of these. Other settings are MR_EINVAL before the first step.
     * A loader that ends during a validation is MR_EINVAL at that validation. Two settings are not checked:
     * resize and crop may differ from training; with other devices of the same number the validation fails or
     * computes on wrong memory */
    mr_loader *val;
    const char *checkpoint_dir; /* folder for checkpoints (files: see run.h), or NULL. With a folder the
                                   loader's full augmentation text (mr_loader_info.augment) has at most 255
                                   characters, else MR_EINVAL */
    uint64_t checkpoint_steps;  /* also write a checkpoint after every checkpoint_steps steps; 0: only at the
                                   end of each epoch */
    uint32_t keep;              /* number of newest checkpoints to keep, in addition to the best; default 3 */
    uint32_t patience;     /* stop early after this number of epochs without a better val_loss; 0: never */
    uint64_t max_steps;    /* stop after this number of steps in this call, after writing a checkpoint; 0: no
                              limit */
    uint32_t warmup_steps; /* steps excluded from the rates; default 3, fewer in a short epoch */
    const volatile int *stop; /* nonzero: stop after the current step, after writing a checkpoint */
    mr_callbacks callbacks;
    const mr_source_info *data; /* training data: names and numbers of its classes are stored in checkpoints;
                                   NULL: not stored */
    mr_run_folder *folder;      /* checkpoint_dir, locked by mr_run_folder_open(); NULL: mr_fit() locks it */
    bool replace; /* move checkpoints of other runs in checkpoint_dir to a folder in it, old-1, old-2, ...;
                     default false: they are MR_EEXIST */
    /* Called with callbacks.context when the trainer has read the sums of a step: after updates 1, 2, 4, ...,
     * after every 64th, and after every report_steps-th (`due`). Training does not wait for them: a report
     * comes when its step is over, up to two steps late; an epoch's last reports come before its on_epoch.
     * May be NULL. */
    void (*on_step)(void *context, const mr_step_report *report); /* thread: as mr_callbacks */
    uint64_t report_steps;                                        /* 0 (default): no due reports */
    /* NULL, or a snapshot that mr_fit() updates: before the first step, before every checkpoint, after every
     * epoch, and in between at intervals that double until snapshots cost a hundredth of the time. Either all
     * processes have one or none has. */
    mr_snapshot *snapshot;
    /* Stop when an accuracy reaches this value, above 0, at most 1: the accuracy of a validation or, without
     * val, of the training steps of an epoch that this call has run as a whole. mr_trainer_goal() returns the
     * time. 0 (default): never */
    double stop_at_accuracy;
    /* Validate inside epochs, too: after every eval_steps updates of the run (0, default: never), and at each
     * epoch count in eval_at, which may be fractional (0.5, 1.25, ...): after the first step that reaches it.
     * The numbers are above 0, in any order, and must outlive the call; default none. The end of an epoch is
     * validated only once. on_eval (may be NULL) gets each of these validations, with callbacks.context. They
     * count for the best checkpoint, which is then written, and for stop_at_accuracy; patience counts ends of
     * epochs since the lowest loss of any validation. The bits of training do not depend on them. MR_EINVAL
     * without val. */
    uint64_t eval_steps;
    const double *eval_at;
    uint32_t eval_at_count;
    void (*on_eval)(void *context, const mr_eval_report *report); /* thread: as mr_callbacks */
    /* Steps already counted towards max_steps by an earlier call for the same run that lost a process;
     * default 0. */
    uint64_t steps_before;
} mr_fit_config;

MR_STABLE_INLINE void mr_fit_defaults(mr_fit_config *cfg);

/* Train until the loader ends: epochs, evaluation, reports, checkpoints. MR_ECANCELED: stop was set.
 * MR_EBUSY: another thread trains or evaluates with this trainer.
 *
 * checkpoint_dir belongs to one run: the trainer's run, which began with mr_trainer_open() or continues from
 * mr_trainer_load(). MR_EEXIST, before the first step: the folder has checkpoints of another run, or later
 * checkpoints of this run than the trainer's state, or another process trains into it. Only older checkpoints
 * of this run are ever removed (`keep`).
 *
 * A network with a loss against labels needs loaders of labelled data (else MR_EINVAL); other networks also
 * accept unlabelled data from loaders with count_unlabelled.
 *
 * A loss that is not finite, or a thousand times the run's first loss (or the loss of guessing, if larger),
 * is reported within 64 steps and is never the best. It sets `diverged` in its epoch's report unless it has
 * fallen again by the end of the epoch.
 *
 * To resume, open loader and trainer with the checkpoint's settings (run.h), call mr_trainer_load(), then
 * this function: the run continues bit for bit on the same number of devices (cuda: opened deterministic).
 * MR_EINVAL: batch, seed, order or position of loader or trainer differ from the checkpoint's run.
 *
 * The next batch of the loader must follow the last batch that the trainer was trained on, or be the first
 * batch that this loader delivers. MR_EINVAL, before a step: the loader has delivered other batches before,
 * for example to another trainer or to an evaluation. Losses and accuracies do not include steps before the
 * call. Figures of an epoch that was resumed or ended early cover the steps of this call.
 *
 * A validation is pending when `stop`, or an error of the validation loader, ended it. It is done first; its
 * report has steps 0 and the earlier loss and accuracy. A complete run then returns MR_OK without a step.
 * Both cases need an open training loader: with a finite mr_loader_config.epochs mr_loader_open() returns
 * MR_EEND when no batch is left. Therefore open it with epochs UINT64_MAX, and set mr_fit_config.epochs and
 * mr_trainer_config.epochs (after mr_checkpoint_trainer()) to the run's number of epochs.
 *
 * A run that stopped early does not continue unless patience or epochs are larger than before; a run that
 * reached stop_at_accuracy does not continue unless the new value is above the accuracy reached. When the run
 * ends (last epoch, early stopping, stop_at_accuracy, max_steps, stop, an error of the loader) and there is a
 * checkpoint_dir, its state is saved first; only after an error of the trainer itself the previous checkpoint
 * remains the last.
 *
 * last (may be NULL) gets the report of the last epoch that ran, even incomplete, or of the pending
 * validation. All members are 0 when neither ran; after an error in the settings *last is unchanged. */
MR_STABLE_INLINE int mr_fit(mr_trainer *t, mr_loader *loader, const mr_fit_config *cfg, mr_report *last,
                            mr_error *err);
/* Evaluate one epoch of the loader, from its first batch to its last: exact loss and accuracy of the samples
 * that it delivers, with any order, tail and random operations. The rest of an epoch that has begun is read
 * and discarded: after an evaluation that stopped or failed, after batches that the program took, and after a
 * mr_loader_config.start_step above 0. Training sums are unchanged. A failed evaluation leaves no trace
 * in the trainer; a loader that has failed returns its error again.
 *
 * MR_EINVAL: the loader's mean, std and uses_affine are not the trainer's; the loader has less than an epoch
 * left; a label is not a class of the network. */
MR_STABLE int mr_evaluate(mr_trainer *t, mr_loader *loader, double *loss, double *accuracy, uint64_t *count,
                          mr_error *err);
/* mr_evaluate() that returns MR_ECANCELED soon after *stop becomes nonzero. A signal handler may write
 * stop. */
MR_API int mr_evaluate_until(mr_trainer *t, mr_loader *loader, const volatile int *stop, double *loss,
                             double *accuracy, uint64_t *count, mr_error *err);

/* Outputs of one batch, in its order; valid during the call. */
typedef struct mr_outputs {
    size_t struct_size;
    const uint64_t *ids;   /* sample numbers; MR_NOWHERE for padding and skipped samples */
    const int32_t *labels; /* -1: padding, a skipped sample, or a sample without label */
    uint32_t count, classes;
    const float *logits; /* count x classes, with the network's logit factor. A network with one logit gives
                            two numbers, 0 and this logit. A network with targets gives count x its outputs:
                            logits for MR_TARGET_LABELS, else the values themselves */
} mr_outputs;

typedef struct mr_outputs_config {
    size_t struct_size;
    /* Called after each batch, from the calling thread; an error ends the evaluation and is its result */
    int (*on_outputs)(void *context, const mr_outputs *outputs, mr_error *err);
    void *context;
    const volatile int *stop; /* as for mr_evaluate_until(); may be NULL */
} mr_outputs_config;
static inline void mr_outputs_defaults(mr_outputs_config *cfg);

/* mr_evaluate_until() that also reports the logits of every sample of this process. The trainer must have
 * inference set and the point of mr_net_outputs() in mr_trainer_config.kept; the loader must have keep_host
 * set. The logits have the bits that evaluation computes. With loss, accuracy and count all NULL nothing is
 * summed, and samples need no labels.
 *
 * MR_EINVAL        on_outputs is NULL, the loader lacks keep_host, the network has no classes or the trainer
 *                  does not keep the point
 * MR_EUNSUPPORTED  a device computes several shares of a batch, or is simulated */
MR_API int mr_evaluate_outputs(mr_trainer *t, mr_loader *loader, const mr_outputs_config *cfg, double *loss,
                               double *accuracy, uint64_t *count, mr_error *err);

/* Hash all weights on a replica, in canonical order. All replicas have the same hash. */
MR_API int mr_trainer_weights_hash(mr_trainer *t, uint32_t replica, uint64_t *lo, uint64_t *hi,
                                   mr_error *err);

/* ------------------------------------------------------------------------------ struct sizes
 *
 * Nothing to read here for a program in C or C++. The library exports the functions below in place of the
 * inline ones above: each inline function passes the size of its struct in the caller's header (base.h). A
 * program in another language sets struct_size and calls ..._sized. */

MR_API int mr_parts_deal_sized(mr_parts *out, mr_world *world, uint32_t device_count, uint32_t parts,
                               mr_error *err);
static inline int mr_parts_deal(mr_parts *out, mr_world *world, uint32_t device_count, uint32_t parts,
                                mr_error *err)
{
    if (out) out->struct_size = sizeof *out;
    return mr_parts_deal_sized(out, world, device_count, parts, err);
}

MR_STABLE void mr_trainer_defaults_sized(mr_trainer_config *cfg, size_t struct_size);
static inline void mr_trainer_defaults(mr_trainer_config *cfg)
{
    mr_trainer_defaults_sized(cfg, sizeof *cfg);
}

MR_API bool mr_trainer_op_sized(const mr_trainer *t, uint32_t at, mr_trainer_op *out);
static inline bool mr_trainer_op_at(const mr_trainer *t, uint32_t at, mr_trainer_op *out)
{
    if (out) out->struct_size = sizeof *out;
    return mr_trainer_op_sized(t, at, out);
}

MR_API int mr_trainer_rank_times_sized(const mr_trainer *t, uint32_t rank, mr_rank_times *out, mr_error *err);
static inline int mr_trainer_rank_times(const mr_trainer *t, uint32_t rank, mr_rank_times *out, mr_error *err)
{
    if (out) out->struct_size = sizeof *out;
    return mr_trainer_rank_times_sized(t, rank, out, err);
}

MR_API void mr_trainer_link_read_sized(const mr_trainer *t, mr_trainer_link *out);
static inline void mr_trainer_link_read(const mr_trainer *t, mr_trainer_link *out)
{
    if (out) out->struct_size = sizeof *out;
    mr_trainer_link_read_sized(t, out);
}

MR_API void mr_exchange_defaults_sized(mr_exchange_config *cfg, size_t struct_size);
static inline void mr_exchange_defaults(mr_exchange_config *cfg)
{
    mr_exchange_defaults_sized(cfg, sizeof *cfg);
}

MR_API int mr_exchange_predict_sized(const mr_net *net, const mr_exchange_config *cfg,
                                     mr_exchange_forecast *out, mr_error *err);
static inline int mr_exchange_predict(const mr_net *net, const mr_exchange_config *cfg,
                                      mr_exchange_forecast *out, mr_error *err)
{
    if (out) out->struct_size = sizeof *out;
    return mr_exchange_predict_sized(net, cfg, out, err);
}

MR_API void mr_trainer_bucket_tuning_sized(const mr_trainer *t, mr_bucket_tuning *out);
static inline void mr_trainer_bucket_tuning(const mr_trainer *t, mr_bucket_tuning *out)
{
    if (out) out->struct_size = sizeof *out;
    mr_trainer_bucket_tuning_sized(t, out);
}

MR_API void mr_trainer_goal_sized(const mr_trainer *t, mr_goal *out);
static inline void mr_trainer_goal(const mr_trainer *t, mr_goal *out)
{
    if (out) out->struct_size = sizeof *out;
    mr_trainer_goal_sized(t, out);
}

MR_STABLE void mr_fit_defaults_sized(mr_fit_config *cfg, size_t struct_size);
static inline void mr_fit_defaults(mr_fit_config *cfg) { mr_fit_defaults_sized(cfg, sizeof *cfg); }

MR_STABLE int mr_fit_sized(mr_trainer *t, mr_loader *loader, const mr_fit_config *cfg, mr_report *last,
                           mr_error *err);
static inline int mr_fit(mr_trainer *t, mr_loader *loader, const mr_fit_config *cfg, mr_report *last,
                         mr_error *err)
{
    if (last) last->struct_size = sizeof *last;
    return mr_fit_sized(t, loader, cfg, last, err);
}

MR_API void mr_outputs_defaults_sized(mr_outputs_config *cfg, size_t struct_size);
static inline void mr_outputs_defaults(mr_outputs_config *cfg)
{
    mr_outputs_defaults_sized(cfg, sizeof *cfg);
}

#ifdef __cplusplus
}
#endif
#endif
