/* pipeline/stream/staging.c: see staging.h. */
#include "pipeline/stream/staging.h"

#include <stdio.h>

#include "base/ranges.h"
#include "pipeline/observe/record.h"

/* For a stream that took no more work to tell why; one that hangs never would. */
#define REASON_NS 1000000000u

typedef struct device_set {
    void *pixels, *labels, *affine, *labels2, *share2;
    void *field[MR_LOADER_MAX_FIELDS], *length[MR_LOADER_MAX_FIELDS];
    mr_event *start, *ready, *consumed;
} device_set;

typedef struct replica {
    mr_device *device;
    mr_stream *copy;
    device_set *sets; /* device_slots */
    char track[48];
} replica;

struct mri_staging {
    mri_staging_config cfg; /* fixed */
    uint32_t parts;
    mr_part *part; /* of all device slots: [slot][replica] */
    pthread_t thread;
    bool started;
    mri_stage_counter counter;
    uint64_t seen_late_ns;                      /* the consumer's */
    uint64_t bytes_copied[MR_LOADER_MAX_PARTS]; /* atomic */
    replica replicas[];
};

static mr_part *parts_of(const mri_staging *s, uint64_t batch)
{
    return s->part + (batch % s->cfg.device_slots) * s->parts;
}

const mr_part *mri_staging_parts(const mri_staging *s, uint64_t batch) { return parts_of(s, batch); }

uint64_t mri_staging_seen_late(const mri_staging *s) { return s->seen_late_ns; }

mri_stage_counter *mri_staging_counter(mri_staging *s) { return &s->counter; }
uint64_t mri_staging_bytes(const mri_staging *s, uint32_t r) { return mri_counted(&s->bytes_copied[r]); }

/* ------------------------------------------------------------------------------ create, destroy */

static uint32_t largest_part(const mri_staging *s)
{
    return (s->cfg.batches->batch - 1) / s->cfg.batches->parts + 1;
}

static int open_fields(const mri_staging *s, const replica *p, device_set *set, mr_error *err)
{
    const mri_fields *fields = s->cfg.layout->fields;
    const size_t n = largest_part(s);
    int rc = MR_OK;
    for (uint32_t k = 0; k < fields->count && rc == MR_OK; k++) {
        const mri_field_plan *f = &fields->field[k];
        if (f->row_bytes) rc = mr_device_alloc(p->device, n * f->row_bytes, &set->field[k], err);
        if (rc == MR_OK && f->varies)
            rc = mr_device_alloc(p->device, n * sizeof(int32_t), &set->length[k], err);
    }
    return rc;
}

static int open_set(const mri_staging *s, const replica *p, device_set *set, mr_error *err)
{
    const mri_slot_layout *layout = s->cfg.layout;
    const size_t n = largest_part(s);
    int rc = layout->sample_bytes ? mr_device_alloc(p->device, n * layout->sample_bytes, &set->pixels, err)
                                  : MR_OK;
    if (rc == MR_OK) rc = mr_device_alloc(p->device, n * sizeof(int32_t), &set->labels, err);
    if (rc == MR_OK && layout->uses_affine)
        rc = mr_device_alloc(p->device, n * 2 * sizeof(float), &set->affine, err);
    if (rc == MR_OK && layout->mixes)
        rc = mr_device_alloc(p->device, n * sizeof(int32_t), &set->labels2, err);
    if (rc == MR_OK && layout->mixes) rc = mr_device_alloc(p->device, n * sizeof(float), &set->share2, err);
    if (rc == MR_OK) rc = open_fields(s, p, set, err);
    if (rc == MR_OK) rc = mr_event_create(&set->start, p->device, err);
    if (rc == MR_OK) rc = mr_event_create(&set->ready, p->device, err);
    if (rc == MR_OK) rc = mr_event_create(&set->consumed, p->device, err);
    return rc;
}

static int open_replica(const mri_staging *s, replica *p, mr_device *device, mr_error *err)
{
    const uint32_t slots = s->cfg.device_slots;
    p->device = device;
    snprintf(p->track, sizeof p->track, "copy %.40s", mr_device_info_of(device)->name);
    p->sets = calloc(slots, sizeof *p->sets);
    if (!p->sets) return mr_error_set(err, MR_ENOMEM, "no memory for %u device slots", slots);
    int rc = mr_stream_create(&p->copy, device, MR_STREAM_COPY, err);
    for (uint32_t d = 0; d < slots && rc == MR_OK; d++) rc = open_set(s, p, &p->sets[d], err);
    return rc;
}

int mri_staging_create(mri_staging **out, const mri_staging_config *cfg, mr_error *err)
{
    const uint32_t parts = cfg->batches->own_parts;
    *out = NULL;
    mri_staging *s = calloc(1, sizeof *s + parts * sizeof s->replicas[0]);
    if (s) s->part = calloc((size_t)parts * cfg->device_slots, sizeof *s->part);
    if (!s || !s->part) {
        free(s);
        return mr_error_set(err, MR_ENOMEM, "no memory for %u replicas", parts);
    }
    s->cfg = *cfg;
    s->parts = parts;
    int rc = MR_OK;
    for (uint32_t r = 0; r < parts && rc == MR_OK; r++)
        rc = open_replica(s, &s->replicas[r], cfg->set->devices[r], err);
    if (rc != MR_OK) {
        mri_staging_destroy(s);
        return rc;
    }
    *out = s;
    return MR_OK;
}

static void close_set(const replica *p, device_set *set)
{
    mr_event_destroy(set->start);
    mr_event_destroy(set->ready);
    mr_event_destroy(set->consumed);
    mr_device_free(p->device, set->pixels);
    mr_device_free(p->device, set->labels);
    mr_device_free(p->device, set->affine);
    mr_device_free(p->device, set->labels2);
    mr_device_free(p->device, set->share2);
    for (uint32_t k = 0; k < MR_LOADER_MAX_FIELDS; k++) {
        mr_device_free(p->device, set->field[k]);
        mr_device_free(p->device, set->length[k]);
    }
}

static void close_replica(replica *p, uint32_t slots)
{
    /* the consumer may still be computing on a set */
    for (uint32_t d = 0; p->sets && d < slots; d++)
        if (p->sets[d].consumed) mr_event_sync(p->sets[d].consumed, NULL);
    mr_stream_destroy(p->copy);
    for (uint32_t d = 0; p->sets && d < slots; d++) close_set(p, &p->sets[d]);
    free(p->sets);
}

void mri_staging_join(mri_staging *s)
{
    if (s && s->started) pthread_join(s->thread, NULL);
    if (s) s->started = false;
}

void mri_staging_destroy(mri_staging *s)
{
    if (!s) return;
    for (uint32_t r = 0; r < s->parts; r++) close_replica(&s->replicas[r], s->cfg.device_slots);
    free(s->part);
    free(s);
}

/* ------------------------------------------------------------------------------ copying */

/* Of rows only what this batch has of them. */
static int copy_field(mri_staging *s, uint32_t r, const mri_slot *slot, mr_part *part, const device_set *set,
                      uint32_t k)
{
    const mri_field_plan *p = &s->cfg.layout->fields->field[k];
    const mri_rows *rows = &slot->rows[k];
    const size_t row_bytes = rows->width * p->element_bytes, bytes = part->count * row_bytes;
    const size_t lengths = rows->length ? part->count * sizeof(int32_t) : 0;
    const size_t first = part->first - slot->first;
    mr_stream *copy = s->replicas[r].copy;
    int rc = MR_OK;
    if (bytes) rc = mr_copy_h2d_async(copy, set->field[k], rows->data + first * row_bytes, bytes);
    if (rc == MR_OK && lengths) rc = mr_copy_h2d_async(copy, set->length[k], rows->length + first, lengths);
    mri_count(&s->bytes_copied[r], bytes + lengths);
    part->field[k] = (mr_batch_field){.data = set->field[k], .length = set->length[k], .width = rows->width};
    return rc;
}

static int queue_copies(mri_staging *s, uint32_t r, const mri_slot *slot, mr_part *part, device_set *set)
{
    const mri_slot_layout *layout = s->cfg.layout;
    mr_stream *copy = s->replicas[r].copy;
    const size_t first = part->first - slot->first, n = part->count;
    int rc = mr_stream_wait_event(copy, set->consumed);
    if (rc == MR_OK) rc = mr_event_record(set->start, copy);
    if (n > 0) {
        const size_t pixel_bytes = n * layout->sample_bytes,
                     affine_bytes = set->affine ? n * 2 * sizeof(float) : 0,
                     second_bytes = set->labels2 ? n * sizeof(int32_t) : 0;
        if (rc == MR_OK && pixel_bytes)
            rc = mr_copy_h2d_async(copy, set->pixels, slot->pixels + first * layout->sample_bytes,
                                   pixel_bytes);
        if (rc == MR_OK) rc = mr_copy_h2d_async(copy, set->labels, slot->labels + first, n * sizeof(int32_t));
        if (rc == MR_OK && affine_bytes)
            rc = mr_copy_h2d_async(copy, set->affine, slot->affine + 2 * first, affine_bytes);
        if (rc == MR_OK && second_bytes)
            rc = mr_copy_h2d_async(copy, set->labels2, slot->labels2 + first, second_bytes);
        if (rc == MR_OK && second_bytes)
            rc = mr_copy_h2d_async(copy, set->share2, slot->share2 + first, second_bytes);
        mri_count(&s->bytes_copied[r], pixel_bytes + n * sizeof(int32_t) + affine_bytes + 2 * second_bytes);
    }
    for (uint32_t k = 0; k < layout->fields->count && rc == MR_OK; k++)
        rc = copy_field(s, r, slot, part, set, k);
    if (rc == MR_OK) rc = mr_event_record(set->ready, copy);
    part->pixels = set->pixels;
    part->labels = set->labels;
    part->affine = set->affine;
    part->labels2 = set->labels2;
    part->share2 = set->share2;
    part->ready = set->ready;
    part->form = MR_PART_PIXELS;
    return rc;
}

/* How long staging took to see that it can queue the copies, and to queue them. */
static uint64_t lag_of(mri_staging *s, uint64_t batch)
{
    mri_batch_times t;
    mri_ring_times(s->cfg.ring, batch, 0, &t);
    const uint64_t could = mri_max_u64(t.came_ns, t.full_ns);
    return t.noticed_ns - mri_min_u64(could, t.noticed_ns) + (t.staged_ns - t.room_ns);
}

static int wait_for_copies(mri_staging *s, uint64_t batch, mri_copy_times *times, mr_error *err)
{
    uint64_t longest = 0;
    mri_copy_record record = {.batch = batch};
    for (uint32_t r = 0; r < s->parts; r++) {
        const replica *p = &s->replicas[r];
        device_set *set = &p->sets[batch % s->cfg.device_slots];
        const int rc = mr_event_sync(set->ready, err);
        if (rc != MR_OK) return rc;
        uint64_t start = 0, end = 0;
        if (mr_event_time_ns(set->start, &start) == MR_OK && mr_event_time_ns(set->ready, &end) == MR_OK) {
            longest = mri_max_u64(longest, end - start);
            record.end_ns = mri_max_u64(record.end_ns, end);
            times[r] = (mri_copy_times){start, end};
            mr_trace_span(s->cfg.set->trace, p->track, "copy", start, end, batch);
        }
    }
    record.copy_ns = longest;
    if (s->cfg.set->record && record.end_ns) {
        record.lag_ns = lag_of(s, batch);
        mri_record_copies(s->cfg.set->record, &record);
    }
    mri_activity_add(&s->counter, MRI_BUSY, longest);
    mri_count(&s->counter.items, 1);
    return MR_OK;
}

/* A stream that takes no more work knows why, unless another stream of its device failed. */
static int refused(const replica *p, uint64_t batch, int rc, mr_error *err)
{
    const int why = mr_stream_wait(p->copy, REASON_NS, err);
    if (why != MR_OK && why != MR_EAGAIN) return why;
    return mr_error_set(err, rc, "%s refuses to copy batch %llu: the device has failed before (%s)",
                        mr_device_info_of(p->device)->name, (unsigned long long)batch, mr_status_text(rc));
}

static int queue_batch(mri_staging *s, uint64_t batch, const mri_slot *slot, mr_error *err)
{
    mr_part *parts = parts_of(s, batch);
    for (uint32_t r = 0; r < s->parts; r++) {
        replica *p = &s->replicas[r];
        mri_batches_own_part(s->cfg.batches, batch, r, &parts[r].first, &parts[r].count);
        const int rc = queue_copies(s, r, slot, &parts[r], &p->sets[batch % s->cfg.device_slots]);
        if (rc != MR_OK) return refused(p, batch, rc, err);
    }
    return MR_OK;
}

static int stage_batch(mri_staging *s, uint64_t batch, const mri_slot *slot, mr_error *err)
{
    mri_copy_times times[MR_LOADER_MAX_PARTS] = {0};
    int rc = queue_batch(s, batch, slot, err);
    if (rc != MR_OK) return rc;
    mri_ring_mark_staged(s->cfg.ring, batch);
    mri_range_begin(MRI_RANGE_COPY, batch);
    rc = wait_for_copies(s, batch, times, err);
    mri_range_end();
    if (rc == MR_OK) mri_ring_mark_copied(s->cfg.ring, batch, times);
    return rc;
}

static int stage_in_range(mri_staging *s, uint64_t batch, const mri_slot *slot, mr_error *err)
{
    mri_range_begin(MRI_RANGE_STAGE, batch);
    const int rc = stage_batch(s, batch, slot, err);
    mri_range_end();
    return rc;
}

int mri_stage_inline(mri_staging *s, uint64_t batch, mr_error *err)
{
    return stage_in_range(s, batch, mri_ring_slot(s->cfg.ring, batch), err);
}

static void *staging_main(void *arg)
{
    mri_staging *s = arg;
    mri_cpu_time cpu;
    int rc = MR_OK;
    mri_cpu_time_open(&cpu);
    for (uint64_t batch = s->cfg.batches->first_batch; rc == MR_OK && batch < s->cfg.batches->end_batch;
         batch++) {
        mr_error err = MR_ERROR_INIT;
        const mri_slot *slot = mri_ring_wait_full(s->cfg.ring, batch, &s->counter, &cpu);
        if (!slot) break;
        rc = stage_in_range(s, batch, slot, &err);
        if (rc != MR_OK) mri_halt_fail(s->cfg.halt, rc, &err);
    }
    mri_cpu_time_close(&cpu);
    return NULL;
}

int mri_staging_start(mri_staging *s, mr_error *err)
{
    const int rc = mri_thread_start(&s->thread, "stager", staging_main, s);
    s->started = rc == MR_OK;
    return rc == MR_OK ? MR_OK : mr_error_set(err, rc, "the system refused another thread");
}

/* ------------------------------------------------------------------------------ consuming */

/* The devices' work on a batch is over on return. */
static int wait_for_devices(mri_staging *s, uint64_t batch, mr_error *err)
{
    const uint64_t begun = mri_now_ns();
    uint64_t over = 0;
    for (uint32_t r = 0; r < s->parts; r++) {
        uint64_t at;
        mr_event *e = s->replicas[r].sets[batch % s->cfg.device_slots].consumed;
        const int rc = mr_event_sync(e, err);
        if (rc != MR_OK) return rc;
        if (mr_event_time_ns(e, &at) == MR_OK) over = mri_max_u64(over, at);
    }
    s->seen_late_ns = mri_seen_late_ns(over, begun, mri_now_ns());
    return MR_OK;
}

int mri_staging_mark_consumed(mri_staging *s, uint64_t batch, mr_stream *const *streams, bool wait,
                              mr_error *err)
{
    int rc = MR_OK;
    for (uint32_t r = 0; r < s->parts && rc == MR_OK; r++) {
        const replica *p = &s->replicas[r];
        mr_event *e = p->sets[batch % s->cfg.device_slots].consumed;
        rc = mr_event_record(e, streams[r]);
        if (rc != MR_OK) /* the stream may know more, but may also hang: who asks it, waits */
            mr_error_set(err, rc, "%s: cannot mark batch %llu as used: %s",
                         mr_device_info_of(p->device)->name, (unsigned long long)batch, mr_status_text(rc));
    }
    return rc == MR_OK && wait ? wait_for_devices(s, batch, err) : rc;
}
