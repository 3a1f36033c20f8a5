/* kernels/cuda/ops/op_softmax.c: MR_OP_SOFTMAX on a GPU (kernels/softmax.cu). Specification: ops/softmax.c.
 */
#include "kernels/cuda/ops/grid.h"

static uint64_t rows_of(const mr_op_desc *d, uint32_t n) { return (uint64_t)n * d->in.h * d->in.w; }

static int forward(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    const struct mrk_softmax_args args = {.rows = rows_of(d, a->n),
                                          .channels = d->in.c,
                                          .dtype = d->in.dtype,
                                          .log = d->softmax.log,
                                          .x = a->x,
                                          .y = a->y};
    return mri_cuda_launch(s, MRK_softmax, mri_grid_blocks(args.rows, 1), mri_grid_row_threads(d->in.c), 0,
                           &args, err);
}

static int backward(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    if (!d->need_dx) return MR_OK;
    const struct mrk_softmax_backward_args args = {.rows = rows_of(d, a->n),
                                                   .channels = d->in.c,
                                                   .dtype = d->in.dtype,
                                                   .log = d->softmax.log,
                                                   .dy = a->dy,
                                                   .x = a->x,
                                                   .dx = a->dx};
    return mri_cuda_launch(s, MRK_softmax_backward, mri_grid_blocks(args.rows, 1),
                           mri_grid_row_threads(d->in.c), 0, &args, err);
}

const struct mri_cuda_code mri_cuda_softmax = {.forward_text = "softmax forward",
                                               .backward_text = "softmax backward",
                                               .forward = forward,
                                               .backward = backward};
