/* pipeline/observe/replay.c: see replay.h. What goes on is a short list that is searched for what ends first;
 * after every end whoever waits looks again whether it can go on, until nobody can. */
#include "pipeline/observe/replay.h"

#include <math.h>

#define DEVICE_SLOTS 2u
#define RUN_AHEAD    2u

typedef enum event {
    READER_CORE,
    IN_FLIGHT,
    WORKER_LAG,
    WORKER_CORE,
    WORKER_BLOCKED,
    STAGER_LAG,
    COPY_CORE,
    COPY_REST,
    GAP,
    STEP
} event;

/* What goes on. Of a core: `end` is in virtual time, which runs as fast as each thread does. */
typedef struct activity {
    event kind;
    uint32_t who; /* reader, worker, device; in flight: the chunk */
    bool on_core;
    uint32_t threads;
    double end;
} activity;

typedef struct chunk {
    uint64_t batch;
    uint32_t samples, reader;
    double read_core, waits, ran, large, blocked, bytes; /* waits: for storage */
    double held_ns, late_ns;                             /* of the rest before its work: mri_work */
    mri_chunk_times times;
} chunk;

typedef struct reader {
    bool busy;
    uint32_t in_flight;
    chunk *chunk;
    bool no_room;               /* when it was looked at last no slot had room */
    double asked, roomy, began; /* roomy: since then one has */
} reader;

typedef struct worker {
    chunk *chunk;     /* NULL: it waits */
    double since;     /* when it had done with the one before */
    double shared_ns; /* when it began */
    mri_work last;
} worker;

typedef struct batch {
    uint32_t samples, remaining;
    bool full;
    uint64_t copied; /* bits of parts */
    mri_batch_times times;
    mri_copy_times copy[MR_LOADER_MAX_PARTS];
    double copy_ns, copy_core_ns, lag_ns, step_ns, gap_ns;
} batch;

typedef struct device {
    bool copying, in_step;
    uint64_t steps;  /* steps whose own share is over */
    double free_ns;  /* since when it is idle */
    double begun_ns; /* its step */
} device;

typedef struct stretch { /* of one ring of the record */
    size_t first, count, at;
} stretch;

typedef struct model {
    const mri_record_data *data;
    const mr_replay_config *cfg;
    mri_run_shape shape;
    uint32_t chunk_samples;
    double part_times; /* size of a part, in parts of the recorded run */
    stretch chunks, copies, steps;
    uint32_t left; /* samples of the chunk of the record that is under way */
    struct {       /* of workers that had not waited for their chunk, and that had */
        stretch of[2];
        bool is_rare[2];
        double mean_ns[2], late_mean_ns[2];
    } lag;
    struct {
        double now, virtual_ns, shared_ns, core_ns; /* virtual: recorded work done by each thread; shared:
                                                       its time on a core */
        uint32_t running;                           /* threads that need a core */
        activity *act;
        uint32_t act_count;
    } cores;
    struct {
        chunk *all, **free, **queue; /* queue: a ring of count */
        uint32_t count, free_count, queue_first, queue_count;
    } pool;
    reader *readers;
    worker *workers;
    struct {
        batch *batches; /* batch b at b % kept */
        uint32_t count, kept;
    } slot;
    device devices[MR_LOADER_MAX_PARTS];
    struct {                    /* as the loader's accounts */
        mri_load load, reading; /* of the workers; of the readers together */
        mri_work round;         /* of the workers, since a batch was full */
        mri_cover read;         /* since then, some chunk's bytes were awaited */
    } account;
    struct {
        uint64_t next_batch, copied, staged, queued, stepped; /* copied: slots of batches < copied are free */
        uint32_t next_first;
    } at;
    struct {
        bool lagging; /* about to queue the copies of batch `copied` */
        bool copying; /* they are under way, or wait for the device slot */
        double came_ns;
    } stager;
    uint64_t warmup, end;
    double last_end;
    mri_replay_run *out;
} model;

/* ------------------------------------------------------------------------------ durations */

static stretch stretch_of(size_t all, const mri_replay_part *p)
{
    const size_t first = (size_t)((double)all * p->from), end = (size_t)((double)all * p->to);
    if (all == 0) return (stretch){0};
    if (end > first) return (stretch){first, end - first, 0};
    return (stretch){first < all ? first : all - 1, 1, 0};
}

static size_t next_of(stretch *s)
{
    const size_t at = s->first + s->at;
    s->at = (s->at + 1) % s->count;
    return at;
}

/* The next n samples of the record. What adds up is taken from as many recorded chunks as they lie in; how
 * long reading takes is taken as it was. */
static void draw_chunk(model *m, chunk *c, uint32_t n)
{
    const mr_replay_config *cfg = m->cfg;
    const mri_chunk_record *r = &m->data->chunk[m->chunks.first + m->chunks.at];
    *c = (chunk){.samples = n, .waits = (double)(r->read_ns - mri_min_u64(r->reader_core_ns, r->read_ns))};
    for (uint32_t need = n; need > 0;) {
        r = &m->data->chunk[m->chunks.first + m->chunks.at];
        if (m->left == 0) m->left = r->samples;
        const uint32_t take = need < m->left ? need : m->left;
        const double part = (double)take / r->samples;
        c->read_core += part * (double)r->reader_core_ns;
        c->ran += part * (double)r->ran_ns;
        c->large += part * (double)r->large_ns;
        c->blocked += part * (double)r->blocked_ns;
        c->bytes += part * (double)r->bytes;
        need -= take;
        m->left -= take;
        if (m->left == 0) next_of(&m->chunks);
    }
    c->waits *= cfg->read_times * cfg->bytes_times;
    c->read_core *= cfg->read_core_times;
    c->bytes *= cfg->read_times > 0 ? cfg->bytes_times : 0;
    c->ran *= cfg->decode_times;
    c->large *= cfg->decode_times;
}

/* Find which kind of lag is rare: the model uses its mean, because searching for the next one would take
 * long. */
static void look_at_lags(model *m)
{
    size_t count[2] = {0};
    m->lag.of[0] = m->lag.of[1] = m->chunks;
    for (size_t i = m->chunks.first; i < m->chunks.first + m->chunks.count; i++) {
        const mri_chunk_record *r = &m->data->chunk[i];
        count[r->woken]++;
        m->lag.mean_ns[r->woken] += (double)r->lag_ns;
        m->lag.late_mean_ns[r->woken] += (double)r->late_ns;
    }
    for (int k = 0; k < 2; k++) {
        m->lag.is_rare[k] = count[k] * 64 < m->chunks.count;
        if (count[k]) m->lag.mean_ns[k] /= (double)count[k];
        if (count[k]) m->lag.late_mean_ns[k] /= (double)count[k];
    }
}

/* How late the next worker begins; one that is woken later than one that has a chunk waiting. late_ns: of
 * that it could have run. */
static double draw_lag(model *m, bool woken, double *late_ns)
{
    stretch *s = &m->lag.of[woken];
    *late_ns = m->lag.late_mean_ns[woken];
    if (m->lag.is_rare[woken]) return m->lag.mean_ns[woken];
    for (size_t i = 0; i < s->count; i++) {
        const mri_chunk_record *r = &m->data->chunk[next_of(s)];
        if (r->woken != woken) continue;
        *late_ns = (double)r->late_ns;
        return (double)r->lag_ns;
    }
    return *late_ns = 0;
}

static void draw_batch(model *m, batch *b, uint64_t number)
{
    const mri_step_record *s = &m->data->step[next_of(&m->steps)];
    const double size = (double)s->samples * m->cfg->batch / m->data->shape.batch + 0.5;
    *b = (batch){.samples = size < 1 ? 1 : (uint32_t)size, .times.batch = number};
    b->remaining = b->samples;
    const mri_copy_record *c = &m->data->copy[next_of(&m->copies)];
    b->copy_ns = (double)c->copy_ns * m->part_times * m->cfg->copy_times;
    b->copy_core_ns = fmin(1e6 * m->cfg->copy_core_ms * m->part_times, b->copy_ns);
    b->lag_ns = (double)c->lag_ns;
    b->step_ns = (double)s->compute_ns * m->cfg->step_times;
    b->gap_ns = (double)s->gap_ns;
}

/* ------------------------------------------------------------------------------ what goes on */

static batch *batch_of(model *m, uint64_t b) { return &m->slot.batches[b % m->slot.kept]; }

static uint64_t ns(double t) { return (uint64_t)(t + 0.5); }

static void begin(model *m, event kind, uint32_t who, double duration)
{
    m->cores.act[m->cores.act_count++] = (activity){.kind = kind, .who = who, .end = m->cores.now + duration};
}

static void begin_on_core(model *m, event kind, uint32_t who, uint32_t threads, double duration)
{
    m->cores.act[m->cores.act_count++] = (activity){
        .kind = kind, .who = who, .on_core = true, .threads = threads, .end = m->cores.virtual_ns + duration};
    m->cores.running += threads;
}

/* What part of a core each thread gets. */
static double share(const model *m)
{
    const double all = m->cores.running + m->cfg->others;
    return all > m->cfg->cores ? m->cfg->cores / all : 1;
}

/* The factor by which recorded work takes longer with the present number of busy cores. */
static double crowding(const model *m)
{
    const mr_replay_config *cfg = m->cfg;
    const double busy = fmin(m->cores.running + cfg->others, cfg->cores);
    const double part = cfg->cores > 1 ? fmax(0, (busy - 1) / (cfg->cores - 1)) : 0,
                 more = cfg->crowd_times - 1;
    return (1 + more * part) / (1 + more * cfg->crowd_part);
}

static double pace(const model *m) { return share(m) / crowding(m); }

/* To the end of what ends first, which is taken off the list. */
static activity advance(model *m)
{
    const double rate = pace(m);
    uint32_t first = 0;
    double soonest = INFINITY;
    for (uint32_t i = 0; i < m->cores.act_count; i++) {
        const activity *a = &m->cores.act[i];
        const double in = a->on_core ? (a->end - m->cores.virtual_ns) / rate : a->end - m->cores.now;
        if (in >= soonest) continue;
        soonest = in;
        first = i;
    }
    const activity a = m->cores.act[first];
    if (soonest < 0) soonest = 0; /* rounding */
    m->cores.now += soonest;
    m->cores.virtual_ns += soonest * rate;
    m->cores.shared_ns += soonest * share(m);
    m->cores.core_ns += soonest * share(m) * m->cores.running;
    if (a.on_core) m->cores.running -= a.threads;
    m->cores.act[first] = m->cores.act[--m->cores.act_count];
    return a;
}

/* ------------------------------------------------------------------------------ reading */

static bool has_room(const model *m) { return m->at.next_batch < m->at.copied + m->slot.count; }

static bool can_claim(const model *m) { return has_room(m) && m->pool.free_count > 0; }

/* r: who reads it; NULL: nothing has to be read. */
static chunk *claim(model *m, const reader *r)
{
    chunk *c = m->pool.free[--m->pool.free_count];
    const batch *b = batch_of(m, m->at.next_batch);
    if (m->at.next_first == 0) draw_batch(m, batch_of(m, m->at.next_batch), m->at.next_batch);
    const uint32_t left = b->samples - m->at.next_first;
    draw_chunk(m, c, left < m->chunk_samples ? left : m->chunk_samples);
    c->batch = m->at.next_batch;
    if (r)
        c->times = (mri_chunk_times){.asked_ns = ns(r->asked) + 1,
                                     .room_ns = ns(fmax(r->asked, r->roomy)) + 1,
                                     .claimed_ns = ns(m->cores.now) + 1};
    m->at.next_first += c->samples;
    if (m->at.next_first == b->samples) {
        m->at.next_first = 0;
        m->at.next_batch++;
    }
    return c;
}

static bool from_memory(const model *m) { return m->shape.resident || m->cfg->read_times == 0; }

static bool read_more(model *m, uint32_t at)
{
    reader *r = &m->readers[at];
    if (r->no_room && has_room(m)) r->roomy = m->cores.now;
    r->no_room = !has_room(m);
    if (from_memory(m) || r->busy || r->in_flight >= m->cfg->depth || !can_claim(m)) return false;
    chunk *c = claim(m, r);
    c->reader = at;
    r->busy = true;
    r->began = m->cores.now;
    r->chunk = c;
    r->in_flight += c->samples;
    begin_on_core(m, READER_CORE, at, 1, c->read_core);
    return true;
}

static void submitted(model *m, uint32_t at)
{
    reader *r = &m->readers[at];
    chunk *c = r->chunk;
    r->busy = false;
    r->asked = m->cores.now;
    /* busier than it ran: others had the cores */
    const double wall = m->cores.now - r->began, all = wall + c->waits;
    c->times.delayed_part = all > 0 ? fmax(0, wall - c->read_core) / all : 0;
    begin(m, IN_FLIGHT, (uint32_t)(c - m->pool.all), c->waits);
}

static void has_read(model *m, chunk *c)
{
    m->readers[c->reader].in_flight -= c->samples;
    m->readers[c->reader].asked = m->cores.now;
    c->times.read_ns = ns(m->cores.now) + 1;
    mri_cover_add(&m->account.read, c->times.claimed_ns, c->times.read_ns);
    m->pool.queue[(m->pool.queue_first + m->pool.queue_count++) % m->pool.count] = c;
}

/* ------------------------------------------------------------------------------ decoding */

static bool decode_more(model *m, uint32_t at)
{
    worker *w = &m->workers[at];
    if (w->chunk) return false;
    if (m->pool.queue_count > 0) {
        w->chunk = m->pool.queue[m->pool.queue_first];
        m->pool.queue_first = (m->pool.queue_first + 1) % m->pool.count;
        m->pool.queue_count--;
    } else if (from_memory(m) && can_claim(m)) w->chunk = claim(m, NULL);
    if (!w->chunk) return false;
    w->chunk->times.before = w->last;
    const bool woken = m->cores.now > w->since;
    const double lag = draw_lag(m, woken, &w->chunk->late_ns);
    w->chunk->held_ns = woken ? w->chunk->late_ns : lag;
    begin(m, WORKER_LAG, at, lag);
    return true;
}

static void has_begun(model *m, uint32_t at)
{
    chunk *c = m->workers[at].chunk;
    mri_work *work = &c->times.work;
    *work = (mri_work){.begun_ns = ns(m->cores.now) + 1, .late_ns = ns(c->late_ns)};
    if (c->times.before.ended_ns) work->rested_ns = work->begun_ns - c->times.before.ended_ns;
    work->held_ns = mri_min_u64(ns(c->held_ns), work->rested_ns);
    m->workers[at].shared_ns = m->cores.shared_ns;
    begin_on_core(m, WORKER_CORE, at, 1, c->ran);
}

/* Its run on a core is over; longer than it ran: other threads had the cores. */
static void has_run(model *m, uint32_t at)
{
    chunk *c = m->workers[at].chunk;
    mri_work *work = &c->times.work;
    const double wall = m->cores.now - (double)(work->begun_ns - 1),
                 ran = m->cores.shared_ns - m->workers[at].shared_ns;
    const double delayed = fmax(0, wall - ran);
    work->ran_ns = ns(ran);
    work->large_ns = c->ran > 0 ? ns(c->large * ran / c->ran) : 0;
    work->delayed_ns = ns(delayed);
    m->out->ran_ns += ran;
    m->out->delayed_ns += delayed;
    begin(m, WORKER_BLOCKED, at, c->blocked);
}

static void has_decoded(model *m, uint32_t at)
{
    worker *w = &m->workers[at];
    chunk *c = w->chunk;
    batch *b = batch_of(m, c->batch);
    c->times.work.ended_ns = mri_max_u64(ns(m->cores.now) + 1, c->times.work.begun_ns);
    w->last = c->times.work;
    w->since = m->cores.now;
    w->chunk = NULL;
    if (c->batch >= m->warmup) m->out->read_bytes += c->bytes;
    b->remaining -= c->samples;
    mri_work_add(&m->account.round, &c->times.work);
    if (b->remaining == 0) {
        mri_load_mark(&m->account.load, m->account.round.ended_ns + m->account.round.held_ns,
                      m->shape.workers, ns(m->cores.now) + 1);
        mri_load_mark(&m->account.reading, m->account.read.ns, 1, ns(m->cores.now) + 1);
        b->full = true;
        b->times.round = m->account.round;
        b->times.load = m->account.load;
        b->times.reading = m->account.reading;
        m->account.round = (mri_work){0};
        m->account.read.ns = 0;
        b->times.last = c->times;
        b->times.full_ns = ns(m->cores.now) + 1;
    }
    m->pool.free[m->pool.free_count++] = c;
}

/* ------------------------------------------------------------------------------ staging */

/* Staging waits for the batch and for room, queues its copies, and waits for them. */
static bool stage(model *m)
{
    batch *b = batch_of(m, m->at.copied);
    if (m->stager.copying || m->stager.lagging || m->at.copied >= m->at.next_batch + (m->at.next_first > 0) ||
        !b->full)
        return false;
    if (!b->times.noticed_ns) b->times.noticed_ns = ns(m->cores.now) + 1;
    if (m->at.copied >= m->at.queued + DEVICE_SLOTS) return false;
    b->times.came_ns = ns(m->stager.came_ns) + 1;
    b->times.room_ns = ns(m->cores.now) + 1;
    begin(m, STAGER_LAG, 0, b->lag_ns);
    return m->stager.lagging = true;
}

static void has_staged(model *m)
{
    batch_of(m, m->at.copied)->times.staged_ns = ns(m->cores.now) + 1;
    m->at.staged = m->at.copied + 1;
    m->stager.lagging = false;
    m->stager.copying = true;
}

/* A copy begins when the step that used the device slot before is over. */
static bool copy_more(model *m, uint32_t d)
{
    batch *b = batch_of(m, m->at.copied);
    if (!m->stager.copying || m->devices[d].copying || b->copied & (uint64_t)1 << d) return false;
    if (m->at.copied >= m->at.stepped + DEVICE_SLOTS) return false;
    m->devices[d].copying = true;
    b->copy[d].start_ns = ns(m->cores.now) + 1;
    begin_on_core(m, COPY_CORE, d, 1, b->copy_core_ns);
    return true;
}

/* The link may take longer than the core that feeds it. */
static void copy_left_core(model *m, uint32_t d)
{
    const batch *b = batch_of(m, m->at.copied);
    const double until = (double)(b->copy[d].start_ns - 1) + b->copy_ns;
    begin(m, COPY_REST, d, until > m->cores.now ? until - m->cores.now : 0);
}

static void has_copied(model *m, uint32_t d)
{
    batch *b = batch_of(m, m->at.copied);
    m->devices[d].copying = false;
    b->copy[d].end_ns = ns(m->cores.now) + 1;
    b->copied |= (uint64_t)1 << d;
    for (uint32_t i = 0; i < m->cfg->devices; i++)
        if (!(b->copied & (uint64_t)1 << i)) return;
    m->stager.copying = false;
    m->stager.came_ns = m->cores.now;
    m->at.copied++;
}

/* ------------------------------------------------------------------------------ steps */

static bool queue_step(model *m)
{
    if (m->at.queued >= m->at.staged || m->at.queued >= m->at.stepped + RUN_AHEAD) return false;
    m->at.queued++;
    return true;
}

static bool begin_gap(model *m, uint32_t d)
{
    device *dev = &m->devices[d];
    const batch *b = batch_of(m, m->at.stepped);
    if (dev->in_step || dev->steps > m->at.stepped || m->at.queued <= m->at.stepped) return false;
    if (!(b->copied & (uint64_t)1 << d)) return false;
    dev->in_step = true;
    begin(m, GAP, d, b->gap_ns);
    return true;
}

static void begin_step(model *m, uint32_t d)
{
    device *dev = &m->devices[d];
    batch *b = batch_of(m, m->at.stepped);
    mri_batch_times t = b->times;
    t.copy = b->copy[d];
    dev->begun_ns = m->cores.now;
    if (m->at.stepped >= m->warmup) {
        const mr_causes before = m->out->causes;
        mri_causes_charge(&t, 0, ns(dev->free_ns) + 1, ns(m->cores.now) + 1, &m->out->causes);
        m->out->idle_ns += (double)(m->out->causes.total_ns - before.total_ns);
    }
    if (m->cfg->step_cores) begin_on_core(m, STEP, d, m->cfg->step_cores, b->step_ns);
    else begin(m, STEP, d, b->step_ns);
}

static void end_batch(model *m)
{
    const uint64_t b = m->at.stepped++;
    if (b >= m->warmup) {
        m->out->interval_ns[m->out->batches++] = m->cores.now - m->last_end;
        m->out->ns += m->cores.now - m->last_end;
        m->out->samples += batch_of(m, b)->samples;
    } else m->cores.core_ns = 0;
    m->last_end = m->cores.now;
    for (uint32_t i = 0; i < m->cfg->devices; i++) {
        if (b >= m->warmup) m->out->compute_ns += m->cores.now - m->devices[i].begun_ns;
        m->devices[i].free_ns = m->cores.now;
        m->devices[i].in_step = false;
    }
}

/* Replicas end a step together. */
static void has_stepped(model *m, uint32_t d)
{
    m->devices[d].steps++;
    for (uint32_t i = 0; i < m->cfg->devices; i++)
        if (m->devices[i].steps <= m->at.stepped) return;
    end_batch(m);
}

/* ------------------------------------------------------------------------------ the run */

static bool go_on(model *m)
{
    bool any = false;
    for (uint32_t i = 0; i < m->cfg->readers; i++) any |= read_more(m, i);
    for (uint32_t i = 0; i < m->cfg->workers; i++) any |= decode_more(m, i);
    any |= stage(m);
    any |= queue_step(m);
    for (uint32_t i = 0; i < m->cfg->devices; i++) {
        any |= copy_more(m, i);
        any |= begin_gap(m, i);
    }
    return any;
}

static void end_of(model *m, const activity *a)
{
    switch (a->kind) {
    case READER_CORE: submitted(m, a->who); break;
    case IN_FLIGHT: has_read(m, &m->pool.all[a->who]); break;
    case WORKER_LAG: has_begun(m, a->who); break;
    case STAGER_LAG: has_staged(m); break;
    case WORKER_CORE: has_run(m, a->who); break;
    case WORKER_BLOCKED: has_decoded(m, a->who); break;
    case COPY_CORE: copy_left_core(m, a->who); break;
    case COPY_REST: has_copied(m, a->who); break;
    case GAP: begin_step(m, a->who); break;
    case STEP: has_stepped(m, a->who); break;
    }
}

static void run_with_threads(model *m)
{
    while (m->at.stepped < m->end) {
        while (go_on(m)) {
        }
        const activity a = advance(m);
        end_of(m, &a);
    }
}

/* Prefetch off: one thing after the other; the step is over before the next batch is asked for. */
static void run_serial(model *m)
{
    m->cores.running = 1; /* this thread */
    const double one_pace = pace(m), one_share = share(m);
    m->cores.running = 0;
    for (; m->at.stepped < m->end;) {
        batch *b = batch_of(m, m->at.stepped);
        chunk c;
        mri_work *work = &b->times.last.work;
        double read = 0;
        draw_batch(m, b, m->at.stepped);
        b->times.serial = true;
        b->times.last.asked_ns = ns(m->cores.now) + 1;
        for (uint32_t at = 0; at < b->samples; at += c.samples) {
            const uint32_t left = b->samples - at;
            draw_chunk(m, &c, left < m->chunk_samples ? left : m->chunk_samples);
            read += from_memory(m) ? 0 : c.read_core + c.waits;
            const double wall = c.ran / one_pace, ran = wall * one_share;
            work->ran_ns += ns(ran);
            work->large_ns += ns(c.large);
            work->delayed_ns += ns(wall - ran);
            work->ended_ns += ns(wall + c.blocked);
            m->out->ran_ns += ran;
            m->out->delayed_ns += wall - ran;
            m->cores.core_ns += ran + (from_memory(m) ? 0 : c.read_core);
            if (m->at.stepped >= m->warmup) m->out->read_bytes += c.bytes;
        }
        b->times.serial_read_ns = ns(read);
        m->cores.now += read + (double)work->ended_ns;
        b->times.full_ns = b->times.came_ns = b->times.noticed_ns = b->times.room_ns = ns(m->cores.now) + 1;
        m->cores.now += b->lag_ns;
        b->times.staged_ns = ns(m->cores.now) + 1;
        for (uint32_t d = 0; d < m->cfg->devices; d++) {
            b->copy[d] = (mri_copy_times){ns(m->cores.now) + 1, ns(m->cores.now + b->copy_ns) + 1};
        }
        m->cores.now += b->copy_ns + b->gap_ns;
        m->cores.core_ns += b->copy_core_ns * m->cfg->devices;
        for (uint32_t d = 0; d < m->cfg->devices; d++) begin_step(m, d);
        while (m->cores.act_count) { /* each on its own device, or on what cores there are */
            const activity a = advance(m);
            end_of(m, &a);
        }
    }
}

static bool make(model *m)
{
    const mr_replay_config *cfg = m->cfg;
    const size_t in_flight = m->pool.count + cfg->readers + cfg->workers + 3 * (size_t)cfg->devices + 1;
    m->cores.act = calloc(in_flight, sizeof *m->cores.act);
    m->pool.all = calloc(m->pool.count, sizeof *m->pool.all);
    m->pool.free = calloc(m->pool.count, sizeof *m->pool.free);
    m->pool.queue = calloc(m->pool.count, sizeof *m->pool.queue);
    m->readers = calloc(cfg->readers, sizeof *m->readers);
    m->workers = calloc(cfg->workers, sizeof *m->workers);
    m->slot.batches = calloc(m->slot.kept, sizeof *m->slot.batches);
    m->out->interval_ns = calloc(m->end - m->warmup, sizeof *m->out->interval_ns);
    if (!m->cores.act || !m->pool.all || !m->pool.free || !m->pool.queue || !m->readers || !m->workers ||
        !m->slot.batches)
        return false;
    for (uint32_t i = 0; i < m->pool.count; i++) m->pool.free[m->pool.free_count++] = &m->pool.all[i];
    return m->out->interval_ns != NULL;
}

static void drop(model *m)
{
    free(m->cores.act);
    free(m->pool.all);
    free(m->pool.free);
    free(m->pool.queue);
    free(m->readers);
    free(m->workers);
    free(m->slot.batches);
}

static mri_run_shape shape_of(const mri_record_data *data, const mr_replay_config *cfg)
{
    mri_run_shape s = data->shape;
    s.batch = cfg->batch;
    s.parts = cfg->devices;
    s.workers = cfg->prefetch ? cfg->workers : 1;
    s.readers = cfg->readers;
    s.depth = cfg->depth;
    return s;
}

int mri_replay_part_run(const mri_record_data *data, const mr_replay_config *cfg, const mri_replay_part *part,
                        mri_replay_run *out)
{
    *out = (mri_replay_run){0};
    model m = {.data = data, .cfg = cfg, .shape = shape_of(data, cfg), .out = out};
    m.chunk_samples = mri_shape_chunk_samples(&m.shape);
    m.pool.count = mri_shape_chunk_count(&m.shape);
    m.part_times = (double)cfg->batch / cfg->devices * data->shape.parts / data->shape.batch;
    m.chunks = stretch_of(data->chunks, part);
    look_at_lags(&m);
    m.copies = stretch_of(data->copies, part);
    m.steps = stretch_of(data->steps, part);
    m.slot.count = cfg->prefetch + 1;
    m.slot.kept = m.slot.count + DEVICE_SLOTS + RUN_AHEAD + 1;
    m.warmup = 2 * (uint64_t)m.slot.count + 4;
    m.end = m.warmup + part->batches;
    const bool made = make(&m);
    if (made && cfg->prefetch) run_with_threads(&m);
    else if (made) run_serial(&m);
    out->core_ns = m.cores.core_ns;
    drop(&m);
    return made ? MR_OK : MR_ENOMEM;
}
