/* train/run/tap.h: the wire of a group, watched: which part of an exchange is waiting for a process that has
 * not begun, which is bytes on their way, and which is adding up. Private to train/ and its tests.
 *
 *   an array    │ exchange of nodes             │ sum │ exchange of slices │
 *               └ wait for rank 2 ┴─ exchange ──┴─────┴─── exchange ───────┘
 *
 * Where the ranks of a host add first (host_wire.h), it is four exchanges: of nodes within hosts and between
 * them, of slices between hosts and within them.
 *
 * Spans go to the trace and to a profiler. Until the first byte of the last process comes, that process has
 * not begun, or its bytes are on their way: at least the latency of the network. */
#ifndef MRI_TAP_H
#define MRI_TAP_H

#include <pthread.h>

#include "millrace/observe.h"
#include "millrace/train.h"
#include "train/packed/packer.h"

/* The requests to a group, in their order. */
typedef struct mri_tap_work {
    uint64_t batch; /* global step, or MR_NOWHERE */
    uint32_t bucket;
    uint64_t bytes_left; /* of the array; a sum and a broadcast pass every byte once, in blocks */
    bool sum;
    bool packed; /* a sum whose floats may travel in fewer bits (packer.h); with it: */
    uint64_t at; /* of the array's floats that are next, different in every sum of a step */
} mri_tap_work;

typedef struct mri_tap {
    mr_wire wire;    /* the watched one */
    mr_world *world; /* whose wire it is */
    mr_trace *trace; /* or NULL */
    pthread_mutex_t lock;
    mri_tap_work *queue; /* lock: a ring */
    uint32_t cap, begun, ended;
    /* of the thread that exchanges */
    uint64_t *first_ns;             /* by rank */
    uint64_t before_end_ns;         /* of the exchange before */
    uint32_t per_host, steps, step; /* steps: exchanges of a sum; step: the next one */
    mri_packer packer;
} mri_tap;

/* how: floats of packed work travel. On failure fini is still to be called. */
int mri_tap_init(mri_tap *t, mr_world *world, mr_exchange how, mr_trace *trace, mr_error *err);
void mri_tap_fini(mri_tap *t); /* accepts a zeroed one */
/* Copied by a group. Its context is t. */
mr_wire mri_tap_wire(mri_tap *t);
/* mr_group_config.ranks_per_host of such a group: values in fewer bits are packed by the ranks themselves. */
uint32_t mri_tap_ranks_per_host(const mri_tap *t);
/* mr_group_config.check of such a group. */
int mri_tap_check(void *tap, mr_error *err);
/* The group is about to be asked for this. */
int mri_tap_expect(mri_tap *t, const mri_tap_work *work, mr_error *err);

/* ---- sums that a device makes by itself (NCCL), so that nothing passes a tap ----
 *
 * Two events for each sum; its span is written once the second one is over. A device has come to a sum before
 * others have, so a span includes the wait for them. */

enum { MRI_SUM_SPANS = 64 }; /* that are queued and not written */

typedef struct mri_sum_spans {
    mr_trace *trace; /* NULL: nothing is recorded */
    mr_stream *stream;
    mr_event *begin[MRI_SUM_SPANS], *end[MRI_SUM_SPANS];
    uint64_t batch[MRI_SUM_SPANS];
    uint64_t queued, written; /* number k (from 0) is at k % MRI_SUM_SPANS */
} mri_sum_spans;

/* trace: or NULL. On failure mri_sum_spans_fini() is still to be called. */
int mri_sum_spans_init(mri_sum_spans *s, mr_trace *trace, mr_stream *stream, mr_error *err);
void mri_sum_spans_fini(mri_sum_spans *s); /* accepts a zeroed one */
/* Around the calls that queue a sum of this batch. May wait for the oldest one. */
int mri_sum_spans_begin(mri_sum_spans *s, uint64_t batch);
int mri_sum_spans_end(mri_sum_spans *s);
/* Write those that are over. */
void mri_sum_spans_write(mri_sum_spans *s);

#endif
