/* kernels/host/host_group.c: sums and broadcasts between devices that share the host's memory, and with those
 * of other processes.
 *
 * One call queues one task on every stream. The tasks meet, each works on its own slice of the values for all
 * devices, and they meet again before any goes on:
 *
 *      stream 0   arrive ── slice 0: v0+v1+v2 -> v0,v1,v2 ── arrive ── next task
 *      stream 1   arrive ── slice 1: v0+v1+v2 -> v0,v1,v2 ── arrive
 *      stream 2   arrive ── slice 2: v0+v1+v2 -> v0,v1,v2 ── arrive
 *
 * With other processes the first stream does all of it between the meetings (host_wire.h).
 *
 * Sums are added in the order of the tree (sum_tree.h), so every device holds the same bits in every run. A
 * stream that failed earlier still arrives, and then the call fails on all of them. Calls of one group meet
 * in the order they were made. */
#include <stdio.h>

#include "kernels/host/host.h"
#include "kernels/host/host_wire.h"

enum group_work { GROUP_SUM, GROUP_BROADCAST, GROUP_MEET };

struct host_group {
    pthread_mutex_t lock;
    pthread_cond_t all_here;
    uint64_t calls;     /* by the caller's thread only */
    uint32_t arrived;   /* lock: at the meeting under way */
    uint64_t meetings;  /* lock: held so far, two a call */
    uint64_t broken_at; /* lock: number of a call that could not be queued everywhere, 0: none */
    int failed;         /* lock: first error any stream arrived with */
    int found;          /* lock: `failed` when the newest meeting was held */
    uint64_t latest_ns; /* lock: of the streams that arrived, by their clocks */
    uint64_t held_ns;   /* lock: `latest_ns` when the newest meeting was held */
    /* arrays of all nodes, and the last one of each device, in the call under way: written before the first
     * meeting, read after */
    float **now, **out;
    mri_sum_program tree; /* of all nodes, without other processes */
    mri_host_wire wire;
    mr_group base; /* last: ends in an array */
};

struct group_args {
    struct host_group *group;
    float *values[MRI_GROUP_NODES]; /* of this stream's device */
    uint64_t count, call;
    uint32_t at, root, value_count;
    enum group_work work;
};

static struct host_group *group_of(mr_group *g)
{
    return (struct host_group *)((char *)g - offsetof(struct host_group, base));
}

static void free_group(struct host_group *g)
{
    mri_sum_program_fini(&g->tree);
    mri_host_wire_fini(&g->wire);
    free(g->now);
    free(g->out);
    free(g);
}

static int group_create(mr_group **out, const struct mri_group_plan *plan, mr_error *err)
{
    const uint32_t count = plan->count, nodes = plan->node_at[count];
    if (plan->nccl && !plan->nccl_optional)
        return mr_error_set(err, MR_EUNSUPPORTED,
                            "%s: NCCL sums between GPUs only; choose another wire than nccl",
                            plan->streams[0]->device->name);
    struct host_group *g = calloc(1, sizeof *g + count * sizeof(mr_stream *));
    if (!g) return mr_error_set(err, MR_ENOMEM, "no memory for a group of %u devices", count);
    const mr_sum_node all = {0, plan->leaves};
    g->now = calloc(nodes, sizeof *g->now);
    g->out = calloc(count, sizeof *g->out);
    int rc = g->now && g->out ? MR_OK : MR_ENOMEM;
    if (rc == MR_OK && plan->wire.size > 1) rc = mri_host_wire_init(&g->wire, plan, err);
    else if (rc == MR_OK) rc = mri_sum_program_init(&g->tree, plan->leaves, all, plan->node, nodes);
    if (rc == MR_ENOMEM) mr_error_set(err, rc, "no memory for a group of %u devices", count);
    if (rc) {
        free_group(g);
        return rc;
    }
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->all_here, NULL);
    g->base.backend = plan->streams[0]->device->backend;
    g->base.count = count;
    memcpy(g->base.streams, plan->streams, count * sizeof(mr_stream *));
    if (plan->nccl) snprintf(g->base.no_nccl, sizeof g->base.no_nccl, "NCCL sums between GPUs only");
    *out = &g->base;
    return MR_OK;
}

static void group_destroy(mr_group *base)
{
    struct host_group *g = group_of(base);
    pthread_mutex_destroy(&g->lock);
    pthread_cond_destroy(&g->all_here);
    free_group(g);
}

/* Wait until every stream is here. `failed` is this stream's own trouble; returns the result of the meeting
 * as a whole, the same on all. A stream that wakes late must not see an error that another stream brought to
 * the next meeting: it would stay away from that meeting, and the others would wait for it. */
static int meet(struct host_group *g, mri_host_stream *s, uint64_t call, int failed)
{
    pthread_mutex_lock(&g->lock);
    g->latest_ns = mri_max_u64(g->latest_ns, mri_host_stream_now(s));
    if (failed && !g->failed) g->failed = failed;
    const uint64_t meeting = g->meetings;
    if (++g->arrived == g->base.count) {
        g->arrived = 0;
        g->meetings++;
        g->found = g->failed;
        g->held_ns = g->latest_ns;
        pthread_cond_broadcast(&g->all_here);
    } else {
        while (g->meetings == meeting && !(g->broken_at && call >= g->broken_at))
            pthread_cond_wait(&g->all_here, &g->lock);
    }
    int rc = g->meetings != meeting ? g->found : g->failed;
    mri_host_stream_advance(s, g->held_ns);
    if (!rc && g->broken_at && call >= g->broken_at) rc = MR_EDEVICE;
    pthread_mutex_unlock(&g->lock);
    return rc;
}

static void sum_slice(const struct host_group *g, uint64_t from, uint64_t to)
{
    mri_host_sum(&g->tree, g->now, from, to - from, g->out[0] + from);
    for (uint32_t d = 1; d < g->base.count; d++)
        memcpy(g->out[d] + from, g->out[0] + from, (to - from) * sizeof(float));
}

static void broadcast_slice(float *const *values, uint32_t devices, uint32_t root, uint64_t from, uint64_t to)
{
    for (uint32_t d = 0; d < devices; d++)
        if (d != root && values[d] != values[root])
            memcpy(values[d] + from, values[root] + from, (to - from) * sizeof(float));
}

/* Between the meetings: this stream's slice. */
static void work_on_slice(const struct host_group *g, const struct group_args *a)
{
    const uint32_t n = g->base.count;
    const uint64_t from = a->count * a->at / n, to = a->count * (a->at + 1) / n;
    if (a->work == GROUP_SUM) sum_slice(g, from, to);
    if (a->work == GROUP_BROADCAST) broadcast_slice(g->out, n, a->root, from, to);
}

/* The first stream's, for all. */
static int work_with_others(struct host_group *g, const struct group_args *a, mr_error *err)
{
    const uint32_t n = g->base.count;
    const bool first = g->wire.wire.rank == 0;
    if (a->work == GROUP_SUM) return mri_host_wire_sum(&g->wire, g->now, g->out, n, a->count, err);
    const int rc = mri_host_wire_broadcast(&g->wire, g->out[first ? a->root : 0], a->count, err);
    if (rc == MR_OK) broadcast_slice(g->out, n, first ? a->root : 0, 0, a->count);
    return rc;
}

static int run_group(mri_host_stream *s, const void *args, mr_error *err)
{
    const struct group_args *a = args;
    struct host_group *g = a->group;
    const uint32_t n = g->base.count;
    const bool others = g->wire.wire.size > 1;
    for (uint32_t k = 0; k < a->value_count; k++) g->now[g->base.plan.node_at[a->at] + k] = a->values[k];
    g->out[a->at] = a->values[a->value_count - 1];
    int rc = meet(g, s, a->call, mri_host_stream_failed(s));
    if (rc)
        return mr_error_set(err, rc, "device %u of a group of %u could not take part in an exchange", a->at,
                            n);
    if (!others) work_on_slice(g, a);
    else if (a->at == 0) rc = work_with_others(g, a, err);
    if (others) mri_host_stream_advance(s, mri_now_ns());
    const int met = meet(g, s, a->call, rc);
    return rc ? rc : met;
}

/* Some stream did not get its task: release the streams that did. */
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

/* values: as many of each device as `of_nodes` says. */
static int queue(mr_group *base, float *const *values, bool of_nodes, uint64_t count, uint32_t root,
                 enum group_work work)
{
    struct host_group *g = group_of(base);
    struct group_args args = {.group = g, .count = count, .call = ++g->calls, .root = root, .work = work};
    for (uint32_t i = 0; i < base->count; i++) {
        args.value_count = of_nodes ? base->plan.node_at[i + 1] - base->plan.node_at[i] : 1;
        memcpy(args.values, values, args.value_count * sizeof *values);
        values += args.value_count;
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
    return queue(g, values, true, count, 0, GROUP_SUM);
}

/* What goes to other processes goes there. */
static int group_meet_async(mr_group *g, float *const *values, uint64_t count)
{
    return queue(g, values, true, count, 0, g->plan.wire.size > 1 ? GROUP_SUM : GROUP_MEET);
}

static int group_broadcast_async(mr_group *g, float *const *values, uint64_t count, uint32_t root)
{
    return queue(g, values, false, count, root, GROUP_BROADCAST);
}

#define GROUP_CALLS(sum)                                                                                     \
    {                                                                                                        \
        .create = group_create, .destroy = group_destroy, .sum_async = sum,                                  \
        .broadcast_async = group_broadcast_async, .abort = group_abort                                       \
    }
const struct mri_group_calls mri_host_groups = GROUP_CALLS(group_sum_async);
const struct mri_group_calls mri_host_groups_idle = GROUP_CALLS(group_meet_async);
