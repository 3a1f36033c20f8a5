/* kernels/cuda/ops/recurrent_cuda.c: recurrent layers on a GPU: products by cuBLAS, cells by our own kernel,
 * one of each a step. The steps follow ops/recurrent.c.
 *
 *   saved      gates [rows][G] f32 | kept [rows][u] f32 | h before [rows][u] | W and U in the type of x
 *   scratch    W, U of a forward that saves nothing, then the arrays that forward or backward name below
 *
 * The sums of gates, states and what flows back through the steps are f32 in every type of tensor; factors of
 * products have the type of the tensors. Numbers become rows with a single 1 in scratch: a product with them
 * costs a GPU less than looking up.
 *
 * Only a GPU can confirm: which kernels cuBLAS takes, so speed. */
#include <limits.h>

#include "kernels/cuda/ops/grid.h"
#include "kernels/cuda/ops/linear_cuda.h"
#include "kernels/cuda/ops/recurrent_cuda.h"

struct recurrent {
    uint32_t steps, units, inputs, wide; /* wide: G */
    uint32_t dtype;
    bool lstm;
    size_t weights_bytes, recurrent_bytes; /* of the cast copies; 0 for f32 */
    /* Offsets in bytes. */
    struct {
        size_t kept, before, weights, recurrent;
    } saved;
    struct {
        size_t weights, recurrent;                         /* of both passes */
        size_t rows;                                       /* of numbers, of both passes */
        size_t gates, product, h, c, factor;               /* forward */
        size_t dgates, dproduct, dh, dc, through, partial; /* backward */
    } scratch;
};

static size_t piece(size_t *at, uint64_t count, size_t bytes)
{
    const size_t from = *at;
    *at += (size_t)mri_align_up(count * bytes, MR_DEVICE_ALIGN);
    return from;
}

static void lay_out(const mri_cuda_op *op, struct recurrent *r, uint64_t rows, size_t *saved, size_t *scratch)
{
    const mr_op_desc *d = &op->base.desc;
    const size_t element = mr_tensor_element_bytes(r->dtype);
    const uint64_t gates = rows * r->wide, states = rows * r->units,
                   state = (uint64_t)d->max_batch * r->units;
    piece(saved, gates, sizeof(float));
    r->saved.kept = piece(saved, states, sizeof(float));
    r->saved.before = piece(saved, states, element);
    r->saved.weights = piece(saved, r->weights_bytes, 1);
    r->saved.recurrent = piece(saved, r->recurrent_bytes, 1);
    size_t both = 0;
    r->scratch.weights = piece(&both, r->weights_bytes, 1);
    r->scratch.recurrent = piece(&both, r->recurrent_bytes, 1);
    r->scratch.rows = piece(&both, d->recurrent.classes ? rows * r->inputs : 0, element);
    size_t forward = both, backward = both;
    r->scratch.gates = piece(&forward, gates, sizeof(float));
    r->scratch.product = piece(&forward, (uint64_t)d->max_batch * r->wide, sizeof(float));
    r->scratch.h = piece(&forward, state, sizeof(float));
    r->scratch.c = piece(&forward, r->lstm ? state : 0, sizeof(float));
    r->scratch.factor = piece(&forward, state, element);
    if (d->training) {
        r->scratch.dgates = piece(&backward, gates, element);
        r->scratch.dproduct = r->lstm ? r->scratch.dgates : piece(&backward, gates, element);
        r->scratch.dh = piece(&backward, state, sizeof(float));
        r->scratch.dc = piece(&backward, r->lstm ? state : 0, sizeof(float));
        r->scratch.through = piece(&backward, state, sizeof(float));
        r->scratch.partial =
            piece(&backward, mri_cuda_bias_scratch(mri_cuda_device_of(op->base.device), rows, r->wide), 1);
    }
    *scratch = forward > backward ? forward : backward;
}

int mri_cuda_recurrent_prepare(mri_cuda_op *op, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    const uint32_t gates = d->kind == MR_OP_LSTM ? 4 : 3;
    const uint64_t rows = (uint64_t)d->max_batch * d->in.w, wide = (uint64_t)gates * d->recurrent.units,
                   inputs = d->recurrent.classes ? d->recurrent.classes : d->in.c;
    if (rows > INT_MAX || wide * d->in.w > INT_MAX)
        return mr_error_set(err, MR_EUNSUPPORTED,
                            "%s: %u samples of %u steps with %u units; cuBLAS counts to %d",
                            op->base.is->name, d->max_batch, d->in.w, d->recurrent.units, INT_MAX);
    if (rows * wide > (uint64_t)1 << 42)
        return mr_error_set(err, MR_EINVAL, "%s: the batch is too large", op->base.is->name);
    struct recurrent *r = calloc(1, sizeof *r);
    if (!r) return mr_error_set(err, MR_ENOMEM, "%s: out of memory", op->base.is->name);
    const size_t element = mr_tensor_element_bytes(op->base.info.out.dtype),
                 cast = element == 4 ? 0 : element;
    *r = (struct recurrent){.steps = d->in.w,
                            .units = d->recurrent.units,
                            .inputs = (uint32_t)inputs,
                            .wide = (uint32_t)wide,
                            .dtype = op->base.info.out.dtype,
                            .lstm = d->kind == MR_OP_LSTM,
                            .weights_bytes = cast * (size_t)op->base.info.param[0].count,
                            .recurrent_bytes = cast * (size_t)op->base.info.param[1].count};
    size_t saved = 0;
    lay_out(op, r, rows, &saved, &op->base.info.scratch_bytes);
    op->base.info.saved_bytes = d->training ? saved : 0;
    op->own = r;
    return MR_OK;
}

void mri_cuda_recurrent_release(mri_cuda_op *op) { free(op->own); }

/* ---- what both passes need ---- */

struct call {
    const mri_cuda_op *op;
    const struct recurrent *r;
    mri_cuda_stream *s;
    const mr_op_args *a;
    cudaDataType type;
    uint64_t rows;
    bool saves;
    const void *x; /* rows of values, of numbers too */
    const void *weights, *recurrent;
};

static void *in_saved(const struct call *c, size_t at) { return (unsigned char *)c->a->saved + at; }
static void *in_scratch(const struct call *c, size_t at) { return (unsigned char *)c->a->scratch + at; }

static struct call call_of(const mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a)
{
    const struct recurrent *r = op->own;
    struct call c = {.op = op,
                     .r = r,
                     .s = s,
                     .a = a,
                     .type = mri_cuda_type(r->dtype),
                     .rows = (uint64_t)a->n * r->steps,
                     .saves = a->training && op->base.desc.training,
                     .x = a->x,
                     .weights = a->param[0],
                     .recurrent = a->param[1]};
    if (op->base.desc.recurrent.classes) c.x = in_scratch(&c, r->scratch.rows);
    if (r->weights_bytes) {
        c.weights = c.saves ? in_saved(&c, r->saved.weights) : in_scratch(&c, r->scratch.weights);
        c.recurrent = c.saves ? in_saved(&c, r->saved.recurrent) : in_scratch(&c, r->scratch.recurrent);
    }
    return c;
}

/* Numbers as rows. */
static int write_rows(const struct call *c, mr_error *err)
{
    if (!c->op->base.desc.recurrent.classes) return MR_OK;
    struct mrk_one_hot_args args = {.count = c->rows * c->r->inputs,
                                    .from = MR_TENSOR_I32,
                                    .classes = c->r->inputs,
                                    .dtype = c->r->dtype,
                                    .x = c->a->x,
                                    .y = in_scratch(c, c->r->scratch.rows)};
    args.vectors = c->r->inputs % mri_grid_pack(c->r->dtype) == 0 && MRI_GRID_ALIGNED(args.y);
    return mri_cuda_launch(c->s, MRK_one_hot, mri_grid_flat(args.count, c->r->dtype, args.vectors),
                           MRK_THREADS, 0, &args, err);
}

static struct mri_cuda_matrix values(const struct call *c, const void *at, uint64_t leading, bool transposed)
{
    return (struct mri_cuda_matrix){at, c->type, (int)leading, transposed};
}
static struct mri_cuda_matrix floats(const void *at, uint64_t leading)
{
    return (struct mri_cuda_matrix){at, CUDA_R_32F, (int)leading, false};
}

static struct mrk_recurrent step_of(const struct call *c, uint32_t step)
{
    return (struct mrk_recurrent){.n = c->a->n,
                                  .steps = c->r->steps,
                                  .units = c->r->units,
                                  .step = step,
                                  .dtype = c->r->dtype,
                                  .lstm = c->r->lstm,
                                  .sequences = c->op->base.desc.recurrent.sequences};
}

static bool in_output(const struct call *c, uint32_t step)
{
    return c->op->base.desc.recurrent.sequences || step + 1 == c->r->steps;
}

static uint32_t blocks_of(const struct call *c)
{
    return mri_grid_blocks((uint64_t)c->a->n * c->r->units, MRK_THREADS);
}

/* ---- forward ---- */

static int cast_weights(const struct call *c, mr_error *err)
{
    const mr_op_info *info = &c->op->base.info;
    void *to;
    if (!c->r->weights_bytes) return MR_OK;
    memcpy(&to, &c->weights, sizeof to); /* ours to write in a forward pass */
    int rc = mri_cuda_cast(c->s, info->param[0].count, c->r->dtype, to, MR_TENSOR_F32, c->a->param[0], err);
    memcpy(&to, &c->recurrent, sizeof to);
    if (!rc)
        rc = mri_cuda_cast(c->s, info->param[1].count, c->r->dtype, to, MR_TENSOR_F32, c->a->param[1], err);
    return rc;
}

static int forward_step(const struct call *c, uint32_t step, float *gates, mr_error *err)
{
    const struct recurrent *r = c->r;
    const mr_op_args *a = c->a;
    float *product = in_scratch(c, r->scratch.product);
    void *factor = in_scratch(c, r->scratch.factor);
    int rc = MR_OK;
    if (step > 0)
        rc = mri_cuda_multiply(c->s, (int)r->wide, (int)a->n, (int)r->units,
                               values(c, c->recurrent, r->units, true), values(c, factor, r->units, false),
                               floats(product, r->wide), "recurrent product", err);
    if (rc) return rc;
    const struct mrk_recurrent_forward_args args = {.r = step_of(c, step),
                                                    .gates = gates,
                                                    .product = step > 0 ? product : NULL,
                                                    .bias = a->param[2],
                                                    .recurrent_bias = r->lstm ? NULL : a->param[3],
                                                    .h = in_scratch(c, r->scratch.h),
                                                    .c = r->lstm ? in_scratch(c, r->scratch.c) : NULL,
                                                    .factor = factor,
                                                    .kept = c->saves ? in_saved(c, r->saved.kept) : NULL,
                                                    .before = c->saves ? in_saved(c, r->saved.before) : NULL,
                                                    .y = in_output(c, step) ? a->y : NULL};
    return mri_cuda_launch(c->s, MRK_recurrent_forward, blocks_of(c), MRK_THREADS, 0, &args, err);
}

int mri_cuda_recurrent_forward(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err)
{
    const struct call c = call_of(op, s, a);
    const struct recurrent *r = c.r;
    float *gates = c.saves ? a->saved : in_scratch(&c, r->scratch.gates);
    int rc = write_rows(&c, err);
    if (!rc) rc = cast_weights(&c, err);
    if (!rc)
        rc = mri_cuda_multiply(s, (int)r->wide, (int)c.rows, (int)r->inputs,
                               values(&c, c.weights, r->inputs, true), values(&c, c.x, r->inputs, false),
                               floats(gates, r->wide), "input product", err);
    for (uint32_t step = 0; !rc && step < r->steps; step++) rc = forward_step(&c, step, gates, err);
    return rc;
}

/* ---- backward ---- */

static int backward_step(const struct call *c, uint32_t step, mr_error *err)
{
    const struct recurrent *r = c->r;
    const bool last = step + 1 == r->steps;
    float *through = in_scratch(c, r->scratch.through);
    const struct mrk_recurrent_backward_args args = {.r = step_of(c, step),
                                                     .gates = c->a->saved,
                                                     .kept = in_saved(c, r->saved.kept),
                                                     .before = in_saved(c, r->saved.before),
                                                     .through = last ? NULL : through,
                                                     .dy = in_output(c, step) ? c->a->dy : NULL,
                                                     .dh = in_scratch(c, r->scratch.dh),
                                                     .dc = r->lstm ? in_scratch(c, r->scratch.dc) : NULL,
                                                     .dgates = in_scratch(c, r->scratch.dgates),
                                                     .dproduct =
                                                         r->lstm ? NULL : in_scratch(c, r->scratch.dproduct)};
    const int rc = mri_cuda_launch(c->s, MRK_recurrent_backward, blocks_of(c), MRK_THREADS, 0, &args, err);
    if (rc || step == 0) return rc;
    const unsigned char *of_step = in_scratch(c, r->scratch.dproduct);
    of_step += (size_t)step * r->wide * mr_tensor_element_bytes(r->dtype);
    return mri_cuda_multiply(c->s, (int)r->units, (int)c->a->n, (int)r->wide,
                             values(c, c->recurrent, r->units, false),
                             values(c, of_step, (uint64_t)r->steps * r->wide, false),
                             floats(through, r->units), "gradient through a step", err);
}

static int bias_gradient(const struct call *c, size_t from, float *to, mr_error *err)
{
    return mri_cuda_bias_backward(c->s, c->rows, c->r->wide, c->r->dtype, NULL, in_scratch(c, from), to,
                                  in_scratch(c, c->r->scratch.partial), MR_ACT_NONE, err);
}

static int weight_gradients(const struct call *c, mr_error *err)
{
    const struct recurrent *r = c->r;
    const void *dgates = in_scratch(c, r->scratch.dgates), *dproduct = in_scratch(c, r->scratch.dproduct);
    int rc = bias_gradient(c, r->scratch.dgates, c->a->dparam[2], err);
    if (!rc && !r->lstm) rc = bias_gradient(c, r->scratch.dproduct, c->a->dparam[3], err);
    if (!rc)
        rc = mri_cuda_multiply(c->s, (int)r->units, (int)r->wide, (int)c->rows,
                               values(c, in_saved(c, r->saved.before), r->units, false),
                               values(c, dproduct, r->wide, true), floats(c->a->dparam[1], r->units),
                               "recurrent weight gradient", err);
    if (!rc)
        rc = mri_cuda_multiply(c->s, (int)r->inputs, (int)r->wide, (int)c->rows,
                               values(c, c->x, r->inputs, false), values(c, dgates, r->wide, true),
                               floats(c->a->dparam[0], r->inputs), "input weight gradient", err);
    return rc;
}

int mri_cuda_recurrent_backward(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err)
{
    mr_op_args as_trained = *a;
    as_trained.training = true; /* what forward has saved is used */
    const struct call c = call_of(op, s, &as_trained);
    const struct recurrent *r = c.r;
    int rc = write_rows(&c, err);
    for (uint32_t step = r->steps; !rc && step-- > 0;) rc = backward_step(&c, step, err);
    if (!rc) rc = weight_gradients(&c, err);
    if (rc || !op->base.desc.need_dx) return rc;
    return mri_cuda_multiply(s, (int)r->inputs, (int)c.rows, (int)r->wide,
                             values(&c, c.weights, r->inputs, false),
                             values(&c, in_scratch(&c, r->scratch.dgates), r->wide, false),
                             values(&c, a->dx, r->inputs, false), "recurrent data gradient", err);
}
