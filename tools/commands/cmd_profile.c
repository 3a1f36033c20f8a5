/* tools/commands/cmd_profile.c: `millrace profile DATA --model M`: where the time goes.
 *
 * The same steps twice, prefetch off and on: a fresh trainer and loader each, the same seed, so the same
 * batches and the same weights at the end. The ceilings for comparison: the loader with nothing to train, the
 * trainer with nothing to load, and the slower of the two, which no real run can pass.
 *
 * All four are measured in turns, each in parts, so that a machine that is slower for a while is slower for
 * all of them; and a part begins once the batches prepared before it are used up; with them a run would
 * exceed its own ceiling.
 *
 * In several processes the runs are one run of all. Each process measures its own ceilings, without exchange,
 * and the slowest counts: no step of all can be faster. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/clock.h"
#include "tools/cli/exit.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/output.h"
#include "tools/cli/progress.h"
#include "tools/commands/commands.h"
#include "tools/commands/profile_report.h"
#include "tools/facts/choose.h"
#include "tools/session/bad_watch.h"
#include "tools/session/trace_window.h"
#include "tools/session/world.h"
#include "tools/session/world_trace.h"
#include "tools/trial/measure.h"
#include "tools/trial/timed_step.h"

typedef struct profile_args {
    const char *trace, *html;
    uint64_t steps;
    double seconds;
    trace_args tracing;
    rank_args rank;
    choose_args choose;
    session_args shared;
} profile_args;

typedef struct profile_run {
    const profile_args *args; /* of this process */
    tool_world world;
    world_clock clock;
    tool_session s;
    profile_result result;
    mr_trace *trace;
} profile_run;

/* Describe the samples that took longest, while the source is open. */
static void look_at_slow(const tool_session *s, profile_result *p)
{
    mr_slow_sample slow[MR_LOADER_SLOWEST];
    void *buffer = NULL;
    size_t room = 0;
    p->slow_count = mr_loader_slowest(s->loader, slow, MR_LOADER_SLOWEST);
    for (uint32_t i = 0; i < p->slow_count; i++) {
        profile_slow *one = &p->slow[i];
        mr_sample sample;
        mr_image_header h;
        *one = (profile_slow){.what = slow[i]};
        mr_source_sample_name(s->src, slow[i].sample, NULL, 0, one->name, sizeof one->name);
        const int image = mr_source_info_of(s->src)->image_field;
        if (image >= 0 && mr_source_read(s->src, slow[i].sample, &buffer, &room, &sample, NULL) == MR_OK &&
            mr_value_header(&sample.value[image], &h, NULL) == MR_OK) {
            one->width = h.width;
            one->height = h.height;
        }
    }
    free(buffer);
}

static uint64_t least(uint64_t x, uint64_t y) { return x < y ? x : y; }

/* One run of the same steps: a loader and a trainer of its own. */
static int run_steps(const profile_args *a, tool_session *s, uint32_t turn, uint32_t prefetch,
                     mr_trace *trace, profile_result *p)
{
    mr_error err = MR_ERROR_INIT;
    mr_fit_config cfg;
    profile_side *out = prefetch ? &p->on : &p->off;
    s->loader_cfg.prefetch = prefetch;
    s->trace = trace;
    int status = session_open_loader(s);
    if (status == EXIT_DONE) status = session_open_network(s, 1, false);
    if (status == EXIT_DONE) {
        const mr_loader_info *info = mr_loader_info_of(s->loader);
        mr_fit_defaults(&cfg);
        cfg.epochs = 1;
        cfg.warmup_steps += a->shared.loader.prefetch; /* batches prepared before the first step */
        cfg.max_steps =
            least((a->steps + PROFILE_TURNS - 1) / PROFILE_TURNS + cfg.warmup_steps, info->steps_per_epoch);
        cfg.stop = &interrupt_flag;
        out->prefetch = info->prefetch;
        status = exit_status(mr_fit(s->trainer, s->loader, &cfg, &out->turn[turn], &err), &err);
    }
    if (status == EXIT_DONE)
        status = exit_status(mr_trainer_weights_hash(s->trainer, 0, &out->weights[0], &out->weights[1], &err),
                             &err);
    if (status == EXIT_DONE) mr_trainer_link_read(s->trainer, &p->link);
    if (status == EXIT_DONE && prefetch) look_at_slow(s, p);
    if (status == EXIT_DONE && prefetch) odd_take(&p->odd, s);
    session_close_trainer(s);
    session_close_loader(s);
    s->trace = NULL;
    return status;
}

static int loader_ceiling(const profile_args *a, tool_session *s, mr_rate *out)
{
    s->loader_cfg.prefetch = a->shared.loader.prefetch;
    s->loader_cfg.epochs = UINT64_MAX;
    int status = session_open_loader(s);
    if (status == EXIT_DONE) status = measure_loader(s, a->seconds / PROFILE_TURNS, 3, out);
    session_close_loader(s);
    return status ? status : measure_slowest(s, out);
}

static int trainer_ceiling(const profile_args *a, tool_session *s, const profile_result *p, mr_rate *out)
{
    synthetic_batch in = {.batch = measure_own_batch(s, p->of.batch),
                          .h = p->of.h,
                          .w = p->of.w,
                          .c = p->of.c,
                          .classes = mr_net_class_count(s->net),
                          .uses_affine = p->of.uses_affine,
                          .seed = s->loader_cfg.seed};
    memcpy(in.mean, p->of.mean, sizeof in.mean);
    memcpy(in.std, p->of.std, sizeof in.std);
    const int status = measure_trainer(s, &in, a->seconds / PROFILE_TURNS, out, NULL, NULL);
    return status ? status : measure_slowest(s, out);
}

/* What of the loader's settings the report needs, before any of the loaders is gone. */
static int read_shape(tool_session *s, profile_result *p)
{
    int status = session_open_loader(s);
    if (status) return status;
    const mr_loader_info *info = mr_loader_info_of(s->loader);
    p->of.batch = info->batch;
    p->of.h = info->height;
    p->of.w = s->model->numbers ? info->field[0].most : info->width;
    p->of.c = info->channels;
    p->of.uses_affine = info->uses_affine;
    memcpy(p->of.mean, info->mean, sizeof p->of.mean);
    memcpy(p->of.std, info->std, sizeof p->of.std);
    p->of.workers = info->workers;
    snprintf(p->of.io, sizeof p->of.io, "%s", info->io);
    status = timed_step_net(s);
    session_close_loader(s);
    return status;
}

static int open_run(profile_run *r)
{
    const profile_args *a = r->args;
    tool_session *s = &r->s;
    profile_result *p = &r->result;
    run_args run;
    char list[4096];
    s->world = r->world.world;
    int status = timed_step_or_model(s, &a->shared, &run);
    if (status) return status;
    run.epochs = 1;
    run.bad_list = world_own_file(&r->world, run.bad_list, list, sizeof list);
    status = session_set_loader(s, &a->shared, &run, true, 0);
    p->of.data = mr_source_info_of(s->src)->path;
    p->of.model = s->model->name;
    p->of.ranks = s->world ? mr_world_size(s->world) : 1;
    p->of.replicas = s->device_count;
    p->of.device = mr_device_info_of(s->devices[0])->name;
    if (strcmp(mr_device_info_of(s->devices[0])->kind, "cpu") == 0) p->cores = core_count();
    p->of.free_algorithms =
        strcmp(mr_device_info_of(s->devices[0])->kind, "cuda") == 0 && !s->compute->deterministic;
    p->of.seed = run.seed;
    return status ? status : read_shape(s, p);
}

static int measure_turn(profile_run *r, uint32_t turn, mr_trace *trace, progress_bar *bar)
{
    const profile_args *a = r->args;
    tool_session *s = &r->s;
    profile_result *p = &r->result;
    const uint32_t done = 4 * turn, all = 4 * PROFILE_TURNS;
    int status = run_steps(a, s, turn, 0, NULL, p);
    progress_show(bar, done + 1, all, "prefetch off");
    if (status == EXIT_DONE) status = loader_ceiling(a, s, &p->loader[turn]);
    progress_show(bar, done + 2, all, "loader alone");
    if (status == EXIT_DONE) status = run_steps(a, s, turn, a->shared.loader.prefetch, trace, p);
    progress_show(bar, done + 3, all, "prefetch on");
    if (status == EXIT_DONE) status = trainer_ceiling(a, s, p, &p->trainer[turn]);
    progress_show(bar, done + 4, all, "trainer alone");
    return status;
}

static int measure_all(profile_run *r)
{
    progress_bar bar;
    int status = EXIT_DONE;
    progress_start(&bar, "profile", "parts", r->args->shared.output.quiet);
    bar.untimed = true;
    for (uint32_t turn = 0; status == EXIT_DONE && turn < PROFILE_TURNS; turn++)
        status = measure_turn(r, turn, turn + 1 == PROFILE_TURNS ? r->trace : NULL, &bar);
    progress_end(&bar);
    if (status == EXIT_DONE) profile_sum_up(&r->result);
    return status;
}

static int write_files(profile_run *r)
{
    mr_error err = MR_ERROR_INIT;
    const profile_args *a = r->args;
    const int status = r->clock.used ? world_write_trace(&r->clock, &r->world, r->trace, a->trace)
                                     : setup_write_trace(r->trace, a->trace);
    if (status || !a->html) return status;
    return exit_status(profile_write_html(&r->result, r->trace, a->html, &err), &err);
}

/* Files and messages are the first process's. */
static const profile_args *own_args(const profile_args *a, const tool_world *w, profile_args *buf)
{
    if (w->first) return a;
    *buf = *a;
    buf->trace = buf->html = NULL;
    buf->shared.output.quiet = true;
    return buf;
}

static int profile(profile_run *r)
{
    const profile_args *a = r->args;
    int status = world_clock_begin(&r->clock, &r->world, a->trace != NULL);
    if (status == EXIT_DONE) status = setup_output("trace", a->trace);
    if (status == EXIT_DONE) status = setup_output("html", a->html);
    if (status) return status;
    status = trace_window_open(&r->trace, &a->tracing, a->trace, a->html || r->clock.used,
                               "--trace FILE or --html FILE");
    if (status == EXIT_DONE) status = open_run(r);
    if (status == EXIT_DONE) status = setup_not_input("trace", a->trace, r->s.src);
    if (status == EXIT_DONE) status = setup_not_input("html", a->html, r->s.src);
    if (status == EXIT_DONE) status = measure_all(r);
    if (status) return status;
    if (a->shared.output.json) profile_print_json(stdout, &r->result);
    else profile_print_text(&r->result);
    status = write_files(r);
    if (r->world.first)
        trace_window_tell(&a->tracing, r->trace, 1, r->result.on.turn[PROFILE_TURNS - 1].steps);
    return status;
}

static int run(const void *args)
{
    profile_args given = *(const profile_args *)args, *a = &given, own;
    static profile_run r; /* one command a process, and too large for a stack frame */
    chooser choice;
    chooser_begin(&choice, &a->choose, &a->shared.data_opts, a->shared.output.quiet);
    r.s.compute = &a->shared.compute;
    if (a->shared.loader.prefetch == 0) {
        say("--prefetch: profile compares off with on; give the number of batches for on");
        return EXIT_MISUSED;
    }
    int status = world_join(&r.world, &a->rank);
    choice.args.silent = !r.world.first; /* one process says it */
    r.args = own_args(a, &r.world, &own);
    if (status == EXIT_DONE) status = profile(&r);
    session_close(&r.s);
    mr_trace_destroy(r.trace);
    return world_leave(&r.world, bad_watch_close(&r.s.bad, status));
}

static const opt options[] = {
#define MRI_OPTIONS(...) OPT(profile_args, __VA_ARGS__),
#include "settings/commands/profile.rows"
};
static const opt_group groups[] = {
    OPT_OWN_GROUP("Profile", options),
    GROUP(TRACE, profile_args, tracing),
    GROUP(MODEL, profile_args, shared.model),
    GROUP(UPDATE, profile_args, shared.model),
    GROUP(RANK, profile_args, rank),
    OPT_GROUP(choose_options, profile_args, choose),
    NETWORK_GROUPS(profile_args),
};
static const opt_positional positionals[] = {
    DATA_POSITIONAL(profile_args),
};

const command command_profile = {
    .name = "profile",
    .summary = "train on the same batches with prefetch off and on, and find the limit",
    .text = "Trains the same steps with prefetch off and on, and measures the loader alone and the trainer "
            "alone, in turns. Prints the stall table, the causes of the device's waits, the state of each "
            "stage of the loader, the upper bounds, the real run's share of them, and a verdict. Simulated "
            "devices need no model. Several processes, started by a launcher, form one run; then it also "
            "prints the time per step that the exchange of gradients adds.",
    .examples =
        "  millrace profile train.mrec --model cifar-cnn --steps 100\n"
        "  millrace profile train.mrec --model cifar-cnn --devices sim:8,step=3ms --trace trace.json\n"
        "  millrace profile photos --augment rrc224 --devices sim:1,step=20ms\n",
    .positionals = positionals,
    .positional_count = OPT_COUNT(positionals),
    .groups = groups,
    .group_count = OPT_COUNT(groups),
    .args_bytes = sizeof(profile_args),
    .run = run,
};
