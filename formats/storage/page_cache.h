/* formats/storage/page_cache.h: pages of a file that is too large for memory, the last ones kept. Private.
 *
 * A page's number gives its slot in the table; another page of that slot replaces it. Pages are checked when
 * they are read, before anything is copied out. Any thread; no lock is held while a page is read. */
#ifndef MRI_PAGE_CACHE_H
#define MRI_PAGE_CACHE_H

#include "millrace/base.h"

enum { MRI_CACHE_PAGE_BYTES = 4096 };

typedef struct mri_page_cache mri_page_cache;

/* Read page `page` (as given to get()) into out, and check it. */
typedef int mri_page_fill(const void *context, uint64_t page, uint8_t *out, mr_error *err);

/* pages: a power of two. */
int mri_page_cache_create(mri_page_cache **out, uint32_t pages, mr_error *err);
void mri_page_cache_destroy(mri_page_cache *c); /* accepts NULL */
uint64_t mri_page_cache_memory(uint32_t pages);

/* Copy bytes [at, at + bytes) of a page. */
int mri_page_cache_get(mri_page_cache *c, uint64_t page, size_t at, void *out, size_t bytes,
                       mri_page_fill *fill, const void *context, mr_error *err);

#endif
