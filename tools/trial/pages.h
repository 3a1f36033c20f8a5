/* tools/trial/pages.h: the pages of a data set's files in the system's page cache: to have them there before
 * a run, or to have them gone; and what storage really gave, as the kernel counts it. */
#ifndef TRIAL_PAGES_H
#define TRIAL_PAGES_H

#include "millrace/formats.h"

/* Memory that programs could take without swapping, page cache included, and all memory of the machine; 0:
 * unknown. */
uint64_t pages_memory_available(void);
uint64_t pages_memory_total(void);

/* Read every file once, so that its pages are there if memory has room. MR_ECANCELED after Ctrl-C. */
int pages_fill(const mr_source *src, mr_error *err);
/* Ask the kernel to drop the clean pages of every file (POSIX_FADV_DONTNEED). It need not. Any thread. */
int pages_drop(const mr_source *src, mr_error *err);
/* Bytes a second when the files are read from their begin in one thread, for about so long, with their pages
 * dropped before; NAN: not known, or the kernel had them in memory all the same. */
double pages_storage_rate(const mr_source *src, double seconds);
/* Could every file be read past the cache (O_DIRECT)? False where each sample is a file. */
bool pages_direct_ok(const mr_source *src);

/* Bytes that this process had brought from storage so far; -1: the kernel does not say. */
double pages_storage_bytes(void);

/* A thread that drops all pages again whenever a quarter of the set was read, for runs of more than one
 * epoch. */
typedef struct page_dropper page_dropper;

/* samples_read(context) is called from that thread. NULL: it could not be started. */
page_dropper *page_dropper_start(const mr_source *src, uint64_t (*samples_read)(void *context),
                                 void *context);
void page_dropper_stop(page_dropper *d); /* accepts NULL */

#endif
