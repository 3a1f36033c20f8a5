/* kernels/cuda/ops/op_sample.c: MR_OP_SAMPLE on a GPU (kernels/sample.cu): the draws of ops/sample.c, but for
 * the last bits of logarithm, sine and cosine. */
#include "kernels/cuda/ops/grid.h"

static uint64_t elements_of(const mri_cuda_op *op) { return mri_grid_elements(&op->base.desc.in, 1); }

static float factor_of(const mri_cuda_op *op)
{
    const float factor = op->base.desc.sample.factor;
    return factor > 0 ? factor : 0.5f;
}

static uint64_t key_of(const mri_cuda_op *op, const mr_op_args *a)
{
    return mri_mix64(mri_mix64(a->seed) + op->base.desc.sample.op_id);
}

static uint32_t blocks_for(const mri_cuda_op *op, uint32_t n)
{
    return mri_grid_blocks(n * ((elements_of(op) + 3) / 4), MRK_THREADS);
}

static int forward(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err)
{
    const struct mrk_sample_args args = {.elements = elements_of(op),
                                         .n = a->n,
                                         .dtype = op->base.desc.in.dtype,
                                         .first = a->first,
                                         .factor = factor_of(op),
                                         .key = key_of(op, a),
                                         .x = a->x,
                                         .x2 = a->x2,
                                         .y = a->y,
                                         .values = a->values};
    return mri_cuda_launch(s, MRK_sample, blocks_for(op, a->n), MRK_THREADS, 0, &args, err);
}

static int backward(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    const struct mrk_sample_backward_args args = {.elements = elements_of(op),
                                                  .n = a->n,
                                                  .dtype = d->in.dtype,
                                                  .first = a->first,
                                                  .factor = factor_of(op),
                                                  .key = key_of(op, a),
                                                  .dy = a->dy,
                                                  .x2 = a->x2,
                                                  .dx2 = a->dx2,
                                                  .values = a->values};
    int rc = MR_OK;
    if (d->need_dx && a->dx != a->dy)
        rc = mri_cuda_cast(s, elements_of(op) * a->n, d->in.dtype, a->dx, d->in.dtype, a->dy, err);
    if (rc || !a->dx2) return rc;
    return mri_cuda_launch(s, MRK_sample_backward, blocks_for(op, a->n), MRK_THREADS, 0, &args, err);
}

const struct mri_cuda_code mri_cuda_sample = {.forward_text = "sample forward",
                                              .backward_text = "sample backward",
                                              .forward = forward,
                                              .backward = backward};
