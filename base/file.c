/* base/file.c: reads and writes that go on after short ones and signals, and say where they failed. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_AT_ONCE ((size_t)8 << 20) /* a stop is looked at in between */

int mri_pwrite_all(int fd, const void *data, size_t bytes, uint64_t offset, const char *path, mr_error *err)
{
    const uint8_t *p = data;
    while (bytes > 0) {
        const ssize_t n = pwrite(fd, p, bytes, (off_t)offset);
        if (n < 0) {
            if (errno == EINTR) continue;
            const int code = mr_error_sys(err, errno, "cannot write %zu bytes", bytes);
            mr_error_at(err, path, offset, MR_NOWHERE);
            return code;
        }
        p += n;
        bytes -= (size_t)n;
        offset += (uint64_t)n;
    }
    return MR_OK;
}

static _Thread_local const volatile int *stop_flag;

const volatile int *mri_stop_at(const volatile int *stop)
{
    const volatile int *before = stop_flag;
    stop_flag = stop;
    return before;
}

bool mri_stop_asked(void) { return stop_flag && *stop_flag; }

int mri_stopped(mr_error *err) { return mr_error_set(err, MR_ECANCELED, "stopped on request"); }

int mri_pread_all(int fd, void *data, size_t bytes, uint64_t offset, const char *path, mr_error *err)
{
    uint8_t *p = data;
    size_t done = 0;
    while (done < bytes) {
        if (mri_stop_asked()) return mri_stopped(err);
        const size_t left = bytes - done;
        const ssize_t n =
            pread(fd, p + done, left < MOST_AT_ONCE ? left : MOST_AT_ONCE, (off_t)(offset + done));
        if (n < 0) {
            if (errno == EINTR) continue;
            const int code = mr_error_sys(err, errno, "cannot read %zu bytes", bytes);
            mr_error_at(err, path, offset + done, MR_NOWHERE);
            return code;
        }
        if (n == 0) {
            mr_error_set(err, MR_EFORMAT, "the file ends early: expected %zu bytes, found %zu", bytes, done);
            mr_error_at(err, path, offset, MR_NOWHERE);
            return MR_EFORMAT;
        }
        done += (size_t)n;
    }
    return MR_OK;
}

int mri_too_many_files(uint64_t together, mr_error *err)
{
    enum { SPARE = 64 }; /* standard streams, rings, devices, a file being looked at */
    struct rlimit limit = {0, 0};
    char hard[32] = "unlimited";
    getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_max != RLIM_INFINITY)
        snprintf(hard, sizeof hard, "%llu", (unsigned long long)limit.rlim_max);
    return mr_error_sys(
        err, EMFILE,
        "cannot open: the %llu files of this data set are open together, and this process may "
        "have %llu (RLIMIT_NOFILE, at most %s without more rights): allow %llu (ulimit -n), or "
        "convert them to fewer files",
        (unsigned long long)together, (unsigned long long)limit.rlim_cur, hard,
        (unsigned long long)together + SPARE);
}

bool mri_file_is_trusted(int fd, char why[MRI_DISTRUST_BYTES])
{
    struct stat st;
    char unused[MRI_DISTRUST_BYTES];
    if (!why) why = unused;
    if (fstat(fd, &st) != 0) {
        snprintf(why, MRI_DISTRUST_BYTES, "its owner is unknown: %s", strerror(errno));
        return false;
    }
    if (st.st_uid != geteuid() && st.st_uid != 0) {
        snprintf(why, MRI_DISTRUST_BYTES, "it belongs to user %llu", (unsigned long long)st.st_uid);
        return false;
    }
    const bool own_group = (unsigned long long)st.st_gid == (unsigned long long)st.st_uid;
    const mode_t others = S_IWOTH | (own_group ? 0 : S_IWGRP);
    if ((st.st_mode & others) == 0 || (S_ISDIR(st.st_mode) && (st.st_mode & S_ISVTX))) return true;
    snprintf(why, MRI_DISTRUST_BYTES, "others may write to it (mode %03o)", (unsigned)st.st_mode & 0777);
    return false;
}

int mri_sync_folder_of(const char *path, mr_error *err)
{
    char folder[4096];
    const char *slash = strrchr(path, '/');
    if (!slash) {
        strcpy(folder, ".");
    } else {
        const size_t len = slash == path ? 1 : (size_t)(slash - path);
        if (len >= sizeof folder)
            return mr_error_set(err, MR_EINVAL, "path too long: %zu characters", strlen(path));
        memcpy(folder, path, len);
        folder[len] = '\0';
    }
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = MR_OK;
    /* some network file systems refuse to sync a folder (EINVAL): nothing more can be done there */
    if (fd < 0 || (fsync(fd) != 0 && errno != EINVAL)) {
        rc = mr_error_sys(err, errno, "cannot sync the folder");
        mr_error_at(err, folder, MR_NOWHERE, MR_NOWHERE);
    }
    if (fd >= 0) close(fd);
    return rc;
}

bool mri_make_folders_of(char *path, unsigned mode)
{
    for (char *at = path[0] ? strchr(path + 1, '/') : NULL; at; at = strchr(at + 1, '/')) {
        if (!at[strspn(at, "/")]) break; /* slashes at the end */
        *at = '\0';
        if (mkdir(path, mode) != 0 && errno != EEXIST) return false;
        *at = '/';
    }
    return true;
}

bool mri_make_folder_deep(const char *folder, unsigned mode)
{
    char path[4096];
    if (mkdir(folder, mode) == 0) return true;
    if (errno != ENOENT) return false;
    if (snprintf(path, sizeof path, "%s", folder) >= (int)sizeof path) {
        errno = ENAMETOOLONG;
        return false;
    }
    return mri_make_folders_of(path, mode) && mkdir(folder, mode) == 0;
}
