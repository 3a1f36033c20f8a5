/* kernels/cuda/ops/op_activation.c: MR_OP_ACTIVATION on a GPU: one pass each way (kernels/elements.cu).
 * Specification: ops/activation.c. */
#include "kernels/cuda/ops/cuda_op.h"

static int forward(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err)
{
    return mri_cuda_activate(s, &op->base.desc, a->n, a->x, NULL, a->y, err);
}

static int backward(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    return d->need_dx ? mri_cuda_activate_backward(s, d, a, a->dx, NULL, err) : MR_OK;
}

const struct mri_cuda_code mri_cuda_activation = {.forward_text = "activation forward",
                                                  .backward_text = "activation backward",
                                                  .forward = forward,
                                                  .backward = backward,
                                                  .adds_dy2 = true};
