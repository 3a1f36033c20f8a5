/* kernels/cuda/ops/op_one_hot.c: MR_OP_ONE_HOT on a GPU (kernels/input.cu). Specification:
 * ops/data/one_hot.c; the same values. */
#include "kernels/cuda/ops/grid.h"

static int forward(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err)
{
    const mr_tensor *out = &op->base.info.out;
    struct mrk_one_hot_args args = {.count = mri_grid_elements(out, a->n),
                                    .classes = out->c,
                                    .dtype = out->dtype,
                                    .from = op->base.desc.in.dtype,
                                    .x = a->x,
                                    .y = a->y};
    args.vectors = out->c % mri_grid_pack(out->dtype) == 0 && MRI_GRID_ALIGNED(a->y);
    return mri_cuda_launch(s, MRK_one_hot, mri_grid_flat(args.count, out->dtype, args.vectors), MRK_THREADS,
                           0, &args, err);
}

const struct mri_cuda_code mri_cuda_one_hot = {.forward_text = "one_hot", .forward = forward};
