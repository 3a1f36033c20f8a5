/* kernels/cuda/ops/op_dropout.c: MR_OP_DROPOUT on a GPU (kernels/dropout.cu): drops the elements that
 * ops/dropout.c drops. saved: a bit for each element, in groups of 128. */
#include <math.h>

#include "kernels/cuda/ops/grid.h"

#define GROUP   128u
#define DRAWERS 16u /* threads of a group */

static uint64_t elements_of(const mri_cuda_op *op) { return mri_grid_elements(&op->base.desc.in, 1); }
static uint64_t groups_of(const mri_cuda_op *op) { return (elements_of(op) + GROUP - 1) / GROUP; }

static int prepare(mri_cuda_op *op, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    if (groups_of(op) > UINT32_MAX / DRAWERS) /* Philox blocks are counted in 32 bits (ops/draws.h) */
        return mr_error_set(err, MR_EUNSUPPORTED, "dropout: %u x %u x %u values a sample; at most 2^35",
                            d->in.h, d->in.w, d->in.c);
    if (d->training) op->base.info.saved_bytes = groups_of(op) * DRAWERS * d->max_batch;
    return MR_OK;
}

struct cut {
    uint32_t groups, threads, per_sample, blocks;
};

static struct cut cut_of(const mri_cuda_op *op, uint32_t n)
{
    const uint32_t groups = (uint32_t)groups_of(op), drawers = groups * DRAWERS;
    const uint32_t threads = drawers >= MRK_THREADS ? MRK_THREADS : (uint32_t)mri_align_up(drawers, 32);
    const uint32_t per_sample = mri_grid_blocks(drawers, threads);
    return (struct cut){groups, threads, per_sample, mri_grid_blocks((uint64_t)n * per_sample, 1)};
}

static int forward(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    if (!a->training || !d->training)
        return mri_cuda_cast(s, elements_of(op) * a->n, d->in.dtype, a->y, d->in.dtype, a->x, err);
    const struct cut cut = cut_of(op, a->n);
    const struct mrk_dropout_args args = {.elements = elements_of(op),
                                          .n = a->n,
                                          .groups = cut.groups,
                                          .blocks_per_sample = cut.per_sample,
                                          .dtype = d->in.dtype,
                                          .threshold = (uint32_t)lrintf(d->dropout.rate * 65536.0f),
                                          .first = a->first,
                                          .scale = 1.0f / (1.0f - d->dropout.rate),
                                          .key = mri_mix64(mri_mix64(a->seed) + d->dropout.op_id),
                                          .x = a->x,
                                          .y = a->y,
                                          .kept = a->saved,
                                          .values = a->values};
    return mri_cuda_launch(s, MRK_dropout, cut.blocks, cut.threads, 0, &args, err);
}

static int backward(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    if (!d->need_dx) return MR_OK;
    const struct cut cut = cut_of(op, a->n);
    const struct mrk_dropout_backward_args args = {.elements = elements_of(op),
                                                   .n = a->n,
                                                   .groups = cut.groups,
                                                   .blocks_per_sample = cut.per_sample,
                                                   .dtype = d->in.dtype,
                                                   .scale = 1.0f / (1.0f - d->dropout.rate),
                                                   .dy = a->dy,
                                                   .dy2 = a->dy2,
                                                   .dx = a->dx,
                                                   .kept = a->saved};
    return mri_cuda_launch(s, MRK_dropout_backward, cut.blocks, cut.threads, 0, &args, err);
}

const struct mri_cuda_code mri_cuda_dropout = {.forward_text = "dropout forward",
                                               .backward_text = "dropout backward",
                                               .prepare = prepare,
                                               .forward = forward,
                                               .backward = backward,
                                               .adds_dy2 = true};
