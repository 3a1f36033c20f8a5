/* tools/commands/cmd_watch.c: `millrace watch -- COMMAND`: a training program that is not ours, watched while
 * it runs; then the causes of its waits, and our loader's rate for the same data.
 *
 * Everything here goes to standard error or to the file of --json: standard output is the program's. Its exit
 * status is ours. Nothing of the data is read before it ended, so that it finds the page cache as ever. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/cli/exit.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/output.h"
#include "tools/commands/commands.h"
#include "tools/commands/watch_report.h"
#include "tools/session/bad_watch.h"
#include "tools/trial/measure.h"

typedef struct watch_command_args {
    double interval, seconds, measure;
    const char *json;
    uint64_t samples;
    session_args shared;
    opt_words command;
} watch_command_args;

/* ---- our loader over the same data ---- */

/* Pictures that may differ in size fit into no batch: as a network would have them. */
static void choose_augment(const tool_session *s, run_args *run)
{
    const mr_source_info *info = mr_source_info_of(s->src);
    if (run->augment || info->image_field < 0 || info->height) return;
    run->augment = "rrc224";
    say("--augment is not given, and the data do not promise one size: the loader is measured with rrc224");
}

static int measure(const watch_command_args *a, tool_session *s, watch_loader *out)
{
    run_args run = a->shared.run;
    mr_rate m;
    int status = session_open_data(s, a->shared.data, &a->shared.data_opts, NEED_SAMPLES);
    if (status) return status;
    const mr_source_info *info = mr_source_info_of(s->src);
    out->data = info->path;
    out->mean_bytes = info->count ? (double)info->total_bytes / (double)info->count : 0;
    choose_augment(s, &run);
    setup_loader(&s->loader_cfg, &a->shared.data_opts, &run, &a->shared.loader);
    s->loader_cfg.training = true;
    s->loader_cfg.epochs = UINT64_MAX;
    status = session_take_fields(s, &run);
    if (status == EXIT_DONE) status = bad_watch_open(&s->bad, s->src, &run, &s->loader_cfg);
    if (status == EXIT_DONE) status = session_open_loader(s);
    if (status == EXIT_DONE) status = measure_loader(s, a->measure, 5, &m);
    if (status) return status;
    const mr_loader_info *loader = mr_loader_info_of(s->loader);
    out->measured = true;
    out->samples_per_s = m.samples_per_s;
    out->samples_per_s_mad = m.samples_per_s_mad;
    out->augment = loader->augment;
    out->batch = loader->batch;
    out->workers = loader->workers;
    return EXIT_DONE;
}

/* ---- the program's samples ---- */

static void count_samples(const watch_command_args *a, watch_result *r)
{
    const foreign_figures *f = r->f;
    r->samples_seconds = f->seconds;
    if (a->samples) {
        r->how = SAMPLES_GIVEN;
        r->samples = (double)a->samples;
    } else if (f->opens.counted && f->opens.count > 1 && f->opens.seconds > 0) {
        r->how = SAMPLES_OPENS;
        r->samples = (double)f->opens.count;
        r->samples_seconds = f->opens.seconds;
    } else if (a->shared.data && r->loader.mean_bytes > 0 && f->has_io && !f->opens.counted) {
        r->how = SAMPLES_BYTES;
        r->samples = (double)f->read_calls_bytes / r->loader.mean_bytes;
    }
}

/* ---- report ---- */

/* A pipe or a device, which somebody reads: nothing is made. */
static int write_stream(const char *path, watch_result *r, mr_error *err)
{
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    FILE *out = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (out) watch_report_json(r, out);
    bool good = out && !ferror(out);
    if (out && fclose(out) != 0) good = false;
    if (!out && fd >= 0) close(fd);
    if (good) return MR_OK;
    const int rc = mr_error_sys(err, errno, "--json: cannot write the report");
    mr_error_at(err, path, MR_NOWHERE, MR_NOWHERE);
    return rc;
}

/* Under its name when it is complete. */
static int write_file(const char *path, watch_result *r, mr_error *err)
{
    char *text = NULL;
    size_t bytes = 0;
    mr_output_config cfg;
    mr_output_defaults(&cfg);
    cfg.force = true;
    FILE *f = open_memstream(&text, &bytes);
    if (f) watch_report_json(r, f);
    bool whole = f && !ferror(f);
    if (f && fclose(f) != 0) whole = false;
    const int rc = whole ? mr_output_whole(path, text, bytes, &cfg, err)
                         : mr_error_set(err, MR_ENOMEM, "out of memory for the report");
    free(text);
    return rc;
}

static int write_json(const watch_command_args *a, watch_result *r)
{
    mr_error err = MR_ERROR_INIT;
    struct stat st;
    const bool stream = stat(a->json, &st) == 0 && !S_ISREG(st.st_mode);
    const bool descriptor = strncmp(a->json, "/dev/fd/", 8) == 0;
    const int rc = stream || descriptor ? write_stream(a->json, r, &err) : write_file(a->json, r, &err);
    if (rc == MR_OK) return EXIT_DONE;
    return exit_status(rc, &err);
}

static int report(const watch_command_args *a, watch_result *r)
{
    count_samples(a, r);
    watch_judge(r);
    watch_report_text(r, stderr);
    return a->json ? write_json(a, r) : EXIT_DONE;
}

/* ---- running ---- */

static int check(const watch_command_args *a)
{
    mr_error err = MR_ERROR_INIT;
    const char *data = a->shared.data;
    if (a->json && strcmp(a->json, "-") == 0) {
        say("--json: expected a file; standard output is the program's (/dev/fd/3 names a descriptor)");
        return EXIT_MISUSED;
    }
    if (data && !strstr(data, "://") && access(data, F_OK) != 0) {
        mr_error_sys(&err, errno, "--data: there is nothing to measure with");
        mr_error_at(&err, data, MR_NOWHERE, MR_NOWHERE);
        return exit_status(err.code, &err);
    }
    return a->json ? setup_output("json", a->json) : EXIT_DONE;
}

static int run(const void *args)
{
    const watch_command_args *a = args;
    foreign_figures figures;
    tool_session s = {.io_reported = true, .compute = &a->shared.compute};
    const foreign_settings settings = {.command = a->command.word,
                                       .interval_s = a->interval,
                                       .seconds = a->seconds,
                                       .folder = a->shared.data};
    int status = check(a);
    if (status) return status;
    status = foreign_run(&settings, &figures);
    if (status == EXIT_DONE) {
        watch_result r = {.f = &figures, .command = a->command.word};
        int own = EXIT_DONE;
        if (a->shared.data) own = bad_watch_close(&s.bad, measure(a, &s, &r.loader));
        const int reported = report(a, &r);
        if (own == EXIT_DONE) own = reported;
        status = figures.status;
        if (status == EXIT_DONE) status = own;
        if (figures.ended_by_us && figures.status == EXIT_SIGNAL + 15) status = own;
    }
    session_close(&s);
    foreign_free(&figures);
    return status;
}

static const opt options[] = {
#define MRI_OPTIONS(...) OPT(watch_command_args, __VA_ARGS__),
#include "settings/commands/watch.rows"
};
static const opt_group groups[] = {
    OPT_OWN_GROUP("Watching", options),
    GROUP(RUN, watch_command_args, shared.run),
    GROUP(LOADER, watch_command_args, shared.loader),
    GROUP(DATA, watch_command_args, shared.data_opts),
};

const command command_watch = {
    .name = "watch",
    .summary = "run a training program and report the causes of its waits",
    .text =
        "Runs COMMAND as a shell does, with its streams, exit status and signals (127: no such program). "
        "Samples its processes and threads meanwhile, and reports on standard error their use of cores, "
        "storage and GPUs, and their waits.\nWith --data millrace's loader is measured on the same files "
        "when the program has ended, and the gap stands in one line.\nFrom outside nobody knows how many "
        "samples a program took: --samples gives it, else files that it opened are counted, else bytes are "
        "divided by the mean size, and the report says which.",
    .examples = "  millrace watch -- python train.py\n"
                "  millrace watch --data photos --augment rrc224 --batch 64 -- python train.py --epochs 1\n"
                "  millrace watch --seconds 60 --json report.json -- python train.py\n",
    .groups = groups,
    .group_count = OPT_COUNT(groups),
    .args_bytes = sizeof(watch_command_args),
    .rest = "COMMAND [ARGUMENT...]",
    .rest_at = offsetof(watch_command_args, command),
    .run = run,
};
