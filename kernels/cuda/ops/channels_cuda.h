/* kernels/cuda/ops/channels_cuda.h: copies channels of one tensor to channels of another, and its pictures
 * into a larger or smaller frame, on a GPU. */
#ifndef MRI_CHANNELS_CUDA_H
#define MRI_CHANNELS_CUDA_H

#include "kernels/cuda/ops/cuda_op.h"

/* In every row: to[to_first + k] = from[from_first + k - at] for at <= k < at + count, zero for other
 * k < width. Steps: channels of the tensors. */
struct mri_cuda_channels {
    uint32_t width, at, count;
    uint32_t to_first, from_first, to_step, from_step;
};

/* n samples, of the type and pixels of the operation's input. */
int mri_cuda_copy_channels(const mri_cuda_op *op, mri_cuda_stream *s, const struct mri_cuda_channels *c,
                           uint32_t n, void *to, const void *from, mr_error *err);

/* n pictures of `from` in the frames of `to`: what lies at (top, left) of `from` begins `to`, and what is
 * outside `from` is zero. Both have the type and the channels of from. */
int mri_cuda_reframe(mri_cuda_stream *s, uint32_t n, const mr_tensor *to_frame, void *to,
                     const mr_tensor *from_frame, const void *from, int32_t top, int32_t left, mr_error *err);

#endif
