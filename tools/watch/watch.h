/* tools/watch/watch.h: a run watched from outside while it goes on: a view on the terminal, event files for
 * TensorBoard, a CSV file, a page of figures for Prometheus.
 *
 * The room watch/
 *   takes      the reports of mr_fit(), and a loader whose counters any thread may read
 *   gives      the view (live.h), those files and that page (event_file.h, csv_log.h, metrics_page.h on
 *              metrics_server.h), and a step's figures as a line (step_line.h)
 *   callers    commands; nothing here depends on them, nor on sessions
 *
 * An error here after the run has begun is reported once, and never ends the run: a failed write becomes an
 * exit status at its end. */
#ifndef TOOLS_WATCH_H
#define TOOLS_WATCH_H

#include "millrace/train.h"
#include "tools/cli/options.h"

typedef struct watch_args { /* live is the command's, not the watch's */
#define MRI_OPTIONS OPT_MEMBER
#include "settings/reports.rows"
} watch_args;

extern const opt_set watch_options;

/* The watched run; everything outlives the watch. */
typedef struct watch_run {
    const mr_loader *loader;
    const mr_source *sources[2]; /* none of their files is written; may be NULL */
    const char *model, *data, *device;
    uint32_t replicas;
    uint64_t epochs;
    uint64_t updates; /* done before */
    bool resume;      /* a file that is there goes on */
} watch_run;

typedef struct watch watch;

/* Before the first step. EXIT_DONE, or why not, which is said. */
int watch_open(watch **out, const watch_args *a, const watch_run *run);
/* The thread that trains, all four; w may be NULL. After each step: `step` steps of the epoch are queued. */
void watch_progress(watch *w, uint64_t epoch, uint64_t step, uint64_t steps_per_epoch);
void watch_step(watch *w, const mr_step_report *report);
void watch_eval(watch *w, const mr_eval_report *report);
void watch_epoch(watch *w, const mr_report *report);
/* status, or EXIT_FAILED in place of EXIT_DONE when something could not be written. Files that nothing was
 * written to are removed. Accepts NULL. */
int watch_close(watch *w, int status);

#endif
