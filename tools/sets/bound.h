/* tools/sets/bound.h: measures the bound of a training on a data set: the loader's rate for some of
 * the samples, and the time of a step. Callers: cmd_stats.c. */
#ifndef TOOLS_SETS_BOUND_H
#define TOOLS_SETS_BOUND_H

#include "tools/facts/stats.h"
#include "tools/session/groups.h"

typedef struct bound_args {
    double seconds; /* for each rate */
    double step;    /* seconds of a step; 0: not given */
    uint32_t batch; /* 0: the model's, else 128 */
    uint32_t workers;
    const char *augment, *model, *devices; /* or NULL */
    const char *usual;                     /* without augment and model */
    const data_args *data;
} bound_args;

/* src has pictures that can be read. 0 or an exit status. */
int bound_measure(const mr_source *src, const bound_args *a, mr_stats_bound *out);

#endif
