/* tools/commands/report_page.h: the page of `millrace report`: one run, or two side by side. */
#ifndef TOOLS_REPORT_PAGE_H
#define TOOLS_REPORT_PAGE_H

#include <stdio.h>

#include "settings/limits.h"
#include "tools/page/run_log.h"
#include "tools/page/timeline.h"

/* A picture as it went to the network. */
typedef struct report_sample {
    char label[96];
    void *png; /* malloc'd */
    size_t bytes;
} report_sample;

enum { REPORT_RUNS = 2 };

typedef struct report_page {
    run_log run[REPORT_RUNS];
    int runs;
    const char *trace_path; /* NULL: no timeline */
    timeline_span *spans;
    size_t span_count;
    const char *bad_path; /* NULL: no list of bad samples */
    run_log bad;
    report_sample sample[MRI_REPORT_SAMPLES_MOST];
    uint32_t sample_count;
} report_page;

/* context: a report_page. */
void report_page_put(FILE *f, void *context);

#endif
