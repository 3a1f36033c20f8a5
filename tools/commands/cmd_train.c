/* tools/commands/cmd_train.c: `millrace train DATA --model M`. The work is mr_fit(); here are the options,
 * whose the folder of checkpoints is, the header, the table and the verdict. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
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
#include "tools/commands/train_header.h"
#include "tools/session/elastic.h"
#include "tools/session/goal.h"
#include "tools/session/odd_list.h"
#include "tools/session/rank_list.h"
#include "tools/session/session.h"
#include "tools/session/show_lr.h"
#include "tools/session/trace_window.h"
#include "tools/session/tune.h"
#include "tools/session/world.h"
#include "tools/session/world_trace.h"
#include "tools/watch/live.h"
#include "tools/watch/step_line.h"
#include "tools/watch/watch.h"

typedef struct train_args {
    const char *val, *checkpoint, *trace;
    begin_args begin;
    bool resume, force, override;
    uint64_t checkpoint_steps, max_steps;
    uint32_t keep, patience, warmup_steps;
    double hold_out; /* NAN: not given */
    goal_args goal;
    uint32_t sync; /* one way so far: names what --sync will choose from */
    watch_args watch;
    tune_args tune;
    trace_args tracing;
    show_args show;
    rank_args rank;
    elastic_args elastic;
    session_args shared;
    opt_given given;
} train_args;

typedef struct train_run {
    const train_args *args;
    tool_world world;
    elastic *elastic;    /* not NULL; its muster says whether the run is */
    world_clock clock;   /* of the trace */
    bool from_memory;    /* resumed from the snapshot that rank 0 holds */
    uint64_t reached;    /* steps of the run when the world before was left, by any of its processes */
    char own_list[4096]; /* of bad samples, of a process that is not the first */
    session_args shared; /* of args, with the checkpoint's settings where the user gave none */
    uint32_t patience;   /* the same */
    double goal;         /* the same: accuracy to stop at */
    resume_point point;
    run_args run; /* with the model's settings filled in */
    mr_run_folder *folder;
    tool_session s;
    char taken[64], held_out[64]; /* with --hold-out: the training samples, and the others, in --take's syntax
                                   */
    mr_source *val_src;
    mr_loader *val;
    mr_budget *budget; /* of both loaders; NULL: there is one */
    bad_watch val_bad;
    tune_run tune;
    bool resumed, complete; /* complete: every epoch was done before */
    char from[512];         /* checkpoint resumed from */
    mr_checkpoint_info start;
    session_begin begin;
    frozen_count frozen;
    progress_bar bar;
    watch *watch;          /* or NULL */
    bool live_wanted;      /* and possible */
    live_view *live;       /* or NULL: there is a bar */
    char title[256];       /* of the view */
    mr_record *record;     /* of steps, for the view */
    mr_step_report newest; /* steps: 0 before the first */
    uint64_t newest_ns;    /* when it came */
    uint64_t start_ns;
    uint64_t epochs_reported, last_reported;
    uint64_t first_step, last_step; /* of the whole run, from 1; 0: none yet */
    double eval_at[GOAL_POINTS_MOST];
    uint32_t eval_at_count;
} train_run;

/* ---- the folder of checkpoints, and what to go on from ---- */

/* *is: a folder of checkpoints may be there already. */
static int is_folder(const char *path, bool *is)
{
    struct stat st;
    mr_error err = MR_ERROR_INIT;
    *is = path && stat(path, &st) == 0;
    if (*is) *is = S_ISDIR(st.st_mode);
    else if (path && errno != ENOENT && errno != ENOTDIR) {
        mr_error_sys(&err, errno, "cannot look at the folder for checkpoints");
        mr_error_at(&err, path, MR_NOWHERE, MR_NOWHERE);
    }
    return exit_status(err.code, &err);
}

/* Nobody else writes there from here on. Whoever had it in the world before may be about to end, or stopped:
 * then it is taken over, but not back again. */
static int take_folder(train_run *r)
{
    enum { PATIENCE_S = 2, PAUSE_MS = 100 };
    mr_error err = MR_ERROR_INIT;
    if (!r->args->checkpoint || r->folder || !r->world.first) return EXIT_DONE;
    const uint64_t begun_ns = clock_ns();
    int rc = mr_run_folder_open(&r->folder, r->args->checkpoint, &err);
    while (rc == MR_EEXIST && r->elastic->worlds > 1 && seconds_since(begun_ns) < PATIENCE_S &&
           !interrupt_flag) {
        poll(NULL, 0, PAUSE_MS);
        rc = mr_run_folder_open(&r->folder, r->args->checkpoint, &err);
    }
    if (rc == MR_EEXIST && r->elastic->worlds > 1 && !r->elastic->lost_folder)
        rc = mr_run_folder_take_over(&r->folder, r->args->checkpoint, r->elastic->snapshot, &err);
    return exit_status(rc, &err);
}

static int check_unused(const train_run *r)
{
    mr_error err = MR_ERROR_INIT;
    char name[4096];
    const int rc = mr_run_folder_find_any(r->folder, name, sizeof name, &err);
    if (rc == MR_ENOENT) return EXIT_DONE;
    if (rc) return exit_status(rc, &err);
    exit_code = MR_EEXIST;
    say("%s: this folder holds the checkpoints of a run; --resume goes on with it, --force begins a new one "
        "and "
        "moves them to a folder in it (old-1, ...), or name another folder",
        name);
    return EXIT_FAILED;
}

static int find_checkpoint(train_run *r)
{
    const train_args *a = r->args;
    mr_error err = MR_ERROR_INIT;
    char note[1024] = "";
    const int rc =
        mr_checkpoint_find(a->checkpoint, r->from, sizeof r->from, &r->start, note, sizeof note, &err);
    if (note[0]) say("%s", note);
    if (rc == MR_ENOENT && note[0]) { /* starting over would replace what may still be rescued */
        say("%s: no whole checkpoint in this folder; --force instead of --resume starts from the beginning "
            "and moves "
            "them aside",
            a->checkpoint);
        return EXIT_FAILED;
    }
    if (rc == MR_ENOENT) {
        say("%s: no checkpoint yet; starting from the beginning", a->checkpoint);
        return EXIT_DONE;
    }
    if (rc) return exit_status(rc, &err);
    r->resumed = true;
    if (!options_was_given(&a->given, "patience")) r->patience = r->start.patience;
    if (!options_was_given(&a->given, "stop-at-accuracy")) r->goal = r->start.stop_at_accuracy;
    return resume_fill(&r->point, &r->shared);
}

/* Lock an existing folder before looking at its contents. */
static int look_into_folder(train_run *r)
{
    const train_args *a = r->args;
    const char *needs = a->resume ? "--resume" : a->override ? "--override" : a->force ? "--force" : NULL;
    if (!a->checkpoint && needs) {
        say("%s needs --checkpoint DIR, where the run left its state", needs);
        return EXIT_MISUSED;
    }
    if (a->begin.skip && !a->begin.init) {
        say("--init-skip needs --init: it says which layers do not come from there");
        return EXIT_MISUSED;
    }
    if (a->override && !a->resume) {
        say("--override needs --resume: it changes what a run goes on with");
        return EXIT_MISUSED;
    }
    bool there;
    int status = is_folder(a->checkpoint, &there);
    if (status) return status;
    if (!there) {
        if (a->resume) say("%s: no checkpoint yet; starting from the beginning", a->checkpoint);
        return EXIT_DONE;
    }
    status = take_folder(r);
    if (status) return status;
    if (a->resume) return find_checkpoint(r);
    return a->force ? EXIT_DONE : check_unused(r);
}

/* In a later world: what this process has kept, unless whoever wrote checkpoints was farther. */
static int look_into_memory(train_run *r)
{
    mr_error err = MR_ERROR_INIT;
    mr_checkpoint_info on_disk;
    if (!mr_snapshot_info(r->elastic->snapshot, &r->start)) return look_into_folder(r);
    r->start.net_bytes = r->elastic->net_bytes;
    bool there;
    int status = is_folder(r->args->checkpoint, &there);
    if (status == EXIT_DONE && there) status = take_folder(r);
    if (status) return status;
    const int rc =
        there ? mr_checkpoint_find(r->args->checkpoint, r->from, sizeof r->from, &on_disk, NULL, 0, &err)
              : MR_ENOENT;
    r->resumed = true;
    r->from_memory = rc != MR_OK || on_disk.updates <= r->start.updates ||
                     memcmp(on_disk.run, r->start.run, sizeof on_disk.run) != 0;
    if (r->from_memory) snprintf(r->from, sizeof r->from, "memory");
    else r->start = on_disk;
    r->patience = r->start.patience;
    r->goal = r->start.stop_at_accuracy;
    return resume_fill(&r->point, &r->shared);
}

/* The network of a checkpoint, where no name stands for it. */
static int read_net(train_run *r)
{
    mr_error err = MR_ERROR_INIT;
    elastic *e = r->elastic;
    mr_net *net;
    size_t bytes = 0;
    if (e->net) return EXIT_DONE; /* of a world before */
    int rc = mr_checkpoint_net(r->from, &net, &err);
    if (rc == MR_OK) rc = mr_net_encode(net, &e->net, &bytes, &err);
    e->net_bytes = (uint32_t)bytes;
    mr_net_destroy(net);
    return exit_status(rc, &err);
}

/* The first process has it, and gives it to the others. */
static int take_net(train_run *r)
{
    mr_error err = MR_ERROR_INIT;
    elastic *e = r->elastic;
    mr_net *net;
    if (!r->resumed || (!r->start.net_bytes && mr_model_find(r->start.model))) return EXIT_DONE;
    int status = r->world.first ? read_net(r) : EXIT_DONE;
    status = world_share(&r->world, status, &e->net_bytes, sizeof e->net_bytes);
    if (status == EXIT_DONE && !e->net) e->net = malloc(e->net_bytes);
    if (status == EXIT_DONE && !e->net) status = exit_no_memory("the network");
    status = world_share(&r->world, status, e->net, e->net_bytes);
    if (status) return status;
    const int rc = mr_net_decode(&net, r->start.model, e->net, e->net_bytes, &err);
    if (rc) return exit_status(rc, &err);
    if (mr_net_takes_numbers(net) && !options_was_given(&r->args->given, "channels"))
        r->shared.run.channels = 0;
    session_take_net(&r->s, net, &r->start);
    return EXIT_DONE;
}

/* ---- validation data ---- */

/* Refuse a test split as training data unless the user names it: it would be an accident, or validate on
 * training samples. */
static int check_part(const train_run *r)
{
    const mr_source_info *info = mr_source_info_of(r->s.src);
    if (!info->only_test) return EXIT_DONE;
    say("%s: there is a test or validation part here, but no train part: name the training data; --split "
        "test "
        "trains on this part nevertheless, without validating",
        info->path);
    return EXIT_FAILED;
}

/* --hold-out cuts the taken samples in two. */
static int hold_out(train_run *r)
{
    const train_args *a = r->args;
    double from, to;
    if (isnan(a->hold_out)) return EXIT_DONE;
    if (a->val) {
        say("--hold-out validates on a part of the data, --val on others: give one of them");
        return EXIT_MISUSED;
    }
    if (!(a->hold_out > 0 && a->hold_out < 1)) {
        say("--hold-out: expected a part of the samples, above 0 and below 1, found %g", a->hold_out);
        return EXIT_MISUSED;
    }
    const int status = setup_take(a->shared.data_opts.take, &from, &to);
    if (status) return status;
    const double cut = to - a->hold_out * (to - from);
    snprintf(r->taken, sizeof r->taken, "%.17g:%.17g", from, cut);
    snprintf(r->held_out, sizeof r->held_out, "%.17g:%.17g", cut, to);
    r->shared.data_opts.take = r->taken;
    return EXIT_DONE;
}

/* Class numbers begin at the smallest of both sets: in one of them the first class may be missing. */
static int settle_classes(train_run *r, const char *path, const data_args *d)
{
    mr_source *val = NULL;
    int64_t first = 0;
    const mr_source_info *info = mr_source_info_of(r->s.src);
    if (r->resumed || !session_tells_classes(&r->s) || !setup_asks_where(info, d)) return EXIT_DONE;
    int status = path ? setup_source_beside(&val, path, d) : EXIT_DONE;
    if (status == EXIT_DONE) status = setup_label_start(r->s.src, val, &first);
    if (status == EXIT_DONE)
        status = session_number_from(&r->s, r->args->shared.data, &r->shared.data_opts, first);
    mr_source_close(val);
    return status;
}

/* --val or --hold-out, else the test part that the data brings, else none: then *path is NULL. */
static void find_val(train_run *r, data_args *d, const char **path)
{
    const train_args *a = r->args;
    const mr_source_info *info = mr_source_info_of(r->s.src);
    const bool own = a->val != NULL, held = r->held_out[0];
    *path = NULL;
    if (own && strcmp(a->val, "none") == 0) return;
    if (own && info->has_test && d->split != MR_SPLIT_TEST)
        say("%s: its test or validation part is not used: --val %s", info->path, a->val);
    if (held && info->has_test && d->split != MR_SPLIT_TEST)
        say("%s: its test or validation part is not used: --hold-out", info->path);
    if (!own && !held && (!info->has_test || d->split == MR_SPLIT_TEST)) return;
    d->take = held ? r->held_out : NULL;
    if (!held) d->split = own ? MR_SPLIT_AUTO : MR_SPLIT_TEST;
    else if (d->split == MR_SPLIT_AUTO && info->has_test) d->split = MR_SPLIT_TRAIN; /* the same one */
    *path = own ? a->val : a->shared.data;
}

static int open_val_source(train_run *r)
{
    const char *path;
    data_args d = r->shared.data_opts;
    session_fill_data(&r->s, &d);
    find_val(r, &d, &path);
    const int status = settle_classes(r, path, &d);
    if (status || !path) return status;
    const mr_source_info *info = mr_source_info_of(r->s.src);
    const bool tells_classes = session_tells_classes(&r->s); /* or it is all the same how many there are */
    const data_like like = {info->path, info->label_offset, tells_classes ? info->class_names : NULL,
                            tells_classes ? session_class_count(&r->s) : 0};
    return setup_source_like(&r->val_src, path, &d, &like);
}

static int check_evaluations(const train_run *r)
{
    const goal_args *g = &r->args->goal;
    if (r->val_src || (!g->eval_steps && !g->eval_at)) return EXIT_DONE;
    say("--%s: there is no validation data; --val DATA names them", g->eval_steps ? "eval-steps" : "eval-at");
    return EXIT_MISUSED;
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
    cfg.repeats = 0;
    cfg.tail = MR_TAIL_KEEP;
    cfg.prefetch = cfg.prefetch > 2 ? 2 : cfg.prefetch; /* it waits full while training runs: no more memory
                                                           than needed */
    cfg.start_epoch = cfg.start_step = 0;
    cfg.trace = NULL;
    cfg.tune = 0;
    cfg.record = NULL;
    cfg.cache = MR_CACHE_OFF; /* the cache's memory is meant for the training data */
    const run_args no_list = {0};
    bad_watch_open(&r->val_bad, r->val_src, &no_list, &cfg);
    const int rc = mr_loader_open(&r->val, r->val_src, &cfg, &err);
    if (rc == MR_ELIMIT && !err.file[0])
        mr_error_at(&err, mr_source_info_of(r->val_src)->path, MR_NOWHERE, MR_NOWHERE);
    return exit_status(rc, &err);
}

/* What --memory says is for both loaders together. */
static int share_budget(train_run *r)
{
    if (!r->val_src) return EXIT_DONE;
    if (mr_budget_create(&r->budget, r->args->shared.loader.memory_bytes) != MR_OK)
        return exit_no_memory("the loaders' budget");
    r->s.loader_cfg.budget = r->budget;
    return EXIT_DONE;
}

/* ---- opening ---- */

/* A resumed run begins where its checkpoint was made. */
static void set_start(train_run *r)
{
    mr_loader_config *cfg = &r->s.loader_cfg;
    if (!r->resumed) return;
    cfg->start_epoch = r->start.epoch;
    cfg->start_step = r->start.step;
    const bool over = r->start.epoch >= r->run.epochs;
    r->complete = over && !(r->start.validation_pending && r->val_src);
    if (over) cfg->epochs = r->start.epoch + 1; /* none of it is taken */
}

/* How far the world before was. */
static int share_reached(train_run *r)
{
    uint64_t *all = calloc(r->world.at.size, sizeof *all);
    if (!all) return exit_no_memory("how far the run was");
    const int status = world_gather(&r->world, &r->elastic->reached, sizeof *all, all);
    for (uint32_t k = 0; status == EXIT_DONE && k < r->world.at.size; k++)
        if (all[k] > r->reached) r->reached = all[k];
    free(all);
    return status;
}

/* Send the first process's findings in the folder to all. */
static int look_into_folder_together(train_run *r)
{
    struct {
        mr_checkpoint_info start;
        char from[sizeof r->from];
        uint32_t patience, worlds;
        uint64_t begun_epoch, begun_step;
        double goal;
        bool resumed, from_memory;
    } found = {.resumed = false};
    int status = !r->world.first          ? EXIT_DONE
                 : r->elastic->worlds > 1 ? look_into_memory(r)
                                          : look_into_folder(r);
    if (status == EXIT_DONE && r->elastic->worlds <= 1) {
        r->elastic->begun_epoch = r->start.epoch;
        r->elastic->begun_step = r->start.step;
    }
    if (!r->world.world) return status;
    found.start = r->start;
    found.begun_epoch = r->elastic->begun_epoch;
    found.begun_step = r->elastic->begun_step;
    found.patience = r->patience;
    found.goal = r->goal;
    found.worlds = r->elastic->worlds;
    found.resumed = r->resumed;
    found.from_memory = r->from_memory;
    memcpy(found.from, r->from, sizeof found.from);
    status = world_share(&r->world, status, &found, sizeof found);
    if (status == EXIT_DONE) { /* of who has come later, too */
        r->elastic->worlds = found.worlds;
        r->elastic->begun_epoch = found.begun_epoch;
        r->elastic->begun_step = found.begun_step;
    }
    if (status == EXIT_DONE && r->elastic->muster) status = share_reached(r);
    if (status || r->world.first || !found.resumed) return status;
    r->from_memory = found.from_memory;
    r->start = found.start;
    r->patience = found.patience;
    r->goal = found.goal;
    r->resumed = true;
    memcpy(r->from, found.from, sizeof r->from);
    return resume_fill(&r->point, &r->shared);
}

static int load(train_run *r)
{
    mr_error err = MR_ERROR_INIT;
    if (!r->from_memory) return session_load(&r->s, r->from, &r->start);
    return exit_status(mr_trainer_restore(r->s.trainer, r->elastic->snapshot, &err), &err);
}

/* A run that goes on has its own weights: those it began with are not asked for again, so that one command
 * line begins it and goes on with it. */
static int begin_with(train_run *r)
{
    const train_args *a = r->args;
    return a->begin.init ? session_begin_with(&r->s, a->begin.init, a->begin.skip, &r->begin) : EXIT_DONE;
}

/* Read the checkpoint's class weights, which the first process has; free *weights; NULL: no weights.
 */
static int read_weights(const train_run *r, float **weights)
{
    const uint32_t count = r->start.class_weight_count;
    mr_checkpoint_info kept;
    mr_error err = MR_ERROR_INIT;
    uint32_t found = 0;
    int status = EXIT_DONE;
    *weights = NULL;
    if (count == 0) return EXIT_DONE;
    if (r->world.first && !r->from_memory)
        status = exit_status(mr_checkpoint_class_weights(r->from, weights, &found, &err), &err);
    if (status == EXIT_DONE && !*weights) {
        *weights = calloc(count, sizeof **weights);
        if (!*weights) status = exit_no_memory("weights of classes");
    }
    if (status == EXIT_DONE && r->from_memory && r->world.first &&
        mr_snapshot_info(r->elastic->snapshot, &kept))
        memcpy(*weights, kept.class_weights, count * sizeof **weights);
    return r->world.world ? world_share(&r->world, status, *weights, count * sizeof **weights) : status;
}

/* The network, and the weights of its classes. */
static int open_net(train_run *r)
{
    float *weights = NULL;
    int status = session_open_net(&r->s);
    if (status || !r->resumed) return status;
    status = read_weights(r, &weights);
    if (status == EXIT_DONE) return resume_weights(&r->point, &r->s, weights, r->start.class_weight_count);
    free(weights);
    return status;
}

static int open_run(train_run *r)
{
    const session_args *a = &r->shared;
    tool_session *s = &r->s;
    int status = look_into_folder_together(r);
    if (status == EXIT_DONE) status = take_net(r);
    if (status == EXIT_DONE) status = hold_out(r);
    s->world = r->world.world;
    s->part = a->part;
    s->objective.first.later = !r->resumed;
    s->objective.first.known = r->resumed;
    s->objective.first.number = r->start.label_offset;
    if (r->elastic->muster && !s->part.parts) s->part.parts = r->elastic->max; /* whoever computes them */
    if (status == EXIT_DONE) status = session_open_to_train(s, a, &r->run);
    if (status == EXIT_DONE) status = check_part(r);
    if (status == EXIT_DONE && r->shared.data_opts.take && r->world.first) setup_tell_untrained(s->src);
    if (status == EXIT_DONE && r->resumed) status = resume_rule(&r->point, a, s, &r->run);
    if (status == EXIT_DONE) status = open_val_source(r);
    if (status == EXIT_DONE) status = check_evaluations(r);
    r->run.bad_list = world_own_file(&r->world, r->run.bad_list, r->own_list, sizeof r->own_list);
    if (status == EXIT_DONE) status = session_set_loader(s, a, &r->run, true, r->resumed ? r->start.w : 0);
    if (status == EXIT_DONE) status = share_budget(r);
    if (status) return status;
    set_start(r);
    tune_begin(&r->tune, &r->args->tune, s, &r->args->given);
    s->loader_cfg.record = r->record;
    status = session_open_loader(s);
    if (status == EXIT_DONE && r->resumed)
        status = resume_check_augment(&r->point, mr_loader_info_of(s->loader)->augment);
    if (status == EXIT_DONE) status = open_val_loader(r);
    if (status == EXIT_DONE) status = open_net(r);
    if (status == EXIT_DONE) status = session_open_network(s, r->run.epochs, false);
    if (status == EXIT_DONE && r->resumed) status = resume_check_convolution(&r->point, a, s, r->from);
    if (status == EXIT_DONE) status = r->resumed ? load(r) : begin_with(r);
    if (status == EXIT_DONE) status = train_header_count_frozen(s, &r->frozen);
    return status;
}

/* ---- reports ---- */

static void put_header(const train_run *r)
{
    const train_header h = {.s = &r->s,
                            .val = r->val_src,
                            .run = &r->run,
                            .convolution = r->shared.device.convolution,
                            .world = &r->world,
                            .from = r->resumed ? r->from : NULL,
                            .begin = &r->begin,
                            .frozen = &r->frozen,
                            .start_epoch = r->start.epoch,
                            .start_step = r->start.step};
    if (r->args->shared.output.json) train_header_json(&h);
    else train_header_text(&h);
}

/* Steps of the run at which this world begins. */
static uint64_t begins_at(const train_run *r)
{
    return r->start.epoch * mr_loader_info_of(r->s.loader)->steps_per_epoch + r->start.step;
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
        json_u64(&j, "updates", r->resumed ? r->start.updates : 0);
        json_text(&j, "from", r->resumed ? r->from : NULL);
        json_u64(&j, "steps_again", again);
        json_real(&j, "seconds", seconds);
        json_end(&j);
        return;
    }
    printf("world    %u: %u rank%s%s%s, from step %" PRIu64 ", %" PRIu64 " step%s done again, after %.1f s\n",
           e->worlds, size, size == 1 ? "" : "s", e->why[0] ? ", " : "", e->why,
           r->resumed ? r->start.updates : 0, again, again == 1 ? "" : "s", seconds);
}

static void on_step(void *context, uint64_t epoch, uint64_t step, uint64_t steps_per_epoch,
                    double samples_per_s)
{
    train_run *r = context;
    char note[192];
    const mr_step_report *newest = r->newest.steps ? &r->newest : NULL;
    elastic_look(r->elastic);
    r->last_step = epoch * steps_per_epoch + step + 1;
    if (!r->first_step) r->first_step = r->last_step;
    step_note(newest, newest ? seconds_since(r->newest_ns) : 0, epoch, r->run.epochs, samples_per_s, note,
              sizeof note);
    if (!r->live_wanted)
        progress_show(&r->bar, epoch * steps_per_epoch + step, r->run.epochs * steps_per_epoch, note);
    live_progress(r->live, epoch, step + 1, steps_per_epoch);
    watch_progress(r->watch, epoch, step + 1, steps_per_epoch);
}

static void on_step_report(void *context, const mr_step_report *report)
{
    train_run *r = context;
    r->newest = *report;
    r->newest_ns = clock_ns();
    watch_step(r->watch, report);
    live_step(r->live, report);
    if (!report->due || !r->args->shared.output.json) return;
    progress_hold();
    step_json(report);
    progress_release();
}

static void on_epoch(void *context, const mr_report *report)
{
    train_run *r = context;
    r->epochs_reported++;
    r->last_reported = report->epoch;
    watch_epoch(r->watch, report);
    progress_hold();
    if (r->args->shared.output.json) {
        json_line j = json_begin(stdout, "epoch");
        json_u64(&j, "batch", mr_loader_info_of(r->s.loader)->batch);
        json_u64(&j, "replicas", session_replicas(&r->s));
        json_u64(&j, "seed", r->run.seed);
        report_json(&j, report, session_replicas(&r->s));
        json_end(&j);
    } else {
        report_table_row(report, r->val != NULL);
    }
    progress_release();
}

static void on_eval(void *context, const mr_eval_report *report)
{
    train_run *r = context;
    watch_eval(r->watch, report);
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
    if (r->args->shared.output.json) {
        json_line j = json_begin(stdout, "train");
        json_bool(&j, "complete", whole);
        json_u64(&j, "epochs", r->epochs_reported);
        json_real(&j, "total_seconds", seconds_since(r->start_ns));
        json_text(&j, "weights", hash);
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
    if (last->steps) printf("verdict  %s\n", last->verdict);
    printf("weights  %s after %.1f s%s\n", hash, seconds_since(r->start_ns),
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
    r->live_wanted = true;
    return mr_record_create(&r->record, 1) == MR_OK ? EXIT_DONE : exit_no_memory("the live view");
}

/* The view, or the bar. */
static int start_showing(train_run *r)
{
    if (!r->live_wanted) {
        progress_start(&r->bar, "train", "steps", r->args->shared.output.quiet);
        r->bar.untimed = true; /* the note has it */
        return EXIT_DONE;
    }
    snprintf(r->title, sizeof r->title, "millrace train: %s on %s", r->s.model->name,
             shown_text(mr_source_info_of(r->s.src)->path));
    const live_run what = {.title = r->title,
                           .loader = r->s.loader,
                           .val = r->val,
                           .src = r->s.src,
                           .record = r->record,
                           .devices = session_replicas(&r->s),
                           .epochs = r->run.epochs};
    return live_open(&r->live, &what);
}

static void stop_showing(train_run *r)
{
    live_close(r->live);
    r->live = NULL;
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
    return (r->start.epoch - e->begun_epoch) * each + r->start.step - e->begun_step;
}

static int fit(train_run *r)
{
    const train_args *a = r->args;
    mr_error err = MR_ERROR_INIT;
    mr_fit_config cfg;
    mr_report last = {0};
    mr_fit_defaults(&cfg);
    cfg.epochs = r->run.epochs;
    cfg.val = r->val;
    cfg.checkpoint_dir = a->checkpoint;
    cfg.checkpoint_steps = a->checkpoint_steps;
    cfg.keep = a->keep;
    cfg.patience = r->patience;
    cfg.stop_at_accuracy = r->goal;
    cfg.eval_steps = a->goal.eval_steps;
    cfg.eval_at = r->eval_at;
    cfg.eval_at_count = r->eval_at_count;
    cfg.on_eval = on_eval;
    cfg.max_steps = a->max_steps;
    cfg.steps_before = steps_before(r);
    cfg.warmup_steps = a->warmup_steps;
    cfg.stop = &interrupt_flag;
    cfg.callbacks = (mr_callbacks){r, on_step, on_epoch, on_message};
    cfg.data = mr_source_info_of(r->s.src);
    cfg.folder = r->folder;
    cfg.replace = a->force && !(r->elastic->worlds > 1 && r->resumed);
    cfg.snapshot = r->elastic->snapshot;
    cfg.on_step = on_step_report;
    cfg.report_steps = a->watch.log_steps;
    if (r->complete && r->world.first)
        say("%s: all %" PRIu64 " epochs are done; a larger --epochs goes on", r->from, r->run.epochs);
    else if (r->elastic->worlds > 1) put_world(r);
    else put_header(r);
    fflush(stdout);
    r->start_ns = clock_ns();
    const int shown = start_showing(r);
    if (shown) return shown;
    const int rc = mr_fit(r->s.trainer, r->s.loader, &cfg, &last, &err);
    stop_showing(r);
    r->elastic->reached = r->last_step ? r->last_step : begins_at(r);
    int regroup;
    if (rc == MR_ECANCELED && elastic_takes_stop(r->elastic, &r->world, &regroup)) return regroup;
    if (r->world.first) tune_end(&r->tune, &r->s, &a->tune);
    const bool part_reported = r->epochs_reported && r->last_reported == last.epoch;
    if (last.steps && !part_reported && (rc == MR_OK || rc == MR_ECANCELED))
        on_epoch(r, &last); /* an epoch that was cut short */
    int told = rc == MR_OK || rc == MR_ECANCELED ? footer(r, &last, rc == MR_OK) : EXIT_DONE;
    if (rc == MR_EEXIST)
        say("--force moves what is not of this run to a folder in %s (old-1, ...)", a->checkpoint);
    if (rc) {
        const int status = exit_status(rc, &err);
        objective_explain(&r->s.objective, r->s.src, &err);
        return status;
    }
    if (!last.diverged || last.simulated) return told;
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
    const watch_run what = {.loader = r->s.loader,
                            .sources = {r->s.src, r->val_src},
                            .model = r->s.model->name,
                            .data = mr_source_info_of(r->s.src)->path,
                            .device = mr_device_info_of(r->s.devices[0])->name,
                            .replicas = session_replicas(&r->s),
                            .epochs = r->run.epochs,
                            .updates = r->resumed ? r->start.updates : 0,
                            .resume = r->args->resume || r->elastic->worlds > 1};
    return watch_open(&r->watch, &r->args->watch, &what);
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
    } else if (again && a->checkpoint) { /* continue the files of the previous world */
        first_only = *a;
        first_only.resume = true;
        a = r->args = &first_only;
    }
    status = setup_output("trace", a->trace);
    if (status == EXIT_DONE) status = goal_points(&a->goal, r->eval_at, &r->eval_at_count);
    if (status == EXIT_DONE) status = check_names(a);
    if (status == EXIT_DONE) status = prepare_live(r);
    if (status) return status;
    status = trace_window_open(&r->s.trace, &a->tracing, a->trace, r->clock.used, "--trace FILE");
    if (status == EXIT_DONE) status = open_run(r);
    if (status == EXIT_DONE) status = setup_not_input("trace", a->trace, r->s.src);
    if (status == EXIT_DONE) status = setup_not_input("trace", a->trace, r->val_src);
    if (status == EXIT_DONE) status = take_folder(r);
    const bool may_write = status == EXIT_DONE; /* where another run is, its trace is, too */
    if (status == EXIT_DONE) status = open_watch(r);
    if (status == EXIT_DONE) status = fit(r);
    status = watch_close(r->watch, status);
    session_close_trainer(&r->s);
    r->elastic->lost_folder = r->folder && mr_run_folder_was_lost(r->folder);
    mr_run_folder_close(r->folder);
    mr_loader_close(r->val);
    mr_source_close(r->val_src);
    session_close(&r->s);
    mr_budget_destroy(r->budget);
    const int written = may_write ? write_trace(r, a->trace, status) : EXIT_DONE;
    if (status == EXIT_DONE) status = written;
    if (may_write && r->world.first) trace_window_tell(&a->tracing, r->s.trace, r->first_step, r->last_step);
    mr_trace_destroy(r->s.trace);
    mr_record_destroy(r->record);
    status = bad_watch_close(&r->s.bad, status);
    status = bad_watch_close(&r->val_bad, status);
    r->args = NULL; /* was here */
    return status;
}

static void begin_world(train_run *r, const train_args *a, elastic *e)
{
    *r = (train_run){.args = a,
                     .shared = a->shared,
                     .patience = a->patience,
                     .goal = a->goal.stop_at_accuracy,
                     .elastic = e,
                     .s.io_reported = true,
                     .s.compute = &a->shared.compute};
    r->point = (resume_point){.from = &r->start, .given = &a->given, .override = a->override};
    exit_code = MR_OK;
}

static int run_alone(const train_args *a, elastic *e)
{
    train_run r;
    begin_world(&r, a, e);
    const int status = world_join(&r.world, &a->rank);
    return status ? status : world_leave(&r.world, train(&r, false));
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
    const int status = show_lr(&s, &a->shared, &a->show, a->watch.log_steps);
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
        say("--show and --resume: what is shown is the schedule of these options, from the beginning; leave "
            "--resume out");
        return EXIT_MISUSED;
    }
    if (a->show.show) return show(a);
    int status = elastic_open(&e, &a->elastic, &a->rank);
    if (status == EXIT_DONE) status = e.muster ? run_elastic(a, &e) : run_alone(a, &e);
    elastic_close(&e);
    return status;
}

static const char *const sync_modes[] = {"sync", NULL};
static const opt options[] = {
    OPT(train_args, val, TEXT, .option = "val", .value = "DATA",
        .help = "validation data; none: do not (default: the test part of DATA, if any)"),
    OPT(train_args, hold_out, REAL, .option = "hold-out", .most = 1, .value = "PART",
        .help = "validate on this part of DATA, 0.1 for a tenth, and train on the rest"),
    OPT(train_args, checkpoint, TEXT, .option = "checkpoint", .value = "DIR",
        .help = "folder for weights and state, written at the end of each epoch"),
    OPT(train_args, checkpoint_steps, U64, .option = "checkpoint-steps", .most = MRI_ANY, .standard = "0",
        .help = "write a checkpoint after so many steps, too; 0: do not"),
    OPT(train_args, keep, U32, .option = "keep", .least = 1, .most = 1000000, .standard = "3",
        .help = "newest checkpoints that stay, the best besides"),
    OPT(train_args, resume, FLAG, .option = "resume",
        .help = "go on from the newest checkpoint of --checkpoint, with its settings"),
    OPT(train_args, override, FLAG, .option = "override",
        .help = "with --resume: what is given here replaces the checkpoint's settings"),
    OPT(train_args, force, FLAG, .option = "force",
        .help = "move other runs' checkpoints in --checkpoint to a folder in it"),
    OPT(train_args, patience, U32, .option = "patience", .most = 1000000, .standard = "0",
        .help = "stop after N epochs without a lower val_loss; 0: never"),
    OPT(train_args, max_steps, U64, .option = "max-steps", .most = MRI_ANY, .standard = "0",
        .help = "stop after so many steps; 0: no limit"),
    OPT(train_args, warmup_steps, U32, .option = "warmup-steps", .most = 1000000, .standard = "3",
        .help = "first steps of an epoch that are left out of the rates"),
    OPT(train_args, sync, CHOICE, .option = "sync", .standard = "sync", .choices = sync_modes,
        .help = "how replicas exchange gradients: all, after every step"),
    OPT(train_args, trace, TEXT, .option = "trace", .value = "FILE",
        .help = "what every stage did when, a Chrome trace for ui.perfetto.dev"),
};
static const opt_group groups[] = {
    OPT_OWN_GROUP("Training", options),
    BEGIN_GROUP(train_args, begin),
    GOAL_GROUP(train_args, goal),
    WATCH_GROUP(train_args, watch),
    SHOW_GROUP(train_args, show),
    MODEL_GROUP(train_args, shared.model),
    UPDATE_GROUP(train_args, shared.model),
    OBJECTIVE_GROUP(train_args, shared.objective),
    RUN_GROUP(train_args, shared.run),
    LOADER_GROUP(train_args, shared.loader),
    TUNE_GROUP(train_args, tune),
    TRACE_GROUP(train_args, tracing),
    DEVICE_GROUP(train_args, shared.device),
    PART_GROUP(train_args, shared.part),
    RANK_GROUP(train_args, rank),
    ELASTIC_GROUP(train_args, elastic),
    COMPUTE_GROUP(train_args, shared.compute),
    DATA_GROUP(train_args, shared.data_opts),
    OUTPUT_GROUP(train_args, shared.output),
};
static const opt_positional positionals[] = {
    DATA_POSITIONAL(train_args),
};

const command command_train = {
    .name = "train",
    .summary = "trains a network and tells where the time went",
    .text = "Trains a named network. Up to rounding, weights do not depend on the loader's options.\n"
            "Order and pixels are the same for any of them; a resumed run goes on with the batch it would "
            "have had.\n"
            "Of each epoch it tells: wait ms, the time the trainer was blocked on the loader; exposed ms, "
            "the time the device "
            "stood idle between steps, from the device's own events; stall %, its share.\n"
            "Ctrl-C stops after the step, writes a checkpoint where --checkpoint is given, and exits with "
            "status 130. A folder of checkpoints belongs to one run. A run that diverges is status 1.",
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
