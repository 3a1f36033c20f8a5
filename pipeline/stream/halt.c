/* pipeline/stream/halt.c: see halt.h. */
#include "pipeline/stream/halt.h"

#include <assert.h>

void mri_halt_init(mri_halt *h)
{
    *h = (mri_halt){.failure = MR_OK};
    pthread_mutex_init(&h->lock, NULL);
}

void mri_halt_fini(mri_halt *h) { pthread_mutex_destroy(&h->lock); }

void mri_halt_add(mri_halt *h, void (*wake)(void *context), void *context)
{
    assert(h->waiter_count < MRI_HALT_WAITERS);
    h->waiter[h->waiter_count].wake = wake;
    h->waiter[h->waiter_count++].context = context;
}

static void end(mri_halt *h, int code, const mr_error *error)
{
    pthread_mutex_lock(&h->lock);
    if (code != MR_OK && h->failure == MR_OK && !h->over) {
        h->failure = code;
        h->error = *error;
    }
    __atomic_store_n(&h->over, true, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&h->lock);
    for (uint32_t i = 0; i < h->waiter_count; i++) h->waiter[i].wake(h->waiter[i].context);
}

static _Thread_local const mri_halt *served;

void mri_halt_serve(const mri_halt *h) { served = h; }
bool mri_halt_is_served(const mri_halt *h) { return served == h; }

void mri_halt_stop(mri_halt *h) { end(h, MR_OK, NULL); }
void mri_halt_fail(mri_halt *h, int code, const mr_error *error) { end(h, code, error); }

int mri_halt_reason(mri_halt *h, mr_error *err)
{
    pthread_mutex_lock(&h->lock);
    const int failure = h->failure;
    if (err && failure != MR_OK) *err = h->error;
    pthread_mutex_unlock(&h->lock);
    return failure != MR_OK ? failure : mr_error_set(err, MR_ECANCELED, "the loader was stopped");
}
