/* kernels/cpu/cpu.c: the device kind "cpu": the host's own memory, one worker thread per stream, operations
 * on OpenMP threads. The replicas of one run share the core budget. */
#include "kernels/cpu/cpu.h"

#include <omp.h>
#include <stdio.h>

#include "kernels/backend/op_class.h"
#include "kernels/backend/spec.h"
#include "kernels/ops/host_op.h"

/* The number of threads that OpenMP grants this thread from now on: a limit of the program or of its
 * environment (OMP_THREAD_LIMIT, OMP_MAX_ACTIVE_LEVELS) may leave fewer. oneDNN and winograd.c cut their work
 * for the requested number, and would wait forever for missing threads. */
static uint32_t granted(uint32_t wanted)
{
    uint32_t threads = 1;
    omp_set_num_threads((int)wanted);
    omp_set_dynamic(0);
#pragma omp parallel
    if (omp_get_thread_num() == 0) threads = (uint32_t)omp_get_num_threads();
    return threads;
}

/* Operations queued on a compute stream use the device's share of the cores; a copy stream needs only its own
 * thread. */
static void begin_thread(mri_host_device *dev, mr_stream_role role)
{
    const uint32_t wanted = role == MR_STREAM_COMPUTE ? dev->base.info.threads : 1, got = granted(wanted);
    mr_error why = MR_ERROR_INIT;
    if (got >= wanted) return;
    mr_error_set(&why, MR_EDEVICE,
                 "%s: OpenMP gave a stream %u threads; it had given the device %u when it was opened",
                 dev->base.name, got, wanted);
    mri_host_device_fail(dev, &why);
}

static int count_threads(void *context, mr_error *err)
{
    (void)err;
    mri_host_device *dev = context;
    dev->base.info.threads = granted(dev->base.info.threads);
    omp_set_num_threads((int)dev->base.info.threads);
    return MR_OK;
}

/* Where there is something faster than the reference. */
static const struct mri_op_code *const faster[MR_OP_KIND_COUNT] = {
    [MR_OP_GRU] = &mri_gru_packed,
    [MR_OP_LSTM] = &mri_lstm_packed,
#ifndef MRI_DNNL_OFF /* the plain C operations take NHWC only */
    [MR_OP_INPUT] = &mri_input_planar,
    [MR_OP_CONV2D] = &mri_conv2d_dnnl,
    [MR_OP_POOL2D] = &mri_pool2d_dnnl,
    [MR_OP_DENSE] = &mri_dense_dnnl,
    [MR_OP_CONV2D_TRANSPOSED] = &mri_conv2d_transposed_dnnl,
#endif
};

#ifdef MRI_DNNL_OFF
#define BUILT_WITHOUT "; plain C, built without oneDNN"
#else
#define BUILT_WITHOUT ""
#endif

static const struct mri_op_code *code_for(const mr_op *head)
{
    const struct mri_op_code *fast = faster[head->desc.kind];
    return fast && !mri_host_device_of(head->device)->reference ? fast : head->is->reference;
}

/* The processor's model as the system reports it, and the libraries missing from the build. */
static void processor_name(char *out, size_t out_bytes)
{
    snprintf(out, out_bytes, "processor" BUILT_WITHOUT);
    FILE *f = fopen("/proc/cpuinfo", "re");
    if (!f) return;
    char line[256];
    while (fgets(line, sizeof line, f)) {
        const char *colon = strchr(line, ':');
        if (!colon || (strncmp(line, "model name", 10) != 0 && strncmp(line, "Model", 5) != 0)) continue;
        line[strcspn(line, "\n")] = '\0';
        snprintf(out, out_bytes, "%s" BUILT_WITHOUT, colon + 1 + strspn(colon + 1, " \t"));
        break;
    }
    fclose(f);
}

static int cpu_open(mr_device **devices, const struct mri_spec *spec, const mr_devices_config *cfg,
                    mr_error *err)
{
    if (spec->option_count > 0)
        return mr_error_set(err, MR_EINVAL, "devices: cpu has no option \"%s\"; expected cpu or cpu:N",
                            spec->options[0].name);
    const uint32_t budget = cfg->compute_threads ? cfg->compute_threads : mri_core_count();
    const int rc = mri_host_devices_create(devices, spec->count, &mri_cpu_backend, err);
    int started = MR_OK;
    for (uint32_t i = 0; !rc && i < spec->count; i++) {
        mri_host_device *dev = mri_host_device_of(devices[i]);
        dev->base.info.threads = budget > spec->count ? budget / spec->count : 1;
        dev->reference = cfg->reference;
        dev->convolution = cfg->convolution;
        dev->code_for = code_for;
        processor_name(dev->base.hardware, sizeof dev->base.hardware);
        started = mri_host_maker_start(dev, err);
        if (started == MR_OK) started = mri_host_make(dev, count_threads, dev, err);
        dev->thread_begin = begin_thread;
        if (started != MR_OK) break;
    }
    for (uint32_t i = 0; started != MR_OK && i < spec->count; i++) mri_host_device_close(devices[i]);
    return rc ? rc : started;
}

static bool cpu_list(uint32_t at, mr_device_listing *out)
{
    if (at > 0) return false;
    *out = (mr_device_listing){.kind = "cpu", .spec = "cpu", .state = "ready"};
    char name[96];
    processor_name(name, sizeof name);
    snprintf(out->hardware, sizeof out->hardware, "%s, %u cores", name, mri_core_count());
    return true;
}

const struct mri_backend mri_cpu_backend = {
    .kind = "cpu",
    .count = mri_spec_replicas,
    .open = cpu_open,
    .close = mri_host_device_close,
    .list = cpu_list,
    .memory = &mri_host_memory,
    .copies = &mri_host_copies,
    .streams = &mri_host_streams,
    .events = &mri_host_events,
    .ops = &mri_host_ops,
    .update_async = mri_host_update_async,
    .update_room = mri_host_update_room,
    .average_async = mri_host_average_async,
    .add_async = mri_host_add_async,
    .groups = &mri_host_groups,
};
