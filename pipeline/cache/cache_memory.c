/* pipeline/cache/cache_memory.c: entries in memory: large blocks filled from the front, freed together. The
 * blocks' sum never passes the budget, so unused bytes at the end of one (less than an entry) are counted
 * too. The pages of a block are huge or small, whichever the system clears faster (page_choice.h).
 *
 *   block   | piece of 2 MiB | piece | piece ...          at: the next entry
 *           | entry | entry | ent ry | entry | at         piece_end: of the pieces whose kind is chosen
 */
#include <sys/mman.h>

#include "base/cpu_time.h"
#include "pipeline/cache/cache_store.h"
#include "pipeline/cache/page_choice.h"

#define BLOCK_BYTES ((uint64_t)32 << 20)
#define HUGE_PAGE   ((uint64_t)2 << 20) /* and a piece */
#define SMALL_PAGE  ((uint64_t)4 << 10)
#define MEASURED                                                                                             \
    ((uint64_t)64 << 10) /* with small pages, entries that do not reach a multiple are not timed */

typedef struct block {
    struct block *next;
    uint8_t *memory;
} block;

struct mri_cache_store {
    pthread_mutex_t lock;
    block *blocks;        /* lock, like all below */
    uint8_t *at;          /* room left of the newest block */
    uint64_t left, taken; /* taken: bytes of all blocks */
    uint8_t *piece_end;
    bool huge; /* the kind of the pages before piece_end */
    mri_page_choice choice;
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
    b->next = s->blocks;
    s->blocks = b;
    s->at = b->memory;
    s->left = size;
    s->taken += size;
    s->piece_end = size >= HUGE_PAGE ? b->memory : b->memory + size;
    s->huge = false;
    return true;
}

/* Memory that one caller took and nobody has written yet. */
typedef struct fresh {
    uint8_t *at, *end;
    bool huge; /* its pages */
} fresh;

/* The pages of an entry at s->at that are new, after choosing their kind. */
static fresh fresh_locked(mri_cache_store *s, uint64_t bytes)
{
    fresh f = {s->at, s->at + bytes, s->huge};
    if (f.end <= s->piece_end) return f;
    if (f.at < s->piece_end) f.at = s->piece_end;
    const uint64_t pieces = mri_min_u64(mri_align_up((uint64_t)(f.end - s->piece_end), HUGE_PAGE),
                                        (uint64_t)(s->at + s->left - s->piece_end));
    f.huge = s->huge = mri_page_choice_next(&s->choice);
    madvise(s->piece_end, (size_t)pieces, s->huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE); /* a wish */
    s->piece_end += pieces;
    return f;
}

/* Has the system clear the pages that begin in f, which the entry would do as well, and measures the time. */
static void clear(mri_cache_store *s, fresh f)
{
    const uint64_t page = f.huge ? HUGE_PAGE : SMALL_PAGE, at = (uint64_t)(uintptr_t)f.at,
                   bytes = (uint64_t)(f.end - f.at);
    uint64_t skip = mri_align_up(at, f.huge ? HUGE_PAGE : MEASURED) - at, cleared = 0;
    if (skip >= bytes) return;
    const uint64_t start = mri_thread_ran_ns();
    for (skip = mri_align_up(at, page) - at; skip < bytes; skip += page, cleared += page)
        *(volatile uint8_t *)(f.at + skip) = 0;
    const uint64_t ns = mri_thread_ran_ns() - start;
    pthread_mutex_lock(&s->lock);
    mri_page_choice_note(&s->choice, f.huge, cleared, ns);
    pthread_mutex_unlock(&s->lock);
}

uint8_t *mri_cache_memory_reserve(mri_cache *c, size_t bytes)
{
    mri_cache_store *s = c->store;
    const uint64_t need = mri_align_up(bytes, sizeof(uint64_t));
    uint8_t *at = NULL;
    fresh f = {0};
    pthread_mutex_lock(&s->lock);
    if (need <= s->left || add_block_locked(c, need)) {
        at = s->at;
        f = fresh_locked(s, need);
        s->at += need;
        s->left -= need;
    }
    const uint64_t taken = s->taken;
    pthread_mutex_unlock(&s->lock);
    if (at) clear(s, f);
    else
        mri_cache_note(c, MRI_NOTE_FULL,
                       "the cache is full with %llu of %llu samples (%llu MiB); the rest is read from the "
                       "data in every epoch",
                       (unsigned long long)mri_cache_counts_of(c).entries, (unsigned long long)c->cfg.count,
                       (unsigned long long)(taken >> 20));
    return at;
}
