/* kernels/cuda/ops/op_gru.c: MR_OP_GRU on a GPU (recurrent_cuda.c, kernels/recurrent.cu). Specification:
 * ops/gru.c. */
#include "kernels/cuda/ops/recurrent_cuda.h"

const struct mri_cuda_code mri_cuda_gru = {.forward_text = "gru forward",
                                           .backward_text = "gru backward",
                                           .prepare = mri_cuda_recurrent_prepare,
                                           .release = mri_cuda_recurrent_release,
                                           .forward = mri_cuda_recurrent_forward,
                                           .backward = mri_cuda_recurrent_backward};
