/* tests/run/test_logger.c: a logger fed with reports of a program's own loop: lines of the CSV file, files
 * that nothing was reported to, a run that is resumed, a file that cannot grow, other decimal points. The
 * command's tests (cli_watch) have whole runs. */
#include <dirent.h>
#include <locale.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "millrace/logger.h"
#include "mrt.h"

static const char header[] =
    "event,epoch,updates,steps,samples,samples_per_s,loss,accuracy,lr,val_loss,val_accuracy,"
    "stall_fraction,step_ms,seconds\n";

static mr_logger *open_logger(const mr_logger_config *cfg)
{
    mr_error err = MR_ERROR_INIT;
    mr_logger *l;
    MRT_OK(mr_logger_open(&l, cfg, &err), &err);
    return l;
}

static mr_logger_config config(const char *csv)
{
    mr_logger_config cfg;
    mr_logger_defaults(&cfg);
    cfg.csv = csv;
    return cfg;
}

static mr_step_report step_report(uint64_t updates)
{
    return (mr_step_report){.struct_size = sizeof(mr_step_report),
                            .due = true,
                            .updates = updates,
                            .steps = 2,
                            .samples = 16,
                            .loss = 0.5,
                            .accuracy = NAN,
                            .lr = 0.1f,
                            .samples_per_s = 1.25};
}

static void check_text(const char *path, const char *expected)
{
    size_t bytes;
    char *text = mrt_read_file(path, &bytes);
    MRT_EQ(bytes, strlen(expected));
    MRT_TRUE(memcmp(text, expected, bytes) == 0);
    free(text);
}

static void check_lines(const char *path)
{
    const mr_logger_config cfg = config(path);
    mr_logger *l = open_logger(&cfg);
    mr_step_report step = step_report(2);
    const mr_eval_report eval = {
        .struct_size = sizeof eval, .updates = 2, .samples = 8, .loss = 1, .accuracy = 0.25, .seconds = 3};
    const mr_report epoch = {.struct_size = sizeof epoch,
                             .steps = 4,
                             .samples = 32,
                             .samples_per_s = 8,
                             .loss = 0.5,
                             .accuracy = 0.75,
                             .lr = 0.01f,
                             .seconds = 4};
    char expected[1024];
    MRT_EQ(mr_logger_step(l, &step), MR_OK);
    MRT_EQ(mr_logger_eval(l, &eval), MR_OK);
    step.due = false; /* for pages */
    MRT_EQ(mr_logger_step(l, &step), MR_OK);
    MRT_EQ(mr_logger_epoch(l, &epoch), MR_OK);
    MRT_EQ(mr_logger_close(l, NULL), MR_OK);
    snprintf(expected, sizeof expected, "%s%s", header,
             "step,0,2,2,16,1.25,0.5,,0.1,,,,,\n"
             "eval,0,2,,8,,,,,1,0.25,,,3\n"
             "epoch,0,4,4,32,8,0.5,0.75,0.01,,,0,0,4\n");
    check_text(path, expected);
}

static void reports_are_lines(void **state)
{
    (void)state;
    check_lines(mrt_path("lines.csv"));
}

static void an_older_report_has_zeros_a_sizeless_one_is_refused(void **state)
{
    (void)state;
    const char *path = mrt_path("old.csv");
    const mr_logger_config cfg = config(path);
    mr_logger *l = open_logger(&cfg);
    mr_step_report step = step_report(2);
    char expected[1024];
    step.struct_size = offsetof(mr_step_report, samples_per_s);
    MRT_EQ(mr_logger_step(l, &step), MR_OK);
    step.struct_size = 0;
    MRT_EQ(mr_logger_step(l, &step), MR_EINVAL);
    MRT_EQ(mr_logger_close(l, NULL), MR_OK);
    snprintf(expected, sizeof expected, "%s%s", header, "step,0,2,2,16,0,0.5,,0.1,,,,,\n");
    check_text(path, expected);
}

static void a_resumed_run_continues_its_file(void **state)
{
    (void)state;
    const char *path = mrt_path("resumed.csv");
    mr_logger_config cfg = config(path);
    mr_error err = MR_ERROR_INIT;
    mr_logger *l;
    char text[1024];
    const mr_step_report step = step_report(4);
    snprintf(text, sizeof text, "%s%s", header, "step,0,2,2,16,1.25,0.5,,0.1,,,,,\nstep,0,4,2,1");
    mrt_write_file(path, text, strlen(text));
    MRT_EQ(mr_logger_open(&l, &cfg, &err), MR_EEXIST);
    MRT_TRUE(l == NULL);
    cfg.resume = true;
    l = open_logger(&cfg);
    MRT_EQ(mr_logger_step(l, &step), MR_OK);
    MRT_EQ(mr_logger_close(l, NULL), MR_OK);
    snprintf(text, sizeof text, "%s%s", header,
             "step,0,2,2,16,1.25,0.5,,0.1,,,,,\nstep,0,4,2,16,1.25,0.5,,0.1,,,,,\n");
    check_text(path, text);
}

static void outputs_without_reports_are_removed(void **state)
{
    (void)state;
    mr_logger_config cfg = config(mrt_path("empty.csv"));
    cfg.tensorboard = mrt_path("runs/events");
    MRT_EQ(mr_logger_close(open_logger(&cfg), NULL), MR_OK);
    MRT_TRUE(access(cfg.csv, F_OK) != 0);
    MRT_TRUE(access(cfg.tensorboard, F_OK) != 0);

    mr_error err = MR_ERROR_INIT; /* nor is anything left where another output cannot be opened */
    mr_logger *l;
    mrt_write_file(mrt_path("file"), "x", 1);
    cfg.tensorboard = mrt_path("file");
    MRT_EQ(mr_logger_open(&l, &cfg, &err), MR_EEXIST);
    MRT_HAS(err.file, "file");
    MRT_TRUE(access(cfg.csv, F_OK) != 0);
    cfg.tensorboard = NULL;
    cfg.metrics = "0"; /* without a loader */
    MRT_EQ(mr_logger_open(&l, &cfg, &err), MR_EINVAL);
    MRT_HAS(err.text, "loader");
    MRT_TRUE(access(cfg.csv, F_OK) != 0);
}

static void count_failure(void *context, const char *path, const mr_error *what)
{
    MRT_HAS(path, "full.csv");
    MRT_EQ(what->code, MR_EIO);
    ++*(int *)context;
}

static void a_file_that_cannot_grow_is_reported_once(void **state)
{
    (void)state;
    mr_logger_config cfg = config(mrt_path("full.csv"));
    mr_error err = MR_ERROR_INIT;
    int failures = 0;
    struct rlimit before, small;
    cfg.on_failure = count_failure;
    cfg.context = &failures;
    mr_logger *l = open_logger(&cfg);
    mr_step_report step = step_report(2);
    MRT_EQ(mr_logger_step(l, &step), MR_OK);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    small = before;
    small.rlim_cur = sizeof header - 1 + 40; /* of the second line a part */
    setrlimit(RLIMIT_FSIZE, &small);
    MRT_EQ(mr_logger_step(l, &step), MR_OK);
    setrlimit(RLIMIT_FSIZE, &before);
    MRT_EQ(mr_logger_step(l, &step), MR_OK);
    MRT_EQ(failures, 1);
    MRT_EQ(mr_logger_close(l, &err), MR_EIO);
    MRT_HAS(err.file, "full.csv");
    char expected[1024];
    snprintf(expected, sizeof expected, "%s%s", header, "step,0,2,2,16,1.25,0.5,,0.1,,,,,\n");
    check_text(cfg.csv, expected);
}

static void numbers_have_points_in_every_locale(void **state)
{
    (void)state;
    static const char *const commas[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "nl_NL.UTF-8"};
    const char *found = NULL;
    for (size_t i = 0; i < sizeof commas / sizeof *commas && !found; i++)
        found = setlocale(LC_ALL, commas[i]);
    if (!found) skip(); /* no such locale is installed */
    check_lines(mrt_path("points.csv"));
    setlocale(LC_ALL, "C");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reports_are_lines),
        cmocka_unit_test(an_older_report_has_zeros_a_sizeless_one_is_refused),
        cmocka_unit_test(a_resumed_run_continues_its_file),
        cmocka_unit_test(outputs_without_reports_are_removed),
        cmocka_unit_test(a_file_that_cannot_grow_is_reported_once),
        cmocka_unit_test(numbers_have_points_in_every_locale),
    };
    return mrt_run(tests);
}
