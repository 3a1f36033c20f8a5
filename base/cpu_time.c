/* base/cpu_time.c: see cpu_time.h. The time a thread ran is the clock CLOCK_THREAD_CPUTIME_ID; the time it
 * was runnable and waited for a core is the second number of /proc/thread-self/schedstat (Linux,
 * Documentation/scheduler/sched-stats). */
#include "base/cpu_time.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"

#define UNSEEN_NS 20000u /* a difference that is not worth a second call */

uint64_t mri_thread_ran_ns(void)
{
    struct timespec t;
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) != 0) return 0;
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t ran_so_far(void)
{
#ifdef MRI_NO_MEASURING
    return 0;
#endif
    return mri_thread_ran_ns();
}

static uint64_t delayed_so_far(const mri_cpu_time *t)
{
#ifdef MRI_NO_MEASURING
    return t->delayed_ns;
#endif
    char text[96];
    const ssize_t n = t->fd >= 0 ? pread(t->fd, text, sizeof text - 1, 0) : 0;
    if (n <= 0) return t->delayed_ns;
    text[n] = '\0';
    char *end;
    strtoull(text, &end, 10);
    return strtoull(end, NULL, 10);
}

void mri_cpu_time_open(mri_cpu_time *t)
{
    t->fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    t->delayed_ns = 0;
    mri_cpu_time_skip(t);
}

void mri_cpu_time_close(mri_cpu_time *t)
{
    if (t->fd >= 0) close(t->fd);
    t->fd = -1;
}

void mri_cpu_time_skip(mri_cpu_time *t)
{
    t->delayed_ns = delayed_so_far(t);
    t->ran_ns = ran_so_far();
}

void mri_cpu_time_look(mri_cpu_time *t, uint64_t wall_ns, uint64_t *ran_ns, uint64_t *delayed_ns)
{
    const uint64_t ran = ran_so_far();
    *ran_ns = mri_min_u64(ran - t->ran_ns, wall_ns);
    *delayed_ns = 0;
    t->ran_ns = ran;
    if (wall_ns - *ran_ns < UNSEEN_NS) return;
    const uint64_t delayed = delayed_so_far(t);
    *delayed_ns = mri_min_u64(delayed - t->delayed_ns, wall_ns - *ran_ns);
    t->delayed_ns += *delayed_ns; /* the others came while it looked: the next look's */
}
