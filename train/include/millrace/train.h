/* millrace/train.h: networks, losses, optimizers, schedules, replicas, checkpoints and the training loop.
 *
 * A network is a list of layers with no device in it. A trainer puts it on any number of devices (replicas),
 * which always hold the same weights: one step on R replicas is one step on one replica with the same global
 * batch. A checkpoint holds one set of weights and knows nothing of replicas. */
#ifndef MILLRACE_TRAIN_H
#define MILLRACE_TRAIN_H

#include "millrace/pipeline.h"
#include "millrace/ranks.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------------ networks */

typedef struct mr_net mr_net;

/* h x w x c uint8 pictures in. The first error in a builder call sticks: later calls do nothing and
 * mr_net_check() tells it. */
MR_API int mr_net_create(mr_net **out, const char *name, uint32_t h, uint32_t w, uint32_t c);
/* Sequences of `length` whole numbers from 0 to values - 1 in: field 0 of a batch, int32. The first layer
 * gets 1 x length x values, each number a row with a single 1; a number that is none of them (padding) a row
 * of zeros. A recurrent layer that is the only one to take them looks the numbers up: there are no such rows.
 */
MR_API int mr_net_create_numbers(mr_net **out, const char *name, uint32_t length, uint32_t values);
MR_API bool mr_net_takes_numbers(const mr_net *net);
/* A network without such an input: mr_net_field() gives it its inputs. Its data set needs no pictures. */
MR_API int mr_net_create_bare(mr_net **out, const char *name);
MR_API void mr_net_destroy(mr_net *net);

/* A further input: numbers that come with each sample, a field that the loader delivers
 * (mr_loader_config.fields): PLAIN of one shape, or a MASK. They become the current point, h x w x c in that
 * order; 0 stands for 1. A field may be an input of layers, or what a loss compares an output with: a second
 * output has its target there.
 *
 *   values 0     real numbers of any type: (x - mean) / std; std 0 stands for 1
 *   values n     whole numbers of any type, h x w of them: h x w x n, each a row with a single 1 at its
 *                number; one that is none of 0 .. n - 1 a row of zeros
 *
 * No gradient leads to a field. At most MR_LOADER_MAX_FIELDS, each once; what takes numbers
 * (mr_net_create_numbers()) has taken one. */
typedef struct mr_field_input {
    const char *name; /* copied */
    uint32_t h, w, c;
    uint32_t values;
    float mean, std;
} mr_field_input;
MR_API void mr_net_field(mr_net *net, const mr_field_input *field);
/* Further input number at, from 0, of which the name is the network's; that of targets is one, too. False
 * past the end. */
MR_API bool mr_net_field_at(const mr_net *net, uint32_t at, mr_field_input *out);

typedef enum mr_padding { MR_PAD_VALID = 0, MR_PAD_SAME = 1 } mr_padding;

/* The activation that a call is given is part of its layer; silu and gelu become a layer behind it. */
MR_API void mr_net_conv2d(mr_net *net, uint32_t filters, uint32_t kernel, uint32_t stride, mr_padding padding,
                          mr_activation activation);
MR_API void mr_net_max_pool(mr_net *net, uint32_t size, uint32_t stride);
MR_API void mr_net_avg_pool(mr_net *net, uint32_t size, uint32_t stride);
MR_API void mr_net_dense(mr_net *net, uint32_t units, mr_activation activation); /* flattens what comes before
                                                                                    it */
/* Recurrent layers over the steps of 1 x steps x values, from a state of zeros: gated recurrent units and
 * long short-term memory (MR_OP_GRU, MR_OP_LSTM say what they compute). sequences: the output is the state
 * after every step, 1 x steps x units; else after the last one, 1 x 1 x units. Weights begin as Glorot's
 * whatever mr_net_init() says, recurrent ones with orthogonal columns, biases at zero but for the forget
 * gate's, which are one. */
MR_API void mr_net_gru(mr_net *net, uint32_t units, bool sequences);
MR_API void mr_net_lstm(mr_net *net, uint32_t units, bool sequences);
MR_API void mr_net_activation(mr_net *net, mr_activation activation);
MR_API void mr_net_dropout(mr_net *net, float rate);
/* Stochastic depth (Huang et al. 2016): in training a sample's values are all kept, and divided by 1 - rate,
 * or all dropped. At the end of a branch, before mr_net_add() puts it to the short cut. */
MR_API void mr_net_drop_samples(mr_net *net, float rate);
MR_API void mr_net_batch_norm(mr_net *net, float momentum, float epsilon, mr_activation activation);
/* Each sample normalised by itself, with a scale and a shift for each channel (MR_OP_GROUPNORM): over all
 * pixels and the channels of a group; over the channels at each pixel, or step of a sequence. groups divides
 * the channels; epsilon above 0. */
MR_API void mr_net_group_norm(mr_net *net, uint32_t groups, float epsilon);
MR_API void mr_net_layer_norm(mr_net *net, float epsilon);
/* Pictures so many times as high and wide (MR_OP_UPSAMPLE). */
MR_API void mr_net_upsample(mr_net *net, uint32_t factor, bool bilinear);
/* Each whole number becomes its row of a table of `units` columns (MR_OP_EMBEDDING): the current point must
 * be the numbers themselves (mr_net_create_numbers(), or mr_net_field() with values), which are looked up,
 * not made into rows with a single 1. The table begins as the weights of a dense layer do. */
MR_API void mr_net_embedding(mr_net *net, uint32_t units);

/* Local response normalisation across channels (Krizhevsky et al. 2012; MR_OP_LRN): every value divided by
 * (bias + alpha * the sum of squares over the channels up to radius away)^beta. */
MR_API void mr_net_lrn(mr_net *net, uint32_t radius, float bias, float alpha, float beta);

/* Softmax over the channels at each pixel, or step of a sequence, and its logarithm (MR_OP_SOFTMAX): for
 * weights and mixtures inside of a network. A loss against labels takes logits and brings its own; logarithms
 * of probabilities are logits, too. */
MR_API void mr_net_softmax(mr_net *net);
MR_API void mr_net_log_softmax(mr_net *net);

/* A convolution with every choice open. */
typedef struct mr_conv {
    uint32_t filters, kernel, stride;
    mr_padding padding;
    uint32_t pad; /* rows and columns on every side, added to what padding says (use with MR_PAD_VALID) */
    bool no_bias;
    mr_activation activation;
    uint32_t kernel_w; /* columns of the window, where they are not `kernel` as its rows are; 0: they are */
    /* A filter sees the channels of its own group alone; divides channels in and filters. As many as
     * channels: depthwise. 0 means 1 */
    uint32_t groups;
} mr_conv;
MR_API void mr_net_conv(mr_net *net, const mr_conv *conv);

/* A pooling with every choice open. */
typedef struct mr_pool {
    uint32_t kernel, stride;
    mr_padding padding; /* MR_PAD_SAME puts the odd row and column behind, as TensorFlow does */
    uint32_t pad;       /* rows and columns on every side, instead (use with MR_PAD_VALID) */
    bool average;       /* of the pixels that are there; else the largest of them */
    uint32_t kernel_w;  /* columns of the window, where they are not `kernel` as its rows are; 0: they are */
} mr_pool;
MR_API void mr_net_pool(mr_net *net, const mr_pool *pool);

/* A batch normalisation with every choice open. */
typedef struct mr_norm {
    float momentum, epsilon;
    mr_activation activation;
    bool no_scale; /* shift only */
} mr_norm;
MR_API void mr_net_norm(mr_net *net, const mr_norm *norm);

/* A transposed convolution (MR_OP_CONV2D_TRANSPOSED). Its output has (in - 1) * stride + kernel - 2 pad rows
 * with MR_PAD_VALID, and in * stride with MR_PAD_SAME, for which the kernel must be no smaller than the
 * stride. */
MR_API void mr_net_conv_transposed(mr_net *net, const mr_conv *conv);
/* The same values, in the order h, w, c, as another shape of as many. */
MR_API void mr_net_reshape(mr_net *net, uint32_t h, uint32_t w, uint32_t c);

MR_API void mr_net_max_pool_padded(mr_net *net, uint32_t size, uint32_t stride, uint32_t pad);
MR_API void mr_net_avg_pool_padded(mr_net *net, uint32_t size, uint32_t stride, uint32_t pad); /* padding is
                                                                                                   not counted
                                                                                                */
MR_API void mr_net_global_avg_pool(mr_net *net); /* to 1 x 1 x c */
MR_API void mr_net_global_max_pool(mr_net *net);
MR_API void mr_net_pad_channels(mr_net *net, uint32_t before, uint32_t behind); /* with zeros */
/* The network's logits are its last layer's output times this, finite and above 0 (a temperature of 1 /
 * factor); without this call 1. Anywhere among the calls, once. */
MR_API void mr_net_logit_factor(mr_net *net, float factor);

/* How the weights of convolutions and dense layers added from here on begin; networks start with Glorot. All
 * are uniform, so that their bits need no more of a maths library than a square root. */
typedef enum mr_init {
    MR_INIT_GLOROT = 0, /* variance 2 / (fan_in + fan_out) (Glorot & Bengio 2010) */
    MR_INIT_HE_IN,      /* variance 2 / fan_in (He et al. 2015) */
    MR_INIT_HE_OUT,     /* variance 2 / fan_out */
} mr_init;
MR_API void mr_net_init(mr_net *net, mr_init init);
/* Or with this standard deviation, finite and above 0, whatever their fans; until mr_net_init(). */
MR_API void mr_net_init_deviation(mr_net *net, float deviation);
/* What the biases of convolutions and dense layers added from here on begin at, finite; networks start with
 * 0. */
MR_API void mr_net_init_bias(mr_net *net, float value);

/* Which parameters of layers added from here on weight decay is for. It is mr_update_desc.weight_decay times
 * w as a part of the gradient: the slope of weight_decay / 2 times the sum of squares, an L2 penalty of
 * weight_decay / 2 in Keras' words and of weight_decay in TensorFlow's (tf.nn.l2_loss). The loss that is
 * reported is without the penalty. MR_UPDATE_ADAMW and _LAMB decay the same parameters in their own way. */
typedef enum mr_net_decays {
    MR_NET_DECAY_AS_TOLD = 0, /* what mr_trainer_config.decay_on says; networks start with this */
    MR_NET_DECAY_WEIGHTS,     /* weights, of recurrent layers the recurrent ones too, whatever it says */
    MR_NET_DECAY_NONE,
} mr_net_decays;
MR_API void mr_net_decay(mr_net *net, mr_net_decays on);
/* Does a layer not go by mr_trainer_config.decay_on? */
MR_API bool mr_net_has_own_decay(const mr_net *net);

/* Branches. A point is the output of a layer: mr_net_here() names the one the next layer would take,
 * mr_net_from() makes the next layer take another, mr_net_add() sums the current one and another of the same
 * shape, mr_net_concat() puts the channels of others of as many pixels behind its own, mr_net_scale()
 * multiplies each channel of the current one by its factor in another of 1 x 1 x as many channels. A residual
 * block:
 *
 *     in = mr_net_here(net);                       shortcut first, if it has layers of its own
 *     mr_net_conv(net, ...), ...;  short_cut = mr_net_here(net);
 *     mr_net_from(net, in);  mr_net_conv(net, ...), ...;
 *     mr_net_add(net, short_cut, MR_ACT_RELU);
 *
 * A point may be taken by any number of layers, every point but the last by at least one layer or loss. */
typedef uint32_t mr_point;
MR_API mr_point mr_net_here(const mr_net *net);
MR_API void mr_net_from(mr_net *net, mr_point point);
MR_API void mr_net_add(mr_net *net, mr_point other, mr_activation activation);
MR_API void mr_net_concat(mr_net *net, const mr_point *others, uint32_t count); /* a layer for each */
MR_API void mr_net_scale(mr_net *net, mr_point factors);

/* A draw from normal distributions (MR_OP_SAMPLE) whose means are the current point:
 * mean + exp(factor * log_variance) * draw; factor above 0, 0.5 for what its name says. */
MR_API void mr_net_sample(mr_net *net, mr_point log_variance, float factor);

/* Losses. A network that names none is trained on the softmax cross-entropy of its last point against the
 * label. One that names its losses is trained on their sum, each times its weight (finite, above 0); every
 * point must then be taken by a layer or a loss. A loss takes the current point, which stays the current one.
 * What mr_metrics and reports call loss is that sum, a mean over samples; accuracy is that of the first loss
 * against labels, or against targets of several labels (below). An autoencoder whose pixels are to be
 * probabilities:
 *
 *     ...                                          layers, the last without activation
 *     mr_net_loss_pair(net, MR_PAIR_CROSS_ENTROPY, 0, 1);          point 0: the pictures themselves
 *
 * The pictures are as the input operation gives them: in [0, 1] with mean 0 and std 255.
 *
 * A loss against labels takes a vector of logits, one for each class. A vector of ONE tells two classes
 * apart: binary cross-entropy of its sigmoid against labels 0 and 1, and a logit above 0 stands for 1. */
MR_API void mr_net_loss_labels(mr_net *net, float weight);
MR_API void mr_net_loss_pair(mr_net *net, mr_pair_loss kind, mr_point other, float weight);

/* Targets: what the data want of a network that tells no classes apart. Its last point is compared with a
 * field of as many numbers, by a loss that is the mean over them and then over the samples. */
typedef enum mr_target_loss {
    MR_TARGET_NONE = 0, /* there are none: the network has losses of its own, or classes */
    MR_TARGET_LABELS,   /* several labels a sample: 0 or 1, or between, against the sigmoid of a logit each
                           (MR_PAIR_CROSS_ENTROPY). Accuracy is the share of labels that are told right, of
                           all labels of all samples: above 0.5 where the target is */
    MR_TARGET_SQUARES,  /* real numbers: the square of what they are missed by. No accuracy */
    MR_TARGET_ABSOLUTE, /* how far they are missed */
    MR_TARGET_HUBER,    /* half the square up to 1, beyond that how far, less 1 / 2 */
} mr_target_loss;
enum { MR_TARGET_COUNT = MR_TARGET_HUBER + 1 };

/* The current point, the last of a network that names no other loss, against this field of the batches
 * (mr_net_field()), which has as many numbers of any type. Targets that are not finite, of LABELS not in
 * [0, 1], end a run with MR_EINVAL. In bf16 and f16 they are rounded as activations are.
 *
 * field NULL: the network tells outputs and no loss, of data without targets. Such a one is for inference,
 * and takes checkpoints of the other. */
MR_API void mr_net_targets(mr_net *net, mr_target_loss kind, const char *field);
MR_API mr_target_loss mr_net_target_loss(const mr_net *net);
MR_API uint32_t mr_net_target_count(const mr_net *net); /* numbers of a sample; 0: there are no targets */
/* The point that mr_evaluate_outputs() tells: that of mr_net_logits(), or the one that is compared with
 * targets; false: the network has neither. */
MR_API bool mr_net_outputs(const mr_net *net, mr_point *out);

/* Loss number at, from 0, of those that are named; false past the end. */
typedef struct mr_loss_row {
    size_t struct_size;
    bool labels; /* else a pair: */
    mr_pair_loss pair;
    mr_point in, other; /* other: of a pair */
    float weight;
} mr_loss_row;
MR_API bool mr_net_loss_sized(const mr_net *net, uint32_t at, mr_loss_row *out);
static inline bool mr_net_loss(const mr_net *net, uint32_t at, mr_loss_row *out)
{
    if (out) out->struct_size = sizeof *out;
    return mr_net_loss_sized(net, at, out);
}
/* The point whose values, times the factor of mr_net_logit_factor(), are the logits of the (first) loss
 * against labels; false: the network tells no classes apart. */
MR_API bool mr_net_logits(const mr_net *net, mr_point *out);
/* The first point that is drawn (mr_net_sample()); false: none is. */
MR_API bool mr_net_drawn(const mr_net *net, mr_point *out);
/* Pixels and channels of a point; false: there is no such point. */
MR_API bool mr_net_shape(const mr_net *net, mr_point point, uint32_t *h, uint32_t *w, uint32_t *c);

/* Layers that are added from here on are of this block ("block1", up to 15 letters), which mr_net_place()
 * knows; "": of none. */
MR_API void mr_net_block(mr_net *net, const char *name);
/* Where layers are computed, for mr_trainer_config.place: "block1=0,rest=1" puts the layers of a block on a
 * replica's device 0 and all others on 1; "0-5=0,rest=1" goes by their numbers. Without rest every layer must
 * be named. place: room for mr_net_layer_count() numbers; *devices: how many a replica needs. MR_EINVAL: err
 * says which part of the text is wrong. */
MR_API int mr_net_place(const mr_net *net, const char *text, uint32_t *place, uint32_t *devices,
                        mr_error *err);
MR_API uint32_t mr_net_layer_count(const mr_net *net);
/* Layers that a text names, for mr_trainer_config.freeze: their numbers as mr_net_layer() counts them and
 * ranges of them ("7", "0-40", "41-"), blocks, kinds as they begin a layer's name ("batch_norm"), "head" (the
 * last layer with weights) and "backbone" (all before it), separated by commas. chosen: room for
 * mr_net_layer_count() of them, all of which are written. MR_EINVAL: err says which part of the text is
 * wrong; or none of these has parameters. */
MR_API int mr_net_choose(const mr_net *net, const char *text, bool *chosen, mr_error *err);

/* MR_OK when the layers fit together and end in losses, or in a vector of logits (see losses). */
MR_API int mr_net_check(const mr_net *net, mr_error *err);
MR_API uint64_t mr_net_param_count(const mr_net *net); /* trained */
MR_API uint64_t mr_net_state_count(const mr_net *net); /* kept beside them: running means and variances */
MR_API uint32_t mr_net_class_count(const mr_net *net); /* 2 of one logit; 0: it has no loss against labels */
MR_API const char *mr_net_name(const mr_net *net);

/* A network as bytes, without its name and targets: what a checkpoint keeps (train/state/CHECKPOINT.md).
 * *bytes is to be freed by the caller. Decoding makes the network by the builder's calls, and takes nothing
 * that encoding would not have written; what it makes may want its targets still, so mr_net_check() is the
 * caller's.
 *
 * MR_EUNSUPPORTED  encoding: there are layers behind its targets, or a builder call has failed
 * MR_EFORMAT       decoding: these bytes are no network */
MR_API int mr_net_encode(const mr_net *net, void **bytes, size_t *count, mr_error *err);
MR_API int mr_net_decode(mr_net **out, const char *name, const void *bytes, size_t count, mr_error *err);

/* One row of `summary`, layer at from 0; false past the end. A layer that does not take the output of the one
 * before it says so ("conv2d 1x1/2 64 from 3"), what takes a second one names it ("add 3 relu"). */
typedef struct mr_layer_row {
    size_t struct_size;
    char name[48], output[48];
    uint64_t params;
    double flops;
    mr_point in, in2; /* the points it takes */
    bool takes_two;   /* else there is no in2 */
    bool is_input;    /* a field: it takes no point, and there is no in */
} mr_layer_row;
MR_API bool mr_net_layer_sized(const mr_net *net, uint32_t at, mr_layer_row *out);
static inline bool mr_net_layer(const mr_net *net, uint32_t at, mr_layer_row *out)
{
    if (out) out->struct_size = sizeof *out;
    return mr_net_layer_sized(net, at, out);
}

/* ------------------------------------------------------------------------------ settings */

typedef enum mr_schedule_kind {
    MR_LR_CONSTANT = 0,
    MR_LR_STEP,   /* lr * factor^k, k = milestones passed (epochs) */
    MR_LR_COSINE, /* lr -> floor over all epochs, half a cosine */
    MR_LR_DECAY,  /* lr / (1 + decay * updates done): the reference settings' "decay" */
    /* lr, then other rates: milestones[2 i + 1] from epoch milestones[2 i] on; milestone_count is twice their
     * number */
    MR_LR_PIECEWISE,
    MR_LR_EXPONENTIAL, /* lr * factor^epochs, parts of epochs included, not below floor_lr */
    /* Smith 2018, linear pieces over all epochs: lr / factor -> lr over a share `decay` of them, back over as
     * much, then down to floor_lr */
    MR_LR_ONE_CYCLE,
    MR_LR_LINEAR, /* lr -> floor over all epochs, a straight line */
} mr_schedule_kind;
enum { MR_LR_KIND_COUNT = MR_LR_LINEAR + 1 };

typedef struct mr_schedule {
    mr_schedule_kind kind;
    float lr, factor, floor_lr, decay;
    uint32_t milestone_count;
    double milestones[16]; /* epochs; PIECEWISE: and rates */
    double warmup_epochs;  /* lr rises linearly from lr / steps to lr, whatever kind follows; 0: none */
} mr_schedule;

/* Learning rate of the update number `update` (0 for the first) of a run with that many steps per epoch and
 * epochs. */
MR_API float mr_schedule_lr(const mr_schedule *s, uint64_t update, uint64_t steps_per_epoch, uint64_t epochs);
/* "constant", "cosine", "cosine:FLOOR", "linear", "linear:FLOOR", "step:E1/E2/...,factor=F", "decay:D",
 * "piecewise:LR@E1/LR@E2/...", "exponential:FACTOR" or "exponential:FACTOR:FLOOR", each with optional
 * ",warmup=E"; "onecycle", "onecycle:DIVISOR" or "onecycle:DIVISOR:FLOOR" with optional ",up=SHARE" (10, a
 * hundredth of lr / DIVISOR, 0.45). */
MR_API int mr_schedule_parse(mr_schedule *out, const char *text, float lr, mr_error *err);

/* A named network with the settings its source used. */
typedef struct mr_model {
    const char *name, *id, *help; /* "cifar-cnn", "N1", one line */
    bool numbers;                 /* takes sequences of w numbers from 0 to c - 1, not pictures; h is 1 */
    uint32_t h, w, c;             /* natural input; 0: any */
    uint32_t classes;
    uint64_t param_count; /* at natural input and classes */
    uint32_t batch, epochs;
    mr_update_desc update; /* kind, lr and constants */
    mr_schedule schedule;
    const char *augment;
    float label_smoothing;
} mr_model;

MR_API uint32_t mr_model_count(void);
MR_API const mr_model *mr_model_at(uint32_t at);
MR_API const mr_model *mr_model_find(const char *name); /* by name or id; NULL */
/* Build it for pictures (numbers: 1 x length x values) of this size and this many classes (0: its own). */
MR_API int mr_model_build(const mr_model *m, uint32_t h, uint32_t w, uint32_t c, uint32_t classes,
                          mr_net **out, mr_error *err);

/* ------------------------------------------------------------------------------ trainer */

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

/* A folder of checkpoints belongs to one run, and one process at a time writes there.
 *
 * Makes the folder where it is missing and takes it for this process, until it is closed or the process ends,
 * however it does. A program that looks in it for the checkpoint to go on from takes it first and gives it to
 * mr_fit(), which otherwise takes it itself. MR_EEXIST: another process, which err names, has it. */
typedef struct mr_run_folder mr_run_folder;
MR_API int mr_run_folder_open(mr_run_folder **out, const char *path, mr_error *err);
MR_API void mr_run_folder_close(mr_run_folder *folder); /* accepts NULL */
/* Something to tell the user, or NULL: the file system offers no locks. */
MR_API const char *mr_run_folder_note(const mr_run_folder *folder);
/* The name of a checkpoint, whole or not, that is in it; MR_ENOENT: there is none. */
MR_API int mr_run_folder_find_any(const mr_run_folder *folder, char *name, size_t name_bytes, mr_error *err);

typedef struct mr_snapshot mr_snapshot; /* below */

/* As open, for a process that holds a snapshot of the folder's run and knows that the process that has the
 * folder is lost to the run. That one may only be stopped: it has lost the folder, and mr_fit() ends there
 * with MR_EPEER when it is to write a checkpoint. */
MR_API int mr_run_folder_take_over(mr_run_folder **out, const char *path, const mr_snapshot *of_run,
                                   mr_error *err);
/* Has another process taken it over? */
MR_API bool mr_run_folder_was_lost(const mr_run_folder *folder);

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
 * To resume, open the loader with start_epoch and start_step of the checkpoint, mr_trainer_load() it, and
 * call this: the run goes on bit for bit on the same number of devices (cuda: opened deterministic). Figures
 * of an epoch that is resumed, or ended early, are of the steps that ran in this call. A validation that was
 * still to come is done first; its report has steps 0, loss and accuracy as they were. A run that was stopped
 * early stays so, unless patience or epochs are more than they were; one that has reached stop_at_accuracy,
 * unless that is above the accuracy it had then. Whatever ends the run
 * (the last epoch, early stopping, stop_at_accuracy, max_steps, stop, an error of the loader), what was
 * trained is saved first when there is a checkpoint_dir; only an error of the trainer itself leaves the last
 * one standing. last (may be NULL) gets the report of the last epoch, or part of one, that ran. */
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

/* ------------------------------------------------------------------------------ checkpoints */

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

#ifdef __cplusplus
}
#endif
#endif
