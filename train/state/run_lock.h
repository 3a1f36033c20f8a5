/* train/state/run_lock.h: which process writes into a folder of checkpoints, and whose run the folder is.
 * Private to train/.
 *
 * run.lock is locked as long as a process writes there, and names that process and the run. A process of the
 * same run that knows the other to be lost puts a new file in its place: a process whose file lost the name
 * has lost the folder, even if it was only stopped. */
#ifndef MRI_RUN_LOCK_H
#define MRI_RUN_LOCK_H

#include "train/state/checkpoint.h"

enum { MRI_RUN_BYTES = sizeof(((mr_checkpoint_info *)0)->run) };

typedef struct mri_run_lock {
    int fd;         /* -1: not taken */
    char note[256]; /* something to tell, or "" */
} mri_run_lock;

/* from: NULL, or a run whose process may have the folder taken away. MR_EEXIST: another process has it. */
int mri_run_lock_take(mri_run_lock *l, const char *folder, const uint8_t *from, mr_error *err);
void mri_run_lock_drop(mri_run_lock *l); /* again is harmless */
/* The folder is of this run from now on. */
int mri_run_lock_write(const mri_run_lock *l, const char *folder, const uint8_t *run, mr_error *err);
/* MR_EPEER: it was taken away. MR_EIO and others: nobody can see. */
int mri_run_lock_check(const mri_run_lock *l, const char *folder, mr_error *err);

/* For those who only read: which run does the folder belong to? False: it does not tell. */
bool mri_run_lock_owner(const char *folder, uint8_t *run);

#endif
