/* pipeline/stream/decode_stage.c: see decode_stage.h. */
#include "pipeline/stream/decode_stage.h"

#include "base/ranges.h"

typedef struct worker {
    mri_decode_stage *stage;
    pthread_t thread;
    mri_placer placer;
    mri_worker_account account;
} worker;

struct mri_decode_stage {
    mri_decode_config cfg; /* fixed */
    uint32_t worker_count, started;
    mri_workers_account account;
    worker workers[];
};

int mri_decode_stage_create(mri_decode_stage **out, const mri_decode_config *cfg, mr_error *err)
{
    *out = NULL;
    mri_decode_stage *s = calloc(1, sizeof *s + cfg->set->workers * sizeof s->workers[0]);
    if (!s) return mr_error_set(err, MR_ENOMEM, "no memory for %u workers", cfg->set->workers);
    s->cfg = *cfg;
    if (mri_workers_account_init(&s->account, cfg->set->workers, cfg->chunk_samples, cfg->set->trace,
                                 cfg->set->record)) {
        mri_decode_stage_destroy(s);
        return mr_error_set(err, MR_ENOMEM, "no memory for %u workers", cfg->set->workers);
    }
    for (uint32_t i = 0; i < cfg->set->workers; i++) {
        worker *w = &s->workers[s->worker_count++];
        w->stage = s;
        mri_worker_account_init(&w->account, &s->account, i);
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
        mri_worker_account_close(&s->workers[i].account);
    }
    mri_workers_account_fini(&s->account);
    free(s);
}

mri_decode_counters *mri_decode_stage_counters(mri_decode_stage *s) { return &s->account.counters; }

/* With the last sample that a cache in memory gets, nothing is left to read. */
static void look_at_cache(worker *w)
{
    const mri_decode_config *cfg = &w->stage->cfg;
    if (cfg->set->cache == MR_CACHE_MEMORY && w->placer.offered && mri_cache_is_whole(cfg->place->cache))
        mri_ring_serve_from_memory(cfg->ring);
    w->placer.offered = 0;
}

/* Every sample of a chunk into its place. */
static int place_all(worker *w, mri_chunk *c, mr_error *err)
{
    const mri_decode_config *cfg = &w->stage->cfg;
    const mri_batches *batches = cfg->locator->batches;
    const uint32_t place = c->slot->first + c->first;
    mri_placer *p = &w->placer;
    int rc = MR_OK;
    mri_worker_first_sample(&w->account);
    mri_seat_work(&p->seat);
    for (uint32_t k = 0; k < c->count && rc == MR_OK; k++) {
        mri_seat_yield(&p->seat);
        const uint64_t waited = p->waited_ns;
        rc = mri_place_from_chunk(p, c, k, mri_batches_turn(batches, c->batch, place + k), err);
        mri_worker_sample(&w->account, c->samples[k].sample, c->samples[k].bytes, p->waited_ns - waited);
        if (rc != MR_OK) rc = mri_bad_sample(cfg->bad, p, c, k, rc, err);
        if (rc == MR_OK && c->samples[k].padding) { /* a repeat that no loss counts */
            c->slot->labels[c->first + k] = -1;
            c->slot->ids[c->first + k] = MR_NOWHERE;
        }
    }
    for (uint32_t k = 0; rc == MR_OK && c->slot->labels2 && k < c->count; k += 2)
        mri_place_mix(cfg->place, c->slot, c->first + k, k + 1 == c->count,
                      mri_batches_turn(batches, c->batch, place + k));
    mri_seat_rest(&p->seat);
    mri_worker_found(&w->account, p->cache_hits, p->reads, p->read_bytes);
    p->cache_hits = p->reads = p->read_bytes = 0;
    return rc;
}

static void give_back(worker *w, mri_chunk *c)
{
    mri_decode_stage *s = w->stage;
    mri_chunk_times times = c->times; /* the chunk may be another's soon */
    mri_slot *slot = mri_ring_return_chunk(s->cfg.ring, c);
    if (!slot) return;
    const uint64_t start = mri_now_ns();
    mri_slot_close(s->cfg.place->layout, slot);
    times.closing_ns = mri_worker_closed_slot(&w->account, start, s->cfg.place->fields->count > 0);
    mri_ring_mark_full(s->cfg.ring, slot, &times);
}

uint32_t mri_decode_stage_odd(mri_decode_stage *s, mr_odd *out, uint32_t room)
{
    return mri_workers_account_odd(&s->account, out, room);
}

uint32_t mri_decode_stage_slowest(mri_decode_stage *s, mr_slow_sample *out, uint32_t room)
{
    return mri_workers_account_slowest(&s->account, out, room);
}

static void record_chunk(const worker *w, const mri_chunk *c, bool located)
{
    if (!w->stage->cfg.set->record) return;
    mri_chunk_reading reading = {.reads = located ? c->read_count : 0, .core_ns = c->reader_core_ns};
    for (uint32_t i = 0; i < reading.reads; i++) reading.bytes += c->reads[i].bytes;
    mri_worker_record(&w->account, &c->times, c->count, &reading);
}

static int run_chunk(worker *w, mri_chunk *c, bool located, mr_error *err)
{
    mri_decode_stage *s = w->stage;
    int rc = MR_OK;
    mri_worker_begin(&w->account, &c->times);
    mri_range_begin(MRI_RANGE_DECODE, c->batch);
    if (!located) {
        mri_count(&s->account.counters.unread, c->count);
        rc = mri_locate(s->cfg.locator, c, false, err);
    }
    if (rc == MR_OK) rc = place_all(w, c, err);
    mri_range_end();
    mri_worker_end(&w->account, c->count, c->batch, w->placer.waited_ns, &c->times);
    w->placer.waited_ns = 0;
    if (rc != MR_OK) return rc;
    record_chunk(w, c, located);
    look_at_cache(w);
    give_back(w, c);
    return MR_OK;
}

int mri_decode_chunk_inline(mri_decode_stage *s, mri_chunk *c, mri_work *work, mr_error *err)
{
    worker *w = &s->workers[0];
    mri_worker_account_resume(&w->account);
    const int rc = run_chunk(w, c, true, err);
    *work = w->account.last;
    return rc;
}

static void *worker_main(void *arg)
{
    worker *w = arg;
    mri_decode_stage *s = w->stage;
    const uint32_t number = (uint32_t)(w - s->workers);
    int rc = MR_OK;
    mri_halt_serve(s->cfg.halt);
    mri_worker_account_open(&w->account);
    while (rc == MR_OK) {
        bool located;
        mri_chunk *c = mri_ring_take_chunk(s->cfg.ring, number, &s->account.counters.stage, &located);
        if (!c) break;
        mr_error err = MR_ERROR_INIT;
        rc = run_chunk(w, c, located, &err);
        if (rc != MR_OK) mri_halt_fail(s->cfg.halt, rc, &err);
    }
    mri_worker_account_close(&w->account);
    return NULL;
}

int mri_decode_stage_start(mri_decode_stage *s, mr_error *err)
{
    for (uint32_t i = 0; i < s->worker_count; i++) {
        const int rc =
            mri_thread_start(&s->workers[i].thread, s->workers[i].account.track, worker_main, &s->workers[i]);
        if (rc != MR_OK) return mr_error_set(err, rc, "the system refused another thread");
        s->started++;
    }
    return MR_OK;
}
