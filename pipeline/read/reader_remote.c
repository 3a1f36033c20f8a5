/* pipeline/read/reader_remote.c: the reader of sources with remote files.
 *
 *   pending ──► wanted, up to `depth` at one time ──► arrived ──► pread() in this thread ──► done
 *
 * Arrived blocks were just written to their file, or compared with their checksum: the pread() is a copy from
 * memory. So the depth hides the server's latency, and the server and the network set the rate. A read of
 * anything else (the cache of samples) is done at once.
 *
 * Waiting ends with mri_reader_stop(), too, from any thread: then every read that is left has failed. */
#include <errno.h>

#include "base/util.h"
#include "formats/source/source.h"
#include "pipeline/read/reader_kind.h"

typedef struct remote_reads {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    bool stopped;      /* lock */
    bool woken;        /* lock */
    uint32_t arrived;  /* lock: wanted reads whose has_arrived was set since they were looked at last */
    mri_read **wanted; /* the reader's thread: `active` of them */
} remote_reads;

static int remote_open(mri_reader *r, mr_error *err)
{
    remote_reads *own = r->ring = calloc(1, sizeof *own);
    if (own) own->wanted = calloc(r->cfg.depth, sizeof *own->wanted);
    if (!own || !own->wanted) {
        free(own);
        return mr_error_set(err, MR_ENOMEM, "no memory for %u reads", r->cfg.depth);
    }
    pthread_mutex_init(&own->lock, NULL);
    pthread_cond_init(&own->moved, NULL);
    return MR_OK;
}

static void remote_close(mri_reader *r)
{
    remote_reads *own = r->ring;
    pthread_cond_destroy(&own->moved);
    pthread_mutex_destroy(&own->lock);
    free(own->wanted);
    free(own);
}

static void remote_stop(mri_reader *r)
{
    remote_reads *own = r->ring;
    pthread_mutex_lock(&own->lock);
    own->stopped = true;
    pthread_cond_signal(&own->moved);
    pthread_mutex_unlock(&own->lock);
}

static void remote_wake(mri_reader *r)
{
    remote_reads *own = r->ring;
    pthread_mutex_lock(&own->lock);
    own->woken = true;
    pthread_cond_signal(&own->moved);
    pthread_mutex_unlock(&own->lock);
}

/* Under the lock of the remote files: no more than this. */
static void on_arrival(mri_block_request *w)
{
    mri_read *q = w->owner;
    remote_reads *own = q->own;
    pthread_mutex_lock(&own->lock);
    q->has_arrived = true;
    own->arrived++;
    pthread_cond_signal(&own->moved);
    pthread_mutex_unlock(&own->lock);
}

static void start_all(mri_reader *r, remote_reads *own)
{
    while (r->pending.head && r->active < r->cfg.depth) {
        mri_read *q = mri_read_pop(&r->pending);
        mri_remote_file *f =
            q->file == MRI_FILE_OF_CACHE ? NULL : mri_source_remote_at(r->cfg.source, q->file);
        if (mri_read_start(r, q, true) == MRI_FINISHED) continue;
        if (!f) {
            mri_read_now(r, q);
            continue;
        }
        q->own = own;
        q->has_arrived = false;
        q->want = (mri_block_request){.arrived = on_arrival, .owner = q};
        own->wanted[r->active++] = q;
        mri_block_request_start(&q->want, f, q->offset, q->bytes);
    }
}

/* One that has arrived, or when all is stopped any. NULL: none. *woken: for one that would wait. */
static mri_read *take_arrived(mri_reader *r, remote_reads *own, bool wait, bool *woken)
{
    mri_read *q = NULL;
    pthread_mutex_lock(&own->lock);
    while (wait && !own->stopped && !own->woken && own->arrived == 0)
        pthread_cond_wait(&own->moved, &own->lock);
    *woken = wait && own->woken;
    if (wait) own->woken = false;
    for (uint32_t k = 0; (own->stopped || own->arrived > 0) && k < r->active && !q; k++) {
        if (!own->stopped && !own->wanted[k]->has_arrived) continue;
        q = own->wanted[k];
        own->wanted[k] = own->wanted[r->active - 1];
        if (q->has_arrived) own->arrived--;
    }
    pthread_mutex_unlock(&own->lock);
    return q;
}

static void finish(mri_reader *r, remote_reads *own, mri_read *q)
{
    pthread_mutex_lock(&own->lock);
    const bool arrived = q->has_arrived;
    pthread_mutex_unlock(&own->lock);
    r->active--;
    if (arrived && q->want.status == MR_OK) {
        mri_read_now(r, q);
        mri_block_request_end(&q->want);
        return;
    }
    mri_block_request_end(&q->want);
    if (!arrived) q->want.status = MR_ECANCELED;
    mri_read_finish(r, q, q->want.status, 0);
}

static int remote_advance(mri_reader *r, bool block, mr_error *err)
{
    remote_reads *own = r->ring;
    (void)err;
    for (;;) {
        start_all(r, own);
        bool woken = false;
        mri_read *q = r->active > 0 ? take_arrived(r, own, block && !r->done.head, &woken) : NULL;
        if (q) finish(r, own, q);
        if (!q && (woken || !block || r->done.head || (r->active == 0 && !r->pending.head))) return MR_OK;
    }
}

const mri_reader_kind mri_reader_remote = {"remote",       remote_open, remote_close,
                                           remote_advance, remote_stop, remote_wake};
