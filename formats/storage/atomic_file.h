/* formats/storage/atomic_file.h: a file that is written under another name and renamed when it is complete.
 * Private.
 *
 *   check_target(PATH) ──► open(PART): made, locked ──► written, synced by the caller ──┐
 *                                        folder synced by the caller ◄── commit ◄───────┘
 *
 * Until the end PATH does not exist, or is what it was before: there is never half a file under PATH. */
#ifndef MRI_ATOMIC_FILE_H
#define MRI_ATOMIC_FILE_H

#include "millrace/base.h"

/* MR_EEXIST: a file is at path, and `force` was not given. MR_EINVAL: something is there that must not be
 * replaced (a folder, a link, a device, a pipe). */
int mri_atomic_file_check_target(const char *path, bool force, mr_error *err);

/* Open for reading and writing, make it where it is missing, and lock it; its contents stay. MR_EEXIST:
 * another process has the lock. */
int mri_atomic_file_open(int *fd, const char *part, mr_error *err);

/* Without force an existing file is never replaced, even one that was created since. The caller syncs the
 * folder. */
int mri_atomic_file_commit(const char *part, const char *path, bool force, mr_error *err);

#endif
