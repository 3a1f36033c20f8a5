/* kernels/cuda/ops/recurrent_cuda.h: code shared by the recurrent operations on a GPU; see
 * recurrent_cuda.c. */
#ifndef MRI_RECURRENT_CUDA_H
#define MRI_RECURRENT_CUDA_H

#include "kernels/cuda/ops/cuda_op.h"

/* For struct mri_cuda_code. */
int mri_cuda_recurrent_prepare(mri_cuda_op *op, mr_error *err);
void mri_cuda_recurrent_release(mri_cuda_op *op);
int mri_cuda_recurrent_forward(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err);
int mri_cuda_recurrent_backward(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err);

#endif
