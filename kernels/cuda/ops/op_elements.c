/* kernels/cuda/ops/op_elements.c: pieces that several operations share: casts, sums, activations, bias.
 * Specification: cuda_op.h and kernels/elements.cu. */
#include "kernels/cuda/ops/grid.h"

#define BLOCKS_EACH 4u /* of the sums over rows, on a multiprocessor */

int mri_cuda_cast(mri_cuda_stream *s, uint64_t count, uint32_t to, void *dst, uint32_t from, const void *src,
                  mr_error *err)
{
    if (count == 0 || (to == from && dst == src)) return MR_OK;
    if (to == from) {
        mri_cuda_device *dev = mri_cuda_of_stream(s);
        const size_t bytes = count * mr_tensor_element_bytes(to);
        return mri_cuda_check(dev,
                              dev->api->cuMemcpyDtoDAsync((CUdeviceptr)(uintptr_t)dst,
                                                          (CUdeviceptr)(uintptr_t)src, bytes, s->handle),
                              "copying values", err);
    }
    const bool vectors = MRI_GRID_ALIGNED(dst, src);
    const struct mrk_cast_args a = {
        .count = count, .to = to, .from = from, .vectors = vectors, .dst = dst, .src = src};
    return mri_cuda_launch(s, MRK_cast, mri_grid_blocks(vectors ? count / 8 : count, MRK_THREADS),
                           MRK_THREADS, 0, &a, err);
}

int mri_cuda_accumulate(mri_cuda_stream *s, uint64_t count, uint32_t dtype, void *a, const void *b,
                        mr_error *err)
{
    if (count == 0) return MR_OK;
    const bool vectors = MRI_GRID_ALIGNED(a, b);
    const struct mrk_accumulate_args args = {
        .count = count, .dtype = dtype, .vectors = vectors, .a = a, .b = b};
    return mri_cuda_launch(s, MRK_accumulate, mri_grid_flat(count, dtype, vectors), MRK_THREADS, 0, &args,
                           err);
}

int mri_cuda_activate(mri_cuda_stream *s, const mr_op_desc *d, uint32_t n, const void *x, const void *x2,
                      void *y, mr_error *err)
{
    if (d->activation == MR_ACT_NONE && !x2 && x == y) return MR_OK;
    const bool vectors = mri_grid_light(d->activation) && MRI_GRID_ALIGNED(x, x2, y);
    const struct mrk_activate_args args = {.count = mri_grid_elements(&d->in, n),
                                           .dtype = d->in.dtype,
                                           .vectors = vectors,
                                           .activation = d->activation,
                                           .x = x,
                                           .x2 = x2,
                                           .y = y};
    return mri_cuda_launch(s, MRK_activate, mri_grid_flat(args.count, args.dtype, vectors), MRK_THREADS, 0,
                           &args, err);
}

int mri_cuda_activate_backward(mri_cuda_stream *s, const mr_op_desc *d, const mr_op_args *a, void *out,
                               void *out2, mr_error *err)
{
    const void *y = d->activation == MR_ACT_NONE ? NULL : a->y;
    if (!y && !a->dy2 && out == a->dy && !out2) return MR_OK;
    const bool vectors = mri_grid_light(d->activation) && MRI_GRID_ALIGNED(y, a->dy, a->dy2, out, out2);
    const struct mrk_activate_backward_args args = {.count = mri_grid_elements(&d->in, a->n),
                                                    .dtype = d->in.dtype,
                                                    .vectors = vectors,
                                                    .activation = d->activation,
                                                    .dy = a->dy,
                                                    .dy2 = a->dy2,
                                                    .y = y,
                                                    .out = out,
                                                    .out2 = out2};
    return mri_cuda_launch(s, MRK_activate_backward, mri_grid_flat(args.count, args.dtype, vectors),
                           MRK_THREADS, 0, &args, err);
}

int mri_cuda_bias_activate(mri_cuda_stream *s, uint64_t rows, uint32_t channels, uint32_t dtype, void *y,
                           const float *bias, mr_activation activation, mr_error *err)
{
    if (rows == 0 || (!bias && activation == MR_ACT_NONE)) return MR_OK;
    const struct mrk_tile tile =
        mri_grid_tile(rows, channels, dtype, mri_grid_light(activation) && MRI_GRID_ALIGNED(y));
    const struct mrk_bias_activate_args a = {.tile = tile, .activation = activation, .y = y, .bias = bias};
    return mri_cuda_launch_2d(s, MRK_bias_activate,
                              mri_grid_tile_x(mri_cuda_of_stream(s), &tile, 2 * BLOCKS_EACH),
                              mri_grid_tile_y(&tile), MRK_THREADS, 0, &a, err);
}

size_t mri_cuda_bias_scratch(const mri_cuda_device *dev, uint64_t rows, uint32_t channels)
{
    return (size_t)mri_grid_tile_max(dev, rows, channels, BLOCKS_EACH) * channels * sizeof(float);
}

int mri_cuda_bias_backward(mri_cuda_stream *s, uint64_t rows, uint32_t channels, uint32_t dtype,
                           const void *y, void *dy, float *dbias, void *partial, mr_activation activation,
                           mr_error *err)
{
    if (rows == 0 || (!dbias && activation == MR_ACT_NONE)) return MR_OK;
    const struct mrk_tile tile =
        mri_grid_tile(rows, channels, dtype, mri_grid_light(activation) && MRI_GRID_ALIGNED(y, dy));
    const uint32_t parts = mri_grid_tile_x(mri_cuda_of_stream(s), &tile, BLOCKS_EACH);
    const struct mrk_bias_backward_args a = {
        .tile = tile, .activation = activation, .y = y, .dy = dy, .partial = dbias ? partial : NULL};
    const int rc =
        mri_cuda_launch_2d(s, MRK_bias_backward, parts, mri_grid_tile_y(&tile), MRK_THREADS, 0, &a, err);
    if (rc || !dbias) return rc;
    const struct mrk_bias_finish_args f = {
        .channels = channels, .parts = parts, .partial = partial, .dbias = dbias};
    return mri_cuda_launch(s, MRK_bias_finish, mri_grid_finish(channels), MRK_THREADS, 0, &f, err);
}
