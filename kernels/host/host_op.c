/* kernels/host/host_op.c: operations as tasks on streams, parameters between canonical and stored order, and
 * layouts. */
#include "kernels/host/host_op.h"

int mri_host_op_create(mr_op **out, mr_device *dev, const mr_op_desc *desc, const mr_op_info *info,
                       const struct mri_op_code *code, mr_error *err)
{
    if (!mri_op_is_entry(desc->kind) && desc->in.dtype == MR_TENSOR_F32 && !mri_tensor_valid(&desc->in))
        return mr_error_set(
            err, MR_EINVAL,
            "the input's layout %u with %zu bytes a sample is not one this device makes; create "
            "each operation from its producer's mr_op_info.out",
            desc->in.layout, desc->in.sample_bytes);
    if (info->out.dtype != MR_TENSOR_F32)
        return mr_error_set(err, MR_EUNSUPPORTED,
                            "%s computes in f32; bf16 and f16 are offered on cuda devices", dev->name);
    mri_host_op *op = calloc(1, sizeof *op);
    if (!op) return mr_error_set(err, MR_ENOMEM, "%s: no memory for an operation", dev->name);
    op->base = (mr_op){dev, *desc, *info};
    op->code = code;
    const int rc = code->prepare(op, err);
    if (rc) {
        free(op);
        return rc;
    }
    *out = &op->base;
    return MR_OK;
}

void mri_host_op_destroy(mr_op *base)
{
    mri_host_op *op = (mri_host_op *)base;
    if (op->code->release) op->code->release(op);
    free(op);
}

struct op_args {
    mri_host_op *op;
    mr_op_args args;
};
_Static_assert(sizeof(struct op_args) <= MRI_TASK_ARGS_BYTES, "an operation's arguments fit a task");

static int run_forward(mri_host_stream *s, const void *args, mr_error *err)
{
    (void)s;
    const struct op_args *a = args;
    return a->op->code->forward(a->op, &a->args, err);
}

static int run_backward(mri_host_stream *s, const void *args, mr_error *err)
{
    (void)s;
    const struct op_args *a = args;
    const mr_op *op = &a->op->base;
    if (a->args.dy2 && op->desc.kind != MR_OP_LOSS && !a->op->code->adds_dy2)
        mri_accumulate(a->args.dy, a->args.dy2, mri_tensor_floats(&op->info.out) * a->args.n);
    return a->op->code->backward(a->op, &a->args, err);
}

int mri_host_op_forward_async(mr_op *op, mr_stream *s, const mr_op_args *args)
{
    const struct op_args a = {(mri_host_op *)op, *args};
    return mri_host_push((mri_host_stream *)s, run_forward, &a, sizeof a, 0, NULL);
}

int mri_host_op_backward_async(mr_op *op, mr_stream *s, const mr_op_args *args)
{
    const struct op_args a = {(mri_host_op *)op, *args};
    return mri_host_push((mri_host_stream *)s, run_backward, &a, sizeof a, 0, NULL);
}

static size_t param_bytes(const mr_op *op, bool state, uint32_t which)
{
    return (size_t)(state ? op->info.state[which].count : op->info.param[which].count) * sizeof(float);
}

int mri_host_op_param_import(mr_op *base, bool state, uint32_t which, void *address, const float *host,
                             mr_error *err)
{
    mri_host_op *op = (mri_host_op *)base;
    if (op->code->param_import) return op->code->param_import(op, state, which, address, host, err);
    memcpy(address, host, param_bytes(base, state, which));
    return MR_OK;
}

int mri_host_op_param_export(mr_op *base, bool state, uint32_t which, const void *address, float *host,
                             mr_error *err)
{
    mri_host_op *op = (mri_host_op *)base;
    if (op->code->param_export) return op->code->param_export(op, state, which, address, host, err);
    memcpy(host, address, param_bytes(base, state, which));
    return MR_OK;
}

bool mri_tensor_valid(const mr_tensor *t)
{
    if (t->layout > MRI_LAYOUT_C16) return false;
    mr_tensor expected = *t;
    mri_tensor_set_layout(&expected, t->layout);
    return expected.sample_bytes == t->sample_bytes;
}

void mri_tensor_zero_padding(const mr_tensor *t, uint32_t n, float *values)
{
    const uint32_t block = mri_layout_block(t), last = t->c % block;
    if (last == 0) return;
    const size_t pixels = (size_t)t->h * t->w, floats = mri_tensor_floats(t),
                 start = (size_t)(t->c / block) * pixels * block;
    for (uint32_t i = 0; i < n; i++)
        for (size_t p = 0; p < pixels; p++)
            memset(values + i * floats + start + p * block + last, 0, (block - last) * sizeof(float));
}

static const struct mri_op_code *const reference_codes[] = {
    [MR_OP_INPUT] = &mri_input_ref,
    [MR_OP_CONV2D] = &mri_conv2d_ref,
    [MR_OP_POOL2D] = &mri_pool2d_ref,
    [MR_OP_DENSE] = &mri_dense_ref,
    [MR_OP_ACTIVATION] = &mri_activation_code,
    [MR_OP_DROPOUT] = &mri_dropout_code,
    [MR_OP_BATCHNORM] = &mri_batchnorm_code,
    [MR_OP_LOSS] = &mri_loss_code,
    [MR_OP_ADD] = &mri_add_code,
    [MR_OP_ONE_HOT] = &mri_one_hot_code,
};

const struct mri_op_code *mri_reference_code(mr_op_kind kind) { return reference_codes[kind]; }

static const struct mri_op_code *const fast_codes[] = {
    [MR_OP_INPUT] = &mri_input_planar,
    [MR_OP_CONV2D] = &mri_conv2d_dnnl,
    [MR_OP_POOL2D] = &mri_pool2d_dnnl,
    [MR_OP_DENSE] = &mri_dense_dnnl,
    [MR_OP_ACTIVATION] = &mri_activation_code,
    [MR_OP_DROPOUT] = &mri_dropout_code,
    [MR_OP_BATCHNORM] = &mri_batchnorm_code,
    [MR_OP_LOSS] = &mri_loss_code,
    [MR_OP_ADD] = &mri_add_code,
    [MR_OP_ONE_HOT] = &mri_one_hot_code,
};

const struct mri_op_code *mri_fast_code(mr_op_kind kind) { return fast_codes[kind]; }
