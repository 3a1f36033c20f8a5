/* train/trainer.c: one step over all replicas.
 *
 *   replica 0   wait ready │start│ forward, loss, backward ┐                ┌ update │end│
 *   replica 1   wait ready │start│ forward, loss, backward ┼ sum of grads ──┼ update │end│
 *   ...                                                    ┘                └
 *
 * The loss of every part is divided by the samples of the GLOBAL batch, so the sum over replicas is the gradient of the
 * whole batch however unevenly it was cut; a replica without samples adds zeros. Every replica then does the same update on
 * the same bits. Batch normalisation is the exception to "R replicas are one": its batch statistics are each part's own.
 * Running statistics are replica 0's wherever they are read: evaluation, checkpoints, hashes.
 *
 * The host runs at most MRI_RUN_AHEAD steps ahead. One thread uses a trainer at a time. */
#include <math.h>
#include <stdio.h>

#include "train/trainer.h"

void mr_trainer_defaults(mr_trainer_config *cfg)
{
    *cfg = (mr_trainer_config){.struct_size = sizeof *cfg, .batch = 128, .epochs = 1};
    cfg->update = (mr_update_desc){.kind = MR_UPDATE_SGD, .lr = 0.01f, .momentum = 0.9f, .rho = 0.9f, .beta1 = 0.9f,
                                   .beta2 = 0.999f, .epsilon = 1e-7f};
    cfg->schedule = (mr_schedule){.kind = MR_LR_CONSTANT, .lr = 0.01f, .factor = 0.1f};
    for (int c = 0; c < 4; c++) cfg->std[c] = 255.0f;
}

/* ------------------------------------------------------------------------------------------------ open, close */

static int check_config(const mr_trainer_config *cfg, mr_error *err)
{
    if (cfg->struct_size != sizeof *cfg)
        return mr_error_set(err, MR_EINVAL, "trainer settings of %zu bytes: expected %zu; start from mr_trainer_defaults()",
                            cfg->struct_size, sizeof *cfg);
    if (!cfg->net) return mr_error_set(err, MR_EINVAL, "a trainer needs a network");
    if (!cfg->devices || cfg->device_count == 0 || cfg->device_count > MR_LOADER_MAX_PARTS)
        return mr_error_set(err, MR_EINVAL, "a trainer needs 1 to %d devices, not %u", MR_LOADER_MAX_PARTS, cfg->device_count);
    if (cfg->batch == 0) return mr_error_set(err, MR_EINVAL, "the batch must be at least 1");
    if (!(cfg->schedule.lr > 0) || !isfinite(cfg->schedule.lr))
        return mr_error_set(err, MR_EINVAL, "learning rate %g: expected a finite number above 0", (double)cfg->schedule.lr);
    for (uint32_t c = 0; c < cfg->net->c; c++)
        if (!(cfg->std[c] > 0) || !isfinite(cfg->std[c]) || !isfinite(cfg->mean[c]))
            return mr_error_set(err, MR_EINVAL, "channel %u: mean %g, std %g: expected finite numbers, std above 0", c,
                                (double)cfg->mean[c], (double)cfg->std[c]);
    return mr_net_check(cfg->net, err);
}

static int open_replicas(mr_trainer *t, mr_error *err)
{
    const mr_trainer_config *cfg = &t->cfg;
    mri_replica_plan plan = {.net = cfg->net, .global_batch = cfg->batch, .seed = cfg->seed, .inference = cfg->inference,
                             .uses_affine = cfg->uses_affine, .memory_bytes = cfg->memory_bytes,
                             .slot_count = mr_update_state_count(cfg->update.kind)};
    plan.max_batch = cfg->batch / cfg->device_count + (cfg->batch % cfg->device_count != 0);
    memcpy(plan.mean, cfg->mean, sizeof plan.mean);
    memcpy(plan.std, cfg->std, sizeof plan.std);
    for (; t->count < cfg->device_count; t->count++) {
        mri_replica *r = &t->replicas[t->count];
        const int    rc = mri_replica_open(r, t->devices[t->count], &plan, err);
        if (rc) return rc;
        t->streams[t->count] = r->stream;
        t->grads[t->count] = r->grads;
        t->stats[t->count] = r->stats;
        if (r->weight_floats != t->replicas[0].weight_floats || r->stat_floats != t->replicas[0].stat_floats) {
            mr_error_set(err, MR_EUNSUPPORTED, "devices %s and %s store parameters differently and cannot train together",
                         mr_device_info_of(t->devices[0])->name, mr_device_info_of(r->dev)->name);
            mri_replica_close(r);
            return MR_EUNSUPPORTED;
        }
    }
    return MR_OK;
}

static int make_events(mr_trainer *t, mr_error *err)
{
    int rc = MR_OK;
    for (uint32_t f = 0; f < MRI_RUN_AHEAD; f++)
        for (uint32_t r = 0; rc == MR_OK && r < t->count; r++) {
            rc = mr_event_create(&t->flights[f].start[r], t->devices[r], err);
            if (rc == MR_OK) rc = mr_event_create(&t->flights[f].end[r], t->devices[r], err);
        }
    return rc;
}

static int open_parts(mr_trainer *t, mr_error *err)
{
    const uint32_t n = t->cfg.device_count;
    t->devices = calloc(n, sizeof(mr_device *));
    t->replicas = calloc(n, sizeof *t->replicas);
    t->streams = calloc(n, sizeof(mr_stream *));
    t->grads = calloc(n, sizeof(float *));
    t->stats = calloc(n, sizeof(float *));
    if (!t->devices || !t->replicas || !t->streams || !t->grads || !t->stats)
        return mr_error_set(err, MR_ENOMEM, "no memory for a trainer of %u replicas", n);
    memcpy(t->devices, t->cfg.devices, n * sizeof(mr_device *));
    t->cfg.devices = t->devices;
    int rc = open_replicas(t, err);
    if (rc == MR_OK) rc = mr_group_create(&t->group, t->streams, t->count, err);
    if (rc == MR_OK) rc = make_events(t, err);
    if (rc == MR_OK) rc = mri_trainer_list_tensors(t, err);
    return rc;
}

int mr_trainer_open(mr_trainer **out, const mr_trainer_config *cfg, mr_error *err)
{
    *out = NULL;
    int rc = check_config(cfg, err);
    if (rc) return rc;
    mr_trainer *t = calloc(1, sizeof *t);
    if (!t) return mr_error_set(err, MR_ENOMEM, "no memory for a trainer");
    t->cfg = *cfg;
    t->best_val_loss = INFINITY;
    rc = open_parts(t, err);
    if (rc) {
        mr_trainer_close(t);
        return rc;
    }
    mri_step_log_start(&t->log, t->count, 0);
    *out = t;
    return MR_OK;
}

void mr_trainer_close(mr_trainer *t)
{
    if (!t) return;
    for (uint32_t r = 0; r < t->count; r++) mr_stream_sync(t->replicas[r].stream, NULL); /* nothing queued may use what goes */
    mr_group_destroy(t->group);
    for (uint32_t f = 0; f < MRI_RUN_AHEAD; f++)
        for (uint32_t r = 0; r < t->count; r++) {
            mr_event_destroy(t->flights[f].start[r]);
            mr_event_destroy(t->flights[f].end[r]);
        }
    for (uint32_t r = 0; r < t->count; r++) mri_replica_close(&t->replicas[r]);
    free(t->tensors);
    free(t->places);
    free(t->devices);
    free(t->replicas);
    free(t->streams);
    free(t->grads);
    free(t->stats);
    free(t);
}

mr_stream *const *mr_trainer_streams(const mr_trainer *t) { return t->streams; }

/* ------------------------------------------------------------------------------------------------ errors, waiting */

static int keep_error(mr_trainer *t, const mr_error *why, mr_error *err)
{
    if (t->failed == MR_OK) {
        t->failed = why->code;
        t->error = *why;
    }
    if (err) *err = t->error;
    return t->failed;
}

int mri_trainer_queue_failed(mr_trainer *t, uint32_t replica, int rc, const char *what, mr_error *err)
{
    mr_error why = MR_ERROR_INIT;
    if (mr_stream_sync(t->streams[replica], &why) == MR_OK) /* else the stream knows better */
        mr_error_set(&why, rc, "%s: cannot queue %s: %s", mr_device_info_of(t->devices[replica])->name, what,
                     mr_status_text(rc));
    return keep_error(t, &why, err);
}

static void trace_flight(const mr_trainer *t, const mri_flight *f, const uint64_t *start, const uint64_t *end)
{
    if (!t->cfg.trace) return;
    for (uint32_t r = 0; r < t->count; r++) {
        char track[64];
        snprintf(track, sizeof track, "compute %s", mr_device_info_of(t->devices[r])->name);
        mr_trace_span(t->cfg.trace, track, f->training ? "compute" : "evaluate", start[r], end[r], f->batch);
    }
}

/* Wait for the oldest step in flight and take its figures. */
static int harvest(mr_trainer *t, mr_error *err)
{
    const mri_flight *f = &t->flights[t->harvested % MRI_RUN_AHEAD];
    uint64_t start[MR_LOADER_MAX_PARTS], end[MR_LOADER_MAX_PARTS];
    t->harvested++;
    for (uint32_t r = 0; r < t->count; r++) {
        mr_error why = MR_ERROR_INIT;
        int rc = mr_event_sync(f->end[r], &why);
        if (rc) return keep_error(t, &why, err);
        rc = mr_event_time_ns(f->start[r], &start[r]);
        if (rc == MR_OK) rc = mr_event_time_ns(f->end[r], &end[r]);
        if (rc) return mri_trainer_queue_failed(t, r, rc, "a time stamp", err);
    }
    trace_flight(t, f, start, end);
    if (f->training) mri_step_log_add(&t->log, start, end, f->samples);
    return MR_OK;
}

int mri_trainer_drain(mr_trainer *t, mr_error *err)
{
    int rc = MR_OK;
    while (rc == MR_OK && t->harvested < t->queued) rc = harvest(t, err);
    for (uint32_t r = 0; rc == MR_OK && r < t->count; r++) {
        mr_error why = MR_ERROR_INIT;
        rc = mr_stream_sync(t->streams[r], &why);
        if (rc) return keep_error(t, &why, err);
    }
    return rc;
}

/* ------------------------------------------------------------------------------------------------ a step */

static int check_batch(const mr_trainer *t, const mr_batch *b, mr_error *err)
{
    if (t->failed) {
        if (err) *err = t->error;
        return t->failed;
    }
    if (b->part_count != t->count)
        return mr_error_set(err, MR_EINVAL, "the batch has %u parts, the trainer %u replicas: open the loader with the trainer's "
                            "devices", b->part_count, t->count);
    uint64_t sum = 0;
    for (uint32_t r = 0; r < t->count; r++) {
        sum += b->parts[r].count;
        if (b->parts[r].count > t->replicas[r].plan.max_batch)
            return mr_error_set(err, MR_EINVAL, "part %u of the batch has %u samples: the trainer was opened for at most %u", r,
                                b->parts[r].count, t->replicas[r].plan.max_batch);
    }
    if (sum != b->count || b->counted > b->count)
        return mr_error_set(err, MR_EINVAL, "the batch's parts hold %llu samples, the batch %u of which %u count",
                            (unsigned long long)sum, b->count, b->counted);
    return MR_OK;
}

/* A flight to record this batch's events in, waiting for the oldest when all are taken. */
static int begin_flight(mr_trainer *t, const mr_batch *b, bool training, mri_flight **out, mr_error *err)
{
    if (t->queued - t->harvested == MRI_RUN_AHEAD) {
        const int rc = harvest(t, err);
        if (rc) return rc;
    }
    mri_flight *f = &t->flights[t->queued % MRI_RUN_AHEAD];
    f->training = training;
    f->batch = b->global_step;
    f->samples = b->counted;
    *out = f;
    return MR_OK;
}

static int queue_part(mr_trainer *t, uint32_t r, const mri_flight *f, const mr_batch *b, float scale)
{
    mri_replica   *rep = &t->replicas[r];
    const mr_part *part = &b->parts[r];
    int rc = part->ready ? mr_stream_wait_event(rep->stream, part->ready) : MR_OK;
    if (rc == MR_OK) rc = mr_event_record(f->start[r], rep->stream);
    if (rc) return rc;
    if (part->count == 0)
        return f->training ? mr_fill_async(rep->stream, rep->grads, 0, (size_t)rep->weight_floats * sizeof(float)) : MR_OK;
    rc = mri_replica_forward(rep, part, f->training, scale, b->global_step);
    if (rc == MR_OK && f->training) rc = mri_replica_backward(rep, part, scale, b->global_step);
    return rc;
}

static int queue_update(mr_trainer *t, uint32_t r, const mr_update_desc *update)
{
    const mri_replica *rep = &t->replicas[r];
    return mr_update_async(rep->stream, update, rep->weight_floats, rep->weights, rep->grads, rep->slot[0], rep->slot[1]);
}

static int end_flight(mr_trainer *t, const mri_flight *f, mr_error *err)
{
    for (uint32_t r = 0; r < t->count; r++) {
        const int rc = mr_event_record(f->end[r], t->streams[r]);
        if (rc) return mri_trainer_queue_failed(t, r, rc, "an event", err);
    }
    t->queued++;
    return MR_OK;
}

float mri_trainer_lr(const mr_trainer *t, uint64_t update)
{
    return mr_schedule_lr(&t->cfg.schedule, update, t->cfg.steps_per_epoch, t->cfg.epochs);
}

static bool counts_epochs(const mr_schedule *s)
{
    return s->kind == MR_LR_STEP || s->kind == MR_LR_COSINE || s->warmup_epochs > 0;
}

int mr_trainer_step(mr_trainer *t, const mr_batch *batch, mr_error *err)
{
    if (t->cfg.inference) return mr_error_set(err, MR_EINVAL, "this trainer was opened for inference and cannot train");
    if (t->cfg.steps_per_epoch == 0 && counts_epochs(&t->cfg.schedule))
        return mr_error_set(err, MR_EINVAL, "the learning rate schedule counts epochs: set steps_per_epoch, or use mr_fit()");
    mri_flight *f = NULL;
    int rc = check_batch(t, batch, err);
    if (rc == MR_OK) rc = begin_flight(t, batch, true, &f, err);
    if (rc) return rc;

    const float scale = batch->counted ? 1.0f / (float)batch->counted : 0.0f;
    for (uint32_t r = 0; r < t->count; r++) {
        rc = queue_part(t, r, f, batch, scale);
        if (rc) return mri_trainer_queue_failed(t, r, rc, "a training step", err);
    }
    rc = mr_group_sum_async(t->group, t->grads, t->replicas[0].weight_floats);
    if (rc) return mri_trainer_queue_failed(t, 0, rc, "the sum of gradients", err);

    mr_update_desc update = t->cfg.update;
    update.lr = mri_trainer_lr(t, t->updates);
    update.step = ++t->updates;
    for (uint32_t r = 0; r < t->count; r++) {
        rc = queue_update(t, r, &update);
        if (rc) return mri_trainer_queue_failed(t, r, rc, "an update", err);
    }
    t->stats_differ = true;
    return end_flight(t, f, err);
}

int mri_trainer_share_stats(mr_trainer *t, mr_error *err)
{
    if (!t->stats_differ) return MR_OK;
    t->stats_differ = false;
    if (t->replicas[0].stat_floats == 0) return MR_OK;
    const int rc = mr_group_broadcast_async(t->group, t->stats, t->replicas[0].stat_floats, 0);
    return rc ? mri_trainer_queue_failed(t, 0, rc, "a broadcast of running statistics", err) : MR_OK;
}

int mr_trainer_forward(mr_trainer *t, const mr_batch *batch, mr_error *err)
{
    mri_flight *f = NULL;
    int rc = check_batch(t, batch, err);
    if (rc == MR_OK) rc = mri_trainer_share_stats(t, err);
    if (rc == MR_OK) rc = begin_flight(t, batch, false, &f, err);
    if (rc) return rc;
    for (uint32_t r = 0; r < t->count; r++) {
        rc = queue_part(t, r, f, batch, 0.0f);
        if (rc) return mri_trainer_queue_failed(t, r, rc, "an evaluation", err);
    }
    return end_flight(t, f, err);
}

/* ------------------------------------------------------------------------------------------------ sums */

int mri_trainer_take_sums(mr_trainer *t, mri_sums which, mr_metrics *out, mr_error *err)
{
    *out = (mr_metrics){0};
    for (uint32_t r = 0; r < t->count; r++) { /* behind what is queued */
        const mri_replica *rep = &t->replicas[r];
        int rc = mr_copy_d2h_async(rep->stream, rep->host_sums, rep->sums[which], sizeof(mr_metrics));
        if (rc == MR_OK) rc = mr_fill_async(rep->stream, rep->sums[which], 0, sizeof(mr_metrics));
        if (rc) return mri_trainer_queue_failed(t, r, rc, "a copy of the sums", err);
    }
    const int rc = mri_trainer_drain(t, err);
    if (rc) return rc;
    for (uint32_t r = 0; r < t->count; r++) { /* always in this order: a double's sum depends on it */
        const mr_metrics *part = t->replicas[r].host_sums;
        out->loss_sum += part->loss_sum;
        out->correct += part->correct;
        out->count += part->count;
    }
    return MR_OK;
}

int mr_trainer_metrics(mr_trainer *t, mr_metrics *training, mr_metrics *evaluation, mr_error *err)
{
    mr_metrics sums[2];
    if (t->failed) {
        if (err) *err = t->error;
        return t->failed;
    }
    int rc = mri_trainer_take_sums(t, MRI_SUMS_TRAINING, &sums[0], err);
    if (rc == MR_OK) rc = mri_trainer_take_sums(t, MRI_SUMS_EVALUATION, &sums[1], err);
    if (rc) return rc;
    if (training) *training = sums[0];
    if (evaluation) *evaluation = sums[1];
    return MR_OK;
}
