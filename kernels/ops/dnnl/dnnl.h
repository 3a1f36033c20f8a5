/* kernels/ops/dnnl/dnnl.h: the part of oneDNN's C interface that the operations use, with memory and errors
 * of millrace.
 *
 * The room takes descriptions of operations and gives struct mri_op_code for operations that oneDNN computes
 * faster than the C references: conv2d, dense, pool2d. Caller: cpu/, which has them in its table. It stands
 * on ops/.
 *
 * A step is one primitive with its memory objects. Addresses are put in before each run; scratch comes from
 * the caller, so nothing is allocated while a network trains. A primitive belongs to the number of OpenMP
 * threads that held when it was created: create in a thread set to the device's count. */
#ifndef MRI_DNNL_H
#define MRI_DNNL_H

#include "kernels/ops/dnnl/onednn.h"
#include "kernels/ops/host_op.h"

#define MRI_DNNL_MAX_ARGS 8

struct mri_dnnl_step {
    dnnl_primitive_t primitive; /* NULL: the step is not there */
    int arg_count;
    dnnl_exec_arg_t args[MRI_DNNL_MAX_ARGS];
    size_t scratch_bytes; /* of the primitive itself */
};

struct mri_dnnl_arg {
    int arg; /* DNNL_ARG_... */
    mri_dnnl_md md;
};

/* The one CPU engine and stream of the process. MR_EUNSUPPORTED when oneDNN refuses. */
int mri_dnnl_start(mr_error *err);
dnnl_engine_t mri_dnnl_engine(void);

/* `what` for the message; MR_ENOMEM or MR_EDEVICE. */
int mri_dnnl_error(dnnl_status_t status, const char *what, mr_error *err);

/* Settings of every primitive: scratch from the caller, and relu fused after it if requested. */
int mri_dnnl_attr(dnnl_primitive_attr_t *out, bool relu, mr_error *err);

/* Takes the description over, whatever happens. args end with arg 0; scratch is added by itself. */
int mri_dnnl_step_create(struct mri_dnnl_step *out, dnnl_primitive_desc_t pd, const struct mri_dnnl_arg *args,
                         mr_error *err);
void mri_dnnl_step_destroy(struct mri_dnnl_step *s); /* a zeroed step is fine */
/* addresses in the order of args. */
int mri_dnnl_step_run(const struct mri_dnnl_step *s, void *const *addresses, void *scratch, mr_error *err);
/* from, to: different layouts of the same logical array. */
int mri_dnnl_reorder_create(struct mri_dnnl_step *out, mri_dnnl_md from, mri_dnnl_md to, mr_error *err);
/* Create, run once and forget. */
int mri_dnnl_reorder_once(mri_dnnl_md from, const void *src, mri_dnnl_md to, void *dst, mr_error *err);

/* Does this description run on code that is worth having? Not plain C++ loops, not im2col. */
bool mri_dnnl_is_fast(const_dnnl_primitive_desc_t pd);
const char *mri_dnnl_implementation(const_dnnl_primitive_desc_t pd);

/* n samples of t as oneDNN sees them: 4 dimensions n, c, h, w. */
mri_dnnl_md mri_dnnl_tensor(struct mri_dnnl_mds *set, const mr_tensor *t, uint32_t n, uint32_t layout);
/* The layout number that md has for n samples of t; false when no layout number stands for it, or the set has
 * failed. */
bool mri_dnnl_layout_of(struct mri_dnnl_mds *set, const mr_tensor *t, uint32_t n, mri_dnnl_md md,
                        uint32_t *layout);

/* ---- primitives by batch size ----
 * A network meets few batch sizes: full batches, the short last batch, batches of evaluation. */
#define MRI_DNNL_VARIANTS 6

struct mri_dnnl_cache {
    void *variants[MRI_DNNL_VARIANTS]; /* most recent first */
    uint32_t n[MRI_DNNL_VARIANTS];
};
typedef int mri_dnnl_make(mri_host_op *op, uint32_t n, void **out, mr_error *err);
typedef void mri_dnnl_drop(void *variant);
/* The variant for n, made when it is not there. */
int mri_dnnl_variant(struct mri_dnnl_cache *c, mri_host_op *op, uint32_t n, mri_dnnl_make *make,
                     mri_dnnl_drop *drop, void **out, mr_error *err);
void mri_dnnl_cache_clear(struct mri_dnnl_cache *c, mri_dnnl_drop *drop);

/* Scratch is one block; steps and reordered copies take their pieces from it, each MR_DEVICE_ALIGN apart. */
static inline size_t mri_dnnl_piece(size_t bytes) { return (size_t)mri_align_up(bytes, MR_DEVICE_ALIGN); }
static inline size_t mri_dnnl_bytes(mri_dnnl_md md) { return mri_dnnl_piece(dnnl_memory_desc_get_size(md)); }

#endif
