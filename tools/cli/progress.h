/* tools/cli/progress.h: how far the work is, on stderr. */
#ifndef TOOLS_PROGRESS_H
#define TOOLS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/* One bar at a time, shown by one thread, while any thread may print messages (say()): one lock guards the
 * terminal's content. On a terminal a bar that is drawn again four times a second, elsewhere a line every
 * five seconds. */
typedef struct progress_bar {
    const char *label, *unit;
    bool quiet, terminal, drawn;
    bool untimed; /* set after progress_start(): no time left is shown */
    uint64_t start_ns, next_ns;
    uint64_t start_done; /* done earlier: not part of the rate */
} progress_bar;

void progress_start(progress_bar *p, const char *label, const char *unit, bool quiet);
void progress_show(progress_bar *p, uint64_t done, uint64_t count, const char *note); /* note: text after it,
                                                                                         or NULL */
void progress_end(progress_bar *p);
/* For messages, and for results on the same terminal: the bar is wiped, and until progress_release() nothing
 * else is written. The next progress_show() draws it again. Not to be nested, and no say() between the
 * two. */
void progress_hold(void);
void progress_release(void);

/* Whoever shows more than a bar: wipe(context) takes it off the terminal. It is called with the lock held,
 * also when nothing is drawn; NULL: nothing is shown any more. */
void progress_show_as(void (*wipe)(void *context), void *context);
/* To draw: nothing else is written while the lock is held. */
void progress_lock(void);
void progress_unlock(void);

#endif
