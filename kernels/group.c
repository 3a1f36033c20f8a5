/* kernels/group.c: the public calls on groups. Checks arguments and settles who holds what, then calls the
 * kind's table. */
#include "base/abi.h"
#include "kernels/backend/spec.h"

void mr_group_defaults_sized(mr_group_config *cfg, size_t struct_size)
{
    const mr_group_config all = {.streams = NULL};
    mri_settings_give(cfg, struct_size, &all, sizeof all);
}

static int check_streams(mr_stream *const *streams, uint32_t count, mr_error *err)
{
    if (!streams || count < 1 || count > MRI_MAX_REPLICAS)
        return mr_error_set(err, MR_EINVAL, "mr_group_open: %u streams; expected 1..%u", count,
                            MRI_MAX_REPLICAS);
    for (uint32_t i = 0; i < count; i++) {
        if (!streams[i]) return mr_error_set(err, MR_EINVAL, "mr_group_open: stream %u is NULL", i);
        if (mri_is_inherited(streams[i]->device->process))
            return mri_error_inherited(err, "mr_group_open", streams[i]->device->name);
        if (streams[i]->device->backend != streams[0]->device->backend)
            return mr_error_set(err, MR_EINVAL, "mr_group_open: %s and %s are different kinds of device",
                                streams[0]->device->name, streams[i]->device->name);
        for (uint32_t k = 0; k < i; k++)
            if (streams[k] == streams[i])
                return mr_error_set(err, MR_EINVAL, "mr_group_open: streams %u and %u are the same", k, i);
    }
    return MR_OK;
}

static void free_plan(struct mri_group_plan *p)
{
    free(p->node_at);
    free(p->node);
    *p = (struct mri_group_plan){0};
}

/* The nodes of every device. */
static int deal_leaves(struct mri_group_plan *p, const uint32_t *held, mr_error *err)
{
    uint32_t first = p->first;
    for (uint32_t i = 0; i < p->count; i++) {
        const uint32_t own = held ? held[i] : 1, at = p->node_at[i],
                       nodes = mr_sum_cover(p->leaves, first, own, p->node + at);
        if (nodes == 0 || nodes > MRI_GROUP_NODES)
            return mr_error_set(
                err, MR_EINVAL,
                "mr_group_open: device %u holds leaves %u to %u of %u: expected at least one below "
                "%u, of at most %u nodes",
                i, first, first + own, p->leaves, p->leaves, MRI_GROUP_NODES);
        p->node_at[i + 1] = at + nodes;
        first += own;
    }
    if (p->wire.size > 1 || first == p->leaves) return MR_OK;
    return mr_error_set(err, MR_EINVAL,
                        "mr_group_open: %u leaves from %u on are nobody's: without other processes "
                        "all %u lie here",
                        p->leaves - first, first, p->leaves);
}

/* Several hosts of several ranks each. */
static bool are_in_hosts(uint32_t per_host, uint32_t ranks)
{
    return per_host > 1 && per_host < ranks && ranks % per_host == 0;
}

static int make_plan(struct mri_group_plan *p, const mr_group_config *cfg, mr_error *err)
{
    *p = (struct mri_group_plan){.streams = cfg->streams,
                                 .count = cfg->count,
                                 .leaves = cfg->leaves ? cfg->leaves : cfg->count,
                                 .first = cfg->first,
                                 .wire = {.size = 1}};
    if (cfg->wire) p->wire = *cfg->wire;
    p->nccl = cfg->nccl && p->wire.size > 1;
    p->check = cfg->check;
    p->nccl_optional = p->nccl && cfg->nccl_optional;
    p->connect_s = cfg->connect_s;
    p->ranks_per_host = are_in_hosts(cfg->ranks_per_host, p->wire.size) ? cfg->ranks_per_host : 1;
    if (p->nccl && !p->check)
        return mr_error_set(err, MR_EINVAL,
                            "mr_group_open: nccl is set, and check is NULL: expected a function that "
                            "knows whether all processes are there");
    if (p->wire.size < 1 || p->wire.rank >= p->wire.size || (p->wire.size > 1 && !p->wire.exchange) ||
        (p->wire.size == 1 && p->first))
        return mr_error_set(err, MR_EINVAL,
                            "mr_group_open: leaves from %u on, rank %u of %u: expected a rank below "
                            "the number of ranks, which can exchange, and leaf 0 with one of them",
                            p->first, p->wire.rank, p->wire.size);
    p->node_at = calloc(p->count + 1, sizeof *p->node_at);
    p->node = calloc((size_t)p->count * MR_SUM_MOST_NODES, sizeof *p->node);
    if (!p->node_at || !p->node)
        return mr_error_set(err, MR_ENOMEM, "no memory for a group of %u devices", p->count);
    return deal_leaves(p, cfg->held, err);
}

int mr_group_open(mr_group **out, const mr_group_config *cfg, mr_error *err)
{
    mr_group_config mine;
    struct mri_group_plan plan = {0};
    MRI_GIVEN(err, out);
    *out = NULL;
    mr_group_defaults(&mine);
    int rc = mri_settings_take(&mine, sizeof mine, cfg, "group", err);
    if (rc == MR_OK) rc = check_streams(mine.streams, mine.count, err);
    if (rc == MR_OK) rc = make_plan(&plan, &mine, err);
    if (rc == MR_OK) rc = mine.streams[0]->device->backend->groups->create(out, &plan, err);
    if (rc) {
        free_plan(&plan);
        return rc;
    }
    (*out)->plan = plan;
    (*out)->process = mri_process();
    (*out)->plan.streams = NULL;
    if ((*out)->no_nccl[0]) (*out)->plan.nccl = false;
    return MR_OK;
}

bool mr_group_uses_nccl(const mr_group *g, const char **why_not)
{
    if (why_not) *why_not = g ? g->no_nccl : "";
    return g && g->plan.nccl;
}

int mr_group_create(mr_group **out, mr_stream *const *streams, uint32_t count, mr_error *err)
{
    mr_group_config cfg;
    mr_group_defaults(&cfg);
    cfg.streams = streams;
    cfg.count = count;
    return mr_group_open(out, &cfg, err);
}

void mr_group_destroy(mr_group *g)
{
    if (!g || mri_is_inherited(g->process)) return;
    struct mri_group_plan plan = g->plan;
    g->backend->groups->destroy(g);
    free_plan(&plan);
}

static int check_values(const mr_group *g, float *const *values, uint32_t count)
{
    MRI_OWN(NULL, g);
    MRI_GIVEN(NULL, values);
    for (uint32_t i = 0; i < count; i++)
        if (!values[i]) return MR_EINVAL;
    return MR_OK;
}

/* One array, and nobody else. */
static bool is_alone(const mr_group *g, uint32_t arrays) { return arrays == 1 && g->plan.wire.size == 1; }

int mr_group_sum_async(mr_group *g, float *const *values, uint64_t count)
{
    if (!g) return MR_EINVAL;
    const uint32_t nodes = g->plan.node_at[g->count];
    const int rc = check_values(g, values, nodes);
    if (rc || is_alone(g, nodes) || count == 0) return rc;
    return g->backend->groups->sum_async(g, values, count);
}

int mr_group_broadcast_async(mr_group *g, float *const *values, uint64_t count, uint32_t root)
{
    if (!g) return MR_EINVAL;
    const int rc = check_values(g, values, g->count);
    if (rc) return rc;
    if (root >= g->count) return MR_EINVAL;
    if (is_alone(g, g->count) || count == 0) return MR_OK;
    return g->backend->groups->broadcast_async(g, values, count, root);
}

void mr_group_abort(mr_group *g)
{
    if (g && !mri_is_inherited(g->process)) g->backend->groups->abort(g);
}
