/* kernels/cuda/cuda.h: what a GPU, a stream and an operation on it are inside. Private to kernels/cuda/ and
 * its tests.
 *
 *   cuda.c         the backend table, opening and closing        library.c   the table of foreign functions
 *   list.c         what is here and why it is not usable         error.c     foreign codes into ours; the
 *                  first error is kept
 *   memory.c       pool, pinned memory, copies, fills            stream.c    streams, and waiting
 *   event.c        events, and the GPU's clock on the host's     graph.c     recording
 *   group.c        NCCL                                          launch.c    our kernels: loading, launching;
 *                  handles
 *   op.c           operations: create, run, parameters           op_NAME.c   one operation each
 *   kernels/       the device code, and args.h: what each kernel takes; image.c carries it compiled
 *   plan.c         cuDNN plans: which algorithm, measured once and remembered
 *
 * Everything a GPU does for us is queued on a stream; nothing here waits but what is documented to. A thread
 * that calls the driver has the device's context current: every entry of the backend table calls
 * mri_cuda_enter() first. */
#ifndef MRI_CUDA_H
#define MRI_CUDA_H

#include <stdatomic.h>

#include "kernels/backend.h"
#include "kernels/cuda/kernels/args.h"
#include "kernels/cuda/libraries.h"

#define MRI_CUDA_MAX_IMAGES 32u
#define MRI_CUDA_ANCHORS    4u

/* Events whose time on the host's clock is known, the newest at (count - 1) % MRI_CUDA_ANCHORS; see
 * event.c. */
struct mri_cuda_anchors {
    pthread_mutex_t lock; /* of all below */
    CUevent event[MRI_CUDA_ANCHORS];
    uint64_t ns[MRI_CUDA_ANCHORS];
    uint64_t count;
    bool pending; /* the next slot's event is queued, its time not known yet */
};

struct mri_cuda_comm; /* this device's part in a group: group.c */

typedef struct mri_cuda_device {
    mr_device base;
    const struct mri_cuda_api *api;
    int ordinal; /* as CUDA counts them after CUDA_VISIBLE_DEVICES */
    CUdevice device;
    CUcontext context; /* the primary one, retained */
    CUmemoryPool pool;
    CUstream house; /* allocations, parameters, measuring: work whose end is waited for at once */
    CUmodule modules[MRI_CUDA_MAX_IMAGES];
    uint32_t module_count;
    CUfunction kernels[MRK_COUNT];
    uint32_t multiprocessors;
    uint32_t capability; /* 10 * major + minor */
    bool tf32, deterministic, check_each;
    pthread_mutex_t lock;
    struct mri_cuda_anchors anchors;
    _Atomic uint64_t anchored_ns; /* host's clock when the newest anchor was queued */
    struct mri_cuda_comm *comms;  /* lock: of the groups this device is in */
    _Atomic uint32_t comm_count;
    _Atomic int failed; /* first error, 0 while well: a GPU that failed once stays failed */
    mr_error error;     /* lock */
} mri_cuda_device;

typedef struct mri_cuda_stream {
    mr_stream base;
    CUstream handle;
    cublasHandle_t cublas; /* both made when the first operation on this stream needs them */
    cudnnHandle_t cudnn;
    void *workspace;       /* of cublas */
    bool recording;        /* between mr_graph_begin() and _end() */
    mr_error record_error; /* the first one in between */
    const char *doing;     /* what was queued last, for error messages */
} mri_cuda_stream;

static inline mri_cuda_device *mri_cuda_device_of(mr_device *dev) { return (mri_cuda_device *)dev; }
static inline mri_cuda_device *mri_cuda_of_stream(mri_cuda_stream *s)
{
    return (mri_cuda_device *)s->base.device;
}

/* Make the device's context the calling thread's; the error the device failed with, once it has. */
int mri_cuda_enter(mri_cuda_device *dev, mr_error *err);
/* The same for what must happen after a failure too: closing and freeing. */
void mri_cuda_enter_anyway(mri_cuda_device *dev);

/* Turn a library's code into ours: MR_OK, or MR_EDEVICE (MR_ENOMEM for a device out of memory) with the
 * device, what it was doing, the code's name and text in err, and, for errors a GPU does not recover from, in
 * the device. what: "conv2d forward". */
int mri_cuda_check(mri_cuda_device *dev, CUresult code, const char *what, mr_error *err);
int mri_cuda_check_cublas(mri_cuda_device *dev, cublasStatus_t code, const char *what, mr_error *err);
int mri_cuda_check_cudnn(mri_cuda_device *dev, cudnnStatus_t code, const char *what, mr_error *err);
int mri_cuda_check_nccl(mri_cuda_device *dev, ncclResult_t code, const char *what, mr_error *err);
/* Keep the first error; every later call on the device returns it. Returns the code of the error given. */
int mri_cuda_fail(mri_cuda_device *dev, const mr_error *error);
/* The kept error, or MR_OK. */
int mri_cuda_failed(mri_cuda_device *dev, mr_error *err);
/* Name and text of a driver code, for a sentence. Any time after the driver was loaded. */
void mri_cuda_code_text(CUresult code, char *out, size_t out_bytes);

/* End of every ..._async entry: rc and err are what queueing gave. Notes what was queued, waits for it where
 * the device was asked to, and keeps a failure where the next synchronising call finds it: in the device, or
 * in the recording. what: a literal. */
int mri_cuda_queued(mri_cuda_stream *s, int rc, const char *what, mr_error *err);
/* The last part of it alone. */
int mri_cuda_keep(mri_cuda_stream *s, int rc, const char *what, mr_error *err);
/* MR_EINVAL while the stream records. */
int mri_cuda_not_recorded(mri_cuda_stream *s, const char *what, mr_error *err);

/* Wait for an event, or a stream where event is NULL. MR_EAGAIN after timeout_ns (MR_FOREVER: never). what:
 * for errors. */
int mri_cuda_wait(mri_cuda_device *dev, CUstream stream, CUevent event, uint64_t timeout_ns, const char *what,
                  mr_error *err);

/* Before a stream goes: what is queued may run on memory about to be freed, so wait for it after a failure
 * too. */
void mri_cuda_drain(mri_cuda_device *dev, CUstream stream);

/* The backend's entries outside cuda.c. */
bool mri_cuda_list(uint32_t at, mr_device_listing *out);
int mri_cuda_device_alloc(mr_device *dev, size_t bytes, void **out, mr_error *err);
void mri_cuda_device_free(mr_device *dev, void *address);
int mri_cuda_host_alloc(mr_device *dev, size_t bytes, void **out, mr_error *err);
void mri_cuda_host_free(mr_device *dev, void *address);
int mri_cuda_copy_async(mr_stream *s, enum mri_copy_kind kind, void *dst, const void *src, size_t bytes);
int mri_cuda_fill_async(mr_stream *s, void *dst, uint8_t byte, size_t bytes);
int mri_cuda_stream_create(mr_stream **out, mr_device *dev, mr_stream_role role, mr_error *err);
void mri_cuda_stream_destroy(mr_stream *s);
int mri_cuda_stream_sync(mr_stream *s, mr_error *err);
int mri_cuda_stream_wait_event(mr_stream *s, mr_event *e);
int mri_cuda_event_create(mr_event **out, mr_device *dev, mr_error *err);
void mri_cuda_event_destroy(mr_event *e);
int mri_cuda_event_record(mr_event *e, mr_stream *s);
int mri_cuda_event_query(mr_event *e);
int mri_cuda_event_wait(mr_event *e, uint64_t timeout_ns, mr_error *err);
int mri_cuda_event_time_ns(mr_event *e, uint64_t *out);
int mri_cuda_graph_begin(mr_stream *s);
int mri_cuda_graph_end(mr_stream *s, mr_graph **out, mr_error *err);
int mri_cuda_graph_launch_async(mr_graph *g, mr_stream *s);
void mri_cuda_graph_destroy(mr_graph *g);
int mri_cuda_group_create(mr_group **out, mr_stream *const *streams, uint32_t count, mr_error *err);
void mri_cuda_group_destroy(mr_group *g);
int mri_cuda_group_sum_async(mr_group *g, float *const *values, uint64_t count);
int mri_cuda_group_broadcast_async(mr_group *g, float *const *values, uint64_t count, uint32_t root);
void mri_cuda_group_abort(mr_group *g);
int mri_cuda_op_create(mr_op **out, mr_device *dev, const mr_op_desc *desc, const mr_op_info *info,
                       mr_error *err);
void mri_cuda_op_destroy(mr_op *op);
int mri_cuda_op_forward_async(mr_op *op, mr_stream *s, const mr_op_args *args);
int mri_cuda_op_backward_async(mr_op *op, mr_stream *s, const mr_op_args *args);
int mri_cuda_op_param_import(mr_op *op, bool state, uint32_t which, void *address, const float *host,
                             mr_error *err);
int mri_cuda_op_param_export(mr_op *op, bool state, uint32_t which, const void *address, float *host,
                             mr_error *err);

/* ---- pieces of a device that cuda.c opens and closes ---- */

int mri_cuda_pool_open(mri_cuda_device *dev, mr_error *err);
/* Let `other` read and write what dev allocates, where the machine can. */
int mri_cuda_pool_share(mri_cuda_device *dev, const mri_cuda_device *other, mr_error *err);
int mri_cuda_anchors_open(mri_cuda_device *dev, mr_error *err);
void mri_cuda_anchors_close(mri_cuda_device *dev);
int mri_cuda_kernels_load(mri_cuda_device *dev, mr_error *err);
void mri_cuda_kernels_unload(mri_cuda_device *dev);
void mri_cuda_handles_close(mri_cuda_stream *s);
/* What NCCL noticed by itself, kept in the device. */
void mri_cuda_group_look(mri_cuda_device *dev);

/* Our kernels compiled, one image for each file of kernels/; ends with a NULL name. */
struct mri_cuda_image {
    const char *name;
    const unsigned char *data;
};
extern const struct mri_cuda_image mri_cuda_images[];

#define MRI_CUDA_LEAST_CAPABILITY 80u

/* What can be known of a GPU without opening it. */
struct mri_cuda_look {
    CUdevice device;
    char name[128];
    size_t memory_bytes;
    uint32_t capability, multiprocessors;
};
int mri_cuda_look(int ordinal, struct mri_cuda_look *out, mr_error *err);
void mri_cuda_hardware_text(const struct mri_cuda_look *look, char *out, size_t out_bytes);
/* The driver is loaded, new enough and started; *count GPUs are visible, perhaps none. */
int mri_cuda_start(int *count, mr_error *err);
/* " (CUDA_VISIBLE_DEVICES=0,1)", or nothing where it is not set. Returns out. */
char *mri_cuda_mask_text(char *out, size_t out_bytes);

/* Launch one of our kernels. args: its struct of kernels/args.h, copied by the call. Sizes must not be
 * zero. */
int mri_cuda_launch(mri_cuda_stream *s, enum mrk_kernel kernel, uint32_t blocks, uint32_t threads,
                    uint32_t shared_bytes, const void *args, mr_error *err);
/* The same with a grid of blocks_x * blocks_y. */
int mri_cuda_launch_2d(mri_cuda_stream *s, enum mrk_kernel kernel, uint32_t blocks_x, uint32_t blocks_y,
                       uint32_t threads, uint32_t shared_bytes, const void *args, mr_error *err);
/* The stream's handles, made on first use and set to the stream. */
int mri_cuda_cublas(mri_cuda_stream *s, cublasHandle_t *out, mr_error *err);
int mri_cuda_cudnn(mri_cuda_stream *s, cudnnHandle_t *out, mr_error *err);

/* ---- operations ---- */

typedef struct mri_cuda_op mri_cuda_op;

/* As struct mri_op_code of the host kinds, except that forward and backward queue. Every tensor is NHWC
 * (INPUT may be asked for NCHW) and every parameter canonical: import and export are copies. */
struct mri_cuda_code {
    int (*prepare)(mri_cuda_op *op, mr_error *err); /* settles saved_bytes, scratch_bytes, own; leaves nothing
                                                       when it fails */
    void (*release)(mri_cuda_op *op);               /* NULL: nothing to release */
    int (*forward)(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err);
    int (*backward)(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err); /* dy2 was
                                                                                                 already
                                                                                                 added, unless
                                                                                               */
    bool adds_dy2; /* this says it does so itself */
};

struct mri_cuda_op {
    mr_op base;
    const struct mri_cuda_code *code;
    void *own;
};

extern const struct mri_cuda_code mri_cuda_input, mri_cuda_one_hot, mri_cuda_conv2d, mri_cuda_pool2d,
    mri_cuda_dense, mri_cuda_activation, mri_cuda_dropout, mri_cuda_batchnorm, mri_cuda_loss, mri_cuda_add;

int mri_cuda_update_async(mr_stream *s, const mr_update_desc *desc, const mr_update_args *args); /* op_update.c
                                                                                                  */

/* Pieces several operations share (op_elements.c), queued on s:
 * values of one type into another; a += b; y = act(y + bias) over rows of `channels`; dy *= act'(y) and dbias
 * = column sums of dy (dbias may be NULL; partial: scratch of mri_cuda_bias_scratch() bytes). dtype is of the
 * tensors; bias and dbias are f32. */
int mri_cuda_cast(mri_cuda_stream *s, uint64_t count, uint32_t to, void *dst, uint32_t from, const void *src,
                  mr_error *err);
int mri_cuda_accumulate(mri_cuda_stream *s, uint64_t count, uint32_t dtype, void *a, const void *b,
                        mr_error *err);
int mri_cuda_bias_activate(mri_cuda_stream *s, uint64_t rows, uint32_t channels, uint32_t dtype, void *y,
                           const float *bias, mr_activation activation, mr_error *err);
int mri_cuda_bias_backward(mri_cuda_stream *s, uint64_t rows, uint32_t channels, uint32_t dtype,
                           const void *y, void *dy, float *dbias, void *partial, mr_activation activation,
                           mr_error *err);
size_t mri_cuda_bias_scratch(const mri_cuda_device *dev, uint64_t rows, uint32_t channels);

static inline cudaDataType mri_cuda_type(uint32_t dtype) /* of cuBLAS */
{
    return dtype == MR_TENSOR_BF16 ? CUDA_R_16BF : dtype == MR_TENSOR_F16 ? CUDA_R_16F : CUDA_R_32F;
}

#endif
