/* tests/fuzz/memory_files.c: files that a fuzz target reads without the system: see fuzz.h.
 *
 *   __wrap_open(path)   in MRT_FUZZ_FOLDER: a number from FIRST_FD on, else __real_open()
 *   __wrap_pread(fd)    from FIRST_FD on: from memory, else __real_pread()
 *
 * One folder without folders in it. Files that the library writes while it opens data have no name
 * (memfd_create, O_TMPFILE), or to one made by mkostemp() and renamed: both are here too, nothing else can be
 * written. One thread. The list of wrapped calls is MRT_WRAP_FILES in CMakeLists.txt. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <glob.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

enum { FIRST_FD = 1 << 20, MOST_OPEN = 48, MOST_FILES = 24, NAME_BYTES = 128, SPILLS = 8 };
#define SPILL_BYTES ((size_t)64 << 20) /* more is a full disk */

typedef struct file {
    char name[NAME_BYTES];
    const uint8_t *data;
    size_t bytes;
} file;

typedef struct spill { /* a file being written, mostly without a name; its pages stay when it goes */
    uint8_t *data;
    size_t bytes;
    int users;
    bool on_disk;          /* would be: it counts for no memory */
    char name[NAME_BYTES]; /* from mkostemp(): it is there until end(), also when it is closed */
} spill;

typedef struct handle {
    enum { CLOSED, FILE_OPEN, SPILL_OPEN, FOLDER_OPEN } kind;
    int at; /* of the file or spill */
} handle;

static file files[MOST_FILES];
static int file_count, open_folders;
static spill spills[SPILLS];
static handle handles[MOST_OPEN];
static struct walk { /* stands for a DIR */
    int at, fd;
    struct dirent entry;
} walks[4];

/* Declares both sides of a wrapped call; the body of ours follows. */
#define REAL(type, name, ...)                                                                                \
    type __real_##name(__VA_ARGS__);                                                                         \
    type __wrap_##name(__VA_ARGS__);                                                                         \
    type __wrap_##name(__VA_ARGS__)

/* ---- names ---- */
static const char folder[] = MRT_FUZZ_FOLDER;

/* What follows the folder in a path; "" for the folder itself, NULL for one that lies elsewhere. */
static const char *inside(const char *path)
{
    const size_t n = sizeof folder - 1;
    if (strncmp(path, folder, n) != 0 || (path[n] && path[n] != '/')) return NULL;
    path += n;
    while (*path == '/') path++;
    return path;
}

static int find(const char *name)
{
    int at = 0;
    while (at < file_count && strcmp(files[at].name, name) != 0) at++;
    return at < file_count ? at : -1;
}

const char *mrt_fuzz_file(const char *name, const void *data, size_t bytes)
{
    static char path[4][sizeof folder + NAME_BYTES];
    static int turn;
    int at = find(name);
    if (at < 0) {
        if (file_count == MOST_FILES || strlen(name) >= NAME_BYTES) abort();
        at = file_count++;
        strcpy(files[at].name, name);
    }
    files[at].data = data;
    files[at].bytes = bytes;
    char *out = path[turn++ % 4];
    memcpy(out, folder, sizeof folder - 1);
    out[sizeof folder - 1] = '/';
    strcpy(out + sizeof folder, name);
    return out;
}

size_t mrt_fuzz_read(const char *name, void *out, size_t out_bytes)
{
    const int at = find(name);
    if (at < 0) return 0;
    memcpy(out, files[at].data, files[at].bytes < out_bytes ? files[at].bytes : out_bytes);
    return files[at].bytes;
}

/* ---- open files ---- */
static handle *of(int fd)
{
    return fd >= FIRST_FD && fd < FIRST_FD + MOST_OPEN && handles[fd - FIRST_FD].kind
               ? &handles[fd - FIRST_FD]
               : NULL;
}

static int take_handle(int kind, int at)
{
    for (int k = 0; k < MOST_OPEN; k++) {
        if (handles[k].kind) continue;
        handles[k].kind = kind;
        handles[k].at = at;
        if (kind == SPILL_OPEN) spills[at].users++;
        return FIRST_FD + k;
    }
    errno = EMFILE;
    return -1;
}

static int open_spill(bool on_disk)
{
    int at = 0;
    while (at < SPILLS && (spills[at].users || spills[at].name[0])) at++;
    if (at == SPILLS) abort(); /* no source needs more */
    if (!spills[at].data) {
        void *p = mmap(NULL, SPILL_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                       -1, 0);
        if (p == MAP_FAILED) abort();
        spills[at].data = p;
    }
    spills[at].bytes = 0;
    spills[at].on_disk = on_disk;
    return take_handle(SPILL_OPEN, at);
}

static int open_inside(const char *name, int flags)
{
    if (flags & (O_WRONLY | O_RDWR | O_CREAT)) return errno = EROFS, -1;
    const int at = find(name);
    if (!*name) return take_handle(FOLDER_OPEN, 0);
    if (at < 0) return errno = ENOENT, -1;
    if (flags & O_DIRECTORY) return errno = ENOTDIR, -1;
    return take_handle(FILE_OPEN, at);
}

static mode_t mode_of(int flags, va_list args) { return flags & O_CREAT ? va_arg(args, mode_t) : 0; }

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    if ((flags & O_TMPFILE) == O_TMPFILE) return open_spill(true);
    const char *name = inside(path);
    if (name) return open_inside(name, flags);
    va_list args;
    va_start(args, flags);
    const mode_t mode = mode_of(flags, args);
    va_end(args);
    return __real_open(path, flags, mode);
}

int __real_openat(int at, const char *path, int flags, ...);
int __wrap_openat(int at, const char *path, int flags, ...);
int __wrap_openat(int at, const char *path, int flags, ...)
{
    const handle *h = of(at);
    const char *name = path[0] == '/' ? inside(path) : h && h->kind == FOLDER_OPEN ? path : NULL;
    if (name) return open_inside(name, flags);
    va_list args;
    va_start(args, flags);
    const mode_t mode = mode_of(flags, args);
    va_end(args);
    return __real_openat(at, path, flags, mode);
}

REAL(int, memfd_create, const char *name, unsigned flags)
{
    (void)name, (void)flags;
    return open_spill(false);
}

REAL(int, close, int fd)
{
    handle *h = of(fd);
    if (!h) return __real_close(fd);
    spill *s = h->kind == SPILL_OPEN ? &spills[h->at] : NULL;
    if (s && --s->users == 0 && !s->on_disk) mrt_fuzz_count(-(ptrdiff_t)s->bytes);
    h->kind = CLOSED;
    return 0;
}

int __real_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...)
{
    const handle *h = of(fd);
    if (h && command == F_DUPFD_CLOEXEC) return take_handle(h->kind, h->at);
    if (h) abort();
    va_list args;
    va_start(args, command);
    void *argument = va_arg(args, void *); /* whatever it is, it goes on as it came */
    va_end(args);
    return __real_fcntl(fd, command, argument);
}

/* ---- bytes ---- */
REAL(ssize_t, pread, int fd, void *out, size_t bytes, off_t offset)
{
    const handle *h = of(fd);
    if (!h) return __real_pread(fd, out, bytes, offset);
    if (h->kind == FOLDER_OPEN) return errno = EISDIR, -1;
    const uint8_t *data = h->kind == FILE_OPEN ? files[h->at].data : spills[h->at].data;
    const size_t there = h->kind == FILE_OPEN ? files[h->at].bytes : spills[h->at].bytes;
    if (offset < 0) return errno = EINVAL, -1;
    if ((size_t)offset >= there) return 0;
    if (bytes > there - (size_t)offset) bytes = there - (size_t)offset;
    memcpy(out, data + offset, bytes);
    return (ssize_t)bytes;
}

REAL(ssize_t, pwrite, int fd, const void *from, size_t bytes, off_t offset)
{
    const handle *h = of(fd);
    if (!h) return __real_pwrite(fd, from, bytes, offset);
    if (h->kind != SPILL_OPEN) return errno = EBADF, -1;
    if (offset < 0 || (size_t)offset > SPILL_BYTES || bytes > SPILL_BYTES - (size_t)offset)
        return errno = ENOSPC, -1;
    spill *s = &spills[h->at];
    const size_t end = (size_t)offset + bytes;
    if ((size_t)offset > s->bytes) memset(s->data + s->bytes, 0, (size_t)offset - s->bytes);
    memcpy(s->data + offset, from, bytes);
    if (end <= s->bytes) return (ssize_t)bytes;
    const size_t more = end - s->bytes;
    s->bytes = end;
    if (!s->on_disk) mrt_fuzz_count((ptrdiff_t)more);
    return (ssize_t)bytes;
}

/* ---- what there is ---- */
static int tell(struct stat *st, bool is_folder, size_t bytes)
{
    *st = (struct stat){
        .st_mode = is_folder ? S_IFDIR | 0755 : S_IFREG | 0644, .st_size = (off_t)bytes, .st_nlink = 1};
    st->st_mtim.tv_sec = 1000000000;
    return 0;
}

static int tell_name(const char *name, struct stat *st)
{
    if (!*name) return tell(st, true, 0);
    const int at = find(name);
    return at < 0 ? (errno = ENOENT, -1) : tell(st, false, files[at].bytes);
}

REAL(int, stat, const char *path, struct stat *st)
{
    const char *name = inside(path);
    return name ? tell_name(name, st) : __real_stat(path, st);
}

REAL(int, lstat, const char *path, struct stat *st)
{
    const char *name = inside(path);
    return name ? tell_name(name, st) : __real_lstat(path, st);
}

REAL(int, fstatat, int at, const char *path, struct stat *st, int flags)
{
    const handle *h = of(at);
    const char *name = path[0] == '/' ? inside(path) : h && h->kind == FOLDER_OPEN ? path : NULL;
    return name ? tell_name(name, st) : __real_fstatat(at, path, st, flags);
}

REAL(int, fstat, int fd, struct stat *st)
{
    const handle *h = of(fd);
    if (!h) return __real_fstat(fd, st);
    return tell(st, h->kind == FOLDER_OPEN,
                h->kind == FILE_OPEN    ? files[h->at].bytes
                : h->kind == SPILL_OPEN ? spills[h->at].bytes
                                        : 0);
}

REAL(int, fstatvfs, int fd, struct statvfs *v)
{
    if (!of(fd)) return __real_fstatvfs(fd, v);
    *v = (struct statvfs){.f_frsize = 4096, .f_bavail = (fsblkcnt_t)1 << 24};
    return 0;
}

REAL(int, access, const char *path, int mode)
{
    const char *name = inside(path);
    if (!name) return __real_access(path, mode);
    if (!*name || find(name) >= 0) return 0;
    return errno = ENOENT, -1;
}

/* ---- written and renamed ---- */
static spill *written_as(const char *name)
{
    for (int k = 0; k < SPILLS; k++)
        if (name && *name && strcmp(spills[k].name, name) == 0) return &spills[k];
    return NULL;
}

REAL(int, mkostemp, char *path, int flags)
{
    const char *name = inside(path);
    if (!name) return __real_mkostemp(path, flags);
    if (strlen(name) >= NAME_BYTES || written_as(name)) return errno = EROFS, -1;
    const int fd = open_spill(true);
    if (fd >= 0) strcpy(spills[handles[fd - FIRST_FD].at].name, name);
    return fd;
}

REAL(int, rename, const char *from, const char *to)
{
    const spill *s = written_as(inside(from));
    const char *name = inside(to);
    if (!s || !name) return __real_rename(from, to);
    mrt_fuzz_file(name, s->data, s->bytes);
    return 0;
}

/* A file without a name gets one, by /proc/self/fd/N. */
REAL(int, linkat, int from_at, const char *from, int to_at, const char *to, int flags)
{
    const char *name = inside(to);
    int fd = -1;
    if (name && sscanf(from, "/proc/self/fd/%d", &fd) != 1) fd = -1;
    const handle *h = of(fd);
    if (!name || !h || h->kind != SPILL_OPEN) return __real_linkat(from_at, from, to_at, to, flags);
    spill *s = &spills[h->at];
    if (strlen(name) >= NAME_BYTES) return errno = EROFS, -1;
    if (find(name) >= 0 || written_as(name)) return errno = EEXIST, -1;
    strcpy(s->name, name); /* for rename() and unlink() */
    mrt_fuzz_file(name, s->data, s->bytes);
    return 0;
}

REAL(int, fsync, int fd) { return of(fd) ? 0 : __real_fsync(fd); }

REAL(int, unlink, const char *path)
{
    spill *s = written_as(inside(path));
    if (!s) return __real_unlink(path);
    s->name[0] = '\0';
    return 0;
}

REAL(int, fchmod, int fd, mode_t mode) { return of(fd) ? 0 : __real_fchmod(fd, mode); }

REAL(int, mkdir, const char *path, mode_t mode)
{
    return inside(path) ? (errno = EROFS, -1) : __real_mkdir(path, mode);
}

/* ---- folders ---- */
static struct walk *walk_of(DIR *d)
{
    for (size_t k = 0; k < sizeof walks / sizeof walks[0]; k++)
        if ((void *)d == (void *)&walks[k]) return &walks[k];
    return NULL;
}

static DIR *begin_walk(int fd)
{
    struct walk *w = walks;
    while (w->fd) w++;
    *w = (struct walk){.fd = fd};
    open_folders++;
    return (DIR *)(void *)w;
}

REAL(DIR *, opendir, const char *path)
{
    const char *name = inside(path);
    if (!name) return __real_opendir(path);
    if (*name) return errno = find(name) < 0 ? ENOENT : ENOTDIR, NULL;
    return begin_walk(take_handle(FOLDER_OPEN, 0));
}

REAL(DIR *, fdopendir, int fd) { return of(fd) ? begin_walk(fd) : __real_fdopendir(fd); }

REAL(struct dirent *, readdir, DIR *d)
{
    struct walk *w = walk_of(d);
    if (!w) return __real_readdir(d);
    if (w->at == file_count) return NULL;
    strcpy(w->entry.d_name, files[w->at++].name);
    w->entry.d_type = DT_REG;
    return &w->entry;
}

REAL(int, closedir, DIR *d)
{
    struct walk *w = walk_of(d);
    if (!w) return __real_closedir(d);
    __wrap_close(w->fd);
    w->fd = 0;
    open_folders--;
    return 0;
}

REAL(int, dirfd, DIR *d)
{
    const struct walk *w = walk_of(d);
    return w ? w->fd : __real_dirfd(d);
}

REAL(int, glob, const char *pattern, int flags, int (*failed)(const char *, int), glob_t *g)
{
    (void)flags, (void)failed;
    const char *name = inside(pattern);
    *g = (glob_t){.gl_pathv = malloc(MOST_FILES * sizeof *g->gl_pathv)};
    if (!g->gl_pathv) return GLOB_NOSPACE;
    for (int k = 0; name && k < file_count; k++)
        if (fnmatch(name, files[k].name, FNM_PATHNAME | FNM_PERIOD) == 0)
            g->gl_pathv[g->gl_pathc++] = strdup(mrt_fuzz_file(files[k].name, files[k].data, files[k].bytes));
    if (g->gl_pathc > 0) return 0;
    free(g->gl_pathv);
    return GLOB_NOMATCH;
}

REAL(void, globfree, glob_t *g)
{
    for (size_t k = 0; k < g->gl_pathc; k++) free(g->gl_pathv[k]);
    free(g->gl_pathv);
}

int mrt_fuzz_files_clear(void)
{
    bool left = open_folders > 0;
    for (int k = 0; k < MOST_OPEN; k++) left |= handles[k].kind != CLOSED;
    for (int k = 0; k < SPILLS; k++) spills[k].name[0] = '\0';
    file_count = 0;
    return !left;
}
