/* base/process.c: threads of the library, and the limits of this process: affinity, cgroup, physical memory.
 */
#include "base/process.h"

#include <fenv.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "base/ranges.h"
#include "base/util.h"

/* The arguments of a new thread, which frees them. */
typedef struct thread_start {
    void *(*main)(void *);
    void *arg;
    char name[16]; /* the kernel keeps no more */
} thread_start;

static void *thread_main(void *arg)
{
    const thread_start start = *(thread_start *)arg;
    free(arg);
    fesetenv(FE_DFL_ENV); /* a program that rounds otherwise, or flushes to zero, gets the same bits */
    pthread_setname_np(pthread_self(), start.name);
    mri_range_name_thread(start.name);
    return start.main(start.arg);
}

/* The signals that a new thread blocks: all that are sent to the process are for the program's own threads.
 * Signals for a fault of the thread itself stay open: blocked, they would end the process without a word from
 * whoever handles them, a sanitizer or a reporter of crashes. SIGPROF is how profilers see the thread. The
 * caller's blocked signals stay blocked. */
static void signals_of_others(sigset_t *set, const sigset_t *callers)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF};
    sigfillset(set);
    for (size_t k = 0; k < MRI_ARRAY_COUNT(own); k++)
        if (sigismember(callers, own[k]) == 0) sigdelset(set, own[k]);
}

#define STACK_BYTES ((size_t)1 << 20)

/* A program may have small stacks (ulimit -s), which its threads get unless they say otherwise: too small for
 * what libraries below put there. False: the system's are large enough. */
static bool state_stack(pthread_attr_t *out)
{
    size_t bytes;
    if (pthread_attr_init(out) != 0) return false;
    if (pthread_attr_getstacksize(out, &bytes) == 0 && bytes < STACK_BYTES &&
        pthread_attr_setstacksize(out, STACK_BYTES) == 0)
        return true;
    pthread_attr_destroy(out);
    return false;
}

int mri_thread_start(pthread_t *out, const char *name, void *(*main)(void *), void *arg)
{
    thread_start *start = malloc(sizeof *start);
    if (!start) return MR_ENOMEM;
    *start = (thread_start){.main = main, .arg = arg};
    snprintf(start->name, sizeof start->name, "%s", name);
    sigset_t others, before;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    signals_of_others(&others, &before);
    pthread_attr_t attributes;
    const bool stated = state_stack(&attributes);
    pthread_sigmask(SIG_SETMASK, &others, NULL); /* inherited by the new thread */
    const int rc = pthread_create(out, stated ? &attributes : NULL, thread_main, start);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (stated) pthread_attr_destroy(&attributes);
    if (rc) free(start);
    return rc ? MR_ENOMEM : MR_OK;
}

enum { MEMBERSHIP_ROOM = 16384 };

static const char *membership(char text[MEMBERSHIP_ROOM])
{
    FILE *f = fopen("/proc/self/cgroup", "re");
    const size_t bytes = f ? fread(text, 1, MEMBERSHIP_ROOM - 1, f) : 0;
    if (f) fclose(f);
    text[bytes] = '\0';
    return bytes ? text : "0::/\n";
}

static mri_cgroup_limits cgroup_limits(void)
{
    char text[MEMBERSHIP_ROOM];
    return mri_cgroup_read("/sys/fs/cgroup", membership(text));
}

uint64_t mri_throttled_ns(void)
{
    char text[MEMBERSHIP_ROOM];
    return mri_cgroup_throttled_ns("/sys/fs/cgroup", membership(text));
}

static uint32_t cores_seen(void)
{
    cpu_set_t set;
    uint32_t cores = 1;
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        cores = (uint32_t)CPU_COUNT(&set);
    } else {
        const long online = sysconf(_SC_NPROCESSORS_ONLN);
        if (online > 0) cores = (uint32_t)online;
    }
    return cores;
}

static _Atomic uint32_t cores_most; /* 0: all cores */

void mr_use_cores(uint32_t most) { cores_most = most; }

uint32_t mr_cores(void) { return mri_core_count(); }

uint32_t mri_core_count(void)
{
    const uint32_t cores = cores_seen(), most = cores_most;
    const mri_cgroup_limits group = cgroup_limits();
    const uint32_t least = group.cores < cores ? (uint32_t)group.cores : cores;
    if (most && most < least) return most;
    return least > 0 ? least : 1;
}

double mri_core_share(void)
{
    const double cores = cores_seen(), share = cgroup_limits().share;
    return share < cores ? share : cores;
}

bool mri_has_quota(void) { return cgroup_limits().share < cores_seen(); }

uint64_t mri_memory_limit_bytes(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    uint64_t limit = pages > 0 && page_bytes > 0 ? (uint64_t)pages * (uint64_t)page_bytes : (uint64_t)1 << 30;
    return mri_min_u64(limit, cgroup_limits().memory_bytes);
}

uint64_t mri_peak_rss_bytes(void)
{
    FILE *f = fopen("/proc/self/status", "re");
    if (!f) return 0;
    char line[256];
    unsigned long long kib = 0;
    while (fgets(line, sizeof line, f))
        if (sscanf(line, "VmHWM: %llu kB", &kib) == 1) break;
    fclose(f);
    return (uint64_t)kib * 1024;
}
