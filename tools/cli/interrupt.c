/* tools/cli/interrupt.c: see interrupt.h. */
#include "tools/cli/interrupt.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

volatile int interrupt_flag;
const char *volatile interrupt_parting;

static const int taken[] = {SIGINT, SIGTERM, SIGXFSZ};
static struct sigaction before[sizeof taken / sizeof *taken];

static void on_signal(int number)
{
    if (interrupt_flag > 0) {
        const char *parting = interrupt_parting;
        if (parting && write(STDERR_FILENO, parting, strlen(parting)) < 0) _exit(128 + number);
        _exit(128 + number);
    }
    __atomic_store_n(&interrupt_flag, number, __ATOMIC_RELAXED); /* threads look at it, too */
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
