/* train/state/run_lock.c: see run_lock.h. */
#include "train/state/run_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/storage/kept.h"

#define LOCK_NAME  "run.lock"
#define PATH_BYTES 4096

static bool lock_path(const char *folder, char *out)
{
    return (size_t)snprintf(out, PATH_BYTES, "%s/" LOCK_NAME, folder) < PATH_BYTES;
}

/* The text of a lock file; "" when no text can be read. */
static void read_lock(int fd, char *out, size_t out_bytes)
{
    const ssize_t n = pread(fd, out, out_bytes - 1, 0);
    out[n > 0 ? n : 0] = '\0';
}

static int busy(const char *folder, int fd, mr_error *err)
{
    char text[256];
    read_lock(fd, text, sizeof text);
    char *who = strstr(text, "process ");
    if (who) who[strcspn(who, "\n")] = '\0';
    mr_error_set(err, MR_EEXIST,
                 "another run writes its checkpoints into this folder%s%s: wait for it, stop it, or name "
                 "another folder",
                 who ? ", " : "", who ? who : "");
    return mri_error_place(err, MR_EEXIST, folder, MR_NOWHERE, MR_NOWHERE);
}

/* The run in front, where it stays as it is when another process takes the folder, and with a checksum: what
 * a kill or a loss of power leaves of a line is no other run. */
static int write_text(int fd, const char *path, const uint8_t *run, mr_error *err)
{
    char text[256], host[128] = "";
    size_t n = 0;
    gethostname(host, sizeof host - 1);
    if (run) {
        n += (size_t)snprintf(text + n, sizeof text - n, "run ");
        for (size_t i = 0; i < MRI_RUN_BYTES; i++)
            n += (size_t)snprintf(text + n, sizeof text - n, "%02x", run[i]);
        n += (size_t)snprintf(text + n, sizeof text - n, " %08x\n", mr_crc32c(0, run, MRI_RUN_BYTES));
    }
    n += (size_t)snprintf(text + n, sizeof text - n, "process %ld on %s\n", (long)getpid(), host);
    const int rc = mri_pwrite_all(fd, text, n, 0, path, err);
    if (rc || ftruncate(fd, (off_t)n) == 0) return rc;
    return mri_error_place(err, mr_error_sys(err, errno, "cannot cut it to its length"), path, MR_NOWHERE,
                           MR_NOWHERE);
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool mri_run_lock_owner(const char *folder, uint8_t *run)
{
    char path[PATH_BYTES], text[512];
    struct stat st;
    if (!lock_path(folder, path)) return false;
    const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) return false;
    text[0] = '\0';
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) read_lock(fd, text, sizeof text);
    close(fd);
    const char *at = text + 4;
    unsigned sum;
    if (strncmp(text, "run ", 4) != 0 || strspn(at, "0123456789abcdef") != (size_t)2 * MRI_RUN_BYTES)
        return false;
    for (size_t i = 0; i < MRI_RUN_BYTES; i++)
        run[i] = (uint8_t)(hex_digit(at[2 * i]) << 4 | hex_digit(at[2 * i + 1]));
    return sscanf(at + 2 * MRI_RUN_BYTES, " %8x", &sum) == 1 && sum == mr_crc32c(0, run, MRI_RUN_BYTES);
}

int mri_run_lock_write(const mri_run_lock *l, const char *folder, const uint8_t *run, mr_error *err)
{
    char path[PATH_BYTES];
    lock_path(folder, path);
    return write_text(l->fd, path, run, err);
}

/* Has the file that is locked this name? MR_EAGAIN: none or another one has it by now. */
static int check_name(int fd, const char *path, mr_error *err)
{
    struct stat locked, named;
    if (fstat(fd, &locked) != 0 || lstat(path, &named) != 0) {
        if (errno == ENOENT) return MR_EAGAIN;
        return mri_error_place(err, mr_error_sys(err, errno, "cannot look at it"), path, MR_NOWHERE,
                               MR_NOWHERE);
    }
    return locked.st_dev == named.st_dev && locked.st_ino == named.st_ino ? MR_OK : MR_EAGAIN;
}

/* MR_EAGAIN: another file has the name by now. */
static int lock_file(mri_run_lock *l, const char *folder, const char *path, mr_error *err)
{
    if (flock(l->fd, LOCK_EX | LOCK_NB) == 0) return check_name(l->fd, path, err);
    if (errno == EWOULDBLOCK) return busy(folder, l->fd, err);
    snprintf(
        l->note, sizeof l->note,
        "%.128s: the file system offers no locks (%s); a second run into this folder would not be noticed",
        folder, strerror(errno));
    return MR_OK;
}

static int open_file(mri_run_lock *l, const char *path, mr_error *err)
{
    struct stat st;
    l->fd = mri_kept_open(AT_FDCWD, path, 0666);
    int rc = MR_OK;
    if (l->fd < 0 || fstat(l->fd, &st) != 0)
        rc = mr_error_sys(err, errno, "cannot take the folder for checkpoints");
    else if (!S_ISREG(st.st_mode) || st.st_nlink > 1)
        rc = mr_error_set(err, MR_EINVAL, "expected a file of its own, found a link, pipe or device");
    return rc ? mri_error_place(err, rc, path, MR_NOWHERE, MR_NOWHERE) : MR_OK;
}

/* A new file in the place of the one that is locked. */
static int replace(mri_run_lock *l, const char *folder, const char *path, const uint8_t *run, mr_error *err)
{
    char own[PATH_BYTES + 64];
    snprintf(own, sizeof own, "%s-%ld-%016llx.part", path, (long)getpid(), (unsigned long long)mri_now_ns());
    l->fd = mri_kept_make(AT_FDCWD, own, 0666);
    if (l->fd < 0)
        return mri_error_place(err, mr_error_sys(err, errno, "cannot take the folder over"), folder,
                               MR_NOWHERE, MR_NOWHERE);
    int rc = lock_file(l, folder, own, err);
    if (rc == MR_EAGAIN)
        rc = mri_error_place(err, mr_error_set(err, MR_EIO, "somebody took it away while it was made"), own,
                             MR_NOWHERE, MR_NOWHERE);
    if (rc == MR_OK) rc = write_text(l->fd, own, run, err);
    if (rc == MR_OK && mri_kept_rename(own, path) != 0)
        rc = mri_error_place(err, mr_error_sys(err, errno, "cannot take it over"), path, MR_NOWHERE,
                             MR_NOWHERE);
    if (rc) unlink(own);
    return rc;
}

int mri_run_lock_take(mri_run_lock *l, const char *folder, const uint8_t *from, mr_error *err)
{
    char path[PATH_BYTES];
    uint8_t run[MRI_RUN_BYTES];
    int rc = MR_EAGAIN;
    lock_path(folder, path);
    *l = (mri_run_lock){.fd = -1};
    while (rc == MR_EAGAIN) {
        mri_run_lock_drop(l);
        rc = open_file(l, path, err);
        if (rc == MR_OK) rc = lock_file(l, folder, path, err);
    }
    const bool owned = mri_run_lock_owner(folder, run);
    /* the process that is named goes first, so that a folder that is taken and not yet claimed still names
     * its run */
    if (rc == MR_OK) rc = write_text(l->fd, path, owned ? run : NULL, err);
    else if (rc == MR_EEXIST && from && owned && memcmp(run, from, sizeof run) == 0) {
        mri_run_lock_drop(l);
        rc = replace(l, folder, path, run, err);
    }
    if (rc) mri_run_lock_drop(l);
    return rc;
}

void mri_run_lock_drop(mri_run_lock *l)
{
    if (l->fd >= 0) close(l->fd);
    l->fd = -1;
}

/* A file that was removed was taken by nobody. */
int mri_run_lock_check(const mri_run_lock *l, const char *folder, mr_error *err)
{
    struct stat locked, named;
    char path[PATH_BYTES];
    int rc = MR_OK;
    lock_path(folder, path);
    if (lstat(path, &named) != 0) {
        if (errno == ENOENT) return MR_OK;
        rc = mr_error_sys(err, errno, "cannot see whose the folder of checkpoints is");
    } else if (fstat(l->fd, &locked) != 0) {
        rc = mr_error_sys(err, errno, "cannot see whose the folder of checkpoints is");
    } else if (locked.st_dev != named.st_dev || locked.st_ino != named.st_ino) {
        rc = mr_error_set(err, MR_EPEER,
                          "another process of this run, which had lost this one, writes the checkpoints now");
    }
    if (rc) mri_error_place(err, rc, folder, MR_NOWHERE, MR_NOWHERE);
    return rc;
}
