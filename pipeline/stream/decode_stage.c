/* pipeline/stream/decode_stage.c: see decode_stage.h. */
#include "pipeline/stream/decode_stage.h"

#include <stdio.h>

#include "base/ranges.h"

typedef struct worker {
    mri_decode_stage *stage;
    pthread_t thread;
    mri_placer placer;
    char track[16];
} worker;

struct mri_decode_stage {
    mri_decode_config cfg; /* fixed */
    uint32_t worker_count, started;
    mri_decode_counters counters;
    worker workers[];
};

int mri_decode_stage_create(mri_decode_stage **out, const mri_decode_config *cfg, mr_error *err)
{
    *out = NULL;
    mri_decode_stage *s = calloc(1, sizeof *s + cfg->workers * sizeof s->workers[0]);
    if (!s) return mr_error_set(err, MR_ENOMEM, "no memory for %u workers", cfg->workers);
    s->cfg = *cfg;
    for (uint32_t i = 0; i < cfg->workers; i++) {
        worker *w = &s->workers[s->worker_count++];
        w->stage = s;
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
    for (uint32_t i = 0; i < s->worker_count; i++) mri_placer_fini(&s->workers[i].placer);
    free(s);
}

const mri_decode_counters *mri_decode_stage_counters(const mri_decode_stage *s) { return &s->counters; }

static void add_counts(worker *w)
{
    mri_decode_counters *c = &w->stage->counters;
    mri_placer *p = &w->placer;
    if (p->cache_hits) mri_count(&c->cache_hits, p->cache_hits);
    if (p->reads) {
        mri_count(&c->reads, p->reads);
        mri_count(&c->read_bytes, p->read_bytes);
    }
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

/* Every sample of a chunk into its place. */
static int place_all(worker *w, mri_chunk *c, mr_error *err)
{
    const mri_decode_config *cfg = &w->stage->cfg;
    uint64_t epoch, step;
    mri_batches_place(cfg->locator->batches, c->batch, &epoch, &step);
    int rc = MR_OK;
    for (uint32_t k = 0; k < c->count && rc == MR_OK; k++) {
        rc = mri_place_from_chunk(&w->placer, c, k, epoch, err);
        if (rc != MR_OK) rc = mri_bad_sample(cfg->bad, &w->placer, c, k, rc, err);
        if (rc == MR_OK && c->samples[k].padding) { /* a repeat that no loss counts */
            c->slot->labels[c->first + k] = -1;
            c->slot->ids[c->first + k] = MR_NOWHERE;
        }
    }
    add_counts(w);
    return rc;
}

static void give_back(mri_decode_stage *s, mri_chunk *c)
{
    mri_slot *slot = mri_ring_return_chunk(s->cfg.ring, c);
    if (!slot) return;
    const uint64_t start = mri_now_ns();
    mri_slot_close(s->cfg.place->layout, slot);
    if (s->cfg.place->fields->count) mri_count(&s->counters.stage.busy_ns, mri_now_ns() - start);
    mri_ring_mark_full(s->cfg.ring, slot);
}

static int run_chunk(worker *w, mri_chunk *c, bool located, mr_error *err)
{
    mri_decode_stage *s = w->stage;
    const uint64_t start = mri_now_ns(), batch = c->batch;
    const uint32_t count = c->count;
    int rc = MR_OK;
    mri_range_begin(MRI_RANGE_DECODE, batch);
    if (!located) {
        mri_count(&s->counters.unread, count);
        rc = mri_locate(s->cfg.locator, c, false, err);
    }
    if (rc == MR_OK) rc = place_all(w, c, err);
    mri_range_end();
    const uint64_t end = mri_now_ns();
    mri_count(&s->counters.stage.busy_ns, end - start);
    mri_count(&s->counters.stage.items, count);
    mr_trace_span(s->cfg.trace, w->track, "decode", start, end, batch);
    if (rc != MR_OK) return rc;
    look_at_cache(w);
    give_back(s, c);
    return MR_OK;
}

int mri_decode_chunk_inline(mri_decode_stage *s, mri_chunk *c, mr_error *err)
{
    return run_chunk(&s->workers[0], c, true, err);
}

static void *worker_main(void *arg)
{
    worker *w = arg;
    mri_decode_stage *s = w->stage;
    for (;;) {
        bool located;
        mri_chunk *c = mri_ring_take_chunk(s->cfg.ring, &s->counters.stage, &located);
        if (!c) return NULL;
        mr_error err = MR_ERROR_INIT;
        const int rc = run_chunk(w, c, located, &err);
        if (rc == MR_OK) continue;
        mri_halt_fail(s->cfg.halt, rc, &err);
        return NULL;
    }
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
