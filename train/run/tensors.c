/* train/run/tensors.c: the list of tensors in canonical order, and one of them at a time out of and into a
 * replica. */
#include <stdio.h>

#include "train/run/tensors.h"

static uint32_t slots_of(const mri_replica *rep) { return rep->cfg.inference ? 0 : rep->cfg.slot_count; }

static void add_tensor(mri_tensors *t, const mri_replica *rep, uint32_t node, bool state, uint32_t which,
                       mri_role role)
{
    const mri_node *n = &rep->nodes.node[node];
    const mr_param_info *p = state ? &n->info->state[which] : &n->info->param[which];
    const mri_layer *l = &rep->cfg.net->layers[n->layer];
    mri_tensor_desc *d = &t->desc[t->count];
    snprintf(d->name, sizeof d->name, "%u/%s/%s", n->layer, mri_layer_kind_name(l->kind, l->average),
             p->name);
    d->role = role;
    d->ndim = p->ndim;
    memcpy(d->dim, p->dim, p->ndim * sizeof p->dim[0]);
    d->count = p->count;
    t->place[t->count++] = (mri_tensor_place){
        .node = node, .which = which, .state = state, .at = state ? n->state_at[which] : n->param_at[which]};
    t->most_floats = mri_max_u64(t->most_floats, p->count);
}

int mri_tensors_init(mri_tensors *t, const mri_replica *rep, mr_error *err)
{
    const mri_nodes *nodes = &rep->nodes;
    size_t most = 0;
    for (uint32_t i = 0; i < nodes->count; i++)
        most += (size_t)nodes->node[i].info->param_count * (1 + slots_of(rep) + rep->plan.averages) +
                (size_t)nodes->node[i].info->state_count * (1 + rep->plan.averages);
    if (most > MRI_CHECKPOINT_MAX_TENSORS)
        return mr_error_set(err, MR_ELIMIT, "%zu tensors are more than a checkpoint holds", most);
    *t = (mri_tensors){.desc = calloc(most, sizeof *t->desc), .place = calloc(most, sizeof *t->place)};
    if (!t->desc || !t->place)
        return mr_error_set(err, MR_ENOMEM, "no memory for a list of %zu tensors", most);
    for (uint32_t i = 0; i < nodes->count; i++) {
        const mr_op_info *info = nodes->node[i].info;
        for (uint32_t p = 0; p < info->param_count; p++) add_tensor(t, rep, i, false, p, MRI_ROLE_WEIGHTS);
        for (uint32_t p = 0; p < info->state_count; p++) add_tensor(t, rep, i, true, p, MRI_ROLE_STATE);
    }
    static const mri_role slots[MRI_SLOTS_MOST] = {MRI_ROLE_SLOT0, MRI_ROLE_SLOT1, MRI_ROLE_SLOT2};
    t->own = t->count;
    for (uint32_t s = 0; s < slots_of(rep); s++)
        for (uint32_t i = 0; i < nodes->count; i++)
            for (uint32_t p = 0; p < nodes->node[i].info->param_count; p++)
                add_tensor(t, rep, i, false, p, slots[s]);
    for (uint32_t i = 0; rep->plan.averages && i < t->own; i++) {
        t->desc[t->count] = t->desc[i];
        t->desc[t->count].role = mri_role_averaged(t->desc[i].role);
        t->place[t->count++] = t->place[i];
    }
    return MR_OK;
}

void mri_tensors_fini(mri_tensors *t)
{
    free(t->desc);
    free(t->place);
    *t = (mri_tensors){0};
}

static float *array_of(const mri_replica *rep, mri_role role)
{
    switch (role) {
    case MRI_ROLE_WEIGHTS: return rep->memory.weights;
    case MRI_ROLE_STATE: return rep->memory.stats;
    case MRI_ROLE_SLOT0: return rep->memory.slot[0];
    case MRI_ROLE_SLOT1: return rep->memory.slot[1];
    case MRI_ROLE_AVERAGE: return rep->memory.average;
    case MRI_ROLE_AVERAGE_STATE: return rep->memory.average_stats;
    case MRI_ROLE_SLOT2: return rep->memory.slot[2];
    case MRI_ROLE_COUNT: break;
    }
    return NULL;
}

int mri_tensor_export(const mri_tensors *t, const mri_replica *rep, uint32_t tensor, bool gradient,
                      float *out, mr_error *err)
{
    const mri_tensor_place *p = &t->place[tensor];
    const float *array = gradient ? rep->memory.grads : array_of(rep, t->desc[tensor].role);
    return mr_op_param_export(rep->nodes.node[p->node].op, p->state, p->which, array + p->at, out, err);
}

int mri_tensor_import(const mri_tensors *t, const mri_replica *rep, uint32_t tensor, const float *from,
                      mr_error *err)
{
    const mri_tensor_place *p = &t->place[tensor];
    float *array = array_of(rep, t->desc[tensor].role);
    return mr_op_param_import(rep->nodes.node[p->node].op, p->state, p->which, array + p->at, from, err);
}
