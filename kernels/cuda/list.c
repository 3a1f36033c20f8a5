/* kernels/cuda/list.c: is there a driver, which GPUs are visible, and why one is not usable. Takes nothing
 * from any GPU. */
#include "kernels/cuda/look.h"

#include <stdio.h>

#define LEAST_DRIVER                                                                                         \
    (CUDA_VERSION / 1000 * 1000) /* any driver of the toolkit's major version runs its output */

char *mri_cuda_mask_text(char *out, size_t out_bytes)
{
    const char *mask = getenv("CUDA_VISIBLE_DEVICES");
    char shown[96];
    out[0] = '\0';
    if (mask)
        snprintf(out, out_bytes, " (CUDA_VISIBLE_DEVICES=%s)", mr_text_shown(mask, shown, sizeof shown));
    return out;
}

static const char *remedy_of(CUresult code)
{
    switch ((int)code) {
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
        return "; the kernel's part of the driver has another version than libcuda.so.1: restart the machine";
    case CUDA_ERROR_SYSTEM_NOT_READY: return "; start nvidia-fabricmanager, or wait until it has started";
    case CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
        return "; take the compatibility libraries out of the search path, or install a newer driver";
    case CUDA_ERROR_STUB_LIBRARY:
        return "; this is the toolkit's stub, take its folder out of LD_LIBRARY_PATH";
    default: return "; see whether nvidia-smi works";
    }
}

static int driver_error(CUresult code, const char *what, mr_error *err)
{
    char text[256];
    mri_cuda_code_text(code, text, sizeof text);
    return mr_error_set(err, MR_EDEVICE, "the driver does not start (%s): %s%s", what, text, remedy_of(code));
}

int mri_cuda_start(int *count, mr_error *err)
{
    *count = 0;
    int rc = mri_cuda_need(MRI_CUDA_DRIVER, err);
    if (rc) return rc;
    const struct mri_cuda_api *api = mri_cuda_api();
    int version = 0;
    CUresult code = api->cuDriverGetVersion(&version);
    if (code != CUDA_SUCCESS) return driver_error(code, "cuDriverGetVersion", err);
    if (version < LEAST_DRIVER)
        return mr_error_set(
            err, MR_EUNSUPPORTED,
            "the driver is for CUDA %d.%d, this build needs %d.0: install driver 580 or newer",
            version / 1000, version % 1000 / 10, LEAST_DRIVER / 1000);
    code = api->cuInit(0);
    if (code == CUDA_ERROR_NO_DEVICE) return MR_OK;
    if (code != CUDA_SUCCESS) return driver_error(code, "cuInit", err);
    code = api->cuDeviceGetCount(count);
    return code == CUDA_SUCCESS ? MR_OK : driver_error(code, "cuDeviceGetCount", err);
}

/* "FILE: ", or its end with "..." in front when that is longer than most. The file's own name is always
 * whole. */
static void put_file(const char *file, size_t most, char *out, size_t out_bytes)
{
    const size_t len = strlen(file), around = strlen("...: ");
    const char *name = strrchr(file, '/');
    *out = '\0';
    if (len == 0) return;
    if (len + strlen(": ") <= most || !name) {
        snprintf(out, out_bytes, "%s: ", file);
        return;
    }
    const char *end = file + len - (most > around ? most - around : 0);
    snprintf(out, out_bytes, "...%s: ", end < name ? end : name);
}

/* What fits a line. What to do counts most: the reason in brackets at the end goes first, then the front of
 * the file's path, then the end of what to do. */
static void error_state(const mr_error *err, char *out, size_t out_bytes)
{
    mr_error rest = *err;
    char text[1400], file[sizeof err->file + 8], line[sizeof text + sizeof file];
    const size_t room = out_bytes - 1;
    rest.file[0] = '\0';
    mr_error_format(&rest, text, sizeof text);
    put_file(err->file, SIZE_MAX, file, sizeof file);
    char *reason = strstr(text, " ("), *more;
    if (reason && strlen(file) + strlen(text) > room) *reason = '\0';
    if (strlen(file) + strlen(text) > room) put_file(err->file, 0, file, sizeof file);
    while (strlen(file) + strlen(text) > room && (more = strrchr(text, ';'))) *more = '\0';
    if (strlen(text) < room) put_file(err->file, room - strlen(text), file, sizeof file);
    snprintf(line, sizeof line, "%s%s", file, text);
    snprintf(out, out_bytes, "%.*s", (int)room, line);
}

/* "ready", or the missing piece. */
static void describe_state(uint32_t capability, char *out, size_t out_bytes)
{
    mr_error err = MR_ERROR_INIT;
    if (capability < MRI_CUDA_MIN_CAPABILITY) {
        snprintf(out, out_bytes, "too old: compute capability %u.%u, 8.0 is needed", capability / 10,
                 capability % 10);
    } else if (mri_cuda_need(MRI_CUDA_CUBLAS, &err) || mri_cuda_need(MRI_CUDA_CUDNN, &err)) {
        error_state(&err, out, out_bytes);
    } else {
        snprintf(out, out_bytes, "ready");
    }
}

int mri_cuda_properties(int ordinal, struct mri_cuda_properties *out, mr_error *err)
{
    const struct mri_cuda_api *api = mri_cuda_api();
    memset(out, 0, sizeof *out);
    int major = 0, minor = 0, multiprocessors = 0;
    const char *what = "cuDeviceGet";
    CUresult code = api->cuDeviceGet(&out->device, ordinal);
    if (code == CUDA_SUCCESS)
        code = api->cuDeviceGetName(out->name, (int)sizeof out->name, out->device), what = "cuDeviceGetName";
    if (code == CUDA_SUCCESS)
        code = api->cuDeviceTotalMem(&out->memory_bytes, out->device), what = "cuDeviceTotalMem";
    if (code == CUDA_SUCCESS)
        code = api->cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, out->device),
        what = "cuDeviceGetAttribute";
    if (code == CUDA_SUCCESS)
        code = api->cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, out->device);
    if (code == CUDA_SUCCESS)
        code = api->cuDeviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
                                         out->device);
    out->name[sizeof out->name - 1] = '\0';
    out->capability = (uint32_t)(10 * major + minor);
    out->multiprocessors = (uint32_t)multiprocessors;
    if (code == CUDA_SUCCESS) return MR_OK;
    char text[256];
    mri_cuda_code_text(code, text, sizeof text);
    return mr_error_set(err, MR_EDEVICE, "cuda:%d: %s: %s", ordinal, what, text);
}

void mri_cuda_hardware_text(const struct mri_cuda_properties *look, char *out, size_t out_bytes)
{
    snprintf(out, out_bytes, "%.80s, %.1f GiB", look->name, (double)look->memory_bytes / (double)(1u << 30));
}

static void id_text(CUdevice device, char *out, size_t out_bytes)
{
    CUuuid id;
    *out = '\0';
    if (mri_cuda_api()->cuDeviceGetUuid(&id, device) != CUDA_SUCCESS) return;
    size_t at = (size_t)snprintf(out, out_bytes, "GPU");
    for (int i = 0; i < 16 && at < out_bytes; i++)
        at += (size_t)snprintf(out + at, out_bytes - at, "%s%02x",
                               i == 0 || (i >= 4 && i <= 10 && i % 2 == 0) ? "-" : "",
                               (unsigned char)id.bytes[i]);
}

bool mri_cuda_list(uint32_t at, mr_device_listing *out)
{
    mr_error err = MR_ERROR_INIT;
    int count;
    char mask[128];
    *out = (mr_device_listing){.kind = "cuda", .spec = "cuda:0", .hardware = "GPU"};
    if (mri_cuda_start(&count, &err)) {
        error_state(&err, out->state, sizeof out->state);
        return at == 0;
    }
    if (count == 0)
        snprintf(out->state, sizeof out->state, "none visible%.100s", mri_cuda_mask_text(mask, sizeof mask));
    if (count == 0 || at >= (uint32_t)count) return at == 0 && count == 0;
    snprintf(out->spec, sizeof out->spec, "cuda:%u", at);
    struct mri_cuda_properties look;
    if (mri_cuda_properties((int)at, &look, &err)) {
        error_state(&err, out->state, sizeof out->state);
        return true;
    }
    mri_cuda_hardware_text(&look, out->hardware, sizeof out->hardware);
    id_text(look.device, out->id, sizeof out->id);
    describe_state(look.capability, out->state, sizeof out->state);
    return true;
}
