/* pipeline/manifest/manifest_make.c: which files a manifest has, and the text. See manifest.h. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "formats/source/source.h"
#include "pipeline/manifest/manifest.h"

static int no_memory(mr_error *err)
{
    return mr_error_set(err, MR_ENOMEM, "no memory for the names of files");
}

int mri_manifest_add(mri_manifest *m, const char *path, mr_error *err)
{
    if (m->count == m->cap) {
        const uint64_t cap = m->cap ? 2 * m->cap : 64;
        mri_manifest_file *more = realloc(m->file, cap * sizeof *more);
        if (!more) return no_memory(err);
        m->file = more;
        m->cap = cap;
    }
    mri_manifest_file *f = &m->file[m->count];
    *f = (mri_manifest_file){.path = strdup(path), .why = MR_ERROR_INIT};
    if (!f->path) return no_memory(err);
    m->count++;
    return MR_OK;
}

static int by_path(const void *a, const void *b)
{
    const mri_manifest_file *x = a, *y = b;
    return strcmp(x->path, y->path);
}

/* By the bytes of the paths. */
static void sort(mri_manifest *m)
{
    if (m->count > 1) qsort(m->file, m->count, sizeof *m->file, by_path);
}

void mri_manifest_free(mri_manifest *m)
{
    for (uint64_t k = 0; k < m->count; k++) free(m->file[k].path);
    free(m->file);
    *m = (mri_manifest){0};
}

/* ---- which files ---- */
static bool same_file(const char *a, const char *b)
{
    struct stat x, y;
    return a && b && stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static bool is_part(const char *name)
{
    const size_t n = strlen(name);
    return n > 5 && strcmp(name + n - 5, ".part") == 0;
}

static int add_below(mri_manifest *m, const char *folder, const char *without, int depth, mr_error *err)
{
    DIR *d = depth < 64 ? opendir(folder) : NULL;
    int rc = MR_OK;
    if (!d) {
        if (depth >= 64) errno = ELOOP;
        mr_error_sys(err, errno, "cannot list the folder");
        return mr_error_at(err, folder, MR_NOWHERE, MR_NOWHERE);
    }
    for (struct dirent *e; !rc && (errno = 0, e = readdir(d));) {
        char path[PATH_MAX];
        struct stat st;
        if (e->d_name[0] == '.' || is_part(e->d_name)) continue;
        const char *gap = folder[strlen(folder) - 1] == '/' ? "" : "/";
        if (snprintf(path, sizeof path, "%s%s%s", folder, gap, e->d_name) >= (int)sizeof path)
            rc = mr_error_set(err, MR_EINVAL, "a path below %.200s is too long", folder);
        else if (stat(path, &st) != 0) {
            if (errno != ENOENT) rc = mr_error_sys(err, errno, "cannot look at %.400s", path);
        } else if (S_ISDIR(st.st_mode)) rc = add_below(m, path, without, depth + 1, err);
        else if (S_ISREG(st.st_mode) && same_file(path, without)) m->without = true;
        else if (S_ISREG(st.st_mode)) rc = mri_manifest_add(m, path, err);
    }
    if (!rc && errno) {
        mr_error_sys(err, errno, "cannot list the folder");
        rc = mr_error_at(err, folder, MR_NOWHERE, MR_NOWHERE);
    }
    closedir(d);
    return rc;
}

static int add_samples(mri_manifest *m, const mr_source *src, uint64_t first, uint64_t end, mr_error *err)
{
    int rc = MR_OK;
    for (uint64_t k = first; !rc && k < end; k++) {
        char path[PATH_MAX];
        rc = mri_manifest_add(m, mr_source_sample_path(src, k, path, sizeof path), err);
    }
    return rc;
}

/* The sets of a mix whose samples are files of their own: a folder of pictures, a table and the files that it
 * names. Files of the others are files of the mix. */
static int add_mix_set(mri_manifest *m, const mr_source *src, uint32_t at, const char *without, mr_error *err)
{
    const mr_mix_set *set = &mr_source_info_of(src)->mix[at];
    struct stat st;
    mr_extent e;
    int rc = mr_source_extent(src, set->first, &e, err);
    if (rc || e.file != MR_FILE_OF_SAMPLE) return rc;
    if (stat(set->path, &st) == 0 && S_ISDIR(st.st_mode)) return add_below(m, set->path, without, 0, err);
    rc = add_samples(m, src, set->first, set->first + set->count, err);
    return rc ? rc : mri_manifest_add(m, set->path, err);
}

static int add_source(mri_manifest *m, const mr_source *src, const char *without, mr_error *err)
{
    const mr_source_info *info = mr_source_info_of(src);
    int rc = MR_OK;
    for (uint32_t k = 0; !rc && k < info->file_count; k++) {
        mr_source_file f;
        rc = mr_source_file_at(src, k, &f);
        if (rc) return mr_error_set(err, rc, "the data set does not say which files it has");
        rc = mri_manifest_add(m, f.path, err);
    }
    mr_source_file from;
    if (!rc && mri_source_made_from(src, &from)) return mri_manifest_add(m, from.path, err);
    for (uint32_t k = 0; !rc && k < src->beside.count; k++)
        rc = mri_manifest_add(m, src->beside.path[k], err);
    for (uint32_t k = 0; !rc && k < info->mix_count; k++) rc = add_mix_set(m, src, k, without, err);
    if (!rc && info->file_count == 0 && info->mix_count == 0) rc = add_samples(m, src, 0, info->count, err);
    return rc;
}

/* Two sets of a mix may have a file in common. Sorted. */
static void drop_twins(mri_manifest *m)
{
    uint64_t kept = 0;
    for (uint64_t k = 0; k < m->count; k++) {
        if (kept && strcmp(m->file[kept - 1].path, m->file[k].path) == 0) free(m->file[k].path);
        else m->file[kept++] = m->file[k];
    }
    m->count = kept;
}

int mri_manifest_find(mri_manifest *m, const char *path, const mr_source *src, const char *without,
                      mr_error *err)
{
    struct stat st;
    const bool there = stat(path, &st) == 0;
    int rc;
    if (!there && errno != ENOENT && errno != ENOTDIR) { /* a pattern or an address is no file */
        mr_error_sys(err, errno, "cannot look at it");
        return mr_error_at(err, path, MR_NOWHERE, MR_NOWHERE);
    }
    if (there && S_ISDIR(st.st_mode)) rc = add_below(m, path, without, 0, err);
    else rc = src ? add_source(m, src, without, err) : MR_OK;
    bool listed = false;
    for (uint64_t k = 0; !rc && k < m->count; k++) listed = listed || same_file(m->file[k].path, path);
    if (!rc && there && S_ISREG(st.st_mode) && !listed) rc = mri_manifest_add(m, path, err);
    sort(m);
    drop_twins(m);
    return rc;
}

/* ---- the text ---- */
static int put(mr_output *o, char *buffer, size_t *used, const char *text, size_t bytes, mr_error *err)
{
    if (*used + bytes > 65536) {
        const int rc = mr_output_write(o, buffer, *used, err);
        if (rc) return rc;
        *used = 0;
    }
    memcpy(buffer + *used, text, bytes);
    *used += bytes;
    return MR_OK;
}

/* The file's path relative to the manifest's folder. */
static bool name_from(const char *home, const char *path, char out[PATH_MAX])
{
    char real[PATH_MAX];
    const char *slash = strrchr(path, '/');
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    if (!realpath(folder, real)) return false;
    const size_t n = strlen(real), h = strlen(home);
    const char *gap = n > 0 && real[n - 1] == '/' ? "" : "/";
    char whole[2 * PATH_MAX];
    snprintf(whole, sizeof whole, "%s%s%s", real, gap, slash ? slash + 1 : path);
    const bool below = strncmp(whole, home, h) == 0 && (whole[h] == '/' || (h > 0 && home[h - 1] == '/'));
    const char *name = below ? whole + h + (whole[h] == '/') : whole;
    return (size_t)snprintf(out, PATH_MAX, "%s", name) < PATH_MAX;
}

static int put_files(mr_output *o, const mri_manifest *m, const char *home, char *buffer, mr_error *err)
{
    static const char head[] = "# millrace manifest 1\n";
    char line[MRI_MANIFEST_LINE], name[PATH_MAX];
    size_t used = 0;
    uint64_t bytes = 0;
    int rc = put(o, buffer, &used, head, sizeof head - 1, err);
    for (uint64_t k = 0; !rc && k < m->count; k++) {
        const mri_manifest_file *f = &m->file[k];
        if (!name_from(home, f->path, name))
            return mr_error_sys(err, errno, "cannot resolve %.400s", f->path);
        bytes += f->bytes;
        rc = put(o, buffer, &used, line, (size_t)snprintf(line, sizeof line, "# %" PRIu64 "\n", f->bytes),
                 err);
        if (!rc) rc = put(o, buffer, &used, line, mri_manifest_format_line(f->sum, name, line), err);
    }
    const size_t n =
        (size_t)snprintf(line, sizeof line, "# end %" PRIu64 " files %" PRIu64 " bytes\n", m->count, bytes);
    if (!rc) rc = put(o, buffer, &used, line, n, err);
    return rc ? rc : mr_output_write(o, buffer, used, err);
}

int mri_manifest_write(const mri_manifest *m, const char *path, const mr_source *src, bool force,
                       mr_error *err)
{
    mr_output_config cfg;
    mr_output *o;
    char folder[PATH_MAX], home[PATH_MAX];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    mr_output_defaults(&cfg);
    cfg.force = force;
    cfg.inputs = &src;
    cfg.input_count = 1;
    int rc = mr_output_open(&o, path, &cfg, err);
    if (rc) return rc;
    char *buffer = malloc(65536 + MRI_MANIFEST_LINE);
    if (!buffer) rc = no_memory(err);
    else if (!realpath(folder, home)) rc = mr_error_sys(err, errno, "cannot resolve the manifest's folder");
    else rc = put_files(o, m, home, buffer, err);
    free(buffer);
    if (!rc) return mr_output_commit(o, err);
    mr_output_abandon(o, false);
    return rc;
}
