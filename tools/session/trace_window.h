/* tools/session/trace_window.h: --trace-steps: which steps of a run a trace keeps. */
#ifndef TOOLS_TRACE_WINDOW_H
#define TOOLS_TRACE_WINDOW_H

#include "tools/session/session.h"

/* Where path is given or `also`: a trace to fill, in *out; else NULL. wants: the options that make one, for
 * the message of a window without a trace. 0, or the exit status after printing the error. */
int trace_window_open(mr_trace **out, const trace_args *a, const char *path, bool also, const char *wants);
/* After a run that went from step `first` to `last`, from 1; 0 to 0: no steps. Says how much of the window
 * came when that is not all. trace may be NULL. */
void trace_window_tell(const trace_args *a, const mr_trace *trace, uint64_t first, uint64_t last);

#endif
