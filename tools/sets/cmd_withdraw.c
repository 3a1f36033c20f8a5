/* tools/sets/cmd_withdraw.c: `millrace withdraw SET` and `millrace restore SET`: list samples as withdrawn,
 * and take them back. Both name samples by their numbers in the set, by their names, or by conditions. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/exit.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/json.h"
#include "tools/cli/output.h"
#include "tools/commands/commands.h"
#include "tools/facts/choose.h"
#include "tools/session/setup.h"

typedef struct withdraw_args {
    const char *set, *samples, *keys, *where, *reason;
    bool all; /* restore */
    data_args data;
    output_args output;
} withdraw_args;

typedef struct chosen {
    uint64_t *number;
    uint64_t count, cap;
} chosen;

static int keep(chosen *c, uint64_t number)
{
    if (c->count == c->cap) {
        const uint64_t cap = c->cap ? 2 * c->cap : 64;
        uint64_t *more = realloc(c->number, (size_t)cap * sizeof *more);
        if (!more) return exit_no_memory("the numbers of samples");
        c->number = more;
        c->cap = cap;
    }
    c->number[c->count++] = number;
    return EXIT_DONE;
}

static int by_number(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void sort(chosen *c)
{
    uint64_t n = 0;
    if (c->count) qsort(c->number, (size_t)c->count, sizeof *c->number, by_number);
    for (uint64_t k = 0; k < c->count; k++)
        if (n == 0 || c->number[n - 1] != c->number[k]) c->number[n++] = c->number[k];
    c->count = n;
}

/* ---- by numbers ---- */
static bool take_number(const char **at, uint64_t *out)
{
    char *end;
    if (**at < '0' || **at > '9') return false;
    errno = 0;
    *out = strtoull(*at, &end, 10);
    *at = end;
    return errno == 0;
}

/* "3,17-20": numbers and ranges, both ends included. */
static int by_list(chosen *c, const char *text, uint64_t count)
{
    int status = EXIT_DONE;
    for (const char *at = text; !status;) {
        uint64_t from, to;
        bool good = take_number(&at, &from);
        to = from;
        if (good && *at == '-') at++, good = take_number(&at, &to);
        if (!good || to < from || (*at && *at != ',')) {
            say("--samples: expected numbers and ranges such as 3,17-20, found '%s'", text);
            return EXIT_MISUSED;
        }
        if (to >= count) {
            say("--samples: expected numbers from 0 to %" PRIu64 ", found %" PRIu64, count - 1, to);
            return EXIT_MISUSED;
        }
        for (uint64_t k = from; !status && k <= to; k++) status = keep(c, k);
        if (!*at++) break;
    }
    return status;
}

/* ---- by names ---- */
typedef struct wanted {
    char **name;
    bool *found;
    size_t count;
} wanted;

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void free_wanted(wanted *w)
{
    for (size_t k = 0; w->name && k < w->count; k++) free(w->name[k]);
    free(w->name);
    free(w->found);
}

static int add_wanted(wanted *w, const char *line)
{
    char **more = realloc(w->name, (w->count + 1) * sizeof *more);
    if (!more) return exit_no_memory("the names of samples");
    w->name = more;
    w->name[w->count] = strdup(line);
    return w->name[w->count++] ? EXIT_DONE : exit_no_memory("the names of samples");
}

/* Some editors begin a text with a mark of UTF-8. */
static const char *behind_mark(const char *line)
{
    return line + (strncmp(line, "\xef\xbb\xbf", 3) == 0 ? 3 : 0);
}

static int read_keys(wanted *w, const char *path)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    int status = EXIT_DONE;
    FILE *f = fopen(path, "re");
    if (!f) {
        say("--keys %s: %s", path, strerror(errno));
        return EXIT_FAILED;
    }
    while (!status && (n = getline(&line, &room, f)) >= 0) {
        while (n > 0 && (line[n - 1] == '\n' || line[n - 1] == '\r')) line[--n] = '\0';
        if ((size_t)n != strlen(line)) {
            say("--keys %s: line %zu has a zero byte; expected a name of a sample", path, w->count + 1);
            status = EXIT_FAILED;
        } else if (n > 0) status = add_wanted(w, w->count == 0 ? behind_mark(line) : line);
    }
    if (!status && ferror(f)) {
        say("--keys %s: %s", path, strerror(errno));
        status = EXIT_FAILED;
    }
    free(line);
    fclose(f);
    if (!status && w->count == 0) {
        say("--keys %s: no name is in it; expected one on each line", path);
        status = EXIT_FAILED;
    }
    if (status) return status;
    qsort(w->name, w->count, sizeof *w->name, by_text);
    w->found = calloc(w->count, sizeof *w->found);
    return w->found ? EXIT_DONE : exit_no_memory("the names of samples");
}

/* A name that occurs twice in the file stands twice in w; the first found stands for both. */
static int check_all_found(const wanted *w, const char *set)
{
    size_t missing = 0, first = 0;
    for (size_t k = 0; k < w->count; k++) {
        const bool again = k > 0 && strcmp(w->name[k], w->name[k - 1]) == 0;
        if (w->found[k] || again) continue;
        if (missing++ == 0) first = k;
    }
    if (!missing) return EXIT_DONE;
    say("--keys: %s has no sample named %s%s", set, shown_text(w->name[first]),
        missing > 1 ? ", nor some others of the list" : "");
    return EXIT_FAILED;
}

static int by_keys(chosen *c, const withdraw_args *a, const mr_source *src)
{
    wanted w = {0};
    char name[4096], *key = name;
    mr_error err = MR_ERROR_INIT;
    int status = read_keys(&w, a->keys);
    for (uint64_t k = 0; !status && k < mr_source_info_of(src)->count; k++) {
        const int rc = mr_source_sample_name_get(src, k, NULL, 0, name, sizeof name, &err);
        if (interrupt_flag) status = EXIT_SIGNAL + interrupt_flag;
        else if (rc) status = exit_status(rc, &err);
        if (status || !name[0]) continue;
        char **found = bsearch(&key, w.name, w.count, sizeof *w.name, by_text);
        if (!found) continue;
        while (found > w.name && strcmp(found[-1], name) == 0) found--;
        w.found[found - w.name] = true;
        status = keep(c, k);
    }
    if (!status) status = check_all_found(&w, a->set);
    free_wanted(&w);
    return status;
}

/* ---- together ---- */
static int choose(chosen *c, const withdraw_args *a, mr_source *src)
{
    mr_decode_config decode;
    int status;
    if (a->samples) status = by_list(c, a->samples, mr_source_info_of(src)->count);
    else if (a->keys) status = by_keys(c, a, src);
    else {
        setup_decode(&decode, &a->data);
        status = choose_where(src, a->where, &decode, a->output.quiet, &c->number, &c->count);
    }
    if (status) return status;
    sort(c);
    if (c->count) return EXIT_DONE;
    say("--where: the conditions hold for no sample of %s", a->set);
    return EXIT_FAILED;
}

static void print_list(const withdraw_args *a, const mr_source *src)
{
    mr_withdrawn_sample w;
    for (uint64_t k = 0; mr_source_withdrawn_at(src, k, &w) == MR_OK; k++) {
        if (!a->output.json) {
            printf("%" PRIu64 " ", w.number);
            put_shown(w.name);
            if (w.reason[0]) {
                fputs(": ", stdout);
                put_shown(w.reason);
            }
            putchar('\n');
            continue;
        }
        json_line j = json_begin(stdout, "withdrawn");
        json_u64(&j, "sample", w.number);
        json_text(&j, "name", w.name);
        json_text(&j, "reason", w.reason);
        json_text(&j, "list", w.list);
        json_end(&j);
    }
}

/* The set is opened again: the report shows the samples as readers find them. */
static int report(const withdraw_args *a, const char *verb, uint64_t changed)
{
    mr_source *src;
    data_args data = a->data;
    data.takes_withdrawn = true;
    const int status = setup_source(&src, a->set, &data);
    if (status) return status;
    const mr_source_info *info = mr_source_info_of(src);
    if (a->output.json) {
        json_line j = json_begin(stdout, verb);
        json_text(&j, "data", a->set);
        json_u64(&j, "samples", info->count);
        json_u64(&j, "withdrawn", mr_source_withdrawn_count(src));
        json_u64(&j, "changed", changed);
        json_end(&j);
    } else {
        printf("%s: %" PRIu64 " of %" PRIu64 " samples are withdrawn; this run %s %" PRIu64 "\n",
               shown_text(a->set), mr_source_withdrawn_count(src), info->count,
               strcmp(verb, "restore") == 0 ? "restored" : "withdrew", changed);
    }
    mr_source_close(src);
    return EXIT_DONE;
}

static int check_args(const withdraw_args *a, bool restores)
{
    const int ways = (a->samples != NULL) + (a->keys != NULL) + (a->where != NULL) + a->all;
    if (ways > 1 || (ways == 0 && restores)) {
        say("expected one of --samples, --keys%s, found %d of them",
            restores ? ", --where and --all" : " and --where", ways);
        return EXIT_MISUSED;
    }
    if (ways == 0 && a->reason) {
        say("--reason goes with --samples, --keys or --where");
        return EXIT_MISUSED;
    }
    if (a->data.take) {
        say("--take does not go with this command: the samples are numbered as in the set");
        return EXIT_MISUSED;
    }
    return EXIT_DONE;
}

static int change(const withdraw_args *a, mr_source *src, bool restores, uint64_t *changed)
{
    mr_error err = MR_ERROR_INIT;
    chosen c = {0};
    char reason[600];
    int status = a->all ? EXIT_DONE : choose(&c, a, src);
    if (a->where) snprintf(reason, sizeof reason, "%s", a->where);
    if (!status && restores)
        status = exit_status(mr_source_restore(src, a->all ? NULL : c.number, c.count, changed, &err), &err);
    else if (!status)
        status = exit_status(mr_source_withdraw(src, c.number, c.count,
                                                a->reason  ? a->reason
                                                : a->where ? reason
                                                           : "",
                                                changed, &err),
                             &err);
    free(c.number);
    return status;
}

static int run_either(const withdraw_args *a, bool restores)
{
    mr_source *src;
    data_args data = a->data;
    uint64_t changed = 0;
    int status = check_args(a, restores);
    if (status) return status;
    data.takes_withdrawn = true;
    status = setup_source(&src, a->set, &data);
    if (status) return status;
    setup_tell_part(src, &a->data);
    const bool lists = !a->samples && !a->keys && !a->where && !a->all;
    if (lists) print_list(a, src);
    else status = change(a, src, restores, &changed);
    mr_source_close(src);
    return status || (lists && !a->output.json) ? status
                                                : report(a, restores ? "restore" : "withdraw", changed);
}

static int run_withdraw(const void *args) { return run_either(args, false); }
static int run_restore(const void *args) { return run_either(args, true); }

static const opt withdraw_options[] = {
#define MRI_OPTIONS(...) OPT(withdraw_args, __VA_ARGS__),
#include "settings/commands/withdraw_samples.rows"
#define MRI_OPTIONS(...) OPT(withdraw_args, __VA_ARGS__),
#include "settings/commands/withdraw.rows"
};
static const opt restore_options[] = {
#define MRI_OPTIONS(...) OPT(withdraw_args, __VA_ARGS__),
#include "settings/commands/withdraw_samples.rows"
#define MRI_OPTIONS(...) OPT(withdraw_args, __VA_ARGS__),
#include "settings/commands/restore.rows"
};
static const opt_group withdraw_groups[] = {
    OPT_OWN_GROUP("Options", withdraw_options),
    GROUP(DATA, withdraw_args, data),
    GROUP(OUTPUT, withdraw_args, output),
};
static const opt_group restore_groups[] = {
    OPT_OWN_GROUP("Options", restore_options),
    GROUP(DATA, withdraw_args, data),
    GROUP(OUTPUT, withdraw_args, output),
};
static const opt_positional positionals[] = {
    {"SET", offsetof(withdraw_args, set), true, "any data set in files of this machine, but no mix"},
};

const command command_withdraw = {
    .name = "withdraw",
    .summary = "list samples as withdrawn, so that no command and no program reads them",
    .text = "Adds samples of SET to the file .millrace.withdrawn in the folder in which their data file "
            "lies. Every reader of these files leaves them out: train, profile, convert, export, digest, "
            "Python. The data files stay unchanged, and 'restore' takes samples back. Without --samples, "
            "--keys and --where the command prints the withdrawn samples. Each is identified by file, "
            "offset, size and a hash of its bytes: if the file changes, SET is refused until its entries are "
            "restored. The order of an epoch depends on the number of samples, so an interrupted training "
            "cannot be resumed after a change. Two runs do not change a list together: the second is "
            "refused. A run that was killed is to be repeated.",
    .examples = "  millrace withdraw photos --samples 17,40-42 --reason \"wrong label\"\n"
                "  millrace withdraw train.mrec --where \"label=3\"\n  millrace withdraw train.mrec\n",
    .positionals = positionals,
    .positional_count = OPT_COUNT(positionals),
    .groups = withdraw_groups,
    .group_count = OPT_COUNT(withdraw_groups),
    .args_bytes = sizeof(withdraw_args),
    .alone = true,
    .run = run_withdraw,
};

const command command_restore = {
    .name = "restore",
    .summary = "take withdrawn samples back",
    .text =
        "Removes samples of SET from the list of withdrawn samples (see 'withdraw'). Samples that are not "
        "in the list stay as they are. --all also removes entries whose file changed or is missing.",
    .examples = "  millrace restore photos --samples 17\n  millrace restore train.mrec --all\n",
    .positionals = positionals,
    .positional_count = OPT_COUNT(positionals),
    .groups = restore_groups,
    .group_count = OPT_COUNT(restore_groups),
    .args_bytes = sizeof(withdraw_args),
    .alone = true,
    .run = run_restore,
};
