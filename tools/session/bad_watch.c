/* tools/session/bad_watch.c: see bad_watch.h. */
#include "tools/session/bad_watch.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/cli/exit.h"
#include "tools/cli/output.h"

static void on_bad(void *context, const mr_error *what, uint64_t substitute)
{
    enum { NAMED = 10 };
    bad_watch *w = context;
    char text[2048];
    mr_error placed = *what;
    mr_verify_place(w->src, &placed);
    w->count++;
    if (w->list) mr_bad_list_add(w->list, &placed);
    if (w->stops || w->count > NAMED) return; /* a sample that stops the run is reported as its error */
    mr_error_format(&placed, text, sizeof text);
    if (substitute != MR_NOWHERE) say("bad sample, %" PRIu64 " takes its place: %s", substitute, text);
    else say("bad sample: %s", text);
    if (w->count == NAMED) say("further bad samples are counted, not named");
}

int bad_watch_open(bad_watch *w, const mr_source *src, const run_args *run, mr_loader_config *cfg)
{
    memset(w, 0, sizeof *w);
    w->src = src;
    w->stops = cfg->bad == MR_BAD_STOP;
    cfg->on_bad = on_bad;
    cfg->bad_context = w;
    if (!run->bad_list) return EXIT_DONE;
    const int status = setup_output("bad-list", run->bad_list);
    if (status) return status;
    mr_error err = MR_ERROR_INIT;
    const int rc = mr_bad_list_open(&w->list, run->bad_list, src, false, false, &err);
    mr_bad_list_begin(w->list);
    return exit_status(rc, &err);
}

int bad_watch_close(bad_watch *w, int status)
{
    mr_error err = MR_ERROR_INIT;
    const int rc = mr_bad_list_close(w->list, &err);
    w->list = NULL;
    if (rc != MR_OK) {
        say_error(&err);
        return EXIT_FAILED;
    }
    return status == EXIT_DONE && w->count ? EXIT_BAD_SAMPLES : status;
}
