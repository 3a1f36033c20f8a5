/* tools/commands/convert_update.c: `convert SRC DST --update`: a set of record files follows its source. The
 * work is mr_set_update(); here are progress, names of samples, and the closing lines. */
#include "tools/commands/convert_update.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "tools/cli/exit.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/json.h"
#include "tools/cli/output.h"
#include "tools/cli/progress.h"
#include "tools/facts/chosen.h"
#include "tools/facts/match_set.h"

static const opt options[] = {
#define MRI_OPTIONS(...) OPT(set_update_args, __VA_ARGS__),
#include "settings/commands/convert_update.rows"
};
const opt_set set_update_options = {"Update of a set", options, OPT_COUNT(options), true};

enum { NAMED = 10 }; /* samples of a kind that are named in text; JSON names all */

static const char *const kind_names[] = {[MR_SET_UPDATE_NEW] = "new",
                                         [MR_SET_UPDATE_CHANGED] = "changed",
                                         [MR_SET_UPDATE_GONE] = "gone",
                                         [MR_SET_UPDATE_BACK] = "back",
                                         [MR_SET_UPDATE_REPEATED] = "repeated"};

typedef struct update_run {
    const convert_update *args;
    mr_source *src;
    progress_bar bar;
    bool converts; /* the bar shows the conversion */
    uint64_t found[OPT_COUNT(kind_names)];
} update_run;

static void show(update_run *r, uint64_t done, uint64_t count, uint64_t bytes)
{
    char text[32], note[64];
    snprintf(note, sizeof note, "%s read", mri_size_text((double)bytes, text, sizeof text));
    progress_show(&r->bar, done, count, note);
}

static void on_compared(void *context, uint64_t done, uint64_t count, uint64_t bytes)
{
    show(context, done, count, bytes);
}

static void on_progress(void *context, uint64_t done, uint64_t count, uint64_t bytes)
{
    update_run *r = context;
    if (!r->converts) {
        progress_end(&r->bar);
        progress_start(&r->bar, "convert", "samples", r->args->output->quiet);
        r->converts = true;
    }
    show(r, done, count, bytes);
}

static void on_bad(void *context, const mr_error *what, uint64_t substitute)
{
    const update_run *r = context;
    mr_error placed = *what;
    (void)substitute;
    mr_verify_place(r->src, &placed);
    if (placed.sample != MR_NOWHERE) placed.sample = mr_source_number(r->src, placed.sample);
    say_error(&placed);
}

static void on_found(void *context, const mr_set_update_finding *f)
{
    update_run *r = context;
    const char *kind = kind_names[f->kind];
    if (r->args->output->json) {
        json_line j = json_begin(stdout, "difference");
        json_text(&j, "state", kind);
        json_text(&j, "name", f->name);
        if (f->sample != MR_NOWHERE) json_u64(&j, "source_number", f->sample);
        if (f->number != MR_NOWHERE) json_u64(&j, "sample", f->number);
        json_end(&j);
        return;
    }
    if (r->found[f->kind]++ < NAMED) {
        progress_hold();
        printf("%s: %s\n", kind, shown_text(f->name));
        progress_release();
    }
}

static void on_space(void *context, uint64_t bytes, uint64_t free_bytes)
{
    const update_run *r = context;
    space_say(bytes, free_bytes, r->args->output->quiet);
}

static void report_json(const update_run *r, const mr_set_update_result *res)
{
    json_line j = json_begin(stdout, "update");
    json_text(&j, "source", mr_source_info_of(r->src)->path);
    json_text(&j, "data", r->args->dst);
    json_u64(&j, "before", res->before);
    json_u64(&j, "after", res->after);
    json_u64(&j, "new", res->fresh);
    json_u64(&j, "changed", res->changed);
    json_u64(&j, "gone", res->gone);
    json_u64(&j, "back", res->back);
    json_u64(&j, "repeated", res->repeated);
    json_u64(&j, "same", res->same);
    json_u64(&j, "left_out", res->left_out);
    json_u64(&j, "appended", res->appended);
    json_u64(&j, "withdrawn", res->withdrawn);
    json_u64(&j, "restored", res->restored);
    json_u64(&j, "files", res->files);
    json_u64(&j, "bad", res->bad);
    json_bool(&j, "resumed", res->resumed);
    json_end(&j);
}

static void report_more(const update_run *r)
{
    for (size_t k = 0; k < OPT_COUNT(kind_names); k++)
        if (r->found[k] > NAMED) printf("%s: %" PRIu64 " more\n", kind_names[k], r->found[k] - NAMED);
}

static void report(const update_run *r, const mr_set_update_result *res)
{
    const char *dst = shown_text(r->args->dst);
    if (res->resumed) printf("%s: an interrupted run was finished first\n", dst);
    printf("%s: %" PRIu64 " samples, %" PRIu64 " before; appended %" PRIu64 " in %" PRIu32
           " file%s, withdrew %" PRIu64 ", restored %" PRIu64 "\n",
           dst, res->after, res->before, res->appended, res->files, res->files == 1 ? "" : "s",
           res->withdrawn, res->restored);
    printf("of SRC: %" PRIu64 " new, %" PRIu64 " changed, %" PRIu64 " gone, %" PRIu64 " the same\n",
           res->fresh, res->changed, res->gone, res->same);
    if (res->left_out)
        printf("%" PRIu64 " sample%s of SRC %s withdrawn from the set before, and stay%s so\n", res->left_out,
               res->left_out == 1 ? "" : "s", res->left_out == 1 ? "was" : "were",
               res->left_out == 1 ? "s" : "");
    if (res->repeated)
        printf("%" PRIu64 " record%s of the set repeat%s another sample, and stay%s\n", res->repeated,
               res->repeated == 1 ? "" : "s", res->repeated == 1 ? "s" : "", res->repeated == 1 ? "s" : "");
    if (res->bad) printf("%" PRIu64 " bad sample%s left out\n", res->bad, res->bad == 1 ? " was" : "s were");
}

static int same_classes(const update_run *r)
{
    mr_source *set;
    int status = match_open_set(&set, r->args->dst, r->args->data);
    if (status) return status;
    status = match_classes(r->src, r->args->dst, mr_source_info_of(set),
                           "a set gets no new classes by --update: convert SRC anew (convert SRC DST "
                           "--shard-size SIZE --force), or leave the class out (--only-classes)");
    mr_source_close(set);
    return status;
}

static mr_set_update_config config_of(update_run *r)
{
    static const mr_set_update_rule rules[] = {MR_SET_UPDATE_REFUSE, MR_SET_UPDATE_KEEP,
                                               MR_SET_UPDATE_WITHDRAW};
    mr_set_update_config cfg;
    mr_set_update_defaults(&cfg);
    cfg.changed = rules[r->args->args.changed];
    cfg.gone = rules[r->args->args.gone];
    cfg.workers = r->args->workers;
    cfg.memory_bytes = r->args->memory_bytes;
    cfg.force = r->args->force;
    cfg.compared = on_compared;
    cfg.progress = on_progress;
    cfg.found = on_found;
    cfg.on_bad = on_bad;
    cfg.space = on_space;
    cfg.no_space_check = r->args->no_space_check;
    cfg.context = r;
    cfg.stop = &interrupt_flag;
    return cfg;
}

/* The first run of a job that repeats itself finds no set. */
static int check_there(const char *dst)
{
    struct stat st;
    if (lstat(dst, &st) == 0 || errno != ENOENT) return EXIT_DONE;
    say("%s: there is no set yet: make it with 'convert SRC DST --shard-size SIZE', without --update", dst);
    return EXIT_FAILED;
}

int convert_update_run(const convert_update *u, mr_source *src)
{
    update_run r = {.args = u, .src = src};
    mr_set_update_result res = {0};
    mr_error err = MR_ERROR_INIT;
    int status = check_there(u->dst);
    if (!status) status = chosen_check(u->dst, u->choose, u->data);
    if (!status) status = same_classes(&r);
    if (status) return status;
    const mr_set_update_config cfg = config_of(&r);
    progress_start(&r.bar, "compare", "samples", u->output->quiet);
    const int rc = mr_set_update(u->dst, src, &cfg, &res, &err);
    progress_end(&r.bar);
    report_more(&r);
    status = exit_status(rc, &err);
    if (rc) return status;
    if (u->output->json) report_json(&r, &res);
    else report(&r, &res);
    return res.bad ? EXIT_BAD_SAMPLES : EXIT_DONE;
}
