/* kernels/host/host_op.h: operations on devices whose memory is the host's. Each operation brings one struct
 * mri_op_code (plain C reference, or oneDNN); host_op.c queues it on streams. The layouts a host tensor can
 * have are here too. */
#ifndef MRI_HOST_OP_H
#define MRI_HOST_OP_H

#include "kernels/host/host.h"

typedef struct mri_host_op mri_host_op;

struct mri_op_code {
    /* Called once, base.desc and the canonical base.info filled in: settle layouts, storage counts,
     * saved_bytes and scratch_bytes, allocate own. On failure nothing is left allocated. */
    int (*prepare)(mri_host_op *op, mr_error *err);
    void (*release)(mri_host_op *op);                                    /* NULL: nothing to release */
    int (*forward)(mri_host_op *op, const mr_op_args *a, mr_error *err); /* in the stream's thread, on its
                                                                            OpenMP threads */
    int (*backward)(mri_host_op *op, const mr_op_args *a, mr_error *err);
    /* NULL: the device stores the canonical order. */
    int (*param_import)(mri_host_op *op, bool state, uint32_t which, float *address, const float *host,
                        mr_error *err);
    int (*param_export)(mri_host_op *op, bool state, uint32_t which, const float *address, float *host,
                        mr_error *err);
    bool adds_dy2; /* backward takes dy2 in itself; else dy holds the sum before backward is called */
};

struct mri_host_op {
    mr_op base;
    const struct mri_op_code *code;
    void *own;
};

/* How an operation of this kind runs: the plain C reference, or the fast code where there is one. */
const struct mri_op_code *mri_reference_code(mr_op_kind kind);
const struct mri_op_code *mri_fast_code(mr_op_kind kind);

int mri_host_op_create(mr_op **out, mr_device *dev, const mr_op_desc *desc, const mr_op_info *info,
                       const struct mri_op_code *code, mr_error *err);
void mri_host_op_destroy(mr_op *op);
int mri_host_op_forward_async(mr_op *op, mr_stream *s, const mr_op_args *args);
int mri_host_op_backward_async(mr_op *op, mr_stream *s, const mr_op_args *args);
int mri_host_op_param_import(mr_op *op, bool state, uint32_t which, void *address, const float *host,
                             mr_error *err);
int mri_host_op_param_export(mr_op *op, bool state, uint32_t which, const void *address, float *host,
                             mr_error *err);

int mri_host_update_async(mr_stream *s, const mr_update_desc *desc, const mr_update_args *args);

int mri_host_group_create(mr_group **out, mr_stream *const *streams, uint32_t count, mr_error *err);
void mri_host_group_destroy(mr_group *g);
int mri_host_group_sum_async(mr_group *g, float *const *values, uint64_t count);
int mri_host_group_broadcast_async(mr_group *g, float *const *values, uint64_t count, uint32_t root);
void mri_host_group_abort(mr_group *g);
/* All streams wait for each other; the values stay. */
int mri_host_group_meet_async(mr_group *g, float *const *values, uint64_t count);

/* ---- layouts of host tensors: NHWC is the canonical one ---- */

enum {
    MRI_LAYOUT_NCHW = MR_LAYOUT_NCHW, /* planes */
    MRI_LAYOUT_C8 = 2,  /* planes of 8 channels each, the last padded with zeros: [c/8][h][w][8] */
    MRI_LAYOUT_C16 = 3, /* the same with 16 */
};

static inline size_t mri_tensor_floats(const mr_tensor *t) { return t->sample_bytes / sizeof(float); }

/* Channels of one block: c for NHWC, 1 for planes. */
static inline uint32_t mri_layout_block(const mr_tensor *t)
{
    switch (t->layout) {
    case MRI_LAYOUT_NCHW: return 1;
    case MRI_LAYOUT_C8: return 8;
    case MRI_LAYOUT_C16: return 16;
    default: return t->c;
    }
}

/* Sets layout and sample_bytes of an f32 tensor whose canonical size was checked. */
static inline void mri_tensor_set_layout(mr_tensor *t, uint32_t layout)
{
    t->layout = layout;
    const uint32_t block = mri_layout_block(t);
    t->sample_bytes =
        (size_t)mri_align_up(t->c, layout == MR_LAYOUT_NHWC ? 1 : block) * t->h * t->w * sizeof(float);
}

/* Where element (pixel, c) of a sample stands; pixel = y * w + x. */
static inline size_t mri_tensor_index(const mr_tensor *t, size_t pixel, uint32_t c)
{
    const uint32_t block = mri_layout_block(t);
    return ((size_t)(c / block) * t->h * t->w + pixel) * block + c % block;
}

/* Does the tensor say what its layout demands? */
bool mri_tensor_valid(const mr_tensor *t);
/* Write zeros into the channel padding of n samples, where the layout has any. */
void mri_tensor_zero_padding(const mr_tensor *t, uint32_t n, float *values);

/* ---- pieces several operations share (ops/activation.c) ---- */

void mri_activate(mr_activation kind, float *values, size_t count);
/* dy *= f'(.), told from y = f(.) alone. */
void mri_activate_backward(mr_activation kind, const float *y, float *dy, size_t count);
/* The same on the calling thread alone, for pieces that stay in its cache. */
void mri_activate_piece(mr_activation kind, float *values, size_t count);
void mri_activate_backward_piece(mr_activation kind, const float *y, float *dy, size_t count);
/* dy += dy2 */
void mri_accumulate(float *dy, const float *dy2, size_t count);
void mri_accumulate_piece(float *dy, const float *dy2, size_t count);

/* ops/: one file each */
extern const struct mri_op_code mri_input_ref, mri_conv2d_ref, mri_pool2d_ref, mri_dense_ref,
    mri_activation_code, mri_dropout_code, mri_batchnorm_code, mri_loss_code, mri_add_code, mri_one_hot_code;
extern const struct mri_op_code mri_input_planar, mri_conv2d_dnnl, mri_pool2d_dnnl, mri_dense_dnnl;

#endif
