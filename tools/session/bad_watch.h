/* tools/session/bad_watch.h: damaged samples that a loader meets. */
#ifndef TOOLS_BAD_WATCH_H
#define TOOLS_BAD_WATCH_H

#include "millrace/verify.h"
#include "tools/session/setup.h"

/* Bad samples found while loading: the first ten are reported on stderr, and all are listed in run->bad_list
 * when that is given. */
typedef struct bad_watch {
    mr_bad_list *list; /* NULL: not wanted */
    const mr_source *src;
    bool stops;     /* --bad stop */
    uint64_t count; /* workers write it one at a time; read it when the loader is closed */
} bad_watch;
int bad_watch_open(bad_watch *w, const mr_source *src, const run_args *run, mr_loader_config *cfg);
/* status, or EXIT_BAD_SAMPLES when it is EXIT_DONE and there were some, or EXIT_FAILED when the list could
 * not be written. */
int bad_watch_close(bad_watch *w, int status);

#endif
