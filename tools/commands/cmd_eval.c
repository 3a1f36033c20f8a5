/* tools/commands/cmd_eval.c: `millrace eval DATA --checkpoint C`: exact loss and accuracy of a checkpoint on
 * a data set. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/clock.h"
#include "tools/cli/exit.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/json.h"
#include "tools/cli/output.h"
#include "tools/commands/commands.h"
#include "tools/draw/draw.h"
#include "tools/facts/choose.h"
#include "tools/outputs/confusion_print.h"
#include "tools/outputs/rows.h"
#include "tools/session/session.h"
#include "tools/session/world.h"

typedef struct eval_args {
    const char *checkpoint, *draw, *confusion, *views;
    bool force;
    rank_args rank;
    choose_args choose;
    session_args shared;
    opt_given given;
} eval_args;

typedef struct eval_run {
    const eval_args *args;
    tool_world world;
    tool_session s;
    chooser choice;
    mr_checkpoint_info info;
    char found[512];
    draw_points drawn;
    session_points logits;
    mr_confusion *confusion; /* or NULL */
    uint32_t classes;        /* of it */
    mr_views *views;         /* or NULL */
    const char **names;      /* of the checkpoint's classes, or NULL */
} eval_run;

static int find_checkpoint(eval_run *r)
{
    mr_error err = MR_ERROR_INIT;
    char note[1024] = "";
    if (!r->args->checkpoint) {
        say("--checkpoint is needed: a file, or a folder whose newest is taken");
        return EXIT_MISUSED;
    }
    const int rc =
        mr_checkpoint_find(r->args->checkpoint, r->found, sizeof r->found, &r->info, note, sizeof note, &err);
    if (note[0]) say("%s", note);
    if (rc) return exit_status(rc, &err);
    objective_of_checkpoint(&r->s.objective, &r->info, false);
    return session_model_of(&r->s, r->found, &r->info);
}

/* What classes and labels are called and where they begin, the checkpoint knows from the data it was trained
 * on. */
static int open_data(eval_run *r)
{
    mr_error err = MR_ERROR_INIT;
    uint32_t count;
    const int status = exit_status(mr_checkpoint_class_names(r->found, &r->names, &count, &err), &err);
    if (status) return status;
    const bool targets = r->info.target_loss != 0;
    if (targets) {
        r->s.objective.columns.names = r->names;
        r->s.objective.columns.count = count;
        r->s.objective.columns.of = r->found;
    }
    r->choice.args.known = targets ? NULL : r->names;
    r->choice.args.known_count = targets ? 0 : count;
    const data_like like = {r->found, r->info.label_offset, targets ? NULL : r->names,
                            targets ? 0 : r->info.classes};
    return session_open_data_like(&r->s, r->args->shared.data, &r->args->shared.data_opts, &like);
}

/* Refuses before the evaluation, not after it. */
static int prepare_drawing(eval_run *r)
{
    mr_error err = MR_ERROR_INIT;
    mr_output_config cfg;
    tool_session *s = &r->s;
    const char *path = r->args->draw;
    if (!path) return EXIT_DONE;
    r->drawn = draw_points_of(s->net);
    if (r->drawn.kept.count == 0 || mr_device_info_of(s->devices[0])->simulated) {
        say("--draw: %s gives back no pictures that could be drawn", s->model->name);
        return EXIT_MISUSED;
    }
    const mr_source *src = s->src;
    mr_output_defaults(&cfg);
    cfg.inputs = &src, cfg.input_count = 1, cfg.force = r->args->force;
    const int rc = mr_output_check(path, &cfg, &err);
    s->kept = &r->drawn.kept;
    return exit_status(rc, &err);
}

/* The user requests the outputs of samples. */
static int prepare_outputs(eval_run *r)
{
    tool_session *s = &r->s;
    const char *option = r->args->confusion ? "--confusion" : "--views";
    if (!r->args->confusion && !r->args->views) return EXIT_DONE;
    if (!mr_net_logits(s->net, &r->logits.at[0])) {
        say("%s: %s has no classes", option, s->model->name);
        return EXIT_MISUSED;
    }
    r->logits.count = 1;
    s->kept = &r->logits;
    return EXIT_DONE;
}

/* The same for the matrix. */
static int prepare_confusion(eval_run *r)
{
    mr_error err = MR_ERROR_INIT;
    mr_output_config cfg;
    tool_session *s = &r->s;
    const char *path = r->args->confusion;
    const mr_source *src = s->src;
    if (!path) return EXIT_DONE;
    r->classes = mr_net_class_count(s->net);
    if (r->classes > MR_CONFUSION_MOST) {
        say("--confusion: expected at most %d classes, found %" PRIu32, MR_CONFUSION_MOST, r->classes);
        return EXIT_FAILED;
    }
    const int rc = mr_confusion_create(&r->confusion, r->classes, &err);
    if (rc || !r->world.first) return exit_status(rc, &err);
    mr_output_defaults(&cfg);
    cfg.inputs = &src, cfg.input_count = 1, cfg.force = r->args->force;
    return exit_status(mr_output_check(path, &cfg, &err), &err);
}

static int open_run(eval_run *r)
{
    const eval_args *a = r->args;
    tool_session *s = &r->s;
    int status = find_checkpoint(r);
    s->world = r->world.world;
    s->part = a->shared.part;
    session_args shared = a->shared; /* pictures and computing as they were in training, where nothing else is
                                        said */
    resume_fill_convolution(&r->info, &a->given, &shared.device);
    if (status == EXIT_DONE) status = session_open_devices(s, &shared.device);
    if (status == EXIT_DONE) status = open_data(r);
    if (status) return status;
    run_args run = shared.run;
    char list[4096];
    run.bad_list = world_own_file(&r->world, run.bad_list, list, sizeof list);
    if (!options_was_given(&a->given, "pixels")) shared.data_opts.pixels = r->info.pixels;
    if (!options_was_given(&a->given, "exif") && r->info.ignore_exif) shared.data_opts.ignore_exif = true;
    if (!s->model->numbers && !options_was_given(&a->given, "channels") && (r->info.c == 1 || r->info.c == 3))
        run.channels = r->info.c;
    if (!run.augment) run.augment = r->info.augment; /* as in training, without random operations */
    if (!run.batch) run.batch = r->info.batch;
    if (!options_was_given(&a->given, "seed")) run.seed = r->info.seed; /* of draws */
    if (run.repeats > 1) {
        say("--repeats %u: of training alone; an evaluation has each sample once", run.repeats);
        return EXIT_MISUSED;
    }
    run.epochs = 1;
    run.order = MR_ORDER_SEQUENTIAL;
    s->values = r->info.c;
    status = session_set_loader(s, &shared, &run, false, r->info.w);
    s->loader_cfg.keep_host = a->confusion || a->views;
    if (status == EXIT_DONE && a->views) status = views_open(&r->views, a->views, &s->loader_cfg);
    if (status == EXIT_DONE) status = session_open_loader(s);
    if (status == EXIT_DONE)
        resume_tell_prepared(&r->info, &a->given, &shared.data_opts,
                             a->views ? NULL : mr_loader_info_of(s->loader)->augment);
    s->rule.update = r->info.update;
    s->rule.schedule = r->info.schedule;
    if (status == EXIT_DONE) status = session_open_net(s);
    if (status == EXIT_DONE) status = prepare_drawing(r);
    if (status == EXIT_DONE) status = prepare_outputs(r);
    if (status == EXIT_DONE) status = prepare_confusion(r);
    if (status == EXIT_DONE) status = session_open_network(s, 1, true);
    if (status == EXIT_DONE) status = session_load(s, r->found, &r->info);
    return status;
}

/* ---- which classes are taken for which ---- */

static int on_outputs(void *context, const mr_outputs *o, mr_error *err)
{
    eval_run *r = context;
    return mr_confusion_add(r->confusion, o, err);
}

/* Several views: sums of all processes. */
static int pass_views(eval_run *r, double *loss, double *accuracy, uint64_t *count, mr_error *err)
{
    mr_outputs_config cfg;
    mr_views_sums own;
    const mr_world *w = r->world.world;
    if (!mr_loader_info_of(r->s.loader)->labelled)
        return mr_error_set(err, MR_EINVAL, "expected data with labels, found none");
    mr_outputs_defaults(&cfg);
    if (r->args->confusion) cfg.on_outputs = on_outputs, cfg.context = r;
    cfg.stop = &interrupt_flag;
    const int rc = mr_views_run(r->views, r->s.trainer, r->s.loader, &cfg, &own, err);
    if (rc) return rc;
    double mine[3] = {own.loss, (double)own.right, (double)own.labelled}, sum[3] = {0};
    const uint32_t ranks = w ? mr_world_size(w) : 1;
    double *all = calloc(3 * (size_t)ranks, sizeof *all);
    if (!all) return mr_error_set(err, MR_ENOMEM, "no memory for the sums of %u processes", ranks);
    memcpy(all, mine, sizeof mine);
    const bool gathered = !w || world_gather(&r->world, mine, sizeof mine, all) == EXIT_DONE;
    for (uint32_t i = 0; i < 3 * ranks; i++) sum[i % 3] += all[i];
    free(all);
    if (!gathered) return mr_error_set(err, MR_EPEER, "another process did not report its result");
    *loss = sum[0] / sum[2];
    *accuracy = sum[1] / sum[2];
    *count = (uint64_t)sum[2];
    return MR_OK;
}

static int pass(eval_run *r, double *loss, double *accuracy, uint64_t *count, mr_error *err)
{
    mr_outputs_config cfg;
    if (r->args->views) return pass_views(r, loss, accuracy, count, err);
    if (!r->args->confusion)
        return mr_evaluate_until(r->s.trainer, r->s.loader, &interrupt_flag, loss, accuracy, count, err);
    mr_outputs_defaults(&cfg);
    cfg.on_outputs = on_outputs, cfg.context = r, cfg.stop = &interrupt_flag;
    return mr_evaluate_outputs(r->s.trainer, r->s.loader, &cfg, loss, accuracy, count, err);
}

/* Of all processes. */
static int sum_confusion(eval_run *r)
{
    const mr_world *w = r->world.world;
    uint64_t *count = mr_confusion_counts(r->confusion);
    if (!w || !count) return EXIT_DONE;
    const size_t cells = (size_t)r->classes * r->classes;
    const uint32_t ranks = mr_world_size(w);
    uint64_t *all = calloc(cells * ranks, sizeof *all);
    if (!all) return exit_no_memory("a confusion matrix");
    const int status = world_gather(&r->world, count, cells * sizeof *all, all);
    memset(count, 0, cells * sizeof *all);
    for (size_t i = 0; status == EXIT_DONE && i < cells * ranks; i++) count[i % cells] += all[i];
    free(all);
    return status;
}

static int write_confusion(eval_run *r)
{
    mr_error err = MR_ERROR_INIT;
    char *text = mr_confusion_csv(r->confusion, (const char *const *)r->names, r->info.label_offset);
    if (!text) return exit_no_memory("a confusion matrix");
    const int rc = setup_write_result(r->args->confusion, text, strlen(text), r->s.src, r->args->force, &err);
    free(text);
    return exit_status(rc, &err);
}

static int evaluate(eval_run *r)
{
    mr_error err = MR_ERROR_INIT;
    double loss = 0, accuracy = 0;
    uint64_t count = 0;
    const uint64_t start = clock_ns();
    const int rc = pass(r, &loss, &accuracy, &count, &err);
    if (rc) {
        const int status = exit_status(rc, &err);
        objective_explain(&r->s.objective, r->s.src, &err);
        return status;
    }
    const double seconds = seconds_since(start);
    int status = sum_confusion(r);
    if (status == EXIT_DONE && r->args->confusion && r->world.first) status = write_confusion(r);
    if (status) return status;
    const char *shown = mr_source_info_of(r->s.src)->path;
    if (!r->args->shared.output.json) {
        printf("%s on %s: %" PRIu64 " samples, loss %.6f", shown_text(r->found), shown_text(shown), count,
               loss);
        if (!isnan(accuracy))
            printf(", accuracy %.4f%s", accuracy, r->info.target_loss ? " of all labels" : "");
        printf("; %.0f samples/s%s\n", (double)count / seconds,
               r->info.average > 0 ? " (average of weights)" : "");
        if (r->args->confusion)
            confusion_put_worst(r->confusion, r->classes, (const char *const *)r->names,
                                r->info.label_offset);
        return EXIT_DONE;
    }
    json_line j = json_begin(stdout, "eval");
    json_text(&j, "checkpoint", r->found);
    json_text(&j, "model", r->info.model);
    json_text(&j, "data", shown);
    json_u64(&j, "samples", count);
    json_float(&j, "average", r->info.average);
    json_text(&j, "loss_name", objective_names[r->info.target_loss]);
    json_text(&j, "targets", r->info.targets[0] ? r->info.targets : NULL);
    json_real(&j, "val_loss", loss);
    json_real(&j, "val_accuracy", accuracy);
    json_real(&j, "seconds", seconds);
    json_real(&j, "samples_per_s", (double)count / seconds);
    if (r->args->confusion) {
        json_text(&j, "confusion", r->args->confusion);
        confusion_put_json(r->confusion, r->classes, (const char *const *)r->names, r->info.label_offset, &j);
    }
    json_end(&j);
    return EXIT_DONE;
}

static int run(const void *args)
{
    eval_args own = *(const eval_args *)args, *a = &own;
    eval_run r = {.args = a, .s.compute = &a->shared.compute};
    chooser_begin(&r.choice, &a->choose, &a->shared.data_opts, a->shared.output.quiet);
    if (a->confusion && a->draw) {
        say("--confusion and --draw: one is for networks with classes, the other for networks that "
            "reproduce their input");
        return EXIT_MISUSED;
    }
    int status = world_join(&r.world, &a->rank);
    r.choice.args.silent = !r.world.first; /* one process says it */
    if (status == EXIT_DONE) status = open_run(&r);
    if (status == EXIT_DONE) status = evaluate(&r);
    if (status == EXIT_DONE && a->draw) status = draw_to(&r.s, &r.drawn, a->draw, a->force);
    session_close(&r.s);
    mr_confusion_destroy(r.confusion);
    mr_views_destroy(r.views);
    free(r.names);
    status = bad_watch_close(&r.s.bad, status);
    return world_leave(&r.world, status);
}

static const opt options[] = {
#define MRI_OPTIONS(...) OPT(eval_args, __VA_ARGS__),
#include "settings/commands/eval.rows"
};
static const opt_group groups[] = {
    OPT_OWN_GROUP("Evaluation", options),         GROUP(RUN, eval_args, shared.run),
    GROUP(LOADER, eval_args, shared.loader),      GROUP(DEVICE, eval_args, shared.device),
    GROUP(PART, eval_args, shared.part),          GROUP(RANK, eval_args, rank),
    GROUP(COMPUTE, eval_args, shared.compute),    GROUP(DATA, eval_args, shared.data_opts),
    OPT_GROUP(choose_options, eval_args, choose), GROUP(OUTPUT, eval_args, shared.output),
};
static const opt_positional positionals[] = {
    DATA_POSITIONAL(eval_args),
};

const command command_eval = {
    .name = "eval",
    .summary = "compute loss and accuracy of a checkpoint on a data set",
    .text = "Evaluates a checkpoint: exact sums over all samples of DATA, or of its test split if it has "
            "one. Pictures are prepared as in training, without random augmentation.",
    .examples = "  millrace eval test.mrec --checkpoint run1\n  millrace eval mnist --checkpoint run1 "
                "--devices cpu:2 --json\n",
    .positionals = positionals,
    .positional_count = OPT_COUNT(positionals),
    .groups = groups,
    .group_count = OPT_COUNT(groups),
    .args_bytes = sizeof(eval_args),
    .given_at = offsetof(eval_args, given),
    .run = run,
};
