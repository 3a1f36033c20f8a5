/* train/run/tap.c: see tap.h. An exchange that nobody has announced is passed on and not watched: with the
 * first one of a group the processes tell each other who holds what. */
#include "train/run/tap.h"

#include <stdlib.h>

#include "base/ranges.h"
#include "base/util.h"

enum { CAP = 64, SUM_STEPS = 2, SUM_STEPS_IN_HOSTS = 4 };

#define TEN(t)                                                                                               \
    "wait for rank " t "0", "wait for rank " t "1", "wait for rank " t "2", "wait for rank " t "3",          \
        "wait for rank " t "4", "wait for rank " t "5", "wait for rank " t "6", "wait for rank " t "7",      \
        "wait for rank " t "8", "wait for rank " t "9"
/* A trace keeps names, not copies. */
static const char *const wait_names[] = {TEN(""),  TEN("1"), TEN("2"), TEN("3"), TEN("4"),
                                         TEN("5"), TEN("6"), TEN("7"), TEN("8"), TEN("9")};

int mri_tap_init(mri_tap *t, mr_world *world, mr_exchange how, mr_trace *trace, mr_error *err)
{
    *t = (mri_tap){.wire = mr_wire_of(world),
                   .world = world,
                   .trace = trace,
                   .cap = CAP,
                   .steps = SUM_STEPS,
                   .queue = calloc(CAP, sizeof *t->queue),
                   .first_ns = calloc(mr_wire_of(world).size, sizeof *t->first_ns)};
    pthread_mutex_init(&t->lock, NULL);
    t->per_host = how == MR_EXCHANGE_F32 ? mr_world_ranks_per_host(world) : 1;
    if (t->per_host > 1 && t->per_host < t->wire.size) t->steps = SUM_STEPS_IN_HOSTS;
    if (!t->queue || !t->first_ns)
        return mr_error_set(err, MR_ENOMEM, "no memory for an exchange with %u processes", t->wire.size);
    return mri_packer_init(&t->packer, how, t->wire.size, err);
}

void mri_tap_fini(mri_tap *t)
{
    if (!t->cap) return;
    pthread_mutex_destroy(&t->lock);
    free(t->queue);
    free(t->first_ns);
    mri_packer_fini(&t->packer);
    *t = (mri_tap){0};
}

/* lock */
static bool grow(mri_tap *t)
{
    mri_tap_work *more = malloc(2 * (size_t)t->cap * sizeof *more);
    if (!more) return false;
    for (uint32_t i = t->ended; i != t->begun; i++) more[i % (2 * t->cap)] = t->queue[i % t->cap];
    free(t->queue);
    t->queue = more;
    t->cap *= 2;
    return true;
}

int mri_tap_expect(mri_tap *t, const mri_tap_work *work, mr_error *err)
{
    if (work->bytes_left == 0) return MR_OK;
    pthread_mutex_lock(&t->lock);
    const bool room = t->begun - t->ended < t->cap || grow(t);
    if (room) t->queue[t->begun++ % t->cap] = *work;
    pthread_mutex_unlock(&t->lock);
    return room ? MR_OK : mr_error_set(err, MR_ENOMEM, "no memory for a queue of exchanges");
}

static bool newest(mri_tap *t, mri_tap_work *out)
{
    pthread_mutex_lock(&t->lock);
    const bool some = t->begun != t->ended;
    if (some) *out = t->queue[t->ended % t->cap];
    pthread_mutex_unlock(&t->lock);
    return some;
}

/* This many more bytes of the array are final. */
static void pass(mri_tap *t, uint64_t bytes)
{
    pthread_mutex_lock(&t->lock);
    mri_tap_work *w = &t->queue[t->ended % t->cap];
    w->bytes_left -= mri_min_u64(bytes, w->bytes_left);
    w->at += bytes / sizeof(float);
    if (w->bytes_left == 0) t->ended++;
    pthread_mutex_unlock(&t->lock);
}

/* Slices of an array: this rank sends its own to each of the others, and gets theirs. A broadcast is the
 * array itself. */
static uint64_t bytes_of(const mri_tap *t, const mr_piece *send, const mr_piece *receive)
{
    uint64_t got = 0, own = 0;
    for (uint32_t r = 0; r < t->wire.size; r++) {
        got += receive[r].bytes;
        own = mri_max_u64(own, send[r].bytes);
    }
    return got + own;
}

static void span(const mri_tap *t, const char *name, uint64_t from_ns, uint64_t to_ns, uint64_t batch)
{
    if (to_ns > from_ns) mr_trace_span(t->trace, "exchange", name, from_ns, to_ns, batch);
}

/* Until the last of the others had begun, and then until the end. */
static void trace_exchange(mri_tap *t, const mri_tap_work *w, uint64_t begun_ns, uint64_t ended_ns)
{
    uint64_t came_ns = begun_ns;
    uint32_t last = t->wire.rank;
    mr_world_arrivals(t->world, 0, t->first_ns);
    for (uint32_t r = 0; r < t->wire.size; r++)
        if (r != t->wire.rank && t->first_ns[r] > came_ns) came_ns = t->first_ns[r], last = r;
    came_ns = mri_min_u64(came_ns, ended_ns);
    if (last != t->wire.rank)
        span(t, last < MRI_ARRAY_COUNT(wait_names) ? wait_names[last] : "wait for a rank", begun_ns, came_ns,
             w->batch);
    span(t, "exchange", came_ns, ended_ns, w->batch);
    if (last != t->wire.rank) mri_range_mark(MRI_RANGE_WAIT_FOR_RANK, last);
}

static int send_on(mri_tap *t, const mri_tap_work *w, const mr_piece *send, const mr_piece *receive,
                   mr_error *err)
{
    if (!w->packed || t->packer.how == MR_EXCHANGE_F32)
        return t->wire.exchange(t->wire.context, send, receive, err);
    const bool slices = t->step > 0;
    return mri_packer_exchange(&t->packer, &t->wire, w->at << 1 | slices, slices, send, receive, err);
}

static int exchange(void *context, const mr_piece *send, const mr_piece *receive, mr_error *err)
{
    mri_tap *t = context;
    mri_tap_work w = {0};
    const bool known = newest(t, &w);
    const uint64_t begun_ns = mri_now_ns();
    if (known && w.sum && t->step) {
        mri_range_end();
        span(t, "sum", t->before_end_ns, begun_ns, w.batch);
    }
    mri_range_begin(MRI_RANGE_EXCHANGE, w.bucket);
    const int rc = send_on(t, &w, send, receive, err);
    mri_range_end();
    if (rc || !known) return rc;
    const uint64_t ended_ns = mri_now_ns();
    trace_exchange(t, &w, begun_ns, ended_ns);
    t->step = w.sum ? (t->step + 1) % t->steps : 0;
    t->before_end_ns = ended_ns;
    if (t->step) mri_range_begin(MRI_RANGE_SUM, w.bucket);
    else pass(t, bytes_of(t, send, receive));
    return rc;
}

mr_wire mri_tap_wire(mri_tap *t)
{
    return (mr_wire){t->wire.rank, t->wire.size, t, t->wire.exchange ? exchange : NULL};
}

uint32_t mri_tap_ranks_per_host(const mri_tap *t) { return t->per_host; }

int mri_tap_check(void *tap, mr_error *err) { return mr_world_check(((const mri_tap *)tap)->world, err); }

/* ---- sums that a device makes by itself ---- */

int mri_sum_spans_init(mri_sum_spans *s, mr_trace *trace, mr_stream *stream, mr_error *err)
{
    int rc = MR_OK;
    *s = (mri_sum_spans){.trace = trace, .stream = stream};
    for (uint32_t i = 0; trace && rc == MR_OK && i < MRI_SUM_SPANS; i++) {
        rc = mr_event_create(&s->begin[i], mr_stream_device(stream), err);
        if (rc == MR_OK) rc = mr_event_create(&s->end[i], mr_stream_device(stream), err);
    }
    return rc;
}

void mri_sum_spans_fini(mri_sum_spans *s)
{
    mri_sum_spans_write(s);
    for (uint32_t i = 0; i < MRI_SUM_SPANS; i++) {
        mr_event_destroy(s->begin[i]);
        mr_event_destroy(s->end[i]);
    }
    *s = (mri_sum_spans){0};
}

void mri_sum_spans_write(mri_sum_spans *s)
{
    for (; s->written < s->queued; s->written++) {
        const uint64_t i = s->written % MRI_SUM_SPANS;
        uint64_t from_ns, to_ns;
        if (mr_event_query(s->end[i]) == MR_EAGAIN) return;
        if (mr_event_time_ns(s->begin[i], &from_ns) || mr_event_time_ns(s->end[i], &to_ns)) continue;
        if (to_ns > from_ns) mr_trace_span(s->trace, "exchange", "exchange", from_ns, to_ns, s->batch[i]);
    }
}

int mri_sum_spans_begin(mri_sum_spans *s, uint64_t batch)
{
    const uint64_t i = s->queued % MRI_SUM_SPANS;
    if (!s->trace) return MR_OK;
    mri_sum_spans_write(s);
    const bool full = s->queued - s->written == MRI_SUM_SPANS;
    const int rc = full ? mr_event_sync(s->end[i], NULL) : MR_OK;
    if (rc) return rc;
    if (full) mri_sum_spans_write(s);
    s->batch[i] = batch;
    return mr_event_record(s->begin[i], s->stream);
}

int mri_sum_spans_end(mri_sum_spans *s)
{
    if (!s->trace) return MR_OK;
    const int rc = mr_event_record(s->end[s->queued % MRI_SUM_SPANS], s->stream);
    if (rc == MR_OK) s->queued++;
    return rc;
}
