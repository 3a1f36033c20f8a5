/* base/process.h: threads, and the resources that the machine and its owner allow this process. Private. */
#ifndef MRI_PROCESS_H
#define MRI_PROCESS_H

#include <pthread.h>

#include "millrace/base.h"

/* Start a joinable thread with all signals blocked (the program's own thread takes Ctrl-C) except for signals
 * of its own faults and SIGPROF, and a name of at most 15 characters. MR_OK or MR_ENOMEM. */
int mri_thread_start(pthread_t *out, const char *name, void *(*main)(void *), void *arg);

/* Cores this process may use: affinity mask, then the CPU quotas of its cgroups rounded up. At least 1. */
uint32_t mri_core_count(void);

/* The same, quotas not rounded: 0.5 where a quota allows half of a core's time. */
double mri_core_share(void);
/* It is a quota that limits, and not the number of cores. */
bool mri_has_quota(void);
/* ns that CPU quotas of its cgroups kept this process from running, over all cores; 0 where it is unknown.
 * Reads several files. */
uint64_t mri_throttled_ns(void);
/* Bytes of memory this process may use: the smallest of physical memory and the limits of its cgroup and of
 * all above it. */
uint64_t mri_memory_limit_bytes(void);

/* Resident peak of this process in bytes (VmHWM), 0 when unknown. */
uint64_t mri_peak_rss_bytes(void);

#endif
