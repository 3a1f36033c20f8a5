/* tools/watch/watch.h: a run watched from outside while it goes on: a view on the terminal, and the outputs
 * of a logger (millrace/logger.h) with messages and exit status.
 *
 * The room watch/
 *   takes      the reports of mr_fit(), and options
 *   gives      the view (live.h), a logger (watch.h), and a step's figures as a line (step_line.h)
 *   callers    commands; nothing here depends on them, nor on sessions */
#ifndef TOOLS_WATCH_H
#define TOOLS_WATCH_H

#include "millrace/logger.h"
#include "tools/cli/options.h"

typedef struct watch_args { /* live is the command's, not the watch's */
#define MRI_OPTIONS OPT_MEMBER
#include "settings/reports.rows"
} watch_args;

extern const opt_set watch_options;

/* Before the first step. run: the members that the options do not give. *out NULL: nothing was asked for.
 * EXIT_DONE, or why not, which is said. */
int watch_open(mr_logger **out, const watch_args *a, const mr_logger_config *run);
/* status, or EXIT_FAILED in place of EXIT_DONE if something could not be written. */
int watch_close(mr_logger *w, int status);

#endif
