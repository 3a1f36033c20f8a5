/* pipeline/stream/threads.c: what the reader and worker threads do, and the same in series when prefetch is
 * off. */
#include <stdio.h>

#include "base/ranges.h"
#include "pipeline/stream/loader_private.h"

static void push_work(mr_loader *l, mri_chunk *c)
{
    pthread_mutex_lock(&l->lock);
    c->next = NULL;
    if (l->work_tail) l->work_tail->next = c;
    else l->work_head = c;
    l->work_tail = c;
    l->work_count++;
    pthread_cond_signal(&l->work);
    pthread_mutex_unlock(&l->lock);
}

static mri_chunk *pop_locked(mr_loader *l)
{
    mri_chunk *c = l->work_head;
    l->work_head = c->next;
    if (!l->work_head) l->work_tail = NULL;
    l->work_count--;
    return c;
}

/* A chunk whose bytes are there; *planned false: nobody has looked up yet where. NULL: stopped. */
static mri_chunk *next_work(mr_loader *l, bool *planned)
{
    mri_chunk *c = NULL;
    pthread_mutex_lock(&l->lock);
    mri_count(&l->decode_stage.fill_sum, (uint64_t)l->work_count * 65536 / l->chunk_count);
    mri_count(&l->decode_stage.fill_samples, 1);
    while (!l->work_head && !l->stopped && !(l->self_serve && mri_chunk_can_claim_locked(l)))
        mri_loader_wait_locked(l, &l->work, &l->decode_stage.blocked_in_ns);
    *planned = l->work_head != NULL;
    if (!l->stopped) c = *planned ? pop_locked(l) : mri_chunk_claim_locked(l);
    pthread_mutex_unlock(&l->lock);
    return c;
}

/* ---- readers ---- */

#define RUNS_AT_ONCE 8

typedef struct reading {
    mr_loader *loader;
    mri_reader *reader;
    uint32_t chunks; /* submitted, not yet whole */
    char track[16];
    mri_reader_counts told;
    mri_read runs[RUNS_AT_ONCE]; /* of a resident set; the reader's until they are reaped, which may be after
                                    a failure */
} reading;

static void tell_counts(reading *rd)
{
    const mri_reader_counts now = mri_reader_counts_of(rd->reader);
    mr_loader *l = rd->loader;
    mri_count(&l->reads, now.reads - rd->told.reads);
    mri_count(&l->reads_again, now.again - rd->told.again);
    mri_count(&l->reads_short, now.shorts - rd->told.shorts);
    mri_count(&l->bytes_read, now.bytes - rd->told.bytes);
    rd->told = now;
}

static void chunk_is_read(reading *rd, mri_chunk *c)
{
    rd->chunks--;
    mri_count(&rd->loader->read_stage.items, c->count);
    tell_counts(rd);
    mr_trace_span(rd->loader->cfg.trace, rd->track, "read", c->start_ns, mri_now_ns(), c->batch);
    push_work(rd->loader, c);
}

static int start_chunk(reading *rd, mri_chunk *c, mr_error *err)
{
    const uint64_t start = mri_now_ns();
    mri_range_begin(MRI_RANGE_READ, c->batch);
    int rc = mri_chunk_plan(rd->loader, c, true, err);
    rd->chunks++;
    for (uint32_t i = 0; rc == MR_OK && i < c->read_count; i++) mri_reader_submit(rd->reader, &c->reads[i]);
    mri_range_end();
    mri_count(&rd->loader->read_stage.busy_ns, mri_now_ns() - start);
    if (rc == MR_OK && c->read_count == 0) chunk_is_read(rd, c);
    return rc;
}

static int reap(reading *rd, bool block, mr_error *err)
{
    for (;;) {
        const uint64_t start = mri_now_ns();
        mri_read *q;
        if (block) mri_range_begin(MRI_RANGE_READ, mri_reader_in_flight(rd->reader));
        const int rc = mri_reader_reap(rd->reader, block, &q, err);
        if (block) mri_range_end();
        mri_count(block ? &rd->loader->read_stage.blocked_in_ns : &rd->loader->read_stage.busy_ns,
                  mri_now_ns() - start);
        if (rc != MR_OK || !q) return rc;
        mri_chunk *c = q->owner;
        if (--c->reads_left == 0) chunk_is_read(rd, c);
        block = false; /* one is enough; then whatever else is there */
    }
}

/* The whole set into memory, together with the other readers. */
static int read_runs(reading *rd, mr_error *err)
{
    mr_loader *l = rd->loader;
    uint32_t used = 0;
    for (bool more = true;;) {
        while (more && used < RUNS_AT_ONCE) {
            more = !mri_loader_is_stopped(l) && mri_resident_next(l->resident, &rd->runs[used]);
            if (more) mri_reader_submit(rd->reader, &rd->runs[used++]);
        }
        if (mri_reader_in_flight(rd->reader) == 0) break;
        mri_read *q;
        const uint64_t start = mri_now_ns();
        mri_range_begin(MRI_RANGE_READ, mri_reader_in_flight(rd->reader));
        const int rc = mri_reader_reap(rd->reader, true, &q, err);
        mri_range_end();
        mri_count(&l->read_stage.blocked_in_ns, mri_now_ns() - start);
        if (rc != MR_OK) return rc;
        if (!q) break;
        const bool last = mri_resident_took(l->resident, q);
        tell_counts(rd);
        mr_trace_span(l->cfg.trace, rd->track, "read", start, mri_now_ns(), q->offset);
        if (last) mri_loader_self_serve(l);
        else if (more && mri_loader_is_stopped(l)) more = false;
        if (more && (more = mri_resident_next(l->resident, q))) mri_reader_submit(rd->reader, q);
    }
    return MR_OK;
}

static int read_all(reading *rd, mr_error *err)
{
    mr_loader *l = rd->loader;
    bool ended = false;
    int rc = MR_OK;
    while (rc == MR_OK && (!ended || rd->chunks > 0)) {
        mri_chunk *c = NULL;
        if (!ended && mri_reader_in_flight(rd->reader) < l->cfg.depth)
            c = mri_chunk_claim(l, rd->chunks == 0, &ended);
        if (c) rc = start_chunk(rd, c, err);
        const uint64_t queued = mri_min_u64(mri_reader_in_flight(rd->reader), l->cfg.depth); /* a chunk may
                                                                                                bring more
                                                                                                than fit */
        mri_count(&l->read_stage.fill_sum, queued * 65536 / l->cfg.depth);
        mri_count(&l->read_stage.fill_samples, 1);
        if (rc == MR_OK) rc = reap(rd, !c && rd->chunks > 0, err);
    }
    return rc;
}

void *mri_reader_main(void *arg)
{
    const mri_reader_seat *seat = arg;
    mr_loader *l = seat->loader;
    reading rd = {.loader = l, .reader = l->readers[seat->number]};
    mr_error err = MR_ERROR_INIT;
    snprintf(rd.track, sizeof rd.track, "reader %u", seat->number % 1000);
    const int rc = l->resident ? read_runs(&rd, &err) : read_all(&rd, &err);
    if (rc != MR_OK) mri_loader_fail(l, rc, &err);
    mri_read *left;
    while (mri_reader_in_flight(rd.reader) > 0 && mri_reader_reap(rd.reader, true, &left, NULL) == MR_OK &&
           left) {
    }
    return NULL;
}

/* ---- workers ---- */

/* Nothing of this chunk is left to read. */
static int plan_here(mr_loader *l, mri_chunk *c, mr_error *err)
{
    mri_count(&l->read_stage.items, c->count);
    return mri_chunk_plan(l, c, false, err);
}

void *mri_worker_main(void *arg)
{
    mri_worker *w = arg;
    mr_loader *l = w->loader;
    for (;;) {
        bool planned;
        mri_chunk *c = next_work(l, &planned);
        if (!c) return NULL;
        const uint64_t start = mri_now_ns(), batch = c->batch;
        mr_error err = MR_ERROR_INIT;
        const uint32_t count = c->count;
        mri_range_begin(MRI_RANGE_DECODE, batch);
        int rc = planned ? MR_OK : plan_here(l, c, &err);
        if (rc == MR_OK) rc = mri_chunk_work(w, c, &err);
        mri_range_end();
        const uint64_t end = mri_now_ns();
        mri_count(&l->decode_stage.busy_ns, end - start);
        mri_count(&l->decode_stage.items, count);
        mr_trace_span(l->cfg.trace, w->track, "decode", start, end, batch);
        if (rc != MR_OK) {
            mri_loader_fail(l, rc, &err);
            return NULL;
        }
        mri_chunk_finish(l, c);
    }
}

/* ---- prefetch off ---- */

static int read_inline(mr_loader *l, reading *rd, mri_chunk *c, mr_error *err)
{
    const uint64_t start = mri_now_ns();
    mri_range_begin(MRI_RANGE_READ, c->batch);
    int rc = mri_chunk_plan(l, c, true, err);
    for (uint32_t i = 0; rc == MR_OK && i < c->read_count; i++) mri_reader_submit(rd->reader, &c->reads[i]);
    while (rc == MR_OK && c->reads_left > 0) {
        mri_read *q;
        rc = mri_reader_reap(rd->reader, true, &q, err);
        if (rc == MR_OK && q) c->reads_left--;
    }
    mri_range_end();
    mri_count(&l->read_stage.items, c->count);
    mri_count(&l->read_stage.busy_ns, mri_now_ns() - start);
    mr_trace_span(l->cfg.trace, "reader 0", "read", start, mri_now_ns(), c->batch);
    return rc;
}

int mri_fill_inline(mr_loader *l, mr_error *err)
{
    reading rd = {.loader = l, .reader = l->readers[0]};
    const uint64_t batch = l->taken;
    rd.told = mri_reader_counts_of(rd.reader);
    mri_slot *slot = l->ring[batch % l->slot_count];
    int rc = MR_OK;
    if (l->resident && !mri_resident_done(l->resident)) rc = read_runs(&rd, err);
    if (rc != MR_OK) return rc;
    do {
        bool ended;
        mri_chunk *c = mri_chunk_claim(l, false, &ended);
        if (!c) return MR_ECANCELED; /* the slot is free and chunks are at hand: only a stop is left */
        rc = read_inline(l, &rd, c, err);
        const uint64_t start = mri_now_ns();
        mri_range_begin(MRI_RANGE_DECODE, batch);
        if (rc == MR_OK) rc = mri_chunk_work(&l->workers[0], c, err);
        mri_range_end();
        mri_count(&l->decode_stage.busy_ns, mri_now_ns() - start);
        mri_count(&l->decode_stage.items, c->count);
        mr_trace_span(l->cfg.trace, "worker 0", "decode", start, mri_now_ns(), batch);
        if (rc == MR_OK) mri_chunk_finish(l, c);
    } while (rc == MR_OK && !(slot->done && slot->batch == batch));
    tell_counts(&rd);
    return rc;
}
