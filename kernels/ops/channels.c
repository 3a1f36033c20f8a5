/* kernels/ops/channels.c: see channels.h.
 *
 *   NHWC     a pixel's channels are one row: row by row
 *   blocks   planes of 8 or 16 channels each: plane by plane where both sides begin with a block and end with
 *            one, else channel by channel */
#include "kernels/ops/channels.h"

#include "kernels/host/simd_loop.h"

/* Channels that lie together in memory, from this one on, on both sides. */
static uint32_t run_of(const struct mri_channels *c, uint32_t at)
{
    const uint32_t to_block = mri_layout_block(c->to), to_left = to_block - (c->to_first + at) % to_block,
                   from_block = mri_layout_block(c->from),
                   from_left = from_block - (c->from_first + at) % from_block, left = c->count - at;
    const uint32_t run = to_left < from_left ? to_left : from_left;
    return run < left ? run : left;
}

static void copy_run(const struct mri_channels *c, uint32_t at, uint32_t run, float *to, const float *from)
{
    const size_t pixels = (size_t)c->to->h * c->to->w, to_step = mri_layout_block(c->to),
                 from_step = mri_layout_block(c->from);
    to += mri_tensor_index(c->to, 0, c->to_first + at);
    from += mri_tensor_index(c->from, 0, c->from_first + at);
    if (run == to_step && run == from_step) {
        memcpy(to, from, pixels * run * sizeof *to);
        return;
    }
    for (size_t p = 0; p < pixels; p++) memcpy(to + p * to_step, from + p * from_step, run * sizeof *to);
}

void mri_copy_channels(const struct mri_channels *c, uint32_t n, float *to, const float *from)
{
    const size_t to_floats = mri_tensor_floats(c->to), from_floats = mri_tensor_floats(c->from);
#pragma omp parallel for schedule(static) if (n * to_floats > MRI_PARALLEL_ELEMENTS)
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t at = 0, run; at < c->count; at += run) {
            run = run_of(c, at);
            copy_run(c, at, run, to + i * to_floats, from + i * from_floats);
        }
}
