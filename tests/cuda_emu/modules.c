/* tests/cuda_emu/modules.c: modules are names: the device code itself was compiled for the processor
 * (kernels.cc). */
#include "tests/cuda_emu/inside.h"

#define SHARED_BYTES       (48u << 10)  /* without asking */
#define SHARED_BYTES_OPTIN (227u << 10) /* with cuFuncSetAttribute */

/* A fat binary, an ELF image or PTX text. */
static bool is_image(const void *image)
{
    static const unsigned char fat[] = {0x50, 0xed, 0x55, 0xba}, elf[] = {0x7f, 'E', 'L', 'F'};
    static const unsigned char wrapped[] = {0xb1, 0x43, 0x62, 0x46};
    const unsigned char *p = image;
    return memcmp(p, fat, 4) == 0 || memcmp(p, elf, 4) == 0 || memcmp(p, wrapped, 4) == 0 ||
           (p[0] == '/' && p[1] == '/') || p[0] == '.' || p[0] == '\n';
}

static CUresult load(CUmodule *out, const void *image)
{
    if (!out || !image) return CUDA_ERROR_INVALID_VALUE;
    const CUresult rc = emu_capture_forbids("cuModuleLoadData");
    if (rc != CUDA_SUCCESS) return rc;
    if (!is_image(image)) return CUDA_ERROR_INVALID_IMAGE;
    CUmodule m = emu_handle_new(sizeof *m, EMU_MODULE, emu_current_device());
    if (!m) return CUDA_ERROR_OUT_OF_MEMORY;
    *out = m;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuModuleLoadData(CUmodule *module, const void *image)
{
    EMU_CALL("cuModuleLoadData", CUDA_ERROR_NO_BINARY_FOR_GPU, emu_ready_here(), load(module, image));
}

static CUresult unload(CUmodule m)
{
    if (emu_check(m, EMU_MODULE, "cuModuleUnload") != CUDA_SUCCESS) return CUDA_ERROR_INVALID_HANDLE;
    if (!emu_clock_covers(&emu_host, &m->used) && !emu_context(m->head.device)->dead) {
        emu_violation(
            "cuModuleUnload: the program does not know that the kernels of module %llu of GPU %d are over",
            (unsigned long long)m->head.number, m->head.device);
    }
    emu_handle_end(&m->head);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuModuleUnload(CUmodule hmod) { EMU_END_CALL("cuModuleUnload", unload(hmod)); }

static CUresult get_function(CUfunction *out, CUmodule m, const char *name)
{
    if (!out || !name) return CUDA_ERROR_INVALID_VALUE;
    const CUresult rc = emu_check(m, EMU_MODULE, "cuModuleGetFunction");
    if (rc != CUDA_SUCCESS) return rc;
    const struct emu_kernel *k = emu_kernel_find(name);
    if (!k) return CUDA_ERROR_NOT_FOUND;
    CUfunction f = calloc(1, sizeof *f); /* belongs to its module and is not counted */
    if (!f) return CUDA_ERROR_OUT_OF_MEMORY;
    *f = (struct CUfunc_st){.head = {.kind = EMU_FUNCTION, .device = m->head.device},
                            .module = m,
                            .kernel = k,
                            .max_shared_bytes = SHARED_BYTES,
                            .next = m->functions};
    m->functions = f;
    *out = f;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name)
{
    EMU_CALL("cuModuleGetFunction", CUDA_ERROR_NOT_FOUND, emu_ready_here(), get_function(hfunc, hmod, name));
}

static CUresult function_of(CUfunction f, const char *call)
{
    CUresult rc = emu_check(f, EMU_FUNCTION, call);
    if (rc == CUDA_SUCCESS) rc = emu_check(f->module, EMU_MODULE, call);
    if (rc == CUDA_SUCCESS && f->head.device != emu_current_device()) rc = CUDA_ERROR_INVALID_CONTEXT;
    return rc;
}

static CUresult set_attribute(CUfunction f, CUfunction_attribute what, int value)
{
    const CUresult rc = function_of(f, "cuFuncSetAttribute");
    if (rc != CUDA_SUCCESS) return rc;
    if (what == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT)
        return value >= -1 && value <= 100 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    if (what != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 ||
        value > (int)SHARED_BYTES_OPTIN) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    f->max_shared_bytes = (unsigned)value;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value)
{
    EMU_CALL("cuFuncSetAttribute", CUDA_ERROR_INVALID_VALUE, emu_ready_here(),
             set_attribute(hfunc, attrib, value));
}

/* ---- launching ---- */

struct launch {
    const struct emu_kernel *kernel;
    unsigned grid_x, grid_y, threads, shared_bytes;
    _Alignas(16) unsigned char args[EMU_MAX_ARGS - 64];
};
_Static_assert(sizeof(struct launch) <= EMU_MAX_ARGS, "a launch is the arguments of an operation");

static void run_launch(void *args)
{
    const struct launch *l = args;
    l->kernel->run(l->args, l->grid_x, l->grid_y, l->threads, l->shared_bytes);
}

/* The one struct our kernels take, given as either of the two ways a launch can be given its arguments. */
static const void *args_of(const struct emu_kernel *k, void **params, void **extra)
{
    if (params && !extra) return params[0];
    if (params || !extra) return NULL;
    const void *buffer = NULL;
    size_t bytes = 0;
    for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
        if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) buffer = extra[1];
        else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE) bytes = *(const size_t *)extra[1];
        else return NULL;
    }
    return bytes == k->args_bytes ? buffer : NULL;
}

static CUresult launch(CUfunction f, struct launch *l, CUstream s, void **params, void **extra)
{
    const CUresult rc = function_of(f, "cuLaunchKernel");
    if (rc != CUDA_SUCCESS) return rc;
    const struct emu_kernel *k = f->kernel;
    if (l->grid_x == 0 || l->grid_y == 0 || l->threads == 0 || l->threads > 1024 || l->grid_x > 2147483647u ||
        l->grid_y > 65535u || l->shared_bytes > f->max_shared_bytes)
        return CUDA_ERROR_INVALID_VALUE;
    const void *args = args_of(k, params, extra);
    if (!args || k->args_bytes > sizeof l->args) return CUDA_ERROR_INVALID_VALUE;
    l->kernel = k;
    memcpy(l->args, args, k->args_bytes);
    emu_span spans[EMU_MAX_SPANS];
    const int count = k->spans(l->args, l->grid_x, l->grid_y, spans);
    struct emu_payload *payload = emu_payload_new(run_launch, NULL, l, sizeof *l);
    if (!payload) return CUDA_ERROR_OUT_OF_MEMORY;
    const CUresult put = emu_put(s,
                                 &(struct emu_submission){.streams = &s,
                                                          .stream_count = 1,
                                                          .name = k->name,
                                                          .spans = spans,
                                                          .span_count = count,
                                                          .payload = payload},
                                 f->module);
    emu_payload_drop(payload);
    return put;
}

CUresult CUDAAPI cuLaunchKernel(CUfunction f, unsigned gridDimX, unsigned gridDimY, unsigned gridDimZ,
                                unsigned blockDimX, unsigned blockDimY, unsigned blockDimZ,
                                unsigned sharedMemBytes, CUstream hStream, void **kernelParams, void **extra)
{
    struct launch l = {
        .grid_x = gridDimX, .grid_y = gridDimY, .threads = blockDimX, .shared_bytes = sharedMemBytes};
    const bool flat = gridDimZ == 1 && blockDimY == 1 && blockDimZ == 1; /* all that our kernels use */
    EMU_CALL("cuLaunchKernel", CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, emu_stream_here(hStream, "cuLaunchKernel"),
             flat ? launch(f, &l, hStream, kernelParams, extra) : CUDA_ERROR_INVALID_VALUE);
}
