/* millrace/kernels.h: what a device is and can do.
 *
 *   devices   opened from one text ("cpu:4", "sim:8,step=3.1ms,h2d=25GB/s"); every kind behind the same calls
 *   memory    device memory, pinned host memory
 *   streams   in-order queues of work; events order work between streams and carry time stamps
 *   ops       network operations with fixed shapes: forward and backward, in a memory layout the device chooses
 *   updates   optimizer steps over flat parameter arrays
 *   groups    sums and broadcasts between the devices of one run
 *
 * Nothing above this header asks which device it is. Three rules make that possible:
 *   - device memory is an address that only the device reads; callers do arithmetic on it, never dereference it;
 *   - every call named ..._async only queues work on its stream and returns; results and errors of queued work appear at
 *     mr_stream_sync(), mr_event_sync() or the next call on the stream: an error sticks to its stream and device;
 *   - an op owns the layout of its output and parameters. Whoever consumes a tensor is created from the producer's
 *     mr_tensor, and parameters leave or enter their layout only through mr_op_param_export/import.
 *
 * Threads: a device may be used from several threads at once; one stream, one op or one group from one thread at a time. */
#ifndef MILLRACE_KERNELS_H
#define MILLRACE_KERNELS_H

#include "millrace/base.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MR_FOREVER UINT64_MAX
#define MR_DEVICE_ALIGN 256 /* bytes; every device and pinned allocation starts at a multiple */

/* ------------------------------------------------------------------------------------------------ devices */

typedef struct mr_device mr_device;
typedef struct mr_stream mr_stream;
typedef struct mr_event  mr_event;

typedef struct mr_device_info {
    const char *kind;          /* "cpu", "sim", "cuda" */
    const char *name;          /* "cpu:0", with options that matter: "sim:3 step=3.1ms h2d=25GB/s" */
    const char *hardware;      /* what it is: CPU model, GPU name */
    uint32_t    index;         /* replica number within its kind */
    uint32_t    threads;       /* cpu: threads the compute streams of this device use; else 0 */
    uint64_t    memory_bytes;  /* usable; 0 when only the host's own limit applies */
    bool        simulated;     /* computes nothing: loss and accuracy mean nothing */
    double      h2d_bytes_per_s; /* link rate where it is a given (sim); else 0 */
} mr_device_info;

typedef struct mr_devices_config {
    size_t   struct_size;
    uint32_t compute_threads; /* core budget shared by all cpu devices; 0: every core of the process */
    bool     reference;       /* cpu: the plain C reference of every op instead of oneDNN */
} mr_devices_config;

MR_API void mr_devices_defaults(mr_devices_config *cfg);

/* Open the devices that spec names, one per replica.
 *
 *   cpu | cpu:N                     N replicas on the processor
 *   sim:N[,step=TIME][,h2d=RATE][,d2h=RATE]   N simulated accelerators: real copies paced to RATE (GB/s, MB/s), one training
 *                                   step takes TIME (ns us ms s) on the compute stream; default step=1ms, h2d=25GB/s
 *   cuda:I[,cuda:J|,J]...           GPUs by number (where the build has CUDA)
 * A comma followed by name=value belongs to the item before it; a bare number continues the item before it.
 *
 * *out is an array of *count devices, freed with mr_devices_close(). MR_EINVAL: spec not understood, err says which part;
 * MR_EUNSUPPORTED: a kind this build lacks; MR_ENOENT: asked for more than there are, err names both numbers. */
MR_API int  mr_devices_open(mr_device ***out, uint32_t *count, const char *spec, const mr_devices_config *cfg,
                            mr_error *err);
/* Every stream, event, op and allocation of the devices must be gone. Accepts NULL. */
MR_API void mr_devices_close(mr_device **devices, uint32_t count);

MR_API const mr_device_info *mr_device_info_of(const mr_device *dev);

/* One line per device kind and device that is here, for `millrace devices`: number at from 0; false past the end. */
typedef struct mr_device_listing {
    char kind[16], spec[64], hardware[128], state[128]; /* state: "ready", or why not usable */
} mr_device_listing;
MR_API bool mr_device_list(uint32_t at, mr_device_listing *out);

/* ------------------------------------------------------------------------------------------------ memory */

/* Device memory; contents undefined. MR_ENOMEM says how much was asked and what is left. free accepts NULL and may be called
 * only when no queued work uses the memory. */
MR_API int  mr_device_alloc(mr_device *dev, size_t bytes, void **out, mr_error *err);
MR_API void mr_device_free(mr_device *dev, void *address);
/* Host memory that async copies may use (pinned where that means something); the CPU reads and writes it freely. */
MR_API int  mr_host_alloc(mr_device *dev, size_t bytes, void **out, mr_error *err);
MR_API void mr_host_free(mr_device *dev, void *address);

/* ------------------------------------------------------------------------------------------------ streams, events */

typedef enum mr_stream_role { MR_STREAM_COMPUTE = 0, MR_STREAM_COPY = 1 } mr_stream_role;

MR_API int  mr_stream_create(mr_stream **out, mr_device *dev, mr_stream_role role, mr_error *err);
MR_API void mr_stream_destroy(mr_stream *s); /* finishes what is queued first; accepts NULL */
MR_API mr_device *mr_stream_device(const mr_stream *s);

/* Wait until all queued work is done; the first error of any of it. */
MR_API int mr_stream_sync(mr_stream *s, mr_error *err);
/* Work queued on s after this runs after what e marks. e may belong to another device of the same run. An event that
 * was never recorded is already over. */
MR_API int mr_stream_wait_event(mr_stream *s, mr_event *e);

MR_API int  mr_event_create(mr_event **out, mr_device *dev, mr_error *err);
MR_API void mr_event_destroy(mr_event *e); /* accepts NULL; no queued work may still refer to it */
/* e marks the end of all work queued on s so far, replacing what it marked before. */
MR_API int  mr_event_record(mr_event *e, mr_stream *s);
MR_API int  mr_event_query(mr_event *e); /* MR_OK over, MR_EAGAIN not yet, other < 0: the work failed */
MR_API int  mr_event_sync(mr_event *e, mr_error *err);
/* When the marked work ended, in nanoseconds of CLOCK_MONOTONIC as the device tells it (a GPU's clock is mapped onto the
 * host's). MR_EAGAIN when it is not over or never recorded. */
MR_API int  mr_event_time_ns(mr_event *e, uint64_t *out);

/* Copies and fills on a stream. The memory stays untouched by others until an event recorded after the call is over. */
MR_API int mr_copy_h2d_async(mr_stream *s, void *device_dst, const void *host_src, size_t bytes);
MR_API int mr_copy_d2h_async(mr_stream *s, void *host_dst, const void *device_src, size_t bytes);
MR_API int mr_copy_d2d_async(mr_stream *s, void *device_dst, const void *device_src, size_t bytes);
MR_API int mr_fill_async(mr_stream *s, void *device_dst, uint8_t byte, size_t bytes);

/* ------------------------------------------------------------------------------------------------ tensors and ops */

/* Shape of ONE sample and how the device stores it. A batch of n is n such samples, one behind the other, in every layout:
 * the first k samples of a batch are a batch of k. Images are logical h x w x c; vectors are 1 x 1 x c. */
typedef struct mr_tensor {
    uint32_t h, w, c;
    uint32_t dtype;        /* MR_TENSOR_U8, MR_TENSOR_F32 */
    uint32_t layout;       /* MR_LAYOUT_NHWC, or a number that means something to the device only */
    size_t   sample_bytes; /* padding of the layout included */
} mr_tensor;

enum { MR_TENSOR_U8 = 1, MR_TENSOR_F32 = 2 };
enum { MR_LAYOUT_NHWC = 0 };

typedef enum mr_activation {
    MR_ACT_NONE = 0, MR_ACT_RELU, MR_ACT_TANH, MR_ACT_SIGMOID, MR_ACT_SELU,
} mr_activation;

typedef enum mr_op_kind {
    MR_OP_INPUT,      /* uint8 NHWC -> f32: (x * a_i + b_i - mean[c]) / std[c]; a, b per sample from args.affine, else 1, 0 */
    MR_OP_CONV2D,     /* + bias, + activation. weights [filters][kh][kw][c], bias [filters] */
    MR_OP_POOL2D,     /* max (ties: the first in row order takes the gradient) or average (padding not counted) */
    MR_OP_DENSE,      /* + bias, + activation. weights [units][h*w*c] in h, w, c order: flattening is implied */
    MR_OP_ACTIVATION,
    MR_OP_DROPOUT,    /* kept values / (1 - rate); identity when not training */
    MR_OP_BATCHNORM,  /* per channel over n, h, w; scale, shift; + activation. state: running mean, running variance */
    MR_OP_LOSS,       /* softmax cross-entropy over c logits against int32 labels */
} mr_op_kind;

typedef struct mr_op_desc {
    mr_op_kind    kind;
    mr_tensor     in;         /* as the producer gives it (INPUT: u8 NHWC) */
    uint32_t      max_batch;  /* forward and backward take 1..max_batch samples */
    bool          training;   /* backward will be called */
    bool          need_dx;    /* the gradient to the input is wanted */
    mr_activation activation; /* ACTIVATION itself, or fused behind CONV2D, DENSE, BATCHNORM */
    uint32_t      filters;    /* CONV2D filters, DENSE units */
    uint32_t      kernel_h, kernel_w, stride_h, stride_w; /* CONV2D, POOL2D */
    uint32_t      pad_top, pad_left, pad_bottom, pad_right;
    bool          average;    /* POOL2D */
    float         rate;       /* DROPOUT: fraction dropped, [0, 1) */
    uint32_t      op_id;      /* DROPOUT: tells the layers of one network apart */
    float         momentum, epsilon; /* BATCHNORM: running = momentum * running + (1 - momentum) * batch (biased variance) */
    float         mean[4], std[4];   /* INPUT, in units of the uint8 pixels (x / 255: mean 0, std 255) */
} mr_op_desc;

#define MR_OP_MAX_PARAMS 2

typedef struct mr_param_info {
    const char *name;          /* "weights", "bias", "scale", "shift", "mean", "variance" */
    uint32_t    ndim;
    uint64_t    dim[4];        /* canonical shape, row-major */
    uint64_t    count;         /* product of dim */
    uint64_t    storage_count; /* floats in the device's layout, padding included (padding is and stays zero) */
    uint64_t    fan_in, fan_out; /* for initialisers */
} mr_param_info;

typedef struct mr_op_info {
    mr_tensor     out;
    uint32_t      param_count;  /* trained */
    mr_param_info param[MR_OP_MAX_PARAMS];
    uint32_t      state_count;  /* kept, not trained (running statistics); updated by forward when training */
    mr_param_info state[MR_OP_MAX_PARAMS];
    size_t        saved_bytes;   /* forward writes, backward reads, for max_batch samples */
    size_t        scratch_bytes; /* free between calls; ops of one stream may share it */
    bool          inplace;       /* forward may run with y == x, and backward with dx == dy */
    double        flops_per_sample; /* forward; multiply and add count 2 */
} mr_op_info;

typedef struct mr_op mr_op;

/* MR_EINVAL says which part of desc makes no sense; MR_EUNSUPPORTED what the device lacks. */
MR_API int  mr_op_create(mr_op **out, mr_device *dev, const mr_op_desc *desc, mr_error *err);
MR_API void mr_op_destroy(mr_op *op); /* accepts NULL; nothing queued may use it */
MR_API const mr_op_info *mr_op_info_of(const mr_op *op);

/* Sums over the batch, on the device; forward of LOSS adds to it. */
typedef struct mr_metrics {
    double   loss_sum;  /* of -log p(label) */
    uint64_t correct;   /* argmax == label (ties: the first) */
    uint64_t count;     /* samples with label >= 0 */
} mr_metrics;

/* All addresses are device memory; what an op does not need is ignored and may be NULL. */
typedef struct mr_op_args {
    uint32_t     n;        /* samples, 1..max_batch */
    const void  *x;        /* input, kept unchanged until backward unless inplace */
    void        *y;        /* output; backward reads it (kept as forward left it). LOSS: softmax of x, or NULL */
    void        *dy;       /* gradient to y: read, and may be overwritten */
    void        *dx;       /* gradient to x: written */
    const float *param[MR_OP_MAX_PARAMS];
    float       *dparam[MR_OP_MAX_PARAMS]; /* gradients: written, not added to */
    float       *state[MR_OP_MAX_PARAMS];
    void        *saved, *scratch;
    bool         training; /* DROPOUT, BATCHNORM */
    uint64_t     seed, step; /* DROPOUT: bits of a sample depend on (seed, op_id, step, first + its place, element) only */
    uint32_t     first;    /* place of this part's first sample in the global batch */
    const float *affine;   /* INPUT: n pairs (a, b), or NULL */
    const int32_t *labels; /* LOSS: n; < 0 means do not count */
    float        scale;    /* LOSS: backward gives scale * (softmax - onehot); 1 / samples counted in the GLOBAL batch */
    mr_metrics  *metrics;  /* LOSS */
} mr_op_args;

MR_API int mr_op_forward_async(mr_op *op, mr_stream *s, const mr_op_args *args);
/* LOSS writes dx from x and labels. Others: dx (when need_dx) and dparam from dy. */
MR_API int mr_op_backward_async(mr_op *op, mr_stream *s, const mr_op_args *args);

/* Between canonical host order (row-major, param[which].count floats) and the device's layout at address
 * (storage_count floats). They finish before they return. state = true for state[which]. Export works for gradients too. */
MR_API int mr_op_param_import(mr_op *op, bool state, uint32_t which, void *address, const float *host, mr_error *err);
MR_API int mr_op_param_export(mr_op *op, bool state, uint32_t which, const void *address, float *host, mr_error *err);

/* ------------------------------------------------------------------------------------------------ updates */

typedef enum mr_update_kind {
    MR_UPDATE_SGD = 0,  /* w -= lr g */
    MR_UPDATE_MOMENTUM, /* v = momentum v - lr g; w += v, or w += momentum v - lr g (nesterov). s0 = v */
    MR_UPDATE_RMSPROP,  /* a = rho a + (1 - rho) g^2; w -= lr g / (sqrt(a) + epsilon). s0 = a */
    MR_UPDATE_ADAM,     /* Kingma & Ba 2015 with bias correction. s0 = m, s1 = v */
    MR_UPDATE_ADADELTA, /* Zeiler 2012, scaled by lr. s0 = mean g^2, s1 = mean step^2 */
} mr_update_kind;

typedef struct mr_update_desc {
    mr_update_kind kind;
    float    lr, momentum, rho, beta1, beta2, epsilon;
    float    weight_decay; /* g += weight_decay * w, before anything else */
    bool     nesterov;
    uint64_t step;         /* 1 for the first update (Adam's bias correction) */
} mr_update_desc;

MR_API uint32_t mr_update_state_count(mr_update_kind kind); /* arrays of state: 0, 1 or 2 */
/* count floats each; state0, state1 as the kind needs, zero before the first step. */
MR_API int mr_update_async(mr_stream *s, const mr_update_desc *desc, uint64_t count, float *weights, const float *grads,
                           float *state0, float *state1);

/* ------------------------------------------------------------------------------------------------ groups */

typedef struct mr_group mr_group;

/* The devices of one run; streams[i] belongs to devices[i] and is the stream the group's work is queued on. */
MR_API int  mr_group_create(mr_group **out, mr_stream *const *streams, uint32_t count, mr_error *err);
MR_API void mr_group_destroy(mr_group *g); /* accepts NULL; nothing queued may use it */
/* values[i] (count floats on device i) becomes the sum over all devices, the same bits everywhere and in every run
 * (added in device order). One call queues the work on every stream. A group of one does nothing. */
MR_API int mr_group_sum_async(mr_group *g, float *const *values, uint64_t count);
/* values[i] becomes values[root]. */
MR_API int mr_group_broadcast_async(mr_group *g, float *const *values, uint64_t count, uint32_t root);

#ifdef __cplusplus
}
#endif
#endif
