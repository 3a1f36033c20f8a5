/* tests/faults/journal.c: changes that a machine may forget when it loses power. run.py takes them back after
 * the process was killed.
 *
 * The model: a file's contents are durable when the file is fsynced, a name when its folder is.
 * FAULTS_JOURNAL is a folder:
 *
 *   log      one line for each change of a name and each fsync, in order; fields are separated by tabs
 *   NUMBER   for each file that was opened for writing, under its inode number: its contents when it
 *   was fsynced last, or when it was opened first
 *   kept-N   another link to a file whose name went away in line N
 *
 * Lines: c PATH (made by open), l PATH (by link or symlink), d PATH (folder), r FROM TO N (renamed; kept-N is
 * what TO was), x FROM TO (exchanged), u PATH N (unlinked), k PATH N (rmdir), s INODE (file synced), f PATH
 * (folder synced). */
#include "inject.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static char folder[PATH_MAX];
static int log_fd = -1;
static unsigned lines;
static unsigned long inodes[4096]; /* whose content is kept */
static unsigned inode_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Calls of our own go past the functions that inject. */
static int raw_open(const char *path, int flags)
{
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, 0600);
}
static void raw_close(int fd) { syscall(SYS_close, fd); }

void mrt_journal_open(const char *at)
{
    char path[PATH_MAX + 8];
    snprintf(folder, sizeof folder, "%s", at);
    snprintf(path, sizeof path, "%s/log", folder);
    log_fd = raw_open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC);
}

static void line(const char *text) { syscall(SYS_write, log_fd, text, strlen(text)); }

/* The whole path of one that counts from `at`. */
static void whole(char out[PATH_MAX], int at, const char *path)
{
    char base[PATH_MAX] = "", link[64];
    if (*path != '/') {
        if (at == AT_FDCWD) snprintf(link, sizeof link, "/proc/self/cwd");
        else snprintf(link, sizeof link, "/proc/self/fd/%d", at);
        const ssize_t n = readlink(link, base, sizeof base - 1);
        base[n > 0 ? n : 0] = '\0';
    }
    if (snprintf(out, PATH_MAX, *base ? "%s/%s" : "%s%s", base, path) >= PATH_MAX) out[0] = '\0';
}

static bool regular(int fd, unsigned long *inode)
{
    struct stat st;
    if (syscall(SYS_newfstatat, fd, "", &st, AT_EMPTY_PATH) != 0 || !S_ISREG(st.st_mode)) return false;
    *inode = (unsigned long)st.st_ino;
    return true;
}

/* The contents of the file `path`, under its inode's number. */
static void keep_content(const char *path, unsigned long inode, bool again)
{
    char to[PATH_MAX + 32], buffer[65536];
    snprintf(to, sizeof to, "%s/%lu", folder, inode);
    const int out = raw_open(to, O_WRONLY | O_CREAT | O_CLOEXEC | (again ? O_TRUNC : O_EXCL));
    if (out < 0) return;
    if (inode_count < sizeof inodes / sizeof *inodes) inodes[inode_count++] = inode;
    const int in = path ? raw_open(path, O_RDONLY | O_CLOEXEC) : -1;
    for (ssize_t n; in >= 0 && (n = syscall(SYS_read, in, buffer, sizeof buffer)) > 0;)
        syscall(SYS_write, out, buffer, (size_t)n);
    if (in >= 0) raw_close(in);
    raw_close(out);
}

bool mrt_journal_opening(int at, const char *path, bool cuts)
{
    char full[PATH_MAX];
    struct stat st;
    if (log_fd < 0) return false;
    whole(full, at, path);
    if (syscall(SYS_newfstatat, AT_FDCWD, full, &st, 0) != 0) return true;
    pthread_mutex_lock(&lock);
    if (cuts && S_ISREG(st.st_mode)) keep_content(full, (unsigned long)st.st_ino, false);
    pthread_mutex_unlock(&lock);
    return false;
}

void mrt_journal_opened(int fd, int at, const char *path, bool made)
{
    char full[PATH_MAX], text[PATH_MAX + 32];
    unsigned long inode;
    if (log_fd < 0 || !regular(fd, &inode)) return;
    pthread_mutex_lock(&lock);
    if (path) whole(full, at, path);
    keep_content(path && !made ? full : NULL, inode, made || !path); /* the number may have belonged to a
                                                                      * deleted file */
    if (path && made) {
        snprintf(text, sizeof text, "c\t%s\n", full);
        line(text);
    }
    pthread_mutex_unlock(&lock);
}

void mrt_journal_synced(int fd)
{
    char link[64], full[PATH_MAX] = "", text[PATH_MAX + 32];
    unsigned long inode;
    if (log_fd < 0) return;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    pthread_mutex_lock(&lock);
    if (regular(fd, &inode)) {
        keep_content(link, inode, true);
        snprintf(text, sizeof text, "s\t%lu\n", inode);
    } else {
        const ssize_t n = readlink(link, full, sizeof full - 1);
        full[n > 0 ? n : 0] = '\0';
        snprintf(text, sizeof text, "f\t%s\n", full);
    }
    line(text);
    pthread_mutex_unlock(&lock);
}

/* No change so far can be forgotten any more. */
void mrt_journal_synced_all(void)
{
    char path[PATH_MAX + 32];
    if (log_fd < 0) return;
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < inode_count; i++) {
        snprintf(path, sizeof path, "%s/%lu", folder, inodes[i]);
        syscall(SYS_unlinkat, AT_FDCWD, path, 0);
    }
    inode_count = 0;
    syscall(SYS_ftruncate, log_fd, 0L);
    pthread_mutex_unlock(&lock);
}

static void keep_link(const char *path, unsigned number)
{
    char to[PATH_MAX + 32];
    snprintf(to, sizeof to, "%s/kept-%u", folder, number);
    syscall(SYS_linkat, AT_FDCWD, path, AT_FDCWD, to, 0);
}

void mrt_journal_renaming(int at, const char *from, int to_at, const char *to, bool exchange)
{
    char a[PATH_MAX], b[PATH_MAX], text[2 * PATH_MAX + 32];
    if (log_fd < 0) return;
    whole(a, at, from);
    whole(b, to_at, to);
    if (syscall(SYS_faccessat, AT_FDCWD, a, F_OK) != 0) return;
    pthread_mutex_lock(&lock);
    if (!exchange) keep_link(b, ++lines);
    snprintf(text, sizeof text, exchange ? "x\t%s\t%s\n" : "r\t%s\t%s\t%u\n", a, b, lines);
    line(text);
    pthread_mutex_unlock(&lock);
}

void mrt_journal_removing(int at, const char *path, bool is_folder)
{
    char full[PATH_MAX], text[PATH_MAX + 32];
    if (log_fd < 0) return;
    whole(full, at, path);
    if (syscall(SYS_faccessat, AT_FDCWD, full, F_OK) != 0) return;
    pthread_mutex_lock(&lock);
    if (!is_folder) keep_link(full, ++lines);
    snprintf(text, sizeof text, is_folder ? "k\t%s\t%u\n" : "u\t%s\t%u\n", full, lines);
    line(text);
    pthread_mutex_unlock(&lock);
}

void mrt_journal_made(char kind, int at, const char *path)
{
    char full[PATH_MAX], text[PATH_MAX + 32];
    if (log_fd < 0) return;
    whole(full, at, path);
    pthread_mutex_lock(&lock);
    snprintf(text, sizeof text, "%c\t%s\n", kind, full);
    line(text);
    pthread_mutex_unlock(&lock);
}
