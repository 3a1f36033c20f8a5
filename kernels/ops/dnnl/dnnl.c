/* kernels/ops/dnnl/dnnl.c: see dnnl.h. */
#include "kernels/ops/dnnl/dnnl.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static dnnl_engine_t engine; /* fixed after once */
static dnnl_stream_t stream; /* fixed after once; the CPU's runs work where it is called */

static void start(void)
{
    if (dnnl_engine_create(&engine, dnnl_cpu, 0) != dnnl_success) return;
    if (dnnl_stream_create(&stream, engine, dnnl_stream_default_flags) != dnnl_success) stream = NULL;
}

int mri_dnnl_start(mr_error *err)
{
    pthread_once(&once, start);
    return stream ? MR_OK : mr_error_set(err, MR_EUNSUPPORTED, "oneDNN has no CPU engine here");
}

dnnl_engine_t mri_dnnl_engine(void) { return engine; }

int mri_dnnl_error(dnnl_status_t status, const char *what, mr_error *err)
{
    if (status == dnnl_success) return MR_OK;
    if (status == dnnl_out_of_memory) return mr_error_set(err, MR_ENOMEM, "oneDNN: no memory for %s", what);
    return mr_error_set(err, MR_EDEVICE, "oneDNN: %s failed with status %d", what, (int)status);
}

int mri_dnnl_attr(dnnl_primitive_attr_t *out, bool relu, mr_error *err)
{
    dnnl_post_ops_t ops = NULL;
    *out = NULL;
    dnnl_status_t st = dnnl_primitive_attr_create(out);
    if (st == dnnl_success) st = dnnl_primitive_attr_set_scratchpad_mode(*out, dnnl_scratchpad_mode_user);
    if (st == dnnl_success && relu) {
        st = dnnl_post_ops_create(&ops);
        if (st == dnnl_success) st = mri_dnnl_append_relu(ops);
        if (st == dnnl_success) st = dnnl_primitive_attr_set_post_ops(*out, ops);
        if (ops) dnnl_post_ops_destroy(ops);
    }
    if (st != dnnl_success && *out) {
        dnnl_primitive_attr_destroy(*out);
        *out = NULL;
    }
    return mri_dnnl_error(st, "attributes", err);
}

static dnnl_status_t add_arg(struct mri_dnnl_step *s, int arg, mri_dnnl_md md)
{
    if (!md) return dnnl_out_of_memory; /* oneDNN takes a NULL for an empty array */
    dnnl_memory_t memory;
    const dnnl_status_t st = dnnl_memory_create(&memory, md, engine, DNNL_MEMORY_NONE);
    if (st == dnnl_success) s->args[s->arg_count++] = (dnnl_exec_arg_t){arg, memory};
    return st;
}

int mri_dnnl_step_create(struct mri_dnnl_step *out, dnnl_primitive_desc_t pd, const struct mri_dnnl_arg *args,
                         mr_error *err)
{
    *out = (struct mri_dnnl_step){0};
    dnnl_status_t st = dnnl_primitive_create(&out->primitive, pd);
    for (; st == dnnl_success && args->arg; args++) st = add_arg(out, args->arg, args->md);
    mri_dnnl_md scratch = dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
    out->scratch_bytes = scratch ? dnnl_memory_desc_get_size(scratch) : 0;
    if (st == dnnl_success && out->scratch_bytes) st = add_arg(out, DNNL_ARG_SCRATCHPAD, scratch);
    dnnl_primitive_desc_destroy(pd);
    if (st != dnnl_success) mri_dnnl_step_destroy(out);
    return mri_dnnl_error(st, "creating a primitive", err);
}

void mri_dnnl_step_destroy(struct mri_dnnl_step *s)
{
    for (int i = 0; i < s->arg_count; i++) dnnl_memory_destroy(s->args[i].memory);
    if (s->primitive) dnnl_primitive_destroy(s->primitive);
    *s = (struct mri_dnnl_step){0};
}

int mri_dnnl_step_run(const struct mri_dnnl_step *s, void *const *addresses, void *scratch, mr_error *err)
{
    dnnl_status_t st = dnnl_success;
    for (int i = 0; st == dnnl_success && i < s->arg_count; i++)
        st = dnnl_memory_set_data_handle(s->args[i].memory,
                                         s->args[i].arg == DNNL_ARG_SCRATCHPAD ? scratch : addresses[i]);
    if (st == dnnl_success) st = dnnl_primitive_execute(s->primitive, stream, s->arg_count, s->args);
    return mri_dnnl_error(st, "running a primitive", err);
}

int mri_dnnl_reorder_create(struct mri_dnnl_step *out, mri_dnnl_md from, mri_dnnl_md to, mr_error *err)
{
    *out = (struct mri_dnnl_step){0};
    dnnl_primitive_attr_t attr;
    const int rc = mri_dnnl_attr(&attr, false, err);
    if (rc) return rc;
    dnnl_primitive_desc_t pd;
    const dnnl_status_t st = dnnl_reorder_primitive_desc_create(&pd, from, engine, to, engine, attr);
    dnnl_primitive_attr_destroy(attr);
    if (st != dnnl_success) return mri_dnnl_error(st, "describing a reorder", err);
    const struct mri_dnnl_arg args[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}, {0, NULL}};
    return mri_dnnl_step_create(out, pd, args, err);
}

int mri_dnnl_reorder_once(mri_dnnl_md from, const void *src, mri_dnnl_md to, void *dst, mr_error *err)
{
    struct mri_dnnl_step s;
    int rc = mri_dnnl_reorder_create(&s, from, to, err);
    if (rc) return rc;
    void *scratch = s.scratch_bytes ? mri_alloc_aligned(MRI_CACHE_LINE, s.scratch_bytes) : NULL;
    void *addresses[2] = {NULL, dst};
    memcpy(&addresses[0], &src, sizeof src); /* oneDNN's handles know no const; this one is only read */
    rc = s.scratch_bytes && !scratch ? mr_error_set(err, MR_ENOMEM, "no memory to reorder parameters")
                                     : mri_dnnl_step_run(&s, addresses, scratch, err);
    free(scratch);
    mri_dnnl_step_destroy(&s);
    return rc;
}

const char *mri_dnnl_implementation(const_dnnl_primitive_desc_t pd)
{
    const char *name = "";
    dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, (void *)&name);
    return name;
}

bool mri_dnnl_is_fast(const_dnnl_primitive_desc_t pd)
{
    const char *name = mri_dnnl_implementation(pd);
    return strncmp(name, "ref", 3) != 0 && strncmp(name, "simple", 6) != 0 && !strstr(name, "gemm:");
}

static dnnl_format_tag_t tag_of(const mr_tensor *t, uint32_t layout)
{
    switch (layout) {
    case MRI_LAYOUT_C8: return dnnl_nChw8c;
    case MRI_LAYOUT_C16: return dnnl_nChw16c;
    case MRI_LAYOUT_NCHW: return dnnl_nchw;
    default: return t->c == 1 ? dnnl_nchw : dnnl_nhwc; /* the same bytes; convolutions look for planes */
    }
}

mri_dnnl_md mri_dnnl_tensor(struct mri_dnnl_mds *set, const mr_tensor *t, uint32_t n, uint32_t layout)
{
    const dnnl_dims_t dims = {n, t->c, t->h, t->w};
    return mri_dnnl_md_create(set, 4, dims, tag_of(t, layout));
}

bool mri_dnnl_layout_of(struct mri_dnnl_mds *set, const mr_tensor *t, uint32_t n, mri_dnnl_md md,
                        uint32_t *layout)
{
    static const uint32_t known[] = {MRI_LAYOUT_C16, MRI_LAYOUT_C8, MR_LAYOUT_NHWC, MRI_LAYOUT_NCHW};
    for (size_t i = 0; i < MRI_ARRAY_COUNT(known); i++) {
        mri_dnnl_md candidate = mri_dnnl_tensor(set, t, n, known[i]);
        if (!candidate || !md || !dnnl_memory_desc_equal(candidate, md)) continue;
        *layout = known[i];
        return true;
    }
    return false;
}

int mri_dnnl_variant(struct mri_dnnl_cache *c, mri_host_op *op, uint32_t n, mri_dnnl_make *make,
                     mri_dnnl_drop *drop, void **out, mr_error *err)
{
    uint32_t at = 0;
    while (at < MRI_DNNL_VARIANTS && c->variants[at] && c->n[at] != n) at++;
    const bool found = at < MRI_DNNL_VARIANTS && c->variants[at];
    void *variant = found ? c->variants[at] : NULL;
    if (!found) {
        const int rc = make(op, n, &variant, err);
        if (rc) return rc;
        if (at == MRI_DNNL_VARIANTS) drop(c->variants[--at]);
    }
    memmove(c->variants + 1, c->variants, at * sizeof c->variants[0]);
    memmove(c->n + 1, c->n, at * sizeof c->n[0]);
    c->variants[0] = variant;
    c->n[0] = n;
    *out = variant;
    return MR_OK;
}

void mri_dnnl_cache_clear(struct mri_dnnl_cache *c, mri_dnnl_drop *drop)
{
    for (uint32_t i = 0; i < MRI_DNNL_VARIANTS; i++)
        if (c->variants[i]) drop(c->variants[i]);
    *c = (struct mri_dnnl_cache){0};
}
