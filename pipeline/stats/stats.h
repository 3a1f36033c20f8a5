/* pipeline/stats/stats.h: counts of a data set. Private.
 *
 *   collect   every sample is read once, on several threads: its label, its picture's header, a hash of its
 *             bytes; of some the pixels are decoded (collect.c)
 *   sum up    one pass over these facts in the order of the samples: the same numbers for any number of
 *             threads (stats.c)
 *   shared    the part to test with is read, too, for samples that both have (shared.c)
 *
 * The room
 *   takes     an open source
 *   gives     the calls of millrace/stats.h
 *   callers   programs */
#ifndef MRI_STATS_H
#define MRI_STATS_H

#include "millrace/stats.h"

/* Types of pictures, in the order of mr_stats_kind_name(). */
enum { MRI_STATS_TYPES = 10 };
extern const mr_type mri_stats_types[MRI_STATS_TYPES];

/* What mr_stats_free() gets is `of`. */
typedef struct mri_stats {
    mr_stats of;
    mr_sample_facts *sample; /* these three are lent by `of` */
    uint64_t *of_class;
    double *sums;
} mri_stats;

/* cfg: whole. Reports bad samples. */
int mri_stats_collect(mri_stats *s, const mr_stats_config *cfg, mr_error *err);
/* Finds copies of the samples of `test` among the samples of s; both were collected (shared.c). */
int mri_stats_find_shared(const mr_stats *s, const mr_stats *test, const volatile int *stop,
                          mr_stats_shared *out, mr_error *err);

#endif
