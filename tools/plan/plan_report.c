/* tools/plan/plan_report.c: the plan as text and as JSON. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tools/cli/json.h"
#include "tools/cli/output.h"
#include "tools/cli/report.h"
#include "tools/plan/plan.h"

#define MODEL_ERROR      0.08 /* of the rate */
#define MODEL_ERROR_SAME 0.06
#define NETWORK_LEAST    0.05 /* of the time: less is no limit */

/* How far off a prediction may be, in samples/s: the record's variation (mr_replay_result) and the error that
 * nine of ten predictions of a change, or of the unchanged run, did not exceed in bench/planner.py
 * (docs/plan.md), combined as independent of each other. */
static double plan_error(const plan_result *p, const plan_way *way)
{
    const mr_replay_result *r = &way->result;
    return hypot(r->samples_per_s_error,
                 (way == &p->way[0] ? MODEL_ERROR_SAME : MODEL_ERROR) * r->samples_per_s);
}

static void row(const plan_result *p, const plan_way *w)
{
    const mr_replay_result *r = &w->result;
    const double now = p->way[0].result.samples_per_s;
    printf("%-26s %10.0f %8.0f %7.2f  %-8s %9.2f %9.2f  %s\n", w->name, r->samples_per_s, plan_error(p, w),
           now > 0 ? r->samples_per_s / now : 0, r->limit, r->step_ms_p50, r->step_ms_p99, w->set);
}

/* Share of the time that the measured run waited for other processes. */
static double measured_network(const plan_result *p)
{
    return 1e-3 * p->ranks.exposed_ms * p->measured.samples_per_s /
           (p->ranks.now.ranks * (double)p->base.batch);
}

static const char *measured_limit(const plan_result *p)
{
    const double network = measured_network(p);
    return network >= NETWORK_LEAST && network >= p->measured.idle ? "network" : p->measured.limit;
}

static void exchange_text(const plan_result *p)
{
    const plan_exchange *x = &p->ranks.now;
    char rate[32];
    if (x->ranks < 2) return;
    printf("exchange  between %u ranks by %s, %s and %.3f ms in this run; all sums of a step take %.2f ms\n"
           "          exposed %.2f ms a step, %.1f %% of the time, %.2f of them for "
           "late ranks; predicted %.2f\n",
           x->ranks, p->ranks.wires, plan_link_text(&x->link, rate, sizeof rate), 1e3 * x->link.latency_s,
           1e3 * x->time.sum_s, p->ranks.exposed_ms, 100 * measured_network(p), p->ranks.late_ms,
           1e3 * x->time.exposed_s);
}

void plan_print_text(const plan_result *p)
{
    const mr_record_totals *m = &p->measured;
    char prefetch[24] = "off";
    if (p->prefetch) snprintf(prefetch, sizeof prefetch, "%u", p->prefetch);
    printf("plan      %s of %s on %u x %s, batch %u; %u workers, prefetch %s, %g cores\n", p->model,
           shown_text(p->data), p->devices, p->device, p->batch, p->workers, prefetch, p->base.cores);
    printf("measured  %.0f samples/s over %.1f s; limit: %s (devices idle %.1f %% of the time); "
           "%.2f MB/s read, %.2f cores\n",
           m->samples_per_s, m->seconds, measured_limit(p), 100 * m->idle,
           1e-6 * m->samples_per_s * m->bytes_per_sample, p->cores);
    exchange_text(p);
    if (p->base.others >= 0.1)
        printf("others    needed about %.1f cores; the predictions include them\n", p->base.others);
    if (p->base.crowd_times >= 1.05)
        printf("cores     all of them at work take %.2f times as long for a sample as one alone\n",
               p->base.crowd_times);
    if (p->use.stolen >= 0.02)
        printf("host      took %.0f %% of the cores' time for other machines: the "
               "measured rates are lower for it\n",
               100 * p->use.stolen);
    printf("a sample  %.3f ms of decoding, %.1f kB; a step %.3f ms\n\n", m->decode_ms_per_sample,
           1e-3 * m->bytes_per_sample, m->step_ms);
    printf("%-26s %10s %8s %7s  %-8s %9s %9s\n", "what would be, predicted", "samples/s", "+-", "times",
           "limit", "p50 ms", "p99 ms");
    for (uint32_t i = 0; i < p->way_count; i++) row(p, &p->way[i]);
    const plan_way *best = &p->way[p->best];
    if (p->best)
        printf("\nadvice    %s%s\nbecause   %.0f samples/s are predicted, %.2f times the present "
               "rate; then the limit is %s\n",
               p->command[0] ? "" : "the same command with ",
               p->command[0] ? shown_text(p->command) : best->set, best->result.samples_per_s,
               best->result.samples_per_s / p->way[0].result.samples_per_s, best->result.limit);
    else printf("\nadvice    leave it as it is: no command gives a tenth more\n");
    printf("\n+- contains nine of ten measured values: docs/plan.md\n");
}

static void settings_json(json_line *j, const mr_replay_config *c)
{
    json_u64(j, "workers", c->workers);
    json_u64(j, "prefetch", c->prefetch);
    json_u64(j, "devices", c->devices);
    json_u64(j, "batch", c->batch);
    json_real(j, "cores", c->cores);
}

static void exchange_json(json_line *j, const plan_exchange *x)
{
    json_u64(j, "ranks", x->ranks);
    if (x->ranks < 2) return;
    json_object(j, "exchange");
    json_real(j, "latency_ms", 1e3 * x->link.latency_s);
    json_real(j, "bytes_per_s", x->link.bytes_per_s);
    json_u64(j, "gradient_bytes", x->time.bytes);
    json_u64(j, "bucket_bytes", x->time.bucket_bytes);
    json_u64(j, "buckets", x->time.buckets);
    json_real(j, "sum_ms", 1e3 * x->time.sum_s);
    json_real(j, "exposed_ms", 1e3 * x->time.exposed_s);
    json_close_object(j);
}

static void now_json(const plan_result *p)
{
    const mr_record_totals *m = &p->measured;
    json_line j = json_begin(stdout, "plan");
    json_text(&j, "data", p->data);
    json_text(&j, "model", p->model);
    json_text(&j, "device", p->device);
    json_bool(&j, "simulated", p->simulated);
    settings_json(&j, &p->base);
    json_real(&j, "measured_samples_per_s", m->samples_per_s);
    json_text(&j, "measured_limit", measured_limit(p));
    json_real(&j, "measured_idle", m->idle);
    report_idle_json(&j, "measured_causes", m->idle, &m->causes);
    exchange_json(&j, &p->ranks.now);
    if (p->ranks.now.ranks > 1) {
        json_real(&j, "measured_exposed_ms", p->ranks.exposed_ms);
        json_real(&j, "measured_late_ms", p->ranks.late_ms);
    }
    json_real(&j, "seconds", m->seconds);
    json_u64(&j, "steps", m->steps);
    json_real(&j, "cores_used", p->cores);
    json_real(&j, "read_from_storage", p->from_storage);
    json_real(&j, "read_bytes_per_s", m->samples_per_s * m->bytes_per_sample);
    json_real(&j, "bytes_per_sample", m->bytes_per_sample);
    json_real(&j, "decode_ms_per_sample", m->decode_ms_per_sample);
    json_real(&j, "step_ms", m->step_ms);
    json_real(&j, "other_threads", p->base.others);
    json_real(&j, "crowd_times", p->base.crowd_times);
    json_real(&j, "stolen", p->use.stolen);
    json_real(&j, "predicted_samples_per_s", p->way[0].result.samples_per_s);
    json_text(&j, "predicted_limit", p->way[0].result.limit);
    json_text(&j, "advice", p->best ? p->way[p->best].set : NULL);
    json_text(&j, "advice_command", p->command[0] ? p->command : NULL);
    json_real(&j, "advice_samples_per_s", p->way[p->best].result.samples_per_s);
    json_end(&j);
}

static void way_json(const plan_result *p, const plan_way *w)
{
    const mr_replay_result *r = &w->result;
    json_line j = json_begin(stdout, "plan_way");
    json_text(&j, "name", w->name);
    json_text(&j, "set", w->set);
    exchange_json(&j, &w->exchange);
    settings_json(&j, &w->cfg);
    json_real(&j, "predicted_samples_per_s", r->samples_per_s);
    json_real(&j, "predicted_samples_per_s_error", plan_error(p, w));
    json_text(&j, "predicted_limit", r->limit);
    json_real(&j, "predicted_idle", r->idle);
    report_idle_json(&j, "predicted_causes", r->idle, &r->causes);
    json_real(&j, "predicted_step_ms_p50", r->step_ms_p50);
    json_real(&j, "predicted_step_ms_p95", r->step_ms_p95);
    json_real(&j, "predicted_step_ms_p99", r->step_ms_p99);
    json_real(&j, "predicted_cores_used", r->cores);
    json_real(&j, "predicted_read_bytes_per_s", r->read_bytes_per_s);
    json_end(&j);
}

void plan_print_json(const plan_result *p)
{
    now_json(p);
    for (uint32_t i = 0; i < p->way_count; i++) way_json(p, &p->way[i]);
}
