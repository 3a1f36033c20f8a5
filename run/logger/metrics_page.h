/* run/logger/metrics_page.h: the figures of a run in Prometheus' text format. Written by the thread that
 * trains, which only copies reports, and read by the server's; the loader's counters are read when somebody
 * asks. */
#ifndef MRI_METRICS_PAGE_H
#define MRI_METRICS_PAGE_H

#include <pthread.h>
#include <stdio.h>

#include "run/logger/logger.h"

typedef struct mri_metrics_state {
    uint64_t steps, epoch, step, steps_per_epoch, updates;
    bool has_stretch, has_epoch, has_val;
    mr_step_report stretch; /* the newest */
    mr_report last;         /* the newest epoch */
    double val_loss, val_accuracy;
} mri_metrics_state;

typedef struct mri_metrics_page {
    mri_logged_run run; /* fixed after init */
    pthread_mutex_t lock;
    mri_metrics_state now; /* lock */
} mri_metrics_page;

int mri_metrics_page_init(mri_metrics_page *m, const mri_logged_run *run); /* 0, or an errno */
void mri_metrics_page_fini(mri_metrics_page *m);
void mri_metrics_page_progress(mri_metrics_page *m, uint64_t epoch, uint64_t step, uint64_t steps_per_epoch);
void mri_metrics_page_step(mri_metrics_page *m, const mr_step_report *r);
void mri_metrics_page_epoch(mri_metrics_page *m, const mr_report *r);
/* Any thread: an mri_metrics_page_fn. */
void mri_metrics_page_write(void *context, FILE *out);

#endif
