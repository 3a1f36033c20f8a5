/* pipeline/stream/decode_stage.c: see decode_stage.h. */
#include "pipeline/stream/decode_stage.h"

#include <stdio.h>

#include "base/cpu_time.h"
#include "base/ranges.h"
#include "pipeline/observe/odd.h"
#include "pipeline/observe/record.h"

enum {
    LOOK_NS = 1000000, /* how often the scheduler is asked at most: its answer costs a system call */
    LARGE_TIMES = 4,   /* a sample above this multiple of the mean time is large */
    MEAN_OF = 64,      /* samples that the mean looks back on */
    SMALL_SAMPLES = 64 /* in a chunk of this many, samples are too small to time one by one */
};

typedef struct worker {
    mri_decode_stage *stage;
    pthread_t thread;
    mri_placer placer;
    char track[16];
    mri_cpu_time cpu;
    mri_work last;                 /* its latest work */
    uint64_t unseen_ns, rested_ns; /* of work, and between, since the scheduler was asked last */
    uint64_t closing_ns;           /* it was asked as a slot was closed: since the work it could have run */
    double mean_ns;                /* of its samples */
    uint32_t timed;                /* of them, at most MEAN_OF */
    mr_slow_sample slowest;        /* of the chunk at hand */
    bool has_read;                 /* in it, by itself: a wait then is for storage */
} worker;

struct mri_decode_stage {
    mri_decode_config cfg; /* fixed */
    uint32_t worker_count, started;
    mri_toll *tolls; /* of each worker */
    mri_decode_counters counters;
    pthread_mutex_t slow_lock;              /* the next two; slow_least is atomic as well */
    mr_slow_sample slow[MR_LOADER_SLOWEST]; /* the slowest first; ns 0: none */
    uint64_t slow_least;                    /* of the last of them */
    worker workers[];
};

int mri_decode_stage_create(mri_decode_stage **out, const mri_decode_config *cfg, mr_error *err)
{
    *out = NULL;
    mri_decode_stage *s = calloc(1, sizeof *s + cfg->workers * sizeof s->workers[0]);
    if (!s) return mr_error_set(err, MR_ENOMEM, "no memory for %u workers", cfg->workers);
    s->cfg = *cfg;
    pthread_mutex_init(&s->slow_lock, NULL);
    s->tolls = calloc(cfg->workers, sizeof *s->tolls);
    if (!s->tolls) {
        mri_decode_stage_destroy(s);
        return mr_error_set(err, MR_ENOMEM, "no memory for %u workers", cfg->workers);
    }
    for (uint32_t i = 0; i < cfg->workers; i++) {
        worker *w = &s->workers[s->worker_count++];
        w->stage = s;
        w->cpu.fd = -1;
        snprintf(w->track, sizeof w->track, "worker %u", i % 10000);
        const int rc = mri_placer_init(&w->placer, cfg->place);
        if (rc != MR_OK) {
            mri_decode_stage_destroy(s);
            return mr_error_set(err, rc, "no memory for the buffers of worker %u", i);
        }
    }
    *out = s;
    return MR_OK;
}

void mri_decode_stage_join(mri_decode_stage *s)
{
    for (uint32_t i = 0; s && i < s->started; i++) pthread_join(s->workers[i].thread, NULL);
    if (s) s->started = 0;
}

void mri_decode_stage_destroy(mri_decode_stage *s)
{
    if (!s) return;
    for (uint32_t i = 0; i < s->worker_count; i++) {
        mri_placer_fini(&s->workers[i].placer);
        mri_cpu_time_close(&s->workers[i].cpu);
    }
    pthread_mutex_destroy(&s->slow_lock);
    free(s->tolls);
    free(s);
}

mri_decode_counters *mri_decode_stage_counters(mri_decode_stage *s) { return &s->counters; }

static void add_counts(worker *w)
{
    mri_decode_counters *c = &w->stage->counters;
    mri_placer *p = &w->placer;
    if (p->cache_hits) mri_count(&c->cache_hits, p->cache_hits);
    if (p->reads) {
        mri_count(&c->reads, p->reads);
        mri_count(&c->read_bytes, p->read_bytes);
    }
    w->has_read = p->reads != 0;
    p->cache_hits = p->reads = p->read_bytes = 0;
}

/* With the last sample that a cache in memory gets, nothing is left to read. */
static void look_at_cache(worker *w)
{
    const mri_decode_config *cfg = &w->stage->cfg;
    if (cfg->cache_serves && w->placer.offered && mri_cache_is_whole(cfg->place->cache))
        mri_ring_serve_from_memory(cfg->ring);
    w->placer.offered = 0;
}

/* A sample took so long; what of it is more than a sample should. The mean is plain at first, then it
 * forgets. */
static uint64_t large_part(worker *w, const mri_chunk_sample *sample, uint64_t ns)
{
    const double limit = LARGE_TIMES * w->mean_ns,
                 usual = w->timed && (double)ns > limit ? limit : (double)ns;
    if (ns > w->slowest.ns)
        w->slowest = (mr_slow_sample){.sample = sample->sample, .ns = ns, .bytes = sample->bytes};
    if (w->timed < MEAN_OF) w->timed++;
    w->mean_ns += (usual - w->mean_ns) / w->timed;
    return ns - (uint64_t)usual;
}

/* Every sample of a chunk into its place. */
static int place_all(worker *w, mri_chunk *c, uint64_t *large_ns, mr_error *err)
{
    const bool timed = w->stage->cfg.chunk_samples < SMALL_SAMPLES;
    uint64_t then = timed ? mri_now_ns() : 0;
    const mri_decode_config *cfg = &w->stage->cfg;
    const mri_batches *batches = cfg->locator->batches;
    const uint32_t place = c->slot->first + c->first;
    int rc = MR_OK;
    w->slowest.ns = 0;
    mri_seat_work(&w->placer.seat);
    for (uint32_t k = 0; k < c->count && rc == MR_OK; k++) {
        mri_seat_yield(&w->placer.seat);
        const uint64_t waited = w->placer.waited_ns;
        rc = mri_place_from_chunk(&w->placer, c, k, mri_batches_turn(batches, c->batch, place + k), err);
        if (timed) {
            const uint64_t now = mri_now_ns(), for_memory = w->placer.waited_ns - waited;
            *large_ns += large_part(w, &c->samples[k], now - then - mri_min_u64(for_memory, now - then));
            then = now;
        }
        if (rc != MR_OK) rc = mri_bad_sample(cfg->bad, &w->placer, c, k, rc, err);
        if (rc == MR_OK && c->samples[k].padding) { /* a repeat that no loss counts */
            c->slot->labels[c->first + k] = -1;
            c->slot->ids[c->first + k] = MR_NOWHERE;
        }
    }
    for (uint32_t k = 0; rc == MR_OK && c->slot->labels2 && k < c->count; k += 2)
        mri_place_mix(cfg->place, c->slot, c->first + k, k + 1 == c->count,
                      mri_batches_turn(batches, c->batch, place + k));
    mri_seat_rest(&w->placer.seat);
    add_counts(w);
    return rc;
}

/* Since the work ended; the clock is read only if that is long ago: others wait for the finished work. */
static uint64_t look_at_closing(worker *w)
{
    uint64_t ran, delayed;
    const uint64_t ns = mri_now_ns() - w->last.ended_ns;
    if (ns < LOOK_NS) return 0;
    mri_cpu_time_look(&w->cpu, w->unseen_ns + w->rested_ns + ns, &ran, &delayed);
    w->unseen_ns = w->rested_ns = 0;
    return w->closing_ns = mri_min_u64(delayed, ns);
}

static void give_back(worker *w, mri_chunk *c)
{
    mri_decode_stage *s = w->stage;
    mri_chunk_times times = c->times; /* the chunk may be another's soon */
    mri_slot *slot = mri_ring_return_chunk(s->cfg.ring, c);
    if (!slot) return;
    const uint64_t start = mri_now_ns();
    mri_slot_close(s->cfg.place->layout, slot);
    if (s->cfg.place->fields->count) mri_activity_add(&s->counters.stage, MRI_BUSY, mri_now_ns() - start);
    times.closing_ns = look_at_closing(w);
    mri_ring_mark_full(s->cfg.ring, slot, &times);
}

/* How the work went: asked of the scheduler now and then, else as it went the last time. */
static void look_at_work(worker *w, mri_work *work)
{
    const uint64_t wall = work->ended_ns - work->begun_ns;
    const mri_work *like = &w->last;
    const uint64_t rest = work->rested_ns;
    mri_work seen = {.ended_ns = w->unseen_ns + wall};
    w->unseen_ns += wall;
    w->rested_ns += rest;
    const bool slow = w->slowest.ns > mri_counted(&w->stage->slow_least); /* or was it kept from running? */
    if (w->unseen_ns >= LOOK_NS || rest >= LOOK_NS || slow) {
        const uint64_t all = w->unseen_ns + w->rested_ns;
        mri_cpu_time_look(&w->cpu, all, &seen.ran_ns, &seen.delayed_ns);
        seen.ran_ns = mri_min_u64(seen.ran_ns, w->unseen_ns);
        /* delays of the work first, then of being woken for it */
        const uint64_t delayed = mri_min_u64(seen.delayed_ns, w->unseen_ns - seen.ran_ns);
        work->late_ns = mri_min_u64(w->closing_ns + seen.delayed_ns - delayed, rest);
        work->held_ns = mri_max_u64(work->held_ns, work->late_ns);
        seen.delayed_ns = delayed;
        like = &seen;
        w->unseen_ns = w->rested_ns = w->closing_ns = 0;
    }
    const uint64_t whole = like->ended_ns - like->begun_ns;
    const double part = whole ? (double)wall / (double)whole : 0;
    work->ran_ns = whole ? (uint64_t)((double)like->ran_ns * part) : wall;
    work->delayed_ns = (uint64_t)((double)like->delayed_ns * part);
    work->large_ns = mri_min_u64(work->large_ns, work->ran_ns);
}

/* That it was woken and did not run is as slow as not being run in the middle of it. */
static void count_toll(mri_toll *t, const mri_work *work, uint32_t samples)
{
    mri_count(&t->items, samples);
    mri_count(&t->ns, work->ended_ns - work->begun_ns - work->memory_ns + work->late_ns);
    mri_count(&t->ran_ns, work->ran_ns);
    mri_count(&t->delayed_ns, work->delayed_ns + work->late_ns);
}

/* What of the work says nothing of its samples: others had the cores, or it was blocked though the bytes were
 * there (locks, page faults, a host that ran other machines). */
static uint64_t kept_ns(const worker *w, const mri_work *work)
{
    const uint64_t wall = work->ended_ns - work->begun_ns,
                   known = work->memory_ns + work->delayed_ns + work->ran_ns;
    return work->delayed_ns + (w->has_read ? 0 : wall - mri_min_u64(known, wall));
}

static void count_work(worker *w, const mri_work *work, uint32_t samples)
{
    mri_decode_counters *c = &w->stage->counters;
    if (work->memory_ns) mri_activity_move(&c->stage, MRI_BUSY, MRI_WAIT_BUFFER, work->memory_ns);
    if (work->large_ns) mri_count(&c->large_ns, work->large_ns);
    if (work->delayed_ns) mri_count(&c->delayed_ns, work->delayed_ns);
    if (w->slowest.ns) {
        mri_count(&c->timed, samples);
        /* as slow samples are */
        const uint64_t kept = work->memory_ns + kept_ns(w, work), wall = work->ended_ns - work->begun_ns;
        mri_count(&c->timed_ns, wall - mri_min_u64(kept, wall));
    }
    mri_count(&c->stage.items, samples);
    count_toll(&w->stage->tolls[w - w->stage->workers], work, samples);
}

uint32_t mri_decode_stage_odd(mri_decode_stage *s, mr_odd *out, uint32_t room)
{
    return mri_odd_find(MR_ODD_WORKER, s->tolls, s->worker_count, out, room);
}

/* By its own time. */
static void keep_slowest(worker *w, const mri_work *work)
{
    mri_decode_stage *s = w->stage;
    mr_slow_sample *one = &w->slowest;
    one->ns -= mri_min_u64(kept_ns(w, work), one->ns);
    if (one->ns <= mri_counted(&s->slow_least)) return;
    pthread_mutex_lock(&s->slow_lock);
    uint32_t at = MR_LOADER_SLOWEST - 1;
    for (uint32_t i = 0; i < MR_LOADER_SLOWEST; i++) /* its own place, or the last one's */
        if (s->slow[i].ns && s->slow[i].sample == one->sample) at = i;
    if (one->ns > s->slow[at].ns) {
        for (; at > 0 && s->slow[at - 1].ns < one->ns; at--) s->slow[at] = s->slow[at - 1];
        s->slow[at] = *one;
        __atomic_store_n(&s->slow_least, s->slow[MR_LOADER_SLOWEST - 1].ns, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&s->slow_lock);
}

uint32_t mri_decode_stage_slowest(mri_decode_stage *s, mr_slow_sample *out, uint32_t room)
{
    uint32_t n = 0;
    pthread_mutex_lock(&s->slow_lock);
    for (; n < room && n < MR_LOADER_SLOWEST && s->slow[n].ns; n++) out[n] = s->slow[n];
    pthread_mutex_unlock(&s->slow_lock);
    const uint64_t timed = mri_counted(&s->counters.timed), ns = mri_counted(&s->counters.timed_ns);
    for (uint32_t i = 0; i < n; i++) out[i].times = ns ? (double)out[i].ns * (double)timed / (double)ns : 0;
    return n;
}

static void record_chunk(mr_record *record, const mri_chunk *c, const mri_work *work, bool located)
{
    if (!record) return;
    const uint64_t wall = work->ended_ns - work->begun_ns, seen = work->ran_ns + work->delayed_ns;
    mri_chunk_record r = {.samples = c->count,
                          .ran_ns = work->ran_ns,
                          .large_ns = work->large_ns,
                          .delayed_ns = work->delayed_ns,
                          .blocked_ns = wall - mri_min_u64(seen, wall)};
    if (located && c->read_count) {
        r.reads = c->read_count;
        r.read_ns = c->times.read_ns - c->times.claimed_ns;
        r.reader_core_ns = c->reader_core_ns;
        const uint64_t could = mri_max_u64(c->times.before.ended_ns, c->times.read_ns);
        r.woken = c->times.before.ended_ns < c->times.read_ns;
        r.lag_ns = work->begun_ns - mri_min_u64(could, work->begun_ns);
        r.late_ns = mri_chunk_late_ns(&c->times, r.lag_ns);
    }
    for (uint32_t i = 0; i < r.reads; i++) r.bytes += c->reads[i].bytes;
    mri_record_chunk(record, &r);
}

static int run_chunk(worker *w, mri_chunk *c, bool located, mr_error *err)
{
    mri_decode_stage *s = w->stage;
    mri_work work = {.begun_ns = mri_activity_begin(&s->counters.stage, MRI_BUSY)};
    if (w->last.ended_ns) work.rested_ns = work.begun_ns - w->last.ended_ns;
    work.held_ns = work.rested_ns - mri_min_u64(c->times.sought_ns, work.rested_ns);
    const uint64_t batch = c->batch;
    const uint32_t count = c->count;
    int rc = MR_OK;
    mri_range_begin(MRI_RANGE_DECODE, batch);
    w->has_read = false;
    if (!located) {
        mri_count(&s->counters.unread, count);
        rc = mri_locate(s->cfg.locator, c, false, err);
    }
    if (rc == MR_OK) rc = place_all(w, c, &work.large_ns, err);
    mri_range_end();
    work.ended_ns = mri_activity_end(&s->counters.stage, MRI_BUSY, work.begun_ns);
    work.memory_ns = mri_min_u64(w->placer.waited_ns, work.ended_ns - work.begun_ns);
    w->placer.waited_ns = 0;
    look_at_work(w, &work);
    count_work(w, &work, count);
    keep_slowest(w, &work);
    c->times.before = w->last;
    c->times.work = w->last = work;
    mr_trace_span(s->cfg.trace, w->track, "decode", work.begun_ns, work.ended_ns, batch);
    if (rc != MR_OK) return rc;
    record_chunk(s->cfg.record, c, &work, located);
    look_at_cache(w);
    give_back(w, c);
    return MR_OK;
}

int mri_decode_chunk_inline(mri_decode_stage *s, mri_chunk *c, mri_work *work, mr_error *err)
{
    worker *w = &s->workers[0];
    if (w->cpu.fd < 0) mri_cpu_time_open(&w->cpu);
    else if (w->unseen_ns == 0) mri_cpu_time_skip(&w->cpu); /* the thread's other work */
    const int rc = run_chunk(w, c, true, err);
    *work = w->last;
    return rc;
}

static void *worker_main(void *arg)
{
    worker *w = arg;
    mri_decode_stage *s = w->stage;
    const uint32_t number = (uint32_t)(w - s->workers);
    int rc = MR_OK;
    mri_halt_serve(s->cfg.halt);
    mri_cpu_time_open(&w->cpu);
    while (rc == MR_OK) {
        bool located;
        mri_chunk *c = mri_ring_take_chunk(s->cfg.ring, number, &s->counters.stage, &located);
        if (!c) break;
        mr_error err = MR_ERROR_INIT;
        rc = run_chunk(w, c, located, &err);
        if (rc != MR_OK) mri_halt_fail(s->cfg.halt, rc, &err);
    }
    mri_cpu_time_close(&w->cpu);
    return NULL;
}

int mri_decode_stage_start(mri_decode_stage *s, mr_error *err)
{
    for (uint32_t i = 0; i < s->worker_count; i++) {
        const int rc =
            mri_thread_start(&s->workers[i].thread, s->workers[i].track, worker_main, &s->workers[i]);
        if (rc != MR_OK) return mr_error_set(err, rc, "the system refused another thread");
        s->started++;
    }
    return MR_OK;
}
