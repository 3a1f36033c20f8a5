/* tools/cli/interrupt.c: see interrupt.h. */
#include "tools/cli/interrupt.h"

#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

volatile int interrupt_flag;
static const char *_Atomic parting; /* what ends the line that is on the terminal */
static _Atomic pid_t drawer;        /* the thread that is writing to the terminal, 0: nobody */
static atomic_bool ending;          /* the second signal has come: nothing is drawn from now on */

static const int taken[] = {SIGINT, SIGTERM, SIGXFSZ};
static struct sigaction before[sizeof taken / sizeof *taken];

/* The thread that draws may be the one that the signal interrupted. */
static bool another_draws(void)
{
    const pid_t thread = drawer;
    return thread != 0 && thread != gettid();
}

static void end_now(int number)
{
    enum { WAITS = 200 };
    ending = true;
    for (int i = 0; i < WAITS && another_draws(); i++) poll(NULL, 0, 1);
    const char *last = parting;
    if (last && write(STDERR_FILENO, last, strlen(last)) < 0) _exit(128 + number);
    _exit(128 + number);
}

static void on_signal(int number)
{
    if (interrupt_flag > 0) end_now(number);
    __atomic_store_n(&interrupt_flag, number, __ATOMIC_RELAXED); /* threads look at it, too */
}

void interrupt_drawing(void)
{
    drawer = gettid();
    if (!ending) return;
    drawer = 0;
    for (;;) pause();
}

void interrupt_drawn(const char *last)
{
    parting = last;
    drawer = 0;
}

void interrupt_install(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART; /* libraries need not expect EINTR; loops look at the flag */
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) sigaction(taken[i], NULL, &before[i]);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGXFSZ, SIG_IGN); /* a file at its limit: the write fails and says so */
}

bool interrupt_with_parent(const char *parent)
{
    if (!parent) return true;
    signal(SIGPIPE, SIG_IGN); /* nobody reads any more then, and that is not to be quicker than the SIGTERM */
    const long id = strtol(parent, NULL, 10);
    return prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 && getppid() == (pid_t)id; /* it may have ended before */
}

void interrupt_leave(void)
{
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) sigaction(taken[i], &before[i], NULL);
}
