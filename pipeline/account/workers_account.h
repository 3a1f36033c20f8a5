/* pipeline/account/workers_account.h: the time of the threads that decode. Private.
 *
 *   stage    take a chunk ──► begin ──► samples, one after the other ──► end ──► slot closed
 *   account                   held?     slow ones                        ran, delayed, memory, blocked
 *
 * The wall clock is read for every chunk and, of large samples, for each; the scheduler is asked once in
 * 1 ms of work at most, and its last answer holds until then. */
#ifndef MRI_WORKERS_ACCOUNT_H
#define MRI_WORKERS_ACCOUNT_H

#include "base/cpu_time.h"
#include "pipeline/observe/causes.h"
#include "pipeline/observe/counter.h"
#include "pipeline/observe/odd.h"
#include "pipeline/observe/record.h"

typedef struct mri_decode_counters { /* atomics */
    mri_stage_counter stage;
    uint64_t unread;            /* samples that nobody had to read */
    uint64_t reads, read_bytes; /* of samples that were read alone */
    uint64_t cache_hits;
    uint64_t large_ns, delayed_ns; /* of work: mri_work */
    uint64_t timed, timed_ns;      /* samples that were timed one by one, and their work */
} mri_decode_counters;

/* Of all workers of a stage. */
typedef struct mri_workers_account {
    bool each_sample; /* fixed, as the next two: samples are timed one by one */
    mr_trace *trace;  /* or NULL, as the next */
    mr_record *record;
    uint32_t workers;
    mri_toll *tolls; /* of each */
    mri_decode_counters counters;
    pthread_mutex_t slow_lock;              /* the next two; slow_least is atomic as well */
    mr_slow_sample slow[MR_LOADER_SLOWEST]; /* the slowest first; ns 0: none */
    uint64_t slow_least;                    /* of the last of them */
} mri_workers_account;

/* Of one worker: its thread's. */
typedef struct mri_worker_account {
    mri_workers_account *all;
    mri_toll *toll;
    char track[16];
    mri_cpu_time cpu;
    mri_work last;                 /* its latest work */
    mri_work work;                 /* at hand */
    uint64_t then_ns;              /* the sample before ended */
    uint64_t unseen_ns, rested_ns; /* of work, and between, since the scheduler was asked last */
    uint64_t closing_ns;           /* it was asked as a slot was closed: since the work it could have run */
    double mean_ns;                /* of its samples */
    uint32_t timed;                /* of them, at most MEAN_OF */
    mr_slow_sample slowest;        /* of the chunk at hand */
    bool has_read;                 /* in it, by itself: a wait then is for storage */
} mri_worker_account;

/* trace, record: NULL for none. On failure fini() is still to be called. */
int mri_workers_account_init(mri_workers_account *a, uint32_t workers, uint32_t chunk_samples,
                             mr_trace *trace, mr_record *record);
void mri_workers_account_fini(mri_workers_account *a);
/* mr_loader_slowest(), and workers that take far longer than others, for mr_loader_odd(); any thread. */
uint32_t mri_workers_account_slowest(mri_workers_account *a, mr_slow_sample *out, uint32_t room);
uint32_t mri_workers_account_odd(const mri_workers_account *a, mr_odd *out, uint32_t room);

void mri_worker_account_init(mri_worker_account *w, mri_workers_account *all, uint32_t number);
/* In the worker's thread, before its first chunk. */
void mri_worker_account_open(mri_worker_account *w);
/* The same for a chunk in a thread that also does other work. */
void mri_worker_account_resume(mri_worker_account *w);
void mri_worker_account_close(mri_worker_account *w); /* any thread, also without an open */

/* A chunk is begun; its first sample; each sample is in place (waited_ns: for memory) ... */
void mri_worker_begin(mri_worker_account *w, const mri_chunk_times *times);
void mri_worker_first_sample(mri_worker_account *w);
void mri_worker_sample(mri_worker_account *w, uint64_t sample, size_t bytes, uint64_t waited_ns);
/* ... samples that it took from a cache, or read by itself ... */
void mri_worker_found(mri_worker_account *w, uint64_t cache_hits, uint64_t reads, uint64_t read_bytes);
/* ... and its end: `samples` of a batch, waited_ns for memory. Sets times->before and times->work. */
void mri_worker_end(mri_worker_account *w, uint32_t samples, uint64_t batch, uint64_t waited_ns,
                    mri_chunk_times *times);

/* How a chunk was read; reads 0: nothing had to be read. */
typedef struct mri_chunk_reading {
    uint32_t reads;
    uint64_t bytes, core_ns;
} mri_chunk_reading;

/* Add a chunk to the record of the run, if there is one. */
void mri_worker_record(const mri_worker_account *w, const mri_chunk_times *times, uint32_t samples,
                       const mri_chunk_reading *reading);
/* A slot was closed since start_ns; counted: it is part of the work. Returns mri_chunk_times.closing_ns. */
uint64_t mri_worker_closed_slot(mri_worker_account *w, uint64_t start_ns, bool counted);

#endif
