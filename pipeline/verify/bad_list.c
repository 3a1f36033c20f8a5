/* pipeline/verify/bad_list.c: the list of bad samples of millrace/verify.h.
 *
 * A call that is resumed leaves the same list as an undisturbed one: samples that are met again are not
 * written twice, and one that the list lacks (a kill, a full disk) is put where it belongs. A line that could
 * not be written whole is taken back. Only a list is ever replaced, never another file of that name. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/handle.h"
#include "formats/source/source.h"
#include "millrace/verify.h"
#include "settings/json_put.h"

typedef struct bad_line {
    uint64_t sample, offset; /* of its first byte in the list */
} bad_line;

struct mr_bad_list {
    uint32_t process; /* that opened it */
    char path[4096];
    const mr_source *src; /* whose samples they are; the list may be none of its files */
    mr_output *out;       /* NULL until the first line */
    bool old;             /* a list of an earlier run is there, to be replaced */
    bool in_order;        /* resumed: every line's place is known */
    bad_line *lines;
    uint64_t line_count, count; /* count: lines in the list now */
    uint64_t end;               /* in_order: bytes of the list */
    mr_error failure;           /* the first failure to write; code MR_OK when none */
};

/* Before the line at `place`. */
static int remember(mr_bad_list *b, uint64_t place, bad_line line)
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
static uint64_t place_of(const mr_bad_list *b, uint64_t sample)
{
    uint64_t low = 0, high = b->line_count;
    while (low < high) {
        const uint64_t mid = low + (high - low) / 2;
        if (b->lines[mid].sample < sample) low = mid + 1;
        else high = mid;
    }
    return low;
}

bool mr_bad_list_has(const mr_bad_list *b, uint64_t sample)
{
    if (!MRI_IS_OWN(b)) return false;
    const uint64_t at = place_of(b, sample);
    return at < b->line_count && b->lines[at].sample == sample;
}

static int failed(const mr_bad_list *b, const char *what, mr_error *err)
{
    return mr_error_sys(err, errno, "%s: %s", b->path, what);
}

static mr_output_config config(const mr_bad_list *b, bool resume)
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
static int read_lines(mr_bad_list *b, FILE *f, mr_error *err)
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

static int read_earlier(mr_bad_list *b, mr_error *err)
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

static int check_old(mr_bad_list *b, bool force, mr_error *err)
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

int mr_bad_list_open(mr_bad_list **out, const char *path, const mr_source *src, bool resume, bool force,
                     mr_error *err)
{
    MRI_GIVEN(err, out);
    *out = NULL;
    MRI_GIVEN(err, path);
    MRI_OWN(err, src);
    if (strlen(path) >= sizeof(*out)->path)
        return mr_error_set(err, MR_EINVAL, "path too long: %zu characters", strlen(path));
    mr_bad_list *b = calloc(1, sizeof *b);
    if (!b) return mr_error_set(err, MR_ENOMEM, "out of memory for the list of bad samples");
    *b = (mr_bad_list){.process = mri_process(), .src = src, .in_order = resume, .failure = MR_ERROR_INIT};
    strcpy(b->path, path);
    const int rc = resume ? read_earlier(b, err) : check_old(b, force, err);
    if (rc) mr_bad_list_close(b, NULL);
    else *out = b;
    return rc;
}

void mr_bad_list_begin(mr_bad_list *b)
{
    if (!MRI_IS_OWN(b) || !b->old) return;
    b->old = false;
    const mr_output_config cfg = config(b, false);
    mr_error err = MR_ERROR_INIT;
    if (mr_output_remove(b->path, &cfg, &err) != MR_OK && b->failure.code == MR_OK) b->failure = err;
}

/* One write() a line, unless the disk takes a part of it: a kill leaves it whole or leaves it out. */
static int write_all(const mr_bad_list *b, const char *text, size_t bytes, mr_error *err)
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
static int go_on_from(const mr_bad_list *b, uint64_t offset, const char *text, size_t bytes, mr_error *err)
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

static int append(const mr_bad_list *b, const char *line, size_t bytes, mr_error *err)
{
    struct stat st;
    if (fstat(mr_output_fd(b->out), &st) != 0)
        return failed(b, "cannot look at the list of bad samples", err);
    return go_on_from(b, (uint64_t)st.st_size, line, bytes, err);
}

/* The lines after it move on. */
static int insert(mr_bad_list *b, uint64_t sample, const char *line, size_t bytes, mr_error *err)
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

/* ---- a line ---- */

static void put_member(FILE *out, const char *key, const char *text)
{
    fprintf(out, ", \"%s\": ", key);
    mri_json_put_text(out, text);
}

static void put_line(FILE *out, const mr_source *src, const mr_error *what)
{
    char name[4096] = "";
    fputs("{\"event\": \"bad\"", out);
    if (what->sample != MR_NOWHERE) fprintf(out, ", \"sample\": %" PRIu64, what->sample);
    if (what->sample != MR_NOWHERE && src)
        mr_source_sample_name(src, what->sample, NULL, 0, name, sizeof name);
    put_member(out, "file", what->file);
    if (what->offset != MR_NOWHERE) fprintf(out, ", \"offset\": %" PRIu64, what->offset);
    put_member(out, "code", mr_status_text(what->code));
    put_member(out, "reason", what->text);
    if (name[0]) put_member(out, "name", name);
    fputs("}\n", out);
}

/* malloc'd; NULL: no memory. */
static char *make_line(const mr_source *src, const mr_error *what, size_t *bytes)
{
    char *line = NULL;
    FILE *f = open_memstream(&line, bytes);
    if (!f) return NULL;
    put_line(f, src, what);
    const bool failed_to = ferror(f);
    if (fclose(f) == 0 && !failed_to) return line;
    free(line);
    return NULL;
}

char *mr_bad_list_line(const mr_source *src, const mr_error *what)
{
    size_t bytes;
    return what && (!src || MRI_IS_OWN(src)) ? make_line(src, what, &bytes) : NULL;
}

/* ---- lines into the list ---- */

static int add(mr_bad_list *b, const mr_error *what, mr_error *err)
{
    const mr_output_config cfg = config(b, false);
    size_t bytes = 0;
    char *line = make_line(b->src, what, &bytes);
    if (!line) return mr_error_set(err, MR_ENOMEM, "%s: out of memory for the list of bad samples", b->path);
    int rc = b->out ? MR_OK : mr_output_open(&b->out, b->path, &cfg, err);
    if (!rc) rc = b->in_order ? insert(b, what->sample, line, bytes, err) : append(b, line, bytes, err);
    free(line);
    return rc;
}

void mr_bad_list_add(mr_bad_list *b, const mr_error *what)
{
    mr_error failure = MR_ERROR_INIT;
    if (!MRI_IS_OWN(b) || !what) return;
    if (b->in_order && mr_bad_list_has(b, what->sample)) return;
    mr_bad_list_begin(b);
    b->count++;
    if (b->failure.code == MR_OK && add(b, what, &failure) != MR_OK) b->failure = failure;
}

uint64_t mr_bad_list_count(const mr_bad_list *b) { return MRI_IS_OWN(b) ? b->count : 0; }

int mr_bad_list_close(mr_bad_list *b, mr_error *err)
{
    mr_error synced = MR_ERROR_INIT;
    if (!b) return MR_OK;
    if (!MRI_IS_OWN(b)) return mri_error_inherited(err, __func__, "b");
    if (b->out && mr_output_commit(b->out, &synced) != MR_OK && b->failure.code == MR_OK) b->failure = synced;
    const int rc = b->failure.code;
    if (rc != MR_OK && err) *err = b->failure;
    free(b->lines);
    free(b);
    return rc;
}
