/* pipeline/observe/replay_result.c: settings of a replay, and the figures that several of them come to: the
 * rate of the whole record, and of parts of it, whose spread says how much the record says. */
#include <math.h>
#include <stdio.h>

#include "base/abi.h"
#include "base/process.h"
#include "pipeline/observe/replay.h"

enum { PARTS = 8, BATCHES_FEWEST = 50, BATCHES_MOST = 4000 };
#define SHORT_NS   100000u
#define T_95       2.365 /* Student's t for 95 % and PARTS - 1 degrees of freedom */
#define IDLE_LIMIT 0.05  /* of the devices' time: below it they count as busy, as in the verdict of a run */

const char *mr_limit_name(double idle, const mr_causes *c)
{
    if (!c) return "compute";
    mr_causes sum = *c;
    int most = 0;
    if (idle < IDLE_LIMIT || c->total_ns == 0) return "compute";
    sum.ns[MR_CAUSE_DECODE] += sum.ns[MR_CAUSE_LARGE];
    sum.ns[MR_CAUSE_CORES] += sum.ns[MR_CAUSE_QUOTA];
    sum.ns[MR_CAUSE_LARGE] = sum.ns[MR_CAUSE_QUOTA] = 0;
    for (int i = 1; i < MR_CAUSES; i++)
        if (sum.ns[i] > sum.ns[most]) most = i;
    return mr_cause_name((mr_cause)most);
}

static int check_record(const mri_record_data *d, mr_error *err)
{
    if (d->shape.batch && d->chunks && d->copies && d->steps) return MR_OK;
    return mr_error_set(
        err, MR_EINVAL,
        "nothing to replay: expected chunks, copies and steps in the record, found %zu, %zu and %zu; "
        "give the record to a loader with devices, and run steps on its batches",
        d->chunks, d->copies, d->steps);
}

static int by_number(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* One duration in each of n records that lie `each` bytes apart: none is longer than twice the median, and a
 * little. False: no memory. */
static bool cap(void *first, size_t each, size_t n)
{
    uint64_t *sorted = malloc((n + 1) * sizeof *sorted);
    if (!sorted) return false;
    for (size_t i = 0; i < n; i++) memcpy(&sorted[i], (char *)first + i * each, sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_number);
    const uint64_t most = n ? 2 * sorted[n / 2] + SHORT_NS : 0;
    free(sorted);
    for (size_t i = 0; i < n; i++) {
        uint64_t *at = (uint64_t *)(void *)((char *)first + i * each);
        if (*at > most) *at = most;
    }
    return true;
}

/* Where a quota stops all threads for a while, whatever went on then took longer. The model's cores are as
 * few as the quota says: with these pauses it would count twice. */
static bool cap_pauses(mri_record_data *d)
{
    return cap(&d->chunk->lag_ns, sizeof *d->chunk, d->chunks) &&
           cap(&d->chunk->blocked_ns, sizeof *d->chunk, d->chunks) &&
           cap(&d->chunk->read_ns, sizeof *d->chunk, d->chunks) &&
           cap(&d->copy->lag_ns, sizeof *d->copy, d->copies) &&
           cap(&d->copy->copy_ns, sizeof *d->copy, d->copies) &&
           cap(&d->step->gap_ns, sizeof *d->step, d->steps) &&
           cap(&d->step->compute_ns, sizeof *d->step, d->steps);
}

static int take(const mr_record *r, mri_record_data *out, mr_error *err)
{
    int rc = mri_record_take((mr_record *)r, out);
    if (rc != MR_OK) return mr_error_set(err, rc, "no memory for a copy of the record");
    rc = check_record(out, err);
    if (rc == MR_OK && out->shape.quota && !cap_pauses(out))
        rc = mr_error_set(err, MR_ENOMEM, "no memory for a copy of the record");
    if (rc != MR_OK) mri_record_data_free(out);
    return rc;
}

int mr_replay_defaults_sized(const mr_record *r, mr_replay_config *cfg, size_t struct_size, mr_error *err)
{
    MRI_OWN_AS(err, r, mri_record_process(r));
    MRI_GIVEN(err, cfg);
    mri_record_data d;
    const int rc = take(r, &d, err);
    if (rc != MR_OK) return rc;
    const mri_run_shape *s = &d.shape;
    const mr_replay_config all = {.batch = s->batch,
                                  .prefetch = s->prefetch,
                                  .workers = s->workers,
                                  .readers = s->readers,
                                  .depth = s->depth,
                                  .devices = s->parts,
                                  .cores = mri_core_share(),
                                  .read_times = 1,
                                  .decode_times = 1,
                                  .copy_times = 1,
                                  .step_times = 1,
                                  .bytes_times = 1,
                                  .read_core_times = 1,
                                  .crowd_times = 1};
    mri_settings_give(cfg, struct_size, &all, sizeof all);
    mri_record_data_free(&d);
    return MR_OK;
}

static int check(const mr_replay_config *c, mr_error *err)
{
    const struct {
        const char *name;
        double value, low, high;
    } all[] = {
        {"batch", c->batch, 1, UINT32_MAX},
        {"prefetch", c->prefetch, 0, 65535},
        {"workers", c->workers, 1, 4096},
        {"readers", c->readers, 1, 1024},
        {"depth", c->depth, 1, 4096},
        {"devices", c->devices, 1, MR_LOADER_MAX_PARTS},
        {"cores", c->cores, 0.01, 65536},
        {"step_cores", c->step_cores, 0, 65536},
        {"others", c->others, 0, 65536},
        {"copy_core_ms", c->copy_core_ms, 0, 1e9},
        {"read_times", c->read_times, 0, 1e6},
        {"decode_times", c->decode_times, 0, 1e6},
        {"copy_times", c->copy_times, 0, 1e6},
        {"step_times", c->step_times, 0, 1e6},
        {"bytes_times", c->bytes_times, 0, 1e6},
        {"read_core_times", c->read_core_times, 0, 1e6},
        {"crowd_times", c->crowd_times, 1, 100},
        {"crowd_part", c->crowd_part, 0, 1},
    };
    for (size_t i = 0; i < MRI_ARRAY_COUNT(all); i++)
        if (!(all[i].value >= all[i].low && all[i].value <= all[i].high))
            return mr_error_set(err, MR_EINVAL, "replay: %s %g: expected %g..%g", all[i].name, all[i].value,
                                all[i].low, all[i].high);
    return MR_OK;
}

static uint64_t batches_of(const mri_record_data *d, const mr_replay_config *cfg, double part)
{
    double samples = 0;
    for (size_t i = 0; i < d->chunks; i++) samples += d->chunk[i].samples;
    const uint64_t n = (uint64_t)(part * samples / cfg->batch);
    const uint64_t most = cfg->batches ? mri_max_u64(1, cfg->batches) : BATCHES_MOST;
    return mri_min_u64(mri_max_u64(n, BATCHES_FEWEST), most);
}

static double rate_of(const mri_replay_run *run)
{
    return run->ns > 0 ? 1e9 * (double)run->samples / run->ns : 0;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile_ms(const double *sorted, uint64_t n, double q)
{
    const double rank = ceil(q * (double)n);
    return 1e-6 * sorted[rank < 1 ? 0 : (uint64_t)rank - 1];
}

static int replay_all(const mri_record_data *d, const mr_replay_config *cfg, mr_replay_result *out)
{
    mri_replay_run run;
    const mri_replay_part all = {0, 1, batches_of(d, cfg, 1)};
    const int rc = mri_replay_part_run(d, cfg, &all, &run);
    if (rc == MR_OK) {
        qsort(run.interval_ns, run.batches, sizeof *run.interval_ns, by_value);
        const double device = run.compute_ns + run.idle_ns;
        out->samples_per_s = rate_of(&run);
        out->idle = device > 0 ? run.idle_ns / device : 0;
        for (int i = 0; i < MR_CAUSES; i++)
            out->causes.total_ns += out->causes.ns[i] = run.causes.ns[i] / cfg->devices;
        out->limit = mr_limit_name(out->idle, &out->causes);
        out->step_ms_p50 = quantile_ms(run.interval_ns, run.batches, 0.5);
        out->step_ms_p95 = quantile_ms(run.interval_ns, run.batches, 0.95);
        out->step_ms_p99 = quantile_ms(run.interval_ns, run.batches, 0.99);
        out->cores = run.ns > 0 ? run.core_ns / run.ns : 0;
        out->read_bytes_per_s = run.ns > 0 ? 1e9 * run.read_bytes / run.ns : 0;
        out->batches = run.batches;
    }
    free(run.interval_ns);
    return rc;
}

static int replay_parts(const mri_record_data *d, const mr_replay_config *cfg, mr_replay_result *out)
{
    double sum = 0, squares = 0;
    for (int i = 0; i < PARTS; i++) {
        mri_replay_run run;
        const mri_replay_part part = {(double)i / PARTS, (i + 1.0) / PARTS, batches_of(d, cfg, 1.0 / PARTS)};
        const int rc = mri_replay_part_run(d, cfg, &part, &run);
        const double rate = rate_of(&run);
        free(run.interval_ns);
        if (rc != MR_OK) return rc;
        sum += rate;
        squares += rate * rate;
    }
    const double variance = (squares - sum * sum / PARTS) / (PARTS - 1);
    out->samples_per_s_error = variance > 0 ? T_95 * sqrt(variance / PARTS) : 0;
    return MR_OK;
}

int mr_replay_sized(const mr_record *r, const mr_replay_config *cfg, mr_replay_result *out, mr_error *err)
{
    MRI_OWN_AS(err, r, mri_record_process(r));
    MRI_GIVEN(err, cfg);
    MRI_GIVEN(err, out);
    mr_replay_config mine = {0};
    mr_replay_result all = {0};
    mri_record_data d;
    int rc = mri_result_check(out, err);
    if (rc == MR_OK) rc = mri_settings_take(&mine, sizeof mine, cfg, "replay", err);
    if (rc == MR_OK) rc = check(&mine, err);
    if (rc == MR_OK) rc = take(r, &d, err);
    if (rc != MR_OK) return rc;
    rc = replay_all(&d, &mine, &all);
    if (rc == MR_OK) rc = replay_parts(&d, &mine, &all);
    mri_record_data_free(&d);
    if (rc != MR_OK) return mr_error_set(err, rc, "no memory for a replay");
    mri_result_give(out, &all, sizeof all);
    return MR_OK;
}

/* ---- other programs ---- */

enum { OTHERS_BATCHES = 300, OTHERS_LOOKS = 12 };
#define OTHERS_MOST 64.0

static double recorded_delay(const mri_record_data *d)
{
    double ran = 0, delayed = 0;
    for (size_t i = 0; i < d->chunks; i++) {
        ran += (double)d->chunk[i].ran_ns;
        delayed += (double)d->chunk[i].delayed_ns;
    }
    return ran + delayed > 0 ? delayed / (ran + delayed) : 0;
}

static int replayed_delay(const mri_record_data *d, const mr_replay_config *cfg, double *out)
{
    mri_replay_run run;
    const mri_replay_part part = {0, 1, mri_min_u64(batches_of(d, cfg, 1), OTHERS_BATCHES)};
    const int rc = mri_replay_part_run(d, cfg, &part, &run);
    free(run.interval_ns);
    *out = run.ran_ns + run.delayed_ns > 0 ? run.delayed_ns / (run.ran_ns + run.delayed_ns) : 0;
    return rc;
}

/* More of them delay workers more: halve the interval. */
static int find_others(const mri_record_data *d, mr_replay_config *cfg)
{
    const double wanted = recorded_delay(d);
    double low = 0, high = OTHERS_MOST, delay;
    cfg->others = 0;
    if (mri_has_quota()) return MR_OK; /* which delays workers, too: the other delays cannot be separated */
    int rc = replayed_delay(d, cfg, &delay);
    if (rc != MR_OK || delay >= wanted) return rc;
    for (int i = 0; i < OTHERS_LOOKS && rc == MR_OK; i++) {
        cfg->others = 0.5 * (low + high);
        rc = replayed_delay(d, cfg, &delay);
        if (delay < wanted) low = cfg->others;
        else high = cfg->others;
    }
    return rc;
}

int mr_replay_find_others(const mr_record *r, mr_replay_config *cfg, mr_error *err)
{
    MRI_OWN_AS(err, r, mri_record_process(r));
    MRI_GIVEN(err, cfg);
    mr_replay_config mine = {0};
    mri_record_data d;
    int rc = mri_settings_take(&mine, sizeof mine, cfg, "replay", err);
    if (rc == MR_OK) rc = check(&mine, err);
    if (rc == MR_OK) rc = take(r, &d, err);
    if (rc != MR_OK) return rc;
    rc = find_others(&d, &mine);
    mri_record_data_free(&d);
    if (rc != MR_OK) return mr_error_set(err, rc, "no memory for a replay");
    cfg->others = mine.others;
    return MR_OK;
}
