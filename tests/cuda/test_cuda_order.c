/* kernels/cuda: streams ordered by events, the time events tell, graphs. On emulated GPUs the schedule is
 * adversarial and every access is checked against the order asked for, so that a wait that is missing here or
 * in the device is seen. */
#include "tests/cuda/rig.h"

static uint32_t gpus;

/* A value hops over the streams of all GPUs, through pinned memory: each link waits for the event of the one
 * before. Events are few, so that most are recorded again while somebody still waits for the mark they had
 * earlier. */
static void events_order_streams(void **state)
{
    (void)state;
    enum { LINKS = 60, COUNT = 257 };
    struct rig r;
    rig_open(&r, gpus);
    mr_error err = MR_ERROR_INIT;
    mr_event *events[RIG_MAX_DEVICES][2];
    uint8_t *memory[RIG_MAX_DEVICES], *host = rig_pinned(&r, COUNT), random[LINKS];
    for (uint32_t d = 0; d < gpus; d++) {
        memory[d] = rig_memory(&r, d, COUNT);
        for (int k = 0; k < 2; k++) MRT_OK(mr_event_create(&events[d][k], r.devices[d], &err), &err);
    }
    mrt_noise(random, sizeof random, 7);
    mr_event *last = NULL;
    memset(host, 0, COUNT);
    for (int i = 0; i < LINKS; i++) {
        const uint32_t d = random[i] % gpus;
        mr_stream *s = random[i] & 64 ? r.compute[d] : r.copy[d];
        if (last) MRT_OK(mr_stream_wait_event(s, last), NULL);
        MRT_OK(mr_copy_h2d_async(s, memory[d], host, COUNT), NULL); /* the bytes of the link before */
        MRT_OK(mr_fill_async(s, memory[d] + i, (uint8_t)(i + 1), 1), NULL);
        MRT_OK(mr_copy_d2h_async(s, host, memory[d], COUNT), NULL);
        last = events[d][random[i] & 64 ? 1 : 0];
        MRT_OK(mr_event_record(last, s), NULL);
    }
    MRT_OK(mr_event_sync(last, &err), &err);
    for (int i = 0; i < LINKS; i++) MRT_EQ(host[i], i + 1);
    for (uint32_t d = 0; d < gpus; d++) {
        mr_stream_sync(r.compute[d], NULL);
        mr_stream_sync(r.copy[d], NULL);
        for (int k = 0; k < 2; k++) mr_event_destroy(events[d][k]);
        mr_device_free(r.devices[d], memory[d]);
    }
    mr_host_free(r.devices[0], host);
    rig_close(&r);
}

static void an_event_never_recorded_is_over(void **state)
{
    (void)state;
    struct rig r;
    rig_open(&r, gpus);
    mr_error err = MR_ERROR_INIT;
    mr_event *e;
    uint64_t ns;
    MRT_OK(mr_event_create(&e, r.devices[0], &err), &err);
    MRT_EQ(mr_event_query(e), MR_OK);
    MRT_OK(mr_event_wait(e, 0, &err), &err);
    MRT_OK(mr_event_sync(e, &err), &err);
    MRT_OK(mr_stream_wait_event(r.compute[0], e), NULL);
    MRT_EQ(mr_event_time_ns(e, &ns), MR_EAGAIN);
    if (gpus > 1) MRT_EQ(mr_event_record(e, r.compute[1]), MR_EINVAL); /* of another GPU */
    MRT_OK(mr_stream_sync(r.compute[0], &err), &err);
    mr_event_destroy(e);
    rig_close(&r);
}

/* Times grow along a stream and lie between the host's before and after, also across renewed anchors. */
static void events_tell_time(void **state)
{
    (void)state;
    enum { EVENTS = 24, BYTES = 1000, SLACK_NS = 50000 }; /* the clocks are aligned to some microseconds */
    struct rig r;
    rig_open(&r, 1);
    mri_cuda_device *dev = mri_cuda_device_of(r.devices[0]);
    mr_error err = MR_ERROR_INIT;
    mr_event *events[EVENTS];
    uint8_t *memory = rig_memory(&r, 0, BYTES);
    for (int i = 0; i < EVENTS; i++) MRT_OK(mr_event_create(&events[i], r.devices[0], &err), &err);
    const uint64_t before = mri_now_ns();
    for (int i = 0; i < EVENTS; i++) {
        if (i % 3 == 2)
            dev->anchored_ns = 0; /* as if a second had passed: the next record queues a new anchor */
        MRT_OK(mr_fill_async(r.compute[0], memory, (uint8_t)i, BYTES), NULL);
        MRT_OK(mr_event_record(events[i], r.compute[0]), NULL);
        if (i % 5 == 4) MRT_OK(mr_event_sync(events[i], &err), &err);
        if (i % 4 == 3)
            mr_device_free(r.devices[0], rig_memory(&r, 0, 10)); /* waits for the house stream, and so for the
                                                                    anchor */
    }
    MRT_OK(mr_stream_sync(r.compute[0], &err), &err);
    const uint64_t after = mri_now_ns();
    uint64_t last = before - SLACK_NS, ns, again;
    for (int i = 0; i < EVENTS; i++) {
        MRT_OK(mr_event_time_ns(events[i], &ns), NULL);
        MRT_TRUE(ns >= last);
        last = ns;
    }
    MRT_TRUE(last <= after + SLACK_NS);
    MRT_TRUE(dev->anchors.count > 1);
    MRT_OK(mr_event_time_ns(events[EVENTS - 1], &again), NULL);
    MRT_EQ(again, last);
    mr_stream_destroy(r.compute[0]); /* an event outlives the stream it was recorded on */
    r.compute[0] = NULL;
    MRT_EQ(mr_event_query(events[3]), MR_OK);
    MRT_OK(mr_event_time_ns(events[EVENTS - 1], &again), NULL);
    MRT_EQ(again, last);
    for (int i = 0; i < EVENTS; i++) mr_event_destroy(events[i]);
    mr_device_free(r.devices[0], memory);
    rig_close(&r);
}

static void waits_have_limits(void **state)
{
    (void)state;
    struct rig r;
    rig_open(&r, 1);
    mr_error err = MR_ERROR_INIT;
    mr_event *e;
    uint8_t *memory = rig_memory(&r, 0, 100);
    MRT_OK(mr_event_create(&e, r.devices[0], &err), &err);
    MRT_OK(mr_fill_async(r.copy[0], memory, 1, 100), NULL);
    MRT_OK(mr_event_record(e, r.copy[0]), NULL);
    const int now = mr_event_query(e);
    MRT_TRUE(now == MR_OK || now == MR_EAGAIN);
    const int soon = mr_event_wait(e, 0, &err);
    MRT_TRUE(soon == MR_OK || soon == MR_EAGAIN);
    MRT_OK(mr_event_wait(e, 60000000000u, &err), &err);
    MRT_EQ(mr_event_query(e), MR_OK);
    MRT_OK(mr_stream_sync(r.copy[0], &err), &err);
    mr_event_destroy(e);
    mr_device_free(r.devices[0], memory);
    rig_close(&r);
}

/* ---- graphs ---- */

struct graph_rig {
    struct rig r;
    uint8_t *a, *b, *host;
};
enum { GRAPH_BYTES = 513 };

static void graph_rig_open(struct graph_rig *g)
{
    rig_open(&g->r, 1);
    g->a = rig_memory(&g->r, 0, GRAPH_BYTES);
    g->b = rig_memory(&g->r, 0, GRAPH_BYTES);
    g->host = rig_pinned(&g->r, GRAPH_BYTES);
}

static void graph_rig_close(struct graph_rig *g)
{
    mr_device_free(g->r.devices[0], g->a);
    mr_device_free(g->r.devices[0], g->b);
    mr_host_free(g->r.devices[0], g->host);
    rig_close(&g->r);
}

static void graphs_repeat_with_new_contents(void **state)
{
    (void)state;
    struct graph_rig g;
    graph_rig_open(&g);
    mr_stream *s = g.r.compute[0];
    mr_error err = MR_ERROR_INIT;
    mr_graph *graph;
    MRT_OK(mr_fill_async(s, g.a, 0, GRAPH_BYTES), NULL);
    MRT_OK(mr_fill_async(s, g.b, 0, GRAPH_BYTES), NULL);
    MRT_OK(mr_graph_begin(s), NULL);
    MRT_OK(mr_copy_d2d_async(s, g.b, g.a, GRAPH_BYTES - 1), NULL);
    MRT_OK(mr_fill_async(s, g.b + GRAPH_BYTES - 1, 0xEE, 1), NULL);
    MRT_OK(mr_graph_end(s, &graph, &err), &err);
    for (int round = 1; round <= 5; round++) {
        memset(g.host, round, GRAPH_BYTES);
        MRT_OK(mr_copy_h2d_async(s, g.a, g.host, GRAPH_BYTES), NULL);
        if (round > 1) MRT_OK(mr_graph_launch_async(graph, s), NULL); /* recording alone ran nothing */
        MRT_OK(mr_copy_d2h_async(s, g.host, g.b, GRAPH_BYTES), NULL);
        MRT_OK(mr_stream_sync(s, &err), &err);
        MRT_EQ(g.host[0], round > 1 ? round : 0);
        MRT_EQ(g.host[GRAPH_BYTES - 2], round > 1 ? round : 0);
        MRT_EQ(g.host[GRAPH_BYTES - 1], round > 1 ? 0xEE : 0);
    }
    MRT_OK(mr_graph_launch_async(graph, s), NULL); /* twice in a row, and on another stream */
    MRT_OK(mr_graph_launch_async(graph, s), NULL);
    MRT_OK(mr_stream_sync(s, &err), &err);
    MRT_OK(mr_graph_launch_async(graph, g.r.copy[0]), NULL);
    MRT_OK(mr_stream_sync(g.r.copy[0], &err), &err);
    mr_graph_destroy(graph);
    mr_graph_destroy(NULL);
    graph_rig_close(&g);
}

/* What cannot be recorded is refused there and then, reported at the end, and leaves stream and device
 * well. */
static void a_failed_recording_does_no_harm(void **state)
{
    (void)state;
    struct graph_rig g;
    graph_rig_open(&g);
    mr_stream *s = g.r.compute[0];
    mr_error err = MR_ERROR_INIT;
    mr_event *e;
    MRT_OK(mr_event_create(&e, g.r.devices[0], &err), &err);
    for (int way = 0; way < 6; way++) {
        mr_graph *graph = (mr_graph *)&err; /* poison */
        const char *what = NULL;
        MRT_OK(mr_graph_begin(s), NULL);
        MRT_EQ(mr_graph_begin(s), MR_EINVAL);
        MRT_OK(mr_fill_async(s, g.a, 1, GRAPH_BYTES), NULL);
        switch (way) {
        case 0:
            MRT_EQ(mr_copy_h2d_async(s, g.a, g.host, GRAPH_BYTES), MR_EINVAL), what = "copy to the device";
            break;
        case 1:
            MRT_EQ(mr_copy_d2h_async(s, g.host, g.a, GRAPH_BYTES), MR_EINVAL), what = "copy from the device";
            break;
        case 2: MRT_EQ(mr_event_record(e, s), MR_EINVAL), what = "an event"; break;
        case 3: MRT_EQ(mr_stream_wait_event(s, e), MR_EINVAL), what = "waiting for an event"; break;
        default: break;
        }
        if (way == 4) {
            MRT_EQ(mr_stream_sync(s, &err), MR_EINVAL);
            MRT_HAS(err.text, "cannot be recorded");
        }
        MRT_OK(mr_fill_async(s, g.b, 2, GRAPH_BYTES), NULL);
        const int rc = mr_graph_end(s, &graph, &err);
        MRT_EQ(rc, what ? MR_EINVAL : MR_OK);
        if (what) {
            MRT_TRUE(graph == NULL);
            MRT_HAS(err.text, what);
            MRT_HAS(err.text, "cannot be recorded");
        }
        mr_graph_destroy(graph);
        MRT_OK(mr_fill_async(s, g.a, 3, GRAPH_BYTES), NULL);
        MRT_OK(mr_copy_d2h_async(s, g.host, g.a, GRAPH_BYTES), NULL);
        MRT_OK(mr_stream_sync(s, &err), &err);
        MRT_EQ(g.host[17], 3);
    }
    mr_graph *graph = (mr_graph *)&err;
    MRT_EQ(mr_graph_end(s, &graph, &err), MR_EINVAL);
    MRT_TRUE(graph == NULL);
    MRT_HAS(err.text, "nothing is being recorded");
    MRT_OK(mr_graph_begin(s), NULL); /* and a stream may go while it records */
    mr_event_destroy(e);
    graph_rig_close(&g);
}

/* Other streams, allocations and events go on while one records. */
static void recording_stops_nobody_else(void **state)
{
    (void)state;
    struct graph_rig g;
    graph_rig_open(&g);
    mr_stream *s = g.r.compute[0], *other = g.r.copy[0];
    mr_error err = MR_ERROR_INIT;
    mr_event *e;
    mr_graph *graph;
    MRT_OK(mr_graph_begin(s), NULL);
    MRT_OK(mr_event_create(&e, g.r.devices[0], &err), &err);
    uint8_t *more = rig_memory(&g.r, 0, 100);
    MRT_OK(mr_fill_async(s, g.a, 9, GRAPH_BYTES), NULL);
    MRT_OK(mr_fill_async(other, more, 4, 100), NULL);
    MRT_OK(mr_copy_d2h_async(other, g.host, more, 100), NULL);
    mri_cuda_device_of(g.r.devices[0])->anchored_ns = 0;
    MRT_OK(mr_event_record(e, other), NULL);
    MRT_OK(mr_event_sync(e, &err), &err);
    MRT_EQ(g.host[99], 4);
    mr_device_free(g.r.devices[0], more);
    MRT_OK(mr_graph_end(s, &graph, &err), &err);
    MRT_OK(mr_graph_launch_async(graph, s), NULL);
    MRT_OK(mr_stream_sync(s, &err), &err);
    mr_graph_destroy(graph);
    mr_event_destroy(e);
    graph_rig_close(&g);
}

int main(void)
{
    gpus = cuda_or_skip();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_order_streams),
        cmocka_unit_test(an_event_never_recorded_is_over),
        cmocka_unit_test(events_tell_time),
        cmocka_unit_test(waits_have_limits),
        cmocka_unit_test(graphs_repeat_with_new_contents),
        cmocka_unit_test(a_failed_recording_does_no_harm),
        cmocka_unit_test(recording_stops_nobody_else),
    };
    return mrt_run(tests);
}
