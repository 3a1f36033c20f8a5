/* formats/source.c: any data set behind one face: find its format by content, then hand every call to it.
 *
 * Checks that all formats share (is the sample there, is the split there) are made here once. No format is named below
 * the table. */
#include "formats/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "formats/classes.h"
#include "formats/filelist.h"
#include "formats/gunzip.h"
#include "formats/mrec.h"
#include "formats/remote_view.h"
#include "formats/settings.h"
#include "formats/value.h"

/* Surest signature first; "folder" takes every folder that no other format knows. */
static const mri_source_ops *const formats[] = {
    &mri_source_mrec, &mri_source_shards, &mri_source_tar, &mri_source_recordio, &mri_source_idx, &mri_source_npy,
    &mri_source_tfrecord, &mri_source_cifar, &mri_source_pixels, &mri_source_csv, &mri_source_sequence, &mri_source_folder,
};

uint32_t    mr_source_format_count(void) { return (uint32_t)MRI_ARRAY_COUNT(formats); }
const char *mr_source_format_name(uint32_t at) { return at < MRI_ARRAY_COUNT(formats) ? formats[at]->name : NULL; }
const char *mr_source_format_help(uint32_t at) { return at < MRI_ARRAY_COUNT(formats) ? formats[at]->help : NULL; }

void mr_source_defaults(mr_source_config *cfg)
{
    *cfg = (mr_source_config){.struct_size = sizeof *cfg, .memory_bytes = (uint64_t)1 << 30, .label_offset = MR_LABEL_AUTO,
                              .remote_bytes = (uint64_t)16 << 30};
}

int mri_told(mr_error *err, int code, const char *path, uint64_t offset, uint64_t sample)
{
    mr_error_at(err, path, offset, sample);
    return code;
}

void mri_source_set_image_label(mr_source *src, mr_field image)
{
    src->fields[0] = image;
    src->fields[1] = mri_field("label", MR_TYPE_INT);
    src->info.fields = src->fields;
    src->info.field_count = 2;
    src->info.image_field = 0;
    src->info.label_field = 1;
}

int mri_source_budget(const mr_source_config *cfg, uint64_t bytes, const char *path, mr_error *err)
{
    if (bytes <= cfg->memory_bytes) return MR_OK;
    mr_error_set(err, MR_ELIMIT, "names, labels or index need more than the %llu bytes allowed: allow more memory, or "
                 "convert to record files", (unsigned long long)cfg->memory_bytes);
    return mri_told(err, MR_ELIMIT, path, MR_NOWHERE, MR_NOWHERE);
}

/* ---- which format ---- */
static int list_formats(mr_error *err, const char *path, const char *what)
{
    char   names[512];
    size_t at = 0;
    names[0] = '\0';
    for (size_t k = 0; k < MRI_ARRAY_COUNT(formats) && at < sizeof names; k++)
        at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", k ? ", " : "", formats[k]->name);
    mr_error_set(err, MR_EUNSUPPORTED, "%s; known formats: %s", what, names);
    return mri_told(err, MR_EUNSUPPORTED, path, MR_NOWHERE, MR_NOWHERE);
}

/* "cifar" also answers to "cifar10", as mr_source_info calls it. */
static const mri_source_ops *by_name(const char *name)
{
    for (size_t k = 0; k < MRI_ARRAY_COUNT(formats); k++) {
        const size_t len = strlen(formats[k]->name);
        if (strncmp(name, formats[k]->name, len) == 0 && strspn(name + len, "0123456789") == strlen(name + len))
            return formats[k];
    }
    return NULL;
}

static int read_head(const char *path, uint8_t *head, size_t *bytes, mr_error *err)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return mri_told(err, mr_error_sys(err, errno, "cannot open"), path, MR_NOWHERE, MR_NOWHERE);
    const int rc = mri_pread_all(fd, head, *bytes, 0, path, err);
    close(fd);
    return rc;
}

/* Opening a pipe would wait for somebody to write into it, for ever. A pattern is no file: st->st_mode stays 0. */
static int look_at(const char *path, struct stat *st, mr_error *err)
{
    *st = (struct stat){0};
    if (stat(path, st) != 0 && !(errno == ENOENT && mri_filelist_pattern(path)))
        return mri_told(err, mr_error_sys(err, errno, "cannot look at it"), path, MR_NOWHERE, MR_NOWHERE);
    if (st->st_mode && !S_ISDIR(st->st_mode) && !S_ISREG(st->st_mode))
        return mri_told(err, mr_error_set(err, MR_EFORMAT, "neither a file nor a folder"), path, MR_NOWHERE, MR_NOWHERE);
    return MR_OK;
}

static bool begins(const uint8_t *head, size_t bytes, const char *text)
{
    return bytes >= strlen(text) && strncasecmp((const char *)head, text, strlen(text)) == 0;
}

const char *mri_source_impostor(const uint8_t *head, size_t bytes)
{
    if (begins(head, bytes, "version https://git-lfs.github.com/spec/"))
        return "this is a git-lfs pointer, not the data: fetch them (git lfs pull)";
    while (bytes > 0 && (*head == ' ' || (*head >= '\t' && *head <= '\r'))) {
        head++;
        bytes--;
    }
    if (begins(head, bytes, "<!doctype html") || begins(head, bytes, "<html"))
        return "this is a page of HTML, not the data: what was downloaded is an error or a login page";
    return NULL;
}

static int find_format(const mri_source_ops **out, const char *path, const struct stat *st, mr_error *err)
{
    uint8_t   head[MRI_PROBE_BYTES], inner[512];
    mri_probe p = {.path = path, .is_folder = S_ISDIR(st->st_mode), .is_pattern = st->st_mode == 0, .head = head,
                   .inner = head};
    if (!p.is_folder && !p.is_pattern) {
        p.bytes = (uint64_t)st->st_size;
        p.head_bytes = p.inner_bytes = (size_t)mri_min_u64(p.bytes, sizeof head);
        if (p.bytes == 0)
            return mri_told(err, mr_error_set(err, MR_EFORMAT, "the file is empty (0 bytes)"), path, 0, MR_NOWHERE);
        const int rc = read_head(path, head, &p.head_bytes, err);
        if (rc) return rc;
        const size_t unpacked = mri_is_packed(head, p.head_bytes) ? mri_gunzip_head(head, p.head_bytes, inner, sizeof inner) : 0;
        if (unpacked) { /* or it only began like something packed */
            p.inner = inner;
            p.inner_bytes = unpacked;
        }
    }
    for (size_t k = 0; k < MRI_ARRAY_COUNT(formats); k++) {
        if (!formats[k]->probe(&p)) continue;
        *out = formats[k];
        return MR_OK;
    }
    const char *impostor = mri_source_impostor(p.head, p.head_bytes);
    if (impostor) return mri_told(err, mr_error_set(err, MR_EFORMAT, "%s", impostor), path, 0, MR_NOWHERE);
    if (p.is_pattern) return list_formats(err, path, "no files of a format known here are named by this pattern");
    return list_formats(err, path, "no format known here begins like this");
}

/* ---- open, close ---- */
static int choose(const mri_source_ops **out, const char *path, const mr_source_config *cfg, mr_error *err)
{
    struct stat st;
    const int   rc = look_at(path, &st, err);
    if (rc) return rc;
    if (!cfg->format) return find_format(out, path, &st, err);
    *out = by_name(cfg->format);
    return *out ? MR_OK : list_formats(err, path, "there is no format of this name");
}

static int check_keys(const mri_source_ops *ops, const mr_source_config *cfg, mr_error *err)
{
    if (!ops->no_keys) return MR_OK;
    const char *given = cfg->image_key ? "image key" : cfg->label_key ? "label key" : "label offset";
    if (!cfg->image_key && !cfg->label_key && (cfg->label_offset == MR_LABEL_AUTO || cfg->label_offset == 0)) return MR_OK;
    return mr_error_set(err, MR_EINVAL, "%s: data of this format have one picture and one label: leave the %s out", ops->name, given);
}

/* Sequences that all have one length have no field whose length differs, and a length all the same: the shape's. */
static void one_length_for_all(mr_source_info *info)
{
    uint32_t found = MR_NO_FIELD;
    for (uint32_t k = 0; k < info->field_count; k++) {
        const mr_field *f = &info->fields[k];
        if (f->type != MR_TYPE_TENSOR) continue;
        if (f->ndim == 0) return;
        if (f->ndim == 1 && f->dim[0] <= UINT32_MAX && found == MR_NO_FIELD) found = k;
    }
    info->length_field = found;
    if (found != MR_NO_FIELD) info->length_most = (uint32_t)info->fields[found].dim[0];
}

static int open_as(mr_source *src, const mr_source_config *cfg, mr_error *err)
{
    src->info.path = src->path;
    src->info.image_field = src->info.label_field = -1;
    src->info.length_field = MR_NO_FIELD;
    int rc = check_keys(src->ops, cfg, err);
    if (!rc) rc = src->ops->open(src, cfg, err);
    if (rc) return rc;
    if (cfg->split == MR_SPLIT_TEST && !src->info.has_test)
        return mri_told(err, mr_error_set(err, MR_ENOENT, "the data has no test part"), src->path, MR_NOWHERE, MR_NOWHERE);
    if (src->info.length_field == MR_NO_FIELD) one_length_for_all(&src->info);
    return mri_classes_follow(src, cfg, err);
}

/* A URL: what is there, under which local name, comes first. */
static int open_any(mr_source *src, const char *path, mr_source_config *cfg, mr_error *err)
{
    int rc = mri_is_url(path) ? mri_view_open(src, path, cfg, err) : MR_OK;
    if (!rc && !src->path && !(src->path = strdup(path))) rc = mr_error_set(err, MR_ENOMEM, "no memory to open a data set");
    if (!rc && !src->ops) rc = choose(&src->ops, src->path, cfg, err);
    if (!rc) rc = open_as(src, cfg, err);
    if (!rc) rc = mri_view_opened(src, err);
    return rc ? mri_view_place(src, rc, err) : MR_OK;
}

int mr_source_open(mr_source **out, const char *path, const mr_source_config *cfg, mr_error *err)
{
    *out = NULL;
    mr_source_config mine;
    mr_source_defaults(&mine);
    if (cfg && !mri_settings_take(&mine, sizeof mine, cfg))
        return mr_error_set(err, MR_EINVAL, "source settings without struct_size: begin with mr_source_defaults()");
    mr_source *src = calloc(1, sizeof *src);
    if (!src) return mr_error_set(err, MR_ENOMEM, "no memory to open a data set");
    const int rc = open_any(src, path, &mine, err);
    if (rc) {
        mr_source_close(src);
        return rc;
    }
    *out = src;
    return MR_OK;
}

void mr_source_close(mr_source *src)
{
    if (!src) return;
    if (src->ops) src->ops->close(src);
    mri_classes_fini(&src->classes);
    mri_view_close(src); /* what formats read from goes after them */
    free(src->path);
    free(src);
}

/* ---- calls of an open source ---- */
const mr_source_info *mr_source_info_of(const mr_source *src) { return &src->info; }

static int no_such_sample(const mr_source *src, uint64_t sample, mr_error *err)
{
    mr_error_set(err, MR_EINVAL, "there are %llu samples", (unsigned long long)src->info.count);
    return mri_told(err, MR_EINVAL, src->path, MR_NOWHERE, sample);
}

int mr_source_extent(const mr_source *src, uint64_t sample, mr_extent *out, mr_error *err)
{
    if (sample >= src->info.count) return no_such_sample(src, sample, err);
    return mri_view_place(src, src->ops->extent(src, sample, out, err), err);
}

int mr_source_label(const mr_source *src, uint64_t sample, int64_t *out)
{
    if (sample >= src->info.count) return MR_EINVAL;
    const int rc = src->ops->label ? src->ops->label(src, sample, out) : MR_EUNSUPPORTED;
    return rc || !src->classes.number ? rc : mri_classes_renumber(&src->classes, out, NULL);
}

int mr_source_length(const mr_source *src, uint64_t sample, uint32_t *out)
{
    const mr_source_info *info = &src->info;
    if (sample >= info->count) return MR_EINVAL;
    if (info->length_field == MR_NO_FIELD) return MR_EUNSUPPORTED;
    if (info->fields[info->length_field].ndim == 0) return src->ops->length(src, sample, out);
    *out = info->length_most;
    return MR_OK;
}

int mr_source_file_at(const mr_source *src, uint32_t file, mr_source_file *out)
{
    if (file >= src->info.file_count) return MR_EINVAL;
    return src->ops->file_at(src, file, out);
}

mri_remote_file *mri_source_remote_at(const mr_source *src, uint32_t file)
{
    return src->ops->remote_at && file < src->info.file_count ? src->ops->remote_at(src, file) : NULL;
}

bool mri_source_is_remote(const mr_source *src) { return mri_source_remote_at(src, 0) != NULL; }

char *mr_source_sample_path(const mr_source *src, uint64_t sample, char *buf, size_t buf_bytes)
{
    if (buf_bytes == 0) return buf;
    buf[0] = '\0';
    if (sample < src->info.count) src->ops->sample_path(src, sample, buf, buf_bytes);
    mri_view_name(src, buf, buf_bytes);
    return buf;
}

typedef int parse_call(const mr_source *src, uint64_t sample, const void *data, size_t bytes, mr_sample *out, mr_error *err);

/* Whatever the format found, the label is that of the classes the caller knows. */
static int parse(parse_call *call, const mr_source *src, uint64_t sample, const void *data, size_t bytes, mr_sample *out, mr_error *err)
{
    if (sample >= src->info.count) return no_such_sample(src, sample, err);
    int rc = mri_view_place(src, call(src, sample, data, bytes, out, err), err);
    if (rc || !src->classes.number || src->info.label_field < 0) return rc;
    rc = mri_classes_renumber(&src->classes, &out->value[src->info.label_field].i, err);
    if (!rc) return MR_OK;
    char path[4096];
    return mri_told(err, rc, mr_source_sample_path(src, sample, path, sizeof path), MR_NOWHERE, sample);
}

void mri_source_place(const mr_source *src, uint64_t sample, mr_error *err)
{
    mr_extent e;
    char      path[4096];
    if (err->sample != MR_NOWHERE && err->sample != sample) return; /* about another one */
    mr_error_at(err, err->file[0] ? NULL : mr_source_sample_path(src, sample, path, sizeof path), MR_NOWHERE, sample);
    if (err->offset != MR_NOWHERE || mr_source_extent(src, sample, &e, NULL) != MR_OK || e.file == MR_FILE_OF_SAMPLE) return;
    mr_error_at(err, NULL, e.offset, MR_NOWHERE);
}

int mr_source_parse(const mr_source *src, uint64_t sample, const void *data, size_t bytes, mr_sample *out, mr_error *err)
{
    return parse(src->ops->parse, src, sample, data, bytes, out, err);
}

int mri_source_parse_trusted(const mr_source *src, uint64_t sample, const void *data, size_t bytes, mr_sample *out, mr_error *err)
{
    return parse(src->ops->parse_trusted ? src->ops->parse_trusted : src->ops->parse, src, sample, data, bytes, out, err);
}

int mr_source_check(const mr_source *src, mr_error *err) { return src->ops->check ? src->ops->check(src, err) : MR_OK; }

/* ---- one sample for tools ---- */
static int read_own_file(const char *path, void *buffer, const mr_extent *e, uint64_t sample, mr_error *err)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe put in its place since: no waiting */
    if (fd < 0) return mri_told(err, mr_error_sys(err, errno, "cannot open"), path, MR_NOWHERE, sample);
    struct stat st;
    int         rc = MR_OK;
    if (fstat(fd, &st) != 0) rc = mr_error_sys(err, errno, "cannot look at it");
    else if ((uint64_t)st.st_size != e->bytes)
        rc = mr_error_set(err, MR_EFORMAT, "the file has changed since it was listed: expected %llu bytes, found %lld",
                          (unsigned long long)e->bytes, (long long)st.st_size);
    else rc = mri_pread_all(fd, buffer, (size_t)e->bytes, e->offset, path, err);
    close(fd);
    return rc ? mri_told(err, rc, path, MR_NOWHERE, sample) : MR_OK;
}

static int read_extent(const mr_source *src, uint64_t sample, void *buffer, const mr_extent *e, const bool *until, mr_error *err)
{
    if (e->file == MR_FILE_OF_SAMPLE) {
        char path[4096];
        return read_own_file(mr_source_sample_path(src, sample, path, sizeof path), buffer, e, sample, err);
    }
    mr_source_file f;
    int            rc = mr_source_file_at(src, e->file, &f);
    if (rc) return mr_error_set(err, rc, "the source has no file %u", e->file);
    mri_remote_file *remote = mri_source_remote_at(src, e->file);
    rc = remote ? mri_remote_read_until(remote, buffer, (size_t)e->bytes, e->offset, until, err)
                : mri_pread_all(f.fd, buffer, (size_t)e->bytes, e->offset, f.path, err);
    return rc ? mri_told(err, rc, NULL, MR_NOWHERE, sample) : MR_OK;
}

static int grow(void **buffer, size_t *buffer_bytes, uint64_t bytes, mr_error *err)
{
    if (bytes > MRI_MAX_RECORD_BYTES)
        return mr_error_set(err, MR_ELIMIT, "%llu bytes are more than the 2 GiB a sample may have",
                            (unsigned long long)bytes);
    if (*buffer && bytes <= *buffer_bytes) return MR_OK;
    void *larger = realloc(*buffer, bytes > 0 ? (size_t)bytes : 1);
    if (!larger) return mr_error_set(err, MR_ENOMEM, "no memory for a sample of %llu bytes", (unsigned long long)bytes);
    *buffer = larger;
    *buffer_bytes = bytes > 0 ? (size_t)bytes : 1;
    return MR_OK;
}

int mri_source_read_until(const mr_source *src, uint64_t sample, void **buffer, size_t *buffer_bytes, mr_sample *out, const bool *until,
                          mr_error *err)
{
    mr_extent e;
    int       rc = mr_source_extent(src, sample, &e, err);
    if (rc) return rc;
    rc = grow(buffer, buffer_bytes, e.bytes, err);
    if (rc) return mri_told(err, rc, src->path, MR_NOWHERE, sample);
    rc = read_extent(src, sample, *buffer, &e, until, err);
    if (rc) return mri_view_place(src, rc, err);
    return mr_source_parse(src, sample, *buffer, (size_t)e.bytes, out, err);
}

int mr_source_read(const mr_source *src, uint64_t sample, void **buffer, size_t *buffer_bytes, mr_sample *out, mr_error *err)
{
    return mri_source_read_until(src, sample, buffer, buffer_bytes, out, NULL, err);
}
