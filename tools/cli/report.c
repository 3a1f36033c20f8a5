/* tools/cli/report.c: see report.h. */
#include "tools/cli/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

const char *const report_roles[] = {"plain", "boxes", "values", "mask", NULL};

void report_table_head(bool has_val)
{
    printf("%5s %9s %7s", "epoch", "loss", "acc");
    if (has_val) printf(" %9s %7s", "val_loss", "val_acc");
    printf(" %10s %9s %9s %11s %7s\n", "samples/s", "step ms", "wait ms", "exposed ms", "stall %");
}

/* "-" where the network does not predict classes. */
static void print_part(double accuracy)
{
    if (isnan(accuracy)) printf(" %7s", "-");
    else printf(" %7.4f", accuracy);
}

void report_table_row(const mr_report *r, bool has_val)
{
    printf("%5" PRIu64 " %9.4f", r->epoch + 1, r->loss);
    print_part(r->accuracy);
    if (r->has_val) {
        printf(" %9.4f", r->val_loss);
        print_part(r->val_accuracy);
    } else if (has_val) printf(" %9s %7s", "-", "-");
    printf(" %10.0f %9.3f %9.1f %11.1f %7.1f\n", r->samples_per_s, r->step_ms, r->wait_ms, r->exposed_ms,
           100 * r->stall_fraction);
    fflush(stdout);
}

/* Of all the time that the stage's threads had, the part spent so. */
static double part_of(uint64_t ns, const mr_stage_stats *s, double seconds)
{
    const double had = seconds * 1e9 * (s->threads ? s->threads : 1);
    return had > 0 ? (double)ns / had : 0;
}

static void stage_json(json_line *j, const char *name, const mr_stage_stats *s, double seconds)
{
    json_object(j, name);
    json_u64(j, "threads", s->threads);
    json_u64(j, "items", s->items);
    json_real(j, "busy", part_of(s->busy_ns, s, seconds));
    json_real(j, "blocked_in", part_of(s->blocked_in_ns, s, seconds));
    json_real(j, "blocked_out", part_of(s->blocked_out_ns, s, seconds));
    json_real(j, "occupancy", s->occupancy);
    json_close_object(j);
}

void report_stages_json(json_line *j, const mr_loader_stats *s, double seconds)
{
    json_object(j, "stages");
    stage_json(j, "read", &s->read, seconds);
    stage_json(j, "decode", &s->decode, seconds);
    stage_json(j, "copy", &s->copy, seconds);
    json_close_object(j);
}

static void stage_text(const char *name, const mr_stage_stats *s, double seconds)
{
    printf("  %-7s %7u %10" PRIu64 " %7.1f %11.1f %12.1f %10.2f\n", name, s->threads, s->items,
           100 * part_of(s->busy_ns, s, seconds), 100 * part_of(s->blocked_in_ns, s, seconds),
           100 * part_of(s->blocked_out_ns, s, seconds), s->occupancy);
}

void report_stages_text(const mr_loader_stats *s, double seconds)
{
    printf("  %-7s %7s %10s %7s %11s %12s %10s\n", "stage", "threads", "items", "busy %", "starved %",
           "held back %", "queue fill");
    stage_text("read", &s->read, seconds);
    stage_text("decode", &s->decode, seconds);
    stage_text("copy", &s->copy, seconds);
    if (s->cache_entries)
        printf("  cache   %" PRIu64 " samples, %.1f MiB; %" PRIu64 " came from it\n", s->cache_entries,
               (double)s->cache_bytes / 1048576, s->cache_hits);
}

void report_cache_json(json_line *j, const mr_loader_stats *s)
{
    json_u64(j, "cache_hits", s->cache_hits);
    json_u64(j, "cache_entries", s->cache_entries);
    json_u64(j, "cache_bytes", s->cache_bytes);
}

static double part_of_idle(double idle, const mr_causes *c, int cause)
{
    return c->total_ns > 0 ? idle * (double)c->ns[cause] / (double)c->total_ns : 0;
}

double report_cause_part(const mr_report *r, int cause)
{
    const double network = r->exposed_ms > 0 ? r->stall_fraction * r->network_ms / r->exposed_ms : 0;
    return cause == MR_CAUSE_NETWORK ? network : part_of_idle(r->stall_fraction - network, &r->causes, cause);
}

void report_idle_json(json_line *j, const char *key, double idle, const mr_causes *causes)
{
    json_object(j, key);
    for (int i = 0; i < MR_CAUSES; i++)
        json_real(j, mr_cause_name((mr_cause)i), part_of_idle(idle, causes, i));
    json_close_object(j);
}

/* All causes of a report, as "causes". */
static void report_causes_json(json_line *j, const mr_report *r)
{
    json_object(j, "causes");
    for (int i = 0; i <= MR_CAUSE_NETWORK; i++)
        json_real(j, mr_cause_name((mr_cause)i), report_cause_part(r, i));
    json_close_object(j);
}

void report_causes_text(const char *const *names, const mr_report *const *reports, uint32_t count)
{
    printf("  %-36s", "the device waited for, % of its time");
    for (uint32_t k = 0; k < count; k++) printf(" %7s", names[k]);
    putchar('\n');
    for (int i = 0; i <= MR_CAUSE_NETWORK; i++) {
        bool some = false;
        for (uint32_t k = 0; k < count; k++) some |= report_cause_part(reports[k], i) >= 0.0005;
        if (!some) continue;
        printf("  %-36s", mr_cause_text((mr_cause)i));
        for (uint32_t k = 0; k < count; k++) printf(" %7.1f", 100 * report_cause_part(reports[k], i));
        putchar('\n');
    }
    printf("  %-36s", "all");
    for (uint32_t k = 0; k < count; k++) printf(" %7.1f", 100 * reports[k]->stall_fraction);
    putchar('\n');
}

/* Write the bins that are not empty. */
static void put_bins(json_line *j, const mr_report *r)
{
    json_array(j, "step_ms_bin_from");
    for (int k = 0; k < MR_STEP_BINS; k++)
        if (r->step_bin[k]) json_float(j, NULL, (float)(0.01 * pow(2, k / 4.0)));
    json_close_array(j);
    json_array(j, "step_ms_bin_count");
    for (int k = 0; k < MR_STEP_BINS; k++)
        if (r->step_bin[k]) json_u64(j, NULL, r->step_bin[k]);
    json_close_array(j);
}

void report_link_json(json_line *j, const mr_trainer_link *l)
{
    if (!(l->latency_ms > 0)) return;
    json_object(j, "network");
    json_real(j, "latency_ms", l->latency_ms);
    json_real(j, "bytes_per_s", l->bytes_per_s);
    json_u64(j, "gradient_bytes", l->bytes);
    json_u64(j, "bucket_bytes", l->bucket_bytes);
    json_u64(j, "buckets", l->buckets);
    json_real(j, "sum_ms", l->sum_ms);
    json_close_object(j);
}

static void put_network(json_line *j, const mr_report *r)
{
    if (!(r->network_ms > 0)) return;
    json_real(j, "network_ms", r->network_ms);
    json_real(j, "late_ms", r->late_ms);
    if (r->late_ms > 0) json_u64(j, "late_rank", r->late_rank);
}

void report_json(json_line *j, const mr_report *r, uint32_t replicas)
{
    json_u64(j, "epoch", r->epoch);
    json_u64(j, "steps", r->steps);
    json_u64(j, "warmup_steps", r->warmup_steps);
    json_u64(j, "samples", r->samples);
    json_real(j, "seconds", r->seconds);
    json_real(j, "samples_per_s", r->samples_per_s);
    json_real(j, "step_ms", r->step_ms);
    json_real(j, "step_ms_mad", r->step_ms_mad);
    json_real(j, "step_ms_p95", r->step_ms_p95);
    json_real(j, "step_ms_p99", r->step_ms_p99);
    put_bins(j, r);
    json_real(j, "wait_ms", r->wait_ms);
    json_real(j, "exposed_ms", r->exposed_ms);
    json_real(j, "stall_fraction", r->stall_fraction);
    report_causes_json(j, r);
    put_network(j, r);
    json_real(j, "loss", r->loss);
    json_real(j, "accuracy", r->accuracy);
    if (r->has_val) {
        json_real(j, "val_loss", r->val_loss);
        json_real(j, "val_accuracy", r->val_accuracy);
    }
    json_float(j, "lr", r->lr);
    if (r->loss_scale > 0) {
        json_float(j, "loss_scale", r->loss_scale);
        json_u64(j, "skipped_updates", r->skipped);
    }
    report_stages_json(j, &r->stages, r->seconds);
    json_u64(j, "bytes_read", r->stages.bytes_read);
    report_cache_json(j, &r->stages);
    json_array(j, "bytes_copied");
    for (uint32_t i = 0; i < replicas && i < MR_LOADER_MAX_PARTS; i++)
        json_u64(j, NULL, r->stages.bytes_copied[i]);
    json_close_array(j);
    json_u64(j, "bad_samples", r->stages.bad_samples);
    json_u64(j, "peak_rss_bytes", r->peak_rss_bytes);
    json_bool(j, "simulated", r->simulated);
    json_bool(j, "diverged", r->diverged);
    json_text(j, "verdict", r->verdict);
}

void report_fields_json(json_line *j, const mr_loader_info *info)
{
    if (info->field_count == 0) return;
    json_array(j, "fields");
    for (uint32_t k = 0; k < info->field_count; k++) {
        const mr_loader_field_info *f = &info->field[k];
        json_object(j, NULL);
        json_text(j, "name", f->name);
        json_text(j, "role", report_roles[f->role]);
        json_text(j, "dtype", mr_dtype_name(f->dtype));
        if (f->varies) json_u64(j, "most", f->most);
        json_close_object(j);
    }
    json_close_array(j);
}

void report_fields_text(const mr_loader_info *info)
{
    for (uint32_t k = 0; k < info->field_count; k++) {
        const mr_loader_field_info *f = &info->field[k];
        char shown[4 * MR_MAX_NAME + 1];
        printf("%s%s (%s, %s", k ? ", " : "         fields ", mr_text_shown(f->name, shown, sizeof shown),
               report_roles[f->role], mr_dtype_name(f->dtype));
        if (f->varies) printf(", at most %u", f->most);
        printf(")%s", k + 1 == info->field_count ? "\n" : "");
    }
}
