/* millrace/pages.h: the pages of a data set's files in the system's page cache, for measurements: have them
 * in memory before a run, or have them out of it, and the bytes that storage delivered. */
#ifndef MILLRACE_PAGES_H
#define MILLRACE_PAGES_H

#include "millrace/formats.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Memory that programs could take without swapping, page cache included, and all memory of the machine, in
 * bytes; 0: unknown. Any thread. */
MR_API uint64_t mr_pages_memory_available(void);
MR_API uint64_t mr_pages_memory_total(void);

/* Bytes that the kernel has read from storage for this process so far; negative: unknown. Any thread. */
MR_API double mr_pages_storage_bytes(void);

/* Read every file of src once, so that its pages are in memory if memory has room. A file that cannot be read
 * is left to the loader. stop: NULL, or MR_ECANCELED soon after *stop becomes nonzero. Blocks. */
MR_API int mr_pages_fill(const mr_source *src, const volatile int *stop, mr_error *err);

/* Ask the kernel to drop the clean pages of every file of src (POSIX_FADV_DONTNEED). It may keep them. Any
 * thread. stop as above. */
MR_API int mr_pages_drop(const mr_source *src, const volatile int *stop, mr_error *err);

/* Drop the pages of src, then read its files from their beginning in this thread, for about `seconds`
 * seconds. Returns bytes per second; NaN: unknown, or the kernel had the pages in memory all the same. */
MR_API double mr_pages_storage_rate(const mr_source *src, double seconds, const volatile int *stop);

/* Return true if every file of src can be read past the page cache (O_DIRECT, mr_loader_config.direct). False
 * if each sample is a file. */
MR_API bool mr_pages_direct_ok(const mr_source *src);

/* A thread that drops all pages of src whenever a quarter of the samples was read, so that each epoch reads
 * from storage. samples_read(context) returns the number of samples read so far; this thread calls it. src
 * must outlive the handle.
 *
 * MR_EINVAL  samples_read is NULL
 * MR_ENOMEM  no memory or thread */
typedef struct mr_page_dropper mr_page_dropper;
typedef uint64_t mr_samples_read(void *context);
MR_API int mr_page_dropper_start(mr_page_dropper **out, const mr_source *src, mr_samples_read *samples_read,
                                 void *context, mr_error *err);
MR_API void mr_page_dropper_stop(mr_page_dropper *d); /* accepts NULL */

#ifdef __cplusplus
}
#endif

#endif
