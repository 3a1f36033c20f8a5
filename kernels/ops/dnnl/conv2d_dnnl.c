/* kernels/ops/dnnl/conv2d_dnnl.c: convolution by oneDNN, in whatever layout it is fastest: channels in blocks
 * of 16 or 8, or NHWC. Same meaning as conv2d.c; sums run in another order.
 *
 * Each pass is oneDNN's direct one or Winograd's, which is our own; winograd.h says which, by the layer's
 * shape. Gradients of depthwise weights are our own where oneDNN's are slow (depthwise.h). All of
 * that is settled when the operation is made. */
#include "kernels/ops/dnnl/winograd.h"

#include "kernels/backend/op_class.h"
#include "kernels/ops/dnnl/depthwise.h"

static void choose_algorithms(struct mri_linear *l)
{
    const mr_convolution choice = mri_host_device_of(l->op->base.device)->convolution;
    for (int i = MRI_LINEAR_FORWARD; i <= MRI_LINEAR_BACKWARD_WEIGHTS; i++) {
        const enum mri_linear_pass pass = (enum mri_linear_pass)i;
        if (!mri_linear_wants_pass(l, pass)) continue;
        if (choice != MR_CONVOLUTION_DIRECT) mri_winograd_take(l, pass, choice == MR_CONVOLUTION_WINOGRAD);
        l->op->base.info.algorithm[i] = l->own[i].run ? "winograd" : "direct";
    }
}

/* Direct code for the gradient of the weights that is not oneDNN's, where oneDNN's would be slow. */
static int choose_depthwise(struct mri_linear *l, mr_error *err)
{
    const uint32_t n = l->op->base.desc.max_batch;
    if (!mri_linear_wants_pass(l, MRI_LINEAR_BACKWARD_WEIGHTS) || !mri_depthwise_fits(l)) return MR_OK;
    dnnl_primitive_attr_t attr;
    const int rc = mri_dnnl_attr(&attr, false, err);
    if (rc) return rc;
    struct mri_dnnl_mds set = {0};
    mri_dnnl_md src = mri_linear_src(l, &set, n, l->src_layout), dst = mri_linear_dst(l, &set, n),
                any = l->any_weights;
    dnnl_primitive_desc_t forward = mri_linear_describe(l, MRI_LINEAR_FORWARD, src, any, dst, attr, NULL),
                          pd = NULL;
    if (forward) pd = mri_linear_describe(l, MRI_LINEAR_BACKWARD_WEIGHTS, src, any, dst, attr, forward);
    mri_dnnl_mds_destroy(&set);
    if (!pd || !mri_dnnl_is_fast(pd)) mri_depthwise_take(l);
    if (pd) dnnl_primitive_desc_destroy(pd);
    if (forward) dnnl_primitive_desc_destroy(forward);
    dnnl_primitive_attr_destroy(attr);
    return MR_OK;
}

static int prepare(mri_host_op *op, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    const mr_op_window *w = &d->conv2d.window;
    const uint32_t groups = mri_op_groups(d);
    const dnnl_dims_t plain = {d->conv2d.filters, d->in.c, w->kernel_h, w->kernel_w},
                      grouped = {groups, d->conv2d.filters / groups, d->in.c / groups, w->kernel_h,
                                 w->kernel_w};
    struct mri_linear *l;
    int rc = groups > 1 ? mri_linear_create(&l, op, MRI_DNNL_CONVOLUTION, 5, grouped, dnnl_gohwi, err)
                        : mri_linear_create(&l, op, MRI_DNNL_CONVOLUTION, 4, plain, dnnl_ohwi, err);
    if (!rc) rc = mri_linear_choose_layouts(l, err);
    if (!rc) choose_algorithms(l);
    if (!rc) rc = choose_depthwise(l, err);
    if (!rc) rc = mri_linear_prepare(l, err);
    if (rc) mri_linear_release(op);
    return rc;
}

const struct mri_op_code mri_conv2d_dnnl = {.prepare = prepare,
                                            .release = mri_linear_release,
                                            .forward = mri_linear_forward,
                                            .backward = mri_linear_backward,
                                            .param_import = mri_linear_import,
                                            .param_export = mri_linear_export};
