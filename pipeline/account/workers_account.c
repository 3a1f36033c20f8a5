/* pipeline/account/workers_account.c: see workers_account.h. */
#include "pipeline/account/workers_account.h"

#include <stdio.h>

enum {
    LOOK_NS = 1000000, /* how often the scheduler is asked at most: its answer costs a system call */
    LARGE_TIMES = 4,   /* a sample above this multiple of the mean time is large */
    MEAN_OF = 64,      /* samples that the mean looks back on */
    SMALL_SAMPLES = 64 /* in a chunk of this many, samples are too small to time one by one */
};

int mri_workers_account_init(mri_workers_account *a, uint32_t workers, uint32_t chunk_samples,
                             mr_trace *trace, mr_record *record)
{
    *a = (mri_workers_account){
        .each_sample = chunk_samples < SMALL_SAMPLES, .trace = trace, .record = record, .workers = workers};
    pthread_mutex_init(&a->slow_lock, NULL);
    a->tolls = calloc(workers, sizeof *a->tolls);
    return a->tolls ? MR_OK : MR_ENOMEM;
}

void mri_workers_account_fini(mri_workers_account *a)
{
    pthread_mutex_destroy(&a->slow_lock);
    free(a->tolls);
}

uint32_t mri_workers_account_odd(const mri_workers_account *a, mr_odd *out, uint32_t room)
{
    return mri_odd_find(MR_ODD_WORKER, a->tolls, a->workers, out, room);
}

uint32_t mri_workers_account_slowest(mri_workers_account *a, mr_slow_sample *out, uint32_t room)
{
    uint32_t n = 0;
    pthread_mutex_lock(&a->slow_lock);
    for (; n < room && n < MR_LOADER_SLOWEST && a->slow[n].ns; n++) out[n] = a->slow[n];
    pthread_mutex_unlock(&a->slow_lock);
    const uint64_t timed = mri_counted(&a->counters.timed), ns = mri_counted(&a->counters.timed_ns);
    for (uint32_t i = 0; i < n; i++) out[i].times = ns ? (double)out[i].ns * (double)timed / (double)ns : 0;
    return n;
}

void mri_worker_account_init(mri_worker_account *w, mri_workers_account *all, uint32_t number)
{
    *w = (mri_worker_account){.all = all, .toll = &all->tolls[number], .cpu.fd = -1};
    snprintf(w->track, sizeof w->track, "worker %u", number % 10000);
}

void mri_worker_account_open(mri_worker_account *w) { mri_cpu_time_open(&w->cpu); }

void mri_worker_account_resume(mri_worker_account *w)
{
    if (w->cpu.fd < 0) mri_cpu_time_open(&w->cpu);
    else if (w->unseen_ns == 0) mri_cpu_time_skip(&w->cpu); /* the thread's other work */
}

void mri_worker_account_close(mri_worker_account *w) { mri_cpu_time_close(&w->cpu); }

/* ---- a chunk ---- */

void mri_worker_begin(mri_worker_account *w, const mri_chunk_times *times)
{
    mri_work *work = &w->work;
    *work = (mri_work){.begun_ns = mri_activity_begin(&w->all->counters.stage, MRI_BUSY)};
    if (w->last.ended_ns) work->rested_ns = work->begun_ns - w->last.ended_ns;
    work->held_ns = work->rested_ns - mri_min_u64(times->sought_ns, work->rested_ns);
    w->has_read = false;
}

void mri_worker_first_sample(mri_worker_account *w)
{
    w->then_ns = w->all->each_sample ? mri_now_ns() : 0;
    w->slowest.ns = 0;
}

/* A sample took so long; what of it is more than a sample should. The mean is plain at first, then it
 * forgets. */
static uint64_t large_part(mri_worker_account *w, uint64_t sample, size_t bytes, uint64_t ns)
{
    const double limit = LARGE_TIMES * w->mean_ns,
                 usual = w->timed && (double)ns > limit ? limit : (double)ns;
    if (ns > w->slowest.ns) w->slowest = (mr_slow_sample){.sample = sample, .ns = ns, .bytes = bytes};
    if (w->timed < MEAN_OF) w->timed++;
    w->mean_ns += (usual - w->mean_ns) / w->timed;
    return ns - (uint64_t)usual;
}

void mri_worker_sample(mri_worker_account *w, uint64_t sample, size_t bytes, uint64_t waited_ns)
{
    if (!w->all->each_sample) return;
    const uint64_t now = mri_now_ns(), took = now - w->then_ns;
    w->work.large_ns += large_part(w, sample, bytes, took - mri_min_u64(waited_ns, took));
    w->then_ns = now;
}

void mri_worker_found(mri_worker_account *w, uint64_t cache_hits, uint64_t reads, uint64_t read_bytes)
{
    mri_decode_counters *c = &w->all->counters;
    if (cache_hits) mri_count(&c->cache_hits, cache_hits);
    if (reads) {
        mri_count(&c->reads, reads);
        mri_count(&c->read_bytes, read_bytes);
    }
    w->has_read = reads != 0;
}

/* How the work went: asked of the scheduler now and then, else as it went the last time. */
static void look_at_work(mri_worker_account *w, mri_work *work)
{
    const uint64_t wall = work->ended_ns - work->begun_ns;
    const mri_work *like = &w->last;
    const uint64_t rest = work->rested_ns;
    mri_work seen = {.ended_ns = w->unseen_ns + wall};
    w->unseen_ns += wall;
    w->rested_ns += rest;
    const bool slow = w->slowest.ns > mri_counted(&w->all->slow_least); /* or was it kept from running? */
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
static uint64_t kept_ns(const mri_worker_account *w, const mri_work *work)
{
    const uint64_t wall = work->ended_ns - work->begun_ns,
                   known = work->memory_ns + work->delayed_ns + work->ran_ns;
    return work->delayed_ns + (w->has_read ? 0 : wall - mri_min_u64(known, wall));
}

static void count_work(mri_worker_account *w, const mri_work *work, uint32_t samples)
{
    mri_decode_counters *c = &w->all->counters;
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
    count_toll(w->toll, work, samples);
}

/* By its own time. */
static void keep_slowest(mri_worker_account *w, const mri_work *work)
{
    mri_workers_account *a = w->all;
    mr_slow_sample *one = &w->slowest;
    one->ns -= mri_min_u64(kept_ns(w, work), one->ns);
    if (one->ns <= mri_counted(&a->slow_least)) return;
    pthread_mutex_lock(&a->slow_lock);
    uint32_t at = MR_LOADER_SLOWEST - 1;
    for (uint32_t i = 0; i < MR_LOADER_SLOWEST; i++) /* its own place, or the last one's */
        if (a->slow[i].ns && a->slow[i].sample == one->sample) at = i;
    if (one->ns > a->slow[at].ns) {
        for (; at > 0 && a->slow[at - 1].ns < one->ns; at--) a->slow[at] = a->slow[at - 1];
        a->slow[at] = *one;
        __atomic_store_n(&a->slow_least, a->slow[MR_LOADER_SLOWEST - 1].ns, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&a->slow_lock);
}

void mri_worker_end(mri_worker_account *w, uint32_t samples, uint64_t batch, uint64_t waited_ns,
                    mri_chunk_times *times)
{
    mri_work *work = &w->work;
    work->ended_ns = mri_activity_end(&w->all->counters.stage, MRI_BUSY, work->begun_ns);
    work->memory_ns = mri_min_u64(waited_ns, work->ended_ns - work->begun_ns);
    look_at_work(w, work);
    count_work(w, work, samples);
    keep_slowest(w, work);
    times->before = w->last;
    times->work = w->last = *work;
    mr_trace_span(w->all->trace, w->track, "decode", work->begun_ns, work->ended_ns, batch);
}

void mri_worker_record(const mri_worker_account *w, const mri_chunk_times *times, uint32_t samples,
                       const mri_chunk_reading *reading)
{
    const mri_work *work = &times->work;
    const uint64_t wall = work->ended_ns - work->begun_ns, seen = work->ran_ns + work->delayed_ns;
    if (!w->all->record) return;
    mri_chunk_record r = {.samples = samples,
                          .ran_ns = work->ran_ns,
                          .large_ns = work->large_ns,
                          .delayed_ns = work->delayed_ns,
                          .blocked_ns = wall - mri_min_u64(seen, wall)};
    if (reading->reads) {
        r.reads = reading->reads;
        r.bytes = reading->bytes;
        r.read_ns = times->read_ns - times->claimed_ns;
        r.reader_core_ns = reading->core_ns;
        const uint64_t could = mri_max_u64(times->before.ended_ns, times->read_ns);
        r.woken = times->before.ended_ns < times->read_ns;
        r.lag_ns = work->begun_ns - mri_min_u64(could, work->begun_ns);
        r.late_ns = mri_chunk_late_ns(times, r.lag_ns);
    }
    mri_record_chunk(w->all->record, &r);
}

/* Since the work ended; the clock is read only if that is long ago: others wait for the finished work. */
static uint64_t look_at_closing(mri_worker_account *w)
{
    uint64_t ran, delayed;
    const uint64_t ns = mri_now_ns() - w->last.ended_ns;
    if (ns < LOOK_NS) return 0;
    mri_cpu_time_look(&w->cpu, w->unseen_ns + w->rested_ns + ns, &ran, &delayed);
    w->unseen_ns = w->rested_ns = 0;
    return w->closing_ns = mri_min_u64(delayed, ns);
}

uint64_t mri_worker_closed_slot(mri_worker_account *w, uint64_t start_ns, bool counted)
{
    if (counted) mri_activity_add(&w->all->counters.stage, MRI_BUSY, mri_now_ns() - start_ns);
    return look_at_closing(w);
}
