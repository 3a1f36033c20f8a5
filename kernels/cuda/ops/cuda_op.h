/* kernels/cuda/ops/cuda_op.h: the room of operations on a GPU: one file op_NAME.c each with its row, struct
 * mri_cuda_code; cuda_op.c creates and queues them.
 *
 * Takes descriptions of operations that the public calls have checked, and addresses in device memory. Gives
 * the backend's table of operations. Caller: cuda.c. It stands on cuda/host/ and cuda/plan/. */
#ifndef MRI_CUDA_OP_H
#define MRI_CUDA_OP_H

#include "kernels/backend/op_class.h"
#include "kernels/cuda/host/gpu.h"

typedef struct mri_cuda_op mri_cuda_op;

/* As struct mri_op_code of the host kinds, except that forward and backward queue. Every tensor is NHWC
 * (INPUT may be asked for NCHW) and every parameter canonical: import and export are copies. */
struct mri_cuda_code {
    const char *forward_text, *backward_text; /* "conv2d forward": the queued call, for error messages */
    /* Settles saved_bytes, scratch_bytes, own; leaves nothing when it fails. NULL: nothing to settle. */
    int (*prepare)(mri_cuda_op *op, mr_error *err);
    void (*release)(mri_cuda_op *op); /* NULL: nothing to release */
    int (*forward)(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err);
    /* NULL: of entries. dy2 was already added, unless adds_dy2 says that this does so itself. */
    int (*backward)(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err);
    bool adds_dy2;
};

struct mri_cuda_op {
    mr_op base;
    const struct mri_cuda_code *code;
    void *own;
};

/* The row of a kind; NULL: this device does not have it. */
const struct mri_cuda_code *mri_cuda_code_of(mr_op_kind kind);

#define MRI_CUDA_DECLARE_ON_CUDA(name) extern const struct mri_cuda_code mri_cuda_##name;
#define MRI_CUDA_DECLARE_NOT_ON_CUDA(name)
#define MRI_CUDA_DECLARE(kind, name, on_cuda) MRI_CUDA_DECLARE_##on_cuda(name)
MRI_OP_CLASSES(MRI_CUDA_DECLARE)
#undef MRI_CUDA_DECLARE
#undef MRI_CUDA_DECLARE_ON_CUDA
#undef MRI_CUDA_DECLARE_NOT_ON_CUDA

/* For struct mri_backend. */
extern const struct mri_op_calls mri_cuda_ops;
int mri_cuda_update_async(mr_stream *s, const mr_update_config *cfg);
uint64_t mri_cuda_update_room(const mr_device *dev, const mr_update_matrix *m, uint64_t stored);
int mri_cuda_average_async(mr_stream *s, float *average, const float *from, uint64_t count, float decay);
int mri_cuda_add_async(mr_stream *s, float *to, const float *from, uint64_t count);

/* Pieces several operations share (op_elements.c), queued on s:
 * values of one type into another; a += b; y = act(y + bias) over rows of `channels`; dy *= act'(y) and dbias
 * = column sums of dy (dbias may be NULL; partial: scratch of mri_cuda_bias_scratch() bytes). dtype is of the
 * tensors; bias and dbias are f32. */
int mri_cuda_cast(mri_cuda_stream *s, uint64_t count, uint32_t to, void *dst, uint32_t from, const void *src,
                  mr_error *err);
int mri_cuda_accumulate(mri_cuda_stream *s, uint64_t count, uint32_t dtype, void *a, const void *b,
                        mr_error *err);
/* y = act(x + x2) on n samples; x2 may be NULL. */
int mri_cuda_activate(mri_cuda_stream *s, const mr_op_desc *d, uint32_t n, const void *x, const void *x2,
                      void *y, mr_error *err);
/* out and out2, each where it is not NULL: (dy + dy2) * act'(y). */
int mri_cuda_activate_backward(mri_cuda_stream *s, const mr_op_desc *d, const mr_op_args *a, void *out,
                               void *out2, mr_error *err);
int mri_cuda_bias_activate(mri_cuda_stream *s, uint64_t rows, uint32_t channels, uint32_t dtype, void *y,
                           const float *bias, mr_activation activation, mr_error *err);
int mri_cuda_bias_backward(mri_cuda_stream *s, uint64_t rows, uint32_t channels, uint32_t dtype,
                           const void *y, void *dy, float *dbias, void *partial, mr_activation activation,
                           mr_error *err);
size_t mri_cuda_bias_scratch(const mri_cuda_device *dev, uint64_t rows, uint32_t channels);

static inline cudaDataType mri_cuda_type(uint32_t dtype) /* of cuBLAS */
{
    return dtype == MR_TENSOR_BF16 ? CUDA_R_16BF : dtype == MR_TENSOR_F16 ? CUDA_R_16F : CUDA_R_32F;
}

#endif
