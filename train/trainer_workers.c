/* train/trainer_workers.c: shares that train weights of their own: when they are averaged, and their state
 * between two averages on its way to checkpoints and snapshots and back. A share is computed by one replica
 * of one process; its state goes through the memory of hosts, share by share. */
#include <stdio.h>

#include "train/trainer.h"

bool mri_trainer_is_local(const mr_trainer *t) { return t->team.replicas[0].cfg.local.on; }

bool mri_trainer_averages_now(const mr_trainer *t, const mr_batch *b)
{
    return b->last || t->updates % (t->cfg.sync >> 8) == 0;
}

uint32_t mri_trainer_own_shares(const mr_trainer *t) { return t->shares_differ ? t->team.parts.all : 0; }

/* The replica of this process that computes a share, and its number there; NULL: another process does. */
static const mri_replica *computing(const mr_trainer *t, uint32_t share, uint32_t *number)
{
    const mr_parts *parts = &t->team.parts;
    uint32_t first = parts->first;
    for (uint32_t r = 0; r < t->team.count; first += parts->of_device[r++]) {
        *number = share - first;
        if (share >= first && *number < parts->of_device[r]) return &t->team.replicas[r];
    }
    *number = 0;
    return NULL;
}

/* For each share the process that computes it; to be freed. */
static int list_owners(const mr_trainer *t, uint32_t **out, mr_error *err)
{
    const mri_ranks *ranks = &t->team.ranks;
    const uint32_t all = t->team.parts.all, mine[2] = {t->team.parts.first, t->team.parts.count};
    uint32_t(*ranges)[2] = calloc(ranks->size, sizeof *ranges), *owner = calloc(all, sizeof *owner);
    int rc =
        ranges && owner ? MR_OK : mr_error_set(err, MR_ENOMEM, "no memory for the owners of %u shares", all);
    if (rc == MR_OK && ranks->size > 1)
        rc = mr_world_gather(ranks->world, MRI_RANKS_HOST, mine, sizeof mine, ranges, err);
    for (uint32_t r = 0; rc == MR_OK && ranks->size > 1 && r < ranks->size; r++)
        for (uint32_t k = 0; k < ranges[r][1] && ranges[r][0] + k < all; k++) owner[ranges[r][0] + k] = r;
    free(ranges);
    if (rc) free(owner);
    *out = rc ? NULL : owner;
    return rc;
}

static int tell_share(const mri_ranks *ranks, float *state, uint64_t floats, uint32_t owner, mr_error *err)
{
    if (ranks->size == 1) return MR_OK;
    return mr_world_broadcast(ranks->world, MRI_RANKS_HOST, state, (size_t)floats * sizeof *state, owner,
                              err);
}

int mri_trainer_gather_shares(mr_trainer *t, float *out, mr_error *err)
{
    const uint64_t floats = mri_worker_state_floats(&t->tensors);
    uint32_t *owner;
    int rc = list_owners(t, &owner, err);
    for (uint32_t s = 0; rc == MR_OK && s < t->team.parts.all; s++) {
        uint32_t number = 0;
        float *state = out + s * floats;
        const mri_replica *rep = computing(t, s, &number);
        rc = rep ? mri_worker_export(&t->tensors, rep, number, state, err) : MR_OK;
        if (rc == MR_OK) rc = tell_share(&t->team.ranks, state, floats, owner[s], err);
    }
    free(owner);
    return rc;
}

int mri_trainer_spread_shares(mr_trainer *t, mri_share_source *source, void *context, mr_error *err)
{
    const mri_ranks *ranks = &t->team.ranks;
    const uint64_t floats = mri_worker_state_floats(&t->tensors);
    float *state = malloc((size_t)floats * sizeof *state);
    int rc = state ? MR_OK : mr_error_set(err, MR_ENOMEM, "no memory for the state of a share");
    for (uint32_t s = 0; rc == MR_OK && s < t->team.parts.all; s++) {
        uint32_t number = 0;
        const mri_replica *rep = computing(t, s, &number);
        rc = mri_ranks_share_error(ranks, ranks->rank == 0 ? source(context, s, state, err) : MR_OK, err);
        if (rc == MR_OK) rc = tell_share(ranks, state, floats, 0, err);
        if (rc == MR_OK && rep) rc = mri_worker_import(&t->tensors, rep, number, state, err);
    }
    free(state);
    t->shares_differ = rc == MR_OK;
    return rc;
}

int mri_trainer_list_shares(const mr_trainer *t, mri_tensor_desc **out, uint32_t *count, mr_error *err)
{
    const uint32_t own = mri_trainer_own_shares(t), all = t->tensors.count + own;
    const uint64_t floats = mri_worker_state_floats(&t->tensors);
    *out = NULL;
    *count = all;
    if (all > MRI_CHECKPOINT_MAX_TENSORS)
        return mr_error_set(err, MR_ELIMIT, "%u tensors are more than a checkpoint holds", all);
    mri_tensor_desc *desc = calloc(all, sizeof *desc);
    if (!desc) return mr_error_set(err, MR_ENOMEM, "no memory for a list of %u tensors", all);
    memcpy(desc, t->tensors.desc, t->tensors.count * sizeof *desc);
    for (uint32_t s = 0; s < own; s++) {
        mri_tensor_desc *d = &desc[t->tensors.count + s];
        snprintf(d->name, sizeof d->name, "share %u", s);
        d->role = MRI_ROLE_WORKER;
        d->ndim = 1;
        d->dim[0] = d->count = floats;
    }
    *out = desc;
    return MR_OK;
}
