/* pipeline/cache/cache_disk.c: entries in a file, found again in the next run.
 *
 *   DIR/STAMP-FORM.mrcache         | header 64 | entry | entry | ...        appended to, never changed
 *   DIR/STAMP-FORM.mrcache.index   | header 64 | record 32 | record | ...   one for each entry, written
 *                                  after it
 *
 *   header   | "MRCACHE" kind | crc of the rest  | 0 u32 | stamp u64 | count u64 | pair u64 | form name 24 |
 *   record   | sample u64 | offset u64 | bytes u32 | crc of the rest | 0 u64 |
 *
 * The stamp names the data set, so that many share a folder and a set that changed begins anew. `pair` is
 * drawn when the two files are made and is the same in both: one of them alone is worth nothing. A run that
 * is killed leaves whole entries with records, one that is torn without, and perhaps half a record at the
 * end, which is cut off; a machine that loses power may leave records of entries that are not there, which
 * their checksums tell when they are read. So nothing is ever synced.
 *
 * The index is locked while the cache is filled. A process without the lock reads the entries that existed
 * when it opened the cache, and adds none. The last record of a sample counts: a damaged entry is written
 * again after the others.
 *
 * Files of another user, or ones that others may write to, are left alone: STAMP-FORM-uUSER.mrcache is used.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/source/source.h"
#include "formats/storage/kept.h"
#include "pipeline/cache/cache_store.h"

enum {
    HEADER = 64,
    RECORD = 32,
    KIND_DATA = 'D',
    KIND_INDEX = 'I',
    FORM_NAME = 24,
    RECORDS_AT_ONCE = 2048,
    PATH_ROOM = 4096
};

typedef struct cache_file {
    int fd;
    char path[PATH_ROOM];
    uint64_t bytes; /* when it was looked at */
} cache_file;

struct mri_cache_store {
    cache_file data, index;
    bool writable; /* fixed after open: this process has the lock */
    uint64_t pair; /* of the index's header */
    pthread_mutex_t lock;
    uint64_t data_end, index_end; /* lock: where the next of each goes */
    uint64_t owed;                /* lock: bytes of index for entries that have room and no record yet */
};

/* ------------------------------------------------------------------------------ names and headers */

static int named(const cache_file *f, int rc, mr_error *err)
{
    mr_error_at(err, f->path, MR_NOWHERE, MR_NOWHERE);
    return rc;
}

static void write_header(const mri_cache *c, char kind, uint64_t pair, uint8_t h[HEADER])
{
    memset(h, 0, HEADER);
    memcpy(h, "MRCACHE", 7);
    h[7] = (uint8_t)kind;
    mri_put_le64(h + 16, c->cfg.stamp);
    mri_put_le64(h + 24, c->cfg.count);
    mri_put_le64(h + 32, pair);
    snprintf((char *)h + 40, FORM_NAME, "%s", c->cfg.form->name);
    mri_put_le32(h + 8, mr_crc32c(0, h + 12, HEADER - 12));
}

/* Read bytes that existed when the size was taken; *ended: they are gone, because the process with the lock
 * began anew meanwhile. In a file of our own that is damage, like anything else. */
static int read_part(const mri_cache_store *s, const cache_file *f, void *to, size_t bytes, uint64_t at,
                     bool *ended, mr_error *err)
{
    mr_error why = MR_ERROR_INIT;
    const int rc = mri_pread_all(f->fd, to, bytes, at, f->path, &why);
    *ended = rc == MR_EFORMAT && !s->writable;
    if (rc == MR_OK || *ended) return MR_OK;
    if (err) *err = why;
    return rc;
}

typedef enum found { WHOLE, EMPTY, TORN, FOREIGN } found;

/* What stands at the file's beginning; pair is written for WHOLE. */
static int look(const mri_cache *c, const cache_file *f, char kind, found *what, uint64_t *pair,
                mr_error *err)
{
    uint8_t h[HEADER] = {0}, mine[HEADER];
    const size_t have = (size_t)mri_min_u64(f->bytes, HEADER);
    bool ended;
    const int rc = read_part(c->store, f, h, have, 0, &ended, err);
    *what = EMPTY;
    if (rc != MR_OK || have == 0 || ended) return rc;
    *pair = mri_le64(h + 32);
    write_header(c, kind, *pair, mine);
    if (have == HEADER && memcmp(h, mine, HEADER) == 0) *what = WHOLE;
    else if (memcmp(h, mine, have < 8 ? have : 8) != 0) *what = FOREIGN;
    else if (have == HEADER && mri_le32(h + 8) == mr_crc32c(0, h + 12, HEADER - 12))
        *what = FOREIGN; /* of other data, renamed */
    else *what = TORN;
    return MR_OK;
}

static int foreign(const cache_file *f, mr_error *err)
{
    mr_error_set(
        err, MR_EFORMAT,
        "a file of this name is there and is no cache of this data: take it away, or give another folder");
    return named(f, MR_EFORMAT, err);
}

/* ------------------------------------------------------------------------------ open */

/* *st: what else there is to know of it. */
static int take_size(cache_file *f, struct stat *st, mr_error *err)
{
    if (fstat(f->fd, st) != 0)
        return named(f, mr_error_sys(err, errno, "cannot look at the cache's file"), err);
    if (!S_ISREG(st->st_mode)) return foreign(f, err);
    f->bytes = (uint64_t)st->st_size;
    return MR_OK;
}

/* Bytes of entries are handed on as they stand, and whoever wrote the index says which they are: so both
 * files are this user's or root's alone. One that is not there is fine. */
static bool is_trusted(const cache_file *f, char why[MRI_DISTRUST_BYTES])
{
    struct stat st;
    const int fd = open(f->path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return true; /* if it exists, opening it reports the error */
    bool trusted = true;
    if (fstat(fd, &st) == 0 && S_ISLNK(st.st_mode)) {
        snprintf(why, MRI_DISTRUST_BYTES, "it is a link");
        trusted = false;
    } else if (S_ISREG(st.st_mode)) {
        trusted = mri_file_is_trusted(fd, why);
    }
    close(fd);
    return trusted;
}

static bool name_one(const mri_cache *c, cache_file *f, const char *owner, const char *suffix)
{
    const int n = snprintf(f->path, sizeof f->path, "%s/%016llx-%s%s.mrcache%s", c->cfg.folder,
                           (unsigned long long)c->cfg.stamp, c->cfg.form->name, owner, suffix);
    return n >= 0 && (size_t)n < sizeof f->path;
}

static int name_files(const mri_cache *c, mri_cache_store *s, const char *owner, mr_error *err)
{
    if (name_one(c, &s->data, owner, "") && name_one(c, &s->index, owner, ".index")) return MR_OK;
    return mr_error_set(err, MR_EINVAL, "the cache folder's name is too long");
}

/* Our own name, and somebody was there: not believed, and made anew. */
static int take_away(const cache_file *f, mr_error *err)
{
    char why[MRI_DISTRUST_BYTES];
    if (is_trusted(f, why) || unlink(f->path) == 0 || errno == ENOENT) return MR_OK;
    mr_error_set(err, MR_EIO,
                 "what this file says is not believed, for %s, and it cannot be replaced: %s; "
                 "give another folder",
                 why, strerror(errno));
    return named(f, MR_EIO, err);
}

/* The usual names, which all runs share; where others wrote those, names of this user's own. */
static int choose_names(mri_cache *c, mri_cache_store *s, mr_error *err)
{
    char why[MRI_DISTRUST_BYTES], theirs[PATH_ROOM], owner[32];
    int rc = name_files(c, s, "", err);
    if (rc != MR_OK) return rc;
    const cache_file *bad = !is_trusted(&s->index, why)  ? &s->index
                            : !is_trusted(&s->data, why) ? &s->data
                                                         : NULL;
    if (!bad) return MR_OK;
    memcpy(theirs, bad->path, sizeof theirs);
    snprintf(owner, sizeof owner, "-u%llu", (unsigned long long)geteuid());
    rc = name_files(c, s, owner, err);
    if (rc == MR_OK)
        mri_cache_note(c, MRI_NOTE_DISTRUST,
                       "%s: what this file says is not believed, for %s; %s is used instead", theirs, why,
                       s->data.path);
    if (rc == MR_OK) rc = take_away(&s->index, err);
    return rc == MR_OK ? take_away(&s->data, err) : rc;
}

/* *made: it was not there. */
static int open_or_make(const char *path, bool *made)
{
    for (int turn = 0; turn < 2; turn++) {
        int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
        *made = false;
        if (fd >= 0 || errno != ENOENT) return fd;
        fd = mri_kept_make(AT_FDCWD, path, 0644);
        *made = fd >= 0;
        if (fd >= 0 || errno != EEXIST) return fd;
    }
    return -1; /* made and taken away again in between */
}

static int open_one(cache_file *f, bool *writable, mr_error *err)
{
    bool made = false;
    f->fd = *writable ? open_or_make(f->path, &made) : -1;
    /* what may only be read can be read */
    if (f->fd < 0 && (!*writable || errno == EACCES || errno == EROFS)) {
        const int why = *writable ? errno : ENOENT;
        *writable = false;
        f->fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
        if (f->fd < 0 && errno == ENOENT) errno = why; /* it could not be made */
    }
    if (f->fd < 0) return named(f, mr_error_sys(err, errno, "cannot open the cache's file"), err);
    char why[MRI_DISTRUST_BYTES];
    struct stat st;
    const int rc = take_size(f, &st, err);
    if (rc != MR_OK) return rc;
    if (!made && !mri_file_is_trusted(f->fd, why)) { /* since its name was chosen */
        mr_error_set(err, MR_EIO, "what this file says is not believed, for %s", why);
        return named(f, MR_EIO, err);
    }
    if (st.st_nlink > 1) {
        mr_error_set(err, MR_EINVAL, "this file has other names, too (%u): take it away",
                     (unsigned)st.st_nlink);
        return named(f, MR_EINVAL, err);
    }
    fcntl(f->fd, F_SETFL, 0); /* not to wait mattered for the open alone */
    return MR_OK;
}

/* An empty pair of files. */
static int begin(mri_cache *c, mri_cache_store *s, mr_error *err)
{
    uint8_t h[HEADER];
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    s->pair =
        mri_mix64((uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec) ^ mri_mix64((uint64_t)getpid());
    cache_file *const files[] = {&s->data, &s->index};
    for (int i = 0; i < 2; i++) {
        write_header(c, i ? KIND_INDEX : KIND_DATA, s->pair, h);
        if (ftruncate(files[i]->fd, 0) != 0)
            return named(files[i], mr_error_sys(err, errno, "cannot empty the cache's file"), err);
        const int rc = mri_pwrite_all(files[i]->fd, h, HEADER, 0, files[i]->path, err);
        if (rc != MR_OK) return rc;
        files[i]->bytes = HEADER;
    }
    return MR_OK;
}

/* The files belong to each other and to this data, or begin anew. */
static int check_headers(mri_cache *c, mri_cache_store *s, bool *empty, mr_error *err)
{
    found data, index;
    uint64_t other = 0;
    int rc = look(c, &s->data, KIND_DATA, &data, &other, err);
    if (rc == MR_OK) rc = look(c, &s->index, KIND_INDEX, &index, &s->pair, err);
    if (rc != MR_OK) return rc;
    if (data == FOREIGN) return foreign(&s->data, err);
    if (index == FOREIGN) return foreign(&s->index, err);
    *empty = data != WHOLE || index != WHOLE || other != s->pair;
    if (!*empty) return MR_OK;
    if (!s->writable) return MR_OK; /* who has the lock may be making them at this moment */
    if (data != EMPTY || index != EMPTY)
        mri_cache_note(c, MRI_NOTE_DAMAGED,
                       "%s: the cache's files are damaged or do not belong together; it begins anew",
                       s->data.path);
    return begin(c, s, err);
}

static void take_record(mri_cache *c, const mri_cache_store *s, const uint8_t *r)
{
    const uint64_t sample = mri_le64(r), offset = mri_le64(r + 8);
    const uint32_t bytes = mri_le32(r + 16);
    uint8_t copy[RECORD];
    memcpy(copy, r, RECORD);
    mri_put_le32(copy + 20, 0);
    const bool sound = mr_crc32c(0, copy, RECORD) == mri_le32(r + 20) && sample < c->cfg.count &&
                       offset >= HEADER && offset <= s->data.bytes && bytes <= s->data.bytes - offset &&
                       bytes <= c->entry_max_bytes;
    if (!sound) {
        c->dropped++;
        return;
    }
    if (c->place[sample] == MRI_CACHE_NONE) c->entries++;
    else c->used -= c->bytes[sample];
    c->place[sample] = offset;
    c->bytes[sample] = bytes;
    c->used += bytes;
}

static void forget_records(mri_cache *c)
{
    memset(c->place, 0, (size_t)c->cfg.count * sizeof *c->place);
    memset(c->bytes, 0, (size_t)c->cfg.count * sizeof *c->bytes);
    c->entries = c->used = c->dropped = 0;
}

static int load_index(mri_cache *c, mri_cache_store *s, mr_error *err)
{
    uint8_t *page = malloc((size_t)RECORDS_AT_ONCE * RECORD);
    if (!page) return mr_error_set(err, MR_ENOMEM, "no memory to read the cache's index");
    const uint64_t end = s->index.bytes - (s->index.bytes - HEADER) % RECORD; /* half a record: the last
                                                                                 writer was killed there */
    int rc = MR_OK;
    bool ended = false;
    for (uint64_t at = HEADER; rc == MR_OK && !ended && at < end;) {
        const size_t bytes = (size_t)mri_min_u64(end - at, (uint64_t)RECORDS_AT_ONCE * RECORD);
        rc = read_part(s, &s->index, page, bytes, at, &ended, err);
        for (size_t k = 0; rc == MR_OK && !ended && k < bytes; k += RECORD) take_record(c, s, page + k);
        at += bytes;
    }
    free(page);
    if (ended) forget_records(c); /* the data, too, begins anew */
    s->index_end = end;
    s->data_end = mri_align_up(s->data.bytes, 8);
    if (c->dropped)
        mri_cache_note(c, MRI_NOTE_DAMAGED,
                       "%s: %llu damaged records were passed over; their samples are cached anew",
                       s->index.path, (unsigned long long)c->dropped);
    return rc;
}

/* Why nothing is added. refused: errno of the lock, or 0. */
static void note_shared(mri_cache *c, const mri_cache_store *s, int refused)
{
    if (refused && refused != EWOULDBLOCK)
        mri_cache_note(c, MRI_NOTE_SHARED,
                       "%s: the cache cannot be locked: %s; its entries are used, nothing is added",
                       s->data.path, strerror(refused));
    else
        mri_cache_note(
            c, MRI_NOTE_SHARED,
            "%s: another process fills this cache, or it may not be written; its entries are used, "
            "nothing is added",
            s->data.path);
}

static int make_folder(const mri_cache *c, mr_error *err)
{
    if (mkdir(c->cfg.folder, 0777) == 0 || errno == EEXIST) return MR_OK;
    mr_error_sys(err, errno, "cannot make the cache's folder");
    mr_error_at(err, c->cfg.folder, MR_NOWHERE, MR_NOWHERE);
    return err ? err->code : MR_EIO;
}

int mri_cache_disk_open(mri_cache *c, mr_error *err)
{
    mri_cache_store *s = calloc(1, sizeof *s);
    if (!s) return mr_error_set(err, MR_ENOMEM, "no memory for a cache");
    s->data.fd = s->index.fd = -1;
    pthread_mutex_init(&s->lock, NULL);
    c->store = s;
    bool empty = false;
    struct stat st;
    int rc = make_folder(c, err);
    bool may_write = true;
    if (rc == MR_OK) rc = choose_names(c, s, err);
    if (rc == MR_OK) rc = open_one(&s->index, &may_write, err);
    const bool asked = rc == MR_OK && may_write, locked = asked && flock(s->index.fd, LOCK_EX | LOCK_NB) == 0;
    const int refused = asked && !locked ? errno : 0;
    if (rc == MR_OK) rc = take_size(&s->index, &st, err); /* again: who had the lock before may have added */
    if (rc == MR_OK) rc = open_one(&s->data, &may_write, err); /* who has the lock may be about to make it */
    s->writable = locked && may_write;
    if (rc == MR_OK) rc = check_headers(c, s, &empty, err);
    if (rc == MR_OK && !(empty && !s->writable)) rc = load_index(c, s, err);
    if (rc != MR_OK) return rc;
    c->closed = !s->writable;
    if (!s->writable) note_shared(c, s, refused);
    return MR_OK;
}

void mri_cache_disk_close(mri_cache *c)
{
    mri_cache_store *s = c->store;
    if (s->data.fd >= 0) close(s->data.fd);
    if (s->index.fd >= 0) close(s->index.fd); /* and the lock is gone */
    pthread_mutex_destroy(&s->lock);
    free(s);
}

int mri_cache_disk_fd(const mri_cache *c) { return c->store->data.fd; }
const char *mri_cache_disk_path(const mri_cache *c) { return c->store ? c->store->data.path : c->cfg.folder; }

/* ------------------------------------------------------------------------------ append */

static bool reserve(mri_cache *c, uint32_t bytes, uint64_t *data_at)
{
    mri_cache_store *s = c->store;
    pthread_mutex_lock(&s->lock);
    const uint64_t end = mri_align_up(s->data_end + bytes, 8);
    const bool fits = end + s->index_end + s->owed + RECORD <= c->cfg.budget_bytes;
    if (fits) {
        *data_at = s->data_end;
        s->data_end = end;
        s->owed += RECORD;
    }
    pthread_mutex_unlock(&s->lock);
    if (!fits)
        mri_cache_note(
            c, MRI_NOTE_FULL,
            "%s: the cache is full with %llu of %llu samples; the rest is read from the data in every epoch",
            s->data.path, (unsigned long long)mri_cache_counts_of(c).entries,
            (unsigned long long)c->cfg.count);
    return fits;
}

static int write_parts(const mri_cache_store *s, const struct iovec *parts, int count, uint64_t at,
                       mr_error *err)
{
    uint64_t bytes = 0;
    for (int i = 0; i < count; i++) bytes += parts[i].iov_len;
    ssize_t n;
    do n = pwritev(s->data.fd, parts, count, (off_t)at);
    while (n < 0 && errno == EINTR);
    if (n >= 0 && (uint64_t)n == bytes) return MR_OK;
    for (int i = 0; i < count; i++) { /* in part, or not at all: plain writes continue, or report the error */
        const int rc = mri_pwrite_all(s->data.fd, parts[i].iov_base, parts[i].iov_len, at, s->data.path, err);
        if (rc != MR_OK) return rc;
        at += parts[i].iov_len;
    }
    return MR_OK;
}

/* Only now the entry exists. Under the lock, so that records have no gaps between them. An entry that could
 * not be written owes its record for good: the cache is full then. */
static int write_record(mri_cache *c, uint64_t sample, uint64_t offset, uint32_t bytes, mr_error *err)
{
    mri_cache_store *s = c->store;
    uint8_t r[RECORD] = {0};
    mri_put_le64(r, sample);
    mri_put_le64(r + 8, offset);
    mri_put_le32(r + 16, bytes);
    mri_put_le32(r + 20, mr_crc32c(0, r, RECORD));
    pthread_mutex_lock(&s->lock);
    const int rc = mri_pwrite_all(s->index.fd, r, RECORD, s->index_end, s->index.path, err);
    if (rc == MR_OK) s->index_end += RECORD;
    s->owed -= RECORD;
    pthread_mutex_unlock(&s->lock);
    return rc;
}

uint64_t mri_cache_disk_append(mri_cache *c, uint64_t sample, const struct iovec *parts, int count,
                               uint32_t bytes)
{
    uint64_t at;
    mr_error err = MR_ERROR_INIT;
    if (!reserve(c, bytes, &at)) return MRI_CACHE_NONE;
    int rc = write_parts(c->store, parts, count, at, &err);
    if (rc == MR_OK) rc = write_record(c, sample, at, bytes, &err);
    if (rc == MR_OK) return at;
    char text[384];
    mr_error_format(&err, text, sizeof text);
    mri_cache_note(c, MRI_NOTE_FULL, "the cache takes no more: %s", text);
    return MRI_CACHE_NONE;
}

/* ------------------------------------------------------------------------------ which data */

static int mix_times(const char *path, int fd, uint64_t sample, uint64_t *stamp, mr_error *err)
{
    struct stat st;
    if ((path ? stat(path, &st) : fstat(fd, &st)) != 0) {
        if (path && errno == ENOENT) return MR_OK; /* a bad sample, which is reported when it is read */
        mr_error_sys(err, errno, "cannot look at it");
        mr_error_at(err, path, MR_NOWHERE, sample);
        return err ? err->code : MR_EIO;
    }
    *stamp = mri_mix64(*stamp ^ (uint64_t)st.st_mtim.tv_sec * 1000000000u ^ (uint64_t)st.st_mtim.tv_nsec);
    *stamp = mri_mix64(*stamp ^ (uint64_t)st.st_size);
    return MR_OK;
}

int mri_cache_stamp(const mr_source *src, uint64_t *out, mr_error *err)
{
    const mr_source_info *info = mr_source_info_of(src);
    uint64_t stamp = mri_mix64(info->fingerprint ^ mri_mix64(info->count));
    int rc = MR_OK;
    *out = stamp;
    /* the index that a record file's fingerprint is made of has a checksum of every record */
    if (strcmp(info->format, "mrec") == 0 || strcmp(info->format, "shards") == 0) return MR_OK;
    for (uint32_t i = 0; i < info->file_count && rc == MR_OK; i++) {
        mr_source_file f;
        rc = mr_source_file_at(src, i, &f);
        if (rc == MR_OK)
            rc = mix_times(f.direct_ok && f.fd >= 0 ? NULL : f.path, f.fd, MR_NOWHERE, &stamp,
                           err); /* unpacked:
                       the packed one's */
    }
    mr_source_file from;
    if (rc == MR_OK && mri_source_made_from(src, &from))
        rc = mix_times(NULL, from.fd, MR_NOWHERE, &stamp, err);
    const bool files = mri_source_has_sample_files(src) && !mri_source_is_made(src);
    for (uint64_t i = 0; files && i < info->count && rc == MR_OK; i++) {
        char path[PATH_ROOM];
        mr_extent e;
        if (info->file_count && mr_source_extent(src, i, &e, NULL) == MR_OK && e.file != MR_FILE_OF_SAMPLE)
            continue;
        rc = mix_times(mr_source_sample_path(src, i, path, sizeof path), -1, i, &stamp, err);
    }
    *out = stamp;
    return rc;
}
