/* train/fit_settings.c: settings of mr_fit() by their rows (settings/training.rows, goal.rows, reports.rows),
 * and what of them must fit the loader, the run and the other processes. See fit_settings.h. */
#include "train/fit_settings.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/abi.h"
#include "settings/setting.h"
#include "train/evaluate.h"
#include "train/state/going_on.h"

static const mri_setting rows[] = {
#define MRI_SETTING(...) MRI_ROW(mr_fit_config, __VA_ARGS__),
#include "settings/training.rows"
#define MRI_SETTING(...) MRI_ROW(mr_fit_config, __VA_ARGS__),
#include "settings/goal.rows"
#define MRI_SETTING(...) MRI_ROW(mr_fit_config, __VA_ARGS__),
#include "settings/reports.rows"
};

void mr_fit_defaults_sized(mr_fit_config *cfg, size_t struct_size)
{
    mr_fit_config all = {0};
    mri_settings_fill(rows, MRI_ARRAY_COUNT(rows), &all);
    mri_settings_give(cfg, struct_size, &all, sizeof all);
}

/* Ranges. keep 0 is 1. */
static int check_ranges(const mr_fit_config *cfg, mr_error *err)
{
    mr_fit_config all = *cfg;
    if (!all.keep) all.keep = 1;
    return mri_settings_check(rows, MRI_ARRAY_COUNT(rows), &all, "mr_fit_config", err);
}

static int check_goal(const mr_trainer *t, const mr_fit_config *cfg, mr_error *err)
{
    if (cfg->stop_at_accuracy == 0 || mri_net_answers(t->cfg.net)) return MR_OK;
    return mr_error_set(err, MR_EINVAL, "network %s has no classes: there is no accuracy to stop at",
                        mr_net_name(t->cfg.net));
}

/* Compare the settings that processes must share besides the trainer's. */
static int agree(const mr_trainer *t, const mr_loader_info *i, const mr_fit_config *cfg, mr_error *err)
{
    char text[1536];
    const mr_loader_info *val = cfg->val ? mr_loader_info_of(cfg->val) : NULL;
    if (t->team.ranks.size == 1) return MR_OK;
    snprintf(
        text, sizeof text,
        "training data %016llx\nvalidation data %016llx\nbatch %u\norder %d, block %llu, length window %u, "
        "repeats %u, sampler %d, samples %llu\n"
        "tail %d\npixels %d, exif %d\naugment %s\nupdates %llu, epoch %llu, step %llu\nepochs "
        "%llu\nmax steps %llu, before %llu\n"
        "checkpoints %d, every %llu steps\npatience %u, accuracy %.17g\nevaluations every %llu steps, at %u "
        "points %08x\nreports every %llu steps\nsnapshots %d\n",
        (unsigned long long)i->fingerprint, val ? (unsigned long long)val->fingerprint : 0, i->batch,
        i->order, (unsigned long long)i->block, i->length_window, i->repeats, i->sampled,
        (unsigned long long)i->epoch_samples, i->tail, i->pixels, !i->ignore_exif,
        i->augment ? i->augment : "none", (unsigned long long)t->updates, (unsigned long long)t->run.at.epoch,
        (unsigned long long)t->run.at.step, (unsigned long long)cfg->epochs,
        (unsigned long long)cfg->max_steps, (unsigned long long)cfg->steps_before,
        cfg->checkpoint_dir != NULL, (unsigned long long)cfg->checkpoint_steps, cfg->patience,
        cfg->stop_at_accuracy, (unsigned long long)cfg->eval_steps, cfg->eval_at_count,
        mr_crc32c(0, cfg->eval_at, cfg->eval_at_count * sizeof *cfg->eval_at),
        cfg->on_step ? (unsigned long long)cfg->report_steps : 0, cfg->snapshot != NULL);
    return mri_ranks_agree(&t->team.ranks, text, err);
}

/* A text cut short in a checkpoint would be another augmentation when the run goes on. */
static int check_augment(const mr_loader_info *i, const mr_fit_config *cfg, mr_error *err)
{
    const size_t room = sizeof((mr_checkpoint_info *)0)->augment - 1,
                 length = i->augment ? strlen(i->augment) : 0;
    if (!cfg->checkpoint_dir || length <= room) return MR_OK;
    return mr_error_set(
        err, MR_EINVAL,
        "augment, spelled out, has %zu characters, expected at most %zu, for which checkpoints have room: "
        "\"%.120s...\"; leave operations out, or train without checkpoints",
        length, room, i->augment);
}

static bool is_over(const mr_trainer *t, const mr_fit_config *cfg)
{
    return cfg->epochs && t->run.at.epoch >= cfg->epochs;
}

/* A run that was just loaded: is this the loader that it goes on with? */
static int check_goes_on(const mr_trainer *t, const mr_loader_info *i, const mr_fit_config *cfg,
                         mr_error *err)
{
    mr_checkpoint_info now;
    if (!t->run.resumed || t->updates != t->run.from || is_over(t, cfg) || i->sampled) return MR_OK;
    if (t->cfg.seed != t->loaded.seed)
        return mr_error_set(err, MR_EINVAL,
                            "the trainer has seed %llu, the checkpoint that it goes on from %llu",
                            (unsigned long long)t->cfg.seed, (unsigned long long)t->loaded.seed);
    mri_trainer_describe(t, i, cfg->data, &now);
    return mri_going_on_check(&t->loaded, &now, i, err);
}

/* Somebody may have taken batches of the loader that this run has not trained on. */
static int check_position(const mr_trainer *t, const mr_loader *loader, const mr_fit_config *cfg,
                          mr_error *err)
{
    const mr_loader_info *i = mr_loader_info_of(loader);
    const mri_position at = t->run.at;
    mr_loader_stats so_far;
    mr_loader_stats_read(loader, &so_far);
    const uint64_t next = i->start_epoch * i->steps_per_epoch + i->start_step + so_far.batches;
    if (so_far.batches == 0 || is_over(t, cfg) || next == at.epoch * i->steps_per_epoch + at.step)
        return MR_OK;
    return mr_error_set(
        err, MR_EINVAL,
        "the loader has delivered %" PRIu64 " batches and is at epoch %" PRIu64 ", step %" PRIu64
        "; the trainer is at epoch %" PRIu64 ", step %" PRIu64
        ": open another loader (mr_loader_config.start_epoch and start_step choose its first batch)",
        so_far.batches, next / i->steps_per_epoch, next % i->steps_per_epoch, at.epoch, at.step);
}

int mri_fit_check(const mr_trainer *t, const mr_loader *loader, const mr_fit_config *cfg, mr_error *err)
{
    const mr_loader_info *i = mr_loader_info_of(loader);
    int rc = check_augment(i, cfg, err);
    if (rc == MR_OK) rc = check_position(t, loader, cfg, err);
    if (rc == MR_OK) rc = check_goes_on(t, i, cfg, err);
    if (rc == MR_OK) rc = check_ranges(cfg, err);
    if (rc == MR_OK) rc = check_goal(t, cfg, err);
    if (rc == MR_OK) rc = mri_check_evaluations(cfg, err);
    return rc ? rc : agree(t, i, cfg, err);
}
