/* kernels/cuda/ops/op_input.c: MR_OP_INPUT on a GPU (kernels/input.cu). Specification: ops/data/input.c; f32
 * has the same bits. */
#include "kernels/cuda/ops/grid.h"

static int prepare(mri_cuda_op *op, mr_error *err)
{
    const mr_tensor *in = &op->base.desc.in;
    const uint64_t bytes = (uint64_t)in->h * in->w * in->c;
    if (in->layout != MR_LAYOUT_NHWC || in->sample_bytes != bytes)
        return mr_error_set(
            err, MR_EINVAL,
            "input: pixels must be NHWC without padding, %llu bytes a sample; found layout %u with %zu",
            (unsigned long long)bytes, in->layout, in->sample_bytes);
    if (bytes > INT32_MAX) /* the kernel counts the pixels of a sample in 32 bits */
        return mr_error_set(err, MR_EUNSUPPORTED, "input: a sample of %llu bytes; on a GPU at most %d",
                            (unsigned long long)bytes, INT32_MAX);
    return MR_OK;
}

static int forward(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    const mr_tensor *out = &op->base.info.out;
    const bool planar = out->layout == MR_LAYOUT_NCHW;
    const uint32_t pixels = out->h * out->w, pack = mri_grid_pack(out->dtype);
    struct mrk_input_args args = {.n = a->n,
                                  .h = out->h,
                                  .w = out->w,
                                  .c = out->c,
                                  .dtype = out->dtype,
                                  .planar = planar,
                                  .x = a->x,
                                  .y = a->y,
                                  .affine = a->affine,
                                  .flip = a->flip};
    args.vectors = (planar ? pixels : pixels * out->c) % pack == 0 && MRI_GRID_ALIGNED(a->y);
    for (uint32_t c = 0; c < out->c; c++) {
        args.mean[c] = d->input.mean[c];
        args.std[c] = d->input.std[c];
        args.k[c] = 1 / d->input.std[c];
        args.d[c] = (0 - d->input.mean[c]) / d->input.std[c];
    }
    return mri_cuda_launch(s, MRK_input,
                           mri_grid_flat(mri_grid_elements(out, a->n), out->dtype, args.vectors), MRK_THREADS,
                           0, &args, err);
}

const struct mri_cuda_code mri_cuda_input = {.forward_text = "input", .prepare = prepare, .forward = forward};
