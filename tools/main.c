/* tools/main.c: the `millrace` command: finds the subcommand, parses its words, runs it. Adds --help,
 * --version, help and man. One thing is its own: a result that could not be written (disk full, pipe closed)
 * is a failure, not a success. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "millrace/image.h"
#include "millrace/ranks.h"
#include "settings/picture_kinds.h"
#include "tools/cli/exit.h"
#include "tools/cli/help.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/open_files.h"
#include "tools/cli/output.h"
#include "tools/commands/commands.h"

#define COMMAND_LISTED(name) &command_##name,
static const command *const commands[] = {COMMANDS(COMMAND_LISTED)};

static void put_overview(FILE *out)
{
    fputs("usage: millrace COMMAND [ARGUMENT...] [OPTION...]\n\n"
          "Keeps training devices fed: converts data sets, loads them in order and on time, trains, and\n"
          "shows where the time went.\n\nCommands:\n",
          out);
    for (size_t i = 0; i < OPT_COUNT(commands); i++)
        fprintf(out, "  %-14s %s\n", commands[i]->name, commands[i]->summary);
    fputs("\nValues of options:\n", out);
    options_values(out);
    fputs(
        "\n'millrace help COMMAND' lists its options; --all adds the options that several commands share;\n"
        "'millrace help augment' the operations of --augment; 'millrace --version' the version and the kinds "
        "of pictures.\n",
        out);
}

static const char *command_name(const void *context, size_t i)
{
    (void)context;
    return commands[i]->name;
}

static const command *find_command(const char *name)
{
    for (size_t i = 0; i < OPT_COUNT(commands); i++)
        if (strcmp(commands[i]->name, name) == 0) return commands[i];
    const char *near = options_nearest(name, OPT_COUNT(commands), command_name, NULL);
    if (near) say("there is no command '%s'; did you mean '%s'?", name, near);
    else say("there is no command '%s'; 'millrace --help' lists them", name);
    return NULL;
}

/* Several processes would do the same work, side by side. */
static int check_alone(const command *cmd)
{
    mr_launch at;
    if (!cmd->alone || mr_launch_find(&at, NULL) != MR_OK || at.size == 1) return EXIT_DONE;
    if (at.rank == 0)
        say("%s is done by one process, and %s has started %u: start one; train, eval, profile, plan "
            "and digest work together",
            cmd->name, mr_launcher_name(at.launcher), at.size);
    return EXIT_MISUSED;
}

static bool has_word(int argc, char *const *argv, const char *word)
{
    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], word) == 0) return true;
    return false;
}

/* If MILLRACE_PARENT names a parent, is that process our parent, and alive? The variable holds for this
 * process alone, not for its children. */
static bool has_parent(void)
{
    static const char *const name = "MILLRACE_PARENT";
    const char *parent = getenv(name);
    const bool there = interrupt_with_parent(parent);
    if (!there)
        say("stopped: process %s, which %s names, has not started this one, or has ended", parent, name);
    unsetenv(name);
    return there;
}

/* Is there a --json that takes no value? That of `watch` names a file. */
static bool tells_json(const command *cmd, int argc, char *const *argv)
{
    for (size_t g = 0; g < cmd->group_count; g++)
        for (size_t i = 0; i < cmd->groups[g].set->count; i++)
            if (strcmp(cmd->groups[g].set->options[i].option, "json") == 0)
                return cmd->groups[g].set->options[i].kind == MRI_SETTING_FLAG &&
                       has_word(argc, argv, "--json");
    return false;
}

static int run_command(const command *cmd, int argc, char *const *argv)
{
    char message[640];
    opt_help wants_help = OPT_HELP_NONE;
    void *args = malloc(cmd->args_bytes);
    if (!args) {
        say("out of memory");
        return EXIT_FAILED;
    }
    int status = EXIT_MISUSED;
    if (!options_parse(cmd, argc, argv, args, &wants_help, message, sizeof message)) {
        say("%s", message);
    } else if (wants_help) {
        options_help(stdout, cmd, wants_help);
        status = EXIT_DONE;
    } else {
        interrupt_install();
        status = has_parent() ? check_alone(cmd) : EXIT_SIGNAL + SIGTERM;
        if (status == EXIT_DONE) status = cmd->run(args);
    }
    free(args);
    if (tells_json(cmd, argc, argv)) exit_tell_json(status);
    return status;
}

static int run_help(int argc, char *const *argv)
{
    if (argc == 0) {
        put_overview(stdout);
        return EXIT_DONE;
    }
    if (strcmp(argv[0], "augment") == 0) {
        put_augment_manual(stdout);
        return EXIT_DONE;
    }
    const command *cmd = find_command(argv[0]);
    if (!cmd) return EXIT_MISUSED;
    if (has_word(argc - 1, argv + 1, "--json")) options_help_json(stdout, cmd);
    else options_help(stdout, cmd, options_help_asked(argc - 1, argv + 1));
    return EXIT_DONE;
}

/* The version, and which pictures this machine decodes: some need a library that may be missing. */
static void put_version(void)
{
    static const mr_type types[] = {MRI_PICTURE_TYPES};
    printf("millrace %s\npictures:", mr_version());
    for (size_t k = 0; k < OPT_COUNT(types); k++)
        if (mr_image_can_decode(types[k], NULL) == MR_OK) printf(" %s", mr_type_name(types[k]));
    putchar('\n');
    for (size_t k = 0; k < OPT_COUNT(types); k++) {
        mr_error err = MR_ERROR_INIT;
        if (mr_image_can_decode(types[k], &err) != MR_OK)
            printf("not %s: %s\n", mr_type_name(types[k]), err.text);
    }
}

static int run_words(int argc, char *const *argv)
{
    if (argc < 1) {
        put_overview(stderr);
        return EXIT_MISUSED;
    }
    const char *word = argv[0];
    if (strcmp(word, "--version") == 0) {
        put_version();
        return EXIT_DONE;
    }
    if (strcmp(word, "help") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        return run_help(argc - 1, argv + 1);
    if (strcmp(word, "man") == 0) { /* for the build: not listed */
        options_man(stdout, commands, OPT_COUNT(commands));
        return EXIT_DONE;
    }
    const command *cmd = find_command(word);
    return cmd ? run_command(cmd, argc - 1, argv + 1) : EXIT_MISUSED;
}

int main(int argc, char **argv)
{
    open_files_raise();
    if (mr_simd_complaint()) say("%s", mr_simd_complaint());
    const int status = run_words(argc - 1, argv + 1);
    errno = 0;
    if (fflush(stdout) != 0 || ferror(stdout)) {
        say("standard output: cannot write the results: %s", errno ? strerror(errno) : "write error");
        return EXIT_FAILED;
    }
    return status;
}
