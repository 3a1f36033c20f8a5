/* python/native/maker.c: see native.h. Samples that one thread of Python makes, and pictures that it changes,
 * for all threads of the library that want one.
 *
 *   library's threads   ask: a request into the queue, wait
 *   Python's thread     take, make, give or fail           request: QUEUED, TAKEN, COPYING, DONE
 *                       take, read, change, put or fail
 *
 * A request belongs to whoever asked, until it is taken; closing lets those who wait go at once, and a
 * request that they leave behind in Python's hands is freed when it comes back. Memory of whoever asked is
 * touched in COPYING only, while he stays. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "python/native/native.h"

typedef enum state { QUEUED, TAKEN, COPYING, DONE, LEFT } state;

struct mrp_request {
    mrp_maker *maker;
    mrp_request *next;
    uint64_t number;        /* of the sample, or of the function */
    mr_own_sample *to;      /* a sample is wanted; else a picture is to be changed: */
    mr_own_picture picture; /* a copy */
    uint8_t *pixels;
    state state; /* lock */
    int rc;
    mr_error what;
};

struct mrp_maker {
    pthread_mutex_t lock;
    pthread_cond_t asked, done;
    mrp_request *first, *last; /* lock, like all below */
    int closed;
};

mrp_maker *mrp_maker_create(void)
{
    mrp_maker *m = calloc(1, sizeof *m);
    if (!m) return NULL;
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->asked, NULL);
    pthread_cond_init(&m->done, NULL);
    return m;
}

void mrp_maker_destroy(mrp_maker *m)
{
    if (!m) return;
    pthread_cond_destroy(&m->done);
    pthread_cond_destroy(&m->asked);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

void mrp_maker_close(mrp_maker *m)
{
    pthread_mutex_lock(&m->lock);
    m->closed = 1;
    m->first = m->last = NULL; /* theirs, who asked and now go */
    pthread_cond_broadcast(&m->asked);
    pthread_cond_broadcast(&m->done);
    pthread_mutex_unlock(&m->lock);
}

/* The lock is held. False: it was taken, and comes back later. */
static int wait_locked(mrp_maker *m, mrp_request *r)
{
    while (r->state != DONE && (!m->closed || r->state == COPYING)) pthread_cond_wait(&m->done, &m->lock);
    if (r->state == DONE || r->state == QUEUED) return 1;
    r->state = LEFT;
    return 0;
}

static int ask(const mrp_request *what, mr_error *err)
{
    mrp_maker *m = what->maker;
    mrp_request *r = malloc(sizeof *r);
    if (!r) return mr_error_set(err, MR_ENOMEM, "no memory to ask Python");
    *r = *what;
    r->rc = MR_ECANCELED;
    pthread_mutex_lock(&m->lock);
    if (!m->closed) {
        if (m->last) m->last->next = r;
        else m->first = r;
        m->last = r;
        pthread_cond_signal(&m->asked);
    }
    const int ours = wait_locked(m, r);
    pthread_mutex_unlock(&m->lock);
    if (!ours) return mr_error_set(err, MR_ECANCELED, "the data were closed");
    const int rc = r->rc;
    if (rc != MR_OK && r->what.code == rc) *err = r->what;
    else if (rc != MR_OK) mr_error_set(err, rc, "the data were closed");
    free(r);
    return rc;
}

int mrp_make(void *maker, uint64_t sample, mr_own_sample *to, mr_error *err)
{
    return ask(&(mrp_request){.maker = maker, .number = sample, .to = to}, err);
}

int mrp_make_nothing(void *nothing, uint64_t sample, mr_own_sample *to, mr_error *err)
{
    (void)nothing, (void)sample;
    static const uint8_t pixel = 0;
    const mr_value value = {.type = MR_TYPE_PIXELS, .ndim = 3, .dim = {1, 1, 1}, .data = &pixel, .bytes = 1};
    return mr_own_sample_give(to, &value, err);
}

int mrp_change(void *function, const mr_own_picture *picture, uint8_t *pixels, mr_error *err)
{
    const mrp_function *f = function;
    return ask(&(mrp_request){.maker = f->maker, .number = f->number, .picture = *picture, .pixels = pixels},
               err);
}

int mrp_maker_take(mrp_maker *m, uint64_t *number, mrp_request **out)
{
    pthread_mutex_lock(&m->lock);
    while (!m->first && !m->closed) pthread_cond_wait(&m->asked, &m->lock);
    mrp_request *r = m->first;
    if (r) {
        m->first = r->next;
        if (!m->first) m->last = NULL;
        r->state = TAKEN;
        *number = r->number;
    }
    *out = r;
    pthread_mutex_unlock(&m->lock);
    return r ? MR_OK : MR_ECANCELED;
}

/* Nobody waits for it any more: it is freed. */
static int was_left(mrp_request *r)
{
    pthread_mutex_lock(&r->maker->lock);
    const int left = r->state == LEFT;
    if (!left) r->state = COPYING; /* from here whoever asked stays */
    pthread_mutex_unlock(&r->maker->lock);
    if (left) free(r);
    return left;
}

static void done(mrp_request *r)
{
    mrp_maker *m = r->maker; /* r is gone once it is unlocked */
    pthread_mutex_lock(&m->lock);
    r->state = DONE;
    pthread_cond_broadcast(&m->done);
    pthread_mutex_unlock(&m->lock);
}

const mr_own_picture *mrp_request_picture(const mrp_request *r) { return &r->picture; }

static size_t bytes_of(const mrp_request *r)
{
    return (size_t)r->picture.height * r->picture.width * r->picture.channels;
}

int mrp_request_read(mrp_request *r, uint8_t *pixels)
{
    mrp_maker *m = r->maker;
    if (was_left(r)) return MR_ECANCELED;
    memcpy(pixels, r->pixels, bytes_of(r));
    pthread_mutex_lock(&m->lock);
    r->state = TAKEN; /* whoever asked may go again */
    pthread_cond_broadcast(&m->done);
    pthread_mutex_unlock(&m->lock);
    return MR_OK;
}

void mrp_request_put(mrp_request *r, const uint8_t *pixels)
{
    if (was_left(r)) return;
    memcpy(r->pixels, pixels, bytes_of(r));
    r->rc = MR_OK;
    done(r);
}

void mrp_maker_give(mrp_request *r, const mr_value *values)
{
    if (was_left(r)) return;
    r->what = (mr_error)MR_ERROR_INIT;
    r->rc = mr_own_sample_give(r->to, values, &r->what);
    done(r);
}

void mrp_maker_fail(mrp_request *r, int code, const char *text)
{
    if (was_left(r)) return;
    r->what = (mr_error)MR_ERROR_INIT;
    r->rc = mr_error_set(&r->what, code, "%s", text);
    done(r);
}
