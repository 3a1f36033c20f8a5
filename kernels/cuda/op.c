/* kernels/cuda/op.c: operations on a GPU: created from their code's table, queued, and their parameters
 * moved.
 *
 * Tensors are NHWC without gaps, parameters canonical, so import and export are copies on the house
 * stream. */
#include <stdio.h>

#include "kernels/cuda/cuda.h"

static const struct operation {
    const char *name, *forward, *backward;
    const struct mri_cuda_code *code;
} operations[] = {
    [MR_OP_INPUT] = {"input", "input", "input backward", &mri_cuda_input},
    [MR_OP_CONV2D] = {"conv2d", "conv2d forward", "conv2d backward", &mri_cuda_conv2d},
    [MR_OP_POOL2D] = {"pool2d", "pool2d forward", "pool2d backward", &mri_cuda_pool2d},
    [MR_OP_DENSE] = {"dense", "dense forward", "dense backward", &mri_cuda_dense},
    [MR_OP_ACTIVATION] = {"activation", "activation forward", "activation backward", &mri_cuda_activation},
    [MR_OP_DROPOUT] = {"dropout", "dropout forward", "dropout backward", &mri_cuda_dropout},
    [MR_OP_BATCHNORM] = {"batchnorm", "batchnorm forward", "batchnorm backward", &mri_cuda_batchnorm},
    [MR_OP_LOSS] = {"loss", "loss forward", "loss backward", &mri_cuda_loss},
    [MR_OP_ADD] = {"add", "add forward", "add backward", &mri_cuda_add},
    [MR_OP_ONE_HOT] = {"one_hot", "one_hot", "one_hot backward", &mri_cuda_one_hot},
};

/* What the producers of this device make. */
static bool tensor_valid(const mr_tensor *t)
{
    if (t->layout != MR_LAYOUT_NHWC) return false;
    return t->sample_bytes == (size_t)t->h * t->w * t->c * mr_tensor_element_bytes(t->dtype);
}

int mri_cuda_op_create(mr_op **out, mr_device *base, const mr_op_desc *desc, const mr_op_info *info,
                       mr_error *err)
{
    mri_cuda_device *dev = mri_cuda_device_of(base);
    const struct operation *operation = &operations[desc->kind];
    if (!operation->code)
        return mr_error_set(err, MR_EUNSUPPORTED, "%s: no %s in this build", base->name, operation->name);
    if (!tensor_valid(&desc->in))
        return mr_error_set(
            err, MR_EINVAL,
            "%s: %s: the input's type %u, layout %u with %zu bytes a sample is not one this device makes; "
            "create each operation from its producer's mr_op_info.out",
            base->name, operation->name, desc->in.dtype, desc->in.layout, desc->in.sample_bytes);
    int rc = mri_cuda_enter(dev, err);
    if (rc) return rc;
    mri_cuda_op *op = calloc(1, sizeof *op);
    if (!op) return mr_error_set(err, MR_ENOMEM, "%s: no memory for an operation", base->name);
    op->base = (mr_op){base, *desc, *info};
    op->code = operation->code;
    rc = op->code->prepare(op, err);
    if (rc) {
        free(op);
        return rc;
    }
    *out = &op->base;
    return MR_OK;
}

void mri_cuda_op_destroy(mr_op *base)
{
    mri_cuda_op *op = (mri_cuda_op *)base;
    mri_cuda_enter_anyway(mri_cuda_device_of(base->device));
    if (op->code->release) op->code->release(op);
    free(op);
}

int mri_cuda_op_forward_async(mr_op *base, mr_stream *stream, const mr_op_args *args)
{
    mri_cuda_op *op = (mri_cuda_op *)base;
    mri_cuda_stream *s = (mri_cuda_stream *)stream;
    mr_error err = MR_ERROR_INIT;
    int rc = mri_cuda_enter(mri_cuda_of_stream(s), &err);
    if (!rc) rc = op->code->forward(op, s, args, &err);
    return mri_cuda_queued(s, rc, operations[base->desc.kind].forward, &err);
}

static int add_second_gradient(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *args, mr_error *err)
{
    const mr_tensor *t = &op->base.info.out;
    if (!args->dy2 || op->code->adds_dy2) return MR_OK;
    return mri_cuda_accumulate(s, (uint64_t)args->n * t->h * t->w * t->c, t->dtype, args->dy, args->dy2, err);
}

int mri_cuda_op_backward_async(mr_op *base, mr_stream *stream, const mr_op_args *args)
{
    mri_cuda_op *op = (mri_cuda_op *)base;
    mri_cuda_stream *s = (mri_cuda_stream *)stream;
    mr_error err = MR_ERROR_INIT;
    int rc = mri_cuda_enter(mri_cuda_of_stream(s), &err);
    if (!rc) rc = add_second_gradient(op, s, args, &err);
    if (!rc) rc = op->code->backward(op, s, args, &err);
    return mri_cuda_queued(s, rc, operations[base->desc.kind].backward, &err);
}

/* ---- parameters ---- */

static size_t param_bytes(const mr_op *op, bool state, uint32_t which)
{
    return (size_t)(state ? op->info.state[which].count : op->info.param[which].count) * sizeof(float);
}

int mri_cuda_op_param_import(mr_op *op, bool state, uint32_t which, void *address, const float *host,
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

int mri_cuda_op_param_export(mr_op *op, bool state, uint32_t which, const void *address, float *host,
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
