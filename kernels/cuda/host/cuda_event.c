/* kernels/cuda/host/cuda_event.c: events. The time they tell is clock.c's. */
#include "kernels/cuda/host/gpu.h"

struct cuda_event {
    mr_event base;
    CUevent handle;
    _Atomic bool recorded;
};

static mri_cuda_device *device_of(const struct cuda_event *e) { return mri_cuda_device_of(e->base.device); }

/* Who waits for an event sleeps: its processor has pictures to decode. */
static int event_create(mr_event **out, mr_device *base, mr_error *err)
{
    mri_cuda_device *dev = mri_cuda_device_of(base);
    int rc = mri_cuda_enter(dev, err);
    if (rc) return rc;
    struct cuda_event *e = calloc(1, sizeof *e);
    if (!e) return mr_error_set(err, MR_ENOMEM, "%s: no memory for an event", base->name);
    e->base.device = base;
    rc = mri_cuda_check(dev, dev->api->cuEventCreate(&e->handle, CU_EVENT_BLOCKING_SYNC), "creating an event",
                        err);
    if (rc) {
        free(e);
        return rc;
    }
    *out = &e->base;
    return MR_OK;
}

static void event_destroy(mr_event *base)
{
    struct cuda_event *e = (struct cuda_event *)base;
    mri_cuda_device *dev = device_of(e);
    mri_cuda_enter_for_cleanup(dev);
    if (dev->failed && e->recorded)
        mri_cuda_wait(dev, NULL, e->handle, MR_FOREVER, "finishing an event", NULL);
    dev->api->cuEventDestroy(e->handle);
    free(e);
}

static int event_record(mr_event *base, mr_stream *stream)
{
    struct cuda_event *e = (struct cuda_event *)base;
    mri_cuda_stream *s = (mri_cuda_stream *)stream;
    mri_cuda_device *dev = device_of(e);
    if (dev->context != mri_cuda_of_stream(s)->context) return MR_EINVAL;
    mr_error err = MR_ERROR_INIT;
    int rc = mri_cuda_enter(dev, &err);
    if (!rc) rc = mri_cuda_not_recorded(s, "an event", &err);
    if (!rc) rc = mri_cuda_anchor_renew(dev, &err);
    if (!rc)
        rc = mri_cuda_check(dev, dev->api->cuEventRecord(e->handle, s->handle), "recording an event", &err);
    if (!rc) e->recorded = true;
    return mri_cuda_keep_error(s, rc, "recording an event", &err);
}

static int event_queue_wait(mr_stream *stream, mr_event *base)
{
    struct cuda_event *e = (struct cuda_event *)base;
    mri_cuda_stream *s = (mri_cuda_stream *)stream;
    mri_cuda_device *dev = mri_cuda_of_stream(s);
    mr_error err = MR_ERROR_INIT;
    int rc = mri_cuda_failed(device_of(e), &err); /* what follows would work on its leavings */
    if (!rc) rc = mri_cuda_enter(dev, &err);
    if (!rc) rc = mri_cuda_not_recorded(s, "waiting for an event", &err);
    if (!rc && e->recorded)
        rc = mri_cuda_check(dev, dev->api->cuStreamWaitEvent(s->handle, e->handle, CU_EVENT_WAIT_DEFAULT),
                            "queueing a wait", &err);
    return mri_cuda_keep_error(s, rc, "queueing a wait", &err);
}

static int event_query(mr_event *base)
{
    struct cuda_event *e = (struct cuda_event *)base;
    mri_cuda_device *dev = device_of(e);
    const int rc = mri_cuda_enter(dev, NULL);
    if (rc || !e->recorded) return rc;
    const CUresult code = dev->api->cuEventQuery(e->handle);
    return code == CUDA_ERROR_NOT_READY ? MR_EAGAIN : mri_cuda_check(dev, code, "asking for an event", NULL);
}

static int event_wait(mr_event *base, uint64_t timeout_ns, mr_error *err)
{
    struct cuda_event *e = (struct cuda_event *)base;
    mri_cuda_enter_for_cleanup(device_of(e));
    if (!e->recorded) return mri_cuda_failed(device_of(e), err);
    return mri_cuda_wait(device_of(e), NULL, e->handle, timeout_ns, "waiting for an event", err);
}

static int event_time_ns(mr_event *base, uint64_t *out)
{
    struct cuda_event *e = (struct cuda_event *)base;
    mri_cuda_device *dev = device_of(e);
    const int rc = mri_cuda_enter(dev, NULL);
    if (rc) return rc;
    return e->recorded ? mri_cuda_anchor_time(dev, e->handle, out, NULL) : MR_EAGAIN;
}

const struct mri_event_calls mri_cuda_events = {.create = event_create,
                                                .destroy = event_destroy,
                                                .record = event_record,
                                                .queue_wait = event_queue_wait,
                                                .query = event_query,
                                                .wait = event_wait,
                                                .time_ns = event_time_ns};
