/* formats/storage/kept.c: see kept.h. */
#include "formats/storage/kept.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

enum { ATTEMPTS = 100, PATH_BYTES = 4096 };

int mri_kept_open(int folder_fd, const char *path, mode_t mode)
{
    return openat(folder_fd, path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, mode);
}

int mri_kept_make(int folder_fd, const char *path, mode_t mode)
{
    return openat(folder_fd, path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
}

/* Another name at each call. False, with errno. */
static bool random_name(const char *path, char *out, size_t bytes)
{
    uint64_t random;
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random) return false;
    if ((size_t)snprintf(out, bytes, "%s.%016" PRIx64, path, random) < bytes) return true;
    errno = ENAMETOOLONG;
    return false;
}

int mri_kept_make_beside(const char *path, char *out, size_t bytes)
{
    if ((size_t)snprintf(out, bytes, "%s.XXXXXX", path) < bytes) return mkostemp(out, O_CLOEXEC);
    errno = ENAMETOOLONG;
    return -1;
}

int mri_kept_unnamed(const char *folder) { return open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600); }

int mri_kept_scratch(const char *folder)
{
    char path[PATH_BYTES], name[PATH_BYTES];
    int fd = mri_kept_unnamed(folder);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT && errno != EINVAL)) return fd;
    if ((size_t)snprintf(path, sizeof path, "%s/.millrace", folder) >= sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    fd = mri_kept_make_beside(path, name, sizeof name);
    if (fd >= 0) unlink(name); /* nobody knew it */
    return fd;
}

int mri_kept_link(int fd, const char *path)
{
    char from[64];
    snprintf(from, sizeof from, "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, from, AT_FDCWD, path, AT_SYMLINK_FOLLOW);
}

int mri_kept_link_beside(int fd, const char *path, char *out, size_t bytes)
{
    for (int attempt = 0; attempt < ATTEMPTS && random_name(path, out, bytes); attempt++) {
        const int rc = mri_kept_link(fd, out);
        if (rc == 0 || errno != EEXIST) return rc;
    }
    return -1;
}

int mri_kept_rename(const char *from, const char *to) { return rename(from, to); }
