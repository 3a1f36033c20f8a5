/* pipeline/stream/locate.c: see locate.h. */
#include "pipeline/stream/locate.h"

#include "formats/source/source.h"

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
    mri_read *q = &c->reads[s->read];
    *q = (mri_read){.file = e->file,
                    .sample = s->sample,
                    .offset = e->offset,
                    .bytes = (size_t)e->bytes,
                    .owner = c,
                    .made = q->made};
}

static void in_memory(mri_chunk_sample *s, const uint8_t *at)
{
    s->read = MRI_IN_MEMORY;
    s->memory = at;
}

/* From the cache, if it is there. */
static bool locate_cached(const mri_locator *l, mri_chunk *c, mri_chunk_sample *s, bool may_read)
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

static void locate_sample(const mri_locator *l, mri_chunk *c, mri_chunk_sample *s, bool may_read)
{
    mr_extent e;
    if (locate_cached(l, c, s, may_read)) return;
    if (mri_source_is_begun(l->source) && may_read) {
        s->bytes = 1; /* the reader knows how many when it has come */
        plan_read(c, s, &(mr_extent){MR_FILE_OF_SAMPLE, 0, s->bytes});
        return;
    }
    if (mri_source_is_made(l->source)) {
        s->bytes = 0;
        in_memory(s, NULL); /* the worker makes it */
        return;
    }
    if (mr_source_extent(l->source, s->sample, &e, NULL) != MR_OK) {
        s->read = MRI_NO_READ; /* the worker asks again and handles the error as a bad sample */
        return;
    }
    s->bytes = (size_t)e.bytes;
    if (l->resident) in_memory(s, mri_resident_at(l->resident, &e));
    else if (!may_read) in_memory(s, NULL);
    else plan_read(c, s, &e);
}

/* Bytes of buffer for one read, up to where the next one begins. */
static size_t step_of(const mri_locator *l, const mri_read *q)
{
    const size_t need = mri_reader_room(l->direct, q->offset, q->bytes);
    return (size_t)mri_align_up(need, l->direct ? MRI_DIRECT_ALIGN : MRI_CACHE_LINE);
}

static int place_reads(const mri_locator *l, mri_chunk *c, mr_error *err)
{
    size_t room = 0, at = 0;
    uint8_t *buffer = NULL;
    for (uint32_t i = 0; i < c->read_count; i++)
        if (!mri_add_size(room, step_of(l, &c->reads[i]), &room))
            return mr_error_set(err, MR_ELIMIT, "the extents of one chunk overflow the address space");
    const int rc = mri_chunk_buffer(c, l->chunk_room, room, &buffer, err);
    if (rc != MR_OK) return rc;
    for (uint32_t i = 0; i < c->read_count; i++) {
        c->reads[i].buffer = buffer + at;
        c->reads[i].buffer_idx = buffer == c->fixed ? (int)c->number : -1;
        at += step_of(l, &c->reads[i]);
    }
    c->reads_left = c->read_count;
    return MR_OK;
}

int mri_locate(const mri_locator *l, mri_chunk *c, bool may_read, mr_error *err)
{
    uint64_t epoch, step;
    mri_batches_place(l->batches, c->batch, &epoch, &step);
    /* the chunk's own until it is finished, and as long as it */
    uint64_t *const list = c->slot->ids + c->first;
    const uint32_t place = c->slot->first + c->first;
    int rc = MR_OK;
    if (!c->listed) rc = mri_batches_samples(l->batches, c->batch, place, c->count, list, err);
    if (rc != MR_OK) return rc;
    c->read_count = 0;
    for (uint32_t k = 0; k < c->count; k++) {
        mri_chunk_sample *s = &c->samples[k];
        s->padding = mri_batches_is_padding(l->batches, step, place + k);
        s->sample = list[k];
        locate_sample(l, c, s, may_read);
    }
    return place_reads(l, c, err);
}
