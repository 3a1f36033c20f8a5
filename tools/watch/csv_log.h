/* tools/watch/csv_log.h: a run as CSV: a header, a line for each requested stretch of steps, a line for each
 * epoch. A missing figure is an empty field. */
#ifndef TOOLS_CSV_LOG_H
#define TOOLS_CSV_LOG_H

#include "millrace/train.h"
#include "tools/watch/watch_file.h"

typedef struct csv_log {
    watch_file file;
} csv_log;

/* resume: a file that is there goes on when its header is ours; half a line at its end, which a kill left, is
 * cut off. */
int csv_log_open(csv_log *c, const char *path, const mr_source *const *sources, bool resume, mr_error *err);
void csv_log_step(csv_log *c, const mr_step_report *r);
void csv_log_eval(csv_log *c, const mr_eval_report *r);
void csv_log_epoch(csv_log *c, const mr_report *r, uint64_t updates); /* updates: done when it ended; syncs */
int csv_log_close(csv_log *c);

#endif
