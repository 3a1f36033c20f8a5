/* pipeline/observe/causes.c: see causes.h. The interval is consumed from its end: each stretch takes the time
 * after its beginning; the rest lies before it. */
#include "pipeline/observe/causes.h"

#include "base/cpu_time.h"

#define AT_ONCE_NS   20000u   /* a wait too short to count */
#define LITTLE_REST  0.7      /* of their time at work: workers that hold up */
#define LONG_REST_NS 1000000u /* of a worker: the scheduler was asked how it went */
#define OLDER_LOAD   0.75     /* each batch counts so much of the one after it */

static const struct {
    const char *name, *text;
} names[MR_CAUSES + 1] = {
    [MR_CAUSE_READ] = {"read", "reading"},
    [MR_CAUSE_DECODE] = {"decode", "decoding"},
    [MR_CAUSE_LARGE] = {"large", "decoding of single slow samples"},
    [MR_CAUSE_MEMORY] = {"memory", "memory for large pictures"},
    [MR_CAUSE_CORES] = {"cores", "cores taken by other threads"},
    [MR_CAUSE_QUOTA] = {"quota", "the control group's CPU quota"},
    [MR_CAUSE_BLOCKED] = {"blocked", "locks, page faults, late wake-ups"},
    [MR_CAUSE_ROOM] = {"room", "free slots"},
    [MR_CAUSE_COPY] = {"copy", "copies to the device"},
    [MR_CAUSE_HOST] = {"host", "the host, with the batch there"},
    [MR_CAUSE_UNKNOWN] = {"unknown", "unknown"},
    [MR_CAUSE_NETWORK] = {"network", "gradients of other ranks"},
};

const char *mr_cause_name(mr_cause cause)
{
    return (unsigned)cause < MRI_ARRAY_COUNT(names) ? names[cause].name : NULL;
}

const char *mr_cause_text(mr_cause cause)
{
    return (unsigned)cause < MRI_ARRAY_COUNT(names) ? names[cause].text : NULL;
}

void mri_load_mark(mri_load *l, uint64_t worked_ns, uint32_t threads, uint64_t now_ns)
{
    if (l->marked_ns && now_ns > l->marked_ns) {
        l->worked_ns = OLDER_LOAD * l->worked_ns + (double)worked_ns / threads;
        l->passed_ns = OLDER_LOAD * l->passed_ns + (double)(now_ns - l->marked_ns);
    }
    l->marked_ns = now_ns;
}

typedef struct meal {
    uint64_t from, to; /* the rest of the interval */
    double throttled;
    mr_causes *add;
} meal;

static void put(meal *m, mr_cause cause, uint64_t ns)
{
    m->add->ns[cause] += ns;
    m->add->total_ns += ns;
}

/* What lies behind since_ns; how long that is. */
static uint64_t take(meal *m, uint64_t since_ns)
{
    const uint64_t begin = mri_max_u64(since_ns, m->from);
    if (begin >= m->to) return 0;
    const uint64_t ns = m->to - begin;
    m->to = begin;
    return ns;
}

static void charge(meal *m, uint64_t since_ns, mr_cause cause) { put(m, cause, take(m, since_ns)); }

static uint64_t part_of(uint64_t ns, uint64_t part, uint64_t whole)
{
    return whole ? (uint64_t)((double)ns * mri_min_u64(part, whole) / (double)whole) : 0;
}

static uint64_t put_part(meal *m, mr_cause cause, uint64_t ns, uint64_t part, uint64_t whole, uint64_t left)
{
    const uint64_t mine = mri_min_u64(part_of(ns, part, whole), left);
    put(m, cause, mine);
    return left - mine;
}

/* ns in which a thread had to be woken: first that it was not run, then the rest. */
static void put_waking(meal *m, uint64_t ns, uint64_t late_ns)
{
    const uint64_t late = mri_min_u64(ns, late_ns);
    const uint64_t quota = (uint64_t)((double)late * m->throttled);
    put(m, MR_CAUSE_QUOTA, quota);
    put(m, MR_CAUSE_CORES, late - quota);
    put(m, MR_CAUSE_BLOCKED, ns - late);
}

/* The same, when all that is known is that something was over and not seen: longer than waking takes, a
 * thread that had to tell was not run either. */
static void put_seeing(meal *m, uint64_t ns, uint64_t late_ns)
{
    put_waking(m, ns, ns > MRI_WAKE_NS ? ns : late_ns);
}

/* Another worker could have taken it, and was not run: waking takes less. */
static bool is_awaited(const mri_chunk_times *c)
{
    return c->awaited_ns && c->work.begun_ns > c->awaited_ns + MRI_WAKE_NS;
}

/* It lay there when the worker that took it was free, and that one asked the scheduler what kept it. */
static bool is_kept_from(const mri_chunk_times *c)
{
    return c->asked_ns && c->before.ended_ns >= c->read_ns && c->work.rested_ns >= LONG_REST_NS;
}

uint64_t mri_chunk_late_ns(const mri_chunk_times *c, uint64_t ns)
{
    return mri_min_u64(ns, is_awaited(c) && !is_kept_from(c) ? c->work.begun_ns - c->awaited_ns
                                                             : c->work.late_ns);
}

/* ns for its bytes: a reader that others kept from running, or storage. */
static void put_reading(meal *m, uint64_t ns, const mri_chunk_times *c)
{
    const uint64_t delayed = (uint64_t)((double)ns * c->delayed_part);
    const uint64_t quota = (uint64_t)((double)delayed * m->throttled);
    put(m, MR_CAUSE_QUOTA, quota);
    put(m, MR_CAUSE_CORES, delayed - quota);
    put(m, MR_CAUSE_READ, ns - delayed);
}

/* ns of such work, in its proportions. */
static void split(meal *m, uint64_t ns, const mri_work *w)
{
    const uint64_t whole = w->ended_ns - w->begun_ns;
    if (ns == 0) return;
    if (whole == 0) {
        put(m, MR_CAUSE_DECODE, ns);
        return;
    }
    const uint64_t quota = (uint64_t)((double)w->delayed_ns * m->throttled);
    uint64_t left = ns;
    left = put_part(m, MR_CAUSE_MEMORY, ns, w->memory_ns, whole, left);
    left = put_part(m, MR_CAUSE_QUOTA, ns, quota, whole, left);
    left = put_part(m, MR_CAUSE_CORES, ns, w->delayed_ns - quota, whole, left);
    left = put_part(m, MR_CAUSE_LARGE, ns, w->large_ns, whole, left);
    left = put_part(m, MR_CAUSE_DECODE, ns, w->ran_ns - mri_min_u64(w->large_ns, w->ran_ns), whole, left);
    put(m, MR_CAUSE_BLOCKED, left);
}

/* From the copies back to the full slot. */
static void charge_staging(meal *m, const mri_batch_times *t)
{
    if (t->copy.end_ns) charge(m, t->copy.end_ns, MR_CAUSE_HOST);
    /* not over, or nobody has looked yet: what follows the copies' being queued is theirs */
    charge(m, t->copy.start_ns ? t->copy.start_ns : t->staged_ns, MR_CAUSE_COPY);
    charge(m, t->room_ns, MR_CAUSE_COPY);    /* waiting for the copies of the batch before */
    charge(m, t->noticed_ns, MR_CAUSE_HOST); /* the devices' memory was not given back */
    put_waking(m, take(m, mri_max_u64(t->came_ns, t->full_ns)), t->late_ns);
    /* it was there, and staging at the batch before: until its copies were over, and then until it saw that
     */
    if (t->before_ns) put_seeing(m, take(m, mri_max_u64(t->before_ns, t->full_ns)), t->before_late_ns);
    charge(m, t->full_ns, MR_CAUSE_COPY);
}

static void charge_serial(meal *m, const mri_batch_times *t)
{
    const mri_work *w = &t->last.work;
    const uint64_t ns = take(m, t->last.asked_ns);
    const uint64_t whole = t->full_ns - t->last.asked_ns;
    const uint64_t read = part_of(ns, t->serial_read_ns, whole);
    put(m, MR_CAUSE_READ, read);
    split(m, ns - read, w);
    /* nobody had asked for it: the host did not know yet that the step before was over, or was not there */
    const uint64_t unasked = take(m, 0), late = mri_min_u64(unasked, t->before_late_ns);
    put_waking(m, late, late);
    put(m, MR_CAUSE_HOST, unasked - late);
}

static uint64_t length_of(const mri_work *w) { return w->ended_ns - w->begun_ns; }

static uint64_t busy_ns(const mri_work *w) { return length_of(w) + w->held_ns; }

static uint64_t leisure_ns(const mri_work *w) { return w->rested_ns - w->held_ns; }

/* ns of what all workers did for a batch: one chunk more or less that was held up is seen in its proportion,
 * whichever came last. */
static void split_round(meal *m, uint64_t ns, const mri_batch_times *t)
{
    const mri_work *all = &t->round;
    const uint64_t whole = length_of(all) + all->held_ns, between = part_of(ns, all->held_ns, whole);
    if (whole == 0) { /* they were counted for a batch that was full in the same moment */
        split(m, ns, &t->last.work);
        return;
    }
    put_waking(m, between, part_of(ns, all->late_ns, whole));
    split(m, ns - between, all);
}

/* The chunk waited for its worker, and not just because some came at once: workers hardly ever rest. */
static bool is_held_up_by_work(const mri_batch_times *t)
{
    const mri_chunk_times *c = &t->last;
    const uint64_t worked = busy_ns(&c->before) + busy_ns(&c->work);
    if (c->before.ended_ns <= c->read_ns || leisure_ns(&c->before) + leisure_ns(&c->work) >= worked)
        return false;
    return t->load.passed_ns == 0 || t->load.worked_ns > LITTLE_REST * t->load.passed_ns;
}

static void charge_chunk(meal *m, const mri_batch_times *t)
{
    const mri_chunk_times *c = &t->last;
    put_waking(m, take(m, c->work.ended_ns), c->closing_ns);
    split(m, take(m, c->work.begun_ns), &c->work);
    /* it waited for the worker; or the worker was free and was not woken, or had no slot to fill */
    const uint64_t free_ns = mri_max_u64(c->before.ended_ns, c->read_ns);
    const uint64_t idle_ns = c->asked_ns ? take(m, free_ns) : 0;
    if (c->asked_ns) put_waking(m, idle_ns, mri_chunk_late_ns(c, idle_ns));
    else charge(m, free_ns, MR_CAUSE_ROOM);
    split(m, take(m, c->read_ns), &c->before);
    put_reading(m, take(m, c->claimed_ns), c);
    /* it waited for a buffer: workers had them, or storage did */
    const uint64_t buffer_ns = take(m, c->room_ns);
    if (is_held_up_by_work(t)) split_round(m, buffer_ns, t);
    else put_reading(m, buffer_ns, c);
    charge(m, c->asked_ns, MR_CAUSE_ROOM);
    charge(m, 0, MR_CAUSE_READ);
}

/* Nobody had to wait for a slot: the loader is behind, and all its stages are at work. */
static bool is_behind(const mri_batch_times *t)
{
    const mri_chunk_times *c = &t->last;
    if (t->serial) return false;
    if (c->asked_ns) return c->room_ns - c->asked_ns < AT_ONCE_NS;
    return c->before.ended_ns && c->work.begun_ns - c->before.ended_ns < AT_ONCE_NS; /* nothing is read */
}

/* Some bytes were awaited nearly all the time: this chunk's bytes may have come with another chunk's. */
static bool is_held_up_by_reading(const mri_batch_times *t)
{
    return t->reading.passed_ns > 0 && t->reading.worked_ns > LITTLE_REST * t->reading.passed_ns;
}

/* Nobody was at work, and it lay there longer than it took to read: who was woken for it did not come. */
static bool is_held_up_by_waking(const mri_batch_times *t)
{
    const mri_chunk_times *c = &t->last;
    return !is_held_up_by_reading(t) && c->asked_ns && is_awaited(c) &&
           c->work.begun_ns - c->read_ns > c->read_ns - c->claimed_ns;
}

/* The link had rested for long when staging saw that its copies were over. */
static bool is_seen_late(const mri_batch_times *t)
{
    const uint64_t since = mri_max_u64(t->before_ns, t->full_ns);
    return t->before_ns && t->came_ns > since + MRI_WAKE_NS &&
           t->came_ns - since > t->before_ns - mri_min_u64(t->full_ns, t->before_ns);
}

/* The stage of a loader that is behind which all others wait for. */
typedef enum stage { NONE, LINK, UNSEEN_LINK, WORKERS, KEPT_WORKER, UNWOKEN_WORKER, READING } stage;

static stage held_up_by(const mri_batch_times *t)
{
    const mri_chunk_times *c = &t->last;
    if (!is_behind(t)) return NONE;
    if (is_seen_late(t)) return UNSEEN_LINK;
    if (t->came_ns > t->full_ns) return LINK;
    if (is_held_up_by_work(t) || !c->asked_ns) return WORKERS;
    if (is_kept_from(c) && !is_held_up_by_reading(t)) return KEPT_WORKER;
    if (is_held_up_by_waking(t)) return UNWOKEN_WORKER;
    return is_held_up_by_reading(t) || t->reading.passed_ns == 0 ? READING : NONE;
}

static void charge_behind(meal *m, const mri_batch_times *t, stage at)
{
    const mri_chunk_times *c = &t->last;
    if (t->copy.end_ns) charge(m, t->copy.end_ns, MR_CAUSE_HOST);
    if (!t->came_ns) charge(m, t->full_ns, MR_CAUSE_HOST);
    const uint64_t ns = take(m, 0);
    if (at == UNSEEN_LINK || at == UNWOKEN_WORKER) put_waking(m, ns, ns);
    else if (at == LINK) put(m, MR_CAUSE_COPY, ns);
    else if (at == WORKERS) split_round(m, ns, t);
    else if (at == KEPT_WORKER) put_waking(m, ns, part_of(ns, c->work.late_ns, c->work.rested_ns));
    else put_reading(m, ns, c);
}

void mri_causes_charge(const mri_batch_times *t, double throttled, uint64_t from_ns, uint64_t to_ns,
                       mr_causes *add)
{
    meal m = {from_ns, to_ns, throttled, add};
    if (from_ns >= to_ns) return;
    if (t->batch == MR_NOWHERE) {
        charge(&m, 0, MR_CAUSE_UNKNOWN);
        return;
    }
    const stage at = held_up_by(t);
    if (at != NONE) {
        charge_behind(&m, t, at);
        return;
    }
    if (t->came_ns) charge_staging(&m, t);
    else charge(&m, t->full_ns, MR_CAUSE_HOST);
    if (t->serial) charge_serial(&m, t);
    else charge_chunk(&m, t);
}
