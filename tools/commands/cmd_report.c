/* tools/commands/cmd_report.c: `millrace report RUN [OTHER]`: shows a run's --json output as one HTML
 * page. */
#include <stdio.h>
#include <sys/stat.h>

#include "millrace/report.h"
#include "tools/cli/exit.h"
#include "tools/cli/output.h"
#include "tools/commands/commands.h"
#include "tools/session/setup.h"

typedef struct report_args {
    const char *run, *other, *html, *trace, *bad_list;
    uint32_t samples;
    bool force;
    data_args data_opts;
} report_args;

/* ---- what goes in ---- */

static void on_note(void *context, const char *text)
{
    (void)context;
    say("%s", text);
}

static int add_pictures(mr_run_page *p, const report_args *a)
{
    mr_error err = MR_ERROR_INIT;
    mr_source *src = NULL;
    char text[sizeof err.text];
    const char *data = mr_run_page_data(p);
    if (!data) {
        say("%s: --samples: the log does not say which data were trained on, and how they were augmented",
            a->run);
        return EXIT_FAILED;
    }
    const int status = setup_source(&src, data, &a->data_opts);
    if (status) return status;
    const int rc = mr_run_page_pictures(p, src, a->samples, &err);
    mr_source_close(src);
    if (rc == MR_EUNSUPPORTED) {
        snprintf(text, sizeof text, "%s", err.text);
        mr_error_set(&err, rc, "--samples: %s", text);
    }
    return exit_status(rc, &err);
}

/* Everything that goes in, in the order in which errors are reported. */
static int fill_page(mr_run_page *p, const report_args *a)
{
    mr_error err = MR_ERROR_INIT;
    int rc = mr_run_page_add(p, a->run, &err);
    if (rc == MR_OK && a->other) rc = mr_run_page_add(p, a->other, &err);
    if (rc == MR_OK && a->trace) rc = mr_run_page_trace_file(p, a->trace, &err);
    if (rc == MR_OK && a->bad_list) rc = mr_run_page_bad_list(p, a->bad_list, &err);
    const int status = exit_status(rc, &err);
    return status || !a->samples ? status : add_pictures(p, a);
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
    return setup_page(a->html, a->force);
}

static int make_page(const report_args *a, mr_run_page *p)
{
    mr_error err = MR_ERROR_INIT;
    int status = check_place(a);
    if (status == EXIT_DONE) status = fill_page(p, a);
    if (status == EXIT_DONE) status = exit_status(mr_run_page_write(p, a->html, true, &err), &err);
    if (status == EXIT_DONE) printf("%s\n", shown_text(a->html));
    return status;
}

static int run(const void *args)
{
    mr_error err = MR_ERROR_INIT;
    mr_run_page *p;
    mr_run_page_config cfg;
    mr_run_page_defaults(&cfg);
    cfg.on_note = on_note;
    int status = exit_status(mr_run_page_open(&p, &cfg, &err), &err);
    if (status == EXIT_DONE) status = make_page(args, p);
    mr_run_page_close(p);
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
