/* kernels/cuda/ops/op_lrn.c: MR_OP_LRN on a GPU (kernels/lrn.cu). Specification: ops/lrn.c. */
#include "kernels/cuda/ops/grid.h"

static struct mrk_response rows_of(const mri_cuda_op *op, uint32_t n)
{
    const mr_op_desc *d = &op->base.desc;
    const uint32_t c = d->in.c, width = c < MRK_THREADS ? c : MRK_THREADS;
    return (struct mrk_response){.rows = (uint64_t)n * d->in.h * d->in.w,
                                 .channels = c,
                                 .width = width,
                                 .height = MRK_THREADS / width,
                                 .radius = d->lrn.radius < c - 1 ? d->lrn.radius : c - 1,
                                 .dtype = d->in.dtype,
                                 .bias = d->lrn.bias,
                                 .alpha = d->lrn.alpha,
                                 .beta = d->lrn.beta};
}

static int launch(mri_cuda_stream *s, enum mrk_kernel kernel, const struct mrk_response *of, const void *args,
                  mr_error *err)
{
    return mri_cuda_launch_2d(s, kernel, mri_grid_blocks(of->rows, of->height),
                              (of->channels - 1) / of->width + 1, MRK_THREADS, 0, args, err);
}

static int forward(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err)
{
    const struct mrk_lrn_args args = {.of = rows_of(op, a->n), .x = a->x, .y = a->y};
    return launch(s, MRK_lrn, &args.of, &args, err);
}

static int backward(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err)
{
    if (!op->base.desc.need_dx) return MR_OK;
    const struct mrk_lrn_backward_args args = {.of = rows_of(op, a->n), .dy = a->dy, .x = a->x, .dx = a->dx};
    return launch(s, MRK_lrn_backward, &args.of, &args, err);
}

const struct mri_cuda_code mri_cuda_lrn = {
    .forward_text = "lrn forward", .backward_text = "lrn backward", .forward = forward, .backward = backward};
