/* tools/watch/metrics_page.h: the figures of a run in Prometheus' text format. Written by the thread that
 * trains, which only copies reports, and read by the server's; the loader's counters are read when somebody
 * asks. */
#ifndef TOOLS_METRICS_PAGE_H
#define TOOLS_METRICS_PAGE_H

#include <pthread.h>
#include <stdio.h>

#include "tools/watch/watch.h"

typedef struct metrics_state {
    uint64_t steps, epoch, step, steps_per_epoch, updates;
    bool has_stretch, has_epoch, has_val;
    mr_step_report stretch; /* the newest */
    mr_report last;         /* the newest epoch */
    double val_loss, val_accuracy;
} metrics_state;

typedef struct metrics_page {
    watch_run run; /* fixed after init */
    pthread_mutex_t lock;
    metrics_state now; /* lock */
} metrics_page;

int metrics_page_init(metrics_page *m, const watch_run *run); /* 0, or an errno */
void metrics_page_fini(metrics_page *m);
void metrics_page_progress(metrics_page *m, uint64_t epoch, uint64_t step, uint64_t steps_per_epoch);
void metrics_page_step(metrics_page *m, const mr_step_report *r);
void metrics_page_epoch(metrics_page *m, const mr_report *r);
/* Any thread: a metrics_page_fn. */
void metrics_page_write(void *context, FILE *out);

#endif
