/* pipeline/stream/loader_stats.c: the figures of a loader, from the counters its threads keep. Any thread, at
 * any time. */
#include "pipeline/stream/loader_private.h"

static mr_stage_stats stage_stats(const mri_stage_counter *c, uint32_t threads)
{
    mr_stage_stats s = {.busy_ns = mri_counted(&c->busy_ns),
                        .blocked_in_ns = mri_counted(&c->blocked_in_ns),
                        .blocked_out_ns = mri_counted(&c->blocked_out_ns),
                        .items = mri_counted(&c->items),
                        .threads = threads};
    const uint64_t n = mri_counted(&c->fill_samples);
    if (n) s.occupancy = (double)mri_counted(&c->fill_sum) / (double)n / 65536.0;
    return s;
}

void mr_loader_stats_read(const mr_loader *l, mr_loader_stats *out)
{
    *out = (mr_loader_stats){.read = stage_stats(&l->read_stage, l->info.readers),
                             .decode = stage_stats(&l->decode_stage, l->info.workers),
                             .copy = stage_stats(&l->copy_stage, l->cfg.devices && l->threads ? 1 : 0),
                             .wait_ns = mri_counted(&l->wait_ns),
                             .batches = mri_counted(&l->batches_out),
                             .samples = mri_counted(&l->samples_out),
                             .bytes_read = mri_counted(&l->bytes_read),
                             .bad_samples = mri_counted(&l->bad_samples),
                             .replaced = mri_counted(&l->replaced),
                             .skipped = mri_counted(&l->skipped),
                             .reads = mri_counted(&l->reads),
                             .reads_short = mri_counted(&l->reads_short),
                             .reads_again = mri_counted(&l->reads_again),
                             .cache_hits = mri_counted(&l->cache_hits)};
    if (l->cache) {
        const mri_cache_counts c = mri_cache_counts_of(l->cache);
        out->cache_entries = c.entries;
        out->cache_bytes = c.bytes;
        out->cache_dropped = c.dropped;
    }
    for (uint32_t r = 0; r < l->info.parts; r++) out->bytes_copied[r] = mri_counted(&l->bytes_copied[r]);
}
