/* kernels/cuda/ops/op_embedding.c: MR_OP_EMBEDDING on a GPU (kernels/places.cu). Specification:
 * ops/data/embedding.c; f32 has the same bits. */
#include "kernels/cuda/ops/grid.h"

static int forward(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    const struct mrk_embedding_args args = {.places = mri_grid_elements(&d->in, a->n),
                                            .units = d->embedding.units,
                                            .classes = d->embedding.classes,
                                            .dtype = op->base.info.out.dtype,
                                            .from = d->in.dtype,
                                            .x = a->x,
                                            .table = a->param[0],
                                            .y = a->y};
    return mri_cuda_launch(s, MRK_embedding, mri_grid_flat(args.places * args.units, args.dtype, false),
                           MRK_THREADS, 0, &args, err);
}

static int backward(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    const struct mrk_embedding_backward_args args = {.places = mri_grid_elements(&d->in, a->n),
                                                     .units = d->embedding.units,
                                                     .classes = d->embedding.classes,
                                                     .dtype = op->base.info.out.dtype,
                                                     .from = d->in.dtype,
                                                     .x = a->x,
                                                     .dy = a->dy,
                                                     .dtable = a->dparam[0]};
    return mri_cuda_launch(s, MRK_embedding_backward,
                           mri_grid_flat((uint64_t)args.classes * args.units, args.dtype, false), MRK_THREADS,
                           0, &args, err);
}

const struct mri_cuda_code mri_cuda_embedding = {.forward_text = "embedding forward",
                                                 .backward_text = "embedding backward",
                                                 .forward = forward,
                                                 .backward = backward};
