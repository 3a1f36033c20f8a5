/* pipeline/cache/cache_memory.c: entries in memory: large blocks filled from the front, freed together. The
 * blocks' sum never passes the budget, so unused bytes at the end of one (less than an entry) are counted
 * too. */
#include <sys/mman.h>

#include "pipeline/cache/cache_store.h"

#define BLOCK_BYTES ((uint64_t)32 << 20)
#define HUGE_PAGE   ((uint64_t)2 << 20)

typedef struct block {
    struct block *next;
    uint8_t *memory;
} block;

struct mri_cache_store {
    pthread_mutex_t lock;
    block *blocks;        /* lock, like all below */
    uint8_t *at;          /* room left of the newest block */
    uint64_t left, taken; /* taken: bytes of all blocks */
};

int mri_cache_memory_open(mri_cache *c, mr_error *err)
{
    c->store = calloc(1, sizeof *c->store);
    if (!c->store) return mr_error_set(err, MR_ENOMEM, "no memory for a cache");
    pthread_mutex_init(&c->store->lock, NULL);
    return MR_OK;
}

void mri_cache_memory_free(mri_cache *c)
{
    for (block *b = c->store->blocks, *next; b; b = next) {
        next = b->next;
        free(b->memory);
        free(b);
    }
    pthread_mutex_destroy(&c->store->lock);
    free(c->store);
}

/* Add a block with room for `bytes`; false: the limit forbids it, or memory is short. */
static bool add_block_locked(mri_cache *c, uint64_t bytes)
{
    mri_cache_store *s = c->store;
    const uint64_t allowed = c->cfg.budget_bytes - s->taken,
                   size = mri_min_u64(allowed, mri_max_u64(bytes, BLOCK_BYTES));
    if (size < bytes) return false;
    block *b = malloc(sizeof *b);
    if (b) b->memory = mri_alloc_aligned(size >= HUGE_PAGE ? HUGE_PAGE : MRI_CACHE_LINE, (size_t)size);
    if (!b || !b->memory) {
        free(b);
        return false;
    }
    if (size >= HUGE_PAGE)
        madvise(b->memory, (size_t)size, MADV_HUGEPAGE); /* visited in random order: see resident.c */
    b->next = s->blocks;
    s->blocks = b;
    s->at = b->memory;
    s->left = size;
    s->taken += size;
    return true;
}

uint8_t *mri_cache_memory_reserve(mri_cache *c, size_t bytes)
{
    mri_cache_store *s = c->store;
    const uint64_t need = mri_align_up(bytes, sizeof(uint64_t));
    uint8_t *at = NULL;
    pthread_mutex_lock(&s->lock);
    if (need <= s->left || add_block_locked(c, need)) {
        at = s->at;
        s->at += need;
        s->left -= need;
    }
    const uint64_t taken = s->taken;
    pthread_mutex_unlock(&s->lock);
    if (!at)
        mri_cache_note(c, MRI_NOTE_FULL,
                       "the cache is full with %llu of %llu samples (%llu MiB); the rest is read from the "
                       "data in every epoch",
                       (unsigned long long)mri_cache_counts_of(c).entries, (unsigned long long)c->cfg.count,
                       (unsigned long long)(taken >> 20));
    return at;
}
