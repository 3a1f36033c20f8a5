/* tools/foreign/opens.h: how often files below a folder were opened, by any process (inotify). If a program
 * reads one file for each sample, that is its number of samples. */
#ifndef TOOLS_OPENS_H
#define TOOLS_OPENS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct opens_figures {
    bool counted;  /* false: `why` */
    bool at_least; /* events were lost */
    uint64_t count;
    double seconds; /* from the first to the last */
    uint32_t folders;
    char why[256];
} opens_figures;

typedef struct opens_watch opens_watch;

/* NULL where it cannot be counted (figures->why), or path is no folder. figures outlives the watch. */
opens_watch *opens_open(const char *path, opens_figures *figures);
int opens_fd(const opens_watch *o); /* to wait for; -1 for NULL */
void opens_take(opens_watch *o);    /* what has come; accepts NULL */
void opens_close(opens_watch *o);   /* accepts NULL */

#endif
