/* formats/fileset/framed.c: files of framed samples: opened, unpacked, scanned once, and asked from the index
 * afterwards.
 *
 *   list ──► open, unpack ──► index there, ours and fitting? ── yes ──► entries
 *                                      └ no ──► scan() each file ──► entries ──► index kept
 *
 * 20 bytes a sample stay in memory, or none where that is too much. */
#include "formats/fileset/framed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
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

/* ---- room ---- */
void mri_framed_tell(mri_framed *f, const char *text, ...)
{
    const size_t at = strlen(f->report_text);
    va_list args;
    if (at) snprintf(f->report_text + at, sizeof f->report_text - at, "\n");
    const size_t from = strlen(f->report_text);
    va_start(args, text);
    vsnprintf(f->report_text + from, sizeof f->report_text - from, text, args);
    va_end(args);
}

uint64_t mri_framed_room(const mri_framed *f, const mr_source_config *cfg)
{
    const uint64_t used = f->memory_bytes + f->note_bytes;
    return cfg->memory_bytes > used ? cfg->memory_bytes - used : 0;
}

typedef struct spilling {
    mri_framed *f;
    const mr_source_config *cfg;
} spilling;

static int spill(void *context, int *fd, uint64_t *at, const char **path, mr_error *err)
{
    spilling *s = context;
    mri_framed *f = s->f;
    int rc = mri_source_budget(s->cfg, f->memory_bytes + mri_entries_disk_memory(), f->file[0].path, err);
    if (!rc) rc = mri_framed_index_spill(f, s->cfg, err);
    if (rc) return rc;
    *fd = f->kept.fd;
    *at = mri_framed_index_pages_at(f);
    *path = f->kept.path ? f->kept.path : "index of this run";
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
        rc = mr_error_set(err, MR_EFORMAT, "a sample of %llu bytes ends after the end of the file",
                          (unsigned long long)bytes);
    else if (bytes > MRI_MAX_SAMPLE_BYTES)
        rc = mr_error_set(err, MR_ELIMIT, "%llu bytes are more than the 2 GiB a sample may have",
                          (unsigned long long)bytes);
    if (rc) return mri_error_place(err, rc, s->file->path, offset, f->count);
    spilling spills = {f, s->cfg};
    const mri_entries_room room = {mri_framed_room(f, s->cfg), spill, &spills};
    const mri_entry one = {offset, (uint32_t)bytes, label};
    rc = mri_entries_add(&f->entries, &one, &room, err);
    if (rc) return rc;
    f->count = f->entries.count;
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

static int scan_open_file(mri_framed *f, const mri_framed_format *format, uint32_t at, int fd,
                          const mr_source_config *cfg, mr_error *err)
{
    mri_framed_file *file = &f->file[at];
    mri_scan s = {.f = f, .cfg = cfg, .file = file};
    file->first = f->count;
    mri_file_scan_init(&s.window, fd, file->path, file->bytes);
    int rc = format->scan(format->context, &s, at, err);
    mri_file_scan_fini(&s.window);
    return rc ? rc : still_the_same(file, err);
}

static int scan_file(mri_framed *f, const mri_framed_format *format, uint32_t at, const mr_source_config *cfg,
                     mr_error *err)
{
    int fd, rc = mri_framed_file_acquire(f, at, true, &fd, err);
    if (!rc) {
        rc = scan_open_file(f, format, at, fd, cfg, err);
        mri_framed_file_release(f, at);
    }
    return rc ? mri_error_place(err, rc, err && err->file[0] ? NULL : f->file[at].path, MR_NOWHERE,
                                MR_NOWHERE)
              : MR_OK;
}

static int scan_all(mri_framed *f, const mri_framed_format *format, const mr_source_config *cfg,
                    mr_error *err)
{
    int rc = MR_OK;
    for (uint32_t k = 0; !rc && k < f->file_count; k++) rc = scan_file(f, format, k, cfg, err);
    if (!rc) rc = mri_entries_finish(&f->entries, err);
    if (!rc && format->note) rc = format->note(format->context, &f->note, &f->note_bytes, err);
    return rc ? rc
              : mri_source_budget(cfg, f->memory_bytes + mri_entries_memory(&f->entries) + f->note_bytes,
                                  NULL, err);
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

static int look_at(mri_framed_file *file, mri_accept *accept, bool *packed, mr_error *err)
{
    struct stat st;
    if (fstat(file->fd, &st) != 0) return mr_error_sys(err, errno, "cannot look at it");
    if (!S_ISREG(st.st_mode)) return mr_error_set(err, MR_EFORMAT, "not a regular file");
    file->bytes = file->stored_bytes = (uint64_t)st.st_size;
    file->changed_ns = change_time(&st);
    file->system_ns = (int64_t)st.st_ctim.tv_sec * 1000000000 + st.st_ctim.tv_nsec;
    bool accepted;
    const int rc = mri_filelist_head(file->fd, file->path, file->bytes, accept, &accepted, packed, err);
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
    return MR_OK; /* scan() reports why a file was not accepted */
}

/* *unpacked: of files whose unpacked bytes are there only while they are open. */
static int open_file(mri_framed *f, mri_framed_file *file, mri_accept *accept, const mr_source_config *cfg,
                     uint32_t *unpacked, mr_error *err)
{
    bool packed;
    file->fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file->fd < 0) return open_failed(f, errno, err);
    int rc = look_at(file, accept, &packed, err);
    if (rc) return rc;
    if (packed) {
        if (f->allowed < f->file_count && ++*unpacked > f->allowed)
            return mri_too_many_files(f->file_count, err);
        return unpack(f, file, cfg, err);
    }
    if (f->allowed == f->file_count) return MR_OK;
    close(file->fd);
    file->fd = -1;
    return MR_OK;
}

/* ---- files that are opened when they are asked for ---- */
static int pool_open(void *context, uint32_t number, void **object, mr_error *err)
{
    const mri_framed *f = context;
    const mri_framed_file *file = &f->file[number];
    struct stat st;
    const int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int rc = fd < 0 ? mr_error_sys(err, errno, "cannot open") : MR_OK;
    if (!rc && fstat(fd, &st) != 0) rc = mr_error_sys(err, errno, "cannot look at it");
    if (!rc &&
        (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != file->bytes || change_time(&st) != file->changed_ns))
        rc = mr_error_set(err, MR_EFORMAT, "the file has changed since the data set was opened");
    if (rc && fd >= 0) close(fd);
    if (rc) return mri_error_place(err, rc, file->path, MR_NOWHERE, MR_NOWHERE);
    *object = (void *)(intptr_t)fd;
    return MR_OK;
}

static void pool_close(void *object) { close((int)(intptr_t)object); }

int mri_framed_file_acquire(const mri_framed *f, uint32_t file, bool must, int *fd, mr_error *err)
{
    void *object;
    *fd = f->file[file].fd;
    if (*fd >= 0) return MR_OK;
    const int rc = mri_open_pool_acquire(f->pool, file, must, &object, err);
    if (!rc) *fd = (int)(intptr_t)object;
    return rc;
}

void mri_framed_file_release(const mri_framed *f, uint32_t file)
{
    if (f->file[file].fd < 0) mri_open_pool_release(f->pool, file);
}

static int open_files(mri_framed *f, mri_accept *accept, const mr_source_config *cfg, mr_error *err)
{
    uint32_t unpacked = 0;
    int rc = MR_OK;
    f->allowed = mri_open_allow(f->file_count);
    for (uint32_t k = 0; !rc && k < f->file_count; k++) {
        rc = open_file(f, &f->file[k], accept, cfg, &unpacked, err);
        if (rc) mri_error_place(err, rc, f->file[k].path, MR_NOWHERE, MR_NOWHERE);
    }
    if (rc || f->allowed == f->file_count) return rc;
    const mri_open_ops ops = {pool_open, pool_close, f};
    const uint32_t most = f->allowed;
    f->allowed = 0; /* the pool's now */
    f->memory_bytes += mri_open_pool_memory(f->file_count, most);
    return mri_open_pool_create(&f->pool, f->file_count, most, &ops, err);
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
    free(files->reported); /* whoever wanted to pass it on has done so */
    *files = (mri_filelist){0};
    return MR_OK;
}

/* ---- summary of the arrays ---- */
static bool can_be_class(int64_t label) { return label >= 0 && label < MRI_MAX_CLASSES; }

/* The largest class, label_offset subtracted; -1: none. Asked of the entries only where their sums do not
 * say. */
static int largest_class(const mri_framed *f, int64_t *out, mr_error *err)
{
    const mri_entries_sums *s = &f->entries.sums;
    int64_t label;
    *out = -1;
    if (!s->labelled || s->label_max < f->label_offset) return MR_OK;
    if (!__builtin_sub_overflow(s->label_max, f->label_offset, &label) && can_be_class(label)) {
        *out = label;
        return MR_OK;
    }
    if (f->label_offset == 0) {
        *out = s->class_max;
        return MR_OK;
    }
    mri_entries_walk w;
    mri_entry one;
    int rc;
    mri_entries_walk_init(&w, &f->entries);
    while ((rc = mri_entries_walk_next(&w, &one, err)) == MR_OK)
        if (one.label != MRI_NO_LABEL && !__builtin_sub_overflow(one.label, f->label_offset, &label) &&
            can_be_class(label) && label > *out)
            *out = label;
    mri_entries_walk_fini(&w);
    return rc == MR_EEND ? MR_OK : rc;
}

static int settle_labels(mri_framed *f, const mr_source_config *cfg, mr_error *err)
{
    int64_t largest;
    f->label_offset = cfg->label_offset == MR_LABEL_AUTO ? 0 : cfg->label_offset;
    const int rc = largest_class(f, &largest, err);
    f->class_count = (uint32_t)(largest + 1);
    return rc;
}

/* One column of all entries; the same as over an array of it, whatever the pages. */
static int add_column(const mri_framed *f, int column, XXH3_state_t *state, uint64_t *print, mr_error *err)
{
    enum { PIECE = 512 };
    uint8_t piece[PIECE * 8];
    mri_entries_walk w;
    mri_entry one;
    size_t used = 0;
    int rc;
    XXH3_64bits_reset_withSeed(state, *print);
    mri_entries_walk_init(&w, &f->entries);
    while ((rc = mri_entries_walk_next(&w, &one, err)) == MR_OK) {
        if (column == 1) mri_put_le32(piece + used, one.bytes);
        else mri_put_le64(piece + used, column == 0 ? one.offset : (uint64_t)one.label);
        used += column == 1 ? 4 : 8;
        if (used < sizeof piece) continue;
        XXH3_64bits_update(state, piece, used);
        used = 0;
    }
    mri_entries_walk_fini(&w);
    XXH3_64bits_update(state, piece, used);
    *print = XXH3_64bits_digest(state);
    return rc == MR_EEND ? MR_OK : rc;
}

static int make_print(mri_framed *f, const mri_framed_format *format, mr_error *err)
{
    const uint64_t seed = format->print_seed
                              ? format->print_seed(f, format->context)
                              : XXH3_64bits_withSeed(format->name, strlen(format->name), format->settings);
    if (f->has_print && f->print_seed == seed) return MR_OK;
    XXH3_state_t *state = XXH3_createState();
    if (!state) return mr_error_set(err, MR_ENOMEM, "no memory for a fingerprint");
    uint64_t print = seed;
    for (uint32_t k = 0; k < f->file_count; k++)
        print = XXH3_64bits_withSeed(&f->file[k].first, sizeof f->file[k].first, print);
    int rc = add_column(f, 0, state, &print, err);
    if (!rc) rc = add_column(f, 1, state, &print, err);
    if (!rc && f->entries.sums.labelled) rc = add_column(f, 2, state, &print, err);
    XXH3_freeState(state);
    f->print = print;
    f->print_seed = seed;
    return rc;
}

static int add_up(mri_framed *f, const mri_framed_format *format, mr_error *err)
{
    f->max_bytes = f->entries.sums.max_bytes;
    f->total_bytes = f->entries.sums.total_bytes;
    f->memory_bytes += mri_entries_memory(&f->entries) + f->note_bytes;
    const int rc = make_print(f, format, err);
    f->fingerprint = XXH3_64bits_withSeed(&f->label_offset, sizeof f->label_offset, f->print);
    return rc;
}

/* ---- open, close ---- */
static int copy_key(char **out, const char *key, mr_error *err)
{
    *out = key ? strdup(key) : NULL;
    return key && !*out ? mr_error_set(err, MR_ENOMEM, "no memory for a key") : MR_OK;
}

static int remember_settings(mri_framed *f, const mr_source_config *cfg, mr_error *err)
{
    int rc = copy_key(&f->image_key, cfg->image_key, err);
    if (!rc) rc = copy_key(&f->label_key, cfg->label_key, err);
    f->cfg = *cfg;
    f->cfg.image_key = f->image_key;
    f->cfg.label_key = f->label_key;
    f->cfg.format = f->cfg.index_folder = f->cfg.remote_folder = NULL;
    f->cfg.class_names = NULL;
    f->cfg.class_count = 0;
    f->cfg.stop = NULL;
    return rc;
}

static int index_files(mri_framed *f, const mri_framed_format *format, const mr_source_config *cfg,
                       mr_error *err)
{
    int rc = MR_OK;
    f->from_index = mri_framed_index_load(f, format, cfg, &rc, err);
    if (!rc && !f->from_index) rc = scan_all(f, format, cfg, err);
    if (!rc && f->count == 0) {
        mr_error_set(err, MR_EFORMAT, "there is no sample in it");
        rc = mri_error_place(err, MR_EFORMAT, f->file_count ? f->file[0].path : NULL, MR_NOWHERE, MR_NOWHERE);
    }
    return rc;
}

int mri_framed_open(mri_framed *out, mri_filelist *files, const mri_framed_format *format,
                    const mr_source_config *cfg, mr_error *err)
{
    mri_framed *f = out;
    *f = (mri_framed){.kept.fd = -1};
    mri_entries_init(&f->entries);
    mri_accept *accept = files->accept;
    int rc = take_list(f, files, err);
    if (!rc) rc = remember_settings(f, cfg, err);
    if (!rc) rc = open_files(f, accept, cfg, err);
    if (!rc) rc = index_files(f, format, cfg, err);
    if (rc) return rc;
    rc = format->known ? format->known(format->context, f, err) : MR_OK;
    if (!rc) rc = settle_labels(f, cfg, err);
    if (!rc) rc = add_up(f, format, err);
    if (rc) return rc;
    if (!f->from_index) mri_framed_index_keep(f, format, cfg);
    return MR_OK;
}

void mri_framed_close(mri_framed *f)
{
    if (!f->file) return; /* not opened */
    mri_open_pool_destroy(f->pool);
    mri_open_give_back(f->allowed);
    for (uint32_t k = 0; k < f->file_count; k++) {
        if (f->file[k].fd >= 0) close(f->file[k].fd);
        free(f->file[k].path);
    }
    free(f->file);
    mri_entries_fini(&f->entries);
    mri_framed_kept_fini(&f->kept);
    free(f->note);
    free(f->image_key);
    free(f->label_key);
    free(f->index_path);
    *f = (mri_framed){.kept.fd = -1};
    mri_entries_init(&f->entries);
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

static int wrong_entry(const mri_framed *f, uint64_t sample, mr_error *err)
{
    mr_error_set(err, MR_EFORMAT,
                 "the index places this sample outside its file: remove it, and it is built anew");
    return mri_error_place(err, MR_EFORMAT, f->entries.path, MR_NOWHERE, sample);
}

/* Entries in memory were checked when they were loaded. */
static int entry_of(const mri_framed *f, uint64_t sample, uint32_t *file, mri_entry *out, mr_error *err)
{
    const int rc = mri_entries_get(&f->entries, sample, out, err);
    if (rc) return mri_error_place(err, rc, NULL, MR_NOWHERE, sample);
    *file = mri_framed_file_of(f, sample);
    const uint64_t bytes = f->file[*file].bytes;
    if (out->offset > bytes || out->bytes > bytes - out->offset || out->bytes > f->entries.sums.max_bytes)
        return wrong_entry(f, sample, err);
    return MR_OK;
}

int mri_framed_entry(const mri_framed *f, uint64_t sample, mri_entry *out, mr_error *err)
{
    uint32_t file;
    return entry_of(f, sample, &file, out, err);
}

int mri_framed_extent(const mri_framed *f, uint64_t sample, mr_extent *out, mr_error *err)
{
    mri_entry e;
    uint32_t file;
    const int rc = entry_of(f, sample, &file, &e, err);
    if (!rc) *out = (mr_extent){file, e.offset, e.bytes};
    return rc;
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
    mri_entry e;
    if (!f->entries.sums.labelled) return MR_EUNSUPPORTED;
    const int rc = mri_entries_get(&f->entries, sample, &e, NULL);
    if (rc) return rc;
    if (e.label == MRI_NO_LABEL) return MR_EUNSUPPORTED;
    return mri_framed_check_label(f, e.label, out, NULL) == MR_OK ? MR_OK : MR_EUNSUPPORTED;
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

void mri_framed_labels(const mri_framed *f, mr_source_labels *out)
{
    const mri_entries_sums *s = &f->entries.sums;
    if (!s->labelled || f->class_count == 0) return;
    out->max = (int64_t)f->class_count - 1 + f->label_offset;
    out->min = s->class_max >= 0 ? s->class_min : s->label_min;
}

/* ---- compared with the data ---- */
static int compare(const mr_source *src, uint64_t count, const mr_source *again, mr_error *err)
{
    int rc = MR_OK;
    if (again->info.count != count)
        return mr_error_set(err, MR_EFORMAT, "the index has %llu samples, the data have %llu",
                            (unsigned long long)count, (unsigned long long)again->info.count);
    for (uint64_t k = 0; !rc && k < count; k++) {
        mr_extent a, b;
        int64_t x = 0, y = 0;
        rc = src->ops->extent(src, k, &a, err); /* of all there are, whichever are taken */
        if (!rc) rc = again->ops->extent(again, k, &b, err);
        if (rc) return rc;
        const int one = src->ops->label(src, k, &x), other = again->ops->label(again, k, &y);
        if (a.file == b.file && a.offset == b.offset && a.bytes == b.bytes && one == other && x == y)
            continue;
        rc = mr_error_set(
            err, MR_EFORMAT,
            "the index is not the data's: of this sample it has %llu bytes at %llu, label %lld; the "
            "data have %llu at %llu, label %lld: remove it, and it is built anew",
            (unsigned long long)a.bytes, (unsigned long long)a.offset, (long long)x,
            (unsigned long long)b.bytes, (unsigned long long)b.offset, (long long)y);
        return mri_error_place(err, rc, NULL, MR_NOWHERE, k);
    }
    return rc;
}

int mri_framed_check(const mr_source *src, const mri_framed *f, mr_error *err)
{
    mr_source *again;
    mr_source_config cfg = f->cfg;
    if (!f->from_index || src->view) return MR_OK; /* it was just scanned */
    cfg.no_index_file = true;
    int rc = mri_source_open_as(&again, src->ops, src->path, &cfg, err);
    if (rc) return rc;
    rc = compare(src, f->count, again, err);
    mr_source_close(again);
    return rc ? mri_error_place(err, rc, err && err->file[0] ? NULL : src->path, MR_NOWHERE, MR_NOWHERE)
              : MR_OK;
}
