/* pipeline/loader_stats.c: the figures of a loader, from the counters its stages keep. Any thread, at any
 * time. */
#include "base/abi.h"
#include "pipeline/loader_private.h"

static void read_stats(const mr_loader *l, mr_loader_stats *out)
{
    const mri_read_counters *read = mri_read_stage_counters(l->read);
    const mri_decode_counters *decode = mri_decode_stage_counters(l->decode);
    *out = (mr_loader_stats){.read = mri_stage_stats(&read->stage, l->plan.info.readers),
                             .decode = mri_stage_stats(&decode->stage, l->plan.info.workers),
                             .wait_ns = mri_counted(&l->wait_ns),
                             .batches = mri_counted(&l->batches_out),
                             .samples = mri_counted(&l->samples_out),
                             .bytes_read = mri_counted(&read->bytes) + mri_counted(&decode->read_bytes),
                             .bad_samples = mri_counted(&l->bad.bad),
                             .replaced = mri_counted(&l->bad.replaced),
                             .skipped = mri_counted(&l->bad.skipped),
                             .reads = mri_counted(&read->reads) + mri_counted(&decode->reads),
                             .reads_short = mri_counted(&read->shorts),
                             .reads_again = mri_counted(&read->again),
                             .cache_hits = mri_counted(&decode->cache_hits)};
    out->read.items += mri_counted(&decode->unread);
    if (l->cache) {
        const mri_cache_counts c = mri_cache_counts_of(l->cache);
        out->cache_entries = c.entries;
        out->cache_bytes = c.bytes;
        out->cache_dropped = c.dropped;
    }
    if (!l->staging) return;
    out->copy = mri_stage_stats(mri_staging_counter(l->staging), l->plan.threads ? 1 : 0);
    for (uint32_t r = 0; r < l->plan.info.parts; r++) out->bytes_copied[r] = mri_staging_bytes(l->staging, r);
}

void mr_loader_stats_read_sized(const mr_loader *l, mr_loader_stats *out)
{
    mr_loader_stats all;
    read_stats(l, &all);
    mri_result_give(out, &all, sizeof all);
}
