/* pipeline/stream/read_stage.c: see read_stage.h. */
#include "pipeline/stream/read_stage.h"

#include <stdio.h>

#include "base/cpu_time.h"
#include "base/ranges.h"
#include "pipeline/observe/odd.h"

#define FILES_MOST   4096 /* a source with more of them: none is compared */
#define RUNS_AT_ONCE 8
#define LOOK_NS      1000000u /* of a reader's work: then the scheduler is asked how it went */
#define OLDER_LOOK   0.95     /* each look counts so much of the one after it */

/* What one reader thread owns. */
typedef struct reader_thread {
    mri_read_stage *stage;
    mri_reader *reader;
    pthread_t thread;
    uint32_t chunks; /* submitted, not yet whole */
    bool looks; /* atomic: it had room for another chunk when it looked last, and there may have been none */
    char track[16];
    mri_reader_counts counted; /* the reader's counts already added to the stage's */
    mri_cpu_time cpu;
    uint64_t looked_ns, active_ns; /* active: reading and waiting for reads, since the last look */
    double delayed_ns, lately_ns;  /* of the recent active time, the time it was runnable and did not run */
    double delayed_part; /* the one by the other: of a chunk that came with others, one look says nothing */
    uint64_t core_ns;    /* recorded: of the thread, up to the chunk before */
    mri_read runs[RUNS_AT_ONCE]; /* of a resident set; the reader's until they are reaped, which may be after
                                    a failure */
} reader_thread;

struct mri_read_stage {
    mri_read_config cfg; /* fixed */
    uint32_t reader_thread_count, started;
    uint32_t depth; /* atomic: reads that each has in flight at most, up to cfg.reader.depth */
    mri_read_counters counters;
    mri_toll *tolls; /* of each of the source's files; NULL: there are too few or too many to compare */
    uint32_t file_count;
    reader_thread reader_threads[];
};

static void stop_readers(void *stage)
{
    mri_read_stage *s = stage;
    for (uint32_t i = 0; i < s->reader_thread_count; i++)
        if (s->reader_threads[i].reader) mri_reader_stop(s->reader_threads[i].reader);
}

static int open_tolls(mri_read_stage *s, mr_error *err)
{
    const mr_source *source = s->cfg.reader.source;
    const uint32_t files = source ? mr_source_info_of(source)->file_count : 0;
    if (files < 2 || files > FILES_MOST) return MR_OK;
    s->tolls = calloc(files, sizeof *s->tolls);
    if (!s->tolls) return mr_error_set(err, MR_ENOMEM, "no memory for the counts of %u files", files);
    s->file_count = files;
    return MR_OK;
}

int mri_read_stage_create(mri_read_stage **out, const mri_read_config *cfg, mr_error *err)
{
    *out = NULL;
    mri_read_stage *s = calloc(1, sizeof *s + cfg->readers * sizeof s->reader_threads[0]);
    if (!s) return mr_error_set(err, MR_ENOMEM, "no memory for %u readers", cfg->readers);
    s->cfg = *cfg;
    s->depth = cfg->reader.depth;
    s->reader_thread_count = cfg->readers;
    int rc = open_tolls(s, err);
    for (uint32_t i = 0; i < cfg->readers && rc == MR_OK; i++) {
        s->reader_threads[i].stage = s;
        s->reader_threads[i].cpu.fd = -1;
        snprintf(s->reader_threads[i].track, sizeof s->reader_threads[i].track, "reader %u", i % 1000);
        rc = mri_reader_create(&s->reader_threads[i].reader, cfg->io, &cfg->reader, err);
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
        mri_cpu_time_close(&s->reader_threads[i].cpu);
    }
    free(s->tolls);
    free(s);
    return !lost;
}

void mri_read_stage_set_depth(mri_read_stage *s, uint32_t depth)
{
    __atomic_store_n(&s->depth, depth, __ATOMIC_RELAXED);
}

mri_read_counters *mri_read_stage_counters(mri_read_stage *s) { return &s->counters; }

static void add_counts(reader_thread *t)
{
    const mri_reader_counts now = mri_reader_counts_of(t->reader);
    mri_read_counters *c = &t->stage->counters;
    mri_count(&c->reads, now.reads - t->counted.reads);
    mri_count(&c->again, now.again - t->counted.again);
    mri_count(&c->shorts, now.shorts - t->counted.shorts);
    mri_count(&c->bytes, now.bytes - t->counted.bytes);
    t->counted = now;
}

/* Charge the thread's run time since the previous chunk to this one. */
static uint64_t core_time(reader_thread *t)
{
    const uint64_t before = t->core_ns, now = t->stage->cfg.recorded ? mri_thread_ran_ns() : 0;
    if (!now) return 0;
    t->core_ns = now;
    return now - before;
}

static void look_at_reader(reader_thread *t)
{
    uint64_t ran, delayed;
    const uint64_t now = mri_now_ns();
    if (t->active_ns < LOOK_NS || t->cpu.fd < 0) return;
    mri_cpu_time_look(&t->cpu, now - t->looked_ns, &ran, &delayed);
    t->delayed_ns = OLDER_LOOK * t->delayed_ns + (double)mri_min_u64(delayed, t->active_ns);
    t->lately_ns = OLDER_LOOK * t->lately_ns + (double)t->active_ns;
    t->delayed_part = t->delayed_ns / t->lately_ns;
    t->looked_ns = now;
    t->active_ns = 0;
}

/* ------------------------------------------------------------------------------ chunks */

static void chunk_is_read(reader_thread *t, mri_chunk *c)
{
    mri_read_stage *s = t->stage;
    t->chunks--;
    c->reader_core_ns = core_time(t);
    look_at_reader(t);
    c->times.delayed_part = t->delayed_part;
    mri_count(&s->counters.stage.items, c->count);
    add_counts(t);
    mr_trace_span(s->cfg.trace, t->track, "read", c->start_ns, mri_now_ns(), c->batch);
    mri_ring_read_done(s->cfg.ring, c);
}

static int start_chunk(reader_thread *t, mri_chunk *c, mr_error *err)
{
    mri_read_stage *s = t->stage;
    const uint64_t start = mri_activity_begin(&s->counters.stage, MRI_BUSY);
    mri_range_begin(MRI_RANGE_READ, c->batch);
    const int rc = mri_locate(s->cfg.locator, c, true, err);
    t->chunks++;
    for (uint32_t i = 0; rc == MR_OK && i < c->read_count; i++) mri_reader_submit(t->reader, &c->reads[i]);
    mri_range_end();
    t->active_ns += mri_activity_end(&s->counters.stage, MRI_BUSY, start) - start;
    if (rc == MR_OK && c->read_count == 0) chunk_is_read(t, c);
    return rc;
}

/* A read came back. One of pread began when it was asked for, others when they were submitted. */
static void count_file(const mri_read_stage *s, const mri_read *q, uint64_t submitted_ns, uint64_t asked_ns)
{
    if (q->file >= s->file_count) return;
    const uint64_t began = s->cfg.io == MR_IO_PREAD ? asked_ns : submitted_ns;
    const uint64_t took = mri_now_ns() - began;
    mri_toll *t = &s->tolls[q->file];
    mri_count(&t->items, 1);
    mri_count(&t->bytes, q->bytes);
    mri_count(&t->ns, took);
    if (took > MRI_LONG_READ_NS) mri_count(&t->long_items, 1);
}

uint32_t mri_read_stage_odd(mri_read_stage *s, mr_odd *out, uint32_t room)
{
    return mri_odd_find(MR_ODD_FILE, s->tolls, s->file_count, out, room);
}

/* Wait for the first completion, then take the others without waiting. */
static int reap(reader_thread *t, bool block, mr_error *err)
{
    mri_stage_counter *counter = &t->stage->counters.stage;
    for (;;) {
        const mri_activity what = block ? MRI_WAIT_INPUT : MRI_BUSY;
        const uint64_t start = mri_activity_begin(counter, what);
        mri_read *q;
        if (block) mri_range_begin(MRI_RANGE_READ, mri_reader_in_flight(t->reader));
        const int rc = mri_reader_reap(t->reader, block, &q, err);
        if (block) mri_range_end();
        t->active_ns += mri_activity_end(counter, what, start) - start;
        if (rc != MR_OK || !q) return rc;
        mri_chunk *c = q->owner;
        count_file(t->stage, q, c->start_ns, start);
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
        if (looks) c = mri_ring_claim(s->cfg.ring, number, t->chunks == 0, &s->counters.stage, &ended);
        if (c) rc = start_chunk(t, c, err);
        /* a chunk may bring more reads than fit */
        mri_count_fill(&s->counters.stage, mri_min_u64(mri_reader_in_flight(t->reader), depth), depth);
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
        const uint64_t start = mri_activity_begin(&s->counters.stage, MRI_WAIT_INPUT);
        mri_range_begin(MRI_RANGE_READ, mri_reader_in_flight(t->reader));
        const int rc = mri_reader_reap(t->reader, true, &q, err);
        mri_range_end();
        mri_activity_end(&s->counters.stage, MRI_WAIT_INPUT, start);
        if (rc != MR_OK) return rc;
        if (!q) continue; /* woken */
        const bool last = mri_resident_mark_read(set, q);
        add_counts(t);
        mr_trace_span(s->cfg.trace, t->track, "read", start, mri_now_ns(), MR_NOWHERE);
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
    mri_cpu_time_open(&t->cpu);
    t->looked_ns = mri_now_ns();
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
    core_time(t); /* the caller's other work */
    mri_range_begin(MRI_RANGE_READ, c->batch);
    int rc = mri_locate(s->cfg.locator, c, true, err);
    for (uint32_t i = 0; rc == MR_OK && i < c->read_count; i++) mri_reader_submit(t->reader, &c->reads[i]);
    while (rc == MR_OK && c->reads_left > 0) {
        mri_read *q;
        const uint64_t asked = mri_now_ns();
        rc = mri_reader_reap(t->reader, true, &q, err);
        if (rc != MR_OK || !q) continue;
        count_file(s, q, start, asked);
        c->reads_left--;
    }
    mri_range_end();
    c->reader_core_ns = core_time(t);
    c->times.read_ns = mri_now_ns();
    add_counts(t);
    mri_count(&s->counters.stage.items, c->count);
    mri_activity_add(&s->counters.stage, MRI_BUSY, mri_now_ns() - start);
    mr_trace_span(s->cfg.trace, t->track, "read", start, mri_now_ns(), c->batch);
    return rc;
}
