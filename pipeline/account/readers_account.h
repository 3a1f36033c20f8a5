/* pipeline/account/readers_account.h: what reading took: by reader threads and by files. Private.
 *
 *   stage    claim a chunk ──► begin ──► reads in flight ──► each read is back ──► end: handed on
 *   account                    active                        its file's time       reads, bytes, delayed */
#ifndef MRI_READERS_ACCOUNT_H
#define MRI_READERS_ACCOUNT_H

#include "base/cpu_time.h"
#include "pipeline/observe/causes.h"
#include "pipeline/observe/counter.h"
#include "pipeline/observe/odd.h"
#include "pipeline/read/reader.h"

typedef struct mri_read_counters { /* atomics */
    mri_stage_counter stage;
    uint64_t reads, again, shorts, bytes;
} mri_read_counters;

/* Of all readers of a stage. */
typedef struct mri_readers_account {
    bool began_when_asked; /* fixed, as the next two: reads begin when somebody waits for them (pread) */
    bool recorded;         /* measure what reading costs on a core */
    mr_trace *trace;       /* or NULL */
    mri_toll *tolls;       /* of each of the source's files; NULL: there are too few or too many to compare */
    uint32_t file_count;
    mri_read_counters counters;
} mri_readers_account;

/* Of one reader: its thread's. */
typedef struct mri_reader_account {
    mri_readers_account *all;
    const mri_reader *reader;
    char track[16];
    mri_reader_counts counted; /* the reader's counts already added to the stage's */
    mri_cpu_time cpu;
    uint64_t looked_ns, active_ns; /* active: reading and waiting for reads, since the last look */
    double delayed_ns, lately_ns;  /* of the recent active time, the time it was runnable and did not run */
    double delayed_part; /* the one by the other: of a chunk that came with others, one look says nothing */
    uint64_t core_ns;    /* recorded: of the thread, up to the chunk before */
} mri_reader_account;

/* files: of the source; the account compares them if their number is neither 1 nor very large. On failure
 * fini() is still to be called. */
int mri_readers_account_init(mri_readers_account *a, uint32_t files, mr_io io, bool recorded,
                             mr_trace *trace);
void mri_readers_account_fini(mri_readers_account *a); /* accepts a zeroed one */
/* Files whose reads take far longer than other files', for mr_loader_odd(); any thread. */
uint32_t mri_readers_account_odd(const mri_readers_account *a, mr_odd *out, uint32_t room);
/* A read of a file is back; submitted_ns: of its chunk, asked_ns: somebody began to wait for any. */
void mri_readers_account_file(mri_readers_account *a, const mri_read *q, uint64_t submitted_ns,
                              uint64_t asked_ns);

void mri_reader_account_init(mri_reader_account *t, mri_readers_account *all, uint32_t number,
                             const mri_reader *reader);
void mri_reader_account_open(mri_reader_account *t);  /* in the reader's thread */
void mri_reader_account_close(mri_reader_account *t); /* any thread, also without an open */

/* The thread is active until the end, which takes the value that begin returned: the time. */
uint64_t mri_reader_active_begin(mri_reader_account *t, mri_activity what);
void mri_reader_active_end(mri_reader_account *t, mri_activity what, uint64_t since_ns);
/* Charge the thread's run time since the previous chunk to this one; 0 unless it is recorded. */
uint64_t mri_reader_core_ns(mri_reader_account *t);
/* All of a chunk is read, since start_ns; sets times->delayed_part. */
void mri_reader_end(mri_reader_account *t, uint32_t samples, uint64_t batch, uint64_t start_ns,
                    mri_chunk_times *times);
/* The same for a chunk that the caller read while it waited. */
void mri_reader_end_inline(mri_reader_account *t, uint32_t samples, uint64_t batch, uint64_t start_ns);
/* A run of a resident set is read. */
void mri_reader_end_run(mri_reader_account *t, uint64_t start_ns);

#endif
