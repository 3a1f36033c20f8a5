/* kernels/ops/dnnl/pool2d_dnnl.c: pooling by oneDNN in the layout its input has. Same meaning as pool2d.c;
 * saved is oneDNN's workspace, the place of each maximum. */
#include "kernels/ops/dnnl/dnnl.h"

struct pool {
    struct mri_dnnl_cache cache;
};

struct variant {
    struct mri_dnnl_step train, infer, backward;
    size_t saved_bytes;
};

static void drop_variant(void *pointer)
{
    struct variant *v = pointer;
    mri_dnnl_step_destroy(&v->train);
    mri_dnnl_step_destroy(&v->infer);
    mri_dnnl_step_destroy(&v->backward);
    free(v);
}

/* kind: forward training or inference; dnnl_backward_data with hint. */
static int describe(const mri_host_op *op, dnnl_prop_kind_t kind, uint32_t n,
                    const_dnnl_primitive_desc_t hint, dnnl_primitive_desc_t *out, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    const mr_op_window *w = &d->pool2d.window;
    dnnl_primitive_attr_t attr;
    const int rc = mri_dnnl_attr(&attr, false, err);
    if (rc) return rc;
    struct mri_dnnl_mds set = {0};
    const struct mri_dnnl_pooling p = {.pass = kind,
                                       .algorithm = d->pool2d.average ? dnnl_pooling_avg_exclude_padding
                                                                      : dnnl_pooling_max,
                                       .src = mri_dnnl_tensor(&set, &d->in, n, d->in.layout),
                                       .dst = mri_dnnl_tensor(&set, &op->base.info.out, n, d->in.layout),
                                       .strides = {w->stride_h, w->stride_w},
                                       .kernel = {w->kernel_h, w->kernel_w},
                                       .before = {w->pad_top, w->pad_left},
                                       .after = {w->pad_bottom, w->pad_right},
                                       .hint = hint};
    const dnnl_status_t st =
        set.failed ? dnnl_out_of_memory : mri_dnnl_pooling(out, mri_dnnl_engine(), &p, attr);
    mri_dnnl_mds_destroy(&set);
    dnnl_primitive_attr_destroy(attr);
    return mri_dnnl_error(st, "describing a pooling", err);
}

static int create_step(struct mri_dnnl_step *out, const mri_host_op *op, bool backward, uint32_t n,
                       dnnl_primitive_desc_t pd, mr_error *err)
{
    const uint32_t layout = op->base.desc.in.layout;
    struct mri_dnnl_mds set = {0};
    mri_dnnl_md src = mri_dnnl_tensor(&set, &op->base.desc.in, n, layout),
                dst = mri_dnnl_tensor(&set, &op->base.info.out, n, layout),
                work = dnnl_primitive_desc_query_md(pd, dnnl_query_workspace_md, 0);
    const bool has_work = work && dnnl_memory_desc_get_size(work) > 0;
    const struct mri_dnnl_arg args[] = {{backward ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, src},
                                        {backward ? DNNL_ARG_DIFF_DST : DNNL_ARG_DST, dst},
                                        {has_work ? DNNL_ARG_WORKSPACE : 0, work},
                                        {0, NULL}};
    const int rc = mri_dnnl_step_create(out, pd, args, err);
    mri_dnnl_mds_destroy(&set);
    return rc;
}

static int fill_training(struct variant *v, const mri_host_op *op, uint32_t n, mr_error *err)
{
    dnnl_primitive_desc_t forward, pd;
    int rc = describe(op, dnnl_forward_training, n, NULL, &forward, err);
    if (rc) return rc;
    mri_dnnl_md work = dnnl_primitive_desc_query_md(forward, dnnl_query_workspace_md, 0);
    v->saved_bytes = work ? dnnl_memory_desc_get_size(work) : 0;
    rc = describe(op, dnnl_backward_data, n, forward, &pd, err);
    if (!rc) rc = create_step(&v->backward, op, true, n, pd, err);
    if (rc) dnnl_primitive_desc_destroy(forward);
    else rc = create_step(&v->train, op, false, n, forward, err);
    return rc;
}

static int make_variant(mri_host_op *op, uint32_t n, void **out, mr_error *err)
{
    struct variant *v = calloc(1, sizeof *v);
    if (!v) return mr_error_set(err, MR_ENOMEM, "no memory for a batch of %u", n);
    dnnl_primitive_desc_t pd;
    int rc = describe(op, dnnl_forward_inference, n, NULL, &pd, err);
    if (!rc) rc = create_step(&v->infer, op, false, n, pd, err);
    if (!rc && op->base.desc.training) rc = fill_training(v, op, n, err);
    if (rc) drop_variant(v);
    else *out = v;
    return rc;
}

static void release(mri_host_op *op)
{
    struct pool *p = op->own;
    mri_dnnl_cache_clear(&p->cache, drop_variant);
    free(p);
}

static size_t scratch_of(const struct variant *v)
{
    const size_t a = v->train.scratch_bytes, b = v->infer.scratch_bytes, c = v->backward.scratch_bytes;
    return a > b ? (a > c ? a : c) : b > c ? b : c;
}

static int prepare(mri_host_op *op, mr_error *err)
{
    int rc = mri_dnnl_start(err);
    if (rc) return rc;
    struct pool *p = op->own = calloc(1, sizeof *p);
    if (!p) return mr_error_set(err, MR_ENOMEM, "no memory for a pooling");
    mri_tensor_set_layout(&op->base.info.out, op->base.desc.in.layout);
    void *v;
    rc = mri_dnnl_variant(&p->cache, op, op->base.desc.max_batch, make_variant, drop_variant, &v, err);
    if (rc) {
        release(op);
        return rc;
    }
    op->base.info.saved_bytes = ((struct variant *)v)->saved_bytes;
    op->base.info.scratch_bytes = scratch_of(v);
    return MR_OK;
}

static int forward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    struct pool *p = op->own;
    void *pointer, *x;
    const int rc = mri_dnnl_variant(&p->cache, op, a->n, make_variant, drop_variant, &pointer, err);
    if (rc) return rc;
    struct variant *v = pointer;
    memcpy(&x, &a->x, sizeof x); /* oneDNN's handles know no const; this one is only read */
    void *const addresses[] = {x, a->y, a->saved};
    return mri_dnnl_step_run(a->training && op->base.desc.training ? &v->train : &v->infer, addresses,
                             a->scratch, err);
}

static int backward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    if (!op->base.desc.need_dx) return MR_OK;
    struct pool *p = op->own;
    void *pointer;
    const int rc = mri_dnnl_variant(&p->cache, op, a->n, make_variant, drop_variant, &pointer, err);
    if (rc) return rc;
    struct variant *v = pointer;
    void *const addresses[] = {a->dx, a->dy, a->saved};
    return mri_dnnl_step_run(&v->backward, addresses, a->scratch, err);
}

const struct mri_op_code mri_pool2d_dnnl = {
    .prepare = prepare, .release = release, .forward = forward, .backward = backward};
