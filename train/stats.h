/* train/stats.h: figures of a run: robust statistics, and the verdict. */
#ifndef MRI_TRAIN_STATS_H
#define MRI_TRAIN_STATS_H

#include "base/util.h"
#include "millrace/train.h"

/* Median of count values (reordered); 0 for count 0. */
double mri_median(double *values, size_t count);
/* 1.4826 * median of |value - median|: the standard deviation's robust stand-in. values are overwritten. */
double mri_mad(double *values, size_t count, double median);

/* The value that a part q (0..1) of them does not exceed (nearest rank; reordered); 0 for count 0. */
double mri_quantile(double *values, size_t count, double q);

/* own_ns: each replica's time in its own shares of `steps` steps. Finds the slowest replica, its time per
 * step, and the median of the others'. False: one replica, or no step. */
bool mri_slowest_replica(const double *own_ns, uint32_t replicas, uint64_t steps, uint32_t *replica,
                         double *ms, double *others_ms);

/* The process that this one waits for longest. */
typedef struct mri_verdict_late {
    uint64_t ns; /* of network_ns */
    double ms;   /* the same, in a step */
    uint32_t rank;
    const char *host;
    double compute_ms, idle_ms;         /* its devices, in a step: computing, waiting for data */
    double own_compute_ms, own_idle_ms; /* of this process */
} mri_verdict_late;

/* The figures for the verdict, all of the same stretch of time. */
typedef struct mri_verdict_input {
    uint64_t compute_ns; /* device at work, mean over replicas */
    uint64_t exposed_ns; /* device idle between steps, mean over replicas */
    uint32_t prefetch;   /* of the loader; 0: everything in series */
    uint32_t workers;
    mr_causes causes;        /* of exposed_ns - network_ns */
    const char *slow_device; /* of several, the one whose own part of a step takes longest; NULL: there is one
                              */
    double slow_ms, others_ms; /* its time of that share, and the others' */
    uint64_t network_ns;       /* of exposed_ns: waiting for other processes and their gradients */
    uint64_t link_ns;          /* the sums take at most so long over the network as it was measured;
                                  UINT64_MAX: it was not */
    bool smaller_buckets;      /* of gradients would help */
    mri_verdict_late late;
} mri_verdict_input;

/* One line: which cause weighs most, and what would help against it. Always terminated. */
void mri_verdict(const mri_verdict_input *in, char *out, size_t out_bytes);

/* after - before, field by field; occupancies and thread counts are taken from after. */
void mri_loader_stats_since(const mr_loader_stats *after, const mr_loader_stats *before,
                            mr_loader_stats *out);

#endif
