/* kernels/cuda/ops/op_upsample.c: MR_OP_UPSAMPLE on a GPU (kernels/places.cu). Specification: ops/upsample.c;
 * f32 has the same bits. */
#include "kernels/cuda/ops/grid.h"

static int forward(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    const struct mrk_upsample_args args = {.n = a->n,
                                           .h = d->in.h,
                                           .w = d->in.w,
                                           .c = d->in.c,
                                           .factor = d->upsample.factor,
                                           .bilinear = d->upsample.bilinear,
                                           .dtype = d->in.dtype,
                                           .x = a->x,
                                           .y = a->y};
    const uint64_t values = mri_grid_elements(&op->base.info.out, a->n);
    return mri_cuda_launch(s, MRK_upsample, mri_grid_flat(values, d->in.dtype, false), MRK_THREADS, 0, &args,
                           err);
}

static int backward(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    if (!d->need_dx) return MR_OK;
    const struct mrk_upsample_backward_args args = {.n = a->n,
                                                    .h = d->in.h,
                                                    .w = d->in.w,
                                                    .c = d->in.c,
                                                    .factor = d->upsample.factor,
                                                    .bilinear = d->upsample.bilinear,
                                                    .dtype = d->in.dtype,
                                                    .dy = a->dy,
                                                    .dx = a->dx};
    const uint64_t values = mri_grid_elements(&d->in, a->n);
    return mri_cuda_launch(s, MRK_upsample_backward, mri_grid_flat(values, d->in.dtype, false), MRK_THREADS,
                           0, &args, err);
}

const struct mri_cuda_code mri_cuda_upsample = {.forward_text = "upsample forward",
                                                .backward_text = "upsample backward",
                                                .forward = forward,
                                                .backward = backward};
