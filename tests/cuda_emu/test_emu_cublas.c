/* tests/cuda_emu/test_emu_cublas.c: the emulated cuBLAS against sums in double, and every rule of it broken
 * once. */
#include <cublas_v2.h>
#include <math.h>

#include "tests/cuda_emu/test_emu_place.h"

static cublasHandle_t handle_on(int device)
{
    cublasHandle_t h;
    place_use(device);
    MRT_EQ(cublasCreate(&h), CUBLAS_STATUS_SUCCESS);
    MRT_EQ(cublasSetStream(h, places[device].stream), CUBLAS_STATUS_SUCCESS);
    return h;
}

static cudaDataType name_of(enum emu_type t)
{
    return t == EMU_F32 ? CUDA_R_32F : t == EMU_BF16 ? CUDA_R_16BF : CUDA_R_16F;
}

struct shape {
    enum emu_type type, result;
    cublasOperation_t op_a, op_b;
    int m, n, k, lda, ldb, ldc;
    float alpha, beta;
    cublasComputeType_t compute;
};

/* Worst distance of the result from the exact one, relative to the size of its terms. */
static double multiply(cublasHandle_t h, const struct shape *s, uint64_t *seed)
{
    const size_t a_count = (size_t)s->lda * (size_t)(s->op_a == CUBLAS_OP_N ? s->k : s->m);
    const size_t b_count = (size_t)s->ldb * (size_t)(s->op_b == CUBLAS_OP_N ? s->n : s->k);
    const size_t c_count = (size_t)s->ldc * (size_t)s->n;
    void *a = place_alloc(0, a_count * 4), *b = place_alloc(0, b_count * 4), *c = place_alloc(0, c_count * 4);
    float *before = malloc(c_count * sizeof *before);
    test_fill(s->type, a, a_count, seed);
    test_fill(s->type, b, b_count, seed);
    test_fill(s->result, c, c_count, seed);
    for (size_t i = 0; i < c_count; i++) {
        if (s->beta == 0 && i % 3 == 0)
            emu_store(s->result, c, (int64_t)i, NAN); /* must not get into the result */
        before[i] = emu_load(s->result, c, (int64_t)i);
    }
    MRT_EQ(cublasGemmEx(h, s->op_a, s->op_b, s->m, s->n, s->k, &s->alpha, a, name_of(s->type), s->lda, b,
                        name_of(s->type), s->ldb, &s->beta, c, name_of(s->result), s->ldc, s->compute,
                        CUBLAS_GEMM_DEFAULT),
           CUBLAS_STATUS_SUCCESS);
    place_sync(0);
    double worst = 0;
    for (int j = 0; j < s->n && !isinf(worst); j++)
        for (int i = 0; i < s->ldc; i++) {
            const int64_t at = (int64_t)j * s->ldc + i;
            const float got = emu_load(s->result, c, at);
            if (i >= s->m) {
                MRT_TRUE(memcmp(&got, &before[at], sizeof got) == 0); /* between columns nothing changes */
                continue;
            }
            double sum = 0, size = 1;
            for (int p = 0; p < s->k; p++) {
                const double left = (double)emu_load(
                    s->type, a, s->op_a == CUBLAS_OP_N ? (int64_t)p * s->lda + i : (int64_t)i * s->lda + p);
                const double right = (double)emu_load(
                    s->type, b, s->op_b == CUBLAS_OP_N ? (int64_t)j * s->ldb + p : (int64_t)p * s->ldb + j);
                sum += left * right;
                size += fabs(left * right);
            }
            const double exact =
                (double)s->alpha * sum + (s->beta != 0 ? (double)s->beta * (double)before[at] : 0);
            worst = isnan(got) ? INFINITY : fmax(worst, fabs((double)got - exact) / size);
            if (isinf(worst)) break;
        }
    free(before);
    place_free(0, a);
    place_free(0, b);
    place_free(0, c);
    return worst;
}

static struct shape random_shape(uint64_t *seed)
{
    static const enum emu_type types[][2] = {{EMU_F32, EMU_F32},
                                             {EMU_BF16, EMU_BF16},
                                             {EMU_BF16, EMU_F32},
                                             {EMU_F16, EMU_F16},
                                             {EMU_F16, EMU_F32}};
    static const float factors[] = {0, 1, -0.5f};
    struct shape s = {.compute = CUBLAS_COMPUTE_32F};
    const size_t t = test_up_to(seed, 5) - 1;
    s.type = types[t][0];
    s.result = types[t][1];
    s.op_a = test_up_to(seed, 2) == 1 ? CUBLAS_OP_N : CUBLAS_OP_T;
    s.op_b = test_up_to(seed, 2) == 1 ? CUBLAS_OP_N : CUBLAS_OP_T;
    s.m = (int)test_up_to(seed, 37);
    s.n = (int)test_up_to(seed, 37);
    s.k = (int)test_up_to(seed, 70);
    s.lda = (s.op_a == CUBLAS_OP_N ? s.m : s.k) + (int)test_up_to(seed, 4) - 1;
    s.ldb = (s.op_b == CUBLAS_OP_N ? s.k : s.n) + (int)test_up_to(seed, 4) - 1;
    s.ldc = s.m + (int)test_up_to(seed, 4) - 1;
    s.alpha = factors[test_up_to(seed, 2)];
    s.beta = factors[test_up_to(seed, 3) - 1];
    return s;
}

static void products_are_right(void **state)
{
    (void)state;
    cublasHandle_t h = handle_on(0);
    uint64_t seed = 1;
    for (int i = 0; i < 200; i++) {
        const struct shape s = random_shape(&seed);
        const double worst = multiply(h, &s, &seed);
        if (worst > test_tolerance(s.result)) fprintf(stderr, "case %d: %g\n", i, worst);
        MRT_TRUE(worst <= test_tolerance(s.result));
    }
    MRT_EQ(cublasDestroy(h), CUBLAS_STATUS_SUCCESS);
    MRT_EQ(emu_violations(), 0);
}

/* TF32 must show: its result is further off than f32 can be, and no further than 10 bits of mantissa make
 * it. */
static void tf32_rounds_the_factors(void **state)
{
    (void)state;
    cublasHandle_t h = handle_on(0);
    struct shape s = {.type = EMU_F32,
                      .result = EMU_F32,
                      .op_a = CUBLAS_OP_N,
                      .op_b = CUBLAS_OP_N,
                      .m = 20,
                      .n = 20,
                      .k = 64,
                      .lda = 20,
                      .ldb = 64,
                      .ldc = 20,
                      .alpha = 1,
                      .compute = CUBLAS_COMPUTE_32F};
    uint64_t seed = 2;
    MRT_TRUE(multiply(h, &s, &seed) < 2e-6);
    s.compute = CUBLAS_COMPUTE_32F_FAST_TF32;
    double worst = multiply(h, &s, &seed);
    MRT_TRUE(worst > 1e-5 && worst < 1e-3);
    s.compute = CUBLAS_COMPUTE_32F;
    MRT_EQ(cublasSetMathMode(h, CUBLAS_TF32_TENSOR_OP_MATH), CUBLAS_STATUS_SUCCESS);
    worst = multiply(h, &s, &seed);
    MRT_TRUE(worst > 1e-5 && worst < 1e-3);
    MRT_EQ(cublasSetMathMode(h, CUBLAS_DEFAULT_MATH), CUBLAS_STATUS_SUCCESS);
    MRT_TRUE(multiply(h, &s, &seed) < 2e-6);
    MRT_EQ(cublasSetMathMode(h, (cublasMath_t)7), CUBLAS_STATUS_INVALID_VALUE);
    MRT_EQ(cublasDestroy(h), CUBLAS_STATUS_SUCCESS);
}

/* A call whose arguments are spoilt one after the other. */
struct call {
    cublasHandle_t h;
    cublasOperation_t ta, tb;
    int m, n, k, lda, ldb, ldc;
    const float *alpha, *beta;
    void *a, *b, *c;
    cudaDataType type_a, type_b, type_c;
    cublasComputeType_t compute;
    cublasGemmAlgo_t algo;
};

static cublasStatus_t call(const struct call *c)
{
    return cublasGemmEx(c->h, c->ta, c->tb, c->m, c->n, c->k, c->alpha, c->a, c->type_a, c->lda, c->b,
                        c->type_b, c->ldb, c->beta, c->c, c->type_c, c->ldc, c->compute, c->algo);
}

#define SPOILT(change, status)                                                                               \
    do {                                                                                                     \
        struct call bad = good;                                                                              \
        bad.change;                                                                                          \
        MRT_EQ(call(&bad), status);                                                                          \
    } while (0)

static void arguments_are_checked(void **state)
{
    (void)state;
    static const float one = 1, zero = 0;
    float *m = place_alloc(0, 3 * 64 * sizeof(float)), *foreign = place_alloc(1, 64 * sizeof(float));
    const struct call good = {handle_on(0),
                              CUBLAS_OP_N,
                              CUBLAS_OP_T,
                              8,
                              4,
                              6,
                              8,
                              4,
                              8,
                              &one,
                              &zero,
                              m,
                              m + 64,
                              m + 128,
                              CUDA_R_32F,
                              CUDA_R_32F,
                              CUDA_R_32F,
                              CUBLAS_COMPUTE_32F,
                              CUBLAS_GEMM_DEFAULT};
    MRT_EQ(call(&good), CUBLAS_STATUS_SUCCESS);
    SPOILT(h = NULL, CUBLAS_STATUS_NOT_INITIALIZED);
    SPOILT(m = -1, CUBLAS_STATUS_INVALID_VALUE);
    SPOILT(k = -1, CUBLAS_STATUS_INVALID_VALUE);
    SPOILT(ta = (cublasOperation_t)9, CUBLAS_STATUS_INVALID_VALUE);
    SPOILT(lda = 7, CUBLAS_STATUS_INVALID_VALUE);
    SPOILT(ldb = 3, CUBLAS_STATUS_INVALID_VALUE);
    SPOILT(ldc = 7, CUBLAS_STATUS_INVALID_VALUE);
    SPOILT(alpha = NULL, CUBLAS_STATUS_INVALID_VALUE);
    SPOILT(beta = NULL, CUBLAS_STATUS_INVALID_VALUE);
    SPOILT(a = NULL, CUBLAS_STATUS_INVALID_VALUE);
    SPOILT(c = NULL, CUBLAS_STATUS_INVALID_VALUE);
    SPOILT(type_a = CUDA_R_16BF, CUBLAS_STATUS_NOT_SUPPORTED);
    SPOILT(type_c = CUDA_R_16F, CUBLAS_STATUS_NOT_SUPPORTED);
    SPOILT(compute = CUBLAS_COMPUTE_16F, CUBLAS_STATUS_NOT_SUPPORTED);
    SPOILT(algo = (cublasGemmAlgo_t)50, CUBLAS_STATUS_NOT_SUPPORTED);
    CAUGHT(SPOILT(a = foreign, CUBLAS_STATUS_EXECUTION_FAILED));
    CAUGHT(SPOILT(a = (char *)m + 2, CUBLAS_STATUS_EXECUTION_FAILED));
    CAUGHT(SPOILT(c = m, CUBLAS_STATUS_EXECUTION_FAILED));
    CAUGHT(SPOILT(c = m + 3 * 64 - 31, CUBLAS_STATUS_EXECUTION_FAILED)); /* one element past the end */
    place_use(1);
    CAUGHT(SPOILT(m = 8, CUBLAS_STATUS_EXECUTION_FAILED));
    place_use(0);
    place_sync(0);
    const cublasHandle_t dead = good.h;
    MRT_EQ(cublasDestroy(good.h), CUBLAS_STATUS_SUCCESS);
    CAUGHT(SPOILT(h = dead, CUBLAS_STATUS_NOT_INITIALIZED));
    CAUGHT(MRT_EQ(cublasDestroy(dead), CUBLAS_STATUS_NOT_INITIALIZED));
    place_free(0, m);
    place_free(1, foreign);
}

static void streams_and_workspaces_are_checked(void **state)
{
    (void)state;
    static const float one = 1, zero = 0;
    cublasHandle_t h = handle_on(0);
    char *workspace = place_alloc(0, 64 << 10), *foreign = place_alloc(1, 64 << 10);
    float *m = place_alloc(0, 3 * 16 * sizeof(float));
    const struct call good = {h,
                              CUBLAS_OP_N,
                              CUBLAS_OP_N,
                              4,
                              4,
                              4,
                              4,
                              4,
                              4,
                              &one,
                              &zero,
                              m,
                              m + 16,
                              m + 32,
                              CUDA_R_32F,
                              CUDA_R_32F,
                              CUDA_R_32F,
                              CUBLAS_COMPUTE_32F,
                              CUBLAS_GEMM_DEFAULT};
    MRT_EQ(cublasSetWorkspace(h, workspace + 128, 1024), CUBLAS_STATUS_INVALID_VALUE);
    MRT_EQ(cublasSetWorkspace(h, NULL, 1024), CUBLAS_STATUS_INVALID_VALUE);
    CAUGHT(MRT_EQ(cublasSetWorkspace(h, foreign, 1024), CUBLAS_STATUS_INVALID_VALUE));
    CAUGHT(MRT_EQ(cublasSetWorkspace(h, workspace, (64 << 10) + 1), CUBLAS_STATUS_INVALID_VALUE));
    MRT_EQ(cublasSetWorkspace(h, workspace, 1024), CUBLAS_STATUS_SUCCESS);
    MRT_EQ(call(&good), CUBLAS_STATUS_ALLOC_FAILED);
    MRT_EQ(cublasSetStream(h, places[0].stream), CUBLAS_STATUS_SUCCESS); /* puts the workspace back */
    MRT_EQ(call(&good), CUBLAS_STATUS_SUCCESS);
    MRT_EQ(cublasSetWorkspace(h, workspace, 64 << 10), CUBLAS_STATUS_SUCCESS);
    MRT_EQ(call(&good), CUBLAS_STATUS_SUCCESS);
    CAUGHT(SPOILT(c = workspace, CUBLAS_STATUS_EXECUTION_FAILED));
    CAUGHT(MRT_EQ(cublasSetStream(h, places[1].stream), CUBLAS_STATUS_INVALID_VALUE));
    place_sync(0);
    MRT_EQ(cublasDestroy(h), CUBLAS_STATUS_SUCCESS);
    EMUT_MUST(cuCtxSetCurrent(NULL));
    MRT_EQ(cublasCreate(&h), CUBLAS_STATUS_NOT_INITIALIZED);
    place_use(0);
    MRT_EQ(cublasCreate(NULL), CUBLAS_STATUS_INVALID_VALUE);
    place_free(0, workspace);
    place_free(1, foreign);
    place_free(0, m);
}

/* Recorded products run at each launch, also with the library's own workspace. */
static void products_are_recorded(void **state)
{
    (void)state;
    static const float one = 1;
    cublasHandle_t h = handle_on(0);
    float *m = place_alloc(0, 3 * 16 * sizeof(float));
    for (int i = 0; i < 48; i++) m[i] = i < 32 ? 1 : 0;
    CUgraph graph;
    CUgraphExec launchable;
    EMUT_MUST(cuStreamBeginCapture(places[0].stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    MRT_EQ(cublasGemmEx(h, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, &one, m, CUDA_R_32F, 4, m + 16, CUDA_R_32F, 4,
                        &one, m + 32, CUDA_R_32F, 4, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
           CUBLAS_STATUS_SUCCESS);
    EMUT_MUST(cuStreamEndCapture(places[0].stream, &graph));
    EMUT_MUST(cuGraphInstantiate(&launchable, graph, 0));
    MRT_TRUE(m[32] == 0);
    for (int i = 0; i < 2; i++) EMUT_MUST(cuGraphLaunch(launchable, places[0].stream));
    place_sync(0);
    for (int i = 32; i < 48; i++) MRT_TRUE(m[i] == 8);
    EMUT_MUST(cuGraphExecDestroy(launchable));
    EMUT_MUST(cuGraphDestroy(graph));
    MRT_EQ(cublasDestroy(h), CUBLAS_STATUS_SUCCESS);
    place_free(0, m);
}

int main(void)
{
    setenv("MILLRACE_EMU_DEVICES", "7", 1);
    setenv("MILLRACE_EMU_VIOLATION", "count", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_right),    cmocka_unit_test(tf32_rounds_the_factors),
        cmocka_unit_test(arguments_are_checked), cmocka_unit_test(streams_and_workspaces_are_checked),
        cmocka_unit_test(products_are_recorded),
    };
    return cmocka_run_group_tests(tests, places_open, places_close);
}
