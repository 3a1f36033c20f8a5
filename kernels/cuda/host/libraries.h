/* kernels/cuda/host/libraries.h: every function of NVIDIA's libraries that millrace calls, in one table.
 *
 * Nothing is linked: the libraries are opened when the first device of kind "cuda" is, so one program runs
 * with and without a driver. Code calls them as api->cuStreamCreate(...); the headers' macros turn the name
 * into the versioned symbol (cuMemAlloc is cuMemAlloc_v2) both there and in the table, so the version called
 * is the one that was compiled against.
 *
 *   libcuda.so.1        the driver; needed for anything
 *   libcublas.so.13     products of matrices     } opened with the first device too: a machine that lacks one
 *   libcudnn.so.9       convolutions             } of them says so at the start, not in the middle of a run
 *   libnccl.so.2        sums between devices; opened by the first group of more than one device, or of
 *                       several processes that use it
 *
 * They are looked for where the system looks, then in the folders of MILLRACE_CUDA_PATH (separated by ':'),
 * then in /usr/local/cuda/lib64. */
#ifndef MRI_CUDA_LIBRARIES_H
#define MRI_CUDA_LIBRARIES_H

#include <cublas_v2.h>
#include <cuda.h>
#include <cudnn.h>
#include <nccl.h>

#include "base/util.h"

/* Left as they are by clang-format, which does not come to rest on lists like these. */
/* clang-format off */
#define MRI_CUDA_DRIVER_CALLS(X) \
    X(cuInit) X(cuDriverGetVersion) X(cuGetErrorName) X(cuGetErrorString) X(cuDeviceGetCount) \
    X(cuDeviceGet) X(cuDeviceGetName) X(cuDeviceGetAttribute) X(cuDeviceTotalMem) X(cuDeviceGetPCIBusId) \
    X(cuDeviceGetUuid) X(cuDeviceCanAccessPeer) X(cuDevicePrimaryCtxRetain) X(cuDevicePrimaryCtxRelease) \
    X(cuCtxSetCurrent) X(cuCtxGetCurrent) X(cuMemGetInfo) X(cuMemPoolCreate) X(cuMemPoolDestroy) \
    X(cuMemPoolSetAttribute) X(cuMemPoolGetAttribute) X(cuMemPoolSetAccess) X(cuMemAllocFromPoolAsync) \
    X(cuMemFreeAsync) X(cuMemHostAlloc) X(cuMemFreeHost) X(cuStreamCreateWithPriority) \
    X(cuCtxGetStreamPriorityRange) X(cuStreamDestroy) X(cuStreamSynchronize) X(cuStreamQuery) \
    X(cuStreamWaitEvent) X(cuStreamBeginCapture) X(cuStreamEndCapture) X(cuEventCreate) X(cuEventDestroy) \
    X(cuEventRecord) X(cuEventQuery) X(cuEventSynchronize) X(cuEventElapsedTime) X(cuMemcpyHtoDAsync) \
    X(cuMemcpyDtoHAsync) X(cuMemcpyDtoDAsync) X(cuMemsetD8Async) X(cuModuleLoadData) X(cuModuleUnload) \
    X(cuModuleGetFunction) X(cuFuncSetAttribute) X(cuLaunchKernel) X(cuLaunchHostFunc) \
    X(cuGraphInstantiate) X(cuGraphLaunch) X(cuGraphExecDestroy) X(cuGraphDestroy)

#define MRI_CUBLAS_CALLS(X) \
    X(cublasCreate) X(cublasDestroy) X(cublasSetStream) X(cublasSetWorkspace) X(cublasSetMathMode) \
    X(cublasGemmEx) X(cublasGetStatusString) X(cublasGetVersion)

#define MRI_CUDNN_CALLS(X) \
    X(cudnnCreate) X(cudnnDestroy) X(cudnnSetStream) X(cudnnGetVersion) X(cudnnGetErrorString) \
    X(cudnnGetLastErrorString) X(cudnnBackendCreateDescriptor) X(cudnnBackendDestroyDescriptor) \
    X(cudnnBackendSetAttribute) X(cudnnBackendGetAttribute) X(cudnnBackendFinalize) X(cudnnBackendExecute)

#define MRI_NCCL_CALLS(X) \
    X(ncclGetVersion) X(ncclGetErrorString) X(ncclCommInitAll) X(ncclCommDestroy) X(ncclCommAbort) \
    X(ncclCommGetAsyncError) X(ncclGroupStart) X(ncclGroupEnd) X(ncclAllReduce) X(ncclBroadcast) \
    X(ncclGetUniqueId) X(ncclCommInitRankConfig) X(ncclCommFinalize) X(ncclSend) X(ncclRecv)

/* clang-format on */

struct mri_cuda_api {
#define MRI_FIELD(f) __typeof__(&f) f;
    MRI_CUDA_DRIVER_CALLS(MRI_FIELD)
    MRI_CUBLAS_CALLS(MRI_FIELD)
    MRI_CUDNN_CALLS(MRI_FIELD)
    MRI_NCCL_CALLS(MRI_FIELD)
#undef MRI_FIELD
};

enum mri_cuda_library { MRI_CUDA_DRIVER, MRI_CUDA_CUBLAS, MRI_CUDA_CUDNN, MRI_CUDA_NCCL, MRI_CUDA_LIBRARIES };

/* Open a library if it is not open yet and fill its part of the table. MR_EUNSUPPORTED names the file that is
 * missing or too old and what to install or set. Any thread. A library stays open until the program ends. */
int mri_cuda_need(enum mri_cuda_library which, mr_error *err);
/* The table; only parts of libraries that were needed may be called. */
const struct mri_cuda_api *mri_cuda_api(void);

#endif
