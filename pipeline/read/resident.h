/* pipeline/read/resident.h: a data set of small samples that lies in memory as a whole. Private.
 *
 *   file 0  | run | run | run |   file 1  | run | run |     read once, before the first sample, by all
 *           readers together
 *               │ large sequential reads, straight into place
 *               ▼
 *   memory  |~~~~~~~~~~~~~~~~~|           |~~~~~~~~~~~|     the files' own layout:
 *                                                           a sample is a pointer, not a request
 *
 * For small samples a request costs more than the pixels. A run that could not be read leaves a hole: samples
 * that touch it are read one by one, so the same samples are bad as without a resident set. Checksums are
 * computed when a sample is first used; a bit per sample remembers that.
 *
 * Threads: runs are handed out and taken back by any number of readers; when mri_resident_done() says so,
 * everything but the bits is fixed, and those are atomic. */
#ifndef MRI_RESIDENT_H
#define MRI_RESIDENT_H

#include "base/util.h"
#include "pipeline/read/reader.h"

typedef struct mri_resident mri_resident;

/* Memory that it takes to hold the source; UINT64_MAX when its samples are files of their own or too large to
 * profit. */
uint64_t mri_resident_bytes(const mr_source *src);

int mri_resident_create(mri_resident **out, const mr_source *src, mr_error *err);
void mri_resident_destroy(mri_resident *r); /* accepts NULL; no run may be with a reader */

/* The next run to read, as a request without owner; false when all are handed out. */
bool mri_resident_next(mri_resident *r, mri_read *out);
/* A run came back, whole or not. True for the last one. */
bool mri_resident_mark_read(mri_resident *r, const mri_read *run);
bool mri_resident_done(const mri_resident *r);

/* Where an extent lies, or NULL: past the end of its file, or in a run that could not be read. */
const uint8_t *mri_resident_at(const mri_resident *r, const mr_extent *e);

/* Did this sample pass its checks before? */
static inline bool mri_resident_is_checked(const uint64_t *bits, uint64_t sample)
{
    return __atomic_load_n(&bits[sample / 64], __ATOMIC_RELAXED) >> (sample % 64) & 1;
}
static inline void mri_resident_mark_checked(uint64_t *bits, uint64_t sample)
{
    __atomic_fetch_or(&bits[sample / 64], UINT64_C(1) << (sample % 64), __ATOMIC_RELAXED);
}
uint64_t *mri_resident_checked_bits(mri_resident *r);

#endif
