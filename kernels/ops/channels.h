/* kernels/ops/channels.h: copies channels of one tensor to channels of another, for operations that
 * concatenate channels. */
#ifndef MRI_CHANNELS_H
#define MRI_CHANNELS_H

#include "kernels/ops/host_op.h"

/* to[.., to_first + k] = from[.., from_first + k] for k < count, of n samples of as many pixels in the same
 * layout. The padding of a layout is left as it is. */
struct mri_channels {
    const mr_tensor *to, *from;
    uint32_t to_first, from_first, count;
};
void mri_copy_channels(const struct mri_channels *c, uint32_t n, float *to, const float *from);

#endif
