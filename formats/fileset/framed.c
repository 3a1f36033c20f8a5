/* formats/fileset/framed.c: files of framed samples: opened, unpacked, scanned once, and asked from memory
 * afterwards.
 *
 *   list ──► open, unpack ──► index there and fitting? ── yes ──► arrays
 *                                      └ no ──► scan() each file ──► arrays ──► index kept
 *
 * 20 bytes a sample stay in memory (12 without labels). */
#include "formats/fileset/framed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/util.h"
#include "formats/source/value.h"
#include "formats/storage/storage.h"

struct mri_scan {
    mri_framed *f;
    const mr_source_config *cfg;
    mri_file_scan window;
    const mri_framed_file *file;
    uint64_t added;
};

/* ---- arrays ---- */
static bool resize(void **items, uint64_t count, size_t item_bytes)
{
    size_t bytes;
    if (!mri_mul_size((size_t)count, item_bytes, &bytes)) return false;
    void *larger = realloc(*items, bytes ? bytes : 1);
    if (!larger) return false;
    *items = larger;
    return true;
}

static uint64_t one_sample(const mri_framed *f)
{
    return sizeof *f->offset + sizeof *f->bytes + sizeof *f->label;
}

int mri_framed_reserve(mri_framed *f, uint64_t count, bool labels, const mr_source_config *cfg, mr_error *err)
{
    if (count > UINT64_MAX / 2 / one_sample(f))
        return mri_source_budget(cfg, UINT64_MAX, f->file[0].path, err);
    const int rc = mri_source_budget(cfg, f->memory_bytes + count * one_sample(f), f->file[0].path, err);
    if (rc) return rc;
    if (resize((void **)&f->offset, count, sizeof *f->offset) &&
        resize((void **)&f->bytes, count, sizeof *f->bytes) &&
        (!labels || resize((void **)&f->label, count, sizeof *f->label))) {
        f->cap = count;
        return MR_OK;
    }
    return mr_error_set(err, MR_ENOMEM, "no memory for an index of %llu samples", (unsigned long long)count);
}

/* From the first label on there is one for each sample. */
static int begin_labels(mri_framed *f, mr_error *err)
{
    if (!resize((void **)&f->label, f->cap, sizeof *f->label))
        return mr_error_set(err, MR_ENOMEM, "no memory for %llu labels", (unsigned long long)f->cap);
    for (uint64_t k = 0; k < f->count; k++) f->label[k] = MRI_NO_LABEL;
    return MR_OK;
}

/* ---- scanning ---- */
int mri_scan_get(mri_scan *s, uint64_t offset, size_t bytes, const uint8_t **out, mr_error *err)
{
    return mri_file_scan_get(&s->window, offset, bytes, out, err);
}

uint64_t mri_scan_file_bytes(const mri_scan *s) { return s->file->bytes; }
uint64_t mri_scan_added(const mri_scan *s) { return s->added; }

int mri_scan_add(mri_scan *s, uint64_t offset, uint64_t bytes, int64_t label, mr_error *err)
{
    mri_framed *f = s->f;
    int rc = MR_OK;
    if (offset > s->file->bytes || bytes > s->file->bytes - offset)
        rc = mr_error_set(err, MR_EFORMAT, "a sample of %llu bytes ends behind the end of the file",
                          (unsigned long long)bytes);
    else if (bytes > MRI_MAX_SAMPLE_BYTES)
        rc = mr_error_set(err, MR_ELIMIT, "%llu bytes are more than the 2 GiB a sample may have",
                          (unsigned long long)bytes);
    if (rc) return mri_error_place(err, rc, s->file->path, offset, f->count);
    if (f->count == f->cap)
        rc = mri_framed_reserve(f, f->cap ? 2 * f->cap : 1024, f->label != NULL, s->cfg, err);
    if (!rc && !f->label && label != MRI_NO_LABEL) rc = begin_labels(f, err);
    if (rc) return rc;
    f->offset[f->count] = offset;
    f->bytes[f->count] = (uint32_t)bytes;
    if (f->label) f->label[f->count] = label;
    f->count++;
    s->added++;
    return MR_OK;
}

static int64_t change_time(const struct stat *st)
{
    return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

/* A file that grows while it is read gives an index that fits neither of its states. */
static int still_the_same(const mri_framed_file *file, mr_error *err)
{
    struct stat st;
    if (stat(file->path, &st) != 0)
        return mri_error_place(err, mr_error_sys(err, errno, "cannot look at it"), file->path, MR_NOWHERE,
                               MR_NOWHERE);
    if ((uint64_t)st.st_size == file->stored_bytes && change_time(&st) == file->changed_ns) return MR_OK;
    mr_error_set(err, MR_EFORMAT, "the file changed while it was read: wait until it is written");
    return mri_error_place(err, MR_EFORMAT, file->path, MR_NOWHERE, MR_NOWHERE);
}

static int scan_file(mri_framed *f, const mri_framed_format *format, uint32_t at, const mr_source_config *cfg,
                     mr_error *err)
{
    mri_framed_file *file = &f->file[at];
    mri_scan s = {.f = f, .cfg = cfg, .file = file};
    file->first = f->count;
    mri_file_scan_init(&s.window, file->fd, file->path, file->bytes);
    int rc = format->scan(format->context, &s, at, err);
    mri_file_scan_fini(&s.window);
    if (!rc) rc = still_the_same(file, err);
    return rc ? mri_error_place(err, rc, err && err->file[0] ? NULL : file->path, MR_NOWHERE, MR_NOWHERE)
              : MR_OK;
}

static int scan_all(mri_framed *f, const mri_framed_format *format, const mr_source_config *cfg,
                    mr_error *err)
{
    int rc = MR_OK;
    for (uint32_t k = 0; !rc && k < f->file_count; k++) rc = scan_file(f, format, k, cfg, err);
    if (!rc && format->note) rc = format->note(format->context, &f->note, &f->note_bytes, err);
    return rc ? rc
              : mri_source_budget(cfg, f->memory_bytes + f->cap * one_sample(f) + f->note_bytes, NULL, err);
}

/* ---- files ---- */
static int unpack(mri_framed *f, mri_framed_file *file, const mr_source_config *cfg, mr_error *err)
{
    int unpacked;
    bool in_memory;
    const uint64_t left = cfg->memory_bytes > f->memory_bytes ? (cfg->memory_bytes - f->memory_bytes) / 2
                                                              : 0; /* half for the index */
    const int rc = mri_unpack_file(file->fd, file->stored_bytes, file->path, left, &unpacked, &file->bytes,
                                   &in_memory, err);
    if (rc) return rc;
    close(file->fd);
    file->fd = unpacked;
    file->packed = true;
    if (in_memory) f->memory_bytes += file->bytes;
    return MR_OK;
}

static int open_failed(const mri_framed *f, int code, mr_error *err)
{
    return code == EMFILE ? mri_too_many_files(f->file_count, err) : mr_error_sys(err, code, "cannot open");
}

static int open_file(mri_framed *f, mri_framed_file *file, mri_accept *accept, const mr_source_config *cfg,
                     mr_error *err)
{
    struct stat st;
    file->fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file->fd < 0) return open_failed(f, errno, err);
    if (fstat(file->fd, &st) != 0) return mr_error_sys(err, errno, "cannot look at it");
    if (!S_ISREG(st.st_mode)) return mr_error_set(err, MR_EFORMAT, "not a regular file");
    file->bytes = file->stored_bytes = (uint64_t)st.st_size;
    file->changed_ns = change_time(&st);
    bool accepted, packed;
    const int rc = mri_filelist_head(file->fd, file->path, file->bytes, accept, &accepted, &packed, err);
    if (rc) return rc;
    if (!accepted) {
        uint8_t head[256];
        const size_t bytes = (size_t)mri_min_u64(sizeof head, file->bytes);
        const int unread = mri_pread_all(file->fd, head, bytes, 0, file->path, err);
        const char *placeholder = unread ? NULL : mri_placeholder_describe(head, bytes);
        if (placeholder)
            return mri_error_place(err, mr_error_set(err, MR_EFORMAT, "%s", placeholder), file->path, 0,
                                   MR_NOWHERE);
    }
    return packed ? unpack(f, file, cfg, err) : MR_OK; /* scan() says what is wrong with one that was not
                                                          accepted */
}

static int take_list(mri_framed *f, mri_filelist *files, mr_error *err)
{
    f->file = calloc(files->count ? files->count : 1, sizeof *f->file);
    if (!f->file) {
        mri_filelist_fini(files);
        return mr_error_set(err, MR_ENOMEM, "no memory for a list of files");
    }
    f->file_count = files->count;
    f->memory_bytes = sizeof *f + files->count * sizeof *f->file;
    for (uint32_t k = 0; k < files->count; k++) {
        f->file[k] = (mri_framed_file){.path = files->path[k], .fd = -1};
        f->memory_bytes += strlen(files->path[k]) + 1;
    }
    free(files->path);
    *files = (mri_filelist){0};
    return MR_OK;
}

/* ---- what the arrays come to ---- */
static bool can_be_class(int64_t label) { return label >= 0 && label < MRI_MAX_CLASSES; }

static void settle_labels(mri_framed *f, const mr_source_config *cfg)
{
    int64_t smallest = MRI_MAX_CLASSES, largest = -1;
    for (uint64_t k = 0; f->label && k < f->count; k++)
        if (can_be_class(f->label[k]) && f->label[k] < smallest) smallest = f->label[k];
    const bool guess = cfg->label_offset == MR_LABEL_AUTO && f->label_offset == MR_LABEL_AUTO;
    if (guess) f->label_offset = smallest == 1 ? 1 : 0;
    else if (cfg->label_offset != MR_LABEL_AUTO) f->label_offset = cfg->label_offset;
    for (uint64_t k = 0; f->label && k < f->count; k++) {
        int64_t label;
        if (mri_framed_label(f, k, &label) == MR_OK && label > largest) largest = label;
    }
    f->class_count = (uint32_t)(largest + 1);
    if (!guess || !f->label_offset) return;
    const size_t at = strlen(f->report_text);
    snprintf(f->report_text + at, sizeof f->report_text - at, "%slabels start at 1: 1 is subtracted",
             at ? "; " : "");
}

static void add_up(mri_framed *f, const mri_framed_format *format)
{
    f->max_bytes = f->total_bytes = 0;
    for (uint64_t k = 0; k < f->count; k++) {
        f->total_bytes += f->bytes[k];
        f->max_bytes = mri_max_u64(f->max_bytes, f->bytes[k]);
    }
    f->memory_bytes +=
        f->cap * (sizeof *f->offset + sizeof *f->bytes + (f->label ? sizeof *f->label : 0)) + f->note_bytes;
    uint64_t print = XXH3_64bits_withSeed(format->name, strlen(format->name), format->settings);
    for (uint32_t k = 0; k < f->file_count; k++)
        print = XXH3_64bits_withSeed(&f->file[k].first, sizeof f->file[k].first, print);
    print = XXH3_64bits_withSeed(f->offset, f->count * sizeof *f->offset, print);
    print = XXH3_64bits_withSeed(f->bytes, f->count * sizeof *f->bytes, print);
    if (f->label) print = XXH3_64bits_withSeed(f->label, f->count * sizeof *f->label, print);
    f->fingerprint = XXH3_64bits_withSeed(&f->label_offset, sizeof f->label_offset, print);
}

/* ---- open, close ---- */
int mri_framed_open(mri_framed *out, mri_filelist *files, const mri_framed_format *format,
                    const mr_source_config *cfg, mr_error *err)
{
    mri_framed *f = out;
    *f = (mri_framed){0};
    mri_accept *accept = files->accept;
    int rc = take_list(f, files, err);
    for (uint32_t k = 0; !rc && k < f->file_count; k++) {
        rc = open_file(f, &f->file[k], accept, cfg, err);
        if (rc) mri_error_place(err, rc, f->file[k].path, MR_NOWHERE, MR_NOWHERE);
    }
    if (rc) return rc;
    f->from_index = mri_framed_index_load(f, format, cfg, &rc, err);
    if (!rc && !f->from_index) rc = scan_all(f, format, cfg, err);
    if (!rc && f->count == 0) {
        mr_error_set(err, MR_EFORMAT, "there is no sample in it");
        rc = mri_error_place(err, MR_EFORMAT, f->file_count ? f->file[0].path : NULL, MR_NOWHERE, MR_NOWHERE);
    }
    if (rc) return rc;
    if (!f->from_index) mri_framed_index_keep(f, format, cfg);
    f->label_offset = MR_LABEL_AUTO;
    rc = format->known ? format->known(format->context, f, err) : MR_OK;
    if (rc) return rc;
    settle_labels(f, cfg);
    add_up(f, format);
    return MR_OK;
}

void mri_framed_close(mri_framed *f)
{
    for (uint32_t k = 0; k < f->file_count; k++) {
        if (f->file[k].fd >= 0) close(f->file[k].fd);
        free(f->file[k].path);
    }
    free(f->file);
    free(f->offset);
    free(f->bytes);
    free(f->label);
    free(f->note);
    *f = (mri_framed){0};
}

/* ---- asked ---- */
uint32_t mri_framed_file_of(const mri_framed *f, uint64_t sample)
{
    uint32_t low = 0, high = f->file_count; /* the last file whose first sample is not behind this one: empty
                                               files before it share the number */
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (f->file[middle].first <= sample) low = middle;
        else high = middle;
    }
    return low;
}

int mri_framed_extent(const mri_framed *f, uint64_t sample, mr_extent *out)
{
    *out = (mr_extent){mri_framed_file_of(f, sample), f->offset[sample], f->bytes[sample]};
    return MR_OK;
}

int mri_framed_file_at(const mri_framed *f, uint32_t file, mr_source_file *out)
{
    const mri_framed_file *at = &f->file[file];
    *out = (mr_source_file){.path = at->path, .fd = at->fd, .bytes = at->bytes, .direct_ok = !at->packed};
    return MR_OK;
}

int mri_framed_check_label(const mri_framed *f, int64_t found, int64_t *out, mr_error *err)
{
    if (__builtin_sub_overflow(found, f->label_offset, out) || !can_be_class(*out)) {
        char after[48] = "";
        if (f->label_offset)
            snprintf(after, sizeof after, " after %lld is subtracted", (long long)f->label_offset);
        return mr_error_set(err, MR_EFORMAT, "expected a label from 0 to %lld%s, found %lld",
                            (long long)MRI_MAX_CLASSES - 1, after, (long long)found);
    }
    return MR_OK;
}

int mri_framed_label(const mri_framed *f, uint64_t sample, int64_t *out)
{
    if (!f->label || f->label[sample] == MRI_NO_LABEL) return MR_EUNSUPPORTED;
    return mri_framed_check_label(f, f->label[sample], out, NULL) == MR_OK ? MR_OK : MR_EUNSUPPORTED;
}

void mri_framed_info(const mri_framed *f, mr_source_info *info)
{
    info->count = f->count;
    info->class_count = f->class_count;
    info->file_count = f->file_count;
    info->max_extent_bytes = f->max_bytes;
    info->total_bytes = f->total_bytes;
    info->fingerprint = f->fingerprint;
    info->memory_bytes = f->memory_bytes;
    info->label_offset = f->label_offset;
    info->told = f->report_text[0] ? f->report_text : NULL;
}
