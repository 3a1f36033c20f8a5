/* tools/cli/options.c: from words to a command's struct. See options.h. */
#include "tools/cli/options.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "millrace/ranks.h"
#include "tools/cli/output.h"

typedef struct word_parse {
    const command *cmd;
    char *args;
    char *message;
    size_t message_bytes;
    opt_given *seen;
} word_parse;

static bool __attribute__((format(printf, 2, 3))) wrong(const word_parse *p, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(p->message, p->message_bytes, format, list);
    va_end(list);
    return false;
}

/* ---- values ---- */

static bool store(const word_parse *p, const opt *o, size_t base, const char *text)
{
    return mri_setting_parse(o, p->args + base, text, p->message, p->message_bytes);
}

static bool fill_defaults(const word_parse *p)
{
    memset(p->args, 0, p->cmd->args_bytes);
    for (size_t g = 0; g < p->cmd->group_count; g++) {
        const opt_group *group = &p->cmd->groups[g];
        for (size_t i = 0; i < group->set->count; i++) {
            const opt *o = &group->set->options[i];
            if (o->standard && !o->of_model) {
                if (!store(p, o, group->base, o->standard)) return false;
            } else if (o->kind == MRI_SETTING_REAL || o->kind == MRI_SETTING_SECONDS) {
                *(double *)(p->args + group->base + o->at) = NAN;
            } else if (o->kind == MRI_SETTING_SIZE) {
                *(uint64_t *)(p->args + group->base + o->at) = UINT64_MAX;
            } else if (o->kind == MRI_SETTING_FLOAT && o->of_model) {
                *(float *)(p->args + group->base + o->at) = NAN;
            }
        }
    }
    return true;
}

/* ---- names ---- */

/* Optimal string alignment: insertions, deletions, replacements and swaps of neighbours each cost one. */
static unsigned distance(const char *a, const char *b)
{
    enum { MOST = 32 };
    const size_t n = strlen(a), m = strlen(b);
    if (n > MOST || m > MOST) return UINT32_MAX;
    unsigned row[3][MOST + 1];
    for (size_t j = 0; j <= m; j++) row[0][j] = (unsigned)j;
    for (size_t i = 1; i <= n; i++) {
        unsigned *now = row[i % 3], *up = row[(i + 2) % 3], *up2 = row[(i + 1) % 3];
        now[0] = (unsigned)i;
        for (size_t j = 1; j <= m; j++) {
            unsigned best = up[j - 1] + (a[i - 1] != b[j - 1]);
            if (up[j] + 1 < best) best = up[j] + 1;
            if (now[j - 1] + 1 < best) best = now[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && up2[j - 2] + 1 < best)
                best = up2[j - 2] + 1;
            now[j] = best;
        }
    }
    return row[n % 3][m];
}

const char *options_nearest(const char *typed, size_t count,
                            const char *(*name)(const void *context, size_t i), const void *context)
{
    const char *best = NULL;
    unsigned least = (unsigned)strlen(typed) / 3 + 2; /* a word that shares less is no help */
    for (size_t i = 0; i < count; i++) {
        const unsigned d = distance(typed, name(context, i));
        if (d >= least) continue;
        least = d;
        best = name(context, i);
    }
    return best;
}

static const opt *option_at(const command *cmd, size_t at, size_t *base)
{
    for (size_t g = 0; g < cmd->group_count; g++) {
        if (at < cmd->groups[g].set->count) {
            if (base) *base = cmd->groups[g].base;
            return &cmd->groups[g].set->options[at];
        }
        at -= cmd->groups[g].set->count;
    }
    return NULL;
}

static const char *option_name(const void *cmd, size_t at) { return option_at(cmd, at, NULL)->option; }

/* What training programs call it, where letters do not lead there. */
static const struct {
    const char *theirs, *ours;
    const char *value; /* text to print after it if that differs; else NULL */
} elsewhere[] = {
    {"amp", "precision", "bf16"},
    {"arch", "model", NULL},
    {"batch-size", "batch", NULL},
    {"ckpt", "checkpoint", NULL},
    {"channels", "decode", NULL}, /* of stats, once */
    {"checkpoint-dir", "checkpoint", NULL},
    {"cpu", "devices", "cpu"},
    {"device", "devices", NULL},
    {"drop-last", "tail", "drop"},
    {"clip-grad", "clip-norm", NULL},
    {"dtype", "precision", NULL},
    {"ema", "average", "0.999"},
    {"ema-decay", "average", NULL},
    {"fp16", "precision", "f16"},
    {"bf16", "precision", "bf16"},
    {"global-batch-size", "batch", NULL},
    {"gpu", "devices", "cuda:0"},
    {"gpus", "devices", "cuda:0,1"},
    {"grad-clip", "clip-norm", NULL},
    {"image-size", "resize", NULL},
    {"jobs", "workers", NULL},
    {"label-smooth", "label-smoothing", NULL},
    {"learning-rate", "lr", NULL},
    {"max-epochs", "epochs", NULL},
    {"max-shard-size", "shard-size", NULL},
    {"max-grad-norm", "clip-norm", NULL},
    {"nesterov", "optimizer", "nesterov"},
    {"num-epochs", "epochs", NULL},
    {"num-threads", "threads", NULL},
    {"num-workers", "workers", NULL},
    {"optim", "optimizer", NULL},
    {"output-format", "to", NULL},
    {"overwrite", "force", NULL},
    {"prefetch-factor", "prefetch", NULL},
    {"random-seed", "seed", NULL},
    {"save-dir", "checkpoint", NULL},
    {"scheduler", "schedule", NULL},
    {"shuffle", "order", "shuffle"},
    {"transform", "augment", NULL},
    {"val-data", "val", NULL},
    {"validation-data", "val", NULL},
    {"wd", "weight-decay", NULL},
};

static bool has_option(const command *cmd, const char *name)
{
    const opt *o;
    for (size_t at = 0; (o = option_at(cmd, at, NULL)) != NULL; at++)
        if (strcmp(o->option, name) == 0) return true;
    return false;
}

/* "--NAME", with a value where it needs another one than was meant; false: nobody calls one of ours so. */
static bool known_elsewhere(const command *cmd, const char *typed, char *buf, size_t buf_bytes)
{
    char plain[64];
    snprintf(plain, sizeof plain, "%s", typed);
    for (char *c = plain; *c; c++)
        if (*c == '_') *c = '-';
    for (size_t k = 0; k < sizeof elsewhere / sizeof *elsewhere; k++) {
        if (strcmp(plain, elsewhere[k].theirs) != 0 || !has_option(cmd, elsewhere[k].ours)) continue;
        snprintf(buf, buf_bytes, "--%s%s%s", elsewhere[k].ours, elsewhere[k].value ? " " : "",
                 elsewhere[k].value ? elsewhere[k].value : "");
        return true;
    }
    return false;
}

static const opt *find_option(const word_parse *p, const char *name, size_t name_bytes, size_t *base)
{
    size_t count = 0;
    const opt *o;
    for (; (o = option_at(p->cmd, count, base)) != NULL; count++)
        if (strlen(o->option) == name_bytes && memcmp(o->option, name, name_bytes) == 0) return o;
    char typed[64], known[64];
    snprintf(typed, sizeof typed, "%.*s", (int)(name_bytes < 63 ? name_bytes : 63), name);
    if (known_elsewhere(p->cmd, typed, known, sizeof known)) {
        wrong(p, "%s has no option --%s; did you mean %s?", p->cmd->name, typed, known);
        return NULL;
    }
    const char *near = options_nearest(typed, count, option_name, p->cmd);
    if (near) wrong(p, "%s has no option --%s; did you mean --%s?", p->cmd->name, typed, near);
    else
        wrong(p, "%s has no option --%s; 'millrace %s --help' lists them", p->cmd->name, typed, p->cmd->name);
    return NULL;
}

bool options_was_given(const opt_given *given, const char *name)
{
    for (uint32_t i = 0; i < given->count; i++)
        if (strcmp(given->name[i], name) == 0) return true;
    return false;
}

/* ---- options that need another one ---- */

static bool was_seen(const opt_given *seen, const char *name, size_t bytes)
{
    for (uint32_t i = 0; i < seen->count; i++)
        if (strlen(seen->name[i]) == bytes && memcmp(seen->name[i], name, bytes) == 0) return true;
    return false;
}

/* The first of the names between | that the command has; NULL: it has no such option, or one was given. */
static const char *find_missing(const command *cmd, const opt_given *seen, const char *names)
{
    const char *missing = NULL;
    size_t base;
    for (const char *at = names; *at; at += *at == '|') {
        const size_t bytes = strcspn(at, "|");
        if (was_seen(seen, at, bytes)) return NULL;
        const opt *o;
        for (size_t k = 0; !missing && (o = option_at(cmd, k, &base)); k++)
            if (strlen(o->option) == bytes && memcmp(o->option, at, bytes) == 0) missing = o->option;
        at += bytes;
    }
    return missing;
}

/* All processes of a run have the same options: one of them prints. */
static bool is_first_process(void)
{
    mr_launch at;
    return mr_launch_find(&at, NULL) != MR_OK || at.rank == 0;
}

static void tell_needs(const command *cmd, const opt_given *seen)
{
    const opt *o;
    size_t base;
    if (!is_first_process()) return;
    for (size_t k = 0; (o = option_at(cmd, k, &base)); k++) {
        const char *missing =
            o->needs && options_was_given(seen, o->option) ? find_missing(cmd, seen, o->needs) : NULL;
        if (missing) say("--%s has no effect without --%s", o->option, missing);
    }
}

static void note(opt_given *given, const opt *o)
{
    if (given->count < OPT_COUNT(given->name) && !options_was_given(given, o->option))
        given->name[given->count++] = o->option;
}

static void note_given(const word_parse *p, const opt *o)
{
    note(p->seen, o);
    if (p->cmd->given_at) note((opt_given *)(void *)(p->args + p->cmd->given_at), o);
}

/* word is "--name" or "--name=value"; next: the word after it, or NULL. */
static bool take_option(const word_parse *p, const char *word, const char *next, bool *used_next)
{
    const char *name = word + 2, *equals = strchr(name, '=');
    const size_t name_bytes = equals ? (size_t)(equals - name) : strlen(name);
    size_t base = 0;
    const opt *o = find_option(p, name, name_bytes, &base);
    if (!o) return false;
    note_given(p, o);
    *used_next = false;
    if (o->kind == MRI_SETTING_FLAG) {
        if (equals) return wrong(p, "--%s takes no value, found '%s'", o->option, equals + 1);
        return store(p, o, base, NULL);
    }
    const char *value = equals ? equals + 1 : next;
    if (!value) return wrong(p, "--%s needs a value", o->option);
    if (!equals && strncmp(value, "--", 2) == 0) /* more likely forgotten than meant */
        return wrong(p, "--%s needs a value, found '%s'; one that begins so is written --%s=VALUE", o->option,
                     value, o->option);
    *used_next = !equals;
    return store(p, o, base, value);
}

static void take_rest(const word_parse *p, int argc, char *const *argv)
{
    *(opt_words *)(void *)(p->args + p->cmd->rest_at) = (opt_words){argv, argc};
}

opt_help options_help_asked(int argc, char *const *argv)
{
    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], "--all") == 0) return OPT_HELP_ALL;
    return OPT_HELP_SHORT;
}

bool options_parse(const command *cmd, int argc, char *const *argv, void *args, opt_help *wants_help,
                   char *message, size_t message_bytes)
{
    opt_given seen = {.count = 0};
    const word_parse p = {cmd, args, message, message_bytes, &seen};
    size_t positional = 0;
    bool only_positionals = false;
    *wants_help = OPT_HELP_NONE;
    if (!fill_defaults(&p)) return false;
    for (int i = 0; i < argc; i++) {
        const char *word = argv[i];
        if (!only_positionals && strcmp(word, "--") == 0) {
            only_positionals = true;
            if (cmd->rest && i + 1 < argc) {
                take_rest(&p, argc - i - 1, argv + i + 1);
                return true;
            }
        } else if (!only_positionals && (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)) {
            *wants_help = options_help_asked(argc - i, argv + i);
            return true;
        } else if (!only_positionals && word[0] == '-' && word[1] == '-') {
            bool used_next = false;
            if (!take_option(&p, word, i + 1 < argc ? argv[i + 1] : NULL, &used_next)) return false;
            i += used_next;
        } else if (!only_positionals && word[0] == '-' && word[1]) {
            return wrong(&p, "options are written --name, found '%s'; 'millrace %s --help' lists them", word,
                         cmd->name);
        } else if (cmd->rest && word[0]) {
            take_rest(&p, argc - i, argv + i);
            return true;
        } else if (!word[0]) {
            return wrong(&p, "%s: expected a name, found ''", cmd->name);
        } else if (positional < cmd->positional_count) {
            *(const char **)((char *)args + cmd->positionals[positional++].field) = word;
        } else {
            return wrong(&p, "%s takes %zu argument%s, found another: '%s'", cmd->name, cmd->positional_count,
                         cmd->positional_count == 1 ? "" : "s", word);
        }
    }
    if (positional < cmd->positional_count && cmd->positionals[positional].required)
        return wrong(&p, "%s needs %s; try 'millrace %s --help'", cmd->name,
                     cmd->positionals[positional].name, cmd->name);
    if (cmd->rest) return wrong(&p, "%s needs %s; try 'millrace %s --help'", cmd->name, cmd->rest, cmd->name);
    tell_needs(cmd, &seen);
    return true;
}
