/* kernels/cuda/host/cuda_error.c: codes of foreign libraries into ours, and the error a device keeps.
 *
 * Three kinds of trouble:
 *   - a call is refused, the GPU is well (out of memory, a wrong argument): reported by that call;
 *   - the same in a call that only queues: kept too, because its caller may look only at the next
 *     synchronising call. While a stream records, kept in the recording, so that mr_graph_end() reports it
 *     and the device goes on;
 *   - the GPU itself failed (a bad address, a lost link): kept always. Every later call in the process would
 *     fail too.
 * A GPU notices the third kind when it runs, so whichever call comes next reports it, and says that it may
 * not be the cause. */
#include <stdio.h>

#include "kernels/cuda/host/gpu.h"

/* No recovery within this process: the context is gone, or the hardware is. */
static bool is_fatal(CUresult code)
{
    switch ((int)code) {
    case CUDA_ERROR_DEINITIALIZED:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_TENSOR_MEMORY_LEAK:
    case CUDA_ERROR_MPS_RPC_FAILURE:
    case CUDA_ERROR_MPS_CLIENT_TERMINATED:
    case CUDA_ERROR_EXTERNAL_DEVICE:
    case CUDA_ERROR_UNKNOWN: return true;
    default: return false;
    }
}

void mri_cuda_code_text(CUresult code, char *out, size_t out_bytes)
{
    const struct mri_cuda_api *api = mri_cuda_api();
    const char *name = NULL, *text = NULL;
    if (api->cuGetErrorName(code, &name) != CUDA_SUCCESS || !name) name = NULL;
    if (api->cuGetErrorString(code, &text) != CUDA_SUCCESS || !text) text = "no text";
    if (name) snprintf(out, out_bytes, "%s: %s", name, text);
    else snprintf(out, out_bytes, "CUDA error %d: %s", (int)code, text);
}

int mri_cuda_fail(mri_cuda_device *dev, const mr_error *error)
{
    pthread_mutex_lock(&dev->lock);
    if (dev->failed == MR_OK) {
        dev->error = *error;
        dev->failed = error->code;
    }
    pthread_mutex_unlock(&dev->lock);
    return error->code;
}

int mri_cuda_failed(mri_cuda_device *dev, mr_error *err)
{
    if (dev->failed == MR_OK) return MR_OK;
    pthread_mutex_lock(&dev->lock);
    if (err) *err = dev->error;
    pthread_mutex_unlock(&dev->lock);
    return dev->failed;
}

/* Tried twice, because nothing that follows could report a failure or do its work without. */
void mri_cuda_enter_for_cleanup(mri_cuda_device *dev)
{
    if (dev->api->cuCtxSetCurrent(dev->context) != CUDA_SUCCESS) dev->api->cuCtxSetCurrent(dev->context);
}

int mri_cuda_enter(mri_cuda_device *dev, mr_error *err)
{
    const int rc = mri_cuda_failed(dev, err);
    return rc ? rc : mri_cuda_check(dev, dev->api->cuCtxSetCurrent(dev->context), "choosing the device", err);
}

int mri_cuda_check(mri_cuda_device *dev, CUresult code, const char *what, mr_error *err)
{
    if (code == CUDA_SUCCESS) return MR_OK;
    mr_error here = MR_ERROR_INIT;
    char text[256];
    mri_cuda_code_text(code, text, sizeof text);
    const bool fatal = is_fatal(code);
    const char *late = !fatal            ? ""
                       : dev->check_each ? "; the GPU cannot be used any more in this process"
                                         : "; the cause may be any operation queued since the last "
                                           "synchronisation: run again with check_each to have it named";
    mr_error_set(&here, code == CUDA_ERROR_OUT_OF_MEMORY ? MR_ENOMEM : MR_EDEVICE, "%s: %s: %s%s",
                 dev->base.name, what, text, late);
    if (fatal) mri_cuda_fail(dev, &here);
    if (err) *err = here;
    return here.code;
}

int mri_cuda_check_cublas(mri_cuda_device *dev, cublasStatus_t code, const char *what, mr_error *err)
{
    if (code == CUBLAS_STATUS_SUCCESS) return MR_OK;
    const char *text = dev->api->cublasGetStatusString(code);
    return mr_error_set(err, code == CUBLAS_STATUS_ALLOC_FAILED ? MR_ENOMEM : MR_EDEVICE,
                        "%s: %s: cuBLAS error %d: %s", dev->base.name, what, (int)code,
                        text ? text : "no text");
}

int mri_cuda_check_cudnn(mri_cuda_device *dev, cudnnStatus_t code, const char *what, mr_error *err)
{
    if (code == CUDNN_STATUS_SUCCESS) return MR_OK;
    const char *text = dev->api->cudnnGetErrorString(code);
    char more[256] = "";
    dev->api->cudnnGetLastErrorString(more, sizeof more);
    const bool unsupported = code >= CUDNN_STATUS_NOT_SUPPORTED && code < CUDNN_STATUS_INTERNAL_ERROR;
    return mr_error_set(err, unsupported ? MR_EUNSUPPORTED : MR_EDEVICE, "%s: %s: cuDNN error %d: %s%s%s",
                        dev->base.name, what, (int)code, text ? text : "no text", more[0] ? ": " : "", more);
}

int mri_cuda_check_nccl(mri_cuda_device *dev, ncclResult_t code, const char *what, mr_error *err)
{
    if (code == ncclSuccess) return MR_OK;
    const char *text = dev->api->ncclGetErrorString(code);
    return mr_error_set(err, MR_EDEVICE,
                        "%s: %s: NCCL error %d: %s; NCCL_DEBUG=WARN in the environment has NCCL say more",
                        dev->base.name, what, (int)code, text ? text : "no text");
}
