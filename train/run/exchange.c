/* train/run/exchange.c: what replicas tell each other: gradients, running statistics, and the weights they
 * begin with.
 *
 *   compute    forward │ backward ... ├─ bucket 0 ─┼─ bucket 1 ─┤            ┌ update
 *                                     └─event┐     └─event┐                  │ event
 *   exchange                                 └ sum 0 ─────┴─ sum 1 ──────────┘
 *
 * Each replica has a stream for it, so that the sum of one bucket runs while backward computes the next. A
 * sum is the same bits whether it is taken in pieces or at once. A single replica has nobody to tell: no
 * streams, no group. With other processes there is one even so. Where NCCL sums between the processes,
 * nothing passes the tap: spans of sums are then those of the streams (mri_sum_spans). */
#include "train/run/exchange.h"

#include <stdlib.h>

#include "base/util.h"
#include "train/run/worker.h"

enum { ROUNDS = 5, FEW_FLOATS = 64, LEAST_BYTES = 64 << 10, MOST_BYTES = 8 << 20 };

static int open_group(mri_exchange *x, mri_nccl_use nccl, mr_error *err)
{
    const mri_team *team = x->team;
    const mr_wire wire = mri_tap_wire(&x->tap);
    mr_group_config cfg;
    mr_group_defaults(&cfg);
    cfg.nccl = nccl != MRI_NCCL_NEVER && team->ranks.size > 1;
    cfg.nccl_optional = nccl == MRI_NCCL_IF_POSSIBLE;
    cfg.connect_s = mr_world_meet_s(team->ranks.world);
    cfg.check = mri_tap_check;
    cfg.streams = x->streams;
    cfg.count = team->count;
    cfg.leaves = team->parts.all;
    cfg.first = team->parts.first;
    cfg.held = team->parts.of_device;
    cfg.wire = &wire;
    cfg.ranks_per_host = mri_tap_ranks_per_host(&x->tap);
    const int rc = mr_group_open(&x->group, &cfg, err);
    if (rc && cfg.nccl) mri_ranks_fail(&team->ranks, err); /* the others may wait inside of NCCL */
    x->by_nccl = mr_group_uses_nccl(x->group, NULL);
    return rc;
}

int mri_exchange_init(mri_exchange *x, mri_team *team, mr_exchange how, mri_nccl_use nccl, mr_trace *trace,
                      mr_error *err)
{
    const uint32_t n = team->count;
    int rc = MR_OK;
    *x = (mri_exchange){.team = team,
                        .exchange_link_count = n,
                        .exchange_links = calloc(n, sizeof *x->exchange_links),
                        .streams = calloc(n, sizeof(mr_stream *)),
                        .arrays = calloc((size_t)n * (MRI_TERMS_MOST + 1), sizeof(float *))};
    if (!x->exchange_links || !x->streams || !x->arrays)
        return mr_error_set(err, MR_ENOMEM, "no memory for a trainer of %u replicas", n);
    if (n == 1 && team->ranks.size == 1) return MR_OK;
    for (uint32_t r = 0; rc == MR_OK && r < n; r++) {
        rc = mr_stream_create(&x->exchange_links[r].stream, team->devices[r], MR_STREAM_EXCHANGE, err);
        if (rc == MR_OK) rc = mr_event_create(&x->exchange_links[r].ready, team->devices[r], err);
        if (rc == MR_OK) rc = mr_event_create(&x->exchange_links[r].done, team->devices[r], err);
        x->streams[r] = x->exchange_links[r].stream;
    }
    if (rc == MR_OK) rc = mri_tap_init(&x->tap, team->ranks.world, how, trace, err);
    if (rc == MR_OK) rc = open_group(x, nccl, err);
    mri_team_set_group(team, x->group);
    return rc == MR_OK && x->by_nccl ? mri_sum_spans_init(&x->spans, trace, x->streams[0], err) : rc;
}

void mri_exchange_fini(mri_exchange *x)
{
    for (uint32_t r = 0; x->exchange_links && r < x->exchange_link_count; r++)
        if (x->exchange_links[r].stream) mr_stream_sync(x->exchange_links[r].stream, NULL);
    if (x->team) mri_team_set_group(x->team, NULL);
    mr_group_destroy(x->group);
    mri_sum_spans_fini(&x->spans);
    for (uint32_t r = 0; x->exchange_links && r < x->exchange_link_count; r++) {
        mr_stream_destroy(x->exchange_links[r].stream);
        mr_event_destroy(x->exchange_links[r].ready);
        mr_event_destroy(x->exchange_links[r].done);
    }
    mri_tap_fini(&x->tap);
    free(x->exchange_links);
    free(x->streams);
    free(x->arrays);
    *x = (mri_exchange){0};
}

/* The exchange streams continue after the work that is queued on the compute streams now. */
static int behind_compute(mri_exchange *x, mr_error *err)
{
    for (uint32_t r = 0; r < x->team->count; r++) {
        int rc = mr_event_record(x->exchange_links[r].ready, x->team->streams[r]);
        if (rc == MR_OK) rc = mr_stream_wait_event(x->exchange_links[r].stream, x->exchange_links[r].ready);
        if (rc) return mri_team_queue_failed(x->team, r, rc, "an event", err);
    }
    return MR_OK;
}

static int before_compute(mri_exchange *x, mr_error *err)
{
    for (uint32_t r = 0; r < x->team->count; r++) {
        int rc = mr_event_record(x->exchange_links[r].done, x->exchange_links[r].stream);
        if (rc == MR_OK) rc = mr_stream_wait_event(x->team->streams[r], x->exchange_links[r].done);
        if (rc) return mri_team_queue_failed(x->team, r, rc, "an event", err);
    }
    return MR_OK;
}

/* The group exchanges an array with other processes next, over the tap. */
static int expect(mri_exchange *x, const mri_tap_work *work, mr_error *err)
{
    return x->team->ranks.size == 1 || x->by_nccl ? MR_OK : mri_tap_expect(&x->tap, work, err);
}

/* Floats [at, at + count) of the nodes that fold.h leaves in gradients and terms, or of their copies. */
static int sum_folded(mri_exchange *x, uint64_t at, uint64_t count, const mri_tap_work *as, mr_error *err)
{
    mri_tap_work work = *as;
    work.batch = x->batch;
    work.bytes_left = count * sizeof(float);
    work.sum = true;
    uint32_t arrays = 0;
    int rc = behind_compute(x, err);
    if (rc == MR_OK) rc = expect(x, &work, err);
    if (rc) return rc;
    for (uint32_t r = 0; r < x->team->count; r++) {
        const mri_replica *rep = &x->team->replicas[r];
        const mri_memory *m = &rep->memory;
        const bool late = rep->cfg.local.delayed;
        for (uint32_t k = 0; k < rep->cfg.folds.left; k++)
            x->arrays[arrays++] = (late ? m->late_terms[k] : m->terms[k]) + at;
        x->arrays[arrays++] = (late ? m->late : m->grads) + at;
    }
    rc = mri_sum_spans_begin(&x->spans, x->batch);
    if (rc == MR_OK) rc = mr_group_sum_async(x->group, x->arrays, count);
    if (rc == MR_OK) rc = mri_sum_spans_end(&x->spans);
    return rc ? mri_team_queue_failed(x->team, 0, rc, "a sum over shares", err) : MR_OK;
}

int mri_exchange_bucket(mri_exchange *x, uint32_t bucket, mr_error *err)
{
    const mri_plan *plan = &x->team->replicas[0].plan;
    const mri_bucket *b = &plan->buckets[bucket];
    if (!x->group) return MR_OK;
    const mri_tap_work work = {.bucket = bucket, .packed = true, .at = b->at};
    const int rc = sum_folded(x, b->at, b->count, &work, err);
    return rc == MR_OK && bucket + 1 == plan->bucket_count ? before_compute(x, err) : rc;
}

int mri_exchange_send_late(mri_exchange *x, mr_error *err)
{
    for (uint32_t r = 0; r < x->team->count; r++) {
        const int rc = mri_replica_keep_late(&x->team->replicas[r]);
        if (rc) return mri_team_queue_failed(x->team, r, rc, "a copy of gradients", err);
    }
    if (!x->group) return MR_OK;
    x->late_on_the_way = true;
    return sum_folded(x, 0, x->team->replicas[0].plan.weight_floats, &(mri_tap_work){.packed = true}, err);
}

int mri_exchange_await_late(mri_exchange *x, mr_error *err)
{
    if (!x->late_on_the_way) return MR_OK;
    x->late_on_the_way = false;
    return before_compute(x, err);
}

/* These floats of one of the arrays that parts have of their own. */
static int average_piece(mri_exchange *x, uint32_t array, uint64_t from, uint64_t count, mr_error *err)
{
    int rc = MR_OK;
    for (uint32_t r = 0; rc == MR_OK && r < x->team->count; r++) {
        rc = mri_worker_differences(&x->team->replicas[r], array, from, count);
        if (rc) return mri_team_queue_failed(x->team, r, rc, "a sum of what shares have trained", err);
    }
    const mri_tap_work work = {.bucket = array, .packed = array == MRI_AVERAGED_WEIGHTS, .at = from};
    if (rc == MR_OK && x->group) rc = sum_folded(x, 0, count, &work, err);
    if (rc == MR_OK && x->group) rc = before_compute(x, err);
    for (uint32_t r = 0; rc == MR_OK && r < x->team->count; r++) {
        rc = mri_worker_take_sum(&x->team->replicas[r], array, from, count);
        if (rc) return mri_team_queue_failed(x->team, r, rc, "an average over shares", err);
    }
    return rc;
}

static int spread(mri_exchange *x, mr_error *err)
{
    for (uint32_t r = 0; r < x->team->count; r++) {
        const int rc = mri_worker_spread(&x->team->replicas[r]);
        if (rc) return mri_team_queue_failed(x->team, r, rc, "a copy of weights", err);
    }
    return MR_OK;
}

int mri_exchange_average(mri_exchange *x, mr_error *err)
{
    const mri_replica *first = &x->team->replicas[0];
    int rc = MR_OK;
    for (uint32_t a = 0; rc == MR_OK && a < mri_worker_arrays(first); a++) {
        const uint64_t all = mri_worker_floats(first, a), most = first->plan.weight_floats;
        for (uint64_t from = 0; rc == MR_OK && from < all; from += most)
            rc = average_piece(x, a, from, mri_min_u64(most, all - from), err);
    }
    return rc ? rc : spread(x, err);
}

typedef float *array_of_replica(const mri_replica *r);
static float *weights_of(const mri_replica *r) { return mri_replica_weights(r); }
static float *stats_of(const mri_replica *r) { return mri_replica_stats(r); }
static float *late_of(const mri_replica *r) { return r->memory.late; }
static float *outer_of(const mri_replica *r) { return r->memory.own.outer; }
static float *slot0_of(const mri_replica *r) { return r->memory.slot[0]; }
static float *slot1_of(const mri_replica *r) { return r->memory.slot[1]; }
static float *slot2_of(const mri_replica *r) { return r->memory.slot[2]; }
static float *average_of(const mri_replica *r) { return r->memory.average; }
static float *average_stats_of(const mri_replica *r) { return r->memory.average_stats; }

/* Replica 0's array goes to all (queued). */
static int broadcast(mri_exchange *x, array_of_replica *array, uint64_t count, const char *what,
                     mr_error *err)
{
    if (!x->group || count == 0 || !array(&x->team->replicas[0])) return MR_OK;
    int rc = behind_compute(x, err);
    if (rc == MR_OK)
        rc = expect(x, &(mri_tap_work){.batch = MR_NOWHERE, .bytes_left = count * sizeof(float)}, err);
    if (rc) return rc;
    for (uint32_t r = 0; r < x->team->count; r++) x->arrays[r] = array(&x->team->replicas[r]);
    rc = mr_group_broadcast_async(x->group, x->arrays, count, 0);
    return rc ? mri_team_queue_failed(x->team, 0, rc, what, err) : before_compute(x, err);
}

void mri_exchange_mark_stats_stale(mri_exchange *x)
{
    const mri_local *local = &x->team->replicas[0].cfg.local;
    x->stats_differ = !local->on || local->apart; /* else common statistics change in averages only */
}

/* The first part of all, which the first process has, is the common one. */
static int take_first_part(mri_exchange *x, mr_error *err)
{
    const int rc = mri_worker_take_first(&x->team->replicas[0]);
    if (rc) return mri_team_queue_failed(x->team, 0, rc, "a copy of weights", err);
    return broadcast(x, weights_of, x->team->replicas[0].plan.weight_floats, "a broadcast of weights", err);
}

int mri_exchange_stats(mri_exchange *x, mr_error *err)
{
    const int waited = mri_exchange_await_late(x, err);
    if (waited || !x->stats_differ) return waited;
    x->stats_differ = false;
    if (x->team->replicas[0].cfg.local.apart) {
        const int first = take_first_part(x, err);
        if (first) return first;
    }
    const uint64_t count = x->team->replicas[0].plan.stat_floats;
    const int rc = broadcast(x, stats_of, count, "a broadcast of running statistics", err);
    return rc ? rc : broadcast(x, average_stats_of, count, "a broadcast of their averages", err);
}

void mri_exchange_forget(mri_exchange *x) { mri_packer_forget(&x->tap.packer); }

int mri_exchange_all(mri_exchange *x, mr_error *err)
{
    const mri_plan *plan = &x->team->replicas[0].plan;
    int rc = broadcast(x, weights_of, plan->weight_floats, "a broadcast of weights", err);
    if (rc == MR_OK) rc = broadcast(x, stats_of, plan->stat_floats, "a broadcast of running statistics", err);
    if (rc == MR_OK) rc = broadcast(x, slot0_of, plan->weight_floats, "a broadcast of optimizer state", err);
    if (rc == MR_OK) rc = broadcast(x, slot1_of, plan->weight_floats, "a broadcast of optimizer state", err);
    if (rc == MR_OK) rc = broadcast(x, slot2_of, plan->weight_floats, "a broadcast of optimizer state", err);
    if (rc == MR_OK) rc = broadcast(x, average_of, plan->weight_floats, "a broadcast of averages", err);
    if (rc == MR_OK) rc = broadcast(x, average_stats_of, plan->stat_floats, "a broadcast of averages", err);
    if (rc == MR_OK) rc = broadcast(x, outer_of, plan->weight_floats, "a broadcast of momentum", err);
    if (rc == MR_OK) rc = broadcast(x, late_of, plan->weight_floats, "a broadcast of gradients", err);
    x->stats_differ = false;
    return rc ? rc : spread(x, err);
}

/* ---- how fast NCCL sums between the processes ----
 *
 * The times of an array of few bytes and of a large one are fitted to the formula of link_speed.c, in which a
 * sum has two exchanges. The first sum of each connects what NCCL has not connected yet, and does not count.
 */

static int sum_once(mri_exchange *x, uint64_t floats, double *seconds, mr_error *err)
{
    const uint64_t begun = mri_now_ns();
    int rc = mr_group_sum_async(x->group, x->arrays, floats);
    if (rc) return mri_team_queue_failed(x->team, 0, rc, "a sum over processes", err);
    for (uint32_t r = 0; rc == MR_OK && r < x->team->count; r++) {
        mr_error why = MR_ERROR_INIT;
        rc = mr_stream_sync(x->streams[r], &why);
        if (rc) return mri_team_fail(x->team, &why, err);
    }
    *seconds = 1e-9 * (double)(mri_now_ns() - begun);
    return MR_OK;
}

/* The shortest of some, of the slowest process. */
static int measure(mri_exchange *x, uint64_t floats, double *out, mr_error *err)
{
    const mri_ranks *ranks = &x->team->ranks;
    double least = 0, seconds, *all = calloc(ranks->size, sizeof *all);
    if (!all)
        return mr_error_set(err, MR_ENOMEM, "no memory to measure NCCL between %u processes", ranks->size);
    int rc = MR_OK;
    for (int k = 0; rc == MR_OK && k <= ROUNDS; k++) {
        rc = sum_once(x, floats, &seconds, err);
        if (k == 1 || (k && seconds < least)) least = seconds;
    }
    if (rc == MR_OK) rc = mr_world_gather(ranks->world, MRI_RANKS_HOST, &least, sizeof least, all, err);
    *out = least;
    for (uint32_t r = 0; rc == MR_OK && r < ranks->size; r++)
        if (all[r] > *out) *out = all[r];
    free(all);
    return rc;
}

/* Arrays of all nodes of a replica, in one piece of its memory. */
static int make_arrays(mri_exchange *x, uint32_t replica, uint64_t floats, float ***next, void **memory,
                       mr_error *err)
{
    const uint32_t count = x->team->replicas[replica].cfg.folds.left + 1;
    const size_t bytes = count * floats * sizeof(float);
    int rc = mr_device_alloc(x->team->devices[replica], bytes, memory, err);
    if (rc) return rc;
    rc = mr_fill_async(x->streams[replica], *memory, 0, bytes);
    if (rc) return mri_team_queue_failed(x->team, replica, rc, "a fill", err);
    for (uint32_t k = 0; k < count; k++) *(*next)++ = (float *)*memory + k * floats;
    return MR_OK;
}

int mri_exchange_measure(mri_exchange *x, uint64_t most_bytes, mri_link_speed *out, mr_error *err)
{
    const uint32_t replicas = x->team->count;
    const double n = x->team->ranks.size;
    const uint64_t bytes = mri_max_u64(mri_min_u64(most_bytes, MOST_BYTES), LEAST_BYTES);
    void **memory = calloc(replicas, sizeof *memory);
    float **next = x->arrays;
    double few_s = 0, many_s = 0;
    *out = (mri_link_speed){.processes = x->team->ranks.size};
    if (!memory) return mr_error_set(err, MR_ENOMEM, "no memory to measure NCCL of %u GPUs", replicas);
    int rc = MR_OK;
    for (uint32_t r = 0; rc == MR_OK && r < replicas; r++)
        rc = make_arrays(x, r, bytes / sizeof(float), &next, &memory[r], err);
    if (rc == MR_OK) rc = measure(x, bytes / sizeof(float), &many_s, err);
    if (rc == MR_OK) rc = measure(x, FEW_FLOATS, &few_s, err);
    for (uint32_t r = 0; r < replicas; r++) mr_device_free(x->team->devices[r], memory[r]);
    free(memory);
    out->latency_s = few_s / 2;
    if (many_s > few_s) out->s_per_byte = (many_s - few_s) / (2 * (n - 1) / n * (double)bytes);
    return rc;
}
