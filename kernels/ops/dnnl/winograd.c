/* kernels/ops/dnnl/winograd.c: see winograd.h. */
#include "kernels/ops/dnnl/winograd.h"

#include "kernels/backend/op_class.h"

/* Outputs are computed in tiles of 4 x 4. Every block transforms its weights anew (forward, data) or their
 * gradient back (weights), which costs as much as some tens of tiles do: a block with few tiles loses what
 * the algorithm gains. A large one leaves cores without work when the batch is small, so the table has the
 * smallest that wins, and layers of many channels whose pictures have few tiles stay direct: there a block
 * that wins would be the whole batch. From bench/bench_conv.c; its output is bench/results/conv.json. */
#define TILE 4u

struct row {
    uint32_t channels;   /* in and out: at least */
    uint32_t full_tiles; /* outputs of a sample / 16: at least. Tiles at the edges compute what nobody wants
                          */
    uint16_t block_tiles[3]; /* by pass: a block has at least so many, edges included; 0: direct */
};

/* The first that fits. */
static const struct row table[] = {
    {512, 9, {64, 64, 64}},  {256, 9, {128, 128, 128}}, {128, 49, {192, 192, 192}}, {128, 9, {128, 128, 128}},
    {128, 0, {0, 0, 0}},     {64, 9, {256, 256, 256}},  {64, 4, {128, 128, 128}},   {32, 25, {512, 512, 512}},
    {32, 14, {256, 256, 0}}, {0, 0, {0, 0, 0}},
};
#define BLOCK_TILES 128u /* where the table says direct, to measure it */

uint32_t mri_winograd_samples(const mr_op_desc *d, const mr_tensor *out, enum mri_linear_pass pass,
                              bool everywhere)
{
    const mr_op_window *w = &d->conv2d.window;
    if (w->kernel_h != 3 || w->kernel_w != 3 || w->stride_h != 1 || w->stride_w != 1) return 0;
    if (mri_op_groups(d) > 1) return 0;
    if (d->in.c % 16 != 0 || out->c % 16 != 0)
        return 0; /* blocks of channels with padding were not measured */
    const uint64_t tiles = (uint64_t)((out->h - 1) / TILE + 1) * ((out->w - 1) / TILE + 1);
    const uint64_t full = (uint64_t)out->h * out->w / (TILE * TILE);
    const uint32_t channels = d->in.c < out->c ? d->in.c : out->c;
    const struct row *r = table;
    while (channels < r->channels || full < r->full_tiles) r++;
    uint32_t least = r->block_tiles[pass], samples = 1;
    if (least == 0 && !everywhere) return 0;
    if (least == 0) least = BLOCK_TILES;
    while (samples * tiles < least) samples *= 2;
    return samples;
}
