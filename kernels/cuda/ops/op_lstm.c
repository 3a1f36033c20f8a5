/* kernels/cuda/ops/op_lstm.c: MR_OP_LSTM on a GPU (recurrent_cuda.c, kernels/recurrent.cu). Specification:
 * ops/lstm.c. */
#include "kernels/cuda/ops/recurrent_cuda.h"

const struct mri_cuda_code mri_cuda_lstm = {.forward_text = "lstm forward",
                                            .backward_text = "lstm backward",
                                            .prepare = mri_cuda_recurrent_prepare,
                                            .release = mri_cuda_recurrent_release,
                                            .forward = mri_cuda_recurrent_forward,
                                            .backward = mri_cuda_recurrent_backward};
