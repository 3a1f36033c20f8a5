/* tools/cli/exit.h: the program's exit status, and its derivation from the library's status. */
#ifndef TOOLS_EXIT_H
#define TOOLS_EXIT_H

#include <stdbool.h>

#include "millrace/base.h"

enum {
    EXIT_DONE = 0,
    EXIT_FAILED = 1,
    EXIT_MISUSED = 2,
    EXIT_BAD_SAMPLES = 3,
    EXIT_SIGNAL = 128 /* + its number */
};

/* Exit status for the library's status rc: prints err unless rc is MR_OK; a run stopped by a signal gives 128
 * + signal, and the end of another process of the run gives the status of that process. */
int exit_status(int rc, const mr_error *err);
extern int exit_code;  /* the newest rc of it that was not MR_OK */
extern bool exit_told; /* a command's results report the failure, so no further error is printed */
/* The same where MR_EINVAL means that an option has no possible value: then it is a misuse. */
int setting_status(int rc, const mr_error *err);
/* "out of memory" and what for; returns EXIT_FAILED. */
int exit_no_memory(const char *what);
/* Of a command with --json that failed with this status, the last line on stdout: an "error" event, the
 * newest error with its code and place, or the last message. No line if it succeeded, was stopped, or
 * reported the failure in its results (exit_told). */
void exit_tell_json(int status);

#endif
