/* pipeline/account/batches_account.h: what became of each batch, for the causes of waits (observe/causes.h).
 *
 * The room pipeline/account keeps the accounts of a run: of each worker, of each reader, of each batch.
 * Stages call an account when they claim, begin and end something, and decide nothing by it: without accounts
 * a run delivers the same batches. Takes times and counts; gives figures, causes' times, outliers. It knows
 * no stage, no ring and no loader. Private.
 *
 * This account is the ring's. Callers hold the lock of the ring, but where a function says otherwise. */
#ifndef MRI_BATCHES_ACCOUNT_H
#define MRI_BATCHES_ACCOUNT_H

#include "base/cpu_time.h"
#include "pipeline/observe/causes.h"

typedef struct mri_batches_account {
    mri_batch_times *times; /* of batch b at b % kept */
    mri_copy_times *copies; /* the same, for every part */
    uint32_t kept, parts;   /* fixed */
    mri_load load;          /* of the workers */
    mri_load reading;       /* of the readers together */
    mri_cover read;         /* since a batch was full, some chunk's bytes were awaited */
    mri_work round;         /* of the workers, since then */
    uint64_t copies_ns;     /* end of the last copies */
    uint64_t looked_ns;     /* staging's own: when it last asked the scheduler */
} mri_batches_account;

/* in_flight: batches that are between claim and release at most. On failure fini() is still to be called. */
int mri_batches_account_init(mri_batches_account *a, uint32_t in_flight, uint32_t parts);
void mri_batches_account_fini(mri_batches_account *a); /* accepts a zeroed one */

/* A chunk is read; worked on. */
void mri_batches_account_read(mri_batches_account *a, const mri_chunk_times *c);
void mri_batches_account_work(mri_batches_account *a, const mri_work *work);
/* A batch is complete. last: the chunk that completed it; workers: threads that decode. */
void mri_batches_account_full(mri_batches_account *a, uint64_t batch, const mri_chunk_times *last,
                              uint32_t workers);

/* Staging waits for a batch: it comes, notices that the batch is full, has room, and leaves. */
typedef struct mri_staging_wait {
    uint64_t came_ns, noticed_ns, room_ns;
    uint64_t before_late_ns, late_ns; /* it could have run: before it came; while it waited */
} mri_staging_wait;

/* Come and leave by staging's thread without the lock: both may ask the scheduler. cpu: its own, or NULL. */
mri_staging_wait mri_staging_wait_begin(mri_batches_account *a, mri_cpu_time *cpu);
void mri_staging_wait_end(mri_batches_account *a, mri_cpu_time *cpu, mri_staging_wait *w);
void mri_batches_account_waited(mri_batches_account *a, uint64_t batch, const mri_staging_wait *w);
/* Its copies are queued; over (times: of each part). */
void mri_batches_account_staged(mri_batches_account *a, uint64_t batch);
void mri_batches_account_copied(mri_batches_account *a, uint64_t batch, const mri_copy_times *times);
/* Without prefetch: the consumer made it itself, in one thread. */
void mri_batches_account_serial(mri_batches_account *a, uint64_t batch, const mri_chunk_times *all,
                                uint64_t read_ns, uint64_t before_late_ns);

/* The times of a batch, with the copy of one part; batch MR_NOWHERE: no longer known. */
void mri_batches_account_get(const mri_batches_account *a, uint64_t batch, uint32_t part,
                             mri_batch_times *out);

#endif
