/* kernels/cuda/cuda.h: the device kind "cuda". On top stand cuda.c, which opens devices, and list.c, which
 * lists the GPUs of the machine; below them the rooms
 *
 *   ops/       one operation each                          plan/      cuDNN plans: which algorithm, measured
 *   host/      the host side of a GPU (gpu.h)                        once
 *                                                          kernels/   the device code and its arguments
 *
 * Takes a device's number and settings from device.c. Gives one struct mri_backend, which backends.c puts
 * into the table of kinds: nobody else calls this room. It stands on kernels/backend/. */
#ifndef MRI_CUDA_H
#define MRI_CUDA_H

struct mri_backend;
extern const struct mri_backend mri_cuda_backend;

#endif
