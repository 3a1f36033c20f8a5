/* kernels/ops/dnnl/conv2d_dnnl.c: convolution by oneDNN, in whatever layout it is fastest: channels in blocks
 * of 16 or 8, or NHWC. Same meaning as conv2d.c; sums run in another order. */
#include "kernels/ops/dnnl/linear_dnnl.h"

static dnnl_primitive_desc_t describe(const struct mri_linear *l, enum mri_linear_pass pass, uint32_t n,
                                      const dnnl_memory_desc_t *src, const dnnl_memory_desc_t *weights,
                                      const dnnl_memory_desc_t *dst, dnnl_primitive_attr_t attr,
                                      const_dnnl_primitive_desc_t hint)
{
    (void)n;
    const mr_op_window *w = &l->op->base.desc.conv2d.window;
    const dnnl_dims_t strides = {w->stride_h, w->stride_w}, before = {w->pad_top, w->pad_left},
                      after = {w->pad_bottom, w->pad_right};
    dnnl_convolution_desc_t cd;
    dnnl_status_t st;
    if (pass == MRI_LINEAR_FORWARD)
        st = dnnl_convolution_forward_desc_init(&cd, dnnl_forward_training, dnnl_convolution_direct, src,
                                                weights, mri_linear_bias(l), dst, strides, before, after);
    else if (pass == MRI_LINEAR_BACKWARD_DATA)
        st = dnnl_convolution_backward_data_desc_init(&cd, dnnl_convolution_direct, src, weights, dst,
                                                      strides, before, after);
    else
        st = dnnl_convolution_backward_weights_desc_init(&cd, dnnl_convolution_direct, src, weights,
                                                         mri_linear_bias(l), dst, strides, before, after);
    return mri_linear_primitive(st, &cd, attr, hint);
}

/* Forward at max_batch with the output's layout open; the input's as given, or open too. */
static dnnl_primitive_desc_t probe(const struct mri_linear *l, bool open_src, dnnl_primitive_attr_t attr)
{
    const mr_op_desc *d = &l->op->base.desc;
    dnnl_memory_desc_t src = mri_linear_src(l, d->max_batch, d->in.layout),
                       dst = mri_linear_dst(l, d->max_batch);
    dst = mri_dnnl_any(&dst);
    if (open_src) src = mri_dnnl_any(&src);
    return describe(l, MRI_LINEAR_FORWARD, d->max_batch, &src, &l->any_weights, &dst, attr, NULL);
}

/* Settle the layouts of input and output. Ours are only those that keep samples apart; NHWC when oneDNN picks
 * another. */
static int choose_layouts(struct mri_linear *l, mr_error *err)
{
    const mr_op_desc *d = &l->op->base.desc;
    mr_tensor *out = &l->op->base.info.out;
    if (d->want == MR_WANT_NHWC) return MR_OK; /* what the output is set to already */
    dnnl_primitive_attr_t attr;
    const int rc = mri_dnnl_attr(&attr, d->activation == MR_ACT_RELU, err);
    if (rc) return rc;
    dnnl_primitive_desc_t pd = probe(l, false, attr);
    if (!pd || !mri_dnnl_is_fast(pd)) {
        if (pd) dnnl_primitive_desc_destroy(pd);
        pd = probe(l, true, attr);
    }
    dnnl_primitive_attr_destroy(attr);
    if (!pd) return mr_error_set(err, MR_EUNSUPPORTED, "oneDNN has no convolution of this shape");
    uint32_t src_layout, dst_layout;
    const bool known =
        mri_dnnl_layout_of(&d->in, d->max_batch, dnnl_primitive_desc_query_md(pd, dnnl_query_src_md, 0),
                           &src_layout) &&
        mri_dnnl_layout_of(out, d->max_batch, dnnl_primitive_desc_query_md(pd, dnnl_query_dst_md, 0),
                           &dst_layout);
    dnnl_primitive_desc_destroy(pd);
    l->src_layout = known ? src_layout : MR_LAYOUT_NHWC;
    mri_tensor_set_layout(out, known ? dst_layout : MR_LAYOUT_NHWC);
    return MR_OK;
}

static int prepare(mri_host_op *op, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    const mr_op_window *w = &d->conv2d.window;
    const dnnl_dims_t weights = {d->conv2d.filters, d->in.c, w->kernel_h, w->kernel_w};
    struct mri_linear *l;
    int rc = mri_linear_create(&l, op, describe, 4, weights, dnnl_ohwi, err);
    if (!rc) rc = choose_layouts(l, err);
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
