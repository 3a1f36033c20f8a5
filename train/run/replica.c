/* train/run/replica.c: a network compiled for one device: its memory and its initial weights.
 *
 * The whole need is known, and compared with the limit, before any of it is taken. Waits only while it
 * opens. */
#include <stdio.h>

#include "train/run/replica.h"

/* ------------------------------------------------------------------------------ memory */

static uint64_t place_params(const mr_param_info *info, uint32_t count, uint64_t *places, uint64_t at)
{
    for (uint32_t p = 0; p < count; p++) {
        places[p] = at;
        at = mri_align_up(at + info[p].storage_count, MRI_PARAM_ALIGN);
    }
    return at;
}

static int too_large(const mri_replica *r, int rc, mr_error *err)
{
    if (rc == MR_ENOMEM)
        return mr_error_set(err, rc, "no memory to lay out a network of %u layers", r->plan.net->layer_count);
    return mr_error_set(err, MR_ELIMIT, "network %s with a batch of %u: sizes beyond any memory",
                        r->plan.net->name, r->plan.max_batch);
}

static int place_all(mri_replica *r, mr_error *err)
{
    for (uint32_t i = 0; i < r->node_count; i++) {
        mri_node *n = &r->nodes[i];
        r->weight_floats = place_params(n->info->param, n->info->param_count, n->param_at, r->weight_floats);
        r->stat_floats = place_params(n->info->state, n->info->state_count, n->state_at, r->stat_floats);
    }
    const int rc = mri_replica_place_spans(r, r->plan.max_batch, &r->arena_bytes);
    if (rc) return too_large(r, rc, err);
    const uint64_t arrays = r->plan.inference ? 1 : 2 + r->plan.slot_count;
    if (r->weight_floats > SIZE_MAX / 64) return too_large(r, MR_ELIMIT, err);
    r->memory_bytes = r->arena_bytes + sizeof(float) * (arrays * r->weight_floats + r->stat_floats) +
                      2 * sizeof(mr_metrics) + sizeof(mr_step_values) + sizeof(mr_loss_scale);
    return r->plan.inference ? MR_OK : mri_replica_fill_buckets(r, err);
}

/* The most samples of one replica whose arena stays within bytes; 0: not even one. Spoils the spans. */
static uint32_t most_that_fits(mri_replica *r, uint64_t bytes)
{
    uint32_t fits = 0, not = r->plan.max_batch;
    while (not -fits > 1) {
        const uint32_t middle = fits + (not -fits) / 2;
        size_t arena;
        if (mri_replica_place_spans(r, middle, &arena) == MR_OK && arena <= bytes) fits = middle;
        else not = middle;
    }
    return fits;
}

static int check_limit(mri_replica *r, mr_error *err)
{
    const mr_device_info *info = mr_device_info_of(r->dev);
    uint64_t limit = r->plan.memory_bytes ? r->plan.memory_bytes : UINT64_MAX;
    if (info->memory_bytes) limit = mri_min_u64(limit, info->memory_bytes);
    if (r->memory_bytes <= limit) return MR_OK;
    const double mib = 1 << 20;
    const uint64_t fixed = r->memory_bytes - r->arena_bytes;
    const uint64_t one = limit > fixed ? most_that_fits(r, limit - fixed) : 0,
                   fits = one * r->plan.global_batch / r->plan.max_batch;
    char what[96];
    if (fits > 0)
        snprintf(what, sizeof what, "a global batch of about %llu would fit", (unsigned long long)fits);
    else snprintf(what, sizeof what, "not even a batch of one would fit: a smaller network is needed");
    return mr_error_set(
        err, MR_ELIMIT,
        "network %s needs %.1f MiB on %s for %u samples of a global batch of %u (weights and optimizer %.1f, "
        "activations %.1f), the limit is %.1f MiB; %s",
        r->plan.net->name, (double)r->memory_bytes / mib, info->name, r->plan.max_batch, r->plan.global_batch,
        (double)fixed / mib, (double)r->arena_bytes / mib, (double)limit / mib, what);
}

static int clear(mri_replica *r, void *address, size_t bytes, mr_error *err)
{
    const int rc = mr_fill_async(r->stream, address, 0, bytes);
    if (rc == MR_OK || mr_stream_sync(r->stream, err) != MR_OK) return rc; /* the stream knows why */
    return mr_error_set(err, rc, "%s: cannot clear memory: %s", mr_device_info_of(r->dev)->name,
                        mr_status_text(rc));
}

/* count floats of zeros, or nothing when count is 0. */
static int alloc_floats(mri_replica *r, uint64_t count, float **out, mr_error *err)
{
    if (count == 0) return MR_OK;
    void *address = NULL;
    int rc = mr_device_alloc(r->dev, (size_t)count * sizeof(float), &address, err);
    if (rc) return rc;
    *out = address;
    return clear(r, address, (size_t)count * sizeof(float), err);
}

static int take_sums(mri_replica *r, mr_error *err)
{
    void *device = NULL, *host = NULL;
    int rc = mr_device_alloc(r->dev, 2 * sizeof(mr_metrics), &device, err);
    if (rc) return rc;
    r->sums[0] = device, r->sums[1] = r->sums[0] + 1;
    rc = mr_host_alloc(r->dev, sizeof(mr_metrics), &host, err);
    if (rc) return rc;
    r->host_sums = host;
    rc = mr_device_alloc(r->dev, sizeof(mr_step_values), &device, err);
    if (rc) return rc;
    r->values = device;
    rc = mr_host_alloc(r->dev, MRI_RUN_AHEAD * sizeof(mr_step_values), &host, err);
    if (rc) return rc;
    r->host_values = host;
    return clear(r, r->sums[0], 2 * sizeof(mr_metrics), err);
}

static int take_loss_scale(mri_replica *r, mr_error *err)
{
    void *device = NULL, *host = NULL;
    if (r->plan.inference || r->plan.dtype != MR_TENSOR_F16) return MR_OK;
    int rc = mr_device_alloc(r->dev, sizeof(mr_loss_scale), &device, err);
    if (rc) return rc;
    r->loss_scale = device;
    rc = mr_host_alloc(r->dev, sizeof(mr_loss_scale), &host, err);
    if (rc) return rc;
    r->host_loss_scale = host;
    *r->host_loss_scale = (mr_loss_scale){0};
    return MR_OK;
}

static int take_memory(mri_replica *r, mr_error *err)
{
    void *arena = NULL;
    int rc = alloc_floats(r, r->weight_floats, &r->weights, err);
    if (rc == MR_OK) rc = alloc_floats(r, r->stat_floats, &r->stats, err);
    if (rc == MR_OK && !r->plan.inference) rc = alloc_floats(r, r->weight_floats, &r->grads, err);
    for (uint32_t s = 0; rc == MR_OK && !r->plan.inference && s < r->plan.slot_count; s++)
        rc = alloc_floats(r, r->weight_floats, &r->slot[s], err);
    if (rc == MR_OK) rc = take_sums(r, err);
    if (rc == MR_OK) rc = take_loss_scale(r, err);
    if (rc == MR_OK) rc = mr_device_alloc(r->dev, r->arena_bytes, &arena, err);
    r->arena = arena;
    return rc == MR_OK ? mr_stream_sync(r->stream, err) : rc;
}

/* ------------------------------------------------------------------------------ weights */

static int init_node(const mri_replica *r, const mri_node *n, float *host, mr_error *err)
{
    const mr_init how = n->layer == MRI_NONE ? MR_INIT_GLOROT : r->plan.net->layers[n->layer].init;
    int rc = MR_OK;
    for (uint32_t p = 0; rc == MR_OK && p < n->info->param_count; p++) {
        mri_init_param(&n->info->param[p], how, n->layer, r->plan.seed, host);
        rc = mr_op_param_import(n->op, false, p, r->weights + n->param_at[p], host, err);
    }
    for (uint32_t p = 0; rc == MR_OK && p < n->info->state_count; p++) {
        mri_init_param(&n->info->state[p], how, n->layer, r->plan.seed, host);
        rc = mr_op_param_import(n->op, true, p, r->stats + n->state_at[p], host, err);
    }
    return rc;
}

int mri_replica_init_weights(mri_replica *r, mr_error *err)
{
    uint64_t most = 1;
    for (uint32_t i = 0; i < r->node_count; i++) {
        const mr_op_info *info = r->nodes[i].info;
        for (uint32_t p = 0; p < info->param_count; p++) most = mri_max_u64(most, info->param[p].count);
        for (uint32_t p = 0; p < info->state_count; p++) most = mri_max_u64(most, info->state[p].count);
    }
    float *host = malloc((size_t)most * sizeof *host);
    if (!host)
        return mr_error_set(err, MR_ENOMEM, "no memory for initial weights: %zu bytes",
                            (size_t)most * sizeof *host);
    int rc = MR_OK;
    for (uint32_t i = 0; rc == MR_OK && i < r->node_count; i++) rc = init_node(r, &r->nodes[i], host, err);
    free(host);
    return rc;
}

/* ------------------------------------------------------------------------------ open, close */

int mri_replica_open(mri_replica *r, mr_device *dev, const mri_replica_plan *plan, mr_error *err)
{
    *r = (mri_replica){.dev = dev, .plan = *plan, .records = plan->records, .record_error = MR_ERROR_INIT};
    int rc = mr_stream_create(&r->stream, dev, MR_STREAM_COMPUTE, err);
    if (rc == MR_OK) rc = mri_replica_build_nodes(r, err);
    if (rc == MR_OK) rc = place_all(r, err);
    if (rc == MR_OK) rc = check_limit(r, err);
    if (rc == MR_OK) rc = take_memory(r, err);
    if (rc) mri_replica_close(r);
    return rc;
}

void mri_replica_close(mri_replica *r)
{
    for (uint32_t i = 0; i < r->recording_count; i++) {
        mri_recording *c = &r->recordings[i];
        for (uint32_t k = 0; k < mri_replica_segments(r, c->training); k++) mr_graph_destroy(c->graphs[k]);
        free(c->graphs);
    }
    mr_stream_destroy(r->stream); /* before the rest: it finishes what still uses it */
    for (uint32_t i = 0; i < r->node_count; i++) mr_op_destroy(r->nodes[i].op);
    free(r->nodes);
    free(r->spans);
    free(r->buckets);
    if (r->dev) {
        mr_device_free(r->dev, r->arena);
        mr_host_free(r->dev, r->host_loss_scale);
        mr_device_free(r->dev, r->loss_scale);
        mr_host_free(r->dev, r->host_values);
        mr_device_free(r->dev, r->values);
        mr_host_free(r->dev, r->host_sums);
        mr_device_free(r->dev, r->sums[0]);
        mr_device_free(r->dev, r->slot[1]);
        mr_device_free(r->dev, r->slot[0]);
        mr_device_free(r->dev, r->grads);
        mr_device_free(r->dev, r->stats);
        mr_device_free(r->dev, r->weights);
    }
    *r = (mri_replica){0};
}
