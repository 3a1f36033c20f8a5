/* train/trainer.c: one step over all replicas.
 *
 *   replica 0   wait ready │start│ forward, loss, backward ┐                ┌ update │end│
 *   replica 1   wait ready │start│ forward, loss, backward ┼ sum of grads ──┼ update │end│
 *   ...                                                    ┘ (exchange.c)   └
 *
 * A replica with several parts of the batch computes them one after the other, and adds up their sums where
 * it can (fold.h).
 *
 * The loss of every part is divided by the samples of the GLOBAL batch, so the sum over parts is the
 * gradient of the whole batch however unevenly it was cut; a part without samples adds zeros. Every
 * replica then does the same update on the same bits. Batch normalisation is the exception to "R replicas are
 * one": its batch statistics are each part's own. Running statistics are replica 0's wherever they are read:
 * evaluation, checkpoints, hashes.
 *
 * One thread uses a trainer at a time. */
#include <stdio.h>

#include "base/abi.h"
#include "base/floats.h"
#include "base/ranges.h"
#include "train/run/worker.h"
#include "train/trainer.h"

/* The fields that the network takes are there, in rows as long as it takes them. */
static int check_fields(const mr_trainer *t, uint32_t r, const mr_part *part, mr_error *err)
{
    const mr_net *net = t->cfg.net;
    for (uint32_t k = 0; k < net->input_count; k++) {
        const mri_field_place *place = &t->team.replicas[0].cfg.in.fields[k];
        const mr_batch_field *f = &part->field[place->at];
        if (!f->data)
            return mr_error_set(err, MR_EINVAL, "part %u of the batch has no field %s, network %s takes it",
                                r, net->input[k].name, net->name);
        if (place->varies && f->width != net->input[k].numbers)
            return mr_error_set(
                err, MR_EINVAL,
                "part %u of the batch has rows of %u numbers in field %s, network %s takes %llu", r, f->width,
                net->input[k].name, net->name, (unsigned long long)net->input[k].numbers);
    }
    return MR_OK;
}

/* Check that the network's inputs are present. */
static int check_data(const mr_trainer *t, uint32_t r, const mr_part *part, mr_error *err)
{
    const mr_net *net = t->cfg.net;
    const mr_batch_field *numbers = &part->field[0];
    if (net->bare || (net->numbers ? numbers->data && numbers->width == net->w : part->pixels != NULL))
        return check_fields(t, r, part, err);
    if (!net->numbers)
        return mr_error_set(err, MR_EINVAL, "part %u of the batch has no pictures, network %s takes them", r,
                            net->name);
    return mr_error_set(err, MR_EINVAL, "part %u of the batch has rows of %u numbers, network %s takes %u", r,
                        numbers->data ? numbers->width : 0, net->name, net->w);
}

/* A batch in the parts of this process. */
static int check_cut(const mr_trainer *t, const mr_batch *b, mr_error *err)
{
    const mr_parts *parts = &t->team.parts;
    if (b->part_count != parts->count)
        return mr_error_set(
            err, MR_EINVAL,
            "the batch has %u parts, the trainer %u: open the loader with the trainer's devices, one "
            "for each of its parts",
            b->part_count, parts->count);
    if ((b->all_count > b->count) == (parts->count < parts->all) || parts->count < parts->all) return MR_OK;
    return mr_error_set(
        err, MR_EINVAL,
        "the batch is %u samples of %u: the trainer computes all of its %u parts, and expected all", b->count,
        b->all_count, parts->all);
}

static int check_batch(const mr_trainer *t, const mr_batch *b, mr_error *err)
{
    int rc = mri_team_error(&t->team, err);
    if (rc == MR_OK) rc = check_cut(t, b, err);
    if (rc) return rc;
    uint64_t sum = 0;
    for (uint32_t p = 0; p < b->part_count; p++) {
        sum += b->parts[p].count;
        if (b->parts[p].form != MR_PART_PIXELS)
            return mr_error_set(err, MR_EUNSUPPORTED,
                                "part %u of the batch comes in form %d: expected finished pixels", p,
                                (int)b->parts[p].form);
        if (b->parts[p].count && check_data(t, p, &b->parts[p], err)) return MR_EINVAL;
        if (b->parts[p].count > t->team.replicas[0].cfg.max_batch)
            return mr_error_set(err, MR_EINVAL,
                                "part %u of the batch has %u samples: the trainer was opened for at most %u",
                                p, b->parts[p].count, t->team.replicas[0].cfg.max_batch);
    }
    if (sum != b->count || b->counted > b->count)
        return mr_error_set(err, MR_EINVAL,
                            "the batch's parts have %llu samples, the batch has %u, and %u of them count",
                            (unsigned long long)sum, b->count, b->counted);
    return MR_OK;
}

/* The batch is there, and with it what this step's calls read from memory. */
static int begin_parts(mr_trainer *t, uint32_t r, const mri_flight *f, const mr_part *parts,
                       const mr_step_values *values)
{
    mri_replica *rep = &t->team.replicas[r];
    int rc = MR_OK;
    for (uint32_t k = 0; rc == MR_OK && k < t->team.parts.of_device[r]; k++)
        if (parts[k].ready) rc = mr_stream_wait_event(rep->stream, parts[k].ready);
    if (rc == MR_OK) rc = mr_event_record(f->start[r], rep->stream);
    return rc ? rc : mri_replica_values(rep, mri_flight_number(&t->flights, f), values);
}

/* The same for the stages after the first. */
static int begin_stages(mr_trainer *t, uint32_t r, const mri_flight *f, const mr_step_values *values,
                        mr_error *err)
{
    return mri_split_begin(&t->split, r, mri_flight_number(&t->flights, f), values, err);
}

static uint32_t bucket_count(const mr_trainer *t) { return t->team.replicas[0].plan.bucket_count; }

/* One segment of part `number` of a replica. */
static int queue_part(mr_trainer *t, uint32_t r, uint32_t number, const mr_batch *b, bool training,
                      uint32_t segment, const char *what, mr_error *err)
{
    const bool whole = (b->all_count ? b->all_count : b->count) == t->cfg.batch; /* the end of an epoch comes
                                                                                    too seldom to be recorded
                                                                                  */
    const mr_part *part = &b->parts[mri_team_first_part(&t->team, r) + number];
    mri_replica *rep = &t->team.replicas[r];
    mr_error why;
    char text[900];
    const int rc =
        !training && part->count == 0 ? MR_OK : mri_replica_run(rep, number, part, training, whole, segment);
    if (rc) return mri_team_queue_failed(&t->team, r, rc, what, err);
    if (mri_replica_take_recording_error(rep, &why))
        snprintf(t->note, sizeof t->note, "steps are queued call by call, they cannot be recorded: %s",
                 mr_error_format(&why, text, sizeof text));
    return MR_OK;
}

/* All of a replica's parts but the last one, each added to what waits. */
static int queue_first_parts(mr_trainer *t, uint32_t r, const mr_batch *b, mr_error *err)
{
    mri_replica *rep = &t->team.replicas[r];
    int rc = MR_OK;
    for (uint32_t k = 0; rc == MR_OK && k + 1 < t->team.parts.of_device[r]; k++) {
        for (uint32_t segment = 0; rc == MR_OK && segment < rep->plan.bucket_count; segment++)
            rc = queue_part(t, r, k, b, true, segment, "a training step", err);
        const int added = rc ? MR_OK : mri_replica_fold(rep, k, 0, rep->plan.weight_floats);
        if (added) return mri_team_queue_failed(&t->team, r, added, "an addition of gradients", err);
    }
    return rc;
}

/* The last part of every replica up to where a bucket is complete, and its addition to what waits. */
static int queue_bucket(mr_trainer *t, const mri_flight *f, const mr_batch *b, uint32_t k, mr_error *err)
{
    int rc = MR_OK;
    for (uint32_t r = 0; rc == MR_OK && r < t->team.count; r++) {
        mri_replica *rep = &t->team.replicas[r];
        const uint32_t last = t->team.parts.of_device[r] - 1;
        const mri_bucket *bucket = &rep->plan.buckets[k];
        rc = queue_part(t, r, last, b, true, k, "a training step", err);
        const int added = rc ? MR_OK : mri_replica_fold(rep, last, bucket->at, bucket->count);
        if (added) return mri_team_queue_failed(&t->team, r, added, "an addition of gradients", err);
    }
    for (uint32_t r = 0; rc == MR_OK && t->team.group && k + 1 == bucket_count(t) && r < t->team.count; r++) {
        rc = mr_event_record(f->computed[r], t->team.streams[r]);
        if (rc) return mri_team_queue_failed(&t->team, r, rc, "an event", err);
    }
    return rc;
}

/* Every share trains weights of its own; now and then they are averaged. */
static int queue_local_step(mr_trainer *t, const mri_flight *f, const mr_batch *b, mr_error *err)
{
    int rc = MR_OK;
    for (uint32_t r = 0; rc == MR_OK && r < t->team.count; r++) {
        for (uint32_t k = 0; rc == MR_OK && k < t->team.parts.of_device[r]; k++)
            rc = queue_part(t, r, k, b, true, 0, "a training step", err);
        const int noted = rc || !t->team.group ? MR_OK : mr_event_record(f->computed[r], t->team.streams[r]);
        if (noted) return mri_team_queue_failed(&t->team, r, noted, "an event", err);
    }
    const bool averages = !t->team.replicas[0].cfg.local.apart && mri_trainer_averages_now(t, b);
    if (rc == MR_OK && averages) rc = mri_exchange_average(&t->exchange, err);
    t->shares_differ = !averages;
    return rc ? rc : mri_flight_summed(&t->flights, f, err);
}

/* The update uses the sum of the batch before, and this batch's is on its way while the next is computed. */
static int queue_delayed_step(mr_trainer *t, const mri_flight *f, const mr_batch *b, mr_error *err)
{
    int rc = MR_OK;
    for (uint32_t r = 0; rc == MR_OK && r < t->team.count; r++) rc = queue_first_parts(t, r, b, err);
    if (rc == MR_OK) rc = queue_bucket(t, f, b, 0, err);
    if (rc == MR_OK) rc = mri_exchange_await_late(&t->exchange, err);
    if (rc == MR_OK) rc = mri_flight_summed(&t->flights, f, err);
    for (uint32_t r = 0; rc == MR_OK && t->updates > 1 && r < t->team.count; r++)
        rc = queue_part(t, r, t->team.parts.of_device[r] - 1, b, true, 1, "an update", err);
    return rc ? rc : mri_exchange_send_late(&t->exchange, err);
}

/* The servers update, with the gradients of this process. */
static int queue_served_step(mr_trainer *t, const mri_flight *f, const mr_batch *b,
                             const mr_update_desc *update, mr_error *err)
{
    int rc = queue_first_parts(t, 0, b, err);
    if (rc == MR_OK) rc = queue_bucket(t, f, b, 0, err);
    if (rc == MR_OK) rc = mri_flight_summed(&t->flights, f, err);
    return rc ? rc : mri_served_step(&t->served, update, t->updates - 1, err);
}

static int queue_step(mr_trainer *t, const mri_flight *f, const mr_batch *b, mr_error *err)
{
    const uint32_t buckets = bucket_count(t);
    int rc = MR_OK;
    if (t->split.count > 0) return mri_split_step(&t->split, f, b, err);
    if (mri_trainer_is_local(t)) return queue_local_step(t, f, b, err);
    if (t->team.replicas[0].cfg.local.delayed) return queue_delayed_step(t, f, b, err);
    for (uint32_t r = 0; rc == MR_OK && r < t->team.count; r++) rc = queue_first_parts(t, r, b, err);
    for (uint32_t k = 0; rc == MR_OK && k < buckets; k++) {
        rc = queue_bucket(t, f, b, k, err);
        if (!t->team.group) continue;
        mri_range_begin(MRI_RANGE_EXCHANGE, k);
        if (rc == MR_OK) rc = mri_exchange_bucket(&t->exchange, k, err);
        mri_range_end();
    }
    if (rc == MR_OK) rc = mri_flight_summed(&t->flights, f, err);
    for (uint32_t r = 0; rc == MR_OK && t->team.parts.all > 1 && r < t->team.count; r++)
        rc = queue_part(t, r, t->team.parts.of_device[r] - 1, b, true, buckets, "an update", err);
    return rc;
}

static uint64_t wanted_bucket(const mr_trainer *t)
{
    return t->buckets.changes ? t->buckets.bytes[mri_bucket_tuner_place(&t->buckets)] : t->bucket_bytes;
}

/* Wait for queued work, so that no process uses two ways to cut at once. The first process has sent the new
 * setting to all. */
static int change_buckets(mr_trainer *t, mr_error *err)
{
    const mri_ranks *ranks = &t->team.ranks;
    const uint64_t bytes = ranks->size > 1 ? ranks->beats[0].bucket_bytes : wanted_bucket(t);
    const bool changes = t->buckets.changes;
    if (bytes == t->bucket_bytes && !changes) return MR_OK;
    const int rc = mri_flights_drain(&t->flights, err);
    if (rc) return rc;
    if (changes) mri_bucket_tuner_take(&t->buckets);
    t->bucket_bytes = bytes;
    for (uint32_t r = 0; r < t->team.count; r++) mri_replica_set_bucket(&t->team.replicas[r], bytes);
    if (changes && t->buckets.done)
        snprintf(t->note, sizeof t->note,
                 "tune: bucket %.2f MiB (%u of them), of %u sizes; steps %.2f times as fast",
                 (double)bytes / (1 << 20), t->team.replicas[0].plan.bucket_count, t->buckets.sizes,
                 t->buckets.gain);
    return MR_OK;
}

int mri_trainer_enter(mr_trainer *t, const char *call, mr_error *err)
{
    const uintptr_t self = (uintptr_t)pthread_self();
    uintptr_t nobody = 0;
    if (atomic_compare_exchange_strong(&t->inside, &nobody, self)) {
        t->team.ranks.wants_to_stop = t->team.ranks.stop = false; /* of an earlier call */
        return MR_OK;
    }
    if (nobody == self)
        return mr_error_set(
            err, MR_EINVAL,
            "%s: a function that mr_fit() or an evaluation of this trainer has called must not call it",
            call);
    return mr_error_set(err, MR_EBUSY, "%s: another thread trains or evaluates with this trainer", call);
}

int mri_trainer_leave(mr_trainer *t, const char *call, int rc, mr_error *err)
{
    if (t->close_refused)
        rc = mr_error_set(err, MR_EINVAL, "mr_trainer_close: a function that %s has called must not call it",
                          call);
    t->close_refused = false;
    t->inside = 0;
    return rc;
}

uint64_t mr_trainer_staleness(const mr_trainer *t, double *mean, uint64_t *most)
{
    const mri_reply counts = t ? t->served.counts : (mri_reply){0};
    if (mean) *mean = counts.gradients ? (double)counts.stale_sum / (double)counts.gradients : 0;
    if (most) *most = counts.stale_most;
    return counts.gradients;
}

void mr_trainer_bucket_tuning_sized(const mr_trainer *t, mr_bucket_tuning *out)
{
    const mri_bucket_tuner none = {.done = true}, *b = t ? &t->buckets : &none;
    const mr_bucket_tuning all = {
        .done = b->done, .sizes = b->sizes, .bytes = b->bytes[mri_bucket_tuner_place(b)], .gain = b->gain};
    mri_result_give(out, &all, sizeof all);
}

/* Of one exchange: gradients, or the arrays that are averaged. */
static uint64_t sum_floats(const mr_trainer *t)
{
    const mri_replica *first = &t->team.replicas[0];
    uint64_t floats = 0;
    if (!first->cfg.local.on) return first->plan.weight_floats;
    if (first->cfg.local.apart) return 0;
    for (uint32_t a = 0; a < mri_worker_arrays(first); a++) floats += mri_worker_floats(first, a);
    return floats;
}

void mr_trainer_link_read_sized(const mr_trainer *t, mr_trainer_link *out)
{
    mr_trainer_link all = {.wire = "", .no_nccl = ""};
    if (t) {
        const bool by_nccl = mr_group_uses_nccl(t->exchange.group, &all.no_nccl);
        all.wire = by_nccl ? "nccl" : mr_world_wires(t->cfg.world);
        const mri_plan *plan = &t->team.replicas[0].plan;
        all.bytes = sum_floats(t) * sizeof(float);
        all.latency_ms = 1e3 * t->link.latency_s;
        all.bytes_per_s = t->link.s_per_byte > 0 ? 1 / t->link.s_per_byte : 0;
        all.bucket_bytes = t->bucket_bytes;
        all.buckets = plan->bucket_count;
        all.sum_ms = 1e3 * mri_link_speed_sum_s(&t->link, all.bytes);
    }
    mri_result_give(out, &all, sizeof all);
}

float mri_trainer_lr(const mr_trainer *t, uint64_t update)
{
    return mr_schedule_lr(&t->cfg.schedule, update, t->cfg.steps_per_epoch, t->cfg.epochs);
}

bool mri_trainer_simulates(const mr_trainer *t)
{
    for (uint32_t r = 0; r < t->team.count; r++)
        if (mr_device_info_of(t->team.devices[r])->simulated) return true;
    return false;
}

static bool counts_epochs(const mr_schedule *s)
{
    switch (s->kind) {
    case MR_LR_CONSTANT:
    case MR_LR_DECAY: return s->warmup_epochs > 0;
    case MR_LR_STEP:
    case MR_LR_COSINE:
    case MR_LR_PIECEWISE:
    case MR_LR_EXPONENTIAL:
    case MR_LR_ONE_CYCLE:
    case MR_LR_LINEAR: break;
    }
    return true;
}

/* Often enough to tell soon that a run diverges, too seldom to cost anything; and when somebody asked. */
static bool is_peeked_at(const mr_trainer *t)
{
    const uint64_t update = t->updates;
    return update % 64 == 0 || (update & (update - 1)) == 0 ||
           (t->peek_steps > 0 && update % t->peek_steps == 0);
}

/* Where workers do not wait for each other: the error of a lost one. */
static int find_lost(mr_trainer *t, mr_error *err)
{
    uint32_t rank = 0;
    mr_error why = MR_ERROR_INIT;
    if (!mr_world_was_lost(t->cfg.world, &rank)) return MR_OK;
    const int rc = mr_world_barrier(t->cfg.world, MRI_RANKS_HOST, &why);
    return rc ? mri_team_fail(&t->team, &why, err) : MR_OK;
}

/* All processes are at this batch; *counted: samples of all that count; *waited: until they were. */
static int beat(mr_trainer *t, const mr_batch *b, bool training, uint32_t *counted, mri_interval *waited,
                mr_error *err)
{
    mr_error why = MR_ERROR_INIT;
    const mri_beat mine = {.batch = b->global_step,
                           .steps = t->flights.steps,
                           .compute_ns = t->flights.compute_ns,
                           .idle_ns = t->flights.idle_ns,
                           .network_ns = t->flights.network_ns,
                           .bucket_bytes = wanted_bucket(t),
                           .counted = b->counted,
                           .training = training};
    waited->from_ns = mri_now_ns();
    if (training && t->served.request.async) { /* each at a batch of its own */
        *counted = t->team.ranks.size > 1 && b->all_count ? b->all_count : b->counted;
        *waited = (mri_interval){t->served.from_ns, t->served.to_ns};
        t->team.ranks.keep = false;
        return find_lost(t, err);
    }
    const int rc = mri_ranks_beat(&t->team.ranks, &mine, counted, &why);
    waited->to_ns = mri_now_ns();
    return rc ? mri_team_fail(&t->team, &why, err) : MR_OK;
}

int mr_trainer_rank_times_sized(const mr_trainer *t, uint32_t rank, mr_rank_times *out, mr_error *err)
{
    MRI_OWN(err, t);
    MRI_GIVEN(err, out);
    const mri_ranks *ranks = &t->team.ranks;
    const mri_beat *b = &ranks->beats[rank < ranks->size ? rank : 0];
    const double steps = b->steps ? (double)b->steps : 1;
    const mr_rank_times all = {.steps = b->steps,
                               .compute_ms = 1e-6 * (double)b->compute_ns / steps,
                               .idle_ms = 1e-6 * (double)b->idle_ns / steps,
                               .network_ms = 1e-6 * (double)b->network_ns / steps};
    const int rc = mri_result_check(out, err);
    if (rc) return rc;
    if (rank >= ranks->size) return mr_error_set(err, MR_EINVAL, "rank %u of %u", rank, ranks->size);
    mri_result_give(out, &all, sizeof all);
    return MR_OK;
}

static int train_step(mr_trainer *t, const mr_batch *batch, mr_error *err)
{
    if (t->cfg.inference)
        return mr_error_set(err, MR_EINVAL, "this trainer was opened for inference and cannot train");
    if (t->cfg.steps_per_epoch == 0 && counts_epochs(&t->cfg.schedule))
        return mr_error_set(err, MR_EINVAL,
                            "the learning rate schedule counts epochs: set steps_per_epoch, or use mr_fit()");
    mri_flight *f = NULL;
    mri_interval waited = {0, 0};
    uint32_t counted = 0;
    int rc = check_batch(t, batch, err);
    if (rc == MR_OK) rc = beat(t, batch, true, &counted, &waited, err);
    if (rc == MR_OK) rc = change_buckets(t, err);
    if (rc == MR_OK) rc = mri_flight_begin(&t->flights, batch, counted, waited, true, &f, err);
    if (rc) return rc;

    t->counted = counted;
    t->exchange.batch = batch->global_step;
    mr_update_desc update = t->cfg.update;
    const uint32_t sets = mri_trainer_is_local(t) ? t->team.parts.all : 1; /* of weights: each takes its share
                                                                            */
    mr_step_values values = {.step = batch->global_step,
                             .scale = counted ? (float)sets / (float)counted : 0.0f};
    update.lr = mri_trainer_lr(t, t->updates);
    update.step = ++t->updates;
    if (t->team.replicas[0].cfg.local.delayed && update.step > 1)
        update.step--; /* the first one changes nothing */
    rc = mr_update_values(&update, &values);
    for (uint32_t r = 0; rc == MR_OK && r < t->team.count; r++) {
        rc = begin_parts(t, r, f, &batch->parts[mri_team_first_part(&t->team, r)], &values);
        if (rc) return mri_team_queue_failed(&t->team, r, rc, "a training step", err);
        rc = begin_stages(t, r, f, &values, err);
        if (rc) return rc;
    }
    if (rc) return mr_error_set(err, rc, "the update's constants make no sense");
    rc = t->served.crew ? queue_served_step(t, f, batch, &update, err) : queue_step(t, f, batch, err);
    for (uint32_t r = 0; rc == MR_OK && r < t->team.count; r++) {
        rc = mri_replica_behind_update(&t->team.replicas[r], t->updates);
        if (rc) rc = mri_team_queue_failed(&t->team, r, rc, "an average", err);
    }
    if (rc == MR_OK && is_peeked_at(t)) rc = mri_flight_peek(&t->flights, f, err);
    /* behind all that a stage has queued: the flight ends on the first one's streams */
    if (rc == MR_OK && t->split.count > 0) rc = mri_split_end(&t->split, t->updates, err);
    if (rc) return rc;
    mri_exchange_mark_stats_stale(&t->exchange);
    mri_split_mark_stats_stale(&t->split);
    rc = mri_flight_end(&t->flights, f, err);
    if (rc == MR_OK)
        t->run.at =
            batch->last ? (mri_position){batch->epoch + 1, 0} : (mri_position){batch->epoch, batch->step + 1};
    return rc;
}

int mr_trainer_step(mr_trainer *t, const mr_batch *batch, mr_error *err)
{
    MRI_DEFAULT_FLOATS;
    MRI_OWN(err, t);
    MRI_GIVEN(err, batch);
    mri_range_begin(MRI_RANGE_STEP, batch->global_step);
    const int rc = train_step(t, batch, err);
    mri_range_end();
    return rc;
}

int mr_trainer_forward(mr_trainer *t, const mr_batch *batch, mr_error *err)
{
    MRI_DEFAULT_FLOATS;
    MRI_OWN(err, t);
    MRI_GIVEN(err, batch);
    mri_flight *f = NULL;
    mri_interval waited = {0, 0};
    uint32_t counted = 0;
    int rc = check_batch(t, batch, err);
    if (rc == MR_OK) rc = beat(t, batch, false, &counted, &waited, err);
    if (rc == MR_OK) rc = mri_served_read(&t->served, err);
    if (rc == MR_OK) rc = mri_exchange_stats(&t->exchange, err);
    if (rc == MR_OK) rc = mri_split_exchange_stats(&t->split, err);
    if (rc == MR_OK) rc = mri_flight_begin(&t->flights, batch, counted, waited, false, &f, err);
    if (rc) return rc;
    const mr_step_values values = {.step = batch->step}; /* the same draws in every evaluation */
    for (uint32_t r = 0; r < t->team.count; r++) {
        rc = begin_parts(t, r, f, &batch->parts[mri_team_first_part(&t->team, r)], &values);
        if (rc) return mri_team_queue_failed(&t->team, r, rc, "an evaluation", err);
        if (t->split.count > 0) {
            rc = begin_stages(t, r, f, &values, err);
            if (rc == MR_OK) rc = mri_split_forward(&t->split, r, batch, err);
            if (rc) return rc;
            continue;
        }
        for (uint32_t k = 0; rc == MR_OK && k < t->team.parts.of_device[r]; k++)
            rc = queue_part(t, r, k, batch, false, 0, "an evaluation", err);
        if (rc) return rc;
    }
    return rc ? rc : mri_flight_end(&t->flights, f, err);
}

/* ------------------------------------------------------------------------------ sums */

int mri_trainer_take_sums(mr_trainer *t, mri_sums which, mr_metrics *out, mr_error *err)
{
    return mri_sums_take(&t->flights, which, out, &t->scale, err);
}

int mr_trainer_metrics(mr_trainer *t, mr_metrics *training, mr_metrics *evaluation, mr_error *err)
{
    MRI_OWN(err, t);
    mr_metrics sums[2];
    int rc = mri_team_error(&t->team, err);
    if (rc == MR_OK) rc = mri_trainer_take_sums(t, MRI_SUMS_TRAINING, &sums[0], err);
    if (rc == MR_OK) rc = mri_trainer_take_sums(t, MRI_SUMS_EVALUATION, &sums[1], err);
    if (rc) return rc;
    if (training) *training = sums[0];
    if (evaluation) *evaluation = sums[1];
    return MR_OK;
}
