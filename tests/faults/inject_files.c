/* tests/faults/inject_files.c: descriptors, names and folders. */
#include "inject.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

/* ---- opening ---- */

static bool writes(int flags) { return (flags & O_ACCMODE) != O_RDONLY; }

static int open_fails(const void *caller, bool changes)
{
    if (changes) mrt_fault_change(false, caller);
    const int error = mrt_fault(MRT_FAULT_OPEN, caller);
    if (error) errno = error;
    return error;
}

static int open_at(int at, const char *path, int flags, mode_t mode, const void *caller)
{
    MRT_REAL(openat)
    if (open_fails(caller, flags & (O_CREAT | O_TRUNC))) return -1;
    const bool own = writes(flags) && mrt_fault_own(caller);
    const bool unnamed = (flags & O_TMPFILE) == O_TMPFILE;
    const bool made = own && !unnamed && mrt_journal_opening(at, path, flags & O_TRUNC);
    const int fd = real(at, path, flags, mode);
    if (own && fd >= 0) mrt_journal_opened(fd, at, unnamed ? NULL : path, made);
    return fd;
}

static mode_t mode_of(int flags, va_list args)
{
    return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(args, mode_t) : 0;
}

int open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    const mode_t mode = mode_of(flags, args);
    va_end(args);
    return open_at(AT_FDCWD, path, flags, mode, MRT_CALLER);
}

int openat(int at, const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    const mode_t mode = mode_of(flags, args);
    va_end(args);
    return open_at(at, path, flags, mode, MRT_CALLER);
}

int mkostemp(char *template, int flags)
{
    MRT_REAL(mkostemp)
    if (open_fails(MRT_CALLER, true)) return -1;
    const int fd = real(template, flags);
    if (fd >= 0 && mrt_fault_own(MRT_CALLER)) mrt_journal_opened(fd, AT_FDCWD, template, true);
    return fd;
}

int memfd_create(const char *name, unsigned flags)
{
    MRT_REAL(memfd_create)
    return open_fails(MRT_CALLER, false) ? -1 : real(name, flags);
}

DIR *opendir(const char *path)
{
    MRT_REAL(opendir)
    if (mrt_fault(MRT_FAULT_ALLOC, MRT_CALLER)) {
        errno = ENOMEM;
        return NULL;
    }
    return open_fails(MRT_CALLER, false) ? NULL : real(path);
}

DIR *fdopendir(int fd)
{
    MRT_REAL(fdopendir)
    if (mrt_fault(MRT_FAULT_ALLOC, MRT_CALLER)) {
        errno = ENOMEM;
        return NULL;
    }
    return real(fd);
}

struct dirent *readdir(DIR *dir)
{
    MRT_REAL(readdir)
    const int error = mrt_fault(MRT_FAULT_LIST, MRT_CALLER);
    if (!error) return real(dir);
    errno = error;
    return NULL;
}

int glob(const char *pattern, int flags, int (*failed)(const char *, int), glob_t *out)
{
    MRT_REAL(glob)
    if (mrt_fault(MRT_FAULT_ALLOC, MRT_CALLER)) return GLOB_NOSPACE;
    if (mrt_fault(MRT_FAULT_LIST, MRT_CALLER)) return GLOB_ABORTED;
    return real(pattern, flags, failed, out);
}

/* The descriptor is gone whatever close() says. */
int close(int fd)
{
    MRT_REAL(close)
    const int flags = fcntl(fd, F_GETFL);
    struct stat st;
    const bool file = flags >= 0 && writes(flags) && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    const int error = file ? mrt_fault(MRT_FAULT_CLOSE, MRT_CALLER) : 0;
    const int rc = real(fd);
    if (!error) return rc;
    errno = error;
    return -1;
}

/* ---- reading and writing ---- */

#define HALF(bytes) ((bytes) / 2 + ((bytes)&1))

/* -1 and errno, or how many bytes to move. */
static ssize_t moves(mrt_fault_class class, size_t bytes, const void *caller)
{
    const int error = mrt_fault(class, caller);
    if (error == MRT_FAULT_SHORT) return (ssize_t)HALF(bytes);
    if (!error) return (ssize_t)bytes;
    errno = error;
    return -1;
}

ssize_t read(int fd, void *data, size_t bytes)
{
    MRT_REAL(read)
    const ssize_t most = moves(MRT_FAULT_READ, bytes, MRT_CALLER);
    return most < 0 ? -1 : real(fd, data, (size_t)most);
}

ssize_t pread(int fd, void *data, size_t bytes, off_t at)
{
    MRT_REAL(pread)
    const ssize_t most = moves(MRT_FAULT_READ, bytes, MRT_CALLER);
    return most < 0 ? -1 : real(fd, data, (size_t)most, at);
}

ssize_t preadv(int fd, const struct iovec *v, int count, off_t at)
{
    MRT_REAL(preadv)
    if (moves(MRT_FAULT_READ, 2, MRT_CALLER) < 0) return -1;
    return real(fd, v, count, at);
}

/* Writes to standard error are messages: left alone. */
static ssize_t may_write(int fd, size_t bytes, const void *caller, bool *torn)
{
    *torn = false;
    if (fd == STDERR_FILENO) return (ssize_t)bytes;
    *torn = fd != STDOUT_FILENO && mrt_fault_change(true, caller);
    return *torn ? (ssize_t)HALF(bytes)
                 : moves(fd == STDOUT_FILENO ? MRT_FAULT_PRINT : MRT_FAULT_WRITE, bytes, caller);
}

ssize_t write(int fd, const void *data, size_t bytes)
{
    MRT_REAL(write)
    bool torn;
    const ssize_t most = may_write(fd, bytes, MRT_CALLER, &torn);
    const ssize_t rc = most < 0 ? -1 : real(fd, data, (size_t)most);
    if (torn) mrt_fault_kill();
    return rc;
}

ssize_t pwrite(int fd, const void *data, size_t bytes, off_t at)
{
    MRT_REAL(pwrite)
    bool torn;
    const ssize_t most = may_write(fd, bytes, MRT_CALLER, &torn);
    const ssize_t rc = most < 0 ? -1 : real(fd, data, (size_t)most, at);
    if (torn) mrt_fault_kill();
    return rc;
}

/* Short: the first buffer only, or half of the one there is. */
static ssize_t write_vector(int fd, const struct iovec *v, int count, off_t at, const void *caller)
{
    MRT_REAL(pwritev)
    bool torn;
    const ssize_t most = may_write(fd, 2, caller, &torn);
    ssize_t rc = -1;
    if (most == 1 && count > 0)
        rc = (pwrite)(fd, v[0].iov_base, count > 1 ? v[0].iov_len : HALF(v[0].iov_len), at);
    else if (most > 0) rc = real(fd, v, count, at);
    if (torn) mrt_fault_kill();
    return rc;
}

ssize_t pwritev(int fd, const struct iovec *v, int count, off_t at)
{
    return write_vector(fd, v, count, at, MRT_CALLER);
}

ssize_t writev(int fd, const struct iovec *v, int count)
{
    MRT_REAL(writev)
    bool torn;
    const ssize_t most = may_write(fd, 2, MRT_CALLER, &torn);
    ssize_t rc = -1;
    if (most == 1 && count > 0) rc = real(fd, v, 1);
    else if (most > 0) rc = real(fd, v, count);
    if (torn) mrt_fault_kill();
    return rc;
}

/* ---- what takes a descriptor and changes or settles a file ---- */

#define FAILS(class)                                                                                         \
    do {                                                                                                     \
        const int error = mrt_fault(MRT_FAULT_##class, MRT_CALLER);                                          \
        if (error) {                                                                                         \
            errno = error;                                                                                   \
            return -1;                                                                                       \
        }                                                                                                    \
    } while (0)

#define CHANGE_FAILS(class)                                                                                  \
    do {                                                                                                     \
        mrt_fault_change(false, MRT_CALLER);                                                                 \
        FAILS(class);                                                                                        \
    } while (0)

int fsync(int fd)
{
    MRT_REAL(fsync)
    CHANGE_FAILS(SYNC);
    const int rc = real(fd);
    if (rc == 0 && mrt_fault_own(MRT_CALLER)) mrt_journal_synced(fd);
    return rc;
}

int fdatasync(int fd)
{
    MRT_REAL(fdatasync)
    CHANGE_FAILS(SYNC);
    const int rc = real(fd);
    if (rc == 0 && mrt_fault_own(MRT_CALLER)) mrt_journal_synced(fd);
    return rc;
}

int syncfs(int fd)
{
    MRT_REAL(syncfs)
    CHANGE_FAILS(SYNC);
    const int rc = real(fd);
    if (rc == 0 && mrt_fault_own(MRT_CALLER)) mrt_journal_synced_all();
    return rc;
}

int ftruncate(int fd, off_t bytes)
{
    MRT_REAL(ftruncate)
    CHANGE_FAILS(SPACE);
    return real(fd, bytes);
}

int truncate(const char *path, off_t bytes)
{
    MRT_REAL(truncate)
    CHANGE_FAILS(SPACE);
    return real(path, bytes);
}

int fallocate(int fd, int mode, off_t at, off_t bytes)
{
    MRT_REAL(fallocate)
    CHANGE_FAILS(SPACE);
    return real(fd, mode, at, bytes);
}

int posix_fallocate(int fd, off_t at, off_t bytes)
{
    MRT_REAL(posix_fallocate)
    mrt_fault_change(false, MRT_CALLER);
    const int error = mrt_fault(MRT_FAULT_SPACE, MRT_CALLER);
    return error ? error : real(fd, at, bytes);
}

int flock(int fd, int operation)
{
    MRT_REAL(flock)
    FAILS(LOCK);
    return real(fd, operation);
}

int fchmod(int fd, mode_t mode)
{
    MRT_REAL(fchmod)
    FAILS(META);
    return real(fd, mode);
}

int futimens(int fd, const struct timespec times[2])
{
    MRT_REAL(futimens)
    FAILS(META);
    return real(fd, times);
}

/* ---- looking ---- */

int stat(const char *path, struct stat *out)
{
    MRT_REAL(stat)
    FAILS(STAT);
    return real(path, out);
}

int lstat(const char *path, struct stat *out)
{
    MRT_REAL(lstat)
    FAILS(STAT);
    return real(path, out);
}

int fstat(int fd, struct stat *out)
{
    MRT_REAL(fstat)
    FAILS(STAT);
    return real(fd, out);
}

int fstatat(int at, const char *path, struct stat *out, int flags)
{
    MRT_REAL(fstatat)
    FAILS(STAT);
    return real(at, path, out, flags);
}

int fstatfs(int fd, struct statfs *out)
{
    MRT_REAL(fstatfs)
    FAILS(STAT);
    return real(fd, out);
}

int fstatvfs(int fd, struct statvfs *out)
{
    MRT_REAL(fstatvfs)
    FAILS(STAT);
    return real(fd, out);
}

int access(const char *path, int mode)
{
    MRT_REAL(access)
    FAILS(STAT);
    return real(path, mode);
}

char *realpath(const char *path, char *out)
{
    MRT_REAL(realpath)
    int error = out ? 0 : mrt_fault(MRT_FAULT_ALLOC, MRT_CALLER);
    if (!error) error = mrt_fault(MRT_FAULT_STAT, MRT_CALLER);
    if (!error) return real(path, out);
    errno = error;
    return NULL;
}

/* ---- names ---- */

int rename(const char *from, const char *to)
{
    MRT_REAL(rename)
    CHANGE_FAILS(NAME);
    if (mrt_fault_own(MRT_CALLER)) mrt_journal_renaming(AT_FDCWD, from, AT_FDCWD, to, false);
    return real(from, to);
}

int renameat(int at, const char *from, int to_at, const char *to)
{
    MRT_REAL(renameat)
    CHANGE_FAILS(NAME);
    if (mrt_fault_own(MRT_CALLER)) mrt_journal_renaming(at, from, to_at, to, false);
    return real(at, from, to_at, to);
}

/* With RENAME_NOREPLACE one that fails leaves a line in the journal whose taking back finds nothing to do. */
int renameat2(int at, const char *from, int to_at, const char *to, unsigned flags)
{
    MRT_REAL(renameat2)
    CHANGE_FAILS(NAME);
    if (mrt_fault_own(MRT_CALLER) &&
        !((flags & RENAME_NOREPLACE) && faccessat(to_at, to, F_OK, AT_SYMLINK_NOFOLLOW) == 0))
        mrt_journal_renaming(at, from, to_at, to, flags & RENAME_EXCHANGE);
    return real(at, from, to_at, to, flags);
}

int link(const char *from, const char *to)
{
    MRT_REAL(link)
    CHANGE_FAILS(NAME);
    const int rc = real(from, to);
    if (rc == 0 && mrt_fault_own(MRT_CALLER)) mrt_journal_made('l', AT_FDCWD, to);
    return rc;
}

int linkat(int at, const char *from, int to_at, const char *to, int flags)
{
    MRT_REAL(linkat)
    CHANGE_FAILS(NAME);
    const int rc = real(at, from, to_at, to, flags);
    if (rc == 0 && mrt_fault_own(MRT_CALLER)) mrt_journal_made('l', to_at, to);
    return rc;
}

int symlink(const char *text, const char *path)
{
    MRT_REAL(symlink)
    CHANGE_FAILS(NAME);
    const int rc = real(text, path);
    if (rc == 0 && mrt_fault_own(MRT_CALLER)) mrt_journal_made('l', AT_FDCWD, path);
    return rc;
}

int symlinkat(const char *text, int at, const char *path)
{
    MRT_REAL(symlinkat)
    CHANGE_FAILS(NAME);
    const int rc = real(text, at, path);
    if (rc == 0 && mrt_fault_own(MRT_CALLER)) mrt_journal_made('l', at, path);
    return rc;
}

int unlink(const char *path)
{
    MRT_REAL(unlink)
    CHANGE_FAILS(NAME);
    if (mrt_fault_own(MRT_CALLER)) mrt_journal_removing(AT_FDCWD, path, false);
    return real(path);
}

int unlinkat(int at, const char *path, int flags)
{
    MRT_REAL(unlinkat)
    CHANGE_FAILS(NAME);
    if (mrt_fault_own(MRT_CALLER)) mrt_journal_removing(at, path, flags & AT_REMOVEDIR);
    return real(at, path, flags);
}

int remove(const char *path)
{
    MRT_REAL(remove)
    CHANGE_FAILS(NAME);
    if (mrt_fault_own(MRT_CALLER)) mrt_journal_removing(AT_FDCWD, path, false);
    return real(path);
}

int rmdir(const char *path)
{
    MRT_REAL(rmdir)
    CHANGE_FAILS(NAME);
    if (mrt_fault_own(MRT_CALLER)) mrt_journal_removing(AT_FDCWD, path, true);
    return real(path);
}

int mkdir(const char *path, mode_t mode)
{
    MRT_REAL(mkdir)
    CHANGE_FAILS(FOLDER);
    const int rc = real(path, mode);
    if (rc == 0 && mrt_fault_own(MRT_CALLER)) mrt_journal_made('d', AT_FDCWD, path);
    return rc;
}

int mkdirat(int at, const char *path, mode_t mode)
{
    MRT_REAL(mkdirat)
    CHANGE_FAILS(FOLDER);
    const int rc = real(at, path, mode);
    if (rc == 0 && mrt_fault_own(MRT_CALLER)) mrt_journal_made('d', at, path);
    return rc;
}
