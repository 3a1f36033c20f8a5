/* kernels/cuda/host/cuda_stream.c: streams.
 *
 * Copies and exchanges run on streams of the highest priority, compute on a stream of the lowest: other
 * streams wait for copies and exchanges, which are small and therefore come first. No stream waits for the
 * legacy default stream. */
#include <stdio.h>

#include "kernels/cuda/host/gpu.h"

static int stream_create(mr_stream **out, mr_device *base, mr_stream_role role, mr_error *err)
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

static void stream_destroy(mr_stream *base)
{
    mri_cuda_stream *s = (mri_cuda_stream *)base;
    mri_cuda_device *dev = mri_cuda_of_stream(s);
    mri_cuda_enter_for_cleanup(dev);
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

static int stream_wait(mr_stream *base, uint64_t timeout_ns, mr_error *err)
{
    mri_cuda_stream *s = (mri_cuda_stream *)base;
    mri_cuda_device *dev = mri_cuda_of_stream(s);
    mri_cuda_enter_for_cleanup(dev);
    const int rc = mri_cuda_not_recorded(s, "waiting for the stream", err);
    if (rc) return rc;
    char what[128];
    snprintf(what, sizeof what, "waiting for the stream (queued last: %s)", s->doing);
    return mri_cuda_wait(dev, s->handle, NULL, timeout_ns, what, err);
}

const struct mri_stream_calls mri_cuda_streams = {
    .create = stream_create, .destroy = stream_destroy, .wait = stream_wait};
