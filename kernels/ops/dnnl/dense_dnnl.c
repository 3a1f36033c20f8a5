/* kernels/ops/dnnl/dense_dnnl.c: fully connected layer by oneDNN. A sample is taken as the vector of floats
 * it is in memory, its layout's zero padding included, so no input is ever reordered; instead the weights'
 * columns are put into that order when they come in. Columns of padding meet zeros only: their gradient is
 * zero and they stay zero. */
#include "kernels/ops/dnnl/linear_dnnl.h"

static int prepare(mri_host_op *op, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    const dnnl_dims_t weights = {d->dense.units, (dnnl_dim_t)mri_tensor_floats(&d->in)};
    struct mri_linear *l;
    int rc = mri_linear_create(&l, op, MRI_DNNL_INNER_PRODUCT, 2, weights, dnnl_ab, err);
    if (!rc) rc = mri_linear_prepare(l, err);
    if (rc) mri_linear_release(op);
    return rc;
}

/* Column of canonical input k in the stored order. */
static size_t column_of(const mr_tensor *in, size_t k)
{
    return mri_tensor_index(in, k / in->c, (uint32_t)(k % in->c));
}

/* Zeroed units x stored columns. */
static float *row_buffer(const mri_host_op *op, mr_error *err)
{
    const uint32_t units = op->base.desc.dense.units;
    float *r = calloc((size_t)units, op->base.desc.in.sample_bytes);
    if (!r) mr_error_set(err, MR_ENOMEM, "no memory to reorder %u rows of weights", units);
    return r;
}

static int import(mri_host_op *op, bool state, uint32_t which, float *address, const float *host,
                  mr_error *err)
{
    if (which > 0) return mri_linear_import(op, state, which, address, host, err);
    const mr_op_desc *d = &op->base.desc;
    float *r = row_buffer(op, err);
    if (!r) return MR_ENOMEM;
    const size_t inputs = (size_t)op->base.info.param[0].dim[1], columns = mri_tensor_floats(&d->in);
    for (size_t u = 0; u < d->dense.units; u++)
        for (size_t k = 0; k < inputs; k++) r[u * columns + column_of(&d->in, k)] = host[u * inputs + k];
    const int rc = mri_linear_import(op, state, which, address, r, err);
    free(r);
    return rc;
}

static int export(mri_host_op *op, bool state, uint32_t which, const float *address, float *host,
                  mr_error *err)
{
    if (which > 0) return mri_linear_export(op, state, which, address, host, err);
    const mr_op_desc *d = &op->base.desc;
    float *r = row_buffer(op, err);
    if (!r) return MR_ENOMEM;
    const size_t inputs = (size_t)op->base.info.param[0].dim[1], columns = mri_tensor_floats(&d->in);
    const int rc = mri_linear_export(op, state, which, address, r, err);
    for (size_t u = 0; !rc && u < d->dense.units; u++)
        for (size_t k = 0; k < inputs; k++) host[u * inputs + k] = r[u * columns + column_of(&d->in, k)];
    free(r);
    return rc;
}

const struct mri_op_code mri_dense_dnnl = {.prepare = prepare,
                                           .release = mri_linear_release,
                                           .forward = mri_linear_forward,
                                           .backward = mri_linear_backward,
                                           .param_import = import,
                                           .param_export = export};
