/* tools/cli/exit.c: see exit.h. */
#include "tools/cli/exit.h"

#include <signal.h>

#include "tools/cli/interrupt.h"
#include "tools/cli/json.h"
#include "tools/cli/output.h"

int exit_code;
bool exit_told;
static mr_error newest = MR_ERROR_INIT; /* of exit_code */

/* One failure ends all processes of a run with one status, whether they find it or hear of it: the status
 * of the process that gave up first. Of a library's status its caller makes this one. */
static int status_of_other(const mr_error *err)
{
    const int status = err->host;
    if (status == MR_EINVAL || status == MR_EEND) return EXIT_MISUSED;
    if (status == MR_ECANCELED) return EXIT_SIGNAL + SIGINT;
    const bool is_status = status == EXIT_MISUSED || (status > EXIT_SIGNAL && status < EXIT_SIGNAL + NSIG);
    return is_status ? status : EXIT_FAILED;
}

int exit_status(int rc, const mr_error *err)
{
    if (rc == MR_OK) return EXIT_DONE;
    exit_code = rc;
    newest = *err;
    if (rc == MR_ECANCELED && interrupt_flag) {
        say("stopped by signal %d%s%s", interrupt_flag, err->text[0] ? ": " : "", err->text);
        return EXIT_SIGNAL + interrupt_flag;
    }
    say_error(err);
    if (rc == MR_EPEER || err->host == MR_EINVAL) return status_of_other(err);
    return rc == MR_ECANCELED ? EXIT_SIGNAL + SIGINT : EXIT_FAILED; /* of a run in several processes another
                                                                       was stopped */
}

int setting_status(int rc, const mr_error *err)
{
    const int status = exit_status(rc, err);
    return rc == MR_EINVAL || rc == MR_EEND ? EXIT_MISUSED : status;
}

int exit_no_memory(const char *what)
{
    say("out of memory%s%s", what ? " for " : "", what ? what : "");
    return EXIT_FAILED;
}

void exit_tell_json(int status)
{
    if (exit_told || (status != EXIT_FAILED && status != EXIT_MISUSED)) return;
    /* with a code that the library gave, or that was set beside a message */
    const int code = exit_code ? exit_code : status == EXIT_MISUSED ? MR_EINVAL : MR_OK;
    const bool known = exit_code && newest.code == exit_code && newest.text[0];
    char text[2048], said[2048];
    if (!known && !*said_last(said, sizeof said)) return;
    json_line j = json_begin(stdout, "error");
    json_i64(&j, "status", status);
    if (code) json_i64(&j, "code", code);
    else json_text(&j, "code", NULL);
    json_text(&j, "text", known ? mr_error_format(&newest, text, sizeof text) : said);
    json_text(&j, "file", known && newest.file[0] ? newest.file : NULL);
    if (known && newest.offset != MR_NOWHERE) json_u64(&j, "offset", newest.offset);
    if (known && newest.sample != MR_NOWHERE) json_u64(&j, "sample", newest.sample);
    if (known && newest.sys_errno) json_i64(&j, "errno", newest.sys_errno);
    json_end(&j);
}
