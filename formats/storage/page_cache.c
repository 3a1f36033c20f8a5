/* formats/storage/page_cache.c: see page_cache.h. */
#include "formats/storage/page_cache.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

typedef struct slot {
    pthread_mutex_t lock;
    uint64_t number; /* lock; page + 1, 0: empty */
    uint8_t bytes[MRI_CACHE_PAGE_BYTES];
} slot;

struct mri_page_cache { /* fixed after create, but for the slots */
    uint32_t count;
    slot slot[];
};

uint64_t mri_page_cache_memory(uint32_t pages) { return sizeof(mri_page_cache) + pages * sizeof(slot); }

int mri_page_cache_create(mri_page_cache **out, uint32_t pages, mr_error *err)
{
    mri_page_cache *c = calloc(1, (size_t)mri_page_cache_memory(pages));
    *out = NULL;
    if (!c) return mr_error_set(err, MR_ENOMEM, "no memory for a cache of %u pages", pages);
    c->count = pages;
    for (uint32_t k = 0; k < pages; k++)
        pthread_mutex_init(&c->slot[k].lock, NULL); /* plain ones never fail */
    *out = c;
    return MR_OK;
}

void mri_page_cache_destroy(mri_page_cache *c)
{
    if (!c) return;
    for (uint32_t k = 0; k < c->count; k++) pthread_mutex_destroy(&c->slot[k].lock);
    free(c);
}

static bool copy_from(slot *s, uint64_t page, size_t at, void *out, size_t bytes)
{
    pthread_mutex_lock(&s->lock);
    const bool found = s->number == page + 1;
    if (found) memcpy(out, s->bytes + at, bytes);
    pthread_mutex_unlock(&s->lock);
    return found;
}

int mri_page_cache_get(mri_page_cache *c, uint64_t page, size_t at, void *out, size_t bytes,
                       mri_page_fill *fill, const void *context, mr_error *err)
{
    slot *s = &c->slot[mri_mix64(page) & (c->count - 1)];
    if (copy_from(s, page, at, out, bytes)) return MR_OK;
    uint8_t read[MRI_CACHE_PAGE_BYTES];
    const int rc = fill(context, page, read, err);
    if (rc) return rc;
    memcpy(out, read + at, bytes);
    pthread_mutex_lock(&s->lock);
    memcpy(s->bytes, read, sizeof read);
    s->number = page + 1;
    pthread_mutex_unlock(&s->lock);
    return MR_OK;
}
