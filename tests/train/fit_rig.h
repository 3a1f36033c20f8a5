/* tests/train/fit_rig.h: a trainer with real loaders for training and validation, and what its callbacks saw.
 */
#ifndef MRT_FIT_RIG_H
#define MRT_FIT_RIG_H

#include "tests/train/rig.h"

enum { TRAIN = 90, VAL = 37, BATCH = 20, STEPS = 5 }; /* 20, 20, 20, 20, 10 */

/* A rig with its loaders. */
typedef struct run {
    mrt_rig rig;
    mr_source *train_set, *val_set;
    mr_loader *train, *val;
} run;

typedef struct run_options {
    mrt_rig_options rig;
    uint64_t epochs, start_epoch, start_step;
    uint32_t prefetch, workers, val_batch;
    const char *augment; /* in training; NULL: flip */
} run_options;           /* rig.trace is the loaders' too */

static inline mr_loader *open_loader(const run *r, const mr_source *src, const run_options *o, bool training)
{
    mr_error err = MR_ERROR_INIT;
    mr_loader_config cfg;
    mr_loader *l;
    mr_loader_defaults(&cfg);
    cfg.batch = training ? BATCH : o->val_batch ? o->val_batch : BATCH;
    cfg.seed = 11;
    cfg.epochs = training ? o->epochs : UINT32_MAX;
    cfg.order = training ? MR_ORDER_SHUFFLE : MR_ORDER_SEQUENTIAL;
    cfg.training = training;
    cfg.augment = !training ? "none" : o->augment ? o->augment : "flip";
    cfg.prefetch = o->prefetch;
    cfg.workers = o->workers ? o->workers : 1;
    if (training) cfg.start_epoch = o->start_epoch, cfg.start_step = o->start_step;
    cfg.trace = o->rig.trace;
    cfg.devices = r->rig.devices;
    cfg.device_count = r->rig.count;
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    return l;
}

static inline void run_open(run *r, const run_options *o)
{
    mr_error err = MR_ERROR_INIT;
    mrt_rig_open(&r->rig, &o->rig);
    MRT_OK(mr_source_open(&r->train_set, mrt_toy_set("train", 0, TRAIN), NULL, &err), &err);
    MRT_OK(mr_source_open(&r->val_set, mrt_toy_set("t10k", 5000, VAL), NULL, &err), &err);
    r->train = open_loader(r, r->train_set, o, true);
    r->val = open_loader(r, r->val_set, o, false);
}

static inline void run_close(run *r)
{
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mri_flights_drain(&r->rig.t->flights, &err), &err);
    mr_loader_close(r->train);
    mr_loader_close(r->val);
    mr_source_close(r->train_set);
    mr_source_close(r->val_set);
    mrt_rig_close(&r->rig);
}

/* Records of the callbacks. */
typedef struct seen {
    uint64_t epochs, steps;
    mr_report report[16];
    uint64_t evals; /* inside epochs */
    mr_eval_report eval[40];
    char messages[4096];
    int stop;
    uint64_t stop_at_step; /* counted from 1; 0: never */
} seen;

static inline void on_step(void *context, uint64_t epoch, uint64_t step, uint64_t steps_per_epoch,
                           double rate)
{
    seen *s = context;
    MRT_TRUE(epoch < 100 && step < steps_per_epoch && steps_per_epoch == STEPS && rate >= 0);
    if (++s->steps == s->stop_at_step) s->stop = 1;
}

static inline void on_epoch(void *context, const mr_report *report)
{
    seen *s = context;
    if (s->epochs < 16) s->report[s->epochs] = *report;
    s->epochs++;
}

static inline void on_eval(void *context, const mr_eval_report *report)
{
    seen *s = context;
    if (s->evals < 40) s->eval[s->evals] = *report;
    s->evals++;
}

static inline void on_message(void *context, const char *text)
{
    seen *s = context;
    const size_t at = strlen(s->messages);
    snprintf(s->messages + at, sizeof s->messages - at, "%s\n", text);
}

static inline mr_fit_config fit_config(const run *r, seen *s, const char *folder)
{
    mr_fit_config cfg;
    mr_fit_defaults(&cfg);
    *s = (seen){0};
    cfg.val = r->val;
    cfg.checkpoint_dir = folder;
    cfg.stop = &s->stop;
    cfg.callbacks = (mr_callbacks){s, on_step, on_epoch, on_message};
    cfg.on_eval = on_eval;
    return cfg;
}

static const run_options usual = {
    .rig = {.devices = "cpu:2", .update = MR_UPDATE_ADAM, .seed = 2}, .epochs = 4, .prefetch = 2};

/* Train undisturbed; the weights it ends with. */
static inline mrt_hash undisturbed(const run_options *o, seen *s)
{
    mr_error err = MR_ERROR_INIT;
    run r;
    seen own;
    run_open(&r, o);
    const mr_fit_config cfg = fit_config(&r, s ? s : &own, NULL);
    MRT_OK(mr_fit(r.rig.t, r.train, &cfg, NULL, &err), &err);
    const mrt_hash h = mrt_hash_of(&r.rig, 0);
    run_close(&r);
    return h;
}

#endif
