/* tools/session/bad_list.c: see bad_list.h. */
#include "tools/session/bad_list.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/cli/json.h"

typedef struct bad_line {
    uint64_t sample, offset; /* of its first byte in the list */
} bad_line;

/* Before the line at `place`. */
static int remember(bad_list *b, uint64_t place, bad_line line)
{
    if ((b->line_count & (b->line_count - 1)) == 0) { /* full at every power of two */
        const uint64_t room = b->line_count ? b->line_count * 2 : 1;
        bad_line *more = realloc(b->lines, room * sizeof *more);
        if (!more) return MR_ENOMEM;
        b->lines = more;
    }
    memmove(b->lines + place + 1, b->lines + place, (b->line_count - place) * sizeof *b->lines);
    b->lines[place] = line;
    b->line_count++;
    return MR_OK;
}

/* The first line of a sample that does not come before this one. */
static uint64_t place_of(const bad_list *b, uint64_t sample)
{
    uint64_t low = 0, high = b->line_count;
    while (low < high) {
        const uint64_t mid = low + (high - low) / 2;
        if (b->lines[mid].sample < sample) low = mid + 1;
        else high = mid;
    }
    return low;
}

bool bad_list_has(const bad_list *b, uint64_t sample)
{
    const uint64_t at = place_of(b, sample);
    return at < b->line_count && b->lines[at].sample == sample;
}

static int failed(const bad_list *b, const char *what, mr_error *err)
{
    return mr_error_sys(err, errno, "%s: %s", b->path, what);
}

static mr_output_config config(const bad_list *b, bool resume)
{
    mr_output_config cfg;
    mr_output_defaults(&cfg);
    cfg.inputs = &b->src;
    cfg.input_count = 1;
    cfg.force = true;
    cfg.resume = resume;
    cfg.log = true;
    return cfg;
}

/* Whole lines of an earlier run in the order of samples; what follows them is cut off. */
static int read_lines(bad_list *b, FILE *f, mr_error *err)
{
    char *line = NULL;
    size_t room = 0;
    int rc = MR_OK;
    for (ssize_t n; rc == MR_OK && (n = getline(&line, &room, f)) > 0 && line[n - 1] == '\n';) {
        const char *at = strstr(line, "\"sample\": ");
        unsigned long long sample;
        if (!at || sscanf(at, "\"sample\": %llu", &sample) != 1) {
            rc = mr_error_set(err, MR_EFORMAT,
                              "%s: expected a list of bad samples, found another line; remove the file or "
                              "leave --resume out",
                              b->path);
            break;
        }
        if (place_of(b, sample) < b->line_count) break; /* not ours; later ones are met or found again */
        if (remember(b, b->line_count, (bad_line){sample, b->end}) != MR_OK)
            rc = mr_error_set(err, MR_ENOMEM, "out of memory while reading %s", b->path);
        b->end += (uint64_t)n;
    }
    if (rc == MR_OK && ferror(f)) rc = failed(b, "cannot read the list of bad samples", err);
    if (rc == MR_OK && ftruncate(mr_output_fd(b->out), (off_t)b->end) != 0)
        rc = failed(b, "cannot shorten the list of bad samples", err);
    free(line);
    return rc;
}

static int read_earlier(bad_list *b, mr_error *err)
{
    struct stat st;
    if (lstat(b->path, &st) != 0 && errno == ENOENT) return MR_OK;
    const mr_output_config cfg = config(b, true);
    int rc = mr_output_open(&b->out, b->path, &cfg, err);
    if (rc) return rc;
    const int fd = fcntl(mr_output_fd(b->out), F_DUPFD_CLOEXEC, 0);
    FILE *f = fd >= 0 ? fdopen(fd, "r") : NULL;
    rc = f ? read_lines(b, f, err) : failed(b, "cannot read the list of bad samples", err);
    if (f) fclose(f);
    else if (fd >= 0) close(fd);
    b->count = b->line_count;
    return rc;
}

/* Empty, or with a first line of ours: */
static bool is_list(const char *path)
{
    static const char begin[] = "{\"event\": \"bad\", ";
    char found[sizeof begin] = "";
    const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    const ssize_t n = fd >= 0 ? read(fd, found, sizeof begin - 1) : -1;
    if (fd >= 0) close(fd);
    return n == 0 || (n == (ssize_t)(sizeof begin - 1) && memcmp(found, begin, sizeof begin - 1) == 0);
}

static int check_old(bad_list *b, bool force, mr_error *err)
{
    struct stat st;
    const mr_output_config cfg = config(b, false);
    b->old = lstat(b->path, &st) == 0;
    const int rc = mr_output_check(b->path, &cfg, err);
    if (rc || !b->old || force || is_list(b->path)) return rc;
    mr_error_set(err, MR_EEXIST,
                 "this file is there and is no list of bad samples: remove it, or choose another name");
    return mr_error_at(err, b->path, MR_NOWHERE, MR_NOWHERE);
}

int bad_list_open(bad_list *b, const char *path, const mr_source *src, bool resume, bool force, mr_error *err)
{
    memset(b, 0, sizeof *b);
    b->src = src;
    if (strlen(path) >= sizeof b->path)
        return mr_error_set(err, MR_EINVAL, "path too long: %zu characters", strlen(path));
    strcpy(b->path, path);
    b->in_order = resume;
    return resume ? read_earlier(b, err) : check_old(b, force, err);
}

void bad_list_begin(bad_list *b)
{
    if (!b->old) return;
    b->old = false;
    const mr_output_config cfg = config(b, false);
    mr_error err = MR_ERROR_INIT;
    if (mr_output_remove(b->path, &cfg, &err) != MR_OK && b->failure.code == MR_OK) b->failure = err;
}

/* One write() a line, unless the disk takes a part of it: a kill leaves it whole or leaves it out. */
static int write_all(const bad_list *b, const char *text, size_t bytes, mr_error *err)
{
    for (size_t done = 0; done < bytes;) {
        const ssize_t n = write(mr_output_fd(b->out), text + done, bytes - done);
        if (n < 0 && errno == EINTR) continue;
        if (n == 0) errno = EIO;
        if (n <= 0) return failed(b, "cannot write the list of bad samples", err);
        done += (size_t)n;
    }
    return MR_OK;
}

/* The list is cut at `offset`, and goes on with text; it ends there when that fails. */
static int go_on_from(const bad_list *b, uint64_t offset, const char *text, size_t bytes, mr_error *err)
{
    int rc = ftruncate(mr_output_fd(b->out), (off_t)offset) == 0
                 ? MR_OK
                 : failed(b, "cannot shorten the list of bad samples", err);
    if (rc) return rc;
    rc = write_all(b, text, bytes, err);
    if (rc && ftruncate(mr_output_fd(b->out), (off_t)offset) != 0)
        return rc; /* half a line stays: resuming cuts it off */
    return rc;
}

static int append(const bad_list *b, const char *line, size_t bytes, mr_error *err)
{
    struct stat st;
    if (fstat(mr_output_fd(b->out), &st) != 0)
        return failed(b, "cannot look at the list of bad samples", err);
    return go_on_from(b, (uint64_t)st.st_size, line, bytes, err);
}

/* The lines after it move on. */
static int insert(bad_list *b, uint64_t sample, const char *line, size_t bytes, mr_error *err)
{
    const uint64_t place = place_of(b, sample);
    const uint64_t offset = place < b->line_count ? b->lines[place].offset : b->end;
    const size_t rest = (size_t)(b->end - offset);
    char *text = malloc(bytes + rest);
    if (!text || remember(b, place, (bad_line){sample, offset}) != MR_OK) {
        free(text);
        return mr_error_set(err, MR_ENOMEM, "%s: out of memory for the list of bad samples", b->path);
    }
    memcpy(text, line, bytes);
    size_t got = 0;
    while (got < rest) {
        const ssize_t n = pread(mr_output_fd(b->out), text + bytes + got, rest - got, (off_t)(offset + got));
        if (n < 0 && errno == EINTR) continue;
        if (n == 0) errno = EIO;
        if (n <= 0) break;
        got += (size_t)n;
    }
    const int rc = got < rest ? failed(b, "cannot read the list of bad samples", err)
                              : go_on_from(b, offset, text, bytes + rest, err);
    free(text);
    for (uint64_t k = place + 1; k < b->line_count; k++) b->lines[k].offset += bytes;
    b->end += bytes;
    return rc;
}

void bad_list_line(FILE *out, const mr_source *src, const mr_error *what)
{
    json_line j = json_begin(out, "bad");
    char name[4096] = "";
    if (what->sample != MR_NOWHERE) json_u64(&j, "sample", what->sample);
    if (what->sample != MR_NOWHERE && src)
        mr_source_sample_name(src, what->sample, NULL, 0, name, sizeof name);
    json_text(&j, "file", what->file);
    if (what->offset != MR_NOWHERE) json_u64(&j, "offset", what->offset);
    json_text(&j, "code", mr_status_text(what->code));
    json_text(&j, "reason", what->text);
    if (name[0]) json_text(&j, "name", name);
    json_end(&j);
}

static int add(bad_list *b, const mr_error *what, mr_error *err)
{
    const mr_output_config cfg = config(b, false);
    char *line = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&line, &bytes);
    if (!f) return mr_error_set(err, MR_ENOMEM, "%s: out of memory for the list of bad samples", b->path);
    bad_list_line(f, b->src, what);
    int rc = ferror(f) ? MR_ENOMEM : MR_OK;
    if (fclose(f) != 0) rc = MR_ENOMEM;
    if (rc) mr_error_set(err, rc, "%s: out of memory for the list of bad samples", b->path);
    if (!rc && !b->out) rc = mr_output_open(&b->out, b->path, &cfg, err);
    if (!rc) rc = b->in_order ? insert(b, what->sample, line, bytes, err) : append(b, line, bytes, err);
    free(line);
    return rc;
}

void bad_list_add(bad_list *b, const mr_error *what)
{
    mr_error failure = MR_ERROR_INIT;
    if (b->in_order && bad_list_has(b, what->sample)) return;
    bad_list_begin(b);
    b->count++;
    if (b->failure.code == MR_OK && add(b, what, &failure) != MR_OK) b->failure = failure;
}

int bad_list_close(bad_list *b, mr_error *err)
{
    mr_error synced = MR_ERROR_INIT;
    if (b->out && mr_output_commit(b->out, &synced) != MR_OK && b->failure.code == MR_OK) b->failure = synced;
    b->out = NULL;
    free(b->lines);
    b->lines = NULL;
    b->line_count = 0;
    if (b->failure.code != MR_OK && err) *err = b->failure;
    return b->failure.code;
}
