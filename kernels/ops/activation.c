/* kernels/ops/activation.c: an element-wise function by itself. Any layout; zeros in padding stay zeros or
 * are restored. */
#include "kernels/backend/op_class.h"
#include "kernels/ops/host_op.h"

static int describe(const mr_op_desc *d, mr_op_info *info, mr_error *err)
{
    (void)d, (void)err;
    info->inplace = true;
    return MR_OK;
}

static int forward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    (void)err;
    const mr_tensor *out = &op->base.info.out;
    mri_activate_into(op->base.desc.activation, a->y, a->x, mri_tensor_floats(out) * a->n);
    if (op->base.desc.activation == MR_ACT_SIGMOID)
        mri_tensor_zero_padding(out, a->n, a->y); /* sigmoid(0) is not 0 */
    return MR_OK;
}

static int backward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    (void)err;
    if (op->base.desc.need_dx)
        mri_activate_backward_into(op->base.desc.activation, a->dx, a->dy, a->y,
                                   mri_tensor_floats(&op->base.info.out) * a->n);
    return MR_OK;
}

static const struct mri_op_code reference = {.forward = forward, .backward = backward};
const struct mri_op_class mri_activation_class = {
    .name = "activation", .keeps_layout = true, .describe = describe, .reference = &reference};
