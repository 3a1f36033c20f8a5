/* millrace/observe.h: measurements of a loader: counters, causes of waits, slow samples, odd workers and
 * files, results of tuning, traces, records of a run and their replay with other settings, digests of
 * delivered batches. */
#ifndef MILLRACE_OBSERVE_H
#define MILLRACE_OBSERVE_H

#include "millrace/loader.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------------ counters and causes */

/* Times of a stage since open, in ns, summed over its threads. */
typedef struct mr_stage_stats {
    uint64_t busy_ns;        /* working */
    uint64_t blocked_in_ns;  /* waiting for input */
    uint64_t blocked_out_ns; /* waiting for room in the next stage */
    uint64_t items;          /* read, decode: samples; copy, consume: batches */
    double occupancy;        /* mean fill of the stage's input queue, 0..1 */
    uint32_t threads;
} mr_stage_stats;

/* Cause of a wait of a device or of the consumer of batches. */
typedef enum mr_cause {
    MR_CAUSE_READ = 0,                /* bytes from storage or a server */
    MR_CAUSE_DECODE,                  /* samples that were being decoded, or waiting for a worker */
    MR_CAUSE_LARGE,                   /* decoding of single samples, the time beyond four times the mean */
    MR_CAUSE_MEMORY,                  /* memory for a large picture */
    MR_CAUSE_CORES,                   /* a core: the worker was ready to run, but other threads ran */
    MR_CAUSE_QUOTA,                   /* a core: the control group had used up its CPU quota */
    MR_CAUSE_BLOCKED,                 /* the rest of a thread's time: locks, page faults, late wake-ups */
    MR_CAUSE_LOCK = MR_CAUSE_BLOCKED, /* former name */
    MR_CAUSE_ROOM,                    /* a free slot or buffer, before reading could begin */
    MR_CAUSE_COPY,                    /* the link to the device */
    MR_CAUSE_HOST,                    /* not the loader: the batch was ready, but its step was not queued */
    MR_CAUSE_UNKNOWN,                 /* not recorded */
    MR_CAUSES,
    MR_CAUSE_NETWORK = MR_CAUSES, /* gradients of other processes, and processes that are late. No loader
                                     knows it, so mr_causes has no entry: see mr_report.network_ms */
} mr_cause;

/* Nanoseconds per cause. total_ns is their sum and equals the sum of the charged intervals. */
typedef struct mr_causes {
    uint64_t ns[MR_CAUSES];
    uint64_t total_ns;
} mr_causes;

/* "read", "decode", ...; NULL for an unknown cause. */
MR_STABLE const char *mr_cause_name(mr_cause cause);
/* A short description: "reading", "cores taken by other threads". */
MR_API const char *mr_cause_text(mr_cause cause);

typedef struct mr_loader_stats {
    size_t struct_size;
    mr_stage_stats read, decode, copy;
    uint64_t wait_ns;          /* consumer blocked in mr_loader_next() */
    uint64_t batches, samples; /* delivered */
    uint64_t bytes_read;
    uint64_t bytes_copied[MR_LOADER_MAX_PARTS]; /* to each device */
    uint64_t bad_samples, replaced, skipped;
    uint64_t reads, reads_short, reads_again; /* system calls, short reads, repeated reads */
    uint64_t cache_hits;                      /* samples that came from the cache */
    uint64_t cache_entries, cache_bytes;      /* in it now */
    uint64_t cache_dropped;                   /* damaged entries */
} mr_loader_stats;

/* Any thread. */
MR_STABLE_INLINE void mr_loader_stats_read(const mr_loader *l, mr_loader_stats *out);

/* Read the causes for which the consumer was blocked in mr_loader_next(), so far. Any thread. */
MR_STABLE void mr_loader_waits(const mr_loader *l, mr_causes *out);
/* Attribute an interval in which the device of share `part` (or, without devices, the consumer) was idle
 * until the batch of global_step was ready to its causes, and add these to *add. Times are CLOCK_MONOTONIC,
 * as from mr_event_time_ns(). Records cover the batches in progress and at least 16 earlier ones; other time
 * is UNKNOWN. Any thread. */
MR_API void mr_loader_charge(const mr_loader *l, uint64_t global_step, uint32_t part, uint64_t from_ns,
                             uint64_t to_ns, mr_causes *add);

/* A sample that took long to decode and augment, excluding time in which its thread could not run. */
typedef struct mr_slow_sample {
    uint64_t sample, ns;
    uint64_t bytes; /* encoded */
    double times;   /* ns divided by the mean of all samples */
} mr_slow_sample;

#define MR_LOADER_SLOWEST 8

/* Write the slowest samples so far, the slowest first, each once. Returns their number, at most room. Samples
 * of about a KiB or less are not timed. Any thread. */
MR_API uint32_t mr_loader_slowest(const mr_loader *l, mr_slow_sample *out, uint32_t room);

typedef enum mr_odd_kind { MR_ODD_WORKER = 0, MR_ODD_FILE } mr_odd_kind;

/* A worker or file that took far longer than the others: than the median of all, or than the faster one of
 * two. */
typedef struct mr_odd {
    mr_odd_kind kind;
    uint32_t number;      /* number of the worker, as in its thread's name, or of the source's file */
    double ms, others_ms; /* mean time of decoding and augmenting a sample, or of a read */
    double times;         /* ms / others_ms */
    uint64_t items;       /* samples, reads */
    mr_cause cause; /* the cause. A worker: DECODE, it was decoding; CORES, it was ready to run but did not
                       run; LOCK, it was blocked. A file: READ */
} mr_odd;

#define MR_LOADER_ODD 8

/* Write the outliers so far, workers first, each kind sorted by `times`: workers with at least twice the
 * others' time; files with at least three times the others' time both per read and per byte, and at least 0.3
 * ms more per read. Each has lost 50 ms or more in total. Files are compared if the source has 2 to 4,096 of
 * them and samples are read from them one by one. Returns their number, at most room. Any thread. */
MR_API uint32_t mr_loader_odd(const mr_loader *l, mr_odd *out, uint32_t room);

/* Results of mr_loader_config.tune so far. */
typedef struct mr_tuning {
    size_t struct_size;
    bool done;                                  /* tuning has ended */
    uint32_t workers, prefetch, depth, readers; /* in use */
    uint32_t tried, taken;                      /* changes */
    double gain; /* rate after the last accepted change divided by the rate without changes, both measured in
                    alternation */
    uint64_t cache_bytes; /* size of the cache in memory that tuning has added; 0: no such cache */
} mr_tuning;

/* Read the results of tuning; for a loader that does not tune, its settings and done true. Call it from the
 * consumer's thread. */
static inline void mr_loader_tuning(const mr_loader *l, mr_tuning *out);

/* ------------------------------------------------------------------------------ trace */

/* A bounded ring of spans; the oldest are dropped and counted. */
typedef struct mr_trace mr_trace;

/* max_spans: 1 or more. MR_EINVAL, MR_ENOMEM. */
MR_API int mr_trace_create(mr_trace **out, size_t max_spans);
/* Destroy a trace after the loaders and trainers that use it are closed. Accepts NULL. */
MR_API void mr_trace_destroy(mr_trace *t);
/* Add a span. track ("worker 1", "copy cpu:0", ...) and name ("decode", "compute", ...) are static strings,
 * or live as long as the trace. Times in ns of CLOCK_MONOTONIC. batch: global step of the span's batch, or
 * MR_NOWHERE. No effect if t is NULL. Any thread. */
MR_API void mr_trace_span(mr_trace *t, const char *track, const char *name, uint64_t start_ns,
                          uint64_t end_ns, uint64_t batch);
/* From now on keep only spans of `steps` batches from global step `first` on, which counts from 0 at the
 * start of epoch 0 (mr_batch.global_step), also in a resumed run; spans without a batch are not kept. steps
 * 0: keep all spans. t may be NULL. Any thread. */
MR_API void mr_trace_keep(mr_trace *t, uint64_t first, uint64_t steps);
/* Write the trace in Chrome trace event format (JSON array of complete events), to a temporary file that is
 * renamed. In "otherData", clock names the clock (CLOCK_MONOTONIC) and base_ns is its time at ts 0. */
MR_API int mr_trace_write(const mr_trace *t, const char *path, mr_error *err);

/* Encode a trace's present spans as bytes for another process of the same build; *out is malloc'd.
 * MR_ENOMEM. */
MR_API int mr_trace_pack(const mr_trace *t, void **out, size_t *bytes, mr_error *err);
/* The pack of one process. Its clock is known at two moments: at_ns on it is at_ns + shift_ns on the clock of
 * the first pack. */
typedef struct mr_trace_part {
    const void *pack; /* aligned to 8 bytes */
    size_t bytes;
    const char *name; /* name of the process: "rank 2"; NULL: it is the only one */
    uint64_t at_ns[2];
    int64_t shift_ns[2];
    uint64_t within_ns; /* error bound of the shifts */
} mr_trace_part;
/* Write one trace file of several processes, on the clock of the first. MR_EFORMAT: a pack is invalid. */
MR_API int mr_trace_write_parts(const mr_trace_part *parts, uint32_t count, const char *path, mr_error *err);

typedef struct mr_trace_entry {
    const char *track, *name;
    uint64_t start_ns, end_ns, batch;
} mr_trace_entry;
/* For tests and reports: spans in the order they were added; *out is malloc'd. */
MR_API int mr_trace_entries(const mr_trace *t, mr_trace_entry **out, size_t *count);

/* ------------------------------------------------------------------------------ record and replay */

/* Durations of the newest chunks, copies and steps of a run, in memory of fixed size. A loader with this
 * record adds chunks and copies; the program that runs the steps (or mr_fit()) adds steps. A record belongs
 * to one loader at a time. Any thread. */
typedef struct mr_record mr_record;

/* chunks_most: number of chunks (88 bytes each) to keep, 1 or more. MR_EINVAL, MR_ENOMEM. */
MR_API int mr_record_create(mr_record **out, uint32_t chunks_most);
MR_API void mr_record_destroy(mr_record *r); /* accepts NULL */
/* Forget all records so far, such as a warm-up. A loader with another number of shares than the loader before
 * it clears the record, too. */
MR_API void mr_record_clear(mr_record *r);
/* Record a step of batch global_step, with `samples` samples of this loader: its start and end for each of
 * the loader's shares (CLOCK_MONOTONIC, like events), and the causes of idle time before it, summed over
 * devices. No effect if the loader has no record. */
MR_API void mr_loader_record_step(const mr_loader *l, uint64_t global_step, uint32_t samples,
                                  const uint64_t *start_ns, const uint64_t *end_ns, const mr_causes *causes);

/* Name the bottleneck, from the devices' idle fraction (0..1) and its causes: "compute" if idle is below 0.05
 * or causes is empty, else the heaviest cause. Causes with the same remedy are added up ("decode" stands for
 * decode and large, "cores" for cores and quota). A static string. */
MR_API const char *mr_limit_name(double idle, const mr_causes *causes);

typedef struct mr_record_totals {
    size_t struct_size;
    uint64_t chunks, steps; /* chunks: kept chunks; steps: since the record was cleared, like all members
                               below */
    double seconds;         /* from the end of the first step to the end of the last */
    double samples_per_s;   /* in these */
    double idle;            /* of the devices, 0..1 */
    mr_causes causes;       /* of that, mean over devices */
    const char *limit;      /* mr_limit_name() of it */
    double bytes_per_sample, decode_ms_per_sample, read_ms_per_chunk; /* decode: time on a core */
    double step_ms;                 /* mean computing time, without waits of the devices */
    double read_core_ms_per_sample; /* time of reader threads on a core */
} mr_record_totals;
/* Read the totals of a record. Any thread. */
static inline void mr_record_totals_read(const mr_record *r, mr_record_totals *out);

/* Settings of a simulated pipeline, which replays the recorded durations in their order. */
typedef struct mr_replay_config {
    size_t struct_size;
    uint32_t batch, prefetch, workers, readers, depth, devices; /* as in mr_loader_config, none of them 0,
                                                                   except prefetch (0: in series) */
    double cores;        /* cores that workers, readers, copies and steps share equally */
    uint32_t step_cores; /* cores that a step uses per device: the threads of a cpu device. 0: the device
                            needs no cores */
    double others;       /* number of always running threads of other programs; 0: none */
    double copy_core_ms; /* time on a core for copying a recorded batch to one device */
    double read_times; /* factors of durations. read: until storage answers; 0: samples are in memory, without
                          readers */
    double decode_times, copy_times, step_times;
    double bytes_times;     /* factor of a sample's bytes in storage; reading time is proportional */
    uint64_t batches;       /* most batches to replay; 0: follows from the number of recorded batches */
    double read_core_times; /* factor of a reader thread's time on a core per sample */
    double crowd_times;     /* slowdown of work on a core when all cores are busy, compared with one busy core
                               (shared caches, hyper-threads); default 1 */
    double crowd_part; /* fraction (0..1) of the other cores that were busy during the recording, with this
                          program or others: how much of the slowdown the record contains */
} mr_replay_config;

/* Fill cfg with the settings of the loader that filled the record, this machine's cores and factors of 1.
 * MR_EINVAL: the record lacks chunks, copies or steps; err explains. */
static inline int mr_replay_defaults(const mr_record *r, mr_replay_config *cfg, mr_error *err);

/* Set cfg->others to the number of competing threads that explains the measured delays of workers. */
MR_API int mr_replay_find_others(const mr_record *r, mr_replay_config *cfg, mr_error *err);

typedef struct mr_replay_result {
    size_t struct_size;
    double samples_per_s;
    double samples_per_s_error; /* half of the 95 % interval of replays of separate sections of the record:
                                   the uncertainty of the record, not of the model */
    double idle;                /* of the devices, 0..1 */
    mr_causes causes;           /* of that, mean over devices */
    const char *limit;          /* mr_limit_name() of it */
    double step_ms_p50, step_ms_p95, step_ms_p99; /* from the end of a step to the end of the next */
    double cores, read_bytes_per_s;               /* used, on average */
    uint64_t batches;                             /* counted batches */
} mr_replay_result;

/* Replay a record. Pure: the same record and settings give the same result; it uses no clock and no thread.
 * MR_EINVAL: a setting out of range, or nothing to replay. */
static inline int mr_replay(const mr_record *r, const mr_replay_config *cfg, mr_replay_result *out,
                            mr_error *err);

/* ------------------------------------------------------------------------------ digest */

/* A hash over everything that loaders deliver, in order: epoch, step, and a hash of each sample's id, label,
 * pixels, affine numbers, second label and fields. One digester may run over several loaders in sequence
 * (stop and resume): equal deliveries give equal digests for all settings. */
typedef struct mr_digest {
    uint64_t lo, hi;
} mr_digest;
typedef struct mr_digester mr_digester;

/* MR_ENOMEM. */
MR_API int mr_digester_create(mr_digester **out);
/* Accepts NULL. */
MR_API void mr_digester_destroy(mr_digester *d);
/* Callback for loaders of some shares of a batch. The thread in mr_digester_run() calls it for each batch
 * with room for the digests of its `all` samples; samples [first, first + count) are filled in. It fills in
 * the others, or returns an error. */
typedef int mr_digest_share(void *context, mr_digest *samples, uint32_t first, uint32_t count, uint32_t all,
                            mr_error *err);
/* Set the callback for loaders of some shares of a batch; share NULL: loaders deliver whole batches. */
MR_API void mr_digester_share(mr_digester *d, mr_digest_share *share, void *context);
/* Take batches until the loader ends or max_batches are taken. With devices (the loader's devices; the loader
 * needs keep_host) every share is read back from its device and compared with the host copy: MR_EDEVICE when
 * they differ. *samples: number of samples in whole batches. */
MR_API int mr_digester_run(mr_digester *d, mr_loader *l, mr_device *const *devices, uint64_t max_batches,
                           uint64_t *batches, uint64_t *samples, mr_error *err);
/* Return the digest of everything so far. */
MR_API mr_digest mr_digester_result(const mr_digester *d);

/* ------------------------------------------------------------------------------ struct sizes
 *
 * Nothing to read here for a program in C or C++. The library exports the functions below in place of the
 * inline ones above: each inline function passes the size of its struct in the caller's header (base.h). A
 * program in another language sets struct_size and calls ..._sized. */

MR_STABLE void mr_loader_stats_read_sized(const mr_loader *l, mr_loader_stats *out);
static inline void mr_loader_stats_read(const mr_loader *l, mr_loader_stats *out)
{
    if (out) out->struct_size = sizeof *out;
    mr_loader_stats_read_sized(l, out);
}

MR_API void mr_loader_tuning_sized(const mr_loader *l, mr_tuning *out);
static inline void mr_loader_tuning(const mr_loader *l, mr_tuning *out)
{
    if (out) out->struct_size = sizeof *out;
    mr_loader_tuning_sized(l, out);
}

MR_API void mr_record_totals_read_sized(const mr_record *r, mr_record_totals *out);
static inline void mr_record_totals_read(const mr_record *r, mr_record_totals *out)
{
    if (out) out->struct_size = sizeof *out;
    mr_record_totals_read_sized(r, out);
}

MR_API int mr_replay_defaults_sized(const mr_record *r, mr_replay_config *cfg, size_t struct_size,
                                    mr_error *err);
static inline int mr_replay_defaults(const mr_record *r, mr_replay_config *cfg, mr_error *err)
{
    return mr_replay_defaults_sized(r, cfg, sizeof *cfg, err);
}

MR_API int mr_replay_sized(const mr_record *r, const mr_replay_config *cfg, mr_replay_result *out,
                           mr_error *err);
static inline int mr_replay(const mr_record *r, const mr_replay_config *cfg, mr_replay_result *out,
                            mr_error *err)
{
    if (out) out->struct_size = sizeof *out;
    return mr_replay_sized(r, cfg, out, err);
}

#ifdef __cplusplus
}
#endif
#endif
