/* tools/commands/cmd_train.c: `millrace train DATA --model M`. The work is mr_fit(); this file has the
 * options, the output, the live view and the verdict. tools/training/ opens the run. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli/clock.h"
#include "tools/cli/exit.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/json.h"
#include "tools/cli/output.h"
#include "tools/cli/report.h"
#include "tools/commands/commands.h"
#include "tools/session/odd_list.h"
#include "tools/training/train_crew.h"
#include "tools/training/training.h"
#include "tools/watch/step_line.h"

/* ---- lines of the output ---- */

static void put_header(const train_run *r)
{
    const train_header h = {.s = &r->s,
                            .val = r->val.src,
                            .run = &r->run,
                            .convolution = r->shared.device.convolution,
                            .world = &r->world,
                            .from = r->origin.resumed ? r->origin.from : NULL,
                            .begin = &r->origin.begin,
                            .frozen = &r->frozen,
                            .start_epoch = r->origin.start.epoch,
                            .start_step = r->origin.start.step};
    if (r->args->shared.output.json) train_header_json(&h);
    else train_header_text(&h);
}

/* Steps of the run at which this world begins. */
static uint64_t begins_at(const train_run *r)
{
    return r->origin.start.epoch * mr_loader_info_of(r->s.loader)->steps_per_epoch + r->origin.start.step;
}

/* In place of a header: who goes on, and from where. */
static void put_world(const train_run *r)
{
    const elastic *e = r->elastic;
    const uint32_t size = r->world.at.size;
    const uint64_t begin = begins_at(r), again = r->reached > begin ? r->reached - begin : 0;
    const double seconds = e->left_ns ? seconds_since(e->left_ns) : 0;
    if (r->args->shared.output.json) {
        json_line j = json_begin(stdout, "world");
        json_u64(&j, "ranks", size);
        json_u64(&j, "world", e->worlds);
        json_text(&j, "why", e->why[0] ? e->why : NULL);
        json_u64(&j, "updates", r->origin.resumed ? r->origin.start.updates : 0);
        json_text(&j, "from", r->origin.resumed ? r->origin.from : NULL);
        json_u64(&j, "steps_again", again);
        json_real(&j, "seconds", seconds);
        json_end(&j);
        return;
    }
    printf("world    %u: %u rank%s%s%s, from step %" PRIu64 ", %" PRIu64 " step%s done again, after %.1f s\n",
           e->worlds, size, size == 1 ? "" : "s", e->why[0] ? ", " : "", e->why,
           r->origin.resumed ? r->origin.start.updates : 0, again, again == 1 ? "" : "s", seconds);
}

static void on_step(void *context, uint64_t epoch, uint64_t step, uint64_t steps_per_epoch,
                    double samples_per_s)
{
    train_run *r = context;
    char note[192];
    const mr_step_report *newest = r->view.newest.steps ? &r->view.newest : NULL;
    elastic_look(r->elastic);
    r->reports.last_step = epoch * steps_per_epoch + step + 1;
    if (!r->reports.first_step) r->reports.first_step = r->reports.last_step;
    step_note(newest, newest ? seconds_since(r->view.newest_ns) : 0, epoch, r->run.epochs, samples_per_s,
              note, sizeof note);
    if (!r->view.wanted)
        progress_show(&r->bar, epoch * steps_per_epoch + step, r->run.epochs * steps_per_epoch, note);
    live_progress(r->view.live, epoch, step + 1, steps_per_epoch);
    mr_logger_progress(r->logger, epoch, step + 1, steps_per_epoch);
}

static void on_step_report(void *context, const mr_step_report *report)
{
    train_run *r = context;
    r->view.newest = *report;
    r->view.newest_ns = clock_ns();
    mr_logger_step(r->logger, report);
    live_step(r->view.live, report);
    if (!report->due || !r->args->shared.output.json) return;
    progress_hold();
    step_json(report);
    progress_release();
}

static void on_epoch(void *context, const mr_report *report)
{
    train_run *r = context;
    r->reports.epochs++;
    r->reports.last = report->epoch;
    mr_logger_epoch(r->logger, report);
    progress_hold();
    if (r->args->shared.output.json) {
        json_line j = json_begin(stdout, "epoch");
        json_u64(&j, "batch", mr_loader_info_of(r->s.loader)->batch);
        json_u64(&j, "replicas", session_replicas(&r->s));
        json_u64(&j, "seed", r->run.seed);
        report_json(&j, report, session_replicas(&r->s));
        json_end(&j);
    } else {
        report_table_row(report, r->val.loader != NULL);
    }
    progress_release();
}

static void on_eval(void *context, const mr_eval_report *report)
{
    train_run *r = context;
    mr_logger_eval(r->logger, report);
    progress_hold();
    if (r->args->shared.output.json) goal_eval_json(report);
    else goal_eval_text(report);
    progress_release();
}

static void on_message(void *context, const char *text)
{
    const train_run *r = context;
    if (r->world.first) say("%s", text); /* of the run, not of a process */
}

static int footer(const train_run *r, const mr_report *last, bool whole)
{
    mr_error err = MR_ERROR_INIT;
    uint64_t low = 0, high = 0;
    char hash[40];
    odd_list odd;
    odd_take(&odd, &r->s);
    if (mr_trainer_weights_hash(r->s.trainer, 0, &low, &high, &err) != MR_OK)
        return exit_status(err.code, &err);
    snprintf(hash, sizeof hash, "%016" PRIx64 "%016" PRIx64, high, low);
    double stale = 0;
    uint64_t stale_most = 0;
    const uint64_t gradients = mr_trainer_staleness(r->s.trainer, &stale, &stale_most);
    if (r->args->shared.output.json) {
        json_line j = json_begin(stdout, "train");
        json_bool(&j, "complete", whole);
        json_u64(&j, "epochs", r->reports.epochs);
        json_real(&j, "total_seconds", seconds_since(r->reports.start_ns));
        json_text(&j, "weights", hash);
        if (r->s.crew) json_u64(&j, "gradients", gradients);
        if (r->s.crew) json_real(&j, "staleness", stale);
        if (r->s.crew) json_u64(&j, "staleness_most", stale_most);
        report_json(&j, last, session_replicas(&r->s));
        goal_json(&j, r->s.trainer);
        odd_json(&j, &odd);
        rank_list_json(&j, &r->s);
        json_u64(&j, "bad_met", r->s.bad.count);
        json_end(&j);
        return EXIT_DONE;
    }
    goal_text(r->s.trainer);
    odd_text(&odd);
    rank_list_text(&r->s);
    if (r->s.crew)
        printf("servers  received %" PRIu64 " gradients, %.2f updates old on average, at most %" PRIu64 "\n",
               gradients, stale, stale_most);
    if (last->steps) printf("verdict  %s\n", last->verdict);
    printf("weights  %s after %.1f s%s\n", hash, seconds_since(r->reports.start_ns),
           last->simulated ? " (simulated: loss and accuracy mean nothing)" : "");
    return EXIT_DONE;
}

/* ---- the live view ---- */

/* Before the loader is opened, which fills the record that the view needs. */
static int prepare_live(train_run *r)
{
    const char *why = live_obstacle();
    if (!r->args->watch.live) return EXIT_DONE;
    if (r->args->shared.output.quiet) {
        say("--live and --quiet contradict each other: one shows how far the run is, the other does not");
        return EXIT_MISUSED;
    }
    if (why) {
        say("--live: %s: the usual progress is shown instead", why);
        return EXIT_DONE;
    }
    r->view.wanted = true;
    return mr_record_create(&r->view.record, 1) == MR_OK ? EXIT_DONE : exit_no_memory("the live view");
}

/* The view, or the bar. */
static int start_showing(train_run *r)
{
    if (!r->view.wanted) {
        progress_start(&r->bar, "train", "steps", r->args->shared.output.quiet);
        r->bar.untimed = true; /* the note has it */
        return EXIT_DONE;
    }
    snprintf(r->view.title, sizeof r->view.title, "millrace train: %s on %s", r->s.model->name,
             shown_text(mr_source_info_of(r->s.src)->path));
    const live_run what = {.title = r->view.title,
                           .loader = r->s.loader,
                           .val = r->val.loader,
                           .src = r->s.src,
                           .record = r->view.record,
                           .devices = session_replicas(&r->s),
                           .epochs = r->run.epochs};
    return live_open(&r->view.live, &what);
}

static void stop_showing(train_run *r)
{
    live_close(r->view.live);
    r->view.live = NULL;
    progress_end(&r->bar);
}

/* ---- running ---- */

/* Steps from where the first world began to where this one begins. A world that goes back to an earlier state
 * counts from there, so that --max-steps ends at the same step whoever is lost on the way. */
static uint64_t steps_before(const train_run *r)
{
    const elastic *e = r->elastic;
    const uint64_t each = mr_loader_info_of(r->s.loader)->steps_per_epoch;
    if (e->worlds <= 1) return 0;
    return (r->origin.start.epoch - e->begun_epoch) * each + r->origin.start.step - e->begun_step;
}

static int fit(train_run *r)
{
    const train_args *a = r->args;
    mr_error err = MR_ERROR_INIT;
    mr_fit_config cfg;
    mr_report last = {0};
    mr_fit_defaults(&cfg);
    cfg.epochs = r->run.epochs;
    cfg.val = r->val.loader;
#define MRI_SETTING(member, ...) cfg.member = a->member;
#include "settings/training.rows"
#define MRI_SETTING(member, ...) cfg.member = a->goal.member;
#include "settings/goal.rows"
#define MRI_SETTING(member, ...) cfg.member = a->watch.member;
#include "settings/reports.rows"
    cfg.patience = r->patience;
    cfg.stop_at_accuracy = r->goal.accuracy;
    cfg.eval_at = r->goal.eval_at;
    cfg.eval_at_count = r->goal.eval_at_count;
    cfg.on_eval = on_eval;
    cfg.steps_before = steps_before(r);
    cfg.stop = &interrupt_flag;
    cfg.callbacks = (mr_callbacks){r, on_step, on_epoch, on_message};
    cfg.data = mr_source_info_of(r->s.src);
    cfg.folder = r->folder;
    cfg.replace = a->force && !(r->elastic->worlds > 1 && r->origin.resumed);
    cfg.snapshot = r->elastic->snapshot;
    cfg.on_step = on_step_report;
    if (r->origin.complete && r->world.first)
        say("%s: all %" PRIu64 " epochs are done; a larger --epochs goes on", r->origin.from, r->run.epochs);
    else if (r->elastic->worlds > 1) put_world(r);
    else put_header(r);
    fflush(stdout);
    r->reports.start_ns = clock_ns();
    const int shown = start_showing(r);
    if (shown) return shown;
    const int rc = mr_fit(r->s.trainer, r->s.loader, &cfg, &last, &err);
    stop_showing(r);
    r->elastic->reached = r->reports.last_step ? r->reports.last_step : begins_at(r);
    int regroup;
    if (rc == MR_ECANCELED && elastic_takes_stop(r->elastic, &r->world, &regroup)) return regroup;
    if (r->world.first) tune_end(&r->tune, &r->s, &a->tune);
    const bool part_reported = r->reports.epochs && r->reports.last == last.epoch;
    if (last.steps && !part_reported && (rc == MR_OK || rc == MR_ECANCELED))
        on_epoch(r, &last); /* an epoch that was cut short */
    int printed = rc == MR_OK || rc == MR_ECANCELED ? footer(r, &last, rc == MR_OK) : EXIT_DONE;
    if (rc == MR_EEXIST)
        say("--force moves other runs' files to a folder in %s (old-1, ...)", a->checkpoint_dir);
    if (rc) {
        const int status = exit_status(rc, &err);
        objective_explain(&r->s.objective, r->s.src, &err);
        return status;
    }
    if (!last.diverged || last.simulated) return printed;
    say("the run has diverged: its last loss is not finite, or a thousand times the first; try a lower --lr");
    return EXIT_FAILED;
}

/* Two files of one name would be one over the other. */
static int check_names(const train_args *a)
{
    if (!a->trace || !a->watch.csv || strcmp(a->trace, a->watch.csv) != 0) return EXIT_DONE;
    say("--trace and --csv both name %s: choose another name for one of them", a->trace);
    return EXIT_MISUSED;
}

/* Before the first step. */
static int open_watch(train_run *r)
{
    mr_logger_config what;
    mr_logger_defaults(&what);
    what.loader = r->s.loader;
    what.src = r->s.src;
    what.val_src = r->val.src;
    what.model = r->s.model->name;
    what.data = mr_source_info_of(r->s.src)->path;
    what.device = mr_device_info_of(r->s.devices[0])->name;
    what.replicas = session_replicas(&r->s);
    what.epochs = r->run.epochs;
    what.updates = r->origin.resumed ? r->origin.start.updates : 0;
    what.resume = r->args->resume || r->elastic->worlds > 1;
    return watch_open(&r->logger, &r->args->watch, &what);
}

/* Of all processes when they have all come to the end, else of this one. */
static int write_trace(train_run *r, const char *path, int status)
{
    const bool together =
        r->clock.used && (status == EXIT_DONE || status == EXIT_BAD_SAMPLES || status >= EXIT_SIGNAL);
    if (!r->s.trace) return EXIT_DONE;
    if (together && world_write_trace(&r->clock, &r->world, r->s.trace, path) == EXIT_DONE) return EXIT_DONE;
    const int written = setup_write_trace(r->s.trace, path);
    if (!r->clock.used || !path || written != EXIT_DONE) return written;
    say("%s: of rank 0 alone: the others were not there at the end", path);
    return together ? EXIT_FAILED : EXIT_DONE;
}

/* In the world that is open, to the end of the run or of that world. */
static int train(train_run *r, bool again)
{
    const train_args *a = r->args;
    train_args first_only;
    int status = world_clock_begin(&r->clock, &r->world, a->trace != NULL);
    if (status) return status;
    if (!r->world.first) { /* files and views are the first one's */
        first_only = *a;
        first_only.trace = NULL;
        first_only.watch.csv = first_only.watch.tensorboard = first_only.watch.metrics = NULL;
        first_only.watch.live = false;
        first_only.shared.output.quiet = true;
        r->shared.output.quiet = true;
        a = r->args = &first_only;
    } else if (again && a->checkpoint_dir) { /* the run continues from the checkpoints of the world before */
        first_only = *a;
        first_only.resume = true;
        a = r->args = &first_only;
    }
    status = setup_output("trace", a->trace);
    if (status == EXIT_DONE) status = goal_points(&a->goal, r->goal.eval_at, &r->goal.eval_at_count);
    if (status == EXIT_DONE) status = check_names(a);
    if (status == EXIT_DONE) status = prepare_live(r);
    if (status) return status;
    status = trace_window_open(&r->s.trace, &a->tracing, a->trace, r->clock.used, "--trace FILE");
    if (status == EXIT_DONE) status = training_open(r);
    if (status == EXIT_DONE) status = setup_not_input("trace", a->trace, r->s.src);
    if (status == EXIT_DONE) status = setup_not_input("trace", a->trace, r->val.src);
    if (status == EXIT_DONE) status = training_take_folder(r);
    const bool may_write = status == EXIT_DONE; /* where another run is, its trace is, too */
    if (status == EXIT_DONE) status = open_watch(r);
    if (status == EXIT_DONE) status = fit(r);
    status = watch_close(r->logger, status);
    session_close_trainer(&r->s);
    r->elastic->lost_folder = r->folder && mr_run_folder_was_lost(r->folder);
    mr_run_folder_close(r->folder);
    mr_loader_close(r->val.loader);
    mr_source_close(r->val.src);
    session_close(&r->s);
    mr_budget_destroy(r->budget);
    const int written = may_write ? write_trace(r, a->trace, status) : EXIT_DONE;
    if (status == EXIT_DONE) status = written;
    if (may_write && r->world.first)
        trace_window_tell(&a->tracing, r->s.trace, r->reports.first_step, r->reports.last_step);
    mr_trace_destroy(r->s.trace);
    mr_record_destroy(r->view.record);
    status = bad_watch_close(&r->s.bad, status);
    status = bad_watch_close(&r->val.bad, status);
    r->args = NULL; /* was here */
    return status;
}

static void begin_world(train_run *r, const train_args *a, elastic *e)
{
    *r = (train_run){.args = a,
                     .shared = a->shared,
                     .patience = a->patience,
                     .goal.accuracy = a->goal.stop_at_accuracy,
                     .elastic = e,
                     .s.io_reported = true,
                     .s.compute = &a->shared.compute};
    r->origin.point = (resume_point){.from = &r->origin.start, .given = &a->given, .override = a->override};
    exit_code = MR_OK;
}

static int run_alone(const train_args *a, elastic *e)
{
    train_run r;
    begin_world(&r, a, e);
    int status = world_join(&r.world, &a->rank);
    if (status) return status;
    status = crew_agree(&r.world, a->shared.model.sync);
    return world_leave(&r.world, status ? status : train(&r, false));
}

/* Some of the processes serve parameters to the others. */
static int run_served(const train_args *a, elastic *e)
{
    train_run r;
    bool served = false;
    begin_world(&r, a, e);
    int status = world_join(&r.world, &a->rank);
    if (status) return status;
    status = crew_agree(&r.world, a->shared.model.sync);
    if (status == EXIT_DONE) status = crew_join(&r.s.crew, &r.world, &a->rank, a->elastic.servers, &served);
    if (served) return status;
    mr_crew *crew = r.s.crew;
    status = world_leave(&r.world, status ? status : train(&r, false));
    mr_crew_close(crew);
    return status;
}

/* World after world, until one of them comes to the end. */
static int run_elastic(const train_args *a, elastic *e)
{
    int status, bad = EXIT_DONE;
    for (bool again = false;;) {
        train_run r;
        begin_world(&r, a, e);
        status = elastic_join(e, &r.world);
        if (status == EXIT_DONE) status = train(&r, again);
        if (status == EXIT_BAD_SAMPLES) bad = status;
        again = elastic_goes_on(e, &r.world, status);
        if (again) continue;
        status = elastic_leave(&r.world, status);
        return status == EXIT_DONE ? bad : status;
    }
}

static int show(const train_args *a)
{
    tool_session s = {.compute = &a->shared.compute, .part = a->shared.part};
    session_args shared = a->shared;
    chooser choice;
    chooser_begin(&choice, &a->choose, &shared.data_opts, shared.output.quiet);
    const int status = show_lr(&s, &shared, &a->show, a->watch.report_steps);
    session_close(&s);
    return status;
}

static int run(const void *args)
{
    const train_args *a = args;
    elastic e;
    if (a->elastic.range && (a->trace || a->shared.run.bad_list)) {
        say("--elastic writes no --trace and no --bad-list: which process has what changes as it goes");
        return EXIT_MISUSED;
    }
    if (a->show.show && a->resume) {
        say("--show and --resume: --show prints the schedule of these options, from the beginning; leave "
            "--resume out");
        return EXIT_MISUSED;
    }
    if (a->elastic.range && crew_is_needed(a->shared.model.sync)) {
        say("--elastic and --sync ps: the weights of a lost server are lost; use --checkpoint and --resume");
        return EXIT_MISUSED;
    }
    if (a->elastic.range && a->rank.wire == MR_WIRE_MPI) {
        say("--elastic and --wire mpi: MPI ends all processes of a run when one is lost; expected "
            "auto, tcp, shm or ucx");
        return EXIT_MISUSED;
    }
    if (crew_is_needed(a->shared.model.sync) &&
        (a->rank.wire == MR_WIRE_MPI || a->rank.wire == MR_WIRE_UCX)) {
        say("--sync ps and --wire mpi or ucx: servers and workers are connected by tcp; expected auto, "
            "tcp or shm");
        return EXIT_MISUSED;
    }
    if (a->show.show) return show(a);
    int status = elastic_open(&e, &a->elastic, &a->rank);
    if (status == EXIT_DONE)
        status = e.muster                               ? run_elastic(a, &e)
                 : crew_is_needed(a->shared.model.sync) ? run_served(a, &e)
                                                        : run_alone(a, &e);
    elastic_close(&e);
    return status;
}

static const opt options[] = {
#define MRI_SETTING(...) MRI_ROW(train_args, __VA_ARGS__),
#define MRI_OPTION       MRI_SETTING
#include "settings/training.rows"
};
static const opt_group groups[] = {
    OPT_OWN_GROUP("Training", options),
    GROUP(BEGIN, train_args, begin),
    GROUP(GOAL, train_args, goal),
    OPT_GROUP(watch_options, train_args, watch),
    GROUP(SHOW, train_args, show),
    GROUP(MODEL, train_args, shared.model),
    GROUP(UPDATE, train_args, shared.model),
    GROUP(OBJECTIVE, train_args, shared.objective),
    GROUP(RUN, train_args, shared.run),
    GROUP(LOADER, train_args, shared.loader),
    GROUP(TUNE, train_args, tune),
    GROUP(TRACE, train_args, tracing),
    GROUP(DEVICE, train_args, shared.device),
    GROUP(PART, train_args, shared.part),
    GROUP(RANK, train_args, rank),
    GROUP(ELASTIC, train_args, elastic),
    GROUP(COMPUTE, train_args, shared.compute),
    GROUP(DATA, train_args, shared.data_opts),
    OPT_GROUP(choose_options, train_args, choose),
    GROUP(OUTPUT, train_args, shared.output),
};
static const opt_positional positionals[] = {
    DATA_POSITIONAL(train_args),
};

const command command_train = {
    .name = "train",
    .summary = "train a network and report where the time went",
    .text =
        "Trains a named network. Up to rounding, weights do not depend on the loader's options.\nNo option "
        "of this group changes order or pixels; a resumed run continues with the next batch.\nPrints for "
        "each epoch: wait ms, the time the trainer was blocked on the loader; exposed ms, the time the "
        "device stood idle between steps, from the device's own events; stall %, its share.\nCtrl-C stops "
        "after the step, writes a checkpoint where --checkpoint is given, and exits with status 130. A "
        "folder of checkpoints belongs to one run. A run that diverges is status 1.",
    .examples = "  millrace train train.mrec --val test.mrec --model cifar-cnn --checkpoint run1 --resume\n"
                "  millrace train photos --model resnet18 --init resnet18.safetensors --freeze backbone\n",
    .positionals = positionals,
    .positional_count = OPT_COUNT(positionals),
    .groups = groups,
    .group_count = OPT_COUNT(groups),
    .args_bytes = sizeof(train_args),
    .given_at = offsetof(train_args, given),
    .run = run,
};
