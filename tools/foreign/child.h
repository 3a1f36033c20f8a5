/* tools/foreign/child.h: the program itself: started, signalled, waited for.
 *
 * From child_start() on the signals that are passed on are blocked here and come through a descriptor, so
 * that nothing interrupts anything; child_leave() restores the previous state. */
#ifndef TOOLS_CHILD_H
#define TOOLS_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

typedef struct child {
    pid_t pid;
    int signals; /* descriptor */
    sigset_t before;
    bool ended;
    int status; /* as a shell says it */
} child;

/* How it differs from a program that a shell would have started in our place. */
typedef struct child_place {
    int output;         /* the descriptor that becomes its standard output */
    bool interruptible; /* SIGINT and SIGTERM end it, also where we were started with them ignored */
} child_place;

/* place NULL: in nothing. EXIT_DONE; 127 or 126 when it cannot be run, 1 when nothing can be started, all of
 * which is said. */
int child_start(child *c, char *const *command, const child_place *place);
/* What has come: the dead are buried, signals passed on. */
void child_take_signals(child *c);
void child_leave(child *c);

#endif
