/* kernels/ops/dnnl/onednn.c: see onednn.h. */
#include "kernels/ops/dnnl/onednn.h"

#include <stdint.h>
#include <stdlib.h>

static mri_dnnl_md failed(struct mri_dnnl_mds *set)
{
    set->failed = true;
    return NULL;
}

#if DNNL_VERSION_MAJOR >= 3

static mri_dnnl_md keep(struct mri_dnnl_mds *set, dnnl_status_t status, dnnl_memory_desc_t md)
{
    if (status != dnnl_success) return failed(set);
    return set->all[set->count++] = md;
}

mri_dnnl_md mri_dnnl_md_create(struct mri_dnnl_mds *set, int ndims, const dnnl_dims_t dims,
                               dnnl_format_tag_t tag)
{
    if (set->count == MRI_DNNL_MDS) return failed(set);
    dnnl_memory_desc_t md = NULL;
    const dnnl_status_t st = dnnl_memory_desc_create_with_tag(&md, ndims, dims, dnnl_f32, tag);
    return keep(set, st, md);
}

mri_dnnl_md mri_dnnl_md_copy(struct mri_dnnl_mds *set, mri_dnnl_md md)
{
    if (set->count == MRI_DNNL_MDS || !md) return failed(set);
    dnnl_memory_desc_t copy = NULL;
    const dnnl_status_t st = dnnl_memory_desc_clone(&copy, md);
    return keep(set, st, copy);
}

mri_dnnl_md mri_dnnl_md_any(struct mri_dnnl_mds *set, mri_dnnl_md md)
{
    int ndims = 0;
    const dnnl_dims_t *dims = NULL;
    if (!md || dnnl_memory_desc_query(md, dnnl_query_ndims_s32, &ndims) != dnnl_success ||
        dnnl_memory_desc_query(md, dnnl_query_dims, (void *)&dims) != dnnl_success)
        return failed(set);
    return mri_dnnl_md_create(set, ndims, *dims, dnnl_format_tag_any);
}

/* dnnl_memory_desc_destroy() takes no pointer to const. */
static void destroy_md(mri_dnnl_md md) { dnnl_memory_desc_destroy((dnnl_memory_desc_t)(uintptr_t)md); }

static dnnl_status_t convolution(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                                 const struct mri_dnnl_product *p, const_dnnl_primitive_attr_t attr)
{
    static const dnnl_dims_t dense = {0}; /* dilation */
    const dnnl_alg_kind_t direct = dnnl_convolution_direct;
    if (p->pass == dnnl_backward_data)
        return dnnl_convolution_backward_data_primitive_desc_create(out, engine, direct, p->src, p->weights,
                                                                    p->dst, p->strides, dense, p->before,
                                                                    p->after, p->hint, attr);
    if (p->pass == dnnl_backward_weights)
        return dnnl_convolution_backward_weights_primitive_desc_create(
            out, engine, direct, p->src, p->weights, p->bias, p->dst, p->strides, dense, p->before, p->after,
            p->hint, attr);
    return dnnl_convolution_forward_primitive_desc_create(out, engine, p->pass, direct, p->src, p->weights,
                                                          p->bias, p->dst, p->strides, dense, p->before,
                                                          p->after, attr);
}

static dnnl_status_t deconvolution(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                                   const struct mri_dnnl_product *p, const_dnnl_primitive_attr_t attr)
{
    static const dnnl_dims_t dense = {0};
    const dnnl_alg_kind_t direct = dnnl_deconvolution_direct;
    if (p->pass == dnnl_backward_data)
        return dnnl_deconvolution_backward_data_primitive_desc_create(out, engine, direct, p->src, p->weights,
                                                                      p->dst, p->strides, dense, p->before,
                                                                      p->after, p->hint, attr);
    if (p->pass == dnnl_backward_weights)
        return dnnl_deconvolution_backward_weights_primitive_desc_create(
            out, engine, direct, p->src, p->weights, p->bias, p->dst, p->strides, dense, p->before, p->after,
            p->hint, attr);
    return dnnl_deconvolution_forward_primitive_desc_create(out, engine, p->pass, direct, p->src, p->weights,
                                                            p->bias, p->dst, p->strides, dense, p->before,
                                                            p->after, attr);
}

static dnnl_status_t inner_product(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                                   const struct mri_dnnl_product *p, const_dnnl_primitive_attr_t attr)
{
    if (p->pass == dnnl_backward_data)
        return dnnl_inner_product_backward_data_primitive_desc_create(out, engine, p->src, p->weights, p->dst,
                                                                      p->hint, attr);
    if (p->pass == dnnl_backward_weights)
        return dnnl_inner_product_backward_weights_primitive_desc_create(out, engine, p->src, p->weights,
                                                                         p->bias, p->dst, p->hint, attr);
    return dnnl_inner_product_forward_primitive_desc_create(out, engine, p->pass, p->src, p->weights, p->bias,
                                                            p->dst, attr);
}

dnnl_status_t mri_dnnl_pooling(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                               const struct mri_dnnl_pooling *p, const_dnnl_primitive_attr_t attr)
{
    static const dnnl_dims_t dense = {0};
    if (p->pass == dnnl_backward_data)
        return dnnl_pooling_backward_primitive_desc_create(out, engine, p->algorithm, p->src, p->dst,
                                                           p->strides, p->kernel, dense, p->before, p->after,
                                                           p->hint, attr);
    return dnnl_pooling_forward_primitive_desc_create(out, engine, p->pass, p->algorithm, p->src, p->dst,
                                                      p->strides, p->kernel, dense, p->before, p->after,
                                                      attr);
}

dnnl_status_t mri_dnnl_append_relu(dnnl_post_ops_t ops)
{
    return dnnl_post_ops_append_eltwise(ops, dnnl_eltwise_relu, 0, 0);
}

#else /* oneDNN 2 */

static mri_dnnl_md keep(struct mri_dnnl_mds *set, dnnl_memory_desc_t md)
{
    dnnl_memory_desc_t *kept = malloc(sizeof *kept);
    if (!kept) return failed(set);
    *kept = md;
    return set->all[set->count++] = kept;
}

mri_dnnl_md mri_dnnl_md_create(struct mri_dnnl_mds *set, int ndims, const dnnl_dims_t dims,
                               dnnl_format_tag_t tag)
{
    dnnl_memory_desc_t md = {0};
    if (set->count == MRI_DNNL_MDS ||
        dnnl_memory_desc_init_by_tag(&md, ndims, dims, dnnl_f32, tag) != dnnl_success)
        return failed(set);
    return keep(set, md);
}

mri_dnnl_md mri_dnnl_md_copy(struct mri_dnnl_mds *set, mri_dnnl_md md)
{
    return set->count == MRI_DNNL_MDS || !md ? failed(set) : keep(set, *md);
}

mri_dnnl_md mri_dnnl_md_any(struct mri_dnnl_mds *set, mri_dnnl_md md)
{
    return md ? mri_dnnl_md_create(set, md->ndims, md->dims, dnnl_format_tag_any) : failed(set);
}

static void destroy_md(mri_dnnl_md md) { free((void *)(uintptr_t)md); }

/* Takes the result of describing an operation. */
static dnnl_status_t create(dnnl_primitive_desc_t *out, dnnl_engine_t engine, dnnl_status_t described,
                            const_dnnl_op_desc_t desc, const_dnnl_primitive_desc_t hint,
                            const_dnnl_primitive_attr_t attr)
{
    return described == dnnl_success ? dnnl_primitive_desc_create(out, desc, attr, engine, hint) : described;
}

static dnnl_status_t convolution(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                                 const struct mri_dnnl_product *p, const_dnnl_primitive_attr_t attr)
{
    const dnnl_alg_kind_t direct = dnnl_convolution_direct;
    dnnl_convolution_desc_t d;
    dnnl_status_t st;
    if (p->pass == dnnl_backward_data)
        st = dnnl_convolution_backward_data_desc_init(&d, direct, p->src, p->weights, p->dst, p->strides,
                                                      p->before, p->after);
    else if (p->pass == dnnl_backward_weights)
        st = dnnl_convolution_backward_weights_desc_init(&d, direct, p->src, p->weights, p->bias, p->dst,
                                                         p->strides, p->before, p->after);
    else
        st = dnnl_convolution_forward_desc_init(&d, p->pass, direct, p->src, p->weights, p->bias, p->dst,
                                                p->strides, p->before, p->after);
    return create(out, engine, st, &d, p->hint, attr);
}

static dnnl_status_t deconvolution(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                                   const struct mri_dnnl_product *p, const_dnnl_primitive_attr_t attr)
{
    const dnnl_alg_kind_t direct = dnnl_deconvolution_direct;
    dnnl_deconvolution_desc_t d;
    dnnl_status_t st;
    if (p->pass == dnnl_backward_data)
        st = dnnl_deconvolution_backward_data_desc_init(&d, direct, p->src, p->weights, p->dst, p->strides,
                                                        p->before, p->after);
    else if (p->pass == dnnl_backward_weights)
        st = dnnl_deconvolution_backward_weights_desc_init(&d, direct, p->src, p->weights, p->bias, p->dst,
                                                           p->strides, p->before, p->after);
    else
        st = dnnl_deconvolution_forward_desc_init(&d, p->pass, direct, p->src, p->weights, p->bias, p->dst,
                                                  p->strides, p->before, p->after);
    return create(out, engine, st, &d, p->hint, attr);
}

static dnnl_status_t inner_product(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                                   const struct mri_dnnl_product *p, const_dnnl_primitive_attr_t attr)
{
    dnnl_inner_product_desc_t d;
    dnnl_status_t st;
    if (p->pass == dnnl_backward_data)
        st = dnnl_inner_product_backward_data_desc_init(&d, p->src, p->weights, p->dst);
    else if (p->pass == dnnl_backward_weights)
        st = dnnl_inner_product_backward_weights_desc_init(&d, p->src, p->weights, p->bias, p->dst);
    else st = dnnl_inner_product_forward_desc_init(&d, p->pass, p->src, p->weights, p->bias, p->dst);
    return create(out, engine, st, &d, p->hint, attr);
}

dnnl_status_t mri_dnnl_pooling(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                               const struct mri_dnnl_pooling *p, const_dnnl_primitive_attr_t attr)
{
    dnnl_pooling_desc_t d;
    dnnl_status_t st;
    if (p->pass == dnnl_backward_data)
        st = dnnl_pooling_backward_desc_init(&d, p->algorithm, p->src, p->dst, p->strides, p->kernel,
                                             p->before, p->after);
    else
        st = dnnl_pooling_forward_desc_init(&d, p->pass, p->algorithm, p->src, p->dst, p->strides, p->kernel,
                                            p->before, p->after);
    return create(out, engine, st, &d, p->hint, attr);
}

dnnl_status_t mri_dnnl_append_relu(dnnl_post_ops_t ops)
{
    return dnnl_post_ops_append_eltwise(ops, 1.0f, dnnl_eltwise_relu, 0, 0);
}

#endif

void mri_dnnl_mds_destroy(struct mri_dnnl_mds *set)
{
    for (int i = 0; i < set->count; i++) destroy_md(set->all[i]);
    *set = (struct mri_dnnl_mds){0};
}

dnnl_status_t mri_dnnl_product(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                               const struct mri_dnnl_product *p, const_dnnl_primitive_attr_t attr)
{
    switch (p->kind) {
    case MRI_DNNL_CONVOLUTION: return convolution(out, engine, p, attr);
    case MRI_DNNL_DECONVOLUTION: return deconvolution(out, engine, p, attr);
    case MRI_DNNL_INNER_PRODUCT: return inner_product(out, engine, p, attr);
    }
    return dnnl_invalid_arguments;
}
