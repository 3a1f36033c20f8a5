/* pipeline/observe/odd.h: one worker, or one file, that takes far longer than the others. Private.
 *
 * A stage counts the items of each and their time; this file finds the outliers. Causes (causes.h) show why a
 * device waited; outliers show when a single worker or file was at fault: a core shared with another program,
 * a shard on a slow disk. */
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

/* Find the outliers among `count`, slowest first; returns their number, at most room. They are compared with
 * the median of all, with two items with the faster one. Outliers with few items or little lost time are
 * ignored. */
uint32_t mri_odd_find(mr_odd_kind kind, const mri_toll *of, uint32_t count, mr_odd *out, uint32_t room);

#endif
