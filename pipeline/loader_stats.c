/* pipeline/loader_stats.c: the figures of a loader, from the counters its stages keep. Any thread, at any
 * time. */
#include "base/abi.h"
#include "pipeline/loader_private.h"

static void read_stats(const mr_loader *l, mr_loader_stats *out)
{
    mri_read_counters *read = mri_read_stage_counters(l->stages.read);
    mri_decode_counters *decode = mri_decode_stage_counters(l->stages.decode);
    *out = (mr_loader_stats){.read = mri_stage_stats(&read->stage, l->plan.info.readers),
                             .decode = mri_stage_stats(&decode->stage, l->plan.info.workers),
                             .wait_ns = mri_counted(&l->delivered.wait_ns),
                             .batches = mri_counted(&l->delivered.batches),
                             .samples = mri_counted(&l->delivered.samples),
                             .bytes_read = mri_counted(&read->bytes) + mri_counted(&decode->read_bytes),
                             .bad_samples = mri_counted(&l->bad.bad),
                             .replaced = mri_counted(&l->bad.replaced),
                             .skipped = mri_counted(&l->bad.skipped),
                             .reads = mri_counted(&read->reads) + mri_counted(&decode->reads),
                             .reads_short = mri_counted(&read->shorts),
                             .reads_again = mri_counted(&read->again),
                             .cache_hits = mri_counted(&decode->cache_hits)};
    out->read.items += mri_counted(&decode->unread);
    if (l->kept.cache) {
        const mri_cache_counts c = mri_cache_counts_of(l->kept.cache);
        out->cache_entries = c.entries;
        out->cache_bytes = c.bytes;
        out->cache_dropped = c.dropped;
    }
    if (!l->stages.staging) return;
    out->copy = mri_stage_stats(mri_staging_counter(l->stages.staging), l->plan.threads ? 1 : 0);
    for (uint32_t r = 0; r < l->plan.info.parts; r++)
        out->bytes_copied[r] = mri_staging_bytes(l->stages.staging, r);
}

void mr_loader_stats_read_sized(const mr_loader *l, mr_loader_stats *out)
{
    mr_loader_stats all = {0};
    if (MRI_IS_OWN(l)) read_stats(l, &all);
    mri_result_give(out, &all, sizeof all);
}

void mr_loader_waits(const mr_loader *l, mr_causes *out)
{
    if (out) *out = MRI_IS_OWN(l) ? mri_charges_of_consumer(l->charges) : (mr_causes){0};
}

/* With free order only the consumer knows which batch came in whose place. */
void mr_loader_charge(const mr_loader *l, uint64_t global_step, uint32_t part, uint64_t from_ns,
                      uint64_t to_ns, mr_causes *add)
{
    if (!MRI_IS_OWN(l) || !add) return;
    const bool known = part < l->plan.info.parts && !l->plan.cfg.free_order;
    mri_charge(l->charges, known ? global_step : MR_NOWHERE, known ? part : 0, from_ns, to_ns, add);
}

uint32_t mr_loader_slowest(const mr_loader *l, mr_slow_sample *out, uint32_t room)
{
    if (!MRI_IS_OWN(l) || !out) return 0;
    return mri_decode_stage_slowest(l->stages.decode, out, room);
}

uint32_t mr_loader_odd(const mr_loader *l, mr_odd *out, uint32_t room)
{
    if (!MRI_IS_OWN(l) || !out) return 0;
    const uint32_t workers = mri_decode_stage_odd(l->stages.decode, out, room);
    return workers + mri_read_stage_odd(l->stages.read, out + workers, room - workers);
}

void mr_loader_record_step(const mr_loader *l, uint64_t global_step, uint32_t samples,
                           const uint64_t *start_ns, const uint64_t *end_ns, const mr_causes *causes)
{
    if (!MRI_IS_OWN(l) || !start_ns || !end_ns || !causes) return;
    mr_record *r = l->plan.cfg.record;
    const uint32_t parts = l->plan.info.parts;
    mr_causes all = *causes;
    uint64_t since_ns[MR_LOADER_MAX_PARTS];
    if (!r) return;
    if (all.total_ns == 0 && mri_record_ended(r, parts, since_ns)) /* an epoch's first: nobody has asked */
        for (uint32_t p = 0; p < parts; p++)
            if (start_ns[p] > since_ns[p])
                mr_loader_charge(l, global_step, p, since_ns[p], start_ns[p], &all);
    mri_record_step(r, global_step, samples, start_ns, end_ns, parts, &all);
}
