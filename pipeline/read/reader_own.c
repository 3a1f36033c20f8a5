/* pipeline/read/reader_own.c: the reader of samples that the program makes without waiting (mr_own_begin).
 *
 *   pending ──► begun, up to `depth` at one time ──► given, from any thread ──► done
 *
 * A sample's bytes stand in a buffer of its request, which is kept for the next one. A read of anything else
 * (the cache of samples) is done at once. A begun sample is always delivered, so the reader waits for it to
 * the end; a request not begun before a stop fails. */
#include <errno.h>

#include "base/util.h"
#include "formats/source/source.h"
#include "pipeline/read/reader_kind.h"

typedef struct own_reads {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    bool stopped, woken; /* lock */
    mri_read_list given; /* lock */
} own_reads;

static int own_open(mri_reader *r, mr_error *err)
{
    own_reads *own = r->ring = calloc(1, sizeof *own);
    if (!own) return mr_error_set(err, MR_ENOMEM, "no memory for a reader");
    pthread_mutex_init(&own->lock, NULL);
    pthread_cond_init(&own->moved, NULL);
    return MR_OK;
}

static void own_close(mri_reader *r)
{
    own_reads *own = r->ring;
    pthread_cond_destroy(&own->moved);
    pthread_mutex_destroy(&own->lock);
    free(own);
}

static void own_stop(mri_reader *r)
{
    own_reads *own = r->ring;
    pthread_mutex_lock(&own->lock);
    own->stopped = true;
    pthread_cond_signal(&own->moved);
    pthread_mutex_unlock(&own->lock);
}

static void own_wake(mri_reader *r)
{
    own_reads *own = r->ring;
    pthread_mutex_lock(&own->lock);
    own->woken = true;
    pthread_cond_signal(&own->moved);
    pthread_mutex_unlock(&own->lock);
}

static void on_given(mri_making *m)
{
    mri_read *q = m->owner;
    own_reads *own = q->own;
    pthread_mutex_lock(&own->lock);
    mri_read_push(&own->given, q);
    pthread_cond_signal(&own->moved);
    pthread_mutex_unlock(&own->lock);
}

static bool is_stopped(own_reads *own)
{
    pthread_mutex_lock(&own->lock);
    const bool stopped = own->stopped;
    pthread_mutex_unlock(&own->lock);
    return stopped;
}

static void begin(mri_reader *r, own_reads *own, mri_read *q)
{
    if (!q->made) q->made = calloc(1, sizeof *q->made);
    if (!q->made) {
        mri_read_finish(r, q, MR_ENOMEM, ENOMEM);
        return;
    }
    q->own = own;
    q->made->done = on_given;
    q->made->owner = q;
    r->active++;
    mri_source_begin_sample(r->cfg.source, q->sample, q->made);
}

static void start_all(mri_reader *r, own_reads *own)
{
    while (r->pending.head && r->active < r->cfg.depth) {
        mri_read *q = mri_read_pop(&r->pending);
        if (is_stopped(own)) mri_read_finish(r, q, MR_ECANCELED, 0);
        else if (q->file != MRI_FILE_OF_CACHE) begin(r, own, q);
        else if (mri_read_start(r, q, true) != MRI_FINISHED) mri_read_now(r, q);
    }
}

static void finish(mri_reader *r, mri_read *q)
{
    r->active--;
    r->counts.reads++;
    r->counts.bytes += q->made->bytes;
    q->data = q->made->buffer;
    mri_read_finish(r, q, q->made->rc, 0);
}

/* Into done. False: it was woken while nothing had come. */
static bool take_given(mri_reader *r, own_reads *own, bool wait)
{
    mri_read *q;
    pthread_mutex_lock(&own->lock);
    while (wait && !own->woken && !own->given.head) pthread_cond_wait(&own->moved, &own->lock);
    const bool woken = wait && own->woken && !own->given.head;
    if (wait) own->woken = false;
    mri_read_list given = own->given;
    own->given = (mri_read_list){NULL, NULL};
    pthread_mutex_unlock(&own->lock);
    while ((q = mri_read_pop(&given))) finish(r, q);
    return !woken;
}

static int own_advance(mri_reader *r, bool block, mr_error *err)
{
    own_reads *own = r->ring;
    (void)err;
    for (;;) {
        start_all(r, own);
        const bool waits = block && !r->done.head && r->active > 0;
        if (!take_given(r, own, waits) || r->done.head || !waits) return MR_OK;
    }
}

const mri_reader_kind mri_reader_own = {"own", own_open, own_close, own_advance, own_stop, own_wake};
