/* pipeline/stream/locate.h: where the bytes of a chunk's samples are: in the cache, in a resident set, or at
 * an extent of a file that must be read. Private.
 *
 * Callers: whoever reads (may_read), and whoever decodes when nothing is left to read. Any thread, each with
 * its own chunk. */
#ifndef MRI_LOCATE_H
#define MRI_LOCATE_H

#include "pipeline/cache/cache.h"
#include "pipeline/order/batches.h"
#include "pipeline/read/resident.h"
#include "pipeline/stream/chunk.h"

/* Extents that touch or nearly touch are read at once: the gap costs less than another request. */
#define MRI_MERGE_GAP_BYTES 4096

typedef struct mri_locator { /* fixed */
    const mri_batches *batches;
    const mr_source *source;
    const mri_cache *cache;       /* or NULL */
    const mri_resident *resident; /* or NULL */
    size_t chunk_room;
    bool direct; /* O_DIRECT: reads take whole blocks */
} mri_locator;

/* Find its samples (with length windows their list is made first, or waited for), make room, prepare its
 * reads (neighbours become one read). Without may_read all data should be in memory; the worker reads the
 * rest. */
int mri_locate(const mri_locator *l, mri_chunk *c, bool may_read, mr_error *err);

#endif
