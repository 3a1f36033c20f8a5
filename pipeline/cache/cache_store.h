/* pipeline/cache/cache_store.h: the two stores of entries, memory and disk, and their shared code
 * (cache_store.c). Private to cache*.c: cache.c calls the stores, they call cache_store.c alone. */
#ifndef MRI_CACHE_STORE_H
#define MRI_CACHE_STORE_H

#include <sys/uio.h>

#include "base/util.h"
#include "pipeline/cache/cache.h"

enum { MRI_CACHE_ENTRY_HEAD = 72, MRI_CACHE_PARTS = 4 };

typedef struct mri_cache_store mri_cache_store;

struct mri_cache {
    mri_cache_config cfg; /* fixed after open, like form name, store and arrays' addresses */
    uint64_t entry_max_bytes;
    mri_cache_store *store;
    uint64_t *place; /* atomic: one of the three below, or where the entry is; release by who wrote it */
    uint32_t *bytes; /* atomic: of the entry; written before place */
    bool closed;     /* atomic: offered entries are not kept, because it is full or waits */
    uint64_t entries, used, dropped; /* atomic */
    unsigned reported_notes;         /* atomic: bits */
};

/* No entry lies at an address or offset this low. */
#define MRI_CACHE_NONE    UINT64_C(0)
#define MRI_CACHE_BUSY    UINT64_C(1) /* somebody is making it */
#define MRI_CACHE_REFUSED UINT64_C(2) /* not to be kept: not tried again in this run */

enum { MRI_NOTE_FULL = 1, MRI_NOTE_DAMAGED = 2, MRI_NOTE_SHARED = 4, MRI_NOTE_DISTRUST = 8 };

/* Report to the user, the first time only. */
void mri_cache_note(mri_cache *c, unsigned note, const char *format, ...) MR_PRINTF(3, 4);

/* ---- cache_memory.c ---- */
uint8_t *mri_cache_memory_reserve(mri_cache *c, size_t bytes); /* NULL: no room, reported */
void mri_cache_memory_free(mri_cache *c);
int mri_cache_memory_open(mri_cache *c, mr_error *err);

/* ---- cache_disk.c ---- */
int mri_cache_disk_open(mri_cache *c, mr_error *err);
void mri_cache_disk_close(mri_cache *c);
int mri_cache_disk_fd(const mri_cache *c);
const char *mri_cache_disk_path(const mri_cache *c);
/* Append an entry of `bytes` bytes in pieces; its offset, or MRI_CACHE_NONE: no room, reported. */
uint64_t mri_cache_disk_append(mri_cache *c, uint64_t sample, const struct iovec *parts, int count,
                               uint32_t bytes);

#endif
