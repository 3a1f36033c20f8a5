/* kernels/cuda/host/cuda_graph.c: a stretch of work recorded from a stream and run again as a whole.
 *
 * Recorded with the relaxed mode: other threads go on allocating, copying and asking for events meanwhile;
 * these calls do not touch the recording stream. A call in between that fails does not harm the device:
 * mr_graph_end() reports it and leaves the stream as if nothing had been recorded. */
#include "kernels/cuda/host/gpu.h"

struct cuda_graph {
    mr_graph base;
    CUgraphExec exec;
};

static int graph_begin(mr_stream *base)
{
    mri_cuda_stream *s = (mri_cuda_stream *)base;
    mri_cuda_device *dev = mri_cuda_of_stream(s);
    cublasHandle_t cublas;
    cudnnHandle_t cudnn;
    mr_error err = MR_ERROR_INIT;
    if (s->recording) return MR_EINVAL;
    int rc = mri_cuda_enter(dev, &err);
    if (!rc)
        rc = mri_cuda_cublas(s, &cublas, &err); /* making one synchronises, which a stream that records must
                                                   not */
    if (!rc) rc = mri_cuda_cudnn(s, &cudnn, &err);
    if (!rc)
        rc = mri_cuda_check(dev, dev->api->cuStreamBeginCapture(s->handle, CU_STREAM_CAPTURE_MODE_RELAXED),
                            "recording", &err);
    if (rc) return mri_cuda_keep_error(s, rc, "recording", &err);
    s->record_error = (mr_error)MR_ERROR_INIT;
    s->recording = true;
    return MR_OK;
}

/* *out is the recorded graph; NULL when recording failed. */
static int end_capture(mri_cuda_stream *s, CUgraph *out, mr_error *err)
{
    mri_cuda_device *dev = mri_cuda_of_stream(s);
    *out = NULL;
    s->recording = false;
    const CUresult code = dev->api->cuStreamEndCapture(s->handle, out);
    if (code != CUDA_SUCCESS) *out = NULL;
    if (s->record_error.code) {
        if (err) *err = s->record_error;
        return s->record_error.code;
    }
    if (code == CUDA_SUCCESS && !*out)
        return mr_error_set(err, MR_EDEVICE, "%s: recording came to nothing", dev->base.name);
    return mri_cuda_check(dev, code, "ending a recording", err);
}

static int graph_end(mr_stream *base, mr_graph **out, mr_error *err)
{
    mri_cuda_stream *s = (mri_cuda_stream *)base;
    mri_cuda_device *dev = mri_cuda_of_stream(s);
    if (!s->recording)
        return mr_error_set(err, MR_EINVAL, "%s: nothing is being recorded", base->device->name);
    mri_cuda_enter_for_cleanup(dev);
    CUgraph graph;
    int rc = end_capture(s, &graph, err);
    if (!rc) rc = mri_cuda_failed(dev, err);
    struct cuda_graph *g = rc ? NULL : calloc(1, sizeof *g);
    if (!rc && !g) rc = mr_error_set(err, MR_ENOMEM, "%s: no memory for a graph", dev->base.name);
    if (!rc)
        rc = mri_cuda_check(dev, dev->api->cuGraphInstantiate(&g->exec, graph, 0), "preparing a graph", err);
    if (graph) dev->api->cuGraphDestroy(graph);
    if (rc) {
        free(g);
        return rc;
    }
    g->base.device = base->device;
    *out = &g->base;
    return MR_OK;
}

static int graph_launch_async(mr_graph *base, mr_stream *stream)
{
    struct cuda_graph *g = (struct cuda_graph *)base;
    mri_cuda_stream *s = (mri_cuda_stream *)stream;
    mri_cuda_device *dev = mri_cuda_of_stream(s);
    mr_error err = MR_ERROR_INIT;
    int rc = mri_cuda_enter(dev, &err);
    if (!rc) rc = mri_cuda_not_recorded(s, "a graph", &err);
    if (!rc) rc = mri_cuda_check(dev, dev->api->cuGraphLaunch(g->exec, s->handle), "graph", &err);
    return mri_cuda_queued(s, rc, "graph", &err);
}

static void graph_destroy(mr_graph *base)
{
    struct cuda_graph *g = (struct cuda_graph *)base;
    mri_cuda_device *dev = mri_cuda_device_of(base->device);
    mri_cuda_enter_for_cleanup(dev);
    dev->api->cuGraphExecDestroy(g->exec);
    free(g);
}

const struct mri_graph_calls mri_cuda_graphs = {
    .begin = graph_begin, .end = graph_end, .launch_async = graph_launch_async, .destroy = graph_destroy};
