/* kernels/cuda/cuda.c: the device kind "cuda": GPUs opened by number, and the backend's table.
 *
 * A device holds the GPU's primary context, which all libraries of the process share; a memory pool, a house
 * stream, our kernels and the clock's first anchor. Opening takes them in that order, closing gives them back
 * in reverse. */
#include "kernels/cuda/cuda.h"

#include <stdio.h>

#include "kernels/backend/spec.h"
#include "kernels/cuda/look.h"
#include "kernels/cuda/ops/cuda_op.h"

static void cuda_close(mr_device *base)
{
    mri_cuda_device *dev = mri_cuda_device_of(base);
    if (dev->context) {
        mri_cuda_enter_for_cleanup(dev);
        if (dev->house) mri_cuda_drain(dev, dev->house); /* an anchor, and the latest releases */
        mri_cuda_anchors_close(dev);
        mri_cuda_kernels_unload(dev);
        if (dev->house) dev->api->cuStreamDestroy(dev->house);
        if (dev->pool) dev->api->cuMemPoolDestroy(dev->pool);
        dev->api->cuCtxSetCurrent(NULL);
        dev->api->cuDevicePrimaryCtxRelease(dev->device);
    }
    pthread_mutex_destroy(&dev->lock);
    pthread_mutex_destroy(&dev->anchors.lock);
    free(dev);
}

/* All initialisation that needs the GPU itself. cuda_close() undoes it, also when partial. */
static int start_device(mri_cuda_device *dev, mr_error *err)
{
    CUcontext context = NULL;
    int rc = mri_cuda_check(dev, dev->api->cuDevicePrimaryCtxRetain(&context, dev->device), "opening the GPU",
                            err);
    if (rc) return rc;
    dev->context = context;
    rc = mri_cuda_enter(dev, err);
    if (!rc) rc = mri_cuda_pool_open(dev, err);
    if (!rc) {
        CUstream house = NULL;
        rc = mri_cuda_check(dev, dev->api->cuStreamCreateWithPriority(&house, CU_STREAM_NON_BLOCKING, 0),
                            "creating a stream", err);
        if (!rc) dev->house = house;
    }
    if (!rc) rc = mri_cuda_kernels_load(dev, err);
    if (!rc) rc = mri_cuda_anchors_open(dev, err);
    return rc;
}

static int check_number(uint32_t number, int count, mr_error *err)
{
    char mask[128];
    mri_cuda_mask_text(mask, sizeof mask);
    if (count == 0)
        return mr_error_set(
            err, MR_ENOENT,
            "devices: asked for cuda:%u, there is no GPU%s; `millrace devices` lists the devices", number,
            mask);
    if (number >= (uint32_t)count)
        return mr_error_set(err, MR_ENOENT, "devices: asked for cuda:%u, there %s %d, numbered from 0%s",
                            number, count == 1 ? "is" : "are", count, mask);
    return MR_OK;
}

/* A GPU may carry several replicas; from the second on, they say which they are. */
static void name_device(mri_cuda_device *dev, const struct mri_spec *spec, uint32_t index)
{
    uint32_t before = 0;
    for (uint32_t i = 0; i < index; i++) before += spec->numbers[i] == spec->numbers[index];
    if (before == 0) snprintf(dev->base.name, sizeof dev->base.name, "cuda:%u", spec->numbers[index]);
    else
        snprintf(dev->base.name, sizeof dev->base.name, "cuda:%u (replica %u)", spec->numbers[index],
                 before + 1);
}

static int open_one(mr_device **out, const struct mri_spec *spec, uint32_t index,
                    const mr_devices_config *cfg, mr_error *err)
{
    struct mri_cuda_properties look;
    int rc = mri_cuda_properties((int)spec->numbers[index], &look, err);
    if (rc) return rc;
    if (look.capability < MRI_CUDA_MIN_CAPABILITY)
        return mr_error_set(err, MR_EUNSUPPORTED,
                            "cuda:%u (%s) has compute capability %u.%u; 8.0 or newer is needed",
                            spec->numbers[index], look.name, look.capability / 10, look.capability % 10);
    mri_cuda_device *dev = calloc(1, sizeof *dev);
    if (!dev) return mr_error_set(err, MR_ENOMEM, "no memory for device cuda:%u", spec->numbers[index]);
    pthread_mutex_init(&dev->lock, NULL);
    pthread_mutex_init(&dev->anchors.lock, NULL);
    dev->base.backend = &mri_cuda_backend;
    dev->api = mri_cuda_api();
    dev->ordinal = (int)spec->numbers[index];
    dev->device = look.device;
    dev->capability = look.capability;
    dev->multiprocessors = look.multiprocessors;
    dev->tf32 = cfg->tf32;
    dev->deterministic = cfg->deterministic;
    dev->check_each = cfg->check_each;
    name_device(dev, spec, index);
    mri_cuda_hardware_text(&look, dev->base.hardware, sizeof dev->base.hardware);
    dev->base.info = (mr_device_info){.kind = "cuda",
                                      .name = dev->base.name,
                                      .hardware = dev->base.hardware,
                                      .index = index,
                                      .memory_bytes = look.memory_bytes};
    rc = start_device(dev, err);
    if (rc) {
        cuda_close(&dev->base);
        return rc;
    }
    *out = &dev->base;
    return MR_OK;
}

static int cuda_count(struct mri_spec *spec, mr_error *err)
{
    int there = 0;
    const int rc = spec->all ? mri_cuda_start(&there, err) : MR_OK;
    return rc ? rc : mri_spec_ordinals(spec, (uint32_t)there, err);
}

static int cuda_open(mr_device **devices, const struct mri_spec *spec, const mr_devices_config *cfg,
                     mr_error *err)
{
    int count;
    if (spec->option_count > 0)
        return mr_error_set(err, MR_EINVAL,
                            "devices: cuda has no option \"%s\"; expected cuda, cuda:all or "
                            "cuda:NUMBER[,NUMBER]...",
                            spec->options[0].name);
    int rc = mri_cuda_start(&count, err);
    for (uint32_t i = 0; !rc && i < spec->count; i++) rc = check_number(spec->numbers[i], count, err);
    if (!rc) rc = mri_cuda_need(MRI_CUDA_CUBLAS, err);
    if (!rc) rc = mri_cuda_need(MRI_CUDA_CUDNN, err);
    if (rc) return rc;
    for (uint32_t i = 0; i < spec->count; i++) {
        rc = open_one(&devices[i], spec, i, cfg, err);
        if (!rc) continue;
        while (i-- > 0) cuda_close(devices[i]);
        return rc;
    }
    return MR_OK;
}

const struct mri_backend mri_cuda_backend = {
    .kind = "cuda",
    .count = cuda_count,
    .open = cuda_open,
    .close = cuda_close,
    .list = mri_cuda_list,
    .memory = &mri_cuda_memory,
    .copies = &mri_cuda_copies,
    .streams = &mri_cuda_streams,
    .events = &mri_cuda_events,
    .ops = &mri_cuda_ops,
    .update_async = mri_cuda_update_async,
    .update_room = mri_cuda_update_room,
    .average_async = mri_cuda_average_async,
    .add_async = mri_cuda_add_async,
    .groups = &mri_cuda_groups,
    .graphs = &mri_cuda_graphs,
};
