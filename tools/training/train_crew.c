/* tools/training/train_crew.c: see train_crew.h. */
#include "tools/training/train_crew.h"

#include <stdlib.h>

#include "millrace/train.h"
#include "tools/cli/exit.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/output.h"

bool crew_is_needed(uint32_t sync)
{
    return (sync & 255) == MR_SYNC_SERVERS || (sync & 255) == MR_SYNC_SERVERS_ASYNC;
}

static int serve(mr_crew *crew, tool_world *w)
{
    mr_error err = MR_ERROR_INIT;
    const int rc = mr_serve(crew, &interrupt_flag, &err);
    mr_crew_close(crew);
    mr_world_close(w->world);
    w->world = NULL;
    return exit_status(rc, &err);
}

int crew_agree(const tool_world *w, uint32_t sync)
{
    bool mine = crew_is_needed(sync), *all = w->world ? calloc(w->at.size, sizeof *all) : NULL;
    if (!w->world) return EXIT_DONE;
    if (!all) return exit_no_memory("--sync of the ranks");
    int status = world_gather(w, &mine, sizeof mine, all);
    for (uint32_t r = 1; status == EXIT_DONE && r < w->at.size; r++) {
        if (all[r] == all[0]) continue;
        say("--sync: rank %u has servers of parameters and rank %u has not: give all ranks the same --sync",
            all[r] ? r : 0, all[r] ? 0 : r);
        status = EXIT_MISUSED;
    }
    free(all);
    if (status == EXIT_MISUSED) (void)mr_world_barrier(w->world, WORLD_HOST_CALLS, NULL); /* until all know */
    return status;
}

int crew_join(mr_crew **out, tool_world *w, const rank_args *a, uint32_t servers, bool *served)
{
    mr_error err = MR_ERROR_INIT;
    *out = NULL;
    *served = false;
    if (!w->world) {
        say("--sync ps: a server and its workers are processes of their own: start at least two");
        return EXIT_MISUSED;
    }
    int status = exit_status(mr_crew_open(out, w->world, servers, &err), &err);
    if (status) return status;
    *served = mr_crew_serves(*out);
    if (*served) {
        say_as("server", mr_crew_index(*out));
        return serve(*out, w);
    }
    mr_world_close(w->world);
    w->world = mr_crew_take_together(*out);
    w->at.rank = mr_crew_index(*out);
    w->at.size = mr_crew_workers(*out);
    status = world_enter(w, a);
    say_as("worker", w->at.rank);
    return status;
}
