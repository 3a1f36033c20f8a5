/* tests/kernels/op_check.h: all results of one operation, plain C and fast, in every layout and several
 * batches, against the slow pass and its numeric gradients; guard bytes after each buffer. */
#ifndef MRT_OP_CHECK_H
#define MRT_OP_CHECK_H

#include "tests/kernels/rig.h"

extern const uint32_t all_layouts[4];

/* Plain C takes NHWC; the fast operations take every layout. Batches: one, a few, the most. Of d.in the sides
 * count, of d.in2 the channels; 0: the first input's. */
void check_everywhere(mr_op_desc d);

/* ---- for checks of their own ---- */

/* Fail unless element `at` has the expected value. */
void close_to(const char *what, const mr_op_desc *d, size_t at, double found, double expected);

/* Noise; the caller frees it. */
float *floats(size_t count, uint64_t seed);

/* NHWC, on the host. */
struct host_copy {
    float *x, *x2, *y, *dy, *dy2, *dx, *param[2], *dparam[2];
};

/* Random parameters into a, and their gradients' memory; h has copies, which the caller frees. */
void import_params(struct rig *r, mr_op *op, mr_op_args *a, struct host_copy *h);

/* ---- descriptions: the same number on every side ---- */

static inline mr_op_desc conv2d(uint32_t h, uint32_t w, uint32_t c, uint32_t kernel_h, uint32_t kernel_w,
                                uint32_t stride, uint32_t pad, uint32_t filters)
{
    return (mr_op_desc){
        .kind = MR_OP_CONV2D,
        .in = {h, w, c, MR_TENSOR_F32, 0, 0},
        .need_dx = true,
        .conv2d = {.filters = filters, .window = {kernel_h, kernel_w, stride, stride, pad, pad, pad, pad}}};
}

static inline mr_op_desc pool2d(uint32_t h, uint32_t w, uint32_t c, uint32_t kernel, uint32_t stride,
                                uint32_t pad)
{
    return (mr_op_desc){.kind = MR_OP_POOL2D,
                        .in = {h, w, c, MR_TENSOR_F32, 0, 0},
                        .need_dx = true,
                        .pool2d.window = {kernel, kernel, stride, stride, pad, pad, pad, pad}};
}

#endif
