/* tests/cuda_emu/devices.c: the lock, handles, the beginning and the devices with their primary contexts. */
#include <stdio.h>

#include "tests/cuda_emu/inside.h"

static pthread_mutex_t lock;
static pthread_once_t lock_once = PTHREAD_ONCE_INIT;
static bool initialised;
static int visible[EMU_MAX_DEVICES], visible_count; /* as CUDA_VISIBLE_DEVICES orders them */
static struct CUctx_st contexts[EMU_MAX_DEVICES];
static _Thread_local CUcontext current;
static uint64_t numbers[8];

static void make_lock(void)
{
    pthread_mutexattr_t a;
    pthread_mutexattr_init(&a);
    pthread_mutexattr_settype(&a, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&lock, &a);
    pthread_mutexattr_destroy(&a);
}

void emu_lock(void)
{
    pthread_once(&lock_once, make_lock);
    pthread_mutex_lock(&lock);
}

void emu_unlock(void) { pthread_mutex_unlock(&lock); }

/* ---- handles ---- */

void *emu_handle_new(size_t bytes, enum emu_kind kind, int device)
{
    emu_handle *h = calloc(1, bytes);
    if (!h) return NULL;
    h->kind = kind;
    h->device = device;
    h->number = ++numbers[kind - EMU_CONTEXT];
    contexts[device].live++;
    return h;
}

static emu_handle *graveyard;

void emu_handle_end(emu_handle *h)
{
    h->destroyed = true;
    h->buried = graveyard;
    graveyard = h;
    contexts[h->device].live--;
}

CUresult emu_check(const void *handle, enum emu_kind kind, const char *call)
{
    static const char *const names[] = {"context", "memory pool", "stream", "event",
                                        "module",  "function",    "graph",  "executable graph"};
    const emu_handle *h = handle;
    if (!h) return CUDA_ERROR_INVALID_HANDLE;
    if (h->kind != kind) {
        emu_violation("%s is given something that is no %s", call, names[kind - EMU_CONTEXT]);
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (h->destroyed) {
        emu_violation("%s uses %s %llu of GPU %d, which was destroyed", call, names[kind - EMU_CONTEXT],
                      (unsigned long long)h->number, h->device);
        return CUDA_ERROR_INVALID_HANDLE;
    }
    return CUDA_SUCCESS;
}

CUcontext emu_current(void) { return current; }
CUcontext emu_context(int device) { return &contexts[device]; }
int emu_device_count(void) { return visible_count; }
int emu_current_device(void) { return current ? current->head.device : -1; }

int emu_device_of_stream(CUstream s)
{
    emu_lock();
    const int device = emu_check(s, EMU_STREAM, "a library") == CUDA_SUCCESS ? s->head.device : -1;
    emu_unlock();
    return device;
}

/* ---- errors ---- */

CUresult emu_ready(void)
{
    if (!initialised) return CUDA_ERROR_NOT_INITIALIZED;
    if (emu_in_host_function()) {
        emu_violation("a function of the host in a stream calls the driver");
        return CUDA_ERROR_NOT_PERMITTED;
    }
    return current ? current->dead : CUDA_SUCCESS;
}

CUresult emu_ready_here(void)
{
    const CUresult rc = emu_ready();
    if (rc != CUDA_SUCCESS) return rc;
    if (!current) return CUDA_ERROR_INVALID_CONTEXT;
    return current->retained > 0 ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult emu_stream_here(CUstream s, const char *call)
{
    CUresult rc = emu_ready_here();
    if (rc == CUDA_SUCCESS && !s) {
        emu_violation("%s uses the default stream, which waits for all others", call);
        rc = CUDA_ERROR_INVALID_HANDLE;
    }
    if (rc == CUDA_SUCCESS) rc = emu_check(s, EMU_STREAM, call);
    if (rc == CUDA_SUCCESS && s->head.device != current->head.device) rc = CUDA_ERROR_INVALID_CONTEXT;
    return rc;
}

bool emu_is_sticky(CUresult code)
{
    return code == CUDA_ERROR_ILLEGAL_ADDRESS || code == CUDA_ERROR_LAUNCH_FAILED ||
           code == CUDA_ERROR_LAUNCH_TIMEOUT;
}

CUresult emu_inject(CUresult code)
{
    if (current && emu_is_sticky(code)) current->dead = code;
    return code;
}

CUresult emu_told(const char *call, CUresult code)
{
    if (code != CUDA_SUCCESS) emu_log("%s returns %d", call, (int)code);
    return code;
}

#define ERRORS(X)                                                                                            \
    X(CUDA_SUCCESS, "no error")                                                                              \
    X(CUDA_ERROR_INVALID_VALUE, "invalid argument")                                                          \
    X(CUDA_ERROR_OUT_OF_MEMORY, "out of memory")                                                             \
    X(CUDA_ERROR_NOT_INITIALIZED, "initialization error")                                                    \
    X(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected")                                            \
    X(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal")                                                   \
    X(CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid")                                            \
    X(CUDA_ERROR_INVALID_CONTEXT, "invalid device context")                                                  \
    X(CUDA_ERROR_DEVICE_UNAVAILABLE, "device is unavailable")                                                \
    X(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, "driver and libraries do not match")                                \
    X(CUDA_ERROR_NO_BINARY_FOR_GPU, "no kernel image for this device")                                       \
    X(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle")                                                  \
    X(CUDA_ERROR_ILLEGAL_STATE, "operation not legal in this state")                                         \
    X(CUDA_ERROR_NOT_FOUND, "named symbol not found")                                                        \
    X(CUDA_ERROR_NOT_READY, "device not ready")                                                              \
    X(CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered")                                \
    X(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch")                         \
    X(CUDA_ERROR_LAUNCH_TIMEOUT, "the launch timed out")                                                     \
    X(CUDA_ERROR_LAUNCH_FAILED, "launch failed")                                                             \
    X(CUDA_ERROR_CONTEXT_IS_DESTROYED, "context is destroyed")                                               \
    X(CUDA_ERROR_NOT_PERMITTED, "operation not permitted")                                                   \
    X(CUDA_ERROR_NOT_SUPPORTED, "operation not supported")                                                   \
    X(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "operation not permitted when stream is capturing")             \
    X(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "operation failed due to a previous error during capture")      \
    X(CUDA_ERROR_STREAM_CAPTURE_MERGE, "operation would merge two captures")                                 \
    X(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "capture was not initiated in this stream")                       \
    X(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "capturing stream has unjoined work")                              \
    X(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "dependency created on uncaptured work in another stream")        \
    X(CUDA_ERROR_CAPTURED_EVENT, "event last recorded in a capturing stream")                                \
    X(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "capture ended in another thread")                             \
    X(CUDA_ERROR_UNKNOWN, "unknown error")

static const struct {
    CUresult code;
    const char *name, *text;
} errors[] = {
#define ROW(code, text) {code, #code, "emulated: " text},
    ERRORS(ROW)
#undef ROW
};

static CUresult describe(CUresult code, const char **out, bool name)
{
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < MRI_ARRAY_COUNT(errors); i++) {
        if (errors[i].code == code) {
            *out = name ? errors[i].name : errors[i].text;
            return CUDA_SUCCESS;
        }
    }
    *out = NULL;
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuGetErrorName(CUresult error, const char **pStr) { return describe(error, pStr, true); }
CUresult CUDAAPI cuGetErrorString(CUresult error, const char **pStr) { return describe(error, pStr, false); }

/* ---- devices ---- */

/* A comma-separated list of numbers; it ends at the first that is no device here. A number that comes twice
 * leaves nothing. */
static void read_visible(void)
{
    const int count = emu_settings()->devices;
    const char *text = getenv("CUDA_VISIBLE_DEVICES");
    visible_count = 0;
    if (!text) {
        for (int i = 0; i < count; i++) visible[visible_count++] = i;
        return;
    }
    while (*text) {
        char *end;
        const long v = strtol(text, &end, 10);
        if (end == text || v < 0 || v >= count) return;
        for (int i = 0; i < visible_count; i++) {
            if (visible[i] == v) {
                visible_count = 0;
                return;
            }
        }
        visible[visible_count++] = (int)v;
        if (*end != ',') return;
        text = end + 1;
    }
}

static CUresult init(unsigned flags)
{
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (initialised) return CUDA_SUCCESS;
    read_visible();
    if (visible_count == 0) return CUDA_ERROR_NO_DEVICE;
    for (int i = 0; i < visible_count; i++)
        contexts[i].head = (emu_handle){.kind = EMU_CONTEXT, .device = i, .number = (uint64_t)i};
    initialised = true;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuInit(unsigned Flags)
{
    EMU_CALL("cuInit", CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, CUDA_SUCCESS, init(Flags));
}

CUresult CUDAAPI cuDriverGetVersion(int *driverVersion)
{
    if (!driverVersion) return CUDA_ERROR_INVALID_VALUE;
    *driverVersion = CUDA_VERSION;
    return CUDA_SUCCESS;
}

static CUresult set_int(int *out, int value)
{
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = value;
    return CUDA_SUCCESS;
}

static bool is_device(CUdevice dev) { return dev >= 0 && dev < visible_count; }

CUresult CUDAAPI cuDeviceGetCount(int *count)
{
    EMU_CALL("cuDeviceGetCount", CUDA_ERROR_NOT_INITIALIZED, emu_ready(), set_int(count, visible_count));
}

CUresult CUDAAPI cuDeviceGet(CUdevice *device, int ordinal)
{
    EMU_CALL("cuDeviceGet", CUDA_ERROR_INVALID_DEVICE, emu_ready(),
             is_device(ordinal) ? set_int(device, ordinal) : CUDA_ERROR_INVALID_DEVICE);
}

static CUresult text_of(char *out, int bytes, CUdevice dev, const char *format, int number)
{
    if (!out || bytes < 1) return CUDA_ERROR_INVALID_VALUE;
    if (!is_device(dev)) return CUDA_ERROR_INVALID_DEVICE;
    char text[64];
    snprintf(text, sizeof text, format, number); /* NOLINT: formats are ours */
    snprintf(out, (size_t)bytes, "%s", text);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetName(char *name, int len, CUdevice dev)
{
    EMU_CALL("cuDeviceGetName", CUDA_ERROR_INVALID_DEVICE, emu_ready(),
             text_of(name, len, dev, "emulated GPU %d", is_device(dev) ? visible[dev] : 0));
}

CUresult CUDAAPI cuDeviceGetPCIBusId(char *pciBusId, int len, CUdevice dev)
{
    EMU_CALL("cuDeviceGetPCIBusId", CUDA_ERROR_INVALID_DEVICE, emu_ready(),
             len < 13 ? CUDA_ERROR_INVALID_VALUE
                      : text_of(pciBusId, len, dev, "0000:%02x:00.0", is_device(dev) ? visible[dev] : 0));
}

/* The same in every process. */
static CUresult uuid_of(CUuuid *out, CUdevice dev)
{
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    if (!is_device(dev)) return CUDA_ERROR_INVALID_DEVICE;
    memset(out->bytes, 0xe0, sizeof out->bytes);
    out->bytes[15] = (char)visible[dev];
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetUuid(CUuuid *uuid, CUdevice dev)
{
    EMU_CALL("cuDeviceGetUuid", CUDA_ERROR_INVALID_DEVICE, emu_ready(), uuid_of(uuid, dev));
}

static CUresult attribute(int *out, CUdevice_attribute what, CUdevice dev)
{
    static const struct {
        CUdevice_attribute what;
        int value;
    } known[] = {
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
        {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 8},
        {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 48 << 10},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 227 << 10},
        {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1000000},
        {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 1000000},
        {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 64},
        {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 1 << 20},
        {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 2},
        {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
        {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
        {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_INTEGRATED, 0},
        {CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 0},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, CU_COMPUTEMODE_DEFAULT},
        {CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 0},
        {CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 0},
    };
    if (!is_device(dev)) return CUDA_ERROR_INVALID_DEVICE;
    if (what == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID) return set_int(out, visible[dev]);
    for (size_t i = 0; i < MRI_ARRAY_COUNT(known); i++) {
        if (known[i].what == what) return set_int(out, known[i].value);
    }
    emu_violation("cuDeviceGetAttribute: attribute %d is not emulated", (int)what);
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuDeviceGetAttribute(int *pi, CUdevice_attribute attrib, CUdevice dev)
{
    EMU_CALL("cuDeviceGetAttribute", CUDA_ERROR_INVALID_DEVICE, emu_ready(), attribute(pi, attrib, dev));
}

static CUresult total(size_t *bytes, CUdevice dev)
{
    if (!bytes) return CUDA_ERROR_INVALID_VALUE;
    if (!is_device(dev)) return CUDA_ERROR_INVALID_DEVICE;
    *bytes = emu_settings()->memory_bytes;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceTotalMem(size_t *bytes, CUdevice dev)
{
    EMU_CALL("cuDeviceTotalMem", CUDA_ERROR_INVALID_DEVICE, emu_ready(), total(bytes, dev));
}

static CUresult can_access(int *out, CUdevice dev, CUdevice peer)
{
    if (!is_device(dev) || !is_device(peer)) return CUDA_ERROR_INVALID_DEVICE;
    return set_int(out, dev != peer);
}

CUresult CUDAAPI cuDeviceCanAccessPeer(int *canAccessPeer, CUdevice dev, CUdevice peerDev)
{
    EMU_CALL("cuDeviceCanAccessPeer", CUDA_ERROR_INVALID_DEVICE, emu_ready(),
             can_access(canAccessPeer, dev, peerDev));
}

/* ---- contexts ---- */

static CUresult retain(CUcontext *out, CUdevice dev)
{
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    if (!is_device(dev)) return CUDA_ERROR_INVALID_DEVICE;
    if (contexts[dev].dead) return contexts[dev].dead;
    contexts[dev].retained++;
    *out = &contexts[dev];
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
    EMU_CALL("cuDevicePrimaryCtxRetain", CUDA_ERROR_OUT_OF_MEMORY, emu_ready(), retain(pctx, dev));
}

static CUresult release(CUdevice dev)
{
    if (!is_device(dev)) return CUDA_ERROR_INVALID_DEVICE;
    CUcontext c = &contexts[dev];
    if (c->retained == 0) {
        emu_violation("cuDevicePrimaryCtxRelease: the context of GPU %d is not retained", dev);
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (--c->retained > 0) return CUDA_SUCCESS;
    if (c->live > 0) {
        emu_violation("cuDevicePrimaryCtxRelease: %llu handles and allocations of GPU %d (%llu of memory) "
                      "were not given back",
                      (unsigned long long)c->live, dev, (unsigned long long)emu_blocks(dev));
    }
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice dev)
{
    EMU_END_CALL("cuDevicePrimaryCtxRelease", release(dev));
}

static CUresult set_current(CUcontext ctx)
{
    if (!initialised) return CUDA_ERROR_NOT_INITIALIZED;
    if (ctx && emu_check(ctx, EMU_CONTEXT, "cuCtxSetCurrent") != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (ctx && ctx->retained == 0) return CUDA_ERROR_INVALID_CONTEXT;
    current = ctx;
    return ctx ? ctx->dead : CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxSetCurrent(CUcontext ctx)
{
    EMU_CALL("cuCtxSetCurrent", CUDA_ERROR_INVALID_CONTEXT, CUDA_SUCCESS, set_current(ctx));
}

static CUresult get_current(CUcontext *out)
{
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = current;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetCurrent(CUcontext *pctx)
{
    EMU_CALL("cuCtxGetCurrent", CUDA_ERROR_NOT_INITIALIZED,
             initialised ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED, get_current(pctx));
}
