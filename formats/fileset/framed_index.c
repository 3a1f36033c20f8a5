/* formats/fileset/framed_index.c: the kept index of a data set of framed samples.
 *
 *   0   "mridx 1\n"
 *   8   u32  CRC32C of all that follows
 *   12  u32  version of the format's scan
 *   16  16   name of the format, zeros behind it
 *   32  u64  settings          40  u64  samples
 *   48  u32  files             52  u32  1: there are labels
 *   56  u64  bytes of the note
 *   64  files   x { u64 hash of the name | u64 bytes on disk | i64 time of change, ns | u64 bytes unpacked |
 *                   u64 first sample }
 *       samples x u64 offset, then samples x u32 bytes, then samples x i64 label, then the note; nothing
 *       behind it
 *
 * Little-endian. It is a copy of what a scan finds: whatever is wrong with one, it is dropped and the data
 * are scanned again. A checksum does not keep a liar out, so every place is also compared with the size of
 * its file. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/util.h"
#include "formats/fileset/framed.h"

enum { HEADER = 64, NAME_BYTES = 16, FILE_BYTES = 40, HAS_LABELS = 1, MOST_PATH = 4096 };
static const char magic[8] = {'m', 'r', 'i', 'd', 'x', ' ', '1', '\n'};
static const char ending[] = ".mridx";

/* ---- places ---- */
static bool in_data_folder(char *out, size_t bytes, const mri_framed *f)
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

/* False, with errno: path is now the folder that cannot be made. */
static bool make_folders_of(char *path)
{
    for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = '\0';
        if (mkdir(path, 0700) != 0 && errno != EEXIST) return false;
        *at = '/';
    }
    return true;
}

/* ---- header ---- */
static uint64_t name_hash(const mri_framed_file *file)
{
    const char *slash = strrchr(file->path, '/'), *name = slash ? slash + 1 : file->path;
    return XXH3_64bits(name, strlen(name));
}

static size_t head_bytes(const mri_framed *f) { return HEADER + (size_t)f->file_count * FILE_BYTES; }

/* All in front of the arrays, checksum left out. */
static void encode_head(uint8_t *p, const mri_framed *f, const mri_framed_format *format)
{
    memset(p, 0, head_bytes(f));
    memcpy(p, magic, sizeof magic);
    mri_put_le32(p + 12, format->version);
    memcpy(p + 16, format->name, strnlen(format->name, NAME_BYTES));
    mri_put_le64(p + 32, format->settings);
    mri_put_le64(p + 40, f->count);
    mri_put_le32(p + 48, f->file_count);
    mri_put_le32(p + 52, f->label ? HAS_LABELS : 0);
    mri_put_le64(p + 56, f->note_bytes);
    for (uint32_t k = 0; k < f->file_count; k++) {
        const mri_framed_file *file = &f->file[k];
        uint8_t *q = p + HEADER + (size_t)k * FILE_BYTES;
        mri_put_le64(q, name_hash(file));
        mri_put_le64(q + 8, file->stored_bytes);
        mri_put_le64(q + 16, (uint64_t)file->changed_ns);
        mri_put_le64(q + 24, file->bytes);
        mri_put_le64(q + 32, file->first);
    }
}

/* The index speaks of these files, this format and these settings; count, labels, note and firsts into f. */
static bool decode_head(const uint8_t *p, uint8_t *mine, mri_framed *f, const mri_framed_format *format,
                        bool *labels)
{
    f->count = mri_le64(p + 40);
    *labels = mri_le32(p + 52) == HAS_LABELS;
    f->note_bytes = (size_t)mri_le64(p + 56);
    uint64_t first = 0;
    for (uint32_t k = 0; k < f->file_count; k++) {
        f->file[k].first = mri_le64(p + HEADER + (size_t)k * FILE_BYTES + 32);
        if (f->file[k].first < first || f->file[k].first > f->count || (k == 0 && f->file[k].first))
            return false;
        first = f->file[k].first;
    }
    encode_head(mine, f, format);
    memcpy(mine + 8, p + 8, 4);
    memcpy(mine + 52, p + 52, 4);
    return mri_le32(p + 52) <= HAS_LABELS && memcmp(mine, p, head_bytes(f)) == 0;
}

/* Every length in it against the size of the index file, before memory is taken. */
static bool sizes_fit(const mri_framed *f, bool labels, uint64_t file_bytes)
{
    const uint64_t one = sizeof *f->offset + sizeof *f->bytes + (labels ? sizeof *f->label : 0);
    const uint64_t rest = file_bytes - head_bytes(f);
    return f->note_bytes <= rest && f->count > 0 && f->count <= (rest - f->note_bytes) / one &&
           f->count * one == rest - f->note_bytes;
}

static bool places_fit(const mri_framed *f)
{
    for (uint32_t k = 0; k < f->file_count; k++) {
        const mri_framed_file *file = &f->file[k];
        const uint64_t end = k + 1 < f->file_count ? file[1].first : f->count;
        for (uint64_t n = file->first; n < end; n++)
            if (f->offset[n] > file->bytes || f->bytes[n] > file->bytes - f->offset[n] ||
                f->bytes[n] > (uint64_t)1 << 31)
                return false;
    }
    return true;
}

/* ---- load ---- */
static bool read_part(int fd, void *to, size_t bytes, uint64_t *at, uint32_t *crc)
{
    if (mri_pread_all(fd, to, bytes, *at, "index", NULL) != MR_OK) return false;
    *crc = mr_crc32c(*crc, to, bytes);
    *at += bytes;
    return true;
}

static bool read_arrays(int fd, mri_framed *f, bool labels, uint32_t crc, uint32_t expected)
{
    uint64_t at = head_bytes(f);
    const size_t n = (size_t)f->count;
    return read_part(fd, f->offset, n * sizeof *f->offset, &at, &crc) &&
           read_part(fd, f->bytes, n * sizeof *f->bytes, &at, &crc) &&
           (!labels || read_part(fd, f->label, n * sizeof *f->label, &at, &crc)) &&
           read_part(fd, f->note, f->note_bytes, &at, &crc) && crc == expected && places_fit(f);
}

static void forget(mri_framed *f)
{
    free(f->offset);
    free(f->bytes);
    free(f->label);
    free(f->note);
    f->offset = NULL;
    f->bytes = NULL;
    f->label = NULL;
    f->note = NULL;
    f->note_bytes = 0;
    f->count = f->cap = 0;
}

static bool load(int fd, uint64_t bytes, uint8_t *head, mri_framed *f, const mri_framed_format *format,
                 const mr_source_config *cfg, int *rc, mr_error *err)
{
    bool labels;
    const size_t head_size = head_bytes(f);
    if (mri_pread_all(fd, head, head_size, 0, "index", NULL) != MR_OK) return false;
    if (!decode_head(head, head + head_size, f, format, &labels) || !sizes_fit(f, labels, bytes))
        return false;
    *rc = mri_source_budget(cfg, f->memory_bytes + f->note_bytes, f->file[0].path, err);
    if (!*rc) *rc = mri_framed_reserve(f, f->count, labels, cfg, err);
    if (*rc) return false;
    f->note = malloc(f->note_bytes ? f->note_bytes : 1);
    if (!f->note) *rc = mr_error_set(err, MR_ENOMEM, "no memory for an index");
    return f->note && read_arrays(fd, f, labels, mr_crc32c(0, head + 12, head_size - 12), mri_le32(head + 8));
}

static bool load_from(const char *path, mri_framed *f, const mri_framed_format *format,
                      const mr_source_config *cfg, int *rc, mr_error *err)
{
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool loaded = false;
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size > head_bytes(f)) {
        uint8_t *head = malloc(2 * head_bytes(f));
        if (head) loaded = load(fd, (uint64_t)st.st_size, head, f, format, cfg, rc, err);
        else *rc = mr_error_set(err, MR_ENOMEM, "no memory for an index");
        free(head);
    }
    if (fd >= 0) close(fd);
    if (!loaded) forget(f);
    return loaded;
}

bool mri_framed_index_load(mri_framed *f, const mri_framed_format *format, const mr_source_config *cfg,
                           int *rc, mr_error *err)
{
    char path[MOST_PATH];
    if (cfg->no_index_file || f->file_count == 0) return false;
    if (in_data_folder(path, sizeof path, f) && load_from(path, f, format, cfg, rc, err)) return true;
    return !*rc && in_cache(path, sizeof path, f, cfg) && load_from(path, f, format, cfg, rc, err);
}

/* ---- keep ---- */
static bool write_part(int fd, const void *from, size_t bytes, uint64_t *at)
{
    const bool written = mri_pwrite_all(fd, from, bytes, *at, "index", NULL) == MR_OK;
    *at += bytes;
    return written;
}

static uint32_t checksum(const uint8_t *head, const mri_framed *f)
{
    const size_t n = (size_t)f->count;
    uint32_t crc = mr_crc32c(0, head + 12, head_bytes(f) - 12);
    crc = mr_crc32c(crc, f->offset, n * sizeof *f->offset);
    crc = mr_crc32c(crc, f->bytes, n * sizeof *f->bytes);
    if (f->label) crc = mr_crc32c(crc, f->label, n * sizeof *f->label);
    return mr_crc32c(crc, f->note, f->note_bytes);
}

static bool write_all(int fd, const mri_framed *f, const mri_framed_format *format)
{
    uint8_t *head = malloc(head_bytes(f));
    if (!head) {
        errno = ENOMEM;
        return false;
    }
    encode_head(head, f, format);
    mri_put_le32(head + 8, checksum(head, f));
    uint64_t at = 0;
    const size_t n = (size_t)f->count;
    const bool written = write_part(fd, head, head_bytes(f), &at) &&
                         write_part(fd, f->offset, n * sizeof *f->offset, &at) &&
                         write_part(fd, f->bytes, n * sizeof *f->bytes, &at) &&
                         (!f->label || write_part(fd, f->label, n * sizeof *f->label, &at)) &&
                         write_part(fd, f->note, f->note_bytes, &at);
    free(head);
    return written;
}

/* Those who may read the data may read the index. */
static void share_like(int fd, const char *data)
{
    struct stat st;
    if (stat(data, &st) == 0 && fchmod(fd, (st.st_mode & 0444) | 0600) != 0)
        return; /* then it is the owner's alone */
}

/* Builders at the same time write to names of their own; the last rename stays, and all of them are right. */
static bool keep_at(const char *path, const mri_framed *f, const mri_framed_format *format)
{
    char part_path[MOST_PATH];
    if ((size_t)snprintf(part_path, sizeof part_path, "%s.XXXXXX", path) >= sizeof part_path) {
        errno = ENAMETOOLONG;
        return false;
    }
    const int fd = mkostemp(part_path, O_CLOEXEC);
    if (fd < 0) return false;
    bool kept = write_all(fd, f, format);
    share_like(fd, f->file[0].path);
    const int code = errno;
    kept = close(fd) == 0 && kept && rename(part_path, path) == 0;
    if (!kept) {
        errno = code ? code : errno;
        unlink(part_path);
    }
    return kept;
}

void mri_framed_index_keep(mri_framed *f, const mri_framed_format *format, const mr_source_config *cfg)
{
    char path[MOST_PATH];
    if (cfg->no_index_file) return;
    bool kept = in_data_folder(path, sizeof path, f) && keep_at(path, f, format);
    if (!kept && in_cache(path, sizeof path, f, cfg))
        kept = make_folders_of(path) && keep_at(path, f, format);
    const int code = errno;
    char shown[160], why[64] = "";
    mr_text_shown(path, shown, sizeof shown);
    if (kept) snprintf(f->report_text, sizeof f->report_text, "index kept in %s", shown);
    else
        snprintf(f->report_text, sizeof f->report_text,
                 "the index cannot be kept and is built anew in every run (%s: %s); --index-folder DIR names "
                 "a place for it",
                 shown, strerror_r(code, why, sizeof why));
}
