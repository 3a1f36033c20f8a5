/* pipeline/stream/staging.c: from a host slot to every replica's device memory.
 *
 *   per replica: device_slots sets of (pixels, labels, affine, fields), one copy stream
 *
 *     copy stream:   wait consumed[d] ─ start[d] ─ copies ─ ready[d]
 *     consumer's:    wait ready[d] ─ uses set d ─ consumed[d]
 *
 * All order between copying and computing is kept by events on the devices; the host waits only to know when
 * its own slot may be written again. Only a replica's own part crosses to it, and every byte is counted. */
#include <stdio.h>

#include "base/ranges.h"
#include "pipeline/stream/loader_private.h"

typedef struct device_set {
    void *pixels, *labels, *affine;
    void *field[MR_LOADER_MAX_FIELDS], *length[MR_LOADER_MAX_FIELDS];
    mr_event *start, *ready, *consumed;
} device_set;

struct mri_replica_stage {
    mr_device *device;
    mr_stream *copy;
    device_set *sets; /* device_slots */
    char track[48];
};

/* parts of all device slots stand behind the stages: [slot][replica] */
static mr_part *parts_of(const mr_loader *l, uint64_t batch)
{
    mr_part *all = (mr_part *)(l->stages + l->info.parts);
    return all + (batch % l->device_slots) * l->info.parts;
}

const mr_part *mri_stages_parts(const mr_loader *l, uint64_t batch) { return parts_of(l, batch); }

static uint32_t largest_part(const mr_loader *l) { return (l->info.batch - 1) / l->info.parts + 1; }

static int open_fields(const mr_loader *l, const mri_replica_stage *s, device_set *set, mr_error *err)
{
    const size_t n = largest_part(l);
    int rc = MR_OK;
    for (uint32_t k = 0; k < l->fields.count && rc == MR_OK; k++) {
        const mri_field_plan *p = &l->fields.field[k];
        if (p->row_bytes) rc = mr_device_alloc(s->device, n * p->row_bytes, &set->field[k], err);
        if (rc == MR_OK && p->varies)
            rc = mr_device_alloc(s->device, n * sizeof(int32_t), &set->length[k], err);
    }
    return rc;
}

static int open_set(mr_loader *l, mri_replica_stage *s, device_set *set, mr_error *err)
{
    const size_t n = largest_part(l);
    int rc = l->sample_bytes ? mr_device_alloc(s->device, n * l->sample_bytes, &set->pixels, err) : MR_OK;
    if (rc == MR_OK) rc = mr_device_alloc(s->device, n * sizeof(int32_t), &set->labels, err);
    if (rc == MR_OK && l->info.uses_affine)
        rc = mr_device_alloc(s->device, n * 2 * sizeof(float), &set->affine, err);
    if (rc == MR_OK) rc = open_fields(l, s, set, err);
    if (rc == MR_OK) rc = mr_event_create(&set->start, s->device, err);
    if (rc == MR_OK) rc = mr_event_create(&set->ready, s->device, err);
    if (rc == MR_OK) rc = mr_event_create(&set->consumed, s->device, err);
    return rc;
}

int mri_stages_open(mr_loader *l, mr_error *err)
{
    l->stages = calloc(1, l->info.parts * (sizeof *l->stages + l->device_slots * sizeof(mr_part)));
    if (!l->stages) return mr_error_set(err, MR_ENOMEM, "no memory for %u replicas", l->info.parts);
    int rc = MR_OK;
    for (uint32_t r = 0; r < l->info.parts && rc == MR_OK; r++) {
        mri_replica_stage *s = &l->stages[r];
        s->device = l->cfg.devices[r];
        snprintf(s->track, sizeof s->track, "copy %.40s", mr_device_info_of(s->device)->name);
        s->sets = calloc(l->device_slots, sizeof *s->sets);
        if (!s->sets) return mr_error_set(err, MR_ENOMEM, "no memory for %u device slots", l->device_slots);
        rc = mr_stream_create(&s->copy, s->device, MR_STREAM_COPY, err);
        for (uint32_t d = 0; d < l->device_slots && rc == MR_OK; d++) rc = open_set(l, s, &s->sets[d], err);
    }
    return rc;
}

static void close_set(mri_replica_stage *s, device_set *set)
{
    mr_event_destroy(set->start);
    mr_event_destroy(set->ready);
    mr_event_destroy(set->consumed);
    mr_device_free(s->device, set->pixels);
    mr_device_free(s->device, set->labels);
    mr_device_free(s->device, set->affine);
    for (uint32_t k = 0; k < MR_LOADER_MAX_FIELDS; k++) {
        mr_device_free(s->device, set->field[k]);
        mr_device_free(s->device, set->length[k]);
    }
}

void mri_stages_close(mr_loader *l)
{
    for (uint32_t r = 0; l->stages && r < l->info.parts; r++) {
        mri_replica_stage *s = &l->stages[r];
        for (uint32_t d = 0; s->sets && d < l->device_slots; d++) /* the consumer may still be computing on a
                                                                     set */
            if (s->sets[d].consumed) mr_event_sync(s->sets[d].consumed, NULL);
        mr_stream_destroy(s->copy);
        for (uint32_t d = 0; s->sets && d < l->device_slots; d++) close_set(s, &s->sets[d]);
        free(s->sets);
    }
    free(l->stages);
    l->stages = NULL;
}

/* Of rows only what this batch has of them. */
static int copy_field(mr_loader *l, uint32_t r, const mri_slot *slot, mr_part *part, const device_set *set,
                      uint32_t k)
{
    const mri_field_plan *p = &l->fields.field[k];
    const mri_rows *rows = &slot->rows[k];
    const size_t row_bytes = rows->width * p->element_bytes, bytes = part->count * row_bytes;
    const size_t lengths = rows->length ? part->count * sizeof(int32_t) : 0;
    int rc = MR_OK;
    if (bytes)
        rc = mr_copy_h2d_async(l->stages[r].copy, set->field[k], rows->data + part->first * row_bytes, bytes);
    if (rc == MR_OK && lengths)
        rc = mr_copy_h2d_async(l->stages[r].copy, set->length[k], rows->length + part->first, lengths);
    mri_count(&l->bytes_copied[r], bytes + lengths);
    part->field[k] = (mr_batch_field){.data = set->field[k], .length = set->length[k], .width = rows->width};
    return rc;
}

static int queue_copies(mr_loader *l, uint32_t r, const mri_slot *slot, mr_part *part, device_set *set)
{
    mri_replica_stage *s = &l->stages[r];
    const size_t first = part->first, n = part->count;
    int rc = mr_stream_wait_event(s->copy, set->consumed);
    if (rc == MR_OK) rc = mr_event_record(set->start, s->copy);
    if (n > 0) {
        const size_t pixel_bytes = n * l->sample_bytes,
                     affine_bytes = set->affine ? n * 2 * sizeof(float) : 0;
        if (rc == MR_OK && pixel_bytes)
            rc = mr_copy_h2d_async(s->copy, set->pixels, slot->pixels + first * l->sample_bytes, pixel_bytes);
        if (rc == MR_OK)
            rc = mr_copy_h2d_async(s->copy, set->labels, slot->labels + first, n * sizeof(int32_t));
        if (rc == MR_OK && affine_bytes)
            rc = mr_copy_h2d_async(s->copy, set->affine, slot->affine + 2 * first, affine_bytes);
        mri_count(&l->bytes_copied[r], pixel_bytes + n * sizeof(int32_t) + affine_bytes);
    }
    for (uint32_t k = 0; k < l->fields.count && rc == MR_OK; k++) rc = copy_field(l, r, slot, part, set, k);
    if (rc == MR_OK) rc = mr_event_record(set->ready, s->copy);
    part->pixels = set->pixels;
    part->labels = set->labels;
    part->affine = set->affine;
    part->ready = set->ready;
    part->form = MR_PART_PIXELS;
    return rc;
}

static int wait_for_copies(mr_loader *l, uint64_t batch, mr_error *err)
{
    uint64_t longest = 0;
    for (uint32_t r = 0; r < l->info.parts; r++) {
        mri_replica_stage *s = &l->stages[r];
        device_set *set = &s->sets[batch % l->device_slots];
        const int rc = mr_event_sync(set->ready, err);
        if (rc != MR_OK) return rc;
        uint64_t start = 0, end = 0;
        if (mr_event_time_ns(set->start, &start) == MR_OK && mr_event_time_ns(set->ready, &end) == MR_OK) {
            longest = mri_max_u64(longest, end - start);
            mr_trace_span(l->cfg.trace, s->track, "copy", start, end, batch);
        }
    }
    mri_count(&l->copy_stage.busy_ns, longest);
    mri_count(&l->copy_stage.items, 1);
    return MR_OK;
}

/* A stream that takes no more work knows why, unless another stream of its device failed. */
static int refused(const mri_replica_stage *s, uint64_t batch, int rc, mr_error *err)
{
    const int why = mr_stream_sync(s->copy, err);
    if (why != MR_OK) return why;
    return mr_error_set(err, rc, "%s refuses to copy batch %llu: the device has failed before (%s)",
                        mr_device_info_of(s->device)->name, (unsigned long long)batch, mr_status_text(rc));
}

static int wait_copies(mr_loader *l, uint64_t batch, mr_error *err)
{
    mri_range_begin(MRI_RANGE_COPY, batch);
    const int rc = wait_for_copies(l, batch, err);
    mri_range_end();
    return rc;
}

static int stage_batch(mr_loader *l, uint64_t batch, mr_error *err)
{
    const mri_slot *slot = l->ring[batch % l->slot_count];
    mr_part *parts = parts_of(l, batch);
    int rc = MR_OK;
    for (uint32_t r = 0; r < l->info.parts && rc == MR_OK; r++) {
        mri_part_bounds(l, slot->count, r, &parts[r].first, &parts[r].count);
        rc = queue_copies(l, r, slot, &parts[r], &l->stages[r].sets[batch % l->device_slots]);
        if (rc != MR_OK) return refused(&l->stages[r], batch, rc, err);
    }

    pthread_mutex_lock(&l->lock);
    l->staged = batch + 1;
    pthread_cond_broadcast(&l->staged_cond);
    pthread_mutex_unlock(&l->lock);

    rc = wait_copies(l, batch, err);
    if (rc != MR_OK) return rc;
    pthread_mutex_lock(&l->lock);
    l->copied = batch + 1;
    mri_loader_free_slots_locked(l);
    pthread_mutex_unlock(&l->lock);
    return MR_OK;
}

int mri_stage_batch(mr_loader *l, uint64_t batch, mr_error *err)
{
    mri_range_begin(MRI_RANGE_STAGE, batch);
    const int rc = stage_batch(l, batch, err);
    mri_range_end();
    return rc;
}

static uint32_t filled_ahead_locked(const mr_loader *l, uint64_t batch)
{
    uint32_t n = 0;
    for (uint64_t b = batch; b < batch + l->slot_count; b++) {
        const mri_slot *slot = l->ring[b % l->slot_count];
        n += slot->done && slot->batch == b;
    }
    return n;
}

/* Wait until a batch is whole on the host and a device set is free for it. False: stopped. */
static bool may_stage(mr_loader *l, uint64_t batch)
{
    const mri_slot *slot = l->ring[batch % l->slot_count];
    pthread_mutex_lock(&l->lock);
    mri_count(&l->copy_stage.fill_sum, (uint64_t)filled_ahead_locked(l, batch) * 65536 / l->slot_count);
    mri_count(&l->copy_stage.fill_samples, 1);
    while (!l->stopped && !(slot->done && slot->batch == batch))
        mri_loader_wait_locked(l, &l->done, &l->copy_stage.blocked_in_ns);
    while (!l->stopped && batch >= l->released + l->device_slots)
        mri_loader_wait_locked(l, &l->returned, &l->copy_stage.blocked_out_ns);
    const bool go = !l->stopped;
    pthread_mutex_unlock(&l->lock);
    return go;
}

void *mri_stager_main(void *arg)
{
    mr_loader *l = arg;
    for (uint64_t batch = l->first_batch; batch < l->end_batch; batch++) {
        mr_error err = MR_ERROR_INIT;
        if (!may_stage(l, batch)) return NULL;
        const int rc = mri_stage_batch(l, batch, &err);
        if (rc != MR_OK) {
            mri_loader_fail(l, rc, &err);
            return NULL;
        }
    }
    return NULL;
}

int mri_stages_consumed(mr_loader *l, uint64_t batch, mr_stream *const *streams, mr_error *err)
{
    int rc = MR_OK;
    for (uint32_t r = 0; r < l->info.parts && rc == MR_OK; r++) {
        mr_event *e = l->stages[r].sets[batch % l->device_slots].consumed;
        rc = mr_event_record(e, streams[r]);
        if (rc != MR_OK) /* the stream may know more, but may also hang: who asks it, waits */
            mr_error_set(err, rc, "%s: cannot mark batch %llu as used: %s",
                         mr_device_info_of(l->stages[r].device)->name, (unsigned long long)batch,
                         mr_status_text(rc));
        /* prefetch off: nothing overlaps, so the next read starts when this step's work is over */
        else if (!l->threads) rc = mr_event_sync(e, err);
    }
    return rc;
}
