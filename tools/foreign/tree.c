/* tools/foreign/tree.c: see tree.h. */
#include "tools/foreign/tree.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/foreign/proc_file.h"

enum { PROCESSES_MOST = 65536, THREADS_MOST = 262144 };

/* A process of the machine at one look. */
typedef struct seen {
    proc_stat stat;
    bool ours;
} seen;

/* A thread of the tree at the newest look. */
typedef struct thread {
    int32_t tid;
    uint64_t start_ticks, waited_ns, disk_ticks;
} thread;

struct tree {
    char root[256];
    int32_t self;
    double tick_s;
    uint64_t page_bytes;
    seen *all; /* sorted by pid */
    uint32_t all_count, all_room;
    int32_t *pids; /* of the tree */
    uint32_t pid_count, pid_room;
    thread *before, *now; /* sorted by tid */
    uint32_t before_count, now_count, before_room, now_room;
    uint32_t kept_room;
    uint64_t waited_ns, disk_ticks;
    double waiting, any_waiting; /* sums over looks */
    tree_figures f;
};

/* ---- tables that grow ---- */

/* Room for one more in *table of `each` bytes; false: no memory, or there are enough. */
static bool grow(void **table, size_t each, uint32_t count, uint32_t *room, uint32_t most)
{
    if (count < *room) return true;
    if (count >= most) return false;
    const uint32_t more = *room ? 2 * *room : 256;
    void *grown = realloc(*table, more * each);
    if (!grown) return false;
    *table = grown;
    *room = more;
    return true;
}

static int by_pid(const void *a, const void *b)
{
    const int32_t x = ((const seen *)a)->stat.pid, y = ((const seen *)b)->stat.pid;
    return (x > y) - (x < y);
}

static int by_tid(const void *a, const void *b)
{
    const int32_t x = ((const thread *)a)->tid, y = ((const thread *)b)->tid;
    return (x > y) - (x < y);
}

tree *tree_create(const char *root, int32_t self)
{
    tree *t = calloc(1, sizeof *t);
    if (!t) return NULL;
    snprintf(t->root, sizeof t->root, "%s/proc", root);
    t->self = self;
    t->tick_s = 1.0 / (double)sysconf(_SC_CLK_TCK);
    t->page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    return t;
}

void tree_destroy(tree *t)
{
    if (!t) return;
    free(t->all);
    free(t->pids);
    free(t->before);
    free(t->now);
    free(t->f.process);
    free(t);
}

/* ---- who belongs to it ---- */

static void list_all(tree *t)
{
    DIR *folder = opendir(t->root);
    t->all_count = 0;
    for (struct dirent *e; folder && (e = readdir(folder)) != NULL;) {
        char path[600];
        if (!isdigit((unsigned char)e->d_name[0])) continue;
        if (!grow((void **)&t->all, sizeof *t->all, t->all_count, &t->all_room, UINT32_MAX / 4)) break;
        seen *s = &t->all[t->all_count];
        snprintf(path, sizeof path, "%s/%s/stat", t->root, e->d_name);
        s->ours = false;
        if (proc_read_stat(path, &s->stat)) t->all_count++;
    }
    if (folder) closedir(folder);
    if (t->all_count) qsort(t->all, t->all_count, sizeof *t->all, by_pid);
}

static seen *find_process(const tree *t, int32_t pid)
{
    const seen key = {.stat.pid = pid};
    return t->all_count ? bsearch(&key, t->all, t->all_count, sizeof *t->all, by_pid) : NULL;
}

/* Up to an ancestor that is known to be ours, or to the end; /proc is not read in one moment, so there may
 * be circles. */
static bool descends(const tree *t, const seen *s)
{
    for (uint32_t steps = 0; s && steps <= t->all_count; steps++) {
        if (s->ours || s->stat.parent == t->self) return true;
        s = find_process(t, s->stat.parent);
    }
    return false;
}

static void find_ours(tree *t)
{
    t->pid_count = 0;
    for (uint32_t i = 0; i < t->all_count; i++) {
        seen *s = &t->all[i];
        if (s->stat.pid == t->self || !descends(t, s)) continue;
        s->ours = true;
        if (grow((void **)&t->pids, sizeof *t->pids, t->pid_count, &t->pid_room, UINT32_MAX / 4))
            t->pids[t->pid_count++] = s->stat.pid;
    }
}

/* ---- processes ---- */

static tree_process *kept_process(tree *t, const proc_stat *s)
{
    for (uint32_t i = t->f.count; i-- > 0;)
        if (t->f.process[i].pid == s->pid && t->f.process[i].start_ticks == s->start_ticks)
            return &t->f.process[i];
    if (!grow((void **)&t->f.process, sizeof *t->f.process, t->f.count, &t->kept_room, PROCESSES_MOST)) {
        t->f.more = true;
        return NULL;
    }
    tree_process *p = &t->f.process[t->f.count++];
    *p = (tree_process){.pid = s->pid, .parent = s->parent, .start_ticks = s->start_ticks};
    return p;
}

static void look_at_process(tree *t, const proc_stat *s)
{
    tree_process *p = kept_process(t, s);
    t->f.rss_bytes += s->rss_pages * t->page_bytes;
    t->f.threads += s->threads;
    if (!p) return;
    memcpy(p->name, s->name, sizeof p->name); /* exec changes it */
    p->alive = s->state != 'Z' && s->state != 'X';
    t->f.alive += p->alive;
    p->cpu_s = (double)(s->user_ticks + s->system_ticks) * t->tick_s - p->before_s;
    if (s->threads > p->threads) p->threads = s->threads;
}

/* ---- threads ---- */

/* Not everything that waits so waits for storage; where the kernel says what for, some are known not to. */
static bool waits_for_storage(const tree *t, int32_t pid, const char *tid)
{
    static const char *const others[] = {"vfork", "rwsem", "mutex",  "exit",
                                         "sleep", "rcu",   "freeze", "wait4"};
    char path[700], what[128];
    snprintf(path, sizeof path, "%s/%d/task/%s/wchan", t->root, pid, tid);
    if (proc_text(path, what, sizeof what) < 0) return true;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strstr(what, others[i])) return false;
    return true;
}

static void look_at_thread(tree *t, int32_t pid, const char *tid, uint32_t *waiting)
{
    char path[700];
    proc_stat s;
    uint64_t ran, waited = 0;
    snprintf(path, sizeof path, "%s/%d/task/%s/stat", t->root, pid, tid);
    if (!proc_read_stat(path, &s)) return;
    *waiting += s.state == 'D' && waits_for_storage(t, pid, tid);
    snprintf(path, sizeof path, "%s/%d/task/%s/schedstat", t->root, pid, tid);
    if (proc_read_schedstat(path, &ran, &waited)) t->f.has_core_wait = true;
    if (!grow((void **)&t->now, sizeof *t->now, t->now_count, &t->now_room, THREADS_MOST)) return;
    const thread key = {.tid = s.pid};
    const thread *old =
        t->before_count ? bsearch(&key, t->before, t->before_count, sizeof *t->before, by_tid) : NULL;
    if (old && old->start_ticks != s.start_ticks) old = NULL; /* the number was given to another one */
    t->waited_ns += waited - (old && old->waited_ns < waited ? old->waited_ns : old ? waited : 0);
    t->disk_ticks += s.disk_ticks - (old && old->disk_ticks < s.disk_ticks ? old->disk_ticks
                                     : old                                 ? s.disk_ticks
                                                                           : 0);
    t->now[t->now_count++] = (thread){s.pid, s.start_ticks, waited, s.disk_ticks};
}

static void look_at_threads(tree *t, int32_t pid, uint32_t *waiting)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%d/task", t->root, pid);
    DIR *folder = opendir(path);
    for (struct dirent *e; folder && (e = readdir(folder)) != NULL;)
        if (isdigit((unsigned char)e->d_name[0])) look_at_thread(t, pid, e->d_name, waiting);
    if (folder) closedir(folder);
}

static void swap_threads(tree *t)
{
    thread *table = t->before;
    const uint32_t room = t->before_room;
    if (t->now_count) qsort(t->now, t->now_count, sizeof *t->now, by_tid);
    t->before = t->now;
    t->before_room = t->now_room;
    t->before_count = t->now_count;
    t->now = table;
    t->now_room = room;
    t->now_count = 0;
}

/* ---- the whole ---- */

void tree_look(tree *t)
{
    uint32_t waiting = 0;
    const uint64_t rss = t->f.rss_bytes;
    const uint32_t threads = t->f.threads;
    t->f.rss_bytes = 0;
    t->f.threads = t->f.alive = 0;
    list_all(t);
    find_ours(t);
    for (uint32_t i = 0; i < t->f.count; i++) t->f.process[i].alive = false;
    for (uint32_t i = 0; i < t->pid_count; i++) {
        const seen *s = find_process(t, t->pids[i]);
        if (s) look_at_process(t, &s->stat);
        look_at_threads(t, t->pids[i], &waiting);
    }
    swap_threads(t);
    if (t->f.rss_bytes < rss) t->f.rss_bytes = rss;
    if (t->f.threads < threads) t->f.threads = threads;
    if (t->f.processes < t->pid_count) t->f.processes = t->pid_count;
    if (t->pid_count == 0) return;
    t->f.looks++;
    t->waiting += waiting;
    t->any_waiting += waiting > 0;
}

const int32_t *tree_pids(const tree *t, uint32_t *count)
{
    *count = t->pid_count;
    return t->pids;
}

void tree_mark(tree *t)
{
    for (uint32_t i = 0; i < t->f.count; i++) {
        t->f.process[i].before_s += t->f.process[i].cpu_s;
        t->f.process[i].cpu_s = 0;
    }
    t->waited_ns = t->disk_ticks = 0;
    t->waiting = t->any_waiting = 0;
    t->f.looks = 0;
}

void tree_living(const tree *t, tree_used *out)
{
    *out = (tree_used){0};
    for (uint32_t i = 0; i < t->pid_count; i++) {
        char path[600];
        uint64_t calls, disk;
        const seen *s = find_process(t, t->pids[i]);
        snprintf(path, sizeof path, "%s/%d/io", t->root, t->pids[i]);
        if (proc_read_io(path, &calls, &disk)) {
            out->read_calls += calls;
            out->storage += disk;
        }
        if (!s) continue;
        out->faults += s->stat.major_faults + s->stat.child_major_faults;
        out->user_s += t->tick_s * (double)(s->stat.user_ticks + s->stat.child_user_ticks);
        out->system_s += t->tick_s * (double)(s->stat.system_ticks + s->stat.child_system_ticks);
    }
}

void tree_take(tree *t, tree_figures *out)
{
    *out = t->f;
    for (uint32_t i = 0; i < out->count; i++) out->cpu_s += out->process[i].cpu_s;
    out->core_wait_s = 1e-9 * (double)t->waited_ns;
    out->disk_wait_s = t->tick_s * (double)t->disk_ticks;
    out->waiting = out->looks ? t->waiting / (double)out->looks : 0;
    out->any_waiting = out->looks ? t->any_waiting / (double)out->looks : 0;
    t->f.process = NULL;
    t->f.count = t->kept_room = 0;
}
