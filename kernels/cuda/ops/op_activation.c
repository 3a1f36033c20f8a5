/* kernels/cuda/ops/op_activation.c: MR_OP_ACTIVATION on a GPU: one pass each way (kernels/elements.cu).
 * Specification: ops/activation.c. */
#include "kernels/cuda/ops/grid.h"

static int smooth(const mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err)
{
    const mr_tensor *t = &op->base.desc.in;
    const struct mrk_smooth_args args = {.count = mri_grid_elements(t, a->n),
                                         .dtype = t->dtype,
                                         .vectors = MRI_GRID_ALIGNED(a->x, a->y),
                                         .activation = op->base.desc.activation,
                                         .x = a->x,
                                         .y = a->y};
    return mri_cuda_launch(s, MRK_smooth, mri_grid_flat(args.count, t->dtype, args.vectors), MRK_THREADS, 0,
                           &args, err);
}

static int smooth_backward(const mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err)
{
    const mr_tensor *t = &op->base.desc.in;
    const struct mrk_smooth_backward_args args = {.count = mri_grid_elements(t, a->n),
                                                  .dtype = t->dtype,
                                                  .vectors = MRI_GRID_ALIGNED(a->dy, a->dy2, a->x, a->dx),
                                                  .activation = op->base.desc.activation,
                                                  .dy = a->dy,
                                                  .dy2 = a->dy2,
                                                  .x = a->x,
                                                  .dx = a->dx};
    return mri_cuda_launch(s, MRK_smooth_backward, mri_grid_flat(args.count, t->dtype, args.vectors),
                           MRK_THREADS, 0, &args, err);
}

static int forward(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err)
{
    if (mr_activation_needs_x(op->base.desc.activation)) return smooth(op, s, a, err);
    return mri_cuda_activate(s, &op->base.desc, a->n, a->x, NULL, a->y, err);
}

static int backward(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    if (!d->need_dx) return MR_OK;
    if (mr_activation_needs_x(d->activation)) return smooth_backward(op, s, a, err);
    return mri_cuda_activate_backward(s, d, a, a->dx, NULL, err);
}

const struct mri_cuda_code mri_cuda_activation = {.forward_text = "activation forward",
                                                  .backward_text = "activation backward",
                                                  .forward = forward,
                                                  .backward = backward,
                                                  .adds_dy2 = true};
