/* train/run/fold.h: in which order a replica adds up the gradients of the parts that it computes one after
 * the other: the order of the tree (kernels.h, "groups"), as far as its own parts go. Private to train/run/
 * and tests.
 *
 * Backward writes grads. After each part but the last they are added to a waiting sum, or wait themselves, in
 * an array of their own (a term). After the last part the nodes of mr_sum_cover() lie in the terms and in
 * grads. */
#ifndef MRI_FOLD_H
#define MRI_FOLD_H

#include "millrace/pipeline.h"

#define MRI_TERMS_MOST 15u /* with grads the nodes of one device */

typedef struct mri_fold { /* behind one part */
    uint32_t waiting;     /* terms in use before */
    uint32_t merges;      /* of them that are added to what has come */
} mri_fold;

typedef struct mri_folds {
    uint32_t count, terms; /* parts; terms in use at most */
    uint32_t left;         /* terms in use after the last part */
    mri_fold of[MR_LOADER_MAX_PARTS];
} mri_folds;

/* Parts [first, first + count) of all, at least one and at most MR_LOADER_MAX_PARTS. */
void mri_folds_init(mri_folds *f, uint32_t all, uint32_t first, uint32_t count);

#endif
