/* kernels/cuda/plan/planner.h: what choosing a plan needs of a GPU, lent to one thread at a time. */
#ifndef MRI_CUDA_PLANNER_H
#define MRI_CUDA_PLANNER_H

#include "kernels/cuda/plan/plan.h"

struct mri_cuda_planner {
    struct mri_cuda_planner *next; /* while idle */
    mri_cuda_device *dev;
    CUstream stream;
    cudnnHandle_t handle; /* set to the stream */
    CUevent from, to;     /* with times */
};

/* Between mri_cuda_planner_ref() and _drop() only. */
int mri_cuda_planner_acquire(struct mri_cuda_planner **out, mri_cuda_device *dev, mr_error *err);
void mri_cuda_planner_release(struct mri_cuda_planner *p);

#endif
