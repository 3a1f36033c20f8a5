/* kernels/ops/rows.h: the channels of one pixel as a row, whatever the layout: for operations that need
 * neighbouring channels together. */
#ifndef MRI_ROWS_H
#define MRI_ROWS_H

#include "kernels/ops/host_op.h"

/* Channels [from, from + count) of a pixel of a sample to row, and back. */
static inline void mri_take_row(const mr_tensor *t, const float *sample, size_t pixel, uint32_t from,
                                uint32_t count, float *row)
{
    const uint32_t block = mri_layout_block(t);
    for (uint32_t c = from, left = count, run; left > 0; c += run, row += run, left -= run) {
        run = block - c % block < left ? block - c % block : left;
        memcpy(row, sample + mri_tensor_index(t, pixel, c), run * sizeof *row);
    }
}

static inline void mri_put_row(const mr_tensor *t, float *sample, size_t pixel, uint32_t from, uint32_t count,
                               const float *row)
{
    const uint32_t block = mri_layout_block(t);
    for (uint32_t c = from, left = count, run; left > 0; c += run, row += run, left -= run) {
        run = block - c % block < left ? block - c % block : left;
        memcpy(sample + mri_tensor_index(t, pixel, c), row, run * sizeof *row);
    }
}

#endif
