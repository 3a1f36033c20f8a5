/* kernels/cuda/host/cuda_memory.c: device memory from a pool of our own, pinned host memory, copies and
 * fills.
 *
 * The pool keeps memory that it took from the system, so that allocating again costs microseconds and no
 * synchronisation of the whole GPU. Allocation and release are ordered on the device's house stream: an
 * allocation waits for it (a few microseconds), after which any stream may use the memory; a release only
 * queues there, after every earlier release; the caller guarantees that no stream still uses the memory. */
#include <stdio.h>

#include "kernels/cuda/host/gpu.h"

int mri_cuda_pool_open(mri_cuda_device *dev, mr_error *err)
{
    const CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                  .handleTypes = CU_MEM_HANDLE_TYPE_NONE,
                                  .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = dev->device}};
    int rc =
        mri_cuda_check(dev, dev->api->cuMemPoolCreate(&dev->pool, &props), "creating the memory pool", err);
    if (rc) {
        dev->pool = NULL;
        return rc;
    }
    cuuint64_t keep = UINT64_MAX;
    rc = mri_cuda_check(dev,
                        dev->api->cuMemPoolSetAttribute(dev->pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep),
                        "setting up the memory pool", err);
    return rc;
}

/* NCCL lets one GPU of a process write into another's buffers where the two can reach each other. Memory of a
 * pool is closed to other GPUs until it is opened to them. */
int mri_cuda_pool_share(mri_cuda_device *dev, const mri_cuda_device *other, mr_error *err)
{
    int can = 0;
    if (dev->device == other->device) return MR_OK;
    int rc = mri_cuda_check(dev, dev->api->cuDeviceCanAccessPeer(&can, other->device, dev->device),
                            "asking for peer access", err);
    if (rc || !can) return rc;
    const CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = other->device},
                                    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    return mri_cuda_check(dev, dev->api->cuMemPoolSetAccess(dev->pool, &access, 1),
                          "opening memory to another GPU", err);
}

/* Report the system's free memory, and the pool's unused memory. */
static int out_of_memory(mri_cuda_device *dev, size_t bytes, mr_error *err)
{
    size_t left = 0, total = 0;
    cuuint64_t reserved = 0, used = 0;
    dev->api->cuMemGetInfo(&left, &total);
    dev->api->cuMemPoolGetAttribute(dev->pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved);
    dev->api->cuMemPoolGetAttribute(dev->pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used);
    return mr_error_set(
        err, MR_ENOMEM,
        "%s: asked for %zu bytes of GPU memory, %llu left of %llu (%llu of them in pieces held back "
        "for reuse); try a smaller batch or half precision",
        dev->base.name, bytes, (unsigned long long)(left + (reserved - used)),
        (unsigned long long)dev->base.info.memory_bytes, (unsigned long long)(reserved - used));
}

int mri_cuda_device_alloc(mr_device *base, size_t bytes, void **out, mr_error *err)
{
    mri_cuda_device *dev = mri_cuda_device_of(base);
    int rc = mri_cuda_enter(dev, err);
    if (rc) return rc;
    if (bytes > base->info.memory_bytes) return out_of_memory(dev, bytes, err);
    CUdeviceptr address = 0;
    const CUresult code = dev->api->cuMemAllocFromPoolAsync(&address, bytes, dev->pool, dev->house);
    if (code == CUDA_ERROR_OUT_OF_MEMORY) return out_of_memory(dev, bytes, err);
    rc = mri_cuda_check(dev, code, "allocating memory", err);
    if (rc) return rc;
    rc = mri_cuda_check(dev, dev->api->cuStreamSynchronize(dev->house), "allocating memory", err);
    if (rc) {
        dev->api->cuMemFreeAsync(address, dev->house);
        return rc;
    }
    *out = (void *)(uintptr_t)address;
    return MR_OK;
}

void mri_cuda_device_free(mr_device *base, void *address)
{
    mri_cuda_device *dev = mri_cuda_device_of(base);
    mri_cuda_enter_for_cleanup(dev);
    dev->api->cuMemFreeAsync((CUdeviceptr)(uintptr_t)address, dev->house);
}

static int host_alloc(mr_device *base, size_t bytes, void **out, mr_error *err)
{
    mri_cuda_device *dev = mri_cuda_device_of(base);
    int rc = mri_cuda_enter(dev, err);
    if (rc) return rc;
    const uint64_t limit = mri_memory_limit_bytes();
    /* portable: pinned for every GPU of the process, because one batch slot feeds all */
    const CUresult code = bytes > limit ? CUDA_ERROR_OUT_OF_MEMORY
                                        : dev->api->cuMemHostAlloc(out, bytes, CU_MEMHOSTALLOC_PORTABLE);
    if (code == CUDA_SUCCESS) return MR_OK;
    *out = NULL;
    if (code != CUDA_ERROR_OUT_OF_MEMORY) return mri_cuda_check(dev, code, "allocating pinned memory", err);
    return mr_error_set(
        err, MR_ENOMEM,
        "%s: asked for %zu bytes of pinned host memory of %llu this process may use; try fewer slots or "
        "a smaller batch",
        base->name, bytes, (unsigned long long)limit);
}

static void host_free(mr_device *base, void *address)
{
    mri_cuda_device *dev = mri_cuda_device_of(base);
    mri_cuda_enter_for_cleanup(dev);
    dev->api->cuMemFreeHost(address);
}

static int copy(mri_cuda_stream *s, enum mri_copy_kind kind, void *dst, const void *src, size_t bytes,
                const char *what, mr_error *err)
{
    mri_cuda_device *dev = mri_cuda_of_stream(s);
    const CUdeviceptr to = (CUdeviceptr)(uintptr_t)dst, from = (CUdeviceptr)(uintptr_t)src;
    CUresult code = CUDA_SUCCESS;
    switch (kind) {
    case MRI_COPY_H2D: code = dev->api->cuMemcpyHtoDAsync(to, src, bytes, s->handle); break;
    case MRI_COPY_D2H: code = dev->api->cuMemcpyDtoHAsync(dst, from, bytes, s->handle); break;
    case MRI_COPY_D2D: code = dev->api->cuMemcpyDtoDAsync(to, from, bytes, s->handle); break;
    }
    return mri_cuda_check(dev, code, what, err);
}

static int copy_async(mr_stream *base, enum mri_copy_kind kind, void *dst, const void *src, size_t bytes)
{
    static const char *const names[] = {[MRI_COPY_H2D] = "copy to the device",
                                        [MRI_COPY_D2H] = "copy from the device",
                                        [MRI_COPY_D2D] = "copy on the device"};
    mri_cuda_stream *s = (mri_cuda_stream *)base;
    mr_error err = MR_ERROR_INIT;
    int rc = mri_cuda_enter(mri_cuda_of_stream(s), &err);
    if (!rc && kind != MRI_COPY_D2D) rc = mri_cuda_not_recorded(s, names[kind], &err);
    if (!rc) rc = copy(s, kind, dst, src, bytes, names[kind], &err);
    return mri_cuda_queued(s, rc, names[kind], &err);
}

static int fill_async(mr_stream *base, void *dst, uint8_t byte, size_t bytes)
{
    mri_cuda_stream *s = (mri_cuda_stream *)base;
    mri_cuda_device *dev = mri_cuda_of_stream(s);
    mr_error err = MR_ERROR_INIT;
    int rc = mri_cuda_enter(dev, &err);
    if (!rc)
        rc = mri_cuda_check(dev,
                            dev->api->cuMemsetD8Async((CUdeviceptr)(uintptr_t)dst, byte, bytes, s->handle),
                            "fill", &err);
    return mri_cuda_queued(s, rc, "fill", &err);
}

const struct mri_memory_calls mri_cuda_memory = {.device_alloc = mri_cuda_device_alloc,
                                                 .device_free = mri_cuda_device_free,
                                                 .host_alloc = host_alloc,
                                                 .host_free = host_free};
const struct mri_copy_calls mri_cuda_copies = {.copy_async = copy_async, .fill_async = fill_async};
