/* tools/plan/plan_ways.c: possible changes, one at a time, and the replay's prediction for each.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tools/cli/exit.h"
#include "tools/plan/plan.h"
#include "tools/trial/convert_command.h"

#define WORTH_IT      1.1  /* times the rate of now: less is not worth a change */
#define NETWORK_LEAST 0.05 /* of the time: less is no limit */
#define NEARLY        0.95 /* of the best rate: then the simpler change is better */

/* Another way, for the caller to change; it begins with the present settings. */
static plan_way *add(plan_result *p, const char *name, const char *set)
{
    plan_way *w = &p->way[p->way_count++];
    *w = (plan_way){.cfg = p->base, .exchange = p->ranks.now};
    snprintf(w->name, sizeof w->name, "%s", name);
    snprintf(w->set, sizeof w->set, "%s", set);
    return w;
}

static void add_workers(plan_result *p, uint32_t workers)
{
    char name[64], set[64];
    snprintf(name, sizeof name, "%u worker%s", workers, workers == 1 ? "" : "s");
    snprintf(set, sizeof set, "--workers %u", workers);
    add(p, name, set)->cfg.workers = workers;
}

static void add_prefetch(plan_result *p, uint32_t prefetch)
{
    char name[64], set[64];
    snprintf(name, sizeof name, prefetch ? "prefetch %u" : "prefetch off", prefetch);
    snprintf(set, sizeof set, prefetch ? "--prefetch %u" : "--prefetch off", prefetch);
    add(p, name, set)->cfg.prefetch = prefetch;
}

/* Each gets the present batch per device. */
static void add_devices(plan_result *p, uint32_t times)
{
    char name[64], set[64];
    if ((uint64_t)times * p->devices > MR_LOADER_MAX_PARTS) return;
    snprintf(name, sizeof name, "%u devices", times * p->devices);
    snprintf(set, sizeof set, "%u times --devices and --batch", times);
    plan_way *w = add(p, name, set);
    w->cfg.devices *= times;
    w->cfg.batch *= times;
}

static void add_cores(plan_result *p, uint32_t times)
{
    char name[64], set[64];
    const uint32_t cores = (uint32_t)ceil(p->base.cores) * times;
    snprintf(name, sizeof name, "%u cores, %u workers", cores, cores);
    snprintf(set, sizeof set, "a machine with %u times the cores", times);
    plan_way *w = add(p, name, set);
    w->cfg.cores = w->cfg.workers = cores;
}

static void add_forms(plan_result *p)
{
    static const char *const sets[PLAN_FORMS] = {"convert", "convert --store coef", "convert --store raw"};
    for (int i = 0; i < PLAN_FORMS; i++) {
        if (!p->form[i].name) continue;
        plan_way *w = add(p, p->form[i].name, sets[i]);
        w->cfg.decode_times = p->form[i].decode_times;
        w->cfg.read_core_times = p->form[i].read_core_times;
        w->cfg.bytes_times = p->form[i].bytes_times;
        /* no disk answers: waiting is for the reader's own work on other reads */
        if (p->from_storage < 0.5) w->cfg.read_times = p->form[i].read_core_times / p->form[i].bytes_times;
    }
}

double plan_step_times(const plan_result *p, const plan_exchange *x)
{
    const double recorded = p->measured.step_ms;
    return recorded > 0 ? (p->ranks.alone_ms + 1e3 * x->time.exposed_s) / recorded : 1;
}

/* Each like this process, with its present share of a batch. */
static void add_ranks(plan_result *p, const plan_exchange *x)
{
    char name[64], set[64] = "", rate[32];
    if (x->ranks == 0) return;
    snprintf(name, sizeof name, x->ranks > 1 ? "%u ranks at %s" : "%u rank", x->ranks,
             plan_link_text(&x->link, rate, sizeof rate));
    if (x->ranks > 1)
        snprintf(set, sizeof set, "exchange of %.2f ms, exposed %.2f", 1e3 * x->time.sum_s,
                 1e3 * x->time.exposed_s);
    plan_way *w = add(p, name, set);
    w->exchange = *x;
    w->cfg.step_times = plan_step_times(p, x);
}

static void list_ways(plan_result *p)
{
    const uint32_t cores = (uint32_t)ceil(p->base.cores);
    add(p, "as it is", "");
    for (uint32_t n = 1; n <= 8; n *= 2) add_workers(p, n);
    if (cores != 1 && cores != 2 && cores != 4 && cores != 8) add_workers(p, cores);
    add_cores(p, 2);
    add_cores(p, 4);
    add_prefetch(p, 0);
    for (uint32_t n = 1; n <= 16; n *= 2) add_prefetch(p, n);
    if (!p->resident) add(p, "reads from memory", "--cache, more memory")->cfg.read_times = 0;
    add_forms(p);
    add(p, "twice the link", "")->cfg.copy_times /= 2;
    plan_way *w = add(p, "devices twice as fast", "");
    w->cfg.step_times -= p->ranks.alone_ms > 0 && p->measured.step_ms > 0
                             ? 0.5 * p->ranks.alone_ms / p->measured.step_ms
                             : 0.5 * w->cfg.step_times;
    for (uint32_t times = 2; times <= 8; times *= 2) add_devices(p, times);
    for (uint32_t k = 0; k < PLAN_RANKS_MOST; k++) add_ranks(p, &p->ranks.then[k]);
}

/* From one process to all; the replay takes the exchange for computing. */
static void count_ranks(plan_way *w)
{
    mr_replay_result *r = &w->result;
    const double network = w->exchange.time.exposed_s * r->samples_per_s / w->cfg.batch; /* share of time */
    if (network >= NETWORK_LEAST && network >= r->idle) r->limit = "network";
    r->samples_per_s *= w->exchange.ranks;
    r->samples_per_s_error *= w->exchange.ranks;
}

int plan_replay(const mr_record *record, plan_result *p)
{
    mr_error err = MR_ERROR_INIT;
    int rc = MR_OK;
    list_ways(p);
    for (uint32_t i = 0; i < p->way_count && rc == MR_OK; i++)
        rc = mr_replay(record, &p->way[i].cfg, &p->way[i].result, &err);
    for (uint32_t i = 0; i < p->way_count && rc == MR_OK; i++) count_ranks(&p->way[i]);
    return exit_status(rc, &err);
}

/* ---- the advice ---- */

static bool is_form(const plan_way *w) { return strncmp(w->set, "convert", 7) == 0; }

/* How much trouble it is: an option, then data made anew, the smaller the better; < 0: no command does it. */
static double trouble_of(const plan_result *p, const plan_way *w)
{
    if (strncmp(w->set, "--workers", 9) == 0 && w->cfg.workers > p->workers)
        return w->cfg.workers <= ceil(p->base.cores) ? (double)w->cfg.workers : -1;
    if (strncmp(w->set, "--prefetch", 10) == 0 && w->cfg.prefetch > p->prefetch) return w->cfg.prefetch;
    return is_form(w) ? 1e6 * (1 + w->cfg.bytes_times) : -1;
}

void plan_advise(plan_result *p, const char *src_text)
{
    double most = WORTH_IT * p->way[0].result.samples_per_s;
    p->best = 0;
    p->command[0] = '\0';
    for (uint32_t i = 1; i < p->way_count; i++)
        if (trouble_of(p, &p->way[i]) >= 0) most = fmax(most, p->way[i].result.samples_per_s);
    for (uint32_t i = 1; i < p->way_count; i++) {
        const double trouble = trouble_of(p, &p->way[i]);
        if (trouble < 0 || p->way[i].result.samples_per_s < NEARLY * most) continue;
        if (!p->best || trouble < trouble_of(p, &p->way[p->best])) p->best = i;
    }
    if (p->best && p->way[p->best].result.samples_per_s < WORTH_IT * p->way[0].result.samples_per_s)
        p->best = 0;
    if (p->best && is_form(&p->way[p->best]))
        convert_command(p->command, sizeof p->command, src_text, p->way[p->best].set + strlen("convert"));
}
