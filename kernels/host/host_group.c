/* kernels/host/host_group.c: sums and broadcasts between devices that share the host's memory.
 *
 * One call queues one task on every stream. The tasks meet, each works on its own slice of the values for all
 * devices, and they meet again before any goes on:
 *
 *      stream 0   arrive ── slice 0: v0+v1+v2 -> v0,v1,v2 ── arrive ── next task
 *      stream 1   arrive ── slice 1: v0+v1+v2 -> v0,v1,v2 ── arrive
 *      stream 2   arrive ── slice 2: v0+v1+v2 -> v0,v1,v2 ── arrive
 *
 * Sums are added in device order, so every device holds the same bits in every run. A stream that failed
 * earlier still arrives, and then the call fails on all of them. Calls of one group meet in the order they
 * were made. */
#include "kernels/host/host.h"
#include "kernels/host/simd_loop.h"

enum group_work { GROUP_SUM, GROUP_BROADCAST, GROUP_MEET };

struct host_group {
    pthread_mutex_t lock;
    pthread_cond_t all_here;
    uint64_t calls;     /* by the caller's thread only */
    uint32_t arrived;   /* lock: at the meeting under way */
    uint64_t meetings;  /* lock: held so far, two a call */
    uint64_t broken_at; /* lock: number of a call that could not be queued everywhere, 0: none */
    int failed;         /* lock: first error any stream arrived with */
    /* each stream's values in the call under way: written before the first meeting, read after */
    float **now;
    mr_group base; /* last: ends in an array */
};

struct group_args {
    struct host_group *group;
    float *values; /* of this stream's device */
    uint64_t count, call;
    uint32_t at, root;
    enum group_work work;
};

static struct host_group *group_of(mr_group *g)
{
    return (struct host_group *)((char *)g - offsetof(struct host_group, base));
}

static int group_create(mr_group **out, mr_stream *const *streams, uint32_t count, mr_error *err)
{
    struct host_group *g = calloc(1, sizeof *g + count * sizeof(mr_stream *));
    float **now = calloc(count, sizeof *now);
    if (!g || !now) {
        free(g);
        free(now);
        return mr_error_set(err, MR_ENOMEM, "no memory for a group of %u devices", count);
    }
    g->now = now;
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->all_here, NULL);
    g->base.backend = streams[0]->device->backend;
    g->base.count = count;
    memcpy(g->base.streams, streams, count * sizeof(mr_stream *));
    *out = &g->base;
    return MR_OK;
}

static void group_destroy(mr_group *base)
{
    struct host_group *g = group_of(base);
    pthread_mutex_destroy(&g->lock);
    pthread_cond_destroy(&g->all_here);
    free(g->now);
    free(g);
}

/* Wait until every stream is here. `failed` is this stream's own trouble; returns what the meeting as a whole
 * found. */
static int meet(struct host_group *g, uint64_t call, int failed)
{
    pthread_mutex_lock(&g->lock);
    if (failed && !g->failed) g->failed = failed;
    const uint64_t meeting = g->meetings;
    if (++g->arrived == g->base.count) {
        g->arrived = 0;
        g->meetings++;
        pthread_cond_broadcast(&g->all_here);
    } else {
        while (g->meetings == meeting && !(g->broken_at && call >= g->broken_at))
            pthread_cond_wait(&g->all_here, &g->lock);
    }
    int rc = g->failed;
    if (!rc && g->broken_at && call >= g->broken_at) rc = MR_EDEVICE;
    pthread_mutex_unlock(&g->lock);
    return rc;
}

#define SUM_BLOCK 2048u /* floats: the running sum stays in the first-level cache */

MRI_INLINE void add_body(float *sum, const float *values, size_t count)
{
    for (size_t i = 0; i < count; i++) sum[i] += values[i];
}
MRI_SIMD_LOOP(add, (float *sum, const float *values, size_t count), (sum, values, count))

static void sum_slice(float *const *values, uint32_t devices, uint64_t from, uint64_t to)
{
    float sum[SUM_BLOCK];
    for (uint64_t at = from; at < to; at += SUM_BLOCK) {
        const size_t n = (size_t)mri_min_u64(SUM_BLOCK, to - at);
        memcpy(sum, values[0] + at, n * sizeof(float));
        for (uint32_t d = 1; d < devices; d++) add(sum, values[d] + at, n);
        for (uint32_t d = 0; d < devices; d++) memcpy(values[d] + at, sum, n * sizeof(float));
    }
}

static void broadcast_slice(float *const *values, uint32_t devices, uint32_t root, uint64_t from, uint64_t to)
{
    for (uint32_t d = 0; d < devices; d++)
        if (d != root && values[d] != values[root])
            memcpy(values[d] + from, values[root] + from, (to - from) * sizeof(float));
}

static int run_group(mri_host_stream *s, const void *args, mr_error *err)
{
    const struct group_args *a = args;
    struct host_group *g = a->group;
    const uint32_t n = g->base.count;
    g->now[a->at] = a->values;
    int rc = meet(g, a->call, mri_host_stream_failed(s));
    if (rc)
        return mr_error_set(err, rc, "device %u of a group of %u could not take part in an exchange", a->at,
                            n);
    const uint64_t from = a->count * a->at / n, to = a->count * (a->at + 1) / n;
    if (a->work == GROUP_SUM) sum_slice(g->now, n, from, to);
    if (a->work == GROUP_BROADCAST) broadcast_slice(g->now, n, a->root, from, to);
    return meet(g, a->call, MR_OK);
}

/* Some stream did not get its task: let go those that did. */
static void break_call(struct host_group *g, uint64_t call)
{
    pthread_mutex_lock(&g->lock);
    if (!g->broken_at) g->broken_at = call;
    pthread_cond_broadcast(&g->all_here);
    pthread_mutex_unlock(&g->lock);
}

static void group_abort(mr_group *base)
{
    struct host_group *g = group_of(base);
    mr_error err = MR_ERROR_INIT;
    mr_error_set(&err, MR_EDEVICE, "the group of %u devices was given up", base->count);
    pthread_mutex_lock(&g->lock);
    g->broken_at = 1;
    pthread_cond_broadcast(&g->all_here);
    pthread_mutex_unlock(&g->lock);
    for (uint32_t i = 0; i < base->count; i++) /* those with nothing of the group queued too */
        mri_host_device_fail(mri_host_device_of(base->streams[i]->device), &err);
}

static int queue(mr_group *base, float *const *values, uint64_t count, uint32_t root, enum group_work work)
{
    struct host_group *g = group_of(base);
    struct group_args args = {.group = g, .count = count, .call = ++g->calls, .root = root, .work = work};
    for (uint32_t i = 0; i < base->count; i++) {
        args.values = values[i];
        args.at = i;
        const int rc = mri_host_push((mri_host_stream *)base->streams[i], run_group, &args, sizeof args,
                                     MRI_TASK_ALWAYS, NULL);
        if (rc) {
            break_call(g, args.call);
            return rc;
        }
    }
    return MR_OK;
}

static int group_sum_async(mr_group *g, float *const *values, uint64_t count)
{
    return queue(g, values, count, 0, GROUP_SUM);
}

static int group_meet_async(mr_group *g, float *const *values, uint64_t count)
{
    return queue(g, values, count, 0, GROUP_MEET);
}

static int group_broadcast_async(mr_group *g, float *const *values, uint64_t count, uint32_t root)
{
    return queue(g, values, count, root, GROUP_BROADCAST);
}

#define GROUP_CALLS(sum)                                                                                     \
    {                                                                                                        \
        .create = group_create, .destroy = group_destroy, .sum_async = sum,                                  \
        .broadcast_async = group_broadcast_async, .abort = group_abort                                       \
    }
const struct mri_group_calls mri_host_groups = GROUP_CALLS(group_sum_async);
const struct mri_group_calls mri_host_groups_idle = GROUP_CALLS(group_meet_async);
