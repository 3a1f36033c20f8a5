/* kernels/cuda: sums and broadcasts between GPUs, refusals of a group, and giving up. */
#include <pthread.h>

#include "tests/cuda/rig.h"

static uint32_t gpus;

enum { COUNT = 1003 };

struct group_rig {
    struct rig r;
    mr_group *group;
    float *values[RIG_MAX_DEVICES], *host[RIG_MAX_DEVICES];
};

static void group_rig_open(struct group_rig *g, uint32_t count)
{
    mr_error err = MR_ERROR_INIT;
    rig_open(&g->r, count);
    MRT_OK(mr_group_create(&g->group, g->r.compute, count, &err), &err);
    for (uint32_t d = 0; d < count; d++) {
        g->values[d] = rig_memory(&g->r, d, COUNT * sizeof(float));
        g->host[d] = rig_pinned(&g->r, COUNT * sizeof(float));
    }
}

static void group_rig_close(struct group_rig *g)
{
    for (uint32_t d = 0; d < g->r.count; d++) mr_stream_sync(g->r.compute[d], NULL);
    mr_group_destroy(g->group);
    for (uint32_t d = 0; d < g->r.count; d++) {
        mr_device_free(g->r.devices[d], g->values[d]);
        mr_host_free(g->r.devices[0], g->host[d]);
    }
    rig_close(&g->r);
}

static void sums_and_broadcasts(void **state)
{
    (void)state;
    for (uint32_t count = 1; count <= gpus; count++) {
        struct group_rig g;
        mr_error err = MR_ERROR_INIT;
        group_rig_open(&g, count);
        for (uint32_t d = 0; d < count; d++) {
            for (int i = 0; i < COUNT; i++) g.host[d][i] = (float)(i + 1) * (float)(d + 1);
            MRT_OK(mr_copy_h2d_async(g.r.compute[d], g.values[d], g.host[d], COUNT * sizeof(float)), NULL);
        }
        MRT_OK(mr_group_sum_async(g.group, g.values, COUNT), NULL);
        for (uint32_t d = 0; d < count; d++)
            MRT_OK(mr_copy_d2h_async(g.r.compute[d], g.host[d], g.values[d], COUNT * sizeof(float)), NULL);
        const float all = (float)(count * (count + 1) / 2);
        for (uint32_t d = 0; d < count; d++) {
            MRT_OK(mr_stream_sync(g.r.compute[d], &err), &err);
            for (int i = 0; i < COUNT; i++)
                MRT_TRUE(g.host[d][i] == (float)(i + 1) * all); /* small whole numbers: exact */
            for (int i = 0; i < COUNT; i++) g.host[d][i] = (float)d;
            MRT_OK(mr_copy_h2d_async(g.r.compute[d], g.values[d], g.host[d], COUNT * sizeof(float)), NULL);
        }
        MRT_OK(mr_group_broadcast_async(g.group, g.values, COUNT, count - 1), NULL);
        for (uint32_t d = 0; d < count; d++)
            MRT_OK(mr_copy_d2h_async(g.r.compute[d], g.host[d], g.values[d], COUNT * sizeof(float)), NULL);
        for (uint32_t d = 0; d < count; d++) {
            MRT_OK(mr_stream_sync(g.r.compute[d], &err), &err);
            MRT_TRUE(g.host[d][0] == (float)(count - 1) && g.host[d][COUNT - 1] == (float)(count - 1));
        }
        group_rig_close(&g);
    }
}

static void one_gpu_once(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_device **devices;
    uint32_t count;
    mr_stream *streams[2];
    mr_group *group = (mr_group *)&err; /* poison */
    MRT_OK(mr_devices_open(&devices, &count, "cuda:0,0", NULL, &err), &err);
    for (int i = 0; i < 2; i++)
        MRT_OK(mr_stream_create(&streams[i], devices[i], MR_STREAM_EXCHANGE, &err), &err);
    MRT_EQ(mr_group_create(&group, streams, 2, &err), MR_EUNSUPPORTED);
    MRT_TRUE(group == NULL);
    MRT_HAS(err.text, "same GPU");
    for (int i = 0; i < 2; i++) mr_stream_destroy(streams[i]);
    mr_devices_close(devices, count);
}

/* Two groups over the same GPUs, on streams of their own. */
static void groups_side_by_side(void **state)
{
    (void)state;
    if (gpus < 2) return;
    struct group_rig g;
    mr_error err = MR_ERROR_INIT;
    mr_stream *exchange[2];
    mr_group *second;
    float *more[2];
    group_rig_open(&g, 2);
    for (uint32_t d = 0; d < 2; d++) {
        MRT_OK(mr_stream_create(&exchange[d], g.r.devices[d], MR_STREAM_EXCHANGE, &err), &err);
        more[d] = rig_memory(&g.r, d, COUNT * sizeof(float));
        MRT_OK(mr_fill_async(exchange[d], more[d], 0, COUNT * sizeof(float)), NULL);
        MRT_OK(mr_fill_async(g.r.compute[d], g.values[d], 0, COUNT * sizeof(float)), NULL);
    }
    MRT_OK(mr_group_create(&second, exchange, 2, &err), &err);
    for (int i = 0; i < 3; i++) {
        MRT_OK(mr_group_sum_async(second, more, COUNT), NULL);
        MRT_OK(mr_group_sum_async(g.group, g.values, COUNT), NULL);
    }
    for (uint32_t d = 0; d < 2; d++) {
        MRT_OK(mr_stream_sync(exchange[d], &err), &err);
        MRT_OK(mr_stream_sync(g.r.compute[d], &err), &err);
    }
    mr_group_destroy(second);
    for (uint32_t d = 0; d < 2; d++) {
        mr_stream_destroy(exchange[d]);
        mr_device_free(g.r.devices[d], more[d]);
    }
    group_rig_close(&g);
}

static void an_aborted_group_stays_so(void **state)
{
    (void)state;
    if (gpus < 2) return;
    struct group_rig g;
    mr_error err = MR_ERROR_INIT;
    group_rig_open(&g, gpus);
    mr_group_abort(NULL);
    mr_group_abort(g.group);
    mr_group_abort(g.group);
    MRT_EQ(mr_group_sum_async(g.group, g.values, COUNT), MR_EDEVICE);
    for (uint32_t d = 0; d < gpus; d++) {
        MRT_EQ(mr_stream_sync(g.r.compute[d], &err), MR_EDEVICE);
        MRT_HAS(err.text, "given up");
        MRT_EQ(mr_fill_async(g.r.compute[d], g.values[d], 0, 4), MR_EDEVICE);
    }
    group_rig_close(&g);
}

static void recording_takes_no_exchange(void **state)
{
    (void)state;
    if (gpus < 2) return;
    struct group_rig g;
    mr_error err = MR_ERROR_INIT;
    mr_graph *graph;
    group_rig_open(&g, 2);
    MRT_OK(mr_graph_begin(g.r.compute[1]), NULL);
    MRT_EQ(mr_group_sum_async(g.group, g.values, COUNT), MR_EINVAL);
    MRT_OK(mr_graph_end(g.r.compute[1], &graph, &err), &err);
    mr_graph_destroy(graph);
    MRT_OK(mr_stream_sync(g.r.compute[0], &err), &err);
    group_rig_close(&g);
}

/* Run with MILLRACE_EMU_HANG=ncclAllReduce: a sum that never ends. A wait with a limit comes back, another
 * thread gives up, and the thread that waited without a limit gets the error. */
static void *abort_soon(void *group)
{
    const struct timespec t = {0, 20000000};
    nanosleep(&t, NULL);
    mr_group_abort(group);
    return NULL;
}

static void giving_up_frees_those_who_wait(void **state)
{
    (void)state;
    struct group_rig g;
    mr_error err = MR_ERROR_INIT;
    mr_event *e;
    pthread_t thread;
    group_rig_open(&g, gpus);
    MRT_OK(mr_event_create(&e, g.r.devices[0], &err), &err);
    for (uint32_t d = 0; d < gpus; d++)
        MRT_OK(mr_fill_async(g.r.compute[d], g.values[d], 0, COUNT * sizeof(float)), NULL);
    MRT_OK(mr_group_sum_async(g.group, g.values, COUNT), NULL);
    MRT_OK(mr_event_record(e, g.r.compute[0]), NULL);
    MRT_EQ(mr_event_wait(e, 5000000, &err), MR_EAGAIN);
    MRT_EQ(pthread_create(&thread, NULL, abort_soon, g.group), 0);
    MRT_EQ(mr_event_sync(e, &err), MR_EDEVICE);
    MRT_HAS(err.text, "given up");
    MRT_EQ(mr_stream_sync(g.r.compute[1], &err), MR_EDEVICE);
    MRT_EQ(pthread_join(thread, NULL), 0);
    mr_event_destroy(e);
    group_rig_close(&g);
}

int main(void)
{
    gpus = cuda_or_skip();
    if (getenv("MILLRACE_EMU_HANG")) {
        const struct CMUnitTest hanging[] = {cmocka_unit_test(giving_up_frees_those_who_wait)};
        return mrt_run(hanging);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_and_broadcasts),         cmocka_unit_test(one_gpu_once),
        cmocka_unit_test(groups_side_by_side),         cmocka_unit_test(an_aborted_group_stays_so),
        cmocka_unit_test(recording_takes_no_exchange),
    };
    return mrt_run(tests);
}
