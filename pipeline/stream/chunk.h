/* pipeline/stream/chunk.h: the unit of work: up to `samples` neighbouring places of one batch, and the
 * buffers their bytes are read into, so that small samples do not pay for a lock and a request each.
 * Private.
 *
 *   free ──► claimed: ─────► located: which ──────────► read ──► decoded into its slot ──► free
 *            which places    samples, which reads
 *
 * A chunk belongs to one thread at a time; the ring hands it on. */
#ifndef MRI_CHUNK_H
#define MRI_CHUNK_H

#include "pipeline/observe/causes.h"
#include "pipeline/read/reader.h"
#include "pipeline/stream/slot.h"

typedef struct mri_chunk_sample {
    uint64_t sample;
    uint32_t read;         /* which of the chunk's reads brings it, or one of the two below */
    size_t at, bytes;      /* inside that read's data */
    const uint8_t *memory; /* its bytes, where they are in memory already */
    bool padding;
    bool cached;     /* the bytes are the cache's entry, not the source's */
    uint64_t offset; /* of an entry on disk */
} mri_chunk_sample;

#define MRI_NO_READ   UINT32_MAX       /* its extent is unknown */
#define MRI_IN_MEMORY (UINT32_MAX - 1) /* or should have been, and is read by the worker */

typedef struct mri_chunk {
    struct mri_chunk *next;
    mri_slot *slot;
    uint64_t batch;
    uint32_t first, count; /* places in the batch */
    bool listed;           /* its samples stand in slot->ids already */
    uint8_t *fixed;        /* its piece of the registered arena */
    uint8_t *grown;        /* a larger private buffer, once it was needed */
    size_t grown_bytes;
    mri_read *reads;
    uint16_t read_count, reads_left; /* at most one for each sample */
    uint32_t number;                 /* of the chunk */
    mri_chunk_sample *samples;
    uint64_t start_ns;
    uint64_t reader_core_ns; /* recorded: the reader's thread, since the chunk before */
    mri_chunk_times times;
} mri_chunk;

typedef struct mri_chunks {
    uint32_t count, samples; /* of each, at most UINT16_MAX */
    size_t room;             /* bytes of a chunk's piece of the arena */
    mri_chunk *chunk;
    uint8_t *arena; /* count * room, to be registered with readers */
    void **pieces;  /* of it: where each begins */
    mri_read *reads;
    mri_chunk_sample *sample_lists;
} mri_chunks;

/* On failure mri_chunks_fini() is still to be called. */
int mri_chunks_init(mri_chunks *c, uint32_t count, uint32_t samples, size_t room, mr_error *err);
/* keep_buffers: the kernel may still write to them (mri_reader_keeps_buffers()). Accepts a zeroed one. */
void mri_chunks_fini(mri_chunks *c, bool keep_buffers);

/* Room for the chunk's reads: its piece of the arena, or a private buffer that grows. */
int mri_chunk_buffer(mri_chunk *c, size_t fixed_room, size_t bytes, uint8_t **out, mr_error *err);

#endif
