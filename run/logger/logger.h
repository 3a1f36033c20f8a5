/* run/logger/logger.h: a training seen from outside while it goes on: event files for TensorBoard, a CSV
 * file, a page of figures for Prometheus.
 *
 * The room run/logger/
 *   takes      the reports of mr_fit(), and a loader whose counters any thread may read
 *   gives      calls of millrace/logger.h (logger.c) on files (event_file.h, csv_log.h)
 *              and a page (metrics_page.h on metrics_server.h)
 *   callers    programs */
#ifndef MRI_LOGGER_H
#define MRI_LOGGER_H

#include "millrace/logger.h"

/* The run: labels and numbers of the page. Fixed after open. */
typedef struct mri_logged_run {
    const mr_loader *loader;
    const char *model, *data, *device;
    uint32_t replicas;
    uint64_t epochs, updates; /* updates: done before */
} mri_logged_run;

#endif
