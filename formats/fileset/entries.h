/* formats/fileset/entries.h: offset, bytes and label of each sample of a framed set, in pages: in memory as
 * long as they may be, else in a file. Private.
 *
 *   page    | crc of the rest u32 | entries u32 | number u64 | 204 x entry |     4096 bytes
 *   entry   | offset u64 | bytes u32 | label i64 |                                 20 bytes
 *
 *   add, add, ... ──► pages in memory ── over the limit ──► the caller's file, a run of pages at a time
 *   finish        ──► asked by number: from memory, or by a page that is read, checked and cached
 *
 * Pages are the same in memory and on disk, so a set behaves alike either way: the memory limit decides only
 * where its list lies. Little-endian. After finish() or load() any thread may ask. */
#ifndef MRI_ENTRIES_H
#define MRI_ENTRIES_H

#include "formats/storage/page_cache.h"

enum { MRI_ENTRY_BYTES = 20, MRI_ENTRY_PAGE = 4096, MRI_ENTRY_PAGE_HEAD = 16, MRI_ENTRIES_PER_PAGE = 204 };

#define MRI_NO_LABEL INT64_MIN

typedef struct mri_entry {
    uint64_t offset;
    uint32_t bytes;
    int64_t label; /* as found, offset not subtracted; MRI_NO_LABEL: not known */
} mri_entry;

typedef struct mri_entries_sums { /* of all entries */
    uint64_t total_bytes, max_bytes;
    uint64_t labelled;            /* entries with a label */
    int64_t label_min, label_max; /* of these; both 0 without labels */
    int64_t class_min, class_max; /* of those from 0 to MRI_MAX_CLASSES - 1; MRI_MAX_CLASSES and -1 when none
                                   */
} mri_entries_sums;

typedef struct mri_entries {
    uint64_t count;
    mri_entries_sums sums;
    uint8_t *page;     /* in memory: all pages; on disk: the run being written, NULL when finished */
    uint64_t page_cap; /* pages that there is room for */
    int fd;            /* of the pages on disk; -1: in memory. The caller's */
    uint64_t at;       /* of page 0 in it */
    const char *path;  /* of it, for messages; the caller's */
    mri_page_cache *cache;
} mri_entries;

/* Over the limit: a file to write pages to, and where the first goes. */
typedef int mri_entries_spill(void *context, int *fd, uint64_t *at, const char **path, mr_error *err);

typedef struct mri_entries_room {
    uint64_t memory_bytes; /* pages in memory at most */
    mri_entries_spill *spill;
    void *context;
} mri_entries_room;

static inline uint64_t mri_entries_pages(uint64_t count)
{
    return count / MRI_ENTRIES_PER_PAGE + (count % MRI_ENTRIES_PER_PAGE != 0);
}

void mri_entries_init(mri_entries *e);
void mri_entries_fini(mri_entries *e); /* closes no file */
uint64_t mri_entries_memory(const mri_entries *e);
uint64_t mri_entries_disk_memory(void); /* memory of entries that lie on disk */

int mri_entries_add(mri_entries *e, const mri_entry *one, const mri_entries_room *room, mr_error *err);
int mri_entries_finish(mri_entries *e, mr_error *err);
/* Pages in memory into a file. */
int mri_entries_write(const mri_entries *e, int fd, uint64_t at, const char *path, mr_error *err);

/* count entries whose pages lie in fd; sums are the caller's to know. in_memory: all of them are read and
 * checked now, and fd is needed no more. MR_ECHECKSUM, MR_EFORMAT: not such pages. */
int mri_entries_load(mri_entries *e, int fd, uint64_t at, const char *path, uint64_t count, bool in_memory,
                     mr_error *err);

/* k < count. In memory it cannot fail. */
int mri_entries_get(const mri_entries *e, uint64_t k, mri_entry *out, mr_error *err);

/* From the first to the last, in large reads. */
typedef struct mri_entries_walk {
    const mri_entries *e;
    uint64_t next;
    uint8_t *run; /* pages from disk */
} mri_entries_walk;
void mri_entries_walk_init(mri_entries_walk *w, const mri_entries *e);
int mri_entries_walk_next(mri_entries_walk *w, mri_entry *out, mr_error *err); /* MR_EEND after the last */
void mri_entries_walk_fini(mri_entries_walk *w);

void mri_entries_sums_init(mri_entries_sums *s);
void mri_entries_sums_add(mri_entries_sums *s, const mri_entry *one);

#endif
