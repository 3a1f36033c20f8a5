/* kernels: device texts, memory, streams, events, copies, on every kind this build has. */
#include <semaphore.h>
#include <stdatomic.h>
#include <unistd.h>

#include "kernels/host/host.h"
#include "mrt.h"
#include "tests/gate.h"

static const char *const kinds[] = {"cpu:3", "sim:3,step=100us,h2d=100GB/s"};

/* ---- opening ---- */

static void refuse(const char *spec, int code, const char *part)
{
    mr_error err = MR_ERROR_INIT;
    mr_device **devices = (mr_device **)&err; /* poison */
    uint32_t count = 99;
    MRT_EQ(mr_devices_open(&devices, &count, spec, NULL, &err), code);
    MRT_TRUE(devices == NULL);
    MRT_EQ(count, 0);
    MRT_HAS(err.text, part);
}

/* A build without CUDA lists one line for it, which says so. */
static bool cuda_built(void)
{
    mr_device_listing line;
    bool built = true;
    for (uint32_t n = 0; mr_device_list(n, &line); n++)
        if (strcmp(line.kind, "cuda") == 0) built = strcmp(line.state, "not in this build") != 0;
    return built;
}

static void bad_texts_name_the_part(void **state)
{
    (void)state;
    refuse("", MR_EINVAL, "device kind");
    refuse(":3", MR_EINVAL, "device kind");
    refuse("tpu", MR_EINVAL, "unknown kind \"tpu\"; known kinds: cpu, sim");
    refuse("cpux:1", MR_EINVAL, "cpux");
    if (!cuda_built()) {
        refuse("cuda:0", MR_EUNSUPPORTED, "this build has no CUDA device; known kinds: cpu, sim");
        refuse("cuda:0,cuda:1", MR_EUNSUPPORTED, "no CUDA");
    }
    refuse("cpu:0", MR_EINVAL, "expected 1..256");
    refuse("cpu:257", MR_EINVAL, "expected 1..256");
    refuse("cpu:", MR_EINVAL, "neither a number");
    refuse("cpu:1x", MR_EINVAL, "1x");
    refuse("cpu:-1", MR_EINVAL, "-1");
    refuse("cpu:99999999999", MR_EINVAL, "99999999999");
    refuse("cpu:2,3", MR_EINVAL, "one number");
    refuse("cpu:2,", MR_EINVAL, "neither");
    refuse("cpu:2,step=1ms", MR_EINVAL, "cpu has no option \"step\"");
    refuse("sim:2,step=abc", MR_EINVAL, "step=abc");
    refuse("sim:2,step=-1ms", MR_EINVAL, "step=-1ms");
    refuse("sim:2,step=0ms", MR_EINVAL, "step=0ms");
    refuse("sim:2,slow=0ms", MR_EINVAL, "slow=0ms");
    refuse("sim:2,step=inf", MR_EINVAL, "step=inf");
    refuse("sim:2,step=1e300s", MR_EINVAL, "one hour");
    refuse("sim:2,step=3", MR_EINVAL, "step=3");
    refuse("sim:2,step=", MR_EINVAL, "NAME=VALUE");
    refuse("sim:2,=3ms", MR_EINVAL, "NAME=VALUE");
    refuse("sim:2,h2d=25GB", MR_EINVAL, "h2d=25GB");
    refuse("sim:2,speed=3", MR_EINVAL, "no option \"speed\"");
    refuse("sim:2,step=1ms,step=2ms", MR_EINVAL, "twice");
    refuse("sim:2,step=1ms,4", MR_EINVAL, "numbers come first");
    refuse(NULL, MR_EINVAL, "spec must not be NULL");
}

static void good_texts_say_what_they_are(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_device **devices;
    uint32_t count;
    mr_devices_config cfg;
    mr_devices_defaults(&cfg);
    cfg.compute_threads = 7;
    MRT_OK(mr_devices_open(&devices, &count, "cpu:3", &cfg, &err), &err);
    MRT_EQ(count, 3);
    const mr_device_info *info = mr_device_info_of(devices[2]);
    MRT_STR(info->kind, "cpu");
    MRT_STR(info->name, "cpu:2");
    MRT_EQ(info->threads, 2);
    MRT_EQ(info->index, 2);
    MRT_TRUE(!info->simulated && info->hardware[0]);
    mr_devices_close(devices, count);

    MRT_OK(mr_devices_open(&devices, &count, "sim:2,step=3.1ms,h2d=25GB/s,d2h=800MB/s", NULL, &err), &err);
    MRT_EQ(count, 2);
    info = mr_device_info_of(devices[1]);
    MRT_STR(info->name, "sim:1 step=3.1ms h2d=25GB/s");
    MRT_STR(info->hardware, "simulated");
    MRT_TRUE(info->simulated && info->h2d_bytes_per_s == 25e9);
    mr_devices_close(devices, count);

    MRT_OK(mr_devices_open(&devices, &count, "sim,step=2ms", NULL, &err), &err);
    MRT_EQ(count, 1);
    mr_devices_close(devices, count);
    MRT_OK(mr_devices_open(&devices, &count, "sim:2,step=2ms,slow=5ms", NULL, &err), &err);
    MRT_EQ(count, 2);
    MRT_HAS(mr_device_info_of(devices[0])->name, "step=2ms");
    MRT_HAS(mr_device_info_of(devices[1])->name, "step=5ms");
    mr_devices_close(devices, count);
    mr_devices_close(NULL, 0);

    cfg.struct_size = (size_t)1 << 20;
    MRT_EQ(mr_devices_open(&devices, &count, "cpu", &cfg, &err), MR_EINVAL);
    MRT_HAS(err.text, "struct_size");
}

static void listing_ends(void **state)
{
    (void)state;
    mr_device_listing line;
    uint32_t n = 0, ready = 0;
    while (mr_device_list(n, &line)) {
        MRT_TRUE(line.kind[0] && line.spec[0] && line.hardware[0] && line.state[0]);
        ready += strcmp(line.kind, "cuda") != 0 && strcmp(line.state, "ready") == 0;
        n++;
    }
    MRT_TRUE(n >= 3); /* cuda: at least a line that says why not */
    MRT_EQ(ready, 2);
}

static void failed_allocations_leave_nothing(void **state)
{
    (void)state;
    for (size_t k = 0; k < MRI_ARRAY_COUNT(kinds); k++) {
        for (int n = 0;; n += MRT_TURN) {
            mr_error err = MR_ERROR_INIT;
            mr_device **devices = (mr_device **)&err;
            mr_stream *stream = (mr_stream *)&err;
            mr_event *event = (mr_event *)&err;
            void *memory = &err;
            uint32_t count = 0;
            mrt_fail_alloc_at(n);
            int rc = mr_devices_open(&devices, &count, kinds[k], NULL, &err);
            if (!rc) {
                if (!(rc = mr_device_alloc(devices[0], 1000, &memory, &err))) {
                    if (!(rc = mr_stream_create(&stream, devices[0], MR_STREAM_COPY, &err))) {
                        rc = mr_event_create(&event, devices[0], &err);
                        mr_event_destroy(event);
                    }
                    mr_stream_destroy(stream);
                }
                mr_device_free(devices[0], memory);
            }
            mrt_fail_alloc_at(-1);
            mr_devices_close(devices, count);
            if (rc == MR_OK) break;
            MRT_EQ(rc, MR_ENOMEM);
        }
    }
}

/* ---- a run on one kind ---- */

struct rig {
    mr_device **devices;
    uint32_t count;
    mr_stream *compute[3], *copy[3];
};

static void rig_open(struct rig *r, const char *spec)
{
    mr_error err = MR_ERROR_INIT;
    mr_devices_config cfg;
    mr_devices_defaults(&cfg);
    cfg.compute_threads = 1;
    MRT_OK(mr_devices_open(&r->devices, &r->count, spec, &cfg, &err), &err);
    MRT_EQ(r->count, 3);
    for (int i = 0; i < 3; i++) {
        MRT_OK(mr_stream_create(&r->compute[i], r->devices[i], MR_STREAM_COMPUTE, &err), &err);
        MRT_OK(mr_stream_create(&r->copy[i], r->devices[i], MR_STREAM_COPY, &err), &err);
        MRT_TRUE(mr_stream_device(r->copy[i]) == r->devices[i]);
    }
}

static void rig_close(struct rig *r)
{
    for (int i = 0; i < 3; i++) {
        mr_stream_destroy(r->compute[i]);
        mr_stream_destroy(r->copy[i]);
    }
    mr_devices_close(r->devices, r->count);
}

static void *device_memory(mr_device *dev, size_t bytes)
{
    mr_error err = MR_ERROR_INIT;
    void *p;
    MRT_OK(mr_device_alloc(dev, bytes, &p, &err), &err);
    MRT_TRUE(p != NULL && (uintptr_t)p % MR_DEVICE_ALIGN == 0);
    return p;
}

static void memory_is_counted(void **state)
{
    (void)state;
    for (size_t k = 0; k < MRI_ARRAY_COUNT(kinds); k++) {
        struct rig r;
        rig_open(&r, kinds[k]);
        mr_error err = MR_ERROR_INIT;
        void *p = &r;
        MRT_EQ(mr_device_alloc(r.devices[0], SIZE_MAX - 100, &p, &err), MR_ENOMEM);
        MRT_TRUE(p == NULL);
        MRT_HAS(err.text, "18446744073709551515 bytes");
        MRT_EQ(mr_host_alloc(r.devices[0], (size_t)1 << 60, &p, &err), MR_ENOMEM);
        mr_device_free(r.devices[0], device_memory(r.devices[0], 0));
        mr_device_free(r.devices[0], NULL);
        MRT_EQ(mri_host_device_of(r.devices[0])->used_bytes, 0);
        rig_close(&r);
    }
}

static void copies_carry_bytes(void **state)
{
    (void)state;
    enum { BYTES = 100003 };
    for (size_t k = 0; k < MRI_ARRAY_COUNT(kinds); k++) {
        struct rig r;
        rig_open(&r, kinds[k]);
        mr_error err = MR_ERROR_INIT;
        uint8_t *in, *out;
        MRT_OK(mr_host_alloc(r.devices[0], BYTES, (void **)&in, &err), &err);
        MRT_OK(mr_host_alloc(r.devices[0], BYTES, (void **)&out, &err), &err);
        uint8_t *a = device_memory(r.devices[0], BYTES), *b = device_memory(r.devices[0], BYTES);
        mrt_noise(in, BYTES, 1);
        memset(out, 0, BYTES);
        MRT_OK(mr_copy_h2d_async(r.copy[0], a, in, BYTES), NULL);
        MRT_OK(mr_fill_async(r.copy[0], b, 0x5A, BYTES), NULL);
        MRT_OK(mr_copy_d2d_async(r.copy[0], b, a, BYTES - 3), NULL);
        MRT_OK(mr_copy_d2h_async(r.copy[0], out, b, BYTES), NULL);
        MRT_OK(mr_copy_d2h_async(r.copy[0], out, b, 0), NULL);
        MRT_OK(mr_stream_sync(r.copy[0], &err), &err);
        MRT_TRUE(memcmp(in, out, BYTES - 3) == 0);
        for (int i = 1; i <= 3; i++) MRT_EQ(out[BYTES - i], 0x5A);
        MRT_EQ(mr_copy_h2d_async(r.copy[0], NULL, in, 1), MR_EINVAL);
        mr_host_free(r.devices[0], in);
        mr_host_free(r.devices[0], out);
        mr_device_free(r.devices[0], a);
        mr_device_free(r.devices[0], b);
        rig_close(&r);
    }
}

/* ---- ordering ---- */

struct nap {
    uint32_t us;
    _Atomic int *counter;
    int expect; /* -1: do not look */
    _Atomic int *wrong;
};

static int run_nap(mri_host_stream *s, const void *args, mr_error *err)
{
    (void)s, (void)err;
    const struct nap *n = args;
    if (n->us) usleep(n->us);
    if (n->expect >= 0 && *n->counter != n->expect) ++*n->wrong;
    ++*n->counter;
    return MR_OK;
}

static void push_nap(mr_stream *s, uint32_t us, _Atomic int *counter, int expect, _Atomic int *wrong)
{
    const struct nap n = {us, counter, expect, wrong};
    MRT_OK(mri_host_push((mri_host_stream *)s, run_nap, &n, sizeof n, 0, NULL), NULL);
}

/* A chain that hops over six streams with random delays: each link waits for the event of the one before, and
 * the events are few, so that most are recorded again while somebody still waits for their earlier mark. */
static void events_order_streams(void **state)
{
    (void)state;
    enum { EVENTS = 4, LINKS = 600 };
    struct rig r;
    rig_open(&r, kinds[0]);
    mr_error err = MR_ERROR_INIT;
    mr_event *events[EVENTS];
    for (int i = 0; i < EVENTS; i++) MRT_OK(mr_event_create(&events[i], r.devices[i % 3], &err), &err);
    uint8_t random[LINKS];
    for (int round = 0; round < 5; round++) {
        mrt_noise(random, sizeof random, (uint64_t)round + 1);
        _Atomic int counter = 0, wrong = 0;
        for (int i = 0; i < LINKS; i++) {
            const int at = random[i] % 6;
            mr_stream *s = at < 3 ? r.compute[at] : r.copy[at - 3];
            if (i > 0) MRT_OK(mr_stream_wait_event(s, events[(i - 1) % EVENTS]), NULL);
            push_nap(s, random[i] > 200 ? random[i] : 0, &counter, i, &wrong);
            MRT_OK(mr_event_record(events[i % EVENTS], s), NULL);
        }
        MRT_OK(mr_event_sync(events[(LINKS - 1) % EVENTS], &err), &err);
        MRT_EQ(counter, LINKS);
        MRT_EQ(wrong, 0);
    }
    for (int i = 0; i < EVENTS; i++) mr_event_destroy(events[i]);
    rig_close(&r);
}

/* A wait captures the event's mark at the time of the call, whatever is recorded on it later and on any
 * stream. */
static void wait_captures_the_record(void **state)
{
    (void)state;
    struct rig r;
    rig_open(&r, kinds[0]);
    mr_error err = MR_ERROR_INIT;
    mr_event *e, *unused;
    MRT_OK(mr_event_create(&e, r.devices[0], &err), &err);
    MRT_OK(mr_event_create(&unused, r.devices[0], &err), &err);
    _Atomic int counter = 0, wrong = 0;
    push_nap(r.compute[0], 20000, &counter, 0, &wrong);
    MRT_OK(mr_event_record(e, r.compute[0]), NULL);
    MRT_OK(mr_stream_wait_event(r.compute[1], e), NULL);
    MRT_OK(mr_event_record(e, r.copy[0]), NULL); /* over at once; the wait above must not end by it */
    MRT_OK(mr_event_sync(e, &err), &err);
    push_nap(r.compute[1], 0, &counter, 1, &wrong);
    MRT_OK(mr_stream_wait_event(r.compute[2], unused), NULL); /* never recorded: already over */
    MRT_OK(mr_stream_sync(r.compute[2], &err), &err);
    MRT_OK(mr_stream_sync(r.compute[1], &err), &err);
    MRT_EQ(counter, 2);
    MRT_EQ(wrong, 0);
    mr_event_destroy(e);
    mr_event_destroy(unused);
    rig_close(&r);
}

static void events_tell_time(void **state)
{
    (void)state;
    struct rig r;
    rig_open(&r, kinds[0]);
    mr_error err = MR_ERROR_INIT;
    mr_event *a, *b;
    MRT_OK(mr_event_create(&a, r.devices[0], &err), &err);
    MRT_OK(mr_event_create(&b, r.devices[0], &err), &err);
    uint64_t ta, tb;
    MRT_EQ(mr_event_time_ns(a, &ta), MR_EAGAIN);
    MRT_EQ(mr_event_query(a), MR_OK);
    _Atomic int counter = 0;
    static mrt_gate gate;
    const uint64_t before = mri_now_ns();
    MRT_OK(mr_event_record(a, r.compute[0]), NULL);
    mrt_gate_push(&gate, r.compute[0]);
    push_nap(r.compute[0], 30000, &counter, -1, NULL);
    MRT_OK(mr_event_record(b, r.compute[0]), NULL);
    MRT_EQ(mr_event_query(b), MR_EAGAIN);
    MRT_EQ(mr_event_time_ns(b, &tb), MR_EAGAIN);
    mrt_gate_open(&gate);
    MRT_OK(mr_event_sync(b, &err), &err);
    MRT_EQ(mr_event_query(b), MR_OK);
    MRT_OK(mr_event_time_ns(a, &ta), NULL);
    MRT_OK(mr_event_time_ns(b, &tb), NULL);
    MRT_TRUE(ta >= before && tb >= ta + 30000000u && mri_now_ns() >= tb);
    mr_stream_destroy(r.compute[0]); /* an event outlives the stream it was recorded on */
    r.compute[0] = NULL;
    MRT_EQ(mr_event_query(b), MR_OK);
    MRT_OK(mr_event_time_ns(b, &ta), NULL);
    MRT_EQ(ta, tb);
    mr_event_destroy(a);
    mr_event_destroy(b);
    rig_close(&r);
}

/* A wait with a limit ends by itself, and says which it was. */
static void waits_have_limits(void **state)
{
    (void)state;
    struct rig r;
    rig_open(&r, kinds[0]);
    mr_error err = MR_ERROR_INIT;
    mr_event *e;
    MRT_OK(mr_event_create(&e, r.devices[0], &err), &err);
    MRT_OK(mr_event_wait(e, 0, &err), &err); /* never recorded: over */
    _Atomic int counter = 0;
    static mrt_gate gate;
    mrt_gate_push(&gate, r.compute[0]);
    push_nap(r.compute[0], 60000, &counter, -1, NULL);
    MRT_OK(mr_event_record(e, r.compute[0]), NULL);
    MRT_EQ(mr_event_wait(e, 0, &err), MR_EAGAIN);
    const uint64_t start = mri_now_ns();
    MRT_EQ(mr_event_wait(e, 5000000, &err), MR_EAGAIN);
    MRT_TRUE(mri_now_ns() - start >= 5000000);
    MRT_EQ(mr_stream_wait(r.compute[0], 0, &err), MR_EAGAIN);
    mrt_gate_open(&gate);
    MRT_OK(mr_event_wait(e, MR_FOREVER - 1, &err), &err); /* a limit past the end of time is no limit */
    MRT_OK(mr_event_wait(e, 0, &err), &err);
    MRT_EQ(counter, 1);
    MRT_OK(mr_stream_wait(r.compute[0], 0, &err), &err);
    MRT_EQ(mr_event_wait(NULL, 0, &err), MR_EINVAL);
    MRT_EQ(mr_stream_wait(NULL, 0, &err), MR_EINVAL);
    mr_event_destroy(e);
    rig_close(&r);
}

/* A wait on a stream of a device that failed elsewhere returns at once with the cause. */
static void a_wait_tells_what_failed_elsewhere(void **state)
{
    (void)state;
    struct rig r;
    rig_open(&r, kinds[0]);
    mr_error err = MR_ERROR_INIT, fault = MR_ERROR_INIT;
    static mrt_gate gate;
    mrt_gate_push(&gate, r.compute[0]);
    mr_error_set(&fault, MR_EDEVICE, "a fault of another stream");
    mri_host_device_fail(mri_host_device_of(r.devices[0]), &fault);
    MRT_EQ(mr_stream_wait(r.compute[0], 0, &err), MR_EDEVICE);
    MRT_STR(err.text, fault.text);
    mrt_gate_open(&gate);
    rig_close(&r);
}

/* These kinds queue every time. */
static void recording_is_refused(void **state)
{
    (void)state;
    for (size_t k = 0; k < MRI_ARRAY_COUNT(kinds); k++) {
        struct rig r;
        mr_error err = MR_ERROR_INIT;
        mr_graph *g = (mr_graph *)&err;
        rig_open(&r, kinds[k]);
        MRT_EQ(mr_graph_begin(r.compute[0]), MR_EUNSUPPORTED);
        MRT_EQ(mr_graph_begin(NULL), MR_EINVAL);
        MRT_EQ(mr_graph_end(r.compute[0], &g, &err), MR_EUNSUPPORTED);
        MRT_TRUE(g == NULL);
        MRT_HAS(err.text, "does not record");
        MRT_EQ(mr_graph_end(NULL, &g, &err), MR_EINVAL);
        MRT_EQ(mr_graph_launch_async(NULL, r.compute[0]), MR_EINVAL);
        mr_graph_destroy(NULL);
        rig_close(&r);
    }
}

static void destroy_finishes_the_queue(void **state)
{
    (void)state;
    struct rig r;
    rig_open(&r, kinds[0]);
    _Atomic int counter = 0, wrong = 0;
    push_nap(r.copy[1], 5000, &counter, 0, &wrong);
    for (int i = 1; i < 5000; i++)
        push_nap(r.copy[1], 0, &counter, i, &wrong); /* the ring grows several times */
    mr_stream_destroy(r.copy[1]);
    r.copy[1] = NULL;
    MRT_EQ(counter, 5000);
    MRT_EQ(wrong, 0);
    rig_close(&r);
}

/* ---- errors ---- */

static int run_fail(mri_host_stream *s, const void *args, mr_error *err)
{
    (void)s, (void)args;
    return mr_error_set(err, MR_EIO, "this task fails");
}

static void errors_stick(void **state)
{
    (void)state;
    struct rig r;
    rig_open(&r, kinds[0]);
    mr_error err = MR_ERROR_INIT;
    mr_event *before, *after;
    MRT_OK(mr_event_create(&before, r.devices[0], &err), &err);
    MRT_OK(mr_event_create(&after, r.devices[0], &err), &err);
    _Atomic int counter = 0;
    push_nap(r.compute[0], 2000, &counter, -1, NULL);
    MRT_OK(mr_event_record(before, r.compute[0]), NULL);
    MRT_OK(mri_host_push((mri_host_stream *)r.compute[0], run_fail, "", 1, 0, NULL), NULL);
    const struct nap skipped = {0, &counter, -1, NULL};
    mri_host_push((mri_host_stream *)r.compute[0], run_nap, &skipped, sizeof skipped, 0, NULL);
    MRT_OK(mr_event_record(after, r.compute[0]), NULL);
    MRT_OK(mr_stream_wait_event(r.compute[1], after), NULL);

    MRT_EQ(mr_stream_sync(r.compute[0], &err), MR_EIO);
    MRT_HAS(err.text, "this task fails");
    MRT_EQ(mr_stream_sync(r.compute[0], NULL), MR_EIO);
    MRT_EQ(counter, 1);
    MRT_EQ(mr_event_query(before), MR_OK);
    MRT_EQ(mr_event_query(after), MR_EIO);
    MRT_EQ(mr_event_sync(after, &err), MR_EIO);
    MRT_EQ(mr_fill_async(r.compute[0], &counter, 0, sizeof counter), MR_EIO); /* the stream */
    MRT_EQ(mr_fill_async(r.copy[0], &counter, 0, sizeof counter), MR_EIO);    /* its device */
    MRT_EQ(mr_stream_sync(r.copy[0], &err), MR_EIO);
    MRT_EQ(mr_stream_sync(r.compute[1], &err), MR_EIO); /* who waited for it */
    MRT_HAS(err.text, "this task fails");
    MRT_EQ(mr_stream_sync(r.compute[2], &err), MR_OK); /* nobody else */
    mr_event_destroy(before);
    mr_event_destroy(after);
    rig_close(&r);
}

static void arguments_are_checked(void **state)
{
    (void)state;
    struct rig r;
    mr_error err = MR_ERROR_INIT;
    mr_device **sim;
    uint32_t sims;
    mr_stream *s = NULL;
    mr_event *e;
    rig_open(&r, kinds[0]);
    MRT_OK(mr_devices_open(&sim, &sims, "sim", NULL, &err), &err);
    MRT_OK(mr_event_create(&e, sim[0], &err), &err);
    MRT_EQ(mr_stream_wait_event(r.copy[0], e), MR_EINVAL); /* another kind of device */
    MRT_EQ(mr_event_record(e, r.copy[0]), MR_EINVAL);
    MRT_EQ(mr_stream_create(&s, r.devices[0], (mr_stream_role)7, &err), MR_EINVAL);
    MRT_EQ(mr_stream_create(&s, NULL, MR_STREAM_COPY, &err), MR_EINVAL);
    MRT_EQ(mr_stream_sync(NULL, &err), MR_EINVAL);
    MRT_EQ(mr_event_query(NULL), MR_EINVAL);
    mr_event_destroy(e);
    mr_event_destroy(NULL);
    mr_stream_destroy(NULL);
    mr_devices_close(sim, sims);
    rig_close(&r);
}

/* ---- sim ---- */

/* Two streams share one link of 1 GB/s: 3 x 2 MB take at least 6 ms whichever way they overlap. */
static void sim_paces_its_link(void **state)
{
    (void)state;
    enum { BYTES = 2000000 };
    mr_error err = MR_ERROR_INIT;
    mr_device **sim;
    uint32_t count;
    mr_stream *a, *b;
    MRT_OK(mr_devices_open(&sim, &count, "sim,h2d=1GB/s,d2h=500MB/s", NULL, &err), &err);
    MRT_OK(mr_stream_create(&a, sim[0], MR_STREAM_COPY, &err), &err);
    MRT_OK(mr_stream_create(&b, sim[0], MR_STREAM_COPY, &err), &err);
    uint8_t *device = device_memory(sim[0], BYTES * 3), *host = calloc(3, BYTES);
    MRT_TRUE(host != NULL);
    uint64_t start = mri_now_ns();
    MRT_OK(mr_copy_h2d_async(a, device, host, BYTES), NULL);
    MRT_OK(mr_copy_h2d_async(b, device + BYTES, host + BYTES, BYTES), NULL);
    MRT_OK(mr_copy_h2d_async(a, device + 2 * BYTES, host + 2 * BYTES, BYTES), NULL);
    MRT_OK(mr_stream_sync(a, &err), &err);
    MRT_OK(mr_stream_sync(b, &err), &err);
    MRT_TRUE(mri_now_ns() - start >= 6000000u);
    start = mri_now_ns();
    MRT_OK(mr_copy_d2h_async(a, host, device, BYTES), NULL);
    MRT_OK(mr_stream_sync(a, &err), &err);
    MRT_TRUE(mri_now_ns() - start >= 4000000u);
    free(host);
    mr_device_free(sim[0], device);
    mr_stream_destroy(a);
    mr_stream_destroy(b);
    mr_devices_close(sim, count);
}

static int run_gate(mri_host_stream *s, const void *args, mr_error *err)
{
    sem_t *gate;
    (void)s, (void)err;
    memcpy(&gate, args, sizeof gate);
    while (sem_wait(gate) != 0) {
    }
    return MR_OK;
}

/* A simulated device's work begins when it has been queued and its dependencies are over in simulated time,
 * however late this machine runs the threads of its streams. */
static void sim_keeps_its_own_time(void **state)
{
    (void)state;
    enum { BYTES = 2000, COPY_NS = 2000000 };
    mr_error err = MR_ERROR_INIT;
    mr_device **sim;
    uint32_t count;
    mr_stream *a, *b;
    mr_event *event[3];
    uint64_t at[3];
    sem_t gate, *late = &gate;
    uint8_t host[BYTES] = {0};
    MRT_OK(mr_devices_open(&sim, &count, "sim,h2d=1MB/s", NULL, &err), &err);
    MRT_OK(mr_stream_create(&a, sim[0], MR_STREAM_COPY, &err), &err);
    MRT_OK(mr_stream_create(&b, sim[0], MR_STREAM_COMPUTE, &err), &err);
    for (int i = 0; i < 3; i++) MRT_OK(mr_event_create(&event[i], sim[0], &err), &err);
    uint8_t *device = device_memory(sim[0], BYTES);
    sem_init(&gate, 0, 0);
    const uint64_t before = mri_now_ns();
    MRT_OK(mri_host_push((mri_host_stream *)a, run_gate, &late, sizeof late, 0, NULL), NULL);
    MRT_OK(mr_event_record(event[0], a), NULL);
    MRT_OK(mr_copy_h2d_async(a, device, host, BYTES), NULL);
    MRT_OK(mr_event_record(event[1], a), NULL);
    MRT_OK(mr_stream_wait_event(b, event[1]), NULL);
    MRT_OK(mr_event_record(event[2], b), NULL);
    const uint64_t queued = mri_now_ns();
    while (mri_now_ns() < queued + 2 * COPY_NS) usleep(COPY_NS / 1000);
    sem_post(&gate);
    MRT_OK(mr_stream_sync(b, &err), &err);
    for (int i = 0; i < 3; i++) MRT_OK(mr_event_time_ns(event[i], &at[i]), NULL);
    MRT_TRUE(at[0] >= before && at[0] <= queued);
    MRT_TRUE(at[1] >= at[0] + COPY_NS && at[1] <= queued + COPY_NS);
    MRT_TRUE(at[2] >= at[1] && at[2] <= queued + COPY_NS);
    sem_destroy(&gate);
    for (int i = 0; i < 3; i++) mr_event_destroy(event[i]);
    mr_device_free(sim[0], device);
    mr_stream_destroy(a);
    mr_stream_destroy(b);
    mr_devices_close(sim, count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_texts_name_the_part),
        cmocka_unit_test(good_texts_say_what_they_are),
        cmocka_unit_test(listing_ends),
        cmocka_unit_test(failed_allocations_leave_nothing),
        cmocka_unit_test(memory_is_counted),
        cmocka_unit_test(copies_carry_bytes),
        cmocka_unit_test(events_order_streams),
        cmocka_unit_test(wait_captures_the_record),
        cmocka_unit_test(events_tell_time),
        cmocka_unit_test(destroy_finishes_the_queue),
        cmocka_unit_test(waits_have_limits),
        cmocka_unit_test(a_wait_tells_what_failed_elsewhere),
        cmocka_unit_test(recording_is_refused),
        cmocka_unit_test(errors_stick),
        cmocka_unit_test(arguments_are_checked),
        cmocka_unit_test(sim_paces_its_link),
        cmocka_unit_test(sim_keeps_its_own_time),
    };
    return mrt_run(tests);
}
