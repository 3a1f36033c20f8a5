/* formats/record/shards_write.c: write a shard list of version 2. The header of every file is read for it:
 * the list contains facts read from the files, never a caller's assumptions. */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/util.h"
#include "formats/record/shards.h"
#include "formats/storage/output.h"

/* ---- facts of the files ---- */
static int look_at(mri_shard *line, mri_shard_facts *facts, mr_mrec **first, mr_error *err)
{
    mr_mrec *m;
    if (strchr(line->path, '\n')) return mr_error_set(err, MR_EINVAL, "a shard's path has a line end in it");
    int rc = mr_mrec_open(&m, line->path, 0, err);
    if (rc) return rc;
    rc = mri_shard_check(line, NULL, m, err);
    if (!rc && *first) rc = mri_shard_check_meta(*first, m, err);
    if (!rc) rc = mri_shard_facts_add(facts, m, true, err);
    line->file_bytes = m->h.file_bytes;
    line->fingerprint = m->h.fingerprint;
    if (*first || rc) mr_mrec_close(m);
    else *first = m;
    return rc;
}

static int look_at_all(mri_shards *s, const char *const *paths, const uint64_t *counts, mr_error *err)
{
    mr_mrec *first = NULL;
    int rc = MR_OK;
    mri_shard_facts_init(&s->facts);
    for (uint32_t k = 0; !rc && k < s->count; k++) {
        s->shard[k] = (mri_shard){.count = counts[k], .path = paths[k]};
        rc = look_at(&s->shard[k], &s->facts, &first, err);
        s->records += counts[k]; /* of files that are there: fewer than their bytes */
    }
    mr_mrec_close(first);
    return rc;
}

/* ---- lines ---- */
typedef struct lines {
    FILE *file;
    uint32_t crc;
    int why; /* errno of the first write that failed */
} lines;

/* Longer than any line: a path of the system's, and numbers. */
static MR_PRINTF(2, 3) void put(lines *out, const char *format, ...)
{
    char line[2 * PATH_MAX + 512];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    out->crc = mr_crc32c(out->crc, line, strlen(line));
    if (fputs(line, out->file) < 0 && !out->why) out->why = errno;
}

static void put_facts(lines *out, const mri_shard_facts *f)
{
    char labels[64] = "none";
    if (f->has_labels)
        snprintf(labels, sizeof labels, "%lld %lld", (long long)f->label_min, (long long)f->label_max);
    put(out,
        "set fingerprint %016llx schema %08x classes %08x bytes %llu largest %llu "
        "coefficients %d labels %s\n",
        (unsigned long long)f->fingerprint, f->schema_crc, f->classes_crc,
        (unsigned long long)f->record_bytes_total, (unsigned long long)f->record_bytes_max, f->coef, labels);
}

/* The folder of path with links resolved, ending in a slash. */
static bool real_folder(const char *path, char out[PATH_MAX + 1])
{
    char folder[PATH_MAX];
    const size_t len = mri_shards_folder_bytes(path);
    if (len >= sizeof folder) return false;
    memcpy(folder, len ? path : ".", len ? len : 1);
    folder[len ? len : 1] = '\0';
    if (!realpath(folder, out)) return false;
    const size_t n = strlen(out);
    if (out[n - 1] != '/') memcpy(out + n, "/", 2);
    return true;
}

static int put_shard(lines *out, const mri_shard *s, const char *home, mr_error *err)
{
    char folder[PATH_MAX + 1];
    if (!real_folder(s->path, folder))
        return mr_error_sys(err, errno, "cannot resolve the folder of %s", s->path);
    const size_t len = strlen(home);
    const char *shown = strncmp(folder, home, len) == 0 ? folder + len : folder;
    put(out, "%llu %llu %016llx %s%s\n", (unsigned long long)s->count, (unsigned long long)s->file_bytes,
        (unsigned long long)s->fingerprint, shown, s->path + mri_shards_folder_bytes(s->path));
    return MR_OK;
}

static int put_lines(mri_output *o, const mri_shards *s, mr_error *err)
{
    char home[PATH_MAX + 1];
    lines out = {.file = mri_output_stream(o, err)};
    int rc = MR_OK;
    if (!out.file) return err && err->code ? err->code : MR_EIO;
    if (!real_folder(mri_output_path(o), home))
        rc = mr_error_sys(err, errno, "cannot resolve the list's folder");
    put(&out, "millrace shards %d\n", MRI_SHARDS_FACTS);
    put_facts(&out, &s->facts);
    for (uint32_t k = 0; !rc && k < s->count; k++) rc = put_shard(&out, &s->shard[k], home, err);
    fprintf(out.file, "end %u shards %llu records checksum %08x\n", s->count, (unsigned long long)s->records,
            out.crc);
    if (!rc && out.why) rc = mr_error_sys(err, out.why, "cannot write it");
    return rc ? mri_error_place(err, rc, mri_output_part(o), MR_NOWHERE, MR_NOWHERE) : MR_OK;
}

static int fill_list(mri_shards *s, mri_output *o, const char *const *paths, const uint64_t *counts,
                     mr_error *err)
{
    int rc = look_at_all(s, paths, counts, err);
    if (!rc) rc = put_lines(o, s, err);
    return rc ? rc : mri_output_commit(o, NULL, NULL, err);
}

static int write_list(mri_shards *s, const char *list_path, const char *const *paths, const uint64_t *counts,
                      bool force, mr_error *err)
{
    const mri_output_rules rules = {.force = force, .take_part = force};
    mri_output *o;
    int rc = mri_output_open(&o, list_path, &rules, err);
    if (rc) return rc;
    rc = fill_list(s, o, paths, counts, err);
    mri_output_close(o, false);
    return rc;
}

int mri_shards_write_to(mri_output *o, const char *const *paths, const uint64_t *counts, uint32_t path_count,
                        mr_error *err)
{
    mri_shards s = {.version = MRI_SHARDS_FACTS, .count = path_count};
    s.shard = calloc(path_count, sizeof *s.shard);
    if (!s.shard) return mr_error_set(err, MR_ENOMEM, "no memory for a list of %u shards", path_count);
    const int rc = fill_list(&s, o, paths, counts, err);
    free(s.shard);
    return rc;
}

int mr_shards_write(const char *list_path, const char *const *paths, const uint64_t *counts,
                    uint32_t path_count, bool force, mr_error *err)
{
    MRI_GIVEN(err, list_path);
    if (path_count == 0) return mr_error_set(err, MR_EINVAL, "a shard list needs shards");
    MRI_GIVEN(err, paths);
    MRI_GIVEN(err, counts);
    for (uint32_t i = 0; i < path_count; i++)
        if (!paths[i]) return mr_error_set(err, MR_EINVAL, "mr_shards_write: path %u must not be NULL", i);
    mri_shards s = {.version = MRI_SHARDS_FACTS, .count = path_count};
    s.shard = calloc(path_count, sizeof *s.shard);
    if (!s.shard) return mr_error_set(err, MR_ENOMEM, "no memory for a list of %u shards", path_count);
    const int rc = write_list(&s, list_path, paths, counts, force, err);
    free(s.shard);
    return rc;
}
