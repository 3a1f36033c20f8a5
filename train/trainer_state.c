/* train/trainer_state.c: between a trainer and a checkpoint: saving, loading, hashing.
 *
 * Saving reads replica 0; loading writes it, and sends all of it to the others. */
#include <stdio.h>

#include <xxhash.h>

#include "base/abi.h"
#include "base/ranges.h"
#include "millrace/columns.h"
#include "train/net/code.h"
#include "train/state/run_folder.h"
#include "train/trainer.h"

static int settle(mr_trainer *t, mr_error *err)
{
    int rc = mri_team_error(&t->team, err);
    if (rc == MR_OK) rc = mri_served_read(&t->served, err);
    if (rc == MR_OK) rc = mri_exchange_stats(&t->exchange, err);
    if (rc == MR_OK) rc = mri_split_exchange_stats(&t->split, err);
    return rc ? rc : mri_flights_drain(&t->flights, err);
}

int mr_trainer_weights_hash(mr_trainer *t, uint32_t replica, uint64_t *lo, uint64_t *hi, mr_error *err)
{
    MRI_OWN(err, t);
    MRI_GIVEN(err, lo);
    MRI_GIVEN(err, hi);
    if (replica >= t->team.count)
        return mr_error_set(err, MR_EINVAL, "replica %u of %u", replica, t->team.count);
    int rc = settle(t, err);
    if (rc) return rc;
    const mri_replica *rep = &t->team.replicas[replica];
    float *host = malloc((size_t)t->tensors.most_floats * sizeof *host);
    XXH3_state_t *state = XXH3_createState();
    if (!host || !state) rc = mr_error_set(err, MR_ENOMEM, "no memory to hash weights");
    if (state) XXH3_128bits_reset(state);
    for (uint32_t i = 0; rc == MR_OK && i < t->tensors.count; i++) {
        if (t->tensors.desc[i].role > MRI_ROLE_STATE) break; /* the optimizer's arrays come last */
        rc = mri_tensor_export(&t->tensors, rep, i, false, host, err);
        if (rc == MR_OK) XXH3_128bits_update(state, host, (size_t)t->tensors.desc[i].count * sizeof *host);
    }
    if (rc == MR_OK) {
        const XXH128_hash_t h = XXH3_128bits_digest(state);
        *lo = h.low64, *hi = h.high64;
    }
    XXH3_freeState(state);
    free(host);
    return rc;
}

/* ------------------------------------------------------------------------------ all replicas alike */

/* Of every process. */
static int compare_ranks(const mr_trainer *t, uint64_t lo, uint64_t hi, mr_error *err)
{
    const mri_ranks *ranks = &t->team.ranks;
    const uint64_t mine[2] = {lo, hi};
    uint64_t(*all)[2] = calloc(ranks->size, sizeof *all);
    if (!all) return mr_error_set(err, MR_ENOMEM, "no memory for the hashes of %u ranks", ranks->size);
    int rc = mr_world_gather(ranks->world, MRI_RANKS_HOST, mine, sizeof mine, all, err);
    for (uint32_t r = 1; rc == MR_OK && r < ranks->size; r++)
        if (memcmp(all[r], all[0], sizeof *all) != 0)
            rc = mr_error_set(
                err, MR_EDEVICE,
                "rank %u (%s) does not hold the weights of rank 0: expected %016llx%016llx, found "
                "%016llx%016llx; the memory of a host or the link to it is not to be trusted",
                r, mr_world_host(ranks->world, r), (unsigned long long)all[0][1],
                (unsigned long long)all[0][0], (unsigned long long)all[r][1], (unsigned long long)all[r][0]);
    free(all);
    return rc;
}

int mri_trainer_compare(mr_trainer *t, mr_error *err)
{
    uint64_t lo = 0, hi = 0, other_lo, other_hi;
    const bool several = t->team.ranks.size > 1;
    int rc = t->team.count > 1 || several ? mr_trainer_weights_hash(t, 0, &lo, &hi, err) : MR_OK;
    for (uint32_t r = 1; rc == MR_OK && r < t->team.count; r++) {
        rc = mr_trainer_weights_hash(t, r, &other_lo, &other_hi, err);
        if (rc == MR_OK && (lo != other_lo || hi != other_hi))
            rc = mr_error_set(
                err, MR_EDEVICE,
                "replica %u (%s) does not hold the weights of replica 0 after they were sent to "
                "it: expected %016llx%016llx, found %016llx%016llx; memory of the device or the "
                "link to it is not to be trusted",
                r, mr_device_info_of(t->team.devices[r])->name, (unsigned long long)hi,
                (unsigned long long)lo, (unsigned long long)other_hi, (unsigned long long)other_lo);
    }
    return rc == MR_OK && several ? compare_ranks(t, lo, hi, err) : rc;
}

int mri_trainer_share_all(mr_trainer *t, mr_error *err)
{
    int rc = mri_exchange_all(&t->exchange, err);
    t->shares_differ = false;
    mri_served_restart(&t->served);
    if (rc == MR_OK) rc = mri_split_exchange_all(&t->split, err);
    if (rc == MR_OK) rc = mri_flights_drain(&t->flights, err);
    if (rc == MR_OK) mri_exchange_forget(&t->exchange);
    return rc ? rc : mri_trainer_compare(t, err);
}

/* ------------------------------------------------------------------------------ saving */

void mri_trainer_describe(const mr_trainer *t, const mr_loader_info *loader, const mr_source_info *data,
                          mr_checkpoint_info *out)
{
    const mri_run_state *run = &t->run;
    *out = (mr_checkpoint_info){.struct_size = sizeof *out,
                                .seed = t->cfg.seed,
                                .epoch = run->at.epoch,
                                .step = run->at.step,
                                .batch = loader->batch,
                                .fingerprint = loader->fingerprint,
                                .best_val_loss = run->best_val_loss,
                                .epochs_without_better = run->epochs_without_better,
                                .own_order_seed = loader->seed != t->cfg.seed,
                                .order_seed = loader->seed != t->cfg.seed ? loader->seed : 0,
                                .order = loader->order,
                                .block = loader->block,
                                .tail = loader->tail,
                                .pixels = loader->pixels,
                                .length_window = loader->length_window,
                                .repeats = loader->repeats > 1 ? loader->repeats : 0,
                                .epochs = run->epochs,
                                .patience = run->patience,
                                .validation_pending = run->validation_pending,
                                .stopped_early = run->stopped_early,
                                .ignore_exif = loader->ignore_exif,
                                .best_updates = run->best_updates,
                                .first_loss = run->first_loss,
                                .epoch_loss = run->validation_pending ? run->epoch_loss : 0,
                                .epoch_accuracy = run->validation_pending ? run->epoch_accuracy : 0,
                                .val_fingerprint = run->val_fingerprint,
                                .evaluation_pending = run->evaluation_pending,
                                .stop_at_accuracy = run->goal.accuracy,
                                .train_seconds = run->goal.time.training,
                                .eval_seconds = run->goal.time.evaluation,
                                .timed_from = run->goal.timed_from,
                                .reached_updates = run->goal.updates,
                                .reached_accuracy = run->goal.found,
                                .reached_seconds = run->goal.reached.training,
                                .reached_eval_seconds = run->goal.reached.evaluation};
    snprintf(out->augment, sizeof out->augment, "%s", loader->augment ? loader->augment : "");
    if (!data) return;
    snprintf(out->format, sizeof out->format, "%s", data->format);
    out->label_offset = data->label_offset;
    if (mr_net_target_loss(t->cfg.net)) return; /* mri_trainer_describe_targets() */
    if (data->class_count == mr_net_class_count(t->cfg.net)) out->class_names = data->class_names;
}

void mri_trainer_describe_targets(const mr_trainer *t, const mr_source *src, mr_checkpoint_info *out)
{
    const mr_net *net = t->cfg.net;
    const char *const *names;
    uint32_t field;
    const uint32_t count = mr_source_columns(src, &field, &names);
    if (mr_net_target_loss(net) && count && count == mri_net_told(net) &&
        strcmp(mr_source_info_of(src)->fields[field].name, mri_net_target_field(net)) == 0)
        out->class_names = names;
}

/* The content of a checkpoint; shares: the state of shares that differ, or NULL. */
typedef struct saving {
    mr_trainer *t;
    const float *shares;
} saving;

static int export_first(void *context, uint32_t at, float *out, mr_error *err)
{
    const saving *s = context;
    const mr_trainer *t = s->t;
    const uint64_t floats = mri_worker_state_floats(&t->tensors);
    if (at >= t->tensors.count) {
        memcpy(out, s->shares + (at - t->tensors.count) * floats, (size_t)floats * sizeof *out);
        return MR_OK;
    }
    return mri_tensor_export(&t->tensors, &t->team.replicas[0], at, false, out, err);
}

/* Overwrite the facts that the trainer knows better than its caller. */
static void complete(const mr_trainer *t, mr_checkpoint_info *own)
{
    const mr_net *net = t->cfg.net;
    snprintf(own->model, sizeof own->model, "%s", net->name);
    own->h = net->h, own->w = net->w, own->c = net->c;
    own->classes = mri_net_told(net);
    own->target_loss = mr_net_target_loss(net);
    snprintf(own->targets, sizeof own->targets, "%s", mri_net_target_field(net));
    own->class_weights = t->class_weights;
    own->class_weight_count = t->cfg.class_weight_count;
    own->param_count = mr_net_param_count(net);
    own->updates = t->updates;
    memcpy(own->run, t->run.id, sizeof own->run);
    own->update = t->cfg.update;
    own->update.step = t->updates;
    own->schedule = t->cfg.schedule;
    const bool scaled = t->cfg.dtype == MR_TENSOR_F16;
    own->loss_scale = scaled ? t->scale.scale : 0;
    own->loss_scale_good = scaled ? t->scale.good : 0;
    own->updates_skipped = scaled ? t->scale.skipped : 0;
    mri_trainer_keep(&t->cfg, own);
    own->parts = t->team.parts.all;
    own->part_threads = mr_device_info_of(t->team.devices[0])->threads;
    own->convolution = mr_trainer_convolution(t);
}

static int write_checkpoint(mr_trainer *t, const char *path, mr_checkpoint_info *own, const float *shares,
                            mr_error *err)
{
    saving s = {t, shares};
    mri_tensor_desc *tensors = NULL;
    uint32_t count = 0;
    const mr_net *net = t->cfg.net;
    bool keep;
    complete(t, own);
    int rc = mri_net_wants_keeping(net, own->classes, &keep, err);
    if (rc) return rc;
    rc = mri_trainer_list_shares(t, &tensors, &count, err);
    if (rc) return rc;
    mri_range_begin(MRI_RANGE_CHECKPOINT, t->updates);
    rc = mri_checkpoint_write(path, own, keep ? net : NULL, tensors, count, export_first, &s, err);
    mri_range_end();
    free(tensors);
    return rc;
}

/* The state of all shares where they differ, in every process; to be freed. */
static int gather_shares(mr_trainer *t, float **out, mr_error *err)
{
    const uint64_t floats = mri_trainer_own_shares(t) * mri_worker_state_floats(&t->tensors);
    *out = NULL;
    if (floats == 0) return MR_OK;
    *out = malloc((size_t)floats * sizeof **out);
    const int rc = *out
                       ? mri_trainer_gather_shares(t, *out, err)
                       : mr_error_set(err, MR_ENOMEM, "no memory for the state of %u shares: %llu bytes",
                                      mri_trainer_own_shares(t), (unsigned long long)(floats * sizeof **out));
    if (rc) {
        free(*out);
        *out = NULL;
    }
    return rc;
}

/* *own: the caller's facts, after all queued work is done. */
static int begin_saving(mr_trainer *t, const mr_checkpoint_info *info, mr_checkpoint_info *own, mr_error *err)
{
    if (t->cfg.inference)
        return mr_error_set(err, MR_EINVAL, "a trainer opened for inference has no optimizer state to save");
    *own = (mr_checkpoint_info){0};
    int rc = mri_result_check(info, err); /* as loading gave it */
    if (rc == MR_OK) rc = mri_settings_take(own, sizeof *own, info, "checkpoint", err);
    if (rc == MR_OK) rc = settle(t, err);
    return rc == MR_OK ? mri_scale_read(&t->flights, &t->scale, err) : rc;
}

int mr_trainer_save_sized(mr_trainer *t, const char *path, const mr_checkpoint_info *info, mr_error *err)
{
    MRI_OWN(err, t);
    MRI_GIVEN(err, path);
    MRI_GIVEN(err, info);
    mr_checkpoint_info own;
    float *shares = NULL;
    int rc = begin_saving(t, info, &own, err);
    if (rc == MR_OK) rc = gather_shares(t, &shares, err);
    if (rc) return rc;
    const mri_ranks *ranks = &t->team.ranks;
    rc = mri_ranks_share_error(ranks, ranks->rank == 0 ? write_checkpoint(t, path, &own, shares, err) : MR_OK,
                               err);
    free(shares);
    return rc;
}

/* ------------------------------------------------------------------------------ loading */

static int wrong_place(const mri_checkpoint *ck, int code, mr_error *err)
{
    mr_error_at(err, ck->path, MR_NOWHERE, MR_NOWHERE);
    return code;
}

/* Number of shares whose own state ends the list. */
static uint32_t shares_in(const mri_checkpoint *ck)
{
    uint32_t n = 0;
    while (n < ck->tensor_count && ck->tensors[ck->tensor_count - 1 - n].role == MRI_ROLE_WORKER) n++;
    return n;
}

/* The same name, or with and without an ending: a tar archive has "left.npy" where its table had "left". */
static bool same_field(const char *a, const char *b)
{
    const size_t n = strlen(a) < strlen(b) ? strlen(a) : strlen(b);
    return strncmp(a, b, n) == 0 && (a[n] == '\0' || strcmp(a + n, ".npy") == 0) &&
           (b[n] == '\0' || strcmp(b + n, ".npy") == 0);
}

static int check_fits(const mr_trainer *t, const mri_checkpoint *ck, mr_error *err)
{
    const mr_net *net = t->cfg.net;
    const mr_checkpoint_info *i = &ck->info;
    const unsigned long long own = mr_net_param_count(net), found = i->param_count;
    if (strcmp(i->model, net->name) != 0)
        mr_error_set(err, MR_EINVAL,
                     "the checkpoint is of model %s with %llu parameters: expected %s with %llu", i->model,
                     found, net->name, own);
    else if (found != own || i->c != net->c || i->classes != mri_net_told(net) ||
             ((i->h != net->h || i->w != net->w) && !mri_net_takes_any_size(net)))
        mr_error_set(err, MR_EINVAL,
                     "the checkpoint has %llu parameters for %ux%ux%u pictures and %u classes: expected %llu "
                     "for %ux%ux%u and %u",
                     found, i->h, i->w, i->c, i->classes, own, net->h, net->w, net->c, mri_net_told(net));
    else if (i->target_loss != mr_net_target_loss(net) ||
             (!net->open_end && !same_field(i->targets, mri_net_target_field(net))))
        mr_error_set(
            err, MR_EINVAL,
            "the checkpoint is of a run with targets in field \"%s\" (loss %d): expected \"%s\" (%d)",
            i->targets, (int)i->target_loss, mri_net_target_field(net), (int)mr_net_target_loss(net));
    else if (!t->cfg.inference && i->update.kind != t->cfg.update.kind)
        mr_error_set(
            err, MR_EINVAL,
            "the checkpoint has the state of %s, found %s; use the optimizer the run was started with",
            mr_update_name(&i->update), mr_update_name(&t->cfg.update));
    else if (!t->cfg.inference && (i->lookahead > 0) != (t->cfg.lookahead > 0))
        mr_error_set(err, MR_EINVAL, "the checkpoint is of a run with%s Lookahead, found one with%s",
                     i->lookahead ? "" : "out", t->cfg.lookahead ? "" : "out");
    else if (!t->cfg.inference && i->sync != t->cfg.sync)
        mr_error_set(
            err, MR_EINVAL,
            "the checkpoint is of a run with sync %u:%u, found one with %u:%u (mr_trainer_config.sync: "
            "%u is one set of weights, %u:N averages after N updates, %u is independent, %u delayed, %u and "
            "%u:N have servers)",
            i->sync & 255, i->sync >> 8, t->cfg.sync & 255, t->cfg.sync >> 8, MR_SYNC_EACH, MR_SYNC_AVERAGE,
            MR_SYNC_INDEPENDENT, MR_SYNC_DELAYED, MR_SYNC_SERVERS, MR_SYNC_SERVERS_ASYNC);
    else if (!t->cfg.inference && shares_in(ck) && shares_in(ck) != t->team.parts.all)
        mr_error_set(err, MR_EINVAL,
                     "the checkpoint has the own state of %u shares, the trainer has %u shares: "
                     "expected the same number (--parts)",
                     shares_in(ck), t->team.parts.all);
    else return MR_OK;
    return wrong_place(ck, MR_EINVAL, err);
}

/* A checkpoint's list: weights and statistics, the optimizer's arrays, averages of the first in the same
 * order. Entries that the trainer does not use may be left out: the optimizer's arrays for inference, and
 * averages where the trainer keeps no averages. */
static uint32_t averages_in(const mr_trainer *t, const mri_checkpoint *ck)
{
    return ck->info.average > 0 ? t->tensors.own : 0;
}

/* The number of the trainer's tensors before the averages. */
static uint32_t without_averages(const mr_trainer *t)
{
    return t->tensors.count - (t->team.replicas[0].plan.averages ? t->tensors.own : 0);
}

/* Where tensor i of the trainer is in the checkpoint, and as what. */
static uint32_t source_of(const mr_trainer *t, const mri_checkpoint *ck, uint32_t i, mri_role *role)
{
    const uint32_t own = t->tensors.own, before = without_averages(t), averages = averages_in(t, ck);
    const uint32_t of = i < before ? i : i - before; /* the weights or statistics it is the average of */
    const bool averaged = averages && (i >= before || t->cfg.inference);
    *role = t->tensors.desc[of].role;
    if (averaged) *role = mri_role_averaged(*role);
    return averaged ? ck->tensor_count - own + of : of;
}

static bool same_tensor(const mri_tensor_desc *a, const mri_tensor_desc *b)
{
    return strcmp(a->name, b->name) == 0 && a->ndim == b->ndim && memcmp(a->dim, b->dim, sizeof a->dim) == 0;
}

static int check_tensors(const mr_trainer *t, const mri_checkpoint *ck, mr_error *err)
{
    const uint32_t expected =
        without_averages(t) + averages_in(t, ck) + (t->cfg.inference ? 0 : shares_in(ck));
    if (t->cfg.inference ? ck->tensor_count < expected : ck->tensor_count != expected) {
        mr_error_set(err, MR_EFORMAT, "the checkpoint has %u tensors: expected %u", ck->tensor_count,
                     expected);
        return wrong_place(ck, MR_EFORMAT, err);
    }
    for (uint32_t i = 0; i < t->tensors.count; i++) {
        mri_role role;
        const uint32_t from = source_of(t, ck, i, &role);
        const mri_tensor_desc *mine = &t->tensors.desc[i], *found = &ck->tensors[from];
        if (same_tensor(mine, found) && found->role == role) continue;
        mr_error_set(
            err, MR_EFORMAT, "the checkpoint's tensor %u is %s of %llu elements: expected %s of %llu", from,
            found->name, (unsigned long long)found->count, mine->name, (unsigned long long)mine->count);
        return wrong_place(ck, MR_EFORMAT, err);
    }
    const uint64_t floats = mri_worker_state_floats(&t->tensors);
    for (uint32_t n = t->cfg.inference ? 0 : shares_in(ck); n > 0; n--) {
        const mri_tensor_desc *share = &ck->tensors[ck->tensor_count - n];
        if (share->count == floats) continue;
        mr_error_set(err, MR_EFORMAT, "the checkpoint's tensor %s has %llu elements: expected %llu",
                     share->name, (unsigned long long)share->count, (unsigned long long)floats);
        return wrong_place(ck, MR_EFORMAT, err);
    }
    return MR_OK;
}

/* State of the optimizer of parameters that stay from here on, whatever they did before: what momentum is
 * left would move them, and so would the weights that Lookahead goes back to. Those are the weights of the
 * same name, in *of. */
static bool is_frozen_state(const mr_trainer *t, uint32_t i, uint32_t *of)
{
    const mri_tensor_desc *d = &t->tensors.desc[i];
    const bool slow = mri_tensors_is_lookahead(&t->tensors, &t->team.replicas[0], i),
               slot = d->role == MRI_ROLE_SLOT0 || d->role == MRI_ROLE_SLOT1 || d->role == MRI_ROLE_SLOT2;
    *of = UINT32_MAX;
    if (!t->frozen.layers || !slot || !t->frozen.layers[strtoul(d->name, NULL, 10)]) return false;
    for (uint32_t k = 0; slow && k < t->tensors.own; k++)
        if (strcmp(t->tensors.desc[k].name, d->name) == 0) *of = k;
    return true;
}

static int load_tensors(mr_trainer *t, const mri_checkpoint *ck, mr_error *err)
{
    float *host = malloc((size_t)t->tensors.most_floats * sizeof *host);
    if (!host) return mr_error_set(err, MR_ENOMEM, "no memory to load a checkpoint");
    int rc = MR_OK;
    for (uint32_t i = 0; rc == MR_OK && i < t->tensors.count; i++) {
        mri_role role;
        uint32_t of;
        const bool stays = is_frozen_state(t, i, &of);
        if (stays && of == UINT32_MAX) memset(host, 0, (size_t)t->tensors.desc[i].count * sizeof *host);
        else rc = mri_checkpoint_read(ck, source_of(t, ck, stays ? of : i, &role), host, err);
        if (rc == MR_OK) rc = mri_tensor_import(&t->tensors, &t->team.replicas[0], i, host, err);
    }
    free(host);
    return rc;
}

/* A scale that adapts goes on from where it was; one the caller fixed, or a checkpoint without, leaves it as
 * it is. */
static int load_scale(mr_trainer *t, const mr_checkpoint_info *info, mr_error *err)
{
    if (info->loss_scale == 0 || t->cfg.loss_scale != 0) return MR_OK;
    mr_loss_scale scale = t->scale;
    scale.scale = info->loss_scale, scale.good = info->loss_scale_good, scale.skipped = info->updates_skipped;
    return mri_scale_set(&t->flights, &scale, &t->scale, err);
}

/* A checkpoint that does not tell its run is where a new one begins, to which it belongs. */
static void take_run(mri_run_state *run, const mr_checkpoint_info *info)
{
    static const uint8_t none[MRI_RUN_BYTES];
    mri_run_state read = {.resumed = true,
                          .from = info->updates,
                          .nameless_too = memcmp(info->run, none, sizeof none) == 0,
                          .at = {info->epoch, info->step},
                          .epochs = info->epochs,
                          .patience = info->patience,
                          .best_val_loss = info->best_val_loss,
                          .best_updates = info->best_updates,
                          .epochs_without_better = info->epochs_without_better,
                          .first_loss = info->first_loss,
                          .validation_pending = info->validation_pending,
                          .stopped_early = info->stopped_early,
                          .epoch_loss = info->epoch_loss,
                          .epoch_accuracy = info->epoch_accuracy,
                          .val_fingerprint = info->val_fingerprint,
                          .evaluation_pending = info->evaluation_pending,
                          .goal = {.accuracy = info->stop_at_accuracy,
                                   .time = {info->train_seconds, info->eval_seconds},
                                   .timed_from = info->timed_from,
                                   .updates = info->reached_updates,
                                   .found = info->reached_accuracy,
                                   .reached = {info->reached_seconds, info->reached_eval_seconds}}};
    memcpy(read.id, read.nameless_too ? run->id : info->run, sizeof read.id);
    *run = read;
}

/* Into the first replica. *ck is still to be closed. */
static int read_checkpoint(mr_trainer *t, const char *path, mri_checkpoint **ck, mr_error *err)
{
    int rc = mri_checkpoint_open(ck, path, err);
    if (rc == MR_OK) rc = check_fits(t, *ck, err);
    if (rc == MR_OK) rc = check_tensors(t, *ck, err);
    if (rc == MR_OK) rc = mri_checkpoint_verify(*ck, err); /* all of it before any weight changes */
    return rc ? rc : load_tensors(t, *ck, err);
}

/* From the first replica of rank 0, which has it, to all. */
static int take_from_first(mr_trainer *t, mr_checkpoint_info *info, mr_error *err)
{
    int rc = mri_ranks_tell(&t->team.ranks, info, sizeof *info, err);
    if (rc == MR_OK) rc = mri_trainer_share_all(t, err);
    if (rc == MR_OK) rc = load_scale(t, info, err);
    if (rc == MR_OK) {
        t->updates = info->updates;
        take_run(&t->run, info);
        t->loaded = *info;
    }
    return rc;
}

static int read_share(void *context, uint32_t share, float *out, mr_error *err)
{
    const mri_checkpoint *ck = context;
    return mri_checkpoint_read(ck, ck->tensor_count - shares_in(ck) + share, out, err);
}

/* Shares go on by themselves where the first process has their state. */
static int take_shares(mr_trainer *t, bool any, mri_share_source *source, void *context, mr_error *err)
{
    uint32_t all = any;
    const int rc = mri_ranks_tell(&t->team.ranks, &all, sizeof all, err);
    return rc == MR_OK && all ? mri_trainer_spread_shares(t, source, context, err) : rc;
}

int mr_trainer_load_sized(mr_trainer *t, const char *path, mr_checkpoint_info *out, mr_error *err)
{
    MRI_OWN(err, t);
    MRI_GIVEN(err, path);
    const mri_ranks *ranks = &t->team.ranks;
    mri_checkpoint *ck = NULL;
    mr_checkpoint_info info = {0};
    int rc = mri_result_check(out, err);
    if (rc == MR_OK) rc = settle(t, err);
    if (rc) return rc;
    if (ranks->rank == 0) rc = read_checkpoint(t, path, &ck, err); /* the first process reads, for all */
    rc = mri_ranks_share_error(ranks, rc, err);
    if (rc == MR_OK && ck) info = ck->info;
    if (rc == MR_OK) rc = take_from_first(t, &info, err);
    if (rc == MR_OK && mri_trainer_is_local(t)) rc = take_shares(t, ck && shares_in(ck), read_share, ck, err);
    if (rc == MR_OK) mri_result_give(out, &info, sizeof info);
    mri_checkpoint_close(ck);
    return rc;
}

/* ------------------------------------------------------------------------------ in memory */

typedef struct stored {
    mr_checkpoint_info info;
    uint32_t tensors; /* 0: nothing */
    uint64_t room, floats;
    float *data;          /* tensor behind tensor */
    float *shares;        /* the state of shares that differed, or NULL */
    float *class_weights; /* the info's, or NULL */
} stored;

struct mr_snapshot {
    stored now, next; /* next: its memory is used again */
};

int mr_snapshot_create(mr_snapshot **out)
{
    MRI_GIVEN(NULL, out);
    *out = calloc(1, sizeof **out);
    return *out ? MR_OK : MR_ENOMEM;
}

void mr_snapshot_destroy(mr_snapshot *s)
{
    if (!s) return;
    free(s->now.data);
    free(s->next.data);
    free(s->now.shares);
    free(s->next.shares);
    free(s->now.class_weights);
    free(s->next.class_weights);
    free(s);
}

bool mr_snapshot_info_sized(const mr_snapshot *s, mr_checkpoint_info *out)
{
    if (!s || !out || !s->now.tensors || mri_result_check(out, NULL)) return false;
    mri_result_give(out, &s->now.info, sizeof s->now.info);
    return true;
}

int mr_run_folder_take_over(mr_run_folder **out, const char *path, const mr_snapshot *of_run, mr_error *err)
{
    MRI_GIVEN(err, out);
    *out = NULL;
    MRI_GIVEN(err, path);
    MRI_GIVEN(err, of_run);
    mr_checkpoint_info info;
    const bool any = mr_snapshot_info(of_run, &info);
    return mri_run_folder_open(out, path, any ? info.run : NULL, err);
}

static uint64_t all_floats(const mri_tensors *tensors)
{
    uint64_t floats = 0;
    for (uint32_t i = 0; i < tensors->count; i++) floats += tensors->desc[i].count;
    return floats;
}

static int store_class_weights(stored *s, mr_error *err)
{
    const size_t bytes = s->info.class_weight_count * sizeof(float);
    const float *from = s->info.class_weights;
    s->info.class_weights = NULL;
    free(s->class_weights);
    s->class_weights = bytes ? malloc(bytes) : NULL;
    if (bytes == 0) return MR_OK;
    if (!s->class_weights) return mr_error_set(err, MR_ENOMEM, "no memory to keep the weights of classes");
    s->info.class_weights = memcpy(s->class_weights, from, bytes);
    return MR_OK;
}

static int store(mr_trainer *t, stored *s, mr_error *err)
{
    s->floats = all_floats(&t->tensors);
    if (s->room < s->floats) {
        free(s->data);
        s->room = 0;
        s->data = malloc((size_t)s->floats * sizeof *s->data);
        if (!s->data) return mr_error_set(err, MR_ENOMEM, "no memory to keep the state of training");
        s->room = s->floats;
    }
    int rc = store_class_weights(s, err);
    float *at = s->data;
    for (uint32_t i = 0; rc == MR_OK && i < t->tensors.count; at += t->tensors.desc[i++].count)
        rc = mri_tensor_export(&t->tensors, &t->team.replicas[0], i, false, at, err);
    s->tensors = t->tensors.count;
    free(s->shares);
    s->shares = NULL;
    return rc ? rc : gather_shares(t, &s->shares, err);
}

int mr_trainer_snapshot(mr_trainer *t, mr_snapshot *s, const mr_checkpoint_info *info, mr_error *err)
{
    MRI_OWN(err, t);
    MRI_GIVEN(err, s);
    MRI_GIVEN(err, info);
    stored next = s->next;
    int rc = begin_saving(t, info, &next.info, err);
    if (rc == MR_OK) {
        complete(t, &next.info);
        next.info.class_names = NULL;
        rc = store(t, &next, err);
        s->next = next;
    }
    if (rc == MR_OK) {
        s->next = s->now;
        s->now = next;
    }
    return rc;
}

static int import_all(mr_trainer *t, const mr_snapshot *s, mr_error *err)
{
    const float *at = s ? s->now.data : NULL;
    int rc = MR_OK;
    if (!s || s->now.tensors != t->tensors.count || s->now.floats != all_floats(&t->tensors) ||
        strcmp(s->now.info.model, t->cfg.net->name) != 0 || s->now.info.update.kind != t->cfg.update.kind)
        return mr_error_set(err, MR_EINVAL, "the snapshot holds nothing, or another network's state");
    for (uint32_t i = 0; rc == MR_OK && i < t->tensors.count; at += t->tensors.desc[i++].count)
        rc = mri_tensor_import(&t->tensors, &t->team.replicas[0], i, at, err);
    return rc;
}

typedef struct restoring {
    const mr_trainer *t;
    const mr_snapshot *s;
} restoring;

static int stored_share(void *context, uint32_t share, float *out, mr_error *err)
{
    const mr_trainer *t = ((const restoring *)context)->t;
    const uint64_t floats = mri_worker_state_floats(&t->tensors);
    (void)err;
    memcpy(out, ((const restoring *)context)->s->now.shares + share * floats, (size_t)floats * sizeof *out);
    return MR_OK;
}

int mr_trainer_restore(mr_trainer *t, const mr_snapshot *s, mr_error *err)
{
    MRI_OWN(err, t);
    const mri_ranks *ranks = &t->team.ranks;
    mr_checkpoint_info info = {0};
    if (ranks->rank == 0) MRI_GIVEN(err, s);
    int rc = settle(t, err);
    if (rc) return rc;
    if (ranks->rank == 0) rc = import_all(t, s, err);
    rc = mri_ranks_share_error(ranks, rc, err);
    if (rc == MR_OK && ranks->rank == 0) info = s->now.info;
    info.class_weights = NULL; /* memory of one process */
    if (rc == MR_OK) rc = take_from_first(t, &info, err);
    restoring from = {t, s};
    const bool any = ranks->rank == 0 && rc == MR_OK && s->now.shares;
    return rc == MR_OK && mri_trainer_is_local(t) ? take_shares(t, any, stored_share, &from, err) : rc;
}
