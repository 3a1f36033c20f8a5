/* formats/storage/kept.h: files that stay from run to run and are no output: indexes, caches, locks; and
 * files without a name. Private. With output.h the only place where the program makes a file or gives it a
 * name (tools/scripts/check_writes.py looks): no link is followed, no pipe is waited for, nothing is cut.
 *
 * Messages about the file, and whether to trust it (trusted.h), are the caller's task. */
#ifndef MRI_KEPT_H
#define MRI_KEPT_H

#include <sys/types.h>

/* All of them: a descriptor for reading and writing, closed on exec; or -1, with errno. Paths are relative to
 * folder_fd (AT_FDCWD: the current folder). */
int mri_kept_open(int folder_fd, const char *path, mode_t mode);     /* made where it is missing */
int mri_kept_make(int folder_fd, const char *path, mode_t mode);     /* EEXIST where it is there */
int mri_kept_make_beside(const char *path, char *out, size_t bytes); /* PATH.RANDOM, 0600; out: its name */

/* Without a name: gone when it is closed, also when the process is killed. */
int mri_kept_unnamed(const char *folder); /* mri_kept_link() can name it; errno EOPNOTSUPP, EISDIR, EINVAL:
                                             not on this file system */
int mri_kept_scratch(const char *folder); /* on any file system; never gets a name */

/* Give an unnamed file a name that is free: 0, or -1 with errno (EEXIST). */
int mri_kept_link(int fd, const char *path);
/* The same beside a name that is taken: PATH.RANDOM. */
int mri_kept_link_beside(int fd, const char *path, char *out, size_t bytes);
/* A whole file takes another name, and the place of what has it: rename(2). */
int mri_kept_rename(const char *from, const char *to);

#endif
