/* kernels/ops/dnnl/onednn.h: the calls in which oneDNN 2 (2.6 and later) and oneDNN 3 (3.1 and later) differ,
 * with one interface for both. The build uses the version whose headers it finds.
 *
 * Version 2 describes an operation first and makes the primitive descriptor from that; version 3 makes it in
 * one call. A memory descriptor is a struct in version 2 and an opaque handle in version 3. Here it is a
 * constant pointer, and the set that made it destroys it. Descriptors that a primitive descriptor returns
 * belong to that one. */
#ifndef MRI_ONEDNN_H
#define MRI_ONEDNN_H

#include <oneapi/dnnl/dnnl.h>
#include <stdbool.h>

#if DNNL_VERSION_MAJOR >= 3
typedef const_dnnl_memory_desc_t mri_dnnl_md;
#else
typedef const dnnl_memory_desc_t *mri_dnnl_md;
#endif

/* Memory descriptors that are destroyed together. Begin with {0}. One thread. */
#define MRI_DNNL_MDS 24
struct mri_dnnl_mds {
    int count;
    bool failed; /* a descriptor of it could not be made */
    mri_dnnl_md all[MRI_DNNL_MDS];
};

/* A new f32 descriptor in the set; dnnl_format_tag_any leaves the layout to a primitive. NULL: no memory, and
 * the set is marked as failed. */
mri_dnnl_md mri_dnnl_md_create(struct mri_dnnl_mds *set, int ndims, const dnnl_dims_t dims,
                               dnnl_format_tag_t tag);
/* A copy that lives as long as the set. */
mri_dnnl_md mri_dnnl_md_copy(struct mri_dnnl_mds *set, mri_dnnl_md md);
/* The same array with the layout left to a primitive. */
mri_dnnl_md mri_dnnl_md_any(struct mri_dnnl_mds *set, mri_dnnl_md md);
void mri_dnnl_mds_destroy(struct mri_dnnl_mds *set);

enum mri_dnnl_kind { MRI_DNNL_CONVOLUTION, MRI_DNNL_DECONVOLUTION, MRI_DNNL_INNER_PRODUCT };

/* One pass of a product with weights. The gradient of src, weights or dst takes the member of its array. */
struct mri_dnnl_product {
    enum mri_dnnl_kind kind;
    dnnl_prop_kind_t pass;               /* forward_training, backward_data, backward_weights */
    mri_dnnl_md src, weights, bias, dst; /* bias NULL: none; backward_data ignores it */
    dnnl_dims_t strides, before, after;  /* inner products ignore them */
    const_dnnl_primitive_desc_t hint;    /* backward: the forward descriptor */
};
/* *out belongs to the caller. dnnl_unimplemented: this oneDNN has no code for it. */
dnnl_status_t mri_dnnl_product(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                               const struct mri_dnnl_product *p, const_dnnl_primitive_attr_t attr);

struct mri_dnnl_pooling {
    dnnl_prop_kind_t pass; /* forward_training, forward_inference, backward_data */
    dnnl_alg_kind_t algorithm;
    mri_dnnl_md src, dst; /* or their gradients */
    dnnl_dims_t strides, kernel, before, after;
    const_dnnl_primitive_desc_t hint; /* backward: the forward descriptor */
};
dnnl_status_t mri_dnnl_pooling(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                               const struct mri_dnnl_pooling *p, const_dnnl_primitive_attr_t attr);

/* max(x, 0) after the operation. */
dnnl_status_t mri_dnnl_append_relu(dnnl_post_ops_t ops);

#endif
