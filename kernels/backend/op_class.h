/* kernels/backend/op_class.h: the device-independent row of each operation kind, the list of all rows, and
 * helpers that descriptions share.
 *
 * Each kind has one file ops/NAME.c with its row, mri_NAME_class: how a description is checked and what
 * follows from it (shapes, parameters, amount of arithmetic), and the plain C code that specifies what it
 * computes. Other implementations are in files of the devices: ops/dnnl/ where oneDNN is faster,
 * cuda/ops/op_NAME.c. */
#ifndef MRI_OP_CLASS_H
#define MRI_OP_CLASS_H

#include "kernels/backend/backend.h"

/* Every kind: MR_OP_..., its name in the code, and ON_CUDA where the cuda device has it (a row
 * mri_cuda_NAME), else NOT_ON_CUDA. */
#define MRI_OP_CLASSES(X)                                                                                    \
    X(INPUT, input, ON_CUDA)                                                                                 \
    X(CONV2D, conv2d, ON_CUDA)                                                                               \
    X(POOL2D, pool2d, ON_CUDA)                                                                               \
    X(DENSE, dense, ON_CUDA)                                                                                 \
    X(ACTIVATION, activation, ON_CUDA)                                                                       \
    X(DROPOUT, dropout, ON_CUDA)                                                                             \
    X(BATCHNORM, batchnorm, ON_CUDA)                                                                         \
    X(LOSS, loss, ON_CUDA)                                                                                   \
    X(ADD, add, ON_CUDA)                                                                                     \
    X(ONE_HOT, one_hot, ON_CUDA)                                                                             \
    X(CONCAT, concat, ON_CUDA)                                                                               \
    X(PAD, pad, ON_CUDA)                                                                                     \
    X(GRU, gru, ON_CUDA)                                                                                     \
    X(LSTM, lstm, ON_CUDA)                                                                                   \
    X(CONV2D_TRANSPOSED, conv2d_transposed, ON_CUDA)                                                         \
    X(RESHAPE, reshape, ON_CUDA)                                                                             \
    X(SAMPLE, sample, ON_CUDA)                                                                               \
    X(PAIR_LOSS, pair_loss, ON_CUDA)                                                                         \
    X(SCALE, scale, ON_CUDA)                                                                                 \
    X(FIELD, field, ON_CUDA)                                                                                 \
    X(GROUPNORM, groupnorm, ON_CUDA)                                                                         \
    X(UPSAMPLE, upsample, ON_CUDA)                                                                           \
    X(EMBEDDING, embedding, ON_CUDA)                                                                         \
    X(LRN, lrn, ON_CUDA)                                                                                     \
    X(SOFTMAX, softmax, ON_CUDA)

struct mri_op_code; /* how an operation runs in the host's memory: ops/host_op.h */

struct mri_op_class {
    const char *name;   /* "conv2d", in messages */
    bool entry;         /* takes data, not another operation's output, and has no gradient to it */
    bool takes_numbers; /* whole ones too, without a gradient to them */
    /* goes through values one by one: on the host the output has the layout of the input */
    bool keeps_layout;
    bool fuses; /* an activation can be fused after it */
    /* Check the kind's own fields of desc and fill info: parameters, flops, inplace, and the output where it
     * differs from the input. The caller has checked the common fields. NULL: nothing to check or fill. */
    int (*describe)(const mr_op_desc *desc, mr_op_info *info, mr_error *err);
    bool (*takes_two)(const mr_op_desc *desc); /* x2 is an input; NULL: never */
    /* Is an address missing in args? The caller has checked the addresses that all kinds need. NULL:
     * mri_op_lacks() is enough. */
    bool (*lacks)(const mr_op *op, const mr_op_args *args, bool backward);
    const struct mri_op_code *reference;
};

#define MRI_DECLARE_CLASS(kind, name, on_cuda) extern const struct mri_op_class mri_##name##_class;
MRI_OP_CLASSES(MRI_DECLARE_CLASS)
#undef MRI_DECLARE_CLASS

static inline bool mri_op_takes_two(const mr_op *op)
{
    return op->is->takes_two && op->is->takes_two(&op->desc);
}

/* The usual addresses: y forward, dy backward, dx when it is needed, x2 when there is one. */
bool mri_op_lacks(const mr_op *op, const mr_op_args *args, bool backward);

/* Check desc and fill info with what holds on every device: shapes, parameters in canonical order (storage =
 * count), NHWC output, no saved, no scratch. Layouts of desc->in are the backend's to check. */
int mri_op_describe(const struct mri_op_class *is, const mr_op_desc *desc, mr_op_info *info, mr_error *err);

/* ---- pieces for describe(); name: of the kind, for messages ---- */

#define MRI_OP_MAX_SIDE (1u << 20) /* of a tensor, a window, a batch */

/* Set info->out to h x w x c of dtype, NHWC. MR_EINVAL: a batch would not fit the address space comfortably.
 */
int mri_op_set_output(const mr_op_desc *desc, mr_op_info *info, uint32_t h, uint32_t w, uint32_t c,
                      uint32_t dtype, const char *name, mr_error *err);
/* Of an entry: *out is the asked type, f32 where 0 was asked. */
int mri_op_entry_dtype(uint32_t asked, uint32_t *out, const char *name, mr_error *err);
/* Of an entry: the input is NHWC without padding. */
int mri_op_check_rows(const mr_op_desc *desc, const char *name, mr_error *err);
/* A count of filters, units or classes must be 1..MRI_OP_MAX_SIDE. */
int mri_op_check_count(uint32_t count, const char *what, const char *name, mr_error *err);
/* The pixels that a window reaches. */
int mri_op_window_output(const mr_tensor *in, const mr_op_window *window, uint32_t *out_h, uint32_t *out_w,
                         const char *name, mr_error *err);
/* The second input, both shapes and the output are one shape in one layout. */
int mri_op_check_second(const mr_op_desc *desc, const char *name, mr_error *err);
mr_param_info mri_op_vector(const char *name, uint32_t count);
/* Of a convolution. */
static inline uint32_t mri_op_groups(const mr_op_desc *desc)
{
    return desc->conv2d.groups ? desc->conv2d.groups : 1;
}
/* The trained parameters: weights, and a bias of `outputs` but with no_bias. */
void mri_op_set_weights(mr_op_info *info, const mr_param_info *weights, uint32_t outputs, bool no_bias);

#endif
