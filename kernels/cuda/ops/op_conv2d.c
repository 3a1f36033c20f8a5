/* kernels/cuda/ops/op_conv2d.c: convolution and transposed convolution by cuDNN plans, bias and activation by
 * our own passes over the output.
 *
 *   forward    w ─cast─► w'   y = x * w'   y = act(y + bias)
 *   backward   dy *= act'(y), dbias = column sums   dw = dy against x   dx = dy against w'
 *
 * w' is w in the type of x (linear_cuda.h). cuDNN writes weight gradients in the type of x and dy and in no
 * other (its heuristics list nothing for an f32 one of half precision tensors), so those come through scratch
 * and a cast; their sums are float all the same.
 *
 *   scratch   | weights, w' or dw in its type | partial sums of dbias | framed x | workspace of the plan |
 *
 * A transposed convolution is a convolution seen from its other end: what comes in stands where that one has
 * its output, and forward is its gradient to the input, backward to the input its forward.
 *
 * Padding that differs from side to side. cuDNN takes it, but its weight gradients in f32 are wrong then
 * (9.19 on an H100, measured plans and others: windows of 3 x 3 in steps of 2 on even sides, and 5 x 3). So
 * what one side has more is put around a copy of x, `framed`, and the plan sees padding that is the same on
 * both; a gradient to x is made framed, and x is cut out of it.
 *
 * A plan knows its number of samples. Those for max_batch are made with the operation and measured; those for
 * a tail or an evaluation when such a batch first comes, by heuristics alone (a measurement would disturb the
 * run it happens in) and within the workspace that is there. They live as long as the operation: a recorded
 * graph may hold their kernels. */
#include "kernels/cuda/ops/channels_cuda.h"
#include "kernels/cuda/ops/linear_cuda.h"
#include "kernels/cuda/plan/plan.h"

#define WORKSPACE_MOST                                                                                       \
    ((size_t)4 << 30) /* per pass; less on small GPUs. Exact f32 wants copies of x and y in another layout   \
                       */
#define WORKSPACE_LEAST                                                                                      \
    ((size_t)16 << 20) /* so that a tail's plan finds room when the full batch needs none */

/* Plans of one batch size. */
struct batch_plans {
    struct batch_plans *next;
    uint32_t n;
    mri_cuda_plan *pass[MRI_CUDA_PASSES];
};

struct conv {
    struct batch_plans full; /* followed by the plans of other sizes */
    struct mri_cuda_linear linear;
    mr_tensor framed; /* x with what one side's padding has more; no bytes where neither has */
    size_t framed_at, workspace_at, workspace_bytes;
};

static bool transposed(const mri_cuda_op *op) { return op->base.desc.kind == MR_OP_CONV2D_TRANSPOSED; }

/* The tensor that a convolution takes; that a transposed one gives. */
static const mr_tensor *near_side(const mri_cuda_op *op)
{
    return transposed(op) ? &op->base.info.out : &op->base.desc.in;
}

static uint32_t surplus(uint32_t of, uint32_t other) { return of > other ? of - other : 0; }

static mr_tensor framed(const mri_cuda_op *op)
{
    const mr_op_window *w = &op->base.desc.conv2d.window;
    mr_tensor t = *near_side(op);
    const size_t pixels = (size_t)t.h * t.w;
    t.h += surplus(w->pad_top, w->pad_bottom) + surplus(w->pad_bottom, w->pad_top);
    t.w += surplus(w->pad_left, w->pad_right) + surplus(w->pad_right, w->pad_left);
    t.sample_bytes = (size_t)t.h * t.w == pixels ? 0 : t.sample_bytes / pixels * t.h * t.w;
    return t;
}

/* The computation that the plan of a pass performs. */
static enum mri_cuda_pass planned(const mri_cuda_op *op, enum mri_cuda_pass pass)
{
    if (!transposed(op) || pass == MRI_CUDA_WEIGHTS) return pass;
    return pass == MRI_CUDA_FORWARD ? MRI_CUDA_DATA : MRI_CUDA_FORWARD;
}

static struct mri_cuda_conv numbers(const mri_cuda_op *op, enum mri_cuda_pass pass, uint32_t n)
{
    const mr_op_desc *d = &op->base.desc;
    const mr_op_window *w = &d->conv2d.window;
    const mri_cuda_device *dev = mri_cuda_device_of(op->base.device);
    const mr_tensor near = framed(op), *far = transposed(op) ? &d->in : &op->base.info.out;
    return (struct mri_cuda_conv){
        .pass = planned(op, pass),
        .n = n,
        .h = near.h,
        .w = near.w,
        .c = near.c,
        .filters = far->c,
        .groups = mri_op_groups(d),
        .kernel_h = w->kernel_h,
        .kernel_w = w->kernel_w,
        .stride_h = w->stride_h,
        .stride_w = w->stride_w,
        .pad_top = w->pad_top - surplus(w->pad_top, w->pad_bottom),
        .pad_left = w->pad_left - surplus(w->pad_left, w->pad_right),
        .pad_bottom = w->pad_top - surplus(w->pad_top, w->pad_bottom),
        .pad_right = w->pad_left - surplus(w->pad_left, w->pad_right),
        .out_h = far->h,
        .out_w = far->w,
        .dtype = d->in.dtype,
        .tf32 = dev->tf32 && d->in.dtype == MR_TENSOR_F32,
        .deterministic = dev->deterministic,
    };
}

static size_t workspace_limit(const mri_cuda_op *op)
{
    const uint64_t part = mri_cuda_device_of(op->base.device)->base.info.memory_bytes / 16;
    return (size_t)mri_max_u64(WORKSPACE_LEAST, mri_min_u64(WORKSPACE_MOST, part));
}

static void free_plans(struct batch_plans *b)
{
    for (int pass = 0; pass < MRI_CUDA_PASSES; pass++) {
        mri_cuda_plan_destroy(b->pass[pass]);
        b->pass[pass] = NULL;
    }
}

/* One pass of one batch size, where it is not made yet. */
static int make_pass(const mri_cuda_op *op, struct batch_plans *b, enum mri_cuda_pass pass, size_t limit,
                     bool measure, mr_error *err)
{
    if (b->pass[pass]) return MR_OK;
    const struct mri_cuda_conv conv = numbers(op, pass, b->n);
    return mri_cuda_plan_create(&b->pass[pass], mri_cuda_device_of(op->base.device), &conv, limit, measure,
                                err);
}

static bool has_pass(const mr_op_desc *d, enum mri_cuda_pass pass)
{
    return pass == MRI_CUDA_FORWARD || (d->training && (pass == MRI_CUDA_WEIGHTS || d->need_dx));
}

static int make_full(const mri_cuda_op *op, struct conv *own, mr_error *err)
{
    own->full.n = op->base.desc.max_batch;
    own->workspace_bytes = WORKSPACE_LEAST;
    int rc = MR_OK;
    for (int pass = 0; pass < MRI_CUDA_PASSES && !rc; pass++) {
        if (!has_pass(&op->base.desc, pass)) continue;
        rc = make_pass(op, &own->full, pass, workspace_limit(op), true, err);
        if (!rc && own->workspace_bytes < mri_cuda_plan_workspace(own->full.pass[pass]))
            own->workspace_bytes = mri_cuda_plan_workspace(own->full.pass[pass]);
    }
    return rc;
}

static void lay_out(mri_cuda_op *op, struct conv *own)
{
    mri_cuda_linear_lay_out(op, &own->linear);
    own->framed_at = (size_t)mri_align_up(own->linear.end, MR_DEVICE_ALIGN);
    own->workspace_at = (size_t)mri_align_up(
        own->framed_at + own->framed.sample_bytes * op->base.desc.max_batch, MR_DEVICE_ALIGN);
    op->base.info.scratch_bytes = own->workspace_at + own->workspace_bytes;
}

static int prepare(mri_cuda_op *op, mr_error *err)
{
    mri_cuda_device *dev = mri_cuda_device_of(op->base.device);
    struct conv *own = calloc(1, sizeof *own);
    if (!own) return mr_error_set(err, MR_ENOMEM, "conv2d: out of memory");
    int rc = mri_cuda_planner_ref(dev, err);
    if (rc) goto fail_own;
    own->framed = framed(op);
    rc = make_full(op, own, err);
    if (rc) goto fail_plans;
    lay_out(op, own);
    op->own = own;
    return MR_OK;

fail_plans:
    free_plans(&own->full);
    mri_cuda_planner_unref(dev);
fail_own:
    free(own);
    return rc;
}

static void release(mri_cuda_op *op)
{
    struct conv *own = op->own;
    free_plans(&own->full);
    for (struct batch_plans *b = own->full.next, *next; b; b = next) {
        next = b->next;
        free_plans(b);
        free(b);
    }
    mri_cuda_planner_unref(mri_cuda_device_of(op->base.device));
    free(own);
}

/* The plan of a pass for n samples, made now if need be. */
static int plan_for(mri_cuda_op *op, mri_cuda_stream *s, enum mri_cuda_pass pass, uint32_t n,
                    mri_cuda_plan **out, mr_error *err)
{
    struct conv *own = op->own;
    struct batch_plans *b = &own->full;
    while (b && b->n != n) b = b->next;
    if (b && b->pass[pass]) {
        *out = b->pass[pass];
        return MR_OK;
    }
    if (s->recording)
        return mr_error_set(err, MR_EUNSUPPORTED,
                            "conv2d: a batch of %u samples comes for the first time while a graph is "
                            "recorded; run it once before",
                            n);
    if (!b) {
        b = calloc(1, sizeof *b);
        if (!b) return mr_error_set(err, MR_ENOMEM, "conv2d: out of memory");
        b->n = n;
        b->next = own->full.next;
        own->full.next = b;
    }
    const int rc = make_pass(op, b, pass, own->workspace_bytes, false, err);
    *out = b->pass[pass];
    return rc;
}

static void *workspace(const struct conv *own, const mr_op_args *a)
{
    return (unsigned char *)a->scratch + own->workspace_at;
}

/* The plan of a pass on x and y of the operation, by way of the framed copy where there is one. */
static int run_plan(const mri_cuda_op *op, enum mri_cuda_pass pass, mri_cuda_plan *plan, mri_cuda_stream *s,
                    const mr_op_args *a, const void *x, const void *weights, const void *y, const char *what,
                    mr_error *err)
{
    const struct conv *own = op->own;
    const mr_op_window *w = &op->base.desc.conv2d.window;
    const void *const near = transposed(op) ? y : x, *const far = transposed(op) ? x : y;
    if (!own->framed.sample_bytes)
        return mri_cuda_plan_run(plan, s, near, weights, far, workspace(own, a), what, err);
    const bool written = planned(op, pass) == MRI_CUDA_DATA;
    const int32_t top = (int32_t)surplus(w->pad_top, w->pad_bottom),
                  left = (int32_t)surplus(w->pad_left, w->pad_right);
    void *const copy = (unsigned char *)a->scratch + own->framed_at;
    int rc = written ? MR_OK
                     : mri_cuda_reframe(s, a->n, &own->framed, copy, near_side(op), near, -top, -left, err);
    if (!rc) rc = mri_cuda_plan_run(plan, s, copy, weights, far, workspace(own, a), what, err);
    if (rc || !written) return rc;
    return mri_cuda_reframe(s, a->n, near_side(op), (void *)near, &own->framed, copy, top, left, err);
}

static int forward(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err)
{
    const struct conv *own = op->own;
    const void *weights;
    mri_cuda_plan *plan = NULL;
    int rc = plan_for(op, s, MRI_CUDA_FORWARD, a->n, &plan, err);
    if (!rc) rc = mri_cuda_linear_weights(op, &own->linear, s, a, &weights, err);
    if (!rc)
        rc = run_plan(op, MRI_CUDA_FORWARD, plan, s, a, a->x, weights, a->y, op->code->forward_text, err);
    return rc ? rc : mri_cuda_linear_finish(op, &own->linear, s, a, err);
}

static int weight_gradient(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err)
{
    const struct conv *own = op->own;
    const bool half = own->linear.weights_bytes > 0;
    void *const dw = half ? a->scratch : (void *)a->dparam[0];
    mri_cuda_plan *plan;
    int rc = plan_for(op, s, MRI_CUDA_WEIGHTS, a->n, &plan, err);
    if (!rc) rc = run_plan(op, MRI_CUDA_WEIGHTS, plan, s, a, a->x, dw, a->dy, "conv2d weight gradient", err);
    if (rc || !half) return rc;
    return mri_cuda_cast(s, op->base.info.param[0].count, MR_TENSOR_F32, a->dparam[0], op->base.desc.in.dtype,
                         dw, err);
}

static int backward(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    const struct conv *own = op->own;
    mri_cuda_plan *plan = NULL;
    int rc = d->need_dx ? plan_for(op, s, MRI_CUDA_DATA, a->n, &plan, err) : MR_OK; /* nothing is queued when
                                                                                       one is missing */
    if (!rc) rc = mri_cuda_linear_begin_backward(op, &own->linear, s, a, err);
    if (!rc) rc = weight_gradient(op, s, a, err);
    if (rc || !d->need_dx) return rc;
    return run_plan(op, MRI_CUDA_DATA, plan, s, a, a->dx, mri_cuda_linear_kept(&own->linear, a), a->dy,
                    "conv2d data gradient", err);
}

const struct mri_cuda_code mri_cuda_conv2d = {.forward_text = "conv2d forward",
                                              .backward_text = "conv2d backward",
                                              .prepare = prepare,
                                              .release = release,
                                              .forward = forward,
                                              .backward = backward};
const struct mri_cuda_code mri_cuda_conv2d_transposed = {.forward_text = "conv2d_transposed forward",
                                                         .backward_text = "conv2d_transposed backward",
                                                         .prepare = prepare,
                                                         .release = release,
                                                         .forward = forward,
                                                         .backward = backward};
