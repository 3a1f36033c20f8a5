/* pipeline/stream/shelf.c: see shelf.h. */
#include "pipeline/stream/shelf.h"

#include <pthread.h>

struct mri_shelf {
    uint32_t count;       /* fixed */
    pthread_mutex_t lock; /* all below */
    uint32_t free_count;
    bool closed;
    mri_slots slots; /* with closed */
    mri_slot *free_slot[];
};

int mri_shelf_create(mri_shelf **out, mri_slot *spare, uint32_t count)
{
    mri_shelf *s = calloc(1, sizeof *s + count * sizeof *s->free_slot);
    *out = s;
    if (!s) return MR_ENOMEM;
    s->count = s->free_count = count;
    for (uint32_t i = 0; i < count; i++) s->free_slot[i] = &spare[i];
    pthread_mutex_init(&s->lock, NULL);
    return MR_OK;
}

static void destroy(mri_shelf *s)
{
    mri_slots_fini(&s->slots);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

void mri_shelf_close(mri_shelf *s, mri_slots *slots)
{
    if (!s) {
        mri_slots_fini(slots);
        return;
    }
    pthread_mutex_lock(&s->lock);
    s->slots = *slots;
    s->closed = true;
    const bool last = s->free_count == s->count;
    pthread_mutex_unlock(&s->lock);
    if (last) destroy(s);
}

mri_slot *mri_shelf_take(mri_shelf *s)
{
    pthread_mutex_lock(&s->lock);
    mri_slot *slot = s->free_count ? s->free_slot[--s->free_count] : NULL;
    pthread_mutex_unlock(&s->lock);
    return slot;
}

void mri_shelf_return(mri_shelf *s, mri_slot *slot)
{
    pthread_mutex_lock(&s->lock);
    slot->batch = MR_NOWHERE;
    slot->done = false;
    s->free_slot[s->free_count++] = slot;
    const bool last = s->closed && s->free_count == s->count;
    pthread_mutex_unlock(&s->lock);
    if (last) destroy(s);
}

uint32_t mri_shelf_kept(mri_shelf *s)
{
    pthread_mutex_lock(&s->lock);
    const uint32_t kept = s->count - s->free_count;
    pthread_mutex_unlock(&s->lock);
    return kept;
}
