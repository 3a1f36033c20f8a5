/* kernels/ops/pieces.h: pieces that several operations share, over `count` floats each; see pieces.c. */
#ifndef MRI_PIECES_H
#define MRI_PIECES_H

#include "millrace/kernels.h"

/* y = f(x); y may be x. */
void mri_activate_into(mr_activation kind, float *y, const float *x, size_t count);
/* dx = dy * f'(.), computed from y = f(.) alone; dx may be dy. For activations with mr_activation_needs_x(),
 * y is x.
 */
void mri_activate_backward_into(mr_activation kind, float *dx, const float *dy, const float *y, size_t count);
/* In place, for activations that do not need x; does nothing for MR_ACT_NONE. */
void mri_activate(mr_activation kind, float *values, size_t count);
void mri_activate_backward(mr_activation kind, const float *y, float *dy, size_t count);
/* The same on the calling thread alone, for pieces that stay in its cache. */
void mri_activate_piece(mr_activation kind, float *values, size_t count);
void mri_activate_backward_piece(mr_activation kind, const float *y, float *dy, size_t count);
/* dy += dy2 */
void mri_accumulate(float *dy, const float *dy2, size_t count);
void mri_accumulate_piece(float *dy, const float *dy2, size_t count);

#endif
