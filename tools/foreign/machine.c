/* tools/foreign/machine.c: see machine.h. */
#include "tools/foreign/machine.h"

#include <stdio.h>
#include <string.h>

#include "tools/foreign/proc_file.h"

enum { PATH_BYTES = 1536, TEXT_BYTES = 4096 };

/* The path of our group below its mount: of version 2 (controller NULL: the line "0::PATH"), or of the
 * hierarchy of a controller ("4:cpu,cpuacct:PATH"). */
static bool group_path(const char *membership, const char *controller, char *out, size_t out_bytes)
{
    for (const char *line = membership; line && *line; line = strchr(line, '\n')) {
        if (*line == '\n') line++;
        const char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
        if (!path) continue;
        const size_t n = (size_t)(path - names - 1);
        char list[256] = ",";
        snprintf(list + 1, sizeof list - 1, "%.*s,", (int)(n < 250 ? n : 250), names + 1);
        char wanted[32] = ",,";
        if (controller) snprintf(wanted, sizeof wanted, ",%s,", controller);
        if (controller ? !strstr(list, wanted) : n != 0) continue;
        snprintf(out, out_bytes, "%.*s", (int)strcspn(path + 1, "\n"), path + 1);
        return true;
    }
    return false;
}

/* A file of our group, or of the mount itself: inside a container the mount is the group. */
static bool group_text(const char *root, const char *const *mounts, const char *group, const char *name,
                       char *text, size_t text_bytes)
{
    char path[PATH_BYTES];
    for (int i = 0; mounts[i]; i++) {
        snprintf(path, sizeof path, "%s/sys/fs/cgroup%s%s/%s", root, mounts[i], group, name);
        if (proc_text(path, text, text_bytes) > 0) return true;
        snprintf(path, sizeof path, "%s/sys/fs/cgroup%s/%s", root, mounts[i], name);
        if (proc_text(path, text, text_bytes) > 0) return true;
    }
    return false;
}

static const char *const mounts_2[] = {"", "/unified", NULL};
static const char *const mounts_1[] = {"/cpu", "/cpu,cpuacct", NULL};

static void read_quota(const char *root, const char *membership, machine_counters *out)
{
    char group[1024], text[TEXT_BYTES];
    uint64_t n;
    if (group_path(membership, NULL, group, sizeof group) &&
        group_text(root, mounts_2, group, "cpu.stat", text, sizeof text) &&
        proc_find(text, "throttled_usec", &n)) {
        out->has_quota = true;
        out->throttled_ns = 1000 * n;
    } else if (group_path(membership, "cpu", group, sizeof group) &&
               group_text(root, mounts_1, group, "cpu.stat", text, sizeof text) &&
               proc_find(text, "throttled_time", &n)) {
        out->has_quota = true;
        out->throttled_ns = n;
    }
}

static bool take_pressure(const char *cpu, const char *io, machine_counters *out)
{
    out->has_pressure = proc_parse_pressure(cpu, "some", &out->cpu_some_us) &&
                        proc_parse_pressure(io, "some", &out->io_some_us) &&
                        proc_parse_pressure(io, "full", &out->io_full_us);
    return out->has_pressure;
}

static void read_pressure(const char *root, const char *membership, machine_counters *out)
{
    char group[1024], cpu[TEXT_BYTES], io[TEXT_BYTES], path[PATH_BYTES];
    /* the root group has no files of its own: the machine's are the same */
    if (group_path(membership, NULL, group, sizeof group) && strcmp(group, "/") != 0 &&
        group_text(root, mounts_2, group, "cpu.pressure", cpu, sizeof cpu) &&
        group_text(root, mounts_2, group, "io.pressure", io, sizeof io) && take_pressure(cpu, io, out)) {
        out->group = true;
        return;
    }
    snprintf(path, sizeof path, "%s/proc/pressure/cpu", root);
    if (proc_text(path, cpu, sizeof cpu) < 0) return;
    snprintf(path, sizeof path, "%s/proc/pressure/io", root);
    if (proc_text(path, io, sizeof io) < 0) return;
    take_pressure(cpu, io, out);
}

void machine_read(const char *root, machine_counters *out)
{
    char path[PATH_BYTES], membership[TEXT_BYTES];
    memset(out, 0, sizeof *out);
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    proc_text(path, membership, sizeof membership);
    read_quota(root, membership, out);
    read_pressure(root, membership, out);
}

static double part(uint64_t before_us, uint64_t after_us, double seconds)
{
    const double p =
        after_us > before_us && seconds > 0 ? 1e-6 * (double)(after_us - before_us) / seconds : 0;
    return p < 1 ? p : 1;
}

void machine_since(const machine_counters *before, const machine_counters *after, double seconds,
                   machine_figures *out)
{
    memset(out, 0, sizeof *out);
    out->has_pressure = before->has_pressure && after->has_pressure && before->group == after->group;
    out->group = after->group;
    out->cpu_some = part(before->cpu_some_us, after->cpu_some_us, seconds);
    out->io_some = part(before->io_some_us, after->io_some_us, seconds);
    out->io_full = part(before->io_full_us, after->io_full_us, seconds);
    out->has_quota = before->has_quota && after->has_quota;
    if (out->has_quota && after->throttled_ns > before->throttled_ns)
        out->throttled_s = 1e-9 * (double)(after->throttled_ns - before->throttled_ns);
}
