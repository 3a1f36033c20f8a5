/* train/run/tensors.c: the list of tensors in canonical order, and one of them at a time out of and into a
 * replica. */
#include <stdio.h>

#include "train/run/tensors.h"

static const mri_role slot_roles[MRI_SLOTS_MOST] = {MRI_ROLE_SLOT0, MRI_ROLE_SLOT1, MRI_ROLE_SLOT2};

static uint32_t slots_of(const mri_replica *rep)
{
    return rep->cfg.inference ? 0 : rep->cfg.optimizer.slot_count;
}

static const mri_replica *stage_of(const mri_replica *rep, uint32_t stage)
{
    while (stage-- > 0) rep = rep->next;
    return rep;
}

/* A node with tensors, and where it is in the network. */
typedef struct holder {
    uint32_t number, stage, node;
} holder;

typedef struct listing {
    mri_tensors *t;
    const mri_replica *rep;
    holder *holders; /* in the order of the network's layers */
    uint32_t count;
} listing;

static const mri_node *node_of(const listing *l, const holder *h)
{
    return &stage_of(l->rep, h->stage)->nodes.node[h->node];
}

static void add_tensor(const listing *list, const holder *h, bool state, uint32_t which, mri_role role)
{
    mri_tensors *t = list->t;
    const mri_node *n = node_of(list, h);
    const mr_param_info *p = state ? &n->info->state[which] : &n->info->param[which];
    const mri_layer *l = &stage_of(list->rep, h->stage)->cfg.net->layers[n->layer];
    mri_tensor_desc *d = &t->desc[t->count];
    snprintf(d->name, sizeof d->name, "%u/%s/%s", h->number, mri_layer_name(l), p->name);
    d->role = role;
    d->ndim = p->ndim;
    memcpy(d->dim, p->dim, p->ndim * sizeof p->dim[0]);
    d->count = p->count;
    t->place[t->count++] = (mri_tensor_place){.stage = h->stage,
                                              .node = h->node,
                                              .which = which,
                                              .state = state,
                                              .at = state ? n->state_at[which] : n->param_at[which]};
    t->most_floats = mri_max_u64(t->most_floats, p->count);
}

static int by_number(const void *a, const void *b)
{
    const uint32_t x = ((const holder *)a)->number, y = ((const holder *)b)->number;
    return (x > y) - (x < y);
}

/* The nodes with tensors, of all stages. */
static int list_holders(listing *list, mr_error *err)
{
    uint32_t most = 1, stage = 0;
    for (const mri_replica *r = list->rep; r; r = r->next) most += r->nodes.count;
    list->holders = calloc(most, sizeof *list->holders);
    if (!list->holders) return mr_error_set(err, MR_ENOMEM, "no memory for a list of %u operations", most);
    for (const mri_replica *r = list->rep; r; r = r->next, stage++)
        for (uint32_t i = 0; i < r->nodes.count; i++) {
            const mri_node *n = &r->nodes.node[i];
            if (n->info->param_count + n->info->state_count == 0) continue;
            list->holders[list->count++] =
                (holder){.number = r->cfg.net->layers[n->layer].number, .stage = stage, .node = i};
        }
    qsort(list->holders, list->count, sizeof *list->holders, by_number);
    return MR_OK;
}

static void add_all(const listing *list)
{
    mri_tensors *t = list->t;
    for (uint32_t i = 0; i < list->count; i++) {
        const mr_op_info *info = node_of(list, &list->holders[i])->info;
        for (uint32_t p = 0; p < info->param_count; p++)
            add_tensor(list, &list->holders[i], false, p, MRI_ROLE_WEIGHTS);
        for (uint32_t p = 0; p < info->state_count; p++)
            add_tensor(list, &list->holders[i], true, p, MRI_ROLE_STATE);
    }
    t->own = t->count;
    for (uint32_t s = 0; s < slots_of(list->rep); s++)
        for (uint32_t i = 0; i < list->count; i++)
            for (uint32_t p = 0; p < node_of(list, &list->holders[i])->info->param_count; p++)
                add_tensor(list, &list->holders[i], false, p, slot_roles[s]);
    const mri_replica_config *cfg = &list->rep->cfg;
    const bool outer = cfg->local.on && !cfg->local.apart;
    for (uint32_t i = 0; (outer || cfg->local.delayed) && i < list->count; i++)
        for (uint32_t p = 0; p < node_of(list, &list->holders[i])->info->param_count; p++)
            add_tensor(list, &list->holders[i], false, p, outer ? MRI_ROLE_OUTER : MRI_ROLE_LATE);
    for (uint32_t i = 0; list->rep->plan.averages && i < t->own; i++) {
        t->desc[t->count] = t->desc[i];
        t->desc[t->count].role = mri_role_averaged(t->desc[i].role);
        t->place[t->count++] = t->place[i];
    }
}

int mri_tensors_init(mri_tensors *t, const mri_replica *rep, mr_error *err)
{
    listing list = {.t = t, .rep = rep};
    size_t most = 0;
    *t = (mri_tensors){0};
    int rc = list_holders(&list, err);
    for (uint32_t i = 0; rc == MR_OK && i < list.count; i++) {
        const mr_op_info *info = node_of(&list, &list.holders[i])->info;
        most += (size_t)info->param_count * (1 + slots_of(rep) + rep->plan.averages + 1) +
                (size_t)info->state_count * (1 + rep->plan.averages);
    }
    if (rc == MR_OK && most > MRI_CHECKPOINT_MAX_TENSORS)
        rc = mr_error_set(err, MR_ELIMIT, "%zu tensors are more than a checkpoint holds", most);
    if (rc == MR_OK) {
        *t = (mri_tensors){.desc = calloc(most, sizeof *t->desc), .place = calloc(most, sizeof *t->place)};
        if (t->desc && t->place) add_all(&list);
        else rc = mr_error_set(err, MR_ENOMEM, "no memory for a list of %zu tensors", most);
    }
    free(list.holders);
    return rc;
}

bool mri_tensors_is_lookahead(const mri_tensors *t, const mri_replica *rep, uint32_t tensor)
{
    const uint32_t slots = slots_of(rep);
    return rep->cfg.optimizer.lookahead && slots > 0 && t->desc[tensor].role == slot_roles[slots - 1];
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
    case MRI_ROLE_WEIGHTS: return mri_replica_weights(rep);
    case MRI_ROLE_STATE: return mri_replica_stats(rep);
    case MRI_ROLE_SLOT0: return rep->memory.slot[0];
    case MRI_ROLE_SLOT1: return rep->memory.slot[1];
    case MRI_ROLE_AVERAGE: return rep->memory.average;
    case MRI_ROLE_AVERAGE_STATE: return rep->memory.average_stats;
    case MRI_ROLE_SLOT2: return rep->memory.slot[2];
    case MRI_ROLE_OUTER: return rep->memory.own.outer;
    case MRI_ROLE_LATE: return rep->memory.late;
    case MRI_ROLE_WORKER:
    case MRI_ROLE_COUNT: break;
    }
    return NULL;
}

int mri_tensor_export(const mri_tensors *t, const mri_replica *rep, uint32_t tensor, bool gradient,
                      float *out, mr_error *err)
{
    const mri_tensor_place *p = &t->place[tensor];
    rep = stage_of(rep, p->stage);
    const float *array = gradient ? rep->memory.grads : array_of(rep, t->desc[tensor].role);
    return mr_op_param_export(rep->nodes.node[p->node].op, p->state, p->which, array + p->at, out, err);
}

int mri_tensor_import(const mri_tensors *t, const mri_replica *rep, uint32_t tensor, const float *from,
                      mr_error *err)
{
    const mri_tensor_place *p = &t->place[tensor];
    rep = stage_of(rep, p->stage);
    float *array = array_of(rep, t->desc[tensor].role);
    return mr_op_param_import(rep->nodes.node[p->node].op, p->state, p->which, array + p->at, from, err);
}

/* ---- arrays that a part trains by itself ---- */

/* Where a worker has tensor i; NULL: not its own. */
static float *worker_array(const mri_tensors *t, const mri_worker *w, uint32_t i)
{
    switch (t->desc[i].role) {
    case MRI_ROLE_WEIGHTS: return w->weights;
    case MRI_ROLE_STATE: return w->stats;
    case MRI_ROLE_SLOT0: return w->slot[0];
    case MRI_ROLE_SLOT1: return w->slot[1];
    case MRI_ROLE_SLOT2: return w->slot[2];
    default: return NULL;
    }
}

uint64_t mri_worker_state_floats(const mri_tensors *t)
{
    uint64_t floats = 0;
    for (uint32_t i = 0; i < t->count; i++)
        if (t->desc[i].role != MRI_ROLE_OUTER) floats += t->desc[i].count;
    return floats;
}

int mri_worker_export(const mri_tensors *t, const mri_replica *rep, uint32_t worker, float *out,
                      mr_error *err)
{
    int rc = MR_OK;
    for (uint32_t i = 0; rc == MR_OK && i < t->count; i++) {
        const mri_tensor_place *p = &t->place[i];
        const float *array = worker_array(t, &rep->memory.own.part[worker], i);
        if (!array) continue;
        rc = mr_op_param_export(rep->nodes.node[p->node].op, p->state, p->which, array + p->at, out, err);
        out += t->desc[i].count;
    }
    return rc;
}

int mri_worker_import(const mri_tensors *t, const mri_replica *rep, uint32_t worker, const float *from,
                      mr_error *err)
{
    int rc = MR_OK;
    for (uint32_t i = 0; rc == MR_OK && i < t->count; i++) {
        const mri_tensor_place *p = &t->place[i];
        float *array = worker_array(t, &rep->memory.own.part[worker], i);
        if (!array) continue;
        rc = mr_op_param_import(rep->nodes.node[p->node].op, p->state, p->which, array + p->at, from, err);
        from += t->desc[i].count;
    }
    return rc;
}
