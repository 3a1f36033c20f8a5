/* train/stats.c: figures of a run: medians that a few slow steps cannot move, and one line that says which
 * stage limits.
 *
 * The verdict looks at the device first (idle or not), then at why: were batches there (then the host queues
 * too slowly), else at the stage that has no slack. It never sees a device, a loader or a clock, only their
 * figures. */
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

/* ---- the verdict ---- */

#define IDLE_LIMIT 0.05 /* of the device's time: below it the device counts as busy */

static double share(uint64_t part_ns, uint64_t whole_ns, uint32_t threads)
{
    const double whole = (double)whole_ns * (threads ? threads : 1);
    const double s = whole > 0 ? (double)part_ns / whole : 0;
    return s < 1 ? s : 1;
}

static const char *plural(uint32_t n) { return n == 1 ? "" : "s"; }

static void verdict_on_input(const mri_verdict_input *in, double idle, char *out, size_t out_bytes)
{
    const double decode = share(in->decode.busy_ns, in->wall_ns, in->decode.threads);
    const double starved = share(in->decode.blocked_in_ns, in->wall_ns, in->decode.threads);
    const double copy = share(in->copy.busy_ns, in->wall_ns, in->copy.threads);
    const double held = share(in->read.blocked_out_ns, in->wall_ns, in->read.threads);
    if (held > 0.5 && decode < 0.5) /* every slot was full most of the time: the loader is fast enough on
                                       average */
        snprintf(out, out_bytes,
                 "uneven: the loader was ahead %.0f %% of the time and still the device idled %.0f %%; more "
                 "--prefetch would even "
                 "it out, or fewer other programs on these cores",
                 100 * held, 100 * idle);
    else if (copy > 0.5 && copy >= decode)
        snprintf(out, out_bytes,
                 "copy-bound: the link to the device was busy %.0f %% of the time and the device idle %.0f "
                 "%%; smaller "
                 "pictures or a faster link would help, more decode workers would not",
                 100 * copy, 100 * idle);
    else if (decode >= starved)
        snprintf(out, out_bytes,
                 "input-bound: decode workers were busy %.0f %% on %u thread%s and the device idle %.0f %%; "
                 "more workers or "
                 "records that need less decoding would help",
                 100 * decode, in->decode.threads, plural(in->decode.threads), 100 * idle);
    else
        snprintf(out, out_bytes,
                 "storage-bound: decode workers waited for data %.0f %% of the time and the device idled "
                 "%.0f %%; faster "
                 "storage, more reads in flight or a cache would help",
                 100 * starved, 100 * idle);
}

void mri_verdict(const mri_verdict_input *in, char *out, size_t out_bytes)
{
    const double device = (double)in->compute_ns + (double)in->exposed_ns;
    const double idle = device > 0 ? (double)in->exposed_ns / device : 0;
    if (in->wall_ns == 0 || device <= 0)
        snprintf(out, out_bytes, "no verdict: too few steps were measured after the warm-up");
    else if (idle < IDLE_LIMIT)
        snprintf(out, out_bytes,
                 "compute-bound: the device was busy %.0f %% of the time; a faster loader would not help",
                 100 * (1 - idle));
    else if (in->prefetch == 0)
        snprintf(out, out_bytes,
                 "serial: without prefetch the device idled %.0f %% of the time while batches were read, "
                 "decoded and copied; "
                 "turn prefetch on",
                 100 * idle);
    else if ((double)in->wait_ns < 0.25 * (double)in->exposed_ns)
        snprintf(out, out_bytes,
                 "host-bound: the device idled %.0f %% of the time although batches were ready; steps are "
                 "too short to queue "
                 "in time, a larger batch would help",
                 100 * idle);
    else verdict_on_input(in, idle, out, out_bytes);
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
