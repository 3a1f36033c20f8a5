/* formats/remote/remote_store.c: see remote_store.h. */
#include "formats/remote/remote_store.h"
#include "base/dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/util.h"
#include "formats/storage/kept.h"

enum { HEADER_BYTES = 4096, MARK_BYTES = 8, KEY_BYTES = 33, MOST_PATH = 4096 };
static const char magic[] = "millrace remote 1\n";

/* ---- the folder ---- */
static int default_folder(char *out, size_t out_bytes, mr_error *err)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n;
    if (cache && cache[0] == '/') n = snprintf(out, out_bytes, "%s/millrace/remote", cache);
    else if (home && home[0] == '/') n = snprintf(out, out_bytes, "%s/.cache/millrace/remote", home);
    else return mr_error_set(err, MR_EINVAL, "no folder to keep remote data in: set HOME, or name one");
    if ((size_t)n < out_bytes) return MR_OK;
    return mr_error_set(err, MR_ELIMIT, "the path of the folder for remote data is too long: name another");
}

static int make_folders(char *path, mr_error *err)
{
    for (char *at = path + 1;; at++) {
        if (*at && *at != '/') continue;
        const char kept = *at;
        *at = '\0';
        const bool failed = mkdir(path, 0700) != 0 && errno != EEXIST;
        *at = kept;
        if (failed)
            return mri_error_place(
                err,
                mr_error_sys(err, errno,
                             "cannot make the folder for remote data (--remote-cache DIR names another)"),
                path, MR_NOWHERE, MR_NOWHERE);
        if (!kept) return MR_OK;
    }
}

static int distrusted(const char *path, const char *why, mr_error *err)
{
    mr_error_set(
        err, MR_EINVAL,
        "remote data are not kept in this folder, for %s: take that right away (chmod go-w), or name another "
        "folder (--remote-cache DIR)",
        why);
    return mri_error_place(err, MR_EINVAL, path, MR_NOWHERE, MR_NOWHERE);
}

int mri_store_open(mri_store *s, const char *folder, mr_error *err)
{
    char path[MOST_PATH];
    *s = (mri_store){.folder_fd = -1, .lock_fd = -1};
    if (!folder || !*folder) {
        const int rc = default_folder(path, sizeof path, err);
        if (rc) return rc;
    } else if ((size_t)snprintf(path, sizeof path, "%s", folder) >= sizeof path) {
        return mr_error_set(err, MR_ELIMIT, "the path of the folder for remote data is too long");
    }
    const int rc = make_folders(path, err);
    if (rc) return rc;
    s->folder = realpath(path, NULL);
    if (!s->folder)
        return mri_error_place(err, mr_error_sys(err, errno, "cannot find the folder for remote data"), path,
                               MR_NOWHERE, MR_NOWHERE);
    s->folder_fd = open(s->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char why[MRI_DISTRUST_BYTES];
    const bool trusted = s->folder_fd < 0 || mri_file_is_trusted(s->folder_fd, why);
    if (s->folder_fd >= 0 && trusted) s->lock_fd = mri_kept_open(s->folder_fd, "lock", 0600);
    if (s->lock_fd >= 0 && mri_file_is_trusted(s->lock_fd, why)) return MR_OK;
    if (!trusted || s->lock_fd >= 0) {
        mri_store_close(s);
        return distrusted(path, why, err);
    }
    mr_error_sys(err, errno, "cannot use the folder for remote data");
    mri_error_place(err, MR_EIO, path, MR_NOWHERE, MR_NOWHERE);
    mri_store_close(s);
    return MR_EIO;
}

void mri_store_close(mri_store *s)
{
    if (!s->folder) return;
    if (s->folder_fd >= 0) close(s->folder_fd);
    if (s->lock_fd >= 0) close(s->lock_fd);
    free(s->folder);
    free(s->closed);
    *s = (mri_store){0};
}

void mri_store_lock(const mri_store *s)
{
    while (flock(s->lock_fd, LOCK_EX) != 0 && errno == EINTR) {
    }
}

void mri_store_unlock(const mri_store *s) { flock(s->lock_fd, LOCK_UN); }

/* ---- entries nobody uses ---- */
static void name_of(char out[KEY_BYTES + 8], const char *key, const char *ending)
{
    snprintf(out, KEY_BYTES + 8, "%.32s.%s", key, ending);
}

/* An open map that nobody else holds, or -1. */
static int take_closed(const mri_store *s, const char *key)
{
    char name[KEY_BYTES + 8];
    name_of(name, key, "map");
    const int fd = openat(s->folder_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 && mri_file_is_trusted(fd, NULL) && flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
    if (fd >= 0) close(fd);
    return -1;
}

static int add_closed(mri_store *s, const char *key, mr_error *err)
{
    char name[KEY_BYTES + 8];
    struct stat map = {0}, data = {0};
    const int fd = take_closed(s, key);
    if (fd < 0) return MR_OK;
    name_of(name, key, "data");
    const bool known = fstat(fd, &map) == 0 &&
                       (fstatat(s->folder_fd, name, &data, AT_SYMLINK_NOFOLLOW) == 0 || errno == ENOENT);
    close(fd);
    if (!known) return MR_OK;
    if (s->closed_count == s->closed_cap) {
        const uint32_t cap = s->closed_cap ? 2 * s->closed_cap : 64;
        mri_closed_entry *larger = realloc(s->closed, cap * sizeof *larger);
        if (!larger) return mr_error_set(err, MR_ENOMEM, "no memory for a list of the stored files");
        s->closed = larger;
        s->closed_cap = cap;
    }
    mri_closed_entry *e = &s->closed[s->closed_count++];
    memcpy(e->key, key, KEY_BYTES - 1);
    e->key[KEY_BYTES - 1] = '\0';
    e->used_ns = (uint64_t)map.st_mtim.tv_sec * 1000000000u + (uint64_t)map.st_mtim.tv_nsec;
    e->bytes = (uint64_t)data.st_blocks * 512;
    s->closed_bytes += e->bytes;
    return MR_OK;
}

static int newest_first(const void *a, const void *b)
{
    const mri_closed_entry *x = a, *y = b;
    return (x->used_ns < y->used_ns) - (x->used_ns > y->used_ns);
}

static bool is_map(const char *name)
{
    return strspn(name, "0123456789abcdef") == KEY_BYTES - 1 && strcmp(name + KEY_BYTES - 1, ".map") == 0;
}

int mri_store_scan(mri_store *s, mr_error *err)
{
    s->closed_count = 0;
    s->closed_bytes = 0;
    const int fd = openat(s->folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (!d) {
        const int code = errno;
        if (fd >= 0) close(fd);
        return mri_error_place(err, mr_error_sys(err, code, "cannot list the folder for remote data"),
                               s->folder, MR_NOWHERE, MR_NOWHERE);
    }
    const struct dirent *e;
    int rc = MR_OK;
    mri_store_lock(s);
    while (!rc && (e = mri_dir_next(d)))
        if (is_map(e->d_name)) rc = add_closed(s, e->d_name, err);
    const int why = rc ? 0 : errno;
    mri_store_unlock(s);
    closedir(d);
    if (why)
        rc = mri_error_place(err, mr_error_sys(err, why, "cannot list the folder for remote data"), s->folder,
                             MR_NOWHERE, MR_NOWHERE);
    if (s->closed_count) qsort(s->closed, s->closed_count, sizeof *s->closed, newest_first);
    return rc;
}

void mri_store_drop_oldest(mri_store *s)
{
    mri_closed_entry *e = &s->closed[--s->closed_count];
    char map[KEY_BYTES + 8], data[KEY_BYTES + 8];
    s->closed_bytes -= e->bytes;
    name_of(map, e->key, "map");
    name_of(data, e->key, "data");
    mri_store_lock(s);
    const int fd = take_closed(s, e->key); /* or somebody opened it meanwhile: then it counts for them */
    if (fd >= 0) {
        unlinkat(s->folder_fd, data, 0);
        unlinkat(s->folder_fd, map, 0);
        close(fd);
    }
    mri_store_unlock(s);
}

/* ---- an entry ---- */
size_t mri_entry_block_bytes(const mri_entry *e, uint64_t block)
{
    return (size_t)mri_min_u64(MRI_BLOCK_BYTES, e->bytes - block * MRI_BLOCK_BYTES);
}

static int make_key(mri_entry *e, const char *url, const char *version, mr_error *err)
{
    const size_t a = strlen(url) + 1, b = strlen(version) + 1;
    char *all = malloc(a + b + sizeof e->bytes);
    if (!all) return mr_error_set(err, MR_ENOMEM, "no memory for a key");
    memcpy(all, url, a);
    memcpy(all + a, version, b);
    memcpy(all + a + b, &e->bytes, sizeof e->bytes);
    const XXH128_hash_t h = XXH3_128bits(all, a + b + sizeof e->bytes);
    snprintf(e->key, sizeof e->key, "%016llx%016llx", (unsigned long long)h.high64,
             (unsigned long long)h.low64);
    free(all);
    return MR_OK;
}

/* For whoever looks into the folder; that it is there and equal shows that the map is whole. */
static void make_header(char header[HEADER_BYTES], const mri_entry *e, const char *shown, const char *version)
{
    memset(header, 0, HEADER_BYTES);
    snprintf(header, HEADER_BYTES, "%s%.2000s\n%llu bytes in blocks of %d\n%.1000s\n", magic, shown,
             (unsigned long long)e->bytes, MRI_BLOCK_BYTES, version);
}

static bool is_whole(const mri_entry *e, const char *header)
{
    char found[HEADER_BYTES];
    struct stat map, data;
    return fstat(e->map_fd, &map) == 0 && fstat(e->data_fd, &data) == 0 &&
           (uint64_t)data.st_size == e->bytes &&
           (uint64_t)map.st_size == HEADER_BYTES + e->blocks * MARK_BYTES &&
           mri_pread_all(e->map_fd, found, sizeof found, 0, "", NULL) == MR_OK &&
           memcmp(found, header, sizeof found) == 0;
}

static int begin_anew(const mri_entry *e, const char *header, const char *folder, mr_error *err)
{
    if (ftruncate(e->map_fd, 0) != 0 || ftruncate(e->data_fd, 0) != 0 ||
        ftruncate(e->data_fd, (off_t)e->bytes) != 0 ||
        ftruncate(e->map_fd, (off_t)(HEADER_BYTES + e->blocks * MARK_BYTES)) != 0)
        return mri_error_place(err,
                               mr_error_sys(err, errno, "cannot make a file of %llu bytes for remote data",
                                            (unsigned long long)e->bytes),
                               folder, MR_NOWHERE, MR_NOWHERE);
    mr_error why = MR_ERROR_INIT;
    if (mri_pwrite_all(e->map_fd, header, HEADER_BYTES, 0, "", &why) == MR_OK) return MR_OK;
    return mr_error_sys(err, why.sys_errno, "cannot write to %s, where remote data are kept", folder);
}

static int open_nameless(const mri_store *s, mri_entry *e, mr_error *err)
{
    e->key[0] = '\0';
    e->map_fd = mri_kept_scratch(s->folder);
    if (e->map_fd >= 0) e->data_fd = mri_kept_scratch(s->folder);
    if (e->data_fd >= 0) return MR_OK;
    return mri_error_place(err, mr_error_sys(err, errno, "cannot keep remote data"), s->folder, MR_NOWHERE,
                           MR_NOWHERE);
}

static int open_named(const mri_store *s, mri_entry *e, mr_error *err)
{
    char name[KEY_BYTES + 8];
    name_of(name, e->key, "map");
    e->map_fd = mri_kept_open(s->folder_fd, name, 0600);
    name_of(name, e->key, "data");
    if (e->map_fd >= 0) e->data_fd = mri_kept_open(s->folder_fd, name, 0600);
    if (e->data_fd >= 0 &&
        (!mri_file_is_trusted(e->map_fd, e->distrust) || !mri_file_is_trusted(e->data_fd, e->distrust))) {
        close(e->map_fd);
        close(e->data_fd);
        e->data_fd = -1;
        return open_nameless(s, e, err);
    }
    if (e->data_fd >= 0 && flock(e->map_fd, LOCK_SH) == 0)
        return MR_OK; /* whoever takes it alone holds the folder's lock, as we do */
    return mri_error_place(err, mr_error_sys(err, errno, "cannot keep remote data"), s->folder, MR_NOWHERE,
                           MR_NOWHERE);
}

int mri_entry_open(const mri_store *s, mri_entry *e, const char *url, const char *shown, const char *version,
                   uint64_t bytes, mr_error *err)
{
    char header[HEADER_BYTES];
    *e = (mri_entry){.data_fd = -1,
                     .map_fd = -1,
                     .bytes = bytes,
                     .blocks = bytes / MRI_BLOCK_BYTES + (bytes % MRI_BLOCK_BYTES != 0)};
    int rc = make_key(e, url, version, err);
    if (rc) return rc;
    make_header(header, e, shown, version);
    mri_store_lock(s);
    rc = version[0] ? open_named(s, e, err) : open_nameless(s, e, err);
    if (!rc && !is_whole(e, header)) {
        if (e->key[0] && flock(e->map_fd, LOCK_EX | LOCK_NB) != 0) { /* damaged, and in use elsewhere: not
                                                                        under their feet */
            close(e->map_fd);
            close(e->data_fd);
            e->data_fd = -1;
            rc = open_nameless(s, e, err);
        }
        if (!rc) rc = begin_anew(e, header, s->folder, err);
        if (!rc && e->key[0]) flock(e->map_fd, LOCK_SH);
    }
    mri_store_unlock(s);
    if (rc) mri_entry_close(e);
    return rc;
}

void mri_entry_close(mri_entry *e)
{
    if (e->map_fd >= 0) {
        futimens(e->map_fd, NULL); /* last used now */
        close(e->map_fd);
    }
    if (e->data_fd >= 0) close(e->data_fd);
    e->map_fd = e->data_fd = -1;
}

bool mri_entry_marks(const mri_entry *e, uint64_t first, size_t count, uint64_t *out)
{
    return mri_pread_all(e->map_fd, out, count * MARK_BYTES, HEADER_BYTES + first * MARK_BYTES, "", NULL) ==
           MR_OK;
}

bool mri_entry_set_mark(const mri_entry *e, uint64_t block, uint64_t mark)
{
    return mri_pwrite_all(e->map_fd, &mark, MARK_BYTES, HEADER_BYTES + block * MARK_BYTES, "", NULL) == MR_OK;
}

bool mri_entry_lock(const mri_entry *e, uint64_t block, short type)
{
    struct flock range = {.l_type = type,
                          .l_whence = SEEK_SET,
                          .l_start = (off_t)(block * MRI_BLOCK_BYTES),
                          .l_len = MRI_BLOCK_BYTES};
    return fcntl(e->data_fd, F_OFD_SETLK, &range) == 0;
}

bool mri_entry_drop(const mri_entry *e, uint64_t block)
{
    if (!mri_entry_lock(e, block, F_WRLCK)) return false;
    /* past the end of the last one: whole pages go */
    const bool dropped =
        mri_entry_set_mark(e, block, 0) && fallocate(e->data_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                                     (off_t)(block * MRI_BLOCK_BYTES), MRI_BLOCK_BYTES) == 0;
    mri_entry_lock(e, block, F_UNLCK);
    return dropped;
}
