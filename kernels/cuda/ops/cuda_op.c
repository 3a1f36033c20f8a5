/* kernels/cuda/ops/cuda_op.c: operations on a GPU: created from their code's table, queued, and their
 * parameters moved.
 *
 * Tensors are NHWC without gaps, parameters canonical, so import and export are copies on the house
 * stream. */
#include "kernels/cuda/ops/cuda_op.h"

#define ROW_ON_CUDA(kind, name) [MR_OP_##kind] = &mri_cuda_##name,
#define ROW_NOT_ON_CUDA(kind, name)
#define ROW(kind, name, on_cuda) ROW_##on_cuda(kind, name)
static const struct mri_cuda_code *const codes[MR_OP_KIND_COUNT] = {MRI_OP_CLASSES(ROW)};

const struct mri_cuda_code *mri_cuda_code_of(mr_op_kind kind) { return codes[kind]; }

/* Is this a tensor that operations of this device can produce? */
static bool tensor_valid(const mr_tensor *t)
{
    if (t->layout != MR_LAYOUT_NHWC) return false;
    return t->sample_bytes == (size_t)t->h * t->w * t->c * mr_tensor_element_bytes(t->dtype);
}

static int check(const mr_op *head, mr_error *err)
{
    const mr_tensor *in = &head->desc.in;
    if (!codes[head->desc.kind])
        return mr_error_set(err, MR_EUNSUPPORTED, "%s: no %s on this kind of device", head->device->name,
                            head->is->name);
    if (tensor_valid(in)) return MR_OK;
    return mr_error_set(
        err, MR_EINVAL,
        "%s: %s: the input's type %u, layout %u with %zu bytes a sample is not one this device makes; "
        "create each operation from its producer's mr_op_info.out",
        head->device->name, head->is->name, in->dtype, in->layout, in->sample_bytes);
}

static int op_create(mr_op **out, const mr_op *head, mr_error *err)
{
    int rc = check(head, err);
    if (!rc) rc = mri_cuda_enter(mri_cuda_device_of(head->device), err);
    if (rc) return rc;
    mri_cuda_op *op = calloc(1, sizeof *op);
    if (!op) return mr_error_set(err, MR_ENOMEM, "%s: no memory for an operation", head->device->name);
    op->base = *head;
    op->code = codes[head->desc.kind];
    rc = op->code->prepare ? op->code->prepare(op, err) : MR_OK;
    if (rc) {
        free(op);
        return rc;
    }
    *out = &op->base;
    return MR_OK;
}

static void op_destroy(mr_op *base)
{
    mri_cuda_op *op = (mri_cuda_op *)base;
    mri_cuda_enter_for_cleanup(mri_cuda_device_of(base->device));
    if (op->code->release) op->code->release(op);
    free(op);
}

static int op_forward_async(mr_op *base, mr_stream *stream, const mr_op_args *args)
{
    mri_cuda_op *op = (mri_cuda_op *)base;
    mri_cuda_stream *s = (mri_cuda_stream *)stream;
    mr_error err = MR_ERROR_INIT;
    int rc = mri_cuda_enter(mri_cuda_of_stream(s), &err);
    if (!rc) rc = op->code->forward(op, s, args, &err);
    return mri_cuda_queued(s, rc, op->code->forward_text, &err);
}

static int add_second_gradient(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *args, mr_error *err)
{
    const mr_tensor *t = &op->base.info.out;
    if (!args->dy2 || op->code->adds_dy2) return MR_OK;
    return mri_cuda_accumulate(s, (uint64_t)args->n * t->h * t->w * t->c, t->dtype, args->dy, args->dy2, err);
}

static int op_backward_async(mr_op *base, mr_stream *stream, const mr_op_args *args)
{
    mri_cuda_op *op = (mri_cuda_op *)base;
    mri_cuda_stream *s = (mri_cuda_stream *)stream;
    mr_error err = MR_ERROR_INIT;
    int rc = mri_cuda_enter(mri_cuda_of_stream(s), &err);
    if (!rc) rc = add_second_gradient(op, s, args, &err);
    if (!rc) rc = op->code->backward(op, s, args, &err);
    return mri_cuda_queued(s, rc, op->code->backward_text, &err);
}

/* ---- parameters ---- */

static size_t param_bytes(const mr_op *op, bool state, uint32_t which)
{
    return (size_t)(state ? op->info.state[which].count : op->info.param[which].count) * sizeof(float);
}

static int op_param_import(mr_op *op, bool state, uint32_t which, void *address, const float *host,
                           mr_error *err)
{
    mri_cuda_device *dev = mri_cuda_device_of(op->device);
    int rc = mri_cuda_enter(dev, err);
    if (rc) return rc;
    rc = mri_cuda_check(dev,
                        dev->api->cuMemcpyHtoDAsync((CUdeviceptr)(uintptr_t)address, host,
                                                    param_bytes(op, state, which), dev->house),
                        "bringing in parameters", err);
    return rc ? rc : mri_cuda_wait(dev, dev->house, NULL, MR_FOREVER, "bringing in parameters", err);
}

static int op_param_export(mr_op *op, bool state, uint32_t which, const void *address, float *host,
                           mr_error *err)
{
    mri_cuda_device *dev = mri_cuda_device_of(op->device);
    int rc = mri_cuda_enter(dev, err);
    if (rc) return rc;
    rc = mri_cuda_check(dev,
                        dev->api->cuMemcpyDtoHAsync(host, (CUdeviceptr)(uintptr_t)address,
                                                    param_bytes(op, state, which), dev->house),
                        "taking out parameters", err);
    return rc ? rc : mri_cuda_wait(dev, dev->house, NULL, MR_FOREVER, "taking out parameters", err);
}

const struct mri_op_calls mri_cuda_ops = {.create = op_create,
                                          .destroy = op_destroy,
                                          .forward_async = op_forward_async,
                                          .backward_async = op_backward_async,
                                          .param_import = op_param_import,
                                          .param_export = op_param_export};
