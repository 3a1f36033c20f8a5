/* kernels/ops/dnnl/winograd.h: which passes of which convolutions take Winograd's algorithm, and in blocks of
 * how many samples.
 *
 * A function of a layer's shape, so that the same layer takes the same in every run, on every replica, in
 * every slice of a batch. It knows no batch size, no number of threads and no measurement of its own. Whether
 * oneDNN has the algorithm for this processor is for the caller to find out. */
#ifndef MRI_WINOGRAD_H
#define MRI_WINOGRAD_H

#include "kernels/ops/dnnl/linear_dnnl.h"

/* Samples of a block; 0: this pass of the layer does not take it. everywhere: wherever it can be, faster or
 * not. */
uint32_t mri_winograd_samples(const mr_op_desc *d, const mr_tensor *out, enum mri_linear_pass pass,
                              bool everywhere);

#endif
