/* tools/foreign/foreign.h: a program that is not ours, watched from outside while it runs.
 *
 * The room foreign/
 *   takes      the words of a command, and the kernel's figures of its processes (/proc), of the machine and
 *              its control groups, and of GPUs (NVML, where it is)
 *   gives      its exit status (child.h), its use of resources and its waits: processes and their threads
 *              (tree.h on proc_file.h), machine (machine.h), GPUs (gpu.h), files of a folder that were opened
 *              (opens.h)
 *   callers    commands; nothing here knows a data set or a loader
 *
 * The program runs unchanged: it has our standard streams, its place in our process group, and gets the
 * signals that are sent to us. All its descendants are found, also those whose parents have ended: they
 * become our children (PR_SET_CHILD_SUBREAPER). */
#ifndef TOOLS_FOREIGN_H
#define TOOLS_FOREIGN_H

#include "tools/foreign/gpu.h"
#include "tools/foreign/machine.h"
#include "tools/foreign/opens.h"
#include "tools/foreign/tree.h"

typedef struct foreign_settings {
    char *const *command; /* NULL at the end */
    double interval_s;
    double seconds; /* all its processes get SIGTERM after so long, and SIGKILL ten seconds later; NAN: never
                     */
    const char *folder; /* opens of files below it are counted; NULL: not */
} foreign_settings;

typedef struct foreign_figures {
    int status; /* as a shell reports it: its exit status, or 128 + the signal that killed it */
    bool ended_by_us;
    double seconds;
    double start_s; /* before the first file of the folder was opened; 0: opens are not counted, or none came.
                       All figures below are from there on */
    uint32_t cores; /* that it may use */
    double user_s, system_s; /* of a core: the whole tree */
    uint64_t read_calls_bytes, read_storage_bytes;
    bool has_io; /* the two above */
    uint64_t major_faults;
    uint32_t left; /* processes of it that still ran when it ended */
    double own_s;  /* of a core, for watching */
    tree_figures tree;
    machine_figures machine;
    gpu_figures gpu;
    opens_figures opens;
} foreign_figures;

/* The seconds that the figures are of. */
static inline double foreign_counted(const foreign_figures *f) { return f->seconds - f->start_s; }

/* Runs it to its end. EXIT_DONE, or an exit status after saying why it was not run: 127 when there is no such
 * program, 126 when it cannot be executed. foreign_free() in any case. */
int foreign_run(const foreign_settings *settings, foreign_figures *out);
void foreign_free(foreign_figures *f);

#endif
