/* tools/commands/bench_storage.c: see bench_storage.h. The measuring is trial/storage.h; here are the unit
 * that the options ask for, from where the data are read, and the report. */
#include "tools/commands/bench_storage.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "tools/cli/exit.h"
#include "tools/cli/json.h"
#include "tools/cli/output.h"
#include "tools/trial/storage.h"

enum { FROM_BOTH, FROM_CACHE, FROM_COLD, PREFETCH = 2 };

typedef struct storage_report {
    const tool_session *s;
    const storage_unit *unit;
    bool own; /* the unit is not as published */
    bool json, cold;
    const storage_result *r;
} storage_report;

/* ---- the unit ---- */

static int unknown_unit(const storage_args *a)
{
    char known[256] = "";
    size_t at = 0;
    for (uint32_t i = 0; storage_unit_at(i) && at < sizeof known; i++)
        at += (size_t)snprintf(known + at, sizeof known - at, "%s%s on %s", i ? ", " : "",
                               storage_unit_at(i)->workload, storage_unit_at(i)->accelerator);
    say("--accelerator %s%s%s: there is no definition of it; known: %s. --batch and --step "
        "make another of one of these",
        a->accelerator, a->workload ? " --workload " : "", a->workload ? a->workload : "", known);
    return EXIT_MISUSED;
}

/* *out: as published, changed by the user's options. */
static int choose_unit(const storage_args *a, const session_args *shared, storage_unit *out, bool *own)
{
    const storage_unit *u = storage_unit_find(a->workload, a->accelerator);
    if (!u) return unknown_unit(a);
    *out = *u;
    if (shared->run.batch) out->batch = shared->run.batch;
    if (!isnan(a->step)) out->step_s = a->step;
    if (shared->run.augment) out->augment = shared->run.augment;
    *own = out->batch != u->batch || out->step_s != u->step_s;
    if (out->batch <= UINT32_MAX / MR_LOADER_MAX_PARTS) return EXIT_DONE;
    say("--batch: expected at most %u for each accelerator, found %" PRIu32, UINT32_MAX / MR_LOADER_MAX_PARTS,
        out->batch);
    return EXIT_MISUSED;
}

static int check_options(const storage_args *a, const session_args *shared, const opt_given *given)
{
    static const char *const refused[][2] = {
        {"devices", "it simulates the number of accelerators that the machine can feed"},
        {"cache", "every sample is to come from its file, in every epoch"},
        {"tail", "every batch is full"},
        {"epochs", "a run takes the number that it needs"},
        {"fields", "pictures and labels alone are delivered"},
    };
    for (size_t i = 0; i < OPT_COUNT(refused); i++)
        if (options_was_given(given, refused[i][0])) {
            say("bench storage takes no --%s: %s", refused[i][0], refused[i][1]);
            return EXIT_MISUSED;
        }
    if (shared->loader.direct && a->from != FROM_COLD) {
        say("--direct reads past the page cache: add --from cold");
        return EXIT_MISUSED;
    }
    if (shared->loader.prefetch) return EXIT_DONE;
    say("--prefetch off: bench storage needs batches made ahead; without them no accelerator is fed");
    return EXIT_MISUSED;
}

/* ---- the report ---- */

/* The fraction of the loader's reads that came from storage; NAN: unknown. */
static double from_storage(const storage_point *p)
{
    return p->read_bytes_per_s > 0 ? p->storage_bytes_per_s / p->read_bytes_per_s : NAN;
}

static const storage_point *shown_point(const storage_result *r)
{
    return r->fed.accelerators ? &r->fed : &r->more;
}

static const char *end_text(const storage_result *r)
{
    return r->end == STORAGE_RATE ? "rate" : r->end == STORAGE_MEMORY ? "memory" : "most";
}

static void cold_json(json_line *j, const storage_report *t)
{
    const double part = from_storage(shown_point(t->r));
    json_text(j, "from", t->cold ? "cold" : "cache");
    json_text(j, "cold_method", t->r->method);
    json_real(j, "from_storage", part);
    if (t->cold && !isnan(part)) json_bool(j, "cold_worked", part > 0.5);
}

static void more_json(json_line *j, const storage_result *r)
{
    if (r->end != STORAGE_RATE) return;
    json_u64(j, "more_accelerators", r->more.accelerators);
    json_real(j, "more_utilisation", r->more.busy);
    json_real(j, "more_samples_per_s", r->more.samples_per_s);
}

static void report_json(const storage_report *t)
{
    const storage_result *r = t->r;
    const storage_point *p = shown_point(r);
    const mr_source_info *info = mr_source_info_of(t->s->src);
    json_line j = json_begin(stdout, "bench");
    json_text(&j, "what", "storage");
    json_text(&j, "data", info->path);
    json_text(&j, "format", info->format);
    json_u64(&j, "samples", info->count);
    json_u64(&j, "bytes", info->total_bytes);
    json_u64(&j, "memory_bytes", mr_pages_memory_total());
    json_text(&j, "workload", t->unit->workload);
    json_text(&j, "accelerator", t->unit->accelerator);
    json_bool(&j, "as_published", !t->own);
    json_bool(&j, "verified", false);
    json_u64(&j, "batch", t->unit->batch);
    json_real(&j, "step_ms", 1e3 * t->unit->step_s);
    json_real(&j, "required_utilisation", t->unit->busy);
    cold_json(&j, t);
    json_u64(&j, "accelerators", r->fed.accelerators);
    json_real(&j, "accelerators_by_rate", r->by_rate);
    json_real(&j, "loader_samples_per_s", r->samples_per_s);
    json_real(&j, "utilisation", r->fed.accelerators ? r->fed.busy : NAN);
    more_json(&j, r);
    json_text(&j, "end", end_text(r));
    json_real(&j, "samples_per_s", p->samples_per_s);
    json_real(&j, "read_bytes_per_s", p->read_bytes_per_s);
    json_real(&j, "storage_bytes_per_s", p->storage_bytes_per_s);
    json_real(&j, "cores_used", p->cores);
    json_u64(&j, "steps", p->steps);
    json_u64(&j, "warmup_steps", p->warmup_steps);
    json_real(&j, "seconds", p->seconds);
    json_text(&j, "augment", r->augment);
    json_u64(&j, "workers", r->workers);
    json_u64(&j, "prefetch", r->prefetch);
    json_text(&j, "io", r->io);
    json_end(&j);
}

static void head_text(const tool_session *s, const storage_unit *u, bool own)
{
    char size[32], memory[32];
    const mr_source_info *info = mr_source_info_of(s->src);
    printf("storage     %s on %s%s: %" PRIu32
           " samples in %.4g ms a step, busy %.0f %% of the time or more\n",
           u->workload, u->accelerator, own ? ", changed" : "", u->batch, 1e3 * u->step_s, 100 * u->busy);
    printf("            its unit, unverified: no result of MLPerf Storage (docs/storage-benchmark.md)\n");
    printf("data        %s (%s), %" PRIu64 " samples, %s", shown_text(info->path), info->format, info->count,
           mri_size_text((double)info->total_bytes, size, sizeof size));
    if (info->total_bytes < mr_pages_memory_total())
        printf("; less than this machine's memory (%s): read from the page cache unless it is cold",
               mri_size_text((double)mr_pages_memory_total(), memory, sizeof memory));
    printf("\n");
    if (info->count < u->batch) printf("            fewer than one batch: samples repeat to fill it\n");
}

static void fed_text(const storage_result *r)
{
    if (r->fed.accelerators)
        printf("%" PRIu32 " accelerator%s fed, busy %.1f %%", r->fed.accelerators,
               r->fed.accelerators == 1 ? "" : "s", 100 * r->fed.busy);
    else if (r->end == STORAGE_RATE) printf("0 accelerators fed: one is busy %.1f %%", 100 * r->more.busy);
    if (r->fed.accelerators && r->end == STORAGE_RATE)
        printf("; %" PRIu32 " would be busy %.1f %%", r->more.accelerators, 100 * r->more.busy);
    if (r->end == STORAGE_MEMORY) printf("; no memory for the batches of more");
    if (r->end == STORAGE_MOST) printf("; a loader feeds no more devices than these");
    printf("\n            %.2f accelerators by the loader's rate alone (%.0f samples/s)\n", r->by_rate,
           r->samples_per_s);
}

static void cold_text(const storage_report *t)
{
    const double part = from_storage(shown_point(t->r));
    if (t->cold)
        printf("            %s", t->r->method[0] == 'O'
                                     ? "bypass the page cache (O_DIRECT)"
                                     : "pages dropped before and during the run (DONTNEED)");
    else printf("            files read once before");
    if (isnan(part)) printf("; what storage gave is not known (/proc/self/io)\n");
    else printf("; %.0f %% of the bytes came from storage\n", 100 * (part > 1 ? 1 : part));
    if (t->cold && part <= 0.5)
        printf("            that did not work: these figures are of the page cache "
               "(a file system in memory?)\n");
}

static void report_text(const storage_report *t)
{
    const storage_point *p = shown_point(t->r);
    printf("%-12s", t->cold ? "cold" : "page cache");
    fed_text(t->r);
    printf("            %.0f samples/s, %.1f MB/s read, %.2f cores; %" PRIu64
           " steps in %.1f s after %" PRIu64 " to warm up\n",
           p->samples_per_s, 1e-6 * p->read_bytes_per_s, p->cores, p->steps, p->seconds, p->warmup_steps);
    cold_text(t);
    printf("            augment %s; %" PRIu32 " workers, prefetch %" PRIu32 ", %s\n", t->r->augment,
           t->r->workers, t->r->prefetch, t->r->io);
    fflush(stdout);
}

/* ---- the command ---- */

static void set_loader(tool_session *s, const storage_unit *u, const session_args *shared,
                       const opt_given *given)
{
    run_args run = shared->run;
    loader_args loader = shared->loader;
    run.batch = u->batch;
    run.augment = u->augment;
    if (!options_was_given(given, "prefetch"))
        loader.prefetch = PREFETCH; /* batches of N accelerators are large */
    if (!options_was_given(given, "resident")) loader.resident_bytes = 0; /* samples come from their files */
    setup_loader(&s->loader_cfg, &shared->data_opts, &run, &loader);
    s->loader_cfg.training = true;
    s->loader_cfg.epochs = UINT64_MAX;
    s->loader_cfg.tail = MR_TAIL_PAD;
}

static int measure(tool_session *s, storage_report *t, double seconds)
{
    storage_result r;
    t->r = &r;
    const int status = storage_measure(s, t->unit, t->cold, seconds, &r);
    if (status) return status;
    if (t->json) report_json(t);
    else report_text(t);
    return EXIT_DONE;
}

/* One that does not fit into memory is never read from there. */
static bool fits_in_memory(const tool_session *s)
{
    const uint64_t room = mr_pages_memory_available();
    return !room || mr_source_info_of(s->src)->total_bytes < room / 10 * 7;
}

int bench_storage(tool_session *s, const storage_args *a, const session_args *shared, const opt_given *given,
                  double seconds)
{
    storage_unit unit;
    storage_report t = {.s = s, .unit = &unit, .json = shared->output.json};
    int status = check_options(a, shared, given);
    if (status == EXIT_DONE) status = choose_unit(a, shared, &unit, &t.own);
    if (status == EXIT_DONE) status = session_open_data(s, shared->data, &shared->data_opts, NEED_PICTURES);
    if (status) return status;
    set_loader(s, &unit, shared, given);
    status = bad_watch_open(&s->bad, s->src, &shared->run, &s->loader_cfg);
    if (status) return status;
    if (!t.json) head_text(s, &unit, t.own);
    const bool fits = fits_in_memory(s);
    if (a->from != FROM_COLD && !fits)
        say("%s: no run from the page cache, which has no room for it", mr_source_info_of(s->src)->path);
    if (a->from != FROM_COLD && fits) status = measure(s, &t, seconds);
    t.cold = true;
    if (status == EXIT_DONE && a->from != FROM_CACHE) status = measure(s, &t, seconds);
    return status;
}
