/* kernels/cuda/op_dense.c: fully connected layers by cuBLAS, bias and activation by our own passes over the
 * output.
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

#include "kernels/cuda/cuda.h"

struct dense {
    int inputs, units;
    size_t weights_bytes; /* of the cast copy; 0 for f32 */
    size_t partial_at;
};

static int check(const mri_cuda_op *op, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    const uint64_t inputs = (uint64_t)d->in.h * d->in.w * d->in.c;
    if (d->in.layout != MR_LAYOUT_NHWC)
        return mr_error_set(err, MR_EUNSUPPORTED, "dense: cuda takes NHWC only, found layout %u",
                            d->in.layout);
    if (d->in.dtype != MR_TENSOR_F32 && d->in.dtype != MR_TENSOR_BF16 && d->in.dtype != MR_TENSOR_F16)
        return mr_error_set(err, MR_EUNSUPPORTED, "dense: cuda takes f32, bf16 and f16, found type %u",
                            d->in.dtype);
    if (inputs > INT_MAX)
        return mr_error_set(err, MR_EUNSUPPORTED, "dense: %llu inputs; cuBLAS counts to %d",
                            (unsigned long long)inputs, INT_MAX);
    return MR_OK;
}

static int prepare(mri_cuda_op *op, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    const mri_cuda_device *dev = mri_cuda_device_of(op->base.device);
    const int rc = check(op, err);
    if (rc) return rc;
    struct dense *own = calloc(1, sizeof *own);
    if (!own) return mr_error_set(err, MR_ENOMEM, "dense: out of memory");
    own->inputs = (int)((uint64_t)d->in.h * d->in.w * d->in.c);
    own->units = (int)d->filters;
    if (d->in.dtype != MR_TENSOR_F32)
        own->weights_bytes = (size_t)op->base.info.param[0].count * mr_tensor_element_bytes(d->in.dtype);
    own->partial_at = (size_t)mri_align_up(own->weights_bytes, MR_DEVICE_ALIGN);
    const size_t partial = d->training ? mri_cuda_bias_scratch(dev, d->max_batch, d->filters) : 0;
    op->base.info.scratch_bytes = own->partial_at + partial;
    op->base.info.saved_bytes = d->training && d->need_dx ? own->weights_bytes : 0;
    op->own = own;
    return MR_OK;
}

static void release(mri_cuda_op *op) { free(op->own); }

/* A factor or the product: where, its type, its leading dimension; transposed before it is used or not. */
struct matrix {
    const void *at;
    cudaDataType type;
    int leading;
    bool transposed;
};

/* c (m x n) = a (m x k) b (k x n) */
static int multiply(mri_cuda_stream *s, int m, int n, int k, struct matrix a, struct matrix b,
                    struct matrix c, const char *what, mr_error *err)
{
    mri_cuda_device *dev = mri_cuda_of_stream(s);
    const float one = 1, zero = 0;
    const bool fast = dev->tf32 && a.type == CUDA_R_32F;
    cublasHandle_t handle;
    const int rc = mri_cuda_cublas(s, &handle, err);
    if (rc) return rc;
    return mri_cuda_check_cublas(
        dev,
        dev->api->cublasGemmEx(handle, a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                               b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N, m, n, k, &one, a.at, a.type,
                               a.leading, b.at, b.type, b.leading, &zero, (void *)c.at, c.type, c.leading,
                               fast ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
        what, err);
}

static int forward(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    const struct dense *own = op->own;
    const cudaDataType type = mri_cuda_type(d->in.dtype);
    const void *weights = a->param[0];
    int rc = MR_OK;
    if (own->weights_bytes) {
        void *copy = op->base.info.saved_bytes ? a->saved : a->scratch;
        rc = mri_cuda_cast(s, op->base.info.param[0].count, d->in.dtype, copy, MR_TENSOR_F32, weights, err);
        weights = copy;
    }
    if (!rc)
        rc =
            multiply(s, own->units, (int)a->n, own->inputs, (struct matrix){weights, type, own->inputs, true},
                     (struct matrix){a->x, type, own->inputs, false},
                     (struct matrix){a->y, type, own->units, false}, "dense forward", err);
    if (rc || (d->no_bias && d->activation == MR_ACT_NONE)) return rc;
    return mri_cuda_bias_activate(s, a->n, d->filters, d->in.dtype, a->y, d->no_bias ? NULL : a->param[1],
                                  d->activation, err);
}

static int backward(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    const struct dense *own = op->own;
    const cudaDataType type = mri_cuda_type(d->in.dtype);
    const struct matrix dy = {a->dy, type, own->units, false};
    int rc = MR_OK;
    if (!(d->no_bias && d->activation == MR_ACT_NONE))
        rc = mri_cuda_bias_backward(s, a->n, d->filters, d->in.dtype, a->y, a->dy,
                                    d->no_bias ? NULL : a->dparam[1],
                                    (unsigned char *)a->scratch + own->partial_at, d->activation, err);
    if (!rc)
        rc = multiply(s, own->inputs, own->units, (int)a->n, (struct matrix){a->x, type, own->inputs, false},
                      (struct matrix){dy.at, type, own->units, true},
                      (struct matrix){a->dparam[0], CUDA_R_32F, own->inputs, false}, "dense weight gradient",
                      err);
    if (rc || !d->need_dx) return rc;
    return multiply(
        s, own->inputs, (int)a->n, own->units,
        (struct matrix){own->weights_bytes ? a->saved : (const void *)a->param[0], type, own->inputs, false},
        dy, (struct matrix){a->dx, type, own->inputs, false}, "dense data gradient", err);
}

const struct mri_cuda_code mri_cuda_dense = {
    .prepare = prepare, .release = release, .forward = forward, .backward = backward};
