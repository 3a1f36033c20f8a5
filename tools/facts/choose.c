/* tools/facts/choose.c: see choose.h. */
#include "tools/facts/choose.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/exit.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/output.h"
#include "tools/cli/progress.h"
#include "tools/session/setup.h"

static const opt options[] = {
#define MRI_OPTIONS(...) OPT(choose_args, __VA_ARGS__),
#include "settings/choice.rows"
};
const opt_set choose_options = {"Choice", options, OPT_COUNT(options), true};

bool choose_asked(const choose_args *a)
{
    return a->classes_from || a->rename_classes || a->only_classes || a->where || a->take_each || a->dedup ||
           a->sample;
}

/* ---- notes and progress ---- */
typedef struct choose_view {
    progress_bar bar;
    bool silent;
} choose_view;

static void on_note(void *context, const char *text)
{
    const choose_view *v = context;
    if (!v->silent) say("%s", text);
}

static void on_progress(void *context, uint64_t done, uint64_t count)
{
    choose_view *v = context;
    progress_show(&v->bar, done, count, NULL);
}

static void start(choose_view *v, mr_choice_config *cfg, const mr_decode_config *decode, bool silent,
                  bool quiet)
{
    mr_choice_defaults(cfg);
    if (decode) cfg->decode = *decode;
    v->silent = silent;
    progress_start(&v->bar, "choose", "samples", quiet);
    cfg->on_note = on_note;
    cfg->on_progress = on_progress;
    cfg->context = v;
    cfg->stop = &interrupt_flag;
}

/* ---- texts of options ---- */
static int read_text(char **out, const char *path)
{
    FILE *f = path ? fopen(path, "re") : NULL;
    size_t room = 0;
    if (!path) return EXIT_DONE;
    const ssize_t n = f ? getdelim(out, &room, '\0', f) : -1;
    const bool whole = f && (n >= 0 || feof(f)) && fgetc(f) == EOF && !ferror(f);
    if (whole && n < 0) { /* empty */
        free(*out);
        *out = strdup("");
    }
    if (!f) say("%s: cannot open: %s", path, strerror(errno));
    else if (!whole) say("%s: expected lines of text", path);
    if (f) fclose(f);
    return f && whole ? *out ? EXIT_DONE : exit_no_memory("the names of classes") : EXIT_FAILED;
}

/* "a,b": a line for each name; \, is a comma in one. */
static int split_list(char **out, const char *list)
{
    if (!list) return EXIT_DONE;
    *out = strdup(list);
    if (!*out) return exit_no_memory("the names of classes");
    char *to = *out;
    for (const char *p = list; *p; p++) {
        const bool comma = p[0] == '\\' && p[1] == ',';
        *to++ = comma ? *++p : *p == ',' ? '\n' : *p;
    }
    *to = '\0';
    return EXIT_DONE;
}

int choose_samples(mr_source *src, const choose_args *a, const mr_decode_config *decode, bool quiet,
                   mr_choice_result *out)
{
    mr_error err = MR_ERROR_INIT;
    mr_choice_config cfg;
    choose_view view;
    char *from = NULL, *renamed = NULL, *only = NULL;
    *out = (mr_choice_result){0};
    if (!choose_asked(a)) return EXIT_DONE;
    start(&view, &cfg, decode, a->silent, quiet);
    int status = read_text(&from, a->classes_from);
    if (!status) status = read_text(&renamed, a->rename_classes);
    if (!status) status = split_list(&only, a->only_classes);
    if (!status) status = setup_take(a->take_each, &cfg.each_from, &cfg.each_to);
    cfg.classes_from = from, cfg.rename_classes = renamed, cfg.only_classes = only;
    cfg.where = a->where;
    cfg.dedup = (mr_copies)a->dedup;
    cfg.sample = a->sample, cfg.sample_seed = a->sample_seed;
    cfg.lenient = a->lenient, cfg.known = a->known, cfg.known_count = a->known_count;
    if (!status) status = setting_status(mr_choose(src, &cfg, out, &err), &err);
    progress_end(&view.bar);
    free(from);
    free(renamed);
    free(only);
    return status;
}

static int choose_for(data_chooser *base, mr_source *src)
{
    chooser *c = (chooser *)base;
    mr_decode_config decode;
    mr_choice_result unused;
    setup_decode(&decode, c->data);
    const int status = choose_samples(src, &c->args, &decode, c->quiet, &unused);
    c->args.silent = true;
    return status;
}

/* Do conditions use labels or classes? */
static bool use_classes(const char *where)
{
    for (const char *at = where; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, "label", 5) == 0 || strncmp(at, "class", 5) == 0) return true;
    }
    return false;
}

void chooser_begin(chooser *c, const choose_args *a, data_args *data, bool quiet)
{
    const bool gives = a->classes_from || a->rename_classes, names = gives || a->only_classes;
    *c = (chooser){.base = {.choose = choose_for,
                            .names_classes = names,
                            .gives_names = gives,
                            .needs_classes = names || a->take_each || use_classes(a->where)},
                   .args = *a,
                   .data = data,
                   .quiet = quiet};
    data->chooser = choose_asked(a) ? &c->base : NULL;
}

int choose_where(mr_source *src, const char *conditions, const mr_decode_config *decode, bool quiet,
                 uint64_t **numbers, uint64_t *count)
{
    mr_error err = MR_ERROR_INIT;
    mr_choice_config cfg;
    choose_view view;
    *count = 0;
    *numbers = malloc((size_t)(mr_source_info_of(src)->count + 1) * sizeof **numbers);
    if (!*numbers) return exit_no_memory("the numbers of samples");
    start(&view, &cfg, decode, true, quiet);
    cfg.where = conditions;
    const int status = setting_status(mr_choose_where(src, &cfg, *numbers, count, &err), &err);
    progress_end(&view.bar);
    return status;
}
