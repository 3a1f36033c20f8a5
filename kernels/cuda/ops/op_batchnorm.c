/* kernels/cuda/ops/op_batchnorm.c: MR_OP_BATCHNORM on a GPU (kernels/batchnorm.cu). Specification:
 * ops/batchnorm.c.
 *
 *     saved    mean[c], inverse[c], k[c], d[c]: y = act(x * k + d + x2)
 *     scratch  partial[blocks][2][c], then three coefficients a channel
 *
 * Who writes the gradient back to dy: a second input needs it there; a second gradient, and an activation
 * whose slope needs y, are then read once. Both passes of backward evaluate a ReLU alone from x, which costs
 * no extra memory traffic. */
#include "kernels/cuda/ops/grid.h"

#define STATISTICS_EACH 4u /* blocks on a multiprocessor, as the kernels' registers allow */
#define SUMS_EACH       2u
#define APPLY_EACH      8u
#define DX_EACH         6u

static uint64_t rows_of(const mri_cuda_op *op, uint32_t n)
{
    return (uint64_t)op->base.desc.in.h * op->base.desc.in.w * n;
}

static uint64_t partial_floats(const mri_cuda_op *op)
{
    const mri_cuda_device *dev = mri_cuda_device_of(op->base.device);
    const mr_op_desc *d = &op->base.desc;
    return (uint64_t)mri_grid_tile_max(dev, rows_of(op, d->max_batch), d->in.c, STATISTICS_EACH) * 2 *
           d->in.c;
}

static int prepare(mri_cuda_op *op, mr_error *err)
{
    (void)err;
    const uint32_t channels = op->base.desc.in.c;
    op->base.info.saved_bytes = 4 * (size_t)channels * sizeof(float);
    op->base.info.scratch_bytes = (partial_floats(op) + 3 * (uint64_t)channels) * sizeof(float);
    return MR_OK;
}

static float *coefficients_of(const mri_cuda_op *op, const mr_op_args *a)
{
    return (float *)a->scratch + partial_floats(op);
}

static uint32_t shift_at(const mri_cuda_op *op) { return op->base.desc.batchnorm.no_scale ? 0 : 1; }

/* NULL: all 1 */
static const float *scale_of(const mri_cuda_op *op, const mr_op_args *a)
{
    return op->base.desc.batchnorm.no_scale ? NULL : a->param[0];
}

static int launch(mri_cuda_stream *s, enum mrk_kernel kernel, const struct mrk_tile *tile, uint32_t blocks,
                  const void *args, mr_error *err)
{
    return mri_cuda_launch_2d(s, kernel, blocks, mri_grid_tile_y(tile), MRK_THREADS, 0, args, err);
}

static int take_statistics(const mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    const struct mrk_tile tile =
        mri_grid_tile(rows_of(op, a->n), d->in.c, d->in.dtype, MRI_GRID_ALIGNED(a->x));
    const uint32_t parts = mri_grid_tile_x(mri_cuda_of_stream(s), &tile, STATISTICS_EACH);
    const struct mrk_batchnorm_statistics_args statistics = {.tile = tile, .x = a->x, .partial = a->scratch};
    const int rc = launch(s, MRK_batchnorm_statistics, &tile, parts, &statistics, err);
    if (rc) return rc;
    const struct mrk_batchnorm_finish_args finish = {.tile = tile,
                                                     .parts = parts,
                                                     .momentum = d->batchnorm.momentum,
                                                     .epsilon = d->batchnorm.epsilon,
                                                     .partial = a->scratch,
                                                     .scale = scale_of(op, a),
                                                     .shift = a->param[shift_at(op)],
                                                     .mean = a->state[0],
                                                     .variance = a->state[1],
                                                     .saved = a->saved};
    return mri_cuda_launch(s, MRK_batchnorm_finish, mri_grid_finish(d->in.c), MRK_THREADS, 0, &finish, err);
}

static int take_running(const mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err)
{
    const uint32_t channels = op->base.desc.in.c;
    const struct mrk_batchnorm_running_args args = {.channels = channels,
                                                    .epsilon = op->base.desc.batchnorm.epsilon,
                                                    .scale = scale_of(op, a),
                                                    .shift = a->param[shift_at(op)],
                                                    .mean = a->state[0],
                                                    .variance = a->state[1],
                                                    .coefficients = coefficients_of(op, a)};
    return mri_cuda_launch(s, MRK_batchnorm_running, mri_grid_blocks(channels, MRK_THREADS), MRK_THREADS, 0,
                           &args, err);
}

static int forward(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    const void *x2 = d->batchnorm.residual ? a->x2 : NULL;
    const int rc = a->training ? take_statistics(op, s, a, err) : take_running(op, s, a, err);
    if (rc) return rc;
    const struct mrk_tile tile =
        mri_grid_tile(rows_of(op, a->n), d->in.c, d->in.dtype,
                      mri_grid_light(d->activation) && MRI_GRID_ALIGNED(a->x, x2, a->y));
    const struct mrk_batchnorm_apply_args apply = {
        .tile = tile,
        .activation = d->activation,
        .x = a->x,
        .x2 = x2,
        .y = a->y,
        .coefficients = a->training ? (float *)a->saved + 2 * (size_t)d->in.c : coefficients_of(op, a)};
    return launch(s, MRK_batchnorm_apply, &tile, mri_grid_tile_x(mri_cuda_of_stream(s), &tile, APPLY_EACH),
                  &apply, err);
}

static enum mrk_mask mask_of(const mr_op_desc *d)
{
    if (d->activation == MR_ACT_NONE) return MRK_MASK_NONE;
    return d->activation == MR_ACT_RELU && !d->batchnorm.residual ? MRK_MASK_OF_X : MRK_MASK_OF_Y;
}

static int sum_gradients(const mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, bool write,
                         mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    const enum mrk_mask mask = mask_of(d);
    const void *y = mask == MRK_MASK_OF_Y ? a->y : NULL;
    const struct mrk_tile tile =
        mri_grid_tile(rows_of(op, a->n), d->in.c, d->in.dtype,
                      mri_grid_light(d->activation) && MRI_GRID_ALIGNED(a->dy, a->dy2, y, a->x));
    const uint32_t parts = mri_grid_tile_x(mri_cuda_of_stream(s), &tile, SUMS_EACH);
    const struct mrk_batchnorm_sums_args sums = {.tile = tile,
                                                 .activation = d->activation,
                                                 .mask = mask,
                                                 .write = write,
                                                 .dy = a->dy,
                                                 .dy2 = a->dy2,
                                                 .y = y,
                                                 .x = a->x,
                                                 .saved = a->saved,
                                                 .partial = a->scratch};
    const int rc = launch(s, MRK_batchnorm_sums, &tile, parts, &sums, err);
    if (rc) return rc;
    const struct mrk_batchnorm_gradients_args gradients = {
        .channels = d->in.c,
        .parts = parts,
        .rows = tile.rows,
        .partial = a->scratch,
        .scale = scale_of(op, a),
        .saved = a->saved,
        .dscale = op->base.desc.batchnorm.no_scale ? NULL : a->dparam[0],
        .dshift = a->dparam[shift_at(op)],
        .coefficients = coefficients_of(op, a)};
    return mri_cuda_launch(s, MRK_batchnorm_gradients, mri_grid_finish(d->in.c), MRK_THREADS, 0, &gradients,
                           err);
}

static int backward(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    const bool write = a->dy2 || mask_of(d) == MRK_MASK_OF_Y; /* with a residual and no activation dy is what
                                                                 x2 gets already */
    const int rc = sum_gradients(op, s, a, write, err);
    if (rc || !d->need_dx) return rc;
    const struct mrk_tile tile =
        mri_grid_tile(rows_of(op, a->n), d->in.c, d->in.dtype, MRI_GRID_ALIGNED(a->dy, a->x, a->dx));
    const struct mrk_batchnorm_dx_args dx = {.tile = tile,
                                             .mask = write ? MRK_MASK_NONE : mask_of(d),
                                             .dy = a->dy,
                                             .x = a->x,
                                             .dx = a->dx,
                                             .saved = a->saved,
                                             .coefficients = coefficients_of(op, a)};
    return launch(s, MRK_batchnorm_dx, &tile, mri_grid_tile_x(mri_cuda_of_stream(s), &tile, DX_EACH), &dx,
                  err);
}

const struct mri_cuda_code mri_cuda_batchnorm = {.forward_text = "batchnorm forward",
                                                 .backward_text = "batchnorm backward",
                                                 .prepare = prepare,
                                                 .forward = forward,
                                                 .backward = backward,
                                                 .adds_dy2 = true};
