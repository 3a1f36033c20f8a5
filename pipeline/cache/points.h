/* pipeline/cache/points.h: entry points of JPEGs, noted in the first epoch and kept in memory for later ones.
 * Private.
 *
 * A JPEG of a folder or a foreign container has no entry points. The first time that it is decoded they are
 * noted on the way; from then on it is decoded as a record with entry points is. Nothing is evicted: when the
 * budget is used up, the other pictures stay as they are. They change no bit of a batch: they are used only
 * for a JPEG with the bytes they were made of, which a checksum says.
 *
 * Any thread, any function but create and destroy. */
#ifndef MRI_POINTS_H
#define MRI_POINTS_H

#include "base/util.h"
#include "millrace/formats.h"

typedef struct mri_points mri_points;

/* Memory for the entry points of a whole set, about, its index included; UINT64_MAX at most. */
uint64_t mri_points_bytes(const mr_source_info *info);

/* bytes: index and entry points. */
int mri_points_create(mri_points **out, uint64_t count, uint64_t bytes, mr_error *err);
void mri_points_destroy(mri_points *p); /* accepts NULL */

/* Put the entry points of this sample's picture into value->entries. False: none kept, or kept for other
 * bytes. */
bool mri_points_find(const mri_points *p, uint64_t sample, mr_value *value);
/* Keep a copy; value: the JPEG they were made of. */
void mri_points_keep(mri_points *p, uint64_t sample, const mr_value *value, const void *entries,
                     size_t bytes);

typedef struct mri_points_counts {
    uint64_t pictures, bytes;
} mri_points_counts;
mri_points_counts mri_points_counts_of(const mri_points *p);

#endif
