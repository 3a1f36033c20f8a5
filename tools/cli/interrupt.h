/* tools/cli/interrupt.h: Ctrl-C. The first SIGINT or SIGTERM sets a flag that loops look at, so that files
 * and threads are left in order; the second ends the program at once. */
#ifndef TOOLS_INTERRUPT_H
#define TOOLS_INTERRUPT_H

#include <stdbool.h>

extern volatile int interrupt_flag; /* 0, or the signal's number: what mr_fit and mr_convert take as `stop` */
enum { INTERRUPT_REGROUP = -1 };    /* no signal: training stops for a process that has come (elastic.h) */

void interrupt_install(void);
/* In a child, before it becomes another program: the signals as they were before interrupt_install(), so that
 * what was ignored still is. */
void interrupt_leave(void);

/* For a program that starts this one, and says its own process number (of MILLRACE_PARENT; NULL: nobody
 * does): when it ends, however it does, this process gets a SIGTERM. False: it has ended already. */
bool interrupt_with_parent(const char *parent);

/* What the second signal writes to stderr before it ends the program: the end of a line that is being drawn.
 * NULL: nothing. */
extern const char *volatile interrupt_parting;

#endif
