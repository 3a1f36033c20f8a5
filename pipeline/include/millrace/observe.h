/* millrace/observe.h: what a loader does and where time goes: counters, causes of waits, slow samples, odd
 * workers and files, what tuning found, traces, records of a run and their replay with other settings,
 * digests of what was delivered. */
#ifndef MILLRACE_OBSERVE_H
#define MILLRACE_OBSERVE_H

#include "millrace/loader.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------------ counters and causes */

/* Sum of times of all threads of a stage, ns, since open. */
typedef struct mr_stage_stats {
    uint64_t busy_ns;        /* working */
    uint64_t blocked_in_ns;  /* waiting for input */
    uint64_t blocked_out_ns; /* waiting for room behind it */
    uint64_t items;          /* read, decode: samples; copy, consume: batches */
    double occupancy;        /* mean fill of the queue in front of the stage, 0..1 */
    uint32_t threads;
} mr_stage_stats;

/* What a device, or whoever takes batches, waited for. */
typedef enum mr_cause {
    MR_CAUSE_READ = 0, /* bytes that storage or a server had not brought */
    MR_CAUSE_DECODE,   /* samples being decoded, or waiting until a worker had decoded others */
    MR_CAUSE_LARGE,    /* the same: what single samples took beyond four times the mean */
    MR_CAUSE_MEMORY,   /* memory for a large picture */
    MR_CAUSE_CORES,    /* a core: the worker could have run, and other threads did */
    MR_CAUSE_QUOTA,    /* the same: the control group had used up its time */
    MR_CAUSE_LOCK,     /* a lock, a page fault, a thread that was woken late */
    MR_CAUSE_ROOM,     /* a free slot or buffer, before reading could begin */
    MR_CAUSE_COPY,     /* the link to the device */
    MR_CAUSE_HOST,     /* nothing of the loader: the batch was there, and its step was not queued */
    MR_CAUSE_UNKNOWN,  /* what nothing is recorded of */
    MR_CAUSES
} mr_cause;

/* ns of each; total_ns is their sum, and that of the intervals that were charged. */
typedef struct mr_causes {
    uint64_t ns[MR_CAUSES];
    uint64_t total_ns;
} mr_causes;

/* "read", "decode", ...; NULL: no such cause. */
MR_API const char *mr_cause_name(mr_cause cause);
/* In a few words: "reading", "cores taken by other threads". */
MR_API const char *mr_cause_text(mr_cause cause);

typedef struct mr_loader_stats {
    size_t struct_size;
    mr_stage_stats read, decode, copy;
    uint64_t wait_ns;          /* consumer blocked in mr_loader_next() */
    uint64_t batches, samples; /* delivered */
    uint64_t bytes_read;
    uint64_t bytes_copied[MR_LOADER_MAX_PARTS]; /* to each device */
    uint64_t bad_samples, replaced, skipped;
    uint64_t reads, reads_short, reads_again; /* system-level events */
    uint64_t cache_hits;                      /* samples that came from the cache */
    uint64_t cache_entries, cache_bytes;      /* in it now */
    uint64_t cache_dropped;                   /* entries that were damaged */
} mr_loader_stats;

/* Any thread. */
MR_API void mr_loader_stats_read_sized(const mr_loader *l, mr_loader_stats *out);
static inline void mr_loader_stats_read(const mr_loader *l, mr_loader_stats *out)
{
    if (out) out->struct_size = sizeof *out;
    mr_loader_stats_read_sized(l, out);
}

/* What the consumer was blocked for in mr_loader_next(), so far. Any thread. */
MR_API void mr_loader_waits(const mr_loader *l, mr_causes *out);
/* Charge an interval in which a part's device (or, without devices, the consumer) had nothing to do until the
 * batch of this global_step was there: times of CLOCK_MONOTONIC, as events have them. Adds to *add; what is
 * recorded covers the batches that are under way and at least 16 before them, the rest is UNKNOWN. Any
 * thread. */
MR_API void mr_loader_charge(const mr_loader *l, uint64_t global_step, uint32_t part, uint64_t from_ns,
                             uint64_t to_ns, mr_causes *add);

/* A sample that took long to decode and augment, but for what its thread was kept from doing so. */
typedef struct mr_slow_sample {
    uint64_t sample, ns;
    uint64_t bytes; /* encoded */
    double times;   /* the mean of all samples */
} mr_slow_sample;

#define MR_LOADER_SLOWEST 8

/* The slowest samples so far, the slowest first; each once. Returns how many, at most room. Samples of about
 * a KiB and less are not timed. Any thread. */
MR_API uint32_t mr_loader_slowest(const mr_loader *l, mr_slow_sample *out, uint32_t room);

typedef enum mr_odd_kind { MR_ODD_WORKER = 0, MR_ODD_FILE } mr_odd_kind;

/* One worker, or one file, that took far longer than the others of its kind: the median of all, of two the
 * faster one. */
typedef struct mr_odd {
    mr_odd_kind kind;
    uint32_t number;      /* of the worker, as its thread is called; of the source's file */
    double ms, others_ms; /* mean, of a sample decoded and augmented, or of a read */
    double times;         /* ms / others_ms */
    uint64_t items;       /* samples, reads */
    mr_cause cause; /* what makes it so. A worker: DECODE, it was at it; CORES, it could have run; LOCK, it
                       was blocked. A file: READ */
} mr_odd;

#define MR_LOADER_ODD 8

/* Workers and files that stick out so far, workers first, each kind by times: a worker from twice the time of
 * others on, a file from three times, by the read and by the byte, and 0.3 ms a read. Files are looked at
 * where a source has 2 to 4,096 of them, and samples are read from them one by one. Returns how many, at most
 * room. Any thread. */
MR_API uint32_t mr_loader_odd(const mr_loader *l, mr_odd *out, uint32_t room);

/* What mr_loader_config.tune has led to so far. */
typedef struct mr_tuning {
    size_t struct_size;
    bool done;                                  /* nothing more is tried */
    uint32_t workers, prefetch, depth, readers; /* in use */
    uint32_t tried, taken;                      /* changes */
    double gain; /* rate with the last change that was taken over that with none, from turns side by side */
    uint64_t cache_bytes; /* that a cache in memory may take from now on; 0: there is none */
} mr_tuning;

/* Of a loader that does not tune: its settings, done. The consumer's thread. */
MR_API void mr_loader_tuning_sized(const mr_loader *l, mr_tuning *out);
static inline void mr_loader_tuning(const mr_loader *l, mr_tuning *out)
{
    if (out) out->struct_size = sizeof *out;
    mr_loader_tuning_sized(l, out);
}

/* ------------------------------------------------------------------------------ trace */

/* A bounded ring of spans; the oldest are dropped and counted. */
typedef struct mr_trace mr_trace;

MR_API int mr_trace_create(mr_trace **out, size_t max_spans);
MR_API void mr_trace_destroy(mr_trace *t);
/* track: "worker 1", "copy cpu:0", ...; name: "decode", "compute", ...: static or kept alive by the caller.
 * Times in ns of CLOCK_MONOTONIC. batch: its global step; MR_NOWHERE: the span belongs to none. t may be NULL
 * (then nothing happens). Any thread. */
MR_API void mr_trace_span(mr_trace *t, const char *track, const char *name, uint64_t start_ns,
                          uint64_t end_ns, uint64_t batch);
/* From now on keep only spans of `steps` batches from `first` (a global step, from 0) on; steps 0: all. What
 * belongs to no batch is not kept then. t may be NULL. Any thread. */
MR_API void mr_trace_keep(mr_trace *t, uint64_t first, uint64_t steps);
/* Chrome trace event format (JSON array of complete events), written to a part file and renamed. The clock is
 * told in "otherData" (docs/json.md). */
MR_API int mr_trace_write(const mr_trace *t, const char *path, mr_error *err);

/* What a trace holds now, in bytes to send to another process of the same build; *out is malloc'd. MR_ENOMEM.
 */
MR_API int mr_trace_pack(const mr_trace *t, void **out, size_t *bytes, mr_error *err);
/* The pack of one process. Its clock is known at two moments: at_ns of it is at_ns + shift_ns of the first
 * part's. */
typedef struct mr_trace_part {
    const void *pack; /* aligned to 8 bytes */
    size_t bytes;
    const char *name; /* of the process: "rank 2"; NULL: it is the only one */
    uint64_t at_ns[2];
    int64_t shift_ns[2];
    uint64_t within_ns; /* of which the shifts are known */
} mr_trace_part;
/* One file of several processes, on the clock of the first. MR_EFORMAT: a pack is none. */
MR_API int mr_trace_write_parts(const mr_trace_part *parts, uint32_t count, const char *path, mr_error *err);

typedef struct mr_trace_entry {
    const char *track, *name;
    uint64_t start_ns, end_ns, batch;
} mr_trace_entry;
/* For tests and reports: spans in the order they were added; *out is malloc'd. */
MR_API int mr_trace_entries(const mr_trace *t, mr_trace_entry **out, size_t *count);

/* ------------------------------------------------------------------------------ record and replay */

/* How long chunks, copies and steps of a run took: the newest of each, in memory that does not grow. Filled
 * by a loader that is given it, and with steps by whoever runs them (mr_fit() does). A record belongs to one
 * loader at a time. Any thread. */
typedef struct mr_record mr_record;

/* chunks_most: of chunks (88 bytes each) that are kept, 1.. ; MR_EINVAL, MR_ENOMEM. */
MR_API int mr_record_create(mr_record **out, uint32_t chunks_most);
MR_API void mr_record_destroy(mr_record *r); /* accepts NULL */
/* Forget what is recorded so far: a warm-up. A loader that has another number of parts than the one before
 * does that, too. */
MR_API void mr_record_clear(mr_record *r);
/* A step of the batch of this number: when it began and ended on each of the loader's parts (CLOCK_MONOTONIC,
 * as events have them), and what their devices were idle for before it, added up. Nothing happens when the
 * loader has no record. */
MR_API void mr_loader_record_step(const mr_loader *l, uint64_t global_step, uint32_t samples,
                                  const uint64_t *start_ns, const uint64_t *end_ns, const mr_causes *causes);

/* What limits, by the idle part (0..1) of the devices and its causes: "compute" where they hardly idle, else
 * the name of the heaviest cause, those together that the same remedy helps against ("decode" stands for
 * decode and large, "cores" for cores and quota). A static string. */
MR_API const char *mr_limit_name(double idle, const mr_causes *causes);

typedef struct mr_record_totals {
    size_t struct_size;
    uint64_t chunks, steps; /* chunks: that are kept; steps: since the record was cleared, as all below */
    double seconds;         /* from the end of the first step to that of the last */
    double samples_per_s;   /* in these */
    double idle;            /* of the devices, 0..1 */
    mr_causes causes;       /* of that, mean over devices */
    const char *limit;      /* mr_limit_name() of it */
    double bytes_per_sample, decode_ms_per_sample, read_ms_per_chunk; /* decode: on a core */
    double step_ms;                 /* mean; computing, without what devices wait for */
    double read_core_ms_per_sample; /* of the readers' threads, on a core */
} mr_record_totals;
MR_API void mr_record_totals_read_sized(const mr_record *r, mr_record_totals *out);
static inline void mr_record_totals_read(const mr_record *r, mr_record_totals *out)
{
    if (out) out->struct_size = sizeof *out;
    mr_record_totals_read_sized(r, out);
}

/* A pipeline to send the recorded durations through, in the order in which they were recorded. */
typedef struct mr_replay_config {
    size_t struct_size;
    uint32_t batch, prefetch, workers, readers, depth, devices; /* as in mr_loader_config, but none of them 0,
                                                                   prefetch apart: in series */
    double cores;        /* that workers, readers, copies and steps share; each thread gets the same part */
    uint32_t step_cores; /* that a step wants on each device: threads of cpu devices. 0: it has its own */
    double others;       /* threads of other programs that want to run all the time; 0: the machine is ours */
    double copy_core_ms; /* of the copies of a batch to one device: a core copies for so long, as batches
                            were */
    double read_times;   /* durations are multiplied by these. read: until storage has answered; 0: samples
                            are in memory, no reader is needed */
    double decode_times, copy_times, step_times;
    double bytes_times;     /* of a sample, in storage: reading takes as many times as long */
    uint64_t batches;       /* to replay at most; 0: as many as were recorded, and enough of them */
    double read_core_times; /* what a reader's thread does on a core for a sample */
    double crowd_times; /* work on a core takes so many times as long when all cores are busy as when one is:
                           shared caches, hyper-threads; default 1 */
    double crowd_part;  /* of that, what the record has in it, 0..1: the part of the other cores that were
                           busy, with this program or others */
} mr_replay_config;

/* The settings of the loader that filled the record, this machine's cores, durations as they are. MR_EINVAL:
 * there is nothing to replay, which err explains: chunks, copies and steps are needed. */
MR_API int mr_replay_defaults_sized(const mr_record *r, mr_replay_config *cfg, size_t struct_size,
                                    mr_error *err);
static inline int mr_replay_defaults(const mr_record *r, mr_replay_config *cfg, mr_error *err)
{
    return mr_replay_defaults_sized(r, cfg, sizeof *cfg, err);
}

/* cfg->others: what must have run beside, for workers to be delayed as they were. */
MR_API int mr_replay_find_others(const mr_record *r, mr_replay_config *cfg, mr_error *err);

typedef struct mr_replay_result {
    size_t struct_size;
    double samples_per_s;
    double samples_per_s_error; /* half of the 95 % interval that replays of separate parts of the record
                                   span: how much the record says, not how good the model is */
    double idle;                /* of the devices, 0..1 */
    mr_causes causes;           /* of that, mean over devices */
    const char *limit;          /* mr_limit_name() of it */
    double step_ms_p50, step_ms_p95, step_ms_p99; /* from the end of a step to that of the next */
    double cores, read_bytes_per_s;               /* used, on average */
    uint64_t batches;                             /* that were counted */
} mr_replay_result;

/* Pure: the same record and settings give the same result. No clock, no thread. MR_EINVAL: a setting out of
 * range, or nothing to replay. */
MR_API int mr_replay_sized(const mr_record *r, const mr_replay_config *cfg, mr_replay_result *out,
                           mr_error *err);
static inline int mr_replay(const mr_record *r, const mr_replay_config *cfg, mr_replay_result *out,
                            mr_error *err)
{
    if (out) out->struct_size = sizeof *out;
    return mr_replay_sized(r, cfg, out, err);
}

/* ------------------------------------------------------------------------------ digest */

/* A hash over everything that loaders deliver, in order: epoch, step, and a hash of each sample's id, label,
 * pixels, affine numbers, second label and fields. One digester may run over several loaders one after the
 * other (stop and resume): equal deliveries give equal digests, whatever the settings. */
typedef struct mr_digest {
    uint64_t lo, hi;
} mr_digest;
typedef struct mr_digester mr_digester;

MR_API int mr_digester_create(mr_digester **out);
MR_API void mr_digester_destroy(mr_digester *d);
/* For loaders of parts of a batch: called by the thread in mr_digester_run(), for each batch, with the
 * digests of its `all` samples, of which those of [first, first + count) are known here; it puts the others'
 * in their places, or returns an error.
 */
typedef int mr_digest_share(void *context, mr_digest *samples, uint32_t first, uint32_t count, uint32_t all,
                            mr_error *err);
MR_API void mr_digester_share(mr_digester *d, mr_digest_share *share, void *context);
/* Take batches until the loader ends or max_batches are taken. With devices (the loader's, which then needs
 * keep_host) every part is read back from its device and compared with the host copy: MR_EDEVICE when they
 * differ. *samples: of whole batches. */
MR_API int mr_digester_run(mr_digester *d, mr_loader *l, mr_device *const *devices, uint64_t max_batches,
                           uint64_t *batches, uint64_t *samples, mr_error *err);
MR_API mr_digest mr_digester_result(const mr_digester *d);

#ifdef __cplusplus
}
#endif
#endif
