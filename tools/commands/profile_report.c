/* tools/commands/profile_report.c: the profile as text and JSON. See profile_report.h. */
#include "tools/commands/profile_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/output.h"
#include "tools/cli/report.h"

#define WORTH_A_REMEDY 0.05 /* of the time */

static double least_of(const profile_result *p, int turn)
{
    return p->loader[turn].samples_per_s < p->trainer[turn].samples_per_s ? p->loader[turn].samples_per_s
                                                                          : p->trainer[turn].samples_per_s;
}

static int by_rate(const void *a, const void *b)
{
    const double x = ((const mr_report *)a)->samples_per_s, y = ((const mr_report *)b)->samples_per_s;
    return (x > y) - (x < y);
}

static void sum_up_side(profile_side *s)
{
    mr_report sorted[PROFILE_TURNS];
    memcpy(sorted, s->turn, sizeof sorted);
    qsort(sorted, PROFILE_TURNS, sizeof sorted[0], by_rate);
    s->report = sorted[PROFILE_TURNS / 2];
}

/* The processor computes and loads. Prefetch off, one core loads and then all compute; at best all cores are
 * at work all the time, and what loading takes of them is not there for computing. */
static double most_over_off(const profile_result *p, double off_per_s)
{
    const double off_s = 1 / off_per_s, step_s = 1 / p->trainer_alone.samples_per_s;
    const double load_s = off_s > step_s ? off_s - step_s : 0;
    return off_s / (off_s - load_s + load_s / p->cores);
}

void profile_sum_up(profile_result *p)
{
    double loader[PROFILE_TURNS], trainer[PROFILE_TURNS], least[PROFILE_TURNS], part[PROFILE_TURNS],
        gain[PROFILE_TURNS], unused;
    for (int i = 0; i < PROFILE_TURNS; i++) {
        loader[i] = p->loader[i].samples_per_s;
        trainer[i] = p->trainer[i].samples_per_s;
        least[i] = least_of(p, i);
        part[i] = p->on.turn[i].samples_per_s / least[i];
        gain[i] = p->on.turn[i].samples_per_s / p->off.turn[i].samples_per_s;
    }
    p->loader_alone.samples_per_s = mr_measure_median(loader, PROFILE_TURNS, &p->loader_alone.mad);
    p->trainer_alone.samples_per_s = mr_measure_median(trainer, PROFILE_TURNS, &p->trainer_alone.mad);
    p->ceiling.samples_per_s = mr_measure_median(least, PROFILE_TURNS, &p->ceiling.mad);
    p->on_over_ceiling = mr_measure_median(part, PROFILE_TURNS, &unused);
    p->on_over_off = mr_measure_median(gain, PROFILE_TURNS, &unused);
    sum_up_side(&p->off);
    sum_up_side(&p->on);
    if (p->cores) p->most_over_off = most_over_off(p, p->off.report.samples_per_s);
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

/* The exchange of gradients with prefetch on: time per step that backward does not hide. */
typedef struct exposed_exchange {
    double ms, late_ms, part; /* a step; of that, waiting for late processes; share of the devices' time */
} exposed_exchange;

static exposed_exchange exposed_of(const mr_report *on)
{
    const double steps = on->steps > on->warmup_steps ? (double)(on->steps - on->warmup_steps) : 1;
    return (exposed_exchange){on->network_ms / steps, on->late_ms / steps,
                              report_cause_part(on, MR_CAUSE_NETWORK)};
}

static void exchange_text(const profile_result *p)
{
    const mr_trainer_link *l = &p->link;
    const exposed_exchange e = exposed_of(&p->on.report);
    char rate[32] = "?", bytes[32];
    if (p->of.ranks < 2) return;
    if (l->bytes_per_s > 0) mri_size_text(l->bytes_per_s, rate, sizeof rate);
    printf("\nexchange of %s a step between %u ranks by %s, in %u bucket%s; network %.2f ms, %s/s\n",
           mri_size_text((double)l->bytes, bytes, sizeof bytes), p->of.ranks, l->wire, l->buckets,
           l->buckets > 1 ? "s" : "", l->latency_ms, rate);
    printf("  exposed with prefetch on %.2f ms a step, %.1f %% of the time, %.2f of them for late "
           "ranks; all sums take %.2f ms\n",
           e.ms, 100 * e.part, e.late_ms, l->sum_ms);
    if (e.part < WORTH_A_REMEDY) return;
    if (2 * e.late_ms > e.ms)
        printf("  remedy   rank %u delays the others: a faster loader or device there, or fewer programs\n",
               p->on.report.late_rank);
    else
        printf("  remedy   a larger --batch, a faster network or fewer ranks; millrace "
               "plan predicts their effect\n");
}

static void exchange_json(json_line *j, const profile_result *p)
{
    const exposed_exchange e = exposed_of(&p->on.report);
    json_u64(j, "ranks", p->of.ranks);
    if (p->of.ranks < 2) return;
    json_text(j, "wire", p->link.wire);
    report_link_json(j, &p->link);
    json_real(j, "exchange_exposed_ms", e.ms);
    json_real(j, "exchange_late_ms", e.late_ms);
    json_real(j, "exchange_exposed", e.part);
}

static void ceiling_row(const char *name, double samples_per_s, double mad)
{
    printf("%-26s %10.0f samples/s (MAD %.0f)\n", name, samples_per_s, mad);
}

/* Of what bounds it a run has no more than all: a little more is noise. */
static void part_text(const profile_result *p, char *out, size_t out_bytes)
{
    if (p->on_over_ceiling < 1) snprintf(out, out_bytes, "%.1f %% of that", 100 * p->on_over_ceiling);
    else
        snprintf(out, out_bytes, "equal to that within the noise of %.1f %%", 100 * (p->on_over_ceiling - 1));
}

/* The slow outliers. */
static void slow_text(const profile_result *p)
{
    char bytes[32];
    for (uint32_t i = 0; i < p->slow_count && i < 3 && p->slow[i].what.times >= 2; i++) {
        const profile_slow *s = &p->slow[i];
        printf("  slow sample %" PRIu64 ": %s, ", s->what.sample, shown_text(s->name));
        if (s->width) printf("%u x %u, ", s->width, s->height);
        printf("%s, %.2f ms, %.1f times the mean\n",
               mri_size_text((double)s->what.bytes, bytes, sizeof bytes), 1e-6 * (double)s->what.ns,
               s->what.times);
    }
}

void profile_print_text(const profile_result *p)
{
    const mr_report *on = &p->on.report;
    printf("profile  %s on %s, batch %u, seed %" PRIu64 ", %u x %s; %u workers, %s\n", p->of.model,
           shown_text(p->of.data), p->of.batch, p->of.seed, p->of.replicas, p->of.device, p->of.workers,
           p->of.io);
    if (p->of.ranks > 1) printf("         %u ranks; workers, devices and stages are rank 0's\n", p->of.ranks);
    printf("         %d turns of %" PRIu64 " steps of each run, the first %" PRIu64
           " of them to warm up; the turn in the middle%s\n\n",
           PROFILE_TURNS, on->steps, on->warmup_steps,
           on->simulated ? "; simulated device: loss and accuracy mean nothing" : "");
    printf("%-9s %10s %9s %9s %9s %11s %8s\n", "prefetch", "samples/s", "step ms", "MAD", "wait ms",
           "exposed ms", "stall %");
    side_row(&p->off);
    side_row(&p->on);
    char prefetch[24], part[96];
    snprintf(prefetch, sizeof prefetch, "%u", p->on.prefetch);
    const char *const names[2] = {"off", prefetch};
    const mr_report *const reports[2] = {&p->off.report, on};
    putchar('\n');
    report_causes_text(names, reports, 2);
    printf("  batch interval with prefetch on: median %.3f ms, 95 of 100 within %.3f, 99 within %.3f\n",
           on->step_ms, on->step_ms_p95, on->step_ms_p99);
    slow_text(p);
    odd_text(&p->odd);
    printf("\nstages with prefetch off\n");
    report_stages_text(&p->off.report.stages, p->off.report.seconds);
    printf("stages with prefetch on\n");
    report_stages_text(&on->stages, on->seconds);
    exchange_text(p);
    putchar('\n');
    ceiling_row("loader alone", p->loader_alone.samples_per_s, p->loader_alone.mad);
    ceiling_row("trainer alone", p->trainer_alone.samples_per_s, p->trainer_alone.mad);
    ceiling_row("the slower of the two", p->ceiling.samples_per_s, p->ceiling.mad);
    if (p->of.ranks > 1) printf("(of the slowest rank, without exchange)\n");
    part_text(p, part, sizeof part);
    printf("%-26s %10.0f samples/s, %s; %.2f times prefetch off\n", "real data, prefetch on",
           on->samples_per_s, part, p->on_over_off);
    if (p->cores)
        printf("loading and computing share the %u core%s here: prefetch can give at most about %.2f times "
               "prefetch off; on a device of its own they would not\n",
               p->cores, p->cores == 1 ? "" : "s", p->most_over_off);
    printf("\nweights  %s after both runs%s\n", same_weights(p) ? "the same bits" : "DIFFER",
           p->of.free_algorithms && !same_weights(p)
               ? ", as some algorithms of GPUs do from run to run; --deterministic takes reproducible ones"
               : "");
    printf("verdict  %s\n", on->verdict);
}

static void side_json(FILE *out, const profile_result *p, const profile_side *s)
{
    char hash[40];
    json_line j = json_begin(out, "profile_run");
    json_u64(&j, "prefetch", s->prefetch);
    json_u64(&j, "batch", p->of.batch);
    json_u64(&j, "replicas", p->of.replicas);
    json_u64(&j, "seed", p->of.seed);
    report_json(&j, &s->report, p->of.replicas);
    snprintf(hash, sizeof hash, "%016" PRIx64 "%016" PRIx64, s->weights[1], s->weights[0]);
    json_text(&j, "weights", hash);
    json_end(&j);
}

void profile_print_json(FILE *out, const profile_result *p)
{
    side_json(out, p, &p->off);
    side_json(out, p, &p->on);
    json_line j = json_begin(out, "profile");
    json_text(&j, "model", p->of.model);
    json_text(&j, "data", p->of.data);
    json_text(&j, "device", p->of.device);
    json_u64(&j, "replicas", p->of.replicas);
    json_u64(&j, "batch", p->of.batch);
    json_u64(&j, "seed", p->of.seed);
    json_u64(&j, "turns", PROFILE_TURNS);
    exchange_json(&j, p);
    json_real(&j, "loader_samples_per_s", p->loader_alone.samples_per_s);
    json_real(&j, "loader_samples_per_s_mad", p->loader_alone.mad);
    json_real(&j, "trainer_samples_per_s", p->trainer_alone.samples_per_s);
    json_real(&j, "trainer_samples_per_s_mad", p->trainer_alone.mad);
    json_real(&j, "ceiling_samples_per_s", p->ceiling.samples_per_s);
    json_real(&j, "off_samples_per_s", p->off.report.samples_per_s);
    json_real(&j, "on_samples_per_s", p->on.report.samples_per_s);
    json_real(&j, "on_over_ceiling", p->on_over_ceiling);
    json_real(&j, "on_over_off", p->on_over_off);
    json_real(&j, "most_over_off", p->cores ? p->most_over_off : NAN);
    json_array(&j, "slowest");
    for (uint32_t i = 0; i < p->slow_count; i++) {
        const profile_slow *s = &p->slow[i];
        json_object(&j, NULL);
        json_u64(&j, "sample", s->what.sample);
        json_text(&j, "name", s->name);
        json_u64(&j, "width", s->width);
        json_u64(&j, "height", s->height);
        json_u64(&j, "bytes", s->what.bytes);
        json_real(&j, "ms", 1e-6 * (double)s->what.ns);
        json_real(&j, "times_mean", s->what.times);
        json_close_object(&j);
    }
    json_close_array(&j);
    odd_json(&j, &p->odd);
    json_bool(&j, "same_weights", same_weights(p));
    json_text(&j, "verdict", p->on.report.verdict);
    json_end(&j);
}
