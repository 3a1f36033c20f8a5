/* Recording: illegal calls in each mode, forks and their joins, and that each launch repeats the recorded
 * operations. */
#include <pthread.h>

#include "tests/cuda_emu/emut.h"

static struct emut_gpu g;

static void begin(CUstreamCaptureMode mode) { EMUT_MUST(cuStreamBeginCapture(g.compute, mode)); }

static void end_with(CUresult expected)
{
    CUgraph graph = (CUgraph)&g;
    EMUT_CHECK(cuStreamEndCapture(g.compute, &graph) == expected);
    EMUT_CHECK((graph == NULL) == (expected != CUDA_SUCCESS));
    if (graph) EMUT_MUST(cuGraphDestroy(graph));
}

static void launches(void)
{
    CUgraph graph;
    CUgraphExec exec;
    emut_open(&g, 0);
    memset(g.in, 1, EMUT_BYTES);
    begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    EMUT_MUST(cuMemcpyHtoDAsync(g.a, g.in, EMUT_BYTES, g.compute));
    EMUT_MUST(cuMemcpyDtoDAsync(g.b, g.a, EMUT_BYTES, g.compute));
    EMUT_MUST(cuMemcpyDtoHAsync(g.out, g.b, EMUT_BYTES, g.compute));
    EMUT_MUST(cuStreamEndCapture(g.compute, &graph));
    EMUT_MUST(cuGraphInstantiate(&exec, graph, 0));
    EMUT_MUST(cuGraphDestroy(graph)); /* the executable one lives on */
    memset(g.out, 0, EMUT_BYTES);
    EMUT_MUST(cuStreamSynchronize(g.compute));
    EMUT_CHECK(g.out[0] == 0); /* recorded, not run */
    for (unsigned char i = 5; i < 9; i++) {
        memset(g.in, i, EMUT_BYTES);
        EMUT_MUST(cuGraphLaunch(exec, i % 2 ? g.compute : g.copy)); /* launches follow each other on whatever
                                                                       stream */
        EMUT_MUST(cuStreamSynchronize(i % 2 ? g.compute : g.copy));
        EMUT_CHECK(g.out[0] == i && g.out[EMUT_BYTES - 1] == i);
    }
    EMUT_MUST(cuGraphExecDestroy(exec));
    emut_close(&g);
}

static void launch_over_launch(void)
{
    CUgraph graph;
    CUgraphExec exec;
    emut_open(&g, 0);
    begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    EMUT_MUST(cuMemcpyDtoDAsync(g.b, g.a, EMUT_BYTES, g.compute));
    EMUT_MUST(cuStreamEndCapture(g.compute, &graph));
    EMUT_MUST(cuGraphInstantiate(&exec, graph, 0));
    EMUT_MUST(cuGraphLaunch(exec, g.compute));
    EMUT_MUST(cuGraphLaunch(exec, g.copy));
    EMUT_MUST(cuMemsetD8Async(g.b, 0, EMUT_BYTES, g.copy));
    EMUT_MUST(cuStreamSynchronize(g.copy));
    EMUT_MUST(cuGraphExecDestroy(exec));
    EMUT_MUST(cuGraphDestroy(graph));
    emut_close(&g);
}

static void fork_and_join(void)
{
    emut_open(&g, 0);
    begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    EMUT_MUST(cuMemsetD8Async(g.a, 1, EMUT_BYTES, g.compute));
    EMUT_MUST(cuEventRecord(g.used, g.compute));
    EMUT_MUST(cuStreamWaitEvent(g.copy, g.used, 0));
    EMUT_MUST(cuMemcpyDtoDAsync(g.b, g.a, EMUT_BYTES, g.copy));
    EMUT_MUST(cuEventRecord(g.copied, g.copy));
    EMUT_MUST(cuStreamWaitEvent(g.compute, g.copied, 0));
    end_with(CUDA_SUCCESS);
    begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL); /* the same without the join */
    EMUT_MUST(cuEventRecord(g.used, g.compute));
    EMUT_MUST(cuStreamWaitEvent(g.copy, g.used, 0));
    EMUT_MUST(cuMemsetD8Async(g.b, 1, EMUT_BYTES, g.copy));
    CUgraph graph;
    EMUT_CHECK(cuStreamEndCapture(g.copy, &graph) == CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    end_with(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    EMUT_MUST(cuEventRecord(g.used, g.compute));
    EMUT_MUST(cuStreamWaitEvent(g.copy, g.used, 0));
    EMUT_MUST(cuMemsetD8Async(g.b, 1, EMUT_BYTES, g.copy));
    end_with(CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    /* events of a recording mean nothing to the host until recorded again */
    EMUT_CHECK(cuEventQuery(g.used) == CUDA_ERROR_CAPTURED_EVENT);
    EMUT_MUST(cuEventRecord(g.used, g.compute));
    EMUT_MUST(cuEventSynchronize(g.used));
    emut_close(&g);
}

static void race_in_graph(void)
{
    emut_open(&g, 0);
    begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    EMUT_MUST(cuEventRecord(g.used, g.compute));
    EMUT_MUST(cuStreamWaitEvent(g.copy, g.used, 0));
    EMUT_MUST(cuMemcpyDtoDAsync(g.b, g.a, EMUT_BYTES, g.copy));
    EMUT_MUST(cuMemsetD8Async(g.a, 1, EMUT_BYTES, g.compute)); /* the copy reads it */
}

static void wait_across(void)
{
    emut_open(&g, 0);
    EMUT_MUST(cuMemsetD8Async(g.a, 1, EMUT_BYTES, g.copy));
    EMUT_MUST(cuEventRecord(g.copied, g.copy));
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    EMUT_CHECK(cuStreamWaitEvent(g.compute, g.copied, 0) == CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    EMUT_CHECK(cuMemsetD8Async(g.b, 1, EMUT_BYTES, g.compute) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    end_with(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EMUT_CHECK(cuStreamEndCapture(g.compute, (CUgraph[]){NULL}) == CUDA_ERROR_ILLEGAL_STATE);
    emut_close(&g);
}

static void waiting_for_the_recorded(void)
{
    emut_open(&g, 0);
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    EMUT_CHECK(cuStreamBeginCapture(g.compute, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_ERROR_ILLEGAL_STATE);
    EMUT_CHECK(cuStreamSynchronize(g.compute) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    end_with(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    EMUT_CHECK(cuStreamQuery(g.compute) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    end_with(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    CUdeviceptr p;
    EMUT_CHECK(cuMemAllocFromPoolAsync(&p, 64, g.pool, g.compute) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    end_with(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    emut_close(&g);
}

static void *pin_and_free(void *result)
{
    void *p;
    EMUT_MUST(cuCtxSetCurrent(g.context));
    const CUresult rc = cuMemHostAlloc(&p, 64, 0);
    if (rc == CUDA_SUCCESS) EMUT_MUST(cuMemFreeHost(p));
    *(CUresult *)result = rc;
    return NULL;
}

static CUresult from_other_thread(void)
{
    pthread_t thread;
    CUresult rc = CUDA_ERROR_UNKNOWN;
    EMUT_CHECK(pthread_create(&thread, NULL, pin_and_free, &rc) == 0);
    pthread_join(thread, NULL);
    return rc;
}

static void modes(void)
{
    CUresult rc;
    emut_open(&g, 0);
    begin(CU_STREAM_CAPTURE_MODE_GLOBAL); /* nobody may */
    EMUT_CHECK(from_other_thread() == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    end_with(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL); /* others may */
    EMUT_CHECK(from_other_thread() == CUDA_SUCCESS);
    EMUT_MUST(cuMemsetD8Async(g.b, 1, EMUT_BYTES, g.compute));
    pin_and_free(&rc); /* this one may not */
    EMUT_CHECK(rc == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    end_with(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    begin(CU_STREAM_CAPTURE_MODE_RELAXED); /* all may */
    pin_and_free(&rc);
    EMUT_CHECK(rc == CUDA_SUCCESS && from_other_thread() == CUDA_SUCCESS);
    end_with(CUDA_SUCCESS);
    emut_close(&g);
}

static void test_launches(void **state)
{
    (void)state;
    emut_always_fine(launches, 75);
    emut_always_fine(launch_over_launch, 75);
}

static void test_recording_rules(void **state)
{
    (void)state;
    emut_always_fine(fork_and_join, 4);
    emut_always_fine(wait_across, 4);
    emut_always_fine(waiting_for_the_recorded, 4);
    emut_always_fine(modes, 4);
    emut_always_caught(race_in_graph, "cuMemsetD8Async (#", "cuMemcpyDtoDAsync are recorded");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_launches),
        cmocka_unit_test(test_recording_rules),
    };
    return mrt_run(tests);
}
