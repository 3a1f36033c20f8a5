/* kernels/cuda/ops/op_dropout.c: MR_OP_DROPOUT on a GPU (kernels/dropout.cu): drops the elements that
 * ops/dropout.c drops. saved: a bit for each element, in groups of 128; or a byte for each sample. */
#include <math.h>

#include "kernels/cuda/ops/grid.h"

#define GROUP   128u
#define DRAWERS 16u /* threads of a group */

static uint64_t elements_of(const mri_cuda_op *op) { return mri_grid_elements(&op->base.desc.in, 1); }
static uint64_t groups_of(const mri_cuda_op *op) { return (elements_of(op) + GROUP - 1) / GROUP; }

static int prepare(mri_cuda_op *op, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    if (d->dropout.whole_samples) {
        op->base.info.saved_bytes = d->training ? d->max_batch : 0;
        return MR_OK;
    }
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

static uint32_t threshold_of(float rate) { return (uint32_t)lrintf(rate * 65536.0f); }
static uint64_t key_of(const mri_cuda_op *op, const mr_op_args *a)
{
    return mri_mix64(mri_mix64(a->seed) + op->base.desc.dropout.op_id);
}

/* ---- whole samples ---- */

#define PACKS_EACH 4u /* packs per thread, where a sample has enough */

static uint32_t parts_of(uint64_t elements, uint32_t dtype, bool vectors)
{
    return mri_grid_blocks(vectors ? elements / mri_grid_pack(dtype) : elements, MRK_THREADS * PACKS_EACH);
}

static bool in_packs(const mri_cuda_op *op, bool aligned)
{
    return aligned && elements_of(op) % mri_grid_pack(op->base.desc.in.dtype) == 0;
}

static int drop_samples(const mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    const bool vectors = in_packs(op, MRI_GRID_ALIGNED(a->x, a->y));
    const struct mrk_drop_samples_args args = {.elements = elements_of(op),
                                               .n = a->n,
                                               .parts = parts_of(elements_of(op), d->in.dtype, vectors),
                                               .dtype = d->in.dtype,
                                               .vectors = vectors,
                                               .threshold = threshold_of(d->dropout.rate),
                                               .first = a->first,
                                               .scale = 1.0f / (1.0f - d->dropout.rate),
                                               .key = key_of(op, a),
                                               .x = a->x,
                                               .y = a->y,
                                               .kept = a->saved,
                                               .values = a->values};
    return mri_cuda_launch(s, MRK_drop_samples, mri_grid_blocks((uint64_t)a->n * args.parts, 1), MRK_THREADS,
                           0, &args, err);
}

static int drop_samples_backward(const mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a,
                                 mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    const bool vectors = in_packs(op, MRI_GRID_ALIGNED(a->dy, a->dy2, a->dx));
    const struct mrk_drop_samples_backward_args args = {.elements = elements_of(op),
                                                        .n = a->n,
                                                        .parts =
                                                            parts_of(elements_of(op), d->in.dtype, vectors),
                                                        .dtype = d->in.dtype,
                                                        .vectors = vectors,
                                                        .scale = 1.0f / (1.0f - d->dropout.rate),
                                                        .dy = a->dy,
                                                        .dy2 = a->dy2,
                                                        .dx = a->dx,
                                                        .kept = a->saved};
    return mri_cuda_launch(s, MRK_drop_samples_backward, mri_grid_blocks((uint64_t)a->n * args.parts, 1),
                           MRK_THREADS, 0, &args, err);
}

/* ---- both ---- */

static int forward(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    if (!a->training || !d->training)
        return mri_cuda_cast(s, elements_of(op) * a->n, d->in.dtype, a->y, d->in.dtype, a->x, err);
    if (d->dropout.whole_samples) return drop_samples(op, s, a, err);
    const struct cut cut = cut_of(op, a->n);
    const struct mrk_dropout_args args = {.elements = elements_of(op),
                                          .n = a->n,
                                          .groups = cut.groups,
                                          .blocks_per_sample = cut.per_sample,
                                          .dtype = d->in.dtype,
                                          .threshold = threshold_of(d->dropout.rate),
                                          .first = a->first,
                                          .scale = 1.0f / (1.0f - d->dropout.rate),
                                          .key = key_of(op, a),
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
    if (d->dropout.whole_samples) return drop_samples_backward(op, s, a, err);
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
