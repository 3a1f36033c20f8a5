/* formats/storage/spill.h: bytes that are made while a data set is opened (unpacked, converted) and then read
 * like any other file. Private.
 *
 * They go to an unnamed file: in memory as long as they are few, then in TMPDIR or /var/tmp, to which
 * the bytes in memory are moved. Their number need not be known in advance, and sizes in headers are not
 * trusted. */
#ifndef MRI_SPILL_H
#define MRI_SPILL_H

#include "millrace/base.h"

typedef struct mri_spill {
    int fd; /* -1: not open */
    bool in_memory;
    uint64_t bytes; /* written; those still in buf included */
    uint64_t memory_limit;
    uint64_t looked_at; /* where the disk was last asked for room */
    uint8_t *buf;
    size_t buf_used;
} mri_spill;

/* Memory up to memory_bytes (and 256 MiB). On failure there is nothing to close. */
int mri_spill_open(mri_spill *s, uint64_t memory_bytes, mr_error *err);
/* Optional estimate of the size: when it is too large for memory, the bytes go to disk from the start. */
int mri_spill_expect(mri_spill *s, uint64_t bytes, mr_error *err);
int mri_spill_write(mri_spill *s, const void *data, size_t bytes, mr_error *err);
/* Everything is written: fd can be read. */
int mri_spill_finish(mri_spill *s, mr_error *err);
/* Bytes that it holds in memory. */
uint64_t mri_spill_memory(const mri_spill *s);
void mri_spill_close(mri_spill *s); /* a zeroed or closed one: nothing happens when its fd is -1 */

#endif
