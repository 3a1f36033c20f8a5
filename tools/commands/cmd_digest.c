/* tools/commands/cmd_digest.c: `millrace digest DATA`: a hash over the batches that the loader delivers. Two
 * runs that print the same digest delivered the same samples in the same order with the same pixels: order,
 * pixels and resume are tested with it. */
#include <inttypes.h>
#include <stdio.h>

#include "tools/cli/clock.h"
#include "tools/cli/exit.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/json.h"
#include "tools/cli/output.h"
#include "tools/cli/report.h"
#include "tools/commands/commands.h"
#include "tools/facts/choose.h"
#include "tools/session/session.h"
#include "tools/session/world.h"

enum { BATCHES_AT_ONCE = 32 }; /* between looks at the Ctrl-C flag */

typedef struct digest_args {
    uint32_t parts;
    bool training;
    uint64_t start_epoch, start_step, split_at;
    rank_args rank;
    choose_args choose;
    session_args shared;
} digest_args;

typedef struct digest_run {
    const digest_args *args;
    tool_world world;
    tool_session s;
    mr_digester *digester;
    uint64_t batches, samples;
    uint64_t start_ns;
} digest_run;

/* Up to `most` batches of the loader that is open. */
static int digest_some(digest_run *r, uint64_t most)
{
    mr_error err = MR_ERROR_INIT;
    for (uint64_t taken = 0; taken < most;) {
        const uint64_t want = most - taken < BATCHES_AT_ONCE ? most - taken : BATCHES_AT_ONCE;
        uint64_t batches = 0, samples = 0;
        const int rc =
            mr_digester_run(r->digester, r->s.loader, r->s.devices, want, &batches, &samples, &err);
        r->batches += batches;
        r->samples += samples;
        taken += batches;
        if (rc) return exit_status(rc, &err);
        if (interrupt_flag) return EXIT_SIGNAL + interrupt_flag;
        if (batches < want) break;
    }
    return EXIT_DONE;
}

/* The first `split_at` batches with one loader, the rest with another that starts there. */
static int digest_all(digest_run *r)
{
    tool_session *s = &r->s;
    const uint64_t split = r->args->split_at;
    int status = session_open_loader(s);
    if (status == EXIT_DONE) status = digest_some(r, split ? split : UINT64_MAX);
    if (status || !split) return status;
    const uint64_t per_epoch = mr_loader_info_of(s->loader)->steps_per_epoch;
    const uint64_t at = s->loader_cfg.start_epoch * per_epoch + s->loader_cfg.start_step + split;
    session_close_loader(s);
    s->loader_cfg.start_epoch = at / per_epoch;
    s->loader_cfg.start_step = at % per_epoch;
    status = session_open_loader(s);
    return status ? status : digest_some(r, UINT64_MAX);
}

static void report(const digest_run *r)
{
    const mr_digest d = mr_digester_result(r->digester);
    const double seconds = seconds_since(r->start_ns);
    char text[40];
    snprintf(text, sizeof text, "%016" PRIx64 "%016" PRIx64, d.hi, d.lo);
    if (!r->args->shared.output.json) {
        printf("%s  %" PRIu64 " batches, %" PRIu64 " samples\n", text, r->batches, r->samples);
        return;
    }
    json_line j = json_begin(stdout, "digest");
    json_text(&j, "data", mr_source_info_of(r->s.src)->path);
    json_text(&j, "digest", text);
    json_u64(&j, "batches", r->batches);
    json_u64(&j, "samples", r->samples);
    json_u64(&j, "seed", r->args->shared.run.seed);
    report_fields_json(&j, mr_loader_info_of(r->s.loader));
    if (r->args->shared.run.length_window) json_u64(&j, "length_window", r->args->shared.run.length_window);
    json_real(&j, "seconds", seconds);
    json_real(&j, "samples_per_s", (double)r->samples / seconds);
    json_end(&j);
}

/* Without devices: as many parts here as --parts says, in every process. */
static void cut_batches(digest_run *r)
{
    tool_session *s = &r->s;
    const mr_world *w = r->world.world;
    s->parts.count = r->args->parts;
    s->parts.all = r->args->parts * (w ? mr_world_size(w) : 1);
    s->parts.first = w ? r->args->parts * mr_world_rank(w) : 0;
}

/* Send the digests of this process's samples to all, and receive the others'. */
static int share(void *context, mr_digest *samples, uint32_t first, uint32_t count, uint32_t all,
                 mr_error *err)
{
    return world_share_rows(context, samples, sizeof *samples, first, count, all, err);
}

static int open_and_digest(digest_run *r)
{
    const digest_args *a = r->args;
    tool_session *s = &r->s;
    run_args run = a->shared.run;
    char list[4096];
    run.bad_list = world_own_file(&r->world, run.bad_list, list, sizeof list);
    s->world = r->world.world;
    int status = session_open_data(s, a->shared.data, &a->shared.data_opts, NEED_SAMPLES);
    if (status == EXIT_DONE && r->world.first) setup_tell_part(s->src, &a->shared.data_opts);
    cut_batches(r);
    if (status == EXIT_DONE && a->shared.device.devices) status = session_open_devices(s, &a->shared.device);
    if (status == EXIT_DONE && mr_digester_create(&r->digester) != MR_OK) {
        say("out of memory");
        status = EXIT_FAILED;
    }
    setup_loader(&s->loader_cfg, &a->shared.data_opts, &run, &a->shared.loader);
    s->loader_cfg.training = a->training;
    s->loader_cfg.parts = a->parts;
    s->loader_cfg.keep_host = s->devices != NULL;
    s->loader_cfg.start_epoch = a->start_epoch;
    s->loader_cfg.start_step = a->start_step;
    if (status == EXIT_DONE) status = session_take_fields(s, &run);
    if (status == EXIT_DONE) status = bad_watch_open(&s->bad, s->src, &run, &s->loader_cfg);
    if (status == EXIT_DONE && s->world) mr_digester_share(r->digester, share, &r->world);
    return status == EXIT_DONE ? digest_all(r) : status;
}

static int run(const void *args)
{
    digest_args own = *(const digest_args *)args, *a = &own;
    digest_run r = {.args = a, .start_ns = clock_ns()};
    chooser choice;
    chooser_begin(&choice, &a->choose, &a->shared.data_opts, a->shared.output.quiet);
    int status = world_join(&r.world, &a->rank);
    choice.args.silent = !r.world.first; /* one process says it */
    if (status == EXIT_DONE) status = open_and_digest(&r);
    if (status == EXIT_DONE) report(&r);
    session_close(&r.s);
    mr_digester_destroy(r.digester);
    status = bad_watch_close(&r.s.bad, status);
    return world_leave(&r.world, status);
}

static const opt options[] = {
#define MRI_OPTIONS(...) OPT(digest_args, __VA_ARGS__),
#include "settings/commands/digest.rows"
};
static const opt_group groups[] = {
    OPT_OWN_GROUP("Digest", options),
    GROUP(RUN, digest_args, shared.run),
    GROUP(LOADER, digest_args, shared.loader),
    GROUP(DEVICE, digest_args, shared.device),
    GROUP(RANK, digest_args, rank),
    GROUP(DATA, digest_args, shared.data_opts),
    OPT_GROUP(choose_options, digest_args, choose),
    GROUP(OUTPUT, digest_args, shared.output),
};
static const opt_positional positionals[] = {
    DATA_POSITIONAL(digest_args),
};

const command command_digest = {
    .name = "digest",
    .summary = "hash the batches of one or more epochs as the loader delivers them",
    .text = "Prints 32 hex digits over sample numbers, labels, pixels and --fields of all batches, in "
            "order. The loader's options, devices and resume points change nothing in them; data, seed, "
            "order, batch and augmentation do. With --devices each replica's part is read back from its "
            "device and compared first.",
    .examples = "  millrace digest train.mrec --epochs 2 --seed 7 --workers 1\n"
                "  millrace digest train.mrec --epochs 2 --seed 7 --devices cpu:3 --split-at 100\n",
    .positionals = positionals,
    .positional_count = OPT_COUNT(positionals),
    .groups = groups,
    .group_count = OPT_COUNT(groups),
    .args_bytes = sizeof(digest_args),
    .run = run,
};
