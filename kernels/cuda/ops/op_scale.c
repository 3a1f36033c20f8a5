/* kernels/cuda/ops/op_scale.c: MR_OP_SCALE on a GPU (kernels/scale.cu): one pass each way. Specification:
 * ops/scale.c. */
#include "kernels/cuda/ops/grid.h"

#define BLOCKS_EACH 8u /* of forward, on a multiprocessor */
#define NARROW      8u /* packs of a sample that backward gives to one block */

/* The factors are vectors of this device, too. */
static int prepare(mri_cuda_op *op, mr_error *err)
{
    const mr_tensor *second = &op->base.desc.in2;
    if (second->layout == MR_LAYOUT_NHWC &&
        second->sample_bytes == (size_t)second->c * mr_tensor_element_bytes(second->dtype))
        return MR_OK;
    return mr_error_set(
        err, MR_EINVAL,
        "scale: the second input's layout %u with %zu bytes a sample is not one this device makes",
        second->layout, second->sample_bytes);
}

/* The pixels of one sample. */
static struct mrk_tile tile_of(const mri_cuda_op *op, bool vectors)
{
    const mr_tensor *t = &op->base.desc.in;
    return mri_grid_tile((uint64_t)t->h * t->w, t->c, t->dtype, vectors);
}

static int forward(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err)
{
    const struct mrk_tile tile = tile_of(op, MRI_GRID_ALIGNED(a->x, a->x2, a->y));
    const uint64_t full = mri_cuda_of_stream(s)->multiprocessors * BLOCKS_EACH,
                   blocks = (uint64_t)a->n * mri_grid_tile_y(&tile);
    const uint32_t needed = mri_grid_blocks(tile.rows, MRK_THREADS / tile.width * MRI_GRID_ROWS),
                   parts = (uint32_t)mri_max_u64(1, mri_min_u64(full / blocks, needed));
    const struct mrk_scale_args args = {
        .tile = tile, .n = a->n, .parts = parts, .x = a->x, .factor = a->x2, .y = a->y};
    return mri_cuda_launch_2d(s, MRK_scale, a->n * parts, mri_grid_tile_y(&tile), MRK_THREADS, 0, &args, err);
}

static int backward(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err)
{
    void *const dx = op->base.desc.need_dx ? a->dx : NULL;
    if (!dx && !a->dx2) return MR_OK;
    struct mrk_tile tile = tile_of(op, MRI_GRID_ALIGNED(a->dy, a->x, a->x2, dx, a->dx2));
    if (tile.width > NARROW) tile.width = NARROW;
    const struct mrk_scale_backward_args args = {
        .tile = tile, .n = a->n, .dy = a->dy, .x = a->x, .factor = a->x2, .dx = dx, .dfactor = a->dx2};
    return mri_cuda_launch_2d(s, MRK_scale_backward, a->n, mri_grid_tile_y(&tile), MRK_THREADS, 0, &args,
                              err);
}

const struct mri_cuda_code mri_cuda_scale = {.forward_text = "scale forward",
                                             .backward_text = "scale backward",
                                             .prepare = prepare,
                                             .forward = forward,
                                             .backward = backward};
