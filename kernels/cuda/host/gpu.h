/* kernels/cuda/host/gpu.h: the room of a GPU's host side: device, streams, events, memory, graphs, groups,
 * and launching our kernels.
 *
 * Takes the number of a GPU, and work to queue on it. Gives tables for struct mri_backend, and streams,
 * memory, errors and launches. Callers: cuda.c for the tables, cuda/plan/ and cuda/ops/ for the rest. It
 * stands on kernels/backend/, NVIDIA's libraries and kernels/host/host_wire.h. From the bottom up, each file
 * calling only those above it in this list:
 *
 *   library.c       the table of foreign functions
 *   cuda_error.c    foreign codes into ours; the first error of a device is kept
 *   comm.c          the groups a device is in
 *   cuda_wait.c     waiting; the end of whatever queues
 *   cuda_memory.c   pool, pinned memory, copies, fills
 *   launch.c        our kernels: loading, launching; cuda_image.c carries them compiled
 *   handles.c       cuBLAS and cuDNN of a stream
 *   cuda_clock.c    the GPU's clock on the host's
 *   cuda_stream.c   streams
 *   cuda_event.c    events
 *   cuda_graph.c    recording
 *   cuda_wire.c     sums with other processes, through the memory of the host
 *   cuda_across.c   the same by NCCL, from GPU to GPU
 *   cuda_group.c    NCCL
 *
 * All GPU work is queued on a stream; only functions that are documented to wait do so. A thread that calls
 * the driver has the device's context current: every entry of the backend's tables calls mri_cuda_enter()
 * first. */
#ifndef MRI_GPU_H
#define MRI_GPU_H

#include <stdatomic.h>

#include "kernels/backend/backend.h"
#include "kernels/cuda/host/libraries.h"
#include "kernels/cuda/kernels/args.h"

#define MRI_CUDA_MAX_IMAGES 32u
#define MRI_CUDA_ANCHORS    4u

/* Events whose time on the host's clock is known, the newest at (count - 1) % MRI_CUDA_ANCHORS; see
 * cuda_clock.c. */
struct mri_cuda_anchors {
    pthread_mutex_t lock; /* of all below */
    CUevent event[MRI_CUDA_ANCHORS];
    uint64_t ns[MRI_CUDA_ANCHORS];
    uint64_t count;
    bool pending; /* the next slot's event is queued, its time not known yet */
};

/* This device's part in a group; in the device's list while the group lives. */
struct mri_cuda_comm {
    ncclComm_t comm;
    struct mri_cuda_device *dev;
    struct mri_cuda_comm *next; /* comm.c's lock */
    /* with other processes: as mr_group_config.check, and what ends the group. NULL: none */
    int (*check)(void *context, mr_error *err);
    void *context;
    void (*end)(void *group, const mr_error *why);
    void *group;
    _Atomic uint64_t noticed_ns; /* when NCCL first reported an error; 0: never */
    /* of a communicator that does not block: held by the thread that is in NCCL for it. NULL: it blocks */
    pthread_mutex_t *calls;
};

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
    struct mri_cuda_comm *comms;  /* comm.c's lock: of the groups this device is in */
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
    const char *doing;     /* the latest queued call, for error messages */
} mri_cuda_stream;

static inline mri_cuda_device *mri_cuda_device_of(mr_device *dev) { return (mri_cuda_device *)dev; }
static inline mri_cuda_device *mri_cuda_of_stream(mri_cuda_stream *s)
{
    return (mri_cuda_device *)s->base.device;
}

/* Make the device's context the calling thread's; the error the device failed with, once it has. */
int mri_cuda_enter(mri_cuda_device *dev, mr_error *err);
/* The same for what must happen after a failure too: closing and freeing. */
void mri_cuda_enter_for_cleanup(mri_cuda_device *dev);

/* Turn a library's code into ours: MR_OK, or MR_EDEVICE (MR_ENOMEM for a device out of memory) with the
 * device, its current call, the code's name and text in err, and, for errors a GPU does not recover from, in
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

/* End of every ..._async entry: rc and err are the result of queueing. Notes the queued call, waits for it if
 * the device is set to do so, and keeps a failure where the next synchronising call finds it: in the device,
 * or in the recording. what: a literal. */
int mri_cuda_queued(mri_cuda_stream *s, int rc, const char *what, mr_error *err);
/* The last part of it alone. */
int mri_cuda_keep_error(mri_cuda_stream *s, int rc, const char *what, mr_error *err);
/* MR_EINVAL while the stream records. */
int mri_cuda_not_recorded(mri_cuda_stream *s, const char *what, mr_error *err);

/* ---- waiting (cuda_wait.c) ---- */

/* Wait for an event, or a stream where event is NULL. MR_EAGAIN after timeout_ns (MR_FOREVER: never). what:
 * for errors. */
int mri_cuda_wait(mri_cuda_device *dev, CUstream stream, CUevent event, uint64_t timeout_ns, const char *what,
                  mr_error *err);

/* Before a stream is destroyed: queued work may use memory about to be freed, so wait for it, also after a
 * failure. */
void mri_cuda_drain(mri_cuda_device *dev, CUstream stream);

/* ---- groups a device is in (comm.c) ---- */

void mri_cuda_comm_attach(struct mri_cuda_comm *part);
void mri_cuda_comm_detach(struct mri_cuda_comm *part);
/* What NCCL noticed by itself, kept in the device. With other processes: what they have noticed, too; then
 * the group ends here. */
void mri_cuda_comm_poll(mri_cuda_device *dev);
/* MR_OK, or the reason to end a part's group: a lost process, or NCCL's error `found` once it is clear that
 * no process is lost. */
int mri_cuda_comm_judge(struct mri_cuda_comm *part, ncclResult_t found, mr_error *err);

/* ---- groups whose other devices are in other processes (cuda_wire.c) ---- */

struct mri_cuda_wire;

/* streams: of all devices. Blocks until every process has come so far. */
int mri_cuda_wire_open(struct mri_cuda_wire **out, const struct mri_group_plan *plan, mr_error *err);
/* Nothing may be queued any more, unless a device failed. */
void mri_cuda_wire_close(struct mri_cuda_wire *w); /* accepts NULL */
/* Functions that are queued tell the other processes nothing any more. Any thread. */
void mri_cuda_wire_give_up(struct mri_cuda_wire *w);
/* As mr_group_sum_async() and mr_group_broadcast_async(). An error after queueing becomes the error of all
 * devices. */
int mri_cuda_wire_sum(struct mri_cuda_wire *w, float *const *values, uint64_t count, mr_error *err);
int mri_cuda_wire_broadcast(struct mri_cuda_wire *w, float *const *values, uint64_t count, uint32_t root,
                            mr_error *err);

/* ---- groups whose other devices are in other processes, by NCCL (cuda_across.c) ---- */

struct mri_cuda_across;

/* Gives each of the plan's devices its part's communicator. Blocks until every process has come so far.
 * With plan->nccl_optional, where a process cannot use NCCL: MR_OK in all of them, *out is NULL, and the
 * reason is in err. */
int mri_cuda_across_open(struct mri_cuda_across **out, const struct mri_group_plan *plan,
                         struct mri_cuda_comm *parts, mr_error *err);
/* Calls under way return, and later ones fail. Any thread. */
void mri_cuda_across_stop(struct mri_cuda_across *a);
/* The last calls are over in all processes: the communicators may be destroyed. Else MR_E...: they must be
 * aborted. */
int mri_cuda_across_finish(struct mri_cuda_across *a, mr_error *err);
void mri_cuda_across_close(struct mri_cuda_across *a); /* without communicators; accepts NULL */
/* As mr_group_sum_async() and mr_group_broadcast_async(). */
int mri_cuda_across_sum(struct mri_cuda_across *a, float *const *values, uint64_t count, mr_error *err);
int mri_cuda_across_broadcast(struct mri_cuda_across *a, float *const *values, uint64_t count, uint32_t root,
                              mr_error *err);

/* ---- for struct mri_backend ---- */

extern const struct mri_memory_calls mri_cuda_memory;
extern const struct mri_copy_calls mri_cuda_copies;
extern const struct mri_stream_calls mri_cuda_streams;
extern const struct mri_event_calls mri_cuda_events;
extern const struct mri_group_calls mri_cuda_groups;
extern const struct mri_graph_calls mri_cuda_graphs;

/* ---- pieces of a device that cuda.c opens and closes ---- */

int mri_cuda_pool_open(mri_cuda_device *dev, mr_error *err);
/* Let `other` read and write what dev allocates, where the machine can. */
int mri_cuda_pool_share(mri_cuda_device *dev, const mri_cuda_device *other, mr_error *err);
int mri_cuda_anchors_open(mri_cuda_device *dev, mr_error *err);
void mri_cuda_anchors_close(mri_cuda_device *dev);
int mri_cuda_kernels_load(mri_cuda_device *dev, mr_error *err);
void mri_cuda_kernels_unload(mri_cuda_device *dev);

/* ---- inside the room ---- */

/* Queue a new anchor where the newest is old; called whenever an event is recorded. */
int mri_cuda_anchor_renew(mri_cuda_device *dev, mr_error *err);
/* The time of an event that is over. */
int mri_cuda_anchor_time(mri_cuda_device *dev, CUevent event, uint64_t *out, mr_error *err);
int mri_cuda_device_alloc(mr_device *dev, size_t bytes, void **out, mr_error *err);
void mri_cuda_device_free(mr_device *dev, void *address);
void mri_cuda_handles_close(mri_cuda_stream *s);

/* Our kernels compiled, one image for each file of kernels/; ends with a NULL name. */
struct mri_cuda_image {
    const char *name;
    const unsigned char *data;
};
extern const struct mri_cuda_image mri_cuda_images[];

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

#endif
