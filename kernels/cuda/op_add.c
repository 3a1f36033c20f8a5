/* kernels/cuda/op_add.c: MR_OP_ADD on a GPU: y = act(x + x2) in one pass; backward leaves (dy + dy2) *
 * act'(y) in dy, which is the gradient to both, and a copy in dx where one is wanted. */
#include "kernels/cuda/cut.h"

static int prepare(mri_cuda_op *op, mr_error *err)
{
    (void)op, (void)err;
    return MR_OK;
}

static int forward(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    const bool vectors = mri_cut_light(d->activation) && MRI_CUT_ALIGNED(a->x, a->x2, a->y);
    const struct mrk_activate_args args = {.count = mri_cut_elements(&d->in, a->n),
                                           .dtype = d->in.dtype,
                                           .vectors = vectors,
                                           .activation = d->activation,
                                           .x = a->x,
                                           .x2 = a->x2,
                                           .y = a->y};
    return mri_cuda_launch(s, MRK_activate, mri_cut_flat(args.count, args.dtype, vectors), MRK_THREADS, 0,
                           &args, err);
}

static int backward(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    void *const dx = a->dx != a->dy ? a->dx : NULL, *const kept =
                                                        d->activation != MR_ACT_NONE || a->dy2 ? a->dy : NULL;
    if (!dx && !kept) return MR_OK; /* dy is already what it should be */
    const void *y = d->activation == MR_ACT_NONE ? NULL : a->y;
    const bool vectors = mri_cut_light(d->activation) && MRI_CUT_ALIGNED(y, a->dy, a->dy2, dx);
    const struct mrk_activate_backward_args args = {.count = mri_cut_elements(&d->in, a->n),
                                                    .dtype = d->in.dtype,
                                                    .vectors = vectors,
                                                    .activation = d->activation,
                                                    .dy = a->dy,
                                                    .dy2 = a->dy2,
                                                    .y = y,
                                                    .out = kept,
                                                    .out2 = dx};
    return mri_cuda_launch(s, MRK_activate_backward, mri_cut_flat(args.count, args.dtype, vectors),
                           MRK_THREADS, 0, &args, err);
}

const struct mri_cuda_code mri_cuda_add = {
    .prepare = prepare, .forward = forward, .backward = backward, .adds_dy2 = true};
