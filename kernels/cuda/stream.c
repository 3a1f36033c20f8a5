/* kernels/cuda/stream.c: streams, and waiting for what is queued on them.
 *
 * Copies and exchanges go on streams of the highest priority, compute on one of the lowest: what the others
 * wait for is small and comes first. No stream waits for the legacy default stream.
 *
 * Waiting: the driver's own wait where nothing else can happen. A device that is in a group polls instead,
 * with sleeps that grow to 200 us: an exchange whose partner never arrives does not end by itself, and
 * whoever aborts the group must be heard.
 *
 * A wait on a device that failed still waits for what is queued, but not forever, and returns the failure. */
#include <errno.h>
#include <stdio.h>

#include "kernels/cuda/cuda.h"

#define FIRST_SLEEP_NS   2000u
#define LONGEST_SLEEP_NS 200000u
#define DRAIN_NS                                                                                             \
    2000000000u /* for what is queued on a device that failed: it usually ends, and its memory is about to   \
                   be freed */
#define LOOK_EVERY_NS 20000000u /* at NCCL's own errors */

static CUresult query(mri_cuda_device *dev, CUstream stream, CUevent event)
{
    return event ? dev->api->cuEventQuery(event) : dev->api->cuStreamQuery(stream);
}

static void sleep_ns(uint64_t ns)
{
    struct timespec t = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    while (nanosleep(&t, &t) != 0 && errno == EINTR) {
    }
}

static int poll_until(mri_cuda_device *dev, CUstream stream, CUevent event, uint64_t timeout_ns,
                      const char *what, mr_error *err)
{
    const uint64_t start = mri_now_ns();
    uint64_t until = timeout_ns > MR_FOREVER - start ? MR_FOREVER : start + timeout_ns, nap = FIRST_SLEEP_NS,
             looked = start;
    for (;;) {
        const CUresult code = query(dev, stream, event);
        if (code != CUDA_ERROR_NOT_READY) return mri_cuda_check(dev, code, what, err);
        const uint64_t now = mri_now_ns();
        if (dev->failed && until > now + DRAIN_NS) until = now + DRAIN_NS;
        if (now >= until) return MR_EAGAIN;
        if (now - looked >= LOOK_EVERY_NS) {
            mri_cuda_group_look(dev);
            looked = now;
        }
        sleep_ns(mri_min_u64(nap, until - now));
        nap = mri_min_u64(nap * 2, LONGEST_SLEEP_NS);
    }
}

int mri_cuda_wait(mri_cuda_device *dev, CUstream stream, CUevent event, uint64_t timeout_ns, const char *what,
                  mr_error *err)
{
    int rc;
    if (timeout_ns != MR_FOREVER || dev->comm_count > 0) {
        rc = poll_until(dev, stream, event, timeout_ns, what, err);
    } else {
        const CUresult code =
            event ? dev->api->cuEventSynchronize(event) : dev->api->cuStreamSynchronize(stream);
        rc = mri_cuda_check(dev, code, what, err);
    }
    const int failed = mri_cuda_failed(dev, err); /* an exchange that was aborted ends, and its results mean
                                                     nothing */
    return failed ? failed : rc;
}

void mri_cuda_drain(mri_cuda_device *dev, CUstream stream)
{
    if (dev->api->cuStreamSynchronize(stream) != CUDA_SUCCESS) /* the call failed, perhaps not the work */
        poll_until(dev, stream, NULL, DRAIN_NS, "finishing a stream", NULL);
}

int mri_cuda_stream_create(mr_stream **out, mr_device *base, mr_stream_role role, mr_error *err)
{
    mri_cuda_device *dev = mri_cuda_device_of(base);
    int rc = mri_cuda_enter(dev, err);
    if (rc) return rc;
    mri_cuda_stream *s = calloc(1, sizeof *s);
    if (!s) return mr_error_set(err, MR_ENOMEM, "%s: no memory for a stream", base->name);
    s->base = (mr_stream){base, role};
    s->doing = "nothing";
    s->record_error = (mr_error)MR_ERROR_INIT;
    int lowest = 0, highest = 0;
    rc = mri_cuda_check(dev, dev->api->cuCtxGetStreamPriorityRange(&lowest, &highest), "creating a stream",
                        err);
    if (!rc)
        rc =
            mri_cuda_check(dev,
                           dev->api->cuStreamCreateWithPriority(&s->handle, CU_STREAM_NON_BLOCKING,
                                                                role == MR_STREAM_COMPUTE ? lowest : highest),
                           "creating a stream", err);
    if (rc) {
        free(s);
        return rc;
    }
    *out = &s->base;
    return MR_OK;
}

void mri_cuda_stream_destroy(mr_stream *base)
{
    mri_cuda_stream *s = (mri_cuda_stream *)base;
    mri_cuda_device *dev = mri_cuda_of_stream(s);
    mri_cuda_enter_anyway(dev);
    if (s->recording) {
        CUgraph graph = NULL;
        if (dev->api->cuStreamEndCapture(s->handle, &graph) == CUDA_SUCCESS && graph)
            dev->api->cuGraphDestroy(graph);
    }
    mri_cuda_drain(dev, s->handle);
    mri_cuda_handles_close(s);
    dev->api->cuStreamDestroy(s->handle);
    free(s);
}

int mri_cuda_stream_sync(mr_stream *base, mr_error *err)
{
    mri_cuda_stream *s = (mri_cuda_stream *)base;
    mri_cuda_device *dev = mri_cuda_of_stream(s);
    mri_cuda_enter_anyway(dev);
    const int rc = mri_cuda_not_recorded(s, "waiting for the stream", err);
    if (rc) return rc;
    char what[128];
    snprintf(what, sizeof what, "waiting for the stream (queued last: %s)", s->doing);
    return mri_cuda_wait(dev, s->handle, NULL, MR_FOREVER, what, err);
}
