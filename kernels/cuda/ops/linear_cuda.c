/* kernels/cuda/ops/linear_cuda.c: see linear_cuda.h. */
#include "kernels/cuda/ops/linear_cuda.h"

static uint64_t rows(const mri_cuda_op *op, uint32_t n)
{
    return (uint64_t)n * op->base.info.out.h * op->base.info.out.w;
}

void mri_cuda_linear_lay_out(mri_cuda_op *op, struct mri_cuda_linear *l)
{
    const mr_op_desc *d = &op->base.desc;
    mr_op_info *info = &op->base.info;
    const mri_cuda_device *dev = mri_cuda_device_of(op->base.device);
    const bool half = d->in.dtype != MR_TENSOR_F32;
    const size_t partial = d->training ? mri_cuda_bias_scratch(dev, rows(op, d->max_batch), info->out.c) : 0;
    l->has_bias = info->param_count > 1;
    l->weights_bytes = half ? (size_t)info->param[0].count * mr_tensor_element_bytes(d->in.dtype) : 0;
    l->partial_at = (size_t)mri_align_up(l->weights_bytes, MR_DEVICE_ALIGN);
    l->end = l->partial_at + partial;
    info->scratch_bytes = l->end;
    info->saved_bytes = d->training && d->need_dx ? l->weights_bytes : 0;
}

int mri_cuda_linear_weights(const mri_cuda_op *op, const struct mri_cuda_linear *l, mri_cuda_stream *s,
                            const mr_op_args *a, const void **out, mr_error *err)
{
    void *const copy = op->base.info.saved_bytes ? a->saved : a->scratch;
    *out = l->weights_bytes ? copy : (const void *)a->param[0];
    if (!l->weights_bytes) return MR_OK;
    return mri_cuda_cast(s, op->base.info.param[0].count, op->base.desc.in.dtype, copy, MR_TENSOR_F32,
                         a->param[0], err);
}

static bool only_product(const mri_cuda_op *op, const struct mri_cuda_linear *l)
{
    return !l->has_bias && op->base.desc.activation == MR_ACT_NONE;
}

int mri_cuda_linear_finish(const mri_cuda_op *op, const struct mri_cuda_linear *l, mri_cuda_stream *s,
                           const mr_op_args *a, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    if (only_product(op, l)) return MR_OK;
    return mri_cuda_bias_activate(s, rows(op, a->n), op->base.info.out.c, d->in.dtype, a->y,
                                  l->has_bias ? a->param[1] : NULL, d->activation, err);
}

int mri_cuda_linear_begin_backward(const mri_cuda_op *op, const struct mri_cuda_linear *l, mri_cuda_stream *s,
                                   const mr_op_args *a, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    if (only_product(op, l)) return MR_OK;
    return mri_cuda_bias_backward(s, rows(op, a->n), op->base.info.out.c, d->in.dtype, a->y, a->dy,
                                  l->has_bias ? a->dparam[1] : NULL,
                                  (unsigned char *)a->scratch + l->partial_at, d->activation, err);
}

int mri_cuda_multiply(mri_cuda_stream *s, int m, int n, int k, struct mri_cuda_matrix a,
                      struct mri_cuda_matrix b, struct mri_cuda_matrix c, const char *what, mr_error *err)
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
