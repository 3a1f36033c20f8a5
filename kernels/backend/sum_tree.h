/* kernels/backend/sum_tree.h: the fixed order in which the gradients of the parts of a batch are added
 * (kernels.h, "groups"), whoever holds which of them. Pure functions: no device, no memory but the caller's.
 */
#ifndef MRI_SUM_TREE_H
#define MRI_SUM_TREE_H

#include "millrace/kernels.h"

/* Arrays that are added block by block, on a stack of blocks. */
enum mri_sum_what {
    MRI_SUM_TAKE, /* a copy of `array` on top of the stack */
    MRI_SUM_ADD,  /* top += array */
    MRI_SUM_FOLD, /* the two on top become their sum */
};
typedef struct mri_sum_step {
    enum mri_sum_what what;
    uint32_t array;
} mri_sum_step;

/* The steps that build a node of the tree from the available nodes. */
typedef struct mri_sum_program {
    mri_sum_step *steps;
    uint32_t count;
    uint32_t depth; /* blocks on the stack at most */
} mri_sum_program;

#define MRI_SUM_DEPTH 18u /* of any program for MR_SUM_MOST_LEAVES */

bool mri_sum_is_node(uint32_t leaves, mr_sum_node node);

/* From have[0..count), which may lie in any order, to `want`. MR_EINVAL: they do not make it up. */
int mri_sum_program_init(mri_sum_program *p, uint32_t leaves, mr_sum_node want, const mr_sum_node *have,
                         uint32_t count);
void mri_sum_program_fini(mri_sum_program *p); /* accepts a zeroed one */

#endif
