/* formats/mix/mix_file.c: see mix_file.h. */
#include "formats/mix/mix_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/number.h"
#include "base/utf8.h"
#include "base/util.h"
#include "formats/remote/remote_url.h"

static const char first_words[] = "millrace mix", first_line[] = "millrace mix 1", blanks[] = " \t";
#define MOST_BYTES ((off_t)1 << 20)
/* Of shares: ratios between them stay numbers above 0. */
#define SHARE_LEAST 1e-9
#define SHARE_MOST  1e9

bool mri_mix_magic(const void *head, size_t bytes)
{
    const size_t len = sizeof first_words - 1;
    const char *p = bytes > len ? mri_skip_mark(head) : head;
    bytes -= (size_t)(p - (const char *)head);
    return bytes > len && memcmp(p, first_words, len) == 0 && p[len] && strchr(" \t\r\n", p[len]);
}

void mri_mix_file_fini(mri_mix_file *f)
{
    free(f->text);
    free(f->set);
    *f = (mri_mix_file){0};
}

MR_PRINTF(4, 5) static int wrong(mr_error *err, const char *path, size_t line, const char *format, ...)
{
    char what[600];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    mr_error_set(err, MR_EFORMAT, "line %zu: %s", line, what);
    return mri_error_place(err, MR_EFORMAT, path, MR_NOWHERE, MR_NOWHERE);
}

static int load(mri_mix_file *f, const char *path, size_t *bytes, mr_error *err)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    if (fd < 0)
        return mri_error_place(err, mr_error_sys(err, errno, "cannot open"), path, MR_NOWHERE, MR_NOWHERE);
    int rc = MR_OK;
    if (fstat(fd, &st) != 0) rc = mr_error_sys(err, errno, "cannot look at it");
    else if (!S_ISREG(st.st_mode)) rc = mr_error_set(err, MR_EFORMAT, "expected a text, found no file");
    else if (st.st_size > MOST_BYTES)
        rc = mr_error_set(err, MR_ELIMIT, "expected a text of 1 MiB at most, found %lld bytes",
                          (long long)st.st_size);
    else if (!(f->text = malloc((size_t)st.st_size + 1)))
        rc = mr_error_set(err, MR_ENOMEM, "no memory for a list of data sets");
    else rc = mri_pread_all(fd, f->text, (size_t)st.st_size, 0, path, err);
    close(fd);
    if (rc) return mri_error_place(err, rc, path, MR_NOWHERE, MR_NOWHERE);
    *bytes = (size_t)st.st_size;
    f->text[*bytes] = '\0';
    return MR_OK;
}

/* Parse digits, a point and an exponent; strtod() alone would also accept "inf" and "0x1p3". *end is after
 * the number. */
static bool take_share(const char *line, double *share, char **end)
{
    const size_t len = strspn(line, "+-.0123456789eE");
    *share = mri_strtod(line, end);
    return len > 0 && *end == line + len && *share >= SHARE_LEAST && *share <= SHARE_MOST;
}

static int take_line(mri_mix_file *f, const char *path, size_t number, char *line, mr_error *err)
{
    mri_mix_line one = {.line = number};
    char *end, shown[400];
    mr_text_shown(line, shown, sizeof shown);
    if (!take_share(line, &one.share, &end))
        return wrong(err, path, number,
                     "expected a share, a number from %g to %g, and the path of a data set, found \"%s\"",
                     SHARE_LEAST, SHARE_MOST, shown);
    one.path = end + strspn(end, blanks);
    if (one.path == end || !*one.path)
        return wrong(err, path, number, "expected blanks and a path after the share, found \"%s\"", shown);
    if (f->count == MRI_MIX_MOST)
        return wrong(err, path, number, "expected at most %d data sets, found one more", MRI_MIX_MOST);
    if ((f->count & (f->count - 1)) == 0) { /* full at every power of two */
        mri_mix_line *more = realloc(f->set, (f->count ? 2 * (size_t)f->count : 1) * sizeof *more);
        if (!more) return mr_error_set(err, MR_ENOMEM, "no memory for a list of data sets");
        f->set = more;
    }
    f->set[f->count++] = one;
    return MR_OK;
}

static int check_first(const char *path, const char *line, mr_error *err)
{
    char shown[400];
    if (strcmp(line, first_line) == 0) return MR_OK;
    return wrong(err, path, 1, "expected \"%s\", found \"%s\"", first_line,
                 mr_text_shown(line, shown, sizeof shown));
}

static int take_lines(mri_mix_file *f, const char *path, mr_error *err)
{
    int rc = MR_OK;
    size_t number = 1;
    char *const text = f->text + (mri_skip_mark(f->text) - f->text);
    for (char *line = text, *next; !rc && line; line = next, number++) {
        char *end = line + strcspn(line, "\n");
        next = *end ? end + 1 : NULL;
        if (end > line && end[-1] == '\r') end--;
        *end = '\0';
        if (number == 1) {
            rc = check_first(path, line, err);
            continue;
        }
        while (end > line && strchr(blanks, end[-1])) *--end = '\0';
        line += strspn(line, blanks);
        if (*line && *line != '#') rc = take_line(f, path, number, line, err);
    }
    if (!rc && f->count == 0)
        rc = wrong(err, path, number - 1, "expected a line with a share and a path, found none");
    return rc;
}

int mri_mix_file_read(mri_mix_file *f, const char *path, mr_error *err)
{
    *f = (mri_mix_file){0};
    size_t bytes = 0;
    int rc = load(f, path, &bytes, err);
    if (!rc && strlen(f->text) != bytes) rc = wrong(err, path, 1, "expected text, found a zero byte in it");
    if (!rc) rc = take_lines(f, path, err);
    double all = 0;
    for (uint32_t k = 0; k < f->count; k++) all += f->set[k].share;
    for (uint32_t k = 0; k < f->count; k++) f->set[k].share /= all;
    if (rc) mri_mix_file_fini(f);
    return rc;
}

char *mri_mix_resolve(const char *mix_path, const char *path)
{
    const char *slash = strrchr(mix_path, '/');
    const size_t folder = slash && path[0] != '/' && !mri_is_url(path) ? (size_t)(slash - mix_path) + 1 : 0,
                 len = strlen(path) + 1;
    char *out = malloc(folder + len);
    if (!out) return NULL;
    memcpy(out, mix_path, folder);
    memcpy(out + folder, path, len);
    return out;
}
