/* base/file.h: whole reads and writes of open files, and what a file system needs besides. Private. */
#ifndef MRI_FILE_H
#define MRI_FILE_H

#include "millrace/base.h"

/* Write all bytes at offset; short writes and EINTR are continued. MR_OK or MR_EIO with err set (path names
 * the file). */
int mri_pwrite_all(int fd, const void *data, size_t bytes, uint64_t offset, const char *path, mr_error *err);
/* Read exactly bytes; a file that ends early is MR_EFORMAT naming offset, expected and found. */
int mri_pread_all(int fd, void *data, size_t bytes, uint64_t offset, const char *path, mr_error *err);
/* EMFILE while `together` files of one data set have to be open: how many may be, how many must be allowed.
 * Returns MR_EIO. */
int mri_too_many_files(uint64_t together, mr_error *err);
/* fsync the file's folder after a rename, so that the name survives a crash. */
int mri_sync_folder_of(const char *path, mr_error *err);

#endif
