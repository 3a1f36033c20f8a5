/* kernels/ops/dense_dnnl.c: fully connected layer by oneDNN. A sample is taken as the vector of floats it is
 * in memory, its layout's zero padding included, so no input is ever reordered; instead the weights' columns
 * are put into that order when they come in. Columns of padding meet zeros only: their gradient is zero and
 * they stay zero. */
#include "kernels/ops/linear_dnnl.h"

static dnnl_primitive_desc_t describe(const struct mri_linear *l, enum mri_linear_pass pass, uint32_t n,
                                      const dnnl_memory_desc_t *src, const dnnl_memory_desc_t *weights,
                                      const dnnl_memory_desc_t *dst, dnnl_primitive_attr_t attr,
                                      const_dnnl_primitive_desc_t hint)
{
    (void)n;
    dnnl_inner_product_desc_t id;
    dnnl_status_t st;
    if (pass == MRI_LINEAR_FORWARD)
        st = dnnl_inner_product_forward_desc_init(&id, dnnl_forward_training, src, weights,
                                                  mri_linear_bias(l), dst);
    else if (pass == MRI_LINEAR_BACKWARD_DATA)
        st = dnnl_inner_product_backward_data_desc_init(&id, src, weights, dst);
    else st = dnnl_inner_product_backward_weights_desc_init(&id, src, weights, mri_linear_bias(l), dst);
    dnnl_primitive_desc_t pd;
    if (st != dnnl_success ||
        dnnl_primitive_desc_create(&pd, &id, attr, mri_dnnl_engine(), hint) != dnnl_success)
        return NULL;
    return pd;
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
    if (!l) return mr_error_set(err, MR_ENOMEM, "no memory for a dense layer");
    op->own = l;
    l->op = op;
    l->describe = describe;
    l->flat = true;
    l->src_layout = d->in.layout;
    const dnnl_dims_t weights = {d->filters, (dnnl_dim_t)mri_tensor_floats(&d->in)}, bias = {d->filters};
    dnnl_memory_desc_init_by_tag(&l->any_weights, 2, weights, dnnl_f32, dnnl_format_tag_any);
    dnnl_memory_desc_init_by_tag(&l->bias, 1, bias, dnnl_f32, dnnl_a);
    rc = mri_linear_prepare(l, err);
    if (rc) release(op);
    return rc;
}

/* Column of canonical input k in the stored order. */
static size_t column_of(const mr_tensor *in, size_t k)
{
    return mri_tensor_index(in, k / in->c, (uint32_t)(k % in->c));
}

static dnnl_memory_desc_t rows(const struct mri_linear *l)
{
    dnnl_memory_desc_t md = {0};
    dnnl_memory_desc_init_by_tag(&md, 2, l->any_weights.dims, dnnl_f32, dnnl_ab);
    return md;
}

/* Zeroed units x stored columns. */
static float *row_buffer(const mri_host_op *op, mr_error *err)
{
    float *r = calloc((size_t)op->base.desc.filters, op->base.desc.in.sample_bytes);
    if (!r) mr_error_set(err, MR_ENOMEM, "no memory to reorder %u rows of weights", op->base.desc.filters);
    return r;
}

static int import(mri_host_op *op, bool state, uint32_t which, float *address, const float *host,
                  mr_error *err)
{
    (void)state;
    const struct mri_linear *l = op->own;
    const mr_op_desc *d = &op->base.desc;
    if (which == 1) {
        memcpy(address, host, d->filters * sizeof(float));
        return MR_OK;
    }
    float *r = row_buffer(op, err);
    if (!r) return MR_ENOMEM;
    const size_t inputs = (size_t)op->base.info.param[0].dim[1], columns = mri_tensor_floats(&d->in);
    for (size_t u = 0; u < d->filters; u++)
        for (size_t k = 0; k < inputs; k++) r[u * columns + column_of(&d->in, k)] = host[u * inputs + k];
    const dnnl_memory_desc_t from = rows(l);
    const int rc = mri_dnnl_reorder_once(&from, r, &l->weights, address, err);
    free(r);
    return rc;
}

static int export(mri_host_op *op, bool state, uint32_t which, const float *address, float *host,
                  mr_error *err)
{
    (void)state;
    const struct mri_linear *l = op->own;
    const mr_op_desc *d = &op->base.desc;
    if (which == 1) {
        memcpy(host, address, d->filters * sizeof(float));
        return MR_OK;
    }
    float *r = row_buffer(op, err);
    if (!r) return MR_ENOMEM;
    const size_t inputs = (size_t)op->base.info.param[0].dim[1], columns = mri_tensor_floats(&d->in);
    const dnnl_memory_desc_t to = rows(l);
    const int rc = mri_dnnl_reorder_once(&l->weights, address, &to, r, err);
    for (size_t u = 0; !rc && u < d->filters; u++)
        for (size_t k = 0; k < inputs; k++) host[u * inputs + k] = r[u * columns + column_of(&d->in, k)];
    free(r);
    return rc;
}

static int forward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    return mri_linear_forward(op->own, a, err);
}
static int backward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    return mri_linear_backward(op->own, a, err);
}

const struct mri_op_code mri_dense_dnnl = {.prepare = prepare,
                                           .release = release,
                                           .forward = forward,
                                           .backward = backward,
                                           .param_import = import,
                                           .param_export = export};
