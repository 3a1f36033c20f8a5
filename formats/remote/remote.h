/* formats/remote/remote.h: files on web servers (http, https), read like local files. Private.
 *
 * Takes URLs, and a folder with the number of bytes that may be kept in it. Gives files whose parts can be
 * requested and then read, and whole data sets under local names (remote_view.h). Callers: source/, record/
 * and the readers of pipeline/read. It knows no format but the first bytes of a record file.
 *
 * A remote file has a file descriptor of its own: a sparse file in the folder for remote data
 * (remote_store.h). A range may be read from there while a *request* holds it: mri_block_request_start() has
 * the missing blocks fetched and pins them, mri_block_request_end() unpins them.
 *
 *   start ─► [queue: is there room?] ──► blocks pinned ─┬─► on disk, not yet used in this run: ─┐
 *                      ▲                                │   checksum compared                   ├─► arrived()
 *                      │                                └─► missing: fetched, many ranges ──────┘
 *             unpinned blocks, oldest use                   in flight
 *             first, are dropped to make room
 *
 * One thread per set of files fetches everything (remote_http.c) and compares checksums; start and end only
 * queue. Requests get their room in the order in which they were made, and all of it at once, so admitted
 * requests always complete. A request that can never fit, because of blocks pinned until the end, gets
 * MR_ELIMIT instead of an endless wait.
 *
 * The limit covers blocks that this set keeps and blocks not in use. Each program counts for itself; all
 * programs use blocks that any of them fetched.
 *
 * Errors of servers and networks have sys_errno EREMOTEIO: they do not mean that a sample is damaged.
 * Threads: all calls from any thread. */
#ifndef MRI_REMOTE_H
#define MRI_REMOTE_H

#include "formats/remote/remote_url.h"
#include "millrace/formats.h"

typedef struct mri_remote mri_remote;
typedef struct mri_remote_file mri_remote_file;

typedef struct mri_remote_config {
    const char *folder; /* NULL: the usual one */
    uint64_t limit_bytes;
    const volatile int *stop; /* not 0: everything that is wanted ends with MR_ECANCELED; or NULL */
} mri_remote_config;

int mri_remote_create(mri_remote **out, const mri_remote_config *cfg, mr_error *err);
/* Ends all transfers at once. No request may be left. Accepts NULL. */
void mri_remote_destroy(mri_remote *r);
/* The folder in use. */
const char *mri_remote_folder(const mri_remote *r);

/* Ask the server for size and version of a file, in the background; finish() waits for the answer. Files
 * belong to the set, and end with it. finish: MR_ENOENT: the server has no file of this name; MR_EIO no
 * answer after all tries. */
int mri_remote_begin(mri_remote *r, mri_remote_file **out, const char *url, mr_error *err);
int mri_remote_finish(mri_remote_file *f, mr_error *err);
int mri_remote_open(mri_remote *r, mri_remote_file **out, const char *url, mr_error *err); /* both */

/* Report lines about the files opened so far: line 0 or 1; false when there is nothing. */
enum { MRI_REMOTE_LINES = 2 };
bool mri_remote_told(mri_remote *r, uint32_t line, char *text, size_t text_bytes);

/* The one begun first. */
mri_remote_file *mri_remote_first(const mri_remote *r);
const char *mri_remote_url(const mri_remote_file *f); /* with its secrets */

/* fixed after finish */
int mri_remote_fd(const mri_remote_file *f);
uint64_t mri_remote_bytes(const mri_remote_file *f);
const char *mri_remote_shown(const mri_remote_file *f); /* the URL without secrets: for messages */
const char *mri_remote_key(const mri_remote_file *f);   /* of URL and version; "" when the server sends no
                                                           version, or an unreliable one */

typedef struct mri_block_request {
    void (*arrived)(struct mri_block_request *w); /* once, from any thread, under a lock: may signal, and call
                                            nothing of these; or NULL */
    void *owner;                                  /* the caller's */
    /* of the set, under its lock */
    mri_remote_file *file;
    uint64_t offset, bytes, first, count, missing; /* count blocks from first; missing of them to come */
    int status;                                    /* why it came to an end without them */
    bool admitted, over, kept;
    struct mri_block_request *before, *after;
} mri_block_request;

/* The request stays in the caller's memory until its end. */
void mri_block_request_start(mri_block_request *w, mri_remote_file *f, uint64_t offset, uint64_t bytes);
/* May be called at any time: the caller no longer needs the blocks, and arrived() is not called any more. */
void mri_block_request_end(mri_block_request *w);
/* The result of a completed request: MR_OK or an error. */
int mri_block_request_status(const mri_block_request *w, mr_error *err);

/* Start a request and wait for it. On failure there is nothing to end. A caller that holds one and waits for
 * another may wait for ever: hold one at a time. */
int mri_remote_pin(mri_block_request *w, mri_remote_file *f, uint64_t offset, uint64_t bytes, mr_error *err);
/* All of a file, until the set ends: fetched in the background, waited for in finish(). */
void mri_remote_keep_begin(mri_remote_file *f);
int mri_remote_keep_finish(mri_remote_file *f, mr_error *err);
void mri_remote_keep_end(mri_remote_file *f); /* never mind */
/* Request, read, end. until: the wait ends with MR_ECANCELED soon after it becomes true (read atomically). */
int mri_remote_read(mri_remote_file *f, void *data, size_t bytes, uint64_t offset, mr_error *err);
int mri_remote_read_until(mri_remote_file *f, void *data, size_t bytes, uint64_t offset, const bool *until,
                          mr_error *err);

#endif
