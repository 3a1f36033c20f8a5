/* tools/session/elastic.c: see elastic.h. */
#include "tools/session/elastic.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/clock.h"
#include "tools/cli/exit.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/output.h"

enum {
    OPEN_S = 5,   /* for a world whose ranks have just received each other's addresses */
    OTHERS_S = 2, /* at the start: for those whom the launcher starts, too */
    NEWS_S = 2
};

static bool read_range(elastic *e, const char *text)
{
    char *end;
    e->min = (uint32_t)strtoul(text, &end, 10);
    if (end == text || *end != ':' || text[0] < '0' || text[0] > '9') return false;
    const char *second = end + 1;
    e->max = (uint32_t)strtoul(second, &end, 10);
    return end != second && !*end && second[0] >= '0' && second[0] <= '9' && e->min >= 1 &&
           e->min <= e->max && e->max <= MR_MUSTER_MOST;
}

int elastic_open(elastic *e, const elastic_args *a, const rank_args *rank)
{
    const char *text = a->range;
    mr_error err = MR_ERROR_INIT;
    mr_muster_config cfg;
    *e = (elastic){.rank = rank};
    if (!text) return EXIT_DONE;
    if (!read_range(e, text)) {
        say("--elastic: expected MIN:MAX, processes of the run, from 1 to %d; found '%s'", MR_MUSTER_MOST,
            text);
        return EXIT_MISUSED;
    }
    mr_muster_defaults(&cfg);
    cfg.meet = rank->meet;
    cfg.min = e->min;
    cfg.max = e->max;
    cfg.meet_s = rank->meet_s;
    cfg.settle_s = OTHERS_S;
    cfg.leave_out = a->leave_out;
    if (mr_snapshot_create(&e->snapshot) != MR_OK) return exit_no_memory("the state of the run");
    return setting_status(mr_muster_open(&e->muster, &cfg, &err), &err);
}

void elastic_close(elastic *e)
{
    mr_muster_close(e->muster);
    mr_snapshot_destroy(e->snapshot);
    free(e->net);
    *e = (elastic){.min = 0};
}

/* The progress of the kept state; 0: no state. */
static uint64_t progress(const elastic *e)
{
    mr_checkpoint_info info;
    return mr_snapshot_info(e->snapshot, &info) ? info.updates + 1 : 0;
}

static void tell_turned_away(const elastic *e)
{
    char text[512];
    while (mr_muster_turned_away(e->muster, text, sizeof text)) say("%s", text);
}

/* Of processes that are started by hand each is somebody's; of a launcher's the first speaks for all. */
static void tell_waiting(const elastic *e, const tool_world *w)
{
    const double quiet_s = 5 * OTHERS_S;
    if (e->worlds || (w->at.launcher != MR_LAUNCHER_NONE && w->at.rank)) return;
    const uint32_t all = e->expected && e->expected < e->max ? e->expected : e->max;
    say("looking for the other processes: a new run begins with %u, or with at least %u when no other has "
        "come for %g s; a run that is there takes this one in while it has fewer than %u",
        all, e->min, quiet_s, e->max);
}

/* What holds for all worlds, once. */
static void tell_guard(const elastic *e, const mr_world_config *cfg)
{
    if (!e->worlds && cfg->rank == 0 && mr_muster_guard(e->muster) == MR_GUARD_NONE) world_tell_open();
    tell_turned_away(e);
}

/* A rank may be lost while they connect: again. */
int elastic_join(elastic *e, tool_world *w)
{
    mr_error err = MR_ERROR_INIT;
    mr_world_config cfg;
    *w = (tool_world){.first = true};
    int status = setting_status(mr_launch_find(&w->at, &err), &err);
    if (status) return status;
    if (!e->worlds) e->expected = w->at.launcher == MR_LAUNCHER_NONE ? 0 : w->at.size;
    tell_waiting(e, w);
    for (int rc = MR_EPEER; rc == MR_EPEER;) {
        world_settings(&cfg, e->rank);
        rc = mr_muster_form(e->muster, e->expected, progress(e), &interrupt_flag, &cfg, &err);
        if (rc) return exit_status(rc, &err);
        cfg.meet_s = OPEN_S;
        rc = mr_world_open(&w->world, &cfg, &err);
        if (rc && rc != MR_EPEER) return exit_status(rc, &err);
    }
    tell_guard(e, &cfg);
    w->at.rank = cfg.rank;
    w->at.size = cfg.size;
    e->worlds++;
    return world_enter(w, e->rank);
}

void elastic_look(const elastic *e)
{
    if (!e->muster) return;
    tell_turned_away(e);
    if (!mr_muster_is_wanted(e->muster)) return;
    (void)__sync_bool_compare_and_swap((int *)&interrupt_flag, 0, INTERRUPT_REGROUP);
}

bool elastic_takes_stop(elastic *e, const tool_world *w, int *status)
{
    bool signalled = interrupt_flag > 0, *all;
    *status = EXIT_DONE;
    if (!e->muster) return false;
    all = calloc(w->at.size, sizeof *all);
    *status = all ? world_gather(w, &signalled, sizeof signalled, all) : exit_no_memory("how the ranks end");
    for (uint32_t r = 0; *status == EXIT_DONE && r < w->at.size; r++) signalled = signalled || all[r];
    free(all);
    e->wanted = *status == EXIT_DONE && !signalled;
    return !signalled;
}

/* A rank's own error may come before the news that it has left. */
static bool was_lost(const mr_world *w, uint32_t *rank)
{
    const uint64_t begun_ns = clock_ns();
    while (!mr_world_was_lost(w, rank)) {
        if (interrupt_flag > 0 || seconds_since(begun_ns) >= NEWS_S) return false;
        poll(NULL, 0, 10);
    }
    return true;
}

bool elastic_goes_on(elastic *e, tool_world *w, int status)
{
    uint32_t lost = w->at.rank;
    if (!e->muster || !w->world) return false;
    const bool is_cut = status != EXIT_DONE && status != EXIT_BAD_SAMPLES && interrupt_flag <= 0 &&
                        exit_code == MR_EPEER && (e->lost_folder || was_lost(w->world, &lost));
    if (!is_cut && !e->wanted) return false;
    if (is_cut && !e->lost_folder) mr_muster_lost(e->muster, mr_world_host(w->world, lost));
    if (is_cut && e->lost_folder) snprintf(e->why, sizeof e->why, "the others had lost this process");
    else if (is_cut)
        snprintf(e->why, sizeof e->why, "without rank %u (%s)", lost, mr_world_host(w->world, lost));
    else snprintf(e->why, sizeof e->why, "for one that has come");
    e->expected = is_cut ? (w->at.size > 1 ? w->at.size - 1 : 1) : w->at.size + 1;
    e->wanted = false;
    e->left_ns = clock_ns();
    if (interrupt_flag == INTERRUPT_REGROUP)
        (void)__sync_bool_compare_and_swap((int *)&interrupt_flag, INTERRUPT_REGROUP, 0);
    mr_world_close(w->world);
    w->world = NULL;
    return true;
}

int elastic_leave(tool_world *w, int status)
{
    if (status != EXIT_DONE && status != EXIT_BAD_SAMPLES) return world_leave(w, status);
    mr_world_close(w->world);
    w->world = NULL;
    return status;
}
