/* formats/storage/atomic_file.c: see atomic_file.h. */
#include "formats/storage/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

int mri_atomic_file_check_target(const char *path, bool force, mr_error *err)
{
    struct stat st;
    if (lstat(path, &st) != 0) return MR_OK; /* a real problem shows when the part file is opened */
    int code = MR_OK;
    if (S_ISDIR(st.st_mode)) code = mr_error_set(err, MR_EINVAL, "a folder is there: name a file to write");
    else if (!S_ISREG(st.st_mode)) /* it would be replaced: /dev/null would be gone for everybody */
        code = mr_error_set(err, MR_EINVAL, "this is a link, device, pipe or socket: name a file to write");
    else if (!force)
        code = mr_error_set(err, MR_EEXIST, "it exists already: remove it, or force it to be replaced");
    return code ? mri_error_place(err, code, path, MR_NOWHERE, MR_NOWHERE) : MR_OK;
}

/* Open and lock it once. *again: it was renamed by the process that had it between our open and our lock:
 * then the name leads elsewhere. */
static int try_open(int *out, const char *part, bool *again, mr_error *err)
{
    struct stat mine, named;
    const int fd = open(part, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    int rc = MR_OK;
    if (fd < 0)
        return mri_error_place(err, mr_error_sys(err, errno, "cannot make the file aside"), part, MR_NOWHERE,
                               MR_NOWHERE);
    if (fstat(fd, &mine) != 0) rc = mr_error_sys(err, errno, "cannot look at it");
    else if (!S_ISREG(mine.st_mode)) rc = mr_error_set(err, MR_EINVAL, "no regular file");
    else if (flock(fd, LOCK_EX | LOCK_NB) != 0)
        rc = errno == EWOULDBLOCK
                 ? mr_error_set(err, MR_EEXIST, "another process is writing it: wait for it or stop it")
                 : mr_error_sys(err, errno, "cannot lock it"); /* NFS without locks: ENOLCK */
    *again = rc == MR_OK &&
             (stat(part, &named) != 0 || named.st_ino != mine.st_ino || named.st_dev != mine.st_dev);
    if (rc || *again) close(fd);
    else *out = fd;
    return rc ? mri_error_place(err, rc, part, MR_NOWHERE, MR_NOWHERE) : MR_OK;
}

int mri_atomic_file_open(int *fd, const char *part, mr_error *err)
{
    bool again = true;
    *fd = -1;
    for (int attempt = 0; again && attempt < 10; attempt++) {
        const int rc = try_open(fd, part, &again, err);
        if (rc) return rc;
    }
    return again ? mri_error_place(err, mr_error_set(err, MR_EEXIST, "other processes keep replacing it"),
                                   part, MR_NOWHERE, MR_NOWHERE)
                 : MR_OK;
}

int mri_atomic_file_commit(const char *part, const char *path, bool force, mr_error *err)
{
    int failed = renameat2(AT_FDCWD, part, AT_FDCWD, path, force ? 0 : RENAME_NOREPLACE);
    if (failed && !force && (errno == EINVAL || errno == ENOSYS)) { /* file systems that cannot promise it */
        failed = access(path, F_OK) == 0 ? (errno = EEXIST, -1) : rename(part, path);
    }
    return failed ? mri_error_place(err, mr_error_sys(err, errno, "cannot take this name from %s", part),
                                    path, MR_NOWHERE, MR_NOWHERE)
                  : MR_OK;
}
