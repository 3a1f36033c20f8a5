/* kernels/ops/reshape.c: gives the values of a tensor another shape. Both shapes are NHWC, so nothing moves:
 * in place it does nothing. */
#include "kernels/backend/op_class.h"
#include "kernels/ops/host_op.h"

static int describe(const mr_op_desc *d, mr_op_info *info, mr_error *err)
{
    const mr_reshape_desc *r = &d->reshape;
    int rc = mri_op_check_count(r->h, "rows", "reshape", err);
    if (!rc) rc = mri_op_check_count(r->w, "columns", "reshape", err);
    if (!rc) rc = mri_op_check_count(r->c, "channels", "reshape", err);
    if (rc) return rc;
    info->inplace = true;
    rc = mri_op_set_output(d, info, r->h, r->w, r->c, d->in.dtype, "reshape", err);
    if (rc ||
        info->out.sample_bytes == (size_t)d->in.h * d->in.w * d->in.c * mr_tensor_element_bytes(d->in.dtype))
        return rc;
    return mr_error_set(err, MR_EINVAL,
                        "reshape: %u x %u x %u has other than the %llu values of %u x %u x %u", r->h, r->w,
                        r->c, (unsigned long long)d->in.h * d->in.w * d->in.c, d->in.h, d->in.w, d->in.c);
}

static int forward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    (void)err;
    if (a->y != a->x) memcpy(a->y, a->x, op->base.info.out.sample_bytes * a->n);
    return MR_OK;
}

static int backward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    (void)err;
    if (op->base.desc.need_dx && a->dx != a->dy) memcpy(a->dx, a->dy, op->base.info.out.sample_bytes * a->n);
    return MR_OK;
}

static const struct mri_op_code reference = {
    .prepare = mri_require_nhwc, .forward = forward, .backward = backward};
const struct mri_op_class mri_reshape_class = {
    .name = "reshape", .describe = describe, .reference = &reference};
