/* pipeline/export/export.c: mr_export().
 *
 * The room pipeline/export/
 *   takes     an open source with pictures
 *   gives     the calls of millrace/export.h: names of files (export_name.h), folders of classes
 *             (export_classes.h), the list of changed names (export_renamed.h)
 *   callers   programs */
#include "millrace/export.h"

#include <errno.h>
#include <fts.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/abi.h"
#include "base/file.h"
#include "formats/source/source.h"
#include "formats/storage/outside.h"
#include "pipeline/export/export_classes.h"
#include "pipeline/export/export_name.h"
#include "pipeline/export/export_renamed.h"

enum { PATH_BYTES = 4096 };

typedef struct export_run {
    const mr_source *src;
    const char *folder;
    const mr_export_config *cfg;
    mr_checker *checker;
    mri_export_names names;
    mri_export_classes classes;
    mri_export_renamed renamed;
    mr_export_result result;
    bool is_bad; /* the sample itself is why export_one() failed */
} export_run;

void mr_export_defaults_sized(mr_export_config *cfg, size_t struct_size)
{
    const mr_export_config all = {0};
    mri_settings_give(cfg, struct_size, &all, sizeof all);
}

/* ---- the path of a file ---- */

static int make_folder(const char *path, mr_error *err)
{
    if (mri_make_folder_deep(path, 0777) || errno == EEXIST) return MR_OK;
    mr_error_sys(err, errno, "cannot make the folder");
    return mr_error_at(err, path, MR_NOWHERE, MR_NOWHERE);
}

/* The folders that path leads through, below the first `done` bytes. */
static int make_folders(char *path, size_t done, mr_error *err)
{
    int rc = MR_OK;
    for (char *slash = strchr(path + done, '/'); !rc && slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        rc = make_folder(path, err);
        *slash = '/';
    }
    return rc;
}

/* "cat", or the number where classes have no names; "" without a label. */
static const char *class_folder(const export_run *r, const mr_sample *sample, char *buf, size_t buf_bytes)
{
    const mr_source_info *info = mr_source_info_of(r->src);
    const int64_t label = info->label_field >= 0 ? sample->value[info->label_field].i : -1;
    if (info->label_field < 0) return "";
    if (label >= 0 && label < (int64_t)r->classes.count) return r->classes.folder[label];
    snprintf(buf, buf_bytes, "%" PRId64, label);
    return buf;
}

/* DIR.names.jsonl, next to the folder: inside it the list would be part of the set. */
static int list_path(const export_run *r, char path[PATH_BYTES], mr_error *err)
{
    size_t n = strlen(r->folder);
    while (n > 1 && r->folder[n - 1] == '/') n--;
    if (snprintf(path, PATH_BYTES, "%.*s.names.jsonl", (int)n, r->folder) < PATH_BYTES) return MR_OK;
    return mr_error_set(err, MR_EINVAL, "the folder's name is too long");
}

static int list_change(export_run *r, uint64_t at, const char *name, const char *file, mr_error *err)
{
    char path[PATH_BYTES];
    const int rc = list_path(r, path, err);
    if (rc) return rc;
    return mri_export_renamed_add(&r->renamed, path, r->src, r->cfg->force || r->cfg->resume, at, name, file,
                                  err);
}

static int list_class(void *context, const char *name, const char *folder, mr_error *err)
{
    export_run *r = context;
    char path[PATH_BYTES];
    const int rc = list_path(r, path, err);
    if (rc) return rc;
    return mri_export_renamed_class(&r->renamed, path, r->src, r->cfg->force || r->cfg->resume, name, folder,
                                    err);
}

/* The path of its file, whose folders are made. */
static int choose_path(export_run *r, uint64_t at, const mr_sample *sample, const void *buffer,
                       const char *extension, bool unchanged, char path[PATH_BYTES], mr_error *err)
{
    char number[32], name[PATH_BYTES] = "", chosen[MRI_EXPORT_NAME_ROOM];
    mr_extent e;
    int rc = mr_source_extent(r->src, at, &e, err);
    if (rc == MR_OK && !r->cfg->numbered)
        rc = mr_source_sample_name_get(r->src, at, buffer, (size_t)e.bytes, name, sizeof name, err);
    if (rc) return rc;
    const mr_source_info *info = mr_source_info_of(r->src);
    const mri_export_sample s = {.name = name,
                                 .class_name = class_folder(r, sample, number, sizeof number),
                                 .ending = extension,
                                 .unchanged = unchanged,
                                 .number = at};
    bool changed;
    if (!mri_export_name(&r->names, &s, chosen, &changed))
        return mr_error_set(err, MR_ENOMEM, "no memory for names");
    if (changed && (rc = list_change(r, at, name, chosen, err)) != MR_OK) return rc;
    if (info->label_field >= 0 &&
        !mri_export_classes_note(&r->classes, info, sample->value[info->label_field].i, chosen))
        return mr_error_set(err, MR_ENOMEM, "no memory for classes");
    const int n = snprintf(path, PATH_BYTES, "%s/%s", r->folder, chosen);
    if (n >= PATH_BYTES) return mr_error_set(err, MR_EINVAL, "the folder's name is too long");
    return make_folders(path, strlen(r->folder) + 1, err);
}

/* ---- a file ---- */

/* How many of these bytes does the file begin with? SIZE_MAX: it is something else. */
static int count_same(const char *path, const struct stat *st, const void *data, size_t bytes, size_t *same,
                      mr_error *err)
{
    char piece[65536];
    *same = SIZE_MAX;
    if (!S_ISREG(st->st_mode) || (uint64_t)st->st_size > bytes) return MR_OK;
    FILE *f = fopen(path, "re");
    size_t at = 0, n = 0;
    while (f && (n = fread(piece, 1, sizeof piece, f)) > 0) {
        if (n > bytes - at || memcmp(piece, (const char *)data + at, n) != 0) break;
        at += n;
    }
    const int rc = f && !ferror(f) ? MR_OK : mr_error_sys(err, errno, "cannot read it to compare it");
    if (f) fclose(f);
    if (rc) return mr_error_at(err, path, MR_NOWHERE, MR_NOWHERE);
    if (n == 0) *same = at;
    return MR_OK;
}

/* A whole file, which mr_output_sync_all() brings to the disk later. */
static int put_file(const export_run *r, const char *path, const void *data, size_t bytes, bool force,
                    mr_error *err)
{
    mr_output_config cfg;
    mr_output_defaults(&cfg);
    cfg.inputs = &r->src;
    cfg.input_count = 1;
    cfg.force = force;
    cfg.unsynced = true;
    return mr_output_whole(path, data, bytes, &cfg, err);
}

static int exists_already(const export_run *r, const char *path, mr_error *err)
{
    mr_error_set(err, MR_EEXIST,
                 r->cfg->resume
                     ? "the file exists and differs from the data: it is not from an earlier run; choose "
                       "another folder, or replace files with --force"
                     : "the file exists; choose another folder, go on with an interrupted run (--resume), or "
                       "replace files with --force");
    return mr_error_at(err, path, MR_NOWHERE, MR_NOWHERE);
}

static int write_file(export_run *r, const char *path, const void *data, size_t bytes, mr_error *err)
{
    struct stat st;
    if (r->cfg->force) return put_file(r, path, data, bytes, true, err);
    if (lstat(path, &st) != 0) {
        if (errno == ENOENT) return put_file(r, path, data, bytes, false, err);
        mr_error_sys(err, errno, "cannot look at it");
        return mr_error_at(err, path, MR_NOWHERE, MR_NOWHERE);
    }
    size_t same = SIZE_MAX;
    const int rc = r->cfg->resume ? count_same(path, &st, data, bytes, &same, err) : MR_OK;
    if (rc) return rc;
    if (same == bytes) {
        r->result.resumed++;
        return MR_OK;
    }
    /* the machine lost power before the rest was on the disk */
    if (same < bytes) return put_file(r, path, data, bytes, true, err);
    return exists_already(r, path, err);
}

/* Bytes and extension of the file for this picture; *made is malloc'd when they are new. */
static int picture_bytes(const export_run *r, const mr_value *v, const void **data, size_t *bytes,
                         void **made, const char **extension, mr_error *err)
{
    *data = v->data;
    *bytes = v->bytes;
    *extension = v->type == MR_TYPE_JPEG || v->type == MR_TYPE_COEF ? "jpg"
                 : v->type == MR_TYPE_PIXELS                        ? "png"
                                                                    : mr_type_name(v->type);
    if (v->type == MR_TYPE_COEF) {
        const int rc = mr_coef_to_jpeg(r->checker, v, r->cfg->decode, made, bytes, err);
        *data = *made;
        return rc;
    }
    if (v->type != MR_TYPE_PIXELS) return MR_OK;
    mr_image image = {0};
    int rc = mr_image_decode(v, r->cfg->decode, &image, err);
    if (rc == MR_OK) rc = mr_image_encode_png(&image, made, bytes, err);
    mr_image_free(&image);
    *data = *made;
    return rc;
}

static int export_one(export_run *r, uint64_t at, void **buffer, size_t *buffer_bytes, mr_error *err)
{
    const mr_source_info *info = mr_source_info_of(r->src);
    mr_sample sample;
    const void *data;
    void *made = NULL;
    size_t bytes;
    const char *extension;
    char path[PATH_BYTES];
    int rc = mr_source_read(r->src, at, buffer, buffer_bytes, &sample, err);
    if (rc == MR_OK)
        rc = picture_bytes(r, &sample.value[info->image_field], &data, &bytes, &made, &extension, err);
    r->is_bad = mr_error_of_sample(rc, err);
    if (rc == MR_OK) rc = choose_path(r, at, &sample, *buffer, extension, made == NULL, path, err);
    if (rc == MR_OK) rc = write_file(r, path, data, bytes, err);
    free(made);
    if (rc) return rc;
    r->result.files++;
    r->result.bytes += bytes;
    return MR_OK;
}

/* ---- space ---- */

typedef struct measured {
    const export_run *run;
    void *buffer;
    size_t buffer_bytes;
} measured;

/* Of the file of one sample; 0: there will be none. */
static uint64_t file_bytes(void *context, uint64_t at)
{
    measured *m = context;
    const int image = mr_source_info_of(m->run->src)->image_field;
    mr_sample sample;
    const void *data;
    void *made = NULL;
    size_t bytes = 0;
    const char *extension;
    int rc = mr_source_read(m->run->src, at, &m->buffer, &m->buffer_bytes, &sample, NULL);
    if (rc == MR_OK) rc = picture_bytes(m->run, &sample.value[image], &data, &bytes, &made, &extension, NULL);
    free(made);
    return rc ? 0 : bytes;
}

/* Of the files that are in the folder. */
static uint64_t written_before(const char *folder)
{
    uint64_t bytes = 0;
    char *const roots[] = {(char *)(uintptr_t)folder, NULL}; /* is not written to */
    FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    for (FTSENT *e; walk && (e = fts_read(walk));)
        if (e->fts_info == FTS_F) bytes += (uint64_t)e->fts_statp->st_blocks * 512;
    if (walk) fts_close(walk);
    return bytes;
}

/* Files that are there already are kept or replaced. */
static int check_space(const export_run *r, mr_error *err)
{
    const uint64_t count = mr_source_info_of(r->src)->count;
    measured m = {.run = r};
    mr_error why = MR_ERROR_INIT;
    uint64_t room, likely, least;
    int rc = mr_output_estimate(count, file_bytes, &m, &likely, &least, err);
    free(m.buffer);
    if (rc) return rc;
    likely += count * 2048; /* the rest of each file's last block */
    const uint64_t before = r->cfg->resume || r->cfg->force ? written_before(r->folder) : 0;
    likely -= before < likely ? before : likely;
    least -= before < least ? before : least;
    rc = mr_output_check_estimate(r->folder, likely, least, &room, &why);
    if (rc && !r->cfg->no_space_check) {
        if (err) *err = why;
        return rc;
    }
    if (r->cfg->space) r->cfg->space(r->cfg->context, likely, room);
    return MR_OK;
}

/* ---- a folder outside of the data ---- */

/* Below what do samples lie that are files of their own? NULL: none of them is one. at: 0 for the data, then
 * one for each set of a mix. */
static const char *folder_of_pictures(const mr_source *src, uint32_t at)
{
    const mr_source_info *info = mr_source_info_of(src);
    mr_extent e;
    if (at == 0) return info->file_count == 0 ? info->path : NULL;
    const mr_mix_set *set = &info->mix[at - 1];
    return mr_source_extent(src, set->first, &e, NULL) == MR_OK && e.file == MR_FILE_OF_SAMPLE ? set->path
                                                                                               : NULL;
}

/* The input that `to` lies in, or NULL. */
static const char *input_around(const mr_source *src, const char *to, bool *unknown)
{
    for (uint32_t k = 0; k <= mr_source_info_of(src)->mix_count; k++) {
        const char *folder = folder_of_pictures(src, k);
        errno = 0;
        char *from = folder ? realpath(folder, NULL) : NULL;
        *unknown |= folder && !from && errno == ENOMEM;
        const bool inside = from && mri_is_below(from, to);
        free(from);
        if (inside) return folder;
    }
    return NULL;
}

/* The folder without links; where it is missing, the folder in which it will be made. NULL: that is missing,
 * too. *unknown: memory was short. */
static char *real_place(const char *folder, bool *unknown)
{
    char *parent = strdup(folder);
    *unknown = !parent;
    if (!parent) return NULL;
    size_t n = strlen(parent);
    while (n > 1 && parent[n - 1] == '/') parent[--n] = '\0';
    char *slash = strrchr(parent, '/');
    errno = 0;
    char *to = realpath(parent, NULL);
    *unknown = !to && errno == ENOMEM;
    if (!to && slash) *slash = '\0';
    if (!to) to = realpath(slash ? (*parent ? parent : "/") : ".", NULL);
    *unknown |= !to && errno == ENOMEM;
    free(parent);
    return to;
}

/* A folder of pictures would get more pictures, and folders that are no classes. */
static int check_not_inside(const export_run *r, mr_error *err)
{
    bool unknown;
    char *to = real_place(r->folder, &unknown);
    const char *around = to ? input_around(r->src, to, &unknown) : NULL;
    free(to);
    if (unknown) mr_error_set(err, MR_ENOMEM, "out of memory: does this lie inside the input?");
    else if (around)
        mr_error_set(err, MR_EINVAL,
                     "this is inside the input (%s) and would be part of it the next time; choose a place "
                     "outside",
                     around);
    else return MR_OK;
    mr_error_at(err, r->folder, MR_NOWHERE, MR_NOWHERE);
    return unknown ? MR_ENOMEM : MR_EINVAL;
}

/* ---- all of it ---- */

/* The list of changed names is kept with a whole export, and one of an earlier export does not stay. */
static int end_list(export_run *r, bool keep, mr_error *err)
{
    char path[PATH_BYTES];
    const bool again = r->cfg->force || r->cfg->resume;
    if (keep && again && !r->renamed.count && !r->renamed.classes && list_path(r, path, err) == MR_OK)
        mri_export_renamed_drop(path);
    return mri_export_renamed_close(&r->renamed, keep, err);
}

static int check(const export_run *r, mr_error *err)
{
    const mr_source_info *info = mr_source_info_of(r->src);
    if (info->image_field >= 0) return check_not_inside(r, err);
    mr_error_set(err, MR_EUNSUPPORTED,
                 "expected pictures, found none; only pictures can be written as files");
    return mr_error_at(err, info->path, MR_NOWHERE, MR_NOWHERE);
}

static int export_samples(export_run *r, mr_error *err)
{
    const uint64_t count = mr_source_info_of(r->src)->count;
    void *buffer = NULL;
    size_t buffer_bytes = 0;
    int rc = MR_OK;
    for (uint64_t at = 0; rc == MR_OK && at < count; at++) {
        mr_error why = MR_ERROR_INIT;
        r->is_bad = false;
        rc = mri_is_stopped(r->cfg->stop) ? mr_error_set(&why, MR_ECANCELED, "the export is not whole")
                                          : export_one(r, at, &buffer, &buffer_bytes, &why);
        if (rc && r->is_bad) {
            mr_error_at(&why, NULL, MR_NOWHERE, at);
            if (r->cfg->on_bad) r->cfg->on_bad(r->cfg->context, &why);
            r->result.bad++;
            rc = MR_OK;
        }
        if (rc && err) *err = why;
        if (r->cfg->on_progress) r->cfg->on_progress(r->cfg->context, at + 1, count);
    }
    free(buffer);
    return rc;
}

static int export_all(export_run *r, mr_error *err)
{
    int rc = mr_checker_create(&r->checker);
    if (rc) return mr_error_set(err, rc, "no memory for decoders");
    rc = check_space(r, err);
    if (rc == MR_OK) rc = make_folder(r->folder, err);
    if (rc == MR_OK)
        rc = mri_export_classes_begin(&r->classes, mr_source_info_of(r->src), list_class, r, err);
    if (rc == MR_OK) rc = export_samples(r, err);
    if (rc == MR_OK) rc = mri_export_classes_make(&r->classes, mr_source_info_of(r->src), r->folder, err);
    mri_export_names_fini(&r->names);
    mri_export_classes_fini(&r->classes);
    mr_checker_destroy(r->checker);
    const int listed = end_list(r, rc == MR_OK, rc ? NULL : err);
    if (rc == MR_OK) rc = listed;
    return rc ? rc : mr_output_sync_all(r->folder, err);
}

int mr_export_sized(const mr_source *src, const char *folder, const mr_export_config *cfg,
                    mr_export_result *out, mr_error *err)
{
    mr_export_config mine;
    mr_decode_config decode;
    export_run r = {.src = src, .folder = folder, .cfg = &mine};
    MRI_OWN(err, src);
    MRI_GIVEN(err, folder);
    int rc = mri_result_check(out, err);
    if (rc) return rc;
    mr_export_defaults(&mine);
    mr_decode_defaults(&decode);
    rc = cfg ? mri_settings_take(&mine, sizeof mine, cfg, "export", err) : MR_OK;
    if (rc) return rc;
    if (!mine.decode) mine.decode = &decode;
    rc = check(&r, err);
    if (rc == MR_OK) rc = export_all(&r, err);
    r.result.renamed = r.renamed.count;
    r.result.renamed_classes = r.renamed.classes;
    if ((r.renamed.count || r.renamed.classes) && rc == MR_OK)
        snprintf(r.result.names_path, sizeof r.result.names_path, "%s", r.renamed.path);
    mri_result_give(out, &r.result, sizeof r.result);
    return rc;
}
