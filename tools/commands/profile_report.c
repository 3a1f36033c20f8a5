/* tools/commands/profile_report.c: the profile as text and JSON. See profile_report.h. */
#include "tools/commands/profile_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/cli/report.h"

static double ceiling(const profile_result *p)
{
    return p->loader.samples_per_s < p->trainer.samples_per_s ? p->loader.samples_per_s
                                                              : p->trainer.samples_per_s;
}

static bool same_weights(const profile_result *p)
{
    return memcmp(p->off.weights, p->on.weights, sizeof p->on.weights) == 0;
}

static void side_row(const profile_side *s)
{
    const mr_report *r = &s->report;
    char name[16] = "off";
    if (s->prefetch) snprintf(name, sizeof name, "%u", s->prefetch);
    printf("%-9s %10.0f %9.3f %9.3f %9.1f %11.1f %8.1f\n", name, r->samples_per_s, r->step_ms, r->step_ms_mad,
           r->wait_ms, r->exposed_ms, 100 * r->stall_fraction);
}

static void ceiling_row(const char *name, const measured_rate *m)
{
    printf("%-26s %10.0f samples/s (MAD %.0f)\n", name, m->samples_per_s, m->samples_per_s_mad);
}

void profile_print_text(const profile_result *p)
{
    const mr_report *on = &p->on.report;
    printf("profile  %s on %s, batch %u, seed %" PRIu64 ", %u x %s; %u workers, %s\n", p->model, p->data,
           p->batch, p->seed, p->replicas, p->device, p->workers, p->io);
    printf("         %" PRIu64 " steps of each run, the first %" PRIu64 " to warm up%s\n\n", on->steps,
           on->warmup_steps, on->simulated ? "; simulated device: loss and accuracy mean nothing" : "");
    printf("%-9s %10s %9s %9s %9s %11s %8s\n", "prefetch", "samples/s", "step ms", "MAD", "wait ms",
           "exposed ms", "stall %");
    side_row(&p->off);
    side_row(&p->on);
    printf("\nstages with prefetch off\n");
    report_stages_text(&p->off.report.stages, p->off.report.seconds);
    printf("stages with prefetch on\n");
    report_stages_text(&on->stages, on->seconds);
    putchar('\n');
    ceiling_row("loader alone", &p->loader);
    ceiling_row("trainer alone", &p->trainer);
    printf("%-26s %10.0f samples/s\n", "the slower of the two", ceiling(p));
    printf("%-26s %10.0f samples/s, %.1f %% of that; %.2f times prefetch off\n", "real data, prefetch on",
           on->samples_per_s, 100 * on->samples_per_s / ceiling(p),
           on->samples_per_s / p->off.report.samples_per_s);
    printf("\nweights  %s after both runs%s\n", same_weights(p) ? "the same bits" : "DIFFER",
           p->free_algorithms && !same_weights(p)
               ? ", as algorithms of GPUs may from run to run; --deterministic takes only those that do not"
               : "");
    printf("verdict  %s\n", on->verdict);
}

static void side_json(const profile_result *p, const profile_side *s)
{
    char hash[40];
    json_line j = json_begin(stdout, "profile_run");
    json_u64(&j, "prefetch", s->prefetch);
    json_u64(&j, "batch", p->batch);
    json_u64(&j, "replicas", p->replicas);
    json_u64(&j, "seed", p->seed);
    report_json(&j, &s->report, p->replicas);
    snprintf(hash, sizeof hash, "%016" PRIx64 "%016" PRIx64, s->weights[1], s->weights[0]);
    json_text(&j, "weights", hash);
    json_end(&j);
}

void profile_print_json(const profile_result *p)
{
    side_json(p, &p->off);
    side_json(p, &p->on);
    json_line j = json_begin(stdout, "profile");
    json_text(&j, "model", p->model);
    json_text(&j, "data", p->data);
    json_text(&j, "device", p->device);
    json_u64(&j, "replicas", p->replicas);
    json_u64(&j, "batch", p->batch);
    json_u64(&j, "seed", p->seed);
    json_real(&j, "loader_samples_per_s", p->loader.samples_per_s);
    json_real(&j, "loader_samples_per_s_mad", p->loader.samples_per_s_mad);
    json_real(&j, "trainer_samples_per_s", p->trainer.samples_per_s);
    json_real(&j, "trainer_samples_per_s_mad", p->trainer.samples_per_s_mad);
    json_real(&j, "ceiling_samples_per_s", ceiling(p));
    json_real(&j, "off_samples_per_s", p->off.report.samples_per_s);
    json_real(&j, "on_samples_per_s", p->on.report.samples_per_s);
    json_real(&j, "on_over_ceiling", p->on.report.samples_per_s / ceiling(p));
    json_real(&j, "on_over_off", p->on.report.samples_per_s / p->off.report.samples_per_s);
    json_bool(&j, "same_weights", same_weights(p));
    json_text(&j, "verdict", p->on.report.verdict);
    json_end(&j);
}
