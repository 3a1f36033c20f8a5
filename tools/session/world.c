/* tools/session/world.c: see world.h. */
#include "tools/session/world.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli/exit.h"
#include "tools/cli/output.h"
#include "tools/session/world_cores.h"

/* Results are the first one's affair, who may be another one in the next world. */
static int choose_voice(bool first)
{
    static int voice = -1; /* stdout as it was; -1: it is still there */
    int fd = voice;
    fflush(stdout);
    if (first && voice < 0) return EXIT_DONE;
    if (!first && voice < 0) voice = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    if (!first) fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (fd < 0 || voice < 0 || dup2(fd, STDOUT_FILENO) < 0) {
        say("cannot %s stdout: %s", first ? "go back to" : "leave", strerror(errno));
        return EXIT_FAILED;
    }
    if (!first) close(fd);
    return EXIT_DONE;
}

/* Who is to be heard of every second must know it. */
static int agree(const tool_world *w, const rank_args *a)
{
    double *all = calloc(w->at.size, sizeof *all);
    if (!all) return exit_no_memory("the settings of the ranks");
    int status = world_gather(w, &a->silence_s, sizeof a->silence_s, all);
    for (uint32_t r = 0; status == EXIT_DONE && r < w->at.size; r++) {
        mr_error err = MR_ERROR_INIT;
        if (all[r] == all[0]) continue;
        mr_error_set(&err, a->silence_s == all[0] ? MR_EPEER : MR_EINVAL,
                     "--silence is %gs for rank 0 and %gs for rank %u: give all the same", all[0], all[r], r);
        if (err.code == MR_EPEER) err.host = MR_EINVAL;
        status = setting_status(err.code, &err);
    }
    free(all);
    return status;
}

void world_settings(mr_world_config *cfg, const rank_args *a)
{
    mr_world_defaults(cfg);
    cfg->meet = a->meet;
    cfg->meet_s = a->meet_s;
    cfg->silence_s = a->silence_s;
    cfg->wire = (mr_wire_choice)a->wire;
}

/* Of the first world: of the next ones it is the same. */
static void tell_wire(const tool_world *w)
{
    static bool reported;
    char text[512];
    if (w->first && !reported && mr_world_wire_note(w->world, text, sizeof text)) say("%s", text);
    reported = true;
}

int world_enter(tool_world *w, const rank_args *a)
{
    w->first = w->at.rank == 0;
    say_as("rank", w->at.rank);
    mr_use_cores(0);
    tell_wire(w);
    int status = choose_voice(w->first);
    if (status == EXIT_DONE && w->world) status = agree(w, a);
    return status == EXIT_DONE ? world_share_cores(w) : status;
}

void world_tell_open(void)
{
    say("no secret: whoever reaches a port of this run on any of its hosts can take part in it, and read and "
        "change its results; give all its processes one by MILLRACE_SECRET_FILE (docs/ranks.md)");
}

/* Says what connections were turned away, and when nothing keeps others out. */
static void world_tell_guard(const tool_world *w)
{
    char text[512];
    if (w->first && mr_world_guard(w->world) == MR_GUARD_NONE) world_tell_open();
    while (mr_world_turned_away(w->world, text, sizeof text)) say("%s", text);
}

/* Else each process of a run would train alone, and think it is all of it. */
static int refuse_to_meet(const rank_args *a)
{
    say("--meet %s: no launcher gave this process a rank; expected mpirun, srun or torchrun, or RANK and "
        "WORLD_SIZE set for each process, such as RANK=0 WORLD_SIZE=2; leave --meet out to use one process",
        a->meet);
    return EXIT_MISUSED;
}

int world_join(tool_world *w, const rank_args *a)
{
    mr_error err = MR_ERROR_INIT;
    mr_world_config cfg;
    *w = (tool_world){.first = true};
    int status = setting_status(mr_launch_find(&w->at, &err), &err);
    if (status == EXIT_DONE && a->meet && w->at.launcher == MR_LAUNCHER_NONE) return refuse_to_meet(a);
    if (status || w->at.size == 1) return status;
    say_as("rank", w->at.rank);
    world_settings(&cfg, a);
    cfg.rank = w->at.rank;
    cfg.size = w->at.size;
    status = exit_status(mr_world_open(&w->world, &cfg, &err), &err);
    if (status == EXIT_DONE) status = world_enter(w, a);
    if (status == EXIT_DONE) world_tell_guard(w);
    return status;
}

int world_gather(const tool_world *w, const void *mine, size_t bytes, void *all)
{
    mr_error err = MR_ERROR_INIT;
    return exit_status(mr_world_gather(w->world, WORLD_HOST_CALLS, mine, bytes, all, &err), &err);
}

int world_send_to_first(const tool_world *w, mr_world_piece mine, const mr_world_piece *all)
{
    mr_error err = MR_ERROR_INIT;
    mr_world_piece *send = calloc(2 * (size_t)w->at.size, sizeof *send), *receive = send + w->at.size;
    if (!send) return exit_no_memory("what goes to rank 0");
    if (w->first) memcpy(receive, all, w->at.size * sizeof *receive);
    else send[0] = mine;
    const int status = exit_status(mr_world_exchange(w->world, WORLD_HOST_CALLS, send, receive, &err), &err);
    free(send);
    return status;
}

/* Where one of them has met bad samples, the run has. */
static int end_together(const tool_world *w, int status)
{
    int *all = calloc(w->at.size, sizeof *all);
    if (!all) return exit_no_memory("how the ranks end");
    const int failed = world_gather(w, &status, sizeof status, all);
    for (uint32_t r = 0; !failed && status == EXIT_DONE && r < w->at.size; r++) status = all[r];
    free(all);
    return failed ? failed : status;
}

int world_leave(tool_world *w, int status)
{
    mr_error why = MR_ERROR_INIT;
    if (!w->world) return status;
    if (status == EXIT_DONE || status == EXIT_BAD_SAMPLES) status = end_together(w, status);
    if (status != EXIT_DONE && status != EXIT_BAD_SAMPLES) {
        if (status > EXIT_SIGNAL)
            mr_error_set(&why, MR_ECANCELED, "stopped by signal %d", status - EXIT_SIGNAL);
        else mr_error_set(&why, MR_ECANCELED, "it has given up, with status %d", status);
        why.host = status;
        mr_world_abort(w->world, &why);
    }
    mr_world_close(w->world);
    w->world = NULL;
    return status;
}

const char *world_own_file(const tool_world *w, const char *path, char *buf, size_t buf_bytes)
{
    if (!path || w->first) return path;
    snprintf(buf, buf_bytes, "%s.rank%u", path, w->at.rank);
    return buf;
}

int world_share(const tool_world *w, int status, void *data, size_t bytes)
{
    mr_error err = MR_ERROR_INIT;
    if (!w->world) return status;
    int rc = mr_world_broadcast(w->world, WORLD_HOST_CALLS, &status, sizeof status, 0, &err);
    if (rc == MR_OK && status == EXIT_DONE && bytes)
        rc = mr_world_broadcast(w->world, WORLD_HOST_CALLS, data, bytes, 0, &err);
    if (rc) return exit_status(rc, &err);
    if (status == EXIT_DONE) return status;
    /* nobody goes before all know: whoever still waits would take the first that goes for the cause */
    (void)mr_world_barrier(w->world, WORLD_HOST_CALLS, NULL);
    if (!w->first) say("rank 0 (host %s) has given up, with status %d", mr_world_host(w->world, 0), status);
    return status;
}

typedef struct row_range {
    uint32_t first, count;
} row_range;

static int exchange_rows(const tool_world *w, char *rows, size_t row_bytes, const row_range *of,
                         mr_error *err)
{
    const uint32_t size = w->at.size, me = w->at.rank;
    mr_world_piece *pieces = calloc(2 * (size_t)size, sizeof *pieces);
    if (!pieces) return mr_error_set(err, MR_ENOMEM, "no memory for an exchange of %u ranks", size);
    for (uint32_t r = 0; r < size; r++) {
        if (r == me) continue;
        pieces[r] = (mr_world_piece){rows + of[me].first * row_bytes, of[me].count * row_bytes};
        pieces[size + r] = (mr_world_piece){rows + of[r].first * row_bytes, of[r].count * row_bytes};
    }
    const int rc = mr_world_exchange(w->world, WORLD_HOST_CALLS, pieces, pieces + size, err);
    free(pieces);
    return rc;
}

int world_share_rows(const tool_world *w, void *rows, size_t row_bytes, uint32_t first, uint32_t count,
                     uint32_t all, mr_error *err)
{
    const row_range mine = {first, count};
    row_range *of = calloc(w->at.size, sizeof *of);
    if (!of) return mr_error_set(err, MR_ENOMEM, "no memory for an exchange of %u ranks", w->at.size);
    int rc = mr_world_gather(w->world, WORLD_HOST_CALLS, &mine, sizeof mine, of, err);
    uint32_t next = 0;
    for (uint32_t r = 0; rc == MR_OK && r < w->at.size; next += of[r++].count)
        if (of[r].first != next || of[r].count > all - next)
            rc = mr_error_set(
                err, MR_EINVAL,
                "rank %u has samples %u to %u of a batch of %u: expected them after the samples of the rank "
                "before, from %u on",
                r, of[r].first, of[r].first + of[r].count, all, next);
    if (rc == MR_OK && next != all)
        rc = mr_error_set(err, MR_EINVAL, "the ranks have %u samples of a batch of %u", next, all);
    if (rc == MR_OK) rc = exchange_rows(w, rows, row_bytes, of, err);
    free(of);
    return rc;
}
