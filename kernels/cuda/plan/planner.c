/* kernels/cuda/plan/planner.c: the cuDNN handle, stream and events that choosing a plan needs.
 *
 * A handle is not to be used by two threads at once, and making one takes milliseconds and device memory. So
 * each GPU has a list of idle ones: whoever chooses takes one, or makes one when none is idle, and puts it
 * back. When the last holder of plans on a GPU is gone, so are they; a device therefore has nothing to close.
 * The stream belongs to the handle: measurements share it with no other work. */
#include "kernels/cuda/plan/planner.h"

struct place {
    struct place *next;
    mri_cuda_device *dev;
    uint64_t holders;
    struct mri_cuda_planner *idle;
};

static pthread_mutex_t places_lock = PTHREAD_MUTEX_INITIALIZER;
static struct place *places; /* places_lock: devices with holders */

static struct place **place_locked(const mri_cuda_device *dev)
{
    struct place **at = &places;
    while (*at && (*at)->dev != dev) at = &(*at)->next;
    return at;
}

int mri_cuda_planner_ref(mri_cuda_device *dev, mr_error *err)
{
    struct place *fresh = calloc(1, sizeof *fresh);
    if (!fresh) return mr_error_set(err, MR_ENOMEM, "conv2d: out of memory");
    pthread_mutex_lock(&places_lock);
    struct place **at = place_locked(dev);
    if (!*at) {
        fresh->dev = dev;
        *at = fresh;
        fresh = NULL;
    }
    (*at)->holders++;
    pthread_mutex_unlock(&places_lock);
    free(fresh);
    return MR_OK;
}

static void planner_free(struct mri_cuda_planner *p)
{
    const struct mri_cuda_api *api = p->dev->api;
    if (p->to) api->cuEventDestroy(p->to);
    if (p->from) api->cuEventDestroy(p->from);
    if (p->handle) api->cudnnDestroy(p->handle);
    if (p->stream) api->cuStreamDestroy(p->stream);
    free(p);
}

void mri_cuda_planner_unref(mri_cuda_device *dev)
{
    pthread_mutex_lock(&places_lock);
    struct place **at = place_locked(dev), *last = *at;
    if (--last->holders > 0) last = NULL;
    else *at = last->next;
    pthread_mutex_unlock(&places_lock);
    if (!last) return;
    for (struct mri_cuda_planner *p = last->idle, *next; p; p = next) {
        next = p->next;
        planner_free(p);
    }
    free(last);
}

static int planner_make(struct mri_cuda_planner **out, mri_cuda_device *dev, mr_error *err)
{
    const struct mri_cuda_api *api = dev->api;
    struct mri_cuda_planner *p = calloc(1, sizeof *p);
    if (!p) return mr_error_set(err, MR_ENOMEM, "conv2d: out of memory");
    p->dev = dev;
    int rc = mri_cuda_check(dev, api->cuStreamCreateWithPriority(&p->stream, CU_STREAM_NON_BLOCKING, 0),
                            "conv2d: a stream to measure on", err);
    if (!rc)
        rc = mri_cuda_check(dev, api->cuEventCreate(&p->from, CU_EVENT_DEFAULT),
                            "conv2d: an event to measure with", err);
    if (!rc)
        rc = mri_cuda_check(dev, api->cuEventCreate(&p->to, CU_EVENT_DEFAULT),
                            "conv2d: an event to measure with", err);
    if (!rc) rc = mri_cuda_check_cudnn(dev, api->cudnnCreate(&p->handle), "cudnnCreate", err);
    if (!rc) rc = mri_cuda_check_cudnn(dev, api->cudnnSetStream(p->handle, p->stream), "cudnnSetStream", err);
    if (rc) planner_free(p);
    else *out = p;
    return rc;
}

int mri_cuda_planner_acquire(struct mri_cuda_planner **out, mri_cuda_device *dev, mr_error *err)
{
    pthread_mutex_lock(&places_lock);
    struct place *here = *place_locked(dev);
    struct mri_cuda_planner *p = here->idle;
    if (p) here->idle = p->next;
    pthread_mutex_unlock(&places_lock);
    if (!p) return planner_make(out, dev, err);
    *out = p;
    return MR_OK;
}

void mri_cuda_planner_release(struct mri_cuda_planner *p)
{
    pthread_mutex_lock(&places_lock);
    struct place *here = *place_locked(p->dev);
    p->next = here->idle;
    here->idle = p;
    pthread_mutex_unlock(&places_lock);
}
