/* train/run/lateness.h: for which of several processes the others wait. Private to train/ and its tests.
 *
 *   rank 0  computes ├── waits for rank 1 ──┤── gradients on the wire ──┤
 *   rank 1  computes ························├── gradients on the wire ──┤
 *   rank 2  computes ··├─ waits for rank 1 ─┤── gradients on the wire ──┤
 *
 * All processes end a step together, so the process that waits least came last, and its wait is the
 * exchange itself. The longer wait of another process is charged to the last one. Only lengths are
 * compared, so clocks of different machines need not agree.
 *
 * Knows no world and no clock. One thread. */
#ifndef MRI_LATENESS_H
#define MRI_LATENESS_H

#include <stdint.h>

typedef struct mri_lateness {
    uint32_t rank, size;
    uint64_t steps;     /* at the newest comparison */
    uint64_t *newest;   /* by rank: its wait until then */
    uint64_t *late_ns;  /* by rank: how long this process has waited for it, since mri_lateness_begin() */
    uint64_t waited_ns; /* how long this process has waited for the network in all, since then */
} mri_lateness;

/* MR_OK or MR_ENOMEM; then fini is still to be called. */
int mri_lateness_init(mri_lateness *l, uint32_t rank, uint32_t size);
void mri_lateness_fini(mri_lateness *l); /* accepts a zeroed one */
/* Counts begin at 0 again. */
void mri_lateness_begin(mri_lateness *l);
/* Each rank has waited waited_ns[] since it began, in steps[] steps. Ranks that have finished different
 * numbers of steps are compared at the next call. */
void mri_lateness_compare(mri_lateness *l, const uint64_t *steps, const uint64_t *waited_ns);
/* The rank that this process waited for longest; *part: of all that it waited for the network, 0..1; 0: it
 * waited for none. */
uint32_t mri_lateness_worst(const mri_lateness *l, double *part);

#endif
