/* kernels/ops/dnnl/linear_dnnl.h: what convolution and dense share in oneDNN: three primitives (forward,
 * gradient to the input, gradient to the parameters) that agree on how the weights are stored.
 *
 * The weights are stored in the layout of the forward primitive at max_batch. A primitive that runs on better
 * code with another layout gets it: its weights are reordered through scratch (they are small next to the
 * work). The same goes for an input whose layout the forward primitive does not take. */
#ifndef MRI_LINEAR_DNNL_H
#define MRI_LINEAR_DNNL_H

#include "kernels/ops/dnnl/dnnl.h"

enum mri_linear_pass { MRI_LINEAR_FORWARD, MRI_LINEAR_BACKWARD_DATA, MRI_LINEAR_BACKWARD_WEIGHTS };

struct mri_linear;

/* A pass by code of our own over n samples. Arrays as a primitive of the pass has them: src or its gradient,
 * weights or theirs, dst or its gradient; bias: the forward pass's, or where backward to the weights puts its
 * gradient; NULL: none. An activation that forward fuses is applied. */
typedef void mri_linear_own_run(const struct mri_linear *l, enum mri_linear_pass pass, uint32_t n, float *src,
                                float *weights, float *dst, float *bias, void *scratch);

struct mri_linear_own {
    mri_linear_own_run *run; /* NULL: oneDNN's primitive */
    mri_dnnl_md weights;     /* as it takes or gives them; in the layer's set */
    size_t scratch_bytes;    /* for any number of samples */
};

struct mri_linear {
    mri_host_op *op;
    enum mri_dnnl_kind kind;
    uint32_t src_layout;     /* the layout that the primitives read; x is reordered if its own differs */
    struct mri_dnnl_mds mds; /* of the layer: all below, and the descriptors in own */
    mri_dnnl_md weights;     /* as stored */
    mri_dnnl_md any_weights, canonical, bias;
    bool has_bias;
    bool bare;                    /* bias and activation are the operation's own affair */
    bool flat;                    /* dense: 2 dimensions, a sample is a vector in stored order */
    bool prepared;                /* the op's scratch size is settled */
    struct mri_linear_own own[3]; /* by pass; set between create and prepare */
    struct mri_dnnl_cache cache;
};

/* NULL: the layer has no bias. */
static inline mri_dnnl_md mri_linear_bias(const struct mri_linear *l) { return l->has_bias ? l->bias : NULL; }

/* prepare() of an operation in two steps: op->own becomes a linear layer whose weights have these dimensions,
 * the dimensions of canonical order under `tag` (2: flat); *out may be changed (src_layout, the op's output,
 * passes of our own) before mri_linear_prepare() chooses the stored weights and makes the primitives of
 * max_batch. After a failure of either, or of code between them, call mri_linear_release(). */
int mri_linear_create(struct mri_linear **out, mri_host_op *op, enum mri_dnnl_kind kind, int dim_count,
                      const dnnl_dims_t weights, dnnl_format_tag_t tag, mr_error *err);
/* Between them, of convolutions: the layouts of input and output that the forward primitive is fastest with.
 */
int mri_linear_choose_layouts(struct mri_linear *l, mr_error *err);
int mri_linear_prepare(struct mri_linear *l, mr_error *err);

/* The functions that a layer puts into its struct mri_op_code. */
void mri_linear_release(mri_host_op *op); /* also when nothing was created */
int mri_linear_forward(mri_host_op *op, const mr_op_args *a, mr_error *err);
int mri_linear_backward(mri_host_op *op, const mr_op_args *a, mr_error *err);
int mri_linear_import(mri_host_op *op, bool state, uint32_t which, float *address, const float *host,
                      mr_error *err);
int mri_linear_export(mri_host_op *op, bool state, uint32_t which, const float *address, float *host,
                      mr_error *err);

/* A primitive descriptor of one pass. weights: a layout or "any". hint: the forward descriptor. The caller
 * destroys the result; NULL when oneDNN has no code. */
dnnl_primitive_desc_t mri_linear_describe(const struct mri_linear *l, enum mri_linear_pass pass,
                                          mri_dnnl_md src, mri_dnnl_md weights, mri_dnnl_md dst,
                                          dnnl_primitive_attr_t attr, const_dnnl_primitive_desc_t hint);

bool mri_linear_wants_pass(const struct mri_linear *l, enum mri_linear_pass pass);

/* The descriptors that the primitives read and write for n samples. */
mri_dnnl_md mri_linear_src(const struct mri_linear *l, struct mri_dnnl_mds *set, uint32_t n, uint32_t layout);
mri_dnnl_md mri_linear_dst(const struct mri_linear *l, struct mri_dnnl_mds *set, uint32_t n);

#endif
