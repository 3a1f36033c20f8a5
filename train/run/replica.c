/* train/run/replica.c: a network on one device: ops, plan, memory and passes opened in this order, and the
 * initial weights.
 *
 * The whole need is known, and compared with the limit, before any of it is taken. Waits only while it
 * opens. */
#include "train/run/replica.h"
#include "train/net/init.h"

static int init_param(const mr_param_info *param, const mri_layer *l, uint64_t seed, float *host,
                      mr_error *err)
{
    const mri_first plain = {.init = MR_INIT_GLOROT};
    const uint32_t layer = l ? l->number : MRI_NONE;
    const int rc = mri_init_param(param, l ? &l->first : &plain, layer, seed, host);
    return rc ? mr_error_set(err, rc, "no memory for initial weights of layer %u", layer) : MR_OK;
}

static int init_node(const mri_replica *r, const mri_node *n, float *host, mr_error *err)
{
    const mri_layer *l = n->layer == MRI_NONE ? NULL : &r->cfg.net->layers[n->layer];
    int rc = MR_OK;
    for (uint32_t p = 0; rc == MR_OK && p < n->info->param_count; p++) {
        rc = init_param(&n->info->param[p], l, r->cfg.seed, host, err);
        if (rc == MR_OK)
            rc = mr_op_param_import(n->op, false, p, mri_replica_weights(r) + n->param_at[p], host, err);
    }
    for (uint32_t p = 0; rc == MR_OK && p < n->info->state_count; p++) {
        rc = init_param(&n->info->state[p], l, r->cfg.seed, host, err);
        if (rc == MR_OK)
            rc = mr_op_param_import(n->op, true, p, mri_replica_stats(r) + n->state_at[p], host, err);
    }
    return rc;
}

int mri_replica_init_weights(mri_replica *r, mr_error *err)
{
    uint64_t most = 1;
    for (uint32_t i = 0; i < r->nodes.count; i++) {
        const mr_op_info *info = r->nodes.node[i].info;
        for (uint32_t p = 0; p < info->param_count; p++) most = mri_max_u64(most, info->param[p].count);
        for (uint32_t p = 0; p < info->state_count; p++) most = mri_max_u64(most, info->state[p].count);
    }
    float *host = malloc((size_t)most * sizeof *host);
    if (!host)
        return mr_error_set(err, MR_ENOMEM, "no memory for initial weights: %zu bytes",
                            (size_t)most * sizeof *host);
    int rc = MR_OK;
    for (uint32_t i = 0; rc == MR_OK && i < r->nodes.count; i++)
        rc = init_node(r, &r->nodes.node[i], host, err);
    free(host);
    if (rc) return rc;
    rc = mri_replica_begin_averages(r);
    const int why = mr_stream_sync(r->stream, err); /* the stream knows why */
    return rc && !why ? mr_error_set(err, rc, "the averages of initial weights cannot be queued") : why;
}

/* ------------------------------------------------------------------------------ open, close */

int mri_replica_open(mri_replica *r, mr_device *dev, const mri_replica_config *cfg, mr_error *err)
{
    *r = (mri_replica){.dev = dev, .cfg = *cfg};
    mri_passes_init(&r->passes, cfg);
    int rc = mr_stream_create(&r->stream, dev, MR_STREAM_COMPUTE, err);
    if (rc == MR_OK) rc = mri_nodes_init(&r->nodes, dev, cfg, err);
    if (rc == MR_OK) rc = mri_plan_init(&r->plan, &r->nodes, dev, cfg, err);
    if (rc == MR_OK) rc = mri_memory_init(&r->memory, dev, r->stream, &r->plan, cfg, err);
    if (rc) mri_replica_close(r);
    return rc;
}

void mri_replica_close(mri_replica *r)
{
    mri_passes_fini(r);
    mr_stream_destroy(r->stream); /* before the rest: it finishes what still uses it */
    mri_nodes_fini(&r->nodes);
    mri_plan_fini(&r->plan);
    if (r->dev) mri_memory_fini(&r->memory, r->dev);
    *r = (mri_replica){0};
}

void mri_replica_set_bucket(mri_replica *r, uint64_t bytes)
{
    mri_passes_fini(r); /* recordings end elsewhere */
    mri_plan_cut_buckets(&r->plan, &r->nodes, bytes);
}
