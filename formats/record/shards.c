/* formats/record/shards.c: read and write shard lists.
 *
 *   millrace shards 1
 *   1000 train-00000.mrec
 *   1000 train-00001.mrec
 *   end 2 shards 2000 records
 *
 * The last line tells a whole list from one cut short. */
#include "formats/record/shards.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "formats/source/source.h"

static const char first_line[] = "millrace shards 1\n";
#define MAX_LIST_BYTES ((off_t)64 << 20)

bool mri_shards_magic(const void *head, size_t bytes)
{
    const size_t len = sizeof first_line - 1;
    return bytes >= len && memcmp(head, first_line, len) == 0;
}

void mri_shards_fini(mri_shards *s)
{
    free(s->text);
    free(s->shard);
    *s = (mri_shards){0};
}

/* ---- read ---- */
static int wrong(mr_error *err, const char *path, size_t line, const char *what)
{
    mr_error_set(err, MR_EFORMAT, "line %zu: %s", line, what);
    return mri_error_place(err, MR_EFORMAT, path, MR_NOWHERE, MR_NOWHERE);
}

static int load(mri_shards *s, const char *path, size_t *bytes, mr_error *err)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0)
        return mri_error_place(err, mr_error_sys(err, errno, "cannot open"), path, MR_NOWHERE, MR_NOWHERE);
    int rc = MR_OK;
    if (fstat(fd, &st) != 0) rc = mr_error_sys(err, errno, "cannot look at it");
    else if (st.st_size > MAX_LIST_BYTES) rc = mr_error_set(err, MR_ELIMIT, "a shard list over 64 MiB");
    else if (!(s->text = malloc((size_t)st.st_size + 1)))
        rc = mr_error_set(err, MR_ENOMEM, "no memory for a shard list");
    else rc = mri_pread_all(fd, s->text, (size_t)st.st_size, 0, path, err);
    close(fd);
    if (rc) return mri_error_place(err, rc, path, MR_NOWHERE, MR_NOWHERE);
    *bytes = (size_t)st.st_size;
    s->text[*bytes] = '\0';
    return MR_OK;
}

/* Decimal digits only; false on anything else or overflow. *at moves behind them. */
static bool number(char **at, uint64_t *out)
{
    uint64_t v = 0;
    char *p = *at;
    for (; *p >= '0' && *p <= '9'; p++)
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
            return false;
    const bool any = p > *at;
    *at = p;
    *out = v;
    return any;
}

static int end_line(const mri_shards *s, const char *path, size_t line_at, const char *line, mr_error *err)
{
    char expected[96];
    snprintf(expected, sizeof expected, "end %u shards %llu records", s->count,
             (unsigned long long)s->records);
    if (strcmp(line, expected) == 0) return MR_OK;
    mr_error_set(err, MR_EFORMAT, "line %zu: expected \"%s\" after the shards above it", line_at, expected);
    return mri_error_place(err, MR_EFORMAT, path, MR_NOWHERE, MR_NOWHERE);
}

static int shard_line(mri_shards *s, const char *path, size_t line_at, char *line, mr_error *err)
{
    uint64_t count;
    char *p = line;
    if (!number(&p, &count) || *p != ' ' || p[1] == '\0')
        return wrong(err, path, line_at, "expected a number of records, a space and a path, or the end line");
    if (__builtin_add_overflow(s->records, count, &s->records))
        return wrong(err, path, line_at, "more records than can be counted");
    s->shard[s->count++] = (mri_shard){count, p + 1};
    return MR_OK;
}

int mri_shards_read(mri_shards *s, const char *path, mr_error *err)
{
    *s = (mri_shards){0};
    size_t bytes = 0, lines = 0;
    int rc = load(s, path, &bytes, err);
    if (!rc && !mri_shards_magic(s->text, bytes)) rc = wrong(err, path, 1, "expected \"millrace shards 1\"");
    if (!rc && (strlen(s->text) != bytes || s->text[bytes - 1] != '\n'))
        rc = wrong(err, path, 1,
                   "a zero byte inside, or no line end at the end: the list is cut short or no text");
    for (size_t k = 0; !rc && k < bytes; k++) lines += s->text[k] == '\n';
    if (!rc && !(s->shard = malloc(lines * sizeof *s->shard)))
        rc = mr_error_set(err, MR_ENOMEM, "no memory for a shard list");
    bool ended = false;
    char *line = s->text ? s->text + sizeof first_line - 1 : NULL;
    for (size_t k = 2; !rc && k <= lines; k++) {
        char *end = strchr(line, '\n');
        *end = '\0';
        if (ended) rc = wrong(err, path, k, "lines after the end line");
        else if (strncmp(line, "end ", 4) == 0) ended = true, rc = end_line(s, path, k, line, err);
        else rc = shard_line(s, path, k, line, err);
        line = end + 1;
    }
    if (!rc && !ended) rc = wrong(err, path, lines + 1, "expected the end line: the list is cut short");
    if (!rc && s->count == 0) rc = wrong(err, path, 2, "no shards");
    if (rc) mri_shards_fini(s);
    return rc;
}

static size_t folder_bytes(const char *path) /* up to the last slash, it included */
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

char *mri_shards_resolve(const char *list_path, const char *shard_path)
{
    const size_t folder = shard_path[0] == '/' ? 0 : folder_bytes(list_path), len = strlen(shard_path) + 1;
    char *out = malloc(folder + len);
    if (!out) return NULL;
    memcpy(out, list_path, folder);
    memcpy(out + folder, shard_path, len);
    return out;
}

/* ---- write ---- */
/* The folder of path with links resolved, ending in a slash. */
static bool real_folder(const char *path, char out[PATH_MAX + 1])
{
    char folder[PATH_MAX];
    const size_t len = folder_bytes(path);
    if (len >= sizeof folder) return false;
    memcpy(folder, len ? path : ".", len ? len : 1);
    folder[len ? len : 1] = '\0';
    if (!realpath(folder, out)) return false;
    const size_t n = strlen(out);
    if (out[n - 1] != '/') memcpy(out + n, "/", 2);
    return true;
}

static int write_lines(FILE *f, const char *list_path, const char *const *paths, const uint64_t *counts,
                       uint32_t path_count, mr_error *err)
{
    char home[PATH_MAX + 1], folder[PATH_MAX + 1];
    uint64_t records = 0;
    if (!real_folder(list_path, home)) return mr_error_sys(err, errno, "cannot resolve the list's folder");
    fputs(first_line, f);
    for (uint32_t k = 0; k < path_count; k++) {
        if (strchr(paths[k], '\n'))
            return mr_error_set(err, MR_EINVAL, "a shard's path has a line end in it");
        if (!real_folder(paths[k], folder))
            return mr_error_sys(err, errno, "cannot resolve the folder of %s", paths[k]);
        const size_t len = strlen(home);
        const char *shown = strncmp(folder, home, len) == 0 ? folder + len : folder;
        fprintf(f, "%llu %s%s\n", (unsigned long long)counts[k], shown, paths[k] + folder_bytes(paths[k]));
        if (__builtin_add_overflow(records, counts[k], &records))
            return mr_error_set(err, MR_EINVAL, "too many records");
    }
    fprintf(f, "end %u shards %llu records\n", path_count, (unsigned long long)records);
    if (fflush(f) != 0 || ferror(f) || fsync(fileno(f)) != 0)
        return mr_error_sys(err, errno, "cannot write the list");
    return MR_OK;
}

static int write_part_file(const char *part, const char *list_path, const char *const *paths,
                           const uint64_t *counts, uint32_t path_count, mr_error *err)
{
    FILE *f = fopen(part, "we");
    if (!f)
        return mri_error_place(err, mr_error_sys(err, errno, "cannot make the file aside"), part, MR_NOWHERE,
                               MR_NOWHERE);
    int rc = write_lines(f, list_path, paths, counts, path_count, err);
    if (fclose(f) != 0 && !rc) rc = mr_error_sys(err, errno, "cannot write the list");
    if (rc) mri_error_place(err, rc, part, MR_NOWHERE, MR_NOWHERE);
    return rc;
}

int mr_shards_write(const char *list_path, const char *const *paths, const uint64_t *counts,
                    uint32_t path_count, bool force, mr_error *err)
{
    if (path_count == 0) return mr_error_set(err, MR_EINVAL, "a shard list needs shards");
    if (!force && access(list_path, F_OK) == 0)
        return mri_error_place(
            err, mr_error_set(err, MR_EEXIST, "it exists already: remove it, or force it to be replaced"),
            list_path, MR_NOWHERE, MR_NOWHERE);
    char part[PATH_MAX];
    if ((size_t)snprintf(part, sizeof part, "%s.part", list_path) >= sizeof part)
        return mr_error_set(err, MR_EINVAL, "the list's path is too long");
    int rc = write_part_file(part, list_path, paths, counts, path_count, err);
    if (!rc && rename(part, list_path) != 0)
        rc = mri_error_place(err, mr_error_sys(err, errno, "cannot take this name"), list_path, MR_NOWHERE,
                             MR_NOWHERE);
    if (rc) {
        unlink(part);
        return rc;
    }
    return mri_sync_folder_of(list_path, err);
}
