/* kernels/cuda/host/cuda_clock.c: the GPU's clock on the host's: when events happened.
 *
 * A GPU reports only the time between two events, as a float of milliseconds: exact to 31 ns within a second,
 * to 4 us within a minute. So there are anchors, events of the house stream whose time on the host's clock is
 * known, a new one every second while events are recorded:
 *
 *      anchor 0 ────────► anchor 1 ────────► anchor 2      known: the one before + elapsed
 *         └── elapsed ──► e    └── elapsed ──► f           an event's time: from the newest anchor that is
 *                                                          not after it
 *
 * An anchor is queued by mr_event_record() and its time settled when somebody asks for a time, so nothing
 * waits for it. Times of one device are in the order in which things happened: rounding never takes an event
 * across an anchor. The first anchor is set on CLOCK_MONOTONIC when the device is opened, to half the time
 * that a record and a wait take (some microseconds); from there on the two clocks drift apart as crystals do,
 * a few microseconds a second at worst. An event whose time is asked later than the anchors reach back (3 s)
 * is as exact as a float allows. */
#include <math.h>

#include "kernels/cuda/host/gpu.h"

#define ANCHOR_EVERY_NS 1000000000u

/* Record on the idle house stream and wait, a few times: the shortest wait gives the most accurate time. */
static int align_first(mri_cuda_device *dev, mr_error *err)
{
    uint64_t shortest = UINT64_MAX;
    for (uint32_t i = 0; i < MRI_CUDA_ANCHORS; i++) {
        const uint64_t before = mri_now_ns();
        int rc = mri_cuda_check(dev, dev->api->cuEventRecord(dev->anchors.event[i], dev->house),
                                "setting the clock", err);
        if (!rc)
            rc = mri_cuda_check(dev, dev->api->cuEventSynchronize(dev->anchors.event[i]), "setting the clock",
                                err);
        if (rc) return rc;
        const uint64_t took = mri_now_ns() - before;
        if (took >= shortest) continue;
        shortest = took;
        const CUevent best = dev->anchors.event[i]; /* the first anchor is number 0 */
        dev->anchors.event[i] = dev->anchors.event[0];
        dev->anchors.event[0] = best;
        dev->anchors.ns[0] = before + took / 2;
        dev->anchored_ns = before;
    }
    dev->anchors.count = 1;
    return MR_OK;
}

int mri_cuda_anchors_open(mri_cuda_device *dev, mr_error *err)
{
    for (uint32_t i = 0; i < MRI_CUDA_ANCHORS; i++) {
        const int rc = mri_cuda_check(dev, dev->api->cuEventCreate(&dev->anchors.event[i], CU_EVENT_DEFAULT),
                                      "creating an event", err);
        if (rc) {
            dev->anchors.event[i] = NULL;
            return rc;
        }
    }
    return align_first(dev, err);
}

void mri_cuda_anchors_close(mri_cuda_device *dev)
{
    struct mri_cuda_anchors *a = &dev->anchors;
    if (a->pending) dev->api->cuEventSynchronize(a->event[a->count % MRI_CUDA_ANCHORS]);
    for (uint32_t i = 0; i < MRI_CUDA_ANCHORS; i++)
        if (dev->anchors.event[i]) dev->api->cuEventDestroy(dev->anchors.event[i]);
}

static uint64_t later_ns(uint64_t anchor_ns, float elapsed_ms)
{
    return (uint64_t)((int64_t)anchor_ns + llround((double)elapsed_ms * 1e6));
}

/* Settle the time of an anchor that is over by now. */
static int settle_locked(mri_cuda_device *dev, mr_error *err)
{
    struct mri_cuda_anchors *a = &dev->anchors;
    if (!a->pending) return MR_OK;
    float elapsed_ms;
    const uint32_t from = (uint32_t)((a->count - 1) % MRI_CUDA_ANCHORS),
                   to = (uint32_t)(a->count % MRI_CUDA_ANCHORS);
    const CUresult code = dev->api->cuEventElapsedTime(&elapsed_ms, a->event[from], a->event[to]);
    if (code == CUDA_ERROR_NOT_READY) return MR_OK;
    if (code != CUDA_SUCCESS) return mri_cuda_check(dev, code, "reading the GPU's clock", err);
    a->ns[to] = later_ns(a->ns[from], elapsed_ms);
    a->count++;
    a->pending = false;
    return MR_OK;
}

static int queue_anchor_locked(mri_cuda_device *dev, mr_error *err)
{
    struct mri_cuda_anchors *a = &dev->anchors;
    const uint64_t now = mri_now_ns();
    if (now - dev->anchored_ns < ANCHOR_EVERY_NS) return MR_OK; /* another thread was here */
    int rc = settle_locked(dev, err);
    if (rc || a->pending) return rc;
    rc = mri_cuda_check(dev, dev->api->cuEventRecord(a->event[a->count % MRI_CUDA_ANCHORS], dev->house),
                        "setting the clock", err);
    if (rc) return rc;
    a->pending = true;
    dev->anchored_ns = now;
    return MR_OK;
}

/* None of these calls waits, so the lock may be held across them. */
int mri_cuda_anchor_renew(mri_cuda_device *dev, mr_error *err)
{
    if (mri_now_ns() - dev->anchored_ns < ANCHOR_EVERY_NS) return MR_OK;
    pthread_mutex_lock(&dev->anchors.lock);
    const int rc = queue_anchor_locked(dev, err);
    pthread_mutex_unlock(&dev->anchors.lock);
    return rc;
}

/* From the newest anchor that is not after the event. */
static int time_locked(mri_cuda_device *dev, CUevent event, uint64_t *out, mr_error *err)
{
    struct mri_cuda_anchors *a = &dev->anchors;
    const int rc = settle_locked(dev, err);
    if (rc) return rc;
    const uint64_t kept = mri_min_u64(a->count, MRI_CUDA_ANCHORS - 1); /* the slot that comes next may be
                                                                          queued already */
    for (uint64_t i = 1; i <= kept; i++) {
        const uint32_t at = (uint32_t)((a->count - i) % MRI_CUDA_ANCHORS);
        float elapsed_ms;
        const CUresult code = dev->api->cuEventElapsedTime(&elapsed_ms, a->event[at], event);
        if (code == CUDA_ERROR_NOT_READY) return MR_EAGAIN;
        if (code != CUDA_SUCCESS) return mri_cuda_check(dev, code, "reading the GPU's clock", err);
        *out = later_ns(a->ns[at], elapsed_ms);
        if (elapsed_ms >= 0) break;
    }
    return MR_OK;
}

int mri_cuda_anchor_time(mri_cuda_device *dev, CUevent event, uint64_t *out, mr_error *err)
{
    pthread_mutex_lock(&dev->anchors.lock);
    const int rc = time_locked(dev, event, out, err);
    pthread_mutex_unlock(&dev->anchors.lock);
    return rc;
}
