/* kernels/cuda/cuda.h: the device kind "cuda". On top stand cuda.c, which opens devices, and list.c, which
 * says what is here; below them the rooms
 *
 *   ops/       one operation each                        plan/      cuDNN plans: which algorithm, measured
 * once host/      what a GPU is to the host (gpu.h)         kernels/   the device code, and args.h: what it
 * takes
 *
 * Takes those, and kernels/backend/. backends.c puts it into the table of kinds. */
#ifndef MRI_CUDA_H
#define MRI_CUDA_H

struct mri_backend;
extern const struct mri_backend mri_cuda_backend;

#endif
