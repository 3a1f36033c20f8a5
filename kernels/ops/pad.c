/* kernels/ops/pad.c: channels of zeros before and after a tensor's own, as in the short cuts of the first
 * residual networks for CIFAR-10 (He et al. 2016a, option A). Any layout. */
#include "kernels/backend/op_class.h"
#include "kernels/ops/channels.h"

static int describe(const mr_op_desc *d, mr_op_info *info, mr_error *err)
{
    const mr_pad_desc *pad = &d->pad;
    if (pad->before > MRI_OP_MAX_SIDE || pad->behind > MRI_OP_MAX_SIDE)
        return mr_error_set(err, MR_EINVAL, "pad: at most %u channels on either side, found %u and %u",
                            MRI_OP_MAX_SIDE, pad->before, pad->behind);
    return mri_op_set_output(d, info, d->in.h, d->in.w, pad->before + d->in.c + pad->behind, d->in.dtype,
                             "pad", err);
}

static int prepare(mri_host_op *op, mr_error *err)
{
    (void)err;
    mri_tensor_set_layout(&op->base.info.out, op->base.desc.in.layout);
    return MR_OK;
}

static int forward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    (void)err;
    const mr_op_desc *d = &op->base.desc;
    const mr_tensor *out = &op->base.info.out;
    const struct mri_channels own = {.to = out, .from = &d->in, .to_first = d->pad.before, .count = d->in.c};
    memset(a->y, 0, out->sample_bytes * a->n);
    mri_copy_channels(&own, a->n, a->y, a->x);
    return MR_OK;
}

static int backward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    (void)err;
    const mr_op_desc *d = &op->base.desc;
    const struct mri_channels own = {
        .to = &d->in, .from = &op->base.info.out, .from_first = d->pad.before, .count = d->in.c};
    if (!d->need_dx) return MR_OK;
    mri_copy_channels(&own, a->n, a->dx, a->dy);
    mri_tensor_zero_padding(&d->in, a->n, a->dx);
    return MR_OK;
}

static const struct mri_op_code reference = {.prepare = prepare, .forward = forward, .backward = backward};
const struct mri_op_class mri_pad_class = {.name = "pad", .describe = describe, .reference = &reference};
