/* tools/watch/live.h: a view of a run on the terminal, drawn again four times a second by a thread of its
 * own.
 *
 * It is drawn below earlier output; messages (say()) and results go above it, and closing removes it. It
 * changes no mode of the terminal, so nothing must be restored when the program is killed. The size is asked
 * for at every drawing. */
#ifndef TOOLS_LIVE_H
#define TOOLS_LIVE_H

#include "millrace/train.h"

/* The watched run; everything outlives the view. */
typedef struct live_run {
    const char *title;
    const mr_loader *loader, *val; /* val may be NULL */
    const mr_source *src;          /* names of samples come from it */
    const mr_record *record;       /* where steps are recorded; NULL: nothing trains */
    uint32_t devices;
    uint64_t epochs;
} live_run;

typedef struct live_view live_view;

/* NULL, or why there is no view here: standard error is no terminal, or one that cannot. */
const char *live_obstacle(void);
/* EXIT_DONE, or why not, which is said. */
int live_open(live_view **out, const live_run *run);
/* The thread that trains, both; v may be NULL. */
void live_progress(live_view *v, uint64_t epoch, uint64_t step, uint64_t steps_per_epoch);
void live_step(live_view *v, const mr_step_report *report);
/* The terminal is as if there had been no view. Accepts NULL. */
void live_close(live_view *v);

#endif
