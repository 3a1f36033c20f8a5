/* kernels/cuda/host/launch.c: our own kernels, loaded and launched. */
#include <stdio.h>

#include "kernels/cuda/host/gpu.h"

#define KERNEL_NAME(name) "mrk_" #name,
static const char *const kernel_names[] = {MRK_KERNELS(KERNEL_NAME)};

static int load_images(mri_cuda_device *dev, mr_error *err)
{
    for (const struct mri_cuda_image *image = mri_cuda_images; image->name; image++) {
        if (dev->module_count == MRI_CUDA_MAX_IMAGES)
            return mr_error_set(err, MR_ELIMIT, "more than %u files of kernels", MRI_CUDA_MAX_IMAGES);
        char what[96];
        snprintf(what, sizeof what, "loading the kernels %s for compute capability %u.%u", image->name,
                 dev->capability / 10, dev->capability % 10);
        const int rc = mri_cuda_check(
            dev, dev->api->cuModuleLoadData(&dev->modules[dev->module_count], image->data), what, err);
        if (rc) return rc;
        dev->module_count++;
    }
    return MR_OK;
}

static int find_kernel(mri_cuda_device *dev, uint32_t number, mr_error *err)
{
    for (uint32_t i = 0; i < dev->module_count; i++) {
        const CUresult code =
            dev->api->cuModuleGetFunction(&dev->kernels[number], dev->modules[i], kernel_names[number]);
        if (code == CUDA_ERROR_NOT_FOUND) continue;
        return mri_cuda_check(dev, code, kernel_names[number], err);
    }
    return mr_error_set(err, MR_EUNSUPPORTED, "%s: this build has no kernel %s", dev->base.name,
                        kernel_names[number]);
}

int mri_cuda_kernels_load(mri_cuda_device *dev, mr_error *err)
{
    int rc = load_images(dev, err);
    for (uint32_t i = 0; !rc && i < MRK_COUNT; i++) rc = find_kernel(dev, i, err);
    return rc;
}

void mri_cuda_kernels_unload(mri_cuda_device *dev)
{
    while (dev->module_count > 0) dev->api->cuModuleUnload(dev->modules[--dev->module_count]);
}

#define SHARED_WITHOUT_ASKING 49152u /* bytes; a kernel that needs more must request it first */

int mri_cuda_launch_2d(mri_cuda_stream *s, enum mrk_kernel kernel, uint32_t blocks_x, uint32_t blocks_y,
                       uint32_t threads, uint32_t shared_bytes, const void *args, mr_error *err)
{
    mri_cuda_device *dev = mri_cuda_of_stream(s);
    CUfunction f = dev->kernels[kernel];
    void *params[1] = {(void *)(uintptr_t)args}; /* read only */
    if (shared_bytes > SHARED_WITHOUT_ASKING) {
        const int rc =
            mri_cuda_check(dev,
                           dev->api->cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                        (int)shared_bytes),
                           kernel_names[kernel], err);
        if (rc) return rc;
    }
    return mri_cuda_check(dev,
                          dev->api->cuLaunchKernel(f, blocks_x, blocks_y, 1, threads, 1, 1, shared_bytes,
                                                   s->handle, params, NULL),
                          kernel_names[kernel], err);
}

int mri_cuda_launch(mri_cuda_stream *s, enum mrk_kernel kernel, uint32_t blocks, uint32_t threads,
                    uint32_t shared_bytes, const void *args, mr_error *err)
{
    return mri_cuda_launch_2d(s, kernel, blocks, 1, threads, shared_bytes, args, err);
}
