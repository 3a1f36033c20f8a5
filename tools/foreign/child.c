/* tools/foreign/child.c: see child.h.
 *
 * The program is in our process group: a signal of the terminal (Ctrl-C) reaches it without us, and is not
 * passed on again; a signal sent to us alone is passed on. The kernel distinguishes the two (si_code). */
#include "tools/foreign/child.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/cli/exit.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/open_files.h"
#include "tools/cli/output.h"

static const int passed_on[] = {SIGHUP,  SIGINT,  SIGQUIT,  SIGTERM, SIGUSR1,
                                SIGUSR2, SIGALRM, SIGWINCH, SIGCONT};

/* Nothing of us is left in it but its parent. */
static void become(const child *c, char *const *command, const child_place *place, int report)
{
    interrupt_leave();
    open_files_restore();
    if (place && place->interruptible) signal(SIGINT, SIG_DFL), signal(SIGTERM, SIG_DFL);
    sigprocmask(SIG_SETMASK, &c->before, NULL);
    if (!place || dup2(place->output, STDOUT_FILENO) >= 0) execvp(command[0], command);
    const int why = errno;
    if (write(report, &why, sizeof why) != (ssize_t)sizeof why) _exit(126);
    _exit(127);
}

static int not_run(const char *name, int why)
{
    if (why == ENOENT) say("%s: there is no such program", name);
    else say("%s: cannot be executed: %s", name, strerror(why));
    return why == ENOENT ? 127 : 126;
}

static void block_signals(child *c)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    for (size_t i = 0; i < sizeof passed_on / sizeof *passed_on; i++) sigaddset(&set, passed_on[i]);
    sigprocmask(SIG_BLOCK, &set, &c->before);
    c->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

int child_start(child *c, char *const *command, const child_place *place)
{
    mr_error err = MR_ERROR_INIT;
    int report[2], why = 0;
    *c = (child){.signals = -1};
    if (pipe2(report, O_CLOEXEC) != 0)
        return exit_status(mr_error_sys(&err, errno, "cannot make a pipe"), &err);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    signal(SIGCHLD, SIG_DFL); /* whoever ignores it hands that on, and children could not be waited for */
    block_signals(c);
    c->pid = c->signals < 0 ? -1 : fork();
    if (c->pid == 0) become(c, command, place, report[1]);
    why = c->pid < 0 ? errno : 0;
    close(report[1]);
    const ssize_t n = c->pid > 0 ? read(report[0], &why, sizeof why) : 0;
    close(report[0]);
    if (c->pid > 0 && n <= 0) return EXIT_DONE;
    if (c->pid > 0) waitpid(c->pid, NULL, 0);
    child_leave(c);
    if (c->pid < 0) return exit_status(mr_error_sys(&err, why, "%s: cannot start it", command[0]), &err);
    return not_run(command[0], why);
}

static void bury(child *c)
{
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        if (pid != c->pid) continue; /* it had lost its parents */
        c->ended = true;
        c->status = WIFSIGNALED(status) ? EXIT_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
    }
}

void child_take_signals(child *c)
{
    struct signalfd_siginfo s;
    while (read(c->signals, &s, sizeof s) == (ssize_t)sizeof s) {
        const bool sent = s.ssi_code <= 0; /* by a process; the kernel's own are above */
        if (s.ssi_signo == SIGCHLD) bury(c);
        else if (sent && !c->ended) kill(c->pid, (int)s.ssi_signo);
    }
    bury(c);
}

void child_leave(child *c)
{
    if (c->signals >= 0) close(c->signals);
    c->signals = -1;
    sigprocmask(SIG_SETMASK, &c->before, NULL);
}
