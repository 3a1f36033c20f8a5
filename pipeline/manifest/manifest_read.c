/* pipeline/manifest/manifest_read.c: a manifest as it was written, or as sha256sum wrote it. See manifest.h.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/manifest/manifest.h"

typedef struct reading {
    mri_manifest *m;
    const char *path;
    size_t folder_bytes; /* of path, up to its last slash */
    uint64_t line, bytes, size;
    bool ours, ended, sized;
} reading;

static int wrong(const reading *r, const char *what, mr_error *err)
{
    mr_error_set(err, MR_EFORMAT, "line %" PRIu64 ": %s", r->line, what);
    return mr_error_at(err, r->path, MR_NOWHERE, MR_NOWHERE);
}

static int take_file(reading *r, const mri_manifest_line *l, mr_error *err)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%.*s%s", l->name[0] == '/' ? 0 : (int)r->folder_bytes, r->path,
                 l->name) >= (int)sizeof path)
        return wrong(r, "the path is too long", err);
    if (r->ours && !r->sized)
        return wrong(r, "expected the size of a file (\"# BYTES\"), found the file", err);
    const int rc = mri_manifest_add(r->m, path, err);
    if (rc) return rc;
    mri_manifest_file *f = &r->m->file[r->m->count - 1];
    f->sized = r->sized;
    f->bytes = r->size;
    memcpy(f->sum, l->sum, sizeof f->sum);
    r->bytes += r->size;
    r->sized = false;
    r->size = 0;
    return MR_OK;
}

static int take_line(reading *r, const char *line, size_t bytes, mri_manifest_line *l, mr_error *err)
{
    r->line++;
    if (bytes && line[bytes - 1] == '\r') bytes--;
    const mri_manifest_kind kind = mri_manifest_parse_line(line, bytes, l);
    if (r->ended && kind != MRI_MANIFEST_COMMENT) return wrong(r, "lines after the end line", err);
    switch (kind) {
    case MRI_MANIFEST_HEAD: r->ours = true; return MR_OK;
    case MRI_MANIFEST_SIZE:
        r->sized = true;
        r->size = l->bytes;
        return MR_OK;
    case MRI_MANIFEST_FILE: return take_file(r, l, err);
    case MRI_MANIFEST_END:
        r->ended = true;
        return l->files == r->m->count && l->bytes == r->bytes
                   ? MR_OK
                   : wrong(r,
                           "the end line does not count the files above it: the manifest was changed or cut",
                           err);
    case MRI_MANIFEST_COMMENT: return MR_OK;
    default:
        return wrong(r, "expected \"SHA256  NAME\", a comment, or \"# BYTES\", found something else", err);
    }
}

static int read_lines(reading *r, FILE *f, mr_error *err)
{
    mri_manifest_line *l = malloc(sizeof *l);
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    int rc = l ? MR_OK : mr_error_set(err, MR_ENOMEM, "no memory for a manifest");
    uint64_t all = 0;
    while (!rc && (n = getline(&line, &room, f)) > 0) {
        all += (uint64_t)n;
        if (all > MRI_MANIFEST_MOST_BYTES) rc = mr_error_set(err, MR_ELIMIT, "a manifest over 1 GiB");
        else if (n > MRI_MANIFEST_LINE) rc = wrong(r, "the line is too long", err);
        else rc = take_line(r, line, (size_t)n - (line[n - 1] == '\n'), l, err);
    }
    if (!rc && ferror(f)) rc = mr_error_sys(err, errno, "cannot read");
    if (!rc && r->m->count == 0)
        rc = mr_error_set(err, MR_EFORMAT, "expected lines \"SHA256  NAME\", found no file");
    if (!rc && r->ours && !r->ended)
        rc = mr_error_set(err, MR_EFORMAT, "the end line is missing: the manifest was cut");
    free(line);
    free(l);
    if (rc && err && !err->file[0]) mr_error_at(err, r->path, MR_NOWHERE, MR_NOWHERE);
    return rc;
}

int mri_manifest_read(mri_manifest *m, const char *path, mr_error *err)
{
    const char *slash = strrchr(path, '/');
    reading r = {.m = m, .path = path, .folder_bytes = slash ? (size_t)(slash - path) + 1 : 0};
    FILE *f = fopen(path, "re");
    if (!f) {
        mr_error_sys(err, errno, "cannot open");
        return mr_error_at(err, path, MR_NOWHERE, MR_NOWHERE);
    }
    const int rc = read_lines(&r, f, err);
    fclose(f);
    return rc;
}
