/* kernels/ops/add.c: the sum of two tensors, where two branches of a network meet, and an activation. Any
 * layout: both inputs have the same, so elements meet their like; the padding of both is zero. */
#include "kernels/backend/op_class.h"
#include "kernels/host/simd_loop.h"
#include "kernels/ops/host_op.h"

MRI_INLINE void sum_body(float *y, const float *x, const float *x2, size_t n)
{
    for (size_t i = 0; i < n; i++) y[i] = x[i] + x2[i];
}
MRI_SIMD_LOOP(sum, (float *y, const float *x, const float *x2, size_t n), (y, x, x2, n))

static int describe(const mr_op_desc *d, mr_op_info *info, mr_error *err)
{
    info->flops_per_sample = (double)d->in.h * d->in.w * d->in.c;
    return mri_op_check_second(d, "add", err);
}

static bool takes_two(const mr_op_desc *d)
{
    (void)d;
    return true;
}

/* dx may be missing: dy is the gradient to both. */
static bool lacks(const mr_op *op, const mr_op_args *a, bool backward)
{
    return backward ? !a->dy : mri_op_lacks(op, a, false);
}

#define BLOCK 8192u /* elements one thread takes at a time: the activation finds them in its cache */

static int forward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    (void)err;
    const mr_op_desc *d = &op->base.desc;
    const size_t count = mri_tensor_floats(&d->in) * a->n;
    float *y = a->y;
    const float *x = a->x, *x2 = a->x2;
#pragma omp parallel for schedule(static) if (count > MRI_PARALLEL_ELEMENTS)
    for (size_t at = 0; at < count; at += BLOCK) {
        const size_t n = count - at < BLOCK ? count - at : BLOCK;
        sum(y + at, x + at, x2 + at, n);
        mri_activate_piece(d->activation, y + at, n);
    }
    if (d->activation == MR_ACT_SIGMOID) mri_tensor_zero_padding(&d->in, a->n, y); /* sigmoid(0) is not 0 */
    return MR_OK;
}

/* The gradient is the same to both inputs: dy, in place. */
static int backward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    (void)err;
    const mr_op_desc *d = &op->base.desc;
    const size_t count = mri_tensor_floats(&d->in) * a->n;
    float *dy = a->dy, *dx = d->need_dx && a->dx != a->dy ? a->dx : NULL;
    const float *dy2 = a->dy2, *y = a->y;
    if (!dy2 && !dx && d->activation == MR_ACT_NONE) return MR_OK;
#pragma omp parallel for schedule(static) if (count > MRI_PARALLEL_ELEMENTS)
    for (size_t at = 0; at < count; at += BLOCK) {
        const size_t n = count - at < BLOCK ? count - at : BLOCK;
        if (dy2) mri_accumulate_piece(dy + at, dy2 + at, n);
        mri_activate_backward_piece(d->activation, y + at, dy + at, n);
        if (dx) memcpy(dx + at, dy + at, n * sizeof *dx);
    }
    return MR_OK;
}

static const struct mri_op_code reference = {.forward = forward, .backward = backward, .adds_dy2 = true};
const struct mri_op_class mri_add_class = {.name = "add",
                                           .fuses = true,
                                           .keeps_layout = true,
                                           .describe = describe,
                                           .takes_two = takes_two,
                                           .lacks = lacks,
                                           .reference = &reference};
