/* kernels/cuda/ops/op_groupnorm.c: MR_OP_GROUPNORM on a GPU (kernels/norm.cu). Specification:
 * ops/groupnorm.c; sums run in another order. saved: mean and 1 / deviation of each set. */
#include "kernels/cuda/ops/grid.h"

static uint32_t groups_of(const mr_op_desc *d) { return d->groupnorm.groups ? d->groupnorm.groups : 1; }

/* Of a sample. */
static uint64_t sets_of(const mr_op_desc *d)
{
    return groups_of(d) * (d->groupnorm.each_pixel ? (uint64_t)d->in.h * d->in.w : 1);
}

static int prepare(mri_cuda_op *op, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    op->base.info.saved_bytes = 2 * sizeof(float) * sets_of(d) * d->max_batch;
    if (sets_of(d) * d->max_batch <= MRI_GRID_MAX_BLOCKS) return MR_OK;
    return mr_error_set(err, MR_EUNSUPPORTED,
                        "groupnorm: %llu groups of values in a batch; on a GPU at most %u",
                        (unsigned long long)(sets_of(d) * d->max_batch), MRI_GRID_MAX_BLOCKS);
}

static struct mrk_sets describe_sets(const mr_op_desc *d, uint32_t n)
{
    return (struct mrk_sets){.pixels = (uint64_t)d->in.h * d->in.w,
                             .n = n,
                             .channels = d->in.c,
                             .groups = groups_of(d),
                             .each_pixel = d->groupnorm.each_pixel,
                             .dtype = d->in.dtype};
}

/* Of a block: a power of two. */
static uint32_t threads_for(uint64_t values) { return values <= 128 ? 32 : MRK_THREADS; }

static uint32_t threads_of_set(const mr_op_desc *d)
{
    const uint64_t pixels = d->groupnorm.each_pixel ? 1 : (uint64_t)d->in.h * d->in.w;
    return threads_for(pixels * (d->in.c / groups_of(d)));
}

static int forward(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    const struct mrk_groupnorm_args args = {.sets = describe_sets(d, a->n),
                                            .epsilon = d->groupnorm.epsilon,
                                            .x = a->x,
                                            .y = a->y,
                                            .scale = a->param[0],
                                            .shift = a->param[1],
                                            .saved = a->saved};
    return mri_cuda_launch(s, MRK_groupnorm, (uint32_t)(a->n * sets_of(d)), threads_of_set(d), 0, &args, err);
}

static int backward(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    const struct mrk_groupnorm_params_args params = {.sets = describe_sets(d, a->n),
                                                     .x = a->x,
                                                     .dy = a->dy,
                                                     .saved = a->saved,
                                                     .dscale = a->dparam[0],
                                                     .dshift = a->dparam[1]};
    const uint64_t rows = params.sets.pixels * a->n;
    const int rc = mri_cuda_launch(s, MRK_groupnorm_params, d->in.c, threads_for(rows), 0, &params, err);
    if (rc || !d->need_dx) return rc;
    const struct mrk_groupnorm_backward_args args = {
        .sets = params.sets, .x = a->x, .dy = a->dy, .dx = a->dx, .scale = a->param[0], .saved = a->saved};
    return mri_cuda_launch(s, MRK_groupnorm_backward, (uint32_t)(a->n * sets_of(d)), threads_of_set(d), 0,
                           &args, err);
}

const struct mri_cuda_code mri_cuda_groupnorm = {.forward_text = "groupnorm forward",
                                                 .backward_text = "groupnorm backward",
                                                 .prepare = prepare,
                                                 .forward = forward,
                                                 .backward = backward};
