/* tools/session/world_trace.h: one trace of all processes of a run, on the clock of the first one. */
#ifndef TOOLS_WORLD_TRACE_H
#define TOOLS_WORLD_TRACE_H

#include "millrace/pipeline.h"
#include "tools/session/world.h"

/* This process's clock compared with the first one's, at two moments. */
typedef struct world_clock {
    uint64_t at_ns[2];
    int64_t shift_ns[2];
    uint64_t within_ns; /* the worse of the two */
    bool used;          /* the first process traces: all do */
} world_clock;

/* All processes, at the same time, before the run; traces: this one has a trace to write. An exit status.
 * Where w has no other processes nothing happens. */
int world_clock_begin(world_clock *c, const tool_world *w, bool traces);
/* All processes, after a run that has ended well: the first one writes what all have recorded. */
int world_write_trace(world_clock *c, const tool_world *w, const mr_trace *trace, const char *path);

#endif
