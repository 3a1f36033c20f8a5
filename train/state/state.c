/* train/state/state.c: between a trainer and a checkpoint: the list of its tensors in canonical order,
 * saving, loading, hashing.
 *
 * Tensors are named LAYER/KIND/PARAMETER by place in the network, so the list is the same on every device and
 * for every number of replicas. Saving reads replica 0; loading writes it, and sends all of it to the
 * others. */
#include <stdio.h>

#include <xxhash.h>

#include "base/ranges.h"
#include "train/trainer.h"

/* ------------------------------------------------------------------------------ the list */

static uint32_t slots_of(const mr_trainer *t)
{
    return t->cfg.inference ? 0 : t->replicas[0].plan.slot_count;
}

static void add_tensor(mr_trainer *t, uint32_t node, bool state, uint32_t which, mri_role role)
{
    const mri_replica *rep = &t->replicas[0];
    const mri_node *n = &rep->nodes[node];
    const mr_param_info *p = state ? &n->info->state[which] : &n->info->param[which];
    const mri_layer *l = &rep->plan.net->layers[n->layer];
    mri_tensor_desc *d = &t->tensors[t->tensor_count];
    snprintf(d->name, sizeof d->name, "%u/%s/%s", n->layer, mri_layer_kind_name(l->kind, l->average),
             p->name);
    d->role = role;
    d->ndim = p->ndim;
    memcpy(d->dim, p->dim, p->ndim * sizeof p->dim[0]);
    d->count = p->count;
    t->places[t->tensor_count++] = (mri_tensor_place){
        .node = node, .which = which, .state = state, .at = state ? n->state_at[which] : n->param_at[which]};
    t->tensor_floats = mri_max_u64(t->tensor_floats, p->count);
}

/* Weights and statistics layer by layer, then the optimizer's arrays. */
int mri_trainer_list_tensors(mr_trainer *t, mr_error *err)
{
    const mri_replica *rep = &t->replicas[0];
    size_t most = 0;
    for (uint32_t i = 0; i < rep->node_count; i++)
        most += (size_t)rep->nodes[i].info->param_count * (1 + slots_of(t)) + rep->nodes[i].info->state_count;
    if (most > MRI_CHECKPOINT_MAX_TENSORS)
        return mr_error_set(err, MR_ELIMIT, "%zu tensors are more than a checkpoint holds", most);
    t->tensors = calloc(most, sizeof *t->tensors);
    t->places = calloc(most, sizeof *t->places);
    if (!t->tensors || !t->places)
        return mr_error_set(err, MR_ENOMEM, "no memory for a list of %zu tensors", most);
    for (uint32_t i = 0; i < rep->node_count; i++) {
        const mr_op_info *info = rep->nodes[i].info;
        for (uint32_t p = 0; p < info->param_count; p++) add_tensor(t, i, false, p, MRI_ROLE_WEIGHTS);
        for (uint32_t p = 0; p < info->state_count; p++) add_tensor(t, i, true, p, MRI_ROLE_STATE);
    }
    for (uint32_t s = 0; s < slots_of(t); s++)
        for (uint32_t i = 0; i < rep->node_count; i++)
            for (uint32_t p = 0; p < rep->nodes[i].info->param_count; p++)
                add_tensor(t, i, false, p, s == 0 ? MRI_ROLE_SLOT0 : MRI_ROLE_SLOT1);
    return MR_OK;
}

static float *array_of(const mri_replica *rep, mri_role role)
{
    switch (role) {
    case MRI_ROLE_WEIGHTS: return rep->weights;
    case MRI_ROLE_STATE: return rep->stats;
    case MRI_ROLE_SLOT0: return rep->slot[0];
    case MRI_ROLE_SLOT1: return rep->slot[1];
    case MRI_ROLE_COUNT: break;
    }
    return NULL;
}

int mri_trainer_export(mr_trainer *t, uint32_t replica, uint32_t tensor, bool gradient, float *out,
                       mr_error *err)
{
    const mri_replica *rep = &t->replicas[replica];
    const mri_tensor_place *p = &t->places[tensor];
    const float *array = gradient ? rep->grads : array_of(rep, t->tensors[tensor].role);
    return mr_op_param_export(rep->nodes[p->node].op, p->state, p->which, array + p->at, out, err);
}

/* Into replica 0; the others get theirs from it. */
static int import_tensor(mr_trainer *t, uint32_t tensor, const float *from, mr_error *err)
{
    const mri_tensor_place *p = &t->places[tensor];
    const mri_replica *rep = &t->replicas[0];
    float *array = array_of(rep, t->tensors[tensor].role);
    return mr_op_param_import(rep->nodes[p->node].op, p->state, p->which, array + p->at, from, err);
}

static int settle(mr_trainer *t, mr_error *err)
{
    if (t->failed) {
        if (err) *err = t->error;
        return t->failed;
    }
    const int rc = mri_trainer_share_stats(t, err);
    return rc ? rc : mri_trainer_drain(t, err);
}

int mr_trainer_weights_hash(mr_trainer *t, uint32_t replica, uint64_t *lo, uint64_t *hi, mr_error *err)
{
    if (replica >= t->count) return mr_error_set(err, MR_EINVAL, "replica %u of %u", replica, t->count);
    int rc = settle(t, err);
    if (rc) return rc;
    float *host = malloc((size_t)t->tensor_floats * sizeof *host);
    XXH3_state_t *state = XXH3_createState();
    if (!host || !state) rc = mr_error_set(err, MR_ENOMEM, "no memory to hash weights");
    if (state) XXH3_128bits_reset(state);
    for (uint32_t i = 0; rc == MR_OK && i < t->tensor_count; i++) {
        if (t->tensors[i].role > MRI_ROLE_STATE) break; /* the optimizer's arrays come last */
        rc = mri_trainer_export(t, replica, i, false, host, err);
        if (rc == MR_OK) XXH3_128bits_update(state, host, (size_t)t->tensors[i].count * sizeof *host);
    }
    if (rc == MR_OK) {
        const XXH128_hash_t h = XXH3_128bits_digest(state);
        *lo = h.low64, *hi = h.high64;
    }
    XXH3_freeState(state);
    free(host);
    return rc;
}

/* ------------------------------------------------------------------------------ saving */

static int export_first(void *context, uint32_t at, float *out, mr_error *err)
{
    return mri_trainer_export(context, 0, at, false, out, err);
}

int mr_trainer_save(mr_trainer *t, const char *path, const mr_checkpoint_info *info, mr_error *err)
{
    if (t->cfg.inference)
        return mr_error_set(err, MR_EINVAL, "a trainer opened for inference has no optimizer state to save");
    int rc = settle(t, err);
    if (rc == MR_OK) rc = mri_trainer_read_scale(t, err);
    if (rc) return rc;
    const mr_net *net = t->cfg.net;
    mr_checkpoint_info own = *info; /* what the trainer knows better than its caller */
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
    rc = mri_checkpoint_write(path, &own, t->tensors, t->tensor_count, export_first, t, err);
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
        t->cfg.inference ? ck->tensor_count >= t->tensor_count : ck->tensor_count == t->tensor_count;
    if (!count_fits) {
        mr_error_set(err, MR_EFORMAT, "the checkpoint has %u tensors: expected %u", ck->tensor_count,
                     t->tensor_count);
        return wrong_place(ck, MR_EFORMAT, err);
    }
    for (uint32_t i = 0; i < t->tensor_count; i++) {
        if (same_tensor(&t->tensors[i], &ck->tensors[i])) continue;
        mr_error_set(err, MR_EFORMAT,
                     "the checkpoint's tensor %u is %s of %llu elements: expected %s of %llu", i,
                     ck->tensors[i].name, (unsigned long long)ck->tensors[i].count, t->tensors[i].name,
                     (unsigned long long)t->tensors[i].count);
        return wrong_place(ck, MR_EFORMAT, err);
    }
    return MR_OK;
}

static int load_tensors(mr_trainer *t, const mri_checkpoint *ck, mr_error *err)
{
    float *host = malloc((size_t)t->tensor_floats * sizeof *host);
    if (!host) return mr_error_set(err, MR_ENOMEM, "no memory to load a checkpoint");
    int rc = MR_OK;
    for (uint32_t i = 0; rc == MR_OK && i < t->tensor_count; i++) {
        rc = mri_checkpoint_read(ck, i, host, err);
        if (rc == MR_OK) rc = import_tensor(t, i, host, err);
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
    return mri_trainer_set_scale(t, &scale, err);
}

int mr_trainer_load(mr_trainer *t, const char *path, mr_checkpoint_info *out, mr_error *err)
{
    mri_checkpoint *ck = NULL;
    int rc = settle(t, err);
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
        if (out) *out = ck->info;
    }
    mri_checkpoint_close(ck);
    return rc;
}
