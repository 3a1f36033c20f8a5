/* pipeline/stream/loader_private.h: the loader's inside, shared by its files. Private.
 *
 *             claims a chunk           one task = one chunk            in batch order           at most two
 *                                      ahead
 *  readers ───────────────► buffers ───────────────► workers ───────► host slots ──► stager ──► device slots ──► consumer
 *     ▲  (chunk pool bounds it)      (work queue)               (ring of slot_count)       (copy stream each)       │
 *     └───────────── a slot is free again when its copies are over (or its batch was released) ◄────────────────────┘
 *
 * The unit of work is a chunk: up to chunk_samples neighbouring positions of one batch, so that small samples
 * do not pay for a lock each. Batches are numbered without gaps over all epochs (`batch` below); batch b
 * lives in host slot b % slot_count and device slot b % device_slots.
 *
 *   next_batch, next_first   the next position to claim          (lock)
 *   staged                   batches < staged are in device memory or on their way there behind an event
 *   copied                   the copies of batches < copied are over
 *   taken, released          the consumer's: handed out, given back
 *   freed                    host slots of batches < freed are free again: copied, or released without
 *                            devices, or the smaller of both with keep_host
 *
 * One lock for all of it: it is taken a few times per chunk and per batch, never per sample, and never held
 * across I/O, decoding, a device call or a callback. Every wait ends when `stopped` is set.
 *
 * Prefetch off is the same code with no threads: mr_loader_next() claims, reads, works and copies chunk by
 * chunk. */
#ifndef MRI_LOADER_PRIVATE_H
#define MRI_LOADER_PRIVATE_H

#include "base/util.h"
#include "pipeline/augment/augment.h"
#include "pipeline/cache/cache.h"
#include "pipeline/fields/fields.h"
#include "pipeline/order/sampler.h"
#include "pipeline/order/windows.h"
#include "pipeline/read/reader.h"
#include "pipeline/read/resident.h"

typedef struct mri_chunk_sample {
    uint64_t sample;
    uint32_t read;         /* which of the chunk's reads brings it, or one of the two below */
    size_t at, bytes;      /* inside that read's data */
    const uint8_t *memory; /* its bytes, where they are in memory already */
    bool padding;
    bool cached;     /* the bytes are the cache's entry, not the source's */
    uint64_t offset; /* of an entry on disk */
} mri_chunk_sample;

#define MRI_NO_READ   UINT32_MAX       /* its place could not be told */
#define MRI_IN_MEMORY (UINT32_MAX - 1) /* or should have been, and is read by the worker */

/* Extents that touch or nearly touch are read at once: the gap costs less than another request. */
#define MRI_MERGE_GAP_BYTES 4096

typedef struct mri_slot mri_slot;

typedef struct mri_chunk {
    struct mri_chunk *next;
    mri_slot *slot;
    uint64_t batch;
    uint32_t first, count; /* places in the batch */
    uint8_t *fixed;        /* its piece of the registered arena */
    uint8_t *grown;        /* a larger private buffer, once it was needed */
    size_t grown_bytes;
    mri_read *reads;
    uint32_t read_count, reads_left;
    mri_chunk_sample *samples;
    uint64_t start_ns;
} mri_chunk;

/* One host batch. Written by workers at disjoint places, read after `done`. */
struct mri_slot {
    uint64_t batch;
    uint32_t count;
    uint32_t remaining; /* lock: samples not yet in place */
    bool done;          /* lock */
    uint8_t *pixels;
    int32_t *labels;
    float *affine;
    uint64_t *ids;
    mri_rows rows[MR_LOADER_MAX_FIELDS]; /* their widths: written by who puts the last sample in place, before
                                            done */
};

typedef struct mri_stage_counter { /* atomics, relaxed: sums of all threads of a stage */
    uint64_t busy_ns, blocked_in_ns, blocked_out_ns, items;
    uint64_t fill_sum, fill_samples; /* queue fill in 1/65536, to average */
} mri_stage_counter;

/* Device side of one replica: device_slots sets of buffers, one copy stream. See staging.c. */
typedef struct mri_replica_stage mri_replica_stage;

/* What a worker thread (or the consumer, prefetch off) owns. */
typedef struct mri_worker {
    mr_loader *loader;
    mri_scratch *scratch;
    void *spare; /* substitutes are read into it */
    size_t spare_bytes;
    void *maker; /* of the cache's form of a sample */
    mri_field_scratch fields;
    uint64_t cache_hits; /* not yet added to the loader's */
    char track[16];
} mri_worker;

typedef struct mri_reader_seat {
    mr_loader *loader;
    uint32_t number;
} mri_reader_seat;

struct mr_loader {
    mr_loader_config cfg; /* fixed after open, like all down to the lock */
    mr_loader_info info;
    const mr_source *source;
    const mr_source_info *source_info;
    mr_augment *augment;
    mr_io io;
    char io_note[160];
    uint64_t first_batch, end_batch;
    size_t sample_bytes; /* pixels of one sample; 0: the source has no pictures */
    mri_fields fields;
    uint32_t chunk_samples, chunk_count;
    size_t chunk_room; /* bytes of a chunk's piece of the arena */
    uint32_t slot_count, device_slots;
    bool threads;        /* prefetch on */
    bool free_order;     /* and asked for */
    bool io_told;        /* atomic */
    bool wants_resident; /* the plan: the set will lie in memory */
    mri_resident *resident;
    const mri_cache_form *cache_form;
    mri_cache *cache;     /* NULL: none */
    mri_windows *windows; /* NULL: batches are cut from the order as it is */

    uint8_t *arena; /* chunk_count * chunk_room, registered with the readers' rings */
    void **arena_pieces;
    mri_chunk *chunks;
    mri_read *chunk_reads;
    mri_chunk_sample *chunk_sample_lists;
    mri_slot *slots;
    mri_slot **ring; /* slots in order of batches; changes with free_order only (lock) */
    void *slot_memory;
    mri_reader **readers;
    mri_worker *workers;
    pthread_t *reader_threads, *worker_threads, stager_thread;
    mri_reader_seat *reader_seats;
    uint32_t reader_started, worker_started; /* threads to join */
    bool stager_started;
    mri_replica_stage *stages;
    uint32_t *counted_ring; /* lock: samples with a label of batches filled and not yet taken */
    mr_part *host_parts;    /* slot_count sets of info.parts, without devices */

    pthread_mutex_t lock;
    pthread_cond_t room, work, done, staged_cond, returned;
    bool stopped;    /* lock: no wait goes on */
    bool self_serve; /* lock: nothing is left to read: workers claim chunks themselves, readers are done */
    int failure;     /* lock: first error, MR_OK while all is well */
    mr_error failure_error;                          /* lock */
    mri_chunk *free_chunks, *work_head, *work_tail;  /* lock */
    uint32_t work_count;                             /* lock */
    uint64_t next_batch;                             /* lock */
    uint32_t next_first;                             /* lock */
    uint64_t freed, staged, copied, taken, released; /* lock; taken is written by the consumer only */
    pthread_mutex_t bad_lock;                        /* one bad sample or note is told at a time */

    mri_stage_counter read_stage, decode_stage, copy_stage; /* atomic */
    uint64_t wait_ns, batches_out, samples_out;             /* atomic */
    uint64_t bytes_copied[MR_LOADER_MAX_PARTS];             /* atomic */
    uint64_t bad_samples, replaced, skipped;                /* atomic */
    uint64_t cache_hits;                                    /* atomic */
    uint64_t *bad_known;      /* damaged samples met, in order of number; bad_lock */
    uint64_t bad_known_count; /* bad_lock */
    uint64_t reads, reads_short, reads_again, bytes_read; /* atomic, added up by readers */
};

static inline void mri_count(uint64_t *counter, uint64_t by)
{
    __atomic_fetch_add(counter, by, __ATOMIC_RELAXED);
}
static inline uint64_t mri_counted(const uint64_t *counter)
{
    return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

static inline uint32_t *mri_counted_of(const mr_loader *l, uint64_t batch)
{
    return &l->counted_ring[batch % (l->slot_count + l->device_slots)];
}

/* ---- loader.c ---- */
/* Keep the first error and end every wait. */
void mri_loader_fail(mr_loader *l, int code, const mr_error *err);
void mri_loader_stop_locked(mr_loader *l);
bool mri_loader_is_stopped(mr_loader *l);
/* Part r of a batch of count samples: [first, first + number). */
void mri_part_bounds(const mr_loader *l, uint32_t count, uint32_t r, uint32_t *first, uint32_t *number);
/* Global batch number -> epoch and step; samples in it. */
void mri_batch_place(const mr_loader *l, uint64_t batch, uint64_t *epoch, uint64_t *step);
uint32_t mri_batch_count(const mr_loader *l, uint64_t batch);
/* Wait on cond until stopped or something else; adds the time to counter. */
void mri_loader_wait_locked(mr_loader *l, pthread_cond_t *cond, uint64_t *blocked_ns);
/* From now on every sample comes from memory. */
void mri_loader_self_serve(mr_loader *l);
/* After copied or released moved: give host slots back. */
void mri_loader_free_slots_locked(mr_loader *l);

/* ---- peek.c ---- */
/* Size of the first picture, for data whose format does not say that all pictures have one size. */
int mri_peek_size(const mr_loader *l, uint32_t *h, uint32_t *w, mr_error *err);

/* ---- budget.c ---- */
/* Decide chunks; MR_ELIMIT when what the loader may come to hold is over the budget. */
int mri_plan_memory(mr_loader *l, mr_error *err);
uint64_t mri_slot_bytes(const mr_loader *l);

/* ---- chunk.c ---- */
/* The lock is held: is there one, and take it. */
bool mri_chunk_can_claim_locked(const mr_loader *l);
mri_chunk *mri_chunk_claim_locked(mr_loader *l);
/* Take the next chunk of work. NULL: nothing to claim now (block false), nothing left at all (*ended), or
 * stopped. */
mri_chunk *mri_chunk_claim(mr_loader *l, bool block, bool *ended);
/* Find its samples (with windows of lengths their list is made first, or waited for), make room, prepare its
 * reads (neighbours become one read). Without may_read all should be in memory, and what is not is left to
 * the worker. */
int mri_chunk_plan(mr_loader *l, mri_chunk *c, bool may_read, mr_error *err);
/* Samples are in place: count them off the slot, give the chunk back. */
void mri_chunk_finish(mr_loader *l, mri_chunk *c);

/* ---- work.c ---- */
int mri_worker_init(mri_worker *w, mr_loader *l, uint32_t number);
void mri_worker_fini(mri_worker *w);
/* Decode every sample of a chunk into its place. */
int mri_chunk_work(mri_worker *w, mri_chunk *c, mr_error *err);

/* ---- threads.c ---- */
void *mri_reader_main(void *seat);
void *mri_worker_main(void *worker);
/* Prefetch off: fill the slot of the next batch in the caller's thread. */
int mri_fill_inline(mr_loader *l, mr_error *err);

/* ---- staging.c ---- */
int mri_stages_open(mr_loader *l, mr_error *err);
void mri_stages_close(mr_loader *l);
/* Copy a filled slot to the devices: queue, publish, wait until the copies are over. */
int mri_stage_batch(mr_loader *l, uint64_t batch, mr_error *err);
void *mri_stager_main(void *loader);
/* The consumer is done with a batch on these streams. */
int mri_stages_consumed(mr_loader *l, uint64_t batch, mr_stream *const *streams, mr_error *err);
/* The parts of a staged batch; valid until it is released. */
const mr_part *mri_stages_parts(const mr_loader *l, uint64_t batch);

#endif
