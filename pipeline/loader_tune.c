/* pipeline/loader_tune.c: a loader that looks for its settings: memory is taken and threads are started for
 * the most of each, and how many are in use changes while batches are delivered. */
#include <stdio.h>

#include "base/abi.h"
#include "base/process.h"
#include "formats/source/source.h"
#include "pipeline/loader_private.h"

enum { PREFETCH_MOST = 16, DEPTH_MOST = 128, DEPTH_LEAST = 8, READERS_MOST = 4, PREAD_READERS_MOST = 16 };

static void range(mri_tuner_config *t, mri_tune_what what, uint32_t least, uint32_t most)
{
    t->least[what] = (uint32_t)mri_min_u64(least, t->start[what]);
    t->most[what] = (uint32_t)mri_max_u64(most, t->start[what]);
}

bool mri_tune_plan(mri_loader_plan *plan, uint32_t times)
{
    const mr_loader_config *cfg = &plan->cfg;
    mri_tuner_config *t = &plan->tune;
    const bool remote = mri_source_is_remote(plan->source), pread = plan->io == MR_IO_PREAD && !remote;
    if (t->start[MRI_TUNE_WORKERS] == 0) {
        const uint32_t start[MRI_TUNED] = {cfg->workers, cfg->prefetch, cfg->depth, cfg->readers};
        memcpy(t->start, start, sizeof start);
    }
    for (int i = 0; i < MRI_TUNED; i++) range(t, (mri_tune_what)i, t->start[i], t->start[i]);
    if (cfg->tune & MR_TUNE_WORKERS)
        range(t, MRI_TUNE_WORKERS, 1, (uint32_t)mri_max_u64(2 * mri_core_count() / times, 1));
    if (cfg->tune & MR_TUNE_PREFETCH) range(t, MRI_TUNE_PREFETCH, 1, PREFETCH_MOST / times);
    if ((cfg->tune & MR_TUNE_DEPTH) && !pread) range(t, MRI_TUNE_DEPTH, DEPTH_LEAST, DEPTH_MOST / times);
    if ((cfg->tune & MR_TUNE_READERS) && !remote)
        range(t, MRI_TUNE_READERS, 1, (pread ? PREAD_READERS_MOST : READERS_MOST) / times);
    return memcmp(t->start, t->most, sizeof t->start) != 0;
}

static void use(mr_loader *l)
{
    const uint32_t *n = mri_tuner_in_use(l->tuner);
    /* host slots beyond the prefetch stay unchanged: keep_host uses some */
    const uint32_t beyond = l->plan.slot_count - l->plan.cfg.keep - l->plan.cfg.prefetch;
    const mri_ring_limits limits = {n[MRI_TUNE_WORKERS], n[MRI_TUNE_READERS], n[MRI_TUNE_PREFETCH] + beyond};
    mri_ring_limit(l->ring, &limits);
    mri_read_stage_set_depth(l->stages.read, n[MRI_TUNE_DEPTH]);
    l->plan.info.workers = n[MRI_TUNE_WORKERS];
    l->plan.info.readers = n[MRI_TUNE_READERS];
    l->plan.info.prefetch = n[MRI_TUNE_PREFETCH];
}

/* Nothing is read when the set is in memory. */
static void fix_reading(mri_tuner_config *t)
{
    static const mri_tune_what reading[] = {MRI_TUNE_DEPTH, MRI_TUNE_READERS};
    for (size_t i = 0; i < MRI_ARRAY_COUNT(reading); i++)
        t->least[reading[i]] = t->most[reading[i]] = t->start[reading[i]];
}

static void note(void *context, const char *text)
{
    mr_loader *l = context;
    mri_notice_text(&l->notices, text);
}

int mri_tune_start(mr_loader *l, mr_error *err)
{
    if (!l->plan.cfg.tune || !l->plan.threads) return MR_OK;
    mri_tuner_config cfg = l->plan.tune;
    cfg.batch = l->plan.cfg.batch;
    cfg.note = note;
    cfg.context = l;
    if (l->kept.resident) fix_reading(&cfg);
    if (mri_tuner_create(&l->tuner, &cfg) != MR_OK)
        return mr_error_set(err, MR_ENOMEM, "no memory for a tuner");
    use(l);
    return MR_OK;
}

/* The best settings are not enough: from here on decoded samples are kept for later epochs. */
static void begin_cache(mr_loader *l)
{
    char text[256];
    if (!l->plan.cache_waits || !mri_tuner_is_late(l->tuner)) return;
    l->plan.cache_waits = false;
    mri_cache_begin(l->kept.cache);
    snprintf(text, sizeof text,
             "tune: the loader is the limit: coefficients are kept in memory from here on, up to %.1f GiB, "
             "for later epochs",
             (double)l->plan.cfg.cache_bytes / (1 << 30));
    note(l, text);
}

void mri_tune_batch(mr_loader *l)
{
    if (!l->tuner || mri_tuner_is_done(l->tuner)) return;
    const mr_causes waits = mri_charges_of_consumer(l->charges);
    if (mri_tuner_batch(l->tuner, mri_now_ns(), &waits, mri_ring_is_ahead(l->ring))) use(l);
    if (mri_tuner_is_done(l->tuner)) begin_cache(l);
}

void mr_loader_tuning_sized(const mr_loader *l, mr_tuning *out)
{
    mr_tuning all = {.done = true};
    if (!MRI_IS_OWN(l)) {
        mri_result_give(out, &all, sizeof all);
        return;
    }
    all = (mr_tuning){.done = true,
                      .workers = l->plan.info.workers,
                      .prefetch = l->plan.info.prefetch,
                      .depth = l->plan.cfg.depth,
                      .readers = l->plan.info.readers,
                      .gain = 1};
    if (l->tuner) mri_tuner_result(l->tuner, &all);
    if (l->plan.cfg.cache == MR_CACHE_MEMORY && !l->plan.cache_waits)
        all.cache_bytes = l->plan.cfg.cache_bytes;
    mri_result_give(out, &all, sizeof all);
}
