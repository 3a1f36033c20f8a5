/* kernels/cuda/host/cuda_group.c: sums and broadcasts between GPUs: of one process by NCCL, from one thread;
 * with GPUs of other processes through host memory (cuda_wire.c), or by NCCL (cuda_across.c).
 *
 * One call queues one NCCL operation on every stream, inside one NCCL group, so that no stream waits for a
 * call that has not been made. A sum adds in f32 in the order of NCCL's rings or trees: the same bits on
 * every GPU, and in every run on the same GPUs, library and settings.
 *
 * What can go wrong:
 *   - NCCL notices an error while it runs (a link goes down), or a process is lost: whoever waits on a device
 *     of the group looks for it (mri_cuda_comm_poll), and gives up a group with other processes;
 *   - one device never arrives: nothing ends by itself. mr_group_abort(), from any thread, marks every device
 *     as failed and then has NCCL end what runs;
 *   - a call fails half way: some streams have their part, others never will. The group aborts itself.
 * An aborted group stays so. */
#include <stdio.h>

#include "kernels/backend/spec.h"
#include "kernels/cuda/host/gpu.h"

#define ABORT_PATIENCE_NS                                                                                    \
    1000000000u /* for a call under way to come back before NCCL is aborted over its head */

struct cuda_group {
    pthread_mutex_t lock;
    pthread_cond_t idle;
    bool busy;                      /* lock: a call is inside NCCL */
    bool aborted;                   /* lock */
    struct mri_cuda_wire *wire;     /* NULL: no other processes, or by NCCL */
    struct mri_cuda_across *across; /* by NCCL with other processes, or NULL */
    bool by_nccl;                   /* parts have communicators */
    struct mri_cuda_comm *parts;    /* base.count */
    mr_group base;                  /* last: ends in an array */
};

static struct cuda_group *group_of(mr_group *g)
{
    return (struct cuda_group *)((char *)g - offsetof(struct cuda_group, base));
}

static const struct mri_cuda_api *api_of(const struct cuda_group *g) { return g->parts[0].dev->api; }

/* ---- creating ---- */

static int check_distinct(mr_stream *const *streams, uint32_t count, mr_error *err)
{
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < i; k++)
            if (mri_cuda_device_of(streams[i]->device)->device ==
                mri_cuda_device_of(streams[k]->device)->device)
                return mr_error_set(
                    err, MR_EUNSUPPORTED,
                    "%s and %s are the same GPU, and NCCL wants each GPU of a group once; name "
                    "different ones in --devices, or use one replica with a larger batch",
                    streams[k]->device->name, streams[i]->device->name);
    return MR_OK;
}

/* Each GPU may reach the memory of all others. */
static int share_memory(struct cuda_group *g, mr_error *err)
{
    for (uint32_t i = 0; i < g->base.count; i++) {
        int rc = mri_cuda_enter(g->parts[i].dev, err);
        for (uint32_t k = 0; !rc && k < g->base.count; k++)
            rc = mri_cuda_pool_share(g->parts[i].dev, g->parts[k].dev, err);
        if (rc) return rc;
    }
    return MR_OK;
}

static int open_communicators(struct cuda_group *g, mr_error *err)
{
    const uint32_t count = g->base.count;
    ncclComm_t comms[MRI_MAX_REPLICAS] = {NULL};
    int ordinals[MRI_MAX_REPLICAS] = {0};
    for (uint32_t i = 0; i < count; i++) ordinals[i] = g->parts[i].dev->ordinal;
    const int rc =
        mri_cuda_check_nccl(g->parts[0].dev, api_of(g)->ncclCommInitAll(comms, (int)count, ordinals),
                            "opening the exchange between GPUs", err);
    if (rc) return rc;
    for (uint32_t i = 0; i < count; i++) {
        g->parts[i].comm = comms[i];
        mri_cuda_comm_attach(&g->parts[i]);
    }
    return MR_OK;
}

static void free_group(struct cuda_group *g)
{
    pthread_mutex_destroy(&g->lock);
    pthread_cond_destroy(&g->idle);
    free(g->parts);
    free(g);
}

static struct cuda_group *new_group(mr_stream *const *streams, uint32_t count)
{
    struct cuda_group *g = calloc(1, sizeof *g + count * sizeof(mr_stream *));
    struct mri_cuda_comm *parts = calloc(count, sizeof *parts);
    if (!g || !parts) {
        free(g);
        free(parts);
        return NULL;
    }
    pthread_mutex_init(&g->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&g->idle, &monotonic);
    pthread_condattr_destroy(&monotonic);
    g->parts = parts;
    g->base.backend = streams[0]->device->backend;
    g->base.count = count;
    for (uint32_t i = 0; i < count; i++) {
        g->base.streams[i] = streams[i];
        parts[i].dev = mri_cuda_device_of(streams[i]->device);
    }
    return g;
}

static void end_group(void *group, const mr_error *why);

/* With other processes. */
static int open_across(struct cuda_group *g, const struct mri_group_plan *plan, mr_error *err)
{
    mr_error why = MR_ERROR_INIT;
    const int rc = mri_cuda_across_open(&g->across, plan, g->parts, &why);
    g->by_nccl = g->across != NULL;
    for (uint32_t i = 0; g->by_nccl && i < g->base.count; i++) {
        g->parts[i].end = end_group;
        g->parts[i].group = g;
        mri_cuda_comm_attach(&g->parts[i]);
    }
    if (rc && err) *err = why;
    if (rc || g->by_nccl) return rc;
    snprintf(g->base.no_nccl, sizeof g->base.no_nccl, "%.440s", why.text);
    return mri_cuda_wire_open(&g->wire, plan, err);
}

static int group_create(mr_group **out, const struct mri_group_plan *plan, mr_error *err)
{
    mr_stream *const *const streams = plan->streams;
    const uint32_t count = plan->count;
    const bool others = plan->wire.size > 1, by_nccl = !others && count > 1;
    int rc = by_nccl ? check_distinct(streams, count, err) : MR_OK;
    if (!rc && by_nccl) rc = mri_cuda_need(MRI_CUDA_NCCL, err);
    if (rc) return rc;
    struct cuda_group *g = new_group(streams, count);
    if (!g) return mr_error_set(err, MR_ENOMEM, "no memory for a group of %u devices", count);
    g->by_nccl = by_nccl;
    if (by_nccl) rc = share_memory(g, err);
    if (!rc && by_nccl) rc = open_communicators(g, err);
    if (!rc && plan->nccl) rc = open_across(g, plan, err);
    else if (!rc && others) rc = mri_cuda_wire_open(&g->wire, plan, err);
    if (rc) {
        free_group(g);
        return rc;
    }
    *out = &g->base;
    return MR_OK;
}

/* ---- ending ---- */

/* Blocking communicators end together, because each may wait for the others. Communicators that do not block
 * end one by one: a group would delay them. */
static void close_communicators(struct cuda_group *g, bool abort)
{
    const struct mri_cuda_api *api = api_of(g);
    for (uint32_t i = 0; i < g->base.count; i++) mri_cuda_comm_detach(&g->parts[i]);
    if (!g->across) api->ncclGroupStart();
    for (uint32_t i = 0; i < g->base.count; i++) {
        mri_cuda_enter_for_cleanup(g->parts[i].dev); /* NCCL would choose GPU 0 in a thread without one */
        if (abort) api->ncclCommAbort(g->parts[i].comm);
        else api->ncclCommDestroy(g->parts[i].comm);
        g->parts[i].comm = NULL;
    }
    if (!g->across) api->ncclGroupEnd();
}

/* With the lock held, given up while waiting: the call under way comes back, or patience ends. */
static void wait_idle_locked(struct cuda_group *g)
{
    const uint64_t until_ns = mri_now_ns() + ABORT_PATIENCE_NS;
    const struct timespec until = {(time_t)(until_ns / 1000000000u), (long)(until_ns % 1000000000u)};
    while (g->busy && pthread_cond_timedwait(&g->idle, &g->lock, &until) == 0) {
    }
}

static void abort_because(struct cuda_group *g, const mr_error *why)
{
    pthread_mutex_lock(&g->lock);
    const bool first = !g->aborted && g->by_nccl;
    g->aborted = true;
    if (g->across) mri_cuda_across_stop(g->across);
    if (first) wait_idle_locked(g);
    pthread_mutex_unlock(&g->lock);
    for (uint32_t i = 0; i < g->base.count; i++) {
        mr_error err = *why;
        if (!why->code)
            mr_error_set(&err, MR_EDEVICE, "%s: the exchange between %u GPUs was given up",
                         g->parts[i].dev->base.name, g->base.count);
        mri_cuda_fail(g->parts[i].dev, &err);
    }
    if (first) close_communicators(g, true);
    if (g->wire) mri_cuda_wire_give_up(g->wire);
}

static void end_group(void *group, const mr_error *why) { abort_because(group, why); }

static void group_abort(mr_group *base)
{
    const mr_error none = MR_ERROR_INIT;
    abort_because(group_of(base), &none);
}

static void group_destroy(mr_group *base)
{
    struct cuda_group *g = group_of(base);
    bool failed = false;
    for (uint32_t i = 0; g->by_nccl && i < base->count; i++) mri_cuda_comm_detach(&g->parts[i]);
    for (uint32_t i = 0; i < base->count; i++) failed |= g->parts[i].dev->failed != MR_OK;
    if (g->across && !failed && !g->aborted) failed = mri_cuda_across_finish(g->across, NULL) != MR_OK;
    if (g->by_nccl && !g->aborted) close_communicators(g, failed);
    mri_cuda_wire_close(g->wire);
    mri_cuda_across_close(g->across);
    free_group(g);
}

/* ---- exchanges ---- */

struct exchange {
    bool sum;
    uint64_t count;
    uint32_t root;
};

static ncclResult_t call_all(struct cuda_group *g, const struct exchange *x, float *const *values)
{
    const struct mri_cuda_api *api = api_of(g);
    ncclResult_t rc = api->ncclGroupStart();
    if (rc != ncclSuccess) return rc;
    for (uint32_t i = 0; i < g->base.count && rc == ncclSuccess; i++) {
        CUstream stream = ((mri_cuda_stream *)g->base.streams[i])->handle;
        rc = x->sum ? api->ncclAllReduce(values[i], values[i], x->count, ncclFloat, ncclSum, g->parts[i].comm,
                                         stream)
                    : api->ncclBroadcast(values[i], values[i], x->count, ncclFloat, (int)x->root,
                                         g->parts[i].comm, stream);
    }
    const ncclResult_t end = api->ncclGroupEnd(); /* in any case: the group would stay open in this thread */
    return rc != ncclSuccess ? rc : end;
}

/* MR_OK: this thread may call NCCL until leave(). */
static int join(struct cuda_group *g, const char *what, mr_error *err)
{
    for (uint32_t i = 0; i < g->base.count; i++) {
        int rc = mri_cuda_failed(g->parts[i].dev, err);
        if (!rc) rc = mri_cuda_not_recorded((mri_cuda_stream *)g->base.streams[i], what, err);
        if (rc) return rc;
    }
    pthread_mutex_lock(&g->lock);
    const bool aborted = g->aborted;
    g->busy = !aborted;
    pthread_mutex_unlock(&g->lock);
    return aborted ? mr_error_set(err, MR_EDEVICE, "the exchange between %u GPUs was given up", g->base.count)
                   : MR_OK;
}

static void leave(struct cuda_group *g)
{
    pthread_mutex_lock(&g->lock);
    g->busy = false;
    pthread_cond_broadcast(&g->idle);
    pthread_mutex_unlock(&g->lock);
}

/* Waits where the devices were asked to. */
static int check_each(struct cuda_group *g, const char *what, mr_error *err)
{
    for (uint32_t i = 0; i < g->base.count; i++) {
        mri_cuda_device *dev = g->parts[i].dev;
        mri_cuda_stream *s = (mri_cuda_stream *)g->base.streams[i];
        s->doing = what;
        int rc = dev->check_each ? mri_cuda_enter(dev, err) : MR_OK;
        if (!rc && dev->check_each) rc = mri_cuda_wait(dev, s->handle, NULL, MR_FOREVER, what, err);
        if (rc) return rc;
    }
    return MR_OK;
}

static int queue(struct cuda_group *g, const struct exchange *x, float *const *values, const char *what,
                 mr_error *err)
{
    if (g->across)
        return x->sum ? mri_cuda_across_sum(g->across, values, x->count, err)
                      : mri_cuda_across_broadcast(g->across, values, x->count, x->root, err);
    if (!g->wire) return mri_cuda_check_nccl(g->parts[0].dev, call_all(g, x, values), what, err);
    return x->sum ? mri_cuda_wire_sum(g->wire, values, x->count, err)
                  : mri_cuda_wire_broadcast(g->wire, values, x->count, x->root, err);
}

/* values: with other processes, and for a broadcast, as the group was given them; else one of each device. */
static int exchange(struct cuda_group *g, const struct exchange *x, float *const *values)
{
    const char *what = x->sum ? "sum between GPUs" : "broadcast between GPUs";
    mr_error err = MR_ERROR_INIT;
    int rc = join(g, what, &err);
    if (rc) return rc;
    rc = queue(g, x, values, what, &err);
    leave(g);
    if (!rc) rc = check_each(g, what, &err);
    if (rc) abort_because(g, &err);
    return rc;
}

/* Without other processes a device's nodes are added to its last one; then NCCL adds the devices' sums.
 */
static int group_sum_async(mr_group *g, float *const *values, uint64_t count)
{
    const struct exchange x = {.sum = true, .count = count};
    float *last[MRI_MAX_REPLICAS] = {NULL};
    if (group_of(g)->wire || group_of(g)->across) return exchange(group_of(g), &x, values);
    for (uint32_t i = 0; i < g->count; i++) {
        const uint32_t end = g->plan.node_at[i + 1] - 1;
        last[i] = values[end];
        for (uint32_t k = g->plan.node_at[i]; k < end; k++) {
            const int rc = g->backend->add_async(g->streams[i], last[i], values[k], count);
            if (rc) return rc;
        }
    }
    return g->count > 1 ? exchange(group_of(g), &x, last) : MR_OK;
}

static int group_broadcast_async(mr_group *g, float *const *values, uint64_t count, uint32_t root)
{
    const struct exchange x = {.count = count, .root = root};
    return exchange(group_of(g), &x, values);
}

const struct mri_group_calls mri_cuda_groups = {.create = group_create,
                                                .destroy = group_destroy,
                                                .sum_async = group_sum_async,
                                                .broadcast_async = group_broadcast_async,
                                                .abort = group_abort};
