/* run/report/run_page.h: the parts of a page about one run, or two side by side.
 *
 * The room report/
 *   takes      logs of runs, traces, lists of bad samples, counts of a data set, networks
 *   gives      pages (millrace/report.h), of the parts of page/
 *   callers    the public header */
#ifndef MRI_RUN_PAGE_H
#define MRI_RUN_PAGE_H

#include <stdio.h>

#include "millrace/report.h"
#include "run/page/run_log.h"
#include "run/page/timeline.h"

/* A picture as the network received it. */
typedef struct mri_page_sample {
    char label[96];
    void *png; /* malloc'd */
    size_t bytes;
} mri_page_sample;

struct mr_run_page {
    mr_run_page_config cfg;
    mri_run_log run[MR_RUN_PAGE_RUNS];
    int runs;
    const char *trace_path; /* NULL: no timeline */
    mri_timeline_span *spans;
    size_t span_count;
    const char *bad_path; /* NULL: no list of bad samples */
    mri_run_log bad;
    mri_page_sample sample[MR_RUN_PAGE_PICTURES];
    uint32_t sample_count;
    char *name[MR_RUN_PAGE_RUNS + 2]; /* the texts of paths; owned */
    size_t name_count;
    cJSON *trace_tree; /* the spans point into it, or into entries */
    char *trace_text;
    mr_trace_entry *entries;
};

/* For mri_page_write(); context: a const mr_run_page. */
void mri_run_page_put(FILE *f, void *context);

#endif
