/* millrace/kernels.h: devices, and the operations that they run.
 *
 *   devices   opened from one text ("cpu:4", "sim:8,step=3.1ms,h2d=25GB/s"); the same calls for every kind
 *   memory    device memory, pinned host memory
 *   streams   in-order queues of work; events order work between streams and carry time stamps
 *   ops       network operations with fixed shapes: forward and backward, in a memory layout that the device
 *             chooses
 *   updates   optimizer steps over flat parameter arrays
 *   groups    sums and broadcasts between the devices of one run
 *   graphs    queued work that is recorded once and replayed as a whole, on devices that support it
 *
 * Code above this header never asks for the kind of a device. Three rules make that possible:
 *   - device memory is an address that only the device reads; callers do arithmetic on it, never dereference
 *     it;
 *   - every call named ..._async only queues work on its stream and returns; results and errors of queued
 *     work appear at mr_stream_sync(), mr_event_sync() or the next call on the stream. An error is permanent
 *     for its stream and device;
 *   - an op owns the layout of its output and parameters. The consumer of a tensor is created from the
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
    const char *kind;     /* "cpu", "sim", "cuda" */
    const char *name;     /* "cpu:0", with options that apply: "sim:3 step=3.1ms h2d=25GB/s" */
    const char *hardware; /* CPU model or GPU name */
    uint32_t index;       /* replica number within its kind */
    uint32_t threads; /* cpu: threads of this device's compute streams, as OpenMP grants them: limits such as
                         OMP_THREAD_LIMIT reduce the number; else 0 */
    uint64_t memory_bytes;  /* usable device memory; 0 when only the limit of host memory applies */
    bool simulated;         /* computes nothing; loss and accuracy are meaningless */
    double h2d_bytes_per_s; /* configured link rate (sim); else 0 */
} mr_device_info;

/* The convolution algorithm of cpu devices. Winograd's (Lavin & Gray 2016: F(4 x 4, 3 x 3)) needs 36
 * multiplications instead of 144 and rounds differently: results differ by about 1e-5 of their root mean
 * square. It exists for windows of 3 x 3 with stride 1 on processors with AVX2 or AVX-512; every other
 * convolution is direct. The choice for each pass of a layer depends on the layer's shape alone, never on the
 * batch, the threads or a measurement. */
typedef enum mr_convolution {
    MR_CONVOLUTION_AUTO = 0, /* Winograd for shapes that a table lists as faster */
    MR_CONVOLUTION_DIRECT,
    MR_CONVOLUTION_WINOGRAD, /* Winograd for every shape that has it, faster or not: for measurements and
                                tests */
} mr_convolution;

/* Version of the table of shapes; it changes when the choice for any shape changes. 1 means no Winograd. */
#define MR_WINOGRAD_TABLE_FIRST 2
#define MR_WINOGRAD_TABLE       3

typedef struct mr_devices_config {
    size_t struct_size;
    uint32_t compute_threads; /* core budget shared by all cpu devices; 0: every core of the process. OpenMP
                                 may grant a device fewer threads (mr_device_info.threads) */
    bool reference;           /* cpu: use the plain C reference of every op instead of oneDNN */
    bool tf32;                /* cuda: f32 convolutions and products may round their factors to TF32 */
    bool deterministic; /* cuda: use only algorithms that give the same bits in every run, chosen without
                           measuring */
    /* cuda: wait after every operation, so that an error names the operation that caused it (slow) */
    bool check_each;
    mr_convolution convolution; /* cpu */
} mr_devices_config;

MR_STABLE_INLINE void mr_devices_defaults(mr_devices_config *cfg);

/* Open the devices that spec names, one per replica.
 *
 *   cpu | cpu:N                     N replicas on the processor, 1 (default) to 256: a count, while I in
 *                                   cuda:I is the number of a GPU
 *   sim:N[,step=TIME][,slow=TIME][,h2d=RATE][,d2h=RATE]
 *                                   N simulated accelerators: real copies paced to RATE (GB/s, MB/s); one
 *                                   training step takes step=TIME (ns us ms s) on the compute stream,
 *                                   slow=TIME on the last accelerator; default step=1ms, slow as step,
 *                                   h2d=25GB/s. Events carry the simulated device's own time, which late
 *                                   threads of this machine do not delay
 *   cuda | cuda:I[,cuda:J|,J]... | cuda:all
 *                                   GPUs by number among CUDA_VISIBLE_DEVICES (in builds with CUDA); cuda:
 *                                   the first. A repeated number puts two replicas on one GPU
 * A comma followed by name=value belongs to the item before it; a bare number continues the item before it.
 *
 * *out is an array of *count devices, freed with mr_devices_close(). MR_EINVAL: spec is invalid, err quotes
 * the wrong piece; MR_EUNSUPPORTED: this build lacks the kind; MR_ENOENT: more devices than exist, err names
 * both numbers. */
MR_STABLE int mr_devices_open(mr_device ***out, uint32_t *count, const char *spec,
                              const mr_devices_config *cfg, mr_error *err);
/* Close devices after every stream, event, op and allocation of theirs is destroyed. Accepts NULL. */
MR_STABLE void mr_devices_close(mr_device **devices, uint32_t count);

/* Facts about the device, owned by it. */
MR_STABLE const mr_device_info *mr_device_info_of(const mr_device *dev);

/* List the device kinds and the devices of this machine, one per call, for `millrace devices`. at counts from
 * 0; returns false past the end. */
typedef struct mr_device_listing {
    size_t struct_size;
    char kind[16], spec[64], hardware[128], state[128]; /* state: "ready", or why it is not usable */
    char id[48]; /* UUID of a GPU or of a partition of one, the same in all processes; else "" */
} mr_device_listing;
static inline bool mr_device_list(uint32_t at, mr_device_listing *out);

/* ------------------------------------------------------------------------------ memory */

/* Allocate device memory with undefined contents. On MR_ENOMEM err names the requested and the free bytes.
 * mr_device_free() accepts NULL; call it only when no queued work uses the memory. */
MR_API int mr_device_alloc(mr_device *dev, size_t bytes, void **out, mr_error *err);
MR_API void mr_device_free(mr_device *dev, void *address);
/* Allocate host memory for async copies, pinned if the device has pinned memory; the CPU reads and writes it
 * freely. */
MR_API int mr_host_alloc(mr_device *dev, size_t bytes, void **out, mr_error *err);
MR_API void mr_host_free(mr_device *dev, void *address);

/* ------------------------------------------------------------------------------ streams, events */

/* Purpose of a stream. A program that computes on a loader's batches needs one of COMPUTE for each device. */
typedef enum mr_stream_role {
    MR_STREAM_COMPUTE = 0,  /* operations of a step */
    MR_STREAM_COPY = 1,     /* copies between host and device while the compute stream works */
    MR_STREAM_EXCHANGE = 2, /* sums between devices while the compute stream works */
} mr_stream_role;

/* Create a stream of a device. Destroy it before the device is closed. */
MR_STABLE int mr_stream_create(mr_stream **out, mr_device *dev, mr_stream_role role, mr_error *err);
MR_STABLE void mr_stream_destroy(mr_stream *s); /* waits for queued work first; accepts NULL */
MR_API mr_device *mr_stream_device(const mr_stream *s);

/* Wait until all queued work is done. Returns the first error of that work. */
MR_STABLE int mr_stream_sync(mr_stream *s, mr_error *err);
/* mr_stream_sync() for at most timeout_ns: MR_EAGAIN when the work is not done, or the device's error when it
 * has failed. */
MR_API int mr_stream_wait(mr_stream *s, uint64_t timeout_ns, mr_error *err);
/* Make later work on s wait for event e. e may belong to another device of the same run. An event that was
 * never recorded counts as over. */
MR_STABLE int mr_stream_wait_event(mr_stream *s, mr_event *e);

/* Create an event of a device. Destroy it before the device is closed. */
MR_API int mr_event_create(mr_event **out, mr_device *dev, mr_error *err);
MR_API void mr_event_destroy(mr_event *e); /* accepts NULL; no queued work may still refer to it */
/* Make e mark the end of all work queued on s so far, in place of its earlier mark. s must belong to e's
 * device (cuda: else MR_EINVAL). */
MR_API int mr_event_record(mr_event *e, mr_stream *s);
MR_API int mr_event_query(mr_event *e); /* MR_OK over, MR_EAGAIN not yet, other < 0: the work failed */
MR_API int mr_event_sync(mr_event *e, mr_error *err);
/* mr_event_sync() for at most timeout_ns: MR_EAGAIN when the event is not over. */
MR_API int mr_event_wait(mr_event *e, uint64_t timeout_ns, mr_error *err);
/* Return when the marked work ended, in nanoseconds of CLOCK_MONOTONIC by the device's clock. A GPU's clock
 * is mapped onto the host's when the device is opened, accurate to some microseconds, and drifts afterwards.
 * Times of one GPU are in order, and their differences are accurate to about half a microsecond when queried
 * within seconds. MR_EAGAIN when the event is not over or was never recorded. */
MR_API int mr_event_time_ns(mr_event *e, uint64_t *out);

/* Queue a copy or fill on a stream. Nothing else may touch the memory until an event recorded after the call
 * is over. */
MR_API int mr_copy_h2d_async(mr_stream *s, void *device_dst, const void *host_src, size_t bytes);
MR_API int mr_copy_d2h_async(mr_stream *s, void *host_dst, const void *device_src, size_t bytes);
MR_API int mr_copy_d2d_async(mr_stream *s, void *device_dst, const void *device_src, size_t bytes);
MR_API int mr_fill_async(mr_stream *s, void *device_dst, uint8_t byte, size_t bytes);

/* ------------------------------------------------------------------------------ tensors and ops */

/* Shape of ONE sample and its layout on the device. A batch of n is n such samples, contiguous in every
 * layout: the first k samples of a batch are a batch of k. Images are logical h x w x c; vectors are 1 x 1 x
 * c. */
typedef struct mr_tensor {
    uint32_t h, w, c;
    uint32_t dtype;      /* MR_TENSOR_... */
    uint32_t layout;     /* MR_LAYOUT_NHWC, MR_LAYOUT_NCHW, or a number private to the device */
    size_t sample_bytes; /* padding of the layout included */
} mr_tensor;

enum {
    MR_TENSOR_U8 = 1,
    MR_TENSOR_F32 = 2,
    MR_TENSOR_BF16 = 3,
    MR_TENSOR_F16 = 4,
    MR_TENSOR_I32 = 5,
    MR_TENSOR_I8 = 6, /* I8, I16, I64 and F64 are types of data: only FIELD and ONE_HOT accept them */
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
    MR_ACT_RELU6,      /* x clamped to [0, 6] */
    MR_ACT_SILU,       /* x sigmoid(x) (Elfwing et al. 2017; "swish") */
    MR_ACT_GELU,       /* x Phi(x), Phi the normal distribution (Hendrycks & Gimpel 2016), by erf */
} mr_activation;
enum { MR_ACT_COUNT = MR_ACT_GELU + 1 };

/* Return true when the slope is computed from x, not from y. Such an activation is an ACTIVATION of its own,
 * not in place; other kinds return MR_EUNSUPPORTED for it. */
static inline bool mr_activation_needs_x(mr_activation a) { return a == MR_ACT_SILU || a == MR_ACT_GELU; }

typedef enum mr_op_kind {
    MR_OP_INPUT,  /* uint8 NHWC -> out_dtype: (x * a_i + b_i - mean[c]) / std[c]; a, b per sample from
                     args.affine, else 1, 0; samples with args.flip set are mirrored left to right */
    MR_OP_CONV2D, /* + bias, + activation. weights [filters][kh][kw][c / groups], bias [filters] */
    MR_OP_POOL2D, /* max (ties: the first in row order takes the gradient) or average (padding not counted) */
    MR_OP_DENSE,  /* + bias, + activation. weights [units][h*w*c] in h, w, c order: flattening is implied */
    MR_OP_ACTIVATION,
    MR_OP_DROPOUT,   /* divides kept values, or samples, by (1 - rate); identity when not training */
    MR_OP_BATCHNORM, /* per channel over n, h, w; scale, shift; + x2 with residual; + activation. state:
                        running mean, running variance */
    MR_OP_LOSS,    /* softmax cross-entropy over c logits against int32 labels, or binary cross-entropy of one
                      logit; see mr_loss_desc */
    MR_OP_ADD,     /* x + x2, + activation */
    MR_OP_ONE_HOT, /* whole numbers (u8, i8, i16, i32, i64), h x w x 1 -> out_dtype, h x w x classes: a row is
                      1 at its number and 0 elsewhere, and all 0 for a number outside 0 .. classes - 1
                      (padding) */
    MR_OP_CONCAT,  /* the channels of x, then the channels of x2 */
    MR_OP_PAD,     /* channels of zeros before and after the channels of x */
    MR_OP_GRU,     /* gated recurrent units over the w steps of 1 x w x c; see below */
    MR_OP_LSTM,    /* long short-term memory over the same steps; see below */
    /* transposed convolution, + bias, + activation: every pixel of the input adds its window's worth of
     * weights to the output. weights [c][kh][kw][filters], bias [filters] */
    MR_OP_CONV2D_TRANSPOSED,
    MR_OP_RESHAPE, /* the NHWC values unchanged, in another shape with the same number of values */
    MR_OP_SAMPLE, /* a draw from normal distributions with means x and log variances x2; see mr_sample_desc */
    MR_OP_PAIR_LOSS, /* a loss of two tensors of one shape; see mr_pair_loss_desc */
    MR_OP_SCALE,     /* x times one factor for each sample and channel: x2, 1 x 1 x c */
    MR_OP_FIELD,     /* numbers of any type, NHWC -> out_dtype: (x - mean) / std, in double, then rounded */
    MR_OP_GROUPNORM, /* normalisation of each sample alone; see mr_groupnorm_desc. scale, shift */
    MR_OP_UPSAMPLE,  /* enlarges the picture; see mr_upsample_desc */
    MR_OP_EMBEDDING, /* whole numbers, h x w x 1 -> their rows of a table, h x w x units. weights
                        [classes][units] */
    MR_OP_LRN,       /* local response normalisation across channels; see mr_lrn_desc */
    MR_OP_SOFTMAX,   /* softmax over the channels of each pixel, or its logarithm; see mr_softmax_desc */
} mr_op_kind;

enum { MR_OP_KIND_COUNT = MR_OP_SOFTMAX + 1 };

typedef enum mr_wanted_layout { MR_WANT_ANY = 0, MR_WANT_NHWC, MR_WANT_NCHW } mr_wanted_layout;

/* A window that moves over the pixels of an image. It must fit into the padded image, and the padding must be
 * smaller than the window. */
typedef struct mr_op_window {
    uint32_t kernel_h, kernel_w, stride_h, stride_w;
    uint32_t pad_top, pad_left, pad_bottom, pad_right;
} mr_op_window;

/* ---- settings of each kind of operation; ACTIVATION, ADD, CONCAT and SCALE need no settings ----
 *
 *     mr_op_desc d = {.kind = MR_OP_CONV2D, .in = producer->out, .max_batch = 32, .training = true,
 *                     .conv2d = {.filters = 64, .window = {3, 3, 1, 1, 1, 1, 1, 1}}}; */

/* CONV2D_TRANSPOSED: the window moves over the output, which has (in - 1) * stride + kernel - padding pixels
 * a side. */
typedef struct mr_conv2d_desc {
    uint32_t filters;
    mr_op_window window;
    bool no_bias; /* weights only */
    /* number of groups of channels and filters; a filter sees only the channels of its group. groups equal to
     * the channels: depthwise. It divides both numbers. 0 means 1 */
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
    uint32_t op_id; /* distinguishes the layers of one network */
    /* One draw keeps or drops a whole sample (stochastic depth, Huang et al. 2016) */
    bool whole_samples;
} mr_dropout_desc;

typedef struct mr_batchnorm_desc {
    float momentum, epsilon; /* running = momentum * running + (1 - momentum) * batch (biased variance) */
    bool residual;           /* y = activation(normalised + x2) */
    bool no_scale;           /* shift only: the one parameter */
} mr_batchnorm_desc;

typedef struct mr_input_desc {
    float mean[4], std[4]; /* in units of the uint8 pixels (x / 255: mean 0, std 255) */
    uint32_t out_dtype; /* MR_TENSOR_F32 (also 0), _BF16 or _F16; MR_EUNSUPPORTED when the device lacks it */
} mr_input_desc;

typedef struct mr_one_hot_desc {
    uint32_t classes;
    uint32_t out_dtype; /* as of INPUT */
} mr_one_hot_desc;

typedef struct mr_field_desc {
    float mean, std;    /* finite; std 0 means 1 */
    uint32_t out_dtype; /* as of INPUT */
} mr_field_desc;

/* Mean 0 and variance 1 for each sample alone, in training and evaluation: over all pixels and the channels
 * of a group (Wu & He 2018), or with each_pixel over the channels of a group at each pixel (layer
 * normalisation, Ba et al. 2016). */
typedef struct mr_groupnorm_desc {
    uint32_t groups; /* divides the channels; 0 means 1 */
    bool each_pixel;
    float epsilon; /* added to the (biased) variance; above 0 */
} mr_groupnorm_desc;

typedef struct mr_upsample_desc {
    uint32_t factor; /* factor of height and width; 1 or more */
    bool bilinear;   /* else each pixel is repeated. Pixel centres are at half-integers, edges are repeated */
} mr_upsample_desc;

/* A number outside 0 .. classes - 1 (padding) gives a row of zeros. */
typedef struct mr_embedding_desc {
    uint32_t classes, units;
    uint32_t out_dtype; /* as of INPUT */
} mr_embedding_desc;

typedef struct mr_pad_desc {
    uint32_t before, behind; /* channels */
} mr_pad_desc;

/* From a state h (LSTM: also c) of zeros, with weights W [G][c], recurrent weights U [G][units] and biases
 * [G]:
 *
 *   GRU    G = 3 units, in the order r, z, n; parameters weights, recurrent, bias b, recurrent_bias d
 *            r = sigmoid(W_r x + b_r + U_r h + d_r)        z = sigmoid(W_z x + b_z + U_z h + d_z)
 *            n = tanh(W_n x + b_n + r (U_n h + d_n))       h' = (1 - z) n + z h
 *          The reset gate acts on the product, as in cuDNN.
 *   LSTM   G = 4 units, in the order i, f, g, o; parameters weights, recurrent, gate_bias b
 *            i, f, o = sigmoid(W x + U h + b)   g = tanh(W x + U h + b)   c' = f c + i g   h' = o tanh(c') */
typedef struct mr_recurrent_desc {
    uint32_t units;
    bool sequences; /* y is the state after every step, 1 x w x units; else after the last, 1 x 1 x units */
    /* Not 0: x is int32 numbers (1 x w x 1), and each number stands for its ONE_HOT row with this number of
     * classes. The product is a table look-up, and x has no gradient. 0: x is 1 x w x c */
    uint32_t classes;
    uint32_t out_dtype; /* with classes: as of INPUT; else the dtype of x */
} mr_recurrent_desc;

/* p = softmax(f x), f the factor. A sample's loss is -sum of q ln p over the classes. In training
 * (mr_op_args.training) the target q is 1 - smoothing at the label, plus smoothing / classes at every class
 * (Szegedy et al. 2016, "Rethinking the Inception Architecture", section 7); in evaluation it is 1 at the
 * label.
 *
 * With ONE logit x there are two classes, as with the two logits 0 and x: labels are 0 and 1, y receives the
 * probability of class 1, sigmoid(f x), and the predicted class is 1 when x is positive. */
typedef struct mr_loss_desc {
    float factor;    /* of the logits, finite and above 0; 0 means 1 */
    float smoothing; /* [0, 1) */
    float weight;    /* of the loss and its gradient, finite and above 0; 0 means 1 */
    bool silent;     /* add to metrics->loss_sum only: another loss of the network counts samples */
    /* In training each class has a weight w, mr_op_args.class_weights: the loss is -sum of w q ln p. As in
     * PyTorch's CrossEntropyLoss each class's weight also applies to its smoothing. The mean over a batch
     * divides by the number of samples, not by the sum of their weights */
    bool class_weights;
} mr_loss_desc;

typedef struct mr_reshape_desc {
    uint32_t h, w, c;
} mr_reshape_desc;

/* y = x + exp(factor x2) e, e a normal draw (Box & Muller 1958) that depends only on (seed, op_id,
 * values->step, index of the sample in the global batch, element), in training and evaluation (Kingma &
 * Welling 2014, section 2.4). */
typedef struct mr_sample_desc {
    float factor;   /* 0 means 0.5, which makes x2 the logarithm of the variance */
    uint32_t op_id; /* distinguishes the layers of one network */
} mr_sample_desc;

typedef enum mr_pair_loss {
    /* x logits, x2 target probabilities in [0, 1]: -(x2 ln s + (1 - x2) ln(1 - s)), s = sigmoid(x) */
    MR_PAIR_CROSS_ENTROPY = 0,
    MR_PAIR_SQUARES, /* (x - x2)^2 */
    /* x means, x2 log variances of normal distributions: their divergence from the standard normal
     * distribution, -(1 + x2 - x^2 - exp(x2)) / 2 (Kullback & Leibler 1951) */
    MR_PAIR_DIVERGENCE,
    /* x logits, x2 the target share of each class, for each pixel alone: -sum over c of x2 ln softmax(x). One
     * 1 is a label (ONE_HOT); a pixel of zeros does not count */
    MR_PAIR_CLASSES,
    MR_PAIR_ABSOLUTE, /* |x - x2|; its slope at 0 is 0 */
    /* (x - x2)^2 / 2 if |x - x2| < 1, else |x - x2| - 1 / 2 (Huber 1964) */
    MR_PAIR_HUBER,
} mr_pair_loss;
enum { MR_PAIR_COUNT = MR_PAIR_HUBER + 1 };

/* A sample's loss is weight times the SUM over its elements. x and x2 may have different layouts. labels may
 * be NULL: every sample counts. */
typedef struct mr_pair_loss_desc {
    mr_pair_loss kind;
    float weight; /* finite and above 0; 0 means 1 */
    bool silent;  /* as in mr_loss_desc */
    /* x2 are targets from the data, not computed values. A sample with a target that is not finite, or
     * outside [0, 1] for CROSS_ENTROPY, is bad (mr_metrics) and gets no gradient; on the processor it ends
     * the stream with an error when training. For CROSS_ENTROPY metrics->correct counts the elements for
     * which x > 0 equals x2 > 0.5 */
    bool targets;
} mr_pair_loss_desc;

/* Krizhevsky et al. 2012, section 3.3, with the constants of TensorFlow's tf.nn.lrn:
 *
 *     y_c = x_c / (bias + alpha * (the squares of x of channels c - radius .. c + radius))^beta
 *
 * of one pixel; missing channels count 0. alpha is not divided by the number of channels; Caffe and oneDNN
 * divide it. */
typedef struct mr_lrn_desc {
    uint32_t radius;         /* 0 .. MR_LRN_MOST_RADIUS */
    float bias, alpha, beta; /* finite; bias above 0, alpha and beta 0 or more */
} mr_lrn_desc;
#define MR_LRN_MOST_RADIUS 64u

typedef struct mr_softmax_desc {
    bool log; /* the logarithm of softmax, accurate for tiny probabilities */
} mr_softmax_desc;

typedef struct mr_op_desc {
    mr_op_kind kind;
    mr_tensor in;  /* the producer's output tensor (INPUT: u8 NHWC; ONE_HOT, EMBEDDING: whole numbers h x w x
                      1; FIELD: any numbers, NHWC; GRU, LSTM: NHWC, or i32 1 x w x 1). Input, output and their
                      gradients have its dtype. Parameters, their gradients and statistics are always f32 */
    mr_tensor in2; /* tensor of x2. ADD, BATCHNORM with residual: equal to the op's output in every field.
                      CONCAT: equal to `in` except for the channels; SAMPLE: equal to `in`; PAIR_LOSS: shape
                      and type of `in`. SCALE: 1 x 1 x c, any layout of the device */
    uint32_t max_batch;       /* forward and backward take 1..max_batch samples */
    bool training;            /* backward will be called */
    bool need_dx;             /* backward computes the gradient to the input */
    mr_activation activation; /* of ACTIVATION, or fused after CONV2D, CONV2D_TRANSPOSED, DENSE, BATCHNORM,
                                 ADD (only if mr_activation_needs_x() is false); other kinds ignore it */
    mr_wanted_layout want;    /* layout of the output of INPUT, CONV2D and CONV2D_TRANSPOSED (not NCHW);
                                 MR_WANT_ANY: the device chooses. All other kinds keep their input's layout */
    union { /* the member that kind selects; name it in an initialiser, which zeroes its other members */
        mr_conv2d_desc conv2d; /* CONV2D, CONV2D_TRANSPOSED */
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
    uint64_t dim[4];          /* canonical shape, row-major */
    uint64_t count;           /* product of dim */
    uint64_t storage_count;   /* floats in the device's layout, including padding (which is always zero) */
    uint64_t fan_in, fan_out; /* for initialisers */
} mr_param_info;

typedef struct mr_op_info {
    mr_tensor out;
    uint32_t param_count; /* trained */
    mr_param_info param[MR_OP_MAX_PARAMS];
    uint32_t state_count; /* state that is not trained (running statistics); forward updates it when
                             training */
    mr_param_info state[MR_OP_MAX_PARAMS];
    size_t saved_bytes;   /* memory that forward writes and backward reads, for max_batch samples */
    size_t scratch_bytes; /* memory that is free between calls; ops of one stream may share it */
    bool inplace; /* forward may run with y == x, and backward with dx == dy. An inplace ACTIVATION with
                     MR_ACT_NONE only adds dy2 */
    double flops_per_sample; /* forward; multiply and add count 2 */
    /* The algorithm of each pass of a convolution, by mr_op_pass: "direct" or "winograd"; NULL: no such pass,
     * or the device does not report it. Static strings. */
    const char *algorithm[3];
    bool writes_dx2; /* backward writes the gradient to x2 to args.dx2; else it leaves it in dy */
} mr_op_info;

typedef struct mr_op mr_op;

/* Create an op. On MR_EINVAL err names the invalid member of desc, on MR_EUNSUPPORTED the missing feature of
 * the device. */
MR_API int mr_op_create(mr_op **out, mr_device *dev, const mr_op_desc *desc, mr_error *err);
MR_API void mr_op_destroy(mr_op *op); /* accepts NULL; nothing queued may use it */
MR_API const mr_op_info *mr_op_info_of(const mr_op *op);

/* Sums over the batch, on the device; forward of a loss adds to them. */
typedef struct mr_metrics {
    double loss_sum;  /* of -log p(label) */
    uint64_t correct; /* argmax == label (ties: the first); PAIR_LOSS: elements (mr_pair_loss_desc.targets) */
    uint64_t count;   /* samples with label >= 0 */
    uint64_t bad; /* samples whose label is not below c or whose targets are invalid; the sums above exclude
                     them. When training, the processor ends the stream with an error instead */
} mr_metrics;

/* Values that change from step to step. Ops and updates read them from device memory when they run, so that a
 * recorded step (mr_graph) can run again with new values: copy them to the device on the same stream
 * first. */
typedef struct mr_step_values {
    uint64_t step; /* DROPOUT and SAMPLE: draws depend on it */
    /* LOSS: backward computes scale * factor * (softmax - target); scale is 1 / (samples counted in the
     * GLOBAL batch) */
    float scale;
    float lr;        /* updates: learning rate; NADAM: the factor of g, lr (1 - b_t) / (1 - b_1 ... b_t) */
    float adam_rate; /* lr / (1 - beta1^t); NADAM: the factor of m, lr b_(t+1) / (1 - b_1 ... b_(t+1)); LAMB:
                        without lr */
    float adam_root; /* 1 / sqrt(1 - beta2^t); RMSPROP_MOMENTUM: rho^t */
} mr_step_values;

/* Scaling of the loss for f16 (Micikevicius et al. 2018), in device memory. LOSS multiplies its gradient by
 * scale; the update divides by it. When any gradient is infinite or not a number, the update is skipped as a
 * whole, the scale is halved and `skipped` is incremented. After growth_steps good updates in a row the scale
 * doubles. */
typedef struct mr_loss_scale {
    float scale;           /* a power of two, 1 .. 2^24 */
    uint32_t growth_steps; /* 0: the scale is fixed */
    uint32_t good;         /* updates since the last change */
    uint32_t overflow;     /* used by the device while an update runs */
    uint64_t skipped;      /* updates skipped so far */
} mr_loss_scale;

/* All addresses are device memory. An op ignores members that it does not need; they may be NULL. */
typedef struct mr_op_args {
    uint32_t n;     /* samples, 1..max_batch */
    const void *x;  /* input; unchanged until backward unless inplace */
    const void *x2; /* second input of ADD, CONCAT, SCALE, SAMPLE, PAIR_LOSS and BATCHNORM with residual */
    void *y;        /* output; unchanged until backward, which reads it. LOSS: softmax of x, or NULL */
    void *dy; /* gradient to y: read, and may be overwritten. After backward of ADD or BATCHNORM with residual
                 it holds the gradient to x2 */
    const void *dy2; /* a second gradient to y, from another consumer, or NULL: added to dy first. All ops
                        except losses */
    /* gradient to x: written; must differ from dy unless inplace. ADD: may be NULL, dy is the gradient to
     * both inputs */
    void *dx;
    const float *param[MR_OP_MAX_PARAMS];
    float *dparam[MR_OP_MAX_PARAMS]; /* gradients: written, not added to */
    float *state[MR_OP_MAX_PARAMS];
    void *saved, *scratch;
    bool training; /* DROPOUT, BATCHNORM, GRU, LSTM (forward saves data for backward); losses (mr_metrics.bad)
                    */
    uint64_t seed; /* DROPOUT, SAMPLE: bits of a sample depend only on (seed, op_id, values->step, first + its
                      index, element) */
    uint32_t first;                  /* index of this share's first sample in the global batch */
    const float *affine;             /* INPUT: n pairs (a, b), or NULL */
    const uint8_t *flip;             /* INPUT: n bytes, nonzero: mirror this sample; or NULL */
    const int32_t *labels;           /* losses: n labels; a sample with a negative label does not count */
    const mr_step_values *values;    /* DROPOUT when training, SAMPLE, backward of losses */
    const mr_loss_scale *loss_scale; /* backward of losses; NULL: 1 */
    mr_metrics *metrics;             /* losses */
    void *dx2; /* gradient to x2 of ops with mr_op_info.writes_dx2: written; NULL: not computed */
    /* LOSS: n values each, or both NULL. For samples mixed from two pictures (mixup, cutmix) the target is
     * share2 (0 to 1) for the class in labels2 and 1 - share2 for the class in labels; the sample is correct
     * when the class with the larger target (labels on a tie) has the largest logit. share2 0: not mixed,
     * labels2 is ignored. A sample with a negative label does not count. */
    const int32_t *labels2;
    const float *share2;
    /* LOSS with mr_loss_desc.class_weights, when training: one weight per class (two for one logit), finite,
     * 0 or more */
    const float *class_weights;
} mr_op_args;

/* Queue a forward pass on s, a stream of the op's device. */
MR_API int mr_op_forward_async(mr_op *op, mr_stream *s, const mr_op_args *args);
/* Losses write dx (and dx2) from their inputs. Other ops write dx (when need_dx) and dparam from dy. */
MR_API int mr_op_backward_async(mr_op *op, mr_stream *s, const mr_op_args *args);

/* Copy a parameter between canonical host order (row-major, param[which].count floats) and the device's
 * layout at address (storage_count floats). Both functions block until the copy is done. state true:
 * state[which] in place of param[which]. Export also works for gradients. */
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
    /* Dozat 2016: Adam with Nesterov momentum; for the correction of m and its look-ahead, beta1 at step t is
     * beta1 (1 - 0.5 * 0.96^(t / 250)). s0 = m, s1 = v */
    MR_UPDATE_NADAM,
    /* Loshchilov & Hutter 2019: Adam with decoupled decay: w -= lr weight_decay w. s0 = m, s1 = v */
    MR_UPDATE_ADAMW,
    /* You et al. 2020: x = m' / (sqrt(v') + epsilon) + weight_decay w, m' and v' with Adam's bias correction;
     * for each tensor w -= lr |w| / |x| x, or w -= lr x when one of the two norms is 0. s0 = m, s1 = v. Needs
     * mr_update_config.tensors */
    MR_UPDATE_LAMB,
    /* RMSprop with momentum as in TensorFlow 1: a = rho a + (1 - rho) g^2 from a = 1;
     * v = momentum v + lr g / sqrt(a + epsilon); w -= v. s0 = a - rho^t, s1 = v */
    MR_UPDATE_RMSPROP_MOMENTUM,
    /* Jordan et al. 2024, for the matrices in mr_update_config: m = momentum m + (1 - momentum) g; u = m, or
     * u = momentum m + (1 - momentum) g with the new m (nesterov); O approximates the nearest orthogonal
     * matrix to u, by five Newton-Schulz iterations; w -= lr (weight_decay w + 0.2 sqrt(max(rows, columns))
     * O). The factor, from Liu et al. 2025, matches the size of O to a step of AdamW. Floats outside the
     * matrices are updated as by ADAMW. s0 = m, s1 = v */
    MR_UPDATE_MUON,
} mr_update_kind;
enum { MR_UPDATE_KIND_COUNT = MR_UPDATE_MUON + 1 };

typedef struct mr_update_desc {
    mr_update_kind kind;
    float lr, momentum, rho, beta1, beta2, epsilon;
    float weight_decay; /* g += weight_decay * w, before anything else (ADAMW, LAMB, MUON: see there) */
    bool nesterov;
    uint64_t step; /* number of the update, 1 for the first: t of Adam, related rules and RMSPROP_MOMENTUM */
} mr_update_desc;

/* An update rule with its name in commands and the constants that its authors or its best known
 * implementation propose. Owned by the library. */
typedef struct mr_update_rule {
    const char *name;    /* "sgd", "nesterov", "adamw" */
    mr_update_desc desc; /* kind and constants; lr and step are 0; weight_decay is 0 unless the rule defines
                            one */
} mr_update_rule;
MR_API const mr_update_rule *mr_update_rule_at(uint32_t at);        /* at from 0; NULL past the end */
MR_API const mr_update_rule *mr_update_rule_find(const char *name); /* NULL: unknown name */
/* Return the name for kind and nesterov; "an unknown rule" for an unknown kind. */
MR_API const char *mr_update_name(const mr_update_desc *desc);

MR_API uint32_t mr_update_state_count(mr_update_kind kind); /* arrays of state: 0, 1 or 2 */
/* Compute lr, adam_rate and adam_root of *out from desc->lr and desc->step; step and scale of *out are
 * unchanged. MR_EINVAL: the rule depends on t, and desc->step is 0. A skipped update (mr_loss_scale) counts
 * as an update. */
MR_API int mr_update_values(const mr_update_desc *desc, mr_step_values *out);

/* Addresses in device memory. */
typedef struct mr_update_args {
    uint64_t count; /* floats in each array */
    float *weights;
    const float *grads;
    float *state[2]; /* mr_update_state_count() arrays, zero before the first step */
    const mr_step_values *values;
    mr_loss_scale *loss_scale; /* or NULL: gradients are not scaled */
} mr_update_args;

/* Queue one update of all parameters. lr and step of desc are ignored; args->values has them. */
MR_API int mr_update_async(mr_stream *s, const mr_update_desc *desc, const mr_update_args *args);

/* A parameter that is a matrix. Unused floats of its last stretch of MR_UPDATE_STRETCH floats belong to no
 * parameter and are unchanged. */
typedef struct mr_update_matrix {
    uint64_t at;            /* offset in the arrays, in floats, a multiple of MR_UPDATE_STRETCH */
    uint64_t rows, columns; /* in canonical order */
    mr_op *op; /* the matrix is parameter `which` of this op, in the op's layout; NULL: row-major */
    uint32_t which;
} mr_update_matrix;

/* An update with more settings than mr_update_async() has. New settings come last. */
typedef struct mr_update_config {
    size_t struct_size;
    mr_update_desc rule; /* lr and step are ignored, as by mr_update_async() */
    mr_update_args args;
    /* Clipping of gradients (after division by the loss scale, if any), in this order, before weight decay;
     * 0: none. */
    float clip_value; /* each gradient is clamped to [-clip_value, clip_value] */
    float clip_norm;  /* if the norm of all gradients together exceeds this, all are multiplied by clip_norm /
                         norm */
    /* Device memory for mr_update_norm_count(args.count) doubles, needed with clip_norm. After an update [0]
     * is the square of the norm and [1] the factor of the gradients. Squares are added in double, in an order
     * that depends on count alone, so the same gradients give the same norm however the batch and the
     * exchange are divided. */
    double *norm;
    /* Device memory: one byte per MR_UPDATE_STRETCH floats of the arrays, the last byte for the remainder; 0:
     * no weight_decay for these floats. NULL: weight_decay applies to all. */
    const uint8_t *decays;
    /* LAMB, device memory. tensors: for each MR_UPDATE_STRETCH floats the number of their tensor, from 0 and
     * in order. trust: mr_update_trust_count(args.count, tensor_count) doubles; after an update the first
     * tensor_count entries hold each tensor's step multiplier. */
    const uint32_t *tensors;
    double *trust;
    uint32_t tensor_count;
    /* MUON. matrices: sorted by offset, without overlap, in host memory that is valid until the update has
     * run and as long as a graph that recorded it. room: mr_update_room_bytes() bytes of device memory. */
    const mr_update_matrix *matrices;
    uint32_t matrix_count;
    void *room;
} mr_update_config;
#define MR_UPDATE_STRETCH 64u

static inline void mr_update_defaults(mr_update_config *cfg);
/* Doubles in mr_update_config.norm and in .trust. */
MR_API uint64_t mr_update_norm_count(uint64_t count);
MR_API uint64_t mr_update_trust_count(uint64_t count, uint32_t tensor_count);
/* Bytes of mr_update_config.room for these matrices on this device; 0 for no matrices. */
MR_API uint64_t mr_update_room_bytes(const mr_device *dev, const mr_update_matrix *matrices, uint32_t count);
/* Queue one update. MR_EINVAL: an address is missing, or a number is invalid. */
MR_API int mr_update_run_async(mr_stream *s, const mr_update_config *cfg);

/* Queue average[i] += (1 - decay) * (from[i] - average[i]) for floats of one device: an exponential moving
 * average. decay is in [0, 1). */
MR_API int mr_average_async(mr_stream *s, float *average, const float *from, uint64_t count, float decay);

/* Queue to[i] += from[i] for floats of one device. It is fastest when count is a multiple of 64. */
MR_API int mr_add_async(mr_stream *s, float *to, const float *from, uint64_t count);

/* ------------------------------------------------------------------------------ groups */

typedef struct mr_group mr_group;

/* Sums have ONE order, on any number of devices and processes: a batch is cut into `leaves` shares, each
 * share's gradient is a leaf of a binary tree, and a node of n > 1 leaves is the sum of its first 2^k leaves
 * (the largest power of two below n) plus the sum of its other leaves. The sum has the same bits for every
 * distribution of the leaves over devices and processes. The holder of leaves [first, first + count) adds
 * complete nodes without communication: */
typedef struct mr_sum_node {
    uint32_t first, count; /* leaves */
} mr_sum_node;
#define MR_SUM_MOST_LEAVES 65536u
#define MR_SUM_MOST_NODES  32u /* enough for any range */

/* Write the largest nodes that make up a range, in order, to out (room for MR_SUM_MOST_NODES, or NULL).
 * Returns their number; 0: the range is invalid. */
MR_API uint32_t mr_sum_cover(uint32_t leaves, uint32_t first, uint32_t count, mr_sum_node *out);

/* Bytes to or from another process; data may be NULL when bytes is 0. */
typedef struct mr_piece {
    void *data;
    size_t bytes;
} mr_piece;

/* A group's connection to the other processes of a run. Calls come from one thread at a time, and block. */
typedef struct mr_wire {
    uint32_t rank, size; /* this process, and the number of processes */
    void *context;
    /* Send send[r] to rank r and receive receive[r] from it (`size` entries each, the entry of this rank is
     * empty); the process at the other end makes the matching call with the same numbers of bytes. Its status
     * and err become the error of the group's streams. A thread of the group calls it while the streams wait:
     * it may wait for other processes, but for nothing in this process. */
    int (*exchange)(void *context, const mr_piece *send, const mr_piece *receive, mr_error *err);
} mr_wire;

typedef struct mr_group_config {
    size_t struct_size;
    mr_stream *const *streams; /* one per device, for the group's work: the compute streams, or
                                  MR_STREAM_EXCHANGE streams that events order against them */
    uint32_t count;
    uint32_t leaves, first; /* leaves of all processes; first leaf of this process. 0, 0: one leaf per device,
                               one process */
    const uint32_t *held;   /* number of leaves per device, 1 or more; leaves are consecutive in the order of
                               devices. NULL: one per device */
    const mr_wire *wire;    /* copied; its context must outlive the group. NULL: one process */
    /* With other processes: sums go between GPUs by NCCL, which runs on the streams; the wire carries only
     * the messages by which the processes find each other. cuda only (else MR_EUNSUPPORTED). Default false:
     * sums go through host memory and the wire. */
    bool nccl;
    /* With nccl, required: returns MR_OK while all processes are there, else why not, with wire->context.
     * Threads that wait for the streams call it every few milliseconds, and end the group's work when it
     * fails. It must not block. */
    int (*check)(void *context, mr_error *err);
    /* With nccl: where NCCL cannot be used in a process, sums go through host memory and the wire instead, in
     * all processes; mr_group_uses_nccl() has the reason. Default false. */
    bool nccl_optional;
    /* With nccl: time limit for all GPUs to connect, in seconds; 0 (default): none. */
    double connect_s;
    /* With other processes and sums through host memory: each machine has this number of consecutive ranks of
     * the wire, from a multiple of it on, and exchanges between them are cheap (mr_world_ranks_per_host()).
     * The ranks of a machine then add their sums before one of them sends each value to other machines; the
     * bits are the same. 0 or 1 (default): not known. */
    uint32_t ranks_per_host;
} mr_group_config;

static inline void mr_group_defaults(mr_group_config *cfg);

/* Open a group. MR_EUNSUPPORTED: two devices are replicas on the same GPU, and there is no other process, or
 * NCCL is used; NCCL is missing, or of another version than in process 0. With a wire all processes open
 * their groups at the same time; where NCCL cannot be used in one of them all fail, the others with MR_EPEER,
 * unless nccl_optional is set. MR_EIO: NCCL has not connected all GPUs within connect_s. */
MR_API int mr_group_open(mr_group **out, const mr_group_config *cfg, mr_error *err);
/* Open a group of one process with one leaf per device. */
MR_API int mr_group_create(mr_group **out, mr_stream *const *streams, uint32_t count, mr_error *err);
MR_API void mr_group_destroy(mr_group *g); /* accepts NULL; nothing queued may use it */
/* Return true when NCCL sums between processes. *why_not (may be NULL): with nccl_optional the reason why it
 * does not, else ""; valid as long as g. False if g is NULL. */
MR_API bool mr_group_uses_nccl(const mr_group *g, const char **why_not);
/* Queue the sum of all leaves on every stream. values: the arrays (count floats each) of the first device's
 * nodes (in the order of mr_sum_cover()), then the second device's, ... The LAST array of each device becomes
 * the sum of all leaves, the same bits on every device; the other arrays are undefined afterwards. cpu adds
 * in the order of the tree, and so does cuda with other processes, in host memory. cuda in one process, and
 * with mr_group_config.nccl, adds each device's nodes, then sums by NCCL: the same bits in every run on the
 * same GPUs, links, library and settings; with nccl and deterministic devices NCCL carries the values, and
 * the GPUs add them in the order of the tree. A single node that is the whole tree is unchanged. */
MR_API int mr_group_sum_async(mr_group *g, float *const *values, uint64_t count);
/* Queue a broadcast: values[i], one array per device, becomes values[root] (of the first process, if there
 * are several). */
MR_API int mr_group_broadcast_async(mr_group *g, float *const *values, uint64_t count, uint32_t root);
/* Abort queued work, for example because one device never arrives: it ends soon with an error on every stream
 * of the group, and so does all later work on them. Any thread; repeated calls are harmless. */
MR_API void mr_group_abort(mr_group *g);

/* ------------------------------------------------------------------------------ graphs */

typedef struct mr_graph mr_graph;

/* Begin a recording: until mr_graph_end() calls on s record their work instead of queueing it. Allowed: ops,
 * updates, copies between device memory, fills, on s alone. MR_EUNSUPPORTED: this device does not record;
 * queue the work each time instead. */
MR_API int mr_graph_begin(mr_stream *s);
/* End the recording, also after a recorded call failed. */
MR_API int mr_graph_end(mr_stream *s, mr_graph **out, mr_error *err);
/* Queue the recorded work with the recorded addresses and numbers; the memory may hold new values. */
MR_API int mr_graph_launch_async(mr_graph *g, mr_stream *s);
MR_API void mr_graph_destroy(mr_graph *g); /* accepts NULL; nothing queued may use it */

/* ------------------------------------------------------------------------------ struct sizes
 *
 * Nothing to read here for a program in C or C++. The library exports the functions below in place of the
 * inline ones above: each inline function passes the size of its struct in the caller's header (base.h). A
 * program in another language sets struct_size and calls ..._sized. */

MR_STABLE void mr_devices_defaults_sized(mr_devices_config *cfg, size_t struct_size);
static inline void mr_devices_defaults(mr_devices_config *cfg)
{
    mr_devices_defaults_sized(cfg, sizeof *cfg);
}

MR_API bool mr_device_list_sized(uint32_t at, mr_device_listing *out);
static inline bool mr_device_list(uint32_t at, mr_device_listing *out)
{
    if (out) out->struct_size = sizeof *out;
    return mr_device_list_sized(at, out);
}

MR_API void mr_update_defaults_sized(mr_update_config *cfg, size_t struct_size);
static inline void mr_update_defaults(mr_update_config *cfg) { mr_update_defaults_sized(cfg, sizeof *cfg); }

MR_API void mr_group_defaults_sized(mr_group_config *cfg, size_t struct_size);
static inline void mr_group_defaults(mr_group_config *cfg) { mr_group_defaults_sized(cfg, sizeof *cfg); }

#ifdef __cplusplus
}
#endif
#endif
