/* kernels/ops/dnnl/blocks_dnnl.h: one pass of a convolution in blocks of a fixed number of samples.
 *
 *   batch    [ block 0 | block 1 | ... | the rest, filled up with zeros ]
 *   threads    lane 0    lane 1   ...    whoever is free
 *
 * Every block is computed by the same primitive, made for that number of samples and for one thread; blocks
 * run beside each other. So what a sample gets depends on the weights and on nothing else: not on the batch
 * it is in, the slices of the batch, or the number of threads. Gradients of weights are summed in the order
 * of blocks, so they depend on the samples and their order, and not on threads. An algorithm whose own sums
 * are cut by batch size or threads (Winograd in oneDNN: from 128 channels on) keeps these promises here by
 * construction.
 *
 * It takes primitive descriptions and gives a pass that linear_dnnl.c runs in place of its own. */
#ifndef MRI_BLOCKS_DNNL_H
#define MRI_BLOCKS_DNNL_H

#include "kernels/ops/dnnl/dnnl.h"

struct mri_blocks;

struct mri_blocks_desc {
    uint32_t samples; /* of a block */
    uint32_t lanes;   /* blocks in flight at most: no more than threads */
    bool sums;        /* the pass gives weights and bias (gradients); else dst, or src, of each sample */
    bool writes_src;  /* gradient to the input */
    int ids[4];       /* DNNL_ARG_... of src, weights, dst, bias; 0: there is no bias */
    dnnl_memory_desc_t src, weights, dst, bias; /* src, dst: of `samples` samples */
};

/* pd: for d->samples, made where one OpenMP thread was set; taken over, whatever happens. */
int mri_blocks_create(struct mri_blocks **out, const struct mri_blocks_desc *d, dnnl_primitive_desc_t pd,
                      mr_error *err);
void mri_blocks_destroy(struct mri_blocks *b); /* accepts NULL */
/* The same for every batch size. */
size_t mri_blocks_scratch_bytes(const struct mri_blocks *b);
const dnnl_memory_desc_t *mri_blocks_weights(const struct mri_blocks *b);
/* n samples; in the stream's thread. Sums are written, not added to. */
int mri_blocks_run(const struct mri_blocks *b, uint32_t n, void *src, void *weights, void *dst, void *bias,
                   void *scratch, mr_error *err);

#endif
