/* formats/source/inputs.c: is this file one that a source reads? Asked before something is written over it,
 * by the file itself and not by its name: names have links. And is it still the file that it was? */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/util.h"
#include "formats/source/source.h"

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev;
}

static bool is_named(const char *path, const struct stat *st)
{
    struct stat in;
    return path && *path && stat(path, &in) == 0 && is_same(&in, st);
}

int mri_source_add_beside(mr_source *src, const char *path, mr_error *err)
{
    const uint32_t n = src->beside.count;
    for (uint32_t k = 0; k < n; k++)
        if (strcmp(src->beside.path[k], path) == 0) return MR_OK;
    char **more = realloc(src->beside.path, (n + 1) * sizeof *more);
    if (more) src->beside.path = more;
    if (!more || !(more[n] = strdup(path))) return mr_error_set(err, MR_ENOMEM, "no memory for a path");
    src->beside.count++;
    return MR_OK;
}

const char *mri_source_input(const void *context, const struct stat *st)
{
    const mr_source *src = context;
    if (!src) return NULL;
    const mr_source_info *info = mr_source_info_of(src);
    struct stat in;
    if (is_named(info->path, st)) return info->path;
    for (uint32_t k = 0; k < info->mix_count; k++)
        if (is_named(info->mix[k].path, st)) return info->mix[k].path;
    for (uint32_t k = 0; k < src->beside.count; k++)
        if (is_named(src->beside.path[k], st)) return src->beside.path[k];
    for (uint32_t f = 0; f < info->file_count; f++) {
        mr_source_file file;
        if (mr_source_file_at(src, f, &file) != MR_OK) continue;
        /* the unpacked file is open without a name, and the packed one has the name: neither may be
         * replaced */
        if ((file.fd >= 0 && fstat(file.fd, &in) == 0 && is_same(&in, st)) || is_named(file.path, st))
            return file.path;
    }
    const bool files = mri_source_has_sample_files(src) && !mri_source_is_made(src);
    for (uint64_t i = 0; files && i < src->format_count; i++) { /* taken or not */
        char path[4096] = "";
        mr_extent e; /* known without looking at the file, and it is one of many */
        if (src->ops->extent(src, i, &e, NULL) == MR_OK && e.bytes != (uint64_t)st->st_size) continue;
        src->ops->sample_path(src, i, path, sizeof path);
        if (is_named(path, st)) return info->path;
    }
    return NULL;
}

/* File systems in user space may number their files anew with each mount. */
static bool keeps_inodes(const char *path, int fd)
{
    enum { FUSE_MAGIC = 0x65735546 };
    struct statfs fs;
    return (path ? statfs(path, &fs) : fstatfs(fd, &fs)) == 0 && fs.f_type != FUSE_MAGIC;
}

static uint64_t stamp_of(const char *path, int fd)
{
    struct stat st;
    if ((path ? stat(path, &st) : fstat(fd, &st)) != 0) return 0;
    uint64_t stamp = mri_mix64((uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec);
    stamp = mri_mix64(stamp ^ (uint64_t)st.st_size);
    if (keeps_inodes(path, fd)) stamp = mri_mix64(stamp ^ (uint64_t)st.st_ino);
    return stamp ? stamp : 1;
}

bool mri_source_made_from(const mr_source *src, mr_source_file *out)
{
    return mri_source_is_made(src) && src->ops->file_at && src->ops->file_at(src, 0, out) == MR_OK;
}

uint64_t mri_source_stamp(const mr_source *src, uint64_t sample)
{
    char path[4096];
    mr_extent at;
    mr_source_file file;
    if (mri_source_is_remote(src)) return 0;
    if (mri_source_is_made(src)) return mri_source_made_from(src, &file) ? stamp_of(NULL, file.fd) : 0;
    if (mr_source_extent(src, sample, &at, NULL) != MR_OK) return 0;
    if (at.file == MR_FILE_OF_SAMPLE)
        return stamp_of(mr_source_sample_path(src, sample, path, sizeof path), -1);
    if (mr_source_file_at(src, at.file, &file) != MR_OK) return 0;
    return file.direct_ok && file.fd >= 0 ? stamp_of(NULL, file.fd) : stamp_of(file.path, -1); /* unpacked:
                                                                                                  the packed
                                                                                                  one's */
}
