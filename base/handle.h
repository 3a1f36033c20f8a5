/* base/handle.h: the first checks of a public function: is every required pointer set, and does this process
 * own the handle? Private.
 *
 * fork() copies the memory of a process and the one thread that calls it. A handle with threads, locks that
 * other threads may have held, a ring in the kernel or files under way belongs to the process that opened it.
 * Such a handle keeps mri_process() as it was then. In a child its close, destroy and abandon functions leave
 * everything as it is: the memory ends with the child, files stay the parent's. All its other functions
 * return MR_EINVAL with a text. */
#ifndef MRI_HANDLE_H
#define MRI_HANDLE_H

#include <pthread.h>

#include "millrace/base.h"

/* A number that distinguishes this process from its parents and children by fork(). Never 0. Any thread. */
uint32_t mri_process(void);
/* opened_in 0: nobody noted it. */
static inline bool mri_is_inherited(uint32_t opened_in) { return opened_in && opened_in != mri_process(); }

/* Lock a mutex of the whole process, which is unlocked as any other. fork() waits for whoever has it, so that
 * a child finds it free and its data consistent. Not while another such mutex is locked. */
void mri_lock_global(pthread_mutex_t *lock);

/* MR_EINVAL: "mr_loader_open: out must not be NULL". call may end in _sized, which is not named. */
int mri_error_null(mr_error *err, const char *call, const char *what);
/* MR_EINVAL: the handle is the parent's. */
int mri_error_inherited(mr_error *err, const char *call, const char *what);

/* End a public function with MR_EINVAL: a pointer is NULL; a handle, which has a member `process`, is NULL or
 * inherited. MRI_OWN_AS: its process is known elsewhere. */
#define MRI_GIVEN(err, pointer)                                                                              \
    do {                                                                                                     \
        if (!(pointer)) return mri_error_null(err, __func__, #pointer);                                      \
    } while (0)
#define MRI_OWN_AS(err, handle, opened_in)                                                                   \
    do {                                                                                                     \
        MRI_GIVEN(err, handle);                                                                              \
        if (mri_is_inherited(opened_in)) return mri_error_inherited(err, __func__, #handle);                 \
    } while (0)
#define MRI_OWN(err, handle) MRI_OWN_AS(err, handle, (handle)->process)

/* For functions that return no status: there is one, and it is this process's. */
#define MRI_IS_OWN(handle) ((handle) && !mri_is_inherited((handle)->process))

#endif
