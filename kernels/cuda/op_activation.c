/* kernels/cuda/op_activation.c: MR_OP_ACTIVATION on a GPU: one pass each way (kernels/elements.cu).
 * Specification: ops/activation.c. */
#include "kernels/cuda/cut.h"

static int prepare(mri_cuda_op *op, mr_error *err)
{
    (void)op, (void)err;
    return MR_OK;
}

static int forward(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    const bool vectors = mri_cut_light(d->activation) && MRI_CUT_ALIGNED(a->x, a->y);
    const struct mrk_activate_args args = {.count = mri_cut_elements(&d->in, a->n),
                                           .dtype = d->in.dtype,
                                           .vectors = vectors,
                                           .activation = d->activation,
                                           .x = a->x,
                                           .y = a->y};
    return mri_cuda_launch(s, MRK_activate, mri_cut_flat(args.count, args.dtype, vectors), MRK_THREADS, 0,
                           &args, err);
}

static int backward(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    if (!d->need_dx) return MR_OK;
    const void *y = d->activation == MR_ACT_NONE ? NULL : a->y;
    const bool vectors = mri_cut_light(d->activation) && MRI_CUT_ALIGNED(y, a->dy, a->dy2, a->dx);
    const struct mrk_activate_backward_args args = {.count = mri_cut_elements(&d->in, a->n),
                                                    .dtype = d->in.dtype,
                                                    .vectors = vectors,
                                                    .activation = d->activation,
                                                    .dy = a->dy,
                                                    .dy2 = a->dy2,
                                                    .y = y,
                                                    .out = a->dx};
    return mri_cuda_launch(s, MRK_activate_backward, mri_cut_flat(args.count, args.dtype, vectors),
                           MRK_THREADS, 0, &args, err);
}

const struct mri_cuda_code mri_cuda_activation = {
    .prepare = prepare, .forward = forward, .backward = backward, .adds_dy2 = true};
