/* pipeline/stream/chunk.c: chunks: which positions, which bytes, which buffer. */
#include "pipeline/stream/loader_private.h"

bool mri_chunk_can_claim_locked(const mr_loader *l)
{
    return l->next_batch < l->end_batch && l->next_batch < l->freed + l->slot_count && l->free_chunks;
}

mri_chunk *mri_chunk_claim_locked(mr_loader *l)
{
    mri_chunk *c = l->free_chunks;
    l->free_chunks = c->next;
    mri_slot *slot = l->ring[l->next_batch % l->slot_count];
    if (l->next_first == 0) {
        slot->batch = l->next_batch;
        slot->count = slot->remaining = mri_batch_count(l, l->next_batch);
        slot->done = false;
    }
    c->slot = slot;
    c->batch = l->next_batch;
    c->first = l->next_first;
    c->count = (uint32_t)mri_min_u64(l->chunk_samples, slot->count - l->next_first);
    l->next_first += c->count;
    if (l->next_first == slot->count) {
        l->next_first = 0;
        l->next_batch++;
    }
    return c;
}

mri_chunk *mri_chunk_claim(mr_loader *l, bool block, bool *ended)
{
    mri_chunk *c = NULL;
    pthread_mutex_lock(&l->lock);
    while (block && !l->stopped && !l->self_serve && l->next_batch < l->end_batch &&
           !mri_chunk_can_claim_locked(l))
        mri_loader_wait_locked(l, &l->room, &l->read_stage.blocked_out_ns);
    const bool mine = !l->stopped && !(block && l->self_serve); /* who may not wait is the consumer, and
                                                                   serves itself */
    if (mine && mri_chunk_can_claim_locked(l)) c = mri_chunk_claim_locked(l);
    *ended = l->stopped || l->self_serve || l->next_batch >= l->end_batch;
    pthread_mutex_unlock(&l->lock);
    if (c) c->start_ns = mri_now_ns();
    return c;
}

/* Room for the chunk's reads: its registered piece, or a private buffer that grows. */
static int make_room(mri_chunk *c, size_t fixed_room, size_t bytes, uint8_t **out, mr_error *err)
{
    if (bytes <= fixed_room) {
        *out = c->fixed;
        return MR_OK;
    }
    if (bytes > c->grown_bytes) {
        free(c->grown);
        c->grown_bytes = (size_t)mri_align_up(bytes + bytes / 4, MRI_DIRECT_ALIGN);
        c->grown = mri_alloc_aligned(MRI_DIRECT_ALIGN, c->grown_bytes);
        if (!c->grown) {
            const size_t wanted = c->grown_bytes;
            c->grown_bytes = 0;
            return mr_error_set(err, MR_ENOMEM, "no memory for a read buffer of %zu bytes", wanted);
        }
    }
    *out = c->grown;
    return MR_OK;
}

static bool extend(mri_read *last, const mr_extent *e, size_t *at)
{
    if (e->file == MR_FILE_OF_SAMPLE || last->file != e->file || e->offset < last->offset) return false;
    const uint64_t end = last->offset + last->bytes;
    if (e->offset > end + MRI_MERGE_GAP_BYTES) return false;
    *at = (size_t)(e->offset - last->offset);
    last->bytes = (size_t)mri_max_u64(last->bytes, *at + e->bytes);
    return true;
}

static void plan_read(mri_chunk *c, mri_chunk_sample *s, const mr_extent *e)
{
    s->at = 0;
    if (c->read_count > 0 && extend(&c->reads[c->read_count - 1], e, &s->at)) {
        s->read = c->read_count - 1;
        return;
    }
    s->read = c->read_count++;
    c->reads[s->read] = (mri_read){
        .file = e->file, .sample = s->sample, .offset = e->offset, .bytes = (size_t)e->bytes, .owner = c};
}

static void in_memory(mri_chunk_sample *s, const uint8_t *at)
{
    s->read = MRI_IN_MEMORY;
    s->memory = at;
}

/* From the cache, if it is there. */
static bool plan_cached(const mr_loader *l, mri_chunk *c, mri_chunk_sample *s, bool may_read)
{
    mri_cache_place p;
    s->cached = l->cache && mri_cache_find(l->cache, s->sample, &p) && (p.memory || may_read);
    if (!s->cached) return false;
    s->bytes = p.bytes;
    s->offset = p.offset;
    if (p.memory) in_memory(s, p.memory);
    else plan_read(c, s, &(mr_extent){MRI_FILE_OF_CACHE, p.offset, p.bytes});
    return true;
}

static void plan_sample(const mr_loader *l, mri_chunk *c, mri_chunk_sample *s, bool may_read)
{
    mr_extent e;
    if (plan_cached(l, c, s, may_read)) return;
    if (mr_source_extent(l->source, s->sample, &e, NULL) != MR_OK) {
        s->read = MRI_NO_READ; /* the worker asks again and handles the error as a bad sample */
        return;
    }
    s->bytes = (size_t)e.bytes;
    if (l->resident) in_memory(s, mri_resident_at(l->resident, &e));
    else if (!may_read) in_memory(s, NULL);
    else plan_read(c, s, &e);
}

int mri_chunk_plan(mr_loader *l, mri_chunk *c, bool may_read, mr_error *err)
{
    uint64_t epoch, step;
    mri_batch_place(l, c->batch, &epoch, &step);
    const uint64_t count = l->info.sample_count, base = step * l->cfg.batch + c->first;
    const mri_epoch_order order = mri_epoch_order_make(l->cfg.order, l->cfg.block, l->cfg.seed, epoch, count);
    uint64_t *const list = c->slot->ids + c->first; /* the chunk's own until it is finished, and as long as it
                                                     */
    const int listed =
        l->windows ? mri_windows_list(l->windows, epoch, step, c->first, c->count, list, err) : MR_OK;
    if (listed != MR_OK) return listed;
    c->read_count = 0;
    for (uint32_t k = 0; k < c->count; k++) {
        mri_chunk_sample *s = &c->samples[k];
        s->padding = base + k >= count;
        s->sample = l->windows ? list[k] : mri_epoch_order_sample(&order, (base + k) % count);
        plan_sample(l, c, s, may_read);
    }

    size_t room = 0;
    for (uint32_t i = 0; i < c->read_count; i++) {
        const size_t need = mri_reader_room(l->cfg.direct, c->reads[i].offset, c->reads[i].bytes);
        if (!mri_add_size(room, (size_t)mri_align_up(need, l->cfg.direct ? MRI_DIRECT_ALIGN : MRI_CACHE_LINE),
                          &room))
            return mr_error_set(err, MR_ELIMIT, "the extents of one chunk overflow the address space");
    }
    uint8_t *buffer = NULL;
    const int rc = make_room(c, l->chunk_room, room, &buffer, err);
    if (rc != MR_OK) return rc;
    size_t at = 0;
    for (uint32_t i = 0; i < c->read_count; i++) {
        const size_t need = mri_reader_room(l->cfg.direct, c->reads[i].offset, c->reads[i].bytes);
        c->reads[i].buffer = buffer + at;
        c->reads[i].buffer_idx = buffer == c->fixed ? (int)(c - l->chunks) : -1;
        at += (size_t)mri_align_up(need, l->cfg.direct ? MRI_DIRECT_ALIGN : MRI_CACHE_LINE);
    }
    c->reads_left = c->read_count;
    return MR_OK;
}

static uint32_t count_labelled(const mri_slot *slot)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < slot->count; i++) n += slot->labels[i] >= 0;
    return n;
}

void mri_chunk_finish(mr_loader *l, mri_chunk *c)
{
    pthread_mutex_lock(&l->lock);
    mri_slot *slot = c->slot;
    slot->remaining -= c->count;
    const bool whole = slot->remaining == 0;
    c->next = l->free_chunks;
    l->free_chunks = c;
    pthread_cond_signal(&l->room);
    if (l->self_serve && mri_chunk_can_claim_locked(l)) pthread_cond_signal(&l->work);
    if (whole && l->fields.count) { /* nobody else has business with this slot now: without the lock */
        pthread_mutex_unlock(&l->lock);
        const uint64_t start = mri_now_ns();
        mri_fields_close(&l->fields, slot->rows, slot->count);
        mri_count(&l->decode_stage.busy_ns, mri_now_ns() - start);
        pthread_mutex_lock(&l->lock);
    }
    if (whole) {
        *mri_counted_of(l, slot->batch) = count_labelled(slot); /* all samples are in place: their workers
                                                                   passed this lock */
        slot->done = true;
        pthread_cond_broadcast(&l->done);
    }
    pthread_mutex_unlock(&l->lock);
}
