/* train/stats.c: figures of a run: medians that a few slow steps cannot move, and one line that says what
 * limits.
 *
 * The verdict looks at the device first (idle or not), then at what its idle time was charged to. It never
 * sees a device, a loader or a clock, only their figures. */
#include <math.h>
#include <stdio.h>

#include "train/stats.h"

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double mri_median(double *values, size_t count)
{
    if (count == 0) return 0;
    qsort(values, count, sizeof *values, by_value);
    return count % 2 ? values[count / 2] : 0.5 * (values[count / 2 - 1] + values[count / 2]);
}

double mri_mad(double *values, size_t count, double median)
{
    for (size_t i = 0; i < count; i++) values[i] = fabs(values[i] - median);
    return 1.4826 * mri_median(values, count);
}

double mri_quantile(double *values, size_t count, double q)
{
    if (count == 0) return 0;
    qsort(values, count, sizeof *values, by_value);
    const double rank = ceil(q * (double)count);
    const size_t at = rank < 1 ? 0 : (size_t)rank - 1;
    return values[at < count ? at : count - 1];
}

bool mri_slowest_replica(const double *own_ns, uint32_t replicas, uint64_t steps, uint32_t *replica,
                         double *ms, double *others_ms)
{
    double others[MR_LOADER_MAX_PARTS];
    uint32_t slowest = 0, count = 0;
    if (replicas < 2 || steps == 0) return false;
    const double to_ms = 1e-6 / (double)steps;
    for (uint32_t r = 1; r < replicas; r++)
        if (own_ns[r] > own_ns[slowest]) slowest = r;
    for (uint32_t r = 0; r < replicas; r++)
        if (r != slowest) others[count++] = to_ms * own_ns[r];
    *replica = slowest;
    *ms = to_ms * own_ns[slowest];
    *others_ms = mri_median(others, count);
    return true;
}

/* ---- the verdict ---- */

#define IDLE_LIMIT   0.05 /* of the device's time: below it the device counts as busy */
#define REASON_LEAST 0.5  /* of a wait: what explains it takes as long */
#define LINK_LEAST   0.5  /* of a wait for other processes: the network is its reason if it needs as long */
#define SLOW_TIMES   1.25 /* of the others' time: a slower device delays them */

/* Causes that one remedy helps against. */
static const struct {
    const char *verdict, *remedy;
    uint32_t causes; /* bits */
} kinds[] = {
    {"input-bound", "more workers or cores, or records that need less decoding (convert), would help",
     1u << MR_CAUSE_DECODE | 1u << MR_CAUSE_LARGE},
    {"storage-bound", "faster storage, more reads in flight or a cache would help", 1u << MR_CAUSE_READ},
    {"copy-bound", "smaller pictures or a faster link would help, more workers would not",
     1u << MR_CAUSE_COPY},
    {"short of cores", "fewer other programs or a larger CPU quota would help, more workers would not",
     1u << MR_CAUSE_CORES | 1u << MR_CAUSE_QUOTA},
    {"short of memory", "a larger --memory or fewer workers would help", 1u << MR_CAUSE_MEMORY},
    {"uneven", "more --prefetch would even it out", 1u << MR_CAUSE_ROOM},
    {"disturbed", "threads waited for locks, page faults or their wake-up: fewer threads may help",
     1u << MR_CAUSE_BLOCKED},
    {"host-bound", "batches were ready, and steps are too short to queue in time: a larger batch would help",
     1u << MR_CAUSE_HOST | 1u << MR_CAUSE_UNKNOWN},
};

static uint64_t sum_of(const mr_causes *c, uint32_t which)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < MR_CAUSES; i++)
        if (which & 1u << i) sum += c->ns[i];
    return sum;
}

static uint64_t ns_of(const mri_verdict_input *in, int cause)
{
    return cause == MR_CAUSE_NETWORK ? in->network_ns : in->causes.ns[cause];
}

static uint64_t all_of(const mri_verdict_input *in) { return in->causes.total_ns + in->network_ns; }

static void put_cause(char *out, size_t out_bytes, const mri_verdict_input *in, int cause, double idle)
{
    const size_t at = strlen(out);
    snprintf(out + at, out_bytes - at, "%s%.1f %s", at ? ", " : "",
             100 * idle * (double)ns_of(in, cause) / (double)all_of(in), mr_cause_text((mr_cause)cause));
}

/* "4.1 decoding, 1.6 cores taken by other threads": the largest first, as long as they count. */
static void list_causes(const mri_verdict_input *in, double idle, char *out, size_t out_bytes)
{
    uint32_t reported = 0;
    out[0] = '\0';
    for (int n = 0; n < 3; n++) {
        int most = -1;
        for (int i = 0; i <= MR_CAUSE_NETWORK; i++)
            if (!(reported & 1u << i) && (most < 0 || ns_of(in, i) > ns_of(in, most))) most = i;
        if ((double)ns_of(in, most) < 0.05 * (double)all_of(in)) break;
        reported |= 1u << most;
        put_cause(out, out_bytes, in, most, idle);
    }
}

/* Another process causes most of this one's waits. Its additional wait for data or compute is the reason only
 * where it explains the wait (REASON_LEAST); if it does not, the process is late in some steps and not in
 * others. */
static void verdict_on_late(const mri_verdict_input *in, double idle, char *out, size_t out_bytes)
{
    const mri_verdict_late *l = &in->late;
    const double part = 100 * idle / (double)all_of(in);
    const double data = l->idle_ms - l->own_idle_ms, compute = l->compute_ms - l->own_compute_ms;
    const int at =
        snprintf(out, out_bytes,
                 "late rank: the step waited %.1f %% of the time for other ranks, %.1f for rank %u (%.24s), ",
                 part * (double)in->network_ns, part * (double)l->ns, l->rank, l->host);
    if (at < 0 || (size_t)at >= out_bytes) return;
    out += at, out_bytes -= (size_t)at;
    if (fmax(data, compute) < REASON_LEAST * l->ms)
        snprintf(out, out_bytes, "whose steps take uneven times; fewer other programs on its host may help");
    else if (data > compute)
        snprintf(out, out_bytes,
                 "which waits for data %.1f ms a step, this rank %.1f; a faster loader there would help",
                 l->idle_ms, l->own_idle_ms);
    else
        snprintf(out, out_bytes,
                 "which computes %.1f ms a step, this rank %.1f; a faster device there would help",
                 l->compute_ms, l->own_compute_ms);
}

static void verdict_on_network(const mri_verdict_input *in, double idle, char *out, size_t out_bytes)
{
    const double part = 100 * idle / (double)all_of(in);
    if (2 * in->late.ns > in->network_ns) verdict_on_late(in, idle, out, out_bytes);
    else if ((double)in->link_ns < LINK_LEAST * (double)in->network_ns)
        snprintf(
            out, out_bytes,
            "late ranks: the step waited %.1f %% of the time for other ranks, and the network needs %.1f "
            "at most; each is late in turn: fewer other programs on their hosts, or fewer ranks than "
            "cores, would help",
            part * (double)in->network_ns, part * (double)in->link_ns);
    else
        snprintf(
            out, out_bytes,
            "network-bound: the step waited %.1f %% of the time for gradients of other ranks; %sa larger "
            "--batch or a faster network would help",
            part * (double)in->network_ns, in->smaller_buckets ? "smaller buckets (--bucket), " : "");
}

static void verdict_on_idle(const mri_verdict_input *in, double idle, char *out, size_t out_bytes)
{
    char list[160];
    size_t most = 0;
    for (size_t k = 1; k < MRI_ARRAY_COUNT(kinds); k++)
        if (sum_of(&in->causes, kinds[k].causes) > sum_of(&in->causes, kinds[most].causes)) most = k;
    if (in->network_ns > sum_of(&in->causes, kinds[most].causes)) {
        verdict_on_network(in, idle, out, out_bytes);
        return;
    }
    list_causes(in, idle, list, sizeof list);
    snprintf(out, out_bytes, "%s: the device idled %.1f %% of the time: %s; %s",
             in->prefetch ? kinds[most].verdict : "serial", 100 * idle, list,
             in->prefetch ? kinds[most].remedy : "turn prefetch on");
}

/* The devices have their batches; one is late with its part of each step, and all end it together. */
static void verdict_on_busy(const mri_verdict_input *in, double idle, char *out, size_t out_bytes)
{
    if (in->slow_device && in->slow_ms >= SLOW_TIMES * in->others_ms)
        snprintf(
            out, out_bytes,
            "compute-bound: %.64s takes %.2f ms for its part of a step, %.1f times the others' %.2f, and "
            "they wait for it; a faster loader would not help",
            in->slow_device, in->slow_ms, in->slow_ms / in->others_ms, in->others_ms);
    else
        snprintf(out, out_bytes,
                 "compute-bound: the device was busy %.1f %% of the time; a faster loader would not help",
                 100 * (1 - idle));
}

void mri_verdict(const mri_verdict_input *in, char *out, size_t out_bytes)
{
    const double device = (double)in->compute_ns + (double)in->exposed_ns;
    const double idle = device > 0 ? (double)in->exposed_ns / device : 0;
    if (device <= 0) snprintf(out, out_bytes, "no verdict: too few steps were measured after the warm-up");
    else if (idle < IDLE_LIMIT || all_of(in) == 0) verdict_on_busy(in, idle, out, out_bytes);
    else verdict_on_idle(in, idle, out, out_bytes);
}

/* ---- loader statistics of one epoch ---- */

static mr_stage_stats stage_since(const mr_stage_stats *after, const mr_stage_stats *before)
{
    mr_stage_stats s = *after; /* occupancy, threads */
    s.busy_ns -= before->busy_ns;
    s.blocked_in_ns -= before->blocked_in_ns;
    s.blocked_out_ns -= before->blocked_out_ns;
    s.items -= before->items;
    return s;
}

void mri_loader_stats_since(const mr_loader_stats *after, const mr_loader_stats *before, mr_loader_stats *out)
{
    mr_loader_stats s = *after;
    s.read = stage_since(&after->read, &before->read);
    s.decode = stage_since(&after->decode, &before->decode);
    s.copy = stage_since(&after->copy, &before->copy);
    s.wait_ns -= before->wait_ns;
    s.batches -= before->batches;
    s.samples -= before->samples;
    s.bytes_read -= before->bytes_read;
    for (uint32_t i = 0; i < MR_LOADER_MAX_PARTS; i++) s.bytes_copied[i] -= before->bytes_copied[i];
    s.bad_samples -= before->bad_samples;
    s.replaced -= before->replaced;
    s.skipped -= before->skipped;
    s.reads -= before->reads;
    s.reads_short -= before->reads_short;
    s.reads_again -= before->reads_again;
    s.cache_hits -= before->cache_hits;
    s.cache_dropped -= before->cache_dropped;
    *out = s;
}
