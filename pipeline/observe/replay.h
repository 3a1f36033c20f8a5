/* pipeline/observe/replay.h: a model of the loader and its devices, to which recorded durations are given.
 * Private.
 *
 *   claim ─► reader: core, in flight ─► worker: core, blocked ─► slot full ─► stager ─► copies ─► step
 *     ▲ a free chunk, a free slot                                             ▲ 2 device slots │ 2 queued
 *     └──────────────────────────── the slot, when its copies are over ◄──────────────────────┘
 *
 * Discrete events. The rules follow ring.c, staging.c and flight.c: batches in order, P + 1 slots, two device
 * slots, copies of one batch at a time, a device slot is written again when the step that used it is over, at
 * most two steps queued, replicas end a step together. Cores are shared as the kernel shares them over more
 * than a few milliseconds: n runnable threads on C cores, threads of other programs included, each get min(1,
 * C / n) of one. Threads begin as late as they did. Idle devices are charged as in a real run (causes.h).
 *
 * Left out: caches and memory bandwidth that workers compete for, storage that gets slower or
 * faster with more reads in flight, memory for large pictures. */
#ifndef MRI_REPLAY_H
#define MRI_REPLAY_H

#include "pipeline/observe/record.h"

/* One stretch of a record: [first, end) of chunks; copies and steps in the same part of theirs. */
typedef struct mri_replay_part {
    double from, to; /* 0..1 of the record */
    uint64_t batches;
} mri_replay_part;

typedef struct mri_replay_run {
    uint64_t batches; /* counted; steps: intervals between their ends */
    uint64_t samples;
    double ns; /* in which they ended */
    double compute_ns, idle_ns, core_ns, read_bytes;
    double ran_ns, delayed_ns; /* of workers */
    mr_causes causes;          /* sum over devices */
    double *interval_ns;       /* batches of them, the caller frees it */
} mri_replay_run;

/* cfg is checked. The first batches are left out as a warm-up. MR_OK or MR_ENOMEM. */
int mri_replay_part_run(const mri_record_data *data, const mr_replay_config *cfg, const mri_replay_part *part,
                        mri_replay_run *out);

#endif
