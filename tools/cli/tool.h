/* tools/cli/tool.h: what the files of the `millrace` command share. Each subcommand is one file, cmd_NAME.c,
 * that gives a `const command`; main.c picks one. Public headers of the library only. */
#ifndef TOOLS_TOOL_H
#define TOOLS_TOOL_H

#include "tools/cli/options.h"

enum {
    EXIT_DONE = 0,
    EXIT_FAILED = 1,
    EXIT_MISUSED = 2,
    EXIT_BAD_SAMPLES = 3,
    EXIT_SIGNAL = 128 /* + its number */
};

extern const command command_convert, command_export, command_inspect, command_verify, command_train,
    command_eval, command_profile, command_bench, command_digest, command_devices, command_synth;

#endif
