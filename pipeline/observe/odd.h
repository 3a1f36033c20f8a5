/* pipeline/observe/odd.h: one worker, or one file, that takes far longer than its likes. Private.
 *
 * A stage counts for each of them how many items it had and how long they took; here the ones that stick out
 * are found. Causes (causes.h) say what a device waited for, this says whose fault it was when it was one
 * alone: a core shared with another program, a shard on a slow disk. */
#ifndef MRI_ODD_H
#define MRI_ODD_H

#include "base/util.h"
#include "millrace/pipeline.h"

/* A busy machine makes a read from memory take longer now and then, a slow disk most of them. */
#define MRI_LONG_READ_NS 300000u

/* Of one worker or one file, so far: atomics, relaxed. */
typedef struct mri_toll {
    uint64_t items, ns;          /* samples decoded, or reads */
    uint64_t bytes;              /* of the reads */
    uint64_t long_items;         /* reads that took more than MRI_LONG_READ_NS */
    uint64_t ran_ns, delayed_ns; /* of a worker's ns: on a core; could have run. The rest: blocked */
} mri_toll;

/* Those of `count` that stick out, the slowest first; how many, at most room. What they are compared with is
 * the median of all, of two the faster one. Few items, or little time lost, say nothing. */
uint32_t mri_odd_find(mr_odd_kind kind, const mri_toll *of, uint32_t count, mr_odd *out, uint32_t room);

#endif
