/* kernels/cuda/look.h: which GPUs there are, and what can be known of one without opening it. */
#ifndef MRI_CUDA_LOOK_H
#define MRI_CUDA_LOOK_H

#include "kernels/cuda/host/gpu.h"

#define MRI_CUDA_MIN_CAPABILITY 80u

/* What can be known of a GPU without opening it. */
struct mri_cuda_properties {
    CUdevice device;
    char name[128];
    size_t memory_bytes;
    uint32_t capability, multiprocessors;
};
int mri_cuda_properties(int ordinal, struct mri_cuda_properties *out, mr_error *err);
void mri_cuda_hardware_text(const struct mri_cuda_properties *look, char *out, size_t out_bytes);
/* The driver is loaded, new enough and started; *count GPUs are visible, perhaps none. */
int mri_cuda_start(int *count, mr_error *err);
/* " (CUDA_VISIBLE_DEVICES=0,1)", or nothing where it is not set. Returns out. */
char *mri_cuda_mask_text(char *out, size_t out_bytes);

bool mri_cuda_list(uint32_t at, mr_device_listing *out);

#endif
