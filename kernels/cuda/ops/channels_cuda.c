/* kernels/cuda/ops/channels_cuda.c: see channels_cuda.h. */
#include "kernels/cuda/ops/channels_cuda.h"

#include "kernels/cuda/ops/grid.h"

int mri_cuda_copy_channels(const mri_cuda_op *op, mri_cuda_stream *s, const struct mri_cuda_channels *c,
                           uint32_t n, void *to, const void *from, mr_error *err)
{
    const mr_tensor *in = &op->base.desc.in;
    const size_t bytes = mr_tensor_element_bytes(in->dtype);
    struct mrk_channels_args args = {.rows = (uint64_t)n * in->h * in->w,
                                     .dtype = in->dtype,
                                     .width = c->width,
                                     .at = c->at,
                                     .count = c->count,
                                     .to_step = c->to_step,
                                     .from_step = c->from_step,
                                     .to = (uint8_t *)to + c->to_first * bytes,
                                     .from = (const uint8_t *)from + c->from_first * bytes};
    const uint32_t counts = c->width | c->at | c->count | c->to_step | c->from_step;
    args.vectors = counts % mri_grid_pack(in->dtype) == 0 && MRI_GRID_ALIGNED(args.to, args.from);
    return mri_cuda_launch(s, MRK_channels, mri_grid_flat(args.rows * c->width, in->dtype, args.vectors),
                           MRK_THREADS, 0, &args, err);
}

int mri_cuda_reframe(mri_cuda_stream *s, uint32_t n, const mr_tensor *to_frame, void *to,
                     const mr_tensor *from_frame, const void *from, int32_t top, int32_t left, mr_error *err)
{
    const uint32_t dtype = from_frame->dtype;
    struct mrk_window_args args = {.n = n,
                                   .dtype = dtype,
                                   .to_h = to_frame->h,
                                   .to_w = to_frame->w,
                                   .from_h = from_frame->h,
                                   .from_w = from_frame->w,
                                   .c = from_frame->c,
                                   .top = top,
                                   .left = left,
                                   .to = to,
                                   .from = from};
    args.vectors = args.c % mri_grid_pack(dtype) == 0 && MRI_GRID_ALIGNED(to, from);
    return mri_cuda_launch(s, MRK_window, mri_grid_flat(mri_grid_elements(to_frame, n), dtype, args.vectors),
                           MRK_THREADS, 0, &args, err);
}
