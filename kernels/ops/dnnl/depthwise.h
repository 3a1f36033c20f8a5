/* kernels/ops/dnnl/depthwise.h: the gradient of depthwise weights, where oneDNN is slow: its fast code
 * supports windows of at most three columns, and for wider windows (5 x 5) it runs a plain loop that takes a
 * hundred times as long as the other passes together.
 *
 * Takes a convolution with a group for each channel and one filter in each, gives a pass that linear_dnnl.c
 * runs in place of its own. Caller: conv2d_dnnl.c. */
#ifndef MRI_DEPTHWISE_H
#define MRI_DEPTHWISE_H

#include "kernels/ops/dnnl/linear_dnnl.h"

/* Is l such a convolution, in layouts that the code below takes? */
bool mri_depthwise_fits(const struct mri_linear *l);
/* Makes backward to its weights a pass of our own. Sums are float, over the pixels of a sample and then over
 * samples, in order: threads share channels. */
void mri_depthwise_take(struct mri_linear *l);

#endif
