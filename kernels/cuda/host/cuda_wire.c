/* kernels/cuda/host/cuda_wire.c: sums and broadcasts between GPUs of several processes, through host memory,
 * in blocks of at most BLOCK_FLOATS:
 *
 *      stream 0   D2H ──┬─────────────► host function: host_wire.h ──┬─► H2D
 *      stream 1   D2H ──┘ event: down                   event: over  └─► H2D
 *
 * Additions follow the tree's order (sum_tree.h), so the sums have the same bits wherever the leaves lie. The
 * function blocks its stream until the other processes have come; it returns in any case, because an exchange
 * does (kernels.h, mr_wire). Queueing never blocks.
 *
 * The blocks of all arrays share one piece of pinned memory: a stream copies down only after its own copies
 * up. The function writes to a separate array, once all streams have finished the copies up of the previous
 * block. */
#include "kernels/backend/spec.h"
#include "kernels/cuda/host/gpu.h"
#include "kernels/host/host_wire.h"

#define BLOCK_FLOATS 2097152u /* 8 MiB of each array */
/* Time limit for a group's functions when it is closed after a failure. A failed context calls none of its
 * queued functions, so an unlimited wait could last forever. */
#define CLOSE_NS 3000000000u

enum wire_work { WIRE_SUM, WIRE_BROADCAST };

struct wire_call {
    struct mri_cuda_wire *wire;
    enum wire_work work;
    uint64_t count;
    const float *from;      /* broadcast: of this process's device; NULL: of another process */
    struct wire_call *next; /* wire->lock: list of waiting calls */
};

struct mri_cuda_wire {
    mri_host_wire host;
    uint32_t devices, nodes;
    uint32_t *node_at; /* devices + 1 */
    mri_cuda_stream **streams;
    CUevent *down, over;
    float *memory; /* (nodes + 1) blocks: one for each array, and the sum's */
    float **block; /* nodes + 1 */
    pthread_mutex_t lock;
    pthread_cond_t none_waits;
    struct wire_call *waiting; /* lock */
    bool failed;               /* lock */
};

static mri_cuda_device *device_at(const struct mri_cuda_wire *w, uint32_t i)
{
    return mri_cuda_of_stream(w->streams[i]);
}

/* ---- open, close ---- */

static void free_wire(struct mri_cuda_wire *w)
{
    for (uint32_t i = 0; i < w->devices; i++) {
        mri_cuda_enter_for_cleanup(device_at(w, i));
        if (w->down[i]) device_at(w, i)->api->cuEventDestroy(w->down[i]);
    }
    mri_cuda_enter_for_cleanup(device_at(w, 0));
    if (w->over) device_at(w, 0)->api->cuEventDestroy(w->over);
    if (w->memory) device_at(w, 0)->api->cuMemFreeHost(w->memory);
    mri_host_wire_fini(&w->host);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->none_waits);
    free(w->node_at);
    free(w->streams);
    free(w->down);
    free(w->block);
    free(w);
}

static struct mri_cuda_wire *new_wire(const struct mri_group_plan *plan)
{
    const uint32_t n = plan->count, nodes = plan->node_at[n];
    struct mri_cuda_wire *w = calloc(1, sizeof *w);
    if (!w) return NULL;
    w->nodes = nodes;
    w->node_at = calloc(n + 1, sizeof *w->node_at);
    w->streams = calloc(n, sizeof(mri_cuda_stream *));
    w->down = calloc(n, sizeof *w->down);
    w->block = calloc(nodes + 1, sizeof *w->block);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&w->none_waits, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&w->lock, NULL);
    if (!w->node_at || !w->streams || !w->down || !w->block) {
        free(w->node_at);
        free(w->streams);
        free(w->down);
        free(w->block);
        free(w);
        return NULL;
    }
    memcpy(w->node_at, plan->node_at, (n + 1) * sizeof *w->node_at);
    for (uint32_t i = 0; i < n; i++) w->streams[i] = (mri_cuda_stream *)plan->streams[i];
    w->devices = n;
    return w;
}

static int make_event(mri_cuda_device *dev, CUevent *out, mr_error *err)
{
    const int rc = mri_cuda_enter(dev, err);
    if (rc) return rc;
    return mri_cuda_check(dev, dev->api->cuEventCreate(out, CU_EVENT_DISABLE_TIMING), "creating an event",
                          err);
}

static int make_memory(struct mri_cuda_wire *w, mr_error *err)
{
    void *memory = NULL;
    const size_t block = BLOCK_FLOATS * sizeof(float);
    const int rc = mri_cuda_memory.host_alloc(&device_at(w, 0)->base, (w->nodes + 1) * block, &memory, err);
    w->memory = memory;
    for (uint32_t k = 0; rc == MR_OK && k <= w->nodes; k++)
        w->block[k] = w->memory + (size_t)k * BLOCK_FLOATS;
    return rc;
}

int mri_cuda_wire_open(struct mri_cuda_wire **out, const struct mri_group_plan *plan, mr_error *err)
{
    struct mri_cuda_wire *w = new_wire(plan);
    *out = NULL;
    if (!w) return mr_error_set(err, MR_ENOMEM, "no memory for a group of %u devices", plan->count);
    int rc = make_memory(w, err);
    for (uint32_t i = 0; rc == MR_OK && i < w->devices; i++)
        rc = make_event(device_at(w, i), &w->down[i], err);
    if (rc == MR_OK) rc = make_event(device_at(w, 0), &w->over, err);
    if (rc == MR_OK) rc = mri_host_wire_init(&w->host, plan, err);
    if (rc) free_wire(w);
    else *out = w;
    return rc;
}

/* False: a function is in an exchange, or will never be called, and w stays. */
static bool wait_for_functions(struct mri_cuda_wire *w)
{
    const uint64_t until_ns = mri_now_ns() + CLOSE_NS;
    const struct timespec until = {(time_t)(until_ns / 1000000000u), (long)(until_ns % 1000000000u)};
    pthread_mutex_lock(&w->lock);
    while (w->waiting && pthread_cond_timedwait(&w->none_waits, &w->lock, &until) == 0) {
    }
    const bool done = !w->waiting;
    pthread_mutex_unlock(&w->lock);
    return done;
}

void mri_cuda_wire_close(struct mri_cuda_wire *w)
{
    if (!w) return;
    mri_cuda_wire_give_up(w);
    if (wait_for_functions(w)) free_wire(w);
}

void mri_cuda_wire_give_up(struct mri_cuda_wire *w)
{
    pthread_mutex_lock(&w->lock);
    w->failed = true;
    pthread_mutex_unlock(&w->lock);
}

/* ---- the function ---- */

static void fail_all(struct mri_cuda_wire *w, const mr_error *err)
{
    for (uint32_t i = 0; i < w->devices; i++) mri_cuda_fail(device_at(w, i), err);
}

static bool is_failed(struct mri_cuda_wire *w)
{
    pthread_mutex_lock(&w->lock);
    const bool failed = w->failed;
    pthread_mutex_unlock(&w->lock);
    return failed;
}

static void forget(struct wire_call *call, bool failed)
{
    struct mri_cuda_wire *w = call->wire;
    pthread_mutex_lock(&w->lock);
    w->failed = w->failed || failed;
    for (struct wire_call **at = &w->waiting; *at; at = &(*at)->next) {
        if (*at != call) continue;
        *at = call->next;
        break;
    }
    if (!w->waiting) pthread_cond_broadcast(&w->none_waits);
    pthread_mutex_unlock(&w->lock);
    free(call);
}

static int exchange(struct mri_cuda_wire *w, const struct wire_call *call, mr_error *err)
{
    float **const sum = &w->block[w->nodes];
    if (call->work == WIRE_SUM) return mri_host_wire_sum(&w->host, w->block, sum, 1, call->count, err);
    if (call->from) memcpy(*sum, call->from, (size_t)call->count * sizeof(float));
    return mri_host_wire_broadcast(&w->host, *sum, call->count, err);
}

/* Runs in a thread of the driver and calls none of its functions. After a failure, which is already reported,
 * it does nothing. */
static void CUDA_CB work(void *data)
{
    struct wire_call *call = data;
    struct mri_cuda_wire *w = call->wire;
    mr_error err = MR_ERROR_INIT;
    const int rc = is_failed(w) ? MR_EDEVICE : exchange(w, call, &err);
    if (err.code) fail_all(w, &err);
    forget(call, rc != MR_OK);
}

/* ---- queueing ---- */

static int copy_down(struct mri_cuda_wire *w, uint32_t device, float *to, const float *from, uint64_t count,
                     mr_error *err)
{
    mri_cuda_device *dev = device_at(w, device);
    return mri_cuda_check(dev,
                          dev->api->cuMemcpyDtoHAsync(to, (CUdeviceptr)(uintptr_t)from, count * sizeof(float),
                                                      w->streams[device]->handle),
                          "copying what other processes get", err);
}

static int copy_up(struct mri_cuda_wire *w, uint32_t device, float *to, uint64_t count, mr_error *err)
{
    mri_cuda_device *dev = device_at(w, device);
    return mri_cuda_check(dev,
                          dev->api->cuMemcpyHtoDAsync((CUdeviceptr)(uintptr_t)to, w->block[w->nodes],
                                                      count * sizeof(float), w->streams[device]->handle),
                          "copying what came from other processes", err);
}

static int record(struct mri_cuda_wire *w, uint32_t device, CUevent event, mr_error *err)
{
    mri_cuda_device *dev = device_at(w, device);
    return mri_cuda_check(dev, dev->api->cuEventRecord(event, w->streams[device]->handle),
                          "recording an event", err);
}

static int wait_for(struct mri_cuda_wire *w, uint32_t device, CUevent event, mr_error *err)
{
    mri_cuda_device *dev = device_at(w, device);
    return mri_cuda_check(
        dev, dev->api->cuStreamWaitEvent(w->streams[device]->handle, event, CU_EVENT_WAIT_DEFAULT),
        "queueing a wait", err);
}

/* On stream 0, behind `down` of all others. */
static int launch(struct mri_cuda_wire *w, const struct wire_call *what, mr_error *err)
{
    mri_cuda_device *dev = device_at(w, 0);
    struct wire_call *call = malloc(sizeof *call);
    if (!call) return mr_error_set(err, MR_ENOMEM, "no memory for an exchange with other processes");
    int rc = mri_cuda_enter(dev, err);
    for (uint32_t i = 1; rc == MR_OK && i < w->devices; i++) rc = wait_for(w, 0, w->down[i], err);
    pthread_mutex_lock(&w->lock);
    *call = *what;
    call->next = w->waiting;
    w->waiting = call;
    pthread_mutex_unlock(&w->lock);
    if (rc == MR_OK)
        rc = mri_cuda_check(dev, dev->api->cuLaunchHostFunc(w->streams[0]->handle, work, call),
                            "queueing an exchange with other processes", err);
    if (rc) {
        forget(call, true);
        return rc;
    }
    return record(w, 0, w->over, err);
}

/* values: the array of each device that gets what came; skip: the device that has it (devices: none). */
static int hand_out(struct mri_cuda_wire *w, float *const *values, uint64_t at, uint64_t count, uint32_t skip,
                    mr_error *err)
{
    int rc = MR_OK;
    for (uint32_t i = 0; rc == MR_OK && i < w->devices; i++) {
        rc = mri_cuda_enter(device_at(w, i), err);
        if (rc == MR_OK && i > 0) rc = wait_for(w, i, w->over, err);
        if (rc == MR_OK && i != skip) rc = copy_up(w, i, values[i] + at, count, err);
    }
    return rc;
}

static int sum_block(struct mri_cuda_wire *w, float *const *values, uint64_t at, uint64_t count,
                     mr_error *err)
{
    float *last[MRI_MAX_REPLICAS];
    const struct wire_call call = {.wire = w, .work = WIRE_SUM, .count = count};
    int rc = MR_OK;
    for (uint32_t i = 0; rc == MR_OK && i < w->devices; i++) {
        rc = mri_cuda_enter(device_at(w, i), err);
        for (uint32_t k = w->node_at[i]; rc == MR_OK && k < w->node_at[i + 1]; k++)
            rc = copy_down(w, i, w->block[k], values[k] + at, count, err);
        if (rc == MR_OK && i > 0) rc = record(w, i, w->down[i], err);
        last[i] = values[w->node_at[i + 1] - 1];
    }
    if (rc == MR_OK) rc = launch(w, &call, err);
    return rc == MR_OK ? hand_out(w, last, at, count, w->devices, err) : rc;
}

/* The devices that have nothing to copy down tell that they have had the block before. */
static int broadcast_block(struct mri_cuda_wire *w, float *const *values, uint64_t at, uint64_t count,
                           uint32_t root, mr_error *err)
{
    const bool first = w->host.wire.rank == 0;
    float *const roots = w->block[w->node_at[root]];
    const struct wire_call call = {
        .wire = w, .work = WIRE_BROADCAST, .count = count, .from = first ? roots : NULL};
    int rc = MR_OK;
    for (uint32_t i = 0; rc == MR_OK && i < w->devices; i++) {
        rc = mri_cuda_enter(device_at(w, i), err);
        if (rc == MR_OK && first && i == root) rc = copy_down(w, i, roots, values[i] + at, count, err);
        if (rc == MR_OK && i > 0) rc = record(w, i, w->down[i], err);
    }
    if (rc == MR_OK) rc = launch(w, &call, err);
    return rc == MR_OK ? hand_out(w, values, at, count, first ? root : w->devices, err) : rc;
}

int mri_cuda_wire_sum(struct mri_cuda_wire *w, float *const *values, uint64_t count, mr_error *err)
{
    int rc = MR_OK;
    for (uint64_t at = 0; rc == MR_OK && at < count; at += BLOCK_FLOATS)
        rc = sum_block(w, values, at, mri_min_u64(BLOCK_FLOATS, count - at), err);
    return rc;
}

int mri_cuda_wire_broadcast(struct mri_cuda_wire *w, float *const *values, uint64_t count, uint32_t root,
                            mr_error *err)
{
    int rc = MR_OK;
    for (uint64_t at = 0; rc == MR_OK && at < count; at += BLOCK_FLOATS)
        rc = broadcast_block(w, values, at, mri_min_u64(BLOCK_FLOATS, count - at), root, err);
    return rc;
}
