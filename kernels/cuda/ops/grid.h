/* kernels/cuda/ops/grid.h: how work is cut into blocks and threads for our own kernels: what args.h and
 * kernels/tile.h leave to the side that launches. Nothing here depends on anything but sizes, addresses and
 * the GPU's number of multiprocessors, so a call has the same grid, and with it the same bits, in every
 * run. */
#ifndef MRI_CUDA_GRID_H
#define MRI_CUDA_GRID_H

#include "kernels/cuda/ops/cuda_op.h"

#define MRI_GRID_MAX_BLOCKS 0x7FFFFFFFu
#define MRI_GRID_ROWS       4u /* rows of a tile per thread, at least, if it has enough */

/* ceil(items / each) blocks, 1 at least; beyond the limit of a grid, kernels loop. */
static inline uint32_t mri_grid_blocks(uint64_t items, uint32_t each)
{
    const uint64_t blocks = items / each + (items % each != 0);
    return blocks < 1 ? 1 : blocks > MRI_GRID_MAX_BLOCKS ? MRI_GRID_MAX_BLOCKS : (uint32_t)blocks;
}

/* Values of one pack. */
static inline uint32_t mri_grid_pack(uint32_t dtype)
{
    return MRK_PACK_BYTES / (uint32_t)mr_tensor_element_bytes(dtype);
}

/* May these tensors be read and written in packs? NULL may. */
static inline bool mri_grid_aligned(const void *const *tensors, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if ((uintptr_t)tensors[i] % MRK_PACK_BYTES) return false;
    return true;
}
#define MRI_GRID_ALIGNED(...)                                                                                \
    mri_grid_aligned((const void *const[]){__VA_ARGS__},                                                     \
                     sizeof((const void *const[]){__VA_ARGS__}) / sizeof(void *))

/* The others take their time in arithmetic and come one value at a time (kernels/functions.h). */
static inline bool mri_grid_light(mr_activation a)
{
    return a == MR_ACT_NONE || a == MR_ACT_RELU || a == MR_ACT_LEAKY_RELU || a == MR_ACT_RELU6;
}

/* Blocks of MRK_THREADS for `count` values, flat. */
static inline uint32_t mri_grid_flat(uint64_t count, uint32_t dtype, bool vectors)
{
    return mri_grid_blocks(vectors ? count / mri_grid_pack(dtype) : count, MRK_THREADS);
}

static inline struct mrk_tile mri_grid_tile(uint64_t rows, uint32_t channels, uint32_t dtype, bool vectors)
{
    const uint32_t pack = vectors && channels % mri_grid_pack(dtype) == 0 ? mri_grid_pack(dtype) : 1,
                   packs = channels / pack;
    return (struct mrk_tile){rows, channels, packs < 32 ? packs : 32, dtype, pack > 1};
}

/* Blocks along y: all packs of channels. */
static inline uint32_t mri_grid_tile_y(const struct mrk_tile *t)
{
    const uint32_t packs = t->channels / (t->vectors ? mri_grid_pack(t->dtype) : 1);
    return (packs + t->width - 1) / t->width;
}

/* Blocks along x: enough to keep each multiprocessor busy with `each`, at most enough for the rows. Never
 * falls as rows grow. */
static inline uint32_t mri_grid_tile_x(const mri_cuda_device *dev, const struct mrk_tile *t, uint32_t each)
{
    const uint32_t full = dev->multiprocessors * each / mri_grid_tile_y(t);
    const uint32_t needed = mri_grid_blocks(t->rows, MRK_THREADS / t->width * MRI_GRID_ROWS);
    return needed < full ? needed : full > 0 ? full : 1;
}

/* The most blocks along x that rows of channels may be cut into, in whatever form they come. */
static inline uint32_t mri_grid_tile_max(const mri_cuda_device *dev, uint64_t rows, uint32_t channels,
                                         uint32_t each)
{
    const struct mrk_tile tiles[] = {mri_grid_tile(rows, channels, MR_TENSOR_F32, false),
                                     mri_grid_tile(rows, channels, MR_TENSOR_F32, true),
                                     mri_grid_tile(rows, channels, MR_TENSOR_BF16, true)};
    uint32_t most = 0;
    for (size_t i = 0; i < MRI_ARRAY_COUNT(tiles); i++) {
        const uint32_t x = mri_grid_tile_x(dev, &tiles[i], each);
        if (x > most) most = x;
    }
    return most;
}

/* Blocks of the kernels that add up the parts of all channels (MRK_FINISH_CHANNELS of kernels/tile.h
 * each). */
static inline uint32_t mri_grid_finish(uint32_t channels) { return mri_grid_blocks(channels, 8); }

/* Threads of a block that goes along one row of values: a power of two. */
static inline uint32_t mri_grid_row_threads(uint32_t values)
{
    return values <= 128 ? 32 : values <= 1024 ? 128 : MRK_THREADS;
}

static inline uint64_t mri_grid_elements(const mr_tensor *t, uint32_t n)
{
    return (uint64_t)t->h * t->w * t->c * n;
}

#endif
