/* tools/commands/bad_list.c: see bad_list.h. */
#include "tools/commands/bad_list.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli/json.h"

static int remember(bad_list *b, uint64_t sample)
{
    if ((b->known_count & (b->known_count - 1)) == 0) { /* full at every power of two */
        const uint64_t room = b->known_count ? b->known_count * 2 : 1;
        uint64_t *more = realloc(b->known, room * sizeof *more);
        if (!more) return MR_ENOMEM;
        b->known = more;
    }
    b->known[b->known_count++] = sample;
    return MR_OK;
}

/* Whole lines of an earlier run; what a crash left of the last one is cut off. */
static int read_earlier(bad_list *b, mr_error *err)
{
    FILE *f = fopen(b->path, "r+e");
    if (!f)
        return errno == ENOENT ? MR_OK
                               : mr_error_sys(err, errno, "%s: cannot read the list of bad samples", b->path);
    char *line = NULL;
    size_t room = 0;
    long whole = 0;
    int rc = MR_OK;
    for (ssize_t n; rc == MR_OK && (n = getline(&line, &room, f)) > 0 && line[n - 1] == '\n';
         whole = ftell(f)) {
        const char *at = strstr(line, "\"sample\": ");
        unsigned long long sample;
        if (!at || sscanf(at, "\"sample\": %llu", &sample) != 1)
            rc = mr_error_set(err, MR_EFORMAT,
                              "%s: expected a list of bad samples, found another line; remove the file or "
                              "leave --resume out",
                              b->path);
        else if (remember(b, sample) != MR_OK)
            rc = mr_error_set(err, MR_ENOMEM, "out of memory while reading %s", b->path);
    }
    if (rc == MR_OK && ftruncate(fileno(f), whole) != 0)
        rc = mr_error_sys(err, errno, "%s: cannot shorten the list of bad samples", b->path);
    free(line);
    fclose(f);
    b->count = b->known_count;
    return rc;
}

int bad_list_open(bad_list *b, const char *path, bool resume, mr_error *err)
{
    memset(b, 0, sizeof *b);
    b->fd = -1;
    b->resume = resume;
    if (strlen(path) >= sizeof b->path)
        return mr_error_set(err, MR_EINVAL, "path too long: %zu characters", strlen(path));
    strcpy(b->path, path);
    if (resume) return read_earlier(b, err);
    if (unlink(path) != 0 && errno != ENOENT)
        return mr_error_sys(err, errno, "%s: cannot remove the old list", path);
    return MR_OK;
}

static bool is_known(const bad_list *b, uint64_t sample)
{
    uint64_t low = 0, high = b->known_count;
    while (low < high) {
        const uint64_t mid = low + (high - low) / 2;
        if (b->known[mid] < sample) low = mid + 1;
        else high = mid;
    }
    return low < b->known_count && b->known[low] == sample;
}

/* One write() a line: a kill leaves it whole or leaves it out. */
static void append(bad_list *b, const char *line, size_t bytes)
{
    if (b->fd < 0) b->fd = open(b->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (b->fd < 0) {
        mr_error_sys(&b->failure, errno, "%s: cannot make the list of bad samples", b->path);
        return;
    }
    const ssize_t n = write(b->fd, line, bytes);
    if (n < 0) mr_error_sys(&b->failure, errno, "%s: cannot write the list of bad samples", b->path);
    else if ((size_t)n < bytes)
        mr_error_set(&b->failure, MR_EIO, "%s: the list of bad samples is cut: disk full?", b->path);
}

void bad_list_line(FILE *out, const mr_error *what)
{
    json_line j = json_begin(out, "bad");
    if (what->sample != MR_NOWHERE) json_u64(&j, "sample", what->sample);
    json_text(&j, "file", what->file);
    if (what->offset != MR_NOWHERE) json_u64(&j, "offset", what->offset);
    json_text(&j, "code", mr_status_text(what->code));
    json_text(&j, "reason", what->text);
    json_end(&j);
}

void bad_list_add(bad_list *b, const mr_error *what)
{
    if (is_known(b, what->sample)) return;
    char *line = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&line, &bytes);
    if (!f) {
        mr_error_set(&b->failure, MR_ENOMEM, "out of memory");
        return;
    }
    bad_list_line(f, what);
    if (fclose(f) == 0 && b->failure.code == MR_OK) append(b, line, bytes);
    free(line);
    b->count++;
}

int bad_list_close(bad_list *b, mr_error *err)
{
    if (b->fd >= 0) close(b->fd);
    b->fd = -1;
    free(b->known);
    b->known = NULL;
    if (b->failure.code != MR_OK && err) *err = b->failure;
    return b->failure.code;
}
