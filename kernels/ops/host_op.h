/* kernels/ops/host_op.h: the room of operations in the host's memory: the class of every kind with its plain
 * C reference (one file each), the faster code of oneDNN (dnnl/), and what queues them on streams.
 *
 * Takes descriptions of operations, and addresses of tensors in the host's memory. Gives the class of every
 * kind, which checks a description and settles its shapes, and operations that are ready to be queued. Each
 * brings one struct mri_op_code; host_op.c queues it. Callers: op.c for the classes, cpu/ and sim/ for the
 * operations. The layouts a host tensor can have are here too. It stands on kernels/backend/ and
 * kernels/host/. */
#ifndef MRI_HOST_OP_H
#define MRI_HOST_OP_H

#include "kernels/host/host.h"
#include "kernels/ops/pieces.h"

typedef struct mri_host_op mri_host_op;

struct mri_op_code {
    /* Called once, base.desc and the canonical base.info filled in: settle layouts, storage counts,
     * saved_bytes and scratch_bytes, allocate own. On failure nothing is left allocated. NULL: nothing to do.
     */
    int (*prepare)(mri_host_op *op, mr_error *err);
    void (*release)(mri_host_op *op);                                     /* NULL: nothing to release */
    int (*forward)(mri_host_op *op, const mr_op_args *a, mr_error *err);  /* in the stream's thread, on its
                                                                             OpenMP threads */
    int (*backward)(mri_host_op *op, const mr_op_args *a, mr_error *err); /* NULL: of entries */
    /* NULL: the device stores the canonical order. */
    int (*param_import)(mri_host_op *op, bool state, uint32_t which, float *address, const float *host,
                        mr_error *err);
    int (*param_export)(mri_host_op *op, bool state, uint32_t which, const float *address, float *host,
                        mr_error *err);
    uint64_t (*takes_ns)(const mri_host_op *op, const mr_op_args *a); /* of a simulated device: forward; may
                                                                         be NULL */
    bool adds_dy2; /* backward takes dy2 in itself; else dy holds the sum before backward is called */
};

struct mri_host_op {
    mr_op base;
    const struct mri_op_code *code;
    void *own;
};

/* For struct mri_backend: what mri_host_device.code_for() names, as tasks on streams. */
extern const struct mri_op_calls mri_host_ops;
/* update.c */
int mri_host_update_async(mr_stream *s, const mr_update_config *cfg);
uint64_t mri_host_update_room(const mr_device *dev, const mr_update_matrix *m, uint64_t count);
int mri_host_average_async(mr_stream *s, float *average, const float *from, uint64_t count, float decay);

/* Code that some kinds have beside their reference. */
extern const struct mri_op_code mri_input_planar, mri_conv2d_dnnl, mri_pool2d_dnnl, mri_dense_dnnl,
    mri_gru_packed, mri_lstm_packed, mri_conv2d_transposed_dnnl;

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

/* The position of element (pixel, c) of a sample; pixel = y * w + x. */
static inline size_t mri_tensor_index(const mr_tensor *t, size_t pixel, uint32_t c)
{
    const uint32_t block = mri_layout_block(t);
    return ((size_t)(c / block) * t->h * t->w + pixel) * block + c % block;
}

/* Does the tensor say what its layout demands? */
bool mri_tensor_valid(const mr_tensor *t);
/* Write zeros into the channel padding of n samples, where the layout has any. */
void mri_tensor_zero_padding(const mr_tensor *t, uint32_t n, float *values);

/* MR_EINVAL unless the input is NHWC: for references that take nothing else. */
int mri_require_nhwc(mri_host_op *op, mr_error *err);

#endif
