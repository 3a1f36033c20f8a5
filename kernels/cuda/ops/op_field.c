/* kernels/cuda/ops/op_field.c: MR_OP_FIELD on a GPU (kernels/input.cu). Specification: ops/data/field.c; f32
 * has the same bits. */
#include "kernels/cuda/ops/grid.h"

static int forward(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    const mr_tensor *out = &op->base.info.out;
    struct mrk_field_args args = {.count = mri_grid_elements(out, a->n),
                                  .dtype = out->dtype,
                                  .from = d->in.dtype,
                                  .mean = d->field.mean,
                                  .std = d->field.std != 0 ? d->field.std : 1,
                                  .x = a->x,
                                  .y = a->y};
    args.vectors = args.count % mri_grid_pack(out->dtype) == 0 && MRI_GRID_ALIGNED(a->y);
    return mri_cuda_launch(s, MRK_field, mri_grid_flat(args.count, out->dtype, args.vectors), MRK_THREADS, 0,
                           &args, err);
}

const struct mri_cuda_code mri_cuda_field = {.forward_text = "field", .forward = forward};
