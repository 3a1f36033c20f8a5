/* tools/commands/cmd_train.c: `millrace train DATA --model M`. The work is mr_fit(); here are the options,
 * what a resumed run must have in common with its first part, the header, the table and the verdict. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/cli/clock.h"
#include "tools/cli/exit.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/json.h"
#include "tools/cli/output.h"
#include "tools/cli/progress.h"
#include "tools/cli/report.h"
#include "tools/commands/commands.h"
#include "tools/commands/session.h"
#include "tools/commands/train_header.h"

typedef struct train_args {
    const char *val, *checkpoint, *trace;
    bool resume;
    uint64_t checkpoint_steps, max_steps;
    uint32_t keep, patience, warmup_steps;
    uint32_t sync; /* one way so far: names what --sync will choose from */
    session_args shared;
} train_args;

typedef struct train_run {
    const train_args *args;
    run_args run; /* with the model's settings filled in */
    tool_session s;
    mr_source *val_src;
    mr_loader *val;
    bad_watch val_bad;
    bool resumed, complete; /* complete: every epoch was done before */
    char from[512];         /* checkpoint resumed from */
    mr_checkpoint_info start;
    progress_bar bar;
    uint64_t start_ns;
    uint64_t epochs_reported, last_reported;
} train_run;

/* ---- resume ---- */

static bool same_setting(const char *option, uint64_t then, uint64_t now)
{
    if (then == now) return true;
    say("--%s: the checkpoint was trained with %" PRIu64 ", found %" PRIu64 "; give the same value to go on",
        option, then, now);
    return false;
}

static bool same_choice(const char *option, const char *const *names, uint32_t then, uint32_t now)
{
    if (then == now) return true;
    say("--%s: the checkpoint was trained with %s, found %s; give the same value to go on", option,
        names[then], names[now]);
    return false;
}

/* Known once the loader is open: it is what says what the option, or the model without it, comes to. */
static int check_resumed_augment(const train_run *r)
{
    const char *now = mr_loader_info_of(r->s.loader)->augment;
    if (!r->resumed || !r->start.augment[0] || strcmp(r->start.augment, now) == 0) return EXIT_DONE;
    say("--augment: the checkpoint was trained with %s, found %s; give the same value to go on",
        r->start.augment, now);
    return EXIT_MISUSED;
}

/* What order, pixels and weights depend on must be as it was; everything else may change. */
static int check_resume(const train_run *r)
{
    const mr_checkpoint_info *c = &r->start;
    if (strcmp(c->model, r->s.model->name) != 0) {
        say("--model: the checkpoint is of %s, found %s", c->model, r->s.model->name);
        return EXIT_MISUSED;
    }
    if (!same_setting("seed", c->seed, r->run.seed) || !same_setting("batch", c->batch, r->run.batch))
        return EXIT_MISUSED;
    if (!same_choice("order", setup_orders, c->order, r->run.order) ||
        !same_choice("tail", setup_tails, c->tail, r->run.tail) ||
        !same_choice("pixels", setup_pixels, c->pixels, r->args->shared.data_opts.pixels))
        return EXIT_MISUSED;
    if (r->run.order == MR_ORDER_BLOCK && !same_setting("block", c->block, r->run.block)) return EXIT_MISUSED;
    if (!same_setting("length-window", c->length_window, r->run.length_window)) return EXIT_MISUSED;
    const mr_source_info *info = mr_source_info_of(r->s.src);
    if (c->fingerprint && c->fingerprint != info->fingerprint) {
        say("%s: these are not the data the checkpoint was trained on (%016" PRIx64 ", found %016" PRIx64 ")",
            info->path, c->fingerprint, info->fingerprint);
        return EXIT_FAILED;
    }
    return EXIT_DONE;
}

static int find_checkpoint(train_run *r)
{
    const train_args *a = r->args;
    mr_error err = MR_ERROR_INIT;
    char note[1024] = "";
    if (!a->resume) return EXIT_DONE;
    if (!a->checkpoint) {
        say("--resume needs --checkpoint DIR, where the run left its state");
        return EXIT_MISUSED;
    }
    const int rc =
        mr_checkpoint_find(a->checkpoint, r->from, sizeof r->from, &r->start, note, sizeof note, &err);
    if (note[0]) say("%s", note);
    if (rc == MR_ENOENT && note[0]) { /* starting over would replace what may still be rescued */
        say("%s: no whole checkpoint in this folder; leave --resume out to start from the beginning",
            a->checkpoint);
        return EXIT_FAILED;
    }
    if (rc == MR_ENOENT) {
        say("%s: no checkpoint yet; starting from the beginning", a->checkpoint);
        return EXIT_DONE;
    }
    r->resumed = rc == MR_OK;
    return rc ? exit_status(rc, &err) : check_resume(r);
}

/* ---- validation data ---- */

/* --val, else the test part that the data brings, else none. */
static int open_val_source(train_run *r)
{
    const train_args *a = r->args;
    const mr_source_info *info = mr_source_info_of(r->s.src);
    data_args d = a->shared.data_opts;
    const bool own = a->val != NULL;
    if (own && strcmp(a->val, "none") == 0) return EXIT_DONE;
    if (!own && (!info->has_test || d.split == MR_SPLIT_TEST)) return EXIT_DONE;
    d.split = own ? MR_SPLIT_AUTO : MR_SPLIT_TEST;
    const data_like like = {info->path, info->format, info->label_offset, info->class_names,
                            session_class_count(&r->s)};
    return setup_source_like(&r->val_src, own ? a->val : a->shared.data, &d, &like);
}

static int open_val_loader(train_run *r)
{
    mr_error err = MR_ERROR_INIT;
    mr_loader_config cfg = r->s.loader_cfg;
    if (!r->val_src) return EXIT_DONE;
    cfg.training = false;
    cfg.epochs = UINT64_MAX;
    cfg.order = MR_ORDER_SEQUENTIAL;
    cfg.length_window = 0;
    cfg.tail = MR_TAIL_KEEP;
    cfg.prefetch = cfg.prefetch > 2 ? 2 : cfg.prefetch; /* it waits full while training runs: no more memory
                                                           than needed */
    cfg.start_epoch = cfg.start_step = 0;
    cfg.trace = NULL;
    cfg.cache = MR_CACHE_OFF; /* what it may hold is meant for the training data */
    const run_args no_list = {0};
    bad_watch_open(&r->val_bad, r->val_src, &no_list, &cfg);
    return exit_status(mr_loader_open(&r->val, r->val_src, &cfg, &err), &err);
}

/* ---- opening ---- */

/* A resumed run begins where its checkpoint was made. */
static void set_start(train_run *r)
{
    mr_loader_config *cfg = &r->s.loader_cfg;
    if (!r->resumed) return;
    cfg->start_epoch = r->start.epoch;
    cfg->start_step = r->start.step;
    r->complete = r->start.epoch >= r->run.epochs;
    if (r->complete) cfg->epochs = r->start.epoch + 1; /* none of it is taken */
}

static int open_run(train_run *r)
{
    const session_args *a = &r->args->shared;
    tool_session *s = &r->s;
    int status = session_open_to_train(s, a, &r->run);
    if (status == EXIT_DONE) status = find_checkpoint(r);
    if (status == EXIT_DONE) status = open_val_source(r);
    if (status == EXIT_DONE) status = session_set_loader(s, a, &r->run, true, r->resumed ? r->start.w : 0);
    if (status) return status;
    set_start(r);
    status = session_open_loader(s);
    if (status == EXIT_DONE) status = check_resumed_augment(r);
    if (status == EXIT_DONE) status = open_val_loader(r);
    if (status == EXIT_DONE) status = session_open_network(s, r->run.epochs, false);
    if (status == EXIT_DONE && r->resumed) status = session_load(s, r->from, &r->start);
    return status;
}

/* ---- what is told ---- */

static void put_header(const train_run *r)
{
    const train_header h = {.s = &r->s,
                            .val = r->val_src,
                            .run = &r->run,
                            .from = r->resumed ? r->from : NULL,
                            .start_epoch = r->start.epoch,
                            .start_step = r->start.step};
    if (r->args->shared.output.json) train_header_json(&h);
    else train_header_text(&h);
}

static void on_step(void *context, uint64_t epoch, uint64_t step, uint64_t steps_per_epoch,
                    double samples_per_s)
{
    train_run *r = context;
    char note[96];
    snprintf(note, sizeof note, "epoch %" PRIu64 " of %" PRIu64 ", %.0f samples/s", epoch + 1, r->run.epochs,
             samples_per_s);
    progress_show(&r->bar, epoch * steps_per_epoch + step, r->run.epochs * steps_per_epoch, note);
}

static void on_epoch(void *context, const mr_report *report)
{
    train_run *r = context;
    progress_end(&r->bar);
    r->epochs_reported++;
    r->last_reported = report->epoch;
    if (r->args->shared.output.json) {
        json_line j = json_begin(stdout, "epoch");
        json_u64(&j, "batch", mr_loader_info_of(r->s.loader)->batch);
        json_u64(&j, "replicas", r->s.device_count);
        json_u64(&j, "seed", r->run.seed);
        report_json(&j, report, r->s.device_count);
        json_end(&j);
    } else {
        report_table_row(report);
    }
}

static void on_message(void *context, const char *text)
{
    (void)context;
    say("%s", text);
}

static int footer(const train_run *r, const mr_report *last, bool whole)
{
    mr_error err = MR_ERROR_INIT;
    uint64_t low = 0, high = 0;
    char hash[40];
    if (mr_trainer_weights_hash(r->s.trainer, 0, &low, &high, &err) != MR_OK)
        return exit_status(err.code, &err);
    snprintf(hash, sizeof hash, "%016" PRIx64 "%016" PRIx64, high, low);
    if (r->args->shared.output.json) {
        json_line j = json_begin(stdout, "train");
        json_bool(&j, "complete", whole);
        json_u64(&j, "epochs", r->epochs_reported);
        json_real(&j, "total_seconds", seconds_since(r->start_ns));
        json_text(&j, "weights", hash);
        report_json(&j, last, r->s.device_count);
        json_end(&j);
        return EXIT_DONE;
    }
    if (last->steps) printf("verdict  %s\n", last->verdict);
    printf("weights  %s after %.1f s%s\n", hash, seconds_since(r->start_ns),
           last->simulated ? " (simulated: loss and accuracy mean nothing)" : "");
    return EXIT_DONE;
}

/* ---- running ---- */

static int make_folder(const char *path)
{
    mr_error err = MR_ERROR_INIT;
    struct stat st;
    if (!path) return EXIT_DONE;
    const int why = mkdir(path, 0777) == 0 ? 0 : errno;
    if (!why ||
        (why == EEXIST && stat(path, &st) == 0 && S_ISDIR(st.st_mode) && access(path, W_OK | X_OK) == 0))
        return EXIT_DONE;
    if (why == EEXIST && S_ISDIR(st.st_mode))
        mr_error_sys(&err, errno, "cannot write checkpoints into this folder");
    else if (why == EEXIST)
        mr_error_set(&err, MR_EEXIST, "expected a folder for checkpoints, found a file; choose another name");
    else mr_error_sys(&err, why, "cannot make the folder for checkpoints");
    mr_error_at(&err, path, MR_NOWHERE, MR_NOWHERE);
    return exit_status(err.code, &err);
}

static int fit(train_run *r)
{
    const train_args *a = r->args;
    mr_error err = MR_ERROR_INIT;
    mr_fit_config cfg;
    mr_report last = {0};
    if (r->complete) {
        say("%s: all %" PRIu64 " epochs are done; a larger --epochs goes on", r->from, r->run.epochs);
        r->start_ns = clock_ns();
        return footer(r, &last, true);
    }
    mr_fit_defaults(&cfg);
    cfg.epochs = r->run.epochs;
    cfg.val = r->val;
    cfg.checkpoint_dir = a->checkpoint;
    cfg.checkpoint_steps = a->checkpoint_steps;
    cfg.keep = a->keep;
    cfg.patience = a->patience;
    cfg.max_steps = a->max_steps;
    cfg.warmup_steps = a->warmup_steps;
    cfg.stop = &interrupt_flag;
    cfg.callbacks = (mr_callbacks){r, on_step, on_epoch, on_message};
    cfg.data = mr_source_info_of(r->s.src);
    put_header(r);
    r->start_ns = clock_ns();
    progress_start(&r->bar, "train", "steps", a->shared.output.quiet);
    const int rc = mr_fit(r->s.trainer, r->s.loader, &cfg, &last, &err);
    progress_end(&r->bar);
    const bool part_reported = r->epochs_reported && r->last_reported == last.epoch;
    if (last.steps && !part_reported && (rc == MR_OK || rc == MR_ECANCELED))
        on_epoch(r, &last); /* an epoch that was cut short */
    const int told = rc == MR_OK || rc == MR_ECANCELED ? footer(r, &last, rc == MR_OK) : EXIT_DONE;
    return rc == MR_OK ? told : exit_status(rc, &err);
}

static int run(const void *args)
{
    const train_args *a = args;
    train_run r = {.args = a, .s.io_reported = true, .s.compute = &a->shared.compute};
    int status = setup_output("trace", a->trace);
    if (status) return status;
    status = setup_trace(&r.s.trace, a->trace, false);
    if (status == EXIT_DONE) status = open_run(&r);
    if (status == EXIT_DONE) status = make_folder(a->checkpoint);
    if (status == EXIT_DONE) status = fit(&r);
    session_close_trainer(&r.s);
    mr_loader_close(r.val);
    mr_source_close(r.val_src);
    session_close(&r.s);
    const int written = r.s.trace ? setup_write_trace(r.s.trace, a->trace) : EXIT_DONE;
    if (status == EXIT_DONE) status = written;
    mr_trace_destroy(r.s.trace);
    status = bad_watch_close(&r.s.bad, status);
    return bad_watch_close(&r.val_bad, status);
}

static const char *const sync_modes[] = {"sync", NULL};
static const opt options[] = {
    {"val", OPT_TEXT, offsetof(train_args, val), 0, 0, NULL, "DATA",
     "validate on this after each epoch; none: do not; without it the test part of DATA, if it has one",
     NULL},
    {"checkpoint", OPT_TEXT, offsetof(train_args, checkpoint), 0, 0, NULL, "DIR",
     "folder for weights and state, written at the end of each epoch", NULL},
    {"checkpoint-steps", OPT_U64, offsetof(train_args, checkpoint_steps), 0, 0x1p64, "0", NULL,
     "write a checkpoint after so many steps, too; 0: at the end of epochs only", NULL},
    {"keep", OPT_U32, offsetof(train_args, keep), 1, 1000000, "3", NULL,
     "newest checkpoints that stay, the best besides", NULL},
    {"resume", OPT_FLAG, offsetof(train_args, resume), 0, 0, NULL, NULL,
     "go on from the newest checkpoint of --checkpoint; devices and loader may be others", NULL},
    {"patience", OPT_U32, offsetof(train_args, patience), 0, 1000000, "0", NULL,
     "stop after so many epochs without a better validation loss; 0: never", NULL},
    {"max-steps", OPT_U64, offsetof(train_args, max_steps), 0, 0x1p64, "0", NULL,
     "stop after so many steps; 0: no limit", NULL},
    {"warmup-steps", OPT_U32, offsetof(train_args, warmup_steps), 0, 1000000, "3", NULL,
     "first steps of an epoch that are left out of the rates", NULL},
    {"sync", OPT_CHOICE, offsetof(train_args, sync), 0, 0, "sync", NULL,
     "how replicas exchange gradients; sync: all of them, after every step, the one way offered so far",
     sync_modes},
    {"trace", OPT_TEXT, offsetof(train_args, trace), 0, 0, NULL, "FILE",
     "what every stage did when, as a Chrome trace (ui.perfetto.dev shows it)", NULL},
};
static const opt_group groups[] = {
    OPT_OWN_GROUP("Training", options),       MODEL_GROUP(train_args, shared.model),
    RUN_GROUP(train_args, shared.run),        LOADER_GROUP(train_args, shared.loader),
    DEVICE_GROUP(train_args, shared.device),  COMPUTE_GROUP(train_args, shared.compute),
    DATA_GROUP(train_args, shared.data_opts), OUTPUT_GROUP(train_args, shared.output),
};
static const opt_positional positionals[] = {
    DATA_POSITIONAL(train_args),
};

const command command_train = {
    .name = "train",
    .summary = "trains a network and tells where the time went",
    .text = "Trains a named network. The order of samples, their pixels and, up to rounding, the weights do "
            "not depend on "
            "the loader's options, and a run that is stopped and resumed goes on with the batch it would "
            "have had.\n"
            "Of each epoch it tells: wait ms, the time the trainer was blocked on the loader; exposed ms, "
            "the time the device "
            "stood idle between steps, from the device's own events; stall %, the idle part of the device's "
            "time.\n"
            "Ctrl-C stops after the step, writes a checkpoint where --checkpoint is given, and exits with "
            "status 130.",
    .examples = "  millrace train mnist --model mnist-cnn --epochs 2\n"
                "  millrace train train.mrec --val test.mrec --model cifar-cnn --checkpoint run1 --resume\n"
                "  millrace train train.mrec --model cifar-cnn --prefetch off\n"
                "  millrace train train.mrec --model cifar-cnn --devices cpu:2 --json\n",
    .positionals = positionals,
    .positional_count = OPT_COUNT(positionals),
    .groups = groups,
    .group_count = OPT_COUNT(groups),
    .args_bytes = sizeof(train_args),
    .run = run,
};
