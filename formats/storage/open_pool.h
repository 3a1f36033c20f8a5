/* formats/storage/open_pool.h: a bounded number of things that are open at a time (files, mostly), out of
 * many numbered ones. Private.
 *
 *   acquire(number) ──► open already? ── yes ──────────────────────────► in use, until as many release()
 *                            └── no ──► the idle one that was used longest ago is closed ──► opened
 *
 * The bound follows from RLIMIT_NOFILE and the other pools of this process (mri_open_allow()). With must
 * false, acquire() returns MR_EAGAIN rather than exceed it; with must true it exceeds the bound, and the
 * excess object is closed on release. Any thread; nothing is opened or closed under a pool's lock. */
#ifndef MRI_OPEN_POOL_H
#define MRI_OPEN_POOL_H

#include "millrace/base.h"

typedef struct mri_open_pool mri_open_pool;

typedef struct mri_open_ops {
    /* MR_OK and *object, or an error with its file. EMFILE and ENFILE: idle ones of all pools of the process
     * are closed, and it is tried once more. */
    int (*open)(void *context, uint32_t number, void **object, mr_error *err);
    void (*close)(void *object);
    void *context;
} mri_open_ops;

/* Descriptors that may be kept open for `wanted` files: all of them if they fit, else a fraction of the rest
 * of the process's limit, 2 at least. Return them with mri_open_give_back(). */
uint32_t mri_open_allow(uint32_t wanted);
void mri_open_give_back(uint32_t allowed);

/* Of count things at most `most` are open; most comes from mri_open_allow() and goes back with destroy(). */
int mri_open_pool_create(mri_open_pool **out, uint32_t count, uint32_t most, const mri_open_ops *ops,
                         mr_error *err);
void mri_open_pool_destroy(mri_open_pool *p); /* accepts NULL; nothing may be in use */

/* MR_OK: *object is open until release(). MR_EAGAIN, must false only: the permitted number is in use. */
int mri_open_pool_acquire(mri_open_pool *p, uint32_t number, bool must, void **object, mr_error *err);
void mri_open_pool_release(mri_open_pool *p, uint32_t number);

/* For tests and reports: open now, and the most there were at a time. */
uint32_t mri_open_pool_open(mri_open_pool *p, uint32_t *most);
uint64_t mri_open_pool_memory(uint32_t count, uint32_t most);

#endif
