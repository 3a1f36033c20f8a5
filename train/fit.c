/* train/fit.c: the training loop: batches from a loader, epochs, evaluation, early stopping, checkpoints,
 * reports.
 *
 *   ┌─► next batch ─► step ─► release ─┬─► last of its epoch: report, evaluate, save ─┬─► over? ─► done
 *   │                                  ├─► inside it, where one is due: evaluate ─────┤
 *   └──────────────────────────────────┴──────────────────────────────────────────────┘
 *
 * Error, stop and normal end leave through finish(): it saves training that is not saved yet. The trainer
 * holds the run's state besides weights (mri_run_state), and writes it into checkpoints: the stored position
 * is always the first batch not trained on; an evaluation that did not end is pending, and a resumed run does
 * it first. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/abi.h"
#include "base/floats.h"
#include "base/ranges.h"
#include "train/evaluate.h"
#include "train/figures.h"
#include "train/fit_settings.h"
#include "train/stretch.h"

#define DIVERGED 1000 /* times the first loss */

/* Samples a second since the call began, without evaluations. Queued steps do not count. */
typedef struct rate {
    uint64_t begun_ns, samples;
    uint32_t queued[MRI_RUN_AHEAD]; /* the newest steps */
} rate;

typedef struct fit {
    mr_trainer *t;
    mr_loader *loader;
    const mr_loader_info *info;
    mr_fit_config cfg;
    mr_report report;      /* of the epoch that runs */
    mr_report last;        /* the newest complete one */
    mri_epoch epoch;       /* that runs; what this call ran of it */
    mri_run_state *run;    /* the trainer's */
    mr_run_folder *folder; /* or NULL */
    bool own_folder;       /* opened here */
    bool claimed;          /* it is this run's */
    uint64_t steps;        /* of this call */
    uint64_t saved_updates, skipped_before;
    bool saved;                     /* anything, by this call */
    uint64_t keep_ns, keep_took_ns; /* the state is kept again from the first on; the shortest it took */
    uint64_t keep_pause;            /* of the time that it took, until then */
    rate rate;
    mri_stretches stretches;
    uint64_t peeks; /* looked at */
    bool told_diverged;
    double newest_loss; /* of the training steps between the last two looks */
    mri_goal_clock clock;
} fit;

MR_PRINTF(2, 3) static void tell(const fit *f, const char *format, ...)
{
    if (!f->cfg.callbacks.on_message) return;
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    f->cfg.callbacks.on_message(f->cfg.callbacks.context, text);
}

/* ------------------------------------------------------------------------------ divergence */

/* The scale of a loss: the loss of the first batch, or of guessing. */
static double loss_scale_of(const fit *f)
{
    return fmax(f->run->first_loss, log((double)mr_net_class_count(f->t->cfg.net)));
}

static bool has_diverged(const fit *f, double loss)
{
    return !isfinite(loss) || (f->run->first_loss > 0 && loss > DIVERGED * loss_scale_of(f));
}

static void tell_diverged(fit *f, double loss, const char *which)
{
    if (f->told_diverged) return;
    f->told_diverged = true;
    if (isfinite(loss))
        tell(f,
             "the %s loss has grown to %g by update %llu, from %g at the first: the run diverges; a "
             "lower learning rate may help",
             which, loss, (unsigned long long)f->t->updates, f->run->first_loss);
    else
        tell(f,
             "the %s loss is not finite any more at update %llu: the run has diverged; a "
             "lower learning rate may help",
             which, (unsigned long long)f->t->updates);
}

static void watch_loss(fit *f, const mri_peek *now)
{
    const mri_peek *before = &f->stretches.last;
    const uint64_t count = now->sums.count - before->sums.count;
    if (count == 0) return; /* a simulated device counts nothing */
    const double loss = (now->sums.loss_sum - before->sums.loss_sum) / (double)count;
    if (f->run->first_loss == 0 && isfinite(loss)) f->run->first_loss = loss;
    if (has_diverged(f, loss)) tell_diverged(f, loss, "training");
    else if (f->told_diverged && has_diverged(f, f->newest_loss))
        tell(f, "the training loss has come down again to %g by update %llu", loss,
             (unsigned long long)f->t->updates);
    f->newest_loss = loss;
}

/* A few wild updates raise the mean of an epoch for good. It has diverged when the loss has not come down
 * again. */
static bool epoch_has_diverged(const fit *f, double mean)
{
    return has_diverged(f, mean) && (!isfinite(mean) || has_diverged(f, f->newest_loss));
}

static void report_stretch(fit *f, const mri_peek *now)
{
    mr_step_report report;
    mri_stretches_report(&f->stretches, f->t, &f->cfg, now, &report);
    f->cfg.on_step(f->cfg.callbacks.context, &report);
}

/* Look at the sums since the last look; no process lags more than MRI_RUN_AHEAD peeks. */
static void look(fit *f)
{
    const mri_flights *flights = &f->t->flights;
    for (; f->peeks < flights->peeks; f->peeks++) {
        const mri_peek *now = &flights->peek[f->peeks % MRI_RUN_AHEAD];
        watch_loss(f, now);
        if (f->cfg.on_step) report_stretch(f, now);
        f->stretches.last = *now;
    }
}

/* ------------------------------------------------------------------------------ checkpoints */

static void tell_note(const fit *f, const char *note)
{
    if (note[0]) tell(f, "%s", note);
}

static void prune(const fit *f, bool last)
{
    char note[1536];
    mri_run_folder_prune(f->folder, f->cfg.keep ? f->cfg.keep : 1, last, note, sizeof note);
    tell_note(f, note);
}

/* Keep the state in memory; all processes do so after the same step: before the first step of a call, then at
 * intervals that double up to a hundred times its duration: a run that loses ranks again and again loses at
 * most half of its work in between, and a long one spends a hundredth of its time. */
static int keep(fit *f, mr_error *err)
{
    enum { FIRST_PAUSE = 2, LAST_PAUSE = 100 };
    mr_checkpoint_info info;
    if (!f->cfg.snapshot) return MR_OK;
    int rc = mri_flights_drain(&f->t->flights, err); /* they would have been waited for anyway */
    if (rc) return rc;
    look(f);
    const uint64_t begun_ns = mri_now_ns();
    mri_goal_tick(&f->run->goal, &f->clock, begun_ns);
    mri_trainer_describe(f->t, f->info, f->cfg.data, &info);
    rc = mr_trainer_snapshot(f->t, f->cfg.snapshot, &info, err);
    const uint64_t now = mri_now_ns(), took = now - begun_ns;
    f->keep_took_ns = f->keep_took_ns ? mri_min_u64(f->keep_took_ns, took) : took;
    if (!f->keep_pause) f->keep_pause = FIRST_PAUSE;
    else if (begun_ns >= f->keep_ns)
        f->keep_pause = mri_min_u64(2 * f->keep_pause, LAST_PAUSE); /* it was due */
    f->keep_ns = now + f->keep_pause * f->keep_took_ns;
    return rc;
}

static int save(fit *f, bool best, mr_error *err)
{
    char path[4096], note[1024] = "";
    mr_checkpoint_info info;
    if (best && f->cfg.checkpoint_dir) f->run->best_updates = f->t->updates;
    int rc = keep(f, err);
    if (rc || !f->cfg.checkpoint_dir) return rc;
    rc = mri_flights_drain(&f->t->flights, err); /* as saving does: the record is of all that was queued */
    if (rc) return rc;
    look(f);
    mri_goal_tick(&f->run->goal, &f->clock, mri_now_ns());
    mri_trainer_describe(f->t, f->info, f->cfg.data, &info);
    mri_trainer_describe_targets(f->t, mr_loader_source(f->loader), &info);
    mri_checkpoint_step_path(f->cfg.checkpoint_dir, f->t->updates, path, sizeof path);
    if (f->folder) rc = mri_run_folder_check(f->folder, err);
    if (rc == MR_OK) rc = mr_trainer_save(f->t, path, &info, err);
    if (rc) return rc;
    f->saved = true;
    f->saved_updates = f->t->updates;
    if (!f->folder) return MR_OK; /* the first process has it */
    mri_run_folder_wrote(f->folder, f->t->updates);
    if (best) rc = mri_run_folder_set_best(f->folder, f->t->updates, note, sizeof note, err);
    tell_note(f, note);
    if (rc) return rc;
    prune(f, false);
    tell(f, "checkpoint %s written%s", path, best ? ", the best so far" : "");
    return MR_OK;
}

/* ------------------------------------------------------------------------------ epochs */

static void begin_epoch(fit *f)
{
    const uint64_t step = f->run->at.step,
                   left = f->info->steps_per_epoch > step ? f->info->steps_per_epoch - step : 1;
    /* only the first epoch of a call finds cold caches and empty queues; a short one keeps half its steps */
    f->epoch.warmup = f->steps == 0 ? mri_min_u64(f->cfg.warmup_steps, left / 2) : 0;
    f->epoch.steps = f->epoch.samples = f->epoch.wait_ns = 0;
    f->report = (mr_report){.struct_size = sizeof f->report, .epoch = f->run->at.epoch};
    mri_step_log_start(&f->t->flights.log, f->t->team.count, f->epoch.warmup);
    mri_lateness_begin(&f->t->team.ranks.late);
    mr_loader_stats_read(f->loader, &f->epoch.before);
    f->epoch.begun_ns = mri_now_ns();
    mri_stretches_begin_epoch(&f->stretches, f->t, f->epoch.begun_ns);
}

/* Everything about the epoch's training steps. */
static int report_training(fit *f, mr_error *err)
{
    mr_metrics m;
    int rc = mri_trainer_take_sums(f->t, MRI_SUMS_TRAINING, &m, err); /* also brings in the last steps'
                                                                               events */
    if (rc) return rc;
    look(f);
    mr_report *r = &f->report;
    rc = mri_figures_report(&f->epoch, f->t, f->loader, r, err);
    if (rc) return rc;
    r->samples = m.count;
    r->loss = mri_mean_of(m.loss_sum, m.count);
    r->accuracy = mri_accuracy_of(f->t, m.correct, m.count);
    r->lr = mri_trainer_lr(f->t, f->t->updates ? f->t->updates - 1 : 0);
    r->peak_rss_bytes = mri_peak_rss_bytes();
    if (f->t->cfg.dtype == MR_TENSOR_F16) {
        r->loss_scale = f->t->scale.scale;
        r->skipped = f->t->scale.skipped - f->skipped_before;
        f->skipped_before = f->t->scale.skipped;
        if (r->skipped)
            tell(f,
                 "%llu of %llu updates were skipped because a gradient overflowed; the loss scale is %g now",
                 (unsigned long long)r->skipped, (unsigned long long)r->steps, (double)r->loss_scale);
    }
    r->simulated = mri_trainer_simulates(f->t);
    if (r->simulated) r->samples = f->epoch.samples; /* nothing was computed that could have counted them */
    r->diverged = epoch_has_diverged(f, r->loss);
    if (r->diverged) tell_diverged(f, r->loss, "training");
    return MR_OK;
}

/* A validation; until it is done it is pending. */
static int measure(fit *f, bool *pending, mr_eval_report *out, mr_error *err)
{
    mri_run_state *run = f->run;
    mr_metrics m;
    *pending = true;
    const uint64_t begun_ns = mri_now_ns();
    const int rc = mri_evaluate(f->t, f->cfg.val, f->cfg.stop, &m, err);
    const uint64_t took_ns = mri_now_ns() - begun_ns;
    f->rate.begun_ns += took_ns;
    f->clock.evaluated_ns += took_ns;
    if (rc) return rc;
    *pending = false;
    *out = (mr_eval_report){.struct_size = sizeof *out,
                            .epoch = run->at.epoch,
                            .step = run->at.step,
                            .steps_per_epoch = f->info->steps_per_epoch,
                            .updates = f->t->updates,
                            .samples = m.count,
                            .loss = mri_mean_of(m.loss_sum, m.count),
                            .accuracy = mri_accuracy_of(f->t, m.correct, m.count),
                            .seconds = 1e-9 * (double)took_ns,
                            .simulated = mri_trainer_simulates(f->t)};
    out->diverged = has_diverged(f, out->loss);
    if (out->diverged) tell_diverged(f, out->loss, "validation");
    out->best = !out->diverged && out->loss < run->best_val_loss;
    if (!out->best) return MR_OK;
    run->best_val_loss = out->loss;
    run->epochs_without_better = 0;
    return MR_OK;
}

/* At the end of an epoch. *better when this is the lowest loss so far. */
static int validate(fit *f, bool *better, mr_error *err)
{
    mri_run_state *run = f->run;
    mr_report *r = &f->report;
    mr_eval_report val;
    *better = false;
    if (!f->cfg.val) return MR_OK;
    run->epoch_loss = r->loss;
    run->epoch_accuracy = r->accuracy;
    const int rc = measure(f, &run->validation_pending, &val, err);
    if (rc) return rc;
    r->has_val = true;
    r->val_loss = val.loss;
    r->val_accuracy = val.accuracy;
    r->diverged = r->diverged || val.diverged;
    *better = val.best;
    if (!val.best) run->epochs_without_better++;
    return MR_OK;
}

/* The accuracy that stands at the end of an epoch. */
static bool has_reached(fit *f)
{
    const mr_report *r = &f->report;
    const double accuracy = f->cfg.val                             ? r->val_accuracy
                            : r->steps == f->info->steps_per_epoch ? r->accuracy
                                                                   : NAN; /* of a part */
    if (r->diverged || r->simulated) return false;
    return mri_goal_look(&f->run->goal, &f->clock, accuracy, f->t->updates, mri_now_ns());
}

static void tell_reached(const fit *f, const char *how, const char *then)
{
    const mri_goal *g = &f->run->goal;
    tell(f, "%s: accuracy %.4f after %llu steps, at least %g was asked for%s", how, g->found,
         (unsigned long long)g->updates, g->accuracy, then);
}

/* Evaluate after a step that is not the last of its epoch. MR_EEND: the goal is reached. */
static int evaluate_inside(fit *f, mr_error *err)
{
    mr_eval_report r;
    int rc = mri_flights_drain(&f->t->flights, err); /* or the last steps would be evaluation */
    if (rc) return rc;
    look(f);
    const uint64_t begun_ns = mri_now_ns();
    rc = measure(f, &f->run->evaluation_pending, &r, err);
    const uint64_t took_ns = mri_now_ns() - begun_ns;
    mri_step_log_skip(&f->t->flights.log, took_ns);
    mri_stretches_skip(&f->stretches, took_ns);
    if (rc) return rc;
    const bool reached = !r.diverged && !r.simulated &&
                         mri_goal_look(&f->run->goal, &f->clock, r.accuracy, r.updates, mri_now_ns());
    if (f->cfg.on_eval) f->cfg.on_eval(f->cfg.callbacks.context, &r);
    if (r.best || reached) rc = save(f, r.best, err);
    if (rc || !reached) return rc;
    tell_reached(f, "stopped", "");
    return MR_EEND;
}

static bool is_over(const fit *f) { return f->cfg.epochs && f->run->at.epoch >= f->cfg.epochs; }

/* An epoch whose training steps are reported. MR_EEND when training is over. */
static int close_epoch(fit *f, mr_error *err)
{
    bool better;
    int rc = validate(f, &better, err);
    f->last = f->report;
    if (rc) return rc;
    const mri_run_state *run = f->run;
    const bool reached = has_reached(f);
    f->run->stopped_early =
        !reached && f->cfg.patience && f->cfg.val && run->epochs_without_better >= f->cfg.patience;
    if (f->cfg.callbacks.on_epoch) f->cfg.callbacks.on_epoch(f->cfg.callbacks.context, &f->report);
    rc = save(f, better, err);
    if (rc) return rc;
    if (reached) {
        tell_reached(f, "stopped", "");
        return MR_EEND;
    }
    if (run->stopped_early) {
        tell(f, "stopped early: no better validation loss than %.4f for %u epochs", run->best_val_loss,
             run->epochs_without_better);
        return MR_EEND;
    }
    return is_over(f) ? MR_EEND : MR_OK;
}

static int end_epoch(fit *f, mr_error *err)
{
    int rc = report_training(f, err);
    if (rc == MR_OK && f->t->team.ranks.size > 1) rc = mri_trainer_compare(f->t, err);
    f->epoch.steps = 0; /* reported */
    if (rc) f->last = f->report;
    return rc ? rc : close_epoch(f, err);
}

/* Losses of other data are nothing to compare with. */
static void check_validation(fit *f)
{
    mri_run_state *run = f->run;
    const uint64_t before = run->val_fingerprint,
                   now = f->cfg.val ? mr_loader_info_of(f->cfg.val)->fingerprint : 0;
    run->val_fingerprint = now;
    if (!before || before == now) return;
    tell(f, now ? "validation is on other data than before: the best loss and patience begin anew"
                : "this run was validated before, and is not from here on");
    if (!now) return;
    run->best_val_loss = INFINITY;
    run->epochs_without_better = 0;
    run->stopped_early = false;
    mri_goal_forget(&run->goal);
}

/* Do the loaded checkpoint's pending work, before any step. */
static int catch_up(fit *f, uint64_t epochs_before, uint32_t patience_before, mr_error *err)
{
    mri_run_state *run = f->run;
    if (run->validation_pending && f->cfg.val && run->at.epoch > 0) {
        f->report = (mr_report){.struct_size = sizeof f->report,
                                .epoch = run->at.epoch - 1,
                                .loss = run->epoch_loss,
                                .accuracy = run->epoch_accuracy,
                                .lr = mri_trainer_lr(f->t, f->t->updates ? f->t->updates - 1 : 0),
                                .peak_rss_bytes = mri_peak_rss_bytes()};
        f->report.diverged = has_diverged(f, f->report.loss);
        return close_epoch(f, err);
    }
    run->validation_pending = false;
    if (run->evaluation_pending && f->cfg.val && run->at.step > 0) {
        const int rc = evaluate_inside(f, err);
        if (rc) return rc;
    }
    run->evaluation_pending = false;
    if (mri_goal_is_reached(&run->goal)) {
        tell_reached(f, "this run has ended before", "; a higher one lets it go on");
        return MR_EEND;
    }
    const bool raised = f->cfg.patience > patience_before || (epochs_before && f->cfg.epochs > epochs_before);
    if (run->stopped_early && f->cfg.patience && f->cfg.val && !raised) {
        tell(f,
             "this run was stopped early: no better validation loss than %.4f for %u epochs; more patience "
             "or more epochs let it go on",
             run->best_val_loss, run->epochs_without_better);
        return MR_EEND;
    }
    run->stopped_early = false;
    return is_over(f) ? MR_EEND : MR_OK;
}

/* ------------------------------------------------------------------------------ steps */

static void report_step(const fit *f, const mr_batch *b)
{
    if (!f->cfg.callbacks.on_step) return;
    const double seconds = 1e-9 * (double)(mri_now_ns() - f->rate.begun_ns);
    uint64_t done = f->rate.samples;
    for (uint32_t i = 0; i < MRI_RUN_AHEAD; i++) done -= f->rate.queued[i];
    f->cfg.callbacks.on_step(f->cfg.callbacks.context, b->epoch, b->step, f->info->steps_per_epoch,
                             seconds > 0 ? (double)done / seconds : 0);
}

static int train_on(fit *f, mr_batch *b, mr_error *err)
{
    const int rc = mr_trainer_step(f->t, b, err);
    const int given = mri_give_back(f->t, f->loader, b, rc, err);
    if (rc) return rc;
    f->steps++;
    f->epoch.steps++;
    f->epoch.samples += f->t->counted;
    f->rate.queued[f->steps % MRI_RUN_AHEAD] = f->t->counted;
    f->rate.samples += f->t->counted;
    return given;
}

/* Do the work that is due after a step inside an epoch. */
static int behind_step(fit *f, mr_error *err)
{
    const mr_fit_config *cfg = &f->cfg;
    const uint64_t updates = f->t->updates;
    int rc = MR_OK;
    if (mri_evaluation_is_due(cfg, f->run->at, f->info->steps_per_epoch, updates))
        rc = evaluate_inside(f, err);
    if (rc) return rc;
    if (cfg->checkpoint_steps && updates % cfg->checkpoint_steps == 0 && f->saved_updates != updates)
        return save(f, false, err);
    /* between averages the state is that of every share: it can wait, if averages come */
    const bool stores = mri_trainer_own_shares(f->t) == 0 || f->t->cfg.sync == MR_SYNC_INDEPENDENT;
    return f->t->team.ranks.keep && stores ? keep(f, err) : MR_OK;
}

static int one_step(fit *f, mr_error *err)
{
    mr_batch b;
    if (f->cfg.max_steps && f->cfg.steps_before + f->steps >= f->cfg.max_steps) return MR_EEND;
    if (f->epoch.steps == 0) begin_epoch(f);
    const uint64_t asked = mri_now_ns();
    int rc = mri_next_batch(f->t, f->loader, f->cfg.stop, &b, err);
    if (rc) return rc;
    if (f->epoch.steps >= f->epoch.warmup) f->epoch.wait_ns += mri_now_ns() - asked;
    f->report.epoch = b.epoch;
    f->t->team.ranks.wants_to_keep = f->cfg.snapshot && mri_now_ns() >= f->keep_ns;
    mri_range_begin(MRI_RANGE_HOST, b.global_step);
    rc = train_on(f, &b, err);
    mri_range_end();
    if (rc) return rc;
    if (f->t->note[0]) {
        tell(f, "%s", f->t->note);
        f->t->note[0] = '\0';
    }
    look(f);
    report_step(f, &b);
    return b.last ? end_epoch(f, err) : behind_step(f, err);
}

/* ------------------------------------------------------------------------------ the whole */

/* The folder, taken and found to be this run's. */
static int begin_folder(fit *f, mr_error *err)
{
    char note[512];
    const mri_run_state *run = f->run;
    const mri_run_claim claim = {.run = run->id,
                                 .resumed = run->resumed,
                                 .updates = f->t->updates,
                                 .nameless_too = run->nameless_too,
                                 .best_updates = run->best_updates,
                                 .replace = f->cfg.replace};
    if (f->cfg.folder && strcmp(mri_run_folder_path(f->cfg.folder), f->cfg.checkpoint_dir) != 0)
        return mr_error_set(err, MR_EINVAL, "the folder that is open is %s: expected checkpoint_dir, %s",
                            mri_run_folder_path(f->cfg.folder), f->cfg.checkpoint_dir);
    f->folder = f->cfg.folder;
    f->own_folder = !f->folder;
    int rc = f->own_folder ? mr_run_folder_open(&f->folder, f->cfg.checkpoint_dir, err) : MR_OK;
    if (rc) return rc;
    if (mr_run_folder_note(f->folder)) tell(f, "%s", mr_run_folder_note(f->folder));
    rc = mri_run_folder_claim(f->folder, &claim, note, sizeof note, err);
    tell_note(f, note);
    f->claimed = rc == MR_OK;
    return rc;
}

/* Also when nothing was saved: a run killed after writing a checkpoint and before removing the replaced one
 * left one too many; removing it may be the only work left. */
static void end_folder(fit *f)
{
    if (f->claimed) prune(f, f->saved);
    if (f->own_folder) mr_run_folder_close(f->folder);
}

/* The first process writes, for all. */
static int begin_folder_of_all(fit *f, mr_error *err)
{
    const mri_ranks *ranks = &f->t->team.ranks;
    if (!f->cfg.checkpoint_dir) return MR_OK;
    return mri_ranks_share_error(ranks, ranks->rank == 0 ? begin_folder(f, err) : MR_OK, err);
}

static int check_val(const fit *f, mr_error *err)
{
    mr_loader *val = f->cfg.val;
    int rc = mri_check_fields(f->t, mr_loader_info_of(val), err);
    if (rc == MR_OK) rc = mri_check_labels(f->t, val, err);
    return rc == MR_OK ? mri_check_validation(f->t, val, f->loader, err) : rc;
}

static int begin(fit *f, mr_trainer *t, mr_loader *loader, const mr_fit_config *cfg, mr_error *err)
{
    *f = (fit){.t = t,
               .loader = loader,
               .info = mr_loader_info_of(loader),
               .cfg = *cfg,
               .run = &t->run,
               .saved_updates = t->updates,
               .peeks = t->flights.peeks,
               .rate.begun_ns = mri_now_ns(),
               .skipped_before = t->scale.skipped};
    if (t->cfg.inference)
        return mr_error_set(err, MR_EINVAL, "this trainer was opened for inference and cannot train");
    if (f->info->batch > t->cfg.batch)
        return mr_error_set(err, MR_EINVAL, "the loader brings batches of %u, the trainer was opened for %u",
                            f->info->batch, t->cfg.batch);
    int rc = mri_check_fields(t, f->info, err);
    if (rc == MR_OK) rc = mri_check_labels(t, loader, err);
    if (rc == MR_OK && cfg->val) rc = check_val(f, err);
    if (rc == MR_OK) rc = mri_fit_check(t, loader, &f->cfg, err);
    if (rc) return rc;
    if (t->cfg.steps_per_epoch == 0) t->cfg.steps_per_epoch = f->info->steps_per_epoch;
    mri_stretches_begin(&f->stretches, t, f->info->steps_per_epoch, f->rate.begun_ns);
    return begin_folder_of_all(f, err);
}

/* The only exit: report and save the unreported and unsaved rest, keep the first error. */
static int finish(fit *f, int rc, mr_report *last, mr_error *err)
{
    mr_error later = MR_ERROR_INIT;
    int second = MR_OK;
    bool whole = f->t->team.failed == MR_OK;
    if (rc && rc != MR_EEND && rc != MR_ECANCELED && f->t->team.ranks.size > 1) { /* the others are elsewhere
                                                                                   */
        mri_ranks_fail(&f->t->team.ranks, err ? err : &f->t->team.error);
        whole = false;
    }
    if (whole && f->epoch.steps > 0) {
        second = report_training(f, &later);
        f->last = f->report;
    }
    if (whole && second == MR_OK && f->t->updates != f->saved_updates) second = save(f, false, &later);
    mri_goal_tick(&f->run->goal, &f->clock, mri_now_ns());
    mri_flights_watch(&f->t->flights, NULL);
    end_folder(f);
    mri_result_give(last, &f->last, sizeof f->last);
    if (rc != MR_OK && rc != MR_EEND) return rc;
    if (second) mri_ranks_fail(&f->t->team.ranks, &later);
    if (second && err) *err = later;
    return second;
}

static int run_fit(mr_trainer *t, mr_loader *loader, const mr_fit_config *cfg, mr_report *last, mr_error *err)
{
    fit f;
    mr_fit_config mine;
    mr_fit_defaults(&mine);
    int rc = mri_result_check(last, err);
    if (rc == MR_OK) rc = mri_settings_take(&mine, sizeof mine, cfg, "fit", err);
    if (rc) return rc;
    rc = begin(&f, t, loader, &mine, err);
    if (rc) {
        if (err) mri_ranks_fail(&t->team.ranks, err);
        end_folder(&f);
        return rc;
    }
    mri_flights_watch(&t->flights, loader);
    t->peek_steps = mine.on_step ? mine.report_steps : 0;
    const uint64_t epochs_before = t->run.epochs;
    const uint32_t patience_before = t->run.patience;
    t->run.epochs = mine.epochs ? mine.epochs : t->cfg.epochs;
    t->run.patience = mine.patience;
    check_validation(&f);
    mri_goal_begin(&t->run.goal, &f.clock, mine.stop_at_accuracy, t->updates, mri_now_ns());
    rc = mri_sums_discard(&t->flights, MRI_SUMS_TRAINING, err); /* of steps before this call */
    f.peeks = t->flights.peeks;
    if (rc == MR_OK) rc = catch_up(&f, epochs_before, patience_before, err);
    if (rc == MR_OK) rc = keep(&f, err); /* a process that is new has the state from now on */
    while (rc == MR_OK) rc = one_step(&f, err);
    return finish(&f, rc, last, err);
}

int mr_fit_sized(mr_trainer *t, mr_loader *loader, const mr_fit_config *cfg, mr_report *last, mr_error *err)
{
    MRI_DEFAULT_FLOATS;
    MRI_OWN(err, t);
    MRI_GIVEN(err, loader);
    const int rc = mri_trainer_enter(t, "mr_fit", err);
    return rc ? rc : mri_trainer_leave(t, "mr_fit", run_fit(t, loader, cfg, last, err), err);
}
