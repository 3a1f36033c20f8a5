/* tools/commands/cmd_report.c: `millrace report RUN [OTHER]`: shows a run's --json output as one HTML
 * page. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/cli/exit.h"
#include "tools/cli/output.h"
#include "tools/commands/commands.h"
#include "tools/commands/report_page.h"
#include "tools/page/page.h"
#include "tools/session/setup.h"

typedef struct report_args {
    const char *run, *other, *html, *trace, *bad_list;
    uint32_t samples;
    bool force;
    data_args data_opts;
} report_args;

/* ---- what goes in ---- */

static int read_run(report_page *p, const char *path)
{
    mr_error err = MR_ERROR_INIT;
    run_log *r = &p->run[p->runs++];
    const int status = exit_status(run_log_read(r, path, &err), &err);
    if (status == EXIT_DONE && r->no_json)
        say("%s: %zu of %zu lines are no JSON and left out, the first is line %zu", path, r->no_json,
            r->lines, r->no_json_at);
    if (status == EXIT_DONE && r->is_cut) say("%s: the last line is cut off and left out", path);
    return status;
}

static int read_trace(report_page *p, const char *path, cJSON **tree, char **text)
{
    mr_error err = MR_ERROR_INIT;
    size_t bytes, at;
    p->trace_path = path;
    const int status = exit_status(run_log_bytes(path, text, &bytes, &err), &err);
    if (status) return status;
    *tree = json_read(*text, bytes, &at);
    if (!*tree) {
        say("%s: no JSON from offset %zu on; expected a trace that --trace wrote", path, at);
        return EXIT_FAILED;
    }
    p->spans = timeline_of_json(*tree, &p->span_count);
    if (!p->spans) return exit_no_memory("the timeline");
    if (!p->span_count) say("%s: no spans in it: the timeline is empty", path);
    return EXIT_DONE;
}

/* A list of bad samples is such a log, too, without a run. */
static int read_bad_list(report_page *p, const char *path)
{
    mr_error err = MR_ERROR_INIT;
    p->bad_path = path;
    const int rc = run_log_read(&p->bad, path, &err);
    if ((rc == MR_OK || rc == MR_EFORMAT) && p->bad.bad.count) return EXIT_DONE;
    if (rc != MR_OK && rc != MR_EFORMAT) return exit_status(rc, &err);
    say("%s: expected a list of bad samples (train --bad-list), found %zu lines, none of them such", path,
        p->bad.lines);
    return EXIT_FAILED;
}

/* ---- pictures ---- */

static int encode(report_page *p, const mr_loader_info *info, const mr_source_info *data, const mr_batch *b,
                  uint32_t i, mr_error *err)
{
    report_sample *s = &p->sample[i];
    const size_t bytes = (size_t)info->height * info->width * info->channels;
    const mr_image picture = {.width = info->width,
                              .height = info->height,
                              .channels = info->channels,
                              .pixels = (uint8_t *)(uintptr_t)(b->pixels + i * bytes)};
    const int32_t label = b->labels ? b->labels[i] : -1;
    if (label >= 0 && (uint32_t)label < data->class_count && data->class_names && data->class_names[label])
        snprintf(s->label, sizeof s->label, "%.40s", data->class_names[label]);
    else if (label >= 0) snprintf(s->label, sizeof s->label, "%d", (int)label);
    const int rc = mr_image_encode_png(&picture, &s->png, &s->bytes, err);
    if (rc == MR_OK) p->sample_count = i + 1;
    return rc;
}

static int take_pictures(report_page *p, const mr_source *src, mr_loader *l, uint32_t wanted, mr_error *err)
{
    mr_batch b;
    int rc = mr_loader_next(l, &b, MR_FOREVER, err);
    if (rc) return rc;
    for (uint32_t i = 0; rc == MR_OK && i < wanted && i < b.count; i++)
        if (!b.ids || b.ids[i] != MR_NOWHERE)
            rc = encode(p, mr_loader_info_of(l), mr_source_info_of(src), &b, i, err);
    mr_loader_release(l, &b, NULL);
    return rc;
}

/* All 64 bits of it: a tree of doubles has 53. */
static uint64_t seed_of(const run_log *r)
{
    static const char key[] = "\"seed\": ";
    const char *at = strstr(r->start_text, key), *end = strchr(r->start_text, '\n');
    return at && (!end || at < end) ? strtoull(at + sizeof key - 1, NULL, 10) : 0;
}

/* The run's own order and augmentation, from what its first line says. */
static int read_samples(report_page *p, const report_args *a)
{
    mr_error err = MR_ERROR_INIT;
    mr_source *src = NULL;
    mr_loader *l = NULL;
    mr_loader_config cfg;
    const cJSON *start = p->run[0].start;
    const char *data = json_text_of(start, "data"), *augment = json_text_of(start, "augment");
    if (!data || !augment) {
        say("%s: --samples: the log does not say which data were trained on, and how they were augmented",
            p->run[0].path);
        return EXIT_FAILED;
    }
    const int status = setup_source(&src, data, &a->data_opts);
    if (status) return status;
    mr_loader_defaults(&cfg);
    cfg.batch = a->samples;
    cfg.epochs = 1;
    cfg.prefetch = 0;
    cfg.augment = augment;
    cfg.training = true;
    cfg.seed = seed_of(&p->run[0]);
    cfg.bad = MR_BAD_REPLACE;
    cfg.max_bad = UINT64_MAX;
    int rc = mr_loader_open(&l, src, &cfg, &err);
    if (rc == MR_OK && !mr_loader_info_of(l)->height)
        rc = mr_error_set(&err, MR_EUNSUPPORTED, "--samples: no pictures in %s", data);
    if (rc == MR_OK) rc = take_pictures(p, src, l, a->samples, &err);
    mr_loader_close(l);
    mr_source_close(src);
    return exit_status(rc, &err);
}

/* ---- what comes out ---- */

/* May the page stand there? A page of ours is replaced, another file with --force alone, none of what is
 * read. */
static int check_place(const report_args *a)
{
    const char *const inputs[] = {a->run, a->other, a->trace, a->bad_list};
    struct stat there, in;
    if (stat(a->html, &there) != 0) return setup_output("html", a->html);
    for (size_t i = 0; i < OPT_COUNT(inputs); i++)
        if (inputs[i] && stat(inputs[i], &in) == 0 && in.st_dev == there.st_dev &&
            in.st_ino == there.st_ino) {
            say("--html %s: this is %s, which is read; choose another name", a->html, inputs[i]);
            return EXIT_MISUSED;
        }
    if (!page_may_write("html", a->html, a->force)) return EXIT_MISUSED;
    return setup_output("html", a->html);
}

static int make_page(const report_args *a, report_page *p, cJSON **tree, char **text)
{
    mr_error err = MR_ERROR_INIT;
    int status = check_place(a);
    if (status == EXIT_DONE) status = read_run(p, a->run);
    if (status == EXIT_DONE && a->other) status = read_run(p, a->other);
    if (status == EXIT_DONE && p->runs > 1 && p->run[0].is_profile != p->run[1].is_profile) {
        say("%s and %s: one is of train, one of profile; they cannot stand side by side", a->run, a->other);
        status = EXIT_FAILED;
    }
    if (status == EXIT_DONE && a->trace) status = read_trace(p, a->trace, tree, text);
    if (status == EXIT_DONE && a->bad_list) status = read_bad_list(p, a->bad_list);
    if (status == EXIT_DONE && a->samples) status = read_samples(p, a);
    if (status == EXIT_DONE) status = exit_status(page_write(a->html, report_page_put, p, &err), &err);
    if (status == EXIT_DONE) printf("%s\n", shown_text(a->html));
    return status;
}

static int run(const void *args)
{
    cJSON *tree = NULL;
    char *text = NULL;
    report_page *p = calloc(1, sizeof *p);
    if (!p) return exit_no_memory("a report");
    const int status = make_page(args, p, &tree, &text);
    for (int k = 0; k < p->runs; k++) run_log_free(&p->run[k]);
    run_log_free(&p->bad);
    for (uint32_t i = 0; i < p->sample_count; i++) free(p->sample[i].png);
    free(p->spans);
    cJSON_Delete(tree);
    free(text);
    free(p);
    return status;
}

static const opt options[] = {
#define MRI_OPTIONS(...) OPT(report_args, __VA_ARGS__),
#include "settings/commands/report.rows"
};
static const opt_group groups[] = {
    OPT_OWN_GROUP("Report", options),
    GROUP(DATA, report_args, data_opts),
};
static const opt_positional positionals[] = {
    {"RUN", offsetof(report_args, run), true, "a file with the output of train --json or profile --json"},
    {"OTHER", offsetof(report_args, other), false, "a second run, to compare with"},
};

const command command_report = {
    .name = "report",
    .summary = "show a run, or two side by side, as one HTML page: curves, stalls, steps, a timeline",
    .text = "Makes one HTML page from the --json output of a run: loss, accuracy and speed, the causes of "
            "the devices' waits, steps, stages, settings; with --trace a timeline, with --samples pictures "
            "as the network receives them. The page is one file and fetches nothing. The run may still "
            "be in progress, or was killed.",
    .examples = "  millrace train photos --model cifar-cnn --json --trace trace.json > run.jsonl\n"
                "  millrace report run.jsonl --trace trace.json --samples 24\n"
                "  millrace report before.jsonl after.jsonl --html both.html\n",
    .positionals = positionals,
    .positional_count = OPT_COUNT(positionals),
    .groups = groups,
    .group_count = OPT_COUNT(groups),
    .args_bytes = sizeof(report_args),
    .run = run,
};
