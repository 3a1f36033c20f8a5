/* tools/watch/watch.c: see watch.h. */
#include "tools/watch/watch.h"

#include "tools/cli/exit.h"
#include "tools/cli/output.h"

static const opt options[] = {
#define MRI_OPTIONS(...) OPT(watch_args, __VA_ARGS__),
#include "settings/reports.rows"
};
const opt_set watch_options = {"Watching", options, OPT_COUNT(options), true};

static void on_failure(void *context, const char *path, const mr_error *what)
{
    (void)context;
    say_error(what);
    say("nothing more is written to %s; the run goes on", path);
}

int watch_open(mr_logger **out, const watch_args *a, const mr_logger_config *run)
{
    mr_error err = MR_ERROR_INIT;
    mr_logger_config cfg = *run;
    *out = NULL;
    if (!a->tensorboard && !a->csv && !a->metrics) return EXIT_DONE;
    cfg.csv = a->csv;
    cfg.tensorboard = a->tensorboard;
    cfg.metrics = a->metrics;
    cfg.on_failure = on_failure;
    const int rc = mr_logger_open(out, &cfg, &err);
    if (rc)
        return err.file[0] ? exit_status(rc, &err) : setting_status(rc, &err); /* a file's, the address's */
    if (mr_logger_address(*out)) say("metrics at http://%s/metrics", mr_logger_address(*out));
    return EXIT_DONE;
}

int watch_close(mr_logger *w, int status)
{
    return mr_logger_close(w, NULL) != MR_OK && status == EXIT_DONE ? EXIT_FAILED : status;
}
