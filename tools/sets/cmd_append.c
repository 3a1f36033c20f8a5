/* tools/sets/cmd_append.c: `millrace append SET SRC`: more samples for a set of record files. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/cli/exit.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/json.h"
#include "tools/cli/output.h"
#include "tools/cli/progress.h"
#include "tools/commands/commands.h"
#include "tools/facts/chosen.h"
#include "tools/facts/match_set.h"
#include "tools/fields/objective.h"
#include "tools/session/setup.h"

typedef struct append_args {
    const char *set, *src;
    bool update, force, again, no_space_check;
    uint32_t workers;
    uint64_t memory;
    data_args data;
    output_args output;
} append_args;

typedef struct append_run {
    const append_args *args;
    mr_source *src;
    progress_bar bar;
    uint64_t known, set_count; /* left out by --update; samples of the set */
    uint64_t withdrawn;        /* of the set's */
} append_run;

static void on_progress(void *context, uint64_t done, uint64_t count, uint64_t bytes)
{
    append_run *r = context;
    char text[32], note[64];
    snprintf(note, sizeof note, "%s read", mri_size_text((double)bytes, text, sizeof text));
    progress_show(&r->bar, done, count, note);
}

static void on_bad(void *context, const mr_error *what, uint64_t substitute)
{
    const append_run *r = context;
    mr_error placed = *what;
    (void)substitute;
    mr_verify_place(r->src, &placed);
    say_error(&placed);
}

static void on_space(void *context, uint64_t bytes, uint64_t free_bytes)
{
    const append_run *r = context;
    space_say(bytes, free_bytes, r->args->output.quiet);
}

/* ---- only new samples ---- */
static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void free_names(char **names, uint64_t count)
{
    for (uint64_t k = 0; names && k < count; k++) free(names[k]);
    free(names);
}

/* The names of the set's samples, sorted; a withdrawn one is not new either. */
static int names_of(const char *set, const data_args *data, char ***out, uint64_t *count)
{
    mr_source *src;
    char name[4096];
    mr_error err = MR_ERROR_INIT;
    *out = NULL;
    *count = 0;
    int status = match_open_set(&src, set, data);
    if (status) return status;
    const uint64_t all = mr_source_info_of(src)->count;
    *out = calloc((size_t)all + 1, sizeof **out);
    if (!*out) status = exit_no_memory("the names of samples");
    for (uint64_t k = 0; !status && k < all; k++) {
        const int rc = mr_source_sample_name_get(src, k, NULL, 0, name, sizeof name, &err);
        if (rc) status = exit_status(rc, &err);
        else if (!((*out)[k] = strdup(name))) status = exit_no_memory("the names of samples");
        else ++*count;
        if (interrupt_flag) status = EXIT_SIGNAL + interrupt_flag;
    }
    if (!status && all && (*out)[0] && !(*out)[0][0]) {
        say("--update: the samples of %s have no names, by which new ones would be known", set);
        status = EXIT_FAILED;
    }
    if (*count) qsort(*out, (size_t)*count, sizeof **out, by_text);
    mr_source_close(src);
    return status;
}

/* *none: nothing is new. */
static int keep_new(append_run *r, bool *none)
{
    char **names, name[4096], *key = name;
    uint64_t count, n = 0;
    mr_error err = MR_ERROR_INIT;
    const uint64_t all = mr_source_info_of(r->src)->count;
    *none = false;
    int status = names_of(r->args->set, &r->args->data, &names, &count);
    uint64_t *fresh = status ? NULL : malloc((size_t)(all + 1) * sizeof *fresh);
    if (!status && !fresh) status = exit_no_memory("the numbers of samples");
    for (uint64_t k = 0; !status && k < all; k++) {
        const int rc = mr_source_sample_name_get(r->src, k, NULL, 0, name, sizeof name, &err);
        if (rc) status = exit_status(rc, &err);
        else if (!name[0] || !bsearch(&key, names, (size_t)count, sizeof *names, by_text)) fresh[n++] = k;
    }
    r->known = all - n;
    r->set_count = count;
    *none = n == 0;
    if (!status && n) status = exit_status(mr_source_choose(r->src, fresh, n, &err), &err);
    if (!status)
        say("%" PRIu64 " of %" PRIu64 " samples are new; the others have names that the set has", n, all);
    free(fresh);
    free_names(names, count);
    return status;
}

/* Other data can be opened, but nothing can be added to them. */
static int check_set(const char *set, const mr_source_info *info)
{
    struct stat st;
    const bool is_of_records = strcmp(info->format, "shards") == 0 || strcmp(info->format, "mrec") == 0;
    if (stat(set, &st) != 0 || (!S_ISDIR(st.st_mode) && is_of_records)) return EXIT_DONE;
    say("%s: expected the list of a set of record files, found %s of format %s: 'convert %s SET.mrec "
        "--shard-size SIZE' makes such a set",
        set, S_ISDIR(st.st_mode) ? "a folder" : "a file", info->format, set);
    return EXIT_FAILED;
}

static int open_like(append_run *r, mr_source **out)
{
    const append_args *a = r->args;
    mr_source *set;
    int status = match_open_set(&set, a->set, &a->data);
    *out = NULL;
    if (status) return status;
    r->withdrawn = mr_source_withdrawn_count(set);
    status = check_set(a->set, mr_source_info_of(set));
    if (status == EXIT_DONE) status = setup_source(out, a->src, &a->data);
    if (status == EXIT_DONE) setup_tell_part(*out, &a->data);
    if (status == EXIT_DONE)
        status = match_classes(*out, a->set, mr_source_info_of(set),
                               "convert both to a new set, or rename the class (convert --rename-classes)");
    const char *const *names = NULL;
    const uint32_t count = mr_source_columns(set, NULL, &names);
    if (status == EXIT_DONE) status = objective_check_columns(*out, names, count, a->set);
    mr_source_close(set);
    return status;
}

static void report(const append_run *r, const mr_append_result *res)
{
    const append_args *a = r->args;
    if (a->output.json) {
        json_line j = json_begin(stdout, "append");
        json_text(&j, "data", a->set);
        json_text(&j, "source", a->src);
        json_u64(&j, "before", res->before);
        json_u64(&j, "after", res->after);
        json_u64(&j, "files", res->files);
        json_u64(&j, "bad", res->bad);
        json_u64(&j, "known", r->known);
        json_u64(&j, "withdrawn", r->withdrawn);
        json_bool(&j, "resumed", res->resumed);
        json_bool(&j, "present", res->known);
        json_end(&j);
        return;
    }
    printf("%s: %" PRIu64 " samples, %" PRIu64 " of them new, in %" PRIu32 " file%s", shown_text(a->set),
           res->after - r->withdrawn, res->after - res->before, res->files, res->files == 1 ? "" : "s");
    if (r->withdrawn) printf("; %" PRIu64 " more are withdrawn", r->withdrawn);
    putchar('\n');
    if (res->known)
        printf("A file of the set was made from this source already: nothing was appended. With --again its "
               "samples are in the set twice.\n");
    if (res->resumed) printf("An interrupted run was finished: the samples are in the set once.\n");
    if (res->bad) printf("%" PRIu64 " bad sample%s left out\n", res->bad, res->bad == 1 ? " was" : "s were");
}

static int add(append_run *r)
{
    const append_args *a = r->args;
    mr_append_config cfg;
    mr_append_result res = {0};
    mr_error err = MR_ERROR_INIT;
    bool none = false;
    int status = a->update ? chosen_check(a->set, NULL, &a->data) : EXIT_DONE;
    if (!status && a->update) status = keep_new(r, &none);
    if (status) return status;
    if (none) {
        res.before = res.after = r->set_count;
        if (a->output.json) report(r, &res);
        else printf("%s: nothing to add\n", shown_text(a->set));
        return EXIT_DONE;
    }
    mr_append_defaults(&cfg);
    cfg.workers = a->workers;
    cfg.memory_bytes = a->memory;
    cfg.force = a->force;
    cfg.again = a->again;
    cfg.progress = on_progress;
    cfg.on_bad = on_bad;
    cfg.space = on_space;
    cfg.no_space_check = a->no_space_check;
    cfg.context = r;
    cfg.stop = &interrupt_flag;
    progress_start(&r->bar, "append", "samples", a->output.quiet);
    const int rc = mr_append(a->set, r->src, &cfg, &res, &err);
    progress_end(&r->bar);
    status = exit_status(rc, &err);
    if (rc == MR_OK) report(r, &res);
    return status == EXIT_DONE && res.bad ? EXIT_BAD_SAMPLES : status;
}

static int run(const void *args)
{
    append_run r = {.args = args};
    int status = open_like(&r, &r.src);
    if (status == EXIT_DONE) status = add(&r);
    mr_source_close(r.src);
    return status;
}

static const opt options[] = {
#define MRI_OPTIONS(...) OPT(append_args, __VA_ARGS__),
#include "settings/commands/append.rows"
};
static const opt_group groups[] = {
    OPT_OWN_GROUP("Options", options),
    GROUP(DATA, append_args, data),
    GROUP(OUTPUT, append_args, output),
};
static const opt_positional positionals[] = {
    {"SET", offsetof(append_args, set), true, "list of a set of record files (convert --shard-size)"},
    {"SRC", offsetof(append_args, src), true, "any data set with the fields and classes of SET"},
};

const command command_append = {
    .name = "append",
    .summary = "add the samples of another data set to a set of record files",
    .text =
        "Writes new files after SET's, with the settings stored in SET, then a new list. Existing "
        "samples keep their numbers and bytes; SET does not change until the new list is in place. The same "
        "command finishes a killed run, and its samples are in SET once: a source that was appended before "
        "adds nothing, and a source that shares samples with SET (the same name, label and contents) is "
        "refused without --update or --again. A second run for the same SET at a time is refused. Classes "
        "are matched by their names; a class that SET lacks is an error. The order of an epoch depends on "
        "the number of samples, so training starts anew with the larger set.",
    .examples = "  millrace append shards.mrec photos\n  millrace append shards.mrec photos --update\n",
    .positionals = positionals,
    .positional_count = OPT_COUNT(positionals),
    .groups = groups,
    .group_count = OPT_COUNT(groups),
    .args_bytes = sizeof(append_args),
    .alone = true,
    .run = run,
};
