/* formats/source/source.c: the calls of an open data set: what all formats share is checked here once (is the
 * sample there, which class is its label), then the format answers. */
#include "formats/source/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/abi.h"
#include "base/floats.h"
#include "base/util.h"
#include "formats/source/choice.h"
#include "formats/source/classes.h"
#include "formats/source/told.h"
#include "formats/source/value.h"
#include "settings/setting.h"

static const mri_setting rows[] = {
#define MRI_SETTING(...) MRI_ROW(mr_source_config, __VA_ARGS__),
#define MRI_MEMBER       MRI_SETTING
#include "settings/data.rows"
};

void mr_source_defaults_sized(mr_source_config *cfg, size_t struct_size)
{
    mr_source_config all = {.label_offset = MR_LABEL_AUTO, .take_to = 1};
    mri_settings_fill(rows, MRI_ARRAY_COUNT(rows), &all);
    mri_settings_give(cfg, struct_size, &all, sizeof all);
}

int mri_source_settings_check(const mr_source_config *cfg, mr_error *err)
{
    return mri_settings_check(rows, MRI_ARRAY_COUNT(rows), cfg, "mr_source_config", err);
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
    mr_error_set(err, MR_ELIMIT,
                 "names, labels or index need more than the %llu bytes allowed: give more with "
                 "--memory, or convert to record files",
                 (unsigned long long)cfg->memory_bytes);
    if (err) err->sys_errno = ENOMEM; /* a budget: no sample's fault */
    return mri_error_place(err, MR_ELIMIT, path, MR_NOWHERE, MR_NOWHERE);
}

bool mri_probe_failed(mr_error *trouble, int rc, const mr_error *what)
{
    if (rc == MR_OK || mr_error_of_sample(rc, what)) return false;
    if (trouble) *trouble = *what;
    return true;
}

void mri_source_tell(mr_source *src, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    mri_told_line(&src->report, format, args);
    va_end(args);
}

void mri_source_tell_all(mr_source *src)
{
    if (!src->report) return;
    char *reported = src->report;
    src->report = NULL;
    if (src->info.told) mri_told_add(&src->report, src->info.told);
    mri_told_add(&src->report, reported);
    free(reported);
    if (src->report) src->info.told = src->report;
}

/* ---- parts ---- */
static uint32_t bit_of(mri_part part) { return part == MRI_NO_PART ? 0 : 1u << (part - MRI_TRAIN); }

void mri_source_set_parts(mr_source *src, const bool there[MRI_PART_COUNT], mri_part taken)
{
    src->info.parts = (mr_source_parts){.taken = bit_of(taken)};
    for (int part = MRI_TRAIN; part < MRI_PART_COUNT; part++)
        if (there[part]) src->info.parts.there |= bit_of((mri_part)part);
}

int mri_source_no_part(const mr_source *src, mri_part part, mr_error *err)
{
    return mri_error_place(err, mr_error_set(err, MR_ENOENT, "the data has no %s part", mri_part_name(part)),
                           src->path, MR_NOWHERE, MR_NOWHERE);
}

const char *mr_part_name(uint32_t part)
{
    for (int p = MRI_TRAIN; p < MRI_PART_COUNT; p++)
        if (bit_of((mri_part)p) == part) return mri_part_name((mri_part)p);
    return NULL;
}

/* ---- calls of an open source ---- */
const mr_source_info *mr_source_info_of(const mr_source *src) { return src ? &src->info : NULL; }
const mr_source_labels *mr_source_labels_of(const mr_source *src) { return src ? &src->labels : NULL; }

static int no_such_sample(const mr_source *src, uint64_t sample, mr_error *err)
{
    mr_error_set(err, MR_EINVAL, "there are %llu samples", (unsigned long long)src->info.count);
    return mri_error_place(err, MR_EINVAL, src->path, MR_NOWHERE, sample);
}

int mr_source_extent(const mr_source *src, uint64_t sample, mr_extent *out, mr_error *err)
{
    MRI_OWN(err, src);
    MRI_GIVEN(err, out);
    if (sample >= src->info.count) return no_such_sample(src, sample, err);
    const int rc = src->ops->extent(src, mri_choice_number(&src->choice, sample), out, err);
    return mri_remote_view_place(src->view, mri_choice_place(&src->choice, sample, rc, err), err);
}

int mr_source_label(const mr_source *src, uint64_t sample, int64_t *out)
{
    MRI_OWN(NULL, src);
    MRI_GIVEN(NULL, out);
    if (sample >= src->info.count) return MR_EINVAL;
    const int rc = src->ops->label ? src->ops->label(src, mri_choice_number(&src->choice, sample), out)
                                   : MR_EUNSUPPORTED;
    return rc || !mri_classes_change(&src->classes) ? rc : mri_classes_renumber(&src->classes, out, NULL);
}

int mr_source_length(const mr_source *src, uint64_t sample, uint32_t *out)
{
    MRI_OWN(NULL, src);
    MRI_GIVEN(NULL, out);
    const mr_source_info *info = &src->info;
    if (sample >= info->count) return MR_EINVAL;
    if (info->length_field == MR_NO_FIELD) return MR_EUNSUPPORTED;
    if (info->fields[info->length_field].ndim == 0)
        return src->ops->length(src, mri_choice_number(&src->choice, sample), out);
    *out = info->length_most;
    return MR_OK;
}

int mr_source_file_at_sized(const mr_source *src, uint32_t file, mr_source_file *out)
{
    mr_source_file found = {0};
    MRI_OWN(NULL, src);
    MRI_GIVEN(NULL, out);
    if (file >= src->info.file_count || mri_result_check(out, NULL) != MR_OK) return MR_EINVAL;
    const int rc = src->ops->file_at(src, file, &found);
    if (rc == MR_OK) mri_result_give(out, &found, sizeof found);
    return rc;
}

int mri_source_file_acquire(const mr_source *src, uint32_t file, bool must, int *fd, mr_error *err)
{
    mr_source_file f;
    *fd = -1;
    if (file >= src->info.file_count)
        return mr_error_set(err, MR_EINVAL, "there are %u files", src->info.file_count);
    if (src->ops->file_acquire) return src->ops->file_acquire(src, file, must, fd, err);
    const int rc = mr_source_file_at(src, file, &f);
    if (rc) return mr_error_set(err, rc, "the source has no file %u", file);
    *fd = f.fd;
    return MR_OK;
}

int mr_source_file_acquire(const mr_source *src, uint32_t file, int *fd, mr_error *err)
{
    MRI_OWN(err, src);
    MRI_GIVEN(err, fd);
    return mri_source_file_acquire(src, file, true, fd, err);
}

void mr_source_file_release(const mr_source *src, uint32_t file)
{
    if (src && !mri_is_inherited(src->process) && src->ops->file_release) src->ops->file_release(src, file);
}

mri_remote_file *mri_source_remote_at(const mr_source *src, uint32_t file)
{
    return src->ops->remote_at && file < src->info.file_count ? src->ops->remote_at(src, file) : NULL;
}

bool mri_source_is_remote(const mr_source *src)
{
    bool found = false; /* in a mix any of them can be */
    for (uint32_t f = 0; src->ops->remote_at && !found && f < src->info.file_count; f++)
        found = src->ops->remote_at(src, f) != NULL;
    return found;
}

char *mr_source_sample_path(const mr_source *src, uint64_t sample, char *buf, size_t buf_bytes)
{
    if (!buf || buf_bytes == 0) return buf;
    buf[0] = '\0';
    if (!src || mri_is_inherited(src->process)) return buf;
    if (sample < src->info.count)
        src->ops->sample_path(src, mri_choice_number(&src->choice, sample), buf, buf_bytes);
    mri_remote_view_name(src->view, buf, buf_bytes);
    return buf;
}

typedef int parse_call(const mr_source *src, uint64_t sample, const void *data, size_t bytes, mr_sample *out,
                       mr_error *err);

/* Whatever the format found, the label is a number of the classes that the caller knows. */
static int parse(parse_call *call, const mr_source *src, uint64_t sample, const void *data, size_t bytes,
                 mr_sample *out, mr_error *err)
{
    if (sample >= src->info.count) return no_such_sample(src, sample, err);
    int rc = call(src, mri_choice_number(&src->choice, sample), data, bytes, out, err);
    rc = mri_remote_view_place(src->view, mri_choice_place(&src->choice, sample, rc, err), err);
    if (rc || !mri_classes_change(&src->classes) || src->info.label_field < 0) return rc;
    rc = mri_classes_renumber(&src->classes, &out->value[src->info.label_field].i, err);
    if (!rc) return MR_OK;
    char path[4096];
    return mri_error_place(err, rc, mr_source_sample_path(src, sample, path, sizeof path), MR_NOWHERE,
                           sample);
}

/* In a shared file the number alone says little to the author of the pictures. Data that must be fetched or
 * made first, or whose reading failed, are not read for that. */
static void add_name(const mr_source *src, uint64_t sample, mr_error *err)
{
    char name[512], shown[768];
    if (!src->ops->sample_name || err->code == MR_EIO || err->code == MR_ENOMEM ||
        mri_source_is_remote(src) || mri_source_is_made(src))
        return;
    mr_text_shown(mr_source_sample_name(src, sample, NULL, 0, name, sizeof name), shown, sizeof shown);
    const size_t at = strlen(err->text);
    if (!shown[0] || strstr(err->text, shown)) return;
    snprintf(err->text + at, sizeof err->text - at, "; the sample is %s", shown);
}

/* Where samples are withdrawn, later samples have other numbers in the data. */
static void add_number(const mr_source *src, uint64_t sample, mr_error *err)
{
    char number[64];
    const size_t at = strlen(err->text);
    if (!src->withdrawn || sample >= src->info.count) return;
    snprintf(number, sizeof number, "; number %llu of the set",
             (unsigned long long)mri_choice_number(&src->choice, sample));
    if (!strstr(err->text, number)) snprintf(err->text + at, sizeof err->text - at, "%s", number);
}

void mri_source_place(const mr_source *src, uint64_t sample, mr_error *err)
{
    mr_extent e;
    char path[4096];
    if (err->sample != MR_NOWHERE && err->sample != sample) return; /* about another one */
    add_name(src, sample, err);
    add_number(src, sample, err);
    mr_error_at(err, err->file[0] ? NULL : mr_source_sample_path(src, sample, path, sizeof path), MR_NOWHERE,
                sample);
    if (err->offset != MR_NOWHERE || mr_source_extent(src, sample, &e, NULL) != MR_OK ||
        e.file == MR_FILE_OF_SAMPLE)
        return;
    mr_error_at(err, NULL, e.offset, MR_NOWHERE);
}

int mr_source_parse(const mr_source *src, uint64_t sample, const void *data, size_t bytes, mr_sample *out,
                    mr_error *err)
{
    MRI_OWN(err, src);
    MRI_GIVEN(err, data);
    MRI_GIVEN(err, out);
    return parse(src->ops->parse, src, sample, data, bytes, out, err);
}

int mri_source_parse_trusted(const mr_source *src, uint64_t sample, const void *data, size_t bytes,
                             mr_sample *out, mr_error *err)
{
    return parse(src->ops->parse_trusted ? src->ops->parse_trusted : src->ops->parse, src, sample, data,
                 bytes, out, err);
}

void mri_source_begin_sample(const mr_source *src, uint64_t sample, mri_making *m)
{
    src->ops->begin(src, mri_choice_number(&src->choice, sample), m);
}

bool mr_source_has_checksums(const mr_source *src)
{
    static const char *const formats[] = {"mrec", "shards", "tfrecord", "archive"};
    if (!MRI_IS_OWN(src)) return false;
    if (src->ops->has_sums) return src->ops->has_sums(src);
    for (size_t k = 0; k < MRI_ARRAY_COUNT(formats); k++)
        if (strcmp(src->info.format, formats[k]) == 0) return true;
    return false;
}

uint32_t mr_source_missing_files(const mr_source *src) { return MRI_IS_OWN(src) ? src->missing_files : 0; }

/* ---- one sample for tools ---- */
static int read_own_file(const char *path, void *buffer, const mr_extent *e, uint64_t sample, mr_error *err)
{
    /* a pipe put in its place since: no waiting */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return mri_error_place(err, mri_error_denied(err, mr_error_sys(err, errno, "cannot open")), path,
                               MR_NOWHERE, sample);
    struct stat st;
    int rc = MR_OK;
    if (fstat(fd, &st) != 0) rc = mr_error_sys(err, errno, "cannot look at it");
    else if ((uint64_t)st.st_size != e->bytes)
        rc = mr_error_set(err, MR_EFORMAT,
                          "the file has changed since it was listed: expected %llu bytes, found %lld",
                          (unsigned long long)e->bytes, (long long)st.st_size);
    else rc = mri_pread_all(fd, buffer, (size_t)e->bytes, e->offset, path, err);
    close(fd);
    return rc ? mri_error_place(err, rc, path, MR_NOWHERE, sample) : MR_OK;
}

static int read_extent(const mr_source *src, uint64_t sample, void *buffer, const mr_extent *e,
                       const bool *until, mr_error *err)
{
    if (e->file == MR_FILE_OF_SAMPLE) {
        char path[4096];
        return read_own_file(mr_source_sample_path(src, sample, path, sizeof path), buffer, e, sample, err);
    }
    mr_source_file f;
    int fd, rc = mr_source_file_at(src, e->file, &f);
    if (rc) return mr_error_set(err, rc, "the source has no file %u", e->file);
    mri_remote_file *remote = mri_source_remote_at(src, e->file);
    if (remote) {
        rc = mri_remote_read_until(remote, buffer, (size_t)e->bytes, e->offset, until, err);
    } else if ((rc = mr_source_file_acquire(src, e->file, &fd, err)) == MR_OK) {
        rc = mri_pread_all(fd, buffer, (size_t)e->bytes, e->offset, f.path, err);
        mr_source_file_release(src, e->file);
    }
    return rc ? mri_error_place(err, rc, NULL, MR_NOWHERE, sample) : MR_OK;
}

static int grow(void **buffer, size_t *buffer_bytes, uint64_t bytes, mr_error *err)
{
    if (bytes > MRI_MAX_SAMPLE_BYTES)
        return mr_error_set(err, MR_ELIMIT, "%llu bytes are more than the 2 GiB a sample may have",
                            (unsigned long long)bytes);
    if (*buffer && bytes <= *buffer_bytes) return MR_OK;
    void *larger = realloc(*buffer, bytes > 0 ? (size_t)bytes : 1);
    if (!larger)
        return mr_error_set(err, MR_ENOMEM, "no memory for a sample of %llu bytes",
                            (unsigned long long)bytes);
    *buffer = larger;
    *buffer_bytes = bytes > 0 ? (size_t)bytes : 1;
    return MR_OK;
}

int mri_source_read_bytes(const mr_source *src, uint64_t sample, void **buffer, size_t *buffer_bytes,
                          mr_extent *out, const bool *until, mr_error *err)
{
    int rc = mr_source_extent(src, sample, out, err);
    if (rc) return rc;
    if (src->ops->fetch)
        return src->ops->fetch(src, mri_choice_number(&src->choice, sample), buffer, buffer_bytes,
                               &out->bytes, err);
    rc = grow(buffer, buffer_bytes, out->bytes, err);
    if (rc) return mri_error_place(err, rc, src->path, MR_NOWHERE, sample);
    rc = read_extent(src, sample, *buffer, out, until, err);
    return mri_remote_view_place(src->view, rc, err);
}

int mri_source_read_until(const mr_source *src, uint64_t sample, void **buffer, size_t *buffer_bytes,
                          mr_sample *out, const bool *until, mr_error *err)
{
    mr_extent e;
    const int rc = mri_source_read_bytes(src, sample, buffer, buffer_bytes, &e, until, err);
    if (rc) return rc;
    return mr_source_parse(src, sample, *buffer, (size_t)e.bytes, out, err);
}

int mr_source_read(const mr_source *src, uint64_t sample, void **buffer, size_t *buffer_bytes, mr_sample *out,
                   mr_error *err)
{
    MRI_DEFAULT_FLOATS;
    MRI_OWN(err, src);
    MRI_GIVEN(err, buffer);
    MRI_GIVEN(err, buffer_bytes);
    MRI_GIVEN(err, out);
    return mri_source_read_until(src, sample, buffer, buffer_bytes, out, NULL, err);
}
