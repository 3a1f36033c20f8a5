/* base/cgroup.h: what control groups allow this process, whichever of its groups says so. Private: for
 * process.c and its test. */
#ifndef MRI_CGROUP_H
#define MRI_CGROUP_H

#include "millrace/base.h"

typedef struct mri_cgroup_limits {
    uint64_t memory_bytes; /* UINT64_MAX: no limit */
    uint64_t cores;        /* CPU time in cores, rounded up; UINT64_MAX: no limit */
    double share;          /* the same, not rounded; INFINITY: no limit */
} mri_cgroup_limits;

/* root: where control groups are mounted, "/sys/fs/cgroup". membership: the text of /proc/self/cgroup. The
 * smallest limit of the groups that the process is in and of all groups above them counts, of version 2 and
 * of version 1. A group that cannot be seen from here is passed over. */
mri_cgroup_limits mri_cgroup_read(const char *root, const char *membership);

/* ns that the groups of this process, and those above them, were kept from running because their quota was
 * used up, over all cores; 0: never, or unknown. */
uint64_t mri_cgroup_throttled_ns(const char *root, const char *membership);

#endif
