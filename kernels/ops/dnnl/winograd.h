/* kernels/ops/dnnl/winograd.h: 3 x 3 convolutions of stride 1 by Winograd's algorithm, and which passes of
 * which layers take it.
 *
 *   batch     [ tiles of 4 x 4 outputs, of all samples, one after another ]
 *   threads     a block of tiles each, whoever is free
 *
 * An output is a sum over channels in their order, a gradient of the weights one over tiles in rounds of a
 * number that the layer's shape gives. So a sample's result has the same bits in any batch, at any place of
 * it, with any number of threads and with either instruction set; gradients depend on the samples and their
 * order alone.
 *
 * Which pass takes it is a function of the layer's shape, so that the same layer takes the same in every run,
 * on every replica, in every slice of a batch. */
#ifndef MRI_WINOGRAD_H
#define MRI_WINOGRAD_H

#include "kernels/ops/dnnl/linear_dnnl.h"

struct mri_winograd_array {
    mr_tensor t;
    size_t step, floats; /* from pixel to pixel, and of a sample */
};

/* in to out, once more as it lies in memory. Backward to the input, in is dy and out dx. */
struct mri_winograd_pass {
    struct mri_winograd_array in, out;
    int32_t top, left;       /* padding */
    uint32_t tiles_y, tiles; /* rows of tiles, and all tiles, of a sample */
    uint32_t tiles_x;
    size_t block; /* tiles at a time */
    size_t chunk; /* backward to the weights: tiles that one thread sums; 0: all threads together, all tiles
                   */
    bool turned;  /* weights are stored [3][3][out][in], and are turned by 180 degrees */
    bool relu;
};

struct mri_winograd_tile {
    size_t sample;
    uint32_t y, x; /* its first output */
};

static inline struct mri_winograd_tile mri_winograd_tile_at(const struct mri_winograd_pass *p, size_t tile)
{
    const uint32_t inside = (uint32_t)(tile % p->tiles);
    return (struct mri_winograd_tile){
        .sample = tile / p->tiles, .y = inside / p->tiles_x * 4, .x = inside % p->tiles_x * 4};
}

static inline size_t mri_winograd_panels(size_t channels, size_t panel) { return (channels - 1) / panel + 1; }

/* From one point's share of a round of tiles to the next's: never a multiple of a power of two, for the 36
 * shares of a tile, written together, would then be in each other's way in the cache. */
static inline size_t mri_winograd_apart(const struct mri_winograd_pass *p, size_t channels)
{
    return p->block * channels + 16;
}

/* Makes a pass of a convolution, layouts chosen, one of these where it can be and the table says that it is
 * faster; or wherever it can be. */
void mri_winograd_take(struct mri_linear *l, enum mri_linear_pass pass, bool everywhere);

#endif
