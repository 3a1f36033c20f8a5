/* tools/session/world_cores.c: see world_cores.h. A launcher is the parent of its processes: its own cores
 * are the cores that it could have given. */
#include "tools/session/world_cores.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli/exit.h"
#include "tools/cli/output.h"

/* None: the system does not tell. */
static cpu_set_t cores_of(pid_t process)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(process, sizeof set, &set) != 0) CPU_ZERO(&set);
    return set;
}

static void tell_binding(const tool_world *w, const cpu_set_t *used, uint32_t here)
{
    static bool reported;
    const cpu_set_t launcher = cores_of(getppid());
    const int bound = CPU_COUNT(used), of = CPU_COUNT(&launcher);
    const bool binds = w->at.launcher == MR_LAUNCHER_OPENMPI || w->at.launcher == MR_LAUNCHER_PMI;
    if (!w->first || reported || !binds || bound == 0 || 2 * bound > of) return;
    say("%s has bound the %u processes on %s to %d of %d cores, which decode and compute for all of them; "
        "mpirun --bind-to none (MPICH: -bind-to none) gives them all",
        mr_launcher_name(w->at.launcher), here, mr_world_host(w->world, w->at.rank), bound, of);
    reported = true;
}

static void share(const tool_world *w, const cpu_set_t *all)
{
    const cpu_set_t *mine = &all[w->at.rank];
    const char *host = mr_world_host(w->world, w->at.rank);
    const uint32_t cores = mr_cores();
    uint32_t here = 0, same = 0;
    cpu_set_t used;
    CPU_ZERO(&used);
    for (uint32_t r = 0; r < w->at.size; r++) {
        if (strcmp(mr_world_host(w->world, r), host) != 0) continue;
        here++;
        same += CPU_EQUAL(&all[r], mine) != 0;
        CPU_OR(&used, &used, &all[r]);
    }
    if (same > 1) mr_use_cores(cores > same ? cores / same : 1);
    tell_binding(w, &used, here);
}

int world_share_cores(const tool_world *w)
{
    if (!w->world) return EXIT_DONE;
    const cpu_set_t mine = cores_of(0);
    cpu_set_t *all = calloc(w->at.size, sizeof *all);
    if (!all) return exit_no_memory("the cores of the ranks");
    const int status = world_gather(w, &mine, sizeof mine, all);
    if (status == EXIT_DONE) share(w, all);
    free(all);
    return status;
}
