/* formats/text/csv_paths.c: see csv_table.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if __has_include(<linux/openat2.h>)
#include <linux/openat2.h>
#endif

#include "base/util.h"
#include "formats/text/csv_table.h"

static bool make_room(mri_csv_table *t)
{
    if (t->paths.count < t->cap) return true;
    const uint32_t cap = t->cap ? 2 * t->cap : 64;
    void *p = realloc(t->size, cap * sizeof *t->size);
    if (p) t->size = p;
    void *q = p ? realloc(t->line, cap * sizeof *t->line) : NULL;
    if (q) t->line = q;
    void *r = q ? realloc(t->label, cap * sizeof *t->label) : NULL;
    if (r) t->label = r;
    if (r) t->cap = cap;
    return r != NULL;
}

static bool is_written_outside(const char *path)
{
    if (path[0] == '/') return true;
    int depth = 0;
    for (const char *p = path; *p && depth >= 0;) {
        const size_t n = strcspn(p, "/");
        if (n == 2 && p[0] == '.' && p[1] == '.') depth--;
        else if (n > 0 && !(n == 1 && p[0] == '.')) depth++;
        p += n;
        while (*p == '/') p++;
    }
    return depth < 0;
}

/* The kernel follows the path, links included, and says when it leaves the folder: false with errno EXDEV.
 * One that is absolute and leads back inside is such a path, too; kernels before 5.6 know nothing of all
 * this. */
static bool is_beneath(const mri_csv_table *t, const char *path)
{
#ifdef RESOLVE_BENEATH
    struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
    const long fd = syscall(SYS_openat2, t->folder, path, &how, sizeof how);
    if (fd >= 0) close((int)fd);
    return fd >= 0;
#else
    (void)t, (void)path;
    errno = ENOSYS;
    return false;
#endif
}

/* MR_OK when the error is this one file's, which the system answered: it is a bad sample, not the end of
 * all. */
static int not_seen(const char *path, int why, mr_error *err)
{
    mr_error found = MR_ERROR_INIT;
    const int rc = mr_error_sys(&found, why, "cannot look at a file that the table names");
    if (mr_error_of_sample(rc, &found)) return MR_OK;
    mri_error_denied(&found, rc);
    if (err) *err = found;
    return mri_error_place(err, rc, path, MR_NOWHERE, MR_NOWHERE);
}

/* The nearest existing parent folder, without links; *found false: no such folder, or a dangling link. */
static int resolve(char *name, char real[PATH_MAX], bool *found, mr_error *err)
{
    struct stat st;
    *found = true;
    while (!realpath(name, real)) {
        int rc = not_seen(name, errno, err);
        const bool link_to_nothing = !rc && lstat(name, &st) == 0;
        if (!rc && !link_to_nothing) rc = not_seen(name, errno, err);
        char *slash = strrchr(name, '/');
        *found = !link_to_nothing && slash && slash != name && strcmp(slash, "/..") != 0;
        if (rc || !*found) return rc;
        *slash = '\0';
    }
    return MR_OK;
}

/* Does it lead out of the folder? The slow way, which is right for all of them. */
static int leads_out_slowly(mri_csv_table *t, const char *folder, const char *path, bool *out, mr_error *err)
{
    char name[4096], real[PATH_MAX];
    bool found;
    *out = true;
    if (!t->real_folder) t->real_folder = realpath(folder, NULL);
    if (!t->real_folder) return not_seen(folder, errno, err);
    const int n = snprintf(name, sizeof name, "%s%s", path[0] == '/' ? "" : folder, path);
    if (n < 0 || (size_t)n >= sizeof name) return MR_OK;
    const int rc = resolve(name, real, &found, err);
    if (rc || !found) return rc;
    *out = !mri_is_below(t->real_folder, real);
    return MR_OK;
}

static int leads_out(const mr_source *src, mri_csv_table *t, const char *path, bool *out, mr_error *err)
{
    char folder[4096];
    *out = false;
    if (is_beneath(t, path)) return MR_OK;
    if (errno == ENOENT || errno == ENOTDIR) return *out = is_written_outside(path), MR_OK;
    snprintf(folder, sizeof folder, "%.*s", (int)t->folder_bytes, src->path);
    if (!folder[0]) strcpy(folder, "./");
    return leads_out_slowly(t, folder, path, out, err);
}

/* The file's size, or an error about the entry of that name. */
static int look_at(const mri_csv_table *t, const char *path, uint32_t *size, mr_error *err)
{
    struct stat st;
    *size = MRI_CSV_NOT_THERE;
    if (fstatat(t->folder, path, &st, 0) != 0) return not_seen(path, errno, err);
    if (S_ISREG(st.st_mode))
        *size = (uint64_t)st.st_size > MRI_CSV_MOST_PICTURE ? MRI_CSV_TOO_LARGE : (uint32_t)st.st_size;
    return MR_OK;
}

int mri_csv_table_not_there(const mri_csv *c, const char *path, mr_error *err)
{
    const char *why =
        strchr(path, '\\')
            ? "names have / between folders, this one has \\: replace them in the table (tr '\\\\' /)"
        : strstr(path, "://")
            ? "addresses are not followed, files only"
            : "paths are relative to the table's folder; a line of column names needs one that is known "
              "(path, file, ...) or asked for (--image-key NAME --label-key NAME); without folder and ending "
              "they are looked for in images/ and in a folder that is called like the table";
    return mri_text_error_at(&c->text, err, MR_ENOENT, c->line, "no file %.200s: %s", path, why);
}

static int check_outside(const mr_source *src, mri_csv_table *t, const mri_csv *c, const char *path,
                         const mr_source_config *cfg, mr_error *err)
{
    bool out;
    const int rc = leads_out(src, t, path, &out, err);
    if (rc || !out) return rc;
    t->absent.outside++;
    if (cfg->outside == MR_OUTSIDE_TAKE) return MR_OK;
    return mri_text_error_at(
        &c->text, err, MR_EINVAL, c->line,
        "%.200s leads out of the table's folder: such files are read only when that is asked "
        "for (--outside take)",
        path);
}

/* ---- one file under several spellings ---- */
/* The last name of a path that is no "..", or n: nothing that ".." could take back. */
static size_t last_name(const char *path, size_t n)
{
    size_t at = n;
    while (at > 0 && path[at - 1] != '/') at--;
    return n - at == 2 && memcmp(path + at, "..", 2) == 0 ? n : at;
}

/* x/.. is nothing where x is a folder; it leads elsewhere where x is a link. */
static bool is_folder_itself(const mri_csv_table *t, const char *path)
{
    struct stat st;
    return fstatat(t->folder, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* The path without "//", "." and "x/..", which may all be left out. out: room for strlen(path) + 1 bytes.
 * Returns its length. */
static size_t normalise(const mri_csv_table *t, const char *path, char *out)
{
    size_t n = 0;
    const bool absolute = path[0] == '/';
    if (absolute) out[n++] = '/';
    for (const char *p = path; *p;) {
        const size_t bytes = strcspn(p, "/");
        const size_t last = last_name(out, n);
        const bool here = bytes == 0 || (bytes == 1 && *p == '.');
        const bool up = bytes == 2 && memcmp(p, "..", 2) == 0;
        out[n] = '\0';
        if (up && last < n && is_folder_itself(t, out)) {
            n = last > (size_t)absolute ? last - 1 : last;
        } else if (!here) {
            if (n > (size_t)absolute) out[n++] = '/';
            memcpy(out + n, p, bytes);
            n += bytes;
        }
        p += bytes + (p[bytes] == '/');
    }
    out[n] = '\0';
    return n;
}

static int add_normal(const mr_source *src, mri_csv_table *t, uint32_t number, uint32_t *known, mr_error *err)
{
    const char *path = mri_name(&t->paths, number);
    bool is_new;
    char *normal = malloc(strlen(path) + 1);
    if (!normal) return mri_csv_table_no_memory(src, err);
    const size_t bytes = normalise(t, path, normal);
    const int rc = mri_csv_table_add_name(src, &t->normal, normal, bytes, known, &is_new, err);
    free(normal);
    return rc;
}

static bool is_spelled_oddly(const char *path)
{
    return strncmp(path, "./", 2) == 0 || strncmp(path, "../", 3) == 0 || strstr(path, "//") ||
           strstr(path, "/./") || strstr(path, "/../");
}

/* From the first path on that is not normal, all are compared in their normal form. *known: the number of the
 * row that has named the file before, or `number`. */
static int find_spelling(const mr_source *src, mri_csv_table *t, uint32_t number, uint32_t *known,
                         mr_error *err)
{
    *known = number;
    if (t->normal.count == 0 && !is_spelled_oddly(mri_name(&t->paths, number))) return MR_OK;
    int rc = MR_OK;
    for (uint32_t k = t->normal.count; !rc && k <= number; k++) rc = add_normal(src, t, k, known, err);
    return rc;
}

/* With the folder and the ending that the table leaves out. */
static const char *whole_path(const mri_csv_table *t, const char *text, size_t *bytes,
                              char whole[3 * NAME_MAX])
{
    if (!t->placed) return text;
    *bytes = (size_t)snprintf(whole, 3 * NAME_MAX, "%s%.*s%s", t->place.before,
                              (int)mri_min_u64(*bytes, NAME_MAX), text, t->place.behind);
    return whole;
}

int mri_csv_table_see_path(const mr_source *src, mri_csv_table *t, const mri_csv *c, mr_error *err)
{
    size_t bytes;
    char whole[3 * NAME_MAX];
    const char *text = mri_csv_trimmed(mri_csv_place(c, t->column.image), &bytes);
    if (bytes == 0) return MR_OK; /* refused where it is taken */
    text = whole_path(t, text, &bytes, whole);
    return mri_csv_named_add(src, &t->named, text, bytes, err);
}

int mri_csv_table_add_path(mr_source *src, mri_csv_table *t, const mri_csv *c, bool first,
                           const mr_source_config *cfg, mr_error *err)
{
    size_t bytes;
    uint32_t number;
    bool is_new;
    const char *text = mri_csv_trimmed(mri_csv_place(c, t->column.image), &bytes);
    int rc = mri_csv_single(c, t->column.image, "picture", err);
    if (rc) return rc;
    if (bytes == 0)
        return mri_text_error_at(&c->text, err, MR_EFORMAT, c->line, "the name of the picture is empty");
    if (!make_room(t)) return mri_csv_table_no_memory(src, err);
    char whole[3 * NAME_MAX];
    text = whole_path(t, text, &bytes, whole);
    rc = mri_csv_table_add_name(src, &t->paths, text, bytes, &number, &is_new, err);
    if (rc) return rc;
    const char *path = mri_name(&t->paths, number);
    if (!is_new)
        return mri_text_error_at(
            &c->text, err, MR_EFORMAT, c->line,
            "%.200s stands in line %u already: a file may be named once (a row for each box is not "
            "read: boxes are a field)",
            path, t->line[number]);
    t->line[number] = (uint32_t)mri_min_u64(c->line, UINT32_MAX);
    uint32_t known;
    rc = find_spelling(src, t, number, &known, err);
    if (rc) return rc;
    if (known != number)
        return mri_text_error_at(&c->text, err, MR_EFORMAT, c->line,
                                 "%.150s stands in line %u already, as %.150s: a file may be named once",
                                 path, t->line[known], mri_name(&t->paths, known));
    rc = check_outside(src, t, c, path, cfg, err);
    if (rc) return rc;
    rc = look_at(t, path, &t->size[number], err);
    if (rc) return rc;
    if (t->size[number] != MRI_CSV_NOT_THERE) return MR_OK;
    if (first) return mri_csv_table_not_there(c, path, err); /* the wrong folder, or a header */
    if (t->absent.missing++ == 0) t->absent.first_line = c->line;
    return MR_OK;
}
