/* python/native/finish.c: see native.h.
 *
 *   loader's threads -> slots -> [this thread: form pixels, copy the rest] -> ready (ahead of them) -> next()
 *                                    ^                                                             |
 *                                    +---- free buffers <---- the last reference was dropped <-----+
 *
 * A buffer is one piece of memory with everything that a batch points to. Their number is the number in use,
 * ready and in the making; one that somebody keeps is no longer of the ring, and another one takes its place
 * until all of them take bytes_most. With `keep` a batch stays in its slot, and the buffer has its targets
 * alone. It does not depend on the framework. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "python/native/batch.h"

enum {
    ALIGN = 64,
    LEAST = 3 /* the one in use, the one that a variable still names, the one in the making */
};

typedef struct buffer {
    mrp_batch b; /* first: a batch is its buffer */
    mrp_finisher *of;
    struct buffer *next;
    uint64_t bytes; /* of memory */
    uint8_t *memory;
    int lent; /* number of the caller's memory, or -1 */
} buffer;

struct mrp_finisher {
    mr_loader *l; /* fixed, like how */
    mrp_finish how;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t ready, room; /* for next(); for the thread */
    buffer *first, *last;       /* lock, like all below: finished, in order */
    buffer *free;
    uint32_t ready_count, free_count, count; /* count: of all buffers */
    uint32_t held;                           /* of them in use */
    uint64_t bytes;                          /* of all buffers */
    uint32_t lent;                           /* bits: which of the caller's memories are in a buffer */
    int starved;                             /* the thread waits for memory */
    int closed, owned;                       /* owned: not yet closed by its owner */
    int rc;                                  /* the loader's final status, once nothing follows; else MR_OK */
    mr_error what;
    mr_batch taken; /* of the thread, or of next() without a thread: not yet finished */
    int has_taken;
};

/* ---- buffers ---- */

static void free_buffer(buffer *u)
{
    mr_kept_drop(u->b.kept);
    if (u->lent < 0) free(u->memory);
    free(u);
}

/* Nobody is left who could name it. */
static void end(mrp_finisher *f)
{
    pthread_cond_destroy(&f->room);
    pthread_cond_destroy(&f->ready);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

static void lose_locked(mrp_finisher *f, buffer *u)
{
    f->count--;
    f->bytes -= u->bytes;
    if (u->lent >= 0) f->lent &= ~(1u << u->lent);
    free_buffer(u);
}

static void put_back_locked(mrp_finisher *f, buffer *u)
{
    if (f->closed || f->free_count > f->how.ahead + 1) {
        lose_locked(f, u);
    } else {
        u->next = f->free;
        f->free = u;
        f->free_count++;
    }
    f->starved = 0;
    pthread_cond_signal(&f->room);
}

static void come_back(mrp_batch *b)
{
    buffer *u = (buffer *)b;
    mrp_finisher *f = u->of;
    mr_kept_drop(u->b.kept); /* before the thread may keep another one */
    u->b.kept = NULL;
    pthread_mutex_lock(&f->lock);
    f->held--;
    put_back_locked(f, u);
    const int over = !f->owned && f->count == 0;
    pthread_mutex_unlock(&f->lock);
    if (over) end(f);
}

static buffer *take_free_locked(mrp_finisher *f, uint64_t bytes)
{
    for (buffer **at = &f->free; *at; at = &(*at)->next) {
        buffer *u = *at;
        if (u->bytes < bytes) continue;
        *at = u->next;
        f->free_count--;
        return u;
    }
    if (f->free) { /* one that is too small gives its memory for one that is not */
        buffer *u = f->free;
        f->free = u->next;
        f->free_count--;
        lose_locked(f, u);
    }
    return NULL;
}

static buffer *make_buffer(mrp_finisher *f, uint64_t bytes, int lent)
{
    buffer *u = calloc(1, sizeof *u);
    if (u) u->memory = lent < 0 ? aligned_alloc(ALIGN, bytes) : f->how.lent[lent];
    if (!u || !u->memory) {
        free(u);
        return NULL;
    }
    u->of = f;
    u->bytes = bytes;
    u->lent = lent;
    return u;
}

/* Memory of the caller's that no buffer has, or -1. */
static int take_lent_locked(mrp_finisher *f, uint64_t bytes)
{
    for (uint32_t k = 0; bytes <= f->how.lent_bytes && k < f->how.lent_count; k++) {
        if (f->lent & 1u << k) continue;
        f->lent |= 1u << k;
        return (int)k;
    }
    return -1;
}

/* One with room for `bytes`. MR_ELIMIT: no memory now; it may be free later. */
static int get_buffer(mrp_finisher *f, uint64_t bytes, buffer **out, mr_error *err)
{
    int lent = -1;
    pthread_mutex_lock(&f->lock);
    buffer *u = take_free_locked(f, bytes);
    const int more =
        !u && (f->how.keep || f->count < LEAST + f->how.ahead || f->bytes + bytes <= f->how.bytes_most);
    if (more) {
        lent = take_lent_locked(f, bytes);
        if (lent >= 0) bytes = f->how.lent_bytes;
        f->count++;
        f->bytes += bytes;
    }
    pthread_mutex_unlock(&f->lock);
    *out = u;
    if (u) return MR_OK;
    if (!more) return mr_error_set(err, MR_ELIMIT, "finished batches take all memory that they may");
    *out = make_buffer(f, bytes, lent);
    if (*out) return MR_OK;
    pthread_mutex_lock(&f->lock);
    f->count--;
    f->bytes -= bytes;
    if (lent >= 0) f->lent &= ~(1u << lent);
    pthread_mutex_unlock(&f->lock);
    return mr_error_set(err, MR_ENOMEM, "no memory for a finished batch of %llu bytes",
                        (unsigned long long)bytes);
}

/* ---- finishing one ---- */

static size_t element_bytes(int dtype) { return dtype == MR_U8 ? 1 : dtype == MR_F32 ? 4 : 2; }

static uint64_t picture_bytes(const mrp_finish *how)
{
    return (uint64_t)how->height * how->width * how->channels * element_bytes(how->dtype);
}

static uint64_t target_bytes(const mrp_finish *how)
{
    return how->classes ? how->classes * sizeof(float) : sizeof(int64_t);
}

/* The target of copies, one after the other; with memory NULL bytes are only counted. */
typedef struct place {
    uint8_t *memory;
    uint64_t at;
} place;

static void *reserve(place *p, uint64_t bytes)
{
    void *here = p->memory ? p->memory + p->at : NULL;
    p->at += (bytes + ALIGN - 1) / ALIGN * ALIGN;
    return here;
}

static void *copied(place *p, const void *from, uint64_t bytes)
{
    if (!from) return NULL;
    void *to = reserve(p, bytes);
    if (to) memcpy(to, from, bytes);
    return to;
}

static void copy_fields(const mrp_finish *how, place *p, const mr_batch *from, mr_batch *to)
{
    for (uint32_t k = 0; k < how->field_count; k++) {
        const mr_batch_field *f = &from->field[k];
        to->field[k].data = copied(p, f->data, (uint64_t)from->count * f->width * how->field_bytes[k]);
        to->field[k].length = copied(p, f->length, (uint64_t)from->count * sizeof *f->length);
    }
}

/* All of a batch but pixels and targets. */
static void copy_rest(const mrp_finish *how, place *p, const mr_batch *from, mr_batch *to)
{
    const uint64_t n = from->count;
    to->labels = copied(p, from->labels, n * sizeof *from->labels);
    to->ids = copied(p, from->ids, n * sizeof *from->ids);
    to->affine = copied(p, from->affine, n * 2 * sizeof *from->affine);
    to->labels2 = copied(p, from->labels2, n * sizeof *from->labels2);
    to->share2 = copied(p, from->share2, n * sizeof *from->share2);
    copy_fields(how, p, from, to);
}

static int make_targets(const mrp_finish *how, const mr_batch *b, void *out, mr_error *err)
{
    if (!how->classes) {
        for (uint32_t i = 0; i < b->count; i++)
            ((int64_t *)out)[i] = b->labels[i] < 0 ? how->ignore : b->labels[i];
        return MR_OK;
    }
    const uint32_t done = mrp_soft_targets(b->labels, b->labels2, b->share2, b->count, how->classes, out);
    if (done == b->count) return MR_OK;
    mr_error_set(err, MR_EINVAL, "its label is not below the %u classes that num_classes= says",
                 how->classes);
    err->sample = b->ids[done];
    return MR_EINVAL;
}

static void begin_view(buffer *u, const mr_batch *from)
{
    u->b.view = *from;
    u->b.view.parts = NULL; /* the loader's own */
    u->b.view.part_count = 0;
    u->b.gone = come_back;
    u->b.process = getpid();
    atomic_init(&u->b.refs, 1);
}

/* The loader fills another slot in place of the batch's. */
static int keep(mrp_finisher *f, const mr_batch *from, buffer *u, mr_error *err)
{
    begin_view(u, from);
    u->b.targets = u->memory;
    const int rc = make_targets(&f->how, from, u->memory, err);
    return rc != MR_OK ? rc : mr_loader_keep(f->l, from, &u->b.kept, err);
}

static int finish(mrp_finisher *f, const mr_batch *from, buffer *u, mr_error *err)
{
    const mrp_finish *how = &f->how;
    place p = {.memory = u->memory};
    begin_view(u, from);
    u->b.view.pixels = NULL;
    if (from->pixels) {
        void *out = reserve(&p, from->count * picture_bytes(how));
        mrp_form_pixels(how, from->pixels, from->count, from->affine, out);
        u->b.view.pixels = out;
    }
    u->b.targets = reserve(&p, from->count * target_bytes(how));
    copy_rest(how, &p, from, &u->b.view);
    return make_targets(how, from, (void *)u->b.targets, err);
}

static uint64_t bytes_of(const mrp_finish *how, const mr_batch *b)
{
    place counted = {0};
    if (b->pixels && !how->keep) reserve(&counted, b->count * picture_bytes(how));
    reserve(&counted, b->count * target_bytes(how));
    if (how->keep) return counted.at ? counted.at : ALIGN;
    reserve(&counted, b->count * sizeof *b->labels);
    reserve(&counted, b->count * sizeof *b->ids);
    if (b->affine) reserve(&counted, b->count * 2 * sizeof *b->affine);
    if (b->labels2) reserve(&counted, 2 * (b->count * sizeof *b->labels2 + ALIGN));
    for (uint32_t k = 0; k < how->field_count; k++) {
        reserve(&counted, (uint64_t)b->count * b->field[k].width * how->field_bytes[k]);
        reserve(&counted, b->count * sizeof *b->field[k].length);
    }
    return counted.at ? counted.at : ALIGN;
}

/* ---- the thread ---- */

/* Wait until there may be memory for another buffer. False: closed. */
static int wait_for_memory(mrp_finisher *f)
{
    pthread_mutex_lock(&f->lock);
    f->starved = 1;
    pthread_cond_signal(&f->ready);
    while (!f->closed && !f->free && f->starved) pthread_cond_wait(&f->room, &f->lock);
    f->starved = 0;
    const int on = !f->closed;
    pthread_mutex_unlock(&f->lock);
    return on;
}

/* MR_EBUSY, where nobody waits here for memory: the batch stays taken, and the next call goes on with it. */
static int finish_next(mrp_finisher *f, uint64_t timeout_ns, buffer **out, mr_error *err)
{
    int rc = f->has_taken ? MR_OK : mr_loader_next(f->l, &f->taken, timeout_ns, err);
    if (rc != MR_OK) return rc;
    f->has_taken = 1;
    const uint64_t bytes = bytes_of(&f->how, &f->taken);
    while ((rc = get_buffer(f, bytes, out, err)) == MR_ELIMIT)
        if (!f->how.ahead || !wait_for_memory(f)) return MR_EBUSY;
    if (rc == MR_OK) rc = f->how.keep ? keep(f, &f->taken, *out, err) : finish(f, &f->taken, *out, err);
    if (rc != MR_OK && *out) {
        pthread_mutex_lock(&f->lock);
        put_back_locked(f, *out);
        pthread_mutex_unlock(&f->lock);
    }
    f->has_taken = 0;
    if (rc == MR_OK && f->how.keep) return MR_OK; /* which released it */
    const int released = mr_loader_release(f->l, &f->taken, NULL);
    return rc != MR_OK ? rc : released;
}

/* Wait until a batch more may be ready. False: closed. */
static int wait_for_room(mrp_finisher *f)
{
    pthread_mutex_lock(&f->lock);
    while (!f->closed && f->ready_count >= f->how.ahead) pthread_cond_wait(&f->room, &f->lock);
    const int on = !f->closed;
    pthread_mutex_unlock(&f->lock);
    return on;
}

static void append(mrp_finisher *f, buffer *u, int rc, const mr_error *what)
{
    pthread_mutex_lock(&f->lock);
    if (rc == MR_OK) {
        u->next = NULL;
        if (f->last) f->last->next = u;
        else f->first = u;
        f->last = u;
        f->ready_count++;
    } else {
        f->rc = rc;
        f->what = *what;
    }
    pthread_cond_signal(&f->ready);
    pthread_mutex_unlock(&f->lock);
}

static void *work(void *finisher)
{
    mrp_finisher *f = finisher;
    while (wait_for_room(f)) {
        buffer *u = NULL;
        mr_error what = {.offset = MR_NOWHERE, .sample = MR_NOWHERE};
        const int rc = finish_next(f, MR_FOREVER, &u, &what);
        if (rc == MR_EAGAIN) continue;
        append(f, u, rc, &what);
        if (rc != MR_OK) break;
    }
    return NULL;
}

/* ---- the interface ---- */

static mrp_finisher *create(mr_loader *l, const mrp_finish *how)
{
    mrp_finisher *f = calloc(1, sizeof *f);
    if (!f) return NULL;
    f->l = l;
    f->how = *how;
    f->owned = 1;
    pthread_condattr_t steady;
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->ready, &steady);
    pthread_cond_init(&f->room, NULL);
    pthread_condattr_destroy(&steady);
    return f;
}

/* Signals are for the threads of Python. */
static int start(mrp_finisher *f)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int rc = pthread_create(&f->thread, NULL, work, f);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

int mrp_finisher_open(mrp_finisher **out, mr_loader *l, const mrp_finish *how, mr_error *err)
{
    *out = NULL;
    mrp_finisher *f = create(l, how);
    if (!f) return mr_error_set(err, MR_ENOMEM, "no memory to finish batches");
    const int rc = how->ahead ? start(f) : 0;
    if (rc) {
        end(f);
        return mr_error_set(err, MR_EIO, "no thread to finish batches: %s", strerror(rc));
    }
    *out = f;
    return MR_OK;
}

static struct timespec deadline(uint64_t timeout_ns)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += (time_t)(timeout_ns / 1000000000u);
    t.tv_nsec += (long)(timeout_ns % 1000000000u);
    if (t.tv_nsec >= 1000000000) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000;
    }
    return t;
}

static int take_ready(mrp_finisher *f, uint64_t timeout_ns, buffer **out, mr_error *err)
{
    const struct timespec until = deadline(timeout_ns);
    int late = 0, rc = MR_OK;
    pthread_mutex_lock(&f->lock);
    while (!f->first && f->rc == MR_OK && !f->starved && !late)
        late = pthread_cond_timedwait(&f->ready, &f->lock, &until);
    buffer *u = f->first;
    if (u) {
        f->first = u->next;
        if (!f->first) f->last = NULL;
        f->ready_count--;
        pthread_cond_signal(&f->room);
    } else if (f->rc != MR_OK) {
        rc = f->rc;
        *err = f->what;
    } else {
        rc = f->starved ? MR_EBUSY : MR_EAGAIN;
    }
    pthread_mutex_unlock(&f->lock);
    *out = u;
    return rc;
}

uint32_t mrp_finisher_held(mrp_finisher *f, uint64_t *bytes)
{
    pthread_mutex_lock(&f->lock);
    const uint32_t held = f->held;
    *bytes = f->bytes;
    pthread_mutex_unlock(&f->lock);
    return held;
}

int mrp_finisher_next(mrp_finisher *f, uint64_t timeout_ns, mrp_batch **out, mr_error *err)
{
    buffer *u = NULL;
    uint64_t bytes;
    *out = NULL;
    if (f->how.keep && mrp_finisher_held(f, &bytes) >= f->how.keep) /* only this thread adds to them */
        return mr_error_set(err, MR_EBUSY, "%u batches are in use", f->how.keep);
    const int rc = f->how.ahead ? take_ready(f, timeout_ns, &u, err) : finish_next(f, timeout_ns, &u, err);
    if (rc != MR_OK) return rc;
    pthread_mutex_lock(&f->lock);
    f->held++;
    pthread_mutex_unlock(&f->lock);
    *out = &u->b;
    return MR_OK;
}

void mrp_finisher_close(mrp_finisher *f)
{
    if (!f) return;
    pthread_mutex_lock(&f->lock);
    f->closed = 1;
    pthread_cond_broadcast(&f->room);
    pthread_cond_broadcast(&f->ready);
    pthread_mutex_unlock(&f->lock);
    if (f->how.ahead) pthread_join(f->thread, NULL);
    if (f->has_taken) mr_loader_release(f->l, &f->taken, NULL);
    pthread_mutex_lock(&f->lock);
    for (buffer *u, **lists[] = {&f->first, &f->free}, ***list = lists; list < lists + 2; list++)
        while ((u = **list)) {
            **list = u->next;
            lose_locked(f, u);
        }
    f->owned = 0;
    const int over = f->count == 0;
    pthread_mutex_unlock(&f->lock);
    if (over) end(f);
}
