/* base/cgroup.c: see cgroup.h.
 *
 *   0::/a/b                version 2: root/a/b/memory.max, root/a/memory.max, root/memory.max; cpu.max
 *   4:memory:/a/b          version 1: root/memory/a/b/memory.limit_in_bytes, ...
 *   2:cpu,cpuacct:/a/b     version 1: root/cpu,cpuacct/a/b/cpu.cfs_quota_us and cpu.cfs_period_us, ...
 *
 * Inside a container the path may be the host's while the mount shows the container's group as its root: the
 * folders of the path are then missing, and the root's files still say it. */
#include "base/cgroup.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

enum { PATH_ROOM = 4096 };

/* The numbers of a file of one line; a word in place of one ("max") is `fallback`. How many there are. */
static int read_numbers(const char *folder, const char *name, uint64_t fallback, uint64_t out[2])
{
    char path[PATH_ROOM + 64], line[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "re");
    if (!f) return 0;
    int count = 0;
    if (fgets(line, sizeof line, f)) {
        char *rest = NULL;
        for (char *word = strtok_r(line, " \n", &rest); word && count < 2;
             word = strtok_r(NULL, " \n", &rest)) {
            char *end;
            const unsigned long long value = strtoull(word, &end, 10);
            out[count++] = end == word || word[0] == '-' ? fallback : value;
        }
    }
    fclose(f);
    return count;
}

/* The figure to look for: limits, or the throttled time. */
typedef struct mri_cgroup_look {
    bool throttling;
    mri_cgroup_limits limits;
    uint64_t throttled_ns;
} mri_cgroup_look;

static void take_cores(mri_cgroup_limits *out, uint64_t quota, uint64_t period)
{
    if (quota == UINT64_MAX || quota == 0 || period == 0) return;
    out->cores = mri_min_u64(out->cores, (quota - 1) / period + 1);
    out->share = fmin(out->share, (double)quota / (double)period);
}

static void look_at_group(const char *folder, bool memory, bool cpu, mri_cgroup_limits *out)
{
    uint64_t n[2], period[2];
    if (memory && (read_numbers(folder, "memory.max", UINT64_MAX, n) ||
                   read_numbers(folder, "memory.limit_in_bytes", UINT64_MAX, n)))
        out->memory_bytes = mri_min_u64(out->memory_bytes, n[0]);
    if (!cpu) return;
    if (read_numbers(folder, "cpu.max", UINT64_MAX, n) == 2) take_cores(out, n[0], n[1]);
    if (read_numbers(folder, "cpu.cfs_quota_us", UINT64_MAX, n) &&
        read_numbers(folder, "cpu.cfs_period_us", UINT64_MAX, period))
        take_cores(out, n[0], period[0]);
}

/* "name value" among the lines of a file. */
static bool find_number(const char *folder, const char *file, const char *name, uint64_t *out)
{
    char path[PATH_ROOM + 64], line[128], key[64];
    unsigned long long value;
    bool found = false;
    snprintf(path, sizeof path, "%s/%s", folder, file);
    FILE *f = fopen(path, "re");
    while (f && !found && fgets(line, sizeof line, f))
        found = sscanf(line, "%63s %llu", key, &value) == 2 && strcmp(key, name) == 0;
    if (f) fclose(f);
    if (found) *out = value;
    return found;
}

/* cpu.stat: "throttled_usec" in version 2, "throttled_time" in ns in version 1. */
static void look_at_throttling(const char *folder, mri_cgroup_look *out)
{
    uint64_t n;
    if (find_number(folder, "cpu.stat", "throttled_usec", &n)) n *= 1000;
    else if (!find_number(folder, "cpu.stat", "throttled_time", &n)) return;
    out->throttled_ns = mri_max_u64(out->throttled_ns, n);
}

/* A group and all above it, up to the one that is mounted. */
static void look_up(const char *mount, const char *group, bool memory, bool cpu, mri_cgroup_look *out)
{
    char folder[PATH_ROOM];
    const size_t top = strlen(mount);
    const bool outside = strstr(group, "/..") != NULL; /* of what this process may see */
    if ((size_t)snprintf(folder, sizeof folder, "%s%s", mount, outside ? "" : group) >= sizeof folder)
        snprintf(folder, sizeof folder, "%s", mount);
    for (;;) {
        if (!out->throttling) look_at_group(folder, memory, cpu, &out->limits);
        else if (cpu) look_at_throttling(folder, out);
        char *slash = strrchr(folder, '/');
        if (!slash || (size_t)(slash - folder) < top) return;
        *slash = '\0';
    }
}

static bool has_word(const char *list, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = list; at; at = strchr(at, ','), at = at ? at + 1 : NULL)
        if (strncmp(at, word, n) == 0 && (at[n] == ',' || at[n] == '\0')) return true;
    return false;
}

static void look(const char *root, const char *membership, mri_cgroup_look *out)
{
    for (const char *at = membership; *at;) {
        char line[PATH_ROOM], mount[PATH_ROOM];
        const size_t bytes = strcspn(at, "\n");
        snprintf(line, sizeof line, "%.*s", (int)mri_min_u64(bytes, sizeof line - 1), at);
        at += bytes + (at[bytes] == '\n');
        char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group) continue;
        *group++ = '\0';
        controllers++;
        if (controllers[0] == '\0') {
            look_up(root, group, true, true, out);
            continue;
        }
        const bool memory = has_word(controllers, "memory"), cpu = has_word(controllers, "cpu");
        if (!memory && !cpu) continue;
        if ((size_t)snprintf(mount, sizeof mount, "%s/%s", root, controllers) >= sizeof mount) continue;
        look_up(mount, group, memory, cpu, out);
    }
}

mri_cgroup_limits mri_cgroup_read(const char *root, const char *membership)
{
    mri_cgroup_look out = {.limits = {UINT64_MAX, UINT64_MAX, INFINITY}};
    look(root, membership, &out);
    return out.limits;
}

uint64_t mri_cgroup_throttled_ns(const char *root, const char *membership)
{
    mri_cgroup_look out = {.throttling = true};
    look(root, membership, &out);
    return out.throttled_ns;
}
