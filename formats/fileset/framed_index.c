/* formats/fileset/framed_index.c: the kept index of a data set of framed samples.
 *
 *   0   "mridx 3\n"
 *   8   u32  CRC32C of all that follows up to the pages, then of the note
 *   12  u32  version of the format's scan
 *   16  16   name of the format, padded with zeros
 *   32  u64  settings          40  u64  samples
 *   48  u32  files             52  u32  0
 *   56  u64  bytes of the note
 *   64  u64  sum of bytes      72  u64  largest sample
 *   80  u64  samples with a label
 *   88  i64 x 4  smallest and largest label, smallest and largest label that can be a class
 *   120 u64 x 2  fingerprint of the entries, and its seed
 *   136 files   x { u64 hash of the name | u64 bytes on disk | i64 time of change, ns | u64 bytes unpacked |
 *                   u64 first sample | i64 time of change as the system keeps it (ctime), ns }
 *       zeros up to a multiple of 4096, pages of entries (entries.h), then the note; nothing after it
 *
 * A program that writes a file again can give it the old time, with the same size; the system's own time it
 * cannot give. A copy of data and index has another one and is scanned once more.
 *
 * Little-endian. All that opening needs stands in front, and each page has a checksum of its own: an index
 * larger than memory is opened without reading it. It is a copy of a scan's result: if it is damaged in any
 * way, it is dropped and the data are scanned again. A checksum does not stop an attacker: an index that
 * somebody else could have written is not used, and in an index loaded into memory every entry must lie in
 * its file, after the previous entry. `verify` scans the data and compares. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/util.h"
#include "formats/fileset/framed.h"
#include "formats/storage/kept.h"

enum { HEADER = 136, NAME_BYTES = 16, FILE_BYTES = 48, MOST_PATH = 4096 };
static const char magic[8] = {'m', 'r', 'i', 'd', 'x', ' ', '3', '\n'};
static const char ending[] = ".mridx";

/* ---- places ---- */
/* DIR/.NAME.mridx: hidden, so that patterns such as NAME* of other programs do not name it. */
static bool in_data_folder(char *out, size_t bytes, const mri_framed *f)
{
    const char *path = f->file[0].path, *slash = strrchr(path, '/');
    const int folder = slash ? (int)(slash + 1 - path) : 0;
    return (size_t)snprintf(out, bytes, "%.*s.%s%s", folder, path, path + folder, ending) < bytes;
}

/* DIR/NAME.mridx, as 0.4 and earlier wrote it: read and never written. */
static bool not_hidden(char *out, size_t bytes, const mri_framed *f)
{
    return (size_t)snprintf(out, bytes, "%s%s", f->file[0].path, ending) < bytes;
}

/* One folder for all data sets: the name carries where the data lie. */
static bool in_cache(char *out, size_t bytes, const mri_framed *f, const mr_source_config *cfg)
{
    char whole[MOST_PATH];
    const char *path = f->file[0].path, *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (strlen(path) < sizeof whole && realpath(path, whole)) path = whole;
    const unsigned long long hash = XXH3_64bits(path, strlen(path));
    int n;
    if (cfg->index_folder) n = snprintf(out, bytes, "%s/%s-%016llx%s", cfg->index_folder, name, hash, ending);
    else if (xdg && xdg[0] == '/')
        n = snprintf(out, bytes, "%s/millrace/%s-%016llx%s", xdg, name, hash, ending);
    else if (home && home[0] == '/')
        n = snprintf(out, bytes, "%s/.cache/millrace/%s-%016llx%s", home, name, hash, ending);
    else return false;
    return n > 0 && (size_t)n < bytes;
}

/* ---- header ---- */
static uint64_t name_hash(const mri_framed_file *file)
{
    const char *slash = strrchr(file->path, '/'), *name = slash ? slash + 1 : file->path;
    return XXH3_64bits(name, strlen(name));
}

/* All in front of the pages, zeros included. */
static size_t head_bytes(const mri_framed *f)
{
    return (size_t)mri_align_up(HEADER + (uint64_t)f->file_count * FILE_BYTES, MRI_ENTRY_PAGE);
}

uint64_t mri_framed_index_pages_at(const mri_framed *f) { return head_bytes(f); }

static uint64_t note_at(const mri_framed *f)
{
    return mri_framed_index_pages_at(f) + mri_entries_pages(f->count) * MRI_ENTRY_PAGE;
}

static void encode_sums(uint8_t *p, const mri_framed *f)
{
    const mri_entries_sums *s = &f->entries.sums;
    const uint64_t words[] = {s->total_bytes,
                              s->max_bytes,
                              s->labelled,
                              (uint64_t)s->label_min,
                              (uint64_t)s->label_max,
                              (uint64_t)s->class_min,
                              (uint64_t)s->class_max,
                              f->print,
                              f->print_seed};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(words); k++) mri_put_le64(p + 64 + 8 * k, words[k]);
}

static void decode_sums(const uint8_t *p, mri_framed *f)
{
    mri_entries_sums *s = &f->entries.sums;
    uint64_t words[9];
    for (size_t k = 0; k < MRI_ARRAY_COUNT(words); k++) words[k] = mri_le64(p + 64 + 8 * k);
    *s = (mri_entries_sums){words[0],          words[1],          words[2],         (int64_t)words[3],
                            (int64_t)words[4], (int64_t)words[5], (int64_t)words[6]};
    f->print = words[7];
    f->print_seed = words[8];
}

/* Checksum left out. */
static void encode_head(uint8_t *p, const mri_framed *f, const mri_framed_format *format)
{
    memset(p, 0, head_bytes(f));
    memcpy(p, magic, sizeof magic);
    mri_put_le32(p + 12, format->version);
    memcpy(p + 16, format->name, strnlen(format->name, NAME_BYTES));
    mri_put_le64(p + 32, format->settings);
    mri_put_le64(p + 40, f->count);
    mri_put_le32(p + 48, f->file_count);
    mri_put_le64(p + 56, f->note_bytes);
    encode_sums(p, f);
    for (uint32_t k = 0; k < f->file_count; k++) {
        const mri_framed_file *file = &f->file[k];
        uint8_t *q = p + HEADER + (size_t)k * FILE_BYTES;
        mri_put_le64(q, name_hash(file));
        mri_put_le64(q + 8, file->stored_bytes);
        mri_put_le64(q + 16, (uint64_t)file->changed_ns);
        mri_put_le64(q + 24, file->bytes);
        mri_put_le64(q + 32, file->first);
        mri_put_le64(q + 40, (uint64_t)file->system_ns);
    }
}

/* The index speaks of these files, this format and these settings; count, sums, note and firsts into f. */
static bool decode_head(const uint8_t *p, uint8_t *mine, mri_framed *f, const mri_framed_format *format)
{
    f->count = mri_le64(p + 40);
    f->note_bytes = (size_t)mri_le64(p + 56);
    decode_sums(p, f);
    uint64_t first = 0;
    for (uint32_t k = 0; k < f->file_count; k++) {
        f->file[k].first = mri_le64(p + HEADER + (size_t)k * FILE_BYTES + 32);
        if (f->file[k].first < first || f->file[k].first > f->count || (k == 0 && f->file[k].first))
            return false;
        first = f->file[k].first;
    }
    encode_head(mine, f, format);
    memcpy(mine + 8, p + 8, 4);
    return memcmp(mine, p, head_bytes(f)) == 0;
}

/* Every length in it against the size of the index file, before memory is taken. */
static bool sizes_fit(const mri_framed *f, uint64_t file_bytes)
{
    const uint64_t at = mri_framed_index_pages_at(f);
    if (file_bytes < at || f->count == 0 || f->count > file_bytes) return false;
    const uint64_t pages = mri_entries_pages(f->count), rest = file_bytes - at;
    return pages <= rest / MRI_ENTRY_PAGE && f->note_bytes == rest - pages * MRI_ENTRY_PAGE;
}

/* ---- load ---- */
/* Do samples follow each other in their files, and do they add up to the header's sums? */
static bool places_fit(const mri_framed *f)
{
    mri_entries_sums sums;
    mri_entries_walk w;
    mri_entry e;
    uint32_t file = 0;
    uint64_t end = 0;
    mri_entries_sums_init(&sums);
    mri_entries_walk_init(&w, &f->entries);
    for (uint64_t k = 0; mri_entries_walk_next(&w, &e, NULL) == MR_OK; k++) {
        while (file + 1 < f->file_count && f->file[file + 1].first <= k) file++, end = 0;
        const uint64_t bytes = f->file[file].bytes;
        if (e.offset < end || e.offset > bytes || e.bytes > bytes - e.offset || e.bytes > (uint64_t)1 << 31)
            return false;
        end = e.offset + e.bytes;
        mri_entries_sums_add(&sums, &e);
    }
    mri_entries_walk_fini(&w);
    return memcmp(&sums, &f->entries.sums, sizeof sums) == 0;
}

static void forget(mri_framed *f)
{
    mri_entries_fini(&f->entries);
    free(f->note);
    f->note = NULL;
    f->note_bytes = 0;
    f->count = 0;
    f->has_print = false;
}

static bool read_note(int fd, const uint8_t *head, mri_framed *f, const char *path, int *rc, mr_error *err)
{
    f->note = malloc(f->note_bytes ? f->note_bytes : 1);
    if (!f->note) *rc = mr_error_set(err, MR_ENOMEM, "no memory for an index");
    if (!f->note || mri_pread_all(fd, f->note, f->note_bytes, note_at(f), path, NULL) != MR_OK) return false;
    const uint32_t crc = mr_crc32c(0, head + 12, head_bytes(f) - 12);
    return mr_crc32c(crc, f->note, f->note_bytes) == mri_le32(head + 8);
}

/* In memory where there is room, else by pages: what opening costs does not grow with it then. */
static bool read_entries(int fd, mri_framed *f, const char *path, const mr_source_config *cfg, int *rc,
                         mr_error *err)
{
    const uint64_t at = mri_framed_index_pages_at(f), pages = mri_entries_pages(f->count);
    const mri_entries_sums sums = f->entries.sums;
    const bool in_memory = pages <= mri_framed_room(f, cfg) / MRI_ENTRY_PAGE;
    mr_error why = MR_ERROR_INIT;
    if (!in_memory)
        *rc = mri_source_budget(cfg, f->memory_bytes + f->note_bytes + mri_entries_disk_memory(),
                                f->file[0].path, err);
    if (*rc) return false;
    const int loaded = mri_entries_load(&f->entries, fd, at, path, f->count, in_memory, &why);
    f->entries.sums = sums;
    if (loaded == MR_ENOMEM) {
        *rc = loaded;
        if (err) *err = why;
    }
    return loaded == MR_OK && (!in_memory || places_fit(f));
}

static bool load(int fd, uint64_t bytes, uint8_t *head, mri_framed *f, const char *path,
                 const mri_framed_format *format, const mr_source_config *cfg, int *rc, mr_error *err)
{
    const size_t head_size = head_bytes(f);
    if (mri_pread_all(fd, head, head_size, 0, path, NULL) != MR_OK) return false;
    if (!decode_head(head, head + head_size, f, format) || !sizes_fit(f, bytes)) return false;
    *rc = mri_source_budget(cfg, f->memory_bytes + f->note_bytes, f->file[0].path, err);
    if (*rc || !read_note(fd, head, f, path, rc, err)) return false;
    f->has_print = read_entries(fd, f, path, cfg, rc, err);
    return f->has_print;
}

static bool is_ours(mri_framed *f, int fd, const char *path)
{
    char why[MRI_DISTRUST_BYTES], shown[240];
    if (mri_file_is_trusted(fd, why)) return true;
    mri_framed_tell(f, "the index %s is not used, because %s: the data are read instead",
                    mr_text_shown(path, shown, sizeof shown), why);
    return false;
}

static bool load_from(const char *path, mri_framed *f, const mri_framed_format *format,
                      const mr_source_config *cfg, int *rc, mr_error *err)
{
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    bool loaded = false;
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size > head_bytes(f) &&
        is_ours(f, fd, path)) {
        uint8_t *head = malloc(2 * head_bytes(f));
        f->kept.path = strdup(path);
        if (head && f->kept.path)
            loaded = load(fd, (uint64_t)st.st_size, head, f, f->kept.path, format, cfg, rc, err);
        else *rc = mr_error_set(err, MR_ENOMEM, "no memory for an index");
        free(head);
    }
    if (!loaded) forget(f);
    if (loaded) f->index_path = strdup(path); /* NULL: then it stays */
    if (loaded && f->entries.fd >= 0) {
        f->kept.fd = fd; /* read as long as the data set is open */
    } else {
        if (fd >= 0) close(fd);
        free(f->kept.path);
        f->kept.path = NULL;
        f->entries.path = NULL;
    }
    return loaded;
}

bool mri_framed_index_load(mri_framed *f, const mri_framed_format *format, const mr_source_config *cfg,
                           int *rc, mr_error *err)
{
    char path[MOST_PATH];
    if (cfg->no_index_file || f->file_count == 0) return false;
    if (in_data_folder(path, sizeof path, f) && load_from(path, f, format, cfg, rc, err)) return true;
    if (!*rc && not_hidden(path, sizeof path, f) && load_from(path, f, format, cfg, rc, err)) return true;
    return !*rc && in_cache(path, sizeof path, f, cfg) && load_from(path, f, format, cfg, rc, err);
}

/* ---- a file aside ---- */
void mri_framed_kept_fini(mri_framed_kept *k)
{
    if (k->fd >= 0) close(k->fd);
    if (k->part) unlink(k->part);
    free(k->part);
    free(k->path);
    *k = (mri_framed_kept){.fd = -1};
}

/* Those who may read the data may read the index; nobody but the owner writes to it. */
static void share_like(int fd, const char *data)
{
    struct stat st;
    if (stat(data, &st) == 0 && fchmod(fd, (st.st_mode & 0444) | 0600) != 0)
        return; /* then it is the owner's alone */
}

static bool unnamed_in(const char *folder, int *fd)
{
    *fd = mri_kept_unnamed(folder);
    return *fd >= 0;
}

static bool folder_of(const char *path, char *out, size_t bytes)
{
    const char *slash = strrchr(path, '/');
    const int len = slash ? (int)(slash - path) + (slash == path) : 1;
    return (size_t)snprintf(out, bytes, "%.*s", len, slash ? path : ".") < bytes;
}

/* A file without a name where the file system has such, so that nothing stays of a run that is killed; else
 * one under a name of its own. False, with errno. */
static bool begin_at(mri_framed_kept *k, const char *path)
{
    char text[MOST_PATH];
    *k = (mri_framed_kept){.fd = -1, .path = strdup(path)};
    if (k->path && folder_of(path, text, sizeof text) && unnamed_in(text, &k->fd)) return true;
    if (k->path && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL) &&
        (k->fd = mri_kept_make_beside(path, text, sizeof text)) >= 0) {
        k->part = strdup(text);
        if (k->part) return true;
        unlink(text);
        errno = ENOMEM;
    }
    const int code = errno;
    mri_framed_kept_fini(k);
    errno = code;
    return false;
}

/* An existing file may be replaced if it is this user's index. Any other file of that name stays, and so does
 * another user's index of the same data: that user would replace ours in turn. */
static bool may_replace(const char *path)
{
    char head[6];
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    if (fd < 0) return errno == ENOENT;
    const bool mine =
        fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (geteuid() == 0 || st.st_uid == geteuid());
    const bool index = mine && (st.st_size == 0 || (pread(fd, head, sizeof head, 0) == (ssize_t)sizeof head &&
                                                    memcmp(head, magic, sizeof head) == 0));
    close(fd);
    if (!index) errno = EEXIST;
    return index;
}

void mri_framed_index_drop(const mri_framed *f)
{
    if (f->index_path && may_replace(f->index_path)) unlink(f->index_path);
}

/* Give the unnamed file a name. If the final name is free the file gets it at once, and a killed run leaves
 * nothing; else it gets a temporary name (k->part) in the same folder. */
static bool name_it(mri_framed_kept *k)
{
    char to[MOST_PATH];
    if (mri_kept_link(k->fd, k->path) == 0) return true;
    if (mri_kept_link_beside(k->fd, k->path, to, sizeof to) != 0) return false;
    k->part = strdup(to);
    if (!k->part) unlink(to), errno = ENOMEM;
    return k->part != NULL;
}

/* Complete and on disk: now it gets its name. The last of several builders stays, and all of them are right.
 */
static bool publish(mri_framed_kept *k, const char *data)
{
    share_like(k->fd, data);
    if (!may_replace(k->path) || fsync(k->fd) != 0 || (!k->part && !name_it(k))) return false;
    if (k->part && mri_kept_rename(k->part, k->path) != 0) return false;
    free(k->part);
    k->part = NULL;
    mri_sync_folder_of(k->path, NULL); /* an index that is lost in a crash is built again */
    return true;
}

/* ---- spill ---- */
static bool begin_unnamed(mri_framed_kept *k)
{
    const char *folder = getenv("TMPDIR");
    *k = (mri_framed_kept){.fd = -1};
    return unnamed_in(folder && *folder ? folder : "/var/tmp", &k->fd);
}

int mri_framed_index_spill(mri_framed *f, const mr_source_config *cfg, mr_error *err)
{
    char path[MOST_PATH];
    bool begun = !cfg->no_index_file && in_data_folder(path, sizeof path, f) && begin_at(&f->kept, path);
    if (!begun && !cfg->no_index_file && in_cache(path, sizeof path, f, cfg))
        begun = mri_make_folders_of(path, 0700) && begin_at(&f->kept, path);
    if (!begun) begun = begin_unnamed(&f->kept);
    if (begun) return MR_OK;
    return mr_error_sys(
        err, errno,
        "the index is too large for memory, and there is no place for it on disk: --index-folder "
        "DIR or TMPDIR names one");
}

/* ---- keep ---- */
static bool write_head(int fd, const mri_framed *f, const mri_framed_format *format)
{
    uint8_t *head = malloc(head_bytes(f));
    if (!head) {
        errno = ENOMEM;
        return false;
    }
    encode_head(head, f, format);
    const uint32_t crc = mr_crc32c(0, head + 12, head_bytes(f) - 12);
    mri_put_le32(head + 8, mr_crc32c(crc, f->note, f->note_bytes));
    const bool written = mri_pwrite_all(fd, f->note, f->note_bytes, note_at(f), "index", NULL) == MR_OK &&
                         mri_pwrite_all(fd, head, head_bytes(f), 0, "index", NULL) == MR_OK;
    free(head);
    return written;
}

/* Entries in memory: all of it is written now. */
static bool keep_at(const char *path, const mri_framed *f, const mri_framed_format *format)
{
    mri_framed_kept k;
    if (!begin_at(&k, path)) return false;
    const bool kept =
        mri_entries_write(&f->entries, k.fd, mri_framed_index_pages_at(f), path, NULL) == MR_OK &&
        write_head(k.fd, f, format) && publish(&k, f->file[0].path);
    const int code = errno;
    mri_framed_kept_fini(&k);
    errno = code;
    return kept;
}

void mri_framed_index_keep(mri_framed *f, const mri_framed_format *format, const mr_source_config *cfg)
{
    char path[MOST_PATH] = "";
    bool kept;
    if (cfg->no_index_file) return;
    if (f->entries.fd >= 0) { /* its pages are where they stay */
        if (f->kept.path) snprintf(path, sizeof path, "%s", f->kept.path);
        kept = f->kept.path && write_head(f->kept.fd, f, format) && publish(&f->kept, f->file[0].path);
    } else {
        kept = in_data_folder(path, sizeof path, f) && keep_at(path, f, format);
        if (!kept && in_cache(path, sizeof path, f, cfg))
            kept = mri_make_folders_of(path, 0700) && keep_at(path, f, format);
    }
    const int code = errno;
    char shown[160], why[64] = "";
    mr_text_shown(path, shown, sizeof shown);
    if (kept && !f->index_path) f->index_path = strdup(path);
    if (kept) mri_framed_tell(f, "index kept in %s", shown);
    else
        mri_framed_tell(
            f,
            "the index cannot be kept and is built anew in every run (%s: %s); --index-folder DIR "
            "names a place for it",
            shown, strerror_r(code, why, sizeof why));
}
