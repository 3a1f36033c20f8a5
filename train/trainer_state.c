/* train/trainer_state.c: between a trainer and a checkpoint: saving, loading, hashing.
 *
 * Saving reads replica 0; loading writes it, and sends all of it to the others. */
#include <stdio.h>

#include <xxhash.h>

#include "base/abi.h"
#include "base/ranges.h"
#include "train/trainer.h"

static int settle(mr_trainer *t, mr_error *err)
{
    int rc = mri_team_error(&t->team, err);
    if (rc == MR_OK) rc = mri_exchange_stats(&t->exchange, err);
    return rc ? rc : mri_flights_drain(&t->flights, err);
}

int mr_trainer_weights_hash(mr_trainer *t, uint32_t replica, uint64_t *lo, uint64_t *hi, mr_error *err)
{
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

int mri_trainer_compare(mr_trainer *t, mr_error *err)
{
    uint64_t lo, hi, other_lo, other_hi;
    int rc = t->team.count > 1 ? mr_trainer_weights_hash(t, 0, &lo, &hi, err) : MR_OK;
    for (uint32_t r = 1; rc == MR_OK && r < t->team.count; r++) {
        rc = mr_trainer_weights_hash(t, r, &other_lo, &other_hi, err);
        if (rc == MR_OK && (lo != other_lo || hi != other_hi))
            rc = mr_error_set(
                err, MR_EDEVICE,
                "replica %u (%s) does not hold the weights of replica 0 after they were sent to it: expected "
                "%016llx%016llx, found %016llx%016llx; memory of the device or the link to it is not to be "
                "trusted",
                r, mr_device_info_of(t->team.devices[r])->name, (unsigned long long)hi,
                (unsigned long long)lo, (unsigned long long)other_hi, (unsigned long long)other_lo);
    }
    return rc;
}

int mri_trainer_share_all(mr_trainer *t, mr_error *err)
{
    int rc = mri_exchange_all(&t->exchange, err);
    if (rc == MR_OK) rc = mri_flights_drain(&t->flights, err);
    return rc ? rc : mri_trainer_compare(t, err);
}

/* ------------------------------------------------------------------------------ saving */

void mri_trainer_describe(const mr_trainer *t, const mr_loader_info *loader, const mr_source_info *data,
                          mri_position at, mr_checkpoint_info *out)
{
    *out = (mr_checkpoint_info){.seed = t->cfg.seed,
                                .epoch = at.epoch,
                                .step = at.step,
                                .batch = loader->batch,
                                .fingerprint = loader->fingerprint,
                                .best_val_loss = t->best_val_loss,
                                .epochs_without_better = t->epochs_without_better,
                                .order = loader->order,
                                .block = loader->block,
                                .tail = loader->tail,
                                .pixels = loader->pixels,
                                .length_window = loader->length_window};
    snprintf(out->augment, sizeof out->augment, "%s", loader->augment ? loader->augment : "");
    if (!data) return;
    snprintf(out->format, sizeof out->format, "%s", data->format);
    out->label_offset = data->label_offset;
    if (data->class_count == mr_net_class_count(t->cfg.net)) out->class_names = data->class_names;
}

static int export_first(void *context, uint32_t at, float *out, mr_error *err)
{
    const mr_trainer *t = context;
    return mri_tensor_export(&t->tensors, &t->team.replicas[0], at, false, out, err);
}

int mr_trainer_save_sized(mr_trainer *t, const char *path, const mr_checkpoint_info *info, mr_error *err)
{
    mr_checkpoint_info own = {0}; /* what the trainer knows better than its caller is written over */
    if (t->cfg.inference)
        return mr_error_set(err, MR_EINVAL, "a trainer opened for inference has no optimizer state to save");
    int rc = mri_result_check(info, err); /* as loading gave it */
    if (rc == MR_OK) rc = mri_settings_take(&own, sizeof own, info, "checkpoint", err);
    if (rc == MR_OK) rc = settle(t, err);
    if (rc == MR_OK) rc = mri_scale_read(&t->flights, &t->scale, err);
    if (rc) return rc;
    const mr_net *net = t->cfg.net;
    snprintf(own.model, sizeof own.model, "%s", net->name);
    own.h = net->h, own.w = net->w, own.c = net->c;
    own.classes = mr_net_class_count(net);
    own.param_count = mr_net_param_count(net);
    own.updates = t->updates;
    own.update = t->cfg.update;
    own.update.step = t->updates;
    own.schedule = t->cfg.schedule;
    const bool scaled = t->cfg.dtype == MR_TENSOR_F16;
    own.loss_scale = scaled ? t->scale.scale : 0;
    own.loss_scale_good = scaled ? t->scale.good : 0;
    own.updates_skipped = scaled ? t->scale.skipped : 0;
    mri_range_begin(MRI_RANGE_CHECKPOINT, t->updates);
    rc = mri_checkpoint_write(path, &own, t->tensors.desc, t->tensors.count, export_first, t, err);
    mri_range_end();
    return rc;
}

/* ------------------------------------------------------------------------------ loading */

static int wrong_place(const mri_checkpoint *ck, int code, mr_error *err)
{
    mr_error_at(err, ck->path, MR_NOWHERE, MR_NOWHERE);
    return code;
}

static const char *rule_name(mr_update_kind kind)
{
    static const char *const names[] = {"sgd", "momentum", "rmsprop", "adam", "adadelta"};
    return (unsigned)kind < MRI_ARRAY_COUNT(names) ? names[kind] : "an unknown optimizer";
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
    else if (found != own || i->h != net->h || i->w != net->w || i->c != net->c ||
             i->classes != mr_net_class_count(net))
        mr_error_set(err, MR_EINVAL,
                     "the checkpoint has %llu parameters for %ux%ux%u pictures and %u classes: expected %llu "
                     "for %ux%ux%u and %u",
                     found, i->h, i->w, i->c, i->classes, own, net->h, net->w, net->c,
                     mr_net_class_count(net));
    else if (!t->cfg.inference && i->update.kind != t->cfg.update.kind)
        mr_error_set(
            err, MR_EINVAL,
            "the checkpoint has the state of %s, found %s; use the optimizer the run was started with",
            rule_name(i->update.kind), rule_name(t->cfg.update.kind));
    else return MR_OK;
    return wrong_place(ck, MR_EINVAL, err);
}

static bool same_tensor(const mri_tensor_desc *a, const mri_tensor_desc *b)
{
    return strcmp(a->name, b->name) == 0 && a->role == b->role && a->ndim == b->ndim &&
           memcmp(a->dim, b->dim, sizeof a->dim) == 0;
}

/* A trainer's list is the head of the checkpoint's: an inference trainer lacks the optimizer's arrays at its
 * end. */
static int check_tensors(const mr_trainer *t, const mri_checkpoint *ck, mr_error *err)
{
    const bool count_fits =
        t->cfg.inference ? ck->tensor_count >= t->tensors.count : ck->tensor_count == t->tensors.count;
    if (!count_fits) {
        mr_error_set(err, MR_EFORMAT, "the checkpoint has %u tensors: expected %u", ck->tensor_count,
                     t->tensors.count);
        return wrong_place(ck, MR_EFORMAT, err);
    }
    for (uint32_t i = 0; i < t->tensors.count; i++) {
        if (same_tensor(&t->tensors.desc[i], &ck->tensors[i])) continue;
        mr_error_set(err, MR_EFORMAT,
                     "the checkpoint's tensor %u is %s of %llu elements: expected %s of %llu", i,
                     ck->tensors[i].name, (unsigned long long)ck->tensors[i].count, t->tensors.desc[i].name,
                     (unsigned long long)t->tensors.desc[i].count);
        return wrong_place(ck, MR_EFORMAT, err);
    }
    return MR_OK;
}

static int load_tensors(mr_trainer *t, const mri_checkpoint *ck, mr_error *err)
{
    float *host = malloc((size_t)t->tensors.most_floats * sizeof *host);
    if (!host) return mr_error_set(err, MR_ENOMEM, "no memory to load a checkpoint");
    int rc = MR_OK;
    for (uint32_t i = 0; rc == MR_OK && i < t->tensors.count; i++) {
        rc = mri_checkpoint_read(ck, i, host, err);
        if (rc == MR_OK) rc = mri_tensor_import(&t->tensors, &t->team.replicas[0], i, host, err);
    }
    free(host);
    return rc ? rc : mri_trainer_share_all(t, err);
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

int mr_trainer_load_sized(mr_trainer *t, const char *path, mr_checkpoint_info *out, mr_error *err)
{
    mri_checkpoint *ck = NULL;
    int rc = mri_result_check(out, err);
    if (rc == MR_OK) rc = settle(t, err);
    if (rc == MR_OK) rc = mri_checkpoint_open(&ck, path, err);
    if (rc) return rc;
    rc = check_fits(t, ck, err);
    if (rc == MR_OK) rc = check_tensors(t, ck, err);
    if (rc == MR_OK) rc = mri_checkpoint_verify(ck, err); /* all of it before any weight changes */
    if (rc == MR_OK) rc = load_tensors(t, ck, err);
    if (rc == MR_OK) rc = load_scale(t, &ck->info, err);
    if (rc == MR_OK) {
        t->updates = ck->info.updates;
        t->best_val_loss = ck->info.best_val_loss;
        t->epochs_without_better = ck->info.epochs_without_better;
        mri_result_give(out, &ck->info, sizeof ck->info);
    }
    mri_checkpoint_close(ck);
    return rc;
}
