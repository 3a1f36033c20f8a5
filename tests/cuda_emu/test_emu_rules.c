/* Rules of the driver: the return values of misused calls, and misuse that is a violation because a real GPU
 * would not report it. */
#include "tests/cuda_emu/emut.h"

static struct emut_gpu g;

static void copy_there(CUstream s) { EMUT_MUST(cuMemcpyDtoDAsync(g.b, g.a, EMUT_BYTES, s)); }

/* ---- violations ---- */

static void use_destroyed_stream(void)
{
    emut_open(&g, 0);
    EMUT_MUST(cuStreamDestroy(g.copy));
    EMUT_CHECK(cuMemcpyDtoDAsync(g.b, g.a, EMUT_BYTES, g.copy) == CUDA_ERROR_INVALID_HANDLE);
}

static void use_destroyed_event(void)
{
    emut_open(&g, 0);
    EMUT_MUST(cuEventDestroy(g.used));
    EMUT_CHECK(cuStreamWaitEvent(g.copy, g.used, 0) == CUDA_ERROR_INVALID_HANDLE);
}

static void use_event_as_stream(void)
{
    emut_open(&g, 0);
    EMUT_CHECK(cuStreamSynchronize((CUstream)g.used) == CUDA_ERROR_INVALID_HANDLE);
}

static void free_device_memory_in_use(void)
{
    emut_open(&g, 0);
    copy_there(g.copy);
    EMUT_MUST(cuMemFreeAsync(g.a, g.compute));
    EMUT_MUST(cuStreamSynchronize(g.copy));
}

static void use_freed_memory(void)
{
    emut_open(&g, 0);
    EMUT_MUST(cuMemFreeAsync(g.a, g.compute));
    EMUT_CHECK(cuMemsetD8Async(g.a, 0, 16, g.compute) == CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void free_twice(void)
{
    emut_open(&g, 0);
    EMUT_MUST(cuMemFreeAsync(g.a, g.compute));
    EMUT_CHECK(cuMemFreeAsync(g.a, g.compute) == CUDA_ERROR_INVALID_VALUE);
}

static void free_pinned_memory_in_use(void)
{
    emut_open(&g, 0);
    EMUT_MUST(cuMemcpyHtoDAsync(g.a, g.in, EMUT_BYTES, g.copy));
    EMUT_MUST(cuMemFreeHost(g.in));
}

static void destroy_stream_in_use(void)
{
    emut_open(&g, 0);
    copy_there(g.copy);
    EMUT_MUST(cuStreamDestroy(g.copy));
}

static void destroy_event_in_use(void)
{
    emut_open(&g, 0);
    copy_there(g.copy);
    EMUT_MUST(cuEventRecord(g.copied, g.copy));
    EMUT_MUST(cuEventDestroy(g.copied));
}

static void read_behind_the_end(void)
{
    emut_open(&g, 0);
    EMUT_CHECK(cuMemsetD8Async(g.a, 1, EMUT_BYTES + 1, g.copy) == CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void use_pageable_address_on_device(void)
{
    static unsigned char pageable[EMUT_BYTES];
    emut_open(&g, 0);
    EMUT_CHECK(cuMemcpyDtoDAsync(g.a, (CUdeviceptr)pageable, EMUT_BYTES, g.copy) ==
               CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void write_behind(void *args) { memset((*(unsigned char **)args) + EMUT_BYTES, 1, 4); }
static void write_inside(void *args) { memset(*(unsigned char **)args, 1, 4); }

static void operation_writes_behind_its_memory(void)
{
    emut_open(&g, 0);
    const emu_span span = {(void *)g.a, EMUT_BYTES, true};
    EMUT_MUST(
        emu_queue(g.compute, "a careless kernel", &span, 1, write_behind, NULL, &span.at, sizeof span.at));
    EMUT_MUST(cuStreamSynchronize(g.compute));
}

static void operation_writes_what_it_reads(void)
{
    emut_open(&g, 0);
    const emu_span span = {(void *)g.a, EMUT_BYTES, false};
    EMUT_MUST(
        emu_queue(g.compute, "a careless kernel", &span, 1, write_inside, NULL, &span.at, sizeof span.at));
    EMUT_MUST(cuStreamSynchronize(g.compute));
}

static void leave_things_behind(void)
{
    emut_open(&g, 0);
    EMUT_MUST(cuStreamDestroy(g.copy));
    EMUT_MUST(cuDevicePrimaryCtxRelease(0));
}

static void default_stream(void)
{
    emut_open(&g, 0);
    EMUT_CHECK(cuMemsetD8Async(g.a, 0, 4, NULL) == CUDA_ERROR_INVALID_HANDLE);
}

static void test_violations(void **state)
{
    (void)state;
    emut_always_caught(use_destroyed_stream, "cuMemcpyDtoDAsync uses stream", "was destroyed");
    emut_always_caught(use_destroyed_event, "cuStreamWaitEvent uses event", "was destroyed");
    emut_always_caught(use_event_as_stream, "cuStreamSynchronize", "no stream");
    emut_always_caught(free_device_memory_in_use, "cuMemFreeAsync (#", "cuMemcpyDtoDAsync (#");
    emut_always_caught(use_freed_memory, "cuMemsetD8Async (#", "that cuMemFreeAsync (#");
    emut_always_caught(free_twice, "cuMemFreeAsync: ", "0x");
    emut_always_caught(free_pinned_memory_in_use, "cuMemFreeHost", "cuMemcpyHtoDAsync (#");
    emut_always_caught(destroy_stream_in_use, "cuStreamDestroy", "not know to be over");
    emut_always_caught(destroy_event_in_use, "cuEventDestroy", "not know to be over");
    emut_always_caught(read_behind_the_end, "cuMemsetD8Async", "ends after 1024");
    emut_always_caught(use_pageable_address_on_device, "cuMemcpyDtoDAsync", "no memory of a device");
    emut_always_caught(operation_writes_what_it_reads, "a careless kernel", "declared to only read");
    emut_always_caught(leave_things_behind, "cuDevicePrimaryCtxRelease", "not given back");
    emut_always_caught(default_stream, "cuMemsetD8Async", "default stream");
}

/* The address sanitizer stops the program itself; without it the guard bytes tell. */
static void test_overrun(void **state)
{
    (void)state;
    char text[4096];
    const int status =
        emut_run(operation_writes_behind_its_memory, "MILLRACE_EMU_VIOLATION=count", text, sizeof text);
    MRT_TRUE(status != 0);
    MRT_TRUE(strstr(text, "a careless kernel") || strstr(text, "AddressSanitizer"));
}

/* ---- returned errors ---- */

static void arguments(void)
{
    CUdevice dev;
    int n;
    char name[64];
    EMUT_CHECK(cuDeviceGetCount(&n) == CUDA_ERROR_NOT_INITIALIZED);
    EMUT_CHECK(cuInit(1) == CUDA_ERROR_INVALID_VALUE);
    EMUT_MUST(cuInit(0));
    EMUT_MUST(cuDeviceGetCount(&n));
    EMUT_CHECK(n == 2);
    EMUT_CHECK(cuDeviceGet(&dev, 2) == CUDA_ERROR_INVALID_DEVICE &&
               cuDeviceGet(&dev, -1) == CUDA_ERROR_INVALID_DEVICE);
    EMUT_CHECK(cuDeviceGet(NULL, 0) == CUDA_ERROR_INVALID_VALUE);
    EMUT_MUST(cuDeviceGetName(name, sizeof name, 1));
    EMUT_CHECK(strcmp(name, "emulated GPU 1") == 0);
    EMUT_MUST(cuDeviceGetAttribute(&n, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
    EMUT_CHECK(n == 9);
    const char *text;
    EMUT_MUST(cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &text));
    EMUT_CHECK(strcmp(text, "CUDA_ERROR_OUT_OF_MEMORY") == 0);
    EMUT_CHECK(cuGetErrorString((CUresult)12345, &text) == CUDA_ERROR_INVALID_VALUE);

    CUstream s;
    EMUT_CHECK(cuStreamCreateWithPriority(&s, CU_STREAM_NON_BLOCKING, 0) == CUDA_ERROR_INVALID_CONTEXT);
    emut_open(&g, 0);
    CUdeviceptr p;
    EMUT_CHECK(cuMemAllocFromPoolAsync(&p, 0, g.pool, g.copy) == CUDA_ERROR_INVALID_VALUE);
    EMUT_CHECK(cuMemAllocFromPoolAsync(NULL, 8, g.pool, g.copy) == CUDA_ERROR_INVALID_VALUE);
    EMUT_CHECK(cuMemAllocFromPoolAsync(&p, 2 << 20, g.pool, g.copy) == CUDA_ERROR_OUT_OF_MEMORY);
    size_t left, all;
    EMUT_MUST(cuMemGetInfo(&left, &all));
    EMUT_CHECK(all == 1 << 20 && left == all - 2 * EMUT_BYTES);
    void *h;
    EMUT_CHECK(cuMemHostAlloc(&h, 0, 0) == CUDA_ERROR_INVALID_VALUE &&
               cuMemHostAlloc(&h, 8, 64) == CUDA_ERROR_INVALID_VALUE);
    EMUT_CHECK(cuMemFreeHost(NULL) == CUDA_ERROR_INVALID_VALUE);
    EMUT_CHECK(cuMemcpyHtoDAsync(0, g.in, 8, g.copy) == CUDA_ERROR_INVALID_VALUE);
    EMUT_CHECK(cuStreamWaitEvent(g.copy, g.used, 7) == CUDA_ERROR_INVALID_VALUE);
    static const char garbage[64] = "garbage";
    CUmodule m;
    EMUT_CHECK(cuModuleLoadData(&m, garbage) == CUDA_ERROR_INVALID_IMAGE);
    emut_close(&g);
}

static void events(void)
{
    float ms;
    emut_open(&g, 0);
    EMUT_MUST(cuEventQuery(g.used)); /* never recorded: over */
    EMUT_MUST(cuEventSynchronize(g.used));
    EMUT_CHECK(cuEventElapsedTime(&ms, g.used, g.copied) == CUDA_ERROR_INVALID_HANDLE);
    EMUT_MUST(cuEventRecord(g.used, g.copy));
    copy_there(g.copy);
    EMUT_MUST(cuEventRecord(g.copied, g.copy));
    EMUT_CHECK(cuEventElapsedTime(&ms, g.used, g.copied) == CUDA_ERROR_NOT_READY);
    EMUT_MUST(cuEventSynchronize(g.copied));
    EMUT_MUST(cuEventElapsedTime(&ms, g.used, g.copied));
    EMUT_CHECK(ms >= 0);
    CUevent untimed;
    EMUT_MUST(cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
    EMUT_MUST(cuEventRecord(untimed, g.copy));
    EMUT_MUST(cuEventSynchronize(untimed));
    EMUT_CHECK(cuEventElapsedTime(&ms, g.used, untimed) == CUDA_ERROR_INVALID_HANDLE);
    EMUT_MUST(cuEventDestroy(untimed));
    emut_close(&g);
}

static struct emut_gpu other;

static void contexts(void)
{
    emut_open(&g, 0);
    emut_open(&other, 1); /* the current one from here */
    EMUT_CHECK(cuMemcpyDtoDAsync(g.b, g.a, 8, g.copy) == CUDA_ERROR_INVALID_CONTEXT);
    EMUT_CHECK(cuEventRecord(g.copied, other.copy) == CUDA_ERROR_INVALID_HANDLE);
    EMUT_CHECK(cuEventRecord(g.copied, g.copy) == CUDA_ERROR_INVALID_CONTEXT);
    EMUT_MUST(cuCtxSetCurrent(g.context));
    EMUT_MUST(cuMemsetD8Async(g.a, 3, EMUT_BYTES, g.copy));
    EMUT_MUST(cuEventRecord(g.copied, g.copy));
    EMUT_MUST(cuCtxSetCurrent(other.context));
    EMUT_MUST(cuStreamWaitEvent(other.compute, g.copied, 0)); /* events order streams of different GPUs */
    EMUT_MUST(cuStreamSynchronize(other.compute));
    EMUT_MUST(cuEventQuery(g.copied)); /* so this thread knows */
    emut_close(&other);
    emut_close(&g);
}

static void visible(void)
{
    int n;
    char name[64];
    EMUT_MUST(cuInit(0));
    EMUT_MUST(cuDeviceGetCount(&n));
    EMUT_CHECK(n == 2);
    EMUT_MUST(cuDeviceGetName(name, sizeof name, 0));
    EMUT_CHECK(strcmp(name, "emulated GPU 3") == 0);
}

static void nothing_visible(void) { EMUT_CHECK(cuInit(0) == CUDA_ERROR_NO_DEVICE); }

static void pageable(void)
{
    unsigned char in[EMUT_BYTES], out[EMUT_BYTES] = {0};
    memset(in, 9, sizeof in);
    emut_open(&g, 0);
    EMUT_MUST(cuMemcpyHtoDAsync(g.a, in, sizeof in, g.copy));
    memset(in, 1, sizeof in); /* was read before the call returned */
    EMUT_MUST(cuMemcpyDtoHAsync(out, g.a, sizeof out, g.copy));
    EMUT_CHECK(out[0] == 9 && out[EMUT_BYTES - 1] == 9);
    emut_close(&g);
}

static void ends_well(void (*program)(void), const char *settings)
{
    char text[2048];
    const int status = emut_run(program, settings, text, sizeof text);
    if (status != 0) fprintf(stderr, "%s: status %d: %s\n", settings, status, text);
    MRT_EQ(status, 0);
}

static void test_errors(void **state)
{
    (void)state;
    ends_well(arguments, "MILLRACE_EMU_DEVICES=2 MILLRACE_EMU_MEMORY=0x100000");
    ends_well(events, "MILLRACE_EMU_ORDER=late");
    ends_well(contexts, "MILLRACE_EMU_DEVICES=2");
    ends_well(visible, "MILLRACE_EMU_DEVICES=4 CUDA_VISIBLE_DEVICES=3,0,9,1");
    ends_well(nothing_visible, "MILLRACE_EMU_DEVICES=4 CUDA_VISIBLE_DEVICES=");
    ends_well(nothing_visible, "MILLRACE_EMU_DEVICES=4 CUDA_VISIBLE_DEVICES=1,1");
    ends_well(nothing_visible, "MILLRACE_EMU_DEVICES=0");
    emut_always_fine(pageable, 4);
}

/* ---- hanging ---- */

static void hang_until_given_up(void)
{
    emut_open(&g, 0);
    const CUstream both[] = {g.copy, g.compute};
    const emu_span span = {(void *)g.a, EMUT_BYTES, true};
    EMUT_MUST(
        emu_queue_together(both, 2, "ncclAllReduce", &span, 1, write_inside, NULL, &span.at, sizeof span.at));
    EMUT_MUST(cuEventRecord(g.copied, g.copy));
    for (int i = 0; i < 50; i++) EMUT_CHECK(cuEventQuery(g.copied) == CUDA_ERROR_NOT_READY);
    EMUT_CHECK(cuStreamQuery(g.compute) == CUDA_ERROR_NOT_READY);
    emu_cancel(both, 2, "nccl");
    EMUT_MUST(cuStreamSynchronize(g.compute));
    EMUT_MUST(cuEventSynchronize(g.copied));
    emut_close(&g);
}

static void test_hang(void **state)
{
    (void)state;
    for (int order = 0; order < 4; order++) {
        static const char *const settings[] = {"MILLRACE_EMU_HANG=ncclAllReduce MILLRACE_EMU_ORDER=eager",
                                               "MILLRACE_EMU_HANG=ncclAllReduce MILLRACE_EMU_ORDER=late",
                                               "MILLRACE_EMU_HANG=ncclAllReduce MILLRACE_EMU_ORDER=starve",
                                               "MILLRACE_EMU_HANG=ncclAllReduce MILLRACE_EMU_ORDER=random"};
        ends_well(hang_until_given_up, settings[order]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_violations),
        cmocka_unit_test(test_overrun),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_hang),
    };
    return mrt_run(tests);
}
