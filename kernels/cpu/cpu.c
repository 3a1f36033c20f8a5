/* kernels/cpu/cpu.c: the device kind "cpu": the host's own memory, one worker thread per stream, operations
 * on OpenMP threads. The replicas of one run share the core budget. */
#include <omp.h>
#include <stdio.h>

#include "kernels/host/host_op.h"

/* Operations queued on a compute stream use the device's share of the cores; a copy stream needs only its own
 * thread. */
static void begin_thread(mri_host_device *dev, mr_stream_role role)
{
    omp_set_num_threads(role == MR_STREAM_COMPUTE ? (int)dev->base.info.threads : 1);
    omp_set_dynamic(0);
}

static int cpu_open(mr_device **devices, const struct mri_spec *spec, const mr_devices_config *cfg,
                    mr_error *err)
{
    if (spec->option_count > 0)
        return mr_error_set(err, MR_EINVAL, "devices: cpu has no option \"%s\"; expected cpu or cpu:N",
                            spec->options[0].name);
    const uint32_t budget = cfg->compute_threads ? cfg->compute_threads : mri_core_count();
    for (uint32_t i = 0; i < spec->count; i++) {
        mri_host_device *dev;
        const int rc = mri_host_device_create(&dev, &mri_cpu_backend, i, err);
        if (rc) {
            while (i-- > 0) mri_host_device_close(devices[i]);
            return rc;
        }
        dev->base.info.threads = budget > spec->count ? budget / spec->count : 1;
        dev->reference = cfg->reference;
        dev->thread_begin = begin_thread;
        mri_processor_name(dev->base.hardware, sizeof dev->base.hardware);
        devices[i] = &dev->base;
    }
    return MR_OK;
}

static bool cpu_list(uint32_t at, mr_device_listing *out)
{
    if (at > 0) return false;
    *out = (mr_device_listing){.kind = "cpu", .spec = "cpu", .state = "ready"};
    char name[96];
    mri_processor_name(name, sizeof name);
    snprintf(out->hardware, sizeof out->hardware, "%s, %u cores", name, mri_core_count());
    return true;
}

/* Primitives are made for the number of threads that holds in the thread that creates them: the device's, for
 * this call. */
static int cpu_op_create(mr_op **out, mr_device *dev, const mr_op_desc *desc, const mr_op_info *info,
                         mr_error *err)
{
    const bool reference = mri_host_device_of(dev)->reference;
    const int before = omp_get_max_threads();
    omp_set_num_threads((int)dev->info.threads);
    const int rc = mri_host_op_create(
        out, dev, desc, info, reference ? mri_reference_code(desc->kind) : mri_fast_code(desc->kind), err);
    omp_set_num_threads(before);
    return rc;
}

const struct mri_backend mri_cpu_backend = {
    .kind = "cpu",
    .count = mri_spec_replicas,
    .open = cpu_open,
    .close = mri_host_device_close,
    .list = cpu_list,
    .device_alloc = mri_host_alloc,
    .device_free = mri_host_free,
    .host_alloc = mri_host_alloc,
    .host_free = mri_host_free,
    .stream_create = mri_host_stream_create,
    .stream_destroy = mri_host_stream_destroy,
    .stream_sync = mri_host_stream_sync,
    .stream_wait_event = mri_host_stream_wait_event,
    .event_create = mri_host_event_create,
    .event_destroy = mri_host_event_destroy,
    .event_record = mri_host_event_record,
    .event_query = mri_host_event_query,
    .event_wait = mri_host_event_wait,
    .event_time_ns = mri_host_event_time_ns,
    .copy_async = mri_host_copy_async,
    .fill_async = mri_host_fill_async,
    .op_create = cpu_op_create,
    .op_destroy = mri_host_op_destroy,
    .op_forward_async = mri_host_op_forward_async,
    .op_backward_async = mri_host_op_backward_async,
    .op_param_import = mri_host_op_param_import,
    .op_param_export = mri_host_op_param_export,
    .group_create = mri_host_group_create,
    .group_destroy = mri_host_group_destroy,
    .group_broadcast_async = mri_host_group_broadcast_async,
    .group_abort = mri_host_group_abort,
    .update_async = mri_host_update_async,
    .group_sum_async = mri_host_group_sum_async,
};
