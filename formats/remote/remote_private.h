/* formats/remote/remote_private.h: the inside of a set of remote files, for remote.c (blocks and wants) and
 * remote_http.c (transfers). */
#ifndef MRI_REMOTE_PRIVATE_H
#define MRI_REMOTE_PRIVATE_H

#include "base/util.h"
#include "formats/remote/remote.h"
#include "formats/remote/remote_store.h"

/*   NOTHING ──► CHECK ──► READY         marked on disk, and the bytes agree
 *     ▲           ├─────► QUEUED ──► FETCHING ──► READY
 *     │           └─────► FOREIGN ──► CHECK       somebody else's lock: looked at again soon
 *     └─── failed, or dropped                     */
enum { MRI_NOTHING, MRI_CHECK, MRI_FOREIGN, MRI_QUEUED, MRI_FETCHING, MRI_READY };

typedef struct mri_block {
    struct mri_block *before, *after; /* in the list of its state: unpinned ones by use, CHECK, FOREIGN,
                                         QUEUED */
    uint64_t mark;                    /* READY: as it was when it was compared or fetched */
    uint32_t file;
    uint32_t pins : 27;
    uint32_t state : 3;
    uint32_t counted : 1; /* in mri_remote.used */
    uint32_t listed : 1;  /* among the unpinned */
} mri_block;

typedef struct mri_blocks {
    mri_block *head, *tail;
} mri_blocks;

void mri_blocks_push(mri_blocks *l, mri_block *b);
void mri_blocks_remove(mri_blocks *l, mri_block *b);
mri_block *mri_blocks_pop(mri_blocks *l);

struct mri_remote_file {
    mri_remote *set;
    uint32_t number;
    char *url, *shown;
    /* written by the set's thread before `answered`, fixed afterwards */
    char version[512]; /* ETag and Last-Modified, "" for neither */
    uint64_t bytes;
    bool whole_only; /* the server knows no ranges, or: */
    bool one_answer; /* its versions do not say which bytes they are: all come from one answer, for one run */
    /* lock */
    bool answered, open;
    bool refused; /* the question, with 401 or 403 */
    int code;     /* of the question, later of the last transfer that failed */
    mr_error why;
    mri_entry entry;
    mri_block *block;
    mri_block_request all; /* mri_remote_keep_begin() */
    bool keeps;
};

typedef struct mri_block_request_list {
    mri_block_request *head, *tail;
} mri_block_request_list;

struct mri_remote {
    mri_remote_config cfg;
    mri_store store;
    pthread_mutex_t lock;
    pthread_cond_t moved;   /* something is over or answered */
    mri_remote_file **file; /* lock */
    uint32_t file_count, file_cap;
    mri_blocks unpinned, check, foreign, queued; /* lock */
    mri_block_request_list waiting, admitted;    /* lock: for room; for blocks */
    uint64_t used;                               /* lock: bytes of counted blocks */
    uint64_t kept;                               /* lock: of them, the blocks pinned until the end */
    bool looked;  /* lock: store.closed is of the time since the last file was opened */
    bool ended;   /* lock */
    bool started; /* the thread */
    const mri_remote_file *distrusted, *unsure; /* lock: the first file whose kept blocks are not believed;
                                                   that came in one answer */
    uint32_t unsure_count;                      /* lock */
    char distrust[MRI_DISTRUST_BYTES];          /* lock: why */
    pthread_t thread;
    void *http; /* remote_http.c */
};

static inline uint64_t mri_block_number(const mri_remote_file *f, const mri_block *b)
{
    return (uint64_t)(b - f->block);
}

static inline bool mri_remote_is_stopped(const mri_remote *r) { return mri_is_stopped(r->cfg.stop); }

/* ---- remote.c, for the thread ---- */
/* The lock is held. */
void mri_block_ready_locked(mri_remote_file *f, mri_block *b, uint64_t mark);
void mri_block_failed_locked(mri_remote_file *f, mri_block *b);
/* Fail all unfinished requests that touch one of count blocks from first. */
void mri_block_requests_fail_locked(mri_remote_file *f, uint64_t first, uint64_t count, int code,
                                    const mr_error *why);
void mri_block_requests_cancel_locked(mri_remote *r);
/* Of blocks whose state is CHECK: compares up to `most`; the rest is left for the next time. */
void mri_blocks_check(mri_remote *r, uint32_t most, uint8_t *room);

/* ---- remote_http.c ---- */
int mri_http_create(mri_remote *r, mr_error *err); /* MR_EUNSUPPORTED without libcurl */
void mri_http_destroy(mri_remote *r);
void *mri_http_main(void *remote);
void mri_http_wake(mri_remote *r);

#endif
