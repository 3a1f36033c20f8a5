/* train/run/exchange.c: what replicas tell each other: gradients, running statistics, and the weights they
 * begin with.
 *
 *   compute    forward │ backward ... ├─ bucket 0 ─┼─ bucket 1 ─┤            ┌ update
 *                                     └─event┐     └─event┐                  │ event
 *   exchange                                 └ sum 0 ─────┴─ sum 1 ──────────┘
 *
 * Each replica has a stream for it, so that the sum of one bucket runs while backward computes the next. A
 * sum is the same bits whether it is taken in pieces or at once. A single replica has nobody to tell: no
 * streams, no group. */
#include <stdio.h>

#include "train/trainer.h"

int mri_exchange_open(mr_trainer *t, mr_error *err)
{
    int rc = MR_OK;
    if (t->count == 1) return MR_OK;
    for (uint32_t r = 0; rc == MR_OK && r < t->count; r++) {
        rc = mr_stream_create(&t->ties[r].stream, t->devices[r], MR_STREAM_EXCHANGE, err);
        if (rc == MR_OK) rc = mr_event_create(&t->ties[r].ready, t->devices[r], err);
        if (rc == MR_OK) rc = mr_event_create(&t->ties[r].done, t->devices[r], err);
        t->ties_streams[r] = t->ties[r].stream;
    }
    return rc ? rc : mr_group_create(&t->group, t->ties_streams, t->count, err);
}

void mri_exchange_close(mr_trainer *t)
{
    for (uint32_t r = 0; t->ties && r < t->cfg.device_count; r++)
        if (t->ties[r].stream) mr_stream_sync(t->ties[r].stream, NULL);
    mr_group_destroy(t->group);
    for (uint32_t r = 0; t->ties && r < t->cfg.device_count; r++) {
        mr_stream_destroy(t->ties[r].stream);
        mr_event_destroy(t->ties[r].ready);
        mr_event_destroy(t->ties[r].done);
    }
}

/* The exchange streams go on behind what is queued on the compute streams now. */
static int behind_compute(mr_trainer *t, mr_error *err)
{
    for (uint32_t r = 0; r < t->count; r++) {
        int rc = mr_event_record(t->ties[r].ready, t->streams[r]);
        if (rc == MR_OK) rc = mr_stream_wait_event(t->ties[r].stream, t->ties[r].ready);
        if (rc) return mri_trainer_queue_failed(t, r, rc, "an event", err);
    }
    return MR_OK;
}

static int before_compute(mr_trainer *t, mr_error *err)
{
    for (uint32_t r = 0; r < t->count; r++) {
        int rc = mr_event_record(t->ties[r].done, t->ties[r].stream);
        if (rc == MR_OK) rc = mr_stream_wait_event(t->streams[r], t->ties[r].done);
        if (rc) return mri_trainer_queue_failed(t, r, rc, "an event", err);
    }
    return MR_OK;
}

int mri_exchange_bucket(mr_trainer *t, uint32_t bucket, mr_error *err)
{
    const mri_replica *first = &t->replicas[0];
    const mri_bucket *b = &first->buckets[bucket];
    int rc = behind_compute(t, err);
    if (rc) return rc;
    for (uint32_t r = 0; r < t->count; r++) t->arrays[r] = t->replicas[r].grads + b->at;
    rc = mr_group_sum_async(t->group, t->arrays, b->count);
    if (rc) return mri_trainer_queue_failed(t, 0, rc, "the sum of gradients", err);
    return bucket + 1 == first->bucket_count ? before_compute(t, err) : MR_OK;
}

typedef float *array_of_replica(const mri_replica *r);
static float *weights_of(const mri_replica *r) { return r->weights; }
static float *stats_of(const mri_replica *r) { return r->stats; }
static float *slot0_of(const mri_replica *r) { return r->slot[0]; }
static float *slot1_of(const mri_replica *r) { return r->slot[1]; }

/* Replica 0's array goes to all (queued). */
static int broadcast(mr_trainer *t, array_of_replica *array, uint64_t count, const char *what, mr_error *err)
{
    if (t->count == 1 || count == 0 || !array(&t->replicas[0])) return MR_OK;
    int rc = behind_compute(t, err);
    if (rc) return rc;
    for (uint32_t r = 0; r < t->count; r++) t->arrays[r] = array(&t->replicas[r]);
    rc = mr_group_broadcast_async(t->group, t->arrays, count, 0);
    return rc ? mri_trainer_queue_failed(t, 0, rc, what, err) : before_compute(t, err);
}

int mri_trainer_share_stats(mr_trainer *t, mr_error *err)
{
    if (!t->stats_differ) return MR_OK;
    t->stats_differ = false;
    return broadcast(t, stats_of, t->replicas[0].stat_floats, "a broadcast of running statistics", err);
}

int mri_trainer_share_all(mr_trainer *t, mr_error *err)
{
    const mri_replica *first = &t->replicas[0];
    int rc = broadcast(t, weights_of, first->weight_floats, "a broadcast of weights", err);
    if (rc == MR_OK)
        rc = broadcast(t, stats_of, first->stat_floats, "a broadcast of running statistics", err);
    if (rc == MR_OK) rc = broadcast(t, slot0_of, first->weight_floats, "a broadcast of optimizer state", err);
    if (rc == MR_OK) rc = broadcast(t, slot1_of, first->weight_floats, "a broadcast of optimizer state", err);
    t->stats_differ = false;
    if (rc == MR_OK) rc = mri_trainer_drain(t, err);
    return rc ? rc : mri_trainer_compare(t, err);
}

int mri_trainer_compare(mr_trainer *t, mr_error *err)
{
    uint64_t lo, hi, other_lo, other_hi;
    int rc = t->count > 1 ? mr_trainer_weights_hash(t, 0, &lo, &hi, err) : MR_OK;
    for (uint32_t r = 1; rc == MR_OK && r < t->count; r++) {
        rc = mr_trainer_weights_hash(t, r, &other_lo, &other_hi, err);
        if (rc == MR_OK && (lo != other_lo || hi != other_hi))
            rc = mr_error_set(
                err, MR_EDEVICE,
                "replica %u (%s) does not hold the weights of replica 0 after they were sent to it: expected "
                "%016llx%016llx, found %016llx%016llx; memory of the device or the link to it is not to be "
                "trusted",
                r, mr_device_info_of(t->devices[r])->name, (unsigned long long)hi, (unsigned long long)lo,
                (unsigned long long)other_hi, (unsigned long long)other_lo);
    }
    return rc;
}
