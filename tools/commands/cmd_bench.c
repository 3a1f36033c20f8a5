/* tools/commands/cmd_bench.c: `millrace bench loader|trainer|limits|storage|exchange`: one ceiling at a time.
 *
 *   loader    how fast batches come when nothing trains
 *   trainer   how fast steps go on a batch that is on the device already
 *   limits    the machine's rates: memory copy, CRC32C, reading the data's files, plain full decode of its
 *             pictures
 *   storage   how many accelerators are fed from the data (bench_storage.h)
 *   exchange  sums over the devices of all processes (bench_exchange.h) */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tools/cli/clock.h"
#include "tools/cli/exit.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/json.h"
#include "tools/cli/output.h"
#include "tools/cli/report.h"
#include "tools/commands/bench_exchange.h"
#include "tools/commands/bench_storage.h"
#include "tools/commands/commands.h"
#include "tools/facts/choose.h"
#include "tools/session/bad_watch.h"
#include "tools/session/convolutions.h"
#include "tools/trial/measure.h"
#include "tools/watch/live.h"

typedef struct bench_args {
    const char *what;
    double seconds;
    uint32_t rounds, size;
    bool training, free_order, live, ops;
    storage_args storage;
    exchange_args exchange;
    rank_args rank;
    choose_args choose;
    opt_given given;
    session_args shared;
} bench_args;

static bool needs_data(const bench_args *a)
{
    if (a->shared.data) return true;
    say("bench %s needs DATA", a->what);
    return false;
}

/* ---- loader ---- */

static void report_loader(const bench_args *a, const tool_session *s, const mr_rate *m, double seconds)
{
    const mr_loader_info *info = mr_loader_info_of(s->loader);
    mr_loader_stats stats;
    mr_loader_stats_read(s->loader, &stats);
    if (a->shared.output.json) {
        json_line j = json_begin(stdout, "bench");
        json_text(&j, "what", "loader");
        json_text(&j, "data", mr_source_info_of(s->src)->path);
        json_u64(&j, "batch", info->batch);
        json_text(&j, "augment", info->augment);
        json_u64(&j, "prefetch", info->prefetch);
        json_u64(&j, "workers", info->workers);
        json_text(&j, "io", info->io);
        json_real(&j, "samples_per_s", m->samples_per_s);
        json_real(&j, "samples_per_s_mad", m->samples_per_s_mad);
        json_u64(&j, "rounds", m->rounds);
        json_u64(&j, "steps", m->steps);
        json_u64(&j, "warmup_steps", m->warmup_steps);
        report_stages_json(&j, &stats, seconds);
        json_u64(&j, "bytes_read", stats.bytes_read);
        report_cache_json(&j, &stats);
        json_u64(&j, "resident_bytes", info->resident_bytes);
        json_bool(&j, "checks", !s->loader_cfg.no_checks);
        json_bool(&j, "free_order", s->loader_cfg.free_order);
        report_fields_json(&j, info);
        if (info->length_window) json_u64(&j, "length_window", info->length_window);
        json_end(&j);
        return;
    }
    printf("loader   %.0f samples/s (MAD %.0f, %u rounds, %" PRIu64 " batches of %u after %" PRIu64
           " to warm up)\n",
           m->samples_per_s, m->samples_per_s_mad, m->rounds, m->steps, info->batch, m->warmup_steps);
    printf("         prefetch %u, %u workers, %u readers, %s%s%s; augment %s\n", info->prefetch,
           info->workers, info->readers, info->io, info->io_note[0] ? ": " : "", info->io_note,
           info->augment);
    report_fields_text(info);
    report_stages_text(&stats, seconds);
    if (info->resident_bytes)
        printf("  the whole set lies in memory: %.1f MiB\n", (double)info->resident_bytes / 1048576);
}

static int measure_live(const bench_args *a, tool_session *s, mr_rate *m)
{
    const char *why = a->live ? live_obstacle() : NULL;
    live_view *view = NULL;
    char title[256];
    snprintf(title, sizeof title, "millrace bench loader: %s", shown_text(mr_source_info_of(s->src)->path));
    const live_run what = {.title = title, .loader = s->loader, .src = s->src};
    if (why) say("--live: %s: there is no view", why);
    int status = a->live && !why ? live_open(&view, &what) : EXIT_DONE;
    if (status == EXIT_DONE) status = measure_loader(s, a->seconds, a->rounds, m);
    live_close(view);
    return status;
}

static int bench_loader(const bench_args *a, tool_session *s)
{
    if (!needs_data(a)) return EXIT_MISUSED;
    int status = session_open_data(s, a->shared.data, &a->shared.data_opts, NEED_SAMPLES);
    if (status == EXIT_DONE && a->shared.device.devices) status = session_open_devices(s, &a->shared.device);
    if (status) return status;
    setup_loader(&s->loader_cfg, &a->shared.data_opts, &a->shared.run, &a->shared.loader);
    s->loader_cfg.training = a->training;
    s->loader_cfg.free_order = a->free_order;
    s->loader_cfg.epochs = UINT64_MAX;
    const uint64_t start = clock_ns();
    status = session_take_fields(s, &a->shared.run);
    if (status == EXIT_DONE) status = bad_watch_open(&s->bad, s->src, &a->shared.run, &s->loader_cfg);
    if (status == EXIT_DONE) status = session_open_loader(s);
    mr_rate m;
    if (status == EXIT_DONE) status = measure_live(a, s, &m);
    if (status == EXIT_DONE) report_loader(a, s, &m, seconds_since(start));
    return status;
}

/* ---- trainer ---- */

typedef struct trainer_bench {
    const bench_args *a;
    synthetic_batch in;
    mr_rate rate;
    uint32_t passes; /* reported */
} trainer_bench;

static void report_trainer(const trainer_bench *b, const tool_session *s,
                           const convolution_count *convolutions)
{
    const bench_args *a = b->a;
    const synthetic_batch *in = &b->in;
    const mr_rate *m = &b->rate;
    if (a->shared.output.json) {
        json_line j = json_begin(stdout, "bench");
        json_text(&j, "what", "trainer");
        json_text(&j, "framework", "millrace");
        json_text(&j, "version", mr_version());
        json_text(&j, "net", s->model->id);
        json_text(&j, "model", s->model->name);
        json_u64(&j, "batch", in->batch);
        json_u64(&j, "replicas", s->device_count);
        json_real(&j, "samples_s", m->samples_per_s);
        json_real(&j, "ms", m->step_ms);
        json_real(&j, "ms_mad", m->step_ms_mad);
        json_u64(&j, "steps", m->steps);
        json_u64(&j, "warmup_steps", m->warmup_steps);
        json_text(&j, "device", mr_device_info_of(s->devices[0])->name);
        json_text(&j, "precision", group_choice("precision", a->shared.compute.precision));
        json_bool(&j, "deterministic", a->shared.compute.deterministic);
        json_bool(&j, "graph", !a->shared.compute.no_graph);
        convolutions_json(&j, convolutions, a->shared.device.convolution);
        json_end(&j);
        return;
    }
    printf("trainer  %.0f samples/s: %.3f ms a step of %u (MAD %.3f, %" PRIu64 " steps after %" PRIu64
           " to warm up)\n",
           m->samples_per_s, m->step_ms, in->batch, m->step_ms_mad, m->steps, m->warmup_steps);
    char input[48];
    if (in->h) snprintf(input, sizeof input, "%u x %u x %u", in->h, in->w, in->c);
    else snprintf(input, sizeof input, "%u numbers", in->w);
    printf("         %s (%s), %u classes, input %s; %u replicas, %s, %s\n", s->model->name, s->model->id,
           in->classes, input, s->device_count, mr_device_info_of(s->devices[0])->name,
           group_choice("precision", a->shared.compute.precision));
    convolutions_text("", convolutions, a->shared.device.convolution);
}

static void report_pass(void *context, const mr_pass_time *p)
{
    static const char *const names[] = {"forward", "data", "weights"};
    trainer_bench *b = context;
    const mr_op_desc *d = p->op->desc;
    const mr_op_window *w = &d->conv2d.window;
    const char *pass = names[p->pass], *algorithm = p->op->info->algorithm[p->pass];
    b->passes++;
    if (!b->a->shared.output.json) {
        printf("  conv %-3u %4ux%-4u %4u to %-4u %ux%u/%u  %-8s %-9s %9.3f ms %7.0f GFLOP/s\n", p->number,
               d->in.h, d->in.w, d->in.c, d->conv2d.filters, w->kernel_h, w->kernel_w, w->stride_h, pass,
               algorithm, p->ms, p->gflop_per_s);
        return;
    }
    json_line j = json_begin(stdout, "bench");
    json_text(&j, "what", "convolution");
    json_u64(&j, "convolution", p->number);
    json_u64(&j, "height", d->in.h);
    json_u64(&j, "width", d->in.w);
    json_u64(&j, "channels", d->in.c);
    json_u64(&j, "filters", d->conv2d.filters);
    json_u64(&j, "kernel", w->kernel_h);
    json_u64(&j, "stride", w->stride_h);
    json_u64(&j, "batch", p->samples);
    json_text(&j, "pass", pass);
    json_text(&j, "algorithm", algorithm);
    json_real(&j, "ms", p->ms);
    json_real(&j, "ms_mad", p->ms_mad);
    json_real(&j, "gflop_per_s", p->gflop_per_s);
    json_u64(&j, "rounds", p->rounds);
    json_end(&j);
}

static int report_steps(void *context, const tool_session *s, const mr_trainer *t)
{
    trainer_bench *b = context;
    const convolution_count convolutions = count_convolutions(t);
    report_trainer(b, s, &convolutions);
    if (!b->a->ops) return EXIT_DONE;
    mr_error err = MR_ERROR_INIT;
    mr_measure_config cfg;
    mr_measure_defaults(&cfg);
    cfg.seconds = b->a->seconds;
    cfg.stop = &interrupt_flag;
    const uint32_t share = (b->in.batch - 1) / s->device_count + 1;
    const int rc = mr_measure_passes(t, s->devices[0], share, &cfg, report_pass, b, &err);
    const int status = measure_status(rc, &err);
    if (status == EXIT_DONE && b->passes == 0)
        fprintf(b->a->shared.output.json ? stderr : stdout,
                "  no convolutions whose passes %s distinguishes\n", mr_device_info_of(s->devices[0])->name);
    return status;
}

static int bench_trainer(const bench_args *a, tool_session *s)
{
    int status = session_find_model(s, a->shared.model.model);
    if (status == EXIT_DONE) status = session_open_devices(s, &a->shared.device);
    if (status == EXIT_DONE) status = session_fill_rule(s, &a->shared.model, a->shared.model.scale);
    if (status) return status;
    const mr_model *model = s->model;
    run_args run = a->shared.run;
    session_fill_run(s, &run, a->shared.model.scale);
    const uint32_t own = model->h ? model->h : 224;
    trainer_bench b = {.a = a};
    b.in = (synthetic_batch){.batch = run.batch,
                             .h = a->size ? a->size : own,
                             .w = a->size    ? a->size
                                  : model->w ? model->w
                                             : own,
                             .c = run.channels ? run.channels
                                  : model->c   ? model->c
                                               : 3,
                             .classes = model->classes,
                             .std = {255, 255, 255, 255},
                             .seed = run.seed};
    mr_error err = MR_ERROR_INIT;
    status = exit_status(mr_model_build(model, b.in.h, b.in.w, b.in.c, b.in.classes, &s->net, &err), &err);
    if (model->numbers) b.in.h = 0;
    if (status == EXIT_DONE) status = measure_trainer(s, &b.in, a->seconds, &b.rate, report_steps, &b);
    return status;
}

/* ---- limits ---- */

static void report_limit(const bench_args *a, const mr_machine_rate *l)
{
    if (a->shared.output.json) {
        json_line j = json_begin(stdout, "bench");
        json_text(&j, "what", "limits");
        json_text(&j, "limit", l->name);
        json_text(&j, "unit", l->unit);
        json_real(&j, "value", l->value);
        json_real(&j, "mad", l->mad);
        json_u64(&j, "rounds", l->rounds);
        json_u64(&j, "threads", l->threads);
        json_end(&j);
        return;
    }
    printf("%-22s %10.2f %-10s (MAD %.2f, %u rounds, %u threads)\n", l->name, l->value, l->unit, l->mad,
           l->rounds, l->threads);
}

static int bench_limits(const bench_args *a, tool_session *s)
{
    if (!needs_data(a)) return EXIT_MISUSED;
    int status = session_open_data(s, a->shared.data, &a->shared.data_opts, NEED_PICTURES);
    mr_decode_config decode;
    setup_decode(&decode, &a->shared.data_opts);
    mr_error err = MR_ERROR_INIT;
    mr_measure_config cfg;
    mr_measure_defaults(&cfg);
    cfg.seconds = a->seconds / (MR_MACHINE_DECODE + 1);
    cfg.rounds = a->rounds;
    cfg.stop = &interrupt_flag;
    for (int at = 0; status == EXIT_DONE && at <= MR_MACHINE_DECODE; at++) {
        mr_machine_rate l;
        const int rc = mr_measure_machine((mr_machine_figure)at, s->src, &decode, a->shared.loader.workers,
                                          &cfg, &l, &err);
        status = measure_status(rc, &err);
        if (status == EXIT_DONE && l.rounds) report_limit(a, &l);
    }
    return status;
}

static int run_storage(const bench_args *a, tool_session *s)
{
    if (!needs_data(a)) return EXIT_MISUSED;
    return bench_storage(s, &a->storage, &a->shared, &a->given, a->seconds);
}

static int run(const void *args)
{
    bench_args own = *(const bench_args *)args, *a = &own;
    tool_session s = {.io_reported = true, .compute = &a->shared.compute};
    int status = EXIT_MISUSED;
    chooser choice;
    chooser_begin(&choice, &a->choose, &a->shared.data_opts, a->shared.output.quiet);
    if (a->live && strcmp(a->what, "loader") != 0)
        say("bench %s: --live shows a loader at work: bench loader has it", a->what);
    else if (choose_asked(&a->choose) &&
             (strcmp(a->what, "trainer") == 0 || strcmp(a->what, "exchange") == 0))
        say("bench %s: an option chooses samples, but it reads no data", a->what);
    else if (strcmp(a->what, "loader") == 0) status = bench_loader(a, &s);
    else if (strcmp(a->what, "trainer") == 0) status = bench_trainer(a, &s);
    else if (strcmp(a->what, "limits") == 0) status = bench_limits(a, &s);
    else if (strcmp(a->what, "storage") == 0) status = run_storage(a, &s);
    else if (strcmp(a->what, "exchange") == 0)
        status = bench_exchange(&s, &a->exchange, &a->rank, &a->shared, a->rounds);
    else say("bench: expected loader, trainer, limits, storage or exchange; found '%s'", a->what);
    session_close(&s);
    return bad_watch_close(&s.bad, status);
}

static const opt options[] = {
#define MRI_OPTIONS(...) OPT(bench_args, __VA_ARGS__),
#include "settings/commands/bench.rows"
};
static const opt storage_options[] = {
#define MRI_OPTIONS(...) OPT(storage_args, __VA_ARGS__),
#include "settings/commands/bench_storage.rows"
};
static const opt exchange_options[] = {
#define MRI_OPTIONS(...) OPT(exchange_args, __VA_ARGS__),
#include "settings/commands/bench_exchange.rows"
};
static const opt_group groups[] = {
    OPT_OWN_GROUP("Measuring", options),
    OPT_OWN_GROUP_AT("Storage", storage_options, offsetof(bench_args, storage)),
    OPT_OWN_GROUP_AT("Exchange", exchange_options, offsetof(bench_args, exchange)),
    GROUP(MODEL, bench_args, shared.model),
    GROUP(UPDATE, bench_args, shared.model),
    GROUP(RUN, bench_args, shared.run),
    GROUP(LOADER, bench_args, shared.loader),
    GROUP(DEVICE, bench_args, shared.device),
    GROUP(COMPUTE, bench_args, shared.compute),
    GROUP(RANK, bench_args, rank),
    GROUP(DATA, bench_args, shared.data_opts),
    OPT_GROUP(choose_options, bench_args, choose),
    GROUP(OUTPUT, bench_args, shared.output),
};
static const opt_positional positionals[] = {
    {"SUBJECT", offsetof(bench_args, what), true, "loader, trainer, limits, storage or exchange"},
    {"DATA", offsetof(bench_args, shared.data), false, "for loader, limits and storage: any data set"},
};

const command command_bench = {
    .name = "bench",
    .summary = "measure one upper bound: loader, trainer, limits of the machine, accelerators fed",
    .text =
        "loader: deliver batches without training. trainer: repeat training steps on one batch of noise on "
        "the device. limits: measure memory copy, CRC32C, reading the data's files, full decode of its "
        "pictures. storage: count the accelerators that the machine feeds, in the unit of MLPerf Storage, "
        "unverified, with pictures decoded; --seconds is the time of a run, the defaults are --resident 0 "
        "and --prefetch 2. exchange: sum gradients over the devices of all processes, in milliseconds.\nA "
        "real run is never faster than the slower of the first two; 'profile' compares all three.",
    .examples = "  millrace bench loader train.mrec --augment rrc224 --training --workers 2\n"
                "  millrace bench storage train.mrec --accelerator h100\n"
                "  mpirun -n 4 millrace bench exchange --sizes 64K,25M --wires tcp,shm --rounds 9\n",
    .positionals = positionals,
    .positional_count = OPT_COUNT(positionals),
    .groups = groups,
    .group_count = OPT_COUNT(groups),
    .args_bytes = sizeof(bench_args),
    .given_at = offsetof(bench_args, given),
    .run = run,
};
