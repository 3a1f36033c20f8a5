/* tools/commands/commands.h: the subcommands of `millrace`. Each is one file, cmd_NAME.c, that gives a
 * `const command`; main.c picks one. Those about sets as a whole lie in tools/sets.
 *
 *   takes      words that cli/options.h has parsed into the command's struct
 *   gives      results on stdout, the rest on stderr, an exit status
 *   callers    main.c alone
 *
 * A command uses the public headers of the library, cli/, and the helpers here: groups.h (options that
 * commands share), setup.h (from them to the library's settings), session.h (data, devices, network opened in
 * order). No command knows another, and cli/ knows none. */
#ifndef TOOLS_COMMANDS_H
#define TOOLS_COMMANDS_H

#include "tools/cli/options.h"

/* All of them, in the order in which help lists them. */
#define COMMANDS(one) /* clang-format off */ \
    one(convert) one(export) one(export_weights) one(inspect) one(verify) one(repair) one(append) \
    one(withdraw) one(restore) one(stats) one(manifest) one(train) one(eval) one(predict) one(lr_find) \
    one(profile) one(report) one(plan) one(sweep) \
    one(bench) one(watch) one(digest) one(devices) one(synth) /* clang-format on */

#define COMMAND_DECLARED(name) extern const command command_##name;
COMMANDS(COMMAND_DECLARED)

/* The manual of --augment, from the library's own table. */
void put_augment_manual(FILE *out);

#endif
