/* tools/cli/interrupt.h: Ctrl-C. The first SIGINT or SIGTERM sets a flag that loops look at, so that files
 * and threads are left in order; the second ends the program at once. */
#ifndef TOOLS_INTERRUPT_H
#define TOOLS_INTERRUPT_H

#include <stdbool.h>

extern volatile int interrupt_flag; /* 0, or the signal's number: what mr_fit and mr_convert take as `stop` */
enum { INTERRUPT_REGROUP = -1 };    /* no signal: training stops for a process that has come (elastic.h) */

void interrupt_install(void);
/* In a child, before it becomes another program: the signals as they were before interrupt_install(), so that
 * ignored signals stay ignored. */
void interrupt_leave(void);

/* For a program that starts this one, and says its own process number (of MILLRACE_PARENT; NULL: nobody
 * does): when it ends, however it does, this process gets a SIGTERM. False: it has ended already. */
bool interrupt_with_parent(const char *parent);

/* Around each write that leaves the cursor in the middle of a line, or wipes such a line. The second signal
 * waits for interrupt_drawn() (at most a fifth of a second), writes `parting` to stderr and ends the program;
 * later drawings wait for that end. NULL: nothing is left to part from. */
void interrupt_drawing(void);
void interrupt_drawn(const char *parting);

#endif
