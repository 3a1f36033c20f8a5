/* pipeline/observe/record.h: how long things took in a run, kept for a replay (replay.h). Private.
 *
 * The newest of each kind, in memory that does not grow: chunks (reading and decoding), batches (copies) and
 * steps. The loader's stages add chunks and batches, the trainer adds steps through the loader. One lock,
 * taken once a chunk, batch and step. Nothing in a run depends on it. */
#ifndef MRI_RECORD_H
#define MRI_RECORD_H

#include "pipeline/observe/causes.h"

/* One chunk. Times that a core was busy, and times that passed without one. */
typedef struct mri_chunk_record {
    uint32_t samples;
    uint32_t reads; /* 0: nothing had to be read */
    uint64_t bytes;
    uint64_t read_ns;        /* from the claim to its last byte */
    uint64_t reader_core_ns; /* of the reader's thread since the chunk before */
    uint64_t ran_ns;         /* the worker on a core */
    uint64_t large_ns;       /* of that, for single slow samples */
    uint64_t blocked_ns;     /* the worker waiting for memory, locks, pages */
    uint64_t delayed_ns;     /* the worker could have run, and others did */
    bool woken;              /* the worker had waited for it */
    uint64_t lag_ns;         /* its bytes were there and the worker free: until it began */
    uint64_t late_ns;        /* of that, it could have run */
} mri_chunk_record;

/* The copies of one batch; of parts the one that took longest. */
typedef struct mri_copy_record {
    uint64_t batch, end_ns, copy_ns;
    uint64_t lag_ns; /* staging could have queued them, and had not been woken or was not done with it */
} mri_copy_record;

typedef struct mri_step_record {
    uint32_t samples;    /* of its batch: the last one of an epoch may be short */
    uint64_t compute_ns; /* from the last replica's start to the last one's end */
    uint64_t gap_ns;     /* the device was free and the batch there: until the step began */
} mri_step_record;

/* The configuration of a loader; sizes of chunks follow from it. */
typedef struct mri_run_shape {
    uint32_t batch, parts, prefetch, workers, readers, depth;
    uint32_t chunk_samples_most; /* however few workers there are */
    bool pairs;                  /* chunks have even numbers of samples */
    bool resident;               /* nothing is left to read */
    bool quota;                  /* of processor time: threads stood still now and then */
} mri_run_shape;

/* Samples of a chunk: at least two chunks a worker in every batch. */
static inline uint32_t mri_shape_chunk_samples(const mri_run_shape *s)
{
    const uint32_t each = (s->batch - 1) / (2 * s->workers) + 1;
    const uint32_t samples = each < s->chunk_samples_most ? each : s->chunk_samples_most;
    return samples + (s->pairs ? samples % 2 : 0);
}

/* Chunks of a loader with prefetch. Resident: no buffers, workers take turns with one chunk per worker. */
static inline uint32_t mri_shape_chunk_count(const mri_run_shape *s)
{
    if (s->resident) return s->workers + 1;
    const uint32_t reading = (s->depth - 1) / mri_shape_chunk_samples(s) + 1;
    return s->readers * (reading > 2 ? reading : 2) + 2 * s->workers;
}

/* All accept NULL and do nothing then. */
uint32_t mri_record_process(const mr_record *r); /* that made it (base/handle.h) */
void mri_record_set_shape(mr_record *r, const mri_run_shape *shape);
void mri_record_chunk(mr_record *r, const mri_chunk_record *c);
void mri_record_copies(mr_record *r, const mri_copy_record *c);
/* start_ns, end_ns: of every replica; causes: the causes of their idle time, added up. */
void mri_record_step(mr_record *r, uint64_t batch, uint32_t samples, const uint64_t *start_ns,
                     const uint64_t *end_ns, uint32_t replicas, const mr_causes *causes);
/* When each part's last step was over; false: no step yet. */
bool mri_record_ended(mr_record *r, uint32_t parts, uint64_t *out);

/* A copy of the record, oldest first; mri_record_data_free() it. Any thread. */
typedef struct mri_record_data {
    mri_run_shape shape;
    mri_chunk_record *chunk;
    mri_copy_record *copy;
    mri_step_record *step;
    size_t chunks, copies, steps;
} mri_record_data;
int mri_record_take(mr_record *r, mri_record_data *out);
void mri_record_data_free(mri_record_data *d);

#endif
