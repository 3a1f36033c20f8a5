/* millrace/net.h: networks, losses, schedules and named models. A network is a list of layers without
 * devices; a trainer places it on devices. */
#ifndef MILLRACE_NET_H
#define MILLRACE_NET_H

#include "millrace/formats.h"
#include "millrace/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mr_net mr_net;

/* Create a network whose input is h x w x c uint8 pictures. After the first error of a builder call later
 * calls do nothing, and mr_net_check() returns the error. */
MR_API int mr_net_create(mr_net **out, const char *name, uint32_t h, uint32_t w, uint32_t c);
/* Create a network whose input is sequences of `length` whole numbers from 0 to values - 1: field 0 of a
 * batch, int32. The first layer gets 1 x length x values: each number is a row with a single 1, and a number
 * out of range (padding) a row of zeros. If only one layer takes the input and it is recurrent, it looks the
 * numbers up in a table instead. */
MR_API int mr_net_create_numbers(mr_net **out, const char *name, uint32_t length, uint32_t values);
/* Return true for a network of mr_net_create_numbers(). */
MR_API bool mr_net_takes_numbers(const mr_net *net);
/* Create a network without pictures or numbers as input: mr_net_field() adds its inputs. Its data set needs
 * no pictures. */
MR_API int mr_net_create_bare(mr_net **out, const char *name);
/* Destroy a network after the trainers that use it are closed. Accepts NULL. */
MR_STABLE void mr_net_destroy(mr_net *net);

/* Add an input: a field that the loader delivers with each sample (mr_loader_config.fields), PLAIN of one
 * shape or a MASK. It becomes the current point, h x w x c in that order; a dimension of 0 means 1. A field
 * may be an input of layers, or the target of a loss, for example of a second output.
 *
 *   values 0     real numbers of any type: (x - mean) / std; std 0 means 1
 *   values n     h x w whole numbers of any type become h x w x n: each number a row with a single 1 at its
 *                value, a number outside 0 .. n - 1 a row of zeros
 *
 * A field gets no gradient. A network has at most MR_LOADER_MAX_FIELDS fields, each once; the input of
 * mr_net_create_numbers() counts as one. */
typedef struct mr_field_input {
    const char *name; /* copied */
    uint32_t h, w, c;
    uint32_t values;
    float mean, std;
} mr_field_input;
MR_API void mr_net_field(mr_net *net, const mr_field_input *field);
/* Return added input number `at`, counted from 0; its name belongs to the network. The field of targets is
 * included. False past the end. */
MR_API bool mr_net_field_at(const mr_net *net, uint32_t at, mr_field_input *out);

typedef enum mr_padding { MR_PAD_VALID = 0, MR_PAD_SAME = 1 } mr_padding;

/* The activation of a call is part of its layer, except that silu and gelu become a layer after it. */
MR_API void mr_net_conv2d(mr_net *net, uint32_t filters, uint32_t kernel, uint32_t stride, mr_padding padding,
                          mr_activation activation);
MR_API void mr_net_max_pool(mr_net *net, uint32_t size, uint32_t stride);
MR_API void mr_net_avg_pool(mr_net *net, uint32_t size, uint32_t stride);
MR_API void mr_net_dense(mr_net *net, uint32_t units, mr_activation activation); /* flattens its input */
/* Recurrent layers over the steps of 1 x steps x values, from a state of zeros: gated recurrent units and
 * long short-term memory (formulas: mr_recurrent_desc). sequences true: the output is the state after every
 * step, 1 x steps x units; false: after the last step, 1 x 1 x units. Initial weights are Glorot's regardless
 * of mr_net_init(), recurrent weights have orthogonal columns, biases are 0, but 1 for the forget gate. */
MR_API void mr_net_gru(mr_net *net, uint32_t units, bool sequences);
MR_API void mr_net_lstm(mr_net *net, uint32_t units, bool sequences);
/* Add an activation as a layer of its own; not MR_ACT_NONE. */
MR_API void mr_net_activation(mr_net *net, mr_activation activation);
/* Dropout (MR_OP_DROPOUT): in training each value is dropped with probability rate, [0, 1). */
MR_API void mr_net_dropout(mr_net *net, float rate);
/* Stochastic depth (Huang et al. 2016): in training all values of a sample are either kept and divided by 1 -
 * rate, or dropped. Use it at the end of a branch, before mr_net_add() adds the branch to the shortcut. */
MR_API void mr_net_drop_samples(mr_net *net, float rate);
/* Batch normalisation (MR_OP_BATCHNORM) with the activation after it. */
MR_API void mr_net_batch_norm(mr_net *net, float momentum, float epsilon, mr_activation activation);
/* Normalise each sample alone, with a scale and a shift per channel (MR_OP_GROUPNORM). group_norm: over all
 * pixels and the channels of a group; layer_norm: over the channels at each pixel, or at each step of a
 * sequence. groups divides the number of channels; epsilon is above 0. */
MR_API void mr_net_group_norm(mr_net *net, uint32_t groups, float epsilon);
MR_API void mr_net_layer_norm(mr_net *net, float epsilon);
/* Multiply height and width of pictures by factor (MR_OP_UPSAMPLE). */
MR_API void mr_net_upsample(mr_net *net, uint32_t factor, bool bilinear);
/* Replace each whole number by its row of a table with `units` columns (MR_OP_EMBEDDING). The current point
 * must be an input of numbers (mr_net_create_numbers(), or mr_net_field() with values). The table is
 * initialised like the weights of a dense layer. */
MR_API void mr_net_embedding(mr_net *net, uint32_t units);

/* Local response normalisation across channels (Krizhevsky et al. 2012; MR_OP_LRN): each value is divided by
 * (bias + alpha * the sum of squares over the channels at most radius away)^beta. */
MR_API void mr_net_lrn(mr_net *net, uint32_t radius, float bias, float alpha, float beta);

/* Softmax over the channels at each pixel, or step of a sequence, and its logarithm (MR_OP_SOFTMAX): for
 * weights and mixtures inside a network. A loss against labels takes logits and computes its own softmax;
 * logarithms of probabilities are also logits. */
MR_API void mr_net_softmax(mr_net *net);
MR_API void mr_net_log_softmax(mr_net *net);

/* A convolution with all settings. */
typedef struct mr_conv {
    uint32_t filters, kernel, stride;
    mr_padding padding;
    uint32_t pad; /* MR_PAD_VALID: rows and columns of padding on every side; less than the window.
                     MR_PAD_SAME: no effect */
    bool no_bias;
    mr_activation activation;
    uint32_t kernel_w; /* columns of the window; 0: as kernel, which is the number of its rows */
    /* Number of groups; a filter sees only the channels of its group. Divides the numbers of input channels
     * and filters; equal to the channels: depthwise. 0 means 1 */
    uint32_t groups;
} mr_conv;
MR_API void mr_net_conv(mr_net *net, const mr_conv *conv);

/* A pooling with all settings. */
typedef struct mr_pool {
    uint32_t kernel, stride;
    mr_padding padding; /* MR_PAD_SAME puts an odd row and column at the end, as in TensorFlow */
    uint32_t pad;       /* as in mr_conv */
    bool average;       /* average of the pixels without padding; else their maximum */
    uint32_t kernel_w;  /* columns of the window; 0: as kernel, which is the number of its rows */
} mr_pool;
MR_API void mr_net_pool(mr_net *net, const mr_pool *pool);

/* A batch normalisation with all settings. */
typedef struct mr_norm {
    float momentum, epsilon;
    mr_activation activation;
    bool no_scale; /* shift only */
} mr_norm;
MR_API void mr_net_norm(mr_net *net, const mr_norm *norm);

/* A transposed convolution (MR_OP_CONV2D_TRANSPOSED). Its output has (in - 1) * stride + kernel - 2 pad rows
 * with MR_PAD_VALID, and in * stride rows with MR_PAD_SAME, which needs a kernel not smaller than the
 * stride. */
MR_API void mr_net_conv_transposed(mr_net *net, const mr_conv *conv);
/* Give the same values, in the order h, w, c, another shape with the same number of values. */
MR_API void mr_net_reshape(mr_net *net, uint32_t h, uint32_t w, uint32_t c);

MR_API void mr_net_max_pool_padded(mr_net *net, uint32_t size, uint32_t stride, uint32_t pad);
/* The average leaves out the padding. */
MR_API void mr_net_avg_pool_padded(mr_net *net, uint32_t size, uint32_t stride, uint32_t pad);
MR_API void mr_net_global_avg_pool(mr_net *net); /* to 1 x 1 x c */
MR_API void mr_net_global_max_pool(mr_net *net);
MR_API void mr_net_pad_channels(mr_net *net, uint32_t before, uint32_t behind); /* with zeros */
/* Multiply the last layer's output by factor, finite and above 0, to get the logits (a temperature of 1 /
 * factor); without this call 1. Call it at most once, at any position. */
MR_API void mr_net_logit_factor(mr_net *net, float factor);

/* Initial weights of convolutions and dense layers added from here on; networks start with Glorot. All
 * distributions are uniform, so that their bits depend on no function of a maths library except the square
 * root. */
typedef enum mr_init {
    MR_INIT_GLOROT = 0, /* variance 2 / (fan_in + fan_out) (Glorot & Bengio 2010) */
    MR_INIT_HE_IN,      /* variance 2 / fan_in (He et al. 2015) */
    MR_INIT_HE_OUT,     /* variance 2 / fan_out */
} mr_init;
MR_API void mr_net_init(mr_net *net, mr_init init);
/* Set a standard deviation, finite and above 0, independent of fan_in and fan_out, until mr_net_init(). */
MR_API void mr_net_init_deviation(mr_net *net, float deviation);
/* Initial biases of convolutions and dense layers added from here on, finite; networks start with 0. */
MR_API void mr_net_init_bias(mr_net *net, float value);

/* Select the parameters with weight decay in layers added from here on. Weight decay adds
 * mr_update_desc.weight_decay times w to the gradient, the slope of weight_decay / 2 times the sum of
 * squares: an L2 penalty of weight_decay / 2 in Keras, of weight_decay with TensorFlow's tf.nn.l2_loss. The
 * reported loss excludes the penalty. MR_UPDATE_ADAMW, _LAMB and _MUON decay the same parameters by their own
 * formulas. */
typedef enum mr_net_decays {
    MR_NET_DECAY_AS_TOLD = 0, /* as mr_trainer_config.decay_on; networks start with this */
    MR_NET_DECAY_WEIGHTS,     /* weights, including recurrent weights, for every decay_on */
    MR_NET_DECAY_NONE,
} mr_net_decays;
MR_API void mr_net_decay(mr_net *net, mr_net_decays on);
/* Return true when a layer overrides mr_trainer_config.decay_on. */
MR_API bool mr_net_has_own_decay(const mr_net *net);

/* Branches. A point is the output of a layer. The current point is the input of the next layer: mr_net_here()
 * returns it, mr_net_from() replaces it, mr_net_add() adds another point of the same shape to it,
 * mr_net_concat() appends the channels of other points with the same number of pixels, mr_net_scale()
 * multiplies each of its channels by a factor from a point of shape 1 x 1 x channels. A residual block:
 *
 *     in = mr_net_here(net);                       shortcut first, if it has layers of its own
 *     mr_net_conv(net, ...), ...;  short_cut = mr_net_here(net);
 *     mr_net_from(net, in);  mr_net_conv(net, ...), ...;
 *     mr_net_add(net, short_cut, MR_ACT_RELU);
 *
 * Any number of layers may take a point as input. Every point except the last must be an input of at least
 * one layer or loss. */
typedef uint32_t mr_point;
MR_API mr_point mr_net_here(const mr_net *net);
MR_API void mr_net_from(mr_net *net, mr_point point);
MR_API void mr_net_add(mr_net *net, mr_point other, mr_activation activation);
MR_API void mr_net_concat(mr_net *net, const mr_point *others, uint32_t count); /* a layer for each */
MR_API void mr_net_scale(mr_net *net, mr_point factors);

/* Draw from normal distributions (MR_OP_SAMPLE) whose means are the current point: mean + exp(factor *
 * log_variance) * draw. factor is above 0; with 0.5 log_variance is the logarithm of the variance. */
MR_API void mr_net_sample(mr_net *net, mr_point log_variance, float factor);

/* Losses. A network without explicit losses is trained on the softmax cross-entropy of its last point against
 * the label. A network with explicit losses is trained on their sum, each times its weight (finite, above 0);
 * every point, the last one included, must then be an input of a layer or a loss. A loss takes the current
 * point, which remains the current point. The loss in mr_metrics and reports is this sum as a mean over
 * samples; the accuracy is the accuracy of the first loss against labels, or against targets of several
 * labels (below). An autoencoder whose pixels are probabilities:
 *
 *     ...                                          layers, the last without activation
 *     mr_net_loss_pair(net, MR_PAIR_CROSS_ENTROPY, 0, 1);          point 0: the pictures themselves
 *
 * The input operation normalises the pictures: to [0, 1] with mean 0 and std 255.
 *
 * A loss against labels takes a vector of logits, one per class. With ONE logit there are two classes: the
 * loss is the binary cross-entropy of its sigmoid against labels 0 and 1, and the predicted class is 1 when
 * the logit is positive. */
MR_API void mr_net_loss_labels(mr_net *net, float weight);
MR_API void mr_net_loss_pair(mr_net *net, mr_pair_loss kind, mr_point other, float weight);

/* Targets: a field of numbers that the outputs of a network without classes should match. The loss compares
 * the network's last point with the field, which has the same number of values, and is the mean over the
 * values and then over the samples. */
typedef enum mr_target_loss {
    MR_TARGET_NONE = 0, /* no targets: the network has losses of its own, or classes */
    MR_TARGET_LABELS,   /* several labels per sample: each 0 to 1, compared with the sigmoid of one logit
                           (MR_PAIR_CROSS_ENTROPY). Accuracy is the share of correct labels among all
                           labels of all samples: sigmoid and target are on the same side of 0.5 */
    MR_TARGET_SQUARES,  /* real numbers: the square of the difference. No accuracy */
    MR_TARGET_ABSOLUTE, /* real numbers: the absolute difference. No accuracy */
    MR_TARGET_HUBER,    /* real numbers: half the square of a difference below 1, else the absolute difference
                           less 1 / 2. No accuracy */
} mr_target_loss;
enum { MR_TARGET_COUNT = MR_TARGET_HUBER + 1 };

/* Train the current point, the last of a network without other losses, on this field of the batches
 * (mr_net_field()), which has the same number of values, of any type. A target that is not finite, or outside
 * [0, 1] for LABELS, ends a run with MR_EINVAL. In bf16 and f16 targets are rounded like activations.
 *
 * field NULL: the network computes outputs but no loss, for data without targets. It is for inference, and
 * loads checkpoints of the network with targets. */
MR_API void mr_net_targets(mr_net *net, mr_target_loss kind, const char *field);
MR_API mr_target_loss mr_net_target_loss(const mr_net *net);
/* Return the filler for short rows of targets (mr_loader_field.pad), an invalid target: NaN, -1, or 255 for
 * bytes; 0 for a field with one number per sample. */
MR_API double mr_target_pad(const mr_field *field);
MR_API uint32_t mr_net_target_count(const mr_net *net); /* targets per sample; 0: no targets */
/* Return the point whose values mr_evaluate_outputs() reports: the point of mr_net_logits(), or the point
 * compared with targets. False: the network has neither. */
MR_API bool mr_net_outputs(const mr_net *net, mr_point *out);

/* One explicit loss of a network: mr_net_loss() returns loss number `at`, counted from 0; false past the
 * end. */
typedef struct mr_loss_row {
    size_t struct_size;
    bool labels; /* else a pair: */
    mr_pair_loss pair;
    mr_point in, other; /* other: of a pair */
    float weight;
} mr_loss_row;
static inline bool mr_net_loss(const mr_net *net, uint32_t at, mr_loss_row *out);
/* Return the point whose values, times the factor of mr_net_logit_factor(), are the logits of the first loss
 * against labels. False: the network has no classes. */
MR_API bool mr_net_logits(const mr_net *net, mr_point *out);
/* Return the first point of mr_net_sample(). False: the network has no such point. */
MR_API bool mr_net_drawn(const mr_net *net, mr_point *out);
/* Return height, width and channels of a point. False: the point does not exist. */
MR_API bool mr_net_shape(const mr_net *net, mr_point point, uint32_t *h, uint32_t *w, uint32_t *c);

/* Assign layers added from here on to a block ("block1", up to 15 letters), a name for mr_net_place() and
 * mr_net_choose(); "": to no block. */
MR_API void mr_net_block(mr_net *net, const char *name);
/* Assign layers to the devices of a replica, for mr_trainer_config.place: "block1=0,rest=1" places the layers
 * of a block on device 0 and all others on device 1; "0-5=0,rest=1" selects layers by number. Without rest
 * the text must name every layer. place has room for mr_net_layer_count() numbers; *devices is the number of
 * devices per replica. MR_EINVAL: err quotes the wrong item of the text. */
MR_API int mr_net_place(const mr_net *net, const char *text, uint32_t *place, uint32_t *devices,
                        mr_error *err);
MR_API uint32_t mr_net_layer_count(const mr_net *net);
/* Select layers by a text, for mr_trainer_config.freeze: numbers and ranges as counted by mr_net_layer()
 * ("7", "0-40", "41-"), blocks, kinds with which a layer's name begins ("batch_norm"), "head" (the last layer
 * with weights) and "backbone" (all layers before the head), separated by commas. All mr_net_layer_count()
 * elements of chosen are written. MR_EINVAL: an item of the text is wrong, which err quotes, or no selected
 * layer has parameters. */
MR_API int mr_net_choose(const mr_net *net, const char *text, bool *chosen, mr_error *err);

/* MR_OK when the layers fit together and end in losses, or in a vector of logits (see losses). */
MR_API int mr_net_check(const mr_net *net, mr_error *err);
MR_API uint64_t mr_net_param_count(const mr_net *net); /* trained */
MR_API uint64_t mr_net_state_count(const mr_net *net); /* not trained: running means and variances */
MR_API uint32_t mr_net_class_count(const mr_net *net); /* 2 for one logit; 0: no loss against labels */
MR_API const char *mr_net_name(const mr_net *net);

/* Encode a network as bytes, without its name and targets, as stored in checkpoints,
 * or decode it. The caller frees *bytes. Decoding makes the network by the builder's calls, and refuses bytes
 * that encoding would not have written. A decoded network may still lack its targets, so the caller calls
 * mr_net_check().
 *
 * MR_EUNSUPPORTED  encoding: layers follow the targets, or a builder call has failed
 * MR_EFORMAT       decoding: the bytes are not a network */
MR_API int mr_net_encode(const mr_net *net, void **bytes, size_t *count, mr_error *err);
MR_API int mr_net_decode(mr_net **out, const char *name, const void *bytes, size_t count, mr_error *err);

/* One row of `summary`: mr_net_layer() returns layer `at`, counted from 0; false past the end. The name of a
 * layer contains its input if that is not the layer before it ("conv2d 1x1/2 64 from 3"), and its second
 * input if it has one ("add 3 relu"). */
typedef struct mr_layer_row {
    size_t struct_size;
    char name[48], output[48];
    uint64_t params;
    double flops;
    mr_point in, in2; /* points that are its inputs */
    bool takes_two;   /* false: in2 is not used */
    bool is_input;    /* a field: in is not used */
} mr_layer_row;
static inline bool mr_net_layer(const mr_net *net, uint32_t at, mr_layer_row *out);

/* ------------------------------------------------------------------------------ schedules and models */

typedef enum mr_schedule_kind {
    MR_LR_CONSTANT = 0,
    MR_LR_STEP,   /* lr * factor^k, k = milestones passed (epochs) */
    MR_LR_COSINE, /* lr -> floor over all epochs, half a cosine */
    MR_LR_DECAY,  /* lr / (1 + decay * updates done): "decay" of the reference settings */
    /* lr, then rate milestones[2 i + 1] from epoch milestones[2 i] on; milestone_count is twice the number of
     * these rates */
    MR_LR_PIECEWISE,
    MR_LR_EXPONENTIAL, /* lr * factor^epochs, with fractional epochs, not below floor_lr */
    /* Smith 2018, linear pieces over all epochs: lr / factor -> lr over a share `decay` of the epochs, back
     * over the same share, then down to floor_lr */
    MR_LR_ONE_CYCLE,
    MR_LR_LINEAR, /* lr -> floor over all epochs, a straight line */
} mr_schedule_kind;
enum { MR_LR_KIND_COUNT = MR_LR_LINEAR + 1 };

typedef struct mr_schedule {
    mr_schedule_kind kind;
    float lr, factor, floor_lr, decay;
    uint32_t milestone_count;
    double milestones[16]; /* epochs; PIECEWISE: epochs and rates */
    double warmup_epochs;  /* lr rises linearly from lr / steps to lr, before every kind; 0: no warm-up */
} mr_schedule;

/* Return the learning rate of update number `update` (0 for the first) of a run with these numbers of steps
 * per epoch and of epochs. */
MR_API float mr_schedule_lr(const mr_schedule *s, uint64_t update, uint64_t steps_per_epoch, uint64_t epochs);
/* Parse a schedule; lr is its learning rate, finite and above 0. text is "constant", "cosine[:FLOOR]",
 * "linear[:FLOOR]", "step:E1/E2/...[,factor=F]", "decay:D", "piecewise:LR@E1/LR@E2/..." or
 * "exponential:FACTOR[:FLOOR]", each with optional ",warmup=E"; or "onecycle[:DIVISOR[:FLOOR]][,up=SHARE]".
 * Parts in brackets are optional. FLOOR is a learning rate, not a fraction of lr, and not above lr (onecycle:
 * lr / DIVISOR); default 0, onecycle lr / DIVISOR / 100. E is a number of epochs and may be fractional. F
 * defaults to 0.1, DIVISOR to 10, SHARE to 0.45. MR_EINVAL: lr or text is invalid; err names the
 * character. */
MR_API int mr_schedule_parse(mr_schedule *out, const char *text, float lr, mr_error *err);

/* A named network with the settings of its publication. */
typedef struct mr_model {
    const char *name, *id, *help; /* "cifar-cnn", "N1", one line */
    bool numbers;                 /* input is sequences of w numbers from 0 to c - 1, not pictures; h is 1 */
    uint32_t h, w, c;             /* default input size; 0: any */
    uint32_t classes;
    uint64_t param_count; /* at default input size and classes */
    uint32_t batch, epochs;
    mr_update_desc update; /* kind, lr and constants */
    mr_schedule schedule;
    const char *augment;
    float label_smoothing;
} mr_model;

/* Named models: their number, each by number (NULL past the end), and one by name. Owned by the library. */
MR_API uint32_t mr_model_count(void);
MR_API const mr_model *mr_model_at(uint32_t at);
MR_STABLE const mr_model *mr_model_find(const char *name); /* by name or id; NULL */
/* Build the network for pictures of this size (numbers: 1 x length x values) and this number of classes (0:
 * the model's own). */
MR_STABLE int mr_model_build(const mr_model *m, uint32_t h, uint32_t w, uint32_t c, uint32_t classes,
                             mr_net **out, mr_error *err);

/* ------------------------------------------------------------------------------ struct sizes
 *
 * Nothing to read here for a program in C or C++. The library exports the functions below in place of the
 * inline ones above: each inline function passes the size of its struct in the caller's header (base.h). A
 * program in another language sets struct_size and calls ..._sized. */

MR_API bool mr_net_loss_sized(const mr_net *net, uint32_t at, mr_loss_row *out);
static inline bool mr_net_loss(const mr_net *net, uint32_t at, mr_loss_row *out)
{
    if (out) out->struct_size = sizeof *out;
    return mr_net_loss_sized(net, at, out);
}

MR_API bool mr_net_layer_sized(const mr_net *net, uint32_t at, mr_layer_row *out);
static inline bool mr_net_layer(const mr_net *net, uint32_t at, mr_layer_row *out)
{
    if (out) out->struct_size = sizeof *out;
    return mr_net_layer_sized(net, at, out);
}

#ifdef __cplusplus
}
#endif
#endif
