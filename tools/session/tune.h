/* tools/session/tune.h: --tune: the settings that the loader may tune, and its result stored for the next run
 * of the same kind: a text file for each data set, machine, devices and settings under
 * $XDG_CACHE_HOME/millrace/tune. */
#ifndef TOOLS_TUNE_H
#define TOOLS_TUNE_H

#include "tools/session/session.h"

typedef struct tune_run {
    char path[4096]; /* "": nothing is kept */
    char key[4096];
    bool known; /* used as kept: nothing is looked for */
} tune_run;

/* Data, devices and s->loader_cfg are there, the loader is not open. */
void tune_begin(tune_run *t, const tune_args *a, tool_session *s, const opt_given *given);
/* Before the loader is closed: store its result, if it finished. */
void tune_end(const tune_run *t, const tool_session *s, const tune_args *a);

#endif
