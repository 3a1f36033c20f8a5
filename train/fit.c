/* train/fit.c: the training loop: batches from a loader, epochs, evaluation, early stopping, checkpoints,
 * reports.
 *
 *   ┌─► next batch ─► step ─► release ─┬─► last of its epoch: report, evaluate, save ─┬─► early stop? ─► done
 *   └──────────────────────────────────┴──────────────────────────────────────────────┘
 *
 * Error, stop and normal end leave through finish(): what was trained is saved there when it was not yet. The
 * position kept (epoch, step) is always that of the first batch not trained on, which is what a checkpoint
 * says. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/abi.h"
#include "base/ranges.h"
#include "train/stats.h"
#include "train/trainer.h"

#define POLL_NS 100000000u /* how soon a stop is seen while the loader has nothing */

typedef struct fit {
    mr_trainer *t;
    mr_loader *loader;
    const mr_loader_info *info;
    mr_fit_config cfg;
    mr_report report;       /* of the epoch that runs */
    mr_report last;         /* the newest complete one */
    mr_loader_stats before; /* when it began */
    uint64_t epoch, step;
    uint64_t steps;                              /* of this call */
    uint64_t epoch_steps, epoch_samples, warmup; /* of this call in this epoch */
    uint64_t epoch_begun_ns, wait_ns;
    uint64_t saved_updates, skipped_before;
} fit;

void mr_fit_defaults_sized(mr_fit_config *cfg, size_t struct_size)
{
    const mr_fit_config all = {.keep = 3, .warmup_steps = 3};
    mri_settings_give(cfg, struct_size, &all, sizeof all);
}

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

/* The next batch, however long it takes, unless somebody wants to stop. */
static int next_batch(mr_loader *loader, const volatile int *stop, mr_batch *out, mr_error *err)
{
    int rc = MR_EAGAIN;
    mri_range_begin(MRI_RANGE_WAIT, 0);
    while (rc == MR_EAGAIN)
        rc = mri_is_stopped(stop) ? mr_error_set(err, MR_ECANCELED, "stopped on request")
                                  : mr_loader_next(loader, out, POLL_NS, err);
    mri_range_end();
    return rc;
}

/* Behind a step that ended with rc; the first error counts. Why the loader cannot take a batch back the
 * stream knows best, else the loader. */
static int give_back(const mr_trainer *t, mr_loader *loader, mr_batch *b, int rc, mr_error *err)
{
    mr_batch none;
    const int given = mr_loader_release(loader, b, mr_trainer_streams(t));
    if (rc || given == MR_OK) return rc;
    for (uint32_t r = 0; r < t->team.count; r++)
        if (mri_team_stream_failed(&t->team, r, err)) return given;
    mr_error_set(err, given, "cannot give a batch back: %s", mr_status_text(given));
    mr_loader_next(loader, &none, 0, err);
    return given;
}

/* ------------------------------------------------------------------------------ evaluation */

static int evaluate(mr_trainer *t, mr_loader *loader, const volatile int *stop, mr_metrics *out,
                    mr_error *err)
{
    mri_range_begin(MRI_RANGE_EVALUATE, t->updates);
    int rc = mri_trainer_take_sums(t, MRI_SUMS_EVALUATION, out, err); /* whatever was there before */
    for (bool last = false; rc == MR_OK && !last;) {
        mr_batch b;
        rc = next_batch(loader, stop, &b, err);
        if (rc == MR_EEND)
            rc = mr_error_set(err, MR_EINVAL,
                              "the loader ended before the evaluation did: open it with more epochs");
        if (rc) break;
        last = b.last;
        rc = mr_trainer_forward(t, &b, err);
        rc = give_back(t, loader, &b, rc, err);
    }
    if (rc == MR_OK) rc = mri_trainer_take_sums(t, MRI_SUMS_EVALUATION, out, err);
    mri_range_end();
    return rc;
}

static double mean_of(double sum, uint64_t count) { return count ? sum / (double)count : 0; }

int mr_evaluate(mr_trainer *t, mr_loader *loader, double *loss, double *accuracy, uint64_t *count,
                mr_error *err)
{
    return mr_evaluate_until(t, loader, NULL, loss, accuracy, count, err);
}

int mr_evaluate_until(mr_trainer *t, mr_loader *loader, const volatile int *stop, double *loss,
                      double *accuracy, uint64_t *count, mr_error *err)
{
    mr_metrics m;
    const int rc = evaluate(t, loader, stop, &m, err);
    if (rc) return rc;
    if (loss) *loss = mean_of(m.loss_sum, m.count);
    if (accuracy) *accuracy = mean_of((double)m.correct, m.count);
    if (count) *count = m.count;
    return MR_OK;
}

/* ------------------------------------------------------------------------------ checkpoints */

static int save(fit *f, bool best, mr_error *err)
{
    char path[4096], best_path[4096];
    mr_checkpoint_info info;
    if (!f->cfg.checkpoint_dir) return MR_OK;
    const mri_position at = {.epoch = f->epoch, .step = f->step};
    mri_trainer_describe(f->t, f->info, f->cfg.data, at, &info);
    mri_checkpoint_step_path(f->cfg.checkpoint_dir, f->t->updates, path, sizeof path);
    int rc = mr_trainer_save(f->t, path, &info, err);
    if (rc == MR_OK && best) {
        mri_checkpoint_best_path(f->cfg.checkpoint_dir, best_path, sizeof best_path);
        if (!mri_checkpoint_link(path, best_path)) rc = mr_trainer_save(f->t, best_path, &info, err);
    }
    if (rc) return rc;
    f->saved_updates = f->t->updates;
    mri_checkpoint_prune(f->cfg.checkpoint_dir, f->cfg.keep ? f->cfg.keep : 1);
    tell(f, "checkpoint %s written%s", path, best ? ", the best so far" : "");
    return MR_OK;
}

/* ------------------------------------------------------------------------------ epochs */

static void begin_epoch(fit *f)
{
    const uint64_t left = f->info->steps_per_epoch > f->step ? f->info->steps_per_epoch - f->step : 1;
    /* only the first epoch of a call finds cold caches and empty queues; a short one keeps half its steps */
    f->warmup = f->steps == 0 ? mri_min_u64(f->cfg.warmup_steps, left / 2) : 0;
    f->epoch_steps = f->epoch_samples = f->wait_ns = 0;
    f->report = (mr_report){.struct_size = sizeof f->report, .epoch = f->epoch};
    mri_step_log_start(&f->t->flights.log, f->t->team.count, f->warmup);
    mr_loader_stats_read(f->loader, &f->before);
    f->epoch_begun_ns = mri_now_ns();
}

static void report_times(fit *f)
{
    mri_step_log *log = &f->t->flights.log;
    mr_report *r = &f->report;
    const double window = 1e-9 * (double)(log->last_end_ns - log->window_start_ns),
                 device = log->compute_ns + log->exposed_ns;
    r->steps = f->epoch_steps;
    r->warmup_steps = mri_min_u64(f->warmup, f->epoch_steps);
    r->seconds = 1e-9 * (double)(mri_now_ns() - f->epoch_begun_ns);
    r->samples_per_s = window > 0 ? (double)log->samples / window : 0;
    r->step_ms = mri_median(log->step_ms.value, log->step_ms.count);
    r->step_ms_mad = mri_mad(log->step_ms.value, log->step_ms.count, r->step_ms);
    r->wait_ms = 1e-6 * (double)f->wait_ns;
    r->exposed_ms = 1e-6 * log->exposed_ns;
    r->stall_fraction = device > 0 ? log->exposed_ns / device : 0;
}

static void report_stages(fit *f)
{
    mr_report *r = &f->report;
    mr_loader_stats now;
    mr_loader_stats_read(f->loader, &now);
    mri_loader_stats_since(&now, &f->before, &r->stages);
    const mri_verdict_input in = {
        .wall_ns = mri_now_ns() - f->epoch_begun_ns,
        .compute_ns = (uint64_t)f->t->flights.log.compute_ns,
        .exposed_ns = (uint64_t)f->t->flights.log.exposed_ns,
        .wait_ns = f->wait_ns,
        .prefetch = f->info->prefetch,
        .read = r->stages.read,
        .decode = r->stages.decode,
        .copy = r->stages.copy,
    };
    mri_verdict(&in, r->verdict, sizeof r->verdict);
}

/* Everything about the epoch's training steps. */
static int report_training(fit *f, mr_error *err)
{
    mr_metrics m;
    const int rc = mri_trainer_take_sums(f->t, MRI_SUMS_TRAINING, &m, err); /* also brings in the last steps'
                                                                               events */
    if (rc) return rc;
    report_times(f);
    report_stages(f);
    mr_report *r = &f->report;
    r->samples = m.count;
    r->loss = mean_of(m.loss_sum, m.count);
    r->accuracy = mean_of((double)m.correct, m.count);
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
    for (uint32_t i = 0; i < f->t->team.count; i++)
        r->simulated = r->simulated || mr_device_info_of(f->t->team.devices[i])->simulated;
    if (r->simulated) r->samples = f->epoch_samples; /* nothing was computed that could have counted them */
    return MR_OK;
}

/* Evaluate; *better when this is the lowest loss so far. */
static int validate(fit *f, bool *better, mr_error *err)
{
    *better = false;
    if (!f->cfg.val) return MR_OK;
    mr_metrics m;
    const int rc = evaluate(f->t, f->cfg.val, f->cfg.stop, &m, err);
    if (rc) return rc;
    f->report.has_val = true;
    f->report.val_loss = mean_of(m.loss_sum, m.count);
    f->report.val_accuracy = mean_of((double)m.correct, m.count);
    *better = f->report.val_loss < f->t->best_val_loss; /* never for a NaN */
    if (*better) f->t->best_val_loss = f->report.val_loss;
    f->t->epochs_without_better = *better ? 0 : f->t->epochs_without_better + 1;
    return MR_OK;
}

/* MR_EEND when training is over. */
static int end_epoch(fit *f, mr_error *err)
{
    bool better;
    int rc = report_training(f, err);
    f->epoch_steps = 0; /* reported */
    if (rc == MR_OK) rc = validate(f, &better, err);
    f->last = f->report;
    if (rc) return rc;
    if (f->cfg.callbacks.on_epoch) f->cfg.callbacks.on_epoch(f->cfg.callbacks.context, &f->report);
    rc = save(f, better, err);
    if (rc) return rc;
    if (f->cfg.patience && f->cfg.val && f->t->epochs_without_better >= f->cfg.patience) {
        tell(f, "stopped early: no better validation loss than %.4f for %u epochs", f->t->best_val_loss,
             f->t->epochs_without_better);
        return MR_EEND;
    }
    return f->cfg.epochs && f->epoch >= f->cfg.epochs ? MR_EEND : MR_OK;
}

/* ------------------------------------------------------------------------------ steps */

static void report_step(const fit *f, const mr_batch *b)
{
    if (!f->cfg.callbacks.on_step) return;
    const double seconds = 1e-9 * (double)(mri_now_ns() - f->epoch_begun_ns);
    f->cfg.callbacks.on_step(f->cfg.callbacks.context, b->epoch, b->step, f->info->steps_per_epoch,
                             seconds > 0 ? (double)f->epoch_samples / seconds : 0);
}

static int train_on(fit *f, mr_batch *b, mr_error *err)
{
    const int rc = mr_trainer_step(f->t, b, err);
    const int given = give_back(f->t, f->loader, b, rc, err);
    if (rc) return rc;
    f->steps++;
    f->epoch_steps++;
    f->epoch_samples += b->counted;
    f->epoch = b->last ? b->epoch + 1 : b->epoch;
    f->step = b->last ? 0 : b->step + 1;
    return given;
}

static int one_step(fit *f, mr_error *err)
{
    mr_batch b;
    if (f->cfg.max_steps && f->steps >= f->cfg.max_steps) return MR_EEND;
    if (f->epoch_steps == 0) begin_epoch(f);
    const uint64_t asked = mri_now_ns();
    int rc = next_batch(f->loader, f->cfg.stop, &b, err);
    if (rc) return rc;
    if (f->epoch_steps >= f->warmup) f->wait_ns += mri_now_ns() - asked;
    f->report.epoch = b.epoch;
    rc = train_on(f, &b, err);
    if (rc) return rc;
    if (f->t->note[0]) {
        tell(f, "%s", f->t->note);
        f->t->note[0] = '\0';
    }
    report_step(f, &b);
    if (b.last) return end_epoch(f, err);
    const uint64_t every = f->cfg.checkpoint_steps;
    return every && f->t->updates % every == 0 ? save(f, false, err) : MR_OK;
}

/* ------------------------------------------------------------------------------ the whole */

/* A network of numbers gets them as field 0. */
static int check_field(const mr_trainer *t, const mr_loader_info *info, mr_error *err)
{
    if (!mr_net_takes_numbers(t->cfg.net)) return MR_OK;
    const mr_loader_field_info *field = &info->field[0];
    if (info->field_count > 0 && field->role == MR_ROLE_PLAIN && field->dtype == MR_I32 &&
        field->element_bytes == sizeof(int32_t))
        return MR_OK;
    return mr_error_set(
        err, MR_EINVAL,
        "network %s takes sequences: expected them as the loader's field 0, numbers of type i32, found %s%s",
        mr_net_name(t->cfg.net), info->field_count ? mr_dtype_name(field->dtype) : "no field",
        info->field_count && field->ndim ? " in more dimensions" : "");
}

static int begin(fit *f, mr_trainer *t, mr_loader *loader, const mr_fit_config *cfg, mr_error *err)
{
    *f = (fit){.t = t,
               .loader = loader,
               .info = mr_loader_info_of(loader),
               .cfg = *cfg,
               .saved_updates = t->updates,
               .skipped_before = t->scale.skipped};
    if (t->cfg.inference)
        return mr_error_set(err, MR_EINVAL, "this trainer was opened for inference and cannot train");
    if (f->info->batch > t->cfg.batch)
        return mr_error_set(err, MR_EINVAL, "the loader brings batches of %u, the trainer was opened for %u",
                            f->info->batch, t->cfg.batch);
    const int rc = check_field(t, f->info, err);
    if (rc) return rc;
    if (t->cfg.steps_per_epoch == 0) t->cfg.steps_per_epoch = f->info->steps_per_epoch;
    return cfg->checkpoint_dir ? mri_checkpoint_folder_make(cfg->checkpoint_dir, err) : MR_OK;
}

/* The one road out: report what is not yet reported, save what is not yet saved, keep the first error. */
static int finish(fit *f, int rc, mr_report *last, mr_error *err)
{
    mr_error later = MR_ERROR_INIT;
    int second = MR_OK;
    if (f->t->team.failed == MR_OK && f->epoch_steps > 0) {
        second = report_training(f, &later);
        f->last = f->report;
    }
    if (f->t->team.failed == MR_OK && second == MR_OK && f->t->updates != f->saved_updates)
        second = save(f, false, &later);
    mri_result_give(last, &f->last, sizeof f->last);
    if (rc != MR_OK && rc != MR_EEND) return rc;
    if (second && err) *err = later;
    return second;
}

int mr_fit_sized(mr_trainer *t, mr_loader *loader, const mr_fit_config *cfg, mr_report *last, mr_error *err)
{
    fit f;
    mr_fit_config mine;
    mr_fit_defaults(&mine);
    int rc = mri_result_check(last, err);
    if (rc == MR_OK) rc = mri_settings_take(&mine, sizeof mine, cfg, "fit", err);
    if (rc == MR_OK) rc = begin(&f, t, loader, &mine, err);
    if (rc) return rc;
    while (rc == MR_OK) rc = one_step(&f, err);
    return finish(&f, rc, last, err);
}
