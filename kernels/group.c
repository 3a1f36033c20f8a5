/* kernels/group.c: the public calls on groups. Checks arguments, then calls the kind's table. */
#include "kernels/backend/spec.h"

int mr_group_create(mr_group **out, mr_stream *const *streams, uint32_t count, mr_error *err)
{
    if (!out) return mr_error_set(err, MR_EINVAL, "mr_group_create: out must not be NULL");
    *out = NULL;
    if (!streams || count < 1 || count > MRI_MAX_REPLICAS)
        return mr_error_set(err, MR_EINVAL, "mr_group_create: %u streams; expected 1..%u", count,
                            MRI_MAX_REPLICAS);
    for (uint32_t i = 0; i < count; i++) {
        if (!streams[i]) return mr_error_set(err, MR_EINVAL, "mr_group_create: stream %u is NULL", i);
        if (streams[i]->device->backend != streams[0]->device->backend)
            return mr_error_set(err, MR_EINVAL, "mr_group_create: %s and %s are different kinds of device",
                                streams[0]->device->name, streams[i]->device->name);
        for (uint32_t k = 0; k < i; k++)
            if (streams[k] == streams[i])
                return mr_error_set(err, MR_EINVAL, "mr_group_create: streams %u and %u are the same", k, i);
    }
    return streams[0]->device->backend->groups->create(out, streams, count, err);
}

void mr_group_destroy(mr_group *g)
{
    if (g) g->backend->groups->destroy(g);
}

static int check_values(const mr_group *g, float *const *values)
{
    if (!g || !values) return MR_EINVAL;
    for (uint32_t i = 0; i < g->count; i++)
        if (!values[i]) return MR_EINVAL;
    return MR_OK;
}

int mr_group_sum_async(mr_group *g, float *const *values, uint64_t count)
{
    const int rc = check_values(g, values);
    if (rc || g->count == 1 || count == 0) return rc;
    return g->backend->groups->sum_async(g, values, count);
}

int mr_group_broadcast_async(mr_group *g, float *const *values, uint64_t count, uint32_t root)
{
    const int rc = check_values(g, values);
    if (rc) return rc;
    if (root >= g->count) return MR_EINVAL;
    if (g->count == 1 || count == 0) return MR_OK;
    return g->backend->groups->broadcast_async(g, values, count, root);
}

void mr_group_abort(mr_group *g)
{
    if (g) g->backend->groups->abort(g);
}
