/* kernels/cuda/ops/op_add.c: MR_OP_ADD on a GPU: y = act(x + x2) in one pass; backward leaves (dy + dy2) *
 * act'(y) in dy, which is the gradient to both, and a copy in dx where one is wanted. */
#include "kernels/cuda/ops/cuda_op.h"

static int forward(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err)
{
    return mri_cuda_activate(s, &op->base.desc, a->n, a->x, a->x2, a->y, err);
}

static int backward(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    void *const dx = a->dx != a->dy ? a->dx : NULL;
    void *const kept = d->activation != MR_ACT_NONE || a->dy2 ? a->dy : NULL;
    if (!dx && !kept) return MR_OK; /* dy already has the right values */
    return mri_cuda_activate_backward(s, d, a, kept, dx, err);
}

const struct mri_cuda_code mri_cuda_add = {.forward_text = "add forward",
                                           .backward_text = "add backward",
                                           .forward = forward,
                                           .backward = backward,
                                           .adds_dy2 = true};
