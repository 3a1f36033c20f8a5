/* train/run/memory.c: allocates the memory of the plan. Waits only during allocation. */
#include "train/run/memory.h"

typedef struct taking {
    mri_memory *m;
    mr_device *dev;
    mr_stream *stream;
    const mri_plan *plan;
    const mri_replica_config *cfg;
} taking;

static int clear(const taking *t, void *address, size_t bytes, mr_error *err)
{
    const int rc = mr_fill_async(t->stream, address, 0, bytes);
    if (rc == MR_OK || mr_stream_sync(t->stream, err) != MR_OK) return rc; /* the stream knows why */
    return mr_error_set(err, rc, "%s: cannot clear memory: %s", mr_device_info_of(t->dev)->name,
                        mr_status_text(rc));
}

/* count floats of zeros, or nothing when count is 0. */
static int alloc_floats(const taking *t, uint64_t count, float **out, mr_error *err)
{
    if (count == 0) return MR_OK;
    void *address = NULL;
    int rc = mr_device_alloc(t->dev, (size_t)count * sizeof(float), &address, err);
    if (rc) return rc;
    *out = address;
    return clear(t, address, (size_t)count * sizeof(float), err);
}

static int take_sums(const taking *t, mr_error *err)
{
    mri_memory *m = t->m;
    const uint32_t parts = t->cfg->folds.count;
    void *device = NULL, *host = NULL;
    int rc = mr_device_alloc(t->dev, 2 * parts * sizeof(mr_metrics), &device, err);
    if (rc) return rc;
    m->sums[0] = device, m->sums[1] = m->sums[0] + parts;
    rc = mr_host_alloc(t->dev, (1 + MRI_RUN_AHEAD) * parts * sizeof(mr_metrics), &host, err);
    if (rc) return rc;
    m->host_sums = host;
    m->host_peeks = m->host_sums + parts;
    rc = mr_device_alloc(t->dev, sizeof(mr_step_values), &device, err);
    if (rc) return rc;
    m->values = device;
    rc = mr_host_alloc(t->dev, MRI_RUN_AHEAD * sizeof(mr_step_values), &host, err);
    if (rc) return rc;
    m->host_values = host;
    return clear(t, m->sums[0], 2 * parts * sizeof(mr_metrics), err);
}

static int take_loss_scale(const taking *t, mr_error *err)
{
    void *device = NULL, *host = NULL;
    if (t->cfg->inference || t->cfg->dtype != MR_TENSOR_F16) return MR_OK;
    int rc = mr_device_alloc(t->dev, sizeof(mr_loss_scale), &device, err);
    if (rc) return rc;
    t->m->loss_scale = device;
    rc = mr_host_alloc(t->dev, sizeof(mr_loss_scale), &host, err);
    if (rc) return rc;
    t->m->host_loss_scale = host;
    *t->m->host_loss_scale = (mr_loss_scale){0};
    return MR_OK;
}

static int take_norm(const taking *t, mr_error *err)
{
    const uint64_t bytes = mri_plan_norm_bytes(t->plan, t->cfg);
    void *device = NULL;
    const int rc = bytes ? mr_device_alloc(t->dev, (size_t)bytes, &device, err) : MR_OK;
    t->m->norm = device;
    return rc;
}

/* A table of the plan or the settings, or nothing. */
static int take_table(const taking *t, const void *table, uint64_t bytes, void **out, mr_error *err)
{
    if (bytes == 0) return MR_OK;
    const int rc = mr_device_alloc(t->dev, (size_t)bytes, out, err);
    if (rc) return rc;
    const int copied = mr_copy_h2d_async(t->stream, *out, table, (size_t)bytes);
    if (copied == MR_OK || mr_stream_sync(t->stream, err) != MR_OK) return copied; /* the stream knows why */
    return mr_error_set(err, copied, "%s: cannot copy a table: %s", mr_device_info_of(t->dev)->name,
                        mr_status_text(copied));
}

static int take_tables(const taking *t, mr_error *err)
{
    const mri_plan *plan = t->plan;
    const uint64_t trust_bytes = mri_plan_trust_bytes(plan);
    const uint64_t class_bytes = t->cfg->labels.class_weight_count * sizeof *t->cfg->labels.class_weights;
    void *decays = NULL, *tensors = NULL, *trust = NULL, *classes = NULL, *room = NULL;
    int rc = take_table(t, plan->decays, mri_plan_decay_bytes(plan), &decays, err);
    t->m->decays = decays;
    if (rc == MR_OK) rc = take_table(t, plan->tensors, mri_plan_tensor_bytes(plan), &tensors, err);
    t->m->tensors = tensors;
    if (rc == MR_OK) rc = take_table(t, t->cfg->labels.class_weights, class_bytes, &classes, err);
    t->m->class_weights = classes;
    if (rc == MR_OK && trust_bytes) rc = mr_device_alloc(t->dev, (size_t)trust_bytes, &trust, err);
    t->m->trust = trust;
    if (rc == MR_OK && plan->room_bytes) rc = mr_device_alloc(t->dev, (size_t)plan->room_bytes, &room, err);
    t->m->room = room;
    return rc;
}

/* Of parts that train by themselves: the first one has the arrays of the replica. */
static int take_workers(const taking *t, mr_error *err)
{
    mri_memory *m = t->m;
    const mri_plan *plan = t->plan;
    int rc = MR_OK;
    if (!t->cfg->local.on) return MR_OK;
    m->own.part = calloc(t->cfg->folds.count, sizeof *m->own.part);
    if (!m->own.part) return mr_error_set(err, MR_ENOMEM, "no memory for %u parts", t->cfg->folds.count);
    m->own.part[0] = (mri_worker){m->weights, m->stats, {m->slot[0], m->slot[1], m->slot[2]}};
    m->own.count = t->cfg->folds.count;
    for (uint32_t k = 1; rc == MR_OK && k < m->own.count; k++) {
        mri_worker *w = &m->own.part[k];
        rc = alloc_floats(t, plan->weight_floats, &w->weights, err);
        if (rc == MR_OK) rc = alloc_floats(t, plan->stat_floats, &w->stats, err);
        for (uint32_t s = 0; rc == MR_OK && s < t->cfg->optimizer.slot_count; s++)
            rc = alloc_floats(t, plan->weight_floats, &w->slot[s], err);
    }
    if (rc == MR_OK) rc = alloc_floats(t, plan->weight_floats, &m->own.common, err);
    if (rc == MR_OK) rc = alloc_floats(t, plan->stat_floats, &m->own.common_stats, err);
    if (rc == MR_OK && !t->cfg->local.apart) rc = alloc_floats(t, plan->weight_floats, &m->own.outer, err);
    return rc;
}

static int take_outer_values(const taking *t, mr_error *err)
{
    const float share = 1 / (float)t->cfg->local.all_parts;
    const mr_step_values values[MRI_OUTER_VALUES] = {
        [MRI_OUTER_WHOLE] = {.lr = 1},
        [MRI_OUTER_SHARE] = {.lr = share},
        [MRI_OUTER_STEP] = {.lr = t->cfg->local.lr / (float)t->cfg->local.all_parts},
    };
    void *table = NULL;
    int rc = t->cfg->local.on ? take_table(t, values, sizeof values, &table, err) : MR_OK;
    t->m->own.outer_values = table;
    return table && rc == MR_OK ? mr_stream_sync(t->stream, err) : rc; /* values go */
}

int mri_memory_init(mri_memory *m, mr_device *dev, mr_stream *stream, const mri_plan *plan,
                    const mri_replica_config *cfg, mr_error *err)
{
    const taking t = {.m = m, .dev = dev, .stream = stream, .plan = plan, .cfg = cfg};
    void *arena = NULL;
    *m = (mri_memory){0};
    int rc = alloc_floats(&t, plan->weight_floats, &m->weights, err);
    if (rc == MR_OK) rc = alloc_floats(&t, plan->stat_floats, &m->stats, err);
    if (rc == MR_OK && plan->other_stats) rc = alloc_floats(&t, plan->stat_floats, &m->other_stats, err);
    if (rc == MR_OK && !cfg->inference) rc = alloc_floats(&t, plan->weight_floats, &m->grads, err);
    for (uint32_t i = 0; rc == MR_OK && !cfg->inference && i < cfg->folds.terms; i++)
        rc = alloc_floats(&t, plan->weight_floats, &m->terms[i], err);
    if (rc == MR_OK && cfg->local.delayed) rc = alloc_floats(&t, plan->weight_floats, &m->late, err);
    for (uint32_t i = 0; rc == MR_OK && cfg->local.delayed && i < cfg->folds.left; i++)
        rc = alloc_floats(&t, plan->weight_floats, &m->late_terms[i], err);
    for (uint32_t s = 0; rc == MR_OK && !cfg->inference && s < cfg->optimizer.slot_count; s++)
        rc = alloc_floats(&t, plan->weight_floats, &m->slot[s], err);
    if (rc == MR_OK && plan->averages) rc = alloc_floats(&t, plan->weight_floats, &m->average, err);
    if (rc == MR_OK && plan->averages) rc = alloc_floats(&t, plan->stat_floats, &m->average_stats, err);
    if (rc == MR_OK) rc = take_workers(&t, err);
    if (rc == MR_OK) rc = take_outer_values(&t, err);
    if (rc == MR_OK) rc = take_sums(&t, err);
    if (rc == MR_OK) rc = take_loss_scale(&t, err);
    if (rc == MR_OK) rc = take_norm(&t, err);
    if (rc == MR_OK) rc = take_tables(&t, err);
    if (rc == MR_OK) rc = mr_device_alloc(dev, plan->arena_bytes, &arena, err);
    m->arena = arena;
    return rc == MR_OK ? mr_stream_sync(stream, err) : rc;
}

void mri_memory_fini(mri_memory *m, mr_device *dev)
{
    mr_device_free(dev, m->arena);
    mr_device_free(dev, m->own.outer_values);
    mr_device_free(dev, m->own.outer);
    mr_device_free(dev, m->own.common_stats);
    mr_device_free(dev, m->own.common);
    for (uint32_t k = 1; k < m->own.count; k++) {
        for (uint32_t s = 0; s < MRI_SLOTS_MOST; s++) mr_device_free(dev, m->own.part[k].slot[s]);
        mr_device_free(dev, m->own.part[k].stats);
        mr_device_free(dev, m->own.part[k].weights);
    }
    free(m->own.part);
    mr_device_free(dev, m->average_stats);
    mr_device_free(dev, m->average);
    mr_device_free(dev, m->room);
    mr_device_free(dev, m->class_weights);
    mr_device_free(dev, m->trust);
    mr_device_free(dev, m->tensors);
    mr_device_free(dev, m->decays);
    mr_device_free(dev, m->norm);
    mr_host_free(dev, m->host_loss_scale);
    mr_device_free(dev, m->loss_scale);
    mr_host_free(dev, m->host_values);
    mr_device_free(dev, m->values);
    mr_host_free(dev, m->host_sums);
    mr_device_free(dev, m->sums[0]);
    for (uint32_t s = 0; s < MRI_SLOTS_MOST; s++) mr_device_free(dev, m->slot[s]);
    for (uint32_t i = 0; i < MRI_TERMS_MOST; i++) mr_device_free(dev, m->late_terms[i]);
    mr_device_free(dev, m->late);
    for (uint32_t i = 0; i < MRI_TERMS_MOST; i++) mr_device_free(dev, m->terms[i]);
    mr_device_free(dev, m->grads);
    mr_device_free(dev, m->other_stats);
    mr_device_free(dev, m->stats);
    mr_device_free(dev, m->weights);
    *m = (mri_memory){0};
}
