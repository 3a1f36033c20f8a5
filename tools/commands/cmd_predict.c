/* tools/commands/cmd_predict.c: `millrace predict DATA --checkpoint C`: a checkpoint's outputs for every
 * sample, one row each, in the order of the data set.
 *
 * A sample that cannot be read has a row with the reason: on_bad reports it before the batch with its place
 * comes. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/clock.h"
#include "tools/cli/exit.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/json.h"
#include "tools/cli/output.h"
#include "tools/cli/progress.h"
#include "tools/commands/commands.h"
#include "tools/facts/choose.h"
#include "tools/outputs/rows.h"
#include "tools/session/session.h"

typedef struct predict_args {
    const char *checkpoint, *out, *views;
    bool force;
    uint32_t top;
    choose_args choose;
    session_args shared;
    opt_given given;
} predict_args;

/* A bad sample whose row is still to come. */
typedef struct bad_row {
    struct bad_row *next;
    uint64_t sample;
    char *why;
} bad_row;

typedef struct predict_run {
    const predict_args *args;
    tool_session s;
    chooser choice;
    session_points kept;
    mr_checkpoint_info info;
    char found[4096];
    const char **names; /* of the checkpoint's classes, or NULL */
    uint32_t name_count;
    rows rows;
    mr_views *views; /* or NULL */
    mr_output *out;  /* NULL: standard output */
    progress_bar bar;
    uint64_t samples, bad_rows;
    pthread_mutex_t lock;
    bad_row *bad;                /* lock */
    bool lost_reason;            /* lock; for want of memory: a row could not say why */
    mr_bad_report *watch_on_bad; /* the session's own, called first */
    void *watch_context;
} predict_run;

/* ---- bad samples ---- */

static void on_bad(void *context, const mr_error *what, uint64_t substitute)
{
    predict_run *r = context;
    bad_row *b = calloc(1, sizeof *b);
    r->watch_on_bad(r->watch_context, what, substitute);
    if (b) b->sample = what->sample, b->why = strdup(what->text);
    pthread_mutex_lock(&r->lock);
    if (b) b->next = r->bad, r->bad = b;
    r->lost_reason = r->lost_reason || !b || !b->why;
    pthread_mutex_unlock(&r->lock);
}

/* Why a sample is bad, taken off the list; to be freed, may be NULL. */
static char *take_reason(predict_run *r, uint64_t sample, bool *lost)
{
    char *why = NULL;
    pthread_mutex_lock(&r->lock);
    *lost = r->lost_reason;
    for (bad_row **at = &r->bad; *at; at = &(*at)->next) {
        bad_row *b = *at;
        if (b->sample != sample) continue;
        why = b->why;
        *at = b->next;
        free(b);
        break;
    }
    pthread_mutex_unlock(&r->lock);
    return why;
}

static void drop_bad(predict_run *r)
{
    while (r->bad) {
        bad_row *b = r->bad;
        r->bad = b->next;
        free(b->why);
        free(b);
    }
}

/* ---- rows ---- */

static int write_rows(predict_run *r, const char *text, size_t bytes, mr_error *err)
{
    if (r->out) return mr_output_write(r->out, text, bytes, err);
    if (fwrite(text, 1, bytes, stdout) == bytes && fflush(stdout) == 0) return MR_OK;
    return mr_error_set(err, MR_EIO, "cannot write to standard output");
}

/* In sequential order the number of a sample is its position; a skipped sample does not get one. */
static bool put_rows(predict_run *r, const mr_outputs *o, FILE *out)
{
    for (uint32_t i = 0; i < o->count; i++) {
        const uint64_t sample = r->samples++;
        if (o->labels[i] >= 0) {
            if (!rows_put(&r->rows, out, sample, o->labels[i], o->logits + (size_t)i * o->classes))
                return false;
            continue;
        }
        bool lost;
        char *why = take_reason(r, sample, &lost);
        if (lost) {
            free(why);
            return false;
        }
        rows_put_bad(&r->rows, out, sample, why ? why : "bad sample");
        r->bad_rows++;
        free(why);
    }
    return true;
}

static int on_outputs(void *context, const mr_outputs *o, mr_error *err)
{
    predict_run *r = context;
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (!out) return mr_error_set(err, MR_ENOMEM, "no memory for the rows of a batch");
    const bool all = put_rows(r, o, out) && !ferror(out);
    int rc =
        fclose(out) == 0 && all ? MR_OK : mr_error_set(err, MR_ENOMEM, "no memory for the rows of a batch");
    if (rc == MR_OK) rc = write_rows(r, text, bytes, err);
    free(text);
    progress_show(&r->bar, r->samples, mr_source_info_of(r->s.src)->count, "");
    return rc;
}

/* ---- opening ---- */

static int find_checkpoint(predict_run *r)
{
    mr_error err = MR_ERROR_INIT;
    char note[1024] = "";
    if (!r->args->checkpoint) {
        say("--checkpoint is needed: a file, or a folder whose newest is taken");
        return EXIT_MISUSED;
    }
    int rc =
        mr_checkpoint_find(r->args->checkpoint, r->found, sizeof r->found, &r->info, note, sizeof note, &err);
    if (note[0]) say("%s", note);
    if (rc == MR_OK) rc = mr_checkpoint_class_names(r->found, &r->names, &r->name_count, &err);
    if (rc) return exit_status(rc, &err);
    if (r->info.classes == 0) {
        say("%s: %s has no classes: there is nothing to predict", r->found, r->info.model);
        return EXIT_MISUSED;
    }
    if (r->info.target_loss && options_was_given(&r->args->given, "top")) {
        say("--top: %s was trained with --loss %s, which has no classes: leave --top out", r->found,
            objective_names[r->info.target_loss]);
        return EXIT_MISUSED;
    }
    if (r->info.target_loss && r->args->views) {
        say("--views: %s was trained with --loss %s, which has no classes: leave --views out", r->found,
            objective_names[r->info.target_loss]);
        return EXIT_MISUSED;
    }
    objective_of_checkpoint(&r->s.objective, &r->info, true);
    return session_model_of(&r->s, r->found, &r->info);
}

static bool choice_of_classes(const predict_run *r)
{
    const data_chooser *c = r->args->shared.data_opts.chooser;
    return c && c->needs_classes;
}

/* Folders of pictures need no folders of classes here, unless a choice speaks of classes. */
static int open_data(predict_run *r)
{
    data_args data = r->args->shared.data_opts;
    const uint32_t classes = r->info.target_loss ? 0 : r->info.classes;
    const bool named = r->names && !r->info.target_loss; /* else the names are of targets */
    const data_like like = {r->found, r->info.label_offset, named ? r->names : NULL, classes};
    r->choice.args.known = named ? r->names : NULL;
    r->choice.args.known_count = named ? r->name_count : 0;
    if (r->s.model->numbers) return session_open_data_like(&r->s, r->args->shared.data, &data, &like);
    data.own_class_rule = !options_was_given(&r->args->given, "classes") && !choice_of_classes(r);
    if (data.own_class_rule) data.classes = MR_CLASSES_NONE;
    return session_open_data_to_predict(&r->s, r->args->shared.data, &data, classes);
}

/* The folders that pictures lie in, where some of them are classes of the network. */
static int open_folders(predict_run *r)
{
    bool opens;
    const char *path = r->args->shared.data;
    data_args data = r->args->shared.data_opts;
    mr_source *classed = NULL;
    data.take = NULL;
    data.chooser = NULL;
    if (choice_of_classes(r) || strcmp(mr_source_info_of(r->s.src)->format, "folder") != 0 ||
        r->info.target_loss || options_was_given(&r->args->given, "classes"))
        return EXIT_DONE;
    int status = setup_opens(&opens, path, &data, NULL); /* a refusal by the system ends it: labels would be
                                                          * missing
                                                          */
    if (status == EXIT_DONE && opens) status = setup_source_beside(&classed, path, &data);
    if (status == EXIT_DONE && opens)
        folder_labels_open(&r->rows.folders, classed, r->names, r->info.label_offset, r->info.classes);
    return status;
}

/* Take the checkpoint's training settings, where the user gave none. */
static int fill_run(predict_run *r, session_args *shared, run_args *run)
{
    const opt_given *given = &r->args->given;
    const mr_checkpoint_info *info = &r->info;
    *run = shared->run;
    if (!options_was_given(given, "pixels")) shared->data_opts.pixels = info->pixels;
    if (!options_was_given(given, "exif") && info->ignore_exif) shared->data_opts.ignore_exif = true;
    if (!r->s.model->numbers && !options_was_given(given, "channels") && (info->c == 1 || info->c == 3))
        run->channels = info->c;
    if (!run->augment) run->augment = info->augment;
    if (!run->batch) run->batch = info->batch;
    if (!options_was_given(given, "seed")) run->seed = info->seed;
    if (!options_was_given(given, "bad")) run->bad = MR_BAD_SKIP;
    if (!options_was_given(given, "max-bad")) run->max_bad = UINT64_MAX;
    run->epochs = 1;
    run->order = MR_ORDER_SEQUENTIAL;
    run->tail = MR_TAIL_KEEP;
    run->length_window = 0;
    r->s.values = info->c;
    if (run->repeats > 1) {
        say("--repeats %u: of training alone; a prediction has each sample once", run->repeats);
        return EXIT_MISUSED;
    }
    if (run->bad != MR_BAD_REPLACE) return EXIT_DONE;
    say("--bad replace: a row would tell of another sample than its own; skip gives it a row that says why");
    return EXIT_MISUSED;
}

static int open_rows(predict_run *r)
{
    mr_error err = MR_ERROR_INIT;
    mr_output_config cfg;
    const mr_source *src = r->s.src;
    r->rows = (rows){.src = src,
                     .names = r->names,
                     .first = r->info.label_offset,
                     .classes = r->info.classes,
                     .top = r->args->top < r->info.classes ? r->args->top : r->info.classes,
                     .json = r->args->shared.output.json,
                     .loss = r->info.target_loss};
    const int status = open_folders(r);
    if (status || !r->args->out) return status;
    mr_output_defaults(&cfg);
    cfg.inputs = &r->rows.src, cfg.input_count = 1, cfg.force = r->args->force;
    return exit_status(mr_output_open(&r->out, r->args->out, &cfg, &err), &err);
}

static int open_run(predict_run *r)
{
    const predict_args *a = r->args;
    tool_session *s = &r->s;
    session_args shared = a->shared;
    run_args run;
    int status = find_checkpoint(r);
    if (status) return status;
    resume_fill_convolution(&r->info, &a->given, &shared.device);
    status = session_open_devices(s, &shared.device);
    if (status == EXIT_DONE) status = open_data(r);
    if (status == EXIT_DONE) status = fill_run(r, &shared, &run);
    if (status == EXIT_DONE) status = session_set_loader(s, &shared, &run, false, r->info.w);
    if (status) return status;
    r->watch_on_bad = s->loader_cfg.on_bad, r->watch_context = s->loader_cfg.bad_context;
    s->loader_cfg.on_bad = on_bad, s->loader_cfg.bad_context = r;
    s->loader_cfg.keep_host = true;
    s->loader_cfg.count_unlabelled = true; /* so that only bad samples have no label */
    if (a->views) status = views_open(&r->views, a->views, &s->loader_cfg);
    if (status) return status;
    status = session_open_loader(s);
    if (status == EXIT_DONE)
        resume_tell_prepared(&r->info, &a->given, &shared.data_opts,
                             a->views ? NULL : mr_loader_info_of(s->loader)->augment);
    s->rule.update = r->info.update;
    s->rule.schedule = r->info.schedule;
    if (status == EXIT_DONE) status = session_open_net(s);
    if (status == EXIT_DONE) {
        r->kept.count = mr_net_outputs(s->net, &r->kept.at[0]) ? 1 : 0;
        s->kept = &r->kept;
        status = session_open_network(s, 1, true);
    }
    if (status == EXIT_DONE) status = session_load(s, r->found, &r->info);
    return status == EXIT_DONE ? open_rows(r) : status;
}

/* ---- together ---- */

static int put_header(predict_run *r)
{
    mr_error err = MR_ERROR_INIT;
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (!out) return exit_no_memory("the rows");
    rows_begin(&r->rows, out);
    if (fclose(out) != 0) {
        free(text);
        return exit_no_memory("the rows");
    }
    const int rc = write_rows(r, text, bytes, &err);
    free(text);
    return exit_status(rc, &err);
}

/* If rows do not go to standard output, print a summary of them there. */
static void report(const predict_run *r, double seconds)
{
    if (!r->args->out) return;
    if (!r->args->shared.output.json) {
        printf("%s: %" PRIu64 " samples of %s by %s%s", shown_text(r->args->out), r->samples,
               shown_text(mr_source_info_of(r->s.src)->path), shown_text(r->found),
               r->info.average > 0 ? " (average of weights)" : "");
        if (r->bad_rows) printf(", %" PRIu64 " of them bad", r->bad_rows);
        printf("; %.0f samples/s\n", (double)r->samples / seconds);
        return;
    }
    json_line j = json_begin(stdout, "predict");
    json_text(&j, "checkpoint", r->found);
    json_text(&j, "model", r->info.model);
    json_text(&j, "data", mr_source_info_of(r->s.src)->path);
    json_text(&j, "file", r->args->out);
    json_u64(&j, "samples", r->samples);
    json_u64(&j, "bad", r->bad_rows);
    json_float(&j, "average", r->info.average);
    json_real(&j, "seconds", seconds);
    json_real(&j, "samples_per_s", (double)r->samples / seconds);
    json_end(&j);
}

static int predict(predict_run *r)
{
    mr_error err = MR_ERROR_INIT;
    mr_outputs_config cfg;
    const uint64_t start = clock_ns();
    int status = put_header(r);
    if (status) return status;
    mr_outputs_defaults(&cfg);
    cfg.on_outputs = on_outputs, cfg.context = r, cfg.stop = &interrupt_flag;
    progress_start(&r->bar, "predict", "samples", r->args->shared.output.quiet || !r->args->out);
    int rc = r->views ? mr_views_run(r->views, r->s.trainer, r->s.loader, &cfg, NULL, &err)
                      : mr_evaluate_outputs(r->s.trainer, r->s.loader, &cfg, NULL, NULL, NULL, &err);
    progress_end(&r->bar);
    if (r->out) {
        if (rc) mr_output_abandon(r->out, false);
        else rc = mr_output_commit(r->out, &err);
        r->out = NULL;
    }
    if (rc) return exit_status(rc, &err);
    report(r, seconds_since(start));
    return EXIT_DONE;
}

static int run(const void *args)
{
    predict_args own = *(const predict_args *)args, *a = &own;
    predict_run r = {.args = a, .s.compute = &a->shared.compute, .lock = PTHREAD_MUTEX_INITIALIZER};
    chooser_begin(&r.choice, &a->choose, &a->shared.data_opts, a->shared.output.quiet);
    int status = open_run(&r);
    if (status == EXIT_DONE) status = predict(&r);
    mr_output_abandon(r.out, false);
    session_close(&r.s);
    mr_views_destroy(r.views);
    folder_labels_close(&r.rows.folders);
    drop_bad(&r);
    free(r.names);
    pthread_mutex_destroy(&r.lock);
    return bad_watch_close(&r.s.bad, status);
}

static const opt options[] = {
#define MRI_OPTIONS(...) OPT(predict_args, __VA_ARGS__),
#include "settings/commands/predict.rows"
};
static const opt_group groups[] = {
    OPT_OWN_GROUP("Prediction", options),
    OPT_GROUP(choose_options, predict_args, choose),
    NETWORK_GROUPS(predict_args),
};
static const opt_positional positionals[] = {
    DATA_POSITIONAL(predict_args),
};

const command command_predict = {
    .name = "predict",
    .summary = "write a checkpoint's prediction for every sample, a row each",
    .text =
        "Writes one row of CSV, or with --json one line of JSON, for every sample of DATA, or of its test "
        "split if it has one, in order: number in the data, name, label (the class that DATA gives it, if "
        "any), the likeliest class, its probability. With a network with targets (train "
        "--loss) a row has the probability of each label and the numbers of the labels above 0.5, or the "
        "values. Pictures are prepared as in evaluation. DATA needs no labels, and a folder of pictures no "
        "folders of classes: folders with the names of classes are the labels. A sample that cannot be "
        "read has a row with the reason, and makes the exit status 3.",
    .examples = "  millrace predict photos --checkpoint run1\n"
                "  millrace predict photos --checkpoint run1 --top 5 --out photos.csv\n",
    .positionals = positionals,
    .positional_count = OPT_COUNT(positionals),
    .groups = groups,
    .group_count = OPT_COUNT(groups),
    .args_bytes = sizeof(predict_args),
    .given_at = offsetof(predict_args, given),
    .alone = true,
    .run = run,
};
