/* millrace/net.h: networks, losses, schedules and named models. A network is a list of layers with no device
 * in it; a trainer puts it on devices. */
#ifndef MILLRACE_NET_H
#define MILLRACE_NET_H

#include "millrace/formats.h"
#include "millrace/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

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
                                                                                                  not
                                                                                                  counted */
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
/* What rows of targets that are too short are filled with (mr_loader_field.pad), which is no target: NaN, -1,
 * or 255 of bytes; 0 of a field with one number a sample. */
MR_API double mr_target_pad(const mr_field *field);
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

/* ------------------------------------------------------------------------------ schedules and models */

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

#ifdef __cplusplus
}
#endif
#endif
