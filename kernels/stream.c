/* kernels/stream.c: the public calls on streams, events and copies. Checks arguments, then calls the kind's
 * table. */
#include "kernels/backend/backend.h"

int mr_stream_create(mr_stream **out, mr_device *dev, mr_stream_role role, mr_error *err)
{
    if (!out) return mr_error_set(err, MR_EINVAL, "mr_stream_create: out must not be NULL");
    *out = NULL;
    MRI_OWN(err, dev);
    if ((unsigned)role > MR_STREAM_EXCHANGE)
        return mr_error_set(err, MR_EINVAL, "mr_stream_create: unknown role %d", (int)role);
    return dev->backend->streams->create(out, dev, role, err);
}

void mr_stream_destroy(mr_stream *s)
{
    if (s && !mri_is_inherited(s->device->process)) s->device->backend->streams->destroy(s);
}

mr_device *mr_stream_device(const mr_stream *s) { return s ? s->device : NULL; }

int mr_stream_sync(mr_stream *s, mr_error *err)
{
    MRI_OWN_AS(err, s, s->device->process);
    return s->device->backend->streams->wait(s, MR_FOREVER, err);
}

int mr_stream_wait(mr_stream *s, uint64_t timeout_ns, mr_error *err)
{
    MRI_OWN_AS(err, s, s->device->process);
    return s->device->backend->streams->wait(s, timeout_ns, err);
}

int mr_stream_wait_event(mr_stream *s, mr_event *e)
{
    MRI_OWN_AS(NULL, s, s->device->process);
    MRI_OWN_AS(NULL, e, e->device->process);
    if (s->device->backend != e->device->backend) return MR_EINVAL;
    return s->device->backend->events->queue_wait(s, e);
}

int mr_event_create(mr_event **out, mr_device *dev, mr_error *err)
{
    if (!out) return mr_error_set(err, MR_EINVAL, "mr_event_create: out must not be NULL");
    *out = NULL;
    MRI_OWN(err, dev);
    return dev->backend->events->create(out, dev, err);
}

void mr_event_destroy(mr_event *e)
{
    if (e && !mri_is_inherited(e->device->process)) e->device->backend->events->destroy(e);
}

int mr_event_record(mr_event *e, mr_stream *s)
{
    MRI_OWN_AS(NULL, s, s->device->process);
    MRI_OWN_AS(NULL, e, e->device->process);
    if (s->device->backend != e->device->backend) return MR_EINVAL;
    return e->device->backend->events->record(e, s);
}

int mr_event_query(mr_event *e)
{
    MRI_OWN_AS(NULL, e, e->device->process);
    return e->device->backend->events->query(e);
}

int mr_event_sync(mr_event *e, mr_error *err)
{
    MRI_OWN_AS(err, e, e->device->process);
    return e->device->backend->events->wait(e, MR_FOREVER, err);
}

int mr_event_wait(mr_event *e, uint64_t timeout_ns, mr_error *err)
{
    MRI_OWN_AS(err, e, e->device->process);
    return e->device->backend->events->wait(e, timeout_ns, err);
}

int mr_event_time_ns(mr_event *e, uint64_t *out)
{
    MRI_OWN_AS(NULL, e, e->device->process);
    MRI_GIVEN(NULL, out);
    return e->device->backend->events->time_ns(e, out);
}

static int copy_async(mr_stream *s, enum mri_copy_kind kind, void *dst, const void *src, size_t bytes)
{
    MRI_OWN_AS(NULL, s, s->device->process);
    if (bytes == 0) return MR_OK;
    if (!dst || !src) return MR_EINVAL;
    return s->device->backend->copies->copy_async(s, kind, dst, src, bytes);
}

int mr_copy_h2d_async(mr_stream *s, void *device_dst, const void *host_src, size_t bytes)
{
    return copy_async(s, MRI_COPY_H2D, device_dst, host_src, bytes);
}

int mr_copy_d2h_async(mr_stream *s, void *host_dst, const void *device_src, size_t bytes)
{
    return copy_async(s, MRI_COPY_D2H, host_dst, device_src, bytes);
}

int mr_copy_d2d_async(mr_stream *s, void *device_dst, const void *device_src, size_t bytes)
{
    return copy_async(s, MRI_COPY_D2D, device_dst, device_src, bytes);
}

int mr_fill_async(mr_stream *s, void *device_dst, uint8_t byte, size_t bytes)
{
    MRI_OWN_AS(NULL, s, s->device->process);
    if (bytes == 0) return MR_OK;
    if (!device_dst) return MR_EINVAL;
    return s->device->backend->copies->fill_async(s, device_dst, byte, bytes);
}
