/* tools/watch/watch.c: see watch.h. */
#include "tools/watch/watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/exit.h"
#include "tools/cli/output.h"
#include "tools/watch/csv_log.h"
#include "tools/watch/event_file.h"
#include "tools/watch/metrics_page.h"
#include "tools/watch/metrics_server.h"

struct watch {
    watch_run run;
    uint64_t updates; /* done, at the end of the newest epoch */
    event_file events;
    csv_log csv;
    metrics_page page;
    bool has_page;
    metrics_server *server;
};

static const opt options[] = {
#define MRI_OPTIONS(...) OPT(watch_args, __VA_ARGS__),
#include "settings/reports.rows"
};
const opt_set watch_options = {"Watching", options, OPT_COUNT(options), true};

static int open_page(watch *w, const char *where)
{
    mr_error err = MR_ERROR_INIT;
    const int why = metrics_page_init(&w->page, &w->run);
    if (why) return exit_status(mr_error_sys(&err, why, "--metrics %s: cannot make a lock", where), &err);
    w->has_page = true;
    const int rc = metrics_server_open(&w->server, where, metrics_page_write, &w->page, &err);
    if (rc) return setting_status(rc, &err);
    say("metrics at http://%s/metrics", metrics_server_address(w->server));
    return EXIT_DONE;
}

int watch_open(watch **out, const watch_args *a, const watch_run *run)
{
    mr_error err = MR_ERROR_INIT;
    int status = EXIT_DONE;
    *out = NULL;
    if (!a->tensorboard && !a->csv && !a->metrics) return EXIT_DONE;
    watch *w = calloc(1, sizeof *w);
    if (!w) return exit_no_memory("watching the run");
    w->run = *run;
    w->updates = run->updates;
    if (a->metrics) status = open_page(w, a->metrics); /* first: it leaves nothing behind */
    if (status == EXIT_DONE && a->csv)
        status = exit_status(csv_log_open(&w->csv, a->csv, w->run.sources, run->resume, &err), &err);
    if (status == EXIT_DONE && a->tensorboard)
        status = exit_status(event_file_open(&w->events, a->tensorboard, run->updates, &err), &err);
    if (status) watch_close(w, status);
    else *out = w;
    return status;
}

void watch_progress(watch *w, uint64_t epoch, uint64_t step, uint64_t steps_per_epoch)
{
    if (w && w->server) metrics_page_progress(&w->page, epoch, step, steps_per_epoch);
}

void watch_step(watch *w, const mr_step_report *report)
{
    if (!w) return;
    if (w->server) metrics_page_step(&w->page, report);
    if (!report->due) return;
    csv_log_step(&w->csv, report);
    event_file_step(&w->events, report);
}

void watch_eval(watch *w, const mr_eval_report *report)
{
    if (!w) return;
    csv_log_eval(&w->csv, report);
    event_file_eval(&w->events, report);
}

void watch_epoch(watch *w, const mr_report *report)
{
    if (!w) return;
    w->updates += report->steps;
    if (w->server) metrics_page_epoch(&w->page, report);
    csv_log_epoch(&w->csv, report, w->updates);
    event_file_epoch(&w->events, report, w->updates);
}

int watch_close(watch *w, int status)
{
    if (!w) return status;
    metrics_server_close(w->server);
    if (w->has_page) metrics_page_fini(&w->page);
    const int csv = csv_log_close(&w->csv), events = event_file_close(&w->events);
    free(w);
    return status == EXIT_DONE && (csv || events) ? EXIT_FAILED : status;
}
