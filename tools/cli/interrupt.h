/* tools/cli/interrupt.h: Ctrl-C. The first SIGINT or SIGTERM sets a flag that loops look at, so that files
 * and threads are left in order; the second ends the program at once. */
#ifndef TOOLS_INTERRUPT_H
#define TOOLS_INTERRUPT_H

extern volatile int interrupt_flag; /* 0, or the signal's number: what mr_fit and mr_convert take as `stop` */

void interrupt_install(void);

#endif
