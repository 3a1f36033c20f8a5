/* base/file.h: whole reads and writes of open files, and further file system calls. Private. */
#ifndef MRI_FILE_H
#define MRI_FILE_H

#include "millrace/base.h"

/* Write all bytes at offset; short writes and EINTR are continued. MR_OK or MR_EIO with err set (path names
 * the file). */
int mri_pwrite_all(int fd, const void *data, size_t bytes, uint64_t offset, const char *path, mr_error *err);
/* Read exactly bytes; a file that ends early is MR_EFORMAT naming offset, expected and found. */
int mri_pread_all(int fd, void *data, size_t bytes, uint64_t offset, const char *path, mr_error *err);
/* From now on mri_pread_all() in this thread ends with MR_ECANCELED once *stop is not 0, within a few MiB;
 * NULL: it runs to its end. For calls that read much before they return. Returns the previous setting, which
 * the caller restores. */
const volatile int *mri_stop_at(const volatile int *stop);
/* Was this thread asked to stop? For loops that read by other means; they then return mri_stopped(). */
bool mri_stop_asked(void);
int mri_stopped(mr_error *err);
/* EMFILE while `together` files of one data set have to be open: how many may be, how many must be allowed.
 * Returns MR_EIO. */
int mri_too_many_files(uint64_t together, mr_error *err);
/* May data read from fd be trusted without a check: an index, a cache, a folder of them (not samples, which
 * are checked as they are read)? True if fd belongs to this user or to root, and nobody else may write to it;
 * root may always. The owner's private group (of the same number) is the owner; in a sticky folder everybody
 * changes only their own files, so check its files instead. fd is open, so nobody can swap the checked file.
 * false: why (may be NULL) is written, as in "it belongs to user 1001". */
enum { MRI_DISTRUST_BYTES = 96 };
bool mri_file_is_trusted(int fd, char why[MRI_DISTRUST_BYTES]);
/* Makes the missing parent folders of path. False, with errno: path is now the folder that cannot be made. */
bool mri_make_folders_of(char *path, unsigned mode);
/* Makes the folder and its missing parents. False, with errno: EEXIST where there is something of this name.
 */
bool mri_make_folder_deep(const char *folder, unsigned mode);
/* fsync the file's folder after a rename, so that the name survives a crash. */
int mri_sync_folder_of(const char *path, mr_error *err);

#endif
