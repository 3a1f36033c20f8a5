/* base/util.c: the few helpers of util.h that touch the system: threads, limits of this process, whole reads
 * and writes. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/ranges.h"
#include "base/util.h"

void *mri_alloc_aligned(size_t align, size_t bytes)
{
    void *p = NULL;
    if (bytes == 0) bytes = 1;
    return posix_memalign(&p, align, bytes) == 0 ? p : NULL;
}

/* What a new thread is told; its own to free. */
typedef struct thread_start {
    void *(*main)(void *);
    void *arg;
    char name[16]; /* the kernel keeps no more */
} thread_start;

static void *thread_main(void *arg)
{
    const thread_start start = *(thread_start *)arg;
    free(arg);
    pthread_setname_np(pthread_self(), start.name);
    mri_range_name_thread(start.name);
    return start.main(start.arg);
}

int mri_thread_start(pthread_t *out, const char *name, void *(*main)(void *), void *arg)
{
    thread_start *start = malloc(sizeof *start);
    if (!start) return MR_ENOMEM;
    *start = (thread_start){.main = main, .arg = arg};
    snprintf(start->name, sizeof start->name, "%s", name);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* inherited by the new thread */
    const int rc = pthread_create(out, NULL, thread_main, start);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc) free(start);
    return rc ? MR_ENOMEM : MR_OK;
}

/* The first number of a one-line file, or fallback when there is none ("max" in a cgroup file). */
static uint64_t read_number(const char *path, uint64_t fallback, uint64_t *second)
{
    FILE *f = fopen(path, "re");
    if (!f) return fallback;
    char line[128];
    uint64_t value = fallback;
    if (fgets(line, sizeof line, f)) {
        char *end = line;
        const unsigned long long first = strtoull(line, &end, 10);
        if (end != line) value = first;
        if (second) {
            while (*end && *end != ' ') end++;
            *second = strtoull(end, NULL, 10);
        }
    }
    fclose(f);
    return value;
}

uint32_t mri_core_count(void)
{
    cpu_set_t set;
    uint32_t cores = 1;
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        cores = (uint32_t)CPU_COUNT(&set);
    } else {
        const long online = sysconf(_SC_NPROCESSORS_ONLN);
        if (online > 0) cores = (uint32_t)online;
    }
    uint64_t period = 0;
    const uint64_t quota = read_number("/sys/fs/cgroup/cpu.max", 0, &period); /* cgroup v2: "QUOTA PERIOD" or
                                                                                 "max PERIOD" */
    if (quota > 0 && period > 0) {
        const uint64_t allowed = (quota + period - 1) / period;
        if (allowed < cores) cores = (uint32_t)allowed;
    }
    return cores > 0 ? cores : 1;
}

uint64_t mri_memory_limit_bytes(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    uint64_t limit = pages > 0 && page_bytes > 0 ? (uint64_t)pages * (uint64_t)page_bytes : (uint64_t)1 << 30;
    const uint64_t group = read_number("/sys/fs/cgroup/memory.max", UINT64_MAX, NULL);
    return mri_min_u64(limit, group);
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

int mri_pwrite_all(int fd, const void *data, size_t bytes, uint64_t offset, const char *path, mr_error *err)
{
    const uint8_t *p = data;
    while (bytes > 0) {
        const ssize_t n = pwrite(fd, p, bytes, (off_t)offset);
        if (n < 0) {
            if (errno == EINTR) continue;
            const int code = mr_error_sys(err, errno, "cannot write %zu bytes", bytes);
            mr_error_at(err, path, offset, MR_NOWHERE);
            return code;
        }
        p += n;
        bytes -= (size_t)n;
        offset += (uint64_t)n;
    }
    return MR_OK;
}

int mri_pread_all(int fd, void *data, size_t bytes, uint64_t offset, const char *path, mr_error *err)
{
    uint8_t *p = data;
    size_t done = 0;
    while (done < bytes) {
        const ssize_t n = pread(fd, p + done, bytes - done, (off_t)(offset + done));
        if (n < 0) {
            if (errno == EINTR) continue;
            const int code = mr_error_sys(err, errno, "cannot read %zu bytes", bytes);
            mr_error_at(err, path, offset + done, MR_NOWHERE);
            return code;
        }
        if (n == 0) {
            mr_error_set(err, MR_EFORMAT, "the file ends early: expected %zu bytes, found %zu", bytes, done);
            mr_error_at(err, path, offset, MR_NOWHERE);
            return MR_EFORMAT;
        }
        done += (size_t)n;
    }
    return MR_OK;
}

int mri_too_many_files(uint64_t together, mr_error *err)
{
    enum { SPARE = 64 }; /* standard streams, rings, devices, a file being looked at */
    struct rlimit limit = {0, 0};
    char hard[32] = "unlimited";
    getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_max != RLIM_INFINITY)
        snprintf(hard, sizeof hard, "%llu", (unsigned long long)limit.rlim_max);
    return mr_error_sys(
        err, EMFILE,
        "cannot open: the %llu files of this data set are open together, and this process may have %llu "
        "(RLIMIT_NOFILE, at most %s without more rights): allow %llu (ulimit -n), or convert them to fewer "
        "files",
        (unsigned long long)together, (unsigned long long)limit.rlim_cur, hard,
        (unsigned long long)together + SPARE);
}

int mri_sync_folder_of(const char *path, mr_error *err)
{
    char folder[4096];
    const char *slash = strrchr(path, '/');
    if (!slash) {
        strcpy(folder, ".");
    } else {
        const size_t len = slash == path ? 1 : (size_t)(slash - path);
        if (len >= sizeof folder)
            return mr_error_set(err, MR_EINVAL, "path too long: %zu characters", strlen(path));
        memcpy(folder, path, len);
        folder[len] = '\0';
    }
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = MR_OK;
    /* some network file systems refuse to sync a folder (EINVAL): nothing more can be done there */
    if (fd < 0 || (fsync(fd) != 0 && errno != EINVAL)) {
        rc = mr_error_sys(err, errno, "cannot sync the folder");
        mr_error_at(err, folder, MR_NOWHERE, MR_NOWHERE);
    }
    if (fd >= 0) close(fd);
    return rc;
}
