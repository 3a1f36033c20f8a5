/* train/served/serve.c: a server of parameters (service.h): a thread for each worker, one copy of the
 * parameters, one update at a time.
 *
 *   sync    the gradients of all workers are added in the order of the tree; then one update; all go on
 *   async   each gradient is an update of its own, by the weights that are there when it comes. A worker
 *           that is `bound` steps ahead of the slowest waits (stale synchronous parallel, Ho et al.
 *           2013)
 *
 * A server whose caller asks it to stop asks the workers, which stop all after the same step. The first error
 * ends the worlds of all workers. */
#include <pthread.h>
#include <stdio.h>

#include "base/process.h"
#include "base/util.h"
#include "train/run/ranks.h"
#include "train/served/service.h"

typedef struct serving serving;

typedef struct served_worker {
    serving *s;
    uint32_t index;
    mr_world *world;
    pthread_t thread;
    float *grads, *out; /* received; to send */
    uint64_t floats;    /* of both */
    uint64_t steps;     /* since BEGIN; lock */
    bool waits, ended;  /* its gradient waits for the others'; lock */
} served_worker;

struct serving {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    served_worker *workers;
    uint32_t count;
    mr_device **devices;
    uint32_t device_count;
    mr_stream *stream;
    /* all of this: lock */
    mri_request settings; /* of BEGIN */
    uint64_t floats;
    float *arrays[1 + MRI_SERVICE_STATES], *grads; /* on the device: weights, state */
    mr_step_values *values;
    mri_reply now;
    int rc; /* the first error, */
    mr_error why;
    const volatile int *stop; /* the caller's, or NULL */
    bool told_stop;           /* to a worker */
};

static uint32_t arrays_of(const serving *s) { return 1 + mr_update_state_count(s->settings.update.kind); }
static size_t bytes_of(const serving *s) { return (size_t)s->floats * sizeof(float); }

static void fail_locked(serving *s, int rc, const mr_error *why)
{
    if (s->rc) return;
    s->rc = rc, s->why = *why;
    pthread_cond_broadcast(&s->changed);
    for (uint32_t i = 0; i < s->count; i++)
        if (!s->workers[i].ended) mri_abort_run(s->workers[i].world, why);
}

/* ------------------------------------------------------------------------------ memory */

static void free_arrays(serving *s)
{
    for (uint32_t a = 0; a < 1 + MRI_SERVICE_STATES; a++) {
        mr_device_free(s->devices[0], s->arrays[a]);
        s->arrays[a] = NULL;
    }
    mr_device_free(s->devices[0], s->grads);
    mr_device_free(s->devices[0], s->values);
    s->grads = NULL, s->values = NULL;
}

static int alloc_arrays(serving *s, mr_error *err)
{
    void *at = NULL;
    int rc = MR_OK;
    free_arrays(s);
    for (uint32_t a = 0; rc == MR_OK && a < arrays_of(s); a++) {
        rc = mr_device_alloc(s->devices[0], bytes_of(s), &at, err);
        if (rc == MR_OK) s->arrays[a] = at;
    }
    if (rc == MR_OK) rc = mr_device_alloc(s->devices[0], bytes_of(s), &at, err);
    if (rc == MR_OK) s->grads = at, rc = mr_device_alloc(s->devices[0], sizeof *s->values, &at, err);
    if (rc == MR_OK) s->values = at;
    return rc;
}

/* A worker's buffers for `floats` floats; their size changes only if a run continues with another network. */
static int fit_buffers(served_worker *w, uint64_t floats, mr_error *err)
{
    if (w->grads && w->floats == floats) return MR_OK;
    free(w->grads), free(w->out);
    const size_t bytes = (size_t)mri_max_u64(floats, 1) * sizeof(float);
    w->grads = malloc(bytes), w->out = malloc(bytes);
    w->floats = floats;
    return w->grads && w->out ? MR_OK
                              : mr_error_set(err, MR_ENOMEM, "no memory to serve %llu parameters",
                                             (unsigned long long)floats);
}

/* ------------------------------------------------------------------------------ updates */

static int copy_out(serving *s, uint32_t array, float *out, mr_error *err)
{
    const int rc = s->floats ? mr_copy_d2h_async(s->stream, out, s->arrays[array], bytes_of(s)) : MR_OK;
    return rc ? mr_error_set(err, rc, "server: a copy of parameters: %s", mr_status_text(rc))
              : mr_stream_sync(s->stream, err);
}

static int update(serving *s, const float *grads, float lr, mr_error *err)
{
    mr_update_config cfg;
    mr_step_values values = {.step = 0};
    mr_update_desc rule = s->settings.update;
    rule.lr = lr;
    rule.step += s->now.version + 1;
    mr_update_defaults(&cfg);
    cfg.rule = s->settings.update;
    cfg.args = (mr_update_args){.count = s->floats,
                                .weights = s->arrays[0],
                                .grads = s->grads,
                                .state = {s->arrays[1], s->arrays[2]},
                                .values = s->values};
    cfg.clip_value = s->settings.clip_value;
    int rc = mr_update_values(&rule, &values);
    if (rc == MR_OK) rc = mr_copy_h2d_async(s->stream, s->values, &values, sizeof values);
    if (rc == MR_OK && s->floats) rc = mr_copy_h2d_async(s->stream, s->grads, grads, bytes_of(s));
    if (rc == MR_OK && s->floats) rc = mr_update_run_async(s->stream, &cfg);
    const int done = mr_stream_sync(s->stream, err); /* values and grads are read until here */
    if (rc) return mr_error_set(err, rc, "server: an update: %s", mr_status_text(rc));
    if (done == MR_OK) s->now.version++;
    return done;
}

/* The sum of workers [first, first + count), in the first one's buffer: the tree of kernels.h, "groups". */
static float *sum_of(serving *s, uint32_t first, uint32_t count)
{
    float *to = s->workers[first].grads;
    uint32_t half = 1;
    if (count == 1) return to;
    while (2 * half < count) half *= 2;
    sum_of(s, first, half);
    const float *from = sum_of(s, first + half, count - half);
    for (uint64_t i = 0; i < s->floats; i++) to[i] += from[i];
    return to;
}

static int update_of_all_locked(served_worker *w, float lr, mr_error *err)
{
    serving *s = w->s;
    const uint64_t before = s->now.version;
    uint32_t waiting = 0;
    w->waits = true;
    for (uint32_t i = 0; i < s->count; i++) {
        if (s->workers[i].ended)
            return mr_error_set(err, MR_EPEER, "it waits for worker %u, which has ended", i);
        waiting += s->workers[i].waits;
    }
    if (waiting < s->count) {
        while (!s->rc && s->now.version == before) pthread_cond_wait(&s->changed, &s->lock);
        return s->rc;
    }
    s->now.gradients += s->count;
    const int rc = update(s, sum_of(s, 0, s->count), lr, err);
    for (uint32_t i = 0; i < s->count; i++) s->workers[i].waits = false;
    pthread_cond_broadcast(&s->changed);
    return rc;
}

static uint64_t slowest_locked(const serving *s)
{
    uint64_t steps = UINT64_MAX;
    for (uint32_t i = 0; i < s->count; i++)
        if (!s->workers[i].ended) steps = mri_min_u64(steps, s->workers[i].steps);
    return steps;
}

static uint64_t fastest_locked(const serving *s)
{
    uint64_t steps = 0;
    for (uint32_t i = 0; i < s->count; i++) steps = mri_max_u64(steps, s->workers[i].steps);
    return steps;
}

static int update_of_one_locked(served_worker *w, const mri_request *q, mr_error *err)
{
    serving *s = w->s;
    while (!s->rc && w->steps - slowest_locked(s) >= q->bound) pthread_cond_wait(&s->changed, &s->lock);
    if (s->rc) return s->rc;
    const uint64_t stale = s->now.version - q->version;
    s->now.gradients++;
    s->now.stale_sum += stale;
    s->now.stale_most = mri_max_u64(s->now.stale_most, stale);
    const int rc = update(s, w->grads, q->update.lr, err);
    w->steps++;
    if (q->wants_to_stop && !s->now.stop_at)
        s->now.stop_at = fastest_locked(s) + 1; /* it may be at work on its next step */
    pthread_cond_broadcast(&s->changed);
    return rc;
}

/* ------------------------------------------------------------------------------ requests */

static int take_settings(served_worker *w, const mri_request *q, mr_error *err)
{
    serving *s = w->s;
    pthread_mutex_lock(&s->lock);
    s->settings = *q;
    s->floats = q->floats;
    s->now = (mri_reply){0};
    for (uint32_t i = 0; i < s->count; i++) s->workers[i].steps = 0;
    const int rc = alloc_arrays(s, err);
    pthread_mutex_unlock(&s->lock);
    return rc;
}

/* No other worker asks for anything until this one has the reply. */
static int begin(served_worker *w, const mri_request *q, mr_error *err)
{
    serving *s = w->s;
    const mri_reply reply = {0};
    int rc = take_settings(w, q, err);
    for (uint32_t a = 0; rc == MR_OK && a < arrays_of(s); a++) {
        rc = mri_service_receive(w->world, 1, w->grads, bytes_of(s), err);
        if (rc) return rc;
        if (s->floats) rc = mr_copy_h2d_async(s->stream, s->arrays[a], w->grads, bytes_of(s));
        const int done = mr_stream_sync(s->stream, err);
        if (rc) return mr_error_set(err, rc, "server: a copy of parameters: %s", mr_status_text(rc));
        rc = done;
    }
    return rc ? rc : mri_service_send(w->world, 1, &reply, sizeof reply, err);
}

static mri_reply reply_locked(serving *s)
{
    mri_reply reply = s->now;
    reply.asks_to_stop = s->stop && *s->stop;
    s->told_stop = s->told_stop || reply.asks_to_stop;
    return reply;
}

static int step(served_worker *w, const mri_request *q, mr_error *err)
{
    serving *s = w->s;
    int rc = mri_service_receive(w->world, 1, w->grads, (size_t)q->floats * sizeof(float), err);
    if (rc) return rc;
    pthread_mutex_lock(&s->lock);
    if (q->floats != s->floats || !s->arrays[0])
        rc = mr_error_set(err, MR_EINVAL, "server: worker %u has %llu parameters, expected %llu", w->index,
                          (unsigned long long)q->floats, (unsigned long long)s->floats);
    else rc = q->async ? update_of_one_locked(w, q, err) : update_of_all_locked(w, q->update.lr, err);
    if (rc == MR_OK) rc = copy_out(s, 0, w->out, err);
    const mri_reply reply = reply_locked(s);
    pthread_mutex_unlock(&s->lock);
    if (rc == MR_OK) rc = mri_service_send(w->world, 1, &reply, sizeof reply, err);
    return rc ? rc : mri_service_send(w->world, 1, w->out, (size_t)q->floats * sizeof(float), err);
}

/* Workers read when nothing is on its way. */
static int read_all(served_worker *w, mr_error *err)
{
    serving *s = w->s;
    pthread_mutex_lock(&s->lock);
    const mri_reply reply = reply_locked(s);
    const uint32_t arrays = arrays_of(s);
    int rc = w->floats == s->floats && s->arrays[0]
                 ? MR_OK
                 : mr_error_set(err, MR_EINVAL, "server: worker %u reads %llu parameters, expected %llu",
                                w->index, (unsigned long long)w->floats, (unsigned long long)s->floats);
    pthread_mutex_unlock(&s->lock);
    if (rc == MR_OK) rc = mri_service_send(w->world, 1, &reply, sizeof reply, err);
    for (uint32_t a = 0; rc == MR_OK && a < arrays; a++) {
        pthread_mutex_lock(&s->lock);
        rc = copy_out(s, a, w->out, err);
        pthread_mutex_unlock(&s->lock);
        if (rc == MR_OK) rc = mri_service_send(w->world, 1, w->out, (size_t)w->floats * sizeof(float), err);
    }
    return rc;
}

static int answer(served_worker *w, bool *ended, mr_error *err)
{
    mri_request q;
    int rc = mri_service_receive(w->world, 1, &q, sizeof q, err);
    if (rc) return rc;
    *ended = q.kind == MRI_SERVICE_END;
    if (*ended) return MR_OK;
    rc = fit_buffers(w, q.floats, err);
    if (rc) return rc;
    switch (q.kind) {
    case MRI_SERVICE_BEGIN: return begin(w, &q, err);
    case MRI_SERVICE_STEP: return step(w, &q, err);
    case MRI_SERVICE_READ: return read_all(w, err);
    default: return mr_error_set(err, MR_EINVAL, "server: worker %u sent request %u", w->index, q.kind);
    }
}

static void *serve_worker(void *arg)
{
    served_worker *w = arg;
    serving *s = w->s;
    mr_error err = MR_ERROR_INIT;
    bool ended = false;
    int rc = MR_OK;
    while (rc == MR_OK && !ended) rc = answer(w, &ended, &err);
    pthread_mutex_lock(&s->lock);
    w->ended = true;
    bool others_wait = false;
    for (uint32_t i = 0; i < s->count; i++) others_wait = others_wait || s->workers[i].waits;
    if (rc == MR_OK && others_wait) rc = mr_error_set(&err, MR_EPEER, "it ended while others wait for it");
    mr_error whole = MR_ERROR_INIT;
    if (rc) mr_error_set(&whole, rc, "worker %u: %.800s", w->index, err.text);
    if (rc) fail_locked(s, rc, &whole);
    pthread_cond_broadcast(&s->changed); /* the slowest may be another one */
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static int open_serving(serving *s, mr_crew *crew, mr_error *err)
{
    mr_devices_config cfg;
    mr_devices_defaults(&cfg);
    s->count = mr_crew_workers(crew);
    s->workers = calloc(s->count, sizeof *s->workers);
    if (!s->workers) return mr_error_set(err, MR_ENOMEM, "no memory to serve %u workers", s->count);
    int rc = mr_devices_open(&s->devices, &s->device_count, "cpu:1", &cfg, err);
    for (uint32_t i = 0; i < s->count; i++)
        s->workers[i] = (served_worker){.s = s, .index = i, .world = mr_crew_pair(crew, i)};
    return rc ? rc : mr_stream_create(&s->stream, s->devices[0], MR_STREAM_COMPUTE, err);
}

static void close_serving(serving *s)
{
    if (s->stream) mr_stream_destroy(s->stream);
    if (s->devices) free_arrays(s);
    mr_devices_close(s->devices, s->device_count);
    for (uint32_t i = 0; s->workers && i < s->count; i++) free(s->workers[i].grads), free(s->workers[i].out);
    free(s->workers);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
}

int mr_serve(mr_crew *crew, const volatile int *stop, mr_error *err)
{
    MRI_GIVEN(err, crew);
    serving s = {.lock = PTHREAD_MUTEX_INITIALIZER,
                 .changed = PTHREAD_COND_INITIALIZER,
                 .why = MR_ERROR_INIT,
                 .stop = stop};
    if (!mr_crew_serves(crew)) return mr_error_set(err, MR_EINVAL, "mr_serve: this process is a worker");
    int rc = open_serving(&s, crew, err);
    uint32_t started = 0;
    for (; rc == MR_OK && started < s.count; started++) {
        served_worker *w = &s.workers[started];
        rc = mri_thread_start(&w->thread, "mr-serve", serve_worker, w);
        if (rc) break;
    }
    if (rc && started < s.count && s.workers) {
        pthread_mutex_lock(&s.lock);
        mr_error_set(&s.why, rc, "no thread to serve worker %u", started);
        const mr_error why = s.why;
        for (uint32_t i = started; i < s.count; i++) s.workers[i].ended = true; /* nobody answers it */
        fail_locked(&s, rc, &why);
        pthread_mutex_unlock(&s.lock);
    }
    for (uint32_t i = 0; i < started; i++) pthread_join(s.workers[i].thread, NULL);
    if (s.rc) {
        rc = s.rc;
        if (err) *err = s.why;
    } else if (rc == MR_OK && s.told_stop) rc = mr_error_set(err, MR_ECANCELED, "stopped on request");
    close_serving(&s);
    return rc;
}
