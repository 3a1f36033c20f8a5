/* tools/commands/cmd_sweep.c: `millrace sweep FILE`: trains with every combination of some options, each run
 * a process of its own, and makes a table and a page of what came of it. The same command goes on where it
 * stopped: a run whose log is whole is not done again. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "millrace/formats.h"
#include "millrace/sweep.h"
#include "tools/cli/exit.h"
#include "tools/cli/folders.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/json.h"
#include "tools/cli/output.h"
#include "tools/commands/commands.h"
#include "tools/foreign/child.h"
#include "tools/session/groups.h"
#include "tools/session/setup.h"

typedef struct sweep_args {
    const char *file, *out, *plot;
    bool dry_run;
    output_args output;
} sweep_args;

typedef struct sweep_run {
    const sweep_args *args;
    mr_sweep *sweep;
    const mr_sweep_info *info; /* of it */
    uint32_t x;                /* option */
    char program[PATH_MAX];
    uint32_t skipped;
} sweep_run;

static bool path_of(const sweep_run *s, const char *name, char *path, size_t bytes)
{
    return snprintf(path, bytes, "%s/%s", s->args->out, name) < (int)bytes;
}

static bool log_of(const sweep_run *s, uint32_t at, char *path, size_t bytes)
{
    char name[MR_SWEEP_NAME_BYTES];
    mr_sweep_run_name(s->sweep, at, name);
    return snprintf(path, bytes, "%s/runs/%s.jsonl", s->args->out, name) < (int)bytes;
}

/* Runs that are asked for exist. */
static mr_sweep_result result_of(const sweep_run *s, uint32_t at)
{
    mr_sweep_result r;
    mr_sweep_result_of(s->sweep, at, &r, NULL);
    return r;
}

static void read_result(const sweep_run *s, uint32_t at)
{
    char path[PATH_MAX];
    if (log_of(s, at, path, sizeof path)) mr_sweep_read_result(s->sweep, at, path, NULL);
}

/* ------------------------------------------------------------------------------ reports */

/* The options that differ between runs. */
static void put_choice(const sweep_run *s, uint32_t at)
{
    const char *name;
    uint32_t values;
    printf("%*u/%u", 4, at + 1, s->info->runs);
    for (uint32_t k = 0; (name = mr_sweep_option(s->sweep, k, &values)); k++)
        if (values > 1) printf("  %s %s", name, shown_text(mr_sweep_value(s->sweep, at, k)));
    fputs(": ", stdout);
}

static void put_result(const sweep_run *s, uint32_t at, bool skipped)
{
    const mr_sweep_result r = result_of(s, at);
    put_choice(s, at);
    if (r.state == MR_SWEEP_FAILED) printf("failed, exit status %d\n", r.status);
    else if (r.state == MR_SWEEP_OPEN) puts("not run to its end");
    else {
        if (isfinite(r.accuracy)) printf("acc %.4f, ", r.accuracy);
        if (isfinite(r.val_accuracy)) printf("val acc %.4f, ", r.val_accuracy);
        printf("%.1f s, %.1f samples/s", r.seconds, r.samples_per_s);
        if (isfinite(r.speed_up)) printf(", %.2f times as fast", r.speed_up);
        if (isfinite(r.reached_s)) printf(", %.2f s of training to the accuracy", r.reached_s);
        else if (mr_sweep_has_goal(s->sweep)) printf(", the accuracy not reached");
        puts(skipped ? " (done before)" : "");
    }
    fflush(stdout);
}

static void put_result_json(const sweep_run *s, uint32_t at, bool skipped)
{
    static const char *const states[] = {"open", "done", "failed"};
    const mr_sweep_result r = result_of(s, at);
    char name[MR_SWEEP_NAME_BYTES];
    mr_sweep_run_name(s->sweep, at, name);
    json_line j = json_begin(stdout, "sweep_run");
    json_text(&j, "run", name);
    json_u64(&j, "number", at + 1);
    json_u64(&j, "of", s->info->runs);
    json_object(&j, "options");
    for (uint32_t k = 0; k < s->info->options; k++)
        json_text(&j, mr_sweep_option(s->sweep, k, NULL), mr_sweep_value(s->sweep, at, k));
    json_close_object(&j);
    json_text(&j, "state", states[r.state]);
    json_bool(&j, "done_before", skipped);
    if (r.state == MR_SWEEP_FAILED) json_i64(&j, "status", r.status);
    json_real(&j, "acc", r.accuracy);
    json_real(&j, "val_acc", r.val_accuracy);
    json_real(&j, "loss", r.loss);
    json_real(&j, "val_loss", r.val_loss);
    json_real(&j, "time_s", r.seconds);
    json_real(&j, "samples_per_s", r.samples_per_s);
    json_real(&j, "speed_up", r.speed_up);
    if (mr_sweep_has_goal(s->sweep)) {
        json_real(&j, "reached_s", r.reached_s);
        json_real(&j, "reached_steps", r.reached_steps);
    }
    json_end(&j);
}

static void tell(const sweep_run *s, uint32_t at, bool skipped)
{
    if (s->args->output.json) put_result_json(s, at, skipped);
    else if (!skipped || !s->args->output.quiet) put_result(s, at, skipped);
}

/* ------------------------------------------------------------------------------ one run */

/* Run the program with its output going to out; returns its exit status. */
static int run_program(const sweep_run *s, uint32_t at, mr_output *out)
{
    child c;
    char **words = mr_sweep_words(s->sweep, at, s->program);
    if (!words) return exit_no_memory("a run");
    const int status = child_start(&c, words, &(child_place){mr_output_fd(out), true});
    free(words);
    if (status) return status;
    if (interrupt_flag) kill(c.pid, SIGINT); /* it came just before signals began to be passed on */
    while (!c.ended) {
        struct pollfd ready = {.fd = c.signals, .events = POLLIN};
        poll(&ready, 1, -1);
        child_take_signals(&c);
    }
    child_leave(&c);
    return c.status;
}

/* A log of a run that failed stays, to be looked at; one that was stopped is not kept. */
static int close_log(mr_output *out, int status)
{
    mr_error err = MR_ERROR_INIT;
    if (status >= EXIT_SIGNAL) {
        mr_output_abandon(out, false);
        return EXIT_DONE;
    }
    return exit_status(mr_output_commit(out, &err), &err);
}

/* EXIT_DONE, whatever the run came to; else why the sweep ends. */
static int run_one(sweep_run *s, uint32_t at)
{
    char path[PATH_MAX];
    mr_error err = MR_ERROR_INIT;
    mr_output *out;
    mr_output_config cfg;
    if (!log_of(s, at, path, sizeof path)) return EXIT_FAILED;
    mr_output_defaults(&cfg);
    cfg.force = true; /* of this run, and not whole */
    const int rc = mr_output_open(&out, path, &cfg, &err);
    if (rc == MR_EEXIST) { /* another sweep is at it */
        say_error(&err);
        return EXIT_DONE;
    }
    if (rc) return exit_status(rc, &err);
    const int status = run_program(s, at, out), closed = close_log(out, status);
    if (closed) return closed;
    mr_sweep_read_result(s->sweep, at, path, NULL);
    const bool stopped = status == EXIT_SIGNAL + SIGINT || status == EXIT_SIGNAL + SIGTERM;
    /* also where it crashed, or somebody killed it: the others go on */
    if (status && status != EXIT_SIGNAL && !stopped) mr_sweep_set_failed(s->sweep, at, status, NULL);
    return stopped ? status : EXIT_DONE;
}

/* ------------------------------------------------------------------------------ all of them */

static int write_once(const sweep_run *s, mr_error *err)
{
    char path[PATH_MAX];
    int rc = path_of(s, "results.csv", path, sizeof path) ? mr_sweep_write_csv(s->sweep, path, err) : MR_OK;
    if (rc == MR_OK && path_of(s, "sweep.html", path, sizeof path))
        rc = mr_sweep_write_page(s->sweep, s->x, path, err);
    return rc;
}

/* Another sweep may be writing them. The last word, with what that one has done, is waited for. */
static int write_results(sweep_run *s, bool last)
{
    enum { TRIES = 500 };
    mr_error err = MR_ERROR_INIT;
    for (uint32_t i = 0; last && i < s->info->runs; i++)
        if (result_of(s, i).state == MR_SWEEP_OPEN) read_result(s, i);
    int rc = write_once(s, &err);
    for (int k = 0; last && rc == MR_EEXIST && k < TRIES; k++) {
        usleep(10000);
        rc = write_once(s, &err);
    }
    return rc == MR_EEXIST && !last ? EXIT_DONE : exit_status(rc, &err);
}

static int run_all(sweep_run *s)
{
    int status = EXIT_DONE;
    for (uint32_t i = 0; i < s->info->runs; i++) read_result(s, i);
    for (uint32_t i = 0; i < s->info->runs && status == EXIT_DONE && !interrupt_flag; i++) {
        const bool skipped = result_of(s, i).state == MR_SWEEP_DONE;
        s->skipped += skipped;
        if (!skipped) status = run_one(s, i);
        if (status == EXIT_DONE) tell(s, i, skipped);
        if (status == EXIT_DONE && !skipped) status = write_results(s, false);
    }
    const int written = write_results(s, true);
    if (status == EXIT_DONE && interrupt_flag) status = EXIT_SIGNAL + interrupt_flag;
    return status ? status : written;
}

static int sum_up(const sweep_run *s, int status)
{
    uint32_t count[3] = {0};
    char csv[PATH_MAX], page[PATH_MAX];
    for (uint32_t i = 0; i < s->info->runs; i++) count[result_of(s, i).state]++;
    path_of(s, "results.csv", csv, sizeof csv);
    path_of(s, "sweep.html", page, sizeof page);
    if (s->args->output.json) {
        json_line j = json_begin(stdout, "sweep");
        json_u64(&j, "runs", s->info->runs);
        json_u64(&j, "done", count[MR_SWEEP_DONE]);
        json_u64(&j, "failed", count[MR_SWEEP_FAILED]);
        json_u64(&j, "open", count[MR_SWEEP_OPEN]);
        json_u64(&j, "done_before", s->skipped);
        json_text(&j, "csv", csv);
        json_text(&j, "html", page);
        json_end(&j);
    } else
        printf("%u runs: %u done, %u failed, %u open; %s, %s\n", s->info->runs, count[MR_SWEEP_DONE],
               count[MR_SWEEP_FAILED], count[MR_SWEEP_OPEN], shown_text(csv), shown_text(page));
    if (status >= EXIT_SIGNAL) say("stopped; the same command goes on with the runs that are open");
    if (status) return status;
    return count[MR_SWEEP_DONE] == s->info->runs ? EXIT_DONE : EXIT_FAILED;
}

/* The commands, for a shell, and what has become of them. */
static int list_runs(const sweep_run *s)
{
    for (uint32_t i = 0; i < s->info->runs; i++) {
        read_result(s, i);
        const bool done = result_of(s, i).state == MR_SWEEP_DONE;
        if (s->args->output.json) {
            put_result_json(s, i, done);
            continue;
        }
        char **words = mr_sweep_words(s->sweep, i, "millrace");
        if (!words) return exit_no_memory("a run");
        printf("%-5s", done ? "done" : "open");
        for (char **w = words; *w; w++) {
            const bool plain =
                strspn(*w, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.,:/=+@%") ==
                strlen(*w);
            printf(plain ? " %s" : " '%s'", shown_text(*w));
        }
        putchar('\n');
        free(words);
    }
    return EXIT_DONE;
}

/* ------------------------------------------------------------------------------ its folder */

static bool is_ours(const char *csv)
{
    char first[4] = "";
    FILE *f = fopen(csv, "re");
    const bool is = f && fread(first, 1, sizeof first, f) == sizeof first && memcmp(first, "run,", 4) == 0;
    if (f) fclose(f);
    return is;
}

/* Another sweep may just have begun here, and not be at the end of the first file. */
static bool is_of_a_sweep(const char *name)
{
    static const char *const ours[] = {".", "..", "runs", "results.csv", "sweep.html"};
    for (size_t i = 0; i < OPT_COUNT(ours); i++) {
        const size_t n = strlen(ours[i]);
        if (strncmp(name, ours[i], n) == 0 && (!name[n] || strcmp(name + n, ".part") == 0)) return true;
    }
    return false;
}

/* Empty, new, or of a sweep. */
static int take_folder(sweep_run *s)
{
    const char *folder = s->args->out;
    char path[PATH_MAX];
    mr_error err = MR_ERROR_INIT;
    if (!make_folder_deep(folder, 0777) && errno != EEXIST)
        return exit_status(mr_error_sys(&err, errno, "--out %s: cannot make it", folder), &err);
    DIR *d = opendir(folder);
    if (!d) return exit_status(mr_error_sys(&err, errno, "--out %s: cannot look into it", folder), &err);
    bool is_new = true;
    for (const struct dirent *e; (errno = 0, e = readdir(d));)
        if (!is_of_a_sweep(e->d_name)) is_new = false;
    const int why = errno;
    closedir(d);
    if (why) return exit_status(mr_error_sys(&err, why, "--out %s: cannot look into it", folder), &err);
    if (!path_of(s, "results.csv", path, sizeof path - 64)) {
        say("--out %s: the name is too long", folder);
        return EXIT_MISUSED;
    }
    const bool is_marked = is_ours(path);
    if (!is_new && !is_marked) {
        say("--out %s: it holds something, and no results.csv of a sweep: choose another folder", folder);
        return EXIT_MISUSED;
    }
    if (!is_marked) {
        const int status = write_results(s, false);
        if (status) return status;
    }
    path_of(s, "runs", path, sizeof path);
    if (mkdir(path, 0777) != 0 && errno != EEXIST)
        return exit_status(mr_error_sys(&err, errno, "%s: cannot make it", path), &err);
    return EXIT_DONE;
}

/* The x axis of the charts: --plot, else batch, else the first option with several values. */
static int choose_x(sweep_run *s)
{
    uint32_t values;
    if (s->args->plot) {
        s->x = mr_sweep_option_number(s->sweep, s->args->plot);
        if (s->x != UINT32_MAX) return EXIT_DONE;
        say("--plot %s: %s has no such option", s->args->plot, s->info->path);
        return EXIT_MISUSED;
    }
    s->x = mr_sweep_option_number(s->sweep, "batch");
    if (mr_sweep_option(s->sweep, s->x, &values) && values > 1) return EXIT_DONE;
    for (s->x = 0; s->x + 1 < s->info->options && mr_sweep_option(s->sweep, s->x, &values) && values < 2;)
        s->x++;
    return EXIT_DONE;
}

static void find_program(sweep_run *s)
{
    const ssize_t n = readlink("/proc/self/exe", s->program, sizeof s->program - 1);
    if (n > 0) s->program[n] = '\0';
    if (n <= 0 || access(s->program, X_OK) != 0) strcpy(s->program, "/proc/self/exe");
}

static int sweep(sweep_run *s)
{
    mr_error err = MR_ERROR_INIT;
    int status = exit_status(mr_sweep_open(&s->sweep, s->args->file, &err), &err);
    s->info = mr_sweep_info_of(s->sweep);
    if (status == EXIT_DONE) status = choose_x(s);
    if (status) return status;
    if (s->args->dry_run) return list_runs(s);
    find_program(s);
    status = take_folder(s);
    return status ? status : sum_up(s, run_all(s));
}

static int run(const void *args)
{
    sweep_run *s = calloc(1, sizeof *s);
    if (!s) return exit_no_memory("a sweep");
    s->args = args;
    const int status = sweep(s);
    mr_sweep_close(s->sweep);
    free(s);
    return status;
}

static const opt options[] = {
#define MRI_OPTIONS(...) OPT(sweep_args, __VA_ARGS__),
#include "settings/commands/sweep.rows"
};
static const opt_group groups[] = {
    OPT_OWN_GROUP("Sweep", options),
    GROUP(OUTPUT, sweep_args, output),
};
static const opt_positional positionals[] = {
    {"FILE", offsetof(sweep_args, file), true,
     "options of train with their values: OPTION = VALUE | VALUE ..."},
};

const command command_sweep = {
    .name = "sweep",
    .summary = "train with all combinations of some options, and make a table and charts",
    .text =
        "Trains once with every combination of the values in FILE, each run in its own process, and stores "
        "the output. A run that fails does not end the others. The same command continues after a stop and "
        "repeats failed runs; finished runs are not repeated, even if FILE gets more values.\nFILE has "
        "lines 'OPTION = VALUE | VALUE ...', with the options of train without their dashes; 'data' names "
        "the data set. '-' means \"without this option\", '+' an option without a value, {run} in a value "
        "the run's name. results.csv has a line for each run, sweep.html charts of time, speed-up over the "
        "first 'devices', and accuracy, means over 'seed'.",
    .examples = "  millrace sweep study.txt --out study\n"
                "  millrace sweep study.txt --out study --dry-run\n\n"
                "  # study.txt\n"
                "  data    = cifar\n"
                "  model   = cifar-cnn | cifar-resnet20\n"
                "  batch   = 64 | 128 | 256\n"
                "  devices = cpu:1 | cpu:2\n"
                "  seed    = 0 | 1 | 2\n"
                "  epochs  = 3\n",
    .positionals = positionals,
    .positional_count = OPT_COUNT(positionals),
    .groups = groups,
    .group_count = OPT_COUNT(groups),
    .args_bytes = sizeof(sweep_args),
    .alone = true,
    .run = run,
};
