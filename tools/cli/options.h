/* tools/cli/options.h: one table of options per subcommand, from which parsing, ranges, --help and the manual
 * page all come, so that they cannot drift apart.
 *
 * The room cli/
 *   takes      words of the command line, and what commands and the library have to report
 *   gives      a command's struct, help and manual (help.h), lines on stdout and stderr (output.h,
 *              progress.h, json.h, report.h), the Ctrl-C flag (interrupt.h), exit statuses (exit.h)
 *   callers    commands/ and main.c; nothing here knows a command
 *
 * A command's arguments are one struct. Each option names a field of it by offset; groups of options that
 * several commands share (loader, devices, output) are tables over a struct of their own that the command's
 * struct contains at `base`, so that --batch or --seed means the same everywhere. Defaults are texts and go
 * through the same parser as the user's words.
 *
 * Nothing in this file prints or exits: parsing leaves one line in a message buffer, help goes to the FILE it
 * is given. */
#ifndef TOOLS_OPTIONS_H
#define TOOLS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "settings/setting.h"

/* A row of settings/ (setting.h). Every option of every command is one: in settings/ if several commands or
 * the library have it, in settings/commands/ if one command has it alone. */
typedef mri_setting opt;
/* What MRI_OPTIONS makes of a row: an element of a table for a struct, OPT(verify_args, __VA_ARGS__), or a
 * member of the struct. */
#define OPT                           MRI_ROW
#define OPT_MEMBER(member, kind, ...) MRI_TYPE_##kind member;

typedef struct opt_set {
    const char *title;
    const opt *options;
    size_t count;
    bool common; /* shared by commands: short help names its options and no more */
} opt_set;

/* Options of a command. */
typedef struct opt_group {
    const opt_set *set;
    size_t base; /* offset of the set's struct in the command's struct */
} opt_group;

#define OPT_GROUP(set, type, member)                                                                         \
    {                                                                                                        \
        &(set), offsetof(type, member)                                                                       \
    }
/* A command's own options, which have fields of its struct or, from `base` on, of a struct in it. */
#define OPT_OWN_GROUP_AT(title, table, base)                                                                 \
    {                                                                                                        \
        &(const opt_set){title, table, OPT_COUNT(table), false}, base                                        \
    }
#define OPT_OWN_GROUP(title, table) OPT_OWN_GROUP_AT(title, table, 0)

typedef struct opt_positional {
    const char *name;
    size_t field; /* const char * */
    bool required;
    const char *help;
} opt_positional;

/* Words that are passed on as they are: argv from some word on, with its NULL at the end. */
typedef struct opt_words {
    char *const *word;
    int count;
} opt_words;

/* The names of the options that the user gave, each once. */
typedef struct opt_given {
    const char *name[96];
    uint32_t count;
} opt_given;

bool options_was_given(const opt_given *given, const char *name);

typedef struct command {
    const char *name, *summary; /* one line, lower case, no full stop */
    const char *text;           /* paragraphs separated by newlines */
    const char *examples;       /* lines, or NULL */
    const opt_positional *positionals;
    size_t positional_count;
    const opt_group *groups;
    size_t group_count;
    size_t args_bytes;
    size_t given_at;  /* offset of an opt_given in the command's struct; 0: no such member */
    const char *rest; /* description of the words from the first one that is not an option, or after "--", at
                         least one; NULL: not allowed */
    size_t rest_at;   /* offset of their opt_words */
    bool alone;       /* a launcher that starts several processes of it is refused: each would do all of
                         the work, and write it to the same place */
    int (*run)(const void *args); /* returns the exit status */
} command;

typedef enum opt_help {
    OPT_HELP_NONE,
    OPT_HELP_SHORT, /* --help: the command's own options */
    OPT_HELP_ALL,   /* --help --all: those it shares with others, too */
} opt_help;

#define OPT_COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* Fill args (args_bytes, any contents) with defaults, then from argv[0..argc), the words after the command's
 * name. False: a user error; message describes it, with the nearest option where a name is unknown. With
 * --help *wants_help is set, and the other words are searched only for --all. */
bool options_parse(const command *cmd, int argc, char *const *argv, void *args, opt_help *wants_help,
                   char *message, size_t message_bytes);
/* The help that the words after --help, or after `help COMMAND`, request. */
opt_help options_help_asked(int argc, char *const *argv);

/* The nearest of count names to the typed word, or NULL when no name is near. name(context, i) gives the
 * i-th. */
const char *options_nearest(const char *typed, size_t count,
                            const char *(*name)(const void *context, size_t i), const void *context);

#endif
