/* pipeline/stream/read_stage.c: see read_stage.h. */
#include "pipeline/stream/read_stage.h"

#include "base/ranges.h"

#define RUNS_AT_ONCE 8

/* What one reader thread owns. */
typedef struct reader_thread {
    mri_read_stage *stage;
    mri_reader *reader;
    pthread_t thread;
    uint32_t chunks; /* submitted, not yet whole */
    bool looks; /* atomic: it had room for another chunk when it looked last, and there may have been none */
    mri_reader_account account;
    mri_read runs[RUNS_AT_ONCE]; /* of a resident set; the reader's until they are reaped, which may be after
                                    a failure */
} reader_thread;

struct mri_read_stage {
    mri_read_config cfg; /* fixed */
    uint32_t reader_thread_count, started;
    uint32_t depth; /* atomic: reads that each has in flight at most, up to cfg.reader.depth */
    mri_readers_account account;
    reader_thread reader_threads[];
};

static void stop_readers(void *stage)
{
    mri_read_stage *s = stage;
    for (uint32_t i = 0; i < s->reader_thread_count; i++)
        if (s->reader_threads[i].reader) mri_reader_stop(s->reader_threads[i].reader);
}

static int open_account(mri_read_stage *s, mr_error *err)
{
    const mr_source *source = s->cfg.reader.source;
    const uint32_t files = source ? mr_source_info_of(source)->file_count : 0;
    const int rc = mri_readers_account_init(&s->account, files, s->cfg.io, s->cfg.set->record != NULL,
                                            s->cfg.set->trace);
    return rc ? mr_error_set(err, rc, "no memory for the counts of %u files", files) : MR_OK;
}

int mri_read_stage_create(mri_read_stage **out, const mri_read_config *cfg, mr_error *err)
{
    *out = NULL;
    mri_read_stage *s = calloc(1, sizeof *s + cfg->set->readers * sizeof s->reader_threads[0]);
    if (!s) return mr_error_set(err, MR_ENOMEM, "no memory for %u readers", cfg->set->readers);
    s->cfg = *cfg;
    s->depth = cfg->reader.depth;
    int rc = open_account(s, err);
    for (uint32_t i = 0; i < cfg->set->readers && rc == MR_OK; i++) {
        reader_thread *t = &s->reader_threads[s->reader_thread_count++];
        t->stage = s;
        rc = mri_reader_create(&t->reader, cfg->io, &cfg->reader, err);
        mri_reader_account_init(&t->account, &s->account, i, t->reader);
    }
    if (rc != MR_OK) {
        mri_read_stage_destroy(s);
        return rc;
    }
    mri_halt_add(cfg->halt, stop_readers, s);
    *out = s;
    return MR_OK;
}

void mri_read_stage_join(mri_read_stage *s)
{
    for (uint32_t i = 0; s && i < s->started; i++) pthread_join(s->reader_threads[i].thread, NULL);
    if (s) s->started = 0;
}

bool mri_read_stage_destroy(mri_read_stage *s)
{
    bool lost = false;
    if (!s) return true;
    for (uint32_t i = 0; i < s->reader_thread_count; i++) {
        lost |= s->reader_threads[i].reader && mri_reader_keeps_buffers(s->reader_threads[i].reader);
        mri_reader_destroy(s->reader_threads[i].reader);
        mri_reader_account_close(&s->reader_threads[i].account);
    }
    mri_readers_account_fini(&s->account);
    free(s);
    return !lost;
}

void mri_read_stage_set_depth(mri_read_stage *s, uint32_t depth)
{
    __atomic_store_n(&s->depth, depth, __ATOMIC_RELAXED);
}

mri_read_counters *mri_read_stage_counters(mri_read_stage *s) { return &s->account.counters; }

/* ------------------------------------------------------------------------------ chunks */

static void chunk_is_read(reader_thread *t, mri_chunk *c)
{
    t->chunks--;
    c->reader_core_ns = mri_reader_core_ns(&t->account);
    mri_reader_end(&t->account, c->count, c->batch, c->start_ns, &c->times);
    mri_ring_read_done(t->stage->cfg.ring, c);
}

static int start_chunk(reader_thread *t, mri_chunk *c, mr_error *err)
{
    mri_read_stage *s = t->stage;
    const uint64_t start = mri_reader_active_begin(&t->account, MRI_BUSY);
    mri_range_begin(MRI_RANGE_READ, c->batch);
    const int rc = mri_locate(s->cfg.locator, c, true, err);
    t->chunks++;
    for (uint32_t i = 0; rc == MR_OK && i < c->read_count; i++) mri_reader_submit(t->reader, &c->reads[i]);
    mri_range_end();
    mri_reader_active_end(&t->account, MRI_BUSY, start);
    if (rc == MR_OK && c->read_count == 0) chunk_is_read(t, c);
    return rc;
}

uint32_t mri_read_stage_odd(mri_read_stage *s, mr_odd *out, uint32_t room)
{
    return mri_readers_account_odd(&s->account, out, room);
}

/* Wait for the first completion, then take the others without waiting. */
static int reap(reader_thread *t, bool block, mr_error *err)
{
    for (;;) {
        const mri_activity what = block ? MRI_WAIT_INPUT : MRI_BUSY;
        const uint64_t start = mri_reader_active_begin(&t->account, what);
        mri_read *q;
        if (block) mri_range_begin(MRI_RANGE_READ, mri_reader_in_flight(t->reader));
        const int rc = mri_reader_reap(t->reader, block, &q, err);
        if (block) mri_range_end();
        mri_reader_active_end(&t->account, what, start);
        if (rc != MR_OK || !q) return rc;
        mri_chunk *c = q->owner;
        mri_readers_account_file(&t->stage->account, q, c->start_ns, start);
        if (--c->reads_left == 0) chunk_is_read(t, c);
        block = false;
    }
}

static int read_chunks(reader_thread *t, mr_error *err)
{
    mri_read_stage *s = t->stage;
    const uint32_t number = (uint32_t)(t - s->reader_threads);
    bool ended = false;
    int rc = MR_OK;
    while (rc == MR_OK && (!ended || t->chunks > 0)) {
        mri_chunk *c = NULL;
        const uint32_t depth = __atomic_load_n(&s->depth, __ATOMIC_RELAXED);
        const bool looks = !ended && mri_reader_in_flight(t->reader) < depth;
        __atomic_store_n(&t->looks, looks, __ATOMIC_SEQ_CST);
        if (looks)
            c = mri_ring_claim(s->cfg.ring, number, t->chunks == 0, &s->account.counters.stage, &ended);
        if (c) rc = start_chunk(t, c, err);
        /* a chunk may bring more reads than fit */
        mri_count_fill(&s->account.counters.stage, mri_min_u64(mri_reader_in_flight(t->reader), depth),
                       depth);
        if (rc == MR_OK) rc = reap(t, !c && t->chunks > 0, err);
    }
    return rc;
}

/* ------------------------------------------------------------------------------ a resident set */

/* The whole set into memory, together with the other readers. */
static int read_runs(reader_thread *t, mr_error *err)
{
    mri_read_stage *s = t->stage;
    mri_resident *set = s->cfg.resident;
    uint32_t used = 0;
    for (bool more = true;;) {
        while (more && used < RUNS_AT_ONCE) {
            more = !mri_halt_is_over(s->cfg.halt) && mri_resident_next(set, &t->runs[used]);
            if (more) mri_reader_submit(t->reader, &t->runs[used++]);
        }
        if (mri_reader_in_flight(t->reader) == 0) break;
        mri_read *q;
        const uint64_t start = mri_activity_begin(&s->account.counters.stage, MRI_WAIT_INPUT);
        mri_range_begin(MRI_RANGE_READ, mri_reader_in_flight(t->reader));
        const int rc = mri_reader_reap(t->reader, true, &q, err);
        mri_range_end();
        mri_activity_end(&s->account.counters.stage, MRI_WAIT_INPUT, start);
        if (rc != MR_OK) return rc;
        if (!q) continue; /* woken */
        const bool last = mri_resident_mark_read(set, q);
        mri_reader_end_run(&t->account, start);
        if (last) mri_ring_serve_from_memory(s->cfg.ring);
        else if (more && mri_halt_is_over(s->cfg.halt)) more = false;
        if (more && (more = mri_resident_next(set, q))) mri_reader_submit(t->reader, q);
    }
    return MR_OK;
}

/* ------------------------------------------------------------------------------ threads */

static void *reader_main(void *arg)
{
    reader_thread *t = arg;
    mri_read_stage *s = t->stage;
    mr_error err = MR_ERROR_INIT;
    mri_reader_account_open(&t->account);
    const int rc = s->cfg.resident ? read_runs(t, &err) : read_chunks(t, &err);
    if (rc != MR_OK) mri_halt_fail(s->cfg.halt, rc, &err);
    mri_read *left;
    while (mri_reader_in_flight(t->reader) > 0 && mri_reader_reap(t->reader, true, &left, NULL) == MR_OK) {
    }
    return NULL;
}

/* Wake a reader that waits for its requests in flight and could submit more. */
static void wake_one(void *stage)
{
    mri_read_stage *s = stage;
    for (uint32_t i = 0; i < s->reader_thread_count; i++) {
        if (!__atomic_exchange_n(&s->reader_threads[i].looks, false, __ATOMIC_SEQ_CST)) continue;
        mri_reader_wake(s->reader_threads[i].reader);
        return;
    }
}

int mri_read_stage_start(mri_read_stage *s, mr_error *err)
{
    mri_ring_on_room(s->cfg.ring, wake_one, s);
    for (uint32_t i = 0; i < s->reader_thread_count; i++) {
        const int rc =
            mri_thread_start(&s->reader_threads[i].thread, "reader", reader_main, &s->reader_threads[i]);
        if (rc != MR_OK) return mr_error_set(err, rc, "the system refused another thread");
        s->started++;
    }
    return MR_OK;
}

/* ------------------------------------------------------------------------------ without threads */

int mri_read_resident_inline(mri_read_stage *s, mr_error *err)
{
    if (!s->cfg.resident || mri_resident_done(s->cfg.resident)) return MR_OK;
    return read_runs(&s->reader_threads[0], err);
}

int mri_read_chunk_inline(mri_read_stage *s, mri_chunk *c, mr_error *err)
{
    reader_thread *t = &s->reader_threads[0];
    const uint64_t start = mri_now_ns();
    mri_reader_core_ns(&t->account); /* the caller's other work */
    mri_range_begin(MRI_RANGE_READ, c->batch);
    int rc = mri_locate(s->cfg.locator, c, true, err);
    for (uint32_t i = 0; rc == MR_OK && i < c->read_count; i++) mri_reader_submit(t->reader, &c->reads[i]);
    while (rc == MR_OK && c->reads_left > 0) {
        mri_read *q;
        const uint64_t asked = mri_now_ns();
        rc = mri_reader_reap(t->reader, true, &q, err);
        if (rc != MR_OK || !q) continue;
        mri_readers_account_file(&s->account, q, start, asked);
        c->reads_left--;
    }
    mri_range_end();
    c->reader_core_ns = mri_reader_core_ns(&t->account);
    c->times.read_ns = mri_now_ns();
    mri_reader_end_inline(&t->account, c->count, c->batch, start);
    return rc;
}
