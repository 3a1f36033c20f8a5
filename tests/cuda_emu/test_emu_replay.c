/* The same seed does the same in the same order, other seeds do not; every call fails when it is set to, with
 * a fitting error, and a program that checks return values ends in an orderly way; several threads at once do
 * no harm. */
#include <pthread.h>

#include "tests/cuda_emu/emut.h"

static struct emut_gpu g;

static void two_streams(void)
{
    emut_open(&g, 0);
    for (int i = 0; i < 8; i++) {
        EMUT_MUST(cuMemsetD8Async(g.a, (unsigned char)i, EMUT_BYTES / 2, g.copy));
        EMUT_MUST(cuMemsetD8Async(g.b, (unsigned char)i, EMUT_BYTES / 2, g.compute));
        if (i == 5) EMUT_MUST(cuStreamSynchronize(g.copy));
    }
    emut_close(&g);
}

/* Log of a run; addresses and times are not in it. */
static char *log_of(unsigned seed, const char *order)
{
    char settings[512], text[512];
    const char *path = mrt_path("log-%u-%s", seed, order);
    snprintf(settings, sizeof settings, "MILLRACE_EMU_SEED=%u MILLRACE_EMU_ORDER=%s", seed, order);
    setenv("MILLRACE_EMU_LOG", path, 1); /* not among the settings, which spaces separate */
    MRT_EQ(emut_run(two_streams, settings, text, sizeof text), 0);
    unsetenv("MILLRACE_EMU_LOG");
    size_t bytes;
    char *log = mrt_read_file(path, &bytes);
    MRT_TRUE(log != NULL && bytes > 100);
    log = realloc(log, bytes + 1);
    log[bytes] = '\0';
    return log;
}

static void test_replay(void **state)
{
    (void)state;
    static const char *const orders[] = {"eager", "late", "starve", "random"};
    char *first = log_of(1, "random"), *eager = log_of(1, "eager");
    MRT_TRUE(strcmp(first, eager) != 0);
    MRT_HAS(first, "cuInit");
    MRT_HAS(first, "run #");
    for (unsigned seed = 1; seed <= 10; seed++) {
        for (size_t o = 0; o < 4; o++) {
            char *one = log_of(seed, orders[o]), *two = log_of(seed, orders[o]);
            MRT_STR(one, two);
            free(one);
            free(two);
        }
    }
    char *other = log_of(2, "random");
    MRT_TRUE(strcmp(first, other) != 0);
    free(first);
    free(eager);
    free(other);
}

/* ---- failing calls ---- */

static unsigned char image[64] = {0x7f, 'E', 'L', 'F'};

/* Each call once; true when one failed, which its return value must show. Releases its resources. */
static bool every_call(void)
{
    CUdevice dev;
    CUcontext context = NULL, current;
    CUmemoryPool pool = NULL;
    CUstream s = NULL;
    CUevent e = NULL, f = NULL;
    CUdeviceptr a = 0;
    void *h = NULL;
    CUmodule m = NULL;
    CUfunction k;
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    int n, low, high, failures = 0;
    char name[32];
    size_t left, all;
    float ms;
    cuuint64_t keep = UINT64_MAX;
    const CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                  .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
#define TRY(call)                                                                                            \
    do {                                                                                                     \
        if ((call) != CUDA_SUCCESS) {                                                                        \
            failures++;                                                                                      \
            goto end;                                                                                        \
        }                                                                                                    \
    } while (0)
    TRY(cuInit(0));
    TRY(cuDeviceGetCount(&n));
    TRY(cuDeviceGet(&dev, 0));
    TRY(cuDeviceGetName(name, sizeof name, dev));
    TRY(cuDeviceGetPCIBusId(name, sizeof name, dev));
    TRY(cuDeviceGetAttribute(&n, CU_DEVICE_ATTRIBUTE_WARP_SIZE, dev));
    TRY(cuDeviceTotalMem(&all, dev));
    TRY(cuDevicePrimaryCtxRetain(&context, dev));
    TRY(cuCtxSetCurrent(context));
    TRY(cuCtxGetCurrent(&current));
    TRY(cuMemGetInfo(&left, &all));
    TRY(cuMemPoolCreate(&pool, &props));
    TRY(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
    TRY(cuCtxGetStreamPriorityRange(&low, &high));
    TRY(cuStreamCreateWithPriority(&s, CU_STREAM_NON_BLOCKING, high));
    TRY(cuEventCreate(&e, 0));
    TRY(cuEventCreate(&f, 0));
    TRY(cuMemAllocFromPoolAsync(&a, 256, pool, s));
    TRY(cuMemHostAlloc(&h, 256, 0));
    memset(h, 3, 256);
    TRY(cuModuleLoadData(&m, image));
    TRY(cuModuleGetFunction(&k, m, "mrk_update_end"));
    TRY(cuFuncSetAttribute(k, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 65536));
    TRY(cuEventRecord(e, s));
    TRY(cuMemcpyHtoDAsync(a, h, 256, s));
    TRY(cuMemsetD8Async(a, 0, 64, s));
    TRY(cuMemcpyDtoDAsync(a + 64, a, 64, s));
    TRY(cuMemcpyDtoHAsync(h, a, 256, s));
    void *args[] = {&a}; /* all this kernel takes is an address */
    TRY(cuLaunchKernel(k, 1, 1, 1, 1, 1, 1, 0, s, args, NULL));
    TRY(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    if (cuMemsetD8Async(a, 0, 64, s) != CUDA_SUCCESS) {
        failures++;
        cuStreamEndCapture(s, &graph);
        goto end;
    }
    TRY(cuStreamEndCapture(s, &graph));
    TRY(cuGraphInstantiate(&exec, graph, 0));
    TRY(cuGraphLaunch(exec, s));
    TRY(cuStreamWaitEvent(s, e, 0));
    TRY(cuEventRecord(f, s));
    CUresult rc;
    while ((rc = cuEventQuery(f)) == CUDA_ERROR_NOT_READY) {
    }
    TRY(rc);
    TRY(cuEventSynchronize(f));
    TRY(cuEventElapsedTime(&ms, e, f));
    while ((rc = cuStreamQuery(s)) == CUDA_ERROR_NOT_READY) {
    }
    TRY(rc);
end:
#undef TRY
#define END(call) failures += (call) != CUDA_SUCCESS
    if (context && s) {
        if (cuCtxSetCurrent(context) != CUDA_SUCCESS && failures++ == 0) cuCtxSetCurrent(context);
        if (cuStreamSynchronize(s) != CUDA_SUCCESS && failures++ == 0) cuStreamSynchronize(s);
    }
    if (exec) END(cuGraphExecDestroy(exec));
    if (graph) END(cuGraphDestroy(graph));
    if (m) END(cuModuleUnload(m));
    if (a) END(cuMemFreeAsync(a, s));
    if (a && cuStreamSynchronize(s) != CUDA_SUCCESS && failures++ == 0) cuStreamSynchronize(s);
    if (h) END(cuMemFreeHost(h));
    if (f) END(cuEventDestroy(f));
    if (e) END(cuEventDestroy(e));
    if (s) END(cuStreamDestroy(s));
    if (pool) END(cuMemPoolDestroy(pool));
    if (context) END(cuDevicePrimaryCtxRelease(dev));
#undef END
    return failures > 0;
}

static void nothing_fails(void) { EMUT_CHECK(!every_call()); }
static void one_fails(void) { EMUT_CHECK(every_call()); }

static void test_each_call_fails(void **state)
{
    (void)state;
    char text[2048], settings[160];
    MRT_EQ(emut_run(nothing_fails, "MILLRACE_EMU_ORDER=eager", text, sizeof text), 0);
    unsigned n = 1;
    for (;; n++) {
        snprintf(settings, sizeof settings, "MILLRACE_EMU_ORDER=eager MILLRACE_EMU_FAIL_AT=%u", n);
        const int status = emut_run(one_fails, settings, text, sizeof text);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 4 && n > 45) break; /* after the last call */
        if (status != 0) fprintf(stderr, "%s: status %d: %s\n", settings, status, text);
        MRT_EQ(status, 0);
    }
    MRT_TRUE(n >= 50);
    MRT_EQ(emut_run(nothing_fails, settings, text, sizeof text), 0);
}

static void sticky(void)
{
    emut_open(&g, 0);
    const CUresult rc = cuStreamSynchronize(g.copy); /* set to fail */
    EMUT_CHECK(rc == CUDA_ERROR_ILLEGAL_ADDRESS);
    EMUT_CHECK(cuStreamSynchronize(g.compute) == rc && cuMemsetD8Async(g.a, 0, 8, g.compute) == rc);
    EMUT_CHECK(cuEventQuery(g.used) == rc && cuStreamQuery(g.copy) == rc);
    EMUT_CHECK(cuMemFreeHost(g.in) == rc && emu_violations() == 0); /* and it is freed all the same: */
    EMUT_CHECK(cuMemFreeHost(g.in) == rc && emu_violations() == 1);
}

static void test_sticky(void **state)
{
    (void)state;
    char text[2048];
    /* cuInit, Get, Retain, SetCurrent, PoolCreate, 2 streams, 2 events, 2 allocations, 2 pinned, Synchronize:
     * the next one fails */
    const int status =
        emut_run(sticky, "MILLRACE_EMU_FAIL_AT=15 MILLRACE_EMU_VIOLATION=count", text, sizeof text);
    MRT_HAS(text, "cuMemFreeHost");
    MRT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 5);
}

/* ---- several threads ---- */

static void *feed(void *arg)
{
    const CUstream mine = arg;
    CUevent e;
    CUdeviceptr p;
    unsigned char *h;
    EMUT_MUST(cuCtxSetCurrent(g.context));
    EMUT_MUST(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    EMUT_MUST(cuMemAllocFromPoolAsync(&p, EMUT_BYTES, g.pool, mine));
    EMUT_MUST(cuMemHostAlloc((void **)&h, EMUT_BYTES, 0));
    for (int i = 0; i < 20; i++) {
        memset(h, i, EMUT_BYTES);
        EMUT_MUST(cuMemcpyHtoDAsync(p, h, EMUT_BYTES, mine));
        EMUT_MUST(cuMemcpyDtoHAsync(h, p, EMUT_BYTES, mine));
        EMUT_MUST(cuEventRecord(e, mine));
        if (i % 2) {
            EMUT_MUST(cuEventSynchronize(e));
        } else {
            while (cuEventQuery(e) == CUDA_ERROR_NOT_READY) {
            }
        }
        EMUT_CHECK(h[0] == i && h[EMUT_BYTES - 1] == i);
    }
    EMUT_MUST(cuMemFreeAsync(p, mine));
    EMUT_MUST(cuStreamSynchronize(mine));
    EMUT_MUST(cuMemFreeHost(h));
    EMUT_MUST(cuEventDestroy(e));
    return NULL;
}

static void two_threads(void)
{
    pthread_t one, two;
    emut_open(&g, 0);
    EMUT_CHECK(pthread_create(&one, NULL, feed, g.copy) == 0 &&
               pthread_create(&two, NULL, feed, g.compute) == 0);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    emut_close(&g);
}

static void test_two_threads(void **state)
{
    (void)state;
    emut_always_fine(two_threads, 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replay),
        cmocka_unit_test(test_each_call_fails),
        cmocka_unit_test(test_sticky),
        cmocka_unit_test(test_two_threads),
    };
    return mrt_run(tests);
}
