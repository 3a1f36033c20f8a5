/* train/figures.c: see figures.h. */
#include "train/figures.h"

#include <math.h>

#include "train/packed/pack.h"
#include "train/stats.h"

static void count_steps(mr_report *r, const double *step_ms, size_t count)
{
    memset(r->step_bin, 0, sizeof r->step_bin);
    for (size_t i = 0; i < count; i++) {
        const double bin = floor(4 * log2(step_ms[i] / 0.01));
        r->step_bin[!(bin > 0) ? 0 : bin < MR_STEP_BINS ? (int)bin : MR_STEP_BINS - 1]++;
    }
}

static void report_times(const mri_epoch *e, mr_trainer *t, mr_report *r)
{
    mri_step_log *log = &t->flights.log;
    const double window = 1e-9 * (double)(log->last_end_ns - log->window_start_ns),
                 device = log->compute_ns + log->exposed_ns;
    r->steps = e->steps;
    r->warmup_steps = mri_min_u64(e->warmup, e->steps);
    r->seconds = 1e-9 * (double)(mri_now_ns() - e->begun_ns);
    r->samples_per_s = window > 0 ? (double)log->samples / window : 0;
    count_steps(r, log->step_ms.value, log->step_ms.count);
    r->step_ms_p95 = mri_quantile(log->step_ms.value, log->step_ms.count, 0.95);
    r->step_ms_p99 = mri_quantile(log->step_ms.value, log->step_ms.count, 0.99);
    r->step_ms = mri_median(log->step_ms.value, log->step_ms.count);
    r->step_ms_mad = mri_mad(log->step_ms.value, log->step_ms.count, r->step_ms);
    r->wait_ms = 1e-6 * (double)e->wait_ns;
    r->exposed_ms = 1e-6 * log->exposed_ns;
    r->stall_fraction = device > 0 ? log->exposed_ns / device : 0;
    for (uint32_t i = 0; i < MR_CAUSES; i++) r->causes.ns[i] = log->causes.ns[i] / log->replicas;
    for (uint32_t i = 0; i < MR_CAUSES; i++) r->causes.total_ns += r->causes.ns[i];
}

/* The last steps, which no beat has reported yet, are compared, too. */
static int report_network(mr_trainer *t, mr_report *r, mr_error *err)
{
    mri_ranks *ranks = &t->team.ranks;
    double late = 0;
    const int rc = mri_ranks_compare(ranks, t->flights.steps, t->flights.network_ns, err);
    if (rc || ranks->size == 1) return rc;
    r->late_rank = mri_lateness_worst(&ranks->late, &late);
    r->network_ms = 1e-6 * t->flights.log.network_ns;
    r->late_ms = late * r->network_ms;
    return MR_OK;
}

/* Larger than the network asks for. */
static bool has_large_buckets(const mr_trainer *t)
{
    const mri_replica *r = &t->team.replicas[0];
    const uint64_t bytes = mri_link_speed_bucket(&t->link, r->plan.weight_floats * sizeof(float));
    return mri_plan_count_buckets(&r->plan, &r->nodes, bytes) > r->plan.bucket_count;
}

/* How long the sums of `steps` steps take over the network as it was measured, if nothing overlaps, and one
 * gather a step. */
static uint64_t link_needs_ns(const mr_trainer *t, uint64_t steps)
{
    const mri_replica_config *cfg = &t->team.replicas[0].cfg;
    const uint32_t updates = cfg->local.on && !cfg->local.apart ? t->cfg.sync >> 8 : 1;
    mr_trainer_link link;
    mr_trainer_link_read(t, &link);
    if (!(link.latency_ms > 0)) return UINT64_MAX;
    const double bytes = (double)mri_pack_bytes(t->cfg.exchange, link.bytes / sizeof(float)),
                 sum_ms = 1e3 * mri_link_speed_sum_s(&t->link, (uint64_t)bytes) +
                          2 * link.latency_ms * (link.buckets > 1 ? link.buckets - 1 : 0);
    return (uint64_t)(1e6 * ((double)steps * 2 * link.latency_ms + ceil((double)steps / updates) * sum_ms));
}

/* The beats' figures of the late process and of this one. */
static mri_verdict_late late_rank(const mr_trainer *t, const mr_report *r)
{
    const mri_ranks *ranks = &t->team.ranks;
    mr_rank_times late = {.steps = 0}, own = {.steps = 0};
    if (!(r->late_ms > 0) || mr_trainer_rank_times(t, r->late_rank, &late, NULL) ||
        mr_trainer_rank_times(t, ranks->rank, &own, NULL))
        return (mri_verdict_late){.host = ""};
    const mri_step_log *log = &t->flights.log;
    const uint64_t measured = log->steps - mri_min_u64(log->warmup, log->steps);
    return (mri_verdict_late){.ns = (uint64_t)(1e6 * r->late_ms),
                              .ms = r->late_ms / (double)mri_max_u64(measured, 1),
                              .rank = r->late_rank,
                              .host = mr_world_host(ranks->world, r->late_rank),
                              .compute_ms = late.compute_ms,
                              .idle_ms = late.idle_ms,
                              .own_compute_ms = own.compute_ms,
                              .own_idle_ms = own.idle_ms};
}

/* The name of the slow device for the verdict. Processor devices share cores: which one ran last does not
 * depend on the device. */
static const char *slow_device_name(const mr_trainer *t, uint32_t replica)
{
    const mr_device_info *info = mr_device_info_of(t->team.devices[replica]);
    return strcmp(info->kind, "cpu") == 0 ? NULL : info->name;
}

static void report_stages(const mri_epoch *e, const mr_trainer *t, const mr_loader *loader, mr_report *r)
{
    const mr_loader_info *info = mr_loader_info_of(loader);
    mr_loader_stats now;
    mr_loader_stats_read(loader, &now);
    mri_loader_stats_since(&now, &e->before, &r->stages);
    uint32_t slowest = 0;
    double slow_ms = 0, others_ms = 0;
    const mri_step_log *log = &t->flights.log;
    const uint64_t measured = log->steps - mri_min_u64(log->warmup, log->steps);
    const bool several =
        mri_slowest_replica(log->own_ns, log->replicas, measured, &slowest, &slow_ms, &others_ms);
    const mri_verdict_input in = {
        .compute_ns = (uint64_t)log->compute_ns,
        .exposed_ns = (uint64_t)log->exposed_ns,
        .prefetch = info->prefetch,
        .workers = info->workers,
        .causes = r->causes,
        .slow_device = several ? slow_device_name(t, slowest) : NULL,
        .slow_ms = slow_ms,
        .others_ms = others_ms,
        .network_ns = (uint64_t)(1e6 * r->network_ms),
        .link_ns = link_needs_ns(t, measured),
        .smaller_buckets = has_large_buckets(t),
        .late = late_rank(t, r),
    };
    mri_verdict(&in, r->verdict, sizeof r->verdict);
}

int mri_figures_report(const mri_epoch *e, mr_trainer *t, const mr_loader *loader, mr_report *r,
                       mr_error *err)
{
    report_times(e, t, r);
    const int rc = report_network(t, r, err);
    if (rc == MR_OK) report_stages(e, t, loader, r);
    return rc;
}
