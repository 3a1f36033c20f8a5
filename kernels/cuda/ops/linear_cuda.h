/* kernels/cuda/ops/linear_cuda.h: code shared by operations with weights: products by cuBLAS; for convolution
 * and dense also weights in the type of x, and the bias and activation after the product.
 *
 * With f32 tensors the libraries read the weights themselves. With half precision ones every forward casts
 * them anew, because the update changes them, and keeps the copy in `saved` for the backward of the same
 * step.
 *
 *   scratch   | weights in their type | partial sums of dbias | the operation's own, from `end` |        */
#ifndef MRI_LINEAR_CUDA_H
#define MRI_LINEAR_CUDA_H

#include "kernels/cuda/ops/cuda_op.h"

struct mri_cuda_linear {
    size_t weights_bytes; /* of the cast copy; 0 for f32 */
    size_t partial_at, end;
    bool has_bias;
};

/* A factor or the product: where, its type, its leading dimension; transposed before it is used or not. */
struct mri_cuda_matrix {
    const void *at;
    cudaDataType type;
    int leading;
    bool transposed;
};

/* c (m x n) = a (m x k) b (k x n), column by column, as cuBLAS counts. Sums are float; f32 factors are
 * rounded to TF32 only on a device that was opened with it. */
int mri_cuda_multiply(mri_cuda_stream *s, int m, int n, int k, struct mri_cuda_matrix a,
                      struct mri_cuda_matrix b, struct mri_cuda_matrix c, const char *what, mr_error *err);

/* Fill *l, and the op's saved_bytes and scratch_bytes, the latter with what lies before `end`. */
void mri_cuda_linear_lay_out(mri_cuda_op *op, struct mri_cuda_linear *l);
/* Forward's weights in the type of x. */
int mri_cuda_linear_weights(const mri_cuda_op *op, const struct mri_cuda_linear *l, mri_cuda_stream *s,
                            const mr_op_args *a, const void **out, mr_error *err);
/* The same ones in backward, where need_dx. */
static inline const void *mri_cuda_linear_kept(const struct mri_cuda_linear *l, const mr_op_args *a)
{
    return l->weights_bytes ? a->saved : (const void *)a->param[0];
}
/* y = act(y + bias) */
int mri_cuda_linear_finish(const mri_cuda_op *op, const struct mri_cuda_linear *l, mri_cuda_stream *s,
                           const mr_op_args *a, mr_error *err);
/* dy *= act'(y), dbias = column sums of dy */
int mri_cuda_linear_begin_backward(const mri_cuda_op *op, const struct mri_cuda_linear *l, mri_cuda_stream *s,
                                   const mr_op_args *a, mr_error *err);

#endif
