/* settings/limits.h: the largest values that rows allow and that code needs as constants, too, for arrays of
 * this size. Private. */
#ifndef MRI_LIMITS_H
#define MRI_LIMITS_H

enum {
    MRI_CHECK_WORKERS_MOST = 256,   /* threads that look at samples: verify, inspect, stats, choices */
    MRI_MANIFEST_WORKERS_MOST = 64, /* threads that sum the files of a set */
    MRI_REPORT_SAMPLES_MOST = 64,   /* pictures that a report shows */
    MRI_ROUNDS_MOST = 64,           /* rounds of a measurement */
    MRI_PART_THREADS_MOST = 4096,   /* threads that compute a share of a batch */
    MRI_REPLICAS_MOST = 64,         /* replicas of a loader: MR_LOADER_MAX_PARTS */
    MRI_SHARES_MOST = 65536,        /* shares of a batch: MR_SUM_MOST_LEAVES */
    MRI_RANKS_MOST = 4096,          /* ranks of a run, and servers among them */
    MRI_LOSSES_MOST = 256,          /* lost processes of a machine that a muster remembers */
};

#endif
