/* train/trainer.c: one step over all replicas.
 *
 *   replica 0   wait ready │start│ forward, loss, backward ┐                ┌ update │end│
 *   replica 1   wait ready │start│ forward, loss, backward ┼ sum of grads ──┼ update │end│
 *   ...                                                    ┘ (exchange.c)   └
 *
 * The loss of every part is divided by the samples of the GLOBAL batch, so the sum over replicas is the
 * gradient of the whole batch however unevenly it was cut; a replica without samples adds zeros. Every
 * replica then does the same update on the same bits. Batch normalisation is the exception to "R replicas are
 * one": its batch statistics are each part's own. Running statistics are replica 0's wherever they are read:
 * evaluation, checkpoints, hashes.
 *
 * One thread uses a trainer at a time. */
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/abi.h"
#include "base/ranges.h"
#include "train/trainer.h"

void mr_trainer_defaults_sized(mr_trainer_config *cfg, size_t struct_size)
{
    mr_trainer_config all = {.batch = 128, .epochs = 1};
    all.update = (mr_update_desc){.kind = MR_UPDATE_SGD,
                                  .lr = 0.01f,
                                  .momentum = 0.9f,
                                  .rho = 0.9f,
                                  .beta1 = 0.9f,
                                  .beta2 = 0.999f,
                                  .epsilon = 1e-7f};
    all.schedule = (mr_schedule){.kind = MR_LR_CONSTANT, .lr = 0.01f, .factor = 0.1f};
    for (int c = 0; c < 4; c++) all.std[c] = 255.0f;
    all.dtype = MR_TENSOR_F32;
    all.bucket_bytes = 25u << 20;
    all.watchdog_s = 300;
    mri_settings_give(cfg, struct_size, &all, sizeof all);
}

#define FIRST_SCALE  65536.0f
#define GROWTH_STEPS 1000u
enum { MOST_SCALE = 1 << 24 };

/* ------------------------------------------------------------------------------ open, close */

static int check_precision(const mr_trainer_config *cfg, mr_error *err)
{
    int power;
    if (cfg->dtype != MR_TENSOR_F32 && cfg->dtype != MR_TENSOR_BF16 && cfg->dtype != MR_TENSOR_F16)
        return mr_error_set(err, MR_EINVAL, "activations of type %u: expected f32, bf16 or f16", cfg->dtype);
    const double scale = (double)cfg->loss_scale;
    if (!(scale == 0) && (!(scale >= 1 && scale <= MOST_SCALE) || frexp(scale, &power) != 0.5))
        return mr_error_set(err, MR_EINVAL,
                            "loss scale %g: expected 0, to adapt, or a power of two from 1 to %d", scale,
                            MOST_SCALE);
    if (!(cfg->watchdog_s >= 0))
        return mr_error_set(err, MR_EINVAL, "watchdog of %g s: expected 0 or more", cfg->watchdog_s);
    return mr_net_check(cfg->net, err);
}

static int check_config(const mr_trainer_config *cfg, mr_error *err)
{
    if (!cfg->net) return mr_error_set(err, MR_EINVAL, "a trainer needs a network");
    if (!cfg->devices || cfg->device_count == 0 || cfg->device_count > MR_LOADER_MAX_PARTS)
        return mr_error_set(err, MR_EINVAL, "a trainer needs 1 to %d devices, not %u", MR_LOADER_MAX_PARTS,
                            cfg->device_count);
    if (cfg->batch == 0) return mr_error_set(err, MR_EINVAL, "the batch must be at least 1");
    if (!(cfg->schedule.lr > 0) || !isfinite(cfg->schedule.lr))
        return mr_error_set(err, MR_EINVAL, "learning rate %g: expected a finite number above 0",
                            (double)cfg->schedule.lr);
    for (uint32_t c = 0; !cfg->net->numbers && c < cfg->net->c; c++)
        if (!(cfg->std[c] > 0) || !isfinite(cfg->std[c]) || !isfinite(cfg->mean[c]))
            return mr_error_set(err, MR_EINVAL,
                                "channel %u: mean %g, std %g: expected finite numbers, std above 0", c,
                                (double)cfg->mean[c], (double)cfg->std[c]);
    return check_precision(cfg, err);
}

static mri_replica_config replica_config(const mr_trainer_config *cfg)
{
    mri_replica_config r = {.net = cfg->net,
                            .global_batch = cfg->batch,
                            .seed = cfg->seed,
                            .inference = cfg->inference,
                            .uses_affine = cfg->uses_affine,
                            .dtype = cfg->dtype,
                            .update = cfg->update,
                            .slot_count = mr_update_state_count(cfg->update.kind),
                            .bucket_bytes = cfg->bucket_bytes,
                            .memory_bytes = cfg->memory_bytes,
                            .together = cfg->device_count == 1,
                            .records = !cfg->no_graph};
    if (r.together) r.bucket_bytes = 0; /* nobody waits for a part of the gradients */
    r.max_batch = cfg->batch / cfg->device_count + (cfg->batch % cfg->device_count != 0);
    memcpy(r.mean, cfg->mean, sizeof r.mean);
    memcpy(r.std, cfg->std, sizeof r.std);
    return r;
}

static int open_parts(mr_trainer *t, mr_error *err)
{
    const mri_replica_config replica = replica_config(&t->cfg);
    int rc = mri_team_init(&t->team, t->cfg.devices, t->cfg.device_count, &replica, err);
    t->cfg.devices = t->team.devices;
    if (rc == MR_OK) rc = mri_exchange_init(&t->exchange, &t->team, err);
    if (rc == MR_OK) rc = mri_flights_init(&t->flights, &t->team, t->cfg.watchdog_s, t->cfg.trace, err);
    if (rc == MR_OK) rc = mri_tensors_init(&t->tensors, &t->team.replicas[0], err);
    if (rc == MR_OK) rc = mri_replica_init_weights(&t->team.replicas[0], err);
    if (rc == MR_OK) rc = mri_trainer_share_all(t, err);
    const bool adapts = t->cfg.loss_scale == 0;
    const mr_loss_scale scale = {.scale = adapts ? FIRST_SCALE : t->cfg.loss_scale,
                                 .growth_steps = adapts ? GROWTH_STEPS : 0};
    return rc ? rc : mri_scale_set(&t->flights, &scale, &t->scale, err);
}

int mr_trainer_open(mr_trainer **out, const mr_trainer_config *cfg, mr_error *err)
{
    *out = NULL;
    mr_trainer_config mine;
    mr_trainer_defaults(&mine);
    int rc = mri_settings_take(&mine, sizeof mine, cfg, "trainer", err);
    if (rc == MR_OK) rc = check_config(&mine, err);
    if (rc) return rc;
    mr_trainer *t = calloc(1, sizeof *t);
    if (!t) return mr_error_set(err, MR_ENOMEM, "no memory for a trainer");
    t->cfg = mine;
    t->best_val_loss = INFINITY;
    rc = open_parts(t, err);
    if (rc) {
        mr_trainer_close(t);
        return rc;
    }
    mri_step_log_start(&t->flights.log, t->team.count, 0);
    *out = t;
    return MR_OK;
}

/* Trainers whose devices may still write to their memory: kept for as long as the process lives. */
static _Atomic(mr_trainer *) abandoned;

static void abandon(mr_trainer *t)
{
    t->abandoned = abandoned;
    while (!atomic_compare_exchange_weak(&abandoned, &t->abandoned, t)) {
    }
}

void mr_trainer_close(mr_trainer *t)
{
    if (!t) return;
    if (t->flights.hangs && !mri_flights_have_drained(&t->flights)) {
        abandon(t);
        return;
    }
    mri_team_settle(&t->team); /* nothing queued may use what goes */
    mri_exchange_fini(&t->exchange);
    mri_flights_fini(&t->flights);
    mri_team_fini(&t->team);
    mri_tensors_fini(&t->tensors);
    free(t);
}

bool mr_trainer_hangs(const mr_trainer *t) { return t->flights.hangs; }

mr_stream *const *mr_trainer_streams(const mr_trainer *t) { return t->team.streams; }

/* ------------------------------------------------------------------------------ a step */

/* What the network takes is there. */
static int check_data(const mr_trainer *t, uint32_t r, const mr_part *part, mr_error *err)
{
    const mr_net *net = t->cfg.net;
    const mr_batch_field *numbers = &part->field[0];
    if (net->numbers ? numbers->data && numbers->width == net->w : part->pixels != NULL) return MR_OK;
    if (!net->numbers)
        return mr_error_set(err, MR_EINVAL, "part %u of the batch has no pictures, network %s takes them", r,
                            net->name);
    return mr_error_set(err, MR_EINVAL, "part %u of the batch has rows of %u numbers, network %s takes %u", r,
                        numbers->data ? numbers->width : 0, net->name, net->w);
}

static int check_batch(const mr_trainer *t, const mr_batch *b, mr_error *err)
{
    const int failed = mri_team_error(&t->team, err);
    if (failed) return failed;
    if (b->part_count != t->team.count)
        return mr_error_set(
            err, MR_EINVAL,
            "the batch has %u parts, the trainer %u replicas: open the loader with the trainer's "
            "devices",
            b->part_count, t->team.count);
    uint64_t sum = 0;
    for (uint32_t r = 0; r < t->team.count; r++) {
        sum += b->parts[r].count;
        if (b->parts[r].form != MR_PART_PIXELS)
            return mr_error_set(err, MR_EUNSUPPORTED,
                                "part %u of the batch comes in form %d: expected finished pixels", r,
                                (int)b->parts[r].form);
        if (b->parts[r].count && check_data(t, r, &b->parts[r], err)) return MR_EINVAL;
        if (b->parts[r].count > t->team.replicas[r].cfg.max_batch)
            return mr_error_set(err, MR_EINVAL,
                                "part %u of the batch has %u samples: the trainer was opened for at most %u",
                                r, b->parts[r].count, t->team.replicas[r].cfg.max_batch);
    }
    if (sum != b->count || b->counted > b->count)
        return mr_error_set(err, MR_EINVAL,
                            "the batch's parts hold %llu samples, the batch %u of which %u count",
                            (unsigned long long)sum, b->count, b->counted);
    return MR_OK;
}

/* The batch is there, and with it what this step's calls read from memory. */
static int begin_part(mr_trainer *t, uint32_t r, const mri_flight *f, const mr_part *part,
                      const mr_step_values *values)
{
    mri_replica *rep = &t->team.replicas[r];
    int rc = part->ready ? mr_stream_wait_event(rep->stream, part->ready) : MR_OK;
    if (rc == MR_OK) rc = mr_event_record(f->start[r], rep->stream);
    return rc ? rc : mri_replica_values(rep, mri_flight_number(&t->flights, f), values);
}

/* One segment on every replica. */
static int queue_segment(mr_trainer *t, const mr_batch *b, bool training, uint32_t segment, const char *what,
                         mr_error *err)
{
    const bool whole = b->count == t->cfg.batch; /* the end of an epoch comes too seldom to be recorded */
    int rc = MR_OK;
    for (uint32_t r = 0; rc == MR_OK && r < t->team.count; r++) {
        mri_replica *rep = &t->team.replicas[r];
        rc = !training && b->parts[r].count == 0
                 ? MR_OK
                 : mri_replica_run(rep, &b->parts[r], training, whole, segment);
        if (rc) return mri_team_queue_failed(&t->team, r, rc, what, err);
        mr_error why;
        char text[900];
        if (mri_replica_take_recording_error(rep, &why))
            snprintf(t->note, sizeof t->note, "steps are queued call by call, they cannot be recorded: %s",
                     mr_error_format(&why, text, sizeof text));
    }
    return rc;
}

static int queue_step(mr_trainer *t, const mri_flight *f, const mr_batch *b, mr_error *err)
{
    const uint32_t buckets = t->team.replicas[0].plan.bucket_count;
    int rc = MR_OK;
    for (uint32_t k = 0; rc == MR_OK && k < buckets; k++) {
        rc = queue_segment(t, b, true, k, "a training step", err);
        if (t->team.count == 1) continue;
        for (uint32_t r = 0; rc == MR_OK && k + 1 == buckets && r < t->team.count; r++) {
            rc = mr_event_record(f->computed[r], t->team.streams[r]);
            if (rc) return mri_team_queue_failed(&t->team, r, rc, "an event", err);
        }
        mri_range_begin(MRI_RANGE_EXCHANGE, k);
        if (rc == MR_OK) rc = mri_exchange_bucket(&t->exchange, k, err);
        mri_range_end();
    }
    return rc || t->team.count == 1 ? rc : queue_segment(t, b, true, buckets, "an update", err);
}

float mri_trainer_lr(const mr_trainer *t, uint64_t update)
{
    return mr_schedule_lr(&t->cfg.schedule, update, t->cfg.steps_per_epoch, t->cfg.epochs);
}

static bool counts_epochs(const mr_schedule *s)
{
    return s->kind == MR_LR_STEP || s->kind == MR_LR_COSINE || s->warmup_epochs > 0;
}

static int train_step(mr_trainer *t, const mr_batch *batch, mr_error *err)
{
    if (t->cfg.inference)
        return mr_error_set(err, MR_EINVAL, "this trainer was opened for inference and cannot train");
    if (t->cfg.steps_per_epoch == 0 && counts_epochs(&t->cfg.schedule))
        return mr_error_set(err, MR_EINVAL,
                            "the learning rate schedule counts epochs: set steps_per_epoch, or use mr_fit()");
    mri_flight *f = NULL;
    int rc = check_batch(t, batch, err);
    if (rc == MR_OK) rc = mri_flight_begin(&t->flights, batch, true, &f, err);
    if (rc) return rc;

    mr_update_desc update = t->cfg.update;
    mr_step_values values = {.step = batch->global_step,
                             .scale = batch->counted ? 1.0f / (float)batch->counted : 0.0f};
    update.lr = mri_trainer_lr(t, t->updates);
    update.step = ++t->updates;
    rc = mr_update_values(&update, &values);
    for (uint32_t r = 0; rc == MR_OK && r < t->team.count; r++) {
        rc = begin_part(t, r, f, &batch->parts[r], &values);
        if (rc) return mri_team_queue_failed(&t->team, r, rc, "a training step", err);
    }
    if (rc) return mr_error_set(err, rc, "the update's constants make no sense");
    rc = queue_step(t, f, batch, err);
    if (rc) return rc;
    mri_exchange_mark_stats_stale(&t->exchange);
    return mri_flight_end(&t->flights, f, err);
}

int mr_trainer_step(mr_trainer *t, const mr_batch *batch, mr_error *err)
{
    mri_range_begin(MRI_RANGE_STEP, batch->global_step);
    const int rc = train_step(t, batch, err);
    mri_range_end();
    return rc;
}

int mr_trainer_forward(mr_trainer *t, const mr_batch *batch, mr_error *err)
{
    mri_flight *f = NULL;
    int rc = check_batch(t, batch, err);
    if (rc == MR_OK) rc = mri_exchange_stats(&t->exchange, err);
    if (rc == MR_OK) rc = mri_flight_begin(&t->flights, batch, false, &f, err);
    if (rc) return rc;
    const mr_step_values values = {.step = batch->global_step};
    for (uint32_t r = 0; r < t->team.count; r++) {
        rc = begin_part(t, r, f, &batch->parts[r], &values);
        if (rc) return mri_team_queue_failed(&t->team, r, rc, "an evaluation", err);
    }
    rc = queue_segment(t, batch, false, 0, "an evaluation", err);
    return rc ? rc : mri_flight_end(&t->flights, f, err);
}

/* ------------------------------------------------------------------------------ sums */

int mri_trainer_take_sums(mr_trainer *t, mri_sums which, mr_metrics *out, mr_error *err)
{
    return mri_sums_take(&t->flights, which, out, &t->scale, err);
}

int mr_trainer_metrics(mr_trainer *t, mr_metrics *training, mr_metrics *evaluation, mr_error *err)
{
    mr_metrics sums[2];
    int rc = mri_team_error(&t->team, err);
    if (rc == MR_OK) rc = mri_trainer_take_sums(t, MRI_SUMS_TRAINING, &sums[0], err);
    if (rc == MR_OK) rc = mri_trainer_take_sums(t, MRI_SUMS_EVALUATION, &sums[1], err);
    if (rc) return rc;
    if (training) *training = sums[0];
    if (evaluation) *evaluation = sums[1];
    return MR_OK;
}
