/* kernels/device.c: opening devices by their text, and their memory. Checks arguments, then calls the kind's
 * table. */
#include <stdio.h>

#include "base/abi.h"
#include "base/util.h"
#include "kernels/backend/spec.h"
#include "kernels/backends.h"
#include "settings/setting.h"

static const mri_setting rows[] = {
#define MRI_SETTING(...) MRI_ROW(mr_devices_config, __VA_ARGS__),
#include "settings/devices.rows"
};

void mr_devices_defaults_sized(mr_devices_config *cfg, size_t struct_size)
{
    mr_devices_config all = {0};
    mri_settings_fill(rows, MRI_ARRAY_COUNT(rows), &all);
    mri_settings_give(cfg, struct_size, &all, sizeof all);
}

static int find_backend(const char *kind, const struct mri_backend **out, mr_error *err)
{
    char known[64] = "";
    size_t at = 0;
    const struct mri_backend *b;
    for (uint32_t i = 0; (b = mri_backend_at(i)) != NULL; i++) {
        if (strcmp(b->kind, kind) == 0) {
            *out = b;
            return MR_OK;
        }
        at += (size_t)snprintf(known + at, sizeof known - at, "%s%s", i ? ", " : "", b->kind);
    }
    if (strcmp(kind, "cuda") == 0)
        return mr_error_set(err, MR_EUNSUPPORTED, "this build has no CUDA device; known kinds: %s", known);
    return mr_error_set(err, MR_EINVAL, "devices: unknown kind \"%s\"; known kinds: %s", kind, known);
}

int mr_devices_open(mr_device ***out, uint32_t *count, const char *spec, const mr_devices_config *cfg,
                    mr_error *err)
{
    MRI_GIVEN(err, out);
    *out = NULL;
    MRI_GIVEN(err, count);
    *count = 0;
    MRI_GIVEN(err, spec);
    mr_devices_config full;
    mr_devices_defaults(&full);
    int rc = cfg ? mri_settings_take(&full, sizeof full, cfg, "devices", err) : MR_OK;
    if (!rc) rc = mri_settings_check(rows, MRI_ARRAY_COUNT(rows), &full, "mr_devices_config", err);
    if (!rc && (unsigned)full.convolution > MR_CONVOLUTION_WINOGRAD)
        rc = mr_error_set(err, MR_EINVAL,
                          "devices: convolution %d: expected auto (0), direct (1) or winograd (2)",
                          (int)full.convolution);
    if (rc) return rc;

    struct mri_spec parsed;
    const struct mri_backend *backend = NULL;
    rc = mri_spec_parse(&parsed, spec, err);
    if (!rc) rc = find_backend(parsed.kind, &backend, err);
    if (!rc) rc = backend->count(&parsed, err);
    if (rc) return rc;

    mr_device **devices = calloc(parsed.count, sizeof(mr_device *));
    if (!devices) return mr_error_set(err, MR_ENOMEM, "no memory for %u devices", parsed.count);
    rc = backend->open(devices, &parsed, &full, err);
    if (rc) {
        free(devices);
        return rc;
    }
    for (uint32_t i = 0; i < parsed.count; i++) devices[i]->process = mri_process();
    *out = devices;
    *count = parsed.count;
    return MR_OK;
}

void mr_devices_close(mr_device **devices, uint32_t count)
{
    if (!devices || (count && mri_is_inherited(devices[0]->process))) return;
    while (count-- > 0) devices[count]->backend->close(devices[count]);
    free(devices);
}

const mr_device_info *mr_device_info_of(const mr_device *dev) { return dev ? &dev->info : NULL; }

static bool list(uint32_t at, mr_device_listing *out)
{
    const struct mri_backend *b;
    for (uint32_t i = 0; (b = mri_backend_at(i)) != NULL; i++) {
        uint32_t n = 0;
        while (b->list(n, out)) {
            if (at-- == 0) return true;
            n++;
        }
    }
#ifdef MRI_CUDA
    return false;
#else
    if (at > 0) return false;
    *out = (mr_device_listing){
        .kind = "cuda", .spec = "cuda:0", .hardware = "GPU", .state = "not in this build"};
    return true;
#endif
}

bool mr_device_list_sized(uint32_t at, mr_device_listing *out)
{
    mr_device_listing row = {0};
    if (!out || mri_result_check(out, NULL) != MR_OK) return false;
    const bool found = list(at, &row);
    if (found) mri_result_give(out, &row, sizeof row);
    return found;
}

int mr_device_alloc(mr_device *dev, size_t bytes, void **out, mr_error *err)
{
    MRI_GIVEN(err, out);
    *out = NULL;
    MRI_OWN(err, dev);
    return dev->backend->memory->device_alloc(dev, bytes ? bytes : 1, out, err);
}

int mr_host_alloc(mr_device *dev, size_t bytes, void **out, mr_error *err)
{
    MRI_GIVEN(err, out);
    *out = NULL;
    MRI_OWN(err, dev);
    return dev->backend->memory->host_alloc(dev, bytes ? bytes : 1, out, err);
}

void mr_device_free(mr_device *dev, void *address)
{
    if (dev && address && !mri_is_inherited(dev->process)) dev->backend->memory->device_free(dev, address);
}

void mr_host_free(mr_device *dev, void *address)
{
    if (dev && address && !mri_is_inherited(dev->process)) dev->backend->memory->host_free(dev, address);
}
