/* tools/commands/watch_judge.c: judges the input of a program that is not ours by its figures. From outside a
 * program's use of a core is unknown; so the verdict names its evidence, or its lack.
 *
 * The processes have a main one, found from the command downwards: a process that did next to nothing itself
 * and has one child that did the most (a shell, a launcher) is skipped. The children of the main process are
 * workers. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tools/commands/watch_report.h"

#define IDLE_GPU   0.20 /* a GPU that is idle for longer waits for something */
#define DISK_WAIT  0.25 /* part of the looks at which a thread waited for storage */
#define CORES_FULL 0.85 /* of the cores */
#define WORKERS_DO 0.60 /* of the CPU time */
#define IDLE_MAIN  0.50 /* of a core */
#define USED_FEW   0.75 /* of the cores, by a program that had not all that it wanted */
#define SOME_MAIN  0.05 /* of the CPU time */
#define ONE_THREAD 0.85 /* of a core */
#define STARVED    0.50 /* of the time, in which threads waited for a core: longer than they ran */

static const tree_process *find(const tree_figures *t, int32_t pid)
{
    for (uint32_t i = 0; i < t->count; i++)
        if (t->process[i].pid == pid) return &t->process[i];
    return NULL;
}

static bool below(const tree_figures *t, const tree_process *p, int32_t ancestor)
{
    for (uint32_t steps = 0; p && steps < 64; steps++) {
        if (p->parent == ancestor) return true;
        p = find(t, p->parent);
    }
    return false;
}

/* Of it and its descendants. */
static double cpu_below(const tree_figures *t, const tree_process *p)
{
    double sum = p->cpu_s;
    for (uint32_t i = 0; i < t->count; i++)
        if (below(t, &t->process[i], p->pid)) sum += t->process[i].cpu_s;
    return sum;
}

static const tree_process *heaviest_child(const tree_figures *t, int32_t parent)
{
    const tree_process *best = NULL;
    double most = 0;
    for (uint32_t i = 0; i < t->count; i++) {
        if (t->process[i].parent != parent) continue;
        const double sum = cpu_below(t, &t->process[i]);
        if (best && sum <= most) continue;
        best = &t->process[i];
        most = sum;
    }
    return best;
}

/* Many short-lived ones are no tree to search: the cost would be that of all pairs. */
static const tree_process *find_main(const tree_figures *t)
{
    const tree_process *p = t->count ? &t->process[0] : NULL;
    if (t->count > 2000) return p;
    for (int depth = 0; p && depth < 8; depth++) {
        const tree_process *child = heaviest_child(t, p->pid);
        const double all = cpu_below(t, p);
        if (!child || p->cpu_s > 0.05 * all || cpu_below(t, child) < 0.9 * all) break;
        p = child;
    }
    return p;
}

static void find_roles(watch_result *r)
{
    const tree_figures *t = &r->f->tree;
    const tree_process *main_one = find_main(t);
    const double seconds = foreign_counted(r->f) > 0 ? foreign_counted(r->f) : 1;
    if (!main_one) return;
    r->main_pid = main_one->pid;
    r->main_cores = main_one->cpu_s / seconds;
    for (uint32_t i = 0; t->count <= 2000 && i < t->count; i++) {
        const tree_process *p = &t->process[i];
        if (!below(t, p, main_one->pid)) continue;
        r->worker_cores += p->cpu_s / seconds;
        r->workers += p->cpu_s > 0.02 * seconds;
    }
}

/* Of the GPUs that were used the one that was idle most; negative: none was used. */
static double idle_gpu(const gpu_figures *g)
{
    double most = -1;
    for (uint32_t i = 0; i < g->count; i++)
        if (g->gpu[i].used && 1 - g->gpu[i].busy > most) most = 1 - g->gpu[i].busy;
    return most;
}

/* Part of the time in which a thread waited for storage, by the kernel's account where it keeps one. */
static double disk_part(const foreign_figures *f)
{
    const double accounted = foreign_counted(f) > 0 ? f->tree.disk_wait_s / foreign_counted(f) : 0;
    const double part = accounted > f->tree.any_waiting ? accounted : f->tree.any_waiting;
    return part < 1 ? part : 1;
}

static void __attribute__((format(printf, 3, 4)))
verdict(watch_result *r, bool bound, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(r->verdict, sizeof r->verdict, format, args);
    va_end(args);
    r->input_bound = bound;
}

/* Threads that could have run waited for a core, added up: longer than they ran, and most of the time. */
static bool is_starved(const foreign_figures *f)
{
    return f->tree.core_wait_s > f->user_s + f->system_s &&
           f->tree.core_wait_s >= STARVED * foreign_counted(f);
}

static void judge_starved(watch_result *r)
{
    const double seconds = foreign_counted(r->f), ran = r->f->user_s + r->f->system_s;
    verdict(
        r, false,
        "short of cores: its threads ran %.0f %% of the time and waited for a core %.0f %% of it, added up; "
        "other programs, or a quota, had the cores: watch it on a quiet machine",
        100 * ran / seconds, 100 * r->f->tree.core_wait_s / seconds);
}

static void judge_gpu(watch_result *r, double idle, double disk, double full)
{
    if (idle < IDLE_GPU)
        verdict(r, false, "not input-bound: the GPU was busy %.0f %% of the time", 100 * (1 - idle));
    else if (disk >= DISK_WAIT)
        verdict(r, true,
                "looks input-bound by storage: GPU idle %.0f %% of the time, and threads waited for the disk "
                "%.0f %% of it",
                100 * idle, 100 * disk);
    else if (full >= CORES_FULL)
        verdict(r, true,
                "looks input-bound by the processor: GPU idle %.0f %% of the time, with %.0f %% of the cores "
                "used or waited for",
                100 * idle, 100 * full);
    else if (is_starved(r->f)) judge_starved(r);
    else
        verdict(
            r, false,
            "GPU idle %.0f %% of the time, with %.0f %% of the cores used or waited for and little waiting "
            "for the disk: too few workers, one thread that everything waits for, or the program itself",
            100 * idle, 100 * full);
}

/* Without a GPU the main process is where the training would be. One that does nothing at all starts others
 * that train: nobody can tell those from workers. */
static bool workers_feed_main(const watch_result *r)
{
    const double all = r->main_cores + r->worker_cores;
    return r->workers && r->worker_cores >= WORKERS_DO * all && r->main_cores < IDLE_MAIN &&
           r->main_cores >= SOME_MAIN * all;
}

static void judge_processor(watch_result *r, double disk, double full)
{
    if (disk >= DISK_WAIT)
        verdict(r, true, "looks input-bound by storage: threads waited for the disk %.0f %% of the time",
                100 * disk);
    else if (workers_feed_main(r))
        verdict(
            r, true,
            "looks input-bound by %s: worker processes used %.2f cores, the main one %.2f, with %.0f %% of "
            "the cores used or waited for",
            full >= CORES_FULL ? "the processor" : "too few workers", r->worker_cores, r->main_cores,
            100 * full);
    else if (full >= CORES_FULL)
        verdict(r, false,
                "the cores are the limit (%.0f %% used or waited for); which part of that is input cannot be "
                "seen from outside%s",
                100 * full,
                r->loader.measured ? ": compare with the loader's rate" : " (--data DATA measures a loader)");
    else if (is_starved(r->f)) judge_starved(r);
    else if (r->main_cores >= ONE_THREAD)
        verdict(
            r, false,
            "the main process used %.2f cores of %u: a single thread may be the limit; what of it is input "
            "cannot be seen from outside",
            r->main_cores, r->f->cores);
    else
        verdict(r, false,
                "no sign of an input limit: %.0f %% of the cores used or waited for, threads waited for the "
                "disk %.0f %% of the time",
                100 * full, 100 * disk);
}

void watch_judge(watch_result *r)
{
    const foreign_figures *f = r->f;
    const double seconds = foreign_counted(f), wanted = f->user_s + f->system_s + f->tree.core_wait_s;
    double full = seconds > 0 && f->cores ? wanted / seconds / f->cores : 0;
    const double idle = idle_gpu(&f->gpu), disk = disk_part(f);
    if (full > 1) full = 1;
    r->crowded =
        is_starved(f) || (full >= CORES_FULL && f->user_s + f->system_s < USED_FEW * f->cores * seconds);
    find_roles(r);
    if (f->tree.looks < 4) verdict(r, false, "it ran too short a time to name the cause of its waits");
    else if (idle >= 0) judge_gpu(r, idle, disk, full);
    else judge_processor(r, disk, full);
}
