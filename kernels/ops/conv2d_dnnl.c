/* kernels/ops/conv2d_dnnl.c: convolution by oneDNN, in whatever layout it is fastest: channels in blocks of
 * 16 or 8, or NHWC. Same meaning as conv2d_ref.c; sums run in another order. */
#include "kernels/ops/linear_dnnl.h"

static dnnl_primitive_desc_t describe(const struct mri_linear *l, enum mri_linear_pass pass, uint32_t n,
                                      const dnnl_memory_desc_t *src, const dnnl_memory_desc_t *weights,
                                      const dnnl_memory_desc_t *dst, dnnl_primitive_attr_t attr,
                                      const_dnnl_primitive_desc_t hint)
{
    (void)n;
    const mr_op_desc *d = &l->op->base.desc;
    const dnnl_dims_t strides = {d->stride_h, d->stride_w}, before = {d->pad_top, d->pad_left},
                      after = {d->pad_bottom, d->pad_right};
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
    dnnl_primitive_desc_t pd;
    if (st != dnnl_success ||
        dnnl_primitive_desc_create(&pd, &cd, attr, mri_dnnl_engine(), hint) != dnnl_success)
        return NULL;
    return pd;
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
    if (d->want == MR_WANT_NHWC) { /* what the output is set to already */
        l->src_layout = d->in.layout;
        return MR_OK;
    }
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

static void release(mri_host_op *op)
{
    mri_linear_release(op->own);
    free(op->own);
}

static int prepare(mri_host_op *op, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    int rc = mri_dnnl_start(err);
    if (rc) return rc;
    struct mri_linear *l = calloc(1, sizeof *l);
    if (!l) return mr_error_set(err, MR_ENOMEM, "no memory for a convolution");
    op->own = l;
    l->op = op;
    l->describe = describe;
    const dnnl_dims_t weights = {d->filters, d->in.c, d->kernel_h, d->kernel_w}, bias = {d->filters};
    dnnl_memory_desc_init_by_tag(&l->any_weights, 4, weights, dnnl_f32, dnnl_format_tag_any);
    dnnl_memory_desc_init_by_tag(&l->bias, 1, bias, dnnl_f32, dnnl_a);
    rc = choose_layouts(l, err);
    if (!rc) rc = mri_linear_prepare(l, err);
    if (rc) release(op);
    return rc;
}

static dnnl_memory_desc_t canonical(const struct mri_linear *l)
{
    dnnl_memory_desc_t md = {0};
    dnnl_memory_desc_init_by_tag(&md, 4, l->any_weights.dims, dnnl_f32, dnnl_ohwi);
    return md;
}

static int import(mri_host_op *op, bool state, uint32_t which, float *address, const float *host,
                  mr_error *err)
{
    (void)state;
    const struct mri_linear *l = op->own;
    const dnnl_memory_desc_t from = canonical(l);
    if (which == 0) return mri_dnnl_reorder_once(&from, host, &l->weights, address, err);
    memcpy(address, host, op->base.info.param[1].count * sizeof(float));
    return MR_OK;
}

static int export(mri_host_op *op, bool state, uint32_t which, const float *address, float *host,
                  mr_error *err)
{
    (void)state;
    const struct mri_linear *l = op->own;
    const dnnl_memory_desc_t to = canonical(l);
    if (which == 0) return mri_dnnl_reorder_once(&l->weights, address, &to, host, err);
    memcpy(host, address, op->base.info.param[1].count * sizeof(float));
    return MR_OK;
}

static int forward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    return mri_linear_forward(op->own, a, err);
}
static int backward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    return mri_linear_backward(op->own, a, err);
}

const struct mri_op_code mri_conv2d_dnnl = {.prepare = prepare,
                                            .release = release,
                                            .forward = forward,
                                            .backward = backward,
                                            .param_import = import,
                                            .param_export = export};
