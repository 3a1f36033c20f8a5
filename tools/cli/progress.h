/* tools/cli/progress.h: how far the work is, on stderr. */
#ifndef TOOLS_PROGRESS_H
#define TOOLS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/* One at a time. On a terminal a bar that is drawn again four times a second, elsewhere a line every five
 * seconds. */
typedef struct progress_bar {
    const char *label, *unit;
    bool quiet, terminal, drawn;
    uint64_t start_ns, next_ns;
    uint64_t start_done; /* what was done before: not part of the rate */
} progress_bar;

void progress_start(progress_bar *p, const char *label, const char *unit, bool quiet);
void progress_show(progress_bar *p, uint64_t done, uint64_t count, const char *note); /* note: text behind it,
                                                                                     or NULL */
void progress_end(progress_bar *p);
/* Clears the bar that is on the terminal, if one is, so that a message can take its line. */
void progress_wipe(void);

#endif
