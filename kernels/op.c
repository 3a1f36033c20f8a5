/* kernels/op.c: the public calls on operations and updates. Checks arguments, then calls the kind's table. */
#include <float.h>

#include "base/abi.h"
#include "kernels/backend/op_class.h"
#include "kernels/ops/op_table.h"

int mr_op_create(mr_op **out, mr_device *dev, const mr_op_desc *desc, mr_error *err)
{
    MRI_GIVEN(err, out);
    *out = NULL;
    MRI_OWN(err, dev);
    MRI_GIVEN(err, desc);
    mr_op head = {.device = dev, .is = mri_op_class_of(desc->kind), .desc = *desc};
    if (!head.is) return mr_error_set(err, MR_EINVAL, "unknown operation %d", (int)desc->kind);
    const int rc = mri_op_describe(head.is, desc, &head.info, err);
    return rc ? rc : dev->backend->ops->create(out, &head, err);
}

void mr_op_destroy(mr_op *op)
{
    if (op && !mri_is_inherited(op->device->process)) op->device->backend->ops->destroy(op);
}

const mr_op_info *mr_op_info_of(const mr_op *op) { return op ? &op->info : NULL; }

static int check_run(const mr_op *op, const mr_stream *s, const mr_op_args *a)
{
    MRI_OWN_AS(NULL, op, op->device->process);
    if (!s || !a || s->device != op->device || a->n < 1 || a->n > op->desc.max_batch) return MR_EINVAL;
    return MR_OK;
}

static bool params_missing(const mr_op *op, const mr_op_args *a, bool gradients)
{
    for (uint32_t i = 0; i < op->info.param_count; i++)
        if (!a->param[i] || (gradients && !a->dparam[i])) return true;
    for (uint32_t i = 0; i < op->info.state_count; i++)
        if (!a->state[i] && !gradients) return true;
    return (op->info.saved_bytes && !a->saved && (gradients || a->training)) ||
           (op->info.scratch_bytes && !a->scratch);
}

/* What this kind needs and was not given. */
static bool lacks(const mr_op *op, const mr_op_args *a, bool backward)
{
    return op->is->lacks ? op->is->lacks(op, a, backward) : mri_op_lacks(op, a, backward);
}

int mr_op_forward_async(mr_op *op, mr_stream *s, const mr_op_args *args)
{
    if (check_run(op, s, args) || params_missing(op, args, false) || !args->x) return MR_EINVAL;
    if (lacks(op, args, false)) return MR_EINVAL;
    return op->device->backend->ops->forward_async(op, s, args);
}

int mr_op_backward_async(mr_op *op, mr_stream *s, const mr_op_args *args)
{
    if (check_run(op, s, args) || params_missing(op, args, true)) return MR_EINVAL;
    if (!op->desc.training || op->is->entry || lacks(op, args, true)) return MR_EINVAL;
    return op->device->backend->ops->backward_async(op, s, args);
}

static int check_param(const mr_op *op, bool state, uint32_t which, mr_error *err)
{
    const uint32_t count = state ? op->info.state_count : op->info.param_count;
    if (which >= count)
        return mr_error_set(err, MR_EINVAL, "parameters: number %u asked for, the operation has %u", which,
                            count);
    return MR_OK;
}

int mr_op_param_import(mr_op *op, bool state, uint32_t which, void *address, const float *host, mr_error *err)
{
    MRI_OWN_AS(err, op, op->device->process);
    MRI_GIVEN(err, address);
    MRI_GIVEN(err, host);
    const int rc = check_param(op, state, which, err);
    return rc ? rc : op->device->backend->ops->param_import(op, state, which, address, host, err);
}

int mr_op_param_export(mr_op *op, bool state, uint32_t which, const void *address, float *host, mr_error *err)
{
    MRI_OWN_AS(err, op, op->device->process);
    MRI_GIVEN(err, address);
    MRI_GIVEN(err, host);
    const int rc = check_param(op, state, which, err);
    return rc ? rc : op->device->backend->ops->param_export(op, state, which, address, host, err);
}

static bool is_limit(float v) { return v >= 0 && v <= FLT_MAX; }

/* Floats that a matrix takes in the arrays. */
static uint64_t stored(const mr_update_matrix *m)
{
    return m->op ? m->op->info.param[m->which].storage_count : m->rows * m->columns;
}

static bool are_matrices(const mr_update_config *cfg)
{
    uint64_t from = 0;
    if (cfg->matrix_count && (!cfg->matrices || !cfg->room)) return false;
    for (uint32_t i = 0; i < cfg->matrix_count; i++) {
        const mr_update_matrix *m = &cfg->matrices[i];
        if (!m->rows || !m->columns || m->rows > UINT32_MAX || m->columns > UINT32_MAX) return false;
        if (m->op && m->which >= m->op->info.param_count) return false;
        if (m->at % MR_UPDATE_STRETCH || m->at < from || stored(m) > cfg->args.count - m->at) return false;
        from = m->at + stored(m);
    }
    return true;
}

uint64_t mr_update_room_bytes(const mr_device *dev, const mr_update_matrix *matrices, uint32_t count)
{
    uint64_t most = 0;
    if (!dev || !matrices) return 0;
    for (uint32_t i = 0; i < count; i++)
        most = mri_max_u64(most, dev->backend->update_room(dev, &matrices[i], stored(&matrices[i])));
    return most;
}

static int run_update(mr_stream *s, const mr_update_config *cfg)
{
    const mr_update_args *args = &cfg->args;
    MRI_OWN_AS(NULL, s, s->device->process);
    if ((unsigned)cfg->rule.kind >= MR_UPDATE_KIND_COUNT || !args->values) return MR_EINVAL;
    if (!is_limit(cfg->clip_value) || !is_limit(cfg->clip_norm) || (cfg->clip_norm > 0 && !cfg->norm))
        return MR_EINVAL;
    if (cfg->rule.kind == MR_UPDATE_LAMB && (!cfg->tensors || !cfg->trust || !cfg->tensor_count))
        return MR_EINVAL;
    if (cfg->rule.kind == MR_UPDATE_MUON && !are_matrices(cfg)) return MR_EINVAL;
    if (args->count == 0) return MR_OK;
    if (!args->weights || !args->grads) return MR_EINVAL;
    for (uint32_t i = 0; i < mr_update_state_count(cfg->rule.kind); i++)
        if (!args->state[i]) return MR_EINVAL;
    return s->device->backend->update_async(s, cfg);
}

int mr_update_run_async(mr_stream *s, const mr_update_config *cfg)
{
    mr_update_config mine;
    mr_update_defaults(&mine);
    if (!cfg || mri_settings_take(&mine, sizeof mine, cfg, "update", NULL)) return MR_EINVAL;
    return run_update(s, &mine);
}

int mr_update_async(mr_stream *s, const mr_update_desc *desc, const mr_update_args *args)
{
    if (!desc || !args) return MR_EINVAL;
    const mr_update_config cfg = {.rule = *desc, .args = *args};
    return run_update(s, &cfg);
}

int mr_average_async(mr_stream *s, float *average, const float *from, uint64_t count, float decay)
{
    MRI_OWN_AS(NULL, s, s->device->process);
    if (((!average || !from) && count) || !(decay >= 0 && decay < 1)) return MR_EINVAL;
    return count ? s->device->backend->average_async(s, average, from, count, decay) : MR_OK;
}

int mr_add_async(mr_stream *s, float *to, const float *from, uint64_t count)
{
    MRI_OWN_AS(NULL, s, s->device->process);
    if ((!to || !from) && count) return MR_EINVAL;
    return count ? s->device->backend->add_async(s, to, from, count) : MR_OK;
}
