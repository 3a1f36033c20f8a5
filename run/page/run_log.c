/* run/page/run_log.c: see run_log.h. */
#include "run/page/run_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BYTES_MOST ((size_t)1 << 30)

/* ---- the bytes ---- */

static int at_file(const char *path, mr_error *err) { return mr_error_at(err, path, MR_NOWHERE, MR_NOWHERE); }

static int read_all(int fd, char **text, size_t *bytes, mr_error *err)
{
    size_t room = 65536;
    *bytes = 0;
    *text = malloc(room + 1);
    while (*text) {
        const ssize_t n = read(fd, *text + *bytes, room - *bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return mr_error_sys(err, errno, "cannot read it");
        if (n == 0) {
            (*text)[*bytes] = '\0';
            return MR_OK;
        }
        *bytes += (size_t)n;
        if (*bytes >= BYTES_MOST)
            return mr_error_set(err, MR_ELIMIT, "more than 1 GiB: too long for one page");
        if (*bytes < room) continue;
        room *= 2;
        char *more = realloc(*text, room + 1);
        if (!more) break;
        *text = more;
    }
    return mr_error_set(err, MR_ENOMEM, "out of memory");
}

int mri_run_log_bytes(const char *path, char **text, size_t *bytes, mr_error *err)
{
    struct stat st;
    *text = NULL;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        mr_error_sys(err, errno, "cannot open it");
        return at_file(path, err);
    }
    int rc = MR_OK;
    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
        rc = mr_error_set(err, MR_EINVAL, "a folder; expected a file that train --json > FILE has written");
    if (rc == MR_OK) rc = read_all(fd, text, bytes, err);
    close(fd);
    return rc ? at_file(path, err) : MR_OK;
}

/* ---- its lines ---- */

static bool add(mri_run_events *e, const cJSON *node)
{
    if ((e->count & (e->count - 1)) == 0) { /* full at every power of two */
        const cJSON **more = realloc(e->at, (e->count ? 2 * e->count : 1) * sizeof *more);
        if (!more) return false;
        e->at = more;
    }
    e->at[e->count++] = node;
    return true;
}

static bool keep_tree(mri_run_log *r, cJSON *t)
{
    if ((r->tree_count & (r->tree_count - 1)) == 0) {
        cJSON **more = realloc(r->trees, (r->tree_count ? 2 * r->tree_count : 1) * sizeof *more);
        if (!more) {
            cJSON_Delete(t);
            return false;
        }
        r->trees = more;
    }
    r->trees[r->tree_count++] = t;
    return true;
}

/* Of a file that several runs were appended to the last one counts. */
static void begin_run(mri_run_log *r, const cJSON *start, const char *text)
{
    r->start = start;
    r->start_text = text;
    r->end = NULL;
    r->runs++;
    r->reports.count = r->steps.count = r->evals.count = r->bad.count = 0;
}

static bool take_event(mri_run_log *r, const cJSON *line, const char *text)
{
    const char *event = mri_json_text_of(line, "event");
    if (!event) r->others++;
    else if (strcmp(event, "start") == 0) begin_run(r, line, text);
    else if (strcmp(event, "epoch") == 0 || strcmp(event, "profile_run") == 0) return add(&r->reports, line);
    else if (strcmp(event, "step") == 0) return add(&r->steps, line);
    else if (strcmp(event, "eval") == 0) return add(&r->evals, line);
    else if (strcmp(event, "bad") == 0) return add(&r->bad, line);
    else if (strcmp(event, "train") == 0) r->end = line;
    else if (strcmp(event, "profile") == 0) {
        r->end = line;
        r->is_profile = true;
    } else r->others++;
    return true;
}

static bool take_line(mri_run_log *r, const char *text, size_t bytes, bool is_last)
{
    size_t at;
    while (bytes && (text[bytes - 1] == '\r' || text[bytes - 1] == ' ')) bytes--;
    r->lines++;
    if (bytes == 0) return true;
    cJSON *t = mri_json_read(text, bytes, &at);
    if (t) return keep_tree(r, t) && take_event(r, t, text);
    if (is_last && text[0] == '{') r->is_cut = true;
    else if (r->no_json++ == 0) r->no_json_at = r->lines;
    return true;
}

static int take_lines(mri_run_log *r, size_t bytes, mr_error *err)
{
    const char *at = r->text, *const end = r->text + bytes;
    while (at < end) {
        const char *line_end = memchr(at, '\n', (size_t)(end - at));
        const size_t n = (size_t)((line_end ? line_end : end) - at);
        if (!take_line(r, at, n, !line_end)) return mr_error_set(err, MR_ENOMEM, "out of memory");
        at += n + 1;
    }
    return MR_OK;
}

int mri_run_log_take(mri_run_log *out, const char *path, char *text, size_t bytes, mr_error *err)
{
    *out = (mri_run_log){.path = path, .text = text};
    const int rc = take_lines(out, bytes, err);
    if (rc || out->start || out->reports.count) return rc;
    return mr_error_set(
        err, MR_EFORMAT,
        "expected what train --json or profile --json prints, found %zu line%s without a run, %zu of "
        "them no JSON%s",
        out->lines, out->lines == 1 ? "" : "s", out->no_json, bytes ? "" : " (the file is empty)");
}

int mri_run_log_read(mri_run_log *out, const char *path, mr_error *err)
{
    char *text;
    size_t bytes;
    *out = (mri_run_log){.path = path};
    int rc = mri_run_log_bytes(path, &text, &bytes, err);
    out->text = text;
    if (rc) return rc;
    rc = mri_run_log_take(out, path, text, bytes, err);
    return rc ? at_file(path, err) : MR_OK;
}

void mri_run_log_free(mri_run_log *r)
{
    for (size_t i = 0; i < r->tree_count; i++) cJSON_Delete(r->trees[i]);
    free(r->trees);
    free(r->reports.at);
    free(r->steps.at);
    free(r->evals.at);
    free(r->bad.at);
    free(r->text);
    *r = (mri_run_log){.path = NULL};
}
