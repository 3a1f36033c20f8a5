/* tools/page/timeline.h: what every thread and device did when: a drawing with a zoom, and a table of it. */
#ifndef TOOLS_TIMELINE_H
#define TOOLS_TIMELINE_H

#include <stddef.h>
#include <stdio.h>

#include "millrace/pipeline.h"
#include "tools/page/json_read.h"

typedef struct timeline_span {
    const char *track, *name;
    double from_ms, to_ms;
    double batch; /* NAN: of none */
} timeline_span;

enum { TIMELINE_SPANS_MOST = 6000, TIMELINE_TRACKS_MOST = 64 };

/* Sorts spans. Of more than TIMELINE_SPANS_MOST those in the middle are drawn; the table is of these. Never
 * empty when count is not 0. */
void timeline_put(FILE *f, timeline_span *spans, size_t count);

/* Spans of what mr_trace_entries() gave; free() them. NULL: no memory. They point into entries. */
timeline_span *timeline_of_trace(const mr_trace_entry *entries, size_t count);
/* Of a trace file read back (Chrome trace events with ph X and names of threads); they point into the tree.
 * *count is 0 without such events. NULL: no memory. */
timeline_span *timeline_of_json(const cJSON *trace, size_t *count);

#endif
