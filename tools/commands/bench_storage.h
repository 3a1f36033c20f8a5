/* tools/commands/bench_storage.h: `millrace bench storage`: how many accelerators this machine feeds from the
 * data, in the unit of MLPerf Storage. */
#ifndef TOOLS_BENCH_STORAGE_H
#define TOOLS_BENCH_STORAGE_H

#include "tools/session/session.h"

typedef struct storage_args {
    const char *accelerator, *workload;
    double step; /* s; NAN: the accelerator's */
    uint32_t from;
} storage_args;

/* What `given` has not is the unit's own, and this benchmark's for --prefetch and --resident. 0 or an exit
 * status. */
int bench_storage(tool_session *s, const storage_args *a, const session_args *shared, const opt_given *given,
                  double seconds);

#endif
