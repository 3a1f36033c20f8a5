/* kernels/cuda/host/cuda_wait.c: waiting for queued work, and the end of every call that queues.
 *
 * Waiting: the driver's own wait where nothing else can happen. A device that is in a group polls instead,
 * with sleeps that grow to 200 us: an exchange whose partner never arrives does not end by itself, and
 * whoever aborts the group must be heard.
 *
 * A wait on a failed device still waits for queued work, but not forever, and returns the failure. */
#include <errno.h>

#include "kernels/cuda/host/gpu.h"

#define FIRST_SLEEP_NS   2000u
#define LONGEST_SLEEP_NS 200000u
#define DRAIN_NS                                                                                             \
    2000000000u /* for the work queued on a device that failed: it usually ends, and its memory is about to  \
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
            mri_cuda_comm_poll(dev);
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

int mri_cuda_keep_error(mri_cuda_stream *s, int rc, const char *what, mr_error *err)
{
    if (!rc) return MR_OK;
    if (err->code != rc) mr_error_set(err, rc, "%s: %s failed", s->base.device->name, what);
    if (!s->recording) return mri_cuda_fail(mri_cuda_of_stream(s), err);
    if (!s->record_error.code) s->record_error = *err;
    return rc;
}

int mri_cuda_queued(mri_cuda_stream *s, int rc, const char *what, mr_error *err)
{
    mri_cuda_device *dev = mri_cuda_of_stream(s);
    if (!rc) s->doing = what;
    if (!rc && dev->check_each && !s->recording)
        rc = mri_cuda_wait(dev, s->handle, NULL, MR_FOREVER, what, err);
    return mri_cuda_keep_error(s, rc, what, err);
}

int mri_cuda_not_recorded(mri_cuda_stream *s, const char *what, mr_error *err)
{
    if (!s->recording) return MR_OK;
    return mr_error_set(err, MR_EINVAL, "%s: %s cannot be recorded", s->base.device->name, what);
}
