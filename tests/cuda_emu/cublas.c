/* tests/cuda_emu/cublas.c: the emulated cuBLAS: handles and one product of matrices.
 *
 * Its rules, beyond the statuses NVIDIA documents: a handle is used with the device current that was
 * current when it was made; its stream, its workspace and the matrices are that device's; matrices lie whole
 * in one allocation, at multiples of their element, and the result overlaps no factor. As documented, setting
 * a stream puts the workspace back to the library's own, and that one may be used while a stream records. */
#include <cublas_v2.h>
#include <stdlib.h>

#include "tests/cuda_emu/emu.h"
#include "tests/cuda_emu/live.h"
#include "tests/cuda_emu/product.h"

#define WORKSPACE_ALIGN 256
#define WORKSPACE_LEAST                                                                                      \
    (16u << 10) /* with less, calls may fail with CUBLAS_STATUS_ALLOC_FAILED; here they do */

struct cublasContext {
    int device;
    CUstream stream;
    cublasMath_t math;
    bool own_workspace; /* the caller's */
    void *workspace;
    size_t workspace_bytes;
};

static bool alive(cublasHandle_t h, const char *call)
{
    if (!h) return false;
    if (emu_live_is(h, EMU_CUBLAS_HANDLE)) return true;
    emu_violation("%s: the handle was destroyed or never created", call);
    return false;
}

/* The thread's current device must be the handle's. */
static bool at_home(cublasHandle_t h, const char *call)
{
    if (emu_current_device() == h->device) return true;
    emu_violation("%s: the handle belongs to device %d, the calling thread's current device is %d", call,
                  h->device, emu_current_device());
    return false;
}

const char *cublasGetStatusString(cublasStatus_t status)
{
    switch (status) {
    case CUBLAS_STATUS_SUCCESS: return "emulated: success";
    case CUBLAS_STATUS_NOT_INITIALIZED: return "emulated: the library is not initialised";
    case CUBLAS_STATUS_ALLOC_FAILED: return "emulated: out of memory";
    case CUBLAS_STATUS_INVALID_VALUE: return "emulated: a parameter is not valid";
    case CUBLAS_STATUS_ARCH_MISMATCH: return "emulated: the device lacks a feature";
    case CUBLAS_STATUS_MAPPING_ERROR: return "emulated: device memory is not accessible";
    case CUBLAS_STATUS_EXECUTION_FAILED: return "emulated: the work could not be started";
    case CUBLAS_STATUS_INTERNAL_ERROR: return "emulated: internal error";
    case CUBLAS_STATUS_NOT_SUPPORTED: return "emulated: not supported";
    case CUBLAS_STATUS_LICENSE_ERROR: return "emulated: licence error";
    }
    return "emulated: unknown status";
}

cublasStatus_t cublasGetVersion(cublasHandle_t handle, int *version)
{
    (void)handle; /* may be NULL */
    if (emu_fails("cublasGetVersion")) return CUBLAS_STATUS_INTERNAL_ERROR;
    if (!version) return CUBLAS_STATUS_INVALID_VALUE;
    *version = CUBLAS_VERSION;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasCreate(cublasHandle_t *handle)
{
    if (emu_fails("cublasCreate")) return CUBLAS_STATUS_ALLOC_FAILED;
    if (!handle) return CUBLAS_STATUS_INVALID_VALUE;
    const int device = emu_current_device();
    if (device < 0) return CUBLAS_STATUS_NOT_INITIALIZED;
    struct cublasContext *h = calloc(1, sizeof *h);
    if (!h) return CUBLAS_STATUS_ALLOC_FAILED;
    h->device = device;
    if (!emu_live_add(h, EMU_CUBLAS_HANDLE)) {
        free(h);
        return CUBLAS_STATUS_ALLOC_FAILED;
    }
    *handle = h;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy(cublasHandle_t handle)
{
    const bool fails = emu_fails("cublasDestroy"); /* the handle is destroyed even if the call fails */
    if (!alive(handle, "cublasDestroy")) return CUBLAS_STATUS_NOT_INITIALIZED;
    emu_live_remove(handle, EMU_CUBLAS_HANDLE);
    free(handle);
    return fails ? CUBLAS_STATUS_INTERNAL_ERROR : CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream)
{
    if (emu_fails("cublasSetStream")) return CUBLAS_STATUS_INTERNAL_ERROR;
    if (!alive(handle, "cublasSetStream")) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (stream && emu_device_of_stream(stream) != handle->device) {
        emu_violation("cublasSetStream: the handle belongs to device %d, the stream to device %d",
                      handle->device, emu_device_of_stream(stream));
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    handle->stream = stream;
    handle->own_workspace = false;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void *workspace, size_t bytes)
{
    if (emu_fails("cublasSetWorkspace")) return CUBLAS_STATUS_INTERNAL_ERROR;
    if (!alive(handle, "cublasSetWorkspace")) return CUBLAS_STATUS_NOT_INITIALIZED;
    if ((uintptr_t)workspace % WORKSPACE_ALIGN != 0 || (!workspace && bytes > 0))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (workspace && emu_device_of_address(workspace, bytes) != handle->device) {
        emu_violation(
            "cublasSetWorkspace: %zu bytes at %p are no memory of device %d, which the handle belongs to",
            bytes, workspace, handle->device);
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    handle->own_workspace = true;
    handle->workspace = workspace;
    handle->workspace_bytes = bytes;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode)
{
    if (emu_fails("cublasSetMathMode")) return CUBLAS_STATUS_INTERNAL_ERROR;
    if (!alive(handle, "cublasSetMathMode")) return CUBLAS_STATUS_NOT_INITIALIZED;
    const int base = (int)mode & ~(int)CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
    if (base != CUBLAS_DEFAULT_MATH && base != CUBLAS_PEDANTIC_MATH && base != CUBLAS_TF32_TENSOR_OP_MATH)
        return CUBLAS_STATUS_INVALID_VALUE; /* the deprecated and the emulating modes are not ours */
    handle->math = (cublasMath_t)base;
    return CUBLAS_STATUS_SUCCESS;
}

/* ---- the product: c = alpha op(a) op(b) + beta c, matrices stored column by column ---- */

struct matrix {
    void *at;
    enum emu_type type;
    int64_t rows, columns, ld; /* as stored */
};

struct product {
    struct matrix a, b, c;
    bool turn_a, turn_b;
    int64_t m, n, k;
    float alpha, beta;
    enum emu_rounding rounding;
    void *workspace;
    size_t workspace_bytes;
};

static size_t matrix_bytes(const struct matrix *x)
{
    if (x->rows == 0 || x->columns == 0) return 0;
    return ((size_t)(x->columns - 1) * (size_t)x->ld + (size_t)x->rows) * emu_type_bytes(x->type);
}

/* Column after column without gaps, in f32. */
static float *unpack(const struct matrix *x, enum emu_rounding rounding)
{
    float *out = emu_floats((size_t)x->rows * (size_t)x->columns);
    for (int64_t j = 0; j < x->columns; j++)
        for (int64_t i = 0; i < x->rows; i++)
            out[j * x->rows + i] = emu_round(rounding, emu_load(x->type, x->at, j * x->ld + i));
    return out;
}

/* In rows, the transposed product: c^T (n x m) = op(b)^T (n x k) op(a)^T (k x m). */
static void run_product(void *args)
{
    const struct product *p = args;
    const size_t m = (size_t)p->m, n = (size_t)p->n, k = (size_t)p->k;
    float *a = unpack(&p->a, p->rounding), *b = unpack(&p->b, p->rounding);
    float *panels = emu_floats(emu_panels_floats(k, m)), *sums = emu_floats(n * m);
    emu_panels(panels, a, p->turn_a ? 1 : m, p->turn_a ? k : 1, k, m);
    emu_multiply(sums, m, b, p->turn_b ? 1 : k, p->turn_b ? n : 1, panels, n, m, k,
                 (struct emu_sum_order){.start = k / 2}, false);
    for (int64_t j = 0; j < p->n; j++)
        for (int64_t i = 0; i < p->m; i++) {
            const int64_t at = j * p->c.ld + i;
            /* 0: c may hold anything */
            const float before = p->beta != 0 ? p->beta * emu_load(p->c.type, p->c.at, at) : 0;
            emu_store(p->c.type, p->c.at, at, p->alpha * sums[j * p->m + i] + before);
        }
    if (p->workspace) emu_scribble(p->workspace, p->workspace_bytes);
    free(a);
    free(b);
    free(panels);
    free(sums);
}

static bool take_type(cudaDataType given, enum emu_type *out)
{
    switch (given) {
    case CUDA_R_32F: *out = EMU_F32; return true;
    case CUDA_R_16BF: *out = EMU_BF16; return true;
    case CUDA_R_16F: *out = EMU_F16; return true;
    default: return false;
    }
}

/* The rows of the table of types that are emulated: sums in f32, factors of one type, the result of that type
 * or f32. */
static bool take_types(struct product *p, const struct cublasContext *h, cudaDataType a, cudaDataType b,
                       cudaDataType c, cublasComputeType_t compute)
{
    if (!take_type(a, &p->a.type) || !take_type(b, &p->b.type) || !take_type(c, &p->c.type)) return false;
    if (a != b || (c != a && c != CUDA_R_32F)) return false;
    if (compute == CUBLAS_COMPUTE_32F_FAST_TF32) {
        p->rounding = EMU_TO_TF32;
        return a == CUDA_R_32F && c == CUDA_R_32F;
    }
    if (a == CUDA_R_32F && compute == CUBLAS_COMPUTE_32F && h->math == CUBLAS_TF32_TENSOR_OP_MATH)
        p->rounding = EMU_TO_TF32;
    return compute == CUBLAS_COMPUTE_32F || compute == CUBLAS_COMPUTE_32F_PEDANTIC;
}

static bool ranges_meet(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    return (uintptr_t)a < (uintptr_t)b + b_bytes && (uintptr_t)b < (uintptr_t)a + a_bytes;
}

/* Memory of the handle's device, all of it, at a multiple of the element. */
static bool in_place(const struct cublasContext *h, const struct matrix *x, const char *name)
{
    const size_t bytes = matrix_bytes(x);
    if (bytes == 0) return true;
    if ((uintptr_t)x->at % emu_type_bytes(x->type) != 0) {
        emu_violation("cublasGemmEx: matrix %s at %p is not at a multiple of its element", name, x->at);
        return false;
    }
    if (emu_device_of_address(x->at, bytes) == h->device) return true;
    emu_violation("cublasGemmEx: matrix %s, %zu bytes at %p, is not (whole) in memory of device %d", name,
                  bytes, x->at, h->device);
    return false;
}

static bool places_good(const struct cublasContext *h, const struct product *p)
{
    if (!in_place(h, &p->a, "A") || !in_place(h, &p->b, "B") || !in_place(h, &p->c, "C")) return false;
    const struct matrix *const others[] = {&p->a, &p->b};
    for (int i = 0; i < 2; i++) {
        if (!ranges_meet(p->c.at, matrix_bytes(&p->c), others[i]->at, matrix_bytes(others[i]))) continue;
        emu_violation("cublasGemmEx: C overlaps %c", "AB"[i]);
        return false;
    }
    const struct matrix *const all[] = {&p->a, &p->b, &p->c};
    for (int i = 0; p->workspace && i < 3; i++) {
        if (!ranges_meet(p->workspace, p->workspace_bytes, all[i]->at, matrix_bytes(all[i]))) continue;
        emu_violation("cublasGemmEx: the handle's workspace overlaps matrix %c", "ABC"[i]);
        return false;
    }
    return true;
}

static cublasStatus_t queue_product(const struct cublasContext *h, const struct product *p)
{
    emu_span spans[4];
    int count = 0;
    if (p->k > 0) {
        spans[count++] = (emu_span){.at = p->a.at, .bytes = matrix_bytes(&p->a)};
        spans[count++] = (emu_span){.at = p->b.at, .bytes = matrix_bytes(&p->b)};
    }
    spans[count++] = (emu_span){.at = p->c.at, .bytes = matrix_bytes(&p->c), .write = true};
    if (p->workspace)
        spans[count++] = (emu_span){.at = p->workspace, .bytes = p->workspace_bytes, .write = true};
    if (emu_queue(h->stream, "cublasGemmEx", spans, count, run_product, NULL, p, sizeof *p) != CUDA_SUCCESS)
        return CUBLAS_STATUS_EXECUTION_FAILED;
    return CUBLAS_STATUS_SUCCESS;
}

static bool turns(cublasOperation_t op)
{
    return op != CUBLAS_OP_N;
} /* conjugates of real numbers are transposes */
static bool known(cublasOperation_t op)
{
    return op == CUBLAS_OP_N || op == CUBLAS_OP_T || op == CUBLAS_OP_C;
}
static int least_ld(int64_t rows) { return rows > 1 ? (int)rows : 1; }

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m,
                            int n, int k, const void *alpha, const void *A, cudaDataType Atype, int lda,
                            const void *B, cudaDataType Btype, int ldb, const void *beta, void *C,
                            cudaDataType Ctype, int ldc, cublasComputeType_t computeType,
                            cublasGemmAlgo_t algo)
{
    if (emu_fails("cublasGemmEx")) return CUBLAS_STATUS_EXECUTION_FAILED;
    if (!alive(handle, "cublasGemmEx")) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!at_home(handle, "cublasGemmEx")) return CUBLAS_STATUS_EXECUTION_FAILED;
    if (m < 0 || n < 0 || k < 0 || !known(transa) || !known(transb) || !alpha || !beta)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (algo != CUBLAS_GEMM_DEFAULT && algo != CUBLAS_GEMM_DEFAULT_TENSOR_OP)
        return CUBLAS_STATUS_NOT_SUPPORTED;

    struct product p = {.turn_a = turns(transa), .turn_b = turns(transb), .m = m, .n = n, .k = k};
    if (!take_types(&p, handle, Atype, Btype, Ctype, computeType)) return CUBLAS_STATUS_NOT_SUPPORTED;
    /* read through a character pointer: whoever passes doubles or halves by mistake gets nonsense here as
     * there */
    memcpy(&p.alpha, alpha, sizeof p.alpha);
    memcpy(&p.beta, beta, sizeof p.beta);
    p.a = (struct matrix){(void *)(uintptr_t)A, p.a.type, p.turn_a ? k : m, p.turn_a ? m : k, lda};
    p.b = (struct matrix){(void *)(uintptr_t)B, p.b.type, p.turn_b ? n : k, p.turn_b ? k : n, ldb};
    p.c = (struct matrix){C, p.c.type, m, n, ldc};
    if (lda < least_ld(p.a.rows) || ldb < least_ld(p.b.rows) || ldc < least_ld(p.c.rows))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
    if (!C || (k > 0 && (!A || !B))) return CUBLAS_STATUS_INVALID_VALUE;
    if (handle->own_workspace) {
        if (handle->workspace_bytes < WORKSPACE_LEAST) return CUBLAS_STATUS_ALLOC_FAILED;
        p.workspace = handle->workspace;
        p.workspace_bytes = handle->workspace_bytes;
    }
    if (!places_good(handle, &p)) return CUBLAS_STATUS_EXECUTION_FAILED;
    return queue_product(handle, &p);
}
