/* kernels/op.c: the public calls on operations, updates and groups. Checks arguments, then calls the kind's
 * table. */
#include <math.h>

#include "kernels/backend.h"

int mr_op_create(mr_op **out, mr_device *dev, const mr_op_desc *desc, mr_error *err)
{
    if (!out) return mr_error_set(err, MR_EINVAL, "mr_op_create: out must not be NULL");
    *out = NULL;
    if (!dev || !desc) return mr_error_set(err, MR_EINVAL, "mr_op_create: dev and desc must not be NULL");
    mr_op_info info;
    const int rc = mri_op_describe(desc, &info, err);
    return rc ? rc : dev->backend->op_create(out, dev, desc, &info, err);
}

void mr_op_destroy(mr_op *op)
{
    if (op) op->device->backend->op_destroy(op);
}

const mr_op_info *mr_op_info_of(const mr_op *op) { return &op->info; }

static int check_run(const mr_op *op, const mr_stream *s, const mr_op_args *a)
{
    if (!op || !s || !a || s->device != op->device || a->n < 1 || a->n > op->desc.max_batch) return MR_EINVAL;
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

int mr_op_forward_async(mr_op *op, mr_stream *s, const mr_op_args *args)
{
    if (check_run(op, s, args) || params_missing(op, args, false) || !args->x) return MR_EINVAL;
    if (op->desc.kind == MR_OP_LOSS ? !args->labels || !args->metrics : !args->y) return MR_EINVAL;
    if (op->desc.kind == MR_OP_DROPOUT && args->training && !args->values) return MR_EINVAL;
    if (mri_op_takes_two(&op->desc) && !args->x2) return MR_EINVAL;
    return op->device->backend->op_forward_async(op, s, args);
}

int mr_op_backward_async(mr_op *op, mr_stream *s, const mr_op_args *args)
{
    if (check_run(op, s, args) || params_missing(op, args, true)) return MR_EINVAL;
    if (!op->desc.training || mri_op_is_entry(op->desc.kind)) return MR_EINVAL;
    if (op->desc.kind == MR_OP_LOSS ? !args->x || !args->labels || !args->dx : !args->dy) return MR_EINVAL;
    if (op->desc.kind == MR_OP_LOSS && !args->values) return MR_EINVAL;
    if (op->desc.need_dx && !args->dx && op->desc.kind != MR_OP_ADD) return MR_EINVAL;
    return op->device->backend->op_backward_async(op, s, args);
}

static int check_param(const mr_op *op, bool state, uint32_t which, const void *address, const float *host,
                       mr_error *err)
{
    if (!op || !address || !host)
        return mr_error_set(err, MR_EINVAL, "parameters: op, address and host must not be NULL");
    const uint32_t count = state ? op->info.state_count : op->info.param_count;
    if (which >= count)
        return mr_error_set(err, MR_EINVAL, "parameters: number %u asked for, the operation has %u", which,
                            count);
    return MR_OK;
}

int mr_op_param_import(mr_op *op, bool state, uint32_t which, void *address, const float *host, mr_error *err)
{
    const int rc = check_param(op, state, which, address, host, err);
    return rc ? rc : op->device->backend->op_param_import(op, state, which, address, host, err);
}

int mr_op_param_export(mr_op *op, bool state, uint32_t which, const void *address, float *host, mr_error *err)
{
    const int rc = check_param(op, state, which, address, host, err);
    return rc ? rc : op->device->backend->op_param_export(op, state, which, address, host, err);
}

uint32_t mr_update_state_count(mr_update_kind kind)
{
    switch (kind) {
    case MR_UPDATE_SGD: return 0;
    case MR_UPDATE_MOMENTUM:
    case MR_UPDATE_RMSPROP: return 1;
    case MR_UPDATE_ADAM:
    case MR_UPDATE_ADADELTA: return 2;
    }
    return 0;
}

int mr_update_values(const mr_update_desc *desc, mr_step_values *out)
{
    out->lr = desc->lr;
    out->adam_rate = out->adam_root = 0;
    if (desc->kind != MR_UPDATE_ADAM) return MR_OK;
    if (desc->step < 1) return MR_EINVAL;
    /* apart, because epsilon is added between them */
    out->adam_rate = (float)((double)desc->lr / (1 - pow((double)desc->beta1, (double)desc->step)));
    out->adam_root = (float)(1 / sqrt(1 - pow((double)desc->beta2, (double)desc->step)));
    return MR_OK;
}

int mr_update_async(mr_stream *s, const mr_update_desc *desc, const mr_update_args *args)
{
    if (!s || !desc || !args || (unsigned)desc->kind > MR_UPDATE_ADADELTA || !args->values) return MR_EINVAL;
    if (args->count == 0) return MR_OK;
    if (!args->weights || !args->grads) return MR_EINVAL;
    for (uint32_t i = 0; i < mr_update_state_count(desc->kind); i++)
        if (!args->state[i]) return MR_EINVAL;
    return s->device->backend->update_async(s, desc, args);
}

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
    return streams[0]->device->backend->group_create(out, streams, count, err);
}

void mr_group_destroy(mr_group *g)
{
    if (g) g->backend->group_destroy(g);
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
    return g->backend->group_sum_async(g, values, count);
}

int mr_group_broadcast_async(mr_group *g, float *const *values, uint64_t count, uint32_t root)
{
    const int rc = check_values(g, values);
    if (rc) return rc;
    if (root >= g->count) return MR_EINVAL;
    if (g->count == 1 || count == 0) return MR_OK;
    return g->backend->group_broadcast_async(g, values, count, root);
}

void mr_group_abort(mr_group *g)
{
    if (g) g->backend->group_abort(g);
}

int mr_graph_begin(mr_stream *s)
{
    if (!s) return MR_EINVAL;
    return s->device->backend->graph_begin ? s->device->backend->graph_begin(s) : MR_EUNSUPPORTED;
}

int mr_graph_end(mr_stream *s, mr_graph **out, mr_error *err)
{
    if (!s || !out) return mr_error_set(err, MR_EINVAL, "mr_graph_end: the stream and out must not be NULL");
    *out = NULL;
    if (s->device->backend->graph_end) return s->device->backend->graph_end(s, out, err);
    return mr_error_set(err, MR_EUNSUPPORTED, "%s does not record graphs", s->device->name);
}

int mr_graph_launch_async(mr_graph *g, mr_stream *s)
{
    if (!g || !s || g->device != s->device) return MR_EINVAL;
    return g->device->backend->graph_launch_async(g, s);
}

void mr_graph_destroy(mr_graph *g)
{
    if (g) g->device->backend->graph_destroy(g);
}
