/* tools/cli/help.h: a command's table as --help, and all tables as one manual page. */
#ifndef TOOLS_HELP_H
#define TOOLS_HELP_H

#include "tools/cli/options.h"

void options_help(FILE *out, const command *cmd, opt_help how);
/* The same for programs: a JSON line for each argument and option. */
void options_help_json(FILE *out, const command *cmd);
/* What SIZE and TIME stand for in the help of options: rows for the overview of commands. */
void options_values(FILE *out);
/* The whole manual page in roff. */
void options_man(FILE *out, const command *const *commands, size_t count);

#endif
