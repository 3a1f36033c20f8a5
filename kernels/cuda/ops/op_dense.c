/* kernels/cuda/ops/op_dense.c: fully connected layers by cuBLAS, bias and activation by our own passes over
 * the output.
 *
 * cuBLAS counts matrices column by column, we row by row: what is [rows][columns] here is columns x rows
 * there, so with
 *     X = inputs x n     W = inputs x units     Y = units x n
 * the three products are
 *     forward   Y  = W' X          data gradient   dX = W dY          weight gradient   dW = X dY'
 *
 * Sums are float. f32 factors are rounded to TF32 only on a device that was opened with it. For half
 * precision tensors the weights are cast (kept in `saved` for the backward of the step) and dW is written in
 * f32 at once, which cuBLAS offers for every pair of half precision factors ("cublasGemmEx", table of types).
 *
 * The stream's handle brings its workspace and the rule that sums in half precision's stead stay float
 * (launch.c). Nothing here depends on the batch, so any n runs and records.
 *
 * Only a GPU can confirm: which kernels cuBLAS takes, so speed. */
#include <limits.h>

#include "kernels/cuda/ops/linear_cuda.h"

struct dense {
    int inputs, units;
    struct mri_cuda_linear linear;
};

static int prepare(mri_cuda_op *op, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    const uint64_t inputs = (uint64_t)d->in.h * d->in.w * d->in.c;
    if (inputs > INT_MAX)
        return mr_error_set(err, MR_EUNSUPPORTED, "dense: %llu inputs; cuBLAS counts to %d",
                            (unsigned long long)inputs, INT_MAX);
    struct dense *own = calloc(1, sizeof *own);
    if (!own) return mr_error_set(err, MR_ENOMEM, "dense: out of memory");
    own->inputs = (int)inputs;
    own->units = (int)d->dense.units;
    mri_cuda_linear_lay_out(op, &own->linear);
    op->own = own;
    return MR_OK;
}

static void release(mri_cuda_op *op) { free(op->own); }

static int forward(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err)
{
    const struct dense *own = op->own;
    const cudaDataType type = mri_cuda_type(op->base.desc.in.dtype);
    const void *weights;
    int rc = mri_cuda_linear_weights(op, &own->linear, s, a, &weights, err);
    if (!rc)
        rc = mri_cuda_multiply(s, own->units, (int)a->n, own->inputs,
                               (struct mri_cuda_matrix){weights, type, own->inputs, true},
                               (struct mri_cuda_matrix){a->x, type, own->inputs, false},
                               (struct mri_cuda_matrix){a->y, type, own->units, false}, "dense forward", err);
    return rc ? rc : mri_cuda_linear_finish(op, &own->linear, s, a, err);
}

static int backward(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    const struct dense *own = op->own;
    const cudaDataType type = mri_cuda_type(d->in.dtype);
    const struct mri_cuda_matrix dy = {a->dy, type, own->units, false},
                                 weights = {mri_cuda_linear_kept(&own->linear, a), type, own->inputs, false};
    int rc = mri_cuda_linear_begin_backward(op, &own->linear, s, a, err);
    if (!rc)
        rc = mri_cuda_multiply(s, own->inputs, own->units, (int)a->n,
                               (struct mri_cuda_matrix){a->x, type, own->inputs, false},
                               (struct mri_cuda_matrix){dy.at, type, own->units, true},
                               (struct mri_cuda_matrix){a->dparam[0], CUDA_R_32F, own->inputs, false},
                               "dense weight gradient", err);
    if (rc || !d->need_dx) return rc;
    return mri_cuda_multiply(s, own->inputs, (int)a->n, own->units, weights, dy,
                             (struct mri_cuda_matrix){a->dx, type, own->inputs, false}, "dense data gradient",
                             err);
}

const struct mri_cuda_code mri_cuda_dense = {.forward_text = "dense forward",
                                             .backward_text = "dense backward",
                                             .prepare = prepare,
                                             .release = release,
                                             .forward = forward,
                                             .backward = backward};
