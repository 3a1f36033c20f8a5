/* run/page/timeline.h: what every thread and device did when: a drawing with a zoom, and a table of it. */
#ifndef MRI_TIMELINE_H
#define MRI_TIMELINE_H

#include <stddef.h>
#include <stdio.h>

#include "millrace/pipeline.h"
#include "run/page/json_read.h"

typedef struct mri_timeline_span {
    const char *track, *name;
    double from_ms, to_ms;
    double batch; /* NAN: of none */
} mri_timeline_span;

enum { MRI_TIMELINE_SPANS_MOST = 6000, MRI_TIMELINE_TRACKS_MOST = 64 };

/* Sorts spans. Of more than MRI_TIMELINE_SPANS_MOST those in the middle are drawn; the table is of these.
 * Never empty when count is not 0. */
void mri_timeline_put(FILE *f, mri_timeline_span *spans, size_t count);

/* Spans of what mr_trace_entries() gave; free() them. NULL: no memory. They point into entries. */
mri_timeline_span *mri_timeline_of_trace(const mr_trace_entry *entries, size_t count);
/* Of a trace file read back (Chrome trace events with ph X and names of threads); they point into the tree.
 * *count is 0 without such events. NULL: no memory. */
mri_timeline_span *mri_timeline_of_json(const cJSON *trace, size_t *count);

#endif
