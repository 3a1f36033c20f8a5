/* kernels/cuda/ops/op_reshape.c: MR_OP_RESHAPE on a GPU: nothing in place, else a copy. */
#include "kernels/cuda/ops/cuda_op.h"

static int copy(const mri_cuda_op *op, mri_cuda_stream *s, uint32_t n, void *to, const void *from,
                mr_error *err)
{
    const mr_tensor *t = &op->base.info.out;
    if (to == from) return MR_OK;
    return mri_cuda_cast(s, (uint64_t)n * t->h * t->w * t->c, t->dtype, to, t->dtype, from, err);
}

static int forward(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err)
{
    return copy(op, s, a->n, a->y, a->x, err);
}

static int backward(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err)
{
    return op->base.desc.need_dx ? copy(op, s, a->n, a->dx, a->dy, err) : MR_OK;
}

const struct mri_cuda_code mri_cuda_reshape = {.forward_text = "reshape forward",
                                               .backward_text = "reshape backward",
                                               .forward = forward,
                                               .backward = backward};
