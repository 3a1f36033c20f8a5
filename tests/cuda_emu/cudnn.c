/* tests/cuda_emu/cudnn.c: the emulated cuDNN's entry points: handles, texts of errors, descriptors, and the
 * execution of a plan.
 *
 * Its rules when a plan runs, beyond the statuses NVIDIA documents: the handle, its stream, the plan
 * and every address are of the thread's current device; the variant pack names every tensor of the graph and
 * nothing else; a tensor lies whole in one allocation; the workspace is large enough, at a multiple of 256
 * bytes, and no tensor's memory; no written memory overlaps memory that is read. */
#include "tests/cuda_emu/emu_cudnn.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define WORKSPACE_ALIGN 256

static _Thread_local char last_error[256];

cudnnStatus_t emu_dnn_error(cudnnStatus_t status, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(last_error, sizeof last_error, format, list);
    va_end(list);
    return status;
}

static cudnnStatus_t told_to_fail(cudnnStatus_t status) { return emu_dnn_error(status, "emulated failure"); }

void cudnnGetLastErrorString(char *message, size_t max_size)
{
    if (!message || max_size == 0) return;
    snprintf(message, max_size, "%s", last_error);
    last_error[0] = '\0';
}

size_t cudnnGetVersion(void) { return CUDNN_VERSION; }

const char *cudnnGetErrorString(cudnnStatus_t status)
{
#define NAME(s)                                                                                              \
    case s: return #s;
    switch (status) {
        NAME(CUDNN_STATUS_SUCCESS)
        NAME(CUDNN_STATUS_NOT_INITIALIZED)
        NAME(CUDNN_STATUS_BAD_PARAM)
        NAME(CUDNN_STATUS_BAD_PARAM_NULL_POINTER)
        NAME(CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER)
        NAME(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED)
        NAME(CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH)
        NAME(CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES)
        NAME(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE)
        NAME(CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE)
        NAME(CUDNN_STATUS_NOT_SUPPORTED)
        NAME(CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN)
        NAME(CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE)
        NAME(CUDNN_STATUS_NOT_SUPPORTED_LAYOUT)
        NAME(CUDNN_STATUS_INTERNAL_ERROR)
        NAME(CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED)
        NAME(CUDNN_STATUS_EXECUTION_FAILED)
        NAME(CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER)
    default: return "CUDNN_UNKNOWN_STATUS";
    }
#undef NAME
}

/* ---- handles ---- */

static cudnnStatus_t check_handle(cudnnHandle_t h, const char *call)
{
    if (!h) return emu_dnn_error(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "%s: no handle", call);
    if (emu_live_is(h, EMU_CUDNN_HANDLE)) return CUDNN_STATUS_SUCCESS;
    emu_violation("%s: the handle was destroyed or never created", call);
    return emu_dnn_error(CUDNN_STATUS_BAD_PARAM, "%s: not a handle", call);
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle)
{
    if (emu_fails("cudnnCreate")) return told_to_fail(CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
    if (!handle)
        return emu_dnn_error(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "cudnnCreate: nowhere to put the handle");
    const int device = emu_current_device();
    if (device < 0) return emu_dnn_error(CUDNN_STATUS_NOT_INITIALIZED, "cudnnCreate: no current device");
    struct cudnnContext *h = calloc(1, sizeof *h);
    if (!h || !emu_live_add(h, EMU_CUDNN_HANDLE)) {
        free(h);
        return emu_dnn_error(CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, "no memory");
    }
    h->device = device;
    *handle = h;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
    const bool fails = emu_fails("cudnnDestroy"); /* the handle is destroyed even if the call fails */
    const cudnnStatus_t rc = check_handle(handle, "cudnnDestroy");
    if (rc != CUDNN_STATUS_SUCCESS) return rc;
    emu_live_remove(handle, EMU_CUDNN_HANDLE);
    free(handle);
    return fails ? told_to_fail(CUDNN_STATUS_INTERNAL_ERROR) : CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
    if (emu_fails("cudnnSetStream")) return told_to_fail(CUDNN_STATUS_INTERNAL_ERROR);
    const cudnnStatus_t rc = check_handle(handle, "cudnnSetStream");
    if (rc != CUDNN_STATUS_SUCCESS) return rc;
    if (stream && emu_device_of_stream(stream) != handle->device)
        return emu_dnn_error(CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH,
                             "cudnnSetStream: the handle is of device %d, the stream of device %d",
                             handle->device, emu_device_of_stream(stream));
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

/* ---- descriptors ---- */

static cudnnStatus_t check_descriptor(const void *d, const char *call)
{
    if (!d) return emu_dnn_error(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "%s: no descriptor", call);
    if (emu_live_is(d, EMU_CUDNN_DESCRIPTOR)) return CUDNN_STATUS_SUCCESS;
    emu_violation("%s: the descriptor was destroyed or never created", call);
    return emu_dnn_error(CUDNN_STATUS_BAD_PARAM, "%s: not a descriptor", call);
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t *descriptor)
{
    if (emu_fails("cudnnBackendCreateDescriptor"))
        return told_to_fail(CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
    if (!descriptor)
        return emu_dnn_error(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "nowhere to put the descriptor");
    if (!emu_dnn_kind_known(type))
        return emu_dnn_error(CUDNN_STATUS_NOT_SUPPORTED, "descriptors of type %d are not emulated", type);
    struct emu_dnn_descriptor *d = calloc(1, sizeof *d);
    if (d) d->body = emu_dnn_body_new(type);
    if (!d || !d->body || !emu_live_add(d, EMU_CUDNN_DESCRIPTOR)) {
        if (d) emu_dnn_body_drop(d->body);
        free(d);
        return emu_dnn_error(CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, "no memory");
    }
    *descriptor = d;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor)
{
    const bool fails = emu_fails("cudnnBackendDestroyDescriptor");
    const cudnnStatus_t rc = check_descriptor(descriptor, "cudnnBackendDestroyDescriptor");
    if (rc != CUDNN_STATUS_SUCCESS) return rc;
    struct emu_dnn_descriptor *d = descriptor;
    emu_live_remove(d, EMU_CUDNN_DESCRIPTOR);
    emu_dnn_body_drop(d->body);
    free(d);
    return fails ? told_to_fail(CUDNN_STATUS_INTERNAL_ERROR) : CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
    if (emu_fails("cudnnBackendSetAttribute")) return told_to_fail(CUDNN_STATUS_INTERNAL_ERROR);
    const cudnnStatus_t rc = check_descriptor(descriptor, "cudnnBackendSetAttribute");
    return rc != CUDNN_STATUS_SUCCESS
               ? rc
               : emu_dnn_set(((struct emu_dnn_descriptor *)descriptor)->body, name, type, count, values);
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor,
                                       cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                                       int64_t room, int64_t *count, void *values)
{
    if (emu_fails("cudnnBackendGetAttribute")) return told_to_fail(CUDNN_STATUS_INTERNAL_ERROR);
    const cudnnStatus_t rc = check_descriptor(descriptor, "cudnnBackendGetAttribute");
    return rc != CUDNN_STATUS_SUCCESS ? rc
                                      : emu_dnn_get(((struct emu_dnn_descriptor *)descriptor)->body, name,
                                                    type, room, count, values);
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor)
{
    if (emu_fails("cudnnBackendFinalize")) return told_to_fail(CUDNN_STATUS_INTERNAL_ERROR);
    const cudnnStatus_t rc = check_descriptor(descriptor, "cudnnBackendFinalize");
    return rc != CUDNN_STATUS_SUCCESS ? rc
                                      : emu_dnn_finalise(((struct emu_dnn_descriptor *)descriptor)->body);
}

/* ---- execution ---- */

struct operand {
    const struct emu_dnn_tensor *tensor;
    void **at;
    const char *name;
    bool written;
};

static void *address_of(const struct emu_dnn_body *pack, int64_t uid, bool *found)
{
    const struct emu_dnn_values *ids = emu_dnn_values(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    void *const *at = emu_dnn_values(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS)->data;
    for (int64_t i = 0; i < ids->count; i++) {
        *found = ((const int64_t *)ids->data)[i] == uid;
        if (*found) return at[i];
    }
    return NULL;
}

static cudnnStatus_t place(const struct operand *o, const struct emu_dnn_body *pack, int device)
{
    bool found = false;
    const size_t bytes = emu_dnn_tensor_bytes(o->tensor);
    *o->at = address_of(pack, o->tensor->uid, &found);
    if (!found)
        return emu_dnn_error(CUDNN_STATUS_BAD_PARAM, "execute: the variant pack lacks tensor %lld",
                             (long long)o->tensor->uid);
    if (!*o->at)
        return emu_dnn_error(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "execute: tensor %lld is NULL",
                             (long long)o->tensor->uid);
    if ((uintptr_t)*o->at % (uintptr_t)o->tensor->align != 0)
        return emu_dnn_error(CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER,
                             "execute: tensor %lld at %p is no multiple of %lld", (long long)o->tensor->uid,
                             *o->at, (long long)o->tensor->align);
    if (emu_device_of_address(*o->at, bytes) == device) return CUDNN_STATUS_SUCCESS;
    emu_violation("cudnnBackendExecute: %s, %zu bytes at %p, is not (whole) in memory of device %d", o->name,
                  bytes, *o->at, device);
    return emu_dnn_error(CUDNN_STATUS_EXECUTION_FAILED, "execute: %s is no memory of device %d", o->name,
                         device);
}

static bool meet(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    return (uintptr_t)a < (uintptr_t)b + b_bytes && (uintptr_t)b < (uintptr_t)a + a_bytes;
}

static cudnnStatus_t place_workspace(struct emu_dnn_job *j, const struct operand *operands,
                                     const struct emu_dnn_body *pack, int device)
{
    const struct emu_dnn_values *v = emu_dnn_values(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
    const size_t bytes = j->way.workspace_bytes;
    if (bytes == 0) return CUDNN_STATUS_SUCCESS;
    if (v->count > 0) memcpy(&j->workspace, v->data, sizeof j->workspace);
    if (!j->workspace)
        return emu_dnn_error(CUDNN_STATUS_BAD_PARAM_NULL_POINTER,
                             "execute: the plan needs %zu bytes of workspace", bytes);
    const char *wrong = (uintptr_t)j->workspace % WORKSPACE_ALIGN != 0 ? "is at no multiple of 256"
                        : emu_device_of_address(j->workspace, bytes) != device
                            ? "is not (whole) in memory of the device"
                            : NULL;
    for (int i = 0; i < 3 && !wrong; i++)
        if (meet(j->workspace, bytes, *operands[i].at, emu_dnn_tensor_bytes(operands[i].tensor)))
            wrong = "overlaps a tensor";
    if (!wrong) return CUDNN_STATUS_SUCCESS;
    emu_violation("cudnnBackendExecute: the workspace, %zu bytes at %p, %s", bytes, j->workspace, wrong);
    return emu_dnn_error(CUDNN_STATUS_EXECUTION_FAILED, "execute: the workspace %s", wrong);
}

static cudnnStatus_t check_overlap(const struct operand *operands)
{
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++) {
            if (i == k || !operands[i].written) continue;
            if (!meet(*operands[i].at, emu_dnn_tensor_bytes(operands[i].tensor), *operands[k].at,
                      emu_dnn_tensor_bytes(operands[k].tensor)))
                continue;
            emu_violation("cudnnBackendExecute: %s, which is written, overlaps %s", operands[i].name,
                          operands[k].name);
            return emu_dnn_error(CUDNN_STATUS_EXECUTION_FAILED, "execute: %s overlaps %s", operands[i].name,
                                 operands[k].name);
        }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t check_places(cudnnHandle_t h, const struct emu_dnn_body *plan)
{
    if (emu_current_device() == h->device && plan->device == h->device) return CUDNN_STATUS_SUCCESS;
    emu_violation("cudnnBackendExecute: the handle is of device %d, the plan of device %d, the thread's "
                  "current device is %d",
                  h->device, plan->device, emu_current_device());
    return emu_dnn_error(CUDNN_STATUS_EXECUTION_FAILED, "execute: devices differ");
}

static cudnnStatus_t execute(cudnnHandle_t h, const struct emu_dnn_body *plan,
                             const struct emu_dnn_body *pack)
{
    static const char *const names[] = {"cudnn convolution forward", "cudnn convolution backward data",
                                        "cudnn convolution backward filter"};
    struct emu_dnn_job j = {.conv = plan->conv, .way = plan->way};
    const struct operand operands[3] = {{&j.conv.x, &j.x, "x", j.conv.pass == EMU_BACKWARD_DATA},
                                        {&j.conv.w, &j.w, "w", j.conv.pass == EMU_BACKWARD_FILTER},
                                        {&j.conv.y, &j.y, "y", j.conv.pass == EMU_FORWARD}};
    emu_span spans[4];
    int count = 0;
    for (int i = 0; i < 3; i++) {
        const cudnnStatus_t rc = place(&operands[i], pack, h->device);
        if (rc != CUDNN_STATUS_SUCCESS) return rc;
        spans[count++] = (emu_span){.at = *operands[i].at,
                                    .bytes = emu_dnn_tensor_bytes(operands[i].tensor),
                                    .write = operands[i].written};
    }
    if (emu_dnn_values(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS)->count != 3)
        return emu_dnn_error(CUDNN_STATUS_BAD_PARAM,
                             "execute: the variant pack names tensors that the graph has not");
    cudnnStatus_t rc = check_overlap(operands);
    if (rc == CUDNN_STATUS_SUCCESS) rc = place_workspace(&j, operands, pack, h->device);
    if (rc != CUDNN_STATUS_SUCCESS) return rc;
    if (j.workspace)
        spans[count++] = (emu_span){.at = j.workspace, .bytes = j.way.workspace_bytes, .write = true};
    if (emu_queue(h->stream, names[j.conv.pass], spans, count, emu_dnn_run, NULL, &j, sizeof j) !=
        CUDA_SUCCESS)
        return emu_dnn_error(CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER,
                             "execute: the driver refused the work");
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t take_body(const void *descriptor, cudnnBackendDescriptorType_t type,
                               const struct emu_dnn_body **out)
{
    const cudnnStatus_t rc = check_descriptor(descriptor, "cudnnBackendExecute");
    if (rc != CUDNN_STATUS_SUCCESS) return rc;
    *out = ((const struct emu_dnn_descriptor *)descriptor)->body;
    if ((*out)->type != type)
        return emu_dnn_error(CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE, "execute: a descriptor is of type %d",
                             (*out)->type);
    if (!(*out)->finalised)
        return emu_dnn_error(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
                             "execute: descriptor of type %d is not finalised", type);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t executionPlan,
                                  cudnnBackendDescriptor_t variantPack)
{
    const struct emu_dnn_body *plan = NULL, *pack = NULL;
    if (emu_fails("cudnnBackendExecute")) return told_to_fail(CUDNN_STATUS_EXECUTION_FAILED);
    cudnnStatus_t rc = check_handle(handle, "cudnnBackendExecute");
    if (rc == CUDNN_STATUS_SUCCESS)
        rc = take_body(executionPlan, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &plan);
    if (rc == CUDNN_STATUS_SUCCESS) rc = take_body(variantPack, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack);
    if (rc == CUDNN_STATUS_SUCCESS) rc = check_places(handle, plan);
    return rc != CUDNN_STATUS_SUCCESS ? rc : execute(handle, plan, pack);
}
