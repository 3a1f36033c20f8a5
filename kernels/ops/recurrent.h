/* kernels/ops/recurrent.h: code shared by the recurrent operations on the processor: the loops over the steps
 * and back, the products, sums of gradients. Each kind has its own arithmetic of a cell (gru.c, lstm.c).
 *
 * With n samples, w steps, u units and G = gates * u, a row is a step of a sample, in the order of the
 * samples:
 *
 *   forward    gates [n w][G] = x W'            one product over all rows; numbers: rows of W', looked up
 *              for each step: p [n][G] = h U', the cell: gates, h
 *   backward   for each step from the last: h's gradient, the cell: gradients to the gates' sums,
 *              and from these, through U, the gradient of h before
 *              dx = dgates W,  dW = dgates' x,  dU = dgates' h,  biases: sums over the rows
 *
 *   saved      gates [n w][G] (their values) | kept [n w][u] (the cell's state) | h before [n w][u]
 */
#ifndef MRI_RECURRENT_H
#define MRI_RECURRENT_H

#include "kernels/backend/op_class.h"
#include "kernels/ops/host_op.h"

/* A stretch of `count` units of one sample at one step. Gates and what goes with them lie `units` apart. */
struct mri_cell {
    size_t units, count;
    float *gates;         /* forward: x W' in, values out; backward: values */
    const float *product; /* h U'; forward */
    const float *bias[2]; /* as the kind has them */
    float *h, *c; /* state, replaced. backward: gradients to them, replaced by what flows on directly */
    float *kept;  /* forward: written; backward: read */
    const float *h_before, *kept_before; /* backward; kept_before: of the step before, zeros at the first */
    float *dgates, *dproduct; /* gradients to x W' and to h U'; the same place where the kind has one bias */
};

struct mri_cell_kind {
    uint32_t gates;
    bool two_biases; /* and gradients to the two products that differ */
    bool has_c;      /* a second state */
    void (*forward)(const struct mri_cell *cell);
    void (*backward)(const struct mri_cell *cell);
};

/* For describe(): bias names the first one. */
int mri_recurrent_describe(const mr_op_desc *d, mr_op_info *info, uint32_t gates, bool two_biases,
                           const char *bias, const char *name, mr_error *err);

/* For struct mri_op_code. The reference takes products by their definition, other code takes them from
 * product.h. */
int mri_recurrent_prepare(mri_host_op *op, const struct mri_cell_kind *kind, mr_error *err);
void mri_recurrent_release(mri_host_op *op);
int mri_recurrent_forward(mri_host_op *op, const mr_op_args *a, mr_error *err);
int mri_recurrent_backward(mri_host_op *op, const mr_op_args *a, mr_error *err);
#define MRI_RECURRENT_CODE(prepare_)                                                                         \
    {                                                                                                        \
        .prepare = (prepare_), .release = mri_recurrent_release, .forward = mri_recurrent_forward,           \
        .backward = mri_recurrent_backward                                                                   \
    }

#endif
