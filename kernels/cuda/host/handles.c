/* kernels/cuda/host/handles.c: the handles of cuBLAS and cuDNN that a stream keeps. */
#include "kernels/cuda/host/gpu.h"

/* What cuBLAS would take for itself on this GPU. Our own, because a handle without one allocates while it
 * works, which a recording does not allow, and because one workspace for one stream gives the same bits in
 * every run. */
static size_t workspace_bytes(const mri_cuda_device *dev)
{
    return dev->capability >= 90 ? (size_t)32 << 20 : (size_t)8 << 20;
}

static int set_up_cublas(mri_cuda_stream *s, cublasHandle_t handle, mr_error *err)
{
    mri_cuda_device *dev = mri_cuda_of_stream(s);
    const struct mri_cuda_api *api = dev->api;
    const cublasMath_t math = (cublasMath_t)((dev->tf32 ? CUBLAS_TF32_TENSOR_OP_MATH : CUBLAS_DEFAULT_MATH) |
                                             CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);
    int rc = mri_cuda_check_cublas(dev, api->cublasSetStream(handle, s->handle), "setting up cuBLAS", err);
    if (!rc && !s->workspace)
        rc = mri_cuda_device_alloc(&dev->base, workspace_bytes(dev), &s->workspace, err);
    if (!rc) /* after the stream: setting a stream takes the workspace away */
        rc = mri_cuda_check_cublas(dev, api->cublasSetWorkspace(handle, s->workspace, workspace_bytes(dev)),
                                   "setting up cuBLAS", err);
    if (!rc) rc = mri_cuda_check_cublas(dev, api->cublasSetMathMode(handle, math), "setting up cuBLAS", err);
    return rc;
}

int mri_cuda_cublas(mri_cuda_stream *s, cublasHandle_t *out, mr_error *err)
{
    mri_cuda_device *dev = mri_cuda_of_stream(s);
    if (!s->cublas) {
        cublasHandle_t handle = NULL;
        int rc = mri_cuda_check_cublas(dev, dev->api->cublasCreate(&handle), "opening cuBLAS", err);
        if (rc) return rc;
        rc = set_up_cublas(s, handle, err);
        if (rc) {
            dev->api->cublasDestroy(handle);
            return rc;
        }
        s->cublas = handle;
    }
    *out = s->cublas;
    return MR_OK;
}

int mri_cuda_cudnn(mri_cuda_stream *s, cudnnHandle_t *out, mr_error *err)
{
    mri_cuda_device *dev = mri_cuda_of_stream(s);
    if (!s->cudnn) {
        cudnnHandle_t handle = NULL;
        int rc = mri_cuda_check_cudnn(dev, dev->api->cudnnCreate(&handle), "opening cuDNN", err);
        if (rc) return rc;
        rc = mri_cuda_check_cudnn(dev, dev->api->cudnnSetStream(handle, s->handle), "opening cuDNN", err);
        if (rc) {
            dev->api->cudnnDestroy(handle);
            return rc;
        }
        s->cudnn = handle;
    }
    *out = s->cudnn;
    return MR_OK;
}

void mri_cuda_handles_close(mri_cuda_stream *s)
{
    mri_cuda_device *dev = mri_cuda_of_stream(s);
    if (s->cublas) dev->api->cublasDestroy(s->cublas);
    if (s->cudnn) dev->api->cudnnDestroy(s->cudnn);
    if (s->workspace) mri_cuda_device_free(&dev->base, s->workspace);
}
