/* tools/facts/card.c: see card.h. */
#include "tools/facts/card.h"

#include "tools/cli/exit.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/output.h"
#include "tools/cli/progress.h"

int card_check(const char *path, const char *set, bool force)
{
    mr_error err = MR_ERROR_INIT;
    return path ? setting_status(mr_card_check(path, set, force, &err), &err) : EXIT_DONE;
}

static void on_progress(void *context, uint64_t done, uint64_t count)
{
    progress_show(context, done, count, NULL);
}

int card_write(const card_args *a)
{
    mr_error err = MR_ERROR_INIT;
    mr_card_config cfg;
    progress_bar bar;
    mr_card_defaults(&cfg);
    cfg.opened = a->opened;
    cfg.part = a->part;
    cfg.threads = a->workers;
    cfg.force = a->force;
    cfg.on_progress = on_progress;
    cfg.context = &bar;
    cfg.stop = &interrupt_flag;
    progress_start(&bar, "card", "files", a->quiet);
    const int rc = mr_card_write(a->path, a->set, &cfg, &err);
    progress_end(&bar);
    if (!rc && !a->quiet) say("%s: add what only you know: %s", a->path, mr_card_missing(a->path));
    return exit_status(rc, &err);
}
