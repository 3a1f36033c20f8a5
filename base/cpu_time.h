/* base/cpu_time.h: the calling thread's scheduling: how long it ran, and how long it was runnable while
 * others had the cores. Private. */
#ifndef MRI_CPU_TIME_H
#define MRI_CPU_TIME_H

#include <stdbool.h>
#include <stdint.h>

/* More than a thread takes to come when it is woken and a core is free. */
#define MRI_WAKE_NS 200000u

/* How late it is seen that something was over at over_ns, by who waits for it since begun_ns: 0 when it did
 * not have to wait, or no thread would have been faster. Whoever had to tell was not run either. */
static inline uint64_t mri_seen_late_ns(uint64_t over_ns, uint64_t begun_ns, uint64_t now_ns)
{
    return over_ns > begun_ns && now_ns > over_ns + MRI_WAKE_NS ? now_ns - over_ns : 0;
}

/* How long the calling thread has run in all; 0 where the system does not tell. One system call. */
uint64_t mri_thread_ran_ns(void);

/* Belongs to one thread. */
typedef struct mri_cpu_time {
    int fd; /* of its schedstat; -1: the kernel does not tell */
    uint64_t ran_ns, delayed_ns;
} mri_cpu_time;

/* By the thread itself, before its first look. */
void mri_cpu_time_open(mri_cpu_time *t);
void mri_cpu_time_close(mri_cpu_time *t); /* any thread; accepts one that was opened */
/* As if it had looked now. */
void mri_cpu_time_skip(mri_cpu_time *t);
/* Times since the look before, of `wall_ns` that passed: ran_ns on a core, delayed_ns runnable and not run (a
 * cgroup that used up its quota is in it). Together at most wall_ns: delays beyond it came while it looked,
 * which is where threads lose their core most often, and belong to the next look. One system call, two when
 * the thread did not run all the time. */
void mri_cpu_time_look(mri_cpu_time *t, uint64_t wall_ns, uint64_t *ran_ns, uint64_t *delayed_ns);

#endif
