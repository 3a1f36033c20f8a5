/* tools/cli/exit.c: see exit.h. */
#include "tools/cli/exit.h"

#include <signal.h>

#include "tools/cli/interrupt.h"
#include "tools/cli/output.h"

int exit_code;

int exit_status(int rc, const mr_error *err)
{
    if (rc == MR_OK) return EXIT_DONE;
    exit_code = rc;
    if (rc == MR_ECANCELED && interrupt_flag) {
        say("stopped by signal %d%s%s", interrupt_flag, err->text[0] ? ": " : "", err->text);
        return EXIT_SIGNAL + interrupt_flag;
    }
    say_error(err);
    return rc == MR_ECANCELED ? EXIT_SIGNAL + SIGINT : EXIT_FAILED; /* of a run in several processes another
                                                                       was stopped */
}

int setting_status(int rc, const mr_error *err)
{
    const int status = exit_status(rc, err);
    return rc == MR_EINVAL ? EXIT_MISUSED : status;
}

int exit_no_memory(const char *what)
{
    say("out of memory%s%s", what ? " for " : "", what ? what : "");
    return EXIT_FAILED;
}
