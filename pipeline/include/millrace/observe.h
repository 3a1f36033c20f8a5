/* millrace/observe.h: measurements of a loader: counters, causes of waits, slow samples, odd workers and
 * files, results of tuning, traces, records of a run and their replay with other settings, digests of
 * delivered batches.
 *
 *   speed of each stage                    mr_loader_stats_read()
 *   causes of the program's waits          mr_loader_waits(), mr_limit_name()
 *   causes of a device's idle time         mr_loader_charge() with the times of its events
 *   the slow sample, worker or file        mr_loader_slowest(), mr_loader_odd()
 *   a time line of batches and threads     mr_trace_create(), mr_loader_config.trace, mr_trace_write()
 *   the rate with other settings           mr_record_create(), mr_loader_config.record, mr_replay()
 *   equality of the batches of two runs    mr_digester_run()
 *
 * Counters, causes and outliers are always on; trace and record cost memory and are off until they are set in
 * mr_loader_config. Counts and times are since mr_loader_open(); for an interval, subtract an earlier
 * reading. */
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
    double occupancy;        /* mean fill of the stage's input queue, 0 (empty) to 1 (full) */
    uint32_t threads;        /* of the stage, now */
} mr_stage_stats;

/* Cause of a wait of a device or of the consumer of batches. */
typedef enum mr_cause {
    MR_CAUSE_READ = 0,                /* bytes from storage or a server */
    MR_CAUSE_DECODE,                  /* samples that were being decoded, or waiting for a worker */
    MR_CAUSE_LARGE,                   /* decoding of samples that take more than four times the mean: the time
                                         beyond this limit */
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

/* Nanoseconds per cause. */
typedef struct mr_causes {
    uint64_t ns[MR_CAUSES]; /* ns[MR_CAUSE_READ], ... */
    uint64_t total_ns; /* the sum of ns, and of the charged intervals: no time is lost or counted twice */
} mr_causes;

/* "read", "decode", ...; NULL for an unknown cause. */
MR_STABLE const char *mr_cause_name(mr_cause cause);
/* A short description: "reading", "cores taken by other threads". */
MR_API const char *mr_cause_text(mr_cause cause);

/* Counters of a loader since it was opened. */
typedef struct mr_loader_stats {
    size_t struct_size;
    mr_stage_stats read, decode, copy; /* readers; workers; copies to the devices */
    uint64_t wait_ns;                  /* time in which the consumer was blocked in mr_loader_next() */
    uint64_t batches, samples;         /* delivered by mr_loader_next() */
    uint64_t bytes_read;               /* from files and servers */
    uint64_t bytes_copied[MR_LOADER_MAX_PARTS]; /* to each device */
    /* Damaged samples; of these, samples for which a substitute was delivered, and samples delivered as zeros
     * (mr_loader_config.bad) */
    uint64_t bad_samples, replaced, skipped;
    uint64_t reads, reads_short, reads_again; /* system calls, short reads, repeated reads */
    uint64_t cache_hits;                      /* samples that came from the cache */
    uint64_t cache_entries, cache_bytes;      /* in it now */
    uint64_t cache_dropped;                   /* damaged entries, which were read from the data again */
} mr_loader_stats;

/* Read the counters while the loader works. Stages are read one after the other, so that their counts may
 * differ by the samples in between. Any thread. */
MR_STABLE_INLINE void mr_loader_stats_read(const mr_loader *l, mr_loader_stats *out);

/* Read the causes for which the consumer was blocked in mr_loader_next(), so far. Any thread. */
MR_STABLE void mr_loader_waits(const mr_loader *l, mr_causes *out);
/* Find the causes of an interval in which the device of share `part` (or, without devices, the consumer) was
 * idle until the batch of global_step was ready, and add its time by cause to *add. Times are
 * CLOCK_MONOTONIC, as from mr_event_time_ns(). Records cover the batches in progress and at least 16 earlier
 * ones; other time is UNKNOWN. Any thread. */
MR_API void mr_loader_charge(const mr_loader *l, uint64_t global_step, uint32_t part, uint64_t from_ns,
                             uint64_t to_ns, mr_causes *add);

/* A sample that took long to decode and augment, excluding time in which its thread could not run. */
typedef struct mr_slow_sample {
    uint64_t sample, ns; /* number in the source; time of decoding and augmenting it */
    uint64_t bytes;      /* encoded */
    double times;        /* ns divided by the mean of all samples */
} mr_slow_sample;

#define MR_LOADER_SLOWEST 8 /* most samples that mr_loader_slowest() writes: enough room */

/* Write the slowest samples so far, the slowest first, each once. Returns their number, at most room. Samples
 * of about a KiB or less are not timed. Any thread. */
MR_API uint32_t mr_loader_slowest(const mr_loader *l, mr_slow_sample *out, uint32_t room);

typedef enum mr_odd_kind {
    MR_ODD_WORKER = 0, /* a decode thread */
    MR_ODD_FILE,       /* a file of the source */
} mr_odd_kind;

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

#define MR_LOADER_ODD 8 /* most outliers that mr_loader_odd() writes: enough room */

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
    uint32_t tried, taken;                      /* changes of a setting: measured, and kept */
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

/* Create an empty trace, for mr_loader_config.trace and mr_trainer_config.trace.
 *
 * max_spans  most spans to keep, 1 or more; a loader adds a few for each batch and chunk of samples
 *
 * MR_EINVAL  max_spans is 0
 * MR_ENOMEM  no memory for this number of spans */
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
/* The pack of one process. Its clock was compared at two moments: at_ns on this clock is at_ns + shift_ns on
 * the clock of the first pack. */
typedef struct mr_trace_part {
    const void *pack;    /* from mr_trace_pack(), aligned to 8 bytes */
    size_t bytes;        /* of pack */
    const char *name;    /* name of the process: "rank 2"; NULL: it is the only one */
    uint64_t at_ns[2];   /* two moments on the clock of this process, the first before the second */
    int64_t shift_ns[2]; /* nanoseconds to add at these moments; at other times by the straight line through
                            both */
    uint64_t within_ns;  /* error bound of the shifts */
} mr_trace_part;
/* Write one trace file of several processes, on the clock of the first. MR_EFORMAT: a pack is invalid. */
MR_API int mr_trace_write_parts(const mr_trace_part *parts, uint32_t count, const char *path, mr_error *err);

/* A span of a trace, as mr_trace_span() received it. */
typedef struct mr_trace_entry {
    const char *track, *name;
    uint64_t start_ns, end_ns, batch; /* CLOCK_MONOTONIC; batch: global step, or MR_NOWHERE */
} mr_trace_entry;
/* For tests and reports: spans in the order they were added; *out is malloc'd. */
MR_API int mr_trace_entries(const mr_trace *t, mr_trace_entry **out, size_t *count);

/* ------------------------------------------------------------------------------ record and replay */

/* Durations of the newest chunks, copies and steps of a run, in memory of fixed size. A loader with this
 * record adds chunks and, if it has devices, copies; mr_fit() adds steps, a loop of the program's own calls
 * mr_loader_record_step(). A replay needs all three; the record of a loader without devices has only totals
 * to read. A record belongs to one loader at a time. Any thread. */
typedef struct mr_record mr_record;

/* Create an empty record, for mr_loader_config.record.
 *
 * chunks_most  number of chunks (88 bytes each) to keep, 1 or more; older ones are dropped
 *
 * MR_EINVAL    chunks_most is 0
 * MR_ENOMEM    no memory for this number of chunks */
MR_API int mr_record_create(mr_record **out, uint32_t chunks_most);
MR_API void mr_record_destroy(mr_record *r); /* accepts NULL */
/* Forget all records so far, such as a warm-up. The record is also cleared when it gets a loader with another
 * number of shares than the loader before. */
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

/* Means over a record. */
typedef struct mr_record_totals {
    size_t struct_size;
    uint64_t chunks, steps; /* chunks: kept chunks; steps: since the record was cleared, like all members
                               below */
    double seconds;         /* from the end of the first step to the end of the last */
    double samples_per_s;   /* in these */
    double idle;            /* fraction of seconds in which the devices were idle, 0..1, mean over devices */
    mr_causes causes;       /* causes of the idle time, mean over devices */
    const char *limit;      /* mr_limit_name(idle, &causes) */
    double bytes_per_sample, decode_ms_per_sample, read_ms_per_chunk; /* decode: time on a core */
    double step_ms;                 /* mean computing time, without waits of the devices */
    double read_core_ms_per_sample; /* time of reader threads on a core */
} mr_record_totals;
/* Read the totals of a record. Any thread. */
static inline void mr_record_totals_read(const mr_record *r, mr_record_totals *out);

/* Settings of a simulated pipeline, which replays the recorded durations in their order. mr_replay_defaults()
 * sets the recorded run's; change the members in question. All factors are 0 to 1,000,000; 0.5 means half of
 * the recorded time. */
typedef struct mr_replay_config {
    size_t struct_size;
    uint32_t batch, prefetch, workers, readers, depth, devices; /* as in mr_loader_config, none of them 0,
                                                                   except prefetch (0: in series) */
    double cores;        /* cores that workers, readers, copies and steps share equally, 0.01 to 65,536 */
    uint32_t step_cores; /* cores that a step uses per device: the threads of a cpu device. 0: the device
                            needs no cores */
    double others;       /* number of always running threads of other programs, up to 65,536; 0 (default):
                            none */
    double copy_core_ms; /* time on a core for copying a recorded batch to one device */
    double read_times; /* factors of durations. read: until storage answers; 0: samples are in memory, without
                          readers */
    double decode_times, copy_times, step_times;
    double bytes_times;     /* factor of a sample's bytes in storage; reading time is proportional */
    uint64_t batches;       /* most batches to replay; 0: follows from the number of recorded batches */
    double read_core_times; /* factor of a reader thread's time on a core per sample */
    double crowd_times;     /* slowdown of work on a core when all cores are busy, compared with one busy core
                               (shared caches, hyper-threads), 1 to 100; default 1 */
    double crowd_part; /* mean fraction (0..1) of the other cores that were busy during the recording, with
                          any program: the recorded durations contain this share of the slowdown */
} mr_replay_config;

/* Fill cfg with the settings of the loader that filled the record, this machine's cores and factors of 1.
 * MR_EINVAL: the record lacks chunks, copies (the loader had no devices) or steps; err names the numbers. */
static inline int mr_replay_defaults(const mr_record *r, mr_replay_config *cfg, mr_error *err);

/* Set cfg->others to the number of competing threads that explains the measured delays of workers. */
MR_API int mr_replay_find_others(const mr_record *r, mr_replay_config *cfg, mr_error *err);

/* Results of a simulated pipeline. */
typedef struct mr_replay_result {
    size_t struct_size;
    double samples_per_s;       /* rate over the counted batches */
    double samples_per_s_error; /* half of the 95 % interval of replays of separate sections of the record:
                                   the uncertainty of the record, not of the model */
    double idle;                /* fraction of the time in which the devices are idle, 0..1 */
    mr_causes causes;           /* causes of the idle time, mean over devices */
    const char *limit;          /* mr_limit_name(idle, &causes) */
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

/* Create a digester that has seen nothing. MR_ENOMEM. */
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
