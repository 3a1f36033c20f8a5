/* kernels/ops/activation.c: an element-wise function by itself. Any layout; zeros in padding stay zeros or
 * are restored. */
#include "kernels/backend/op_class.h"
#include "kernels/ops/host_op.h"

static int describe(const mr_op_desc *d, mr_op_info *info, mr_error *err)
{
    (void)err;
    info->inplace = !mr_activation_needs_x(d->activation);
    return MR_OK;
}

static bool lacks(const mr_op *op, const mr_op_args *a, bool backward)
{
    return mri_op_lacks(op, a, backward) ||
           (backward && mr_activation_needs_x(op->desc.activation) && op->desc.need_dx && !a->x);
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
    const mr_op_desc *d = &op->base.desc;
    if (d->need_dx)
        mri_activate_backward_into(d->activation, a->dx, a->dy,
                                   mr_activation_needs_x(d->activation) ? a->x : a->y,
                                   mri_tensor_floats(&op->base.info.out) * a->n);
    return MR_OK;
}

static const struct mri_op_code reference = {.forward = forward, .backward = backward};
const struct mri_op_class mri_activation_class = {.name = "activation",
                                                  .keeps_layout = true,
                                                  .describe = describe,
                                                  .lacks = lacks,
                                                  .reference = &reference};
