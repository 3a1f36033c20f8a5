/* kernels/cuda/ops/op_concat.c: MR_OP_CONCAT on a GPU: each input's channels in a pass of their own
 * (kernels/channels.cu). Specification: ops/concat.c; the same values. */
#include "kernels/cuda/ops/channels_cuda.h"

static int forward(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    const uint32_t width = op->base.info.out.c;
    const struct mri_cuda_channels first = {.width = d->in.c,
                                            .count = d->in.c,
                                            .to_step = width,
                                            .from_step = d->in.c},
                                   second = {.width = d->in2.c,
                                             .count = d->in2.c,
                                             .to_first = d->in.c,
                                             .to_step = width,
                                             .from_step = d->in2.c};
    const int rc = mri_cuda_copy_channels(op, s, &first, a->n, a->y, a->x, err);
    return rc ? rc : mri_cuda_copy_channels(op, s, &second, a->n, a->y, a->x2, err);
}

static int backward(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    const uint32_t width = op->base.info.out.c;
    const struct mri_cuda_channels first = {.width = d->in.c,
                                            .count = d->in.c,
                                            .to_step = d->in.c,
                                            .from_step = width},
                                   second = {.width = d->in2.c,
                                             .count = d->in2.c,
                                             .from_first = d->in.c,
                                             .to_step = d->in2.c,
                                             .from_step = width};
    const int rc = d->need_dx ? mri_cuda_copy_channels(op, s, &first, a->n, a->dx, a->dy, err) : MR_OK;
    return rc || !a->dx2 ? rc : mri_cuda_copy_channels(op, s, &second, a->n, a->dx2, a->dy, err);
}

const struct mri_cuda_code mri_cuda_concat = {.forward_text = "concat forward",
                                              .backward_text = "concat backward",
                                              .forward = forward,
                                              .backward = backward};
