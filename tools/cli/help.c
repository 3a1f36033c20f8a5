/* tools/cli/help.c: see help.h. */
#include "tools/cli/help.h"

#include <string.h>

#include "millrace/base.h"
#include "millrace/formats.h"
#include "tools/cli/json.h"

enum { WIDTH = 96, COLUMN = 26 };

/* What stands for the value: "N", "SIZE", "a|b|c". */
static void value_text(const opt *o, char *buf, size_t buf_bytes)
{
    static const char *const of_kind[] = {
        [MRI_SETTING_FLAG] = "",        [MRI_SETTING_U32] = "N",     [MRI_SETTING_U64] = "N",
        [MRI_SETTING_REAL] = "X",       [MRI_SETTING_FLOAT] = "X",   [MRI_SETTING_SIZE] = "SIZE",
        [MRI_SETTING_SECONDS] = "TIME", [MRI_SETTING_TEXT] = "TEXT", [MRI_SETTING_COUNT_OR_OFF] = "off|N",
        [MRI_SETTING_SET] = "LIST",
    };
    if (o->value || !o->choices || o->kind == MRI_SETTING_SET) {
        snprintf(buf, buf_bytes, "%s", o->value ? o->value : of_kind[o->kind]);
        return;
    }
    size_t at = 0;
    for (size_t k = 0; o->choices[k] && at < buf_bytes; k++)
        at += (size_t)snprintf(buf + at, buf_bytes - at, "%s%s", k ? "|" : "", o->choices[k]);
}

static bool has_range(const opt *o)
{
    return o->kind == MRI_SETTING_U32 || o->kind == MRI_SETTING_U64 || o->kind == MRI_SETTING_REAL ||
           o->kind == MRI_SETTING_FLOAT || o->kind == MRI_SETTING_COUNT_OR_OFF;
}

/* As the user would type it; NULL: help says what happens without the option. */
static const char *default_text(const opt *o) { return o->of_model ? NULL : o->standard; }

/* Help, then range (not in short help) and default, as one text to be wrapped. */
static void full_help(const opt *o, opt_help how, char *buf, size_t buf_bytes)
{
    const bool bounded = how == OPT_HELP_ALL && has_range(o) && o->most < 0xffffffffu;
    const char *standard = default_text(o);
    char range[64] = "", fallback[96] = "";
    if (bounded) mri_setting_range(o, range, sizeof range);
    if (standard) snprintf(fallback, sizeof fallback, "%sdefault %s", bounded ? "; " : "", standard);
    const bool extra = bounded || standard;
    snprintf(buf, buf_bytes, "%s%s%s%s%s", o->help, extra ? " (" : "", range, fallback, extra ? ")" : "");
}

/* text from column `at`, indented by `indent` on further lines; newlines in text are kept. */
static void put_wrapped(FILE *out, const char *text, size_t indent, size_t at)
{
    bool line_start = true;
    while (*text) {
        if (*text == '\n') {
            fputc('\n', out);
            at = 0;
            line_start = true;
            text++;
            continue;
        }
        const size_t word = strcspn(text, " \n");
        if (!line_start && at + 1 + word > WIDTH) {
            fputc('\n', out);
            at = 0;
            line_start = true;
        }
        if (line_start) {
            while (at < indent) {
                fputc(' ', out);
                at++;
            }
        } else {
            fputc(' ', out);
            at++;
        }
        fwrite(text, 1, word, out);
        at += word;
        line_start = false;
        text += word;
        while (*text == ' ') text++;
    }
    fputc('\n', out);
}

static void put_row(FILE *out, const char *left, const char *text)
{
    size_t at = (size_t)fprintf(out, "  %s", left);
    if (at + 1 > COLUMN) {
        fputc('\n', out);
        at = 0;
    }
    while (at < COLUMN) {
        fputc(' ', out);
        at++;
    }
    put_wrapped(out, text, COLUMN, at);
}

static void usage_line(const command *cmd, char *buf, size_t buf_bytes)
{
    size_t at = (size_t)snprintf(buf, buf_bytes, "millrace %s", cmd->name);
    for (size_t i = 0; i < cmd->positional_count && at < buf_bytes; i++) {
        const opt_positional *p = &cmd->positionals[i];
        at += (size_t)snprintf(buf + at, buf_bytes - at, p->required ? " %s" : " [%s]", p->name);
    }
    if (at < buf_bytes)
        snprintf(buf + at, buf_bytes - at, " [OPTION...]%s%s", cmd->rest ? " -- " : "",
                 cmd->rest ? cmd->rest : "");
}

static void put_group(FILE *out, const opt_group *group, opt_help how)
{
    char line[512], help[1024], value[256];
    fprintf(out, "\n%s:\n", group->set->title);
    for (size_t i = 0; i < group->set->count; i++) {
        value_text(&group->set->options[i], value, sizeof value);
        snprintf(line, sizeof line, "--%s%s%s", group->set->options[i].option, *value ? " " : "", value);
        full_help(&group->set->options[i], how, help, sizeof help);
        put_row(out, line, help);
    }
}

/* Are there several groups that the command shares with others? One alone short help explains, too. */
static bool has_common(const command *cmd)
{
    size_t count = 0;
    for (size_t g = 0; g < cmd->group_count; g++) count += cmd->groups[g].set->common;
    return count > 1;
}

/* The groups that a command shares with others: the names of their options, and how to see the rest. */
static void put_common(FILE *out, const command *cmd)
{
    if (has_common(cmd))
        fprintf(out, "\nCommon options, which 'millrace help %s --all' explains:\n", cmd->name);
    for (size_t g = 0; g < cmd->group_count; g++) {
        const opt_group *group = &cmd->groups[g];
        char names[1024];
        size_t at = 0;
        if (!group->set->common) continue;
        for (size_t i = 0; i < group->set->count && at < sizeof names; i++)
            at += (size_t)snprintf(names + at, sizeof names - at, "%s--%s", i ? " " : "",
                                   group->set->options[i].option);
        char title[64];
        snprintf(title, sizeof title, "%.*s", (int)strcspn(group->set->title, "("), group->set->title);
        put_row(out, title, names);
    }
}

/* The command's text; only its first paragraph in short help; --all prints the rest. */
static void put_text(FILE *out, const command *cmd, opt_help how)
{
    char first[2048];
    if (how == OPT_HELP_SHORT) {
        snprintf(first, sizeof first, "%.*s", (int)strcspn(cmd->text, "\n"), cmd->text);
        put_wrapped(out, first, 0, 0);
    } else {
        put_wrapped(out, cmd->text, 0, 0);
    }
}

void options_help(FILE *out, const command *cmd, opt_help how)
{
    char line[512];
    if (!has_common(cmd)) how = OPT_HELP_ALL; /* short help would be as long */
    usage_line(cmd, line, sizeof line);
    fprintf(out, "usage: %s\n\n", line);
    put_text(out, cmd, how);
    if (cmd->positional_count) fputc('\n', out);
    for (size_t i = 0; i < cmd->positional_count; i++)
        put_row(out, cmd->positionals[i].name, cmd->positionals[i].help);
    for (size_t g = 0; g < cmd->group_count; g++)
        if (how == OPT_HELP_ALL || !cmd->groups[g].set->common) put_group(out, &cmd->groups[g], how);
    if (how == OPT_HELP_SHORT) put_common(out, cmd);
    if (cmd->examples) fprintf(out, "\nExamples:\n%s", cmd->examples);
}

/* ---- for programs ---- */

/* Whole numbers as they are. */
static void put_json_limit(json_line *j, const char *key, double v)
{
    if (v >= 0 && v < 0x1p53 && v == (double)(uint64_t)v) json_u64(j, key, (uint64_t)v);
    else json_real(j, key, v);
}

static void put_json_option(FILE *out, const opt_group *group, const opt *o)
{
    char value[256];
    value_text(o, value, sizeof value);
    json_line j = json_begin(out, "option");
    json_text(&j, "name", o->option);
    json_text(&j, "group", group->set->title);
    json_text(&j, "value", o->kind == MRI_SETTING_FLAG ? NULL : value);
    json_text(&j, "default", default_text(o));
    if (has_range(o)) put_json_limit(&j, "least", o->least);
    if (has_range(o)) put_json_limit(&j, "most", o->most);
    const bool one = o->choices && o->kind != MRI_SETTING_SET;
    if (one) json_array(&j, "choices");
    for (size_t k = 0; one && o->choices[k]; k++) json_text(&j, NULL, o->choices[k]);
    if (one) json_close_array(&j);
    json_text(&j, "help", o->help);
    if (o->since) {
        json_text(&j, "unit", o->unit);
        json_text(&j, "changes", mri_changes_names[o->changes]);
        json_text(&j, "resume", mri_resume_names[o->resume]);
        json_text(&j, "since", o->since);
    }
    json_end(&j);
}

void options_help_json(FILE *out, const command *cmd)
{
    for (size_t i = 0; i < cmd->positional_count; i++) {
        json_line j = json_begin(out, "argument");
        json_text(&j, "name", cmd->positionals[i].name);
        json_bool(&j, "required", cmd->positionals[i].required);
        json_text(&j, "help", cmd->positionals[i].help);
        json_end(&j);
    }
    for (size_t g = 0; g < cmd->group_count; g++)
        for (size_t i = 0; i < cmd->groups[g].set->count; i++)
            put_json_option(out, &cmd->groups[g], &cmd->groups[g].set->options[i]);
}

/* ---- words that stand for values ---- */

static const struct {
    const char *word, *help;
} values[] = {
    {"SIZE", "bytes: a number, alone or with the unit K, M, G or T, powers of 1024: 4096, 64K, 1.5G"},
    {"TIME", "seconds: a number, alone or with the unit us, ms, s, min or h: 10, 250ms, 1.5h"},
};

void options_values(FILE *out)
{
    for (size_t i = 0; i < OPT_COUNT(values); i++)
        fprintf(out, "  %-14s %s\n", values[i].word, values[i].help);
}

/* ---- the manual page ---- */

/* roff: a backslash and a leading dot or quote mean something, and a hyphen must differ from a minus. */
static void put_roff(FILE *out, const char *text)
{
    bool line_start = true;
    for (; *text; text++) {
        if (line_start && (*text == '.' || *text == '\'')) fputs("\\&", out);
        line_start = *text == '\n';
        if (*text == '\\') fputs("\\e", out);
        else if (*text == '-') fputs("\\-", out);
        else fputc(*text, out);
    }
    fputc('\n', out);
}

static void man_command(FILE *out, const command *cmd)
{
    char line[512], help[1024];
    usage_line(cmd, line, sizeof line);
    fputs(".SS ", out);
    put_roff(out, line);
    put_roff(out, cmd->text);
    for (size_t i = 0; i < cmd->positional_count; i++) {
        fputs(".TP\n.I ", out);
        put_roff(out, cmd->positionals[i].name);
        put_roff(out, cmd->positionals[i].help);
    }
    for (size_t g = 0; g < cmd->group_count; g++) {
        fputs(".PP\n", out);
        put_roff(out, cmd->groups[g].set->title);
        for (size_t i = 0; i < cmd->groups[g].set->count; i++) {
            const opt *o = &cmd->groups[g].set->options[i];
            char value[256];
            value_text(o, value, sizeof value);
            snprintf(line, sizeof line, "--%s%s%s", o->option, *value ? " " : "", value);
            full_help(o, OPT_HELP_ALL, help, sizeof help);
            fputs(".TP\n.B ", out);
            put_roff(out, line);
            put_roff(out, help);
        }
    }
    if (cmd->examples) {
        fputs(".PP\nExamples:\n.nf\n", out);
        put_roff(out, cmd->examples);
        fputs(".fi\n", out);
    }
}

void options_man(FILE *out, const command *const *commands, size_t count)
{
    fputs(".TH MILLRACE 1 \"\" \"millrace " MR_VERSION_TEXT
          "\" \"User Commands\"\n.SH NAME\nmillrace \\- keeps training devices fed: converts data sets, "
          "loads, trains, measures\n.SH SYNOPSIS\n.B millrace\n.I COMMAND\n[ARGUMENT...] [OPTION...]\n.SH "
          "DESCRIPTION\nDATA is a data set of one of the formats below, whose content decides\nits format, "
          "never its name.\nResults go to standard output, progress and messages to standard error. With\n.B "
          "\\-\\-json\nevery line of standard output is one JSON object whose\n.I event\nfield names its "
          "kind; keys are stable.\n.SH COMMANDS\n",
          out);
    for (size_t i = 0; i < count; i++) man_command(out, commands[i]);
    fputs(".SH FORMATS OF DATA\n", out);
    for (uint32_t i = 0; i < mr_source_format_count(); i++) {
        fputs(".TP\n.B ", out);
        put_roff(out, mr_source_format_name(i));
        put_roff(out, mr_source_format_help(i));
    }
    fputs(".SH VALUES OF OPTIONS\n", out);
    for (size_t i = 0; i < OPT_COUNT(values); i++) {
        fputs(".TP\n.I ", out);
        put_roff(out, values[i].word);
        put_roff(out, values[i].help);
    }
    fputs(".SH EXIT STATUS\n.TP\n.B 0\ndone\n.TP\n.B 1\nfailed; the last line on standard error says what "
          "and where\n.TP\n.B 2\nmisused: a wrong option or argument\n.TP\n.B 3\ndone, but samples were "
          "bad and are listed\n.TP\n.B 130, 143\nstopped by SIGINT or SIGTERM; \\-\\-resume continues the "
          "unfinished output.\nA second signal ends the program at once.\n.SH FILES\n.TP\n.I DST.part\na "
          "record file being written; it gets its name when it is complete\n.TP\n.I DST.bad.jsonl\nsamples "
          "that convert skipped: one JSON object a line\n",
          out);
}
