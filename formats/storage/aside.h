/* formats/storage/aside.h: a file that is written under another name, and takes its own when it is whole.
 * Private.
 *
 *   refuse(PATH) ──► open(PART): made, locked ──► written, synced by the caller ──► take_name(PART, PATH), folder synced
 *
 * Half a file is never a file: until the end there is nothing under PATH, or what was there before. */
#ifndef MRI_ASIDE_H
#define MRI_ASIDE_H

#include "millrace/base.h"

/* MR_EEXIST: a file is at path, and `force` was not given. MR_EINVAL: something is there that must not be
 * replaced (a folder, a link, a device, a pipe). */
int mri_aside_refuse(const char *path, bool force, mr_error *err);

/* Open for reading and writing, make it where it is missing, and lock it; its contents stay. MR_EEXIST:
 * another process has the lock. */
int mri_aside_open(int *fd, const char *part, mr_error *err);

/* Without force never in the place of a file that came since. The caller syncs the folder. */
int mri_aside_take_name(const char *part, const char *path, bool force, mr_error *err);

#endif
