/* millrace/kernels.h: what a device is and can do.
 *
 *   devices   opened from one text ("cpu:4", "sim:8,step=3.1ms,h2d=25GB/s"); every kind behind the same calls
 *   memory    device memory, pinned host memory
 *   streams   in-order queues of work; events order work between streams and carry time stamps
 *   ops       network operations with fixed shapes: forward and backward, in a memory layout the device
 *             chooses
 *   updates   optimizer steps over flat parameter arrays
 *   groups    sums and broadcasts between the devices of one run
 *   graphs    a stretch of queued work recorded once and run again as a whole, where the device can
 *
 * Nothing above this header asks which device it is. Three rules make that possible:
 *   - device memory is an address that only the device reads; callers do arithmetic on it, never dereference
 *     it;
 *   - every call named ..._async only queues work on its stream and returns; results and errors of queued
 *     work appear at mr_stream_sync(), mr_event_sync() or the next call on the stream: an error sticks to its
 *     stream and device;
 *   - an op owns the layout of its output and parameters. Whoever consumes a tensor is created from the
 *     producer's mr_tensor, and parameters leave or enter their layout only through
 *     mr_op_param_export/import.
 *
 * Threads: a device may be used from several threads at once; one stream, one op or one group from one thread
 * at a time. */
#ifndef MILLRACE_KERNELS_H
#define MILLRACE_KERNELS_H

#include "millrace/base.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MR_FOREVER      UINT64_MAX
#define MR_DEVICE_ALIGN 256 /* bytes; every device and pinned allocation starts at a multiple */

/* ------------------------------------------------------------------------------ devices */

typedef struct mr_device mr_device;
typedef struct mr_stream mr_stream;
typedef struct mr_event mr_event;

typedef struct mr_device_info {
    const char *kind;       /* "cpu", "sim", "cuda" */
    const char *name;       /* "cpu:0", with options that matter: "sim:3 step=3.1ms h2d=25GB/s" */
    const char *hardware;   /* what it is: CPU model, GPU name */
    uint32_t index;         /* replica number within its kind */
    uint32_t threads;       /* cpu: threads the compute streams of this device use; else 0. What OpenMP gives
                               of those that were asked for: limits such as OMP_THREAD_LIMIT make it less */
    uint64_t memory_bytes;  /* usable; 0 when only the host's own limit applies */
    bool simulated;         /* computes nothing: loss and accuracy mean nothing */
    double h2d_bytes_per_s; /* link rate where it is a given (sim); else 0 */
} mr_device_info;

/* What computes the convolutions of cpu devices. Winograd's (Lavin & Gray 2016: F(4 x 4, 3 x 3)) takes
 * 36 multiplications where direct takes 144, and rounds otherwise: results are about 1e-5 of their root mean
 * square apart. It is there for windows of 3 x 3 with stride 1 on processors with AVX2 or AVX-512; all else
 * is direct. Which pass of a layer takes it depends on the layer's shape alone: never on the batch, the
 * threads, or a measurement. */
typedef enum mr_convolution {
    MR_CONVOLUTION_AUTO = 0, /* Winograd where a table of shapes says that it is faster */
    MR_CONVOLUTION_DIRECT,
    MR_CONVOLUTION_WINOGRAD, /* wherever there is one, faster or not: to measure and to test */
} mr_convolution;

/* Number of that table: another one when it says something else of any shape. 1 stands for no Winograd. */
#define MR_WINOGRAD_TABLE_FIRST 2
#define MR_WINOGRAD_TABLE       3

typedef struct mr_devices_config {
    size_t struct_size;
    uint32_t compute_threads; /* core budget shared by all cpu devices; 0: every core of the process. A device
                                 that OpenMP gives fewer threads has those (mr_device_info.threads) */
    bool reference;           /* cpu: the plain C reference of every op instead of oneDNN */
    bool tf32;                /* cuda: f32 convolutions and products may round their factors to TF32 */
    bool deterministic;       /* cuda: only algorithms that give the same bits in every run, chosen without
                                 measuring */
    /* cuda: wait after every operation, so that an error names the one that caused it (slow) */
    bool check_each;
    mr_convolution convolution; /* cpu; MR_EINVAL where it is none of the enumeration */
} mr_devices_config;

MR_API void mr_devices_defaults_sized(mr_devices_config *cfg, size_t struct_size);
static inline void mr_devices_defaults(mr_devices_config *cfg)
{
    mr_devices_defaults_sized(cfg, sizeof *cfg);
}

/* Open the devices that spec names, one per replica.
 *
 *   cpu | cpu:N                     N replicas on the processor
 *   sim:N[,step=TIME][,slow=TIME][,h2d=RATE][,d2h=RATE]
 *                                   N simulated accelerators: real copies paced to RATE (GB/s, MB/s), one
 *                                   training step takes TIME (ns us ms s) on the compute stream, on the last
 *                                   of them slow; default step=1ms, slow as step, h2d=25GB/s. Events have the
 *                                   device's own time: what is queued is not slower there because this
 *                                   machine runs its threads late
 *   cuda | cuda:I[,cuda:J|,J]... | cuda:all
 *                                   GPUs by number, as CUDA_VISIBLE_DEVICES leaves them (where the build has
 *                                   CUDA); cuda: the first. A number may come twice: two replicas on one GPU
 * A comma followed by name=value belongs to the item before it; a bare number continues the item before it.
 *
 * *out is an array of *count devices, freed with mr_devices_close(). MR_EINVAL: spec not understood, err says
 * which part; MR_EUNSUPPORTED: a kind this build lacks; MR_ENOENT: asked for more than there are, err names
 * both numbers. */
MR_API int mr_devices_open(mr_device ***out, uint32_t *count, const char *spec, const mr_devices_config *cfg,
                           mr_error *err);
/* Every stream, event, op and allocation of the devices must be gone. Accepts NULL. */
MR_API void mr_devices_close(mr_device **devices, uint32_t count);

MR_API const mr_device_info *mr_device_info_of(const mr_device *dev);

/* One line per device kind and device that is here, for `millrace devices`: number at from 0; false past the
 * end. */
typedef struct mr_device_listing {
    size_t struct_size;
    char kind[16], spec[64], hardware[128], state[128]; /* state: "ready", or why not usable */
    char id[48]; /* UUID of a GPU, or of a part of one, the same in all processes; else "" */
} mr_device_listing;
MR_API bool mr_device_list_sized(uint32_t at, mr_device_listing *out);
static inline bool mr_device_list(uint32_t at, mr_device_listing *out)
{
    if (out) out->struct_size = sizeof *out;
    return mr_device_list_sized(at, out);
}

/* ------------------------------------------------------------------------------ memory */

/* Device memory; contents undefined. MR_ENOMEM says how much was asked and what is left. free accepts NULL
 * and may be called only when no queued work uses the memory. */
MR_API int mr_device_alloc(mr_device *dev, size_t bytes, void **out, mr_error *err);
MR_API void mr_device_free(mr_device *dev, void *address);
/* Host memory that async copies may use (pinned where that means something); the CPU reads and writes it
 * freely. */
MR_API int mr_host_alloc(mr_device *dev, size_t bytes, void **out, mr_error *err);
MR_API void mr_host_free(mr_device *dev, void *address);

/* ------------------------------------------------------------------------------ streams, events */

typedef enum mr_stream_role {
    MR_STREAM_COMPUTE = 0,
    MR_STREAM_COPY = 1,
    MR_STREAM_EXCHANGE = 2, /* sums between devices while the compute stream goes on */
} mr_stream_role;

MR_API int mr_stream_create(mr_stream **out, mr_device *dev, mr_stream_role role, mr_error *err);
MR_API void mr_stream_destroy(mr_stream *s); /* finishes what is queued first; accepts NULL */
MR_API mr_device *mr_stream_device(const mr_stream *s);

/* Wait until all queued work is done; the first error of any of it. */
MR_API int mr_stream_sync(mr_stream *s, mr_error *err);
/* The same for at most timeout_ns: MR_EAGAIN when it is still not done, unless the device has failed: then
 * why. */
MR_API int mr_stream_wait(mr_stream *s, uint64_t timeout_ns, mr_error *err);
/* Work queued on s after this runs after what e marks. e may belong to another device of the same run. An
 * event that was never recorded is already over. */
MR_API int mr_stream_wait_event(mr_stream *s, mr_event *e);

MR_API int mr_event_create(mr_event **out, mr_device *dev, mr_error *err);
MR_API void mr_event_destroy(mr_event *e); /* accepts NULL; no queued work may still refer to it */
/* e marks the end of all work queued on s so far, replacing what it marked before. s is of e's device (cuda:
 * MR_EINVAL otherwise). */
MR_API int mr_event_record(mr_event *e, mr_stream *s);
MR_API int mr_event_query(mr_event *e); /* MR_OK over, MR_EAGAIN not yet, other < 0: the work failed */
MR_API int mr_event_sync(mr_event *e, mr_error *err);
/* The same for at most timeout_ns: MR_EAGAIN when it is still not over. */
MR_API int mr_event_wait(mr_event *e, uint64_t timeout_ns, mr_error *err);
/* When the marked work ended, in nanoseconds of CLOCK_MONOTONIC as the device tells it (a GPU's clock is
 * mapped onto the host's when the device is opened, to some microseconds, and drifts from it as clocks do;
 * times of one GPU are in order, and exact among each other to about half a microsecond when asked for within
 * seconds). MR_EAGAIN when it is not over or never recorded. */
MR_API int mr_event_time_ns(mr_event *e, uint64_t *out);

/* Copies and fills on a stream. The memory stays untouched by others until an event recorded after the call
 * is over. */
MR_API int mr_copy_h2d_async(mr_stream *s, void *device_dst, const void *host_src, size_t bytes);
MR_API int mr_copy_d2h_async(mr_stream *s, void *host_dst, const void *device_src, size_t bytes);
MR_API int mr_copy_d2d_async(mr_stream *s, void *device_dst, const void *device_src, size_t bytes);
MR_API int mr_fill_async(mr_stream *s, void *device_dst, uint8_t byte, size_t bytes);

/* ------------------------------------------------------------------------------ tensors and ops */

/* Shape of ONE sample and how the device stores it. A batch of n is n such samples, one behind the other, in
 * every layout: the first k samples of a batch are a batch of k. Images are logical h x w x c; vectors are 1
 * x 1 x c. */
typedef struct mr_tensor {
    uint32_t h, w, c;
    uint32_t dtype;  /* MR_TENSOR_... */
    uint32_t layout; /* MR_LAYOUT_NHWC, MR_LAYOUT_NCHW, or a number that means something to the device only */
    size_t sample_bytes; /* padding of the layout included */
} mr_tensor;

enum {
    MR_TENSOR_U8 = 1,
    MR_TENSOR_F32 = 2,
    MR_TENSOR_BF16 = 3,
    MR_TENSOR_F16 = 4,
    MR_TENSOR_I32 = 5,
    MR_TENSOR_I8 = 6, /* this and those below: of data, FIELD and ONE_HOT take them */
    MR_TENSOR_I16 = 7,
    MR_TENSOR_I64 = 8,
    MR_TENSOR_F64 = 9
};
enum { MR_LAYOUT_NHWC = 0, MR_LAYOUT_NCHW = 1 };

/* Bytes of one element; 0 for an unknown type. */
MR_API size_t mr_tensor_element_bytes(uint32_t dtype);

typedef enum mr_activation {
    MR_ACT_NONE = 0,
    MR_ACT_RELU,
    MR_ACT_TANH,
    MR_ACT_SIGMOID,
    MR_ACT_SELU,
    MR_ACT_LEAKY_RELU, /* x above 0, else 0.1 x */
    MR_ACT_RELU6,      /* x brought into [0, 6] */
    MR_ACT_SILU,       /* x sigmoid(x) (Elfwing et al. 2017; "swish") */
    MR_ACT_GELU,       /* x Phi(x), Phi the normal distribution (Hendrycks & Gimpel 2016), by erf */
} mr_activation;
enum { MR_ACT_COUNT = MR_ACT_GELU + 1 };

/* Is its slope told from x, not from y? Such a one is an ACTIVATION of its own, not in place; other kinds
 * refuse it (MR_EUNSUPPORTED). */
static inline bool mr_activation_needs_x(mr_activation a) { return a == MR_ACT_SILU || a == MR_ACT_GELU; }

typedef enum mr_op_kind {
    MR_OP_INPUT,  /* uint8 NHWC -> out_dtype: (x * a_i + b_i - mean[c]) / std[c]; a, b per sample from
                     args.affine, else 1, 0;  mirrored left to right where args.flip says so */
    MR_OP_CONV2D, /* + bias, + activation. weights [filters][kh][kw][c / groups], bias [filters] */
    MR_OP_POOL2D, /* max (ties: the first in row order takes the gradient) or average (padding not counted) */
    MR_OP_DENSE,  /* + bias, + activation. weights [units][h*w*c] in h, w, c order: flattening is implied */
    MR_OP_ACTIVATION,
    MR_OP_DROPOUT,   /* kept values, or samples, / (1 - rate); identity when not training */
    MR_OP_BATCHNORM, /* per channel over n, h, w; scale, shift; + x2 with residual; + activation. state:
                        running mean, running variance */
    MR_OP_LOSS,      /* softmax cross-entropy over c logits against int32 labels, of one logit binary
                        cross-entropy; see mr_loss_desc */
    MR_OP_ADD,       /* x + x2, + activation */
    MR_OP_ONE_HOT,   /* whole numbers (u8, i8, i16, i32, i64), h x w x 1 -> out_dtype, h x w x classes: a row
                        is 1 at its number and 0 elsewhere; all 0 where the number is not one of
                        0 .. classes - 1 (padding) */
    MR_OP_CONCAT,    /* the channels of x, then those of x2 */
    MR_OP_PAD,       /* channels of zeros in front of x's, and behind them */
    MR_OP_GRU,       /* gated recurrent units over the w steps of 1 x w x c; see below */
    MR_OP_LSTM,      /* long short-term memory, the same way */
    /* transposed convolution, + bias, + activation: every pixel of the input adds its window's worth of
     * weights to the output. weights [c][kh][kw][filters], bias [filters] */
    MR_OP_CONV2D_TRANSPOSED,
    MR_OP_RESHAPE,   /* the values of NHWC as they are, in another shape of as many */
    MR_OP_SAMPLE,    /* a draw from normal distributions: x means, x2 log variances; see mr_sample_desc */
    MR_OP_PAIR_LOSS, /* a loss of two tensors of one shape; see mr_pair_loss_desc */
    MR_OP_SCALE,     /* x times one factor for each sample and channel: x2, 1 x 1 x c */
    MR_OP_FIELD,     /* numbers of any type, NHWC -> out_dtype: (x - mean) / std, in double, then rounded */
    MR_OP_GROUPNORM, /* normalisation of each sample by itself; see mr_groupnorm_desc. scale, shift */
    MR_OP_UPSAMPLE,  /* more pixels of the same picture; see mr_upsample_desc */
    MR_OP_EMBEDDING, /* whole numbers, h x w x 1 -> their rows of a table, h x w x units. weights
                        [classes][units] */
    MR_OP_LRN,       /* local response normalisation across channels; see mr_lrn_desc */
    MR_OP_SOFTMAX,   /* softmax over the channels of each pixel, or its logarithm; see mr_softmax_desc */
} mr_op_kind;

enum { MR_OP_KIND_COUNT = MR_OP_SOFTMAX + 1 };

typedef enum mr_wanted_layout { MR_WANT_ANY = 0, MR_WANT_NHWC, MR_WANT_NCHW } mr_wanted_layout;

/* A window that moves over the pixels of an image. It must fit, and padding be smaller than the window. */
typedef struct mr_op_window {
    uint32_t kernel_h, kernel_w, stride_h, stride_w;
    uint32_t pad_top, pad_left, pad_bottom, pad_right;
} mr_op_window;

/* ---- what each kind of operation is told; ACTIVATION, ADD, CONCAT and SCALE need nothing of their own ----
 *
 *     mr_op_desc d = {.kind = MR_OP_CONV2D, .in = producer->out, .max_batch = 32, .training = true,
 *                     .conv2d = {.filters = 64, .window = {3, 3, 1, 1, 1, 1, 1, 1}}}; */

/* CONV2D_TRANSPOSED: what the window moves over is the output, with (in - 1) * stride + kernel - padding
 * pixels a side. */
typedef struct mr_conv2d_desc {
    uint32_t filters;
    mr_op_window window;
    bool no_bias; /* weights only */
    /* Channels and filters are cut into so many groups, and a filter sees the channels of its own group
     * alone; as many groups as channels: depthwise. It divides both. 0 means 1 */
    uint32_t groups;
} mr_conv2d_desc;

typedef struct mr_pool2d_desc {
    mr_op_window window;
    bool average; /* else the maximum */
} mr_pool2d_desc;

typedef struct mr_dense_desc {
    uint32_t units;
    bool no_bias; /* weights only */
} mr_dense_desc;

typedef struct mr_dropout_desc {
    float rate;     /* fraction dropped, [0, 1) */
    uint32_t op_id; /* tells the layers of one network apart */
    /* A sample is kept or dropped as a whole, by one draw (stochastic depth, Huang et al. 2016) */
    bool whole_samples;
} mr_dropout_desc;

typedef struct mr_batchnorm_desc {
    float momentum, epsilon; /* running = momentum * running + (1 - momentum) * batch (biased variance) */
    bool residual;           /* y = activation(normalised + x2) */
    bool no_scale;           /* shift only: the one parameter */
} mr_batchnorm_desc;

typedef struct mr_input_desc {
    float mean[4], std[4]; /* in units of the uint8 pixels (x / 255: mean 0, std 255) */
    uint32_t out_dtype;    /* MR_TENSOR_F32 (0 means that), _BF16, _F16; what the device cannot is
                              MR_EUNSUPPORTED */
} mr_input_desc;

typedef struct mr_one_hot_desc {
    uint32_t classes;
    uint32_t out_dtype; /* as of INPUT */
} mr_one_hot_desc;

typedef struct mr_field_desc {
    float mean, std;    /* finite; std 0 means 1 */
    uint32_t out_dtype; /* as of INPUT */
} mr_field_desc;

/* Mean 0 and variance 1 for each sample by itself, in training and evaluation alike: over all pixels and the
 * channels of a group (Wu & He 2018), or with each_pixel over the channels of a group at each pixel (layer
 * normalisation, Ba et al. 2016). */
typedef struct mr_groupnorm_desc {
    uint32_t groups; /* divides the channels; 0 means 1 */
    bool each_pixel;
    float epsilon; /* added to the (biased) variance; above 0 */
} mr_groupnorm_desc;

typedef struct mr_upsample_desc {
    uint32_t factor; /* so many times as high and wide; 1 or more */
    bool bilinear;   /* else each pixel is repeated. Centres of pixels are at halves, edges are repeated */
} mr_upsample_desc;

/* A number that is none of 0 .. classes - 1 (padding) is a row of zeros. */
typedef struct mr_embedding_desc {
    uint32_t classes, units;
    uint32_t out_dtype; /* as of INPUT */
} mr_embedding_desc;

typedef struct mr_pad_desc {
    uint32_t before, behind; /* channels */
} mr_pad_desc;

/* From a state h of zeros (of c too), with weights W [G][c], recurrent weights U [G][units] and biases [G]:
 *
 *   GRU    G = 3 units, in the order r, z, n; parameters weights, recurrent, bias b, recurrent_bias d
 *            r = sigmoid(W_r x + b_r + U_r h + d_r)        z = sigmoid(W_z x + b_z + U_z h + d_z)
 *            n = tanh(W_n x + b_n + r (U_n h + d_n))       h' = (1 - z) n + z h
 *          The reset gate acts on the product, as in cuDNN.
 *   LSTM   G = 4 units, in the order i, f, g, o; parameters weights, recurrent, gate_bias b
 *            i, f, o = sigmoid(W x + U h + b)   g = tanh(W x + U h + b)   c' = f c + i g   h' = o tanh(c') */
typedef struct mr_recurrent_desc {
    uint32_t units;
    bool sequences; /* y is the state after every step, 1 x w x units; else after the last one, 1 x 1 x units
                     */
    /* Not 0: x is int32 numbers (1 x w x 1), each of which stands for the row that ONE_HOT makes of it with
     * so many classes. Its product is looked up, and there is no gradient to it. 0: x is 1 x w x c */
    uint32_t classes;
    uint32_t out_dtype; /* with classes: as of INPUT; else that of x */
} mr_recurrent_desc;

/* p = softmax(f x), f the factor. A sample's loss is -sum of q ln p over the classes. In training
 * (mr_op_args) the wanted q is 1 - smoothing at the label, and smoothing / classes more at every class
 * (Szegedy et al. 2016, "Rethinking the Inception Architecture", section 7); else it is 1 at the label.
 *
 * ONE logit x tells two classes apart, as the two logits 0 and x do: labels are 0 and 1, the probability of 1
 * is sigmoid(f x), which is what y gets, and 1 is what is told from an x above 0. */
typedef struct mr_loss_desc {
    float factor;    /* of the logits, finite and above 0; 0 means 1 */
    float smoothing; /* [0, 1) */
    float weight;    /* of the loss and its gradient, finite and above 0; 0 means 1 */
    bool silent;     /* of metrics only loss_sum is added to: another loss of the network counts samples */
    /* In training each class has a weight, mr_op_args.class_weights: the loss is -sum of w q ln p. As in
     * PyTorch's CrossEntropyLoss what smoothing gives a class has the weight of that class. The mean over a
     * batch divides by its samples, not by the sum of their weights */
    bool class_weights;
} mr_loss_desc;

typedef struct mr_reshape_desc {
    uint32_t h, w, c;
} mr_reshape_desc;

/* y = x + exp(factor x2) e, e a normal draw (Box & Muller 1958) that depends on (seed, op_id, values->step,
 * place of the sample in the global batch, element) only, in training and evaluation alike (Kingma & Welling
 * 2014, section 2.4). */
typedef struct mr_sample_desc {
    float factor;   /* 0 means 0.5, which makes x2 the logarithm of the variance */
    uint32_t op_id; /* tells the layers of one network apart */
} mr_sample_desc;

typedef enum mr_pair_loss {
    /* x logits, x2 wanted probabilities in [0, 1]: -(x2 ln s + (1 - x2) ln(1 - s)), s = sigmoid(x) */
    MR_PAIR_CROSS_ENTROPY = 0,
    MR_PAIR_SQUARES, /* (x - x2)^2 */
    /* x means, x2 log variances of normal distributions: how far they are from the standard one,
     * -(1 + x2 - x^2 - exp(x2)) / 2 (Kullback & Leibler 1951) */
    MR_PAIR_DIVERGENCE,
    /* x logits, x2 the wanted share of each class, of every pixel by itself: -sum over c of x2 ln softmax(x).
     * A single 1 is a label (ONE_HOT); a pixel of zeros does not count */
    MR_PAIR_CLASSES,
    MR_PAIR_ABSOLUTE, /* |x - x2|; its slope at 0 is 0 */
    /* (x - x2)^2 / 2 where they differ by less than 1, else |x - x2| - 1 / 2 (Huber 1964) */
    MR_PAIR_HUBER,
} mr_pair_loss;
enum { MR_PAIR_COUNT = MR_PAIR_HUBER + 1 };

/* A sample's loss is weight times the SUM over its elements. x and x2 may have different layouts. labels may
 * be NULL: every sample counts. */
typedef struct mr_pair_loss_desc {
    mr_pair_loss kind;
    float weight; /* finite and above 0; 0 means 1 */
    bool silent;  /* as in mr_loss_desc */
    /* x2 are numbers that the data want of x, not something that is computed. A sample with one that is not
     * finite, or of CROSS_ENTROPY not in [0, 1], is bad (mr_metrics) and gets no gradient; on the processor
     * it ends the stream with an error. Of CROSS_ENTROPY metrics->correct counts elements: those where x > 0
     * as x2 > 0.5 */
    bool targets;
} mr_pair_loss_desc;

/* Krizhevsky et al. 2012, section 3.3, with the constants of TensorFlow's tf.nn.lrn:
 *
 *     y_c = x_c / (bias + alpha * (the squares of x of channels c - radius .. c + radius))^beta
 *
 * of one pixel; channels that are not there count 0. alpha is not divided by the number of channels, as it is
 * in Caffe and oneDNN. */
typedef struct mr_lrn_desc {
    uint32_t radius;         /* 0 .. MR_LRN_MOST_RADIUS */
    float bias, alpha, beta; /* finite; bias above 0, the others not below */
} mr_lrn_desc;
#define MR_LRN_MOST_RADIUS 64u

typedef struct mr_softmax_desc {
    bool log; /* ln of it, which keeps its digits where a probability is next to nothing */
} mr_softmax_desc;

typedef struct mr_op_desc {
    mr_op_kind kind;
    mr_tensor in;  /* as the producer gives it (INPUT: u8 NHWC; ONE_HOT, EMBEDDING: whole numbers h x w x 1;
                      FIELD: any numbers, NHWC; GRU, LSTM: NHWC, or i32 1 x w x 1). Its dtype is the op's:
                      activations and gradients in and out have it. Parameters, their gradients and
                      statistics are f32 always */
    mr_tensor in2; /* of x2 (ADD; BATCHNORM with residual): equal to the op's output in every field. CONCAT:
                      equal to in but for the channels; SAMPLE: equal to in; PAIR_LOSS: of its shape and type.
                      SCALE: 1 x 1 x c, any layout of the device */
    uint32_t max_batch;       /* forward and backward take 1..max_batch samples */
    bool training;            /* backward will be called */
    bool need_dx;             /* the gradient to the input is wanted */
    mr_activation activation; /* ACTIVATION itself, or fused behind CONV2D, CONV2D_TRANSPOSED, DENSE,
                                 BATCHNORM, ADD (none that mr_activation_needs_x()); others take no notice */
    mr_wanted_layout want; /* INPUT, CONV2D, CONV2D_TRANSPOSED (not NCHW): layout of the output; MR_WANT_ANY
                              leaves it to the device. Others keep the layout of their input */
    union { /* the one that kind names; name it in an initialiser, which zeroes the rest of it */
        mr_conv2d_desc conv2d; /* CONV2D_TRANSPOSED, too */
        mr_pool2d_desc pool2d;
        mr_dense_desc dense;
        mr_dropout_desc dropout;
        mr_batchnorm_desc batchnorm;
        mr_input_desc input;
        mr_one_hot_desc one_hot;
        mr_field_desc field;
        mr_groupnorm_desc groupnorm;
        mr_upsample_desc upsample;
        mr_embedding_desc embedding;
        mr_pad_desc pad;
        mr_recurrent_desc recurrent; /* GRU, LSTM */
        mr_loss_desc loss;
        mr_reshape_desc reshape;
        mr_sample_desc sample;
        mr_pair_loss_desc pair_loss;
        mr_lrn_desc lrn;
        mr_softmax_desc softmax;
    };
} mr_op_desc;

#define MR_OP_MAX_PARAMS 4

/* Passes of an operation with parameters. */
typedef enum mr_op_pass {
    MR_PASS_FORWARD = 0, /* y */
    MR_PASS_DATA,        /* backward: dx */
    MR_PASS_WEIGHTS,     /* backward: dparam */
} mr_op_pass;

typedef struct mr_param_info {
    const char *name; /* "weights", "bias", "scale", "shift", "mean", "variance", "recurrent", ... */
    uint32_t ndim;
    uint64_t dim[4];        /* canonical shape, row-major */
    uint64_t count;         /* product of dim */
    uint64_t storage_count; /* floats in the device's layout, padding included (padding is and stays zero) */
    uint64_t fan_in, fan_out; /* for initialisers */
} mr_param_info;

typedef struct mr_op_info {
    mr_tensor out;
    uint32_t param_count; /* trained */
    mr_param_info param[MR_OP_MAX_PARAMS];
    uint32_t state_count; /* kept, not trained (running statistics); updated by forward when training */
    mr_param_info state[MR_OP_MAX_PARAMS];
    size_t saved_bytes;      /* forward writes, backward reads, for max_batch samples */
    size_t scratch_bytes;    /* free between calls; ops of one stream may share it */
    bool inplace;            /* forward may run with y == x, and backward with dx == dy. ACTIVATION with
                                MR_ACT_NONE does nothing then, but for adding dy2 */
    double flops_per_sample; /* forward; multiply and add count 2 */
    /* What computes each pass of a convolution, by mr_op_pass: "direct", "winograd"; NULL: there is no such
     * pass, or the device does not say. Text of the library's own. */
    const char *algorithm[3];
    bool writes_dx2; /* the gradient to x2 goes to args.dx2; else it is what backward leaves in dy */
} mr_op_info;

typedef struct mr_op mr_op;

/* MR_EINVAL says which part of desc makes no sense; MR_EUNSUPPORTED what the device lacks. */
MR_API int mr_op_create(mr_op **out, mr_device *dev, const mr_op_desc *desc, mr_error *err);
MR_API void mr_op_destroy(mr_op *op); /* accepts NULL; nothing queued may use it */
MR_API const mr_op_info *mr_op_info_of(const mr_op *op);

/* Sums over the batch, on the device; forward of LOSS adds to it. */
typedef struct mr_metrics {
    double loss_sum;  /* of -log p(label) */
    uint64_t correct; /* argmax == label (ties: the first); PAIR_LOSS: elements (mr_pair_loss_desc.targets) */
    uint64_t count;   /* samples with label >= 0 */
    uint64_t bad; /* samples whose label is not below c, or whose targets are none: left out of all the above.
                     A device that can stop the stream with an error does that instead */
} mr_metrics;

/* What changes from step to step. Ops and updates read it from device memory when they run, so that a
 * recorded step (mr_graph) can run again with new values: copy it there on the same stream first. */
typedef struct mr_step_values {
    uint64_t step; /* DROPOUT: tells steps apart */
    /* LOSS: backward gives scale * factor * (softmax - wanted); 1 / samples counted in the GLOBAL batch */
    float scale;
    float lr;        /* updates; NADAM: what g is multiplied with, lr (1 - b_t) / (1 - b_1 ... b_t) */
    float adam_rate; /* lr / (1 - beta1^t); NADAM: of m, lr b_(t+1) / (1 - b_1 ... b_(t+1)); LAMB:
                        without lr */
    float adam_root; /* 1 / sqrt(1 - beta2^t); RMSPROP_MOMENTUM: rho^t */
} mr_step_values;

/* Scaling of the loss for f16 (Micikevicius et al. 2018), in device memory. LOSS multiplies its gradient by
 * scale; the update divides by it, and when any gradient is infinite or not a number skips the whole update,
 * halves the scale and counts. After growth_steps good updates in a row the scale doubles. */
typedef struct mr_loss_scale {
    float scale;           /* a power of two, 1 .. 2^24 */
    uint32_t growth_steps; /* 0: never grows, never shrinks: a fixed scale */
    uint32_t good;         /* updates since the last change */
    uint32_t overflow;     /* the device's own, while an update runs */
    uint64_t skipped;      /* updates skipped so far */
} mr_loss_scale;

/* All addresses are device memory; what an op does not need is ignored and may be NULL. */
typedef struct mr_op_args {
    uint32_t n;     /* samples, 1..max_batch */
    const void *x;  /* input, kept unchanged until backward unless inplace */
    const void *x2; /* second input of ADD, CONCAT, SCALE, SAMPLE, PAIR_LOSS and BATCHNORM with residual */
    void *y;        /* output; backward reads it (kept as forward left it). LOSS: softmax of x, or NULL */
    void *dy; /* gradient to y: read, and may be overwritten. After backward of ADD or BATCHNORM with residual
                 it holds the gradient to x2 */
    const void *dy2; /* a second gradient to y, of another consumer, or NULL: added to dy first. Every op but
                        losses */
    /* gradient to x: written; not dy, unless inplace. ADD: may be NULL, dy is the gradient to both */
    void *dx;
    const float *param[MR_OP_MAX_PARAMS];
    float *dparam[MR_OP_MAX_PARAMS]; /* gradients: written, not added to */
    float *state[MR_OP_MAX_PARAMS];
    void *saved, *scratch;
    bool training;  /* DROPOUT, BATCHNORM, GRU, LSTM (forward saves what backward needs) */
    uint64_t seed;  /* DROPOUT, SAMPLE: bits of a sample depend on (seed, op_id, values->step, first + its
                       place,  element) only */
    uint32_t first; /* place of this part's first sample in the global batch */
    const float *affine;             /* INPUT: n pairs (a, b), or NULL */
    const uint8_t *flip;             /* INPUT: n bytes, not 0 means mirror this sample; or NULL */
    const int32_t *labels;           /* losses: n; < 0 means do not count */
    const mr_step_values *values;    /* DROPOUT when training, SAMPLE, backward of losses */
    const mr_loss_scale *loss_scale; /* backward of losses; NULL: 1 */
    mr_metrics *metrics;             /* losses */
    void *dx2; /* gradient to x2, of what writes it (mr_op_info): written; NULL: nobody wants it */
    /* LOSS: both n, or both NULL. Samples that are two pictures in one (mixup, cutmix): share2, 0 to 1, of
     * what is wanted goes to the class of labels2 and the rest to that of labels, and it is right when the
     * larger of the two (of equal ones labels) has the largest logit. share2 0: it is not mixed, and labels2
     * not looked at. Samples that do not count stay so. */
    const int32_t *labels2;
    const float *share2;
    /* LOSS with mr_loss_desc.class_weights, when training: one for each class (two of one logit), finite and
     * not below 0 */
    const float *class_weights;
} mr_op_args;

MR_API int mr_op_forward_async(mr_op *op, mr_stream *s, const mr_op_args *args);
/* Losses write dx (and dx2) from their inputs. Others: dx (when need_dx) and dparam from dy. */
MR_API int mr_op_backward_async(mr_op *op, mr_stream *s, const mr_op_args *args);

/* Between canonical host order (row-major, param[which].count floats) and the device's layout at address
 * (storage_count floats). They finish before they return. state = true for state[which]. Export works for
 * gradients too. */
MR_API int mr_op_param_import(mr_op *op, bool state, uint32_t which, void *address, const float *host,
                              mr_error *err);
MR_API int mr_op_param_export(mr_op *op, bool state, uint32_t which, const void *address, float *host,
                              mr_error *err);

/* ------------------------------------------------------------------------------ updates */

typedef enum mr_update_kind {
    MR_UPDATE_SGD = 0,  /* w -= lr g */
    MR_UPDATE_MOMENTUM, /* v = momentum v - lr g; w += v, or w += momentum v - lr g (nesterov). s0 = v */
    MR_UPDATE_RMSPROP,  /* a = rho a + (1 - rho) g^2; w -= lr g / (sqrt(a) + epsilon). s0 = a */
    MR_UPDATE_ADAM,     /* Kingma & Ba 2015 with bias correction. s0 = m, s1 = v */
    MR_UPDATE_ADADELTA, /* Zeiler 2012, scaled by lr. s0 = mean g^2, s1 = mean step^2 */
    MR_UPDATE_ADAGRAD,  /* Duchi et al. 2011: a += g^2; w -= lr g / (sqrt(a) + epsilon). s0 = a */
    /* Kingma & Ba 2015, section 7.1: u = max(beta2 u, |g|); w -= lr / (1 - beta1^t) m / (u + epsilon).
     * s0 = m, s1 = u */
    MR_UPDATE_ADAMAX,
    /* Dozat 2016: Adam with Nesterov momentum; beta1 at step t is beta1 (1 - 0.5 * 0.96^(t / 250)) where m is
     * corrected and looked ahead with. s0 = m, s1 = v */
    MR_UPDATE_NADAM,
    /* Loshchilov & Hutter 2019: Adam, where the decay is no part of g: w -= lr weight_decay w. s0 = m,
     * s1 = v */
    MR_UPDATE_ADAMW,
    /* You et al. 2020: x = m' / (sqrt(v') + epsilon) + weight_decay w, m' and v' as Adam has them corrected;
     * of each tensor w -= lr |w| / |x| x, and lr x where one of the two norms is 0. s0 = m, s1 = v. Needs
     * mr_update_config.tensors */
    MR_UPDATE_LAMB,
    /* RMSprop with momentum as TensorFlow 1 has it: a = rho a + (1 - rho) g^2 from a = 1;
     * v = momentum v + lr g / sqrt(a + epsilon); w -= v. s0 = a - rho^t, s1 = v */
    MR_UPDATE_RMSPROP_MOMENTUM,
    /* Jordan et al. 2024, of the matrices in mr_update_config: m = momentum m + (1 - momentum) g; u = m, or
     * momentum m + (1 - momentum) g once more (nesterov); O is u brought near to an orthogonal matrix by five
     * iterations of Newton and Schulz; w -= lr (weight_decay w + 0.2 sqrt(max(rows, columns)) O). The factor,
     * of Liu et al. 2025, lets O be as large as a step of AdamW. All that is in no matrix moves as by ADAMW.
     * s0 = m, s1 = v */
    MR_UPDATE_MUON,
} mr_update_kind;
enum { MR_UPDATE_KIND_COUNT = MR_UPDATE_MUON + 1 };

typedef struct mr_update_desc {
    mr_update_kind kind;
    float lr, momentum, rho, beta1, beta2, epsilon;
    float weight_decay; /* g += weight_decay * w, before anything else (ADAMW, LAMB, MUON: see there) */
    bool nesterov;
    uint64_t step; /* 1 for the first update (what Adam and its kin, and RMSPROP_MOMENTUM, take from t) */
} mr_update_desc;

/* A rule under the name that commands know it by, with the constants its authors or its best known
 * implementation proposed. On loan, for as long as the library is loaded. */
typedef struct mr_update_rule {
    const char *name;    /* "sgd", "nesterov", "adamw" */
    mr_update_desc desc; /* kind and constants; lr and step 0; weight_decay 0 where the rule does not bring
                          * one
                          */
} mr_update_rule;
MR_API const mr_update_rule *mr_update_rule_at(uint32_t at);        /* at from 0; NULL past the end */
MR_API const mr_update_rule *mr_update_rule_find(const char *name); /* NULL: there is none */
/* Of kind and nesterov; "an unknown rule" for what is none. */
MR_API const char *mr_update_name(const mr_update_desc *desc);

MR_API uint32_t mr_update_state_count(mr_update_kind kind); /* arrays of state: 0, 1 or 2 */
/* What desc->lr and desc->step mean for a step, written to *out (lr, adam_rate, adam_root; step and scale are
 * left alone). MR_EINVAL: a rule that takes something from t, with desc->step 0. A skipped update
 * (mr_loss_scale) counts as one. */
MR_API int mr_update_values(const mr_update_desc *desc, mr_step_values *out);

/* Addresses in device memory. */
typedef struct mr_update_args {
    uint64_t count; /* floats in each array */
    float *weights;
    const float *grads;
    float *state[2]; /* as the kind needs, zero before the first step */
    const mr_step_values *values;
    mr_loss_scale *loss_scale; /* or NULL: gradients are as they should be */
} mr_update_args;

/* One update of all parameters. Of desc everything but lr and step counts, which are in args->values. */
MR_API int mr_update_async(mr_stream *s, const mr_update_desc *desc, const mr_update_args *args);

/* A parameter that is a matrix. What is left of its last stretch of MR_UPDATE_STRETCH floats is nobody's, and
 * stays. */
typedef struct mr_update_matrix {
    uint64_t at;            /* where it begins in the arrays, a multiple of MR_UPDATE_STRETCH floats */
    uint64_t rows, columns; /* in canonical order */
    mr_op *op;              /* whose parameter `which` it is, stored as that stores it; NULL: row-major */
    uint32_t which;
} mr_update_matrix;

/* An update that is told more. New settings come last. */
typedef struct mr_update_config {
    size_t struct_size;
    mr_update_desc rule; /* everything but lr and step counts, as for mr_update_async() */
    mr_update_args args;
    /* What is done to gradients (divided by the scale of the loss, where there is one), in this order, before
     * weight decay; 0: nothing. */
    float clip_value; /* each is brought into [-clip_value, clip_value] */
    float clip_norm;  /* where the norm of all of them together is above this, all are multiplied by
                         clip_norm / norm */
    /* Device memory for mr_update_norm_count(args.count) doubles, needed with clip_norm. Behind an update [0]
     * is the square of the norm, [1] what gradients were multiplied with. Squares are added in double, in an
     * order that depends on count alone; gradients lie where they lie, so any cut of a batch or of the
     * exchange that brings the same gradients brings the same norm. */
    double *norm;
    /* Device memory: a byte for each MR_UPDATE_STRETCH floats of the arrays, the last of them for what is
     * left; where it is 0, weight_decay is left out. NULL: it applies to all. */
    const uint8_t *decays;
    /* LAMB; device memory: the tensor, from 0 on and in order, that each MR_UPDATE_STRETCH floats belong to;
     * and room for mr_update_trust_count(args.count, tensor_count) doubles, of which the first tensor_count
     * are behind an update what the step of each tensor was multiplied with. */
    const uint32_t *tensors;
    double *trust;
    uint32_t tensor_count;
    /* MUON: its matrices, in the order of their places and apart from each other (host memory that stays
     * until the update has run, and as long as a graph that recorded it), and device memory of
     * mr_update_room_bytes() for them. */
    const mr_update_matrix *matrices;
    uint32_t matrix_count;
    void *room;
} mr_update_config;
#define MR_UPDATE_STRETCH 64u

MR_API void mr_update_defaults_sized(mr_update_config *cfg, size_t struct_size);
static inline void mr_update_defaults(mr_update_config *cfg) { mr_update_defaults_sized(cfg, sizeof *cfg); }
MR_API uint64_t mr_update_norm_count(uint64_t count);
MR_API uint64_t mr_update_trust_count(uint64_t count, uint32_t tensor_count);
/* What MUON needs for these matrices on this device; 0 for none. */
MR_API uint64_t mr_update_room_bytes(const mr_device *dev, const mr_update_matrix *matrices, uint32_t count);
/* MR_EINVAL: an address is missing, or a number makes no sense. */
MR_API int mr_update_run_async(mr_stream *s, const mr_update_config *cfg);

/* average[i] += (1 - decay) * (from[i] - average[i]), floats of one device: an exponential moving average.
 * decay from 0 to below 1. */
MR_API int mr_average_async(mr_stream *s, float *average, const float *from, uint64_t count, float decay);

/* to[i] += from[i], floats of one device; count is a multiple of 64 where speed matters. */
MR_API int mr_add_async(mr_stream *s, float *to, const float *from, uint64_t count);

/* ------------------------------------------------------------------------------ groups */

typedef struct mr_group mr_group;

/* Sums are taken in ONE order, whoever holds what: a batch is cut into `leaves` parts, each part's gradient
 * is a leaf of a binary tree, and a node of n > 1 leaves is the sum of its first 2^k (the largest power of
 * two below n) and of the rest. Floats added so are the same bits however the leaves lie on devices and
 * processes. Who holds leaves [first, first + count) adds up those that make whole nodes without asking
 * anybody: */
typedef struct mr_sum_node {
    uint32_t first, count; /* leaves */
} mr_sum_node;
#define MR_SUM_MOST_LEAVES 65536u
#define MR_SUM_MOST_NODES  32u /* that any range needs */

/* The largest nodes that make up a range, in order: to out (MR_SUM_MOST_NODES of them, or NULL); how many. 0:
 * no such range. */
MR_API uint32_t mr_sum_cover(uint32_t leaves, uint32_t first, uint32_t count, mr_sum_node *out);

/* Bytes to or from another process; data may be NULL when there are none. */
typedef struct mr_piece {
    void *data;
    size_t bytes;
} mr_piece;

/* The other processes of a run, as a group needs them. Calls come from one thread at a time, and block. */
typedef struct mr_wire {
    uint32_t rank, size; /* this process, of so many */
    void *context;
    /* send[r] goes to rank r, receive[r] comes from it (`size` entries each, the own one is empty); the
     * process at the other end makes the same call with the same bytes. What it returns and tells becomes the
     * error of the group's streams. A thread of the group calls it, and the streams wait: it may wait for the
     * other processes, and for nothing of this one. */
    int (*exchange)(void *context, const mr_piece *send, const mr_piece *receive, mr_error *err);
} mr_wire;

typedef struct mr_group_config {
    size_t struct_size;
    mr_stream *const *streams; /* one of each device: where the group's work is queued: the compute streams,
                                  or MR_STREAM_EXCHANGE streams of their own, ordered against them by events
                                */
    uint32_t count;
    uint32_t leaves, first; /* of all processes; the first of this one. 0, 0: one leaf a device, no other
                             * process
                             */
    const uint32_t *held;   /* leaves of each device, consecutive in the order of devices, at least one each;
                               NULL: one each */
    const mr_wire *wire;    /* copied; its context outlives the group. NULL: there is one process */
} mr_group_config;

MR_API void mr_group_defaults_sized(mr_group_config *cfg, size_t struct_size);
static inline void mr_group_defaults(mr_group_config *cfg) { mr_group_defaults_sized(cfg, sizeof *cfg); }

/* MR_EUNSUPPORTED: two devices are replicas on the same GPU, and there is no other process. With a wire every
 * process opens its group at the same time. */
MR_API int mr_group_open(mr_group **out, const mr_group_config *cfg, mr_error *err);
/* One leaf a device. */
MR_API int mr_group_create(mr_group **out, mr_stream *const *streams, uint32_t count, mr_error *err);
MR_API void mr_group_destroy(mr_group *g); /* accepts NULL; nothing queued may use it */
/* values: the arrays (count floats each) of the nodes that the first device holds (mr_sum_cover(), in its
 * order), then those of the second, ... The LAST array of each device becomes the sum of all leaves, the same
 * bits on each of them; the others are left as they are or not. cpu adds in the order of the tree, and so
 * does cuda with other processes, in the memory of the host. Without, cuda adds a device's own nodes, then as
 * NCCL does: the same bits in every run on the same GPUs, links, library and settings. One call queues
 * the work on every stream. A single node that is the whole tree stays as it is. */
MR_API int mr_group_sum_async(mr_group *g, float *const *values, uint64_t count);
/* values[i], one array a device, becomes values[root], of the first process where there are several. */
MR_API int mr_group_broadcast_async(mr_group *g, float *const *values, uint64_t count, uint32_t root);
/* Give up what is queued: it ends soon, with an error on every stream of the group, and so does all later
 * work on them. For the case that one device never arrives. Any thread; again is harmless. */
MR_API void mr_group_abort(mr_group *g);

/* ------------------------------------------------------------------------------ graphs */

typedef struct mr_graph mr_graph;

/* From here to mr_graph_end() calls on s record their work instead of queueing it. Allowed in between: ops,
 * updates, copies between device memory, fills, on s alone. MR_EUNSUPPORTED: this device does not record;
 * queue every time instead. */
MR_API int mr_graph_begin(mr_stream *s);
/* Ends the recording, also after one of the calls in between failed. */
MR_API int mr_graph_end(mr_stream *s, mr_graph **out, mr_error *err);
/* Queue all of it, with the addresses and numbers it was recorded with; what they hold may differ. */
MR_API int mr_graph_launch_async(mr_graph *g, mr_stream *s);
MR_API void mr_graph_destroy(mr_graph *g); /* accepts NULL; nothing queued may use it */

#ifdef __cplusplus
}
#endif
#endif
