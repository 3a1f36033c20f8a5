/* train/run/worker.c: averages of what parts have trained, made of calls that every device has: w -= lr g
 * with lr 1 is a difference, with lr 1 / parts it takes a mean, and a rule with momentum makes the step of
 * the weights.
 *
 * Differences from the common value are averaged, not the values: what no part has changed stays the same
 * bits. */
#include "train/run/worker.h"

static float *own_array(const mri_worker *w, uint32_t array)
{
    if (array == MRI_AVERAGED_WEIGHTS) return w->weights;
    return array == MRI_AVERAGED_STATS ? w->stats : w->slot[array - MRI_AVERAGED_SLOTS];
}

/* NULL: parts have no common value to differ from. */
static float *common_array(const mri_replica *r, uint32_t array)
{
    if (array == MRI_AVERAGED_WEIGHTS) return r->memory.own.common;
    return array == MRI_AVERAGED_STATS ? r->memory.own.common_stats : NULL;
}

uint32_t mri_worker_arrays(const mri_replica *r) { return MRI_AVERAGED_SLOTS + r->cfg.optimizer.slot_count; }

uint64_t mri_worker_floats(const mri_replica *r, uint32_t array)
{
    return array == MRI_AVERAGED_STATS ? r->plan.stat_floats : r->plan.weight_floats;
}

/* to -= rate from, by one of the rates of MRI_OUTER_... */
static int subtract(const mri_replica *r, float *to, const float *from, uint64_t count, uint32_t rate)
{
    const mr_update_desc rule = {.kind = MR_UPDATE_SGD};
    const mr_update_args args = {
        .count = count, .weights = to, .grads = from, .values = r->memory.own.outer_values + rate};
    return mr_update_async(r->stream, &rule, &args);
}

static int copy(const mri_replica *r, float *to, const float *from, uint64_t count)
{
    return count ? mr_copy_d2d_async(r->stream, to, from, (size_t)count * sizeof(float)) : MR_OK;
}

int mri_worker_differences(const mri_replica *r, uint32_t array, uint64_t from, uint64_t count)
{
    const float *common = common_array(r, array);
    float *const grads = r->memory.grads;
    int rc = MR_OK;
    for (uint32_t k = 0; rc == MR_OK && k < r->memory.own.count; k++) {
        rc = common ? copy(r, grads, common + from, count)
                    : mr_fill_async(r->stream, grads, 0, (size_t)count * sizeof(float));
        if (rc == MR_OK)
            rc = subtract(r, grads, own_array(&r->memory.own.part[k], array) + from, count, MRI_OUTER_WHOLE);
        if (rc == MR_OK) rc = mri_replica_fold(r, k, 0, count);
    }
    return rc;
}

static int step_weights(const mri_replica *r, uint64_t from, uint64_t count)
{
    const mri_memory *m = &r->memory;
    const mr_update_desc rule = {
        .kind = MR_UPDATE_MOMENTUM, .momentum = r->cfg.local.momentum, .nesterov = !r->cfg.local.heavy_ball};
    const mr_update_args args = {.count = count,
                                 .weights = m->own.common + from,
                                 .grads = m->grads,
                                 .state = {m->own.outer + from},
                                 .values = m->own.outer_values + MRI_OUTER_STEP};
    return mr_update_async(r->stream, &rule, &args);
}

int mri_worker_take_sum(const mri_replica *r, uint32_t array, uint64_t from, uint64_t count)
{
    const mri_memory *m = &r->memory;
    if (array == MRI_AVERAGED_WEIGHTS) return step_weights(r, from, count);
    if (array == MRI_AVERAGED_STATS)
        return subtract(r, m->own.common_stats + from, m->grads, count, MRI_OUTER_SHARE);
    float *const slot = own_array(&m->own.part[0], array) + from;
    const int rc = mr_fill_async(r->stream, slot, 0, (size_t)count * sizeof(float));
    return rc ? rc : subtract(r, slot, m->grads, count, MRI_OUTER_SHARE);
}

int mri_worker_take_first(const mri_replica *r)
{
    const mri_workers *own = &r->memory.own;
    const int rc = copy(r, own->common, own->part[0].weights, r->plan.weight_floats);
    return rc ? rc : copy(r, own->common_stats, own->part[0].stats, r->plan.stat_floats);
}

int mri_worker_spread(const mri_replica *r)
{
    const mri_memory *m = &r->memory;
    int rc = MR_OK;
    for (uint32_t k = 0; rc == MR_OK && k < m->own.count; k++) {
        const mri_worker *w = &m->own.part[k];
        rc = copy(r, w->weights, m->own.common, r->plan.weight_floats);
        if (rc == MR_OK) rc = copy(r, w->stats, m->own.common_stats, r->plan.stat_floats);
        for (uint32_t s = 0; rc == MR_OK && k > 0 && s < r->cfg.optimizer.slot_count; s++)
            rc = copy(r, w->slot[s], m->slot[s], r->plan.weight_floats);
    }
    return rc;
}
