/* kernels/ops/dnnl/linear_dnnl.c: see linear_dnnl.h.
 *
 * Scratch of a call:  [ primitive's own ][ x or dx, dy, weights: each in the primitive's layout, where that
 * is another ]
 *
 * Layouts suit the forward pass. Where oneDNN has only its reference for a backward pass in them, which is
 * slower by orders of magnitude, that pass runs on copies in a plain layout. Forward is the same in training
 * and without, so the layouts of the operation do not change. */
#include "kernels/ops/dnnl/linear_dnnl.h"

#include "kernels/backend/op_class.h"

struct pass {
    struct mri_dnnl_step run, weights, src, dst; /* all but run: reorders, present only when needed */
    size_t src_at, dst_at, weights_at, scratch_bytes;
    uint32_t src_layout, dst_layout; /* of the primitive */
};

struct variant {
    struct pass pass[3];
    void *own_scratch; /* when this batch size needs more than the op's scratch holds */
};

mri_dnnl_md mri_linear_src(const struct mri_linear *l, struct mri_dnnl_mds *set, uint32_t n, uint32_t layout)
{
    const mr_tensor *in = &l->op->base.desc.in;
    if (!l->flat) return mri_dnnl_tensor(set, in, n, layout);
    const dnnl_dims_t dims = {n, (dnnl_dim_t)mri_tensor_floats(in)};
    return mri_dnnl_md_create(set, 2, dims, dnnl_ab);
}

static mri_dnnl_md dst_as(const struct mri_linear *l, struct mri_dnnl_mds *set, uint32_t n, uint32_t layout)
{
    const mr_tensor *out = &l->op->base.info.out;
    if (!l->flat) return mri_dnnl_tensor(set, out, n, layout);
    const dnnl_dims_t dims = {n, out->c};
    return mri_dnnl_md_create(set, 2, dims, dnnl_ab);
}

mri_dnnl_md mri_linear_dst(const struct mri_linear *l, struct mri_dnnl_mds *set, uint32_t n)
{
    return dst_as(l, set, n, l->op->base.info.out.layout);
}

dnnl_primitive_desc_t mri_linear_describe(const struct mri_linear *l, enum mri_linear_pass pass,
                                          mri_dnnl_md src, mri_dnnl_md weights, mri_dnnl_md dst,
                                          dnnl_primitive_attr_t attr, const_dnnl_primitive_desc_t hint)
{
    static const dnnl_prop_kind_t kinds[3] = {dnnl_forward_training, dnnl_backward_data,
                                              dnnl_backward_weights};
    struct mri_dnnl_product p = {.kind = l->kind,
                                 .pass = kinds[pass],
                                 .src = src,
                                 .weights = weights,
                                 .bias = mri_linear_bias(l),
                                 .dst = dst,
                                 .hint = hint};
    if (!l->flat) {
        const mr_op_window *w = &l->op->base.desc.conv2d.window;
        p.strides[0] = w->stride_h, p.strides[1] = w->stride_w;
        p.before[0] = w->pad_top, p.before[1] = w->pad_left;
        p.after[0] = w->pad_bottom, p.after[1] = w->pad_right;
    }
    dnnl_primitive_desc_t pd;
    return mri_dnnl_product(&pd, mri_dnnl_engine(), &p, attr) == dnnl_success ? pd : NULL;
}

static mri_dnnl_md weights_of(const_dnnl_primitive_desc_t pd, enum mri_linear_pass pass)
{
    return dnnl_primitive_desc_query_md(
        pd, pass == MRI_LINEAR_BACKWARD_WEIGHTS ? dnnl_query_diff_weights_md : dnnl_query_weights_md, 0);
}

static bool fuses_relu(const struct mri_linear *l, enum mri_linear_pass pass)
{
    return pass == MRI_LINEAR_FORWARD && !l->bare && l->op->base.desc.activation == MR_ACT_RELU;
}

static bool is_reference(const_dnnl_primitive_desc_t pd)
{
    return strncmp(mri_dnnl_implementation(pd), "ref", 3) == 0;
}

/* With fewer multiplications and additions per sample, copies of x and dy cost more memory traffic than they
 * save. */
#define WORTH_COPIES 32768.0

/* A backward pass in a plain layout instead of the reference *pd, where oneDNN has code for it. */
static void avoid_reference(const struct mri_linear *l, struct mri_dnnl_mds *set, enum mri_linear_pass pass,
                            uint32_t n, const_dnnl_primitive_desc_t hint, dnnl_primitive_attr_t attr,
                            struct pass *p, dnnl_primitive_desc_t *pd)
{
    static const uint32_t plain[] = {MRI_LAYOUT_NCHW, MR_LAYOUT_NHWC};
    const bool worth = !l->flat && l->op->base.info.flops_per_sample >= WORTH_COPIES;
    for (size_t i = 0; worth && is_reference(*pd) && i < MRI_ARRAY_COUNT(plain); i++) {
        mri_dnnl_md src = mri_linear_src(l, set, n, plain[i]), dst = dst_as(l, set, n, plain[i]);
        dnnl_primitive_desc_t other = mri_linear_describe(l, pass, src, l->any_weights, dst, attr, hint);
        if (other && !is_reference(other)) {
            dnnl_primitive_desc_destroy(*pd);
            *pd = other;
            p->src_layout = p->dst_layout = plain[i];
        } else if (other) dnnl_primitive_desc_destroy(other);
    }
}

/* Destroys the set and *pd where a descriptor of the set could not be made, or where there is no *pd. */
static int end_of_describing(struct mri_dnnl_mds *set, dnnl_primitive_desc_t *pd, const struct mri_linear *l,
                             mr_error *err)
{
    const bool failed = set->failed;
    mri_dnnl_mds_destroy(set);
    if (*pd && !failed) return MR_OK;
    if (*pd) dnnl_primitive_desc_destroy(*pd);
    *pd = NULL;
    return failed
               ? mr_error_set(err, MR_ENOMEM, "no memory for the layouts of %s", l->op->base.is->name)
               : mr_error_set(err, MR_EUNSUPPORTED, "oneDNN has no %s of this shape", l->op->base.is->name);
}

/* The pass with the stored weights, unless free choice of layout finds better code. */
static int describe_pass(const struct mri_linear *l, enum mri_linear_pass pass, uint32_t n,
                         const_dnnl_primitive_desc_t hint, struct pass *p, dnnl_primitive_desc_t *out,
                         mr_error *err)
{
    dnnl_primitive_attr_t attr;
    const int rc = mri_dnnl_attr(&attr, fuses_relu(l, pass), err);
    if (rc) return rc;
    p->src_layout = l->src_layout, p->dst_layout = l->op->base.info.out.layout;
    struct mri_dnnl_mds set = {0};
    mri_dnnl_md src = mri_linear_src(l, &set, n, l->src_layout), dst = mri_linear_dst(l, &set, n);
    dnnl_primitive_desc_t open = mri_linear_describe(l, pass, src, l->any_weights, dst, attr, hint),
                          stored = NULL;
    if (!open || !dnnl_memory_desc_equal(weights_of(open, pass), l->weights))
        stored = mri_linear_describe(l, pass, src, l->weights, dst, attr, hint);
    if (open && stored && strcmp(mri_dnnl_implementation(open), mri_dnnl_implementation(stored)) != 0) {
        dnnl_primitive_desc_destroy(stored);
        stored = NULL;
    }
    *out = stored ? stored : open;
    if (stored && open) dnnl_primitive_desc_destroy(open);
    if (pass != MRI_LINEAR_FORWARD && *out) avoid_reference(l, &set, pass, n, hint, attr, p, out);
    dnnl_primitive_attr_destroy(attr);
    return end_of_describing(&set, out, l, err);
}

/* Of src, weights, dst, bias. */
static const int ids[3][4] = {
    {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_BIAS},
    {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST, 0},
    {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_BIAS},
};

static int create_run(struct pass *p, const struct mri_linear *l, enum mri_linear_pass pass,
                      dnnl_primitive_desc_t pd, uint32_t n, mr_error *err)
{
    struct mri_dnnl_mds set = {0};
    const struct mri_dnnl_arg args[] = {{ids[pass][0], mri_linear_src(l, &set, n, p->src_layout)},
                                        {ids[pass][1], weights_of(pd, pass)},
                                        {ids[pass][2], dst_as(l, &set, n, p->dst_layout)},
                                        {mri_linear_bias(l) ? ids[pass][3] : 0, l->bias},
                                        {0, NULL}};
    const int rc = mri_dnnl_step_create(&p->run, pd, args, err);
    mri_dnnl_mds_destroy(&set);
    return rc;
}

/* The layouts that a pass reads and writes, and the layouts of the arrays it is given. */
struct layouts {
    mri_dnnl_md weights, mine, theirs, my_dst, their_dst;
};

static int create_reorders(struct pass *p, const struct mri_linear *l, enum mri_linear_pass pass,
                           const struct layouts *m, mr_error *err)
{
    int rc = MR_OK;
    if (!m->weights || !m->mine || !m->theirs || !m->my_dst || !m->their_dst)
        return mr_error_set(err, MR_ENOMEM, "no memory for the layouts of %s", l->op->base.is->name);
    if (!dnnl_memory_desc_equal(m->weights, l->weights))
        rc = pass == MRI_LINEAR_BACKWARD_WEIGHTS
                 ? mri_dnnl_reorder_create(&p->weights, m->weights, l->weights, err)
                 : mri_dnnl_reorder_create(&p->weights, l->weights, m->weights, err);
    if (!rc && !dnnl_memory_desc_equal(m->mine, m->theirs))
        rc = pass == MRI_LINEAR_BACKWARD_DATA ? mri_dnnl_reorder_create(&p->src, m->mine, m->theirs, err)
                                              : mri_dnnl_reorder_create(&p->src, m->theirs, m->mine, err);
    if (!rc && !dnnl_memory_desc_equal(m->my_dst, m->their_dst)) /* backward only */
        rc = mri_dnnl_reorder_create(&p->dst, m->their_dst, m->my_dst, err);
    return rc;
}

/* pd: NULL for a pass of our own; taken over. */
static int create_pass(struct pass *p, const struct mri_linear *l, enum mri_linear_pass pass,
                       dnnl_primitive_desc_t pd, uint32_t n, mr_error *err)
{
    const uint32_t given = l->op->base.desc.in.layout;
    if (!pd) p->src_layout = l->src_layout, p->dst_layout = l->op->base.info.out.layout;
    const struct mri_linear_own *ours = &l->own[pass];
    struct mri_dnnl_mds set = {0};
    const struct layouts m = {.weights = pd ? mri_dnnl_md_copy(&set, weights_of(pd, pass)) : ours->weights,
                              .mine = mri_linear_src(l, &set, n, p->src_layout),
                              .theirs = mri_linear_src(l, &set, n, given),
                              .my_dst = dst_as(l, &set, n, p->dst_layout),
                              .their_dst = mri_linear_dst(l, &set, n)};
    int rc = pd ? create_run(p, l, pass, pd, n, err) : MR_OK;
    if (!rc) rc = create_reorders(p, l, pass, &m, err);
    size_t own = pd ? p->run.scratch_bytes : ours->scratch_bytes;
    if (p->weights.scratch_bytes > own) own = p->weights.scratch_bytes;
    if (p->src.scratch_bytes > own) own = p->src.scratch_bytes;
    if (p->dst.scratch_bytes > own) own = p->dst.scratch_bytes;
    p->src_at = mri_dnnl_piece(own);
    p->dst_at = p->src_at + (p->src.primitive ? mri_dnnl_bytes(m.mine) : 0);
    p->weights_at = p->dst_at + (p->dst.primitive ? mri_dnnl_bytes(m.my_dst) : 0);
    p->scratch_bytes = p->weights_at + (p->weights.primitive ? mri_dnnl_bytes(m.weights) : 0);
    mri_dnnl_mds_destroy(&set);
    return rc;
}

static void drop_variant(void *pointer)
{
    struct variant *v = pointer;
    for (int i = 0; i < 3; i++) {
        mri_dnnl_step_destroy(&v->pass[i].run);
        mri_dnnl_step_destroy(&v->pass[i].weights);
        mri_dnnl_step_destroy(&v->pass[i].src);
        mri_dnnl_step_destroy(&v->pass[i].dst);
    }
    free(v->own_scratch);
    free(v);
}

bool mri_linear_wants_pass(const struct mri_linear *l, enum mri_linear_pass pass)
{
    const mr_op_desc *d = &l->op->base.desc;
    return pass == MRI_LINEAR_FORWARD || (d->training && (pass == MRI_LINEAR_BACKWARD_WEIGHTS || d->need_dx));
}

static int fill_own(struct variant *v, const struct mri_linear *l, uint32_t n, bool *others, mr_error *err)
{
    int rc = MR_OK;
    *others = false;
    for (int i = MRI_LINEAR_FORWARD; !rc && i <= MRI_LINEAR_BACKWARD_WEIGHTS; i++) {
        const enum mri_linear_pass pass = (enum mri_linear_pass)i;
        if (!mri_linear_wants_pass(l, pass)) continue;
        if (l->own[pass].run) rc = create_pass(&v->pass[i], l, pass, NULL, n, err);
        else *others = true;
    }
    return rc;
}

/* The others are one primitive each. All need the description of the forward pass. */
static int fill_whole(struct variant *v, const struct mri_linear *l, uint32_t n, mr_error *err)
{
    dnnl_primitive_desc_t forward, pd, hint;
    int rc = describe_pass(l, MRI_LINEAR_FORWARD, n, NULL, &v->pass[MRI_LINEAR_FORWARD], &forward, err);
    if (rc) return rc;
    rc = mri_dnnl_error(dnnl_primitive_desc_clone(&hint, forward), "cloning a description", err);
    if (rc) {
        dnnl_primitive_desc_destroy(forward);
        return rc;
    }
    if (l->own[MRI_LINEAR_FORWARD].run) dnnl_primitive_desc_destroy(forward);
    else rc = create_pass(&v->pass[MRI_LINEAR_FORWARD], l, MRI_LINEAR_FORWARD, forward, n, err);
    for (int i = MRI_LINEAR_BACKWARD_DATA; !rc && i <= MRI_LINEAR_BACKWARD_WEIGHTS; i++) {
        const enum mri_linear_pass pass = (enum mri_linear_pass)i;
        if (l->own[pass].run || !mri_linear_wants_pass(l, pass)) continue;
        rc = describe_pass(l, pass, n, hint, &v->pass[i], &pd, err);
        if (!rc) rc = create_pass(&v->pass[i], l, pass, pd, n, err);
    }
    dnnl_primitive_desc_destroy(hint);
    return rc;
}

static int fill_variant(struct variant *v, const struct mri_linear *l, uint32_t n, mr_error *err)
{
    bool others;
    const int rc = fill_own(v, l, n, &others, err);
    return rc || !others ? rc : fill_whole(v, l, n, err);
}

static size_t scratch_of(const struct variant *v)
{
    size_t most = 0;
    for (int i = 0; i < 3; i++)
        if (v->pass[i].scratch_bytes > most) most = v->pass[i].scratch_bytes;
    return most;
}

static int make_variant(mri_host_op *op, uint32_t n, void **out, mr_error *err)
{
    struct mri_linear *l = op->own;
    struct variant *v = calloc(1, sizeof *v);
    if (!v) return mr_error_set(err, MR_ENOMEM, "no memory for a batch of %u", n);
    int rc = fill_variant(v, l, n, err);
    if (!rc && l->prepared && scratch_of(v) > op->base.info.scratch_bytes) {
        v->own_scratch = mri_alloc_aligned(MR_DEVICE_ALIGN, scratch_of(v));
        if (!v->own_scratch) rc = mr_error_set(err, MR_ENOMEM, "no memory for a batch of %u", n);
    }
    if (rc) drop_variant(v);
    else *out = v;
    return rc;
}

static int store_weights_as(struct mri_linear *l, mri_dnnl_md md, mr_error *err)
{
    l->weights = mri_dnnl_md_copy(&l->mds, md);
    if (!l->weights) return mr_error_set(err, MR_ENOMEM, "no memory for the layout of weights");
    l->op->base.info.param[0].storage_count = dnnl_memory_desc_get_size(md) / sizeof(float);
    return MR_OK;
}

/* The forward pass, a primitive at max_batch, says how weights are stored. */
static int choose_weights(struct mri_linear *l, mr_error *err)
{
    const uint32_t n = l->op->base.desc.max_batch;
    if (l->own[MRI_LINEAR_FORWARD].run) return store_weights_as(l, l->own[MRI_LINEAR_FORWARD].weights, err);
    dnnl_primitive_attr_t attr;
    int rc = mri_dnnl_attr(&attr, fuses_relu(l, MRI_LINEAR_FORWARD), err);
    if (rc) return rc;
    struct mri_dnnl_mds set = {0};
    mri_dnnl_md src = mri_linear_src(l, &set, n, l->src_layout), dst = mri_linear_dst(l, &set, n);
    dnnl_primitive_desc_t pd =
        mri_linear_describe(l, MRI_LINEAR_FORWARD, src, l->any_weights, dst, attr, NULL);
    dnnl_primitive_attr_destroy(attr);
    rc = end_of_describing(&set, &pd, l, err);
    if (rc) return rc;
    rc = store_weights_as(l, weights_of(pd, MRI_LINEAR_FORWARD), err);
    dnnl_primitive_desc_destroy(pd);
    return rc;
}

/* Forward at max_batch with the output's layout open; the input's as given, or open too. */
static dnnl_primitive_desc_t probe(const struct mri_linear *l, struct mri_dnnl_mds *set, bool open_src,
                                   dnnl_primitive_attr_t attr)
{
    const mr_op_desc *d = &l->op->base.desc;
    mri_dnnl_md src = mri_linear_src(l, set, d->max_batch, d->in.layout);
    mri_dnnl_md dst = mri_dnnl_md_any(set, mri_linear_dst(l, set, d->max_batch));
    if (open_src) src = mri_dnnl_md_any(set, src);
    return mri_linear_describe(l, MRI_LINEAR_FORWARD, src, l->any_weights, dst, attr, NULL);
}

/* Ours are only the layouts that keep samples apart; NHWC when oneDNN picks another. */
int mri_linear_choose_layouts(struct mri_linear *l, mr_error *err)
{
    const mr_op_desc *d = &l->op->base.desc;
    mr_tensor *out = &l->op->base.info.out;
    if (d->want == MR_WANT_NHWC) return MR_OK; /* the output has this layout already */
    dnnl_primitive_attr_t attr;
    int rc = mri_dnnl_attr(&attr, fuses_relu(l, MRI_LINEAR_FORWARD), err);
    if (rc) return rc;
    struct mri_dnnl_mds set = {0};
    dnnl_primitive_desc_t pd = probe(l, &set, false, attr);
    if (!pd || !mri_dnnl_is_fast(pd)) {
        if (pd) dnnl_primitive_desc_destroy(pd);
        pd = probe(l, &set, true, attr);
    }
    dnnl_primitive_attr_destroy(attr);
    uint32_t src_layout, dst_layout;
    const bool known =
        pd &&
        mri_dnnl_layout_of(&set, &d->in, d->max_batch, dnnl_primitive_desc_query_md(pd, dnnl_query_src_md, 0),
                           &src_layout) &&
        mri_dnnl_layout_of(&set, out, d->max_batch, dnnl_primitive_desc_query_md(pd, dnnl_query_dst_md, 0),
                           &dst_layout);
    rc = end_of_describing(&set, &pd, l, err);
    if (rc) return rc;
    dnnl_primitive_desc_destroy(pd);
    l->src_layout = known ? src_layout : MR_LAYOUT_NHWC;
    mri_tensor_set_layout(out, known ? dst_layout : MR_LAYOUT_NHWC);
    return MR_OK;
}

int mri_linear_prepare(struct mri_linear *l, mr_error *err)
{
    int rc = choose_weights(l, err);
    void *v;
    if (!rc)
        rc = mri_dnnl_variant(&l->cache, l->op, l->op->base.desc.max_batch, make_variant, drop_variant, &v,
                              err);
    if (rc) return rc;
    l->op->base.info.scratch_bytes = scratch_of(v);
    l->prepared = true;
    return MR_OK;
}

int mri_linear_create(struct mri_linear **out, mri_host_op *op, enum mri_dnnl_kind kind, int dim_count,
                      const dnnl_dims_t weights, dnnl_format_tag_t tag, mr_error *err)
{
    const int rc = mri_dnnl_start(err);
    if (rc) return rc;
    struct mri_linear *l = *out = op->own = calloc(1, sizeof *l);
    if (!l) return mr_error_set(err, MR_ENOMEM, "no memory for %s", op->base.is->name);
    l->op = op;
    l->kind = kind;
    l->flat = kind == MRI_DNNL_INNER_PRODUCT;
    l->src_layout = op->base.desc.in.layout;
    l->has_bias = op->base.info.param_count > 1;
    const dnnl_dims_t bias = {op->base.info.out.c};
    l->any_weights = mri_dnnl_md_create(&l->mds, dim_count, weights, dnnl_format_tag_any);
    l->canonical = mri_dnnl_md_create(&l->mds, dim_count, weights, tag);
    l->bias = mri_dnnl_md_create(&l->mds, 1, bias, dnnl_a);
    if (!l->any_weights || !l->canonical || !l->bias)
        return mr_error_set(err, MR_ENOMEM, "no memory for the layouts of %s", op->base.is->name);
    return MR_OK;
}

void mri_linear_release(mri_host_op *op)
{
    struct mri_linear *l = op->own;
    if (!l) return;
    mri_dnnl_cache_clear(&l->cache, drop_variant);
    mri_dnnl_mds_destroy(&l->mds);
    free(l);
}

int mri_linear_import(mri_host_op *op, bool state, uint32_t which, float *address, const float *host,
                      mr_error *err)
{
    (void)state;
    const struct mri_linear *l = op->own;
    if (which == 0) return mri_dnnl_reorder_once(l->canonical, host, l->weights, address, err);
    memcpy(address, host, op->base.info.param[1].count * sizeof(float));
    return MR_OK;
}

int mri_linear_export(mri_host_op *op, bool state, uint32_t which, const float *address, float *host,
                      mr_error *err)
{
    (void)state;
    const struct mri_linear *l = op->own;
    if (which == 0) return mri_dnnl_reorder_once(l->weights, address, l->canonical, host, err);
    memcpy(host, address, op->base.info.param[1].count * sizeof(float));
    return MR_OK;
}

static void *writable(const void *p) /* oneDNN's handles know no const; inputs are only read */
{
    void *w;
    memcpy(&w, &p, sizeof w);
    return w;
}

/* One pass with its reorders around it. src: x or dx; weights: stored weights or their gradient. */
static int run_pass(const struct mri_linear *l, const struct variant *v, enum mri_linear_pass pass,
                    uint32_t n, void *src, void *weights, void *dst, void *bias, void *given_scratch,
                    mr_error *err)
{
    const struct pass *p = &v->pass[pass];
    uint8_t *scratch = v->own_scratch ? v->own_scratch : given_scratch;
    void *my_src = p->src.primitive ? scratch + p->src_at : src,
         *my_dst = p->dst.primitive ? scratch + p->dst_at : dst,
         *my_weights = p->weights.primitive ? scratch + p->weights_at : weights;
    void *const load_src[] = {src, my_src}, *const store_src[] = {my_src, src};
    void *const load_weights[] = {weights, my_weights}, *const store_weights[] = {my_weights, weights};
    void *const load_dst[] = {dst, my_dst};
    void *const all[] = {my_src, my_weights, my_dst, bias};
    int rc = MR_OK;
    if (p->src.primitive && pass != MRI_LINEAR_BACKWARD_DATA)
        rc = mri_dnnl_step_run(&p->src, load_src, scratch, err);
    if (!rc && p->dst.primitive) rc = mri_dnnl_step_run(&p->dst, load_dst, scratch, err);
    if (!rc && p->weights.primitive && pass != MRI_LINEAR_BACKWARD_WEIGHTS)
        rc = mri_dnnl_step_run(&p->weights, load_weights, scratch, err);
    if (!rc && p->run.primitive) rc = mri_dnnl_step_run(&p->run, all, scratch, err);
    else if (!rc) l->own[pass].run(l, pass, n, my_src, my_weights, my_dst, bias, scratch);
    if (!rc && p->src.primitive && pass == MRI_LINEAR_BACKWARD_DATA)
        rc = mri_dnnl_step_run(&p->src, store_src, scratch, err);
    if (!rc && p->weights.primitive && pass == MRI_LINEAR_BACKWARD_WEIGHTS)
        rc = mri_dnnl_step_run(&p->weights, store_weights, scratch, err);
    return rc;
}

int mri_linear_forward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    struct mri_linear *l = op->own;
    const mr_op_desc *d = &op->base.desc;
    const mr_tensor *out = &l->op->base.info.out;
    void *v;
    int rc = mri_dnnl_variant(&l->cache, l->op, a->n, make_variant, drop_variant, &v, err);
    if (!rc)
        rc = run_pass(l, v, MRI_LINEAR_FORWARD, a->n, writable(a->x), writable(a->param[0]), a->y,
                      writable(a->param[1]), a->scratch, err);
    if (rc || l->bare || d->activation == MR_ACT_RELU) return rc;
    mri_activate(d->activation, a->y, mri_tensor_floats(out) * a->n);
    if (d->activation == MR_ACT_SIGMOID) mri_tensor_zero_padding(out, a->n, a->y);
    return MR_OK;
}

int mri_linear_backward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    struct mri_linear *l = op->own;
    const mr_op_desc *d = &op->base.desc;
    void *v;
    int rc = mri_dnnl_variant(&l->cache, l->op, a->n, make_variant, drop_variant, &v, err);
    if (rc) return rc;
    if (!l->bare)
        mri_activate_backward(d->activation, a->y, a->dy, mri_tensor_floats(&l->op->base.info.out) * a->n);
    rc = run_pass(l, v, MRI_LINEAR_BACKWARD_WEIGHTS, a->n, writable(a->x), a->dparam[0], a->dy, a->dparam[1],
                  a->scratch, err);
    if (!rc && d->need_dx)
        rc = run_pass(l, v, MRI_LINEAR_BACKWARD_DATA, a->n, a->dx, writable(a->param[0]), a->dy, NULL,
                      a->scratch, err);
    return rc;
}
