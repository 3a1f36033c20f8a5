/* kernels/ops/concat.c: concatenates the channels of two tensors with the same number of pixels. Any layout,
 * the same for both. */
#include "kernels/backend/op_class.h"
#include "kernels/ops/channels.h"

static int describe(const mr_op_desc *d, mr_op_info *info, mr_error *err)
{
    const mr_tensor *a = &d->in, *b = &d->in2;
    if (a->h != b->h || a->w != b->w || a->dtype != b->dtype || a->layout != b->layout)
        return mr_error_set(err, MR_EINVAL,
                            "concat: the second input must have the pixels, type and layout of the first "
                            "(%u x %u, type %u, layout %u), found %u x %u, type %u, layout %u",
                            a->h, a->w, a->dtype, a->layout, b->h, b->w, b->dtype, b->layout);
    const int rc = mri_op_check_count(b->c, "channels of the second input", "concat", err);
    if (rc) return rc;
    info->writes_dx2 = true;
    return mri_op_set_output(d, info, a->h, a->w, a->c + b->c, a->dtype, "concat", err);
}

static bool takes_two(const mr_op_desc *d)
{
    (void)d;
    return true;
}

static int prepare(mri_host_op *op, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    if (!mri_tensor_valid(&d->in2))
        return mr_error_set(
            err, MR_EINVAL,
            "concat: the second input's layout %u with %zu bytes a sample is not one this device makes",
            d->in2.layout, d->in2.sample_bytes);
    mri_tensor_set_layout(&op->base.info.out, d->in.layout);
    return MR_OK;
}

static int forward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    (void)err;
    const mr_op_desc *d = &op->base.desc;
    const mr_tensor *out = &op->base.info.out;
    const struct mri_channels first = {.to = out, .from = &d->in, .count = d->in.c},
                              second = {.to = out, .from = &d->in2, .to_first = d->in.c, .count = d->in2.c};
    mri_copy_channels(&first, a->n, a->y, a->x);
    mri_copy_channels(&second, a->n, a->y, a->x2);
    mri_tensor_zero_padding(out, a->n, a->y);
    return MR_OK;
}

static int backward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    (void)err;
    const mr_op_desc *d = &op->base.desc;
    const mr_tensor *out = &op->base.info.out;
    const struct mri_channels first = {.to = &d->in, .from = out, .count = d->in.c},
                              second = {.to = &d->in2, .from = out, .from_first = d->in.c, .count = d->in2.c};
    if (d->need_dx) {
        mri_copy_channels(&first, a->n, a->dx, a->dy);
        mri_tensor_zero_padding(&d->in, a->n, a->dx);
    }
    if (a->dx2) {
        mri_copy_channels(&second, a->n, a->dx2, a->dy);
        mri_tensor_zero_padding(&d->in2, a->n, a->dx2);
    }
    return MR_OK;
}

static const struct mri_op_code reference = {.prepare = prepare, .forward = forward, .backward = backward};
const struct mri_op_class mri_concat_class = {
    .name = "concat", .describe = describe, .takes_two = takes_two, .reference = &reference};
