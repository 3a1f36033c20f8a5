/* tools/sets/bound.c: see bound.h. The loader and the trainer are each measured alone: neither is slowed down
 * by the other, as `profile` measures its ceilings. */
#include "tools/sets/bound.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "millrace/forms.h"
#include "tools/cli/exit.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/output.h"
#include "tools/trial/measure.h"

enum { ROUNDS = 3, BATCH = 128, STORAGE_PARTS = 2 /* of the time for a rate */ };
#define FITS 0.8 /* of the memory available: the rest is for the run */

/* ---- the loader ---- */

static int set_model(tool_session *s, const bound_args *a, run_args *run)
{
    mr_trainer_config standard;
    const device_args devices = {.devices = a->devices};
    const session_args as = {.data_opts = *a->data};
    int status = session_find_model(s, a->model);
    if (status) return status;
    if (s->model->numbers) {
        say("--model %s: this network takes numbers, and %s has pictures", a->model,
            mr_source_info_of(s->src)->path);
        return EXIT_MISUSED;
    }
    status = session_open_devices(s, &devices);
    if (status) return status;
    mr_trainer_defaults(&standard);
#define MRI_SETTING(member, kind, ...) s->rule.member = standard.member;
#include "settings/updates.rows"
    s->rule.update = s->model->update;
    s->rule.schedule = s->model->schedule;
    s->rule.label_smoothing = s->model->label_smoothing;
    session_fill_run(s, run, false);
    return input_size_choose(s, &as, a->augment != NULL, run);
}

static int set_loader(tool_session *s, const bound_args *a)
{
    run_args run = {.batch = a->batch, .augment = a->augment};
    const int status = a->model ? set_model(s, a, &run) : EXIT_DONE;
    mr_loader_config *cfg = &s->loader_cfg;
    mr_loader_defaults(cfg);
    setup_decode(&cfg->decode, a->data);
    cfg->batch = run.batch ? run.batch : BATCH;
    cfg->augment = run.augment ? run.augment : a->usual;
    cfg->training = true;
    cfg->workers = a->workers;
    cfg->epochs = UINT64_MAX;
    cfg->bad = MR_BAD_REPLACE;
    cfg->max_bad = UINT64_MAX;
    return status;
}

static int measure_supply(tool_session *s, const bound_args *a, mr_stats_bound *out)
{
    mr_error err = MR_ERROR_INIT;
    mr_form_cost cost;
    mr_rate rate;
    int status = measure_status(mr_form_cost_of(s->src, &s->loader_cfg, &interrupt_flag, &cost, &err), &err);
    if (status == EXIT_DONE) status = session_open_loader(s);
    if (status == EXIT_DONE) status = measure_loader(s, a->seconds, ROUNDS, &rate);
    if (status) return status;
    const mr_loader_info *l = mr_loader_info_of(s->loader);
    snprintf(out->augment, sizeof out->augment, "%s", s->loader_cfg.augment);
    out->workers = l->workers;
    out->batch = l->batch;
    out->decode_ms = cost.decode_ms;
    out->read_core_ms = cost.read_core_ms;
    out->loader_per_s = out->supply_per_s = rate.samples_per_s;
    out->by = cost.decode_ms >= cost.read_core_ms ? "decode" : "read";
    return EXIT_DONE;
}

/* Storage counts where the set does not stay in memory. */
static void measure_storage(const mr_source *src, const bound_args *a, mr_stats_bound *out)
{
    const mr_source_info *info = mr_source_info_of(src);
    const double available = (double)mr_pages_memory_available(), bytes = (double)info->total_bytes;
    out->fits_memory = available <= 0 || bytes < FITS * available;
    out->storage_bytes_per_s =
        out->fits_memory ? NAN : mr_pages_storage_rate(src, a->seconds / STORAGE_PARTS, &interrupt_flag);
    const double most = out->storage_bytes_per_s / (bytes / (double)info->count);
    if (!(most < out->supply_per_s)) return;
    out->supply_per_s = most;
    out->by = "storage";
}

/* ---- the step ---- */

static int measure_step(tool_session *s, const bound_args *a, mr_stats_bound *out)
{
    mr_error err = MR_ERROR_INIT;
    mr_rate rate;
    const mr_loader_info *l = mr_loader_info_of(s->loader);
    const uint32_t own = mr_source_info_of(s->src)->class_count,
                   classes = s->model->classes && own > 1 ? own : s->model->classes;
    synthetic_batch in = {.batch = l->batch,
                          .h = l->height,
                          .w = l->width,
                          .c = l->channels,
                          .classes = classes,
                          .uses_affine = l->uses_affine};
    memcpy(in.mean, l->mean, sizeof in.mean);
    memcpy(in.std, l->std, sizeof in.std);
    int status = exit_status(mr_model_build(s->model, in.h, in.w, in.c, classes, &s->net, &err), &err);
    session_close_loader(s); /* its threads would share the cores */
    if (status == EXIT_DONE) status = measure_trainer(s, &in, a->seconds, &rate, NULL, NULL);
    if (status) return status;
    out->model = s->model->name;
    snprintf(out->device, sizeof out->device, "%s", mr_device_info_of(s->devices[0])->name);
    out->step_ms = rate.step_ms;
    return EXIT_DONE;
}

static void compare_rates(mr_stats_bound *out)
{
    out->trainer_per_s = 1e3 * out->batch / out->step_ms;
    if (out->trainer_per_s < out->supply_per_s) out->by = "step";
}

int bound_measure(const mr_source *src, const bound_args *a, mr_stats_bound *out)
{
    tool_session s = {.src = (mr_source *)(uintptr_t)src, .io_reported = true};
    *out = (mr_stats_bound){.step_ms = a->step > 0 ? 1e3 * a->step : NAN, .trainer_per_s = NAN};
    int status = set_loader(&s, a);
    if (status == EXIT_DONE) status = measure_supply(&s, a, out);
    if (status == EXIT_DONE) measure_storage(src, a, out);
    if (status == EXIT_DONE && a->model) status = measure_step(&s, a, out);
    if (status == EXIT_DONE && isfinite(out->step_ms)) compare_rates(out);
    session_close_loader(&s);
    s.src = NULL; /* the caller's */
    session_close(&s);
    return status;
}
