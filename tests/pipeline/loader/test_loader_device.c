/* Staging against a device that is slow to compute: a step reads its batch late, long after it was released.
 * What holds then: a device slot is not written before the step that uses it is over, a host slot not before
 * its copy is over (I8), and copies run while steps compute (I9).
 *
 * A step is, on the compute stream of a simulated device: a long transfer, then a copy of the batch back to
 * the host. */
#include "base/util.h"
#include "tests/gate.h"
#include "tests/pipeline/sets.h"

#define SIDE       8
#define BYTES      (SIDE * SIDE)
#define BATCH      8
#define STEPS      24
#define SLOW_BYTES 500000 /* 5 ms at 100 MB/s */

typedef struct bench {
    mr_source *src;
    mr_device **devices;
    uint32_t count;
    mr_stream *compute;
    uint8_t *sink, *seen; /* pinned */
    void *slow;           /* device memory of SLOW_BYTES */
    mr_event *over[STEPS];
} bench;

static void bench_open(bench *t, const char *spec)
{
    mr_error err = MR_ERROR_INIT;
    *t = (bench){.src = mrt_source(mrt_idx_set("slow", BATCH * STEPS / 2, SIDE, SIDE))};
    MRT_OK(mr_devices_open(&t->devices, &t->count, spec, NULL, &err), &err);
    mr_device *d = t->devices[0];
    MRT_OK(mr_stream_create(&t->compute, d, MR_STREAM_COMPUTE, &err), &err);
    MRT_OK(mr_host_alloc(d, SLOW_BYTES, (void **)&t->sink, &err), &err);
    MRT_OK(mr_host_alloc(d, (size_t)STEPS * BATCH * BYTES, (void **)&t->seen, &err), &err);
    MRT_OK(mr_device_alloc(d, SLOW_BYTES, &t->slow, &err), &err);
    MRT_OK(mr_fill_async(t->compute, t->slow, 1, SLOW_BYTES), NULL);
    for (int i = 0; i < STEPS; i++) MRT_OK(mr_event_create(&t->over[i], d, &err), &err);
}

static void bench_close(bench *t)
{
    mr_stream_destroy(t->compute); /* finishes what uses the rest */
    for (int i = 0; i < STEPS; i++) mr_event_destroy(t->over[i]);
    mr_device_free(t->devices[0], t->slow);
    mr_host_free(t->devices[0], t->seen);
    mr_host_free(t->devices[0], t->sink);
    mr_devices_close(t->devices, t->count);
    mr_source_close(t->src);
}

static mr_loader *open_loader(const bench *t, uint32_t prefetch, mr_trace *trace)
{
    mr_loader_config cfg;
    mr_error err = MR_ERROR_INIT;
    mr_loader *l;
    mr_loader_defaults(&cfg);
    cfg.batch = BATCH;
    cfg.epochs = 2;
    cfg.order = MR_ORDER_SEQUENTIAL;
    cfg.workers = 2;
    cfg.prefetch = prefetch;
    cfg.devices = t->devices;
    cfg.device_count = 1;
    cfg.trace = trace;
    MRT_OK(mr_loader_open(&l, t->src, &cfg, &err), &err);
    return l;
}

static void queue_step(bench *t, const mr_batch *b)
{
    MRT_OK(mr_stream_wait_event(t->compute, b->parts[0].ready), NULL);
    MRT_OK(mr_copy_d2h_async(t->compute, t->sink, t->slow, SLOW_BYTES), NULL);
    MRT_OK(mr_copy_d2h_async(t->compute, t->seen + b->global_step * BATCH * BYTES, b->parts[0].pixels,
                             BATCH * BYTES),
           NULL);
    MRT_OK(mr_event_record(t->over[b->global_step], t->compute), NULL);
}

static void run(bench *t, mr_loader *l)
{
    mr_error err = MR_ERROR_INIT;
    mr_batch b;
    int rc;
    while ((rc = mr_loader_next(l, &b, MR_FOREVER, &err)) == MR_OK) {
        queue_step(t, &b);
        MRT_OK(mr_loader_release(l, &b, &t->compute), NULL);
        if (mr_loader_info_of(l)->prefetch == 0)
            MRT_EQ(mr_event_query(t->over[b.global_step]), MR_OK); /* in series */
    }
    MRT_EQ(rc, MR_EEND);
    MRT_OK(mr_stream_sync(t->compute, &err), &err);
}

static void late_steps_see_their_batch(void **state)
{
    (void)state;
    const uint32_t prefetch[] = {0, 1, 2, 5};
    for (size_t p = 0; p < MRI_ARRAY_COUNT(prefetch); p++) {
        bench t;
        bench_open(&t, "sim:1,step=1us,h2d=10GB/s,d2h=100MB/s");
        mr_loader *l = open_loader(&t, prefetch[p], NULL);
        memset(t.seen, 0, (size_t)STEPS * BATCH * BYTES);
        run(&t, l);
        for (uint64_t i = 0; i < STEPS * BATCH; i++)
            for (size_t k = 0; k < BYTES; k++)
                MRT_EQ(t.seen[i * BYTES + k], mrt_idx_pixel(i % (BATCH * STEPS / 2), k));
        mr_loader_close(l);
        bench_close(&t);
    }
}

/* The same with each step waiting at a gate, which opens when the copy of the next batch is over: a loader
 * whose copies wait for steps never gets there. */
static void run_gated(bench *t, mr_loader *l)
{
    static mrt_gate gate[STEPS];
    const uint64_t patience = mrt_seconds(60) * UINT64_C(1000000000);
    mr_error err = MR_ERROR_INIT;
    mr_batch b;
    for (int i = 0; i < STEPS; i++) {
        MRT_OK(mr_loader_next(l, &b, patience, &err), &err);
        MRT_EQ(b.global_step, i);
        MRT_OK(mr_event_wait(b.parts[0].ready, patience, &err), &err);
        if (i > 0) mrt_gate_open(&gate[i - 1]);
        mrt_gate_push(&gate[i], t->compute);
        queue_step(t, &b);
        MRT_OK(mr_loader_release(l, &b, &t->compute), NULL);
    }
    mrt_gate_open(&gate[STEPS - 1]);
    MRT_EQ(mr_loader_next(l, &b, MR_FOREVER, &err), MR_EEND);
    MRT_OK(mr_stream_sync(t->compute, &err), &err);
}

/* From the events' own times: with prefetch on the copy of a batch starts before the step before it is over,
 * with prefetch off never. */
static uint32_t overlapping(uint32_t prefetch)
{
    bench t;
    mr_trace *trace;
    mr_trace_entry *e;
    size_t n;
    uint32_t overlaps = 0, copies = 0;
    bench_open(&t, "sim:1,step=1us,h2d=10GB/s,d2h=100MB/s");
    MRT_EQ(mr_trace_create(&trace, 4096), MR_OK);
    mr_loader *l = open_loader(&t, prefetch, trace);
    if (prefetch) run_gated(&t, l);
    else run(&t, l);
    mr_loader_close(l);
    MRT_EQ(mr_trace_entries(trace, &e, &n), MR_OK);
    for (size_t i = 0; i < n; i++) {
        uint64_t over;
        if (strcmp(e[i].name, "copy") != 0) continue;
        copies++;
        MRT_TRUE(e[i].start_ns <= e[i].end_ns);
        if (e[i].batch == 0) continue;
        MRT_OK(mr_event_time_ns(t.over[e[i].batch - 1], &over), NULL);
        overlaps += e[i].start_ns < over;
    }
    MRT_EQ(copies, STEPS);
    free(e);
    mr_trace_destroy(trace);
    bench_close(&t);
    return overlaps;
}

static void copies_run_while_steps_compute(void **state)
{
    (void)state;
    MRT_EQ(overlapping(3), STEPS - 1);
    MRT_EQ(overlapping(0), 0);
}

/* The host is never held up: a second batch is there while the first is computed on, and giving back does not
 * wait. */
static void two_batches_may_be_held(void **state)
{
    (void)state;
    bench t;
    mr_batch a, b, c;
    mr_error err = MR_ERROR_INIT;
    static mrt_gate gate;
    bench_open(&t, "sim:1,step=1us,h2d=10GB/s,d2h=1MB/s"); /* a step of half a second */
    mr_loader *l = open_loader(&t, 1, NULL);
    MRT_OK(mr_loader_next(l, &a, MR_FOREVER, &err), &err);
    mrt_gate_push(&gate, t.compute);
    queue_step(&t, &a);
    MRT_OK(mr_loader_next(l, &b, UINT64_C(60000000000), &err), &err);
    MRT_EQ(mr_loader_next(l, &c, MR_FOREVER, &err), MR_EBUSY);
    MRT_EQ(mr_loader_release(l, &a, NULL), MR_EINVAL); /* whose stream? */
    MRT_OK(mr_loader_release(l, &a, &t.compute), NULL);
    MRT_EQ(mr_event_query(t.over[0]), MR_EAGAIN);
    MRT_OK(mr_loader_release(l, &b, &t.compute), NULL);
    mrt_gate_open(&gate);
    mr_loader_close(l); /* waits for the step that still uses its memory */
    MRT_EQ(mr_event_query(t.over[0]), MR_OK);
    bench_close(&t);
}

static uint64_t decoded(const mr_loader *l)
{
    mr_loader_stats s;
    mr_loader_stats_read(l, &s);
    return s.decode.items;
}

/* False when it does not happen. */
static bool wait_decoded(const mr_loader *l, uint64_t samples)
{
    const struct timespec nap = {.tv_nsec = 1000000};
    for (unsigned i = 0; i < 1000 * mrt_seconds(60) && decoded(l) < samples; i++) nanosleep(&nap, NULL);
    return decoded(l) == samples;
}

/* A host slot is free when its copy is over: with both batches held that fit on the device, the two host
 * slots fill again. */
static void host_slots_are_free_after_the_copy(void **state)
{
    (void)state;
    bench t;
    mr_batch a, b;
    mr_error err = MR_ERROR_INIT;
    bench_open(&t, "sim:1,step=1us,h2d=10GB/s,d2h=100MB/s");
    mr_loader *l = open_loader(&t, 1, NULL);
    MRT_OK(mr_loader_next(l, &a, MR_FOREVER, &err), &err);
    MRT_OK(mr_loader_next(l, &b, MR_FOREVER, &err), &err);
    MRT_TRUE(wait_decoded(l, 4 * BATCH));
    MRT_OK(mr_loader_release(l, &a, &t.compute), NULL);
    MRT_OK(mr_loader_release(l, &b, &t.compute), NULL);
    mr_loader_close(l);
    bench_close(&t);
}

/* Nothing was ever taken: every slot on host and device is full, and every stage waits for room when the
 * loader is closed. */
static void closes_while_every_stage_waits_for_room(void **state)
{
    (void)state;
    bench t;
    bench_open(&t, "sim:1,step=1us,h2d=10GB/s,d2h=100MB/s");
    for (uint32_t prefetch = 1; prefetch < 4; prefetch++) {
        mr_loader *l = open_loader(&t, prefetch, NULL);
        MRT_TRUE(wait_decoded(l, (2 + prefetch + 1) * BATCH));
        mr_loader_close(l);
    }
    bench_close(&t);
}

/* A failed device is the loader's error: reported with the device's message, and closed as usual. */
static void a_failed_device_is_reported(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_tensor logits = {1, 1, 4, MR_TENSOR_F32, MR_LAYOUT_NHWC, 16};
    mr_op_desc desc = {.kind = MR_OP_LOSS, .in = logits, .max_batch = 1, .training = true, .need_dx = true};
    for (uint32_t prefetch = 0; prefetch < 3; prefetch += 2) {
        bench t;
        mr_op *loss;
        mr_batch b;
        void *memory;
        bench_open(&t, "cpu:1");
        MRT_OK(mr_op_create(&loss, t.devices[0], &desc, &err), &err);
        MRT_OK(mr_device_alloc(t.devices[0], 4096, &memory, &err), &err);
        MRT_OK(mr_fill_async(t.compute, memory, 0x01, 4096), NULL); /* a label of 16843009 */
        uint8_t *at = memory;
        const mr_op_args args = {.n = 1,
                                 .x = at,
                                 .y = at + 256,
                                 .saved = at + 512,
                                 .scratch = at + 1024,
                                 .labels = (int32_t *)memory,
                                 .metrics = (mr_metrics *)(void *)(at + 2048),
                                 .training = true};
        mr_loader *l = open_loader(&t, prefetch, NULL);
        MRT_OK(mr_loader_next(l, &b, MR_FOREVER, &err), &err);
        MRT_OK(mr_op_forward_async(loss, t.compute, &args), NULL);
        const int failed = mr_stream_sync(t.compute, &err);
        MRT_TRUE(failed < 0);
        int rc = mr_loader_release(l, &b, &t.compute);
        while (rc == MR_OK || b.count) { /* batches copied before the failure are still handed out */
            rc = mr_loader_next(l, &b, MR_FOREVER, &err);
            if (rc != MR_OK) break;
            mr_loader_release(l, &b, &t.compute);
        }
        MRT_EQ(rc, failed);
        MRT_HAS(err.text, "label 16843009");
        mr_loader_close(l);
        mr_op_destroy(loss);
        mr_device_free(t.devices[0], memory);
        bench_close(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(late_steps_see_their_batch),
        cmocka_unit_test(copies_run_while_steps_compute),
        cmocka_unit_test(two_batches_may_be_held),
        cmocka_unit_test(host_slots_are_free_after_the_copy),
        cmocka_unit_test(closes_while_every_stage_waits_for_room),
        cmocka_unit_test(a_failed_device_is_reported),
    };
    return mrt_run(tests);
}
