/* tools/training/training_open.c: from options and a folder of checkpoints to a run that is open. See
 * training.h. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/cli/clock.h"
#include "tools/cli/exit.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/output.h"
#include "tools/training/train_crew.h"
#include "tools/training/training.h"

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
int training_take_folder(train_run *r)
{
    enum { PATIENCE_S = 2, PAUSE_MS = 100 };
    mr_error err = MR_ERROR_INIT;
    if (!r->args->checkpoint_dir || r->folder || !r->world.first) return EXIT_DONE;
    const uint64_t begun_ns = clock_ns();
    int rc = mr_run_folder_open(&r->folder, r->args->checkpoint_dir, &err);
    while (rc == MR_EEXIST && r->elastic->worlds > 1 && seconds_since(begun_ns) < PATIENCE_S &&
           !interrupt_flag) {
        poll(NULL, 0, PAUSE_MS);
        rc = mr_run_folder_open(&r->folder, r->args->checkpoint_dir, &err);
    }
    if (rc == MR_EEXIST && r->elastic->worlds > 1 && !r->elastic->lost_folder)
        rc = mr_run_folder_take_over(&r->folder, r->args->checkpoint_dir, r->elastic->snapshot, &err);
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
        "and moves them to a folder in it (old-1, ...), or name another folder",
        name);
    return EXIT_FAILED;
}

static int find_checkpoint(train_run *r)
{
    const train_args *a = r->args;
    mr_error err = MR_ERROR_INIT;
    char note[1024] = "";
    const int rc = mr_checkpoint_find(a->checkpoint_dir, r->origin.from, sizeof r->origin.from,
                                      &r->origin.start, note, sizeof note, &err);
    if (note[0]) say("%s", note);
    if (rc == MR_ENOENT && note[0]) { /* starting over would replace what may still be rescued */
        say("%s: no whole checkpoint in this folder; --force instead of --resume starts from the "
            "beginning and moves them aside",
            a->checkpoint_dir);
        return EXIT_FAILED;
    }
    if (rc == MR_ENOENT) {
        say("%s: no checkpoint yet; starting from the beginning", a->checkpoint_dir);
        return EXIT_DONE;
    }
    if (rc) return exit_status(rc, &err);
    r->origin.resumed = true;
    if (!options_was_given(&a->given, "patience")) r->patience = r->origin.start.patience;
    if (!options_was_given(&a->given, "stop-at-accuracy"))
        r->goal.accuracy = r->origin.start.stop_at_accuracy;
    return resume_fill(&r->origin.point, &r->shared);
}

/* An existing folder is locked before its content is read. */
static int look_into_folder(train_run *r)
{
    const train_args *a = r->args;
    const char *needs = a->resume ? "--resume" : a->override ? "--override" : a->force ? "--force" : NULL;
    if (!a->checkpoint_dir && needs) {
        say("%s needs --checkpoint DIR, where the run left its state", needs);
        return EXIT_MISUSED;
    }
    if (a->begin.skip && !a->begin.init) {
        say("--init-skip needs --init: it says which layers do not come from there");
        return EXIT_MISUSED;
    }
    if (a->override && !a->resume) {
        say("--override needs --resume: it changes the settings of a resumed run");
        return EXIT_MISUSED;
    }
    bool there;
    int status = is_folder(a->checkpoint_dir, &there);
    if (status) return status;
    if (!there) {
        if (a->resume) say("%s: no checkpoint yet; starting from the beginning", a->checkpoint_dir);
        return EXIT_DONE;
    }
    status = training_take_folder(r);
    if (status) return status;
    if (a->resume) return find_checkpoint(r);
    return a->force ? EXIT_DONE : check_unused(r);
}

/* In a later world: what this process has kept, unless whoever wrote checkpoints was farther. */
static int look_into_memory(train_run *r)
{
    mr_error err = MR_ERROR_INIT;
    mr_checkpoint_info on_disk;
    if (!mr_snapshot_info(r->elastic->snapshot, &r->origin.start)) return look_into_folder(r);
    r->origin.start.net_bytes = r->elastic->net_bytes;
    bool there;
    int status = is_folder(r->args->checkpoint_dir, &there);
    if (status == EXIT_DONE && there) status = training_take_folder(r);
    if (status) return status;
    const int rc = there ? mr_checkpoint_find(r->args->checkpoint_dir, r->origin.from, sizeof r->origin.from,
                                              &on_disk, NULL, 0, &err)
                         : MR_ENOENT;
    r->origin.resumed = true;
    r->from_memory = rc != MR_OK || on_disk.updates <= r->origin.start.updates ||
                     memcmp(on_disk.run, r->origin.start.run, sizeof on_disk.run) != 0;
    if (r->from_memory) snprintf(r->origin.from, sizeof r->origin.from, "memory");
    else r->origin.start = on_disk;
    r->patience = r->origin.start.patience;
    r->goal.accuracy = r->origin.start.stop_at_accuracy;
    return resume_fill(&r->origin.point, &r->shared);
}

/* The network of a checkpoint, where no name stands for it. */
static int read_net(train_run *r)
{
    mr_error err = MR_ERROR_INIT;
    elastic *e = r->elastic;
    mr_net *net;
    size_t bytes = 0;
    if (e->net) return EXIT_DONE; /* of a world before */
    int rc = mr_checkpoint_net(r->origin.from, &net, &err);
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
    if (!r->origin.resumed || (!r->origin.start.net_bytes && mr_model_find(r->origin.start.model)))
        return EXIT_DONE;
    int status = r->world.first ? read_net(r) : EXIT_DONE;
    status = world_share(&r->world, status, &e->net_bytes, sizeof e->net_bytes);
    if (status == EXIT_DONE && !e->net) e->net = malloc(e->net_bytes);
    if (status == EXIT_DONE && !e->net) status = exit_no_memory("the network");
    status = world_share(&r->world, status, e->net, e->net_bytes);
    if (status) return status;
    const int rc = mr_net_decode(&net, r->origin.start.model, e->net, e->net_bytes, &err);
    if (rc) return exit_status(rc, &err);
    if (mr_net_takes_numbers(net) && !options_was_given(&r->args->given, "channels"))
        r->shared.run.channels = 0;
    session_take_net(&r->s, net, &r->origin.start);
    return EXIT_DONE;
}

/* ---- validation data ---- */

/* Refuse to train on a test split by accident, and to validate on the training data. */
static int check_part(const train_run *r)
{
    const mr_source_info *info = mr_source_info_of(r->s.src);
    if (!info->only_test) return EXIT_DONE;
    say("%s: there is a test or validation part here, but no train part: name the training data; --split "
        "test trains on this part nevertheless, without validating",
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
    const int status = setup_take(a->stratify ? NULL : a->shared.data_opts.take, &from, &to);
    if (status) return status;
    const double cut = to - a->hold_out * (to - from);
    snprintf(r->taken, sizeof r->taken, "%.17g:%.17g", from, cut);
    snprintf(r->held_out, sizeof r->held_out, "%.17g:%.17g", cut, to);
    if (!a->stratify) r->shared.data_opts.take = r->taken;
    return EXIT_DONE;
}

static int check_choice(const train_args *a)
{
    if (a->stratify && isnan(a->hold_out)) {
        say("--stratify needs --hold-out: it says how samples to validate on are drawn");
        return EXIT_MISUSED;
    }
    if (a->stratify && a->choose.take_each) {
        say("--stratify and --take-each: give one of them, or --take for a share of the data");
        return EXIT_MISUSED;
    }
    if (isnan(a->hold_out) || a->stratify || a->choose.dedup == MR_COPIES_TAKE) return EXIT_DONE;
    say("--dedup with --hold-out needs --stratify: else a copy of a sample that is trained on may be among "
        "the validation samples");
    return EXIT_MISUSED;
}

/* Which samples are trained on. */
static int begin_choice(train_run *r)
{
    choose_args c = r->args->choose;
    int status = check_choice(r->args);
    if (status == EXIT_DONE) status = hold_out(r);
    c.silent = !r->world.first;
    if (r->args->stratify) c.take_each = r->taken;
    chooser_begin(&r->choice, &c, &r->shared.data_opts, r->shared.output.quiet);
    return status;
}

/* Which samples are validated on: held-out samples follow the same conditions. Other data only have their
 * classes named alike. */
static void begin_val_choice(train_run *r, data_args *d)
{
    choose_args c = r->args->choose;
    c.silent = c.lenient = true;
    c.sample = 0;
    if (!r->held_out[0]) {
        c.where = c.take_each = NULL;
        c.dedup = MR_COPIES_TAKE;
    } else if (r->args->stratify) c.take_each = r->held_out;
    chooser_begin(&r->val.choice, &c, d, r->shared.output.quiet);
}

/* Class numbers begin at the smallest number of both sets: one of them may lack the first class. */
static int settle_classes(train_run *r, const char *path, const data_args *d)
{
    mr_source *val = NULL;
    int64_t first = 0;
    const mr_source_info *info = mr_source_info_of(r->s.src);
    if (r->origin.resumed || !session_tells_classes(&r->s) || !setup_asks_where(info, d)) return EXIT_DONE;
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
    d->take = !held ? NULL : a->stratify ? d->take : r->held_out;
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
    begin_val_choice(r, &d);
    const int status = settle_classes(r, path, &d);
    if (status || !path) return status;
    const mr_source_info *info = mr_source_info_of(r->s.src);
    const bool tells_classes = session_tells_classes(&r->s); /* or it is all the same how many there are */
    const data_like like = {info->path, info->label_offset, tells_classes ? info->class_names : NULL,
                            tells_classes ? session_class_count(&r->s) : 0};
    const int opened = setup_source_like(&r->val.src, path, &d, &like);
    const char *const *names = NULL;
    const uint32_t count = mr_source_columns(r->s.src, NULL, &names);
    return opened || !r->s.objective.loss ? opened
                                          : objective_check_columns(r->val.src, names, count, info->path);
}

/* The outputs of the checkpoint's network are these columns, in this order. The first process alone has to
 * see the checkpoint; a snapshot in memory is of the same data. */
static int check_columns(const train_run *r)
{
    mr_error err = MR_ERROR_INIT;
    const char **names;
    uint32_t count;
    if (r->from_memory || !r->world.first) return EXIT_DONE;
    if (!r->origin.resumed || !r->origin.start.target_loss || !r->origin.from[0]) return EXIT_DONE;
    int status = exit_status(mr_checkpoint_class_names(r->origin.from, &names, &count, &err), &err);
    if (status == EXIT_DONE) status = objective_check_columns(r->s.src, names, count, r->origin.from);
    free(names);
    return status;
}

static int check_evaluations(const train_run *r)
{
    const goal_args *g = &r->args->goal;
    if (!r->val.src && r->world.first && options_was_given(&r->args->given, "patience"))
        say("--patience: there is no validation data, so the run goes through all epochs; --val DATA names "
            "them");
    if (r->val.src || (!g->eval_steps && !g->eval_at)) return EXIT_DONE;
    say("--%s: there is no validation data; --val DATA names them", g->eval_steps ? "eval-steps" : "eval-at");
    return EXIT_MISUSED;
}

static int open_val_loader(train_run *r)
{
    mr_error err = MR_ERROR_INIT;
    mr_loader_config cfg = r->s.loader_cfg;
    if (!r->val.src) return EXIT_DONE;
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
    cfg.cache = MR_CACHE_OFF; /* its memory is meant for the training data */
    const run_args no_list = {0};
    bad_watch_open(&r->val.bad, r->val.src, &no_list, &cfg);
    const int rc = mr_loader_open(&r->val.loader, r->val.src, &cfg, &err);
    if (rc == MR_ELIMIT && !err.file[0])
        mr_error_at(&err, mr_source_info_of(r->val.src)->path, MR_NOWHERE, MR_NOWHERE);
    return exit_status(rc, &err);
}

/* What --memory says is for both loaders together. */
static int share_budget(train_run *r)
{
    if (!r->val.src) return EXIT_DONE;
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
    if (!r->origin.resumed) return;
    cfg->start_epoch = r->origin.start.epoch;
    cfg->start_step = r->origin.start.step;
    const bool over = r->origin.start.epoch >= r->run.epochs;
    r->origin.complete = over && !(r->origin.start.validation_pending && r->val.src);
    if (over) cfg->epochs = r->origin.start.epoch + 1; /* none of it is taken */
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

/* The first process's findings in the folder, for all. */
static int look_into_folder_together(train_run *r)
{
    struct {
        mr_checkpoint_info start;
        char from[sizeof r->origin.from];
        uint32_t patience, worlds;
        uint64_t begun_epoch, begun_step;
        double goal;
        bool resumed, from_memory;
    } found = {.resumed = false};
    int status = !r->world.first          ? EXIT_DONE
                 : r->elastic->worlds > 1 ? look_into_memory(r)
                                          : look_into_folder(r);
    if (status == EXIT_DONE && r->elastic->worlds <= 1) {
        r->elastic->begun_epoch = r->origin.start.epoch;
        r->elastic->begun_step = r->origin.start.step;
    }
    if (!r->world.world) return status;
    found.start = r->origin.start;
    found.begun_epoch = r->elastic->begun_epoch;
    found.begun_step = r->elastic->begun_step;
    found.patience = r->patience;
    found.goal = r->goal.accuracy;
    found.worlds = r->elastic->worlds;
    found.resumed = r->origin.resumed;
    found.from_memory = r->from_memory;
    memcpy(found.from, r->origin.from, sizeof found.from);
    status = world_share(&r->world, status, &found, sizeof found);
    if (status == EXIT_DONE) { /* of who has come later, too */
        r->elastic->worlds = found.worlds;
        r->elastic->begun_epoch = found.begun_epoch;
        r->elastic->begun_step = found.begun_step;
    }
    if (status == EXIT_DONE && r->elastic->muster) status = share_reached(r);
    if (status || r->world.first || !found.resumed) return status;
    r->from_memory = found.from_memory;
    r->origin.start = found.start;
    r->patience = found.patience;
    r->goal.accuracy = found.goal;
    r->origin.resumed = true;
    memcpy(r->origin.from, found.from, sizeof r->origin.from);
    return resume_fill(&r->origin.point, &r->shared);
}

static int load(train_run *r)
{
    mr_error err = MR_ERROR_INIT;
    if (!r->from_memory) return session_load(&r->s, r->origin.from, &r->origin.start);
    return exit_status(mr_trainer_restore(r->s.trainer, r->elastic->snapshot, &err), &err);
}

/* A run that goes on has its own weights: those it began with are not asked for again, so that one command
 * line begins it and goes on with it. */
static int begin_with(train_run *r)
{
    const train_args *a = r->args;
    return a->begin.init ? session_begin_with(&r->s, a->begin.init, a->begin.skip, &r->origin.begin)
                         : EXIT_DONE;
}

/* The weights of the checkpoint, which the first process has; *weights must be freed, NULL without weights.
 */
static int read_weights(const train_run *r, float **weights)
{
    const uint32_t count = r->origin.start.class_weight_count;
    mr_checkpoint_info kept;
    mr_error err = MR_ERROR_INIT;
    uint32_t found = 0;
    int status = EXIT_DONE;
    *weights = NULL;
    if (count == 0) return EXIT_DONE;
    if (r->world.first && !r->from_memory)
        status = exit_status(mr_checkpoint_class_weights(r->origin.from, weights, &found, &err), &err);
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
    if (status || !r->origin.resumed) return status;
    status = read_weights(r, &weights);
    if (status == EXIT_DONE)
        return resume_weights(&r->origin.point, &r->s, weights, r->origin.start.class_weight_count);
    free(weights);
    return status;
}

static int check_crew(const train_run *r)
{
    if (!r->origin.resumed || r->s.crew || !crew_is_needed(r->origin.start.sync)) return EXIT_DONE;
    say("--resume: the checkpoint was trained with servers of parameters: give --sync ps or ps-async:N, "
        "too");
    return EXIT_MISUSED;
}

int training_open(train_run *r)
{
    const session_args *a = &r->shared;
    tool_session *s = &r->s;
    int status = look_into_folder_together(r);
    if (status == EXIT_DONE) status = check_crew(r);
    if (status == EXIT_DONE) status = take_net(r);
    if (status == EXIT_DONE) status = begin_choice(r);
    s->world = r->world.world;
    s->part = a->part;
    s->objective.first.later = !r->origin.resumed;
    s->objective.first.known = r->origin.resumed;
    s->objective.first.number = r->origin.start.label_offset;
    if (r->elastic->muster && !s->part.parts) s->part.parts = r->elastic->max; /* whoever computes them */
    if (status == EXIT_DONE) status = session_open_to_train(s, a, &r->run);
    if (status == EXIT_DONE) status = check_columns(r);
    if (status == EXIT_DONE) status = check_part(r);
    const bool some = a->data_opts.take || a->data_opts.chooser;
    if (status == EXIT_DONE && some && r->world.first) setup_tell_untrained(s->src);
    if (status == EXIT_DONE && r->origin.resumed) status = resume_rule(&r->origin.point, a, s, &r->run);
    if (status == EXIT_DONE) status = open_val_source(r);
    if (status == EXIT_DONE) status = check_evaluations(r);
    r->run.bad_list = world_own_file(&r->world, r->run.bad_list, r->own_list, sizeof r->own_list);
    if (status == EXIT_DONE)
        status = session_set_loader(s, a, &r->run, true, r->origin.resumed ? r->origin.start.w : 0);
    if (status == EXIT_DONE) status = share_budget(r);
    if (status) return status;
    set_start(r);
    tune_begin(&r->tune, &r->args->tune, s, &r->args->given);
    s->loader_cfg.record = r->view.record;
    status = session_open_loader(s);
    if (status == EXIT_DONE && r->origin.resumed)
        status = resume_check_augment(&r->origin.point, mr_loader_info_of(s->loader)->augment);
    if (status == EXIT_DONE) status = open_val_loader(r);
    if (status == EXIT_DONE) status = open_net(r);
    if (status == EXIT_DONE) status = session_open_network(s, r->run.epochs, false);
    if (status == EXIT_DONE && r->origin.resumed)
        status = resume_check_convolution(&r->origin.point, a, s, r->origin.from);
    if (status == EXIT_DONE) status = r->origin.resumed ? load(r) : begin_with(r);
    if (status == EXIT_DONE) status = train_header_count_frozen(s, &r->frozen);
    return status;
}
