/* tools/foreign/proc_file.h: what /proc says of a process or thread. Files that are gone, or that we may not
 * read, are no error: false. */
#ifndef TOOLS_PROC_FILE_H
#define TOOLS_PROC_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct proc_stat {
    int32_t pid, parent;
    char name[64];
    char state;
    uint64_t major_faults, child_major_faults;
    uint64_t user_ticks, system_ticks, child_user_ticks, child_system_ticks;
    uint32_t threads;
    uint64_t start_ticks;
    uint64_t rss_pages;
    uint64_t disk_ticks; /* waiting for a block device; 0 where delays are not accounted for */
} proc_stat;

/* The text of a small file, terminated; -1: not there, or nothing in it. */
long proc_text(const char *path, char *buf, size_t buf_bytes);

/* /proc/PID/stat, or of a thread; its name may hold anything. */
bool proc_parse_stat(const char *text, proc_stat *out);
bool proc_read_stat(const char *path, proc_stat *out);
/* The number behind "key: " or "key " at the beginning of a line. */
bool proc_find(const char *text, const char *key, uint64_t *out);
/* rchar and read_bytes of an io file. */
bool proc_read_io(const char *path, uint64_t *read_calls, uint64_t *storage);
/* A schedstat file: ns on a core, ns ready to run and waiting for one. */
bool proc_read_schedstat(const char *path, uint64_t *ran_ns, uint64_t *waited_ns);
/* total=, in microseconds, of the line of a pressure file that begins with `kind` ("some", "full"). */
bool proc_parse_pressure(const char *text, const char *kind, uint64_t *total_us);

#endif
