/* kernels/host/host_stream.c: a stream as a worker thread with a ring of tasks (the picture is in host.h).
 *
 * One lock guards a stream's ring and counters. The thread holds it only to take a task and to count it done.
 * The struct is shared by count: an event keeps the stream it was recorded on readable after
 * mr_stream_destroy().
 *
 * Stopping: destroy sets stop, the thread finishes the ring and leaves, destroy joins it. Waits in the ring
 * end because the awaited work was queued before them, on a stream that is still running or has drained. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "kernels/host/host.h"

#define FIRST_RING_TASKS 256u /* a power of two; a training step of a small network queues about 60 */

struct task {
    mri_host_run *run;
    unsigned flags;
    uint64_t pushed_ns, over_ns; /* of a simulated device; over: when it was there */
    _Alignas(16) unsigned char args[MRI_TASK_ARGS_BYTES];
};

struct mri_host_stream {
    mr_stream base;
    mri_host_device *device;
    pthread_t thread;
    uint64_t clock_ns; /* the thread's: of a simulated device */
    _Atomic uint32_t refs;
    pthread_mutex_t lock;
    pthread_cond_t queued; /* the thread sleeps here */
    pthread_cond_t over;   /* who waits for a task sleeps here */
    struct task *ring;     /* lock */
    uint32_t ring_size;    /* lock */
    uint64_t pushed;       /* lock: tasks ever queued */
    uint64_t done;         /* lock: tasks ever finished; ring slot of task number k is (k - 1) % ring_size */
    uint32_t waiters;      /* lock */
    bool asleep;           /* lock: the thread waits on queued */
    bool stop;             /* lock */
    uint64_t failed_at;    /* lock to write: number of the task that failed, 0 while well; the thread reads
                              freely */
    mr_error error;        /* lock to write */
};

int mri_host_stream_failed(const mri_host_stream *s) { return s->failed_at ? s->error.code : MR_OK; }

mri_host_device *mri_host_stream_device(const mri_host_stream *s) { return s->device; }

/* ---- the clock of a simulated device ----
 *
 * On this clock a task begins once it is queued, the task before it is over, and the work that it waits for
 * is over. Threads of this machine that come late to it, because others have the cores, move nothing: the
 * next task takes less of the real time. The clock is never ahead of the real one, for a task that takes time
 * sleeps until it is over. */

static bool is_simulated(const mri_host_stream *s) { return s->device->base.info.simulated; }

uint64_t mri_host_stream_now(const mri_host_stream *s)
{
    return is_simulated(s) ? s->clock_ns : mri_now_ns();
}

void mri_host_stream_advance(mri_host_stream *s, uint64_t to_ns)
{
    s->clock_ns = mri_max_u64(s->clock_ns, to_ns);
}

void mri_host_stream_pass_until(mri_host_stream *s, uint64_t to_ns)
{
    mri_host_sleep_until(to_ns);
    mri_host_stream_advance(s, to_ns);
}

/* When a task that is over was; of one that the ring has forgotten, now. */
static uint64_t over_since(mri_host_stream *s, uint64_t number)
{
    uint64_t at = mri_now_ns();
    if (!is_simulated(s)) return at;
    pthread_mutex_lock(&s->lock);
    if (number && s->pushed - number < s->ring_size) at = s->ring[(number - 1) & (s->ring_size - 1)].over_ns;
    pthread_mutex_unlock(&s->lock);
    return at;
}

mri_host_stream *mri_host_stream_ref(mri_host_stream *s)
{
    s->refs++;
    return s;
}

void mri_host_stream_unref(mri_host_stream *s)
{
    if (!s || --s->refs > 0) return;
    pthread_cond_destroy(&s->queued);
    pthread_cond_destroy(&s->over);
    pthread_mutex_destroy(&s->lock);
    free(s->ring);
    free(s);
}

/* Run one task outside the lock; returns its code. */
static int run_task(mri_host_stream *s, const struct task *t, mr_error *err)
{
    mri_host_stream_advance(s, t->pushed_ns);
    if (s->failed_at && !(t->flags & MRI_TASK_ALWAYS)) return MR_OK;
    err->code = MR_OK;
    const int rc = t->run(s, t->args, err);
    if (rc && err->code != rc) mr_error_set(err, rc, "%s: queued work failed", s->base.device->name);
    return rc;
}

static _Thread_local bool is_stream; /* this thread is a stream's */

static void *stream_main(void *arg)
{
    mri_host_stream *s = arg;
    is_stream = true;
    if (s->device->thread_begin) s->device->thread_begin(s->device, s->base.role);
    struct task task;
    mr_error err = MR_ERROR_INIT;
    pthread_mutex_lock(&s->lock);
    for (;;) {
        s->asleep = true;
        while (s->pushed == s->done && !s->stop) pthread_cond_wait(&s->queued, &s->lock);
        s->asleep = false;
        if (s->pushed == s->done) break;
        task = s->ring[s->done & (s->ring_size - 1)];
        pthread_mutex_unlock(&s->lock);

        const int rc = run_task(s, &task, &err);
        if (rc) mri_host_device_fail(s->device, &err);

        pthread_mutex_lock(&s->lock);
        s->ring[s->done & (s->ring_size - 1)].over_ns = s->clock_ns;
        s->done++;
        if (rc && !s->failed_at) {
            s->error = err;
            s->failed_at = s->done;
        }
        if (s->waiters > 0) pthread_cond_broadcast(&s->over);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* what: the last part of the thread's name. */
static int begin_stream(mri_host_stream **out, mr_device *dev, mr_stream_role role, const char *what,
                        mr_error *err)
{
    mri_host_stream *s = calloc(1, sizeof *s);
    struct task *ring = calloc(FIRST_RING_TASKS, sizeof *ring);
    if (!s || !ring) goto fail;
    s->base = (mr_stream){dev, role};
    s->device = mri_host_device_of(dev);
    s->refs = 1;
    s->ring = ring;
    s->ring_size = FIRST_RING_TASKS;
    s->error = (mr_error)MR_ERROR_INIT;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->queued, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&s->over, &monotonic);
    pthread_condattr_destroy(&monotonic);
    char name[16];
    snprintf(name, sizeof name, "mr-%.4s%u-%s", dev->info.kind, dev->info.index % 1000u, what);
    if (mri_thread_start(&s->thread, name, stream_main, s) != MR_OK) {
        mri_host_stream_unref(s);
        return mr_error_set(err, MR_ENOMEM, "%s: the system refused a thread for a stream", dev->name);
    }
    *out = s;
    return MR_OK;

fail:
    free(s);
    free(ring);
    return mr_error_set(err, MR_ENOMEM, "%s: no memory for a stream", dev->name);
}

static int stream_create(mr_stream **out, mr_device *dev, mr_stream_role role, mr_error *err)
{
    mri_host_stream *s;
    const int rc = begin_stream(&s, dev, role, role == MR_STREAM_COPY ? "copy" : "comp", err);
    if (rc == MR_OK) *out = &s->base;
    return rc;
}

static void end_stream(mri_host_stream *s)
{
    pthread_mutex_lock(&s->lock);
    s->stop = true;
    pthread_cond_signal(&s->queued);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    mri_host_stream_unref(s);
}

static void stream_destroy(mr_stream *base) { end_stream((mri_host_stream *)base); }

/* Twice the ring; tasks keep their numbers, so each moves to its number's slot in the new size. */
static int grow_ring_locked(mri_host_stream *s)
{
    if (s->ring_size > UINT32_MAX / 4) return MR_ELIMIT;
    const uint32_t size = s->ring_size * 2;
    struct task *ring = calloc(size, sizeof *ring);
    if (!ring) return MR_ENOMEM;
    for (uint64_t i = s->done; i < s->pushed; i++) ring[i & (size - 1)] = s->ring[i & (s->ring_size - 1)];
    free(s->ring);
    s->ring = ring;
    s->ring_size = size;
    return MR_OK;
}

static int push_locked(mri_host_stream *s, mri_host_run *run, const void *args, size_t args_bytes,
                       unsigned flags)
{
    if (s->failed_at && !(flags & MRI_TASK_ALWAYS)) return s->error.code;
    const int rc = s->pushed - s->done == s->ring_size ? grow_ring_locked(s) : MR_OK;
    if (rc) return rc;
    struct task *t = &s->ring[s->pushed++ & (s->ring_size - 1)];
    t->run = run;
    t->flags = flags;
    t->pushed_ns = is_simulated(s) ? mri_now_ns() : 0;
    memcpy(t->args, args, args_bytes);
    if (s->asleep) pthread_cond_signal(&s->queued);
    return MR_OK;
}

int mri_host_push(mri_host_stream *s, mri_host_run *run, const void *args, size_t args_bytes, unsigned flags,
                  uint64_t *number)
{
    assert(args_bytes <= MRI_TASK_ARGS_BYTES);
    if (!(flags & MRI_TASK_ALWAYS) && s->device->failed) return s->device->failed;
    pthread_mutex_lock(&s->lock);
    const int rc = push_locked(s, run, args, args_bytes, flags);
    if (number) *number = s->pushed;
    pthread_mutex_unlock(&s->lock);
    return rc;
}

int mri_host_stream_query(mri_host_stream *s, uint64_t number)
{
    pthread_mutex_lock(&s->lock);
    int rc = s->done >= number ? MR_OK : MR_EAGAIN;
    if (rc == MR_OK && s->failed_at && s->failed_at <= number) rc = s->error.code;
    pthread_mutex_unlock(&s->lock);
    return rc;
}

/* One wait on over, which runs on CLOCK_MONOTONIC; false once until_ns has passed. */
static bool wait_over_locked(mri_host_stream *s, uint64_t until_ns)
{
    if (until_ns == MR_FOREVER) {
        pthread_cond_wait(&s->over, &s->lock);
        return true;
    }
    const struct timespec until = {(time_t)(until_ns / 1000000000u), (long)(until_ns % 1000000000u)};
    return pthread_cond_timedwait(&s->over, &s->lock, &until) != ETIMEDOUT;
}

int mri_host_stream_wait(mri_host_stream *s, uint64_t number, uint64_t timeout_ns, mr_error *err)
{
    const uint64_t now = mri_now_ns(), until = timeout_ns > MR_FOREVER - now ? MR_FOREVER : now + timeout_ns;
    bool in_time = true;
    pthread_mutex_lock(&s->lock);
    s->waiters++;
    while (s->done < number && in_time) in_time = wait_over_locked(s, until);
    s->waiters--;
    int rc = s->done < number ? MR_EAGAIN : MR_OK;
    if (rc == MR_OK && s->failed_at && s->failed_at <= number) {
        rc = s->error.code;
        if (err) *err = s->error;
    }
    pthread_mutex_unlock(&s->lock);
    return rc;
}

int mri_host_stream_join(mri_host_stream *s, mri_host_stream *other, uint64_t number, mr_error *err)
{
    const int rc = mri_host_stream_wait(other, number, MR_FOREVER, err);
    mri_host_stream_advance(s, over_since(other, number));
    return rc;
}

static int stream_wait(mr_stream *base, uint64_t timeout_ns, mr_error *err)
{
    mri_host_stream *s = (mri_host_stream *)base;
    pthread_mutex_lock(&s->lock);
    const uint64_t last = s->pushed;
    pthread_mutex_unlock(&s->lock);
    int rc = mri_host_stream_wait(s, last, timeout_ns, err);
    if ((rc == MR_OK || rc == MR_EAGAIN) && s->device->failed) { /* another stream of this device */
        pthread_mutex_lock(&s->device->lock);
        rc = s->device->failed;
        if (err) *err = s->device->error;
        pthread_mutex_unlock(&s->device->lock);
    }
    return rc;
}

/* ---- the maker ---- */

int mri_host_maker_start(mri_host_device *dev, mr_error *err)
{
    return begin_stream(&dev->maker, &dev->base, MR_STREAM_COMPUTE, "make", err);
}

void mri_host_maker_stop(mri_host_device *dev)
{
    if (dev->maker) end_stream(dev->maker);
    dev->maker = NULL;
}

struct made { /* the caller's, who waits */
    mri_host_work *work;
    void *context;
    mr_error *err;
    int rc;
};

/* An error is the caller's and none of the device. */
static int run_made(mri_host_stream *s, const void *args, mr_error *err)
{
    (void)s, (void)err;
    struct made *m = *(struct made *const *)args;
    m->rc = m->work(m->context, m->err);
    return MR_OK;
}

int mri_host_make(mri_host_device *dev, mri_host_work *work, void *context, mr_error *err)
{
    struct made made = {work, context, err, MR_OK}, *const at = &made;
    uint64_t number;
    if (!dev->maker || is_stream) return work(context, err);
    const int rc = mri_host_push(dev->maker, run_made, &at, sizeof at, MRI_TASK_ALWAYS, &number);
    if (rc) return mr_error_set(err, rc, "%s: no memory for a task", dev->base.name);
    mri_host_stream_wait(dev->maker, number, MR_FOREVER, NULL);
    return made.rc;
}

const struct mri_stream_calls mri_host_streams = {
    .create = stream_create, .destroy = stream_destroy, .wait = stream_wait};
