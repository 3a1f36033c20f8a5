/* kernels/cuda/ops/op_pad.c: MR_OP_PAD on a GPU (kernels/channels.cu). Specification: ops/pad.c; the same
 * values. */
#include "kernels/cuda/ops/channels_cuda.h"

static int forward(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    const uint32_t width = op->base.info.out.c;
    const struct mri_cuda_channels all = {
        .width = width, .at = d->pad.before, .count = d->in.c, .to_step = width, .from_step = d->in.c};
    return mri_cuda_copy_channels(op, s, &all, a->n, a->y, a->x, err);
}

static int backward(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    const struct mri_cuda_channels own = {.width = d->in.c,
                                          .count = d->in.c,
                                          .from_first = d->pad.before,
                                          .to_step = d->in.c,
                                          .from_step = op->base.info.out.c};
    return d->need_dx ? mri_cuda_copy_channels(op, s, &own, a->n, a->dx, a->dy, err) : MR_OK;
}

const struct mri_cuda_code mri_cuda_pad = {
    .forward_text = "pad forward", .backward_text = "pad backward", .forward = forward, .backward = backward};
