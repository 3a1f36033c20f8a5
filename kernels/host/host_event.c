/* kernels/host/host_event.c: an event is the number of a task on a stream, and the time at which that task
 * ran.
 *
 * Lock order: an event's lock, then a stream's. The stream's thread takes an event's lock only between tasks'
 * own locks. */
#include "kernels/host/host.h"

struct host_event {
    mr_event base;
    pthread_mutex_t lock;
    mri_host_stream *stream; /* lock: a count on where it was recorded last; NULL: never */
    uint64_t number;         /* lock: of the stamp task there */
    uint64_t round;          /* lock: records so far; a stamp of an earlier round is dropped */
    uint64_t time_ns;        /* lock: of the current round, once its stamp has run */
};

static int event_create(mr_event **out, mr_device *dev, mr_error *err)
{
    struct host_event *e = calloc(1, sizeof *e);
    if (!e) return mr_error_set(err, MR_ENOMEM, "%s: no memory for an event", dev->name);
    e->base.device = dev;
    pthread_mutex_init(&e->lock, NULL);
    *out = &e->base;
    return MR_OK;
}

static void event_destroy(mr_event *base)
{
    struct host_event *e = (struct host_event *)base;
    mri_host_stream_unref(e->stream);
    pthread_mutex_destroy(&e->lock);
    free(e);
}

struct stamp_args {
    struct host_event *event;
    uint64_t round;
};

static int run_stamp(mri_host_stream *s, const void *args, mr_error *err)
{
    (void)err;
    const struct stamp_args *a = args;
    pthread_mutex_lock(&a->event->lock);
    if (a->event->round == a->round) a->event->time_ns = mri_host_stream_now(s);
    pthread_mutex_unlock(&a->event->lock);
    return MR_OK;
}

static int event_record(mr_event *base, mr_stream *stream)
{
    struct host_event *e = (struct host_event *)base;
    mri_host_stream *s = (mri_host_stream *)stream;
    pthread_mutex_lock(&e->lock); /* held over the push: the stamp must find number and stream in place */
    const struct stamp_args args = {e, e->round + 1};
    uint64_t number;
    const int rc = mri_host_push(s, run_stamp, &args, sizeof args, MRI_TASK_ALWAYS, &number);
    if (rc == MR_OK) {
        mri_host_stream *before = e->stream;
        e->stream = mri_host_stream_ref(s);
        mri_host_stream_unref(before);
        e->number = number;
        e->round++;
    }
    pthread_mutex_unlock(&e->lock);
    return rc;
}

/* What e marks now, with a count on the stream for the caller; NULL when never recorded. */
static mri_host_stream *marked(struct host_event *e, uint64_t *number)
{
    pthread_mutex_lock(&e->lock);
    mri_host_stream *s = e->stream ? mri_host_stream_ref(e->stream) : NULL;
    *number = e->number;
    pthread_mutex_unlock(&e->lock);
    return s;
}

static int event_query(mr_event *base)
{
    uint64_t number;
    mri_host_stream *s = marked((struct host_event *)base, &number);
    if (!s) return MR_OK;
    const int rc = mri_host_stream_query(s, number);
    mri_host_stream_unref(s);
    return rc;
}

static int event_wait(mr_event *base, uint64_t timeout_ns, mr_error *err)
{
    uint64_t number;
    mri_host_stream *s = marked((struct host_event *)base, &number);
    if (!s) return MR_OK;
    const int rc = mri_host_stream_wait(s, number, timeout_ns, err);
    mri_host_stream_unref(s);
    return rc;
}

static int event_time_ns(mr_event *base, uint64_t *out)
{
    struct host_event *e = (struct host_event *)base;
    pthread_mutex_lock(&e->lock);
    const bool over = e->stream && mri_host_stream_query(e->stream, e->number) != MR_EAGAIN;
    if (over) *out = e->time_ns;
    pthread_mutex_unlock(&e->lock);
    return over ? MR_OK : MR_EAGAIN;
}

struct wait_args {
    mri_host_stream *stream; /* a count */
    uint64_t number;
};

/* An error of the awaited work becomes this stream's own: later tasks would use incomplete data. */
static int run_wait(mri_host_stream *s, const void *args, mr_error *err)
{
    const struct wait_args *a = args;
    const int rc = mri_host_stream_failed(s) ? MR_OK : mri_host_stream_join(s, a->stream, a->number, err);
    mri_host_stream_unref(a->stream);
    return rc;
}

static int event_queue_wait(mr_stream *stream, mr_event *base)
{
    struct wait_args args;
    args.stream = marked((struct host_event *)base, &args.number);
    if (!args.stream) return MR_OK;
    if (args.stream == (mri_host_stream *)stream) { /* in order anyway */
        mri_host_stream_unref(args.stream);
        return MR_OK;
    }
    const int rc =
        mri_host_push((mri_host_stream *)stream, run_wait, &args, sizeof args, MRI_TASK_ALWAYS, NULL);
    if (rc) mri_host_stream_unref(args.stream);
    return rc;
}

const struct mri_event_calls mri_host_events = {.create = event_create,
                                                .destroy = event_destroy,
                                                .record = event_record,
                                                .queue_wait = event_queue_wait,
                                                .query = event_query,
                                                .wait = event_wait,
                                                .time_ns = event_time_ns};
