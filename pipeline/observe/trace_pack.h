/* pipeline/observe/trace_pack.h: packs a trace into bytes for another process. Private.
 *
 *   head | spans | names of tracks | names of spans
 *
 * Numbers are as in memory: processes of one run are of one build. */
#ifndef MRI_TRACE_PACK_H
#define MRI_TRACE_PACK_H

#include "millrace/pipeline.h"

#define MRI_TRACE_MAGIC UINT64_C(0x314b434152546d72)

enum { MRI_TRACE_TRACKS = 256, MRI_TRACE_NAME = 48, MRI_TRACE_NAMES = 4096 };

/* The same moment on both clocks, to within_ns. */
typedef struct mri_trace_anchor {
    uint64_t monotonic_ns, realtime_ns, within_ns;
} mri_trace_anchor;

typedef struct mri_trace_head {
    uint64_t magic;
    mri_trace_anchor anchors[2]; /* when it was opened, and packed */
    uint64_t dropped;
    uint64_t first, steps; /* the kept steps; steps 0: all */
    uint64_t span_count;
    uint32_t track_count, name_count;
    int64_t pid;
    char host[256];
} mri_trace_head;

typedef struct mri_trace_span {
    uint64_t start_ns, end_ns, batch;
    uint32_t track, name; /* track UINT32_MAX: "other" */
} mri_trace_span;

#endif
