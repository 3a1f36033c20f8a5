/* tools/foreign/foreign.c: see foreign.h. One loop waits for signals, opens and the next look.
 *
 * The used time and bytes are the kernel's sum over all awaited processes (getrusage, /proc/self/io), which
 * includes processes too short-lived to be seen, plus the processes that still run at the end. If a program
 * does not wait for its children, that sum lacks them: the observed figures then count. */
#include "tools/foreign/foreign.h"

#include <ctype.h>
#include <dirent.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "tools/cli/clock.h"
#include "tools/cli/exit.h"
#include "tools/foreign/child.h"
#include "tools/foreign/proc_file.h"

enum { COST = 50, GRACE_S = 10 }; /* looking takes at most 1/COST of a core */

typedef struct watcher {
    const foreign_settings *settings;
    foreign_figures *out;
    child child;
    tree *tree;
    gpu_watch *gpu;
    opens_watch *opens;
    machine_counters machine;
    uint64_t started_ns, next_ns, ended_ns;
    uint64_t marked_ns;
    tree_used before; /* used before the mark */
    int asked;        /* signals sent because time is over */
} watcher;

static double seconds_of(const struct timeval *t) { return (double)t->tv_sec + 1e-6 * (double)t->tv_usec; }

/* What our threads read themselves is in the sum of the process; the rest is of the children. */
static bool read_by_children(uint64_t *calls, uint64_t *storage)
{
    uint64_t all[2], own[2] = {0, 0};
    if (!proc_read_io("/proc/self/io", &all[0], &all[1])) return false;
    DIR *folder = opendir("/proc/self/task");
    for (struct dirent *e; folder && (e = readdir(folder)) != NULL;) {
        char path[300];
        uint64_t one[2];
        snprintf(path, sizeof path, "/proc/self/task/%s/io", e->d_name);
        if (!isdigit((unsigned char)e->d_name[0]) || !proc_read_io(path, &one[0], &one[1])) continue;
        own[0] += one[0];
        own[1] += one[1];
    }
    if (!folder) return false;
    closedir(folder);
    *calls = all[0] > own[0] ? all[0] - own[0] : 0;
    *storage = all[1] > own[1] ? all[1] - own[1] : 0;
    return true;
}

/* All that was used so far, by the dead and the living. */
static void used_so_far(const watcher *w, tree_used *out)
{
    struct rusage use;
    uint64_t calls = 0, storage = 0;
    tree_living(w->tree, out);
    if (getrusage(RUSAGE_CHILDREN, &use) == 0) {
        out->user_s += seconds_of(&use.ru_utime);
        out->system_s += seconds_of(&use.ru_stime);
        out->faults += (uint64_t)use.ru_majflt;
    }
    w->out->has_io = read_by_children(&calls, &storage);
    if (!w->out->has_io) return;
    out->read_calls += calls;
    out->storage += storage;
}

/* From here on it counts. */
static void mark(watcher *w)
{
    tree_look(w->tree);
    tree_mark(w->tree);
    used_so_far(w, &w->before);
    machine_read("", &w->machine);
    w->marked_ns = clock_ns();
}

/* Not the clock on the wall: on a full machine that would mean few looks. */
static uint64_t own_ns(void)
{
    struct timespec t = {0};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return 1000000000 * (uint64_t)t.tv_sec + (uint64_t)t.tv_nsec;
}

static void look(watcher *w)
{
    const uint64_t begun = own_ns();
    uint32_t count;
    tree_look(w->tree);
    const int32_t *pids = tree_pids(w->tree, &count);
    gpu_look(w->gpu, pids, count);
    const uint64_t took = own_ns() - begun;
    uint64_t pause = (uint64_t)(1e9 * w->settings->interval_s);
    if (pause < COST * took) pause = COST * took;
    w->next_ns = clock_ns() + pause;
}

/* All of them: a shell in front would go and leave the program running. */
static void signal_all(const watcher *w, int number)
{
    uint32_t count;
    tree_look(w->tree);
    const int32_t *pids = tree_pids(w->tree, &count);
    for (uint32_t i = 0; i < count; i++) {
        kill(pids[i], number);
        kill(pids[i], SIGCONT);
    }
}

static void end_in_time(watcher *w)
{
    const double seconds = seconds_since(w->started_ns), limit = w->settings->seconds;
    if (isnan(limit) || w->child.ended) return;
    if (w->asked == 0 && seconds >= limit) {
        w->asked = 1;
        w->out->ended_by_us = true;
        signal_all(w, SIGTERM);
    } else if (w->asked == 1 && seconds >= limit + GRACE_S) {
        w->asked = 2;
        signal_all(w, SIGKILL);
    }
}

static int until_next(const watcher *w)
{
    const uint64_t now = clock_ns();
    double ms = now < w->next_ns ? 1e-6 * (double)(w->next_ns - now) + 1 : 0;
    if (!isnan(w->settings->seconds) && w->asked < 2) {
        const double left =
            1e3 * (w->settings->seconds + w->asked * GRACE_S - seconds_since(w->started_ns)) + 1;
        if (left < ms) ms = left > 0 ? left : 0;
    }
    return ms < 1e6 ? (int)ms : 1000000;
}

static void watch_to_end(watcher *w)
{
    while (!w->child.ended) {
        struct pollfd wait[2] = {{.fd = w->child.signals, .events = POLLIN},
                                 {.fd = opens_fd(w->opens), .events = POLLIN}};
        poll(wait, 2, until_next(w));
        const bool began = w->out->opens.count > 0;
        opens_take(w->opens);
        child_take_signals(&w->child);
        if (!began && w->out->opens.count > 0) mark(w); /* its preparation is over */
        end_in_time(w);
        if (!w->child.ended && clock_ns() >= w->next_ns) look(w);
    }
    w->ended_ns = clock_ns();
    opens_take(w->opens);
    tree_look(w->tree); /* who is left */
}

static double above(double after, double before) { return after > before ? after - before : 0; }
static uint64_t more(uint64_t after, uint64_t before) { return after > before ? after - before : 0; }

static void add_up(watcher *w)
{
    foreign_figures *f = w->out;
    struct rusage use;
    tree_used now;
    f->status = w->child.status;
    f->seconds = 1e-9 * (double)(w->ended_ns - w->started_ns);
    f->start_s = w->marked_ns > w->started_ns ? 1e-9 * (double)(w->marked_ns - w->started_ns) : 0;
    used_so_far(w, &now);
    tree_take(w->tree, &f->tree);
    f->left = f->tree.alive;
    f->user_s = above(now.user_s, w->before.user_s);
    f->system_s = above(now.system_s, w->before.system_s);
    f->user_s += above(f->tree.cpu_s, f->user_s + f->system_s); /* nobody waited for them */
    f->major_faults = more(now.faults, w->before.faults);
    f->read_calls_bytes = more(now.read_calls, w->before.read_calls);
    f->read_storage_bytes = more(now.storage, w->before.storage);
    if (getrusage(RUSAGE_SELF, &use) == 0) f->own_s = seconds_of(&use.ru_utime) + seconds_of(&use.ru_stime);
    f->cores = core_count();
}

static int run_and_watch(watcher *w)
{
    machine_counters after;
    mark(w);
    w->started_ns = w->marked_ns = clock_ns();
    const int status = child_start(&w->child, w->settings->command, NULL);
    if (status) return status;
    w->gpu = gpu_open(&w->out->gpu); /* behind fork(): nothing of it gets into the program */
    look(w);
    watch_to_end(w);
    machine_read("", &after);
    add_up(w);
    machine_since(&w->machine, &after, w->out->seconds - w->out->start_s, &w->out->machine);
    gpu_close(w->gpu);
    child_leave(&w->child);
    return EXIT_DONE;
}

int foreign_run(const foreign_settings *settings, foreign_figures *out)
{
    watcher w = {.settings = settings, .out = out};
    memset(out, 0, sizeof *out);
    w.tree = tree_create("", getpid());
    if (!w.tree) return exit_no_memory("watching a program");
    if (settings->folder) w.opens = opens_open(settings->folder, &out->opens);
    const int status = run_and_watch(&w);
    opens_close(w.opens);
    tree_destroy(w.tree);
    return status;
}

void foreign_free(foreign_figures *f)
{
    free(f->tree.process);
    f->tree.process = NULL;
    f->tree.count = 0;
}
