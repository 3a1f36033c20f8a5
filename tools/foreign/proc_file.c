/* tools/foreign/proc_file.c: see proc_file.h. */
#include "tools/foreign/proc_file.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

long proc_text(const char *path, char *buf, size_t buf_bytes)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t at = 0;
    ssize_t n = 1;
    buf[0] = '\0';
    if (fd < 0) return -1;
    while (n > 0 && at + 1 < buf_bytes) {
        n = read(fd, buf + at, buf_bytes - 1 - at);
        if (n > 0) at += (size_t)n;
    }
    close(fd);
    buf[at] = '\0';
    return at ? (long)at : -1;
}

/* "pid (name) state ppid ...": the name ends at the last bracket. */
bool proc_parse_stat(const char *text, proc_stat *out)
{
    enum { FIELDS = 53 };
    uint64_t field[FIELDS] = {0}; /* numbered as in proc(5) */
    const char *open = strchr(text, '('), *close = strrchr(text, ')');
    memset(out, 0, sizeof *out);
    if (!open || !close || close < open || close[1] != ' ' || !close[2]) return false;
    out->pid = (int32_t)strtol(text, NULL, 10);
    const size_t name = (size_t)(close - open - 1);
    snprintf(out->name, sizeof out->name, "%.*s",
             (int)(name < sizeof out->name ? name : sizeof out->name - 1), open + 1);
    out->state = close[2];
    const char *at = close + 3;
    int count = 4;
    for (char *end; count < FIELDS; count++, at = end) {
        field[count] = strtoull(at, &end, 10); /* negative ones are of no interest here */
        if (end == at) break;
    }
    if (count < 25) return false;
    out->parent = (int32_t)field[4];
    out->major_faults = field[12];
    out->child_major_faults = field[13];
    out->user_ticks = field[14];
    out->system_ticks = field[15];
    out->child_user_ticks = field[16];
    out->child_system_ticks = field[17];
    out->threads = (uint32_t)field[20];
    out->start_ticks = field[22];
    out->rss_pages = field[24];
    out->disk_ticks = field[42];
    return true;
}

bool proc_read_stat(const char *path, proc_stat *out)
{
    char text[1024];
    return proc_text(path, text, sizeof text) > 0 && proc_parse_stat(text, out);
}

bool proc_find(const char *text, const char *key, uint64_t *out)
{
    const size_t bytes = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        if (*line == '\n') line++;
        if (strncmp(line, key, bytes) != 0 || (line[bytes] != ':' && line[bytes] != ' ')) continue;
        const char *digits = line + bytes + 1;
        while (*digits == ' ') digits++;
        char *end;
        *out = strtoull(digits, &end, 10);
        return end != digits;
    }
    return false;
}

bool proc_read_io(const char *path, uint64_t *read_calls, uint64_t *storage)
{
    char text[512];
    return proc_text(path, text, sizeof text) > 0 && proc_find(text, "rchar", read_calls) &&
           proc_find(text, "read_bytes", storage);
}

bool proc_read_schedstat(const char *path, uint64_t *ran_ns, uint64_t *waited_ns)
{
    char text[128];
    return proc_text(path, text, sizeof text) > 0 &&
           sscanf(text, "%" SCNu64 " %" SCNu64, ran_ns, waited_ns) == 2;
}

bool proc_parse_pressure(const char *text, const char *kind, uint64_t *total_us)
{
    for (const char *line = text; line; line = strchr(line, '\n')) {
        if (*line == '\n') line++;
        if (strncmp(line, kind, strlen(kind)) != 0) continue;
        const char *total = strstr(line, "total="), *end = strchr(line, '\n');
        if (!total || (end && total > end)) return false;
        *total_us = strtoull(total + 6, NULL, 10);
        return true;
    }
    return false;
}
